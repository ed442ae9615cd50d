/* SPDX-License-Identifier: MIT
 *
 * sxe-httpd as a program: its options in this process, its service in a child, over loopback.
 */
#include "options.h"
#include "reply.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-time.h"
#include "sxe-util.h"
#include "test-main.h"

int sxe_httpd_main(int argc, char **argv);

#define ARGUMENTS_MAX 8

struct command {
    char *argv[ARGUMENTS_MAX];
    int argc;
};

/* "-p 8000" becomes {"sxe-httpd", "-p", "8000"}; the text is cut up. */
static struct command
command_of(char *text)
{
    static char name[] = "sxe-httpd";
    struct command command = {{name}, 1};

    while (text != NULL) {
        ck_assert_int_lt(command.argc, ARGUMENTS_MAX - 1);
        command.argv[command.argc++] = strsep(&text, " ");
    }
    return command;
}

/* ---- Programs that end by themselves ---- */

static char out[4096];
static char err[4096];

static int
capture(int fd)
{
    int file = memfd_create("captured", 0);

    fflush(NULL);
    ck_assert_int_ge(dup2(file, fd), 0);
    return file;
}

static void
read_captured(int file, char *text, size_t size)
{
    ssize_t length = pread(file, text, size - 1, 0);

    ck_assert_int_ge(length, 0);
    text[length] = '\0';
}

static int
run(const char *arguments)
{
    char text[256];
    struct command command;
    int out_file = capture(STDOUT_FILENO);
    int err_file = capture(STDERR_FILENO);
    int status;

    snprintf(text, sizeof(text), "%s", arguments);
    command = command_of(text);
    status = sxe_httpd_main(command.argc, command.argv);
    fflush(NULL);
    read_captured(out_file, out, sizeof(out));
    read_captured(err_file, err, sizeof(err));
    return status;
}

static const struct {
    const char *arguments;
    const char *says; /* on stderr */
} mistakes[] = {
    {"-p", "option requires an argument"},
    {"-p 65536", "the port (-p) is '65536'; it must be a number from 0 to 65535. Try --help."},
    {"-p -1", "the port (-p) is '-1'"},
    {"-p +1", "the port (-p) is '+1'"},
    {"-p 8000x", "the port (-p) is '8000x'"},
    {"-p http", "the port (-p) is 'http'"},
    {"-p 99999999999999999999999", "the port (-p) is '9"},
    {"--port=0x50", "the port (-p) is '0x50'"},
    {"-c 0", "the number of connections (-c) is '0'; it must be a number from 1 to 10000000."},
    {"-c 10000001", "the number of connections (-c) is '10000001'"},
    {"-c many", "the number of connections (-c) is 'many'"},
    {"-i localhost", "the address (-i) is 'localhost'; it must be IPv4 or IPv6. Try --help."},
    {"-i 127.0.0.256", "the address (-i) is '127.0.0.256'"},
    {"--ip", "requires an argument"},
    {"-x", "invalid option -- 'x'\nTry sxe-httpd --help.\n"},
    {"--unknown", "unrecognized option '--unknown'\nTry sxe-httpd --help.\n"},
    {"8000", "sxe-httpd: '8000' is not an option. Try --help.\n"},
    {"-p 0 -- -c", "'-c' is not an option"},
};

START_TEST(a_mistake_is_named_and_exits_with_2)
{
    ck_assert_int_eq(run(mistakes[_i].arguments), 2);
    ck_assert_str_eq(out, "");
    ck_assert_msg(strstr(err, mistakes[_i].says) != NULL, "%s", err);
}
END_TEST

START_TEST(help_lists_every_option)
{
    ck_assert_int_eq(run(_i == 0 ? "--help" : "-h"), 0);
    ck_assert_str_eq(err, "");
    ck_assert_ptr_nonnull(strstr(out, "usage: sxe-httpd [options]\n"));
    ck_assert_ptr_nonnull(strstr(out, "  -i, --ip          IP    address to listen on"));
    ck_assert_ptr_nonnull(strstr(out, "  -p, --port        PORT  port to listen on"));
    ck_assert_ptr_nonnull(strstr(out, "  -c, --connections N     connections served at once"));
    ck_assert_ptr_nonnull(strstr(out, "      --plan              print the memory"));
    ck_assert_ptr_nonnull(strstr(out, "      --version           print the version"));
}
END_TEST

