/* SPDX-License-Identifier: MIT
 *
 * A worker's closed loop: who sends what when, and what the figures say of it.
 */
#include "http-world.h"

static void
in_20_ms(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, MS(20), OK);
}

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
    ck_assert_uint_eq(world.result->in_state[HTTP_SOCKET_DONE], 3);
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
    /* 1 ms of them was the timer of the first batch. */
    ck_assert_uint_eq(world.result->elapsed_ns, MS(81));
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-closed");
    TCase *t = tcase_create("queries");

    tcase_add_test(t, each_socket_has_its_queries_one_after_the_other);
    tcase_add_test(t, times_are_exact);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
