/* SPDX-License-Identifier: MIT
 *
 * The calls on one entry: each locks the shard of its key, does its work and unlocks.
 */
#include "sxe-dict-private.h"

/* ---- Locking and unlocking the shard of a key ---- */

/* Lock the shard of a key, find its entry, and remove it if it has expired. 1: found; 0: none; in
 * both cases the shard is locked. -errno: the shard is not locked. */
static int
enter_key(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes, size_t size,
          struct sxe__dict_view *view)
{
    int result = sxe__dict_set_key(dict, key, bytes, size);

    if (result < 0)
        return result;
    result = sxe__dict_lock(dict, key->shard);
    if (result < 0)
        return result;
    result = sxe__dict_find(dict, key, 0, view);
    if (result == 1 && sxe__dict_is_expired(dict, view->expires_ns)) {
        result = sxe__dict_verify(dict, view);
        if (result == 0) {
            sxe__dict_count(&dict->counts[key->shard].expirations);
            result = sxe__dict_commit_remove(dict, key->shard, view->id);
        }
    }
    if (result < 0)
        sxe__dict_unlock(dict, key->shard);
    return result;
}

static inline ssize_t
leave_key(const SXE_DICT *dict, const struct sxe__dict_key *key, ssize_t result)
{
    sxe__dict_unlock(dict, key->shard);
    return result;
}

static __attribute__((noinline)) int
enter_shard_again(const SXE_DICT *dict, struct sxe__dict_key *key, struct sxe__dict_view *view)
{
    struct sxe__pool_patience patience = {0};
    int result = -EAGAIN;

    while (result == -EAGAIN && sxe__pool_wait(dict->sharing, &patience))
        result = enter_key(dict, key, key->bytes, key->size, view);
    return result;
}

/* Like enter_key(), but waits for the lock for as long as sxe_dict_set_wait allows. */
static inline int
enter_patiently(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes, size_t size,
                struct sxe__dict_view *view)
{
    const int found = enter_key(dict, key, bytes, size, view);

    return SXE_LIKELY(found != -EAGAIN) ? found : enter_shard_again(dict, key, view);
}

/* For calls that change an existing entry: 0 with the shard locked, or -errno with it unlocked. */
static inline int
enter_entry(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes, size_t size,
            struct sxe__dict_view *view)
{
    const int found = enter_patiently(dict, key, bytes, size, view);

    if (found != 0)
        return found < 0 ? found : 0;
    return (int)leave_key(dict, key, -ENOENT);
}

/* For calls that read an entry. Counts a hit or a miss. */
static inline int
enter_to_read(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes, size_t size,
              struct sxe__dict_view *view)
{
    const int found = enter_patiently(dict, key, bytes, size, view);

    if (found < 0)
        return found;
    struct sxe__dict_counts *counts = &dict->counts[key->shard];

    if (found == 0) {
        sxe__dict_count(&counts->misses);
        return (int)leave_key(dict, key, -ENOENT);
    }
    if (sxe__dict_verify(dict, view) < 0)
        return (int)leave_key(dict, key, -EUCLEAN);
    sxe__dict_count(&counts->hits);
    return 0;
}

static int
touch_entry(const SXE_DICT *dict, const struct sxe__dict_view *view, uint32_t state)
{
    return sxe__pool_move_locked(dict->pool, view->id, state) ? 0 : sxe__dict_damaged(dict);
}

int
sxe_dict_set_wait(SXE_DICT *dict, double seconds)
{
    return sxe_pool_set_wait(dict->array, seconds);
}

/* ---- Looking ---- */

static ssize_t
copy_value_out(SXE_DICT *dict, const struct sxe__dict_view *view, void *value, size_t size)
{
    const int copied = sxe__dict_copy_value(dict, view, value, size);

    return copied < 0 ? copied : (ssize_t)view->value_size;
}

ssize_t
sxe_dict_get(SXE_DICT *dict, const void *key, size_t key_size, void *value, size_t size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_to_read(dict, &place, key, key_size, &view);

    if (entered < 0)
        return entered;
    if (touch_entry(dict, &view, sxe__dict_state(dict, view.id)) < 0)
        return leave_key(dict, &place, -EUCLEAN);
    return leave_key(dict, &place, copy_value_out(dict, &view, value, size));
}

