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
http__push(struct http__worker *worker, uint64_t ns, enum http__what what, uint32_t id)
{
    http_heap_push(&worker->heap, (struct http_due){.ns = ns, .id = id, .what = what});
    http_ticker_at(&worker->ticker, ns);
}

static bool
may_arrive(const struct http__worker *worker)
{
    return worker->is_paced && worker->is_running && worker->is_offering &&
           worker->left + worker->waiting > 0 && worker->arrivals.next_ns < worker->end_ns;
}

/* When to look at the next arrival again, unless a socket becomes free before. */
static uint64_t
arrival_due_ns(const struct http__worker *worker)
{
    const struct http_plan *plan = worker->plan;

    if (!may_arrive(worker))
        return HTTP_NEVER;
    if (worker->free_ns != HTTP_NEVER || plan->model == HTTP_OPEN)
        return worker->arrivals.next_ns;
    return plan->deadline_ns > 0 ? worker->arrivals.next_ns + plan->deadline_ns + 1 : HTTP_NEVER;
}

static void
ask_for_tick(struct http__worker *worker)
{
    const struct http_due *top = http_heap_top(&worker->heap);
    uint64_t due_ns = arrival_due_ns(worker);

    /* An arrival that was asked for may have been sent already, after a reply. */
    http_ticker_move(&worker->ticker, top != NULL && top->ns < due_ns ? top->ns : due_ns);
}

/* ---- Arrivals ---- */

static void
next_arrival(const struct http__worker *worker, struct http__arrivals *arrivals)
{
    uint64_t after_ns = HTTP_NEVER;

    if (worker->plan->stop != HTTP_STOP_REPLAY) {
        after_ns = http_pace_next(&arrivals->pace);
    } else {
        uint64_t entry = worker->shard + arrivals->number * worker->shards;

        if (entry < worker->requests->number)
            after_ns = worker->requests->times_ns[entry];
    }
    arrivals->next_ns =
        after_ns < HTTP_NEVER - worker->start_ns ? worker->start_ns + after_ns : HTTP_NEVER;
}

static void
pass(const struct http__worker *worker, struct http__arrivals *arrivals)
{
    arrivals->number++;
    next_arrival(worker, arrivals);
}

/* The next arrival is no longer to come: it is sent or skipped. */
static void
take_arrival(struct http__worker *worker)
{
    if (worker->waiting > 0) {
        worker->waiting--;
        worker->result->waiting--;
    } else {
        worker->left--;
        http__count_offered(worker, worker->arrivals.next_ns);
    }
    pass(worker, &worker->arrivals);
}

/* NULL: none is free. */
static struct http__socket *
find_free(struct http__worker *worker, uint64_t now_ns)
{
    unsigned id = sxe_pool_get_oldest_element_index(worker->sockets, HTTP_SOCKET_IDLE);

    if (id == SXE_POOL_NO_INDEX)
        id = sxe_pool_get_oldest_element_index(worker->sockets, HTTP_SOCKET_PARTLY);
    if (id == SXE_POOL_NO_INDEX) {
        worker->free_ns = HTTP_NEVER;
        return NULL;
    }
    if (worker->free_ns == HTTP_NEVER)
        worker->free_ns = now_ns;
    return &worker->sockets[id];
}

static void
skip_arrival(struct http__worker *worker, enum http_skip why)
{
    take_arrival(worker);
    worker->result->skipped[why]++;
}

static void
send_arrival(struct http__worker *worker, struct http__socket *socket, uint64_t now_ns)
{
    uint64_t due_ns = worker->arrivals.next_ns;
    uint64_t entry = worker->arrivals.number;

    if (now_ns - due_ns <= HTTP__LATE_NS)
        worker->progress_ns = now_ns;
    take_arrival(worker);
    http__offer(socket, worker->plan->stop == HTTP_STOP_REPLAY ? entry : worker->given, due_ns,
                now_ns);
    http__settle(socket);
}

