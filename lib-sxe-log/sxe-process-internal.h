/* SPDX-License-Identifier: MIT
 *
 * What: how a process ended, from the status of waitpid(2): as words for a message, and as an exit
 * status, with which a program that ran the process can end itself; and signals that must not end
 * this process.
 *
 * Place: lib-sxe-workers and the programs call it; not installed.
 */
#ifndef SXE_PROCESS_INTERNAL_H
#define SXE_PROCESS_INTERNAL_H

#include <stdbool.h>

#define SXE__WAIT_STATUS_MAX 80 /* bytes of the text, its '\0' included */

/* Write "ended with exit status 3" or "ended with signal 9 (Killed)" to text, and return text. */
const char *sxe__wait_status_text(int status, char text[SXE__WAIT_STATUS_MAX]);

/* The exit status, or 128 + the signal's number, as a shell has it in $?. */
int sxe__wait_status_exit(int status);

/* Whether the program was started with this signal ignored, as nohup(1) does with SIGHUP. If so,
 * the signal must not end the program. */
bool sxe__signal_is_ignored(int signal_number);

/* Give this signal a handler that does nothing. Programs that this program runs then get the
 * signal's default action; they would inherit SIG_IGN. A signal that is ignored already stays
 * ignored. */
void sxe__signal_disarm(int signal_number);

#endif
