/* SPDX-License-Identifier: MIT
 *
 * Following a run for --jsonl and --metrics: it looks at the workers' counts each second.
 */
#include "monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output.h"
#include "run.h"
#include "sxe-time.h"

struct load_monitor {
    const struct load_plan *plan;
    FILE *err;
    /* the stream for the lines of --jsonl; NULL: there are no lines, or an error has ended them */
    FILE *lines;
    int error; /* the -errno of a line that could not be written; 0: no error */
    bool has_metrics;
    bool is_running;          /* whether a trial is running */
    bool is_closed;           /* whether the model is a closed loop */
    uint64_t missing;         /* how many lines were left out since the last one was written */
    uint64_t due_ns;          /* when to look next */
    uint64_t looked_ns;       /* when the last look was */
    struct load_tally before; /* the counts of this trial at the look before the last look */
    /* figures.sum is the sum of the trials that have ended and of the present one */
    struct load_metrics_figures figures;
    struct load_tally over;         /* the counts of all trials that have ended */
    struct load_tally now;          /* the counts of this trial at the last look */
    struct load_histogram response; /* the response times of this trial until the last look */
    struct load_histogram last;     /* the response times between the last two looks */
    struct load_metrics metrics;
};

/* ---- Opening and closing ---- */

/* Whether the port is 0. If so, the kernel chooses the port, and the user must be told which it
 * is. */
static bool
has_free_port(const char *place)
{
    const char *colon = strrchr(place, ':');

    return strcmp(colon == NULL ? place : colon + 1, "0") == 0;
}

static int
open_metrics(struct load_monitor *monitor)
{
    const struct load_plan *plan = monitor->plan;
    char name[128];
    int error = load_metrics_open(&monitor->metrics, plan);

    monitor->has_metrics = true;
    if (error < 0) {
        fprintf(monitor->err, "sxe-http: --metrics cannot listen on %s: %s; nothing was run\n",
                plan->metrics, strerror(-error));
        return LOAD_EXIT_USAGE;
    }
    load_metrics_name(&monitor->metrics, name, sizeof(name));
    if (!plan->quiet || has_free_port(plan->metrics))
        fprintf(monitor->err, "metrics   %s\n", name);
    return 0;
}

static int
open_lines(struct load_monitor *monitor)
{
    const char *path = monitor->plan->jsonl;

    monitor->lines = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (monitor->lines != NULL)
        return 0;
    fprintf(monitor->err, "sxe-http: --jsonl %s cannot be written: %s; nothing was run\n", path,
            strerror(errno));
    return LOAD_EXIT_USAGE;
}

int
load_monitor_open(struct load_monitor **to, const struct load_plan *plan, FILE *err)
{
    struct load_monitor *monitor;
    int status = 0;

    *to = NULL;
    if (plan->metrics == NULL && plan->jsonl == NULL)
        return 0;
    monitor = calloc(1, sizeof(*monitor));
    if (monitor == NULL) {
        fprintf(err, "sxe-http: no memory for --metrics and --jsonl; nothing was run\n");
        return LOAD_EXIT_ERRORS;
    }
    monitor->plan = plan;
    monitor->err = err;
    monitor->is_closed = plan->model == LOAD_CLOSED;
    monitor->due_ns = sxe_time_ns() + SXE_NS_PER_SECOND;
    if (plan->jsonl != NULL)
        status = open_lines(monitor);
    if (status == 0 && plan->metrics != NULL)
        status = open_metrics(monitor);
    if (status == 0)
        *to = monitor;
    else
        load_monitor_close(monitor);
    return status;
}

static void
close_lines(struct load_monitor *monitor)
{
    if (monitor->lines != NULL && monitor->lines != stdout)
        fclose(monitor->lines);
    monitor->lines = NULL;
}

void
load_monitor_close(struct load_monitor *monitor)
{
    if (monitor == NULL)
        return;
    close_lines(monitor);
    if (monitor->has_metrics)
        load_metrics_close(&monitor->metrics);
    free(monitor);
}

void
load_monitor_forget(struct load_monitor *monitor)
{
    if (monitor != NULL && monitor->has_metrics)
        load_metrics_forget(&monitor->metrics);
}

/* ---- Lines ---- */

/* Whether a line can be written without waiting: a slow reader must not delay the run. */
static bool
has_output_room(FILE *lines)
{
    struct pollfd fd = {.fd = fileno(lines), .events = POLLOUT};

    return poll(&fd, 1, 0) == 1 && fd.revents != 0;
}

/* Remember the error of an output, print a message, and close the output; the run goes on without
 * it. */
static void
note_error(struct load_monitor *monitor, int error)
{
    if (error == 0)
        return;
    monitor->error = error;
    fprintf(monitor->err, "sxe-http: --jsonl %s could not be written: %s; it ends here\n",
            monitor->plan->jsonl, strerror(-error));
    close_lines(monitor);
}

