/* SPDX-License-Identifier: MIT
 *
 * What: a client of lib-sxe-http, and a server that the test plays: it accepts, reads and answers
 * on raw sockets. Each callback of the client pushes an event to the event queue.
 *
 * Shape: events are "response" (with the status), "body" (its length and bytes) and "done" (the
 * result, and the complete body). An event's object is the call's user: here the text of its
 * target.
 *
 * Example:
 *     serve(NULL, NULL);
 *     get(a);
 *     int peer = take(a);
 *     answer(peer, "ok");
 *     EXPECT_DONE(a, 0, "ok");
 */
#ifndef HTTP_CLIENT_PEER_H
#define HTTP_CLIENT_PEER_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sxe-http-client-private.h"

#include "fake-os.h"
#include "sxe-fixture.h"
#include "test-main.h"

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);

static const char a[] = "/a";
static const char b[] = "/b";
static const char c[] = "/c";
static const char d[] = "/d";

static struct sxe_http_client *client;
static int listener;
static unsigned short port;
static enum sxe_http_refusal refusal; /* the refusal that the last on_done reported */

/* ---- The client ---- */

static inline void
push_response(const struct sxe_http_exchange *e)
{
    event_push("response", e->user, e->response->status);
}

static inline void
push_body(const struct sxe_http_exchange *e, struct sxe_span part)
{
    event_push_data("body", e->user, (long)part.length, part.base, part.length);
}

static inline void
push_done(const struct sxe_http_exchange *e, int result)
{
    event_push_data("done", e->user, result, e->body.base, e->body.length);
    refusal = e->refusal;
    ck_assert_ptr_eq(e->client, client);
    ck_assert(result < 0 || e->response != NULL);
}

/* A GET whose body is collected and passed to on_done. */
static inline struct sxe_http_call
call_of(const char *target)
{
    return (struct sxe_http_call){.request.target = sxe_http_span(target),
                                  .user = (void *)(uintptr_t)target,
                                  .on_done = push_done};
}

static inline uint64_t
must_send(const struct sxe_http_call *call)
{
    uint64_t handle;

    ck_assert_int_eq(sxe_http_client_send(client, call, &handle), 0);
    return handle;
}

static inline uint64_t
get(const char *target)
{
    struct sxe_http_call call = call_of(target);

    return must_send(&call);
}

/* Like get, but with on_response, and the body in parts to on_body. */
static inline uint64_t
get_spans(const char *target)
{
    struct sxe_http_call call = call_of(target);

    call.on_response = push_response;
    call.on_body = push_body;
    return must_send(&call);
}

static inline uint64_t
get_by(const char *method, const char *target)
{
    struct sxe_http_call call = call_of(target);

    call.request.method = sxe_http_span(method);
    return must_send(&call);
}

static inline unsigned
links_in(enum sxe__http_link_state state)
{
    return sxe_pool_get_count(client->links, state);
}

/* ---- The server that the test plays ---- */

/* Listen, make the client and start the loop. `wanted` and `loop` may be NULL. */
static inline void
serve(const struct sxe_http_client_config *wanted, const struct sxe_config *loop)
{
    struct sxe_http_client_config config = {0};
    int window = 65536; /* small, so that unread output fills the kernel's buffers soon */

    if (wanted != NULL)
        config = *wanted;
    listener = peer_listen(&port);
    __real_setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
    config.ip = "127.0.0.1";
    config.port = port;
    config.host = "h";
    client = sxe_http_client_new(&config);
    ck_assert_ptr_nonnull(client);
    plan_start_with(0, loop);
}

static inline void
stop(void)
{
    sxe_http_client_delete(client);
    plan_stop();
    close(listener);
}

/* Read a request without a body from the peer, and nothing after it. */
static inline void
expect_request(int peer, const char *method, const char *target)
{
    char text[256];

    snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: h\r\n\r\n", method, target);
    PEER_EXPECT(peer, text);
}

static inline bool
somebody_connects(void)
{
    struct pollfd fd = {.fd = listener, .events = POLLIN};

    turn(5);
    return poll(&fd, 1, 0) > 0;
}

/* Accept the next connection; it will send each piece at once (TCP_NODELAY). */
static inline int
accept_client(void)
{
    int one = 1;
    int peer;

    for (unsigned i = 0; i < WAIT_TURNS && !somebody_connects(); i++)
        ;
    peer = peer_accept(listener);

    __real_setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return peer;
}

/* Accept a connection and read a GET of this target from it. */
static inline int
take(const char *target)
{
    int peer = accept_client();

    expect_request(peer, "GET", target);
    return peer;
}

static inline void
say(int peer, const char *text)
{
    peer_send(peer, text, strlen(text));
}

static inline void
answer(int peer, const char *body)
{
    char text[256];

    snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    say(peer, text);
}

#define EXPECT_DONE(user, result, text) expect_done(__FILE__, __LINE__, user, result, text)

static inline void
expect_done(const char *file, int line, const char *user, int result, const char *text)
{
    const struct event *event = expect__event(file, line, "done", user, result);

    ck_assert_msg(event->length == strlen(text) && strcmp(event->data, text) == 0,
                  "%s:%d: the body is '%s', not '%s'", file, line, event->data, text);
}

/* Make three connections that become idle in this order. */
static inline void
make_three_idle(int peers[3])
{
    static const char *const names[] = {a, b, c};

    for (unsigned i = 0; i < 3; i++) {
        get(names[i]);
        peers[i] = take(names[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        answer(peers[i], "");
        EXPECT_DONE(names[i], 0, "");
    }
}

static inline void
close_three(const int peers[3])
{
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    turn(3);
}

/* Make one call and answer it, which leaves an idle connection; returns the server's end of it. */
static inline int
idle_peer(void)
{
    int peer;

    get(a);
    peer = take(a);
    answer(peer, "");
    EXPECT_DONE(a, 0, "");
    ck_assert_uint_gt(links_in(SXE__HTTP_LINK_IDLE), 0);
    return peer;
}

#endif
