/* SPDX-License-Identifier: MIT
 *
 * Outputs for programs: the test reads them again, by jansson and by simple parsers.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "http-run-fixture.h"
#include "output.h"
#include "test-main.h"

static struct made made;

static char *
written_by(int (*write)(FILE *, const struct load_run *))
{
    FILE *out = tmpfile();

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(write(out, &made.run), 0);
    return text_of(out, NULL);
}

/* ---- JSON ---- */

static json_t *
read_json(void)
{
    json_error_t error;
    char *text = written_by(load_output_json);
    json_t *root = json_loads(text, 0, &error);

    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    free(text);
    return root;
}

/* The value at a path such as "total.accounts.ends.ok"; ":" stands for a "." in a name. */
static json_t *
at(json_t *value, const char *path)
{
    while (value != NULL && *path != '\0') {
        size_t length = strcspn(path, ".");
        char name[64];

        snprintf(name, sizeof(name), "%.*s", (int)length, path);
        if (strchr(name, ':') != NULL)
            *strchr(name, ':') = '.';
        value = json_is_array(value) ? json_array_get(value, strtoul(name, NULL, 10))
                                     : json_object_get(value, name);
        path += length + (path[length] == '.');
    }
    return value;
}

static double
number_at(json_t *root, const char *path)
{
    ck_assert_msg(json_is_number(at(root, path)), "no number at %s", path);
    return json_number_value(at(root, path));
}

static const char *
text_at(json_t *root, const char *path)
{
    ck_assert_msg(json_is_string(at(root, path)), "no text at %s", path);
    return json_string_value(at(root, path));
}

START_TEST(json_has_the_run_with_its_trials_and_their_sum)
{
    json_t *root;

    make_run(&made, 2);
    root = read_json();
    ck_assert_double_eq(number_at(root, "sxe_http"), 1);
    ck_assert_str_eq(text_at(root, "started_at"), "2026-11-21T10:00:00Z");
    ck_assert_str_eq(text_at(root, "command.2"), "5k");
    ck_assert_str_eq(text_at(root, "fingerprint.cpu model"), "a \"fast\" one");
    ck_assert_str_eq(text_at(root, "plan.what"), "GET http://192.0.2.1:8000/");
    ck_assert_str_eq(text_at(root, "plan.model"), "closed");
    ck_assert_str_eq(text_at(root, "plan.arrivals"), "poisson");
    ck_assert_double_eq(number_at(root, "plan.duration_s"), 4);
    ck_assert_double_eq(number_at(root, "status"), 0);
    ck_assert_uint_eq(json_array_size(at(root, "trials")), 2);
    ck_assert_double_eq(number_at(root, "trials.1.rate"), 5000);
    ck_assert_double_eq(number_at(root, "trials.1.seconds"), 4);
    ck_assert_double_eq(number_at(root, "total.rate"), 5000);
    ck_assert_double_eq(number_at(root, "total.seconds"), 8);
    ck_assert_double_eq(number_at(root, "total.accounts.ends.ok"), 2 * MADE_QUERIES);
    ck_assert_double_eq(number_at(root, "total.sockets.opened"), 128);
    ck_assert_double_eq(number_at(root, "total.timeline.width_s"), 0.02);
    ck_assert_double_eq(number_at(root, "total.timeline.slices.0.2"), 200);
    ck_assert_double_gt(number_at(root, "total.timeline.slices.0.4"), 0);
    ck_assert(json_is_null(at(root, "total.timeline.slices.0.5"))); /* p99 of 200 replies */
    ck_assert(json_is_null(at(root, "total.trend")));
    ck_assert_str_eq(text_at(root, "total.kinds.1.name"), "POST, \"all\"</script>");
    ck_assert_double_eq(number_at(root, "total.kinds.0.clients.0.0"), MADE_QUERIES / 8.);
    ck_assert_double_eq(number_at(root, "figures.rate.middle"), 5000);
    ck_assert_double_eq_tol(number_at(root, "figures.service:p50.middle"), 250, 1e-9);
    ck_assert(json_is_false(at(root, "figures.rate.is_known")));
    ck_assert(json_is_null(at(root, "noise")));
    ck_assert(json_is_null(at(root, "baseline")));
    ck_assert(json_is_null(at(root, "find")));
    ck_assert(json_is_null(at(root, "fanout")));
    ck_assert_double_eq(number_at(root, "total.left_out.seconds"), 0);
    ck_assert(json_is_null(at(root, "total.left_out.problem")));
    ck_assert(json_is_false(at(root, "plan.is_warmup_auto")));
    ck_assert_double_eq(number_at(root, "verdict.cpu"), 0.5);
    ck_assert(json_is_null(at(root, "verdict.cpu_pressure")));
    json_decref(root);
    free_run(&made);
}
END_TEST

