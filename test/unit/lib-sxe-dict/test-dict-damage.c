/* SPDX-License-Identifier: MIT
 *
 * Memory into which something else wrote, one word at a time: a call that meets it gives -EUCLEAN.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-os.h"
#include "sxe-dict-private.h"
#include "sxe-log.h"
#include "sxe-time.h"
#include "test-main.h"

#define CELLS 40u

static SXE_DICT *dict;
static const char value[200];

static void
open_of(bool evicts)
{
    const SXE_DICT_SPEC spec = {.name = "test",
                                .cells = CELLS,
                                .cell_size = 128,
                                .evicts = evicts,
                                .options = SXE_POOL_OPTION_LOCKED};

    sxe_log_set_level(SXE_LOG_FATAL);
    sxe_time_set_turn_ns(UINT64_C(5000000000));
    dict = sxe_dict_open(&spec, NULL);
    ck_assert_ptr_nonnull(dict);
    /* A fixed hash key, so that entries have the same places in every run. */
    dict->hash_key[0] = dict->control->hash_key[0] = 1;
    dict->hash_key[1] = dict->control->hash_key[1] = 2;
}

static void
setup(void)
{
    open_of(false);
}

static void
teardown(void)
{
    ck_assert_uint_eq(dict->control->doubtful, 1);
    sxe_dict_close(dict);
    sxe_time_set_turn_ns(0);
}

static int
put(unsigned key, size_t size)
{
    return sxe_dict_put(dict, &key, sizeof(key), value, size, 0);
}

static void
fill(unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        ck_assert_int_eq(put(i, 1), 0);
}

static uint32_t
id_of(unsigned key)
{
    struct sxe__dict_key place;
    struct sxe__dict_view view;

    ck_assert_int_eq(sxe__dict_set_key(dict, &place, &key, sizeof(key)), 0);
    ck_assert_int_eq(sxe__dict_find(dict, &place, 0, &view), 1);
    return view.id;
}

static struct sxe__dict_cell *
cell_of(unsigned key)
{
    return sxe__dict_cell(dict, id_of(key));
}

static uint32_t *
bucket_of(unsigned key)
{
    return sxe__dict_bucket(dict, 0, cell_of(key)->hash);
}

static struct sxe__pool_node *
node_of(unsigned key)
{
    return &dict->sharing->nodes[id_of(key)];
}

static int
get(unsigned key)
{
    return (int)sxe_dict_get(dict, &key, sizeof(key), NULL, 0);
}

static int
remove_one(unsigned key)
{
    return sxe_dict_remove(dict, &key, sizeof(key));
}

/* ---- Chains ---- */

START_TEST(chain_that_leads_astray_behind_the_entry_stops_a_put)
{
    fill(1);
    cell_of(0)->chain = 1000;
    ck_assert_int_eq(put(0, 1), -EUCLEAN);
    ck_assert_int_eq(get(0), -EUCLEAN);
}
END_TEST

START_TEST(chain_that_goes_round_stops_a_walk)
{
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};

    fill(1);
    cell_of(0)->chain = id_of(0) + 1;
    sxe_dict_walker_construct(&walker, dict);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), -EUCLEAN);
}
END_TEST

START_TEST(chain_with_a_cell_that_is_no_entry_stops_a_get)
{
    fill(1);
    node_of(0)->state = SXE__DICT_FREE;
    ck_assert_int_eq(get(0), -EUCLEAN);
}
END_TEST

START_TEST(old_version_in_no_possible_state_stops_a_walk)
{
    SXE_DICT_SNAPSHOT *snapshot;
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};

    fill(1);
    struct sxe__dict_cell *cell = cell_of(0);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(remove_one(0), 0);
    cell->state = 77;
    sxe_dict_snapshot_walk(&walker, snapshot);
    ck_assert_int_eq(sxe_dict_walker_step(&walker, &entry), -EUCLEAN);
    sxe_dict_snapshot_release(snapshot);
}
END_TEST

/* ---- Lists ---- */

START_TEST(node_that_is_linked_wrongly_stops_what_moves_it)
{
    fill(3);
    node_of(1)->prev = 1000;
    ck_assert_int_eq(get(1), -EUCLEAN);
    ck_assert_int_eq(sxe_dict_touch(dict, &(unsigned){1}, 4), -EUCLEAN);
    ck_assert_int_eq(remove_one(1), -EUCLEAN);
}
END_TEST

