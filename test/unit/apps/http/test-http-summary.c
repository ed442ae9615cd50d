/* SPDX-License-Identifier: MIT
 *
 * The report for people: never more than 20 lines of 100 columns, with errors first and the three
 * lines of 2010 last.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "http-run-fixture.h"
#include "run-private.h"
#include "summary-sheet.h"
#include "test-main.h"
#include "test-sweep.h"

static struct made made;

/* Print as the program does: the plan, the sockets, the rest. */
static void
print_all(FILE *out, bool is_colored)
{
    ck_assert_ptr_nonnull(out);
    load_summary_plan(out, &made.plan);
    load_summary_sockets(out, made.run.total);
    load_summary_print(out, &made.run, is_colored);
}

static char *
printed(bool is_colored)
{
    FILE *out = tmpfile();

    print_all(out, is_colored);
    return text_of(out, NULL);
}

/* The report on a terminal with this many columns. */
static const char *
seen_on_terminal(unsigned short columns)
{
    static char bytes[8192];
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    size_t used = 0;
    ssize_t n;
    FILE *out;

    ck_assert_int_ge(terminal, 0);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
    out = fopen(ptsname(terminal), "w");
    print_all(out, false);
    fflush(out);
    while ((n = read(terminal, bytes + used, sizeof(bytes) - 1 - used)) > 0)
        used += (size_t)n;
    bytes[used] = '\0';
    fclose(out);
    close(terminal);
    return bytes;
}

static unsigned
ck_fits(const char *text)
{
    unsigned lines = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        char line[1024];

        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        ck_assert_uint_gt(length, 0);
        ck_assert_msg(load_columns(line) <= LOAD_SUMMARY_COLUMNS, "too wide: %s", line);
        ck_assert_int_ne(line[length - 1], ' ');
        text += length + 1;
        lines++;
    }
    ck_assert_uint_le(lines, LOAD_SUMMARY_LINES);
    return lines;
}

/* The report about `made`, with its shape checked; frees the run. */
static char *
summary(void)
{
    char *text = printed(false);

    ck_fits(text);
    free_run(&made);
    return text;
}

/* Judge the thresholds of the plan. */
static void
judge(void)
{
    FILE *err = tmpfile();

    load_run_judge(&made.run, false, err);
    fclose(err);
}

/* ---- The plan ---- */

static void
plan_closed(struct load_plan *plan)
{
    plan->stop = LOAD_STOP_PER_SOCKET;
    plan->queries = 50;
    plan->sockets = 10000;
}

static void
plan_one(struct load_plan *plan)
{
    plan->stop = LOAD_STOP_PER_SOCKET;
    plan->queries = plan->sockets = 1;
    plan->workers = 3;
}

static void
plan_total(struct load_plan *plan)
{
    plan->stop = LOAD_STOP_TOTAL;
    plan->requests_max = 100000;
    plan->think_ns = 10000000;
    plan->depth = 8;
}

static void
plan_rate(struct load_plan *plan)
{
    plan->model = LOAD_PARTLY_OPEN;
    plan->rate = plan->rate_end = 20000;
    plan->warmup_ns = UINT64_C(2000000000);
}

static void
plan_auto(struct load_plan *plan)
{
    plan->warmup_ns = UINT64_C(4000000000);
    plan->is_warmup_auto = true;
}

static void
plan_ramp(struct load_plan *plan)
{
    plan->model = LOAD_OPEN;
    plan->arrivals = LOAD_FIXED;
    plan->rate = 1000;
    plan->rate_end = 0.5;
}

static void
plan_find(struct load_plan *plan)
{
    plan->model = LOAD_PARTLY_OPEN;
    plan->rate = plan->rate_end = 0;
    plan->find = "p99<10ms";
}

static void
plan_replay(struct load_plan *plan)
{
    plan->model = LOAD_PARTLY_OPEN;
    plan->stop = LOAD_STOP_REPLAY;
    plan->replay_speed = 2.5;
}

static void
plan_probe(struct load_plan *plan)
{
    plan->probe_rate = 100;
}

#define GET "GET http://192.0.2.1:8000/"

static const struct {
    void (*change)(struct load_plan *);
    const char *expected;
} plans[] = {
    {plan_closed, "closed loop: 10000 connections * 50 requests each = 500000 requests  " GET "\n"
                  "          1 worker\n"},
    {plan_one, "closed loop: 1 connection * 1 requests each = 1 requests  " GET "  3 workers\n"},
    {plan_total, "closed loop: 100000 requests over 64 connections  " GET "  1 worker  pipeline 8\n"
                 "          think 10 ms\n"},
    {plan_rate, "partly open: 20000/s Poisson, 64 connections for 4 s  " GET "  1 worker\n"
                "          warm-up 2 s\n"},
    {plan_auto,
     "closed loop: 64 connections for 4 s  " GET "  1 worker  warm-up auto, up to 4 s\n"},
    {plan_ramp, "open: 1000/s to 0.5/s fixed, 64 connections for 4 s  " GET "  1 worker\n"},
    {plan_find,
     "partly open: highest rate with p99<10ms, Poisson, 64 connections for 4 s  " GET "\n"
     "          1 worker\n"},
    {plan_replay,
     "partly open: a log replayed at 2.5 times its speed over 64 connections  " GET "\n"
     "          1 worker\n"},
    {plan_probe, "closed loop: 64 connections for 4 s  " GET "  1 worker  probe 100/s\n"},
};

