/* SPDX-License-Identifier: MIT
 *
 * Tests output that is held back: replies to events of one batch leave together, in order; any call
 * that concerns such a socket meanwhile has the same effect as if its output had left at once.
 */
#include "sxe-private.h"

#include <poll.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"
#include "pattern.h"
#include "sxe-fixture.h"
#include "test-main.h"

#define NUMBER 20

static SXE *sockets[NUMBER];
static int peers[NUMBER];
static unsigned events; /* how many events have come */
static unsigned sent;   /* how many send calls were made before the last event */
static SXE *first;      /* the socket whose event came first */
static void (*reply)(SXE *);

static void
on_read(SXE *s, int length)
{
    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(s);
    sent = fake_os_calls(FAKE_SEND) + fake_os_calls(FAKE_SENDMSG);
    if (events++ == 0)
        first = s;
    reply(s);
}

/* How many outputs are held depends on how long the last events took: with this clock, no time. */
static void
stop_clock(void)
{
    fake_time_start(SXE_NS_PER_SECOND, 0);
}

static void
open_some(unsigned number)
{
    SXE *listener;

    plan_start(NUMBER + 1);
    listener = listen_tcp(on_read);
    for (unsigned i = 0; i < number; i++)
        sockets[i] = accept_peer(listener, &peers[i]);
}

static void
close_some(unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        close(peers[i]);
    plan_stop();
}

/* Make an event for each socket, all in one batch; `with` answers each. */
static void
events_of(unsigned number, void (*with)(SXE *))
{
    reply = with;
    events = 0;
    fake_os_reset();
    for (unsigned i = 0; i < number; i++)
        peer_send(peers[i], "x", 1);
    /* The kernel may need a moment to deliver. */
    for (unsigned i = 0; i < number; i++)
        ck_assert_int_eq(poll(&(struct pollfd){sxe_fd(sockets[i]), POLLIN, 0}, 1, -1), 1);
    turn(1);
    ck_assert_uint_eq(events, number);
}

static int
peer_of(const SXE *s)
{
    unsigned i = 0;

    while (sockets[i] != s)
        i++;
    return peers[i];
}

static int
second_peer(void)
{
    return peer_of(first == sockets[0] ? sockets[1] : sockets[0]);
}

static void
write_hello(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, "hello", 5), 0);
}

START_TEST(what_came_together_leaves_together)
{
    open_some(3);
    events_of(3, write_hello);
    ck_assert_uint_eq(sent, 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 3);
    for (unsigned i = 0; i < 3; i++) {
        PEER_EXPECT(peers[i], "hello");
        ck_assert_int_eq(sxe_get_state(sockets[i]), SXE_STATE_IDLE);
        ck_assert_uint_eq(sxe_unsent(sockets[i]), 0);
    }
    close_some(3);
}
END_TEST

START_TEST(sixteen_wait_at_most)
{
    open_some(20);
    events_of(17, write_hello);
    ck_assert_uint_eq(sent, 16);
    events_of(20, write_hello);
    ck_assert_uint_eq(sent, 16);
    for (unsigned i = 0; i < 20; i++)
        PEER_EXPECT(peers[i], i < 17 ? "hellohello" : "hello");
    close_some(20);
}
END_TEST

/* ---- Events that take long ---- */

static void
write_slowly(SXE *s)
{
    fake_time_advance(SXE_NS_PER_MS);
    write_hello(s);
}

static void
write_not_so_slowly(SXE *s)
{
    fake_time_advance(40 * SXE_NS_PER_US);
    write_hello(s);
}

START_TEST(after_slow_events_nobody_waits_until_they_are_quick)
{
    open_some(4);
    events_of(4, write_slowly);
    ck_assert_uint_eq(sent, 0);
    events_of(4, write_slowly);
    ck_assert_uint_eq(sent, 3);
    events_of(4, write_not_so_slowly);
    ck_assert_uint_eq(sent, 3);
    events_of(4, write_not_so_slowly);
    ck_assert_uint_eq(sent, 2);
    events_of(4, write_hello);
    events_of(4, write_hello);
    ck_assert_uint_eq(sent, 0);
    close_some(4);
}
END_TEST

/* ---- More output than there is room for ---- */

static void
write_much(SXE *s)
{
    ck_assert_int_eq(sxe_write(s, pattern(10000), 10000), 0);
}

