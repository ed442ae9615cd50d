/* SPDX-License-Identifier: MIT
 *
 * What: an HTTP/1.1 server (RFC 9110, 9112) whose requests are answered by handlers: C functions
 * that get a request and a response, and answer now or later.
 *
 * Place: over lib-sxe; programs and lib-sxe-lua call it. sxe-http-file.h has a handler for files,
 * sxe-http-router.h finds handlers by path.
 *
 * Shape: an idle connection holds no memory for requests. From the first byte of a request until
 * its reply is sent it has a slot: memory for one request and its reply. The slot that was freed
 * last is used first, so a busy server works in few pages, and untouched slots cost nothing.
 *
 *              first byte      head whole           body whole        reply ended
 *     [ IDLE ] ---------> [ HEAD ] ------> [ BODY ] ---------> [ HANDLING ] ----> [ SENDING ]
 *         ^                   |  no body, or it is whole too: all in one event         |
 *         '-------------------+--------------------------------------------------------'
 *
 *     slot: | request, response | fields of the reply | decoded path | head | body |
 *
 * Each state has a timeout of its own. Bytes after a request wait in the kernel until its reply is
 * on the way, so a connection has one request under way, and replies are in order. A message that
 * can be read in two ways is refused, and the connection ends.
 *
 * Rules: 1 a handler that returns SXE_HTTP_LATER answers from another callback of the same loop. 2
 * Request and response exist until on_done, which is called once, and never inside a call of the
 * program's; or until sxe_http_upgrade or sxe_fini, which end them without it. 3 The library writes
 * Date, Content-Length, Connection and Transfer-Encoding, and omits the body where HEAD, 204, 205
 * or 304 forbid one.
 *
 * Limits: all in struct sxe_http_config. A request above a limit is answered 413, 414, 431 or 503,
 * or it has to wait.
 *
 * Example:
 *     static enum sxe_http_verdict
 *     hello(struct sxe_http_request *request, struct sxe_http_response *response)
 *     {
 *         SXE_UNUSED_PARAMETER(request);
 *         return sxe_http_reply_text(response, 200, "Hello, World!\n");
 *     }
 *     int main(void)
 *     {
 *         struct sxe_http_config config = {.handler = hello};
 *         struct sxe_http *http = sxe_http_new(&config);
 *
 *         if (http == NULL || sxe_init() < 0 || sxe_http_listen(http, "127.0.0.1", 8000) < 0)
 *             return 1;
 *         return sxe_run() < 0;
 *     }
 */
#ifndef SXE_HTTP_H
#define SXE_HTTP_H

#include <errno.h>

#include "sxe-http-forwarded.h"
#include "sxe-http-handler.h"
#include "sxe-http-parse.h"
#include "sxe-http-router.h"
#include "sxe-http-trace.h"
#include "sxe-http-uri.h"
#include "sxe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sxe_cidr_list;
struct sxe_http;

/* Flag of a route: its handler is called before the body, see sxe_http_read. */
#define SXE_HTTP_ROUTE_STREAM 1u

/* ---- The server ---- */

/* The argument of on_reply, when a reply has been sent or given up. A reply whose bytes were all
 * copied counts as sent when lib-sxe has it; other replies when the kernel has them. */
struct sxe_http_summary {
    unsigned status;      /* the status of the reply; 0: no reply was sent */
    uint64_t body_length; /* bytes of the reply's body that were sent; 0 for HEAD */
    uint64_t duration_ns; /* time since the event that brought the request's first byte */
    int result;           /* 0; or -errno: the connection ended before the reply did */
};

/* The field in which a trusted proxy names the client. Only one of the two fields is used, and the
 * other is ignored: a proxy that sets one field passes on what clients put into the other. */
enum sxe_http_forwarding {
    SXE_HTTP_FORWARDING_NONE,
    SXE_HTTP_FORWARDING_FORWARDED,  /* Forwarded (RFC 7239) */
    SXE_HTTP_FORWARDING_X_FORWARDED /* X-Forwarded-For, with X-Forwarded-Proto and -Host */
};

/* The body of replies with this status that have no other body: replies of sxe_http_reply_status,
 * and refusals of the library. Type and body are borrowed until sxe_http_delete. */
struct sxe_http_page {
    unsigned status;
    const char *type; /* Content-Type */
    const void *body;
    size_t length;
};

/* In each field 0 means the default, which its comment gives; UINT32_MAX means no limit, where that
 * is allowed. */
