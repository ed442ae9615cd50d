/* SPDX-License-Identifier: MIT
 *
 * Walks, snapshots and batches: which values they see, and when they end.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-dict-private.h"
#include "sxe-time.h"
#include "test-main.h"

static SXE_DICT *dict;

static void
open_of(unsigned cells, unsigned shards, bool evicts)
{
    const SXE_DICT_SPEC spec = {
        .name = "test", .cells = cells, .cell_size = 128, .shards = shards, .evicts = evicts};

    sxe_time_set_turn_ns(UINT64_C(5000000000));
    dict = sxe_dict_open(&spec, NULL);
    ck_assert_ptr_nonnull(dict);
}

static void
setup(void)
{
    open_of(100, 1, false);
}

static void
teardown(void)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    ck_assert_msg(sxe_pool_check(sxe_dict_get_pool(dict), why) == 0, "%s", why);
    sxe_dict_close(dict);
    sxe_time_set_turn_ns(0);
}

static int
put(unsigned key, unsigned value)
{
    return sxe_dict_put(dict, &key, sizeof(key), &value, sizeof(value), 0);
}

static void
fill(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        ck_assert_int_eq(put(i, i), 0);
}

/* The value of a key as a number, or -errno. */
static int64_t
get_of(const SXE_DICT_SNAPSHOT *snapshot, unsigned key)
{
    unsigned value;
    const ssize_t size =
        snapshot == NULL
            ? sxe_dict_peek(dict, &key, sizeof(key), &value, sizeof(value))
            : sxe_dict_snapshot_get(snapshot, &key, sizeof(key), &value, sizeof(value));

    return size < 0 ? size : (int64_t)value;
}

static unsigned
old_cells(void)
{
    return sxe_pool_get_count(sxe_dict_get_pool(dict), SXE__DICT_OLD);
}

/* ---- Walking ---- */

static unsigned
walk(SXE_DICT_WALKER *walker, unsigned met[], unsigned limit)
{
    unsigned key;
    SXE_DICT_ENTRY entry = {.key = &key, .key_room = sizeof(key)};
    unsigned steps = 0;
    int result = 1;

    while (steps < limit && (result = sxe_dict_walker_step(walker, &entry)) == 1) {
        met[key]++;
        steps++;
    }
    ck_assert_int_ge(result, 0);
    return steps;
}

START_TEST(walk_tells_all_of_an_entry)
{
    char key[3] = "---";
    char value[3] = "---";
    SXE_DICT_ENTRY entry = {.key = key, .key_room = 2, .value = value, .value_room = 2};
    SXE_DICT_WALKER walker;

    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, "value", 5, 2), 0);
    ck_assert_int_eq(sxe_dict_set_state(dict, "key", 3, SXE_DICT_PINNED), 0);
    sxe_dict_walker_construct(&walker, dict);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), 1);
    ck_assert_int_eq(memcmp(key, "ke-", 3), 0);
    ck_assert_int_eq(memcmp(value, "va-", 3), 0);
    ck_assert_uint_eq(entry.key_size, 3);
    ck_assert_uint_eq(entry.value_size, 5);
    ck_assert_double_eq_tol(entry.ttl_s, 2, 1e-6);
    ck_assert_uint_eq(entry.state, SXE_DICT_PINNED);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), 0);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), 0);
}
END_TEST

START_TEST(walk_does_not_meet_what_has_expired)
{
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};

    ck_assert_int_eq(sxe_dict_put(dict, "key", 3, "value", 5, 2), 0);
    sxe_time_set_turn_ns(UINT64_C(8000000000));
    sxe_dict_walker_construct(&walker, dict);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), 0);
}
END_TEST

START_TEST(walk_meets_once_what_stays_whatever_is_written_meanwhile)
{
    unsigned met[1000] = {0};
    SXE_DICT_WALKER walker;
    unsigned steps = 0;

    sxe_dict_close(dict);
    open_of(1000, 4, false);
    fill(0, 100);
    sxe_dict_walker_construct(&walker, dict);
    while (walk(&walker, met, 3) == 3) {
        steps++;
        for (unsigned i = 0; i < 100; i += 3)
            ck_assert_int_eq(put((i + steps) % 100, steps), 0);
        ck_assert_int_eq(put(100 + steps, 0), 0);
        if (steps % 2 == 0)
            ck_assert_int_eq(sxe_dict_remove(dict, &(unsigned){100 + steps - 1}, 4), 0);
    }
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_msg(i < 100 ? met[i] == 1 : met[i] <= 1, "key %u met %u times", i, met[i]);
}
END_TEST

