/* SPDX-License-Identifier: MIT
 *
 * Output: what is written arrives, whole, in order, in few calls, whatever the kernel takes at a
 * time; and who lends memory or a file gets it back once.
 */
#include "sxe-private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "pattern.h"
#include "test-main.h"

static SXE *ours;
static int peer;

static void
open_pair(const struct sxe_config *config)
{
    plan_start_with(10, config);
    ours = accept_peer(listen_tcp(push_read), &peer);
}

static void
close_pair(void)
{
    close(peer);
    plan_stop();
}

/* Run fn in an event of ours. */
static void
in_event(void (*fn)(SXE *))
{
    ck_assert_int_eq(sxe_defer(ours, fn), 0);
    turn(1);
}

static unsigned
write_calls(void)
{
    return fake_os_calls(FAKE_WRITE) + fake_os_calls(FAKE_WRITEV) + fake_os_calls(FAKE_SENDFILE);
}

/* Not the kernel's, and not to be told from output that waits for it. */
static void
fill_kernel(void)
{
    shrink_kernel_buffers(sxe_fd(ours), peer);
    while (sxe_unsent(ours) == 0) {
        ck_assert_int_eq(sxe_write(ours, pattern(64 * KIB), 64 * KIB), 0);
        turn(2);
    }
}

/* ---- Scripts: letter and length, one operation after the other on the bytes of the pattern ----
 *
 * c copied by sxe_write, s sxe_write_static, b borrowed by sxe_send, f a file's by sxe_sendfile.
 */
static const struct script {
    const char *operations;
    unsigned times;
} scripts[] = {
    {"c1", 1},
    {"c10", 10000},
    {"c1000", 200},
    {"c65536", 1},
    {"c65537", 1},
    {"c8 c65535 c2", 1},
    {"c200000", 1},
    {"c1048576", 1},
    {"s1 s1023 s1024", 1},
    {"s1025", 1},
    {"s100000", 1},
    {"c10 s1100", 1},
    {"c10 s1100", 20},
    {"s1100", 17},
    {"s1100 c1", 40},
    {"s100000", 20},
    {"s1100 s1100 s1100 s1100 s1100 s1100 s1100 s1100 c65536", 2},
    {"s2000000 b1", 1},
    {"b0", 1},
    {"b0 b5 b0 c5 b0", 3},
    {"b1", 1},
    {"b1", 40},
    {"b65536", 1},
    {"b65537", 1},
    {"b1000 b70000 b3 b100000 b1 b1 b2000", 1},
    {"c100 b100 s2000", 10},
    {"b8388608", 1},
    {"f0", 1},
    {"f1", 1},
    {"c300 f100000 c3", 1},
    {"f1000", 20},
    {"c10 b1000 c10 s2000 f5000", 10},
    {"f8388608", 1},
};

static struct {
    const struct script *script;
    int file;
    size_t position;
    unsigned lent;
    unsigned returned;
    bool inside;
} run;

static void
count_return(SXE *s, int result)
{
    ck_assert_ptr_eq(s, ours);
    ck_assert_int_eq(result, 0);
    ck_assert(!run.inside);
    run.returned++;
}

static void
operate(SXE *s, char operation, size_t length)
{
    const char *from = pattern(run.position + length) + run.position;
    int result = -EINVAL;

    run.inside = true;
    if (operation == 'c')
        result = sxe_write(s, from, (unsigned)length);
    else if (operation == 's')
        result = sxe_write_static(s, from, length);
    else if (operation == 'b')
        result = sxe_send(s, from, length, count_return);
    else if (operation == 'f')
        result = sxe_sendfile(s, run.file, (off_t)run.position, length, count_return);
    run.inside = false;
    ck_assert_int_eq(result, 0);
    run.lent += operation == 'b' || operation == 'f';
    run.position += length;
}

static void
play(SXE *s)
{
    for (unsigned i = 0; i < run.script->times; i++) {
        for (const char *at = run.script->operations; at != NULL; at = strchr(at, ' ')) {
            at += *at == ' ';
            operate(s, *at, strtoul(at + 1, NULL, 10));
        }
    }
}

