/* SPDX-License-Identifier: MIT
 *
 * Timeouts that are refused, and calls that end the program.
 */
#include "sxe-pool-private.h"

#include <errno.h>
#include <math.h>
#include <signal.h>

#include "fake-os.h"
#include "stops.h"
#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define SECOND           SXE_NS_PER_SECOND
#define START            (1000 * SECOND)

enum { FREE, BUSY, DONE, STATES };

static const double timeouts[STATES] = {0.0, 1.0, 2.5};

static const char *
state_name(unsigned state)
{
    return state == BUSY ? "BUSY" : "other";
}

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

static void
do_nothing(void *array, unsigned id, void *user)
{
    (void)array, (void)id, (void)user;
}

static const struct {
    SXE_POOL_EVENT_TIMEOUT on_timeout;
    const char *message;
} wrong_callbacks[] = {
    {delete_its_own_pool, "pool wrong deleted from its own on_timeout\n"},
    {check_again, "timeouts checked from the on_timeout of pool wrong\n"},
    {do_nothing, "pool wrong: on_timeout neither moved nor touched element 1 in state 1\n"},
};

static void *
make_wrong_pool(int nth)
{
    sxe_time_set_turn_ns(START);
    void *array = sxe_pool_new_with_timeouts("wrong", 2, 1, STATES, timeouts,
                                             wrong_callbacks[nth].on_timeout, NULL);

    sxe_pool_move(array, 1, FREE, BUSY);
    return array;
}

static void
check_late(void *unused)
{
    (void)unused;
    sxe_time_set_turn_ns(START + 10 * SECOND);
    sxe_pool_check_timeouts();
}

START_TEST(a_wrong_callback_stops_with_a_message)
{
    void *array = make_wrong_pool(_i);

    check_has(message_of(check_late, NULL), wrong_callbacks[_i].message);
    sxe__pool_locals->checking = false;
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_wrong_callback_aborts)
{
    capture_log();
    make_wrong_pool(_i);
    check_late(NULL);
}
END_TEST

/* ---- Calls that are refused ---- */

static const struct {
    const char *name;
    double timeouts[2];
    bool has_timeouts;
    SXE_POOL_EVENT_TIMEOUT on_timeout;
} refused[] = {
    {"negative", {0.0, -1.0}, true, do_nothing},    {"not a number", {NAN, 0.0}, true, do_nothing},
    {"no timeouts", {0.0, 0.0}, false, do_nothing}, {"no callback", {0.0, 0.0}, true, NULL},
    {NULL, {0.0, 0.0}, true, do_nothing},
};

START_TEST(impossible_timeouts_are_refused)
{
    errno = 0;
    ck_assert_ptr_null(sxe_pool_new_with_timeouts(
        refused[_i].name, 1, 1, 2, refused[_i].has_timeouts ? refused[_i].timeouts : NULL,
        refused[_i].on_timeout, NULL));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(sxe__pool_locals);
}
END_TEST

START_TEST(without_memory_there_is_no_pool)
{
    fake_os_fail(FAKE_CALLOC, (unsigned)_i, 1, ENOMEM);
    errno = 0;
    ck_assert_ptr_null(sxe_pool_new_with_timeouts("dry", 1, 1, STATES, timeouts, do_nothing, NULL));
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert_ptr_null(sxe__pool_locals);
}
END_TEST

static void
set_a_timeout_of_no_state(void *array)
{
    sxe_pool_set_state_timeout(array, STATES, 1.0);
}

static void
set_a_negative_timeout(void *array)
{
    sxe_pool_set_state_timeout(array, BUSY, -1.0);
}

static void
set_a_timeout_that_is_no_number(void *array)
{
    sxe_pool_set_state_timeout(array, BUSY, NAN);
}

static void
set_a_timeout(void *array)
{
    sxe_pool_set_state_timeout(array, BUSY, 1.0);
}

static const struct {
    void (*call)(void *array);
    const char *message;
} stops[] = {
    {set_a_timeout_of_no_state, "pool wrong has no state 3, only 3\n"},
    {set_a_negative_timeout, "pool wrong: the timeout of state 1 cannot be -1.000000 s\n"},
    {set_a_timeout_that_is_no_number, "pool wrong: the timeout of state 1 cannot be nan s\n"},
};

START_TEST(setting_a_wrong_timeout_stops_with_a_message)
{
    void *array = make_wrong_pool(0);

    check_has(message_of(stops[_i].call, array), stops[_i].message);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(setting_a_timeout_of_a_plain_pool_stops_with_a_message)
{
    void *array = sxe_pool_new("plain", 1, 1, STATES, SXE_POOL_OPTION_UNLOCKED);

    if (_i)
        ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), 0);
    check_has(message_of(set_a_timeout, array),
              "pool plain was not made with timeouts in this thread\n");
    sxe_pool_delete(array);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-timeout-misuse");
    TCase *tcase = tcase_create("misuse");

    tcase_add_loop_test(tcase, a_wrong_callback_stops_with_a_message, 0,
                        LENGTH_OF(wrong_callbacks));
    tcase_add_loop_test_raise_signal(tcase, a_wrong_callback_aborts, SIGABRT, 0,
                                     LENGTH_OF(wrong_callbacks));
    tcase_add_loop_test(tcase, impossible_timeouts_are_refused, 0, LENGTH_OF(refused));
    tcase_add_loop_test(tcase, without_memory_there_is_no_pool, 1, 3);
    tcase_add_loop_test(tcase, setting_a_wrong_timeout_stops_with_a_message, 0, LENGTH_OF(stops));
    tcase_add_loop_test(tcase, setting_a_timeout_of_a_plain_pool_stops_with_a_message, 0, 2);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
