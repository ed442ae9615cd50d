/* SPDX-License-Identifier: MIT
 *
 * What: the listeners of sxe-httpd: opens them, prints their addresses, and says what to do if one
 * cannot be opened. It also configures the loop, because the listeners are a part of the loop's
 * configuration.
 */
#ifndef LISTENING_H
#define LISTENING_H

#include "options.h"

/* Open the sockets of --http-redirect, -i, -p and --unix, before the serving process gives up
 * privileges. If no address was given, the default address is opened, unless there are inherited
 * sockets, or a script, which may listen itself. 0, or -errno after a message. */
int listening_open(struct httpd_options *options);

/* Serve at the sockets of listening_open, and at all inherited sockets that the script did not
 * take. 0, or -errno after a message. */
int listening_begin(struct sxe_http *http, const struct httpd_options *options);

/* Configure the loop for these options: its chunks, timeouts and listeners. */
void listening_configure_loop(const struct httpd_options *options);

/* Print the addresses at which listening_begin listens. This is the first output of the program. */
void listening_say(const struct httpd_options *options);

#endif
