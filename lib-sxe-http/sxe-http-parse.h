/* SPDX-License-Identifier: MIT
 *
 * What: finds the head of an HTTP/1.x request or response in bytes, strictly as RFC 9112 says:
 * where a lenient reading would let two programs see different messages, the message is refused.
 *
 * Place: the server and the client of lib-sxe-http feed it the unread bytes of a connection. Pure:
 * no I/O, no allocation, nothing global but the choice of the scanning routine. docs/http-parser.md
 * lists the refusals, and where other parsers differ.
 *
 * Shape: the head is parsed in place; the results are offsets into the caller's bytes.
 *
 *     GET /a?b HTTP/1.1 CR LF Host: x CR LF ... CR LF CR LF | body
 *     ^method  ^target        ^fields[0]                    ^ returned length
 *
 * The caller keeps the bytes from the message's first one on until the head is whole; it may move
 * them between calls, because everything is an offset. A parser remembers how far it came, so the
 * bytes of a slow sender are not read again.
 *
 *     n > 0   the head is whole and has n bytes          0   more is needed
 *     -1      refused: `refusal` says why, and sxe_http_refusal_status which status answers it
 *
 * Limits: in struct sxe_http_limits, 16 bits each, so a head is less than 64 KiB; 255 fields. A
 * message over a limit is refused as soon as that is certain.
 *
 * Example:
 *     struct sxe_http_field  fields[100];
 *     struct sxe_http_parser parser;
 *     sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, 100, NULL);
 *     int n = sxe_http_parse(&parser, data, length);
 *     if (n > 0 && parser.method == SXE_HTTP_GET) {
 *         const struct sxe_http_field *range = sxe_http_known(&parser, SXE_HTTP_FIELD_RANGE);
 *         if (range != NULL)
 *             serve_part(data + range->value, range->value_length);
 *     }
 */
#ifndef SXE_HTTP_PARSE_H
#define SXE_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The words of the protocol ---- */
/* The methods for which enum sxe_http_method has a value. */
#define SXE_HTTP_METHODS(X) \
    X(GET)                  \
    X(HEAD)                 \
    X(POST)                 \
    X(PUT)                  \
    X(DELETE)               \
    X(CONNECT)              \
    X(OPTIONS)              \
    X(TRACE)                \
    X(PATCH)

/* Well-known fields, which are found while parsing. The letter is the last letter of the name.
 * Length and last letter lead to the name without a search, so no two names of the same length may
 * end with the same letter. */
#define SXE_HTTP_FIELDS(X)                             \
    X(ACCEPT_ENCODING, "Accept-Encoding", 'g')         \
    X(ACCEPT_LANGUAGE, "Accept-Language", 'e')         \
    X(AUTHORIZATION, "Authorization", 'n')             \
    X(CACHE_CONTROL, "Cache-Control", 'l')             \
    X(CONNECTION, "Connection", 'n')                   \
    X(CONTENT_ENCODING, "Content-Encoding", 'g')       \
    X(CONTENT_LENGTH, "Content-Length", 'h')           \
    X(CONTENT_RANGE, "Content-Range", 'e')             \
    X(CONTENT_TYPE, "Content-Type", 'e')               \
    X(COOKIE, "Cookie", 'e')                           \
    X(DATE, "Date", 'e')                               \
    X(ETAG, "ETag", 'g')                               \
    X(EXPECT, "Expect", 't')                           \
    X(HOST, "Host", 't')                               \
    X(IF_MATCH, "If-Match", 'h')                       \
    X(IF_MODIFIED_SINCE, "If-Modified-Since", 'e')     \
    X(IF_NONE_MATCH, "If-None-Match", 'h')             \
    X(IF_RANGE, "If-Range", 'e')                       \
    X(IF_UNMODIFIED_SINCE, "If-Unmodified-Since", 'e') \
    X(LAST_MODIFIED, "Last-Modified", 'd')             \
    X(LOCATION, "Location", 'n')                       \
    X(ORIGIN, "Origin", 'n')                           \
    X(RANGE, "Range", 'e')                             \
    X(SERVER, "Server", 'r')                           \
    X(SET_COOKIE, "Set-Cookie", 'e')                   \
    X(TE, "TE", 'e')                                   \
    X(TRAILER, "Trailer", 'r')                         \
    X(TRANSFER_ENCODING, "Transfer-Encoding", 'g')     \
    X(UPGRADE, "Upgrade", 'e')                         \
    X(USER_AGENT, "User-Agent", 't')

