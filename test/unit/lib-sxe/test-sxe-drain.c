/* SPDX-License-Identifier: MIT
 *
 * Tests closing a socket that still has output: the output is sent first, within a time that only
 * progress extends. A lingering close also waits until the peer has ended; an abort does not wait.
 */
#include "sxe-private.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "pattern.h"
#include "test-main.h"

#define START_NS UINT64_C(1000000000000)
#define STALLED  (700 * KIB) /* more than the kernel takes for a peer that does not read */

static SXE *ours;
static int peer;

static void
open_pair(const struct sxe_config *config)
{
    fake_time_start(START_NS, START_NS);
    plan_start_with(10, config);
    ours = accept_peer(listen_tcp(push_read), &peer);
    shrink_kernel_buffers(sxe_fd(ours), peer);
}

static void
close_pair(void)
{
    close(peer);
    plan_stop();
}

/* Real acknowledgements come at any time; faked ones leave only what the kernel takes as
 * progress. */
static void
write_more_than_goes(void)
{
    fake_os_say_unacked(STALLED);
    ck_assert_int_eq(sxe_write(ours, pattern(STALLED), STALLED), 0);
    turn(5);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_WRITING);
}

static uint64_t
seconds_since_start(void)
{
    return (sxe_time_ns() - START_NS) / SXE_NS_PER_SECOND;
}

/* Run the loop for this long; only the loop makes virtual time pass. */
static void
wait_seconds(double seconds)
{
    struct sxe_timer timer;

    sxe_timer_init(&timer, push_timer, seconds, 0);
    timer.user = NULL;
    sxe_timer_start(&timer);
    while (event_count() == 0)
        ev_run(sxe_loop(), EVRUN_ONCE);
    EXPECT("timer", NULL, 0);
}

/* Expect on_close after this many seconds since the start; EXPECT alone waits for two only. */
static void
expect_close_after(uint64_t seconds, int error)
{
    while (event_count() == 0)
        ev_run(sxe_loop(), EVRUN_ONCE);
    EXPECT("close", ours, error);
    ck_assert_uint_eq(seconds_since_start(), seconds);
}

/* ---- Closing ---- */

START_TEST(close_sends_everything_first)
{
    open_pair(NULL);
    write_more_than_goes();
    ck_assert_int_eq(sxe_close(ours), 0);
    ck_assert_int_eq(sxe_close(ours), -EALREADY);
    ck_assert_int_eq(sxe_close_lingering(ours), -EALREADY);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_CLOSING);
    ck_assert_int_eq(sxe_write(ours, "x", 1), -ENOTCONN);
    EXPECT_NOTHING();
    expect_pattern(peer, STALLED);
    EXPECT("close", ours, 0);
    PEER_EXPECT_END(peer);
    close_pair();
}
END_TEST

START_TEST(a_peer_that_does_not_read_is_given_five_seconds)
{
    open_pair(NULL);
    write_more_than_goes();
    ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), 0);
    sxe_close(ours);
    while (event_count() == 0)
        ev_run(sxe_loop(), EVRUN_ONCE);
    EXPECT("sent", ours, -ETIMEDOUT);
    expect_close_after(5, ETIMEDOUT);
    close_pair();
}
END_TEST

START_TEST(progress_begins_the_time_anew)
{
    open_pair(NULL);
    write_more_than_goes();
    sxe_close(ours);
    wait_seconds(4);
    expect_pattern(peer, 300 * KIB);
    wait_seconds(4);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_CLOSING);
    expect_close_after(9, ETIMEDOUT);
    close_pair();
}
END_TEST

START_TEST(a_call_that_moves_nothing_is_no_progress)
{
    struct sxe_config config = {.timeout_ms[SXE_STATE_WRITING] = 3000};
    int error = _i == 0 ? ENOBUFS : EINTR;

    open_pair(&config);
    fake_os_fail(FAKE_SEND, 1, 0, error);
    ck_assert_int_eq(sxe_write(ours, "x", 1), 0);
    expect_close_after(3, ETIMEDOUT);
    close_pair();
}
END_TEST

START_TEST(writing_has_a_time_of_its_own_that_progress_prolongs)
{
    struct sxe_config config = {.timeout_ms[SXE_STATE_WRITING] = 3000};

    open_pair(&config);
    write_more_than_goes();
    wait_seconds(2);
    expect_pattern(peer, 300 * KIB);
    wait_seconds(2);
    expect_close_after(5, ETIMEDOUT);
    close_pair();
}
END_TEST

