/* SPDX-License-Identifier: MIT
 *
 * What: decides which worker may accept a connection. All workers accept from the same sockets, and
 * the kernel gives a connection to the first worker that asks. So without a rule an idle worker
 * would get nearly all connections.
 *
 * Place: the supervisor makes the table before it forks; listeners call sxe__balance_may_accept
 * before each accept4(2), see struct sxe_listeners in sxe.h.
 *
 * Shape: each slot has a cache line with the number of its worker's connections, and whether the
 * worker accepts. A worker writes only its own line. With `sum` connections at `n` workers that
 * accept, a worker with `own` connections accepts while
 *
 *     own <= sum / n + the larger of 1 and sum / n / 8
 *
 * So no worker has more than about nine eighths of the mean, and two connections more. A worker
 * that has more leaves a new connection in the queue, where the other workers see it, and looks
 * again each millisecond, for 20 ms, which is time enough for a worker that waits for a CPU. So if
 * the others hang, or have just died, the connection is only delayed.
 *
 * SO_REUSEPORT gives each worker a queue of its own, and needs no rule. But the connections in a
 * queue are lost when its worker closes the socket. EPOLLEXCLUSIVE wakes an arbitrary worker, so it
 * does not balance.
 */
#ifndef SXE_WORKERS_BALANCE_PRIVATE_H
#define SXE_WORKERS_BALANCE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

/* Called in the supervisor before it forks: make the table of the workers' connections. 0 or
 * -errno. */
int sxe__balance_begin(unsigned slots);
void
sxe__balance_clear(unsigned slot); /* the process in this slot has ended, or accepts no longer */
void sxe__balance_end(void);

/* Called in the worker of this slot, which accepts from now on. */
void sxe__balance_join(unsigned slot);

/* Set the number of this worker's connections. Other files call it only in tests. */
void sxe__balance_note(unsigned connections);
bool sxe__balance_may_accept(void);

/* Called before each wait of the loop: if connections have opened or closed, set their number. A
 * worker that has nothing to accept would otherwise seem to have the connections of long ago, and
 * the others would take more than their share. */
void sxe__balance_look(void);

/* The rule alone, which is the formula above, for tests. */
bool sxe__balance_allows(uint64_t own, uint64_t sum, uint64_t workers);

#endif