/* ---- Snapshots ---- */

START_TEST(snapshot_sees_what_was)
{
    SXE_DICT_SNAPSHOT *snapshot;

    fill(0, 10);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_ptr_nonnull(snapshot);
    ck_assert_int_eq(put(3, 33), 0);
    ck_assert_int_eq(sxe_dict_remove(dict, &(unsigned){4}, 4), 0);
    ck_assert_int_eq(put(50, 50), 0);
    ck_assert_int_eq(get_of(snapshot, 3), 3);
    ck_assert_int_eq(get_of(snapshot, 4), 4);
    ck_assert_int_eq(get_of(snapshot, 50), -ENOENT);
    ck_assert_int_eq(get_of(NULL, 3), 33);
    ck_assert_int_eq(get_of(NULL, 4), -ENOENT);
    ck_assert_uint_eq(old_cells(), 2);
    ck_assert_int_eq(put(3, 34), 0);
    ck_assert_uint_eq(old_cells(), 2);
    ck_assert_int_eq(sxe_dict_snapshot_get(snapshot, "", 1000, NULL, 0), -EINVAL);
    sxe_dict_snapshot_release(snapshot);
    sxe_dict_snapshot_release(NULL);
    ck_assert_uint_eq(old_cells(), 0);
}
END_TEST

START_TEST(snapshot_keeps_what_had_a_time_to_live)
{
    SXE_DICT_SNAPSHOT *early;
    SXE_DICT_SNAPSHOT *late;

    ck_assert_int_eq(sxe_dict_put(dict, &(unsigned){1}, 4, &(unsigned){1}, 4, 2), 0);
    early = sxe_dict_snapshot_take(dict);
    sxe_time_set_turn_ns(UINT64_C(8000000000));
    late = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(get_of(NULL, 1), -ENOENT);
    ck_assert_int_eq(get_of(early, 1), 1);
    ck_assert_int_eq(get_of(late, 1), -ENOENT);
    sxe_dict_snapshot_release(late);
    sxe_dict_snapshot_release(early);
}
END_TEST

START_TEST(counter_that_a_snapshot_sees_goes_on_beside_it)
{
    SXE_DICT_SNAPSHOT *snapshot;
    int64_t sum;

    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 5, 100, &sum), 0);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 5, 0, &sum), 0);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 5, 0, &sum), 0);
    ck_assert_int_eq(sum, 15);
    ck_assert_int_eq(sxe_dict_snapshot_get(snapshot, "n", 1, &sum, sizeof(sum)), sizeof(sum));
    ck_assert_int_eq(sum, 5);
    ck_assert_double_eq_tol(sxe_dict_get_ttl(dict, "n", 1), 100, 1e-6);
    sxe_dict_snapshot_release(snapshot);
}
END_TEST

/* A version is kept only by the snapshots that were taken while it was current. */
START_TEST(version_goes_with_the_last_snapshot_that_sees_it)
{
    SXE_DICT_SNAPSHOT *snapshot[4];

    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(put(1, i), 0);
        snapshot[i] = sxe_dict_snapshot_take(dict);
    }
    ck_assert_int_eq(put(1, 4), 0);
    ck_assert_uint_eq(old_cells(), 4);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(get_of(snapshot[i], 1), (int64_t)i);
    sxe_dict_snapshot_release(snapshot[2]);
    ck_assert_uint_eq(old_cells(), 3);
    sxe_dict_snapshot_release(snapshot[0]);
    ck_assert_uint_eq(old_cells(), 2);
    ck_assert_int_eq(get_of(snapshot[1], 1), 1);
    ck_assert_int_eq(get_of(snapshot[3], 1), 3);
    sxe_dict_snapshot_release(snapshot[3]);
    sxe_dict_snapshot_release(snapshot[1]);
    ck_assert_uint_eq(old_cells(), 0);
}
END_TEST