START_TEST(json_histograms_have_all_buckets_and_no_percentile_that_cannot_be_told)
{
    static const char *const names[] = {"connect", "first_byte", "service", "response"};
    json_t *root;
    size_t i;
    json_t *bucket;

    make_run(&made, 1);
    root = read_json();
    for (unsigned k = 0; k < 4; k++) {
        json_t *times = at(at(root, "total"), names[k]);
        double count = 0;
        double before = -1;

        json_array_foreach(at(times, "histogram"), i, bucket)
        {
            ck_assert_double_gt(number_at(bucket, "0"), before);
            ck_assert_double_ge(number_at(bucket, "1"), number_at(bucket, "0"));
            before = number_at(bucket, "1");
            count += number_at(bucket, "2");
        }
        ck_assert_double_eq(count, number_at(times, "count"));
        ck_assert_double_eq(before, number_at(times, "max"));
    }
    ck_assert(json_is_null(at(root, "total.connect.p99")));
    ck_assert_double_eq(number_at(root, "total.connect.p50"), 131);
    ck_assert_double_eq(number_at(root, "total.connect.mean"), 131.5);
    ck_assert_double_eq(number_at(root, "total.service.p99:9"),
                        (double)load_histogram_quantile(&made.run.total->service, 0.999) / 1000);
    ck_assert(json_is_null(at(root, "total.service.p99:99")));
    ck_assert_double_eq(number_at(root, "total.client.timer_error.count"), 0);
    ck_assert_ptr_null(at(root, "total.client.timer_error.p50"));
    json_decref(root);
    free_run(&made);
}
END_TEST

START_TEST(json_has_a_trend)
{
    struct load_timeline *timeline;
    json_t *root;

    make_run(&made, 2);
    timeline = &made.run.total->timeline;
    for (unsigned i = 0; i < timeline->used; i++)
        timeline->slices[i].ok += i;
    root = read_json();
    ck_assert_str_eq(text_at(root, "total.trend.figure"), "rate");
    ck_assert_double_eq_tol(number_at(root, "total.trend.first"), 5237.5, 1e-6);
    ck_assert_double_eq_tol(number_at(root, "total.trend.last"), 9737.5, 1e-6);
    ck_assert(json_is_null(at(root, "trials.0.trend")));
    json_decref(root);

    made.plan.model = LOAD_OPEN;
    for (unsigned i = 0; i < timeline->used; i++) {
        memset(timeline->slices[i].buckets, 0, sizeof(timeline->slices[i].buckets));
        timeline->slices[i].buckets[i < 100 ? i / 10 : 50 + i / 10] = timeline->slices[i].ok;
    }
    root = read_json();
    ck_assert_str_eq(text_at(root, "total.trend.figure"), "response.mean");
    ck_assert_double_lt(number_at(root, "total.trend.first"), 10);
    json_decref(root);
    free_run(&made);
}
END_TEST

START_TEST(json_has_the_search)
{
    struct load_run *run = &made.run;
    json_t *root;

    make_run(&made, 1);
    make_find(&made);
    run->missed_rate = 10000;
    root = read_json();
    ck_assert_str_eq(text_at(root, "find.condition"), "p99<10ms");
    ck_assert_double_eq(number_at(root, "find.found_rate"), 8500);
    ck_assert_double_eq(number_at(root, "find.missed_rate"), 10000);
    ck_assert(json_is_true(at(root, "find.is_told")));
    ck_assert_uint_eq(json_array_size(at(root, "find.steps")), 8);
    ck_assert(json_is_true(at(root, "find.steps.0.holds")));
    json_decref(root);
    run->missed_rate = HUGE_VAL;
    run->is_untold = true;
    root = read_json();
    ck_assert(json_is_null(at(root, "find.missed_rate")));
    ck_assert(json_is_false(at(root, "find.is_told")));
    json_decref(root);
    free_run(&made);
}
END_TEST

