/* SPDX-License-Identifier: MIT
 *
 * What: what each of our programs does first. The process that started it may have closed its
 * standard descriptors, and may have blocked signals, which stay blocked after exec(2).
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <signal.h>
#include <stdbool.h>

/* Let no file have the number of a standard descriptor, no signal be blocked but those of held
 * (NULL: none), and a file that grows past its limit be an error of writing. */
void program_begin(const sigset_t *held);

/* Whether who started it has it ignore this signal, as nohup(1) does with SIGHUP: then it is not to
 * end the program. */
bool program_ignores(int signal_number);

/* Have this signal do nothing here. Programs that are run from here get its default, as they would
 * inherit SIG_IGN; one that is ignored already is left to them so. */
void program_disarm(int signal_number);

#endif
