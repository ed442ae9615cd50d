/* SPDX-License-Identifier: MIT
 *
 * What: where the bytes of the next query come from. Place: the worker asks next() for each query
 * it sends, and tells replied() about each reply, if the supplier wants that. The worker does not
 * know whether the queries come from a template, a file, a log or a script.
 *
 * Shape: one struct of functions, as a base that each supplier has as its first member:
 *
 *     command line, request files   template.c   bytes with places that are patched
 *     access log, HAR               replay.c     a list with times
 *     script, scenario              script.c     what a Lua function returns
 *
 * A supplier is made in the parent; begin() is called once in each worker process, before its first
 * next(), and end() when it is done.
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
    uint16_t kind; /* below requests->kinds */
    bool is_head;  /* HEAD: its reply has no body (RFC 9110, 9.3.2) */
    /* whether it asks to close the connection, which then sends no other query after it (RFC 9112,
     * 9.6) */
    bool is_last;
    /* how long to hold it back before writing it (a script's delay()); 0: not at all */
    uint64_t delay_ns;
    const struct load_expect *expect; /* what the reply must be; NULL: the plan says so */
    uint32_t client;  /* set by the worker before next(): index of the socket that will send it;
                         below requests->clients */
    bool skips_reply; /* whether not to show its reply to the supplier */
    bool skips_body;  /* whether to keep only the head of its reply */
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

/* How a scenario with steps (session.c) goes on after a whole reply. */
enum load_reading {
    LOAD_READ_JUDGE,  /* the reply has every value that the step takes from it (take-*.c); status,
                         fields and body are judged as always */
    LOAD_READ_FAILED, /* the reply lacks a value: judged as always, but a reply that would be good
                         counts as a failed check */
    LOAD_READ_FOLLOW, /* a redirect that the client follows next: good, whatever is expected */
    LOAD_READ_ASTRAY, /* a redirect that cannot be followed: a failed check, whatever is expected */
};

/* Flags: how the end of a query changes its client's session. */
enum load_session_end {
    LOAD_SESSION_COMPLETED = 1,
    LOAD_SESSION_FAILED = 2,
    LOAD_SESSION_LAST = 4, /* the client asks for nothing more */
};

struct load_requests {
    unsigned kinds;                /* ro: 1 to LOAD_KINDS_MAX */
    const char *const *kind_names; /* ro: an array of `kinds` names */
    bool wants_replies; /* ro, after begin(): whether replied() or read() is to be called */
    uint32_t clients;   /* rw: before begin() how many sockets this worker has; after
                                      it how many a supplier of sessions has something for */
    uint64_t number;    /* ro: how many requests a log has; 0: the supplier has no end */
    /* ro: when each of the `number` requests is due; NULL: the supplier is no log */
    const uint64_t *times_ns;
    /* ro, after begin(): the address that this worker connects to; NULL: the plan's ip */
    const char *ip;
    uint16_t port; /* ro: the port at that ip */

    /* With several hosts, set in the worker process before begin(). */
    unsigned host;  /* the index of the host that this worker loads */
    unsigned turn;  /* this worker's number among those that load the same host, from 0 */
    unsigned turns; /* how many workers load that host; 0: there is one host */

    /* In the worker process, shard of shards, before its first query; 0, or -errno after saying on
     * stderr what is wrong. */
    int (*begin)(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed);

    /* Get the next query of this worker. Its nth query has the sequence shard + n * shards; a query
     * of a log may be asked for again. 0, or -1: the supplier wants the run to end (a script called
     * thread:stop, or failed and said so on stderr). */
    int (*next)(struct load_requests *requests, uint64_t sequence, struct load_query *query);

    /* Called for each reply, if wants_replies. False: the reply is a failed check. May be NULL. */
    bool (*replied)(struct load_requests *requests, const struct load_exchange *exchange);

    /* Called instead of replied() by suppliers of sessions; NULL in others. */
    enum load_reading (*read)(struct load_requests *requests, const struct load_exchange *exchange);

    /* In suppliers of sessions, too: a query of this client has ended, as enum load_end says.
     * Returns flags of enum load_session_end. */
    unsigned (*ended)(struct load_requests *requests, uint32_t client, unsigned end);

    /* Called in the worker, at its end. *calls and *ns become the calls and the CPU time of its
     * script. May be NULL. */
    void (*end)(struct load_requests *requests, uint64_t *calls, uint64_t *ns);

    /* Called in the parent, when the supplier is no longer needed. */
    void (*free)(struct load_requests *requests);
};

#endif
