/* SPDX-License-Identifier: MIT
 *
 * --selftest: it succeeds on this machine, and reports each fault.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "captured.h"
#include "fake-os.h"
#include "fake-time.h"
#include "fake-worker.h"
#include "has.h"
#include "leaks.h"
#include "run.h"
#include "selftest-private.h"
#include "test-main.h"

static char text[240];

static void
tear_down(void)
{
    fake_os_reset();
    check_that_nothing_is_left();
}

/* Other programs on this machine can delay replies. So the check "delay" may fail, and "stall" may
 * fail only if its line says that it was not judged. */
static bool
may_fail(const char *name, const char *line)
{
    return strcmp(name, "delay") == 0 ||
           (strcmp(name, "stall") == 0 && strstr(line, "; not judged: ") != NULL);
}

START_TEST(each_check_is_a_line)
{
    static const char *const names[] = {"clocks", "timer", "histogram", "accounts",
                                        "merge",  "stall", "delay"};
    char output[4096];
    char errors[4096];
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    const char *line = output;
    bool are_ok = true;
    int status = load_selftest(out, err);

    read_back(out, output, sizeof(output));
    read_back(err, errors, sizeof(errors));
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char words[32];
        bool is_ok;

        snprintf(words, sizeof(words), "ok      %-10s ", names[i]);
        is_ok = strncmp(line, words, strlen(words)) == 0;
        ck_assert_msg(is_ok || may_fail(names[i], line), "%s: %s", words, output);
        are_ok = are_ok && is_ok;
        line = strchr(line, '\n') + 1;
    }
    ck_assert_str_eq(line, "");
    ck_assert_int_eq(status, are_ok ? 0 : 1);
    ck_assert_int_eq(errors[0] == '\0', are_ok);
}
END_TEST

START_TEST(what_does_not_hold_is_said_and_is_the_status)
{
    char output[4096];
    char errors[4096];
    FILE *out = tmpfile();
    FILE *err = tmpfile();
    int status;

    fake_os_fail(FAKE_SOCKETPAIR, 1, 0, EMFILE);
    status = load_selftest(out, err);
    read_back(out, output, sizeof(output));
    read_back(err, errors, sizeof(errors));
    ck_assert_int_eq(status, LOAD_EXIT_ERRORS);
    ck_assert_ptr_nonnull(strstr(output, "FAILED  accounts   the load did not run, status 1\n"));
    ck_assert_ptr_nonnull(strstr(errors, "sxe-http: 4 of 7 checks failed: "));
}
END_TEST

/* ---- Without a server ---- */

START_TEST(a_clock_that_stands_still_does_not_go_back)
{
    fake_time_start(1000, 1000);
    ck_assert(load_selftest_clocks(text, sizeof(text)));
    fake_time_stop();
    check_has(text, "never go back");
}
END_TEST

START_TEST(a_timer_that_cannot_be_made_fails)
{
    fake_os_fail(FAKE_TIMERFD_CREATE, 1, 1, EMFILE);
    ck_assert(!load_selftest_timer(text, sizeof(text)));
    check_has(text, "cannot be tried: Too many open files");
}
END_TEST

START_TEST(a_timer_that_cannot_be_set_fails)
{
    fake_os_fail(FAKE_TIMERFD_SETTIME, 3, 1, EINVAL);
    ck_assert(!load_selftest_timer(text, sizeof(text)));
    check_has(text, "EARLY, OR NOT AT ALL");
}
END_TEST

START_TEST(without_memory_there_is_no_histogram)
{
    fake_os_fail(FAKE_CALLOC, 1 + (unsigned)_i, 1, ENOMEM);
    ck_assert(!load_selftest_histogram(text, sizeof(text)));
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert(!load_selftest_timer(text, sizeof(text)));
    check_has(text, "cannot be tried: Cannot allocate memory");
}
END_TEST

/* ---- With a server ---- */

static const load_selftest_check loads[] = {load_selftest_accounts, load_selftest_merge,
                                            load_selftest_stall, load_selftest_delay};
