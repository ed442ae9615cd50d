/* SPDX-License-Identifier: MIT
 *
 * The calls of programs: those of the parent before its workers, and those of a worker, with a
 * parent that is the test.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "fake-time.h"
#include "sxe-fixture.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers-heartbeat-private.h"
#include "sxe-workers-internal.h"
#include "test-main.h"

#define MS(n) ((uint64_t)(n)*1000000)

/* ---- In a worker whose parent is the test ---- */

static int ends[2]; /* the parent's, the worker's */
static struct sxe__heartbeat *heartbeat;

static void
begin_worker(void)
{
    struct sxe_worker worker = {.workers = 1};

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    heartbeat = sxe__heartbeat_new();
    ck_assert_ptr_nonnull(heartbeat);
    sxe__heartbeat_begin(heartbeat, getppid(), NULL);
    worker.link = ends[1];
    sxe__handover_begin(worker.link);
    sxe__workers_begin(&worker, 2000);
}

/* A worker with a plan and a listener. */
static SXE *
begin_serving(void)
{
    struct sxe_config config;

    fake_time_start(MS(1000), MS(1000));
    capture_log();
    begin_worker();
    config = *sxe_get_config();
    ck_assert_ptr_eq(config.listeners, &sxe__handover_listeners);
    plan_start_with(4, &config);
    return listen_tcp(push_read);
}

static uint32_t
hear(void)
{
    struct sxe__handover_message message = {.kind = 0};
    int fd = -1;

    ck_assert_int_eq(sxe__handover_receive(ends[0], &message, &fd), 1);
    if (fd >= 0)
        close(fd);
    return message.kind;
}

static void
tell(enum sxe__handover_kind kind)
{
    ck_assert_int_eq(sxe__handover_say(ends[0], kind), 0);
}

START_TEST(a_process_that_is_no_worker_may_serve_by_itself)
{
    ck_assert_int_eq(sxe_workers_attend(NULL, NULL), 0);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    ck_assert_int_eq(sxe_workers_renew(), -EINVAL);
    sxe__workers_ignore();
}
END_TEST

START_TEST(without_a_loop_a_worker_cannot_attend)
{
    begin_worker();
    ck_assert_int_eq(sxe_workers_attend(NULL, NULL), -EINVAL);
    ck_assert_int_eq(sxe_workers_ready(), -EINVAL);
}
END_TEST

START_TEST(a_worker_that_is_ready_says_so_and_its_socket_is_kept)
{
    begin_serving();
    ck_assert_uint_eq(hear(), SXE__HANDOVER_KEEP);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    ck_assert_uint_eq(hear(), SXE__HANDOVER_READY);
    ck_assert_int_eq(sxe_workers_attend(NULL, NULL), -EINVAL);
    ck_assert_int_eq(sxe_workers_renew(), 0);
    ck_assert_uint_eq(hear(), SXE__HANDOVER_RENEW);
    sxe_workers_watch_file("a.conf");
    ck_assert_uint_eq(hear(), SXE__HANDOVER_FILE);
    ck_assert_uint_eq(heartbeat->turns % 2, 1);
}
END_TEST

START_TEST(without_a_parent_a_worker_is_not_ready)
{
    begin_serving();
    ck_assert_uint_eq(hear(), SXE__HANDOVER_KEEP);
    close(ends[0]);
    ck_assert_int_eq(sxe_workers_ready(), -EPIPE);
    ck_assert_int_eq(sxe_workers_renew(), -EPIPE);
}
END_TEST

START_TEST(a_worker_without_connections_ends_when_it_drains)
{
    SXE *listener = begin_serving();

    ck_assert_int_eq(sxe_workers_ready(), 0);
    tell(SXE__HANDOVER_REOPEN);
    tell(SXE__HANDOVER_STATS);
    tell(SXE__HANDOVER_SAY);
    turn(3);
    ck_assert_int_eq(sxe_get_state(listener), SXE_STATE_LISTENING);
    tell(_i == 0 ? SXE__HANDOVER_DRAIN : SXE__HANDOVER_END);
    ck_assert_int_eq(sxe_run(), 0);
}
END_TEST

START_TEST(a_worker_with_a_connection_ends_with_it)
{
    SXE *listener = begin_serving();
    int peer = peer_connect(sxe_local_port(listener));

    EXPECT("connected", NULL, 0);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    tell(SXE__HANDOVER_DRAIN);
    turn(3);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_LISTENING), 0);
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_IDLE), 1);
    close(peer);
    ck_assert_int_eq(sxe_run(), 0);
    EXPECT("close", NULL, 0);
    ck_assert_uint_lt(sxe_time_ns(), MS(3000));
}
END_TEST

