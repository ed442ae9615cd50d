/* SPDX-License-Identifier: MIT
 *
 * Servers that close, reset, fall silent or send nonsense: each query that was sent ends in some
 * way, and the connection goes on.
 */
#include "http-world.h"

/* ---- The server closes ---- */

static void
answer_and_close(unsigned client, unsigned query)
{
    (void)query;
    answer(client, OK);
    hang_up_in(client, MS(10));
}

START_TEST(a_close_between_queries_is_no_error)
{
    make_world();
    world.plan.queries = 4;
    world.plan.think_ns = MS(100);
    world.serve = answer_and_close;
    run_world();

    expect_all_ok(4);
    ck_assert_uint_eq(world.result->reopened, 3);
    ck_assert_uint_eq(world.accepted, 4);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_uint_eq(world.arrived_ns[i] - world.arrived_ns[i - 1], MS(100));
}
END_TEST

static void
last_reply(unsigned client, unsigned query)
{
    (void)query;
    answer(client, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n!");
}

START_TEST(connection_close_is_no_error_and_the_next_query_has_a_new_connection)
{
    make_world();
    world.plan.queries = 5;
    world.serve = last_reply;
    run_world();

    expect_all_ok(5);
    ck_assert_uint_eq(world.accepted, 5);
    ck_assert_uint_eq(world.result->reopened, 4);
    ck_assert_uint_eq(world.result->opened, 1);
    ck_assert_uint_eq(world.result->connect.count, 5);
    /* The next query is sent at once. */
    ck_assert_uint_le(world.arrived_ns[4], MS(1));
}
END_TEST

static void
close_each_second(unsigned client, unsigned query)
{
    if (query % 2 == 0)
        answer(client, OK);
    else
        hang_up_in(client, 0);
}

START_TEST(a_close_with_a_query_in_flight_ends_it_early)
{
    make_world();
    world.plan.queries = 6;
    world.serve = close_each_second;
    run_world();

    expect_ends(3, LOAD_END_CLOSED_EARLY, 3);
    ck_assert_uint_eq(world.result->by_kind[0].errors, 3);
    ck_assert_uint_eq(world.accepted, 3);
    ck_assert_uint_eq(world.result->reopened, 2);
    ck_assert_uint_eq(world.result->service.count, 6);
    ck_assert_uint_eq(world.result->service.censored, 3);
    ck_assert_uint_eq(world.result->service.censored_from_ns, world.plan.timeout_ns);
    /* The connection had a reply before, so it need not wait before it connects again. */
    ck_assert_uint_le(world.arrived_ns[5], MS(1));
}
END_TEST

static void
close_all(unsigned client, unsigned query)
{
    (void)query;
    hang_up_in(client, 0);
}

START_TEST(a_connection_that_brought_nothing_is_opened_again_a_little_later)
{
    make_world();
    world.plan.queries = 3;
    world.serve = close_all;
    run_world();

    expect_ends(0, LOAD_END_CLOSED_EARLY, 3);
    ck_assert_uint_eq(world.arrived_ns[1] - world.arrived_ns[0], MS(100));
    ck_assert_uint_eq(world.arrived_ns[2] - world.arrived_ns[1], MS(100));
}
END_TEST

START_TEST(a_close_ends_all_that_is_in_flight)
{
    make_world();
    world.plan.queries = 8;
    world.plan.depth = 4;
    world.serve = close_each_second;
    run_world();
    ck_assert_uint_eq(world.result->sent, 8);
    ck_assert_uint_eq(world.result->in_flight, 0);
    ck_assert_uint_gt(world.result->ends[LOAD_END_CLOSED_EARLY], 0);
}
END_TEST

static void
reset_it(unsigned client, unsigned query)
{
    (void)query;
    reset_in(client, MS(1));
}

START_TEST(a_reset_is_counted_as_one)
{
    make_world();
    listen_tcp();
    world.plan.queries = 2;
    world.serve = reset_it;
    run_world();
    expect_ends(0, LOAD_END_RESET, 2);
}
END_TEST

static void
half_a_body(unsigned client, unsigned query)
{
    if (query == 0)
        answer(client, HEAD(10) "12345");
    hang_up_in(client, MS(7));
}

static void
half_a_chunked_body(unsigned client, unsigned query)
{
    if (query == 0)
        answer(client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    hang_up_in(client, 0);
}

START_TEST(a_body_that_the_close_cuts_is_short)
{
    make_world();
    world.serve = _i == 0 ? half_a_body : half_a_chunked_body;
    world.plan.depth = 2;
    world.plan.queries = 2;
    run_world();

    ck_assert_uint_eq(world.result->ends[LOAD_END_SHORT_BODY], 1);
    ck_assert_uint_eq(world.result->ends[LOAD_END_CLOSED_EARLY], 1);
    ck_assert_uint_eq(world.result->service.censored, 2);
    ck_assert_uint_eq(world.result->first_byte.censored, 2);
    ck_assert_uint_eq(world.result->first_byte.count, 2);
}
END_TEST

static void
until_close(unsigned client, unsigned query)
{
    (void)query;
    answer(client, "HTTP/1.1 200 OK\r\n\r\nall of it");
    hang_up_in(client, MS(30));
}

START_TEST(a_close_may_be_the_end_of_a_body)
{
    make_world();
    world.plan.queries = 2;
    world.serve = until_close;
    run_world();
    expect_all_ok(2);
    ck_assert_uint_eq(world.result->service.min_ns, MS(30));
    ck_assert_uint_le(world.result->first_byte.max_ns, MS(1));
}
END_TEST

START_TEST(but_not_if_it_is_a_reset)
{
    make_world();
    world.serve = until_close;
    fake_os_fail(FAKE_RECV, 3, 1, ECONNRESET);
    run_world();
    expect_ends(0, LOAD_END_RESET, 1);
}
END_TEST

static void
welcome_and_close(unsigned client)
{
    if (client == 0)
        hang_up_in(client, 0);
}

START_TEST(the_kernel_may_give_up_a_connection_too)
{
    make_world();
    world.serve = until_close;
    fake_os_fail(FAKE_RECV, 3, 1, ETIMEDOUT);
    run_world();
    expect_ends(0, LOAD_END_TIMED_OUT, 1);
}
END_TEST

START_TEST(a_connection_that_ends_before_go_is_opened_again_and_waits_for_go_too)
{
    make_world();
    world.go_ns = SECONDS(1);
    world.welcome = welcome_and_close;
    run_world();
    expect_all_ok(1);
    ck_assert_uint_eq(world.result->reopened, 1);
    ck_assert_uint_le(world.arrived_ns[0], MS(1));
}
END_TEST

static void
quick_and_slow(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, client == 0 ? 0 : MS(500), OK);
    if (client == 0 && query > 1)
        hang_up_in(client, MS(100));
}

START_TEST(that_a_socket_ends_when_it_is_done_is_nothing)
{
    make_world();
    world.plan.sockets = 2;
    world.plan.queries = 2;
    world.serve = quick_and_slow;
    run_world();
    expect_all_ok(4);
    ck_assert_uint_eq(world.result->reopened, 0);
}
END_TEST

/* ---- Servers that send nonsense ---- */

static const struct {
    const char *reply;
    unsigned why;
    const char *shown;
} nonsense[] = {
    {"SMTP ready\r\n\r\n", SXE_HTTP_REFUSED_BAD_VERSION, "\"SMTP ready\\r\\n\\r\\n\""},
    {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", SXE_HTTP_REFUSED_BAD_LENGTH,
     "\"Content-Length: -1\\r\\n\\r\\n\""},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
     SXE_HTTP_REFUSED_BAD_CHUNK_SIZE, "\"xyz\\r\\n\""},
    {"HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", LOAD_BAD_UPGRADE,
     "\"HTTP/1.1 101 Other\\r\\nUpgrade: x\\r\\nConnecti\""},
    {OK "and more", LOAD_BAD_MORE, "\"and more\""},
};
static unsigned row;

