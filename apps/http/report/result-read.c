/* SPDX-License-Identifier: MIT
 *
 * Reading counts and histograms from the JSON of a result.
 */
#include "result-read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sxe-util.h"

#define NS         1e9
#define US         1e3
#define ERRNO_MOST 134 /* the highest errno of Linux, and one more */

#define LOAD_SLICE_TIMES_MAX (UINT64_C(1) << 30)

#define NAME(enumerator, text, name) name,
static const char *const skip_names[] = {LOAD_EACH_SKIP(NAME)};
static const char *const end_names[] = {LOAD_EACH_END(NAME)};
static const char *const unopened_names[] = {LOAD_EACH_UNOPENED(NAME)};

/* ---- Times ---- */

static void
read_buckets(struct load_reader *reader, const json_t *buckets, struct load_histogram *histogram)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(buckets); i++) {
        const json_t *bucket = json_array_get(buckets, i);
        uint64_t from_ns = load_reader_element(reader, bucket, 0, "histogram", US);
        uint64_t count = load_reader_element(reader, bucket, 2, "histogram", 1);

        histogram->buckets[load__histogram_bucket(from_ns)] += count;
        sum += count;
    }
    if (sum != histogram->count)
        load_reader_refuse(reader, "histogram", "has another number of samples than 'count' says");
}

static void
read_histogram(struct load_reader *reader, const json_t *owner, const char *name,
               struct load_histogram *histogram)
{
    const json_t *times = load_reader_object(reader, owner, name);
    double sum_ns;

    histogram->count = load_reader_count(reader, times, "count", 1);
    histogram->min_ns = load_reader_count(reader, times, "min", US);
    histogram->max_ns = load_reader_count(reader, times, "max", US);
    sum_ns = load_reader_number(reader, times, "mean") * US * (double)histogram->count;
    histogram->sum_ns = sum_ns < 0x1p63 ? (uint64_t)llround(sum_ns) : UINT64_MAX;
    histogram->censored = load_reader_count(reader, times, "censored", 1);
    if (histogram->censored > 0)
        histogram->censored_from_ns = load_reader_count(reader, times, "censored_from", US);
    read_buckets(reader, load_reader_array(reader, times, "histogram"), histogram);
}

/* Read a slice: [offered, sent, ok, errors, p50, p99, max, buckets]. */
static void
read_slice(struct load_reader *reader, const json_t *json, struct load_slice *slice)
{
    uint32_t *const counts[] = {&slice->offered, &slice->sent, &slice->ok, &slice->errors};
    const json_t *buckets = json_array_get(json, 7);

    for (unsigned i = 0; i < SXE_COUNT(counts); i++)
        *counts[i] = (uint32_t)load_reader_element(reader, json, i, "slices", 1);
    slice->max_us = (uint32_t)load_reader_element(reader, json, 6, "slices", 1);
    for (size_t i = 0; i + 1 < json_array_size(buckets); i += 2) {
        uint64_t bucket = load_reader_element(reader, buckets, i, "slices", 1);

        if (bucket < LOAD_SLICE_BUCKETS)
            slice->buckets[bucket] =
                (uint32_t)load_reader_element(reader, buckets, i + 1, "slices", 1);
    }
}

/* Whether a time line's width is possible. It is 0 if the time line has no slices. At most 124 days
 * are allowed, so that the width can be doubled without an overflow. */
static bool
is_width(uint64_t width_ns, size_t slices)
{
    uint64_t times = width_ns / LOAD_SLICE_NS;

    return width_ns % LOAD_SLICE_NS == 0 && (times & (times - 1)) == 0 &&
           times <= LOAD_SLICE_TIMES_MAX && (times > 0 || slices == 0);
}

