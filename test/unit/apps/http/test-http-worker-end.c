/* SPDX-License-Identifier: MIT
 *
 * The end of a worker's run: the time of a run of so many queries, a server that is gone or silent,
 * and a client that was stopped.
 */
#include "http-world.h"

/* ---- The time of a run of so many queries ---- */

static void
good_then_silent(unsigned client, unsigned query)
{
    if (query < 5)
        answer_in(client, MS(20), OK);
}

START_TEST(an_outage_at_the_end_is_in_the_time)
{
    make_world();
    if (_i == 1) {
        world.plan.stop = LOAD_STOP_TOTAL;
        world.plan.requests_max = 7;
    }
    world.plan.queries = 7;
    world.serve = good_then_silent;
    run_world();

    expect_ends(5, LOAD_END_TIMED_OUT, 2);
    ck_assert_uint_ge(world.result->elapsed_ns, MS(100) + 2 * SECONDS(5));
    ck_assert_uint_le(world.result->elapsed_ns, MS(102) + 2 * SECONDS(5));
    ck_assert_uint_eq(world.result->drain_ns, 0);
}
END_TEST

static void
good_then_reset(unsigned client, unsigned query)
{
    if (query < 5)
        answer_in(client, MS(20), OK);
    else
        reset_in(client, MS(300));
}

START_TEST(so_are_resets)
{
    make_world();
    listen_tcp();
    world.plan.queries = 6;
    world.serve = good_then_reset;
    run_world();
    expect_ends(5, LOAD_END_RESET, 1);
    ck_assert_uint_ge(world.result->elapsed_ns, MS(400));
}
END_TEST

static void
answer_and_go(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, MS(20), OK);
    act_at((struct act){.at_ns = now_ns() + MS(20), .what = LISTEN_ENDS});
    hang_up_in(client, MS(20));
}

START_TEST(so_is_the_time_in_which_it_could_not_connect)
{
    make_world();
    world.plan.queries = 11;
    world.serve = answer_and_go;
    run_world();

    /* Nine or ten queries are skipped, each after 100 ms, except the first. */
    ck_assert_uint_ge(world.result->skipped[LOAD_SKIP_NOT_OPENED], 9);
    ck_assert_uint_ge(world.result->elapsed_ns, MS(820));
}
END_TEST

/* ---- A silent server ---- */

START_TEST(each_query_to_a_silent_server_times_out)
{
    make_world();
    world.plan.sockets = 3;
    if (_i == 0) {
        world.plan.queries = 10;
    } else {
        world.plan.stop = LOAD_STOP_TOTAL;
        world.plan.requests_max = 30;
    }
    world.serve = never;
    run_world();

    expect_ends(0, LOAD_END_TIMED_OUT, 30);
    ck_assert_uint_eq(world.result->offered, 30);
    ck_assert_uint_eq(load_result_skipped(world.result), 0);
    /* Each connection waits for 100 ms before it connects again. */
    ck_assert_uint_ge(world.result->elapsed_ns, 10 * SECONDS(5) + 9 * MS(100));
    ck_assert_uint_le(world.result->elapsed_ns, 10 * SECONDS(5) + 9 * MS(102));
}
END_TEST

START_TEST(however_short_the_timeout_is)
{
    make_world();
    world.plan.queries = 20;
    world.plan.timeout_ns = MS(1);
    world.serve = never;
    run_world();
    expect_ends(0, LOAD_END_TIMED_OUT, 20);
}
END_TEST

/* ---- A server that is gone ---- */

static void
answer_once_and_go(unsigned client, unsigned query)
{
    (void)query;
    answer(client, OK);
    act_at((struct act){.at_ns = now_ns(), .what = LISTEN_ENDS});
    hang_up_in(client, 0);
}

START_TEST(a_server_that_is_gone_ends_the_run_and_is_said)
{
    make_world();
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 10;
    world.serve = answer_once_and_go;
    run_world();

    expect_ends(1, LOAD_END_CLOSED_EARLY, 1);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_GONE], 8);
    ck_assert_uint_eq(load_result_skipped(world.result), 8);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_LOST], 1);
    /* The time in which the worker tried to connect counts. */
    ck_assert_uint_ge(world.result->elapsed_ns, 2 * SECONDS(5));
}
END_TEST

