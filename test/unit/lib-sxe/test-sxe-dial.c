/* SPDX-License-Identifier: MIT
 *
 * Connecting to names: which address is tried when, which one wins, and what is closed. The clock
 * is virtual, so a quarter of a second is exact.
 */
#include "sxe-private.h"

#include "named-hosts.h"
#include "sweep.h"
#include "sxe-dial.h"
#include "virtual-turns.h"

static struct sxe_dial dial;
static struct sxe_dial second;
static unsigned short port;
static int refuse_ip; /* the errno with which open refuses the first address; 0: it accepts */
static unsigned opened;

static SXE *
open_socket(struct sxe_dial *of, const char *ip)
{
    SXE *s;

    ck_assert_uint_gt(strlen(ip), 0);
    opened++;
    if (refuse_ip != 0 && strcmp(ip, "127.0.0.2") == 0) {
        errno = refuse_ip;
        return NULL;
    }
    s = sxe_new_tcp(NULL, "", 0, push_connected, push_read, push_close);
    if (s != NULL)
        s->user_data = of;
    return s;
}

static void
push_dialled(struct sxe_dial *of, int result)
{
    event_push("dialled", of, result);
    if (result == 0)
        ck_assert_ptr_eq(of->socket->user_data, of);
}

static void
start_dialling(const char *kinds, unsigned spares)
{
    hosts_open(kinds, &port);
    dial = second = (struct sxe_dial){.open = open_socket, .done = push_dialled};
    opened = 0;
    fake_time_start(SXE_NS_PER_SECOND, 0);
    ck_assert_int_eq(sxe_dial_register(spares), 0);
    plan_start(2); /* two sockets, and one that sxe_dial_register adds */
}

static void
stop_dialling(void)
{
    plan_stop();
    fake_time_stop();
    hosts_close();
}

/* Turn until a number of attempts are under way. */
static void
await_attempts(unsigned number)
{
    while (opened < number || sxe_number_in_state(SXE_STATE_CONNECTING) < number)
        turn_in_no_time();
}

/* A quarter of a second passes. */
static void
wait_delay(void)
{
    fake_time_advance((SXE_DIAL_NEXT_MS + 1) * SXE_NS_PER_MS);
    turn(2);
}

static void
expect_dialled(const struct sxe_dial *of, int result)
{
    await_event();
    EXPECT("dialled", of, result);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 0);
    ck_assert_uint_eq(CONTEXT->spares_used, 0);
}

/* Check that the dial's socket works, and has the callbacks that open set. */
static void
expect_winner(unsigned index)
{
    int peer;

    expect_dialled(&dial, 0);
    peer = peer_accept(hosts[index].listener);
    peer_send(peer, "hi", 2);
    EXPECT_READ(dial.socket, "hi");
    close(peer);
    EXPECT("close", dial.socket, 0);
}

/* ---- The winner ---- */

START_TEST(an_address_needs_no_look_up)
{
    start_dialling("o", 0);
    ck_assert_int_eq(sxe_dial(&dial, "127.0.0.2", port), 0);
    ck_assert_uint_eq(event_count(), 0);
    ck_assert_int_eq(sxe_dial(&dial, "127.0.0.2", port), -EBUSY);
    expect_winner(0);
    ck_assert_uint_eq(hosts_asked, 0);
    ck_assert_int_eq(sxe_dial(&dial, "127.0.0.2", port), 0);
    expect_winner(0);
    stop_dialling();
}
END_TEST

START_TEST(the_first_address_is_enough)
{
    start_dialling("oo", 7);
    ck_assert_int_eq(sxe_dial(&dial, "oo", port), 0);
    ck_assert_int_eq(sxe_dial(&dial, "oo", port), -EBUSY);
    expect_winner(0);
    ck_assert_uint_eq(opened, 1);
    ck_assert_int_eq(sxe_dial(&dial, "OO", port), 0);
    expect_winner(0);
    ck_assert_uint_eq(hosts_asked, 1);
    stop_dialling();
}
END_TEST

/* The next attempt does not wait for the delay. */
START_TEST(after_a_failure_the_next_address_is_tried_at_once)
{
    static const char *const names[] = {"ro", "xo", "rxrro"};

    start_dialling(names[_i], 0);
    ck_assert_int_eq(sxe_dial(&dial, names[_i], port), 0);
    expect_winner((unsigned)strlen(names[_i]) - 1);
    stop_dialling();
}
END_TEST

