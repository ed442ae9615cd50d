/* SPDX-License-Identifier: MIT
 *
 * What: a list of files that is polled for changes: with --dev a script and the modules that it
 * requires; files of passwords; with --user the certificates.
 *
 * Place: the supervisor then calls changes_look four times a second. It compares the results of
 * stat(2), which also shows a file that an editor replaced by rename, and needs no watch on each
 * directory.
 *
 * The files of a load that fails are watched together with those of the load that serves: a change
 * of either may make the next load succeed.
 *
 * Limits: CHANGES_FILES files; further ones are not watched. A change that leaves size, time and
 * inode as they were is not seen.
 */
#ifndef CHANGES_H
#define CHANGES_H

#include <stdbool.h>

#define CHANGES_FILES 256

/* Forget all files. */
void changes_clear(void);

/* Watch a file for changes from its present state on. The path is copied. */
void changes_add(const char *path);

/* True once after a change: at the first look that finds no further change, so that a file which
 * is still being written is not loaded. */
bool changes_look(void);

/* Call changes_begin_load before a load reads its files, and changes_end_load when it serves.
 * changes_end_load forgets files that the load did not add. changes_begin_load is true if a file
 * has changed since the last look, or a change was still going on: the load reads that change. */
bool changes_begin_load(void);
void changes_end_load(void);

#endif
