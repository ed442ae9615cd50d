/* SPDX-License-Identifier: MIT
 *
 * --server-cmd: the command is started for each trial, sxe-http waits until it listens, and ends it
 * with its whole process group. The server is this program itself, with arguments.
 */
#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "run-plan.h"
#include "test-main.h"

static char program[PATH_MAX];
static char command[3 * PATH_MAX];
static char directory[64];
static char path[108];

/* ---- The server: this program, with arguments ---- */

static int
listen_at(const char *where)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)strtoul(where, NULL, 10)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    bool is_path = where[0] == '/' || where[0] == '@';
    int fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(where));
    int one = 1;
    int error;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", where);
    if (where[0] == '@')
        un.sun_path[0] = '\0';
    else
        length++;
    error = is_path ? bind(fd, (struct sockaddr *)&un, length)
                    : bind(fd, (struct sockaddr *)&in4, sizeof(in4));
    return error == 0 && listen(fd, 10) == 0 ? fd : -1;
}

/* how: "serve"; "stubborn" ignores SIGTERM; "mortal" exits at its second connection; "deaf" never
 * listens; "loud" prints. */
static int
serve(const char *how, const char *where)
{
    unsigned mortal = strcmp(how, "mortal") == 0 ? 2 : 0;
    int fd;

    if (strcmp(how, "deaf") == 0)
        for (;;)
            pause();
    if (strcmp(how, "stubborn") == 0)
        signal(SIGTERM, SIG_IGN);
    if (strcmp(how, "loud") == 0) {
        printf("on stdout\n");
        fflush(stdout);
    }
    fd = listen_at(where);
    for (unsigned i = 1;; i++) {
        int peer = accept(fd, NULL, NULL);

        if (fd < 0 || i == mortal)
            return 3;
        close(peer);
    }
}

/* ---- Setting up the command and its port ---- */

static void
set_command(const char *how)
{
    if (plan.unix_path != NULL)
        snprintf(command, sizeof(command), "%s %s %s", program, how, plan.unix_path);
    else
        snprintf(command, sizeof(command), "%s %s %u", program, how, plan.port);
    plan.server_cmd = command;
}

static bool
connects(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(plan.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is_open = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    close(fd);
    return is_open;
}

/* A port that is free now, and stays free while a server is restarted: it is outside the range that
 * the kernel hands out, and outside the wire driver's. */
static uint16_t
free_port(void)
{
    uint16_t port = (uint16_t)(8000 + getpid() % 3900);
    bool is_free = false;

    while (!is_free) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(++port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        is_free = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
        close(fd);
    }
    return port;
}

static void
set_up(void)
{
    set_up_run();
    plan.port = free_port();
    snprintf(directory, sizeof(directory), "/tmp/test-server-cmd-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/connection", directory);
}

static void
tear_down(void)
{
    unlink(path);
    rmdir(directory);
    ck_assert(!connects());
    tear_down_run();
}

START_TEST(the_server_runs_while_the_workers_do)
{
    set_command("serve");
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(each_trial_has_a_server_of_its_own)
{
    plan.trials = 3;
    set_command("mortal"); /* if a server were kept, the second trial would end it */
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_str_eq(errors, "");
    ck_assert_uint_eq(run.trials_number, 3);
}
END_TEST

static char other_command[sizeof(command)];

static void
note_server(const struct load_worker *worker)
{
    worker->result->bytes_sent = worker->plan->server_cmd == other_command;
    worker->result->bytes_received = worker->plan->seed;
}

/* Add a baseline: its trials alternate with the server's, with the same seeds. */
static void
set_baseline(void)
{
    set_command("serve");
    snprintf(other_command, sizeof(other_command), "%s", command);
    set_command("mortal");
    plan.baseline_cmd = other_command;
    plan.trials = 2 * LOAD_TRIALS_MIN;
    fake_worker.bad_shard = 1;
}

START_TEST(a_baseline_is_measured_in_turn_and_reported_apart)
{
    set_baseline();
    plan.quiet = false;
    fake_worker.do_before_ready = note_server;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
    ck_assert_uint_eq(run.trials_number, LOAD_TRIALS_MIN);
    ck_assert_uint_eq(run.baseline_number, LOAD_TRIALS_MIN);
    ck_assert_uint_eq(run.total->ends[LOAD_END_OK], LOAD_TRIALS_MIN * 200);
    for (unsigned i = 0; i < LOAD_TRIALS_MIN; i++) {
        ck_assert_uint_eq(run.trials[i].result->bytes_sent, 0);
        ck_assert_uint_eq(run.baseline[i].result->bytes_sent, 1);
        ck_assert_uint_eq(run.trials[i].result->bytes_received,
                          run.baseline[i].result->bytes_received);
    }
    check_has(errors, "trial     1/12 A  ");
    check_has(errors, "trial     2/12 B  ");
    check_has(errors, "trial     3/12 B  ");
    check_has(errors, "trial     12/12 A  ");
}
END_TEST

static void
fail_for_other(const struct load_worker *worker)
{
    if (worker->plan->server_cmd != other_command)
        return;
    worker->result->ends[LOAD_END_OK]--;
    worker->result->ends[LOAD_END_RESET]++;
}

START_TEST(a_baseline_with_errors_is_an_error)
{
    set_baseline();
    fake_worker.do_before_done = fail_for_other;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    ck_assert_uint_eq(load_result_errors(run.total), 0);
    check_has(errors,
              "sxe-http: 6 requests to the server of --baseline-cmd were not answered well");
}
END_TEST

static void
interrupt_parent(const struct load_worker *worker)
{
    (void)worker;
    kill(getppid(), SIGINT);
}

START_TEST(a_baseline_that_is_interrupted_in_its_first_trial_is_reported)
{
    set_baseline();
    fake_worker.do_before_done = interrupt_parent;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_INTERRUPTED);
    ck_assert_uint_eq(run.trials_number, 0);
    ck_assert_uint_eq(run.baseline_number, 1);
    ck_assert_uint_eq(run.total->offered, 0);
}
END_TEST

START_TEST(a_server_at_a_path_is_waited_for_too)
{
    char abstract[1 + sizeof(path)];

    snprintf(abstract, sizeof(abstract), "@%s", path);
    plan.unix_path = _i == 0 ? path : abstract;
    set_command("serve");
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_OK);
}
END_TEST

