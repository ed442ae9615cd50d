/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd's options of TLS.
 */
#ifndef HTTPD_OPTIONS_TLS_H
#define HTTPD_OPTIONS_TLS_H

#include "options.h"

/* Store optarg of the option val. False after a message. */
bool httpd_take_tls(struct httpd_options *options, int val);

/* Add the header field of --hsts to all replies. False after a message. */
bool httpd_add_hsts(struct httpd_options *options);

/* If --http-redirect has no address, set it to the address of -i. */
void httpd_settle_redirect(struct httpd_options *options);

/* The message if options of TLS are missing or do not go together; NULL: all is well. */
const char *httpd_tls_missing(const struct httpd_options *options);

#endif