static double
wall_clock_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void
write_second(struct load_monitor *monitor, double seconds, uint64_t now_ns)
{
    uint64_t started_ns = monitor->now.started_ns;
    const struct load_second second = {
        .time_s = wall_clock_s(),
        .seconds = seconds,
        .elapsed_s = started_ns == 0 || started_ns > now_ns
                         ? -1
                         : (double)(now_ns - started_ns) / SXE_NS_PER_SECOND,
        .trial = monitor->figures.trial,
        .before = &monitor->before,
        .now = &monitor->now,
        .response = &monitor->last,
        .missing = monitor->missing,
    };

    if (!has_output_room(monitor->lines)) {
        monitor->missing++;
        return;
    }
    monitor->missing = 0;
    note_error(monitor, load_output_second(monitor->lines, &second));
}

int
load_monitor_finish(struct load_monitor *monitor, const struct load_run *run)
{
    if (monitor == NULL)
        return 0;
    if (monitor->lines != NULL)
        note_error(monitor, load_output_result_line(monitor->lines, run, monitor->missing));
    return monitor->error;
}

/* ---- Looks ---- */

void
load_monitor_begin(struct load_monitor *monitor, uint64_t now_ns)
{
    if (monitor == NULL)
        return;
    monitor->is_running = true;
    monitor->figures.trial++;
    monitor->looked_ns = now_ns;
    monitor->due_ns = now_ns + SXE_NS_PER_SECOND;
    memset(&monitor->now, 0, sizeof(monitor->now));
    memset(&monitor->response, 0, sizeof(monitor->response));
}

void
load_monitor_end(struct load_monitor *monitor)
{
    if (monitor == NULL)
        return;
    load_tally_add(&monitor->over, &monitor->now);
    monitor->is_running = false;
    monitor->figures.sum = monitor->over;
    monitor->figures.offered_rate = monitor->figures.ok_rate = 0;
}

uint64_t
load_monitor_due_ns(const struct load_monitor *monitor)
{
    return monitor != NULL ? monitor->due_ns : UINT64_MAX;
}

static void
add_worker_results(struct load_monitor *monitor, const struct load_result *const *workers,
                   unsigned number)
{
    monitor->before = monitor->now;
    memset(&monitor->now, 0, sizeof(monitor->now));
    memset(&monitor->last, 0, sizeof(monitor->last));
    for (unsigned i = 0; i < number; i++) {
        load_tally_take(&monitor->now, workers[i], monitor->is_closed);
        load_histogram_add(&monitor->last, &workers[i]->response);
    }
    monitor->figures.sum = monitor->now;
    load_tally_add(&monitor->figures.sum, &monitor->over);
}

/* Compute in monitor->last the response times since the last look, and add them to
 * monitor->response. */
static void
subtract_last_look(struct load_monitor *monitor)
{
    struct load_histogram *before = &monitor->response;
    struct load_histogram *last = &monitor->last;

    load_histogram_subtract(last, before);
    load_histogram_add(before, last);
}

void
load_monitor_look(struct load_monitor *monitor, const struct load_result *const *workers,
                  unsigned number, uint64_t now_ns)
{
    double seconds;

    if (monitor == NULL)
        return;
    /* The next look is due a whole number of seconds after the first one; looks that were missed
     * are not made up for. */
    monitor->due_ns +=
        ((load_later_part(now_ns, monitor->due_ns)) / SXE_NS_PER_SECOND + 1) * SXE_NS_PER_SECOND;
    if (monitor->has_metrics)
        load_metrics_tick(&monitor->metrics, now_ns);
    if (!monitor->is_running)
        return;
    seconds = (double)load_later_part(now_ns, monitor->looked_ns) / SXE_NS_PER_SECOND;
    monitor->looked_ns = now_ns;
    add_worker_results(monitor, workers, number);
    subtract_last_look(monitor);
    monitor->figures.offered_rate =
        load_per_second(monitor->now.offered - monitor->before.offered, seconds);
    monitor->figures.ok_rate = load_per_second(
        monitor->now.ends[LOAD_END_OK] - monitor->before.ends[LOAD_END_OK], seconds);
    if (monitor->lines != NULL)
        write_second(monitor, seconds, now_ns);
}

void
load_monitor_poll(const struct load_monitor *monitor, struct pollfd *fds)
{
    if (monitor != NULL && monitor->has_metrics) {
        load_metrics_poll(&monitor->metrics, fds);
        return;
    }
    for (unsigned i = 0; i < LOAD_MONITOR_FDS; i++)
        fds[i] = (struct pollfd){.fd = -1};
}

void
load_monitor_serve(struct load_monitor *monitor, const struct pollfd *fds, uint64_t now_ns)
{
    if (monitor != NULL && monitor->has_metrics)
        load_metrics_serve(&monitor->metrics, fds, now_ns, &monitor->figures);
}
