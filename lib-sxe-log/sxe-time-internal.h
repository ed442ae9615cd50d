/* SPDX-License-Identifier: MIT
 *
 * What: the turn's time, inlined, for functions that take only a few nanoseconds.
 * Place: for lib-sxe-log and its friend lib-sxe-pool; not installed.
 */
#ifndef SXE_TIME_INTERNAL_H
#define SXE_TIME_INTERNAL_H

#include "sxe-time.h"

/* The time of the turn; 0 in a thread without a running loop. */
extern _Thread_local uint64_t sxe__turn_ns __attribute__((tls_model("initial-exec")));

/* sxe_time_turn_ns() as an inline function. */
static inline uint64_t
sxe__time_turn_ns(void)
{
    return __builtin_expect(sxe__turn_ns != 0, 1) ? sxe__turn_ns : sxe_time_ns();
}

#endif
