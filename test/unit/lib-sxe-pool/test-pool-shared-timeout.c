/* SPDX-License-Identifier: MIT
 *
 * Timeouts of shared pools: one process at a time runs them; if it dies, another one does.
 */
#include "shared-pool.h"

#include <errno.h>
#include <math.h>

#include "event-queue.h"
#include "fake-os.h"
#include "fake-time.h"
#include "stops.h"
#include "test-main.h"

#define SECOND SXE_NS_PER_SECOND
#define START  (1000 * SECOND)

static const double timeouts[STATES] = {0.0, 1.0, 2.5};
static const int footings[] = {THREADS, PROCESSES};

/* ---- Callbacks ---- */

static void
free_it(void *array, unsigned id, void *user)
{
    const unsigned state = sxe_pool_get_state(array, id);

    (void)user;
    event_push("free", array, (long)id);
    ck_assert_uint_eq(sxe_pool_move(array, id, state, FREE), SXE_POOL_LOCK_TAKEN);
}

static void
leave_it(void *array, unsigned id, void *user)
{
    (void)user;
    event_push("left", array, (long)id);
}

static void
touch_it(void *array, unsigned id, void *user)
{
    (void)user;
    event_push("touched", array, (long)id);
    sxe_pool_touch(array, id);
}

#define EXPECT_EVENT(wanted, wanted_id)                     \
    do {                                                    \
        const struct event *event = event_pop();            \
        ck_assert_str_eq(event->name, wanted);              \
        ck_assert_int_eq(event->number, (long)(wanted_id)); \
    } while (0)

static char *
open_timed(int footing, unsigned number, unsigned shards, SXE_POOL_EVENT_TIMEOUT on_timeout)
{
    sxe_time_set_turn_ns(START);
    char *array = open_shared(footing, number, 1, shards);

    ck_assert_int_eq(sxe_pool_set_timeouts(array, timeouts, on_timeout, NULL), 0);
    return array;
}

static void
check_at(uint64_t ns)
{
    sxe_time_set_turn_ns(START + ns);
    sxe_pool_check_timeouts();
}

static void
put_at(uint64_t ns, char *array, unsigned id, unsigned state)
{
    sxe_time_set_turn_ns(START + ns);
    ck_assert_uint_eq(sxe_pool_move(array, id, sxe_pool_get_state(array, id), state),
                      SXE_POOL_LOCK_TAKEN);
}

/* ---- The time of a timeout ---- */

START_TEST(a_timeout_comes_not_a_nanosecond_early)
{
    char *array = open_timed(footings[_i], 1, 1, free_it);

    put_at(10, array, 0, READY);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 10 + SECOND);
    check_at(9 + SECOND);
    ck_assert_uint_eq(event_count(), 0);
    check_at(10 + SECOND);
    EXPECT_EVENT("free", 0);
    check_at(100 * SECOND);
    sxe_pool_delete(array);
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_ptr_null(sxe__pool_locals);
}
END_TEST

