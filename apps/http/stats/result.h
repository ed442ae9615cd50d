/* SPDX-License-Identifier: MIT
 *
 * What: everything that a run counts and times. Place: each worker process writes its own result,
 * in memory shared with the parent. The parent reads them for the live view, adds them up at the
 * end, and reports the sum. A result has no pointers; a result of zeros is empty.
 *
 * Shape: "the accounts close" means that these equations hold, because every query and every socket
 * is counted in exactly one place:
 *
 *     offered = sent + each skipped + waiting
 *     sent + carried = each end (ok, bad status, reset, ...) + in flight
 *     sockets wanted = opened + each unopened
 *
 * carried: queries that were in flight already when the measurement began, after a warm-up.
 * waiting: queries that have arrived, but have neither been sent nor given up; at the end there are
 * none.
 *
 * Times, measured with CLOCK_MONOTONIC, which is read at the write and after the read (the time
 * that the loop stores is not used):
 *
 *     connect      connect(2)                -> the socket is known to be open
 *     handshake    the connection is open    -> its handshake of TLS is done
 *     first byte   a query's write           -> the first byte of its reply was read
 *     service      a query's write           -> the last byte of its reply was read
 *     response     its intended start        -> the last byte of its reply was read
 *
 * In a closed loop the intended start of a query is its write, so response equals service.
 *
 * The histograms of first byte, service and response have a sample for every query that ended. A
 * query that failed, by whatever error, has no time, because no wait would have got it a good
 * reply. It is counted as at least the timeout (histogram.h: censored), so that neither a timeout
 * nor a quick refusal makes a percentile better. A query that was still in flight when the drain
 * ended is unanswered; it is counted as at least the time that it has waited.
 *
 * A run with a duration, or a run that was told to stop, ends when it offers no more queries. The
 * wait for the replies that are missing then is called the drain. Good replies in the drain are
 * counted as ok and as drained, but the rate does not include them.
 */
#ifndef LOAD_RESULT_H
#define LOAD_RESULT_H

#include "bad-reply.h"
#include "histogram.h"
#include "plan.h"

/* X(ENUMERATOR, text for people, name in the JSON) */
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

/* States of a socket, in the worker's pool and in the live view. */
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

#define LOAD_FAILURE_SIZE 256 /* room for the text of a failure, in bytes */

#define LOAD_KINDS_MAX 16
/* the times of each socket and kind are kept if sockets times kinds is at most this number */
#define LOAD_CLIENTS_MAX 256

/* A kind of request, such as an entry of a scenario, or one of several URLs. */
struct load_kind_result {
    uint64_t ok;
    uint64_t errors;
    struct load_histogram response;
};

/* The times of one client (a socket) for requests of one kind. */
struct load_client_result {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t min_ns;
    uint64_t max_ns;
};

/* A stage of --stages. A query belongs to the stage in which it arrived, even if it was sent or
 * answered later. */
struct load_stage_result {
    uint64_t offered;
    uint64_t sent;
    uint64_t ok;
    uint64_t errors;
    /* good replies that came during the stage, also to queries of earlier stages */
    uint64_t in_time;
    struct load_histogram response;
};

/* The counts of one host, if a run loads several. */
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

/* The connections to one of the addresses of a host's name. */
struct load_address_result {
    char ip[LOAD_IP_SIZE];
    uint16_t port;
    /* 1: the address is not used, because connections use only addresses of the other family (IPv4
     * or IPv6): only those accept, or --source has that family */
    uint8_t is_unused;
    /* the errno of the first connection that failed; 0: none failed, or it was reset */
    int32_t first_error;
    uint64_t opened; /* how many connections were opened, including those that were opened again */
    uint64_t failed;
};

/* The time line: how the run went over time, in slices of equal width. When all slices are used,
 * each two neighbours become one, and the width doubles, so the time line of a day takes as much
 * memory as that of a second. The buckets of a slice count response times: there are eight for each
 * power of two, from 1 us on. */
#define LOAD_SLICES        240
#define LOAD_SLICE_BUCKETS 256
#define LOAD_SLICE_NS      UINT64_C(10000000) /* the width of a slice at first */

struct load_slice {
    uint32_t offered;
    uint32_t sent;
    uint32_t ok;
    uint32_t errors;
    uint32_t max_us;
    uint32_t buckets[LOAD_SLICE_BUCKETS];
};

