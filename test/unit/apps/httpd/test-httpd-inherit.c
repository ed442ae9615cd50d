/* SPDX-License-Identifier: MIT
 *
 * Sockets that systemd passes to sxe-httpd, and messages of sxe-httpd to systemd.
 */
#include "sxe-workers-inherit-internal.h"

#include "mailbox.h"
#include "run-httpd.h"

#define FIRST_FD 3

static char path[64];
static int passed[9];
static int number;

static void
listen_at(const void *address, socklen_t length)
{
    int fd = socket(((const struct sockaddr *)address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, address, length), 0);
    ck_assert_int_eq(listen(fd, 5), 0);
    passed[number++] = fd;
}

static void
listen_at_ipv4(void)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    listen_at(&in4, sizeof(in4));
}

static void
listen_at_all(void)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_un un = {.sun_family = AF_UNIX};

    listen_at_ipv4();
    listen_at(&in6, sizeof(in6));
    snprintf(path, sizeof(path), "/tmp/sxe-inherit-%d", getpid());
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    listen_at(&un, sizeof(un));
    snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", path);
    un.sun_path[0] = '\0';
    listen_at(&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(path)));
}

/* Runs in the child: make the descriptors and variables that systemd would pass. */
static void
pass_sockets(void)
{
    char text[16];
    int fds[9];

    for (int i = 0; i < number; i++)
        fds[i] = fcntl(passed[i], F_DUPFD_CLOEXEC, 100);
    for (int i = 0; i < number; i++)
        dup2(fds[i], FIRST_FD + i);
    snprintf(text, sizeof(text), "%d", number);
    setenv("LISTEN_FDS", text, 1);
    snprintf(text, sizeof(text), "%d", getpid());
    setenv("LISTEN_PID", text, 1);
}

static void
check_hello(int fd)
{
    say(fd, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    expect(fd, HEAD_OF_REPLY "Connection: close\r\n\r\n" BODY);
    expect_end(fd);
}

static unsigned short
port_of(int fd)
{
    struct sockaddr_in6 address;
    socklen_t length = sizeof(address);

    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    return ntohs(address.sin6_port);
}

static const char *const lines[][4] = {{"sxe-httpd", NULL}, {"sxe-httpd", "-w", "2", NULL}};

START_TEST(sockets_that_are_passed_are_served_and_their_files_stay)
{
    const char *argv[4];
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd;

    memcpy(argv, lines[_i], sizeof(argv));
    listen_at_all();
    httpd_child.prepare = pass_sockets;
    start_httpd(argv, STDOUT_FILENO);
    ck_assert_uint_eq(httpd_child.port, port_of(passed[0]));
    check_hello(dial());
    httpd_child.is_ipv6 = true;
    httpd_child.port = port_of(passed[1]);
    check_hello(dial());
    check_hello(dial_unix(path));
    snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", path);
    fd = patient_socket(AF_UNIX);
    ck_assert_int_eq(
        connect(fd, (struct sockaddr *)&un,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(path))),
        0);
    check_hello(fd);
    stop_httpd();
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(addresses_of_the_command_line_are_served_beside_them)
{
    char name[64];
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = patient_socket(AF_UNIX);

    snprintf(name, sizeof(name), "@sxe-inherit-%d", getpid());
    memcpy(un.sun_path + 1, name + 1, strlen(name + 1));
    listen_at_ipv4();
    httpd_child.prepare = pass_sockets;
    START_HTTPD("--unix", name);
    ck_assert_uint_ne(httpd_child.port, port_of(passed[0]));
    check_hello(dial());
    httpd_child.port = port_of(passed[0]);
    check_hello(dial());
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&un,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    check_hello(fd);
    stop_httpd();
}
END_TEST

START_TEST(a_socket_at_the_port_of_the_command_line_is_that_port_or_is_named)
{
    char port[8];

    listen_at_all();
    snprintf(port, sizeof(port), "%u", port_of(passed[0]));
    ran.prepare = pass_sockets;
    run_program(sxe_httpd_main, (const char *[]){"sxe-httpd", "-i", "0.0.0.0", "-p", port, NULL});
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, ": a socket of LISTEN_FDS has that port, at another address; leave out "
                          "-i and -p: sockets of LISTEN_FDS are served without them\n");
    httpd_child.prepare = pass_sockets;
    START_HTTPD("-i", "127.0.0.1", "-p", port, "--unix", path);
    ck_assert_uint_eq(httpd_child.port, port_of(passed[0]));
    check_hello(dial());
    check_hello(dial_unix(path));
    stop_httpd();
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* Of nine inherited sockets the last one is reported: it is at a port, or at a path. */
START_TEST(more_sockets_than_a_server_has_are_refused)
{
    const char *argv[] = {"sxe-httpd", NULL};
    struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "\0sxe-inherit"};

    while (number < 8)
        listen_at_ipv4();
    if (_i == 0)
        listen_at_ipv4();
    else
        listen_at(&un, sizeof(sa_family_t));
    ran.prepare = pass_sockets;
    run_program(sxe_httpd_main, argv);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "; pass fewer sockets, a server has 8 at most\n");
}
END_TEST