START_TEST(the_oldest_of_all_shards_comes_first)
{
    static const unsigned order[] = {6, 1, 3, 0, 7, 2, 5, 4};
    char *array = open_timed(footings[_i], 8, 4, free_it);

    for (unsigned i = 0; i < 8; i++)
        put_at(10 + i, array, order[i], READY);
    put_at(20, array, 4, BUSY);
    check_at(5 * SECOND);
    for (unsigned i = 0; i < 8; i++)
        EXPECT_EVENT("free", order[i]);
    ck_assert_uint_eq(event_count(), 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(who_is_touched_waits_for_the_next_check)
{
    char *array = open_timed(footings[_i], 3, 1, touch_it);

    for (unsigned id = 0; id < 3; id++)
        put_at(id, array, id, READY);
    for (unsigned i = 1; i < 4; i++) {
        check_at(i * 10 * SECOND);
        for (unsigned id = 0; id < 3; id++)
            EXPECT_EVENT("touched", id);
        ck_assert_uint_eq(event_count(), 0);
    }
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_pool_of_one_thread_may_have_its_timeouts_later)
{
    sxe_time_set_turn_ns(START);
    char *array = open_footing(ONE_THREAD, 1, 1);

    ck_assert_int_eq(sxe_pool_set_timeouts(array, timeouts, free_it, NULL), 0);
    put_at(10, array, 0, READY);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 10 + SECOND);
    check_at(10 + SECOND);
    EXPECT_EVENT("free", 0);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
    sxe_pool_delete(array);
}
END_TEST

static const char *
state_name(unsigned state)
{
    return state == READY ? "READY" : "other";
}

START_TEST(timeouts_may_be_set_again_and_beside_names)
{
    static const double others[STATES] = {0.0, 5.0, 0.0};

    sxe_time_set_turn_ns(START);
    char *array = open_shared(PROCESSES, 2, 1, 1);

    ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), 0);
    ck_assert_int_eq(sxe_pool_set_timeouts(array, timeouts, free_it, NULL), 0);
    ck_assert_int_eq(sxe_pool_set_timeouts(array, others, leave_it, NULL), 0);
    ck_assert_str_eq(sxe_pool_state_to_string(array, READY), "READY");
    put_at(0, array, 0, READY);
    check_at(3 * SECOND);
    ck_assert_uint_eq(event_count(), 0);
    sxe_pool_set_state_timeout(array, READY, 3.0);
    check_at(3 * SECOND + 1000);
    EXPECT_EVENT("left", 0);
    sxe_pool_delete(array);
    ck_assert_ptr_null(sxe__pool_locals);
}
END_TEST

START_TEST(time_goes_on_where_it_was_before_a_restart)
{
    char *array = open_timed(PROCESSES, 2, 1, free_it);

    sharing_of(array)->time_offset_ns = 3600 * SECOND;
    put_at(10, array, 0, READY);
    ck_assert_uint_eq(sxe_pool_get_time(array, 0), START + 10 + 3600 * SECOND);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 10 + SECOND);
    /* As after a restart of the machine: the clock begins near 0, the pool's time goes on. */
    sharing_of(array)->time_offset_ns += START;
    sxe_time_set_turn_ns(11);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 10 + SECOND);
    sxe_pool_check_timeouts();
    ck_assert_uint_eq(event_count(), 0);
    sharing_of(array)->time_offset_ns += 50 * SECOND;
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 11);
    sxe_pool_check_timeouts();
    EXPECT_EVENT("free", 0);
    sxe_pool_delete(array);
}
END_TEST

/* Another process may move an element meanwhile, whose timeout is earlier than those that this
 * process knows. */
START_TEST(the_next_look_is_at_most_a_second_ahead)
{
    char *array = open_timed(footings[_i], 2, 1, free_it);

    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + SECOND);
    put_at(0, array, 0, BUSY);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + SECOND);
    sxe_time_set_turn_ns(START + 2 * SECOND);
    ck_assert_uint_le(sxe_pool_get_next_timeout(), START + 5 * SECOND / 2 + 10);
    sxe_pool_delete(array);
}
END_TEST

/* ---- The process that calls on_timeout ---- */

START_TEST(while_one_runs_them_another_does_not_and_looks_again_soon)
{
    char *array = open_timed(PROCESSES, 2, 1, free_it);
    char *other = join(array);

    put_at(10, array, 0, READY);
    sharing_of(array)->head->timeouts = sharing_of(other)->token;
    check_at(5 * SECOND);
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 5 * SECOND + SXE_NS_PER_MS);
    sharing_of(array)->head->timeouts = 0;
    check_at(5 * SECOND);
    EXPECT_EVENT("free", 0);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 6 * SECOND);
    sxe_pool_delete(other);
    sxe_pool_delete(array);
}
END_TEST