START_TEST(those_held_leave_when_the_next_one_does_not_fit)
{
    open_some(3);
    events_of(3, write_much);
    ck_assert_uint_eq(sent, 2);
    for (unsigned i = 0; i < 3; i++)
        expect_pattern(peers[i], 10000);
    close_some(3);
}
END_TEST

static void
write_pieces(SXE *s)
{
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(sxe_write(s, pattern(4000) + i * 2000, 500), 0);
        ck_assert_int_eq(sxe_write_static(s, pattern(4000) + i * 2000 + 500, 1500), 0);
    }
}

START_TEST(those_held_leave_when_there_is_no_place_for_more_pieces)
{
    open_some(10);
    events_of(10, write_pieces);
    ck_assert_uint_eq(sent, 9);
    for (unsigned i = 0; i < 10; i++)
        expect_pattern(peers[i], 4000);
    close_some(10);
}
END_TEST

/* ---- Another socket's event concerns a socket whose output is held ---- */

static void
second_writes_to_first(SXE *s)
{
    if (s != first) {
        ck_assert_uint_eq(sxe_unsent(first), 5);
        ck_assert(sxe_io_has_output(first));
        ck_assert_int_eq(sxe_write(first, " again", 6), 0);
        ck_assert_uint_eq(sxe_unsent(first), 11);
    }
    write_hello(s);
}

START_TEST(what_another_writes_to_it_comes_behind)
{
    open_some(2);
    events_of(2, second_writes_to_first);
    PEER_EXPECT(peer_of(first), "hello again");
    PEER_EXPECT(second_peer(), "hello");
    close_some(2);
}
END_TEST

static void
write_to_the_third(SXE *s)
{
    ck_assert_ptr_ne(s, sockets[3]);
    ck_assert_int_eq(sxe_write(sockets[3], "hello", 5), 0);
}

START_TEST(what_several_events_write_to_one_leaves_at_once)
{
    open_some(4);
    events_of(3, write_to_the_third);
    ck_assert_uint_eq(sent, 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 1);
    PEER_EXPECT(peers[3], "hellohellohello");
    close_some(4);
}
END_TEST

static void
write_to_both(SXE *s)
{
    write_to_the_third(s);
    write_hello(s);
}

START_TEST(what_they_write_to_others_meanwhile_leaves_too)
{
    open_some(4);
    events_of(3, write_to_both);
    for (unsigned i = 0; i < 3; i++)
        PEER_EXPECT(peers[i], "hello");
    PEER_EXPECT(peers[3], "hellohellohello");
    close_some(4);
}
END_TEST

static SXE *second;

static void
push_close_and_dropped(SXE *s)
{
    push_close(s);
    event_push("dropped", s, (long)sxe_dropped(s));
}

static void
third_aborts_second(SXE *s)
{
    write_hello(s);
    if (events == 2)
        second = s;
    if (events != 3)
        return;
    second->on_close = push_close_and_dropped;
    ck_assert_int_eq(sxe_abort(second), 0);
}

START_TEST(an_abort_drops_it)
{
    open_some(3);
    events_of(3, third_aborts_second);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND), 2);
    for (unsigned i = 0; i < 3; i++) {
        if (sockets[i] == second)
            PEER_EXPECT_RESET(peers[i]);
        else
            PEER_EXPECT(peers[i], "hello");
    }
    EXPECT("close", second, ECONNABORTED);
    EXPECT("dropped", second, 5);
    close_some(3);
}
END_TEST

static void
second_closes_first(SXE *s)
{
    write_hello(s);
    if (s != first)
        ck_assert_int_eq(sxe_close(first), 0);
}

START_TEST(a_close_comes_behind_it)
{
    open_some(2);
    events_of(2, second_closes_first);
    PEER_EXPECT(peer_of(first), "hello");
    PEER_EXPECT_END(peer_of(first));
    PEER_EXPECT(second_peer(), "hello");
    EXPECT("close", first, 0);
    close_some(2);
}
END_TEST

static void
write_and_close(SXE *s)
{
    write_hello(s);
    ck_assert_int_eq(sxe_close(s), 0);
}

START_TEST(those_that_close_themselves_are_held_too)
{
    open_some(2);
    events_of(2, write_and_close);
    ck_assert_uint_eq(sent, 0);
    for (unsigned i = 0; i < 2; i++) {
        PEER_EXPECT(peers[i], "hello");
        PEER_EXPECT_END(peers[i]);
    }
    EXPECT("close", NULL, 0);
    EXPECT("close", NULL, 0);
    close_some(2);
}
END_TEST

/* ---- Lent memory ---- */