static int
pattern_file(size_t length)
{
    int fd = memfd_create("pattern", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, pattern(length), length, 0), (ssize_t)length);
    return fd;
}

/* What the kernel does to the calls. */
enum treatment { WELL, FULL, PARTIAL, INTERRUPTED, NO_BUFFERS, NO_MEMORY, TREATMENTS };
static const enum fake_call kinds[] = {FAKE_WRITE, FAKE_WRITEV, FAKE_SENDFILE};

static void
treat(enum treatment treatment)
{
    static const int errors[TREATMENTS] = {
        [INTERRUPTED] = EINTR, [NO_BUFFERS] = ENOBUFS, [NO_MEMORY] = ENOMEM};

    if (treatment == FULL)
        shrink_kernel_buffers(sxe_fd(ours), peer);
    for (unsigned i = 0; i < 3; i++) {
        if (treatment == PARTIAL)
            fake_os_limit(kinds[i], 4099);
        else if (errors[treatment] != 0)
            fake_os_fail(kinds[i], 1, 3, errors[treatment]);
    }
}

START_TEST(what_is_written_arrives_in_order)
{
    open_pair(NULL);
    run.script = &scripts[(unsigned)_i / TREATMENTS];
    if (strchr(run.script->operations, 'f') != NULL)
        run.file = pattern_file(PATTERN_MAX);
    treat((enum treatment)((unsigned)_i % TREATMENTS));
    in_event(play);
    expect_pattern(peer, run.position);
    turn(20);
    ck_assert_uint_eq(run.returned, run.lent);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_IDLE);
    ck_assert_uint_eq(sxe_chunks_free(CONTEXT->chunks), sxe_chunks_number(CONTEXT->chunks));
    if (run.file != 0)
        close(run.file);
    close_pair();
}
END_TEST

/* F6: one byte at a time, and seven. */
START_TEST(f6_the_shortest_writes_lose_nothing)
{
    static const struct script everything[] = {{"c10 s1100 b2000 c3000 f2000", 8},
                                               {"c1000 s11000 b20000 c30000 f20000", 6}};
    size_t limit = _i == 0 ? 1 : 7;

    open_pair(NULL);
    run.script = &everything[_i];
    run.file = pattern_file(MIB);
    for (unsigned i = 0; i < 3; i++)
        fake_os_limit(kinds[i], limit);
    in_event(play);
    expect_pattern(peer, run.position);
    turn(3);
    ck_assert_uint_eq(run.returned, run.lent);
    close(run.file);
    close_pair();
}
END_TEST

/* A full kernel says so before it reports room; when only the call fails, any event helps. */
START_TEST(f6_after_eagain_output_goes_on_with_the_next_event)
{
    open_pair(NULL);
    turn(3);
    fake_os_fail(FAKE_WRITE, 1, 1, EAGAIN);
    ck_assert_int_eq(sxe_write(ours, "hello", 5), 0);
    PEER_EXPECT_SILENCE(peer);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_WRITING);
    peer_send(peer, "x", 1);
    EXPECT_READ(ours, "x");
    PEER_EXPECT(peer, "hello");
    close_pair();
}
END_TEST

/* ---- Few calls ---- */

static void
answer_each_line(SXE *s, int length)
{
    (void)length;
    for (int i = 0; i < SXE_BUF_USED(s); i += 5)
        ck_assert_int_eq(sxe_write(s, "hello\n", 6), 0);
    SXE_BUF_CLEAR(s);
}

START_TEST(a_thousand_pipelined_requests_are_one_read_and_one_write)
{
    char requests[5000];
    char replies[6001] = "";

    for (unsigned i = 0; i < 1000; i++) {
        memcpy(requests + 5 * i, "GET \n", 5);
        memcpy(replies + 6 * i, "hello\n", 7);
    }
    open_pair(NULL);
    ours->on_read = answer_each_line;
    turn(5);
    fake_os_reset();
    peer_send(peer, requests, sizeof(requests));
    turn(5);
    ck_assert_uint_eq(fake_os_calls(FAKE_READ), 1);
    ck_assert_uint_eq(write_calls(), 1);
    ck_assert_uint_eq(fake_os_calls(FAKE_EPOLL_CTL), 0);
    expect_bytes(peer, replies, 6000);
    close_pair();
}
END_TEST

