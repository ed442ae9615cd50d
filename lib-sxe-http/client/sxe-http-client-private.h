/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the client share. A link is a connection to the server, or a place for
 * one; a job is a call that the program sent, from then until it is over.
 *
 *     sxe-http-client-write.c   a request's head                        pure
 *     sxe-http-client-read.c    bytes of a response -> callbacks
 *     sxe-http-client-link.c    links: every change of their state stands here
 *     sxe-http-client.c         new, delete, send, cancel, pause
 *
 * Shape: a link's life is the state it is in; in all of these but FREE it has a socket:
 *
 *     FREE --> CONNECTING --> SENDING --> HEAD --> BODY <--> PAUSED
 *      ^                         ^                   |
 *      |                         '------ IDLE <------'
 *      '-- ENDING <-- any of them
 *
 * Without a borrowed body there is no SENDING, without a body in the response no BODY, and an early
 * response goes from SENDING to BODY. An upgrade makes a link FREE at once: its socket stays.
 *
 * Jobs stand in two pools of the same indexes: `jobs`, where the time since send is counted, and
 * `queue`, which is the order of those that wait for a link.
 */
#ifndef SXE_HTTP_CLIENT_PRIVATE_H
#define SXE_HTTP_CLIENT_PRIVATE_H

#include "sxe-http-chunk.h"
#include "sxe-http-client.h"

enum sxe__http_link_state {
    SXE__HTTP_LINK_FREE,
    SXE__HTTP_LINK_CONNECTING,
    SXE__HTTP_LINK_SENDING, /* a borrowed body, piece by piece */
    SXE__HTTP_LINK_HEAD,    /* waiting for a response's head */
    SXE__HTTP_LINK_BODY,
    SXE__HTTP_LINK_PAUSED, /* BODY, held back by the program */
    SXE__HTTP_LINK_IDLE,
    SXE__HTTP_LINK_ENDING, /* waiting for on_close of its socket */
    SXE__HTTP_LINK_STATES
};

enum sxe__http_job_state { SXE__HTTP_JOB_FREE, SXE__HTTP_JOB_LIVE, SXE__HTTP_JOB_STATES };
enum sxe__http_queue_state { SXE__HTTP_QUEUE_OUT, SXE__HTTP_QUEUE_WAITING, SXE__HTTP_QUEUE_STATES };

/* The properties of a written request. */
struct sxe__http_asked {
    uint8_t method;  /* enum sxe_http_method */
    bool keep_alive; /* it does not ask to close */
    bool upgrade;    /* it asks for another protocol, or a tunnel */
};

struct sxe__http_job {
    struct sxe_http_call wanted; /* as sent; what its spans look at is in the room instead */
    struct sxe__http_asked asked;
    uint32_t length; /* of what is in its room */
    uint32_t link;   /* index, or SXE_NONE: it waits */
    bool is_paused;
};

struct sxe__http_link {
    struct sxe_http_client *client;
    SXE *socket;
    uint32_t job;       /* index, or SXE_NONE */
    uint32_t head_used; /* bytes in its room of a head that is not whole, or of the last one */
    bool is_reused;     /* it served another job before this one */
    bool is_answered;   /* a byte came for this job */
    bool has_head;      /* of the response proper */
    uint8_t refusal;    /* enum sxe_http_refusal */
    size_t unsent;      /* bytes of a borrowed body that are not the kernel's yet */
    uint64_t left;      /* of a body of known length, bytes to come */
    uint32_t body_used; /* bytes kept in its room */
    struct sxe_http_parser parser;
    struct sxe_http_chunks chunks;
};

struct sxe_http_client {
    struct sxe_http_client_config config; /* complete; its texts are here: */
    char ip[64];
    char path[108];
    char host[256];
    char tls_name[256];
    struct sxe__http_link *links;  /* a pool */
    struct sxe__http_job *jobs;    /* a pool */
    char *queue;                   /* a pool */
    char *requests;                /* config.request_max bytes for each job */
    char *responses;               /* head_max + body_max bytes for each link */
    struct sxe_http_field *fields; /* fields_max for each link */
};

/* ---- sxe-http-client-write.c ---- */

/* sxe_http_request_write, and what the request says. */
SXE_MUST_USE ssize_t sxe__http_request_write(const struct sxe_http_request_head *request,
                                             char *room, size_t size,
                                             struct sxe__http_asked *asked);

/* ---- sxe-http-client-read.c ---- */

void sxe__http_client_on_read(SXE *s, int length);

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

/* The bytes of a response's head; those of a kept body follow at head_max. */
static inline char *
sxe__http_link_room(const struct sxe__http_link *link)
{
    const struct sxe_http_client_config *config = &link->client->config;

    return link->client->responses +
           sxe__http_link_id(link) * ((size_t)config->limits.head_max + config->body_max);
}

/* No link has a socket: nothing will happen by itself. */
static inline bool
sxe__http_client_is_at_rest(const struct sxe_http_client *client)
{
    return sxe_pool_get_count(client->links, SXE__HTTP_LINK_FREE) == client->config.connections_max;
}

/* One of the client's links; for sxe_pool_new_with_timeouts. */
void sxe__http_link_on_timeout(void *array, unsigned id, void *user);
const char *sxe__http_link_state_to_string(unsigned state);

/* Every change of state. */
void sxe__http_link_move(struct sxe__http_link *link, enum sxe__http_link_state to);

/* Close its socket, after what was written is sent or at once. It is FREE when on_close came. */
enum sxe__http_end { SXE__HTTP_END_AT_ONCE, SXE__HTTP_END_AFTER_OUTPUT };
void sxe__http_link_end(struct sxe__http_link *link, enum sxe__http_end how);

/* The socket becomes the program's, and the link FREE. */
void sxe__http_link_forget(struct sxe__http_link *link);

/* The view of a job for callbacks. */
struct sxe_http_exchange sxe__http_exchange(struct sxe_http_client *client, unsigned job);

/* The job is over without a word; its link, if any, has none. */
void sxe__http_job_release(struct sxe_http_client *client, unsigned job);

/* The job is over, and on_done says so. */
void sxe__http_job_end(struct sxe_http_client *client, unsigned job, int result);

/* Like the function above; the job's link, if any, also ends at once. */
void sxe__http_job_fail(struct sxe_http_client *client, unsigned job, int error);

/* Give the job a link: 0; 1: it waits for one that has another job, or closes; -errno: no link has
 * a socket, and none can be opened. So while jobs wait, something will happen. Calls nothing back.
 */
SXE_MUST_USE int sxe__http_job_start(struct sxe_http_client *client, unsigned job);

/* Start those that wait, as far as there are links. */
void sxe__http_client_dispatch(struct sxe_http_client *client);

#endif
