/* SPDX-License-Identifier: MIT
 *
 * Snapshots, by docs/dict.md and sxe-dict.h: counters, expiry, deaths, and old values that are
 * compared entry by entry while everything is written.
 */
#include "outside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sxe-dict.h>
#include <sxe-time.h>
#include <sys/wait.h>

enum { KEYS = 30, ROUNDS = 200, LONG = 600 };

static SXE_DICT *dict;
static char value[LONG];

static void
open_of(unsigned cells, unsigned shards)
{
    const SXE_DICT_SPEC spec = {.name = "past", .cells = cells, .cell_size = 128, .shards = shards};
    char why[SXE_POOL_WHY_SIZE];

    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
}

static void
at_second(double second)
{
    sxe_time_set_turn_ns(SXE_NS_PER_SECOND * 1000 + (uint64_t)(second * 1e9));
}

/* promise: lib-sxe-dict/sxe-dict.h: Entries that had expired when it was taken are not in the
 * snapshot; times to live and states are the current ones. */
START_TEST(a_snapshot_has_what_had_not_expired_then)
{
    at_second(1);
    open_of(100, 1);
    ck_assert_int_eq(sxe_dict_put(dict, "past", 4, "gone", 4, 1), 0);
    ck_assert_int_eq(sxe_dict_put(dict, "soon", 4, "old", 3, 5), 0);
    at_second(3);
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
    at_second(10);
    ck_assert_int_eq(sxe_dict_get(dict, "soon", 4, value, LONG), -ENOENT);
    ck_assert_int_eq(sxe_dict_snapshot_get(snapshot, "past", 4, value, LONG), -ENOENT);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(sxe_dict_snapshot_get(snapshot, "soon", 4, value, LONG), 3);
        ck_assert_mem_eq(value, "old", 3);
        ck_assert_int_eq(sxe_dict_put(dict, "soon", 4, "newer", 5, 0), 0);
    }
    sxe_dict_snapshot_release(snapshot);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
    sxe_dict_close(dict);
    sxe_time_set_turn_ns(0);
}
END_TEST

/* promise: docs/dict.md: A snapshot shows the whole table as it was at one moment, while writers
 * continue. */
START_TEST(a_counter_that_goes_on_stands_still_in_a_snapshot)
{
    SXE_DICT_SNAPSHOT *snapshots[SXE_DICT_SNAPSHOTS];
    int64_t sum = 0;

    open_of(100, 2);
    for (int64_t i = 0; i < SXE_DICT_SNAPSHOTS; i++) {
        ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, &sum), 0);
        snapshots[i] = sxe_dict_snapshot_take(dict);
        ck_assert_ptr_nonnull(snapshots[i]);
        ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, &sum), 0);
        ck_assert_int_eq(sum, 2 * i + 2);
    }
    ck_assert_int_eq(sxe_dict_remove(dict, "n", 1), 0);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, -5, 0, &sum), 0);
    for (int64_t i = 0; i < SXE_DICT_SNAPSHOTS; i++) {
        ck_assert_int_eq(sxe_dict_snapshot_get(snapshots[i], "n", 1, &sum, sizeof(sum)), 8);
        ck_assert_int_eq(sum, 2 * i + 1);
        sxe_dict_snapshot_release(snapshots[i]);
    }
    ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
    sxe_dict_close(dict);
}
END_TEST

/* promise: lib-sxe-dict/sxe-dict.h: so does a snapshot whose process is dead. */
START_TEST(the_snapshots_of_the_dead_do_not_count)
{
    open_of(100, 1);
    for (unsigned i = 0; i < 2 * SXE_DICT_SNAPSHOTS; i++) {
        const pid_t child = fork();
        int status;

        if (child == 0) {
            if (sxe_dict_snapshot_take(dict) == NULL)
                _exit(1);
            raise(SIGKILL);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status), "child %u had no snapshot", i);
    }
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_ptr_nonnull(snapshot);
    sxe_dict_snapshot_release(snapshot);
    sxe_dict_close(dict);
}
END_TEST

static size_t sizes[KEYS];
static size_t past[KEYS];

/* Change one key. sizes has the length of each key's value; 0: the key has no entry. */
static void
change(unsigned round)
{
    const unsigned key = (round * 7 + round / 5) % KEYS;

    memset(value, (int)key, sizeof(value));
    if (round % 4 == 3 && sizes[key] > 0) {
        ck_assert_int_eq(sxe_dict_remove(dict, &key, sizeof(key)), 0);
        sizes[key] = 0;
        return;
    }
    sizes[key] = 1 + (round * 37) % LONG;
    ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), value, sizes[key], 0), 0);
}

static void
expect_past(SXE_DICT_SNAPSHOT *snapshot)
{
    char bytes[LONG];
    unsigned key, met = 0;
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {
        .key = &key, .key_room = sizeof(key), .value = bytes, .value_room = LONG};

    sxe_dict_snapshot_walk(&walker, snapshot);
    while (sxe_dict_walker_step(&walker, &entry) == 1) {
        ck_assert_uint_lt(key, KEYS);
        ck_assert_uint_eq(entry.value_size, past[key]);
        ck_assert_int_eq(bytes[past[key] - 1], (int)key);
        met++;
    }
    for (key = 0; key < KEYS; key++) {
        ck_assert_int_eq(sxe_dict_snapshot_get(snapshot, &key, sizeof(key), bytes, LONG),
                         past[key] > 0 ? (ssize_t)past[key] : -ENOENT);
        met -= past[key] > 0;
    }
    ck_assert_uint_eq(met, 0);
}

/* promise: lib-sxe-dict/sxe-dict.h: From then on a value that is replaced or removed stays in its
 * cells as long as a snapshot can see it. */
START_TEST(the_past_stays_while_everything_changes)
{
    for (unsigned shards = 1; shards <= 8; shards *= 8) {
        open_of(900 * shards, shards); /* enough for all entries in one shard */
        memset(sizes, 0, sizeof(sizes));
        for (unsigned moment = 0; moment < 6; moment++) {
            SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);

            memcpy(past, sizes, sizeof(sizes));
            for (unsigned round = 0; round < ROUNDS; round++)
                change(moment * ROUNDS + round);
            expect_past(snapshot);
            sxe_dict_snapshot_release(snapshot);
        }
        ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
        sxe_dict_close(dict);
    }
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {
        a_snapshot_has_what_had_not_expired_then, a_counter_that_goes_on_stands_still_in_a_snapshot,
        the_snapshots_of_the_dead_do_not_count, the_past_stays_while_everything_changes, NULL};

    return outside_run("dict-snapshots", cases);
}
