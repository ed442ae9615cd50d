/* SPDX-License-Identifier: MIT
 *
 * What: the other process of a rank, which does all that is not MPI: at rank 0 the whole command
 * with its coordinator and envoys, and an agent; elsewhere an agent. Place: forked by main-mpi.c
 * before MPI begins, so that neither it nor the workers have anything of MPI in them. It has a
 * process group of its own: when mpirun ends the job because a rank died, it is there for long
 * enough to write what was measured. It has no session of its own, because Linux shares CPUs
 * between sessions first (autogroup): four would take from a server beside them what is its.
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

/* Tell the engine at the other end of the channel which rank of how many it is of. */
bool load_engine_tell(int channel, unsigned rank, unsigned ranks);

/* All of it; the exit status. */
int load_engine_run(int channel, int argc, char **argv);

#endif
