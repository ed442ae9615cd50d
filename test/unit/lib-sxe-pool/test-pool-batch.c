/* SPDX-License-Identifier: MIT
 *
 * Calls that move many elements under one lock, on each footing.
 */
#include "shared-pool.h"

#include <poll.h>

#include "stops.h"
#include "test-main.h"

enum { NUMBER = 100 };

static const struct {
    int footing;
    unsigned shards;
} kinds[] = {{ONE_THREAD, 1}, {THREADS, 1}, {THREADS, 4}, {PROCESSES, 1}, {PROCESSES, 4}};

static char *
open_kind(int kind)
{
    return kinds[kind].footing == ONE_THREAD
               ? open_footing(ONE_THREAD, NUMBER, 1)
               : open_shared(kinds[kind].footing, NUMBER, 1, kinds[kind].shards);
}

static void
close_whole(char *array)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    if (sxe__pool_header(array)->sharing != NULL)
        ck_assert_msg(sxe_pool_check(array, why) == 0, "%s", why);
    sxe_pool_delete(array);
}

/* ---- Taking the oldest elements ---- */

START_TEST(the_oldest_are_taken_in_their_order)
{
    char *array = open_kind(_i);
    unsigned ids[SXE_POOL_MANY];
    unsigned number = 0;

    for (unsigned taken = 1; taken != 0; number += taken) {
        taken = sxe_pool_take_many(array, FREE, READY, ids, 7);
        ck_assert_uint_le(taken, 7);
        for (unsigned i = 0; i < taken; i++) {
            ck_assert_uint_eq(sxe_pool_get_state(array, ids[i]), READY);
            ck_assert(i == 0 || ids[i] > ids[i - 1]);
            ck_assert(i == 0 ||
                      sxe_pool_get_time(array, ids[i]) > sxe_pool_get_time(array, ids[i - 1]));
        }
    }
    ck_assert_uint_eq(number, NUMBER);
    ck_assert_uint_eq(sxe_pool_get_count(array, READY), NUMBER);
    close_whole(array);
}
END_TEST

START_TEST(no_more_are_taken_than_there_is_room_for)
{
    char *array = open_kind(_i);
    unsigned ids[SXE_POOL_MANY + 1];
    unsigned taken = 0;

    ids[SXE_POOL_MANY] = 12345;
    ck_assert_uint_eq(sxe_pool_take_many(array, FREE, READY, ids, 0), 0);
    ck_assert_uint_eq(sxe_pool_take_many(array, FREE, READY, ids, 1), 1);
    ck_assert_uint_eq(sxe_pool_take_many(array, BUSY, READY, ids, 1), 0);
    taken = sxe_pool_take_many(array, FREE, READY, ids, NUMBER);
    ck_assert_uint_eq(taken, kinds[_i].shards == 1 ? SXE_POOL_MANY : taken);
    ck_assert_uint_eq(ids[SXE_POOL_MANY], 12345);
    ck_assert_uint_eq(sxe_pool_get_count(array, READY), 1 + taken);
    close_whole(array);
}
END_TEST

static void
take_to_the_same_state(void *array)
{
    unsigned ids[2];

    sxe_pool_take_many(array, READY, READY, ids, 2);
}

START_TEST(many_to_the_state_they_are_in_stop_the_program)
{
    char *array = open_kind(_i);

    ck_assert_ptr_nonnull(strstr(message_of(take_to_the_same_state, array),
                                 "pool pond: elements cannot move from state 1 to the same state"));
    sxe_pool_delete(array);
}
END_TEST

/* ---- Moving elements by their ids ---- */

START_TEST(those_that_are_named_go_in_their_order)
{
    static const unsigned ids[] = {50, 3, 99, 4, 5};
    char *array = open_kind(_i);

    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 5, FREE, READY), 5);
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 0, FREE, READY), 0);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(sxe_pool_get_state(array, ids[i]), READY);
        if (kinds[_i].shards == 1)
            ck_assert_uint_eq(sxe_pool_take(array, READY, BUSY), ids[i]);
    }
    close_whole(array);
}
END_TEST

START_TEST(the_first_that_is_in_another_state_is_the_last)
{
    static const unsigned ids[] = {1, 2, 3, 4};
    char *array = open_kind(_i);

    ck_assert_uint_eq(sxe_pool_move(array, 3, FREE, BUSY), 0);
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 4, FREE, READY), 2);
    ck_assert_uint_eq(sxe_pool_get_state(array, 4), FREE);
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 4, FREE, READY), SXE_POOL_INCORRECT_STATE);
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 4, READY, FREE), 2);
    close_whole(array);
}
END_TEST

static void
move_one_too_far(void *array)
{
    static const unsigned ids[] = {1, NUMBER};

    sxe_pool_move_many(array, ids, 2, FREE, READY);
}

START_TEST(an_element_that_does_not_exist_stops_the_program_before_any_moves)
{
    char *array = open_kind(_i);

    ck_assert_ptr_nonnull(
        strstr(message_of(move_one_too_far, array), "pool pond has no element 100, only 100"));
    ck_assert_uint_eq(sxe_pool_get_state(array, 1), FREE);
    close_whole(array);
}
END_TEST