#define LOADS ((int)(sizeof(loads) / sizeof(loads[0])))

static const struct {
    enum fake_call call;
    int error;
    const char *text;
} faults[] = {
    {FAKE_CALLOC, ENOMEM, "cannot be tried: Cannot allocate memory"},
    {FAKE_MMAP, ENOMEM, "cannot be tried: Cannot allocate memory"},
    {FAKE_SOCKET, EMFILE, "cannot be tried: Too many open files"},
    {FAKE_BIND, EADDRINUSE, "cannot be tried: Address already in use"},
    {FAKE_LISTEN, EADDRINUSE, "cannot be tried: Address already in use"},
    {FAKE_GETSOCKNAME, ENOBUFS, "cannot be tried: No buffer space available"},
    {FAKE_PIPE2, EMFILE, "cannot be tried: Too many open files"},
    {FAKE_FORK, EAGAIN, "cannot be tried: Resource temporarily unavailable"},
};

START_TEST(a_server_that_cannot_be_started_fails_each_of_them)
{
    for (int i = 0; i < LOADS; i++) {
        fake_os_fail(faults[_i].call, 1, 1, faults[_i].error);
        ck_assert(!loads[i](text, sizeof(text)));
        check_has(text, faults[_i].text);
    }
}
END_TEST

START_TEST(workers_that_cannot_be_forked_fail_each_of_them)
{
    bool is_stall = loads[_i] == load_selftest_stall;

    fake_os_fail(FAKE_FORK, is_stall ? 3 : 2, 0, EAGAIN);
    ck_assert(!loads[_i](text, sizeof(text)));
    check_has(text, "the load did not run, status 1");
}
END_TEST

START_TEST(a_stopper_that_cannot_be_forked_fails_the_stall)
{
    fake_os_fail(FAKE_FORK, 2, 1, EAGAIN);
    ck_assert(!load_selftest_stall(text, sizeof(text)));
    check_has(text, "cannot be tried: Resource temporarily unavailable");
}
END_TEST

/* Whichever allocation fails, there is a verdict, and no memory is lost. */
START_TEST(without_memory_for_requests_there_is_no_load)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC};
    bool was_tried = false;

    for (unsigned nth = 2; nth < 10 && !was_tried; nth++) {
        fake_os_reset();
        fake_os_sweep(kinds, 3, nth, false, ENOMEM);
        load_selftest_merge(text, sizeof(text));
        was_tried = strncmp(text, "cannot be tried", strlen("cannot be tried")) != 0;
    }
    ck_assert(was_tried);
}
END_TEST

/* ---- With workers that report wrong figures ---- */

static int
miscount(const struct load_worker *worker)
{
    struct fake_worker_state state = {.worker = worker};

    fake_worker_begin(&state);
    worker->result->sent = 1;
    fake_worker_say(worker, LOAD_MESSAGE_DONE, 0);
    return 0;
}

START_TEST(accounts_that_do_not_close_fail_each_of_them)
{
    load_workers_work = miscount;
    ck_assert(!loads[_i](text, sizeof(text)));
    check_has(text, "the accounts do not close: offered 0 is not sent ");
}
END_TEST

static int
use_all_of_a_cpu(const struct load_worker *worker)
{
    struct fake_worker_state state = {.worker = worker};

    fake_worker_begin(&state);
    worker->result->elapsed_ns = worker->result->cpu_user_ns = SXE_NS_PER_SECOND;
    fake_worker_say(worker, LOAD_MESSAGE_DONE, 0);
    return 0;
}

static int
reply_to_nothing(const struct load_worker *worker)
{
    struct fake_worker_state state = {.worker = worker};

    fake_worker_begin(&state);
    fake_worker_say(worker, LOAD_MESSAGE_DONE, 0);
    return 0;
}

START_TEST(a_delay_that_no_reply_shows_is_not_good)
{
    load_workers_work = reply_to_nothing;
    ck_assert(!load_selftest_delay(text, sizeof(text)));
    check_has(text, "at 0/s");
}
END_TEST

