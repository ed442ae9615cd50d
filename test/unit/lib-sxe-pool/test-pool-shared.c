/* SPDX-License-Identifier: MIT
 *
 * The calls of sxe-pool.h on shared pools: they have the same results as on others, and some that
 * only shared pools have.
 */
#include "shared-pool.h"

#include <string.h>

#include "stops.h"
#include "test-main.h"

enum { NUMBER = 32 };

/* Each footing with one shard and with several. */
static const struct {
    int footing;
    unsigned shards;
} kinds[] = {{THREADS, 1}, {THREADS, 4}, {PROCESSES, 1}, {PROCESSES, 4}, {PROCESSES, 32}};

static char *
open_kind(int kind)
{
    return open_shared(kinds[kind].footing, NUMBER, sizeof(int), kinds[kind].shards);
}

static void
put(char *array, unsigned id, unsigned old_state, unsigned new_state)
{
    ck_assert_uint_eq(sxe_pool_move(array, id, old_state, new_state), SXE_POOL_LOCK_TAKEN);
}

static unsigned
count(const char *array, unsigned state)
{
    return sxe_pool_get_count(array, state);
}

static void
check_whole(char *array)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    ck_assert_msg(sxe_pool_check(array, why) == 0, "%s", why);
    sxe_pool_delete(array);
}

/* ---- Results as on other pools ---- */

START_TEST(a_change_is_seen_in_state_count_time_and_handle)
{
    char *array = open_kind(_i);
    const uint64_t handle = sxe_pool_get_handle(array, 5);
    const SXE_TIME before = sxe_pool_get_time(array, 5);

    ck_assert_uint_eq(count(array, FREE), NUMBER);
    put(array, 5, FREE, READY);
    ck_assert_uint_eq(sxe_pool_get_state(array, 5), READY);
    ck_assert_uint_eq(count(array, FREE), NUMBER - 1);
    ck_assert_uint_eq(count(array, READY), 1);
    ck_assert_uint_gt(sxe_pool_get_time(array, 5), before);
    ck_assert_uint_eq(sxe_pool_get_oldest_time(array, READY), sxe_pool_get_time(array, 5));
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, handle), 5);
    put(array, 5, READY, FREE);
    ck_assert_uint_eq(sxe_pool_handle_to_index(array, handle), SXE_POOL_NO_INDEX);
    check_whole(array);
}
END_TEST

START_TEST(an_attempt_says_the_state_that_it_found)
{
    char *array = open_kind(_i);
    unsigned state = BUSY;

    ck_assert_uint_eq(sxe_pool_try_move(array, 3, FREE, &state), 3);
    ck_assert_uint_eq(state, BUSY);
    state = READY;
    ck_assert_uint_eq(sxe_pool_try_move(array, 3, FREE, &state), SXE_POOL_INCORRECT_STATE);
    ck_assert_uint_eq(state, BUSY);
    ck_assert_uint_eq(count(array, READY), 0);
    check_whole(array);
}
END_TEST

START_TEST(the_ends_of_a_state_are_those_of_all_shards)
{
    char *array = open_kind(_i);

    ck_assert_uint_eq(sxe_pool_get_oldest(array, FREE), 0);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, FREE), NUMBER - 1);
    ck_assert_uint_eq(sxe_pool_get_oldest(array, READY), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, READY), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_oldest_time(array, READY), 0);
    sxe_time_set_turn_ns(sxe_time_ns() + SXE_NS_PER_SECOND);
    ck_assert_uint_eq(sxe_pool_touch(array, 0), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_oldest(array, FREE), 1);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, FREE), 0);
    ck_assert_uint_eq(sxe_pool_touch(array, 0), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, FREE), 0);
    check_whole(array);
}
END_TEST

START_TEST(every_element_is_taken_once)
{
    char *array = open_kind(_i);
    bool taken[NUMBER] = {false};

    for (unsigned i = 0; i < NUMBER; i++) {
        const unsigned id = sxe_pool_take(array, FREE, BUSY);

        ck_assert_uint_lt(id, NUMBER);
        ck_assert(!taken[id]);
        taken[id] = true;
    }
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(count(array, BUSY), NUMBER);
    check_whole(array);
}
END_TEST

