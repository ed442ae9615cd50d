/* SPDX-License-Identifier: MIT
 *
 * What: what each of our programs does first. Who started it may have closed its standard
 * descriptors, and may have blocked signals, which stay blocked after exec(2).
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <signal.h>

/* Let no file have the number of a standard descriptor, no signal be blocked but those of held
 * (NULL: none), and a file that grows past its limit be an error of writing. */
void program_begin(const sigset_t *held);

#endif