START_TEST(a_worker_with_a_connection_ends_in_time)
{
    SXE *listener = begin_serving();

    (void)peer_connect(sxe_local_port(listener));
    EXPECT("connected", NULL, 0);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    tell(SXE__HANDOVER_DRAIN);
    tell(SXE__HANDOVER_END);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_ge(sxe_time_ns(), MS(3000));
    ck_assert_uint_eq(sxe_number_in_state(SXE_STATE_IDLE), 1);
}
END_TEST

START_TEST(a_second_end_ends_at_once)
{
    SXE *listener = begin_serving();

    (void)peer_connect(sxe_local_port(listener));
    EXPECT("connected", NULL, 0);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    tell(SXE__HANDOVER_END);
    tell(SXE__HANDOVER_END);
    ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_lt(sxe_time_ns(), MS(3000));
}
END_TEST

static void
push_event(void *user, enum sxe_workers_event event)
{
    event_push("event", user, (int)event);
}

START_TEST(a_program_with_a_function_hears_all_events)
{
    static const enum sxe__handover_kind kinds[] = {SXE__HANDOVER_DRAIN, SXE__HANDOVER_END,
                                                    SXE__HANDOVER_REOPEN, SXE__HANDOVER_STATS,
                                                    SXE__HANDOVER_SAY};
    static int user;

    begin_serving();
    ck_assert_int_eq(sxe_workers_attend(push_event, &user), 0);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        tell(kinds[i]);
        EXPECT("event", &user, (int)(SXE_WORKERS_DRAIN + i));
    }
}
END_TEST

START_TEST(a_worker_whose_parent_dies_ends)
{
    begin_serving();
    ck_assert_int_eq(sxe_workers_attend(_i == 0 ? push_event : NULL, NULL), 0);
    ck_assert_int_eq(sxe_workers_ready(), 0);
    close(ends[0]);
    if (_i == 0)
        EXPECT("event", NULL, SXE_WORKERS_END);
    else
        ck_assert_int_eq(sxe_run(), 0);
    ck_assert_uint_gt(alarm(0), 2);
}
END_TEST

START_TEST(a_worker_that_ignores_its_parent_hears_nothing)
{
    begin_serving();
    ck_assert_int_eq(sxe_workers_attend(push_event, NULL), 0);
    sxe__workers_ignore();
    sxe__workers_ignore();
    tell(SXE__HANDOVER_END);
    turn(3);
    ck_assert_uint_eq(event_count(), 0);
}
END_TEST

/* ---- In the parent ---- */

START_TEST(the_parent_opens_sockets_at_addresses)
{
    char path[64];

    snprintf(path, sizeof(path), "/tmp/sxe-workers-%d", getpid());
    ck_assert_int_eq(sxe_workers_listen_tcp("127.0.0.1", 0), 0);
    ck_assert_int_eq(sxe_workers_listen_tcp("::1", 0), 0);
    ck_assert_int_eq(sxe_workers_listen_unix(path), 0);
    ck_assert_int_eq(access(path, F_OK), 0);
    sxe__handover_remove_files();
    ck_assert_int_ne(access(path, F_OK), 0);
    sxe__handover_close_others();
}
END_TEST

START_TEST(an_address_that_cannot_be_opened_is_an_error)
{
    char path[200];

    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(sxe_workers_listen_tcp("nonsense", 0), -EINVAL);
    ck_assert_int_eq(sxe_workers_listen_unix(path), -ENAMETOOLONG);
    fake_os_fail(FAKE_SOCKET, 1, 2, EMFILE);
    ck_assert_int_eq(sxe_workers_listen_tcp("127.0.0.1", 0), -EMFILE);
    ck_assert_int_eq(sxe_workers_listen_unix("@a"), -EMFILE);
}
END_TEST

static int
refuse_to_serve(void *user, const struct sxe_worker *worker)
{
    (void)user;
    return worker->workers == 1 ? 7 : 8;
}

static const struct sxe_workers_config plain = {.serve = refuse_to_serve};

START_TEST(variables_of_a_service_manager_that_make_no_sense_are_an_error)
{
    char pid[16];

    for (unsigned i = 0; i < 3; i++) {
        snprintf(pid, sizeof(pid), "%d", getpid());
        setenv("LISTEN_PID", pid, 1);
        setenv("LISTEN_FDS", "many", 1);
        if (i == 0)
            ck_assert_int_eq(sxe_workers_listen_tcp("127.0.0.1", 0), -EINVAL);
        else if (i == 1)
            ck_assert_int_eq(sxe_workers_listen_unix("@a"), -EINVAL);
        else
            ck_assert_int_eq(sxe_workers_run(&plain), EXIT_FAILURE);
    }
}
END_TEST

