/* SPDX-License-Identifier: MIT
 *
 * An HTTP server with worker processes, by docs/processes.md: what the parent and the workers are
 * told, and how connections that are kept alive end.
 */
#include "outside.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sxe-http.h>
#include <sxe-workers.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { LONG = 1000000 };

static int told[2];    /* a pipe: a letter for each call, from parent and workers */
static int *is_bad;    /* shared: whether workers fail to start */
static uint16_t *port; /* shared */
static struct sxe_http *http;
static pid_t parent;

static void
tell(char letter)
{
    ck_assert_int_eq(write(told[1], &letter, 1), 1);
}

/* ---- The server ---- */

static void
stop(struct sxe_http *drained)
{
    (void)drained;
    sxe_stop();
}

static void
on_event(void *user, enum sxe_workers_event event)
{
    (void)user;
    tell("DERSF"[event]);
    if (event == SXE_WORKERS_DRAIN)
        sxe_http_drain(http, stop);
    else if (event == SXE_WORKERS_END)
        sxe_http_stop(http, stop);
}

static enum sxe_http_verdict
handle(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    return sxe_http_reply(response, 200, "text/plain", "hello\n", 6);
}

static int
serve(void *user, const struct sxe_worker *worker)
{
    const struct sxe_http_config config = {.handler = handle};

    (void)user;
    (void)worker;
    http = *is_bad ? NULL : sxe_http_new(&config);
    if (http == NULL || sxe_init() < 0 || sxe_workers_attend(on_event, NULL) < 0 ||
        sxe_http_listen(http, "127.0.0.1", 0) < 0)
        return 1;
    *port = sxe_http_port(http);
    return sxe_workers_ready() < 0 || sxe_run() < 0;
}

static void
on_settled(void *user, bool is_good)
{
    (void)user;
    tell(is_good ? '+' : '-');
}

static void
on_end(void *user, unsigned slot)
{
    (void)user;
    tell((char)('0' + slot));
}

static void
on_reopen(void *user)
{
    (void)user;
    tell('r');
}

static void
start(void)
{
    static const struct sxe_workers_config config = {.serve = serve,
                                                     .workers = 1,
                                                     .stop_timeout_ms = LONG,
                                                     .on_settled = on_settled,
                                                     .on_end = on_end,
                                                     .on_reopen = on_reopen};
    void *shared = mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(shared, MAP_FAILED);
    is_bad = shared;
    port = (uint16_t *)(is_bad + 1);
    ck_assert_int_eq(pipe(told), 0);
    parent = fork();
    if (parent == 0) {
        sxe_log_set_level(SXE_LOG_FATAL);
        exit(sxe_workers_run(&config));
    }
}

/* The next letters that parent and worker tell are these. */
static void
expect(const char *letters)
{
    for (; *letters != '\0'; letters++) {
        char letter = '\0';

        ck_assert_int_eq(read(told[0], &letter, 1), 1);
        ck_assert_msg(letter == *letters, "told %c, not %c", letter, *letters);
    }
}

static int
get(void)
{
    struct sockaddr_in in4 = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char reply[512] = "";
    size_t length = 0;

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&in4, sizeof(in4)), 0);
    ck_assert_int_eq(send(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, MSG_NOSIGNAL), 27);
    while (strstr(reply, "hello\n") == NULL) {
        ssize_t got = recv(fd, reply + length, sizeof(reply) - 1 - length, 0);

        ck_assert_int_gt(got, 0);
        length += (size_t)got;
    }
    return fd;
}

static void
expect_exit(void)
{
    int status;

    ck_assert_int_eq(waitpid(parent, &status, 0), parent);
    ck_assert_int_eq(status, 0);
}

/* ---- Cases ---- */

/* promise: docs/processes.md: A server of [http](http.md) must close connections that are kept
 * alive: */
START_TEST(a_connection_that_is_kept_alive_ends_at_the_end)
{
    char byte;
    int fd;

    start();
    expect("+");
    fd = get();
    kill(parent, SIGTERM);
    expect("E0");
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    close(fd);
    expect_exit();
}
END_TEST

/* promise: docs/processes.md: `on_settled` tells the parent which of the two happened. */
START_TEST(the_parent_is_told_how_a_load_ends_and_which_slot_is_free)
{
    start();
    expect("+");
    *is_bad = 1;
    kill(parent, SIGHUP);
    expect("1-");
    *is_bad = 0;
    close(get());
    kill(parent, SIGHUP);
    expect("+D0");
    close(get());
    kill(parent, SIGTERM);
    expect("E1");
    expect_exit();
}
END_TEST

/* promise: docs/processes.md: `on_reopen`, then the event REOPEN in each worker: logs are opened
 * again */
START_TEST(signals_are_events_in_workers)
{
    start();
    expect("+");
    kill(parent, SIGUSR1);
    expect("rR");
    kill(parent, SIGQUIT);
    expect("S");
    kill(parent, SIGTERM);
    expect("E0");
    expect_exit();
}
END_TEST

/* promise: docs/processes.md: an address that is in use is then an error of `main` */
START_TEST(an_address_that_is_in_use_is_an_error_before_workers_start)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(in4);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sxe_log_set_level(SXE_LOG_FATAL);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in4, sizeof(in4)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in4, &length), 0);
    ck_assert_int_eq(sxe_workers_listen_tcp("127.0.0.1", ntohs(in4.sin_port)), -EADDRINUSE);
    ck_assert_int_eq(sxe_workers_listen_tcp("a name", 80), -EINVAL);
    ck_assert_int_eq(sxe_workers_listen_unix(""), -EINVAL);
    close(fd);
}
END_TEST

/* promise: docs/processes.md: `serve` also runs without `sxe_workers_run`: then `sxe_workers_ready`
 * does nothing. */
START_TEST(without_a_parent_the_calls_of_workers_do_nothing)
{
    ck_assert_int_eq(sxe_workers_attend(on_event, NULL), 0);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    ck_assert_int_eq(sxe_workers_renew(), -EINVAL);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {a_connection_that_is_kept_alive_ends_at_the_end,
                            the_parent_is_told_how_a_load_ends_and_which_slot_is_free,
                            signals_are_events_in_workers,
                            an_address_that_is_in_use_is_an_error_before_workers_start,
                            without_a_parent_the_calls_of_workers_do_nothing,
                            NULL};

    return outside_run("workers-http", cases);
}
