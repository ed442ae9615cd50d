/* SPDX-License-Identifier: MIT
 *
 * The counts of each stage of a load, in virtual time: exact for fixed arrivals, and near the area
 * under the rate for random ones.
 */
#include "known-world.h"

#define STAGE(nth) (&world.result->by_stage[nth])

static void
add_stage(uint64_t ns, double rate)
{
    struct load_plan *plan = &world.plan;

    plan->duration_ns = load_plan_stage_ns(plan, plan->stages_number) + ns;
    plan->rate_end = rate;
    plan->stages[plan->stages_number++] = (struct load_stage){plan->duration_ns, rate};
}

static void
make_staged_world(enum load_arrivals arrivals, const char *law)
{
    make_world();
    load_world(LOAD_PARTLY_OPEN, 0, 0, 64);
    world.plan.arrivals = arrivals;
    serve_law(law);
}

static void
expect_stage(unsigned nth, uint64_t offered, uint64_t sent, uint64_t ok, uint64_t in_time)
{
    ck_assert_uint_eq(STAGE(nth)->offered, offered);
    ck_assert_uint_eq(STAGE(nth)->sent, sent);
    ck_assert_uint_eq(STAGE(nth)->ok, ok);
    ck_assert_uint_eq(STAGE(nth)->in_time, in_time);
    ck_assert_uint_eq(STAGE(nth)->response.count, ok + STAGE(nth)->errors);
}

/* The sums of the stages must be the figures of the run. */
static void
expect_sums(void)
{
    uint64_t offered = 0, sent = 0, ok = 0, errors = 0, in_time = 0, replies = 0;

    for (unsigned i = 0; i < world.result->stages; i++) {
        offered += STAGE(i)->offered;
        sent += STAGE(i)->sent;
        ok += STAGE(i)->ok;
        errors += STAGE(i)->errors;
        in_time += STAGE(i)->in_time;
        replies += STAGE(i)->response.count;
    }
    ck_assert_uint_eq(offered, world.result->offered);
    ck_assert_uint_eq(sent, world.result->sent);
    ck_assert_uint_eq(ok, world.result->ends[LOAD_END_OK]);
    ck_assert_uint_eq(errors, load_result_errors(world.result));
    ck_assert_uint_eq(in_time, load_result_in_time(world.result));
    ck_assert_uint_eq(replies, world.result->response.count);
}

/* Stages: idle, a rise, a level, a step, a level, idle, a fall to 0. */
START_TEST(each_stage_has_what_its_rate_says)
{
    make_staged_world(LOAD_FIXED, "fixed:0.25");
    add_stage(SECONDS(1), 0);
    add_stage(SECONDS(2), 400);
    add_stage(SECONDS(1), 400);
    add_stage(0, 100);
    add_stage(SECONDS(1), 100);
    add_stage(0, 0);
    add_stage(SECONDS(1), 0);
    add_stage(0, 200);
    add_stage(SECONDS(1), 0);
    run_world();

    ck_assert_uint_eq(world.result->stages, 9);
    expect_stage(0, 0, 0, 0, 0);
    expect_stage(1, 400, 400, 400, 400);
    expect_stage(2, 400, 400, 400, 400);
    expect_stage(3, 0, 0, 0, 0);
    expect_stage(4, 100, 100, 100, 100);
    expect_stage(6, 0, 0, 0, 0);
    expect_stage(8, 100, 100, 100, 100);
    expect_sums();
    ck_assert_uint_eq(world.result->elapsed_ns, SECONDS(7));
    ck_assert_uint_ge(world.arrived_ns[0], SECONDS(1));
}
END_TEST

/* The mean is the area under the rate, the standard deviation its square root. */
START_TEST(random_arrivals_are_those_of_the_area)
{
    make_staged_world(LOAD_POISSON, "fixed:0.25");
    world.plan.seed = (uint64_t)_i + 1;
    add_stage(SECONDS(4), 500);
    add_stage(SECONDS(2), 500);
    add_stage(SECONDS(1), 0);
    run_world();

    ck_assert_double_eq_tol((double)STAGE(0)->offered, 1000, 4 * sqrt(1000));
    ck_assert_double_eq_tol((double)STAGE(1)->offered, 1000, 4 * sqrt(1000));
    ck_assert_double_eq_tol((double)STAGE(2)->offered, 250, 4 * sqrt(250));
    expect_sums();
}
END_TEST

/* A server of 200/s: 400 queries arrive in the second second; 200 of them are answered in it, the
 * others in the idle seconds after it. Each counts in the stage of its arrival. The longest
 * response time is a second. */
START_TEST(a_query_is_of_the_stage_in_which_it_arrived)
{
    make_staged_world(LOAD_FIXED, "capped:200");
    add_stage(0, 100);
    add_stage(SECONDS(1), 100);
    add_stage(0, 400);
    add_stage(SECONDS(1), 400);
    add_stage(0, 0);
    add_stage(SECONDS(2), 0);
    run_world();

    ck_assert_uint_eq(STAGE(1)->in_time, 100);
    ck_assert_uint_eq(STAGE(3)->offered, 400);
    ck_assert_uint_eq(STAGE(3)->ok, 400);
    ck_assert_uint_le(STAGE(3)->in_time, 201);
    ck_assert_uint_ge(STAGE(3)->in_time, 199);
    ck_assert_uint_eq(STAGE(5)->offered, 0);
    ck_assert_uint_eq(STAGE(5)->in_time, 400 - STAGE(3)->in_time);
    ck_assert_uint_le(STAGE(1)->response.max_ns, MS(11));
    ck_assert_uint_ge(STAGE(3)->response.max_ns, MS(990));
    expect_sums();
}
END_TEST