START_TEST(copies_and_static_pieces_are_one_writev)
{
    static const struct script script = {"c10 s1100 c5 s2000 c3", 3};

    open_pair(NULL);
    run.script = &script;
    fake_os_reset();
    in_event(play);
    ck_assert_uint_eq(fake_os_calls(FAKE_WRITEV), 1);
    ck_assert_uint_eq(write_calls(), 1);
    expect_pattern(peer, run.position);
    close_pair();
}
END_TEST

START_TEST(writes_outside_of_any_event_go_out_together_before_the_loop_waits)
{
    open_pair(NULL);
    fake_os_reset();
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(sxe_write(ours, "x", 1), 0);
    ck_assert_uint_eq(write_calls(), 0);
    ck_assert_uint_eq(sxe_unsent(ours), 100);
    turn(1);
    ck_assert_uint_eq(write_calls(), 1);
    ck_assert_uint_eq(sxe_unsent(ours), 0);
    close_pair();
}
END_TEST

START_TEST(nothing_to_write_is_no_call)
{
    open_pair(NULL);
    fake_os_reset();
    ck_assert_int_eq(sxe_write(ours, "", 0), 0);
    ck_assert_int_eq(sxe_write_static(ours, "", 0), 0);
    turn(5);
    ck_assert_uint_eq(write_calls(), 0);
    close_pair();
}
END_TEST

/* ---- Several sockets in one event ---- */

static SXE *other;
static int other_peer;

static void
open_two_pairs(void)
{
    SXE *listener;

    plan_start(10);
    listener = listen_tcp(push_read);
    ours = accept_peer(listener, &peer);
    other = accept_peer(listener, &other_peer);
}

static void
close_two_pairs(void)
{
    close(other_peer);
    close_pair();
}

static void
ping_pong(SXE *s)
{
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(sxe_write(s, pattern(4) + i, 1), 0);
        ck_assert_int_eq(sxe_write(other, pattern(4) + i, 1), 0);
    }
}

START_TEST(each_change_of_socket_in_one_event_costs_one_write)
{
    open_two_pairs();
    fake_os_reset();
    in_event(ping_pong);
    ck_assert_uint_eq(write_calls(), 8);
    expect_pattern(peer, 4);
    expect_pattern(other_peer, 4);
    close_two_pairs();
}
END_TEST

static void
lend_to_one_write_to_the_other(SXE *s)
{
    ck_assert_int_eq(sxe_send(s, "lent", 4, push_sent), 0);
    ck_assert_int_eq(sxe_write(other, "copied", 6), 0);
}

START_TEST(what_was_lent_to_one_socket_goes_out_though_another_wrote)
{
    open_two_pairs();
    in_event(lend_to_one_write_to_the_other);
    EXPECT("sent", ours, 0);
    PEER_EXPECT(peer, "lent");
    PEER_EXPECT(other_peer, "copied");
    close_two_pairs();
}
END_TEST

static void
close_all_kinds(SXE *s)
{
    ck_assert_int_eq(sxe_send(s, "lent", 4, push_sent), 0);
    ck_assert_int_eq(sxe_write(other, "copied", 6), 0);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_close(other), 0);
}

START_TEST(closing_both_still_sends_what_they_were_given)
{
    open_two_pairs();
    in_event(close_all_kinds);
    PEER_EXPECT(peer, "lent");
    PEER_EXPECT_END(peer);
    PEER_EXPECT(other_peer, "copied");
    PEER_EXPECT_END(other_peer);
    EXPECT("close", other, 0);
    EXPECT("sent", ours, 0);
    EXPECT("close", ours, 0);
    close_two_pairs();
}
END_TEST

