/* SPDX-License-Identifier: MIT
 *
 * A run in progress, for programs: a line of JSON each second, and metrics.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "leaks.h"
#include "monitor.h"
#include "run-plan.h"
#include "test-main.h"

#define SECOND UINT64_C(1000000000)

static struct load_monitor *monitor;
static struct load_result *result;
static const struct load_result *workers[2];
static uint64_t now_ns;
static char path[64];
static FILE *err;

static void
set_up(void)
{
    set_up_run();
    signal(SIGPIPE, SIG_IGN); /* the program ignores this signal, too */
    snprintf(path, sizeof(path), "/tmp/sxe-monitor-%d", (int)getpid());
    plan.jsonl = path;
    result = calloc(2, sizeof(*result));
    ck_assert_ptr_nonnull(result);
    workers[0] = &result[0];
    workers[1] = &result[1];
    err = tmpfile();
}

static void
tear_down(void)
{
    load_monitor_close(monitor);
    monitor = NULL;
    free(result);
    fclose(err);
    unlink(path);
    fake_os_reset();
    tear_down_run();
}

static void
open_monitor(void)
{
    ck_assert_int_eq(load_monitor_open(&monitor, &plan, err), 0);
    ck_assert_ptr_nonnull(monitor);
    now_ns = 100 * SECOND;
    load_monitor_begin(monitor, now_ns);
    ck_assert_uint_eq(load_monitor_due_ns(monitor), now_ns + SECOND);
}

static void
look_after(uint64_t ns)
{
    now_ns += ns;
    load_monitor_look(monitor, workers, 2, now_ns);
}

static void
reply(unsigned worker, unsigned number, uint64_t response_ns)
{
    result[worker].offered += number;
    result[worker].sent += number;
    result[worker].ends[LOAD_END_OK] += number;
    for (unsigned i = 0; i < number; i++)
        load_histogram_record(&result[worker].response, response_ns);
}

