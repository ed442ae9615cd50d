/* SPDX-License-Identifier: MIT
 *
 * The outputs for continuous integration: JUnit XML, Markdown, GitHub annotations.
 */
#include <errno.h>
#include <string.h>

#include "checks.h"
#include "compare.h"
#include "has.h"
#include "http-run-fixture.h"
#include "output.h"
#include "test-main.h"

static struct made made;
static struct load_comparison comparison;

static void
set_up(void)
{
    make_run(&made, 1);
    made.run.fingerprint.number = 1;
    made.run.comparison = &comparison;
    comparison = (struct load_comparison){0};
}

static void
tear_down(void)
{
    free_run(&made);
}

static char *
written_by(int (*write)(FILE *, const struct load_run *))
{
    FILE *out = tmpfile();

    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(write(out, &made.run), 0);
    return text_of(out, NULL);
}

static void
is_written(int (*write)(FILE *, const struct load_run *), const char *expected)
{
    char *text = written_by(write);

    ck_assert_str_eq(text, expected);
    free(text);
}

static void
has_written(int (*write)(FILE *, const struct load_run *), const char *expected)
{
    char *text = written_by(write);

    check_has(text, expected);
    free(text);
}

static void
judge(unsigned i, const char *condition, double figure, bool is_told, bool holds)
{
    struct load_judged *judged = &made.run.judged[i];

    made.plan.thresholds[i] = condition;
    ck_assert_ptr_null(load_threshold_parse(&judged->threshold, condition));
    judged->figure = figure;
    judged->is_told = is_told;
    judged->holds = holds;
}

/* ---- Each check ---- */

static char told[8192];

static void
tell(void *user, const struct load_check *check)
{
    static const char *const outcomes[] = {"passed", "MISSED", "WRONG", "skipped"};
    size_t used = strlen(told);

    (void)user;
    snprintf(told + used, sizeof(told) - used, "%s%s, %s: %s: %s\n", outcomes[check->outcome],
             check->is_doubt ? "?" : "", check->group, check->name, check->text);
}

static const char *
all_checks(void)
{
    told[0] = '\0';
    load_checks_each(&made.run, tell, NULL);
    return told;
}

START_TEST(a_good_run_and_its_client_are_always_checked)
{
    ck_assert_str_eq(all_checks(),
                     "passed, run: the load was sent and answered well: 20000 of 20000 requests "
                     "were answered well, 5.00k/s\n"
                     "passed?, client: the client kept up: nothing speaks against it\n");
    made.run.comparison = NULL;
    ck_assert_ptr_null(strstr(all_checks(), "comparison"));
}
END_TEST

static void
fail_some(void)
{
    made.run.total->ends[LOAD_END_OK] -= 9;
    made.run.total->ends[LOAD_END_RESET] = 7;
    made.run.total->ends[LOAD_END_BAD_STATUS] = 2;
}

static void
fail_all(void)
{
    made.run.total->ends[LOAD_END_OK] = 0;
}

static void
open_few(void)
{
    made.run.total->opened = 12;
}

static void
skip_many(void)
{
    made.run.total->skipped[LOAD_SKIP_SHED] = 5000;
}

static void
fail_probe(void)
{
    make_probe(&made);
    made.run.probe->ends[LOAD_END_RESET] = 3;
}

static void
interrupt(void)
{
    made.run.is_interrupted = true;
    made.run.status = LOAD_EXIT_INTERRUPTED;
}

static void
lose_baseline(void)
{
    made.run.status = LOAD_EXIT_USAGE;
}

static const struct {
    void (*change)(void);
    const char *expected;
} wrongs[] = {
    {fail_some, "well: 9 of 20000 requests failed: bad status 2, reset 7.\n"},
    {fail_all, "well: No request was answered well.\n"},
    {open_few, "well: 12 of 64 connections were opened.\n"},
    {skip_many, "well: 25 % of the load was not sent.\n"},
    {fail_probe, "well: 3 requests of the probe failed.\n"},
    {interrupt, "well: The run was interrupted; what was done is reported.\n"},
    {lose_baseline, "well: Standard error says what happened.\n"},
};