static void
close_then_write_to_the_other(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "last", 4), 0);
    ck_assert_int_eq(sxe_close(s), 0);
    ck_assert_int_eq(sxe_write(other, "next", 4), 0);
}

START_TEST(a_closing_socket_that_makes_way_closes)
{
    open_two_pairs();
    in_event(close_then_write_to_the_other);
    EXPECT("close", ours, 0);
    PEER_EXPECT(peer, "last");
    PEER_EXPECT_END(peer);
    PEER_EXPECT(other_peer, "next");
    close_two_pairs();
}
END_TEST

START_TEST(a_socket_that_cannot_make_way_is_closed_alone)
{
    open_two_pairs();
    fake_os_fail(FAKE_WRITE, 1, 1, EPIPE);
    ck_assert_int_eq(sxe_write(ours, "lost", 4), 0);
    ck_assert_int_eq(sxe_write(other, "next", 4), 0);
    EXPECT("close", ours, EPIPE);
    PEER_EXPECT(other_peer, "next");
    close_two_pairs();
}
END_TEST

/* ---- Who may write ---- */

static void
expect_no_writing(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "x", 1), -ENOTCONN);
    ck_assert_int_eq(sxe_write_static(s, pattern(2000), 2000), -ENOTCONN);
    ck_assert_int_eq(sxe_send(s, "x", 1, push_sent), -ENOTCONN);
    ck_assert_int_eq(sxe_sendfile(s, 0, 0, 1, push_sent), -ENOTCONN);
    ck_assert_int_eq(sxe_shutdown(s), -ENOTCONN);
}

START_TEST(only_the_connected_write)
{
    SXE *listener;
    SXE *fresh;
    unsigned short port;
    int raw;

    plan_start(10);
    raw = peer_listen(&port);
    listener = listen_tcp(push_read);
    ck_assert_uint_eq(sxe_unsent(sxe_new_tcp(NULL, "::1", 65535, NULL, NULL, NULL)), 0);
    fresh = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
    expect_no_writing(NULL);
    expect_no_writing(listener);
    expect_no_writing(fresh);
    ck_assert_int_eq(sxe_connect(fresh, "127.0.0.1", port), 0);
    expect_no_writing(fresh);
    ck_assert_int_eq(sxe_close(fresh), 0);
    expect_no_writing(fresh);
    close(raw);
    plan_stop();
}
END_TEST

START_TEST(a_udp_socket_has_nobody_to_write_to)
{
    SXE *udp;

    plan_start(2);
    udp = sxe_new_udp(NULL, "127.0.0.1", 0, push_read);
    ck_assert_int_eq(sxe_listen(udp), 0);
    ck_assert_int_eq(sxe_write(udp, "x", 1), -ENOTCONN);
    plan_stop();
}
END_TEST

/* ---- Our half-close ---- */

static void
write_and_shut_down(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "bye", 3), 0);
    ck_assert_int_eq(sxe_send(s, "bye", 3, push_sent), 0);
    ck_assert_int_eq(sxe_shutdown(s), 0);
    expect_no_writing(s);
}

START_TEST(the_half_close_follows_the_output_and_reading_goes_on)
{
    open_pair(NULL);
    in_event(write_and_shut_down);
    EXPECT("sent", ours, 0);
    PEER_EXPECT(peer, "byebye");
    PEER_EXPECT_END(peer);
    peer_send(peer, "still here", 10);
    EXPECT_READ(ours, "still here");
    peer_shutdown(peer);
    EXPECT("close", ours, 0);
    close_pair();
}
END_TEST

START_TEST(the_half_close_waits_for_a_slow_peer)
{
    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    ck_assert_int_eq(sxe_write(ours, pattern(500 * KIB), 500 * KIB), 0);
    ck_assert_int_eq(sxe_shutdown(ours), 0);
    turn(10);
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_WRITING);
    expect_pattern(peer, 500 * KIB);
    PEER_EXPECT_END(peer);
    close_pair();
}
END_TEST