START_TEST(json_has_what_was_judged)
{
    struct load_run *run = &made.run;
    json_t *root;

    make_run(&made, 1);
    made.plan.model = LOAD_OPEN;
    made.plan.arrivals = LOAD_FIXED;
    made.plan.thresholds[0] = "p99<1us";
    made.plan.thresholds[1] = "errors<1%";
    made.plan.thresholds[2] = "p99.999<1s";
    run->noise[LOAD_FIGURE_RATE] = (struct load_interval){0.98, 1, 1.02, true};
    run->total->first_bad_status = 503;
    run->total->first_error = EPIPE;
    load_bad_reply_note(&run->total->first_bad_reply, LOAD_BAD_MORE, "a\n", 2, 0);
    run->total->waiting = 9;
    run->total->kinds = 3;
    run->total->clients = 1;
    run->verdict.number = 1;
    snprintf(run->verdict.reasons[0], LOAD_REASON_MAX, "loop lag");
    run->verdict.cpu_pressure = 0.25;
    run->verdict.has_cpu_pressure = true;
    run->left_out = (struct load_left_out){1500000000, 77, "the rate has a trend"};
    made.plan.is_warmup_auto = true;
    run->status = LOAD_EXIT_THRESHOLD;
    run->is_interrupted = true;
    for (unsigned i = 0; i < 3; i++)
        run->judged[i] = (struct load_judged){.figure = 1 + i, .holds = i == 1, .is_told = i != 2};
    root = read_json();
    ck_assert_str_eq(text_at(root, "plan.model"), "open");
    ck_assert_str_eq(text_at(root, "plan.arrivals"), "fixed");
    ck_assert_str_eq(text_at(root, "thresholds.0.condition"), "p99<1us");
    ck_assert(json_is_false(at(root, "thresholds.0.holds")));
    ck_assert(json_is_true(at(root, "thresholds.0.is_told")));
    ck_assert(json_is_true(at(root, "thresholds.1.holds")));
    ck_assert(json_is_false(at(root, "thresholds.2.is_told")));
    ck_assert_double_eq(number_at(root, "thresholds.2.figure"), 3);
    ck_assert_double_eq(number_at(root, "noise.high"), 1.02);
    ck_assert_double_eq(number_at(root, "noise.figures.rate.high"), 1.02);
    ck_assert(json_is_false(at(root, "noise.figures.service:p99.is_known")));
    ck_assert_str_eq(text_at(root, "verdict.reasons.0"), "loop lag");
    ck_assert_double_eq(number_at(root, "verdict.cpu_pressure"), 0.25);
    ck_assert_double_eq(number_at(root, "total.left_out.seconds"), 1.5);
    ck_assert_double_eq(number_at(root, "total.left_out.queries"), 77);
    ck_assert_str_eq(text_at(root, "total.left_out.problem"), "the rate has a trend");
    ck_assert(json_is_true(at(root, "plan.is_warmup_auto")));
    ck_assert_double_eq(number_at(root, "status"), 3);
    ck_assert(json_is_true(at(root, "is_interrupted")));
    ck_assert_double_eq(number_at(root, "total.accounts.first_bad_status"), 503);
    ck_assert_str_eq(text_at(root, "total.accounts.first_error"), strerror(EPIPE));
    ck_assert_str_eq(text_at(root, "total.accounts.first_bad_reply.why"),
                     "there is more than was asked for");
    ck_assert_str_eq(text_at(root, "total.accounts.first_bad_reply.bytes"), "\"a\\n\"");
    ck_assert_double_eq(number_at(root, "total.accounts.waiting"), 9);
    ck_assert_str_eq(text_at(root, "total.kinds.2.name"), "request");
    ck_assert_double_eq(number_at(root, "total.kinds.2.clients.0.2"),
                        (double)run->total->by_client[2].sum_ns /
                            (double)run->total->by_client[2].count / 1000);
    json_decref(root);
    free_run(&made);
}
END_TEST

START_TEST(json_has_what_a_page_of_several_queries_takes)
{
    json_t *root;

    make_run(&made, 1);
    made.plan.fanout = 100;
    root = read_json();
    ck_assert_double_eq(number_at(root, "fanout.queries"), 100);
    ck_assert_str_eq(text_at(root, "fanout.times"), "service");
    ck_assert_double_eq_tol(number_at(root, "fanout.beyond_p99"), 0.634, 0.0005);
    ck_assert_double_eq_tol(number_at(root, "fanout.p50.of_one"), pow(0.5, 0.01), 1e-9);
    ck_assert_double_eq(number_at(root, "fanout.p50.time"),
                        (double)load_histogram_quantile(&made.run.total->service, pow(0.5, 0.01)) /
                            1000);
    ck_assert_double_eq_tol(number_at(root, "fanout.p99:9.of_one"), pow(0.999, 0.01), 1e-9);
    ck_assert(json_is_null(at(root, "fanout.p99:9.time")));
    json_decref(root);
    free_run(&made);
}
END_TEST

