/* SPDX-License-Identifier: MIT
 *
 * What: the value of --start-at as a time of the wall clock, and the value of --shard. Place:
 * command.c. Pure: the present time is given.
 *
 * Shape: --start-at 1795000000.5   seconds since 1970
 *                   14:30:00       today, local time; a fraction may follow
 *                   +2.5           seconds from now
 *        --shard 2/4               the second of four parts
 */
#ifndef LOAD_START_AT_H
#define LOAD_START_AT_H

#include "plan.h"

/* NULL with *at_ns, ns since 1970 and after now_ns; or what is wrong, a static text. */
const char *load_start_at_parse(const char *text, uint64_t now_ns, uint64_t *at_ns);

/* NULL with the plan's shards; of 1/1, which is all of the load, there are none. */
const char *load_shard_parse(const char *text, struct load_plan *plan);

#endif
