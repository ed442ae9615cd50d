/* SPDX-License-Identifier: MIT
 *
 * What: everything that a run counts and times. Place: each worker process writes its own, in
 * memory shared with the parent, which looks at them for the live view, adds them up at the end,
 * and reports the sum. No pointers, all zero is empty.
 *
 * Shape: the accounts close. Every query that was offered is in exactly one line:
 *
 *     offered = sent + each skipped + waiting
 *     sent + carried = each end (ok, bad status, reset, ...) + in flight
 *     sockets wanted = opened + each unopened
 *
 * carried is what was in flight already when the measuring began, after a warm-up. waiting is what
 * has arrived and neither found a socket nor was given up; at the end it is 0.
 *
 * Clocks (CLOCK_MONOTONIC, read at the write and behind the read, never the loop's cached time):
 *
 *     connect      connect(2)                -> the socket is known to be open
 *     first byte   a query's write           -> the first byte of its reply was read
 *     service      a query's write           -> the last byte of its reply was read
 *     response     its intended start        -> the last byte of its reply was read
 *
 * In a closed loop a query is intended when it is written, and response is service.
 *
 * Every query that ended is in first byte, service and response. One that failed, by whatever
 * error, has no time: no wait would have got it a good reply. It is counted as at least the timeout
 * (histogram.h: censored), so that neither a timeout nor a quick refusal makes a percentile better.
 * One that is unanswered, in flight when the drain was over, has waited so long at least.
 *
 * A run with a duration, or one that was told to stop, ends when it offers nothing more. Good
 * replies that come after that, in the drain, are good; they are counted as drained, and the rate
 * does not have them.
 */
#ifndef HTTP_RESULT_H
#define HTTP_RESULT_H

#include "bad-reply.h"
#include "histogram.h"
#include "plan.h"

/* X(ENUMERATOR, text, json name) */
#define HTTP_EACH_SKIP(X)                                \
    X(SHED, "shed past the deadline", "shed")            \
    X(NO_SOCKET, "no free connection", "no_socket")      \
    X(NOT_OPENED, "connection not opened", "not_opened") \
    X(UNSENT, "not sent by the end", "unsent")           \
    X(GONE, "server gone", "server_gone")

#define HTTP_EACH_END(X)                            \
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

#define HTTP_EACH_UNOPENED(X)                          \
    X(REFUSED, "refused", "refused")                   \
    X(RESET, "reset", "reset")                         \
    X(TIMED_OUT, "timed out", "timed_out")             \
    X(NO_DESCRIPTOR, "no descriptor", "no_descriptor") \
    X(NO_PORT, "no port", "no_port")                   \
    X(OTHER, "other", "other")                         \
    X(UNTRIED, "not tried", "untried")

/* States of a socket: of the worker's pool, and of the live view. */
#define HTTP_EACH_SOCKET_STATE(X)                                   \
    X(UNOPENED, "unopened") /* not tried yet, or given up */        \
    X(CONNECTING, "connecting")                                     \
    X(IDLE, "idle")     /* open, nothing in flight */               \
    X(PARTLY, "partly") /* fewer in flight than the depth allows */ \
    X(BUSY, "busy")     /* as many as the depth allows */           \
    X(THINKING, "thinking")                                         \
    X(LOST, "lost") /* waits before it connects again */            \
    X(DONE, "done") /* had all its queries */

#define HTTP_SKIP_ENUM(name, ...)     HTTP_SKIP_##name,
#define HTTP_END_ENUM(name, ...)      HTTP_END_##name,
#define HTTP_UNOPENED_ENUM(name, ...) HTTP_UNOPENED_##name,
#define HTTP_SOCKET_ENUM(name, ...)   HTTP_SOCKET_##name,
enum http_skip { HTTP_EACH_SKIP(HTTP_SKIP_ENUM) HTTP_SKIPS };
enum http_end { HTTP_EACH_END(HTTP_END_ENUM) HTTP_ENDS };
enum http_unopened { HTTP_EACH_UNOPENED(HTTP_UNOPENED_ENUM) HTTP_UNOPENEDS };
enum http_socket_state { HTTP_EACH_SOCKET_STATE(HTTP_SOCKET_ENUM) HTTP_SOCKET_STATES };

/* Of a status: 1xx to 5xx, and what is none of these. */
#define HTTP_CLASSES 6