START_TEST(an_error_that_cannot_be_judged_is_not_good)
{
    load_workers_work = use_all_of_a_cpu;
    ck_assert(!load_selftest_delay(text, sizeof(text)));
    check_has(text, "not judged: client cpu");
}
END_TEST

/* Send one request, so that the server stalls, and no other of those that were asked for. */
static int
ask_once_with_all_of_a_cpu(const struct load_worker *worker)
{
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_port = htons(worker->plan->port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 ||
        send(fd, "GET / HTTP/1.1\r\n\r\n", 18, 0) < 0)
        return -1;
    return use_all_of_a_cpu(worker);
}

START_TEST(a_stall_that_cannot_be_judged_is_not_good)
{
    load_workers_work = ask_once_with_all_of_a_cpu;
    ck_assert(!load_selftest_stall(text, sizeof(text)));
    check_has(text, "response p90 0.0 % of that");
    check_has(text, "; not judged: client cpu");
}
END_TEST

/* ---- Interrupts ---- */

static void
interrupt_parent(const struct load_worker *worker)
{
    (void)worker;
    kill(getppid(), SIGINT);
}

static void
set_interrupt(void)
{
    load_workers_work = fake_worker_run;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_ready = interrupt_parent;
}

START_TEST(an_interrupted_check_does_not_hold)
{
    set_interrupt();
    ck_assert(!loads[_i](text, sizeof(text)));
    ck_assert_str_eq(text, "interrupted");
    ck_assert(load_selftest_is_interrupted());
}
END_TEST

START_TEST(behind_an_interrupt_no_check_is_made)
{
    char output[4096];
    char errors[4096];
    FILE *out = tmpfile();
    FILE *err = tmpfile();

    set_interrupt();
    ck_assert_int_eq(load_selftest(out, err), LOAD_EXIT_INTERRUPTED);
    read_back(out, output, sizeof(output));
    read_back(err, errors, sizeof(errors));
    check_has(output, "histogram");
    ck_assert_ptr_null(strstr(output, "accounts"));
    ck_assert_str_eq(errors, "sxe-http: interrupted: 4 of 7 checks are not made\n");
}
END_TEST

/* The listener stays readable, so accept is tried again. */
START_TEST(a_connection_that_cannot_be_accepted_comes_again)
{
    fake_os_fail(FAKE_ACCEPT4, 1, 2, EMFILE);
    ck_assert_msg(load_selftest_merge(text, sizeof(text)), "%s", text);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-selftest");
    TCase *all = tcase_create("all");

    tcase_add_test(all, each_check_is_a_line);
    tcase_add_test(all, what_does_not_hold_is_said_and_is_the_status);
    tcase_add_test(all, a_clock_that_stands_still_does_not_go_back);
    tcase_add_test(all, a_timer_that_cannot_be_made_fails);
    tcase_add_test(all, a_timer_that_cannot_be_set_fails);
    tcase_add_loop_test(all, without_memory_there_is_no_histogram, 0, 2);
    tcase_add_loop_test(all, a_server_that_cannot_be_started_fails_each_of_them, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_loop_test(all, workers_that_cannot_be_forked_fail_each_of_them, 0, LOADS);
    tcase_add_test(all, a_stopper_that_cannot_be_forked_fails_the_stall);
    tcase_add_test(all, without_memory_for_requests_there_is_no_load);
    tcase_add_loop_test(all, accounts_that_do_not_close_fail_each_of_them, 0, LOADS);
    tcase_add_test(all, a_delay_that_no_reply_shows_is_not_good);
    tcase_add_loop_test(all, an_interrupted_check_does_not_hold, 0, LOADS);
    tcase_add_test(all, behind_an_interrupt_no_check_is_made);
    tcase_add_test(all, an_error_that_cannot_be_judged_is_not_good);
    tcase_add_test(all, a_stall_that_cannot_be_judged_is_not_good);
    tcase_add_test(all, a_connection_that_cannot_be_accepted_comes_again);
    tcase_add_checked_fixture(all, note_what_is_open, tear_down);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
