/* SPDX-License-Identifier: MIT
 *
 * Counting keys, and keeping those with the highest counts.
 */
#include <errno.h>
#include <string.h>

#include "sxe-topk-private.h"

#define TRIES 8u /* how often to try to take a slot that other processes try to take, too */

/* ---- Counters ---- */

static uint64_t
hash_key(const void *key, size_t size)
{
    const uint64_t hash = sxe__sketch_hash(key, size);

    return hash == 0 ? 1 : hash; /* hash 0 marks an empty slot, so a key with that hash gets 1 */
}

static uint64_t *
counter_of(const SXE_TOPK *topk, uint64_t hash, unsigned row)
{
    const uint64_t place = sxe__sketch_scatter(hash + row * UINT64_C(0x9e3779b97f4a7c15));

    return &topk->counters[(size_t)row * topk->width + (place & (topk->width - 1))];
}

static uint64_t
count_hash(const SXE_TOPK *topk, uint64_t hash)
{
    uint64_t least = UINT64_MAX;

    for (unsigned row = 0; row < SXE__TOPK_ROWS; row++) {
        const uint64_t count = __atomic_load_n(counter_of(topk, hash, row), __ATOMIC_RELAXED);

        least = count < least ? count : least;
    }
    return least;
}

/* Add to the counters of a hash. Returns its count afterwards. */
static uint64_t
add_hash(const SXE_TOPK *topk, uint64_t hash, uint64_t times)
{
    uint64_t least = UINT64_MAX;

    for (unsigned row = 0; row < SXE__TOPK_ROWS; row++) {
        const uint64_t count =
            __atomic_add_fetch(counter_of(topk, hash, row), times, __ATOMIC_RELAXED);

        least = count < least ? count : least;
    }
    return least;
}

/* ---- Slots ---- */

static struct sxe__topk_slot *
topk_slot_at(const SXE_TOPK *topk, unsigned index)
{
    return (struct sxe__topk_slot *)(void *)(topk->slots +
                                             index * sxe__topk_slot_size(topk->key_size));
}

/* Copy the key of a slot. False: the slot has no key, or a process is writing it, or was killed
 * while it wrote. */
static bool
read_slot_key(const SXE_TOPK *topk, const struct sxe__topk_slot *slot, uint64_t *hash,
              SXE_TOPK_ENTRY *entry)
{
    *hash = __atomic_load_n(&slot->hash, __ATOMIC_ACQUIRE);
    entry->size = __atomic_load_n(&slot->size, __ATOMIC_RELAXED);
    if (*hash == 0 || entry->size > topk->key_size)
        return false;
    for (unsigned i = 0; i < (entry->size + 7) / 8; i++) {
        const uint64_t word = __atomic_load_n(&slot->key[i], __ATOMIC_RELAXED);

        memcpy(entry->key + (size_t)i * 8, &word, sizeof(word));
    }
    return hash_key(entry->key, entry->size) == *hash;
}

static void
write_slot_key(struct sxe__topk_slot *slot, const void *key, size_t size)
{
    const char *at = key;

    __atomic_store_n(&slot->size, size, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < (size + 7) / 8; i++) {
        const size_t left = size - (size_t)i * 8;
        uint64_t word = 0;

        memcpy(&word, at + (size_t)i * 8, left < 8 ? left : 8);
        __atomic_store_n(&slot->key[i], word, __ATOMIC_RELAXED);
    }
}

/* A slot is found by its hash alone. If a process was killed while it wrote the key, or two wrote
 * at the same time, the key is damaged: then write it again. */
static void
mend_key(const SXE_TOPK *topk, struct sxe__topk_slot *slot, const void *key, size_t size)
{
    SXE_TOPK_ENTRY entry;
    uint64_t hash;

    if (!read_slot_key(topk, slot, &hash, &entry))
        write_slot_key(slot, key, size);
}

static struct sxe__topk_slot *
find_slot(const SXE_TOPK *topk, uint64_t hash)
{
    const unsigned slots = sxe__topk_slots(topk->number);

    for (unsigned i = 0; i < slots; i++)
        if (__atomic_load_n(&topk_slot_at(topk, i)->hash, __ATOMIC_RELAXED) == hash)
            return topk_slot_at(topk, i);
    return NULL;
}

/* The slot with the smallest count, whose key may be replaced. */
struct victim {
    struct sxe__topk_slot *slot;
    uint64_t hash; /* 0: the slot is empty, and the count is 0 */
    uint64_t count;
};

static struct victim
look_at_slot(const SXE_TOPK *topk, unsigned index)
{
    struct victim found = {.slot = topk_slot_at(topk, index)};

    found.hash = __atomic_load_n(&found.slot->hash, __ATOMIC_RELAXED);
    found.count = found.hash == 0 ? 0 : count_hash(topk, found.hash);
    return found;
}

static struct victim
find_victim(const SXE_TOPK *topk)
{
    struct victim least = look_at_slot(topk, 0);

    for (unsigned i = 1; i < sxe__topk_slots(topk->number) && least.count > 0; i++) {
        const struct victim other = look_at_slot(topk, i);

        least = other.count < least.count ? other : least;
    }
    return least;
}

static uint64_t
floor_of(uint64_t word)
{
    return word & ((UINT64_C(1) << SXE__TOPK_FLOOR_BITS) - 1);
}

/* Remember that no slot has a smaller count than this one, unless all was cleared since `word` was
 * read, or is being cleared now. A count that does not fit into its bits is not remembered: then
 * each addition looks at all slots, which takes longer. */
