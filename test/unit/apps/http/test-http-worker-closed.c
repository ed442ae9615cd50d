/* SPDX-License-Identifier: MIT
 *
 * The closed loop of a worker: when each query is sent, and the figures about it.
 */
#include "http-world.h"

START_TEST(each_socket_has_its_queries_one_after_the_other)
{
    make_world();
    world.plan.sockets = 3;
    world.plan.queries = 4;
    world.serve = in_20_ms;
    run_world();

    ck_assert_int_eq(world.error, 0);
    ck_assert_uint_eq(world.ready, 1);
    ck_assert_uint_eq(world.done, 1);
    ck_assert_uint_eq(world.accepted, 3);
    ck_assert_uint_eq(world.result->opened, 3);
    ck_assert_uint_eq(world.result->offered, 12);
    ck_assert_uint_eq(world.result->sent, 12);
    expect_all_ok(12);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_DONE], 3);
    ck_assert_uint_eq(world.result->bytes_sent, 12 * strlen(REQUEST));
    ck_assert_uint_eq(world.result->bytes_received, 12 * strlen(OK));
    ck_assert_uint_eq(world.result->script_calls, 7);
    ck_assert_uint_eq(world.result->script_ns, 700);
}
END_TEST

START_TEST(times_are_exact)
{
    make_world();
    world.plan.queries = 4;
    world.serve = in_20_ms;
    run_world();

    ck_assert_uint_eq(world.result->started_ns, world.started_ns);
    ck_assert_uint_eq(world.result->service.count, 4);
    ck_assert_uint_eq(world.result->service.min_ns, MS(20));
    ck_assert_uint_eq(world.result->service.max_ns, MS(20));
    ck_assert_uint_eq(world.result->response.sum_ns, MS(80));
    ck_assert_uint_eq(world.result->first_byte.sum_ns, MS(80));
    ck_assert_uint_eq(world.result->by_kind[0].ok, 4);
    ck_assert_uint_eq(world.result->by_kind[0].response.sum_ns, MS(80));
    ck_assert_uint_eq(world.result->clients, 1);
    ck_assert_uint_eq(world.result->by_client[0].count, 4);
    ck_assert_uint_eq(world.result->by_client[0].min_ns, MS(20));
    ck_assert_uint_eq(world.result->late, 0);
    ck_assert_uint_eq(world.result->schedule_lag.count, 0);
    /* The first 1 ms was the timer of the first batch. */
    ck_assert_uint_eq(world.result->elapsed_ns, MS(81));
}
END_TEST

START_TEST(a_few_sockets_have_times_of_their_own_a_kind)
{
    make_world();
    world.plan.sockets = 129;
    run_world();
    ck_assert_uint_eq(world.result->clients, 0);
}
END_TEST

static int
two_kinds(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    query->kind = (uint16_t)(sequence % 2);
    return 0;
}

static void
slower_each_time(unsigned client, unsigned query)
{
    answer_in(client, MS(10 + query),
              query == 3 ? "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n" : OK);
}

START_TEST(figures_are_kept_a_kind_and_a_client)
{
    const struct load_client_result *client;

    make_world();
    world.plan.queries = 4;
    world.next = two_kinds;
    world.serve = slower_each_time;
    run_world();

    ck_assert_uint_eq(world.result->by_kind[0].ok, 2);
    ck_assert_uint_eq(world.result->by_kind[1].ok, 1);
    ck_assert_uint_eq(world.result->by_kind[1].errors, 1);
    ck_assert_uint_eq(world.result->by_kind[0].response.sum_ns, MS(10 + 12));
    /* A failed query has only a lower bound; a client's figures have no bounds. */
    ck_assert_uint_eq(world.result->by_kind[1].response.count, 2);
    ck_assert_uint_eq(world.result->by_kind[1].response.censored, 1);
    client = &world.result->by_client[1];
    ck_assert_uint_eq(client->count, 1);
    ck_assert_uint_eq(client->min_ns, MS(11));
    ck_assert_uint_eq(client->max_ns, MS(11));
    ck_assert_uint_eq(client->sum_ns, MS(11));
    ck_assert_uint_eq(world.result->first_bad_status, 404);
    expect_ends(3, LOAD_END_BAD_STATUS, 1);
}
END_TEST

