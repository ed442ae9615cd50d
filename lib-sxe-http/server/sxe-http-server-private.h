/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the server share: the server, a connection, and a slot.
 * Place: included by those files only, in reading order:
 *
 *     sxe-http-server.c         new, listen, stop, delete; the plan
 *     sxe-http-accept.c         connections come, and others make room for them
 *     sxe-http-client-address.c which client a connection or a request comes from
 *     sxe-http-client-limit.c   how many connections an address has
 *     sxe-http-session.c        bytes of a connection -> requests -> handlers, and their order
 *     sxe-http-close.c          requests and connections end
 *     sxe-http-body.c           the body of a request
 *     sxe-http-slot.c           memory for one request and its reply
 *     sxe-http-request.c        what handlers ask of a request
 *     sxe-http-basic.c          its user and password
 *     sxe-http-identity.c       its id, and its trace
 *     sxe-http-response.c       the status of a reply, and replies that are whole
 *     sxe-http-reply-fields.c   the fields that a handler adds
 *     sxe-http-reply-head.c     the head of a reply, mostly a copy of the last head
 *     sxe-http-stream.c         replies in parts, files, upgrades
 *     sxe-http-log.c            the level of log lines
 *
 * A request that came by FastCGI has a connection of its own: the other end of a pair of sockets
 * belongs to fastcgi/sxe-http-fastcgi-request.c.
 *
 * Calls go downwards: no file calls a file that calls it, directly or through others. A lower file
 * returns its outcome, and sxe-http-session.c decides what follows.
 *
 * Shape: a slot is one piece of address space, whose pages exist once they are touched.
 *
 *     [ struct sxe__http_slot | the request's fields | the reply's fields | path | head | body ]
 *       slot                                           reply_at             path_at head_at
 */
#ifndef SXE_HTTP_SERVER_PRIVATE_H
#define SXE_HTTP_SERVER_PRIVATE_H

#define SXE_LOG_CONTROL sxe__http_log

#include <netinet/in.h>

#include "sxe-http-chunk.h"
#include "sxe-http-date.h"
#include "sxe-http.h"
#include "sxe-io.h"
#include "sxe-probe-internal.h"

extern struct sxe_log_control sxe__http_log;

#define SXE__HTTP_LISTENERS 8
#define SXE__HTTP_SPARE     16 /* extra sockets, to refuse clients when all others are taken */
/* how many refused clients may still hold a socket; one more socket accepts the next client */
#define SXE__HTTP_REFUSED_MAX (SXE__HTTP_SPARE - 1)
/* how many bytes of an unwanted body are read and dropped */
#define SXE__HTTP_DISCARD_MAX (64u * 1024)

/* The states of a connection in the pool: each has a timeout. The phase says what happens with the
 * connection's bytes. */
enum sxe__http_state {
    SXE__HTTP_FREE,
    SXE__HTTP_FRESH,    /* no byte of a request has come yet */
    SXE__HTTP_IDLE,     /* between requests */
    SXE__HTTP_HEAD,     /* the head is not complete */
    SXE__HTTP_BODY,     /* the body is not complete */
    SXE__HTTP_HANDLING, /* a handler answers later, or the body waits for the handler */
    SXE__HTTP_SENDING,  /* the peer must read the reply; lib-sxe has the timeout */
    SXE__HTTP_CLOSING,  /* after the last reply: the peer must read it, and should close */
    SXE__HTTP_REFUSED,  /* like CLOSING, for a client that had address_max connections already */
    SXE__HTTP_UPGRADED, /* the program's, until it closes: it keeps its place, and counts */
    SXE__HTTP_STATES
};

enum sxe__http_phase {
    SXE__HTTP_READ_PROXY,
    SXE__HTTP_READ_HEAD,
    SXE__HTTP_READ_BODY,
    SXE__HTTP_REPLY, /* the body has arrived, and the reply is not complete */
    SXE__HTTP_DRAIN, /* the reply has ended: borrowed memory waits for the peer */
    SXE__HTTP_OVER   /* the connection is closed, and ignores further events */
};