static void
read_timeline(struct load_reader *reader, const json_t *owner, struct load_timeline *timeline)
{
    const json_t *json = load_reader_object(reader, owner, "timeline");
    const json_t *slices = load_reader_array(reader, json, "slices");
    size_t used = json_array_size(slices);

    timeline->width_ns = load_reader_count(reader, json, "width_s", NS);
    timeline->offset_ns = load_reader_count(reader, json, "offset_s", NS);
    if (used > LOAD_SLICES)
        load_reader_refuse(reader, "timeline", "has too many slices");
    if (!is_width(timeline->width_ns, used))
        load_reader_refuse(reader, "width_s", "is not 0.01 times a power of two");
    if (used > LOAD_SLICES || !is_width(timeline->width_ns, used)) {
        timeline->width_ns = 0;
        return;
    }
    timeline->used = (uint32_t)used;
    for (size_t i = 0; i < used; i++)
        read_slice(reader, json_array_get(slices, i), &timeline->slices[i]);
}

/* ---- Accounts ---- */

static void
read_counts(struct load_reader *reader, const json_t *owner, const char *name,
            const char *const *names, uint64_t *counts, unsigned number)
{
    const json_t *json = load_reader_object(reader, owner, name);

    for (unsigned i = 0; i < number; i++)
        counts[i] = load_reader_count(reader, json, names[i], 1);
}

/* Find the errno that strerror(3) describes by this text; 0: there is none. */
static int
errno_of(const char *text)
{
    int error = text != NULL ? 1 : ERRNO_MOST;

    while (error < ERRNO_MOST && strcmp(strerror(error), text) != 0)
        error++;
    return error < ERRNO_MOST ? error : 0;
}

static void
read_accounts(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *json = load_reader_object(reader, owner, "accounts");
    const json_t *bad;
    const char *failure;

#define TAKE(name) result->name = load_reader_count(reader, json, #name, 1);
    TAKE(offered)
    TAKE(sent)
    TAKE(carried)
    TAKE(waiting)
    TAKE(in_flight)
    TAKE(drained)
    TAKE(late)
    TAKE(resent)
    TAKE(bytes_sent)
    TAKE(bytes_received)
#undef TAKE
    read_counts(reader, json, "skipped", skip_names, result->skipped, LOAD_SKIPS);
    read_counts(reader, json, "ends", end_names, result->ends, LOAD_ENDS);
    result->first_bad_status = (uint32_t)load_reader_count(reader, json, "first_bad_status", 1);
    result->first_error = errno_of(load_reader_text(reader, json, "first_error"));
    failure = load_reader_text(reader, json, "first_failure");
    snprintf(result->first_failure, sizeof(result->first_failure), "%s",
             failure != NULL ? failure : "");
    bad = load_reader_object(reader, json, "first_bad_reply");
    load_bad_reply_read(&result->first_bad_reply, load_reader_text(reader, bad, "why"),
                        load_reader_text(reader, bad, "bytes"));
}

static void
read_sockets(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *json = load_reader_object(reader, owner, "sockets");

    result->sockets_wanted = load_reader_count(reader, json, "wanted", 1);
    result->opened = load_reader_count(reader, json, "opened", 1);
    read_counts(reader, json, "unopened", unopened_names, result->unopened, LOAD_UNOPENEDS);
    result->connect_ns = load_reader_count(reader, json, "seconds", NS);
    result->reopened = load_reader_count(reader, json, "reopened", 1);
    result->not_reopened = load_reader_count(reader, json, "not_reopened", 1);
    result->syn_retries = load_reader_count(reader, json, "syn_retries", 1);
    result->retransmits = load_reader_count(reader, json, "retransmits", 1);
}

static void
read_client(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *json = load_reader_object(reader, owner, "client");

    result->cpu_user_ns = load_reader_count(reader, json, "cpu_user_s", NS);
    result->cpu_system_ns = load_reader_count(reader, json, "cpu_system_s", NS);
    result->spun_ns = load_reader_count(reader, json, "spun_s", NS);
    result->run_queue_ns = load_reader_count(reader, json, "run_queue_s", NS);
    result->spun_ns = load_reader_count(reader, json, "spun_s", NS);
    result->script_ns = load_reader_count(reader, json, "script_s", NS);
    result->script_calls = load_reader_count(reader, json, "script_calls", 1);
    read_histogram(reader, json, "schedule_lag", &result->schedule_lag);
    read_histogram(reader, json, "timer_error", &result->timer_error);
    read_histogram(reader, json, "loop_lag", &result->loop_lag);
}

