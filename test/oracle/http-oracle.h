/* SPDX-License-Identifier: MIT
 *
 * What: one message, read by us and by another parser. http_oracle_compare() says what differs, or
 * NULL: nothing, or what one of the two tables here explains. docs/http-parser.md has them too.
 * Place: included by test-http-oracle.c and fuzz-http-oracle.c.
 */
#ifndef HTTP_ORACLE_H
#define HTTP_ORACLE_H

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http-peers.h"
#include "sxe-http-chunk.h"

/* Requests that we refuse and another parser may take, and the section that lets us. */
#define HTTP_ORACLE_STRICTER(X)                                                        \
    X(METHOD_TOO_LONG, "9112 3: a limit of ours")                                      \
    X(LINE_TOO_LONG, "9112 3: a limit of ours")                                        \
    X(HEAD_TOO_LARGE, "9110 5.4: a limit of ours")                                     \
    X(TOO_MANY_FIELDS, "9110 5.4: a limit of ours")                                    \
    X(BAD_METHOD, "9112 2.2: before a request only empty lines, and no bare LF")       \
    X(BAD_TARGET, "9112 3.2: the grammar of each form, and which methods may have it") \
    X(BAD_VERSION, "9112 3: one space before a version, nothing after it")             \
    X(UNKNOWN_VERSION, "9112 2.3: this is not the syntax of HTTP/0.9 or HTTP/2")       \
    X(BAD_STATUS, "9112 4: three digits, one space")                                   \
    X(BARE_CR, "9112 2.2: a bare CR is invalid")                                       \
    X(BARE_LF, "9112 2.2: a recipient MAY take a bare LF; we do not")                  \
    X(CONTROL_BYTE, "9110 5.5: CR, LF and NUL are dangerous, other controls invalid")  \
    X(FOLDED_LINE, "9112 5.2: a server MUST refuse obs-fold, or replace it")           \
    X(BAD_NAME, "9110 5.1: a name is a token")                                         \
    X(BLANK_BEFORE_COLON, "9112 5.1: MUST be refused")                                 \
    X(NO_HOST, "9112 3.2: MUST be refused")                                            \
    X(TWO_HOSTS, "9112 3.2: MUST be refused")                                          \
    X(BAD_HOST, "9112 3.2: MUST be refused")                                           \
    X(BAD_LENGTH, "9112 6.3: MUST be refused")                                         \
    X(TWO_LENGTHS, "9112 6.3: MUST be refused")                                        \
    X(LENGTH_AND_CODING, "9112 6.3: ought to be handled as an error")                  \
    X(CODING_IN_1_0, "9112 6.1: MUST be treated as faulty framing")                    \
    X(BAD_CODING, "9112 6.3: MUST be refused, in a request")                           \
    X(UNKNOWN_CODING, "9112 6.1: SHOULD be answered with 501")                         \
    X(CONNECT_WITH_BODY, "9110 9.3.6: a CONNECT request has no content")               \
    X(BAD_CHUNK_SIZE, "9112 7.1: a size is hexadecimal digits")                        \
    X(CHUNK_TOO_LARGE, "9112 7.1: MUST prevent overflows")                             \
    X(BAD_CHUNK_EXTENSION, "9112 7.1.1: the grammar of an extension")                  \
    X(CHUNK_LINE_TOO_LONG, "9112 7.1.1: ought to limit extensions")                    \
    X(CHUNK_OVERHEAD, "9112 7.1.1: ought to limit extensions")                         \
    X(BAD_CHUNK_END, "9112 7.1: data ends with CR LF")

#define HTTP_ORACLE_SECTION(id, section) [SXE_HTTP_REFUSED_##id] = section,
static const char *const http_oracle_stricter[SXE_HTTP_REFUSALS_END] = {
    HTTP_ORACLE_STRICTER(HTTP_ORACLE_SECTION)};