/* A connection and the FastCGI request that it serves know this of each other. Either may end
 * first; it then takes itself out of this. */
struct sxe__http_bridge {
    struct sxe__http_connection *connection; /* NULL: the connection is gone */
    bool is_whole; /* the reply is complete, and its bytes are sent or on their way */
};

struct sxe__http_connection {
    struct sxe_http *http;
    SXE *sxe;
    struct sxe__http_slot *slot; /* NULL: no request has begun */
    /* the client's key in http->clients; 0: the connection is not counted */
    uint64_t address;
    /* how many bytes of the body came in its present period, see has_made_progress */
    uint64_t window;
    uint32_t requests;
    /* in an event that brings bytes of a chunked body: how many of the received bytes are taken */
    uint32_t taken;
    uint8_t phase;
    /* a handler or callback is running; whoever called it looks at the connection afterwards */
    bool is_inside;
    bool is_waiting; /* paused until the kernel took the output */
    bool is_trusted; /* the socket's peer is one of config.trusted */
    /* each request has a client of its own: the peer, or the client that its PROXY header names, is
     * a trusted proxy; only with config.forwarding */
    bool is_forwarding;
    /* for FastCGI: replies have a Status line, and no lines and chunks of HTTP's own framing */
    bool is_cgi;
    bool is_https;                   /* with is_cgi: the client spoke TLS to the web server */
    struct sxe__http_bridge *bridge; /* with is_cgi, until the FastCGI request ends; or NULL */
    uint8_t peer_length; /* how many bytes `peer` has, from the PROXY header or the socket */
    unsigned char peer[28];
    struct sxe_io_follower follower; /* of an UPGRADED connection; likewise the next member */
    uint64_t handle;
};

enum sxe__http_progress {
    SXE__HTTP_UNANSWERED,
    SXE__HTTP_BEGUN, /* the head of the reply was sent */
    SXE__HTTP_ENDED
};

struct sxe__http_slot {
    struct sxe_http_request request;
    struct sxe__http_connection *connection;
    uint32_t most;  /* the largest `used` since the slot was taken */
    uint32_t index; /* index of the slot */

    /* Results of parsing the last head in this slot, from any client. They stay right for a head
     * with the same bytes. */
    uint32_t head_length;  /* 0: do not compare the next head with this one */
    bool is_body_streamed; /* the body is shown in parts */
    sxe_http_handler handler;
    void *user;

    /* These members are set where they begin to be used. */
    SXE_TIME since;
    uint64_t body_left;   /* bytes to come of a body of BODY_LENGTH */
    uint64_t length_left; /* bytes to come of a reply that was begun with a length */
    /* time spent in BODY in the present period, without the present stay in BODY. A period is
     * body_timeout_ms in BODY, in which a minimum of bytes of the body must come. */
    SXE_TIME body_ns;
    SXE_TIME handler_ns;  /* time spent in earlier stays in HANDLING */
    uint32_t path_length; /* length of the decoded path, if the path was decoded */
    struct sxe_http_chunks chunks;
    char id[SXE_HTTP_ID_MAX + 1]; /* valid if has_id */
    struct sxe_http_trace trace;  /* valid if has_trace */
    uint32_t trace_state_length;
    char trace_state[SXE_HTTP_TRACE_STATE_MAX];
    struct sxe_span forwarded_host; /* valid if is_forwarded; base NULL: the proxy told no host */
    const char *forwarded_scheme;   /* valid if is_forwarded; "": the scheme is not known */
    /* length of the client's address; 0: the client is the connection's peer */
    uint8_t client_length;
    unsigned char client[28];

    /* The members from here on are cleared for each request, so they are few; see
     * sxe__http_slot_reset. */
    struct sxe_http_response response;

