/* SPDX-License-Identifier: MIT
 *
 * What: one command, from the words of its command line to its exit status: a run with its report
 * and its files, a sum, a comparison, the self-test. Place: main() of sxe-http and of
 * sxe-http-mpi.
 */
#ifndef HTTP_PERFORM_H
#define HTTP_PERFORM_H

#include "command.h"

/* What is left to do when the command line was understood: -1 to go on, or an exit status after
 * saying why not. */
typedef int (*http_prepare)(struct http_command *command);

/* The exit status; prepare may be NULL. */
int http_perform(int argc, char **argv, http_prepare prepare);

#endif
