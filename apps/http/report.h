/* SPDX-License-Identifier: MIT
 *
 * What: what a person reads, and what a script tests. Place: http.c prints with it what load.c
 * counted. Every number is printed with what it is of, and nothing that failed is left out.
 */
#ifndef HTTP_REPORT_H
#define HTTP_REPORT_H

#include <stdio.h>

#include "load.h"

void http_report_plan(FILE *out, const struct http_options *options);

/* After the ramp. */
void http_report_sockets(FILE *out, const struct http_result *result);

/* At the end; its last lines are those of 2010. */
void http_report_queries(FILE *out, const struct http_result *result);

/* The exit status: 0 all is well, 1 something is not, 130 interrupted. */
int http_report_status(const struct http_result *result);

#endif