START_TEST(the_first_line_names_the_model_and_the_product)
{
    FILE *out = tmpfile();
    struct load_plan plan;
    char *text;

    make_plan(&plan);
    plans[_i].change(&plan);
    load_summary_plan(out, &plan);
    text = text_of(out, NULL);
    ck_assert_str_eq(text, plans[_i].expected);
    free(text);
}
END_TEST

START_TEST(a_long_url_is_cut)
{
    FILE *out = tmpfile();
    struct load_plan plan;
    char *text;

    make_plan(&plan);
    memset(plan.what, 'x', sizeof(plan.what) - 1);
    load_summary_plan(out, &plan);
    text = text_of(out, NULL);
    ck_assert_uint_eq(ck_fits(text), 2);
    check_has(text, "xxx...  1 worker\n");
    free(text);
}
END_TEST

/* ---- The sockets ---- */

static char *
sockets_of(const struct load_result *result)
{
    FILE *out = tmpfile();

    load_summary_sockets(out, result);
    return text_of(out, NULL);
}

START_TEST(sockets_are_those_wanted_and_those_open_with_what_connecting_took)
{
    char *text;

    make_run(&made, 1);
    text = sockets_of(made.run.total);
    ck_assert_str_eq(
        text, "opened    64/64 connections in 0.008 s  8000/s  connect p50 131 us p95 n/a p99 n/a "
              "max 163 us\n");
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(sockets_that_are_not_open_are_named_by_kind)
{
    struct load_result *result;
    char *text;

    make_run(&made, 1);
    result = made.run.total;
    result->opened = 60;
    result->unopened[LOAD_UNOPENED_REFUSED] = 3;
    result->unopened[LOAD_UNOPENED_OTHER] = 1;
    result->first_error = ENETUNREACH;
    result->syn_retries = 134;
    text = sockets_of(result);
    ck_assert_str_eq(
        text, "opened    60/64 connections in 0.008 s  7500/s  refused 3  other 1  (first: Network "
              "is unreachable)\n"
              "          connect p50 131 us p95 n/a p99 n/a max 163 us  SYN retries 134\n");
    free(text);
    memset(result, 0, sizeof(*result));
    result->sockets_wanted = 5;
    text = sockets_of(result);
    ck_assert_str_eq(text, "opened    0/5 connections in 0.000 s  0/s\n");
    free(text);
    free_run(&made);
}
END_TEST

/* ---- The end ---- */

START_TEST(a_good_run_in_a_closed_loop)
{
    char *text;

    make_run(&made, 1);
    text = summary();
    ck_assert_str_eq(
        strstr(text, "requests "),
        "requests  20000  ok 20000  errors 0  in flight 0  in 4.000 s  5000/s\n"
        "                 p50       p90       p95       p99     p99.9    p99.99       max  "
        "response "
        "= service\n"
        "service       233 us    318 us    376 us    611 us   1.37 ms       n/a   7.12 ms\n"
        "GET /         253 us   2.24 ms   2.27 ms   2.41 ms   2.91 ms       n/a   7.12 ms\n"
        "POST, ...     252 us   2.24 ms   2.27 ms   2.39 ms   2.87 ms       n/a   3.92 ms  POST, "
        "\"all\"</sc...\n"
        "first byte    213 us    298 us    356 us    591 us   1.35 ms       n/a   7.10 ms\n"
        "connect       131 us       n/a       n/a       n/a       n/a       n/a    163 us\n"
        "over time \u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588"
        "\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588"
        "\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588"
        "\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588  to 5.00k/s, a column 80.0 "
        "ms\n"
        "client    kept up: cpu 50 %  waited 1.0 %  p99 of loop lag 26.0 us\n"
        "time for all connections: 0.008000 seconds or 8000.000000 per second\n"
        "time for all queries    : 4.000000 seconds or 5000.000000 per second\n"
        "time for all            : 4.008000 seconds or 4990.019960 per second\n");
    free(text);
}
END_TEST

START_TEST(what_a_warm_up_that_is_found_out_took_is_said_first)
{
    char *text;

    make_run(&made, 2);
    made.plan.is_warmup_auto = _i > 0;
    made.run.trials_number = _i == 2 ? 2 : 1;
    made.run.left_out = (struct load_left_out){UINT64_C(2300000000), 34211, NULL};
    text = summary();
    check_has(text, _i == 0   ? "connect p50 131 us p95 n/a p99 n/a max 163 us\nrequests "
                    : _i == 1 ? "\nwarm-up   left out: 2.30 s and 34211 requests\nrequests "
                              : "\nwarm-up   left out: 2.30 s and 34211 requests  of 2 trials\n");
    free(text);
}
END_TEST

START_TEST(errors_come_first_each_kind_with_its_first_detail)
{
    struct load_result *total;
    char *text;

    make_run(&made, 1);
    total = made.run.total;
    total->ends[LOAD_END_OK] -= 25;
    total->ends[LOAD_END_RESET] = 10;
    total->ends[LOAD_END_BAD_STATUS] = 8;
    total->first_bad_status = 503;
    total->ends[LOAD_END_OTHER] = 7;
    total->first_error = EPIPE;
    text = summary();
    check_has(text, "\nerrors    25 of 20000  bad status 8 (first: 503)  reset 10  other 7 (first: "
                    "Broken pipe)\nrequests  20000  ok 19975  errors 25 ");
    free(text);
}
END_TEST

START_TEST(in_a_rate_response_stands_beside_service)
{
    char *text;

    make_run(&made, 1);
    made.plan.model = LOAD_PARTLY_OPEN;
    made.run.total->late = 14;
    made.run.total->waiting = 5;
    for (unsigned i = 0; i < 2000; i++) {
        load_histogram_record(&made.run.total->timer_error, 50000);
        load_histogram_record(&made.run.total->schedule_lag, 60000);
    }
    made.run.total->script_calls = 1;
    made.run.total->script_ns = MADE_NS / 8;
    made.run.verdict.spun = 0.3;
    text = summary();
    check_has(text, "\nservice       233 us ");
    check_has(text, "\nresponse      252 us ");
    check_has_not(text, "response = service");
    check_has(
        text,
        "in flight 0  waiting 5  in 4.000 s  5000/s\n          late 14 (by more than 1 ms)\n");
    check_has(text,
              "\nclient    kept up: cpu 50 %  waited 1.0 %  spun 30 %  script 25 %\n          p99 "
              "of loop lag 26.0 us, timer 50.0 us, schedule 60.0 us\n");
    free(text);
}
END_TEST

START_TEST(too_high_a_rate_is_called_overload)
{
    char *text;

    make_run(&made, 1);
    made.plan.model = LOAD_PARTLY_OPEN;
    made.run.total->offered += 12;
    made.run.total->skipped[LOAD_SKIP_SHED] = 7;
    made.run.total->skipped[LOAD_SKIP_NO_SOCKET] = 2;
    made.run.total->skipped[LOAD_SKIP_UNSENT] = 3;
    text = summary();
    check_has(text,
              "\nskipped   12 of 20012  shed past the deadline 7  no free connection 2  "
              "not sent by the end 3\n"
              "overload: 12 of the requests found no free connection; give more (-c), or a lower "
              "rate (-R)\n");
    free(text);
}
END_TEST

START_TEST(what_lost_sockets_left_unsent_is_no_overload)
{
    char *text;

    make_run(&made, 1);
    made.plan.model = LOAD_PARTLY_OPEN;
    made.run.total->offered += 10;
    made.run.total->skipped[LOAD_SKIP_UNSENT] = 10;
    made.run.total->reopened = 3;
    made.run.total->resent = 2;
    made.run.total->not_reopened = 1;
    made.run.total->connect.count = 0;
    text = summary();
    check_has(text, "\nskipped   10 of 20010  not sent by the end 10\n");
    check_has(text,
              "  connections reopened 3\n          resent 2 (sent after a Connection: close)\n");
    check_has_not(text, "overload");
    check_has_not(text, "\nconnect ");
    free(text);
}
END_TEST

START_TEST(sessions_have_a_line)
{
    static const char *const lines[] = {"\nsessions  400 completed  0 failed  100/s\n",
                                        "\nsessions  400 completed  2 failed  100/s\n"};
    char *text;

    for (unsigned i = 0; i < 2; i++) {
        make_run(&made, 1);
        made.run.total->sessions_completed = 400;
        made.run.total->sessions_failed = 2 * i;
        text = summary();
        check_has(text, lines[i]);
        free(text);
    }
    make_run(&made, 1);
    text = summary();
    check_has_not(text, "\nsessions");
    free(text);
}
END_TEST

START_TEST(what_was_begun_before_the_measuring_is_in_the_account)
{
    char *text;

    make_run(&made, 1);
    made.run.total->carried = 5;
    made.run.total->in_flight = 5;
    text = summary();
    check_has(text,
              "\nrequests  20000  ok 20000  errors 0  in flight 5  begun before 5  in 4.000 s");
    free(text);
}
END_TEST

START_TEST(what_an_interruption_or_a_closed_loop_left_unsent_is_no_overload)
{
    char *text;

    make_run(&made, 1);
    made.plan.model = _i == 0 ? LOAD_OPEN : LOAD_CLOSED;
    made.run.is_interrupted = _i == 0;
    made.run.total->skipped[LOAD_SKIP_UNSENT] = 3;
    text = summary();
    check_has(text, "  not sent by the end 3\n");
    check_has_not(text, "overload");
    ck_assert_int_eq(strstr(text, "\ninterrupted: this is what was done so far\n") != NULL,
                     _i == 0);
    free(text);
}
END_TEST

START_TEST(why_a_result_is_suspect_stands_above_all)
{
    static const char reason[] =
        "client cpu 99.0 % of a core (limit 97 %): this may be the client's "
        "rate and not the server's, "
        "which could be higher; use more workers: -t 2";
    char *text;

    make_run(&made, 1);
    made.run.verdict.number = 5;
    for (unsigned i = 0; i < 5; i++)
        snprintf(made.run.verdict.reasons[i], LOAD_REASON_MAX, "%s", reason);
    text = summary();
    check_has(
        text,
        "us\nRESULT SUSPECT: client cpu 99.0 % of a core (limit 97 %): this may be the client's "
        "rate and not the\n          server's, which could be higher; use more workers: -t "
        "2\nRESULT SUSPECT: client");
    check_has(text, "\nRESULT SUSPECT: and 2 more, see --json\nrequests ");
    check_has(text, "\nclient    SUSPECT: cpu 50 %");
    free(text);
}
END_TEST

/* ---- The probe ---- */

#define PROBE_TIMES                                                                      \
    "  service    1.00 ms   1.00 ms   1.00 ms       n/a       n/a       n/a   1.00 ms\n" \
    "  response   1.50 ms   1.50 ms   1.50 ms       n/a       n/a       n/a   1.50 ms\n"

START_TEST(a_probe_stands_beside_the_load_in_the_same_columns)
{
    char *text;

    make_run(&made, 1);
    make_probe(&made);
    text = summary();
    check_has(text,
              "\nprobe     400  ok 400  errors 0  in flight 0  on 16/16 connections  kept up: "
              "cpu 2 %  waited 0.0 %\n" PROBE_TIMES);
    check_has(text, "\nrequests  20000  ok 20000  errors 0");
    check_has_not(text, "SUSPECT");
    check_has_not(text, "the probe kept up");
    free(text);
}
END_TEST

START_TEST(the_parts_of_a_load_that_are_here_are_named)
{
    char *text;

    make_run(&made, 1);
    made.plan.shards = 4;
    made.plan.has_shard[0] = made.plan.has_shard[2] = true;
    text = summary();
    check_has(text, "1 worker\n          of which this is shard 1 3 of 4\n");
    free(text);
}
END_TEST

START_TEST(processes_that_shared_the_load_have_a_line)
{
    struct load_part parts[3] = {{.rate = 1700}, {.rate = 1600}, {.rate = 1650}};
    char *text;

    make_run(&made, 1);
    made.run.parts = parts;
    made.run.parts_number = 3;
    parts[1].verdict.number = 1;
    text = printed(false);
    check_has(text, "\nparts     2 of 3 kept up  1.60k/s to 1.70k/s each\n");
    free(text);
    parts[2].clock_ns = 12000;
    text = printed(false);
    check_has(text, "1.60k/s to 1.70k/s each  clocks within 12.0 us\n");
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(of_a_suspect_load_the_probe_may_be_believed)
{
    char *text;

    make_run(&made, 1);
    make_probe(&made);
    made.run.verdict.number = 1;
    snprintf(made.run.verdict.reasons[0], LOAD_REASON_MAX, "client cpu");
    text = printed(true);
    check_has(text,
              "\033[32mthe probe kept up: only the load is suspect, not the probe's times\033");
    free(text);
    /* A probe without a reply is not said to have kept up. */
    made.run.probe->response.count = 0;
    text = summary();
    check_has_not(text, "the probe kept up");
    free(text);
}
END_TEST

START_TEST(a_suspect_probe_is_told_from_a_suspect_load)
{
    char *text;

    make_run(&made, 1);
    make_probe(&made);
    made.run.probe_verdict.number = 1;
    snprintf(made.run.probe_verdict.reasons[0], LOAD_REASON_MAX, "waited 9 %%");
    text = printed(false);
    check_has(text, "\nPROBE SUSPECT: waited 9 %\nrequests ");
    check_has(text, "  SUSPECT: cpu 2 %");
    check_has(text, "\nclient    kept up: ");
    check_has_not(text, "RESULT SUSPECT");
    free(text);
    made.run.probe_verdict.number = 3;
    text = summary();
    check_has(text, "\nPROBE SUSPECT: waited 9 %  (and 2 more, see --json)\n");
    free(text);
}
END_TEST

START_TEST(what_a_probe_lacks_is_painted)
{
    struct load_result *probe;
    char *text;

    make_run(&made, 1);
    make_probe(&made);
    probe = made.run.probe;
    probe->offered += 4;
    probe->skipped[LOAD_SKIP_UNSENT] = 4;
    text = printed(true);
    check_has(text, "\nprobe     404  ok 400  errors 0  in flight 0  not sent 4  on 16/16");
    free(text);
    probe->opened = 13;
    probe->unopened[LOAD_UNOPENED_REFUSED] = 3;
    text = printed(true);
    check_has(text, "\n\033[1;31mprobe     404");
    check_has(text, "on 13/16 connections  refused 3");
    free(text);
    probe->opened = 16;
    probe->ends[LOAD_END_RESET] = 2;
    text = printed(true);
    check_has(text, "\n\033[1;31mprobe     404  ok 400  errors 2");
    free(text);
    free_run(&made);
}
END_TEST

START_TEST(trials_give_medians_with_intervals)
{
    char *text;

    make_run(&made, 6);
    made.plan.aa = true;
    for (unsigned i = 0; i < LOAD_FIGURES; i++)
        made.run.noise[i] = (struct load_interval){0.981, 1, 1.013, true};
    text = summary();
    check_has(text,
              "\ntrials    6, medians [95 % interval]:  rate/s 5.00k [4.75k, 5.20k]\n"
              "          service p50 250 us [238 us, 260 us]  service p95 500 us [475 us, 520 "
              "us]\n          service p99 750 us [712 us, 780 us]\n");
    check_has(text, "\nnoise     the same against itself:  rate -1.9 % to +1.3 %");
    check_has(text, "requests  120000  ok 120000  errors 0  in flight 0  in 24.000 s  5000/s\n");
    check_has(text, "  to 5.00k/s, a column 80.0 ms\n");
    free(text);
}
END_TEST

START_TEST(an_interval_that_stayed_too_wide_is_said)
{
    char *text;

    make_run(&made, 6);
    made.plan.until_ci = _i == 0 ? 0.02 : 0.2;
    text = summary();
    if (_i == 0)
        check_has(text,
                  "\nuntil-ci  not reached: after 6 trials the interval of rate is 9.0 % wide, "
                  "not under 2 %\n");
    else
        check_has_not(text, "until-ci");
    free(text);
}
END_TEST

START_TEST(without_an_interval_it_is_too_wide)
{
    char *text;

    make_run(&made, 2);
    made.plan.until_ci = 0.02;
    text = summary();
    check_has(text, "\nuntil-ci  not reached: 2 trials are too few for an interval\n");
    free(text);
}
END_TEST

START_TEST(a_figure_that_a_trial_cannot_tell_is_not_available)
{
    static const struct load_interval none = {NAN, NAN, NAN, false};
    char *text;

    make_run(&made, 6);
    made.plan.aa = true;
    made.plan.until_ci = 0.02;
    made.plan.until_ci_figure = LOAD_FIGURE_SERVICE_P95;
    made.run.figures[LOAD_FIGURE_SERVICE_P95] = made.run.noise[LOAD_FIGURE_SERVICE_P95] = none;
    text = summary();
    check_has(text, "260 us]  service p95 n/a");
    check_has(text, "  service.p95 n/a");
    check_has(text, "\nuntil-ci  not reached: service.p95 is n/a; it takes 200 requests a trial\n");
    free(text);
}
END_TEST

START_TEST(few_trials_give_extremes)
{
    char *text;

    make_run(&made, 2);
    made.plan.model = LOAD_OPEN;
    made.plan.aa = true;
    made.run.noise[LOAD_FIGURE_RESPONSE_P50] = (struct load_interval){0.5, 1, 1.5, false};
    text = summary();
    check_has(text, "\ntrials    2, medians [extremes; 6 trials make an interval]:  response p50 ");
    check_has_not(text, "rate/s");
    check_has(text, "response p99 750 us");
    check_has(text, "response.p50 -50.0 % to +50.0 %");
    free(text);
}
END_TEST

START_TEST(thresholds_are_held_or_missed_with_their_figures)
{
    char *text;

    make_run(&made, 1);
    made.plan.thresholds[0] = "service.p99<20ms";
    made.plan.thresholds[1] = "rate>=10k";
    made.plan.thresholds[2] = "errors<0.1%";
    made.plan.thresholds[3] = "p99.999<1s";
    made.plan.thresholds[4] = " rate>1";
    judge();
    text = summary();
    check_has(
        text,
        "\nthreshold  service.p99<20ms held (611 us)  rate>=10k MISSED (5.00k/s)  errors<0.1% "
        "held (0 %)\n          p99.999<1s MISSED (n/a: too few samples)   rate>1 held (5.00k/s)\n");
    free(text);
}
END_TEST

START_TEST(a_page_of_several_queries_is_told_from_one_of_them)
{
    char *text;

    make_run(&made, 1);
    made.plan.fanout = _i == 0 ? 10 : 1000000;
    made.plan.model = _i == 0 ? LOAD_CLOSED : LOAD_OPEN;
    text = summary();
    if (_i == 0)
        check_has(text, "\nfan-out   service of 10 at once:  p50 351 us (one's p93.3)  p90 603 us "
                        "(one's p99.0)\n          p95 752 us (one's p99.49)  p99 1.37 ms (one's "
                        "p99.90)  p99.9 n/a (one's p99.990)\n          9.56 % beyond one's p99\n");
    else
        check_has(text, "\nfan-out   response of 1000000 at once:  p50 n/a (one's p99.999931)  p90 "
                        "n/a (one's p99.999989)\n");
    free(text);
}
END_TEST

START_TEST(a_search_shows_latency_against_load)
{
    char *text;

    make_run(&made, 1);
    make_find(&made);
    made.run.steps[3].is_told = false;
    text = summary();
    check_has(
        text,
        "\nfound     8500/s is the highest rate that held p99<10ms, of 8 tried\n"
        "   150 ms |                                                   x       x\n"
        "          |\n"
        "          |                                           o\n"
        "          |                                   o\n"
        "   738 us |     o      o       o       ?\n"
        "          0                                                     11.5k/s   o holds  x does "
        "not\n");
    free(text);
}
END_TEST

START_TEST(a_search_that_cannot_tell_says_so)
{
    char *text;

    make_run(&made, 1);
    make_find(&made);
    made.run.found_rate = 0;
    made.run.is_untold = true;
    made.run.missed_rate = _i == 0 ? 8.5 : HUGE_VAL;
    text = summary();
    check_has(text,
              "\nfound     could not tell which rate holds p99<10ms: too few replies at low rates; "
              "use a longer -d\n");
    if (_i == 0)
        check_has(text, "8.5/s did not\n");
    else
        check_has_not(text, "did not\n");
    free(text);
}
END_TEST

START_TEST(what_did_not_hold_stands_behind_what_did)
{
    char *text;

    make_run(&made, 1);
    make_find(&made);
    made.run.found_rate = 9.51;
    made.run.missed_rate = 10.2;
    text = summary();
    check_has(
        text,
        "\nfound     9.5/s is the highest rate that held p99<10ms, of 8 tried  10/s did not\n");
    free(text);
}
END_TEST

START_TEST(a_search_may_find_nothing)
{
    char *text;

    make_run(&made, 1);
    make_find(&made);
    made.plan.find = "errors<1%";
    made.run.found_rate = 0;
    for (unsigned i = 0; i < 8; i++)
        made.run.steps[i].figure = _i == 0 ? 0 : 0.02 * i;
    text = summary();
    check_has(text, "\nfound     no rate held errors<1%, of 8 tried\n");
    check_has(text, _i == 0 ? "      0 % |" : "     14 % |");
    free(text);
}
END_TEST

START_TEST(a_search_of_one_rate_has_no_plot)
{
    char *text;

    make_run(&made, 1);
    make_find(&made);
    made.run.steps_number = 1;
    made.run.steps[0].rate = 0;
    text = summary();
    check_has(text, "of 1 tried\ntime for all connections");
    free(text);
}
END_TEST

START_TEST(a_run_in_which_nothing_happened_is_printed_too)
{
    char *text;

    make_run(&made, 0);
    text = summary();
    check_has(text, "\nrequests  0  ok 0  errors 0  in flight 0  in 0.000 s  0/s\n");
    check_has_not(text, "service   ");
    check_has_not(text, "p50");
    check_has_not(text, "over time");
    check_has(text, "time for all            : 0.000000 seconds or 0.000000 per second\n");
    free(text);
}
END_TEST

START_TEST(a_trend_is_told)
{
    struct load_timeline *timeline;
    char *text;

    make_run(&made, 2);
    timeline = &made.run.total->timeline;
    for (unsigned i = 0; i < timeline->used; i++)
        timeline->slices[i].ok += i;
    text = summary();
    check_has(text, "\ntrend     rate went from 5238/s to 9738/s while it was measured:");
    free(text);

    make_run(&made, 1);
    timeline = &made.run.total->timeline;
    made.plan.model = LOAD_OPEN;
    for (unsigned i = 0; i < timeline->used; i++) {
        memset(timeline->slices[i].buckets, 0, sizeof(timeline->slices[i].buckets));
        timeline->slices[i].buckets[20 + i / 8] = timeline->slices[i].ok;
    }
    text = summary();
    check_has(text, "\ntrend     response.mean went from ");
    check_has(text, " while it was measured:");
    free(text);
}
END_TEST

START_TEST(time_goes_on_after_the_last_reply)
{
    char *text;

    make_run(&made, 1);
    memset(&made.run.total->timeline, 0, sizeof(made.run.total->timeline));
    for (uint64_t ms = 0; ms < 20; ms++)
        load_slice_ended(load_timeline_slice(&made.run.total->timeline, ms * 1000000), true, 1000);
    made.run.total->elapsed_ns = 50000000;
    text = summary();
    check_has(text, "over time \u2588\u2588     to 1.00k/s, a column 10.0 ms\n");
    free(text);
}
END_TEST

START_TEST(of_a_run_without_good_replies_there_is_no_rate_to_draw)
{
    char *text;

    make_run(&made, 1);
    memset(&made.run.total->timeline, 0, sizeof(made.run.total->timeline));
    for (uint64_t ms = 0; ms < 50; ms++)
        load_slice_ended(load_timeline_slice(&made.run.total->timeline, ms * 1000000), false, 1000);
    made.run.total->elapsed_ns = 50000000;
    text = summary();
    check_has_not(text, "over time");
    free(text);
}
END_TEST

START_TEST(the_first_column_over_time_may_be_short)
{
    char *text;

    make_run(&made, 1);
    memset(&made.run.total->timeline, 0, sizeof(made.run.total->timeline));
    for (uint64_t ms = 5; ms < 30; ms++)
        load_slice_ended(load_timeline_slice(&made.run.total->timeline, ms * 1000000), true, 1000);
    made.run.total->timeline.offset_ns = 5000000;
    made.run.total->elapsed_ns = 25000000;
    text = summary();
    check_has(text, "over time \u2588\u2588\u2588  to 1.00k/s, a column 10.0 ms\n");
    free(text);
}
END_TEST

/* The mark stands where the load's time ends, even within a column; empty columns stay blank. */
START_TEST(the_drain_is_drawn_after_a_mark)
{
    char *text;

    make_run(&made, 1);
    memset(&made.run.total->timeline, 0, sizeof(made.run.total->timeline));
    for (uint64_t ms = 0; ms < 60; ms++)
        if (ms < 20 || ms >= 50)
            load_slice_ended(load_timeline_slice(&made.run.total->timeline, ms * 1000000), true,
                             1000);
    made.run.total->elapsed_ns = _i == 0 ? 30000000 : 25000000;
    text = summary();
    check_has(text, "over time \u2588\u2588 |  \u2588  to 1.00k/s, a column 10.0 ms, | then the "
                    "drain\n");
    free(text);
}
END_TEST

START_TEST(a_long_drain_has_room)
{
    char *text;

    make_run(&made, 1);
    memset(&made.run.total->timeline, 0, sizeof(made.run.total->timeline));
    for (uint64_t ms = 0; ms < 2390; ms++)
        load_slice_ended(load_timeline_slice(&made.run.total->timeline, ms * 1000000), true, 1000);
    made.run.total->elapsed_ns = 15000000;
    text = summary();
    check_has(text, ", | then the drain\n");
    check_has(text, "over time \u2588|\u2586\u2586");
    free(text);
}
END_TEST

START_TEST(the_last_column_over_time_may_be_short)
{
    char *text;

    make_run(&made, 1);
    memset(&made.run.total->timeline, 0, sizeof(made.run.total->timeline));
    for (uint64_t ms = 0; ms < 15; ms++)
        load_slice_ended(load_timeline_slice(&made.run.total->timeline, ms * 1000000), true, 1000);
    made.run.total->elapsed_ns = _i == 0 ? 15000000 : 12000000;
    text = summary();
    if (_i == 0)
        check_has(text, "over time \u2588\u2588  to 1.00k/s, a column 10.0 ms\n");
    else
        check_has_not(text, "over time");
    free(text);
}
END_TEST

/* ---- The hint ---- */

static void
give_ip(struct load_plan *plan)
{
    snprintf(plan->ip, sizeof(plan->ip), "127.0.0.1");
}

static void
give_ipv6(struct load_plan *plan)
{
    snprintf(plan->ip, sizeof(plan->ip), "::1");
}

static void
give_path(struct load_plan *plan)
{
    plan->unix_path = "@server";
}

static void (*const here[])(struct load_plan *) = {give_ip, give_ipv6, give_path};

START_TEST(a_server_on_this_machine_may_share_the_cpus)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t allowed;
    char *text;

    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof(allowed), &allowed);
    make_run(&made, 1);
    here[_i](&made.plan);
    text = summary();
    ck_assert_int_eq(strstr(text, "\nhint      server and client may share CPUs") != NULL,
                     CPU_COUNT(&allowed) >= online);
    free(text);
}
END_TEST

