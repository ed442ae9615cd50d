/* SPDX-License-Identifier: MIT
 *
 * --find with workers that simulate a server: it has a capacity, and gets slower as it gets busier.
 */
#include "run-plan.h"
#include "test-main.h"

/* 1 ms, more as the rate approaches 5,000/s; one of 50 takes ten times as long. */
static uint64_t
busy_latency_ns(double rate, uint64_t nth)
{
    double free = rate < 4900 ? 1 - rate / 5000 : 0.02;
    double ns = 1e6 / free;

    return (uint64_t)(nth % 50 == 0 ? 10 * ns : ns);
}

static void
set_up(void)
{
    set_up_run();
    fake_worker.queries = 0;
    fake_worker.latency_ns = busy_latency_ns;
    plan.stop = LOAD_STOP_TIME;
    plan.duration_ns = 10 * SXE_NS_PER_MS;
    plan.find = "p99<20ms"; /* p99 is 1 ms * 10 / (1 - rate / 50000) */
    load_find_speed = FAKE_FASTER;
}

static void
check_found(double low, double high)
{
    ck_assert_msg(run.found_rate >= low && run.found_rate <= high, "found %f in %s", run.found_rate,
                  errors);
}

START_TEST(the_rate_at_which_the_condition_stops_to_hold_is_found)
{
    ck_assert_int_eq(run_plan(), 0);
    check_found(2400, 2560);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    ck_assert_uint_eq(run.trials_number, 1);
    ck_assert_str_eq(errors, "");
}
END_TEST

/* On a busy machine a worker may have had too little time for a short step, which then has too few
 * replies to decide. */
START_TEST(the_steps_are_a_curve_by_rate)
{
    unsigned told = 0;

    ck_assert_int_eq(run_plan(), 0);
    for (unsigned i = 0; i < run.steps_number; i++) {
        const struct load_step *step = &run.steps[i];

        ck_assert(i == 0 || step->rate >= run.steps[i - 1].rate);
        ck_assert_uint_le(step->p50_ns, step->p90_ns);
        ck_assert_uint_le(step->p90_ns, step->p99_ns);
        ck_assert_uint_le(step->p99_ns, step->p999_ns);
        ck_assert(step->is_told || !step->holds);
        if (!step->is_told)
            continue;
        ck_assert_double_gt(step->figure, 0);
        ck_assert_double_gt(step->achieved, 0.5 * step->rate);
        told++;
    }
    ck_assert_uint_gt(told, 3);
}
END_TEST

/* On a busy machine a worker may count fewer queries than are due, but never more. */
START_TEST(what_is_reported_is_the_found_rate_once_more)
{
    ck_assert_int_eq(run_plan(), 0);
    double seconds = (double)run.total->elapsed_ns / 1e9;
    double part = (double)run.total->ends[LOAD_END_OK] / seconds / run.found_rate;
    ck_assert_double_gt(part, 0);
    ck_assert_double_lt(part, 1.2);
    ck_assert_ptr_eq(load_result_check(run.total), NULL);
    ck_assert_uint_eq(run.total->opened, 4);
}
END_TEST

START_TEST(each_step_is_said)
{
    plan.quiet = false;
    ck_assert_int_eq(run_plan(), 0);
    check_has(errors, "find      1000/s  ok ");
    check_has(errors, "p99<20ms: holds\n");
    check_has(errors, "p99<20ms: does not hold\n");
}
END_TEST

START_TEST(the_search_begins_at_the_rate_that_is_given)
{
    plan.rate = 2400;
    plan.quiet = false;
    ck_assert_int_eq(run_plan(), 0);
    check_has(errors, "find      2400/s  ok ");
    check_found(2400, 2560);
}
END_TEST

START_TEST(without_one_it_begins_low)
{
    plan.rate = 0;
    plan.quiet = false;
    ck_assert_int_eq(run_plan(), 0);
    check_has(errors, "find      10/s  ok ");
    check_has(errors, "p99<20ms: too few to tell\nfind      20/s  ok ");
    check_found(2400, 2560);
}
END_TEST

START_TEST(it_begins_at_what_the_workers_can_send)
{
    plan.rate = 90e6;
    /* If the machine is busy, queries pile up, and the search waits for them. */
    fake_worker.capacity = 20000;
    plan.quiet = false;
    ck_assert_int_eq(run_plan(), 0);
    check_has(errors, "sxe-http: --find begins at 2000000/s and not at 90000000/s, which the "
                      "workers cannot send; use a lower -R, or more workers (-t)\n");
    check_has(errors, "find      2000000/s  ok ");
}
END_TEST

