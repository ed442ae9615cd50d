/* SPDX-License-Identifier: MIT
 *
 * One run is repeated, and each time another system call fails: the worker must end,
 * its accounts must balance, and nothing may stay open.
 */
#include "http-world.h"
#include "test-sweep.h"

static const enum fake_call kinds[] = {
    FAKE_READ,       FAKE_SENDMSG,     FAKE_SOCKET,      FAKE_CONNECT,         FAKE_SETSOCKOPT,
    FAKE_GETSOCKOPT, FAKE_GETSOCKNAME, FAKE_GETPEERNAME, FAKE_EPOLL_CTL,       FAKE_EPOLL_WAIT,
    FAKE_SEND,       FAKE_RECV,        FAKE_CLOSE,       FAKE_TIMERFD_SETTIME, FAKE_OPEN,
    FAKE_EVENTFD,    FAKE_BIND,
};
static const int errors[] = {EINTR, EAGAIN, ECONNRESET, EMFILE, ENOBUFS, ENOMEM, EIO};

static void
mark_once(void)
{
    tell_at(MS(30), LOAD_MESSAGE_MARK);
    /* The worker may not have heard STOP; the parent does not wait for ever. */
    act_at((struct act){.at_ns = world.started_ns + SECONDS(60), .what = PARENT_GOES});
}

static void
make_sweep_world(bool is_paced)
{
    make_world();
    world.plan.sockets = 3;
    world.plan.queries = 3;
    world.plan.proxy = 1;
    world.serve = in_20_ms;
    on_go = mark_once;
    act_at((struct act){.at_ns = now_ns() + SECONDS(120), .what = PARENT_GOES});
    if (is_paced) {
        world.plan.model = LOAD_PARTLY_OPEN;
        world.plan.rate = world.plan.rate_end = 200;
        world.plan.stop = LOAD_STOP_TIME;
        world.plan.duration_ns = MS(60);
    }
}

/* run_world() checks the accounts, and that nothing is left open. In a thin sweep with
 * AddressSanitizer each error fails every third call, and the errors take turns at the first. */
START_TEST(whatever_call_fails_the_accounts_close)
{
    const unsigned stride = SXE_HAVE_ASAN && sxe_test_is_thin() ? 3 : 1;
    unsigned nth = 1 + (unsigned)_i / 2 % stride;

    for (;; nth += stride) {
        make_sweep_world(_i % 2 == 1);
        fake_os_reset();
        fake_os_sweep(kinds, sizeof(kinds) / sizeof(kinds[0]), nth, false, errors[_i / 2]);
        run_world();
        if (fake_os_injected() == 0)
            break;
    }
    ck_assert_uint_gt(nth, 50);
    expect_all_ok(9);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-sweep");
    TCase *t = tcase_create("sweep");

    tcase_add_loop_test(t, whatever_call_fails_the_accounts_close, 0,
                        2 * (int)(sizeof(errors) / sizeof(errors[0])));
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
