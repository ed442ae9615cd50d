/* SPDX-License-Identifier: MIT
 *
 * What: notices that a child's event loop hangs, and kills the child.
 *
 * Shape: the counter of the child's heartbeat is looked at four times in hang_timeout_ms. If it has
 * not changed at the fourth look, the child is asked which function it runs, and is killed 250 ms
 * later. But if a signal or a debugger has stopped the child, that is only logged.
 */
#ifndef SXE_WORKERS_HANG_PRIVATE_H
#define SXE_WORKERS_HANG_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

/* Look at all children. Returns when to look again. hang_option is the option that sets the limit,
 * for the log. is_ending: the supervisor ends, so the log must not say that a killed child is
 * replaced. */
uint64_t sxe__look_at_hearts(uint64_t now_ns, uint32_t hang_timeout_ms, const char *hang_option,
                             bool is_ending);

#endif
