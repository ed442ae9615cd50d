/* SPDX-License-Identifier: MIT
 *
 * What: the client side of HTTP/1.1. A writer of request heads, and a client that keeps connections
 * to one server, sends calls over them and hands back what is answered.
 *
 * Place: programs make a client for each server they call. Uses sockets of lib-sxe, and the parser
 * and the chunks of this library for responses. The writer is pure and may be used alone.
 *
 * Shape: a call takes the connection that became idle last, or opens one, or waits for its turn.
 *
 *                  .--> (one that is IDLE) ----.
 *     send --> waiting --> CONNECTING --> SENDING --> HEAD --> BODY <-> PAUSED --> on_done
 *                                                                                     |
 *                                         IDLE <--- if it can be kept (RFC 9112, 9.3) '
 *
 *     connect_timeout: CONNECTING    head_timeout: HEAD     stall_timeout: SENDING and BODY, again
 *     idle_timeout: IDLE             total_timeout: from send to on_done      with each progress
 *
 * Rules: 1 no callback runs inside a call of the program's. 2 on_response comes once at most, then
 * on_body any number of times, then on_done exactly once; after a cancel nothing. 3 the result is
 * about the exchange: 404 is a success. 4 one call at a time on a connection: no pipelining.
 * 5 a call is sent a second time if its method is idempotent (RFC 9110, 9.2.2), its connection had
 * served another call, and it closed before the first byte of a response; no other, and not twice.
 * 6 interim responses (100, 103) are skipped; trailers are checked and dropped.
 *
 * Results: -ETIMEDOUT; -EPROTO: not HTTP, `refusal` says why, or an upgrade nobody asked for;
 * -ECONNRESET: closed before the response was whole; -EMSGSIZE: a body of more than body_max;
 * -ENOBUFS: no room for output; else what connecting or the socket gave.
 *
 * TLS: lib-sxe-tls is handed in, as `tls` and `use_tls`, so that programs without it do not link
 * OpenSSL. Each connection then begins with a handshake, whose time is part of head's, or stall's.
 *
 * Limits: in struct sxe_http_client_config; all memory is reserved by new. Above calls_max send
 * refuses. The timeouts that sxe_configure sets hold for these sockets too.
 *
 * Example:
 *     static void on_done(const struct sxe_http_exchange *e, int result)
 *     {
 *         if (result == 0)
 *             printf("%u, %zu bytes\n", e->response->status, e->body.length);
 *     }
 *     ...
 *     struct sxe_http_client_config config = {.ip = "127.0.0.1", .port = 8000};
 *     struct sxe_http_client *client = sxe_http_client_new(&config);
 *     sxe_init();
 *     struct sxe_http_call call = {.request.target = sxe_http_span("/"), .on_done = on_done};
 *     sxe_http_client_send(client, &call, NULL);
 *     sxe_run();
 */
#ifndef SXE_HTTP_CLIENT_H
#define SXE_HTTP_CLIENT_H

#include <errno.h>
#include <string.h>

#include "sxe-http-parse.h"
#include "sxe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Writing requests ---- */

/* The bytes of a text that stays. */
static inline struct sxe_span
sxe_http_span(const char *text)
{
    struct sxe_span span = {text, strlen(text)};

    return span;
}

/* A field to be sent. */
struct sxe_http_pair {
    struct sxe_span name;
    struct sxe_span value;
};

#define SXE_HTTP_CHUNKED UINT64_MAX /* a body_length: not known yet */

struct sxe_http_request_head {
    struct sxe_span method; /* empty: GET */
    struct sxe_span target; /* in the form that the method has (RFC 9112, 3.2) */
    struct sxe_span host;   /* value of Host, may be empty */
    const struct sxe_http_pair *fields;
    unsigned fields_number;
    uint64_t body_length; /* bytes, or SXE_HTTP_CHUNKED */
};

/* Write a request's head into room: its bytes; -EMSGSIZE: they are more than size, or than 65535;
 * -EINVAL: it would not be valid HTTP, or not the request that was meant: a name is no token; a
 * value has control bytes; the target or Host is invalid; Host, Content-Length or Transfer-Encoding
 * is among the fields, which the writer adds itself; CONNECT or TRACE has a body, or there is
 * Expect without one. The body follows, in chunks if that is its length (RFC 9112, 7.1). */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_request_write(const struct sxe_http_request_head *request,
                                                       char *room, size_t size);

/* ---- The client ---- */

struct sxe_http_client;
struct sxe_tls;

/* 0 means the default in each number, given in its comment; UINT32_MAX of a timeout: none. The
 * texts are copied. */