/* As many workers as this process may use CPUs. */
START_TEST(a_program_without_options_has_a_worker_for_each_cpu)
{
    cpu_set_t cpus;
    int cpu = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    while (!CPU_ISSET(cpu, &cpus))
        cpu++;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
    capture_log();
    ck_assert_int_eq(sxe_workers_run(&plain), 7);
}
END_TEST

/* ---- A whole program ---- */

static int
serve_nobody(void *user, const struct sxe_worker *worker)
{
    (void)user;
    fake_os_reset(); /* only calls of the parent fail */
    sxe_register(2, 0);
    if (sxe_init() < 0 || listen_tcp(push_read) == NULL || sxe_workers_ready() < 0)
        return 3;
    if (worker->load > 0)
        return sxe_run() < 0;
    kill(getppid(), SIGUSR2);
    kill(getppid(), SIGHUP);
    if (sxe_run() < 0) /* it drains when the next worker serves */
        return 4;
    kill(getppid(), SIGTERM);
    return 0;
}

/* The listener's port is 0, and the second worker has it from the parent. */
START_TEST(a_program_serves_reloads_and_ends)
{
    const struct sxe_workers_config config = {.serve = serve_nobody, .workers = 1};
    unsigned open = fake_os_open_fds();

    capture_log();
    ck_assert_int_eq(sxe_workers_run(&config), 0);
    ck_assert(logged("SIGUSR2: no new program is started: this one has not said how it was"));
    ck_assert(logged("the server was loaded again, into process "));
    ck_assert_uint_eq(fake_os_open_fds(), open);
}
END_TEST

/* Whichever call fails, the parent ends with a status, and leaves nothing. */
START_TEST(a_call_that_fails_is_an_error_or_is_tried_again)
{
    static const enum fake_call calls[] = {FAKE_SIGNALFD, FAKE_SOCKETPAIR, FAKE_FORK, FAKE_MMAP};
    const struct sxe_workers_config config = {.serve = serve_nobody, .workers = 1};
    unsigned open = fake_os_open_fds();
    unsigned failed = 0;

    capture_log();
    for (unsigned nth = 1;; nth++) {
        int status;

        fake_os_reset();
        fake_os_fail(calls[_i], nth, 1, EAGAIN);
        status = sxe_workers_run(&config);
        ck_assert_uint_eq(fake_os_open_fds(), open);
        ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
        if (fake_os_injected() == 0) {
            ck_assert_int_eq(status, 0);
            break;
        }
        failed += status != 0;
    }
    ck_assert_uint_ge(failed, 1);
}
END_TEST

static Suite *
calls_suite(void)
{
    Suite *suite = suite_create("workers");
    TCase *t = tcase_create("calls");

    tcase_add_test(t, a_process_that_is_no_worker_may_serve_by_itself);
    tcase_add_test(t, without_a_loop_a_worker_cannot_attend);
    tcase_add_test(t, a_worker_that_is_ready_says_so_and_its_socket_is_kept);
    tcase_add_test(t, without_a_parent_a_worker_is_not_ready);
    tcase_add_loop_test(t, a_worker_without_connections_ends_when_it_drains, 0, 2);
    tcase_add_test(t, a_worker_with_a_connection_ends_with_it);
    tcase_add_test(t, a_worker_with_a_connection_ends_in_time);
    tcase_add_test(t, a_second_end_ends_at_once);
    tcase_add_test(t, a_program_with_a_function_hears_all_events);
    tcase_add_loop_test(t, a_worker_whose_parent_dies_ends, 0, 2);
    tcase_add_test(t, a_worker_that_ignores_its_parent_hears_nothing);
    tcase_add_test(t, the_parent_opens_sockets_at_addresses);
    tcase_add_test(t, an_address_that_cannot_be_opened_is_an_error);
    tcase_add_test(t, variables_of_a_service_manager_that_make_no_sense_are_an_error);
    tcase_add_test(t, a_program_without_options_has_a_worker_for_each_cpu);
    tcase_add_test(t, a_program_serves_reloads_and_ends);
    tcase_add_loop_test(t, a_call_that_fails_is_an_error_or_is_tried_again, 0, 4);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(calls_suite());
}
