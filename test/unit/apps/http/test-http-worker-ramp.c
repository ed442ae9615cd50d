/* SPDX-License-Identifier: MIT
 *
 * Opening connections: so many at a time, or so many a second, from chosen source addresses, with a
 * PROXY header if requested; and the figures about those that could not be opened.
 */
#include "http-world.h"

#include "local-addresses.h"
#include "sxe-proxy.h"

/* ---- All connections at once ---- */

static void
accept_again(void)
{
    world.does_not_accept = false;
}

static void
look_at_connects(void)
{
    ck_assert_uint_eq(fake_os_calls(FAKE_CONNECT), 5);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_CONNECTING], 0);
}

/* One connection waits in the backlog, in which there is no room for more. */
START_TEST(so_many_connects_are_under_way_and_the_ramp_ends_when_they_time_out)
{
    make_world();
    listen_tcp_with(0);
    world.does_not_accept = true;
    world.plan.sockets = 20;
    world.plan.ramp = 4;
    world.plan.queries = 3;
    act_at((struct act){.at_ns = now_ns() + SECONDS(4), .what = CALL, .call = look_at_connects});
    act_at((struct act){.at_ns = now_ns() + SECONDS(6), .what = CALL, .call = accept_again});
    run_world();

    expect_all_ok(3);
    ck_assert_uint_eq(world.result->opened, 1);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_TIMED_OUT], 4);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_UNTRIED], 15);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_NOT_OPENED], 19 * 3);
    ck_assert_uint_ge(world.result->connect_ns, SECONDS(5));
}
END_TEST

static void
accept_again_and_wait_for_the_kernel(void)
{
    world.does_not_accept = false;
    world.patience_ms = 20000;
}

START_TEST(connects_whose_first_syn_was_lost_are_counted)
{
    make_world();
    listen_tcp_with(0);
    world.plan.sockets = 2;
    world.does_not_accept = true;
    world.plan.timeout_ns = SECONDS(1000);
    act_at((struct act){
        .at_ns = now_ns() + MS(10), .what = CALL, .call = accept_again_and_wait_for_the_kernel});
    run_world();

    expect_all_ok(2);
    ck_assert_uint_eq(world.result->opened, 2);
    ck_assert_uint_eq(world.result->syn_retries, 1);
    ck_assert_uint_eq(world.result->retransmits, 0);
}
END_TEST

START_TEST(the_ramp_may_have_a_rate)
{
    make_world();
    world.plan.sockets = 11;
    world.plan.ramp_rate = 100;
    run_world();
    expect_all_ok(11);
    ck_assert_uint_eq(world.result->connect_ns, MS(100));
}
END_TEST

START_TEST(each_worker_has_its_share_of_the_rate)
{
    make_world();
    world.shard = 1;
    world.shards = 2;
    world.plan.sockets = 22;
    world.plan.ramp_rate = 100;
    run_world();
    expect_all_ok(11);
    ck_assert_uint_eq(world.result->connect_ns, MS(200));
}
END_TEST

/* ---- A unix listener that accepts slowly ---- */

START_TEST(a_full_unix_listener_is_waited_for)
{
    make_world();
    __real_close(world.listener);
    listen_unix(0);
    world.does_not_accept = true;
    world.plan.sockets = 5;
    world.plan.ramp_rate = _i == 0 ? 0 : 1000;
    act_at((struct act){.at_ns = now_ns() + MS(10), .what = CALL, .call = accept_again});
    run_world();
    expect_all_ok(5);
    ck_assert_uint_ge(world.result->connect_ns, MS(10));
}
END_TEST

