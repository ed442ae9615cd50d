/* SPDX-License-Identifier: MIT
 *
 * The names of 2010 and 2011: each calls its modern function.
 */
#include "sxe-pool-shared.h"
#include "test-main.h"

enum { FREE, BUSY, STATES };
enum { NUMBER = 4 };

static unsigned *
make_pool(void)
{
    unsigned *pool = sxe_pool_new("old", NUMBER, sizeof(*pool), STATES, SXE_POOL_OPTION_UNLOCKED);

    ck_assert_ptr_nonnull(pool);
    return pool;
}

START_TEST(the_old_names_move_elements)
{
    unsigned ids[NUMBER] = {0};
    unsigned state = FREE;
    unsigned *pool = make_pool();

    ck_assert_uint_eq(sxe_pool_set_oldest_element_state(pool, FREE, BUSY), 0);
    ck_assert_uint_eq(sxe_pool_set_exact_oldest_element_state(pool, FREE, BUSY), 1);
    ck_assert_uint_eq(sxe_pool_set_indexed_element_state(pool, 0, BUSY, FREE), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_try_to_set_indexed_element_state(pool, 1, FREE, &state),
                      SXE_POOL_INCORRECT_STATE);
    ck_assert_uint_eq(state, BUSY);
    ck_assert_uint_eq(sxe_pool_set_oldest_elements_state(pool, FREE, BUSY, ids, 2), 2);
    ck_assert_uint_eq(ids[0], 2);
    ck_assert_uint_eq(sxe_pool_set_indexed_elements_state(pool, ids, 2, BUSY, FREE), 2);
    ck_assert_uint_eq(sxe_pool_get_count(pool, BUSY), 1);
    sxe_pool_delete(pool);
}
END_TEST

START_TEST(the_old_names_look_and_touch)
{
    unsigned *pool = make_pool();

    ck_assert_uint_eq(sxe_pool_get_number_in_state(pool, FREE), NUMBER);
    ck_assert_uint_eq(sxe_pool_index_to_state(pool, 3), FREE);
    ck_assert_uint_eq(sxe_pool_get_oldest_element_index(pool, FREE), 0);
    ck_assert_uint_eq(sxe_pool_touch_indexed_element(pool, 0), SXE_POOL_LOCK_TAKEN);
    ck_assert_uint_eq(sxe_pool_get_youngest_element_index(pool, FREE), 0);
    ck_assert_uint_eq(sxe_pool_get_oldest_element_time(pool, FREE), sxe_pool_get_time(pool, 1));
    ck_assert_uint_eq(sxe_pool_get_element_time_by_index(pool, 0), sxe_pool_get_time(pool, 0));
    sxe_pool_delete(pool);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-2010");
    TCase *names = tcase_create("names");

    tcase_add_test(names, the_old_names_move_elements);
    tcase_add_test(names, the_old_names_look_and_touch);
    suite_add_tcase(s, names);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
