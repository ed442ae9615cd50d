/* SPDX-License-Identifier: MIT
 *
 * What: runs sxe-httpd. RUN_HTTPD("-p", "x") runs it in this process by means of run-program.h;
 * START_HTTPD("-p", "0") starts it in a child, waits until it listens, and fills `httpd_child`.
 *
 * Place: tests of the whole program. The clients are plain sockets of this process; their limits of
 * time only end a hang.
 *
 * Limits: a child ends with its parent. httpd_child.prepare can set faults of fake-os in the child.
 */
#ifndef RUN_HTTPD_H
#define RUN_HTTPD_H

#include "run-program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "test-main.h"

int sxe_httpd_main(int argc, char **argv);

static struct {
    pid_t pid;
    bool is_ipv6;
    bool is_https;
    unsigned short port;
    int errors;            /* a file with its standard error */
    FILE *says;            /* its output after the line that says where it listens */
    void (*prepare)(void); /* called in the child before the program */
} httpd_child;

/* ---- Running sxe-httpd to its end ---- */

static inline void
run_httpd(const char **argv)
{
    run_here(sxe_httpd_main, argv);
}
#define RUN_HTTPD(...) run_httpd((const char *[]){"sxe-httpd", __VA_ARGS__, NULL})

static unsigned httpd_nth_allocation;

static inline void
fail_httpd_allocations(void)
{
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_MALLOC, FAKE_REALLOC};

    /* Lua tries again after a collection, so all following calls fail. */
    fake_os_sweep(kinds, 3, httpd_nth_allocation, true, ENOMEM);
}

/* Run sxe-httpd again and again, with memory for one allocation more each time, until it needs no
 * more; it must need more than `least`. Each time it ends with status 0, or says why not. */
static inline void
sweep_httpd_memory(const char **argv, unsigned least)
{
    ran.prepare = fail_httpd_allocations;
    httpd_nth_allocation = 0;
    do {
        httpd_nth_allocation++;
        run_program(sxe_httpd_main, argv);
        ck_assert_int_eq(ran.status == 0, *ran.errors == '\0');
    } while (ran.injected != 0);
    ck_assert_uint_gt(httpd_nth_allocation, least);
}

/* ---- Running sxe-httpd in a child ---- */

static inline void
be_httpd(const char **argv, int out, int err)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    /* so that sxe-httpd is not root, whoever runs the tests */
    fake_os_fail(FAKE_GETEUID, 1, 1, EPERM);
    if (httpd_child.prepare != NULL)
        httpd_child.prepare();
    exit(main_of(sxe_httpd_main, argv));
}

/* said_on: the child's descriptor on which it prints where it listens. */
static inline void
start_httpd(const char **argv, int said_on)
{
    char line[256] = "";
    int said[2];
    FILE *stream;

    httpd_child.errors = fileno(tmpfile());
    ck_assert_int_eq(pipe2(said, O_CLOEXEC), 0);
    fflush(NULL);
    httpd_child.pid = fork();
    if (httpd_child.pid == 0)
        be_httpd(argv, said_on == STDOUT_FILENO ? said[1] : STDOUT_FILENO,
                 said_on == STDERR_FILENO ? said[1] : httpd_child.errors);
    close(said[1]);
    stream = fdopen(said[0], "r");
    ck_assert_msg(fgets(line, sizeof(line), stream) != NULL, "the server does not listen");
    httpd_child.is_https = strncmp(line, "listening on https://127.0.0.1:", 31) == 0;
    httpd_child.is_ipv6 = strncmp(line, "listening on http://[::1]:", 26) == 0;
    if (!httpd_child.is_ipv6 && !httpd_child.is_https)
        ck_assert_int_eq(strncmp(line, "listening on http://127.0.0.1:", 30), 0);
    httpd_child.port = (unsigned short)strtoul(strrchr(line, ':') + 1, NULL, 10);
    ck_assert_str_eq(strrchr(line, '/'), "/\n");
    httpd_child.says = stream;
}
#define START_HTTPD(...) \
    start_httpd((const char *[]){"sxe-httpd", "-p", "0", __VA_ARGS__, NULL}, STDOUT_FILENO)

/* The child must exit with 0. */
static inline void
expect_exit(void)
{
    int status;

    ck_assert_int_eq(waitpid(httpd_child.pid, &status, 0), httpd_child.pid);
    ck_assert_int_eq(status, 0);
}

static inline void
stop_httpd(void)
{
    ck_assert_int_eq(kill(httpd_child.pid, SIGTERM), 0);
    expect_exit();
}

/* The child's standard error so far. The buffer has room for the lines, one for each source file,
 * by which a process with another user says that it cannot write its coverage. */
static inline const char *
child_errors(void)
{
    static char text[256 * 1024];
    ssize_t length = pread(httpd_child.errors, text, sizeof(text) - 1, 0);

    ck_assert_int_ge(length, 0);
    text[length] = '\0';
    return text;
}

/* ---- Clients ---- */

static inline int
patient_socket(int family)
{
    struct timeval patience = {.tv_sec = 600};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    return fd;
}

/* A new connection; -1: nobody listens any more. */
static inline int
try_to_dial(void)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET,
                              .sin_port = htons(httpd_child.port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons(httpd_child.port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = patient_socket(httpd_child.is_ipv6 ? AF_INET6 : AF_INET);
    int result = httpd_child.is_ipv6 ? connect(fd, (struct sockaddr *)&in6, sizeof(in6))
                                     : connect(fd, (struct sockaddr *)&in4, sizeof(in4));

    if (result == 0)
        return fd;
    close(fd);
    return -1;
}

static inline int
dial(void)
{
    int fd = try_to_dial();

    ck_assert_int_ge(fd, 0);
    return fd;
}

static inline int
dial_unix(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = patient_socket(AF_UNIX);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

static inline void
say(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* The bytes that come must be this text, in which each @ stands for a date of 29 bytes. */
static inline void
expect(int fd, const char *text)
{
    char got[30] = "";

    for (; *text != '\0'; text++) {
        size_t length = *text == '@' ? 29 : 1;

        ck_assert_int_eq(recv(fd, got, length, MSG_WAITALL), (ssize_t)length);
        got[length] = '\0';
        if (length == 1)
            ck_assert_int_eq(got[0], *text);
        else
            ck_assert_str_eq(got + 25, " GMT");
    }
}

/* Send a request on a new connection; the reply must begin like this. */
static inline void
ask_and_expect(const char *request, const char *reply)
{
    int client = dial();

    say(client, request);
    expect(client, reply);
    close(client);
}

static inline void
expect_end(int fd)
{
    char byte;

    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

#define HEAD_OF_REPLY \
    "HTTP/1.1 200 OK\r\nDate: @\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n"
#define BODY  "Hello, World!\n"
#define GET   "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define HELLO HEAD_OF_REPLY "\r\n" BODY

#endif
