/* SPDX-License-Identifier: MIT
 *
 * The heartbeats of children that run, hang, are stopped, or lose their supervisor.
 */
#include "../../../../apps/httpd/process/heartbeat.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lua-state.h"
#include "test-main.h"

START_TEST(a_loop_is_even_while_it_waits_and_odd_while_it_works)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct heartbeat *heartbeat = heartbeat_new();

    ck_assert_ptr_nonnull(heartbeat);
    heartbeat_begin(heartbeat, getppid());
    ck_assert_uint_eq(heartbeat->turns, 0);
    heartbeat_watch(loop);
    ck_assert_uint_eq(heartbeat->turns, 1);
    ev_run(loop, EVRUN_NOWAIT);
    ck_assert_uint_eq(heartbeat->turns, 3);
    ev_run(loop, EVRUN_NOWAIT);
    ck_assert_uint_eq(heartbeat->turns, 5);
    ev_loop_destroy(loop);
    heartbeat_delete(heartbeat);
}
END_TEST

static struct heartbeat *asked;

static int
be_asked(lua_State *L)
{
    heartbeat_ask(asked, getpid());
    lua_pushstring(L, asked->place);
    return 1;
}

START_TEST(a_child_says_which_script_it_runs)
{
    asked = heartbeat_new();
    ck_assert_ptr_nonnull(asked);
    heartbeat_begin(asked, getppid());
    heartbeat_ask(asked, getpid());
    ck_assert_str_eq(asked->place, "");
    state_start();
    add_global("be_asked", be_asked);
    run_script("local place = be_asked()\nassert(place == 'be_asked, test:1', place)");
    state_stop();
    heartbeat_delete(asked);
}
END_TEST

START_TEST(a_child_whose_supervisor_has_died_is_ended_by_an_alarm)
{
    struct heartbeat *heartbeat = heartbeat_new();

    ck_assert_ptr_nonnull(heartbeat);
    heartbeat_begin(heartbeat, getppid());
    ck_assert_uint_eq(alarm(0), 0);
    /* this process is not its own parent, so that parent counts as gone */
    heartbeat_begin(heartbeat, getpid());
    ck_assert_uint_gt(alarm(0), 0);
    heartbeat_end_within(10000);
    /* The signal of the parent's death, which comes after its sockets were closed. */
    raise(SIGRTMIN + 2);
    ck_assert_uint_ge(alarm(0), 10);
    heartbeat_delete(heartbeat);
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
    ck_assert(heartbeat_is_stopped(child));
    kill(child, SIGCONT);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!heartbeat_is_stopped(child));
    ck_assert(!heartbeat_is_stopped(getpid()));
}
END_TEST

static Suite *
heartbeat_suite(void)
{
    Suite *suite = suite_create("httpd heartbeat");
    TCase *t = tcase_create("heartbeat");

    tcase_add_test(t, a_loop_is_even_while_it_waits_and_odd_while_it_works);
    tcase_add_test(t, a_child_says_which_script_it_runs);
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
