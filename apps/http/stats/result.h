/* SPDX-License-Identifier: MIT
 *
 * What: everything that a run counts and times. Place: each worker process writes its own result,
 * in memory shared with the parent. The parent reads them for the live view, adds them up at the
 * end, and reports the sum. No pointers, all zero is empty.
 *
 * Shape: the accounts close. Every query that was offered is in exactly one line:
 *
 *     offered = sent + each skipped + waiting
 *     sent + carried = each end (ok, bad status, reset, ...) + in flight
 *     sockets wanted = opened + each unopened
 *
 * carried: queries that were in flight already when the measuring began, after a warm-up. waiting:
 * queries that have arrived, and neither found a socket nor were given up; at the end 0.
 *
 * Clocks (CLOCK_MONOTONIC, read at the write and after the read, never the loop's cached time):
 *
 *     connect      connect(2)                -> the socket is known to be open
 *     handshake    the connection is open    -> its handshake of TLS is done
 *     first byte   a query's write           -> the first byte of its reply was read
 *     service      a query's write           -> the last byte of its reply was read
 *     response     its intended start        -> the last byte of its reply was read
 *
 * In a closed loop the intended start of a query is its write, so response equals service.
 *
 * Every query that ended is in first byte, service and response. A query that failed, by whatever
 * error, has no time: no wait would have got it a good reply. It is counted as at least the timeout
 * (histogram.h: censored), so that neither a timeout nor a quick refusal makes a percentile better.
 * An unanswered query, still in flight when the drain ended, is counted as at least its wait.
 *
 * A run with a duration, or one that was told to stop, ends when it offers nothing more. Replies
 * that come after that, in the drain, may still be good: they are counted as ok and as drained, but
 * the rate leaves them out.
 */
#ifndef LOAD_RESULT_H
#define LOAD_RESULT_H

#include "bad-reply.h"
#include "histogram.h"
#include "plan.h"

/* X(ENUMERATOR, text, json name) */
#define LOAD_EACH_SKIP(X)                                \
    X(SHED, "shed past the deadline", "shed")            \
    X(NO_SOCKET, "no free connection", "no_socket")      \
    X(NOT_OPENED, "connection not opened", "not_opened") \
    X(UNSENT, "not sent by the end", "unsent")           \
    X(GONE, "server gone", "server_gone")

#define LOAD_EACH_END(X)                            \
    X(OK, "ok", "ok")                               \
    X(BAD_STATUS, "bad status", "bad_status")       \
    X(BAD_FIELD, "bad header", "bad_header")        \
    X(BAD_BODY, "bad body", "bad_body")             \
    X(FAILED_CHECK, "failed check", "failed_check") \
    X(SHORT_BODY, "short body", "short_body")       \
    X(BAD_REPLY, "bad reply", "bad_reply")          \
    X(CLOSED_EARLY, "closed early", "closed_early") \
    X(RESET, "reset", "reset")                      \
    X(TIMED_OUT, "timed out", "timed_out")          \
    X(UNANSWERED, "unanswered", "unanswered")       \
    X(OTHER, "other", "other")

#define LOAD_EACH_UNOPENED(X)                          \
    X(REFUSED, "refused", "refused")                   \
    X(RESET, "reset", "reset")                         \
    X(TIMED_OUT, "timed out", "timed_out")             \
    X(NO_DESCRIPTOR, "no descriptor", "no_descriptor") \
    X(NO_PORT, "no port", "no_port")                   \
    X(TLS, "TLS failed", "tls")                        \
    X(OTHER, "other", "other")                         \
    X(UNTRIED, "not tried", "untried")

/* States of a socket: of the worker's pool, and of the live view. */
#define LOAD_EACH_SOCKET_STATE(X)                                                               \
    X(UNOPENED, "unopened") /* the socket was not tried yet, or was given up */                 \
    X(CONNECTING, "connecting")                                                                 \
    X(IDLE, "idle")     /* the connection is open, and nothing is in flight */                  \
    X(PARTLY, "partly") /* fewer queries are in flight than the depth allows */                 \
    X(BUSY, "busy")     /* as many queries are in flight as the depth allows */                 \
    X(THINKING, "thinking")                                                                     \
    X(LOST, "lost") /* the connection is lost, and the socket waits before it connects again */ \
    X(DONE, "done") /* the socket has had all its queries */