static void
talk_nonsense(unsigned client, unsigned query)
{
    (void)query;
    answer(client, nonsense[row].reply);
}

START_TEST(no_reply_is_a_bad_reply)
{
    char text[LOAD_BAD_TEXT];

    make_world();
    row = (unsigned)_i;
    world.plan.queries = 2;
    world.serve = talk_nonsense;
    run_world();
    expect_ends(0, LOAD_END_BAD_REPLY, 2);
    ck_assert_uint_eq(world.accepted, 2);
    ck_assert_uint_eq(world.result->first_bad_reply.why, nonsense[_i].why);
    ck_assert_str_eq(load_bad_reply_quote(&world.result->first_bad_reply, text, sizeof(text)),
                     nonsense[_i].shown);
}
END_TEST

START_TEST(what_came_behind_nonsense_is_closed_early)
{
    make_world();
    row = 0;
    world.plan.queries = 2;
    world.plan.depth = 2;
    world.serve = talk_nonsense;
    run_world();
    ck_assert_uint_eq(world.result->ends[LOAD_END_BAD_REPLY], 1);
    ck_assert_uint_eq(world.result->ends[LOAD_END_CLOSED_EARLY], 1);
}
END_TEST

static void
answer_twice(unsigned client, unsigned query)
{
    answer(client, OK);
    if (query == 0)
        answer_in(client, MS(10), "HTTP/1.1 408 Request Timeout\r\n\r\n");
}