    /* These members are about the body of the request. */
    sxe_http_on_body on_body;
    uint32_t body_dropped; /* how many bytes came after the reply had ended */
    /* how many bytes of an incomplete body are kept, by the library or by the handler */
    uint32_t body_kept;
    uint32_t used; /* how many bytes are used from head_at on: the head, and a body that is kept */
    bool is_body_whole; /* the whole body has arrived */
    bool is_body_shown; /* the handler got the last part */
    bool is_body_paused;
    bool is_continue_due; /* the client waits for 100 (Continue) */

    /* These members are about the reply. */
    uint8_t progress;
    bool close; /* close the connection after the reply */
    bool is_chunked;
    bool is_lending; /* the kernel still reads memory or a file that the handler lent */
    /* the request ends only when the kernel has the reply's last byte, or when the socket closes */
    bool is_sending;
    bool offers_upgrade;
    bool is_path_made;
    bool has_id;
    bool has_trace;
    bool is_forwarded; /* sxe__http_forward was called */
    bool half_close;   /* the request goes on after the client half-closes */
    uint16_t status;
    int outcome; /* if the library answered instead of the handler: the -errno that on_done gets */
    uint32_t fields_used;
    uint64_t body_sent;
    void (*on_room)(struct sxe_http_response *response);

    /* The members to clear end here. */
    struct sxe_http_field fields[];
};

/* The values that the last head was composed from: equal values give the same head. */
struct sxe__http_last_head {
    uint64_t until_ns; /* until when the Date of this head is right; 0: no head is kept */
    uint64_t length;
    uint32_t fields_at; /* where the lines of the reply's own fields begin */
    uint32_t fields_used;
    uint32_t used; /* how many bytes the whole head has */
    uint16_t status;
    uint8_t minor;
    bool close;
    bool is_chunked;
    bool offers_upgrade;
    bool is_cgi;
    bool has_type;
    char type[64];
};

struct sxe_http {
    struct sxe_http_config config;
    struct sxe__http_connection *connections; /* the array of a pool */

    char *slots;
    size_t slot_size;
    size_t reply_at;
    size_t path_at;
    size_t head_at;
    uint32_t *free_slots; /* a stack of the indexes of free slots */
    uint32_t free_count;
    size_t resident;    /* how many bytes of memory free slots keep */
    uint32_t *touched;  /* for each slot, how many bytes of memory it has */
    size_t body_memory; /* how many bytes of incomplete bodies are kept, in all slots */

    struct sxe__http_clients *clients; /* NULL: connections of clients are not counted */
    struct sxe_http_date_cache date;
    struct sxe__http_last_head last;
    char *head; /* the bytes of the last head */
    size_t head_size;
    /* the bytes that follow the date in each head: the end of the Date line, and config.fields */
    char *common;
    uint32_t common_length;
    uint64_t random[32]; /* random bits for ids */
    unsigned random_left;

    /* a ring of the handles of refused clients */
    uint64_t refused[SXE__HTTP_REFUSED_MAX];
    unsigned refused_turn;
    SXE *listeners[SXE__HTTP_LISTENERS];
    unsigned listener_count;
    /* if more bytes than this are unsent, the connection's next request waits */
    uint32_t unsent_max;
    bool is_draining;       /* each reply is the last one of its connection */
    bool is_stopping;       /* the server drains, and connections without a request are closed */
    void (*resume)(SXE *s); /* sxe__http_resume, a pointer for the files below the session */
    /* FastCGI: NULL, or what sxe_http_fastcgi_new set; pointers, for the files below it */
    struct sxe__fastcgi *fastcgi;
    void (*fastcgi_end)(struct sxe_http *http);    /* the server drains or stops */
    void (*fastcgi_delete)(struct sxe_http *http); /* the server is deleted */
    unsigned fastcgi_connections;                  /* how many connections speak FastCGI */
    /* the functions that sxe_http_drain and sxe_http_stop were given */
    void (*dones[SXE_HTTP_DONES_MAX])(struct sxe_http *http);
    unsigned dones_number;
    char ip[INET6_ADDRSTRLEN]; /* the last result of sxe_http_peer_ip */
};

