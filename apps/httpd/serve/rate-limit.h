/* SPDX-License-Identifier: MIT
 *
 * What: the rate limits of routes: how many requests one client may send in a second, minute or
 * hour, counted by all workers together.
 *
 * Place: config-sites.c reads a limit; main makes the table before it forks, and config-routes.c
 * calls rate_limit_take before a route answers.
 *
 * Shape: a bucket for each client of each route, in a shared dict. A full bucket holds `burst`
 * requests; each request takes one out, and each interval puts one back. The stored value is the
 * time at which the bucket will be full again ("generic cell rate algorithm", ITU-T I.371):
 *
 *         now          full again
 *     -----+----------------+-----------> time     a request adds one interval to "full again"; it
 *          |<- at most burst intervals ->|         is refused if that is too far from now
 *
 * A client is an IPv4 address, or the first 64 bits of an IPv6 address. All clients of unix sockets
 * count as one.
 *
 * Limits: RATE_LIMIT_CLIENTS buckets that are not full; one more evicts the least recently used.
 * 127 processes can share the dict. A request passes uncounted if the dict stays locked for some
 * milliseconds, and in a process that has no place among the 127.
 */
#ifndef RATE_LIMIT_H
#define RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define RATE_LIMIT_CLIENTS 16384
/* most requests per second, minute or hour, and most in a burst */
#define RATE_LIMIT_MOST 1000000

struct rate_limit {
    uint64_t route; /* a hash of the route's place in the configuration, equal in all processes */
    uint64_t interval_ns;
    uint32_t burst; /* 0: there is no limit */
};

/* Parse "10/s", "100/m" or "1000/h" into interval and burst. False: the text is not like these. */
bool rate_limit_parse(struct rate_limit *limit, const char *text);

/* Make the table. Call before the serving processes are forked. 0 or -errno. */
int rate_limit_begin(void);
void rate_limit_end(void);

/* Make this process one of those that share the table. Call it after the fork, and before --chroot
 * or --user takes away access to /proc. */
void rate_limit_join(void);

/* Count a request of the client at address; length 0: a unix socket. 0: the request may pass.
 * Otherwise it is refused and not counted: the seconds until one may pass. Without rate_limit_begin
 * all pass. */
unsigned rate_limit_take(const struct rate_limit *limit, const struct sockaddr_storage *address,
                         socklen_t length);

#endif
