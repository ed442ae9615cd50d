/* SPDX-License-Identifier: MIT
 *
 * The exit status of a run, and what a dead worker leaves: its accounts and last messages.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "run-private.h"
#include "test-main.h"

static struct load_plan plan;
static struct load_run run;
static char errors[4096];

static void
set_up(void)
{
    plan = (struct load_plan){.trials = 1};
    run = (struct load_run){.plan = &plan, .total = load_results_map(1, false)};
    ck_assert_ptr_nonnull(run.total);
    run.total->sockets_wanted = run.total->opened = 3;
    run.total->offered = run.total->sent = 2000;
    run.total->ends[LOAD_END_OK] = 2000;
    run.total->elapsed_ns = 1000000000;
    for (unsigned i = 0; i < 2000; i++)
        load_histogram_record(&run.total->response, 5000000);
}

static void
tear_down(void)
{
    load_results_unmap(run.total, 1);
}

static enum load_exit
judge(bool has_failed)
{
    FILE *err = fmemopen(errors, sizeof(errors), "w");

    load_run_judge(&run, has_failed, err);
    fclose(err);
    return run.status;
}

static void
lose(enum load_end end)
{
    run.total->ends[LOAD_END_OK]--;
    run.total->ends[end]++;
}

START_TEST(a_run_without_fault_is_ok)
{
    ck_assert_int_eq(judge(false), LOAD_EXIT_OK);
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(any_end_but_ok_is_an_error)
{
    lose((enum load_end)_i);
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_socket_that_did_not_open_is_an_error)
{
    run.total->opened--;
    run.total->unopened[_i]++;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_query_without_a_socket_that_opened_is_an_error)
{
    run.total->offered++;
    run.total->skipped[LOAD_SKIP_NOT_OPENED]++;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_server_that_is_gone_is_an_error_and_said)
{
    plan.thresholds[0] = "errors<1%";
    plan.thresholds[1] = "skipped<50%";
    run.total->offered += 10;
    run.total->skipped[LOAD_SKIP_GONE] += 10;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors,
                     "sxe-http: the server is gone: no connection opened and no byte came for two "
                     "timeouts (--timeout), so 10 of 2010 requests were not sent; see whether it "
                     "still runs\n");
}
END_TEST

START_TEST(a_threshold_says_how_much_must_be_sent)
{
    run.total->offered += 100;
    run.total->skipped[LOAD_SKIP_NO_SOCKET] += 100;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
    plan.thresholds[0] = "skipped<50%";
    ck_assert_int_eq(judge(false), LOAD_EXIT_OK);
}
END_TEST

START_TEST(a_rate_too_low_for_its_time_is_an_error_and_said)
{
    run.total->offered = run.total->sent = run.total->ends[LOAD_END_OK] = 0;
    plan.model = LOAD_PARTLY_OPEN;
    plan.stop = LOAD_STOP_TIME;
    plan.rate = plan.rate_end = 1;
    plan.duration_ns = 100000000;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors, "sxe-http: nothing arrived in 100 ms at 1/s; use a longer -d, or a "
                             "higher rate (-R)\n");
    run.is_interrupted = true;
    errors[0] = '\0';
    ck_assert_int_eq(judge(false), LOAD_EXIT_INTERRUPTED);
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(what_is_skipped_because_the_server_is_slow_is_none)
{
    run.total->offered += 2;
    run.total->skipped[LOAD_SKIP_NO_SOCKET]++;
    run.total->skipped[LOAD_SKIP_SHED]++;
    ck_assert_int_eq(judge(false), LOAD_EXIT_OK);
}
END_TEST

START_TEST(a_run_without_any_good_reply_is_an_error)
{
    run.total->in_flight = 2000;
    run.total->ends[LOAD_END_OK] = 0;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_worker_or_server_that_died_is_an_error)
{
    ck_assert_int_eq(judge(true), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_threshold_that_is_missed_is_said_and_counted)
{
    plan.thresholds[0] = "p99<1ms";
    plan.thresholds[1] = "p99<1s";
    plan.thresholds[2] = "p50<2ms";
    ck_assert_int_eq(judge(false), LOAD_EXIT_THRESHOLD);
    ck_assert_uint_eq(run.thresholds_missed, 2);
    ck_assert_str_eq(errors, "sxe-http: threshold p99<1ms is missed\n"
                             "sxe-http: threshold p50<2ms is missed\n");
}
END_TEST

START_TEST(what_was_judged_is_kept)
{
    plan.thresholds[0] = " p99<1ms";
    plan.thresholds[1] = "p99.99<1s";
    run.is_interrupted = true;
    ck_assert_int_eq(judge(false), LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.thresholds_missed, 2);
    ck_assert(run.judged[0].is_told);
    ck_assert(!run.judged[0].holds);
    ck_assert(run.judged[0].figure == (double)load_histogram_quantile(&run.total->response, 0.99));
    ck_assert_str_eq(load_threshold_text(&run.judged[0].threshold, 2e6), "2.00 ms");
    ck_assert(!run.judged[1].is_told);
}
END_TEST

START_TEST(a_threshold_that_cannot_be_told_is_missed)
{
    plan.thresholds[0] = "p99.99<1s";
    ck_assert_int_eq(judge(false), LOAD_EXIT_THRESHOLD);
    ck_assert_str_eq(errors, "sxe-http: threshold p99.99<1s is missed: there are too few samples "
                             "to tell\n");
}
END_TEST

START_TEST(as_many_thresholds_as_there_can_be_are_judged)
{
    for (unsigned i = 0; i < LOAD_THRESHOLDS_MAX; i++)
        plan.thresholds[i] = "p99<1ms";
    ck_assert_int_eq(judge(false), LOAD_EXIT_THRESHOLD);
    ck_assert_uint_eq(run.thresholds_missed, LOAD_THRESHOLDS_MAX);
}
END_TEST

START_TEST(a_threshold_on_errors_decides_about_errors)
{
    lose(LOAD_END_RESET);
    plan.thresholds[0] = "errors<1%";
    ck_assert_int_eq(judge(false), LOAD_EXIT_OK);
    plan.thresholds[0] = " errors<0.01%";
    ck_assert_int_eq(judge(false), LOAD_EXIT_THRESHOLD);
    run.total->opened--;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_search_that_finds_nothing_misses_its_threshold)
{
    plan.find = "p99<1ms";
    ck_assert_int_eq(judge(false), LOAD_EXIT_THRESHOLD);
    run.is_untold = true;
    ck_assert_int_eq(judge(false), LOAD_EXIT_UNTOLD);
    plan.thresholds[0] = "p99<1ms";
    ck_assert_int_eq(judge(false), LOAD_EXIT_UNTOLD);
    run.verdict.number = 1;
    ck_assert_int_eq(judge(false), LOAD_EXIT_SUSPECT);
    run.verdict.number = 0;
    plan.thresholds[0] = NULL;
    run.thresholds_missed = 0;
    run.is_untold = false;
    run.found_rate = 10;
    ck_assert_int_eq(judge(false), LOAD_EXIT_OK);
}
END_TEST

/* Each status takes precedence over the next one. */
START_TEST(interrupted_is_more_than_errors_than_suspect_than_threshold)
{
    plan.thresholds[0] = "p99<1ms";
    ck_assert_int_eq(judge(false), LOAD_EXIT_THRESHOLD);
    run.verdict.number = 1;
    ck_assert_int_eq(judge(false), LOAD_EXIT_SUSPECT);
    lose(LOAD_END_RESET);
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
    run.is_interrupted = true;
    ck_assert_int_eq(judge(false), LOAD_EXIT_INTERRUPTED);
}
END_TEST

