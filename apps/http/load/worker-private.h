/* SPDX-License-Identifier: MIT
 *
 * What: what the files of a worker share. Place: included by apps/http/worker*.c only.
 *
 * Shape, in reading order; each calls those above it. socket, shake, query and pace are the state
 * machine of a socket, and call each other:
 *
 *     heap.c           what is due at which time            pure
 *     ticker.c         wakes the loop for it, to the microsecond
 *     worker-stage.c   counts what is counted seldom: stages, failures, slices of the time line
 *     worker-end.c     adds what is due, and ends the run
 *     worker-arrival.c when queries arrive, and how many wait
 *     worker-judge.c   what a whole reply is, to the source and to a session
 *     worker-self.c    what the client itself costs; copies and messages for the parent
 *     worker-socket.c  open, the ramp, close, open again    every change of a socket's state
 *     worker-shake.c   handshakes of TLS that are under way
 *     worker-query.c   send, receive, count                 every change of the accounts of queries
 *     worker-pace.c    sends what arrived and what is due; begins the run
 *     worker.c         its life, and what the parent says
 *
 * Timed events:
 *
 *     heap    QUERY      a thinking socket's next query is due
 *             HELD       a query that the source gave out with a delay is due
 *             REOPEN     a lost socket connects again
 *             TIMEOUT    look how old the socket's oldest query is: one entry a socket, which is
 *                        pushed again only when it comes up, so that a query costs no heap
 *             RAMP, START, LOOK, END, DRAINED, PATIENCE: one each, of the run
 *     arrival             the next of the pace, not in the heap
 *
 * Invariant of a closed loop's socket: in_flight + again + ready + thinking + held == depth.
 *
 * Values that would go into two histograms or slices alike are written once and copied when
 * somebody looks: in a closed loop service time is response time, and a single kind equals the
 * total.
 */
#ifndef LOAD_WORKER_PRIVATE_H
#define LOAD_WORKER_PRIVATE_H

#include "expect.h"
#include "heap.h"
#include "pace.h"
#include "reply.h"
#include "requests.h"
#include "result.h"
#include "sxe-time.h"
#include "sxe.h"
#include "ticker.h"
#include "worker.h"

#define LOAD__BATCH      64u /* first queries in a turn of the loop */
#define LOAD__LATE_NS    SXE_NS_PER_MS
#define LOAD__REOPEN_NS  (100 * SXE_NS_PER_MS)
#define LOAD__LOOK_NS    (100 * SXE_NS_PER_MS)
#define LOAD__STILL_NS   (100 * SXE_NS_PER_MS) /* so late a tick says that the client stood still */
#define LOAD__SPUN_MAX   (20 * SXE_NS_PER_US)  /* more is no CPU time: another process had it */
#define LOAD__BODY_MAX   (16u << 20)           /* of a reply that the source wants to see */
#define LOAD__UNBOUNDED  UINT64_MAX
#define LOAD__OPEN_AGAIN SXE_NS_PER_MS /* a unix listener's backlog was full */

enum load__what {
    LOAD__QUERY,
    LOAD__HELD,
    LOAD__REOPEN,
    LOAD__TIMEOUT,
    LOAD__RAMP,
    LOAD__START,
    LOAD__LOOK,
    LOAD__END,
    LOAD__DRAINED,
    LOAD__PATIENCE
};

/* A query in flight: an element of its socket's ring. */
struct load__flight {
    uint64_t intended_ns;
    uint64_t sent_ns;
    const struct load_expect *expect;
    uint32_t entry; /* of a log that is replayed */
    uint16_t kind;
    bool is_head : 1;
    bool is_seen : 1; /* somebody looks at its reply's head or body */
    bool is_kept : 1; /* the source wants to see it */
    bool is_body_kept : 1;
    uint8_t stage; /* in which it arrived; 0 if there are none */
};

_Static_assert(sizeof(struct load__flight) == 32, "docs: what a request in flight takes");

/* Bytes of a socket that are kept only for sources that ask for them. */
struct load__bytes {
    char *data; /* grows by malloc(3); freed at the end */
    size_t used;
    size_t room;
};

/* The reply that the source wants to see. */
struct load__exchange {
    struct load__bytes bytes; /* head, then body */
    size_t head_length;
};

