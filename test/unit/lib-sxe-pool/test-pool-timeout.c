/* SPDX-License-Identifier: MIT
 *
 * Timeouts of private pools: none comes early, each comes once and in order, whatever the callback
 * does.
 */
#include "sxe-pool-private.h"

#include <check.h>
#include <math.h>
#include <pthread.h>

#include "event-queue.h"
#include "fake-time.h"
#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define SECOND           SXE_NS_PER_SECOND
#define START            (1000 * SECOND)

enum { FREE, BUSY, DONE, STATES };

static const double timeouts[STATES] = {0.0, 1.0, 2.5};

/* The action of on_timeout after it has recorded the event: chosen by its user data. */
enum { TO_FREE, TO_DONE, TOUCH, LEAVE_AND_RETURN, NOTHING };

static int plans[] = {TO_FREE, TO_DONE, TOUCH, LEAVE_AND_RETURN, NOTHING};

static void
tell_and_act(void *array, unsigned id, void *user)
{
    const unsigned state = sxe_pool_get_state(array, id);

    event_push(sxe_pool_get_name(array), array, (long)id);
    switch (*(int *)user) {
    case TO_DONE:
        if (state != DONE) {
            sxe_pool_move(array, id, state, DONE);
            break;
        }
        /* fall through */
    case TO_FREE:
        sxe_pool_move(array, id, state, FREE);
        break;
    case TOUCH:
        sxe_pool_touch(array, id);
        break;
    case LEAVE_AND_RETURN:
        sxe_pool_move(array, id, state, FREE);
        ck_assert_uint_eq(sxe_pool_take(array, FREE, state), id);
        break;
    }
}

static const char *
state_name(unsigned state)
{
    return state == BUSY ? "BUSY" : "other";
}

static char *
make_pool(const char *name, unsigned number, int plan)
{
    sxe_time_set_turn_ns(START);
    char *array =
        sxe_pool_new_with_timeouts(name, number, 1, STATES, timeouts, tell_and_act, &plans[plan]);

    ck_assert_ptr_nonnull(array);
    return array;
}

static void
check_at(uint64_t ns)
{
    sxe_time_set_turn_ns(START + ns);
    sxe_pool_check_timeouts();
}

static void
ck_assert_event(const char *name, long id)
{
    const struct event *event = event_pop();

    ck_assert_str_eq(event->name, name);
    ck_assert_int_eq(event->number, id);
}

/* When all pools are deleted, no record of a timeout is left. */
static void
ck_assert_all_gone(void)
{
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_ptr_null(sxe__pool_locals);
}

/* ---- The time of a timeout ----
 * Stamps are unique: the nth move in a turn of the loop gets the turn's time plus n ns. Making the
 * pool has used the first numbers. */

