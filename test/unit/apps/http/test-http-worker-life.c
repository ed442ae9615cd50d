/* SPDX-License-Identifier: MIT
 *
 * A worker's messages with its parent: READY, GO, MARK, STOP, the parent's death; and failures at
 * the start.
 */
#include "http-world.h"

#include <signal.h>

/* ---- GO ---- */

START_TEST(all_sockets_are_open_before_it_is_ready_and_nothing_is_sent_before_go)
{
    make_world();
    world.plan.sockets = 5;
    world.go_ns = SECONDS(30);
    run_world();

    expect_all_ok(5);
    ck_assert_uint_eq(world.result->connect.count, 5);
    ck_assert_uint_le(world.result->connect_ns, MS(1));
    /* READY, too, was 1 ms late. */
    ck_assert_uint_eq(world.result->started_ns, SECONDS(1030) + world.result->connect_ns);
    ck_assert_uint_le(world.arrived_ns[0], MS(1));
}
END_TEST

START_TEST(a_script_may_name_another_server)
{
    make_world();
    listen_tcp();
    world.requests.ip = "127.0.0.1";
    world.requests.port = world.plan.port;
    memcpy(world.plan.ip, "127.0.0.2", sizeof("127.0.0.2"));
    run_world();
    expect_all_ok(1);
}
END_TEST

START_TEST(a_beginning_that_is_over_is_now)
{
    make_world();
    world.go_ns = 0 - SECONDS(1);
    run_world();
    expect_all_ok(1);
    ck_assert_uint_ge(world.result->elapsed_ns, SECONDS(1));
}
END_TEST

/* ---- MARK ---- */

static void
expect_same_histogram(const struct load_histogram *a, const struct load_histogram *b)
{
    ck_assert_mem_eq(a, b, sizeof(*a));
}

static void
expect_copy(void)
{
    const struct load_result *a = world.mark;
    const struct load_result *b = world.result;

    ck_assert_ptr_null(load_result_check(a));
    ck_assert_uint_eq(a->sent, b->sent);
    ck_assert_uint_eq(a->in_flight, b->in_flight);
    ck_assert_uint_eq(a->bytes_received, b->bytes_received);
    ck_assert_uint_eq(a->started_ns, b->started_ns);
    ck_assert_uint_eq(a->cpu_user_ns, b->cpu_user_ns);
    expect_same_histogram(&a->connect, &b->connect);
    expect_same_histogram(&a->first_byte, &b->first_byte);
    expect_same_histogram(&a->service, &b->service);
    expect_same_histogram(&a->response, &b->response);
    expect_same_histogram(&a->schedule_lag, &b->schedule_lag);
    expect_same_histogram(&a->timer_error, &b->timer_error);
    expect_same_histogram(&a->by_kind[0].response, &b->by_kind[0].response);
    ck_assert_uint_eq(a->by_kind[0].ok, b->by_kind[0].ok);
    ck_assert_uint_eq(a->kinds, b->kinds);
    ck_assert_uint_eq(a->clients, b->clients);
    ck_assert_mem_eq(a->by_client, b->by_client, sizeof(a->by_client));
    ck_assert_mem_eq(&a->timeline, &b->timeline, sizeof(a->timeline));
}

static void
expect_first_mark(void)
{
    ck_assert_uint_eq(world.marked, 1);
    ck_assert_uint_eq(world.mark->sent, 2);
    ck_assert_uint_eq(world.mark->in_flight, 1);
    ck_assert_uint_eq(world.mark->elapsed_ns, MS(25));
    ck_assert_uint_eq(world.mark->in_state[LOAD_SOCKET_BUSY], 1);
    expect_copy();
}

static void
expect_second_mark(void)
{
    ck_assert_uint_eq(world.marked, 2);
    ck_assert_uint_eq(world.mark->sent, 151);
    expect_copy();
}

static void
mark_twice(void)
{
    tell_at(MS(25), LOAD_MESSAGE_MARK);
    call_at(MS(25), expect_first_mark);
    tell_at(MS(3005), LOAD_MESSAGE_MARK);
    call_at(MS(3005), expect_second_mark);
}

START_TEST(a_mark_is_a_copy_of_the_result_as_it_is)
{
    make_world();
    world.requests.kinds = (unsigned)_i;
    world.plan.queries = 200;
    world.serve = in_20_ms;
    on_go = mark_twice;
    run_world();
    expect_all_ok(200);
    ck_assert_uint_eq(world.marked, 2);
}
END_TEST

