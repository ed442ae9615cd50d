/* SPDX-License-Identifier: MIT
 *
 * Dicts in which bits change while they are open: what a call reads is compared with its checksum,
 * for dicts in files, or if the program asks for it.
 */
#include "sxe-dict-private.h"
#include "sxe-pool-sharing-private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture-log.h"
#include "test-main.h"

#define ENTRIES 12u

static char file[64];
static char why[SXE_POOL_WHY_SIZE];
static SXE_DICT *dict;
static char value[300];

/* Entry 0 has 100 bytes, 1 is a counter, 2 has several cells, 3 is empty. */
static size_t
size_of(unsigned number)
{
    static const size_t sizes[] = {100, 8, 250, 0};

    return sizes[number % 4];
}

static const char *
key_of(unsigned number)
{
    static char key[16];

    snprintf(key, sizeof(key), "key-%02u", number);
    return key;
}

static void
open_it(unsigned options, const char *path)
{
    const SXE_DICT_SPEC spec = {
        .name = "verify", .cells = 40, .options = options, .file = path, .cell_size = 192};

    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
}

static void
fill(void)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        memset(value, (int)i + 1, sizeof(value));
        ck_assert_int_eq(sxe_dict_put(dict, key_of(i), 6, value, size_of(i), 1e6), 0);
    }
}

static void
begin(void)
{
    capture_log();
    sxe_log_set_level(SXE_LOG_NONE);
    snprintf(file, sizeof(file), "/dev/shm/test-dict-verify-%d", (int)getpid());
    unlink(file);
    open_it(0, file);
    fill();
}

static void
end(void)
{
    sxe_dict_close(dict);
    unlink(file);
}

static struct sxe__dict_cell *
cell_of(unsigned number)
{
    struct sxe__dict_key key;
    struct sxe__dict_view view;

    ck_assert_int_eq(sxe__dict_set_key(dict, &key, key_of(number), 6), 0);
    ck_assert_int_eq(sxe__dict_find(dict, &key, 0, &view), 1);
    return sxe__dict_cell(dict, view.id);
}

static void
forget_damage(void)
{
    dict->sharing->head->damaged = 0;
    dict->control->doubtful = 0;
}

/* Whether a get returns the entry; false: it found damage. A value that it returns must be
 * right. */
static bool
is_served(unsigned number)
{
    char found[300];
    const ssize_t size = sxe_dict_get(dict, key_of(number), 6, found, sizeof(found));

    forget_damage();
    if (size == -EUCLEAN)
        return false;
    memset(value, (int)number + 1, sizeof(value));
    ck_assert_int_eq(size, (ssize_t)size_of(number));
    ck_assert(memcmp(found, value, (size_t)size) == 0);
    return true;
}

/* ---- Changed bits ---- */

/* Whether the checksum of an entry in a single cell covers the byte `at` of that cell. */
static bool
is_covered(size_t at, unsigned number)
{
    const size_t data = offsetof(struct sxe__dict_cell, data);

    return at < offsetof(struct sxe__dict_cell, born) ||
           (at >= offsetof(struct sxe__dict_cell, value_size) &&
            at < offsetof(struct sxe__dict_cell, state)) ||
           (at >= offsetof(struct sxe__dict_cell, sum) &&
            at < offsetof(struct sxe__dict_cell, reserved_2)) ||
           (at >= data && at < data + 6) ||
           (at >= data + 8 && at < data + 8 + size_of(number) && at < dict->cell_size);
}

START_TEST(no_bit_of_an_entry_changes_what_is_served)
{
    const unsigned number = (unsigned)_i;
    char *bytes = (char *)cell_of(number);

    for (size_t bit = 0; bit < 8 * (size_t)dict->cell_size; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        const bool served = is_served(number);
        ck_assert_msg(!served || !is_covered(bit / 8, number), "bit %zu of entry %u", bit, number);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    }
    ck_assert(is_served(number));
    ck_assert_int_eq(sxe_dict_check(dict, why), 0);
}
END_TEST

START_TEST(an_older_page_of_cells_is_missed)
{
    struct sxe__dict_cell *cell = cell_of(0);
    char *old = malloc(dict->cell_size);

    memcpy(old, cell, dict->cell_size);
    /* Free the cell, and put another entry into it. */
    memset(value, 1, sizeof(value));
    for (unsigned i = 0; i < 100 && cell_of(0) != cell; i++)
        ck_assert_int_eq(sxe_dict_put(dict, key_of(0), 6, value, 100, 1e6), 0);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(sxe_dict_put(dict, key_of(0), 6, value, 100, 1e6), 0);
        if (cell_of(0) == cell)
            break;
    }
    ck_assert_ptr_eq(cell_of(0), cell);
    ck_assert(is_served(0));
    const uint32_t chain = cell->chain;
    memcpy(cell, old, dict->cell_size);
    cell->chain = chain;
    ck_assert(!is_served(0));
    free(old);
}
END_TEST

