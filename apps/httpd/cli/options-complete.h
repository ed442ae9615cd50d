/* SPDX-License-Identifier: MIT
 *
 * What: checks that no option lacks another one that it needs, and that no two options contradict
 * each other.
 *
 * Place: options.c calls it after all values were read.
 */
#ifndef HTTPD_OPTIONS_COMPLETE_H
#define HTTPD_OPTIONS_COMPLETE_H

#include <stdbool.h>

#include "options.h"

/* Check that options about files are given with -r, options about a log with --access-log, and
 * options about a script with --lua. False after a message. */
bool httpd_is_complete(const struct httpd_options *options);

/* Set head_max and line_max to their defaults if they were not given, and check that a request line
 * fits into a head. False after a message. */
bool httpd_fit_line(struct sxe_http_limits *head);

#endif
