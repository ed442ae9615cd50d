/* SPDX-License-Identifier: MIT
 *
 * The probe: its plan, and that the coordinator keeps its figures apart from the load's, with fake
 * workers.
 */
#include "run-plan.h"
#include "test-main.h"

/* Further queries of the probe, besides those of its rate (which is 0 in most cases). */
#define OWN_QUERIES 5

static void
set_up(void)
{
    set_up_run();
    plan.probe_rate = 1e-6;
}

/* ---- The plan of the probe ---- */

START_TEST(it_asks_the_same_of_the_same_server_at_a_rate_of_its_own)
{
    struct load_plan load = plan;
    struct load_plan probe;

    load.model = LOAD_OPEN;
    load.arrivals = LOAD_FIXED;
    load.rate_end = 9000;
    load.think_ns = load.deadline_ns = 1;
    load.depth = 8;
    load.ramp_rate = 3;
    load.timeout_ns = 5 * SXE_NS_PER_SECOND;
    load.drain_ns = 6 * SXE_NS_PER_SECOND;
    load.warmup_ns = 7 * SXE_NS_PER_SECOND;
    load.proxy = 2;
    load.unix_path = "/a";
    load.probe_rate = 50;
    load_probe_plan(&probe, &load);
    ck_assert_uint_eq(probe.sockets, LOAD_PROBE_SOCKETS);
    ck_assert_uint_eq(probe.workers, 1);
    ck_assert_int_eq(probe.model, LOAD_PARTLY_OPEN);
    ck_assert_int_eq(probe.arrivals, LOAD_POISSON);
    ck_assert_double_eq(probe.rate, 50);
    ck_assert_double_eq(probe.rate_end, 50);
    ck_assert_double_eq(probe.probe_rate, 0);
    ck_assert_double_eq(probe.ramp_rate, 0);
    ck_assert_uint_eq(probe.think_ns + probe.deadline_ns, 0);
    ck_assert_uint_eq(probe.depth, 1);
    ck_assert_uint_ne(probe.seed, load.seed);
    ck_assert_str_eq(probe.ip, load.ip);
    ck_assert_uint_eq(probe.port, load.port);
    ck_assert_str_eq(probe.unix_path, "/a");
    ck_assert_uint_eq(probe.proxy, 2);
    ck_assert_ptr_eq(probe.requests, load.requests);
    ck_assert_uint_eq(probe.timeout_ns, load.timeout_ns);
    ck_assert_uint_eq(probe.drain_ns, load.drain_ns);
    ck_assert_uint_eq(probe.warmup_ns, load.warmup_ns);
}
END_TEST

START_TEST(it_has_the_duration_of_the_load_or_none)
{
    struct load_plan probe;

    load_probe_plan(&probe, &plan);
    ck_assert_int_eq(probe.stop, LOAD_STOP_TIME);
    ck_assert_uint_eq(probe.duration_ns, LOAD_FOREVER_NS);
    plan.stop = LOAD_STOP_TIME;
    plan.duration_ns = 3 * SXE_NS_PER_SECOND;
    load_probe_plan(&probe, &plan);
    ck_assert_int_eq(probe.stop, LOAD_STOP_TIME);
    ck_assert_uint_eq(probe.duration_ns, 3 * SXE_NS_PER_SECOND);
}
END_TEST

/* ---- Counters of the probe ---- */

static bool
is_probe(const struct load_worker *worker)
{
    return !(worker->plan->probe_rate > 0);
}

static void
ask(const struct load_worker *worker, uint64_t number, uint64_t ns)
{
    struct load_result *result = worker->result;

    if (!is_probe(worker))
        return;
    result->offered += number;
    result->sent += number;
    result->ends[LOAD_END_OK] += number;
    while (number-- > 0) {
        load_histogram_record(&result->service, ns);
        load_histogram_record(&result->response, ns);
    }
}

static void
ask_own(const struct load_worker *worker)
{
    ask(worker, OWN_QUERIES, 3000000);
}

static void
ask_more(const struct load_worker *worker)
{
    ask(worker, 70, 9000000);
}

START_TEST(what_it_counts_is_not_the_load_s)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = ask_own;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 200);
    ck_assert_uint_eq(run.total->response.count, 200);
    ck_assert_uint_eq(run.total->opened, 4);
    ck_assert_uint_eq(run.probe->ends[LOAD_END_OK], OWN_QUERIES);
    ck_assert_uint_eq(run.probe->response.count, OWN_QUERIES);
    ck_assert_uint_eq(load_histogram_quantile(&run.probe->service, 1), 3000000);
    ck_assert_uint_eq(run.probe->opened, LOAD_PROBE_SOCKETS);
    ck_assert_uint_eq(run.trials[0].probe->offered, OWN_QUERIES);
    ck_assert_ptr_eq(load_result_check(run.total), NULL);
    ck_assert_ptr_eq(load_result_check(run.probe), NULL);
    check_has(output, "4/4");
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(without_one_there_is_no_result_of_it)
{
    plan.probe_rate = 0;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_ptr_null(run.probe);
    ck_assert_ptr_null(run.trials[0].probe);
}
END_TEST

