/* SPDX-License-Identifier: MIT
 *
 * What: a worker process without sockets, for tests of the coordinator: it speaks the protocol of
 * worker.h, and counts queries that were never sent. Place: run-plan.h. A test sets fake_worker
 * before load_run(); the workers inherit it by fork.
 *
 * Shape: its clock is faster than the real one, so that a second of load takes a few milliseconds.
 * It counts queries at its rate, each with the latency that the test's function gives; or it
 * simulates an M/D/1 queue, whose backlog stays until it is worked off.
 */
#ifndef FAKE_WORKER_H
#define FAKE_WORKER_H

#include <check.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pace.h"
#include "run-private.h"
#include "sxe-time.h"

#define FAKE_FASTER 200 /* how many times as fast as the real clock */

static struct {
    int ready_error;             /* this error is sent with READY, and the worker ends */
    uint64_t queries;            /* DONE is sent after this many queries; 0: when STOP comes */
    uint64_t queries_after_mark; /* queries from the mark until DONE; only if queries is 0 */
    unsigned bad_shard;          /* the shard whose do_...() are called: from 1 on; 0: all */
    void (*do_before_ready)(const struct load_worker *worker);
    void (*do_before_done)(const struct load_worker *worker);
    void (*do_at_stop)(const struct load_worker *worker);
    void (*do_at_mark)(const struct load_worker *worker);
    uint64_t (*latency_ns)(double rate, uint64_t nth); /* NULL: 1 ms */
    /* Queries a second of all workers together, one after the other; 0: no queue. */
    double capacity;
} fake_worker;

struct fake_worker_state {
    const struct load_worker *worker;
    double rate;
    uint64_t now_ns; /* the present time of the real clock */
    double due;      /* queries that are due and not counted yet */
    uint64_t end_ns; /* the end by the real clock; 0: no end was set */
    uint64_t queries;

    /* The queue; times are in seconds of the worker's clock */
    double at_s;
    double arrival_s; /* when the next query arrives; HUGE_VAL: none does */
    double free_s;
    uint64_t random[2];
    double *queue; /* a ring [FAKE_QUEUE]: when each query in flight arrived */
    unsigned first, last;
};

#define FAKE_QUEUE (1u << 18)

static inline double
fake_worker_gap(struct fake_worker_state *state, double rate)
{
    return rate > 0 ? -log1p(-load_random_fraction(state->random)) / rate : HUGE_VAL;
}

/* End the queries that are answered by now, in order; the server is free after the last of them. */
static inline void
fake_worker_answer(struct fake_worker_state *state, double service_s)
{
    struct load_result *result = state->worker->result;

    while (state->first != state->last) {
        double came_s = state->queue[state->first % FAKE_QUEUE];
        double done_s = fmax(came_s, state->free_s) + service_s;

        if (done_s > state->at_s)
            return;
        state->free_s = done_s;
        state->first++;
        result->in_flight--;
        result->ends[LOAD_END_OK]++;
        load_histogram_record(&result->service, (uint64_t)(service_s * 1e9));
        load_histogram_record(&result->response, (uint64_t)((done_s - came_s) * 1e9));
    }
}

static inline void
fake_worker_serve(struct fake_worker_state *state, uint64_t passed_ns)
{
    struct load_result *result = state->worker->result;
    double shards = state->worker->shards;

    state->at_s += (double)passed_ns / 1e9;
    while (state->arrival_s <= state->at_s) {
        if (state->last - state->first == FAKE_QUEUE) {
            state->arrival_s = state->at_s + fake_worker_gap(state, state->rate / shards);
            break;
        }
        state->queue[state->last++ % FAKE_QUEUE] = state->arrival_s;
        result->offered++;
        result->sent++;
        result->in_flight++;
        state->arrival_s += fake_worker_gap(state, state->rate / shards);
    }
    fake_worker_answer(state, shards / fake_worker.capacity);
}

static inline void
fake_worker_set_rate(struct fake_worker_state *state, double rate)
{
    state->rate = rate;
    state->arrival_s = state->at_s + fake_worker_gap(state, rate / state->worker->shards);
}

static inline void
fake_worker_say(const struct load_worker *worker, enum load_message_type type, int error)
{
    struct load_message message = {.type = type, .error = error};

    if (send(worker->control, &message, sizeof(message), MSG_NOSIGNAL) < 0)
        _exit(1);
}