struct sxe_http_config {
    /* handles requests without a route; NULL: such requests are answered 404 */
    sxe_http_handler handler;
    const struct sxe_http_router *router; /* borrowed; NULL: the handler gets every request */
    /* the value of request->user when the handler is called */
    void *user;
    bool stream;     /* the handler is called before the body has arrived, see sxe_http_read */
    bool half_close; /* a request goes on after its client closed or half-closed; false: the
                        client counts as gone, see sxe_http_allow_half_close */
    /* how many connections may be open, those of sxe_http_upgrade included; one more closes the
     * connection that has waited longest; 10000 */
    uint32_t connections;
    /* one more may also close a connection that waits for the body of a request: for a server whose
     * clients send short bodies, with their heads */
    bool body_gives_way;
    uint32_t requests_max; /* after so many requests a connection is closed; 1000000 */
    /* how many connections a client address may have, of IPv6 a /64; 1000. This machine's own
     * addresses are not counted */
    uint32_t address_max;
    struct sxe_http_shares *shares; /* see sxe_http_shares_new; borrowed; NULL: one process */
    unsigned share;                 /* the number of this process's share, counted from 0 */
    /* limits of a head; 8192 bytes of first line, 16384 in all, 100 fields */
    struct sxe_http_limits head;
    uint32_t body_max; /* the most bytes of a body that is read as a whole; 1 MiB */
    /* the most bytes that all incomplete bodies may have together, kept by the server or by
     * handlers, see sxe_http_keep_body; 256 MiB */
    size_t body_memory_max;
    uint32_t fields_max; /* the most bytes of a reply's fields; 8192 */
    /* the longest time from accept to the first byte, and from there to a complete head; 10000 */
    uint32_t head_timeout_ms;
    /* a body must make progress in each period of this length; time in which a handler pauses the
     * body does not count; 10000 */
    uint32_t body_timeout_ms;
    uint32_t body_rate_min;   /* how many bytes a second are progress; 500 */
    uint32_t idle_timeout_ms; /* the longest time between requests; 60000 */
    /* the longest time from LATER to the reply's first byte, less the waits for the body; default:
     * no limit */
    uint32_t handler_timeout_ms;
    /* lines that each reply gets, each with CR LF, "Server: x\r\n"; NULL: none */
    const char *fields;
    const struct sxe_http_page *pages;   /* the bodies of errors; borrowed; NULL: none */
    size_t pages_number;                 /* how many pages there are */
    const struct sxe_cidr_list *proxies; /* peers whose connections begin with a PROXY header;
                                            borrowed */
    /* peers, by the address of their socket, whose request ids and traces are used; borrowed; NULL:
     * no peer */
    const struct sxe_cidr_list *trusted;
    /* which field of trusted peers and proxies names the client, see sxe_http_peer */
    enum sxe_http_forwarding forwarding;
    /* the name of a field, such as "X-Request-Id": each reply, and each line that a handler logs,
     * gets the request's id; borrowed; NULL: there are no ids */
    const char *request_id;
    bool trace; /* each request is part of a trace, see sxe_http_trace */
    /* returns 64 random bits, for ids; NULL: the system's random bits are used */
    uint64_t (*random)(void);
    void (*on_reply)(struct sxe_http_request *request, const struct sxe_http_summary *summary);
    sxe_http_handler unrouted; /* called if the router has no route for the path or its method;
                                  NULL: handler (or 404), or sxe_http_reply_unrouted */
};

/* Call this before sxe_init, which reserves the sockets; this function allocates all other memory
 * of the server. Copies the configuration. If no WRITING timeout is configured, this function sets
 * one of 30 s with sxe_configure. NULL with errno ENOMEM, or EINVAL: a number is out of range. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http *sxe_http_new_sized(const struct sxe_http_config *config,
                                                            size_t size);
static inline SXE_MUST_USE struct sxe_http *
sxe_http_new(const struct sxe_http_config *config_)
{
    return sxe_http_new_sized(config_, sizeof(*config_));
}

/* Call this after sxe_fini. NULL is allowed. */
SXE_PUBLIC void sxe_http_delete(struct sxe_http *http);

/* Make several processes that serve the same clients hold one address_max together; their parent
 * calls it before it forks. Each process counts in a share of its own and adds up all shares,
 * without locks: if connections come at the same moment, one too many may be refused, but never is
 * one too many accepted. connections: the largest config.connections of the processes. NULL with
 * errno. */
