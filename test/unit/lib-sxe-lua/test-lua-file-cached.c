/* SPDX-License-Identifier: MIT
 *
 * file.read of files that are in the kernel's cache, which is done without a thread.
 */
#include "lua-files.h"

#include "test-main.h"

static void
start_loop_with_file(void)
{
    start_loop();
    run_script("assert(file.write(at 'a', '0123456789'))\n"
               "assert(file.write(at 'long', ('x'):rep(65537))) log = 'there'");
    until("log == 'there'");
}

START_TEST(what_is_cached_is_read_while_all_threads_are_busy)
{
    start_loop_with_file();
    keep_threads();
    run_script("local function read(options) return file.read(at 'a', options) end\n"
               "assert(read() == '0123456789' and read{from = 3, length = 4} == '3456')\n"
               "assert(read{from = 10} == '' and read{from = 99} == '')\n"
               "assert(read{length = 0} == '' and read{max = 10} == '0123456789')\n"
               "assert(read{from = 1 << 60} == '' and read{length = 1 << 60} == '0123456789')\n"
               "assert(#file.read(at 'long', {from = 1}) == 65536) log = 'read'");
    ck_assert(number("log == 'read'"));
    let_threads_go();
    stop_loop();
}
END_TEST

static const char *const left_to_threads[] = {
    "#file.read(at 'long') == 65537",
    "file.read(at 'none') == nil",
    "select(3, file.read(at 'a', {max = 9})) == 27",
    "#file.read '/proc/self/status' > 100",
    "select(3, file.read(arg[1])) == 21",
    "select(3, file.read(arg[1], {length = 0})) == 21",
    "file.read(at 'fifo') == ''",
    "select(3, file.read(at 'fifo', {from = 3, length = 0})) == 29",
};

START_TEST(what_is_not_is_left_to_them)
{
    char fifo[100], text[200];

    start_loop_with_file();
    snprintf(fifo, sizeof(fifo), "%s/fifo", root);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    keep_threads();
    snprintf(text, sizeof(text), "assert(%s) log = 'read'", left_to_threads[_i]);
    run_script(text);
    turn_slowly(2);
    ck_assert(number("log == 'there'"));
    let_threads_go();
    until("log == 'read'");
    stop_loop();
}
END_TEST

START_TEST(only_some_of_a_turn_are_read_without_a_thread)
{
    start_loop_with_file();
    keep_threads();
    run_script("for i = 1, 100 do assert(#file.read(at 'a') == 10) number = i end");
    ck_assert_int_eq(number("number"), 32);
    turn_slowly(2);
    ck_assert_int_eq(number("number"), 32);
    let_threads_go();
    until("number == 100");
    stop_loop();
}
END_TEST

/* The file was opened for a thread that never runs. */
START_TEST(a_read_that_is_cancelled_leaves_no_file_open)
{
    start_loop_with_file();
    keep_threads();
    run_script("t = task.start(function() log = select(2, file.read(at 'long')) end)");
    turn_slowly(2);
    run_script("t:cancel()");
    until("log == 'cancelled'");
    let_threads_go();
    stop_loop(); /* checks the number of descriptors */
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
    int error;
} uncached[] = {
    {FAKE_SYSCALL, 1, EAGAIN}, {FAKE_SYSCALL, 1, ENOSYS},     {FAKE_PREADV2, 1, EAGAIN},
    {FAKE_FSTAT, 1, EIO},      {FAKE_PREADV2, 1, EOPNOTSUPP}, {FAKE_PREADV2, 2, EAGAIN},
    {FAKE_REALLOC, 1, ENOMEM},
};

START_TEST(what_the_kernel_has_not_is_read_by_a_thread)
{
    start_loop_with_file();
    fake_os_limit(FAKE_PREADV2, 4);
    fake_os_fail(uncached[_i].call, uncached[_i].nth, 1, uncached[_i].error);
    run_script("log = file.read(at 'a', {from = 1})");
    ck_assert_uint_eq(fake_os_injected(), 1);
    ck_assert(number("log == 'there'"));
    until("log == '123456789'");
    fake_os_reset();
    stop_loop();
}
END_TEST

START_TEST(what_comes_in_parts_is_put_together)
{
    start_loop_with_file();
    keep_threads();
    fake_os_limit(FAKE_PREADV2, 4);
    run_script("log = file.read(at 'a')");
    ck_assert(number("log == '0123456789'"));
    fake_os_reset();
    let_threads_go();
    stop_loop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-file-cached");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, what_is_cached_is_read_while_all_threads_are_busy);
    tcase_add_loop_test(c, what_is_not_is_left_to_them, 0,
                        sizeof(left_to_threads) / sizeof(left_to_threads[0]));
    tcase_add_test(c, only_some_of_a_turn_are_read_without_a_thread);
    tcase_add_test(c, a_read_that_is_cancelled_leaves_no_file_open);
    tcase_add_loop_test(c, what_the_kernel_has_not_is_read_by_a_thread, 0,
                        sizeof(uncached) / sizeof(uncached[0]));
    tcase_add_test(c, what_comes_in_parts_is_put_together);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
