/* SPDX-License-Identifier: MIT
 *
 * What: all bytes of a file. Place: bodies, request files, scripts, and what a body is
 * compared with.
 */
#ifndef LOAD_WHOLE_FILE_H
#define LOAD_WHOLE_FILE_H

#include <stddef.h>

#define LOAD_WHOLE_FILE_MAX (64 << 20)

/* Its bytes, and a NUL after them that is not counted; the caller frees them. NULL with errno;
 * EFBIG: there are more than LOAD_WHOLE_FILE_MAX. */
char *load_whole_file(const char *path, size_t *length);

#endif