START_TEST(a_run_that_is_no_result_says_why)
{
    made.run.status = LOAD_EXIT_ERRORS;
    wrongs[_i].change();
    check_has(all_checks(), "WRONG, run: ");
    check_has(all_checks(), wrongs[_i].expected);
}
END_TEST

START_TEST(doubts_are_those_of_the_client_and_of_the_probe)
{
    make_probe(&made);
    load_verdict_say(&made.run.verdict, "it slept");
    load_verdict_say(&made.run.verdict, "it ate");
    check_has(all_checks(), "MISSED?, client: the client kept up: it slept\nit ate\n");
    check_has(all_checks(), "passed?, probe: the probe kept up: nothing speaks against it\n");
    load_verdict_say(&made.run.probe_verdict, "it read");
    check_has(all_checks(), "MISSED?, probe: the probe kept up: it read\n");
}
END_TEST

START_TEST(each_threshold_is_checked)
{
    judge(0, "p99<20ms", 18e6, true, true);
    judge(1, "rate>50k", 4711, true, false);
    judge(2, "p99.9<1s", 0, false, false);
    judge(3, "p95<1s", 10e9, true, false);
    made.run.judged[3].is_at_least = true;
    check_has(all_checks(), "passed, threshold: p99<20ms: the figure is 18.0 ms\n"
                            "MISSED, threshold: rate>50k: the figure is 4.71k/s\n"
                            "MISSED, threshold: p99.9<1s: the figure cannot be told, since there "
                            "are too few samples\n"
                            "MISSED, threshold: p95<1s: the figure is at least 10.0 s, since "
                            "requests failed\n");
    fail_all();
    check_has(all_checks(), "p99.9<1s: the figure cannot be told, since there was no reply\n");
}
END_TEST

START_TEST(a_search_is_checked)
{
    make_find(&made);
    check_has(all_checks(), "passed, search: p99<10ms: 8500/s is the highest rate that held it, of "
                            "8 tried\n");
    made.run.found_rate = 0;
    check_has(all_checks(), "MISSED, search: p99<10ms: no rate held it, of 8 tried\n");
    made.run.is_untold = true;
    check_has(all_checks(), "MISSED?, search: p99<10ms: which rate holds it could not be told");
}
END_TEST

static void
make_comparison(void)
{
    comparison.is_made = true;
    comparison.with = "a.json";
    comparison.min_effect = 0.02;
    comparison.contrast.judged = 3;
    for (unsigned i = 0; i < LOAD_FIGURES; i++) {
        comparison.contrast.words[i] = LOAD_CONTRAST_REPEATED;
        comparison.contrast.ratios[i] = (struct load_interval){1.031, 1.052, 1.077, true};
    }
    comparison.contrast.words[LOAD_FIGURE_RATE] = LOAD_CONTRAST_SLOWER;
    comparison.contrast.words[LOAD_FIGURE_SERVICE_P50] = LOAD_CONTRAST_SMALL;
    comparison.contrast.words[LOAD_FIGURE_SERVICE_P95] = LOAD_CONTRAST_GIVEN;
    comparison.contrast.words[LOAD_FIGURE_SERVICE_P99] = LOAD_CONTRAST_UNKNOWN;
    comparison.contrast.words[LOAD_FIGURE_RESPONSE_P50] = LOAD_CONTRAST_BOUND;
}

START_TEST(each_figure_of_a_comparison_is_checked)
{
    make_comparison();
    check_has(all_checks(),
              "MISSED, comparison: rate a second: slower: 1.052 times that of a.json (1.031 to "
              "1.077, 95 % for all 3 figures together)\n"
              "passed, comparison: service p50: no difference shown beyond 2 %: 1.052 times that "
              "of a.json (1.031 to 1.077, 95 % for all 3 figures together)\n"
              "skipped, comparison: service p95: it is given (-R, --replay), so it is no result\n"
              "skipped, comparison: service p99: there are too few trials that have it\n"
              "skipped, comparison: response p50: requests failed, so it is only a lower bound\n");
    ck_assert_ptr_null(strstr(told, "response p95"));
}
END_TEST