SXE_PUBLIC SXE_MUST_USE struct sxe_http_shares *sxe_http_shares_new(unsigned processes,
                                                                    uint32_t connections);
/* Delete the shares; NULL is allowed. */
SXE_PUBLIC void sxe_http_shares_delete(struct sxe_http_shares *shares);

/* For the parent, after the process with that share has ended: its connections no longer count. */
SXE_PUBLIC void sxe_http_shares_clear(struct sxe_http_shares *shares, unsigned share);

/* Listen; a server may have any number of listeners. 0, or -errno as from sxe_listen. */
SXE_PUBLIC SXE_RETURN sxe_http_listen(struct sxe_http *http, const char *ip, unsigned short port);
SXE_PUBLIC SXE_RETURN sxe_http_listen_unix(struct sxe_http *http, const char *path);

/* The port of the last sxe_http_listen: if that call was given port 0, the port that the system
 * chose; 0: nothing listens. */
SXE_PUBLIC unsigned short sxe_http_port(const struct sxe_http *http);

/* The socket of the last sxe_http_listen, for sxe_tls_serve; NULL: nothing listens. */
SXE_PUBLIC SXE *sxe_http_listener(const struct sxe_http *http);

#define SXE_HTTP_DONES_MAX 4

/* Accept nothing more; close connections without a whole head at once, and other connections when
 * their reply is sent. done (may be NULL) is called when no connection is left but those of
 * sxe_http_upgrade, perhaps before this function returns. If sxe_http_stop or sxe_http_drain is
 * called again before that, the functions of all calls are called, in the order of the calls: each
 * function only once, even if it was given twice, and at most SXE_HTTP_DONES_MAX of them. The last
 * function may delete the server. */
SXE_PUBLIC void sxe_http_stop(struct sxe_http *http, void (*done)(struct sxe_http *));

/* After sxe_http_stop: whether all replies were sent, so that the connections that are left only
 * wait for their clients to close, at most 5 seconds. This function looks at each connection. */
SXE_PUBLIC bool sxe_http_all_is_sent(const struct sxe_http *http);

/* Call this when the time for the end is over: it resets the connections whose reply has begun and
 * is not sent completely. An orderly close would tell an HTTP/1.0 client that half of a reply is
 * the whole reply. */
SXE_PUBLIC void sxe_http_break_off(struct sxe_http *http);

/* Accept nothing more, and close each connection with its next reply: for a server that is being
 * replaced by another one. Idle connections may make one last request, or time out; sxe_http_stop
 * may follow. sxe_http_stop says when done is called. */
SXE_PUBLIC void sxe_http_drain(struct sxe_http *http, void (*done)(struct sxe_http *));

/* Return the bytes of address space that the server has, and print them like sxe_plan_print; out
 * may be NULL. */
SXE_PUBLIC size_t sxe_http_plan_print(const struct sxe_http *http, FILE *out);

/* ---- The request ---- */

struct sxe_http_request {
    struct sxe_http_parser head; /* ro: method, version and fields; their offsets count from data */
    const char *data;            /* ro: the first byte of the head */
    struct sxe_span body;        /* ro: the whole body; empty if the body is streamed */
    struct sxe_http_match match; /* ro: the route, and its parameters */
    struct sxe_span raw_path; /* ro: the path as the client sent it, for logs; "*" for OPTIONS * */
    /* ro: the path in its normal form, see sxe-http-uri.h; "*" for OPTIONS * */
    struct sxe_span path;
    struct sxe_span query; /* ro: the text after the ?, as it came; base NULL: there is no ? */
    void *user;            /* rw: at first the user pointer of the route, or of the configuration */
    struct sxe_http *http; /* ro */
    /* rw: false at first; a handler sets it to say that sxe_http_user has the user's name */
    bool is_authenticated;
    bool is_traced; /* ro: config.trace, see sxe_http_trace */
};
/* The request's method. */
static inline enum sxe_http_method
sxe_http_method(const struct sxe_http_request *request)
{
    return (enum sxe_http_method)request->head.method;
}

/* The method and the target as they came. */
SXE_PUBLIC struct sxe_span sxe_http_method_text(const struct sxe_http_request *request);
SXE_PUBLIC struct sxe_span sxe_http_target(const struct sxe_http_request *request);

/* Host and port of the request: those that a trusted proxy forwards, see sxe_http_peer; otherwise
 * those of the target; otherwise those of Host (RFC 9112, 3.2.2). base NULL: the request, of
 * HTTP/1.0, has neither. */
