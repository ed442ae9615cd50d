/* SPDX-License-Identifier: MIT
 *
 * What: wakes the loop at a given time, with an error of microseconds. libev rounds the waits for
 * its timers up to whole milliseconds, so the ticker uses a timerfd. Place: the worker has one, for
 * its next event.
 *
 * Shape: a ticker has one time, the earliest that was asked for. When this time has come, on_tick
 * is called with it; the difference between it and the clock is the timer's error. Data that
 * on_tick writes to sockets is sent before the loop waits.
 *
 *     at(30) at(10) at(20)        ->  on_tick(10), which asks for the next
 *
 * A short sleep takes more CPU time than spinning, and ends late. So the ticker spins in the last
 * microseconds: the turns of the loop do not wait, and each turn reads the clock. Setting a timerfd
 * takes much time, too, because the kernel programs a timer of the CPU. So the timerfd is set at
 * most once a turn, before the loop waits.
 *
 *     asked in  >= 50 us: timerfd      < 50 us: spin
 *
 * Limits: if the system refuses a timerfd, libev's timers are used, with whole milliseconds.
 */
#ifndef LOAD_TICKER_H
#define LOAD_TICKER_H

#include "sxe.h"

#define LOAD_NEVER UINT64_MAX
/* the ticker spins if it waits for less than this time */
#define LOAD_TICKER_SPIN_NS UINT64_C(50000)

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

/* Open a ticker for this thread's loop, after sxe_init; close it before sxe_fini. A ticker does not
 * keep the loop running. */
void load_ticker_open(struct load_ticker *ticker,
                      void (*on_tick)(struct load_ticker *, uint64_t asked_ns), void *user);
void load_ticker_close(struct load_ticker *ticker);

/* Tick at ns, or at an earlier time that was asked for before. If the time has passed, tick in the
 * next turn of the loop. */
void load_ticker_at(struct load_ticker *ticker, uint64_t ns);

/* Tick at ns instead of the time that was asked for; LOAD_NEVER: do not tick. */
void load_ticker_move(struct load_ticker *ticker, uint64_t ns);

/* Call it at the end of each turn, before the loop waits. It sets the timer to the time that was
 * asked for, with at most one system call. */
void load_ticker_arm(struct load_ticker *ticker, uint64_t now_ns);

#endif
