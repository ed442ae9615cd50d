/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the files of a worker share. A worker is one process that sends its part
 * of the load.
 * Place: apps/http/load/worker*.c only.
 *
 * Words: a *query* is one request of the load, from the moment it is offered to its reply, failure
 * or timeout. The *supplier* (requests.h) makes the queries, from a template, a log or a script. In
 * a *closed loop* a query follows a reply; with a pace or a log, queries *arrive* at times of their
 * own, and wait if no socket is free. `depth` is how many queries a socket may have in flight. A
 * socket *thinks* while it waits, after a reply, for the time of its next query.
 *
 * Shape, in reading order; each file calls those above it only. worker-read.c and worker-socket.c
 * decide what follows when a query or a handshake ends:
 *
 *     heap.c           timed events, the earliest first     pure
 *     ticker.c         wakes the loop for the next event, to the microsecond
 *     worker-stage.c   counts what is rare: a new slice of the time line, a stage, a failure
 *     worker-end.c     adds timed events, and ends the run
 *     worker-judge.c   judges complete replies, and tells the supplier's session the outcome
 *     worker-state.c   changes a socket's state: settles, fails, closes it
 *     worker-query.c   sends, holds, ends and counts queries
 *     worker-arrival.c when queries arrive, how many wait, and on which sockets they are sent
 *     worker-self.c    the client's own CPU time and lags; copies and messages for the parent
 *     worker-address.c which address of the host a connection takes
 *     worker-shake.c   handshakes of TLS that are under way
 *     worker-read.c    replies as they come, and what their sockets do next
 *     worker-socket.c  opens sockets: at the beginning, in a ramp, and again when they are lost
 *     worker-pace.c    handles timed events, begins the run
 *     worker.c         a worker from begin to end; obeys the parent's messages
 *
 * Timed events:
 *
 *     heap    QUERY      a thinking socket's next query is due
 *             HELD       a query that the supplier returned with a delay is due
 *             REOPEN     a lost socket connects again
 *             TIMEOUT    look how old the socket's oldest query is. A socket has at most one such
 *                        entry, and gets the next when this one is taken out of the heap: so a
 *                        query that is answered in time needs no entry of its own
 *             RAMP, START, LOOK, END, DRAINED, PATIENCE belong to the whole run; the heap has
 *                        at most two of END and one of each other
 *     arrivals           the next one is in struct load__arrivals, not in the heap
 *
 * Invariant of a closed loop's socket: in_flight + again + ready + thinking + held == depth.
 *
 * Some times belong in two histograms, but are recorded in one and copied when the result is read:
 * in a closed loop service times equal response times, and if all queries are of one kind, its
 * times equal those of the total.
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

#define LOAD__BATCH     64u /* most sockets that send their first query in one turn of the loop */
#define LOAD__LATE_NS   SXE_NS_PER_MS
#define LOAD__REOPEN_NS (100 * SXE_NS_PER_MS)
#define LOAD__LOOK_NS   (100 * SXE_NS_PER_MS)

/* If a turn of the loop comes this late, the client stood still. */
#define LOAD__STILL_NS (100 * SXE_NS_PER_MS)

/* If a turn that only looked for events took longer than this, another process ran. */
#define LOAD__SPUN_MAX (20 * SXE_NS_PER_US)

#define LOAD__BODY_MAX   (16u << 20) /* most bytes of a reply that are kept for the supplier */
#define LOAD__UNBOUNDED  UINT64_MAX
#define LOAD__OPEN_AGAIN SXE_NS_PER_MS /* how long to wait if a unix listener's backlog is full */

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
    uint32_t entry; /* the query's index in the log that is replayed */
    uint16_t kind;
    bool is_head : 1;      /* its method is HEAD */
    bool is_last : 1;      /* it asks the server to close the connection */
    bool is_seen : 1;      /* its reply's bytes are checked or kept, not only counted */
    bool is_kept : 1;      /* its reply's head is kept for the supplier */
    bool is_body_kept : 1; /* its reply's body is kept for the supplier, too */
    uint8_t stage;         /* the stage of the plan in which it arrived; 0: the plan has none */
};

