/* SPDX-License-Identifier: MIT
 *
 * sxe_pool_check, compared with a simple oracle that walks the lists; and lists that are rebuilt
 * after damage.
 */
#include "sxe-pool-sharing-private.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture-log.h"
#include "test-main.h"

#define NUMBER_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum { FREE, BUSY, DONE, STATES };

static void *array;
static struct sxe__pool_header *pool;
static struct sxe__pool_sharing *sharing;
static struct sxe__pool_node *nodes;
static char why[SXE_POOL_WHY_SIZE];

/* ---- Pools ---- */

static void
open_pool(unsigned number, unsigned states, unsigned shards, unsigned options)
{
    const SXE_POOL_SPEC spec = {
        .name = "jobs",
        .number = number,
        .element_size = 8,
        .states = states,
        .shards = shards,
        .options = options,
        .state_names = states == STATES ? "FREE BUSY DONE" : NULL,
    };

    array = sxe_pool_open(&spec, why);
    ck_assert_msg(array != NULL, "%s", why);
    pool = sxe__pool_header(array);
    sharing = pool->sharing;
    nodes = sharing->nodes;
}

static uint32_t
list_of(uint32_t state, uint32_t shard)
{
    return sxe__pool_shard_list(pool, sharing, state, shard);
}

/* Four elements: 0 and 3 are FREE, 1 and 2 BUSY, none DONE. Nodes 4, 5, 6 are these lists. */
static void
open_four(void)
{
    open_pool(4, STATES, 1, SXE_POOL_OPTION_SHARED);
    sxe_pool_move(array, 1, FREE, BUSY);
    sxe_pool_move(array, 2, FREE, BUSY);
}

static void
close_pool(void)
{
    sxe_pool_delete(array);
}

static void
use_at_random(unsigned changes)
{
    for (unsigned i = 0; i < changes; i++) {
        const unsigned old_state = (unsigned)rand() % pool->states;

        if (rand() % 3 == 0)
            sxe_pool_touch(array, (unsigned)rand() % pool->number);
        else
            sxe_pool_take(array, old_state, (unsigned)rand() % pool->states);
    }
}

/* ---- The oracle ---- */

/* Walk one list and mark its elements as met. Returns how many there are, or -1 for a broken
 * list. */
static int
walk(uint32_t state, uint32_t shard, bool *met)
{
    const uint32_t list = list_of(state, shard);
    uint64_t stamp = 0;
    uint32_t last = list;
    int count = 0;

    for (uint32_t id = nodes[list].next; id != list; id = nodes[id].next) {
        if (id >= pool->number || met[id] || sxe__pool_shard_of(sharing, id) != shard ||
            nodes[id].state != state || nodes[id].prev != last || nodes[id].stamp <= stamp ||
            nodes[id].stamp > sharing->shards[shard].last_stamp || nodes[id].generation == 0)
            return -1;
        met[id] = true;
        stamp = nodes[id].stamp;
        last = id;
        count++;
    }
    return nodes[list].prev == last && nodes[list].count == (uint32_t)count ? count : -1;
}

static bool
is_whole(void)
{
    bool *met = calloc(pool->number, sizeof(*met));
    int total = 0;
    bool good = true;

    for (uint32_t shard = 0; shard <= sharing->shard_mask; shard++) {
        good = good && sharing->shards[shard].intent.stamp <= sharing->shards[shard].last_stamp;
        for (uint32_t state = 0; state < pool->states; state++) {
            const int count = walk(state, shard, met);

            good = good && count >= 0;
            total += count;
        }
    }
    free(met);
    return good && total == (int)pool->number;
}

/* ---- Pools without damage ---- */

START_TEST(a_pool_is_whole_from_the_beginning_and_after_whatever_is_done_with_it)
{
    for (unsigned number = 1; number < 70; number += 3) {
        for (unsigned shards = 1; shards <= 8 && shards <= number; shards *= 2) {
            open_pool(number, STATES, shards,
                      _i == 0 ? SXE_POOL_OPTION_LOCKED : SXE_POOL_OPTION_SHARED);
            ck_assert_msg(sxe_pool_check(array, why) == 0, "%s", why);
            use_at_random(100);
            ck_assert_msg(sxe_pool_check(array, why) == 0, "%s", why);
            ck_assert(is_whole());
            close_pool();
        }
    }
}
END_TEST

