/* SPDX-License-Identifier: MIT
 *
 * Parsing the format of the access log.
 */
#include "log-format.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "command-line.h"
#include "sxe-http-parse.h"
#include "sxe-util.h"

#define COMMON   "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent"
#define COMBINED COMMON " \"$http_referer\" \"$http_user_agent\""

#define PREFIX    (sizeof("http_") - 1)
#define DEPTH_MAX 16 /* the most brackets of JSON that may be open at a time */

static const struct {
    const char *name;
    enum log_variable variable;
    bool is_number; /* whether the variable may be outside of a string in JSON */
    unsigned texts; /* how many texts of clients the variable consists of */
} variables[] = {
    {"remote_addr", LOG_REMOTE_ADDR, false, 1},
    {"remote_user", LOG_REMOTE_USER, false, 1},
    {"time_local", LOG_TIME_LOCAL, false, 0},
    {"time_iso8601", LOG_TIME_ISO8601, false, 0},
    {"request", LOG_REQUEST, false, 2},
    {"request_method", LOG_REQUEST_METHOD, false, 1},
    {"request_uri", LOG_REQUEST_URI, false, 1},
    {"server_protocol", LOG_SERVER_PROTOCOL, false, 0},
    {"status", LOG_STATUS, true, 0},
    {"body_bytes_sent", LOG_BODY_BYTES_SENT, true, 0},
    {"request_time", LOG_REQUEST_TIME, true, 0},
    {"duration_us", LOG_DURATION_US, true, 0},
    {"host", LOG_HOST, false, 1},
    {"scheme", LOG_SCHEME, false, 0},
    {"http_referer", LOG_HEADER, false, 1},
    {"http_user_agent", LOG_HEADER, false, 1},
    {"request_id", LOG_REQUEST_ID, false, 1},
    {"trace_id", LOG_TRACE_ID, false, 0},
    {"span_id", LOG_SPAN_ID, false, 0},
    {"ssl_protocol", LOG_SSL_PROTOCOL, false, 0},
    {"worker", LOG_WORKER, true, 0},
};

struct reader {
    struct log_format *format;
    const char *at;
    char *problem;
    unsigned used; /* how many bytes of format->bytes are used */
    unsigned texts;
    bool is_quoted;
    bool is_escaped; /* whether the last byte was a backslash in a string of JSON */
    unsigned depth;
    /* for JSON: the brackets that have to be closed, the innermost first */
    char closing[DEPTH_MAX];
};

static bool say_problem(struct reader *reader, const char *format, ...) SXE_PRINTF(2, 3);

