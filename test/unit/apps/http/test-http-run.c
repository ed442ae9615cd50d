/* SPDX-License-Identifier: MIT
 *
 * The coordinator with fake workers: trials, signals, workers that die, system calls that fail.
 */
#include <poll.h>
#include <sys/resource.h>
#include <time.h>

#include "run-plan.h"
#include "sxe-time.h"
#include "test-main.h"

/* ---- A trial ---- */

/* Check the start time, which is given as text and by both clocks. */
static void
check_start(void)
{
    time_t started = (time_t)run.started_s;
    struct tm utc;
    char text[sizeof(run.started_at)];

    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&started, &utc));
    ck_assert_str_eq(run.started_at, text);
    ck_assert_uint_gt(run.started_ns, 0);
    ck_assert_uint_le(run.started_ns, sxe_time_ns());
}

START_TEST(workers_are_added_up)
{
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 1);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 200);
    ck_assert_uint_eq(run.total->response.count, 200);
    ck_assert_uint_eq(run.total->opened, 4);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    check_has(output, "4/4");
    ck_assert_str_eq(errors, "");
    check_start();
}
END_TEST

START_TEST(one_worker_is_a_process_too)
{
    plan.workers = 1;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 100);
}
END_TEST

START_TEST(nothing_is_printed_where_nobody_wants_it)
{
    FILE *err = tmpfile();

    ck_assert_int_eq(load_run(&run, &plan, NULL, err), 0);
    read_back(err, errors, sizeof(errors));
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(all_workers_begin_at_the_same_instant)
{
    plan.workers = 4;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_gt(run.total->started_ns, 0);
    ck_assert_uint_lt(run.total->started_ns, sxe_time_ns());
}
END_TEST

START_TEST(what_the_warm_up_counted_is_not_reported)
{
    plan.warmup_ns = 20 * SXE_NS_PER_MS;
    fake_worker.queries = 0; /* before the mark, as many queries as the machine has time for */
    fake_worker.queries_after_mark = 1000;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 2000);
    ck_assert_uint_eq(run.total->response.count, run.total->ends[LOAD_END_OK]);
    ck_assert_uint_eq(run.total->opened, 4);
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(a_run_that_ends_in_its_warm_up_is_reported_and_says_so)
{
    plan.warmup_ns = 3600 * SXE_NS_PER_SECOND;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 200);
    check_has(errors, "ended within its warm-up");
}
END_TEST

START_TEST(the_pressure_is_that_of_the_measuring)
{
    plan.warmup_ns = (uint64_t)_i * SXE_NS_PER_MS;
    fake_worker.queries = 4000;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.verdict.has_cpu_pressure,
                     load_pressure_read(LOAD_PRESSURE_FILE).at_ns > 0);
    ck_assert_double_ge(run.verdict.cpu_pressure, 0);
    ck_assert_double_le(run.verdict.cpu_pressure, 1);
}
END_TEST

START_TEST(the_live_view_is_looked_at_while_the_workers_run)
{
    plan.quiet = false;
    fake_worker.queries = 120000; /* 1.2 s of real time */
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_str_ne(errors, "");
}
END_TEST

static void
count_unopened(const struct load_worker *worker)
{
    worker->result->opened--;
    worker->result->unopened[LOAD_UNOPENED_NO_DESCRIPTOR]++;
}

START_TEST(too_few_descriptors_are_said_with_the_limit)
{
    fake_worker.bad_shard = 2;
    fake_worker.do_before_ready = count_unopened;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "going on with 3 of 4 connections");
    check_has(errors, "ulimit -Hn");
}
END_TEST

/* ---- No server ---- */

static enum load_unopened unopened;

static void
open_none(const struct load_worker *worker)
{
    worker->result->unopened[unopened] = worker->result->opened;
    worker->result->opened = 0;
    worker->result->first_error = ENOENT;
}

