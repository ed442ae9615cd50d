/* SPDX-License-Identifier: MIT
 *
 * What: the first steps of each of our programs. They are needed because the process that started
 * the program may have closed the standard descriptors, and may have blocked signals, which stay
 * blocked after exec(2).
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <signal.h>

/* Occupy standard descriptors that are closed, so that no other file gets their numbers; block the
 * signals of held (NULL: none) and no others; ignore SIGXFSZ, so that a write beyond the limit of
 * file sizes is an error. */
void program_begin(const sigset_t *held);

#endif