static void
lend(SXE *s)
{
    ck_assert_int_eq(sxe_send(s, "lent", 4, push_sent), 0);
}

START_TEST(what_is_lent_is_held_too)
{
    open_some(2);
    events_of(2, lend);
    ck_assert_uint_eq(sent, 0);
    EXPECT("sent", NULL, 0);
    EXPECT("sent", NULL, 0);
    PEER_EXPECT(peers[0], "lent");
    PEER_EXPECT(peers[1], "lent");
    close_some(2);
}
END_TEST

static void
lend_then_write_to_first(SXE *s)
{
    if (s == first) {
        lend(s);
        return;
    }
    ck_assert_int_eq(sxe_write(first, " and written", 12), 0);
    ck_assert_uint_eq(event_count(), 0);
}

START_TEST(nobody_hears_that_it_was_sent_inside_a_call_of_another)
{
    open_some(2);
    events_of(2, lend_then_write_to_first);
    EXPECT("sent", first, 0);
    PEER_EXPECT(peer_of(first), "lent and written");
    close_some(2);
}
END_TEST

static void
write_to_the_second(SXE *s, int result)
{
    SXE *after = s == sockets[0] ? sockets[1] : sockets[0];

    push_sent(s, result);
    ck_assert_int_eq(sxe_write(after, " more", 5), 0);
}

static void
lend_or_write(SXE *s)
{
    if (s == first)
        ck_assert_int_eq(sxe_send(s, "lent", 4, write_to_the_second), 0);
    else
        write_hello(s);
}

START_TEST(on_sent_may_write_to_one_that_is_still_held)
{
    open_some(2);
    events_of(2, lend_or_write);
    EXPECT("sent", first, 0);
    PEER_EXPECT(peer_of(first), "lent");
    PEER_EXPECT(second_peer(), "hello more");
    close_some(2);
}
END_TEST

/* ---- Output that the kernel does not take ---- */

static int error_of_first;

static void
hello_that_fails(SXE *s)
{
    if (s == first)
        fake_os_fail(FAKE_SEND, 1, 1, error_of_first);
    write_hello(s);
}

START_TEST(one_that_cannot_be_sent_ends_its_own_socket)
{
    open_some(2);
    error_of_first = EPIPE;
    events_of(2, hello_that_fails);
    EXPECT("close", first, EPIPE);
    PEER_EXPECT(second_peer(), "hello");
    close_some(2);
}
END_TEST

START_TEST(one_that_is_not_sent_now_is_sent_later)
{
    open_some(2);
    error_of_first = EINTR;
    events_of(2, hello_that_fails);
    ck_assert_int_eq(sxe_get_state(first), SXE_STATE_WRITING);
    PEER_EXPECT(peer_of(first), "hello");
    PEER_EXPECT(second_peer(), "hello");
    close_some(2);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("sxe-held");
    TCase *together = tcase_create("together");
    TCase *meanwhile = tcase_create("meanwhile");

    tcase_add_checked_fixture(together, stop_clock, fake_time_stop);
    tcase_add_checked_fixture(meanwhile, stop_clock, fake_time_stop);
    tcase_add_test(together, what_came_together_leaves_together);
    tcase_add_test(together, sixteen_wait_at_most);
    tcase_add_test(together, after_slow_events_nobody_waits_until_they_are_quick);
    tcase_add_test(together, those_held_leave_when_the_next_one_does_not_fit);
    tcase_add_test(together, those_held_leave_when_there_is_no_place_for_more_pieces);
    suite_add_tcase(s, together);
    tcase_add_test(meanwhile, what_another_writes_to_it_comes_behind);
    tcase_add_test(meanwhile, what_several_events_write_to_one_leaves_at_once);
    tcase_add_test(meanwhile, what_they_write_to_others_meanwhile_leaves_too);
    tcase_add_test(meanwhile, an_abort_drops_it);
    tcase_add_test(meanwhile, a_close_comes_behind_it);
    tcase_add_test(meanwhile, those_that_close_themselves_are_held_too);
    tcase_add_test(meanwhile, what_is_lent_is_held_too);
    tcase_add_test(meanwhile, nobody_hears_that_it_was_sent_inside_a_call_of_another);
    tcase_add_test(meanwhile, on_sent_may_write_to_one_that_is_still_held);
    tcase_add_test(meanwhile, one_that_cannot_be_sent_ends_its_own_socket);
    tcase_add_test(meanwhile, one_that_is_not_sent_now_is_sent_later);
    suite_add_tcase(s, meanwhile);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