#define LOAD_SKIP_ENUM(name, ...)     LOAD_SKIP_##name,
#define LOAD_END_ENUM(name, ...)      LOAD_END_##name,
#define LOAD_UNOPENED_ENUM(name, ...) LOAD_UNOPENED_##name,
#define LOAD_SOCKET_ENUM(name, ...)   LOAD_SOCKET_##name,
enum load_skip { LOAD_EACH_SKIP(LOAD_SKIP_ENUM) LOAD_SKIPS };
enum load_end { LOAD_EACH_END(LOAD_END_ENUM) LOAD_ENDS };
enum load_unopened { LOAD_EACH_UNOPENED(LOAD_UNOPENED_ENUM) LOAD_UNOPENEDS };
enum load_socket_state { LOAD_EACH_SOCKET_STATE(LOAD_SOCKET_ENUM) LOAD_SOCKET_STATES };

/* Classes of status codes: 1xx to 5xx, and all others. */
#define LOAD_CLASSES 6

#define LOAD_FAILURE_SIZE 256 /* bytes of a text about a failure */

#define LOAD_KINDS_MAX 16
/* up to this product of sockets and kinds, the times of each are kept (for S8) */
#define LOAD_CLIENTS_MAX 256

/* A kind of request: an entry of a scenario, or one of several URLs. */
struct load_kind_result {
    uint64_t ok;
    uint64_t errors;
    struct load_histogram response;
};

/* One client's (socket's) times of one kind. */
struct load_client_result {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t min_ns;
    uint64_t max_ns;
};

/* A stage of --stages. A query belongs to the stage in which it arrived, whenever it was sent and
 * answered. */
struct load_stage_result {
    uint64_t offered;
    uint64_t sent;
    uint64_t ok;
    uint64_t errors;
    uint64_t in_time; /* good replies that came during the stage, also to queries of earlier ones */
    struct load_histogram response;
};

/* Counts of one host, in a run that loads several. */
struct load_host_result {
    uint64_t sockets_wanted;
    uint64_t opened;
    uint64_t reopened;
    uint64_t not_reopened;
    uint64_t offered;
    uint64_t sent;
    uint64_t skipped;
    uint64_t ok;
    uint64_t errors;
    struct load_histogram connect;
    struct load_histogram response;
};

/* Connections to one of a name's addresses. */
struct load_address_result {
    char ip[LOAD_IP_SIZE];
    uint16_t port;
    /* 1: not used, because connections take the other family, which accepts them, or which --source
     * has. */
    uint8_t is_unused;
    /* the errno of the first connection that failed; 0: none failed, or it was reset */
    int32_t first_error;
    uint64_t opened; /* connections that were opened, again ones included */
    uint64_t failed;
};

/* How the run went over time: slices of equal width. When all slices are used, each two neighbours
 * become one and the width doubles, so a day takes as much memory as a second. Times are response
 * times, in coarse buckets: eight for each power of two, from 1 us on. */
#define LOAD_SLICES        240
#define LOAD_SLICE_BUCKETS 256
#define LOAD_SLICE_NS      UINT64_C(10000000) /* the width at first; it doubles */

struct load_slice {
    uint32_t offered;
    uint32_t sent;
    uint32_t ok;
    uint32_t errors;
    uint32_t max_us;
    uint32_t buckets[LOAD_SLICE_BUCKETS];
};

struct load_timeline {
    uint64_t width_ns;  /* the width of each slice; 0: nothing was counted yet */
    uint64_t offset_ns; /* the part of slices[0] that was before the mark, and was not counted */
    uint32_t used;      /* how many slices are used, up to the last one with counts */
    struct load_slice slices[LOAD_SLICES];
};

struct load_result {
    /* Sockets */
    uint64_t sockets_wanted;
    uint64_t opened;
    uint64_t unopened[LOAD_UNOPENEDS];
    uint64_t reopened;     /* connections made again because the server ended one */
    uint64_t not_reopened; /* failed tries to make a connection again */
    uint64_t resent;       /* queries sent again on a new connection, because an earlier reply said
                              "Connection: close"; `sent` counts each once */
    uint64_t syn_retries;  /* how many connects got no answer to their first SYN: TCP_INFO */
    /* how many segments were sent again on connections that were closed: TCP_INFO */
    uint64_t retransmits;
    uint64_t connect_ns; /* from the first connect until every socket is open or given up */
    uint64_t in_state[LOAD_SOCKET_STATES]; /* how many sockets are in each state now */

