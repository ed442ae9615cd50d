/* SPDX-License-Identifier: MIT
 *
 * A worker whose queries arrive at a rate: when each is sent, which ones wait or are skipped, and
 * the client's own lateness.
 */
#include "http-world.h"

static void
in_1_ms(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, MS(1), OK);
}

/* 100 fixed arrivals a second for 95 ms: at 0, 10 ... 90 ms. */
static void
make_paced_world(enum load_model model)
{
    make_world();
    world.plan.model = model;
    world.plan.stop = LOAD_STOP_TIME;
    world.plan.duration_ns = MS(95);
    world.plan.rate = world.plan.rate_end = 100;
    world.plan.sockets = 4;
}

START_TEST(queries_arrive_to_the_nanosecond)
{
    make_paced_world(_i == 0 ? LOAD_PARTLY_OPEN : LOAD_OPEN);
    world.serve = in_1_ms;
    run_world();

    expect_all_ok(10);
    ck_assert_uint_eq(world.result->offered, 10);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(world.arrived_ns[i], MS(10 * i));
    ck_assert_uint_eq(world.result->response.max_ns, MS(1));
    ck_assert_uint_eq(world.result->schedule_lag.count, 10);
    ck_assert_uint_eq(world.result->schedule_lag.max_ns, 0);
    ck_assert_uint_eq(world.result->timer_error.count, 10);
    ck_assert_uint_eq(world.result->timer_error.max_ns, 0);
    ck_assert_uint_eq(world.result->late, 0);
    ck_assert_uint_eq(world.result->elapsed_ns, MS(95));
}
END_TEST

/* How many queries each client got. A query goes to the connection that has been idle for
 * longest. */
static unsigned served[4];

static void
note_client(unsigned client, unsigned query)
{
    (void)query;
    served[client]++;
    answer(client, OK);
}

START_TEST(queries_go_round_the_sockets)
{
    make_paced_world(LOAD_OPEN);
    world.plan.duration_ns = MS(115);
    world.serve = note_client;
    run_world();
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(served[i], 3);
}
END_TEST

START_TEST(with_pipelining_too)
{
    make_paced_world(LOAD_OPEN);
    world.plan.depth = 3;
    world.plan.drain_ns = 0;
    world.plan.duration_ns = MS(115);
    world.serve = never;
    run_world();
    expect_ends(0, LOAD_END_UNANSWERED, 12);
    ck_assert_uint_eq(world.queries, 12);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_BUSY], 4);
}
END_TEST

/* ---- Timers and turns of the loop for arrivals ---- */

/* 50,000 arrivals a second, each 20 us: the loop never sleeps between them. */
START_TEST(what_arrives_soon_costs_no_timer)
{
    make_paced_world(LOAD_OPEN);
    fake_time_poll_ns = US(1);
    world.plan.rate = world.plan.rate_end = 50000;
    world.plan.duration_ns = MS(2);
    run_world();

    expect_all_ok(100);
    ck_assert_uint_le(fake_os_calls(FAKE_TIMERFD_SETTIME), 5);
    /* Time spent spinning counts neither as load nor as a turn that could delay anything. */
    ck_assert_uint_ge(world.result->spun_ns, MS(1));
    ck_assert_uint_le(world.result->spun_ns, MS(2));
    ck_assert_uint_le(world.result->loop_lag.count, 250);
    ck_assert_uint_eq(world.result->late, 0);
    ck_assert_uint_le(world.result->timer_error.max_ns, US(1));
}
END_TEST

/* 100 arrivals a second: the timer is set once for each, and hardly any turn does not wait. */
START_TEST(what_arrives_late_is_slept_for)
{
    make_paced_world(LOAD_OPEN);
    fake_time_poll_ns = US(1);
    run_world();

    expect_all_ok(10);
    ck_assert_uint_le(fake_os_calls(FAKE_TIMERFD_SETTIME), 15);
    ck_assert_uint_le(fake_os_calls(FAKE_EPOLL_WAIT), 200);
    ck_assert_uint_le(world.result->spun_ns, US(100));
}
END_TEST

