/* SPDX-License-Identifier: MIT
 *
 * What: where a server listens: has it listen there, and says so, or why not and what to do.
 */
#ifndef LISTENING_H
#define LISTENING_H

#include "options.h"

/* At the address and port, and the unix path if there is one. The port, or -errno with all said. */
int listening_begin(struct sxe_http *http, const struct httpd_options *options);

/* Remove the file of the unix socket, if it is still the one that listening_begin made. */
void listening_end(void);

/* The first that is printed. */
void listening_say(const struct httpd_options *options, int port);

#endif