    /* TLS handshakes, also those before the end of a warm-up: `handshake` has the times of all. The
     * refused and the sessionless ones were full, although they wanted to resume a session. */
    uint64_t handshakes_resumed;
    uint64_t handshakes_refused;     /* the server refused the session */
    uint64_t handshakes_sessionless; /* the worker had no session yet, or none left */

    /* Queries */
    uint64_t offered;
    uint64_t sent;
    uint64_t carried;
    uint64_t skipped[LOAD_SKIPS];
    uint64_t ends[LOAD_ENDS];
    /* complete replies, good or not, by the class of their status: load_status_class */
    uint64_t classes[LOAD_CLASSES];
    uint64_t in_flight;  /* how many queries are in flight now */
    uint64_t waiting;    /* how many queries are offered now for which no socket is free yet */
    uint64_t drained;    /* ok ends whose reply came after elapsed_ns, in the drain */
    uint64_t late;       /* sent more than 1 ms after their intended start */
    uint64_t started_ns; /* CLOCK_MONOTONIC: when the queries, or the measuring, began */
    /* from started_ns until the duration ended; without a duration until the last query ended, well
     * or not, or was given up; during a run until now */
    uint64_t elapsed_ns;
    uint64_t drain_ns; /* from the end of elapsed_ns to the last reply; 0: none came after it */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    uint64_t sessions_completed; /* in a scenario with steps: sessions in which all steps were ok */
    uint64_t sessions_failed;    /* sessions in which a step was not ok */
    uint32_t first_bad_status;
    struct load_bad_reply first_bad_reply;
    int32_t first_error;                   /* the first errno that was counted as OTHER; 0: none */
    char first_failure[LOAD_FAILURE_SIZE]; /* the first failure of TLS, in words; "": none */
    uint8_t interrupted;

    /* Times */
    struct load_histogram connect;
    struct load_histogram handshake; /* of TLS handshakes that were completed */
    struct load_histogram first_byte;
    struct load_histogram service;
    struct load_histogram response;

    /* The client itself */
    uint64_t cpu_user_ns; /* CPU time of the worker, while it measured */
    uint64_t cpu_system_ns;
    uint64_t run_queue_ns; /* how long the worker waited for a CPU: /proc/thread-self/schedstat */
    uint64_t spun_ns;      /* CPU time in which the worker spun until its next timer (ticker.h) */
    uint64_t script_ns;    /* CPU time of the script's functions */
    uint64_t script_calls;
    /* by how much queries were sent later than intended, if a socket was free */
    struct load_histogram schedule_lag;
    /* by how much the wake-up was later than the time that the timer was set to */
    struct load_histogram timer_error;
    /* how long turns of the loop took, from epoll_wait's return to their end; and how late turns
     * began, if the client stood still */
    struct load_histogram loop_lag;

    struct load_timeline timeline;
    uint32_t kinds;     /* how many entries of by_kind are used */
    uint32_t stages;    /* how many entries of by_stage are used */
    uint32_t hosts;     /* how many entries of by_host are used; 0: the run has one host */
    uint32_t addresses; /* how many entries of by_address are used; 0: each host has one address */
    /* how many sockets have their times in by_client; 0: none, or there are too many */
    uint32_t clients;
    struct load_kind_result by_kind[LOAD_KINDS_MAX];
    struct load_client_result by_client[LOAD_CLIENTS_MAX]; /* the index is client * kinds + kind */
    struct load_stage_result by_stage[LOAD_STAGES_MAX];
    struct load_host_result by_host[LOAD_HOSTS_MAX];
    struct load_address_result by_address[LOAD_HOSTS_MAX * LOAD_ADDRESSES_MAX];
};

/* Fill histograms that equal another one, and so were not recorded: service times equal response
 * times unless the load is paced, and the only kind's times equal those of all requests. */