/* ---- Kinds of requests, and the clients that sent them ---- */

static void
read_one_client(struct load_reader *reader, const json_t *json, struct load_client_result *client)
{
    double mean_us = json_number_value(json_array_get(json, 2));

    client->count = load_reader_element(reader, json, 0, "clients", 1);
    client->min_ns = load_reader_element(reader, json, 1, "clients", US);
    client->max_ns = load_reader_element(reader, json, 3, "clients", US);
    client->sum_ns = (uint64_t)llround(fmin(fabs(mean_us) * US * (double)client->count, 0x1p62));
}

static void
read_kind_result(struct load_reader *reader, const json_t *json, struct load_result *result,
                 unsigned kind)
{
    const json_t *clients = load_reader_array(reader, json, "clients");

    result->by_kind[kind].ok = load_reader_count(reader, json, "ok", 1);
    result->by_kind[kind].errors = load_reader_count(reader, json, "errors", 1);
    read_histogram(reader, json, "response", &result->by_kind[kind].response);
    if (json_array_size(clients) * result->kinds > LOAD_CLIENTS_MAX)
        return;
    result->clients = (uint32_t)json_array_size(clients);
    for (unsigned i = 0; i < result->clients; i++)
        read_one_client(reader, json_array_get(clients, i),
                        &result->by_client[i * result->kinds + kind]);
}

static void
read_kind_results(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *kinds = load_reader_array(reader, owner, "kinds");

    if (json_array_size(kinds) > LOAD_KINDS_MAX) {
        load_reader_refuse(reader, "kinds", "has too many kinds of requests");
        return;
    }
    result->kinds = (uint32_t)json_array_size(kinds);
    for (unsigned i = 0; i < result->kinds; i++)
        read_kind_result(reader, json_array_get(kinds, i), result, i);
}

/* ---- Stages ---- */

static void
read_stage_results(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *stages = load_reader_array(reader, owner, "stages");

    if (json_array_size(stages) > LOAD_STAGES_MAX) {
        load_reader_refuse(reader, "stages", "are too many");
        return;
    }
    result->stages = (uint32_t)json_array_size(stages);
    for (unsigned i = 0; i < result->stages; i++) {
        const json_t *json = json_array_get(stages, i);
        struct load_stage_result *stage = &result->by_stage[i];

        stage->offered = load_reader_count(reader, json, "offered", 1);
        stage->sent = load_reader_count(reader, json, "sent", 1);
        stage->ok = load_reader_count(reader, json, "ok", 1);
        stage->errors = load_reader_count(reader, json, "errors", 1);
        stage->in_time = load_reader_count(reader, json, "in_time", 1);
        read_histogram(reader, json, "response", &stage->response);
    }
}

/* ---- Hosts ---- */

static void
read_result_hosts(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *hosts = load_reader_array(reader, owner, "hosts");

    if (json_array_size(hosts) > LOAD_HOSTS_MAX) {
        load_reader_refuse(reader, "hosts", "are too many");
        return;
    }
    result->hosts = (uint32_t)json_array_size(hosts);
    for (unsigned i = 0; i < result->hosts; i++) {
        const json_t *json = json_array_get(hosts, i);
        struct load_host_result *host = &result->by_host[i];

#define TAKE(name) host->name = load_reader_count(reader, json, #name, 1);
        TAKE(sockets_wanted)
        TAKE(opened)
        TAKE(reopened)
        TAKE(not_reopened)
        TAKE(offered)
        TAKE(sent)
        TAKE(skipped)
        TAKE(ok)
        TAKE(errors)
#undef TAKE
        read_histogram(reader, json, "connect", &host->connect);
        read_histogram(reader, json, "response", &host->response);
    }
}