START_TEST(the_exact_oldest_is_that_of_all_shards)
{
    static const unsigned order[] = {9, 2, 31, 16, 15, 4};
    char *array = open_kind(_i);
    const uint64_t begin = sxe_time_ns() + SXE_NS_PER_SECOND;

    for (unsigned i = 0; i < 6; i++) {
        sxe_time_set_turn_ns(begin + i * SXE_NS_PER_MS);
        put(array, order[i], FREE, READY);
    }
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(sxe_pool_take_exact(array, READY, BUSY), order[i]);
    ck_assert_uint_eq(sxe_pool_take_exact(array, READY, BUSY), SXE_POOL_NO_INDEX);
    check_whole(array);
}
END_TEST

START_TEST(the_exact_oldest_is_for_pools_of_one_thread_too)
{
    char *array = open_footing(ONE_THREAD, 3, 1);

    ck_assert_uint_eq(sxe_pool_take_exact(array, FREE, BUSY), 0);
    ck_assert_uint_eq(sxe_pool_take_exact(array, READY, BUSY), SXE_POOL_NO_INDEX);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_walk_meets_who_stays_once_and_nobody_who_came)
{
    char *array = open_kind(_i);
    bool met[NUMBER] = {false};
    SXE_POOL_WALKER walker;
    unsigned steps = 0;

    for (unsigned id = 0; id < NUMBER; id += 2)
        put(array, id, FREE, READY);
    sxe_pool_walker_construct(&walker, array, READY);
    for (unsigned id = sxe_pool_walker_step(&walker); id != SXE_POOL_NO_INDEX;
         id = sxe_pool_walker_step(&walker)) {
        ck_assert_uint_lt(id, NUMBER);
        ck_assert(!met[id]);
        met[id] = true;
        steps++;
        if (steps % 3 == 0) /* the element just met leaves the state and comes back */
            ck_assert_uint_eq(sxe_pool_touch(array, id), SXE_POOL_LOCK_TAKEN);
        if (steps % 3 == 1)
            put(array, id, READY, BUSY);
    }
    ck_assert_uint_eq(steps, NUMBER / 2);
    ck_assert_uint_eq(sxe_pool_walker_step(&walker), SXE_POOL_NO_INDEX);
    check_whole(array);
}
END_TEST

/* ---- States that another process may have changed ---- */

static char *wrong_array;

static void
set_from_a_wrong_state(void *array)
{
    sxe_pool_move(array, 1, READY, BUSY);
}

START_TEST(a_wrong_old_state_is_an_answer_among_processes)
{
    char *array = open_shared(PROCESSES, 2, 1, 1);

    ck_assert_uint_eq(sxe_pool_move(array, 1, READY, BUSY), SXE_POOL_INCORRECT_STATE);
    check_whole(array);
}
END_TEST

START_TEST(a_wrong_old_state_stops_the_program_among_threads)
{
    wrong_array = open_shared(THREADS, 2, 1, 1);
    check_has(message_of(set_from_a_wrong_state, wrong_array),
              "pool pond: element 1 is in state 0, not 1 (to go to 2)\n");
    sxe_pool_delete(wrong_array);
}
END_TEST

/* Each call that takes a lock, made for element 1. That is the oldest of FREE; 0 is BUSY. */
static unsigned
call_set(char *array)
{
    return sxe_pool_move(array, 1, FREE, READY);
}

static unsigned
call_try(char *array)
{
    unsigned state = READY;
    const unsigned result = sxe_pool_try_move(array, 1, FREE, &state);

    return result == 1 ? SXE_POOL_LOCK_TAKEN : result;
}

static unsigned
call_touch(char *array)
{
    return sxe_pool_touch(array, 1);
}

static unsigned
call_take(char *array)
{
    const unsigned result = sxe_pool_take(array, FREE, READY);

    return result == 1 ? SXE_POOL_LOCK_TAKEN : result;
}

static unsigned
call_exact(char *array)
{
    const unsigned result = sxe_pool_take_exact(array, FREE, READY);

    return result == 1 ? SXE_POOL_LOCK_TAKEN : result;
}

static unsigned
call_walk(char *array)
{
    SXE_POOL_WALKER walker;

    sxe_pool_walker_construct(&walker, array, FREE);
    const unsigned result = sxe_pool_walker_step(&walker);
    return result == 1 ? SXE_POOL_LOCK_TAKEN : result;
}

static unsigned (*const calls[])(char *array) = {call_set,  call_try,   call_touch,
                                                 call_take, call_exact, call_walk};

/* A pool of two elements; with two shards there is one in each. */
static char *
open_two(unsigned shards)
{
    char *array = open_shared(PROCESSES, 2, 1, shards);

    put(array, 0, FREE, BUSY);
    return array;
}

