/* SPDX-License-Identifier: MIT
 *
 * What: the first steps of each of our programs. They are needed because the process that started
 * the program may have closed the standard descriptors, and may have blocked signals, which stay
 * blocked after exec(2).
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <signal.h>
#include <stdbool.h>

/* Occupy standard descriptors that are closed, so that no other file gets their numbers; block the
 * signals of held (NULL: none) and no others; ignore SIGXFSZ, so that a write beyond the limit of
 * file sizes is an error. */
void program_begin(const sigset_t *held);

/* Whether the program was started with this signal ignored, as nohup(1) does with SIGHUP. If so,
 * the signal must not end the program. */
bool program_ignores(int signal_number);

/* Give this signal a handler that does nothing. Programs that this program runs then get the
 * signal's default action; if the signal were ignored instead, they would inherit that. A signal
 * that is ignored already stays ignored. */
void program_disarm(int signal_number);

#endif
