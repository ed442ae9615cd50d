/* SPDX-License-Identifier: MIT
 *
 * Tests assertions: what they log, and that they stop the program.
 */
#undef SXE_CHECKED
#define SXE_CHECKED 1

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include "capture-log.h"
#include "sxe-always-internal.h"
#include "test-main.h"

#define NOT_INLINED __attribute__((noinline))

static jmp_buf out;

static void
jump_out(void)
{
    longjmp(out, 1);
}

static NOT_INLINED void
forgets_to_leave(void)
{
    SXE_ENTER("forgets()");
}

static NOT_INLINED void
fails(int used)
{
    SXE_ENTER_ID(7, "fails(used=%d)", used);
    SXE_ASSERT_ID(8, used <= 3 && "\n"[0] == '\n', "used %d of %d", used, 3);
    SXE_LEAVE_ID(7, "return");
}

static NOT_INLINED void
calls_one_that_fails(void)
{
    SXE_ENTER("calls_one_that_fails()");
    fails(4);
    SXE_LEAVE("return");
}

#define FILE_TEXT "test/unit/lib-sxe-log/test-log-assert.c:#"

START_TEST(a_failed_assertion_says_what_and_where_and_who_called)
{
    capture_log();
    sxe_log_set_level(_i);
    sxe_log_set_fatal_hook(jump_out);
    if (setjmp(out) == 0)
        calls_one_that_fails();
    CHECK_LINES("     8 1 - ERROR: assertion 'used <= 3 && \"\\\\n\"[0] == '\\\\n'' failed at " //
                FILE_TEXT "; used 4 of 3\n",
                "     7 1 -        in function fails() at " FILE_TEXT "\n",
                "------ 1 -        called from function calls_one_that_fails() at " FILE_TEXT "\n");
}
END_TEST

START_TEST(the_trace_of_an_assertion_has_no_calls_that_are_over)
{
    capture_log();
    sxe_log_set_fatal_hook(jump_out);
    if (setjmp(out) == 0) {
        forgets_to_leave();
        SXE_ASSERT(captured.number > 0, "%d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7);
    }
    ck_assert_uint_eq(captured.number, 1);
}
END_TEST

static NOT_INLINED void
dives_and_fails(int depth)
{
    SXE_ENTER("dives_and_fails(%d)", depth);
    if (depth > 1)
        dives_and_fails(depth - 1);
    SXE_ASSERT(depth > 1, "at the bottom");
    SXE_LEAVE("return");
}

START_TEST(the_trace_of_an_assertion_counts_calls_that_were_too_deep)
{
    capture_log();
    sxe_log_set_fatal_hook(jump_out);
    if (setjmp(out) == 0)
        dives_and_fails(SXE_LOG_TRACE_MAX + 5);
    ck_assert_uint_eq(captured.number, 2 + SXE_LOG_TRACE_MAX);
    ck_assert_str_eq(log_line(1), "------ 1 -        in 5 calls too deep to be remembered\n");
    ck_assert_str_eq(line_without_numbers(2),
                     "------ 1 -        called from function dives_and_fails() at " FILE_TEXT "\n");
}
END_TEST

START_TEST(a_true_assertion_does_nothing_and_evaluates_once)
{
    int evaluated = 0;
    int messages = 0;

    capture_log();
    SXE_ASSERT(++evaluated == 1, "%d", ++messages);
    SXE_ASSERT_ID(3, ++evaluated == 2, "%d", ++messages);
    SXE_DEBUG_ASSERT(++evaluated == 3, "%d", ++messages);
    ck_assert_int_eq(evaluated, 3);
    ck_assert_int_eq(messages, 0);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

START_TEST(an_assertion_without_hook_aborts)
{
    capture_log();
    SXE_ASSERT(captured.number > 0, "nothing");
}
END_TEST

static void
expect_one_line(void)
{
    ck_assert_str_eq(line_without_numbers(0),
                     "------ 1 - ERROR: assertion 'captured.number > 0' failed at " FILE_TEXT
                     "; nothing\n");
    ck_assert_uint_eq(captured.number, 1);
}

START_TEST(an_assertion_aborts_when_its_hook_returns)
{
    capture_log();
    ck_assert(sxe_log_set_fatal_hook(jump_out) == NULL);
    ck_assert(sxe_log_set_fatal_hook(expect_one_line) == jump_out);
    SXE_ASSERT(captured.number > 0, "nothing");
}
END_TEST

static void
leave_with_42(void)
{
    _exit(42);
}

START_TEST(a_hook_may_exit)
{
    capture_log();
    sxe_log_set_fatal_hook(leave_with_42);
    SXE_ASSERT(captured.number > 0, "nothing");
}
END_TEST

START_TEST(a_long_assertion_is_cut)
{
    static char text[2 * SXE_LOG_LINE_MAX];

    memset(text, 'a', sizeof(text) - 1);
    capture_log();
    sxe_log_set_fatal_hook(jump_out);
    if (setjmp(out) == 0)
        SXE_ASSERT(text[0] == 'b', "%s", text);
    ck_assert_uint_eq(strlen(captured.lines[0]), SXE_LOG_LINE_MAX);
}
END_TEST

START_TEST(what_cannot_happen_is_an_assertion)
{
    volatile int one = 1;

    capture_log();
    sxe_log_set_fatal_hook(jump_out);
    ck_assert(SXE_ALWAYS(one == 1));
    ck_assert(!SXE_NEVER(one == 2));
    if (setjmp(out) == 0)
        ck_assert_int_eq(SXE_ALWAYS(one == 2), 0);
    if (setjmp(out) == 0)
        ck_assert_int_eq(SXE_NEVER(one == 1), 1);
    CHECK_LINES("------ 1 - ERROR: assertion 'one == 2' failed at " FILE_TEXT
                "; what cannot happen did\n",
                "------ 1 - ERROR: assertion '!(one == 1)' failed at " FILE_TEXT
                "; what cannot happen did\n");
}
END_TEST

/* ---- Assertions that are not checked ---- */

#undef SXE_CHECKED
#define SXE_CHECKED 0

START_TEST(an_unchecked_build_asserts_all_the_same)
{
    capture_log();
    sxe_log_set_fatal_hook(expect_one_line);
    SXE_ASSERT(captured.number > 0, "nothing");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("log-assert");
    TCase *tcase = tcase_create("asserts");

    tcase_add_loop_test(tcase, a_failed_assertion_says_what_and_where_and_who_called, 0, 6);
    tcase_add_test(tcase, the_trace_of_an_assertion_has_no_calls_that_are_over);
    tcase_add_test(tcase, the_trace_of_an_assertion_counts_calls_that_were_too_deep);
    tcase_add_test(tcase, a_true_assertion_does_nothing_and_evaluates_once);
    tcase_add_test_raise_signal(tcase, an_assertion_without_hook_aborts, SIGABRT);
    tcase_add_test_raise_signal(tcase, an_assertion_aborts_when_its_hook_returns, SIGABRT);
    tcase_add_exit_test(tcase, a_hook_may_exit, 42);
    tcase_add_test(tcase, a_long_assertion_is_cut);
    tcase_add_test(tcase, what_cannot_happen_is_an_assertion);
    tcase_add_test_raise_signal(tcase, an_unchecked_build_asserts_all_the_same, SIGABRT);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