static void
raise_floor(const SXE_TOPK *topk, uint64_t word, uint64_t least)
{
    if (least > floor_of(word) && least == floor_of(least) && (word & SXE__TOPK_CLEARING) == 0)
        __atomic_compare_exchange_n(&topk->head->floor, &word, word - floor_of(word) + least, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void
sxe__topk_drop_doubles(const SXE_TOPK *topk, uint64_t hash)
{
    unsigned found = 0;

    for (unsigned i = 0; i < sxe__topk_slots(topk->number); i++) {
        struct sxe__topk_slot *slot = topk_slot_at(topk, i);
        uint64_t double_hash = hash;

        if (__atomic_load_n(&slot->hash, __ATOMIC_SEQ_CST) == hash && found++ > 0)
            __atomic_compare_exchange_n(&slot->hash, &double_hash, 0, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
    }
}

/* Make sure that a key with this count has a slot, if the count is above the smallest one in the
 * slots. */
static void
keep_key(const SXE_TOPK *topk, uint64_t hash, const void *key, size_t size, uint64_t count)
{
    const uint64_t floor = __atomic_load_n(&topk->head->floor, __ATOMIC_ACQUIRE);
    bool is_done = count <= floor_of(floor);

    for (unsigned tries = 0; tries < TRIES && !is_done; tries++) {
        struct sxe__topk_slot *slot = find_slot(topk, hash);

        if (slot != NULL) {
            mend_key(topk, slot, key, size);
            return;
        }
        struct victim victim = find_victim(topk);

        raise_floor(topk, floor, victim.count);
        if (count <= victim.count)
            return;
        is_done = __atomic_compare_exchange_n(&victim.slot->hash, &victim.hash, hash, false,
                                              __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        if (is_done) {
            write_slot_key(victim.slot, key, size);
            sxe__topk_drop_doubles(topk, hash);
        }
    }
}

/* ---- Calls ---- */

int
sxe_topk_add(SXE_TOPK *topk, const void *key, size_t size, uint64_t times)
{
    if (size > topk->key_size)
        return -EINVAL;
    const uint64_t hash = hash_key(key, size);

    __atomic_fetch_add(&topk->head->total, times, __ATOMIC_RELAXED);
    keep_key(topk, hash, key, size, add_hash(topk, hash, times));
    return 0;
}

uint64_t
sxe_topk_count(const SXE_TOPK *topk, const void *key, size_t size)
{
    return count_hash(topk, hash_key(key, size));
}

uint64_t
sxe_topk_get_total(const SXE_TOPK *topk)
{
    return __atomic_load_n(&topk->head->total, __ATOMIC_RELAXED);
}

/* Insert an entry among `number` sorted ones; at most max are kept. Returns their new number. If
 * two processes that added one key at the same time gave it two slots, the second is left out. */
static unsigned
insert_entry(SXE_TOPK_ENTRY *entries, unsigned number, unsigned max, const SXE_TOPK_ENTRY *entry)
{
    unsigned at = number;

    for (unsigned i = 0; i < number; i++)
        if (entries[i].size == entry->size && memcmp(entries[i].key, entry->key, entry->size) == 0)
            return number;
    while (at > 0 && entries[at - 1].count < entry->count)
        at--;
    if (at == max)
        return number;
    number += number < max;
    memmove(&entries[at + 1], &entries[at], (number - at - 1) * sizeof(*entries));
    entries[at] = *entry;
    return number;
}

unsigned
sxe_topk_list(const SXE_TOPK *topk, SXE_TOPK_ENTRY *entries, unsigned max)
{
    unsigned number = 0;

    max = max < topk->number ? max : topk->number;
    for (unsigned i = 0; i < sxe__topk_slots(topk->number); i++) {
        SXE_TOPK_ENTRY entry = {.size = 0};
        uint64_t hash;

        if (!read_slot_key(topk, topk_slot_at(topk, i), &hash, &entry))
            continue;
        entry.count = count_hash(topk, hash);
        number = insert_entry(entries, number, max, &entry);
    }
    return number;
}

int
sxe_topk_merge(SXE_TOPK *into, const SXE_TOPK *from)
{
    if (into->width != from->width || into->key_size != from->key_size)
        return -EDOM;
    __atomic_fetch_add(&into->head->total, sxe_topk_get_total(from), __ATOMIC_RELAXED);
    for (size_t i = 0; i < (size_t)from->width * SXE__TOPK_ROWS; i++)
        __atomic_fetch_add(&into->counters[i],
                           __atomic_load_n(&from->counters[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    for (unsigned i = 0; i < sxe__topk_slots(from->number); i++) {
        SXE_TOPK_ENTRY entry;
        uint64_t hash;

        if (read_slot_key(from, topk_slot_at(from, i), &hash, &entry))
            keep_key(into, hash, entry.key, entry.size, count_hash(into, hash));
    }
    return 0;
}

/* Count the clearing in the word of the floor, so that a process that has read the slots before
 * does not raise the floor. The number is odd while the slots are being cleared: then no process
 * raises it. */
static void
clear_floor(const SXE_TOPK *topk, bool is_clearing)
{
    const uint64_t word =
        __atomic_load_n(&topk->head->floor, __ATOMIC_RELAXED) | SXE__TOPK_CLEARING;

    __atomic_store_n(&topk->head->floor,
                     word - floor_of(word) + (is_clearing ? 0 : SXE__TOPK_CLEARING),
                     __ATOMIC_SEQ_CST);
}

void
sxe_topk_clear(SXE_TOPK *topk)
{
    clear_floor(topk, true);
    for (unsigned i = 0; i < sxe__topk_slots(topk->number); i++)
        __atomic_store_n(&topk_slot_at(topk, i)->hash, 0, __ATOMIC_RELAXED);
    for (size_t i = 0; i < (size_t)topk->width * SXE__TOPK_ROWS; i++)
        __atomic_store_n(&topk->counters[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&topk->head->total, 0, __ATOMIC_RELAXED);
    clear_floor(topk, false);
}
