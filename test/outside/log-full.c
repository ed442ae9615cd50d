/* SPDX-License-Identifier: MIT
 *
 * A log whose disk is full for a while: a file that may not grow takes half a line, as a full disk
 * does.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "outside.h"
#include "sxe-log.h"

static void
limit_files(rlim_t bytes)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* promise: docs/log.md: If a full disk accepted only a part of a line, the process's next line
 * begins with a line end, so that the two do not mix. */
START_TEST(the_line_after_half_a_line_stands_by_itself)
{
    FILE *file = tmpfile();
    char lines[4][SXE_LOG_LINE_MAX];
    unsigned number = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fcntl(fileno(file), F_SETFL, O_APPEND), 0);
    signal(SIGXFSZ, SIG_IGN);
    sxe_log_to_fd(fileno(file));
    limit_files(100);
    SXE_WARN("this one is whole");
    SXE_WARN("this one is cut somewhere");
    SXE_WARN("this one is lost");
    ck_assert_uint_eq(sxe_log_dropped(), 2);
    limit_files(RLIM_INFINITY);
    SXE_WARN("room again");
    SXE_WARN("the last one");
    rewind(file);
    while (number < 4 && fgets(lines[number], sizeof(lines[number]), file) != NULL)
        number++;
    ck_assert_uint_eq(number, 4);
    ck_assert_ptr_nonnull(strstr(lines[0], " - this one is whole\n"));
    ck_assert_ptr_null(strstr(lines[1], "room"));
    ck_assert_ptr_nonnull(strstr(lines[2], " - room again\n"));
    ck_assert_int_eq(strncmp(lines[2], lines[0], 4), 0);
    ck_assert_ptr_nonnull(strstr(lines[3], " - the last one\n"));
    fclose(file);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {the_line_after_half_a_line_stands_by_itself, NULL};

    return outside_run("log-full", cases);
}
