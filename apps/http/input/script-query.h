/* SPDX-License-Identifier: MIT
 *
 * What: finds the end of a request in the bytes that a script returned. The bytes may be several
 * requests, one after the other: scripts of wrk pipeline requests in this way. Place:
 * script-worker.c uses it.
 */
#ifndef LOAD_SCRIPT_QUERY_H
#define LOAD_SCRIPT_QUERY_H

#include <stddef.h>
#include <sys/types.h>

#include "requests.h"

/* Find the end of the first request in the bytes. Returns the length of the request with its body,
 * and sets is_head and is_last of the query. 0: the request is not complete. -1: the bytes are no
 * request, and *why says why; then is_head depends only on the first word. */
ssize_t load_script_query(const char *bytes, size_t length, struct load_query *query,
                          const char **why);

#endif
