/* SPDX-License-Identifier: MIT
 *
 * Tests JSON strings: the exact bytes of each style, rooms of each size, and that jansson reads any
 * bytes back as they were written.
 */
#include "sxe-json.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof(table[0])))

static char written[8192];

/* The escaped text as a C string. It is read from memory of exactly its size, so that
 * AddressSanitizer reports a read beyond its end. */
static const char *
escaped(const char *text, size_t length, unsigned style)
{
    char *exact = malloc(length + 1);
    size_t taken = length;
    size_t end;

    memcpy(exact + 1, text, length);
    end = sxe_json_escape(written, sizeof(written) - 1, exact + 1, &taken, style);
    free(exact);
    ck_assert_uint_eq(taken, length);
    ck_assert_uint_le(end, SXE_JSON_GROWTH * length);
    written[end] = '\0';
    return written;
}

static const struct {
    const char *text;
    unsigned style;
    const char *expected;
} texts[] = {
    {"", SXE_JSON_UTF8, ""},
    {"plain, and longer than a word", SXE_JSON_UTF8, "plain, and longer than a word"},
    {"say \"hi\" \\", SXE_JSON_AS_IS, "say \\\"hi\\\" \\\\"},
    {"\b\f\n\r\t", SXE_JSON_AS_IS, "\\b\\f\\n\\r\\t"},
    {"\x01\x1f\x7f", SXE_JSON_AS_IS, "\\u0001\\u001f\\u007f"},
    {"</script>", SXE_JSON_UTF8, "</script>"},
    {"</script>", SXE_JSON_SLASHES, "<\\/script>"},
    {"</script>", SXE_JSON_IN_HTML, "\\u003c/script>"},
    {"</script>", SXE_JSON_ASCII | SXE_JSON_SLASHES | SXE_JSON_IN_HTML, "\\u003c\\/script>"},
    {"Zo\xc3\xab \xe2\x82\xac \xf0\x9f\x98\x80", SXE_JSON_UTF8,
     "Zo\xc3\xab \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"Zo\xc3\xab \xe2\x82\xac \xf0\x9f\x98\x80", SXE_JSON_ASCII,
     "Zo\\u00eb \\u20ac \\ud83d\\ude00"},
    {"Zo\xc3\xab", SXE_JSON_LATIN1, "Zo\\u00c3\\u00ab"},
    {"Zo\xc3\xab \xff", SXE_JSON_AS_IS, "Zo\xc3\xab \xff"},
    {"\xc2\x80\xc2\x9f\xc2\xa0", SXE_JSON_UTF8, "\\u0080\\u009f\xc2\xa0"},
    {"\xf4\x8f\xbf\xbf", SXE_JSON_ASCII, "\\udbff\\udfff"},
    {"a\x80z\xff", SXE_JSON_UTF8, "a\\ufffdz\\ufffd"},
    {"a\x80z\xff", SXE_JSON_ASCII, "a\\ufffdz\\ufffd"},
    {"a\x80z\xff", SXE_JSON_LATIN1, "a\\u0080z\\u00ff"},
    {"\xc0\xaf", SXE_JSON_UTF8, "\\ufffd\\ufffd"},            /* an overlong encoding */
    {"\xed\xa0\x80", SXE_JSON_UTF8, "\\ufffd\\ufffd\\ufffd"}, /* an encoded surrogate */
    {"\xe2\x82", SXE_JSON_UTF8, "\\ufffd\\ufffd"},            /* cut off by the end */
    {"\xe2\x82\"", SXE_JSON_ASCII, "\\ufffd\\ufffd\\\""},     /* cut off by a quote */
};

START_TEST(each_style_has_its_bytes)
{
    ck_assert_str_eq(escaped(texts[_i].text, strlen(texts[_i].text), texts[_i].style),
                     texts[_i].expected);
}
END_TEST

START_TEST(a_nul_is_a_byte_like_others)
{
    ck_assert_str_eq(escaped("a\0b", 3, SXE_JSON_UTF8), "a\\u0000b");
}
END_TEST

/* Plain bytes are copied a word at a time; a byte to escape must be found at each place of a
 * word. */
START_TEST(every_byte_is_treated_alike_at_every_place)
{
    const unsigned style = (unsigned)_i;

    for (unsigned byte = 0; byte < 256; byte++) {
        char alone[SXE_JSON_GROWTH + 1];
        char expected[48];
        char text[24];

        snprintf(alone, sizeof(alone), "%s", escaped((char[]){(char)byte}, 1, style));
        for (size_t place = 0; place < sizeof(text); place++) {
            memset(text, place % 2 == 0 ? ' ' : '~', sizeof(text));
            text[place] = (char)byte;
            escaped(text, sizeof(text), style);
            snprintf(expected, sizeof(expected), "%.*s%s%.*s", (int)place, text, alone,
                     (int)(sizeof(text) - place - 1), text + place + 1);
            ck_assert_msg(strcmp(written, expected) == 0, "style %u, byte %u at %zu: %s", style,
                          byte, place, written);
        }
    }
}
END_TEST