START_TEST(what_nobody_asked_for_ends_a_resting_connection)
{
    make_world();
    world.plan.queries = 2;
    world.plan.think_ns = MS(50);
    world.serve = answer_twice;
    run_world();
    expect_all_ok(2);
    ck_assert_uint_eq(world.result->reopened, 1);
}
END_TEST

/* ---- Servers that fall silent ---- */

static void
silent_once(unsigned client, unsigned query)
{
    if (query != 1)
        answer(client, OK);
}

START_TEST(a_query_without_reply_times_out_and_the_socket_goes_on)
{
    make_world();
    world.plan.queries = 3;
    world.serve = silent_once;
    run_world();

    expect_ends(2, LOAD_END_TIMED_OUT, 1);
    ck_assert_uint_eq(world.arrived_ns[2] - world.arrived_ns[1], SECONDS(5));
    ck_assert_uint_eq(world.result->reopened, 1);
}
END_TEST

static void
byte_by_byte(unsigned client, unsigned query)
{
    static const char *const bytes[] = {"H", "T", "T", "P", "/", "1", ".", "1"};

    if (query > 0) {
        answer(client, OK);
        return;
    }
    for (unsigned i = 0; i < 8; i++)
        answer_in(client, SECONDS(i + 1), bytes[i]);
}

START_TEST(a_trickle_does_not_put_it_off)
{
    make_world();
    world.plan.queries = 2;
    world.serve = byte_by_byte;
    run_world();
    expect_ends(1, LOAD_END_TIMED_OUT, 1);
    ck_assert_uint_eq(world.arrived_ns[1] - world.arrived_ns[0], SECONDS(5) + MS(100));
}
END_TEST

/* One more query is sent each second; the first of them times out. */
START_TEST(of_several_in_flight_the_oldest_counts)
{
    make_world();
    world.plan.model = LOAD_OPEN;
    world.plan.rate = world.plan.rate_end = 1;
    world.plan.depth = 100;
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 8;
    world.serve = silent_once;
    run_world();
    /* Query 0 is answered. Queries 1 to 5 are lost at 6 s; those of 6 s and 7 s are answered. */
    ck_assert_uint_eq(world.result->ends[LOAD_END_TIMED_OUT], 1);
    ck_assert_uint_eq(world.result->ends[LOAD_END_OK], 7);
}
END_TEST