/* Write the problem to reader->problem. Always returns false. */
static bool
say_problem(struct reader *reader, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(reader->problem, LOG_FORMAT_PROBLEM, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- Parts ---- */

/* Begin the next part. NULL after a message: there are too many parts. */
static struct log_part *
add_format_part(struct reader *reader, enum log_variable variable)
{
    struct log_format *format = reader->format;
    struct log_part *part = &format->parts[format->number];

    if (format->number == LOG_FORMAT_PARTS) {
        (void)say_problem(reader, "it has more than %u variables and texts between them",
                          LOG_FORMAT_PARTS);
        return NULL;
    }
    format->number++;
    *part = (struct log_part){
        .variable = variable, .start = (uint16_t)reader->used, .is_quoted = reader->is_quoted};
    return part;
}

/* ---- Bytes between variables ---- */

static bool
open_format_bracket(struct reader *reader, char closing)
{
    if (reader->depth == DEPTH_MAX)
        return say_problem(reader, "it is JSON with more than %u brackets in each other",
                           DEPTH_MAX);
    reader->closing[reader->depth++] = closing;
    return true;
}

static bool
close_bracket(struct reader *reader, char byte)
{
    if (reader->depth == 0 || reader->closing[--reader->depth] != byte)
        return say_problem(reader,
                           "it begins with {, so it is JSON, but its brackets do not match");
    return true;
}

/* Follow the strings and brackets of JSON, byte by byte, to know where a variable stands. */
static bool
follow_json(struct reader *reader, char byte)
{
    if (reader->is_escaped)
        reader->is_escaped = false;
    else if (byte == '"')
        reader->is_quoted = !reader->is_quoted;
    else if (reader->is_quoted)
        reader->is_escaped = byte == '\\';
    else if (byte == '{' || byte == '[')
        return open_format_bracket(reader, byte == '{' ? '}' : ']');
    else if (byte == '}' || byte == ']')
        return close_bracket(reader, byte);
    return true;
}

static bool
read_byte(struct reader *reader)
{
    struct log_format *format = reader->format;
    const unsigned char byte = (unsigned char)*reader->at;
    struct log_part *part = format->number == 0 ? NULL : &format->parts[format->number - 1];

    if ((byte < ' ' && (byte != '\t' || (format->is_json && reader->is_quoted))) || byte == 0x7f)
        return say_problem(reader, "it has a control byte, which a line of the log must not have");
    reader->at += byte == '$' ? 2 : 1; /* "$$" stands for a single $ */
    if (part != NULL && part->variable != LOG_LITERAL)
        part->after = (char)byte;
    if (part == NULL || part->variable != LOG_LITERAL)
        part = add_format_part(reader, LOG_LITERAL);
    if (part == NULL)
        return false;
    part->length++;
    format->bytes[reader->used++] = (char)byte;
    if (format->is_json)
        return follow_json(reader, (char)byte);
    reader->is_quoted ^= byte == '"';
    return true;
}

/* ---- Variables ---- */

static bool
refuse_variable_name(struct reader *reader, const char *name, unsigned length)
{
    const char *nearest = NULL;
    unsigned fewest = 0;

    for (unsigned i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const bool is_header = variables[i].variable == LOG_HEADER;

        if (command_line_is_nearer(name, length, variables[i].name, &fewest) ||
            (is_header &&
             command_line_is_nearer(name, length, variables[i].name + PREFIX, &fewest)))
            nearest = variables[i].name;
    }
    if (nearest == NULL)
        return say_problem(reader, "$%.*s is no variable; the man page lists them", (int)length,
                           name);
    return say_problem(reader, "$%.*s is no variable; did you mean $%s?", (int)length, name,
                       nearest);
}

/* Find the row of `variables` with this name; -1: there is none. */
static int
row_of_variable(const char *name, unsigned length)
{
    for (unsigned i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (strlen(variables[i].name) == length && memcmp(variables[i].name, name, length) == 0)
            return (int)i;
    }
    return -1;
}

/* Store the name of a field. The variable has _ where the field's name has -. The parser of
 * requests notes where a well-known field is, so that no line has to search for it. */
static void
keep_format_field(struct reader *reader, struct log_part *part, const char *name, unsigned length)
{
    char *to = reader->format->bytes + reader->used;

    for (unsigned i = 0; i < length; i++)
        to[i] = name[i] == '_' ? '-' : name[i];
    to[length] = '\0';
    reader->used += length + 1;
    for (unsigned id = SXE_HTTP_FIELD_OTHER + 1; id < SXE_HTTP_FIELD_IDS; id++) {
        if (strcasecmp(sxe_http_field_name(id), to) == 0)
            part->field = (uint8_t)id;
    }
}

static bool
take_variable(struct reader *reader, const char *name, unsigned length)
{
    const bool is_header = length > PREFIX && memcmp(name, "http_", PREFIX) == 0;
    const int row = row_of_variable(name, length);
    const struct log_format *format = reader->format;
    const struct log_part *last = format->number == 0 ? NULL : &format->parts[format->number - 1];
    struct log_part *part;

    if (row < 0 && !is_header)
        return refuse_variable_name(reader, name, length);
    if (format->is_json && !reader->is_quoted && (is_header || !variables[row].is_number))
        return say_problem(reader,
                           "it begins with {, so it is JSON, where $%.*s must stand in double "
                           "quotes",
                           (int)length, name);
    part = add_format_part(reader, is_header ? LOG_HEADER : variables[row].variable);
    if (part == NULL)
        return false;
    if (last != NULL && last->variable == LOG_LITERAL)
        part->before = format->bytes[last->start + last->length - 1];
    if (is_header)
        keep_format_field(reader, part, name + PREFIX, length - (unsigned)PREFIX);
    reader->texts += is_header ? 1 : variables[row].texts;
    return reader->texts <= LOG_FORMAT_TEXTS ||
           say_problem(reader, "it has more than %u variables that clients choose",
                       LOG_FORMAT_TEXTS);
}

/* Read $name or ${name}. */
static bool
read_format_variable(struct reader *reader)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const bool has_braces = reader->at[1] == '{';
    const char *name = reader->at + 1 + has_braces;
    const unsigned length = (unsigned)strspn(name, letters);

    if (length == 0 || (has_braces && name[length] != '}'))
        return say_problem(reader,
                           "a $ begins a variable, $name or ${name}; write $$ for the dollar");
    reader->at = name + length + has_braces;
    return take_variable(reader, name, length);
}

/* ---- The whole text ---- */

static bool
read_format_text(struct reader *reader)
{
    while (*reader->at != '\0') {
        const bool is_variable = *reader->at == '$' && reader->at[1] != '$';

        if (reader->format->is_json && reader->depth == 0 && reader->used > 0)
            return say_problem(reader,
                               "it begins with {, so it is JSON, but goes on after the last }");
        if (!(is_variable ? read_format_variable(reader) : read_byte(reader)))
            return false;
    }
    if (reader->is_quoted)
        return say_problem(reader, "its last double quote has no second one");
    return reader->depth == 0 ||
           say_problem(reader, "it begins with {, so it is JSON, but it lacks a %c at its end",
                       reader->closing[reader->depth - 1]);
}

static const char *
text_of_variable(const char *name)
{
    if (strcmp(name, "common") == 0)
        return COMMON;
    return strcmp(name, "combined") == 0 ? COMBINED : name;
}

bool
log_format_parse(struct log_format *format, const char *text, char problem[LOG_FORMAT_PROBLEM])
{
    struct reader reader = {.format = format, .at = text_of_variable(text), .problem = problem};

    *format = (struct log_format){.is_object = strcmp(text, "json") == 0, .is_json = *text == '{'};
    if (format->is_object)
        return true;
    if (strchr(reader.at, '$') == NULL)
        return say_problem(&reader,
                           "it is neither common, combined nor json, and has no variable such "
                           "as $status");
    if (strlen(reader.at) >= LOG_FORMAT_BYTES)
        return say_problem(&reader, "it has more than %u bytes", LOG_FORMAT_BYTES - 1);
    return read_format_text(&reader);
}
