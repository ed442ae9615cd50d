/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd's options of TLS.
 */
#ifndef HTTPD_OPTIONS_TLS_H
#define HTTPD_OPTIONS_TLS_H

#include "options.h"

/* Store the value of one of them; false after a message. */
bool httpd_take_tls(struct httpd_options *options, int val);

/* Add the field of --hsts to those of all replies; false after a message. */
bool httpd_add_hsts(struct httpd_options *options);

/* The address of --http-redirect is that of -i, unless it has its own. */
void httpd_settle_redirect(struct httpd_options *options);

/* NULL, or what is missing or does not go together. */
const char *httpd_tls_missing(const struct httpd_options *options);

#endif
