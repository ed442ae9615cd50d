/* SPDX-License-Identifier: MIT
 *
 * What: does what is planned for a time: the events of the heap, changes of the rate, the start of
 * the run.
 */
#include <stdlib.h>

#include "worker-private.h"

void
load__set_rate(struct load__worker *worker, double rate)
{
    uint64_t now_ns = sxe_time_ns();

    if (!worker->is_paced || !worker->is_running || worker->plan->stop == LOAD_STOP_REPLAY)
        return;
    load__drop_waiting(worker, now_ns);
    if (!(rate > 0)) {
        load_pace_pause(&worker->arrivals.pace, load__since_start(worker, now_ns));
        worker->arrivals.next_ns = LOAD_NEVER;
        return;
    }
    load_pace_set_rate(&worker->arrivals.pace, load__since_start(worker, now_ns), rate,
                       worker->shards);
    if (worker->arrivals.next_ns == LOAD_NEVER)
        load__next_arrival(worker, &worker->arrivals);
    load__arrive(worker, now_ns);
}

/* ---- The beginning ---- */

static void
on_go_on(struct sxe_timer *timer)
{
    struct load__worker *worker = timer->user;

    for (unsigned batch = LOAD__BATCH; batch > 0 && worker->next < worker->number; worker->next++) {
        struct load__socket *socket = &worker->sockets[worker->next];

        if (!socket->is_connected || socket->ready == 0)
            continue;
        load__send_ready(socket, sxe_time_ns());
        batch--;
    }
    if (worker->next < worker->number)
        sxe_timer_start(timer);
    load__end_when_done(worker);
}

/* If no byte came and no connection opened for this time, the server is gone. A server that accepts
 * connections but does not reply is not gone in this sense: its queries time out, and then new
 * connections open. */
static uint64_t
patience_ns(const struct load__worker *worker)
{
    return 2 * (worker->plan->timeout_ns + LOAD__REOPEN_NS);
}

/* Count the queries of sockets that never opened as skipped. */
static void
skip_unopened(struct load__worker *worker)
{
    uint64_t skipped = 0;

    for (uint32_t id = 0; id < worker->number; id++) {
        struct load__socket *socket = &worker->sockets[id];

        if (worker->plan->stop == LOAD_STOP_PER_SOCKET && !socket->was_opened) {
            skipped += socket->left;
            socket->left = 0;
        }
    }
    if (worker->result->opened == 0 && worker->left != LOAD__UNBOUNDED)
        skipped = worker->left;
    worker->left -= skipped;
    worker->result->offered += skipped;
    worker->result->skipped[LOAD_SKIP_NOT_OPENED] += skipped;
}

static void
begin_worker_load(struct load__worker *worker, uint64_t now_ns)
{
    const struct load_plan *plan = worker->plan;

    worker->is_running = true;
    load__push(worker, now_ns + LOAD__LOOK_NS, LOAD__LOOK, 0);
    worker->progress_ns = now_ns;
    load__start_accounts(worker);
    skip_unopened(worker);
    if (plan->stop == LOAD_STOP_TIME)
        load__end_at(worker, worker->end_ns);
    else
        load__push(worker, now_ns + patience_ns(worker), LOAD__PATIENCE, 0);
    if (worker->is_paced) {
        load_pace_init(&worker->arrivals.pace, plan, worker->shard, worker->shards);
        load__next_arrival(worker, &worker->arrivals);
        load__arrive(worker, now_ns);
    } else {
        sxe_timer_start(&worker->go_on);
    }
    if (worker->result->opened == 0 || (worker->requests->ended != NULL && worker->users == 0))
        load__stop(worker, now_ns);
    load__end_when_done(worker);
}

void
load__go(struct load__worker *worker, uint64_t start_ns)
{
    const struct load_plan *plan = worker->plan;

    worker->start_ns = worker->result->started_ns = start_ns;
    if (plan->stop == LOAD_STOP_TIME)
        worker->end_ns = start_ns + plan->warmup_ns + plan->duration_ns;
    worker->go_on.user = worker;
    sxe_timer_init(&worker->go_on, on_go_on, 0, 0);
    load__push(worker, start_ns, LOAD__START, 0);
}

/* ---- Giving up ---- */

/* Give up if the server is gone. But as long as any query waits for a planned time, and not for the
 * server, look again later. */
