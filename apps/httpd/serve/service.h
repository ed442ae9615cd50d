/* SPDX-License-Identifier: MIT
 *
 * What: the serving process. It answers with files, a greeting, or a script's replies.
 *
 * Place: main calls it once; the supervisor calls it in each of its children.
 *
 * Shape: it makes its plan (and loads the script), calls sxe_init, listens, runs, and drains.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "options.h"
#include "sxe-workers.h"

/* Print how much memory would be reserved. 0, or -errno after a message on standard error. */
int service_plan(struct httpd_options *options);

/* Serve until a signal, or the supervisor, ends the process. If worker is NULL, there is no
 * supervisor. 0, or -errno after a message on standard error. */
int service_run(struct httpd_options *options, const struct sxe_worker *worker);

#endif