ssize_t
sxe_dict_peek(SXE_DICT *dict, const void *key, size_t key_size, void *value, size_t size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_to_read(dict, &place, key, key_size, &view);

    return entered < 0 ? entered
                       : leave_key(dict, &place, copy_value_out(dict, &view, value, size));
}

double
sxe_dict_get_ttl(SXE_DICT *dict, const void *key, size_t key_size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_to_read(dict, &place, key, key_size, &view);

    if (entered < 0)
        return entered;
    leave_key(dict, &place, 0);
    return sxe__dict_ttl(dict, view.expires_ns);
}

size_t
sxe_dict_get_count(const SXE_DICT *dict)
{
    size_t count = 0;

    for (unsigned state = SXE_DICT_LIVE; state <= SXE_DICT_DIRTY; state++)
        count += sxe_pool_get_count(dict->array, state);
    return count;
}

/* ---- Putting ---- */

/* Whether to try again after -EAGAIN. If this call had the lock (was_locked), it was making room,
 * and the next try makes more: do not sleep before it. */
static __attribute__((noinline)) bool
may_try_again(const SXE_DICT *dict, struct sxe__pool_patience *patience, bool was_locked)
{
    return was_locked ? sxe__pool_may_go_on(dict->sharing, patience)
                      : sxe__pool_wait(dict->sharing, patience);
}

int
sxe_dict_put(SXE_DICT *dict, const void *key, size_t key_size, const void *value, size_t size,
             double ttl_s)
{
    struct sxe__dict_key place;
    struct sxe__dict_put put = {.key = &place, .value = value, .size = size};
    struct sxe__pool_patience patience = {0};
    bool is_locked;
    int result = sxe__dict_set_key(dict, &place, key, key_size);

    if (result < 0 || !sxe__dict_expiry(dict, ttl_s, &put.expires_ns))
        return -EINVAL;
    do {
        result = sxe__dict_lock(dict, place.shard);
        is_locked = result == 0;
        if (is_locked)
            result = (int)leave_key(dict, &place, sxe__dict_put(dict, &put));
    } while (SXE_UNLIKELY(result == -EAGAIN) && may_try_again(dict, &patience, is_locked));
    return result;
}

/* Compare the value with the expected one. 1: they are equal. */
static int
is_expected(const SXE_DICT *dict, int found, const struct sxe__dict_view *view,
            const void *expected, size_t size)
{
    if (expected == NULL || found != 1)
        return (expected == NULL) == (found == 0);
    return sxe__dict_verify(dict, view) < 0 ? -EUCLEAN
                                            : sxe__dict_compare(dict, view, expected, size);
}

int
sxe_dict_compare_and_put(SXE_DICT *dict, const void *key, size_t key_size, const void *expected,
                         size_t expected_size, const void *value, size_t size, double ttl_s)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    struct sxe__dict_put put = {.key = &place, .value = value, .size = size};
    struct sxe__pool_patience patience = {0};
    bool is_locked;
    int result;

    if (!sxe__dict_expiry(dict, ttl_s, &put.expires_ns))
        return -EINVAL;
    do {
        result = enter_key(dict, &place, key, key_size, &view);
        is_locked = result >= 0;
        if (is_locked)
            result = is_expected(dict, result, &view, expected, expected_size);
        if (is_locked && result >= 0)
            result = result == 1 ? sxe__dict_put(dict, &put) : -EEXIST;
        if (is_locked)
            leave_key(dict, &place, 0);
    } while (result == -EAGAIN && may_try_again(dict, &patience, is_locked));
    return result;
}

/* Add in place: one store to the counter, and one to the entry's checksum. */
static int
add_in_place(const SXE_DICT *dict, uint32_t shard, const struct sxe__dict_view *view, int64_t *sum)
{
    uint64_t *counter = sxe__dict_counter(dict, view);

    if (counter == NULL)
        return -EUCLEAN;
    const uint64_t old = SXE__POOL_GET(*counter);
    if (__builtin_add_overflow((int64_t)old, *sum, sum))
        return -EOVERFLOW;
    if (touch_entry(dict, view, sxe__dict_state(dict, view->id)) < 0)
        return -EUCLEAN;
    sxe__dict_change(dict, shard, view->id, counter, (uint64_t)*sum,
                     sxe__dict_value_sum((const char *)&old, sizeof(old)) ^
                         sxe__dict_value_sum((const char *)sum, sizeof(*sum)));
    return 0;
}

