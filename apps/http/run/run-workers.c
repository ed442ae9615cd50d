/* SPDX-License-Identifier: MIT
 *
 * Starting, hearing and reaping worker processes.
 */
#include "run-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "requests.h"
#include "sxe-process-internal.h"
#include "sxe-time.h"

int (*load_workers_work)(const struct load_worker *worker) = load_worker_run;

static unsigned
message_bit(enum load_message_type type)
{
    return 1u << type;
}

/* In the worker process: make a plan for the only host that this worker loads. */
static void
plan_for_host(struct load_plan *own, struct load_worker *worker, unsigned nth)
{
    const struct load_plan *plan = worker->plan;
    struct load_requests *requests = plan->requests;
    unsigned parts = plan->shards > 0 ? plan->shards : 1;
    const struct load_host *host = &plan->hosts[nth % plan->hosts_number];

    *own = *plan;
    memcpy(own->ip, host->ip, sizeof(own->ip));
    own->addresses = host->addresses;
    memcpy(own->authority, host->authority, sizeof(own->authority));
    own->port = host->port;
    own->unix_path = *host->path != '\0' ? host->path : NULL;
    requests->host = nth % plan->hosts_number;
    requests->turn = nth / plan->hosts_number * parts + plan->shard;
    requests->turns = plan->workers / plan->hosts_number * parts;
    worker->plan = own;
}

