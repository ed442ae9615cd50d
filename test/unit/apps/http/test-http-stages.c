/* SPDX-License-Identifier: MIT
 *
 * Loads with stages in the reports: rows, marks and the JSON; and conditions that are about a
 * stage.
 */
#include "stages.h"

#include <jansson.h>

#include "has.h"
#include "http-run-fixture.h"
#include "output.h"
#include "summary-sheet.h"
#include "summary.h"
#include "test-main.h"

#define SECOND UINT64_C(1000000000)

static struct made made;

/* A load of 4 s: 1 s idle, 1 s up to 4000/s, a step to 1000/s, 2 s of that. */
static void
make_stages(struct load_plan *plan)
{
    static const struct load_stage stages[] = {
        {SECOND, 0}, {2 * SECOND, 4000}, {2 * SECOND, 1000}, {4 * SECOND, 1000}};

    memcpy(plan->stages, stages, sizeof(stages));
    plan->stages_number = 4;
    plan->model = LOAD_PARTLY_OPEN;
    plan->rate = 0;
    plan->rate_end = 1000;
}

/* 2,000 queries of 5 ms in the second stage; 10 of them failed, and 100 were not sent. */
static void
fill_stages(struct load_result *result)
{
    struct load_stage_result *stage = &result->by_stage[1];

    result->stages = 4;
    stage->offered += 2100;
    stage->sent += 2000;
    stage->ok += 1990;
    stage->errors += 10;
    stage->in_time += 1900;
    for (unsigned i = 0; i < 1990; i++)
        load_histogram_record(&stage->response, 5000000);
    for (unsigned i = 0; i < 10; i++)
        load_histogram_record_at_least(&stage->response, 10 * SECOND);
}

static void
make_staged(unsigned trials)
{
    make_run(&made, trials);
    make_stages(&made.plan);
    for (unsigned i = 0; i < trials; i++) {
        fill_stages(made.run.trials[i].result);
        fill_stages(made.run.total);
    }
}

static char *
summary(void)
{
    FILE *out = tmpfile();

    load_summary_plan(out, &made.plan);
    load_summary_print(out, &made.run, false);
    return text_of(out, NULL);
}