START_TEST(a_server_with_a_shell_around_it_is_ended_with_it)
{
    snprintf(command, sizeof(command), "true; %s serve %u & %s deaf 0; wait", program, plan.port,
             program);
    plan.server_cmd = command;
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(a_server_that_does_not_want_to_end_is_killed)
{
    load_server_stop_ns = 50 * SXE_NS_PER_MS;
    set_command("stubborn");
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_str_eq(errors, "");
}
END_TEST

/* Signals that sxe-http ignores must not be ignored in the server. */
START_TEST(a_server_has_no_signal_ignored)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    plan.server_cmd = _i == 0 ? "kill -PIPE $$; exit 7" : "kill -XFSZ $$; exit 7";
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    check_has(errors, _i == 0 ? ") ended with signal 13 (" : ") ended with signal 25 (");
}
END_TEST

START_TEST(what_a_server_prints_is_not_data)
{
    FILE *both[2] = {tmpfile(), tmpfile()};
    int was[2] = {dup(1), dup(2)};
    char texts[2][256];

    set_command("loud");
    for (int i = 0; i < 2; i++)
        dup2(fileno(both[i]), i + 1);
    run_plan();
    for (int i = 0; i < 2; i++) {
        dup2(was[i], i + 1);
        close(was[i]);
        read_back(both[i], texts[i], sizeof(texts[i]));
    }
    ck_assert_str_eq(texts[0], "");
    ck_assert_str_eq(texts[1], "on stdout\n");
}
END_TEST

START_TEST(a_command_that_ends_at_once_is_said_with_its_status)
{
    plan.server_cmd = "exit 7";
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    check_has(errors, "sxe-http: the server of --server-cmd (process ");
    check_has(errors, ") ended with exit status 7\n");
}
END_TEST

START_TEST(a_command_that_does_not_listen_is_not_waited_for_for_ever)
{
    char text[256];

    load_server_start_ns = 50 * SXE_NS_PER_MS;
    plan.unix_path = _i == 0 ? NULL : path;
    set_command("deaf");
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    if (_i == 0)
        snprintf(text, sizeof(text), "does not accept at 127.0.0.1:%u after 0.05 s\n", plan.port);
    else
        snprintf(text, sizeof(text), "does not accept at %s after 0.05 s\n", path);
    check_has(errors, text);
}
END_TEST

static void
connect_once(const struct load_worker *worker)
{
    (void)worker;
    connects();
}

START_TEST(a_server_that_dies_ends_the_run)
{
    fake_worker.queries = 0;
    fake_worker.bad_shard = 1;
    fake_worker.do_at_mark = connect_once;
    plan.warmup_ns = SXE_NS_PER_MS;
    set_command("mortal");
    ck_assert_int_eq(run_plan(), 0);
    ck_assert_int_eq(run.status, LOAD_EXIT_ERRORS);
    check_has(errors, ") ended with exit status 3\n");
}
END_TEST

/* ---- Another server listens already ---- */

START_TEST(a_server_that_is_there_already_is_refused_and_named)
{
    char where[8];
    char text[256];
    int fd;

    plan.unix_path = _i == 0 ? NULL : path;
    snprintf(where, sizeof(where), "%u", plan.port);
    fd = listen_at(_i == 0 ? where : path);
    ck_assert_int_ge(fd, 0);
    set_command("serve");
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    close(fd);
    snprintf(text, sizeof(text), "(pid %d); stop it, or choose another port\n", (int)getpid());
    check_has(errors, "sxe-http: --server-cmd would not be what is measured: ");
    check_has(errors, text);
}
END_TEST