START_TEST(a_lock_that_is_taken_changes_nothing)
{
    for (unsigned shards = 1; shards <= 2; shards++) {
        char *array = open_two(shards);
        char *other = join(array);
        const SXE_TIME before = sxe_pool_get_time(array, 1);

        for (unsigned shard = 0; shard < shards; shard++)
            sharing_of(array)->shards[shard].lock = sharing_of(other)->token;
        ck_assert_uint_eq(calls[_i](array), SXE_POOL_LOCK_NOT_TAKEN);
        ck_assert_uint_eq(sxe_pool_get_time(array, 1), before);
        ck_assert_uint_eq(sxe_pool_get_state(array, 1), FREE);
        ck_assert_uint_eq(sharing_of(array)->shards[0].lock, sharing_of(other)->token);
        for (unsigned shard = 0; shard < shards; shard++)
            sharing_of(array)->shards[shard].lock = 0;
        ck_assert_uint_eq(calls[_i](array), SXE_POOL_LOCK_TAKEN);
        sxe_pool_delete(other);
        check_whole(array);
    }
}
END_TEST

START_TEST(of_the_dead_a_lock_is_taken_over)
{
    for (unsigned shards = 1; shards <= 2; shards++) {
        char *array = open_two(shards);
        const uint32_t token = dead_token(array);

        for (unsigned shard = 0; shard < shards; shard++)
            sharing_of(array)->shards[shard].lock = token;
        ck_assert_uint_eq(calls[_i](array), SXE_POOL_LOCK_TAKEN);
        check_whole(array);
    }
}
END_TEST

/* The intent of a dead process to move element 1 from FREE to BUSY; nothing is moved yet. */
static struct sxe__pool_intent
intent_of_the_dead(const char *array)
{
    const uint64_t stamp = sxe_pool_get_time(array, 0);

    return (struct sxe__pool_intent){.id = 1,
                                     .prev = 2 + FREE,
                                     .next = 2 + FREE,
                                     .tail = 0,
                                     .old_state = FREE,
                                     .new_state = BUSY,
                                     .from_count = 0,
                                     .to_count = 2,
                                     .generation = 1,
                                     .stamp = stamp + 1};
}

START_TEST(what_the_dead_had_begun_is_completed_first)
{
    char *array = open_two(1);

    sharing_of(array)->shards->intent = intent_of_the_dead(array);
    sharing_of(array)->shards->lock = dead_token(array);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, READY), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_state(array, 1), BUSY);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, BUSY), 1);
    ck_assert_uint_eq(count(array, BUSY), 2);
    check_whole(array);
}
END_TEST

/* A touch does not use the counts and the generation in the intent, so they have values of an
 * earlier change. */
START_TEST(a_touch_that_the_dead_had_begun_is_completed_too)
{
    char *array = open_two(1);
    const uint64_t handle = sxe_pool_get_handle(array, 1);
    struct sxe__pool_intent intent = intent_of_the_dead(array);

    intent.tail = 2 + FREE;
    intent.new_state = FREE;
    intent.from_count = intent.to_count = intent.generation = 77;
    sharing_of(array)->shards->intent = intent;
    sharing_of(array)->shards->lock = dead_token(array);
    ck_assert_uint_eq(sxe_pool_take(array, READY, FREE), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_time(array, 1), intent.stamp);
    ck_assert_uint_eq(sxe_pool_get_handle(array, 1), handle);
    ck_assert_uint_eq(count(array, FREE), 1);
    ck_assert_uint_eq(count(array, BUSY), 1);
    check_whole(array);
}
END_TEST

START_TEST(what_the_dead_had_done_is_not_done_again)
{
    char *array = open_two(1);

    sharing_of(array)->shards->intent = intent_of_the_dead(array);
    sharing_of(array)->shards->intent.stamp = sharing_of(array)->shards->last_stamp;
    sharing_of(array)->shards->lock = dead_token(array);
    ck_assert_uint_eq(sxe_pool_take(array, FREE, READY), 1);
    ck_assert_uint_eq(count(array, BUSY), 1);
    check_whole(array);
}
END_TEST

static const struct {
    size_t offset;
    uint32_t value;
} impossible[] = {
    {offsetof(struct sxe__pool_intent, id), 2},
    {offsetof(struct sxe__pool_intent, id), UINT32_MAX},
    {offsetof(struct sxe__pool_intent, prev), 5},
    {offsetof(struct sxe__pool_intent, next), 5},
    {offsetof(struct sxe__pool_intent, tail), 5},
    {offsetof(struct sxe__pool_intent, old_state), 3},
    {offsetof(struct sxe__pool_intent, new_state), 3},
};

