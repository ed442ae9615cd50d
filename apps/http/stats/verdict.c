/* SPDX-License-Identifier: MIT
 *
 * Judging whether the client kept up.
 */
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pace.h"

/* if a worker measured for a shorter time, figures that are parts of this time are not judged */
#define TOO_SHORT_NS  UINT64_C(10000000)
#define STANDSTILL_NS UINT64_C(100000000)
/* by how many standard deviations the number of Poisson arrivals may be below its expected value */
#define CHANCE 4
#define MS     1e6

/* The limits. 0 stands for a reason that is not about a limit (load_verdict_say). */
enum limit_name {
    CPU = 1,
    RUN_QUEUE,
    LOOP_LAG,
    STANDSTILL,
    TIMER_ERROR,
    SCHEDULE_LAG,
    UNSENT,
    SOCKETS,
    REFUSED,
    LOST,
    PORTS,
    DESCRIPTORS,
    SCRIPT,
    PROBE_WAITED,
    LIMITS
};

_Static_assert(LIMITS - 1 <= LOAD_REASONS_MAX, "each limit can be a reason");

static const struct unit {
    const char *text;
    double factor;
} percent = {" %", 100}, ms = {" ms", 1 / MS}, none = {"", 1};

/* The words of a reason. It is printed as: what, the figure, of, (limit ...): todo. */
static const struct limit {
    const char *what;
    const struct unit *unit;
    double limit;
    const char *of;
    const char *todo;
} limits[LIMITS] = {
    [CPU] = {"client cpu", &percent, 0.97, " of a core",
             "this may be the client's rate; use a larger -t"},
    [RUN_QUEUE] = {"waited", &percent, 0.05, " of the time for a CPU",
                   "something else runs on the client's CPUs; keep it off with taskset"},
    [LOOP_LAG] = {"loop lag p99", &ms, 10 * MS, "",
                  "replies wait until they are read; use a larger -t, or fewer connections"},
    [STANDSTILL] = {"the client stood still for", &percent, 0.01, " of the time",
                    "it was stopped, or a script held it; measure again"},
    [TIMER_ERROR] = {"timer error p99", &ms, 1 * MS, "",
                     "the client is woken too late; leave it a CPU of its own"},
    [SCHEDULE_LAG] = {"schedule lag p99", &ms, 1 * MS, "",
                      "requests were sent late; use a larger -t, or a lower -R"},
    [UNSENT] = {"the client did not send", &percent, 0.01, " of what was due",
                "it could not keep up; use a larger -t, or a lower -R"},
    [SOCKETS] = {"connections that did not open:", &none, 0, "",
                 "the load is smaller than asked for; use fewer, or a slower --connect-ramp"},
    [REFUSED] = {"connections that were refused:", &none, 0, "",
                 "see whether a server listens there, and accepts so many"},
    [LOST] = {"connections that could not be opened again:", &none, 0, "",
              "the load was smaller than asked for; see why the server was away"},
    [PORTS] = {"connections without a local port:", &none, 0, "",
               "use --source with more addresses, --abort, or a wider "
               "net.ipv4.ip_local_port_range"},
    [DESCRIPTORS] = {"connections without a descriptor:", &none, 0, "",
                     "raise ulimit -n, or use fewer"},
    [SCRIPT] = {"the script took", &percent, 0.2, " of the client's cpu",
                "its own cost is in the figures; do less in it, or use a larger -t"},
    [PROBE_WAITED] =
        {"waits for a CPU were", &percent, 0.1, " of its response times",
         "other processes run on its CPUs; leave it one, with a smaller -t or taskset"},
};

static void
check_limit_with(struct load_verdict *verdict, enum limit_name name, double measured,
                 const char *todo)
{
    const struct limit *limit = &limits[name];
    const char *unit = limit->unit->text;
    double factor = limit->unit->factor;

    if (!(measured > limit->limit))
        return;
    snprintf(verdict->reasons[verdict->number], LOAD_REASON_MAX, "%s %.*f%s%s (limit %.0f%s): %s",
             limit->what, limit->unit == &none ? 0 : 1, measured * factor, unit, limit->of,
             limit->limit * factor, unit, todo);
    verdict->limits[verdict->number++] = (unsigned char)name;
}

static void
check_plain_limit(struct load_verdict *verdict, enum limit_name name, double measured)
{
    check_limit_with(verdict, name, measured, limits[name].todo);
}