START_TEST(where_nothing_can_be_connected_nobody_accepts)
{
    load_server_start_ns = 50 * SXE_NS_PER_MS;
    set_command("serve");
    if (_i == 0)
        snprintf(plan.ip, sizeof(plan.ip), "nowhere");
    else
        fake_os_fail(FAKE_SOCKET, 1, 0, EMFILE);
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    check_has(errors, "does not accept");
}
END_TEST

/* The check waits for its connect; the backlog is full, so that never ends. */
START_TEST(a_full_backlog_does_not_accept)
{
    char where[8];
    int peers[32];
    int fd;

    load_server_start_ns = 0;
    snprintf(where, sizeof(where), "%u", plan.port);
    fd = listen_at(where);
    listen(fd, 0);
    for (unsigned i = 0; i < 32; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(plan.port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        peers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(peers[i], (struct sockaddr *)&address, sizeof(address));
    }
    set_command("deaf");
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
    check_has(errors, "does not accept");
    for (unsigned i = 0; i < 32; i++)
        close(peers[i]);
    close(fd);
}
END_TEST

/* ---- Interrupts and faults ---- */

START_TEST(an_interrupt_while_it_is_waited_for_ends_it)
{
    snprintf(command, sizeof(command), "kill -INT %d; exec %s deaf 0", (int)getpid(), program);
    plan.server_cmd = command;
    ck_assert_int_eq(run_plan(), LOAD_EXIT_INTERRUPTED);
    ck_assert_str_eq(errors, "sxe-http: interrupted before anything was measured\n");
}
END_TEST

/* A user who may start no more processes. Root always may, so root becomes another user here. */
START_TEST(a_command_that_cannot_be_started_is_said)
{
    uid_t user = geteuid();
    struct rlimit before;
    struct rlimit none;

    ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    set_command("serve");
    ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &none), 0);
    if (user == 0)
        ck_assert_int_eq(setresuid(65534, 65534, 0), 0);
    int status = run_plan();
    if (user == 0)
        ck_assert_int_eq(setresuid(0, 0, 0), 0);
    setrlimit(RLIMIT_NPROC, &before);
    ck_assert_int_eq(status, LOAD_EXIT_ERRORS);
    ck_assert_str_eq(errors,
                     "sxe-http: cannot start --server-cmd: Resource temporarily unavailable\n");
}
END_TEST

START_TEST(workers_that_cannot_start_leave_no_server)
{
    set_command("serve");
    fake_worker.ready_error = EMFILE;
    ck_assert_int_eq(run_plan(), LOAD_EXIT_ERRORS);
}
END_TEST

static int
run_cases(void)
{
    Suite *suite = suite_create("http-server-cmd");
    TCase *all = tcase_create("all");

    tcase_add_test(all, the_server_runs_while_the_workers_do);
    tcase_add_test(all, each_trial_has_a_server_of_its_own);
    tcase_add_test(all, a_baseline_is_measured_in_turn_and_reported_apart);
    tcase_add_test(all, a_baseline_with_errors_is_an_error);
    tcase_add_test(all, a_baseline_that_is_interrupted_in_its_first_trial_is_reported);
    tcase_add_loop_test(all, a_server_at_a_path_is_waited_for_too, 0, 2);
    tcase_add_test(all, a_server_with_a_shell_around_it_is_ended_with_it);
    tcase_add_test(all, a_server_that_does_not_want_to_end_is_killed);
    tcase_add_loop_test(all, a_server_has_no_signal_ignored, 0, 2);
    tcase_add_test(all, what_a_server_prints_is_not_data);
    tcase_add_test(all, a_command_that_ends_at_once_is_said_with_its_status);
    tcase_add_loop_test(all, a_command_that_does_not_listen_is_not_waited_for_for_ever, 0, 2);
    tcase_add_test(all, a_server_that_dies_ends_the_run);
    tcase_add_loop_test(all, a_server_that_is_there_already_is_refused_and_named, 0, 2);
    tcase_add_loop_test(all, where_nothing_can_be_connected_nobody_accepts, 0, 2);
    tcase_add_test(all, a_full_backlog_does_not_accept);
    tcase_add_test(all, an_interrupt_while_it_is_waited_for_ends_it);
    tcase_add_test(all, a_command_that_cannot_be_started_is_said);
    tcase_add_test(all, workers_that_cannot_start_leave_no_server);
    tcase_add_checked_fixture(all, set_up, tear_down);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}

int
main(int argc, char **argv)
{
    if (argc == 3)
        return serve(argv[1], argv[2]);
    return realpath(argv[0], program) != NULL ? run_cases() : EXIT_FAILURE;
}