SXE_PUBLIC struct sxe_span sxe_http_authority(const struct sxe_http_request *request);

/* request->path decoded; the first call decodes it. base NULL: the path has an escaped slash, a
 * backslash or a NUL, and would be another path when decoded; a handler that accepts such a path
 * uses request->path. */
SXE_PUBLIC struct sxe_span sxe_http_decoded_path(struct sxe_http_request *request);

/* The first value of a field; base NULL: there is none. Well-known names need no search. */
SXE_PUBLIC struct sxe_span sxe_http_field_value(const struct sxe_http_request *request,
                                                const char *name);
static inline struct sxe_span
sxe_http_known_value(const struct sxe_http_request *request, enum sxe_http_field_id id)
{
    const struct sxe_http_field *field = sxe_http_known(&request->head, id);
    struct sxe_span value = {NULL, 0};

    if (field != NULL) {
        value.base = request->data + field->value;
        value.length = field->value_length;
    }
    return value;
}

/* Decode a parameter of the query into room, with a final NUL. Returns its length; -ENOENT: there
 * is no parameter of that name; -ENOBUFS: no room. */
SXE_PUBLIC ssize_t sxe_http_query_value(const struct sxe_http_request *request, const char *name,
                                        char *room, size_t size);

/* Like sxe_http_query_value, for a {name} of the route. -EINVAL, to be answered by 400: the value
 * has an escaped slash, a backslash or a NUL, or is "." or "..". sxe_http_match_value returns it
 * undecoded. */
SXE_PUBLIC ssize_t sxe_http_parameter(const struct sxe_http_request *request, const char *name,
                                      char *room, size_t size);

#define SXE_HTTP_ID_MAX 128 /* the most bytes of a request's id, without its final NUL */

/* The request's id: the value of the field config.request_id, if a trusted peer sent the field once
 * and the value has 1 to SXE_HTTP_ID_MAX visible characters of ASCII without " ' \ < > &; otherwise
 * 16 hexadecimal digits, made by the first call. Valid as long as the request. */
SXE_PUBLIC const char *sxe_http_request_id(const struct sxe_http_request *request);

/* With config.trace, sxe_http_trace returns the trace that a trusted peer sent in one valid
 * traceparent, or a new one that is sampled, with a new span_id for this request. Valid as long as
 * the request. NULL: config.trace is false. sxe_http_trace_state returns the tracestate that goes
 * with it; base NULL: none. */
SXE_PUBLIC const struct sxe_http_trace *sxe_http_trace(const struct sxe_http_request *request);
SXE_PUBLIC struct sxe_span sxe_http_trace_state(const struct sxe_http_request *request);

#define SXE_HTTP_BASIC_MAX 510 /* the most bytes of a user's name, a colon and a password */

struct sxe_http_basic {
    struct sxe_span user;
    struct sxe_span password;
    char room[SXE_HTTP_BASIC_MAX]; /* private */
};

/* Decode user and password of "Authorization: Basic" (RFC 7617) into basic, unchecked. 0; -ENOENT:
 * the request has no Authorization, or one of another scheme; answer 401 with WWW-Authenticate.
 * -EINVAL: the field is malformed, too long, or there twice; answer 400. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_basic(const struct sxe_http_request *request,
                                           struct sxe_http_basic *basic);

/* The name of the user whose credentials a handler has checked, which then set
 * request->is_authenticated. base NULL: there is no such user. */
SXE_PUBLIC struct sxe_span sxe_http_user(const struct sxe_http_request *request,
                                         struct sxe_http_basic *basic);

/* Store the client's address, from the PROXY header if there was one. Returns its length; 0: the
 * client is at a unix socket.
 *
 * With config.forwarding, that address may be a proxy's: if it, or the unix socket, is in
 * config.trusted, the list of addresses in the forwarding field is walked from its end. Addresses
 * that are trusted are proxies, too; the first one that is not trusted is the client. If all are
 * trusted, the client is the first address of the list. The walk stops before an element that is
 * invalid, and at an element that hides its address: then the client is the proxy that sent this
 * element.
 */
SXE_PUBLIC socklen_t sxe_http_peer(const struct sxe_http_request *request,
                                   struct sockaddr_storage *address);

/* The address of sxe_http_peer as text, valid until the next call; "": the client is at a unix
 * socket. */
SXE_PUBLIC const char *sxe_http_peer_ip(const struct sxe_http_request *request);

