/* SPDX-License-Identifier: MIT
 *
 * A rank's agent: forks its worker, and sends the worker's messages and counts to rank 0.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "delta.h"
#include "frame.h"
#include "ranks.h"
#include "run-private.h"
#include "script.h"
#include "sxe-process-internal.h"
#include "sxe-time.h"

uint64_t load_agent_period_ns = 200 * SXE_NS_PER_MS;
uint64_t load_agent_silent_ns = 10 * SXE_NS_PER_SECOND;
uint64_t load_agent_stopped_ns = 10 * SXE_NS_PER_SECOND;
int (*load_agent_worker)(const struct load_worker *worker) = load_worker_run;

enum { RESULT, MARK, SCRIPT, DELTAS };

/* One worker, from its START to its end. */
struct load {
    const struct load_agent *agent;
    struct load_plan plan;
    struct load_worker worker;
    pid_t pid;
    int control;
    struct load_result *shared; /* an array of two: result and mark */
    /* what rank 0 has by now: a copy of `shared`, and of the data that a script leaves */
    char *sent;
    size_t sent_size;
    struct load_delta deltas[DELTAS];
    uint64_t heard_ns; /* when rank 0 sent something last */
    uint64_t send_ns;  /* when to send the next RESULT */
    /* since when the worker has been stopped (SIGSTOP); 0: it is not stopped */
    uint64_t stopped_ns;
    bool is_done; /* whether the worker has sent DONE */
    bool is_over;
    bool is_alone; /* whether rank 0 is gone */
};

/* ---- Counts ---- */

/* Send the blocks between two offsets of a delta's memory that have changed. */
static void
send_delta(struct load *load, unsigned which, size_t from, size_t to)
{
    static const enum load_frame_type types[DELTAS] = {
        [RESULT] = LOAD_FRAME_RESULT, [MARK] = LOAD_FRAME_MARK, [SCRIPT] = LOAD_FRAME_SCRIPT};
    static struct load_frame frame;
    struct load_delta *delta = &load->deltas[which];
    size_t bytes;

    frame.type = types[which];
    delta->at = from - from % LOAD_DELTA_BLOCK;
    delta->end = to;
    while ((bytes = load_delta_take(delta, frame.bytes, sizeof(frame.bytes))) > 0 &&
           load_frame_send(load->agent->channel, &frame, bytes))
        ;
}

/* Send all changed blocks of the result or the mark. */
static void
send_whole(struct load *load, unsigned which)
{
    send_delta(load, which, 0, sizeof(*load->shared));
}

/* Send the changed blocks of the part of the result that live views show. The large tables at its
 * end are left out. */
static void
send_result(struct load *load)
{
    static struct load_frame frame = {.type = LOAD_FRAME_RESULT};
    unsigned kinds = load->shared[RESULT].kinds;

    send_delta(load, RESULT, 0, offsetof(struct load_result, by_kind[kinds]));
    /* Send an empty RESULT, too: it shows rank 0 that the agent is alive. */
    load_frame_send(load->agent->channel, &frame, 0);
    load->send_ns = sxe_time_ns() + load_agent_period_ns;
}

static void
say_message(const struct load *load, const struct load_message *message)
{
    struct load_frame frame = {.type = LOAD_FRAME_SAID, .u.message = *message};

    load_frame_send(load->agent->channel, &frame, 0);
}

/* ---- The worker ---- */

static _Noreturn void
run_as_rank_worker(const struct load *load)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(load->control);
    close(load->agent->channel);
    exit(load_agent_worker(&load->worker) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static int
fork_rank_worker(struct load *load)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    load->control = ends[0];
    load->worker.control = ends[1];
    fflush(NULL);
    load->pid = fork();
    if (load->pid == 0)
        run_as_rank_worker(load);
    close(ends[1]);
    return load->pid < 0 ? -errno : 0;
}

static void
set_deltas(struct load *load, void *left, size_t left_size)
{
    const char *result = (const char *)load->shared;
    size_t size = sizeof(*load->shared);
    size_t time_at = offsetof(struct load_result, started_ns);

    load->deltas[RESULT] =
        (struct load_delta){.now = result, .sent = load->sent, .size = size, .time_at = time_at};
    load->deltas[MARK] = (struct load_delta){
        .now = result + size, .sent = load->sent + size, .size = size, .time_at = time_at};
    load->deltas[SCRIPT] = (struct load_delta){
        .now = left, .sent = load->sent + 2 * size, .size = left_size, .time_at = SIZE_MAX};
}

/* Map memory for the results that worker and agent share, and allocate the copy of what rank 0 has;
 * all are zero. */
static int
map_result(struct load *load)
{
    struct load_requests *script = load->agent->script;
    size_t left_size = 0;
    void *left = NULL;

    if (script != NULL)
        left = load_script_left(script, load->worker.shard, load->worker.shards, &left_size);
    load->sent_size = 2 * sizeof(*load->shared) + left_size;
    load->shared = load_results_map(2, true);
    load->sent = calloc(1, load->sent_size);
    if (load->shared == NULL || load->sent == NULL)
        return -ENOMEM;
    load->worker.result = &load->shared[0];
    load->worker.mark = &load->shared[1];
    set_deltas(load, left, left_size);
    return 0;
}

/* End the load: send all counts, and then DONE, or, if there is a reason, GONE with the reason. */
static void
bury_load(struct load *load, const char *reason)
{
    load->is_over = true;
    send_whole(load, RESULT);
    send_delta(load, SCRIPT, 0, load->deltas[SCRIPT].size);
    if (reason == NULL)
        say_message(load, &(struct load_message){.type = LOAD_MESSAGE_DONE});
    else
        load_frame_send_text(load->agent->channel, LOAD_FRAME_GONE, reason);
}

