/* SPDX-License-Identifier: MIT
 *
 * What: the step of a serving process to the user of --user, and what it opens before.
 *
 * Place: service.c begins with it; become.c takes the step itself.
 */
#ifndef SERVE_AS_H
#define SERVE_AS_H

#include "access-log.h"
#include "options.h"
#include "worker-place.h"

/* Open the access log, if one is wanted and *log is NULL. 0, or -errno after a message. */
int serve_as_open_log(const struct httpd_options *options, struct access_log **log);

/* With --user, before a script begins: open what only root may, and become that user. worker NULL:
 * no supervisor. 0, or -errno after a message. */
int serve_as_begin(const struct httpd_options *options, const struct worker *worker,
                   struct access_log **log);

#endif
