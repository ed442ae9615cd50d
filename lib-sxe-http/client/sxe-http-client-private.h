/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the client share. A link is a connection to the server, or a free place
 * in the table of connections; a job is a call that the program sent, from then until it is over.
 *
 *     sxe-http-client-write.c   a request's head                        pure
 *     sxe-http-client-proxy.c   forward proxies: which one, and why it failed
 *     sxe-http-client-fastcgi.c a request -> records; records -> the head of a response    pure
 *     sxe-http-client-read.c    bytes of a response -> callbacks
 *     sxe-http-client-open.c    from FREE to the first request: look-up, connection, tunnel
 *     sxe-http-client-link.c    links: every change of their state stands here
 *     sxe-http-client-body.c    the body of a request, whole or in parts -> the socket
 *     sxe-http-client.c         new, delete, send, cancel, pause
 *
 * Shape: a link is in one of these states. In all but FREE and DROPPED it has a socket, unless it
 * dials:
 *
 *     FREE --> CONNECTING --> SENDING --> HEAD --> BODY <--> PAUSED
 *      ^                      ^ v   ^                |
 *      |                   ASKING   '--- IDLE <------'
 *      '-- ENDING <-- any of them; DROPPED, if there is no socket yet
 *
 * With FastCGI, LATE may be between BODY and IDLE.
 *
 * Without a body there is no SENDING, without a body in the response no BODY, and an early response
 * goes from SENDING or ASKING to BODY. An upgrade makes a link FREE at once: its socket stays.
 *
 * A job has the same index in two pools: `jobs`, whose timeout counts the time since send, and
 * `queue`, which keeps the order of the jobs that wait for a link.
 */
#ifndef SXE_HTTP_CLIENT_PRIVATE_H
#define SXE_HTTP_CLIENT_PRIVATE_H

#include "sxe-dial.h"
#include "sxe-http-chunk.h"
#include "sxe-http-client.h"
#include "sxe-http-fastcgi.h"
#include "sxe-http-list.h"

enum sxe__http_link_state {
    SXE__HTTP_LINK_FREE,
    SXE__HTTP_LINK_CONNECTING,
    SXE__HTTP_LINK_SENDING, /* a body is sent, piece by piece */
    SXE__HTTP_LINK_ASKING,  /* the program is asked for the body's next part */
    SXE__HTTP_LINK_HEAD,    /* waiting for a response's head */
    SXE__HTTP_LINK_BODY,
    SXE__HTTP_LINK_PAUSED, /* like BODY, but the program has paused the reading */
    SXE__HTTP_LINK_LATE,   /* FastCGI: the job has its whole reply, and the script goes on */
    SXE__HTTP_LINK_IDLE,
    SXE__HTTP_LINK_ENDING,  /* waiting for on_close of the link's socket */
    SXE__HTTP_LINK_DROPPED, /* the link's dial was cancelled; FREE in the next turn of the loop */
    SXE__HTTP_LINK_STATES
};

enum sxe__http_job_state { SXE__HTTP_JOB_FREE, SXE__HTTP_JOB_LIVE, SXE__HTTP_JOB_STATES };
enum sxe__http_queue_state { SXE__HTTP_QUEUE_OUT, SXE__HTTP_QUEUE_WAITING, SXE__HTTP_QUEUE_STATES };

/* The properties of a written request. */
struct sxe__http_asked {
    uint8_t method;  /* enum sxe_http_method */
    bool keep_alive; /* the request does not ask to close */
    bool upgrade;    /* the request asks for another protocol, or a tunnel */
};

struct sxe__http_job {
    struct sxe_http_call wanted; /* the program's call; the texts of its request may be gone */
    struct sxe__http_asked asked;
    uint32_t length; /* how many bytes the job's part of `requests` has: head and copied body */
    uint32_t link;   /* index of the job's link; SXE_NONE: the job waits */
    uint32_t number; /* counts the calls of all clients of the process */
    bool is_paused;
};