static const struct {
    enum load_unopened why;
    const char *ip;
    const char *unix_path;
    const char *errors;
} no_servers[] = {
    {LOAD_UNOPENED_REFUSED, "127.0.0.1", NULL,
     "sxe-http: no connection could be opened (refused): does a server listen on "
     "127.0.0.1:8000?\n"},
    {LOAD_UNOPENED_REFUSED, "::1", NULL,
     "sxe-http: no connection could be opened (refused): does a server listen on [::1]:8000?\n"},
    {LOAD_UNOPENED_TIMED_OUT, "127.0.0.1", NULL,
     "sxe-http: no connection could be opened (timed out): is 127.0.0.1:8000 the right address, "
     "and "
     "may you connect there?\n"},
    {LOAD_UNOPENED_OTHER, "", "/none",
     "sxe-http: no connection could be opened (No such file or directory): is /none right?\n"},
    {LOAD_UNOPENED_UNTRIED, "127.0.0.1", NULL, ""},
};

START_TEST(a_server_that_is_not_there_is_asked_for_and_nothing_is_suspect)
{
    unopened = no_servers[_i].why;
    snprintf(plan.ip, sizeof(plan.ip), "%s", no_servers[_i].ip);
    plan.unix_path = no_servers[_i].unix_path;
    plan.workers = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = open_none;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors, no_servers[_i].errors);
    ck_assert_uint_eq(run.verdict.number, 0);
}
END_TEST

START_TEST(where_some_sockets_open_there_is_a_server)
{
    unopened = LOAD_UNOPENED_REFUSED;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = open_none;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors, "");
    ck_assert_uint_gt(run.verdict.number, 0);
}
END_TEST

static void
lose_a_query(const struct load_worker *worker)
{
    worker->result->sent++;
}

START_TEST(accounts_that_do_not_close_are_said_to_be_a_fault_of_ours)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = lose_a_query;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "the accounts do not close, which is a fault of sxe-http: ");
}
END_TEST

/* ---- Trials ---- */

START_TEST(trials_are_added_up_and_their_times_are_too)
{
    uint64_t elapsed_ns = 0;

    plan.trials = 7;
    plan.quiet = false;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 7);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 7 * 200);
    for (unsigned i = 0; i < 7; i++)
        elapsed_ns += run.trials[i].result->elapsed_ns;
    ck_assert_uint_eq(run.total->elapsed_ns, elapsed_ns);
    ck_assert(run.figures[LOAD_FIGURE_RATE].is_known);
    ck_assert(!run.noise[LOAD_FIGURE_RATE].is_known);
    check_has(errors, "trial     7/7  ");
    /* Only the first trial prints the line about sockets. */
    ck_assert_ptr_eq(strstr(strstr(output, "4/4") + 1, "4/4"), NULL);
}
END_TEST

/* This includes runs that began at the same time, but with different plans. */
START_TEST(no_two_runs_have_the_same_name)
{
    char name[] = "sxe-http", shard[] = "--shard=1/2";
    char *words[] = {name, shard};
    char first[LOAD_RUN_ID];

    plan.argv = words;
    plan.argc = 2;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(strlen(run.id), 16);
    memcpy(first, run.id, sizeof(first));
    load_run_free(&run);
    shard[8] = '2';
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_str_ne(run.id, first);
}
END_TEST

START_TEST(trials_stop_when_their_interval_is_narrow)
{
    plan.until_ci = 100;
    plan.trials = 50;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, LOAD_TRIALS_MIN);
}
END_TEST

START_TEST(trials_stop_at_their_greatest_number)
{
    plan.until_ci = 1e-12;
    plan.trials = 8;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 8);
    ck_assert_int_eq(run.status, LOAD_EXIT_UNTOLD);
}
END_TEST

/* Of 200 replies, 10 are above their p95, but only 2 above their p99. */
START_TEST(a_figure_that_a_trial_cannot_tell_has_no_interval)
{
    static const enum load_figure untold[] = {LOAD_FIGURE_SERVICE_P99, LOAD_FIGURE_RESPONSE_P99};

    plan.trials = LOAD_TRIALS_MIN;
    ck_assert_int_eq(run_plan(), 0);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(isnan(run.figures[untold[i]].low) && isnan(run.figures[untold[i]].middle));
        ck_assert(isnan(run.figures[untold[i]].high) && !run.figures[untold[i]].is_known);
        ck_assert(run.figures[untold[i] - 1].is_known);
    }
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
}
END_TEST