void load_result_copy_times(struct load_result *result, bool is_paced);

/* Add *result to *to: counts and histograms are summed; started_ns is the earliest, connect_ns,
 * elapsed_ns and drain_ns are the longest; first_... is of the first result that has one. by_client
 * of *result is appended. */
void load_result_add(struct load_result *to, const struct load_result *result);

/* Add the whole result of a worker to sum->by_host[host], the host that this worker loaded; `hosts`
 * is how many hosts the run has. */
void load_result_add_host(struct load_result *sum, const struct load_result *result, unsigned host,
                          unsigned hosts);

/* Add the counts of an address to those that *to has of it. An address for which *to has no room is
 * left out. */
void load_result_add_address(struct load_result *to, const struct load_address_result *address);

/* Keep only counts since `earlier`, an earlier copy of *result. Requests that were in flight then
 * become carried, requests that were waiting become offered. Counts of opening sockets, those of
 * addresses, and the extremes in by_client stay those of the whole run. Not for a load with
 * stages. */
void load_result_subtract(struct load_result *result, const struct load_result *earlier);

static inline unsigned
load_status_class(unsigned status)
{
    return status >= 100 && status < 600 ? status / 100 - 1 : LOAD_CLASSES - 1;
}

/* The part of ns that is after before_ns, or 0. */
static inline uint64_t
load_later_part(uint64_t ns, uint64_t before_ns)
{
    return ns > before_ns ? ns - before_ns : 0;
}

/* the sum over all kinds of skips */
uint64_t load_result_skipped(const struct load_result *result);
/* user and system time, without spinning */
uint64_t load_result_cpu_ns(const struct load_result *result);
uint64_t load_result_errors(const struct load_result *result); /* all ends but OK */
uint64_t load_result_full_handshakes(const struct load_result *result);
uint64_t load_result_replies(const struct load_result *result); /* complete replies, good or not */

/* How many good replies came within the measured time; and how many a second (0 if no time was
 * measured). */
uint64_t load_result_in_time(const struct load_result *result);
double load_result_rate(const struct load_result *result);

/* Check that the accounts close. NULL: they do. Otherwise a text names the numbers that do not
 * agree; it is valid until this thread's next call. */
const char *load_result_check(const struct load_result *result);

/* ---- Time line ---- */

/* The slice in which to count at at_ns after the start. It covers [from, from + width_ns), where
 * from is at_ns rounded down to a multiple of width_ns. Valid until the next call. */
struct load_slice *load_timeline_slice(struct load_timeline *timeline, uint64_t at_ns);

/* Count a query that ended in that slice. Inlined, because it is called for each query. */
static inline void
load_slice_ended(struct load_slice *slice, bool is_ok, uint64_t response_ns)
{
    /* Rounded up, so that a bucket's last us is no less than any time in it. */
    uint64_t whole_us = response_ns / 1000 + (response_ns % 1000 > 0);
    uint32_t us = whole_us < UINT32_MAX ? (uint32_t)whole_us : UINT32_MAX;
    unsigned shift = us < 16 ? 0 : 28u - (unsigned)__builtin_clz(us);

    slice->ok += is_ok;
    slice->errors += !is_ok;
    slice->buckets[shift * 8 + (us >> shift)]++;
    if (us > slice->max_us)
        slice->max_us = us;
}

void load_timeline_add(struct load_timeline *to, const struct load_timeline *timeline);

/* Keep only counts since `earlier`, a copy of *timeline made earlier_ns after the start. Slices
 * that ended before earlier_ns are removed. */
void load_timeline_subtract(struct load_timeline *timeline, const struct load_timeline *earlier,
                            uint64_t earlier_ns);

/* Move all counts to by_ns later, rounded to the nearest multiple of the slices' width. */
void load_timeline_delay(struct load_timeline *timeline, uint64_t by_ns);

/* How many slices a run of elapsed_ns has, empty ones at its end included. */
unsigned load_timeline_length(const struct load_timeline *timeline, uint64_t elapsed_ns);

/* The response time that a fraction of the slice's replies did not exceed: at most 1/8 and 1 us
 * more than the exact one; 0: there were no replies. */
uint64_t load_slice_quantile_ns(const struct load_slice *slice, double fraction);

#endif
