/* SPDX-License-Identifier: MIT
 *
 * What: makes a line of the access log.
 *
 * Place: access-log.c calls log_line_make for each request that it logs, with room at the end of
 * its buffer, so that no line is copied. Nothing is allocated. printf(3) is called only for the
 * rate of sampled lines in JSON, because it takes as long as several parts of a line.
 *
 * Escapes: in texts of clients, bytes below 0x20, bytes from 0x7f on, " and \ become \xHH (in JSON
 * the escapes of sxe-json.h), so that no client can forge a line. The bytes that the format has
 * next to the variable, and blanks outside of double quotes, are escaped, too, so that no client
 * can forge a field.
 *
 * Limits: each of a client's texts is cut at 1,200 bytes after escaping.
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

#include <time.h>

#include "log-format.h"
#include "sxe-http.h"

#define LOG_LINE_SIZE 36864u

struct log_line {
    char *text; /* room for LOG_LINE_SIZE bytes, of which bytes after the line may be overwritten */
    unsigned length;
};

/* The current date in UTC, in two forms, which are made once a second. Set second to -1 before the
 * first use. */
struct log_clock {
    time_t second;
    char local[80]; /* "06/Nov/1994:08:49:37 +0000" */
    char iso[80];   /* "1994-11-06T08:49:37Z" */
};

void log_clock_set(struct log_clock *clock, time_t now);

/* The request that a line shows. */
struct log_entry {
    const struct sxe_http_request *request;
    const struct sxe_http_summary *summary;
    const struct log_clock *clock;
    unsigned worker;
    bool has_id;        /* whether objects of the format "json" have the id of the request */
    double sample_rate; /* the part of the requests that is logged; 0: all are */
};

/* Make the line, which ends with a newline. */
void log_line_make(struct log_line *line, const struct log_format *format,
                   const struct log_entry *entry);

#endif
