/* SPDX-License-Identifier: MIT
 *
 * What: lists the files that a run writes, and tells whether a path leads to one of them. Place:
 * with it the command line and scenarios refuse to overwrite a file that they read.
 */
#ifndef LOAD_OUTPUTS_H
#define LOAD_OUTPUTS_H

#include "plan.h"

#define LOAD_OUTPUTS 9

/* Store the paths of all outputs; NULL for an output that is not wanted. */
void load_outputs_list(const char *paths[LOAD_OUTPUTS], const struct load_plan *plan);

/* The output that goes to the file at this path, even if the output's path is another name of this
 * file; NULL: no output goes there. Paths of standard output, devices and pipes match no output. */
const char *load_outputs_find(const struct load_plan *plan, const char *path);

/* Whether two paths lead to the same regular file, or would after the file is created. */
bool load_outputs_are_same(const char *path, const char *other);

#endif
