/* SPDX-License-Identifier: MIT
 *
 * What: one process of the load: its share of the sockets and of the queries, on lib-sxe. Place:
 * run.c forks it and gives it a socket to talk over; the result is in memory that both see.
 *
 * Shape: the share is exact: shard i of N has every N-th socket, source address and arrival.
 *
 *     worker                         parent
 *       opens its sockets
 *       READY  ------------------->    waits for all
 *              <-------------------  GO start_ns      the same instant for all workers
 *       queries ...
 *              <-------------------  MARK end_ns      copy *result to *mark   ---> MARKED
 *              <-------------------  RATE value       from now on; implies MARK --> MARKED
 *                                                     0: nothing arrives until the next
 *              <-------------------  STOP             offer nothing more, drain
 *       DONE   ------------------->    and the process ends with status 0
 *
 * A MARK may say when the time is over; 0: as the plan says.
 *
 * If the parent goes away (end of file), the worker ends. A STOP may come at any time, also in the
 * ramp; DONE follows. READY with an error is the last word.
 *
 *     UNOPENED -> CONNECTING -> IDLE <-> PARTLY <-> BUSY     a socket is a pool element, in the
 *         ^           |           \______ THINKING ___/      state that it is in; the oldest IDLE
 *         '--- LOST <-'----------------------'               one has the next query
 *
 * When it ends by itself: all was offered and answered; or the time is over (the warm-up and then
 * the duration), and what is in flight was answered or drain_ns passed; or the server is
 * gone: no connection could be opened, and no byte came, for two timeouts. Connections
 * that rest end with FIN, the others, and all with --abort, with a reset.
 *
 * Limits: HTTP/1.1; a reply's head of SXE_HTTP_LIMITS; 16 MiB of a reply that the source wants to
 * see; under 1 KB a socket, and 32 bytes for each query that it may have in flight, kernel aside.
 */
#ifndef LOAD_WORKER_H
#define LOAD_WORKER_H

#include "plan.h"
#include "result.h"

enum load_message_type {
    LOAD_MESSAGE_GO = 1,
    LOAD_MESSAGE_MARK,
    LOAD_MESSAGE_RATE,
    LOAD_MESSAGE_STOP,
    LOAD_MESSAGE_READY,
    LOAD_MESSAGE_MARKED,
    LOAD_MESSAGE_DONE
};

/* One datagram of a SOCK_SEQPACKET socket pair. */
struct load_message {
    uint32_t type; /* enum load_message_type */
    int32_t error; /* of READY: 0, or errno: nothing could be started */
    union {
        uint64_t start_ns; /* GO: CLOCK_MONOTONIC */
        uint64_t end_ns;   /* MARK: 0, or the same clock: nothing is offered from then on */
        double rate;       /* RATE: over all workers; 0: none */
    } u;
};

struct load_worker {
    const struct load_plan *plan;
    unsigned shard;
    unsigned shards;
    struct load_result *result; /* shared */
    struct load_result *mark;   /* shared */
    int control;                /* the worker's end; it closes it */
    bool is_probe;
};

/* In the child: all of a worker's life. 0, or -errno when nothing could be started (and READY said
 * so). */
int load_worker_run(const struct load_worker *worker);

#endif
