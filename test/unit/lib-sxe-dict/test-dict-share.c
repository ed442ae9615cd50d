/* SPDX-License-Identifier: MIT
 *
 * Threads and processes that use one dict at the same time, are killed at random, or overwrite it
 * with random words.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-dict-private.h"
#include "sxe-log.h"
#include "sxe-time.h"
#include "test-main.h"

#define KEYS      64u
#define PROCESSES 4u
#ifdef __OPTIMIZE__
#    define ROUNDS (SXE_HAVE_ASAN ? 20000u : 100000u)
#    define KILLS  300u
#else
#    define ROUNDS 10000u
#    define KILLS  100u
#endif

/* The generator xorshift64*. */
static uint32_t
random_bits(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return (uint32_t)(*seed * UINT64_C(2685821657736338717) >> 32);
}

static SXE_DICT *
open_of(unsigned options, unsigned shards)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    const SXE_DICT_SPEC spec = {
        .name = "share", .cells = 6000, .cell_size = 128, .shards = shards, .options = options};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    return dict;
}

static void
check(SXE_DICT *dict)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    ck_assert_msg(sxe_pool_check(sxe_dict_get_pool(dict), why) == 0, "%s", why);
}

/* ---- Values that show whether they are intact: all bytes equal, and their number stored ---- */

struct value {
    uint8_t size;
    uint8_t byte[200];
};

static int
put_whole(SXE_DICT *dict, unsigned key, uint32_t bits)
{
    struct value value = {.size = (uint8_t)(bits % 200)};

    memset(value.byte, (int)(bits >> 8 & 255), sizeof(value.byte));
    return sxe_dict_put(dict, &key, sizeof(key), &value, value.size + 1u, 0);
}

static bool
is_whole(const struct value *value, ssize_t size)
{
    if (size != value->size + 1)
        return false;
    for (unsigned i = 1; i < value->size; i++) {
        if (value->byte[i] != value->byte[0])
            return false;
    }
    return true;
}

/* Two keys of different shards always have the same value, because one batch writes both. */
static int
put_pair(SXE_DICT *dict, uint32_t bits)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    int result;

    sxe_dict_batch_put(batch, "left", 4, &bits, sizeof(bits), 0);
    sxe_dict_batch_put(batch, "right", 5, &bits, sizeof(bits), 0);
    sxe_dict_batch_put(batch, "middle", 6, &bits, sizeof(bits), 0);
    result = sxe_dict_batch_commit(batch);
    sxe_dict_batch_delete(batch);
    return result;
}

/* Whether the pair has one value in a snapshot. */
static bool
pair_agrees(SXE_DICT *dict)
{
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
    uint32_t value[3] = {0, 0, 0};
    static const char *names[] = {"left", "right", "middle"};
    bool agrees = true;

    if (snapshot == NULL)
        return errno == EAGAIN || errno == EUSERS;
    for (unsigned i = 0; i < 3; i++) {
        ssize_t size;

        do
            size = sxe_dict_snapshot_get(snapshot, names[i], strlen(names[i]), &value[i],
                                         sizeof(value[i]));
        while (size == -EAGAIN);
        if (size == -ESTALE)
            value[i] = value[0];
        else
            agrees = agrees && (size == sizeof(value[i]) || size == -ENOENT);
    }
    sxe_dict_snapshot_release(snapshot);
    return agrees && value[0] == value[1] && value[1] == value[2];
}

/* Make random calls of all kinds; false: a result was wrong. */
static bool
work(SXE_DICT *dict, uint64_t *seed, int64_t *added)
{
    const uint32_t bits = random_bits(seed);
    const unsigned key = bits >> 8 & (KEYS - 1);
    struct value value;
    ssize_t size;
    int result;

    switch (bits % 16) {
    case 0:
        result = sxe_dict_add(dict, "count", 5, 1, 0, NULL);
        *added += result == 0;
        return result == 0 || result == -EAGAIN;
    case 1:
        result = sxe_dict_remove(dict, &key, sizeof(key));
        return result == 0 || result == -ENOENT || result == -EAGAIN;
    case 2:
        result = put_pair(dict, bits);
        return result == 0 || result == -EAGAIN;
    case 3:
        return pair_agrees(dict);
    case 4:
    case 5:
    case 6:
    case 7:
        result = put_whole(dict, key, random_bits(seed));
        return result == 0 || result == -EAGAIN;
    default:
        size = (bits & 16 ? sxe_dict_get : sxe_dict_peek)(dict, &key, sizeof(key), &value,
                                                          sizeof(value));
        return size == -ENOENT || size == -EAGAIN || is_whole(&value, size);
    }
}

/* ---- Threads ---- */

struct worker {
    SXE_DICT *dict;
    uint64_t seed;
    int64_t added;
    bool good;
};

