/* SPDX-License-Identifier: MIT
 *
 * What: the command line of sxe-http. One table says what there is; parsing and --help come from
 * it.
 */
#ifndef HTTP_OPTIONS_H
#define HTTP_OPTIONS_H

#include <stdint.h>

struct http_options {
    const char *ip;      /* where to connect to: IPv4 or IPv6; borrowed from argv */
    unsigned short port; /* 1 to 65535 */
    uint32_t queries;    /* a socket */
    uint32_t sockets;
    uint32_t timeout_ms; /* without any progress */
    char authority[64];  /* "127.0.0.1:8000", "[::1]:8000" */
};

/* -1: go on with *options; otherwise all is said already, and this is the exit status (0 or 2). */
int http_options_parse(struct http_options *options, int argc, char **argv);

#endif
