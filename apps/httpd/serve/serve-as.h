/* SPDX-License-Identifier: MIT
 *
 * What: lets a serving process become the user of --user, and opens some files before that.
 *
 * Place: service.c calls serve_as_begin first; become.c changes the user.
 */
#ifndef SERVE_AS_H
#define SERVE_AS_H

#include "access-log.h"
#include "options.h"
#include "sxe-workers.h"

/* Open the access log, if the options ask for one and *log is NULL. If worker is NULL, there is no
 * supervisor. 0, or -errno after a message. */
int serve_as_open_log(const struct httpd_options *options, const struct sxe_worker *worker,
                      struct access_log **log);

/* If --user was given, open the files that only root may open, and become the user. Call it before
 * a script is loaded. If worker is NULL, there is no supervisor. 0, or -errno after a message. */
int serve_as_begin(const struct httpd_options *options, const struct sxe_worker *worker,
                   struct access_log **log);

#endif
