/* SPDX-License-Identifier: MIT
 *
 * What: when: arrivals, what the heap says is due, the beginning and the end of the run.
 */
#include <stdlib.h>

#include "worker-private.h"

#define ARRIVE_MAX 1024  /* arrivals, in an event */
#define WALK_MAX   65536 /* arrivals, in a turn of the loop: 2 ms */

/* ---- What is due ---- */

void
load__push(struct load__worker *worker, uint64_t ns, enum load__what what, uint32_t id)
{
    load_heap_push(&worker->heap, (struct load_due){.ns = ns, .id = id, .what = what});
    load_ticker_at(&worker->ticker, ns);
}

static bool
may_arrive(const struct load__worker *worker)
{
    return worker->is_paced && worker->is_running && worker->is_offering &&
           worker->left + worker->waiting > 0 && worker->arrivals.next_ns < worker->end_ns;
}

/* When to look at the next arrival again, unless a socket becomes free before. */
static uint64_t
arrival_due_ns(const struct load__worker *worker)
{
    const struct load_plan *plan = worker->plan;

    if (!may_arrive(worker))
        return LOAD_NEVER;
    if (worker->free_ns != LOAD_NEVER || plan->model == LOAD_OPEN)
        return worker->arrivals.next_ns;
    return plan->deadline_ns > 0 ? worker->arrivals.next_ns + plan->deadline_ns + 1 : LOAD_NEVER;
}

static void
ask_for_tick(struct load__worker *worker)
{
    const struct load_due *top = load_heap_top(&worker->heap);
    uint64_t due_ns = arrival_due_ns(worker);

    /* An arrival that was asked for may have been sent already, after a reply. */
    load_ticker_move(&worker->ticker, top != NULL && top->ns < due_ns ? top->ns : due_ns);
}

/* ---- Arrivals ---- */

static void
next_arrival(const struct load__worker *worker, struct load__arrivals *arrivals)
{
    uint64_t after_ns = LOAD_NEVER;

    if (worker->plan->stop != LOAD_STOP_REPLAY) {
        after_ns = load_pace_next(&arrivals->pace);
    } else {
        uint64_t entry = worker->shard + arrivals->number * worker->shards;

        if (entry < worker->requests->number)
            after_ns = worker->requests->times_ns[entry];
    }
    arrivals->next_ns =
        after_ns < LOAD_NEVER - worker->start_ns ? worker->start_ns + after_ns : LOAD_NEVER;
}

static void
pass(const struct load__worker *worker, struct load__arrivals *arrivals)
{
    arrivals->number++;
    next_arrival(worker, arrivals);
}

/* The next arrival is no longer to come: it is sent or skipped. */
static void
take_arrival(struct load__worker *worker)
{
    if (worker->waiting > 0) {
        worker->waiting--;
        worker->result->waiting--;
    } else {
        worker->left--;
        load__count_offered(worker, worker->arrivals.next_ns);
    }
    pass(worker, &worker->arrivals);
}

/* NULL: none is free. */
static struct load__socket *
find_free(struct load__worker *worker, uint64_t now_ns)
{
    unsigned id = sxe_pool_get_oldest(worker->sockets, LOAD_SOCKET_IDLE);

    if (id == SXE_POOL_NO_INDEX)
        id = sxe_pool_get_oldest(worker->sockets, LOAD_SOCKET_PARTLY);
    if (id == SXE_POOL_NO_INDEX) {
        worker->free_ns = LOAD_NEVER;
        return NULL;
    }
    if (worker->free_ns == LOAD_NEVER)
        worker->free_ns = now_ns;
    return &worker->sockets[id];
}

static void
skip_arrival(struct load__worker *worker, enum load_skip why)
{
    take_arrival(worker);
    worker->result->skipped[why]++;
}