static void
interrupt_parent(const struct load_worker *worker)
{
    if (is_probe(worker))
        ask_more(worker);
    else
        kill(getppid(), SIGINT);
}

/* The interrupt after the mark only ends the probe. */
START_TEST(it_begins_to_measure_at_the_mark_of_the_load)
{
    plan.warmup_ns = SXE_NS_PER_MS;
    fake_worker.queries = 0;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = interrupt_parent;
    fake_worker.do_before_done = ask_own;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.probe->interrupted, 1);
    ck_assert_uint_eq(run.probe->offered, OWN_QUERIES);
    ck_assert_uint_eq(run.probe->response.count, OWN_QUERIES);
}
END_TEST

START_TEST(trials_add_its_histograms_up)
{
    uint64_t elapsed_ns = 0;

    plan.trials = 3;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = ask_own;
    ck_assert_int_eq(run_plan(), 0);
    for (unsigned i = 0; i < 3; i++)
        elapsed_ns += run.trials[i].probe->elapsed_ns;
    ck_assert_uint_eq(run.probe->elapsed_ns, elapsed_ns);
    ck_assert_uint_eq(run.probe->response.count, 3 * OWN_QUERIES);
    ck_assert_uint_eq(run.probe->sockets_wanted, 3 * LOAD_PROBE_SOCKETS);
    ck_assert_uint_eq(run.total->response.count, 3 * 200);
}
END_TEST

START_TEST(there_is_room_for_it_beside_the_most_workers)
{
    plan.workers = plan.sockets = LOAD_WORKERS_MAX;
    fake_worker.queries = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = ask_own;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], LOAD_WORKERS_MAX);
    ck_assert_uint_eq(run.probe->ends[LOAD_END_OK], OWN_QUERIES);
}
END_TEST

/* ---- The end of the probe ---- */

static void
note_stop(const struct load_worker *worker)
{
    if (is_probe(worker))
        worker->result->resent++;
}

START_TEST(it_is_stopped_when_the_load_is_over)
{
    static const enum load_stop stops[] = {LOAD_STOP_TOTAL, LOAD_STOP_PER_SOCKET, LOAD_STOP_TIME};

    /* A load with a duration may end before the probe does. */
    plan.stop = stops[_i];
    plan.duration_ns = 3600 * SXE_NS_PER_SECOND;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_stop = note_stop;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.probe->resent, 1);
}
END_TEST

/* The load is ten times as fast; if the probe were stopped with it, it would have fewer queries. */
START_TEST(with_a_duration_it_ends_by_itself)
{
    plan.stop = LOAD_STOP_TIME;
    plan.duration_ns = 1;
    plan.probe_rate = 50;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_stop = note_stop;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.probe->resent, 0);
    ck_assert_uint_eq(run.probe->ends[LOAD_END_OK], 100);
}
END_TEST

/* Without replies the load is never warm: its warm-up ends at warmup_ns, as not stationary. The
 * probe gets that mark, and the end of the load. */
START_TEST(where_the_warm_up_is_found_out_it_has_the_mark_and_the_end_of_the_load)
{
    load_warmup_window_ns = SXE_NS_PER_MS;
    plan.stop = LOAD_STOP_TIME;
    plan.duration_ns = 10 * SXE_NS_PER_MS;
    plan.is_warmup_auto = true;
    plan.warmup_ns = 20 * SXE_NS_PER_MS;
    plan.rate = plan.rate_end = 1e-6;
    fake_worker.queries = 0;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = ask_more;
    fake_worker.do_at_stop = note_stop;
    fake_worker.do_before_done = ask_own;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.probe->resent, 0);
    ck_assert_uint_eq(run.probe->offered, OWN_QUERIES);
    ck_assert_uint_gt(run.left_out.ns, 0);
    ck_assert_uint_eq(run.left_out.queries, 0);
    ck_assert_uint_eq(run.probe_verdict.number, 1);
    check_has(run.probe_verdict.reasons[0], "warm-up auto: not stationary after 20 ms: ");
}
END_TEST

static void
interrupt_once(const struct load_worker *worker)
{
    note_stop(worker);
    if (is_probe(worker))
        kill(getppid(), SIGINT);
}

START_TEST(an_interrupt_while_it_drains_is_one)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_at_stop = interrupt_once;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.probe->resent, 1);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 200);
}
END_TEST

static void
be_killed(const struct load_worker *worker)
{
    if (!is_probe(worker))
        return;
    worker->result->offered += 7;
    worker->result->sent += 3;
    raise(SIGKILL);
}

