/* SPDX-License-Identifier: MIT
 *
 * What: checks of single values on the command line (headers, content types, file names).
 * "After a message" means that standard error says what is wrong.
 *
 * Place: options.c and options-tls.c call it; options-complete.h checks options together.
 */
#ifndef HTTPD_OPTIONS_CHECK_H
#define HTTPD_OPTIONS_CHECK_H

#include <netinet/in.h>

#include "options.h"

/* True for "Name: value", unless the server sets that field itself. */
bool httpd_is_field(const char *text);

/* True for the name of a field, unless the server sets that field itself. */
bool httpd_is_field_name(const char *text);

/* True for a line as in mime.types: "text/markdown md mkd". */
bool httpd_is_type(const char *text);

/* Print that this word is not an option. Always false. */
bool httpd_refuse_word(const char *word);

/* True for a file name without a directory, as --index takes. */
bool httpd_is_file_name(const char *name);

/* Print that `what` is optarg and must be `must`. Always false. */
bool httpd_wrong(const char *what, const char *must);

/* True for an IP address, optarg of -i; otherwise false after a message. */
bool httpd_is_address(const char *ip);

/* Parse [IP:]PORT, an IPv6 address in brackets; ip is "" if there is none. False, without a
 * message: the text is neither. */
bool httpd_read_place(const char *text, char ip[INET6_ADDRSTRLEN], unsigned short *port);

/* Store optarg of --header, --type, --index, --socket-mode and so on. False after a message. */
bool httpd_add_field(struct httpd_options *options);
bool httpd_add_type(struct httpd_options *options);
bool httpd_add_index(struct httpd_options *options);
bool httpd_set_socket_mode(struct httpd_options *options);
bool httpd_add_place(struct httpd_options *options);
bool httpd_add_proxy(struct httpd_options *options);
bool httpd_set_unix_path(struct httpd_options *options);
bool httpd_set_forwarded(struct httpd_options *options);
bool httpd_set_log_format(struct httpd_options *options);
bool httpd_set_log_sample(struct httpd_options *options);
bool httpd_set_cache_control(struct httpd_options *options);
bool httpd_set_user(struct httpd_options *options);
bool httpd_set_chroot(struct httpd_options *options);
bool httpd_set_confined(struct httpd_options *options);

/* Set the default of --access-log-format. */
void httpd_begin_log_format(struct httpd_options *options);

/* The first path of a unix socket; NULL: there is none. */
const char *httpd_unix_path(const struct httpd_options *options);

#endif