START_TEST(a_pool_of_one_thread_can_be_checked_too)
{
    void *own = sxe_pool_new("own", 10, 8, STATES, SXE_POOL_OPTION_UNLOCKED);
    struct sxe__pool_node *own_nodes = sxe__pool_nodes(sxe__pool_header(own));

    sxe_pool_take(own, FREE, BUSY);
    ck_assert_int_eq(sxe_pool_check(own, why), 0);
    own_nodes[3].next = 3;
    ck_assert_int_eq(sxe_pool_check(own, why), -EUCLEAN);
    ck_assert_str_eq(why, "element 3 (state 0) is followed by element 3, which is older");
    sxe_pool_delete(own);
}
END_TEST

static unsigned asked, patience;

static bool
is_enough(void)
{
    return ++asked > patience;
}

/* The check asks is_enough() five times: before the shard, twice while it looks at the elements,
 * and twice while it looks at the lists. */
START_TEST(a_check_may_be_ended_and_leaves_no_lock)
{
    enum { MANY = 140000 };
    void *own = sxe_pool_new("own", MANY, 8, STATES, SXE_POOL_OPTION_UNLOCKED);

    open_pool(MANY, STATES, 1, SXE_POOL_OPTION_SHARED);
    for (patience = 0; patience < 5; patience++) {
        asked = 0;
        ck_assert_int_eq(sxe_pool_check_until(array, why, is_enough), -ECANCELED);
        ck_assert_uint_eq(sharing->shards[0].lock, 0);
        asked = 1; /* a pool of one thread is not asked before its shard */
        ck_assert_int_eq(sxe_pool_check_until(own, why, is_enough), -ECANCELED);
    }
    asked = 0;
    ck_assert_int_eq(sxe_pool_check_until(array, why, is_enough), 0);
    ck_assert_uint_eq(asked, 5);
    close_pool();
    sxe_pool_delete(own);
}
END_TEST

START_TEST(there_may_be_more_states_than_are_counted_at_a_time)
{
    open_pool(3000, 2500, 2, SXE_POOL_OPTION_LOCKED);
    for (unsigned id = 0; id < 2500; id++)
        sxe_pool_move(array, id, 0, id);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    nodes[list_of(2049, 1)].count++;
    ck_assert_int_eq(sxe_pool_check(array, why), -EUCLEAN);
    ck_assert_msg(strstr(why, "elements are in state 2049, but") != NULL, "%s", why);
    ck_assert_uint_eq(sxe__pool_rebuild(pool), 0);
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    ck_assert(is_whole());
    close_pool();
}
END_TEST

/* ---- Damage that the check finds ---- */

static const struct {
    uint32_t node;
    char field; /* n p s g t c i: next prev state generation stamp count intent */
    uint64_t value;
    const char *why;
} damages[] = {
    {1, 's', 7, "element 1 is in state 7; there are only 3"},
    {2, 'g', 0, "element 2 (state BUSY) has no generation"},
    {1, 't', 0, "element 1 (state BUSY) is of a time that has not been"},
    {0, 't', UINT64_MAX, "element 0 (state FREE) is of a time that has not been"},
    {0, 'n', 99, "element 0 (state FREE) is followed by 99, which cannot be"},
    {0, 'n', 5, "element 0 (state FREE) is followed by 5, which cannot be"},
    {0, 'n', 1, "element 0 (state FREE) is followed by element 1 (state BUSY)"},
    {0, 's', BUSY, "element 0 (state BUSY) is followed by element 3 (state FREE)"},
    {3, 'n', 0, "element 3 (state FREE) is followed by element 0, which is older"},
    {0, 'n', 4, "element 0 (state FREE) is on no list, or only half: 4 follows 3"},
    {3, 'p', 4, "element 0 (state FREE) is on no list, or only half: 3 follows 4"},
    {5, 'p', 1, "element 2 (state BUSY) is on no list, or only half: 5 follows 1"},
    {5, 'n', 2, "the list of state BUSY begins with 2, which is not its oldest element"},
    {5, 'n', 0, "the list of state BUSY begins with 0, which is not its oldest element"},
    {5, 'n', 5, "the list of state BUSY begins with 5, which is not its oldest element"},
    {1, 'p', 2, "the list of state BUSY begins with 1, which is not its oldest element"},
    {6, 'n', 1, "no element is in state DONE, but its list is not empty"},
    {6, 'p', 1, "no element is in state DONE, but its list is not empty"},
    {6, 'c', 1, "0 elements are in state DONE, but 1 are counted"},
    {4, 'c', 7, "2 elements are in state FREE, but 7 are counted"},
    {0, 'i', 1, "a change was begun and not completed"},
};

