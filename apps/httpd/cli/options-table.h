/* SPDX-License-Identifier: MIT
 *
 * What: sxe-httpd's options: their numbers, and the table of their names and texts.
 *
 * Place: options.c parses the command line with it, and stores the values.
 */
#ifndef HTTPD_OPTIONS_TABLE_H
#define HTTPD_OPTIONS_TABLE_H

#include "command-line.h"

/* The numbers of the options, in the order of the functions in options.c that handle them. */
enum {
    UNIX = COMMAND_LINE_LONG,
    SOCKET_MODE,
    PROXY_FROM,
    TRUST_FROM,
    FORWARDED,
    LISTEN,
    FASTCGI,
    LISTING,
    PROXY,
    INDEX,
    CACHE_CONTROL,
    TYPE,
    DOT_FILES,
    SNIFF,
    RANGES_MAX,
    ERROR_PAGE,
    HEADER,
    ACCESS_LOG,
    LOG_FORMAT,
    LOG_SAMPLE,
    LOG_SLOW,
    REQUEST_ID,
    TRACE_CONTEXT,
    STATS,
    STATS_FROM,
    HANG_TIMEOUT,
    ADMIN,
    LUA,
    DEV,
    LUA_MEMORY,
    LUA_CPU,
    LUA_TASKS,
    LUA_SOCKETS,
    LUA_COVERAGE,
    LUA_SANDBOX,
    STRICT,
    LOOSE,
    REPL,
    REQUESTS_MAX,
    ADDRESS_MAX,
    LINE_MAX_BYTES,
    HEAD_MAX,
    FIELDS_MAX,
    BODY_MEMORY,
    HALF_CLOSE,
    BODY_MAX,
    BODY_RATE,
    HEADER_TIMEOUT,
    BODY_TIMEOUT,
    IDLE_TIMEOUT,
    STALL_TIMEOUT,
    STOP_TIMEOUT,
    PLAN,
    CONFIG,
    CHECK,
    PRINT_CONFIG,
    TLS_CERT,
    TLS_KEY,
    TLS_STAPLE,
    PROXY_TLS_CA,
    PROXY_TLS_NAME,
    PROXY_TLS_INSECURE,
    PROXY_TLS_CERT,
    PROXY_TLS_KEY,
    TLS_CLIENT_CA,
    TLS_CLIENT,
    TLS_PROFILE,
    TLS_MEMORY,
    HSTS,
    HTTP_REDIRECT,
    TLS_DEV,
    AS_USER,
    CHROOT,
    CONFINE
};

extern const struct command_line httpd_line;

/* Store the value of one option; in options.c. */
int httpd_take_option(void *settings, int val);

#endif