START_TEST(a_half_close_that_fails_closes)
{
    open_pair(NULL);
    fake_os_fail(FAKE_SHUTDOWN, 1, 1, ENOTCONN);
    ck_assert_int_eq(sxe_shutdown(ours), 0);
    EXPECT("close", ours, ENOTCONN);
    close_pair();
}
END_TEST

/* ---- Lending ---- */

static unsigned sent_chain;

/* Sends the next when one is sent. */
static void
send_next(SXE *s, int result)
{
    ck_assert_int_eq(result, 0);
    if (++sent_chain < 1000)
        ck_assert_int_eq(sxe_send(s, pattern(1000) + sent_chain, 1, send_next), 0);
}

START_TEST(sending_from_on_sent_keeps_nobody_waiting)
{
    open_two_pairs();
    ck_assert_int_eq(sxe_send(ours, pattern(1000), 1, send_next), 0);
    peer_send(other_peer, "x", 1);
    EXPECT_READ(other, "x");
    ck_assert_uint_lt(sent_chain, 100);
    expect_pattern(peer, 1000);
    ck_assert_uint_eq(sent_chain, 1000);
    close_two_pairs();
}
END_TEST

static void
write_more(SXE *s, int result)
{
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(sxe_write(s, " and more", 9), 0);
}

START_TEST(on_sent_may_write)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_send(ours, "sent", 4, write_more), 0);
    PEER_EXPECT(peer, "sent and more");
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_IDLE);
    close_pair();
}
END_TEST

static void
abort_when_sent(SXE *s, int result)
{
    push_sent(s, result);
    sxe_abort(s);
}

START_TEST(on_sent_may_end_the_socket_and_the_others_hear_of_it)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_send(ours, "1", 1, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "2", 1, abort_when_sent), 0);
    ck_assert_int_eq(sxe_sendfile(ours, STDIN_FILENO, 0, 1, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "3", 1, push_sent), 0);
    EXPECT("sent", ours, 0);
    EXPECT("sent", ours, 0);
    EXPECT("sent", ours, -ECONNABORTED);
    EXPECT("sent", ours, -ECONNABORTED);
    EXPECT("close", ours, ECONNABORTED);
    close_pair();
}
END_TEST

static void
send_in_vain(SXE *s, int result)
{
    push_sent(s, result);
    ck_assert_int_eq(sxe_send(s, "x", 1, push_sent), -ENOTCONN);
    ck_assert_int_eq(sxe_close(s), -EALREADY);
}

START_TEST(what_is_lent_comes_back_when_the_peer_resets)
{
    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    ck_assert_int_eq(sxe_send(ours, pattern(MIB), MIB, send_in_vain), 0);
    ck_assert_int_eq(sxe_send(ours, pattern(MIB), MIB, push_sent), 0);
    turn(5);
    peer_reset(peer);
    EXPECT("sent", ours, -ECONNRESET);
    EXPECT("sent", ours, -ECONNRESET);
    EXPECT("close", ours, ECONNRESET);
    plan_stop();
}
END_TEST

START_TEST(the_end_of_the_plan_takes_back_nothing_and_calls_nobody)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_write(ours, "w", 1), 0);
    ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "y", 1, NULL), 0);
    close_pair();
}
END_TEST

START_TEST(a_file_that_ends_early_closes)
{
    off_t offset = _i == 0 ? 50 : 200;

    open_pair(NULL);
    run.file = pattern_file(100);
    ck_assert_int_eq(sxe_sendfile(ours, run.file, offset, 100, push_sent), 0);
    ck_assert_int_eq(sxe_write(ours, "never", 5), 0);
    EXPECT("sent", ours, -ENODATA);
    EXPECT("close", ours, ENODATA);
    if (_i == 0)
        expect_bytes(peer, pattern(100) + 50, 50);
    PEER_EXPECT_END(peer);
    close(run.file);
    close_pair();
}
END_TEST

