/* SPDX-License-Identifier: MIT
 *
 * Tests timeouts of states with a virtual clock: each ends after its time, not earlier, even when
 * the wall clock is set.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sxe-private.h"

#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "test-main.h"

#define SECOND  ((int64_t)SXE_NS_PER_SECOND)
#define HOUR    (3600 * SECOND)
#define TIMEOUT 60 /* seconds of the state under test; other states have no timeout */
#define UNREAD  2000000

static int peers[3]; /* -1: this peer is not open */
static SXE *s;
static uint64_t began;
static char output[UNREAD];

static void
start(enum sxe_state state, uint32_t timeout_ms)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    peers[0] = peers[1] = peers[2] = -1;
    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    config.timeout_ms[state] = timeout_ms;
    config.chunks = state == SXE_STATE_STARVED ? 1 : 0;
    plan_start_with(5, &config);
}

static void
end(void)
{
    for (unsigned i = 0; i < 3; i++)
        if (peers[i] >= 0)
            close(peers[i]);
    event_reset();
    plan_stop();
}

/* ---- Bringing the socket s into a state ---- */

static SXE *
new_socket(void)
{
    return sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, push_read_keep, push_close);
}

/* Connect to a listener whose queue is full, so that nothing answers. */
static void
connect_into_the_void(void)
{
    unsigned short port;

    peers[0] = peer_listen(&port);
    ck_assert_int_eq(listen(peers[0], 0), 0);
    peers[1] = peer_connect(port);
    s = new_socket();
    ck_assert_int_eq(sxe_connect(s, "127.0.0.1", port), 0);
}

/* send(2) accepts nothing, and the number of unacknowledged bytes is faked: real acknowledgements
 * come at any time, and would count as progress. */
static void
write_too_much(void)
{
    fake_os_fail(FAKE_SEND, 1, 0, EAGAIN);
    fake_os_say_unacked(UNREAD);
    ck_assert_int_eq(sxe_send(s, output, sizeof(output), NULL), 0);
    turn(2);
}

static void
let_unread(SXE *reader, int peer)
{
    peer_send(peer, "unread", 6);
    EXPECT_READ(reader, "unread");
}

static void
starve(void)
{
    SXE *listener = listen_tcp(push_read_keep);
    SXE *holder = accept_peer(listener, &peers[0]);

    s = accept_peer(listener, &peers[1]);
    let_unread(holder, peers[0]);
    let_unread(s, peers[1]);
}

static void
bring_into(enum sxe_state state)
{
    if (state == SXE_STATE_CONNECTING) {
        connect_into_the_void();
    } else if (state == SXE_STATE_STARVED) {
        starve();
    } else if (state <= SXE_STATE_LISTENING) {
        s = new_socket();
        if (state == SXE_STATE_LISTENING)
            ck_assert_int_eq(sxe_listen(s), 0);
    } else {
        s = accept_peer(listen_tcp(push_read_keep), &peers[0]);
        if (state == SXE_STATE_READING)
            let_unread(s, peers[0]);
        else if (state == SXE_STATE_HANDLING)
            sxe_pause(s);
        else if (state != SXE_STATE_IDLE)
            write_too_much();
        if (state == SXE_STATE_CLOSING)
            ck_assert_int_eq(sxe_close(s), 0);
    }
    ck_assert_int_eq(sxe_get_state(s), state);
    began = sxe_pool_get_time(CONTEXT->sockets, SXE_ID(s));
}

/* ---- Expecting the timeout ---- */

static double
elapsed(void)
{
    return (double)(int64_t)(sxe_time_ns() - began) / (double)SXE_NS_PER_SECOND;
}

/* Run the loop until s is gone, moving the wall clock by wall_step in each turn. That must take
 * `seconds`, and at most 10 ms more. */
static void
expect_end_at(double seconds, int64_t wall_step)
{
    for (unsigned i = 0; sxe_get_state(s) != SXE_STATE_FREE && i < 10000; i++) {
        ck_assert_double_le(elapsed(), seconds + 0.010);
        fake_time_step_wall(wall_step);
        ev_run(sxe_loop(), EVRUN_ONCE);
    }
    ck_assert_double_ge(elapsed(), seconds);
    ck_assert_double_le(elapsed(), seconds + 0.010);
}

/* Let `seconds` pass; s must still be in the same state. */
static void
wait_in_vain(int64_t seconds)
{
    enum sxe_state state = sxe_get_state(s);

    for (int64_t i = 0; i < seconds * 10; i++) {
        fake_time_advance((uint64_t)SECOND / 10);
        turn(1);
    }
    ck_assert_int_eq(sxe_get_state(s), state);
}

