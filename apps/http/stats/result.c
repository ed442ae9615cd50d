/* SPDX-License-Identifier: MIT
 *
 * Adding and subtracting results.
 */
#include "result.h"

#include <stdio.h>
#include <string.h>

#include "sxe-util.h"

/* The members that are counts since the last mark (MARK: worker.h). Other members are about the
 * whole run, or about the present. */
#define EACH_COUNT(X)     \
    X(reopened)           \
    X(not_reopened)       \
    X(resent)             \
    X(retransmits)        \
    X(offered)            \
    X(sent)               \
    X(carried)            \
    X(drained)            \
    X(late)               \
    X(bytes_sent)         \
    X(bytes_received)     \
    X(sessions_completed) \
    X(sessions_failed)    \
    X(cpu_user_ns)        \
    X(cpu_system_ns)      \
    X(run_queue_ns)       \
    X(spun_ns)            \
    X(script_ns)          \
    X(script_calls)
#define EACH_HISTOGRAM(X) \
    X(first_byte)         \
    X(service)            \
    X(response)           \
    X(schedule_lag)       \
    X(timer_error)        \
    X(loop_lag)

static void
add_counts(uint64_t *to, const uint64_t *counts, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        to[i] += counts[i];
}

static void
subtract_counts(uint64_t *from, const uint64_t *counts, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        from[i] -= counts[i];
}

static uint64_t
sum_of_counts(const uint64_t *counts, unsigned number)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < number; i++)
        sum += counts[i];
    return sum;
}

static void
keep_longest(uint64_t *to, uint64_t ns)
{
    if (ns > *to)
        *to = ns;
}

static void
add_sockets(struct load_result *to, const struct load_result *result)
{
    to->sockets_wanted += result->sockets_wanted;
    to->opened += result->opened;
    to->syn_retries += result->syn_retries;
    add_counts(to->unopened, result->unopened, LOAD_UNOPENEDS);
    add_counts(to->in_state, result->in_state, LOAD_SOCKET_STATES);
    keep_longest(&to->connect_ns, result->connect_ns);
    load_histogram_add(&to->connect, &result->connect);
    to->handshakes_resumed += result->handshakes_resumed;
    to->handshakes_refused += result->handshakes_refused;
    to->handshakes_sessionless += result->handshakes_sessionless;
    load_histogram_add(&to->handshake, &result->handshake);
}

static void
add_clients(struct load_result *to, const struct load_result *result)
{
    bool is_first = to->kinds == 0;
    bool are_known = result->clients > 0 && (is_first || to->clients > 0);
    uint64_t used = (uint64_t)to->clients * result->kinds;
    uint64_t more = (uint64_t)result->clients * result->kinds;

    if (result->kinds == 0)
        return;
    to->kinds = result->kinds;
    if (!are_known || used + more > LOAD_CLIENTS_MAX) {
        to->clients = 0;
        return;
    }
    memcpy(&to->by_client[used], result->by_client, more * sizeof(result->by_client[0]));
    to->clients += result->clients;
}

static void
add_kind_results(struct load_result *to, const struct load_result *result)
{
    for (unsigned i = 0; i < result->kinds; i++) {
        to->by_kind[i].ok += result->by_kind[i].ok;
        to->by_kind[i].errors += result->by_kind[i].errors;
        load_histogram_add(&to->by_kind[i].response, &result->by_kind[i].response);
    }
}

static void
add_stages(struct load_result *to, const struct load_result *result)
{
    if (result->stages > to->stages)
        to->stages = result->stages;
    for (unsigned i = 0; i < result->stages; i++) {
        struct load_stage_result *sum = &to->by_stage[i];
        const struct load_stage_result *stage = &result->by_stage[i];

        sum->offered += stage->offered;
        sum->sent += stage->sent;
        sum->ok += stage->ok;
        sum->errors += stage->errors;
        sum->in_time += stage->in_time;
        load_histogram_add(&sum->response, &stage->response);
    }
}

#define EACH_HOST_COUNT(X) \
    X(sockets_wanted)      \
    X(opened)              \
    X(reopened)            \
    X(not_reopened)        \
    X(offered)             \
    X(sent)