START_TEST(what_the_peer_sends_meanwhile_is_not_read)
{
    open_pair(NULL);
    write_more_than_goes();
    sxe_close(ours);
    peer_send(peer, "ignored", 7);
    EXPECT_NOTHING();
    expect_pattern(peer, STALLED);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(a_peer_that_resets_ends_the_draining)
{
    open_pair(NULL);
    write_more_than_goes();
    sxe_close(ours);
    peer_reset(peer);
    EXPECT("close", ours, ECONNRESET);
    plan_stop();
}
END_TEST

static void
write_and_close(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "bye", 3), 0);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_write(s, "x", 1), -ENOTCONN);
    SXE_BUF_CLEAR(s);
}

START_TEST(closing_in_the_event_that_wrote_costs_one_write)
{
    open_pair(NULL);
    fake_os_reset();
    ck_assert_int_eq(sxe_defer(ours, write_and_close), 0);
    EXPECT("close", ours, 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 1);
    PEER_EXPECT(peer, "bye");
    PEER_EXPECT_END(peer);
    close_pair();
}
END_TEST

/* Closing cancels a deferred call and a resume, but not the output's next call of the kernel. */
START_TEST(an_interrupted_write_is_tried_again_though_the_program_closed)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_defer(ours, push_deferred), 0);
    fake_os_fail(FAKE_SEND, 1, 1, EINTR);
    ck_assert_int_eq(sxe_write(ours, "bye", 3), 0);
    turn(1);
    EXPECT("deferred", ours, 0);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_IDLE);
    PEER_EXPECT(peer, "bye");
    ck_assert_int_eq(sxe_defer(ours, push_deferred), 0);
    sxe_resume(ours, SXE_RESUME_IMMEDIATE);
    ck_assert_int_eq(sxe_send(ours, "bye", 3, push_sent), 0);
    sxe_close(ours);
    EXPECT("sent", ours, 0);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

/* ---- Lingering ---- */

static void
refuse(SXE *s, int length)
{
    (void)length;
    if (sxe_write(s, pattern(STALLED), 3) == 0)
        sxe_close_lingering(s);
}

/* The peer reads the reply after it has sent everything; a reset would have destroyed the reply. */
START_TEST(a_lingering_close_outlasts_a_peer_that_goes_on_sending)
{
    open_pair(NULL);
    ours->on_read = refuse;
    peer_send(peer, pattern(PATTERN_MAX), PATTERN_MAX);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_CLOSING);
    expect_pattern(peer, 3);
    PEER_EXPECT_END(peer);
    peer_shutdown(peer);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(a_lingering_close_waits_no_longer_than_five_seconds)
{
    open_pair(NULL);
    sxe_close_lingering(ours);
    PEER_EXPECT_END(peer);
    wait_seconds(2);
    peer_send(peer, "x", 1);
    expect_close_after(5, ETIMEDOUT);
    close_pair();
}
END_TEST

