/* SPDX-License-Identifier: MIT
 *
 * What: where a request ends in the bytes that a script returned, which may be several requests one
 * after the other, as scripts of wrk do for pipelining. Place: script-worker.c. Pure.
 */
#ifndef LOAD_SCRIPT_QUERY_H
#define LOAD_SCRIPT_QUERY_H

#include <stddef.h>
#include <sys/types.h>

#include "requests.h"

/* Find the end of the first request. Returns its length with its body, and sets is_head and is_last
 * of the query. 0: the request is not complete. -1: it is not a request, and *why says why; is_head
 * is then set by its first word. */
ssize_t load_script_query(const char *bytes, size_t length, struct load_query *query,
                          const char **why);

#endif
