/* SPDX-License-Identifier: MIT
 *
 * Upgrades to a new program. The new program is this test's own file: it serves, or does what
 * SXE_TEST_NEW says.
 */
#include "sxe-workers-upgrade-internal.h"

#include <poll.h>

#include "mailbox.h"
#include "run-httpd.h"
#include "sxe-workers-handover-internal.h"

static void
nap(void)
{
    poll(NULL, 0, 1);
}

static void
await_error(const char *text)
{
    while (strstr(child_errors(), text) == NULL)
        nap();
}

/* The last pid that the log has before this text. */
static pid_t
pid_before(const char *text)
{
    const char *at;

    await_error(text);
    at = strstr(child_errors(), text);
    while (strncmp(at, "process ", 8) != 0)
        at--;
    return (pid_t)strtol(at + 8, NULL, 10);
}

static void
check_hello(int fd)
{
    say(fd, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(fd, HEAD_OF_REPLY "Connection: close\r\n\r\n" BODY);
    expect_end(fd);
}

#define START(...) \
    start_httpd((const char *[]){"/proc/self/exe", "-p", "0", __VA_ARGS__, NULL}, STDOUT_FILENO)

static void
upgrade_child(void)
{
    ck_assert_int_eq(kill(httpd_child.pid, SIGUSR2), 0);
}

/* ---- A program that serves ---- */

static void
prepare_manager(void)
{
    setenv("WATCHDOG_PID", "1", 1);
}

/* Before exec(2), a signal must not call libcheck's handlers. */
static void
take_signals_alone(void)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

/* Orphans become children of this process (PR_SET_CHILD_SUBREAPER). */
START_TEST(a_new_program_takes_over_and_the_old_one_ends)
{
    char path[64];
    int status;
    pid_t pid;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    snprintf(path, sizeof(path), "/tmp/sxe-upgrade-%d", getpid());
    open_mailbox('@');
    httpd_child.prepare = prepare_manager;
    START("-w", "2", "--unix", path);
    check_has(message(), "READY=1\n");
    upgrade_child();
    expect_exit();
    pid = pid_before(" serves in place of this one, which finishes its requests");
    check_has(message(), "READY=1\n");
    ck_assert_int_eq(strtol(message() + strlen("MAINPID="), NULL, 10), pid);
    check_hello(dial());
    check_hello(dial_unix(path));
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    check_has(message(), "STOPPING=1\n");
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

static int passed;

static void
listen_to_pass(void)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    passed = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(passed, (struct sockaddr *)&in4, sizeof(in4)), 0);
    ck_assert_int_eq(listen(passed, 5), 0);
}

static void
pass_socket(void)
{
    char text[16];

    dup2(passed, 3);
    snprintf(text, sizeof(text), "%d", getpid());
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDS", "1", 1);
}

