/* SPDX-License-Identifier: MIT
 *
 * What: wakes the loop at a given time, to the microsecond. libev rounds the waits for its timers
 * up to whole milliseconds, so a timerfd is used. Place: the worker has one, for its next event.
 *
 * Shape: a ticker has one time, the earliest that was asked for. on_tick is called after it, with
 * the time asked for, so that the difference to now is the timer's error. Data that on_tick writes
 * to sockets is sent before the loop waits.
 *
 *     at(30) at(10) at(20)        ->  on_tick(10), which asks for the next
 *
 * A short sleep costs more CPU than spinning, and ends late. So the last microseconds are spun: the
 * loop's turns do not wait, and each looks at the clock. Setting a timerfd is expensive, too: the
 * kernel programs a timer of the CPU. So it is set at most once a turn, before the wait.
 *
 *     asked in  >= 50 us: timerfd      < 50 us: spin
 *
 * Limits: if the system refuses a timerfd, libev's timers are used, with whole milliseconds.
 */
#ifndef LOAD_TICKER_H
#define LOAD_TICKER_H

#include "sxe.h"

#define LOAD_NEVER          UINT64_MAX
#define LOAD_TICKER_SPIN_NS UINT64_C(50000) /* a shorter wait than this is spun */

struct load_ticker {
    struct sxe_timer timer; /* private; used if there is no timerfd, and to call on_tick */
    ev_io readable;         /* private: watches fd */
    ev_idle spin;      /* private: while this watcher is active, the loop's turns do not wait */
    int fd;            /* private: the timerfd; -1: use timer */
    uint64_t asked_ns; /* ro: the time of the next tick (CLOCK_MONOTONIC); LOAD_NEVER: none */
    uint64_t set_ns;   /* private: the time that the timerfd or timer is set to */
    bool is_spinning;  /* ro: whether turns of the loop do not wait */
    void (*on_tick)(struct load_ticker *, uint64_t asked_ns); /* ro */
    void *user;                                               /* rw */
};

/* Open on this thread's loop, after sxe_init; close before sxe_fini. A ticker does not keep the
 * loop running. */
void load_ticker_open(struct load_ticker *ticker,
                      void (*on_tick)(struct load_ticker *, uint64_t asked_ns), void *user);
void load_ticker_close(struct load_ticker *ticker);

/* Tick at ns, or at an earlier time that was asked for before. A past time ticks at once. */
void load_ticker_at(struct load_ticker *ticker, uint64_t ns);

/* Tick at ns instead of the time that was asked for; LOAD_NEVER: do not tick. */
void load_ticker_move(struct load_ticker *ticker, uint64_t ns);

/* Call it at the end of each turn, before the loop waits: it sets the timer to the time asked for,
 * with at most one system call. */
void load_ticker_arm(struct load_ticker *ticker, uint64_t now_ns);

#endif