static void
expect_sockets_only(void)
{
    ck_assert_uint_eq(world.marked, 1);
    ck_assert_uint_eq(world.mark->opened, 1);
    ck_assert_uint_eq(world.mark->in_state[LOAD_SOCKET_IDLE], 1);
    go();
}

static void
mark_before_go(void)
{
    world.started_ns = now_ns();
    tell_at(MS(5), LOAD_MESSAGE_MARK);
    call_at(MS(5), expect_sockets_only);
}

START_TEST(a_mark_before_go_has_the_sockets)
{
    make_world();
    world.holds_go = true;
    on_go = mark_before_go;
    run_world();
    expect_all_ok(1);
}
END_TEST

static void
expect_seen_states(void)
{
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_BUSY], 1);
    ck_assert_uint_gt(world.result->elapsed_ns, MS(30));
}

static void
look_at_states(void)
{
    call_at(MS(110), expect_seen_states);
}

START_TEST(states_are_up_to_date_within_50_ms)
{
    make_world();
    world.plan.queries = 10;
    world.serve = in_20_ms;
    on_go = look_at_states;
    run_world();
    expect_all_ok(10);
    ck_assert_uint_gt(world.result->loop_lag.count, 10);
}
END_TEST

/* ---- STOP ---- */

static void
stop_at_50_ms(void)
{
    tell_at(MS(50), LOAD_MESSAGE_STOP);
}

START_TEST(after_stop_only_what_is_in_flight_is_waited_for)
{
    make_world();
    world.plan.queries = 100;
    world.serve = in_20_ms;
    on_go = stop_at_50_ms;
    run_world();
    expect_all_ok(3);
    ck_assert_uint_eq(world.result->elapsed_ns, MS(50));
    ck_assert_uint_eq(world.result->drained, 1);
    ck_assert_uint_eq(world.result->drain_ns, MS(11));
    ck_assert_uint_eq(world.result->offered, 3);
    ck_assert_uint_eq(world.done, 1);
}
END_TEST

START_TEST(and_not_for_longer_than_the_drain)
{
    make_world();
    world.serve = never;
    world.plan.drain_ns = MS(100);
    on_go = stop_at_50_ms;
    run_world();
    expect_ends(0, LOAD_END_UNANSWERED, 1);
    ck_assert_uint_eq(world.done, 1);
    ck_assert_uint_le(world.ended_ns, world.started_ns + MS(151));
}
END_TEST

static void
stop_in_the_drain(void)
{
    tell_at(MS(50), LOAD_MESSAGE_STOP);
}

START_TEST(nor_at_all_if_it_is_told_to_stop_in_the_drain)
{
    make_world();
    world.serve = never;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(20);
    on_go = stop_in_the_drain;
    run_world();
    expect_ends(0, LOAD_END_UNANSWERED, 1);
    ck_assert_uint_eq(world.done, 1);
    ck_assert_uint_le(world.ended_ns, world.started_ns + MS(51));
}
END_TEST

START_TEST(the_end_of_its_time_in_the_drain_is_nothing)
{
    make_world();
    world.serve = never;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(70);
    world.plan.drain_ns = MS(100);
    on_go = stop_at_50_ms;
    run_world();
    expect_ends(0, LOAD_END_UNANSWERED, 1);
    ck_assert_uint_ge(world.ended_ns, world.started_ns + MS(150));
    ck_assert_uint_le(world.ended_ns, world.started_ns + MS(151));
}
END_TEST

START_TEST(with_nothing_in_flight_it_ends_at_once)
{
    make_world();
    world.plan.queries = 3;
    world.plan.think_ns = SECONDS(10);
    on_go = stop_at_50_ms;
    run_world();
    expect_all_ok(1);
    ck_assert_uint_eq(world.ended_ns, world.started_ns + MS(50));
}
END_TEST

static void
stop_before_go(void)
{
    world.started_ns = now_ns();
    tell_at(MS(5), LOAD_MESSAGE_STOP);
}

