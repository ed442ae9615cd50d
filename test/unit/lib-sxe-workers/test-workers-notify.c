/* SPDX-License-Identifier: MIT
 *
 * Messages of sxe-httpd to the service manager that started it.
 */
#include "sxe-workers-notify-internal.h"

#include <errno.h>

#include "capture-log.h"
#include "fake-os.h"
#include "fake-time.h"
#include "mailbox.h"
#include "test-main.h"

START_TEST(messages_arrive_at_a_path_and_at_an_abstract_name)
{
    open_mailbox(_i == 0 ? '/' : '@');
    capture_log();
    fake_time_start(1234567000, 1234567000);
    sxe__notify_ready(1);
    ck_assert_str_eq(message(), "READY=1\nSTATUS=Serving with 1 process");
    sxe__notify_ready(2);
    ck_assert_str_eq(message(), "READY=1\nSTATUS=Serving with 2 processes");
    sxe__notify_reloading();
    ck_assert_ptr_nonnull(strstr(message(), "RELOADING=1\nMONOTONIC_USEC=1234567\nSTATUS=Loading"));
    sxe__notify_stopping();
    ck_assert_str_eq(message(), "STOPPING=1\nSTATUS=Finishing the requests in progress");
    sxe__notify_alive();
    ck_assert_str_eq(message(), "WATCHDOG=1");
    unlink(mailbox.name);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

START_TEST(without_the_variable_nothing_is_sent)
{
    open_mailbox('@');
    capture_log();
    if (_i == 0)
        unsetenv("NOTIFY_SOCKET");
    else
        setenv("NOTIFY_SOCKET", "", 1);
    sxe__notify_ready(1);
    ck_assert(mailbox_is_empty());
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

static const char *const unreachable[] = {
    "vsock:2:1", "/nonexistent/notify",
    "/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
    "1234567890123456789"};
static const char *const reasons[] = {"Address family not supported", "No such file or directory",
                                      "Address family not supported"};

START_TEST(an_address_that_cannot_be_reached_is_logged_once)
{
    open_mailbox('@');
    capture_log();
    setenv("NOTIFY_SOCKET", unreachable[_i], 1);
    sxe__notify_ready(1);
    sxe__notify_alive();
    ck_assert_uint_eq(captured.number, 1);
    ck_assert(logged("cannot reach the service manager at NOTIFY_SOCKET="));
    ck_assert(logged(reasons[_i]));
    setenv("NOTIFY_SOCKET", mailbox.name, 1);
    sxe__notify_alive();
    ck_assert_str_eq(message(), "WATCHDOG=1");
    setenv("NOTIFY_SOCKET", unreachable[_i], 1);
    sxe__notify_alive();
    ck_assert_uint_eq(captured.number, 2);
}
END_TEST

START_TEST(calls_that_fail_are_logged_unless_there_is_no_room)
{
    unsigned open;

    open_mailbox('@');
    capture_log();
    open = fake_os_open_fds();
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    sxe__notify_alive();
    ck_assert(logged("Too many open files"));
    fake_os_fail(FAKE_SENDTO, 1, 1, ENOBUFS);
    sxe__notify_alive();
    ck_assert_uint_eq(captured.number, 2);
    fake_os_fail(FAKE_SENDTO, 1, 1, EAGAIN);
    sxe__notify_alive();
    ck_assert_uint_eq(captured.number, 2);
    ck_assert(mailbox_is_empty());
    ck_assert_uint_eq(fake_os_open_fds(), open);
}
END_TEST

START_TEST(the_period_is_half_of_what_the_watchdog_allows_this_process)
{
    char own[16];

    snprintf(own, sizeof(own), "%d", getpid());
    unsetenv("WATCHDOG_USEC");
    ck_assert_uint_eq(sxe__notify_period_ns(), 0);
    setenv("WATCHDOG_USEC", "3000000", 1);
    ck_assert_uint_eq(sxe__notify_period_ns(), UINT64_C(1500000000));
    setenv("WATCHDOG_PID", "1", 1);
    ck_assert_uint_eq(sxe__notify_period_ns(), 0);
    setenv("WATCHDOG_PID", own, 1);
    ck_assert_uint_eq(sxe__notify_period_ns(), UINT64_C(1500000000));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("httpd notify");
    TCase *t = tcase_create("notify");

    tcase_add_loop_test(t, messages_arrive_at_a_path_and_at_an_abstract_name, 0, 2);
    tcase_add_loop_test(t, without_the_variable_nothing_is_sent, 0, 2);
    tcase_add_loop_test(t, an_address_that_cannot_be_reached_is_logged_once, 0, 3);
    tcase_add_test(t, calls_that_fail_are_logged_unless_there_is_no_room);
    tcase_add_test(t, the_period_is_half_of_what_the_watchdog_allows_this_process);
    suite_add_tcase(suite, t);
    return sxe_test_main(suite);
}