START_TEST(version_is_the_librarys)
{
    ck_assert_int_eq(run("--version"), 0);
    ck_assert_str_eq(out, "sxe-httpd " SXE_VERSION "\n");
}
END_TEST

START_TEST(the_plan_is_printed_and_nothing_served)
{
    ck_assert_int_eq(run("-c 99 --plan"), 0);
    ck_assert_ptr_nonnull(strstr(out, "sockets                 100 x"));
    ck_assert_ptr_nonnull(strstr(out, "total"));
    ck_assert_str_eq(err, "");
}
END_TEST

static int
loopback_socket(unsigned short *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

START_TEST(a_port_in_use_exits_with_1)
{
    unsigned short port;
    int taken = loopback_socket(&port);
    char arguments[32];
    char says[128];

    snprintf(arguments, sizeof(arguments), "-p %u", port);
    ck_assert_int_eq(run(arguments), 1);
    snprintf(says, sizeof(says), "cannot listen on 127.0.0.1 port %u: Address already in use\n",
             port);
    ck_assert_msg(strstr(err, says) != NULL, "%s", err);
    ck_assert_str_eq(out, "");
    close(taken);
}
END_TEST

START_TEST(without_memory_it_exits_with_1)
{
    fake_os_fail(FAKE_CALLOC, 1, 0, ENOMEM);
    ck_assert_int_eq(run("-p 0"), 1);
    ck_assert_msg(strstr(err, "sxe-httpd: cannot start: Cannot allocate memory\n") != NULL, "%s",
                  err);
}
END_TEST

/* ---- The server in a child ---- */

static pid_t server;
static unsigned short server_port;
static int server_ip_version;

/* Sets faults in the child, before the program starts. */
static void (*prepare_server)(void);

static void
start_server(const char *arguments)
{
    char text[256];
    char line[256];
    int said[2];
    FILE *stream;

    snprintf(text, sizeof(text), "%s", arguments);
    ck_assert_int_eq(pipe2(said, O_CLOEXEC), 0);
    server = fork();
    if (server == 0) {
        struct command command = command_of(text);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(said[1], STDOUT_FILENO);
        if (prepare_server != NULL)
            prepare_server();
        exit(sxe_httpd_main(command.argc, command.argv));
    }
    close(said[1]);
    stream = fdopen(said[0], "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), stream));
    fclose(stream);
    server_ip_version = strncmp(line, "listening on http://[::1]:", 26) == 0 ? 6 : 4;
    if (server_ip_version == 4)
        ck_assert_int_eq(strncmp(line, "listening on http://127.0.0.1:", 30), 0);
    server_port = (unsigned short)strtoul(strrchr(line, ':') + 1, NULL, 10);
    ck_assert_str_eq(strrchr(line, '/'), "/\n");
}

static void
stop_server(int signal_number)
{
    int status;

    ck_assert_int_eq(kill(server, signal_number), 0);
    ck_assert_int_eq(waitpid(server, &status, 0), server);
    ck_assert_int_eq(status, 0);
}

static int
dial(void)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET,
                              .sin_port = htons(server_port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons(server_port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct timeval patience = {.tv_sec = 10};
    int fd = socket(server_ip_version == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    if (server_ip_version == 4)
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&in4, sizeof(in4)), 0);
    else
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&in6, sizeof(in6)), 0);
    return fd;
}