static const char *
file_text(void)
{
    static char text[65536];
    FILE *file = fopen(path, "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The nth line, from 0 on; the caller frees it. */
static json_t *
line(unsigned n)
{
    const char *at = file_text();
    json_t *root;

    for (; n > 0 && at != NULL; n--) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    ck_assert_ptr_nonnull(at);
    root = json_loadb(at, strcspn(at, "\n"), 0, NULL);
    ck_assert_ptr_nonnull(root);
    return root;
}

static double
number_in(unsigned n, const char *name)
{
    json_t *root = line(n);
    double number;

    ck_assert_msg(json_is_number(json_object_get(root, name)), "line %u has no %s", n, name);
    number = json_number_value(json_object_get(root, name));
    json_decref(root);
    return number;
}

static const char *
said(void)
{
    static char text[4096];

    fflush(err);
    rewind(err);
    text[fread(text, 1, sizeof(text) - 1, err)] = '\0';
    return text;
}

/* ---- Lines ---- */

START_TEST(a_line_has_what_happened_in_its_second)
{
    json_t *root;

    open_monitor();
    result[1].opened = 3;
    result[1].in_state[LOAD_SOCKET_IDLE] = 3;
    look_after(SECOND);
    root = line(0);
    ck_assert_str_eq(json_string_value(json_object_get(root, "type")), "second");
    ck_assert(json_is_null(json_object_get(root, "elapsed_s")));
    ck_assert(json_is_null(json_object_get(root, "p50")));
    ck_assert_double_eq(number_in(0, "connections"), 3);
    json_decref(root);
    result[0].started_ns = now_ns + SECOND / 2;
    reply(0, 1000, 1000000);
    reply(1, 1000, 3000000);
    look_after(SECOND);
    ck_assert_double_eq(number_in(1, "trial"), 1);
    ck_assert_double_eq(number_in(1, "seconds"), 1);
    ck_assert_double_eq(number_in(1, "elapsed_s"), 0.5);
    ck_assert_double_eq(number_in(1, "ok"), 2000);
    ck_assert_double_eq(number_in(1, "rate"), 2000);
    ck_assert_double_eq(number_in(1, "p50"), 1000);
    ck_assert_double_eq_tol(number_in(1, "p99"), 3000, 3);
    reply(0, 10, 7000000);
    result[0].sent++;
    result[0].in_flight = 1;
    result[0].ends[LOAD_END_RESET] = 2;
    result[0].skipped[LOAD_SKIP_SHED] = 4;
    look_after(SECOND / 2);
    ck_assert_double_eq(number_in(2, "seconds"), 0.5);
    ck_assert_double_eq(number_in(2, "ok"), 10);
    ck_assert_double_eq(number_in(2, "rate"), 20);
    ck_assert_double_eq(number_in(2, "sent"), 11);
    ck_assert_double_eq(number_in(2, "in_flight"), 1);
    check_has(file_text(), "\"reset\": 2");
    check_has(file_text(), "\"shed\": 4");
    look_after(SECOND);
    ck_assert_double_eq(number_in(3, "ok"), 0);
    check_has(strstr(file_text(), "\"elapsed_s\": 2"), "\"reset\": 0");
}
END_TEST

START_TEST(what_failed_makes_a_percentile_a_lower_bound)
{
    open_monitor();
    reply(0, 60, 1000000);
    for (unsigned i = 0; i < 40; i++)
        load_histogram_record_at_least(&result[0].response, SECOND);
    look_after(SECOND);
    check_has(file_text(), "\"p50\": 1000, \"p95\": null, \"p99\": null, \"at_least\": []");
    for (unsigned i = 0; i < 400; i++)
        load_histogram_record_at_least(&result[0].response, SECOND);
    look_after(SECOND);
    check_has(file_text(), "\"p50\": 1000000, \"p95\": 1000000, \"p99\": null, "
                           "\"at_least\": [\"p50\", \"p95\"]");
}
END_TEST

START_TEST(the_next_trial_begins_at_nothing)
{
    open_monitor();
    reply(0, 1000, 1000000);
    look_after(SECOND);
    load_monitor_end(monitor);
    look_after(SECOND); /* no worker is running */
    memset(result, 0, 2 * sizeof(*result));
    load_monitor_begin(monitor, now_ns);
    reply(0, 30, 1000000);
    look_after(SECOND);
    ck_assert_double_eq(number_in(1, "trial"), 2);
    ck_assert_double_eq(number_in(1, "ok"), 30);
    ck_assert_double_eq(number_in(1, "p50"), 1000);
}
END_TEST

START_TEST(looks_that_were_slept_over_are_one)
{
    open_monitor();
    look_after(7 * SECOND + SECOND / 4);
    ck_assert_uint_eq(load_monitor_due_ns(monitor), 108 * SECOND);
    ck_assert_double_eq(number_in(0, "seconds"), 7.25);
}
END_TEST

/* ---- Files that cannot be written ---- */

START_TEST(a_full_disk_is_said_once_and_the_run_goes_on)
{
    plan.jsonl = "/dev/full";
    open_monitor();
    look_after(SECOND);
    look_after(SECOND);
    ck_assert_str_eq(said(), "sxe-http: --jsonl /dev/full could not be written: No space left on "
                             "device; it ends here\n");
    run.total = result;
    run.plan = &plan;
    ck_assert_int_eq(load_monitor_finish(monitor, &run), -ENOSPC);
    run.total = NULL;
}
END_TEST

/* A pipe that is open for reading, but is never read. */
START_TEST(a_reader_that_stands_still_holds_nothing)
{
    static char bytes[1 << 20];
    size_t written = 0, got;
    FILE *reader;
    int fd;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    open_monitor();
    for (unsigned i = 0; i < 2000; i++)
        look_after(SECOND);
    reader = fdopen(fd, "r");
    while ((got = fread(bytes + written, 1, sizeof(bytes) - 1 - written, reader)) > 0)
        written += got;
    clearerr(reader);
    check_has(bytes, "\"missing\": 0}\n");
    look_after(SECOND);
    written = fread(bytes, 1, sizeof(bytes) - 1, reader);
    bytes[written] = '\0';
    ck_assert_uint_gt(strtoul(strstr(bytes, "missing\": ") + 10, NULL, 10), 1000);
    fclose(reader);
    look_after(SECOND);
    check_has(said(), "could not be written: Broken pipe");
}
END_TEST

START_TEST(without_memory_or_a_file_nothing_is_run)
{
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    ck_assert_int_eq(load_monitor_open(&monitor, &plan, err), LOAD_EXIT_ERRORS);
    check_has(said(), "no memory");
    plan.jsonl = "/nowhere/a";
    ck_assert_int_eq(load_monitor_open(&monitor, &plan, err), LOAD_EXIT_USAGE);
    check_has(said(), "--jsonl /nowhere/a cannot be written: No such file or directory; nothing");
    ck_assert_ptr_null(monitor);
}
END_TEST

START_TEST(without_its_address_nothing_is_run)
{
    plan.metrics = "@sxe-monitor";
    fake_os_fail(FAKE_BIND, 1, 1, EACCES);
    ck_assert_int_eq(load_run(&run, &plan, NULL, err), LOAD_EXIT_USAGE);
    check_has(said(), "--metrics cannot listen on @sxe-monitor: Permission denied; nothing");
}
END_TEST

/* ---- Neither lines nor metrics ---- */

START_TEST(where_nobody_asked_there_is_none)
{
    struct pollfd fds[LOAD_MONITOR_FDS];

    plan.jsonl = NULL;
    ck_assert_int_eq(load_monitor_open(&monitor, &plan, err), 0);
    ck_assert_ptr_null(monitor);
    load_monitor_begin(monitor, 1);
    load_monitor_look(monitor, workers, 2, 2);
    load_monitor_end(monitor);
    load_monitor_forget(monitor);
    load_monitor_poll(monitor, fds);
    load_monitor_serve(monitor, fds, 1);
    ck_assert_int_eq(fds[0].fd, -1);
    ck_assert_uint_eq(load_monitor_due_ns(monitor), UINT64_MAX);
    ck_assert_int_eq(load_monitor_finish(monitor, &run), 0);
}
END_TEST

/* ---- Complete runs ---- */

START_TEST(the_lines_of_a_run_are_its_accounts)
{
    double sent = 0;
    unsigned n = 0;

    fake_worker.queries = 120000; /* 1.2 s of real time */
    plan.trials = 2;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(load_monitor_finish(run.monitor, &run), 0);
    while (strstr(file_text(), "\"type\": \"result\"") != NULL && number_in(n, "missing") <= 0) {
        json_t *root = line(n++);

        if (strcmp(json_string_value(json_object_get(root, "type")), "result") == 0) {
            json_decref(root);
            break;
        }
        json_decref(root);
        sent += number_in(n - 1, "sent");
    }
    ck_assert_uint_gt(n, 3);
    ck_assert_double_eq(sent, (double)run.total->sent);
    ck_assert_double_eq(number_in(n - 1, "sent"), sent);
    ck_assert_double_eq(number_in(n - 1, "trials"), 2);
    check_has(file_text(), "\"found_rate\": null");
}
END_TEST

/* Ask for the metrics at the end of a trial; the parent answers between two turns. */
static void
ask(const struct load_worker *worker)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FILE *file = fopen(path, "w");
    char bytes[4096];
    ssize_t got;

    (void)worker;
    snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", plan.metrics + 1);
    if (connect(fd, (struct sockaddr *)&un,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(plan.metrics))) == 0)
        (void)!write(fd, "GET /metrics HTTP/1.0\r\n\r\n", 25);
    while ((got = read(fd, bytes, sizeof(bytes))) > 0)
        fwrite(bytes, 1, (size_t)got, file);
    fclose(file);
    close(fd);
}

