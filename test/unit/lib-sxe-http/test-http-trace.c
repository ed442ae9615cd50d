/* SPDX-License-Identifier: MIT
 *
 * traceparent: which values are valid (W3C Trace Context, 3.2), and what is written.
 */
#include "sxe-http-trace.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "page-edge.h"
#include "test-main.h"

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define VALID  "00-" TRACE "-" PARENT "-01"
#define ZEROS  "0000000000000000"

static const struct {
    const char *value;
    unsigned flags;
} valid[] = {
    {VALID, 1},
    {"00-" TRACE "-" PARENT "-00", 0},
    {"00-" TRACE "-" PARENT "-02", 2},
    {"00-" TRACE "-" PARENT "-ff", 3}, /* flags without a meaning are not passed on */
    {"00-" TRACE "-" PARENT "-fc", 0},
    {"00-" ZEROS "0000000000000001-0000000000000001-01", 1},
    {"00-1000000000000000" ZEROS "-1000000000000000-01", 1},
    {"00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01", 1},
    /* Versions to come. */
    {"01-" TRACE "-" PARENT "-01", 1},
    {"fe-" TRACE "-" PARENT "-03", 3},
    {"cc-" TRACE "-" PARENT "-01-", 1},
    {"cc-" TRACE "-" PARENT "-01-what-comes-later", 1},
};

static const char *const invalid[] = {
    "",
    "00",
    "00-" TRACE "-" PARENT "-0",
    "00-" TRACE "-" PARENT "-011",
    "00-" TRACE "-" PARENT "-01-",
    "00-" TRACE "-" PARENT "-01-more",
    "00-" TRACE "-" PARENT "-01 ",
    "ff-" TRACE "-" PARENT "-01",
    "ff-" TRACE "-" PARENT "-01-more",
    "FE-" TRACE "-" PARENT "-01",
    "0x-" TRACE "-" PARENT "-01",
    "cc-" TRACE "-" PARENT "-01.more",
    "cc-" TRACE "-" PARENT "-012",
    "cc-" TRACE "-" PARENT "-0",
    "00-" ZEROS ZEROS "-" PARENT "-01",
    "00-" TRACE "-" ZEROS "-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
    "00-" TRACE "-00F067AA0BA902B7-01",
    "00-" TRACE "-" PARENT "-0A",
    "00-" TRACE "-" PARENT "-g0",
    "00-4bf92f3577b34da6a3ce929d0e0e473g-" PARENT "-01",
    "00-" TRACE "-00f067aa0ba902b`-01",
    "00-" TRACE "-00f067aa0ba902b/-01",
    "00-" TRACE "-00f067aa0ba902b:-01",
    "00_" TRACE "-" PARENT "-01",
    "00-" TRACE "_" PARENT "-01",
    "00-" TRACE "-" PARENT "_01",
    " 00-" TRACE "-" PARENT "-01",
};

/* Parse the value at the end of a page, so that reading too far traps. */
static int
parse(const char *value, struct sxe_http_trace *trace)
{
    return sxe_http_trace_parse(page_edge(value), trace);
}

START_TEST(a_valid_value_has_its_parts)
{
    struct sxe_http_trace trace;
    char text[SXE_HTTP_TRACEPARENT + 1];

    ck_assert_int_eq(parse(valid[_i].value, &trace), 0);
    ck_assert_mem_eq(trace.trace_id, valid[_i].value + 3, 32);
    ck_assert_uint_eq(strlen(trace.trace_id), 32);
    ck_assert_mem_eq(trace.parent_id, valid[_i].value + 36, 16);
    ck_assert_uint_eq(strlen(trace.parent_id), 16);
    ck_assert_str_eq(trace.span_id, "");
    ck_assert_uint_eq(trace.flags, valid[_i].flags);
    memcpy(trace.span_id, "b7ad6b7169203331", 17);
    sxe_http_trace_write(&trace, text);
    ck_assert_mem_eq(text, "00-", 3);
    ck_assert_mem_eq(text + 3, trace.trace_id, 32);
    ck_assert_mem_eq(text + 35, "-b7ad6b7169203331-0", 19);
    ck_assert_int_eq(text[54], (int)('0' + valid[_i].flags));
    ck_assert_int_eq(text[55], '\0');
}
END_TEST

START_TEST(an_invalid_value_is_refused_and_changes_nothing)
{
    struct sxe_http_trace trace = {.trace_id = "before", .flags = 7};

    ck_assert_int_eq(parse(invalid[_i], &trace), -EINVAL);
    ck_assert_str_eq(trace.trace_id, "before");
    ck_assert_uint_eq(trace.flags, 7);
}
END_TEST

/* Replace each byte by each other value: the value stays valid only where a digit becomes a digit
 * and version 00 stays 00 or becomes a version to come. */
START_TEST(no_other_byte_is_allowed_anywhere)
{
    struct sxe_http_trace trace;
    char text[] = VALID;

    for (unsigned at = 0; at < SXE_HTTP_TRACEPARENT; at++) {
        bool is_dash = at == 2 || at == 35 || at == 52;

        for (unsigned byte = 1; byte < 256; byte++) {
            bool is_digit = strchr("0123456789abcdef", (int)byte) != NULL;

            text[at] = (char)byte;
            ck_assert_int_eq(parse(text, &trace), (is_dash ? byte == '-' : is_digit) ? 0 : -EINVAL);
        }
        text[at] = VALID[at];
    }
}
END_TEST

static Suite *
trace_suite(void)
{
    Suite *suite = suite_create("http-trace");
    TCase *c = tcase_create("trace");

    tcase_add_loop_test(c, a_valid_value_has_its_parts, 0, sizeof(valid) / sizeof(valid[0]));
    tcase_add_loop_test(c, an_invalid_value_is_refused_and_changes_nothing, 0,
                        sizeof(invalid) / sizeof(invalid[0]));
    tcase_add_test(c, no_other_byte_is_allowed_anywhere);
    suite_add_tcase(suite, c);
    return suite;
}

int
main(void)
{
    return sxe_test_main(trace_suite());
}
