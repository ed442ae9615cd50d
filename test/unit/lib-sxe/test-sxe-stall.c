/* SPDX-License-Identifier: MIT
 *
 * Tests a peer that reads slowly: bytes that it acknowledges are progress, even while the kernel
 * takes no more output. Real acknowledgements come at any time, so the test fakes a kernel that
 * takes nothing and its count of unacknowledged bytes. For a Unix socket both are real; they change
 * when the peer reads.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sxe-private.h"

#include "fake-os.h"
#include "fake-time.h"
#include "pair.h"
#include "test-main.h"

#define SECOND   ((uint64_t)SXE_NS_PER_SECOND)
#define START_NS (1000 * SECOND)
#define TIMEOUT  3 /* seconds */
#define UNACKED  1000
#define LENGTH   (2 * MIB) /* more than the kernel takes */

static const struct sxe_config config = {
    .timeout_ms = {[SXE_STATE_WRITING] = TIMEOUT * 1000, [SXE_STATE_CLOSING] = TIMEOUT * 1000},
};

static uint64_t began;
static int file = -1;

static void
start(void)
{
    fake_time_start(START_NS, START_NS);
    open_pair(&config);
    fake_os_fail(FAKE_SEND, 1, 0, EAGAIN);
    fake_os_fail(FAKE_SENDMSG, 1, 0, EAGAIN);
    fake_os_fail(FAKE_SENDFILE, 1, 0, EAGAIN);
    fake_os_say_unacked(UNACKED);
}

static void
stop(void)
{
    if (file >= 0)
        close(file);
    close_pair();
}

enum kind { BYTES, LENT, OF_A_FILE, CLOSED, KINDS };

/* Write more than the kernel takes, so that the socket is in a state that waits for the peer. */
static void
write_too_much(enum kind kind)
{
    if (kind == OF_A_FILE) {
        file = pattern_file(LENGTH);
        ck_assert_int_eq(sxe_sendfile(ours, file, 0, LENGTH, NULL), 0);
    } else if (kind == BYTES) {
        ck_assert_int_eq(sxe_write(ours, pattern(LENGTH), 700 * KIB), 0);
    } else {
        ck_assert_int_eq(sxe_send(ours, pattern(LENGTH), LENGTH, NULL), 0);
    }
    turn(5);
    if (kind == CLOSED)
        ck_assert_int_eq(sxe_close(ours), 0);
    turn(5);
    ck_assert_int_eq(sxe_get_state(ours), kind == CLOSED ? SXE_STATE_CLOSING : SXE_STATE_WRITING);
    began = sxe_pool_get_time(CONTEXT->sockets, SXE_ID(ours));
}

static void
let_pass(unsigned seconds)
{
    for (unsigned i = 0; i < seconds * 10; i++) {
        fake_time_advance(SECOND / 10);
        turn(1);
    }
}

static void
expect_close_after(unsigned seconds)
{
    double elapsed;

    while (event_count() == 0)
        ev_run(sxe_loop(), EVRUN_ONCE);
    EXPECT("close", ours, ETIMEDOUT);
    elapsed = (double)(sxe_time_ns() - began) / (double)SECOND;
    ck_assert_double_ge(elapsed, seconds);
    ck_assert_double_le(elapsed, seconds + 0.01);
}

static void
expect_reset_after(unsigned seconds)
{
    expect_close_after(seconds);
    ck_assert_int_eq(peer_drain(peer), ECONNRESET);
}

START_TEST(a_peer_that_acknowledges_bytes_is_not_reset)
{
    enum sxe_state state;

    start();
    write_too_much((enum kind)_i);
    state = sxe_get_state(ours);
    for (int i = 1; i <= 10; i++) {
        let_pass(1);
        fake_os_say_unacked(UNACKED - i);
        let_pass(1);
        ck_assert_int_eq(sxe_get_state(ours), state);
        ck_assert_uint_eq(event_count(), 0);
    }
    stop();
}
END_TEST