/* A query that is due is sent right after a reply; no timer is set for it. */
START_TEST(what_was_sent_after_a_reply_is_no_late_tick)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    fake_time_poll_ns = US(1);
    world.plan.sockets = 1;
    world.serve = in_20_ms;
    run_world();
    ck_assert_uint_eq(world.result->timer_error.max_ns, 0);
}
END_TEST

/* If the client stands still while it spins, that is noticed. */
static void
stand_still(void)
{
    fake_time_advance(MS(150));
}

static void
stand_still_in_a_spin(void)
{
    call_at(US(410), stand_still);
}

START_TEST(a_client_that_stands_still_while_it_spins_is_seen)
{
    make_paced_world(LOAD_OPEN);
    fake_time_poll_ns = US(1);
    world.plan.rate = world.plan.rate_end = 25000;
    on_go = stand_still_in_a_spin;
    run_world();
    ck_assert_uint_ge(world.result->timer_error.max_ns, MS(149));
    ck_assert_uint_le(world.result->spun_ns, MS(1));
}
END_TEST

/* ---- No socket is free ---- */

START_TEST(one_that_finds_no_socket_waits_and_its_response_counts_from_its_arrival)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.sockets = 1;
    world.plan.stop = LOAD_STOP_TOTAL;
    world.plan.requests_max = 4;
    world.serve = in_20_ms;
    run_world();

    /* Arrivals at 0, 10, 20 and 30 ms are sent at 0, 20, 40 and 60 ms. */
    expect_all_ok(4);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(world.arrived_ns[i], MS(20 * i));
    ck_assert_uint_eq(world.result->service.max_ns, MS(20));
    ck_assert_uint_eq(world.result->response.sum_ns, MS(20 + 30 + 40 + 50));
    ck_assert_uint_eq(world.result->late, 3);
    /* Only the first of them found a free connection. */
    ck_assert_uint_eq(world.result->schedule_lag.count, 1);
}
END_TEST

static void
nothing_but_the_first(unsigned client, unsigned query)
{
    if (query == 0)
        answer(client, OK);
}

START_TEST(those_that_wait_at_the_end_were_not_sent)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.sockets = 1;
    world.plan.drain_ns = MS(10);
    world.serve = nothing_but_the_first;
    run_world();

    ck_assert_uint_eq(world.result->offered, 10);
    ck_assert_uint_eq(world.result->sent, 2);
    ck_assert_uint_eq(world.result->ends[LOAD_END_UNANSWERED], 1);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 8);
}
END_TEST

START_TEST(open_queries_wait_for_nothing)
{
    make_paced_world(LOAD_OPEN);
    world.plan.sockets = 1;
    world.serve = in_20_ms;
    run_world();

    /* The reply to the query at 0 comes at 20 ms, when the third query arrives; either may be
     * handled first. */
    ck_assert_uint_eq(world.result->offered, 10);
    ck_assert_uint_ge(world.result->skipped[LOAD_SKIP_NO_SOCKET], 5);
    ck_assert_uint_eq(world.result->sent + world.result->skipped[LOAD_SKIP_NO_SOCKET], 10);
    ck_assert_uint_eq(world.result->response.max_ns, MS(20));
}
END_TEST

static void
in_35_ms(unsigned client, unsigned query)
{
    (void)query;
    answer_in(client, MS(35), OK);
}

START_TEST(one_past_its_deadline_is_shed)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.sockets = 1;
    world.plan.deadline_ns = MS(12);
    world.serve = in_35_ms;
    run_world();

    /* Sent at 0, 35 (arrived at 30), 70 (arrived at 60, 10 late); others waited too long. */
    ck_assert_uint_eq(world.result->offered, 10);
    ck_assert_uint_eq(world.arrived_ns[1], MS(35));
    ck_assert_uint_eq(world.arrived_ns[2], MS(70));
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_SHED], 6);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 1);
    expect_all_ok(3);
}
END_TEST

static void
look_at_shed(void)
{
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_SHED], 3);
}

static void
look_at_50_ms(void)
{
    call_at(MS(50), look_at_shed);
}