START_TEST(stop_may_come_before_go)
{
    make_world();
    world.holds_go = true;
    world.plan.stop = LOAD_STOP_TIME;
    on_go = stop_before_go;
    run_world();
    ck_assert_uint_eq(world.result->opened, 1);
    ck_assert_uint_eq(world.result->offered, 0);
    ck_assert_uint_eq(world.result->elapsed_ns, 0);
    ck_assert_uint_eq(world.done, 1);
}
END_TEST

START_TEST(stop_may_come_in_the_ramp)
{
    make_world();
    world.plan.sockets = 10;
    world.plan.ramp_rate = 10;
    act_at((struct act){
        .at_ns = now_ns() + MS(450), .what = TELL, .message = {.type = LOAD_MESSAGE_STOP}});
    run_world();
    ck_assert_uint_eq(world.ready, 0);
    ck_assert_uint_eq(world.result->opened, 5);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_UNTRIED], 5);
    ck_assert_uint_eq(world.result->connect_ns, MS(450));
    ck_assert_uint_eq(world.done, 1);
}
END_TEST

/* ---- The parent's death ---- */

static void
leave_at_50_ms(void)
{
    act_at((struct act){.at_ns = world.started_ns + MS(50), .what = PARENT_GOES});
}

START_TEST(without_a_parent_it_ends)
{
    make_world();
    world.plan.queries = 100;
    world.serve = in_20_ms;
    on_go = leave_at_50_ms;
    run_world();
    ck_assert_int_eq(world.error, 0);
    ck_assert_uint_eq(world.result->sent, 3);
    ck_assert_uint_eq(world.done, 0);
    ck_assert_uint_le(world.ended_ns, world.started_ns + MS(50));
}
END_TEST

static void
talk_strangely(void)
{
    for (unsigned type = LOAD_MESSAGE_ASK; type <= LOAD_MESSAGE_DONE; type++)
        tell_at(MS(5), (enum load_message_type)type);
}

START_TEST(words_that_are_not_the_parents_are_ignored)
{
    make_world();
    world.serve = in_20_ms;
    on_go = talk_strangely;
    run_world();
    expect_all_ok(1);
}
END_TEST

static void
send_rubbish(void)
{
    (void)__real_send(world.control, "x", 1, MSG_NOSIGNAL);
}

START_TEST(a_parent_that_talks_rubbish_is_none)
{
    make_world();
    world.plan.queries = 100;
    world.serve = in_20_ms;
    on_go = send_rubbish;
    run_world();
    ck_assert_uint_eq(world.done, 0);
}
END_TEST

START_TEST(an_interrupted_word_is_heard_later)
{
    make_world();
    fake_os_fail(FAKE_RECV, 1, 1, _i == 0 ? EINTR : EAGAIN);
    run_world();
    expect_all_ok(1);
}
END_TEST

START_TEST(a_control_socket_that_cannot_be_watched_is_the_parents_end)
{
    make_world();
    /* The first call adds our set to libev's, the second the timer. */
    fake_os_fail(FAKE_EPOLL_CTL, 3, 1, ENOSPC);
    run_world();
    ck_assert_uint_eq(world.done, 0);
    ck_assert_uint_eq(world.result->offered, 0);
}
END_TEST

static void
interrupt_it(unsigned client, unsigned query)
{
    (void)query;
    raise(SIGINT);
    raise(SIGTERM);
    raise(SIGPIPE);
    answer(client, OK);
}

START_TEST(signals_are_the_parents)
{
    make_world();
    world.serve = interrupt_it;
    run_world();
    expect_all_ok(1);
}
END_TEST

/* ---- Resources of a worker ---- */

static int
cannot_begin(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    (void)requests;
    ck_assert_uint_eq(shard, 1);
    ck_assert_uint_eq(shards, 3);
    ck_assert_uint_eq(seed, 42);
    return -EBADMSG;
}

START_TEST(a_source_that_cannot_begin_is_said)
{
    make_world();
    world.shard = 1;
    world.shards = 3;
    world.plan.seed = 42;
    world.requests.begin = cannot_begin;
    run_world();
    ck_assert_int_eq(world.error, -EBADMSG);
    ck_assert_int_eq(world.ready_error, EBADMSG);
    ck_assert_uint_eq(world.done, 0);
    ck_assert_uint_eq(world.ended, 0);
}
END_TEST

static const enum fake_call needs[] = {FAKE_CALLOC,         FAKE_MALLOC,  FAKE_MMAP,
                                       FAKE_POSIX_MEMALIGN, FAKE_EVENTFD, FAKE_ALIGNED_ALLOC};

