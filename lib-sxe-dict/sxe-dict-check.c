/* SPDX-License-Identifier: MIT
 *
 * Checks that each cell has exactly one place in the table. Rebuilds the table from the undamaged
 * entries, after the pool's lists had to be rebuilt.
 */
#include "sxe-dict-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sxe-always-internal.h"

enum { ASKED_EACH = 65536 }; /* places that are checked between two calls of is_over */

/* The cells that the check has met, one bit for each. */
struct met {
    uint8_t *bits;
    uint32_t count[SXE__DICT_STATES];
};

/* Note that the check has met a cell. False: the cell was met before. */
static bool
meet_cell(struct met *met, uint32_t id, uint32_t state)
{
    const uint8_t bit = (uint8_t)(1u << (id & 7));

    if ((met->bits[id >> 3] & bit) != 0)
        return false;
    met->bits[id >> 3] |= bit;
    met->count[state]++;
    return true;
}

static uint8_t *
new_bits(const SXE_DICT *dict)
{
    return calloc((size_t)dict->number / 8 + 1, 1);
}

/* ---- Checking ---- */

/* Check the cells of a version after its first cell. Returns NULL, or what is wrong. */
static const char *
check_more_cells(const SXE_DICT *dict, uint32_t shard, const struct sxe__dict_view *view,
                 struct met *met)
{
    uint32_t id = view->id;

    for (uint32_t i = 1; i < view->cells; i++) {
        id = SXE__POOL_GET(sxe__dict_cell(dict, id)->more) - 1;
        if (!sxe__dict_has(dict, shard, id))
            return "its value goes on in no cell of the shard";
        if (sxe__dict_state(dict, id) != SXE__DICT_MORE)
            return "its value goes on in a cell that is not MORE";
        if (!meet_cell(met, id, SXE__DICT_MORE))
            return "its value goes on in a cell of another";
    }
    return NULL;
}

/* The index of a cell in its shard: the reverse of sxe__dict_nth. */
static uint32_t
place_in_shard(const SXE_DICT *dict, uint32_t id)
{
    const uint32_t shift = dict->sharing->shard_shift;

    return (id >> shift >> dict->shard_bits << shift) | (id & ((UINT32_C(1) << shift) - 1));
}

/* Whether the shard's record covers the entry's expiry. If not, the entry would keep its cells
 * after it has expired. */
static bool
is_noted(const SXE_DICT *dict, uint32_t shard, const struct sxe__dict_view *view)
{
    const struct sxe__dict_record *record = &dict->records[shard];
    const uint64_t next = SXE__POOL_GET(record->next_expiry);
    const uint64_t round = SXE__POOL_GET(record->round_expiry);

    if (next == 0 || next > view->expires_ns)
        return false;
    return place_in_shard(dict, view->id) >= SXE__POOL_GET(record->round_at) ||
           (round != 0 && round <= view->expires_ns);
}

static const char *
check_version(const SXE_DICT *dict, uint32_t shard, uint32_t bucket,
              const struct sxe__dict_view *view, struct met *met)
{
    const uint32_t state = sxe__dict_state(dict, view->id);

    if (sxe__dict_hash(dict->hash_key, sxe__dict_cell(dict, view->id)->data, view->key_size) !=
        view->hash)
        return "its hash is not its key's";
    if (sxe__dict_shard(dict, view->hash) != shard || (view->hash & dict->bucket_mask) != bucket)
        return "it is in the chain of another bucket";
    if (view->died == 0 ? !sxe__dict_is_entry(state) : state != SXE__DICT_OLD)
        return "it is in a state that it cannot be in";
    if (view->died == 0 && view->expires_ns != 0 && !is_noted(dict, shard, view))
        return "it expires, and its shard does not know when";
    if (!meet_cell(met, view->id, state))
        return "it is met twice";
    const char *wrong = check_more_cells(dict, shard, view, met);
    if (wrong == NULL && sxe__dict_is_sound(dict, view) != 1)
        return "its value, its size or its expiry is not what was written";
    return wrong;
}

static int
check_chain(const SXE_DICT *dict, uint32_t shard, uint32_t bucket, struct met *met, char *why)
{
    uint32_t link = SXE__POOL_GET(*sxe__dict_bucket(dict, shard, bucket));

    while (link != 0) {
        struct sxe__dict_view view;
        const char *wrong = sxe__dict_read(dict, shard, link - 1, &view) < 0
                                ? "it is not possible"
                                : check_version(dict, shard, bucket, &view, met);

        if (wrong != NULL) {
            snprintf(why, SXE_POOL_WHY_SIZE, "dict %s, shard %u, bucket %u, cell %u: %s",
                     dict->pool->name, shard, bucket, link - 1, wrong);
            return sxe__dict_damaged(dict);
        }
        link = SXE__POOL_GET(sxe__dict_cell(dict, view.id)->chain);
    }
    return 0;
}

