/* SPDX-License-Identifier: MIT
 *
 * Tests the substitutes for backtrace(3): they find the calls that glibc finds, and name the same
 * files and addresses.
 */
#include "backtrace.h"

#include <stdio.h>
#include <string.h>

#include "has.h"
#include "test-main.h"

enum { ROOM = 64 };

/* The calls of one place by both. Only the first ones differ, which are inside of this function and
 * of backtrace. */
START_TEST(the_calls_are_those_of_glibc)
{
    void *ours[ROOM];
    void *theirs[ROOM];
    const int our_count = unwind_calls(ours, ROOM);
    const int their_count = backtrace(theirs, ROOM);

    ck_assert_int_gt(our_count, 4);
    ck_assert_int_gt(their_count, 4);
    for (int i = 1; i < 4; i++)
        ck_assert_ptr_eq(ours[our_count - i], theirs[their_count - i]);
}
END_TEST

START_TEST(no_more_calls_than_there_is_room_for)
{
    void *calls[3] = {NULL, NULL, NULL};

    ck_assert_int_eq(unwind_calls(calls, 2), 2);
    ck_assert_ptr_nonnull(calls[1]);
    ck_assert_ptr_null(calls[2]);
}
END_TEST

START_TEST(a_call_has_a_line_with_its_file_and_address)
{
    void *const calls[] = {(void *)(uintptr_t)unwind_calls, (void *)16};
    char said[1024];
    FILE *file = tmpfile();
    ssize_t length;

    write_calls(calls, 2, fileno(file));
    length = pread(fileno(file), said, sizeof(said) - 1, 0);
    ck_assert_int_gt(length, 0);
    said[length] = '\0';
    check_has(said, "test-backtrace(+0x");
    check_has(said, "\n[0x10]\n");
    fclose(file);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("backtrace");
    TCase *tcase = tcase_create("substitutes");

    tcase_add_test(tcase, the_calls_are_those_of_glibc);
    tcase_add_test(tcase, no_more_calls_than_there_is_room_for);
    tcase_add_test(tcase, a_call_has_a_line_with_its_file_and_address);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
