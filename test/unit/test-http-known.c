/* SPDX-License-Identifier: MIT
 *
 * What a worker says of servers whose behaviour is known, in virtual time: the figures are those of
 * theory.
 */
#include "known-world.h"

#define QUANTILE(times, fraction) http_histogram_quantile(&world.result->times, fraction)

/* A bucket is at most 1/1,024 of its value wide, and times are rounded up to whole us. */
static void
expect_ns(uint64_t ns, uint64_t expected_ns)
{
    ck_assert_uint_ge(ns + ns / 1024 + 1000, expected_ns);
    ck_assert_uint_le(ns, expected_ns + expected_ns / 512 + 1000);
}

/* Of 2,000 replies, the law's quantiles; at the edge of a part one reply may be on either side. */
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

/* M/D/1 at 70 % of what it can do: 2.17 times as long as one reply takes. */
START_TEST(a_queue_has_the_mean_of_pollaczek_and_khinchine)
{
    double expected_ns;

    make_world();
    load_world(HTTP_PARTLY_OPEN, 700, SECONDS(30), 64);
    world.plan.arrivals = HTTP_POISSON;
    world.plan.seed = 1;
    serve_law("md1:1000");
    run_world();
    expected_ns = known_md1_mean_ns(&served, 700);
    ck_assert_double_eq_tol(http_histogram_mean_ns(&world.result->response), expected_ns,
                            expected_ns * 0.05);
    ck_assert_uint_eq(http_result_errors(world.result), 0);
}
END_TEST

/* 400/s against 200/s: the last one sent arrived at 5.16 s, as the 2,064th, and is answered at 10.32. */
START_TEST(what_a_capped_server_does_not_do_waits)
{
    make_world();
    load_world(HTTP_PARTLY_OPEN, 400, SECONDS(10), 64);
    serve_law("capped:200");
    run_world();
    ck_assert_uint_ge(world.result->ends[HTTP_END_OK], 2000);
    ck_assert_uint_le(world.result->ends[HTTP_END_OK], 2200);
    expect_ns(world.result->response.max_ns, SECONDS(5) + MS(160));
}
END_TEST

/* 1 of 4 s: queries that arrive in it wait from 1 s down to nothing. */
START_TEST(a_stall_is_in_the_response_times)
{
    make_world();
    load_world(HTTP_PARTLY_OPEN, 1000, SECONDS(4), 8);
    serve_law("stalled:1000,1000");
    run_world();
    ck_assert_uint_eq(world.result->ends[HTTP_END_OK], 4000);
    expect_ns(world.result->response.max_ns, SECONDS(1));
    expect_ns(QUANTILE(response, 0.9), MS(600));
    expect_ns(QUANTILE(response, 0.7), 0);
    expect_ns(QUANTILE(service, 0.99), 0);
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
    tcase_add_test(t, a_text_that_is_no_law_is_refused);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