static void
serve_arrivals(struct http__worker *worker, uint64_t now_ns)
{
    const struct http_plan *plan = worker->plan;
    struct http__socket *socket = find_free(worker, now_ns);

    /* Replies must be read too, however many arrive. */
    for (unsigned i = 0; i < ARRIVE_MAX && may_arrive(worker) && worker->arrivals.next_ns <= now_ns;
         i++) {
        if (plan->deadline_ns > 0 && now_ns - worker->arrivals.next_ns > plan->deadline_ns) {
            skip_arrival(worker, HTTP_SKIP_SHED);
        } else if (socket != NULL) {
            send_arrival(worker, socket, now_ns);
            now_ns = sxe_time_ns();
            socket = find_free(worker, now_ns);
        } else if (plan->model == HTTP_OPEN) {
            skip_arrival(worker, HTTP_SKIP_NO_SOCKET);
        } else {
            break;
        }
    }
}

void
http__arrive(struct http__worker *worker, uint64_t now_ns)
{
    if (worker->is_paced)
        serve_arrivals(worker, now_ns);
    ask_for_tick(worker);
}

static bool
is_one_ahead(const struct http__worker *worker, uint64_t now_ns)
{
    return worker->left > 0 && worker->ahead.next_ns <= now_ns &&
           worker->ahead.next_ns < worker->end_ns;
}

/* So many are offered, from the one that is ahead on. */
static void
count_ahead(struct http__worker *worker, uint64_t number)
{
    struct http_slice *slice = http__slice(worker, worker->ahead.next_ns);
    uint64_t room = UINT32_MAX - slice->offered;

    worker->left -= number;
    worker->waiting += number;
    worker->result->waiting += number;
    worker->result->offered += number;
    slice->offered += (uint32_t)(number < room ? number : room);
    if (worker->result->stages > 0)
        http__stage_offered(worker, worker->ahead.next_ns, number);
    worker->ahead.number += number - 1;
    pass(worker, &worker->ahead);
}

/* A second walk over the same arrivals, ahead of those that are sent. Those that are too many to
 * walk over now wait for the next time. */
void
http__count_waiting(struct http__worker *worker, uint64_t now_ns)
{
    if (!worker->is_paced || !worker->is_running)
        return;
    if (worker->waiting == 0)
        worker->ahead = worker->arrivals;
    for (unsigned i = 0; i < WALK_MAX && is_one_ahead(worker, now_ns); i++)
        count_ahead(worker, 1);
}

/* When the stage in which a time is ends; HTTP_NEVER without stages. */
static uint64_t
stage_end_ns(const struct http__worker *worker, uint64_t ns)
{
    const struct http_plan *plan = worker->plan;

    return plan->stages_number == 0
               ? HTTP_NEVER
               : worker->start_ns + plan->stages[http__stage_at(worker, ns)].end_ns;
}

/* None of these will be sent, so nobody need know when exactly each came: a slice of the time line
 * at once, or what of it is in one stage. */
static void
count_rest(struct http__worker *worker, uint64_t now_ns)
{
    while (worker->plan->stop != HTTP_STOP_REPLAY && is_one_ahead(worker, now_ns)) {
        uint64_t until_ns = now_ns + 1 < worker->end_ns ? now_ns + 1 : worker->end_ns;
        uint64_t stage_ns = stage_end_ns(worker, worker->ahead.next_ns);
        uint64_t number = 1;

        if (until_ns > stage_ns)
            until_ns = stage_ns;
        (void)http__slice(worker, worker->ahead.next_ns);
        if (until_ns > worker->slice_ns + worker->slice_width_ns)
            until_ns = worker->slice_ns + worker->slice_width_ns;
        number += http_pace_skip(&worker->ahead.pace, until_ns - worker->start_ns);
        count_ahead(worker, number < worker->left ? number : worker->left);
    }
}

void
http__drop_waiting(struct http__worker *worker, uint64_t now_ns)
{
    if (!worker->is_paced || !worker->is_running)
        return;
    http__count_waiting(worker, now_ns);
    count_rest(worker, now_ns);
    if (worker->waiting == 0)
        return;
    worker->result->skipped[http__why_unsent(worker)] += worker->waiting;
    worker->result->waiting -= worker->waiting;
    worker->waiting = 0;
    worker->arrivals = worker->ahead;
}

void
http__set_rate(struct http__worker *worker, double rate)
{
    uint64_t now_ns = sxe_time_ns();

    if (!worker->is_paced || !worker->is_running || worker->plan->stop == HTTP_STOP_REPLAY)
        return;
    http__drop_waiting(worker, now_ns);
    if (!(rate > 0)) {
        http_pace_pause(&worker->arrivals.pace, http__since_start(worker, now_ns));
        worker->arrivals.next_ns = HTTP_NEVER;
        return;
    }
    http_pace_set_rate(&worker->arrivals.pace, http__since_start(worker, now_ns), rate,
                       worker->shards);
    if (worker->arrivals.next_ns == HTTP_NEVER)
        next_arrival(worker, &worker->arrivals);
    http__arrive(worker, now_ns);
}