static void
damage(int number)
{
    const uint32_t value = (uint32_t)damages[number].value;
    struct sxe__pool_node *node = &nodes[damages[number].node];

    switch (damages[number].field) {
    case 'n':
        node->next = value;
        break;
    case 'p':
        node->prev = value;
        break;
    case 's':
        node->state = value;
        break;
    case 'g':
        node->generation = value;
        break;
    case 't':
        node->stamp = damages[number].value;
        break;
    case 'c':
        node->count = value;
        break;
    default:
        sharing->shards[0].intent.stamp = sharing->shards[0].last_stamp + value;
    }
}

START_TEST(what_is_wrong_is_said)
{
    open_four();
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    damage(_i);
    ck_assert_int_eq(sxe_pool_check(array, why), -EUCLEAN);
    ck_assert_str_eq(why, damages[_i].why);
    ck_assert_int_eq(sxe_pool_check(array, NULL), -EUCLEAN);
    ck_assert(!is_whole());
    ck_assert_uint_eq(sxe__pool_rebuild(pool), damages[_i].value == 7 && _i == 0);
    ck_assert_msg(sxe_pool_check(array, why) == 0, "%s", why);
    ck_assert(is_whole());
    close_pool();
}
END_TEST

START_TEST(of_several_shards_it_says_which)
{
    open_pool(64, STATES, 4, SXE_POOL_OPTION_LOCKED);
    const uint32_t list = list_of(DONE, 2);
    nodes[list].count = 5;
    ck_assert_int_eq(sxe_pool_check(array, why), -EUCLEAN);
    ck_assert_str_eq(why, "shard 2: 0 elements are in state DONE, but 5 are counted");
    close_pool();
}
END_TEST

START_TEST(a_ring_beside_the_lists_is_found)
{
    open_four();
    nodes[1].next = 2;
    nodes[1].prev = 2;
    nodes[2].next = 1;
    nodes[2].prev = 1;
    nodes[list_of(BUSY, 0)].next = list_of(BUSY, 0);
    nodes[list_of(BUSY, 0)].prev = list_of(BUSY, 0);
    nodes[list_of(BUSY, 0)].count = 0;
    ck_assert_int_eq(sxe_pool_check(array, why), -EUCLEAN);
    ck_assert_str_eq(why, "element 2 (state BUSY) is followed by element 1, which is older");
    close_pool();
}
END_TEST

START_TEST(a_lock_that_is_held_is_no_damage)
{
    open_four();
    sharing->shards[0].lock = sharing->token;
    ck_assert_int_eq(sxe_pool_check(array, why), -EAGAIN);
    sharing->shards[0].lock = 0;
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    close_pool();
}
END_TEST

/* No user ever had slot 9, so its generation 5 belongs to a dead process. */
START_TEST(the_locks_of_the_dead_are_taken_over)
{
    open_four();
    sharing->shards[0].lock = 5 << 7 | 9;
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    ck_assert_uint_eq(sharing->shards[0].lock, 0);
    sharing->shards[0].lock = 5 << 7 | 9;
    sharing->shards[0].intent = (struct sxe__pool_intent){.stamp = UINT64_MAX, .id = 99};
    capture_log();
    ck_assert_int_eq(sxe_pool_check(array, why), -EUCLEAN);
    ck_assert_str_eq(why, "a change that a dead process began cannot be completed");
    ck_assert_uint_eq(captured.number, 1);
    ck_assert_ptr_nonnull(strstr(captured.lines[0], "pool jobs is damaged"));
    close_pool();
}
END_TEST

/* ---- Against the oracle ---- */

START_TEST(each_bit_of_the_nodes_is_judged_as_the_oracle_does)
{
    open_pool(12, STATES, 2, SXE_POOL_OPTION_LOCKED);
    use_at_random(60);
    const size_t size = sharing->end * sizeof(*nodes);
    unsigned char *bytes = (unsigned char *)nodes;
    unsigned char *good = malloc(size);
    unsigned refused = 0;

    memcpy(good, nodes, size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        const bool whole = sxe_pool_check(array, why) == 0;
        ck_assert_msg(whole == is_whole(), "bit %zu: %s", bit, whole ? "whole" : why);
        refused += !whole;
        sxe__pool_rebuild(pool);
        ck_assert_msg(is_whole() && sxe_pool_check(array, why) == 0, "bit %zu: %s", bit, why);
        memcpy(nodes, good, size);
        sxe__pool_rebuild(pool);
    }
    ck_assert_uint_gt(refused, 0);
    free(good);
    close_pool();
}
END_TEST

