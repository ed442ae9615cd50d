/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the server share: the server, a connection, and a slot.
 * Place: included by those files only, in reading order:
 *
 *     sxe-http-server.c         new, listen, stop, delete; the plan
 *     sxe-http-accept.c         connections come, age and go
 *     sxe-http-client-limit.c   how many of them an address has
 *     sxe-http-session.c        bytes of a connection -> requests -> handlers, and their order
 *     sxe-http-body.c           the body of a request
 *     sxe-http-slot.c           memory for one request and its reply
 *     sxe-http-request.c        what handlers ask of a request
 *     sxe-http-response.c       status and fields of a reply, and replies that are whole
 *     sxe-http-reply-head.c     the head of a reply, which is mostly the last one
 *     sxe-http-stream.c         replies in parts, files, upgrades
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

extern struct sxe_log_control sxe__http_log;

#define SXE__HTTP_LISTENERS   8
#define SXE__HTTP_SPARE       16 /* extra sockets, to refuse clients when all others are taken */
#define SXE__HTTP_DISCARD_MAX (64u * 1024) /* bytes of an unwanted body that are read, to go on */

/* The states of a connection in the pool: each has a timeout. The phase says what happens with the
 * connection's bytes. */
enum sxe__http_state {
    SXE__HTTP_FREE,
    SXE__HTTP_FRESH,    /* not a byte of a request came yet */
    SXE__HTTP_IDLE,     /* between requests */
    SXE__HTTP_HEAD,     /* the rest of a head is awaited */
    SXE__HTTP_BODY,     /* more of a body is awaited */
    SXE__HTTP_HANDLING, /* a handler answers later, or the body waits for it */
    SXE__HTTP_SENDING,  /* lib-sxe watches over it: its peer must read */
    SXE__HTTP_CLOSING,  /* after its last reply: its peer must read, and may close */
    SXE__HTTP_STATES
};

enum sxe__http_phase {
    SXE__HTTP_READ_PROXY,
    SXE__HTTP_READ_HEAD,
    SXE__HTTP_READ_BODY,
    SXE__HTTP_REPLY, /* the body is whole, the reply is not */
    SXE__HTTP_DRAIN, /* the reply has ended: borrowed memory waits for the peer */
    SXE__HTTP_OVER   /* closed; nothing counts any more */
};

struct sxe__http_connection {
    struct sxe_http *http;
    SXE *sxe;
    struct sxe__http_slot *slot; /* NULL: no request has begun */
    uint64_t address;            /* as counted; 0: it is not */
    uint64_t window;             /* bytes of the body since its time began, see body_ns */
    uint32_t requests;
    uint8_t phase;
    bool is_inside;      /* a handler or callback runs; its caller looks at the outcome */
    bool is_waiting;     /* paused until the kernel took the output */
    uint8_t peer_length; /* of an IP address: of the PROXY header, or the socket */
    unsigned char peer[28];
};

enum sxe__http_progress {
    SXE__HTTP_UNANSWERED,
    SXE__HTTP_BEGUN, /* the head is on its way */
    SXE__HTTP_ENDED
};

struct sxe__http_slot {
    struct sxe_http_request request;
    struct sxe__http_connection *connection;
    uint32_t most;  /* that `used` was since the slot was taken */
    uint32_t index; /* in slots */

    /* Of the last head, whoever sent it: the same bytes mean the same. */
    uint32_t head_length;  /* 0: it is not to be compared with */
    bool is_body_streamed; /* the body is shown in parts */
    sxe_http_handler handler;
    void *user;

    /* Fields that begin with a value of their own. */
    SXE_TIME since;
    uint64_t body_left;   /* of BODY_LENGTH */
    uint64_t length_left; /* of a reply that was begun with a length */
    SXE_TIME body_ns;     /* spent in earlier stays in BODY since the body's time began */
    SXE_TIME handler_ns;  /* spent in earlier stays in HANDLING */
    uint32_t path_length; /* of the decoded path, once it is made */
    struct sxe_http_chunks chunks;

    /* Fields that a new request clears; few bytes, see sxe__http_slot_reset. */
    struct sxe_http_response response;

    /* The body of the request. */
    sxe_http_on_body on_body;
    uint32_t body_dropped; /* bytes that came when the reply had ended */
    uint32_t body_kept;    /* bytes of a body that is not whole yet, here or with the handler */
    uint32_t used;         /* bytes from head_at on: the head, and a body that is kept */
    bool is_body_whole;    /* all of it came */
    bool is_body_shown;    /* its last part too */
    bool is_body_paused;
    bool is_continue_due; /* the client waits for 100 */

