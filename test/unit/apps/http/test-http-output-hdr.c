/* SPDX-License-Identifier: MIT
 *
 * The log of histograms: an independent reader finds in it the same figures as in the JSON.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "fake-os.h"
#include "hdr-log.h"
#include "http-run-fixture.h"
#include "output.h"
#include "sxe-util.h"
#include "test-main.h"

#define US UINT64_C(1000)

static struct made made;
static struct hdr_line line;

static char *
written_by(int (*write)(FILE *, const struct load_run *))
{
    FILE *out = tmpfile();

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(write(out, &made.run), 0);
    return text_of(out, NULL);
}

static const char *
behind_head(const char *log)
{
    return strchr(strstr(log, "\"StartTimestamp\""), '\n') + 1;
}

/* ---- The reader of these tests ---- */

/* This was written by HdrHistogram_c 0.11.10: values from 1 to 3,600,000,000 with three digits; 0
 * once, 1 twice, 1,000 300 times, 5,000 40,000 times, and the highest value five times. */
START_TEST(the_reader_reads_what_hdrhistogram_writes)
{
    static const struct hdr_bucket expected[] = {
        {0, 0, 1}, {1, 1, 2}, {1000, 1000, 300}, {5000, 5003, 40000}, {3598712832, 3600809983, 5}};

    hdr_line_read(&line, "Tag=A,0.127,1.007,2.769,HISTFAAAADB4nJNpmSzMwMDAzwABzFCaEURcm7yEwf4DRICJ5"
                         "TT/DZaPyg0fWRZuZ+ICAMPeCj8=\n");
    ck_assert_str_eq(line.tag, "A");
    ck_assert_double_eq(line.length, 1.007);
    ck_assert_uint_eq(line.number, 5);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(line.buckets[i].from, expected[i].from);
        ck_assert_uint_eq(line.buckets[i].to, expected[i].to);
        ck_assert_uint_eq(line.buckets[i].count, expected[i].count);
    }
}
END_TEST

/* ---- The log ---- */

START_TEST(the_head_has_what_readers_look_for)
{
    char *text;

    make_run(&made, 0);
    made.run.started_s = 1795255200;
    text = written_by(load_output_hdr);
    ck_assert_str_eq(text,
                     "#[Logged by sxe-http " SXE_VERSION ", times in us]\n"
                     "#[Histogram log format version 1.3]\n"
                     "#[StartTime: 1795255200.000 (seconds since epoch), 2026-11-21T10:00:00Z]\n"
                     "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
                     "\"Interval_Compressed_Histogram\"\n");
    free(text);
    free_run(&made);
}
END_TEST

/* Bounds in the log are whole us. In the JSON the longest time is exact, and a bucket begins 1 ns
 * after the one before. */
static void
check_buckets(const json_t *times)
{
    const json_t *buckets = json_object_get(times, "histogram");
    size_t i;
    const json_t *bucket;

    ck_assert_uint_eq(json_array_size(buckets), line.number);
    json_array_foreach(buckets, i, bucket)
    {
        double from = json_number_value(json_array_get(bucket, 0));
        double to = json_number_value(json_array_get(bucket, 1));

        ck_assert_double_eq((double)line.buckets[i].from, ceil(from));
        if (i + 1 < line.number)
            ck_assert_double_eq((double)line.buckets[i].to, to);
        ck_assert_double_ge((double)line.buckets[i].to, fmin(to, LOAD_HISTOGRAM_MAX_NS / 1000));
        ck_assert_uint_eq(line.buckets[i].count,
                          (uint64_t)json_integer_value(json_array_get(bucket, 2)));
    }
}

static void
check_times(const json_t *times)
{
    check_buckets(times);
    ck_assert_uint_eq(line.count, (uint64_t)json_integer_value(json_object_get(times, "count")));
    ck_assert_double_eq_tol(line.max, json_number_value(json_object_get(times, "max")), 0.0005);
    for (unsigned i = 0; i < LOAD_PERCENTILES; i++) {
        const json_t *percentile = json_object_get(times, load_percentiles[i].name);
        uint64_t rank = load_rank(line.count, load_percentiles[i].fraction);

        if (json_is_number(percentile))
            ck_assert_double_eq((double)hdr_at_rank(&line, rank), json_number_value(percentile));
    }
}

static json_t *
read_json(void)
{
    char *text = written_by(load_output_json);
    json_t *root = json_loads(text, 0, NULL);

    ck_assert_ptr_nonnull(root);
    free(text);
    return root;
}