START_TEST(an_interval_that_can_never_be_there_is_not_waited_for)
{
    plan.until_ci = 0.5;
    plan.until_ci_figure = LOAD_FIGURE_RESPONSE_P99;
    plan.trials = 50;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 1);
    ck_assert_int_eq(run.status, LOAD_EXIT_UNTOLD);
    check_has(errors, "sxe-http: --until-ci cannot be reached: response.p99 takes 1000 requests a "
                      "trial, and trial 1 had 200; make the trials longer, as with a larger -d\n");
}
END_TEST

START_TEST(a_against_a_measures_the_noise)
{
    plan.aa = true;
    plan.trials = 2 * LOAD_TRIALS_MIN;
    plan.quiet = false;
    fake_worker.queries = 500;
    plan.requests_max = 1000;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 2 * LOAD_TRIALS_MIN);
    for (unsigned i = 0; i < LOAD_FIGURES; i++) {
        ck_assert(run.noise[i].is_known);
        ck_assert_double_gt(run.noise[i].middle, 0);
    }
    check_has(errors, "trial     1/12 A  ");
    check_has(errors, "trial     2/12 B  ");
    check_has(errors, "trial     3/12 B  ");
    check_has(errors, "trial     4/12 A  ");
}
END_TEST

static void
note_seed(const struct load_worker *worker)
{
    worker->result->bytes_sent = worker->plan->seed;
}

static uint64_t
seed_of(unsigned trial)
{
    return run.trials[trial].result->bytes_sent;
}

START_TEST(each_trial_has_a_seed_of_its_own)
{
    plan.trials = 8;
    plan.seed = 42;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = note_seed;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(seed_of(0), 42);
    for (unsigned i = 0; i < 8; i++)
        for (unsigned k = 0; k < i; k++)
            ck_assert_uint_ne(seed_of(i), seed_of(k));
}
END_TEST

START_TEST(both_sides_have_the_same_seeds)
{
    static const unsigned a[] = {0, 3, 4, 7, 8, 11}, b[] = {1, 2, 5, 6, 9, 10};

    plan.aa = true;
    plan.trials = 2 * LOAD_TRIALS_MIN;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = note_seed;
    ck_assert_int_eq(run_plan(), 0);
    for (unsigned i = 0; i < LOAD_TRIALS_MIN; i++) {
        ck_assert_uint_eq(seed_of(a[i]), seed_of(b[i]));
        for (unsigned k = 0; k < i; k++)
            ck_assert_uint_ne(seed_of(a[i]), seed_of(a[k]));
    }
}
END_TEST

START_TEST(another_figure_ends_the_trials)
{
    plan.until_ci = 0.5;
    plan.until_ci_figure = LOAD_FIGURE_RESPONSE_P50; /* 1 ms in each trial */
    plan.trials = 50;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, LOAD_TRIALS_MIN);
}
END_TEST

START_TEST(there_is_room_for_the_most_trials)
{
    plan.trials = LOAD_TRIALS_MAX;
    plan.workers = 1;
    fake_worker.queries = 1;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, LOAD_TRIALS_MAX);
}
END_TEST

/* ---- Workers that die ---- */

static void
be_killed(const struct load_worker *worker)
{
    struct load_result *result = worker->result;

    /* The worker dies between two counts. */
    result->offered += 7;
    result->sent += 3;
    raise(SIGKILL);
}

START_TEST(a_worker_that_is_killed_is_said_and_what_was_counted_is_reported)
{
    fake_worker.bad_shard = 2;
    fake_worker.do_before_done = be_killed;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "sxe-http: worker 2 of 2 (process ");
    check_has(errors, "ended with signal 9 (Killed)");
    check_has(run.verdict.reasons[0], "worker 2 of 2 died after ");
    ck_assert_ptr_eq(load_result_check(run.total), NULL);
    ck_assert_uint_eq(run.total->in_flight, 3);
    ck_assert_uint_eq(run.total->skipped[LOAD_SKIP_UNSENT], 4);
}
END_TEST

static void
be_stopped(const struct load_worker *worker)
{
    fake_worker_say(worker, LOAD_MESSAGE_ALIVE, 0);
    raise(SIGSTOP);
}

static void
compute_for_ever(const struct load_worker *worker)
{
    fake_worker_say(worker, LOAD_MESSAGE_ALIVE, 0);
    for (volatile unsigned i = 0;; i++)
        continue;
}

