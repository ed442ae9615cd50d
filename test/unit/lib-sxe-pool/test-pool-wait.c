/* SPDX-License-Identifier: MIT
 *
 * Calls that may wait for a lock, of pools and of dicts: each waits as long as the program has set,
 * however many locks it needs, and not longer than the lock is taken. The clock is a fake, which
 * only sleeping advances.
 */
#include "shared-pool.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>

#include "../../../lib-sxe-dict/sxe-dict-private.h"
#include "fake-os.h"
#include "fake-time.h"
#include "test-main.h"

#define SECOND  SXE_NS_PER_SECOND
#define SHARDS  4u
#define WAIT_NS (2 * SECOND)

static char *array;
static char *other; /* the same pool, opened again as by another process */
static SXE_DICT *dict;
static SXE_DICT *other_dict;
static SXE_DICT_SNAPSHOT *snapshot;
static SXE_DICT_BATCH *batch;
static SXE_POOL_LEASE lease;

static void
begin(void)
{
    const SXE_DICT_SPEC spec = {.name = "d", .cells = 400, .shards = SHARDS};

    array = open_shared(PROCESSES, 16, 8, SHARDS);
    dict = sxe_dict_open(&spec, NULL);
    ck_assert_ptr_nonnull(dict);
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, NULL), 0);
    snapshot = sxe_dict_snapshot_take(dict);
    batch = sxe_dict_batch_new(dict);
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(sxe_dict_batch_put(batch, &i, sizeof(i), "v", 1, 0), 0);
    ck_assert_uint_lt(sxe_pool_lease_oldest(array, FREE, BUSY, NULL, &lease), 16);
    for (unsigned i = 0; i < 4; i++)
        sxe_pool_take(array, FREE, READY);
    other = join(array);
    other_dict = sxe_dict_open_fd(sxe_pool_get_fd(sxe_dict_get_pool(dict)), NULL, NULL);
    ck_assert_ptr_nonnull(other_dict);
    fake_time_start(1000 * SECOND, 1000 * SECOND);
}

static void
end(void)
{
    fake_time_stop();
    sxe_dict_batch_delete(batch);
    sxe_dict_snapshot_release(snapshot);
    sxe_dict_close(other_dict);
    sxe_dict_close(dict);
    sxe_pool_delete(other);
    sxe_pool_delete(array);
}

static void
lock_all(void)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        ck_assert_int_eq(sxe__pool_lock(sharing_of(other), &sharing_of(other)->shards[shard].lock),
                         0);
    ck_assert_int_eq(sxe__dict_lock_all(other_dict), 0);
}

static void
unlock_all(void)
{
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        sxe__pool_unlock(&sharing_of(other)->shards[shard].lock);
    sxe__dict_unlock_all(other_dict);
}

/* ---- Calls: each returns whether it did not get a lock ---- */

static bool
is_not_taken(unsigned result)
{
    return result == SXE_POOL_LOCK_NOT_TAKEN;
}

static bool
set(void)
{
    return is_not_taken(sxe_pool_move(array, 15, FREE, BUSY));
}

static bool
try_to_set(void)
{
    unsigned state = BUSY;

    return is_not_taken(sxe_pool_try_move(array, 15, FREE, &state));
}

static bool
touch(void)
{
    return is_not_taken(sxe_pool_touch(array, 15));
}

static bool
take(void)
{
    return is_not_taken(sxe_pool_take(array, FREE, BUSY));
}

static bool
take_exactly(void)
{
    return is_not_taken(sxe_pool_take_exact(array, FREE, BUSY));
}

static bool
take_many(void)
{
    unsigned ids[4];

    return is_not_taken(sxe_pool_take_many(array, FREE, BUSY, ids, 4));
}

static bool
set_many(void)
{
    const unsigned ids[] = {12, 13, 14, 15};

    return is_not_taken(sxe_pool_move_many(array, ids, 4, FREE, BUSY));
}

static bool
take_with_lease(void)
{
    SXE_POOL_LEASE mine;

    return is_not_taken(sxe_pool_lease_oldest(array, FREE, BUSY, NULL, &mine));
}

static bool
renew(void)
{
    return is_not_taken(sxe_pool_lease_renew(array, &lease));
}

static bool
walk(void)
{
    SXE_POOL_WALKER walker;

    sxe_pool_walker_construct(&walker, array, BUSY);
    return is_not_taken(sxe_pool_walker_step(&walker));
}