/* The scheme that the client used, "http" or "https", as told by the trusted proxy that forwarded
 * the client's address, or by the web server that sent the request by FastCGI. "": that proxy tells
 * no scheme, or there is no trusted proxy; then the scheme is that of the socket. */
SXE_PUBLIC const char *sxe_http_forwarded_scheme(const struct sxe_http_request *request);

/* The connection's socket, to ask about it, for example by sxe_tls_peer_subject. Do not read,
 * write, pause or close it. */
SXE_PUBLIC SXE *sxe_http_socket(const struct sxe_http_request *request);

/* Read a streamed body (config.stream, or a route's SXE_HTTP_ROUTE_STREAM): on_body gets the body's
 * bytes as they come, until `last`. `part` is valid only inside on_body. Sends 100 (Continue) if
 * the client waits for it. The reply may end before the body does; the rest is then dropped, or the
 * connection closed. */
typedef void (*sxe_http_on_body)(struct sxe_http_request *request,
                                 struct sxe_http_response *response, struct sxe_span part,
                                 bool last);
SXE_PUBLIC void sxe_http_read(struct sxe_http_request *request, sxe_http_on_body on_body);

/* Back-pressure: after sxe_http_pause on_body is not called until sxe_http_resume. Both may be
 * called inside on_body. */
SXE_PUBLIC void sxe_http_pause(struct sxe_http_request *request);
SXE_PUBLIC void sxe_http_resume(struct sxe_http_request *request);

/* For a handler that keeps the parts of a body until it is whole: add bytes to the count that
 * body_memory_max limits. They count until sxe_http_release_body, which releases all of them, or
 * until on_done. -ENOBUFS: the limit is reached and nothing was counted; answer 503. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_keep_body(struct sxe_http_request *request, size_t bytes);
SXE_PUBLIC void sxe_http_release_body(struct sxe_http_request *request);

/* ---- The response ---- A handler calls either one of sxe_http_end..., or sxe_http_begin, then any
 * number of sxe_http_write..., then one of sxe_http_end.... All return 0 or -errno:
 *
 *     -EINVAL    a bad argument, or a call out of order          nothing was taken
 *     -ENOBUFS   no room: see output_max of struct sxe_config    nothing was taken
 *     -ENOTCONN  the client is gone                              on_done comes, with the reason */

struct sxe_http_response {
    void *user; /* rw: NULL at first */
    /* rw: called with 0 when the reply no longer needs the program's memory, because the kernel has
     * it; with -errno when the client is gone; or, when the library itself answered, with one of
     * these: -ETIMEDOUT after a timeout (408 or 503), -EPROTO after a bad body (400 or 413).
     * Request and response are then reused. Only sxe_http_upgrade and sxe_fini end requests without
     * on_done. */
    void (*on_done)(struct sxe_http_request *request, struct sxe_http_response *response,
                    int result);
};

/* Set the status, 200 to 599. Without this call it is 200. */
SXE_PUBLIC int sxe_http_set_status(struct sxe_http_response *response, unsigned status);

/* Add a field. The name is a token, and not one of those in rule 3; the value has no control bytes
 * (RFC 9110, 5.5). Adding Upgrade also adds "Connection: upgrade" (RFC 9110, 7.8). */
SXE_PUBLIC int sxe_http_add_field(struct sxe_http_response *response, const char *name,
                                  const char *value);
SXE_PUBLIC int sxe_http_add_field_span(struct sxe_http_response *response, const char *name,
                                       struct sxe_span value);

/* The value of the first unsent field with that name, valid until a field is added or removed; base
 * NULL: there is no such field. */
SXE_PUBLIC struct sxe_span sxe_http_added_field(const struct sxe_http_response *response,
                                                const char *name);

/* Remove the unsent fields with that name; NULL: all unsent fields. */
SXE_PUBLIC void sxe_http_remove_field(struct sxe_http_response *response, const char *name);

/* Close the connection after this reply. */
SXE_PUBLIC void sxe_http_close(struct sxe_http_response *response);

/* Let this request go on after its client closes or half-closes (with config.half_close all
 * requests do): for a reply that comes soon, or a client that is known to half-close and read on.
 * Otherwise, if the client half-closes before a handler that returned LATER has finished its reply,
 * the client counts as gone: the connection ends, and on_done gets -ECONNRESET. */
SXE_PUBLIC void sxe_http_allow_half_close(struct sxe_http_response *response);

/* Abandon the reply: reset the connection, so that half a reply does not look whole. */
SXE_PUBLIC void sxe_http_abort(struct sxe_http_response *response);

