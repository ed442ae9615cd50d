/* SPDX-License-Identifier: MIT
 *
 * sxe_pool_sync: what it writes, and when it is refused.
 */
#include "pool-file.h"
#include "sxe-dict.h"
#include "test-main.h"

START_TEST(all_that_is_mapped_of_the_file_is_written)
{
    const SXE_POOL_SPEC spec = {FILE_SPEC};
    char *array = open_pool(&spec);

    fake_os_fail(FAKE_MSYNC, 3, 1, EIO);
    /* Two calls of msync: for the elements and for the head. */
    ck_assert_int_eq(sxe_pool_sync(array), 0);
    ck_assert_uint_eq(fake_os_injected(), 0);
    ck_assert_int_eq(sxe_pool_sync(array), -EIO);
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert_int_eq(sxe_pool_sync(array), 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(what_the_disk_refuses_is_told)
{
    const SXE_POOL_SPEC spec = {FILE_SPEC};
    char *array = open_pool(&spec);

    fake_os_fail(FAKE_MSYNC, (unsigned)_i, 1, EIO);
    ck_assert_int_eq(sxe_pool_sync(array), -EIO);
    ck_assert_int_eq(sxe_pool_sync(array), 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(without_a_file_there_is_nothing_to_write)
{
    SXE_POOL_SPEC spec = {FILE_SPEC};
    const unsigned options[] = {SXE_POOL_OPTION_LOCKED, SXE_POOL_OPTION_SHARED};

    spec.file = NULL;
    for (unsigned i = 0; i < 2; i++) {
        spec.options = options[i];
        char *array = open_pool(&spec);

        ck_assert_int_eq(sxe_pool_sync(array), -EINVAL);
        sxe_pool_delete(array);
    }
    char *array = sxe_pool_new("own", 4, 8, 2, 0);

    ck_assert_int_eq(sxe_pool_sync(array), -EINVAL);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_pool_stays_in_use_after_a_sync)
{
    const SXE_POOL_SPEC spec = {FILE_SPEC};
    char *array = open_pool(&spec);

    ck_assert_int_eq(sxe_pool_sync(array), 0);
    load_image();
    ck_assert_uint_eq(image.head.closed, 0);
    sxe_pool_delete(array);
}
END_TEST

START_TEST(a_dict_is_its_cells)
{
    const SXE_DICT_SPEC spec = {.name = "d", .cells = 8, .file = file_path};
    SXE_DICT *dict = sxe_dict_open(&spec, why);

    ck_assert_msg(dict != NULL, "%s", why);
    ck_assert_int_eq(sxe_dict_sync(dict), 0);
    fake_os_fail(FAKE_MSYNC, 1, 1, EIO);
    ck_assert_int_eq(sxe_dict_sync(dict), -EIO);
    sxe_dict_close(dict);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("pool-sync");
    TCase *c = tcase_create("all");

    tcase_add_checked_fixture(c, begin_with_no_file, remove_the_file);
    tcase_add_test(c, all_that_is_mapped_of_the_file_is_written);
    tcase_add_loop_test(c, what_the_disk_refuses_is_told, 1, 3);
    tcase_add_test(c, without_a_file_there_is_nothing_to_write);
    tcase_add_test(c, a_pool_stays_in_use_after_a_sync);
    tcase_add_test(c, a_dict_is_its_cells);
    suite_add_tcase(s, c);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
