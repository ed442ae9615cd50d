/* SPDX-License-Identifier: MIT
 *
 * An envoy at rank 0: to the coordinator it is a worker; the real worker is at another rank.
 */
#include "envoy.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "delta.h"
#include "frame.h"
#include "script.h"
#include "sxe-time.h"

#define ALIVE_NS SXE_NS_PER_SECOND

uint64_t load_envoy_silent_ns = 10 * SXE_NS_PER_SECOND;
uint64_t load_envoy_first_ns = 120 * SXE_NS_PER_SECOND;

static struct load_ranks *ranks;

struct envoy {
    const struct load_worker *worker;
    unsigned rank;
    int channel;
    struct load_clock clock;
    /* the READY of the worker, which is held back until the rank's clock was measured */
    struct load_message ready;
    uint64_t lost_ns;  /* if the rank sends nothing until this time, it counts as lost */
    uint64_t alive_ns; /* when to send the next ALIVE */
    /* 1: the envoy goes on; otherwise the result that load_envoy_work returns */
    int status;
    struct load_frame frame;
};

/* Print the message with one write, so that messages of several envoys do not mix. */
static void
fail_envoy(struct envoy *envoy, const char *what)
{
    fprintf(stderr, "sxe-http: %s %s\n", load_rank_name(ranks, envoy->rank), what);
    envoy->status = -ECONNABORTED;
}

static void
pass_message_on(struct envoy *envoy, const struct load_message *message)
{
    /* Ignore errors: if the coordinator is gone, the control's end of file shows it. */
    (void)!send(envoy->worker->control, message, sizeof(*message), MSG_NOSIGNAL);
    if (message->type == LOAD_MESSAGE_DONE)
        envoy->status = 0;
}

static void
tell_relay(struct envoy *envoy, enum load_frame_type type, const struct load_message *message)
{
    struct load_frame frame = {.type = type, .clock = envoy->clock};

    if (message != NULL)
        frame.u.message = *message;
    if (!load_frame_send(envoy->channel, &frame, 0))
        fail_envoy(envoy, "cannot be reached any more");
}

/* ---- Frames of the rank ---- */

static void
apply_delta(struct envoy *envoy, void *memory, size_t size, int bytes)
{
    if (!load_delta_apply(memory, size, envoy->frame.bytes, (size_t)bytes))
        fail_envoy(envoy, "sent what is no part of a result");
}

static void
apply_script(struct envoy *envoy, int bytes)
{
    const struct load_worker *worker = envoy->worker;
    size_t size = 0;
    void *left = ranks->script != NULL
                     ? load_script_left(ranks->script, worker->shard, worker->shards, &size)
                     : NULL;

    apply_delta(envoy, left, size, bytes);
}

static void
take_rank_name(struct envoy *envoy, int bytes)
{
    struct load_rank *rank = &ranks->ranks[envoy->rank];

    snprintf(rank->host, sizeof(rank->host), "%s", load_frame_text(&envoy->frame, bytes));
    if (envoy->frame.value != load_frame_build())
        fail_envoy(envoy, "is of another version of sxe-http-mpi; install the same everywhere");
}

/* Pass on a message of the worker. Before READY the rank's clock is measured, because no load
 * disturbs the measurement then. It is measured in each trial, because clocks drift. */
static void
take_said(struct envoy *envoy)
{
    const struct load_message *message = &envoy->frame.u.message;

    if (message->type != LOAD_MESSAGE_READY || message->error != 0) {
        pass_message_on(envoy, message);
        return;
    }
    envoy->ready = *message;
    if (envoy->rank > 0)
        tell_relay(envoy, LOAD_FRAME_CLOCK, NULL);
    else
        pass_message_on(envoy, message);
}

static void
take_clock_message(struct envoy *envoy)
{
    envoy->clock = envoy->frame.clock;
    ranks->ranks[envoy->rank].clock_ns = envoy->clock.error_ns;
    pass_message_on(envoy, &envoy->ready);
}