enum { HTTP_ORACLE_BODY_MAX = 65536, HTTP_ORACLE_FIELDS = 255 };

/* Our parser's finding. */
struct http_oracle_ours {
    struct sxe_http_parser parser;
    struct sxe_http_field fields[HTTP_ORACLE_FIELDS];
    enum sxe_http_refusal refusal;
    bool head;
    bool complete;
    size_t body_length;
    char body[HTTP_ORACLE_BODY_MAX];
};

static inline void
http_oracle_read_chunks(struct http_oracle_ours *ours, const char *data, size_t length)
{
    struct sxe_http_chunks chunks;
    struct sxe_span span;
    ssize_t n = 0;

    sxe_http_chunks_init(&chunks, NULL, 0, NULL);
    while (!chunks.done && (n = sxe_http_chunks_read(&chunks, data, length, &span)) > 0) {
        memcpy(ours->body + ours->body_length, span.base, span.length);
        ours->body_length += span.length;
        data += n;
        length -= (size_t)n;
    }
    ours->complete = chunks.done;
    ours->refusal = chunks.refusal;
}

static inline void
http_oracle_read(struct http_oracle_ours *ours, bool is_response, const char *data, size_t length)
{
    struct sxe_http_parser *parser = &ours->parser;
    int n;

    ours->head = ours->complete = false;
    ours->body_length = 0;
    sxe_http_parser_init(parser, is_response ? SXE_HTTP_RESPONSE : SXE_HTTP_REQUEST, ours->fields,
                         HTTP_ORACLE_FIELDS, NULL);
    n = sxe_http_parse(parser, data, length);
    ours->refusal = parser->refusal;
    if (n <= 0)
        return;
    ours->head = true;
    data += n;
    length -= (size_t)n;
    if (parser->body == SXE_HTTP_BODY_CHUNKED) {
        http_oracle_read_chunks(ours, data, length);
        return;
    }
    ours->complete = parser->body == SXE_HTTP_BODY_NONE;
    if (parser->body == SXE_HTTP_BODY_LENGTH && parser->length <= length) {
        ours->complete = true;
        length = (size_t)parser->length;
    }
    ours->body_length = ours->complete && parser->body == SXE_HTTP_BODY_NONE ? 0 : length;
    memcpy(ours->body, data, ours->body_length);
}

/* The span without the blanks at its end, which peers may keep. */
static inline size_t
http_oracle_trimmed(const struct http_peer_span *span)
{
    size_t length = span->length;

    while (length > 0 && (span->base[length - 1] == ' ' || span->base[length - 1] == '\t'))
        length--;
    return length;
}

static inline const char *
http_oracle_compare_heads(const struct http_oracle_ours *ours,
                          const struct http_peer_message *theirs, const char *data)
{
    const struct sxe_http_parser *parser = &ours->parser;

    if (theirs->target.length != parser->target.length ||
        (parser->target.length > 0 &&
         memcmp(theirs->target.base, data + parser->target.offset, theirs->target.length) != 0))
        return "the targets differ";
    if (theirs->minor != parser->minor || theirs->status != parser->status)
        return "the versions or statuses differ";
    /* The peer counts the fields of a trailer, too. */
    if (theirs->fields < parser->number)
        return "the numbers of fields differ";
    for (unsigned i = 0; i < parser->number; i++) {
        const struct sxe_http_field *field = &parser->fields[i];
        const struct http_peer_span *name = &theirs->names[i];
        const struct http_peer_span *value = &theirs->field_values[i];

        if (name->length != field->name_length ||
            memcmp(name->base, data + field->name, name->length) != 0)
            return "the names of fields differ";
        if (http_oracle_trimmed(value) != field->value_length ||
            (field->value_length > 0 &&
             memcmp(value->base, data + field->value, field->value_length) != 0))
            return "the values of fields differ";
    }
    return NULL;
}

/* ---- Bytes that we accept, and that another parser refuses or reads otherwise ---- */

