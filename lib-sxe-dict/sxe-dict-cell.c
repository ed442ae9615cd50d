/* SPDX-License-Identifier: MIT
 *
 * Cells and chains. Another process may have written anything into the memory that is read here. So
 * links are checked against the pool's size and the shard, sizes against the cells that they need,
 * and no chain is followed for more steps than there are cells.
 */
#include "sxe-dict-private.h"

#include <math.h>

#define NS_PER_S 1e9

/* ---- The cells of a shard: blocks of 2^shift ids are dealt to the shards in turn ---- */

uint32_t
sxe__dict_capacity(const SXE_DICT *dict, uint32_t shard)
{
    const uint32_t shift = dict->sharing->shard_shift;
    const uint32_t round_bits = shift + dict->shard_bits;
    const uint32_t rest = (uint32_t)(dict->number & ((UINT64_C(1) << round_bits) - 1));
    const uint32_t before = shard << shift;
    const uint32_t block = UINT32_C(1) << shift;
    const uint32_t last = rest <= before ? 0 : rest - before;

    return (uint32_t)((uint64_t)dict->number >> round_bits << shift) +
           (last < block ? last : block);
}

uint32_t
sxe__dict_nth(const SXE_DICT *dict, uint32_t shard, uint32_t nth)
{
    const uint32_t shift = dict->sharing->shard_shift;

    return ((nth >> shift << dict->shard_bits | shard) << shift) |
           (nth & ((UINT32_C(1) << shift) - 1));
}

/* ---- Keys and times ---- */

int
sxe__dict_set_key(const SXE_DICT *dict, struct sxe__dict_key *key, const void *bytes, size_t size)
{
    if (size > dict->room || size > SXE__DICT_KEY_MAX)
        return -EINVAL;
    key->bytes = size == 0 ? "" : bytes;
    key->size = size;
    key->hash = sxe__dict_hash(dict->hash_key, key->bytes, size);
    key->shard = sxe__dict_shard(dict, key->hash);
    return 0;
}

bool
sxe__dict_expiry(const SXE_DICT *dict, double ttl_s, uint64_t *expires_ns)
{
    *expires_ns = 0;
    if (!(ttl_s >= 0))
        return false;
    /* A time to live beyond 2^62 ns, 146 years, means for ever. */
    if (ttl_s > 0 && ttl_s * NS_PER_S < 0x1p62)
        *expires_ns = sxe_pool_get_now(dict->array) + (uint64_t)(ttl_s * NS_PER_S) + 1;
    return true;
}

double
sxe__dict_ttl(const SXE_DICT *dict, uint64_t expires_ns)
{
    const uint64_t now = sxe_pool_get_now(dict->array);

    if (expires_ns == 0)
        return HUGE_VAL;
    return expires_ns > now ? (double)(expires_ns - now) / NS_PER_S : 0;
}

/* ---- Reading ---- */

uint32_t
sxe__dict_cells_for(const SXE_DICT *dict, size_t key_size, size_t value_size)
{
    const size_t first = dict->room - sxe__dict_value_at(key_size);

    return value_size <= first ? 1
                               : 1 + (uint32_t)((value_size - first + dict->room - 1) / dict->room);
}

int
sxe__dict_read(const SXE_DICT *dict, uint32_t shard, uint32_t id, struct sxe__dict_view *view)
{
    const struct sxe__dict_cell *cell;

    if (!sxe__dict_has(dict, shard, id))
        return sxe__dict_damaged(dict);
    cell = sxe__dict_cell(dict, id);
    *view = (struct sxe__dict_view){
        .id = id,
        .key_size = SXE__POOL_GET(cell->key_size),
        .value_size = SXE__POOL_GET(cell->value_size),
        .hash = SXE__POOL_GET(cell->hash),
        .expires_ns = SXE__POOL_GET(cell->expires_ns),
        .born = SXE__POOL_GET(cell->born),
        .died = SXE__POOL_GET(cell->died),
    };
    if (view->key_size > dict->room || view->value_size > SXE__DICT_VALUE_MAX)
        return sxe__dict_damaged(dict);
    view->cells = sxe__dict_cells_for(dict, view->key_size, view->value_size);
    return view->cells <= dict->number ? 0 : sxe__dict_damaged(dict);
}

