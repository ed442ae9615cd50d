/* SPDX-License-Identifier: MIT
 *
 * Texts about how a process ended: for each exit status and each signal, from real children.
 */
#include "sxe-process-internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test-main.h"

static char text[SXE__WAIT_STATUS_MAX];

/* The status of a child that calls end(how). */
static int
status_of(void (*end)(int how), int how)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        end(how);
        _exit(99); /* the signal did not end this child */
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void
end_by_signal(int number)
{
    const struct rlimit no_core = {0, 0};
    sigset_t none;

    setrlimit(RLIMIT_CORE, &no_core);
    signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    kill(getpid(), number);
}

START_TEST(an_exit_status_is_a_number)
{
    static const int statuses[] = {0, 1, 3, 127, 128, 255};
    char expected[SXE__WAIT_STATUS_MAX];

    for (unsigned i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        int status = status_of(_exit, statuses[i]);

        snprintf(expected, sizeof(expected), "ended with exit status %d", statuses[i]);
        ck_assert_str_eq(sxe__wait_status_text(status, text), expected);
        ck_assert_int_eq(sxe__wait_status_exit(status), statuses[i]);
    }
}
END_TEST

START_TEST(a_signal_has_its_name_as_well)
{
    int status = status_of(end_by_signal, SIGKILL);

    ck_assert_ptr_eq(sxe__wait_status_text(status, text), text);
    ck_assert_str_eq(text, "ended with signal 9 (Killed)");
    ck_assert_int_eq(sxe__wait_status_exit(status), 137);
    status = status_of(end_by_signal, SIGABRT);
    ck_assert_str_eq(sxe__wait_status_text(status, text), "ended with signal 6 (Aborted)");
    ck_assert_int_eq(sxe__wait_status_exit(status), 134);
}
END_TEST

/* A status with the bit for a core dump has the text and the exit status of its signal. */
START_TEST(every_signal_fits_with_a_core_and_without)
{
    char expected[SXE__WAIT_STATUS_MAX];

    for (int number = 1; number <= SIGRTMAX; number++) {
        int status = number | (_i == 1 ? WCOREFLAG : 0);

        snprintf(expected, sizeof(expected), "ended with signal %d (", number);
        sxe__wait_status_text(status, text);
        ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "%s", text);
        ck_assert_int_eq(text[strlen(text) - 1], ')');
        ck_assert_int_eq(sxe__wait_status_exit(status), 128 + number);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("wait-status");
    TCase *tcase = tcase_create("texts");

    tcase_add_test(tcase, an_exit_status_is_a_number);
    tcase_add_test(tcase, a_signal_has_its_name_as_well);
    tcase_add_loop_test(tcase, every_signal_fits_with_a_core_and_without, 0, 2);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
