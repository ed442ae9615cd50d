/* SPDX-License-Identifier: MIT
 *
 * What: opening paths that must not leave a directory, for files and for scripts of FastCGI. The
 * functions are in sxe-http-file-open.c, is_hidden in sxe-http-file.c.
 */
#ifndef SXE_HTTP_BENEATH_PRIVATE_H
#define SXE_HTTP_BENEATH_PRIVATE_H

#include <stdbool.h>

#include "sxe-http-parse.h"
#include "sxe-util.h"

/* Whether a segment of the name begins with a dot. The first segment may be ".well-known" (RFC
 * 8615). */
bool sxe__http_is_hidden(struct sxe_span name);

/* Open a path beneath the directory `root`. Returns a descriptor, or -errno. */
SXE_MUST_USE int sxe__http_open_beneath(int root, bool has_openat2, const char *path, int flags);

/* Find out whether openat2(2) works beneath the root. 0 or -errno. */
SXE_MUST_USE int sxe__http_probe_root(int root, bool *has_openat2);

#endif
