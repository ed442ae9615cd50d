/* SPDX-License-Identifier: MIT
 *
 * What: parses the values of --start-at, a time of the wall clock, and of --shard. Place: used by
 * command.c. The functions do not read the clock: the caller gives the present time.
 *
 * Shape: --start-at 1795000000.5   seconds since 1970
 *                   14:30:00       today, local time; a fraction may follow
 *                   +2.5           seconds from now
 *        --shard 2/4               the second of four parts
 */
#ifndef LOAD_START_AT_H
#define LOAD_START_AT_H

#include "plan.h"

/* Set *at_ns to a time in ns since 1970 that is later than now_ns. NULL, or what is wrong, as a
 * static text. */
const char *load_start_at_parse(const char *text, uint64_t now_ns, uint64_t *at_ns);

/* Set the plan's shard and number of shards. 1/1 is the whole load, so it sets the number to 0.
 * NULL, or what is wrong, as a static text. */
const char *load_shard_parse(const char *text, struct load_plan *plan);

#endif