START_TEST(where_not_all_has_room_what_was_measured_stays_and_the_hint_goes)
{
    char *text;

    make_run(&made, 1);
    give_ip(&made.plan);
    made.run.total->ends[LOAD_END_RESET] = 1;
    made.run.verdict.number = 3;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 120; k++)
            made.run.verdict.reasons[i][k] = k % 8 == 7 ? ' ' : 'w';
    text = summary();
    check_has(text, "\nGET /  ");
    check_has_not(text, "\nhint");
    free(text);
}
END_TEST

START_TEST(a_client_that_was_kept_apart_gets_no_hint)
{
    cpu_set_t one;
    char *text;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    make_run(&made, 1);
    give_ip(&made.plan);
    text = summary();
    ck_assert_int_eq(strstr(text, "\nhint") != NULL, sysconf(_SC_NPROCESSORS_ONLN) == 1);
    free(text);
}
END_TEST

/* ---- Many facts at the same time ---- */

/* Each bit adds a fact that the report must mention; the other facts are taken back. */
static void
say_more(unsigned bits)
{
    struct load_run *run = &made.run;

    made.plan.model = bits & 1 ? LOAD_PARTLY_OPEN : LOAD_CLOSED;
    snprintf(made.plan.what, sizeof(made.plan.what), "%0*d", bits & 2 ? 255 : 20, 0);
    run->verdict.number = bits & 4 ? LOAD_REASONS_MAX : 0;
    for (unsigned i = 1; i < LOAD_ENDS; i++)
        run->total->ends[i] = bits & 8 ? UINT64_MAX / 32 : 0;
    for (unsigned i = 0; i < LOAD_SKIPS; i++)
        run->total->skipped[i] = bits & 16 ? UINT64_MAX / 8 : 0;
    for (unsigned i = 0; i < 15; i++)
        made.plan.thresholds[i] = bits & 32 ? "service.p99.999 <= 1000ms" : NULL;
    made.plan.find = bits & 64 ? "p99<10ms" : NULL;
    for (unsigned i = 0; i < LOAD_UNOPENEDS; i++) {
        run->trials[0].result->unopened[i] = bits & 128 ? UINT64_MAX / 8 : 0;
        run->total->unopened[i] = run->trials[0].result->unopened[i];
    }
    made.plan.aa = (bits & 256) != 0;
    made.plan.fanout = bits & 512 ? 1000000 : 0;
    made.plan.probe_rate = bits & 1024 ? 1e9 : 0;
    for (unsigned i = 0; run->probe != NULL && i < LOAD_UNOPENEDS; i++)
        run->probe->unopened[i] = bits & 1024 ? UINT64_MAX / 8 : 0;
    run->probe_verdict.number = bits & 1024 ? LOAD_REASONS_MAX : 0;
}