/* A query that waits for its time: the source's own bytes do not stay. */
struct load__held {
    struct load__bytes bytes;
    uint64_t due_ns;
    uint64_t number;
    struct load_query query;
};

struct load__socket {
    struct load__worker *worker;
    struct load__flight *ring; /* [depth] */
    SXE *sxe;                  /* NULL: it has none, and is UNOPENED, LOST or DONE */
    uint64_t connect_ns;       /* when the connect began */
    uint64_t left;             /* queries that it may still offer */
    uint64_t first_byte_ns;    /* when the first byte of the reply came that is read; 0: none did */
    struct load_expect_body body;
    uint16_t in_flight;
    uint16_t oldest;     /* in its ring */
    uint16_t again;      /* in its ring after those: not seen by the server, still to be asked */
    uint16_t ready;      /* closed loop: queries that are due when it is open */
    uint16_t thinking;   /* entries QUERY in the heap */
    uint8_t state;       /* ro: enum load_socket_state, as the pool has it */
    uint8_t end;         /* enum load_end, of the reply that is read, as far as it is */
    uint8_t failure;     /* enum load_end: why we closed it; LOAD_ENDS: we did not */
    uint8_t syn_retries; /* of this connection */
    bool was_opened;     /* once */
    bool is_connected;   /* now */
    bool has_replied;    /* this connection, at least once */
    bool is_timed;       /* has an entry TIMEOUT in the heap */
    bool is_held;        /* has an entry HELD in the heap, or is_held_due */
    bool is_held_due;    /* that one waits only for the socket */
    struct load_reply reply;
};

/* Arrivals: of the pace, or of a log that is replayed. */
struct load__arrivals {
    struct load_pace pace;
    uint64_t number;  /* so many came before the next */
    uint64_t next_ns; /* LOAD_NEVER */
};

struct load__worker {
    const struct load_plan *plan;
    struct load_requests *requests;
    struct load_result *result;
    struct load_result *mark;
    unsigned shard;
    unsigned shards;

    struct load__socket *sockets; /* a pool, states LOAD_SOCKET_... */
    uint32_t number;
    unsigned depth;
    struct load__flight *rings; /* [number * depth] */
    struct load_reply_memo memo;
    struct load__held *held;          /* [number] */
    struct load__exchange *exchanges; /* [number]; NULL: the source wants no replies */
    struct ev_loop *loop;
    struct load_heap heap;
    struct load_ticker ticker;
    struct sxe_timer go_on; /* with the first queries */

    /* TLS */
    struct sxe_tls *tls; /* NULL: plain */
    char tls_name[LOAD_AUTHORITY_SIZE];
    uint32_t *shaking; /* [number] ids of sockets */
    uint32_t shaking_number;
    ev_prepare look_at_shaking; /* while there are any */

    /* The ramp */
    bool is_ramping;
    bool is_ramp_due;    /* there is an entry RAMP in the heap */
    uint32_t next;       /* socket to open; later, to begin its queries */
    uint32_t connecting; /* of the ramp */
    unsigned ramp;       /* so many at a time */
    double ramp_rate;    /* or so many a second */
    uint64_t ramp_ns;    /* when it began */

    /* The run */
    bool is_running;   /* after GO */
    bool is_offering;  /* until it is told to stop, or the time is over */
    bool has_given_up; /* the server is gone: no connection, no byte */
    bool is_over;
    bool is_paced; /* queries arrive; otherwise they follow replies */
    uint64_t start_ns;
    uint64_t end_ns;       /* nothing is offered from then on */
    uint64_t left;         /* queries to offer */
    uint64_t given;        /* by the source */
    bool is_source_slow;   /* its time is worth two readings of the clock a query */
    uint64_t held_number;  /* sockets with is_held */
    uint64_t again_number; /* over all sockets */
    uint32_t users;        /* of sessions: sockets that ask for more */
    uint64_t progress_ns;  /* when a byte came, or something was done as planned */
    uint64_t reply_ns;     /* when the last reply was whole */
    uint64_t ended_ns;     /* when the last query ended, by whatever, or was given up */

    /* Arrivals */
    struct load__arrivals arrivals; /* the next to be sent */
    struct load__arrivals ahead;    /* the next to be counted, while some wait */
    uint64_t waiting;               /* between the two */
    uint64_t free_ns;               /* since then a socket is free; LOAD_NEVER: none is */

