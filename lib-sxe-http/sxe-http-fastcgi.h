/* SPDX-License-Identifier: MIT
 *
 * What: the records of FastCGI 1.0, read in place and written: for a server that answers requests,
 * and for a client that sends them.
 *
 * Place: for a server that takes requests from nginx or lighttpd, and for a client of php-fpm.
 * Pure: bytes in, spans out; nothing is allocated.
 *
 * Shape: a record is a head of 8 bytes, content, and padding.
 *
 *     version | type | id, 2 bytes | length of the content, 2 bytes | length of the padding | 0
 *
 *     | head | con       tent | padding | head | ...
 *     |--- n --->|                              is_first, content = "con"
 *                |----- n ---------->|          is_last, content = "tent"
 *
 * One call takes the head of a record, if it begins one, then one span of content, then padding.
 * The content of BEGIN_REQUEST, END_REQUEST, GET_VALUES, GET_VALUES_RESULT and UNKNOWN_TYPE is
 * given whole, in one span. A stream (PARAMS, STDIN, STDOUT, STDERR, DATA) ends with a record
 * without content.
 *
 *     n > 0   bytes were taken, and may be dropped; `content` looks at those that are content
 *     0       more is needed                              -1   refused: `refusal` says why
 *
 * Each length is checked where it is read: a peer is refused if a record has another version, comes
 * from the wrong side, belongs to the wrong kind of id, or has another length than its type allows.
 * After a refusal nothing is read: where the next record begins cannot be trusted.
 *
 * Limits: records of values have at most SXE_HTTP_FASTCGI_VALUES_MAX bytes. Content has at most
 * 65,535 bytes, padding 255.
 *
 * Example:
 *     struct sxe_http_fastcgi reader;
 *     sxe_http_fastcgi_init(&reader, SXE_HTTP_FASTCGI_OF_SERVER);
 *     while ((n = sxe_http_fastcgi_read(&reader, data, length, &content)) > 0) {
 *         if (reader.type == SXE_HTTP_FASTCGI_STDOUT)
 *             use(reader.id, content.base, content.length);
 *         data += n, length -= (size_t)n;
 *     }
 */
#ifndef SXE_HTTP_FASTCGI_H
#define SXE_HTTP_FASTCGI_H

#include <sys/types.h>

#include "sxe-http-parse.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_HTTP_FASTCGI_HEAD        8u     /* bytes of a record's head */
#define SXE_HTTP_FASTCGI_CONTENT_MAX 65535u /* the most bytes of content of a record */
#define SXE_HTTP_FASTCGI_VALUES_MAX  1024u  /* the most bytes of a record of values */

enum sxe_http_fastcgi_type {
    SXE_HTTP_FASTCGI_BEGIN_REQUEST = 1,
    SXE_HTTP_FASTCGI_ABORT_REQUEST,
    SXE_HTTP_FASTCGI_END_REQUEST,
    SXE_HTTP_FASTCGI_PARAMS,
    SXE_HTTP_FASTCGI_STDIN,
    SXE_HTTP_FASTCGI_STDOUT,
    SXE_HTTP_FASTCGI_STDERR,
    SXE_HTTP_FASTCGI_DATA,
    SXE_HTTP_FASTCGI_GET_VALUES,
    SXE_HTTP_FASTCGI_GET_VALUES_RESULT,
    SXE_HTTP_FASTCGI_UNKNOWN_TYPE
};

enum sxe_http_fastcgi_role {
    SXE_HTTP_FASTCGI_RESPONDER = 1,
    SXE_HTTP_FASTCGI_AUTHORIZER,
    SXE_HTTP_FASTCGI_FILTER
};

enum sxe_http_fastcgi_status {
    SXE_HTTP_FASTCGI_REQUEST_COMPLETE,
    SXE_HTTP_FASTCGI_CANT_MPX_CONN,
    SXE_HTTP_FASTCGI_OVERLOADED,
    SXE_HTTP_FASTCGI_UNKNOWN_ROLE
};

/* The side whose records are read. */
enum sxe_http_fastcgi_side {
    SXE_HTTP_FASTCGI_OF_CLIENT, /* a web server such as nginx, which sends requests */
    SXE_HTTP_FASTCGI_OF_SERVER  /* an application, such as php-fpm */
};

