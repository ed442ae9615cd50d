/* SPDX-License-Identifier: MIT
 *
 * What: the conditions under which a reply is good. Place: they come from --expect-status,
 * --expect-header and --expect-body, or belong to a single query. The worker checks them while the
 * reply's head and body come.
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
    /* if the base of a value is NULL, any value of the field is good */
    struct sxe_span field_values[LOAD_EXPECT_FIELDS];
    const char *body; /* the expected text; NULL: any body is good */
    size_t body_length;
    bool is_whole_body; /* whether `body` is the whole body, not a part of it */
    /* private: the failure function of Knuth, Morris and Pratt; NULL if `body` is a whole body */
    uint16_t *failure;
    char *file; /* private: the bytes of the file with the whole body */
};

/* The part of the expected body that matched so far: 8 bytes for each socket. All zero at the
 * beginning of a body. */
struct load_expect_body {
    uint64_t matched;
};

#define LOAD_EXPECT_DEFAULT_STATUS "2xx"

/* Add the condition that an option gives. NULL, or what is wrong, as a text of this thread. The
 * texts must stay valid. */
const char *load_expect_add_status(struct load_expect *expect, const char *text);
const char *load_expect_add_field(struct load_expect *expect, const char *text);
const char *load_expect_set_body(struct load_expect *expect,
                                 const char *text); /* "@path" as text names a file */

/* Free what load_expect_set_body made. After that any body is good. */
void load_expect_clear_body(struct load_expect *expect);

bool load_expect_accepts_status(const struct load_expect *expect, unsigned status);

/* Whether the head has the expected fields. The offsets in head count from data. */
bool load_expect_accepts_fields(const struct load_expect *expect,
                                const struct sxe_http_parser *head, const char *data);

/* Pass the pieces of a body to load_expect_body_piece in their order. It returns false if a whole
 * body is expected, and the pieces so far differ from it. After the last piece
 * load_expect_accepts_body tells whether the body is good. */
bool load_expect_body_piece(const struct load_expect *expect, struct load_expect_body *state,
                            const char *data, size_t length);
bool load_expect_accepts_body(const struct load_expect *expect,
                              const struct load_expect_body *state);

#endif
