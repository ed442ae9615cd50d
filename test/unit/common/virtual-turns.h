/* SPDX-License-Identifier: MIT
 *
 * What: turns of a loop whose clock is virtual, for tests that wait for the thread of a look-up.
 *
 * Example:
 *     fake_time_start(SXE_NS_PER_SECOND, 0);
 *     ...
 *     await_event();
 */
#ifndef VIRTUAL_TURNS_H
#define VIRTUAL_TURNS_H

#include <sched.h>

#include "fake-time.h"
#include "sxe-fixture.h"

/* A turn that takes no time of the virtual clock. */
static inline void
turn_in_no_time(void)
{
    fake_time_poll_ns = 1;
    turn(1);
    fake_time_poll_ns = 0;
    sched_yield();
}

/* Turn until an event of the fixture comes. */
static inline void
await_event(void)
{
    while (event_count() == 0)
        turn_in_no_time();
}

#endif