START_TEST(writers_without_room_end_the_oldest_snapshot)
{
    SXE_DICT_SNAPSHOT *first;
    SXE_DICT_SNAPSHOT *second;
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};

    fill(0, 90);
    first = sxe_dict_snapshot_take(dict);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(put(i, 100 + i), 0);
    second = sxe_dict_snapshot_take(dict);
    for (unsigned i = 5; i < 10; i++)
        ck_assert_int_eq(put(i, 100 + i), 0);
    ck_assert_int_eq(get_of(first, 7), 7);
    ck_assert_int_eq(put(10, 110), 0);
    ck_assert_int_eq(get_of(first, 7), -ESTALE);
    sxe_dict_snapshot_walk(&walker, first);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), -ESTALE);
    ck_assert_int_eq(get_of(second, 2), 102);
    ck_assert_int_eq(get_of(second, 7), 7);
    for (unsigned i = 10; i < 20; i++)
        ck_assert_int_eq(put(i, 100 + i), 0);
    ck_assert_int_eq(get_of(second, 2), -ESTALE);
    sxe_dict_snapshot_release(first);
    sxe_dict_snapshot_release(second);
    ck_assert_uint_eq(old_cells(), 0);
}
END_TEST

START_TEST(eviction_ends_the_snapshots_that_see_the_victim)
{
    SXE_DICT_SNAPSHOT *snapshot;

    sxe_dict_close(dict);
    open_of(10, 1, true);
    fill(0, 10);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(put(10, 10), 0);
    ck_assert_int_eq(get_of(snapshot, 5), -ESTALE);
    ck_assert_int_eq(get_of(NULL, 0), -ENOENT);
    sxe_dict_snapshot_release(snapshot);
}
END_TEST

/* A version that no snapshot sees any more comes after 2000 that a snapshot sees. */
START_TEST(long_sweep_goes_on_with_the_next_put)
{
    SXE_DICT_SNAPSHOT *snapshot[2];
    unsigned tries = 0;
    int result;

    sxe_dict_close(dict);
    open_of(5000, 1, false);
    fill(0, 2990);
    snapshot[0] = sxe_dict_snapshot_take(dict);
    for (unsigned i = 0; i < 2000; i++)
        ck_assert_int_eq(put(i, 0), 0);
    snapshot[1] = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(put(0, 1), 0);
    ck_assert_int_eq(sxe__dict_lock(dict, 0), 0);
    sxe_dict_snapshot_release(snapshot[1]);
    sxe__dict_unlock(dict, 0);
    fill(3000, 3009);
    while ((result = put(3009, 1)) == -EAGAIN)
        tries++;
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(tries, 1);
    ck_assert_int_eq(get_of(snapshot[0], 1), 1);
    sxe_dict_snapshot_release(snapshot[0]);
    ck_assert_uint_eq(old_cells(), 0);
}
END_TEST

START_TEST(sixteen_snapshots_are_all)
{
    SXE_DICT_SNAPSHOT *snapshot[SXE_DICT_SNAPSHOTS];

    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++)
        ck_assert_ptr_nonnull(snapshot[i] = sxe_dict_snapshot_take(dict));
    errno = 0;
    ck_assert_ptr_null(sxe_dict_snapshot_take(dict));
    ck_assert_int_eq(errno, EUSERS);
    sxe_dict_snapshot_release(snapshot[7]);
    ck_assert_ptr_nonnull(snapshot[7] = sxe_dict_snapshot_take(dict));
    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++)
        sxe_dict_snapshot_release(snapshot[i]);
}
END_TEST

