/* SPDX-License-Identifier: MIT
 *
 * What: the client side of HTTP/1.1: a function that writes request heads, and a client that keeps
 * connections to one server, sends calls over them and hands back the responses.
 *
 * Place: programs make a client for each server they call. Uses sockets of lib-sxe, and the parser
 * and the chunks of this library for responses. The writer is pure and may be used alone.
 *
 * Shape: a call takes the connection that became idle last, or opens one, or waits for its turn.
 *
 *                  .--> (one that is IDLE) ----.
 *     send --> waiting --> CONNECTING --> SENDING --> HEAD --> BODY <-> PAUSED --> on_done
 *                                         ^    v                                      |
 *                                         ASKING    IDLE <-- if it can be kept (9112, 9.3)
 *
 *     connect_timeout: CONNECTING    head_timeout: HEAD     stall_timeout: SENDING and BODY, again
 *     idle_timeout: IDLE             total_timeout: from send to on_done      with each progress
 *
 * ASKING is for a body that comes in parts: the program has the next one, and takes its time.
 *
 * Rules: 1 no callback runs inside a call of the program's. 2 on_response comes once at most, then
 * on_body any number of times, then on_done exactly once; after a cancel nothing. 3 the result is
 * about the exchange: 404 is a success. 4 a connection serves one call at a time: no pipelining. 5
 * a call is sent once more if its method is idempotent (RFC 9110, 9.2.2), its connection had served
 * another call, and the connection closed before the first byte of the response, and before
 * on_room; otherwise never, and never a third time. 6 interim responses (100, 103) are skipped;
 * trailers are checked and dropped.
 *
 * Results: -ETIMEDOUT; -EPROTO: the response is not HTTP (`refusal` says why), or an upgrade that
 * the call did not ask for; -ECONNRESET: closed before the response was whole; -EMSGSIZE: the body
 * is longer than body_max; -ENOBUFS: no room for output; -EADDRNOTAVAIL: the name has no address;
 * of a proxy: -EACCES: it wants a user and a password, or refuses those it got (407),
 * -EHOSTUNREACH: it refuses the tunnel; else the -errno of connecting or of the socket. -EACCES
 * also: the address is not public (public_only).
 *
 * TLS: lib-sxe-tls is handed in, as `tls` and `use_tls`, so that programs without it do not link
 * OpenSSL. Each connection then begins with a handshake, which connect_timeout includes.
 *
 * Names: `name` is looked up for each new connection, and its addresses race (sxe-dial.h).
 *
 * Proxies: with `proxy` all connections go to a forward proxy. Without TLS it gets requests with
 * their whole URL (RFC 9112, 3.2.2), so that the Host of each call is the server. With TLS it makes
 * a tunnel (CONNECT) to name or ip and port, and the handshake is with the server; connect_timeout
 * includes both. The proxy gets the name and looks it up. A client is one pool: its connections
 * have its scheme, server, port, TLS and proxy, so a call never gets a connection made for others.
 *
 * Limits: in struct sxe_http_client_config; sxe_http_client_new reserves all memory.
 * sxe_http_client_send refuses more than calls_max calls. The timeouts of sxe_configure hold for
 * these sockets too.
 *
 * Example:
 *     static void on_done(const struct sxe_http_exchange *e, int result)
 *     {
 *         if (result == 0)
 *             printf("%u, %zu bytes\n", e->response->status, e->body.length);
 *     }
 *     ...
 *     struct sxe_http_client_config config = {.name = "localhost", .port = 8000};
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

/* Make a span of a text, without its NUL. The text must outlive the span. */
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

#define SXE_HTTP_CHUNKED UINT64_MAX /* a value of body_length: the length is not known */

struct sxe_http_request_head {
    struct sxe_span method; /* empty means GET */
    struct sxe_span target; /* the target, in the form that the method needs (RFC 9112, 3.2) */
    struct sxe_span host;   /* the value of Host; may be empty */
    const struct sxe_http_pair *fields;
    unsigned fields_number;
    uint64_t body_length; /* length of the body in bytes, or SXE_HTTP_CHUNKED */
};

/* Write a request's head into room. Returns its length in bytes; -EMSGSIZE: more than size, or than
 * 65535; -EINVAL: the head would be invalid HTTP, or another request than was meant: a name is no
 * token; a value has control bytes; the target or Host is invalid; a field is Host, Content-Length
 * or Transfer-Encoding, which this function adds; CONNECT or TRACE has a body; Expect without a
 * body. The caller sends the body next, in chunks (RFC 9112, 7.1) if body_length is
 * SXE_HTTP_CHUNKED. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_request_write(const struct sxe_http_request_head *request,
                                                       char *room, size_t size);

/* ---- The client ---- */

struct sxe_http_client;
struct sxe_tls;