START_TEST(an_intent_that_is_impossible_is_not_done)
{
    char *array = open_two(1);
    struct sxe__pool_intent intent = intent_of_the_dead(array);

    memcpy((char *)&intent + impossible[_i].offset, &impossible[_i].value, sizeof(uint32_t));
    sharing_of(array)->shards->intent = intent;
    sharing_of(array)->shards->lock = dead_token(array);
    capture_log();
    ck_assert_uint_eq(call_set(array), SXE_POOL_DAMAGED);
    check_has(log_line(0), "pool pond is damaged: ");
    ck_assert_uint_eq(call_set(array), SXE_POOL_DAMAGED); /* the pool stays damaged */
    ck_assert_uint_eq(sxe_pool_get_state(array, 1), FREE);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Damaged links, as no process of ours writes them ---- */

/* The pool has two elements: 0 is BUSY, 1 is FREE. Nodes 2, 3 and 4 are the lists. */
static const struct {
    uint32_t node;
    size_t offset;
    uint32_t value;
} damages[] = {
    {1, offsetof(struct sxe__pool_node, state), 3},
    {1, offsetof(struct sxe__pool_node, state), UINT32_MAX},
    {1, offsetof(struct sxe__pool_node, prev), 5},
    {1, offsetof(struct sxe__pool_node, next), UINT32_MAX},
    {1, offsetof(struct sxe__pool_node, prev), 1},
    {1, offsetof(struct sxe__pool_node, next), 1},
    {1, offsetof(struct sxe__pool_node, next), 0},
    {2, offsetof(struct sxe__pool_node, next), 2},
    {2, offsetof(struct sxe__pool_node, prev), 0},
    {3, offsetof(struct sxe__pool_node, prev), 5},
    {3, offsetof(struct sxe__pool_node, next), 0},
};

START_TEST(damaged_links_are_not_followed)
{
    char *array = open_two(1);
    struct sxe__pool_node *node = node_of(array, damages[_i].node);

    memcpy((char *)node + damages[_i].offset, &damages[_i].value, sizeof(uint32_t));
    capture_log();
    ck_assert_uint_eq(call_set(array), SXE_POOL_DAMAGED);
    ck_assert_uint_eq(call_set(array), SXE_POOL_DAMAGED);
    check_has(log_line(0), "pool pond is damaged: something else wrote into its memory");
    ck_assert_uint_eq(captured.number, 1);
    ck_assert_uint_eq(sharing_of(array)->shards->lock, 0);
    sxe_pool_delete(array);
}
END_TEST

/* Wrong values of the oldest element in the list of FREE. */
static const uint32_t wrong_oldest[] = {6, 100, UINT32_MAX, 0, 3};

START_TEST(a_list_that_leads_astray_is_not_followed)
{
    char *array = open_shared(PROCESSES, 4, 1, 2);

    put(array, 0, FREE, BUSY);
    put(array, 2, FREE, BUSY);
    /* Shard 0 has the lists 4 (FREE), 6 (READY), 8 (BUSY). Only 1 and 3, in shard 1, are FREE. */
    sharing_of(array)->nodes[4].next = wrong_oldest[_i];
    sharing_of(array)->nodes[4].count = 1;
    sharing_of(array)->nodes[5].count = 0;
    capture_log();
    ck_assert_uint_eq(sxe_pool_take(array, FREE, READY), SXE_POOL_DAMAGED);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(ends_that_lead_astray_are_no_elements)
{
    char *array = open_two(1);

    sharing_of(array)->nodes[2].next = UINT32_MAX;
    sharing_of(array)->nodes[2].prev = UINT32_MAX;
    ck_assert_uint_eq(sxe_pool_get_oldest(array, FREE), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(sxe_pool_get_youngest(array, FREE), SXE_POOL_NO_INDEX);
    ck_assert_uint_eq(call_walk(array), SXE_POOL_NO_INDEX);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_walk_round_in_a_circle_ends)
{
    char *array = open_shared(PROCESSES, 4, 1, 1);
    SXE_POOL_WALKER walker;

    for (unsigned id = 0; id < 4; id++)
        node_of(array, id)->stamp = 0;
    node_of(array, 3)->next = 0;
    sxe_pool_walker_construct(&walker, array, FREE);
    ck_assert_uint_eq(sxe_pool_walker_step(&walker), SXE_POOL_NO_INDEX);
    sxe_pool_delete(array);
}
END_TEST

/* ---- Shards ---- */

START_TEST(a_shard_that_is_locked_is_passed_by)
{
    char *array = open_shared(PROCESSES, 8, 1, 4);
    char *other = join(array);

    for (unsigned shard = 0; shard < 4; shard++)
        if (shard != 2)
            sharing_of(array)->shards[shard].lock = sharing_of(other)->token;
    for (unsigned i = 0; i < 2; i++) {
        const unsigned id = sxe_pool_take(array, FREE, BUSY);

        ck_assert_uint_eq(sxe__pool_shard_of(sharing_of(array), id), 2);
    }
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), SXE_POOL_LOCK_NOT_TAKEN);
    for (unsigned shard = 0; shard < 4; shard++)
        sharing_of(array)->shards[shard].lock = 0;
    ck_assert_uint_lt(sxe_pool_take(array, FREE, BUSY), 8);
    sxe_pool_delete(other);
    check_whole(array);
}
END_TEST

START_TEST(what_a_dead_process_counted_nowhere_is_found)
{
    char *array = open_shared(PROCESSES, 8, 1, 4);

    while (sxe_pool_take(array, FREE, BUSY) < 8)
        ;
    put(array, 5, BUSY, FREE);
    const uint32_t shard = sxe__pool_shard_of(sharing_of(array), 5);
    const uint32_t list = 8 + FREE * 4 + shard;
    sharing_of(array)->nodes[list].count = 0;
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), SXE_POOL_NO_INDEX);
    sharing_of(array)->shards[(shard + 1) % 4].lock = dead_token(array);
    sharing_of(array)->shards[shard].lock = sharing_of(array)->shards[(shard + 1) % 4].lock;
    ck_assert_uint_eq(sxe_pool_take(array, FREE, BUSY), 5);
    sxe_pool_delete(array);
}
END_TEST