static bool
watch(void)
{
    /* The holder of a lock may be about to move an element to BUSY, so watch must not wait on
     * it. */
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        const uint32_t list =
            sxe__pool_shard_list(sxe__pool_header(array), sharing_of(array), BUSY, shard);
        sharing_of(array)->nodes[list].count = 0;
    }
    return sxe_pool_watch(array, BUSY) == -EAGAIN;
}

static bool
check_pool(void)
{
    return sxe_pool_check(array, NULL) == -EAGAIN;
}

static bool
get(void)
{
    return sxe_dict_get(dict, "n", 1, NULL, 0) == -EAGAIN;
}

static bool
get_ttl(void)
{
    return (int)sxe_dict_get_ttl(dict, "n", 1) == -EAGAIN;
}

static bool
put(void)
{
    return sxe_dict_put(dict, "n", 1, "v", 1, 0) == -EAGAIN;
}

static bool
compare_and_put(void)
{
    return sxe_dict_compare_and_put(dict, "n", 1, "w", 1, "v", 1, 0) == -EAGAIN;
}

static bool
add(void)
{
    return sxe_dict_add(dict, "n", 1, 1, 0, NULL) == -EAGAIN;
}

static bool
remove_entry(void)
{
    return sxe_dict_remove(dict, "n", 1) == -EAGAIN;
}

static bool
step(void)
{
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};

    sxe_dict_walker_construct(&walker, dict);
    return sxe_dict_walker_step(&walker, &entry) == -EAGAIN;
}

static bool
commit(void)
{
    return sxe_dict_batch_commit(batch) == -EAGAIN;
}

static bool
take_snapshot(void)
{
    SXE_DICT_SNAPSHOT *taken = sxe_dict_snapshot_take(dict);

    sxe_dict_snapshot_release(taken);
    return taken == NULL && errno == EAGAIN;
}

static bool
get_of_snapshot(void)
{
    return sxe_dict_snapshot_get(snapshot, "n", 1, NULL, 0) == -EAGAIN;
}

static bool
check_dict(void)
{
    return sxe_dict_check(dict, NULL) == -EAGAIN;
}

static bool (*const calls[])(void) = {set,
                                      try_to_set,
                                      touch,
                                      take,
                                      take_exactly,
                                      take_many,
                                      set_many,
                                      walk,
                                      renew,
                                      take_with_lease,
                                      watch,
                                      check_pool,
                                      get,
                                      get_ttl,
                                      put,
                                      compare_and_put,
                                      add,
                                      remove_entry,
                                      step,
                                      commit,
                                      check_dict,
                                      take_snapshot,
                                      get_of_snapshot};

static void
set_wait(double seconds)
{
    ck_assert_int_eq(sxe_pool_set_wait(array, seconds), 0);
    ck_assert_int_eq(sxe_dict_set_wait(dict, seconds), 0);
}

/* ---- Cases ---- */

START_TEST(a_call_waits_as_long_as_it_may)
{
    set_wait(2.0);
    lock_all();
    const uint64_t began_ns = sxe_time_ns();
    ck_assert(calls[_i]());
    const uint64_t took_ns = sxe_time_ns() - began_ns;
    unlock_all();
    ck_assert_uint_ge(took_ns, WAIT_NS);
    ck_assert_uint_lt(took_ns, WAIT_NS + 2 * SXE_NS_PER_MS);
}
END_TEST

START_TEST(a_call_that_may_not_wait_does_not)
{
    lock_all();
    const uint64_t began_ns = sxe_time_ns();
    fake_os_forbid(FAKE_NANOSLEEP, true);
    ck_assert(calls[_i]());
    set_wait(1.0);
    set_wait(0.0);
    ck_assert(calls[_i]());
    ck_assert_uint_eq(fake_os_violations(), 0);
    fake_os_reset();
    unlock_all();
    ck_assert_uint_eq(sxe_time_ns(), began_ns);
}
END_TEST

static int ends[2]; /* a byte tells the thread to unlock */

static void *
let_go(void *unused)
{
    char byte;

    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    unlock_all();
    return unused;
}

