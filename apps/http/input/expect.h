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
 * Limits: LOAD_EXPECT_FIELDS fields; a text of at most LOAD_EXPECT_TEXT_MAX bytes.
 */
#ifndef LOAD_EXPECT_H
#define LOAD_EXPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-http-parse.h"

#define LOAD_EXPECT_FIELDS   16
#define LOAD_EXPECT_TEXT_MAX 65535

struct load_expect {
    uint64_t statuses[16]; /* private: one bit for each status below 1000 */
    unsigned fields;
    struct sxe_span field_names[LOAD_EXPECT_FIELDS];
    /* a value whose base is NULL: any value is good */
    struct sxe_span field_values[LOAD_EXPECT_FIELDS];
    const char *body; /* the expected text; NULL: any body is good */
    size_t body_length;
    bool is_whole_body; /* whether `body` is the whole body, not a part of it */
    uint16_t *failure;  /* private: Knuth, Morris, Pratt; NULL for a whole body */
    char *file;         /* private: the bytes of the file with the whole body */
};

/* How far a body was compared: 8 bytes a socket, all zero at the beginning of a body. */
struct load_expect_body {
    uint64_t matched;
};

#define LOAD_EXPECT_DEFAULT_STATUS "2xx"

/* Add what an option says: NULL, or what is wrong, as a text of this thread. Texts are borrowed. */
const char *load_expect_add_status(struct load_expect *expect, const char *text);
const char *load_expect_add_field(struct load_expect *expect, const char *text);
const char *load_expect_set_body(struct load_expect *expect,
                                 const char *text); /* text "@path" names a file */

/* Free what set_body made; nothing is expected of a body any more. */
void load_expect_clear_body(struct load_expect *expect);

bool load_expect_accepts_status(const struct load_expect *expect, unsigned status);

/* Whether the head has the expected fields. Its offsets count from data. */
bool load_expect_accepts_fields(const struct load_expect *expect,
                                const struct sxe_http_parser *head, const char *data);

/* load_expect_body_piece takes the pieces of a body in order; false: a whole body is expected, and
 * this one can no longer equal it. After the last piece load_expect_accepts_body says whether the
 * body matches. */
bool load_expect_body_piece(const struct load_expect *expect, struct load_expect_body *state,
                            const char *data, size_t length);
bool load_expect_accepts_body(const struct load_expect *expect,
                              const struct load_expect_body *state);

#endif