START_TEST(of_one_kind_the_times_are_those_of_all)
{
    make_world();
    world.requests.kinds = 1;
    world.serve = in_20_ms;
    run_world();
    ck_assert_uint_eq(world.result->by_kind[0].response.sum_ns, MS(20));
    ck_assert_uint_eq(world.result->by_kind[0].response.count, 1);
}
END_TEST

START_TEST(the_first_queries_go_out_in_batches)
{
    make_world();
    world.plan.sockets = 100;
    world.plan.ramp = 100;
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 130;
    world.serve = in_20_ms;
    run_world();
    expect_all_ok(130);
    for (unsigned i = 0; i < 130; i++)
        ck_assert_uint_eq(world.sequences[i], i);
}
END_TEST

/* With three in flight on a socket, all requests come in one read, and all replies in one write. */
static void
three_at_once(unsigned client, unsigned query)
{
    if (query % 3 == 2)
        answer_in(client, MS(30), OK OK OK);
}

START_TEST(a_pipeline_is_as_deep_as_asked_and_each_query_has_a_clock)
{
    make_world();
    world.plan.depth = 3;
    world.plan.queries = 9;
    world.serve = three_at_once;
    run_world();

    expect_all_ok(9);
    ck_assert_uint_eq(world.result->service.count, 9);
    ck_assert_uint_eq(world.result->service.sum_ns, 9 * MS(30));
    for (unsigned i = 1; i < 9; i++)
        ck_assert_uint_eq(world.arrived_ns[i], world.arrived_ns[i / 3 * 3]);
}
END_TEST

/* Replies come one by one, so the pipeline is filled one by one. */
static void
one_by_one(unsigned client, unsigned query)
{
    answer_in(client, MS(10 * (query < 3 ? query + 1 : 3)), OK);
}

START_TEST(each_reply_is_followed_by_the_next_query)
{
    make_world();
    world.plan.depth = 3;
    world.plan.queries = 5;
    world.serve = one_by_one;
    run_world();

    expect_all_ok(5);
    ck_assert_uint_eq(world.arrived_ns[3] - world.arrived_ns[2], MS(10));
    ck_assert_uint_eq(world.arrived_ns[4] - world.arrived_ns[3], MS(10));
}
END_TEST

START_TEST(a_socket_thinks_between_its_queries)
{
    make_world();
    world.plan.queries = 4;
    world.plan.think_ns = MS(300);
    world.serve = in_20_ms;
    run_world();

    expect_all_ok(4);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_uint_eq(world.arrived_ns[i] - world.arrived_ns[i - 1], MS(320));
    ck_assert_uint_eq(world.result->response.max_ns, MS(20));
}
END_TEST

START_TEST(each_place_in_a_pipeline_thinks)
{
    make_world();
    world.plan.depth = 2;
    world.plan.queries = 6;
    world.plan.think_ns = MS(100);
    world.serve = in_20_ms;
    run_world();

    expect_all_ok(6);
    ck_assert_uint_eq(world.arrived_ns[5] - world.arrived_ns[0], MS(240));
}
END_TEST

/* ---- Stop rules ---- */

START_TEST(a_total_is_shared_exactly)
{
    uint64_t sent = 0;

    for (world.shard = 0; world.shard < 3; world.shard++) {
        unsigned shard = world.shard;

        make_world();
        world.shard = shard;
        world.shards = 3;
        world.plan.sockets = 8;
        world.plan.stop = LOAD_STOP_TOTAL;
        world.plan.requests_max = 100;
        run_world();
        ck_assert_uint_eq(world.result->sockets_wanted, shard < 2 ? 3 : 2);
        expect_all_ok(shard == 0 ? 34 : 33);
        sent += world.result->sent;
        for (unsigned i = 0; i < world.asked; i++)
            ck_assert_uint_eq(world.sequences[i], shard + 3 * i);
    }
    ck_assert_uint_eq(sent, 100);
}
END_TEST

START_TEST(a_share_of_nothing_is_done_at_once)
{
    make_world();
    world.shard = 1;
    world.shards = 2;
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 1;
    run_world();
    ck_assert_uint_eq(world.result->sockets_wanted, 0);
    ck_assert_uint_eq(world.result->offered, 0);
    ck_assert_uint_eq(world.done, 1);
}
END_TEST