struct load_timeline {
    uint64_t width_ns; /* the width of each slice; 0: nothing was counted yet */
    /* how much of the time of slices[0] was before the mark; nothing of that time is counted */
    uint64_t offset_ns;
    uint32_t used; /* how many slices are used, up to the last slice that has counts */
    struct load_slice slices[LOAD_SLICES];
};

struct load_result {
    /* Sockets */
    uint64_t sockets_wanted;
    uint64_t opened;
    uint64_t unopened[LOAD_UNOPENEDS];
    /* how many connections were made again because the server had ended one */
    uint64_t reopened;
    uint64_t not_reopened; /* how many tries to make a connection again failed */
    /* how many queries were sent again on a new connection, because an earlier reply said
     * "Connection: close"; `sent` counts each of them once */
    uint64_t resent;
    uint64_t syn_retries; /* how many connects got no answer to their first SYN, from TCP_INFO */
    /* how many segments were sent again on connections that were closed since, from TCP_INFO */
    uint64_t retransmits;
    uint64_t connect_ns; /* from the first connect until every socket was open or given up */
    uint64_t in_state[LOAD_SOCKET_STATES]; /* how many sockets are in each state now */

    /* The counts of TLS handshakes, and their times in `handshake`, include handshakes before the
     * end of a warm-up. Handshakes that are refused or sessionless were full, although the client
     * wanted to resume a session. */
    uint64_t handshakes_resumed;
    uint64_t handshakes_refused;     /* the server refused to resume the session */
    uint64_t handshakes_sessionless; /* the worker had no session yet, or none left */

    /* Queries */
    uint64_t offered;
    uint64_t sent;
    uint64_t carried;
    uint64_t skipped[LOAD_SKIPS];
    uint64_t ends[LOAD_ENDS];
    /* complete replies, good or not, by the class of their status (load_status_class) */
    uint64_t classes[LOAD_CLASSES];
    uint64_t in_flight;  /* how many queries are in flight now */
    uint64_t waiting;    /* how many queries are offered now, but have no free socket yet */
    uint64_t drained;    /* how many good replies came after elapsed_ns, in the drain */
    uint64_t late;       /* how many queries were sent more than 1 ms after their intended start */
    uint64_t started_ns; /* when the queries, or the measurement, began (CLOCK_MONOTONIC) */
    /* the measured time, which begins at started_ns. In a run with a duration it ends with the
     * duration; in a run without one it ends when the last query was answered, failed or was given
     * up. While the run lasts, it ends now. */
    uint64_t elapsed_ns;
    /* from the end of elapsed_ns to the last reply; 0: no reply came after its end */
    uint64_t drain_ns;
    uint64_t bytes_sent;
    uint64_t bytes_received;
    /* in a scenario with steps: how many sessions had only good replies */
    uint64_t sessions_completed;
    uint64_t sessions_failed; /* how many sessions had a step that was not ok */
    uint32_t first_bad_status;
    struct load_bad_reply first_bad_reply;
    int32_t first_error;                   /* the first errno that was counted as OTHER; 0: none */
    char first_failure[LOAD_FAILURE_SIZE]; /* the first failure of TLS, in words; "": none */
    uint8_t interrupted;

    /* Times */
    struct load_histogram connect;
    struct load_histogram handshake; /* the times of TLS handshakes that were completed */
    struct load_histogram first_byte;
    struct load_histogram service;
    struct load_histogram response;

    /* The client itself */
    uint64_t cpu_user_ns; /* CPU time of the worker in the measured time */
    uint64_t cpu_system_ns;
    /* how long the worker waited for a CPU, from /proc/thread-self/schedstat */
    uint64_t run_queue_ns;
    uint64_t spun_ns;   /* CPU time in which the worker spun until its next timer (ticker.h) */
    uint64_t script_ns; /* CPU time of the script's functions */
    uint64_t script_calls;
    /* by how much queries were sent later than intended, although a socket was free */
    struct load_histogram schedule_lag;
    /* by how much wake-ups were later than the time to which the timer was set */
    struct load_histogram timer_error;
    /* how long the turns of the loop took, from the return of epoll_wait to the end of the turn;
     * and, if the client was stopped, by how much turns began too late */
    struct load_histogram loop_lag;

    struct load_timeline timeline;
    uint32_t kinds;     /* how many entries of by_kind are used */
    uint32_t stages;    /* how many entries of by_stage are used */
    uint32_t hosts;     /* how many entries of by_host are used; 0: the run has one host */
    uint32_t addresses; /* how many entries of by_address are used; 0: each host has one address */
    /* of how many sockets by_client has the times; 0: of none, because there are too many, or none
     * is needed */
    uint32_t clients;
    struct load_kind_result by_kind[LOAD_KINDS_MAX];
    struct load_client_result by_client[LOAD_CLIENTS_MAX]; /* the index is client * kinds + kind */
    struct load_stage_result by_stage[LOAD_STAGES_MAX];
    struct load_host_result by_host[LOAD_HOSTS_MAX];
    struct load_address_result by_address[LOAD_HOSTS_MAX * LOAD_ADDRESSES_MAX];
};

