/* SPDX-License-Identifier: MIT
 *
 * What: the counters of the serving process and of its script, as JSON for --stats and as lines of
 * the log.
 *
 * Place: service.c counts each reply here and routes the path of --stats.
 *
 * Shape:
 *     {"httpd":{"version":"...","pid":7,"load":0,"uptime":12,"connections":2,"requests":9,
 *               "status":{"1xx":0,"2xx":9,"3xx":0,"4xx":0,"5xx":0},"unanswered":0,"bytes":126,
 *               "log_lines_lost":0},
 *      "lua":{"memory":1048576,"memory_most":1048576,"memory_max":268435456},
 *      "script":{"http":{"requests":9, ...},"cache":{"hits":5,"misses":4}}}
 *
 * Limits: each process counts only its own replies. After a reload the counters begin at 0 again,
 * and "load" is one higher. The JSON has at most 64 KiB: counters that do not fit are left out.
 */
#ifndef STATS_H
#define STATS_H

#include "options.h"
#include "sxe-http.h"

/* Set all counters to 0. load is the number of processes that had this place before, see struct
 * sxe_worker. */
void stats_begin(const struct httpd_options *options, unsigned load);
/* also show how many lines this log has dropped; NULL: there is no log */
void stats_watch_log(const struct access_log *log);

void stats_count(const struct sxe_http_summary *summary);

/* Add the route of --stats, which has this path; NULL: --stats was not given. A client that
 * --stats-from does not allow gets 403. 0 or -errno. */
int stats_route(struct sxe_http_router *router, const char *path);

/* Write the values that are no counters of requests to the shared memory of admin-metrics.h.
 * Without --admin it does nothing. */
void stats_publish(void);

/* Write each counter to the log, in a line of its own. */
void stats_log(void);

#endif