static void
send_arrival(struct load__worker *worker, struct load__socket *socket, uint64_t now_ns)
{
    uint64_t due_ns = worker->arrivals.next_ns;
    uint64_t entry = worker->arrivals.number;

    if (now_ns - due_ns <= LOAD__LATE_NS)
        worker->progress_ns = now_ns;
    take_arrival(worker);
    load__offer(socket, worker->plan->stop == LOAD_STOP_REPLAY ? entry : worker->given, due_ns,
                now_ns);
    load__settle(socket);
}

static void
serve_arrivals(struct load__worker *worker, uint64_t now_ns)
{
    const struct load_plan *plan = worker->plan;
    struct load__socket *socket = find_free(worker, now_ns);

    /* Replies must be read too, however many arrive. */
    for (unsigned i = 0; i < ARRIVE_MAX && may_arrive(worker) && worker->arrivals.next_ns <= now_ns;
         i++) {
        if (plan->deadline_ns > 0 && now_ns - worker->arrivals.next_ns > plan->deadline_ns) {
            skip_arrival(worker, LOAD_SKIP_SHED);
        } else if (socket != NULL) {
            send_arrival(worker, socket, now_ns);
            now_ns = sxe_time_ns();
            socket = find_free(worker, now_ns);
        } else if (plan->model == LOAD_OPEN) {
            skip_arrival(worker, LOAD_SKIP_NO_SOCKET);
        } else {
            break;
        }
    }
}

void
load__arrive(struct load__worker *worker, uint64_t now_ns)
{
    if (worker->is_paced)
        serve_arrivals(worker, now_ns);
    ask_for_tick(worker);
}

static bool
is_one_ahead(const struct load__worker *worker, uint64_t now_ns)
{
    return worker->left > 0 && worker->ahead.next_ns <= now_ns &&
           worker->ahead.next_ns < worker->end_ns;
}

/* So many are offered, from the one that is ahead on. */
static void
count_ahead(struct load__worker *worker, uint64_t number)
{
    struct load_slice *slice = load__slice(worker, worker->ahead.next_ns);
    uint64_t room = UINT32_MAX - slice->offered;

    worker->left -= number;
    worker->waiting += number;
    worker->result->waiting += number;
    worker->result->offered += number;
    slice->offered += (uint32_t)(number < room ? number : room);
    if (worker->result->stages > 0)
        load__stage_offered(worker, worker->ahead.next_ns, number);
    worker->ahead.number += number - 1;
    pass(worker, &worker->ahead);
}

/* Walk over the same arrivals a second time, ahead of those that are sent. The walk is limited; the
 * next call continues it. */
void
load__count_waiting(struct load__worker *worker, uint64_t now_ns)
{
    if (!worker->is_paced || !worker->is_running)
        return;
    if (worker->waiting == 0)
        worker->ahead = worker->arrivals;
    for (unsigned i = 0; i < WALK_MAX && is_one_ahead(worker, now_ns); i++)
        count_ahead(worker, 1);
}

/* When the stage in which a time is ends; LOAD_NEVER without stages. */
static uint64_t
stage_end_ns(const struct load__worker *worker, uint64_t ns)
{
    const struct load_plan *plan = worker->plan;

    return plan->stages_number == 0
               ? LOAD_NEVER
               : worker->start_ns + plan->stages[load__stage_at(worker, ns)].end_ns;
}

/* None of these will be sent, so nobody need know when exactly each came: a slice of the time line
 * at once, or what of it is in one stage. */
static void
count_rest(struct load__worker *worker, uint64_t now_ns)
{
    while (worker->plan->stop != LOAD_STOP_REPLAY && is_one_ahead(worker, now_ns)) {
        uint64_t until_ns = now_ns + 1 < worker->end_ns ? now_ns + 1 : worker->end_ns;
        uint64_t stage_ns = stage_end_ns(worker, worker->ahead.next_ns);
        uint64_t number = 1;

        if (until_ns > stage_ns)
            until_ns = stage_ns;
        (void)load__slice(worker, worker->ahead.next_ns);
        if (until_ns > worker->slice_ns + worker->slice_width_ns)
            until_ns = worker->slice_ns + worker->slice_width_ns;
        number += load_pace_skip(&worker->ahead.pace, until_ns - worker->start_ns);
        count_ahead(worker, number < worker->left ? number : worker->left);
    }
}