/* Whatever the room, only whole items are written, and the next call continues the text. */
START_TEST(a_room_of_any_size_gets_whole_items)
{
    static const char text[] = "a\"b\\\n\x01/<Zo\xc3\xab\xe2\x82\xac\xf0\x9f\x98\x80 \xff\xe2\x82"
                               " then plain text to the end";
    const unsigned style = (unsigned)_i;
    char whole[sizeof(text) * SXE_JSON_GROWTH];

    snprintf(whole, sizeof(whole), "%s", escaped(text, sizeof(text) - 1, style));
    for (size_t size = 12; size <= strlen(whole); size++) {
        char *room = malloc(size);
        size_t at = 0;
        size_t all = 0;

        while (at < sizeof(text) - 1) {
            size_t taken = sizeof(text) - 1 - at;
            size_t part = sxe_json_escape(room, size, text + at, &taken, style);

            ck_assert_uint_gt(taken, 0);
            ck_assert_uint_le(part, size);
            ck_assert_msg(memcmp(whole + all, room, part) == 0, "size %zu, at %zu", size, at);
            at += taken;
            all += part;
        }
        ck_assert_uint_eq(all, strlen(whole));
        free(room);
    }
}
END_TEST

START_TEST(where_an_item_does_not_fit_nothing_of_it_is_written)
{
    char room[12] = "";
    size_t length;

    for (size_t size = 0; size < 12; size++) {
        length = 4;
        ck_assert_uint_eq(sxe_json_escape(room, size, "\xf0\x9f\x98\x80", &length, SXE_JSON_ASCII),
                          0);
        ck_assert_uint_eq(length, 0);
    }
    length = 0;
    ck_assert_uint_eq(sxe_json_escape(room, sizeof(room), NULL, &length, SXE_JSON_UTF8), 0);
    ck_assert_uint_eq(length, 0);
}
END_TEST

/* ---- Printing ---- */

/* The text that sxe_json_print wrote, to be freed. */
static char *
printed(const char *text, size_t length, unsigned style)
{
    char *bytes = NULL;
    size_t size;
    FILE *out = open_memstream(&bytes, &size);

    ck_assert_ptr_nonnull(out);
    sxe_json_print(out, text, length, style);
    ck_assert_int_eq(fclose(out), 0);
    return bytes;
}

START_TEST(any_two_bytes_are_a_string_that_others_read)
{
    const unsigned style = (unsigned)_i;

    for (unsigned first = 0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second += 5) {
            char *bytes = printed((char[]){(char)first, (char)second}, 2, style);
            json_t *read = json_loads(bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

            ck_assert_msg(json_is_string(read), "%u %u: %s", first, second, bytes);
            if (first < 0x80 && second < 0x80) {
                ck_assert_uint_eq(json_string_length(read), 2);
                ck_assert_int_eq(json_string_value(read)[0], (int)first);
                ck_assert_int_eq(json_string_value(read)[1], (int)second);
            }
            json_decref(read);
            free(bytes);
        }
    }
}
END_TEST

/* A long text is printed in parts; no part ends inside a character. */
START_TEST(a_long_text_is_one_string)
{
    static const char *const characters[] = {"x", "\"", "\xc3\xab", "\xe2\x82\xac",
                                             "\xf0\x9f\x98\x80"};
    const char *character = characters[_i % 5];
    char text[3001];
    char *bytes;
    json_t *read;
    size_t length = (size_t)(_i / 5);

    memset(text, 'a', length);
    while (length + strlen(character) < sizeof(text)) {
        memcpy(text + length, character, strlen(character));
        length += strlen(character);
    }
    text[length] = '\0';
    bytes = printed(text, length, _i % 2 == 0 ? SXE_JSON_UTF8 : SXE_JSON_ASCII);
    read = json_loads(bytes, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(read);
    ck_assert_str_eq(json_string_value(read), text);
    json_decref(read);
    free(bytes);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("json");
    TCase *tcase = tcase_create("strings");

    tcase_add_loop_test(tcase, each_style_has_its_bytes, 0, COUNT(texts));
    tcase_add_test(tcase, a_nul_is_a_byte_like_others);
    tcase_add_loop_test(tcase, every_byte_is_treated_alike_at_every_place, 0, 16);
    tcase_add_loop_test(tcase, a_room_of_any_size_gets_whole_items, 0, 16);
    tcase_add_test(tcase, where_an_item_does_not_fit_nothing_of_it_is_written);
    tcase_add_loop_test(tcase, any_two_bytes_are_a_string_that_others_read, 1, 4);
    tcase_add_loop_test(tcase, a_long_text_is_one_string, 0, 60);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
