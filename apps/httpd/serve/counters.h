/* SPDX-License-Identifier: MIT
 *
 * What: the counters of the process that serves, and those of its script, as JSON for --stats and
 * as lines of the log.
 *
 * Place: service.c has replies counted here, and the path answered.
 *
 * Shape:
 *     {"httpd":{"version":"...","pid":7,"load":0,"uptime":12,"connections":2,"requests":9,
 *               "status":{"1xx":0,"2xx":9,"3xx":0,"4xx":0,"5xx":0},"unanswered":0,"bytes":126},
 *      "lua":{"memory":1048576,"memory_most":1048576,"memory_max":268435456},
 *      "script":{"http":{"requests":9, ...},"cache":{"hits":5,"misses":4}}}
 *
 * Limits: of this process; one that was loaded again counts from 0, and load counts these. 64 KiB
 * of text: counters that do not fit are left out.
 */
#ifndef STATS_H
#define STATS_H

#include "options.h"
#include "sxe-http.h"

/* Counts from now on. load: how many processes there were before. */
void stats_begin(const struct httpd_options *options, unsigned load);
void stats_watch_log(const struct access_log *log); /* until the next stats_begin; NULL: none */

void stats_count(const struct sxe_http_summary *summary);

/* A handler; those who are not allowed to see them get 403. */
enum sxe_http_verdict stats_handle(struct sxe_http_request *request,
                                   struct sxe_http_response *response);

/* A line of the log each. */
void stats_log(void);

#endif
