/* SPDX-License-Identifier: MIT
 *
 * One trial: open connections, begin the load, warm up, measure, stop, add up.
 */
#include "run-private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "summary.h"
#include "sxe-time.h"

uint64_t load_trial_start_in_ns = 2 * SXE_NS_PER_MS;
void (*load_trial_parts)(struct load_parent *parent, struct load_trial *trial,
                         const struct load_result *const *workers);

/* How long before --start-at the sockets are opened: they should not be open for hours. And how
 * late a trial may begin before its result becomes suspect. */
#define OPEN_BEFORE_NS (60 * SXE_NS_PER_SECOND)
#define LATE_NS        (100 * SXE_NS_PER_MS)

static void
hint_at_limit(FILE *err, const struct load_result *result)
{
    struct rlimit limit = {0};

    if (result->unopened[LOAD_UNOPENED_NO_DESCRIPTOR] == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &limit);
    fprintf(
        err,
        "sxe-http: going on with %llu of %llu connections: a process may open %llu files at most, "
        "raise that (ulimit -Hn) or use more workers (-t)\n",
        (unsigned long long)result->opened, (unsigned long long)result->sockets_wanted,
        (unsigned long long)limit.rlim_max);
}

/* If no socket opened, and the cause is not a limit of the client, print a hint. */
static void
hint_at_server(const struct load_parent *parent, const struct load_result *result)
{
    const char *where = load_server_where(parent->plan);

    if (result->opened > 0 || parent->is_stopping)
        return;
    if (result->unopened[LOAD_UNOPENED_REFUSED] > 0)
        fprintf(parent->err,
                "sxe-http: no connection could be opened (refused): does a server listen on %s?\n",
                where);
    else if (result->unopened[LOAD_UNOPENED_TIMED_OUT] > 0)
        fprintf(
            parent->err,
            "sxe-http: no connection could be opened (timed out): is %s the right address, and may "
            "you connect there?\n",
            where);
    else if (result->unopened[LOAD_UNOPENED_OTHER] > 0)
        fprintf(parent->err, "sxe-http: no connection could be opened (%s): is %s right?\n",
                strerror(result->first_error), where);
    else if (result->unopened[LOAD_UNOPENED_TLS] > 0)
        fprintf(parent->err,
                "sxe-http: no connection to %s could be opened (TLS: %s); --tls-ca and --tls-name "
                "say what to trust, --insecure trusts all\n",
                where, result->first_failure);
}

/* If sockets to some hosts opened, print a hint for each host to which none opened. */
static void
hint_at_hosts(const struct load_parent *parent, const struct load_result *result)
{
    const struct load_plan *plan = parent->plan;

    for (unsigned i = 0; i < plan->hosts_number && result->opened > 0; i++) {
        const struct load_host *host = &plan->hosts[i];
        uint64_t opened = 0;

        for (unsigned k = i; k < parent->load; k += plan->hosts_number)
            opened += parent->processes[k].result->opened;
        if (opened == 0 && !parent->is_stopping)
            fprintf(parent->err,
                    "sxe-http: no connection to %s could be opened; the load goes on without it\n",
                    *host->path != '\0' ? host->path : host->authority);
    }
}

/* The process of the probe; NULL: there is no probe. */
static const struct load_process *
probe_of(const struct load_parent *parent)
{
    return parent->number > parent->load ? &parent->processes[parent->load] : NULL;
}

/* If the probe has no socket, print a hint, unless the load has none either: then the hint was
 * printed for the load. */
static void
hint_at_probe(const struct load_parent *parent, const struct load_result *load)
{
    const struct load_process *probe = probe_of(parent);

    if (probe != NULL && probe->result->opened == 0 && load->opened > 0 && !parent->is_stopping)
        fprintf(
            parent->err,
            "sxe-http: the probe could open none of its %u connections; the load goes on without "
            "it\n",
            parent->probe.sockets);
}

static void
say_sockets(struct load_parent *parent)
{
    load_results_clear(parent->sum, 1);
    for (unsigned i = 0; i < parent->load; i++)
        load_result_add(parent->sum, parent->processes[i].result);
    if (parent->out != NULL) {
        load_summary_sockets(parent->out, parent->sum);
        fflush(parent->out);
    }
    hint_at_limit(parent->err, parent->sum);
    hint_at_server(parent, parent->sum);
    hint_at_hosts(parent, parent->sum);
    hint_at_probe(parent, parent->sum);
}

