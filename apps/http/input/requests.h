/* SPDX-License-Identifier: MIT
 *
 * What: where the bytes of the next query come from. Place: the worker asks next() for each query
 * it sends, and tells replied() about each reply, if the source wants that. The worker does not
 * know whether the queries come from a template, a file, a log or a script.
 *
 * Shape: one struct of functions, as a base that each source has as its first member:
 *
 *     command line, request files   template.c   bytes with places that are patched
 *     access log, HAR               replay.c     a list with times
 *     script, scenario              script.c     what a Lua function returns
 *
 * A source is made in the parent; begin() is called once in each worker process, before its first
 * next(), and end() when it is done.
 *
 * Limits: one thread. The bytes are the source's, and stay until the next call of next().
 */
#ifndef LOAD_REQUESTS_H
#define LOAD_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_expect;

/* One query, ready to be written. */
struct load_query {
    const char *bytes;
    unsigned length;
    uint16_t kind;     /* below requests->kinds */
    bool is_head;      /* HEAD: its reply has no body (RFC 9110, 9.3.2) */
    bool is_last;      /* it asks for the connection's end, so that connection sends no other after
                          it (RFC 9112, 9.6) */
    uint64_t delay_ns; /* wait so long before writing it (a script's delay()); 0: no wait */
    const struct load_expect *expect; /* what the reply must be; NULL: as the plan says */
    uint32_t client;  /* set by the worker before next(): index of the socket that will send it;
                         below requests->clients */
    bool skips_reply; /* do not show the source its reply */
    bool skips_body;  /* keep only the head of its reply */
};

/* A whole reply, for a source that wants them. */
struct load_exchange {
    uint32_t client;
    uint16_t kind;
    uint16_t status;
    const char *head; /* status line and fields, without the empty line */
    size_t head_length;
    const char *body;
    size_t body_length;
    uint64_t service_ns;
};

/* How a scenario with steps (session.c) goes on after a whole reply. */
enum load_reading {
    LOAD_READ_JUDGE,  /* the reply has every value that the step takes from it (take-*.c); status,
                         fields and body are judged as always */
    LOAD_READ_FAILED, /* the reply lacks a value: judged as always, but a reply that would be good
                         counts as a failed check */
    LOAD_READ_FOLLOW, /* a redirect that the client follows next: good, whatever is expected */
    LOAD_READ_ASTRAY, /* a redirect that cannot be followed: a failed check, whatever is expected */
};

/* How the end of a query affects its client's session; flags. */
enum load_session_end {
    LOAD_SESSION_COMPLETED = 1,
    LOAD_SESSION_FAILED = 2,
    LOAD_SESSION_LAST = 4, /* the client asks for nothing more */
};

struct load_requests {
    unsigned kinds;                /* ro: 1 to LOAD_KINDS_MAX */
    const char *const *kind_names; /* ro: [kinds] */
    bool wants_replies;            /* ro, after begin() */
    uint32_t clients;              /* rw: before begin() how many sockets this worker has; after
                                      it how many a source of sessions has something for */
    uint64_t number;               /* ro: of requests in a log; 0: there is no end */
    const uint64_t *times_ns;      /* ro: [number] when each request is due; NULL: not a log */
    const char *ip; /* ro, after begin(): this worker connects to it; NULL: to the plan's ip */
    uint16_t port;  /* ro: of that ip */

    /* With several hosts, set in the worker process before begin(). */
    unsigned host;  /* the index of the host that this worker loads */
    unsigned turn;  /* this worker among those that load it, from 0 */
    unsigned turns; /* how many load it; 0: there is one host */

    /* In the worker process, shard of shards, before its first query; 0, or -errno after saying on
     * stderr what is wrong. */
    int (*begin)(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed);

    /* The next query of this worker; the nth has sequence shard + n * shards, and one of a log may
     * be asked for again. 0, or -1: the source wants the run to end (a script called thread:stop,
     * or failed and said so on stderr). */
    int (*next)(struct load_requests *requests, uint64_t sequence, struct load_query *query);

    /* Only if wants_replies. False: the reply is a failed check. May be NULL. */
    bool (*replied)(struct load_requests *requests, const struct load_exchange *exchange);

    /* Only of a source of sessions, instead of replied(); others NULL. */
    enum load_reading (*read)(struct load_requests *requests, const struct load_exchange *exchange);

    /* Also only of a source of sessions: a query of this client ended, as enum load_end says.
     * Returns one of enum load_session_end. */
    unsigned (*ended)(struct load_requests *requests, uint32_t client, unsigned end);

    /* In the worker, at its end. *calls and *ns become what its script took. May be NULL. */
    void (*end)(struct load_requests *requests, uint64_t *calls, uint64_t *ns);

    /* In the parent, when nobody needs it any more. */
    void (*free)(struct load_requests *requests);
};

#endif