START_TEST(a_worker_that_does_not_answer_is_ended)
{
    fake_worker.bad_shard = 2;
    fake_worker.do_before_done = _i == 0 ? be_stopped : compute_for_ever;
    load_silent_asks = 1;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "sxe-http: worker 2 of 2 (process ");
    check_has(errors, "did not answer for too long and was ended");
    check_has(run.verdict.reasons[0], "worker 2 of 2 died after ");
}
END_TEST

/* Wait until the parent has asked, and do not read that. */
static void
be_asked(const struct load_worker *worker)
{
    struct pollfd control = {worker->control, POLLIN, 0};

    fake_worker_say(worker, LOAD_MESSAGE_ALIVE, 0);
    poll(&control, 1, -1);
}

START_TEST(a_worker_that_ends_as_it_is_asked_has_not_died)
{
    fake_worker.bad_shard = 2;
    fake_worker.do_before_done = be_asked;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    ck_assert_str_eq(errors, "");
    ck_assert_uint_eq(run.verdict.number, 0);
}
END_TEST

START_TEST(when_one_is_killed_the_others_are_stopped)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = be_killed;
    fake_worker.queries = 0;
    plan.warmup_ns = SXE_NS_PER_MS;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "sxe-http: worker 1 of 2 (process ");
}
END_TEST

START_TEST(a_worker_that_is_killed_in_the_ramp_ends_the_run)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = be_killed;
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    check_has(errors, "ended with signal 9");
}
END_TEST

static void
exit_with_7(const struct load_worker *worker)
{
    (void)worker;
    exit(7);
}

START_TEST(a_worker_that_exits_is_said_with_its_status)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = exit_with_7;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "ended with exit status 7");
}
END_TEST

START_TEST(later_trials_are_not_begun_when_one_failed)
{
    plan.trials = 10;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = exit_with_7;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 1);
}
END_TEST

static const struct {
    int error;
    const char *errors;
} ready_errors[] = {
    {EMFILE, "sxe-http: cannot start: Too many open files; allow more open files (ulimit -n)\n"},
    {ENOMEM, "sxe-http: cannot start: Cannot allocate memory; use fewer connections (-c), or more "
             "workers (-t), so that each has fewer\n"},
    {EINVAL, "sxe-http: cannot start: Invalid argument\n"},
    {ECANCELED, "sxe-http: cannot start: the script failed, as is said above\n"},
};

START_TEST(workers_that_cannot_start_say_why_once_and_what_to_do)
{
    fake_worker.ready_error = ready_errors[_i].error;
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors, ready_errors[_i].errors);
}
END_TEST

START_TEST(a_worker_that_cannot_be_told_is_killed)
{
    plan.workers = 1;
    plan.warmup_ns = SXE_NS_PER_MS;
    fake_worker.queries = 0;
    fake_os_fail(FAKE_SEND, 2, 0, ENOBUFS);
    ck_assert_int_eq(run_plan(), 0);
    check_has(errors, "ended with signal 9");
}
END_TEST

/* ---- Interrupts ---- */

static void
interrupt_parent(const struct load_worker *worker)
{
    (void)worker;
    kill(getppid(), SIGINT);
}

static void
terminate_parent(const struct load_worker *worker)
{
    (void)worker;
    kill(getppid(), SIGTERM);
}

static void
hang_up_parent(const struct load_worker *worker)
{
    (void)worker;
    kill(getppid(), SIGHUP);
}

static void (*const interrupts[])(const struct load_worker *) = {interrupt_parent, terminate_parent,
                                                                 hang_up_parent};

START_TEST(an_interrupt_stops_the_workers_and_what_was_done_is_reported)
{
    fake_worker.bad_shard = 2;
    fake_worker.do_at_mark = interrupts[_i];
    fake_worker.queries = 0;
    plan.warmup_ns = SXE_NS_PER_MS;
    plan.thresholds[0] = "p99<1us";
    ck_assert_int_eq(run_plan(), 0);
    ck_assert(run.is_interrupted);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.total->interrupted, 1);
    ck_assert_ptr_eq(load_result_check(run.total), NULL);
    ck_assert_uint_eq(run.thresholds_missed, 1);
    check_has(errors, "sxe-http: threshold p99<1us is missed\n");
}
END_TEST

