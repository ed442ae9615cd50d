/* SPDX-License-Identifier: MIT
 *
 * What: wakes the loop at a time, to the microsecond. libev rounds its waits up to whole
 * milliseconds, and so do its timers; a timerfd is an event like any other. Place: the worker has
 * one, for whatever is due next.
 *
 * Shape: one time is asked for, the earliest; on_tick comes when it is over, with the time asked,
 * so that the difference to now is the error of the timer. Data that on_tick writes to sockets is
 * sent before the loop waits.
 *
 *     at(30) at(10) at(20)        ->  on_tick(10), which asks for the next
 *
 * A sleep and a wake-up cost more CPU than a short wait, and end late. So the last microseconds are
 * spun: the loop's turns do not wait, and each looks at the clock. To set a timerfd is dear, too:
 * the kernel programs a timer of the CPU. So only the last word of a turn is set, before the wait.
 *
 *     asked in  >= 50 us: timerfd      < 50 us: spin
 *
 * Limits: where the system refuses the timerfd, libev's milliseconds have to do.
 */
#ifndef LOAD_TICKER_H
#define LOAD_TICKER_H

#include "sxe.h"

#define LOAD_NEVER          UINT64_MAX
#define LOAD_TICKER_SPIN_NS UINT64_C(50000) /* a wait shorter than this is spun */

struct load_ticker {
    struct sxe_timer timer; /* private; also what libev does instead */
    ev_io readable;         /* private */
    ev_idle spin;           /* private; active: the loop's turns do not wait */
    int fd;                 /* private; -1: libev does it */
    uint64_t asked_ns;      /* ro: CLOCK_MONOTONIC; LOAD_NEVER */
    uint64_t set_ns;        /* private: what the timerfd is set to */
    bool is_spinning;       /* ro: turns do not wait */
    void (*on_tick)(struct load_ticker *, uint64_t asked_ns); /* ro */
    void *user;                                               /* rw */
};

/* On this thread's loop, after sxe_init and before sxe_fini. It does not keep the loop running. */
void load_ticker_open(struct load_ticker *ticker,
                      void (*on_tick)(struct load_ticker *, uint64_t asked_ns), void *user);
void load_ticker_close(struct load_ticker *ticker);

/* Tick at that time, or earlier if that was asked for; at once if it is over. */
void load_ticker_at(struct load_ticker *ticker, uint64_t ns);

/* Tick at that time, whatever was asked for; LOAD_NEVER: not at all. */
void load_ticker_move(struct load_ticker *ticker, uint64_t ns);

/* Call it before the loop waits, after all else that the turn did: what was asked for takes effect
 * here, in one system call a turn at most. */
void load_ticker_arm(struct load_ticker *ticker, uint64_t now_ns);

#endif
