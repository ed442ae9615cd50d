/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd without any option. In a folder with an index.html it serves that folder, else it
 * greets; and it says how to go on. An option of any origin, the environment and a file included,
 * turns this off: a command line serves the same wherever it is started.
 */
#ifndef FIRST_STEPS_H
#define FIRST_STEPS_H

#include <stdio.h>

#include "options.h"

/* When all options were taken: set is_bare, and the root if this folder has an index.html. */
void first_steps_choose(struct httpd_options *options);

/* Print what is served and how to go on, if no option was given. */
void first_steps_say(const struct httpd_options *options, FILE *out);

#endif
