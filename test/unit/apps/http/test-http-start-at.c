/* SPDX-License-Identifier: MIT
 *
 * The values of --start-at and --shard, and a run that waits for its start time.
 */
#include "../../../../apps/http/cli/start-at.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake-os.h"
#include "run-plan.h"
#include "run-private.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* 2026-11-23 12:00:00 UTC; and half a second later. */
#define NOON_S UINT64_C(1795435200)
#define NOW_NS (NOON_S * SXE_NS_PER_SECOND + 500000000)

static const struct {
    const char *text;
    double after_noon_s;
} good[] = {
    {"+0.25", 0.75}, {"+20", 20.5},         {"1795435201", 1},   {"1795435200.75", 0.75},
    {"12:00:01", 1}, {"12:00:00.75", 0.75}, {"23:59:59", 43199},
};

START_TEST(a_time_is_read)
{
    uint64_t at_ns = 0;

    setenv("TZ", "UTC", 1);
    tzset();
    ck_assert_ptr_null(load_start_at_parse(good[_i].text, NOW_NS, &at_ns));
    ck_assert_double_eq_tol((double)(at_ns - NOON_S * SXE_NS_PER_SECOND) / 1e9,
                            good[_i].after_noon_s, 1e-6);
}
END_TEST

static const struct {
    const char *text, *problem;
} bad[] = {
    {"", "it must be seconds"},
    {"+", "it must be seconds"},
    {"+-1", "it must be seconds"},
    {"soon", "it must be seconds"},
    {"1795435201x", "it must be"},
    {"0x6b000000", "it must be"},
    {"12:00", "it must be"},
    {"24:00:00", "it must be"},
    {"12:60:00", "it must be"},
    {"12:00:61", "it must be"},
    {"-1:00:00", "it must be"},
    {"12:00:01x", "it must be"},
    {"12:00:01.x", "it must be"},
    {"12:00:00", "that time is past"},
    {"1795435200", "that time is past"},
    {"+0", "that time is past"},
    {"+86401", "more than a day ahead"},
    {"1795435201000", "not milliseconds"},
};

START_TEST(what_is_no_time_or_past_is_refused)
{
    const char *problem;
    uint64_t at_ns = 0;

    setenv("TZ", "UTC", 1);
    tzset();
    problem = load_start_at_parse(bad[_i].text, NOW_NS, &at_ns);
    ck_assert_msg(problem != NULL && strstr(problem, bad[_i].problem) != NULL, "%s: %s",
                  bad[_i].text, problem);
}
END_TEST

START_TEST(a_shard_is_read)
{
    ck_assert_ptr_null(load_shard_parse("2/4", &plan));
    ck_assert_uint_eq(plan.shards, 4);
    ck_assert_uint_eq(plan.shard, 1);
    ck_assert(!plan.has_shard[0] && plan.has_shard[1]);
    ck_assert_uint_eq(load_plan_share(&plan, 10), 3);
    ck_assert_ptr_null(load_shard_parse("4/4", &plan));
    ck_assert_uint_eq(load_plan_share(&plan, 10), 2);
    ck_assert_ptr_null(load_shard_parse("1/1", &plan));
    ck_assert_uint_eq(plan.shards, 0);
    ck_assert_uint_eq(load_plan_share(&plan, 10), 10);
}
END_TEST

START_TEST(what_is_no_shard_is_refused)
{
    static const char *const texts[] = {"", "1", "0/2", "3/2", "1/257", "1/2x", "a/b", "1/0"};

    ck_assert_ptr_nonnull(strstr(load_shard_parse(texts[_i], &plan), "it must be K/N"));
}
END_TEST

/* ---- A run ---- */

static uint64_t
wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SXE_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

START_TEST(the_first_trial_begins_then)
{
    plan.trials = 2;
    plan.start_at_ns = wall_ns() + 300 * SXE_NS_PER_MS;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_ge(wall_ns(), plan.start_at_ns);
    ck_assert_uint_ge(run.trials[0].result->started_ns - run.started_ns + run.wall_ns + 1000000,
                      plan.start_at_ns);
    ck_assert_uint_eq(run.trials_number, 2);
}
END_TEST

START_TEST(one_whose_sockets_are_open_too_late_is_suspect)
{
    plan.start_at_ns = wall_ns() - SXE_NS_PER_SECOND;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_ptr_nonnull(strstr(run.verdict.reasons[0], "s after --start-at"));
}
END_TEST

/* The run has not begun. */
START_TEST(one_that_waits_can_be_interrupted)
{
    pid_t parent = getpid(), child;
    sigset_t mask;

    plan.start_at_ns = wall_ns() + 3600 * SXE_NS_PER_SECOND;
    /* An interrupt that comes before the run handles it must not end the test. */
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    child = fork();
    while (child == 0) {
        usleep(20000);
        if (kill(parent, SIGINT) < 0)
            _exit(0);
    }
    ck_assert_int_eq(run_plan(), LOAD_EXIT_INTERRUPTED);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_assert_uint_eq(run.trials_number, 0);
    ck_assert_str_eq(errors, "sxe-http: interrupted before anything was measured\n");
}
END_TEST

static void
tell_shards(const struct load_worker *worker)
{
    worker->result->late = worker->shards;
}

/* With two workers, the second of three shards has the numbers 1 and 4 of 0 to 5. */
START_TEST(a_shard_has_every_nth_part)
{
    load_shard_parse("2/3", &plan);
    fake_worker.bad_shard = _i + 1;
    fake_worker.do_before_done = tell_shards;
    run_plan();
    ck_assert_uint_eq(run.total->late, _i == 1 || _i == 4 ? 6 : 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-start-at");
    TCase *values = tcase_create("values"), *runs = tcase_create("runs");

    tcase_add_loop_test(values, a_time_is_read, 0, COUNT(good));
    tcase_add_loop_test(values, what_is_no_time_or_past_is_refused, 0, COUNT(bad));
    tcase_add_test(values, a_shard_is_read);
    tcase_add_loop_test(values, what_is_no_shard_is_refused, 0, 8);
    suite_add_tcase(suite, values);
    tcase_add_checked_fixture(runs, set_up_run, tear_down_run);
    tcase_add_test(runs, the_first_trial_begins_then);
    tcase_add_test(runs, one_whose_sockets_are_open_too_late_is_suspect);
    tcase_add_test(runs, one_that_waits_can_be_interrupted);
    tcase_add_loop_test(runs, a_shard_has_every_nth_part, 0, 6);
    suite_add_tcase(suite, runs);
    return sxe_test_main(suite);
}