    /* The reply. */
    uint8_t progress;
    bool close; /* close the connection after it */
    bool is_chunked;
    bool is_lending; /* the kernel reads memory or a file of the handler's */
    bool is_sending; /* the end of it waits for the kernel, or for the socket to close */
    bool offers_upgrade;
    bool is_path_made;
    bool half_close; /* it goes on after the client's end */
    uint16_t status;
    int outcome; /* -errno for on_done: the library answered, in the handler's place */
    uint32_t fields_used;
    uint64_t body_sent;
    void (*on_room)(struct sxe_http_response *response);

    /* Up to here. */
    struct sxe_http_field fields[];
};

/* The values that the last head was composed from: equal values give the same head. */
struct sxe__http_last_head {
    uint64_t until_ns; /* its Date is right; 0: none is kept */
    uint64_t length;
    uint32_t fields_at; /* where the reply's own lines are */
    uint32_t fields_used;
    uint32_t used; /* bytes of all of it */
    uint16_t status;
    uint8_t minor;
    bool close;
    bool is_chunked;
    bool offers_upgrade;
    bool has_type;
    char type[64];
};

struct sxe_http {
    struct sxe_http_config config;
    struct sxe__http_connection *connections; /* a pool */

    char *slots;
    size_t slot_size;
    size_t reply_at;
    size_t path_at;
    size_t head_at;
    uint32_t *free_slots; /* a stack */
    uint32_t free_count;
    size_t resident;    /* bytes that free slots still have */
    uint32_t *touched;  /* bytes of each slot that are not the kernel's */
    size_t body_memory; /* bytes of bodies that are not whole */

    struct sxe__http_clients *clients; /* NULL: not counted */
    struct sxe_http_date_cache date;
    struct sxe__http_last_head last;
    char *head; /* that head: memory for one */
    size_t head_size;
    char *common; /* lines of every reply, the Date's first */
    uint32_t common_length;