static void
take_frame(struct envoy *envoy, int bytes)
{
    const struct load_worker *worker = envoy->worker;

    switch (envoy->frame.type) {
    case LOAD_FRAME_NAME:
        take_rank_name(envoy, bytes);
        break;
    case LOAD_FRAME_SAID:
        take_said(envoy);
        break;
    case LOAD_FRAME_RESULT:
        apply_delta(envoy, worker->result, sizeof(*worker->result), bytes);
        break;
    case LOAD_FRAME_MARK:
        apply_delta(envoy, worker->mark, sizeof(*worker->mark), bytes);
        break;
    case LOAD_FRAME_SCRIPT:
        apply_script(envoy, bytes);
        break;
    case LOAD_FRAME_CLOCK:
        take_clock_message(envoy);
        break;
    default: /* GONE */
        fail_envoy(envoy, load_frame_text(&envoy->frame, bytes));
    }
}

static void
hear_frame(struct envoy *envoy)
{
    int bytes;

    while (envoy->status > 0 && (bytes = load_frame_receive(envoy->channel, &envoy->frame)) != -1) {
        envoy->lost_ns = sxe_time_ns() + load_envoy_silent_ns;
        if (bytes < 0)
            fail_envoy(envoy, "has lost its connection");
        else
            take_frame(envoy, bytes);
    }
}

/* ---- Messages of the coordinator ---- */

static void
obey_frame(struct envoy *envoy)
{
    struct load_message message;
    ssize_t got;

    while ((got = recv(envoy->worker->control, &message, sizeof(message), MSG_DONTWAIT)) ==
           (ssize_t)sizeof(message))
        tell_relay(envoy, LOAD_FRAME_TELL, &message);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        envoy->status = -EPIPE;
}

/* ---- The envoy's loop ---- */

static void
start_engine(struct envoy *envoy)
{
    const struct load_worker *worker = envoy->worker;
    const struct load_plan *plan = worker->plan;
    struct load_frame frame = {
        .type = LOAD_FRAME_START,
        .u.start = {.rate = plan->rate,
                    .rate_end = plan->rate_end,
                    .duration_ns = plan->duration_ns,
                    .seed = plan->seed,
                    .shard = worker->shard,
                    .shards = worker->shards},
    };

    if (!load_frame_send(envoy->channel, &frame, 0))
        fail_envoy(envoy, "cannot be reached");
    envoy->lost_ns = sxe_time_ns() + load_envoy_first_ns;
}

static void
turn_envoy(struct envoy *envoy)
{
    uint64_t now_ns = sxe_time_ns();
    uint64_t next_ns = envoy->alive_ns < envoy->lost_ns ? envoy->alive_ns : envoy->lost_ns;
    struct pollfd fds[2] = {{envoy->channel, POLLIN, 0}, {envoy->worker->control, POLLIN, 0}};

    poll(fds, 2, next_ns > now_ns ? (int)((next_ns - now_ns) / SXE_NS_PER_MS) + 1 : 0);
    hear_frame(envoy);
    if (envoy->status > 0)
        obey_frame(envoy);
    now_ns = sxe_time_ns();
    if (envoy->status > 0 && now_ns >= envoy->lost_ns)
        fail_envoy(envoy, "has said nothing for too long: it is dead, stopped or cut off");
    if (envoy->status > 0 && now_ns >= envoy->alive_ns) {
        tell_relay(envoy, LOAD_FRAME_ALIVE, NULL);
        envoy->alive_ns = now_ns + ALIVE_NS;
    }
}

static int
stand_for(const struct load_worker *worker, unsigned rank)
{
    static struct envoy envoy;

    envoy = (struct envoy){.worker = worker,
                           .rank = rank,
                           .channel = ranks->ranks[rank].channel,
                           .alive_ns = sxe_time_ns() + ALIVE_NS,
                           .status = 1};
    start_engine(&envoy);
    while (envoy.status > 0)
        turn_envoy(&envoy);
    return envoy.status;
}

/* The work of a process that the coordinator forks for a worker. The probe belongs to no rank, so
 * it runs in this process itself. For another rank, find out which rank `worker` is: with --shard,
 * the shards of other runs lie between those of this run, so the shard is divided by the number of
 * such runs. */
int
load_envoy_work(const struct load_worker *worker)
{
    const struct load_plan *plan = worker->plan;
    unsigned parts = plan->shards > 0 ? plan->shards : 1;

    if (worker->is_probe)
        return load_worker_run(worker);
    return stand_for(worker, worker->shard / parts);
}

void
load_envoy_use(struct load_ranks *of)
{
    ranks = of;
    load_workers_work = load_envoy_work;
}
