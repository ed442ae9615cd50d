/* SPDX-License-Identifier: MIT
 *
 * What: a server in another process that behaves as a test says, and checks of sxe-http's report.
 *
 * Example:
 *     start_server(hello);
 *     RUN(2, 3);
 *     CHECK(0, "2/2 connections", "queries   6  ok 6");
 */
#ifndef HTTP_APP_SERVER_H
#define HTTP_APP_SERVER_H

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "leaks.h"
#include "run-http.h"
#include "run.h"

#define SOCKETS_MAX 200
#define REPLY       "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define NOT_FOUND   "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello"
#define CHUNKED     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define UNTIL_CLOSE "HTTP/1.1 200 OK\r\n\r\nhello"

/* ---- The server ---- */

/* Called for the nth request of a connection, from 1 on. True keeps the connection open. */
typedef bool (*answer_fn)(int fd, unsigned nth);

static char port[8];
static pid_t server;

static inline void
say(int fd, const char *text)
{
    /* An error is ignored: if the client is gone, the next read finds that out. */
    (void)!write(fd, text, strlen(text));
}

static inline bool
reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return false;
}

static inline int
listen_anywhere(int backlog)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(port, sizeof(port), "%u", ntohs(address.sin_port));
    return fd;
}

struct requests {
    unsigned number;
    unsigned matched; /* how many bytes of the next request's blank line have come */
};

/* Read once, and answer each request that is complete then. */
static inline bool
receive(int fd, struct requests *requests, answer_fn answer)
{
    static const char blank_line[] = "\r\n\r\n";
    char bytes[4096];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    bool keep = n > 0;

    for (ssize_t i = 0; i < n && keep; i++) {
        requests->matched =
            bytes[i] == blank_line[requests->matched] ? requests->matched + 1 : bytes[i] == '\r';
        if (requests->matched < 4)
            continue;
        requests->matched = 0;
        keep = answer(fd, ++requests->number);
    }
    return keep;
}

/* Send the greeting on each connection, and answer its requests, for ever. */
static inline void
serve(int listener, const char *greeting, answer_fn answer)
{
    struct pollfd fds[1 + SOCKETS_MAX] = {{listener, POLLIN, 0}};
    struct requests requests[1 + SOCKETS_MAX] = {0};
    unsigned number = 1;

    for (;;) {
        poll(fds, number, -1);
        for (unsigned i = 1; i < number; i++) {
            if (fds[i].revents == 0 || receive(fds[i].fd, &requests[i], answer))
                continue;
            close(fds[i].fd);
            fds[i] = fds[--number];
            requests[i] = requests[number];
            i--;
        }
        if (fds[0].revents != 0) {
            fds[number] = (struct pollfd){accept(listener, NULL, NULL), POLLIN, 0};
            requests[number] = (struct requests){0};
            say(fds[number++].fd, greeting);
        }
    }
}

/* Two servers that many tests use. */
static inline bool
hello(int fd, unsigned nth)
{
    (void)nth;
    say(fd, REPLY);
    return true;
}

static inline bool
not_found_once(int fd, unsigned nth)
{
    say(fd, nth == 2 ? NOT_FOUND : REPLY);
    return true;
}

/* Fork; true in the child, which ends with its parent. */
static inline bool
fork_server(void)
{
    server = fork();
    ck_assert_int_ge(server, 0);
    if (server > 0)
        return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    return true;
}

static inline void
start_greeting_server(const char *greeting, answer_fn answer)
{
    int listener = listen_anywhere(SOCKETS_MAX);

    if (fork_server())
        serve(listener, greeting, answer);
    close(listener);
}

static inline void
start_server(answer_fn answer)
{
    start_greeting_server("", answer);
}

static inline void
stop_server(void)
{
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
    server = 0;
}

/* ---- Running sxe-http, and checking its output ---- */

#define RUN(sockets, queries) RUN_HTTP("-p", port, "-c", #sockets, "-n", #queries, "--timeout", "5")

/* The expected status; or suspect (4), because the machine may be busy with other tests. */
static inline bool
is_status(int status)
{
    return ran.status == status || (status == LOAD_EXIT_OK && ran.status == LOAD_EXIT_SUSPECT &&
                                    (strstr(ran.output, "RESULT SUSPECT: ") != NULL ||
                                     strstr(ran.output, "\nsuspect   ") != NULL));
}

/* Check the exit status, and that the report contains each text of a list that ends in NULL. */
static inline void
check_report(int status, const char *const *parts)
{
    ck_assert_msg(is_status(status), "status %d of %s%s", ran.status, ran.output, ran.errors);
    for (; *parts != NULL; parts++)
        check_has(ran.output, *parts);
    stop_server();
}
#define CHECK(status, ...) check_report(status, (const char *const[]){__VA_ARGS__, NULL})

#endif