/* Run as a worker process. It ends with exit(), not _exit(), so that its files are flushed. */
static _Noreturn void
run_as_worker(const struct load_parent *parent, const struct load_worker *worker)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(parent->signals);
    for (unsigned i = 0; i < parent->number; i++)
        close(parent->processes[i].control);
    load_monitor_forget(parent->monitor);
    exit(load_workers_work(worker) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* Fork the next process, for worker `shard` of the plan. */
static int
fork_load_worker(struct load_parent *parent, const struct load_plan *plan, unsigned shard)
{
    struct load_process *process = &parent->processes[parent->number];
    unsigned parts = plan->shards > 0 ? plan->shards : 1;
    /* With --shard, the shards between this run's shards belong to other runs of sxe-http. */
    struct load_worker worker = {
        .plan = plan,
        .shard = plan->shard + parts * shard,
        .shards = parts * plan->workers,
        .result = &parent->shared[2 * parent->number],
        .mark = &parent->shared[2 * parent->number + 1],
        .is_probe = plan == &parent->probe,
    };
    struct load_plan own;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    worker.control = ends[1];
    *process = (struct load_process){
        .control = ends[0],
        .result = worker.result,
        .mark = worker.mark,
    };
    parent->number++;
    process->pid = fork();
    if (process->pid == 0 && plan->hosts_number > 0)
        plan_for_host(&own, &worker, shard);
    if (process->pid == 0)
        run_as_worker(parent, &worker);
    close(ends[1]);
    if (process->pid < 0) {
        process->pid = 0;
        return -errno;
    }
    return 0;
}

/* How many processes a plan needs: its workers and its probe. */
static unsigned
processes_of(const struct load_plan *plan)
{
    return plan->workers + (plan->probe_rate > 0);
}

int
load_workers_start(struct load_parent *parent)
{
    const struct load_plan *plan = parent->plan;
    unsigned number = processes_of(plan);
    int error = 0;

    parent->is_stopping = parent->has_begun = false;
    parent->ask_ns = sxe_time_ns() + LOAD_ASK_NS;
    parent->shared = load_results_map(2 * number, true);
    if (parent->shared == NULL)
        error = -errno;
    fflush(NULL);
    for (unsigned i = 0; i < plan->workers && error == 0; i++)
        error = fork_load_worker(parent, plan, i);
    parent->load = parent->number;
    if (error == 0 && plan->probe_rate > 0) {
        load_probe_plan(&parent->probe, plan);
        error = fork_load_worker(parent, &parent->probe, 0);
    }
    if (error < 0)
        load_parent_fail(parent,
                         "cannot start %u worker process%s: %s; see what is limited (ulimit -a)",
                         number, number == 1 ? "" : "es", strerror(-error));
    return error < 0 ? -1 : 0;
}

void
load_workers_tell(struct load_parent *parent, struct load_message message)
{
    for (unsigned i = 0; i < parent->number; i++) {
        struct load_process *process = &parent->processes[i];

        if (process->control < 0 || process->said & message_bit(LOAD_MESSAGE_DONE))
            continue;
        if (message.type == LOAD_MESSAGE_MARK || message.type == LOAD_MESSAGE_RATE)
            process->said &= ~message_bit(LOAD_MESSAGE_MARKED);
        if (send(process->control, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
            errno != EPIPE && process->pid > 0)
            /* The worker did not get the message, so it would never answer: kill it. */
            kill(process->pid, SIGKILL);
    }
}

void
load_workers_stop(struct load_parent *parent)
{
    if (parent->is_stopping)
        return;
    parent->is_stopping = true;
    load_workers_tell(parent, (struct load_message){.type = LOAD_MESSAGE_STOP});
}

void
load_workers_kill(struct load_parent *parent)
{
    for (unsigned i = 0; i < parent->number; i++) {
        if (parent->processes[i].pid > 0)
            kill(parent->processes[i].pid, SIGKILL);
    }
}

static const char *
advice_for_error(int error)
{
    if (error == ENOMEM)
        return "; use fewer connections (-c), or more workers (-t), so that each has fewer";
    return error == EMFILE ? "; allow more open files (ulimit -n)" : "";
}

static const char *
reason_of(int error)
{
    return error == ECANCELED ? "the script failed, as is said above" : strerror(error);
}

static void
hear_ready(struct load_parent *parent, const struct load_message *message)
{
    if (message->error != 0 && !parent->has_failed)
        load_parent_fail(parent, "cannot start: %s%s", reason_of(message->error),
                         advice_for_error(message->error));
}

void
load_workers_hear(struct load_parent *parent, unsigned i)
{
    struct load_process *process = &parent->processes[i];
    struct load_message message;
    ssize_t got;

    while ((got = load_worker_message(process->control, &message)) == (ssize_t)sizeof(message)) {
        process->said |= message_bit(message.type);
        process->asks = 0;
        if (message.type == LOAD_MESSAGE_READY)
            hear_ready(parent, &message);
    }
    if (got < 0 && errno == EAGAIN)
        return;
    close(process->control);
    process->control = -1;
}

static const char *
name_of_process(const struct load_parent *parent, unsigned i)
{
    static char text[40];

    if (i >= parent->load)
        return "the probe";
    snprintf(text, sizeof(text), "worker %u of %u", i + 1, parent->load);
    return text;
}

/* Whether the queries of process i arrive at a rate. They do in the probe, and in a load whose
 * model is not the closed loop. */
static bool
is_process_paced(const struct load_parent *parent, unsigned i)
{
    const struct load_plan *plan = parent->plan;

    return i >= parent->load || plan->model != LOAD_CLOSED || plan->stop == LOAD_STOP_REPLAY;
}

static void
bury_worker(struct load_parent *parent, unsigned i, int status)
{
    struct load_process *process = &parent->processes[i];
    pid_t pid = process->pid;
    char how[SXE__WAIT_STATUS_MAX];

    process->pid = 0;
    if (process->control >= 0)
        load_workers_hear(parent, i);
    if (status == 0 && process->said & message_bit(LOAD_MESSAGE_DONE))
        return;
    load_result_force(process->result, is_process_paced(parent, i));
    /* After a second interrupt the parent kills workers. This is no failure. */
    if (parent->interrupts > 1)
        return;
    process->has_died = true;
    /* a message of failure was printed already, such as the error that the worker sent with
     * READY */
    if (parent->has_failed)
        return;
    load_parent_fail(parent, "%s (process %d) %s; what it had counted so far is reported",
                     name_of_process(parent, i), (int)pid,
                     process->is_silent ? "did not answer for too long and was ended: it was "
                                          "stopped, or a function of C in it does not return"
                                        : sxe__wait_status_text(status, how));
}

void
load_workers_doubt(const struct load_parent *parent, unsigned first, unsigned number,
                   struct load_verdict *verdict)
{
    for (unsigned i = first; i < first + number; i++) {
        const struct load_process *process = &parent->processes[i];

        if (process->has_died)
            load_verdict_say(verdict,
                             "%s died after %.3f s, and its part of the load with it; see the "
                             "error that was said, and measure again",
                             name_of_process(parent, i), (double)process->result->elapsed_ns / 1e9);
    }
}

void
load_workers_reap(struct load_parent *parent)
{
    for (unsigned i = 0; i < parent->number; i++) {
        int status = 0;

        /* waitpid also returns -1 if other code has waited for the process, which then has ended,
         * too */
        if (parent->processes[i].pid > 0 &&
            waitpid(parent->processes[i].pid, &status, WNOHANG) != 0)
            bury_worker(parent, i, status);
    }
}

static bool
have_all_said(const struct load_parent *parent, enum load_message_type type)
{
    unsigned number = type == LOAD_MESSAGE_DONE ? parent->load : parent->number;

    for (unsigned i = 0; i < number; i++) {
        const struct load_process *process = &parent->processes[i];

        if (process->pid > 0 &&
            !(process->said & (message_bit(type) | message_bit(LOAD_MESSAGE_DONE))))
            return false;
    }
    return true;
}

bool
load_workers_await(struct load_parent *parent, enum load_message_type type, uint64_t until_ns)
{
    while (!have_all_said(parent, type)) {
        if (sxe_time_ns() >= until_ns)
            return false;
        load_parent_turn(parent, until_ns);
    }
    return true;
}

void
load_workers_await_end(struct load_parent *parent)
{
    for (unsigned i = 0; i < parent->number; i++) {
        while (parent->processes[i].pid > 0)
            load_parent_turn(parent, LOAD_NEVER);
    }
}

void
load_workers_free(struct load_parent *parent)
{
    for (unsigned i = 0; i < parent->number; i++) {
        if (parent->processes[i].control >= 0)
            close(parent->processes[i].control);
    }
    parent->number = parent->load = 0;
    load_results_unmap(parent->shared, 2 * processes_of(parent->plan));
    parent->shared = NULL;
}
