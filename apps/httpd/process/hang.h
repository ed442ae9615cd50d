/* SPDX-License-Identifier: MIT
 *
 * What: sees that a child's loop does not turn, and ends that child.
 *
 * Shape: four looks in hang_timeout_ms, each at the number in the child's heartbeat. After the last
 * one the child is asked what it runs, and killed 250 ms later. One that is stopped, by a signal or
 * a debugger, is only logged.
 */
#ifndef HANG_H
#define HANG_H

#include <stdbool.h>
#include <stdint.h>

/* At all children: when to look again. is_ending: those that are killed are not replaced. */
uint64_t look_at_hearts(uint64_t now_ns, uint32_t hang_timeout_ms, bool is_ending);

#endif