START_TEST(whatever_there_is_to_say_fits)
{
    struct load_run *run = &made.run;

    make_run(&made, _i == 0 ? 1 : 6);
    make_find(&made);
    give_ip(&made.plan);
    for (unsigned i = 0; i < LOAD_REASONS_MAX; i++)
        for (unsigned k = 0; k < LOAD_REASON_MAX - 1; k++)
            run->verdict.reasons[i][k] = k % 8 == 7 ? ' ' : 'w';
    run->probe_verdict = run->verdict;
    if (_i == 2)
        make_probe(&made);
    for (unsigned bits = 0; bits < 2048; bits += sxe_test_is_thin() ? 23 : 1) {
        char *text;

        say_more(bits);
        text = printed(false);
        ck_fits(text);
        check_has(text, "\nrequests  ");
        check_has(text, "\ntime for all connections: ");
        check_has(text, "\ntime for all queries    : ");
        check_has(text, "\ntime for all            : ");
        if (run->verdict.number > 0)
            check_has(text, "\nRESULT SUSPECT: w");
        free(text);
    }
    free_run(&made);
}
END_TEST

static const struct {
    unsigned short terminal;
    unsigned columns;
} widths[] = {{0, 100}, {1, 72}, {72, 72}, {80, 80}, {99, 99}, {100, 100}, {300, 100}};

