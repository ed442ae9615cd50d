/* SPDX-License-Identifier: MIT
 *
 * What: a heartbeat, by which the supervisor sees that a child's event loop still runs. It is
 * memory that supervisor and child share. It has a counter, which is odd while the child's loop
 * handles events, and even while the loop waits.
 *
 * Place: sxe-workers-children.c makes a heartbeat for each child, sxe-workers-hang.c reads it;
 * sxe-workers-worker.c attaches it to the child's loop.
 *
 * Shape: if the counter stays even, the child is idle. If it stays odd, the child hangs in a
 * callback. Before the supervisor kills it, it sends a signal that asks the child which function it
 * runs:
 *
 *     supervisor                    child
 *     signal ------------------->   write what it runs to it
 *     read it, log it, SIGKILL
 *
 * If the supervisor dies, the kernel sends the child a signal, and the child's link closes, so its
 * loop ends after the requests in progress. If the loop hangs, an alarm ends the child.
 */
#ifndef SXE_WORKERS_HEARTBEAT_PRIVATE_H
#define SXE_WORKERS_HEARTBEAT_PRIVATE_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SXE__HEARTBEAT_PLACE 1024

struct sxe__heartbeat {
    uint64_t turns; /* the counter, read and written atomically */
    char place[SXE__HEARTBEAT_PLACE];
};

/* ---- In the supervisor ---- */

/* Map the memory of a heartbeat. Only the supervisor deletes it. NULL: errno says why. */
struct sxe__heartbeat *sxe__heartbeat_new(void);
void sxe__heartbeat_delete(struct sxe__heartbeat *heartbeat);

/* Ask the child which function it runs. A moment later heartbeat->place names the function, or is
 * "" if the child could not answer. */
void sxe__heartbeat_ask(struct sxe__heartbeat *heartbeat, pid_t child);

/* Whether a signal or a debugger has stopped the process. */
bool sxe__heartbeat_is_stopped(pid_t child);

/* ---- In the child ---- */

/* Use this heartbeat in this process, and let this process end when the supervisor dies. describe:
 * see struct sxe_workers_config; NULL: there is no such function. */
void sxe__heartbeat_begin(struct sxe__heartbeat *heartbeat, pid_t supervisor,
                          size_t (*describe)(char *text, size_t size));

/* Count the turns of this loop, which must not have waited yet. */
void sxe__heartbeat_watch(struct ev_loop *loop);

/* Call it when the loop has noticed that the supervisor died. Then an alarm ends this process in ms
 * and two seconds. Otherwise it would end two seconds after the kernel's signal. */
void sxe__heartbeat_end_within(uint32_t ms);

#endif
