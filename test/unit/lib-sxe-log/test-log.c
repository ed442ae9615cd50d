/* SPDX-License-Identifier: MIT
 *
 * Tests log lines: their exact bytes, their limits, and that they have no side effects.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "../../fuzz/check-log.h"
#include "capture-log.h"
#include "fake-os.h"
#include "fake-time.h"
#include "test-main.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- The exact line ---- */

static void
start_2010(unsigned ms)
{
    fake_time_start(0, (UINT64_C(1286043102000) + ms) * SXE_NS_PER_MS);
    capture_log();
}

static const char *
with_pid(const char *format)
{
    static char line[SXE_LOG_LINE_MAX];

    snprintf(line, sizeof(line), "%.21s%08x%s", format, (unsigned)getpid(), format + 29);
    return line;
}

START_TEST(a_line_without_id_is_that_of_2010)
{
    start_2010(250);
    SXEL13("connecting via ramp %d sockets to peer %s:%d", 10000, "127.0.0.1", 8000);
    ck_assert_str_eq(captured.lines[0],
                     with_pid("20101002 181142.250 P00006a5f ------ 1 - connecting via ramp 10000 "
                              "sockets to peer 127.0.0.1:8000\n"));
}
END_TEST

START_TEST(a_line_with_id_is_that_of_2010)
{
    struct {
        uint32_t id;
    } connection = {999}, *this = &connection;

    start_2010(290);
    SXEL11I("connected: %d", 1000);
    ck_assert_str_eq(captured.lines[0],
                     with_pid("20101002 181142.290 P00006a5f    999 1 - connected: 1000\n"));
}
END_TEST

START_TEST(the_id_of_a_request_is_before_the_text)
{
    static const char *const ids[] = {"8f41c2d05b7e9a36", "a\nb"};

    start_2010(250);
    ck_assert_ptr_null(sxe_log_set_request(ids[0]));
    SXE_INFO("x");
    ck_assert_ptr_eq(sxe_log_get_request(), ids[0]);
    ck_assert_ptr_eq(sxe_log_set_request(ids[1]), ids[0]);
    SXE_INFO("x");
    ck_assert_ptr_eq(sxe_log_set_request(NULL), ids[1]);
    SXE_INFO("x");
    ck_assert_str_eq(log_line(0), "------ 4 - 8f41c2d05b7e9a36 x\n");
    ck_assert_str_eq(log_line(1), "------ 4 - a\\nb x\n");
    ck_assert_str_eq(log_line(2), "------ 4 - x\n");
}
END_TEST

START_TEST(a_long_id_of_a_request_is_cut)
{
    char id[SXE_LOG_REQUEST_MAX + 2];
    char expected[SXE_LOG_LINE_MAX];

    memset(id, 'i', sizeof(id));
    id[sizeof(id) - 1] = '\0';
    start_2010(250);
    sxe_log_set_request(id);
    SXE_INFO("x");
    sxe_log_set_request(id + 1);
    SXE_INFO("x");
    snprintf(expected, sizeof(expected), "------ 4 - %.126s.. x\n", id);
    ck_assert_str_eq(log_line(0), expected);
    snprintf(expected, sizeof(expected), "------ 4 - %s x\n", id + 1);
    ck_assert_str_eq(log_line(1), expected);
    sxe_log_set_request(NULL);
}
END_TEST

