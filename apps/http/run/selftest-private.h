/* SPDX-License-Identifier: MIT
 *
 * What: the servers to which --selftest sends its load. Each is a process of its own, and counts
 * what it does. Place: selftest*.c.
 *
 * Shape: a server is one loop over epoll(7). It shares no code with the load generator, so that its
 * counts can prove the counts of the load generator.
 *
 *     WELL      answers each request at once
 *     BADLY     of ten requests in a row six are answered well, one has status 404, at one the
 *               connection is reset, at one it is closed, at one it is closed in the body
 *     LATE      answers each request LOAD_SELFTEST_DELAY_NS after it came, watching the clock
 *
 * Limits: requests without a body, 1,024 connections.
 */
#ifndef LOAD_SELFTEST_PRIVATE_H
#define LOAD_SELFTEST_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "histogram.h"

#define LOAD_SELFTEST_DELAY_NS UINT64_C(1000000)

enum load_selftest_kind { LOAD_SELFTEST_WELL, LOAD_SELFTEST_BADLY, LOAD_SELFTEST_LATE };

/* The counts of a server, in memory that it shares with the check. All are zero at the
 * beginning. */
struct load_selftest_counts {
    volatile uint64_t first_ns;   /* when the first request came; 0: none has come */
    volatile uint64_t stalled_ns; /* how long the server was stopped */
    uint64_t requests;
    uint64_t ok;
    uint64_t bad_status;
    uint64_t resets;
    uint64_t closes;
    uint64_t short_bodies;
    struct load_histogram held; /* the times from a request's last byte to the write of its reply */
};

struct load_selftest_server {
    uint16_t port;
    pid_t pid;
    int control; /* our end of a socket pair; when it is closed, the server ends */
    struct load_selftest_counts *counts;
};

/* Start a server. 0 or -errno. */
int load_selftest_serve(struct load_selftest_server *server, enum load_selftest_kind kind);

/* Stop the server; its counts stay valid until load_selftest_free. */
void load_selftest_stop(struct load_selftest_server *server);
void load_selftest_free(struct load_selftest_server *server);

/* ---- The checks that selftest.c runs: they return whether they passed; text gets the figures
 * ---- */

typedef bool (*load_selftest_check)(char *text, size_t size);

/* in selftest-local.c: they need no server */
bool load_selftest_clocks(char *text, size_t size);
bool load_selftest_timer(char *text, size_t size);
bool load_selftest_histogram(char *text, size_t size);

/* in selftest-load.c: they send a load to one of the servers */
bool load_selftest_accounts(char *text, size_t size);
bool load_selftest_merge(char *text, size_t size);
bool load_selftest_stall(char *text, size_t size);
bool load_selftest_delay(char *text, size_t size);

/* Whether a signal ended the last load. If so, its check has no result, and the self-test must
 * end. */
bool load_selftest_is_interrupted(void);

#endif