static void
die(void *array, unsigned id, void *user)
{
    (void)array, (void)id, (void)user;
    raise(SIGKILL);
}

START_TEST(if_one_dies_running_them_another_goes_on)
{
    char *array = open_timed(PROCESSES, 2, 1, free_it);

    put_at(10, array, 0, READY);
    const pid_t child = fork();
    if (child == 0) {
        (void)!sxe_pool_set_timeouts(array, timeouts, die, NULL);
        check_at(5 * SECOND);
        _exit(0);
    }
    end_child(child, SIGKILL);
    ck_assert_uint_ne(sharing_of(array)->head->timeouts, 0);
    check_at(5 * SECOND);
    EXPECT_EVENT("free", 0);
    ck_assert_uint_eq(sharing_of(array)->head->timeouts, 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(what_on_timeout_leaves_is_asked_again_and_holds_up_only_its_shard)
{
    char *array = open_timed(PROCESSES, 8, 4, leave_it);

    for (unsigned id = 0; id < 6; id++)
        put_at(id, array, id, READY);
    for (unsigned i = 1; i <= 2; i++) {
        check_at(5 * SECOND + i);
        for (unsigned id = 0; id < 4; id++)
            EXPECT_EVENT("left", id);
        ck_assert_uint_eq(event_count(), 0);
        ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 5 * SECOND + i + SXE_NS_PER_MS);
    }
    sxe_pool_delete(array);
}
END_TEST

/* Another process is in the middle of moving the element: it is on the list of READY with the state
 * BUSY. */
START_TEST(an_element_on_the_list_of_another_state_is_passed_by)
{
    char *array = open_timed(PROCESSES, 2, 1, free_it);

    put_at(0, array, 0, READY);
    node_of(array, 0)->state = BUSY;
    check_at(9 * SECOND);
    ck_assert_uint_eq(event_count(), 0);
    node_of(array, 0)->state = READY;
    check_at(9 * SECOND);
    EXPECT_EVENT("free", 0);
    sxe_pool_delete(array);
}
END_TEST

static void
break_links(void *array, unsigned id, void *user)
{
    (void)user;
    node_of(array, id)->stamp--;
    event_push("broken", array, (long)id);
}

START_TEST(a_damaged_pool_does_not_keep_us_for_ever)
{
    char *array = open_timed(PROCESSES, 5, 1, break_links);

    put_at(0, array, 0, READY);
    check_at(9 * SECOND);
    ck_assert_uint_eq(event_count(), 5);
    while (event_count() > 0)
        event_pop();
    sxe_pool_delete(array);
}
END_TEST

/* ---- Timeouts that are refused ---- */

static const struct {
    double timeouts[STATES];
    bool has_timeouts;
    SXE_POOL_EVENT_TIMEOUT on_timeout;
} refused[] = {
    {{0.0, -1.0, 0.0}, true, free_it},
    {{0.0, 1.0, (double)NAN}, true, free_it},
    {{0.0}, false, free_it},
    {{0.0}, true, NULL},
};

START_TEST(impossible_timeouts_are_refused)
{
    char *array = open_shared(PROCESSES, 1, 1, 1);

    ck_assert_int_eq(sxe_pool_set_timeouts(array,
                                           refused[_i].has_timeouts ? refused[_i].timeouts : NULL,
                                           refused[_i].on_timeout, NULL),
                     -EINVAL);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(without_memory_there_are_no_timeouts)
{
    char *array = open_shared(PROCESSES, 1, 1, 1);

    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe_pool_set_timeouts(array, timeouts, free_it, NULL), -ENOMEM);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
    sxe_pool_delete(array);
}
END_TEST

static void
delete_its_own_pool(void *array, unsigned id, void *user)
{
    (void)id, (void)user;
    sxe_pool_delete(array);
}

static void
check_again(void *array, unsigned id, void *user)
{
    (void)array, (void)id, (void)user;
    sxe_pool_check_timeouts();
}

static const struct {
    SXE_POOL_EVENT_TIMEOUT on_timeout;
    const char *message;
} wrong_callbacks[] = {
    {delete_its_own_pool, "pool pond deleted from its own on_timeout\n"},
    {check_again, "timeouts checked from the on_timeout of pool pond\n"},
};

static void
check_late(void *unused)
{
    (void)unused;
    check_at(9 * SECOND);
}

START_TEST(a_wrong_callback_stops_with_a_message)
{
    char *array = open_timed(PROCESSES, 1, 1, wrong_callbacks[_i].on_timeout);

    put_at(0, array, 0, READY);
    check_has(message_of(check_late, NULL), wrong_callbacks[_i].message);
    sxe__pool_locals->checking = false;
    sxe_pool_delete(array);
}
END_TEST

static TCase *
when(void)
{
    TCase *tcase = tcase_create("when");

    tcase_add_loop_test(tcase, a_timeout_comes_not_a_nanosecond_early, 0, LENGTH_OF(footings));
    tcase_add_loop_test(tcase, the_oldest_of_all_shards_comes_first, 0, LENGTH_OF(footings));
    tcase_add_loop_test(tcase, who_is_touched_waits_for_the_next_check, 0, LENGTH_OF(footings));
    tcase_add_test(tcase, a_pool_of_one_thread_may_have_its_timeouts_later);
    tcase_add_test(tcase, timeouts_may_be_set_again_and_beside_names);
    tcase_add_test(tcase, time_goes_on_where_it_was_before_a_restart);
    tcase_add_loop_test(tcase, the_next_look_is_at_most_a_second_ahead, 0, LENGTH_OF(footings));
    return tcase;
}

static pid_t parent;

/* Parent and child both return from the callback, so that sxe_pool_check_timeouts ends in each of
 * them; the child does so first, while the parent waits for its end. */
static void
fork_and_free_it(void *array, unsigned id, void *user)
{
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0)
        return;
    end_child(child, 0);
    ck_assert_uint_eq(sharing_of(array)->head->timeouts, sharing_of(array)->token);
    free_it(array, id, user);
}

