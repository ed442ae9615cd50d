/* SPDX-License-Identifier: MIT
 *
 * What: how the supervisor knows that a child's loop turns. Both see a page with a number, which
 * the child makes odd when the loop begins to handle events, and even before it waits for them.
 *
 * Place: supervisor.c makes one a child and looks at it; service.c has its loop write it.
 *
 * Shape: a number that stays even is a child with nothing to do; one that stays odd is one that
 * does the same for ever. Before that one is killed, a signal asks it what it runs:
 *
 *     supervisor                    child
 *     SIGNAL ------------------->   write the place where the script is
 *     read it, log it, SIGKILL
 *
 * It shows, too, that a supervisor has died: the kernel tells the child by a signal. The child's
 * link is closed then, so its loop ends in good order; one whose loop does not turn is ended by an
 * alarm.
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

/* NULL: errno. Never the child's to free. */
struct heartbeat *heartbeat_new(void);
void heartbeat_delete(struct heartbeat *heartbeat);

/* Have the child say what it runs: later that is in place, unless it cannot. */
void heartbeat_ask(struct heartbeat *heartbeat, pid_t child);

/* Is the process stopped, by a signal or a debugger? */
bool heartbeat_is_stopped(pid_t child);

/* ---- In the child ---- */

/* It is the child of this process, and ends with it. */
void heartbeat_begin(struct heartbeat *heartbeat, pid_t supervisor);

/* The loop has not begun to wait yet; it turns from now on. */
void heartbeat_watch(struct ev_loop *loop);

/* The loop knows that the supervisor has died, and ends within so long. */
void heartbeat_end_within(uint32_t ms);

#endif