_Static_assert(sizeof(struct load__flight) == 32, "docs: what a request in flight takes");

/* A growing buffer. A socket has one only if the supplier delays queries or wants replies. */
struct load__bytes {
    char *data; /* allocated by malloc(3), and freed at the end */
    size_t used;
    size_t room;
};

/* The reply that the supplier wants to see. */
struct load__exchange {
    struct load__bytes bytes; /* head, then body */
    size_t head_length;
};

/* A query that the supplier returned with a delay: a copy, because the supplier reuses its own
 * bytes. */
struct load__held {
    struct load__bytes bytes;
    uint64_t due_ns;
    uint64_t nth; /* of the queries of this worker */
    struct load_query query;
};

struct load__socket {
    struct load__worker *worker;
    struct load__flight *ring; /* an array of `depth` elements */
    SXE *sxe; /* the connection; NULL: there is none, and the state is UNOPENED, LOST or DONE */
    uint64_t connect_ns;    /* when the connect began */
    uint64_t shake_ns;      /* when its TLS handshake began */
    uint64_t ready_ns;      /* when that handshake was done */
    uint64_t left;          /* how many queries this socket may still offer */
    uint64_t first_byte_ns; /* when the present reply's first byte came; 0: not yet */
    struct load_expect_body body;
    uint16_t in_flight; /* how many queries in the ring wait for replies */
    uint16_t oldest;    /* index in the ring of the oldest query in flight */
    /* how many queries after those in flight are to be sent again on a new connection */
    uint16_t again;
    uint16_t ready; /* in a closed loop: how many queries to send as soon as the socket is open */
    uint16_t thinking; /* how many QUERY events the heap has for this socket */
    uint8_t state;     /* ro: enum load_socket_state, also its state in the pool */
    uint8_t end; /* enum load_end: the first fault of the present reply; LOAD_END_OK: none so far */
    /* enum load_end: why the worker closed the connection; LOAD_ENDS: it did not */
    uint8_t failure;
    uint8_t address;     /* index in by_address of the address that it connects to */
    uint8_t syn_retries; /* how many SYNs of this connection were sent again */
    bool was_opened;     /* whether a connection of this socket has ever opened */
    bool is_connected;   /* a connection is open now */
    bool is_resuming;    /* this connection is to resume a TLS session, so it uses tls_resuming */
    bool has_replied;    /* this connection had at least one reply */
    bool is_ending;      /* this connection's last query was sent, and asked the server to close */
    bool is_timed;       /* the heap has a TIMEOUT event for this socket */
    bool is_held;        /* a query is held: the heap has a HELD event, or is_held_due */
    bool is_held_due;    /* the held query is due, and waits for the connection */
    struct load_reply reply;
};

/* Arrivals: of the pace, or of a log that is replayed. */
struct load__arrivals {
    struct load_pace pace;
    uint64_t index;   /* of the next arrival, from 0 */
    uint64_t next_ns; /* time of the next arrival; LOAD_NEVER: there is none */
};

struct load__worker {
    const struct load_plan *plan;
    struct load_requests *requests;
    struct load_result *result;
    struct load_result *mark;
    unsigned shard;
    unsigned shards;

    struct load__socket *sockets; /* the array of a pool with the states LOAD_SOCKET_... */
    uint32_t number;
    unsigned depth;
    struct load__flight *rings; /* `depth` elements for each socket */
    struct load_reply_memo memo;
    struct load__held *held; /* an element for each socket */
    /* an element for each socket; NULL: the supplier does not want to see replies */
    struct load__exchange *exchanges;
    struct ev_loop *loop;
    struct load_heap heap;
    struct load_ticker ticker;
    struct sxe_timer go_on; /* in a closed loop: sends the first queries, LOAD__BATCH in a turn */