START_TEST(a_file_cut_while_it_is_sent_closes)
{
    open_pair(NULL);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    run.file = pattern_file(MIB);
    ck_assert_int_eq(sxe_sendfile(ours, run.file, 0, MIB, push_sent), 0);
    turn(5);
    ck_assert_int_eq(ftruncate(run.file, 500 * KIB), 0);
    expect_pattern(peer, 500 * KIB);
    EXPECT("sent", ours, -ENODATA);
    EXPECT("close", ours, ENODATA);
    close(run.file);
    close_pair();
}
END_TEST

START_TEST(a_file_that_cannot_be_read_closes)
{
    open_pair(NULL);
    ck_assert_int_eq(sxe_sendfile(ours, -1, 0, 100, push_sent), 0);
    EXPECT("sent", ours, -EBADF);
    EXPECT("close", ours, EBADF);
    close_pair();
}
END_TEST

/* ---- Limits ---- */

START_TEST(output_max_refuses_and_takes_nothing)
{
    struct sxe_config config = {.output_max = 100 * KIB, .output_pause = 10 * KIB};
    unsigned before;
    size_t total = 0;

    open_pair(&config);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    while (sxe_write(ours, pattern(PATTERN_MAX) + total, 1000) == 0) {
        total += 1000;
        turn(1);
    }
    before = sxe_unsent(ours);
    ck_assert_uint_gt(before, 100 * KIB - 1000);
    ck_assert_int_eq(sxe_write(ours, "x", 1000), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, pattern(MIB), MIB), -ENOBUFS);
    ck_assert_uint_eq(sxe_unsent(ours), before);
    expect_pattern(peer, total);
    ck_assert_uint_eq(sxe_unsent(ours), 0);
    ck_assert_int_eq(sxe_write(ours, pattern(1000), 1000), 0);
    expect_pattern(peer, 1000);
    close_pair();
}
END_TEST

START_TEST(a_write_at_once_may_be_output_max_and_no_more)
{
    struct sxe_config config = {.output_max = 200 * KIB};

    open_pair(&config);
    ck_assert_int_eq(sxe_write(ours, pattern(MIB), 200 * KIB + 1), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, pattern(200 * KIB), 200 * KIB), 0);
    expect_pattern(peer, 200 * KIB);
    close_pair();
}
END_TEST

START_TEST(output_above_output_pause_stops_reading_until_half_of_it_is_gone)
{
    struct sxe_config config = {.output_pause = 100 * KIB};

    open_pair(&config);
    ours->on_read = push_read_keep;
    shrink_kernel_buffers(sxe_fd(ours), peer);
    ck_assert_int_eq(sxe_write(ours, pattern(700 * KIB), 700 * KIB), 0);
    turn(5);
    ck_assert_uint_gt(sxe_unsent(ours), 100 * KIB);
    peer_send(peer, "hello", 5);
    EXPECT_NOTHING();
    expect_pattern(peer, 700 * KIB);
    EXPECT_READ(ours, "hello");
    ck_assert_int_eq(sxe_get_state(ours), SXE_STATE_READING);
    close_pair();
}
END_TEST

static void
flood(SXE *s, int length)
{
    push_read_keep(s, length);
    if (length == 5)
        ck_assert_int_eq(sxe_write(s, pattern(700 * KIB), 700 * KIB), 0);
}

START_TEST(what_was_unread_when_output_stopped_reading_is_shown_again)
{
    struct sxe_config config = {.output_pause = 100 * KIB};

    open_pair(&config);
    ours->on_read = flood;
    shrink_kernel_buffers(sxe_fd(ours), peer);
    peer_send(peer, "hello", 5);
    EXPECT_READ(ours, "hello");
    peer_send(peer, " again", 6);
    EXPECT_NOTHING();
    ours->on_read = push_read;
    expect_pattern(peer, 700 * KIB);
    EXPECT_READ(ours, "hello again");
    close_pair();
}
END_TEST

/* ---- No chunk for what the kernel does not take ---- */

static struct sxe_config few_chunks = {.chunk_size = 64, .chunks = 4};

