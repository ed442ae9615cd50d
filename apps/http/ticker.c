/* SPDX-License-Identifier: MIT */
#include "ticker.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "sxe-time.h"

/* As libev's timer would: whatever its callback writes is flushed behind it. */
static void
on_timer(struct sxe_timer *timer)
{
    struct http_ticker *ticker = timer->user;
    uint64_t asked_ns = ticker->asked_ns;

    ticker->asked_ns = HTTP_NEVER;
    ticker->on_tick(ticker, asked_ns);
}

static void
start_timer(struct http_ticker *ticker)
{
    uint64_t now_ns = sxe_time_ns();
    uint64_t wait_ns = ticker->asked_ns > now_ns ? ticker->asked_ns - now_ns : 0;

    sxe_timer_stop(&ticker->timer);
    sxe_timer_init(&ticker->timer, on_timer, (double)wait_ns / (double)SXE_NS_PER_SECOND, 0);
    sxe_timer_start(&ticker->timer);
}

/* Setting it also takes back that it is readable, so it is never read. */
static int
set_timerfd(const struct http_ticker *ticker)
{
    const struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(ticker->asked_ns / SXE_NS_PER_SECOND),
                     .tv_nsec = (long)(ticker->asked_ns % SXE_NS_PER_SECOND)}};
    static const struct itimerspec never;

    return timerfd_settime(ticker->fd, TFD_TIMER_ABSTIME,
                           ticker->asked_ns == HTTP_NEVER ? &never : &at, NULL);
}

/* libev may have stopped the watcher itself, after an error. */
static void
give_up_timerfd(struct http_ticker *ticker)
{
    ev_ref(sxe_loop());
    ev_io_stop(sxe_loop(), &ticker->readable);
    close(ticker->fd);
    ticker->fd = -1;
}

static void
set(struct http_ticker *ticker)
{
    if (ticker->fd >= 0 && set_timerfd(ticker) < 0)
        give_up_timerfd(ticker);
    if (ticker->fd < 0 && ticker->asked_ns != HTTP_NEVER)
        start_timer(ticker);
}

static void
on_readable(struct ev_loop *loop, ev_io *readable, int events)
{
    struct http_ticker *ticker = readable->data;

    if (events & EV_ERROR) {
        give_up_timerfd(ticker);
        set(ticker);
        return;
    }
    ev_invoke(loop, &ticker->timer.ev, EV_TIMER);
    if (ticker->fd >= 0 && ticker->asked_ns == HTTP_NEVER)
        set(ticker);
}

void
http_ticker_open(struct http_ticker *ticker,
                 void (*on_tick)(struct http_ticker *, uint64_t asked_ns), void *user)
{
    *ticker = (struct http_ticker){.asked_ns = HTTP_NEVER, .on_tick = on_tick, .user = user};
    ticker->timer.user = ticker;
    sxe_timer_init(&ticker->timer, on_timer, 0, 0);
    ticker->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (ticker->fd < 0)
        return;
    ev_io_init(&ticker->readable, on_readable, ticker->fd, EV_READ);
    ticker->readable.data = ticker;
    ev_io_start(sxe_loop(), &ticker->readable);
    ev_unref(sxe_loop());
}

void
http_ticker_close(struct http_ticker *ticker)
{
    sxe_timer_stop(&ticker->timer);
    if (ticker->fd >= 0)
        give_up_timerfd(ticker);
}

void
http_ticker_at(struct http_ticker *ticker, uint64_t ns)
{
    if (ns >= ticker->asked_ns)
        return;
    /* All zero would be never. */
    ticker->asked_ns = ns > 0 ? ns : 1;
    set(ticker);
}
