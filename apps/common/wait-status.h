/* SPDX-License-Identifier: MIT
 *
 * What: how a process ended, from the status of waitpid(2): as words for a message, and as the exit
 * status for a program that ran the process.
 */
#ifndef WAIT_STATUS_H
#define WAIT_STATUS_H

#define WAIT_STATUS_MAX 80 /* bytes of the text, its '\0' included */

/* "ended with exit status 3" or "ended with signal 9 (Killed)", written to text, which is
 * returned. */
const char *wait_status_text(int status, char text[WAIT_STATUS_MAX]);

/* The exit status, or 128 + the signal, as a shell has it in $?. */
int wait_status_exit(int status);

#endif