START_TEST(an_address_that_does_not_reply_costs_a_quarter_of_a_second)
{
    start_dialling("do", 1);
    ck_assert_int_eq(sxe_dial(&dial, "do", port), 0);
    await_attempts(1);
    fake_time_advance((SXE_DIAL_NEXT_MS - 10) * SXE_NS_PER_MS);
    turn(2);
    ck_assert_uint_eq(opened, 1);
    wait_delay();
    ck_assert_uint_eq(opened, 2);
    expect_winner(1);
    stop_dialling();
}
END_TEST

START_TEST(the_first_that_connects_wins_also_if_it_is_the_first_address)
{
    start_dialling("ddd", 7);
    ck_assert_int_eq(sxe_dial(&dial, "ddd", port), 0);
    await_attempts(1);
    wait_delay();
    wait_delay();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 3);
    ck_assert_uint_eq(CONTEXT->spares_used, 2);
    ck_assert_int_eq(CONTEXT->tables->dials_first == NULL, 1);
    hosts_undeafen(0);
    fake_time_stop(); /* the kernel tries again in a second of its own */
    pump();
    expect_dialled(&dial, 0);
    ck_assert_str_eq(sxe_peer_ip(dial.socket), "127.0.0.2");
    sxe_close(dial.socket);
    EXPECT("close", dial.socket, 0);
    stop_dialling();
}
END_TEST

/* ---- Failures ---- */

START_TEST(the_last_failure_is_the_result)
{
    start_dialling("rr", 0);
    ck_assert_int_eq(sxe_dial(&dial, "rr", port), 0);
    expect_dialled(&dial, -ECONNREFUSED);
    ck_assert_int_eq(dial.look_up_error, 0);
    ck_assert_int_eq(sxe_dial(&dial, "xx", port), 0);
    expect_dialled(&dial, -ENETUNREACH);
    ck_assert_int_eq(sxe_dial(&dial, "xx", port), -ENETUNREACH); /* the addresses are known now */
    stop_dialling();
}
END_TEST

START_TEST(a_name_without_an_address_fails)
{
    start_dialling("", 0);
    ck_assert_int_eq(sxe_dial(&dial, "none", port), 0);
    expect_dialled(&dial, -EADDRNOTAVAIL);
    ck_assert_int_eq(dial.look_up_error, EAI_NONAME);
    ck_assert_int_eq(sxe_dial(&dial, "none", port), -EADDRNOTAVAIL);
    ck_assert_int_eq(dial.look_up_error, EAI_NONAME);
    stop_dialling();
}
END_TEST

START_TEST(open_may_refuse_an_address)
{
    start_dialling("oo", 0);
    refuse_ip = EACCES;
    ck_assert_int_eq(sxe_dial(&dial, "127.0.0.2", port), -EACCES);
    ck_assert_int_eq(sxe_dial(&dial, "oo", port), 0);
    expect_winner(1);
    stop_dialling();
    refuse_ip = 0;
}
END_TEST

START_TEST(a_dial_without_a_plan_is_refused)
{
    struct sxe_dial lost = {.open = open_socket, .done = push_dialled};

    sxe_log_set_level(SXE_LOG_FATAL);
    ck_assert_int_eq(sxe_dial(&lost, "o", 1), -EINVAL);
    ck_assert_int_eq(sxe_dial_cancel(&lost), -EALREADY);
    fake_os_fail(FAKE_CALLOC, 1, 0, ENOMEM);
    fake_os_fail(FAKE_MMAP, 1, 0, ENOMEM);
    fake_os_fail(FAKE_POSIX_MEMALIGN, 1, 0, ENOMEM);
    ck_assert_int_eq(sxe_dial_register(1), -ENOMEM);
    fake_os_reset();
}
END_TEST

/* ---- Room ---- */

START_TEST(a_race_has_no_more_sockets_than_are_spare)
{
    start_dialling("ddo", 1);
    ck_assert_int_eq(sxe_dial(&dial, "ddo", port), 0);
    await_attempts(1);
    wait_delay();
    ck_assert_uint_eq(opened, 2);
    wait_delay();
    ck_assert_uint_eq(opened, 2);
    /* When the first attempt fails, its socket is free for the next. */
    sxe_io_fail(sxe__socket(sxe_pool_get_oldest(CONTEXT->sockets, SXE_STATE_CONNECTING)),
                EHOSTUNREACH);
    turn(1);
    ck_assert_uint_eq(opened, 3);
    expect_winner(2);
    stop_dialling();
}
END_TEST