static void
add_hosts(struct load_result *to, const struct load_result *result)
{
    if (result->hosts > to->hosts)
        to->hosts = result->hosts;
    for (unsigned i = 0; i < result->hosts; i++) {
        struct load_host_result *sum = &to->by_host[i];
        const struct load_host_result *host = &result->by_host[i];

#define ADD(name) sum->name += host->name;
        EACH_HOST_COUNT(ADD)
        ADD(skipped)
        ADD(ok)
        ADD(errors)
#undef ADD
        load_histogram_add(&sum->connect, &host->connect);
        load_histogram_add(&sum->response, &host->response);
    }
}

/* Find the entry of an address, or add an entry. NULL: there is no room for another entry. */
static struct load_address_result *
find_address_result(struct load_result *result, const struct load_address_result *address)
{
    unsigned i = 0;

    while (i < result->addresses && (result->by_address[i].port != address->port ||
                                     strcmp(result->by_address[i].ip, address->ip) != 0))
        i++;
    if (i == SXE_COUNT(result->by_address))
        return NULL;
    if (i == result->addresses) {
        result->by_address[i] = (struct load_address_result){.port = address->port};
        memcpy(result->by_address[i].ip, address->ip, LOAD_IP_SIZE);
        result->by_address[i].is_unused = address->is_unused;
        result->addresses++;
    }
    return &result->by_address[i];
}

void
load_result_add_address(struct load_result *to, const struct load_address_result *address)
{
    struct load_address_result *sum = find_address_result(to, address);

    if (sum == NULL)
        return;
    sum->is_unused &= address->is_unused;
    sum->opened += address->opened;
    sum->failed += address->failed;
    if (sum->first_error == 0)
        sum->first_error = address->first_error;
}

void
load_result_add_host(struct load_result *sum, const struct load_result *result, unsigned host,
                     unsigned hosts)
{
    struct load_host_result *to = &sum->by_host[host];

    sum->hosts = hosts;
#define ADD(name) to->name += result->name;
    EACH_HOST_COUNT(ADD)
#undef ADD
    to->skipped += load_result_skipped(result);
    to->ok += result->ends[LOAD_END_OK];
    to->errors += load_result_errors(result);
    load_histogram_add(&to->connect, &result->connect);
    load_histogram_add(&to->response, &result->response);
}

void
load_result_add(struct load_result *to, const struct load_result *result)
{
#define ADD(name) to->name += result->name;
    EACH_COUNT(ADD)
#undef ADD
#define ADD(name) load_histogram_add(&to->name, &result->name);
    EACH_HISTOGRAM(ADD)
#undef ADD
    add_sockets(to, result);
    add_counts(to->skipped, result->skipped, LOAD_SKIPS);
    add_counts(to->ends, result->ends, LOAD_ENDS);
    add_counts(to->classes, result->classes, LOAD_CLASSES);
    to->waiting += result->waiting;
    to->in_flight += result->in_flight;
    if (to->started_ns == 0 || (result->started_ns > 0 && result->started_ns < to->started_ns))
        to->started_ns = result->started_ns;
    keep_longest(&to->elapsed_ns, result->elapsed_ns);
    keep_longest(&to->drain_ns, result->drain_ns);
    if (to->first_bad_status == 0)
        to->first_bad_status = result->first_bad_status;
    if (to->first_bad_reply.why == 0)
        to->first_bad_reply = result->first_bad_reply;
    if (to->first_error == 0)
        to->first_error = result->first_error;
    if (*to->first_failure == '\0')
        memcpy(to->first_failure, result->first_failure, sizeof(to->first_failure));
    to->interrupted |= result->interrupted;
    load_timeline_add(&to->timeline, &result->timeline);
    add_clients(to, result);
    add_kind_results(to, result);
    add_stages(to, result);
    add_hosts(to, result);
    for (unsigned i = 0; i < result->addresses; i++)
        load_result_add_address(to, &result->by_address[i]);
}

void
load_result_copy_times(struct load_result *result, bool is_paced)
{
    if (!is_paced)
        load_histogram_update(&result->service, &result->response);
    if (result->kinds == 1)
        load_histogram_update(&result->by_kind[0].response, &result->response);
}