static void *
run_worker(void *data)
{
    struct worker *worker = data;

    for (unsigned i = 0; i < ROUNDS && worker->good; i++)
        worker->good = work(worker->dict, &worker->seed, &worker->added);
    return NULL;
}

START_TEST(threads_share_a_dict)
{
    SXE_DICT *dict = open_of(_i == 0 ? SXE_POOL_OPTION_LOCKED : 0, _i == 1 ? 1 : 8);
    struct worker worker[3];
    pthread_t thread[3];
    int64_t count = 0;
    int64_t added = 0;

    for (unsigned i = 0; i < 3; i++) {
        worker[i] = (struct worker){.dict = dict, .seed = i + 1, .good = true};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_worker, &worker[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_msg(worker[i].good, "worker %u", i);
        added += worker[i].added;
    }
    check(dict);
    ck_assert_int_eq(sxe_dict_get(dict, "count", 5, &count, sizeof(count)), sizeof(count));
    ck_assert_int_eq(count, added);
    sxe_dict_close(dict);
}
END_TEST

/* ---- Processes that are killed ---- */

static pid_t
start_worker(SXE_DICT *dict, uint64_t seed)
{
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int64_t added = 0;

        for (;;) {
            if (!work(dict, &seed, &added))
                _exit(1);
        }
    }
    return child;
}

START_TEST(killed_processes_leave_a_dict_that_is_whole)
{
    SXE_DICT *dict = open_of(0, 4);
    uint64_t seed = 99;
    uint64_t mine = 7;
    int64_t added = 0;
    pid_t child[PROCESSES];

    for (unsigned i = 0; i < PROCESSES; i++)
        child[i] = start_worker(dict, i + 1);
    for (unsigned kills = 0; kills < KILLS; kills++) {
        const unsigned which = random_bits(&seed) % PROCESSES;
        int status;

        usleep(random_bits(&seed) % 2000);
        kill(child[which], SIGKILL);
        ck_assert_int_eq(waitpid(child[which], &status, 0), child[which]);
        ck_assert_msg(WIFSIGNALED(status), "a worker found something wrong after %u kills", kills);
        for (unsigned i = 0; i < 10; i++)
            ck_assert(work(dict, &mine, &added));
        child[which] = start_worker(dict, random_bits(&seed) + 1);
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        kill(child[i], SIGKILL);
        waitpid(child[i], NULL, 0);
    }
    check(dict);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert(work(dict, &mine, &added));
    check(dict);
    sxe_dict_close(dict);
}
END_TEST

/* ---- A process that writes random words anywhere ---- */

static void
scribble(SXE_DICT *dict, uint64_t *seed, unsigned words)
{
    char *array = dict->array;
    const size_t size =
        (size_t)((char *)(dict->buckets + dict->shards * (dict->bucket_mask + 1)) - array);

    for (unsigned i = 0; i < words; i++) {
        const uint32_t bits = random_bits(seed);
        uint32_t *word = (uint32_t *)(void *)(array + random_bits(seed) % (size / 4) * 4);

        /* Small numbers are often valid indexes of cells; large ones are not. */
        *word = bits % 3 == 0 ? bits >> 8 : bits % 3 == 1 ? bits >> 26 : 0;
    }
}

/* No call crashes or loops for ever; its result does not matter. */
START_TEST(scribbled_memory_is_an_error_and_no_crash)
{
    const SXE_DICT_SPEC spec = {.name = "share",
                                .cells = 60,
                                .cell_size = 128,
                                .shards = 2,
                                .evicts = _i % 2 == 1,
                                .options = SXE_POOL_OPTION_LOCKED};
    uint64_t seed = 4711 + (uint64_t)_i;

    sxe_log_set_level(SXE_LOG_FATAL);
    for (unsigned round = 0; round < ROUNDS / 50; round++) {
        SXE_DICT *dict = sxe_dict_open(&spec, NULL);
        int64_t added;

        ck_assert_ptr_nonnull(dict);
        for (unsigned i = 0; i < 40; i++)
            work(dict, &seed, &added);
        scribble(dict, &seed, 1 + round % 40);
        for (unsigned i = 0; i < 60; i++)
            work(dict, &seed, &added);
        dict->control->batch = 0;
        (void)!sxe_dict_check(dict, NULL);
        SXE_DICT_WALKER walker;
        SXE_DICT_ENTRY entry = {0};

        sxe_dict_walker_construct(&walker, dict);
        while (sxe_dict_walker_step(&walker, &entry) == 1)
            continue;
        sxe__dict_rebuild(dict);
        sxe_dict_close(dict);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-share");
    TCase *tcase = tcase_create("share");

    tcase_add_loop_test(tcase, threads_share_a_dict, 0, 3);
    tcase_add_test(tcase, killed_processes_leave_a_dict_that_is_whole);
    tcase_add_loop_test(tcase, scribbled_memory_is_an_error_and_no_crash, 0, 4);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
