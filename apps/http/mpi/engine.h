/* SPDX-License-Identifier: MIT
 *
 * What: the engine, which is the second process of a rank. It does everything but MPI: at rank 0
 * the whole command, with the coordinator, envoys and an agent; at other ranks it is an agent.
 * Place: main-mpi.c forks it before MPI begins, so that neither the engine nor the workers have
 * MPI's threads and memory. It has its own process group, so that it can write the results when
 * mpirun ends the job because a rank died. It does not have its own session, because Linux divides
 * CPU time between sessions first (autogroup): four ranks would be four more sessions, which would
 * take CPU time from a server on the same machine.
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

/* Tell the engine at the other end of the channel its rank, and the number of ranks. False: the
 * channel is closed. */
bool load_engine_tell(int channel, unsigned rank, unsigned ranks);

/* Run the engine until it ends. Returns the exit status. */
int load_engine_run(int channel, int argc, char **argv);

#endif