/* Why a message is refused, the status that answers it, and a sentence. */
#define SXE_HTTP_REFUSALS(X)                                                                    \
    X(METHOD_TOO_LONG, 501, "the method is longer than the first line may be")                  \
    X(LINE_TOO_LONG, 414, "the first line is longer than its limit")                            \
    X(HEAD_TOO_LARGE, 431, "the head has more bytes than its limit")                            \
    X(TOO_MANY_FIELDS, 431, "there are more fields than the limit")                             \
    X(BAD_METHOD, 400, "the method is not a token followed by one space")                       \
    X(BAD_TARGET, 400, "the target is not of a form that the method may have")                  \
    X(BAD_VERSION, 400, "what follows the target, or begins the status line, is no version")    \
    X(UNKNOWN_VERSION, 505, "the version is not HTTP/1")                                        \
    X(BAD_STATUS, 400, "the status is not three digits from 100 on")                            \
    X(BARE_CR, 400, "a CR is not followed by LF")                                               \
    X(BARE_LF, 400, "an LF does not follow a CR")                                               \
    X(CONTROL_BYTE, 400, "a value or a reason has a control byte")                              \
    X(FOLDED_LINE, 400, "a line begins with a blank")                                           \
    X(BAD_NAME, 400, "a field's name is not a token followed by a colon")                       \
    X(BLANK_BEFORE_COLON, 400, "there is a blank between a field's name and its colon")         \
    X(NO_HOST, 400, "an HTTP/1.1 request has no Host")                                          \
    X(TWO_HOSTS, 400, "Host is there more than once")                                           \
    X(BAD_HOST, 400, "Host is not a host with a port")                                          \
    X(BAD_LENGTH, 400, "Content-Length is not a number of at most 64 bits")                     \
    X(TWO_LENGTHS, 400, "copies of Content-Length differ")                                      \
    X(LENGTH_AND_CODING, 400, "there are both Content-Length and Transfer-Encoding")            \
    X(CODING_IN_1_0, 400, "HTTP/1.0 has no Transfer-Encoding")                                  \
    X(BAD_CODING, 400, "the transfer codings do not end with chunked, or are malformed")        \
    X(UNKNOWN_CODING, 501, "there is a transfer coding before chunked")                         \
    X(CONNECT_WITH_BODY, 400, "CONNECT has a body, or what some take for one")                  \
    X(BAD_CHUNK_SIZE, 400, "a chunk's size is not hexadecimal digits")                          \
    X(CHUNK_TOO_LARGE, 413, "a chunk's size has more than 64 bits")                             \
    X(BAD_CHUNK_EXTENSION, 400, "a chunk's extension is not ;name or ;name=value")              \
    X(CHUNK_LINE_TOO_LONG, 400, "a chunk's size and extensions are longer than the line limit") \
    X(CHUNK_OVERHEAD, 400, "the extensions are much more than the data")                        \
    X(BAD_CHUNK_END, 400, "a chunk's data does not end with CR LF")
/* The enumerators of the lists above. */
#define SXE_HTTP_ENUM_METHOD(id)               SXE_HTTP_##id,
#define SXE_HTTP_ENUM_FIELD(id, name, last)    SXE_HTTP_FIELD_##id,
#define SXE_HTTP_ENUM_REFUSAL(id, status, why) SXE_HTTP_REFUSED_##id,

enum sxe_http_method { SXE_HTTP_OTHER, SXE_HTTP_METHODS(SXE_HTTP_ENUM_METHOD) };
enum sxe_http_field_id {
    SXE_HTTP_FIELD_OTHER,
    SXE_HTTP_FIELDS(SXE_HTTP_ENUM_FIELD) SXE_HTTP_FIELD_IDS
};
enum sxe_http_refusal {
    SXE_HTTP_NOT_REFUSED,
    SXE_HTTP_REFUSALS(SXE_HTTP_ENUM_REFUSAL) SXE_HTTP_REFUSALS_END
};

enum sxe_http_kind { SXE_HTTP_REQUEST, SXE_HTTP_RESPONSE, SXE_HTTP_TRAILER };

/* The forms of a target (RFC 9112, 3.2). */
enum sxe_http_form {
    SXE_HTTP_FORM_ORIGIN,    /* /path?query */
    SXE_HTTP_FORM_ABSOLUTE,  /* scheme://host:port/path?query */
    SXE_HTTP_FORM_AUTHORITY, /* host:port, only with CONNECT */
    SXE_HTTP_FORM_ASTERISK   /* the asterisk, only with OPTIONS */
};

/* How the end of the body is found (RFC 9112, 6.3). */
enum sxe_http_body {
    SXE_HTTP_BODY_NONE,
    SXE_HTTP_BODY_LENGTH,
    SXE_HTTP_BODY_CHUNKED,
    SXE_HTTP_BODY_UNTIL_CLOSE
};

/* ---- Parsing ---- */

struct sxe_http_limits {
    uint16_t line_max;   /* the most bytes of the first line, its CR LF included */
    uint16_t head_max;   /* the most bytes of the head */
    uint16_t fields_max; /* the most fields; more than 255 means 255 */
};

