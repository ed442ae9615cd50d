/* SPDX-License-Identifier: MIT
 *
 * What: reads all bytes of a file. Place: bodies, request files, scripts, expected bodies.
 */
#ifndef LOAD_WHOLE_FILE_H
#define LOAD_WHOLE_FILE_H

#include <stddef.h>

#define LOAD_WHOLE_FILE_MAX (64 << 20)

/* Returns the file's bytes and, not counted in *length, a NUL after them; the caller frees them.
 * NULL: errno says why; EFBIG: the file has more than LOAD_WHOLE_FILE_MAX bytes. */
char *load_whole_file(const char *path, size_t *length);

#endif