START_TEST(counter_whose_node_is_linked_wrongly_is_not_added_to)
{
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, NULL), 0);
    dict->sharing->nodes[0].prev = 1000;
    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 1, 0, NULL), -EUCLEAN);
}
END_TEST

START_TEST(free_list_that_leads_astray_stops_puts)
{
    const uint32_t places[] = {1000, 0};

    fill(2);
    sxe__dict_list(dict, 0, SXE__DICT_FREE)->next = places[_i];
    ck_assert_int_eq(put(7, 1), -EUCLEAN);
}
END_TEST

START_TEST(free_list_that_leads_astray_later_stops_long_puts_and_batches)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    fill(2);
    const uint32_t first = sxe__dict_list(dict, 0, SXE__DICT_FREE)->next;
    dict->sharing->nodes[first].next = 0;
    ck_assert_int_eq(put(7, 200), -EUCLEAN);
    ck_assert_int_eq(sxe_dict_batch_put(batch, "a", 1, value, 200, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EUCLEAN);
    ck_assert_int_eq(get(0), 1);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(batch_that_meets_damage_does_nothing)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    fill(2);
    ck_assert_int_eq(sxe_dict_batch_remove(batch, &(unsigned){0}, 4), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, &(unsigned){1}, 4, value, 2, 0), 0);
    *bucket_of(1) = 1000;
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EUCLEAN);
    ck_assert_int_eq(get(0), 1);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(condition_that_meets_damage_stops_its_batch)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    fill(2);
    ck_assert_int_eq(sxe_dict_batch_expect(batch, &(unsigned){1}, 4, NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, &(unsigned){0}, 4, value, 2, 0), 0);
    *bucket_of(1) = 1000;
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EUCLEAN);
    ck_assert_int_eq(get(0), 1);
    sxe_dict_batch_delete(batch);
}
END_TEST

/* ---- Values ---- */

START_TEST(value_that_goes_on_nowhere_is_not_read)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    char found[200];

    ck_assert_int_eq(sxe_dict_batch_expect(batch, &(unsigned){0}, 4, value, 200), 0);

    ck_assert_int_eq(put(0, 200), 0);
    sxe__dict_cell(dict, id_of(0))->more = _i == 0 ? 0 : 1000;
    ck_assert_int_eq(sxe_dict_peek(dict, &(unsigned){0}, 4, found, sizeof(found)), -EUCLEAN);
    ck_assert_int_eq(sxe_dict_compare_and_put(dict, &(unsigned){0}, 4, value, 200, "", 0, 0),
                     -EUCLEAN);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), -EUCLEAN);
    ck_assert_int_eq(remove_one(0), -EUCLEAN);
    ck_assert_int_eq(sxe_dict_batch_commit(batch), -EUCLEAN);
    sxe_dict_batch_delete(batch);
}
END_TEST

START_TEST(value_that_goes_on_in_a_cell_linked_wrongly_is_not_removed)
{
    ck_assert_int_eq(put(0, 200), 0);
    dict->sharing->nodes[cell_of(0)->more - 1].prev = 1000;
    ck_assert_int_eq(remove_one(0), -EUCLEAN);
}
END_TEST

START_TEST(counter_that_goes_on_nowhere_is_not_added_to)
{
    static const char key[64] = "long";

    ck_assert_int_eq(sxe_dict_add(dict, key, sizeof(key), 1, 0, NULL), 0);
    sxe__dict_cell(dict, 0)->more = 1000;
    ck_assert_int_eq(sxe_dict_add(dict, key, sizeof(key), 1, 0, NULL), -EUCLEAN);
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(sxe_dict_add(dict, key, sizeof(key), 1, 0, NULL), -EUCLEAN);
    sxe_dict_snapshot_release(snapshot);
}
END_TEST

START_TEST(two_values_in_one_cell_are_found)
{
    char why[SXE_POOL_WHY_SIZE];

    ck_assert_int_eq(put(0, 200), 0);
    ck_assert_int_eq(put(1, 200), 0);
    cell_of(0)->more = cell_of(1)->more;
    ck_assert_int_eq(sxe_dict_check(dict, why), -EUCLEAN);
    ck_assert_int_eq(put(2, 1), 0);
    ck_assert_ptr_nonnull(strstr(why, "in a cell of another"));
}
END_TEST

/* ---- Pending changes ---- */

static void
pend_beyond_the_end(struct sxe__dict_record *record)
{
    record->pending = 1000;
}