/* Let the nth call of those that the worker needs fail, until there is no nth call. */
START_TEST(whatever_it_cannot_have_is_said_and_the_rest_given_back)
{
    unsigned nth = 0;
    unsigned failed = 0;

    do {
        make_world();
        world.requests.wants_replies = true;
        fake_os_reset();
        fake_os_sweep(needs, sizeof(needs) / sizeof(needs[0]), ++nth, false, EMFILE);
        run_world();
        failed += world.error < 0;
        ck_assert_int_eq(world.ready_error, -world.error);
        ck_assert_uint_eq(world.ended, 1);
        ck_assert_uint_eq(world.done, world.error == 0);
    } while (fake_os_injected() != 0);
    ck_assert_uint_ge(failed, 8);
    expect_all_ok(1);
}
END_TEST

START_TEST(without_a_way_to_wait_there_is_no_loop)
{
    make_world();
    /* None of the backends that libev knows is allowed. */
    setenv("LIBEV_FLAGS", "16384", 1);
    run_world();
    ck_assert_int_eq(world.error, -ENOMEM);
}
END_TEST

START_TEST(nor_one_without_a_set_for_its_sockets)
{
    make_world();
    /* The first call is libev's. */
    fake_os_fail(FAKE_EPOLL_CREATE1, 2, 1, EMFILE);
    run_world();
    ck_assert_int_eq(world.error, -EMFILE);
    ck_assert_uint_eq(world.result->unopened[LOAD_UNOPENED_UNTRIED], 1);
}
END_TEST

START_TEST(what_the_kernel_does_not_say_is_nothing)
{
    make_world();
    fake_os_fail(FAKE_OPEN, 1, 0, ENOENT);
    run_world();
    expect_all_ok(1);
    ck_assert_uint_eq(world.result->run_queue_ns, 0);
}
END_TEST

START_TEST(a_timeout_may_be_longer_than_libsxe_can_count)
{
    make_world();
    world.plan.timeout_ns = SECONDS(100) * 86400;
    run_world();
    expect_all_ok(1);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-life");
    TCase *t = tcase_create("talk");

    tcase_add_test(t, all_sockets_are_open_before_it_is_ready_and_nothing_is_sent_before_go);
    tcase_add_test(t, a_script_may_name_another_server);
    tcase_add_test(t, a_beginning_that_is_over_is_now);
    tcase_add_loop_test(t, a_mark_is_a_copy_of_the_result_as_it_is, 1, 3);
    tcase_add_test(t, a_mark_before_go_has_the_sockets);
    tcase_add_test(t, states_are_up_to_date_within_50_ms);
    tcase_add_test(t, after_stop_only_what_is_in_flight_is_waited_for);
    tcase_add_test(t, and_not_for_longer_than_the_drain);
    tcase_add_test(t, nor_at_all_if_it_is_told_to_stop_in_the_drain);
    tcase_add_test(t, the_end_of_its_time_in_the_drain_is_nothing);
    tcase_add_test(t, with_nothing_in_flight_it_ends_at_once);
    tcase_add_test(t, stop_may_come_before_go);
    tcase_add_test(t, stop_may_come_in_the_ramp);
    tcase_add_test(t, without_a_parent_it_ends);
    tcase_add_test(t, words_that_are_not_the_parents_are_ignored);
    tcase_add_test(t, a_parent_that_talks_rubbish_is_none);
    tcase_add_loop_test(t, an_interrupted_word_is_heard_later, 0, 2);
    tcase_add_test(t, a_control_socket_that_cannot_be_watched_is_the_parents_end);
    tcase_add_test(t, signals_are_the_parents);
    suite_add_tcase(s, t);
    t = tcase_create("needs");
    tcase_add_test(t, a_source_that_cannot_begin_is_said);
    tcase_add_test(t, whatever_it_cannot_have_is_said_and_the_rest_given_back);
    tcase_add_test(t, without_a_way_to_wait_there_is_no_loop);
    tcase_add_test(t, nor_one_without_a_set_for_its_sockets);
    tcase_add_test(t, what_the_kernel_does_not_say_is_nothing);
    tcase_add_test(t, a_timeout_may_be_longer_than_libsxe_can_count);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
