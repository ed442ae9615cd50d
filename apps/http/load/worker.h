/* SPDX-License-Identifier: MIT
 *
 * What: a worker, which is one process that makes a part of the load with its part of the sockets,
 * on lib-sxe. Place: run-workers.c forks it, with a socket for messages. Worker and parent share
 * the memory of the result.
 *
 * Shape: worker i of N has every N-th socket, source address and arrival, beginning with number i.
 *
 *     worker                         parent
 *       ALIVE  ------------------->    from now on the loop runs
 *              <-------------------  ASK              at any time       ---> ALIVE
 *       opens its sockets
 *       READY  ------------------->    waits for all
 *              <-------------------  GO start_ns      the same instant for all workers
 *       queries ...
 *              <-------------------  MARK end_ns      copy *result to *mark   ---> MARKED
 *              <-------------------  RATE value       from now on; implies MARK --> MARKED
 *                                                     0: nothing arrives until the next RATE
 *              <-------------------  STOP             offer nothing more, drain
 *       DONE   ------------------->    and the process ends with status 0
 *
 * The end_ns of a MARK is the time at which the load ends; 0: at the time that the plan says.
 *
 * If the parent goes away (end of file), the worker ends. A STOP may come at any time, also in the
 * ramp; DONE follows. After READY with an error the worker sends nothing more.
 *
 *     UNOPENED -> CONNECTING -> IDLE <-> PARTLY <-> BUSY     a socket is an element of a pool, with
 *         ^           |           \______ THINKING ___/      one of these states; the oldest IDLE
 *         '--- LOST <-'----------------------'               one sends the next query
 *
 * A worker ends by itself in three cases. All queries were offered and have ended. Or the time is
 * over (the warm-up and then the duration), and no query is in flight or drain_ns have passed. Or
 * the server is gone: for twice the timeout no connection opened and no byte came. Idle connections
 * end with FIN; other connections, and with --abort all, end with a reset.
 *
 * Limits: HTTP/1.1; a reply's head within SXE_HTTP_LIMITS; 16 MiB of a reply that the supplier
 * wants to see. A socket takes less than 1 KB of memory, and 32 bytes for each query that it may
 * have in flight; the kernel's memory comes on top.
 */
#ifndef LOAD_WORKER_H
#define LOAD_WORKER_H

#include <sys/types.h>

#include "plan.h"
#include "result.h"

enum load_message_type {
    LOAD_MESSAGE_GO = 1,
    LOAD_MESSAGE_MARK,
    LOAD_MESSAGE_RATE,
    LOAD_MESSAGE_STOP,
    LOAD_MESSAGE_ASK,
    LOAD_MESSAGE_ALIVE,
    LOAD_MESSAGE_READY,
    LOAD_MESSAGE_MARKED,
    LOAD_MESSAGE_DONE
};

/* A message: one datagram on a SOCK_SEQPACKET socket pair. */
struct load_message {
    uint32_t type; /* enum load_message_type */
    int32_t error; /* READY: 0, or the errno with which the worker could not start */
    union {
        uint64_t start_ns; /* GO: the time at which the queries begin, by CLOCK_MONOTONIC */
        /* MARK: the time from which no query is offered, by CLOCK_MONOTONIC; 0: no change */
        uint64_t end_ns;
        double rate; /* RATE: the rate of all workers together; 0: nothing arrives */
    } u;
};

struct load_worker {
    const struct load_plan *plan;
    unsigned shard;
    unsigned shards;
    struct load_result *result; /* in memory shared with the parent */
    struct load_result *mark;   /* in memory shared with the parent */
    int control;                /* the worker's end of the socket; the worker closes it */
    bool is_probe;
};

/* Receive the next message of a worker, at the parent's end of the socket. Returns the result of
 * recv(2), which does not block. */
ssize_t load_worker_message(int control, struct load_message *message);

/* Run a worker to its end, in the child process. 0; or -errno: the worker could not start, and has
 * sent the error to the parent in READY. */
int load_worker_run(const struct load_worker *worker);

#endif
