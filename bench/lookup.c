/* SPDX-License-Identifier: MIT
 *
 * What: the benchmark S9. A pool has 30 million records of 32 bytes, which are 1 GB. They are
 * looked up by their keys, in random order: by binary search, by a hash table, and by the hash
 * table with 16 look-ups under way at a time.
 *
 *     lookup [-r records] [-n rounds] bsearch | hash | hash-16 | -
 *
 * With "-" the program prints a line when it has built everything. Then it reads lines from
 * standard input, each of which names the way of a round. So rounds of all ways can be measured in
 * turn.
 *
 * Keys have 64 bits. They are spread evenly, but not at equal distances, and the records are in the
 * order of their keys, as bsearch needs them. The hash table probes linearly, and at most half of
 * its slots are used. A slot has 32 bits: the index of a record, and above it as many bits of the
 * key's hash as there is room for, so that a wrong record is hardly ever read.
 *
 * Each round looks up another part of the records, in a random order that was made before, and
 * checks what it finds. A round of bsearch has at most half a million look-ups. The line of a round
 * has the nanoseconds that a look-up took. The last line has the bytes of the records, of the
 * pool's other memory, and of the table.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sxe-pool.h"
#include "sxe-time.h"

enum {
    RECORDS = 30000000,
    ROUNDS = 7,
    BATCH = 16,
    GAP = 600, /* the mean distance of two keys */
    SEARCHES_MAX = 500000,
    STATES = 1
};

#define NO_RECORD UINT32_MAX

struct record {
    uint64_t key;
    char value[24];
};

static struct record *records; /* the elements of a pool */
static uint32_t number;        /* the number of records */
static uint32_t *slots;
static unsigned slots_log2;
static uint32_t *order;  /* the ids of all records, in a random order */
static unsigned id_bits; /* how many bits of a slot are an id; the bits above are bits of a hash */

/* Mix all bits of the value, with the finalizer of MurmurHash3. */
static uint64_t
mix(uint64_t value)
{
    value = (value ^ value >> 33) * 0xff51afd7ed558ccd;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53;
    return value ^ value >> 33;
}

static uint64_t
key_of(uint32_t id)
{
    return (uint64_t)id * GAP + mix(id) % GAP;
}

/* The i-th record in a random order that has each record once. It is a Feistel network of four
 * rounds, on the smallest even number of bits that is enough, which is repeated until the result is
 * the number of a record. */
static uint32_t
shuffled(uint32_t i)
{
    const unsigned half = (33u - (unsigned)__builtin_clz(number)) / 2;
    const uint32_t mask = (1u << half) - 1;

    do {
        uint32_t left = i >> half;
        uint32_t right = i & mask;

        for (uint32_t round = 0; round < 4; round++) {
            const uint32_t next = left ^ ((uint32_t)mix((uint64_t)round << 32 | right) & mask);

            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= number);
    return i;
}

/* ---- Ways to find the record of a key ---- */

static int
compare(const void *key, const void *record)
{
    const uint64_t wanted = *(const uint64_t *)key;
    const uint64_t found = ((const struct record *)record)->key;

    return (wanted > found) - (wanted < found);
}

static const struct record *
find_sorted(uint64_t key)
{
    return bsearch(&key, records, number, sizeof(*records), compare);
}

/* The hash of a key. Its upper bits choose a slot, and some of its lower bits are stored in the
 * slot. */
static uint64_t
hash_of(uint64_t key)
{
    return key * 0x9e3779b97f4a7c15;
}

static uint32_t
first_slot(uint64_t hash)
{
    return (uint32_t)(hash >> (64 - slots_log2));
}

static uint32_t
mark_of(uint64_t hash)
{
    return (uint32_t)(hash >> 8) << id_bits;
}

static const struct record *
find_hashed_from(uint64_t key, uint64_t hash)
{
    const uint32_t id_mask = (1u << id_bits) - 1;
    const uint32_t mark = mark_of(hash);

    for (uint32_t slot = first_slot(hash);; slot = (slot + 1) & ((1u << slots_log2) - 1)) {
        const uint32_t found = slots[slot];

        if (found == NO_RECORD)
            return NULL;
        if ((found & ~id_mask) == mark && records[found & id_mask].key == key)
            return &records[found & id_mask];
    }
}

static const struct record *
find_hashed(uint64_t key)
{
    return find_hashed_from(key, hash_of(key));
}

/* ---- Building ---- */

/* Allocate memory in huge pages, if the system gives them on request. With small pages, the
 * translations of so many random addresses would not fit into the CPU's cache. */
static void *
reserve(size_t size)
{
    const size_t align = 2u << 20;
    void *memory = aligned_alloc(align, (size + align - 1) / align * align);

    if (memory == NULL) {
        perror("lookup: memory");
        exit(1);
    }
    madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}

static void
make_records(void)
{
    void *base = reserve(sxe_pool_size(number, sizeof(*records), STATES));

    records = sxe_pool_construct(base, "records", number, sizeof(*records), STATES,
                                 SXE_POOL_OPTION_UNLOCKED);
    if (records == NULL) {
        perror("lookup: sxe_pool_construct");
        exit(1);
    }
    for (uint32_t id = 0; id < number; id++) {
        records[id].key = key_of(id);
        snprintf(records[id].value, sizeof(records[id].value), "%u", id);
    }
}

static void
make_order(void)
{
    order = reserve(number * sizeof(*order));
    for (uint32_t i = 0; i < number; i++)
        order[i] = shuffled(i);
}

static void
make_table(void)
{
    size_t size;

    /* so that no id has all bits set, as NO_RECORD has */
    id_bits = 32u - (unsigned)__builtin_clz(number);
    slots_log2 = 32u - (unsigned)__builtin_clz(number * 2 - 1);
    size = sizeof(*slots) << slots_log2;
    slots = reserve(size);
    memset(slots, 0xff, size); /* all slots become NO_RECORD */
    for (uint32_t id = 0; id < number; id++) {
        const uint64_t hash = hash_of(records[id].key);
        uint32_t slot = first_slot(hash);

        while (slots[slot] != NO_RECORD)
            slot = (slot + 1) & ((1u << slots_log2) - 1);
        slots[slot] = mark_of(hash) | id;
    }
}

/* ---- Rounds ---- */

static _Noreturn void
wrong(uint64_t key)
{
    fprintf(stderr, "lookup: not found, or another record than that of %llu\n",
            (unsigned long long)key);
    exit(1);
}

static void
look_up(const struct record *(*find)(uint64_t), uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        const uint32_t id = order[i];
        const struct record *record = find(key_of(id));

        if (record != &records[id] || record->value[0] < '0')
            wrong(key_of(id));
    }
}