static const enum sxe_state states[] = {
    SXE_STATE_NEW,     SXE_STATE_LISTENING, SXE_STATE_CONNECTING,
    SXE_STATE_IDLE,    SXE_STATE_READING,   SXE_STATE_HANDLING,
    SXE_STATE_WRITING, SXE_STATE_STARVED,   SXE_STATE_CLOSING,
};
#define STATES_NUMBER ((int)(sizeof(states) / sizeof(states[0])))

START_TEST(each_state_ends_after_its_time_and_not_before)
{
    const int64_t wall_steps[] = {0, HOUR, -HOUR};
    const uint32_t timeouts_ms[] = {100, TIMEOUT * 1000, 3600 * 1000};
    enum sxe_state state = states[_i / 9];
    uint32_t timeout_ms = timeouts_ms[_i % 3];

    start(state, timeout_ms);
    bring_into(state);
    event_reset();
    expect_end_at(timeout_ms / 1000.0, wall_steps[_i / 3 % 3]);
    if (state > SXE_STATE_LISTENING)
        EXPECT("close", s, ETIMEDOUT);
    end();
}
END_TEST

/* The library must not end the connection with FIN: that would make the part look complete, and the
 * kernel would keep megabytes of output for a peer that does not read. */
START_TEST(a_peer_that_did_not_get_all_is_reset)
{
    const enum sxe_state with_output[] = {SXE_STATE_WRITING, SXE_STATE_CLOSING};

    start(with_output[_i], TIMEOUT * 1000);
    bring_into(with_output[_i]);
    event_reset();
    expect_end_at(TIMEOUT, 0);
    EXPECT("close", s, ETIMEDOUT);
    ck_assert_int_eq(peer_drain(peers[0]), ECONNRESET);
    end();
}
END_TEST

START_TEST(a_peer_that_got_all_sees_an_orderly_end)
{
    start(SXE_STATE_IDLE, TIMEOUT * 1000);
    bring_into(SXE_STATE_IDLE);
    event_reset();
    expect_end_at(TIMEOUT, 0);
    EXPECT("close", s, ETIMEDOUT);
    ck_assert_int_eq(peer_drain(peers[0]), 0);
    end();
}
END_TEST

START_TEST(without_a_timeout_a_state_lasts)
{
    if (states[_i] == SXE_STATE_CLOSING)
        return;
    start(states[_i], 0);
    bring_into(states[_i]);
    event_reset();
    /* TCP itself gives up connecting, by its own real clock. */
    wait_in_vain(states[_i] == SXE_STATE_CONNECTING ? 100 : 1000);
    end();
}
END_TEST

START_TEST(timeouts_of_states_that_end_nothing_are_ignored)
{
    struct sxe_config config = SXE_CONFIG_DEFAULT;

    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    config.timeout_ms[SXE_STATE_FREE] = 10;
    config.timeout_ms[SXE_STATE_CLOSED] = 10;
    plan_start_with(2, &config);
    s = new_socket();
    wait_in_vain(5);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 1);
    plan_stop();
}
END_TEST

/* ---- Timeouts that start again ---- */

START_TEST(idle_begins_anew_with_what_is_read_or_written)
{
    start(SXE_STATE_IDLE, TIMEOUT * 1000);
    s = accept_peer(listen_tcp(push_read), &peers[0]);
    for (unsigned i = 0; i < 3; i++) {
        wait_in_vain(TIMEOUT - 5);
        began = sxe_time_ns();
        if (_i == 0) {
            peer_send(peers[0], "x", 1);
            EXPECT_READ(s, "x");
        } else {
            ck_assert_int_eq(sxe_write(s, "x", 1), 0);
            PEER_EXPECT(peers[0], "x");
        }
    }
    expect_end_at(TIMEOUT, 0);
    EXPECT("close", s, ETIMEDOUT);
    end();
}
END_TEST

START_TEST(reading_does_not_begin_anew)
{
    start(SXE_STATE_READING, TIMEOUT * 1000);
    bring_into(SXE_STATE_READING);
    for (unsigned i = 0; i < TIMEOUT - 1; i++) {
        wait_in_vain(1);
        peer_send(peers[0], "x", 1);
        EXPECT("read", s, 1);
        /* An early answer must not extend the time for reading the request. */
        ck_assert_int_eq(sxe_send(s, "y", 1, NULL), 0);
        PEER_EXPECT(peers[0], "y");
    }
    expect_end_at(TIMEOUT, 0);
    EXPECT("close", s, ETIMEDOUT);
    end();
}
END_TEST