    /* TLS */
    struct sxe_tls *tls;          /* NULL: plain connections */
    struct sxe_tls *tls_resuming; /* for connections that are to resume a session */
    /* the percents of connections add up here; at 100 the next connection resumes a session */
    unsigned resume_owed;
    char tls_name[LOAD_AUTHORITY_SIZE];
    uint32_t *shaking; /* the ids of the sockets whose handshakes are under way */
    uint32_t shaking_number;
    ev_prepare look_at_shaking; /* active while shaking_number is above 0 */

    unsigned turn; /* how many connections have begun; chooses the address of the next */

    /* The ramp */
    bool is_ramping;
    bool is_ramp_due; /* whether the heap has a RAMP event */
    uint32_t next;    /* the next socket to open; afterwards the next one to send its first query */
    uint32_t connecting; /* how many sockets of the ramp are connecting */
    unsigned ramp;       /* how many sockets may connect at a time */
    double ramp_rate;    /* sockets to open in a second; 0: use ramp */
    uint64_t ramp_ns;    /* when the ramp began */

    /* The run */
    bool is_running;   /* the parent has sent GO */
    bool is_offering;  /* queries are still sent: no STOP has come, and the time is not over */
    bool has_given_up; /* the server seems to be gone: no connection opens, and no byte comes */
    bool is_over;
    bool is_paced; /* queries arrive at times of their own; false: they follow replies */
    uint64_t start_ns;
    uint64_t end_ns; /* from this time on no query is offered; LOAD_NEVER: there is no such time */
    uint64_t left;   /* how many queries are still to be offered */
    uint64_t given;  /* how many queries the supplier has returned */
    bool is_supplier_slow; /* read the clock around each call of the supplier, not only some */
    uint64_t held_number;  /* how many sockets have is_held */
    uint64_t again_number; /* sum of `again` over all sockets */
    uint32_t users;        /* how many sockets have a session that goes on */
    uint64_t progress_ns;  /* when the last byte came, or the last planned event happened in time */
    uint64_t reply_ns;     /* when the last reply was complete */
    uint64_t ended_ns;     /* when the last query ended: was answered, failed or was given up */

    /* Arrivals */
    struct load__arrivals arrivals; /* the next arrival that is to be sent */
    /* the next arrival that will be counted as waiting; unused if none waits */
    struct load__arrivals ahead;
    uint64_t waiting; /* how many arrivals were counted and not sent: from `arrivals` to `ahead` */
    uint64_t free_ns; /* since when some socket is free; LOAD_NEVER: all are busy */

    /* The present slice of the time line, for times in [slice_ns, slice_ns + slice_width_ns). */
    struct load_slice *slice;
    uint64_t slice_ns;
    uint64_t slice_width_ns;

    /* The client itself */
    ev_check turn_begins;
    ev_prepare turn_ends;
    uint64_t turn_ns;          /* when the present turn began */
    uint64_t turn_end_ns;      /* when the last turn ended */
    uint64_t turn_due_ns;      /* the ticker's time at the end of the last turn */
    uint64_t turn_sent;        /* result->sent at the end of the last turn */
    uint64_t turn_progress_ns; /* progress_ns at the end of the last turn */
    uint64_t states_ns;        /* when in_state[] was written */
    uint64_t cpu_user_ns;      /* CPU time and waits before the queries began */
    uint64_t cpu_system_ns;
    uint64_t run_queue_ns;