START_TEST(a_race_waits_while_all_sockets_are_in_use)
{
    SXE *others[3];

    start_dialling("do", 1);
    others[0] = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
    others[1] = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
    others[2] = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL);
    ck_assert_int_eq(sxe_dial(&dial, "do", port), 0);
    await_attempts(1);
    wait_delay();
    wait_delay();
    ck_assert_uint_eq(opened, 1);
    sxe_close(others[0]);
    wait_delay();
    ck_assert_uint_eq(opened, 2);
    expect_winner(1);
    sxe_close(others[1]);
    sxe_close(others[2]);
    stop_dialling();
}
END_TEST

START_TEST(a_lack_of_descriptors_is_not_the_addresses_fault)
{
    start_dialling("do", 1);
    ck_assert_int_eq(sxe_dial(&dial, "do", port), 0);
    await_attempts(1);
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    wait_delay();
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_CONNECTING), 1);
    wait_delay();
    expect_winner(1);
    /* If the only attempt finds no descriptor, sxe_dial returns its error. */
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    ck_assert_int_eq(sxe_dial(&dial, "do", port), -EMFILE);
    ck_assert_int_eq(sxe_dial_cancel(&dial), -EALREADY);
    stop_dialling();
}
END_TEST

/* ---- Two dials, cancelling, the end ---- */

START_TEST(dials_that_wait_keep_their_order)
{
    static const unsigned cancelled[][2] = {{0, 1}, {1, 0}};
    struct sxe_dial *dials[] = {&dial, &second};
    struct sxe_dial *left = dials[cancelled[_i][1]];

    start_dialling("ddd", 7);
    ck_assert_int_eq(sxe_dial(&dial, "ddd", port), 0);
    await_attempts(1);
    fake_time_advance(100 * SXE_NS_PER_MS);
    turn(1);
    ck_assert_int_eq(sxe_dial(&second, "ddd", port), 0);
    ck_assert_uint_eq(opened, 2);
    fake_time_advance(150 * SXE_NS_PER_MS);
    turn(2);
    ck_assert_uint_eq(opened, 3);
    ck_assert_uint_eq(dial.under_way, 2);
    ck_assert_ptr_eq(CONTEXT->tables->dials_first, &second);
    ck_assert_ptr_eq(CONTEXT->tables->dials_last, &dial);
    ck_assert_int_eq(sxe_dial_cancel(dials[cancelled[_i][0]]), 0);
    ck_assert_ptr_eq(CONTEXT->tables->dials_first, left);
    ck_assert_ptr_eq(CONTEXT->tables->dials_last, left);
    ck_assert_int_eq(sxe_dial_cancel(left), 0);
    ck_assert_int_eq(sxe_dial_cancel(left), -EALREADY);
    turn(1);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 2 + 7 + 1);
    EXPECT_NOTHING();
    stop_dialling();
}
END_TEST

START_TEST(the_middle_of_three_dials_may_end)
{
    struct sxe_dial third = {.open = open_socket, .done = push_dialled};

    start_dialling("dd", 7);
    ck_assert_int_eq(sxe_dial(&dial, "dd", port), 0);
    await_attempts(1);
    ck_assert_int_eq(sxe_dial(&second, "dd", port), 0);
    ck_assert_int_eq(sxe_dial(&third, "dd", port), 0);
    ck_assert_int_eq(sxe_dial_cancel(&second), 0);
    ck_assert_ptr_eq(dial.next, &third);
    ck_assert_ptr_eq(third.prev, &dial);
    wait_delay();
    ck_assert_uint_eq(opened, 5);
    ck_assert_int_eq(sxe_dial_cancel(&dial), 0);
    ck_assert_int_eq(sxe_dial_cancel(&third), 0);
    turn(1);
    stop_dialling();
}
END_TEST

START_TEST(a_look_up_can_be_cancelled)
{
    start_dialling("o", 0);
    ck_assert_int_eq(sxe_dial(&dial, "o", port), 0);
    ck_assert_int_eq(sxe_dial(&dial, "o", port), -EBUSY);
    ck_assert_int_eq(sxe_dial_cancel(&dial), 0);
    ck_assert_int_eq(sxe_dial_cancel(&dial), -EALREADY);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_dial(&dial, "o", port), 0);
    expect_winner(0);
    stop_dialling();
}
END_TEST