    SXE *listeners[SXE__HTTP_LISTENERS];
    unsigned listener_count;
    uint32_t unsent_max; /* bytes; a connection with more waits with its next request */
    bool is_draining;    /* replies are the last of their connections */
    bool is_stopping;    /* and a connection without a request is closed */
    void (*on_stopped)(struct sxe_http *http);
    char ip[INET6_ADDRSTRLEN]; /* as sxe_http_peer_ip wrote it */
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
void sxe__http_on_close(SXE *s);

/* The client closed, or says no more; length -1: while the connection is paused. */
void sxe__http_client_ended(struct sxe__http_connection *connection, int length);

/* The PROXY header at the front of data: the bytes it took; 0: there is not all of it. */
size_t sxe__http_read_proxy(struct sxe__http_connection *connection, const char *data,
                            size_t length);

/* Its socket is not ours any more; it has no slot. */
void sxe__http_free(struct sxe__http_connection *connection);

static inline void
sxe__http_move(struct sxe__http_connection *connection, enum sxe__http_state to)
{
    struct sxe__http_connection *pool = connection->http->connections;
    unsigned id = (unsigned)(connection - pool);

    sxe_pool_move(pool, id, sxe_pool_get_state(pool, id), to);
}

/* ---- sxe-http-server.c ---- */

void sxe__http_check_stopped(struct sxe_http *http);

/* ---- sxe-http-client-limit.c ---- */

/* Which address's connection it is, for counting; 0: one that is not counted. */
uint64_t sxe__http_client_key(const struct sockaddr_storage *address, socklen_t length);
SXE_MUST_USE int sxe__http_clients_new(struct sxe_http *http);

/* One more, or one less, of that key. add: how many there are now. */
uint32_t sxe__http_clients_add(struct sxe__http_clients *clients, uint64_t key);
void sxe__http_clients_remove(struct sxe__http_clients *clients, uint64_t key);
void sxe__http_clients_delete(struct sxe_http *http);

/* ---- sxe-http-session.c ---- */

void sxe__http_on_read(SXE *s, int length);
void sxe__http_on_timeout(void *array, unsigned id, void *user);

/* In a call of the program's something changed that leads on: it is looked at later in this
 * turn. */
void sxe__http_changed(struct sxe__http_connection *connection);

/* These are for callees of on_read and on_timeout. */
void sxe__http_follow(struct sxe__http_connection *connection);
void sxe__http_handle(struct sxe__http_connection *connection);
void sxe__http_show(struct sxe__http_connection *connection, struct sxe_span part);

/* Answer with that status if there is no answer yet; then the connection is over. */
void sxe__http_reject(struct sxe__http_connection *connection, unsigned status);

/* The connection is over: the reply goes out, what still comes is dropped. */
void sxe__http_over(struct sxe__http_connection *connection);

/* Close without lingering: no reply is in flight. */
void sxe__http_dismiss(struct sxe__http_connection *connection);

/* The request, if there is one, will not be answered any more. */
void sxe__http_forget(struct sxe__http_connection *connection, int result);

/* ---- sxe-http-body.c ---- */

/* The head says how it comes; has_more: bytes came after the head. */
void sxe__http_body_begin(struct sxe__http_slot *slot, bool has_more);

/* Nothing of it is there: send 100, if that is due. 0, or -errno of a write that took nothing, and
 * it stays due. */
int sxe__http_body_await(struct sxe__http_slot *slot);

/* The bytes that were taken of the body at the front of data. */
size_t sxe__http_body_read(struct sxe__http_connection *connection, const char *data,
                           size_t length);

/* Whether the next part of the body goes to the handler's callback, or waits until the handler
 * wants more. */
bool sxe__http_body_can_be_shown(const struct sxe__http_slot *slot);
bool sxe__http_body_is_waiting(const struct sxe__http_slot *slot);
bool sxe__http_body_can_be_dropped(const struct sxe__http_slot *slot);
void sxe__http_body_forget(struct sxe__http_slot *slot); /* it is counted no more */

/* ---- sxe-http-slot.c ---- */

SXE_MUST_USE int sxe__http_slots_new(struct sxe_http *http);
void sxe__http_slots_delete(struct sxe_http *http);
struct sxe__http_slot *sxe__http_slot_take(struct sxe__http_connection *connection);
void sxe__http_slot_reset(struct sxe__http_slot *slot); /* for the connection's next request */
void sxe__http_slot_forget_head(struct sxe__http_slot *slot); /* the next one is another */
void sxe__http_slot_give(struct sxe__http_connection *connection);

/* ---- sxe-http-request.c ---- */

/* Find the handler: set handler, user, and whether the body is shown in parts. 0, or the status
 * that refuses the target. */
SXE_MUST_USE unsigned sxe__http_route(struct sxe__http_slot *slot);

/* ---- sxe-http-response.c ---- */

/* Whether a reply may have that line beside those of the library's; sets which field it is. */
SXE_MUST_USE bool sxe__http_is_line(struct sxe_span name, struct sxe_span value,
                                    enum sxe_http_field_id *id);

/* One line more, of fields or trailers. 0 or -errno. */
SXE_MUST_USE int sxe__http_add_line(struct sxe__http_slot *slot, const char *name,
                                    struct sxe_span value);

void sxe__http_decide_close(struct sxe__http_slot *slot);
void sxe__http_ended(struct sxe__http_slot *slot);

/* Reset the connection: half a reply must not look like a whole one. -ENOTCONN. */
int sxe__http_break(struct sxe__http_slot *slot);

/* After a write that took nothing: -ENOBUFS, and it may be tried again, or all is over. */
SXE_MUST_USE int sxe__http_cannot_write(struct sxe__http_slot *slot, int error);

/* Whether output_max allows so much more, of the library's own and of the handler's. */
bool sxe__http_has_room(const struct sxe__http_slot *slot, size_t own, size_t length);

/* Whether its reply, of this status and to this method, has a body. */
bool sxe__http_has_reply_body(const struct sxe__http_slot *slot);

/* ---- sxe-http-reply-head.c ---- */

/* The head of a reply with a body of that length, and of that type if it is not NULL, into the
 * server's memory for one: its bytes. With a type -EINVAL or -ENOBUFS, if it cannot be sent. */
SXE_MUST_USE ssize_t sxe__http_compose_head(struct sxe__http_slot *slot, const char *type,
                                            uint64_t length);

/* ---- sxe-http-stream.c ---- */

/* The last part of a reply that was begun. 0 or -errno. */
SXE_MUST_USE int sxe__http_end_begun(struct sxe__http_slot *slot, const void *data, size_t length);

#endif
