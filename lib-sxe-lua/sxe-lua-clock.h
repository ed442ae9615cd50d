/* SPDX-License-Identifier: MIT
 *
 * What: the table of functions through which scripts see the clocks and random numbers. A program
 * that replaces it decides what scripts see, so that a request can be recorded and run again.
 *
 * Place: under os.time, os.date, os.clock, math.randomseed, every timeout and every id of an error;
 * a table a thread. Data that scripts read comes through tasks, which are woken in the loop.
 *
 * Shape: math.random stays Lua's own generator, which begins with two numbers from here, when a
 * state is made and when math.randomseed() is called without a seed: what follows depends on
 * nothing else.
 *
 * Limits: the functions must not raise, and not call Lua. The random bits of UUIDs and keys are not
 * from here but always from the system, because nobody may know them.
 *
 * Example:
 *     static double
 *     in_2010(void)
 *     {
 *         return 1286043102.25;
 *     }
 *     ...
 *     struct sxe_lua_clock clock = *sxe_lua_get_clock();
 *     clock.wall_s = in_2010;
 *     sxe_lua_set_clock(&clock);
 */
#ifndef SXE_LUA_CLOCK_H
#define SXE_LUA_CLOCK_H

#include <stdint.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sxe_lua_clock {
    uint64_t (*now_ns)(void); /* monotonic time in nanoseconds */
    double (*wall_s)(void);   /* seconds since 1970 */
    double (*cpu_s)(void);    /* CPU seconds that the process used */
    uint64_t (*random)(void); /* 64 random bits */
};

/* The clock of this thread; never NULL. */
SXE_PUBLIC const struct sxe_lua_clock *sxe_lua_get_clock(void);

/* Replace the clock of this thread, before sxe_lua_new. The clock is borrowed; NULL restores the
 * system's. */
SXE_PUBLIC void sxe_lua_set_clock(const struct sxe_lua_clock *clock);

#ifdef __cplusplus
}
#endif

#endif