#define HTTP_KINDS_MAX   16
#define HTTP_CLIENTS_MAX 256 /* sockets times kinds whose own times are kept, for S8 */

/* A kind of request: an entry of a scenario, or one of several URLs. */
struct http_kind_result {
    uint64_t ok;
    uint64_t errors;
    struct http_histogram response;
};

/* One client's (socket's) times of one kind. */
struct http_client_result {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t min_ns;
    uint64_t max_ns;
};

/* A stage of a staged load. Queries are of the stage in which they arrived, whenever they were sent
 * and answered. */
struct http_stage_result {
    uint64_t offered;
    uint64_t sent;
    uint64_t ok;
    uint64_t errors;
    uint64_t in_time; /* good replies, to whichever query, that came while it lasted */
    struct http_histogram response;
};

/* What a host of several got. */
struct http_host_result {
    uint64_t sockets_wanted;
    uint64_t opened;
    uint64_t reopened;
    uint64_t not_reopened;
    uint64_t offered;
    uint64_t sent;
    uint64_t skipped;
    uint64_t ok;
    uint64_t errors;
    struct http_histogram connect;
    struct http_histogram response;
};

/* How the run went over time: slices of equal width. When they are all used, each two neighbours
 * become one and the width doubles, so a day takes as much memory as a second. Latencies are those
 * of response, in coarse buckets: eight a power of two from 1 us. */
#define HTTP_SLICES        240
#define HTTP_SLICE_BUCKETS 256
#define HTTP_SLICE_NS      UINT64_C(10000000) /* at first; doubles */

struct http_slice {
    uint32_t offered;
    uint32_t sent;
    uint32_t ok;
    uint32_t errors;
    uint32_t max_us;
    uint32_t buckets[HTTP_SLICE_BUCKETS];
};

struct http_timeline {
    uint64_t width_ns;  /* 0: nothing yet */
    uint64_t offset_ns; /* so much of the first slice was before the mark, and is not in it */
    uint32_t used;      /* slices up to the last that has something */
    struct http_slice slices[HTTP_SLICES];
};

struct http_result {
    /* Sockets */
    uint64_t sockets_wanted;
    uint64_t opened;
    uint64_t unopened[HTTP_UNOPENEDS];
    uint64_t reopened;     /* connections made anew because the server ended one */
    uint64_t not_reopened; /* tries of that which failed */
    uint64_t resent;       /* their connection ended behind an earlier reply, as that had said it
                              would; another was sent in their place, and `sent` has it alone */
    uint64_t syn_retries;  /* connects whose first SYN was not answered: TCP_INFO */
    uint64_t retransmits;  /* segments, over all connections that were closed: TCP_INFO */
    uint64_t connect_ns;   /* from the first connect until every socket is open or given up */
    uint64_t in_state[HTTP_SOCKET_STATES]; /* now */

    /* Queries */
    uint64_t offered;
    uint64_t sent;
    uint64_t carried;
    uint64_t skipped[HTTP_SKIPS];
    uint64_t ends[HTTP_ENDS];
    uint64_t classes[HTTP_CLASSES]; /* whole replies, good or not: http_status_class */
    uint64_t in_flight;             /* now */
    uint64_t waiting;               /* now: offered, and no socket was free for it yet */
    uint64_t drained;    /* of the ends that are ok: came after elapsed_ns, in the drain */
    uint64_t late;       /* sent more than 1 ms after their intended start */
    uint64_t started_ns; /* CLOCK_MONOTONIC: when the queries, or the measuring, began */
    uint64_t elapsed_ns; /* from then until nothing more was offered because the time was over; if
                            there is no such time, until the last query ended, whether well or not,
                            or was given up; or to now */
    uint64_t drain_ns;   /* from there to the last reply; 0: none came later */
    uint64_t bytes_sent;
    uint64_t bytes_received;
    uint64_t sessions_completed; /* of a scenario with steps: all of them were good */
    uint64_t sessions_failed;    /* one was not */
    uint32_t first_bad_status;
    struct http_bad_reply first_bad_reply;
    int32_t first_error; /* errno behind OTHER */
    uint8_t interrupted;

    /* Times */
    struct http_histogram connect;
    struct http_histogram first_byte;
    struct http_histogram service;
    struct http_histogram response;

