/* SPDX-License-Identifier: MIT
 *
 * Tests call traces, which only checked builds have.
 */
#undef SXE_CHECKED
#define SXE_CHECKED 1

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

#include "capture-log.h"
#include "fake-os.h"
#include "test-main.h"

#if !__GLIBC_PREREQ(2, 33)
#    define mallinfo2 mallinfo
#endif

#define NOT_INLINED __attribute__((noinline))
#define INLINED     inline __attribute__((always_inline))

static jmp_buf out;

static void
jump_out(void)
{
    longjmp(out, 1);
}

/* A volatile pointer: the compiler must not see that the function never returns, and warn of it. */
static void (*volatile leave)(void) = jump_out;

static void
start_trace(void)
{
    capture_log();
    sxe_log_set_level(SXE_LOG_DUMP);
}

/* ---- Calls that return normally ---- */

static NOT_INLINED int
inner(int n)
{
    SXE_ENTER_ID(9, "inner(n=%d)", n);
    SXE_INFO("in inner");
    SXE_LEAVE_ID(9, "return %d", n + 1);
    return n + 1;
}

static NOT_INLINED void
outer(void)
{
    SXE_ENTER("outer()");
    SXE_INFO("returned %d", inner(3));
    SXE_LEAVE("return");
}

START_TEST(lines_are_indented_by_the_calls_around_them)
{
    start_trace();
    outer();
    SXE_INFO("after");
    CHECK_LINES("------ 6 + outer()\n",                   //
                "------ 6   { // test-log-trace.c:#\n",   //
                "     9 6   + inner(n=3)\n",              //
                "     9 6     { // test-log-trace.c:#\n", //
                "------ 4     - in inner\n",              //
                "     9 6     - return 4\n",              //
                "     9 6     } // test-log-trace.c:#\n", //
                "------ 4   - returned 4\n",              //
                "------ 6   - return\n",                  //
                "------ 6   } // test-log-trace.c:#\n",   //
                "------ 4 - after\n");
}
END_TEST

START_TEST(braces_name_the_line)
{
    char expected[64];

    start_trace();
    snprintf(expected, sizeof(expected), "------ 6   { // test-log-trace.c:%d\n", __LINE__ + 1);
    SXE_ENTER("f()");
    ck_assert_str_eq(log_line(1), expected);
}
END_TEST

START_TEST(hidden_calls_do_not_indent)
{
    capture_log();
    outer();
    CHECK_LINES("------ 4 - in inner\n", "------ 4 - returned 4\n");
}
END_TEST

static struct sxe_log_control library = SXE_LOG_CONTROL_INIT("library");
#undef SXE_LOG_CONTROL
#define SXE_LOG_CONTROL library
static NOT_INLINED void
function_of_library(void)
{
    SXE_ENTER("function_of_library()");
    outer();
    SXE_LEAVE("return");
}

#undef SXE_LOG_CONTROL
#define SXE_LOG_CONTROL sxe_log_program

START_TEST(calls_are_hidden_by_the_level_of_their_library)
{
    start_trace();
    sxe_log_set_level(SXE_LOG_INFORMATION);
    sxe_log_set_library_level("library", SXE_LOG_TRACE);
    function_of_library();
    CHECK_LINES("------ 6 + function_of_library()\n",   //
                "------ 6   { // test-log-trace.c:#\n", //
                "------ 4   - in inner\n",              //
                "------ 4   - returned 4\n",            //
                "------ 6   - return\n",                //
                "------ 6   } // test-log-trace.c:#\n");
}
END_TEST

START_TEST(changing_the_level_indents_anew)
{
    start_trace();
    SXE_ENTER("f()");
    sxe_log_set_level(SXE_LOG_INFORMATION);
    SXE_INFO("x");
    sxe_log_set_level(SXE_LOG_TRACE);
    SXE_INFO("y");
    ck_assert_str_eq(log_line(2), "------ 4 - x\n");
    ck_assert_str_eq(log_line(3), "------ 4   - y\n");
}
END_TEST