int
sxe__dict_link_to(const SXE_DICT *dict, uint32_t shard, uint64_t hash, uint32_t id, uint32_t **link)
{
    uint32_t *at = sxe__dict_bucket(dict, shard, hash);

    for (uint32_t steps = 0; steps <= dict->number; steps++) {
        const uint32_t next = SXE__POOL_GET(*at);

        if (next == 0)
            return 0;
        if (next == id + 1) {
            *link = at;
            return 1;
        }
        if (!sxe__dict_has(dict, shard, next - 1))
            break;
        at = &sxe__dict_cell(dict, next - 1)->chain;
    }
    return sxe__dict_damaged(dict);
}

static bool
is_version_of(const SXE_DICT *dict, const struct sxe__dict_key *key, uint64_t epoch,
              const struct sxe__dict_cell *cell)
{
    const uint64_t died = SXE__POOL_GET(cell->died);

    if (epoch == 0 ? died != 0 : SXE__POOL_GET(cell->born) > epoch || (died != 0 && died <= epoch))
        return false;
    return SXE__POOL_GET(cell->key_size) == key->size && key->size <= dict->room &&
           memcmp(cell->data, key->bytes, key->size) == 0;
}

/* Whether a cell of the bucket that does not match may be the wanted one with flipped bits. A sound
 * cell belongs to the bucket, has the hash of its key, and has died exactly if it is OLD. */
static bool
is_doubtful(const SXE_DICT *dict, const struct sxe__dict_key *key, uint32_t id)
{
    const struct sxe__dict_cell *cell = sxe__dict_cell(dict, id);
    const uint64_t hash = SXE__POOL_GET(cell->hash);
    const uint16_t size = SXE__POOL_GET(cell->key_size);
    const bool is_old = sxe__dict_state(dict, id) == SXE__DICT_OLD;

    return ((hash ^ key->hash) & dict->bucket_mask) != 0 || size > dict->room ||
           is_old != (SXE__POOL_GET(cell->died) != 0) ||
           sxe__dict_hash(dict->hash_key, cell->data, size) != hash;
}

int
sxe__dict_find(const SXE_DICT *dict, const struct sxe__dict_key *key, uint64_t epoch,
               struct sxe__dict_view *view)
{
    uint32_t link = SXE__POOL_GET(*sxe__dict_bucket(dict, key->shard, key->hash));

    for (uint32_t steps = 0; steps <= dict->number; steps++) {
        if (link == 0)
            return 0;
        if (!sxe__dict_has(dict, key->shard, link - 1))
            break;
        const struct sxe__dict_cell *cell = sxe__dict_cell(dict, link - 1);

        if (SXE__POOL_GET(cell->hash) == key->hash && is_version_of(dict, key, epoch, cell)) {
            if (epoch == 0 && !sxe__dict_is_entry(sxe__dict_state(dict, link - 1)))
                break;
            return sxe__dict_read(dict, key->shard, link - 1, view) < 0 ? -EUCLEAN : 1;
        }
        if (SXE_UNLIKELY(dict->verifies) && is_doubtful(dict, key, link - 1))
            break;
        link = SXE__POOL_GET(cell->chain);
    }
    return sxe__dict_damaged(dict);
}

/* ---- Values: in parts, one per cell ---- */

struct part {
    struct sxe__dict_cell *cell;
    char *at;
    uint32_t size; /* bytes of the value in this part */
};

/* The first part of a value. */
static struct part
first_part(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    const uint32_t offset = sxe__dict_value_at(view->key_size);
    struct sxe__dict_cell *cell = sxe__dict_cell(dict, view->id);
    const uint32_t room = dict->room - offset;

    return (struct part){cell, cell->data + offset,
                         view->value_size < room ? view->value_size : room};
}

