/* SPDX-License-Identifier: MIT
 *
 * Tests what the log does about standard descriptors that were closed before the program began.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-log.h"
#include "test-main.h"

/* The finding of a child: a bit for each open descriptor, and a bit for each that can be used. */
static int
look(void)
{
    char byte = 0;
    int found = 0;

    for (int fd = 0; fd < 3; fd++)
        found |= (fcntl(fd, F_GETFD) >= 0) << fd;
    found |= (read(0, &byte, 1) >= 0) << 3;
    found |= (write(1, &byte, 0) >= 0) << 4;
    found |= (write(2, &byte, 0) >= 0) << 5;
    return found;
}

/* In a child: close this set of descriptors, call sxe_hold_standard_descriptors, and return what
 * look() finds, with the lowest free descriptor (at most 3) in bits 6 and 7. */
static int
hold(unsigned closed, bool fails)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        for (int fd = 0; fd < 3; fd++)
            if (closed & (1u << fd))
                close(fd);
        if (fails)
            fake_os_fail(FAKE_OPEN, 1, 0, ENOENT);
        sxe_hold_standard_descriptors();
        const int found = look();
        const int next = open("/", O_RDONLY);
        _exit(found | (next > 3 ? 3 : next) << 6);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

START_TEST(closed_ones_are_opened_and_cannot_be_used)
{
    const int found = hold((unsigned)_i, false);

    ck_assert_int_eq(found & 7, 7);
    ck_assert_int_eq(found >> 6, 3);
    for (int fd = 1; fd < 3; fd++)
        ck_assert_int_eq(found >> (3 + fd) & 1, !(_i >> fd & 1));
    ck_assert(!(_i & 1) || !(found >> 3 & 1));
}
END_TEST

START_TEST(where_there_is_no_null_device_they_stay_closed)
{
    ck_assert_int_eq(hold(4, true) & 7, 3);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("log-standard");
    TCase *tcase = tcase_create("standard");

    tcase_add_loop_test(tcase, closed_ones_are_opened_and_cannot_be_used, 0, 8);
    tcase_add_test(tcase, where_there_is_no_null_device_they_stay_closed);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