START_TEST(each_stage_that_takes_time_has_a_row)
{
    char *text;

    make_staged(1);
    text = summary();
    check_has(text, "partly open: 4 stages up to 4000/s Poisson, 64 connections for 4 s");
    check_has(text,
              "\n                     rate      for  offered     ok/s       p50       p95       "
              "p99       max  errors\n");
    check_has(text,
              "\nstage 1               0/s      1 s        0        0       n/a       n/a       "
              "n/a       n/a       0\n");
    check_has(text, "\nstage 2      0 to 4.00k/s      1 s    2.10k    1.90k   5.00 ms   5.00 ms   "
                    "5.00 ms  > 10.0 s      10\n");
    check_has(text, "\nstage 4           1.00k/s      2 s ");
    ck_assert_ptr_null(strstr(text, "stage 3"));
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(marks_stand_below_the_columns)
{
    struct load_sheet sheet;

    make_staged(1);
    load_sheet_init(&sheet, stdout);
    sheet.columns = 100;
    load_summary_stage_marks(&sheet, &made.plan, SECOND / 10, 40);
    ck_assert_uint_eq(sheet.number, 1);
    ck_assert_str_eq(sheet.lines[0].text, "stages    1         2         4");
    /* No two marks in a column, and none beyond the end. */
    load_summary_stage_marks(&sheet, &made.plan, 3 * SECOND / 2, 40);
    ck_assert_str_eq(sheet.lines[1].text, "stages    14");
    load_summary_stage_marks(&sheet, &made.plan, SECOND / 10, 15);
    ck_assert_str_eq(sheet.lines[2].text, "stages    1         2");
    made.plan.stages_number = 0;
    load_summary_stage_marks(&sheet, &made.plan, SECOND / 10, 40);
    load_summary_stages(&sheet, &made.run);
    ck_assert_uint_eq(sheet.number, 3);
    free_run(&made);
}
END_TEST

START_TEST(the_tenth_takes_two_columns)
{
    struct load_sheet sheet;

    make_staged(1);
    made.plan.stages_number = 12;
    for (unsigned i = 0; i < 12; i++)
        made.plan.stages[i] = (struct load_stage){(i + 1) * SECOND, 5};
    load_sheet_init(&sheet, stdout);
    sheet.columns = 100;
    load_summary_stage_marks(&sheet, &made.plan, SECOND, 40);
    ck_assert_str_eq(sheet.lines[0].text, "stages    1234567891012");
    /* So many rows are less important than the figures of the whole run. */
    load_summary_stages(&sheet, &made.run);
    ck_assert_int_eq(sheet.lines[1].weight, LOAD_WEIGHT_KINDS);
    free_run(&made);
}
END_TEST

START_TEST(a_narrow_page_has_fewer_columns)
{
    struct load_sheet sheet;

    make_staged(1);
    load_sheet_init(&sheet, stdout);
    sheet.columns = 72;
    load_summary_stages(&sheet, &made.run);
    ck_assert_uint_eq(sheet.number, 4);
    ck_assert_str_eq(sheet.lines[2].text,
                     "stage 2      0 to 4.00k/s    2.10k   5.00 ms   5.00 ms   "
                     "5.00 ms      10");
    free_run(&made);
}
END_TEST

START_TEST(rates_without_stages_are_as_they_were)
{
    struct load_sheet sheet;

    make_run(&made, 1);
    made.plan.model = LOAD_OPEN;
    load_sheet_init(&sheet, stdout);
    load_sheet_begin(&sheet, LOAD_WEIGHT_2010, LOAD_PAINT_NONE);
    load_summary_rate(&sheet, &made.plan);
    made.plan.rate_end = 10;
    load_summary_rate(&sheet, &made.plan);
    made.plan.stages_number = 1;
    made.plan.stages[0] = (struct load_stage){SECOND, 7};
    load_summary_rate(&sheet, &made.plan);
    ck_assert_str_eq(sheet.lines[0].text, "5000/s 5000/s to 10/s 1 stage up to 7/s ");
    free_run(&made);
}
END_TEST

/* ---- The JSON ---- */

static json_t *
written(void)
{
    FILE *out = tmpfile();
    char *text;
    json_t *root;

    ck_assert_int_eq(load_output_json(out, &made.run), 0);
    text = text_of(out, NULL);
    root = json_loads(text, 0, NULL);
    free(text);
    return root;
}

static double
number_of(const json_t *root, const char *result, unsigned stage, const char *name)
{
    const json_t *stages = json_object_get(json_object_get(root, result), "stages");

    return json_number_value(json_object_get(json_array_get(stages, stage), name));
}

START_TEST(the_json_has_each_stage)
{
    json_t *root, *stages;

    make_staged(2);
    root = written();
    stages = json_object_get(json_object_get(root, "total"), "stages");
    ck_assert_uint_eq(json_array_size(stages), 4);
    ck_assert_double_eq(number_of(root, "total", 1, "from_s"), 1);
    ck_assert_double_eq(number_of(root, "total", 1, "seconds"), 2);
    ck_assert_double_eq(number_of(root, "total", 1, "rate_from"), 0);
    ck_assert_double_eq(number_of(root, "total", 1, "rate_to"), 4000);
    ck_assert_double_eq(number_of(root, "total", 1, "offered"), 4200);
    ck_assert_double_eq(number_of(root, "total", 1, "rate"), 1900);
    ck_assert_double_eq(number_of(root, "total", 2, "rate_from"), 1000);
    ck_assert(json_is_null(json_object_get(json_array_get(stages, 2), "rate")));
    stages = json_object_get(json_object_get(root, "plan"), "stages");
    ck_assert_double_eq(json_number_value(json_object_get(json_array_get(stages, 3), "seconds")),
                        2);
    json_decref(root);
    free_run(&made);
}
END_TEST

/* The run ended after 1.5 s. */
START_TEST(a_stage_that_was_not_finished_took_as_long_as_it_took)
{
    make_staged(1);
    made.run.trials[0].result->elapsed_ns = 3 * SECOND / 2;
    ck_assert_double_eq(load_stage_seconds(&made.run, made.run.total, 0), 1);
    ck_assert_double_eq(load_stage_seconds(&made.run, made.run.total, 1), 0.5);
    ck_assert_double_eq(load_stage_seconds(&made.run, made.run.trials[0].result, 1), 0.5);
    ck_assert_double_eq(load_stage_seconds(&made.run, made.run.total, 3), 0);
    free_run(&made);
}
END_TEST

/* ---- Conditions ---- */

static const struct {
    const char *text;
    double figure;
    bool holds, is_told;
} conditions[] = {
    {"stage2.p99<6ms", 5003000, true, true},
    {"stage2.response.p50<6ms", 5003000, true, true},
    {"stage2.p99<5ms", 5003000, false, true},
    {"stage2.max<20s", 1e10, false, true},
    {"stage2.errors<=0.5%", 0.005, true, true},
    {"stage2.errors<0.5%", 0.005, false, true},
    {"stage2.skipped<5%", 100. / 2100, true, true},
    {"stage2.achieved>95%", 2000. / 2100, true, true},
    {"stage1.p50<1h", 0, false, false},
    {"stage1.skipped<1%", 0, false, false},
    {"stage32.p50<1h", 0, false, false},
    {"stage5.errors<1%", 0, false, false},
};

START_TEST(a_condition_may_be_about_a_stage)
{
    struct load_threshold threshold;
    struct load_evidence evidence;
    bool is_told = true;

    make_staged(1);
    ck_assert_ptr_null(load_threshold_parse(&threshold, conditions[_i].text));
    ck_assert_double_eq_tol(load_threshold_figure(&threshold, made.run.total),
                            conditions[_i].figure, conditions[_i].figure * 1e-3 + 1e-12);
    ck_assert(load_threshold_holds(&threshold, made.run.total, &is_told) == conditions[_i].holds);
    ck_assert(is_told == conditions[_i].is_told);
    ck_assert(!load_threshold_is_of_errors(&threshold));
    ck_assert(!load_threshold_is_of_delivery(&threshold));
    load_threshold_evidence(&threshold, made.run.total, &evidence);
    ck_assert_double_ge(evidence.samples, 0);
    free_run(&made);
}
END_TEST

static const char *const wrongs[] = {"stage.p99<1s",
                                     "stage0.p99<1s",
                                     "stage33.p99<1s",
                                     "stage2p99<1s",
                                     "stage2.service.p99<1s",
                                     "stage2.rate>5",
                                     "stage99999999999999999999.p99<1s"};

START_TEST(a_condition_about_no_stage_is_refused)
{
    struct load_threshold threshold;

    check_has(load_threshold_parse(&threshold, wrongs[_i]), "write stage2.p99<20ms");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-stages");
    TCase *tcase = tcase_create("stages");

    tcase_add_test(tcase, each_stage_that_takes_time_has_a_row);
    tcase_add_test(tcase, marks_stand_below_the_columns);
    tcase_add_test(tcase, the_tenth_takes_two_columns);
    tcase_add_test(tcase, a_narrow_page_has_fewer_columns);
    tcase_add_test(tcase, rates_without_stages_are_as_they_were);
    tcase_add_test(tcase, the_json_has_each_stage);
    tcase_add_test(tcase, a_stage_that_was_not_finished_took_as_long_as_it_took);
    tcase_add_loop_test(tcase, a_condition_may_be_about_a_stage, 0,
                        (int)(sizeof(conditions) / sizeof(conditions[0])));
    tcase_add_loop_test(tcase, a_condition_about_no_stage_is_refused, 0,
                        (int)(sizeof(wrongs) / sizeof(wrongs[0])));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
