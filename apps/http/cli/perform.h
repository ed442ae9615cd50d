/* SPDX-License-Identifier: MIT
 *
 * What: executes one command, from its command line to its exit status: a run with its report and
 * files, a merge, a comparison, the self-test. Place: main() of sxe-http and of sxe-http-mpi.
 */
#ifndef LOAD_PERFORM_H
#define LOAD_PERFORM_H

#include "command.h"

/* A function that is called after the command line was parsed. It returns -1 to continue, or an
 * exit status after a message. */
typedef int (*load_prepare)(struct load_command *command);

/* Parse the command line, and execute its command. Returns the exit status. prepare may be NULL. */
int load_perform(int argc, char **argv, load_prepare prepare);

#endif
