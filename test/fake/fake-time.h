/* SPDX-License-Identifier: MIT
 *
 * What: virtual clocks. While they run, time stands still except where a loop would sleep: there it
 * jumps, so that a one-hour timer fires at once and always in the same order.
 *
 * Place: replaces clock_gettime (MONOTONIC*, REALTIME*, BOOTTIME; others are real), gettimeofday,
 * time, nanosleep, clock_nanosleep, epoll_wait and timerfd_* by --wrap; fake_os_fail works on them
 * too. poll stays real.
 *
 * Shape: epoll_wait(timeout) looks for events without waiting. If there are some, it returns them,
 * and no time has passed. If there are none, it moves the clocks on by the timeout, but by at least
 * 1 ms, because libev's timers fire only after their time. With no timeout (-1), or after 100
 * virtual days without an event (libev never waits for more than a minute), it really waits for an
 * event, and aborts after 5 seconds (fake_time_patience_ms).
 *
 * A timerfd made while they run is an eventfd, which epoll_wait makes readable when its time has
 * come; no jump goes past that time. Before each jump fake_time_idle is called: if both ends of a
 * conversation run in this thread, the other end does its part there.
 *
 * Limits: start before making the loop, or it sees time jump. Set from one thread; read from any.
 */
#ifndef FAKE_TIME_H
#define FAKE_TIME_H

#include <stdint.h>

/* Start the virtual clocks at these times, or set them again. */
void fake_time_start(uint64_t monotonic_ns, uint64_t wall_ns);

void fake_time_advance(uint64_t ns);  /* moves both clocks */
void fake_time_step_wall(int64_t ns); /* moves the wall clock alone, back if ns < 0 */
void fake_time_stop(void);            /* returns to the real clocks */

extern int fake_time_patience_ms;

/* How long an epoll_wait(0) without an event takes, for loops that poll instead of waiting; 0: at
 * least 1 ms, as above. */
extern uint64_t fake_time_poll_ns;

/* Called when nothing is ready, before time jumps; NULL: no function. Returns FAKE_TIME_LOOK_AGAIN:
 * something may be ready now; otherwise the time of the monotonic clock, in ns, when it must be
 * called again. */
#define FAKE_TIME_LOOK_AGAIN UINT64_C(0)
#define FAKE_TIME_NEVER      UINT64_MAX
#define FAKE_TIME_SIGNAL     UINT64_C(1) /* epoll_wait is interrupted: EINTR */
extern uint64_t (*fake_time_idle)(void);

#endif