/* Look up a batch of keys: prefetch the slots of all, then the records of all, before the first is
 * used. */
static void
look_up_batches(uint32_t first, uint32_t count)
{
    const uint32_t id_mask = (1u << id_bits) - 1;
    uint32_t ids[BATCH];
    uint64_t hashes[BATCH];

    for (uint32_t i = first; i + BATCH <= first + count; i += BATCH) {
        for (uint32_t j = 0; j < BATCH; j++) {
            ids[j] = order[i + j];
            hashes[j] = hash_of(key_of(ids[j]));
            __builtin_prefetch(&slots[first_slot(hashes[j])]);
        }
        for (uint32_t j = 0; j < BATCH; j++)
            __builtin_prefetch(&records[slots[first_slot(hashes[j])] & id_mask]);
        for (uint32_t j = 0; j < BATCH; j++) {
            const struct record *record = find_hashed_from(key_of(ids[j]), hashes[j]);

            if (record != &records[ids[j]] || record->value[0] < '0')
                wrong(key_of(ids[j]));
        }
    }
}

static bool
is_way(const char *how)
{
    return strcmp(how, "bsearch") == 0 || strcmp(how, "hash") == 0 || strcmp(how, "hash-16") == 0;
}

/* Run a round. It looks up another part of the records than the round before. */
static void
run_round(const char *how, uint32_t round, uint32_t rounds)
{
    const uint32_t first = round % rounds * (number / rounds);
    const bool is_search = strcmp(how, "bsearch") == 0;
    const uint32_t count =
        is_search && number / rounds > SEARCHES_MAX ? SEARCHES_MAX : number / rounds;
    const uint64_t start_ns = sxe_time_ns();

    if (is_search)
        look_up(find_sorted, first, count);
    else if (strcmp(how, "hash") == 0)
        look_up(find_hashed, first, count);
    else
        look_up_batches(first, count);
    printf("round %.2f ns\n", (double)(sxe_time_ns() - start_ns) / count);
    fflush(stdout);
}

/* Run the rounds that lines of standard input name. Returns 1 if a line names no way. */
static int
run_asked(uint32_t rounds)
{
    char how[16];

    puts("ready");
    fflush(stdout);
    for (uint32_t round = 0; fgets(how, sizeof(how), stdin) != NULL; round++) {
        how[strcspn(how, "\n")] = '\0';
        if (!is_way(how)) {
            fprintf(stderr, "lookup: bsearch, hash or hash-16, not: %s\n", how);
            return 1;
        }
        run_round(how, round, rounds);
    }
    return 0;
}

static uint32_t
argument(const char *text, unsigned long max)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value < 1 || value > max) {
        fprintf(stderr, "lookup: not a number: %s\n", text);
        exit(2);
    }
    return (uint32_t)value;
}

int
main(int argc, char **argv)
{
    uint32_t rounds = ROUNDS;
    const char *how;
    int letter;

    number = RECORDS;
    while ((letter = getopt(argc, argv, "r:n:")) != -1) {
        if (letter == 'r')
            number = argument(optarg, 1u << 29);
        else if (letter == 'n')
            rounds = argument(optarg, 1000);
        else
            return 2;
    }
    how = optind == argc - 1 ? argv[optind] : "";
    if ((!is_way(how) && strcmp(how, "-") != 0) || number / rounds < BATCH) {
        fprintf(stderr, "usage: lookup [-r records] [-n rounds] bsearch | hash | hash-16 | -\n");
        return 2;
    }
    make_records();
    make_order();
    if (strcmp(how, "bsearch") != 0)
        make_table();
    if (strcmp(how, "-") == 0)
        return run_asked(rounds);
    for (uint32_t i = 0; i < rounds; i++)
        run_round(how, i, rounds);
    printf("records %zu, the pool's own %zu, table %zu bytes\n", number * sizeof(*records),
           sxe_pool_size(number, sizeof(*records), STATES) - number * sizeof(*records),
           slots == NULL ? 0 : sizeof(*slots) << slots_log2);
    return 0;
}
