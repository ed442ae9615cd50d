/* SPDX-License-Identifier: MIT
 *
 * A worker's figures about servers whose response times follow a known law, in virtual time: they
 * must be those of theory.
 */
#include "known-world.h"

#define QUANTILE(times, fraction) load_histogram_quantile(&world.result->times, fraction)

/* The width of a bucket is at most 1/1,024 of its value, and times are rounded up to whole us. */
static void
expect_ns(uint64_t ns, uint64_t expected_ns)
{
    ck_assert_uint_ge(ns + ns / 1024 + 1000, expected_ns);
    ck_assert_uint_le(ns, expected_ns + expected_ns / 512 + 1000);
}

/* Compare 2,000 replies with the law's quantiles; at the edge of a part, one reply may be on either
 * side. */
static void
expect_law(const char *law)
{
    static const double fractions[] = {0.25, 0.5, 0.75, 0.85, 0.95, 0.985};

    make_world();
    world.plan.queries = 2000;
    serve_law(law);
    run_world();
    expect_all_ok(2000);
    for (unsigned i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++) {
        uint64_t low = known_law_quantile_ns(&served, fractions[i] - 0.002);
        uint64_t high = known_law_quantile_ns(&served, fractions[i] + 0.002);
        uint64_t told = QUANTILE(service, fractions[i]);

        ck_assert_uint_ge(told + 1, low);
        ck_assert_uint_le(told, high + high / 512 + 1000);
    }
}

START_TEST(times_are_those_of_the_law)
{
    expect_law("fixed:1");
    expect_law("fixed:0.25");
    expect_law("bimodal:0.1,1,50");
    expect_law("bimodal:0.02,1,3000");
    expect_law("lognormal:5,1");
}
END_TEST

/* An M/D/1 queue at 70 % load: the mean response time is 2.17 times the service time. */
START_TEST(a_queue_has_the_mean_of_pollaczek_and_khinchine)
{
    double expected_ns;

    make_world();
    load_world(LOAD_PARTLY_OPEN, 700, SECONDS(30), 64);
    world.plan.arrivals = LOAD_POISSON;
    world.plan.seed = 1;
    serve_law("md1:1000");
    run_world();
    expected_ns = known_md1_mean_ns(&served, 700);
    ck_assert_double_eq_tol(load_histogram_mean_ns(&world.result->response), expected_ns,
                            expected_ns * 0.05);
    ck_assert_uint_eq(load_result_errors(world.result), 0);
}
END_TEST

/* 400/s to a server of 200/s: the 2,064th query, which is sent last, arrives at 5.16 s and is
 * answered at 10.32 s. */
START_TEST(what_a_capped_server_does_not_do_waits)
{
    make_world();
    load_world(LOAD_PARTLY_OPEN, 400, SECONDS(10), 64);
    serve_law("capped:200");
    run_world();
    ck_assert_uint_ge(world.result->ends[LOAD_END_OK], 2000);
    ck_assert_uint_le(world.result->ends[LOAD_END_OK], 2200);
    expect_ns(world.result->response.max_ns, SECONDS(5) + MS(160));
}
END_TEST

/* The server stalls for 1 of 4 s: queries that arrive then wait from 1 s down to nothing. */
START_TEST(a_stall_is_in_the_response_times)
{
    make_world();
    load_world(LOAD_PARTLY_OPEN, 1000, SECONDS(4), 8);
    serve_law("stalled:1000,1000");
    run_world();
    ck_assert_uint_eq(world.result->ends[LOAD_END_OK], 4000);
    expect_ns(world.result->response.max_ns, SECONDS(1));
    expect_ns(QUANTILE(response, 0.9), MS(600));
    expect_ns(QUANTILE(response, 0.7), 0);
    expect_ns(QUANTILE(service, 0.99), 0);
}
END_TEST

/* ---- Failed requests have no time, and improve no percentile ---- */

static void
expect_at_least(uint64_t ns, uint64_t expected_ns)
{
    ck_assert(load_histogram_is_at_least(&world.result->response, ns));
    ck_assert_uint_eq(ns, expected_ns);
}

/* 2 % of the replies take 3 s, longer than the client waits. */
START_TEST(what_timed_out_is_at_least_its_timeout)
{
    make_world();
    load_world(LOAD_PARTLY_OPEN, 500, SECONDS(4), 64);
    world.plan.timeout_ns = SECONDS(1);
    serve_law("bimodal:0.02,1,3000");
    run_world();
    ck_assert_uint_eq(world.result->response.count, 2000);
    ck_assert_uint_eq(world.result->response.censored, world.result->ends[LOAD_END_TIMED_OUT]);
    ck_assert_uint_ge(world.result->ends[LOAD_END_TIMED_OUT], 39);
    ck_assert_uint_le(world.result->ends[LOAD_END_TIMED_OUT], 41);
    expect_ns(QUANTILE(response, 0.97), MS(1));
    ck_assert(!load_histogram_is_at_least(&world.result->response, QUANTILE(response, 0.97)));
    expect_at_least(QUANTILE(response, 0.99), SECONDS(1));
    expect_at_least(QUANTILE(service, 0.99), SECONDS(1));
    expect_at_least(QUANTILE(first_byte, 0.99), SECONDS(1));
    expect_at_least(world.result->response.max_ns, SECONDS(1));
}
END_TEST