struct sxe__http_link {
    struct sxe_http_client *client;
    SXE *socket;
    uint32_t job;       /* index of the link's job, or SXE_NONE */
    uint32_t head_used; /* how many bytes of a head are in the link's part of `responses` */
    bool is_reused;     /* the link served another job before its present job */
    bool is_answered;   /* a byte of the response to the present job has come */
    bool is_asking;     /* on_room was called, and the program did not write yet */
    bool is_in_parts;   /* on_room was called for the present job */
    bool is_last_part;  /* the program has written the last part */
    /* the head of the final response has arrived; the heads of 1xx do not count */
    bool has_head;
    bool is_dialling;   /* a dial is under way, and there is no socket yet */
    bool is_tunnelling; /* CONNECT was sent, and the proxy has not answered */
    /* the link's peer is still the proxy, which is to blame if the link fails */
    bool is_at_proxy;
    const char *complaint; /* why a reply of FastCGI was refused; NULL: it was not */
    uint8_t refusal;       /* enum sxe_http_refusal */
    uint8_t stage;         /* enum sxe_http_stage */
    uint32_t part;         /* how many bytes of `unsent` are in the socket's output queue */
    uint64_t unsent; /* bytes of the body that our kernel has not taken yet; or SXE_HTTP_CHUNKED */
    /* bytes of the request that the server's kernel had not acknowledged at the last check */
    size_t unread;
    int look_up_error;  /* why the link's dial found no address, for gai_strerror; or 0 */
    uint64_t left;      /* bytes of a response's body of known length that are still to come */
    uint32_t body_used; /* how many bytes of a body are in the link's part of `responses` */
    struct sxe_http_parser parser;
    struct sxe_http_chunks chunks;
};

/* The state of reading a link's reply of FastCGI. */
struct sxe__http_records {
    struct sxe_http_fastcgi reader;
    uint16_t id;       /* of the request; the next one of the connection has another */
    uint32_t used;     /* bytes of the head that is made from the script's head */
    uint32_t line;     /* offset of the line whose end has not come */
    uint16_t status;   /* 0: the script has given none */
    bool has_location; /* the script's head has the field Location */
    bool has_field;    /* the script's head has a line */
    bool is_out_ended; /* the stream STDOUT has ended; likewise is_error_ended */
    bool is_error_ended;
};

/* A forward proxy. */
struct sxe__http_forward {
    char host[256];
    char name[264]; /* "host:port" */
    uint16_t port;
    char login[720];    /* the value of Proxy-Authorization; "": there is none */
    char target[272];   /* "host:port" that a tunnel leads to */
    char request[1600]; /* the CONNECT request */
    uint32_t length;    /* bytes of `request`; 0: there are no tunnels */
};

struct sxe_http_client {
    /* the configuration with all defaults; the members below have its texts */
    struct sxe_http_client_config config;
    char ip[64];
    char name[256];
    char path[108];
    char host[256];
    char tls_name[256];
    struct sxe__http_forward *forward; /* NULL: there is no proxy */
    /* a dial for each link; NULL: there is no name to look up */
    struct sxe_dial *dials;
    char failure[1024];                  /* the text of sxe__http_client_failure */
    const struct sxe__http_link *failed; /* the last link that could not be opened */
    struct sxe__http_link *links;        /* the array of a pool */
    struct sxe__http_job *jobs;          /* the array of a pool */
    char *queue;                         /* the array of a pool */
    char *requests;                      /* config.request_max bytes for each job */
    char *responses;                     /* head_max + body_max bytes for each link */
    /* memory for the fields of each link's response: fields_max for each link */
    struct sxe_http_field *fields;
    uint64_t retries;                  /* how many jobs were sent once more */
    struct sxe__http_records *records; /* one for each link; NULL: the server speaks HTTP */
    bool keeps; /* with records: the server is asked to keep connections open */
    /* with records: the script has written to STDERR */
    void (*on_error_text)(const struct sxe_http_exchange *exchange, struct sxe_span text);
};

/* Speak FastCGI to the server. Call it after sxe_http_client_new. The fields of each call are then
 * the parameters of its request, and its target and host are not used. A call with a body needs
 * on_room, and no call is paused before its body comes. keep: ask the server to keep connections
 * open. 0 or -ENOMEM. */
SXE_MUST_USE int sxe__http_client_use_fastcgi(
    struct sxe_http_client *client, bool keep,
    void (*on_error_text)(const struct sxe_http_exchange *exchange, struct sxe_span text));

/* ---- sxe-http-client-write.c ---- */

