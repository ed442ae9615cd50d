/* SPDX-License-Identifier: MIT
 *
 * What: a worker from its start to its end: it allocates memory, opens its sockets, waits for the
 * parent's GO, runs, and reports the result.
 */
#include "worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker-private.h"

/* ---- The parent ---- */

static void
mark_counts(struct load__worker *worker)
{
    load__bring_up_to_date(worker, sxe_time_ns());
    load__copy_result(worker->mark, worker->result);
    load__tell_parent(worker, LOAD_MESSAGE_MARKED, 0);
}

/* Obey the message STOP. If the worker drains already, end at once. */
static void
stop_worker(struct load__worker *worker)
{
    uint64_t now_ns = sxe_time_ns();

    if (!worker->is_offering) {
        load__end(worker);
        return;
    }
    /* First send the arrivals that were due before the message: it is not the server's fault that
     * they are late. */
    if (worker->is_running)
        load__arrive(worker, now_ns);
    load__stop(worker, now_ns);
}

static void
obey_message(struct load__worker *worker, const struct load_message *message)
{
    switch ((enum load_message_type)message->type) {
    case LOAD_MESSAGE_GO:
        load__go(worker, message->u.start_ns);
        break;
    case LOAD_MESSAGE_MARK:
        mark_counts(worker);
        if (message->u.end_ns > 0)
            load__end_at(worker, message->u.end_ns);
        break;
    case LOAD_MESSAGE_RATE:
        load__set_rate(worker, message->u.rate);
        mark_counts(worker);
        break;
    case LOAD_MESSAGE_STOP:
        stop_worker(worker);
        break;
    case LOAD_MESSAGE_ASK:
        load__tell_parent(worker, LOAD_MESSAGE_ALIVE, 0);
        break;
    case LOAD_MESSAGE_ALIVE:
    case LOAD_MESSAGE_READY:
    case LOAD_MESSAGE_MARKED:
    case LOAD_MESSAGE_DONE:
        break;
    }
}

static void
on_control(struct ev_loop *loop, ev_io *control, int events)
{
    struct load__worker *worker = control->data;
    struct load_message message;
    ssize_t n = -1;

    SXE_UNUSED_PARAMETER(loop);
    errno = EPIPE;
    if (!(events & EV_ERROR))
        n = recv(control->fd, &message, sizeof(message), MSG_DONTWAIT);
    if (n == (ssize_t)sizeof(message)) {
        obey_message(worker, &message);
    } else if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
        worker->is_orphan = true;
        load__end(worker);
    }
}

/* ---- Setting up a worker ---- */

/* This worker's part of the number `whole`: shard i of n gets every nth one, beginning with number
 * i. */
static uint64_t
share_of_shard(const struct load__worker *worker, uint64_t whole)
{
    return whole / worker->shards + (worker->shard < whole % worker->shards);
}

static uint64_t
queries_of(const struct load__worker *worker)
{
    switch (worker->plan->stop) {
    case LOAD_STOP_PER_SOCKET:
        return worker->number * worker->plan->queries;
    case LOAD_STOP_TOTAL:
        return share_of_shard(worker, worker->plan->requests_max);
    case LOAD_STOP_REPLAY:
        return share_of_shard(worker, worker->requests->number);
    case LOAD_STOP_TIME:
        break;
    }
    return LOAD__UNBOUNDED;
}

static void
read_plan(struct load__worker *worker)
{
    const struct load_plan *plan = worker->plan;
    uint64_t ramp = share_of_shard(worker, plan->ramp);

    worker->number = (uint32_t)share_of_shard(worker, plan->sockets);
    worker->depth = plan->depth;
    worker->ramp = ramp > 0 ? (unsigned)ramp : 1;
    worker->ramp_rate = plan->ramp_rate / worker->shards;
    worker->left = queries_of(worker);
    worker->is_offering = true;
    worker->is_paced = plan->model != LOAD_CLOSED || plan->stop == LOAD_STOP_REPLAY;
    worker->end_ns = worker->free_ns = LOAD_NEVER;
    worker->result->sockets_wanted = worker->number;
    worker->result->kinds = worker->requests->kinds;
    worker->result->stages = plan->stages_number;
    if ((uint64_t)plan->sockets * worker->requests->kinds <= LOAD_CLIENTS_MAX)
        worker->result->clients = worker->number;
}

