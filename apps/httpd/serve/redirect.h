/* SPDX-License-Identifier: MIT
 *
 * What: the second port of sxe-httpd (--http-redirect): it speaks plain HTTP, and answers every
 * request with 308 and the same path and query at the port that speaks HTTPS.
 *
 * Place: service.c plans it and ends it; listening.c calls redirect_begin. It is a second HTTP
 * server in the same loop, so that no script, file or route can be reached without TLS.
 *
 * Limits: a client cannot choose an arbitrary host for the redirect. Its Host is used only if a
 * certificate has this name; otherwise the first name of the first certificate is used. 1000
 * connections, or fewer with -c.
 */
#ifndef REDIRECT_H
#define REDIRECT_H

#include "options.h"

/* Create the second server, if --http-redirect was given. Call it before sxe_init. on_reply: as in
 * struct sxe_http_config. 0 or -errno. */
int redirect_plan(const struct httpd_options *options,
                  void (*on_reply)(struct sxe_http_request *request,
                                   const struct sxe_http_summary *summary));
void redirect_delete(void); /* call it after sxe_fini */

/* Listen at ip, and redirect to https_port. Returns the port at which it listens; 0:
 * --http-redirect was not given; -errno: it cannot listen. */
int redirect_begin(const struct httpd_options *options, const char *ip, unsigned short https_port);

/* Stop accepting. Replies in progress are still sent. */
void redirect_stop(void);

#endif