START_TEST(a_dump_is_that_of_2010)
{
    static const char query[] = "GET /123456789/1*/*\r\n\r\n";
    char *page = mmap((void *)0x08055000, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    ck_assert_ptr_eq(page, (void *)0x08055000);
    memcpy(page + 0x2a0, query, sizeof(query) - 1);
    start_2010(641);
    SXED10(page + 0x2a0, sizeof(query) - 1);
    ck_assert_str_eq(captured.lines[0],
                     with_pid("20101002 181142.641 P00006a5f ------ 1 - 080552a0 47 45 54 20 2f 31 "
                              "32 33 34 35 36 37 38 39 2f 31 GET /123456789/1\n"));
    ck_assert_str_eq(captured.lines[1],
                     with_pid("20101002 181142.641 P00006a5f ------ 1 - 080552b0 2a 2f 2a 0d 0a 0d "
                              "0a                            */*....\n"));
    ck_assert_uint_eq(captured.number, 2);
}
END_TEST

static const struct {
    uint32_t id;
    const char *line;
} ids[] = {
    {0, "     0 4 - x\n"},
    {9, "     9 4 - x\n"},
    {10, "    10 4 - x\n"},
    {99999, " 99999 4 - x\n"},
    {100000, "100000 4 - x\n"},
    {1000000, "1000000 4 - x\n"},
    {UINT32_MAX - 1, "4294967294 4 - x\n"},
    {SXE_NO_ID, "------ 4 - x\n"},
};

START_TEST(an_id_takes_at_least_six_columns)
{
    capture_log();
    SXE_INFO_ID(ids[_i].id, "x");
    ck_assert_str_eq(log_line(0), ids[_i].line);
}
END_TEST

START_TEST(each_macro_logs_at_its_level)
{
    capture_log();
    SXE_ERROR("a %d", 1);
    SXE_WARN("b");
    SXE_INFO("c");
    SXE_DEBUG("d");
    SXE_ERROR_ID(7, "e %d", 2);
    SXE_WARN_ID(7, "f");
    SXE_INFO_ID(7, "g");
    SXE_DEBUG_ID(7, "h");
    ck_assert_uint_eq(captured.number, 8);
    ck_assert_str_eq(log_line(0), "------ 2 - a 1\n");
    ck_assert_str_eq(log_line(1), "------ 3 - b\n");
    ck_assert_str_eq(log_line(2), "------ 4 - c\n");
    ck_assert_str_eq(log_line(3), "------ 5 - d\n");
    ck_assert_str_eq(log_line(4), "     7 2 - e 2\n");
    ck_assert_str_eq(log_line(5), "     7 3 - f\n");
    ck_assert_str_eq(log_line(6), "     7 4 - g\n");
    ck_assert_str_eq(log_line(7), "     7 5 - h\n");
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(captured.levels[i], 2 + i % 4);
}
END_TEST

START_TEST(the_stamp_follows_the_clock)
{
    start_2010(999);
    SXE_INFO("x");
    fake_time_advance(SXE_NS_PER_MS);
    SXE_INFO("x");
    fake_time_advance(999 * SXE_NS_PER_MS);
    SXE_INFO("x");
    fake_time_step_wall(-86400 * (int64_t)SXE_NS_PER_SECOND);
    SXE_INFO("x");
    ck_assert(strncmp(captured.lines[0], "20101002 181142.999 ", 20) == 0);
    ck_assert(strncmp(captured.lines[1], "20101002 181143.000 ", 20) == 0);
    ck_assert(strncmp(captured.lines[2], "20101002 181143.999 ", 20) == 0);
    ck_assert(strncmp(captured.lines[3], "20101001 181143.999 ", 20) == 0);
}
END_TEST

/* ---- Bytes that are not printable ---- */

static void
escaped(char text[5], unsigned byte)
{
    if (byte == '\n' || byte == '\r' || byte == '\t' || byte == '\\')
        snprintf(text, 5, "\\%c",
                 byte == '\n'   ? 'n'
                 : byte == '\r' ? 'r'
                 : byte == '\t' ? 't'
                                : '\\');
    else if (byte < ' ' || byte > '~')
        snprintf(text, 5, "\\x%02x", byte);
    else
        snprintf(text, 5, "%c", byte);
}

START_TEST(each_byte_is_itself_or_an_escape)
{
    char text[5];
    char expected[32];

    capture_log();
    escaped(text, (unsigned)_i);
    snprintf(expected, sizeof(expected), "------ 4 - <%s>\n", text);
    SXE_INFO("<%.*s>", 1, (char[]){(char)_i, '\0'});
    ck_assert_str_eq(log_line(0), expected);
}
END_TEST

START_TEST(a_peer_cannot_forge_a_line)
{
    capture_log();
    SXE_INFO("peer said %s", "x\n20101002 181142.250 P00006a5f ------ 1 - root logged in");
    ck_assert_uint_eq(captured.number, 1);
    ck_assert_str_eq(log_line(0), "------ 4 - peer said x\\n20101002 181142.250 P00006a5f ------ 1 "
                                  "- root logged in\n");
}
END_TEST

START_TEST(a_message_that_cannot_be_formatted_shows_its_format)
{
    capture_log();
    SXE_INFO("user %ls", L"\x1f600");
    ck_assert_str_eq(log_line(0), "------ 4 - user %ls\n");
}
END_TEST

/* ---- Lines that are too long ---- */

enum { TEXT_MAX = SXE_LOG_LINE_MAX - 1 - 30 - 7 - 2 - 2 };

START_TEST(a_message_that_just_fits_is_whole_and_longer_ones_end_in_dots)
{
    static char text[2 * SXE_LOG_LINE_MAX];
    int length = TEXT_MAX - 3 + _i;

    memset(text, 'a', (size_t)length);
    capture_log();
    SXE_INFO("%s", text);
    size_t line_length = strlen(captured.lines[0]);
    if (length <= TEXT_MAX) {
        ck_assert_uint_eq(line_length, SXE_LOG_LINE_MAX - (size_t)(TEXT_MAX - length));
        ck_assert_str_eq(captured.lines[0] + line_length - 3, "aa\n");
    } else {
        ck_assert_uint_eq(line_length, SXE_LOG_LINE_MAX);
        ck_assert_str_eq(captured.lines[0] + line_length - 4, "a..\n");
    }
}
END_TEST

START_TEST(a_huge_message_is_cut)
{
    static char text[100 * SXE_LOG_LINE_MAX];

    memset(text, 'a', sizeof(text) - 1);
    capture_log();
    SXE_INFO("%s", text);
    ck_assert_uint_eq(strlen(captured.lines[0]), SXE_LOG_LINE_MAX);
    ck_assert_str_eq(captured.lines[0] + SXE_LOG_LINE_MAX - 4, "a..\n");
}
END_TEST

START_TEST(an_escape_is_never_cut_in_half)
{
    static char text[SXE_LOG_LINE_MAX];
    size_t plain = (size_t)_i % 5;

    memset(text, 'a', plain);
    memset(text + plain, _i < 5 ? '\x01' : '\n', sizeof(text) - 1 - plain);
    capture_log();
    SXE_INFO("%s", text);

    const char *line = captured.lines[0];
    size_t length = strlen(line);
    ck_assert_ptr_null(check_text(line, length));
    ck_assert_str_eq(line + length - 3, "..\n");
    ck_assert_uint_gt(length, SXE_LOG_LINE_MAX - 4);
}
END_TEST

/* ---- Dumps ---- */

static const size_t dump_lengths[] = {0, 1, 15, 16, 17, 31, 32, 33, 256};

START_TEST(a_dump_has_one_row_for_each_16_bytes_or_part)
{
    unsigned char bytes[256];
    size_t length = dump_lengths[_i];

    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    capture_log();
    SXE_LOG_DUMP_AT(SXE_LOG_FATAL, 3, bytes, length);
    ck_assert_uint_eq(captured.number, (length + 15) / 16);
    for (unsigned row = 0; row < captured.number; row++) {
        char expected[200];
        int end = snprintf(expected, sizeof(expected), "     3 1 - %08lx",
                           (unsigned long)(uintptr_t)(bytes + 16 * row));
        for (unsigned i = 16 * row; i < 16 * row + 16; i++)
            end += snprintf(expected + end, 4, i < length ? " %02x" : "   ", i);
        end += snprintf(expected + end, 2, " ");
        for (unsigned i = 16 * row; i < 16 * row + 16 && i < length; i++)
            end += snprintf(expected + end, 2, "%c", i >= ' ' && i <= '~' ? i : '.');
        snprintf(expected + end, 2, "\n");
        ck_assert_str_eq(log_line(row), expected);
    }
}
END_TEST

START_TEST(a_dump_of_nothing_may_be_of_a_null_pointer)
{
    capture_log();
    SXE_LOG_DUMP_AT(SXE_LOG_FATAL, SXE_NO_ID, NULL, 0);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

/* ---- Side effects that a log line must not have ---- */

START_TEST(errno_is_the_same_after_a_line)
{
    capture_log();
    sxe_log_to_fd(-1);
    errno = EXDEV;
    SXE_INFO("%ls", L"\x1f600");
    ck_assert_int_eq(errno, EXDEV);
    SXE_LOG_DUMP_AT(SXE_LOG_FATAL, SXE_NO_ID, "abc", 3);
    ck_assert_int_eq(errno, EXDEV);
    ck_assert_uint_eq(sxe_log_dropped(), 2);
}
END_TEST

#pragma GCC diagnostic ignored "-Wformat" /* %m is not in ISO C */
START_TEST(a_message_may_ask_for_errno)
{
    capture_log();
    errno = ENOENT;
    SXE_INFO("open: %m");
    ck_assert_str_eq(log_line(0), "------ 4 - open: No such file or directory\n");
}
END_TEST

static int evaluated;

static int
evaluate(void)
{
    return ++evaluated;
}

START_TEST(the_arguments_of_a_hidden_line_are_not_evaluated)
{
    unsetenv("SXE_LOG_LEVEL");
    for (int i = 0; i < 2; i++) {
        SXE_DEBUG("%d", evaluate());
        SXE_LOG_DUMP_AT(SXE_LOG_DEBUG, SXE_NO_ID, "x", (size_t)evaluate());
    }
    ck_assert_int_eq(evaluated, 0);
    capture_log();
    SXE_DEBUG("%d", evaluate());
    ck_assert_int_eq(evaluated, 1);
    ck_assert_str_eq(log_line(0), "------ 5 - 1\n");
}
END_TEST

START_TEST(a_line_allocates_nothing)
{
    capture_log();
    for (int call = FAKE_MALLOC; call <= FAKE_STRDUP; call++)
        fake_os_forbid((enum fake_call)call, true);
    for (int format = SXE_LOG_TEXT; format <= SXE_LOG_JSON; format++) {
        sxe_log_set_format((enum sxe_log_format)format);
        SXE_INFO("%s %f %d", "text", 1.5, 3);
        SXE_LOG_DUMP_AT(SXE_LOG_FATAL, SXE_NO_ID, "abc", 3);
    }
    ck_assert_uint_eq(fake_os_violations(), 0);
    ck_assert_uint_eq(captured.number, 4);
}
END_TEST

START_TEST(a_forked_child_logs_its_own_pid)
{
    int fds[2];
    char expected[64];
    char line[SXE_LOG_LINE_MAX + 1] = "";

    capture_log();
    SXE_INFO("before the fork");
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        sxe_log_to_fd(fds[1]);
        SXE_INFO("child");
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_gt(read(fds[0], line, sizeof(line) - 1), 0);
    snprintf(expected, sizeof(expected), "P%08x ------ 4 - child\n", (unsigned)child);
    ck_assert_str_eq(line + 20, expected);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("log");
    TCase *exact = tcase_create("exact");
    TCase *bytes = tcase_create("bytes");
    TCase *manners = tcase_create("manners");

    tcase_add_test(exact, a_line_without_id_is_that_of_2010);
    tcase_add_test(exact, a_line_with_id_is_that_of_2010);
    tcase_add_test(exact, the_id_of_a_request_is_before_the_text);
    tcase_add_test(exact, a_long_id_of_a_request_is_cut);
    tcase_add_test(exact, a_dump_is_that_of_2010);
    tcase_add_loop_test(exact, an_id_takes_at_least_six_columns, 0, LENGTH_OF(ids));
    tcase_add_test(exact, each_macro_logs_at_its_level);
    tcase_add_test(exact, the_stamp_follows_the_clock);
    suite_add_tcase(suite, exact);

    tcase_add_loop_test(bytes, each_byte_is_itself_or_an_escape, 1, 256);
    tcase_add_test(bytes, a_peer_cannot_forge_a_line);
    tcase_add_test(bytes, a_message_that_cannot_be_formatted_shows_its_format);
    tcase_add_loop_test(bytes, a_message_that_just_fits_is_whole_and_longer_ones_end_in_dots, 0,
                        100);
    tcase_add_test(bytes, a_huge_message_is_cut);
    tcase_add_loop_test(bytes, an_escape_is_never_cut_in_half, 0, 10);
    tcase_add_loop_test(bytes, a_dump_has_one_row_for_each_16_bytes_or_part, 0,
                        LENGTH_OF(dump_lengths));
    tcase_add_test(bytes, a_dump_of_nothing_may_be_of_a_null_pointer);
    suite_add_tcase(suite, bytes);

    tcase_add_test(manners, errno_is_the_same_after_a_line);
    tcase_add_test(manners, a_message_may_ask_for_errno);
    tcase_add_test(manners, the_arguments_of_a_hidden_line_are_not_evaluated);
    tcase_add_test(manners, a_line_allocates_nothing);
    tcase_add_test(manners, a_forked_child_logs_its_own_pid);
    suite_add_tcase(suite, manners);
    return sxe_test_main(suite);
}