START_TEST(random_words_are_judged_as_the_oracle_does)
{
    for (unsigned round = 0; round < 2000; round++) {
        open_pool(20, STATES, round % 2 == 0 ? 1 : 4, SXE_POOL_OPTION_LOCKED);
        const size_t words = sharing->end * sizeof(*nodes) / sizeof(uint32_t);

        use_at_random(40);
        for (int i = rand() % 4; i >= 0; i--)
            ((uint32_t *)nodes)[(size_t)rand() % words] =
                rand() % 2 == 0 ? (uint32_t)rand() % 40 : (uint32_t)rand() * 2654435761u;
        const bool whole = sxe_pool_check(array, why) == 0;
        ck_assert_msg(whole == is_whole(), "round %u: %s", round, whole ? "whole" : why);
        sxe__pool_rebuild(pool);
        ck_assert_msg(is_whole() && sxe_pool_check(array, why) == 0, "round %u: %s", round, why);
        use_at_random(40);
        ck_assert(is_whole());
        close_pool();
    }
}
END_TEST

/* ---- Rebuilding the lists ---- */

struct entry {
    uint32_t id;
    uint32_t state;
    uint64_t stamp;
};

static int
compare(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;

    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    if (a->stamp != b->stamp)
        return a->stamp < b->stamp ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

/* Check that the lists of a shard have exactly these elements in this order. */
static void
check_order(uint32_t shard, const struct entry *entries, unsigned number)
{
    uint32_t id = list_of(0, shard);

    for (unsigned i = 0; i < number; i++) {
        if (i == 0 || entries[i].state != entries[i - 1].state)
            id = list_of(entries[i].state, shard);
        id = nodes[id].next;
        ck_assert_uint_eq(id, entries[i].id);
        ck_assert_uint_eq(nodes[id].state, entries[i].state);
    }
}

START_TEST(elements_are_in_the_order_of_their_stamps_then)
{
    static struct entry entries[3000];
    const unsigned shards = 1u << _i;

    open_pool(3000, STATES, shards, SXE_POOL_OPTION_LOCKED);
    for (unsigned id = 0; id < 3000; id++) {
        nodes[id].state = (uint32_t)rand() % STATES;
        nodes[id].stamp = 1 + (uint64_t)rand() % 2000;
        nodes[id].next = (uint32_t)rand();
    }
    const struct sxe__pool_node before = nodes[7];
    ck_assert_uint_ne(sxe_pool_check(array, why), 0);
    for (unsigned shard = 0; shard < shards; shard++)
        sharing->shards[shard].intent.stamp = UINT64_MAX;
    for (unsigned id = 0; id < 3000; id++)
        entries[id] = (struct entry){id, nodes[id].state, nodes[id].stamp};
    ck_assert_uint_eq(sxe__pool_rebuild(pool), 0);
    ck_assert_msg(sxe_pool_check(array, why) == 0, "%s", why);
    ck_assert(is_whole());
    ck_assert_uint_eq(nodes[7].generation, before.generation);
    for (unsigned shard = 0; shard < shards; shard++) {
        static struct entry mine[3000];
        unsigned number = 0;

        for (unsigned id = 0; id < 3000; id++) {
            if (sxe__pool_shard_of(sharing, id) == shard)
                mine[number++] = entries[id];
        }
        qsort(mine, number, sizeof(mine[0]), compare);
        check_order(shard, mine, number);
    }
    close_pool();
}
END_TEST

START_TEST(impossible_states_begin_anew_in_state_0)
{
    open_four();
    nodes[2].state = 77;
    nodes[2].generation = 6;
    nodes[1].state = STATES;
    nodes[1].generation = UINT32_MAX;
    nodes[3].generation = 0;
    ck_assert_uint_eq(sxe__pool_rebuild(pool), 2);
    ck_assert_uint_eq(sxe_pool_get_count(array, FREE), 4);
    ck_assert_uint_eq(nodes[2].generation, 7);
    ck_assert_uint_eq(nodes[1].generation, 1);
    ck_assert_uint_eq(nodes[3].generation, 1);
    ck_assert(is_whole());
    close_pool();
}
END_TEST

START_TEST(no_stamp_is_later_than_now_then)
{
    open_four();
    const uint64_t now = sxe_pool_get_now(array);
    const uint64_t stamp = nodes[1].stamp;
    nodes[0].stamp = UINT64_MAX;
    nodes[3].stamp = UINT64_MAX - 1;
    sharing->shards[0].last_stamp = UINT64_MAX;
    sxe__pool_rebuild(pool);
    ck_assert_uint_le(now, nodes[0].stamp);
    ck_assert_uint_le(nodes[0].stamp, sxe_pool_get_now(array) + 1);
    ck_assert_uint_eq(nodes[3].stamp + 1, nodes[0].stamp);
    ck_assert_uint_eq(nodes[1].stamp, stamp);
    ck_assert_uint_eq(sharing->shards[0].last_stamp, nodes[0].stamp);
    ck_assert(is_whole());
    close_pool();
}
END_TEST

/* ---- Another process writes during the check ---- */

static void
scribble(void)
{
    const size_t words = sharing->end * sizeof(*nodes) / sizeof(uint32_t);

    for (;;)
        __atomic_store_n(&((uint32_t *)nodes)[(size_t)rand() % words],
                         rand() % 2 == 0 ? (uint32_t)rand() % 400 : (uint32_t)rand(),
                         __ATOMIC_RELAXED);
}

START_TEST(a_scribbler_makes_neither_check_nor_rebuild_go_astray)
{
    open_pool(300, STATES, 2, SXE_POOL_OPTION_SHARED);
    const pid_t child = fork();

    if (child == 0)
        scribble();
    for (unsigned round = 0; round < 3000; round++) {
        const int result = sxe_pool_check(array, why);

        ck_assert(result == 0 || result == -EUCLEAN);
        sxe__pool_rebuild(pool);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    sxe__pool_rebuild(pool);
    ck_assert(is_whole());
    ck_assert_int_eq(sxe_pool_check(array, why), 0);
    close_pool();
}
END_TEST

/* A process that dies while it rebuilds the lists leaves what another needs to rebuild them. */
START_TEST(who_makes_new_lists_may_be_killed)
{
    uint32_t states[300];

    open_pool(300, STATES, 2, SXE_POOL_OPTION_SHARED);
    use_at_random(1000);
    for (unsigned id = 0; id < 300; id++)
        states[id] = nodes[id].state;
    for (unsigned round = 0; round < 200; round++) {
        const pid_t child = fork();

        if (child == 0) {
            for (;;)
                sxe__pool_rebuild(pool);
        }
        for (volatile int spin = rand() % 200000; spin > 0; spin--)
            ;
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        ck_assert_uint_eq(sxe__pool_rebuild(pool), 0);
        ck_assert_msg(sxe_pool_check(array, why) == 0, "round %u: %s", round, why);
        for (unsigned id = 0; id < 300; id++)
            ck_assert_uint_eq(nodes[id].state, states[id]);
    }
    close_pool();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("pool-check");
    TCase *checks = tcase_create("checks");
    TCase *lists = tcase_create("new lists");

    tcase_add_loop_test(
        checks, a_pool_is_whole_from_the_beginning_and_after_whatever_is_done_with_it, 0, 2);
    tcase_add_test(checks, a_pool_of_one_thread_can_be_checked_too);
    tcase_add_test(checks, a_check_may_be_ended_and_leaves_no_lock);
    tcase_add_test(checks, there_may_be_more_states_than_are_counted_at_a_time);
    tcase_add_loop_test(checks, what_is_wrong_is_said, 0, NUMBER_OF(damages));
    tcase_add_test(checks, of_several_shards_it_says_which);
    tcase_add_test(checks, a_ring_beside_the_lists_is_found);
    tcase_add_test(checks, a_lock_that_is_held_is_no_damage);
    tcase_add_test(checks, the_locks_of_the_dead_are_taken_over);
    tcase_add_test(checks, each_bit_of_the_nodes_is_judged_as_the_oracle_does);
    tcase_add_test(checks, random_words_are_judged_as_the_oracle_does);
    tcase_add_loop_test(lists, elements_are_in_the_order_of_their_stamps_then, 0, 4);
    tcase_add_test(lists, impossible_states_begin_anew_in_state_0);
    tcase_add_test(lists, no_stamp_is_later_than_now_then);
    tcase_add_test(lists, a_scribbler_makes_neither_check_nor_rebuild_go_astray);
    tcase_add_test(lists, who_makes_new_lists_may_be_killed);
    suite_add_tcase(suite, checks);
    suite_add_tcase(suite, lists);
    return sxe_test_main(suite);
}