static void
pend_what_has_no_size(struct sxe__dict_record *record)
{
    const uint32_t id = id_of(1);

    sxe__dict_cell(dict, id)->key_size = 65535;
    record->pending = id + 1;
}

static void
pend_what_has_no_state(struct sxe__dict_record *record)
{
    cell_of(1)->state = SXE__DICT_OLD;
    record->pending = id_of(1) + 1;
}

static void
pend_what_replaces_nothing(struct sxe__dict_record *record)
{
    cell_of(1)->replaces = 1000;
    record->pending = id_of(1) + 1;
}

static void
pend_what_cannot_be_moved(struct sxe__dict_record *record)
{
    const uint32_t id = sxe__dict_list(dict, 0, SXE__DICT_FREE)->next;

    memcpy(sxe__dict_cell(dict, id), cell_of(1), 128);
    dict->sharing->nodes[id].prev = 1000;
    record->pending = id + 1;
}

static void
doom_beyond_the_end(struct sxe__dict_record *record)
{
    record->doomed = 1000;
}

static void
stage_beyond_the_end(struct sxe__dict_record *record)
{
    record->staged_puts = 1000;
    record->staged = dict->control->committed = 5;
}

static void
stage_a_circle(struct sxe__dict_record *record)
{
    cell_of(1)->next = id_of(1) + 1;
    record->staged_puts = id_of(1) + 1;
    record->staged = dict->control->committed = 5;
}

static void
stage_what_has_no_state(struct sxe__dict_record *record)
{
    cell_of(1)->state = 0;
    record->staged_puts = id_of(1) + 1;
    record->staged = dict->control->committed = 5;
}

static void (*const pending[])(struct sxe__dict_record *) = {
    pend_beyond_the_end,
    pend_what_has_no_state,
    pend_what_replaces_nothing,
    pend_what_cannot_be_moved,
    doom_beyond_the_end,
    stage_beyond_the_end,
    stage_a_circle,
    stage_what_has_no_state,
    pend_what_has_no_size,
};

START_TEST(what_cannot_be_completed_is_damage)
{
    char why[SXE_POOL_WHY_SIZE] = "";

    fill(3);
    pending[_i](&dict->records[0]);
    ck_assert_int_eq(get(2), -EUCLEAN);
    ck_assert_int_eq(put(9, 1), -EUCLEAN);
    ck_assert_ptr_null(sxe_dict_snapshot_take(dict));
    ck_assert_int_eq(errno, EUCLEAN);
    ck_assert_int_eq(sxe_dict_check(dict, why), -EUCLEAN);
    ck_assert_ptr_nonnull(strstr(why, "cannot be completed"));
}
END_TEST

/* ---- Room ---- */

/* The release of the snapshot may meet the damage or not; the put that finds no free cell meets
 * it. */
START_TEST(old_version_that_is_damaged_stops_who_needs_room)
{
    SXE_DICT_SNAPSHOT *snapshot;

    fill(30);
    snapshot = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(put(0, 1), 0);
    sxe__dict_cell(dict, 0)->key_size = 65535;
    ck_assert_int_eq(_i == 0 ? 0 : sxe__dict_lock(dict, 0), 0);
    sxe_dict_snapshot_release(snapshot);
    if (_i == 1)
        sxe__dict_unlock(dict, 0);
    for (unsigned i = 30; i < 39; i++)
        ck_assert_int_eq(put(i, 1), 0);
    ck_assert_int_eq(put(39, 1), -EUCLEAN);
}
END_TEST

START_TEST(old_version_that_cannot_be_moved_stops_who_needs_room)
{
    SXE_DICT_SNAPSHOT *snapshot[2];

    fill(30);
    snapshot[0] = sxe_dict_snapshot_take(dict);
    snapshot[1] = sxe_dict_snapshot_take(dict);
    ck_assert_int_eq(put(0, 1), 0);
    dict->sharing->nodes[0].next = 1000;
    sxe_dict_snapshot_release(snapshot[0]);
    sxe_dict_snapshot_release(snapshot[1]);
}
END_TEST

START_TEST(expired_entry_that_cannot_be_moved_stops_who_needs_room)
{
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, value, 1, 1.0), 0);
    fill(CELLS - 1);
    sxe_time_set_turn_ns(UINT64_C(9000000000));
    dict->sharing->nodes[0].next = 1000;
    ck_assert_int_eq(put(99, 1), -EUCLEAN);
}
END_TEST

