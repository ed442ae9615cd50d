/* SPDX-License-Identifier: MIT
 *
 * What: the second process of a rank, which does everything but MPI: at rank 0 the whole command
 * with its coordinator, envoys and an agent; elsewhere an agent. Place: forked by main-mpi.c before
 * MPI begins, so that neither it nor the workers have MPI's threads and memory. It has a process
 * group of its own, so that it can write the results when mpirun ends the job because a rank died.
 * It has no session of its own, because Linux shares CPUs between sessions first (autogroup): the
 * sessions of four ranks would take CPU time from a server on the same machine.
 *
 * Shape:
 *     mpirun --- rank 0  relay --- engine = coordinator --- envoy 0 --- agent --- worker 1 of 3
 *            |             |                           '--- envoy 1, envoy 2
 *            |-- rank 1  relay --- engine = agent --- worker 2 of 3
 *            '-- rank 2  relay --- engine = agent --- worker 3 of 3
 */
#ifndef LOAD_ENGINE_H
#define LOAD_ENGINE_H

#include <stdbool.h>

/* Tell the engine at the other end of the channel its rank, and the number of ranks. */
bool load_engine_tell(int channel, unsigned rank, unsigned ranks);

/* Run the engine until the end; returns the exit status. */
int load_engine_run(int channel, int argc, char **argv);

#endif