    /* Where in the time line we are: times in [slice_ns, slice_ns + slice_width_ns) */
    struct load_slice *slice;
    uint64_t slice_ns;
    uint64_t slice_width_ns;

    /* The client itself */
    ev_check turn_begins;
    ev_prepare turn_ends;
    uint64_t turn_ns;
    uint64_t turn_end_ns; /* the last one's */
    uint64_t turn_due_ns; /* what it asked to be woken for */
    uint64_t turn_sent;   /* by its end */
    uint64_t turn_progress_ns;
    uint64_t states_ns;   /* when in_state[] was written */
    uint64_t cpu_user_ns; /* before GO */
    uint64_t cpu_system_ns;
    uint64_t run_queue_ns;

    /* The parent */
    ev_io control;
    bool is_orphan;
    bool has_begun; /* the source's begin() was called */
};

static inline uint32_t
load__id(const struct load__socket *socket)
{
    return (uint32_t)(socket - socket->worker->sockets);
}

static inline struct load__flight *
load__flight(const struct load__socket *socket, unsigned nth)
{
    unsigned depth = socket->worker->depth;
    unsigned at = socket->oldest + nth;

    return &socket->ring[at < depth ? at : at - depth];
}

/* ---- worker-stage.c, for the next ---- */

struct load_slice *load__find_slice(struct load__worker *worker, uint64_t ns);

static inline enum load_skip
load__why_unsent(const struct load__worker *worker)
{
    return worker->has_given_up ? LOAD_SKIP_GONE : LOAD_SKIP_UNSENT;
}

static inline uint64_t
load__since_start(const struct load__worker *worker, uint64_t ns)
{
    return load_later_part(ns, worker->start_ns);
}

/* To count in. */
static inline struct load_slice *
load__slice(struct load__worker *worker, uint64_t ns)
{
    return SXE_LIKELY(ns - worker->slice_ns < worker->slice_width_ns)
               ? worker->slice
               : load__find_slice(worker, ns);
}

/* The stage of a query that arrived at that time; 0 if there are none. */
static inline uint8_t
load__stage_at(const struct load__worker *worker, uint64_t ns)
{
    return (uint8_t)load_plan_stage_at(worker->plan, load__since_start(worker, ns));
}

/* ---- worker-socket.c ---- */

/* Begin to open all sockets; load__ramp_over when that is done. */
void load__ramp(struct load__worker *worker);
void load__ramp_tick(struct load__worker *worker, uint64_t now_ns);
void load__ramp_on(struct load__worker *worker, uint64_t now_ns);

/* Its state follows from what it holds. */
void load__settle(struct load__socket *socket);

/* A lost one connects again. */
void load__reopen(struct load__socket *socket);

/* No more replies come on this connection, or none is wanted: we end it in order. */
void load__close(struct load__socket *socket);

/* We reset the connection, and with it end what is in flight. */
void load__fail(struct load__socket *socket, enum load_end end, int error);

/* Prepare the end of all connections: those with a query in flight will be reset, and with --abort
 * all are. */
void load__prepare_close(struct load__worker *worker);

/* Its connection is open, with TLS if that is wanted. */
void load__opened(struct load__socket *socket, uint64_t now_ns);

/* ---- worker-shake.c ---- */

/* After sxe_init: 0, or -ENOMEM. Freed after sxe_fini. */
int load__shake_init(struct load__worker *worker);
void load__shake_free(struct load__worker *worker);

/* Its handshake began: load__opened when it is done. */
void load__shake(struct load__socket *socket);

/* Why a connection failed, if TLS knows and it is the first. */
void load__note_failure(const struct load__socket *socket, const SXE *sxe);

/* ---- worker-query.c ---- */

void load__on_read(SXE *sxe, int length);

/* Of a closed loop: send those that are due. */
void load__send_ready(struct load__socket *socket, uint64_t now_ns);

/* Ask the source for this worker's nth query and send it, or hold it for as long as the source
 * wants. One that arrived is offered already. */
void load__offer(struct load__socket *socket, uint64_t number, uint64_t intended_ns,
                 uint64_t now_ns);
