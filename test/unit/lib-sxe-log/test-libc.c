/* SPDX-License-Identifier: MIT
 *
 * Tests the substitutes for functions of glibc that other C libraries lack: their results are those
 * of glibc.
 */
#include "sxe-libc-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "test-main.h"

/* Check that both texts are equal, or that there is none. */
static void
check_text(const char *ours, const char *theirs, int number)
{
    ck_assert_msg((ours == NULL) == (theirs == NULL), "%d: '%s', not '%s'", number,
                  ours == NULL ? "NULL" : ours, theirs == NULL ? "NULL" : theirs);
    if (ours != NULL)
        ck_assert_str_eq(ours, theirs);
}

START_TEST(errors_have_the_texts_of_glibc)
{
    for (int error = -2; error < 300; error++)
        check_text(sxe__libc_error_text(error), strerrordesc_np(error), error);
}
END_TEST

START_TEST(signals_have_the_names_of_glibc)
{
    for (int number = -2; number < 130; number++)
        check_text(sxe__libc_signal_name(number), sigabbrev_np(number), number);
}
END_TEST

START_TEST(preadv2_reads_at_a_place_and_takes_flags)
{
    char first[3];
    char second[5];
    const struct iovec parts[] = {{first, sizeof(first)}, {second, sizeof(second)}};
    FILE *file = tmpfile();
    int fd = fileno(file);

    ck_assert_int_eq(write(fd, "0123456789", 10), 10);
    ck_assert_int_eq(sxe__libc_preadv2(fd, parts, 2, 1, 0), 8);
    ck_assert_mem_eq(first, "123", 3);
    ck_assert_mem_eq(second, "45678", 5);
    ck_assert_int_eq(sxe__libc_preadv2(fd, parts, 2, 7, 0), 3);
    ck_assert_int_eq(sxe__libc_preadv2(fd, parts, 2, 10, 0), 0);
    ck_assert_int_eq(sxe__libc_preadv2(fd, parts, 2, 0, 1 << 30), -1);
    ck_assert_int_eq(errno, EOPNOTSUPP);
    ck_assert_int_eq(sxe__libc_preadv2(-1, parts, 2, 0, 0), -1);
    ck_assert_int_eq(errno, EBADF);
    fclose(file);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("libc");
    TCase *tcase = tcase_create("substitutes");

    tcase_add_test(tcase, errors_have_the_texts_of_glibc);
    tcase_add_test(tcase, signals_have_the_names_of_glibc);
    tcase_add_test(tcase, preadv2_reads_at_a_place_and_takes_flags);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