void
load__drop_waiting(struct load__worker *worker, uint64_t now_ns)
{
    if (!worker->is_paced || !worker->is_running)
        return;
    load__count_waiting(worker, now_ns);
    count_rest(worker, now_ns);
    if (worker->waiting == 0)
        return;
    worker->result->skipped[load__why_unsent(worker)] += worker->waiting;
    worker->result->waiting -= worker->waiting;
    worker->waiting = 0;
    worker->arrivals = worker->ahead;
}

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
        next_arrival(worker, &worker->arrivals);
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

/* Without a byte and a connection for so long, the server is gone. One that accepts, but does not
 * answer, is there: each query times out, and then its socket connects again a little later. */
static uint64_t
patience_ns(const struct load__worker *worker)
{
    return 2 * (worker->plan->timeout_ns + LOAD__REOPEN_NS);
}

/* The queries of sockets that are not there. */
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
begin_load(struct load__worker *worker, uint64_t now_ns)
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
        next_arrival(worker, &worker->arrivals);
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

/* ---- The end ---- */

void
load__end_at(struct load__worker *worker, uint64_t end_ns)
{
    worker->end_ns = end_ns;
    load__push(worker, end_ns, LOAD__END, 0);
}

void
load__end(struct load__worker *worker)
{
    worker->is_over = true;
    worker->is_offering = false;
    sxe_stop();
}

void
load__end_when_done(struct load__worker *worker)
{
    if (SXE_LIKELY(worker->result->in_flight > 0) || !worker->is_running)
        return;
    if (!worker->is_offering ||
        worker->left + worker->waiting + worker->held_number + worker->again_number == 0)
        load__end(worker);
}

void
load__stop(struct load__worker *worker, uint64_t now_ns)
{
    if (!worker->is_offering)
        return;
    worker->is_offering = false;
    if (now_ns < worker->end_ns)
        worker->end_ns = now_ns;
    if (worker->result->in_flight == 0)
        load__end(worker);
    else
        load__push(worker, now_ns + worker->plan->drain_ns, LOAD__DRAINED, 0);
}

/* A query that waits for its own time, and not for the server, is no reason to give up. */
static void
lose_patience(struct load__worker *worker, uint64_t now_ns)
{
    bool is_planned;

    load__arrive(worker, now_ns);
    is_planned = may_arrive(worker) && worker->arrivals.next_ns > now_ns;
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
    /* Requests in flight have timed out meanwhile. */
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
thought(struct load__socket *socket, uint64_t now_ns)
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
    if (!socket->is_connected || socket->failure != LOAD_ENDS)
        return;
    load__send_held(socket);
    load__send_ready(socket, sxe_time_ns());
}

/* Run-level events carry id 0 and ignore `socket`. */
static void
handle(struct load__worker *worker, struct load_due due, uint64_t now_ns)
{
    struct load__socket *socket = &worker->sockets[due.id];

    switch ((enum load__what)due.what) {
    case LOAD__QUERY:
        thought(socket, now_ns);
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
        begin_load(worker, now_ns);
        break;
    case LOAD__LOOK:
        /* A client that has nothing else to do sees by this that it was stopped. */
        load__push(worker, now_ns + LOAD__LOOK_NS, LOAD__LOOK, 0);
        break;
    case LOAD__END:
        /* Send requests that were due before the end; only this tick is late. */
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
        handle(worker, load_heap_pop(&worker->heap), now_ns);
    load__arrive(worker, now_ns);
    load__end_when_done(worker);
}