void load__send_held(struct load__socket *socket);
void load__send_again(struct load__socket *socket, uint64_t now_ns);

/* The oldest in flight has no whole reply. */
void load__end_without_reply(struct load__socket *socket, enum load_end end, uint64_t now_ns);

/* The drain is over: all that is in flight failed. */
void load__end_unanswered(struct load__worker *worker, uint64_t now_ns);

/* It has one, or the close of the connection was the end of its body. */
void load__end_with_reply(struct load__socket *socket, uint64_t now_ns);

/* ---- worker-stage.c ---- */

/* Of a load with stages: that many arrived then; one was sent (1) or not after all (-1); one was
 * answered well. */
void load__stage_offered(struct load__worker *worker, uint64_t intended_ns, uint64_t number);
static inline void
load__count_offered(struct load__worker *worker, uint64_t intended_ns)
{
    worker->result->offered++;
    load__slice(worker, intended_ns)->offered++;
    if (SXE_UNLIKELY(worker->result->stages > 0))
        load__stage_offered(worker, intended_ns, 1);
}
void load__stage_sent(struct load__worker *worker, const struct load__flight *flight, int number);
void load__stage_good(struct load__worker *worker, const struct load__flight *flight,
                      uint64_t response_ns, uint64_t now_ns);

/* One that failed waited so long and got no good reply: a lower bound of a time that nobody knows.
 * One that failed early would not have been answered well until the timeout, either. */
void load__count_failed(struct load__worker *worker, const struct load__flight *flight,
                        uint64_t waited_ns, uint64_t now_ns);
uint64_t load__failed_wait_ns(const struct load__worker *worker, const struct load__flight *flight,
                              enum load_end end, uint64_t now_ns);

void load__note_error(struct load__worker *worker, int error);

/* ---- worker-judge.c ---- */

/* The first thing that is wrong with a whole reply; the source sees each that it wants. */
enum load_end load__judge(struct load__socket *socket, const struct load__flight *flight,
                          uint64_t now_ns);

/* A query of a session ended so. */
void load__end_step(struct load__socket *socket, enum load_end end);

/* ---- worker-end.c ---- */

/* At that time, on_tick does this for that socket, or for the run. */
void load__push(struct load__worker *worker, uint64_t ns, enum load__what what, uint32_t id);

/* Offer nothing more, wait for what is in flight for as long as the plan says. */
void load__stop(struct load__worker *worker, uint64_t now_ns);

/* Stop then. */
void load__end_at(struct load__worker *worker, uint64_t end_ns);

/* Nothing more is waited for. */
void load__end(struct load__worker *worker);

/* If nothing is left to do, end. */
void load__end_when_done(struct load__worker *worker);

/* ---- worker-arrival.c ---- */

/* Set the time of the next arrival; pass it, and set that of the one after. */
void load__next_arrival(const struct load__worker *worker, struct load__arrivals *arrivals);
void load__pass_arrival(const struct load__worker *worker, struct load__arrivals *arrivals);

/* Count arrivals up to now_ns that wait for a socket as offered. */
void load__count_waiting(struct load__worker *worker, uint64_t now_ns);
void load__drop_waiting(struct load__worker *worker, uint64_t now_ns);

/* ---- worker-pace.c ---- */

void load__on_tick(struct load_ticker *ticker, uint64_t asked_ns);

/* GO: begin at start_ns. */
void load__go(struct load__worker *worker, uint64_t start_ns);

/* A socket is free, or an arrival is due: send those that can be, and ask for the next tick. */
void load__arrive(struct load__worker *worker, uint64_t now_ns);

void load__set_rate(struct load__worker *worker, double rate);

/* ---- worker-self.c ---- */

void load__watch_turns(struct load__worker *worker);
void load__unwatch_turns(struct load__worker *worker);
void load__start_accounts(struct load__worker *worker);

/* Update figures that are computed on demand: states, CPU, waiting requests. */
void load__bring_up_to_date(struct load__worker *worker, uint64_t now_ns);
void load__copy_result(struct load_result *to, const struct load_result *result);
void load__tell_parent(const struct load__worker *worker, enum load_message_type type, int error);

/* All sockets are open, or failed to: the parent is told. */
void load__ramp_over(struct load__worker *worker);

#endif
