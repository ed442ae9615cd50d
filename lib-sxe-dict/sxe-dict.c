/* SPDX-License-Identifier: MIT
 *
 * The calls on one entry: each locks the shard of its key, does its work and unlocks.
 */
#include "sxe-dict-private.h"

/* ---- In and out ---- */

/* Lock the shard of a key, and find its entry. 1: it is there; 0: it is not; the shard is locked.
 * -errno: it is not. What has expired is taken out. */
static int
enter(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes, size_t size,
      struct sxe__dict_view *view)
{
    int result = sxe__dict_set_key(dict, key, bytes, size);

    if (result < 0)
        return result;
    result = sxe__dict_lock(dict, key->shard);
    if (result < 0)
        return result;
    result = sxe__dict_find(dict, key, 0, view);
    if (result == 1 && sxe__dict_is_expired(dict, view->expires_ns))
        result = sxe__dict_commit_remove(dict, key->shard, view->id);
    if (result < 0)
        sxe__dict_unlock(dict, key->shard);
    return result;
}

static inline ssize_t
leave(const SXE_DICT *dict, const struct sxe__dict_key *key, ssize_t result)
{
    sxe__dict_unlock(dict, key->shard);
    return result;
}

/* The same, where nothing but an entry that is there will do. */
static int
enter_entry(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes, size_t size,
            struct sxe__dict_view *view)
{
    const int found = enter(dict, key, bytes, size, view);

    if (found != 0)
        return found < 0 ? found : 0;
    return (int)leave(dict, key, -ENOENT);
}

static int
touch(const SXE_DICT *dict, const struct sxe__dict_view *view, uint32_t state)
{
    return sxe__pool_move_locked(dict->pool, view->id, state) ? 0 : sxe__dict_damaged(dict);
}

/* ---- Looking ---- */

static ssize_t
copy_out(SXE_DICT *dict, const struct sxe__dict_view *view, void *value, size_t size)
{
    const int copied = sxe__dict_copy_value(dict, view, value, size);

    return copied < 0 ? copied : (ssize_t)view->value_size;
}

ssize_t
sxe_dict_get(SXE_DICT *dict, const void *key, size_t key_size, void *value, size_t size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_entry(dict, &place, key, key_size, &view);

    if (entered < 0)
        return entered;
    if (touch(dict, &view, sxe__dict_state(dict, view.id)) < 0)
        return leave(dict, &place, -EUCLEAN);
    return leave(dict, &place, copy_out(dict, &view, value, size));
}

ssize_t
sxe_dict_peek(SXE_DICT *dict, const void *key, size_t key_size, void *value, size_t size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_entry(dict, &place, key, key_size, &view);

    return entered < 0 ? entered : leave(dict, &place, copy_out(dict, &view, value, size));
}

double
sxe_dict_get_ttl(SXE_DICT *dict, const void *key, size_t key_size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_entry(dict, &place, key, key_size, &view);

    if (entered < 0)
        return entered;
    leave(dict, &place, 0);
    return sxe__dict_ttl(dict, view.expires_ns);
}

size_t
sxe_dict_get_count(const SXE_DICT *dict)
{
    size_t count = 0;

    for (unsigned state = SXE_DICT_LIVE; state <= SXE_DICT_DIRTY; state++)
        count += sxe_pool_get_number_in_state(dict->array, state);
    return count;
}

/* ---- Putting ---- */

int
sxe_dict_put(SXE_DICT *dict, const void *key, size_t key_size, const void *value, size_t size,
             double ttl_s)
{
    struct sxe__dict_key place;
    struct sxe__dict_put put = {.key = &place, .value = value, .size = size};
    int result = sxe__dict_set_key(dict, &place, key, key_size);

    if (result < 0 || !sxe__dict_expiry(dict, ttl_s, &put.expires_ns))
        return -EINVAL;
    result = sxe__dict_lock(dict, place.shard);
    return result < 0 ? result : (int)leave(dict, &place, sxe__dict_put(dict, &put));
}