/* After the first 64 queries no connection is free. Queries that wait are offered in their stages,
 * also those that are skipped in bulk. */
START_TEST(what_is_never_sent_is_offered_in_its_stage)
{
    make_staged_world(LOAD_FIXED, "hung");
    world.plan.timeout_ns = SECONDS(100);
    world.plan.drain_ns = MS(10);
    add_stage(0, _i == 0 ? 1000 : 1000000);
    add_stage(SECONDS(1), _i == 0 ? 1000 : 1000000);
    add_stage(0, 0);
    add_stage(SECONDS(1), 0);
    add_stage(0, 500);
    add_stage(SECONDS(1), 500);
    run_world();

    expect_stage(1, _i == 0 ? 1000 : 1000000, 64, 0, 0);
    expect_stage(3, 0, 0, 0, 0);
    expect_stage(5, 500, 0, 0, 0);
    ck_assert_uint_eq(STAGE(1)->errors, 64);
    ck_assert_uint_eq(STAGE(1)->response.censored, 64);
    expect_sums();
}
END_TEST

START_TEST(what_is_counted_at_the_end_is_in_its_stage)
{
    make_staged_world(LOAD_FIXED, "hung");
    world.plan.timeout_ns = SECONDS(100);
    world.plan.drain_ns = MS(10);
    add_stage(0, 1e7);
    add_stage(SECONDS(1), 1e7);
    add_stage(MS(10), 1e7);
    run_world();

    expect_stage(1, 10000000, 64, 0, 0);
    expect_stage(2, 100000, 0, 0, 0);
    expect_sums();
}
END_TEST

static void
stop_early(void)
{
    tell_at(MS(1500), LOAD_MESSAGE_STOP);
}

START_TEST(an_interrupted_load_has_the_stages_up_to_there)
{
    make_staged_world(LOAD_FIXED, "fixed:0.25");
    on_go = stop_early;
    add_stage(0, 100);
    add_stage(SECONDS(1), 100);
    add_stage(SECONDS(1), 100);
    add_stage(SECONDS(1), 100);
    run_world();

    expect_stage(1, 100, 100, 100, 100);
    expect_stage(3, 0, 0, 0, 0);
    ck_assert_uint_le(STAGE(2)->offered, 51);
    expect_sums();
}
END_TEST

/* A query that is sent again must be subtracted before it is counted a second time. */
static void
close_after(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, MS(700),
              "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
}

START_TEST(one_that_is_sent_again_stays_in_its_stage)
{
    make_staged_world(LOAD_FIXED, "fixed:0.25");
    world.plan.sockets = 1;
    world.plan.depth = 2;
    world.serve = close_after;
    add_stage(0, 2);
    add_stage(SECONDS(1), 2);
    add_stage(0, 0);
    add_stage(SECONDS(1), 0);
    run_world();

    ck_assert_uint_eq(world.result->resent, 1);
    expect_stage(1, 2, 2, 2, 1);
    expect_stage(3, 0, 0, 0, 1);
    expect_sums();
}
END_TEST

/* A script delays each query by 600 ms; its stage is that of its arrival, before the delay. */
static int
held(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    *query = (struct load_query){.bytes = REQUEST, .length = sizeof(REQUEST) - 1};
    query->delay_ns = MS(600);
    return 0;
}

START_TEST(one_that_is_held_stays_in_its_stage)
{
    make_staged_world(LOAD_FIXED, "fixed:0.25");
    world.next = held;
    add_stage(0, 4);
    add_stage(SECONDS(1), 4);
    add_stage(0, 0);
    add_stage(SECONDS(1), 0);
    run_world();

    /* Arrivals at 0, 250, 500 and 750 ms, sent 600 ms later. */
    expect_stage(1, 4, 4, 4, 2);
    expect_stage(3, 0, 0, 0, 2);
    expect_sums();
}
END_TEST

/* Each of three workers has a third of each stage. */
START_TEST(workers_share_each_stage)
{
    uint64_t offered[2] = {0};

    for (unsigned shard = 0; shard < 3; shard++) {
        make_staged_world(LOAD_FIXED, "fixed:0.25");
        world.shard = shard;
        world.shards = 3;
        add_stage(0, 100);
        add_stage(SECONDS(1), 100);
        add_stage(SECONDS(1), 0);
        run_world();
        expect_sums();
        ck_assert_uint_le(STAGE(1)->offered, 34);
        ck_assert_uint_ge(STAGE(1)->offered, 33);
        offered[0] += STAGE(1)->offered;
        offered[1] += STAGE(2)->offered;
    }
    ck_assert_uint_eq(offered[0], 100);
    ck_assert_uint_eq(offered[1], 50);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-worker-stage");
    TCase *tcase = tcase_create("stages");

    tcase_add_test(tcase, each_stage_has_what_its_rate_says);
    tcase_add_loop_test(tcase, random_arrivals_are_those_of_the_area, 0, 5);
    tcase_add_test(tcase, a_query_is_of_the_stage_in_which_it_arrived);
    tcase_add_loop_test(tcase, what_is_never_sent_is_offered_in_its_stage, 0, 2);
    tcase_add_test(tcase, what_is_counted_at_the_end_is_in_its_stage);
    tcase_add_test(tcase, an_interrupted_load_has_the_stages_up_to_there);
    tcase_add_test(tcase, one_that_is_sent_again_stays_in_its_stage);
    tcase_add_test(tcase, one_that_is_held_stays_in_its_stage);
    tcase_add_test(tcase, workers_share_each_stage);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
