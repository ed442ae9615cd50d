/* SPDX-License-Identifier: MIT
 *
 * Waking the loop with a timerfd, or, just before the time, by spinning.
 */
#include "ticker.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "sxe-time.h"

#define UNSET UINT64_C(0) /* no time is set: the timerfd expired, or was never set */

/* Tick. libev calls this function for its timer; the other functions call it with ev_invoke,
 * because lib-sxe then sends what on_tick writes. */
static void
on_ticker(struct sxe_timer *timer)
{
    struct load_ticker *ticker = timer->user;
    uint64_t asked_ns = ticker->asked_ns;

    ticker->set_ns = UNSET;
    ticker->asked_ns = LOAD_NEVER;
    ticker->on_tick(ticker, asked_ns);
}

static void
start_ticker_timer(struct load_ticker *ticker)
{
    uint64_t now_ns = sxe_time_ns();
    uint64_t wait_ns = ticker->asked_ns > now_ns ? ticker->asked_ns - now_ns : 0;

    ticker->set_ns = ticker->asked_ns;
    sxe_timer_stop(&ticker->timer);
    if (ticker->asked_ns == LOAD_NEVER)
        return;
    sxe_timer_init(&ticker->timer, on_ticker, (double)wait_ns / (double)SXE_NS_PER_SECOND, 0);
    sxe_timer_start(&ticker->timer);
}

static void
start_spinning(struct load_ticker *ticker)
{
    if (ticker->is_spinning)
        return;
    ticker->is_spinning = true;
    ev_idle_start(sxe_loop(), &ticker->spin);
    ev_unref(sxe_loop());
}

static void
stop_spinning(struct load_ticker *ticker)
{
    if (!ticker->is_spinning)
        return;
    ticker->is_spinning = false;
    ev_ref(sxe_loop());
    ev_idle_stop(sxe_loop(), &ticker->spin);
}

/* Use libev's timer from now on. If the timerfd had an error, libev may have stopped `readable`
 * already. */
static void
give_up_timerfd(struct load_ticker *ticker)
{
    stop_spinning(ticker);
    ev_ref(sxe_loop());
    ev_io_stop(sxe_loop(), &ticker->readable);
    close(ticker->fd);
    ticker->fd = -1;
    ticker->set_ns = UNSET;
}

/* Set the timerfd to asked_ns. If it had expired, this also ends its being readable. */
static void
set_timerfd(struct load_ticker *ticker)
{
    const struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(ticker->asked_ns / SXE_NS_PER_SECOND),
                     .tv_nsec = (long)(ticker->asked_ns % SXE_NS_PER_SECOND)}};
    static const struct itimerspec never;

    ticker->set_ns = ticker->asked_ns;
    if (timerfd_settime(ticker->fd, TFD_TIMER_ABSTIME,
                        ticker->asked_ns == LOAD_NEVER ? &never : &at, NULL) < 0)
        give_up_timerfd(ticker);
}

static void
on_spin(struct ev_loop *loop, ev_idle *spin, int events)
{
    struct load_ticker *ticker = spin->data;

    SXE_UNUSED_PARAMETER(events);
    if (ticker->asked_ns <= sxe_time_ns())
        ev_invoke(loop, &ticker->timer.ev, EV_TIMER);
}

static void
on_readable(struct ev_loop *loop, ev_io *readable, int events)
{
    struct load_ticker *ticker = readable->data;
    uint64_t expirations;

    if (events & EV_ERROR) {
        give_up_timerfd(ticker);
        return;
    }
    ticker->set_ns = UNSET;
    /* Read the timerfd, because otherwise it stays readable, and wakes each turn of the loop.
     * Reading it takes less time than setting it again. */
    SXE_UNUSED_PARAMETER(read(ticker->fd, &expirations, sizeof(expirations)) < 0);
    if (ticker->asked_ns <= sxe_time_ns())
        ev_invoke(loop, &ticker->timer.ev, EV_TIMER);
}

void
load_ticker_open(struct load_ticker *ticker,
                 void (*on_tick)(struct load_ticker *, uint64_t asked_ns), void *user)
{
    *ticker = (struct load_ticker){
        .asked_ns = LOAD_NEVER, .set_ns = LOAD_NEVER, .on_tick = on_tick, .user = user};
    ticker->timer.user = ticker;
    sxe_timer_init(&ticker->timer, on_ticker, 0, 0);
    ev_idle_init(&ticker->spin, on_spin);
    /* Handle this event before the events that read replies, so that many replies do not delay a
     * tick. */
    ev_set_priority(&ticker->spin, EV_MAXPRI);
    ticker->spin.data = ticker;
    ticker->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (ticker->fd < 0)
        return;
    ev_io_init(&ticker->readable, on_readable, ticker->fd, EV_READ);
    ticker->readable.data = ticker;
    ev_io_start(sxe_loop(), &ticker->readable);
    ev_unref(sxe_loop());
}

void
load_ticker_close(struct load_ticker *ticker)
{
    sxe_timer_stop(&ticker->timer);
    if (ticker->fd >= 0)
        give_up_timerfd(ticker);
}

void
load_ticker_at(struct load_ticker *ticker, uint64_t ns)
{
    if (ns < ticker->asked_ns)
        load_ticker_move(ticker, ns);
}

void
load_ticker_move(struct load_ticker *ticker, uint64_t ns)
{
    /* asked_ns is never 0, because a timerfd that is set to 0 does not tick, and because UNSET is
     * 0 */
    ticker->asked_ns = ns > 0 ? ns : 1;
}

void
load_ticker_arm(struct load_ticker *ticker, uint64_t now_ns)
{
    bool is_near =
        ticker->asked_ns != LOAD_NEVER && ticker->asked_ns < now_ns + LOAD_TICKER_SPIN_NS;

    if (ticker->fd >= 0 && is_near) {
        /* The timerfd may still be set to another time. That causes at most one needless turn. */
        start_spinning(ticker);
        return;
    }
    stop_spinning(ticker);
    if (ticker->fd >= 0 && ticker->asked_ns != ticker->set_ns)
        set_timerfd(ticker);
    if (ticker->fd < 0 && ticker->asked_ns != ticker->set_ns)
        start_ticker_timer(ticker);
}
