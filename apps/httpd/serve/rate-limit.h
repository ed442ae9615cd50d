/* SPDX-License-Identifier: MIT
 *
 * What: limits of rates, which routes have: so many requests of one client in a time, counted by
 * all workers together.
 *
 * Place: config-sites.c reads a limit; main makes the table before it forks, and config-routes.c
 * asks it before a route answers.
 *
 * Shape: a bucket for each client of each route, in a shared dict. It holds `burst` requests, and
 * one comes back each interval. Its value is the moment at which it will be full again ("generic
 * cell rate algorithm", ITU-T I.371):
 *
 *         now          full again
 *     -----+----------------+-----------> time     a request moves it on by one interval, unless it
 *          |<- at most burst intervals ->|         were further than burst intervals away then
 *
 * A client is an IPv4 address, the first 64 bits of an IPv6 address, or all that come by unix
 * sockets.
 *
 * Limits: RATE_LIMIT_CLIENTS buckets that are not full; one more evicts the one that was used
 * longest ago. 127 processes count. A request passes where the dict cannot be asked for some
 * milliseconds, and in processes that do not count.
 */
#ifndef RATE_LIMIT_H
#define RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define RATE_LIMIT_CLIENTS 16384
#define RATE_LIMIT_MOST    1000000 /* requests in the time, and of a burst */

struct rate_limit {
    uint64_t route; /* which one it is, in all processes */
    uint64_t interval_ns;
    uint32_t burst; /* 0: there is no limit */
};

/* "10/s", "100/m" or "1000/h", as interval and burst. False: it is none of these. */
bool rate_limit_parse(struct rate_limit *limit, const char *text);

/* Before the fork of the processes that serve. 0 or -errno. */
int rate_limit_begin(void);
void rate_limit_end(void);

/* In a process that was forked, while it still finds /proc and is allowed to use it. */
void rate_limit_join(void);

/* Count a request, of length 0: by a unix socket. 0: it may pass; otherwise it is not counted, and
 * so many seconds later one may pass. Without rate_limit_begin all pass. */
unsigned rate_limit_take(const struct rate_limit *limit, const struct sockaddr_storage *address,
                         socklen_t length);

#endif