static void
take_all_in_a_child(bool *parents_is_left)
{
    SXE_DICT_SNAPSHOT *mine = sxe_dict_snapshot_take(dict);
    const pid_t child = fork();
    int status;

    if (child == 0) {
        sxe_dict_snapshot_release(mine);
        for (unsigned i = 1; i < SXE_DICT_SNAPSHOTS; i++) {
            if (sxe_dict_snapshot_take(dict) == NULL)
                _exit(1);
        }
        _exit(sxe_dict_snapshot_take(dict) == NULL && errno == EUSERS ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(put(1, 2), 0);
    *parents_is_left = get_of(mine, 1) == 1;
    sxe_dict_snapshot_release(mine);
}

START_TEST(snapshots_of_the_dead_end_when_one_is_wanted)
{
    SXE_DICT_SNAPSHOT *snapshot[SXE_DICT_SNAPSHOTS];
    bool parents_is_left;

    ck_assert_int_eq(put(1, 1), 0);
    take_all_in_a_child(&parents_is_left);
    ck_assert(parents_is_left);
    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++)
        ck_assert_ptr_nonnull(snapshot[i] = sxe_dict_snapshot_take(dict));
    ck_assert_int_eq(get_of(snapshot[0], 1), 2);
    for (unsigned i = 0; i < SXE_DICT_SNAPSHOTS; i++)
        sxe_dict_snapshot_release(snapshot[i]);
}
END_TEST

START_TEST(snapshots_of_the_dead_end_where_there_is_no_room)
{
    SXE_DICT_SNAPSHOT *snapshot;
    bool parents_is_left;

    fill(0, 50);
    take_all_in_a_child(&parents_is_left);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_ptr_nonnull(snapshot);
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(put(i % 50, 7), 0);
    ck_assert_int_eq(get_of(snapshot, 30), 30);
    sxe_dict_snapshot_release(snapshot);
}
END_TEST

START_TEST(snapshot_is_not_taken_while_a_shard_is_locked)
{
    SXE_DICT_SNAPSHOT *snapshot;

    sxe_dict_close(dict);
    open_of(100, 4, false);
    fill(0, 20);
    ck_assert_int_eq(sxe__dict_lock(dict, 2), 0);
    ck_assert_ptr_null(sxe_dict_snapshot_take(dict));
    ck_assert_int_eq(errno, EAGAIN);
    sxe__dict_unlock(dict, 2);
    snapshot = sxe_dict_snapshot_take(dict);
    fill(0, 20);
    for (unsigned shard = 0; shard < 4; shard++)
        ck_assert_int_eq(sxe__dict_lock(dict, shard), 0);
    ck_assert_int_eq(get_of(snapshot, 1), -EAGAIN);
    sxe_dict_snapshot_release(snapshot);
    sxe__dict_unlock_all(dict);
    ck_assert_uint_eq(old_cells(), 20);
    for (unsigned i = 0; i < 40; i++)
        ck_assert_int_eq(put(i, 7), 0);
}
END_TEST

START_TEST(snapshot_wants_memory)
{
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(sxe_dict_snapshot_take(dict));
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(sxe_dict_batch_new(dict));
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), -ENOMEM);
    fake_os_reset();
}
END_TEST

/* ---- Batches ---- */

static int
batch_put(SXE_DICT_BATCH *batch, unsigned key, unsigned value)
{
    return sxe_dict_batch_put(batch, &key, sizeof(key), &value, sizeof(value), 0);
}

START_TEST(batch_does_the_last_word_on_each_key)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    fill(0, 3);
    ck_assert_int_eq(batch_put(batch, 0, 10), 0);
    ck_assert_int_eq(batch_put(batch, 0, 20), 0);
    ck_assert_int_eq(batch_put(batch, 1, 20), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, &(unsigned){1}, 4), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, &(unsigned){5}, 4), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, &(unsigned){6}, 4), 0);
    ck_assert_int_eq(batch_put(batch, 6, 60), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, NULL, 0, NULL, 0, 0), 0);
    ck_assert_int_eq(get_of(NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(get_of(NULL, 0), 20);
    ck_assert_int_eq(get_of(NULL, 1), -ENOENT);
    ck_assert_int_eq(get_of(NULL, 6), 60);
    ck_assert_int_eq(sxe_dict_peek(dict, NULL, 0, NULL, 0), 0);
    ck_assert_int_eq(put(0, 30), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(get_of(NULL, 0), 30);
    sxe_dict_batch_delete(batch);
    sxe_dict_batch_delete(NULL);
}
END_TEST

static int
batch_expect(SXE_DICT_BATCH *batch, unsigned key, unsigned value)
{
    return sxe_dict_batch_expect(batch, &key, sizeof(key), &value, sizeof(value));
}

START_TEST(batch_is_committed_only_if_its_conditions_hold)
{
    SXE_DICT_BATCH *batch;

    sxe_dict_close(dict);
    open_of(80, 4, false);
    batch = sxe_dict_batch_new(dict);
    fill(0, 8);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(batch_expect(batch, i, i), 0);
        ck_assert_int_eq(batch_put(batch, i + 2, 50 + i), 0);
    }
    ck_assert_int_eq(sxe_dict_batch_expect(batch, &(unsigned){9}, 4, NULL, 7), 0);
    ck_assert_int_eq(batch_expect(batch, 7, 8), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EEXIST); /* the value of key 7 is not 8 */
    ck_assert_int_eq(put(9, 9), 0);
    ck_assert_int_eq(batch_expect(batch, 7, 7), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EEXIST); /* there is an entry 9 */
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(get_of(NULL, i), (int)i);
    ck_assert_int_eq(sxe_dict_remove(dict, &(unsigned){9}, 4), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, &(unsigned){8}, 4, "", 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch),
                     -EEXIST); /* there is no entry 8, not even an empty one */
    ck_assert_int_eq(sxe_dict_put(dict, &(unsigned){8}, 4, NULL, 0, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(get_of(NULL, i + 2), 50 + (int)i);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(condition_sees_no_entry_that_has_expired)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    ck_assert_int_eq(sxe_dict_put(dict, "lock", 4, "mine", 4, 1), 0);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, "lock", 4, "mine", 4), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, "done", 4, "yes", 3, 0), 0);
    sxe_time_set_turn_ns(sxe_time_turn_ns() + 2 * SXE_NS_PER_SECOND);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EEXIST);
    ck_assert_int_eq(sxe_dict_peek(dict, "done", 4, NULL, 0), -ENOENT);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, "lock", 4, NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(sxe_dict_peek(dict, "done", 4, NULL, 0), 3);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(batch_of_conditions_alone_changes_nothing)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    ck_assert_int_eq(sxe_dict_batch_expect(batch, "a", 1, NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 0);
    sxe_dict_batch_delete(batch);
}
END_TEST

