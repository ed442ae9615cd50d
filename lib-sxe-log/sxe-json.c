/* SPDX-License-Identifier: MIT
 *
 * Escaping strings of JSON.
 */
#include "sxe-json.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "sxe-utf8.h"

enum {
    /* Kinds of bytes, one bit each. A style has the bits of the kinds that it escapes; it writes a
     * byte of any other kind as it is. */
    HIGH = 3, /* the two bits of the encoding: each encoding but AS_IS has at least one of them */
    SLASH = SXE_JSON_SLASHES,
    LESS = SXE_JSON_IN_HTML,
    SPECIAL = 16, /* escaped in every style */

    ITEM_MAX = 12, /* bytes of two \uXXXX, a surrogate pair */
    WORD = 8,
    PART_SIZE = 512
};

#define ROW(kind) \
    kind, kind, kind, kind, kind, kind, kind, kind, kind, kind, kind, kind, kind, kind, kind, kind

static const unsigned char kinds[256] = {
    ROW(SPECIAL),     ROW(SPECIAL),     ['"'] = SPECIAL, ['/'] = SLASH, ['<'] = LESS,
    ['\\'] = SPECIAL, [0x7f] = SPECIAL, ROW(HIGH),       ROW(HIGH),     ROW(HIGH),
    ROW(HIGH),        ROW(HIGH),        ROW(HIGH),       ROW(HIGH),     ROW(HIGH),
};

static const char letters[128] = {
    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
    ['\r'] = 'r', ['"'] = '"',  ['/'] = '/',  ['\\'] = '\\',
};

static size_t
put_unit(char *item, unsigned unit)
{
    static const char digits[] = "0123456789abcdef";

    item[0] = '\\';
    item[1] = 'u';
    for (unsigned i = 0; i < 4; i++)
        item[2 + i] = digits[unit >> (12 - 4 * i) & 15];
    return 6;
}

static size_t
put_character(char *item, uint32_t character)
{
    if (character < 0x10000)
        return put_unit(item, character);
    put_unit(item, 0xd800 + ((character - 0x10000) >> 10));
    put_unit(item + 6, 0xdc00 + (character & 0x3ff));
    return ITEM_MAX;
}

/* Write the item of the character at in, a character that this style does not write as it is.
 * *taken becomes the number of bytes that the character has in the text. Returns the item's
 * length. */
static size_t
put_item(char item[ITEM_MAX], const unsigned char *in, size_t left, unsigned encoding,
         size_t *taken)
{
    uint32_t character = *in;

    *taken = 1;
    if (*in < 0x80 && letters[*in] != '\0') {
        item[0] = '\\';
        item[1] = letters[*in];
        return 2;
    }
    if (encoding == SXE_JSON_LATIN1)
        return put_unit(item, character);
    *taken = sxe_utf8_decode(&character, in, left);
    if (*taken == 0) {
        *taken = 1;
        return put_unit(item, 0xfffd);
    }
    if (encoding == SXE_JSON_ASCII || character < 0xa0)
        return put_character(item, character);
    memcpy(item, in, *taken);
    return *taken;
}

/* Whether this style writes all eight bytes at `in` as they are. They are tested together: in one
 * of the sums each byte that must be escaped sets the top bit of its place. A result of true is
 * always right. False may be wrong, because a byte may carry into or borrow from the next one. */
static bool
are_plain(const unsigned char *in, unsigned wanted)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t bytes;
    uint64_t found;

    memcpy(&bytes, in, sizeof(bytes));
    found = bytes - ' ' * ones;
    found |= (bytes ^ '"' * ones) - ones;
    found |= (bytes ^ '\\' * ones) - ones;
    found |= bytes + ones; /* finds DEL (0x7f) */
    if ((wanted & SLASH) != 0)
        found |= (bytes ^ '/' * ones) - ones;
    if ((wanted & LESS) != 0)
        found |= (bytes ^ '<' * ones) - ones;
    found &= ~bytes;
    if ((wanted & HIGH) != 0)
        found |= bytes;
    return (found & 0x80 * ones) == 0;
}

size_t
sxe_json_escape(char *room, size_t size, const char *text, size_t *length, unsigned style)
{
    const unsigned wanted = style | SPECIAL;
    const unsigned char *in = (const unsigned char *)text;
    const unsigned char *const end = in + *length;
    char *at = room;
    char *const limit = room + size;

    while (in < end && at < limit) {
        size_t run =
            (size_t)(end - in) < (size_t)(limit - at) ? (size_t)(end - in) : (size_t)(limit - at);
        char item[ITEM_MAX];
        size_t item_length;
        size_t taken;

        if (run >= WORD) {
            run = WORD;
            if (are_plain(in, wanted)) {
                memcpy(at, in, WORD);
                at += WORD;
                in += WORD;
                continue;
            }
        }
        for (; run > 0 && (kinds[*in] & wanted) == 0; run--)
            *at++ = (char)*in++;
        if (run == 0)
            continue;
        item_length = put_item(item, in, (size_t)(end - in), style & HIGH, &taken);
        if (item_length > (size_t)(limit - at))
            break;
        memcpy(at, item, item_length);
        at += item_length;
        in += taken;
    }
    *length = (size_t)(in - (const unsigned char *)text);
    return (size_t)(at - room);
}

void
sxe_json_print(FILE *out, const char *text, size_t length, unsigned style)
{
    putc('"', out);
    while (length > 0) {
        char part[PART_SIZE];
        size_t taken = length;

        fwrite(part, 1, sxe_json_escape(part, sizeof(part), text, &taken, style), out);
        text += taken;
        length -= taken;
    }
    putc('"', out);
}