/* Add by putting a new version in: there is no entry (view is NULL), or a snapshot sees the old
 * version. */
static int
add_to_new_counter(const SXE_DICT *dict, const struct sxe__dict_key *key,
                   const struct sxe__dict_view *view, uint64_t expires_ns, int64_t *sum)
{
    struct sxe__dict_put put = {
        .key = key, .value = sum, .size = sizeof(*sum), .expires_ns = expires_ns};
    int64_t old = 0;

    if (view != NULL && sxe__dict_copy_value(dict, view, &old, sizeof(old)) < 0)
        return -EUCLEAN;
    if (__builtin_add_overflow(old, *sum, sum))
        return -EOVERFLOW;
    return sxe__dict_put(dict, &put);
}

/* Add *sum to the counter; the caller holds the lock of the key's shard. 0, and *sum is the new
 * value; or -errno. */
static int
add_locked(const SXE_DICT *dict, const struct sxe__dict_key *key, int found,
           const struct sxe__dict_view *view, uint64_t expires_ns, int64_t *sum)
{
    if (found == 0)
        return add_to_new_counter(dict, key, NULL, expires_ns, sum);
    if (sxe__dict_verify(dict, view) < 0)
        return -EUCLEAN;
    if (view->value_size != sizeof(*sum))
        return -EDOM;
    return sxe__dict_is_seen(dict, view)
               ? add_to_new_counter(dict, key, view, view->expires_ns, sum)
               : add_in_place(dict, key->shard, view, sum);
}

int
sxe_dict_add(SXE_DICT *dict, const void *key, size_t key_size, int64_t addend, double ttl_s,
             int64_t *sum)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    struct sxe__pool_patience patience = {0};
    uint64_t expires_ns;
    int64_t counter;
    bool is_locked;
    int result;

    if (!sxe__dict_expiry(dict, ttl_s, &expires_ns))
        return -EINVAL;
    do {
        counter = addend;
        result = enter_key(dict, &place, key, key_size, &view);
        is_locked = result >= 0;
        if (is_locked)
            result = (int)leave_key(dict, &place,
                                    add_locked(dict, &place, result, &view, expires_ns, &counter));
    } while (result == -EAGAIN && may_try_again(dict, &patience, is_locked));
    if (result == 0 && sum != NULL)
        *sum = counter;
    return result;
}

/* ---- Other changes ---- */

int
sxe_dict_remove(SXE_DICT *dict, const void *key, size_t key_size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_entry(dict, &place, key, key_size, &view);

    if (entered < 0)
        return entered;
    return (int)leave_key(dict, &place, sxe__dict_commit_remove(dict, place.shard, view.id));
}

int
sxe_dict_touch(SXE_DICT *dict, const void *key, size_t key_size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_entry(dict, &place, key, key_size, &view);

    if (entered < 0)
        return entered;
    return (int)leave_key(dict, &place, touch_entry(dict, &view, sxe__dict_state(dict, view.id)));
}

int
sxe_dict_expire(SXE_DICT *dict, const void *key, size_t key_size, double ttl_s)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    uint64_t expires_ns;

    if (!sxe__dict_expiry(dict, ttl_s, &expires_ns))
        return -EINVAL;
    const int entered = enter_entry(dict, &place, key, key_size, &view);
    if (entered < 0)
        return entered;
    const uint32_t before = sxe__dict_head_sum(dict, &view);
    view.expires_ns = expires_ns;
    sxe__dict_note_expiry(dict, place.shard, expires_ns);
    sxe__dict_change(dict, place.shard, view.id, &sxe__dict_cell(dict, view.id)->expires_ns,
                     expires_ns, before ^ sxe__dict_head_sum(dict, &view));
    return (int)leave_key(dict, &place, 0);
}

int
sxe_dict_set_state(SXE_DICT *dict, const void *key, size_t key_size, SXE_DICT_STATE state)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;

    if (!sxe__dict_is_entry(state))
        return -EINVAL;
    const int entered = enter_entry(dict, &place, key, key_size, &view);
    return entered < 0 ? entered : (int)leave_key(dict, &place, touch_entry(dict, &view, state));
}
