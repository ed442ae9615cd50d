/* SPDX-License-Identifier: MIT
 *
 * A worker whose source has sessions: each connection is a user. The source is told what was read
 * and how each query ended, and says when a user has no further query.
 */
#include "http-world.h"

#define REDIRECT "HTTP/1.1 302 Found\r\nContent-Length: 4\r\nLocation: /x\r\n\r\ngone"

static unsigned asked[3]; /* queries of each client */
static unsigned ended[3]; /* ended queries of each client */
static unsigned most;     /* the limit of queries of each client */
static enum load_reading reading;
static enum load_end last_end;
static char seen_head[200];
static char seen_body[200];
static bool skips_reply;
static bool skips_body;
static uint32_t clients; /* clients for which the source has queries */
static uint64_t delay_ns;

static int
begin_users(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    (void)shard;
    (void)shards;
    (void)seed;
    ck_assert_uint_eq(requests->clients, world.plan.sockets);
    requests->clients = clients;
    return 0;
}

static int
next_of_user(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    asked[query->client]++;
    query->skips_reply = skips_reply;
    query->skips_body = skips_body;
    query->delay_ns = delay_ns;
    return 0;
}

static enum load_reading
see(struct load_requests *requests, const struct load_exchange *exchange)
{
    (void)requests;
    ck_assert_uint_lt(exchange->client, clients);
    snprintf(seen_head, sizeof(seen_head), "%.*s", (int)exchange->head_length, exchange->head);
    snprintf(seen_body, sizeof(seen_body), "%.*s", (int)exchange->body_length, exchange->body);
    return reading;
}

/* Every second query completes a session. */
static unsigned
end_one(struct load_requests *requests, uint32_t client, unsigned end)
{
    unsigned went = 0;

    (void)requests;
    last_end = (enum load_end)end;
    if (end != LOAD_END_OK)
        went = LOAD_SESSION_FAILED;
    else if (++ended[client] % 2 == 0)
        went = LOAD_SESSION_COMPLETED;
    return asked[client] == most ? went | LOAD_SESSION_LAST : went;
}

static void
make_users(void)
{
    make_world();
    world.requests.begin = begin_users;
    world.requests.wants_replies = true;
    world.requests.read = see;
    world.requests.ended = end_one;
    world.next = next_of_user;
    world.plan.sockets = clients = 3;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = SECONDS(10);
    memset(asked, 0, sizeof(asked));
    memset(ended, 0, sizeof(ended));
    most = 4;
    reading = LOAD_READ_JUDGE;
    skips_reply = skips_body = false;
    delay_ns = 0;
    *seen_head = *seen_body = '\0';
}

START_TEST(a_run_ends_when_no_user_asks_for_more)
{
    run_world();
    expect_all_ok(12);
    ck_assert_uint_eq(world.result->sessions_completed, 6);
    ck_assert_uint_eq(world.result->sessions_failed, 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(asked[i], 4);
    ck_assert_uint_lt(world.result->elapsed_ns, SECONDS(1));
}
END_TEST

START_TEST(arrivals_end_with_the_users_too)
{
    world.plan.model = LOAD_PARTLY_OPEN;
    world.plan.rate = world.plan.rate_end = 100;
    delay_ns = _i == 0 ? 0 : MS(3);
    run_world();
    expect_all_ok(12);
    ck_assert_uint_eq(load_result_skipped(world.result), 0);
    ck_assert_uint_eq(world.result->sessions_completed, 6);
}
END_TEST

START_TEST(a_user_that_has_nothing_to_do_sends_nothing)
{
    clients = (uint32_t)_i;
    run_world();
    expect_all_ok(4 * (uint64_t)_i);
    ck_assert_uint_eq(world.result->opened, 3);
    ck_assert_uint_eq(asked[2], 0);
}
END_TEST

START_TEST(a_reply_is_shown_as_far_as_it_is_wanted)
{
    skips_reply = _i == 2;
    skips_body = _i > 0;
    run_world();
    expect_all_ok(12);
    ck_assert_str_eq(seen_head, _i == 2 ? "" : "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n");
    ck_assert_str_eq(seen_body, _i == 0 ? "ok" : "");
}
END_TEST

static void
redirect(unsigned client, unsigned query)
{
    (void)query;
    answer(client, REDIRECT);
}

START_TEST(what_is_followed_is_good_whatever_is_expected)
{
    static const enum load_reading readings[] = {LOAD_READ_FOLLOW, LOAD_READ_JUDGE,
                                                 LOAD_READ_FAILED, LOAD_READ_ASTRAY};
    static const enum load_end ends[] = {LOAD_END_OK, LOAD_END_BAD_STATUS, LOAD_END_BAD_STATUS,
                                         LOAD_END_FAILED_CHECK};

    world.serve = redirect;
    reading = readings[_i];
    world.plan.sockets = clients = 1;
    run_world();
    ck_assert_uint_eq(world.result->ends[ends[_i]], 4);
    ck_assert_uint_eq(world.result->sessions_failed, _i == 0 ? 0 : 4);
    ck_assert_int_eq(last_end, ends[_i]);
}
END_TEST

START_TEST(what_is_not_found_is_a_failed_check)
{
    reading = LOAD_READ_FAILED;
    run_world();
    expect_ends(0, LOAD_END_FAILED_CHECK, 12);
    ck_assert_uint_eq(world.result->sessions_failed, 12);
}
END_TEST

START_TEST(a_query_without_a_reply_ends_its_step_too)
{
    world.serve = never;
    world.plan.timeout_ns = MS(100);
    world.plan.sockets = clients = 1;
    run_world();
    expect_ends(0, LOAD_END_TIMED_OUT, 4);
    ck_assert_uint_eq(world.result->sessions_failed, 4);
}
END_TEST

static void
end_users(void)
{
    load_expect_clear_body(&world.expect);
}

static Suite *
suite(void)
{
    Suite *all = suite_create("http-worker-session");
    TCase *cases = tcase_create("session");

    tcase_add_checked_fixture(cases, make_users, end_users);
    tcase_add_test(cases, a_run_ends_when_no_user_asks_for_more);
    tcase_add_loop_test(cases, arrivals_end_with_the_users_too, 0, 2);
    tcase_add_loop_test(cases, a_user_that_has_nothing_to_do_sends_nothing, 0, 3);
    tcase_add_loop_test(cases, a_reply_is_shown_as_far_as_it_is_wanted, 0, 3);
    tcase_add_loop_test(cases, what_is_followed_is_good_whatever_is_expected, 0, 4);
    tcase_add_test(cases, what_is_not_found_is_a_failed_check);
    tcase_add_test(cases, a_query_without_a_reply_ends_its_step_too);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