START_TEST(it_is_shed_when_its_deadline_is_over_not_when_a_socket_is_free)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.sockets = 1;
    world.plan.deadline_ns = MS(12);
    world.serve = never;
    on_go = look_at_50_ms;
    run_world();
    ck_assert_uint_eq(world.result->offered, 10);
}
END_TEST

static void
look_at_waiting(void)
{
    ck_assert_uint_eq(world.mark->offered, 6);
    ck_assert_uint_eq(world.mark->waiting, 5);
    ck_assert_ptr_null(load_result_check(world.mark));
}

static void
mark_at_55_ms(void)
{
    tell_at(MS(55), LOAD_MESSAGE_MARK);
    call_at(MS(56), look_at_waiting);
}

START_TEST(those_that_wait_are_offered_already_in_a_mark)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.sockets = 1;
    world.serve = never;
    on_go = mark_at_55_ms;
    run_world();
    ck_assert_uint_eq(world.marked, 1);
    ck_assert_uint_eq(world.result->offered, 10);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 9);
}
END_TEST

/* The client sleeps while two queries arrive. */
static void
sleep_once(unsigned client, unsigned query)
{
    if (query == 1)
        fake_time_advance(MS(25));
    answer(client, OK);
}

START_TEST(lateness_of_the_client_is_seen)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.serve = sleep_once;
    run_world();

    /* The arrivals at 20 and 30 ms are sent at 35 ms. */
    expect_all_ok(10);
    ck_assert_uint_eq(world.result->late, 2);
    ck_assert_uint_eq(world.result->schedule_lag.count, 10);
    ck_assert_uint_eq(world.result->schedule_lag.max_ns, MS(15));
    ck_assert_uint_eq(world.result->timer_error.max_ns, MS(15));
}
END_TEST

/* ---- Far too many arrivals ---- */

static uint64_t
offered_in_slices(void)
{
    const struct load_timeline *timeline = &world.result->timeline;
    uint64_t sum = 0;

    for (unsigned i = 0; i < timeline->used; i++)
        sum += timeline->slices[i].offered;
    return sum;
}

START_TEST(what_nobody_could_send_is_counted_at_once)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.rate = world.plan.rate_end = 1e9;
    world.plan.duration_ns = SECONDS(3);
    world.serve = never;
    run_world();

    ck_assert_uint_eq(world.result->offered, SECONDS(3));
    ck_assert_uint_eq(world.result->sent, 4);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], SECONDS(3) - 4);
    ck_assert_uint_eq(offered_in_slices(), SECONDS(3));
}
END_TEST

START_TEST(a_slice_has_no_more_than_it_can_count)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.rate = world.plan.rate_end = 1e15;
    world.serve = never;
    run_world();

    ck_assert_uint_ge(world.result->offered, UINT64_C(90000000000000));
    ck_assert_uint_eq(world.result->timeline.slices[3].offered, UINT32_MAX);
}
END_TEST

/* Most queries arrive while the client sleeps; the reply comes before it wakes up. */
static void
sleep_for_5_ms(unsigned client, unsigned query)
{
    ssize_t n = __real_send(world.clients[client].fd, OK, strlen(OK), MSG_NOSIGNAL);

    ck_assert_int_eq(n, strlen(OK));
    if (query == 0)
        fake_time_advance(MS(5));
}

START_TEST(however_many_arrive_replies_are_read_in_between)
{
    make_paced_world(LOAD_OPEN);
    world.plan.rate = world.plan.rate_end = 1e6;
    world.plan.duration_ns = MS(6);
    world.plan.sockets = 1;
    world.serve = sleep_for_5_ms;
    run_world();

    ck_assert_uint_eq(world.result->offered, 6000);
    /* When the connection was free again, further queries were due. */
    ck_assert_uint_ge(world.result->late, 1);
}
END_TEST

/* ---- Other stop rules ---- */

