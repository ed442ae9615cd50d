/* SPDX-License-Identifier: MIT
 *
 * A worker whose server closes connections after "Connection: close": pipelined queries after that
 * are sent once more. And a client that stood still itself.
 */
#include "http-world.h"

#define LAST "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n!"

static void
last_reply(unsigned client, unsigned query)
{
    (void)query;
    answer(client, LAST);
}

START_TEST(what_was_sent_behind_connection_close_is_sent_again)
{
    make_world();
    world.plan.queries = 4;
    world.plan.depth = 2;
    world.serve = last_reply;
    run_world();

    expect_all_ok(4);
    ck_assert_uint_eq(world.result->offered, 4);
    ck_assert_uint_eq(world.result->sent, 4);
    ck_assert_uint_eq(world.result->resent, 3);
    ck_assert_uint_eq(world.result->reopened, 3);
    ck_assert_uint_eq(world.accepted, 4);
    ck_assert_uint_eq(world.result->bytes_sent, 7 * strlen(REQUEST));
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_DONE], 1);
}
END_TEST

/* ---- Arrivals ---- */

static void
last_in_1_ms(unsigned client, unsigned query)
{
    answer_in(client, MS(1), query == 0 ? LAST : OK);
}

START_TEST(it_still_counts_from_its_arrival)
{
    make_world();
    world.plan.model = LOAD_PARTLY_OPEN;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = US(1400);
    world.plan.rate = world.plan.rate_end = 2000;
    world.plan.depth = 2;
    world.serve = last_in_1_ms;
    run_world();

    /* Arrivals at 0, 0.5 and 1 ms; the second is sent again at 1 ms, and answered at 2 ms. */
    expect_all_ok(3);
    ck_assert_uint_eq(world.result->resent, 1);
    ck_assert_uint_eq(world.result->response.max_ns, US(1500));
    ck_assert_uint_eq(world.result->service.max_ns, MS(1));
}
END_TEST

static const uint64_t times_ns[] = {0, 0, 0};

START_TEST(an_entry_of_a_log_is_asked_for_again)
{
    make_world();
    world.plan.stop = LOAD_STOP_REPLAY;
    world.plan.model = LOAD_PARTLY_OPEN;
    world.plan.depth = 3;
    world.requests.number = 3;
    world.requests.times_ns = times_ns;
    world.serve = last_in_1_ms;
    run_world();

    expect_all_ok(3);
    ck_assert_uint_eq(world.asked, 5);
    ck_assert_uint_eq(world.sequences[2], 2);
    ck_assert_uint_eq(world.sequences[3], 1);
    ck_assert_uint_eq(world.sequences[4], 2);
}
END_TEST

/* ---- Queries that cannot be sent again ---- */

static int
two_only(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)query;
    return sequence < 2 ? 0 : -1;
}

START_TEST(the_source_may_have_no_more)
{
    make_world();
    world.plan.queries = 2;
    world.plan.depth = 2;
    world.next = two_only;
    world.serve = last_reply;
    run_world();

    expect_all_ok(1);
    ck_assert_uint_eq(world.result->offered, 2);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 1);
}
END_TEST

static void
last_reply_of_all(unsigned client, unsigned query)
{
    act_at((struct act){.at_ns = now_ns(), .what = LISTEN_ENDS});
    last_reply(client, query);
}

START_TEST(each_failed_reopening_costs_one_of_them)
{
    make_world();
    world.plan.queries = 5;
    world.plan.depth = 3;
    world.serve = last_reply_of_all;
    run_world();

    expect_all_ok(1);
    ck_assert_uint_eq(world.result->offered, 5);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_NOT_OPENED], 4);
    ck_assert_uint_eq(world.result->not_reopened, 4);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_DONE], 1);
}
END_TEST

static void
stop_now(unsigned client, unsigned query)
{
    if (query == 0)
        tell_at(0, LOAD_MESSAGE_STOP);
    answer_in(client, MS(1), LAST);
}

START_TEST(in_the_drain_nothing_is_sent_again)
{
    make_world();
    world.plan.queries = 5;
    world.plan.depth = 2;
    world.serve = stop_now;
    run_world();

    expect_all_ok(1);
    ck_assert_uint_eq(world.result->offered, 2);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 1);
}
END_TEST