START_TEST(a_timeout_comes_not_a_nanosecond_early)
{
    char *array = make_pool("tidal", 1, TO_FREE);

    sxe_time_set_turn_ns(START + 10);
    sxe_pool_move(array, 0, FREE, BUSY);
    check_at(10);
    check_at(9 + SECOND);
    ck_assert_uint_eq(event_count(), 0);
    check_at(10 + SECOND);
    ck_assert_event("tidal", 0);
    ck_assert_uint_eq(sxe_pool_get_state(array, 0), FREE);
    check_at(1000 * SECOND);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

START_TEST(a_touch_begins_the_time_anew)
{
    char *array = make_pool("tidal", 2, TO_FREE);

    sxe_pool_move(array, 0, FREE, BUSY);
    sxe_pool_move(array, 1, FREE, BUSY);
    sxe_time_set_turn_ns(START + SECOND / 2);
    sxe_pool_touch(array, 0);
    check_at(SECOND + 10);
    ck_assert_event("tidal", 1);
    check_at(SECOND + SECOND / 2 - 1);
    ck_assert_uint_eq(event_count(), 0);
    check_at(SECOND + SECOND / 2);
    ck_assert_event("tidal", 0);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

START_TEST(setting_the_wall_clock_changes_nothing)
{
    char *array = make_pool("tidal", 1, TO_FREE);

    sxe_time_set_turn_ns(0);
    fake_time_start(START, START);
    sxe_pool_move(array, 0, FREE, BUSY);
    fake_time_step_wall(-(int64_t)SECOND);
    sxe_pool_check_timeouts();
    fake_time_step_wall(3600 * (int64_t)SECOND);
    sxe_pool_check_timeouts();
    ck_assert_uint_eq(event_count(), 0);
    fake_time_advance(SECOND + 1);
    sxe_pool_check_timeouts();
    ck_assert_event("tidal", 0);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

START_TEST(a_clock_that_goes_back_fires_nothing)
{
    char *array = make_pool("tidal", 1, TO_FREE);

    sxe_pool_move(array, 0, FREE, BUSY);
    sxe_time_set_turn_ns(1);
    sxe_pool_check_timeouts();
    ck_assert_uint_eq(event_count(), 0);
    sxe_pool_delete(array);
}
END_TEST

static const struct {
    double seconds;
    uint64_t ns; /* 0: never */
} conversions[] = {
    {0.0, 0},
    {-0.0, 0},
    {1e-9, 1},
    {1e-12, 1},
    {1.5e-9, 2},
    {0.25, SECOND / 4},
    {3600.0, 3600 * SECOND},
    {9e9, UINT64_C(9000000000) * SECOND},
    {9.3e9, 0},
    {1e300, 0},
    {INFINITY, 0},
};

START_TEST(timeouts_are_rounded_up_and_the_longest_never_come)
{
    char *array = make_pool("tidal", 1, TO_FREE);
    const uint64_t ns = conversions[_i].ns;

    sxe_pool_move(array, 0, FREE, BUSY);
    sxe_pool_set_state_timeout(array, BUSY, conversions[_i].seconds);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), ns == 0 ? 0 : START + 1 + ns);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(the_next_timeout_is_the_earliest_of_all)
{
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
    char *slow = make_pool("slow", 1, TO_FREE);
    char *fast = make_pool("fast", 2, TO_FREE);

    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
    sxe_pool_move(slow, 0, FREE, DONE);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 1 + 5 * SECOND / 2);
    sxe_pool_move(fast, 1, FREE, BUSY);
    sxe_pool_move(fast, 0, FREE, BUSY);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 2 + SECOND);
    sxe_time_set_turn_ns(START + 9 * SECOND);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 2 + SECOND);
    sxe_pool_move(fast, 1, BUSY, FREE);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), START + 3 + SECOND);
    sxe_pool_delete(fast);
    sxe_pool_delete(slow);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
}
END_TEST