START_TEST(what_holds_at_the_most_that_workers_can_send_is_said_to_be_that)
{
    plan.workers = (unsigned)_i;
    plan.find = "p99<60s"; /* holds on a busy machine, too */
    load_find_rate_max = 1500.0 / _i;
    ck_assert_int_eq(run_plan(), 0);
    check_found(1499.9, 1500.1);
    check_has(errors, _i == 1 ? "ends at 1500/s, more than 1 worker can be asked for; "
                              : "ends at 1500/s, more than 2 workers can be asked for; ");
}
END_TEST

START_TEST(a_rate_that_is_not_answered_does_not_hold_however_fast_the_answers_are)
{
    plan.find = "errors<1%";
    fake_worker.capacity = 3000;
    plan.duration_ns = 50 * SXE_NS_PER_MS;
    ck_assert_int_eq(run_plan(), 0);
    check_found(2700, 3300);
}
END_TEST

/* By theory a server of 200/s holds 154.7/s. Going down from 1000/s, each step would find the
 * backlog of the step before. A step takes 20 s of the worker's time at most. */
START_TEST(a_step_does_not_see_the_backlog_of_the_one_before)
{
    plan.find = "p99<50ms";
    plan.workers = 1;
    plan.rate = 1000;
    plan.duration_ns = 20 * SXE_NS_PER_SECOND / FAKE_FASTER;
    fake_worker.capacity = 200;
    ck_assert_int_eq(run_plan(), 0);
    check_found(100, 200);
    ck_assert_double_gt(run.missed_rate, run.found_rate);
    ck_assert_double_le(run.missed_rate, 275);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
}
END_TEST

/* In 4 s of the worker's time a p99 can be decided from 275/s on, which is too much for this
 * server. */
START_TEST(what_cannot_be_told_has_a_status_of_its_own)
{
    plan.find = "p99.9<50ms"; /* needs 10,000 replies; a step has 800 */
    plan.rate = 1000;
    plan.duration_ns = 4 * SXE_NS_PER_SECOND / FAKE_FASTER;
    fake_worker.capacity = 200;
    ck_assert_int_eq(run_plan(), 0);
    check_found(0, 0);
    ck_assert(run.is_untold);
    ck_assert_int_eq(run.status, LOAD_EXIT_UNTOLD);
}
END_TEST

/* Interrupt at any moment of the drain: all queries in flight end with the run. */
static void
interrupt_in_drain(const struct load_worker *worker)
{
    static unsigned marks;

    if (++marks < 4)
        return;
    worker->result->in_flight += marks == 4;
    kill(getppid(), SIGINT);
}

START_TEST(an_interrupt_ends_the_drain)
{
    plan.workers = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_in_drain;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.steps_number, 1);
}
END_TEST

START_TEST(when_no_rate_holds_the_threshold_is_missed)
{
    plan.find = "p99<1us";
    plan.duration_ns = 60 * SXE_NS_PER_SECOND / FAKE_FASTER; /* 30 queries at 0.5/s */
    ck_assert_int_eq(run_plan(), 0);
    check_found(0, 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_THRESHOLD);
}
END_TEST

START_TEST(too_few_samples_are_said_and_a_higher_rate_is_tried)
{
    plan.find = "p99.999<20ms"; /* 1000/s for 2 s are too few, however busy the machine is */
    load_find_rate_max = 2000;
    plan.quiet = false;
    ck_assert_int_eq(run_plan(), 0);
    check_has(errors, "find      1000/s");
    check_has(errors, "p99.999<20ms: too few to tell\nfind      2000/s");
}
END_TEST

static void
use_all_of_a_cpu(const struct load_worker *worker)
{
    worker->result->cpu_user_ns = worker->result->elapsed_ns;
}

START_TEST(when_the_client_was_busy_where_it_ended_the_result_is_suspect)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = use_all_of_a_cpu;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_SUSPECT);
    check_has(run.verdict.reasons[0], "cpu");
    check_has(run.verdict.reasons[run.verdict.number - 1],
              "/s, which ended the search: client cpu");
}
END_TEST

/* Each step has three marks: at its rate, when it has settled, at its end. Between steps, there is
 * one mark for the drain. */
static unsigned interrupted_mark;

static void
interrupt_at_mark(const struct load_worker *worker)
{
    static unsigned marks;

    (void)worker;
    if (++marks == interrupted_mark)
        kill(getppid(), SIGINT);
}

START_TEST(an_interrupted_search_reports_what_it_tried)
{
    interrupted_mark = 7;
    fake_worker.bad_shard = 2;
    fake_worker.do_at_mark = interrupt_at_mark;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_ge(run.steps_number, 1);
    ck_assert_uint_le(run.steps_number, 3);
    ck_assert(run.found_rate > 0 || !run.steps[0].is_told);
}
END_TEST

static void
die_at_mark(const struct load_worker *worker)
{
    static unsigned marks;

    (void)worker;
    if (++marks == interrupted_mark)
        raise(SIGKILL);
}

