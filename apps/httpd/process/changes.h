/* SPDX-License-Identifier: MIT
 *
 * What: files that are looked at again and again, to see when one has changed: a script, and the
 * modules that it requires.
 *
 * Place: the supervisor looks four times a second with --dev. It compares what stat(2) says, which
 * also sees a file that an editor put in another's place, and needs no watch on each directory.
 *
 * Limits: CHANGES_FILES of them; those above are not looked at. A change that leaves size, time and
 * inode as they were is not seen.
 */
#ifndef CHANGES_H
#define CHANGES_H

#include <stdbool.h>

#define CHANGES_FILES 256

/* None any more. */
void changes_clear(void);

/* As it is now. The path is copied. */
void changes_add(const char *path);

/* True once after changes: when all is as it was at the last look, so nobody still writes. */
bool changes_look(void);

#endif