static void
lose_patience(struct load__worker *worker, uint64_t now_ns)
{
    bool is_planned;

    load__arrive(worker, now_ns);
    is_planned = load__may_arrive(worker) && worker->arrivals.next_ns > now_ns;
    for (uint32_t id = 0; id < worker->number && !is_planned; id++)
        is_planned = worker->sockets[id].thinking > 0 ||
                     (worker->sockets[id].is_held && !worker->sockets[id].is_held_due);
    if (is_planned || now_ns - worker->progress_ns < patience_ns(worker)) {
        uint64_t since_ns = is_planned ? now_ns : worker->progress_ns;

        load__push(worker, since_ns + patience_ns(worker), LOAD__PATIENCE, 0);
        return;
    }
    worker->ended_ns = now_ns;
    worker->is_offering = false;
    /* Nothing is in flight: all queries have timed out meanwhile. */
    worker->has_given_up = true;
}

/* ---- Ticks ---- */

static void
look_at_oldest(struct load__socket *socket, uint64_t now_ns)
{
    struct load__worker *worker = socket->worker;
    uint64_t due_ns;

    socket->is_timed = false;
    if (socket->in_flight == 0 || socket->failure != LOAD_ENDS)
        return;
    due_ns = load__flight(socket, 0)->sent_ns + worker->plan->timeout_ns;
    if (due_ns <= now_ns) {
        load__fail(socket, LOAD_END_TIMED_OUT, 0);
        return;
    }
    socket->is_timed = true;
    load__push(worker, due_ns, LOAD__TIMEOUT, load__id(socket));
}

static void
end_think_time(struct load__socket *socket, uint64_t now_ns)
{
    socket->worker->progress_ns = now_ns;
    socket->thinking--;
    socket->ready++;
    if (socket->is_connected)
        load__send_ready(socket, now_ns);
    else
        load__settle(socket);
}

static void
held_is_due(struct load__socket *socket, uint64_t now_ns)
{
    socket->worker->progress_ns = now_ns;
    if (!socket->worker->is_offering)
        return;
    socket->is_held_due = true;
    if (!socket->is_connected || socket->failure != LOAD_ENDS || socket->is_ending)
        return;
    load__send_held(socket);
    load__send_ready(socket, sxe_time_ns());
}

/* Handle an event of the heap. An event of the run has the id 0, and does not use `socket`. */
static void
handle_due(struct load__worker *worker, struct load_due due, uint64_t now_ns)
{
    struct load__socket *socket = &worker->sockets[due.id];

    switch ((enum load__what)due.what) {
    case LOAD__QUERY:
        end_think_time(socket, now_ns);
        break;
    case LOAD__HELD:
        held_is_due(socket, now_ns);
        break;
    case LOAD__REOPEN:
        load__reopen(socket);
        break;
    case LOAD__TIMEOUT:
        look_at_oldest(socket, now_ns);
        break;
    case LOAD__RAMP:
        load__ramp_tick(worker, now_ns);
        break;
    case LOAD__START:
        begin_worker_load(worker, now_ns);
        break;
    case LOAD__LOOK:
        /* This event only wakes an idle worker, so that it notices if it was stopped (SIGSTOP). */
        load__push(worker, now_ns + LOAD__LOOK_NS, LOAD__LOOK, 0);
        break;
    case LOAD__END:
        /* This tick may be late: first send the queries that were due before the end. */
        load__arrive(worker, now_ns);
        load__stop(worker, worker->end_ns);
        break;
    case LOAD__DRAINED:
        load__end(worker);
        break;
    case LOAD__PATIENCE:
        lose_patience(worker, now_ns);
        break;
    }
}

void
load__on_tick(struct load_ticker *ticker, uint64_t asked_ns)
{
    struct load__worker *worker = ticker->user;
    uint64_t now_ns = sxe_time_ns();
    const struct load_due *top;

    if (worker->is_running)
        load_histogram_record(&worker->result->timer_error, load_later_part(now_ns, asked_ns));
    while ((top = load_heap_top(&worker->heap)) != NULL && top->ns <= now_ns)
        handle_due(worker, load_heap_pop(&worker->heap), now_ns);
    load__arrive(worker, now_ns);
    load__end_when_done(worker);
}
