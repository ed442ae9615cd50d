/* SPDX-License-Identifier: MIT
 *
 * Wrong calls that end the program, in every build, and their messages.
 */
#include "pool-of-ints.h"

#include <signal.h>

#include "stops.h"
#include "test-main.h"

static void
use_a_wrong_old_state(void *array)
{
    sxe_pool_move(array, 3, DONE, FREE);
}

static void
use_an_old_state_that_is_none(void *array)
{
    sxe_pool_move(array, 3, 77, FREE);
}

static void
use_a_new_state_that_is_one_too_far(void *array)
{
    sxe_pool_move(array, 3, BUSY, STATES);
}

static void
use_an_id_that_is_one_too_far(void *array)
{
    sxe_pool_move(array, 5, FREE, BUSY);
}

static void
try_an_id_that_is_none(void *array)
{
    unsigned state = BUSY;

    ck_assert_uint_eq(sxe_pool_try_move(array, SXE_NONE, FREE, &state), 0);
}

static void
try_an_old_state_that_is_none(void *array)
{
    unsigned state = BUSY;

    ck_assert_uint_eq(sxe_pool_try_move(array, 3, STATES, &state), 0);
}

static void
try_a_new_state_that_is_none(void *array)
{
    unsigned state = STATES;

    ck_assert_uint_eq(sxe_pool_try_move(array, 3, FREE, &state), 0);
}

static void
take_the_oldest_of_no_state(void *array)
{
    sxe_pool_take(array, STATES, FREE);
}

static void
take_the_oldest_to_no_state(void *array)
{
    sxe_pool_take(array, FREE, STATES);
}

static void
take_none_to_no_state(void *array)
{
    sxe_pool_take(array, DONE, STATES);
}

static void
touch_none(void *array)
{
    sxe_pool_touch(array, 5);
}

static void
count_no_state(void *array)
{
    sxe_pool_get_count(array, STATES);
}

static void
ask_for_the_oldest_of_no_state(void *array)
{
    sxe_pool_get_oldest(array, STATES);
}

static void
ask_for_the_youngest_of_no_state(void *array)
{
    sxe_pool_get_youngest(array, STATES);
}

static void
ask_for_the_time_of_no_state(void *array)
{
    sxe_pool_get_oldest_time(array, STATES);
}

static void
ask_for_the_state_of_none(void *array)
{
    sxe_pool_get_state(array, 5);
}

static void
ask_for_the_time_of_none(void *array)
{
    sxe_pool_get_time(array, 5);
}

static void
ask_for_the_handle_of_none(void *array)
{
    sxe_pool_get_handle(array, 5);
}

static void
walk_no_state(void *array)
{
    SXE_POOL_WALKER walker;

    sxe_pool_walker_construct(&walker, array, STATES);
}

static void
delete_what_is_not_from_new(void *array)
{
    sxe_pool_delete(array);
}

static void
use_another_array(void *array)
{
    sxe_pool_get_number((char *)array + SXE__POOL_ALIGNMENT);
}

static void
write_past_the_end(void *array)
{
    memset(array, 0, sxe__pool_header(array)->nodes_offset + sizeof(struct sxe__pool_node));
    sxe_pool_touch(array, 0);
}

static void
write_text_past_the_end(void *array)
{
    memset(array, 'A', sxe__pool_header(array)->nodes_offset + 2 * sizeof(uint32_t));
    sxe_pool_touch(array, 0);
}