/* A number that is 0 means the default, given in its comment. A timeout of UINT32_MAX: none.
 * sxe_http_client_new copies the texts. One of ip, name and path is needed. */
struct sxe_http_client_config {
    const char *ip; /* an IPv4 or IPv6 address as text */
    uint16_t port;
    const char *name;         /* a name, or an address, to be looked up; instead of ip */
    const char *path;         /* the path of a unix socket, instead of ip and port */
    const char *host;         /* the Host of calls without one; default: ip:port, name:port (without
                                 the port if that is the scheme's own), or localhost */
    uint32_t connections_max; /* how many connections the client may have; 16 */
    /* how many connections without a call are kept; default: all of them */
    uint32_t idle_max;
    uint32_t calls_max;            /* how many calls may be under way or waiting; 64 */
    uint32_t request_max;          /* the most bytes of a head and a copied body after it; 4096 */
    uint32_t body_max;             /* the most bytes of a body that is kept for on_done; 65536 */
    struct sxe_http_limits limits; /* limits of a response's head and trailer; SXE_HTTP_LIMITS */
    uint32_t connect_timeout_ms;   /* how long connecting may take; 3000 */
    uint32_t head_timeout_ms;      /* how long the wait for a response's head may take; 30000 */
    /* how long a call may make no progress in SENDING or BODY; 30000. Bytes of the request that the
     * server's kernel acknowledges are progress, and head_timeout_ms, too, starts again after such
     * progress */
    uint32_t stall_timeout_ms;
    /* how long an idle connection is kept; choose less than the server's timeout; 15000 */
    uint32_t idle_timeout_ms;
    uint32_t total_timeout_ms; /* how long a call as a whole may take; default: none */
    /* a call that is not idempotent, or whose body comes in parts, takes no connection that has
     * been idle for longer than this, because the server may be closing it; default: any */
    uint32_t unsafe_idle_ms;

    /* connect only to addresses of the public internet (sxe_cidr_is_public), so that a URL of a
     * stranger leads to no private server; others are refused with EACCES. Not allowed with path,
     * nor with a proxy, which looks the name up itself */
    bool public_only;

    bool unref; /* sxe_run does not wait for this client's connections, see sxe_unref */

    /* tls: made by sxe_tls_new_client, borrowed; NULL: no TLS. use_tls: the function sxe_tls_use.
     * tls_name: the name or address that the server's certificate must have; NULL: that of `host`,
     * or `ip`. */
    struct sxe_tls *tls;
    int (*use_tls)(struct sxe_tls *tls, SXE *socket, const char *name);
    const char *tls_name;

    /* the URL of a forward proxy, as sxe_http_client_find_proxy returns it:
     * http://user:password@host:port; http:// may be missing; without a port the port is 1080.
     * NULL: none. start_tls: the function sxe_tls_start, needed for a proxy with tls. */
    const char *proxy;
    int (*start_tls)(struct sxe_tls *tls, SXE *socket, const char *name);
};

/* Find the forward proxy that the environment names for a host, as curl does: in http_proxy for the
 * scheme "http", in https_proxy or HTTPS_PROXY for "https", else in all_proxy or ALL_PROXY. NULL:
 * none, or no_proxy or NO_PROXY names the host, or a network of its address. A variable that is
 * empty counts as not set, and so do all variables if the process has more rights than its user.
 * HTTP_PROXY is not read: a CGI server gives that name to the field Proxy of a request. The text is
 * that of getenv; *variable (may be NULL) becomes the variable's name, for errors: the URL may have
 * a password. */
SXE_PUBLIC SXE_MUST_USE const char *sxe_http_client_find_proxy(const char *scheme, const char *host,
                                                               const char **variable);

/* How far a call has come. */
enum sxe_http_stage {
    SXE_HTTP_STAGE_WAITING,    /* the call waits for a connection */
    SXE_HTTP_STAGE_CONNECTING, /* no byte of the call was sent */
    SXE_HTTP_STAGE_SENDING,    /* the request's body is being sent */
    SXE_HTTP_STAGE_HEAD,       /* the request was sent; the response's head is not complete */
    SXE_HTTP_STAGE_BODY        /* the response's body is being read */
};

/* A call as callbacks see it. The struct is valid only inside callbacks. */
struct sxe_http_exchange {
    struct sxe_http_client *client;
    uint64_t handle;
    void *user;
    /* status and fields; NULL: no response came yet. In on_done(-EACCES) and
     * on_done(-EHOSTUNREACH): the response of the proxy */
    const struct sxe_http_parser *response;
    /* the first byte of the head; offsets in the response count from this byte */
    const char *head;
    struct sxe_span body;          /* the whole body, in on_done(0) of a call without
                                      on_body */
    enum sxe_http_refusal refusal; /* why the response was refused, in on_done(-EPROTO) */
    enum sxe_http_stage stage;     /* in on_done: where the call ended */
    bool is_answered;              /* a byte of a response came from the server */
    /* in on_done, if the connection closed: the connection's socket, for sxe_tls_failure; otherwise
     * NULL */
    const SXE *closed;
    /* in on_done, if the proxy or a look-up failed, or if no address of a name is public: one line
     * that names the proxy or the host, and says why the call failed; otherwise NULL */
    const char *failure;
};

