/* SPDX-License-Identifier: MIT
 *
 * The reasons why a result is suspect.
 */
#include "../../../../apps/http/stats/verdict.h"

#include <stdio.h>
#include <string.h>

#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define US           UINT64_C(1000)
#define MS           (1000 * US)
#define SECOND       (1000 * MS)
#define WORKERS      3

static struct load_plan plan;
static struct load_result sum, worker[WORKERS];
static struct load_verdict verdict, all;
static const struct load_result *const workers[WORKERS] = {&worker[0], &worker[1], &worker[2]};

static void
judge(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        load_result_add(&sum, &worker[i]);
    load_verdict_judge(&verdict, &plan, &sum, workers, WORKERS);
}

/* Three workers for a second, each with 1,000 requests a second, without faults. */
static void
prepare(void)
{
    plan = (struct load_plan){.model = LOAD_PARTLY_OPEN,
                              .stop = LOAD_STOP_TIME,
                              .duration_ns = SECOND,
                              .rate = 3000,
                              .rate_end = 3000};
    for (unsigned i = 0; i < WORKERS; i++) {
        worker[i].elapsed_ns = SECOND;
        worker[i].sockets_wanted = worker[i].opened = 10;
        worker[i].offered = worker[i].sent = worker[i].ends[LOAD_END_OK] = 1000;
        worker[i].cpu_user_ns = 400 * MS;
        worker[i].cpu_system_ns = 300 * MS;
        worker[i].run_queue_ns = 30 * MS;
        worker[i].script_ns = 100 * MS;
        for (unsigned j = 0; j < 1000; j++) {
            load_histogram_record(&worker[i].loop_lag, 9 * MS);
            load_histogram_record(&worker[i].timer_error, 900 * US);
            load_histogram_record(&worker[i].schedule_lag, 900 * US);
        }
    }
}

static void
record_many(struct load_histogram *histogram, uint64_t ns, unsigned times)
{
    while (times-- > 0)
        load_histogram_record(histogram, ns);
}

/* ---- Results that exceed one limit ---- */

static void
nothing(void)
{
}

static void
busy_cpu(void)
{
    worker[1].cpu_user_ns = 688 * MS;
}

static void
busy_with_encryption(void)
{
    plan.tls.is_used = true;
    worker[1].reopened = 29;
    busy_cpu();
}

static void
busy_with_handshakes(void)
{
    plan.tls.is_used = true;
    worker[1].reopened = 30;
    busy_cpu();
}

static void
long_wait(void)
{
    worker[2].run_queue_ns = 124 * MS;
}

static void
slow_loop(void)
{
    record_many(&worker[1].loop_lag, 12 * MS, 11);
}

static void
stopped(void)
{
    load_histogram_record(&worker[2].loop_lag, 400 * MS);
}

/* The client stood still several times, never for long, but for long in total. */
static void
stopped_often(void)
{
    record_many(&worker[2].loop_lag, 150 * MS, 3);
    record_many(&worker[1].loop_lag, 90 * MS, 9);
}

static void
stopped_once(void)
{
    worker[2].elapsed_ns = 8 * SECOND;
    worker[2].run_queue_ns *= 8;
    load_histogram_record(&worker[2].loop_lag, 700 * MS);
}

static void
late_timer(void)
{
    record_many(&worker[0].timer_error, 1500 * US, 11);
}

static void
late_send(void)
{
    record_many(&worker[0].schedule_lag, 2 * MS, 11);
}

static void
few_offered(void)
{
    worker[0].offered = worker[0].sent = worker[0].ends[LOAD_END_OK] = 600;
}

static void
few_sent_in_the_open_model(void)
{
    plan.model = LOAD_OPEN;
    worker[0].sent = worker[0].ends[LOAD_END_OK] = 900;
    worker[0].skipped[LOAD_SKIP_UNSENT] = 100;
}

static void
refused_sockets(void)
{
    worker[0].opened = 3;
    worker[0].unopened[LOAD_UNOPENED_REFUSED] = 7;
}

static void
unopened_sockets(void)
{
    worker[0].opened = 7;
    worker[0].unopened[LOAD_UNOPENED_TIMED_OUT] = 3;
}

static void
no_ports(void)
{
    worker[0].opened = 9;
    worker[0].unopened[LOAD_UNOPENED_NO_PORT] = 1;
}

