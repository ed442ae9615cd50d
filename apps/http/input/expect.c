/* SPDX-License-Identifier: MIT
 *
 * Which replies count as good: status, headers, body.
 */
#include "expect.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sxe-http-list.h"
#include "whole-file.h"
#include "wrong.h"

#define BLANKS " \t"

enum { STATUS_MIN = 100, STATUS_MAX = 999, STATUS_DIGITS = 3 };

/* The value of matched after a byte that differs from an expected whole body: later pieces cannot
 * make the body good. */
#define DIFFERENT UINT64_MAX

/* ---- Status ---- */

static void
set_statuses(struct load_expect *expect, unsigned first, unsigned last)
{
    for (unsigned status = first; status <= last; status++)
        expect->statuses[status / 64] |= UINT64_C(1) << status % 64;
}

/* Read a status of three digits, of which the last two may be xx; 0: the text is no status. */
static unsigned
parse_status(const char *text, unsigned *last)
{
    unsigned status = 0;

    for (unsigned i = 0; i < STATUS_DIGITS; i++) {
        if (!isdigit((unsigned char)text[i]))
            break;
        status = status * 10 + (unsigned)(text[i] - '0');
    }
    *last = status;
    if (status >= STATUS_MIN)
        return status;
    if (status < 1 || status > 9 || strncasecmp(text + 1, "xx", 2) != 0)
        return 0;
    *last = status * 100 + 99;
    return status * 100;
}

/* Read one status or range of the list. Returns where it ends; NULL: it is neither. */
static const char *
add_statuses(struct load_expect *expect, const char *text)
{
    unsigned last;
    unsigned end;
    unsigned first = parse_status(text, &last);

    if (first == 0)
        return NULL;
    text += STATUS_DIGITS;
    if (*text == '-') {
        if (parse_status(text + 1, &end) == 0 || end < last)
            return NULL;
        last = end;
        text += 1 + STATUS_DIGITS;
    }
    set_statuses(expect, first, last);
    return text;
}

const char *
load_expect_add_status(struct load_expect *expect, const char *text)
{
    const char *list = text;

    for (;;) {
        text = add_statuses(expect, text + strspn(text, BLANKS));
        if (text != NULL)
            text += strspn(text, BLANKS);
        if (text == NULL || (*text != ',' && *text != '\0'))
            return load_wrong("'%s' is not a list of statuses (200, 2xx, 200-299, 200,304)", list);
        if (*text == '\0')
            return NULL;
        text++;
    }
}

bool
load_expect_accepts_status(const struct load_expect *expect, unsigned status)
{
    return status <= STATUS_MAX && (expect->statuses[status / 64] >> status % 64 & 1) != 0;
}

/* ---- Fields ---- */

const char *
load_expect_add_field(struct load_expect *expect, const char *text)
{
    const char *colon = strchr(text, ':');
    struct sxe_span name = {text, colon == NULL ? strlen(text) : (size_t)(colon - text)};
    struct sxe_span value = {NULL, 0};

    if (expect->fields == LOAD_EXPECT_FIELDS)
        return load_wrong("'%s' is one too many: the most is %d", text, LOAD_EXPECT_FIELDS);
    if (!sxe_http_is_token(name))
        return load_wrong("'%.*s' is not the name of a header: give 'Name' or 'Name: value'",
                          (int)name.length, name.base);
    if (colon != NULL)
        value = sxe_http_without_blanks((struct sxe_span){colon + 1, strlen(colon + 1)});
    expect->field_names[expect->fields] = name;
    expect->field_values[expect->fields++] = value;
    return NULL;
}

static bool
has_field(const struct sxe_http_parser *head, const char *data, struct sxe_span name,
          struct sxe_span value)
{
    for (unsigned i = 0; i < head->number; i++) {
        const struct sxe_http_field *field = &head->fields[i];

        if (field->name_length == name.length &&
            strncasecmp(data + field->name, name.base, name.length) == 0 &&
            (value.base == NULL || (field->value_length == value.length &&
                                    memcmp(data + field->value, value.base, value.length) == 0)))
            return true;
    }
    return false;
}

bool
load_expect_accepts_fields(const struct load_expect *expect, const struct sxe_http_parser *head,
                           const char *data)
{
    for (unsigned i = 0; i < expect->fields; i++) {
        if (!has_field(head, data, expect->field_names[i], expect->field_values[i]))
            return false;
    }
    return true;
}

/* ---- Body ---- */

/* The failure function of Knuth, Morris and Pratt. failure[i]: the length of the longest proper
 * prefix of the text's first i + 1 bytes that is also their suffix. */
static bool
make_failure(struct load_expect *expect)
{
    const char *text = expect->body;
    uint16_t matched = 0;

    expect->failure = calloc(expect->body_length + 1, sizeof(*expect->failure));
    if (expect->failure == NULL)
        return false;
    for (size_t i = 1; i < expect->body_length; i++) {
        while (matched > 0 && text[i] != text[matched])
            matched = expect->failure[matched - 1];
        if (text[i] == text[matched])
            matched++;
        expect->failure[i] = matched;
    }
    return true;
}

const char *
load_expect_set_body(struct load_expect *expect, const char *text)
{
    load_expect_clear_body(expect);
    if (*text == '@') {
        expect->file = load_whole_file(text + 1, &expect->body_length);
        if (expect->file == NULL)
            return load_wrong("'%s': %s", text + 1, strerror(errno));
        expect->body = expect->file;
        expect->is_whole_body = true;
        return NULL;
    }
    expect->body_length = strlen(text);
    if (expect->body_length > LOAD_EXPECT_TEXT_MAX)
        return load_wrong("the text is longer than %d bytes: compare the whole body with @file",
                          LOAD_EXPECT_TEXT_MAX);
    expect->body = text;
    if (make_failure(expect))
        return NULL;
    expect->body = NULL;
    return "out of memory";
}

void
load_expect_clear_body(struct load_expect *expect)
{
    free(expect->failure);
    free(expect->file);
    expect->failure = NULL;
    expect->file = NULL;
    expect->body = NULL;
    expect->is_whole_body = false;
}

static bool
compare_body(const struct load_expect *expect, struct load_expect_body *state, const char *data,
             size_t length)
{
    if (state->matched == DIFFERENT || length > expect->body_length - state->matched ||
        memcmp(expect->body + state->matched, data, length) != 0) {
        state->matched = DIFFERENT;
        return false;
    }
    state->matched += length;
    return true;
}

/* Search for the expected text. While no byte of it matches, memchr looks for its first byte,
 * because that is the fastest way to skip most of a body. */
static void
match_body(const struct load_expect *expect, struct load_expect_body *state, const char *data,
           size_t length)
{
    const char *end = data + length;
    size_t matched = state->matched;

    while (data < end && matched < expect->body_length) {
        if (matched == 0) {
            data = memchr(data, expect->body[0], (size_t)(end - data));
            if (data == NULL)
                break;
        }
        while (matched > 0 && *data != expect->body[matched])
            matched = expect->failure[matched - 1];
        matched += *data == expect->body[matched];
        data++;
    }
    state->matched = matched;
}

bool
load_expect_body_piece(const struct load_expect *expect, struct load_expect_body *state,
                       const char *data, size_t length)
{
    if (expect->body == NULL)
        return true;
    if (expect->is_whole_body)
        return compare_body(expect, state, data, length);
    match_body(expect, state, data, length);
    return true;
}

bool
load_expect_accepts_body(const struct load_expect *expect, const struct load_expect_body *state)
{
    return expect->body == NULL || state->matched == expect->body_length;
}
