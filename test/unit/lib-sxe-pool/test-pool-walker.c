/* SPDX-License-Identifier: MIT
 *
 * Walks of a list that changes meanwhile. Random changes are in test-pool-oracle.c.
 */
#include "pool-of-ints.h"

#include "test-main.h"

static int *array;
static SXE_POOL_WALKER walker;

/* Elements 0 to 4 are BUSY, 5 to 9 FREE, and a walk of BUSY has met the first `met`. */
static void
walk_past(unsigned met)
{
    array = make_pool(10);
    for (unsigned id = 0; id < 5; id++)
        sxe_pool_move(array, id, FREE, BUSY);
    sxe_pool_walker_construct(&walker, array, BUSY);
    for (unsigned id = 0; id < met; id++)
        ck_assert_uint_eq(sxe_pool_walker_step(&walker), id);
}

static void
teardown(void)
{
    drop(array);
}

static void
move(unsigned id, unsigned new_state)
{
    sxe_pool_move(array, id, sxe_pool_get_state(array, id), new_state);
}

/* The rest of the walk must meet these ids, given as digits, and then end. */
static void
ck_assert_walks(const char *ids)
{
    for (; *ids != '\0'; ids++)
        ck_assert_uint_eq(sxe_pool_walker_step(&walker), (unsigned)(*ids - '0'));
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(sxe_pool_walker_step(&walker), SXE_POOL_NO_INDEX);
}

START_TEST(a_walk_meets_all_oldest_first)
{
    walk_past(0);
    sxe_pool_touch(array, 2);
    sxe_pool_walker_construct(&walker, array, BUSY);
    ck_assert_walks("01342");
}
END_TEST

START_TEST(a_walk_of_an_empty_state_meets_nothing)
{
    walk_past(0);
    sxe_pool_walker_construct(&walker, array, DONE);
    ck_assert_walks("");
    move(1, DONE);
    ck_assert_walks("");
}
END_TEST

START_TEST(a_touched_element_is_not_met_again)
{
    walk_past(2);
    sxe_pool_touch(array, 1);
    sxe_pool_touch(array, 0);
    ck_assert_walks("234");
}
END_TEST

START_TEST(an_element_touched_before_its_turn_counts_as_new)
{
    walk_past(2);
    sxe_pool_touch(array, 3);
    ck_assert_walks("24");
}
END_TEST

START_TEST(touching_each_met_ends_all_the_same)
{
    walk_past(0);
    for (unsigned id = 0; id < 5; id++) {
        ck_assert_uint_eq(sxe_pool_walker_step(&walker), id);
        sxe_pool_touch(array, id);
    }
    ck_assert_walks("");
}
END_TEST

START_TEST(the_element_last_met_may_move)
{
    walk_past(2);
    move(1, DONE);
    ck_assert_walks("234");
}
END_TEST

START_TEST(the_next_element_may_move)
{
    walk_past(2);
    move(2, DONE);
    ck_assert_walks("34");
}
END_TEST

START_TEST(both_may_move)
{
    walk_past(2);
    move(1, DONE);
    move(2, DONE);
    ck_assert_walks("34");
}
END_TEST

START_TEST(a_moved_element_that_comes_back_is_not_met_again)
{
    walk_past(2);
    move(1, DONE);
    move(1, BUSY);
    ck_assert_walks("234");
}
END_TEST

START_TEST(the_next_that_comes_back_counts_as_new)
{
    walk_past(2);
    move(2, DONE);
    move(2, BUSY);
    ck_assert_walks("34");
}
END_TEST

START_TEST(both_may_come_back)
{
    walk_past(2);
    move(2, DONE);
    move(1, DONE);
    move(1, BUSY);
    move(2, BUSY);
    ck_assert_walks("34");
}
END_TEST

START_TEST(elements_already_met_may_move_while_both_move)
{
    walk_past(3);
    move(0, DONE);
    move(2, DONE);
    move(3, FREE);
    ck_assert_walks("4");
}
END_TEST

START_TEST(the_last_met_may_move_at_the_end)
{
    walk_past(5);
    move(4, DONE);
    ck_assert_walks("");
    sxe_pool_touch(array, 3);
    ck_assert_walks("");
}
END_TEST

START_TEST(everything_may_be_removed)
{
    walk_past((unsigned)_i);
    for (unsigned id = 0; id < 5; id++)
        move(id, DONE);
    ck_assert_walks("");
}
END_TEST

START_TEST(everything_may_be_removed_as_it_is_met)
{
    walk_past(0);
    for (unsigned id = 0; id < 5; id++) {
        ck_assert_uint_eq(sxe_pool_walker_step(&walker), id);
        move(id, FREE);
    }
    ck_assert_walks("");
}
END_TEST

START_TEST(the_list_may_grow)
{
    walk_past((unsigned)_i);
    move(7, BUSY);
    move(5, BUSY);
    ck_assert_walks(&"01234"[_i]);
}
END_TEST

START_TEST(the_list_may_be_replaced)
{
    walk_past((unsigned)_i);
    for (unsigned id = 0; id < 5; id++)
        move(id, DONE);
    for (unsigned id = 5; id < 10; id++)
        move(id, BUSY);
    ck_assert_walks("");
}
END_TEST

START_TEST(the_clock_may_stand_still_or_go_back)
{
    sxe_time_set_turn_ns(1000000);
    walk_past(2);
    move(7, BUSY);
    sxe_time_set_turn_ns(1);
    sxe_pool_touch(array, 1);
    move(8, BUSY);
    ck_assert_walks("234");
}
END_TEST

START_TEST(walks_do_not_disturb_each_other)
{
    SXE_POOL_WALKER other;

    walk_past(2);
    sxe_pool_walker_construct(&other, array, BUSY);
    ck_assert_uint_eq(sxe_pool_walker_step(&other), 0);
    move(1, DONE);
    ck_assert_uint_eq(sxe_pool_walker_step(&other), 2);
    ck_assert_walks("234");
    ck_assert_uint_eq(sxe_pool_walker_step(&other), 3);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-walker");
    TCase *tcase = tcase_create("walker");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, a_walk_meets_all_oldest_first);
    tcase_add_test(tcase, a_walk_of_an_empty_state_meets_nothing);
    tcase_add_test(tcase, a_touched_element_is_not_met_again);
    tcase_add_test(tcase, an_element_touched_before_its_turn_counts_as_new);
    tcase_add_test(tcase, touching_each_met_ends_all_the_same);
    tcase_add_test(tcase, the_element_last_met_may_move);
    tcase_add_test(tcase, the_next_element_may_move);
    tcase_add_test(tcase, both_may_move);
    tcase_add_test(tcase, a_moved_element_that_comes_back_is_not_met_again);
    tcase_add_test(tcase, the_next_that_comes_back_counts_as_new);
    tcase_add_test(tcase, both_may_come_back);
    tcase_add_test(tcase, elements_already_met_may_move_while_both_move);
    tcase_add_test(tcase, the_last_met_may_move_at_the_end);
    tcase_add_loop_test(tcase, everything_may_be_removed, 0, 6);
    tcase_add_test(tcase, everything_may_be_removed_as_it_is_met);
    tcase_add_loop_test(tcase, the_list_may_grow, 0, 6);
    tcase_add_loop_test(tcase, the_list_may_be_replaced, 0, 6);
    tcase_add_test(tcase, the_clock_may_stand_still_or_go_back);
    tcase_add_test(tcase, walks_do_not_disturb_each_other);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