START_TEST(json_has_a_probe_beside_each_result)
{
    json_t *root;

    make_run(&made, 2);
    root = read_json();
    ck_assert(json_is_null(at(root, "trials.0.probe")));
    ck_assert(json_is_null(at(root, "total.probe")));
    ck_assert_double_eq(number_at(root, "plan.probe_rate"), 0);
    json_decref(root);
    make_probe(&made);
    made.run.probe_verdict.number = 1;
    snprintf(made.run.probe_verdict.reasons[0], LOAD_REASON_MAX, "waited");
    root = read_json();
    ck_assert_double_eq(number_at(root, "plan.probe_rate"), 100);
    ck_assert_double_eq(number_at(root, "total.accounts.sent"), 2 * MADE_QUERIES);
    ck_assert_double_eq(number_at(root, "trials.1.probe.accounts.sent"), MADE_PROBED);
    ck_assert_double_eq(number_at(root, "trials.1.probe.rate"), 100);
    ck_assert_double_eq(number_at(root, "total.probe.accounts.ends.ok"), 2 * MADE_PROBED);
    ck_assert_double_eq(number_at(root, "total.probe.sockets.opened"), 2 * LOAD_PROBE_SOCKETS);
    ck_assert_double_eq(number_at(root, "total.probe.response.max"), 1500);
    ck_assert_double_eq(number_at(root, "total.probe.service.histogram.0.2"), 2 * MADE_PROBED);
    ck_assert_str_eq(text_at(root, "total.probe.verdict.reasons.0"), "waited");
    ck_assert_ptr_null(at(root, "total.probe.probe"));
    ck_assert_uint_eq(json_array_size(at(root, "total.verdict.reasons")), 0);
    json_decref(root);
    free_run(&made);
}
END_TEST

START_TEST(json_of_a_run_in_which_nothing_happened_has_no_number_that_is_none)
{
    json_t *root;

    make_run(&made, 0);
    for (unsigned i = 0; i < LOAD_FIGURES; i++)
        made.run.figures[i].middle = nan("");
    made.plan.requests = NULL;
    made.run.total->kinds = 1;
    made.run.total->clients = 1;
    root = read_json();
    ck_assert_double_eq(number_at(root, "total.rate"), 0);
    ck_assert(json_is_null(at(root, "figures.rate.middle")));
    ck_assert_str_eq(text_at(root, "total.kinds.0.name"), "request");
    ck_assert_double_eq(number_at(root, "total.kinds.0.clients.0.2"), 0);
    json_decref(root);
    free_run(&made);
}
END_TEST

/* ---- CSV ---- */

static unsigned
fields_of(const char *line, size_t length)
{
    unsigned fields = 1;
    bool is_quoted = false;

    for (size_t i = 0; i < length; i++) {
        is_quoted ^= line[i] == '"';
        fields += line[i] == ',' && !is_quoted;
    }
    return fields;
}

/* Check that all lines have `fields` fields, or, if 0, as many as the first. Returns how many
 * lines. */
static unsigned
ck_lines(const char *text, unsigned fields)
{
    unsigned lines = 0;

    while (*text != '\0') {
        const char *end = strstr(text, "\r\n");

        ck_assert_ptr_nonnull(end);
        if (fields == 0)
            fields = fields_of(text, (size_t)(end - text));
        ck_assert_uint_eq(fields_of(text, (size_t)(end - text)), fields);
        ck_assert_ptr_null(memchr(text, '\n', (size_t)(end - text)));
        text = end + 2;
        lines++;
    }
    return lines;
}

