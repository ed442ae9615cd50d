/* SPDX-License-Identifier: MIT
 *
 * What: how a serving process becomes the user of --user, and which files it opens before that.
 *
 * Place: service.c calls serve_as_begin first; become.c changes the user.
 */
#ifndef SERVE_AS_H
#define SERVE_AS_H

#include "access-log.h"
#include "options.h"
#include "worker-place.h"

/* Open the access log, if one is wanted and *log is NULL. worker NULL: no supervisor. 0, or -errno
 * after a message. */
int serve_as_open_log(const struct httpd_options *options, const struct worker *worker,
                      struct access_log **log);

/* With --user: open the files that only root may open, and become that user. Call before a script
 * is loaded. worker NULL: no supervisor. 0, or -errno after a message. */
int serve_as_begin(const struct httpd_options *options, const struct worker *worker,
                   struct access_log **log);

#endif