/* ---- The probe ---- */

static struct load_result probe;

static void
add_probe(void)
{
    /* Results are too large for the stack. */
    memset(&probe, 0, sizeof(probe));
    probe.sockets_wanted = probe.opened = 16;
    run.probe = &probe;
}

START_TEST(a_probe_without_any_query_is_no_error)
{
    add_probe();
    ck_assert_int_eq(judge(false), LOAD_EXIT_OK);
}
END_TEST

START_TEST(a_socket_of_the_probe_that_did_not_open_is_an_error)
{
    add_probe();
    probe.opened--;
    probe.unopened[LOAD_UNOPENED_RESET]++;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_bad_reply_to_the_probe_is_an_error_since_thresholds_are_about_the_load)
{
    add_probe();
    probe.offered = probe.sent = probe.ends[LOAD_END_RESET] = 1;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
    plan.thresholds[0] = "errors<1%";
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_probe_that_could_not_send_is_an_error_whatever_the_load_may_skip)
{
    add_probe();
    probe.offered = 100;
    probe.sent = probe.ends[LOAD_END_OK] = 99;
    probe.skipped[LOAD_SKIP_UNSENT] = 1;
    ck_assert_int_eq(judge(false), LOAD_EXIT_OK);
    probe.offered++;
    probe.skipped[LOAD_SKIP_UNSENT]++;
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
    plan.thresholds[0] = "skipped<50%";
    ck_assert_int_eq(judge(false), LOAD_EXIT_ERRORS);
}
END_TEST