/* Go to the next part of a value, of which `left` bytes are left. 0 or -EUCLEAN. */
static int
next_value_part(const SXE_DICT *dict, const struct sxe__dict_view *view, size_t left,
                struct part *part)
{
    const uint32_t link = SXE__POOL_GET(part->cell->more);

    if (!sxe__dict_has(dict, sxe__pool_shard_of(dict->sharing, view->id), link - 1))
        return sxe__dict_damaged(dict);
    part->cell = sxe__dict_cell(dict, link - 1);
    part->at = part->cell->data;
    part->size = left < dict->room ? (uint32_t)left : dict->room;
    return 0;
}

void
sxe__dict_copy_key(const SXE_DICT *dict, const struct sxe__dict_view *view, void *key, size_t size)
{
    if (view->key_size != 0 && size != 0)
        memcpy(key, sxe__dict_cell(dict, view->id)->data,
               size < view->key_size ? size : view->key_size);
}

int
sxe__dict_copy_value(const SXE_DICT *dict, const struct sxe__dict_view *view, void *value,
                     size_t size)
{
    const size_t wanted = size < view->value_size ? size : view->value_size;
    struct part part = first_part(dict, view);

    for (size_t copied = 0; copied < wanted;) {
        const size_t piece = part.size < wanted - copied ? part.size : wanted - copied;

        memcpy((char *)value + copied, part.at, piece);
        copied += piece;
        if (copied < wanted && next_value_part(dict, view, view->value_size - copied, &part) < 0)
            return -EUCLEAN;
    }
    return 0;
}

int
sxe__dict_compare(const SXE_DICT *dict, const struct sxe__dict_view *view, const void *expected,
                  size_t size)
{
    struct part part = first_part(dict, view);

    if (view->value_size != size)
        return 0;
    for (size_t compared = 0; compared < size;) {
        if (memcmp((const char *)expected + compared, part.at, part.size) != 0)
            return 0;
        compared += part.size;
        if (compared < size && next_value_part(dict, view, size - compared, &part) < 0)
            return -EUCLEAN;
    }
    return 1;
}

/* ---- Sums: they find damage, and stop no attacker ---- */

static inline uint64_t
mix_sum(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 32;
}

