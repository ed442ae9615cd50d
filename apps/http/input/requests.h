/* SPDX-License-Identifier: MIT
 *
 * What: the interface of a supplier of requests: it makes the bytes of the next query. Place: the
 * worker calls next() for each query that it sends, and, if the supplier wants that, replied() for
 * each reply. The worker does not know whether the queries come from a template, a file, a log or a
 * script.
 *
 * Shape: one struct of functions, as a base that each supplier has as its first member:
 *
 *     command line, request files   template.c   bytes with places that are patched
 *     access log, HAR               replay.c     a list with times
 *     script, scenario              script.c     what a Lua function returns
 *
 * A supplier is made in the parent. In each worker process begin() is called once, before the first
 * next(), and end() is called when the worker has ended its load.
 *
 * Limits: one thread. The bytes are the supplier's, and stay until the next call of next().
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
    uint16_t kind; /* the query's kind, an index in requests->kind_names */
    bool is_head;  /* whether the method is HEAD: then the reply has no body (RFC 9110, 9.3.2) */
    /* whether the query asks to close the connection, so that no query can follow on it (RFC 9112,
     * 9.6) */
    bool is_last;
    /* how long the worker holds the query back before it writes it (a script's delay()); 0: not at
     * all */
    uint64_t delay_ns;
    const struct load_expect *expect; /* what the reply must be; NULL: what the plan says */
    uint32_t client;  /* set by the worker before next(): index of the socket that will send it;
                         below requests->clients */
    bool skips_reply; /* whether the supplier does not want to see the reply */
    bool skips_body;  /* whether the supplier wants only the head of the reply */
};

/* A whole reply, for a supplier that wants them. */
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

/* How a scenario with steps (session.c) wants a whole reply to be judged. */
enum load_reading {
    /* the reply has every value that the step takes from it (take-*.c): judge its status, fields
     * and body as usual */
    LOAD_READ_JUDGE,
    /* the reply lacks a value: judge it as usual, but if it would be good, count it as a failed
     * check */
    LOAD_READ_FAILED,
    /* the client follows this redirect next: the reply is good, whatever is expected */
    LOAD_READ_FOLLOW,
    /* this redirect cannot be followed: the reply is a failed check, whatever is expected */
    LOAD_READ_ASTRAY,
};

/* Flags that tell what the end of a query means for its client's session. */
enum load_session_end {
    LOAD_SESSION_COMPLETED = 1,
    LOAD_SESSION_FAILED = 2,
    LOAD_SESSION_LAST = 4, /* the client sends no more queries */
};

struct load_requests {
    unsigned kinds;                /* ro: 1 to LOAD_KINDS_MAX */
    const char *const *kind_names; /* ro: an array of `kinds` names */
    bool wants_replies; /* ro, after begin(): whether replied() or read() is to be called */
    /* rw: before begin() the number of sockets of this worker. If a scenario (session.c) uses each
     * row of its data once and has fewer rows than sockets, its begin() lowers this to the number
     * of rows, and the other sockets send nothing. */
    uint32_t clients;
    uint64_t number; /* ro: how many requests a log has; 0: the supplier has no end */
    /* ro: when each of the `number` requests is due; NULL: the supplier is no log */
    const uint64_t *times_ns;
    /* ro, after begin(): the address that this worker connects to; NULL: the plan's ip */
    const char *ip;
    uint16_t port; /* ro: the port of that address */

    /* With several hosts these members are set in the worker process before begin(). */
    unsigned host;  /* the index of the host that this worker loads */
    unsigned turn;  /* this worker's number among those that load the same host, from 0 */
    unsigned turns; /* how many workers load that host; 0: the run has only one host */

    /* Called in the worker process before its first query. shard is the number of the worker, from
     * 0, and shards the number of all workers. 0, or -errno after a message on stderr. */
    int (*begin)(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed);

    /* Get the next query of this worker. Its nth query has the sequence shard + n * shards. The
     * worker may ask for the same query of a log more than once. 0, or -1: the run must end,
     * because a script called thread:stop, or failed and printed a message on stderr. */
    int (*next)(struct load_requests *requests, uint64_t sequence, struct load_query *query);

    /* Called for each reply, if wants_replies. False: the reply is a failed check. May be NULL. */
    bool (*replied)(struct load_requests *requests, const struct load_exchange *exchange);

    /* Only suppliers of sessions have this function; it is called instead of replied(). */
    enum load_reading (*read)(struct load_requests *requests, const struct load_exchange *exchange);

    /* Only suppliers of sessions have this function: a query of this client has ended, and `end`
     * (enum load_end) tells how. Returns flags of enum load_session_end. */
    unsigned (*ended)(struct load_requests *requests, uint32_t client, unsigned end);

    /* Called in the worker when its load has ended. *calls becomes the number of calls of the
     * worker's script, *ns their CPU time. May be NULL. */
    void (*end)(struct load_requests *requests, uint64_t *calls, uint64_t *ns);

    /* Called in the parent, when the supplier is no longer needed. */
    void (*free)(struct load_requests *requests);
};

#endif