START_TEST(but_not_for_ever)
{
    make_world();
    __real_close(world.listener);
    listen_unix(0);
    world.does_not_accept = true;
    world.plan.sockets = 5;
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 3;
    world.plan.drain_ns = 0;
    run_world();
    ck_assert_uint_gt(world.result->opened, 0);
    ck_assert_uint_gt(world.result->unopened[LOAD_UNOPENED_OTHER], 0);
    ck_assert_int_eq(world.result->first_error, EAGAIN);
    expect_ends(0, LOAD_END_TIMED_OUT, 1);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_GONE], 2);
}
END_TEST

/* ---- System calls that fail ---- */

static const struct {
    int error;
    enum load_unopened kind;
    bool ends_ramp;
} refusals[] = {
    {ECONNREFUSED, LOAD_UNOPENED_REFUSED, false}, {ECONNRESET, LOAD_UNOPENED_RESET, false},
    {EPIPE, LOAD_UNOPENED_RESET, false},          {ETIMEDOUT, LOAD_UNOPENED_TIMED_OUT, false},
    {EMFILE, LOAD_UNOPENED_NO_DESCRIPTOR, true},  {ENFILE, LOAD_UNOPENED_NO_DESCRIPTOR, true},
    {EADDRNOTAVAIL, LOAD_UNOPENED_NO_PORT, true}, {EACCES, LOAD_UNOPENED_OTHER, false},
};

START_TEST(a_socket_that_cannot_be_opened_is_not_tried_again)
{
    unsigned untried = refusals[_i].ends_ramp ? 3 : 0;

    make_world();
    world.plan.sockets = 6;
    world.plan.queries = 2;
    fake_os_fail(refusals[_i].error == EMFILE ? FAKE_SOCKET : FAKE_CONNECT, 3, 1,
                 refusals[_i].error);
    run_world();

    ck_assert_uint_eq(world.result->unopened[refusals[_i].kind], 1);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_UNTRIED], untried);
    ck_assert_uint_eq(world.result->opened, 5 - untried);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_UNOPENED], 1 + untried);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_NOT_OPENED], 2 * (1 + untried));
    ck_assert_int_eq(world.result->first_error, refusals[_i].error == EACCES ? EACCES : 0);
    expect_all_ok(2 * (5 - untried));
}
END_TEST

/* The refusal comes as an event of the loop, not as the result of connect(). */
START_TEST(a_connect_may_also_fail_later)
{
    make_world();
    world.plan.sockets = 6;
    fake_os_fail(FAKE_GETSOCKOPT, 3, 1, refusals[_i].error);
    run_world();
    ck_assert_uint_eq(world.result->unopened[refusals[_i].kind], 1);
    ck_assert_ptr_null(load_result_check(world.result));
}
END_TEST

START_TEST(without_any_socket_there_is_nothing_to_wait_for)
{
    make_world();
    world.plan.sockets = 3;
    world.plan.stop = (enum load_stop)_i;
    world.plan.queries = 4;
    world.plan.requests_max = 12;
    world.plan.duration_ns = SECONDS(3600);
    fake_os_fail(FAKE_CONNECT, 1, 0, ECONNREFUSED);
    run_world();

    ck_assert_uint_eq(world.done, 1);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_REFUSED], 3);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_NOT_OPENED], _i == LOAD_STOP_TIME ? 0 : 12);
    ck_assert_uint_eq(world.result->elapsed_ns, 0);
    ck_assert_uint_le(world.ended_ns, SECONDS(1001));
}
END_TEST

/* ---- Source addresses ---- */

static char peers[8][INET_ADDRSTRLEN];

static void
note_peer(unsigned client)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    ck_assert_int_eq(getpeername(world.clients[client].fd, (struct sockaddr *)&address, &length),
                     0);
    inet_ntop(AF_INET, &address.sin_addr, peers[client], sizeof(peers[0]));
}

static struct load_local_addresses sources;

static void
make_world_with_sources(const char *text)
{
    make_world();
    listen_tcp();
    ck_assert_ptr_null(load_local_addresses_parse(&sources, text));
    world.plan.local_addresses = &sources;
    world.plan.sockets = 8;
    world.welcome = note_peer;
}

