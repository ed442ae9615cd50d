/* SPDX-License-Identifier: MIT
 *
 * What: a server of lib-sxe-http on the virtual clock. The test itself is the clients: plain
 * sockets that send what the test says and compare the replies byte by byte, except for the Date.
 * The callbacks of the server push events into the event queue.
 *
 * Shape: the events are "done" (number: the result) and "reply" (number: the status), whose data is
 * the request's target, and "body" (number: whether the part is the last), whose data is the part.
 * push_later keeps its request in site.request for the test and pushes "later".
 *
 * Example:
 *     serve((struct sxe_http_config){.handler = echo});
 *     int peer = client();
 *     say(peer, GET("/a"));
 *     EXPECT_OK(peer, "GET /a");
 *     close(peer);
 *     end_site();
 */
#ifndef HTTP_SITE_H
#define HTTP_SITE_H

#include "sxe-http-server-private.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "test-main.h"

int __real_poll(struct pollfd *fds, nfds_t number, int timeout_ms);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);

#define SITE_TIME 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT: the time when each case begins */
#define DATE_LINE SXE_LITERAL_LENGTH("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n")
#define MS        UINT64_C(1000000)

#define GET(target)        "GET " target " HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST(fields, body) "POST / HTTP/1.1\r\nHost: h\r\n" fields "\r\n" body
#define TEXT               "Content-Type: text/plain; charset=utf-8\r\n"

static struct {
    struct sxe_http *http;
    struct sxe_http_request *request; /* the last request that push_later got */
    struct sxe_http_response *response;
} site;

/* ---- The server ---- */

static inline void
push_target(const char *name, const struct sxe_http_request *request, long number)
{
    struct sxe_span target = {"", 0};

    if (request->head.target.length > 0)
        target = sxe_http_target(request);
    event_push_data(name, NULL, number, target.base, target.length);
}

/* A callback for response->on_done. */
static inline void
push_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    ck_assert_ptr_eq(sxe_http_response_of(request), response);
    push_target("done", request, result);
}

/* A callback for config.on_reply. */
static inline void
push_reply(struct sxe_http_request *request, const struct sxe_http_summary *summary)
{
    push_target("reply", request, summary->status);
}

/* A handler that answers 200; the body is the method, the target and the body of the request. */
static inline enum sxe_http_verdict
echo(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static char text[70000];
    struct sxe_span method = sxe_http_method_text(request);
    struct sxe_span target = sxe_http_target(request);
    int length = snprintf(text, sizeof(text), "%.*s %.*s%s%.*s", (int)method.length, method.base,
                          (int)target.length, target.base, request->body.length > 0 ? " " : "",
                          (int)request->body.length, request->body.base);

    ck_assert_int_lt(length, (int)sizeof(text));
    return sxe_http_reply(response, 200, NULL, text, (size_t)length);
}

/* A handler that leaves the answer to the test, which gives it by site.response. */
static inline enum sxe_http_verdict
push_later(struct sxe_http_request *request, struct sxe_http_response *response)
{
    site.request = request;
    site.response = response;
    response->on_done = push_done;
    push_target("later", request, 0);
    return SXE_HTTP_LATER;
}

/* A handler: push_later for targets that begin with /l; others get "now" pushed, and echo. */
static inline enum sxe_http_verdict
now_or_later(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_span target = sxe_http_target(request);

    if (target.length > 1 && target.base[1] == 'l')
        return push_later(request, response);
    push_target("now", request, 0);
    return echo(request, response);
}

/* A callback for sxe_http_read: pushes "body", whether the part is the last, and its bytes. */
static inline void
push_body(struct sxe_http_request *request, struct sxe_http_response *response,
          struct sxe_span part, bool last)
{
    ck_assert_ptr_eq(sxe_http_response_of(request), response);
    event_push_data("body", NULL, last, part.base, part.length);
}

/* A handler that pushes the parts of the body and leaves the answer to the test. */
static inline enum sxe_http_verdict
read_later(struct sxe_http_request *request, struct sxe_http_response *response)
{
    sxe_http_read(request, push_body);
    return push_later(request, response);
}

/* ---- Functions that tables name ---- */

static inline int
end_empty(struct sxe_http_response *response)
{
    return sxe_http_end(response, NULL, 0);
}

static inline int
end_borrowed(struct sxe_http_response *response)
{
    static const char zeros[100000];

    return sxe_http_end_borrowed(response, zeros, sizeof(zeros));
}

static inline void
never(struct sxe_http_response *response)
{
    (void)response;
    ck_abort_msg("on_room is called");
}

static inline int
wait_for_room(struct sxe_http_response *response)
{
    return sxe_http_on_room(response, never);
}

/* ---- Starting and stopping the server ---- */

/* Start the server. loop: the loop's configuration, or NULL. */
static inline void
serve_with(struct sxe_http_config config, const struct sxe_config *loop)
{
    memset(&site, 0, sizeof(site));
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    if (config.connections == 0)
        config.connections = 100;
    if (loop != NULL)
        sxe_configure(loop);
    site.http = sxe_http_new(&config);
    ck_assert_ptr_nonnull(site.http);
    plan_start(0);
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
}

static inline void
serve(struct sxe_http_config config)
{
    serve_with(config, NULL);
}

static inline unsigned
connections_in(enum sxe__http_state state)
{
    return sxe_pool_get_count(site.http->connections, state);
}

static inline void
ignore_timer(struct sxe_timer *timer)
{
    (void)timer;
}

