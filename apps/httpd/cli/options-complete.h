/* SPDX-License-Identifier: MIT
 *
 * What: checks of options that need another, or do not go with another.
 *
 * Place: options.c calls it when all values were read.
 */
#ifndef HTTPD_OPTIONS_COMPLETE_H
#define HTTPD_OPTIONS_COMPLETE_H

#include <stdbool.h>

#include "options.h"

/* Check that options for files, a log or a script come with -r, --access-log or --lua. False after
 * a message. */
bool httpd_is_complete(const struct httpd_options *options);

/* Set the defaults of head_max and line_max, and check that a request line fits into a head. False
 * after a message. */
bool httpd_fit_line(struct sxe_http_limits *head);

#endif
