/* SPDX-License-Identifier: MIT
 *
 * What: the two clocks. Intervals, deadlines and stamps use the monotonic one; log lines and dates
 * use the wall clock, and nothing else does, so setting the system's time fires no timeout.
 * Place: called by every library; calls clock_gettime(2) (the vDSO, no system call).
 * Limits: 64-bit nanoseconds, 584 years.
 */
#ifndef SXE_TIME_H
#define SXE_TIME_H

#include <stdint.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_NS_PER_SECOND UINT64_C(1000000000)
#define SXE_NS_PER_MS     UINT64_C(1000000)
#define SXE_NS_PER_US     UINT64_C(1000)

/* Read the monotonic clock now: nanoseconds, which never go back. */
SXE_PUBLIC uint64_t sxe_time_ns(void);

/* Nanoseconds of the monotonic clock as this thread's loop read it at the start of its turn, which
 * costs one load. In a thread without a running loop this call reads the clock. */
SXE_PUBLIC uint64_t sxe_time_turn_ns(void);

/* Set the result of sxe_time_turn_ns in this thread; 0 makes it read the clock again. The loop
 * calls this once a turn; a program with its own loop may do so, too. A time beyond
 * SXE_TIME_TURN_MAX (146 years after the clock began) counts as SXE_TIME_TURN_MAX. */
#define SXE_TIME_TURN_MAX (UINT64_C(1) << 62)
SXE_PUBLIC void sxe_time_set_turn_ns(uint64_t now_ns);

/* Seconds since 1970 by the wall clock (2010 name). For intervals prefer sxe_time_ns. */
SXE_PUBLIC double sxe_get_time_in_seconds(void);

#ifdef __cplusplus
}
#endif

#endif
