/* SPDX-License-Identifier: MIT
 *
 * What: how a process ended, from the status of waitpid(2): as words for a message, and as an exit
 * status, with which a program that ran the process can end itself.
 */
#ifndef WAIT_STATUS_H
#define WAIT_STATUS_H

#define WAIT_STATUS_MAX 80 /* bytes of the text, its '\0' included */

/* Write "ended with exit status 3" or "ended with signal 9 (Killed)" to text, and return text. */
const char *wait_status_text(int status, char text[WAIT_STATUS_MAX]);

/* The exit status, or 128 + the signal's number, as a shell has it in $?. */
int wait_status_exit(int status);

#endif
