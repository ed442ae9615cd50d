/* SPDX-License-Identifier: MIT
 *
 * Counters: which call counts what, over all shards and processes; and the lengths of chains.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-dict-private.h"
#include "sxe-log.h"
#include "sxe-time.h"
#include "test-main.h"

#define START_NS UINT64_C(5000000000)

static SXE_DICT *dict;

static void
open_of(unsigned cells, unsigned shards, unsigned options)
{
    const SXE_DICT_SPEC spec = {
        .name = "test", .cells = cells, .shards = shards, .evicts = true, .options = options};

    sxe_time_set_turn_ns(START_NS);
    dict = sxe_dict_open(&spec, NULL);
    ck_assert_ptr_nonnull(dict);
}

static void
teardown(void)
{
    sxe_dict_close(dict);
    sxe_time_set_turn_ns(0);
}

static int
put(unsigned key, double ttl_s)
{
    return sxe_dict_put(dict, &key, sizeof(key), "", 0, ttl_s);
}

static int
get(unsigned key)
{
    return (int)sxe_dict_get(dict, &key, sizeof(key), NULL, 0);
}

static void
check_counts(uint64_t hits, uint64_t misses, uint64_t evictions, uint64_t expirations)
{
    SXE_DICT_STATS stats;

    sxe_dict_get_stats(dict, &stats);
    ck_assert_uint_eq(stats.hits, hits);
    ck_assert_uint_eq(stats.misses, misses);
    ck_assert_uint_eq(stats.evictions, evictions);
    ck_assert_uint_eq(stats.expirations, expirations);
}

START_TEST(reads_are_hits_or_misses)
{
    const unsigned there = 1;
    const unsigned missing = 2;

    open_of(100, 4, 0);
    ck_assert_int_eq(put(there, 0), 0);
    ck_assert_int_eq(get(there), 0);
    ck_assert_int_eq((int)sxe_dict_peek(dict, &there, sizeof(there), NULL, 0), 0);
    ck_assert_double_gt(sxe_dict_get_ttl(dict, &there, sizeof(there)), 0);
    check_counts(3, 0, 0, 0);
    ck_assert_int_eq(get(missing), -ENOENT);
    ck_assert_int_eq((int)sxe_dict_peek(dict, &missing, sizeof(missing), NULL, 0), -ENOENT);
    ck_assert_double_lt(sxe_dict_get_ttl(dict, &missing, sizeof(missing)), 0);
    check_counts(3, 3, 0, 0);
    ck_assert_int_eq(sxe_dict_touch(dict, &there, sizeof(there)), 0);
    ck_assert_int_eq(sxe_dict_remove(dict, &missing, sizeof(missing)), -ENOENT);
    check_counts(3, 3, 0, 0);
}
END_TEST

START_TEST(evictions_and_expirations_are_counted)
{
    open_of(2, 1, 0);
    ck_assert_int_eq(put(1, 0), 0);
    ck_assert_int_eq(put(2, 0), 0);
    ck_assert_int_eq(put(3, 1), 0);
    check_counts(0, 0, 1, 0);
    sxe_time_set_turn_ns(START_NS + UINT64_C(2000000000));
    ck_assert_int_eq(put(4, 1), 0); /* the put takes the cell of the expired entry */
    check_counts(0, 0, 1, 1);
    sxe_time_set_turn_ns(START_NS + UINT64_C(4000000000));
    ck_assert_int_eq(get(4), -ENOENT);
    check_counts(0, 1, 1, 2);
}
END_TEST

START_TEST(counts_of_a_process_that_was_killed_stay)
{
    open_of(10, 1, 0);
    ck_assert_int_eq(put(1, 0), 0);
    const pid_t pid = fork();

    if (pid == 0) {
        get(1);
        get(2);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    check_counts(1, 1, 0, 0);
}
END_TEST

START_TEST(chains_are_as_long_as_they_are)
{
    SXE_DICT_CHAINS chains;

    open_of(4096, 2, SXE_POOL_OPTION_LOCKED);
    ck_assert_int_eq(sxe_dict_get_chains(dict, &chains), 0);
    ck_assert_uint_eq(chains.buckets, 4096);
    ck_assert_uint_eq(chains.buckets_used + chains.versions + chains.longest, 0);
    for (unsigned i = 0; i < 3000; i++)
        ck_assert_int_eq(put(i, 0), 0);
    ck_assert_int_eq(sxe_dict_get_chains(dict, &chains), 0);
    ck_assert_uint_eq(chains.versions, sxe_dict_get_count(dict));
    ck_assert_uint_ge(chains.longest, 2);
    ck_assert_uint_le(chains.longest, 40);
    ck_assert_uint_lt(chains.buckets_used, chains.versions);
}
END_TEST

START_TEST(chains_have_what_snapshots_see)
{
    SXE_DICT_CHAINS chains;
    SXE_DICT_SNAPSHOT *snapshot;

    open_of(100, 1, 0);
    ck_assert_int_eq(put(1, 0), 0);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_ptr_nonnull(snapshot);
    ck_assert_int_eq(put(1, 0), 0);
    ck_assert_int_eq(sxe_dict_get_chains(dict, &chains), 0);
    ck_assert_uint_eq(chains.buckets_used, 1);
    ck_assert_uint_eq(chains.versions, 2);
    ck_assert_uint_eq(chains.longest, 2);
    sxe_dict_snapshot_release(snapshot);
}
END_TEST

START_TEST(chains_of_a_locked_shard_are_eagain)
{
    SXE_DICT_CHAINS chains = {.longest = 99};

    open_of(100, 2, SXE_POOL_OPTION_LOCKED);
    ck_assert_int_eq(sxe__dict_lock(dict, 1), 0);
    ck_assert_int_eq(sxe_dict_get_chains(dict, &chains), -EAGAIN);
    sxe__dict_unlock(dict, 1);
    ck_assert_uint_eq(chains.longest, 99);
}
END_TEST

/* A link leads outside the table, or back. */
START_TEST(chains_that_lead_astray_are_damage)
{
    const uint32_t links[] = {UINT32_MAX, 1};
    SXE_DICT_CHAINS chains;

    sxe_log_set_level(SXE_LOG_FATAL);
    open_of(4, 1, SXE_POOL_OPTION_LOCKED);
    dict->buckets[0] = links[_i];
    sxe__dict_cell(dict, 0)->chain = 1;
    ck_assert_int_eq(sxe_dict_get_chains(dict, &chains), -EUCLEAN);
    ck_assert_uint_eq(dict->control->doubtful, 1);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-stats");
    TCase *tcase = tcase_create("dict-stats");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, reads_are_hits_or_misses);
    tcase_add_test(tcase, evictions_and_expirations_are_counted);
    tcase_add_test(tcase, counts_of_a_process_that_was_killed_stay);
    tcase_add_test(tcase, chains_are_as_long_as_they_are);
    tcase_add_test(tcase, chains_have_what_snapshots_see);
    tcase_add_test(tcase, chains_of_a_locked_shard_are_eagain);
    tcase_add_loop_test(tcase, chains_that_lead_astray_are_damage, 0, 2);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