START_TEST(a_search_in_which_a_worker_died_is_suspect)
{
    interrupted_mark = 7;
    fake_worker.bad_shard = 2;
    fake_worker.do_at_mark = die_at_mark;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(run.verdict.reasons[run.verdict.number - 1], "worker 2 of 2 died after ");
}
END_TEST

START_TEST(a_step_ends_as_soon_as_it_can_be_told)
{
    plan.duration_ns = 3600 * SXE_NS_PER_SECOND;
    interrupted_mark = 4; /* the second step's mark, so that the test takes about a second */
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_at_mark;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.steps_number, 1);
    ck_assert(run.steps[0].holds);
}
END_TEST

START_TEST(a_low_rate_is_passed_on_the_way_up)
{
    plan.duration_ns = 3600 * SXE_NS_PER_SECOND;
    plan.rate = 0.5;      /* 100 queries in a second */
    interrupted_mark = 4; /* the second step's mark */
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_at_mark;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.steps_number, 1);
    ck_assert(!run.steps[0].is_told);
}
END_TEST

/* After 200 ms far fewer queries are answered than in flight, so the search waits only 40 ms
 * more. */
START_TEST(a_server_that_does_not_answer_is_not_waited_for_long)
{
    plan.duration_ns = 1200 * SXE_NS_PER_MS;
    plan.workers = 1;
    fake_worker.capacity = 1;
    interrupted_mark = 2;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_at_mark;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.steps_number, 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
}
END_TEST

START_TEST(a_step_that_cannot_be_told_goes_on_to_its_end)
{
    plan.duration_ns = 1150 * SXE_NS_PER_MS;
    plan.rate = 1; /* 230 queries in the step, and no higher rate to try */
    load_find_rate_max = 0.5;
    interrupted_mark = 4; /* the second step's mark, so that the test takes about a second */
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_at_mark;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.steps_number, 1);
    ck_assert(!run.steps[0].is_told);
    ck_assert_uint_gt(run.total->elapsed_ns / FAKE_FASTER, 1100 * SXE_NS_PER_MS);
}
END_TEST

START_TEST(a_search_that_is_interrupted_at_once_reports_what_was_counted)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_at_mark;
    interrupted_mark = (unsigned)_i;
    plan.workers = 1;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.steps_number, 0);
    ck_assert_uint_eq(run.trials_number, 1);
}
END_TEST

START_TEST(workers_that_cannot_start_end_the_search)
{
    fake_worker.ready_error = EMFILE;
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(
        errors, "sxe-http: cannot start: Too many open files; allow more open files (ulimit -n)\n");
}
END_TEST

START_TEST(without_memory_there_is_no_search)
{
    fake_os_fail(FAKE_MMAP, 3 + (unsigned)_i, 1, ENOMEM);
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors, "sxe-http: no memory for the results of 2 workers\n");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-find");
    TCase *all = tcase_create("all");

    tcase_add_test(all, the_rate_at_which_the_condition_stops_to_hold_is_found);
    tcase_add_test(all, the_steps_are_a_curve_by_rate);
    tcase_add_test(all, what_is_reported_is_the_found_rate_once_more);
    tcase_add_test(all, a_step_ends_as_soon_as_it_can_be_told);
    tcase_add_test(all, each_step_is_said);
    tcase_add_test(all, the_search_begins_at_the_rate_that_is_given);
    tcase_add_test(all, without_one_it_begins_low);
    tcase_add_test(all, it_begins_at_what_the_workers_can_send);
    tcase_add_loop_test(all, what_holds_at_the_most_that_workers_can_send_is_said_to_be_that, 1, 3);
    tcase_add_test(all, a_rate_that_is_not_answered_does_not_hold_however_fast_the_answers_are);
    tcase_add_test(all, a_step_does_not_see_the_backlog_of_the_one_before);
    tcase_add_test(all, what_cannot_be_told_has_a_status_of_its_own);
    tcase_add_test(all, an_interrupt_ends_the_drain);
    tcase_add_test(all, when_no_rate_holds_the_threshold_is_missed);
    tcase_add_test(all, too_few_samples_are_said_and_a_higher_rate_is_tried);
    tcase_add_test(all, when_the_client_was_busy_where_it_ended_the_result_is_suspect);
    tcase_add_test(all, an_interrupted_search_reports_what_it_tried);
    tcase_add_test(all, a_search_in_which_a_worker_died_is_suspect);
    tcase_add_test(all, a_low_rate_is_passed_on_the_way_up);
    tcase_add_test(all, a_server_that_does_not_answer_is_not_waited_for_long);
    tcase_add_test(all, a_step_that_cannot_be_told_goes_on_to_its_end);
    tcase_add_loop_test(all, a_search_that_is_interrupted_at_once_reports_what_was_counted, 1, 4);
    tcase_add_test(all, workers_that_cannot_start_end_the_search);
    tcase_add_loop_test(all, without_memory_there_is_no_search, 0, 2);
    tcase_add_checked_fixture(all, set_up, tear_down_run);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