START_TEST(what_failed_more_than_on_the_other_side_is_a_check)
{
    make_comparison();
    ck_assert_ptr_null(strstr(all_checks(), "failed:"));
    comparison.contrast.counts[LOAD_CONTRAST_UNSENT] = LOAD_CONTRAST_MORE;
    comparison.contrast.words[LOAD_FIGURE_RATE] = LOAD_CONTRAST_UNTOLD;
    check_has(all_checks(),
              "MISSED, comparison: not sent: more than that of a.json\n"
              "skipped, comparison: rate a second: a trial has too few requests to tell it\n");
    comparison.contrast.is_dead = true;
    check_has(all_checks(),
              "MISSED, comparison: failed: there is no good reply, or a trial without "
              "one, unlike a.json\nMISSED, comparison: not sent: ");
}
END_TEST

START_TEST(a_width_that_was_asked_for_is_checked)
{
    made.plan.until_ci = 0.02;
    made.run.figures[LOAD_FIGURE_RATE] = (struct load_interval){1000, 1000, 1010, true};
    check_has(all_checks(), "passed, interval: rate: it is under 2 % wide\n");
    made.run.figures[LOAD_FIGURE_RATE].high = 1030;
    check_has(all_checks(), "MISSED?, interval: rate: after 1 trials it is not under 2 % wide; a "
                            "trial takes 1 requests\n");
}
END_TEST

/* ---- JUnit ---- */

START_TEST(junit_has_a_case_for_each_check)
{
    judge(0, "p99<20ms", 23e6, true, false);
    make_comparison();
    fail_some();
    made.run.status = LOAD_EXIT_ERRORS;
    comparison.contrast.words[LOAD_FIGURE_SERVICE_P50] = LOAD_CONTRAST_REPEATED;
    comparison.contrast.words[LOAD_FIGURE_SERVICE_P99] = LOAD_CONTRAST_REPEATED;
    comparison.contrast.words[LOAD_FIGURE_RESPONSE_P50] = LOAD_CONTRAST_REPEATED;
    is_written(
        load_output_junit,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites name=\"sxe-http\" tests=\"5\" failures=\"2\" errors=\"1\" skipped=\"1\" "
        "time=\"4.000\">\n"
        "  <testsuite name=\"GET http://192.0.2.1:8000/\" tests=\"5\" failures=\"2\" errors=\"1\" "
        "skipped=\"1\" time=\"4.000\" timestamp=\"2026-11-21T10:00:00\">\n"
        "    <properties>\n"
        "      <property name=\"kernel\" value=\"6.1.0\"/>\n"
        "    </properties>\n"
        "    <testcase classname=\"sxe-http\" name=\"run: the load was sent and answered well\" "
        "time=\"4.000\"><error message=\"9 of 20000 requests failed: bad status 2, reset 7.\" "
        "type=\"run\">9 of 20000 requests failed: bad status 2, reset 7.</error></testcase>\n"
        "    <testcase classname=\"sxe-http\" name=\"client: the client kept up\" "
        "time=\"0.000\"><system-out>nothing speaks against it</system-out></testcase>\n"
        "    <testcase classname=\"sxe-http\" name=\"threshold: p99&#60;20ms\" "
        "time=\"0.000\"><failure message=\"the figure is 23.0 ms\" type=\"threshold\">the figure "
        "is 23.0 ms</failure></testcase>\n"
        "    <testcase classname=\"sxe-http\" name=\"comparison: rate a second\" "
        "time=\"0.000\"><failure message=\"slower: 1.052 times that of a.json (1.031 to 1.077, "
        "95 % for all 3 figures together)\" type=\"comparison\">slower: 1.052 times that of a.json "
        "(1.031 to 1.077, 95 % for all 3 figures together)</failure></testcase>\n"
        "    <testcase classname=\"sxe-http\" name=\"comparison: service p95\" "
        "time=\"0.000\"><skipped message=\"it is given (-R, --replay), so it is no result\">it is "
        "given (-R, --replay), so it is no result</skipped></testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n");
}
END_TEST