static int
init_sockets(struct load__worker *worker)
{
    const struct load_plan *plan = worker->plan;

    /* a pool must have at least one element */
    worker->sockets =
        sxe_pool_new("clients", worker->number > 0 ? worker->number : 1,
                     sizeof(struct load__socket), LOAD_SOCKET_STATES, SXE_POOL_OPTION_UNLOCKED);
    if (worker->sockets == NULL)
        return -errno;
    for (uint32_t id = 0; id < worker->number; id++) {
        worker->sockets[id].worker = worker;
        worker->sockets[id].left =
            plan->stop == LOAD_STOP_PER_SOCKET ? plan->queries : LOAD__UNBOUNDED;
        if (worker->requests->ended != NULL && id >= worker->requests->clients)
            worker->sockets[id].left = 0;
        worker->sockets[id].ready = worker->is_paced ? 0 : (uint16_t)plan->depth;
        worker->sockets[id].failure = LOAD_ENDS;
    }
    return 0;
}

static int
init_rings(struct load__worker *worker, size_t number)
{
    worker->rings = calloc(number * worker->depth, sizeof(struct load__flight));
    if (worker->rings == NULL)
        return -ENOMEM;
    for (uint32_t id = 0; id < worker->number; id++)
        worker->sockets[id].ring = &worker->rings[(size_t)id * worker->depth];
    return 0;
}

static int
allocate_worker_memory(struct load__worker *worker)
{
    size_t number = worker->number > 0 ? worker->number : 1;
    /* How many events the heap may have at a time. Each socket has at most one REOPEN, TIMEOUT and
     * HELD, and, with a think time, `depth` QUERYs. The run has at most one each of RAMP, START,
     * LOOK, DRAINED and PATIENCE, and two of END: one at the time that the plan says, and one when
     * the parent ends the run. That is 7; 8 leaves one spare. */
    size_t dues = 8 + number * (3 + (worker->plan->think_ns > 0 ? worker->depth : 0));
    int error = init_sockets(worker);

    if (error == 0)
        error = load_heap_init(&worker->heap, dues);
    if (error == 0)
        error = init_rings(worker, number);
    worker->held = calloc(number, sizeof(struct load__held));
    if (worker->requests->wants_replies)
        worker->exchanges = calloc(number, sizeof(struct load__exchange));
    if (worker->held == NULL || (worker->requests->wants_replies && worker->exchanges == NULL))
        error = -ENOMEM;
    return error;
}

static int
init_sxe(struct load__worker *worker)
{
    static const struct sxe_http_limits limits = SXE_HTTP_LIMITS;
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    uint64_t timeout_ms = (worker->plan->timeout_ns + SXE_NS_PER_MS - 1) / SXE_NS_PER_MS;

    worker->loop = ev_loop_new(EVFLAG_AUTO);
    if (worker->loop == NULL)
        return -ENOMEM;
    load__watch_turns(worker);
    config.loop = worker->loop;
    config.chunk_size = limits.head_max;
    config.chunks = worker->number / 4 + 4096;
    /* Allow much unsent output, because a server may read long bodies slowly. Do not stop reading
     * while output is unsent, because a server may reply before it has read the whole body. */
    config.output_max = config.output_pause = 1u << 30;
    config.timeout_ms[SXE_STATE_CONNECTING] =
        timeout_ms < UINT32_MAX ? (uint32_t)timeout_ms : UINT32_MAX;
    sxe_configure(&config);
    /* register one socket more, because a lost socket connects again before its old connection is
     * freed */
    sxe_register(worker->number + 1, 0);
    return sxe_init();
}

static int
prepare_worker(struct load__worker *worker)
{
    int error;

    worker->requests->clients = (uint32_t)share_of_shard(worker, worker->plan->sockets);
    error = worker->requests->begin(worker->requests, worker->shard, worker->shards,
                                    worker->plan->seed);

    if (error < 0)
        return error;
    worker->has_begun = true;
    worker->users = worker->requests->clients;
    read_plan(worker);
    load__list_addresses(worker);
    error = allocate_worker_memory(worker);
    if (error == 0)
        error = init_sxe(worker);
    if (error == 0)
        error = load__shake_init(worker, load__look_at_shaking);
    if (error == 0)
        load_ticker_open(&worker->ticker, load__on_tick, worker);
    return error;
}

