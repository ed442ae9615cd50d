/* SPDX-License-Identifier: MIT
 *
 * What: the format of lines of the access log, parsed from the text of --access-log-format.
 *
 * Place: options-check.c parses it once, at the start; log-line.c makes lines by it.
 *
 * Shape: the text becomes parts, each a variable or the bytes between two variables:
 *
 *     $remote_addr [$time_local] "$request" $status
 *     | variable  | |  variable | | variable| variable
 *                 literal       literal   literal
 *
 * A text that begins with { is JSON. In JSON a variable that is no number stands in a string. In
 * other texts each part knows the bytes next to it, which no value may have: log-line.c escapes
 * them, so that no client can forge a field.
 *
 * Limits: LOG_FORMAT_BYTES, LOG_FORMAT_PARTS, and LOG_FORMAT_TEXTS texts that clients send.
 */
#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_FORMAT_BYTES   2048 /* most bytes of the text, with its final NUL */
#define LOG_FORMAT_PARTS   64
#define LOG_FORMAT_TEXTS   24  /* most texts of clients; $request has two: method and target */
#define LOG_FORMAT_PROBLEM 192 /* bytes of a message */

enum log_variable {
    LOG_LITERAL,
    LOG_HEADER, /* $http_NAME: any field of the request */
    LOG_REMOTE_ADDR,
    LOG_REMOTE_USER,
    LOG_TIME_LOCAL,
    LOG_TIME_ISO8601,
    LOG_REQUEST,
    LOG_REQUEST_METHOD,
    LOG_REQUEST_URI,
    LOG_SERVER_PROTOCOL,
    LOG_STATUS,
    LOG_BODY_BYTES_SENT,
    LOG_REQUEST_TIME,
    LOG_DURATION_US,
    LOG_HOST,
    LOG_SCHEME,
    LOG_REQUEST_ID,
    LOG_TRACE_ID,
    LOG_SPAN_ID,
    LOG_SSL_PROTOCOL,
    LOG_WORKER
};

struct log_part {
    enum log_variable variable;
    /* index in bytes: the literal, or the name of the field, which ends with a NUL */
    uint16_t start;
    uint16_t length; /* the length of the literal */
    char before;     /* the literal byte before the variable, and the one after it; '\0': none */
    char after;
    bool is_quoted; /* whether the variable stands in double quotes */
};

struct log_format {
    /* true for "json": no parts, but an object with all members that have a value */
    bool is_object;
    bool is_json;
    unsigned number;
    struct log_part parts[LOG_FORMAT_PARTS];
    char bytes[LOG_FORMAT_BYTES];
};

/* Parse the text, or take the format that has this name: common, combined, json. False: problem
 * says what is wrong with the text. */
bool log_format_parse(struct log_format *format, const char *text,
                      char problem[LOG_FORMAT_PROBLEM]);

#endif
