/* SPDX-License-Identifier: MIT
 *
 * What: notices changes of files. With --dev these are a script and the modules that it requires;
 * in all cases files of passwords; and with --user certificates.
 *
 * Place: if there are such files, the supervisor calls sxe__changes_look four times a second. It
 * compares the results of stat(2). Thereby it also notices a file that an editor replaced by
 * rename(2), without watching directories.
 *
 * The files of a load that fails are watched together with those of the load that serves: a change
 * of either may make the next load succeed.
 *
 * Limits: only the first CHANGES_FILES files are watched, which the log says once. A change that
 * leaves size, time and inode
 * as they were is not noticed.
 */
#ifndef SXE_WORKERS_CHANGES_PRIVATE_H
#define SXE_WORKERS_CHANGES_PRIVATE_H

#include <stdbool.h>

#include "sxe-workers-handover-internal.h"

#define CHANGES_FILES 256

/* Forget all files. */
void sxe__changes_clear(void);

struct sxe__stamp sxe__stamp_of(const char *path);

/* Watch a file: later states of it are compared with its present state. The path is copied. */
void sxe__changes_add(const char *path);

/* Watch a file that another process saw in the state `stamp` at the time `seen`. If the file has
 * changed after that time, sxe__changes_look reports the change. The other process may have another
 * root directory, where the path names another file. So a file that differs, but was not touched
 * after `seen`, has not changed. */
void sxe__changes_add_seen(const char *path, const struct sxe__stamp *stamp,
                           const struct timespec *seen);

/* Returns true once after a change. It does so only when a look finds no further change, so that a
 * file that is still being written is not loaded. */
bool sxe__changes_look(void);

/* Call sxe__changes_begin_load before a load reads its files, and sxe__changes_end_load when the
 * load serves. sxe__changes_begin_load returns true if a file has changed since the last look, or
 * if a change was still going on: the load will read this change. sxe__changes_end_load forgets the
 * files that the load did not add. */
bool sxe__changes_begin_load(void);
void sxe__changes_end_load(void);

#endif