START_TEST(a_peer_that_acknowledges_nothing_is_reset_after_the_timeout)
{
    start();
    write_too_much((enum kind)_i);
    expect_reset_after(TIMEOUT);
    stop();
}
END_TEST

/* The first timeout finds one byte fewer unacknowledged, which is progress; the second finds
 * none. */
START_TEST(a_peer_that_acknowledges_once_is_reset_after_two_timeouts)
{
    start();
    write_too_much((enum kind)_i);
    fake_os_say_unacked(UNACKED - 1);
    expect_reset_after(2 * TIMEOUT);
    stop();
}
END_TEST

START_TEST(where_the_kernel_does_not_say_only_what_it_takes_is_progress)
{
    start();
    fake_os_fail(FAKE_IOCTL, 1, 0, EINVAL);
    write_too_much((enum kind)_i);
    expect_reset_after(TIMEOUT);
    stop();
}
END_TEST

/* A program that writes again and again asks the kernel each time; this must not hide progress. */
START_TEST(what_is_acknowledged_between_two_writes_counts)
{
    start();
    write_too_much(LENT);
    let_pass(TIMEOUT - 1);
    fake_os_say_unacked(UNACKED - 1);
    ck_assert_int_eq(sxe_send(ours, "x", 1, NULL), 0);
    turn(1);
    began = sxe_pool_get_time(CONTEXT->sockets, SXE_ID(ours));
    let_pass(TIMEOUT - 1);
    ck_assert_int_eq(sxe_send(ours, "x", 1, NULL), 0);
    turn(1);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_WRITING);
    expect_reset_after(TIMEOUT);
    stop();
}
END_TEST

START_TEST(while_the_kernel_takes_all_it_is_not_asked)
{
    start();
    fake_os_reset();
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
        turn(1);
        PEER_EXPECT(peer, "hello");
    }
    ck_assert_uint_eq(fake_os_calls(FAKE_IOCTL), 0);
    stop();
}
END_TEST

/* ---- Output that the kernel took as a whole ---- */

#define UNREAD 100000 /* more than a close leaves to the kernel */

static const struct sxe_config patient = {
    .timeout_ms = {[SXE_STATE_WRITING] = 3 * TIMEOUT * 1000, [SXE_STATE_CLOSING] = TIMEOUT * 1000},
};

enum { NO_END, END_AFTER, END_BEFORE, ENDS };

/* The error at the peer, which has seen our end: a reset. */
static int
peer_error(void)
{
    int error = 0;

    ck_assert_int_eq(getsockopt(peer, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)}),
                     0);
    return error;
}

static void
close_unread(const struct sxe_config *wanted, int end)
{
    fake_time_start(START_NS, START_NS);
    open_pair(wanted);
    sxe_set_half_close(ours, true);
    ck_assert_int_eq(sxe_write(ours, "reply", 5), 0);
    turn(1);
    fake_os_say_unacked(UNREAD);
    if (end == END_BEFORE) {
        peer_shutdown(peer);
        EXPECT("read", ours, 0);
    }
    ck_assert_int_eq(sxe_close_lingering(ours), 0);
    turn(3);
    if (end == END_AFTER)
        peer_shutdown(peer);
    turn(3);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_CLOSING);
    began = sxe_pool_get_time(CONTEXT->sockets, SXE_ID(ours));
}

START_TEST(a_closed_socket_is_reset_if_its_peer_does_not_read)
{
    close_unread(&config, _i);
    expect_close_after(2 * TIMEOUT);
    ck_assert_int_eq(peer_error(), _i == NO_END ? EPIPE : 0);
    stop();
}
END_TEST

START_TEST(it_has_the_time_of_writing)
{
    close_unread(&patient, _i);
    expect_close_after(4 * TIMEOUT);
    ck_assert_int_eq(peer_error(), _i == NO_END ? EPIPE : 0);
    stop();
}
END_TEST