/* The log must have a line for each trial and kind of time, with the same figures as the JSON. */
static void
check_log(void)
{
    static const char *const tags[] = {"first_byte", "service", "response"};
    char *text = written_by(load_output_hdr);
    const char *at = behind_head(text);
    json_t *root = read_json();
    const json_t *trials = json_object_get(root, "trials");

    for (unsigned i = 0; i < made.run.trials_number; i++)
        for (unsigned k = 0; k < 3; k++) {
            const json_t *trial = json_array_get(trials, i);

            at = hdr_line_read(&line, at);
            ck_assert_str_eq(line.tag, tags[k]);
            ck_assert_uint_eq(line.digits, 3);
            ck_assert_uint_eq(line.lowest, 1);
            ck_assert_uint_eq(line.highest, UINT64_C(3600000000));
            check_times(json_object_get(trial, tags[k]));
        }
    ck_assert_str_eq(at, "");
    json_decref(root);
    free(text);
}

START_TEST(each_trial_has_the_histograms_of_the_json)
{
    make_run(&made, 3);
    check_log();
    free_run(&made);
}
END_TEST

START_TEST(intervals_are_those_in_which_queries_were_sent)
{
    char *text;
    const char *at;

    make_run(&made, 2);
    made.run.started_ns = 900000000;
    made.run.trials[1].result->started_ns = UINT64_C(7250000000);
    text = written_by(load_output_hdr);
    at = behind_head(text);
    for (unsigned i = 0; i < 6; i++) {
        at = hdr_line_read(&line, at);
        ck_assert_double_eq(line.start, i < 3 ? 0.1 : 6.35);
        ck_assert_double_eq(line.length, 4);
    }
    free(text);
    free_run(&made);
}
END_TEST

/* Values around all edges of buckets, and above the highest value. */
START_TEST(the_shortest_and_the_longest_times_are_in_it)
{
    make_run(&made, 1);
    for (unsigned shift = 0; shift < 45; shift++)
        for (uint64_t ns = (UINT64_C(1) << shift) - 1; ns <= (UINT64_C(1) << shift) + US; ns += US)
            load_histogram_record(&made.run.trials[0].result->response, ns);
    check_log();
    ck_assert_uint_eq(line.buckets[0].from, 0);
    ck_assert_uint_ge(line.buckets[line.number - 1].to, UINT64_C(3600000000));
    free_run(&made);
}
END_TEST

/* A count that is doubled again and again takes from one byte to nine. */
START_TEST(counts_may_be_as_long_as_they_are)
{
    struct load_histogram *response;

    make_run(&made, 1);
    response = &made.run.trials[0].result->response;
    *response = (struct load_histogram){0};
    for (unsigned i = 0; i < 62; i++) {
        load_histogram_record(response, i * i * US);
        load_histogram_add(response, response);
    }
    check_log();
    ck_assert_uint_eq(line.buckets[0].count, UINT64_C(1) << 62);
    ck_assert_uint_eq(line.count, (UINT64_C(1) << 63) - 2);
    free_run(&made);
}
END_TEST

START_TEST(bytes_are_read_whatever_is_left_of_three)
{
    unsigned seen[3] = {0};

    make_run(&made, 1);
    made.run.trials[0].result->response = (struct load_histogram){0};
    for (unsigned i = 1; i < 60; i++) {
        load_histogram_record(&made.run.trials[0].result->response, i * i * US);
        check_log();
        seen[line.packed_size % 3]++;
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_gt(seen[i], 0);
    free_run(&made);
}
END_TEST

START_TEST(what_did_not_occur_has_no_line)
{
    char *text;

    make_run(&made, 1);
    made.run.trials[0].result->first_byte.count = 0;
    made.run.trials[0].result->response.count = 0;
    text = written_by(load_output_hdr);
    ck_assert_str_eq(hdr_line_read(&line, behind_head(text)), "");
    ck_assert_str_eq(line.tag, "service");
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(without_memory_it_is_an_error)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};
    FILE *out = fopen("/dev/null", "w");
    unsigned nth = 0;
    int error;

    make_run(&made, 1);
    do {
        fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
        error = load_output_hdr(out, &made.run);
        ck_assert_int_eq(error, fake_os_injected() > 0 ? -ENOMEM : 0);
        fake_os_reset();
    } while (error != 0);
    ck_assert_uint_gt(nth, 3 * 3);
    fclose(out);
    free_run(&made);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-output-hdr");
    TCase *tcase = tcase_create("hdr");

    tcase_add_test(tcase, the_reader_reads_what_hdrhistogram_writes);
    tcase_add_test(tcase, the_head_has_what_readers_look_for);
    tcase_add_test(tcase, each_trial_has_the_histograms_of_the_json);
    tcase_add_test(tcase, intervals_are_those_in_which_queries_were_sent);
    tcase_add_test(tcase, the_shortest_and_the_longest_times_are_in_it);
    tcase_add_test(tcase, counts_may_be_as_long_as_they_are);
    tcase_add_test(tcase, bytes_are_read_whatever_is_left_of_three);
    tcase_add_test(tcase, what_did_not_occur_has_no_line);
    tcase_add_test(tcase, without_memory_it_is_an_error);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