/* Good replies take 50 ms; 60 % quick refusals do not make the p50 quick. */
START_TEST(a_storm_of_refusals_improves_no_percentile)
{
    static const struct {
        const char *law;
        enum load_end end;
    } storms[] = {{"storm:0.6,50", LOAD_END_BAD_STATUS},
                  {"resets:0.6,50", LOAD_END_CLOSED_EARLY}, /* over a unix socket */
                  {"lying:0.6,50", LOAD_END_SHORT_BODY}};

    make_world();
    load_world(LOAD_PARTLY_OPEN, 20, SECONDS(5), 16);
    world.plan.timeout_ns = SECONDS(2);
    serve_law(storms[_i].law);
    run_world();
    ck_assert_uint_eq(world.result->ends[LOAD_END_OK] + world.result->ends[storms[_i].end], 100);
    ck_assert_uint_ge(world.result->ends[storms[_i].end], 59);
    ck_assert_uint_le(world.result->ends[storms[_i].end], 61);
    expect_ns(QUANTILE(service, 0.01), MS(50));
    expect_ns(QUANTILE(service, 0.38), MS(50));
    expect_at_least(QUANTILE(service, 0.5), SECONDS(2));
    expect_at_least(QUANTILE(first_byte, 0.5), SECONDS(2));
    ck_assert_uint_eq(world.result->response.count, 100);
}
END_TEST

START_TEST(nothing_that_is_in_flight_after_the_drain_was_good)
{
    make_world();
    load_world(LOAD_CLOSED, 0, SECONDS(2), 8);
    world.plan.timeout_ns = SECONDS(20);
    world.plan.drain_ns = MS(500);
    serve_law("hung");
    run_world();
    expect_ends(0, LOAD_END_UNANSWERED, 8);
    ck_assert_uint_eq(world.result->in_flight, 0);
    ck_assert_uint_eq(load_result_replies(world.result), 0);
    expect_at_least(QUANTILE(service, 0.5), MS(2499));
}
END_TEST

/* Timeout and end of the drain come at the same time: sent at 1 ms, timeout 100 ms, end 50 + 51
 * ms. */
START_TEST(a_timeout_at_the_end_of_the_drain_is_a_timeout)
{
    make_world();
    load_world(LOAD_CLOSED, 0, MS(50), 1);
    world.plan.timeout_ns = MS(100);
    world.plan.drain_ns = MS(51);
    serve_law("hung");
    run_world();
    expect_ends(0, LOAD_END_TIMED_OUT, 1);
}
END_TEST

/* Five rounds of 300 ms; the last one ends 100 ms after the load. */
START_TEST(the_rate_is_of_what_came_within_the_time)
{
    make_world();
    load_world(LOAD_CLOSED, 0, MS(1400), 10);
    serve_law("fixed:300");
    run_world();
    expect_all_ok(50);
    ck_assert_uint_eq(world.result->elapsed_ns, MS(1400));
    ck_assert_uint_eq(world.result->drained, 10);
    ck_assert_uint_eq(world.result->drain_ns, MS(101));
    ck_assert_uint_eq(load_result_in_time(world.result), 40);
    ck_assert_double_eq_tol(load_result_rate(world.result), 40 / 1.4, 1e-9);
}
END_TEST

START_TEST(a_text_that_is_no_law_is_refused)
{
    static const char *const texts[] = {"",       "fix",     "fixed", "fixed:1,2",
                                        "hung:1", "storm:1", "md1:x"};
    struct known_law law;

    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert_msg(!known_law_parse(&law, texts[i]), "%s", texts[i]);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-known");
    TCase *t = tcase_create("known");

    tcase_set_timeout(t, 0);
    tcase_add_test(t, times_are_those_of_the_law);
    tcase_add_test(t, a_queue_has_the_mean_of_pollaczek_and_khinchine);
    tcase_add_test(t, what_a_capped_server_does_not_do_waits);
    tcase_add_test(t, a_stall_is_in_the_response_times);
    tcase_add_test(t, what_timed_out_is_at_least_its_timeout);
    tcase_add_loop_test(t, a_storm_of_refusals_improves_no_percentile, 0, 3);
    tcase_add_test(t, nothing_that_is_in_flight_after_the_drain_was_good);
    tcase_add_test(t, a_timeout_at_the_end_of_the_drain_is_a_timeout);
    tcase_add_test(t, the_rate_is_of_what_came_within_the_time);
    tcase_add_test(t, a_text_that_is_no_law_is_refused);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
