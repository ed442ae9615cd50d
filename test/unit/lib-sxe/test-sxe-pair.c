/* SPDX-License-Identifier: MIT
 *
 * sxe_io_pair: two sockets of one loop that are connected with each other.
 */
#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "sxe-io.h"
#include "test-main.h"

#include <errno.h>

static SXE *one;
static SXE *other;

static void
make_pair(void)
{
    one = sxe_new_unix(NULL, "pair", push_connected, push_read, push_close);
    other = sxe_new_unix(NULL, "pair", push_connected, push_read, push_close);
}

START_TEST(each_end_gets_what_the_other_writes)
{
    plan_start(2);
    make_pair();
    ck_assert_int_eq(sxe_io_pair(one, other), 0);
    ck_assert_int_eq(SXE_WRITE_LITERAL(one, "there"), 0);
    EXPECT_READ(other, "there");
    ck_assert_int_eq(SXE_WRITE_LITERAL(other, "back"), 0);
    EXPECT_READ(one, "back");
    ck_assert_int_eq(sxe_close(one), 0);
    EXPECT("close", one, 0);
    EXPECT("close", other, 0);
    plan_stop();
}
END_TEST

/* Other sockets that write for so long are closed; these wait for this program. */
START_TEST(a_pair_has_no_timeouts)
{
    static char much[500000];
    struct sxe_config config = {.timeout_ms[SXE_STATE_WRITING] = 1000,
                                .timeout_ms[SXE_STATE_IDLE] = 1000};

    fake_time_start(UINT64_C(1000000000000), UINT64_C(1000000000000000000));
    plan_start_with(2, &config);
    make_pair();
    ck_assert_int_eq(sxe_io_pair(one, other), 0);
    sxe_pause(other);
    ck_assert_int_eq(sxe_write(one, much, sizeof(much)), 0);
    turn(2);
    ck_assert_uint_gt(sxe_unsent(one), 0);
    for (unsigned i = 0; i < 10; i++) {
        fake_time_advance(UINT64_C(2000000000));
        turn(2);
    }
    ck_assert_uint_gt(sxe_unsent(one), 0);
    EXPECT_NOTHING();
    sxe_abort(one);
    sxe_abort(other);
    turn(5);
    event_reset();
    plan_stop();
}
END_TEST

START_TEST(a_pair_that_fails_is_gone)
{
    static const struct {
        enum fake_call call;
        unsigned nth;
        int error;
    } cases[] = {
        {FAKE_SOCKETPAIR, 1, EMFILE}, {FAKE_EPOLL_CTL, 1, ENOMEM}, {FAKE_EPOLL_CTL, 2, ENOSPC}};

    plan_start(2);
    sxe_log_set_level(SXE_LOG_FATAL);
    for (unsigned i = 0; i < SXE_COUNT(cases); i++) {
        make_pair();
        fake_os_sweep(&cases[i].call, 1, cases[i].nth, false, cases[i].error);
        ck_assert_int_eq(sxe_io_pair(one, other), -cases[i].error);
        fake_os_reset();
        ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_FREE), 2);
    }
    EXPECT_NOTHING();
    plan_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("sxe-pair");
    TCase *cases = tcase_create("pair");

    tcase_add_test(cases, each_end_gets_what_the_other_writes);
    tcase_add_test(cases, a_pair_has_no_timeouts);
    tcase_add_test(cases, a_pair_that_fails_is_gone);
    suite_add_tcase(suite, cases);
    return sxe_test_main(suite);
}