static int SXE_PRINTF(4, 5)
    refuse_shard(const SXE_DICT *dict, uint32_t shard, char *why, const char *format, ...)
{
    va_list arguments;
    const int length =
        snprintf(why, SXE_POOL_WHY_SIZE, "dict %s, shard %u: ", dict->pool->name, shard);

    va_start(arguments, format);
    vsnprintf(why + length, SXE_POOL_WHY_SIZE - (size_t)length, format, arguments);
    va_end(arguments);
    return sxe__dict_damaged(dict);
}

/* Check that each OLD version is still needed: a snapshot sees it, or the next sweep looks at it.
 * The next sweep looks at the first sweep_left versions, or at all OLD versions if a snapshot has
 * ended since the last sweep began. Ask last whether a snapshot has ended, because one may end
 * meanwhile. */
static int
check_old(const SXE_DICT *dict, uint32_t shard, char *why, bool (*is_over)(void))
{
    const struct sxe__pool_node *list = sxe__dict_list(dict, shard, SXE__DICT_OLD);
    const uint32_t left = SXE__POOL_GET(dict->records[shard].sweep_left);
    const uint32_t count = SXE__POOL_GET(list->count);
    uint32_t id = SXE__POOL_GET(list->next);
    uint32_t lost = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct sxe__dict_view view;

        if (sxe__dict_read(dict, shard, id, &view) < 0)
            return refuse_shard(dict, shard, why, "the list of OLD leads to %u", id);
        lost += i >= left && !sxe__dict_is_seen(dict, &view);
        id = SXE__POOL_GET(dict->sharing->nodes[id].next);
        if ((i + 1) % ASKED_EACH == 0 && is_over != NULL && is_over())
            return -ECANCELED;
    }
    if (lost == 0 || SXE__POOL_GET(dict->records[shard].swept) != sxe__dict_ended(dict))
        return 0;
    return refuse_shard(dict, shard, why,
                        "%u OLD cells are seen by no snapshot, and no sweep will free them", lost);
}

/* Check that each cell of the shard is FREE or was met in a chain: compare the number of cells met
 * in each state with the state's count. */
static int
check_counts(const SXE_DICT *dict, uint32_t shard, const struct met *met, char *why)
{
    uint32_t cells = sxe__dict_free_cells(dict, shard);

    for (uint32_t state = SXE_DICT_LIVE; state < SXE__DICT_STATES; state++) {
        const uint32_t count = SXE__POOL_GET(sxe__dict_list(dict, shard, state)->count);

        if (count != met->count[state])
            return refuse_shard(dict, shard, why, "%u cells are %s, and %u of them in chains",
                                count, sxe_pool_state_to_string(dict->array, state),
                                met->count[state]);
        cells += count;
    }
    if (cells != sxe__dict_capacity(dict, shard))
        return refuse_shard(dict, shard, why, "%u of its %u cells are accounted for", cells,
                            sxe__dict_capacity(dict, shard));
    return 0;
}

static int
check_dict_shard(const SXE_DICT *dict, uint32_t shard, uint8_t *bits, char *why,
                 bool (*is_over)(void))
{
    struct met met = {.bits = bits};

    for (uint32_t bucket = 0; bucket <= dict->bucket_mask; bucket++) {
        if (check_chain(dict, shard, bucket, &met, why) < 0)
            return -EUCLEAN;
        if ((bucket + 1) % ASKED_EACH == 0 && is_over != NULL && is_over())
            return -ECANCELED;
    }
    const int counted = check_counts(dict, shard, &met, why);
    return counted < 0 ? counted : check_old(dict, shard, why, is_over);
}

static int
lock_and_check_dict(const SXE_DICT *dict, uint32_t shard, uint8_t *bits, char *why,
                    bool (*is_over)(void))
{
    struct sxe__pool_patience patience = {0};
    int result = sxe__dict_lock_patiently(dict, shard, &patience);

    if (result == 0) {
        result = check_dict_shard(dict, shard, bits, why, is_over);
        sxe__dict_unlock(dict, shard);
    } else if (result == -EUCLEAN)
        snprintf(why, SXE_POOL_WHY_SIZE,
                 "dict %s, shard %u: what a dead process has left cannot be completed",
                 dict->pool->name, shard);
    return result;
}

int
sxe_dict_check(SXE_DICT *dict, char *why)
{
    return sxe_dict_check_until(dict, why, NULL);
}

int
sxe_dict_check_until(SXE_DICT *dict, char *why, bool (*is_over)(void))
{
    char unwanted[SXE_POOL_WHY_SIZE];
    uint8_t *bits = new_bits(dict);
    int result = bits == NULL ? -ENOMEM : 0;

    for (uint32_t shard = 0; shard < dict->shards && result == 0; shard++)
        result =
            is_over != NULL && is_over()
                ? -ECANCELED
                : lock_and_check_dict(dict, shard, bits, why == NULL ? unwanted : why, is_over);
    free(bits);
    return result;
}