static inline uint64_t
cell_word_at(const char *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* Add four words at a time to four sums, so that no multiplication has to wait for the result of
 * another one. */
static uint64_t
add_blocks(uint64_t sum, const char *at, size_t blocks)
{
    uint64_t lanes[4] = {sum, ~sum, sum << 1, sum >> 1};

    for (; blocks > 0; blocks--, at += 32) {
        for (unsigned i = 0; i < 4; i++)
            lanes[i] = mix_sum(lanes[i], cell_word_at(at + 8 * i));
    }
    return mix_sum(mix_sum(mix_sum(lanes[0], lanes[1]), lanes[2]), lanes[3]);
}

/* Add the bytes to the sum, which depends on their order. */
static uint64_t
add_to_sum(uint64_t sum, const char *at, size_t size)
{
    const size_t blocks = size / 32;

    if (blocks > 1) {
        sum = add_blocks(sum, at, blocks);
        at += 32 * blocks;
        size -= 32 * blocks;
    }
    for (; size >= 8; at += 8, size -= 8)
        sum = mix_sum(sum, cell_word_at(at));
    if (size > 0) {
        uint64_t word = 0;

        memcpy(&word, at, size);
        sum = mix_sum(sum, word);
    }
    return sum;
}

uint32_t
sxe__dict_head_sum(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    const uint32_t generation = SXE__POOL_GET(dict->sharing->nodes[view->id].generation);
    uint64_t sum = mix_sum(view->hash, view->expires_ns);

    sum = mix_sum(sum, (uint64_t)generation << 32 | view->value_size);
    return (uint32_t)mix_sum(sum, view->key_size);
}

uint32_t
sxe__dict_value_sum(const char *value, size_t size)
{
    return (uint32_t)add_to_sum(0, value, size);
}

int
sxe__dict_is_sound(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    struct part part = first_part(dict, view);
    uint64_t sum = add_to_sum(0, part.at, part.size);

    for (size_t left = view->value_size - part.size; left > 0; left -= part.size) {
        if (next_value_part(dict, view, left, &part) < 0)
            return -EUCLEAN;
        sum = add_to_sum(sum, part.at, part.size);
    }
    return SXE__POOL_GET(sxe__dict_cell(dict, view->id)->sum) ==
           ((uint32_t)sum ^ sxe__dict_head_sum(dict, view));
}

uint64_t *
sxe__dict_counter(const SXE_DICT *dict, const struct sxe__dict_view *view)
{
    struct part part = first_part(dict, view);

    if (part.size == 0 && next_value_part(dict, view, view->value_size, &part) < 0)
        return NULL;
    return (uint64_t *)(void *)part.at;
}

/* ---- Writing: into cells that are FREE ---- */

static int64_t
next_free(const SXE_DICT *dict, uint32_t shard, uint32_t *cursor)
{
    const uint32_t id = *cursor;

    if (!sxe__dict_has(dict, shard, id) || sxe__dict_state(dict, id) != SXE__DICT_FREE)
        return sxe__dict_damaged(dict);
    *cursor = SXE__POOL_GET(dict->sharing->nodes[id].next);
    return id;
}

static void
write_cell_head(const SXE_DICT *dict, const struct sxe__dict_put *put, struct sxe__dict_cell *cell)
{
    SXE__POOL_PUT(cell->hash, put->key->hash);
    SXE__POOL_PUT(cell->expires_ns, put->expires_ns);
    SXE__POOL_PUT(cell->born, SXE__POOL_GET(dict->control->epoch));
    SXE__POOL_PUT(cell->died, 0);
    SXE__POOL_PUT(cell->chain, 0);
    SXE__POOL_PUT(cell->more, 0);
    SXE__POOL_PUT(cell->replaces, put->replaces);
    SXE__POOL_PUT(cell->next, put->next);
    SXE__POOL_PUT(cell->value_size, (uint32_t)put->size);
    SXE__POOL_PUT(cell->key_size, (uint16_t)put->key->size);
    SXE__POOL_PUT(cell->state, (uint8_t)put->state);
    memcpy(cell->data, put->key->bytes, put->key->size);
}

int64_t
sxe__dict_fill(const SXE_DICT *dict, const struct sxe__dict_put *put, uint32_t *cursor)
{
    const int64_t id = next_free(dict, put->key->shard, cursor);
    const uint32_t offset = sxe__dict_value_at(put->key->size);
    const char *value = put->value;
    size_t room = dict->room - offset;
    size_t left = put->size;

    if (id < 0)
        return id;
    struct sxe__dict_cell *cell = sxe__dict_cell(dict, (uint32_t)id);
    struct sxe__dict_cell *first = cell;
    char *at = cell->data + offset;
    uint64_t sum = 0;

    write_cell_head(dict, put, cell);
    for (;;) {
        const size_t piece = left < room ? left : room;

        if (piece != 0)
            memcpy(at, value, piece);
        sum = add_to_sum(sum, value, piece);
        left -= piece;
        if (left == 0)
            break;
        value += piece;
        const int64_t more = next_free(dict, put->key->shard, cursor);
        if (more < 0)
            return more;
        SXE__POOL_PUT(cell->more, (uint32_t)more + 1);
        cell = sxe__dict_cell(dict, (uint32_t)more);
        at = cell->data;
        room = dict->room;
    }
    const struct sxe__dict_view view = {.id = (uint32_t)id,
                                        .key_size = (uint32_t)put->key->size,
                                        .value_size = (uint32_t)put->size,
                                        .hash = put->key->hash,
                                        .expires_ns = put->expires_ns};
    SXE__POOL_PUT(first->sum, (uint32_t)sum ^ sxe__dict_head_sum(dict, &view));
    return id;
}
