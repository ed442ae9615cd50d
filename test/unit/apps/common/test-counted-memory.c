/* SPDX-License-Identifier: MIT
 *
 * The counting allocator: how it counts memory, and when it refuses.
 */
#include "counted-memory.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "fake-os.h"
#include "test-main.h"

START_TEST(bytes_in_use_and_all_that_were_given_are_counted)
{
    struct counted_memory memory = {.used_max = 1000, .total_max = SIZE_MAX};
    /* For a new block, the "old size" that Lua passes is a type, and must not be counted. */
    char *block = counted_memory_allocate(&memory, NULL, 4, 600);

    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(memory.used, 600);
    memset(block, 'x', 600);
    block = counted_memory_allocate(&memory, block, 600, 1000);
    ck_assert_ptr_nonnull(block);
    ck_assert_int_eq(block[599], 'x');
    ck_assert_uint_eq(memory.used, 1000);
    block = counted_memory_allocate(&memory, block, 1000, 100);
    ck_assert_uint_eq(memory.used, 100);
    ck_assert_uint_eq(memory.total, 1700);
    ck_assert_ptr_null(counted_memory_allocate(&memory, block, 100, 0));
    ck_assert_uint_eq(memory.used, 0);
    ck_assert_uint_eq(memory.total, 1700);
    ck_assert_ptr_null(counted_memory_allocate(&memory, NULL, 4, 0));
    ck_assert_uint_eq(memory.used, 0);
}
END_TEST

START_TEST(a_block_that_would_exceed_the_bytes_in_use_is_refused_and_stays)
{
    struct counted_memory memory = {.used_max = 1000, .total_max = SIZE_MAX};
    char *block = counted_memory_allocate(&memory, NULL, 0, 1000);

    ck_assert_ptr_null(counted_memory_allocate(&memory, NULL, 0, 1));
    ck_assert_ptr_null(counted_memory_allocate(&memory, block, 1000, 1001));
    ck_assert_ptr_null(counted_memory_allocate(&memory, block, 1000, SIZE_MAX));
    ck_assert_uint_eq(memory.used, 1000);
    block[999] = 'x';
    counted_memory_allocate(&memory, block, 1000, 0);
    ck_assert_uint_eq(memory.used, 0);
}
END_TEST

START_TEST(the_total_is_limited_for_blocks_that_grow)
{
    struct counted_memory memory = {.used_max = 1000, .total_max = 1000};
    char *block = counted_memory_allocate(&memory, NULL, 0, 600);

    ck_assert_ptr_null(counted_memory_allocate(&memory, block, 600, 601));
    ck_assert_uint_eq(memory.total, 600);
    block = counted_memory_allocate(&memory, block, 600, 500);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(memory.total, 1100);
    counted_memory_allocate(&memory, block, 500, 0);
    ck_assert_ptr_null(counted_memory_allocate(&memory, NULL, 0, 1));
}
END_TEST

START_TEST(without_memory_nothing_is_counted)
{
    struct counted_memory memory = {.used_max = 1000, .total_max = SIZE_MAX};

    fake_os_fail(FAKE_REALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(counted_memory_allocate(&memory, NULL, 0, 10));
    ck_assert_uint_eq(memory.used, 0);
    ck_assert_uint_eq(memory.total, 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("counted-memory");
    TCase *tcase = tcase_create("limits");

    tcase_add_test(tcase, bytes_in_use_and_all_that_were_given_are_counted);
    tcase_add_test(tcase, a_block_that_would_exceed_the_bytes_in_use_is_refused_and_stays);
    tcase_add_test(tcase, the_total_is_limited_for_blocks_that_grow);
    tcase_add_test(tcase, without_memory_nothing_is_counted);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