static void
bury_ended(struct load *load, int status)
{
    bool is_good = status == 0 && load->is_done;
    char how[SXE__WAIT_STATUS_MAX];

    load->pid = 0;
    bury_load(load, is_good ? NULL : sxe__wait_status_text(status, how));
}

static void
kill_worker(struct load *load)
{
    if (load->pid > 0) {
        kill(load->pid, SIGKILL);
        waitpid(load->pid, NULL, 0);
        load->pid = 0;
    }
}

/* Check whether the worker has ended, or was stopped for too long. */
static void
look_at_load(struct load *load)
{
    uint64_t now_ns = sxe_time_ns();
    int status;

    if (waitpid(load->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == load->pid) {
        if (WIFSTOPPED(status) || WIFCONTINUED(status))
            load->stopped_ns = WIFSTOPPED(status) ? now_ns : 0;
        else
            bury_ended(load, status);
    }
    if (!load->is_over && load->stopped_ns > 0 &&
        now_ns - load->stopped_ns >= load_agent_stopped_ns) {
        kill_worker(load);
        bury_load(load, "was stopped for too long, and is ended");
    }
}

/* ---- Messages ---- */

static void
hear_worker(struct load *load)
{
    struct load_message message;
    ssize_t got;

    while ((got = load_worker_message(load->control, &message)) == (ssize_t)sizeof(message)) {
        /* Pass DONE on only when the process has ended, because its results are complete only
         * then. */
        load->is_done |= message.type == LOAD_MESSAGE_DONE;
        if (message.type == LOAD_MESSAGE_DONE)
            continue;
        /* Send the results before the message, which says that they are complete. */
        if (message.type == LOAD_MESSAGE_MARKED) {
            send_whole(load, MARK);
            send_whole(load, RESULT);
        }
        send_result(load);
        say_message(load, &message);
    }
    if (got < 0 && errno == EAGAIN)
        return;
    close(load->control);
    load->control = -1;
}

static void
tell_worker(struct load *load, const struct load_frame *frame)
{
    struct load_message message = frame->u.message;
    uint64_t ahead_ns = (uint64_t)frame->clock.ahead_ns;

    load->deltas[RESULT].ahead_ns = load->deltas[MARK].ahead_ns = frame->clock.ahead_ns;
    if (message.type == LOAD_MESSAGE_GO)
        message.u.start_ns += ahead_ns;
    else if (message.type == LOAD_MESSAGE_MARK && message.u.end_ns > 0)
        message.u.end_ns += ahead_ns;
    if (load->control >= 0)
        (void)!send(load->control, &message, sizeof(message), MSG_NOSIGNAL);
}

static void
hear_rank_0(struct load *load)
{
    static struct load_frame frame;
    int bytes;

    while ((bytes = load_frame_receive(load->agent->channel, &frame)) >= 0) {
        load->heard_ns = sxe_time_ns();
        if (frame.type == LOAD_FRAME_TELL)
            tell_worker(load, &frame);
    }
    load->is_alone |= bytes == -2 || sxe_time_ns() >= load->heard_ns + load_agent_silent_ns;
}

/* ---- The agent's loop ---- */

static void
turn_agent(struct load *load)
{
    uint64_t wait_ns = load_later_part(load->send_ns, sxe_time_ns());
    struct pollfd fds[2] = {{load->agent->channel, POLLIN, 0}, {load->control, POLLIN, 0}};

    /* The worker has closed its control, and is about to end: look again soon. */
    if (load->control < 0)
        wait_ns = SXE_NS_PER_MS;
    poll(fds, 2, (int)(wait_ns / SXE_NS_PER_MS) + 1);
    hear_rank_0(load);
    if (load->control >= 0)
        hear_worker(load);
    look_at_load(load);
    if (!load->is_over && sxe_time_ns() >= load->send_ns)
        send_result(load);
}

static void
name_machine(const struct load_agent *agent)
{
    char host[LOAD_HOST_MAX + 1] = "";

    gethostname(host, sizeof(host) - 1);
    load_frame_send_text(agent->channel, LOAD_FRAME_NAME, host);
}

static void
run_rank_load(const struct load_agent *agent, const struct load_start *start)
{
    static struct load load;
    int error;

    load = (struct load){.agent = agent, .plan = *agent->plan, .control = -1};
    load.plan.rate = start->rate;
    load.plan.rate_end = start->rate_end;
    load.plan.duration_ns = start->duration_ns;
    load.plan.seed = start->seed;
    load.worker =
        (struct load_worker){.plan = &load.plan, .shard = start->shard, .shards = start->shards};
    load.heard_ns = sxe_time_ns();
    error = map_result(&load);
    if (error == 0)
        error = fork_rank_worker(&load);
    if (error < 0)
        load_frame_send_text(agent->channel, LOAD_FRAME_GONE, "cannot start: it lacks memory");
    while (error == 0 && !load.is_over && !load.is_alone)
        turn_agent(&load);
    kill_worker(&load);
    if (load.control >= 0)
        close(load.control);
    load_results_unmap(load.shared, 2);
    free(load.sent);
}

void
load_agent_run(const struct load_agent *agent)
{
    static struct load_frame frame;
    struct pollfd fd = {agent->channel, POLLIN, 0};
    int bytes;

    while ((bytes = load_frame_receive(agent->channel, &frame)) != -2) {
        if (bytes == -1) {
            poll(&fd, 1, -1);
            continue;
        }
        if (frame.type != LOAD_FRAME_START)
            continue;
        name_machine(agent);
        if (agent->plan == NULL)
            load_frame_send_text(agent->channel, LOAD_FRAME_GONE, agent->refusal);
        else
            run_rank_load(agent, &frame.u.start);
    }
}