/* The wait of a minute never ends here: the call returns because the lock becomes free. */
START_TEST(a_call_goes_on_when_the_lock_is_free)
{
    pthread_t thread;

    fake_time_stop();
    ck_assert_int_eq(pipe(ends), 0);
    set_wait(SXE_POOL_WAIT_MAX);
    lock_all();
    ck_assert_int_eq(pthread_create(&thread, NULL, let_go, NULL), 0);
    ck_assert_int_eq(write(ends[1], "", 1), 1);
    ck_assert(!calls[_i]());
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(there_is_no_wait_without_end)
{
    static const double wrong[] = {-1.0, -0.001, 60.001, 1e300, INFINITY, NAN};

    for (unsigned i = 0; i < SXE_COUNT(wrong); i++) {
        ck_assert_int_eq(sxe_pool_set_wait(array, wrong[i]), -EINVAL);
        ck_assert_int_eq(sxe_dict_set_wait(dict, wrong[i]), -EINVAL);
    }
    char *alone = open_footing(ONE_THREAD, 1, 1);
    ck_assert_int_eq(sxe_pool_set_wait(alone, 1.0), 0);
    ck_assert_int_eq(sxe_pool_set_wait(alone, -1.0), -EINVAL);
    sxe_pool_delete(alone);
}
END_TEST

START_TEST(a_put_that_makes_room_goes_on)
{
    const SXE_DICT_SPEC spec = {.name = "full", .cells = 5000, .cell_size = 128};
    SXE_DICT *full = sxe_dict_open(&spec, NULL);

    sxe_time_set_turn_ns(1000 * SECOND);
    for (unsigned i = 0; i < 4999; i++)
        ck_assert_int_eq(sxe_dict_put(full, &i, sizeof(i), "v", 1, 0), 0);
    ck_assert_int_eq(sxe_dict_put(full, "last", 4, "v", 1, 1), 0);
    sxe_time_set_turn_ns(1002 * SECOND);
    ck_assert_int_eq(sxe_dict_put(full, "more", 4, "v", 1, 0), -EAGAIN);
    ck_assert_int_eq(sxe_dict_set_wait(full, 1.0), 0);
    ck_assert_int_eq(sxe_dict_put(full, "more", 4, "v", 1, 0), 0);
    ck_assert_int_eq(sxe_dict_put(full, "much more", 9, "v", 1, 0), -ENOSPC);
    sxe_dict_close(full);
}
END_TEST

START_TEST(sleeps_are_doubled_up_to_a_millisecond)
{
    const struct sxe__pool_sharing *sharing = sharing_of(array);
    const uint64_t sleeps_us[] = {50, 100, 200, 400, 800, 1000, 1000};
    struct sxe__pool_patience patience = {0};

    set_wait(2.0);
    for (unsigned i = 0; i < SXE_COUNT(sleeps_us); i++) {
        const uint64_t began_ns = sxe_time_ns();

        ck_assert(sxe__pool_wait(sharing, &patience));
        ck_assert_uint_eq(sxe_time_ns() - began_ns, sleeps_us[i] * SXE_NS_PER_US);
    }
}
END_TEST

/* Between two slices a call leaves the lock free for others that want it, but not for ever. */
START_TEST(the_next_slice_waits_for_others_and_not_for_ever)
{
    uint64_t *is_wanted = &dict->counts[0].is_wanted;

    fake_os_reset();
    ck_assert_int_eq(sxe__dict_lock_next_slice(dict, 0), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_NANOSLEEP), 0);
    ck_assert_int_eq(sxe__dict_lock_next_slice(other_dict, 0), -EAGAIN);
    ck_assert_uint_eq(fake_os_calls(FAKE_NANOSLEEP), SXE__POOL_NAPS - 1);
    ck_assert_uint_eq(*is_wanted, 1);
    sxe__dict_unlock(dict, 0);
    ck_assert_int_eq(sxe__dict_lock(other_dict, 0), 0);
    ck_assert_uint_eq(*is_wanted, 0);
    sxe__dict_unlock(other_dict, 0);

    *is_wanted = 1;
    fake_os_reset();
    ck_assert_int_eq(sxe__dict_lock_next_slice(dict, 0), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_NANOSLEEP), SXE__POOL_NAPS);
    ck_assert_uint_eq(*is_wanted, 0);
    sxe__dict_unlock(dict, 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-wait");
    TCase *tcase = tcase_create("wait");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, a_call_waits_as_long_as_it_may, 0, LENGTH_OF(calls));
    tcase_add_loop_test(tcase, a_call_that_may_not_wait_does_not, 0, LENGTH_OF(calls));
    tcase_add_loop_test(tcase, a_call_goes_on_when_the_lock_is_free, 0, LENGTH_OF(calls));
    tcase_add_test(tcase, there_is_no_wait_without_end);
    tcase_add_test(tcase, a_put_that_makes_room_goes_on);
    tcase_add_test(tcase, sleeps_are_doubled_up_to_a_millisecond);
    tcase_add_test(tcase, the_next_slice_waits_for_others_and_not_for_ever);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