START_TEST(each_message_is_read_in_a_time_of_its_own)
{
    start(SXE_STATE_READING, TIMEOUT * 1000);
    bring_into(SXE_STATE_READING);
    for (unsigned i = 0; i < 5; i++) {
        wait_in_vain(TIMEOUT - 5);
        SXE_BUF_CLEAR(s);
        wait_in_vain(TIMEOUT * 2);
        began = sxe_time_ns();
        let_unread(s, peers[0]);
    }
    expect_end_at(TIMEOUT, 0);
    EXPECT("close", s, ETIMEDOUT);
    end();
}
END_TEST

START_TEST(consuming_some_begins_reading_anew)
{
    start(SXE_STATE_READING, TIMEOUT * 1000);
    bring_into(SXE_STATE_READING);
    for (unsigned i = 0; i < 5; i++) {
        wait_in_vain(TIMEOUT - 5);
        began = sxe_time_ns();
        sxe_consume(s, 1);
    }
    expect_end_at(TIMEOUT, 0);
    EXPECT("close", s, ETIMEDOUT);
    end();
}
END_TEST

/* ---- Others ---- */

START_TEST(of_many_each_ends_at_its_own_time)
{
    enum { MANY = 50 };
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    SXE *many[MANY];

    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    config.timeout_ms[SXE_STATE_NEW] = TIMEOUT * 1000;
    plan_start_with(MANY, &config);
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = new_socket();
        fake_time_advance((uint64_t)SECOND);
        turn(1);
    }
    fake_time_advance((TIMEOUT - MANY) * (uint64_t)SECOND);
    for (unsigned i = 0; i < MANY; i++) {
        turn(2);
        ck_assert_int_eq(sxe_get_state(many[i]), SXE_STATE_FREE);
        ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), i + 1);
        fake_time_advance((uint64_t)SECOND);
    }
    plan_stop();
}
END_TEST

enum { ABSENT, PRESENT, JOB_STATES };

static void
push_job(void *jobs, unsigned id, void *user)
{
    event_push("job", user, (long)id);
    sxe_pool_move(jobs, id, PRESENT, ABSENT);
}

START_TEST(the_loop_serves_the_timeouts_of_the_programs_pools)
{
    double timeouts[JOB_STATES] = {0, TIMEOUT};
    int *jobs;

    fake_time_start(1000 * SECOND, 1000000 * SECOND);
    plan_start(1);
    jobs = sxe_pool_new_with_timeouts("jobs", 3, sizeof(*jobs), JOB_STATES, timeouts, push_job,
                                      &timeouts);
    ck_assert_ptr_nonnull(jobs);
    began = sxe_time_ns();
    sxe_pool_move(jobs, 1, ABSENT, PRESENT);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_double_ge(elapsed(), TIMEOUT);
    ck_assert_double_le(elapsed(), TIMEOUT + 0.01);
    EXPECT("job", &timeouts, 1);
    plan_stop();
    sxe_pool_delete(jobs);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-timeout");
    TCase *ends = tcase_create("ends");
    TCase *again = tcase_create("again");
    TCase *others = tcase_create("others");

    tcase_add_loop_test(ends, each_state_ends_after_its_time_and_not_before, 0, STATES_NUMBER * 9);
    tcase_add_loop_test(ends, a_peer_that_did_not_get_all_is_reset, 0, 2);
    tcase_add_test(ends, a_peer_that_got_all_sees_an_orderly_end);
    tcase_add_loop_test(ends, without_a_timeout_a_state_lasts, 0, STATES_NUMBER);
    tcase_add_test(ends, timeouts_of_states_that_end_nothing_are_ignored);
    suite_add_tcase(suite, ends);
    tcase_add_loop_test(again, idle_begins_anew_with_what_is_read_or_written, 0, 2);
    tcase_add_test(again, reading_does_not_begin_anew);
    tcase_add_test(again, each_message_is_read_in_a_time_of_its_own);
    tcase_add_test(again, consuming_some_begins_reading_anew);
    suite_add_tcase(suite, again);
    tcase_add_test(others, of_many_each_ends_at_its_own_time);
    tcase_add_test(others, the_loop_serves_the_timeouts_of_the_programs_pools);
    suite_add_tcase(suite, others);
    return sxe_test_main(suite);
}