START_TEST(trace_lines_and_dumps_are_indented_too)
{
    start_trace();
    SXE_ENTER("f()");
    SXE_TRACE("x");
    SXE_TRACE_ID(1, "y");
    SXE_DUMP("abc", 3);
    SXE_DUMP_ID(2, "abc", 3);
    ck_assert_str_eq(log_line(2), "------ 6   - x\n");
    ck_assert_str_eq(log_line(3), "     1 6   - y\n");
    ck_assert(strncmp(log_line(4), "------ 7   - ", 13) == 0);
    ck_assert(strncmp(log_line(5), "     2 7   - ", 13) == 0);
}
END_TEST

START_TEST(errno_survives_a_trace)
{
    start_trace();
    sxe_log_to_fd(-1);
    errno = EXDEV;
    outer();
    ck_assert_int_eq(errno, EXDEV);
}
END_TEST

static INLINED void
inlined(void)
{
    SXE_ENTER("inlined()");
    SXE_INFO("x");
    SXE_LEAVE("return");
}

START_TEST(an_inlined_call_is_one_deeper_like_any_other)
{
    start_trace();
    SXE_ENTER("f()");
    inlined();
    SXE_INFO("y");
    ck_assert_str_eq(log_line(2), "------ 6   + inlined()\n");
    ck_assert_str_eq(log_line(4), "------ 4     - x\n");
    ck_assert_str_eq(log_line(7), "------ 4   - y\n");
}
END_TEST

/* ---- Calls that end without their return macro ---- */

static NOT_INLINED void
forgets_to_leave(void)
{
    SXE_ENTER("forgets()");
    SXE_INFO("x");
}

START_TEST(a_forgotten_return_ends_at_the_next_line)
{
    start_trace();
    SXE_ENTER("f()");
    forgets_to_leave();
    SXE_INFO("a line with so many arguments that they go by the stack %d %d %d %d %d %d %d %d", 1,
             2, 3, 4, 5, 6, 7, 8);
    ck_assert_str_eq(log_line(5), "------ 4   - a line with so many arguments that they go by the "
                                  "stack 1 2 3 4 5 6 7 8\n");
}
END_TEST

START_TEST(a_forgotten_return_ends_at_the_next_call)
{
    start_trace();
    SXE_ENTER("f()");
    forgets_to_leave();
    forgets_to_leave();
    outer();
    SXE_LEAVE("return");
    ck_assert_str_eq(log_line(2), "------ 6   + forgets()\n");
    ck_assert_str_eq(log_line(5), "------ 6   + forgets()\n");
    ck_assert_str_eq(log_line(8), "------ 6   + outer()\n");
    ck_assert_str_eq(log_line(captured.number - 2), "------ 6   - return\n");
}
END_TEST

static NOT_INLINED void
only_logs(void)
{
    SXE_INFO("only");
}

START_TEST(a_forgotten_return_ends_at_a_line_of_the_next_function)
{
    start_trace();
    SXE_ENTER("f()");
    forgets_to_leave();
    only_logs();
    ck_assert_str_eq(log_line(5), "------ 4   - only\n");
}
END_TEST

static INLINED void
inlined_forgets(void)
{
    SXE_ENTER("inlined_forgets()");
}

START_TEST(a_forgotten_return_of_an_inlined_call_ends_with_its_caller)
{
    start_trace();
    SXE_ENTER("f()");
    inlined_forgets();
    inlined_forgets();
    SXE_LEAVE("return");
    SXE_INFO("x");
    ck_assert_str_eq(log_line(2), "------ 6   + inlined_forgets()\n");
    ck_assert_str_eq(log_line(6), "------ 6   - return\n");
    ck_assert_str_eq(log_line(8), "------ 4 - x\n");
}
END_TEST