/* 1: the value is the expected one. */
static int
is_expected(const SXE_DICT *dict, int found, const struct sxe__dict_view *view,
            const void *expected, size_t size)
{
    if (expected == NULL || found != 1)
        return (expected == NULL) == (found == 0);
    return sxe__dict_compare(dict, view, expected, size);
}

int
sxe_dict_compare_and_put(SXE_DICT *dict, const void *key, size_t key_size, const void *expected,
                         size_t expected_size, const void *value, size_t size, double ttl_s)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    struct sxe__dict_put put = {.key = &place, .value = value, .size = size};

    if (!sxe__dict_expiry(dict, ttl_s, &put.expires_ns))
        return -EINVAL;
    int result = enter(dict, &place, key, key_size, &view);
    if (result < 0)
        return result;
    result = is_expected(dict, result, &view, expected, expected_size);
    if (result == 1)
        result = sxe__dict_put(dict, &put);
    else if (result == 0)
        result = -EEXIST;
    return (int)leave(dict, &place, result);
}

/* Add where the counter is: one store. */
static int
add_in_place(const SXE_DICT *dict, const struct sxe__dict_view *view, uint64_t *sum)
{
    uint64_t *counter = sxe__dict_counter(dict, view);

    if (counter == NULL)
        return -EUCLEAN;
    *sum += SXE__POOL_GET(*counter);
    if (touch(dict, view, sxe__dict_state(dict, view->id)) < 0)
        return -EUCLEAN;
    SXE__POOL_PUT(*counter, *sum);
    return 0;
}

/* Add by a new version: there is none, or a snapshot sees the old one. */
static int
add_anew(const SXE_DICT *dict, const struct sxe__dict_key *key, const struct sxe__dict_view *view,
         uint64_t expires_ns, uint64_t *sum)
{
    struct sxe__dict_put put = {
        .key = key, .value = sum, .size = sizeof(*sum), .expires_ns = expires_ns};
    uint64_t old = 0;

    if (view != NULL && sxe__dict_copy_value(dict, view, &old, sizeof(old)) < 0)
        return -EUCLEAN;
    *sum += old;
    return sxe__dict_put(dict, &put);
}

int
sxe_dict_add(SXE_DICT *dict, const void *key, size_t key_size, int64_t addend, double ttl_s,
             int64_t *sum)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    uint64_t expires_ns;
    uint64_t counter = (uint64_t)addend;

    if (!sxe__dict_expiry(dict, ttl_s, &expires_ns))
        return -EINVAL;
    int result = enter(dict, &place, key, key_size, &view);
    if (result < 0)
        return result;
    if (result == 0)
        result = add_anew(dict, &place, NULL, expires_ns, &counter);
    else if (view.value_size != sizeof(counter))
        result = -EDOM;
    else if (sxe__dict_is_seen(dict, &view))
        result = add_anew(dict, &place, &view, view.expires_ns, &counter);
    else
        result = add_in_place(dict, &view, &counter);
    if (result == 0 && sum != NULL)
        *sum = (int64_t)counter;
    return (int)leave(dict, &place, result);
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
    return (int)leave(dict, &place, sxe__dict_commit_remove(dict, place.shard, view.id));
}

int
sxe_dict_touch(SXE_DICT *dict, const void *key, size_t key_size)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;
    const int entered = enter_entry(dict, &place, key, key_size, &view);

    if (entered < 0)
        return entered;
    return (int)leave(dict, &place, touch(dict, &view, sxe__dict_state(dict, view.id)));
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
    sxe__dict_note_expiry(dict, place.shard, expires_ns);
    SXE__POOL_PUT_LAST(sxe__dict_cell(dict, view.id)->expires_ns, expires_ns);
    return (int)leave(dict, &place, 0);
}

int
sxe_dict_set_state(SXE_DICT *dict, const void *key, size_t key_size, SXE_DICT_STATE state)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;

    if (!sxe__dict_is_entry(state))
        return -EINVAL;
    const int entered = enter_entry(dict, &place, key, key_size, &view);
    return entered < 0 ? entered : (int)leave(dict, &place, touch(dict, &view, state));
}
