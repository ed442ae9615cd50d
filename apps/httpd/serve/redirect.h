/* SPDX-License-Identifier: MIT
 *
 * What: the second port of sxe-httpd (--http-redirect): it speaks plain HTTP, and answers every
 * request with 308 and the same path and query at the port that speaks HTTPS.
 *
 * Place: service.c plans and ends it, listening.c has it listen. It is an HTTP server of its own in
 * the same loop, so that no script, file or route is reached without TLS.
 *
 * Limits: the client does not choose the host: it is that of the request if a certificate has that
 * name, or else the first name of the first certificate. 1000 connections, or fewer by -c.
 */
#ifndef REDIRECT_H
#define REDIRECT_H

#include "options.h"

/* Before sxe_init: reserve it, if it is wanted. on_reply as in the server's configuration. 0 or
 * -errno. */
int redirect_plan(const struct httpd_options *options,
                  void (*on_reply)(struct sxe_http_request *request,
                                   const struct sxe_http_summary *summary));
void redirect_delete(void); /* after sxe_fini */

/* Listen; the targets are at https_port. The port that it listens on, 0: it is not wanted, or
 * -errno. */
int redirect_begin(const struct httpd_options *options, unsigned short https_port);

/* Accept nothing more; what it answers now is sent. */
void redirect_stop(void);

#endif