START_TEST(a_suspect_probe_makes_the_result_suspect)
{
    add_probe();
    run.probe_verdict.number = 1;
    ck_assert_int_eq(judge(false), LOAD_EXIT_SUSPECT);
}
END_TEST

/* ---- Accounts ---- */

START_TEST(accounts_that_close_stay_as_they_are)
{
    load_result_force(run.total, true);
    ck_assert_ptr_null(load_result_check(run.total));
    ck_assert_uint_eq(run.total->offered, 2000);
    ck_assert_uint_eq(run.total->sent, 2000);
    ck_assert_uint_eq(run.total->in_flight, 0);
}
END_TEST

START_TEST(what_was_sent_and_did_not_end_is_in_flight)
{
    run.total->offered += 9;
    run.total->waiting = 2;
    run.total->sent += 4;
    run.total->sockets_wanted += 5;
    load_result_force(run.total, true);
    ck_assert_ptr_null(load_result_check(run.total));
    ck_assert_uint_eq(run.total->in_flight, 4);
    ck_assert_uint_eq(run.total->waiting, 0);
    ck_assert_uint_eq(run.total->skipped[LOAD_SKIP_UNSENT], 5);
    ck_assert_uint_eq(run.total->unopened[LOAD_UNOPENED_UNTRIED], 5);
}
END_TEST

/* A bucket has a sample that is not counted yet, and the copies by kind are not made yet. */
START_TEST(samples_of_a_worker_that_died_are_counted_and_copied)
{
    struct load_result *result = load_results_map(1, false);

    result->kinds = 1;
    for (unsigned i = 0; i < 5; i++)
        load_histogram_record(&result->response, 1000);
    result->response.count--;
    load_result_force(result, _i == 1);
    ck_assert_uint_eq(result->response.count, 5);
    ck_assert_uint_eq(result->by_kind[0].response.count, 5);
    ck_assert_uint_eq(result->service.count, _i == 1 ? 0 : 5);
    load_results_unmap(result, 1);
}
END_TEST

/* A worker may die anywhere, so any count may be ahead of any other. */
START_TEST(any_accounts_are_closed_by_force)
{
    struct load_result *result = run.total;

    srand48(_i);
    result->offered = (uint64_t)(drand48() * 10);
    result->sent = (uint64_t)(drand48() * 10);
    result->carried = (uint64_t)(drand48() * 2);
    result->waiting = (uint64_t)(drand48() * 10);
    result->in_flight = (uint64_t)(drand48() * 10);
    result->sockets_wanted = (uint64_t)(drand48() * 10);
    result->opened = (uint64_t)(drand48() * 10);
    for (unsigned i = 0; i < LOAD_ENDS; i++)
        result->ends[i] = (uint64_t)(drand48() * 2);
    for (unsigned i = 0; i < LOAD_SKIPS; i++)
        result->skipped[i] = (uint64_t)(drand48() * 2);
    load_result_force(result, true);
    ck_assert_msg(load_result_check(result) == NULL, "%s", load_result_check(result));
}
END_TEST

/* ---- Last messages ---- */

static int
say_done(const struct load_worker *worker)
{
    struct load_message message = {.type = LOAD_MESSAGE_DONE};

    return send(worker->control, &message, sizeof(message), 0) == (ssize_t)sizeof(message) ? 0 : -1;
}

static int
say_nothing(const struct load_worker *worker)
{
    return worker->control < 0;
}