START_TEST(so_do_the_queries_of_each_socket)
{
    make_world();
    world.plan.queries = 1000;
    world.serve = answer_once_and_go;
    run_world();

    ck_assert_uint_eq(world.result->offered, 1000);
    ck_assert_uint_gt(world.result->skipped[LOAD_SKIP_NOT_OPENED], 90);
    ck_assert_uint_gt(world.result->skipped[LOAD_SKIP_GONE], 800);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 0);
}
END_TEST

START_TEST(what_had_arrived_for_it_is_of_those)
{
    make_world();
    world.plan.model = LOAD_PARTLY_OPEN;
    world.plan.rate = world.plan.rate_end = 1;
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 4;
    world.serve = answer_once_and_go;
    run_world();

    ck_assert_uint_eq(world.result->offered, 4);
    ck_assert_uint_eq(world.result->ends[LOAD_END_OK], 1);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_GONE], 3);
}
END_TEST

/* ---- A client that was stopped ---- */

/* The worker is stopped while it waits; SIGCONT ends the wait without any event. */
static void
be_stopped(void)
{
    fake_time_advance(SECONDS(1));
    world.is_continued = true;
}

static void
be_stopped_three_times(void)
{
    for (unsigned i = 0; i < 3; i++)
        call_at(SECONDS(3 * i) + MS(1005), be_stopped);
}

START_TEST(a_stop_while_it_waits_is_seen)
{
    make_world();
    world.plan.model = _i == 0 ? LOAD_CLOSED : LOAD_PARTLY_OPEN;
    world.plan.rate = world.plan.rate_end = _i == 1 ? 100 : 1;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = SECONDS(9);
    world.plan.think_ns = _i == 0 ? SECONDS(1) : 0;
    on_go = be_stopped_three_times;
    run_world();

    /* Something was due within 100 ms after the beginning of each stop. */
    ck_assert_uint_ge(world.result->loop_lag.sum_ns, 3 * MS(900));
    ck_assert_uint_le(world.result->loop_lag.sum_ns, 3 * MS(1010));
    ck_assert_uint_le(world.result->loop_lag.max_ns, MS(1000));
}
END_TEST

static void
go_a_second_late(void)
{
    world.go_ns = 0 - SECONDS(1);
    go();
}

START_TEST(a_beginning_that_comes_late_is_a_standstill)
{
    make_world();
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = SECONDS(5);
    world.plan.think_ns = MS(100);
    world.holds_go = true;
    on_go = go_a_second_late;
    run_world();
    ck_assert_uint_ge(world.result->loop_lag.max_ns, SECONDS(1));
    ck_assert_uint_le(world.result->loop_lag.sum_ns, MS(1010));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-end");
    TCase *t = tcase_create("time");

    tcase_add_loop_test(t, an_outage_at_the_end_is_in_the_time, 0, 2);
    tcase_add_test(t, so_are_resets);
    tcase_add_test(t, so_is_the_time_in_which_it_could_not_connect);
    suite_add_tcase(s, t);
    t = tcase_create("silence");
    tcase_add_loop_test(t, each_query_to_a_silent_server_times_out, 0, 2);
    tcase_add_test(t, however_short_the_timeout_is);
    suite_add_tcase(s, t);
    t = tcase_create("gone");
    tcase_add_test(t, a_server_that_is_gone_ends_the_run_and_is_said);
    tcase_add_test(t, so_do_the_queries_of_each_socket);
    tcase_add_test(t, what_had_arrived_for_it_is_of_those);
    suite_add_tcase(s, t);
    t = tcase_create("still");
    tcase_add_loop_test(t, a_stop_while_it_waits_is_seen, 0, 3);
    tcase_add_test(t, a_beginning_that_comes_late_is_a_standstill);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