static void
say(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* What comes must be this; each * stands for a date's 29 bytes. */
static void
expect(int fd, const char *text)
{
    char got[30] = "";

    for (; *text != '\0'; text++) {
        size_t length = *text == '*' ? 29 : 1;
        ck_assert_int_eq(recv(fd, got, length, MSG_WAITALL), (ssize_t)length);
        got[length] = '\0';
        if (length == 1)
            ck_assert_int_eq(got[0], *text);
        else
            ck_assert_str_eq(got + 25, " GMT");
    }
}

static void
expect_end(int fd)
{
    char byte;

    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

#define HEAD_OF_REPLY \
    "HTTP/1.1 200 OK\r\nDate: *\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n"
#define BODY  "Hello, World!\n"
#define GET   "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define HELLO HEAD_OF_REPLY "\r\n" BODY

START_TEST(it_says_hello_as_often_as_asked_until_it_is_stopped)
{
    int fd;

    start_server("-p 0 -c 10");
    fd = dial();
    for (unsigned i = 0; i < 10; i++) {
        say(fd, GET);
        expect(fd, HELLO);
    }
    say(fd, GET GET GET);
    expect(fd, HELLO HELLO HELLO);
    stop_server(_i == 0 ? SIGTERM : SIGINT);
    close(fd);
}
END_TEST

START_TEST(it_listens_on_ipv6_too)
{
    int fd;

    start_server("-i ::1 -p 0");
    fd = dial();
    say(fd, GET);
    expect(fd, HELLO);
    close(fd);
    stop_server(SIGTERM);
}
END_TEST

static const struct {
    const char *request;
    const char *reply;
    bool ends;
} exchanges[] = {
    {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" GET, HEAD_OF_REPLY "\r\n" HELLO, false},
    {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" GET,
     HEAD_OF_REPLY "Connection: close\r\n\r\n" BODY, true},
    {"GET / HTTP/1.0\r\n\r\n", HEAD_OF_REPLY "Connection: close\r\n\r\n" BODY, true},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     HEAD_OF_REPLY "Connection: keep-alive\r\n\r\n" BODY, false},
    {"HEAD / HTTP/1.0\r\n\r\n", HEAD_OF_REPLY "Connection: close\r\n\r\n", true},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" GET, HELLO HELLO, false},
    {GET "rubbish", HELLO, false},
};

START_TEST(each_request_gets_its_reply)
{
    int fd;

    start_server("-p 0");
    fd = dial();
    say(fd, exchanges[_i].request);
    expect(fd, exchanges[_i].reply);
    if (exchanges[_i].ends)
        expect_end(fd);
    else
        close(fd);
    stop_server(SIGTERM);
}
END_TEST

#define REFUSAL(status) \
    "HTTP/1.1 " status "\r\nDate: *\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

START_TEST(what_is_refused_is_told_why_and_closed)
{
    static const char *const refused[][2] = {
        {"GET / HTTP/1.1\r\n\r\n", REFUSAL("400 Bad Request")},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n",
         REFUSAL("413 Content Too Large")},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
         REFUSAL("501 Not Implemented")},
        {"GET / HTTP/2.0\r\n\r\n", REFUSAL("505 HTTP Version Not Supported")},
    };
    static char text[20000];
    int fd;

    start_server("-p 0");
    for (unsigned i = 0; i < 4; i++) {
        fd = dial();
        say(fd, refused[i][0]);
        expect(fd, refused[i][1]);
        expect_end(fd);
    }
    memset(text, 'a', sizeof(text) - 1);
    fd = dial();
    say(fd, text);
    expect(fd, REFUSAL("414 URI Too Long"));
    expect_end(fd);
    memcpy(text, "GET / HTTP/1.1\r\n", 16);
    fd = dial();
    say(fd, text);
    expect(fd, REFUSAL("431 Request Header Fields Too Large"));
    expect_end(fd);
    stop_server(SIGTERM);
}
END_TEST

/* Each byte is an event of its own, as far as the kernel allows. */
START_TEST(a_request_may_come_byte_by_byte)
{
    static const char request[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    char byte[2] = "";
    int fd;

    start_server("-p 0 -c 1");
    fd = dial();
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        byte[0] = request[i];
        say(fd, byte);
        sched_yield();
    }
    say(fd, GET);
    expect(fd, HELLO HELLO);
    shutdown(fd, SHUT_WR);
    expect_end(fd);
    stop_server(SIGTERM);
}
END_TEST

/* A peer that is gone before the replies to its pipelined requests fit into one write. */
static void
fail_first_write(void)
{
    fake_os_fail(FAKE_WRITE, 1, 1, EPIPE);
}

