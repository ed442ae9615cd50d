/* SPDX-License-Identifier: MIT
 *
 * The JSON writer gives valid JSON for any bytes and numbers: jansson reads it back.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "http-run-fixture.h"
#include "json-writer.h"
#include "test-main.h"

static struct load_json json;

static FILE *
begin(void)
{
    FILE *out = tmpfile();

    ck_assert_ptr_nonnull(out);
    load_json_init(&json, out);
    return out;
}

static void
ck_wrote(FILE *out, const char *expected)
{
    char *text = text_of(out, NULL);

    ck_assert_str_eq(text, expected);
    free(text);
}

static const struct {
    const char *text;
    const char *expected;
} texts[] = {
    {"", ""},
    {"plain", "plain"},
    {"a \"b\" \\", "a \\\"b\\\" \\\\"},
    {"\n\r\t\x01\x1f\x7f", "\\n\\r\\t\\u0001\\u001f\\u007f"},
    {"</script>", "\\u003c/script>"},
    {"\u00e4 \u20ac \U0001f600", "\u00e4 \u20ac \U0001f600"},
    {"\xff", "\\ufffd"},
    {"a\x80z", "a\\ufffdz"},
    {"\xc3", "\\ufffd"},
    {"\xc3(", "\\ufffd("},
    {"\xc0\xaf", "\\ufffd\\ufffd"},            /* overlong */
    {"\xe0\x80\xaf", "\\ufffd\\ufffd\\ufffd"}, /* overlong */
    {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* a surrogate */
    /* The last character before the surrogates. */
    {"\xed\x9f\xbf", "\xed\x9f\xbf"},
    {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* beyond U+10FFFF */
    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},             /* the last character */
    {"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"}, /* overlong */
    {"\xe2\x82", "\\ufffd\\ufffd"},                       /* cut off */
    {"\xe2\x82\"", "\\ufffd\\ufffd\\\""},
    {"\xf0\x9f\x98", "\\ufffd\\ufffd\\ufffd"},
};

START_TEST(any_bytes_are_a_good_text)
{
    FILE *out = begin();
    char quoted[200];
    char *written;
    json_t *read;

    load_json_text(&json, NULL, texts[_i].text);
    written = text_of(out, NULL);
    snprintf(quoted, sizeof(quoted), "\"%s\"", texts[_i].expected);
    ck_assert_str_eq(written, quoted);
    read = json_loads(written, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(read);
    json_decref(read);
    free(written);
}
END_TEST

START_TEST(every_pair_of_bytes_is_a_good_text)
{
    FILE *out = begin();
    json_error_t error;
    char *written;
    json_t *read;

    load_json_open(&json, NULL, '[');
    for (unsigned i = 1; i < 256; i++)
        for (unsigned k = 1; k < 256; k += 3)
            load_json_text(&json, NULL, (char[]){(char)i, (char)k, '\0'});
    load_json_close(&json, ']');
    written = text_of(out, NULL);
    ck_assert_ptr_null(strchr(written, '<'));
    read = json_loads(written, 0, &error);
    ck_assert_msg(read != NULL, "%s", error.text);
    ck_assert_uint_eq(json_array_size(read), 255 * 85);
    json_decref(read);
    free(written);
}
END_TEST

START_TEST(numbers_keep_their_digits_and_what_json_has_not_is_null)
{
    FILE *out = begin();

    load_json_open(&json, NULL, '[');
    load_json_number(&json, NULL, 0.1);
    load_json_number(&json, NULL, 3599999999.999);
    load_json_number(&json, NULL, nan(""));
    load_json_number(&json, NULL, HUGE_VAL);
    load_json_number(&json, NULL, -HUGE_VAL);
    load_json_number(&json, NULL, 1e300);
    load_json_count(&json, NULL, UINT64_MAX);
    load_json_bool(&json, NULL, true);
    load_json_bool(&json, NULL, false);
    load_json_text(&json, NULL, NULL);
    load_json_close(&json, ']');
    ck_wrote(out, "[\n  0.1,\n  3599999999.999,\n  null,\n  null,\n  null,\n  1e+300,\n"
                  "  18446744073709551615,\n  true,\n  false,\n  null\n]");
}
END_TEST

START_TEST(outer_values_have_a_line_each_and_inner_ones_share_it)
{
    FILE *out = begin();

    load_json_open(&json, NULL, '{');
    load_json_open(&json, "empty", '{');
    load_json_close(&json, '}');
    load_json_open(&json, "b", '[');
    load_json_open(&json, NULL, '{');
    load_json_open(&json, "inner", '[');
    load_json_open(&json, NULL, '[');
    load_json_count(&json, NULL, 1);
    load_json_count(&json, NULL, 2);
    load_json_close(&json, ']');
    load_json_open(&json, NULL, '[');
    load_json_close(&json, ']');
    load_json_close(&json, ']');
    load_json_null(&json, "c");
    load_json_close(&json, '}');
    load_json_close(&json, ']');
    load_json_close(&json, '}');
    ck_wrote(out, "{\n  \"empty\": {},\n  \"b\": [\n    {\n      \"inner\": [[1, 2], []],\n"
                  "      \"c\": null\n    }\n  ]\n}");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-json-writer");
    TCase *tcase = tcase_create("json-writer");

    tcase_add_loop_test(tcase, any_bytes_are_a_good_text, 0, sizeof(texts) / sizeof(texts[0]));
    tcase_add_test(tcase, every_pair_of_bytes_is_a_good_text);
    tcase_add_test(tcase, numbers_keep_their_digits_and_what_json_has_not_is_null);
    tcase_add_test(tcase, outer_values_have_a_line_each_and_inner_ones_share_it);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
