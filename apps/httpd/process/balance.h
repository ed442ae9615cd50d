/* SPDX-License-Identifier: MIT
 *
 * What: which worker may accept a connection. Workers accept from the same sockets, so the kernel
 * gives a connection to the first that asks, and an idle worker would get nearly all of them.
 *
 * Place: the supervisor makes the table before it forks; listeners call balance_may_accept before
 * each accept4(2), see struct sxe_listeners in sxe.h.
 *
 * Shape: each slot has a cache line: how many connections its worker has, and whether the worker
 * accepts. A worker writes its own line only. With `sum` connections at `n` workers that accept, a
 * worker with `own` connections accepts while
 *
 *     own <= sum / n + the larger of 1 and sum / n / 8
 *
 * so that no worker has more than about nine eighths of the mean, and two more. A worker that has
 * more leaves the connection in the queue, where the others see it, and looks again 5 ms later: a
 * worker that hangs, or has died a moment ago, delays a connection, and never keeps it.
 *
 * SO_REUSEPORT, a queue for each worker, needs no rule, but the connections in a queue are lost
 * when its worker closes the socket. EPOLLEXCLUSIVE wakes any single worker: it does not balance.
 */
#ifndef BALANCE_H
#define BALANCE_H

#include <stdbool.h>
#include <stdint.h>

/* In the supervisor, before it forks: make the table of the workers' loads. 0 or -errno. */
int balance_begin(unsigned slots);
void balance_clear(unsigned slot); /* the slot's process has ended, or has stopped accepting */
void balance_end(void);

/* In the worker of this slot: it accepts from now on. */
void balance_join(unsigned slot);

/* Set the worker's number of connections. Only tests call it from outside. */
void balance_note(unsigned connections);
bool balance_may_accept(void);

/* The rule alone, as in the formula above, for tests. */
bool balance_allows(uint64_t own, uint64_t sum, uint64_t workers);

#endif