START_TEST(time_is_over_to_the_moment)
{
    make_world();
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(105);
    world.plan.warmup_ns = MS(100);
    world.serve = in_20_ms;
    run_world();

    /* The first query is sent at 1 ms, the last one at 201 ms, and its reply is waited for. */
    expect_all_ok(11);
    ck_assert_uint_eq(world.result->elapsed_ns, MS(205));
    ck_assert_uint_eq(world.result->drain_ns, MS(16));
    ck_assert_uint_eq(world.result->drained, 1);
    ck_assert_uint_eq(world.result->in_flight, 0);
}
END_TEST

static void
mark_and_end(void)
{
    act_at((struct act){
        .at_ns = world.started_ns + MS(100),
        .what = TELL,
        .message = {.type = LOAD_MESSAGE_MARK, .u.end_ns = world.started_ns + MS(205)}});
}

/* The plan's end is the upper bound. */
START_TEST(a_mark_may_say_when_time_is_over)
{
    make_world();
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(105);
    world.plan.warmup_ns = SECONDS(10);
    world.serve = in_20_ms;
    on_go = mark_and_end;
    run_world();

    expect_all_ok(11);
    ck_assert_uint_eq(world.marked, 1);
    ck_assert_uint_eq(world.result->elapsed_ns, MS(205));
    ck_assert_uint_eq(load_result_in_time(world.result), 10);
}
END_TEST

START_TEST(what_is_not_answered_within_the_drain_has_failed)
{
    make_world();
    world.plan.sockets = 2;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(100);
    world.plan.drain_ns = MS(50);
    world.serve = never;
    run_world();

    ck_assert_uint_eq(world.result->sent, 2);
    expect_ends(0, LOAD_END_UNANSWERED, 2);
    ck_assert_uint_eq(world.result->in_flight, 0);
    ck_assert_uint_eq(world.result->service.censored, 2);
    ck_assert_uint_eq(world.result->service.censored_from_ns, MS(149));
    ck_assert_uint_eq(world.result->elapsed_ns, MS(100));
    ck_assert_uint_eq(world.result->drain_ns, 0);
}
END_TEST

START_TEST(the_source_may_end_the_run)
{
    make_world();
    world.plan.queries = 100;
    world.next = three_only;
    run_world();
    expect_all_ok(3);
    ck_assert_uint_eq(world.result->offered, 3);
    ck_assert_uint_eq(world.done, 1);
}
END_TEST

/* ---- Queries with a delay ---- */

static int
with_a_delay(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    static char bytes[100];

    (void)requests;
    /* The source may use its memory again at once. */
    memset(bytes, 'x', sizeof(bytes));
    snprintf(bytes, sizeof(bytes), "%s", sequence % 2 == 0 ? REQUEST : "GET /b HTTP/1.1\r\n\r\n");
    query->bytes = bytes;
    query->length = (unsigned)strlen(bytes);
    query->delay_ns = MS(sequence == 1 ? 0 : 250);
    return 0;
}

START_TEST(a_query_may_be_given_out_with_a_delay)
{
    make_world();
    world.plan.queries = 4;
    world.next = with_a_delay;
    world.serve = in_20_ms;
    run_world();

    expect_all_ok(4);
    ck_assert_uint_eq(world.arrived_ns[0], MS(251));
    ck_assert_uint_eq(world.arrived_ns[1], MS(271));
    ck_assert_uint_eq(world.arrived_ns[2], MS(541));
    ck_assert_uint_eq(world.arrived_ns[3], MS(811));
    ck_assert_uint_eq(world.result->response.max_ns, MS(20));
    ck_assert_uint_eq(world.result->bytes_sent,
                      2 * strlen(REQUEST) + 2 * strlen("GET /b HTTP/1.1\r\n\r\n"));
}
END_TEST

static int
without_memory(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    fake_os_fail(FAKE_REALLOC, 1, 0, ENOMEM);
    return with_a_delay(requests, sequence, query);
}