static double
part_of(uint64_t part, uint64_t whole)
{
    return whole > 0 ? fmin((double)part / (double)whole, 1) : 0;
}

static bool
is_plan_paced(const struct load_plan *plan)
{
    return plan->model != LOAD_CLOSED || plan->stop == LOAD_STOP_REPLAY;
}

/* The p99 in ns; 0 if there are too few samples. */
static double
p99_of(const struct load_histogram *histogram)
{
    return load_histogram_can_tell(histogram, 0.99)
               ? (double)load_histogram_quantile(histogram, 0.99)
               : 0;
}

/* The part of the time in which the client was stopped. Stops of up to STANDSTILL_NS do not count,
 * because they may happen to any process. */
static double
standstill_share(const struct load_result *worker)
{
    struct load_bucket lag;
    uint64_t still_ns = 0;
    unsigned bucket = 0;

    while (load_histogram_next(&worker->loop_lag, &bucket, &lag))
        if (lag.from_ns > STANDSTILL_NS)
            still_ns += lag.count * (lag.from_ns / 2 + lag.to_ns / 2);
    return part_of(still_ns, worker->elapsed_ns);
}

/* Advice for a client that uses too much CPU. With TLS, handshakes and encryption take CPU time. A
 * full handshake takes as much as some hundred small requests, so even one handshake for 100
 * requests is a large part of the whole. */
static const char *
cpu_todo(const struct load_plan *plan, const struct load_result *sum)
{
    if (!plan->tls.is_used)
        return limits[CPU].todo;
    if (sum->reopened > 0 && sum->reopened >= sum->sent / 100)
        return "TLS handshakes are a part of it; use a larger -t, keep connections alive, or "
               "resume sessions (--tls-resume)";
    return "TLS encryption is a part of it, and this may be the client's rate; use a larger -t";
}

/* Judge for each limit the worker with the worst figure, because an average of all workers would
 * hide it. */
static void
judge_workers(struct load_verdict *verdict, const struct load_plan *plan,
              const struct load_result *sum, const struct load_result *const *workers,
              unsigned number)
{
    double lags[LIMITS] = {0};

    for (unsigned i = 0; i < number; i++) {
        const struct load_result *worker = workers[i];
        uint64_t cpu_ns = load_result_cpu_ns(worker);

        if (worker->elapsed_ns < TOO_SHORT_NS)
            continue;
        verdict->cpu = fmax(verdict->cpu, part_of(cpu_ns, worker->elapsed_ns));
        verdict->spun = fmax(verdict->spun, part_of(worker->spun_ns, worker->elapsed_ns));
        verdict->run_queue =
            fmax(verdict->run_queue, part_of(worker->run_queue_ns, worker->elapsed_ns));
        lags[LOOP_LAG] = fmax(lags[LOOP_LAG], p99_of(&worker->loop_lag));
        lags[STANDSTILL] = fmax(lags[STANDSTILL], standstill_share(worker));
        lags[TIMER_ERROR] = fmax(lags[TIMER_ERROR], p99_of(&worker->timer_error));
        lags[SCHEDULE_LAG] = fmax(lags[SCHEDULE_LAG], p99_of(&worker->schedule_lag));
    }
    check_limit_with(verdict, CPU, verdict->cpu, cpu_todo(plan, sum));
    check_plain_limit(verdict, RUN_QUEUE, verdict->run_queue);
    check_plain_limit(verdict, LOOP_LAG, lags[LOOP_LAG]);
    check_plain_limit(verdict, STANDSTILL, lags[STANDSTILL]);
    if (!is_plan_paced(plan))
        return;
    check_plain_limit(verdict, TIMER_ERROR, lags[TIMER_ERROR]);
    check_plain_limit(verdict, SCHEDULE_LAG, lags[SCHEDULE_LAG]);
}

/* The smallest number of arrivals that is likely in the time of the run: CHANCE standard deviations
 * below the expected number. 0: no number is expected. */
static double
expected_arrivals(const struct load_plan *plan, const struct load_result *sum)
{
    double ns = (double)(sum->elapsed_ns < plan->duration_ns ? sum->elapsed_ns : plan->duration_ns);
    double shards = plan->shards > 0 ? plan->shards : 1;
    double expected = load_pace_expected(plan, (uint64_t)ns) / shards;

    if (plan->stop != LOAD_STOP_TIME || plan->find != NULL ||
        (plan->stages_number == 0 && !load_plan_is_level(plan)))
        return 0;
    return expected - CHANCE * sqrt(expected);
}

