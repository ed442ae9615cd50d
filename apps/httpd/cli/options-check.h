/* SPDX-License-Identifier: MIT
 *
 * What: whether texts of the command line are what a reply, or a file, can have; and
 * whether options fit together.
 */
#ifndef HTTPD_OPTIONS_CHECK_H
#define HTTPD_OPTIONS_CHECK_H

#include "options.h"

/* "Name: value", and not one that replies have already. */
bool httpd_is_field(const char *text);

/* A line as of mime.types: "text/markdown md mkd". */
bool httpd_is_type(const char *text);

/* Say that this word is no option. Always false. */
bool httpd_refuse_word(const char *word);

/* Of an index, without a directory. */
bool httpd_is_file_name(const char *name);

/* Say on standard error that optarg is not what it must be; false. */
bool httpd_wrong(const char *what, const char *must);

/* Keep optarg: of --header, --type, --index, --socket-mode. False: all is said. */
bool httpd_add_field(struct httpd_options *options);
bool httpd_add_type(struct httpd_options *options);
bool httpd_add_index(struct httpd_options *options);
bool httpd_set_socket_mode(struct httpd_options *options);

/* Nothing is said of files, a log or a script that there is none of. False: what is wrong is said.
 */
bool httpd_is_complete(const struct httpd_options *options);

/* A request line is a part of the head: sets both. False: all is said. */
bool httpd_fit_line(struct sxe_http_limits *head);

#endif