    /* The client itself */
    uint64_t cpu_user_ns; /* of the worker, while it measured */
    uint64_t cpu_system_ns;
    uint64_t run_queue_ns; /* it could have run, and another did: /proc/thread-self/schedstat */
    uint64_t spun_ns;      /* of that CPU time: nothing to do, and a tick too near to sleep for */
    uint64_t script_ns;    /* in the script's functions */
    uint64_t script_calls;
    struct http_histogram schedule_lag; /* actual - intended send, where a socket was free */
    struct http_histogram timer_error;  /* the wake-up - the time asked of the timer */
    struct http_histogram loop_lag;     /* a turn of the loop, from epoll_wait's return to its end;
                                           and what came late because the client stood still */

    struct http_timeline timeline;
    uint32_t kinds;   /* used */
    uint32_t stages;  /* used */
    uint32_t hosts;   /* used; 0: there is one */
    uint32_t clients; /* used: sockets whose times are in by_client; 0: too many */
    struct http_kind_result by_kind[HTTP_KINDS_MAX];
    struct http_client_result by_client[HTTP_CLIENTS_MAX]; /* client * kinds + kind */
    struct http_stage_result by_stage[HTTP_STAGES_MAX];
    struct http_host_result by_host[HTTP_HOSTS_MAX];
};

/* Add the second to the first: counts and histograms are summed; started_ns is the earliest,
 * connect_ns, elapsed_ns and drain_ns the longest, first_... that of the first result that has one.
 * Clients follow one another. */
void http_result_add(struct http_result *to, const struct http_result *result);

/* Count a worker's whole result, which served that one of so many hosts, in the sum's by_host. */
void http_result_add_host(struct http_result *sum, const struct http_result *result, unsigned host,
                          unsigned hosts);

/* Leave what came since earlier, a copy of *result; of a load without stages, which begin with the
 * run. What was in flight then is carried, and what
 * was waiting is offered. What is said of the opening of sockets stays that of the whole run, and
 * so do the extremes in by_client. */
void http_result_subtract(struct http_result *result, const struct http_result *earlier);

static inline unsigned
http_status_class(unsigned status)
{
    return status >= 100 && status < 600 ? status / 100 - 1 : HTTP_CLASSES - 1;
}

/* What of ns came behind before_ns; 0: nothing. */
static inline uint64_t
http_later_part(uint64_t ns, uint64_t before_ns)
{
    return ns > before_ns ? ns - before_ns : 0;
}

uint64_t http_result_skipped(const struct http_result *result); /* all kinds together */
uint64_t http_result_cpu_ns(const struct http_result *result);  /* user and system, not spun */
uint64_t http_result_errors(const struct http_result *result);  /* all ends but OK */
uint64_t http_result_replies(const struct http_result *result); /* whole ones, good or not */

/* Good replies within the time that was measured, and of those a second; 0 for no time. */
uint64_t http_result_in_time(const struct http_result *result);
double http_result_rate(const struct http_result *result);

/* NULL, or which account does not close, in a text of this thread. */
const char *http_result_check(const struct http_result *result);

/* ---- Time line ---- */

/* The slice of at_ns after the start, to count in. It covers [from, from + width_ns), from being
 * at_ns rounded down to width_ns; good until this is called again. */
struct http_slice *http_timeline_slice(struct http_timeline *timeline, uint64_t at_ns);

/* A query ended in that slice. In the header because it is called for each. */
static inline void
http_slice_ended(struct http_slice *slice, bool is_ok, uint64_t response_ns)
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

void http_timeline_add(struct http_timeline *to, const struct http_timeline *timeline);

/* Leave what came since earlier, a copy of *timeline that was earlier_ns old; whole slices before
 * that time are taken out. */
void http_timeline_subtract(struct http_timeline *timeline, const struct http_timeline *earlier,
                            uint64_t earlier_ns);

/* Move what happened to a time that is by_ns later, to the next border of slices. */
void http_timeline_delay(struct http_timeline *timeline, uint64_t by_ns);

/* Slices of a run that took so long: used, and those behind them in which nothing happened. */
unsigned http_timeline_length(const struct http_timeline *timeline, uint64_t elapsed_ns);

/* The response time that a fraction of the slice's replies did not exceed, at most 1/8 and 1 us too
 * long; 0 if there were none. */
uint64_t http_slice_quantile_ns(const struct http_slice *slice, double fraction);

#endif
