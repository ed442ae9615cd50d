/* SPDX-License-Identifier: MIT
 *
 * Bloom filters and lists of the most frequent keys, by docs/sketch.md: errors, kills, damaged
 * files.
 */
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sxe-bloom.h>
#include <sxe-topk.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { WORKERS = 3, ROUNDS = 16, EACH = 300, FREQUENT = 8 };

static char why[SXE_POOL_WHY_SIZE];

static SXE_BLOOM *
open_bloom(uint64_t capacity, double error, const char *file)
{
    const SXE_BLOOM_SPEC spec = {
        .name = "outside", .capacity = capacity, .error = error, .file = file};
    SXE_BLOOM *bloom = sxe_bloom_open(&spec, why);

    ck_assert_msg(bloom != NULL, "%s", why);
    return bloom;
}

static SXE_TOPK *
open_topk(unsigned number, double error, const char *file)
{
    const SXE_TOPK_SPEC spec = {.name = "outside", .number = number, .error = error, .file = file};
    SXE_TOPK *topk = sxe_topk_open(&spec, why);

    ck_assert_msg(topk != NULL, "%s", why);
    return topk;
}

/* ---- Kills ---- */

struct progress { /* The work that one worker has done, in shared memory. */
    uint64_t begun;
    uint64_t done;
};

static struct progress *progress;
static SXE_BLOOM *bloom;
static SXE_TOPK *topk;

static uint64_t
thing_of(unsigned worker, uint64_t number)
{
    return (uint64_t)(worker + 1) << 40 | number;
}

/* Every third key is a frequent one. */
static uint64_t
key_of(unsigned worker, uint64_t number)
{
    return number % 3 == 0 ? number / 3 % FREQUENT : thing_of(worker, number);
}

static void
work(unsigned worker)
{
    const uint64_t end = progress[worker].done + EACH;

    for (uint64_t i = progress[worker].done; i < end; i++) {
        const uint64_t thing = thing_of(worker, i);
        const uint64_t key = key_of(worker, i);

        __atomic_store_n(&progress[worker].begun, i + 1, __ATOMIC_SEQ_CST);
        sxe_bloom_add(bloom, &thing, sizeof(thing));
        sxe_topk_add(topk, &key, sizeof(key), 1);
        __atomic_store_n(&progress[worker].done, i + 1, __ATOMIC_SEQ_CST);
    }
    for (;;)
        pause(); /* wait until the parent kills all workers */
}

