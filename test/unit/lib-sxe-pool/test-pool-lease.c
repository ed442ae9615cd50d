/* SPDX-License-Identifier: MIT
 *
 * Leases, on each footing: a call with a lease changes an element only if nobody else has changed
 * it since.
 */
#include "shared-pool.h"

#include <errno.h>
#include <string.h>

#include "stops.h"
#include "test-main.h"

#define ELEMENT 24u
#define SECOND  SXE_NS_PER_SECOND
#define START   (1000 * SECOND)

static const struct {
    int footing;
    unsigned shards;
} kinds[] = {{ONE_THREAD, 1}, {THREADS, 1}, {THREADS, 4}, {PROCESSES, 1}, {PROCESSES, 4}};

static const char first[ELEMENT] = "first";
static const char second[ELEMENT] = "second";

static char *array;
static SXE_POOL_LEASE lease;
static SXE_POOL_LEASE other;

static void
open_kind(int kind)
{
    array = kinds[kind].footing == ONE_THREAD
                ? open_footing(ONE_THREAD, 8, ELEMENT)
                : open_shared(kinds[kind].footing, 8, ELEMENT, kinds[kind].shards);
}

static void
close_whole(void)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    if (sxe__pool_header(array)->sharing != NULL)
        ck_assert_msg(sxe_pool_check(array, why) == 0, "%s", why);
    sxe_pool_delete(array);
}

static void
expect_contents(unsigned id, const char *wanted)
{
    char found[ELEMENT];

    ck_assert_int_eq(sxe_pool_read_element(array, id, found), 0);
    ck_assert_str_eq(found, wanted);
}

/* Each call with this lease must refuse, and change nothing. */
static void
expect_lost(SXE_POOL_LEASE *lost)
{
    const unsigned id = lost->id < 8 ? lost->id : 0;
    const unsigned state = sxe_pool_get_state(array, id);
    const SXE_TIME stamp = sxe_pool_get_time(array, id);
    char before[ELEMENT];
    char after[ELEMENT];

    ck_assert_int_eq(sxe_pool_read_element(array, id, before), 0);
    ck_assert(!sxe_pool_lease_is_held(array, lost));
    ck_assert_uint_eq(sxe_pool_lease_move(array, lost, FREE, NULL), SXE_POOL_LEASE_LOST);
    ck_assert_uint_eq(sxe_pool_lease_move(array, lost, BUSY, "lost, and not to be seen."),
                      SXE_POOL_LEASE_LOST);
    ck_assert_uint_eq(sxe_pool_lease_renew(array, lost), SXE_POOL_LEASE_LOST);
    ck_assert_uint_eq(sxe_pool_lease_write(array, lost, 1, 4, "lost"), SXE_POOL_LEASE_LOST);
    ck_assert_int_eq(sxe_pool_read_element(array, id, after), 0);
    ck_assert_mem_eq(before, after, ELEMENT);
    ck_assert_uint_eq(sxe_pool_get_state(array, id), state);
    ck_assert_uint_eq(sxe_pool_get_time(array, id), stamp);
}

/* ---- Leases that are held ---- */