static const struct {
    void (*call)(void *array);
    const char *numbers; /* the message if states have no names */
    const char *names;   /* the message if states have names; NULL: the same as `numbers` */
} stops[] = {
    {use_a_wrong_old_state, "     3 1 - ERROR: assertion 'nodes[id].state == old_state' failed at ",
     NULL},
    {use_a_wrong_old_state, "; pool cess: element 3 is in state 1, not 2 (to go to 0)\n",
     "; pool cess: element 3 is in state BUSY, not DONE (to go to FREE)\n"},
    {use_an_old_state_that_is_none, "element 3 is in state 1, not 77 (to go to 0)",
     "element 3 is in state BUSY, not 77 (to go to FREE)"},
    {use_a_new_state_that_is_one_too_far,
     "pool cess has no state 3, only 3, for element 3 which is in state 1\n",
     "pool cess has no state 3, only 3, for element 3 which is in state BUSY\n"},
    {use_an_id_that_is_one_too_far, "     5 1 - ERROR", NULL},
    {use_an_id_that_is_one_too_far, "pool cess has no element 5, only 5\n", NULL},
    {try_an_id_that_is_none, "pool cess has no element 4294967295, only 5\n", NULL},
    {try_an_old_state_that_is_none, "pool cess has no state 3, only 3, for element 3", NULL},
    {try_a_new_state_that_is_none, "pool cess has no state 3, only 3, for element 3", NULL},
    {take_the_oldest_of_no_state, "pool cess has no state 3, only 3\n", NULL},
    {take_the_oldest_to_no_state, "pool cess has no state 3, only 3\n", NULL},
    {take_none_to_no_state, "pool cess has no state 3, only 3\n", NULL},
    {touch_none, "pool cess has no element 5, only 5\n", NULL},
    {count_no_state, "pool cess has no state 3, only 3\n", NULL},
    {ask_for_the_oldest_of_no_state, "pool cess has no state 3, only 3\n", NULL},
    {ask_for_the_youngest_of_no_state, "pool cess has no state 3, only 3\n", NULL},
    {ask_for_the_time_of_no_state, "pool cess has no state 3, only 3\n", NULL},
    {ask_for_the_state_of_none, "pool cess has no element 5, only 5\n", NULL},
    {ask_for_the_time_of_none, "pool cess has no element 5, only 5\n", NULL},
    {ask_for_the_handle_of_none, "pool cess has no element 5, only 5\n", NULL},
    {walk_no_state, "pool cess has no state 3, only 3\n", NULL},
    {delete_what_is_not_from_new, "pool cess is not from sxe_pool_new\n", NULL},
    {use_another_array, " is not the array of a pool\n", NULL},
    {write_past_the_end, "pool cess: the node of element 0 was overwritten\n", NULL},
    {write_text_past_the_end, "pool cess: the node of element 0 was overwritten\n", NULL},
};

static int *
make_pool_to_misuse(void)
{
    int *array = make_pool(5);

    sxe_pool_move(array, 3, FREE, BUSY);
    return array;
}

START_TEST(misuse_stops_with_a_message_that_says_which_and_where)
{
    int *array = make_pool_to_misuse();

    check_has(message_of(stops[_i].call, array), stops[_i].numbers);
    drop(array);
}
END_TEST

START_TEST(the_message_uses_the_names_of_states)
{
    int *array = make_pool_to_misuse();

    ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), 0);
    check_has(message_of(stops[_i].call, array),
              stops[_i].names == NULL ? stops[_i].numbers : stops[_i].names);
    ck_assert_int_eq(sxe_pool_set_state_to_string(array, NULL), 0);
    drop(array);
}
END_TEST

START_TEST(misuse_aborts)
{
    capture_log();
    stops[_i].call(make_pool_to_misuse());
}
END_TEST

START_TEST(nothing_else_moves_when_a_new_state_is_out_of_range)
{
    int *array = make_pool_to_misuse();

    message_of(use_a_new_state_that_is_one_too_far, array);
    ck_assert_uint_eq(sxe_pool_get_state(array, 3), BUSY);
    ck_assert_uint_eq(sxe_pool_get_count(array, FREE), 4);
    for (unsigned id = 0; id < 5; id++)
        sxe_pool_touch(array, id);
    drop(array);
}
END_TEST

START_TEST(moves_are_traced_in_checked_builds)
{
    int *array = make_pool(1);

    ck_assert_int_eq(sxe_pool_set_state_to_string(array, state_name), 0);
    capture_log();
    sxe_log_set_library_level("sxe-pool", SXE_LOG_TRACE);
    sxe_pool_move(array, 0, FREE, BUSY);
    ck_assert_str_eq(log_line(0), SXE_CHECKED ? "     0 6 - pool cess: FREE -> BUSY\n" : "");
    ck_assert_int_eq(sxe_pool_set_state_to_string(array, NULL), 0);
    drop(array);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-misuse");
    TCase *tcase = tcase_create("misuse");

    tcase_add_loop_test(tcase, misuse_stops_with_a_message_that_says_which_and_where, 0,
                        LENGTH_OF(stops));
    tcase_add_loop_test(tcase, the_message_uses_the_names_of_states, 0, LENGTH_OF(stops));
    tcase_add_loop_test_raise_signal(tcase, misuse_aborts, SIGABRT, 0, LENGTH_OF(stops));
    tcase_add_test(tcase, nothing_else_moves_when_a_new_state_is_out_of_range);
    tcase_add_test(tcase, moves_are_traced_in_checked_builds);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