START_TEST(sxe_fini_ends_a_dial_without_a_word)
{
    start_dialling("dd", 7);
    ck_assert_int_eq(sxe_dial(&dial, "dd", port), 0);
    await_attempts(1);
    wait_delay();
    ck_assert_uint_eq(dial.under_way, 2);
    ck_assert_int_eq(sxe_dial(&second, "dd", port), 0);
    stop_dialling();
    ck_assert_int_eq(sxe_dial_cancel(&dial), -EALREADY);
    ck_assert_int_eq(sxe_dial_cancel(&second), -EALREADY);
    start_dialling("o", 0);
    ck_assert_int_eq(sxe_dial(&dial, "o", port), 0);
    expect_winner(0);
    stop_dialling();
}
END_TEST

/* ---- Failing calls ---- */

static const struct fault faults[] = {
    {FAKE_SOCKET, {EMFILE, EAFNOSUPPORT}}, {FAKE_CONNECT, {ECONNREFUSED, ENETUNREACH}},
    {FAKE_GETSOCKOPT, {ENOBUFS}},          {FAKE_SETSOCKOPT, {ENOBUFS}},
    {FAKE_EPOLL_CTL, {ENOMEM, ENOSPC}},    {FAKE_CLOSE, {EINTR}},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* Run a dial, which must end once, and give back all that it has. */
static bool
dial_once(const struct strike *strike)
{
    bool touched;
    int result;

    start_dialling("rxoo", 2);
    turn(1);
    sweep_arm(strike);
    result = sxe_dial(&dial, "rxoo", port);
    if (result == 0) {
        await_event();
        ck_assert_str_eq(event_pop()->name, "dialled");
    }
    touched = sweep_disarm();
    ck_assert_uint_eq(CONTEXT->spares_used, 0);
    ck_assert_int_eq(sxe_dial_cancel(&dial), -EALREADY);
    if (dial.socket != NULL) {
        sxe_close(dial.socket);
        turn(2);
        event_reset();
    }
    turn(1);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 4 + 1);
    stop_dialling();
    return touched;
}

START_TEST(every_failing_call_is_survived)
{
    sweep(&faults[_i], dial_once);
}
END_TEST

START_TEST(a_dial_allocates_nothing)
{
    start_dialling("rdo", 2);
    ck_assert_int_eq(sxe_dial(&second, "rdo", port),
                     0); /* the thread allocates for this dial; then the addresses are known */
    await_attempts(1);
    wait_delay(); /* libev allocates when a timer fires for the first time */
    ck_assert_int_eq(sxe_dial_cancel(&second), 0);
    turn(2);
    forbid_allocations();
    ck_assert_int_eq(sxe_dial(&dial, "rdo", port), 0);
    turn(2);
    wait_delay();
    pump();
    ck_assert_uint_eq(fake_os_violations(), 0);
    fake_os_reset();
    expect_winner(2);
    stop_dialling();
}
END_TEST

static Suite *
dial_suite(void)
{
    Suite *suite = suite_create("sxe dial");
    TCase *race = tcase_create("race");
    TCase *failures = tcase_create("failures");

    tcase_add_test(race, an_address_needs_no_look_up);
    tcase_add_test(race, the_first_address_is_enough);
    tcase_add_loop_test(race, after_a_failure_the_next_address_is_tried_at_once, 0, 3);
    tcase_add_test(race, an_address_that_does_not_reply_costs_a_quarter_of_a_second);
    tcase_add_test(race, the_first_that_connects_wins_also_if_it_is_the_first_address);
    tcase_add_loop_test(race, dials_that_wait_keep_their_order, 0, 2);
    tcase_add_test(race, the_middle_of_three_dials_may_end);
    tcase_add_test(race, a_look_up_can_be_cancelled);
    tcase_add_test(race, sxe_fini_ends_a_dial_without_a_word);
    suite_add_tcase(suite, race);
    tcase_add_test(failures, the_last_failure_is_the_result);
    tcase_add_test(failures, a_name_without_an_address_fails);
    tcase_add_test(failures, open_may_refuse_an_address);
    tcase_add_test(failures, a_dial_without_a_plan_is_refused);
    tcase_add_test(failures, a_race_has_no_more_sockets_than_are_spare);
    tcase_add_test(failures, a_race_waits_while_all_sockets_are_in_use);
    tcase_add_test(failures, a_lack_of_descriptors_is_not_the_addresses_fault);
    tcase_add_loop_test(failures, every_failing_call_is_survived, 0, FAULTS);
    tcase_add_test(failures, a_dial_allocates_nothing);
    suite_add_tcase(suite, failures);
    return suite;
}

int
main(void)
{
    return sxe_test_main(dial_suite());
}