struct sxe_http_client_config {
    const char *ip; /* IPv4 or IPv6 text */
    uint16_t port;
    const char *path;              /* of a unix socket, instead of ip and port */
    const char *host;              /* for calls that name none; default: ip:port, or localhost */
    uint32_t connections_max;      /* 16 */
    uint32_t idle_max;             /* connections kept without a call; default: all */
    uint32_t calls_max;            /* calls under way and waiting; 64 */
    uint32_t request_max;          /* bytes of a head and a copied body after it; 4096 */
    uint32_t body_max;             /* bytes of a body that on_done gets whole; 65536 */
    struct sxe_http_limits limits; /* of a response's head and trailer; SXE_HTTP_LIMITS */
    uint32_t connect_timeout_ms;   /* 3000 */
    uint32_t head_timeout_ms;      /* 30000 */
    uint32_t stall_timeout_ms;     /* 30000 */
    uint32_t idle_timeout_ms;      /* less than the server's; 15000 */
    uint32_t total_timeout_ms;     /* none */

    /* NULL: no TLS. Of sxe_tls_new_client, borrowed; sxe_tls_use; and the name or address that the
     * server's certificate must have, by default that of `host`, or `ip`. */
    struct sxe_tls *tls;
    int (*use_tls)(struct sxe_tls *tls, SXE *socket, const char *name);
    const char *tls_name;
};

/* A call as callbacks see it; valid only inside them. */
struct sxe_http_exchange {
    struct sxe_http_client *client;
    uint64_t handle;
    void *user;
    const struct sxe_http_parser *response; /* status and fields; NULL: there is none yet */
    const char *head;                       /* what the response's offsets are from */
    struct sxe_span body;                   /* in on_done(0) if there is no on_body: all of it */
    enum sxe_http_refusal refusal;          /* in on_done(-EPROTO) */
    const SXE *closed;                      /* in on_done of a call whose connection closed: it, for
                                               sxe_tls_failure; NULL otherwise */
};

struct sxe_http_call {
    struct sxe_http_request_head request; /* host empty: the client's; body not chunked */
    const void *body;                     /* borrowed until on_done or cancel, unless: */
    bool copy_body;                       /* it fits request_max with the head, and is copied */
    void *user;

    /* The head is there. NULL: not told. */
    void (*on_response)(const struct sxe_http_exchange *exchange);

    /* More of the body. NULL: it is kept, up to body_max, for on_done. */
    void (*on_body)(const struct sxe_http_exchange *exchange, struct sxe_span part);

    /* CONNECT succeeded, or the server switched protocols (RFC 9110, 7.8): the socket is the
     * program's now, which sets its callbacks; bytes after the head are unread. on_done follows. It
     * stays one of the sockets that the client registered, so register one more for each. */
    void (*on_upgrade)(const struct sxe_http_exchange *exchange, SXE *socket);

    /* It is over: 0, or -errno, see above. The call's handle means nothing any more. */
    void (*on_done)(const struct sxe_http_exchange *exchange, int result);
};

/* Before sxe_init: a client, its sockets registered and its memory reserved. NULL with errno
 * EINVAL: not an address, not a Host, or too much; ENOMEM. Belongs to this thread's loop. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_client *
sxe_http_client_new(const struct sxe_http_client_config *config);

/* Close all and free it, without callbacks; not inside one. Before sxe_fini, or after it but before
 * another sxe_init. NULL is allowed. */
SXE_PUBLIC void sxe_http_client_delete(struct sxe_http_client *client);

/* Send a call now or as soon as a connection is free, in order. Copies all but a borrowed body.
 * *handle, if not NULL, is for the calls below. 0, or nothing was begun: -ENOBUFS: calls_max are
 * there; -EINVAL or -EMSGSIZE of the writer; -EINVAL: no on_done, a chunked body, or an upgrade is
 * asked for without on_upgrade; -errno of opening a connection. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_client_send(struct sxe_http_client *client,
                                                 const struct sxe_http_call *call,
                                                 uint64_t *handle);

/* No more callbacks of this call; what it borrowed is free. A connection that is serving it closes.
 * 0, or -ENOENT: it is over. */
SXE_PUBLIC int sxe_http_client_cancel(struct sxe_http_client *client, uint64_t handle);

/* Hold back on_body, which makes the server wait in the end; and go on. The stall timeout rests
 * meanwhile. 0, or -ENOENT. */
SXE_PUBLIC int sxe_http_client_pause(struct sxe_http_client *client, uint64_t handle);
SXE_PUBLIC int sxe_http_client_resume(struct sxe_http_client *client, uint64_t handle);

#ifdef __cplusplus
}
#endif

#endif