static inline void
fake_worker_query(struct fake_worker_state *state)
{
    struct load_result *result = state->worker->result;
    uint64_t latency = 1000000;

    if (fake_worker.latency_ns != NULL)
        latency = fake_worker.latency_ns(state->rate, state->queries);
    state->queries++;
    result->offered++;
    result->sent++;
    result->ends[LOAD_END_OK]++;
    load_histogram_record(&result->service, latency);
    load_histogram_record(&result->response, latency);
}

/* Count what happened since the last call. */
static inline void
fake_worker_go_on(struct fake_worker_state *state)
{
    uint64_t now_ns = sxe_time_ns();
    uint64_t passed_ns = (now_ns - state->now_ns) * FAKE_FASTER;

    state->now_ns = now_ns;
    state->worker->result->elapsed_ns += passed_ns;
    if (fake_worker.capacity > 0) {
        fake_worker_serve(state, passed_ns);
        return;
    }
    state->due += state->rate / state->worker->shards * (double)passed_ns / 1e9;
    while (state->due >= 1 && (fake_worker.queries == 0 || state->queries < fake_worker.queries)) {
        state->due -= 1;
        fake_worker_query(state);
    }
}

static inline void
fake_worker_do(void (*what)(const struct load_worker *), const struct load_worker *worker)
{
    if (what != NULL && fake_worker.bad_shard == worker->shard + 1)
        what(worker);
}

static inline void
fake_worker_begin(struct fake_worker_state *state)
{
    const struct load_worker *worker = state->worker;
    struct load_message message;

    worker->result->sockets_wanted = worker->plan->sockets / worker->shards;
    worker->result->opened = worker->result->sockets_wanted;
    fake_worker_do(fake_worker.do_before_ready, worker);
    fake_worker_say(worker, LOAD_MESSAGE_READY, 0);
    if (recv(worker->control, &message, sizeof(message), 0) <= 0)
        _exit(1);
    if (message.type != LOAD_MESSAGE_GO) {
        ck_assert_uint_eq(message.type, LOAD_MESSAGE_STOP);
        fake_worker_do(fake_worker.do_at_stop, worker);
        return;
    }
    while (sxe_time_ns() < message.u.start_ns)
        usleep(10);
    worker->result->started_ns = message.u.start_ns;
    state->now_ns = message.u.start_ns;
    load_random_init(state->random, worker->shard + 1);
    fake_worker_set_rate(state, worker->plan->rate);
}

/* Handle the parent's messages; false: the worker must stop. */
static inline bool
fake_worker_obey(struct fake_worker_state *state)
{
    const struct load_worker *worker = state->worker;
    struct load_message message;

    if (recv(worker->control, &message, sizeof(message), MSG_DONTWAIT) <= 0)
        return true;
    if (message.type == LOAD_MESSAGE_STOP) {
        fake_worker_do(fake_worker.do_at_stop, worker);
        return false;
    }
    fake_worker_do(fake_worker.do_at_mark, worker);
    if (message.type == LOAD_MESSAGE_MARK)
        state->end_ns = message.u.end_ns;
    memcpy(worker->mark, worker->result, sizeof(*worker->mark));
    if (fake_worker.queries_after_mark > 0 && fake_worker.queries == 0)
        fake_worker.queries = state->queries + fake_worker.queries_after_mark;
    if (message.type == LOAD_MESSAGE_RATE)
        fake_worker_set_rate(state, message.u.rate);
    fake_worker_say(worker, LOAD_MESSAGE_MARKED, 0);
    return true;
}

static inline int
fake_worker_run(const struct load_worker *worker)
{
    struct fake_worker_state state = {.worker = worker};
    struct pollfd control = {worker->control, POLLIN, 0};

    if (fake_worker.ready_error != 0) {
        fake_worker_say(worker, LOAD_MESSAGE_READY, fake_worker.ready_error);
        return -fake_worker.ready_error;
    }
    state.queue = calloc(FAKE_QUEUE, sizeof(double));
    fake_worker_begin(&state);
    while (state.now_ns > 0 && (state.end_ns == 0 || state.now_ns < state.end_ns) &&
           (fake_worker.queries == 0 || state.queries < fake_worker.queries)) {
        fake_worker_go_on(&state);
        poll(&control, 1, 1);
        if (control.revents != 0 && !fake_worker_obey(&state))
            break;
    }
    fake_worker_do(fake_worker.do_before_done, worker);
    fake_worker_say(worker, LOAD_MESSAGE_DONE, 0);
    close(worker->control);
    free(state.queue);
    return 0;
}

#endif
