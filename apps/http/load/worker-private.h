/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the files of a worker share. A worker is one process that sends its part
 * of the load.
 * Place: apps/http/load/worker*.c only.
 *
 * Words: a *query* is one request of the load, from the moment it is offered to its reply, failure
 * or timeout. It is *offered* when it is counted as a part of the load, even if it can be sent only
 * later, or not at all. The *supplier* (requests.h) makes the queries, from a template, a log or a
 * script. In a *closed loop* a query follows a reply; with a pace or a log, queries *arrive* at
 * times of their own, and wait if no socket is free. `depth` is how many queries a socket may have
 * in flight. A socket *thinks* while it waits, after a reply, for the time of its next query.
 *
 * Shape: the files, in reading order. Each file calls only files above it. When a query or a
 * handshake ends, worker-read.c or worker-socket.c decides what the socket does next:
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
 * Some times belong to two histograms, but are recorded in one, which is copied to the other when
 * the result is read: in a closed loop service times equal response times, and if all queries are
 * of one kind, the times of this kind are the times of all queries.
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

/* the most sockets that send their first query in one turn of the loop */
#define LOAD__BATCH     64u
#define LOAD__LATE_NS   SXE_NS_PER_MS
#define LOAD__REOPEN_NS (100 * SXE_NS_PER_MS)
#define LOAD__LOOK_NS   (100 * SXE_NS_PER_MS)

/* If a turn of the loop begins later than expected by this time, the client was stopped, or got no
 * CPU. */
#define LOAD__STILL_NS (100 * SXE_NS_PER_MS)

/* If a turn that did nothing but look for events took longer than this time, another process ran
 * meanwhile. */
#define LOAD__SPUN_MAX (20 * SXE_NS_PER_US)

#define LOAD__BODY_MAX   (16u << 20) /* the most bytes of a reply that are kept for the supplier */
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
    uint32_t entry; /* the query's index in the log that is replayed (--replay) */
    uint16_t kind;
    bool is_head : 1; /* its method is HEAD */
    bool is_last : 1; /* it asks the server to close the connection */
    /* its reply's bytes are checked or kept for the supplier, not only counted */
    bool is_seen : 1;
    bool is_kept : 1;      /* its reply's head is kept for the supplier */
    bool is_body_kept : 1; /* its reply's body is kept for the supplier, too */
    /* the stage of --stages in which the query arrived; 0: the plan has no stages */
    uint8_t stage;
};

_Static_assert(sizeof(struct load__flight) == 32, "docs: what a request in flight takes");

/* A growing buffer. A socket has such buffers only if the supplier delays queries or wants to see
 * replies. */
struct load__bytes {
    char *data; /* allocated by malloc(3), and freed at the end */
    size_t used;
    size_t room;
};

/* The reply that the supplier wants to see. */
struct load__exchange {
    struct load__bytes bytes; /* the reply's head, and after it the body */
    size_t head_length;
};

/* A query that the supplier returned with a delay. It is a copy, because the supplier uses its own
 * bytes again. */
struct load__held {
    struct load__bytes bytes;
    uint64_t due_ns;
    uint64_t nth; /* the query's number among the queries of this worker */
    struct load_query query;
};

struct load__socket {
    struct load__worker *worker;
    struct load__flight *ring; /* an array of `depth` elements */
    /* the connection; NULL: the socket has none, and its state is UNOPENED, LOST or DONE */
    SXE *sxe;
    uint64_t connect_ns; /* when the socket began to connect */
    uint64_t shake_ns;   /* when the connection's TLS handshake began */
    uint64_t ready_ns;   /* when the connection's TLS handshake was done */
    uint64_t left;       /* how many more queries this socket may offer */
    /* when the first byte of the present reply came; 0: no byte of it has come */
    uint64_t first_byte_ns;
    struct load_expect_body body;
    uint16_t in_flight; /* how many queries in the ring wait for replies */
    uint16_t oldest;    /* index in the ring of the oldest query in flight */
    /* how many queries, besides those in flight, are to be sent again on a new connection */
    uint16_t again;
    uint16_t ready; /* in a closed loop: how many queries to send as soon as the socket is open */
    uint16_t thinking; /* how many QUERY events the heap has for this socket */
    uint8_t state;     /* ro: enum load_socket_state, also its state in the pool */
    /* enum load_end: what was found wrong with the present reply first; LOAD_END_OK: nothing so
     * far */
    uint8_t end;
    /* enum load_end: why the worker closes the connection; LOAD_ENDS: it does not close it */
    uint8_t failure;
    /* index in by_address of the address of the server that the socket connects to */
    uint8_t address;
    uint8_t syn_retries; /* how often this connection's SYN was sent again */
    bool was_opened;     /* whether a connection of this socket has ever opened */
    bool is_connected;   /* a connection is open now */
    /* this connection is to resume a TLS session, so it uses the context tls_resuming */
    bool is_resuming;
    bool has_replied; /* this connection had at least one reply */
    /* this connection's last query was sent, and asked the server to close the connection */
    bool is_ending;
    bool is_timed; /* the heap has a TIMEOUT event for this socket */
    /* the supplier returned a query with a delay, which is not over (the heap has a HELD event) or
     * is over (is_held_due) */
    bool is_held;
    /* the delay of the held query is over, and the query waits for the connection */
    bool is_held_due;
    struct load_reply reply;
};

