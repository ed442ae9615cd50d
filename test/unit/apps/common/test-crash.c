/* SPDX-License-Identifier: MIT
 *
 * The report about a process that a fault ends.
 */
#include "crash.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "sxe-util.h"
#include "test-main.h"

static char said[16384];

/* The text of the report of this signal. */
static void
report(int signal_number, const void *address)
{
    FILE *file = tmpfile();
    ssize_t length;

    crash_report(fileno(file), signal_number, address);
    length = pread(fileno(file), said, sizeof(said) - 1, 0);
    ck_assert_int_gt(length, 0);
    said[length] = '\0';
    fclose(file);
}

START_TEST(a_report_says_what_and_where)
{
    char wanted[128];
    const char *id;

    report(SIGBUS, (void *)0xab12);
    check_has(said, "? " SXE_VERSION " (build id unknown): process ");
    crash_begin("sxe-lua");
    report(SIGSEGV, NULL);
    snprintf(wanted, sizeof(wanted),
             "): process %d crashed with signal 11 (Segmentation fault) at address 0x0; the calls "
             "that led there, last first:\n",
             getpid());
    ck_assert(strncmp(said, "sxe-lua " SXE_VERSION, strlen("sxe-lua " SXE_VERSION)) == 0);
    check_has(said, wanted);
    check_has(strstr(said, wanted) + strlen(wanted), "test-crash");
    id = strstr(said, "(build id ") + strlen("(build id ");
    ck_assert_uint_eq(strspn(id, "0123456789abcdef") % 2, 0);
    report(SIGFPE, (void *)0xab12);
    check_has(said, "crashed with signal 8 (Floating point exception) at address 0xab12; ");
}
END_TEST

/* The handler's own kill is made to fail, so that the test goes on and can read the report. */
START_TEST(a_signal_is_reported_and_then_does_what_it_does)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    struct sigaction action;
    ssize_t length;

    signal(SIGABRT, SIG_DFL);
    crash_begin("sxe-lua");
    dup2(fileno(file), STDERR_FILENO);
    fake_os_fail(FAKE_KILL, 1, 1, EPERM);
    raise(SIGABRT);
    ck_assert_uint_eq(fake_os_injected(), 1);
    dup2(before, STDERR_FILENO);
    length = pread(fileno(file), said, sizeof(said) - 1, 0);
    ck_assert_int_gt(length, 0);
    said[length] = '\0';
    check_has(said, " crashed with signal 6 (Aborted) at address 0x");
    sigaction(SIGABRT, NULL, &action);
    ck_assert(action.sa_handler == SIG_DFL);
    close(before);
    fclose(file);
}
END_TEST

static void
do_nothing(int signal_number)
{
    (void)signal_number;
}

START_TEST(a_signal_that_another_handles_stays_with_it)
{
    struct sigaction action;

    signal(SIGSEGV, do_nothing);
    crash_begin("sxe-lua");
    sigaction(SIGSEGV, NULL, &action);
    ck_assert(action.sa_handler == do_nothing);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("crash");
    TCase *t = tcase_create("crash");

    tcase_add_test(t, a_report_says_what_and_where);
    tcase_add_test(t, a_signal_is_reported_and_then_does_what_it_does);
    tcase_add_test(t, a_signal_that_another_handles_stays_with_it);
    suite_add_tcase(suite, t);
    return sxe_test_main(suite);
}