#define SXE__HTTP_SLOT_OF_REQUEST(r)                                                          \
    ((struct sxe__http_slot *)(void *)((char *)(uintptr_t)(r)-offsetof(struct sxe__http_slot, \
                                                                       request)))
#define SXE__HTTP_SLOT_OF_RESPONSE(r)                                                         \
    ((struct sxe__http_slot *)(void *)((char *)(uintptr_t)(r)-offsetof(struct sxe__http_slot, \
                                                                       response)))

#define SXE__HTTP_SLOT_OF_CONST(r)                                             \
    ((const struct sxe__http_slot *)(const void *)((const char *)(r)-offsetof( \
        struct sxe__http_slot, request)))

/* ---- sxe-http-accept.c ---- */

void sxe__http_on_connected(SXE *s);

/* A client of FastCGI, for which s and its peer were made: take a place for the request's
 * connection. peer has that length; 0: unknown. False: there is no place. */
SXE_MUST_USE bool sxe__http_take_in(struct sxe_http *http, SXE *s, struct sxe__http_bridge *bridge,
                                    const struct sockaddr_storage *peer, bool is_https,
                                    bool is_trusted);

/* ---- sxe-http-client-address.c ---- */

/* Keep the client's address, because it may be asked for when the socket is closed already. Returns
 * the address's length; 0: it is not an IP address. */
socklen_t sxe__http_keep_peer(struct sxe__http_connection *connection,
                              const struct sockaddr_storage *address);

/* Set the address of the connection's client, which has this length, and count the connection. The
 * connection of a proxy that forwards requests is not counted: its requests are. 0, or the status
 * that refuses the client. */
SXE_MUST_USE unsigned sxe__http_set_client(struct sxe__http_connection *connection,
                                           const struct sockaddr_storage *address,
                                           socklen_t length);

/* Whether a client that connects now, from its own address, has as many connections as it may. */
bool sxe__http_is_unwelcome(struct sxe_http *http, const SXE *s);

/* Read the PROXY header at the front of data. Returns how many bytes it has; 0: it is not whole.
 * *status becomes the result of sxe__http_set_client. */
size_t sxe__http_read_proxy(struct sxe__http_connection *connection, const char *data,
                            size_t length, unsigned *status);

/* Find the client of a forwarded request, whose head is complete, and count the request for it.
 * `status` is the status that refuses the request already, or 0. Returns that status, or 503 if the
 * client has as many requests under way as it may have connections. */
SXE_MUST_USE unsigned sxe__http_forward(struct sxe__http_slot *slot, unsigned status);

/* ---- sxe-http-client-limit.c ---- */

/* The key by which the connections of an address are counted; 0: not counted. */
uint64_t sxe__http_client_key(const struct sockaddr_storage *address, socklen_t length);
SXE_MUST_USE int sxe__http_clients_new(struct sxe_http *http);

/* Add 1 to, or subtract 1 from, the number of a key's connections. add returns the new number. */
uint32_t sxe__http_clients_add(struct sxe__http_clients *clients, uint64_t key);
void sxe__http_clients_remove(struct sxe__http_clients *clients, uint64_t key);
void sxe__http_clients_delete(struct sxe_http *http);

/* Stop counting the connection for the address for which it was counted. */
void sxe__http_uncount(struct sxe__http_connection *connection);

/* ---- sxe-http-session.c ---- */

void sxe__http_on_read(SXE *s, int length);
void sxe__http_on_timeout(void *array, unsigned id, void *user);

/* Continue with the connection, after a call by the program has ended a reply or has resumed the
 * reading of a body. */
void sxe__http_resume(SXE *s);

/* A call by the program changed something: look at the connection later in this turn. If a handler
 * or callback is running, the session looks at the connection when that function returns. */
static inline void
sxe__http_changed(struct sxe__http_connection *connection)
{
    /* -EBUSY: the socket is deferred already. */
    if (!connection->is_inside)
        (void)!sxe_defer(connection->sxe, connection->http->resume);
}