START_TEST(a_changed_timeout_holds_for_who_is_there)
{
    char *array = make_pool("tidal", 2, TO_FREE);

    sxe_pool_move(array, 0, FREE, BUSY);
    sxe_pool_set_state_timeout(array, BUSY, 0.0);
    check_at(100 * SECOND);
    ck_assert_uint_eq(event_count(), 0);
    sxe_pool_set_state_timeout(array, BUSY, 10.0);
    check_at(100 * SECOND);
    ck_assert_event("tidal", 0);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

/* ---- Elements that time out, and their order ---- */

START_TEST(timeouts_come_pool_by_pool_state_by_state_oldest_first)
{
    char *first = make_pool("first", 4, TO_FREE);
    char *second = make_pool("second", 4, TO_FREE);

    sxe_pool_move(second, 3, FREE, BUSY);
    sxe_pool_move(first, 2, FREE, DONE);
    sxe_pool_move(first, 1, FREE, DONE);
    sxe_pool_move(first, 3, FREE, BUSY);
    check_at(10 * SECOND);
    ck_assert_event("first", 3);
    ck_assert_event("first", 2);
    ck_assert_event("first", 1);
    ck_assert_event("second", 3);
    sxe_pool_delete(first);
    sxe_pool_delete(second);
    ck_assert_all_gone();
}
END_TEST

START_TEST(an_element_may_move_to_another_timed_state)
{
    char *array = make_pool("tidal", 2, TO_DONE);

    sxe_pool_move(array, 1, FREE, BUSY);
    check_at(100 * SECOND);
    ck_assert_event("tidal", 1);
    ck_assert_uint_eq(sxe_pool_get_state(array, 1), DONE);
    check_at(102 * SECOND);
    ck_assert_uint_eq(event_count(), 0);
    check_at(100 * SECOND + 5 * SECOND / 2);
    ck_assert_event("tidal", 1);
    ck_assert_uint_eq(sxe_pool_get_state(array, 1), FREE);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

static const int staying[] = {TOUCH, LEAVE_AND_RETURN};

START_TEST(who_stays_is_called_once_a_check_even_where_the_clock_stands_still)
{
    char *array = make_pool("tidal", 1, staying[_i]);

    sxe_pool_move(array, 0, FREE, BUSY);
    for (unsigned i = 1; i <= 3; i++) {
        check_at(i * 10 * SECOND);
        ck_assert_event("tidal", 0);
        ck_assert_uint_eq(event_count(), 0);
        check_at(i * 10 * SECOND);
        ck_assert_uint_eq(event_count(), 0);
    }
    sxe_pool_delete(array);
}
END_TEST

START_TEST(who_stays_is_called_once_a_check_even_where_time_flies)
{
    char *array = make_pool("tidal", 3, TOUCH);

    while (sxe_pool_take(array, FREE, BUSY) != SXE_POOL_NO_INDEX)
        ;
    sxe_pool_set_state_timeout(array, BUSY, 1e-9);
    sxe_time_set_turn_ns(0);
    fake_time_start(START + SECOND, START);
    sxe_pool_check_timeouts();
    ck_assert_event("tidal", 0);
    ck_assert_event("tidal", 1);
    ck_assert_event("tidal", 2);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

START_TEST(a_pool_that_only_has_names_has_no_timeouts)
{
    void *plain = sxe_pool_new("plain", 1, 1, STATES, SXE_POOL_OPTION_UNLOCKED);

    ck_assert_int_eq(sxe_pool_set_state_to_string(plain, state_name), 0);
    sxe_pool_move(plain, 0, FREE, BUSY);
    check_at(100 * SECOND);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
    sxe_pool_delete(plain);
    ck_assert_all_gone();
}
END_TEST

START_TEST(names_and_timeouts_go_together)
{
    void *array = make_pool("tidal", 1, TO_FREE);

    ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), 0);
    ck_assert_str_eq(sxe_pool_state_to_string(array, BUSY), "BUSY");
    ck_assert_int_eq(sxe_pool_set_state_to_string(array, NULL), 0);
    ck_assert_str_eq(sxe_pool_state_to_string(array, BUSY), "1");
    sxe_pool_move(array, 0, FREE, BUSY);
    check_at(10 * SECOND);
    ck_assert_event("tidal", 0);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

static void *
check_in_another_thread(void *unused)
{
    check_at(100 * SECOND);
    ck_assert_uint_eq(sxe_pool_get_next_timeout(), 0);
    return unused;
}

START_TEST(pools_of_other_threads_are_not_checked)
{
    char *array = make_pool("tidal", 1, TO_FREE);
    pthread_t thread;

    sxe_pool_move(array, 0, FREE, BUSY);
    ck_assert_int_eq(pthread_create(&thread, NULL, check_in_another_thread, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(event_count(), 0);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Against a model ---- */

enum { NUMBER = 20, ROUNDS = 3000 };

static struct {
    unsigned state;
    uint64_t stamp;
} model[NUMBER];

/* The oldest element in a state that is due, or NUMBER: none. */
static unsigned
find_due(unsigned state, uint64_t now_ns)
{
    const uint64_t timeout_ns = (uint64_t)(timeouts[state] * 1e9);
    unsigned found = NUMBER;

    for (unsigned id = 0; id < NUMBER && timeout_ns != 0; id++) {
        if (model[id].state == state && model[id].stamp + timeout_ns <= now_ns &&
            (found == NUMBER || model[id].stamp < model[found].stamp))
            found = id;
    }
    return found;
}

static void
note(char *array, unsigned id)
{
    model[id].state = sxe_pool_get_state(array, id);
    model[id].stamp = sxe_pool_get_time(array, id);
}

START_TEST(random_moves_time_out_as_in_a_plain_array)
{
    char *array = make_pool("tidal", NUMBER, TO_DONE);
    uint32_t random = 2463534242u + (uint32_t)_i;
    uint64_t elapsed = NUMBER;

    for (unsigned id = 0; id < NUMBER; id++)
        note(array, id);
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        const unsigned id = (random >> 8) % NUMBER;

        elapsed += (random >> 4) % (SECOND / 10);
        sxe_time_set_turn_ns(START + elapsed);
        sxe_pool_move(array, id, model[id].state, (random >> 16) % STATES);
        note(array, id);
        if (random >> 31)
            continue;
        sxe_pool_check_timeouts();
        for (unsigned state = 0; state < STATES; state++) {
            for (unsigned due = find_due(state, START + elapsed); due != NUMBER;
                 due = find_due(state, START + elapsed)) {
                ck_assert_event("tidal", due);
                note(array, due);
            }
        }
        ck_assert_uint_eq(event_count(), 0);
    }
    sxe_pool_delete(array);
}
END_TEST

/* ---- Calls that a callback may make ---- */

static void *other;

static void
delete_another_pool(void *array, unsigned id, void *user)
{
    (void)user;
    sxe_pool_delete(other);
    other = NULL;
    sxe_pool_touch(array, id);
}

START_TEST(a_callback_may_delete_another_pool)
{
    char *before = _i ? make_pool("other", 1, NOTHING) : NULL;
    sxe_time_set_turn_ns(START);
    void *array =
        sxe_pool_new_with_timeouts("deleter", 1, 1, STATES, timeouts, delete_another_pool, NULL);

    other = _i ? before : make_pool("other", 1, NOTHING);
    char *last = make_pool("last", 1, TO_FREE);

    sxe_pool_move(array, 0, FREE, BUSY);
    sxe_pool_move(last, 0, FREE, BUSY);
    if (!_i)
        sxe_pool_move(other, 0, FREE, BUSY);
    check_at(10 * SECOND);
    ck_assert_ptr_null(other);
    ck_assert_event("last", 0);
    sxe_pool_delete(array);
    sxe_pool_delete(last);
    ck_assert_all_gone();
}
END_TEST

static void
make_another_pool(void *array, unsigned id, void *user)
{
    (void)user;
    other =
        sxe_pool_new_with_timeouts("other", 3, 1, STATES, timeouts, tell_and_act, &plans[NOTHING]);
    sxe_pool_move(other, 2, FREE, BUSY);
    sxe_pool_touch(array, id);
}

START_TEST(a_callback_may_make_another_pool)
{
    sxe_time_set_turn_ns(START);
    void *array =
        sxe_pool_new_with_timeouts("maker", 1, 1, STATES, timeouts, make_another_pool, NULL);

    sxe_pool_move(array, 0, FREE, BUSY);
    check_at(10 * SECOND);
    ck_assert_uint_eq(sxe_pool_get_state(other, 2), BUSY);
    sxe_pool_delete(array);
    sxe_pool_delete(other);
    ck_assert_all_gone();
}
END_TEST

static void
stop_the_timeout(void *array, unsigned id, void *user)
{
    event_push("stop", user, (long)id);
    sxe_pool_set_state_timeout(array, BUSY, 0.0);
    sxe_pool_touch(array, id);
}

START_TEST(a_callback_may_change_the_timeout)
{
    sxe_time_set_turn_ns(START);
    void *array =
        sxe_pool_new_with_timeouts("stopper", 2, 1, STATES, timeouts, stop_the_timeout, NULL);

    sxe_pool_move(array, 0, FREE, BUSY);
    sxe_pool_move(array, 1, FREE, BUSY);
    check_at(10 * SECOND);
    ck_assert_event("stop", 0);
    sxe_pool_delete(array);
    ck_assert_all_gone();
}
END_TEST

static TCase *
when(void)
{
    TCase *tcase = tcase_create("when");

    tcase_add_test(tcase, a_timeout_comes_not_a_nanosecond_early);
    tcase_add_test(tcase, a_touch_begins_the_time_anew);
    tcase_add_test(tcase, setting_the_wall_clock_changes_nothing);
    tcase_add_test(tcase, a_clock_that_goes_back_fires_nothing);
    tcase_add_loop_test(tcase, timeouts_are_rounded_up_and_the_longest_never_come, 0,
                        LENGTH_OF(conversions));
    tcase_add_test(tcase, the_next_timeout_is_the_earliest_of_all);
    tcase_add_test(tcase, a_changed_timeout_holds_for_who_is_there);
    return tcase;
}

static TCase *
who(void)
{
    TCase *tcase = tcase_create("who");

    tcase_add_test(tcase, timeouts_come_pool_by_pool_state_by_state_oldest_first);
    tcase_add_test(tcase, an_element_may_move_to_another_timed_state);
    tcase_add_loop_test(tcase, who_stays_is_called_once_a_check_even_where_the_clock_stands_still,
                        0, LENGTH_OF(staying));
    tcase_add_test(tcase, who_stays_is_called_once_a_check_even_where_time_flies);
    tcase_add_test(tcase, a_pool_that_only_has_names_has_no_timeouts);
    tcase_add_test(tcase, names_and_timeouts_go_together);
    tcase_add_test(tcase, pools_of_other_threads_are_not_checked);
    tcase_add_loop_test(tcase, random_moves_time_out_as_in_a_plain_array, 0, 5);
    return tcase;
}

static void
tell_pool(void *user, const void *array)
{
    ck_assert_ptr_eq(user, plans);
    event_push(sxe_pool_get_name(array), (void *)(uintptr_t)array, 0);
}

START_TEST(pools_with_names_or_timeouts_are_shown_in_the_order_of_these)
{
    int *timed =
        sxe_pool_new_with_timeouts("timed", 2, sizeof(int), STATES, timeouts, tell_and_act, plans);
    int *plain = sxe_pool_new("plain", 2, sizeof(int), STATES, 0);
    int *named = sxe_pool_new("named", 2, sizeof(int), STATES, 0);

    ck_assert_int_eq(sxe_pool_set_state_to_string(named, state_name), 0);
    sxe_pool_each(tell_pool, plans);
    ck_assert_str_eq(event_pop()->name, "timed");
    ck_assert_str_eq(event_pop()->name, "named");
    sxe_pool_delete(timed);
    sxe_pool_delete(plain);
    sxe_pool_delete(named);
    sxe_pool_each(tell_pool, plans);
    ck_assert_uint_eq(event_count(), 0);
}
END_TEST

static TCase *
callbacks(void)
{
    TCase *tcase = tcase_create("callbacks");

    tcase_add_loop_test(tcase, a_callback_may_delete_another_pool, 0, 2);
    tcase_add_test(tcase, a_callback_may_make_another_pool);
    tcase_add_test(tcase, pools_with_names_or_timeouts_are_shown_in_the_order_of_these);
    tcase_add_test(tcase, a_callback_may_change_the_timeout);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("pool-timeout");

    suite_add_tcase(suite, when());
    suite_add_tcase(suite, who());
    suite_add_tcase(suite, callbacks());
    return sxe_test_main(suite);
}