/* ---- Each call that reads ---- */

static int
call_get(void)
{
    return (int)sxe_dict_get(dict, key_of(1), 6, NULL, 0);
}

static int
call_peek(void)
{
    return (int)sxe_dict_peek(dict, key_of(1), 6, NULL, 0);
}

static int
call_get_ttl(void)
{
    return (int)sxe_dict_get_ttl(dict, key_of(1), 6);
}

static int
call_add(void)
{
    return sxe_dict_add(dict, key_of(1), 6, 1, 0, NULL);
}

static int
call_compare_and_put(void)
{
    memset(value, 2, sizeof(value));
    return sxe_dict_compare_and_put(dict, key_of(1), 6, value, 8, "new", 3, 0);
}

static int
call_walk(void)
{
    SXE_DICT_WALKER walker;
    SXE_DICT_ENTRY entry = {0};
    int result;

    sxe_dict_walker_construct(&walker, dict);
    do
        result = sxe_dict_walker_step(&walker, &entry);
    while (result == 1);
    return result;
}

static int
call_snapshot(void)
{
    SXE_DICT_SNAPSHOT *snapshot = sxe_dict_snapshot_take(dict);
    const int result = (int)sxe_dict_snapshot_get(snapshot, key_of(1), 6, NULL, 0);

    sxe_dict_snapshot_release(snapshot);
    return result;
}

static int
call_batch(void)
{
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);

    memset(value, 2, sizeof(value));
    ck_assert_int_eq(sxe_dict_batch_expect(batch, key_of(1), 6, value, 8), 0);
    ck_assert_int_eq(sxe_dict_batch_put(batch, key_of(5), 6, value, 8, 0), 0);
    const int result = sxe_dict_batch_commit(batch);
    sxe_dict_batch_delete(batch);
    return result;
}

static int (*const calls[])(void) = {call_get,  call_peek,     call_get_ttl, call_compare_and_put,
                                     call_walk, call_snapshot, call_batch,   call_add};

START_TEST(each_call_that_reads_an_entry_compares_its_sum)
{
    for (unsigned what = 0; what < 2; what++) {
        if (what == 0)
            cell_of(1)->data[8] ^= 64;
        else
            cell_of(1)->expires_ns ^= UINT64_C(1) << 62;
        ck_assert_int_eq(calls[_i](), -EUCLEAN);
        forget_damage();
        ck_assert_int_eq(sxe_dict_check(dict, why), -EUCLEAN);
        ck_assert_ptr_nonnull(strstr(why, "its value, its size or its expiry is not what was"));
        forget_damage();
        if (what == 0)
            cell_of(1)->data[8] ^= 64;
        else
            cell_of(1)->expires_ns ^= UINT64_C(1) << 62;
    }
    ck_assert_int_ne(calls[_i](), -EUCLEAN);
    ck_assert_int_eq(sxe_dict_check(dict, why), 0);
}
END_TEST

START_TEST(an_entry_is_not_taken_for_expired_because_a_bit_changed)
{
    struct sxe__dict_cell *cell = cell_of(1);
    const uint64_t expires_ns = cell->expires_ns;

    cell->expires_ns = 1;
    ck_assert_int_eq(call_get(), -EUCLEAN);
    dict->records[0].next_expiry = 1;
    int result = 0;
    for (unsigned i = 20; result == 0 && i < 100; i++)
        result = sxe_dict_put(dict, key_of(i), 6, NULL, 0, 0);
    ck_assert_int_eq(result, -EUCLEAN);
    cell->expires_ns = expires_ns;
    forget_damage();
    ck_assert(is_served(1));
}
END_TEST

START_TEST(a_walk_misses_a_key_that_changed)
{
    cell_of(1)->data[0] ^= 1;
    ck_assert_int_eq(call_walk(), -EUCLEAN);
}
END_TEST

/* ---- Dicts that compare checksums, and dicts that do not ---- */

