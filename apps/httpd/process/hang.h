/* SPDX-License-Identifier: MIT
 *
 * What: notices that a child's event loop hangs, and kills the child.
 *
 * Shape: the counter of the child's heartbeat is looked at four times in hang_timeout_ms. If it has
 * not changed at the fourth look, the child is asked which function it runs, and is killed 250 ms
 * later. But if a signal or a debugger has stopped the child, that is only logged.
 */
#ifndef HANG_H
#define HANG_H

#include <stdbool.h>
#include <stdint.h>

/* Look at all children. Returns when to look again. is_ending: the supervisor ends, so the line of
 * the log must not say that a killed child is replaced. */
uint64_t look_at_hearts(uint64_t now_ns, uint32_t hang_timeout_ms, bool is_ending);

#endif