START_TEST(replies_that_cannot_be_sent_close_and_the_next_is_served)
{
    static char requests[640 * 25 + 1];
    int fd;

    prepare_server = fail_first_write;
    start_server("-p 0");
    fd = dial();
    for (size_t i = 0; i + 25 <= sizeof(requests); i += 25)
        memcpy(requests + i, "GET / HTTP/1.1\r\nHost:\r\n\r\n", 25);
    say(fd, requests);
    ck_assert_int_le(recv(fd, requests, 1, 0), 0);
    close(fd);
    fd = dial();
    say(fd, GET);
    expect(fd, HELLO);
    close(fd);
    stop_server(SIGTERM);
}
END_TEST

/* ---- Dates ---- */

static void
expect_date(const char *date)
{
    struct httpd_request request = {.keep_alive = true};
    struct httpd_reply reply = httpd_reply_hello(&request, sxe_time_ns());

    ck_assert_int_eq(strncmp(reply.base + 23, date, 29), 0);
}

START_TEST(the_date_is_an_imf_fixdate)
{
    static const struct {
        uint64_t seconds;
        const char *date;
    } dates[] = {
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {1767225599, "Wed, 31 Dec 2025 23:59:59 GMT"},
        {1767225600, "Thu, 01 Jan 2026 00:00:00 GMT"},
    };

    setenv("LC_ALL", "de_DE.UTF-8", 1);
    setenv("TZ", "Asia/Tokyo", 1);
    fake_time_start(UINT64_C(1000000000), dates[_i].seconds * 1000000000 + 999999999);
    expect_date(dates[_i].date);
}
END_TEST

/* F10 */
START_TEST(f10_the_date_changes_with_the_second_and_follows_the_wall_clock)
{
    fake_time_start(UINT64_C(5000000000), UINT64_C(784111777) * 1000000000 + 500000000);
    expect_date("Sun, 06 Nov 1994 08:49:37 GMT");
    fake_time_advance(499999999);
    expect_date("Sun, 06 Nov 1994 08:49:37 GMT");
    fake_time_advance(1);
    expect_date("Sun, 06 Nov 1994 08:49:38 GMT");
    fake_time_step_wall(INT64_C(3600) * 1000000000);
    fake_time_advance(1000000000);
    expect_date("Sun, 06 Nov 1994 09:49:39 GMT");
    fake_time_step_wall(INT64_C(-7200) * 1000000000);
    fake_time_advance(1000000000);
    expect_date("Sun, 06 Nov 1994 07:49:40 GMT");
}
END_TEST

static Suite *
app_suite(void)
{
    Suite *suite = suite_create("httpd app");
    TCase *options = tcase_create("options");
    TCase *service = tcase_create("service");
    TCase *dates = tcase_create("dates");

    tcase_add_loop_test(options, a_mistake_is_named_and_exits_with_2, 0,
                        (int)(sizeof(mistakes) / sizeof(mistakes[0])));
    tcase_add_loop_test(options, help_lists_every_option, 0, 2);
    tcase_add_test(options, version_is_the_librarys);
    tcase_add_test(options, the_plan_is_printed_and_nothing_served);
    tcase_add_test(options, a_port_in_use_exits_with_1);
    tcase_add_test(options, without_memory_it_exits_with_1);
    tcase_add_loop_test(service, it_says_hello_as_often_as_asked_until_it_is_stopped, 0, 2);
    tcase_add_test(service, it_listens_on_ipv6_too);
    tcase_add_loop_test(service, each_request_gets_its_reply, 0,
                        (int)(sizeof(exchanges) / sizeof(exchanges[0])));
    tcase_add_test(service, what_is_refused_is_told_why_and_closed);
    tcase_add_test(service, a_request_may_come_byte_by_byte);
    tcase_add_test(service, replies_that_cannot_be_sent_close_and_the_next_is_served);
    tcase_add_loop_test(dates, the_date_is_an_imf_fixdate, 0, 5);
    tcase_add_test(dates, f10_the_date_changes_with_the_second_and_follows_the_wall_clock);
    suite_add_tcase(suite, options);
    suite_add_tcase(suite, service);
    suite_add_tcase(suite, dates);
    return suite;
}

int
main(void)
{
    return sxe_test_main(app_suite());
}
