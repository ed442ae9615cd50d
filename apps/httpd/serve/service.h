/* SPDX-License-Identifier: MIT
 *
 * What: the process that serves: files, a greeting, or what a script answers.
 *
 * Place: main calls it once; the supervisor calls it in each of its children.
 *
 * Shape: plan (and load the script), sxe_init, listen, run, end in good order.
 */
#ifndef SERVICE_H
#define SERVICE_H

#include "options.h"

/* All that is reserved, on standard output. 0, or -errno with all said. */
int service_plan(struct httpd_options *options);

/* Serve until a signal, or the supervisor, ends it. link: to the supervisor, -1: there is none;
 * load: how many processes it had before. 0, or -errno with all said. */
int service_run(struct httpd_options *options, int link, unsigned load);

#endif