START_TEST(who_verifies_is_told_by_the_options)
{
    static const struct {
        unsigned options;
        bool is_file;
        bool verifies;
    } kinds[] = {
        {0, true, true},
        {0, false, false},
        {SXE_POOL_OPTION_UNVERIFIED, true, false},
        {SXE_POOL_OPTION_UNVERIFIED, false, false},
        {SXE_POOL_OPTION_VERIFIED, true, true},
        {SXE_POOL_OPTION_VERIFIED, false, true},
        {SXE_POOL_OPTION_LOCKED, false, false},
        {SXE_POOL_OPTION_LOCKED | SXE_POOL_OPTION_VERIFIED, false, true},
    };

    sxe_dict_close(dict);
    unlink(file);
    open_it(kinds[_i].options, kinds[_i].is_file ? file : NULL);
    fill();
    cell_of(1)->data[8] ^= 64;
    ck_assert_int_eq(call_get(), kinds[_i].verifies ? -EUCLEAN : 8);
    forget_damage();
    cell_of(1)->data[8] ^= 64;
    ck_assert_int_eq(call_get(), 8);
}
END_TEST

/* ---- Changes in place ---- */

START_TEST(what_is_changed_where_it_is_stays_sound)
{
    int64_t sum;

    ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 5, 0, NULL), 0);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(sxe_dict_add(dict, "n", 1, 7, 0, &sum), 0);
        ck_assert_int_eq(sxe_dict_expire(dict, "n", 1, i % 3 == 0 ? 0 : 10.0 * i), 0);
        ck_assert_int_eq(sxe_dict_expire(dict, key_of(2), 6, 10.0 * i), 0);
        ck_assert_int_eq(sxe_dict_check(dict, why), 0);
    }
    ck_assert_int_eq(sum, 705);
    ck_assert(is_served(2));
}
END_TEST

/* When the process died, it had made the store, changed the checksum, both, or neither. */
START_TEST(a_change_that_was_left_is_finished)
{
    struct sxe__dict_cell *cell = cell_of(1);
    struct sxe__dict_record *record = &dict->records[0];
    const uint32_t before = cell->sum;
    const uint64_t new_value = 77;
    const uint32_t after = before ^ sxe__dict_value_sum(cell->data + 8, 8) ^
                           sxe__dict_value_sum((const char *)&new_value, 8);

    record->changed = (uint32_t)(((char *)cell - (char *)dict->array) / dict->cell_size) + 1;
    record->changed_sum = after;
    if (_i % 4 > 0)
        memcpy(cell->data + 8, &new_value, sizeof(new_value));
    if (_i % 4 > 1)
        cell->sum = after;
    if (_i % 4 > 2)
        cell->data[9] ^= 1;
    if (_i >= 4) {
        ck_assert_int_eq(sxe__dict_rebuild(dict), 0);
        ck_assert_int_eq(call_get(), _i % 4 > 2 ? -ENOENT : 8);
        forget_damage();
        ck_assert_int_eq(sxe_dict_check(dict, why), 0);
        return;
    }
    ck_assert_int_eq(call_get(), _i > 2 ? -EUCLEAN : 8);
    ck_assert_uint_eq(record->changed, _i > 2 ? record->changed : 0);
    record->changed = 0;
    forget_damage();
    ck_assert_int_eq(sxe_dict_check(dict, why), _i > 2 ? -EUCLEAN : 0);
}
END_TEST

START_TEST(a_change_of_a_cell_that_cannot_be_is_damage)
{
    dict->records[0].changed = (uint32_t)_i == 0 ? UINT32_MAX : 1;
    if (_i == 1)
        sxe__dict_cell(dict, 0)->value_size = UINT32_MAX;
    ck_assert_int_eq(call_get(), -EUCLEAN);
    forget_damage();
    ck_assert_int_eq(sxe__dict_rebuild(dict), 0);
    forget_damage();
    ck_assert_int_eq(sxe_dict_check(dict, why), 0);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("dict-verify");
    TCase *c = tcase_create("verify");

    tcase_add_checked_fixture(c, begin, end);
    tcase_add_loop_test(c, no_bit_of_an_entry_changes_what_is_served, 0, ENTRIES);
    tcase_add_test(c, an_older_page_of_cells_is_missed);
    tcase_add_loop_test(c, each_call_that_reads_an_entry_compares_its_sum, 0, 8);
    tcase_add_test(c, an_entry_is_not_taken_for_expired_because_a_bit_changed);
    tcase_add_test(c, a_walk_misses_a_key_that_changed);
    tcase_add_loop_test(c, who_verifies_is_told_by_the_options, 0, 8);
    tcase_add_test(c, what_is_changed_where_it_is_stays_sound);
    tcase_add_loop_test(c, a_change_that_was_left_is_finished, 0, 8);
    tcase_add_loop_test(c, a_change_of_a_cell_that_cannot_be_is_damage, 0, 2);
    suite_add_tcase(s, c);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