/* Let this much virtual time pass, and do what becomes due meanwhile. */
static inline void
wait_ms(unsigned ms)
{
    struct sxe_timer timer;

    sxe_timer_init(&timer, ignore_timer, ms / 1000.0, 0);
    sxe_timer_start(&timer);
    while (ev_is_active(&timer.ev))
        ev_run(sxe_loop(), EVRUN_ONCE);
}

static inline bool
is_at_rest(void)
{
    return connections_in(SXE__HTTP_FREE) == site.http->config.connections;
}

/* Once closing has had time to end: no connection, no slot and no byte of a body is in use. Virtual
 * time is not enough: on a loaded machine the kernel may bring the end of a client's connection
 * late. */
static inline void
expect_rest(void)
{
    turn(10);
    if (!is_at_rest())
        wait_ms(10000);
    for (unsigned i = 0; i < WAIT_TURNS && !is_at_rest(); i++) {
        __real_poll(NULL, 0, 1);
        turn(1);
        if (i == 100)
            wait_ms(10000);
    }
    ck_assert_uint_eq(connections_in(SXE__HTTP_FREE), site.http->config.connections);
    ck_assert_uint_eq(site.http->free_count, site.http->config.connections);
    ck_assert_uint_eq(site.http->body_memory, 0);
}

/* Stop the server, after the test has closed all its sockets. */
static inline void
end_site(void)
{
    expect_rest();
    plan_stop();
    sxe_http_delete(site.http);
}

/* ---- The clients ---- */

/* A client's socket, connected and accepted, with TCP_NODELAY: each piece it sends leaves at
 * once. */
static inline int
client(void)
{
    int peer = peer_connect(sxe_http_port(site.http));
    int one = 1;

    __real_setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    turn(2);
    return peer;
}

static inline void
say(int peer, const char *text)
{
    peer_send(peer, text, strlen(text));
    turn(2);
}

/* Send this many letters x. */
static inline void
say_x(int peer, size_t length)
{
    static char much[200000];

    memset(much, 'x', sizeof(much));
    for (size_t part; length > 0; length -= part) {
        part = length < sizeof(much) ? length : sizeof(much);
        peer_send(peer, much, part);
    }
}

/* Send the text in pieces of this many bytes; the server reads each before the next is sent. */
static inline void
say_in_pieces(int peer, const char *text, size_t length, size_t piece)
{
    for (size_t at = 0; at < length; at += piece) {
        peer_send(peer, text + at, length - at < piece ? length - at : piece);
        turn(2);
    }
}

/* Remove the Date line of each head. Returns the length of what is left. */
static inline size_t
take_dates_out(char *text, size_t length)
{
    char *date;

    text[length] = '\0';
    while ((date = memmem(text, length, "\r\nDate: ", 8)) != NULL) {
        size_t after = length - (size_t)(date - text) - DATE_LINE;

        ck_assert_mem_eq(date + DATE_LINE, "\r\n", 2);
        memmove(date, date + DATE_LINE, after);
        length -= DATE_LINE;
    }
    return length;
}

/* The bytes of the Date lines that the replies in text should have; 1xx responses have none. */
static inline size_t
dates_in(const char *text)
{
    size_t number = 0;

    while ((text = strstr(text, "HTTP/1.1 ")) != NULL) {
        text += 9;
        number += *text != '1';
    }
    return number * DATE_LINE;
}

#define EXPECT_REPLY(peer, text) expect_reply(__FILE__, __LINE__, peer, text)

/* Expect exactly these replies, one or more, once their Date lines are removed. */
static inline void
expect_reply(const char *file, int line, int peer, const char *text)
{
    static char got[200000];
    size_t length = strlen(text) + dates_in(text);

    ck_assert_uint_lt(length, sizeof(got));
    length = take_dates_out(got, peer_receive(peer, got, length));
    if (length != strlen(text) || memcmp(got, text, length) != 0)
        _ck_assert_failed(file, line, "the peer gets", "'%s', not '%s'", got, text);
}

#define EXPECT_STATUS(peer, status, fields, body) \
    expect_status(__FILE__, __LINE__, peer, status, fields, body)

/* Expect a reply with a Content-Length. lines: the fields before and after Content-Length. */
static inline void
expect_status(const char *file, int line, int peer, const char *status, const char *const lines[2],
              const char *body)
{
    static char text[200000];

    snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n%s\r\n%s", status,
             lines[0], strlen(body), lines[1], body);
    expect_reply(file, line, peer, text);
}

#define LINES(before, after) ((const char *const[2]){before, after})

/* Expect 200 with exactly this body. */
#define EXPECT_OK(peer, body) EXPECT_STATUS(peer, "200 OK", LINES("", ""), body)

/* Expect an error response of the library itself, text/plain, that closes the connection. */
#define EXPECT_REFUSAL(peer, status)                                                    \
    do {                                                                                \
        EXPECT_STATUS(peer, status, LINES(TEXT, "Connection: close\r\n"), status "\n"); \
        PEER_EXPECT_END(peer);                                                          \
    } while (0)

/* Expect the next event, whose data is this target. */
#define EXPECT_OF(name, target, number) expect_of(__FILE__, __LINE__, name, target, number)
#define EXPECT_BODY(text, last)         expect_of(__FILE__, __LINE__, "body", text, last)

static inline void
expect_of(const char *file, int line, const char *name, const char *target, long number)
{
    const struct event *event = expect__event(file, line, name, NULL, number);

    if (strcmp(event->data, target) != 0)
        _ck_assert_failed(file, line, "the target is", "'%s', not '%s'", event->data, target);
}

#endif