START_TEST(a_terminal_that_is_narrower_is_not_overrun)
{
    const char *text;
    unsigned lines = 0, longest = 0;

    make_run(&made, 6);
    give_ip(&made.plan);
    made.plan.model = LOAD_OPEN;
    made.run.total->skipped[LOAD_SKIP_NO_SOCKET] = 1000;
    for (text = seen_on_terminal(widths[_i].terminal); *text != '\0'; lines++) {
        char line[1024];

        snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\r"), text);
        if (load_columns(line) > longest)
            longest = load_columns(line);
        text += strcspn(text, "\n") + 1;
    }
    ck_assert_uint_le(longest, widths[_i].columns);
    ck_assert_uint_gt(longest + 10, widths[_i].columns);
    ck_assert_uint_le(lines, widths[_i].columns < 100 ? 23 : 20);
    free_run(&made);
}
END_TEST

START_TEST(a_kind_that_had_no_reply_has_no_times)
{
    char *text;

    make_run(&made, 1);
    made.run.total->by_kind[1].response.count = 0;
    text = summary();
    check_has(text, "\nGET /  ");
    check_has_not(text, "\nPOST, ");
    free(text);
}
END_TEST

START_TEST(what_failed_of_a_kind_stands_behind_its_times)
{
    char *text;

    make_run(&made, 1);
    made.run.total->by_kind[0].errors = 7;
    made.run.total->by_kind[1].errors = 12345678901;
    text = summary();
    check_has(text, " 7.12 ms  errors 7\nPOST, ...  ");
    check_has(text, " 3.92 ms  errors 12345678901\n");
    free(text);
}
END_TEST

