/* SPDX-License-Identifier: MIT
 *
 * What: the command line of sxe-httpd. One table says what there is; parsing and --help come from
 * it.
 */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include <stdbool.h>

#include "access-log.h"
#include "sxe-cidr.h"
#include "sxe-http-file.h"
#include "sxe-http.h"
#include "sxe-lua.h"

#define HTTPD_FIELDS_MAX 4096
#define HTTPD_TYPES_MAX  4096
#define HTTPD_INDEX_MAX  8

struct httpd_options {
    const char *ip;
    unsigned short port;
    const char *unix_path;                  /* NULL: only ip and port */
    unsigned socket_mode;                   /* of that path; 0: as the umask leaves it */
    struct sxe_http_config http;            /* limits, times */
    struct sxe_http_files_config files;     /* root NULL: hello */
    const char *index[HTTPD_INDEX_MAX + 1]; /* of --index; NULL behind the last */
    char types[HTTPD_TYPES_MAX];            /* of --type, each with a line end */
    struct sxe_cidr_list proxies;
    uint32_t stall_timeout_ms;
    uint32_t hang_timeout_ms;      /* for a turn of the loop of a script; 0: none */
    uint32_t stop_timeout_ms;      /* for what is under way when the end is asked for */
    char fields[HTTPD_FIELDS_MAX]; /* of --header, each with CR LF */
    const char *access_log;        /* path; NULL: none */
    enum access_log_format access_log_format;
    bool access_log_format_given;
    const char *stats_path; /* NULL: none */
    struct sxe_cidr_list stats_from;
    const char *script; /* path; NULL: none */
    struct sxe_lua_config lua;
    const char *lua_coverage; /* path; NULL: none */
    bool is_repl;             /* a shell into it, in place of a supervisor */
    bool is_script_described; /* by options other than --lua */
    bool is_place_given;      /* ip, port or unix_path */
    bool plan;
};

/* -1: go on with *options; otherwise all is said already, and this is the exit status (0 or 2). */
int httpd_options_parse(struct httpd_options *options, int argc, char **argv);

#endif