/* A process takes from the next shard after SXE_POOL_TAKES elements of its own shard. */
START_TEST(the_oldest_of_all_is_taken_in_the_end)
{
    enum { ELEMENTS = 64, SHARDS = 8 };
    char *array = open_shared(PROCESSES, ELEMENTS, 1, SHARDS);

    for (unsigned takes = 0; takes <= 2 * SXE_POOL_TAKES * SHARDS; takes++) {
        const unsigned id = sxe_pool_take(array, FREE, BUSY);

        if (id == 0) {
            put(array, id, BUSY, READY);
            break;
        }
        put(array, id, BUSY, FREE);
    }
    ck_assert_uint_eq(sxe_pool_get_state(array, 0), READY);
    check_whole(array);
}
END_TEST

START_TEST(a_damaged_shard_ends_the_search_for_the_exact_oldest)
{
    char *array = open_shared(PROCESSES, 4, 1, 2);

    sharing_of(array)->shards[1].lock = dead_token(array);
    sharing_of(array)->shards[1].intent = (struct sxe__pool_intent){.stamp = UINT64_MAX, .id = 4};
    capture_log();
    ck_assert_uint_eq(sxe_pool_take_exact(array, FREE, BUSY), SXE_POOL_DAMAGED);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(with_the_lock_held_an_element_is_moved_wherever_it_is)
{
    char *array = open_shared(PROCESSES, 8, 1, 4);
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    const uint32_t shard = sxe__pool_shard_of(sharing_of(array), 3);

    ck_assert_uint_eq(sxe__pool_lock_shard(pool, shard), SXE_POOL_LOCK_TAKEN);
    ck_assert(sxe__pool_move_locked(pool, 3, BUSY));
    ck_assert(sxe__pool_move_locked(pool, 3, READY));
    sxe__pool_unlock_shard(pool, shard);
    ck_assert_uint_eq(sxe_pool_get_state(array, 3), READY);
    check_whole(array);
}
END_TEST

/* ---- Arguments out of bounds stop the program, as in a private pool ---- */

static void
set_no_element(void *array)
{
    sxe_pool_move(array, NUMBER, FREE, BUSY);
}

static void
touch_no_element(void *array)
{
    sxe_pool_touch(array, UINT32_MAX);
}

static void
set_to_no_state(void *array)
{
    sxe_pool_move(array, 1, FREE, STATES);
}

static void
take_from_no_state(void *array)
{
    sxe_pool_take(array, STATES, FREE);
}

static void
take_to_no_state(void *array)
{
    sxe_pool_take(array, FREE, STATES);
}

static void
take_exactly_from_no_state(void *array)
{
    sxe_pool_take_exact(array, STATES, FREE);
}

static void
take_exactly_to_no_state(void *array)
{
    sxe_pool_take_exact(array, FREE, STATES);
}

static void
count_no_state(void *array)
{
    sxe_pool_get_count(array, STATES);
}

static const struct {
    void (*call)(void *array);
    const char *message;
} stops[] = {
    {set_no_element, "pool pond has no element 32, only 32\n"},
    {touch_no_element, "pool pond has no element 4294967295, only 32\n"},
    {set_to_no_state, "pool pond has no state 3, only 3, for element 1 which is in state 0\n"},
    {take_from_no_state, "pool pond has no state 3, only 3\n"},
    {take_to_no_state, "pool pond has no state 3, only 3\n"},
    {take_exactly_from_no_state, "pool pond has no state 3, only 3\n"},
    {take_exactly_to_no_state, "pool pond has no state 3, only 3\n"},
    {count_no_state, "pool pond has no state 3, only 3\n"},
};

START_TEST(what_is_out_of_bounds_stops_with_a_message)
{
    for (int kind = 0; kind < LENGTH_OF(kinds); kind++) {
        char *array = open_kind(kind);

        check_has(message_of(stops[_i].call, array), stops[_i].message);
        check_whole(array);
    }
}
END_TEST

static TCase *
results(void)
{
    TCase *tcase = tcase_create("results");

    tcase_add_loop_test(tcase, a_change_is_seen_in_state_count_time_and_handle, 0,
                        LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, an_attempt_says_the_state_that_it_found, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, the_ends_of_a_state_are_those_of_all_shards, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, every_element_is_taken_once, 0, LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, the_exact_oldest_is_that_of_all_shards, 0, LENGTH_OF(kinds));
    tcase_add_test(tcase, the_exact_oldest_is_for_pools_of_one_thread_too);
    tcase_add_loop_test(tcase, a_walk_meets_who_stays_once_and_nobody_who_came, 0,
                        LENGTH_OF(kinds));
    tcase_add_loop_test(tcase, what_is_out_of_bounds_stops_with_a_message, 0, LENGTH_OF(stops));
    return tcase;
}

static TCase *
others(void)
{
    TCase *tcase = tcase_create("others");

    tcase_add_test(tcase, a_wrong_old_state_is_an_answer_among_processes);
    tcase_add_test(tcase, a_wrong_old_state_stops_the_program_among_threads);
    tcase_add_loop_test(tcase, a_lock_that_is_taken_changes_nothing, 0, LENGTH_OF(calls));
    tcase_add_loop_test(tcase, of_the_dead_a_lock_is_taken_over, 0, LENGTH_OF(calls));
    tcase_add_test(tcase, what_the_dead_had_begun_is_completed_first);
    tcase_add_test(tcase, a_touch_that_the_dead_had_begun_is_completed_too);
    tcase_add_test(tcase, what_the_dead_had_done_is_not_done_again);
    tcase_add_loop_test(tcase, an_intent_that_is_impossible_is_not_done, 0, LENGTH_OF(impossible));
    return tcase;
}

static TCase *
damage(void)
{
    TCase *tcase = tcase_create("damage");

    tcase_add_loop_test(tcase, damaged_links_are_not_followed, 0, LENGTH_OF(damages));
    tcase_add_loop_test(tcase, a_list_that_leads_astray_is_not_followed, 0,
                        LENGTH_OF(wrong_oldest));
    tcase_add_test(tcase, ends_that_lead_astray_are_no_elements);
    tcase_add_test(tcase, a_walk_round_in_a_circle_ends);
    return tcase;
}

static TCase *
shards(void)
{
    TCase *tcase = tcase_create("shards");

    tcase_add_test(tcase, a_shard_that_is_locked_is_passed_by);
    tcase_add_test(tcase, what_a_dead_process_counted_nowhere_is_found);
    tcase_add_test(tcase, the_oldest_of_all_is_taken_in_the_end);
    tcase_add_test(tcase, a_damaged_shard_ends_the_search_for_the_exact_oldest);
    tcase_add_test(tcase, with_the_lock_held_an_element_is_moved_wherever_it_is);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("pool-shared");

    suite_add_tcase(suite, results());
    suite_add_tcase(suite, others());
    suite_add_tcase(suite, damage());
    suite_add_tcase(suite, shards());
    return sxe_test_main(suite);
}
