/* SPDX-License-Identifier: MIT
 *
 * What: the access log: one line for each request that was answered or refused. log-line.h makes
 * the lines, by the format of log-format.h.
 *
 * Place: service.c calls access_log_add from on_reply. Lines gather in a buffer, which is written
 * when it is full and once a second, so that a request costs no system call. A full disk, or a pipe
 * that nobody reads, never blocks the server: whole lines are dropped and counted, and a warning in
 * the program's log says how many.
 *
 * Limits: the buffer has 64 KiB.
 */
#ifndef ACCESS_LOG_H
#define ACCESS_LOG_H

#include "log-format.h"
#include "sxe-http.h"

struct access_log;

/* Open the file at path for appending; "-" is standard output. Path and format are borrowed until
 * access_log_close. has_ids: objects of "json" have the id of the request. On failure NULL, and
 * errno. */
struct access_log *access_log_open(const char *path, const struct log_format *format, bool has_ids);

/* Set the number of this process's worker, for lines that have it; it is 0 at first. NULL is
 * allowed. */
void access_log_set_worker(struct access_log *log, unsigned worker);

/* Log only this share of the requests, 0 to 1, and all requests that were answered by 500 or above
 * or took slow_ms. A request is chosen by its trace or its id, so that all servers choose the same
 * ones. */
void access_log_sample(struct access_log *log, double rate, uint32_t slow_ms);

void access_log_close(struct access_log *log); /* flush and close the log; NULL is allowed */

void access_log_add(struct access_log *log, const struct sxe_http_request *request,
                    const struct sxe_http_summary *summary);
void access_log_flush(struct access_log *log);

/* Open the log's path again, after its file was renamed. On failure the old file stays open. 0 or
 * -errno. */
int access_log_reopen(struct access_log *log);

/* The number of lines dropped so far. */
uint64_t access_log_dropped(const struct access_log *log);

#endif