static void
few_ports(void)
{
    worker[0].opened = 4;
    worker[0].unopened[LOAD_UNOPENED_NO_PORT] = 1;
    worker[0].unopened[LOAD_UNOPENED_UNTRIED] = 5;
}

static void
no_descriptors(void)
{
    worker[0].opened = 8;
    worker[0].unopened[LOAD_UNOPENED_NO_DESCRIPTOR] = 2;
}

static void
few_descriptors(void)
{
    worker[0].opened = 4;
    worker[0].unopened[LOAD_UNOPENED_NO_DESCRIPTOR] = 1;
    worker[0].unopened[LOAD_UNOPENED_UNTRIED] = 5;
}

static void
server_away(void)
{
    worker[0].not_reopened = 17;
}

static void
slow_script(void)
{
    worker[0].script_ns = 500 * MS;
}

/* ---- Faults of the server, and results that cannot be judged ---- */

static void
overload(void)
{
    worker[0].sent = worker[0].ends[LOAD_END_OK] = 400;
    worker[0].skipped[LOAD_SKIP_SHED] = 300;
    worker[0].skipped[LOAD_SKIP_UNSENT] = 300;
}

static void
overload_in_the_open_model(void)
{
    plan.model = LOAD_OPEN;
    worker[0].sent = worker[0].ends[LOAD_END_OK] = 400;
    worker[0].skipped[LOAD_SKIP_NO_SOCKET] = 600;
}

static void
chance(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        worker[i].offered = worker[i].sent = worker[i].ends[LOAD_END_OK] = 930;
}

static void
drain(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        worker[i].elapsed_ns = SECOND * 13 / 10;
}

static void
early_end(void)
{
    plan.duration_ns = 100 * SECOND;
}

static void
other_stop(void)
{
    plan.stop = LOAD_STOP_TOTAL;
    plan.rate = 9000;
}

static void
ramp(void)
{
    plan.rate = 9000;
    plan.rate_end = 10;
}

static void
search(void)
{
    plan.find = "p99<1s";
    plan.rate = plan.rate_end = 90000;
}

static void
closed_loop(void)
{
    plan.model = LOAD_CLOSED;
    late_timer();
    late_send();
    few_offered();
    few_sent_in_the_open_model();
    plan.model = LOAD_CLOSED;
}

static void
interruption(void)
{
    few_sent_in_the_open_model();
    worker[0].opened = 2;
    worker[0].unopened[LOAD_UNOPENED_UNTRIED] = 8;
    worker[0].interrupted = 1;
}

static void
too_few_samples(void)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        memset(&worker[i].loop_lag, 0, sizeof(worker[i].loop_lag));
        record_many(&worker[i].loop_lag, 90 * MS, 999);
    }
}

static void
too_short(void)
{
    busy_cpu();
    long_wait();
    slow_loop();
    late_timer();
    late_send();
    few_offered();
    slow_script();
    for (unsigned i = 0; i < WORKERS; i++)
        worker[i].elapsed_ns = 9 * MS;
}

static void
nothing_offered(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        worker[i].offered = worker[i].sent = worker[i].ends[LOAD_END_OK] = 0;
    plan.rate = plan.rate_end = 0;
}

