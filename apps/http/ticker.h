/* SPDX-License-Identifier: MIT
 *
 * What: wakes the loop at a time, to the microsecond. libev rounds its waits up to whole
 * milliseconds, and so do its timers; a timerfd is an event like any other. Place: the worker has
 * one, for whatever is due next.
 *
 * Shape: one time is asked for, the earliest; on_tick comes when it is over, with the time asked,
 * so that the difference to now is the error of the timer. What on_tick writes to sockets is on its
 * way when it returns.
 *
 *     at(30) at(10) at(20)        ->  on_tick(10), which asks for the next
 *
 * Limits: where the system refuses the timerfd, libev's milliseconds have to do.
 */
#ifndef HTTP_TICKER_H
#define HTTP_TICKER_H

#include "sxe.h"

#define HTTP_NEVER UINT64_MAX

struct http_ticker {
    struct sxe_timer timer; /* private; also what libev does instead */
    ev_io readable;         /* private */
    int fd;                 /* private; -1: libev does it */
    uint64_t asked_ns;      /* ro: CLOCK_MONOTONIC; HTTP_NEVER */
    void (*on_tick)(struct http_ticker *, uint64_t asked_ns); /* ro */
    void *user;                                               /* rw */
};

/* On this thread's loop, after sxe_init and before sxe_fini. It does not keep the loop running. */
void http_ticker_open(struct http_ticker *ticker,
                      void (*on_tick)(struct http_ticker *, uint64_t asked_ns), void *user);
void http_ticker_close(struct http_ticker *ticker);

/* Tick at that time, or earlier if that was asked for; at once if it is over. */
void http_ticker_at(struct http_ticker *ticker, uint64_t ns);

#endif