START_TEST(victim_that_is_damaged_stops_who_needs_room)
{
    sxe_dict_close(dict);
    open_of(true);
    fill(CELLS);
    switch (_i) {
    case 0:
        cell_of(0)->key_size = 65535;
        break;
    case 1:
        node_of(0)->state = SXE_DICT_DIRTY;
        break;
    case 2:
        *bucket_of(0) = 1000;
        break;
    default: /* the list is broken, so evicting gives no free cell */
        sxe__dict_list(dict, 0, SXE__DICT_FREE)->count = 0;
        dict->sharing->nodes[0].prev = 1000;
        break;
    }
    ck_assert_int_eq(put(99, 1), -EUCLEAN);
}
END_TEST

/* ---- Repairs of versions and lists ---- */

START_TEST(younger_of_two_versions_is_kept)
{
    fill(3);
    const uint32_t first = id_of(1);
    ck_assert_int_eq(put(1, 2), 0);
    const uint32_t second = id_of(1);
    /* As if a process had died in the middle of a change: both versions are LIVE. */
    memcpy(sxe__dict_cell(dict, first), sxe__dict_cell(dict, second), 128);
    sxe__dict_cell(dict, first)->value_size = 0;
    ck_assert(sxe__pool_move_locked(dict->pool, _i == 0 ? first : second, SXE_DICT_LIVE));
    if (_i == 1)
        ck_assert(sxe__pool_move_locked(dict->pool, first, SXE_DICT_LIVE));
    else
        ck_assert(sxe__pool_move_locked(dict->pool, second, SXE_DICT_LIVE));
    struct sxe__dict_view view;
    ck_assert_int_eq(sxe__dict_read(dict, 0, first, &view), 0);
    sxe__dict_cell(dict, first)->sum = sxe__dict_head_sum(dict, &view);
    sxe__dict_damaged(dict);
    ck_assert_int_eq(sxe__dict_rebuild(dict), 0);
    ck_assert_int_eq(get(1), _i == 1 ? 0 : 2);
    ck_assert_int_eq(sxe_dict_check(dict, NULL), 0);
}
END_TEST

START_TEST(lists_that_are_damaged_cannot_be_made_anew)
{
    fill(3);
    node_of(1)->prev = 1000;
    sxe__dict_cell(dict, id_of(1))->sum++;
    ck_assert_int_eq(sxe__dict_rebuild(dict), -EUCLEAN);
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(sxe__dict_rebuild(dict), -ENOMEM);
    fake_os_reset();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("dict-damage");
    TCase *tcase = tcase_create("damage");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, chain_that_leads_astray_behind_the_entry_stops_a_put);
    tcase_add_test(tcase, chain_that_goes_round_stops_a_walk);
    tcase_add_test(tcase, chain_with_a_cell_that_is_no_entry_stops_a_get);
    tcase_add_test(tcase, old_version_in_no_possible_state_stops_a_walk);
    tcase_add_test(tcase, node_that_is_linked_wrongly_stops_what_moves_it);
    tcase_add_test(tcase, counter_whose_node_is_linked_wrongly_is_not_added_to);
    tcase_add_loop_test(tcase, free_list_that_leads_astray_stops_puts, 0, 2);
    tcase_add_test(tcase, free_list_that_leads_astray_later_stops_long_puts_and_batches);
    tcase_add_test(tcase, batch_that_meets_damage_does_nothing);
    tcase_add_test(tcase, condition_that_meets_damage_stops_its_batch);
    tcase_add_loop_test(tcase, value_that_goes_on_nowhere_is_not_read, 0, 2);
    tcase_add_test(tcase, value_that_goes_on_in_a_cell_linked_wrongly_is_not_removed);
    tcase_add_test(tcase, counter_that_goes_on_nowhere_is_not_added_to);
    tcase_add_test(tcase, two_values_in_one_cell_are_found);
    tcase_add_loop_test(tcase, what_cannot_be_completed_is_damage, 0, (int)SXE_COUNT(pending));
    tcase_add_loop_test(tcase, old_version_that_is_damaged_stops_who_needs_room, 0, 2);
    tcase_add_test(tcase, old_version_that_cannot_be_moved_stops_who_needs_room);
    tcase_add_test(tcase, expired_entry_that_cannot_be_moved_stops_who_needs_room);
    tcase_add_loop_test(tcase, victim_that_is_damaged_stops_who_needs_room, 0, 4);
    tcase_add_loop_test(tcase, younger_of_two_versions_is_kept, 0, 2);
    tcase_add_test(tcase, lists_that_are_damaged_cannot_be_made_anew);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
