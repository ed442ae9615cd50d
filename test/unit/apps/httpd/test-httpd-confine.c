/* SPDX-License-Identifier: MIT
 *
 * --confine: which rules there are, what fails, and, in children, what a confined process cannot
 * do. Cases that are not children are confined by calls that only seem to be made, so that what
 * they covered can be written.
 */
#include "run-httpd.h"

#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../../../apps/httpd/cli/options.h"
#include "../../../../apps/httpd/config/config-sites.h"
#include "../../../../apps/httpd/process/confine.h"

static const struct confine_rule rules[] = {{"/", CONFINE_READ},
                                            {"/dev/null", CONFINE_READ | CONFINE_WRITE},
                                            {"/dev/null", CONFINE_REMOVE},
                                            {"/nonexistent/a", CONFINE_MAKE}};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

static bool
has_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

/* ---- Calls that fail ---- */

START_TEST(without_the_option_nothing_changes)
{
    const struct httpd_options options = {.port = 1};

    fake_os_fail(FAKE_SYSCALL, 1, 0, EPERM);
    ck_assert_int_eq(confine_begin(&options), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SYSCALL), 0);
}
END_TEST

START_TEST(files_are_confined_by_a_call_for_each_rule)
{
    fake_os_fail(FAKE_SYSCALL, 1, 0, 0);
    ck_assert_int_eq(confine_files(rules, RULES), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SYSCALL), 5); /* version, rules, two of them, the step */
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
    int result;
} faults[] = {{FAKE_SYSCALL, 1, ENOSYS, -ENOSYS},
              {FAKE_OPEN, 1, EMFILE, -EMFILE},
              {FAKE_OPEN, 1, EACCES, 0},
              {FAKE_FSTAT, 1, EIO, -EIO},
              {FAKE_PRCTL, 1, EPERM, -EPERM}};

START_TEST(a_call_that_fails_is_told)
{
    fake_os_fail(FAKE_SYSCALL, 1, 0, 0);
    fake_os_fail(faults[_i].call, faults[_i].nth, 1, faults[_i].error);
    ck_assert_int_eq(confine_files(rules, RULES), faults[_i].result);
}
END_TEST

/* From the second call on: the rules, one of them, the step. */
START_TEST(each_later_call_of_landlock_that_fails_is_told)
{
    if (!has_landlock())
        return;
    fake_os_fail(FAKE_SYSCALL, (unsigned)_i, 1, E2BIG);
    ck_assert_int_eq(confine_files(rules, RULES), -E2BIG);
}
END_TEST

START_TEST(calls_are_confined_or_it_is_told)
{
    fake_os_fail(FAKE_SYSCALL, 1, 0, 0);
    ck_assert_int_eq(confine_calls(), 0);
    fake_os_fail(FAKE_SYSCALL, 1, 0, EFAULT);
    ck_assert_int_eq(confine_calls(), -EFAULT);
    fake_os_fail(FAKE_PRCTL, 1, 1, EPERM);
    ck_assert_int_eq(confine_calls(), -EPERM);
}
END_TEST

/* ---- What the options need ---- */

static struct config_route route = {.root = "/"};
static struct config_site site = {.routes = &route};
static struct config_sites sites = {.first = &site};

static struct httpd_options
all_options(void)
{
    struct httpd_options options = {.is_confined = true,
                                    .script = "app.lua",
                                    .lua_coverage = "/tmp/coverage",
                                    .access_log = "-",
                                    .unix_path = "/tmp/socket"};

    options.files.root = "/";
    options.config.sites = &sites;
    options.tls.certificates = 1;
    options.tls.certificate[0] = "/etc/a.pem";
    options.tls.key[0] = "/etc/a.key";
    return options;
}

