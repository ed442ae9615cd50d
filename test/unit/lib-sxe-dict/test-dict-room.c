/* SPDX-License-Identifier: MIT
 *
 * The free cells of a dict: a put or a batch finds all that can be freed, whenever other processes
 * end their snapshots; and sxe_dict_check finds cells that could never be used again. The library's
 * own lines are compiled here with macros for its accesses to shared memory.
 */
#include <stdint.h>

/* The action of another process right before a chosen access of a call to shared memory. */
/* how many accesses come before meanwhile() is called; 0: it is not called */
static unsigned accesses_left;
static void (*meanwhile)(void);

static inline void
at_access(void)
{
    if (accesses_left != 0 && --accesses_left == 0)
        meanwhile();
}

#define SXE__POOL_STEP()     at_access()
#define SXE__POOL_GET(place) (at_access(), __atomic_load_n(&(place), __ATOMIC_RELAXED))
#define SXE__POOL_PUT(place, value) \
    (at_access(), __atomic_store_n(&(place), (value), __ATOMIC_RELAXED))
#define SXE__POOL_PUT_LAST(place, value) \
    (at_access(), __atomic_store_n(&(place), (value), __ATOMIC_RELEASE))

#include "../../../lib-sxe-dict/sxe-dict-batch.c"
#include "../../../lib-sxe-dict/sxe-dict-cell.c"
#include "../../../lib-sxe-dict/sxe-dict-change.c"
#include "../../../lib-sxe-dict/sxe-dict-room.c"
#include "../../../lib-sxe-dict/sxe-dict-snapshot.c"
#include "../../../lib-sxe-dict/sxe-dict.c"

#include <stdio.h>

#include "sxe-time.h"
#include "test-main.h"

#define START_NS UINT64_C(5000000000)

static SXE_DICT *dict;
static SXE_DICT_SNAPSHOT *snapshot;

static void
open_of(unsigned cells, bool evicts)
{
    const SXE_DICT_SPEC spec = {.name = "room",
                                .cells = cells,
                                .cell_size = 128,
                                .evicts = evicts,
                                .options = SXE_POOL_OPTION_LOCKED};

    sxe_time_set_turn_ns(START_NS);
    dict = sxe_dict_open(&spec, NULL);
    ck_assert_ptr_nonnull(dict);
}

static void
close_all(void)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    sxe_dict_snapshot_release(snapshot);
    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    sxe_dict_close(dict);
}

static int
put(unsigned key, unsigned value)
{
    return sxe_dict_put(dict, &key, sizeof(key), &value, sizeof(value), 0);
}

static void
fill(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        ck_assert_int_eq(put(i, i), 0);
}

static void
keep_snapshot(void)
{
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_ptr_nonnull(snapshot);
}

/* Fill half of the cells with entries, and the rest with old versions that a snapshot sees. */
static void
fill_half_and_half(unsigned cells)
{
    fill(0, cells / 2);
    keep_snapshot();
    for (unsigned i = 0; i < cells - cells / 2; i++)
        ck_assert_int_eq(put(i, 100 + i), 0);
}

/* ---- Snapshots that end while room is made ---- */

/* End the snapshot without freeing its versions: the releasing process waits for the shard's
 * lock. */
static void
end_it(void)
{
    __atomic_store_n(&dict->control->slots[0].epoch, 0, __ATOMIC_RELAXED);
}

static void
put_new(void)
{
    ck_assert_int_eq(put(1000, 1), 0);
}

static void
put_over(void)
{
    ck_assert_int_eq(put(1, 1), 0);
}

static void
add_new(void)
{
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, NULL), 0);
}

static void
commit_some(void)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(sxe_dict_batch_put(batch, &i, sizeof(i), "batch", 5, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, &(unsigned){7}, 4), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    sxe_dict_batch_delete(batch);
}

static void (*const calls[])(void) = {put_new, put_over, add_new, commit_some};

/* No cell is free when the call begins; the cells of the snapshot that ends are enough. */
START_TEST(call_finds_the_room_of_a_snapshot_that_ends_at_any_moment)
{
    bool was_met = true;

    for (unsigned access = 1; was_met; access++) {
        open_of(20, false);
        fill_half_and_half(20);
        meanwhile = end_it;
        accesses_left = access;
        calls[_i]();
        was_met = accesses_left == 0;
        accesses_left = 0;
        close_all();
    }
}
END_TEST

/* A second snapshot is released while the cells of the first are being freed. */
START_TEST(call_finds_the_room_of_two_snapshots)
{
    bool was_met = true;

    for (unsigned access = 1; was_met; access++) {
        SXE_DICT_SNAPSHOT *other;

        open_of(20, false);
        fill(0, 10);
        other = sxe_dict_snapshot_take(dict);
        for (unsigned i = 0; i < 5; i++)
            ck_assert_int_eq(put(i, 100 + i), 0);
        keep_snapshot();
        for (unsigned i = 0; i < 5; i++)
            ck_assert_int_eq(put(i, 200 + i), 0);
        meanwhile = end_it;
        accesses_left = access;
        calls[_i]();
        was_met = accesses_left == 0;
        accesses_left = 0;
        sxe_dict_snapshot_release(other);
        close_all();
    }
}
END_TEST

/* ---- Searches that reach their limit (budget) ---- */

/* The search for expired entries looks at as many cells as one call may, and finds none; the cells
 * hold old versions. */
