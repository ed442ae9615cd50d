/* SPDX-License-Identifier: MIT
 *
 * The view of a run in progress: a line each second, or, on a terminal (here a pty), a few lines
 * that are drawn again in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "http-run-fixture.h"
#include "live.h"
#include "test-main.h"
#include "text.h"

#define SECOND UINT64_C(1000000000)

static struct load_plan plan;
static struct load_result *sum;
static struct load_live *live;
static FILE *err;
static int terminal; /* the test reads here what the terminal shows */
static uint64_t now_ns;

static void
set_up(void)
{
    make_plan(&plan);
    plan.duration_ns = 10 * SECOND;
    sum = calloc(1, sizeof(*sum));
    ck_assert_ptr_nonnull(sum);
    sum->sockets_wanted = 64;
    now_ns = 100 * SECOND;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
}

static void
tear_down(void)
{
    free(sum);
}

static void
open_file(void)
{
    err = tmpfile();
    live = load_live_new(&plan, err, false);
    ck_assert_ptr_nonnull(live);
}

static void
open_terminal(unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};

    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    ck_assert_int_ge(terminal, 0);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &size), 0);
    err = fopen(ptsname(terminal), "w");
    ck_assert_ptr_nonnull(err);
    live = load_live_new(&plan, err, true);
    ck_assert_ptr_nonnull(live);
}

/* The bytes that the terminal has received since the last call. */
static const char *
seen(void)
{
    static char bytes[16384];
    ssize_t length;
    size_t used = 0;

    while ((length = read(terminal, bytes + used, sizeof(bytes) - 1 - used)) > 0)
        used += (size_t)length;
    bytes[used] = '\0';
    return bytes;
}

/* All text that was printed to the file; ends the view. */
static char *
end_file(void)
{
    load_live_delete(live);
    return text_of(err, NULL);
}

static void
end_terminal(void)
{
    fclose(err);
    close(terminal);
}

static void
reply(unsigned number, uint64_t response_ns)
{
    sum->sent += number;
    sum->ends[LOAD_END_OK] += number;
    for (unsigned i = 0; i < number; i++)
        load_histogram_record(&sum->response, response_ns);
}

static void
show_after(uint64_t ns)
{
    now_ns += ns;
    load_live_show(live, sum, now_ns);
}

/* ---- A line each second ---- */

START_TEST(a_file_gets_a_line_a_second_with_what_happened_in_it)
{
    char *text;

    open_file();
    ck_assert_uint_eq(load_live_period_ns(live), SECOND);
    sum->opened = 12;
    show_after(0);
    show_after(SECOND);
    sum->started_ns = now_ns;
    reply(5000, 200000);
    show_after(SECOND);
    reply(2000, 3000000);
    sum->ends[LOAD_END_RESET] = 3;
    sum->skipped[LOAD_SKIP_SHED] = 7;
    show_after(SECOND / 2);
    show_after(SECOND / 2);
    show_after(SECOND);
    text = end_file();
    ck_assert_str_eq(
        text, "connecting: 12 of 64 connections\n"
              "1 s, 10 % done, 9 s left: 5.00k/s  p50 200 us  p95 200 us  p99 200 us  max 200 us  "
              "errors 0\n"
              "2 s, 20 % done, 8 s left: 2.00k/s  p50 3.00 ms  p95 3.00 ms  "
              "p99 3.00 ms  max 3.00 ms  errors 3  skipped 7\n"
              "3 s, 30 % done, 7 s left: 0/s  no reply  errors 3  skipped 7\n");
    free(text);
}
END_TEST

START_TEST(a_look_that_comes_a_little_early_still_ends_its_second)
{
    char *text;

    open_file();
    sum->started_ns = now_ns;
    show_after(0);
    reply(100, 1000);
    show_after(SECOND - 2000000);
    text = end_file();
    check_has(text, ": 100/s  p50 1.00 us  p95 n/a  p99 n/a  max 1.00 us");
    free(text);
}
END_TEST

static void
stop_total(void)
{
    plan.stop = LOAD_STOP_TOTAL;
    plan.requests_max = 400;
    sum->skipped[LOAD_SKIP_SHED] = 100;
}

static void
stop_per_socket(void)
{
    plan.stop = LOAD_STOP_PER_SOCKET;
    plan.queries = 10;
    plan.sockets = 20;
}