/* ---- Requests that ask for the close (RFC 9112, 9.6) ---- */

static int
all_are_last(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    query->is_last = true;
    return 0;
}

static void
one_a_connection(unsigned client, unsigned query)
{
    ck_assert_uint_eq(client, query);
    answer_in(client, MS(1), OK);
}

START_TEST(after_a_last_query_its_connection_has_no_other)
{
    make_world();
    world.plan.queries = 4;
    world.plan.depth = 3;
    world.next = all_are_last;
    world.serve = one_a_connection;
    if (_i == 1) {
        world.plan.model = LOAD_PARTLY_OPEN;
        world.plan.stop = LOAD_STOP_TOTAL;
        world.plan.requests_max = 4;
        world.plan.rate = world.plan.rate_end = 2000;
    }
    run_world();

    expect_all_ok(4);
    ck_assert_uint_eq(world.accepted, 4);
    ck_assert_uint_eq(world.result->resent, 0);
    ck_assert_uint_eq(world.result->bytes_sent, 4 * strlen(REQUEST));
}
END_TEST

static uint64_t held_for_ns;

/* The third is held until it is due, for 1 ms or until after the close. Queries without a reply are
 * sent again, the first of them as a last one. */
static int
last_when_sent_again(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    query->delay_ns = sequence == 2 ? held_for_ns : 0;
    query->is_last = sequence == 3;
    return 0;
}

static void
first_reply_is_the_last(unsigned client, unsigned query)
{
    answer_in(client, MS(2), query == 0 ? LAST : OK);
}

START_TEST(a_held_query_waits_for_the_connection_after_a_last_one)
{
    static const uint64_t held_ms[] = {1, 3};

    make_world();
    held_for_ns = MS(held_ms[_i]);
    world.plan.queries = 3;
    world.plan.depth = 3;
    world.next = last_when_sent_again;
    world.serve = first_reply_is_the_last;
    run_world();

    expect_all_ok(3);
    ck_assert_uint_eq(world.result->resent, _i == 0 ? 2 : 1);
    ck_assert_uint_eq(world.accepted, 3);
}
END_TEST

/* ---- A client that stood still ---- */

static void
sleep_for_4_s(unsigned client, unsigned query)
{
    if (query == 0)
        fake_time_advance(SECONDS(4));
    answer(client, OK);
}

START_TEST(a_client_that_stood_still_knows_it)
{
    make_world();
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = SECONDS(5);
    world.plan.think_ns = MS(700);
    world.serve = sleep_for_4_s;
    run_world();

    ck_assert_uint_ge(world.result->loop_lag.max_ns, MS(3900));
    ck_assert_uint_le(world.result->loop_lag.max_ns, MS(4000));
    /* The pause counts once: neither the turn nor the queries that are late by it count again. */
    ck_assert_uint_le(world.result->loop_lag.sum_ns, MS(4010));
}
END_TEST

START_TEST(without_a_socket_a_run_ends_at_once)
{
    make_world();
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = SECONDS(10);
    world.plan.unix_path = "@http-world-nobody";
    run_world();

    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_REFUSED], 1);
    ck_assert_uint_le(world.ended_ns, world.started_ns + MS(1));
    ck_assert_uint_eq(world.result->offered, 0);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-worker-again");
    TCase *again = tcase_create("again");
    TCase *still = tcase_create("still");

    tcase_add_test(again, what_was_sent_behind_connection_close_is_sent_again);
    tcase_add_test(again, it_still_counts_from_its_arrival);
    tcase_add_test(again, an_entry_of_a_log_is_asked_for_again);
    tcase_add_test(again, the_source_may_have_no_more);
    tcase_add_test(again, each_failed_reopening_costs_one_of_them);
    tcase_add_test(again, in_the_drain_nothing_is_sent_again);
    tcase_add_loop_test(again, after_a_last_query_its_connection_has_no_other, 0, 2);
    tcase_add_loop_test(again, a_held_query_waits_for_the_connection_after_a_last_one, 0, 2);
    suite_add_tcase(suite, again);
    tcase_add_test(still, a_client_that_stood_still_knows_it);
    tcase_add_test(still, without_a_socket_a_run_ends_at_once);
    suite_add_tcase(suite, still);
    return sxe_test_main(suite);
}