START_TEST(all_options_have_rules)
{
    struct httpd_options options = all_options();
    unsigned calls;

    fake_os_fail(FAKE_SYSCALL, 1, 0, 0);
    ck_assert_int_eq(confine_begin(&options), 0);
    calls = fake_os_calls(FAKE_SYSCALL);
    options.files.root = NULL;
    options.user.root = "/";
    options.script = NULL;
    fake_os_reset();
    fake_os_fail(FAKE_SYSCALL, 1, 0, 0);
    ck_assert_int_eq(confine_begin(&options), 0);
    ck_assert_uint_lt(fake_os_calls(FAKE_SYSCALL), calls);
}
END_TEST

START_TEST(a_kernel_that_has_neither_is_served_with)
{
    const struct httpd_options options = all_options();

    fake_os_fail(FAKE_SYSCALL, 1, 0, ENOSYS);
    ck_assert_int_eq(confine_begin(&options), 0);
    fake_os_fail(FAKE_SYSCALL, 1, 0, EPERM);
    ck_assert_int_eq(confine_begin(&options), -EPERM);
}
END_TEST

/* ---- In a child, for good ---- */

static void
try_files(void)
{
    const struct confine_rule few[] = {{"/dev/null", CONFINE_READ | CONFINE_WRITE},
                                       {"/tmp", CONFINE_READ}};

    if (confine_files(few, 2) < 0)
        _exit(1);
    if (open("/dev/null", O_RDWR) < 0 || open("/tmp", O_RDONLY) < 0)
        _exit(2);
    if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
        _exit(3);
    if (open("/tmp/confined", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
        _exit(4);
}

static void
try_calls(void)
{
    char *const argv[] = {(char *)(uintptr_t) "true", NULL};

    if (confine_calls() < 0)
        _exit(1);
    if (socket(AF_INET, SOCK_STREAM, 0) < 0 || socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0) < 0 ||
        socket(AF_UNIX, SOCK_SEQPACKET, 0) < 0 || socket(AF_NETLINK, SOCK_RAW, 0) < 0)
        _exit(2);
    if (socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0 || errno != EPERM)
        _exit(3);
    if (socket(AF_PACKET, SOCK_DGRAM, 0) >= 0 || errno != EPERM)
        _exit(4);
    if (socket(AF_NETLINK, SOCK_RAW, 9) >= 0 || errno != EPERM)
        _exit(5);
    if (execv("/bin/true", argv) == 0 || errno != EPERM)
        _exit(6);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 || errno != EPERM)
        _exit(7);
    if (mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || errno != EPERM)
        _exit(8);
    if (fork() >= 0 || errno != EPERM)
        _exit(9);
    if (ioctl(0, TIOCSTI, "a") == 0 || errno != EPERM)
        _exit(10);
}

static bool
has_filters(void)
{
    const unsigned action = SECCOMP_RET_KILL_PROCESS;

    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

START_TEST(what_is_not_allowed_is_refused)
{
    int status;
    pid_t child;

    if (_i == 0 ? !has_landlock() : !has_filters()) {
        printf("skipped: a confined process, because the kernel has no %s\n",
               _i == 0 ? "Landlock" : "seccomp");
        return;
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        if (_i == 0)
            try_files();
        else
            try_calls();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static Suite *
confine_suite(void)
{
    Suite *suite = suite_create("httpd confine");
    TCase *t = tcase_create("confine");

    tcase_add_test(t, without_the_option_nothing_changes);
    tcase_add_test(t, files_are_confined_by_a_call_for_each_rule);
    tcase_add_loop_test(t, a_call_that_fails_is_told, 0, sizeof(faults) / sizeof(faults[0]));
    tcase_add_loop_test(t, each_later_call_of_landlock_that_fails_is_told, 2, 6);
    tcase_add_test(t, calls_are_confined_or_it_is_told);
    tcase_add_test(t, all_options_have_rules);
    tcase_add_test(t, a_kernel_that_has_neither_is_served_with);
    tcase_add_loop_test(t, what_is_not_allowed_is_refused, 0, 2);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(confine_suite());
}