START_TEST(sockets_take_turns_with_the_source_addresses)
{
    make_world_with_sources("127.0.0.2-127.0.0.4");
    world.plan.ramp = 1;
    run_world();
    expect_all_ok(8);
    for (unsigned i = 0; i < 8; i++)
        ck_assert_int_eq(peers[i][8] - '2', (int)(i % 3));
}
END_TEST

START_TEST(a_worker_has_every_nth_address)
{
    make_world_with_sources("127.0.0.2-127.0.0.5");
    world.plan.ramp = 1;
    world.shard = 1;
    world.shards = 2;
    run_world();
    expect_all_ok(4);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(peers[i][8], i % 2 == 0 ? '3' : '5');
}
END_TEST

START_TEST(without_a_port_at_one_address_the_next_one_is_tried)
{
    make_world_with_sources(_i == 0 ? "127.0.0.2,127.0.0.3" : "127.0.0.2");
    fake_os_fail(FAKE_CONNECT, 1, 1, EADDRNOTAVAIL);
    run_world();
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_NO_PORT], 1);
    ck_assert_uint_eq(world.result->opened, _i == 0 ? 7 : 0);
}
END_TEST

START_TEST(an_address_that_is_none_of_ours_is_an_ordinary_failure)
{
    make_world_with_sources("192.0.2.1");
    run_world();
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_NO_PORT], 1);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_UNTRIED], 7);
}
END_TEST

START_TEST(an_address_that_cannot_be_read_is_another_failure)
{
    make_world();
    world.plan.unix_path = NULL;
    snprintf(world.plan.ip, sizeof(world.plan.ip), "not an address");
    run_world();
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_OTHER], 1);
    ck_assert_int_eq(world.result->first_error, EINVAL);
}
END_TEST

static char long_path[200];

START_TEST(a_path_that_is_too_long_is_another_failure)
{
    make_world();
    memset(long_path, 'x', sizeof(long_path) - 1);
    world.plan.unix_path = long_path;
    run_world();
    ck_assert_int_eq(world.result->first_error, ENAMETOOLONG);
}
END_TEST

/* ---- The addresses of a name ---- */

/* The first address listens, the second one does not, the third one is not used. */
static void
make_world_with_addresses(void)
{
    make_world();
    listen_tcp();
    world.plan.addresses =
        (struct load_addresses){.number = 3, .used = 2, .ip = {"127.0.0.1", "127.0.0.9", "::1"}};
    world.plan.sockets = 8;
}

static void
check_address(unsigned i, const char *ip, unsigned opened, unsigned failed, int error)
{
    const struct load_address_result *address = &world.result->by_address[i];

    ck_assert_str_eq(address->ip, ip);
    ck_assert_uint_eq(address->opened, opened);
    ck_assert_uint_eq(address->failed, failed);
    ck_assert_int_eq(address->first_error, error);
}

START_TEST(connections_take_turns_with_the_addresses_and_errors_are_counted_there)
{
    make_world_with_addresses();
    world.shard = (unsigned)_i;
    world.shards = 2;
    run_world();
    expect_all_ok(2);
    ck_assert_uint_eq(world.result->opened, 2);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_REFUSED], 2);
    ck_assert_uint_eq(world.result->addresses, 3);
    check_address(0, "127.0.0.1", 2, 0, 0);
    check_address(1, "127.0.0.9", 0, 2, ECONNREFUSED);
    check_address(2, "::1", 0, 0, 0);
    ck_assert_uint_eq(world.result->by_address[2].is_unused, 1);
}
END_TEST

START_TEST(a_connect_that_fails_at_once_is_counted_at_its_address)
{
    make_world_with_addresses();
    fake_os_fail(FAKE_CONNECT, 1, 1, EHOSTUNREACH);
    run_world();
    ck_assert_uint_eq(world.result->opened, 3);
    check_address(0, "127.0.0.1", 3, 1, EHOSTUNREACH);
    check_address(1, "127.0.0.9", 0, 4, ECONNREFUSED);
}
END_TEST

