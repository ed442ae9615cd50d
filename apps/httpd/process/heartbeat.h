/* SPDX-License-Identifier: MIT
 *
 * What: how the supervisor sees that a child's event loop still runs. Supervisor and child share
 * memory with a counter, which is odd while the child's loop handles events, and even while the
 * loop waits.
 *
 * Place: supervisor.c makes a heartbeat for each child and reads it; service.c attaches it to the
 * child's loop.
 *
 * Shape: a counter that stays even means an idle child; one that stays odd means a child that hangs
 * in one callback. Before the supervisor kills it, a signal asks it what it runs:
 *
 *     supervisor                    child
 *     signal ------------------->   write the script's current function and line to it
 *     read it, log it, SIGKILL
 *
 * If the supervisor dies, the kernel sends the child a signal, and the child's link closes, so its
 * loop ends after the requests in progress. If the loop hangs, an alarm ends the child.
 */
#ifndef HEARTBEAT_H
#define HEARTBEAT_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HEARTBEAT_PLACE 1024

struct heartbeat {
    uint64_t turns; /* atomic */
    char place[HEARTBEAT_PLACE];
};

/* ---- In the supervisor ---- */

/* Map a shared heartbeat. Only the supervisor deletes it. On failure NULL, and errno. */
struct heartbeat *heartbeat_new(void);
void heartbeat_delete(struct heartbeat *heartbeat);

/* Ask the child what it runs. A moment later heartbeat->place names it, or is "" if the child could
 * not answer. */
void heartbeat_ask(struct heartbeat *heartbeat, pid_t child);

/* Whether a signal or a debugger has stopped the process. */
bool heartbeat_is_stopped(pid_t child);

/* ---- In the child ---- */

/* Use this heartbeat, and end this child when the supervisor dies. */
void heartbeat_begin(struct heartbeat *heartbeat, pid_t supervisor);

/* Count turns of this loop, which has not waited yet. */
void heartbeat_watch(struct ev_loop *loop);

/* Call when the loop has seen that the supervisor died: an alarm ends this process after ms and two
 * seconds more, in place of two seconds after the kernel's signal. */
void heartbeat_end_within(uint32_t ms);

#endif