START_TEST(colours_only_if_they_are_wanted)
{
    char *text;

    make_run(&made, 1);
    made.run.is_interrupted = true;
    made.plan.thresholds[0] = "errors<1%";
    judge();
    text = printed(false);
    check_has_not(text, "\033");
    free(text);
    text = printed(true);
    check_has(text, "\n\033[1;31minterrupted: this is what was done so far\033[0m\n");
    check_has(text, "\n\033[32mthreshold  errors<1% held (0 %)\033[0m\n");
    free(text);
    made.plan.thresholds[0] = "rate>1M";
    judge();
    text = printed(true);
    check_has(text, "\n\033[1;31mthreshold  rate>1M MISSED (5.00k/s)\033[0m\n");
    check_has(text, "\033[2m                 p50 ");
    free(text);
    free_run(&made);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-summary");
    TCase *tcase = tcase_create("summary");

    tcase_add_loop_test(tcase, the_first_line_names_the_model_and_the_product, 0,
                        sizeof(plans) / sizeof(plans[0]));
    tcase_add_test(tcase, a_long_url_is_cut);
    tcase_add_test(tcase, sockets_are_those_wanted_and_those_open_with_what_connecting_took);
    tcase_add_test(tcase, sockets_that_are_not_open_are_named_by_kind);
    tcase_add_test(tcase, a_good_run_in_a_closed_loop);
    tcase_add_loop_test(tcase, what_a_warm_up_that_is_found_out_took_is_said_first, 0, 3);
    tcase_add_test(tcase, errors_come_first_each_kind_with_its_first_detail);
    tcase_add_test(tcase, in_a_rate_response_stands_beside_service);
    tcase_add_test(tcase, too_high_a_rate_is_called_overload);
    tcase_add_test(tcase, what_lost_sockets_left_unsent_is_no_overload);
    tcase_add_test(tcase, sessions_have_a_line);
    tcase_add_test(tcase, what_was_begun_before_the_measuring_is_in_the_account);
    tcase_add_loop_test(tcase, what_an_interruption_or_a_closed_loop_left_unsent_is_no_overload, 0,
                        2);
    tcase_add_test(tcase, why_a_result_is_suspect_stands_above_all);
    tcase_add_test(tcase, a_probe_stands_beside_the_load_in_the_same_columns);
    tcase_add_test(tcase, processes_that_shared_the_load_have_a_line);
    tcase_add_test(tcase, the_parts_of_a_load_that_are_here_are_named);
    tcase_add_test(tcase, of_a_suspect_load_the_probe_may_be_believed);
    tcase_add_test(tcase, a_suspect_probe_is_told_from_a_suspect_load);
    tcase_add_test(tcase, what_a_probe_lacks_is_painted);
    tcase_add_test(tcase, trials_give_medians_with_intervals);
    tcase_add_test(tcase, a_figure_that_a_trial_cannot_tell_is_not_available);
    tcase_add_test(tcase, few_trials_give_extremes);
    tcase_add_loop_test(tcase, an_interval_that_stayed_too_wide_is_said, 0, 2);
    tcase_add_test(tcase, without_an_interval_it_is_too_wide);
    tcase_add_test(tcase, thresholds_are_held_or_missed_with_their_figures);
    tcase_add_loop_test(tcase, a_page_of_several_queries_is_told_from_one_of_them, 0, 2);
    tcase_add_test(tcase, a_search_shows_latency_against_load);
    tcase_add_loop_test(tcase, a_search_that_cannot_tell_says_so, 0, 2);
    tcase_add_test(tcase, what_did_not_hold_stands_behind_what_did);
    tcase_add_loop_test(tcase, a_search_may_find_nothing, 0, 2);
    tcase_add_test(tcase, a_search_of_one_rate_has_no_plot);
    tcase_add_test(tcase, a_run_in_which_nothing_happened_is_printed_too);
    tcase_add_test(tcase, a_trend_is_told);
    tcase_add_test(tcase, time_goes_on_after_the_last_reply);
    tcase_add_test(tcase, of_a_run_without_good_replies_there_is_no_rate_to_draw);
    tcase_add_test(tcase, the_first_column_over_time_may_be_short);
    tcase_add_loop_test(tcase, the_drain_is_drawn_after_a_mark, 0, 2);
    tcase_add_test(tcase, a_long_drain_has_room);
    tcase_add_loop_test(tcase, the_last_column_over_time_may_be_short, 0, 2);
    tcase_add_loop_test(tcase, a_server_on_this_machine_may_share_the_cpus, 0,
                        sizeof(here) / sizeof(here[0]));
    tcase_add_test(tcase, where_not_all_has_room_what_was_measured_stays_and_the_hint_goes);
    tcase_add_test(tcase, a_client_that_was_kept_apart_gets_no_hint);
    tcase_add_loop_test(tcase, whatever_there_is_to_say_fits, 0, 3);
    tcase_add_loop_test(tcase, a_terminal_that_is_narrower_is_not_overrun, 0, 7);
    tcase_add_test(tcase, a_kind_that_had_no_reply_has_no_times);
    tcase_add_test(tcase, what_failed_of_a_kind_stands_behind_its_times);
    tcase_add_test(tcase, colours_only_if_they_are_wanted);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
