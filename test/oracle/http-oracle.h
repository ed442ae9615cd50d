/* SPDX-License-Identifier: MIT
 *
 * What: one message, read by us and by another parser: http_oracle_compare() says what differs, or
 * NULL: nothing, or what stands in one of the two tables here. docs/http-parser.md shows them.
 * Place: included by test-http-oracle.c and fuzz-http-oracle.c.
 */
#ifndef HTTP_ORACLE_H
#define HTTP_ORACLE_H

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http-peers.h"
#include "sxe-http-chunk.h"

/* What we refuse and another parser may take, and the section that says we may. */
#define HTTP_ORACLE_STRICTER(X)                                                                    \
    X(METHOD_TOO_LONG, "9112 3: a limit of ours")                                                  \
    X(LINE_TOO_LONG, "9112 3: a limit of ours")                                                    \
    X(HEAD_TOO_LARGE, "9110 5.4: a limit of ours")                                                 \
    X(TOO_MANY_FIELDS, "9110 5.4: a limit of ours")                                                \
    X(BAD_METHOD, "9112 2.2: more than one empty line, or one that is no CR LF, before a request") \
    X(BAD_TARGET, "9112 3.2: each form's grammar, and which methods may have it")                  \
    X(BAD_VERSION, "9112 2.3, 3: one space before a version, nothing behind it")                   \
    X(UNKNOWN_VERSION, "9112 2.3: of HTTP/0.9 and 2.0 this is not the syntax")                     \
    X(BAD_STATUS, "9112 4: three digits, one space")                                               \
    X(BARE_CR, "9112 2.2: a bare CR is invalid")                                                   \
    X(BARE_LF, "9112 2.2: a recipient MAY take a bare LF; we do not")                              \
    X(CONTROL_BYTE, "9110 5.5: CR, LF and NUL are dangerous, other controls invalid")              \
    X(FOLDED_LINE, "9112 5.2: a server MUST refuse obs-fold, or replace it")                       \
    X(BAD_NAME, "9110 5.1: a name is a token")                                                     \
    X(BLANK_BEFORE_COLON, "9112 5.1: MUST be refused")                                             \
    X(NO_HOST, "9112 3.2: MUST be refused")                                                        \
    X(TWO_HOSTS, "9112 3.2: MUST be refused")                                                      \
    X(BAD_HOST, "9112 3.2: MUST be refused")                                                       \
    X(BAD_LENGTH, "9112 6.3: MUST be refused")                                                     \
    X(TWO_LENGTHS, "9112 6.3: MUST be refused")                                                    \
    X(LENGTH_AND_CODING, "9112 6.3: ought to be handled as an error")                              \
    X(CODING_IN_1_0, "9112 6.1: MUST be treated as faulty framing")                                \
    X(BAD_CODING, "9112 6.3: MUST be refused, in a request")                                       \
    X(UNKNOWN_CODING, "9112 6.1: SHOULD be answered with 501")                                     \
    X(CONNECT_WITH_BODY, "9110 9.3.6: a CONNECT request has no content")                           \
    X(BAD_CHUNK_SIZE, "9112 7.1: a size is hexadecimal digits")                                    \
    X(CHUNK_TOO_LARGE, "9112 7.1: MUST prevent overflows")                                         \
    X(BAD_CHUNK_EXTENSION, "9112 7.1.1: the grammar of an extension")                              \
    X(CHUNK_LINE_TOO_LONG, "9112 7.1.1: ought to limit extensions")                                \
    X(CHUNK_OVERHEAD, "9112 7.1.1: ought to limit extensions")                                     \
    X(BAD_CHUNK_END, "9112 7.1: data ends with CR LF")

/* What we take and another parser refuses: the words of its error, and the section. */
struct http_oracle_laxer {
    const char *peer; /* NULL: either */
    const char *why;
    const char *section;
};

static const struct http_oracle_laxer http_oracle_laxer[] = {
    {NULL, "HPE_INVALID_METHOD", "9110 9.1: any token is a method; they know a list"},
    {NULL, "HPE_INVALID_URL", "3986 3.1: a scheme may have digits and +-. behind its first letter"},
    {NULL, "HPE_UNEXPECTED_CONTENT_LENGTH", "9112 6.3: copies that agree may be taken"},
    {"http-parser", "HPE_INVALID_CONTENT_LENGTH", "9110 8.6: any number; it stops near 2^64"},
    {"llhttp", "Invalid character in chunk extensions quote value", "9110 5.6.4: obs-text"},
    {"llhttp", "Invalid character in chunk extensions quoted value", "9110 5.6.4: obs-text"},
    {"llhttp", "Invalid character in chunk extensions", "9112 7.1.1: BWS"},
    {"llhttp", "Invalid character in chunk extensions name", "9112 7.1.1: BWS"},
    {"llhttp", "Invalid character in chunk extensions value", "9112 7.1.1: BWS"},
    {NULL, "HPE_INVALID_CHUNK_SIZE", "9112 7.1.1: BWS, and more than one extension"},
    {NULL, "HPE_INVALID_TRANSFER_ENCODING", "9110 6.5.1: framing is not taken from a trailer"},
    {NULL, "HPE_INVALID_CONTENT_LENGTH", "9110 6.5.1: framing is not taken from a trailer"},
    {"llhttp", "HPE_INVALID_VERSION", "9110 2.5: a higher minor version is taken as one's own"},
};

