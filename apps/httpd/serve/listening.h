/* SPDX-License-Identifier: MIT
 *
 * What: the listeners of sxe-httpd: opens them, prints their addresses, and says what to do if one
 * cannot be opened.
 */
#ifndef LISTENING_H
#define LISTENING_H

#include "options.h"

/* Open the address and port, and the unix path: before the process that serves gives up privileges.
 * Where a script may listen elsewhere, or sockets were inherited and no address was given, none is
 * opened. 0, or -errno after a message. */
int listening_open(struct httpd_options *options);

/* Serve at these, and at all sockets that were inherited and that the script did not take. 0, or
 * -errno after a message. */
int listening_begin(struct sxe_http *http, const struct httpd_options *options);

/* Print the addresses of listening_begin. This is the first output of the program. */
void listening_say(const struct httpd_options *options);

#endif