START_TEST(each_socket_may_have_its_number_of_arrivals)
{
    make_paced_world(LOAD_OPEN);
    world.plan.stop = LOAD_STOP_PER_SOCKET;
    world.plan.queries = 2;
    run_world();
    expect_all_ok(8);
    ck_assert_uint_eq(world.result->in_state[LOAD_SOCKET_DONE], 4);
}
END_TEST

START_TEST(the_source_may_end_the_arrivals)
{
    make_paced_world(LOAD_OPEN);
    world.next = three_only;
    run_world();
    expect_all_ok(3);
    ck_assert_uint_eq(world.result->offered, 4);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 1);
}
END_TEST

/* ---- Rates ---- */

static void
set_rate(void)
{
    struct load_message message = {.type = LOAD_MESSAGE_RATE, .u.rate = 1000};

    act_at((struct act){.at_ns = world.started_ns + MS(52), .what = TELL, .message = message});
}

START_TEST(the_rate_may_change)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    on_go = set_rate;
    run_world();

    /* Arrivals at 0, 10 ... 60 ms, then each ms. */
    ck_assert_uint_eq(world.marked, 1);
    ck_assert_uint_eq(world.mark->offered, 6);
    ck_assert_uint_eq(world.arrived_ns[6], MS(60));
    ck_assert_uint_eq(world.arrived_ns[7], MS(61));
    expect_all_ok(6 + 35);
}
END_TEST

START_TEST(a_rate_of_nothing_may_become_one)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.rate = world.plan.rate_end = 0;
    on_go = set_rate;
    run_world();
    ck_assert_uint_ge(world.result->ends[LOAD_END_OK], 42);
    ck_assert_uint_le(world.result->ends[LOAD_END_OK], 43);
}
END_TEST

START_TEST(what_waits_is_given_up_when_the_rate_changes)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    world.plan.sockets = 1;
    world.serve = never;
    world.plan.drain_ns = 0;
    on_go = set_rate;
    run_world();
    ck_assert_uint_eq(world.mark->waiting, 0);
    ck_assert_uint_eq(world.mark->skipped[LOAD_SKIP_UNSENT], 5);
    ck_assert_uint_eq(world.result->sent, 1);
}
END_TEST

/* Stop the arrivals at 52 ms, and go on at 80 ms with 1,000 a second. */
static void
pause_and_go_on(void)
{
    struct load_message message = {.type = LOAD_MESSAGE_RATE, .u.rate = 0};

    act_at((struct act){.at_ns = world.started_ns + MS(52), .what = TELL, .message = message});
    message.u.rate = 1000;
    act_at((struct act){.at_ns = world.started_ns + MS(80), .what = TELL, .message = message});
}

START_TEST(nothing_arrives_in_a_pause)
{
    make_paced_world(LOAD_PARTLY_OPEN);
    on_go = pause_and_go_on;
    run_world();
    ck_assert_uint_eq(world.marked, 2);
    ck_assert_uint_eq(world.mark->offered, 6);
    ck_assert_uint_eq(world.arrived_ns[5], MS(50));
    ck_assert_uint_ge(world.arrived_ns[6], MS(80));
    ck_assert_uint_le(world.arrived_ns[6], MS(81));
}
END_TEST

START_TEST(a_closed_loop_has_no_rate)
{
    make_world();
    world.plan.queries = 10;
    world.serve = in_20_ms;
    on_go = set_rate;
    run_world();
    expect_all_ok(10);
    ck_assert_uint_eq(world.marked, 1);
}
END_TEST

/* ---- A replayed log ---- */

static const uint64_t times_ns[] = {MS(0), MS(5), MS(5), MS(70), SECONDS(100), SECONDS(100)};

START_TEST(a_log_is_replayed_at_its_own_times)
{
    make_world();
    world.shard = (unsigned)_i;
    world.shards = 2;
    world.plan.sockets = 8;
    world.plan.stop = LOAD_STOP_REPLAY;
    world.plan.model = LOAD_PARTLY_OPEN;
    world.requests.number = 6;
    world.requests.times_ns = times_ns;
    on_go = set_rate;
    run_world();

    expect_all_ok(3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(world.sequences[i], 2 * i + (unsigned)_i);
        ck_assert_uint_eq(world.arrived_ns[i], times_ns[2 * i + (unsigned)_i]);
    }
    ck_assert_uint_eq(world.result->elapsed_ns, SECONDS(100));
}
END_TEST

