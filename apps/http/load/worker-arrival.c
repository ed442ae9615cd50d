/* SPDX-License-Identifier: MIT
 *
 * What: the sequence of arrivals, of the pace or of a log: sending those that are due on sockets
 * that are free, and counting those that wait for a socket.
 */
#include "worker-private.h"

#define ARRIVE_MAX 1024 /* the most arrivals that are sent at once, before replies are read */
/* the most arrivals that are counted in one call, which then takes 2 ms */
#define WALK_MAX 65536

void
load__next_arrival(const struct load__worker *worker, struct load__arrivals *arrivals)
{
    uint64_t after_ns = LOAD_NEVER;

    if (worker->plan->stop != LOAD_STOP_REPLAY) {
        after_ns = load_pace_next(&arrivals->pace);
    } else {
        uint64_t entry = worker->shard + arrivals->index * worker->shards;

        if (entry < worker->requests->number)
            after_ns = worker->requests->times_ns[entry];
    }
    arrivals->next_ns =
        after_ns < LOAD_NEVER - worker->start_ns ? worker->start_ns + after_ns : LOAD_NEVER;
}

void
load__pass_arrival(const struct load__worker *worker, struct load__arrivals *arrivals)
{
    arrivals->index++;
    load__next_arrival(worker, arrivals);
}

/* ---- Arrivals that wait ---- */

static bool
is_one_ahead(const struct load__worker *worker, uint64_t now_ns)
{
    return worker->left > 0 && worker->ahead.next_ns <= now_ns &&
           worker->ahead.next_ns < worker->end_ns;
}

/* Count `number` arrivals as offered and waiting, beginning with the next one of worker->ahead. */
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
    worker->ahead.index += number - 1;
    load__pass_arrival(worker, &worker->ahead);
}

/* Count the arrivals that are due but were not sent. worker->arrivals is at the next arrival to be
 * sent; worker->ahead moves from there to the first arrival after now_ns. A call counts at most
 * WALK_MAX; the next call continues. */
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

/* When the stage of the time ns ends; LOAD_NEVER: there are no stages. */
static uint64_t
stage_end_ns(const struct load__worker *worker, uint64_t ns)
{
    const struct load_plan *plan = worker->plan;

    return plan->stages_number == 0
               ? LOAD_NEVER
               : worker->start_ns + plan->stages[load__stage_at(worker, ns)].end_ns;
}

/* Count the remaining arrivals up to now. They will not be sent, so their exact times do not
 * matter: all that are in one slice of the time line, and in one stage, are counted at once. */
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

/* ---- Sending arrivals ---- */

bool
load__may_arrive(const struct load__worker *worker)
{
    return worker->is_paced && worker->is_running && worker->is_offering &&
           worker->left + worker->waiting > 0 && worker->arrivals.next_ns < worker->end_ns;
}

/* When to look at the next arrival, unless a socket becomes free earlier. */
static uint64_t
arrival_due_ns(const struct load__worker *worker)
{
    const struct load_plan *plan = worker->plan;

    if (!load__may_arrive(worker))
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

    /* The tick may have to be later than the time that was asked for before: a reply may have freed
     * a socket, so that the arrival for which the tick was asked is sent already. */
    load_ticker_move(&worker->ticker, top != NULL && top->ns < due_ns ? top->ns : due_ns);
}

/* Remove the next arrival from the sequence, because it is sent or skipped now. */
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
    load__pass_arrival(worker, &worker->arrivals);
}

/* Choose the socket to send the next arrival on; NULL: none is free. */
static struct load__socket *
find_free_socket(struct load__worker *worker, uint64_t now_ns)
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
    uint64_t entry = worker->arrivals.index;

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
    struct load__socket *socket = find_free_socket(worker, now_ns);

    /* Send at most ARRIVE_MAX arrivals, so that replies are read, too, however many arrivals are
     * due. */
    for (unsigned i = 0;
         i < ARRIVE_MAX && load__may_arrive(worker) && worker->arrivals.next_ns <= now_ns; i++) {
        if (plan->deadline_ns > 0 && now_ns - worker->arrivals.next_ns > plan->deadline_ns) {
            skip_arrival(worker, LOAD_SKIP_SHED);
        } else if (socket != NULL) {
            send_arrival(worker, socket, now_ns);
            now_ns = sxe_time_ns();
            socket = find_free_socket(worker, now_ns);
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