/* ---- The beginning ---- */

static void
on_go_on(struct sxe_timer *timer)
{
    struct http__worker *worker = timer->user;

    for (unsigned batch = HTTP__BATCH; batch > 0 && worker->next < worker->number; worker->next++) {
        struct http__socket *socket = &worker->sockets[worker->next];

        if (!socket->is_connected || socket->ready == 0)
            continue;
        http__send_ready(socket, sxe_time_ns());
        batch--;
    }
    if (worker->next < worker->number)
        sxe_timer_start(timer);
    http__end_when_done(worker);
}

/* Without a byte and a connection for so long, the server is gone. One that accepts, but does not
 * answer, is there: each query times out, and then its socket connects again a little later. */
static uint64_t
patience_ns(const struct http__worker *worker)
{
    return 2 * (worker->plan->timeout_ns + HTTP__REOPEN_NS);
}

/* The queries of sockets that are not there. */
static void
skip_unopened(struct http__worker *worker)
{
    uint64_t skipped = 0;

    for (uint32_t id = 0; id < worker->number; id++) {
        struct http__socket *socket = &worker->sockets[id];

        if (worker->plan->stop == HTTP_STOP_PER_SOCKET && !socket->was_opened) {
            skipped += socket->left;
            socket->left = 0;
        }
    }
    if (worker->result->opened == 0 && worker->left != HTTP__UNBOUNDED)
        skipped = worker->left;
    worker->left -= skipped;
    worker->result->offered += skipped;
    worker->result->skipped[HTTP_SKIP_NOT_OPENED] += skipped;
}

static void
begin(struct http__worker *worker, uint64_t now_ns)
{
    const struct http_plan *plan = worker->plan;

    worker->is_running = true;
    http__push(worker, now_ns + HTTP__LOOK_NS, HTTP__LOOK, 0);
    worker->progress_ns = now_ns;
    http__start_accounts(worker);
    skip_unopened(worker);
    if (plan->stop == HTTP_STOP_TIME)
        http__end_at(worker, worker->end_ns);
    else
        http__push(worker, now_ns + patience_ns(worker), HTTP__PATIENCE, 0);
    if (worker->is_paced) {
        http_pace_init(&worker->arrivals.pace, plan, worker->shard, worker->shards);
        next_arrival(worker, &worker->arrivals);
        http__arrive(worker, now_ns);
    } else {
        sxe_timer_start(&worker->go_on);
    }
    if (worker->result->opened == 0 || (worker->requests->ended != NULL && worker->users == 0))
        http__stop(worker, now_ns);
    http__end_when_done(worker);
}

void
http__go(struct http__worker *worker, uint64_t start_ns)
{
    const struct http_plan *plan = worker->plan;

    worker->start_ns = worker->result->started_ns = start_ns;
    if (plan->stop == HTTP_STOP_TIME)
        worker->end_ns = start_ns + plan->warmup_ns + plan->duration_ns;
    worker->go_on.user = worker;
    sxe_timer_init(&worker->go_on, on_go_on, 0, 0);
    http__push(worker, start_ns, HTTP__START, 0);
}

/* ---- The end ---- */

void
http__end_at(struct http__worker *worker, uint64_t end_ns)
{
    worker->end_ns = end_ns;
    http__push(worker, end_ns, HTTP__END, 0);
}

void
http__end(struct http__worker *worker)
{
    worker->is_over = true;
    worker->is_offering = false;
    sxe_stop();
}

void
http__end_when_done(struct http__worker *worker)
{
    if (SXE_LIKELY(worker->result->in_flight > 0) || !worker->is_running)
        return;
    if (!worker->is_offering ||
        worker->left + worker->waiting + worker->held_number + worker->again_number == 0)
        http__end(worker);
}

void
http__stop(struct http__worker *worker, uint64_t now_ns)
{
    if (!worker->is_offering)
        return;
    worker->is_offering = false;
    if (now_ns < worker->end_ns)
        worker->end_ns = now_ns;
    if (worker->result->in_flight == 0)
        http__end(worker);
    else
        http__push(worker, now_ns + worker->plan->drain_ns, HTTP__DRAINED, 0);
}

