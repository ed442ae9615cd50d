/* SPDX-License-Identifier: MIT
 *
 * The format of the access log: what is taken, and what is said of the rest. Lines are made by
 * test-httpd-access-log.c.
 */
#include "../../../../apps/httpd/serve/log-format.h"

#include <stdio.h>
#include <string.h>

#include "test-main.h"

static struct log_format format;
static char problem[LOG_FORMAT_PROBLEM];

/* The variables of the format and the texts between them, in one line. */
static const char *
parts_of(const char *text)
{
    static char found[1000];
    size_t used = 0;

    ck_assert_msg(log_format_parse(&format, text, problem), "%s: %s", text, problem);
    found[0] = '\0';
    for (unsigned i = 0; i < format.number; i++) {
        const struct log_part *part = &format.parts[i];
        const char *bytes = format.bytes + part->start;

        if (part->variable == LOG_LITERAL)
            used +=
                (size_t)snprintf(found + used, sizeof(found) - used, "'%.*s'", part->length, bytes);
        else
            used += (size_t)snprintf(found + used, sizeof(found) - used, "(%u%s%s%s)",
                                     part->variable, part->variable == LOG_HEADER ? " " : "",
                                     part->variable == LOG_HEADER ? bytes : "",
                                     part->is_quoted ? " quoted" : "");
    }
    return found;
}

START_TEST(a_text_becomes_parts)
{
    ck_assert_str_eq(parts_of("$status"), "(10)");
    ck_assert_str_eq(parts_of("a$status${host}-$$b"), "'a'(10)(14)'-$b'");
    ck_assert_str_eq(parts_of("\"$request\" $http_Accept_Language"),
                     "'\"'(6 quoted)'\" '(1 Accept-Language)");
    ck_assert_str_eq(parts_of("combined"),
                     "(2)' - '(3)' ['(4)'] \"'(6 quoted)'\" '(10)' '(11)"
                     "' \"'(1 referer quoted)'\" \"'(1 user-agent quoted)'\"'");
    ck_assert_str_eq(parts_of("common"), "(2)' - '(3)' ['(4)'] \"'(6 quoted)'\" '(10)' '(11)");
    ck_assert_str_eq(parts_of("{ \"a\\\"\": \"$host\", \"b\": [ $status ] }"),
                     "'{ \"a\\\"\": \"'(14 quoted)'\", \"b\": [ '(10)' ] }'");
    ck_assert_str_eq(parts_of("json"), "");
    ck_assert(format.is_object);
}
END_TEST

START_TEST(a_part_knows_its_neighbours)
{
    (void)parts_of("<$host>$host$host");
    ck_assert_int_eq(format.parts[1].before, '<');
    ck_assert_int_eq(format.parts[1].after, '>');
    ck_assert_int_eq(format.parts[3].before, '>');
    ck_assert_int_eq(format.parts[3].after, '\0');
    ck_assert_int_eq(format.parts[4].before, '\0');
    ck_assert_int_eq(format.parts[4].after, '\0');
}
END_TEST

static const struct {
    const char *text;
    const char *problem;
} wrong[] = {
    {"", "it is neither common, combined nor json, and has no variable such as $status"},
    {"commn", "it is neither common, combined nor json, and has no variable such as $status"},
    {"$statu", "$statu is no variable; did you mean $status?"},
    {"$stat ${hosts}", "$stat is no variable; did you mean $status?"},
    {"$user_agent", "$user_agent is no variable; did you mean $http_user_agent?"},
    {"$upstream_connect", "$upstream_connect is no variable; the man page lists them"},
    {"$http_", "$http_ is no variable; did you mean $http_user_agent?"},
    {"$", "a $ begins a variable, $name or ${name}; write $$ for the dollar"},
    {"$status $-", "a $ begins a variable, $name or ${name}; write $$ for the dollar"},
    {"${status", "a $ begins a variable, $name or ${name}; write $$ for the dollar"},
    {"${}", "a $ begins a variable, $name or ${name}; write $$ for the dollar"},
    {"$status\n", "it has a control byte, which a line of the log must not have"},
    {"$status\x7f", "it has a control byte, which a line of the log must not have"},
    {"{\"$status\t\"}", "it has a control byte, which a line of the log must not have"},
    {"\"$status", "its last double quote has no second one"},
    {"{\"a\":$host}", "it begins with {, so it is JSON, where $host must stand in double quotes"},
    {"{\"a\":$http_b}",
     "it begins with {, so it is JSON, where $http_b must stand in double quotes"},
    {"{\"a\":$status", "it begins with {, so it is JSON, but it lacks a } at its end"},
    {"{[$status}", "it begins with {, so it is JSON, but its brackets do not match"},
    {"{$status}}", "it begins with {, so it is JSON, but goes on after the last }"},
    {"{}$status", "it begins with {, so it is JSON, but goes on after the last }"},
    {"{[[[[[[[[[[[[[[[[$status", "it is JSON with more than 16 brackets in each other"},
};

START_TEST(a_text_is_refused)
{
    ck_assert(!log_format_parse(&format, wrong[_i].text, problem));
    ck_assert_str_eq(problem, wrong[_i].problem);
}
END_TEST

/* A text that repeats `what` `number` times. */
static const char *
repeated(const char *what, unsigned number)
{
    static char text[4096];

    text[0] = '\0';
    for (unsigned i = 0; i < number; i++)
        snprintf(text + strlen(what) * i, sizeof(text) - strlen(what) * i, "%s", what);
    return text;
}

START_TEST(a_format_has_limits)
{
    char text[3000];

    ck_assert(log_format_parse(&format, repeated("$status", 64), problem));
    ck_assert(!log_format_parse(&format, repeated("$status", 65), problem));
    ck_assert_str_eq(problem, "it has more than 64 variables and texts between them");
    ck_assert(log_format_parse(&format, repeated("$status ", 32), problem));
    ck_assert(!log_format_parse(&format, repeated(" $status", 33), problem));
    ck_assert(log_format_parse(&format, repeated("$request", 12), problem));
    ck_assert(!log_format_parse(&format, repeated("$request", 13), problem));
    ck_assert_str_eq(problem, "it has more than 24 variables that clients choose");
    ck_assert(!log_format_parse(&format, repeated("$http_a", 25), problem));
    ck_assert(log_format_parse(&format, repeated("$status", 1), problem));
    snprintf(text, sizeof(text), "%s$status", repeated("a", 2040));
    ck_assert(log_format_parse(&format, text, problem));
    snprintf(text, sizeof(text), "%s$status", repeated("a", 2041));
    ck_assert(!log_format_parse(&format, text, problem));
    ck_assert_str_eq(problem, "it has more than 2047 bytes");
}
END_TEST

static Suite *
log_format_suite(void)
{
    Suite *suite = suite_create("httpd-log-format");
    TCase *tcase = tcase_create("format");

    tcase_add_test(tcase, a_text_becomes_parts);
    tcase_add_test(tcase, a_part_knows_its_neighbours);
    tcase_add_loop_test(tcase, a_text_is_refused, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(tcase, a_format_has_limits);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(log_format_suite());
}