START_TEST(csv_has_a_line_a_trial_and_one_for_all)
{
    char *text;

    make_run(&made, 3);
    text = written_by(load_output_csv);
    ck_assert_uint_eq(ck_lines(text, 0), 5);
    ck_assert_int_eq(strncmp(text, "trial,seconds,rate,", 19), 0);
    ck_assert_ptr_nonnull(strstr(text, ",service_p99.9_us,"));
    ck_assert_ptr_nonnull(strstr(text, "\r\n1,4.000000,5000.000,20000,20000,0,0,0,0,0,0,0,20000,"));
    ck_assert_ptr_nonnull(strstr(text, "\r\ntotal,12.000000,5000.000,60000,"));
    /* The connect time. */
    ck_assert_ptr_nonnull(strstr(text, ",64,0,,131.500,131.000,,,,,,163.000,"));
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(csv_of_no_reply_has_empty_fields)
{
    char *text;

    make_run(&made, 0);
    text = written_by(load_output_csv);
    ck_assert_uint_eq(ck_lines(text, 0), 2);
    ck_assert_ptr_nonnull(strstr(text, "\r\ntotal,0.000000,0.000,0,"));
    ck_assert_ptr_nonnull(strstr(text, ",0,0,,,,,,,,,0.000,"));
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(candles_have_five_columns_a_kind_and_client)
{
    const struct load_client_result *client;
    char expected[200];
    char *text;

    make_run(&made, 1);
    made.run.total->by_client[6].count = 0;
    text = written_by(load_output_candles);
    ck_assert_uint_eq(ck_lines(text, 5), 1 + 2 * 4 - 1);
    client = &made.run.total->by_client[5];
    snprintf(
        expected, sizeof(expected), "\r\n\"POST, \"\"all\"\"</script> 3\",%.3f,%.3f,%.3f,%.3f\r\n",
        (double)client->min_ns / 1e3, (double)client->sum_ns / (double)client->count / 1e3,
        (double)client->sum_ns / (double)client->count / 1e3 * 1.01, (double)client->max_ns / 1e3);
    check_has(text, expected);
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(candles_of_too_many_clients_are_those_of_the_kinds)
{
    char *text;

    make_run(&made, 1);
    made.run.total->clients = 0;
    made.run.total->kinds = 3; /* the third kind never had a reply */
    text = written_by(load_output_candles);
    ck_assert_uint_eq(ck_lines(text, 5), 3);
    ck_assert_ptr_nonnull(strstr(text, "\r\n\"GET / all\","));
    free(text);
    free_run(&made);
}
END_TEST

/* ---- hgrm ---- */

START_TEST(hgrm_is_what_hdrhistogram_writes)
{
    static const char expected[] = "       Value     Percentile TotalCount 1/(1-Percentile)\n"
                                   "\n"
                                   "       1.000 0.000000000000         10           1.00\n"
                                   "       1.000 0.100000000000         10           1.11\n"
                                   "       2.000 0.200000000000         90           1.25\n"
                                   "       2.000 0.300000000000         90           1.43\n"
                                   "       2.000 0.400000000000         90           1.67\n"
                                   "       2.000 0.500000000000         90           2.00\n"
                                   "       2.000 0.550000000000         90           2.22\n"
                                   "       2.000 0.600000000000         90           2.50\n"
                                   "       2.000 0.650000000000         90           2.86\n"
                                   "       2.000 0.700000000000         90           3.33\n"
                                   "       2.000 0.750000000000         90           4.00\n"
                                   "       2.000 0.775000000000         90           4.44\n"
                                   "       2.000 0.800000000000         90           5.00\n"
                                   "       2.000 0.825000000000         90           5.71\n"
                                   "       2.000 0.850000000000         90           6.67\n"
                                   "       2.000 0.875000000000         90           8.00\n"
                                   "       2.000 0.887500000000         90           8.89\n"
                                   "       2.000 0.900000000000         90          10.00\n"
                                   "      10.000 0.912500000000        100          11.43\n"
                                   "      10.000 1.000000000000        100\n"
                                   "#[Mean    =        2.700, StdDeviation   =        2.452]\n"
                                   "#[Max     =       10.000, Total count    =          100]\n"
                                   "#[Buckets =           22, SubBuckets     =         2048]\n";
    char *text;

    make_run(&made, 0);
    for (unsigned i = 0; i < 100; i++)
        load_histogram_record(&made.run.total->response, i < 10   ? 1000000
                                                         : i < 90 ? 2000000
                                                                  : 10000000);
    text = written_by(load_output_hgrm);
    ck_assert_str_eq(text, expected);
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(hgrm_rises_from_line_to_line_and_ends_with_all)
{
    char *text;
    char *line;
    double value = 0, level = -1, count = 0;
    unsigned lines = 0;

    make_run(&made, 1);
    text = written_by(load_output_hgrm);
    for (line = strstr(text, "\n\n") + 2; *line != '#'; line = strchr(line, '\n') + 1) {
        double read[3];
        char *end = line;

        for (unsigned i = 0; i < 3; i++)
            read[i] = strtod(end, &end);
        ck_assert_double_ge(read[0], value);
        ck_assert_double_gt(read[1], level);
        ck_assert_double_ge(read[2], count);
        ck_assert_double_ge(read[2] / MADE_QUERIES, read[1]);
        value = read[0], level = read[1], count = read[2];
        lines++;
    }
    ck_assert_double_eq(level, 1);
    ck_assert_double_eq(count, MADE_QUERIES);
    ck_assert_uint_gt(lines, 40);
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(hgrm_of_no_reply_has_only_its_frame)
{
    char *text;

    make_run(&made, 0);
    text = written_by(load_output_hgrm);
    ck_assert_ptr_nonnull(strstr(text, "1/(1-Percentile)\n\n#[Mean    =        0.000,"));
    free(text);
    free_run(&made);
}
END_TEST

/* ---- HTML ---- */

/* The runs in the page. No text in them can end the script element. */
static json_t *
runs_of(const char *page)
{
    const char *begin = strstr(page, "<script type=\"application/json\" id=\"runs\">");
    const char *end;
    json_error_t error;
    json_t *runs;

    ck_assert_ptr_nonnull(begin);
    begin = strchr(begin, '>') + 1;
    end = strchr(begin, '<');
    ck_assert_int_eq(strncmp(end, "</script>\n<script>\n\"use strict\";", 32), 0);
    runs = json_loadb(begin, (size_t)(end - begin), 0, &error);
    ck_assert_msg(runs != NULL, "line %d: %s", error.line, error.text);
    ck_assert_str_eq(page + strlen(page) - 8, "</html>\n");
    return runs;
}

START_TEST(html_is_the_page_with_the_run_in_it)
{
    char *page;
    json_t *runs;

    make_run(&made, 1);
    page = written_by(load_output_html);
    runs = runs_of(page);
    ck_assert_uint_eq(json_array_size(runs), 1);
    ck_assert_double_eq(number_at(runs, "0.total.rate"), 5000);
    ck_assert_str_eq(text_at(runs, "0.total.kinds.1.name"), "POST, \"all\"</script>");
    ck_assert_ptr_null(strstr(page, "src="));
    ck_assert_ptr_null(strstr(page, "@import"));
    json_decref(runs);
    free(page);
    free_run(&made);
}
END_TEST

/* A complete result as text, for files that the cases write and remove. */
#define WHOLE                                                                         \
    "\"sxe_http\": 1, \"plan\": {}, \"trials\": [], \"total\": {}, \"figures\": {}, " \
    "\"verdict\": {}, \"fingerprint\": {}, \"command\": []"

static char *
path_with(const char *content)
{
    static char paths[4][32];
    static unsigned number;
    char *path = paths[number++ % 4];
    int fd;

    snprintf(path, 32, "/tmp/sxe-output-XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
    return path;
}

START_TEST(overlay_is_the_page_with_several_runs_in_it)
{
    FILE *out = tmpfile();
    char *paths[2];
    char *text;
    json_t *runs;

    make_run(&made, 1);
    text = written_by(load_output_json);
    paths[0] = path_with(text);
    free(text);
    paths[1] = path_with("{" WHOLE ", \"x\": \"</script>\", \"y\": 0.1,"
                         " \"seed\": 18446744073709551615}");
    ck_assert_int_eq(load_output_overlay(2, paths, out, stderr), LOAD_EXIT_OK);
    text = text_of(out, NULL);
    runs = runs_of(text);
    ck_assert_uint_eq(json_array_size(runs), 2);
    ck_assert_double_eq(number_at(runs, "0.total.accounts.ends.ok"), MADE_QUERIES);
    ck_assert_str_eq(text_at(runs, "0.file"), paths[0]);
    ck_assert_str_eq(text_at(runs, "1.x"), "</script>");
    ck_assert(json_is_string(at(runs, "1.comparison")));
    ck_assert_ptr_null(at(runs, "0.comparison"));
    ck_assert_double_eq(number_at(runs, "1.y"), 0.1);
    json_decref(runs);
    free(text);
    unlink(paths[0]);
    unlink(paths[1]);
    free_run(&made);
}
END_TEST

static const struct {
    const char *content;
    const char *expected;
} no_runs[] = {
    {"", "line 1: '[' or '{' expected near end of file"},
    {"{\n\"sxe_http\": 1,\n", "line 3: "},
    {NULL, "/nowhere/a.json: No such file or directory; give a file"},
    {"{\"\x1b\": ?", "line 1: "},
    {"[1]", "is no result of sxe-http; give a file that sxe-http --json has written\n"},
    {"{}", "is no result of sxe-http"},
    {"{\"sxe_http\": 2}", "has version 2 of the schema, which is 1 here"},
    {"{\"sxe_http\": \"1\"}", "is no result of sxe-http"},
    {"{\"sxe_http\": 1}", "has no 'plan'; give a file"},
    {"{\"sxe_http\": 1, \"plan\": {}, \"trials\": []}", "has no 'total'; give a file"},
};

START_TEST(overlay_refuses_what_is_no_run_and_writes_nothing)
{
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    char nowhere[] = "/nowhere/a.json";
    char *paths[2] = {path_with("{" WHOLE "}"), nowhere};
    char *said;
    size_t length;

    if (no_runs[_i].content != NULL)
        paths[1] = path_with(no_runs[_i].content);
    ck_assert_int_eq(load_output_overlay(2, paths, out, err), LOAD_EXIT_USAGE);
    said = text_of(err, NULL);
    check_has(said, no_runs[_i].expected);
    ck_assert_ptr_nonnull(strstr(said, paths[1]));
    ck_assert_ptr_null(strchr(said, '\x1b'));
    free(said);
    free(text_of(out, &length));
    ck_assert_uint_eq(length, 0);
    unlink(paths[0]);
    unlink(paths[1]);
}
END_TEST

START_TEST(overlay_says_that_the_disk_is_full)
{
    FILE *full = fopen("/dev/full", "w");
    FILE *err = tmpfile();
    char *path = path_with("{" WHOLE ", \"long\": \"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<\"}");
    char *said;

    ck_assert_int_eq(load_output_overlay(1, &path, full, err), LOAD_EXIT_ERRORS);
    fclose(full);
    said = text_of(err, NULL);
    ck_assert_str_eq(said, "sxe-http: the page could not be written: No space left on device\n");
    free(said);
    unlink(path);
}
END_TEST

/* ---- Files ---- */

static int (*const writers[])(FILE *, const struct load_run *) = {
    load_output_json, load_output_csv,  load_output_candles, load_output_hgrm,
    load_output_hdr,  load_output_html, load_output_junit,   load_output_markdown,
};

START_TEST(a_full_disk_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");

    make_run(&made, 1);
    ck_assert_int_eq(writers[_i](full, &made.run), -ENOSPC);
    fclose(full);
    free_run(&made);
}
END_TEST

static unsigned refusals;

static ssize_t
refuse_once(void *cookie, const char *bytes, size_t size)
{
    (void)cookie;
    (void)bytes;
    errno = refusals > 0 ? ENOSPC : errno;
    return refusals-- > 0 ? -1 : (ssize_t)size;
}

START_TEST(what_was_lost_earlier_is_an_error_at_the_end)
{
    FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = refuse_once});

    refusals = 1;
    setvbuf(out, NULL, _IONBF, 0);
    putc('x', out);
    ck_assert_int_eq(load_output_finish(out), -ENOSPC);
    fclose(out);
}
END_TEST

START_TEST(each_file_that_is_asked_for_is_written)
{
    char *paths[SXE_COUNT(writers)];
    FILE *err = tmpfile();
    size_t length;

    make_run(&made, 1);
    for (unsigned i = 0; i < SXE_COUNT(writers); i++)
        paths[i] = strdup(path_with("old"));
    made.plan.json = paths[0];
    made.plan.csv = paths[1];
    made.plan.candles = paths[2];
    made.plan.hgrm = paths[3];
    made.plan.hdr = paths[4];
    made.plan.html = paths[5];
    made.plan.junit = paths[6];
    made.plan.markdown = paths[7];
    ck_assert_int_eq(load_output_all(&made.run, err), LOAD_EXIT_OK);
    for (unsigned i = 0; i < SXE_COUNT(writers); i++) {
        char *expected = written_by(writers[i]);
        char *text = text_of(fopen(paths[i], "r"), NULL);

        ck_assert_str_eq(text, expected);
        free(text);
        free(expected);
        unlink(paths[i]);
        free(paths[i]);
    }
    free(text_of(err, &length));
    ck_assert_uint_eq(length, 0);
    free_run(&made);
}
END_TEST

/* All commands of a step share the file GITHUB_STEP_SUMMARY. */
START_TEST(the_summary_of_a_job_is_continued)
{
    char *path = path_with("the step before\n");
    char *text;

    make_run(&made, 1);
    made.plan.markdown = path;
    setenv("GITHUB_STEP_SUMMARY", path, 1);
    ck_assert_int_eq(load_output_all(&made.run, stderr), LOAD_EXIT_OK);
    text = text_of(fopen(path, "r"), NULL);
    ck_assert_int_eq(strncmp(text, "the step before\n## sxe-http: ", 29), 0);
    free(text);
    setenv("GITHUB_STEP_SUMMARY", "/elsewhere", 1);
    ck_assert_int_eq(load_output_all(&made.run, stderr), LOAD_EXIT_OK);
    text = text_of(fopen(path, "r"), NULL);
    ck_assert_int_eq(strncmp(text, "## sxe-http: ", 13), 0);
    free(text);
    unlink(path);
    free_run(&made);
}
END_TEST

/* Opening a FIFO waits for its reader, and closing it ends the reader's input: both only once. */
START_TEST(before_a_run_a_pipe_is_not_opened)
{
    struct load_plan plan = {.json = path_with("")};
    FILE *err = tmpfile();

    unlink(plan.json);
    ck_assert_int_eq(mkfifo(plan.json, 0600), 0);
    ck_assert_int_eq(load_output_check(&plan, err), LOAD_EXIT_OK);
    unlink(plan.json);
    fclose(err);
}
END_TEST

START_TEST(before_a_run_all_files_can_be_written_and_keep_what_is_in_them)
{
    struct load_plan plan = {.json = path_with("old"), .csv = "-", .html = "/dev/full"};
    FILE *err = tmpfile();
    char *text;

    ck_assert_int_eq(load_output_check(&plan, err), LOAD_EXIT_OK);
    text = text_of(fopen(plan.json, "r"), NULL);
    ck_assert_str_eq(text, "old");
    free(text);
    plan.hgrm = "/nowhere/a.hgrm";
    ck_assert_int_eq(load_output_check(&plan, err), LOAD_EXIT_USAGE);
    text = text_of(err, NULL);
    ck_assert_str_eq(text, "sxe-http: --hgrm /nowhere/a.hgrm cannot be written: No such file or "
                           "directory; nothing was run\n");
    free(text);
    unlink(plan.json);
}
END_TEST

START_TEST(a_dash_is_standard_output)
{
    FILE *out = tmpfile();
    int was = dup(1);
    char *text;

    make_run(&made, 1);
    made.plan.csv = "-";
    fflush(stdout);
    dup2(fileno(out), 1);
    ck_assert_int_eq(load_output_all(&made.run, stderr), LOAD_EXIT_OK);
    dup2(was, 1);
    close(was);
    text = text_of(out, NULL);
    ck_assert_int_eq(strncmp(text, "trial,", 6), 0);
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(what_cannot_be_written_is_said_and_the_others_are)
{
    char *path = path_with("");
    FILE *err = tmpfile();
    char *text;

    make_run(&made, 1);
    made.plan.json = "/nowhere/a.json";
    made.plan.csv = "/dev/full";
    made.plan.hgrm = path;
    ck_assert_int_eq(load_output_all(&made.run, err), LOAD_EXIT_ERRORS);
    text = text_of(err, NULL);
    ck_assert_str_eq(text,
                     "sxe-http: --json /nowhere/a.json could not be written: No such file or "
                     "directory\n"
                     "sxe-http: --csv /dev/full could not be written: No space left on device\n");
    free(text);
    text = text_of(fopen(path, "r"), NULL);
    ck_assert_ptr_nonnull(strstr(text, "#[Max"));
    free(text);
    unlink(path);
    free_run(&made);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-output");
    TCase *tcase = tcase_create("output");

    tcase_add_test(tcase, json_has_the_run_with_its_trials_and_their_sum);
    tcase_add_test(tcase, json_histograms_have_all_buckets_and_no_percentile_that_cannot_be_told);
    tcase_add_test(tcase, json_has_a_trend);
    tcase_add_test(tcase, json_has_the_search);
    tcase_add_test(tcase, json_has_what_was_judged);
    tcase_add_test(tcase, json_has_what_a_page_of_several_queries_takes);
    tcase_add_test(tcase, json_has_a_probe_beside_each_result);
    tcase_add_test(tcase, json_of_a_run_in_which_nothing_happened_has_no_number_that_is_none);
    tcase_add_test(tcase, csv_has_a_line_a_trial_and_one_for_all);
    tcase_add_test(tcase, csv_of_no_reply_has_empty_fields);
    tcase_add_test(tcase, candles_have_five_columns_a_kind_and_client);
    tcase_add_test(tcase, candles_of_too_many_clients_are_those_of_the_kinds);
    tcase_add_test(tcase, hgrm_is_what_hdrhistogram_writes);
    tcase_add_test(tcase, hgrm_rises_from_line_to_line_and_ends_with_all);
    tcase_add_test(tcase, hgrm_of_no_reply_has_only_its_frame);
    tcase_add_test(tcase, html_is_the_page_with_the_run_in_it);
    tcase_add_test(tcase, overlay_is_the_page_with_several_runs_in_it);
    tcase_add_loop_test(tcase, overlay_refuses_what_is_no_run_and_writes_nothing, 0,
                        sizeof(no_runs) / sizeof(no_runs[0]));
    tcase_add_test(tcase, overlay_says_that_the_disk_is_full);
    tcase_add_loop_test(tcase, a_full_disk_is_an_error, 0, sizeof(writers) / sizeof(writers[0]));
    tcase_add_test(tcase, what_was_lost_earlier_is_an_error_at_the_end);
    tcase_add_test(tcase, each_file_that_is_asked_for_is_written);
    tcase_add_test(tcase, the_summary_of_a_job_is_continued);
    tcase_add_test(tcase, before_a_run_a_pipe_is_not_opened);
    tcase_add_test(tcase, before_a_run_all_files_can_be_written_and_keep_what_is_in_them);
    tcase_add_test(tcase, a_dash_is_standard_output);
    tcase_add_test(tcase, what_cannot_be_written_is_said_and_the_others_are);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
