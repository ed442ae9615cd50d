/* SPDX-License-Identifier: MIT
 *
 * What: adds timed events, and ends the run. Every file of a worker may call these functions.
 */
#include "worker-private.h"

void
load__push(struct load__worker *worker, uint64_t ns, enum load__what what, uint32_t id)
{
    load_heap_push(&worker->heap, (struct load_due){.ns = ns, .id = id, .what = what});
    load_ticker_at(&worker->ticker, ns);
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
