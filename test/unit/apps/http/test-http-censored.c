/* SPDX-License-Identifier: MIT
 *
 * Requests that failed have no time, only a lower bound (they are censored): each output must say
 * so.
 */
#include <unistd.h>

#include "compare.h"
#include "http-run-fixture.h"
#include "output.h"
#include "result-read.h"
#include "run-plan.h"
#include "summary.h"
#include "test-main.h"

#define TIMEOUT_NS UINT64_C(10000000000)

static struct made made;
static char *text;

static void
fail_some(struct load_result *result, unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        load_histogram_record_at_least(&result->first_byte, TIMEOUT_NS);
        load_histogram_record_at_least(&result->service, TIMEOUT_NS);
        load_histogram_record_at_least(&result->response, TIMEOUT_NS);
    }
    result->offered += number;
    result->sent += number;
    result->ends[LOAD_END_TIMED_OUT] += number;
}

/* In each trial 2 % of the requests fail, so p99 is only a lower bound, and p95 is exact. */
static void
make_failed_run(void)
{
    make_run(&made, 6);
    for (unsigned i = 0; i < 6; i++) {
        struct load_trial *trial = &made.run.trials[i];

        fail_some(trial->result, MADE_QUERIES / 50);
        load_result_figures(trial->result, trial->figures);
        trial->at_least = load_figures_at_least(trial->result, trial->figures);
    }
    fail_some(made.run.total, 6 * MADE_QUERIES / 50);
    made.run.figures_from[LOAD_FIGURE_SERVICE_P99] = TIMEOUT_NS;
    made.run.figures[LOAD_FIGURE_SERVICE_P99] =
        (struct load_interval){TIMEOUT_NS / 2, TIMEOUT_NS, TIMEOUT_NS, true};
}

static void
write_text(int (*write)(FILE *, const struct load_run *))
{
    size_t length;
    FILE *file = open_memstream(&text, &length);

    ck_assert_int_eq(write(file, &made.run), 0);
    fclose(file);
}

static void
write_summary(const struct load_run *of)
{
    size_t length;
    FILE *file = open_memstream(&text, &length);

    load_summary_print(file, of, false);
    fclose(file);
}

START_TEST(figures_that_are_lower_bounds_are_known)
{
    make_failed_run();
    ck_assert_uint_eq(made.run.trials[0].at_least,
                      1u << LOAD_FIGURE_SERVICE_P99 | 1u << LOAD_FIGURE_RESPONSE_P99);
    free_run(&made);
}
END_TEST

