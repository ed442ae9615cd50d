/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd without any option. If the current folder has an index.html, it serves this
 * folder, otherwise it serves a greeting. It also prints what the user can do next. Any option,
 * even one in the environment or in a file, turns this off, so that a command line with options
 * serves the same wherever it is started.
 */
#ifndef FIRST_STEPS_H
#define FIRST_STEPS_H

#include <stdio.h>

#include "options.h"

/* Call it after all options were read. If there was none, it sets is_bare, and if the current
 * folder has an index.html, it sets the root to this folder. */
void first_steps_choose(struct httpd_options *options);

/* If no option was given, print what is served, and what the user can do next. */
void first_steps_say(const struct httpd_options *options, FILE *out);

#endif
