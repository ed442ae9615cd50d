/* SPDX-License-Identifier: MIT
 *
 * --stages: which values are accepted, and the messages for others.
 */
#include <stdlib.h>
#include <string.h>

#include "captured.h"
#include "command-line.h"
#include "command.h"
#include "has.h"
#include "sxe-time.h"
#include "test-main.h"

static struct load_command command;
static const struct load_plan *const plan = &command.plan;
static char errors[4000];
static char *words[16];

static int
parse(const char *const *argv)
{
    struct captured err = capture(STDERR_FILENO, tmpfile());
    int argc = 0;
    int result;

    for (; argv[argc] != NULL; argc++) {
        free(words[argc]);
        words[argc] = strdup(argv[argc]);
    }
    load_command_free(&command);
    result = load_command_parse(&command, argc, words);
    captured_text(&err, errors, sizeof(errors));
    return result;
}
#define PARSE(...) parse((const char *const[]){"sxe-http", __VA_ARGS__, NULL})
#define GOOD(...)  ck_assert_msg(PARSE(__VA_ARGS__) == COMMAND_LINE_GO_ON, "%s", errors)

static void
teardown(void)
{
    load_command_free(&command);
    command = (struct load_command){0};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        free(words[i]);
        words[i] = NULL;
    }
}

static void
expect_stage(unsigned nth, uint64_t end_ms, double rate)
{
    ck_assert_uint_eq(plan->stages[nth].end_ns, end_ms * SXE_NS_PER_MS);
    ck_assert_double_eq(plan->stages[nth].rate, rate);
}

START_TEST(each_stage_has_a_time_and_the_rate_at_its_end)
{
    GOOD("--stages", "0:10s,5k:1m,5k:2m,0:30s");
    ck_assert_uint_eq(plan->stages_number, 4);
    expect_stage(0, 10000, 0);
    expect_stage(1, 70000, 5000);
    expect_stage(2, 190000, 5000);
    expect_stage(3, 220000, 0);
    ck_assert_uint_eq(plan->duration_ns, 220 * SXE_NS_PER_SECOND);
    ck_assert_int_eq(plan->stop, LOAD_STOP_TIME);
    ck_assert_int_eq(plan->model, LOAD_PARTLY_OPEN);
    ck_assert_double_eq(plan->rate, 0);
    ck_assert_double_eq(plan->rate_end, 0);
    ck_assert(!load_plan_is_level(plan));
}
END_TEST

START_TEST(times_have_all_units_and_may_be_0)
{
    GOOD("--stages", "1.5k:0,0.5:250ms,2:1000us,3:0.001h,1G:2,4:1000000ns,5:0.0001d", "--open");
    ck_assert_uint_eq(plan->stages_number, 7);
    expect_stage(0, 0, 1500);
    expect_stage(1, 250, 0.5);
    expect_stage(2, 251, 2);
    expect_stage(3, 3851, 3);
    expect_stage(4, 5851, 1e9);
    expect_stage(5, 5852, 4);
    expect_stage(6, 14492, 5);
    ck_assert_int_eq(plan->model, LOAD_OPEN);
}
END_TEST

START_TEST(it_goes_with_what_a_rate_goes_with)
{
    GOOD("--stages", "5:1s", "--arrivals", "fixed", "--deadline", "1s");
    GOOD("--stages", "5:1s", "--trials", "6", "--until-ci", "p50:5%");
    GOOD("--stages", "5:1s,6:1s", "--threshold", "stage2.p99<1s", "--threshold", "errors<1%");
    GOOD("--stages", "5:1s", "--shard", "2/3", "--probe", "10");
}
END_TEST

#define THIRTY_TWO                                                                                 \
    "1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1," \
    "1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1"
#define LIST "it must be a list of RATE:TIME"

static const struct {
    const char *stages;
    const char *argv[2];
    const char *says;
} refused[] = {
    {"", {NULL}, LIST},
    {"5", {NULL}, LIST},
    {"5:", {NULL}, LIST},
    {"5:x", {NULL}, LIST},
    {"5:1s,", {NULL}, LIST},
    {"5:1s;6:1s", {NULL}, LIST},
    {"5:1sec", {NULL}, LIST},
    {"5k/s:1s", {NULL}, LIST},
    {"-5:1s", {NULL}, LIST},
    {"2G:1s", {NULL}, LIST},
    {"nan:1s", {NULL}, LIST},
    {":1s", {NULL}, LIST},
    {"0:10s,0:1s", {NULL}, "all its rates are 0"},
    {"5:0", {NULL}, "less than 1 ms or more than a day"},
    {"5:1d,5:1s", {NULL}, "less than 1 ms or more than a day"},
    {"5:99999999h", {NULL}, "less than 1 ms or more than a day"},
    {THIRTY_TWO ",1:1", {NULL}, "more than 32 stages"},
    {"5:1s", {"-d", "1"}, "it cannot be combined with -d"},
    {"5:1s", {"-n", "1"}, "it cannot be combined with -n"},
    {"5:1s", {"--requests", "1"}, "it cannot be combined with --requests"},
    {"5:1s", {"-R", "1"}, "it cannot be combined with -R"},
    {"5:1s", {"--replay", "x"}, "it cannot be combined with --replay"},
    {"5:1s", {"--find", "p99<1s"}, "it cannot be combined with --find"},
    {"5:1s", {"--warmup", "1"}, "--stages cannot be combined with --warmup"},
    {"5:1s", {"--warmup", "auto"}, "--stages cannot be combined with --warmup"},
    {"5:1s", {"--think", "1"}, "combined with a rate"},
    {"5:1s", {"--until-ci", "5%"}, "the rate, which is given"},
    {"5:1s", {"--threshold", "stage2.p99<1s"}, "is about stage 2, but there are 1"},
};

START_TEST(what_cannot_be_is_said)
{
    ck_assert_int_eq(PARSE("--stages", refused[_i].stages, refused[_i].argv[0],
                           refused[_i].argv[0] != NULL ? refused[_i].argv[1] : NULL),
                     COMMAND_LINE_WRONG);
    check_has(errors, refused[_i].says);
}
END_TEST

START_TEST(without_stages_no_condition_is_about_one)
{
    ck_assert_int_eq(PARSE("--threshold", "stage1.p99<1s", "-d", "1"), COMMAND_LINE_WRONG);
    check_has(errors, "is about stage 1, but there are 0 (--stages)");
    ck_assert_int_eq(PARSE("--find", "stage1.p99<1s"), COMMAND_LINE_WRONG);
    check_has(errors, "is about stage 1, but there are 0 (--stages)");
}
END_TEST

START_TEST(there_may_be_32_of_them)
{
    GOOD("--stages", THIRTY_TWO);
    ck_assert_uint_eq(plan->stages_number, LOAD_STAGES_MAX);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-command-stages");
    TCase *tcase = tcase_create("stages");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, each_stage_has_a_time_and_the_rate_at_its_end);
    tcase_add_test(tcase, times_have_all_units_and_may_be_0);
    tcase_add_test(tcase, it_goes_with_what_a_rate_goes_with);
    tcase_add_loop_test(tcase, what_cannot_be_is_said, 0,
                        (int)(sizeof(refused) / sizeof(refused[0])));
    tcase_add_test(tcase, without_stages_no_condition_is_about_one);
    tcase_add_test(tcase, there_may_be_32_of_them);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