/* ---- Locks, damage, waiting processes ---- */

START_TEST(a_shard_that_is_locked_ends_it)
{
    char *array = open_shared(PROCESSES, NUMBER, 1, 2);
    char *other = join(array);
    unsigned ids[] = {0, 1};
    unsigned taken[4];

    while (sxe__pool_shard_of(sharing_of(array), ids[1]) == 0)
        ids[1]++;
    sharing_of(array)->shards[1].lock = sharing_of(other)->token;
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 2, FREE, READY), 1);
    sharing_of(array)->shards[0].lock = sharing_of(other)->token;
    ck_assert_uint_eq(sxe_pool_move_many(array, ids + 1, 1, FREE, READY), SXE_POOL_LOCK_NOT_TAKEN);
    ck_assert_uint_eq(sxe_pool_take_many(array, FREE, BUSY, taken, 4), SXE_POOL_LOCK_NOT_TAKEN);
    sharing_of(array)->shards[0].lock = 0;
    sharing_of(array)->shards[1].lock = 0;
    sxe_pool_delete(other);
    close_whole(array);
}
END_TEST

/* Damage to element 2, the third of FREE, and how many elements move before the call finds it. */
static const struct {
    size_t offset;
    uint32_t value;
    unsigned expected;
} damages[] = {
    {offsetof(struct sxe__pool_node, state), 2, 2},  /* claims to be BUSY */
    {offsetof(struct sxe__pool_node, state), 77, 2}, /* there is no state 77 */
    {offsetof(struct sxe__pool_node, next), 999, 2},
    {offsetof(struct sxe__pool_node, prev), 2, 1},
};

START_TEST(damage_ends_it)
{
    static const unsigned ids[] = {0, 1, 2, 3};
    const bool takes = _i % 2 == 0;
    char *array = open_shared(PROCESSES, NUMBER, 1, 1);
    unsigned taken[4];

    memcpy((char *)node_of(array, 2) + damages[_i / 2].offset, &damages[_i / 2].value,
           sizeof(uint32_t));
    capture_log();
    ck_assert_uint_eq(takes ? sxe_pool_take_many(array, FREE, READY, taken, 4)
                            : sxe_pool_move_many(array, ids, 4, FREE, READY),
                      damages[_i / 2].expected);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(damage_to_the_first_is_said)
{
    static const unsigned ids[] = {2};
    char *array = open_shared(PROCESSES, NUMBER, 1, 1);

    node_of(array, 2)->next = 999;
    capture_log();
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 1, FREE, READY), SXE_POOL_DAMAGED);
    ck_assert(logged("pool pond is damaged"));
    sxe_pool_delete(array);
}
END_TEST

/* The damage is in the list to which the elements should go, not at its end. */
START_TEST(a_state_whose_list_is_damaged_is_not_entered)
{
    static const unsigned ids[] = {2};
    char *array = open_shared(PROCESSES, NUMBER, 1, 1);

    node_of(array, NUMBER + READY)->prev = 7;
    capture_log();
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 1, FREE, READY), SXE_POOL_DAMAGED);
    ck_assert(logged("pool pond is damaged"));
    sxe_pool_delete(array);
}
END_TEST

START_TEST(who_waits_is_woken)
{
    static const unsigned ids[] = {8, 9};
    char *array = open_shared(PROCESSES, NUMBER, 1, 1);
    struct pollfd polled = {.fd = sxe_pool_get_watch_fd(array), .events = POLLIN};
    unsigned taken[3];

    ck_assert_int_eq(sxe_pool_watch(array, READY), 0);
    ck_assert_uint_eq(sxe_pool_move_many(array, ids, 2, FREE, READY), 2);
    ck_assert_int_eq(poll(&polled, 1, 0), 1);
    sxe_pool_watch_read(array);
    ck_assert_int_eq(sxe_pool_watch(array, BUSY), 0);
    ck_assert_uint_eq(sxe_pool_take_many(array, FREE, BUSY, taken, 3), 3);
    ck_assert_int_eq(poll(&polled, 1, 0), 1);
    close_whole(array);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-batch");
    TCase *t = tcase_create("footings");

    tcase_add_loop_test(t, the_oldest_are_taken_in_their_order, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(t, no_more_are_taken_than_there_is_room_for, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(t, many_to_the_state_they_are_in_stop_the_program, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(t, those_that_are_named_go_in_their_order, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(t, the_first_that_is_in_another_state_is_the_last, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(t, an_element_that_does_not_exist_stops_the_program_before_any_moves, 0,
                        LENGTH_OF(kinds));
    suite_add_tcase(s, t);

    t = tcase_create("trouble");
    tcase_add_test(t, a_shard_that_is_locked_ends_it);
    tcase_add_loop_test(t, damage_ends_it, 0, 2 * LENGTH_OF(damages));
    tcase_add_test(t, damage_to_the_first_is_said);
    tcase_add_test(t, a_state_whose_list_is_damaged_is_not_entered);
    tcase_add_test(t, who_waits_is_woken);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
