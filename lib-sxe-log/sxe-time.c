/* SPDX-License-Identifier: MIT
 *
 * The clocks: monotonic, the time of the loop's turn, and the wall clock of 2010.
 */
#include "sxe-time-internal.h"

#include <time.h>

_Thread_local uint64_t sxe__turn_ns;

uint64_t
sxe_time_ns(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SXE_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t
sxe_time_turn_ns(void)
{
    return sxe__time_turn_ns();
}

void
sxe_time_set_turn_ns(uint64_t now_ns)
{
    sxe__turn_ns = now_ns < SXE_TIME_TURN_MAX ? now_ns : SXE_TIME_TURN_MAX;
}

double
sxe_get_time_in_seconds(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / (double)SXE_NS_PER_SECOND;
}