static void
run_and_kill(unsigned round)
{
    pid_t children[WORKERS];
    uint64_t enough[WORKERS];

    for (unsigned i = 0; i < WORKERS; i++) {
        enough[i] = progress[i].done + round * 37 % (EACH - WORKERS) + i;
        children[i] = fork();
        if (children[i] == 0)
            work(i);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        while (__atomic_load_n(&progress[i].done, __ATOMIC_SEQ_CST) < enough[i])
            usleep(100);
        kill(children[i], SIGKILL);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        ck_assert_int_eq(waitpid(children[i], NULL, 0), children[i]);
}

static void
expect_all_things(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        for (uint64_t number = 0; number < progress[i].done; number++) {
            const uint64_t thing = thing_of(i, number);

            ck_assert(sxe_bloom_has(bloom, &thing, sizeof(thing)));
        }
    ck_assert_double_le(sxe_bloom_count(bloom), 1.1 * WORKERS * EACH * ROUNDS);
}

static void
expect_all_counts(void)
{
    SXE_TOPK_ENTRY entries[FREQUENT];
    uint64_t exact[FREQUENT] = {0}, done = 0, begun = 0;

    for (unsigned i = 0; i < WORKERS; i++) {
        done += progress[i].done;
        begun += progress[i].begun;
        for (uint64_t number = 0; number < progress[i].done; number += 3)
            exact[number / 3 % FREQUENT]++;
    }
    ck_assert_uint_ge(sxe_topk_get_total(topk), done);
    /* In each round, the kill may have interrupted one add of each worker. */
    ck_assert_uint_le(sxe_topk_get_total(topk), begun + WORKERS * ROUNDS);
    for (uint64_t key = 0; key < FREQUENT; key++)
        ck_assert_uint_ge(sxe_topk_count(topk, &key, sizeof(key)), exact[key]);
    const unsigned number = sxe_topk_list(topk, entries, FREQUENT);

    for (unsigned i = 0; i < number; i++)
        ck_assert_uint_eq(entries[i].size, sizeof(uint64_t));
}

/* Add each frequent key once more: then the list must have all of them. */
static void
expect_frequent(void)
{
    SXE_TOPK_ENTRY entries[FREQUENT];

    for (uint64_t key = 0; key < FREQUENT; key++)
        ck_assert_int_eq(sxe_topk_add(topk, &key, sizeof(key), 1), 0);
    ck_assert_uint_eq(sxe_topk_list(topk, entries, FREQUENT), FREQUENT);
    for (unsigned i = 0; i < FREQUENT; i++) {
        uint64_t key;

        memcpy(&key, entries[i].key, sizeof(key));
        ck_assert_uint_lt(key, FREQUENT);
    }
}

/* promise: docs/sketch.md: If a process is killed while it writes a key, the key is missing in the
 * list until it is added again; its count is not lost. */
START_TEST(kills_lose_nothing_that_was_added)
{
    progress = mmap(NULL, WORKERS * sizeof(*progress), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        bloom = open_bloom(WORKERS * EACH * ROUNDS, 0.001, outside_path("kills.bloom"));
        topk = open_topk(FREQUENT, 0.0001, outside_path("kills.topk"));
        run_and_kill(round);
        expect_all_things();
        expect_all_counts();
        sxe_bloom_close(bloom);
        sxe_topk_close(topk);
    }
    topk = open_topk(FREQUENT, 0.0001, outside_path("kills.topk"));
    expect_frequent();
    sxe_topk_close(topk);
    unlink(outside_path("kills.bloom"));
    unlink(outside_path("kills.topk"));
}
END_TEST

/* ---- Errors ---- */

/* promise: docs/sketch.md: The answer "no" is certain. The answer "yes" is wrong for at most the
 * chosen share of the things that were not added, while no more than `capacity` things were
 * added. */
START_TEST(a_filter_is_wrong_at_most_as_often_as_was_chosen)
{
    enum { SETS = 100, THINGS = 2000 };
    unsigned wrong = 0, missing = 0;

    bloom = open_bloom(THINGS, 0.01, NULL);
    for (uint64_t set = 0; set < SETS; set++) {
        sxe_bloom_clear(bloom);
        for (uint64_t i = 0; i < 2 * THINGS; i++) {
            const uint64_t thing = set << 32 | i;

            if (i < THINGS)
                sxe_bloom_add(bloom, &thing, sizeof(thing));
        }
        for (uint64_t i = 0; i < 2 * THINGS; i++) {
            const uint64_t thing = set << 32 | i;
            const bool has = sxe_bloom_has(bloom, &thing, sizeof(thing));

            missing += i < THINGS && !has;
            wrong += i >= THINGS && has;
        }
    }
    ck_assert_uint_eq(missing, 0);
    /* 2,000 of 200,000 are expected, with a standard deviation of 45. */
    ck_assert_uint_le(wrong, 2000 + 4 * 45);
    ck_assert_uint_ge(wrong, 1500);
    sxe_bloom_close(bloom);
}
END_TEST

/* promise: docs/sketch.md: No key that is missing in the list was added more often than the
 * smallest count in the list. */
START_TEST(no_frequent_key_is_missing)
{
    enum { SETS = 100, KEYS = 500, LISTED = 5, ADDS = 2000 };
    SXE_TOPK_ENTRY entries[LISTED];
    uint64_t random = 1;

    topk = open_topk(LISTED, 0.1, NULL); /* a large error, so that many counts are too high */
    for (unsigned set = 0; set < SETS; set++) {
        unsigned exact[KEYS] = {0};
        bool is_listed[KEYS] = {false};

        sxe_topk_clear(topk);
        for (unsigned i = 0; i < ADDS; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;

            const unsigned key = (unsigned)pow(KEYS, (double)(random >> 11) / 0x1p53) % KEYS;

            exact[key]++;
            sxe_topk_add(topk, &key, sizeof(key), 1);
        }
        ck_assert_uint_eq(sxe_topk_list(topk, entries, LISTED), LISTED);
        for (unsigned i = 0; i < LISTED; i++) {
            unsigned key;

            memcpy(&key, entries[i].key, sizeof(key));
            is_listed[key] = true;
            ck_assert_uint_ge(entries[i].count, exact[key]);
        }
        for (unsigned key = 0; key < KEYS; key++)
            if (!is_listed[key] && exact[key] > entries[LISTED - 1].count)
                ck_abort_msg("set %u: key %u is missing", set, key);
    }
    sxe_topk_close(topk);
}
END_TEST

/* ---- Files ---- */

/* promise: docs/sketch.md: A file of one kind is refused by the other kinds with `EMEDIUMTYPE`. */
START_TEST(a_file_of_another_kind_is_refused)
{
    const SXE_BLOOM_SPEC as_bloom = {.file = outside_path("kind")};
    const SXE_TOPK_SPEC as_topk = {.file = as_bloom.file};

    sxe_bloom_close(open_bloom(10, 0, as_bloom.file));
    ck_assert_ptr_null(sxe_topk_open(&as_topk, why));
    ck_assert_int_eq(errno, EMEDIUMTYPE);
    unlink(as_bloom.file);
    sxe_topk_close(open_topk(10, 0, as_bloom.file));
    ck_assert_ptr_null(sxe_bloom_open(&as_bloom, why));
    ck_assert_int_eq(errno, EMEDIUMTYPE);
    unlink(as_bloom.file);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {kills_lose_nothing_that_was_added,
                            a_filter_is_wrong_at_most_as_often_as_was_chosen,
                            no_frequent_key_is_missing, a_file_of_another_kind_is_refused, NULL};

    return outside_run("sketch-sets", cases);
}