START_TEST(a_closed_socket_stays_while_its_peer_reads)
{
    close_unread(&config, _i);
    for (int i = 1; i <= 10; i++) {
        let_pass(TIMEOUT);
        fake_os_say_unacked(UNREAD - i);
        ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_CLOSING);
        ck_assert_uint_eq(event_count(), 0);
    }
    fake_os_say_unacked(65536);
    let_pass(TIMEOUT + 1);
    EXPECT("close", ours, ETIMEDOUT);
    ck_assert_int_eq(peer_error(), 0);
    stop();
}
END_TEST

START_TEST(where_the_kernel_does_not_say_a_closed_socket_has_its_time)
{
    close_unread(&config, NO_END);
    fake_os_fail(FAKE_IOCTL, _i == 0 ? 1 : 2, 0, EINVAL);
    let_pass(TIMEOUT + 1);
    EXPECT("close", ours, ETIMEDOUT);
    ck_assert_int_eq(peer_error(), _i == 0 ? 0 : EPIPE);
    stop();
}
END_TEST

/* ---- A unix socket ---- */

static int
connect_to(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, name, length);
    address.sun_path[0] = '\0';
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
                     0);
    return fd;
}

/* The kernel takes more output for a Unix socket only when the peer has read three quarters. */
START_TEST(a_peer_at_a_unix_socket_that_reads_is_not_reset)
{
    char name[60];
    SXE *listener;
    static char got[64 * KIB];

    fake_time_start(START_NS, START_NS);
    plan_start_with(10, &config);
    snprintf(name, sizeof(name), "@test-sxe-stall-%d", (int)getpid());
    listener = sxe_new_unix(NULL, name, push_connected, push_read, push_close);
    ck_assert_int_eq(sxe_listen(listener), 0);
    peer = connect_to(name);
    ours = (SXE *)(uintptr_t)EXPECT("connected", NULL, 0)->object;
    write_too_much((enum kind)_i);
    for (unsigned i = 0; i < 6; i++) {
        let_pass(TIMEOUT - 1);
        ck_assert_int_gt(recv(peer, got, sizeof(got), 0), 0);
        ck_assert_uint_eq(event_count(), 0);
    }
    let_pass(2 * TIMEOUT + 1);
    EXPECT("close", ours, ETIMEDOUT);
    stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-stall");
    TCase *acknowledged = tcase_create("acknowledged");
    TCase *whole = tcase_create("whole");
    TCase *local = tcase_create("local");

    tcase_add_loop_test(acknowledged, a_peer_that_acknowledges_bytes_is_not_reset, 0, KINDS);
    tcase_add_loop_test(acknowledged, a_peer_that_acknowledges_nothing_is_reset_after_the_timeout,
                        0, KINDS);
    tcase_add_loop_test(acknowledged, a_peer_that_acknowledges_once_is_reset_after_two_timeouts, 0,
                        KINDS);
    tcase_add_loop_test(acknowledged, where_the_kernel_does_not_say_only_what_it_takes_is_progress,
                        0, KINDS);
    tcase_add_test(acknowledged, what_is_acknowledged_between_two_writes_counts);
    tcase_add_test(acknowledged, while_the_kernel_takes_all_it_is_not_asked);
    suite_add_tcase(suite, acknowledged);
    tcase_add_loop_test(whole, a_closed_socket_is_reset_if_its_peer_does_not_read, 0, ENDS);
    tcase_add_loop_test(whole, it_has_the_time_of_writing, 0, ENDS);
    tcase_add_loop_test(whole, a_closed_socket_stays_while_its_peer_reads, 0, ENDS);
    tcase_add_loop_test(whole, where_the_kernel_does_not_say_a_closed_socket_has_its_time, 0, 2);
    suite_add_tcase(suite, whole);
    tcase_add_loop_test(local, a_peer_at_a_unix_socket_that_reads_is_not_reset, 0, KINDS);
    suite_add_tcase(suite, local);
    return sxe_test_main(suite);
}
