/* SPDX-License-Identifier: MIT
 *
 * Tests the log macros of libsxe 2010: every name, in checked and in unchecked code.
 */
#include <setjmp.h>
#include <stdio.h>

#include "capture-log.h"
#include "sxe-util.h"
#include "test-main.h"

#define EACH_LEVEL(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)

struct thing {
    unsigned id;
};

static struct thing thing = {9};

/* The level of today that a level of 2010 stands for. */
static int
today(int level)
{
    return level > 7 ? level - 2 : level;
}

static jmp_buf out;

static void
jump_out(void)
{
    longjmp(out, 1);
}

static void
start_2010(void)
{
    capture_log();
    sxe_log_set_level(SXE_LOG_DUMP);
    sxe_log_set_fatal_hook(jump_out);
}

static void
check_line(unsigned nth, const char *id, int level, const char *text)
{
    char expected[100];

    snprintf(expected, sizeof(expected), "%s %d %s\n", id, today(level), text);
    ck_assert_str_eq(log_line(nth), expected);
}

/* Lines with each number of arguments at one level, without an id and with one. */
#define LINES(level)                                                      \
    static void lines##level(struct thing *this)                          \
    {                                                                     \
        SXEL##level("x");                                                 \
        SXEL##level##0("x");                                              \
        SXEL##level##1("%d", 1);                                          \
        SXEL##level##2("%d%d", 1, 2);                                     \
        SXEL##level##3("%d%d%d", 1, 2, 3);                                \
        SXEL##level##4("%d%d%d%d", 1, 2, 3, 4);                           \
        SXEL##level##5("%d%d%d%d%d", 1, 2, 3, 4, 5);                      \
        SXEL##level##6("%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6);                 \
        SXEL##level##7("%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7);            \
        SXEL##level##8("%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8);       \
        SXEL##level##9("%d%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8, 9);  \
        SXEL##level##I("x");                                              \
        SXEL##level##0I("x");                                             \
        SXEL##level##1I("%d", 1);                                         \
        SXEL##level##2I("%d%d", 1, 2);                                    \
        SXEL##level##3I("%d%d%d", 1, 2, 3);                               \
        SXEL##level##4I("%d%d%d%d", 1, 2, 3, 4);                          \
        SXEL##level##5I("%d%d%d%d%d", 1, 2, 3, 4, 5);                     \
        SXEL##level##6I("%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6);                \
        SXEL##level##7I("%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7);           \
        SXEL##level##8I("%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8);      \
        SXEL##level##9I("%d%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8, 9); \
    }

/* The ten names of an entry, of a return and of a dump, and those of an assertion, which holds. */
#define EACH_SPELLING(type, level, ...) \
    SXE##type##level(__VA_ARGS__);      \
    SXE##type##level##0(__VA_ARGS__);   \
    SXE##type##level##1(__VA_ARGS__);   \
    SXE##type##level##2(__VA_ARGS__);   \
    SXE##type##level##3(__VA_ARGS__);   \
    SXE##type##level##4(__VA_ARGS__);   \
    SXE##type##level##5(__VA_ARGS__);   \
    SXE##type##level##6(__VA_ARGS__);   \
    SXE##type##level##7(__VA_ARGS__);   \
    SXE##type##level##8(__VA_ARGS__);   \
    SXE##type##level##9(__VA_ARGS__);   \
    SXE##type##level##I(__VA_ARGS__);   \
    SXE##type##level##0I(__VA_ARGS__);  \
    SXE##type##level##1I(__VA_ARGS__);  \
    SXE##type##level##2I(__VA_ARGS__);  \
    SXE##type##level##3I(__VA_ARGS__);  \
    SXE##type##level##4I(__VA_ARGS__);  \
    SXE##type##level##5I(__VA_ARGS__);  \
    SXE##type##level##6I(__VA_ARGS__);  \
    SXE##type##level##7I(__VA_ARGS__);  \
    SXE##type##level##8I(__VA_ARGS__);  \
    SXE##type##level##9I(__VA_ARGS__)

enum { SPELLINGS = 22 };

static int asserted;
static int verified;

#define OTHERS(level)                                             \
    static void others##level(struct thing *this)                 \
    {                                                             \
        EACH_SPELLING(E, level, "f()");                           \
        EACH_SPELLING(R, level, "return");                        \
        EACH_SPELLING(D, level, "abc", 3);                        \
        EACH_SPELLING(A, level, ++asserted > 0, "%d", asserted);  \
        EACH_SPELLING(V, level, ++verified, > 0, "%d", verified); \
    }

