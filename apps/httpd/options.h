/* SPDX-License-Identifier: MIT
 *
 * What: the command line of sxe-httpd. One table says what there is; parsing and --help come from
 * it.
 */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include <stdbool.h>

struct httpd_options {
    const char *ip;
    unsigned short port;
    unsigned connections;
    bool plan;
};

/* -1: go on with *options; otherwise all is said already, and this is the exit status (0 or 2). */
int httpd_options_parse(struct httpd_options *options, int argc, char **argv);

#endif
