/* SPDX-License-Identifier: MIT
 *
 * The heartbeats of children that run, hang, are stopped, or lose their supervisor.
 */
#include "sxe-workers-heartbeat-private.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test-main.h"

START_TEST(a_loop_is_even_while_it_waits_and_odd_while_it_works)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct sxe__heartbeat *heartbeat = sxe__heartbeat_new();

    ck_assert_ptr_nonnull(heartbeat);
    sxe__heartbeat_begin(heartbeat, getppid(), NULL);
    ck_assert_uint_eq(heartbeat->turns, 0);
    sxe__heartbeat_watch(loop);
    ck_assert_uint_eq(heartbeat->turns, 1);
    ev_run(loop, EVRUN_NOWAIT);
    ck_assert_uint_eq(heartbeat->turns, 3);
    ev_run(loop, EVRUN_NOWAIT);
    ck_assert_uint_eq(heartbeat->turns, 5);
    ev_loop_destroy(loop);
    sxe__heartbeat_delete(heartbeat);
}
END_TEST

static size_t
say_where(char *text, size_t size)
{
    return (size_t)snprintf(text, size, "a test");
}

START_TEST(a_child_says_what_it_runs_if_it_knows)
{
    struct sxe__heartbeat *asked = sxe__heartbeat_new();

    ck_assert_ptr_nonnull(asked);
    sxe__heartbeat_begin(asked, getppid(), NULL);
    sxe__heartbeat_ask(asked, getpid());
    ck_assert_str_eq(asked->place, "");
    sxe__heartbeat_begin(asked, getppid(), say_where);
    sxe__heartbeat_ask(asked, getpid());
    ck_assert_str_eq(asked->place, "a test");
    sxe__heartbeat_delete(asked);
}
END_TEST

START_TEST(a_child_whose_supervisor_has_died_is_ended_by_an_alarm)
{
    struct sxe__heartbeat *heartbeat = sxe__heartbeat_new();

    ck_assert_ptr_nonnull(heartbeat);
    sxe__heartbeat_begin(heartbeat, getppid(), NULL);
    ck_assert_uint_eq(alarm(0), 0);
    /* this process is not its own parent, so that parent counts as gone */
    sxe__heartbeat_begin(heartbeat, getpid(), NULL);
    ck_assert_uint_gt(alarm(0), 0);
    sxe__heartbeat_end_within(10000);
    /* The signal of the parent's death, which comes after its sockets were closed. */
    raise(SIGRTMIN + 2);
    ck_assert_uint_ge(alarm(0), 10);
    sxe__heartbeat_delete(heartbeat);
}
END_TEST

START_TEST(a_process_that_is_stopped_is_known)
{
    pid_t child = fork();
    siginfo_t info;

    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WSTOPPED), 0);
    ck_assert(sxe__heartbeat_is_stopped(child));
    kill(child, SIGCONT);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!sxe__heartbeat_is_stopped(child));
    ck_assert(!sxe__heartbeat_is_stopped(getpid()));
}
END_TEST

static Suite *
heartbeat_suite(void)
{
    Suite *suite = suite_create("httpd heartbeat");
    TCase *t = tcase_create("heartbeat");

    tcase_add_test(t, a_loop_is_even_while_it_waits_and_odd_while_it_works);
    tcase_add_test(t, a_child_says_what_it_runs_if_it_knows);
    tcase_add_test(t, a_child_whose_supervisor_has_died_is_ended_by_an_alarm);
    tcase_add_test(t, a_process_that_is_stopped_is_known);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(heartbeat_suite());
}