enum sxe_http_fastcgi_refusal {
    SXE_HTTP_FASTCGI_ACCEPTED,
    SXE_HTTP_FASTCGI_BAD_VERSION, /* the version is not 1 */
    SXE_HTTP_FASTCGI_BAD_TYPE,    /* a request has a type that does not exist */
    SXE_HTTP_FASTCGI_BAD_SIDE,    /* only the other side may send that type */
    SXE_HTTP_FASTCGI_BAD_ID,      /* id 0 for a request, or another id for a management record */
    SXE_HTTP_FASTCGI_BAD_LENGTH   /* the type does not allow that length of the content */
};

/* The state of reading one connection's records. */
struct sxe_http_fastcgi {
    uint8_t side;    /* private */
    uint8_t type;    /* ro: of the present record; a type above 11: a management record that does
                        not exist, to be answered by UNKNOWN_TYPE */
    uint8_t refusal; /* ro: enum sxe_http_fastcgi_refusal */
    uint8_t padding; /* private: bytes of padding to come */
    uint16_t id;     /* ro: of the request; 0: a management record */
    uint16_t length; /* ro: bytes of content of the whole record */
    uint16_t left;   /* ro: bytes of content to come */
    bool is_first;   /* ro: the last call took the head of the record */
    bool is_last;    /* ro: the last call took the last byte of content; only once for a record */
};

/* Prepare to read the records that this side sends. */
SXE_PUBLIC void sxe_http_fastcgi_init(struct sxe_http_fastcgi *reader,
                                      enum sxe_http_fastcgi_side side);

/* Read the front of data. "Shape" at the top of this file says what is returned. Each call sets
 * `content`. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_fastcgi_read(struct sxe_http_fastcgi *reader,
                                                      const char *data, size_t length,
                                                      struct sxe_span *content);

/* The reason of a refusal, as a text for logs. */
SXE_PUBLIC const char *sxe_http_fastcgi_refusal_text(enum sxe_http_fastcgi_refusal refusal);

/* The content of BEGIN_REQUEST, of which sxe_http_fastcgi_read has checked the length. */
SXE_PUBLIC void sxe_http_fastcgi_get_begin(const char content[8], uint16_t *role, bool *keep);

/* The content of END_REQUEST. */
SXE_PUBLIC void sxe_http_fastcgi_get_end(const char content[8], uint32_t *application,
                                         uint8_t *protocol);

/* Read the pair of a name and a value at the front of PARAMS, GET_VALUES or GET_VALUES_RESULT,
 * whose records' contents the caller has put together. Returns the bytes it took; 0: the pair goes
 * on after `length`, so a stream that ends there is wrong; -1: the name is empty. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_fastcgi_pair(const char *data, size_t length,
                                                      struct sxe_span *name,
                                                      struct sxe_span *value);

/* ---- Writing ---- */

/* Write the head of a record. */
SXE_PUBLIC void sxe_http_fastcgi_put_head(char to[8], enum sxe_http_fastcgi_type type, uint16_t id,
                                          uint16_t length, uint8_t padding);

/* Write a whole record BEGIN_REQUEST. keep: the server keeps the connection open after the
 * reply. */
SXE_PUBLIC void sxe_http_fastcgi_put_begin(char to[16], uint16_t id,
                                           enum sxe_http_fastcgi_role role, bool keep);

/* Write a whole record END_REQUEST. */
SXE_PUBLIC void sxe_http_fastcgi_put_end(char to[16], uint16_t id, uint32_t application,
                                         enum sxe_http_fastcgi_status protocol);

/* Write a whole record UNKNOWN_TYPE, which answers a record of that type. */
SXE_PUBLIC void sxe_http_fastcgi_put_unknown(char to[16], uint8_t type);

/* Write a pair. Returns its length; -ENOBUFS: it does not fit in `size` bytes, and nothing was
 * written; -EINVAL: the name is empty, or a length is above 2^31 - 1. */
SXE_PUBLIC SXE_MUST_USE ssize_t sxe_http_fastcgi_put_pair(char *to, size_t size,
                                                          struct sxe_span name,
                                                          struct sxe_span value);

#ifdef __cplusplus
}
#endif

#endif