/* ---- Addresses ---- */

/* Read the addresses; files of earlier versions have none. */
static void
read_addresses(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *addresses = load_reader_array(reader, owner, "addresses");

    for (size_t i = 0; i < json_array_size(addresses); i++) {
        const json_t *json = json_array_get(addresses, i);
        const char *ip = load_reader_text(reader, json, "ip");
        struct load_address_result address = {
            .port = (uint16_t)load_reader_count(reader, json, "port", 1),
            .is_unused = load_reader_bool(reader, json, "is_unused"),
            .opened = load_reader_count(reader, json, "opened", 1),
            .failed = load_reader_count(reader, json, "failed", 1),
            .first_error = errno_of(load_reader_text(reader, json, "first_error")),
        };

        snprintf(address.ip, sizeof(address.ip), "%s", ip != NULL ? ip : "");
        load_result_add_address(result, &address);
    }
}

/* ---- The whole result ---- */

/* Read the sessions; files of earlier versions have none. */
static void
read_sessions(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *json = load_reader_object(reader, owner, "sessions");

    result->sessions_completed = load_reader_count(reader, json, "completed", 1);
    result->sessions_failed = load_reader_count(reader, json, "failed", 1);
}

/* Read the handshakes; files of earlier versions have none. The number of full handshakes is not
 * read: it is the number in the histogram less the resumed ones. */
static void
read_handshakes(struct load_reader *reader, const json_t *owner, struct load_result *result)
{
    const json_t *json = load_reader_object(reader, owner, "tls");

    result->handshakes_resumed = load_reader_count(reader, json, "resumed", 1);
    result->handshakes_refused = load_reader_count(reader, json, "refused", 1);
    result->handshakes_sessionless = load_reader_count(reader, json, "sessionless", 1);
    read_histogram(reader, owner, "handshake", &result->handshake);
}

void
load_result_read(struct load_reader *reader, const json_t *json, struct load_result *result)
{
    const char *open;

    result->elapsed_ns = load_reader_count(reader, json, "seconds", NS);
    result->drain_ns = load_reader_count(reader, json, "drain_seconds", NS);
    result->started_ns = load_reader_count(reader, json, "began_s", NS);
    read_accounts(reader, json, result);
    read_sessions(reader, json, result);
    read_sockets(reader, json, result);
    read_handshakes(reader, json, result);
    read_histogram(reader, json, "connect", &result->connect);
    read_histogram(reader, json, "first_byte", &result->first_byte);
    read_histogram(reader, json, "service", &result->service);
    read_histogram(reader, json, "response", &result->response);
    read_client(reader, json, result);
    read_timeline(reader, json, &result->timeline);
    read_kind_results(reader, json, result);
    read_stage_results(reader, json, result);
    read_result_hosts(reader, json, result);
    read_addresses(reader, json, result);
    open = load_result_check(result);
    if (open != NULL)
        load_reader_refuse(reader, "accounts", open);
}

void
load_verdict_read(struct load_reader *reader, const json_t *json, struct load_verdict *verdict)
{
    const json_t *reasons = load_reader_array(reader, json, "reasons");

    verdict->cpu = load_reader_number(reader, json, "cpu");
    verdict->spun = load_reader_number(reader, json, "spun");
    verdict->spun = load_reader_number(reader, json, "spun");
    verdict->run_queue = load_reader_number(reader, json, "run_queue");
    verdict->has_cpu_pressure = json_is_number(json_object_get(json, "cpu_pressure"));
    verdict->cpu_pressure = load_reader_number(reader, json, "cpu_pressure");
    for (size_t i = 0; i < json_array_size(reasons) && verdict->number < LOAD_REASONS_MAX; i++) {
        const char *reason = json_string_value(json_array_get(reasons, i));

        snprintf(verdict->reasons[verdict->number++], LOAD_REASON_MAX, "%s",
                 reason != NULL ? reason : "no reason is given");
    }
}