#define HTTP_ORACLE_SECTION(id, section) [SXE_HTTP_REFUSED_##id] = section,
static const char *const http_oracle_stricter[SXE_HTTP_REFUSALS_END] = {
    HTTP_ORACLE_STRICTER(HTTP_ORACLE_SECTION)};

enum { HTTP_ORACLE_BODY_MAX = 65536, HTTP_ORACLE_FIELDS = 255 };

/* What we found. */
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

/* Without the blanks behind it, which peers may keep. */
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
    /* Fields of a trailer are theirs too. */
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

static inline const char *
http_oracle_laxer_section(const struct http_peer *peer, const struct http_peer_message *theirs)
{
    for (size_t i = 0; i < sizeof(http_oracle_laxer) / sizeof(http_oracle_laxer[0]); i++) {
        const struct http_oracle_laxer *laxer = &http_oracle_laxer[i];
        if (strcmp(laxer->why, theirs->why) == 0 &&
            (laxer->peer == NULL || strcmp(laxer->peer, peer->name) == 0))
            return laxer->section;
    }
    return NULL;
}

/* Whether a field's name begins with one that frames, and goes on: http-parser takes that for the
 * shorter one. */
static inline bool
http_oracle_has_longer_name(const struct http_oracle_ours *ours, const char *data)
{
    static const char *const names[] = {"transfer-encoding", "content-length", "connection",
                                        "proxy-connection", "upgrade"};

    for (unsigned i = 0; i < ours->parser.number; i++) {
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            size_t length = strlen(names[j]);
            if (ours->fields[i].name_length > length &&
                strncasecmp(data + ours->fields[i].name, names[j], length) == 0)
                return true;
        }
    }
    return false;
}

/* Whether Connection is a list: behind an empty element, or one that begins as a word it looks for,
 * http-parser misses the next; llhttp lets keep-alive win. */
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

/* Whether there is a tab among the blanks behind a value. */
static inline bool
http_oracle_has_tab(const char *blanks)
{
    while (*blanks == ' ')
        blanks++;
    return *blanks == '\t';
}

/* What of all that we took is known to be read otherwise; the section, or NULL. */
static inline const char *
http_oracle_known(const struct http_oracle_ours *ours, const struct http_peer *peer,
                  const char *data)
{
    const struct sxe_http_parser *parser = &ours->parser;
    bool is_framed = sxe_http_known(parser, SXE_HTTP_FIELD_CONTENT_LENGTH) != NULL ||
                     sxe_http_known(parser, SXE_HTTP_FIELD_TRANSFER_ENCODING) != NULL;
    const struct sxe_http_field *coding;

    if (parser->kind == SXE_HTTP_RESPONSE && parser->body == SXE_HTTP_BODY_NONE && is_framed)
        return "9112 6.3: 1xx, 204 and 304 have no body, whatever their fields say";
    if (strcmp(peer->name, "http-parser") == 0 && http_oracle_has_longer_name(ours, data))
        return "9110 5.1: Transfer-Encoding9 is not Transfer-Encoding";
    if (http_oracle_has_options(ours, data))
        return "9112 9.3: close counts wherever in a list it stands";
    coding = sxe_http_known(parser, SXE_HTTP_FIELD_TRANSFER_ENCODING);
    if (coding != NULL && http_oracle_has_tab(data + coding->value + coding->value_length))
        return "9110 5.5: blanks behind a value are none of it, tabs too";
    return NULL;
}

static inline const char *
http_oracle_compare_rest(const struct http_oracle_ours *ours,
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

/* What differs and stands in no table, or NULL; `explained` is set to the section, if there is one
 * for what differs. */
static inline const char *
http_oracle_compare(const struct http_peer *peer, bool is_response, const char *data, size_t length,
                    const char **explained)
{
    static struct http_oracle_ours ours;
    static struct http_peer_message theirs;
    const char *difference;

    *explained = NULL;
    http_oracle_read(&ours, is_response, data, length);
    peer->parse(is_response, data, length, &theirs);
    if (ours.refusal != SXE_HTTP_NOT_REFUSED) {
        *explained = theirs.refused ? NULL : http_oracle_stricter[ours.refusal];
        return theirs.refused || *explained != NULL ? NULL : "we refuse";
    }
    *explained = ours.head ? http_oracle_known(&ours, peer, data) : NULL;
    if (*explained != NULL)
        return NULL;
    if (theirs.refused && !ours.complete)
        return NULL; /* we may yet refuse it: theirs is the earlier answer */
    if (theirs.refused) {
        *explained = http_oracle_laxer_section(peer, &theirs);
        return *explained != NULL ? NULL : theirs.why;
    }
    if (ours.head != theirs.head)
        return "the head is whole for one of us";
    difference = ours.head ? http_oracle_compare_heads(&ours, &theirs, data) : NULL;
    if (difference != NULL || !ours.head)
        return difference;
    return http_oracle_compare_rest(&ours, &theirs);
}

#endif