START_TEST(the_report_marks_them)
{
    make_failed_run();
    made.run.total->drained = 7;
    made.run.total->drain_ns = 302000000;
    write_summary(&made.run);
    check_has(text, "timed out 2400  in the times as > 10.0 s\n");
    check_has(text, "  7 more in the drain of 302 ms");
    check_has(text, "service p99 > 10.0 s [5.00 s, > 10.0 s]");
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(json_has_what_it_takes_to_read_them_again)
{
    struct load_reader reader = {""};
    struct load_result *read = calloc(1, sizeof(*read));
    const json_t *at_least, *figure;
    json_t *json;

    make_failed_run();
    made.run.total->drained = 7;
    write_text(load_output_json);
    json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    load_result_read(&reader, json_object_get(json, "total"), read);
    ck_assert_str_eq(reader.problem, "");
    ck_assert_uint_eq(read->response.censored, 2400);
    ck_assert_uint_eq(read->response.censored_from_ns, TIMEOUT_NS);
    ck_assert_uint_eq(read->connect.censored, 0);
    ck_assert_uint_eq(read->drained, 7);
    at_least =
        json_object_get(json_object_get(json_object_get(json, "total"), "response"), "at_least");
    ck_assert_uint_eq(json_array_size(at_least), 5); /* mean, max, p99, p99.9, p99.99 */
    ck_assert_str_eq(json_string_value(json_array_get(at_least, 2)), "p99");
    figure = json_object_get(json_object_get(json, "figures"), "service.p99");
    ck_assert(json_number_value(json_object_get(figure, "censored_from")) == 1e7);
    json_decref(json);
    free(text);
    free(read);
    free_run(&made);
}
END_TEST

START_TEST(other_files_have_them_too)
{
    make_failed_run();
    write_text(load_output_csv);
    check_has(text, ",service_count,service_censored,service_censored_from_us,service_mean_us,");
    check_has(text, ",20400,400,10000000.000,");
    free(text);
    write_text(load_output_hgrm);
    check_has(text, "#[Failed  =         2400, counted as   >=    10000.000]\n");
    free(text);
    write_text(load_output_hdr);
    check_has(text, "#[Failed: 2400 requests, counted as what they waited at least]\n");
    free(text);
    free_run(&made);
}
END_TEST

/* Both sides have only lower bounds, so nobody knows which is slower. */
START_TEST(two_lower_bounds_are_not_compared)
{
    char path[] = "/tmp/test-http-censored-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    size_t length;

    make_failed_run();
    ck_assert_int_eq(load_output_json(file, &made.run), 0);
    fclose(file);
    file = open_memstream(&text, &length);
    ck_assert_int_eq(load_compare_files(path, path, 0.02, file, stderr), LOAD_EXIT_OK);
    fclose(file);
    unlink(path);
    check_has(text,
              "\nservice p99   > 10.0 s  > 10.0 s  cannot tell: failed requests leave only a ");
    check_has(text, "\nservice p95   ");
    free(text);
    free_run(&made);
}
END_TEST

/* ---- Conditions ---- */

static bool
holds(const char *condition)
{
    struct load_threshold threshold;
    bool is_told;

    ck_assert_ptr_null(load_threshold_parse(&threshold, condition));
    return load_threshold_holds(&threshold, made.run.total, &is_told) && is_told;
}

START_TEST(an_upper_limit_of_a_lower_bound_does_not_hold)
{
    make_failed_run();
    ck_assert(!holds("p99<1h"));
    ck_assert(!holds("p99<=1h"));
    ck_assert(!holds("max<1h"));
    ck_assert(!holds("mean<1h"));
    ck_assert(holds("p99>1s"));
    ck_assert(holds("p95<1s"));
    ck_assert(holds("min<1s"));
    ck_assert(holds("connect.max<1s"));
    free_run(&made);
}
END_TEST

START_TEST(a_load_that_was_not_sent_is_an_error)
{
    static const struct {
        const char *condition;
        const char *find;
        uint64_t skipped;
        enum load_exit status;
    } rows[] = {{NULL, NULL, 201, LOAD_EXIT_OK},
                {NULL, NULL, 203, LOAD_EXIT_ERRORS},
                {"skipped<50%", NULL, 1000, LOAD_EXIT_OK},
                {"achieved>99%", NULL, 1000, LOAD_EXIT_THRESHOLD},
                {"errors<1%", NULL, 1000, LOAD_EXIT_ERRORS},
                {NULL, "p99<1s", 1000, LOAD_EXIT_OK}};
    FILE *err = tmpfile();

    make_run(&made, 1);
    made.plan.thresholds[0] = rows[_i].condition;
    made.plan.find = rows[_i].find;
    made.run.found_rate = 1;
    made.run.total->offered += rows[_i].skipped;
    made.run.total->skipped[LOAD_SKIP_NO_SOCKET] = rows[_i].skipped;
    load_run_judge(&made.run, false, err);
    ck_assert_int_eq(made.run.status, rows[_i].status);
    fclose(err);
    free_run(&made);
}
END_TEST

/* ---- Trials ---- */

static void
fail_many(const struct load_worker *worker)
{
    fail_some(worker->result, 400);
}

START_TEST(an_interval_of_lower_bounds_is_never_narrow)
{
    set_up_run();
    plan.trials = 8;
    plan.until_ci = 0.9;
    plan.until_ci_figure = LOAD_FIGURE_RESPONSE_P50;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = fail_many;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 8);
    ck_assert(run.figures_from[LOAD_FIGURE_RESPONSE_P50] >= (double)TIMEOUT_NS);
    write_summary(&run);
    check_has(text,
              "until-ci  not reached: so many requests failed that response.p50 is known by a "
              "lower bound only");
    free(text);
    tear_down_run();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-censored");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 0);
    tcase_add_test(all, figures_that_are_lower_bounds_are_known);
    tcase_add_test(all, the_report_marks_them);
    tcase_add_test(all, json_has_what_it_takes_to_read_them_again);
    tcase_add_test(all, other_files_have_them_too);
    tcase_add_test(all, two_lower_bounds_are_not_compared);
    tcase_add_test(all, an_upper_limit_of_a_lower_bound_does_not_hold);
    tcase_add_loop_test(all, a_load_that_was_not_sent_is_an_error, 0, 6);
    tcase_add_test(all, an_interval_of_lower_bounds_is_never_narrow);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
