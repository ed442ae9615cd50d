/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd's options of TLS.
 */
#ifndef HTTPD_OPTIONS_TLS_H
#define HTTPD_OPTIONS_TLS_H

#include "options.h"

/* Store optarg as the value of the option whose number is val. False after a message. */
bool httpd_take_tls(struct httpd_options *options, int val);

/* Add the header field of --hsts to all replies. False after a message. */
bool httpd_add_hsts(struct httpd_options *options);

/* If --http-redirect was given without an address, use the address of -i. */
void httpd_settle_redirect(struct httpd_options *options);

/* If an option of TLS is missing, or two do not go together, the message about it; NULL: there is
 * no such fault. */
const char *httpd_tls_missing(const struct httpd_options *options);

#endif
