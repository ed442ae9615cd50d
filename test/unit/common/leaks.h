/* SPDX-License-Identifier: MIT
 *
 * What: checks that a case leaves no descriptor open and no child process. Call note_what_is_open()
 * before the case and check_that_nothing_is_left() after it.
 */
#ifndef LEAKS_H
#define LEAKS_H

#include <check.h>
#include <errno.h>
#include <sys/wait.h>

#include "fake-os.h"

static unsigned open_before;

static inline void
note_what_is_open(void)
{
    open_before = fake_os_open_fds();
}

static inline void
check_that_nothing_is_open(void)
{
    ck_assert_uint_eq(fake_os_open_fds(), open_before);
}

static inline void
check_that_nothing_is_left(void)
{
    check_that_nothing_is_open();
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

#endif