/* A commit empties the batch: it may touch neither the memory of the old changes, which the heap
 * may have given to others, nor keep a change. */
START_TEST(batch_is_used_again_after_its_commit)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    char *others[8];

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < SXE_COUNT(others); i++)
            ck_assert_int_eq(batch_put(batch, i, 100 * round + i), 0);
        ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
        for (unsigned i = 0; i < SXE_COUNT(others); i++) {
            others[i] = malloc(2 * sizeof(unsigned) + 1);
            memset(others[i], 'o', 2 * sizeof(unsigned) + 1);
        }
        ck_assert_int_eq(batch_put(batch, 0, 100 * round + 50), 0);
        ck_assert_int_eq(sxe_dict_batch_remove(batch, &(unsigned){1}, 4), 0);
        ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
        for (unsigned i = 0; i < SXE_COUNT(others); i++) {
            ck_assert_int_eq(others[i][0] + others[i][8], 2 * 'o');
            free(others[i]);
        }
        ck_assert_int_eq(get_of(NULL, 0), 100 * round + 50);
        ck_assert_int_eq(get_of(NULL, 1), -ENOENT);
        ck_assert_int_eq(get_of(NULL, 7), 100 * round + 7);
    }
    ck_assert_int_eq(batch_put(batch, 3, 3), 0);
    sxe_dict_batch_delete(batch);
}
END_TEST