static void
release_worker(struct load__worker *worker)
{
    if (sxe_loop() != NULL) {
        load_ticker_close(&worker->ticker);
        sxe_fini();
    }
    load__shake_free(worker);
    if (worker->loop != NULL) {
        load__unwatch_turns(worker);
        ev_loop_destroy(worker->loop);
    }
    for (uint32_t id = 0; id < worker->number && worker->held != NULL; id++)
        free(worker->held[id].bytes.data);
    for (uint32_t id = 0; id < worker->number && worker->exchanges != NULL; id++)
        free(worker->exchanges[id].bytes.data);
    free(worker->held);
    free(worker->exchanges);
    free(worker->rings);
    load_heap_free(&worker->heap);
    sxe_pool_delete(worker->sockets);
}

/* ---- From begin to end ---- */

/* Set elapsed_ns. With a duration, the time ends when the worker stopped offering. With a number of
 * queries, it ends with the end of the last query, answered or not, so that an outage of the server
 * at the end lowers the rate, too. */
static void
close_times(struct load__worker *worker)
{
    struct load_result *result = worker->result;
    uint64_t last_ns = worker->ended_ns;

    if (worker->is_running && worker->end_ns != LOAD_NEVER) {
        last_ns = worker->end_ns;
        result->drain_ns = load_later_part(worker->reply_ns, last_ns);
    }
    result->elapsed_ns = load__since_start(worker, last_ns);
}

/* Count connections that were never tried, and queries that were never sent. */
static void
close_accounts(struct load__worker *worker)
{
    struct load_result *result = worker->result;
    uint64_t unopened = worker->number - result->opened;
    uint64_t now_ns = sxe_time_ns();

    load__bring_up_to_date(worker, now_ns);
    for (unsigned i = 0; i < LOAD_UNOPENEDS; i++)
        unopened -= result->unopened[i];
    result->unopened[LOAD_UNOPENED_UNTRIED] += unopened;
    if (worker->is_ramping)
        result->connect_ns = now_ns - worker->ramp_ns;
    load__drop_waiting(worker, now_ns);
    result->skipped[load__why_unsent(worker)] += result->waiting;
    result->waiting = 0;
    if (worker->has_given_up && worker->left != LOAD__UNBOUNDED) {
        result->offered += worker->left;
        result->skipped[LOAD_SKIP_GONE] += worker->left;
    }
    close_times(worker);
}

static void
run_worker(struct load__worker *worker)
{
    ev_io_init(&worker->control, on_control, worker->control.fd, EV_READ);
    worker->control.data = worker;
    ev_io_start(worker->loop, &worker->control);
    load__tell_parent(worker, LOAD_MESSAGE_ALIVE, 0);
    load__ramp(worker);
    sxe_run();
    ev_io_stop(worker->loop, &worker->control);
    load__prepare_close(worker);
    load__end_unanswered(worker, sxe_time_ns());
    close_accounts(worker);
}

int
load_worker_run(const struct load_worker *given)
{
    struct load__worker worker = {
        .plan = given->plan,
        .requests = given->plan->requests,
        .result = given->result,
        .mark = given->mark,
        .shard = given->shard,
        .shards = given->shards,
        .control.fd = given->control,
    };
    int error;

    /* The parent handles these signals, and sends STOP to the worker. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    error = prepare_worker(&worker);
    if (error == 0) {
        run_worker(&worker);
    } else {
        worker.result->unopened[LOAD_UNOPENED_UNTRIED] = worker.result->sockets_wanted;
        load__tell_parent(&worker, LOAD_MESSAGE_READY, -error);
    }
    if (worker.has_begun && worker.requests->end != NULL)
        worker.requests->end(worker.requests, &worker.result->script_calls,
                             &worker.result->script_ns);
    if (error == 0 && !worker.is_orphan)
        load__tell_parent(&worker, LOAD_MESSAGE_DONE, 0);
    release_worker(&worker);
    close(given->control);
    return error;
}