START_TEST(under_nohup_a_hangup_is_none)
{
    signal(SIGHUP, SIG_IGN);
    fake_worker.bad_shard = 2;
    fake_worker.do_before_done = hang_up_parent;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
}
END_TEST

START_TEST(an_interrupt_in_the_ramp_lets_no_query_begin)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = interrupt_parent;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.total->offered, 0);
    check_has(output, "4/4");
}
END_TEST

/* This worker does not stop when it is told to. */
static void
interrupt_again_and_hang(const struct load_worker *worker)
{
    worker->result->sent += 5;
    kill(getppid(), SIGINT);
    for (;;)
        pause();
}

/* This worker stops in its drain, as a real one does. */
static void
interrupt_again_and_close_accounts(const struct load_worker *worker)
{
    struct pollfd stop = {.fd = worker->control, .events = POLLIN};

    kill(getppid(), SIGINT);
    poll(&stop, 1, -1);
    worker->result->offered += 5;
    worker->result->sent += 5;
    worker->result->ends[LOAD_END_UNANSWERED] += 5;
}

START_TEST(a_second_interrupt_ends_without_a_wait_and_counts_what_was_in_flight)
{
    plan.workers = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_parent;
    fake_worker.do_at_stop = interrupt_again_and_close_accounts;
    fake_worker.queries = 0;
    plan.warmup_ns = SXE_NS_PER_MS;
    load_parent_grace_ns = 3600 * SXE_NS_PER_SECOND;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.total->in_flight, 0);
    ck_assert_uint_eq(run.total->ends[LOAD_END_UNANSWERED], 5);
    ck_assert_uint_eq(run.verdict.number, 0);
}
END_TEST

static void
interrupt_twice_more_and_hang(const struct load_worker *worker)
{
    struct pollfd stop = {.fd = worker->control, .events = POLLIN};

    kill(getppid(), SIGINT);
    poll(&stop, 1, -1);
    interrupt_again_and_hang(worker);
}

START_TEST(a_third_interrupt_kills)
{
    plan.workers = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_parent;
    fake_worker.do_at_stop = interrupt_twice_more_and_hang;
    fake_worker.queries = 0;
    plan.warmup_ns = SXE_NS_PER_MS;
    load_parent_grace_ns = 3600 * SXE_NS_PER_SECOND;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.total->in_flight, 5);
}
END_TEST

START_TEST(a_second_interrupt_kills_one_that_does_not_end)
{
    plan.workers = 1;
    load_parent_grace_ns = SXE_NS_PER_MS;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_parent;
    fake_worker.do_at_stop = interrupt_again_and_hang;
    fake_worker.queries = 0;
    plan.warmup_ns = SXE_NS_PER_MS;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.total->in_flight, 5);
    ck_assert_ptr_eq(load_result_check(run.total), NULL);
}
END_TEST

/* Interrupt before the worker says that the warm-up is over. */
static void
interrupt_twice_and_hang(const struct load_worker *worker)
{
    struct pollfd stop = {.fd = worker->control, .events = POLLIN};

    kill(getppid(), SIGINT);
    poll(&stop, 1, -1);
    interrupt_again_and_hang(worker);
}

START_TEST(a_run_that_is_interrupted_in_its_warm_up_says_so)
{
    plan.workers = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_twice_and_hang;
    load_parent_grace_ns = SXE_NS_PER_MS;
    fake_worker.queries = 0;
    plan.warmup_ns = SXE_NS_PER_MS;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_str_eq(errors, "sxe-http: interrupted within the warm-up, which is therefore "
                             "reported\n");
}
END_TEST

START_TEST(the_first_interrupt_says_what_a_second_does)
{
    plan.quiet = false;
    fake_worker.bad_shard = 2;
    fake_worker.do_at_mark = interrupts[_i];
    fake_worker.queries = 0;
    plan.warmup_ns = SXE_NS_PER_MS;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    check_has(errors, "sxe-http: interrupted: waits for replies still to come (--drain); interrupt "
                      "again to end at once\n");
}
END_TEST

START_TEST(an_interrupt_before_the_load_waits_for_nothing)
{
    plan.quiet = false;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = interrupt_parent;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    check_has(errors, "sxe-http: interrupted before the load began\n");
}
END_TEST