START_TEST(search_that_ends_with_the_budget_goes_on_with_the_next_call)
{
    open_of(SXE__DICT_BUDGET - 1, false);
    ck_assert_int_eq(sxe_dict_put(dict, &(unsigned){0}, 4, "v", 1, 1), 0);
    ck_assert_int_eq(sxe_dict_expire(dict, &(unsigned){0}, 4, SXE_DICT_FOREVER), 0);
    sxe_time_set_turn_ns(START_NS + 2 * SXE_NS_PER_SECOND);
    fill_half_and_half(SXE__DICT_BUDGET - 1);
    ck_assert_int_eq(put(1000, 1), -EAGAIN);
    ck_assert_int_eq(put(1000, 1), 0);
    close_all();
}
END_TEST

/* All entries are pinned, so none can be evicted, and the search takes several calls. */
START_TEST(search_goes_on_with_the_next_call_where_all_are_pinned)
{
    int result;
    unsigned tries = 0;

    open_of(2 * SXE__DICT_BUDGET, true);
    ck_assert_int_eq(sxe_dict_put(dict, &(unsigned){0}, 4, "v", 1, 1), 0);
    ck_assert_int_eq(sxe_dict_expire(dict, &(unsigned){0}, 4, SXE_DICT_FOREVER), 0);
    sxe_time_set_turn_ns(START_NS + 2 * SXE_NS_PER_SECOND);
    fill(0, SXE__DICT_BUDGET);
    for (unsigned i = 0; i < SXE__DICT_BUDGET; i++)
        ck_assert_int_eq(sxe_dict_set_state(dict, &i, sizeof(i), SXE_DICT_PINNED), 0);
    keep_snapshot();
    for (unsigned i = 0; i < SXE__DICT_BUDGET; i++)
        ck_assert_int_eq(put(i, 100 + i), 0);
    while ((result = put(2000, 1)) == -EAGAIN)
        tries++;
    ck_assert_int_eq(result, 0);
    ck_assert_uint_gt(tries, 0);
    close_all();
}
END_TEST

/* ---- Cells that could never be used again ---- */

static void
expect_lost(const char *words)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    ck_assert_int_eq(sxe_dict_check(dict, why), -EUCLEAN);
    ck_assert_msg(strstr(why, words) != NULL, "%s", why);
}

static unsigned questions;

static bool
is_over(void)
{
    return questions-- == 0;
}

/* Older versions of this library left this when a process was killed during a release. The present
 * version cannot. */
START_TEST(check_finds_old_cells_that_no_sweep_comes_to)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    open_of(20, false);
    fill_half_and_half(20);
    end_it();
    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    dict->records[0].swept = sxe__dict_ended(dict);
    expect_lost("shard 0: 10 OLD cells are seen by no snapshot, and no sweep will free them");
    dict->records[0].sweep_left = 4;
    expect_lost("6 OLD cells");
    dict->records[0].sweep_left = 99;
    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    for (unsigned i = 10; i < 20; i++)
        ck_assert_int_eq(put(i, 1), 0);
    close_all();
}
END_TEST

START_TEST(check_finds_entries_that_expire_unnoticed)
{
    struct sxe__dict_record *record;

    open_of(20, false);
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "v", 1, 10), 0);
    record = &dict->records[0];
    const uint64_t expiry = record->next_expiry;
    record->next_expiry = 0;
    expect_lost("it expires, and its shard does not know when");
    record->next_expiry = expiry + 1;
    expect_lost("does not know when");
    record->next_expiry = 1;
    record->round_at = 1;
    expect_lost("does not know when");
    record->round_expiry = expiry + 1;
    expect_lost("does not know when");
    record->round_expiry = expiry;
    close_all();
}
END_TEST

START_TEST(check_finds_cells_that_are_counted_nowhere)
{
    struct sxe__pool_node *list;

    open_of(20, false);
    fill_half_and_half(20);
    list = sxe__dict_list(dict, 0, SXE__DICT_FREE);
    list->count--;
    expect_lost("20 of its 21 cells are accounted for");
    list->count++;
    list = sxe__dict_list(dict, 0, SXE__DICT_OLD);
    const uint32_t oldest = list->next;
    list->next = 1000;
    expect_lost("the list of OLD leads to 1000");
    list->next = oldest;
    close_all();
}
END_TEST

START_TEST(check_of_a_long_past_can_be_ended)
{
    open_of(150000, false);
    fill_half_and_half(150000);
    /* The check asks before the shard, and four times in its buckets. */
    questions = 5;
    ck_assert_int_eq(sxe_dict_check_until(dict, NULL, is_over), -ECANCELED);
    ck_assert_int_eq(sxe_dict_check_until(dict, NULL, is_over), 0);
    close_all();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-room");
    TCase *tcase = tcase_create("room");

    tcase_add_loop_test(tcase, call_finds_the_room_of_a_snapshot_that_ends_at_any_moment, 0,
                        (int)SXE_COUNT(calls));
    tcase_add_loop_test(tcase, call_finds_the_room_of_two_snapshots, 0, (int)SXE_COUNT(calls));
    tcase_add_test(tcase, search_that_ends_with_the_budget_goes_on_with_the_next_call);
    tcase_add_test(tcase, search_goes_on_with_the_next_call_where_all_are_pinned);
    tcase_add_test(tcase, check_finds_old_cells_that_no_sweep_comes_to);
    tcase_add_test(tcase, check_finds_entries_that_expire_unnoticed);
    tcase_add_test(tcase, check_finds_cells_that_are_counted_nowhere);
    tcase_add_test(tcase, check_of_a_long_past_can_be_ended);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