/* A query that waits for its own time, and not for the server, is no reason to give up. */
static void
lose_patience(struct http__worker *worker, uint64_t now_ns)
{
    bool is_planned;

    http__arrive(worker, now_ns);
    is_planned = may_arrive(worker) && worker->arrivals.next_ns > now_ns;
    for (uint32_t id = 0; id < worker->number && !is_planned; id++)
        is_planned = worker->sockets[id].thinking > 0 ||
                     (worker->sockets[id].is_held && !worker->sockets[id].is_held_due);
    if (is_planned || now_ns - worker->progress_ns < patience_ns(worker)) {
        uint64_t since_ns = is_planned ? now_ns : worker->progress_ns;

        http__push(worker, since_ns + patience_ns(worker), HTTP__PATIENCE, 0);
        return;
    }
    worker->ended_ns = now_ns;
    worker->is_offering = false;
    /* What was in flight has timed out meanwhile. */
    worker->has_given_up = true;
}

/* ---- Ticks ---- */

static void
look_at_oldest(struct http__socket *socket, uint64_t now_ns)
{
    struct http__worker *worker = socket->worker;
    uint64_t due_ns;

    socket->is_timed = false;
    if (socket->in_flight == 0 || socket->failure != HTTP_ENDS)
        return;
    due_ns = http__flight(socket, 0)->sent_ns + worker->plan->timeout_ns;
    if (due_ns <= now_ns) {
        http__fail(socket, HTTP_END_TIMED_OUT, 0);
        return;
    }
    socket->is_timed = true;
    http__push(worker, due_ns, HTTP__TIMEOUT, http__id(socket));
}

static void
thought(struct http__socket *socket, uint64_t now_ns)
{
    socket->worker->progress_ns = now_ns;
    socket->thinking--;
    socket->ready++;
    if (socket->is_connected)
        http__send_ready(socket, now_ns);
    else
        http__settle(socket);
}

static void
held_is_due(struct http__socket *socket, uint64_t now_ns)
{
    socket->worker->progress_ns = now_ns;
    if (!socket->worker->is_offering)
        return;
    socket->is_held_due = true;
    if (!socket->is_connected || socket->failure != HTTP_ENDS)
        return;
    http__send_held(socket);
    http__send_ready(socket, sxe_time_ns());
}

/* Of what is the run's, the id is 0, and nobody looks at the socket. */
static void
handle(struct http__worker *worker, struct http_due due, uint64_t now_ns)
{
    struct http__socket *socket = &worker->sockets[due.id];

    switch ((enum http__what)due.what) {
    case HTTP__QUERY:
        thought(socket, now_ns);
        break;
    case HTTP__HELD:
        held_is_due(socket, now_ns);
        break;
    case HTTP__REOPEN:
        http__reopen(socket);
        break;
    case HTTP__TIMEOUT:
        look_at_oldest(socket, now_ns);
        break;
    case HTTP__RAMP:
        http__ramp_tick(worker, now_ns);
        break;
    case HTTP__START:
        begin(worker, now_ns);
        break;
    case HTTP__LOOK:
        /* A client that has nothing else to do sees by this that it was stopped. */
        http__push(worker, now_ns + HTTP__LOOK_NS, HTTP__LOOK, 0);
        break;
    case HTTP__END:
        /* What was due before the end, and could be sent if this tick were not late, is. */
        http__arrive(worker, now_ns);
        http__stop(worker, worker->end_ns);
        break;
    case HTTP__DRAINED:
        http__end(worker);
        break;
    case HTTP__PATIENCE:
        lose_patience(worker, now_ns);
        break;
    }
}

void
http__on_tick(struct http_ticker *ticker, uint64_t asked_ns)
{
    struct http__worker *worker = ticker->user;
    uint64_t now_ns = sxe_time_ns();
    const struct http_due *top;

    if (worker->is_running)
        http_histogram_record(&worker->result->timer_error, http_later_part(now_ns, asked_ns));
    while ((top = http_heap_top(&worker->heap)) != NULL && top->ns <= now_ns)
        handle(worker, http_heap_pop(&worker->heap), now_ns);
    http__arrive(worker, now_ns);
    http__end_when_done(worker);
}