/* Wait until the workers have opened their sockets. False: the load must not begin. */
static bool
open_sockets(struct load_parent *parent, bool is_first)
{
    load_parent_show(parent, true);
    load_workers_await(parent, LOAD_MESSAGE_READY, LOAD_NEVER);
    load_parent_show(parent, false);
    if (parent->has_failed)
        return false;
    if (is_first)
        say_sockets(parent);
    return !parent->is_stopping;
}

static uint64_t
wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SXE_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Wait until before_ns before the time of --start-at. Returns how many ns ago this moment was; 0:
 * it is now. */
static uint64_t
wait_for_start(struct load_parent *parent, uint64_t before_ns)
{
    uint64_t at_ns = parent->plan->start_at_ns - before_ns;
    uint64_t now_ns = wall_ns();

    while (now_ns < at_ns && !parent->is_stopping && parent->interrupts == 0) {
        load_parent_turn(parent, sxe_time_ns() + at_ns - now_ns);
        now_ns = wall_ns();
    }
    return load_later_part(now_ns, at_ns);
}

/* The time at which the load begins, by CLOCK_MONOTONIC: soon, or at the time of --start-at. */
static uint64_t
start_of(struct load_parent *parent, bool is_first)
{
    uint64_t late_ns = 0;

    parent->late_ns = 0;
    if (is_first && parent->plan->start_at_ns > 0) {
        late_ns = wait_for_start(parent, load_trial_start_in_ns);
        parent->late_ns = load_later_part(late_ns, load_trial_start_in_ns);
    }
    return sxe_time_ns() + load_later_part(load_trial_start_in_ns, late_ns);
}

static uint64_t
start_workers(struct load_parent *parent, bool is_first)
{
    const struct load_plan *plan = parent->plan;
    uint64_t start_ns = start_of(parent, is_first);

    load_workers_tell(parent,
                      (struct load_message){.type = LOAD_MESSAGE_GO, .u.start_ns = start_ns});
    parent->has_begun = true;
    parent->pressure = load_pressure_read(LOAD_PRESSURE_FILE);
    load_parent_show(parent, true);
    parent->end_ns =
        plan->stop == LOAD_STOP_TIME ? start_ns + plan->warmup_ns + plan->duration_ns : LOAD_NEVER;
    return start_ns;
}

static void
subtract_warmup(struct load_process *process, struct load_left_out *left_out)
{
    const struct load_result *mark = process->mark;

    if (mark->elapsed_ns > left_out->ns)
        left_out->ns = mark->elapsed_ns;
    left_out->queries += mark->ends[LOAD_END_OK] + load_result_errors(mark);
    load_result_subtract(process->result, mark);
}

static void
leave_out_warmup(struct load_parent *parent, struct load_left_out *left_out)
{
    struct load_left_out of_probe = {0};
    bool is_reported = false;

    for (unsigned i = 0; i < parent->number; i++) {
        struct load_process *process = &parent->processes[i];

        if (process->said & 1u << LOAD_MESSAGE_MARKED)
            subtract_warmup(process, i < parent->load ? left_out : &of_probe);
        else if (i < parent->load)
            is_reported = parent->plan->warmup_ns > 0 && process->result->started_ns > 0;
    }
    if (is_reported && !parent->has_failed)
        fputs(parent->interrupts > 0
                  ? "sxe-http: interrupted within the warm-up, which is therefore reported\n"
                  : "sxe-http: the run ended within its warm-up, which is therefore reported; make "
                    "--warmup shorter, or the run longer\n",
              parent->err);
}

/* A part of the trial that is summed and judged separately: the load, or the probe. */
struct part {
    /* the words after "the accounts" in a message: "" for the load, " of the probe" for the
     * probe */
    const char *name;
    const struct load_plan *plan;
    const struct load_result *const *workers;
    unsigned first; /* the index of its first process */
    unsigned number;
    struct load_result *sum;
    struct load_verdict *verdict;
};