struct sxe_http_call {
    /* if host is empty, config.host is sent; a chunked body needs on_room */
    struct sxe_http_request_head request;
    const void *body; /* borrowed until on_done or cancel, unless copy_body */
    bool copy_body;   /* send copies the body; head and body must fit in
                         request_max */
    void *user;

    /* The response's head has arrived. May be NULL. */
    void (*on_response)(const struct sxe_http_exchange *exchange);

    /* The next part of the body has come. If on_body is NULL, the client keeps the body, up to
     * body_max, for on_done. */
    void (*on_body)(const struct sxe_http_exchange *exchange, struct sxe_span part);

    /* For a body in parts, in place of `body`. The function is called when the head was sent, and
     * each time the kernel has taken all of the last part. The program then calls
     * sxe_http_client_write, now or later, once. NULL: `body` is the whole body. */
    void (*on_room)(const struct sxe_http_exchange *exchange);

    /* CONNECT succeeded, or the server switched protocols (RFC 9110, 7.8): the socket now belongs
     * to the program, which sets its callbacks; the bytes after the head are still unread. on_done
     * follows. The socket was one of those that the client registered: call sxe_register for one
     * socket more for each upgrade. */
    void (*on_upgrade)(const struct sxe_http_exchange *exchange, SXE *socket);

    /* The call has ended with 0, or -errno, see Results. Its handle is no longer valid. */
    void (*on_done)(const struct sxe_http_exchange *exchange, int result);
};

/* Make a client: register its sockets and allocate its memory. Call it before sxe_init. NULL with
 * errno EINVAL: an invalid address, name, host or proxy, or a number that is too large;
 * EPROTONOSUPPORT: a proxy that is not reached by http; ENOMEM. The client belongs to this thread's
 * loop. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_client *
sxe_http_client_new_sized(const struct sxe_http_client_config *config, size_t size);
static inline SXE_MUST_USE struct sxe_http_client *
sxe_http_client_new(const struct sxe_http_client_config *config_)
{
    return sxe_http_client_new_sized(config_, sizeof(*config_));
}

/* Close all connections and free the client, without callbacks. Do not call this inside a callback.
 * Call it before sxe_fini, or after sxe_fini but before the next sxe_init. NULL is allowed. */
SXE_PUBLIC void sxe_http_client_delete(struct sxe_http_client *client);

/* Send a call now or as soon as a connection is free, in order. Copies all but a borrowed body.
 * *handle, if not NULL, is for the functions below. 0; otherwise nothing was begun: -ENOBUFS: there
 * are calls_max calls; -EINVAL or -EMSGSIZE as sxe_http_request_write; -EINVAL: no on_done, a
 * chunked body without on_room, an upgrade without on_upgrade, or a field Proxy-Authorization that
 * the server would get through a tunnel; -EMSGSIZE: a copied body does not fit; -errno of opening a
 * connection. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_client_send_sized(struct sxe_http_client *client,
                                                       const struct sxe_http_call *call,
                                                       size_t size, uint64_t *handle);
static inline SXE_MUST_USE int
sxe_http_client_send(struct sxe_http_client *client_, const struct sxe_http_call *call_,
                     uint64_t *handle_)
{
    return sxe_http_client_send_sized(client_, call_, sizeof(*call_), handle_);
}

/* End a call without any more callbacks; its borrowed body is free again. The connection that is
 * serving it closes. 0; -ENOENT: the call is over, or it is another client's: no two clients of a
 * process give out the same handle. */
SXE_PUBLIC int sxe_http_client_cancel(struct sxe_http_client *client, uint64_t handle);

/* After on_room: send the next part of the body, copied; last: this is the last part, which may be
 * empty. 0; -ENOENT: the call is over; -EBUSY: on_room was not called since the last part; -EINVAL:
 * more than body_length, or not all of it at the last part; any other -errno: the part cannot be
 * sent, so cancel the call. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_client_write(struct sxe_http_client *client, uint64_t handle,
                                                  const void *data, size_t length, bool last);

/* After a pause on_body is not called until a resume; once the buffers are full the server has to
 * wait. Meanwhile stall_timeout does not run. 0; -ENOENT: the call is over. */
SXE_PUBLIC int sxe_http_client_pause(struct sxe_http_client *client, uint64_t handle);
SXE_PUBLIC int sxe_http_client_resume(struct sxe_http_client *client, uint64_t handle);

#ifdef __cplusplus
}
#endif

#endif