START_TEST(a_child_that_comes_back_from_on_timeout_does_not_release_its_parent)
{
    char *array = open_timed(PROCESSES, 1, 1, fork_and_free_it);

    parent = getpid();
    put_at(10, array, 0, READY);
    check_at(5 * SECOND);
    if (getpid() != parent)
        _exit(0);
    EXPECT_EVENT("free", 0);
    ck_assert_uint_eq(sharing_of(array)->head->timeouts, 0);
    sxe_pool_delete(array);
}
END_TEST

static TCase *
who(void)
{
    TCase *tcase = tcase_create("who");

    tcase_add_test(tcase, while_one_runs_them_another_does_not_and_looks_again_soon);
    tcase_add_test(tcase, if_one_dies_running_them_another_goes_on);
    tcase_add_test(tcase, what_on_timeout_leaves_is_asked_again_and_holds_up_only_its_shard);
    tcase_add_test(tcase, an_element_on_the_list_of_another_state_is_passed_by);
    tcase_add_test(tcase, a_damaged_pool_does_not_keep_us_for_ever);
    tcase_add_test(tcase, a_child_that_comes_back_from_on_timeout_does_not_release_its_parent);
    return tcase;
}

static TCase *
refusals(void)
{
    TCase *tcase = tcase_create("refusals");

    tcase_add_loop_test(tcase, impossible_timeouts_are_refused, 0, LENGTH_OF(refused));
    tcase_add_test(tcase, without_memory_there_are_no_timeouts);
    tcase_add_loop_test(tcase, a_wrong_callback_stops_with_a_message, 0,
                        LENGTH_OF(wrong_callbacks));
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("pool-shared-timeout");

    suite_add_tcase(suite, when());
    suite_add_tcase(suite, who());
    suite_add_tcase(suite, refusals());
    return sxe_test_main(suite);
}