/* The part of the load that the client failed to send. Queries that were shed, found no free
 * socket, or waited for one do not count, because they show a slow server. But in the open model
 * queries do not wait, so an unsent query is the client's fault. */
static double
unsent_part(const struct load_plan *plan, const struct load_result *sum)
{
    bool is_own = plan->model == LOAD_OPEN && !sum->interrupted;
    double handled = (double)(sum->offered - (is_own ? sum->skipped[LOAD_SKIP_UNSENT] : 0));
    double due = fmax((double)sum->offered, expected_arrivals(plan, sum));

    if (plan->model == LOAD_CLOSED || due <= 0 || sum->elapsed_ns < TOO_SHORT_NS)
        return 0;
    return 1 - handled / due;
}

static void
judge_sockets(struct load_verdict *verdict, const struct load_result *sum)
{
    uint64_t ports = sum->unopened[LOAD_UNOPENED_NO_PORT];
    uint64_t descriptors = sum->unopened[LOAD_UNOPENED_NO_DESCRIPTOR];
    uint64_t refused = sum->unopened[LOAD_UNOPENED_REFUSED];
    uint64_t untried = sum->unopened[LOAD_UNOPENED_UNTRIED];
    uint64_t known;

    /* The first socket that lacks a descriptor or a port ends the ramp, so the sockets that were
     * not tried are counted with it. */
    if (!sum->interrupted && descriptors > 0)
        descriptors += untried;
    else if (!sum->interrupted && ports > 0)
        ports += untried;
    known = ports + descriptors + refused + (sum->interrupted ? untried : 0);
    check_plain_limit(verdict, SOCKETS,
                      (double)sum->sockets_wanted - (double)sum->opened - (double)known);
    check_plain_limit(verdict, REFUSED, (double)refused);
    check_plain_limit(verdict, LOST, (double)sum->not_reopened);
    check_plain_limit(verdict, PORTS, (double)ports);
    check_plain_limit(verdict, DESCRIPTORS, (double)descriptors);
}

void
load_verdict_judge(struct load_verdict *verdict, const struct load_plan *plan,
                   const struct load_result *sum, const struct load_result *const *workers,
                   unsigned number)
{
    *verdict = (struct load_verdict){0};
    judge_workers(verdict, plan, sum, workers, number);
    check_plain_limit(verdict, UNSENT, unsent_part(plan, sum));
    judge_sockets(verdict, sum);
    if (sum->elapsed_ns >= TOO_SHORT_NS)
        check_plain_limit(verdict, SCRIPT, part_of(sum->script_ns, load_result_cpu_ns(sum)));
}

void
load_verdict_judge_probe(struct load_verdict *verdict, const struct load_result *probe)
{
    if (probe->elapsed_ns >= TOO_SHORT_NS)
        check_plain_limit(verdict, PROBE_WAITED,
                          part_of(probe->run_queue_ns, probe->response.sum_ns));
}

/* Whether verdict has a reason about the same limit, or, if the reason is not about a limit, a
 * reason with the same text. */
static bool
has_reason(const struct load_verdict *verdict, const struct load_verdict *other, unsigned reason)
{
    for (unsigned i = 0; i < verdict->number; i++)
        if (other->limits[reason] != 0 ? verdict->limits[i] == other->limits[reason]
                                       : strcmp(verdict->reasons[i], other->reasons[reason]) == 0)
            return true;
    return false;
}

void
load_verdict_add(struct load_verdict *to, const struct load_verdict *verdict)
{
    for (unsigned i = 0; i < verdict->number && to->number < LOAD_REASONS_MAX; i++) {
        if (has_reason(to, verdict, i))
            continue;
        memcpy(to->reasons[to->number], verdict->reasons[i], LOAD_REASON_MAX);
        to->limits[to->number++] = verdict->limits[i];
    }
    to->cpu = fmax(to->cpu, verdict->cpu);
    to->spun = fmax(to->spun, verdict->spun);
    to->run_queue = fmax(to->run_queue, verdict->run_queue);
    to->cpu_pressure = fmax(to->cpu_pressure, verdict->cpu_pressure);
    to->has_cpu_pressure |= verdict->has_cpu_pressure;
}