START_TEST(a_delay_without_memory_is_none)
{
    make_world();
    world.next = without_memory;
    run_world();
    expect_all_ok(1);
    ck_assert_uint_eq(world.arrived_ns[0], MS(1));
}
END_TEST

START_TEST(a_delayed_query_is_not_offered_when_the_time_is_over)
{
    make_world();
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(100);
    world.next = with_a_delay;
    run_world();
    ck_assert_uint_eq(world.result->offered, 0);
    ck_assert_uint_eq(world.result->elapsed_ns, MS(100));
}
END_TEST

static void
in_200_ms(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, MS(200), OK);
}

START_TEST(nor_is_it_while_others_are_waited_for)
{
    make_world();
    world.plan.sockets = 2;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(50);
    world.next = second_in_100_ms;
    world.serve = in_200_ms;
    run_world();
    expect_all_ok(1);
    ck_assert_uint_eq(world.result->offered, 1);
}
END_TEST

static int
slow_source(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    (void)query;
    fake_time_advance(MS(3));
    return 0;
}

START_TEST(the_time_that_the_source_takes_is_not_the_servers)
{
    make_world();
    world.plan.queries = 5;
    world.next = slow_source;
    world.serve = in_20_ms;
    run_world();
    expect_all_ok(5);
    ck_assert_uint_eq(world.result->service.max_ns, MS(20));
}
END_TEST

static int
slow_from_the_third_on(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    return sequence < 2 ? 0 : slow_source(requests, sequence, query);
}

static void
answer_both(void)
{
    for (unsigned client = 0; client < 2; client++)
        send_some(world.clients[client].fd, &(struct act){.text = OK, .length = strlen(OK)});
}

static void
first_two_together(unsigned client, unsigned query)
{
    if (query == 0)
        act_at((struct act){.at_ns = now_ns() + MS(20), .what = CALL, .call = answer_both});
    else if (query > 1)
        answer_in(client, MS(100), OK);
}

/* Both replies are read before the next query of either client is made, which takes long. */
START_TEST(replies_that_came_together_are_read_together)
{
    make_world();
    world.plan.sockets = 2;
    world.plan.queries = 2;
    world.next = slow_from_the_third_on;
    world.serve = first_two_together;
    run_world();
    expect_all_ok(4);
    for (unsigned client = 0; client < 2; client++)
        ck_assert_uint_eq(world.result->by_client[client * world.result->kinds].min_ns, MS(20));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-closed");
    TCase *t = tcase_create("queries");

    tcase_add_test(t, each_socket_has_its_queries_one_after_the_other);
    tcase_add_test(t, times_are_exact);
    tcase_add_test(t, a_few_sockets_have_times_of_their_own_a_kind);
    tcase_add_test(t, figures_are_kept_a_kind_and_a_client);
    tcase_add_test(t, of_one_kind_the_times_are_those_of_all);
    tcase_add_test(t, the_first_queries_go_out_in_batches);
    tcase_add_test(t, a_pipeline_is_as_deep_as_asked_and_each_query_has_a_clock);
    tcase_add_test(t, each_reply_is_followed_by_the_next_query);
    tcase_add_test(t, a_socket_thinks_between_its_queries);
    tcase_add_test(t, each_place_in_a_pipeline_thinks);
    suite_add_tcase(s, t);
    t = tcase_create("the end");
    tcase_add_test(t, a_total_is_shared_exactly);
    tcase_add_test(t, a_share_of_nothing_is_done_at_once);
    tcase_add_test(t, time_is_over_to_the_moment);
    tcase_add_test(t, a_mark_may_say_when_time_is_over);
    tcase_add_test(t, what_is_not_answered_within_the_drain_has_failed);
    tcase_add_test(t, the_source_may_end_the_run);
    suite_add_tcase(s, t);
    t = tcase_create("delays");
    tcase_add_test(t, a_query_may_be_given_out_with_a_delay);
    tcase_add_test(t, a_delay_without_memory_is_none);
    tcase_add_test(t, a_delayed_query_is_not_offered_when_the_time_is_over);
    tcase_add_test(t, nor_is_it_while_others_are_waited_for);
    tcase_add_test(t, the_time_that_the_source_takes_is_not_the_servers);
    tcase_add_test(t, replies_that_came_together_are_read_together);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
