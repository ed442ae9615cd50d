/* SPDX-License-Identifier: MIT
 *
 * Tests log lines in JSON: exact bytes, escapes, UTF-8, and how long lines are cut.
 */
#include <unistd.h>

#include "../../fuzz/check-log.h"
#include "capture-log.h"
#include "fake-time.h"
#include "test-main.h"

static void
start_json(void)
{
    fake_time_start(0, UINT64_C(1286043102290) * SXE_NS_PER_MS);
    capture_log();
    sxe_log_set_format(SXE_LOG_JSON);
}

static void
check_captured(void)
{
    for (unsigned i = 0; i < captured.number; i++) {
        const char *line = captured.lines[i];
        const char *wrong = check_bytes(line, strlen(line));

        if (wrong == NULL)
            wrong = check_json(line);
        ck_assert_msg(wrong == NULL, "%s: %s", wrong, line);
    }
}

START_TEST(a_line_has_its_keys_in_order)
{
    char expected[SXE_LOG_LINE_MAX];

    start_json();
    snprintf(
        expected, sizeof(expected),
        "{\"ts\":\"2010-10-02T18:11:42.290Z\",\"level\":\"fatal\",\"msg\":"
        "\"connected: 1000\",\"pid\":%d,\"id\":999,\"file\":\"test-log-json.c\",\"line\":%d}\n",
        (int)getpid(), __LINE__ + 1);
    SXE_LOG_LINE(SXE_LOG_FATAL, 999, "connected: %d", 1000);
    ck_assert_str_eq(captured.lines[0], expected);
    check_captured();
}
END_TEST

START_TEST(there_is_no_id_where_there_is_none)
{
    start_json();
    SXE_INFO("x");
    ck_assert_ptr_null(strstr(captured.lines[0], "\"id\""));
    check_captured();
}
END_TEST

START_TEST(the_id_of_a_request_is_a_key)
{
    char id[SXE_LOG_REQUEST_MAX + 2];

    start_json();
    sxe_log_set_request("8f41c2d05b7e9a36");
    SXE_INFO_ID(7, "x");
    sxe_log_set_request("\"\n");
    SXE_INFO("x");
    memset(id, 'i', sizeof(id));
    id[sizeof(id) - 1] = '\0';
    sxe_log_set_request(id);
    SXE_INFO("x");
    sxe_log_set_request(NULL);
    ck_assert_ptr_nonnull(
        strstr(captured.lines[0], ",\"id\":7,\"request_id\":\"8f41c2d05b7e9a36\",\"file\":\""));
    ck_assert_ptr_nonnull(strstr(captured.lines[1], ",\"request_id\":\"\\\"\\n\",\"file\":\""));
    ck_assert_ptr_nonnull(strstr(captured.lines[2], "iii..\",\"file\":\"test-log-json.c\","));
    check_captured();
}
END_TEST

START_TEST(levels_have_names)
{
    start_json();
    SXE_LOG_LINE(1, 1, "x");
    SXE_ERROR("x");
    SXE_WARN("x");
    SXE_INFO("x");
    SXE_DEBUG("x");
    ck_assert_ptr_nonnull(strstr(captured.lines[0], ",\"level\":\"fatal\","));
    ck_assert_ptr_nonnull(strstr(captured.lines[1], ",\"level\":\"error\","));
    ck_assert_ptr_nonnull(strstr(captured.lines[2], ",\"level\":\"warning\","));
    ck_assert_ptr_nonnull(strstr(captured.lines[3], ",\"level\":\"information\","));
    ck_assert_ptr_nonnull(strstr(captured.lines[4], ",\"level\":\"debug\","));
    check_captured();
}
END_TEST

