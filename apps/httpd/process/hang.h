/* SPDX-License-Identifier: MIT
 *
 * What: notices that a child's event loop hangs, and kills the child.
 *
 * Shape: four looks in hang_timeout_ms, each at the counter of the child's heartbeat. After the
 * last look the child is asked what it runs, and killed 250 ms later. A child that is stopped, by a
 * signal or a debugger, is only logged.
 */
#ifndef HANG_H
#define HANG_H

#include <stdbool.h>
#include <stdint.h>

/* Look at all children. Returns when to look again. is_ending, for the log: the supervisor ends, so
 * a killed child is not replaced. */
uint64_t look_at_hearts(uint64_t now_ns, uint32_t hang_timeout_ms, bool is_ending);

#endif