/* Fill in histograms that were not recorded because they equal another one: service times equal
 * response times unless queries arrive at a rate, and if there is only one kind of requests, its
 * times are those of all requests. */
void load_result_copy_times(struct load_result *result, bool is_paced);

/* Add *result to *to. Counts and histograms are added up. started_ns becomes the earlier of the
 * two; connect_ns, elapsed_ns and drain_ns become the longer. The members first_... stay those of
 * *to if it has them. The entries of by_client are appended. */
void load_result_add(struct load_result *to, const struct load_result *result);

/* Add the whole result of a worker to sum->by_host[host]. `host` is the host that the worker loads,
 * and `hosts` the number of hosts of the run. */
void load_result_add_host(struct load_result *sum, const struct load_result *result, unsigned host,
                          unsigned hosts);

/* Add the counts of an address to the entry of the same address in *to. If *to has no entry and no
 * room for another one, the counts are left out. */
void load_result_add_address(struct load_result *to, const struct load_address_result *address);

/* Keep only what was counted after `earlier`, an earlier copy of *result, was made. Requests that
 * were in flight then become carried, and requests that were waiting then become offered. The
 * counts of opening sockets and of addresses, and the minima and maxima in by_client, remain those
 * of the whole run. Not for a load with stages. */
void load_result_subtract(struct load_result *result, const struct load_result *earlier);

static inline unsigned
load_status_class(unsigned status)
{
    return status >= 100 && status < 600 ? status / 100 - 1 : LOAD_CLASSES - 1;
}

/* The part of the time ns that is after before_ns; 0 if there is none. */
static inline uint64_t
load_later_part(uint64_t ns, uint64_t before_ns)
{
    return ns > before_ns ? ns - before_ns : 0;
}

/* the sum over all kinds of skips */
uint64_t load_result_skipped(const struct load_result *result);
/* user and system time, without the time that was spent spinning */
uint64_t load_result_cpu_ns(const struct load_result *result);
uint64_t load_result_errors(const struct load_result *result); /* the sum of all ends but OK */
uint64_t load_result_full_handshakes(const struct load_result *result);
uint64_t load_result_replies(const struct load_result *result); /* complete replies, good or not */

/* load_result_in_time: how many good replies came within the measured time. load_result_rate: how
 * many that were a second; 0 if no time was measured. */
uint64_t load_result_in_time(const struct load_result *result);
double load_result_rate(const struct load_result *result);

/* Check that the accounts close (see the beginning of this file). NULL: they do. Otherwise a text
 * names the numbers that do not agree; it is valid until this thread's next call. */
const char *load_result_check(const struct load_result *result);

/* ---- Time line ---- */

/* The slice that counts an event at at_ns after the start. It covers [from, from + width_ns), where
 * from is at_ns rounded down to a multiple of width_ns. The pointer is valid until the next
 * call. */
struct load_slice *load_timeline_slice(struct load_timeline *timeline, uint64_t at_ns);

/* Count a query that ended, in its slice. This function is inline, because it is called for each
 * query. */
static inline void
load_slice_ended(struct load_slice *slice, bool is_ok, uint64_t response_ns)
{
    /* Round up, so that the largest us of a bucket is no less than any time in the bucket. */
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

/* Keep only what was counted after `earlier` was made, a copy of *timeline at earlier_ns after the
 * start. Slices that ended before earlier_ns are removed. */
void load_timeline_subtract(struct load_timeline *timeline, const struct load_timeline *earlier,
                            uint64_t earlier_ns);

/* Move all counts by_ns later, rounded to a multiple of the slices' width. */
void load_timeline_delay(struct load_timeline *timeline, uint64_t by_ns);

/* How many slices a run of elapsed_ns has, with the empty slices at its end. */
unsigned load_timeline_length(const struct load_timeline *timeline, uint64_t elapsed_ns);

/* The response time that the given fraction of the slice's replies does not exceed. It may be
 * larger than the exact time, by at most 1/8 and 1 us. 0: the slice has no replies. */
uint64_t load_slice_quantile_ns(const struct load_slice *slice, double fraction);

#endif