START_TEST(an_interrupted_trial_is_not_in_the_intervals)
{
    plan.trials = 10;
    plan.workers = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = interrupt_parent;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.trials_number, 1);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
}
END_TEST

/* ---- System calls that fail ---- */

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
    const char *errors;
} faults[] = {
    {FAKE_MMAP, 1, ENOMEM,
     "sxe-http: cannot start: Cannot allocate memory; see what is limited (ulimit -a)\n"},
    {FAKE_MMAP, 2, ENOMEM,
     "sxe-http: cannot start: Cannot allocate memory; see what is limited (ulimit -a)\n"},
    {FAKE_MMAP, 3, ENOMEM, "sxe-http: no memory for a result; see what is limited (ulimit -a)\n"},
    {FAKE_MMAP, 4, ENOMEM,
     "sxe-http: cannot start 2 worker processes: Cannot allocate memory; see what is limited "
     "(ulimit -a)\n"},
    {FAKE_SIGNALFD, 1, EMFILE,
     "sxe-http: cannot start: Too many open files; see what is limited (ulimit -a)\n"},
    {FAKE_SOCKETPAIR, 1, EMFILE,
     "sxe-http: cannot start 2 worker processes: Too many open files; see what is limited (ulimit "
     "-a)\n"},
    {FAKE_SOCKETPAIR, 2, EMFILE,
     "sxe-http: cannot start 2 worker processes: Too many open files; see what is limited (ulimit "
     "-a)\n"},
    {FAKE_FORK, 1, EAGAIN,
     "sxe-http: cannot start 2 worker processes: Resource temporarily unavailable; see what is "
     "limited (ulimit -a)\n"},
    {FAKE_FORK, 2, EAGAIN,
     "sxe-http: cannot start 2 worker processes: Resource temporarily unavailable; see what is "
     "limited (ulimit -a)\n"},
};

START_TEST(a_call_that_fails_is_said)
{
    fake_os_fail(faults[_i].call, faults[_i].nth, 1, faults[_i].error);
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors, faults[_i].errors);
}
END_TEST

START_TEST(a_run_that_could_not_be_polled_does_not_begin)
{
    struct rlimit limit = {.rlim_cur = 10, .rlim_max = 10};

    plan.workers = 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(
        errors, "sxe-http: cannot start: Too many open files; see what is limited (ulimit -a)\n");
}
END_TEST

START_TEST(one_worker_process_is_one)
{
    plan.workers = 1;
    fake_os_fail(FAKE_FORK, 1, 1, EAGAIN);
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    check_has(errors, "sxe-http: cannot start 1 worker process: ");
}
END_TEST

START_TEST(a_poll_that_fails_is_made_again)
{
    fake_os_fail(FAKE_POLL, 1, 3, ENOMEM);
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
}
END_TEST

START_TEST(memory_that_cannot_be_given_back_is_cleared)
{
    plan.trials = 2;
    fake_os_fail(FAKE_MADVISE, 1, 0, EINVAL);
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 400);
}
END_TEST

/* The parent of sxe-http ignored SIGCHLD, and sxe-http inherits that. */
START_TEST(workers_are_waited_for_where_children_were_ignored)
{
    signal(SIGCHLD, SIG_IGN);
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
}
END_TEST