static NOT_INLINED void
jumps(int depth)
{
    SXE_ENTER("jumps(%d)", depth);
    if (depth == 0)
        leave();
    else
        jumps(depth - 1);
    SXE_LEAVE("return");
}

START_TEST(a_longjmp_past_calls_ends_them)
{
    start_trace();
    SXE_ENTER("f()");
    if (setjmp(out) == 0)
        jumps(5);
    unsigned lines = captured.number;
    SXE_INFO("x");
    ck_assert_str_eq(log_line(lines), "------ 4   - x\n");
    outer();
    SXE_LEAVE("return");
    ck_assert_str_eq(log_line(lines + 1), "------ 6   + outer()\n");
    ck_assert_str_eq(log_line(captured.number - 2), "------ 6   - return\n");
}
END_TEST

START_TEST(a_mark_restores_the_trace_after_a_longjmp)
{
    unsigned mark = sxe_log_trace_mark();

    start_trace();
    ck_assert_uint_eq(mark, 0);
    SXE_ENTER("f()");
    mark = sxe_log_trace_mark();
    ck_assert_uint_eq(mark, 1);
    if (setjmp(out) == 0)
        jumps(5);
    ck_assert_uint_eq(sxe_log_trace_mark(), 7);
    sxe_log_trace_release(mark);
    ck_assert_uint_eq(sxe_log_trace_mark(), 1);
    sxe_log_trace_release(5);
    ck_assert_uint_eq(sxe_log_trace_mark(), 1);
}
END_TEST

static NOT_INLINED void
leaves_only(void)
{
    SXE_LEAVE("return");
}

START_TEST(a_return_without_entry_ends_nothing)
{
    start_trace();
    leaves_only();
    SXE_ENTER("f()");
    leaves_only();
    SXE_INFO("x");
    CHECK_LINES("------ 6 - return\n",                  //
                "------ 6 } // test-log-trace.c:#\n",   //
                "------ 6 + f()\n",                     //
                "------ 6   { // test-log-trace.c:#\n", //
                "------ 6   - return\n",                //
                "------ 6   } // test-log-trace.c:#\n", //
                "------ 4   - x\n");
}
END_TEST

/* ---- Very deep calls ---- */

static NOT_INLINED void
dive(int depth)
{
    SXE_ENTER("dive(%d)", depth);
    if (depth > 1)
        dive(depth - 1);
    else
        SXE_INFO("bottom");
    SXE_LEAVE("return");
}

static void
indent_of_bottom(void *user, int level, const char *line, size_t length)
{
    const char *text = line + strlen(LOG_HEAD "------ 4 ");

    (void)length;
    if (level == SXE_LOG_INFORMATION)
        *(unsigned *)user = (unsigned)strspn(text, " ");
}

START_TEST(calls_deeper_than_the_trace_are_counted)
{
    unsigned indent = 0;
    int depth = _i;

    start_trace();
    sxe_log_to_function(indent_of_bottom, &indent);
    dive(depth);
    ck_assert_uint_eq(indent,
                      2 * (unsigned)(depth < SXE_LOG_TRACE_MAX ? depth : SXE_LOG_TRACE_MAX));
    ck_assert_uint_eq(sxe_log_trace_mark(), 0);
    SXE_INFO("top");
    ck_assert_uint_eq(indent, 0);
}
END_TEST

START_TEST(a_longjmp_out_of_very_deep_calls_ends_them)
{
    unsigned indent = 99;

    start_trace();
    sxe_log_to_function(indent_of_bottom, &indent);
    SXE_ENTER("f()");
    if (setjmp(out) == 0)
        jumps(2 * SXE_LOG_TRACE_MAX);
    SXE_INFO("x");
    ck_assert_uint_eq(indent, 2);
    ck_assert_uint_eq(sxe_log_trace_mark(), 1);
}
END_TEST

/* ---- The memory of a trace ---- */