/* A refused commit keeps the changes in the batch; the next commit makes them. */
START_TEST(batch_is_used_again_after_it_was_refused)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    ck_assert_int_eq(batch_put(batch, 1, 1), 0);
    ck_assert_int_eq(sxe__dict_lock(dict, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EAGAIN);
    sxe__dict_unlock(dict, 0);
    ck_assert_int_eq(batch_put(batch, 1, 2), 0);
    ck_assert_int_eq(batch_put(batch, 2, 3), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(get_of(NULL, 1), 2);
    ck_assert_int_eq(get_of(NULL, 2), 3);
    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(batch_put(batch, 1, 8), -ENOMEM);
    fake_os_reset();
    ck_assert_int_eq(batch_put(batch, 2, 9), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(get_of(NULL, 1), 2);
    ck_assert_int_eq(get_of(NULL, 2), 9);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(batch_refuses_what_the_calls_refuse)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    char key[65] = "";

    ck_assert_int_eq(sxe_dict_batch_put(batch, key, sizeof(key), NULL, 0, 0), -EINVAL);
    ck_assert_int_eq(sxe_dict_batch_put(batch, "k", 1, NULL, 0, -1), -EINVAL);
    ck_assert_int_eq(sxe_dict_batch_put(batch, "k", 1, NULL, (size_t)1 << 40, 0), -EFBIG);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, key, sizeof(key)), -EINVAL);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, key, sizeof(key), "v", 1), -EINVAL);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, "k", 1, "v", (size_t)1 << 40), -EFBIG);
    for (unsigned i = 0; i < SXE_DICT_BATCH_MAX; i++)
        ck_assert_int_eq(batch_put(batch, i, i), 0);
    ck_assert_int_eq(batch_put(batch, 5, 7), 0);
    ck_assert_int_eq(batch_put(batch, SXE_DICT_BATCH_MAX, 1), -E2BIG);
    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(batch_put(batch, 5, 8), -ENOMEM);
    fake_os_reset();
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EFBIG);
    sxe_dict_batch_delete(batch);
    sxe_dict_close(dict);
    open_of(SXE_DICT_BATCH_MAX, 1, false);
    batch = sxe_dict_batch_new(dict);
    for (unsigned i = 0; i < SXE_DICT_BATCH_MAX; i++)
        ck_assert_int_eq(batch_put(batch, i, i), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), SXE_DICT_BATCH_MAX);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(batch_without_room_does_nothing)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    fill(0, 90);
    for (unsigned i = 80; i < 95; i++)
        ck_assert_int_eq(batch_put(batch, i, 7), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -ENOSPC);
    ck_assert_int_eq(get_of(NULL, 85), 85);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(sxe_dict_remove(dict, &i, 4), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(get_of(NULL, 85), 7);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(batch_waits_for_no_lock)
{
    SXE_DICT_BATCH *batch;

    sxe_dict_close(dict);
    open_of(400, 4, false);
    batch = sxe_dict_batch_new(dict);
    for (unsigned i = 0; i < 50; i++)
        ck_assert_int_eq(batch_put(batch, i, i), 0);
    ck_assert_int_eq(sxe__pool_lock(dict->sharing, &dict->control->batch), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EAGAIN);
    sxe__pool_unlock(&dict->control->batch);
    ck_assert_int_eq(sxe__dict_lock(dict, 3), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EAGAIN);
    dict->records[3].staged = 99;
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EAGAIN);
    sxe__dict_unlock(dict, 3);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 50);
    sxe_dict_batch_delete(batch);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-snapshot");
    TCase *tcase = tcase_create("snapshot");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, walk_tells_all_of_an_entry);
    tcase_add_test(tcase, walk_does_not_meet_what_has_expired);
    tcase_add_test(tcase, walk_meets_once_what_stays_whatever_is_written_meanwhile);
    tcase_add_test(tcase, snapshot_sees_what_was);
    tcase_add_test(tcase, snapshot_keeps_what_had_a_time_to_live);
    tcase_add_test(tcase, counter_that_a_snapshot_sees_goes_on_beside_it);
    tcase_add_test(tcase, version_goes_with_the_last_snapshot_that_sees_it);
    tcase_add_test(tcase, writers_without_room_end_the_oldest_snapshot);
    tcase_add_test(tcase, eviction_ends_the_snapshots_that_see_the_victim);
    tcase_add_test(tcase, long_sweep_goes_on_with_the_next_put);
    tcase_add_test(tcase, sixteen_snapshots_are_all);
    tcase_add_test(tcase, snapshots_of_the_dead_end_when_one_is_wanted);
    tcase_add_test(tcase, snapshots_of_the_dead_end_where_there_is_no_room);
    tcase_add_test(tcase, snapshot_is_not_taken_while_a_shard_is_locked);
    tcase_add_test(tcase, snapshot_wants_memory);
    tcase_add_test(tcase, batch_does_the_last_word_on_each_key);
    tcase_add_test(tcase, batch_is_committed_only_if_its_conditions_hold);
    tcase_add_test(tcase, condition_sees_no_entry_that_has_expired);
    tcase_add_test(tcase, batch_of_conditions_alone_changes_nothing);
    tcase_add_test(tcase, batch_is_used_again_after_its_commit);
    tcase_add_test(tcase, batch_is_used_again_after_it_was_refused);
    tcase_add_test(tcase, batch_refuses_what_the_calls_refuse);
    tcase_add_test(tcase, batch_without_room_does_nothing);
    tcase_add_test(tcase, batch_waits_for_no_lock);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
