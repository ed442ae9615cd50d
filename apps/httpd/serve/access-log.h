/* SPDX-License-Identifier: MIT
 *
 * What: a line for each request that was answered or refused, in the forms that other programs
 * read: common, combined (those of Apache and nginx), JSON.
 *
 * Place: httpd hands it to the server as on_reply. Lines gather in a buffer, which is written when
 * it is full and once a second, so that a request costs no system call.
 *
 * What a client sent is escaped: bytes below 0x20, from 0x7f on, " and \ stand as \xHH (in JSON as
 * \u00HH), so a line is a line. A disk that is full, or a pipe that nobody reads, never holds up
 * the server: lines are dropped whole, and counted, and the log of the program says so.
 *
 * Limits: 64 KiB of buffer; of each text that a client sent, 1,200 bytes once they are escaped.
 */
#ifndef ACCESS_LOG_H
#define ACCESS_LOG_H

#include "sxe-http.h"

enum access_log_format { ACCESS_LOG_COMMON, ACCESS_LOG_COMBINED, ACCESS_LOG_JSON };

struct access_log;

/* path "-" is the standard output; a path is borrowed until close. NULL: errno says why not. */
struct access_log *access_log_open(const char *path, enum access_log_format format);
void access_log_close(struct access_log *log); /* writes what is left; NULL is allowed */

void access_log_add(struct access_log *log, const struct sxe_http_request *request,
                    const struct sxe_http_summary *summary);
void access_log_flush(struct access_log *log);

/* Open the file of that name again: it was renamed. On failure the old one stays. 0 or -errno. */
int access_log_reopen(struct access_log *log);

/* Lines that could not be written so far. */
uint64_t access_log_dropped(const struct access_log *log);

#endif