START_TEST(a_worker_that_somebody_else_waited_for_has_ended)
{
    plan.workers = 1;
    fake_os_fail(FAKE_WAITPID, 1, 1, ECHILD);
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    waitpid(-1, NULL, 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-run");
    TCase *trial = tcase_create("trial");
    TCase *trials = tcase_create("trials");
    TCase *dying = tcase_create("dying");
    TCase *interrupted = tcase_create("interrupted");
    TCase *calls = tcase_create("calls");
    TCase *all[] = {trial, trials, dying, interrupted, calls};

    tcase_add_test(trial, workers_are_added_up);
    tcase_add_test(trial, one_worker_is_a_process_too);
    tcase_add_test(trial, nothing_is_printed_where_nobody_wants_it);
    tcase_add_test(trial, all_workers_begin_at_the_same_instant);
    tcase_add_test(trial, what_the_warm_up_counted_is_not_reported);
    tcase_add_test(trial, a_run_that_ends_in_its_warm_up_is_reported_and_says_so);
    tcase_add_loop_test(trial, the_pressure_is_that_of_the_measuring, 0, 2);
    tcase_add_test(trial, the_live_view_is_looked_at_while_the_workers_run);
    tcase_add_test(trial, too_few_descriptors_are_said_with_the_limit);
    tcase_add_loop_test(trial, a_server_that_is_not_there_is_asked_for_and_nothing_is_suspect, 0,
                        sizeof(no_servers) / sizeof(no_servers[0]));
    tcase_add_test(trial, where_some_sockets_open_there_is_a_server);
    tcase_add_test(trial, accounts_that_do_not_close_are_said_to_be_a_fault_of_ours);
    tcase_add_test(trials, trials_are_added_up_and_their_times_are_too);
    tcase_add_test(trials, no_two_runs_have_the_same_name);
    tcase_add_test(trials, trials_stop_when_their_interval_is_narrow);
    tcase_add_test(trials, trials_stop_at_their_greatest_number);
    tcase_add_test(trials, a_figure_that_a_trial_cannot_tell_has_no_interval);
    tcase_add_test(trials, an_interval_that_can_never_be_there_is_not_waited_for);
    tcase_add_test(trials, a_against_a_measures_the_noise);
    tcase_add_test(trials, each_trial_has_a_seed_of_its_own);
    tcase_add_test(trials, both_sides_have_the_same_seeds);
    tcase_add_test(trials, another_figure_ends_the_trials);
    tcase_add_test(trials, there_is_room_for_the_most_trials);
    tcase_add_test(dying, a_worker_that_is_killed_is_said_and_what_was_counted_is_reported);
    tcase_add_loop_test(dying, a_worker_that_does_not_answer_is_ended, 0, 2);
    tcase_add_test(dying, a_worker_that_ends_as_it_is_asked_has_not_died);
    tcase_add_test(dying, when_one_is_killed_the_others_are_stopped);
    tcase_add_test(dying, a_worker_that_is_killed_in_the_ramp_ends_the_run);
    tcase_add_test(dying, a_worker_that_exits_is_said_with_its_status);
    tcase_add_test(dying, later_trials_are_not_begun_when_one_failed);
    tcase_add_loop_test(dying, workers_that_cannot_start_say_why_once_and_what_to_do, 0, 4);
    tcase_add_test(dying, a_worker_that_cannot_be_told_is_killed);
    tcase_add_loop_test(interrupted, an_interrupt_stops_the_workers_and_what_was_done_is_reported,
                        0, 3);
    tcase_add_test(interrupted, under_nohup_a_hangup_is_none);
    tcase_add_test(interrupted, an_interrupt_in_the_ramp_lets_no_query_begin);
    tcase_add_test(interrupted,
                   a_second_interrupt_ends_without_a_wait_and_counts_what_was_in_flight);
    tcase_add_test(interrupted, a_second_interrupt_kills_one_that_does_not_end);
    tcase_add_test(interrupted, a_third_interrupt_kills);
    tcase_add_test(interrupted, an_interrupt_before_the_load_waits_for_nothing);
    tcase_add_test(interrupted, a_run_that_is_interrupted_in_its_warm_up_says_so);
    tcase_add_loop_test(interrupted, the_first_interrupt_says_what_a_second_does, 0,
                        sizeof(interrupts) / sizeof(*interrupts));
    tcase_add_test(interrupted, an_interrupted_trial_is_not_in_the_intervals);
    tcase_add_loop_test(calls, a_call_that_fails_is_said, 0, sizeof(faults) / sizeof(faults[0]));
    tcase_add_test(calls, a_run_that_could_not_be_polled_does_not_begin);
    tcase_add_test(calls, one_worker_process_is_one);
    tcase_add_test(calls, a_poll_that_fails_is_made_again);
    tcase_add_test(calls, memory_that_cannot_be_given_back_is_cleared);
    tcase_add_test(calls, workers_are_waited_for_where_children_were_ignored);
    tcase_add_test(calls, a_worker_that_somebody_else_waited_for_has_ended);
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        tcase_add_checked_fixture(all[i], set_up_run, tear_down_run);
        suite_add_tcase(suite, all[i]);
    }
    return sxe_test_main(suite);
}
