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
 * Limits: RATE_LIMIT_CLIENTS buckets that are not full. If there are more, the bucket that was not
 * used for the longest time is dropped. At most 127 processes can share the dict. A request passes
 * without being counted if the dict stays locked for some milliseconds, or if its process is not
 * one of the 127.
 */
#ifndef RATE_LIMIT_H
#define RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define RATE_LIMIT_CLIENTS 16384
/* the largest number of requests in a second, minute or hour, and in a burst */
#define RATE_LIMIT_MOST 1000000

struct rate_limit {
    /* a hash of the place of the route in the configuration, which is equal in all processes */
    uint64_t route;
    uint64_t interval_ns;
    uint32_t burst; /* how many requests may come at once; 0: there is no limit */
};

/* Parse "10/s", "100/m" or "1000/h" into interval and burst. False: the text is not of this
 * form. */
bool rate_limit_parse(struct rate_limit *limit, const char *text);

/* Make the table. Call it before the serving processes are forked. 0 or -errno. */
int rate_limit_begin(void);
void rate_limit_end(void);

/* Make this process one of those that share the table. Call it after the fork, and before --chroot
 * or --user takes away access to /proc. */
void rate_limit_join(void);

/* Count a request of the client that has this address; length 0: it came over a unix socket. 0: the
 * request may pass. Otherwise the request is refused and not counted, and the result is the number
 * of seconds until a request may pass. If rate_limit_begin was not called, all requests pass. */
unsigned rate_limit_take(const struct rate_limit *limit, const struct sockaddr_storage *address,
                         socklen_t length);

#endif