START_TEST(without_memory_calls_are_not_traced)
{
    start_trace();
    errno = EXDEV;
    fake_os_fail(FAKE_CALLOC, 1, 2, ENOMEM);
    outer();
    ck_assert_int_eq(errno, EXDEV);
    ck_assert_uint_eq(sxe_log_trace_mark(), 0);
    /* the line is not indented, because outer() is not remembered */
    ck_assert_str_eq(log_line(2), "     9 6 + inner(n=3)\n");
}
END_TEST

static void *
trace_and_return(void *unused)
{
    outer();
    return unused;
}

START_TEST(a_thread_frees_its_trace_at_its_end)
{
    struct mallinfo2 before;
    pthread_t thread;

    start_trace();
    sxe_log_to_fd(-1);
    for (int i = 0; i < 40; i++) {
        if (i == 20)
            before = mallinfo2();
        ck_assert_int_eq(pthread_create(&thread, NULL, trace_and_return, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    }
    ck_assert_uint_eq(mallinfo2().uordblks, before.uordblks);
}
END_TEST

/* ---- Calls that are not checked ---- */

#undef SXE_CHECKED
#define SXE_CHECKED 0

START_TEST(an_unchecked_build_has_no_trace_and_evaluates_nothing)
{
    int evaluated = 0;

    start_trace();
    SXE_ENTER("%d", ++evaluated);
    SXE_TRACE("%d", ++evaluated);
    SXE_DUMP("x", (size_t)++evaluated);
    SXE_DEBUG_ASSERT(++evaluated == 99, "%d", evaluated);
    SXE_LEAVE("%d", ++evaluated);
    ck_assert_int_eq(evaluated, 0);
    ck_assert_uint_eq(captured.number, 0);
    ck_assert_uint_eq(sxe_log_trace_mark(), 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("log-trace");
    TCase *returns = tcase_create("returns");
    TCase *lost = tcase_create("lost");
    TCase *memory = tcase_create("memory");

    tcase_add_test(returns, lines_are_indented_by_the_calls_around_them);
    tcase_add_test(returns, braces_name_the_line);
    tcase_add_test(returns, hidden_calls_do_not_indent);
    tcase_add_test(returns, calls_are_hidden_by_the_level_of_their_library);
    tcase_add_test(returns, changing_the_level_indents_anew);
    tcase_add_test(returns, trace_lines_and_dumps_are_indented_too);
    tcase_add_test(returns, errno_survives_a_trace);
    tcase_add_test(returns, an_inlined_call_is_one_deeper_like_any_other);
    suite_add_tcase(suite, returns);

    tcase_add_test(lost, a_forgotten_return_ends_at_the_next_line);
    tcase_add_test(lost, a_forgotten_return_ends_at_the_next_call);
    tcase_add_test(lost, a_forgotten_return_ends_at_a_line_of_the_next_function);
    tcase_add_test(lost, a_forgotten_return_of_an_inlined_call_ends_with_its_caller);
    tcase_add_test(lost, a_longjmp_past_calls_ends_them);
    tcase_add_test(lost, a_mark_restores_the_trace_after_a_longjmp);
    tcase_add_test(lost, a_return_without_entry_ends_nothing);
    tcase_add_loop_test(lost, calls_deeper_than_the_trace_are_counted, SXE_LOG_TRACE_MAX - 2,
                        SXE_LOG_TRACE_MAX + 5);
    tcase_add_test(lost, a_longjmp_out_of_very_deep_calls_ends_them);
    tcase_add_test(lost, an_unchecked_build_has_no_trace_and_evaluates_nothing);
    suite_add_tcase(suite, lost);

    tcase_add_test(memory, without_memory_calls_are_not_traced);
    tcase_add_test(memory, a_thread_frees_its_trace_at_its_end);
    suite_add_tcase(suite, memory);

    return sxe_test_main(suite);
}
