/* SPDX-License-Identifier: MIT
 *
 * What: parses the values of --start-at, a time of the wall clock, and of --shard. Place:
 * command.c. Pure: the caller gives the present time.
 *
 * Shape: --start-at 1795000000.5   seconds since 1970
 *                   14:30:00       today, local time; a fraction may follow
 *                   +2.5           seconds from now
 *        --shard 2/4               the second of four parts
 */
#ifndef LOAD_START_AT_H
#define LOAD_START_AT_H

#include "plan.h"

/* Set *at_ns, ns since 1970 and later than now_ns. NULL, or what is wrong, a static text. */
const char *load_start_at_parse(const char *text, uint64_t now_ns, uint64_t *at_ns);

/* Set the plan's shards; 1/1 is the whole load, so it sets 0. NULL, or what is wrong. */
const char *load_shard_parse(const char *text, struct load_plan *plan);

#endif