/* End the reply with its whole body or, after sxe_http_begin, with the last part. Copies the bytes:
 * output_max (1 MiB) at most. */
SXE_PUBLIC int sxe_http_end(struct sxe_http_response *response, const void *body, size_t length);

/* End the reply with a body of any length, borrowed until on_done. */
SXE_PUBLIC int sxe_http_end_borrowed(struct sxe_http_response *response, const void *body,
                                     size_t length);

/* End the reply with a part of a file, borrowed until on_done. If the file is shorter, the
 * connection is reset. -EBADF: fd is negative; -EINVAL: offset is negative. */
SXE_PUBLIC int sxe_http_end_file(struct sxe_http_response *response, int fd, off_t offset,
                                 size_t length);

#define SXE_HTTP_LENGTH_UNKNOWN UINT64_MAX
/* Send the status and the fields. A body of this length follows, or a body of unknown length:
 * chunked, or in HTTP/1.0 until the connection closes. Writing more bytes than the length returns
 * -EINVAL; ending before the length is reached breaks the connection. Call sxe_http_read first if
 * the body of the request will be read: while no handler reads it, and more than 64 KiB of it are
 * to come, the reply says `Connection: close`. */
SXE_PUBLIC int sxe_http_begin(struct sxe_http_response *response, uint64_t length);
SXE_PUBLIC int sxe_http_write(struct sxe_http_response *response, const void *data,
                              size_t length); /* copies the bytes */
SXE_PUBLIC int sxe_http_write_file(struct sxe_http_response *response, int fd, off_t offset,
                                   size_t length); /* borrows the bytes until on_done */

/* Call on_room once, after this function returned, when the kernel has all written bytes. -EBUSY:
 * another on_room is pending. Not called if the reply ends first. */
SXE_PUBLIC int sxe_http_on_room(struct sxe_http_response *response,
                                void (*on_room)(struct sxe_http_response *response));

/* Add a field to be sent after a chunked body; call it before the reply's end. Dropped if the reply
 * is not chunked. Not for fields that a recipient needs before the body (RFC 9110, 6.5.1). */
SXE_PUBLIC int sxe_http_add_trailer(struct sxe_http_response *response, const char *name,
                                    const char *value);

/* Answer 101, with the fields that were added, and hand the connection to the caller, with these
 * callbacks and without half-close. Until it closes, it is one of config.connections, and counts
 * for its client's address_max. on_read gets bytes after the request in this turn of the loop.
 * NULL: the request's Upgrade does not name that protocol, the request's body is not whole, or 101
 * cannot be sent; then answer the request. Otherwise request and response are gone, and there is no
 * on_done. */
SXE_PUBLIC SXE *sxe_http_upgrade(struct sxe_http_response *response, const char *protocol,
                                 SXE_IN_EVENT_READ on_read, SXE_IN_EVENT_CLOSE on_close,
                                 void *user);

/* Reply with status, Content-Type (may be NULL) and body (copied) in one call. Always returns
 * SXE_HTTP_DONE: if the reply cannot be sent, 500 is sent in its place. */
SXE_PUBLIC enum sxe_http_verdict sxe_http_reply(struct sxe_http_response *response, unsigned status,
                                                const char *type, const void *body, size_t length);
SXE_PUBLIC enum sxe_http_verdict sxe_http_reply_text(struct sxe_http_response *response,
                                                     unsigned status, const char *text);

/* Reply with the page of config.pages for that status. If there is none, or no room for it, the
 * body is a text such as "404 Not Found". */
SXE_PUBLIC enum sxe_http_verdict sxe_http_reply_status(struct sxe_http_response *response,
                                                       unsigned status);

/* Answer a request that has no route as the router's match says: 404; 405, or to OPTIONS 204, with
 * Allow. */
SXE_PUBLIC enum sxe_http_verdict sxe_http_reply_unrouted(struct sxe_http_request *request,
                                                         struct sxe_http_response *response);

/* The standard text of a status, "Not Found"; "" for a number without a name. */
SXE_PUBLIC const char *sxe_http_reason(unsigned status);

/* Get the response of a request, or the request of a response. */
SXE_PUBLIC struct sxe_http_response *sxe_http_response_of(struct sxe_http_request *request);
SXE_PUBLIC struct sxe_http_request *sxe_http_request_of(struct sxe_http_response *response);

#ifdef __cplusplus
}
#endif

#endif