static void
pass_and_fail(void)
{
    pass_sockets();
    fake_os_fail(FAKE_FCNTL, 4, 1, EMFILE); /* three calls are for the standard descriptors */
}

START_TEST(a_socket_that_cannot_be_taken_over_is_named)
{
    const char *argv[] = {"sxe-httpd", NULL};

    listen_at_ipv4();
    ran.prepare = pass_and_fail;
    run_program(sxe_httpd_main, argv);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "cannot listen at descriptor 3 of LISTEN_FDS: Too many open files");
}
END_TEST

static const struct {
    const char *pid; /* the value of LISTEN_PID; NULL: this process */
    const char *fds;
    const char *names;
    const char *says;
} refused[] = {
    {"x", "1", NULL, "sxe-httpd: LISTEN_PID is 'x'; it must be the id of a process. "},
    {"1x", "1", NULL, "LISTEN_PID is '1x'"},
    {NULL, "", NULL, "sxe-httpd: LISTEN_FDS is ''; it must be a number of sockets, 128 at most. "},
    {NULL, "-1", NULL, "LISTEN_FDS is '-1'"},
    {NULL, "130", NULL, "LISTEN_FDS is '130'"},
    {NULL, "99999999999999999999", NULL, "LISTEN_FDS is '99999999999999999999'"},
    {NULL, "2", "a", "sxe-httpd: LISTEN_FDNAMES is 'a'; it must be a name for each of LISTEN_FDS"},
    {NULL, "1", "a:b", "LISTEN_FDNAMES is 'a:b'"},
    {NULL, "1", "a",
     "sxe-httpd: cannot listen at descriptor 3 of LISTEN_FDS: it is no stream socket that listens; "
     "pass TCP or unix sockets that listen"},
};

static void
set(const char *pid, const char *fds, const char *names)
{
    char own[16];

    snprintf(own, sizeof(own), "%d", getpid());
    setenv("LISTEN_PID", pid == NULL ? own : pid, 1);
    setenv("LISTEN_FDS", fds, 1);
    if (names != NULL)
        setenv("LISTEN_FDNAMES", names, 1);
}

START_TEST(a_variable_that_makes_no_sense_is_an_error)
{
    set(refused[_i].pid, refused[_i].fds, refused[_i].names);
    RUN_HTTPD("-p", "0");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, refused[_i].says);
}
END_TEST

START_TEST(variables_for_another_process_or_of_none_are_ignored_and_removed)
{
    const char *const pids[] = {"1", NULL};
    const char *const numbers[] = {"7", "0"};

    set(pids[_i], numbers[_i], "a");
    ck_assert_int_eq(sxe__inherit_sockets("sxe-httpd"), 0);
    ck_assert_ptr_null(getenv("LISTEN_PID"));
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
    ck_assert_ptr_null(getenv("LISTEN_FDNAMES"));
    ck_assert_int_eq(sxe__inherit_sockets("sxe-httpd"), 0);
}
END_TEST

/* ---- Messages to the service manager ---- */

static const char *const commands[][4] = {{"sxe-httpd", "-p", "0", NULL},
                                          {"sxe-httpd", "-p0", "-w1", NULL}};

START_TEST(the_program_says_when_it_is_ready_and_when_it_ends)
{
    const char *argv[4];

    memcpy(argv, commands[_i], sizeof(argv));
    open_mailbox('@');
    start_httpd(argv, STDOUT_FILENO);
    ck_assert_str_eq(message(), "READY=1\nSTATUS=Serving with 1 process");
    stop_httpd();
    ck_assert_str_eq(message(), "STOPPING=1\nSTATUS=Finishing the requests in progress");
    ck_assert(mailbox_is_empty());
}
END_TEST

START_TEST(the_program_says_again_and_again_that_it_lives)
{
    const char *argv[4];
    unsigned times = 0;

    memcpy(argv, commands[_i], sizeof(argv));
    open_mailbox('@');
    setenv("WATCHDOG_USEC", "2000", 1);
    start_httpd(argv, STDOUT_FILENO);
    while (times < 20)
        times += strcmp(message(), "WATCHDOG=1") == 0;
    stop_httpd();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("httpd inherit");
    TCase *t = tcase_create("inherit");

    tcase_add_loop_test(t, sockets_that_are_passed_are_served_and_their_files_stay, 0, 2);
    tcase_add_test(t, addresses_of_the_command_line_are_served_beside_them);
    tcase_add_test(t, a_socket_at_the_port_of_the_command_line_is_that_port_or_is_named);
    tcase_add_loop_test(t, more_sockets_than_a_server_has_are_refused, 0, 2);
    tcase_add_test(t, a_socket_that_cannot_be_taken_over_is_named);
    tcase_add_loop_test(t, a_variable_that_makes_no_sense_is_an_error, 0,
                        (int)(sizeof(refused) / sizeof(refused[0])));
    tcase_add_loop_test(t, variables_for_another_process_or_of_none_are_ignored_and_removed, 0, 2);
    tcase_add_loop_test(t, the_program_says_when_it_is_ready_and_when_it_ends, 0, 2);
    tcase_add_loop_test(t, the_program_says_again_and_again_that_it_lives, 0, 2);
    suite_add_tcase(suite, t);
    return sxe_test_main(suite);
}