START_TEST(all_that_are_in_flight_behind_it_time_out_too)
{
    make_world();
    world.plan.queries = 3;
    world.plan.depth = 3;
    world.serve = never;
    run_world();
    expect_ends(0, LOAD_END_TIMED_OUT, 3);
    ck_assert_uint_ge(world.result->elapsed_ns, world.plan.timeout_ns);
}
END_TEST

START_TEST(a_run_of_some_time_takes_that_time)
{
    make_world();
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = SECONDS(31);
    world.serve = never;
    run_world();
    ck_assert_uint_eq(world.result->ends[LOAD_END_TIMED_OUT], 6);
    ck_assert_uint_eq(world.result->ends[LOAD_END_UNANSWERED], 1);
    ck_assert_uint_eq(world.result->in_flight, 0);
    ck_assert_uint_eq(world.result->elapsed_ns, SECONDS(31));
}
END_TEST

START_TEST(long_thinking_is_no_reason_to_end)
{
    make_world();
    world.plan.queries = 3;
    world.plan.think_ns = _i == 0 ? SECONDS(60) : MS(10500);
    run_world();
    expect_all_ok(3);
}
END_TEST

static int
with_a_long_delay(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    query->delay_ns = sequence > 0 ? SECONDS(60) : 0;
    return 0;
}

START_TEST(nor_is_a_long_delay)
{
    make_world();
    world.plan.queries = 3;
    world.next = with_a_long_delay;
    run_world();
    expect_all_ok(3);
}
END_TEST

/* ---- Servers that are gone ---- */

static void
answer_once_and_go(unsigned client, unsigned query)
{
    (void)query;
    answer(client, OK);
    act_at((struct act){.at_ns = now_ns(), .what = LISTEN_ENDS});
    hang_up_in(client, 0);
}

START_TEST(each_failed_reopening_costs_the_socket_a_query)
{
    make_world();
    world.plan.queries = 10;
    world.serve = answer_once_and_go;
    run_world();

    ck_assert_uint_eq(world.result->offered, 10);
    expect_ends(1, LOAD_END_CLOSED_EARLY, 1);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_NOT_OPENED], 8);
    ck_assert_uint_eq(world.result->not_reopened, 8);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_DONE], 1);
}
END_TEST

START_TEST(a_reopening_may_fail_when_the_loop_hears_of_it)
{
    make_world();
    world.plan.queries = 4;
    world.serve = close_each_second;
    fake_os_fail(FAKE_GETSOCKOPT, 2, 1, ECONNREFUSED);
    run_world();
    expect_ends(2, LOAD_END_CLOSED_EARLY, 1);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_NOT_OPENED], 1);
    ck_assert_uint_eq(world.arrived_ns[2] - world.arrived_ns[1], MS(100));
}
END_TEST

static void
lose_it_while_it_thinks(unsigned client, unsigned query)
{
    answer(client, OK);
    if (query == 0) {
        act_at((struct act){.at_ns = now_ns(), .what = LISTEN_ENDS});
        hang_up_in(client, MS(1));
    }
}

static void
come_back(void)
{
    listen_unix(128);
}

static void
come_back_at_250_ms(void)
{
    call_at(MS(250), come_back);
}

START_TEST(what_it_thought_of_meanwhile_is_sent_when_it_is_open_again)
{
    make_world();
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 2;
    world.plan.think_ns = MS(100);
    world.serve = lose_it_while_it_thinks;
    on_go = come_back_at_250_ms;
    run_world();
    expect_all_ok(2);
    ck_assert_uint_eq(world.result->reopened, 1);
    ck_assert_uint_gt(world.arrived_ns[1], MS(250));
}
END_TEST

START_TEST(so_is_a_query_that_was_held)
{
    make_world();
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 3;
    world.next = second_in_100_ms;
    world.serve = lose_it_while_it_thinks;
    on_go = come_back_at_250_ms;
    run_world();
    expect_all_ok(3);
    ck_assert_uint_eq(world.result->reopened, 1);
}
END_TEST

/* ---- Long queries ---- */

static char *long_query;