START_TEST(a_lingering_close_drains_first)
{
    open_pair(NULL);
    write_more_than_goes();
    sxe_close_lingering(ours);
    peer_send(peer, pattern(MIB), MIB / 16);
    peer_shutdown(peer);
    EXPECT_NOTHING();
    fake_os_say_unacked(0);
    expect_pattern(peer, STALLED);
    PEER_EXPECT_END(peer);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

/* The half-close is queued after the output; the end of the peer must not make it drop output. */
START_TEST(after_a_shutdown_it_drains_too)
{
    open_pair(NULL);
    write_more_than_goes();
    ck_assert_int_eq(sxe_shutdown(ours), 0);
    sxe_close_lingering(ours);
    peer_shutdown(peer);
    EXPECT_NOTHING();
    fake_os_say_unacked(0);
    expect_pattern(peer, STALLED);
    PEER_EXPECT_END(peer);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(a_lingering_close_ends_with_the_peers_reset)
{
    open_pair(NULL);
    sxe_close_lingering(ours);
    PEER_EXPECT_END(peer);
    peer_reset(peer);
    EXPECT("close", ours, 0);
    plan_stop();
}
END_TEST

START_TEST(a_lingering_close_that_cannot_half_close_closes)
{
    open_pair(NULL);
    fake_os_fail(FAKE_SHUTDOWN, 1, 1, ENOTCONN);
    sxe_close_lingering(ours);
    EXPECT("close", ours, ENOTCONN);
    close_pair();
}
END_TEST

START_TEST(a_lingering_read_that_is_interrupted_goes_on)
{
    open_pair(NULL);
    sxe_close_lingering(ours);
    PEER_EXPECT_END(peer);
    fake_os_fail(FAKE_RECV, 1, 2, EINTR);
    peer_shutdown(peer);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

/* ---- Aborting ---- */

START_TEST(an_abort_drops_the_output_and_resets)
{
    open_pair(NULL);
    write_more_than_goes();
    ck_assert_int_eq(sxe_abort(ours), 0);
    ck_assert_int_eq(sxe_abort(ours), -EALREADY);
    ck_assert_int_eq(sxe_close(ours), -EALREADY);
    EXPECT("close", ours, ECONNABORTED);
    ck_assert_uint_lt(peer_receive(peer, pattern(STALLED), STALLED), STALLED);
    close_pair();
}
END_TEST

START_TEST(an_abort_drops_what_is_staged)
{
    open_pair(NULL);
    fake_os_reset();
    ck_assert_int_eq(sxe_write(ours, "never", 5), 0);
    ck_assert_int_eq(sxe_abort(ours), 0);
    EXPECT("close", ours, ECONNABORTED);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 0);
    PEER_EXPECT_RESET(peer);
    close_pair();
}
END_TEST

START_TEST(an_abort_ends_the_draining)
{
    open_pair(NULL);
    write_more_than_goes();
    sxe_close(ours);
    ck_assert_int_eq(sxe_abort(ours), 0);
    EXPECT("close", ours, ECONNABORTED);
    ck_assert_uint_lt(peer_receive(peer, pattern(STALLED), STALLED), STALLED);
    close_pair();
}
END_TEST

START_TEST(nothing_is_nothing_to_close)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_close(NULL), -EALREADY);
    ck_assert_int_eq(sxe_close_lingering(NULL), -EALREADY);
    ck_assert_int_eq(sxe_abort(NULL), -EALREADY);
    close_pair();
}
END_TEST

/* ---- The end of a connection that nobody reads ---- */

static int unix_peer;

/* Once its peer has closed, a Unix socket is reported as ended in both directions. */
static SXE *
open_unix_pair(SXE_IN_EVENT_READ read)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[32];
    SXE *listener;

    snprintf(path, sizeof(path), "@sxe-drain-%d", (int)getpid());
    plan_start(10);
    listener = sxe_new_unix(NULL, path, push_connected, read, push_close);
    ck_assert_int_eq(sxe_listen(listener), 0);
    memcpy(address.sun_path + 1, path + 1, strlen(path) - 1);
    unix_peer = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(unix_peer, (struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))),
                     0);
    return (SXE *)(uintptr_t)EXPECT("connected", NULL, 0)->object;
}

START_TEST(a_paused_socket_keeps_the_last_bytes_of_a_peer_that_is_gone)
{
    SXE *s = open_unix_pair(push_read);

    sxe_pause(s);
    peer_send(unix_peer, "last words", 10);
    close(unix_peer);
    EXPECT_NOTHING();
    sxe_resume(s, SXE_RESUME_WHEN_MORE);
    EXPECT_READ(s, "last words");
    EXPECT("close", s, 0);
    plan_stop();
}
END_TEST

START_TEST(a_paused_socket_hears_of_a_reset)
{
    open_pair(NULL);
    sxe_pause(ours);
    EXPECT_NOTHING();
    peer_reset(peer);
    EXPECT("close", ours, ECONNRESET);
    plan_stop();
}
END_TEST

START_TEST(a_paused_socket_hears_of_a_reset_behind_what_is_unread_and_a_half_close)
{
    open_pair(NULL);
    sxe_pause(ours);
    peer_send(peer, "unread", 6);
    peer_shutdown(peer);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_HANDLING);
    peer_reset(peer);
    EXPECT("close", ours, EPIPE);
    plan_stop();
}
END_TEST

START_TEST(a_paused_socket_still_answers_a_peer_that_half_closed)
{
    open_pair(NULL);
    sxe_set_half_close(ours, _i == 1);
    sxe_pause(ours);
    peer_shutdown(peer);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_write(ours, "reply", 5), 0);
    PEER_EXPECT(peer, "reply");
    EXPECT_NOTHING();
    sxe_resume(ours, SXE_RESUME_WHEN_MORE);
    if (_i == 1) {
        EXPECT("read", ours, 0);
        ck_assert_int_eq(sxe_close(ours), 0);
    }
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(a_paused_socket_hears_that_the_peer_closed_when_it_answers)
{
    open_pair(NULL);
    sxe_pause(ours);
    close(peer);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_write(ours, "reply", 5), 0);
    EXPECT("close", ours, EPIPE);
    plan_stop();
}
END_TEST