START_TEST(an_entry_that_is_skipped_is_not_asked_for)
{
    make_world();
    world.plan.stop = LOAD_STOP_REPLAY;
    world.plan.model = LOAD_OPEN;
    world.requests.number = 6;
    world.requests.times_ns = times_ns;
    world.serve = in_20_ms;
    run_world();

    ck_assert_uint_eq(world.result->offered, 6);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_NO_SOCKET], 3);
    ck_assert_uint_eq(world.sequences[0], 0);
    ck_assert_uint_eq(world.sequences[1], 3);
    ck_assert_uint_eq(world.sequences[2], 4);
}
END_TEST

/* ---- Delays ---- */

static int
with_a_delay(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    query->delay_ns = sequence == 1 ? SECONDS(3) : MS(5);
    return 0;
}

START_TEST(a_delay_is_added_to_the_arrival_and_what_it_holds_back_was_not_sent)
{
    make_paced_world(LOAD_OPEN);
    world.plan.sockets = 2;
    world.plan.duration_ns = MS(26);
    world.next = with_a_delay;
    run_world();

    ck_assert_uint_eq(world.arrived_ns[0], MS(5));
    ck_assert_uint_eq(world.arrived_ns[1], MS(25));
    ck_assert_uint_eq(world.result->offered, 3);
    ck_assert_uint_eq(world.result->response.max_ns, 0);
    expect_all_ok(2);
    ck_assert_uint_eq(world.result->skipped[LOAD_SKIP_UNSENT], 1);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-pace");
    TCase *t = tcase_create("arrivals");

    tcase_add_loop_test(t, queries_arrive_to_the_nanosecond, 0, 2);
    tcase_add_test(t, queries_go_round_the_sockets);
    tcase_add_test(t, with_pipelining_too);
    tcase_add_test(t, what_arrives_soon_costs_no_timer);
    tcase_add_test(t, what_arrives_late_is_slept_for);
    tcase_add_test(t, what_was_sent_after_a_reply_is_no_late_tick);
    tcase_add_test(t, a_client_that_stands_still_while_it_spins_is_seen);
    tcase_add_test(t, one_that_finds_no_socket_waits_and_its_response_counts_from_its_arrival);
    tcase_add_test(t, those_that_wait_at_the_end_were_not_sent);
    tcase_add_test(t, open_queries_wait_for_nothing);
    tcase_add_test(t, one_past_its_deadline_is_shed);
    tcase_add_test(t, it_is_shed_when_its_deadline_is_over_not_when_a_socket_is_free);
    tcase_add_test(t, those_that_wait_are_offered_already_in_a_mark);
    tcase_add_test(t, lateness_of_the_client_is_seen);
    tcase_add_test(t, what_nobody_could_send_is_counted_at_once);
    tcase_add_test(t, a_slice_has_no_more_than_it_can_count);
    tcase_add_test(t, however_many_arrive_replies_are_read_in_between);
    tcase_add_test(t, each_socket_may_have_its_number_of_arrivals);
    tcase_add_test(t, the_source_may_end_the_arrivals);
    suite_add_tcase(s, t);
    t = tcase_create("rates");
    tcase_add_test(t, the_rate_may_change);
    tcase_add_test(t, a_rate_of_nothing_may_become_one);
    tcase_add_test(t, what_waits_is_given_up_when_the_rate_changes);
    tcase_add_test(t, nothing_arrives_in_a_pause);
    tcase_add_test(t, a_closed_loop_has_no_rate);
    suite_add_tcase(s, t);
    t = tcase_create("logs and delays");
    tcase_add_loop_test(t, a_log_is_replayed_at_its_own_times, 0, 2);
    tcase_add_test(t, an_entry_that_is_skipped_is_not_asked_for);
    tcase_add_test(t, a_delay_is_added_to_the_arrival_and_what_it_holds_back_was_not_sent);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