#define FAILING(level)                                          \
    static void failing_assertion##level(struct thing *this)    \
    {                                                           \
        SXEA##level##1I(verified < 0, "verified %d", verified); \
    }                                                           \
    static void failing_verification##level(struct thing *this) \
    {                                                           \
        SXEV##level##0I(++verified, < 0, "negative wanted");    \
    }

#define FUNCTIONS(level) LINES(level) OTHERS(level) FAILING(level)
#define TABLE(level) \
    {lines##level, others##level, failing_assertion##level, failing_verification##level},

struct functions {
    void (*lines)(struct thing *);
    void (*others)(struct thing *);
    void (*failing_assertion)(struct thing *);
    void (*failing_verification)(struct thing *);
};

#undef SXE_CHECKED
#define SXE_CHECKED 1
EACH_LEVEL(FUNCTIONS)
static const struct functions checked[] = {EACH_LEVEL(TABLE)};

/* ---- Checked ---- */

static void
check_all_lines(int level, struct thing *this, const char *id)
{
    char digits[] = "- 123456789";

    start_2010();
    checked[level - 1].lines(this);
    ck_assert_uint_eq(captured.number, SPELLINGS);
    for (unsigned i = 0; i < SPELLINGS; i++) {
        unsigned arguments = i % 11 < 2 ? 0 : i % 11 - 1;

        memcpy(digits, "- 123456789", sizeof(digits));
        digits[2 + arguments] = '\0';
        check_line(i, i < 11 ? "------" : id, level, arguments == 0 ? "- x" : digits);
    }
}

START_TEST(lines_of_each_level_take_0_to_9_arguments)
{
    check_all_lines(_i, &thing, "     9");
    check_all_lines(_i, NULL, "------");
}
END_TEST

START_TEST(entries_returns_dumps_and_assertions_have_all_their_names)
{
    start_2010();
    checked[_i - 1].others(&thing);
    ck_assert_uint_eq(captured.number, 2 * SPELLINGS + 2 * SPELLINGS + SPELLINGS);
    for (unsigned i = 0; i < captured.number; i++)
        ck_assert_int_eq(captured.levels[i], today(_i));
    check_line(0, "------", _i, "+ f()");
    check_line(2 * SPELLINGS - 2, "     9", _i, "+ f()");
    check_line(2 * SPELLINGS, "------", _i, "  - return");
    check_line(4 * SPELLINGS - 2, "     9", _i, "- return");
    ck_assert_ptr_nonnull(strstr(log_line(4 * SPELLINGS), " 61 62 63 "));
    ck_assert_int_eq(asserted, SPELLINGS);
    ck_assert_int_eq(verified, SPELLINGS);
}
END_TEST

START_TEST(a_failed_assertion_stops_in_checked_code_at_each_level)
{
    start_2010();
    if (setjmp(out) == 0) {
        checked[_i - 1].failing_assertion(&thing);
        ck_abort_msg("it went on");
    }
    ck_assert(strncmp(log_line(0), "     9 1 - ERROR: assertion 'verified < 0' failed at ", 52) ==
              0);
    ck_assert_ptr_nonnull(strstr(log_line(0), "; verified 0\n"));
}
END_TEST

START_TEST(a_failed_verification_stops_in_checked_code_at_each_level)
{
    start_2010();
    if (setjmp(out) == 0) {
        checked[_i - 1].failing_verification(NULL);
        ck_abort_msg("it went on");
    }
    ck_assert(strncmp(log_line(0), "------ 1 - ERROR: assertion '++verified < 0' failed", 51) == 0);
    ck_assert_ptr_nonnull(strstr(log_line(0), "; negative wanted\n"));
    ck_assert_int_eq(verified, 1);
}
END_TEST

/* ---- Unchecked ---- */

#undef SXE_CHECKED
#define SXE_CHECKED 0
#undef FUNCTIONS
#undef TABLE
#define UNCHECKED(level)                                          \
    static void unchecked##level(struct thing *this)              \
    {                                                             \
        int evaluated = 0;                                        \
                                                                  \
        SXEL##level##1I("%d", ++evaluated);                       \
        ck_assert_int_eq(evaluated, (level) <= 5);                \
        SXEE##level##1I("f(%d)", ++evaluated);                    \
        SXER##level##1I("return %d", ++evaluated);                \
        ck_assert_int_eq(evaluated, (level) <= 5);                \
        SXED##level##0(&evaluated, (size_t)++evaluated);          \
        ck_assert_int_eq(evaluated, (level) <= 5 ? 2 : 0);        \
        SXEA##level##0(++evaluated > 0, "message");               \
        ck_assert_int_eq(evaluated, (level) <= 5 ? 3 : 0);        \
        SXEV##level##0(++evaluated, > 0, "message");              \
        ck_assert_int_eq(evaluated, (level) <= 5 ? 4 : 1);        \
    }                                                             \
    static void unchecked_assertion##level(struct thing *this)    \
    {                                                             \
        SXEA##level##0I(verified < 0, "negative wanted");         \
    }                                                             \
    static void unchecked_verification##level(struct thing *this) \
    {                                                             \
        SXEV##level##0I(++verified, < 0, "negative wanted");      \
    }
#define TABLE(level) \
    {NULL, unchecked##level, unchecked_assertion##level, unchecked_verification##level},
EACH_LEVEL(UNCHECKED)
static const struct functions unchecked[] = {EACH_LEVEL(TABLE)};

START_TEST(unchecked_code_has_levels_up_to_5_and_no_trace)
{
    start_2010();
    unchecked[_i - 1].others(&thing);
    ck_assert_uint_eq(captured.number, _i <= 5 ? 2 : 0);
}
END_TEST

START_TEST(unchecked_code_asserts_up_to_level_5)
{
    volatile bool stopped = true;

    start_2010();
    if (setjmp(out) == 0) {
        unchecked[_i - 1].failing_assertion(&thing);
        stopped = false;
    }
    ck_assert(stopped == (_i <= 5));
    ck_assert_uint_eq(captured.number, _i <= 5 ? 1 : 0);
}
END_TEST

START_TEST(unchecked_code_verifies_up_to_level_5_and_evaluates_at_all)
{
    volatile bool stopped = true;

    start_2010();
    if (setjmp(out) == 0) {
        unchecked[_i - 1].failing_verification(&thing);
        stopped = false;
    }
    ck_assert(stopped == (_i <= 5));
    ck_assert_int_eq(verified, 1);
}
END_TEST

/* ---- As programs of 2010 use the macros ---- */

static int
single_exit(struct thing *this, int n)
{
    int result = -1;

    SXEE61I("single_exit(n=%d)", n);
    if (n == 0)
        goto SXE_EARLY_OUT;
    if (n < 0)
        goto SXE_ERROR_OUT;
    result = n;

SXE_EARLY_OR_ERROR_OUT:
    SXER61I("return %d", result);
    return result;
}

static void
ends_in_a_return(struct thing *this)
{
    SXE_UNUSED_ARGUMENT(this);
    SXEE60I("ends_in_a_return()");

SXE_EARLY_OR_ERROR_OUT:
    SXER60I("return");
}

START_TEST(a_label_may_stand_before_a_return)
{
    start_2010();
    ck_assert_int_eq(single_exit(&thing, 3), 3);
    ck_assert_int_eq(single_exit(NULL, 0), -1);
    ck_assert_int_eq(single_exit(&thing, -1), -1);
    ends_in_a_return(NULL);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

#undef SXE_CHECKED
#define SXE_CHECKED 1

static int
returns_the_wrong_way(struct thing *this, bool early)
{
    SXEE60I("returns_the_wrong_way()");
    if (early)
        return 1;
    SXER60I("return 2");
    return 2;
}

START_TEST(entries_and_returns_need_not_balance)
{
    struct thing *this = &thing;

    start_2010();
    for (int i = 0; i < 100; i++)
        returns_the_wrong_way(this, i % 3 != 0);
    captured.number = 0;
    SXEL10I("level");
    check_line(0, "     9", 1, "- level");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("log-2010");
    TCase *tcase = tcase_create("2010");

    tcase_add_loop_test(tcase, lines_of_each_level_take_0_to_9_arguments, 1, 10);
    tcase_add_loop_test(tcase, entries_returns_dumps_and_assertions_have_all_their_names, 1, 10);
    tcase_add_loop_test(tcase, a_failed_assertion_stops_in_checked_code_at_each_level, 1, 10);
    tcase_add_loop_test(tcase, a_failed_verification_stops_in_checked_code_at_each_level, 1, 10);
    tcase_add_loop_test(tcase, unchecked_code_has_levels_up_to_5_and_no_trace, 1, 10);
    tcase_add_loop_test(tcase, unchecked_code_asserts_up_to_level_5, 1, 10);
    tcase_add_loop_test(tcase, unchecked_code_verifies_up_to_level_5_and_evaluates_at_all, 1, 10);
    tcase_add_test(tcase, a_label_may_stand_before_a_return);
    tcase_add_test(tcase, entries_and_returns_need_not_balance);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
