/* SPDX-License-Identifier: MIT
 *
 * What: the access log: one line for each request that was answered or refused. log-line.h makes
 * the lines, by the format of log-format.h.
 *
 * Place: service.c calls access_log_add for each reply. Lines are collected in a buffer, which is
 * written when it is full, and once a second, so that a request needs no system call. A full disk,
 * or a pipe that nobody reads, never blocks the server: whole lines are dropped and counted, and a
 * warning in the program's log says how many.
 *
 * Limits: the buffer has 64 KiB.
 */
#ifndef ACCESS_LOG_H
#define ACCESS_LOG_H

#include "log-format.h"
#include "sxe-http.h"

struct access_log;

/* Open the file at path for appending; "-" is standard output. Path and format must stay valid
 * until access_log_close. has_ids: objects of the format "json" have the id of the request. NULL:
 * errno says why. */
struct access_log *access_log_open(const char *path, const struct log_format *format, bool has_ids);

/* Set the number of this process's worker, which some formats show; it is 0 at first. log may be
 * NULL. */
void access_log_set_worker(struct access_log *log, unsigned worker);

/* Log only the part `rate` (0 to 1) of the requests, and all requests with a status of 500 or
 * above, and all that took slow_ms or longer. The choice depends on the request's trace or id, so
 * that all servers choose the same requests. */
void access_log_sample(struct access_log *log, double rate, uint32_t slow_ms);

void access_log_close(struct access_log *log); /* flush and close the log; NULL is allowed */

void access_log_add(struct access_log *log, const struct sxe_http_request *request,
                    const struct sxe_http_summary *summary);
void access_log_flush(struct access_log *log);

/* Open the log's path again, after its file was renamed. On failure the old file stays open. 0 or
 * -errno. */
int access_log_reopen(struct access_log *log);

/* How many lines were dropped so far. */
uint64_t access_log_dropped(const struct access_log *log);

#endif