/* Run a worker that has ended before anybody reads its messages. True: the parent takes it for
 * failed. */
static bool
has_failed_when_reaped(int (*work)(const struct load_worker *worker))
{
    struct load_parent parent = {
        .plan = &plan,
        .signals = -1,
        .err = fmemopen(errors, sizeof(errors), "w"),
    };
    siginfo_t info;

    plan.workers = 1;
    load_workers_work = work;
    ck_assert_int_eq(load_workers_start(&parent), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)parent.processes[0].pid, &info, WEXITED | WNOWAIT), 0);
    load_workers_reap(&parent);
    ck_assert_int_eq(parent.processes[0].pid, 0);
    ck_assert_int_eq(parent.processes[0].control, -1);
    load_workers_free(&parent);
    fclose(parent.err);
    return parent.has_failed;
}

START_TEST(the_last_words_of_a_worker_are_heard_when_it_is_gone)
{
    ck_assert(!has_failed_when_reaped(say_done));
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(a_worker_that_is_gone_without_a_word_has_failed)
{
    ck_assert(has_failed_when_reaped(say_nothing));
    ck_assert_ptr_nonnull(strstr(errors, "ended with exit status 0; what it had counted so far"));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-run-status");
    TCase *status = tcase_create("status");
    TCase *accounts = tcase_create("accounts");
    TCase *words = tcase_create("last words");

    tcase_add_test(status, a_run_without_fault_is_ok);
    tcase_add_loop_test(status, any_end_but_ok_is_an_error, LOAD_END_OK + 1, LOAD_ENDS);
    tcase_add_loop_test(status, a_socket_that_did_not_open_is_an_error, 0, LOAD_UNOPENEDS);
    tcase_add_test(status, a_query_without_a_socket_that_opened_is_an_error);
    tcase_add_test(status, a_server_that_is_gone_is_an_error_and_said);
    tcase_add_test(status, a_threshold_says_how_much_must_be_sent);
    tcase_add_test(status, a_rate_too_low_for_its_time_is_an_error_and_said);
    tcase_add_test(status, what_is_skipped_because_the_server_is_slow_is_none);
    tcase_add_test(status, a_run_without_any_good_reply_is_an_error);
    tcase_add_test(status, a_worker_or_server_that_died_is_an_error);
    tcase_add_test(status, a_threshold_that_is_missed_is_said_and_counted);
    tcase_add_test(status, what_was_judged_is_kept);
    tcase_add_test(status, a_threshold_that_cannot_be_told_is_missed);
    tcase_add_test(status, as_many_thresholds_as_there_can_be_are_judged);
    tcase_add_test(status, a_threshold_on_errors_decides_about_errors);
    tcase_add_test(status, a_search_that_finds_nothing_misses_its_threshold);
    tcase_add_test(status, interrupted_is_more_than_errors_than_suspect_than_threshold);
    tcase_add_test(status, a_probe_without_any_query_is_no_error);
    tcase_add_test(status, a_socket_of_the_probe_that_did_not_open_is_an_error);
    tcase_add_test(status,
                   a_bad_reply_to_the_probe_is_an_error_since_thresholds_are_about_the_load);
    tcase_add_test(status, a_probe_that_could_not_send_is_an_error_whatever_the_load_may_skip);
    tcase_add_test(status, a_suspect_probe_makes_the_result_suspect);
    tcase_add_test(accounts, accounts_that_close_stay_as_they_are);
    tcase_add_test(accounts, what_was_sent_and_did_not_end_is_in_flight);
    tcase_add_loop_test(accounts, samples_of_a_worker_that_died_are_counted_and_copied, 0, 2);
    tcase_add_loop_test(accounts, any_accounts_are_closed_by_force, 0, 300);
    tcase_add_test(words, the_last_words_of_a_worker_are_heard_when_it_is_gone);
    tcase_add_test(words, a_worker_that_is_gone_without_a_word_has_failed);
    tcase_add_checked_fixture(status, set_up, tear_down);
    tcase_add_checked_fixture(accounts, set_up, tear_down);
    suite_add_tcase(suite, status);
    suite_add_tcase(suite, accounts);
    suite_add_tcase(suite, words);
    return sxe_test_main(suite);
}
