/* SPDX-License-Identifier: MIT
 *
 * What: whose turn it is to accept. Workers accept from the same sockets, so the kernel gives a
 * connection to whichever asks first, and a worker that is idle would get nearly all of them.
 *
 * Place: the supervisor makes the table before it forks; listeners ask here before each accept4(2),
 * see struct sxe_listeners in sxe.h.
 *
 * Shape: a line of memory a slot: how many connections its worker has, and whether it accepts. A
 * worker writes its own line only. With `sum` connections at `n` workers that accept, one that has
 * `own` accepts while
 *
 *     own <= sum / n + the larger of 1 and sum / n / 8
 *
 * so that no worker has more than some nine eighths of the mean, and two more. One that has
 * more leaves the connection in the queue, where the others see it, and looks again 5 ms later: a
 * worker that hangs, or has died a moment ago, delays a connection, and never keeps it.
 *
 * A queue for each worker (SO_REUSEPORT) needs no rule, but what waits in it is lost when its
 * worker's socket closes. EPOLLEXCLUSIVE wakes one worker alone, and any: it does not balance.
 */
#ifndef BALANCE_H
#define BALANCE_H

#include <stdbool.h>
#include <stdint.h>

/* In the supervisor: 0 or -errno. */
int balance_begin(unsigned slots);
void balance_clear(unsigned slot); /* its process has ended, or accepts no more */
void balance_end(void);

/* In a worker, which has that slot: it accepts from now on. */
void balance_join(unsigned slot);

/* So many connections it has now. */
void balance_note(unsigned connections);
bool balance_may_accept(void);

/* The rule alone. */
bool balance_allows(uint64_t own, uint64_t sum, uint64_t workers);

#endif
