/* SPDX-License-Identifier: MIT
 *
 * Parsing and judging thresholds.
 */
#include "../../../../apps/http/stats/threshold.h"

#include <string.h>

#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define MS           UINT64_C(1000000)

/* The last ns of the bucket that contains 10 ms. */
#define P99 10007000

static struct load_threshold threshold;
static struct load_result result;

/* 1,000 samples of each time; response 10 ms (but 2 of 30 ms and 1 of 40 ms), the others
 * shorter. */
static void
fill_result(void)
{
    for (unsigned i = 0; i < 997; i++)
        load_histogram_record(&result.response, 10 * MS);
    load_histogram_record(&result.response, 30 * MS);
    load_histogram_record(&result.response, 30 * MS);
    load_histogram_record(&result.response, 40 * MS);
    for (unsigned i = 0; i < 1000; i++) {
        load_histogram_record(&result.service, 3 * MS);
        load_histogram_record(&result.first_byte, 2 * MS);
        load_histogram_record(&result.connect, 1 * MS);
    }
    result.offered = 2000;
    result.skipped[LOAD_SKIP_NO_SOCKET] = 990;
    result.skipped[LOAD_SKIP_SHED] = 10;
    result.sent = 1000;
    result.ends[LOAD_END_OK] = 995;
    result.ends[LOAD_END_RESET] = 5;
    result.elapsed_ns = 500 * MS;
}

/* ---- The grammar of thresholds ---- */

static const struct {
    const char *text;
    double figure; /* the figure in the result above */
    bool holds;
} conditions[] = {
    {"p99<20ms", P99, true},
    {"p99<10.007ms", P99, false},
    {"p99<=10.007ms", P99, true},
    {"p99>10.007ms", P99, false},
    {"p99>=10.007ms", P99, true},
    {"p99>10.006999ms", P99, true},
    {"p99<10ms", P99, false},
    {"p99 < 20ms", P99, true},
    {"  p99  <=  20ms", P99, true},
    {"p50<10008us", P99, true},
    {"p50<1s", P99, true},
    {"p50<1m", P99, true},
    {"p50<1h", P99, true},
    {"p98.5<20ms", P99, true},
    {"response.p50<20ms", P99, true},
    {"service.p90<=3ms", 3e6, true},
    {"service.p90<3ms", 3e6, false},
    {"first_byte.p50<=2ms", 2e6, true},
    {"connect.p50<=1ms", 1e6, true},
    {"max<=40ms", 40e6, true},
    {"max<40ms", 40e6, false},
    {"min>=10ms", 10e6, true},
    {"mean<=10.07ms", 10.07e6, true},
    {"service.mean<=3ms", 3e6, true},
    {"service.max<4ms", 3e6, true},
    {"service.min>0us", 3e6, true},
    {"rate>1989", 1990, true},
    {"rate>1.99k", 1990, false},
    {"rate>=1.99k", 1990, true},
    {"rate<0.002M", 1990, true},
    {"errors<1%", 0.005, true},
    {"errors<=0.5%", 0.005, true},
    {"errors<0.5%", 0.005, false},
    {"errors<0.006", 0.005, true},
    {"errors<=0", 0.005, false},
    {"skipped<=50%", 0.5, true},
    {"skipped<50%", 0.5, false},
    {"achieved>=0.5", 0.5, true},
    {"achieved>50%", 0.5, false},
};

START_TEST(a_condition_is_about_a_figure_of_the_result)
{
    const char *text = conditions[_i].text;
    bool is_told = false;

    fill_result();
    ck_assert_ptr_null(load_threshold_parse(&threshold, text));
    ck_assert_double_eq_tol(load_threshold_figure(&threshold, &result), conditions[_i].figure,
                            1e-9 * conditions[_i].figure);
    ck_assert_msg(load_threshold_holds(&threshold, &result, &is_told) == conditions[_i].holds, "%s",
                  text);
    ck_assert(is_told);
}
END_TEST

/* ---- Thresholds that cannot be judged ---- */

static const char *const untold[] = {
    "p99.1<1s",       "p99.1>1us", "p99.9<1s", "p99.999<1h",  "connect.p50>0us", "connect.max>0us",
    "service.min<1h", "rate>0",    "rate<50k", "errors<100%", "skipped<=1",      "achieved>=0",
};

static const struct {
    const char *text;
    bool can_be_sought;
} sought[] = {
    {"p99<10ms", true},  {"mean<=1us", true},      {"errors<1%", true}, {"skipped<1%", true},
    {"rate>10k", true},  {"achieved>=99%", true},  {"p99>10ms", false}, {"errors>=1%", false},
    {"rate<10k", false}, {"achieved<=99%", false},
};

START_TEST(a_rate_is_sought_for_what_ceases_to_hold_as_it_rises)
{
    ck_assert_ptr_null(load_threshold_parse(&threshold, sought[_i].text));
    ck_assert_int_eq(load_threshold_can_be_sought(&threshold), sought[_i].can_be_sought);
}
END_TEST

START_TEST(what_cannot_be_told_does_not_hold)
{
    const char *text = untold[_i];
    bool is_told = true;

    if (text[0] == 'p')
        fill_result();
    ck_assert_ptr_null(load_threshold_parse(&threshold, text));
    ck_assert_msg(!load_threshold_holds(&threshold, &result, &is_told), "%s", text);
    ck_assert(!is_told);
}
END_TEST

