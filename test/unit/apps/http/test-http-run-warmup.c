/* SPDX-License-Identifier: MIT
 *
 * --warmup auto with workers that simulate a server which is slow at first, always, or never.
 */
#include <signal.h>

#include "run-plan.h"
#include "test-main.h"

static void
set_up(void)
{
    set_up_run();
    load_warmup_window_ns = SXE_NS_PER_MS;
    fake_worker.queries = 0;
    plan.stop = LOAD_STOP_TIME;
    plan.duration_ns = 10 * SXE_NS_PER_MS;
    plan.is_warmup_auto = true;
    plan.warmup_ns = 40 * SXE_NS_PER_SECOND;
    plan.workers = 1;
}

static bool
is_suspect_for(const char *reason)
{
    for (unsigned i = 0; i < run.verdict.number; i++)
        if (strstr(run.verdict.reasons[i], reason) != NULL)
            return true;
    return false;
}

/* The latency falls with the number of replies, so it falls from window to window however busy the
 * machine is. */
static uint64_t
slow_at_first_ns(double rate, uint64_t nth)
{
    (void)rate;
    return nth < 2000 ? (2000 - nth) * 10000 + 1000000 : 1000000;
}

static uint64_t
ever_slower_ns(double rate, uint64_t nth)
{
    (void)rate;
    return 1000000 + nth * 1000;
}

START_TEST(the_measuring_begins_when_the_server_is_warm)
{
    fake_worker.latency_ns = slow_at_first_ns;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    ck_assert_ptr_null(run.left_out.problem);
    ck_assert_uint_gt(run.left_out.ns, 10 * load_warmup_window_ns);
    ck_assert_uint_ge(run.left_out.queries, 2000);
    ck_assert_uint_gt(run.total->ends[LOAD_END_OK], 0);
    ck_assert_uint_eq(load_histogram_quantile(&run.total->response, 1), 1000000);
    check_has(output, "warm-up auto, up to 40 s");
}
END_TEST

START_TEST(one_that_is_never_warm_is_measured_at_last_and_suspect)
{
    fake_worker.latency_ns = ever_slower_ns;
    plan.warmup_ns = 50 * SXE_NS_PER_MS;
    plan.trials = 2;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_SUSPECT);
    ck_assert_ptr_nonnull(run.left_out.problem);
    ck_assert(is_suspect_for("warm-up auto: not stationary after 50 ms: "));
    ck_assert_uint_eq(run.left_out.ns, run.trials[0].left_out.ns + run.trials[1].left_out.ns);
    ck_assert_uint_eq(run.left_out.queries,
                      run.trials[0].left_out.queries + run.trials[1].left_out.queries);
    ck_assert_uint_gt(run.total->ends[LOAD_END_OK], 0);
}
END_TEST

START_TEST(too_few_replies_are_said)
{
    plan.rate = 1;
    plan.warmup_ns = 20 * SXE_NS_PER_MS;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert(is_suspect_for("not stationary after 20 ms: too few good replies to tell; "));
}
END_TEST

START_TEST(a_run_that_ends_before_it_is_warm_is_reported_and_says_so)
{
    fake_worker.queries = 200;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 200);
    ck_assert_uint_eq(run.left_out.ns, 0);
    check_has(errors, "ended within its warm-up");
}
END_TEST

static uint64_t
interrupted_at_once_ns(double rate, uint64_t nth)
{
    if (nth == 0)
        kill(getppid(), SIGINT);
    return ever_slower_ns(rate, nth);
}

START_TEST(an_interrupt_ends_the_wait)
{
    fake_worker.latency_ns = interrupted_at_once_ns;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.left_out.ns, 0);
    ck_assert(!is_suspect_for("warm-up auto"));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-run-warmup");
    TCase *tcase = tcase_create("warmup");

    tcase_add_checked_fixture(tcase, set_up, tear_down_run);
    tcase_add_test(tcase, the_measuring_begins_when_the_server_is_warm);
    tcase_add_test(tcase, one_that_is_never_warm_is_measured_at_last_and_suspect);
    tcase_add_test(tcase, too_few_replies_are_said);
    tcase_add_test(tcase, a_run_that_ends_before_it_is_warm_is_reported_and_says_so);
    tcase_add_test(tcase, an_interrupt_ends_the_wait);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