static void
subtract_kinds(struct load_result *result, const struct load_result *earlier)
{
    for (unsigned i = 0; i < earlier->kinds; i++) {
        result->by_kind[i].ok -= earlier->by_kind[i].ok;
        result->by_kind[i].errors -= earlier->by_kind[i].errors;
        load_histogram_subtract(&result->by_kind[i].response, &earlier->by_kind[i].response);
    }
    for (unsigned i = 0; i < earlier->clients * earlier->kinds; i++) {
        result->by_client[i].count -= earlier->by_client[i].count;
        result->by_client[i].sum_ns -= earlier->by_client[i].sum_ns;
    }
}

void
load_result_subtract(struct load_result *result, const struct load_result *earlier)
{
#define SUBTRACT(name) result->name -= earlier->name;
    EACH_COUNT(SUBTRACT)
#undef SUBTRACT
#define SUBTRACT(name) load_histogram_subtract(&result->name, &earlier->name);
    EACH_HISTOGRAM(SUBTRACT)
#undef SUBTRACT
    subtract_counts(result->skipped, earlier->skipped, LOAD_SKIPS);
    subtract_counts(result->ends, earlier->ends, LOAD_ENDS);
    subtract_counts(result->classes, earlier->classes, LOAD_CLASSES);
    result->offered += earlier->waiting;
    result->carried += earlier->in_flight;
    result->started_ns += earlier->elapsed_ns;
    /* elapsed_ns may end before the mark, because without a duration it ends with the last
     * reply. */
    result->elapsed_ns = load_later_part(result->elapsed_ns, earlier->elapsed_ns);
    if (result->ends[LOAD_END_BAD_STATUS] == 0)
        result->first_bad_status = 0;
    if (result->ends[LOAD_END_BAD_REPLY] == 0)
        result->first_bad_reply.why = 0;
    if (result->ends[LOAD_END_OTHER] == 0 && result->unopened[LOAD_UNOPENED_OTHER] == 0)
        result->first_error = 0;
    load_timeline_subtract(&result->timeline, &earlier->timeline, earlier->elapsed_ns);
    subtract_kinds(result, earlier);
}

uint64_t
load_result_skipped(const struct load_result *result)
{
    return sum_of_counts(result->skipped, LOAD_SKIPS);
}

uint64_t
load_result_errors(const struct load_result *result)
{
    return sum_of_counts(result->ends, LOAD_ENDS) - result->ends[LOAD_END_OK];
}

uint64_t
load_result_full_handshakes(const struct load_result *result)
{
    return load_later_part(result->handshake.count, result->handshakes_resumed);
}

uint64_t
load_result_cpu_ns(const struct load_result *result)
{
    return load_later_part(result->cpu_user_ns + result->cpu_system_ns, result->spun_ns);
}

uint64_t
load_result_replies(const struct load_result *result)
{
    const uint64_t *ends = result->ends;

    return ends[LOAD_END_OK] + ends[LOAD_END_BAD_STATUS] + ends[LOAD_END_BAD_FIELD] +
           ends[LOAD_END_BAD_BODY] + ends[LOAD_END_FAILED_CHECK];
}

uint64_t
load_result_in_time(const struct load_result *result)
{
    return load_later_part(result->ends[LOAD_END_OK], result->drained);
}

double
load_result_rate(const struct load_result *result)
{
    return result->elapsed_ns > 0
               ? (double)load_result_in_time(result) * 1e9 / (double)result->elapsed_ns
               : 0;
}

const char *
load_result_check(const struct load_result *result)
{
    static _Thread_local char text[160];
    unsigned long long skipped = load_result_skipped(result);
    unsigned long long ended = sum_of_counts(result->ends, LOAD_ENDS);
    unsigned long long unopened = sum_of_counts(result->unopened, LOAD_UNOPENEDS);
    unsigned long long offered = result->offered, sent = result->sent, waiting = result->waiting,
                       carried = result->carried, in_flight = result->in_flight,
                       wanted = result->sockets_wanted, opened = result->opened;

    if (offered != sent + skipped + waiting)
        snprintf(text, sizeof(text), "offered %llu is not sent %llu + skipped %llu + waiting %llu",
                 offered, sent, skipped, waiting);
    else if (sent + carried != ended + in_flight)
        snprintf(text, sizeof(text), "sent %llu + carried %llu is not ended %llu + in flight %llu",
                 sent, carried, ended, in_flight);
    else if (wanted != opened + unopened)
        snprintf(text, sizeof(text), "connections wanted %llu is not opened %llu + unopened %llu",
                 wanted, opened, unopened);
    else
        return NULL;
    return text;
}
