/* SPDX-License-Identifier: MIT
 *
 * What: what a reply must be to be ok. Place: --expect-status, --expect-header, --expect-body, each
 * query's own; the worker asks as the reply's head and body come.
 *
 * Shape: status  "200", "2xx", "200,304", "200-299"; more than one option: any of them
 *        header  "Name", "Name: value" (the whole value, case matters), repeated: all of them; of
 *                a field that a reply has more than once, one is enough
 *        body    "text" anywhere in it, found across pieces; or all of it equal to a file
 *
 * Limits: HTTP_EXPECT_FIELDS fields; a text of at most HTTP_EXPECT_TEXT_MAX bytes.
 */
#ifndef HTTP_EXPECT_H
#define HTTP_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-http-parse.h"

#define HTTP_EXPECT_FIELDS   16
#define HTTP_EXPECT_TEXT_MAX 65535

struct http_expect {
    uint64_t statuses[16]; /* private: a bit a status below 1000; see http_expect_status */
    unsigned fields;
    struct sxe_span field_names[HTTP_EXPECT_FIELDS];
    struct sxe_span field_values[HTTP_EXPECT_FIELDS]; /* base NULL: any */
    const char *body;                                 /* NULL: any */
    size_t body_length;
    bool is_whole_body; /* all of it, not a part */
    uint16_t *failure;  /* private: Knuth, Morris, Pratt; NULL for a whole body */
    char *file;         /* private: what a whole body is in */
};

/* How far a body was compared: 8 bytes a socket, all zero at the beginning of a body. */
struct http_expect_body {
    uint64_t matched;
};

#define HTTP_EXPECT_DEFAULT_STATUS "2xx"

/* Add what an option says: NULL, or what is wrong, as a text of this thread. Texts are borrowed. */
const char *http_expect_add_status(struct http_expect *expect, const char *text);
const char *http_expect_add_field(struct http_expect *expect, const char *text);
const char *http_expect_set_body(struct http_expect *expect,
                                 const char *text); /* "@path": a file */

/* Free what set_body made; nothing is expected of a body any more. */
void http_expect_clear_body(struct http_expect *expect);

bool http_expect_status(const struct http_expect *expect, unsigned status);

/* data is what the head's offsets are from. */
bool http_expect_fields(const struct http_expect *expect, const struct sxe_http_parser *head,
                        const char *data);

/* Feed pieces in order; false: it can no longer match (whole body). Then ask at the end. */
bool http_expect_body_piece(const struct http_expect *expect, struct http_expect_body *state,
                            const char *data, size_t length);
bool http_expect_body_end(const struct http_expect *expect, const struct http_expect_body *state);

#endif