static void
stop_replay(void)
{
    plan.stop = LOAD_STOP_REPLAY;
}

/* A search goes on until it has found a rate. */
static void
stop_search(void)
{
    plan.find = "p99<10ms";
}

static void
stop_late(void)
{
    plan.duration_ns = SECOND / 2;
}

static const struct {
    void (*change)(void);
    const char *expected;
} stops[] = {
    {stop_total, "1 s, 50 % done, 1 s left: "},
    {stop_per_socket, "1 s, 50 % done, 1 s left: "},
    {stop_replay, "1 s: "},
    {stop_search, "1 s: "},
    {stop_late, "1 s, 100 % done, 0 s left: "},
};

START_TEST(the_time_left_follows_from_what_was_to_be_done)
{
    char *text;

    stops[_i].change();
    open_file();
    sum->started_ns = now_ns;
    show_after(0);
    reply(100, 1000);
    show_after(SECOND);
    text = end_file();
    check_has(text, stops[_i].expected);
    free(text);
}
END_TEST

START_TEST(a_start_in_the_future_is_no_time_yet)
{
    char *text;

    open_file();
    sum->started_ns = now_ns + 2 * SECOND;
    show_after(0);
    show_after(SECOND);
    text = end_file();
    ck_assert_str_eq(text, "0 s: 0/s  no reply  errors 0\n");
    free(text);
}
END_TEST

/* ---- On a terminal ---- */

START_TEST(a_terminal_is_drawn_in_place_ten_times_a_second)
{
    open_terminal(100);
    ck_assert_uint_eq(load_live_period_ns(live), SECOND / 10);
    sum->started_ns = now_ns;
    sum->in_state[LOAD_SOCKET_IDLE] = 3;
    sum->in_state[LOAD_SOCKET_BUSY] = 61;
    show_after(0);
    ck_assert_str_eq(seen(), "closed loop  0 s  [....................]\033[K\r\n"
                             "rate     0/s  \033[K\r\n"
                             "response no reply  errors 0  skipped 0\033[K\r\n"
                             "connections  idle 3  busy 61\033[K\r\n");
    for (unsigned i = 0; i < 9; i++) {
        show_after(SECOND / 10);
        ck_assert_int_eq(strncmp(seen(), "\r\033[4Aclosed loop  ", 18), 0);
    }
    reply(5000, 200000);
    sum->waiting = 7;
    show_after(SECOND / 10);
    ck_assert_str_eq(seen(),
                     "\r\033[4Aclosed loop  1 s, 10 % done, 9 s left  [##..................]"
                     "\033[K\r\n"
                     "rate     5.00k/s  \u2588\033[K\r\n"
                     "response p50 200 us  p95 200 us  p99 200 us  max 200 us  errors 0  skipped 0"
                     "\033[K\r\n"
                     "connections  idle 3  busy 61  requests waiting 7\033[K\r\n");
    load_live_delete(live);
    ck_assert_str_eq(seen(), "\r\033[4A\033[J");
    end_terminal();
}
END_TEST

START_TEST(in_the_first_second_a_terminal_shows_what_came_so_far)
{
    const char *text;

    open_terminal(100);
    sum->started_ns = now_ns;
    show_after(0);
    seen();
    reply(1000, 200000);
    sum->ends[LOAD_END_RESET] = 100;
    show_after(SECOND / 2);
    text = seen();
    check_has(text, "rate     2.00k/s  \033[K");
    check_has(
        text,
        "response p50 200 us  p95 200 us  p99 200 us  max 200 us  errors 100 (200/s)  skipped 0");
    load_live_delete(live);
    end_terminal();
}
END_TEST

START_TEST(a_terminal_shows_no_bar_while_it_connects)
{
    open_terminal(100);
    sum->opened = 12;
    show_after(0);
    check_has(seen(), "closed loop  connecting: 12 of 64 connections\033[K\r\n");
    load_live_delete(live);
    end_terminal();
}
END_TEST

START_TEST(errors_are_red_unless_colours_are_not_wanted)
{
    if (_i > 0)
        setenv("NO_COLOR", _i == 1 ? "1" : "", 1);
    open_terminal(100);
    sum->started_ns = now_ns;
    show_after(0);
    sum->ends[LOAD_END_RESET] = 10;
    show_after(SECOND);
    if (_i == 1)
        check_has_not(seen(), "\033[31m");
    else
        check_has(seen(), "\033[31mresponse no reply  errors 10 (10/s)  skipped 0\033[0m\033[K");
    load_live_delete(live);
    end_terminal();
}
END_TEST