/* ---- Rebuilding ---- */

/* Whether a version is undamaged and shares no cell with another version. If so, note its cells as
 * met. */
static bool
note_if_whole(const SXE_DICT *dict, uint32_t shard, uint32_t id, struct met *met)
{
    const struct sxe__dict_cell *cell = sxe__dict_cell(dict, id);
    struct sxe__dict_view view;

    /* Check the sizes first: if they are wrong, sxe__dict_read would note damage that is known
     * already. */
    if (SXE__POOL_GET(cell->key_size) > dict->room ||
        SXE__POOL_GET(cell->value_size) > SXE__DICT_VALUE_MAX || SXE__POOL_GET(cell->died) != 0 ||
        sxe__dict_read(dict, shard, id, &view) < 0)
        return false;
    return sxe__dict_hash(dict->hash_key, cell->data, view.key_size) == view.hash &&
           sxe__dict_shard(dict, view.hash) == shard && sxe__dict_is_sound(dict, &view) == 1 &&
           check_more_cells(dict, shard, &view, met) == NULL;
}

/* Put a whole entry into its chain. Of two entries with the same key, the younger one stays. */
static void
link_cell_again(const SXE_DICT *dict, uint32_t shard, uint32_t id)
{
    const struct sxe__pool_node *nodes = dict->sharing->nodes;
    struct sxe__dict_cell *cell = sxe__dict_cell(dict, id);
    const struct sxe__dict_key key = {cell->data, cell->key_size, cell->hash, shard};
    uint32_t *bucket = sxe__dict_bucket(dict, shard, cell->hash);
    struct sxe__dict_view other;
    uint32_t *link;

    cell->born = 0;
    if (sxe__dict_find(dict, &key, 0, &other) == 1) {
        if (nodes[other.id].stamp > nodes[id].stamp)
            return;
        if (SXE_ALWAYS(sxe__dict_link_to(dict, shard, key.hash, other.id, &link) == 1))
            *link = sxe__dict_cell(dict, other.id)->chain;
    }
    cell->chain = *bucket;
    *bucket = id + 1;
}

/* Free the cells that no chain leads to. False: damaged. */
static bool
free_the_rest(const SXE_DICT *dict, uint32_t shard, struct met *met)
{
    const uint32_t capacity = sxe__dict_capacity(dict, shard);

    for (uint32_t bucket = 0; bucket <= dict->bucket_mask; bucket++) {
        uint32_t id = *sxe__dict_bucket(dict, shard, bucket) - 1;

        while (sxe__dict_has(dict, shard, id) && meet_cell(met, id, 0)) {
            struct sxe__dict_view view;

            if (sxe__dict_read(dict, shard, id, &view) == 0)
                check_more_cells(dict, shard, &view, met);
            id = SXE__POOL_GET(sxe__dict_cell(dict, id)->chain) - 1;
        }
    }
    for (uint32_t nth = 0; nth < capacity; nth++) {
        const uint32_t id = sxe__dict_nth(dict, shard, nth);

        if (meet_cell(met, id, 0) && sxe__dict_state(dict, id) != SXE__DICT_FREE &&
            !sxe__pool_move_locked(dict->pool, id, SXE__DICT_FREE))
            return false;
    }
    return true;
}

static bool
rebuild_dict_shard(const SXE_DICT *dict, uint32_t shard, uint8_t *bits)
{
    const size_t size = (size_t)dict->number / 8 + 1;
    struct met met = {.bits = bits};

    memset(bits, 0, size);
    memset(sxe__dict_bucket(dict, shard, 0), 0,
           ((size_t)dict->bucket_mask + 1) * sizeof(*dict->buckets));
    sxe__dict_settle_change(dict, shard);
    /* next_expiry 1: something may have expired, which is always safe to assume. */
    dict->records[shard] = (struct sxe__dict_record){.next_expiry = 1};
    for (uint32_t nth = 0; nth < sxe__dict_capacity(dict, shard); nth++) {
        const uint32_t id = sxe__dict_nth(dict, shard, nth);

        if (sxe__dict_is_entry(sxe__dict_state(dict, id)) && note_if_whole(dict, shard, id, &met))
            link_cell_again(dict, shard, id);
    }
    memset(bits, 0, size);
    return free_the_rest(dict, shard, &met);
}

int
sxe__dict_rebuild(SXE_DICT *dict)
{
    struct sxe__dict_control *control = dict->control;
    uint8_t *bits = new_bits(dict);
    bool good = bits != NULL;

    if (bits == NULL)
        return -ENOMEM;
    memset(control->slots, 0, sizeof(control->slots));
    control->epoch += control->epoch == 0;
    for (uint32_t shard = 0; shard < dict->shards && good; shard++)
        good = rebuild_dict_shard(dict, shard, bits);
    free(bits);
    return good ? 0 : sxe__dict_damaged(dict);
}