static void
resume_now(SXE *s)
{
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
}

/* The peer has ended; the loop sees that in the turn in which reading goes on. */
START_TEST(unread_bytes_are_shown_again_before_the_end)
{
    open_pair(NULL);
    sxe_set_half_close(ours, true);
    ours->on_read = push_read_keep;
    peer_send(peer, "unread", 6);
    EXPECT("read", ours, 6);
    sxe_pause(ours);
    EXPECT_NOTHING();
    peer_shutdown(peer);
    ck_assert_int_eq(sxe_defer(ours, resume_now), 0);
    EXPECT("read", ours, 6);
    EXPECT("read", ours, 0);
    ck_assert_int_eq(sxe_close(ours), 0);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(a_paused_socket_that_watches_the_end_is_shown_it)
{
    open_pair(NULL);
    sxe_set_half_close(ours, true);
    sxe_watch_end(ours, true);
    if (_i == 0) { /* the end of the peer comes before the pause */
        peer_send(peer, "unread", 6);
        peer_shutdown(peer);
        EXPECT("read", ours, 6);
        sxe_pause(ours);
        EXPECT("read", ours, -1);
    } else {
        sxe_pause(ours);
        EXPECT_NOTHING();
        peer_send(peer, "unread", 6);
        peer_shutdown(peer);
        EXPECT("read", ours, -1);
    }
    sxe_watch_end(ours, false);
    EXPECT_NOTHING();
    sxe_watch_end(ours, true); /* epoll has reported the end already */
    EXPECT("read", ours, -1);
    sxe_watch_end(ours, true);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_close(ours), 0);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(when_both_have_ended_the_connection_is_over)
{
    open_pair(NULL);
    sxe_set_half_close(ours, true);
    peer_shutdown(peer);
    EXPECT("read", ours, 0);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_shutdown(ours), 0);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

static Suite *
drain_suite(void)
{
    Suite *suite = suite_create("sxe drain");
    TCase *closing = tcase_create("closing");

    tcase_add_test(closing, close_sends_everything_first);
    tcase_add_test(closing, a_peer_that_does_not_read_is_given_five_seconds);
    tcase_add_test(closing, progress_begins_the_time_anew);
    tcase_add_loop_test(closing, a_call_that_moves_nothing_is_no_progress, 0, 2);
    tcase_add_test(closing, writing_has_a_time_of_its_own_that_progress_prolongs);
    tcase_add_test(closing, what_the_peer_sends_meanwhile_is_not_read);
    tcase_add_test(closing, a_peer_that_resets_ends_the_draining);
    tcase_add_test(closing, closing_in_the_event_that_wrote_costs_one_write);
    tcase_add_test(closing, an_interrupted_write_is_tried_again_though_the_program_closed);
    tcase_add_test(closing, a_lingering_close_outlasts_a_peer_that_goes_on_sending);
    tcase_add_test(closing, a_lingering_close_waits_no_longer_than_five_seconds);
    tcase_add_test(closing, a_lingering_close_drains_first);
    tcase_add_test(closing, after_a_shutdown_it_drains_too);
    tcase_add_test(closing, a_lingering_close_ends_with_the_peers_reset);
    tcase_add_test(closing, a_lingering_close_that_cannot_half_close_closes);
    tcase_add_test(closing, a_lingering_read_that_is_interrupted_goes_on);
    tcase_add_test(closing, an_abort_drops_the_output_and_resets);
    tcase_add_test(closing, an_abort_drops_what_is_staged);
    tcase_add_test(closing, an_abort_ends_the_draining);
    tcase_add_test(closing, nothing_is_nothing_to_close);
    tcase_add_test(closing, a_paused_socket_keeps_the_last_bytes_of_a_peer_that_is_gone);
    tcase_add_test(closing, a_paused_socket_hears_of_a_reset);
    tcase_add_test(closing,
                   a_paused_socket_hears_of_a_reset_behind_what_is_unread_and_a_half_close);
    tcase_add_loop_test(closing, a_paused_socket_still_answers_a_peer_that_half_closed, 0, 2);
    tcase_add_test(closing, a_paused_socket_hears_that_the_peer_closed_when_it_answers);
    tcase_add_test(closing, unread_bytes_are_shown_again_before_the_end);
    tcase_add_loop_test(closing, a_paused_socket_that_watches_the_end_is_shown_it, 0, 2);
    tcase_add_test(closing, when_both_have_ended_the_connection_is_over);
    suite_add_tcase(suite, closing);
    return suite;
}

int
main(void)
{
    return sxe_test_main(drain_suite());
}