START_TEST(a_narrow_terminal_is_never_overrun)
{
    static const unsigned short widths[] = {1, 20, 33, 80, 200, 500};
    const unsigned width = widths[_i] < 20 ? 19 : widths[_i] < 200 ? widths[_i] - 1 : 200;
    const char *text;

    open_terminal(widths[_i]);
    sum->started_ns = now_ns;
    for (unsigned i = 0; i < LOAD_SOCKET_STATES; i++)
        sum->in_state[i] = 1000000;
    for (unsigned i = 0; i < 70; i++) {
        show_after(i == 0 ? 0 : SECOND);
        reply(i + 1, 1000);
        seen();
    }
    show_after(SECOND);
    seen();
    show_after(0);
    for (text = strchr(seen(), 'A') + 1; *text != '\0'; text += strcspn(text, "\n") + 1) {
        char line[1024];

        snprintf(line, sizeof(line), "%.*s", (int)strcspn(text, "\033"), text);
        ck_assert_uint_le(load_columns(line), width);
        ck_assert_uint_gt(load_columns(line), 0);
    }
    load_live_delete(live);
    end_terminal();
}
END_TEST

START_TEST(a_terminal_that_does_not_say_how_wide_it_is_has_80_columns)
{
    open_terminal(_i == 0 ? 0 : 200);
    sum->started_ns = now_ns;
    for (unsigned i = 0; i < LOAD_SOCKET_STATES; i++)
        sum->in_state[i] = 1000000;
    if (_i == 1)
        fake_os_fail(FAKE_IOCTL, 1, 1, ENOTTY);
    show_after(0);
    check_has(seen(), "  idle 1000000  partly 1000...\033[K");
    load_live_delete(live);
    end_terminal();
}
END_TEST

START_TEST(a_dumb_terminal_is_treated_as_a_file)
{
    if (_i == 0)
        setenv("TERM", "dumb", 1);
    else
        unsetenv("TERM");
    open_terminal(100);
    ck_assert_uint_eq(load_live_period_ns(live), SECOND);
    sum->started_ns = now_ns;
    show_after(0);
    show_after(SECOND);
    load_live_delete(live);
    ck_assert_str_eq(seen(), "1 s, 10 % done, 9 s left: 0/s  no reply  errors 0\r\n");
    end_terminal();
}
END_TEST

/* ---- No view ---- */

START_TEST(a_quiet_run_and_one_without_memory_have_no_view)
{
    plan.quiet = true;
    ck_assert_ptr_null(load_live_new(&plan, stderr, true));
    plan.quiet = false;
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(load_live_new(&plan, stderr, true));
    load_live_show(NULL, sum, now_ns);
    load_live_delete(NULL);
    ck_assert_uint_eq(load_live_period_ns(NULL), SECOND);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-live");
    TCase *tcase = tcase_create("live");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_file_gets_a_line_a_second_with_what_happened_in_it);
    tcase_add_test(tcase, a_look_that_comes_a_little_early_still_ends_its_second);
    tcase_add_loop_test(tcase, the_time_left_follows_from_what_was_to_be_done, 0,
                        sizeof(stops) / sizeof(stops[0]));
    tcase_add_test(tcase, a_start_in_the_future_is_no_time_yet);
    tcase_add_test(tcase, a_terminal_is_drawn_in_place_ten_times_a_second);
    tcase_add_test(tcase, in_the_first_second_a_terminal_shows_what_came_so_far);
    tcase_add_test(tcase, a_terminal_shows_no_bar_while_it_connects);
    tcase_add_loop_test(tcase, errors_are_red_unless_colours_are_not_wanted, 0, 3);
    tcase_add_loop_test(tcase, a_narrow_terminal_is_never_overrun, 0, 6);
    tcase_add_loop_test(tcase, a_terminal_that_does_not_say_how_wide_it_is_has_80_columns, 0, 2);
    tcase_add_loop_test(tcase, a_dumb_terminal_is_treated_as_a_file, 0, 2);
    tcase_add_test(tcase, a_quiet_run_and_one_without_memory_have_no_view);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
