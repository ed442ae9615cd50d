/* SPDX-License-Identifier: MIT
 *
 * What: the listeners of sxe-httpd: opens them, prints their addresses, and says what to do if one
 * cannot be opened.
 */
#ifndef LISTENING_H
#define LISTENING_H

#include "options.h"

/* Listen at the address and port, and at the unix path if there is one. Returns the port, or -errno
 * after a message. */
int listening_begin(struct sxe_http *http, const struct httpd_options *options);

/* Remove the file of the unix socket, if it is still the one that listening_begin made. */
void listening_end(void);

/* Print the addresses. This is the first output of the program. */
void listening_say(const struct httpd_options *options, int port);

#endif