START_TEST(output_that_can_neither_go_nor_stay_closes)
{
    open_pair(&few_chunks);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    capture_log();
    while (event_count() == 0) {
        ck_assert_int_eq(sxe_write(ours, pattern(60 * KIB), 60 * KIB), 0);
        turn(1);
    }
    EXPECT("close", ours, ENOBUFS);
    ck_assert_uint_eq(captured.number, 1);
    ck_assert_str_eq(line_without_numbers(0),
                     "     1 3 - closing: its peer does not read, and no chunk is free to keep the "
                     "output; configure more than 4 chunks\n");
    close_pair();
}
END_TEST

START_TEST(a_write_that_chunks_could_not_keep_is_refused_whole)
{
    open_pair(&few_chunks);
    ck_assert_int_eq(sxe_write(ours, pattern(MIB), 100 * KIB), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, pattern(64 * KIB), 64 * KIB), 0);
    ck_assert_int_eq(sxe_write(ours, "x", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), -ENOBUFS);
    ck_assert_int_eq(sxe_shutdown(ours), -ENOBUFS);
    ck_assert_uint_eq(sxe_unsent(ours), 64 * KIB);
    expect_pattern(peer, 64 * KIB);
    close_pair();
}
END_TEST

START_TEST(without_a_chunk_nothing_is_lent)
{
    open_pair(&few_chunks);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(sxe_send(ours, pattern(MIB), MIB, push_sent), 0);
    ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), -ENOBUFS);
    ck_assert_int_eq(sxe_sendfile(ours, 0, 0, 1, push_sent), -ENOBUFS);
    ck_assert_int_eq(sxe_shutdown(ours), -ENOBUFS);
    ck_assert_int_eq(sxe_write(ours, "x", 1), -ENOBUFS);
    ck_assert_int_eq(sxe_write_static(ours, pattern(2000), 2000), -ENOBUFS);
    for (unsigned i = 0; i < 4; i++)
        expect_pattern(peer, MIB);
    for (unsigned i = 0; i < 4; i++)
        EXPECT("sent", ours, 0);
    close_pair();
}
END_TEST

/* Too many pieces for one call, and no chunk for those that the kernel leaves. */
START_TEST(static_pieces_that_can_neither_go_nor_stay_close)
{
    int result = 0;

    open_pair(&few_chunks);
    shrink_kernel_buffers(sxe_fd(ours), peer);
    for (unsigned i = 0; result == 0 && i < 100; i++)
        result = sxe_write_static(ours, pattern(100 * KIB), 100 * KIB);
    ck_assert_int_eq(result, -ENOBUFS);
    EXPECT("close", ours, ENOBUFS);
    close_pair();
}
END_TEST

/* ---- The end ---- */

START_TEST(f6_a_failed_write_closes_with_its_error)
{
    static const int errors[] = {EPIPE, ECONNRESET, ETIMEDOUT, EIO};
    int error = errors[_i % 4];

    open_pair(NULL);
    if (_i < 4) {
        fake_os_fail(FAKE_WRITE, 1, 1, error);
        ck_assert_int_eq(sxe_write(ours, "x", 1), 0);
    } else if (_i < 8) {
        fake_os_fail(FAKE_WRITE, 1, 1, error);
        ck_assert_int_eq(sxe_send(ours, "x", 1, push_sent), 0);
        EXPECT("sent", ours, -error);
    } else {
        fake_os_fail(FAKE_SENDFILE, 1, 1, error);
        ck_assert_int_eq(sxe_sendfile(ours, 0, 0, 1, push_sent), 0);
        EXPECT("sent", ours, -error);
    }
    EXPECT("close", ours, error);
    close_pair();
}
END_TEST

START_TEST(a_large_write_that_fails_half_way_closes)
{
    open_pair(NULL);
    fake_os_fail(FAKE_WRITE, 2, 1, EPIPE);
    ck_assert_int_eq(sxe_write(ours, pattern(300 * KIB), 300 * KIB), -EPIPE);
    EXPECT("close", ours, EPIPE);
    expect_pattern(peer, 64 * KIB);
    close_pair();
}
END_TEST