static const struct {
    void (*happens)(void);
    const char *reason; /* the beginning of the reason; NULL: no reason */
} cases[] = {
    {busy_cpu, "client cpu 98.8 % of a core (limit 97 %): this may be the client's rate"},
    {busy_with_encryption,
     "client cpu 98.8 % of a core (limit 97 %): TLS encryption is a part of it, and this may be "
     "the client's rate; use a larger -t"},
    {busy_with_handshakes,
     "client cpu 98.8 % of a core (limit 97 %): TLS handshakes are a part of it; use a larger -t, "
     "keep connections alive, or resume sessions (--tls-resume)"},
    {long_wait, "waited 12.4 % of the time for a CPU (limit 5 %): "},
    {slow_loop, "loop lag p99 12.0 ms (limit 10 ms): "},
    {stopped, "the client stood still for 40.0 % of the time (limit 1 %): "},
    {stopped_often, "the client stood still for 45.0 % of the time (limit 1 %): it was stopped"},
    {stopped_once, "the client stood still for 8.7 % of the time (limit 1 %): it was stopped"},
    {late_timer, "timer error p99 1.5 ms (limit 1 ms): "},
    {late_send, "schedule lag p99 2.0 ms (limit 1 ms): "},
    {few_offered, "the client did not send 6.5 % of what was due (limit 1 %): "},
    {few_sent_in_the_open_model, "the client did not send 3.3 % of what was due (limit 1 %): "},
    {refused_sockets, "connections that were refused: 7 (limit 0): see whether a server listens"},
    {unopened_sockets, "connections that did not open: 3 (limit 0): "},
    {no_ports, "connections without a local port: 1 (limit 0): use --source"},
    {few_ports, "connections without a local port: 6 (limit 0): use --source"},
    {no_descriptors, "connections without a descriptor: 2 (limit 0): raise ulimit -n"},
    {few_descriptors, "connections without a descriptor: 6 (limit 0): raise ulimit -n"},
    {server_away, "connections that could not be opened again: 17 (limit 0): "},
    {slow_script, "the script took 33.3 % of the client's cpu (limit 20 %): "},
    {nothing, NULL},
    {overload, NULL},
    {overload_in_the_open_model, NULL},
    {chance, NULL},
    {drain, NULL},
    {other_stop, NULL},
    {early_end, NULL},
    {ramp, NULL},
    {search, NULL},
    {closed_loop, NULL},
    {interruption, NULL},
    {too_few_samples, NULL},
    {too_short, NULL},
    {nothing_offered, NULL},
};

START_TEST(a_limit_that_is_passed_is_a_reason_with_what_to_do)
{
    const char *reason = cases[_i].reason;

    prepare();
    cases[_i].happens();
    judge();
    ck_assert_msg(verdict.number == (reason != NULL), "%u reasons, first %s", verdict.number,
                  verdict.reasons[0]);
    if (reason == NULL)
        return;
    ck_assert_msg(strncmp(verdict.reasons[0], reason, strlen(reason)) == 0, "%s",
                  verdict.reasons[0]);
    ck_assert_uint_lt(strlen(verdict.reasons[0]), LOAD_REASON_MAX - 1);
}
END_TEST

START_TEST(all_limits_may_be_passed_at_once)
{
    prepare();
    for (int i = 0; cases[i].reason != NULL; i++)
        cases[i].happens();
    worker[0].opened = 0;
    worker[0].sockets_wanted = 100;
    judge();
    ck_assert_uint_eq(verdict.number, 13);
}
END_TEST

START_TEST(the_busiest_worker_and_the_unluckiest_are_shown)
{
    prepare();
    worker[1].cpu_user_ns = 500 * MS;
    worker[2].run_queue_ns = 40 * MS;
    judge();
    ck_assert_double_eq_tol(verdict.cpu, 0.8, 1e-9);
    ck_assert_double_eq_tol(verdict.run_queue, 0.04, 1e-9);
}
END_TEST

/* While it spun, the worker had nothing to do. */
START_TEST(what_was_spun_is_no_load)
{
    prepare();
    worker[1].cpu_user_ns = 700 * MS;
    worker[1].spun_ns = 500 * MS;
    worker[2].spun_ns = 300 * MS;
    judge();
    ck_assert_uint_eq(verdict.number, 0);
    ck_assert_double_eq_tol(verdict.cpu, 0.7, 1e-9); /* the CPU time of the busiest worker */
    ck_assert_double_eq_tol(verdict.spun, 0.5, 1e-9);
    load_verdict_add(&all, &verdict);
    ck_assert_double_eq_tol(all.spun, 0.5, 1e-9);
}
END_TEST

START_TEST(more_than_a_core_is_a_core)
{
    prepare();
    worker[1].cpu_user_ns = 5 * SECOND;
    judge();
    ck_assert_double_eq_tol(verdict.cpu, 1, 1e-9);
}
END_TEST

/* The closed model has no schedule, but a replayed log is one. */
START_TEST(a_replay_is_paced)
{
    prepare();
    plan.model = LOAD_CLOSED;
    plan.stop = LOAD_STOP_REPLAY;
    late_send();
    judge();
    ck_assert_uint_eq(verdict.number, 1);
}
END_TEST

/* The probe waited for a CPU for only 0.5 % of the time, but each of its replies is late by
 * that. */