/* ---- PROXY headers ---- */

START_TEST(a_proxy_header_is_at_the_front_of_each_connection)
{
    struct sxe_proxy proxy;
    int length;

    make_world();
    if (_i < 2)
        listen_tcp();
    world.plan.proxy = 1 + (unsigned)_i % 2;
    run_world();

    length = sxe_proxy_parse(world.last_request, world.last_length, &proxy);
    ck_assert_int_gt(length, 0);
    ck_assert_uint_eq(world.last_length, (size_t)length + strlen(REQUEST));
    ck_assert_mem_eq(world.last_request + length, REQUEST, strlen(REQUEST));
    ck_assert_uint_eq(proxy.version, world.plan.proxy);
    ck_assert_uint_eq(world.result->bytes_sent, (size_t)length + strlen(REQUEST));
    /* Version 1 of the PROXY protocol cannot express the path of a unix socket. */
    ck_assert_int_eq(proxy.source.ss_family, _i < 2 ? AF_INET : _i == 2 ? AF_UNSPEC : AF_UNIX);
    if (_i < 2)
        ck_assert_uint_eq(((struct sockaddr_in *)&proxy.destination)->sin_port,
                          htons(world.plan.port));
}
END_TEST

START_TEST(without_addresses_it_says_that_it_is_local)
{
    struct sxe_proxy proxy;

    make_world();
    world.plan.proxy = 2;
    fake_os_fail(FAKE_GETSOCKNAME, 1, 1, ENOBUFS);
    run_world();
    ck_assert_int_gt(sxe_proxy_parse(world.last_request, world.last_length, &proxy), 0);
    ck_assert_int_eq(proxy.command, SXE_PROXY_LOCAL);
    expect_all_ok(1);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-ramp");
    TCase *t = tcase_create("ramp");

    tcase_add_test(t, so_many_connects_are_under_way_and_the_ramp_ends_when_they_time_out);
    tcase_add_test(t, connects_whose_first_syn_was_lost_are_counted);
    tcase_add_test(t, the_ramp_may_have_a_rate);
    tcase_add_test(t, each_worker_has_its_share_of_the_rate);
    tcase_add_loop_test(t, a_full_unix_listener_is_waited_for, 0, 2);
    tcase_add_test(t, but_not_for_ever);
    suite_add_tcase(s, t);
    t = tcase_create("refused");
    tcase_add_loop_test(t, a_socket_that_cannot_be_opened_is_not_tried_again, 0, 8);
    tcase_add_loop_test(t, a_connect_may_also_fail_later, 0, 8);
    tcase_add_loop_test(t, without_any_socket_there_is_nothing_to_wait_for, 0, 3);
    tcase_add_test(t, an_address_that_cannot_be_read_is_another_failure);
    tcase_add_test(t, a_path_that_is_too_long_is_another_failure);
    suite_add_tcase(s, t);
    t = tcase_create("sources");
    tcase_add_test(t, sockets_take_turns_with_the_source_addresses);
    tcase_add_test(t, a_worker_has_every_nth_address);
    tcase_add_loop_test(t, without_a_port_at_one_address_the_next_one_is_tried, 0, 2);
    tcase_add_test(t, an_address_that_is_none_of_ours_is_an_ordinary_failure);
    suite_add_tcase(s, t);
    t = tcase_create("proxy");
    tcase_add_loop_test(t, connections_take_turns_with_the_addresses_and_errors_are_counted_there,
                        0, 2);
    tcase_add_test(t, a_connect_that_fails_at_once_is_counted_at_its_address);
    tcase_add_loop_test(t, a_proxy_header_is_at_the_front_of_each_connection, 0, 4);
    tcase_add_test(t, without_addresses_it_says_that_it_is_local);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