START_TEST(errors_behind_a_mark_are_a_part_of_what_was_carried_too)
{
    bool is_told = false;

    result.carried = 10;
    result.sent = 10;
    result.ends[LOAD_END_RESET] = 19;
    result.ends[LOAD_END_BAD_STATUS] = 1;
    ck_assert_ptr_null(load_threshold_parse(&threshold, "errors<=100%"));
    ck_assert(load_threshold_figure(&threshold, &result) == 1);
    ck_assert(load_threshold_holds(&threshold, &result, &is_told));
}
END_TEST

/* ---- Texts of thresholds ---- */

static const struct {
    const char *condition;
    double figure;
    const char *text;
    bool is_of_errors;
} told[] = {
    {"p99<1s", 3.1e6, "3.10 ms", false},      {"mean<1s", 33700, "33.7 us", false},
    {" rate>1", 50100, "50.1k/s", false},     {"errors<1%", 0.001, "0.1 %", true},
    {" errors<1%", 0, "0 %", true},           {"skipped<1%", 1, "100 %", false},
    {"achieved>1%", 0.9991, "99.9 %", false},
};

START_TEST(a_figure_is_said_in_the_unit_of_its_condition)
{
    ck_assert_ptr_null(load_threshold_parse(&threshold, told[_i].condition));
    ck_assert_str_eq(load_threshold_text(&threshold, told[_i].figure), told[_i].text);
    ck_assert_int_eq(load_threshold_is_of_errors(&threshold), told[_i].is_of_errors);
}
END_TEST

/* ---- Thresholds that are refused ---- */

static const struct {
    const char *text;
    const char *advice; /* a part of the message */
} refused[] = {
    {"", "the figure is unknown"},
    {"q99<20ms", "the figure is unknown"},
    {"p99", "the operator is missing"},
    {"p99=20ms", "the operator is missing"},
    {"p99 20ms", "the operator is missing"},
    {"mean20ms", "the operator is missing"},
    {"p<20ms", "the percentile is no number"},
    {"p.<20ms", "the percentile is no number"},
    {"p9.9.9<20ms", "the operator is missing"},
    {"p-1<20ms", "the percentile is no number"},
    {"p0<20ms", "more than 0 and less than 100"},
    {"p100<20ms", "or max"},
    {"p99<", "write 20ms"},
    {"p99<-20ms", "write 20ms"},
    {"p99<nan", "write 20ms"},
    {"p99<0x20ms", "write 20ms"},
    {"p99<20", "the unit is missing: write 20ms or 20us"},
    {"p99<20 ms", "the unit is none"},
    {"p99<20ns", "the unit is none"},
    {"p99<20msx", "the unit is none"},
    {"p99<20k", "the unit is none"},
    {"p99<61m", "more than 1h"},
    {"p99<9999999999999999999h", "more than 1h"},
    {"p99<99999999999999999999h", "is no number"},
    {"p99<1.2.3ms", "the unit is none"},
    {"service.", "after the point"},
    {"service.rate>1", "stand alone"},
    {"response.errors<1%", "stand alone"},
    {"connects.p99<1ms", "the figure is unknown"},
    {"rate>", "write 50k"},
    {"rate>5ms", "write 50k"},
    {"rate>50k/s", "write 50k"},
    {"errors<", "write 0.1%"},
    {"errors<5k", "write 0.1%"},
    {"errors<2", "write 0.1%"},
    {"skipped<101%", "write 0.1%"},
    {"achieved>1ms", "write 0.1%"},
};

START_TEST(what_is_refused_comes_with_what_to_write)
{
    const char *wrong = load_threshold_parse(&threshold, refused[_i].text);

    ck_assert_msg(wrong != NULL, "'%s' is taken", refused[_i].text);
    ck_assert_msg(strstr(wrong, refused[_i].advice) != NULL, "'%s': %s", refused[_i].text, wrong);
}
END_TEST

START_TEST(times_are_exact_to_a_ns)
{
    static const struct {
        const char *text;
        double ns;
    } times[] = {{"p50<1.001us", 1001}, {"p50<0.1ms", 100000},   {"p50<4.35ms", 4350000},
                 {"p50<1h", 3600e9},    {"p50<0.000000001s", 1}, {"p50<1.15m", 69e9}};

    ck_assert_ptr_null(load_threshold_parse(&threshold, times[_i].text));
    ck_assert(threshold.value == times[_i].ns);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-threshold");
    TCase *tcase = tcase_create("threshold");

    tcase_add_loop_test(tcase, a_condition_is_about_a_figure_of_the_result, 0, COUNT(conditions));
    tcase_add_loop_test(tcase, a_rate_is_sought_for_what_ceases_to_hold_as_it_rises, 0,
                        COUNT(sought));
    tcase_add_loop_test(tcase, what_cannot_be_told_does_not_hold, 0, COUNT(untold));
    tcase_add_test(tcase, errors_behind_a_mark_are_a_part_of_what_was_carried_too);
    tcase_add_loop_test(tcase, a_figure_is_said_in_the_unit_of_its_condition, 0, COUNT(told));
    tcase_add_loop_test(tcase, what_is_refused_comes_with_what_to_write, 0, COUNT(refused));
    tcase_add_loop_test(tcase, times_are_exact_to_a_ns, 0, 6);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