/* URLs, file names and texts of a server may contain any characters. */
START_TEST(junit_is_xml_whatever_is_in_a_text)
{
    snprintf(made.plan.what, sizeof(made.plan.what),
             "<\"&'>\n\t\x01\x7f\xc3\xa9\xff\xef\xbf\xbe]]>");
    has_written(load_output_junit, "<testsuite name=\"&#60;&#34;&#38;&#39;&#62;&#10;&#9;&#xfffd;"
                                   "\x7f\xc3\xa9&#xfffd;&#xfffd;]]&#62;\" ");
}
END_TEST

/* ---- Markdown ---- */

START_TEST(markdown_has_tables_of_what_was_judged_and_measured)
{
    char *text;

    judge(0, "p99<20ms", 23e6, true, false);
    load_verdict_say(&made.run.verdict, "it slept");
    load_verdict_say(&made.run.verdict, "it ate");
    made.run.status = LOAD_EXIT_SUSPECT;
    text = written_by(load_output_markdown);
    check_has(text, "## sxe-http: GET http://192.0.2.1:8000/\n\n"
                    "**Exit status 4: the result is suspect.** closed loop, "
                    "2026-11-21T10:00:00Z\n\n"
                    "| what was judged | outcome | why |\n|---|---|---|\n"
                    "| run: the load was sent and answered well | good | 20000 of 20000 requests "
                    "were answered well, 5.00k/s |\n"
                    "| client: the client kept up | **suspect** | it slept<br>it ate |\n"
                    "| threshold: p99&#60;20ms | **missed** | the figure is 23.0 ms |\n\n"
                    "| figure | value |\n|---|---:|\n"
                    "| rate | 5.00k/s |\n| offered | 20000 |\n| ok | 20000 |\n| errors | 0 |\n"
                    "| skipped | 0 |\n| connections open | 64 of 64 |\n| trials | 1 of 4.00 s |\n\n"
                    "| time | p50 | p90 | p95 | p99 | p99.9 | p99.99 | max |\n"
                    "|---|---:|---:|---:|---:|---:|---:|---:|\n| connect | 131 us | n/a |");
    check_has(text, "\n| response |");
    ck_assert_ptr_null(strstr(text, "probe"));
    free(text);
}
END_TEST

START_TEST(markdown_has_the_probe_and_leaves_out_what_there_is_not)
{
    char *text;

    make_probe(&made);
    memset(&made.run.total->connect, 0, sizeof(made.run.total->connect));
    text = written_by(load_output_markdown);
    check_has(text, "| response of the probe | 1.50 ms |");
    ck_assert_ptr_null(strstr(text, "| connect |"));
    free(text);
}
END_TEST

START_TEST(markdown_is_a_table_whatever_is_in_a_text)
{
    snprintf(made.plan.what, sizeof(made.plan.what), "a|b\\`*_[x]~$<i>&\r\x7f\xff\xc3\xa9");
    has_written(
        load_output_markdown,
        "## sxe-http: a\\|b\\\\\\`\\*\\_\\[x\\]\\~\\$&#60;i&#62;&#38;  \xef\xbf\xbd\xc3\xa9\n");
}
END_TEST

static const struct {
    enum load_exit status;
    const char *expected;
} statuses[] = {
    {LOAD_EXIT_OK, "**Exit status 0: all is well.**"},
    {LOAD_EXIT_ERRORS, "**Exit status 1: errors.**"},
    {LOAD_EXIT_USAGE, "**Exit status 2: a file could not be read.**"},
    {LOAD_EXIT_THRESHOLD, "**Exit status 3: a threshold was missed, no rate was found, or a "},
    {LOAD_EXIT_SUSPECT, "**Exit status 4: the result is suspect.**"},
    {LOAD_EXIT_UNTOLD, "**Exit status 5: it could not be told which rate holds.**"},
    {LOAD_EXIT_INTERRUPTED, "**Exit status 130: interrupted.**"},
};