START_TEST(one_that_is_killed_is_said_by_its_name)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = be_killed;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "sxe-http: the probe (process ");
    check_has(errors, "ended with signal 9 (Killed)");
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 200);
    ck_assert_uint_eq(run.probe->in_flight, 3);
    ck_assert_ptr_eq(load_result_check(run.probe), NULL);
}
END_TEST

/* ---- Failures of the probe ---- */

static void
open_none_at_all(const struct load_worker *worker)
{
    worker->result->unopened[LOAD_UNOPENED_REFUSED] = worker->result->opened;
    worker->result->opened = 0;
}

static void
open_none(const struct load_worker *worker)
{
    if (is_probe(worker))
        open_none_at_all(worker);
}

START_TEST(one_without_sockets_is_an_error_and_the_load_goes_on)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = open_none;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors,
                     "sxe-http: the probe could open none of its 16 connections; the load goes "
                     "on without it\n");
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], 200);
    ck_assert_uint_eq(run.verdict.number + run.probe_verdict.number, 0);
}
END_TEST

START_TEST(where_nothing_listens_that_is_said_once)
{
    plan.workers = 1;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = open_none_at_all;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_str_eq(errors,
                     "sxe-http: no connection could be opened (refused): does a server listen "
                     "on 127.0.0.1:8000?\n");
}
END_TEST

static void
lose_a_query(const struct load_worker *worker)
{
    worker->result->sent += is_probe(worker);
}

START_TEST(its_accounts_must_close_too)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = lose_a_query;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, "the accounts of the probe do not close, which is a fault of sxe-http: ");
}
END_TEST

/* Waits for a CPU that are long compared with the replies, but a small part of the time. */
static void
wait_for_a_cpu(const struct load_worker *worker)
{
    ask_own(worker);
    if (!is_probe(worker))
        return;
    worker->result->elapsed_ns = 100 * SXE_NS_PER_SECOND;
    worker->result->run_queue_ns = OWN_QUERIES * 1000000;
}

START_TEST(it_is_suspect_by_itself)
{
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = wait_for_a_cpu;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_uint_eq(run.verdict.number, 0);
    ck_assert_uint_eq(run.probe_verdict.number, 1);
    check_has(run.probe_verdict.reasons[0], "waits for a CPU were 33.3 % of its response times");
    ck_assert_int_eq(run.status, LOAD_EXIT_SUSPECT);
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
    const char *errors;
} faults[] = {
    {FAKE_MMAP, 2, ENOMEM,
     "sxe-http: cannot start: Cannot allocate memory; see what is limited (ulimit -a)\n"},
    {FAKE_MMAP, 3, ENOMEM, "sxe-http: no memory for a result; see what is limited (ulimit -a)\n"},
    {FAKE_SOCKETPAIR, 3, EMFILE,
     "sxe-http: cannot start 3 worker processes: Too many open files; see what is limited (ulimit "
     "-a)\n"},
    {FAKE_FORK, 3, EAGAIN,
     "sxe-http: cannot start 3 worker processes: Resource temporarily unavailable; see what is "
     "limited (ulimit -a)\n"},
};

START_TEST(a_call_that_fails_is_said)
{
    fake_os_fail(faults[_i].call, faults[_i].nth, 1, faults[_i].error);
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors, faults[_i].errors);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-probe");
    TCase *t = tcase_create("probe");

    tcase_add_checked_fixture(t, set_up, tear_down_run);
    tcase_add_test(t, it_asks_the_same_of_the_same_server_at_a_rate_of_its_own);
    tcase_add_test(t, it_has_the_duration_of_the_load_or_none);
    tcase_add_test(t, what_it_counts_is_not_the_load_s);
    tcase_add_test(t, without_one_there_is_no_result_of_it);
    tcase_add_test(t, it_begins_to_measure_at_the_mark_of_the_load);
    tcase_add_test(t, trials_add_its_histograms_up);
    tcase_add_test(t, there_is_room_for_it_beside_the_most_workers);
    tcase_add_loop_test(t, it_is_stopped_when_the_load_is_over, 0, 3);
    tcase_add_test(t, with_a_duration_it_ends_by_itself);
    tcase_add_test(t, where_the_warm_up_is_found_out_it_has_the_mark_and_the_end_of_the_load);
    tcase_add_test(t, an_interrupt_while_it_drains_is_one);
    tcase_add_test(t, one_that_is_killed_is_said_by_its_name);
    tcase_add_test(t, one_without_sockets_is_an_error_and_the_load_goes_on);
    tcase_add_test(t, where_nothing_listens_that_is_said_once);
    tcase_add_test(t, its_accounts_must_close_too);
    tcase_add_test(t, it_is_suspect_by_itself);
    tcase_add_loop_test(t, a_call_that_fails_is_said, 0, sizeof(faults) / sizeof(faults[0]));
    suite_add_tcase(suite, t);
    return sxe_test_main(suite);
}