START_TEST(a_lease_goes_on_with_what_is_done_with_it)
{
    open_kind(_i);
    const unsigned id = sxe_pool_lease_oldest(array, FREE, READY, first, &lease);

    ck_assert_uint_lt(id, 8);
    ck_assert_uint_eq(lease.id, id);
    ck_assert_uint_eq(lease.stamp, sxe_pool_get_time(array, id));
    ck_assert(sxe_pool_lease_is_held(array, &lease));
    expect_contents(id, "first");
    ck_assert_uint_eq(sxe_pool_lease_move(array, &lease, BUSY, NULL), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_state(array, id), BUSY);
    expect_contents(id, "first");
    const SXE_POOL_LEASE before = lease;
    ck_assert_uint_eq(sxe_pool_lease_renew(array, &lease), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_gt(lease.stamp, before.stamp);
    ck_assert_uint_eq(sxe_pool_lease_write(array, &lease, 2, 3, "ne\0"), SXE_POOL_LOCK_TAKEN);
    expect_contents(id, "fine");
    ck_assert(sxe_pool_lease_is_held(array, &lease));
    other = before;
    expect_lost(&other);
    ck_assert_uint_eq(sxe_pool_lease_move(array, &lease, READY, second), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_state(array, id), READY);
    expect_contents(id, "second");
    close_whole();
}
END_TEST

START_TEST(a_lease_is_of_an_element_that_is_named)
{
    open_kind(_i);
    lease.id = 5;
    ck_assert_uint_eq(sxe_pool_lease_indexed(array, BUSY, READY, first, &lease),
                      SXE_POOL_INCORRECT_STATE);
    expect_lost(&lease);
    expect_contents(5, "");
    ck_assert_uint_eq(sxe_pool_lease_indexed(array, FREE, BUSY, first, &lease),
                      SXE_POOL_LOCK_TAKEN);
    expect_contents(5, "first");
    ck_assert_uint_eq(sxe_pool_get_state(array, 5), BUSY);
    ck_assert_uint_eq(sxe_pool_lease_move(array, &lease, FREE, NULL), SXE_POOL_LOCK_TAKEN);
    close_whole();
}
END_TEST

START_TEST(a_lease_is_of_the_oldest_of_all)
{
    open_kind(_i);
    for (unsigned i = 0; i < 8; i++) {
        const unsigned id = i * 5 % 8;
        ck_assert_uint_eq(sxe_pool_move(array, id, FREE, READY), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_uint_eq(sxe_pool_lease_exact_oldest(array, READY, BUSY, first, &lease),
                          i * 5 % 8);
        ck_assert(sxe_pool_lease_is_held(array, &lease));
        expect_contents(lease.id, "first");
    }
    ck_assert_uint_eq(sxe_pool_lease_exact_oldest(array, READY, BUSY, first, &lease),
                      SXE_POOL_NO_INDEX);
    expect_lost(&lease);
    close_whole();
}
END_TEST

START_TEST(all_are_leased_once)
{
    open_kind(_i);
    unsigned met = 0;

    for (unsigned i = 0; i < 8; i++) {
        const unsigned id = sxe_pool_lease_oldest(array, FREE, READY, NULL, &lease);

        ck_assert_uint_lt(id, 8);
        met |= 1u << id;
    }
    ck_assert_uint_eq(met, 0xff);
    ck_assert_uint_eq(sxe_pool_lease_oldest(array, FREE, READY, NULL, &lease), SXE_POOL_NO_INDEX);
    expect_lost(&lease);
    close_whole();
}
END_TEST

/* ---- Leases that are lost ---- */

/* The changes that other processes may make to a job that is BUSY. */
static void
touch_it(void)
{
    sxe_pool_touch(array, lease.id);
}

static void
take_it_back(void)
{
    sxe_pool_move(array, lease.id, BUSY, READY);
}

static void
give_it_to_another(void)
{
    take_it_back();
    ck_assert_uint_eq(sxe_pool_lease_oldest(array, READY, BUSY, NULL, &other), lease.id);
}

static void
end_it(void)
{
    sxe_pool_move(array, lease.id, BUSY, FREE);
}

static void
give_another_its_place(void)
{
    end_it();
    other.id = lease.id;
    ck_assert_uint_eq(sxe_pool_lease_indexed(array, FREE, BUSY, second, &other), 0);
}

START_TEST(a_lease_is_lost_by_what_others_do)
{
    static void (*const deeds[])(void) = {touch_it, take_it_back, give_it_to_another, end_it,
                                          give_another_its_place};

    for (unsigned i = 0; i < SXE_COUNT(deeds); i++) {
        open_kind(_i);
        other = (SXE_POOL_LEASE){0};
        sxe_pool_lease_oldest(array, FREE, BUSY, first, &lease);
        deeds[i]();
        expect_lost(&lease);
        ck_assert(other.stamp == 0 ||
                  sxe_pool_lease_move(array, &other, FREE, NULL) == SXE_POOL_LOCK_TAKEN);
        close_whole();
    }
}
END_TEST

/* ---- Locks, and damage ---- */

START_TEST(a_lease_stays_while_a_lock_is_not_to_be_had)
{
    array = open_shared(PROCESSES, 1, ELEMENT, 1);
    char *holder = join(array);

    sxe_pool_lease_oldest(array, FREE, BUSY, NULL, &lease);
    const SXE_POOL_LEASE before = lease;
    ck_assert_int_eq(sxe__pool_lock(sharing_of(holder), &sharing_of(holder)->shards[0].lock), 0);
    ck_assert_uint_eq(sxe_pool_lease_move(array, &lease, READY, first), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_lease_renew(array, &lease), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_lease_write(array, &lease, 0, 1, "x"), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_lease_oldest(array, BUSY, READY, first, &other),
                      SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(other.stamp, 0);
    ck_assert(sxe_pool_lease_is_held(array, &lease));
    ck_assert_mem_eq(&lease, &before, sizeof(lease));
    sxe__pool_unlock(&sharing_of(holder)->shards[0].lock);
    expect_contents(0, "");
    ck_assert_uint_eq(sxe_pool_lease_move(array, &lease, READY, first), SXE_POOL_LOCK_TAKEN);
    sxe_pool_delete(holder);
    close_whole();
}
END_TEST

START_TEST(what_is_damaged_is_not_changed_with_a_lease)
{
    array = open_shared(PROCESSES, 2, ELEMENT, 1);
    sxe_log_set_level(SXE_LOG_FATAL);
    sxe_pool_lease_oldest(array, FREE, BUSY, NULL, &lease);
    node_of(array, 0)->prev = 1000;
    ck_assert_uint_eq(sxe_pool_lease_move(array, &lease, READY, NULL), SXE_POOL_DAMAGED);
    ck_assert_uint_eq(sharing_of(array)->head->damaged, 1);
    sharing_of(array)->nodes[2].next = 77;
    ck_assert_uint_eq(sxe_pool_lease_oldest(array, FREE, BUSY, NULL, &lease), SXE_POOL_DAMAGED);
    ck_assert_uint_eq(lease.stamp, 0);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Timeouts ---- */

static const double timeouts[STATES] = {[BUSY] = 1.0};
static unsigned results[2];

static void
free_what_is_due(void *pool, unsigned id, void *user)
{
    SXE_POOL_LEASE due;

    (void)user;
    sxe_pool_lease_due(pool, 1 - id, &due);
    ck_assert_uint_eq(due.stamp, 0);
    sxe_pool_lease_due(pool, id, &due);
    ck_assert(sxe_pool_lease_is_held(pool, &due));
    results[id] = sxe_pool_lease_move(pool, &due, FREE, NULL);
}

/* Before the callback acts, another process ends the job, and begins the next one in its place. */
static void
free_what_was_due(void *pool, unsigned id, void *user)
{
    SXE_POOL_LEASE due;

    (void)user;
    sxe_pool_move(pool, id, BUSY, FREE);
    sxe_pool_move(pool, id, FREE, BUSY);
    sxe_pool_lease_due(pool, id, &due);
    results[id] = sxe_pool_lease_move(pool, &due, FREE, NULL);
}

static void
let_both_expire(int footing, SXE_POOL_EVENT_TIMEOUT on_timeout)
{
    sxe_time_set_turn_ns(START);
    array = open_footing(footing, 2, ELEMENT);
    ck_assert_int_eq(sxe_pool_set_timeouts(array, timeouts, on_timeout, NULL), 0);
    for (unsigned id = 0; id < 2; id++) {
        sxe_pool_move(array, id, FREE, BUSY);
        results[id] = 4711;
    }
    sxe_time_set_turn_ns(START + 2 * SECOND);
    sxe_pool_check_timeouts();
}

START_TEST(what_is_due_is_leased_in_on_timeout)
{
    let_both_expire(_i, free_what_is_due);
    for (unsigned id = 0; id < 2; id++) {
        ck_assert_uint_eq(results[id], SXE_POOL_LOCK_TAKEN);
        ck_assert_uint_eq(sxe_pool_get_state(array, id), FREE);
    }
    sxe_pool_lease_due(array, 0, &lease);
    expect_lost(&lease);
    close_whole();
}
END_TEST

START_TEST(what_another_has_taken_meanwhile_is_not_due)
{
    let_both_expire(_i, free_what_was_due);
    for (unsigned id = 0; id < 2; id++) {
        ck_assert_uint_eq(results[id], SXE_POOL_LEASE_LOST);
        ck_assert_uint_eq(sxe_pool_get_state(array, id), BUSY);
    }
    close_whole();
}
END_TEST

START_TEST(nothing_is_due_in_a_pool_without_timeouts)
{
    open_kind(_i);
    sxe_pool_lease_due(array, 0, &lease);
    expect_lost(&lease);
    close_whole();
}
END_TEST

/* A worker that was stopped for longer than its lease lasts. */
START_TEST(who_wakes_up_late_ends_no_job_of_another)
{
    char *late = (array = open_shared(PROCESSES, 1, ELEMENT, 1));
    char *swift = join(array);

    ck_assert_uint_eq(sxe_pool_lease_oldest(late, FREE, BUSY, first, &lease), 0);
    const uint64_t handle = sxe_pool_get_handle(late, 0);
    ck_assert_uint_eq(sxe_pool_move(swift, 0, BUSY, READY), 0);
    ck_assert_uint_eq(sxe_pool_lease_oldest(swift, READY, BUSY, NULL, &other), 0);
    ck_assert_uint_eq(sxe_pool_handle_to_index(late, handle),
                      0); /* the handle does not show that another worker has the job */
    ck_assert_uint_eq(sxe_pool_lease_move(late, &lease, FREE, NULL), SXE_POOL_LEASE_LOST);
    ck_assert_uint_eq(sxe_pool_lease_move(swift, &other, FREE, NULL), SXE_POOL_LOCK_TAKEN);
    sxe_pool_delete(swift);
    close_whole();
}
END_TEST

/* ---- Misuse ---- */

static void
lease_an_element_that_is_not_there(void *pool)
{
    lease = (SXE_POOL_LEASE){.id = 8, .stamp = 1};
    sxe_pool_lease_renew(pool, &lease);
}

static void
lease_to_a_state_that_is_not_there(void *pool)
{
    sxe_pool_lease_oldest(pool, FREE, STATES, NULL, &lease);
}

START_TEST(elements_and_states_that_are_not_there_stop_the_program)
{
    open_kind(_i);
    ck_assert_ptr_nonnull(strstr(message_of(lease_an_element_that_is_not_there, array),
                                 "pool pond has no element 8, only 8"));
    ck_assert_ptr_nonnull(strstr(message_of(lease_to_a_state_that_is_not_there, array),
                                 "pool pond has no state 3, only 3"));
    close_whole();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-lease");
    TCase *tcase = tcase_create("lease");

    tcase_add_loop_test(tcase, a_lease_goes_on_with_what_is_done_with_it, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, a_lease_is_of_an_element_that_is_named, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, a_lease_is_of_the_oldest_of_all, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, all_are_leased_once, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, a_lease_is_lost_by_what_others_do, 0, LENGTH_OF(kinds));
    tcase_add_test(tcase, a_lease_stays_while_a_lock_is_not_to_be_had);
    tcase_add_test(tcase, what_is_damaged_is_not_changed_with_a_lease);
    tcase_add_loop_test(tcase, what_is_due_is_leased_in_on_timeout, 0, FOOTINGS);
    tcase_add_loop_test(tcase, what_another_has_taken_meanwhile_is_not_due, 0, FOOTINGS);
    tcase_add_loop_test(tcase, nothing_is_due_in_a_pool_without_timeouts, 0, LENGTH_OF(kinds));
    tcase_add_test(tcase, who_wakes_up_late_ends_no_job_of_another);
    tcase_add_loop_test(tcase, elements_and_states_that_are_not_there_stop_the_program, 0,
                        LENGTH_OF(kinds));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
