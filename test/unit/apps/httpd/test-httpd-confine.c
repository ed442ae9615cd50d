/* SPDX-License-Identifier: MIT
 *
 * --confine: the rules that it makes, failures, and, in children, the actions that a confined
 * process cannot do. In this process the system calls are only pretended, so that cases can write
 * their coverage.
 */
#include "run-httpd.h"

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

/* ---- Calls that fail ---- */

/* Let the system calls succeed without making them: the kernel may not have them. */
static void
pretend(void)
{
    fake_os_fail(FAKE_SYSCALL, 1, 0, 0);
    fake_os_fail(FAKE_PRCTL, 1, 0, 0);
}

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
    pretend();
    ck_assert_int_eq(confine_files(rules, RULES), 0);
    /* The version, the set of rules, two rules, the confinement. */
    ck_assert_uint_eq(fake_os_calls(FAKE_SYSCALL), 5);
}
END_TEST

static const struct {
    enum fake_call call;
    int error;
    int result;
} faults[] = {{FAKE_SYSCALL, ENOSYS, -ENOSYS},
              {FAKE_OPEN, EMFILE, -EMFILE},
              {FAKE_OPEN, EACCES, 0},
              {FAKE_FSTAT, EIO, -EIO},
              {FAKE_PRCTL, EPERM, -EPERM}};

START_TEST(a_call_that_fails_is_told)
{
    pretend();
    fake_os_fail(faults[_i].call, 1, 1, faults[_i].error);
    ck_assert_int_eq(confine_files(rules, RULES), faults[_i].result);
}
END_TEST

/* From the second call on: the set of rules, two rules, the confinement. */
START_TEST(each_later_call_of_landlock_that_fails_is_told)
{
    static const enum fake_call kind = FAKE_SYSCALL;

    pretend();
    fake_os_fail(FAKE_SYSCALL, 1, (unsigned)_i - 1, 0);
    fake_os_sweep(&kind, 1, 1, true, E2BIG);
    ck_assert_int_eq(confine_files(rules, RULES), -E2BIG);
    ck_assert_uint_eq(fake_os_calls(FAKE_SYSCALL), (unsigned)_i);
}
END_TEST

START_TEST(calls_are_confined_or_it_is_told)
{
    pretend();
    ck_assert_int_eq(confine_calls(), 0);
    fake_os_fail(FAKE_SYSCALL, 1, 0, EFAULT);
    ck_assert_int_eq(confine_calls(), -EFAULT);
    fake_os_fail(FAKE_PRCTL, 1, 1, EPERM);
    ck_assert_int_eq(confine_calls(), -EPERM);
}
END_TEST

/* ---- Rights that the options need ---- */

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
                                    .unix_path = "/tmp/socket",
                                    .places = {{.path = "/tmp/other"}, {.port = 80}},
                                    .places_number = 2};

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

    pretend();
    ck_assert_int_eq(confine_begin(&options), 0);
    calls = fake_os_calls(FAKE_SYSCALL);
    options.files.root = NULL;
    options.user.root = "/";
    options.script = NULL;
    fake_os_reset();
    pretend();
    ck_assert_int_eq(confine_begin(&options), 0);
    ck_assert_uint_lt(fake_os_calls(FAKE_SYSCALL), calls);
}
END_TEST

/* A link's file is replaced later by another one in the same directory, so the directory counts. */
START_TEST(a_file_that_is_there_has_a_rule_for_its_target_too)
{
    struct httpd_options options = all_options();
    unsigned calls;

    pretend();
    ck_assert_int_eq(confine_begin(&options), 0);
    calls = fake_os_calls(FAKE_SYSCALL);
    options.tls.key[0] = "/etc/passwd";
    fake_os_reset();
    pretend();
    ck_assert_int_eq(confine_begin(&options), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SYSCALL), calls + 1);
}
END_TEST

/* EPERM is the answer of a container's filter. */
static const int missing[] = {ENOSYS, EOPNOTSUPP, EPERM};

START_TEST(a_machine_that_has_neither_is_served_with)
{
    const struct httpd_options options = all_options();

    pretend();
    fake_os_fail(FAKE_SYSCALL, 1, 0, missing[_i]);
    ck_assert_int_eq(confine_begin(&options), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SYSCALL), 2);
}
END_TEST

START_TEST(a_server_that_cannot_be_confined_does_not_start)
{
    const struct httpd_options options = all_options();

    pretend();
    fake_os_fail(FAKE_SYSCALL, 1, 0, EFAULT);
    ck_assert_int_eq(confine_begin(&options), -EFAULT);
}
END_TEST

/* ---- Really confined, in children ---- */

enum { MISSING = 77 };

static void
exit_unless_confined(int result)
{
    if (result < 0)
        _exit(result == -ENOSYS || result == -EOPNOTSUPP || result == -EPERM ? MISSING : 1);
}

static void
try_files(void)
{
    const struct confine_rule few[] = {{"/dev/null", CONFINE_READ | CONFINE_WRITE},
                                       {"/tmp", CONFINE_READ}};

    exit_unless_confined(confine_files(few, 2));
    if (open("/dev/null", O_RDWR) < 0 || open("/tmp", O_RDONLY) < 0)
        _exit(2);
    if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
        _exit(3);
    if (open("/tmp/confined", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
        _exit(4);
}

/* A machine may have no IPv6. */
static bool
is_refused(int family, int type)
{
    return socket(family, type, 0) < 0 && errno == EPERM;
}

static void
try_calls(void)
{
    char *const argv[] = {(char *)(uintptr_t) "true", NULL};

    exit_unless_confined(confine_calls());
    if (is_refused(AF_INET, SOCK_STREAM) || is_refused(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC) ||
        is_refused(AF_UNIX, SOCK_SEQPACKET) || is_refused(AF_NETLINK, SOCK_RAW))
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

START_TEST(what_is_not_allowed_is_refused)
{
    int status;
    pid_t child;

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
    if (WIFEXITED(status) && WEXITSTATUS(status) == MISSING)
        printf("skipped: a confined process, because the machine has no %s\n",
               _i == 0 ? "Landlock" : "seccomp");
    else
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
    tcase_add_test(t, a_file_that_is_there_has_a_rule_for_its_target_too);
    tcase_add_loop_test(t, a_machine_that_has_neither_is_served_with, 0, 3);
    tcase_add_test(t, a_server_that_cannot_be_confined_does_not_start);
    tcase_add_loop_test(t, what_is_not_allowed_is_refused, 0, 2);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(confine_suite());
}