static void
sum_part(struct load_parent *parent, const struct part *part)
{
    struct load_pressure now = load_pressure_read(LOAD_PRESSURE_FILE);
    struct load_verdict limits;
    const char *open;

    load_results_clear(part->sum, 1);
    for (unsigned i = 0; i < part->number; i++) {
        load_result_add(part->sum, part->workers[i]);
        if (part->plan->hosts_number > 0)
            load_result_add_host(part->sum, part->workers[i], i % part->plan->hosts_number,
                                 part->plan->hosts_number);
    }
    part->sum->interrupted = parent->interrupts > 0;
    load_verdict_judge(&limits, part->plan, part->sum, part->workers, part->number);
    *part->verdict = (struct load_verdict){0};
    load_workers_doubt(parent, part->first, part->number, part->verdict);
    load_verdict_add(part->verdict, &limits);
    part->verdict->has_cpu_pressure =
        load_pressure_between(&part->verdict->cpu_pressure, &parent->pressure, &now);
    /* If no socket opened, the run fails anyway: drop the doubts about its figures. */
    if (part->sum->opened == 0)
        part->verdict->number = 0;
    open = load_result_check(part->sum);
    if (open != NULL)
        load_parent_fail(parent,
                         "the accounts%s do not close, which is a fault of sxe-http: %s; please "
                         "report it with the command line",
                         part->name, open);
}

void
load_trial_sum(struct load_parent *parent, struct load_trial *trial,
               const struct load_result *const *workers)
{
    sum_part(parent, &(struct part){"", parent->plan, workers, 0, parent->load, trial->result,
                                    &trial->verdict});
    if (load_trial_parts != NULL)
        load_trial_parts(parent, trial, workers);
    load_result_figures(trial->result, trial->figures);
    trial->at_least = load_figures_at_least(trial->result, trial->figures);
}

static void
sum_all_workers(struct load_parent *parent, struct load_trial *trial)
{
    const struct load_result *workers[LOAD_PROCESSES_MAX];

    leave_out_warmup(parent, &trial->left_out);
    for (unsigned i = 0; i < parent->number; i++)
        workers[i] = parent->processes[i].result;
    load_trial_sum(parent, trial, workers);
    if (probe_of(parent) != NULL) {
        sum_part(parent, &(struct part){" of the probe", &parent->probe, &workers[parent->load],
                                        parent->load, 1, trial->probe, &trial->probe_verdict});
        load_verdict_judge_probe(&trial->probe_verdict, trial->probe);
    }
    load_warmup_judge(parent->plan, trial);
    if (parent->late_ns > LATE_NS)
        load_verdict_say(&trial->verdict,
                         "it began %.3f s after --start-at, when its connections were open; start "
                         "later, or raise --connect-ramp",
                         (double)parent->late_ns / 1e9);
}

/* Wait for the end of the probe. With a duration it ends by itself, at the same time as the load;
 * if the load has ended earlier, stop it. */
static void
end_probe(struct load_parent *parent)
{
    if (probe_of(parent) == NULL)
        return;
    if (sxe_time_ns() < parent->end_ns && !parent->is_stopping)
        load_workers_tell(parent, (struct load_message){.type = LOAD_MESSAGE_STOP});
    load_workers_await_end(parent);
}

/* Run the part of a trial from READY until all workers have ended and their results are added
 * up. */
static int
use_workers(struct load_parent *parent, struct load_trial *trial, bool is_first,
            load_measure measure, void *user)
{
    bool is_open = open_sockets(parent, is_first);
    bool is_summed = is_open && measure(parent, start_workers(parent, is_first), user);

    if (is_open)
        end_probe(parent);
    load_workers_stop(parent);
    load_workers_await_end(parent);
    load_parent_show(parent, false);
    load_parent_monitor(parent);
    if (!is_open && parent->has_failed)
        return -1;
    if (!is_summed)
        sum_all_workers(parent, trial);
    return 0;
}

int
load_trial_run(struct load_parent *parent, struct load_trial *trial, bool is_first,
               load_measure measure, void *user)
{
    int error = -1;

    trial->result = load_results_map_run(parent->plan, &trial->probe);
    if (trial->result == NULL) {
        load_parent_fail(parent, "no memory for a result; see what is limited (ulimit -a)");
        return -1;
    }
    if (is_first && parent->plan->start_at_ns > 0)
        wait_for_start(parent, OPEN_BEFORE_NS);
    if (parent->interrupts == 0 && load_server_start(parent) == 0) {
        load_monitor_begin(parent->monitor, sxe_time_ns());
        if (load_workers_start(parent) == 0)
            error = use_workers(parent, trial, is_first, measure, user);
        load_workers_await_end(parent);
        load_monitor_end(parent->monitor);
        load_workers_free(parent);
    }
    load_server_stop(parent);
    if (error < 0) {
        load_results_unmap_run(trial->result, trial->probe);
        trial->result = trial->probe = NULL;
    }
    return error;
}