START_TEST(a_run_is_served_while_it_runs)
{
    char name[64];

    snprintf(name, sizeof(name), "@sxe-monitor-%d", (int)getpid());
    plan.metrics = name;
    plan.jsonl = NULL;
    plan.quiet = false;
    fake_worker.queries = 120000;
    fake_worker.bad_shard = 1;
    fake_worker.do_before_done = ask;
    ck_assert_int_eq(run_plan(), 0);
    check_has(errors, "metrics   @sxe-monitor-");
    check_has(file_text(), "HTTP/1.1 200 OK\r\n");
    check_has(file_text(), "\nsxe_http_trial 1\n");
    check_has_not(file_text(), "sxe_http_requests_sent_total 0\n");
    check_has(file_text(), "# EOF\n");
}
END_TEST

/* The address is printed if the kernel chose the port, not if the user named it. */
START_TEST(a_quiet_run_says_the_port_that_it_chose)
{
    plan.metrics = _i == 0 ? "0" : _i == 1 ? "127.0.0.1:0" : "@sxe-monitor-quiet";
    plan.jsonl = NULL;
    plan.quiet = true;
    ck_assert_int_eq(run_plan(), 0);
    if (_i < 2)
        check_has(errors, "metrics   http://127.0.0.1:");
    else
        check_has_not(errors, "metrics");
}
END_TEST

START_TEST(a_search_has_its_rate_in_the_last_line)
{
    plan.find = "p99<10ms";
    open_monitor();
    run.plan = &plan;
    run.total = result;
    run.found_rate = 4711;
    load_verdict_say(&run.verdict, "it slept");
    ck_assert_int_eq(load_monitor_finish(monitor, &run), 0);
    ck_assert_double_eq(number_in(0, "found_rate"), 4711);
    check_has(file_text(), "\"reasons\": [\"it slept\"]");
    run.total = NULL;
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-monitor");
    TCase *tcase = tcase_create("monitor");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_line_has_what_happened_in_its_second);
    tcase_add_test(tcase, what_failed_makes_a_percentile_a_lower_bound);
    tcase_add_test(tcase, the_next_trial_begins_at_nothing);
    tcase_add_test(tcase, looks_that_were_slept_over_are_one);
    tcase_add_test(tcase, a_full_disk_is_said_once_and_the_run_goes_on);
    tcase_add_test(tcase, a_reader_that_stands_still_holds_nothing);
    tcase_add_test(tcase, without_memory_or_a_file_nothing_is_run);
    tcase_add_test(tcase, without_its_address_nothing_is_run);
    tcase_add_test(tcase, where_nobody_asked_there_is_none);
    tcase_add_test(tcase, the_lines_of_a_run_are_its_accounts);
    tcase_add_test(tcase, a_run_is_served_while_it_runs);
    tcase_add_loop_test(tcase, a_quiet_run_says_the_port_that_it_chose, 0, 3);
    tcase_add_test(tcase, a_search_has_its_rate_in_the_last_line);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