/* If the request has no answer yet, answer it with that status; then end the connection. Only for
 * calls by the loop, like on_read. */
void sxe__http_reject(struct sxe__http_connection *connection, unsigned status);

/* If `status`, a result of sxe__http_set_client, is not 0, the client has too many connections:
 * answer with that status before the first request. Such a connection counts for no address, and is
 * the first to be evicted. */
void sxe__http_admit(struct sxe__http_connection *connection, unsigned status);

/* ---- sxe-http-close.c ---- */

/* Call on_done and on_reply with this result. */
void sxe__http_tell(struct sxe__http_slot *slot, int result);

/* The request has ended: call on_done and on_reply, if there are any. */
static inline void
sxe__http_report(struct sxe__http_slot *slot, int result)
{
    if (slot->response.on_done != NULL || slot->request.http->config.on_reply != NULL)
        sxe__http_tell(slot, result);
}

/* End the connection: send the reply, and drop what the client still sends. */
void sxe__http_over(struct sxe__http_connection *connection);

/* Close without lingering: no reply is in flight. */
void sxe__http_dismiss(struct sxe__http_connection *connection);

/* End the request, if there is one, and give its slot back. on_done gets `result`. */
void sxe__http_forget(struct sxe__http_connection *connection, int result);

/* End the request without on_done, and hand the connection to the program. Until its socket has
 * closed, the connection keeps its place, and counts for the client of that request. */
void sxe__http_hand_over(struct sxe__http_connection *connection);

/* Free a connection that has no slot, and whose socket has closed. */
void sxe__http_free(struct sxe__http_connection *connection);

/* If the server drains and no connection is left, call each done. */
void sxe__http_check_stopped(struct sxe_http *http);

/* The client closed or half-closed. length: that of on_read; -1: the connection was paused. */
void sxe__http_client_ended(struct sxe__http_connection *connection, int length);
void sxe__http_on_close(SXE *s);

static inline void
sxe__http_move(struct sxe__http_connection *connection, enum sxe__http_state to)
{
    struct sxe__http_connection *pool = connection->http->connections;
    unsigned id = (unsigned)(connection - pool);

    sxe_pool_move(pool, id, sxe_pool_get_state(pool, id), to);
}

/* ---- sxe-http-body.c ---- */

/* Prepare for the body that the head announces. rest: the bytes that came after the head. */
void sxe__http_body_begin(struct sxe__http_slot *slot, const char *rest, size_t length);

/* The client has sent nothing of the body: send 100 if it is due. 0; -errno: nothing was written,
 * and 100 stays due. */
int sxe__http_body_await(struct sxe__http_slot *slot);

/* The step that follows from the bytes that were read. */
struct sxe__http_body_step {
    enum {
        SXE__HTTP_BODY_GOES_ON, /* nothing to do: more bytes must come */
        SXE__HTTP_BODY_SHOWN,   /* `part` is for on_body */
        SXE__HTTP_BODY_KEPT,    /* the body is whole: call the handler */
        SXE__HTTP_BODY_DROPPED, /* the body has ended, after its reply had ended */
        SXE__HTTP_BODY_REFUSED  /* reject the request, with `status` */
    } next;
    unsigned status;
    struct sxe_span part;
};

/* Read the body at the front of data. Returns the bytes that were taken; 0: none, and *step is
 * unchanged. */
size_t sxe__http_body_read(struct sxe__http_slot *slot, const char *data, size_t length,
                           struct sxe__http_body_step *step);

/* For a handler that reads the body. can_be_shown: whether the handler's on_body may get the next
 * part now; is_waiting: whether the next part waits until the handler asks for more. */
bool sxe__http_body_can_be_shown(const struct sxe__http_slot *slot);
bool sxe__http_body_is_waiting(const struct sxe__http_slot *slot);
bool sxe__http_body_can_be_dropped(const struct sxe__http_slot *slot);
/* Stop counting the bytes of the slot's body in http->body_memory. */
void sxe__http_body_forget(struct sxe__http_slot *slot);