static inline bool
http_oracle_has_other_method(const struct http_oracle_ours *ours, const char *data)
{
    (void)data;
    return ours->parser.method == SXE_HTTP_OTHER;
}

static inline bool
http_oracle_has_authority(const struct http_oracle_ours *ours, const char *data)
{
    (void)data;
    return ours->parser.form == SXE_HTTP_FORM_ABSOLUTE ||
           ours->parser.form == SXE_HTTP_FORM_AUTHORITY;
}

static inline bool
http_oracle_is_later_version(const struct http_oracle_ours *ours, const char *data)
{
    (void)data;
    return ours->parser.minor > 1;
}

static inline bool
http_oracle_has_two_lengths(const struct http_oracle_ours *ours, const char *data)
{
    const struct sxe_http_field *field =
        sxe_http_known(&ours->parser, SXE_HTTP_FIELD_CONTENT_LENGTH);

    return field != NULL && sxe_http_field_next(&ours->parser, data, field) != NULL;
}

static inline bool
http_oracle_is_huge(const struct http_oracle_ours *ours, const char *data)
{
    (void)data;
    return ours->parser.length / 10 > (UINT64_MAX - 10) / 10;
}

static inline bool
http_oracle_is_chunked(const struct http_oracle_ours *ours, const char *data)
{
    (void)data;
    return ours->parser.body == SXE_HTTP_BODY_CHUNKED;
}

/* Whether this response has no body, whatever its fields say. */
static inline bool
http_oracle_is_bodiless(const struct http_oracle_ours *ours, const char *data)
{
    const struct sxe_http_parser *parser = &ours->parser;

    (void)data;
    return parser->kind == SXE_HTTP_RESPONSE && parser->body == SXE_HTTP_BODY_NONE &&
           (sxe_http_known(parser, SXE_HTTP_FIELD_CONTENT_LENGTH) != NULL ||
            sxe_http_known(parser, SXE_HTTP_FIELD_TRANSFER_ENCODING) != NULL);
}

/* Whether a field has a name that begins with Transfer-Encoding and is longer. */
static inline bool
http_oracle_has_longer_name(const struct http_oracle_ours *ours, const char *data)
{
    static const char name[] = "transfer-encoding";

    for (unsigned i = 0; i < ours->parser.number; i++) {
        if (ours->fields[i].name_length >= sizeof(name) &&
            strncasecmp(data + ours->fields[i].name, name, sizeof(name) - 1) == 0)
            return true;
    }
    return false;
}

/* Whether a field Connection has more than one element, empty ones included. */
static inline bool
http_oracle_has_options(const struct http_oracle_ours *ours, const char *data)
{
    for (unsigned i = 0; i < ours->parser.number; i++) {
        const struct sxe_http_field *field = &ours->fields[i];

        if (field->name_length == 10 && strncasecmp(data + field->name, "connection", 10) == 0 &&
            memchr(data + field->value, ',', field->value_length) != NULL)
            return true;
    }
    return false;
}

/* Whether a tab is in, or after, a value that says where the message or the connection ends. */
static inline bool
http_oracle_has_tab(const struct http_oracle_ours *ours, const char *data)
{
    static const char *const names[] = {"transfer-encoding", "content-length", "connection"};

    for (unsigned i = 0; i < ours->parser.number; i++) {
        const struct sxe_http_field *field = &ours->fields[i];
        const char *value = data + field->value;
        size_t length = strcspn(value, "\r");

        for (unsigned j = 0; j < sizeof(names) / sizeof(*names); j++) {
            if (strncasecmp(data + field->name, names[j], field->name_length) == 0 &&
                memchr(value, '\t', length) != NULL)
                return true;
        }
    }
    return false;
}

struct http_oracle_difference {
    const char *peer; /* NULL: both */
    const char *why;  /* the peer's error; NULL: any error, or the peer accepts the message and
                       * reads it otherwise */
    bool (*is_there)(const struct http_oracle_ours *ours, const char *data);
    const char *section;
    const char *example;
};