/* A sequence of arrivals, from the pace, or from a log that is replayed. */
struct load__arrivals {
    struct load_pace pace;
    uint64_t index;   /* the index of the next arrival, from 0 */
    uint64_t next_ns; /* time of the next arrival; LOAD_NEVER: there is none */
};

struct load__worker {
    const struct load_plan *plan;
    struct load_requests *requests;
    struct load_result *result;
    struct load_result *mark;
    unsigned shard;
    unsigned shards;

    /* the elements of a pool, whose states are enum load_socket_state */
    struct load__socket *sockets;
    uint32_t number;
    unsigned depth;
    struct load__flight *rings; /* the rings of all sockets: `depth` elements for each */
    struct load_reply_memo memo;
    struct load__held *held; /* one element for each socket */
    /* one element for each socket; NULL: the supplier does not want to see replies */
    struct load__exchange *exchanges;
    struct ev_loop *loop;
    struct load_heap heap;
    struct load_ticker ticker;
    /* in a closed loop: sends the first queries, of LOAD__BATCH sockets in each turn */
    struct sxe_timer go_on;

    /* TLS */
    struct sxe_tls *tls;          /* NULL: plain connections */
    struct sxe_tls *tls_resuming; /* the context for connections that are to resume a session */
    /* the sum of --tls-resume's percent over the connections that were opened; when it reaches 100,
     * the next connection resumes a session, and 100 is subtracted */
    unsigned resume_owed;
    char tls_name[LOAD_AUTHORITY_SIZE];
    uint32_t *shaking; /* the ids of the sockets whose handshakes are under way */
    uint32_t shaking_number;
    ev_prepare look_at_shaking; /* is active while shaking_number is above 0 */

    unsigned turn; /* how many connections have begun; the address of the next one depends on it */

    /* The ramp: the opening of all sockets, before the queries begin */
    bool is_ramping;
    bool is_ramp_due; /* whether the heap has a RAMP event */
    /* the next socket to open; after the ramp, the next socket that sends its first query */
    uint32_t next;
    uint32_t connecting; /* how many sockets of the ramp are connecting */
    unsigned ramp;       /* how many sockets may connect at a time */
    double ramp_rate;    /* sockets to open in a second; 0: use ramp */
    uint64_t ramp_ns;    /* when the ramp began */

    /* The run: the time in which queries are sent */
    bool is_running;   /* the parent has sent GO */
    bool is_offering;  /* queries may still be sent: no STOP has come, and the time is not over */
    bool has_given_up; /* the server seems to be gone: no connection opens, and no byte comes */
    bool is_over;
    bool is_paced; /* queries arrive at times of their own; false: they follow replies */
    uint64_t start_ns;
    uint64_t end_ns; /* from this time on no query is offered; LOAD_NEVER: there is no such time */
    uint64_t left;   /* how many queries this worker may still offer */
    uint64_t given;  /* how many queries the supplier has returned */
    /* whether to read the clock around each call of the supplier, because its calls take long */
    bool is_supplier_slow;
    uint64_t held_number;  /* how many sockets have a held query */
    uint64_t again_number; /* sum of `again` over all sockets */
    uint32_t users;        /* how many sockets have a session that has not ended */
    /* when the last byte came, or the last event that was planned for a time happened in time */
    uint64_t progress_ns;
    uint64_t reply_ns; /* when the last reply was complete */
    /* when the last query ended, by its reply, by a failure, or because it was given up */
    uint64_t ended_ns;