/* Like sxe_http_request_write, but the request goes through the proxy `forward` (NULL: there is
 * none). Also sets *asked to the properties of the request. */
SXE_MUST_USE ssize_t sxe__http_request_write(const struct sxe_http_request_head *request,
                                             const struct sxe__http_forward *forward, char *room,
                                             size_t size, struct sxe__http_asked *asked);

/* Whether a request with this method may be sent twice (RFC 9110, 9.2.2). */
static inline bool
sxe__http_is_idempotent(unsigned method)
{
    const unsigned all = 1u << SXE_HTTP_GET | 1u << SXE_HTTP_HEAD | 1u << SXE_HTTP_OPTIONS |
                         1u << SXE_HTTP_TRACE | 1u << SXE_HTTP_PUT | 1u << SXE_HTTP_DELETE;

    return (all >> method & 1) != 0;
}

/* Whether the written request asks for each of these protocols; the list has at least one. */
bool sxe__http_request_asks_for(const char *head, size_t length, struct sxe_http_list protocols);

/* ---- sxe-http-client-fastcgi.c ---- */

/* Write the records of a request without its body: BEGIN_REQUEST, PARAMS, and the end of STDIN if
 * there is no body. Returns their length; -EMSGSIZE: they do not fit; -EINVAL: the method is
 * CONNECT, or a name is empty. */
SXE_MUST_USE ssize_t sxe__http_records_write(const struct sxe_http_request_head *request, bool keep,
                                             char *room, size_t size,
                                             struct sxe__http_asked *asked);

/* Write the heads of records of STDIN: one for so many bytes, and one that ends the stream. */
#define SXE__HTTP_STDIN_MAX 32768u
void sxe__http_records_put_input(const struct sxe__http_records *records,
                                 char to[SXE_HTTP_FASTCGI_HEAD], size_t length);

/* Prepare for the reply to the next request, whose records these are: give them their id.
 * is_reused: the connection has served another request. */
void sxe__http_records_begin(struct sxe__http_records *records, bool is_reused, char *request,
                             size_t length);

enum sxe__http_record_kind {
    SXE__HTTP_RECORD_NOTHING, /* the end of a stream, or no content */
    SXE__HTTP_RECORD_OUTPUT,
    SXE__HTTP_RECORD_ERRORS,
    SXE__HTTP_RECORD_END
};

/* Read the front of data, as sxe_http_fastcgi_read does. Each call sets *content and *kind. Returns
 * how many bytes were taken; 0: more is needed; -1: the records are wrong, and *complaint says
 * why. */
SXE_MUST_USE ssize_t sxe__http_records_read(struct sxe__http_records *records, const char *data,
                                            size_t length, struct sxe_span *content,
                                            enum sxe__http_record_kind *kind,
                                            const char **complaint);

/* Take bytes of the script's output that belong to its head, and write the head of an HTTP response
 * to room. Returns how many bytes were taken: *is_whole becomes true if that was the end of the
 * head, which then has records->used bytes. -1: the head is wrong, and *complaint says why. */
SXE_MUST_USE ssize_t sxe__http_records_head(struct sxe__http_records *records, struct sxe_span data,
                                            char *room, size_t size, bool *is_whole,
                                            const char **complaint);

/* ---- sxe-http-client-proxy.c ---- */

/* Set client->forward from the URL of a proxy. Call this after the rest of the configuration was
 * set. 0; -EINVAL, -EPROTONOSUPPORT or -ENOMEM. */
SXE_MUST_USE int sxe__http_forward_new(struct sxe_http_client *client, const char *url);

/* A text that says why the job of a link failed, if the proxy or a look-up is to blame, valid until
 * the next call; NULL: neither is to blame. */
const char *sxe__http_client_failure(const struct sxe__http_link *link, int result);

/* ---- sxe-http-client-read.c ---- */

void sxe__http_client_on_read(SXE *s, int length);

/* ---- sxe-http-client-open.c ---- */

/* Open a link: FREE -> CONNECTING. 0; -errno: the link is still FREE. */
SXE_MUST_USE int sxe__http_link_open(struct sxe__http_link *link);

/* The proxy has made the tunnel: begin TLS in it, and send the request. 0 or -errno. */
SXE_MUST_USE int sxe__http_link_enter_tunnel(struct sxe__http_link *link);