static const struct {
    const char *text;
    const char *json;
} messages[] = {
    {"", ""},
    {"plain", "plain"},
    {"say \"hi\"", "say \\\"hi\\\""},
    {"a\\b", "a\\\\b"},
    {"a\nb\rc\td", "a\\nb\\rc\\td"},
    {"\x01\x1f\x7f\b", "\\u0001\\u001f\\u007f\\b"},
    {"Zo\xc3\xab", "Zo\\u00eb"},
    {"\xe2\x82\xac", "\\u20ac"},
    {"\xf0\x9f\x98\x80", "\\ud83d\\ude00"},
    {"\xf4\x8f\xbf\xbf", "\\udbff\\udfff"},
    {"\xed\x9f\xbf", "\\ud7ff"},
    {"\xee\x80\x80", "\\ue000"},
    {"\xc2\x80", "\\u0080"},
    {"\x80", "\\ufffd"},
    {"\xff", "\\ufffd"},
    {"\xc0\x80", "\\ufffd\\ufffd"},
    {"\xc1\xbf", "\\ufffd\\ufffd"},
    {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},
    {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"},
    {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
    {"\xf8\x88\x80\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"},
    {"\xe2\x82", "\\ufffd\\ufffd"},
    {"\xe2\x82x", "\\ufffd\\ufffdx"},
    {"\xc3\"", "\\ufffd\\\""},
    {"\xf0\x9f\x98", "\\ufffd\\ufffd\\ufffd"},
};

START_TEST(a_message_is_a_valid_string)
{
    char expected[200];

    start_json();
    SXE_INFO("%s", messages[_i].text);
    snprintf(expected, sizeof(expected), ",\"msg\":\"%s\",\"pid\":", messages[_i].json);
    ck_assert_msg(strstr(captured.lines[0], expected) != NULL, "%s", captured.lines[0]);
    check_captured();
}
END_TEST

static const char *const fillers[] = {"a", "\"", "\x01", "\xc3\xab", "\xf0\x9f\x98\x80"};

START_TEST(a_message_that_is_too_long_is_cut_and_the_line_is_still_valid)
{
    char text[2 * SXE_LOG_LINE_MAX] = "";
    const char *filler = fillers[_i % 5];
    size_t used = (size_t)(_i / 5);

    memset(text, 'b', used);
    for (; used + strlen(filler) < sizeof(text); used += strlen(filler))
        memcpy(text + used, filler, strlen(filler) + 1);
    start_json();
    SXE_INFO("%s", text);
    ck_assert_ptr_nonnull(strstr(captured.lines[0], "..\",\"pid\":"));
    ck_assert_uint_gt(strlen(captured.lines[0]), SXE_LOG_LINE_MAX - 12);
    check_captured();
}
END_TEST

START_TEST(a_file_name_may_be_long_and_odd)
{
    char name[400] = "/src/\"";
    struct sxe_log_site site = {&sxe_log_program, name, "f", INT32_MAX, SXE_LOG_ERROR};

    memset(name + 6, '\x01', sizeof(name) - 7);
    start_json();
    sxe_log_line(&site, NULL, UINT32_MAX - 1, "x");
    ck_assert_ptr_nonnull(strstr(captured.lines[0], ",\"file\":\"\\\"\\u0001"));
    ck_assert_ptr_nonnull(strstr(captured.lines[0], "..\",\"line\":2147483647}\n"));
    check_captured();
}
END_TEST

START_TEST(a_row_of_a_dump_is_a_message)
{
    start_json();
    SXE_LOG_DUMP_AT(SXE_LOG_FATAL, 3, "say \"hi\"\n", 9);
    ck_assert_ptr_nonnull(strstr(captured.lines[0], " 73 61 79 20 22 68 69 22 0a "));
    ck_assert_ptr_nonnull(strstr(captured.lines[0], " say \\\"hi\\\".\",\"pid\":"));
    check_captured();
}
END_TEST

START_TEST(a_call_and_its_return_keep_their_marks)
{
#undef SXE_CHECKED
#define SXE_CHECKED 1
    start_json();
    SXE_LOG_ENTER_AT(SXE_LOG_DEBUG, SXE_NO_ID, "f()");
    SXE_LOG_LEAVE_AT(SXE_LOG_DEBUG, SXE_NO_ID, "return");
    ck_assert_uint_eq(captured.number, 4);
    ck_assert_ptr_nonnull(strstr(captured.lines[0], "\"msg\":\"+ f()\""));
    ck_assert_ptr_nonnull(strstr(captured.lines[1], "\"msg\":\"{ // test-log-json.c:"));
    ck_assert_ptr_nonnull(strstr(captured.lines[2], "\"msg\":\"return\""));
    ck_assert_ptr_nonnull(strstr(captured.lines[3], "\"msg\":\"} // test-log-json.c:"));
    check_captured();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("log-json");
    TCase *tcase = tcase_create("json");

    tcase_add_test(tcase, a_line_has_its_keys_in_order);
    tcase_add_test(tcase, there_is_no_id_where_there_is_none);
    tcase_add_test(tcase, the_id_of_a_request_is_a_key);
    tcase_add_test(tcase, levels_have_names);
    tcase_add_loop_test(tcase, a_message_is_a_valid_string, 0,
                        (int)(sizeof(messages) / sizeof(messages[0])));
    tcase_add_loop_test(tcase, a_message_that_is_too_long_is_cut_and_the_line_is_still_valid, 0,
                        60);
    tcase_add_test(tcase, a_file_name_may_be_long_and_odd);
    tcase_add_test(tcase, a_row_of_a_dump_is_a_message);
    tcase_add_test(tcase, a_call_and_its_return_keep_their_marks);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