    /* Arrivals */
    struct load__arrivals arrivals; /* begins with the next arrival that is to be sent */
    /* begins with the next arrival that will be counted as waiting; not used if no arrival waits */
    struct load__arrivals ahead;
    /* how many arrivals were counted, but not sent: those from `arrivals` to `ahead` */
    uint64_t waiting;
    uint64_t free_ns; /* since when a socket has been free; LOAD_NEVER: all sockets are busy */

    /* The present slice of the time line. It counts events at times in [slice_ns, slice_ns +
     * slice_width_ns). */
    struct load_slice *slice;
    uint64_t slice_ns;
    uint64_t slice_width_ns;

    /* The client itself */
    ev_check turn_begins;
    ev_prepare turn_ends;
    uint64_t turn_ns;     /* when the present turn began */
    uint64_t turn_end_ns; /* when the last turn ended */
    /* the time for which the ticker was set at the end of the last turn */
    uint64_t turn_due_ns;
    uint64_t turn_sent;        /* result->sent at the end of the last turn */
    uint64_t turn_progress_ns; /* progress_ns at the end of the last turn */
    uint64_t states_ns;        /* when in_state[] of the result was updated */
    uint64_t cpu_user_ns;      /* the CPU time, and the waits for a CPU, before the queries began */
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

/* The slice of the time line that counts an event at time ns. */
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

/* load__ramp begins to open all sockets. When all of them are open or have failed, load__ramp_over
 * is called. load__ramp_tick handles the event RAMP. load__ramp_on is called when a socket has
 * opened or failed, and opens further sockets. */
void load__ramp(struct load__worker *worker);
void load__ramp_tick(struct load__worker *worker, uint64_t now_ns);
void load__ramp_on(struct load__worker *worker, uint64_t now_ns);

/* Let a lost socket connect again. */
void load__reopen(struct load__socket *socket);

/* To be called before the loop ends: make connections that have queries in flight, or with --abort
 * all connections, end by RST. */
void load__prepare_close(struct load__worker *worker);

/* Use the connections whose handshakes are done. This function is passed to load__shake_init, and
 * the loop calls it. */
void load__look_at_shaking(struct ev_loop *loop, ev_prepare *watcher, int events);

/* ---- worker-state.c ---- */

/* Compute the socket's state from its other members, and set it. */
void load__settle(struct load__socket *socket);

/* Close the connection with FIN: no more replies will come on it, or none are wanted. */
void load__close(struct load__socket *socket);

/* Reset the connection, and end all its queries in flight as `end`. */
void load__fail(struct load__socket *socket, enum load_end end, int error);

/* ---- worker-shake.c ---- */

/* load__shake_init must be called after sxe_init, and load__shake_free after sxe_fini. Returns 0 or
 * -ENOMEM. While handshakes are under way, the loop calls `look` at the end of each turn. */
typedef void load__on_turn(struct ev_loop *loop, ev_prepare *watcher, int events);
int load__shake_init(struct load__worker *worker, load__on_turn *look);
void load__shake_free(struct load__worker *worker);

/* Make the socket's connection use TLS. Call it before the socket connects. 0 or -errno. */
int load__shake_begin(struct load__socket *socket, SXE *sxe);

/* To be called when the socket's handshake has begun: load__next_shaken will return the socket when
 * the handshake is done. */
void load__shake(struct load__socket *socket);

/* Return the next socket whose handshake is done; NULL: there are no more. Set *at to
 * worker->shaking_number before the first call; the sockets are looked at from the last to the
 * first. Handshakes that are done or have failed are removed from the list. */
struct load__socket *load__next_shaken(struct load__worker *worker, uint32_t *at);

/* Store why TLS failed, if this is the first failure of TLS. */
void load__note_failure(const struct load__socket *socket, const SXE *sxe);

/* ---- worker-read.c ---- */

void load__on_read(SXE *sxe, int length);

/* ---- worker-query.c ---- */

/* Append bytes to the buffer, which may move in memory. 0 or -ENOMEM. */
int load__keep_bytes(struct load__bytes *bytes, const char *data, size_t length);

/* For a closed loop: load__send_ready sends the queries that the socket is ready to send;
 * load__may_send tells whether there are any. */
void load__send_ready(struct load__socket *socket, uint64_t now_ns);
bool load__may_send(const struct load__socket *socket);

/* Ask the supplier for this worker's nth query, and send it, or hold it as long as the supplier
 * says. A query that arrives must have been counted as offered before; a query of a closed loop is
 * counted here. */
void load__offer(struct load__socket *socket, uint64_t nth, uint64_t intended_ns, uint64_t now_ns);
void load__send_held(struct load__socket *socket);
void load__send_again(struct load__socket *socket, uint64_t now_ns);

/* End the oldest query in flight, which did not get a complete reply. */
void load__end_without_reply(struct load__socket *socket, enum load_end end, uint64_t now_ns);

/* When the time for the drain is over, end all queries in flight as failed. */
void load__end_unanswered(struct load__worker *worker, uint64_t now_ns);

/* End the oldest query in flight, which got a complete reply. The end of the connection may have
 * completed the reply. */
void load__end_with_reply(struct load__socket *socket, uint64_t now_ns);

/* ---- worker-stage.c ---- */

/* These functions count queries by stage, if the plan has stages. load__stage_offered counts
 * `number` arrivals, which were due at intended_ns. load__stage_sent counts a query that was sent
 * (number 1), or takes back a query that has to be sent again (number -1). load__stage_good counts
 * a good reply. */
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

/* Count a failed query, whose reply would have taken waited_ns or longer. load__failed_wait_ns
 * computes waited_ns: the time since the query was sent, and at least the timeout. If `end` is
 * UNANSWERED, it may be less than the timeout (result.h says why). */
void load__count_failed(struct load__worker *worker, const struct load__flight *flight,
                        uint64_t waited_ns, uint64_t now_ns);
uint64_t load__failed_wait_ns(const struct load__worker *worker, const struct load__flight *flight,
                              enum load_end end, uint64_t now_ns);

void load__note_error(struct load__worker *worker, int error);

/* ---- worker-address.c ---- */

/* List the host's addresses in the result, if it has several. */
void load__list_addresses(const struct load__worker *worker);

/* Choose the address of a new connection. The host's addresses take turns; each worker begins with
 * another address. */
const char *load__take_address(struct load__socket *socket);

/* Count that a connection to the socket's address has opened or failed. */
void load__address_opened(const struct load__socket *socket);
void load__address_failed(const struct load__socket *socket, int error);

/* ---- worker-judge.c ---- */

/* Judge a complete reply. If the supplier wants replies, show it the reply. Returns the first thing
 * that is wrong with the reply, or LOAD_END_OK. */
enum load_end load__judge(struct load__socket *socket, const struct load__flight *flight,
                          uint64_t now_ns);

/* Tell the supplier that the query of this socket's session has ended as `end`. */
void load__end_step(struct load__socket *socket, enum load_end end);

/* ---- worker-end.c ---- */

/* Add an event to the heap: at the time ns load__on_tick does `what`, for the socket `id`. For an
 * event of the run id is 0. */
void load__push(struct load__worker *worker, uint64_t ns, enum load__what what, uint32_t id);

/* Offer no more queries, and wait for replies to the queries in flight, for at most the plan's
 * drain_ns. */
void load__stop(struct load__worker *worker, uint64_t now_ns);

/* Offer no more queries from end_ns on. */
void load__end_at(struct load__worker *worker, uint64_t end_ns);

/* End the loop now, without waiting for anything. */
void load__end(struct load__worker *worker);

/* End the loop if nothing is left to do. */
void load__end_when_done(struct load__worker *worker);

/* ---- worker-arrival.c ---- */

/* load__next_arrival sets arrivals->next_ns, the time of the next arrival. load__pass_arrival does
 * so, too, after it has removed the present arrival. */
void load__next_arrival(const struct load__worker *worker, struct load__arrivals *arrivals);
void load__pass_arrival(const struct load__worker *worker, struct load__arrivals *arrivals);

/* load__count_waiting counts all arrivals up to now_ns that could not be sent, because no socket
 * was free, as offered and waiting. load__drop_waiting does this, and then counts them as skipped,
 * because they will never be sent. */
void load__count_waiting(struct load__worker *worker, uint64_t now_ns);
void load__drop_waiting(struct load__worker *worker, uint64_t now_ns);

/* load__arrive sends arrivals that are due as long as sockets are free, and asks for the next tick.
 * Call it when a socket becomes free or an arrival is due. load__may_arrive tells whether any
 * arrival is still to be sent. */
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

/* Update the figures of the result that are computed only on demand: states, CPU time, waiting
 * queries, copied histograms. */
void load__bring_up_to_date(struct load__worker *worker, uint64_t now_ns);
void load__copy_result(struct load_result *to, const struct load_result *result);
void load__tell_parent(const struct load__worker *worker, enum load_message_type type, int error);

/* Send READY to the parent, because all sockets are open or have failed. */
void load__ramp_over(struct load__worker *worker);

#endif