/* clang-format off: it would break strings, which are easier to read whole. */
#define GET     "GET / HTTP/1.1\r\nHost: a\r\n"
#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
static const struct http_oracle_difference http_oracle_differences[] = {
    {NULL, "HPE_INVALID_METHOD", http_oracle_has_other_method, "9110 9.1: any token is a method",
     "DRINK / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"llhttp", "HPE_INVALID_VERSION", http_oracle_has_other_method,
     "9110 9.1: any token is a method", "PRI / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {NULL, "HPE_INVALID_URL", http_oracle_has_authority,
     "3986 3.1: a scheme may have digits and +-. after its first letter",
     "GET a1://b/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"llhttp", "HPE_INVALID_VERSION", http_oracle_is_later_version,
     "9110 2.5: a higher minor version is read as the highest known",
     "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
    {NULL, "HPE_UNEXPECTED_CONTENT_LENGTH", http_oracle_has_two_lengths,
     "9112 6.3: copies of Content-Length that agree may be taken",
     GET "Content-Length: 0\r\nContent-Length: 0\r\n\r\n"},
    {"http-parser", "HPE_INVALID_CONTENT_LENGTH", http_oracle_is_huge,
     "9110 8.6: a length has no limit", GET "Content-Length: 18446744073709551615\r\n\r\n"},
    {"llhttp", "Invalid character in chunk extensions quoted value", http_oracle_is_chunked,
     "9110 5.6.4: a quoted string may have escapes", CHUNKED "1;a=\"\\\"\"\r\nx\r\n0\r\n\r\n"},
    {"llhttp", "Invalid character in chunk extensions quote value", http_oracle_is_chunked,
     "9112 7.1.1: any number of extensions, and blanks around ; and =",
     CHUNKED "1;a=\"b\" ;c\r\nx\r\n0\r\n\r\n"},
    {"llhttp", "Invalid character in chunk extensions", http_oracle_is_chunked,
     "9112 7.1.1: any number of extensions, and blanks around ; and =",
     CHUNKED "1; a\r\nx\r\n0\r\n\r\n"},
    {"llhttp", "Invalid character in chunk extensions name", http_oracle_is_chunked,
     "9112 7.1.1: any number of extensions, and blanks around ; and =",
     CHUNKED "1;a =b\r\nx\r\n0\r\n\r\n"},
    {"llhttp", "Invalid character in chunk extensions value", http_oracle_is_chunked,
     "9112 7.1.1: any number of extensions, and blanks around ; and =",
     CHUNKED "1;a= b\r\nx\r\n0\r\n\r\n"},
    {"llhttp", "HPE_INVALID_CHUNK_SIZE", http_oracle_is_chunked,
     "9112 7.1.1: any number of extensions, and blanks around ; and =",
     CHUNKED "1;a=b;c\r\nx\r\n0\r\n\r\n"},
    {"http-parser", "HPE_INVALID_CHUNK_SIZE", http_oracle_is_chunked,
     "9112 7.1.1: any number of extensions, and blanks around ; and =",
     CHUNKED "1\t;a\r\nx\r\n0\r\n\r\n"},
    {NULL, "HPE_INVALID_CONTENT_LENGTH", http_oracle_is_chunked,
     "9110 6.5.1: framing is not taken from a trailer", CHUNKED "0\r\nContent-Length: x\r\n\r\n"},
    {NULL, "HPE_UNEXPECTED_CONTENT_LENGTH", http_oracle_is_chunked,
     "9110 6.5.1: framing is not taken from a trailer",
     CHUNKED "0\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"},
    {NULL, NULL, http_oracle_has_tab, "9110 5.6.3: a tab is as good a blank as a space is",
     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"},
    {"llhttp", NULL, http_oracle_has_tab, "9110 5.6.3: a tab is as good a blank as a space is",
     GET "Connection: close\t,\r\n\r\n"},
    {"llhttp", "HPE_INVALID_TRANSFER_ENCODING", http_oracle_is_chunked,
     "9110 6.5.1: framing is not taken from a trailer",
     CHUNKED "0\r\nTransfer-Encoding: x\r\n\r\n"},
    {NULL, NULL, http_oracle_is_bodiless,
     "9112 6.3: 1xx, 204 and 304 have no body, whatever their fields say",
     "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"http-parser", NULL, http_oracle_has_longer_name,
     "9110 5.1: Transfer-Encoding9 is not Transfer-Encoding",
     GET "Transfer-Encoding9: chunked\r\n\r\n"},
    {"http-parser", NULL, http_oracle_has_options,
     "9110 7.6.1: close counts wherever in a list it stands", GET "Connection: ,close\r\n\r\n"},
};
#undef GET
#undef CHUNKED
/* clang-format on */

enum {
    HTTP_ORACLE_DIFFERENCES = sizeof(http_oracle_differences) / sizeof(*http_oracle_differences)
};

/* The section that explains a difference, or NULL. */
static inline const char *
http_oracle_explain(const struct http_oracle_ours *ours, const struct http_peer *peer,
                    const struct http_peer_message *theirs, const char *data)
{
    for (size_t i = 0; i < HTTP_ORACLE_DIFFERENCES; i++) {
        const struct http_oracle_difference *one = &http_oracle_differences[i];

        if ((one->peer == NULL || strcmp(one->peer, peer->name) == 0) &&
            (one->why == NULL || (theirs->refused && strcmp(one->why, theirs->why) == 0)) &&
            one->is_there(ours, data))
            return one->section;
    }
    return NULL;
}

/* ---- The comparison ---- */

static inline const char *
http_oracle_compare_bodies(const struct http_oracle_ours *ours,
                           const struct http_peer_message *theirs)
{
    if (ours->body_length != theirs->body_length ||
        memcmp(ours->body, theirs->body, ours->body_length) != 0)
        return "the bodies differ";
    if (ours->complete != theirs->complete)
        return "the message is whole for one of us";
    if (ours->parser.keep_alive != theirs->keep_alive)
        return "the connection stays for one of us";
    return NULL;
}

/* Return the difference, or NULL. We may refuse a body that is not whole later than the peer
 * does. */
static inline const char *
http_oracle_difference(const struct http_oracle_ours *ours, const struct http_peer_message *theirs,
                       const char *data)
{
    const char *difference;

    if (ours->refusal != SXE_HTTP_NOT_REFUSED)
        return theirs->refused ? NULL : "we refuse";
    if (theirs->refused)
        return ours->complete || (ours->head && !theirs->head) ? theirs->why : NULL;
    if (ours->head != theirs->head)
        return "the head is whole for one of us";
    if (!ours->head)
        return NULL;
    difference = http_oracle_compare_heads(ours, theirs, data);
    return difference != NULL ? difference : http_oracle_compare_bodies(ours, theirs);
}

/* Return the difference that is not explained, or NULL. `section` is the section that explains a
 * difference, or NULL. */
static inline const char *
http_oracle_compare(const struct http_peer *peer, bool is_response, const char *data, size_t length,
                    const char **section)
{
    static struct http_oracle_ours ours;
    static struct http_peer_message theirs;
    const char *difference;

    *section = NULL;
    http_oracle_read(&ours, is_response, data, length);
    peer->parse(is_response, data, length, &theirs);
    difference = http_oracle_difference(&ours, &theirs, data);
    if (difference == NULL)
        return NULL;
    *section = ours.refusal != SXE_HTTP_NOT_REFUSED
                   ? http_oracle_stricter[ours.refusal]
                   : http_oracle_explain(&ours, peer, &theirs, data);
    return *section == NULL ? difference : NULL;
}

#endif
