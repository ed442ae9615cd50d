/* SPDX-License-Identifier: MIT
 *
 * JSON strings that a C program makes of untrusted bytes, read back by the grammar of RFC 8259.
 */
#include <stdint.h>
#include <string.h>

#include "outside.h"
#include "sxe-json.h"
#include "sxe-utf8.h"

enum { ROUNDS = 20000, TEXT_MAX = 40 };

static const unsigned styles[] = {SXE_JSON_UTF8, SXE_JSON_ASCII, SXE_JSON_LATIN1};

/* A text of random bytes, many of which JSON or UTF-8 treats in its own way. Returns its length. */
static size_t
make_text(char *text, unsigned *seed)
{
    static const char odd[] = "\"\\/<\n\x7f\xc3\xab\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\xff";
    size_t length = (size_t)rand_r(seed) % (TEXT_MAX + 1);

    for (size_t i = 0; i < length; i++)
        text[i] = rand_r(seed) % 3 == 0 ? (char)rand_r(seed)
                                        : odd[(size_t)rand_r(seed) % (sizeof(odd) - 1)];
    return length;
}

/* Escape the text by calls with a buffer of `size` bytes each; collect their results in whole. */
static size_t
escape_in_parts(char *whole, size_t size, const char *text, size_t length, unsigned style)
{
    size_t end = 0;

    while (length > 0) {
        size_t taken = length;

        end += sxe_json_escape(whole + end, size, text, &taken, style);
        ck_assert_uint_gt(taken, 0);
        text += taken;
        length -= taken;
    }
    return end;
}

/* The number of \uXXXX, whose u is at `in`; -1: there are not four hexadecimal digits. */
static long
unit_at(const char *in, const char *end)
{
    char digits[5] = "";

    if (end - in < 5)
        return -1;
    memcpy(digits, in + 1, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

/* Read one character of a string by the grammar of RFC 8259, section 7. Returns the bytes that it
 * took, and the character; 0: a parser would refuse it. */
static size_t
read_character(const char *in, const char *end, uint32_t *character)
{
    static const char letters[] = "\"\\/bfnrt", controls[] = "\"\\/\b\f\n\r\t";
    const char *letter;
    long high, low;

    if (*in != '\\') {
        if ((unsigned char)*in < ' ' || *in == '"')
            return 0;
        return sxe_utf8_decode(character, (const unsigned char *)in, (size_t)(end - in));
    }
    if (end - in < 2)
        return 0;
    letter = memchr(letters, in[1], sizeof(letters) - 1);
    if (letter != NULL) {
        *character = (unsigned char)controls[letter - letters];
        return 2;
    }
    high = in[1] == 'u' ? unit_at(in + 1, end) : -1;
    if (high < 0 || (high >= 0xdc00 && high <= 0xdfff))
        return 0;
    *character = (uint32_t)high;
    if (high < 0xd800 || high > 0xdbff)
        return 6;
    low = end - in >= 12 && memcmp(in + 6, "\\u", 2) == 0 ? unit_at(in + 7, end) : -1;
    *character = 0x10000 + ((uint32_t)(high - 0xd800) << 10 | (uint32_t)(low & 0x3ff));
    return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}

/* Read a whole string into characters; returns their number, or -1 if a parser would refuse it. */
static int
read_string(const char *in, size_t length, uint32_t characters[TEXT_MAX])
{
    const char *end = in + length;
    int number = 0;

    while (in < end) {
        size_t taken = read_character(in, end, &characters[number++]);

        if (taken == 0)
            return -1;
        in += taken;
    }
    return number;
}

/* promise: docs/log.md: The result is valid JSON for any bytes. */
START_TEST(any_bytes_are_a_string)
{
    unsigned seed = 1;

    for (unsigned round = 0; round < ROUNDS; round++) {
        char text[TEXT_MAX];
        char escaped[SXE_JSON_GROWTH * TEXT_MAX];
        uint32_t characters[TEXT_MAX];
        size_t length = make_text(text, &seed);
        size_t taken = length;
        size_t written = sxe_json_escape(escaped, sizeof(escaped), text, &taken, styles[round % 3]);

        ck_assert_uint_eq(taken, length);
        ck_assert_msg(read_string(escaped, written, characters) >= 0, "%.*s", (int)written,
                      escaped);
    }
}
END_TEST

/* promise: docs/log.md: If the room is too small, the output ends before an escape or character
 * that does not fit, never within it. `length` says how many bytes of the text were written, and
 * the next call can continue there. */
START_TEST(a_text_is_escaped_in_several_calls)
{
    unsigned seed = 2;

    for (unsigned round = 0; round < ROUNDS; round++) {
        char text[TEXT_MAX];
        char whole[SXE_JSON_GROWTH * TEXT_MAX];
        char parts[SXE_JSON_GROWTH * TEXT_MAX + TEXT_MAX];
        unsigned style = styles[round % 3];
        size_t length = make_text(text, &seed);
        size_t taken = length;
        size_t written = sxe_json_escape(whole, sizeof(whole), text, &taken, style);

        ck_assert_uint_eq(escape_in_parts(parts, 12 + round % 9, text, length, style), written);
        ck_assert_int_eq(memcmp(whole, parts, written), 0);
    }
}
END_TEST

/* promise: docs/log.md: `SXE_JSON_LATIN1` writes each byte from 0x80 on as `\u00XX`, so that no
 * byte is lost. */
START_TEST(each_byte_comes_back_as_a_character)
{
    unsigned seed = 3;

    for (unsigned round = 0; round < ROUNDS; round++) {
        char text[TEXT_MAX];
        char escaped[SXE_JSON_GROWTH * TEXT_MAX];
        size_t length = make_text(text, &seed);
        uint32_t characters[TEXT_MAX];
        size_t taken = length;
        size_t written = sxe_json_escape(escaped, sizeof(escaped), text, &taken, SXE_JSON_LATIN1);

        ck_assert_int_eq(read_string(escaped, written, characters), (int)length);
        for (size_t i = 0; i < length; i++)
            ck_assert_uint_eq(characters[i], (unsigned char)text[i]);
    }
}
END_TEST

/* promise: docs/log.md: With `SXE_JSON_IN_HTML` the string contains no `<`, and may be used in an
 * HTML script element. */
START_TEST(no_string_in_html_ends_a_script)
{
    unsigned seed = 4;

    for (unsigned round = 0; round < ROUNDS; round++) {
        char text[TEXT_MAX];
        char escaped[SXE_JSON_GROWTH * TEXT_MAX];
        size_t length = make_text(text, &seed);
        size_t taken = length;
        size_t written = sxe_json_escape(escaped, sizeof(escaped), text, &taken,
                                         styles[round % 3] | SXE_JSON_IN_HTML);

        ck_assert_ptr_null(memchr(escaped, '<', written));
    }
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {any_bytes_are_a_string, a_text_is_escaped_in_several_calls,
                            each_byte_comes_back_as_a_character, no_string_in_html_ends_a_script,
                            NULL};

    return outside_run("log-json", cases);
}