    /* The link to the parent */
    ev_io control;
    bool is_orphan;
    bool has_begun; /* the supplier's begin() was called, so its end() must be called */
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

/* ---- worker-stage.c, for load__slice ---- */

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

/* The slice of the time line in which to count at time ns. */
static inline struct load_slice *
load__slice(struct load__worker *worker, uint64_t ns)
{
    return SXE_LIKELY(ns - worker->slice_ns < worker->slice_width_ns)
               ? worker->slice
               : load__find_slice(worker, ns);
}

/* The stage of a query that arrived at ns; 0: the plan has no stages. */
static inline uint8_t
load__stage_at(const struct load__worker *worker, uint64_t ns)
{
    return (uint8_t)load_plan_stage_at(worker->plan, load__since_start(worker, ns));
}

/* ---- worker-socket.c ---- */

/* Begin to open all sockets. When all are open or have failed, load__ramp_over is called.
 * load__ramp_tick handles the event RAMP. load__ramp_on opens further sockets, after one has opened
 * or failed. */
void load__ramp(struct load__worker *worker);
void load__ramp_tick(struct load__worker *worker, uint64_t now_ns);
void load__ramp_on(struct load__worker *worker, uint64_t now_ns);

/* Connect a lost socket again. */
void load__reopen(struct load__socket *socket);

/* Before the loop ends: have connections end by RST if they have queries in flight; with --abort,
 * all connections. */
void load__prepare_close(struct load__worker *worker);

/* Use the connections whose handshakes are done. load__shake_init gets this function, and the loop
 * calls it. */
void load__look_at_shaking(struct ev_loop *loop, ev_prepare *watcher, int events);

/* ---- worker-state.c ---- */

/* Set the socket's state, which follows from its other members. */
void load__settle(struct load__socket *socket);

/* Close the connection with FIN: no more replies will come on it, or none are wanted. */
void load__close(struct load__socket *socket);

/* Reset the connection, and end all its queries in flight as `end`. */
void load__fail(struct load__socket *socket, enum load_end end, int error);

/* ---- worker-shake.c ---- */

/* Call load__shake_init after sxe_init, and load__shake_free after sxe_fini. 0 or -ENOMEM. The loop
 * calls `look` at the end of each turn while handshakes are under way. */
typedef void load__on_turn(struct ev_loop *loop, ev_prepare *watcher, int events);
int load__shake_init(struct load__worker *worker, load__on_turn *look);
void load__shake_free(struct load__worker *worker);

/* Make the socket speak TLS. Call it before the socket connects. 0 or -errno. */
int load__shake_begin(struct load__socket *socket, SXE *sxe);

/* The socket's handshake has begun: load__next_shaken returns the socket when it is done. */
void load__shake(struct load__socket *socket);

/* The next socket whose handshake is done, from the last to the first; NULL: no more. *at is
 * worker->shaking_number at first. Handshakes that are done or have failed are forgotten. */
struct load__socket *load__next_shaken(struct load__worker *worker, uint32_t *at);

/* Note why TLS failed, if this is the first such failure. */
void load__note_failure(const struct load__socket *socket, const SXE *sxe);

/* ---- worker-read.c ---- */

void load__on_read(SXE *sxe, int length);

/* ---- worker-query.c ---- */

/* Append bytes; that may move the bytes that are there already. 0 or -ENOMEM. */
int load__keep_bytes(struct load__bytes *bytes, const char *data, size_t length);

/* In a closed loop, send the socket's ready queries. load__may_send: whether it has any to send. */
void load__send_ready(struct load__socket *socket, uint64_t now_ns);
bool load__may_send(const struct load__socket *socket);

/* Ask the supplier for this worker's nth query, and send it, or hold it as long as the supplier
 * says. An arrival has been counted as offered already; in a closed loop this function counts it.
 */
void load__offer(struct load__socket *socket, uint64_t nth, uint64_t intended_ns, uint64_t now_ns);
void load__send_held(struct load__socket *socket);
void load__send_again(struct load__socket *socket, uint64_t now_ns);

/* End the oldest query in flight, which has no complete reply. */
void load__end_without_reply(struct load__socket *socket, enum load_end end, uint64_t now_ns);

/* End all queries in flight as failed, when the drain is over. */
void load__end_unanswered(struct load__worker *worker, uint64_t now_ns);

/* End the oldest query in flight, whose reply is complete, maybe by the connection's close. */
void load__end_with_reply(struct load__socket *socket, uint64_t now_ns);

/* ---- worker-stage.c ---- */

/* These three count for each stage, if the plan has stages. load__stage_offered counts `number`
 * arrivals at intended_ns. load__stage_sent counts a query that was sent (number 1), or subtracts
 * one that has to be sent again (-1). load__stage_good counts a good reply. */
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

/* Count a failed query: its reply would have taken waited_ns or longer. load__failed_wait_ns
 * computes waited_ns: the time since the query was sent; and at least the timeout, unless the end
 * is UNANSWERED (result.h says why). */
void load__count_failed(struct load__worker *worker, const struct load__flight *flight,
                        uint64_t waited_ns, uint64_t now_ns);
uint64_t load__failed_wait_ns(const struct load__worker *worker, const struct load__flight *flight,
                              enum load_end end, uint64_t now_ns);

void load__note_error(struct load__worker *worker, int error);

/* ---- worker-address.c ---- */

/* List the host's addresses in the result, if it has several. */
void load__list_addresses(const struct load__worker *worker);

/* Choose the address of a new connection: the host's addresses take turns, and each worker begins
 * with another one. */
const char *load__take_address(struct load__socket *socket);

/* Count that a connection to the socket's address has opened or failed. */
void load__address_opened(const struct load__socket *socket);
void load__address_failed(const struct load__socket *socket, int error);

/* ---- worker-judge.c ---- */

/* Judge a complete reply: returns the first thing wrong with it, or LOAD_END_OK. Shows the
 * reply to the supplier, if the supplier wants replies. */
enum load_end load__judge(struct load__socket *socket, const struct load__flight *flight,
                          uint64_t now_ns);

/* Tell the socket's session that its query has ended as `end`. */
void load__end_step(struct load__socket *socket, enum load_end end);

/* ---- worker-end.c ---- */

/* Add an event: at ns load__on_tick does `what`, for the socket `id` or, with id 0, for the run. */
void load__push(struct load__worker *worker, uint64_t ns, enum load__what what, uint32_t id);

/* Offer nothing more, and wait for queries in flight, for at most the plan's drain_ns. */
void load__stop(struct load__worker *worker, uint64_t now_ns);

/* Stop at end_ns. */
void load__end_at(struct load__worker *worker, uint64_t end_ns);

/* End the loop now, without waiting for anything. */
void load__end(struct load__worker *worker);

/* End the loop if nothing is left to do. */
void load__end_when_done(struct load__worker *worker);

/* ---- worker-arrival.c ---- */

/* Set arrivals->next_ns, the time of the next arrival. load__pass_arrival first goes on to the
 * arrival after it. */
void load__next_arrival(const struct load__worker *worker, struct load__arrivals *arrivals);
void load__pass_arrival(const struct load__worker *worker, struct load__arrivals *arrivals);

/* Count all arrivals up to now_ns that were not sent, for lack of a free socket, as offered and
 * waiting. load__drop_waiting does that, and then counts them as skipped: they are never sent. */
void load__count_waiting(struct load__worker *worker, uint64_t now_ns);
void load__drop_waiting(struct load__worker *worker, uint64_t now_ns);

/* Send due arrivals as far as sockets are free, and ask for the next tick. Call it when a socket
 * becomes free or an arrival is due. load__may_arrive: whether another arrival is to be sent. */
void load__arrive(struct load__worker *worker, uint64_t now_ns);
bool load__may_arrive(const struct load__worker *worker);

/* ---- worker-pace.c ---- */

void load__on_tick(struct load_ticker *ticker, uint64_t asked_ns);

/* Obey the message GO: begin the queries at start_ns. */
void load__go(struct load__worker *worker, uint64_t start_ns);

void load__set_rate(struct load__worker *worker, double rate);

/* ---- worker-self.c ---- */

void load__watch_turns(struct load__worker *worker);
void load__unwatch_turns(struct load__worker *worker);
void load__start_accounts(struct load__worker *worker);

/* Update figures that are computed on demand: states, CPU time, waiting queries, copied times. */
void load__bring_up_to_date(struct load__worker *worker, uint64_t now_ns);
void load__copy_result(struct load_result *to, const struct load_result *result);
void load__tell_parent(const struct load__worker *worker, enum load_message_type type, int error);

/* Send READY to the parent: all sockets are open or have failed. */
void load__ramp_over(struct load__worker *worker);

#endif