static int
long_queries(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    query->bytes = long_query;
    query->length = 128u << 20;
    return 0;
}

static void
do_not_read(unsigned client)
{
    world.clients[client].is_unread = true;
}

START_TEST(a_query_that_nobody_reads_and_no_memory_holds_ends)
{
    make_world();
    long_query = calloc(1, 128u << 20);
    world.next = long_queries;
    world.welcome = do_not_read;
    run_world();
    expect_ends(0, LOAD_END_OTHER, 1);
    ck_assert_int_eq(world.result->first_error, ENOBUFS);
    free(long_query);
}
END_TEST

static int
four_megabytes(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    query->bytes = long_query;
    query->length = 4u << 20;
    return 0;
}

static void
answer_unread(unsigned client)
{
    world.clients[client].is_unread = true;
    answer_in(client, MS(5), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
}

START_TEST(a_reply_may_come_before_the_query_is_written)
{
    make_world();
    long_query = calloc(1, 4u << 20);
    world.next = four_megabytes;
    world.plan.queries = 2;
    world.welcome = answer_unread;
    run_world();
    expect_all_ok(2);
    free(long_query);
}
END_TEST

static void
add_bad_servers(Suite *s)
{
    TCase *t = tcase_create("nonsense");

    tcase_add_loop_test(t, no_reply_is_a_bad_reply, 0, 5);
    tcase_add_test(t, what_came_behind_nonsense_is_closed_early);
    tcase_add_test(t, what_nobody_asked_for_ends_a_resting_connection);
    suite_add_tcase(s, t);
    t = tcase_create("silence");
    tcase_add_test(t, a_query_without_reply_times_out_and_the_socket_goes_on);
    tcase_add_test(t, a_trickle_does_not_put_it_off);
    tcase_add_test(t, of_several_in_flight_the_oldest_counts);
    tcase_add_test(t, all_that_are_in_flight_behind_it_time_out_too);
    tcase_add_test(t, a_run_of_some_time_takes_that_time);
    tcase_add_loop_test(t, long_thinking_is_no_reason_to_end, 0, 2);
    tcase_add_test(t, nor_is_a_long_delay);
    suite_add_tcase(s, t);
    t = tcase_create("gone");
    tcase_add_test(t, each_failed_reopening_costs_the_socket_a_query);
    tcase_add_test(t, a_reopening_may_fail_when_the_loop_hears_of_it);
    tcase_add_test(t, what_it_thought_of_meanwhile_is_sent_when_it_is_open_again);
    tcase_add_test(t, so_is_a_query_that_was_held);
    suite_add_tcase(s, t);
    t = tcase_create("long requests");
    tcase_add_test(t, a_query_that_nobody_reads_and_no_memory_holds_ends);
    tcase_add_test(t, a_reply_may_come_before_the_query_is_written);
    suite_add_tcase(s, t);
}

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-fault");
    TCase *t = tcase_create("closes");

    tcase_add_test(t, a_close_between_queries_is_no_error);
    tcase_add_test(t, connection_close_is_no_error_and_the_next_query_has_a_new_connection);
    tcase_add_test(t, a_close_with_a_query_in_flight_ends_it_early);
    tcase_add_test(t, a_connection_that_brought_nothing_is_opened_again_a_little_later);
    tcase_add_test(t, a_close_ends_all_that_is_in_flight);
    tcase_add_test(t, a_reset_is_counted_as_one);
    tcase_add_loop_test(t, a_body_that_the_close_cuts_is_short, 0, 2);
    tcase_add_test(t, a_close_may_be_the_end_of_a_body);
    tcase_add_test(t, but_not_if_it_is_a_reset);
    tcase_add_test(t, the_kernel_may_give_up_a_connection_too);
    tcase_add_test(t, a_connection_that_ends_before_go_is_opened_again_and_waits_for_go_too);
    tcase_add_test(t, that_a_socket_ends_when_it_is_done_is_nothing);
    suite_add_tcase(s, t);
    add_bad_servers(s);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
