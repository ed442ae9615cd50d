/* SPDX-License-Identifier: MIT
 *
 * The reason for which a load fails is told once.
 */
#include "../../../../apps/httpd/process/reason.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-workers-handover-internal.h"
#include "test-main.h"

static int link_ends[2];
static char shown[3 * REASON_MAX]; /* text of the last process */

/* A process that writes these texts while it loads; NULL: it serves from there on. */
static void
load(const char *const *texts, unsigned number)
{
    struct sxe__handover_message message;
    size_t length = 0;
    ssize_t got;
    int ends[2];
    int fd;

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    if (fork() == 0) {
        dup2(ends[1], STDERR_FILENO);
        reason_watch();
        for (unsigned i = 0; i < number; i++) {
            if (texts[i] == NULL)
                reason_end();
            else
                fprintf(stderr, "%s\n", texts[i]);
        }
        reason_fail(link_ends[1]);
        exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], shown + length, sizeof(shown) - 1 - length)) > 0)
        length += (size_t)got;
    shown[length] = '\0';
    close(ends[0]);
    wait(NULL);
    if (sxe__handover_receive(link_ends[0], &message, &fd) > 0) {
        ck_assert_uint_eq(message.kind, SXE__HANDOVER_REASON);
        reason_note(message.value);
    }
}
#define LOAD(...)                            \
    load((const char *const[]){__VA_ARGS__}, \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void
open_link(void)
{
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, link_ends), 0);
    reason_begin_load(false);
}

START_TEST(a_reason_is_told_once_by_retries)
{
    LOAD("it is bad");
    ck_assert_str_eq(shown, "it is bad\n");
    ck_assert(!reason_is_told());
    for (unsigned i = 0; i < 2; i++) {
        reason_begin_load(true);
        ck_assert(!reason_is_told());
        LOAD("it is bad");
        ck_assert_str_eq(shown, "");
        ck_assert(reason_is_told());
    }
    reason_begin_load(true);
    LOAD("it is", "worse");
    ck_assert_str_eq(shown, "it is\nworse\n");
    ck_assert(!reason_is_told());
    reason_begin_load(true);
    LOAD("it is bad");
    ck_assert_str_eq(shown, "it is bad\n");
}
END_TEST

START_TEST(a_load_that_is_no_retry_tells_it_again)
{
    LOAD("it is bad");
    reason_begin_load(false);
    LOAD("it is bad");
    ck_assert_str_eq(shown, "it is bad\n");
    ck_assert(!reason_is_told());
}
END_TEST

START_TEST(a_process_that_serves_shows_its_text)
{
    reason_begin_load(_i == 1);
    LOAD("a hint", NULL, "serving");
    ck_assert_str_eq(shown, "a hint\nserving\n");
    ck_assert(!reason_is_told());
}
END_TEST

/* A process that never began to watch, as the first of a place. */
START_TEST(without_a_watch_there_is_no_reason)
{
    struct sxe__handover_message message;
    int fd;

    reason_end();
    reason_fail(link_ends[1]);
    ck_assert_int_eq(sxe__handover_receive(link_ends[0], &message, &fd), 0);
}
END_TEST

START_TEST(the_beginning_of_a_long_text_counts)
{
    static char text[REASON_MAX + 2];

    memset(text, 'a', REASON_MAX + 1);
    LOAD(text);
    ck_assert_uint_eq(strlen(shown), REASON_MAX + 2);
    reason_begin_load(true);
    LOAD(text, "more");
    ck_assert_str_eq(shown, "");
    text[0] = 'b';
    reason_begin_load(true);
    LOAD(text, "more");
    ck_assert_uint_eq(strlen(shown), REASON_MAX);
}
END_TEST

static Suite *
reason_suite(void)
{
    Suite *suite = suite_create("httpd reason");
    TCase *t = tcase_create("reason");

    tcase_add_checked_fixture(t, open_link, NULL);
    tcase_add_test(t, a_reason_is_told_once_by_retries);
    tcase_add_test(t, a_load_that_is_no_retry_tells_it_again);
    tcase_add_loop_test(t, a_process_that_serves_shows_its_text, 0, 2);
    tcase_add_test(t, without_a_watch_there_is_no_reason);
    tcase_add_test(t, the_beginning_of_a_long_text_counts);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(reason_suite());
}
