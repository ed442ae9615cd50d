/* SPDX-License-Identifier: MIT
 *
 * The scanning functions, in the version for each set of processor features.
 */
#include "http-case.h"
#include "sxe-http-list.h"
#include "test-main.h"

enum { ROUNDS = 300, LENGTH_MAX = 300 };

static const char *const names[] = {"AVX2", "SSE4.2", "plain"};

/* A generator that gives the same numbers on each machine. */
static uint32_t
random_below(uint32_t limit)
{
    static uint32_t state = 2463534242;

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % limit;
}

/* The sets of characters as the RFCs define them, for comparison. */
static bool
is_inside(enum sxe__http_set set, unsigned char byte)
{
    bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    bool is_digit = byte >= '0' && byte <= '9';

    if (set == SXE__HTTP_TOKEN)
        return is_letter || is_digit || (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
    if (set == SXE__HTTP_TARGET)
        return byte > ' ' && byte < 0x7F && strchr("\"#<>%\\^`{}", byte) == NULL;
    return byte == '\t' || (byte >= ' ' && byte != 0x7F);
}

static size_t
naive_stop(const char *data, size_t end, enum sxe__http_set set, size_t at)
{
    while (at < end && is_inside(set, (unsigned char)data[at]))
        at++;
    return at;
}

START_TEST(each_byte_is_in_a_token_or_not)
{
    char bytes[] = "abc";

    bytes[1] = (char)_i;
    for (size_t from = 0; from < 3; from++) {
        struct sxe_span text = {http_case_at_edge(bytes + from, 3 - from), 3 - from};
        bool is_token = from == 2 || is_inside(SXE__HTTP_TOKEN, (unsigned char)_i);

        ck_assert(sxe_http_is_token(text) == is_token);
    }
}
END_TEST

START_TEST(each_byte_is_in_a_value_or_not)
{
    char bytes[] = "a c";
    bool is_value = (_i >= ' ' && _i != 0x7F) || _i == '\t';

    bytes[1] = (char)_i;
    for (size_t from = 0; from < 3; from++) {
        struct sxe_span text = {http_case_at_edge(bytes + from, 3 - from), 3 - from};

        ck_assert(sxe_http_is_field_value(text) == (is_value || from == 2));
    }
}
END_TEST

START_TEST(nothing_is_a_value)
{
    ck_assert(sxe_http_is_field_value((struct sxe_span){NULL, 0}));
}
END_TEST

START_TEST(nothing_is_no_token)
{
    ck_assert(!sxe_http_is_token((struct sxe_span){NULL, 0}));
}
END_TEST

START_TEST(each_way_is_there)
{
    ck_assert_str_eq(http_case_choose((unsigned)_i), names[_i]);
}
END_TEST

START_TEST(without_a_choice_the_processor_decides)
{
    struct sxe__http_input in = SXE__HTTP_INPUT("ab c", 4);

    ck_assert_uint_eq(sxe__http_stop(&in, SXE__HTTP_TOKEN, 0), 2);
    ck_assert_uint_eq(sxe__http_stop(&in, SXE__HTTP_VALUE, 0), 4);
    ck_assert_str_eq(sxe__http_scan_choose(sxe__http_scan_features()), names[0]);
}
END_TEST

START_TEST(the_faster_way_is_taken_and_the_slower_if_it_must)
{
    ck_assert_str_eq(sxe__http_scan_choose(SXE__HTTP_AVX2 | SXE__HTTP_SSE42), "AVX2");
    ck_assert_str_eq(sxe__http_scan_choose(SXE__HTTP_SSE42), "SSE4.2");
    ck_assert_str_eq(sxe__http_scan_choose(0), "plain");
}
END_TEST

/* Every byte alone among letters, at every place, in texts of up to two blocks. */
START_TEST(each_byte_is_inside_or_outside)
{
    char bytes[130];

    for (unsigned way = 0; way < HTTP_CASE_WAYS; way++) {
        http_case_choose(way);
        for (size_t length = 1; length <= sizeof(bytes); length += length < 70 ? 1 : 30) {
            const char *data;
            size_t at = (size_t)_i * 7 % length;

            memset(bytes, 'a', sizeof(bytes));
            bytes[at] = (char)_i;
            data = http_case_at_edge(bytes, length);
            for (unsigned set = 0; set < SXE__HTTP_SETS; set++) {
                struct sxe__http_input in = SXE__HTTP_INPUT(data, length);
                ck_assert_uint_eq(sxe__http_stop(&in, set, 0),
                                  is_inside(set, (unsigned char)_i) ? length : at);
            }
        }
    }
}
END_TEST

/* Random texts of mostly allowed bytes, with random limits for the scan. */
START_TEST(each_way_gives_the_same_answers)
{
    static const char usual[] = "abcdefgXYZ012-_.:/ \t\r\n\"(\x80";
    char bytes[LENGTH_MAX];

    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t length = random_below(LENGTH_MAX) + 1;
        const char *data;

        for (size_t i = 0; i < length; i++)
            bytes[i] = random_below(4) > 0 ? 'a' : usual[random_below(sizeof(usual) - 1)];
        bytes[random_below((uint32_t)length)] = (char)random_below(256);
        data = http_case_at_edge(bytes, length);
        for (unsigned way = 0; way < HTTP_CASE_WAYS; way++) {
            struct sxe__http_input in = SXE__HTTP_INPUT(data, length);

            http_case_choose(way);
            for (unsigned i = 0; i < 100; i++) {
                enum sxe__http_set set = random_below(SXE__HTTP_SETS);
                size_t at = random_below((uint32_t)length + 1);
                ck_assert_uint_eq(sxe__http_stop(&in, set, at), naive_stop(data, length, set, at));
            }
        }
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-scan");
    TCase *scan = tcase_create("scan");

    tcase_add_loop_test(scan, each_byte_is_in_a_token_or_not, 0, 256);
    tcase_add_loop_test(scan, each_byte_is_in_a_value_or_not, 0, 256);
    tcase_add_test(scan, nothing_is_a_value);

    tcase_add_test(scan, nothing_is_no_token);
    tcase_add_loop_test(scan, each_way_is_there, 0, HTTP_CASE_WAYS);
    tcase_add_test(scan, without_a_choice_the_processor_decides);
    tcase_add_test(scan, the_faster_way_is_taken_and_the_slower_if_it_must);
    tcase_add_loop_test(scan, each_byte_is_inside_or_outside, 0, 256);
    tcase_add_test(scan, each_way_gives_the_same_answers);
    suite_add_tcase(suite, scan);
    return sxe_test_main(suite);
}
