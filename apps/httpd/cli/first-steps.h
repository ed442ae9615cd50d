/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd without any option. In a folder with an index.html it serves that folder,
 * otherwise a greeting; and it prints how to go on. Any option, even one in the environment or in a
 * file, turns this off, so that a command line with options serves the same wherever it is started.
 */
#ifndef FIRST_STEPS_H
#define FIRST_STEPS_H

#include <stdio.h>

#include "options.h"

/* Call it when all options were read: it sets is_bare, and sets the root if this folder has an
 * index.html. */
void first_steps_choose(struct httpd_options *options);

/* Print what is served and how to go on, if no option was given. */
void first_steps_say(const struct httpd_options *options, FILE *out);

#endif