/* ---- sxe-http-client-body.c ---- */

/* After the head: begin to send a body that is not copied. 0 or -errno. */
SXE_MUST_USE int sxe__http_client_send_body(struct sxe__http_link *link);

/* ---- sxe-http-client-link.c ---- */

static inline unsigned
sxe__http_link_id(const struct sxe__http_link *link)
{
    return (unsigned)(link - link->client->links);
}

static inline enum sxe__http_link_state
sxe__http_link_state(const struct sxe__http_link *link)
{
    return (enum sxe__http_link_state)sxe_pool_get_state(link->client->links,
                                                         sxe__http_link_id(link));
}

static inline struct sxe__http_job *
sxe__http_link_job(const struct sxe__http_link *link)
{
    return &link->client->jobs[link->job];
}

/* The memory for a link's responses: the head, and from head_max on a body that is kept. */
static inline char *
sxe__http_link_room(const struct sxe__http_link *link)
{
    const struct sxe_http_client_config *config = &link->client->config;

    return link->client->responses +
           sxe__http_link_id(link) * ((size_t)config->limits.head_max + config->body_max);
}

/* Whether no link has a socket. Then the client gets no event that would start a waiting job. */
static inline bool
sxe__http_client_is_at_rest(const struct sxe_http_client *client)
{
    return sxe_pool_get_count(client->links, SXE__HTTP_LINK_FREE) == client->config.connections_max;
}

/* The pool calls this when a link has been in its state for too long. */
void sxe__http_link_on_timeout(void *array, unsigned id, void *user);
const char *sxe__http_link_state_to_string(unsigned state);

/* Change the state of a link; all changes go through this function. */
void sxe__http_link_move(struct sxe__http_link *link, enum sxe__http_link_state to);

/* Close a link's socket, at once or after the output is sent. on_close then makes the link FREE. */
enum sxe__http_end { SXE__HTTP_END_AT_ONCE, SXE__HTTP_END_AFTER_OUTPUT };
void sxe__http_link_end(struct sxe__http_link *link, enum sxe__http_end how);

/* Detach the socket, which becomes the program's. The caller then makes the link FREE. */
void sxe__http_link_forget(struct sxe__http_link *link);

/* Send the request of the link's job. The link is connected or idle. 0 or -errno. */
SXE_MUST_USE int sxe__http_link_send(struct sxe__http_link *link);

/* The on_close of all links: the link's socket has closed. */
void sxe__http_link_on_close(SXE *s);

/* The link that was CONNECTING has no socket, and becomes FREE; its job ends with this error. */
void sxe__http_link_fail_open(struct sxe__http_link *link, int error);

/* The handle of a job has its number and its index, so that no other client gives out the same. */
static inline uint64_t
sxe__http_job_handle(const struct sxe_http_client *client, unsigned job)
{
    return (uint64_t)client->jobs[job].number << 32 | job;
}

/* The job with this handle. SXE_POOL_NO_INDEX: the call is over, or it is another client's. */
unsigned sxe__http_job_find(const struct sxe_http_client *client, uint64_t handle);

/* A job as callbacks see it. */
struct sxe_http_exchange sxe__http_exchange(struct sxe_http_client *client, unsigned job);

/* Free a job without calling on_done; if the job has a link, the link then has no job. */
void sxe__http_job_release(struct sxe_http_client *client, unsigned job);

/* Free a job and call its on_done. */
void sxe__http_job_end(struct sxe_http_client *client, unsigned job, int result);

/* Whether the link is one of FastCGI, and its job has its whole reply: all bytes of a known length,
 * or a head without a body. The script may not have ended. */
bool sxe__http_link_has_whole_output(const struct sxe__http_link *link);

/* Like sxe__http_job_end; the job's link, if any, also ends at once. */
void sxe__http_job_fail(struct sxe_http_client *client, unsigned job, int error);

/* Give a job a link. 0; 1: no link is free now, so the job must wait; -errno: no link can be
 * opened, and no link has a socket whose events would start the job later. Calls no callback. */
SXE_MUST_USE int sxe__http_job_start(struct sxe_http_client *client, unsigned job);

/* Start waiting jobs as long as there are links for them. */
void sxe__http_client_dispatch(struct sxe_http_client *client);

#endif