/* The limits that are used where `limits` is NULL. */
#define SXE_HTTP_LIMITS  \
    {                    \
        8192, 16384, 100 \
    }

struct sxe_http_field {
    uint16_t name;
    uint16_t name_length;
    uint16_t value; /* without the blanks around it */
    uint16_t value_length;
};

struct sxe_http_text {
    uint16_t offset;
    uint16_t length;
};

struct sxe_http_parser {
    /* ro: the caller's array; the first `number` fields are filled, in their order in the head */
    struct sxe_http_field *fields;
    struct sxe_http_limits limits; /* ro */
    uint8_t kind;                  /* ro: enum sxe_http_kind */
    uint8_t state;                 /* private; sxe_http_parser_next clears from here on */
    /* of a request: ro; of a response: rw, set it to the method of the request, because the method
     * (HEAD, CONNECT) can mean that the response has no body */
    uint8_t method;
    uint8_t refusal;      /* ro: enum sxe_http_refusal */
    uint8_t form;         /* ro: the target's, enum sxe_http_form */
    uint8_t body;         /* ro: enum sxe_http_body */
    uint8_t minor;        /* ro: the version is HTTP/1.minor; treat more than 1 as 1 */
    bool keep_alive;      /* ro: the connection may be used again after this message */
    bool expect_continue; /* ro: the sender of the body waits for 100 (RFC 9110, 10.1.1) */
    bool upgrade;         /* ro: a request asks for another protocol; a response begins it */
    uint16_t status;      /* ro */
    uint16_t number;      /* ro: how many fields the head has */
    uint16_t refused_at;  /* ro: the offset of the refused byte */
    bool in_query;        /* private: whether the target has a ? so far */
    struct sxe_http_text method_name; /* ro */
    struct sxe_http_text target;      /* ro */
    struct sxe_http_text reason;      /* ro */
    uint16_t line;                    /* private: where the first line begins */
    uint16_t mark;                    /* private: where the part being read begins */
    uint16_t at;                      /* private: how many bytes were read */
    uint32_t repeated;                /* private: a bit for each known field that came again */
    uint64_t length;           /* ro: the length of the body, if `body` is SXE_HTTP_BODY_LENGTH */
    struct sxe_http_text name; /* private: the name of the field being read */
    /* private: for each known field the index + 1 of the first one; 0: none */
    uint8_t known[SXE_HTTP_FIELD_IDS];
};

/* Prepare for the first message. `fields` has room for `room` fields, and belongs to the caller;
 * limits NULL: SXE_HTTP_LIMITS. With fields NULL the fields of a trailer are checked, but not
 * stored. */
SXE_PUBLIC void sxe_http_parser_init(struct sxe_http_parser *parser, enum sxe_http_kind kind,
                                     struct sxe_http_field *fields, uint16_t room,
                                     const struct sxe_http_limits *limits);

/* Prepare for the next message on the same connection. */
SXE_PUBLIC void sxe_http_parser_next(struct sxe_http_parser *parser);

/* Parse the head at the front of data, see Shape. In every call for a message `data` begins with
 * the message's first byte. Never looks at a byte from `length` on. Once the result is not 0,
 * further calls return the same result until sxe_http_parser_init or sxe_http_parser_next is
 * called. */
SXE_PUBLIC SXE_MUST_USE int sxe_http_parse(struct sxe_http_parser *parser, const char *data,
                                           size_t length);

/* ---- Results of parsing ---- */

/* The first field with a well-known name, or NULL. */
static inline const struct sxe_http_field *
sxe_http_known(const struct sxe_http_parser *parser, enum sxe_http_field_id id)
{
    return parser->known[id] == 0 ? NULL : &parser->fields[parser->known[id] - 1];
}

/* The first field with any name, upper or lower case, or NULL. Unless the name is well-known, this
 * function searches all fields. */
SXE_PUBLIC const struct sxe_http_field *sxe_http_field(const struct sxe_http_parser *parser,
                                                       const char *data, const char *name);

/* The next field with the name of `field`, or NULL. This function searches the fields after it. */
SXE_PUBLIC const struct sxe_http_field *sxe_http_field_next(const struct sxe_http_parser *parser,
                                                            const char *data,
                                                            const struct sxe_http_field *field);

/* The status that answers a refusal (400, 413, 414, 431, 501 or 505), and a sentence about it. */
SXE_PUBLIC unsigned sxe_http_refusal_status(enum sxe_http_refusal refusal);
SXE_PUBLIC const char *sxe_http_refusal_text(enum sxe_http_refusal refusal);

/* The name of a method, or of a field: "GET", "Content-Length"; "" for OTHER. */
SXE_PUBLIC const char *sxe_http_method_name(enum sxe_http_method method);
SXE_PUBLIC const char *sxe_http_field_name(enum sxe_http_field_id id);

#ifdef __cplusplus
}
#endif

#endif