START_TEST(markdown_says_what_the_status_means)
{
    made.run.status = statuses[_i].status;
    has_written(load_output_markdown, statuses[_i].expected);
}
END_TEST

/* ---- GitHub's lines ---- */

START_TEST(nothing_is_annotated_where_all_is_well)
{
    make_comparison();
    comparison.contrast.words[LOAD_FIGURE_RATE] = LOAD_CONTRAST_FASTER;
    is_written(load_output_annotations, "");
}
END_TEST

START_TEST(what_is_not_well_is_a_line_each)
{
    judge(0, "p99<20ms", 23e6, true, false);
    judge(1, "errors<1%", 0.02, true, false);
    load_verdict_say(&made.run.verdict, "cpu 99 %% of a core");
    load_verdict_say(&made.run.verdict, "it ate\r");
    make_comparison();
    fail_some();
    made.run.status = LOAD_EXIT_ERRORS;
    is_written(load_output_annotations,
               "::error title=sxe-http%3A Run failed::9 of 20000 requests failed: bad status 2, "
               "reset 7.\n"
               "::warning title=sxe-http%3A Result suspect::cpu 99 %25 of a core%0Ait ate%0D\n"
               "::error title=sxe-http%3A Threshold missed::p99<20ms: the figure is 23.0 ms\n"
               "::error title=sxe-http%3A Threshold missed::errors<1%25: the figure is 2 %25\n"
               "::error title=sxe-http%3A Regression::rate a second: slower: 1.052 times that of "
               "a.json (1.031 to 1.077, 95 %25 for all 3 figures together)\n");
}
END_TEST

START_TEST(what_a_search_could_not_tell_is_a_warning)
{
    make_find(&made);
    made.run.found_rate = 0;
    has_written(load_output_annotations, "::error title=sxe-http%3A No rate holds::p99<10ms: no ");
    made.run.is_untold = true;
    has_written(load_output_annotations, "::warning title=sxe-http%3A Could not tell::p99<10ms: ");
}
END_TEST

/* ---- All checks ---- */

static int (*const writers[])(FILE *, const struct load_run *) = {
    load_output_junit, load_output_markdown, load_output_annotations};

START_TEST(a_full_disk_is_an_error)
{
    FILE *full = fopen("/dev/full", "w");

    made.run.status = LOAD_EXIT_ERRORS;
    ck_assert_int_eq(writers[_i](full, &made.run), -ENOSPC);
    fclose(full);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-checks");
    TCase *tcase = tcase_create("checks");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_good_run_and_its_client_are_always_checked);
    tcase_add_loop_test(tcase, a_run_that_is_no_result_says_why, 0, SXE_COUNT(wrongs));
    tcase_add_test(tcase, doubts_are_those_of_the_client_and_of_the_probe);
    tcase_add_test(tcase, each_threshold_is_checked);
    tcase_add_test(tcase, a_search_is_checked);
    tcase_add_test(tcase, each_figure_of_a_comparison_is_checked);
    tcase_add_test(tcase, what_failed_more_than_on_the_other_side_is_a_check);
    tcase_add_test(tcase, a_width_that_was_asked_for_is_checked);
    tcase_add_test(tcase, junit_has_a_case_for_each_check);
    tcase_add_test(tcase, junit_is_xml_whatever_is_in_a_text);
    tcase_add_test(tcase, markdown_has_tables_of_what_was_judged_and_measured);
    tcase_add_test(tcase, markdown_has_the_probe_and_leaves_out_what_there_is_not);
    tcase_add_test(tcase, markdown_is_a_table_whatever_is_in_a_text);
    tcase_add_loop_test(tcase, markdown_says_what_the_status_means, 0, SXE_COUNT(statuses));
    tcase_add_test(tcase, nothing_is_annotated_where_all_is_well);
    tcase_add_test(tcase, what_is_not_well_is_a_line_each);
    tcase_add_test(tcase, what_a_search_could_not_tell_is_a_warning);
    tcase_add_loop_test(tcase, a_full_disk_is_an_error, 0, SXE_COUNT(writers));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