START_TEST(f6_writing_to_a_peer_that_is_gone_raises_no_signal)
{
    open_pair(NULL);
    fill_kernel();
    peer_reset(peer);
    EXPECT("close", ours, ECONNRESET);
    plan_stop();
}
END_TEST

static Suite *
output_suite(void)
{
    Suite *suite = suite_create("sxe output");
    TCase *calls = tcase_create("calls");
    TCase *lending = tcase_create("lending");
    TCase *limits = tcase_create("limits");
    int runs = (int)(sizeof(scripts) / sizeof(scripts[0])) * TREATMENTS;

    tcase_add_loop_test(calls, what_is_written_arrives_in_order, 0, runs);
    tcase_add_loop_test(calls, f6_the_shortest_writes_lose_nothing, 0, 2);
    tcase_add_test(calls, f6_after_eagain_output_goes_on_with_the_next_event);
    tcase_add_test(calls, a_thousand_pipelined_requests_are_one_read_and_one_write);
    tcase_add_test(calls, copies_and_static_pieces_are_one_writev);
    tcase_add_test(calls, writes_outside_of_any_event_go_out_together_before_the_loop_waits);
    tcase_add_test(calls, nothing_to_write_is_no_call);
    tcase_add_test(calls, each_change_of_socket_in_one_event_costs_one_write);
    tcase_add_test(calls, what_was_lent_to_one_socket_goes_out_though_another_wrote);
    tcase_add_test(calls, closing_both_still_sends_what_they_were_given);
    tcase_add_test(calls, a_closing_socket_that_makes_way_closes);
    tcase_add_test(calls, a_socket_that_cannot_make_way_is_closed_alone);
    tcase_add_test(calls, only_the_connected_write);
    tcase_add_test(calls, a_udp_socket_has_nobody_to_write_to);
    tcase_add_test(calls, the_half_close_follows_the_output_and_reading_goes_on);
    tcase_add_test(calls, the_half_close_waits_for_a_slow_peer);
    tcase_add_test(calls, a_half_close_that_fails_closes);
    tcase_add_test(lending, sending_from_on_sent_keeps_nobody_waiting);
    tcase_add_test(lending, on_sent_may_write);
    tcase_add_test(lending, on_sent_may_end_the_socket_and_the_others_hear_of_it);
    tcase_add_test(lending, what_is_lent_comes_back_when_the_peer_resets);
    tcase_add_test(lending, the_end_of_the_plan_takes_back_nothing_and_calls_nobody);
    tcase_add_loop_test(lending, a_file_that_ends_early_closes, 0, 2);
    tcase_add_test(lending, a_file_cut_while_it_is_sent_closes);
    tcase_add_test(lending, a_file_that_cannot_be_read_closes);
    tcase_add_test(limits, output_max_refuses_and_takes_nothing);
    tcase_add_test(limits, a_write_at_once_may_be_output_max_and_no_more);
    tcase_add_test(limits, output_above_output_pause_stops_reading_until_half_of_it_is_gone);
    tcase_add_test(limits, what_was_unread_when_output_stopped_reading_is_shown_again);
    tcase_add_test(limits, output_that_can_neither_go_nor_stay_closes);
    tcase_add_test(limits, a_write_that_chunks_could_not_keep_is_refused_whole);
    tcase_add_test(limits, without_a_chunk_nothing_is_lent);
    tcase_add_test(limits, static_pieces_that_can_neither_go_nor_stay_close);
    tcase_add_loop_test(limits, f6_a_failed_write_closes_with_its_error, 0, 12);
    tcase_add_test(limits, a_large_write_that_fails_half_way_closes);
    tcase_add_test(limits, f6_writing_to_a_peer_that_is_gone_raises_no_signal);
    suite_add_tcase(suite, calls);
    suite_add_tcase(suite, lending);
    suite_add_tcase(suite, limits);
    return suite;
}

int
main(void)
{
    return sxe_test_main(output_suite());
}
