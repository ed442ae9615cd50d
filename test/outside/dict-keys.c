/* SPDX-License-Identifier: MIT
 *
 * Keys, sizes, times to live, and which entries are evicted, by docs/dict.md and sxe-dict.h.
 */
#include "outside.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sxe-dict.h>

static SXE_DICT *dict;
static char value[16];

static void
open_of(unsigned cells, bool evicts)
{
    const SXE_DICT_SPEC spec = {.name = "keys", .cells = cells, .evicts = evicts};
    char why[SXE_POOL_WHY_SIZE];

    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
}

static void
check_and_close(void)
{
    char why[SXE_POOL_WHY_SIZE];

    ck_assert_msg(sxe_dict_check(dict, why) == 0, "%s", why);
    sxe_dict_close(dict);
}

/* promise: docs/dict.md: A dict maps bytes to bytes, in a [pool](pool.md) */
START_TEST(any_bytes_can_be_a_key_even_zeros_and_none)
{
    static const char zeros[192];
    unsigned char size;

    open_of(400, false);
    for (unsigned i = 0; i <= sizeof(zeros); i++) {
        size = (unsigned char)i;
        ck_assert_int_eq(sxe_dict_put(dict, zeros, i, &size, 1, 0), 0);
    }
    ck_assert_uint_eq(sxe_dict_get_count(dict), sizeof(zeros) + 1);
    for (unsigned i = 0; i <= sizeof(zeros); i++) {
        ck_assert_int_eq(sxe_dict_get(dict, zeros, i, &size, 1), 1);
        ck_assert_uint_eq(size, i);
    }
    ck_assert_int_eq(sxe_dict_put(dict, NULL, 0, NULL, 0, 0), 0);
    ck_assert_int_eq(sxe_dict_get(dict, zeros, 0, NULL, 0), 0);
    ck_assert_int_eq(sxe_dict_remove(dict, zeros, 1), 0);
    ck_assert_int_eq(sxe_dict_get(dict, zeros, 1, NULL, 0), -ENOENT);
    ck_assert_int_eq(sxe_dict_get(dict, zeros, 2, NULL, 0), 1);
    check_and_close();
}
END_TEST

/* promise: lib-sxe-dict/sxe-dict.h: -EINVAL the key is
 * too long, or the time to live is negative or no number. */
START_TEST(impossible_sizes_and_times_change_nothing)
{
    static const double wrong[] = {-1, -1e-300, -INFINITY, NAN};
    static const double good[] = {0, -0.0, 1e10, 1e300, INFINITY};
    static const size_t huge[] = {65536, (size_t)1 << 32, ((size_t)1 << 32) + 1, SIZE_MAX};

    open_of(10, false);
    SXE_DICT_BATCH *batch = sxe_dict_batch_new(dict);
    ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "old", 3, 0), 0);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "v", 1, wrong[i]), -EINVAL);
        ck_assert_int_eq(sxe_dict_expire(dict, "k", 1, wrong[i]), -EINVAL);
        ck_assert_int_eq(sxe_dict_batch_put(batch, "k", 1, "v", 1, wrong[i]), -EINVAL);
    }
    for (unsigned i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
        ck_assert_int_eq(sxe_dict_put(dict, "k", huge[i], "v", 1, 0), -EINVAL);
        ck_assert_int_eq(sxe_dict_get(dict, "k", huge[i], value, 1), -EINVAL);
        ck_assert_int_eq(sxe_dict_batch_put(batch, "k", huge[i], "v", 1, 0), -EINVAL);
        ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "v", huge[i] | 1U << 31, 0), -EFBIG);
    }
    ck_assert_int_eq(sxe_dict_batch_commit(batch), 0);
    ck_assert_int_eq(sxe_dict_get(dict, "k", 1, value, sizeof(value)), 3);
    ck_assert_mem_eq(value, "old", 3);
    for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert_int_eq(sxe_dict_put(dict, "k", 1, "old", 3, good[i]), 0);
        ck_assert_int_eq(sxe_dict_get(dict, "k", 1, value, sizeof(value)), 3);
    }
    sxe_dict_batch_delete(batch);
    check_and_close();
}
END_TEST

/* promise: lib-sxe-dict/sxe-dict.h: entries that are never evicted */
START_TEST(pinned_entries_stay_and_the_oldest_live_entry_is_evicted)
{
    enum { CELLS = 20 };

    open_of(CELLS, true);
    for (int key = 0; key < CELLS; key++) {
        ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), "v", 1, 0), 0);
        if (key % 4 == 0)
            ck_assert_int_eq(sxe_dict_set_state(dict, &key, sizeof(key),
                                                key % 8 == 0 ? SXE_DICT_PINNED : SXE_DICT_DIRTY),
                             0);
    }
    /* use these entries last, so that they are evicted last */
    for (int key = 1; key < CELLS; key += 4)
        ck_assert_int_eq(sxe_dict_get(dict, &key, sizeof(key), value, 1), 1);
    for (int key = 100; key < 110; key++)
        ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), "v", 1, 0), 0);
    for (int key = 0; key < CELLS; key++)
        ck_assert_int_eq(sxe_dict_peek(dict, &key, sizeof(key), value, 1),
                         key % 4 < 2 ? 1 : -ENOENT);
    for (int key = 200; key < 1000; key++)
        ck_assert_int_eq(sxe_dict_put(dict, &key, sizeof(key), "v", 1, 0), 0);
    for (int key = 0; key < CELLS; key++)
        ck_assert_int_eq(sxe_dict_peek(dict, &key, sizeof(key), value, 1),
                         key % 4 == 0 ? 1 : -ENOENT);
    ck_assert_uint_eq(sxe_dict_get_count(dict), CELLS);
    check_and_close();
}
END_TEST

/* promise: docs/limits.md: a key has at most 65472 bytes and must fit into one cell */
START_TEST(the_longest_key_fits_the_largest_cell)
{
    static const char key[65473];
    const SXE_DICT_SPEC spec = {.name = "keys", .cells = 8, .cell_size = 65536};
    char why[SXE_POOL_WHY_SIZE];

    dict = sxe_dict_open(&spec, why);
    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_int_eq(sxe_dict_put(dict, key, 65472, "v", 1, 0), 0);
    ck_assert_int_eq(sxe_dict_get(dict, key, 65472, value, 1), 1);
    ck_assert_int_eq(sxe_dict_put(dict, key, 65473, "v", 1, 0), -EINVAL);
    ck_assert_int_eq(sxe_dict_get(dict, key, 65473, value, 1), -EINVAL);
    ck_assert_uint_eq(sxe_dict_get_count(dict), 1);
    check_and_close();
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {any_bytes_can_be_a_key_even_zeros_and_none,
                            impossible_sizes_and_times_change_nothing,
                            pinned_entries_stay_and_the_oldest_live_entry_is_evicted,
                            the_longest_key_fits_the_largest_cell, NULL};

    return outside_run("dict-keys", cases);
}
