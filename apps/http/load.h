/* SPDX-License-Identifier: MIT
 *
 * What: the load itself, on lib-sxe: all sockets are connected, then each has one query after the
 * other. Place: http.c runs it; report.c prints what it counted. Uses reply.c and histogram.c.
 *
 * Shape: two phases, and one outstanding thing a socket.
 *
 *     ramp      16 connects under way, until every socket is open or has failed
 *     queries   the first one on each socket in order, a batch a turn of the loop; then each reply
 *               sends the socket's next query, until it has had its n, or fails
 *
 * Every query ends in exactly one count, and so does every socket:
 *
 *     sockets asked for = opened + each failure + untried
 *     queries asked for = ok + each failure + in_flight + unsent
 *
 * untried, in_flight and unsent are 0 unless the run was interrupted. A socket that fails takes all
 * its queries that were not answered with it.
 *
 * Limits: a socket that fails is not opened again. Sockets stay open until the end.
 */
#ifndef HTTP_LOAD_H
#define HTTP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "histogram.h"
#include "options.h"

#define HTTP_LOAD_RAMP  16 /* connects under way */
#define HTTP_LOAD_BATCH 64 /* first queries in a turn of the loop */

/* X(ENUMERATOR, text): why a socket was not opened, or a query not answered well. */
#define HTTP_EACH_FAILURE(X)          \
    X(REFUSED, "refused")             \
    X(RESET, "reset")                 \
    X(CLOSED_EARLY, "closed early")   \
    X(TIMED_OUT, "timed out")         \
    X(NO_DESCRIPTOR, "no descriptor") \
    X(NO_PORT, "no port")             \
    X(BAD_STATUS, "bad status")       \
    X(BAD_REPLY, "bad reply")         \
    X(NOT_OPENED, "not opened")       \
    X(OTHER, "other")

enum http_failure {
#define HTTP_ENUMERATOR(failure, text) HTTP_##failure,
    HTTP_EACH_FAILURE(HTTP_ENUMERATOR)
#undef HTTP_ENUMERATOR
        HTTP_FAILURES
};

struct http_result {
    const struct http_options *options; /* borrowed */

    uint32_t opened; /* sockets that connected */
    uint32_t untried;
    uint64_t sockets[HTTP_FAILURES]; /* that did not connect */

    uint64_t ok; /* queries answered with a status of 2xx */
    uint64_t in_flight;
    uint64_t unsent;
    uint64_t queries[HTTP_FAILURES];
    unsigned bad_status; /* the first */
    int error;           /* the first errno behind OTHER */
    bool interrupted;    /* by SIGINT */

    double connect_s; /* from the first connect to the last socket's opening or failure */
    double query_s;   /* from then to the end */
    struct http_histogram connect; /* from connect(2) until it is known to have worked */
    struct http_histogram service; /* from a query's write(2) to its reply's last byte */
};

/* Run to the end; on_open is called once, when the ramp is over or interrupted. 0, or the -errno of
 * sxe_init or of memory; then there is no result. */
int http_load_run(struct http_result *result, const struct http_options *options,
                  void (*on_open)(const struct http_result *result));

#endif
