/* SPDX-License-Identifier: MIT
 *
 * A pool has 30 million records, 1 GB in all, and an index of links beside it. One thread looks
 * each record up once, in random order. The time is that of the memory: each look-up reads two
 * distant addresses.
 *
 *     gcc -O2 -Ilib-sxe-log -Ilib-sxe-pool bench/micro-records.c build/release/libsxe.a
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sxe-pool.h"
#include "sxe-time.h"

#define RECORDS     30000000u
#define RECORD_SIZE 34u
#define INDEX_BITS  26u

struct __attribute__((packed)) record {
    uint64_t key;
    char text[RECORD_SIZE - sizeof(uint64_t)];
};

static uint64_t
record_key(uint32_t number)
{
    return (number + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The place of a key in the index. The keys are odd multiples of a constant already, so another
 * Fibonacci hash would not spread them: mix their bits. */
static uint32_t
record_place(uint64_t key)
{
    key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(key >> (64 - INDEX_BITS));
}

static const struct record *
find_record(const struct record *records, const uint32_t *index, uint64_t key)
{
    for (uint32_t at = record_place(key);; at++) {
        const uint32_t link = index[at & ((1u << INDEX_BITS) - 1)];

        if (link == 0)
            return NULL;
        if (records[link - 1].key == key)
            return &records[link - 1];
    }
}

/* The next number in a sequence that has each number once. The generator has a full period modulo
 * 2^25, because its multiplier and its addend are odd; numbers that are too large are skipped. */
static uint32_t
next_number(uint32_t number)
{
    do
        number = (number * 1664525u + 1013904223u) & 0x1ffffff;
    while (number >= RECORDS);
    return number;
}

static void
stop(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static double
look_all_up(const struct record *records, const uint32_t *index)
{
    const uint64_t start = sxe_time_ns();
    uint32_t number = 0;

    for (uint32_t i = 0; i < RECORDS; i++) {
        number = next_number(number);
        if (find_record(records, index, record_key(number)) == NULL)
            stop("record not found");
    }
    return (double)(sxe_time_ns() - start) / 1e9;
}

int
main(void)
{
    struct record *records =
        sxe_pool_new("records", RECORDS, sizeof(*records), 2, SXE_POOL_OPTION_UNLOCKED);
    uint32_t *index = calloc((size_t)1 << INDEX_BITS, sizeof(*index));

    if (records == NULL || index == NULL)
        stop("memory");
    sxe_time_set_turn_ns(sxe_time_ns());
    const uint64_t start = sxe_time_ns();
    for (uint32_t i = 0; i < RECORDS; i++) {
        const unsigned id = sxe_pool_take(records, 0, 1);
        uint32_t at = record_place(record_key(i));

        while (index[at & ((1u << INDEX_BITS) - 1)] != 0)
            at++;
        records[id].key = record_key(i);
        index[at & ((1u << INDEX_BITS) - 1)] = id + 1;
    }
    const double made = (double)(sxe_time_ns() - start) / 1e9;
    sxe_time_set_turn_ns(0);
    printf("%u records of %zu bytes in a pool, an index of %u MB beside it: made in %.1f s\n",
           RECORDS, sizeof(*records), 4u << (INDEX_BITS - 20), made);
    const clock_t used = clock();
    const double taken = look_all_up(records, index);
    printf("each looked up once in random order: %.2f s, %.2f s of them on the processor\n", taken,
           (double)(clock() - used) / CLOCKS_PER_SEC);
    free(index);
    sxe_pool_delete(records);
    return EXIT_SUCCESS;
}
