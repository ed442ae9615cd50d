/* SPDX-License-Identifier: MIT
 *
 * What: the files that a run writes, and whether a path is one of them. Place: the command line and
 * scenarios refuse to write a file that they read.
 */
#ifndef LOAD_OUTPUTS_H
#define LOAD_OUTPUTS_H

#include "plan.h"

#define LOAD_OUTPUTS 9

/* The paths of all outputs; NULL: it is not wanted. */
void load_outputs_list(const char *paths[LOAD_OUTPUTS], const struct load_plan *plan);

/* The output that goes to the file at this path, perhaps by another name of the same file; NULL:
 * there is none. Standard output, devices and pipes are no such files. */
const char *load_outputs_find(const struct load_plan *plan, const char *path);

/* Whether two paths are of one regular file, or will be, if there is none yet. */
bool load_outputs_are_same(const char *path, const char *other);

#endif