START_TEST(a_probe_may_not_wait_for_a_cpu_beside_its_queries)
{
    struct load_result *probe = &worker[0];

    probe->elapsed_ns = SECOND;
    probe->run_queue_ns = 5 * MS;
    record_many(&probe->response, MS, 49);
    load_verdict_judge_probe(&verdict, probe);
    ck_assert_uint_eq(verdict.number, 1);
    ck_assert_str_eq(verdict.reasons[0],
                     "waits for a CPU were 10.2 % of its response times (limit 10 %): other "
                     "processes run on its CPUs; leave it one, with a smaller -t or taskset");
    verdict.number = 0;
    record_many(&probe->response, MS, 1);
    load_verdict_judge_probe(&verdict, probe);
    ck_assert_uint_eq(verdict.number, 0);
    probe->run_queue_ns = SECOND;
    probe->elapsed_ns = 9 * MS;
    load_verdict_judge_probe(&verdict, probe);
    ck_assert_uint_eq(verdict.number, 0);
}
END_TEST

START_TEST(a_warning_of_another_trial_is_added_once)
{
    prepare();
    busy_cpu();
    judge();
    load_verdict_add(&all, &verdict);
    worker[1].cpu_user_ns = 690 * MS;
    slow_loop();
    judge();
    load_verdict_add(&all, &verdict);
    load_verdict_add(&all, &verdict);
    ck_assert_uint_eq(all.number, 2);
    ck_assert_ptr_nonnull(strstr(all.reasons[0], "98.8"));
    ck_assert_ptr_nonnull(strstr(all.reasons[1], "loop lag"));
    ck_assert_double_eq_tol(all.cpu, 0.99, 1e-9);
    ck_assert(!all.has_cpu_pressure);
}
END_TEST

START_TEST(the_pressure_is_the_highest_and_no_reason)
{
    prepare();
    judge();
    for (unsigned i = 0; i < 3; i++) {
        verdict.cpu_pressure = i == 1 ? 0.9 : 0.5;
        verdict.has_cpu_pressure = true;
        load_verdict_add(&all, &verdict);
    }
    ck_assert(all.has_cpu_pressure);
    ck_assert_double_eq(all.cpu_pressure, 0.9);
    ck_assert_uint_eq(all.number, 0);
}
END_TEST

START_TEST(a_reason_that_is_no_limit_is_known_by_its_text)
{
    verdict = (struct load_verdict){.number = 2, .reasons = {"at 5000/s: a", "at 5000/s: b"}};
    load_verdict_add(&all, &verdict);
    load_verdict_add(&all, &verdict);
    ck_assert_uint_eq(all.number, 2);
    ck_assert_str_eq(all.reasons[1], "at 5000/s: b");
}
END_TEST

START_TEST(reasons_that_do_not_fit_are_left_out)
{
    for (unsigned i = 0; i < LOAD_REASONS_MAX + 3; i++) {
        verdict.number = 1;
        snprintf(verdict.reasons[0], LOAD_REASON_MAX, "reason %u", i);
        load_verdict_add(&all, &verdict);
    }
    ck_assert_uint_eq(all.number, LOAD_REASONS_MAX);
    ck_assert_str_eq(all.reasons[LOAD_REASONS_MAX - 1], "reason 15");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-verdict");
    TCase *tcase = tcase_create("verdict");

    tcase_add_loop_test(tcase, a_limit_that_is_passed_is_a_reason_with_what_to_do, 0, COUNT(cases));
    tcase_add_test(tcase, all_limits_may_be_passed_at_once);
    tcase_add_test(tcase, the_busiest_worker_and_the_unluckiest_are_shown);
    tcase_add_test(tcase, what_was_spun_is_no_load);
    tcase_add_test(tcase, more_than_a_core_is_a_core);
    tcase_add_test(tcase, a_replay_is_paced);
    tcase_add_test(tcase, a_probe_may_not_wait_for_a_cpu_beside_its_queries);
    tcase_add_test(tcase, a_warning_of_another_trial_is_added_once);
    tcase_add_test(tcase, the_pressure_is_the_highest_and_no_reason);
    tcase_add_test(tcase, a_reason_that_is_no_limit_is_known_by_its_text);
    tcase_add_test(tcase, reasons_that_do_not_fit_are_left_out);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