/* ---- sxe-http-slot.c ---- */

SXE_MUST_USE int sxe__http_slots_new(struct sxe_http *http);
void sxe__http_slots_delete(struct sxe_http *http);
struct sxe__http_slot *sxe__http_slot_take(struct sxe__http_connection *connection);
/* Prepare the slot for the connection's next request. */
void sxe__http_slot_reset(struct sxe__http_slot *slot);
/* Note that the next head must not be compared with this one. */
void sxe__http_slot_forget_head(struct sxe__http_slot *slot);
void sxe__http_slot_give(struct sxe__http_connection *connection);

/* ---- sxe-http-request.c ---- */

/* Find the handler: set handler, user, and whether the body is shown in parts. 0, or the status
 * that refuses the target. */
SXE_MUST_USE unsigned sxe__http_route(struct sxe__http_slot *slot);

/* ---- sxe-http-identity.c ---- */

/* If config.request_id is set, log lines show the request's id from a call of sxe__http_name_lines
 * until sxe__http_unname_lines is called with its result. */
static inline const char *
sxe__http_name_lines(const struct sxe__http_slot *slot)
{
    if (SXE_LIKELY(slot->request.http->config.request_id == NULL))
        return NULL;
    return sxe_log_set_request(sxe_http_request_id(&slot->request));
}

static inline void
sxe__http_unname_lines(const struct sxe_http *http, const char *outer)
{
    if (SXE_UNLIKELY(http->config.request_id != NULL))
        sxe_log_set_request(outer);
}

/* Write the line of config.request_id, unless the reply has a field of that name. Returns the new
 * end. */
char *sxe__http_put_id(const struct sxe__http_slot *slot, char *to);

/* ---- sxe-http-response.c ---- */

void sxe__http_decide_close(struct sxe__http_slot *slot);

static inline void
sxe__http_ended(struct sxe__http_slot *slot)
{
    slot->progress = SXE__HTTP_ENDED;
    SXE_PROBE_REPLY(SXE_ID(slot->connection->sxe), slot->status, slot->body_sent);
    sxe__http_changed(slot->connection);
}

/* End a reply with its whole body. type NULL: no Content-Type is added. 0 or -errno. */
SXE_MUST_USE int sxe__http_end_whole(struct sxe__http_slot *slot, const char *type,
                                     const void *body, size_t length);

/* Reset the connection: half a reply must not look like a whole one. Returns -ENOTCONN. */
int sxe__http_break(struct sxe__http_slot *slot);

/* After a write that took nothing. If error is -ENOBUFS, return it, so that the caller can write
 * again later; on another error break the connection. */
SXE_MUST_USE int sxe__http_cannot_write(struct sxe__http_slot *slot, int error);

/* Whether output_max has room for `own` bytes of the library and `length` bytes of the handler. */
bool sxe__http_has_room(const struct sxe__http_slot *slot, size_t own, size_t length);

/* Whether the slot's reply has a body, by its status and the request's method. */
bool sxe__http_has_reply_body(const struct sxe__http_slot *slot);

/* ---- sxe-http-reply-fields.c ---- */

/* Whether a program may add a line with this name and value to a reply. Sets *id. */
SXE_MUST_USE bool sxe__http_is_line(struct sxe_span name, struct sxe_span value,
                                    enum sxe_http_field_id *id);

/* Add a line of fields or trailers. 0 or -errno. */
SXE_MUST_USE int sxe__http_add_line(struct sxe__http_slot *slot, const char *name,
                                    struct sxe_span value);

/* ---- sxe-http-reply-head.c ---- */

/* Compose the head of a reply in http->head, for a body of that length and type; type NULL: no
 * Content-Type. Returns the head's length; -EINVAL or -ENOBUFS: the type cannot be added. */
SXE_MUST_USE ssize_t sxe__http_compose_head(struct sxe__http_slot *slot, const char *type,
                                            uint64_t length);

#endif