START_TEST(a_socket_that_was_inherited_is_passed_on)
{
    const char *argv[] = {"/proc/self/exe", "-w", "1", NULL};
    int status;
    pid_t pid;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    listen_to_pass();
    httpd_child.prepare = pass_socket;
    start_httpd(argv, STDOUT_FILENO);
    upgrade_child();
    expect_exit();
    pid = pid_before(" serves in place of this one, which finishes its requests");
    check_hello(dial());
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- A program that does not serve ---- */

START_TEST(one_that_fails_changes_nothing)
{
    setenv("SXE_TEST_NEW", "fail", 1);
    START("-w", "1");
    upgrade_child();
    await_error(" ended with exit status 3 before it was ready; its messages say why. This one "
                "goes on serving; ");
    check_hello(dial());
    stop_httpd();
}
END_TEST

/* Pass sockets of both kinds, and variables of a service manager. exec(2) fails in these cases, so
 * the coverage of the code before it can be written. */
static void
pass_all(void)
{
    prepare_manager();
    pass_socket();
}

START_TEST(one_that_is_not_there_changes_nothing)
{
    const char *argv[] = {"/nonexistent/sxe-httpd", "-p0", "-w1", NULL};

    listen_to_pass();
    httpd_child.prepare = pass_all;
    start_httpd(argv, STDOUT_FILENO);
    upgrade_child();
    await_error("cannot run /nonexistent/sxe-httpd: No such file or directory");
    await_error(" ended with exit status 1 before it was ready");
    check_hello(dial());
    stop_httpd();
}
END_TEST

START_TEST(one_that_is_killed_changes_nothing)
{
    setenv("SXE_TEST_NEW", "wait", 1);
    START("-w", "1", "--hang-timeout", "0");
    upgrade_child();
    await_error(" starts, to serve in place of this one");
    upgrade_child();
    await_error(" is starting already: send SIGUSR2 again when it serves");
    ck_assert_int_eq(kill(pid_before(" starts, to serve in place of this one"), SIGKILL), 0);
    await_error(" ended with signal 9 (Killed) before it was ready");
    check_hello(dial());
    stop_httpd();
}
END_TEST

START_TEST(one_that_starts_ends_with_the_old_one)
{
    setenv("SXE_TEST_NEW", "wait", 1);
    httpd_child.prepare = take_signals_alone;
    START("-w", "1");
    upgrade_child();
    pid_before(" starts, to serve in place of this one");
    stop_httpd();
    ck_assert_ptr_null(strstr(child_errors(), "before it was ready"));
}
END_TEST

START_TEST(without_a_supervisor_there_is_none)
{
    START("-c", "10");
    upgrade_child();
    await_error("SIGUSR2: no new program is started, as no supervisor keeps the sockets");
    stop_httpd();
}
END_TEST

/* ---- The supervisor's part, in this process ---- */

static char own[] = "/proc/self/exe";
static char argument[] = "new";
static char *command[] = {own, argument, NULL};

/* Start a new program that does this, and read its messages. */
static void
start_one(const char *what)
{
    sigset_t none;

    sigemptyset(&none);
    setenv("SXE_TEST_NEW", what, 1);
    sxe__upgrade_start(command, &none);
}

static void
await_link(void)
{
    struct pollfd wait = {.fd = sxe__upgrade_fd(), .events = POLLIN};

    ck_assert_int_eq(poll(&wait, 1, -1), 1);
}

static pid_t
hear_of_it(void)
{
    await_link();
    return sxe__upgrade_hear();
}

START_TEST(one_that_is_late_or_closes_its_link_is_killed)
{
    unsigned open = fake_os_open_fds();

    start_one(_i == 0 ? "wait" : "close");
    if (_i == 0) {
        sxe__upgrade_kill_late(sxe__upgrade_due_ns() - 1);
        sxe__upgrade_kill_late(sxe__upgrade_due_ns());
    }
    ck_assert_int_eq(hear_of_it(), 0);
    ck_assert_int_eq(sxe__upgrade_fd(), -1);
    ck_assert_uint_eq(sxe__upgrade_due_ns(), UINT64_MAX);
    ck_assert_uint_eq(fake_os_open_fds(), open);
}
END_TEST

/* The new program sends READY, with a descriptor, only after this program has given it up. */
START_TEST(one_that_is_ready_after_the_end_began_does_not_take_over)
{
    start_one("ready");
    await_link();
    if (_i == 1)
        sxe__upgrade_cancel(1);
    ck_assert_int_eq(hear_of_it() > 0, _i == 0);
    if (_i == 1)
        ck_assert_int_eq(hear_of_it(), 0);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
}
END_TEST

START_TEST(what_the_system_refuses_starts_none)
{
    unsigned open = fake_os_open_fds();

    fake_os_fail(_i == 0 ? FAKE_SOCKETPAIR : FAKE_FORK, 1, 1, EMFILE);
    start_one("wait");
    ck_assert_int_eq(sxe__upgrade_fd(), -1);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    sxe__upgrade_cancel(1);
}
END_TEST

static int
be_new_one(const char *what)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_READY};

    if (strcmp(what, "fail") == 0)
        return 3;
    if (strcmp(what, "ready") == 0)
        return sxe__handover_send(3, &message, STDERR_FILENO) < 0;
    if (strcmp(what, "close") == 0)
        close(3);
    while (true)
        pause();
}

static Suite *
upgrade_suite(void)
{
    Suite *suite = suite_create("httpd upgrade");
    TCase *t = tcase_create("upgrade");

    tcase_add_test(t, a_new_program_takes_over_and_the_old_one_ends);
    tcase_add_test(t, a_socket_that_was_inherited_is_passed_on);
    tcase_add_test(t, one_that_fails_changes_nothing);
    tcase_add_test(t, one_that_is_not_there_changes_nothing);
    tcase_add_test(t, one_that_is_killed_changes_nothing);
    tcase_add_test(t, one_that_starts_ends_with_the_old_one);
    tcase_add_test(t, without_a_supervisor_there_is_none);
    tcase_add_loop_test(t, one_that_is_late_or_closes_its_link_is_killed, 0, 2);
    tcase_add_loop_test(t, one_that_is_ready_after_the_end_began_does_not_take_over, 0, 2);
    tcase_add_loop_test(t, what_the_system_refuses_starts_none, 0, 2);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(int argc, char **argv)
{
    const char *what = getenv("SXE_TEST_NEW");

    if (argc > 1)
        return what != NULL ? be_new_one(what) : sxe_httpd_main(argc, argv);
    return sxe_test_main(upgrade_suite());
}
