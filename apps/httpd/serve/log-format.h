/* SPDX-License-Identifier: MIT
 *
 * What: the format of lines of the access log, parsed from the text of --access-log-format.
 *
 * Place: options-check.c parses the text once, at the start; log-line.c makes lines in this format.
 *
 * Shape: the text becomes parts, each a variable or the bytes between two variables:
 *
 *     $remote_addr [$time_local] "$request" $status
 *     | variable  | |  variable | | variable| variable
 *                 literal       literal   literal
 *
 * If the text begins with {, it is JSON. In JSON a variable whose value is no number must be in a
 * string. In other texts log-line.c escapes the bytes that the format has next to a variable, if
 * they are in its value, so that no client can forge a field.
 *
 * Limits: LOG_FORMAT_BYTES bytes, LOG_FORMAT_PARTS parts, and LOG_FORMAT_TEXTS texts that clients
 * send.
 */
#ifndef LOG_FORMAT_H
#define LOG_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_FORMAT_BYTES 2048 /* the most bytes of the text, with its final NUL */
#define LOG_FORMAT_PARTS 64
/* the most texts of clients in a line; $request consists of two: method and target */
#define LOG_FORMAT_TEXTS   24
#define LOG_FORMAT_PROBLEM 192 /* room for a message about what is wrong with the text */
#define LOG_FORMAT_SHORT   16  /* literal texts up to this length are copied with a fixed length */

enum log_variable {
    LOG_LITERAL,
    LOG_HEADER, /* $http_NAME: the field NAME of the request */
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
    /* where the part begins in `bytes`: it is the literal text, or the name of the field, which
     * ends with a NUL */
    uint16_t start;
    uint16_t length; /* the length of the literal text */
    /* the literal byte before the variable, and the literal byte after it; '\0': there is none */
    char before;
    char after;
    bool is_quoted; /* whether the variable stands in double quotes */
    /* LOG_HEADER: an enum sxe_http_field_id; SXE_HTTP_FIELD_OTHER: look for the name in `bytes` */
    uint8_t field;
};

struct log_format {
    /* true for the format "json", which has no parts: a line is an object, with all members that
     * have a value */
    bool is_object;
    bool is_json;
    unsigned number;
    struct log_part parts[LOG_FORMAT_PARTS];
    char bytes[LOG_FORMAT_BYTES + LOG_FORMAT_SHORT];
};

/* Parse the text, or use the format that has this name: common, combined, json. False: `problem`
 * says what is wrong with the text. */
bool log_format_parse(struct log_format *format, const char *text,
                      char problem[LOG_FORMAT_PROBLEM]);

#endif
