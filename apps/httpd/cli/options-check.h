/* SPDX-License-Identifier: MIT
 *
 * What: checks of single values on the command line (headers, content types, file names). "After a
 * message" means: after a message on standard error that says what is wrong.
 *
 * Place: options.c and options-tls.c call it; options-complete.h checks options together.
 */
#ifndef HTTPD_OPTIONS_CHECK_H
#define HTTPD_OPTIONS_CHECK_H

#include <netinet/in.h>

#include "options.h"

/* Whether the text is "Name: value", with a name of a field that the server does not set itself. */
bool httpd_is_field(const char *text);

/* Whether the text is the name of a field that the server does not set itself. */
bool httpd_is_field_name(const char *text);

/* Whether the text is like a line of mime.types: "text/markdown md mkd". */
bool httpd_is_type(const char *text);

/* Print that this word is not an option. Always false. */
bool httpd_refuse_word(const char *word);

/* Whether the text is a file name without a directory, as --index needs it. */
bool httpd_is_file_name(const char *name);

/* Print a message: `what` is optarg, but it must be `must`. Always false. */
bool httpd_wrong(const char *what, const char *must);

/* Whether ip, which is the optarg of -i, is an IP address. If not, false after a message. */
bool httpd_is_address(const char *ip);

/* Parse [IP:]PORT, with an IPv6 address in brackets. If there is no IP, ip becomes "". False,
 * without a message: the text is not of this form. */
bool httpd_read_place(const char *text, char ip[INET6_ADDRSTRLEN], unsigned short *port);

/* Each of these functions stores optarg of an option, such as --header, --type, --index,
 * --socket-mode. False after a message. */
bool httpd_add_field(struct httpd_options *options);
bool httpd_add_type(struct httpd_options *options);
bool httpd_add_index(struct httpd_options *options);
bool httpd_set_socket_mode(struct httpd_options *options);
bool httpd_add_place(struct httpd_options *options);
bool httpd_add_proxy(struct httpd_options *options);
bool httpd_set_unix_path(struct httpd_options *options);
bool httpd_set_fastcgi(struct httpd_options *options);
bool httpd_set_forwarded(struct httpd_options *options);
bool httpd_set_log_format(struct httpd_options *options);
bool httpd_set_log_sample(struct httpd_options *options);
bool httpd_set_cache_control(struct httpd_options *options);
bool httpd_set_user(struct httpd_options *options);
bool httpd_set_chroot(struct httpd_options *options);
bool httpd_set_confined(struct httpd_options *options);

/* Set the default value of --access-log-format. */
void httpd_begin_log_format(struct httpd_options *options);

/* The first path of a unix socket at which the server listens; NULL: there is none. */
const char *httpd_unix_path(const struct httpd_options *options);

#endif
