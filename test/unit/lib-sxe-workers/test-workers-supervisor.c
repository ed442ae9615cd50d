/* SPDX-License-Identifier: MIT
 *
 * The supervisor with children that do what each case says; its clock runs a hundred times as fast
 * as the real one.
 */
#include "sxe-workers.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture-log.h"
#include "fake-os.h"
#include "fake-time.h"
#include "mailbox.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers-heartbeat-private.h"
#include "sxe-workers-internal.h"
#include "test-main.h"

#define LIVES_MAX 16
#define MS(n)     ((uint64_t)(n)*1000000)

/* The memory that the children and the test share. */
static struct shared {
    _Atomic uint64_t now_ns;
    struct {
        _Atomic pid_t pid;
        _Atomic uint64_t since_ns;
        _Atomic unsigned heard; /* bits of the messages from the supervisor */
        _Atomic bool has_said;  /* the child has sent READY */
        _Atomic unsigned slot;
    } children[LIVES_MAX];
    _Atomic unsigned loads;
    _Atomic pid_t orphan;
    _Atomic bool may_leave;
    _Atomic unsigned ended_slots; /* one bit for each slot whose child has ended */
    _Atomic bool is_deaf;         /* the supervisor receives no messages */
    _Atomic bool is_made_deaf;
    _Atomic bool is_time_still; /* the faked clock stands still, so no child is late */
    _Atomic bool is_end_short;  /* the faked clock stands still until no child is left */
    _Atomic int ticks; /* how many ticks the faked clock still goes on, if it is metered or still */
} * shared;

/* The supervisor sees children as short-lived, however long a busy machine takes to run them. */
static bool is_life_short;

/* The faked clock goes on only by shared->ticks, however long a busy machine takes. */
static bool is_time_metered;

/* The act of the nth child; returns its exit status. */
typedef int (*life)(int link);
static const life *lives;
static int number; /* the number of this child */

static char script[64] = "/nonexistent.lua";
/* Ten seconds of real time, so that no child is killed while it writes its coverage. */
static struct sxe__workers_hooks hooks = {
    .script = script, .stop_option = "--stop-timeout", .hang_option = "--hang-timeout"};
static struct sxe_workers_config config = {.name = script,
                                           .workers = 1,
                                           .stop_timeout_ms = 1000000,
                                           .hang_timeout_ms = SXE_WORKERS_NO_LIMIT,
                                           .load_timeout_ms = SXE_WORKERS_NO_LIMIT,
                                           .hooks = &hooks};

static int
serve(void *user, const struct sxe_worker *worker)
{
    unsigned nth = worker->load * worker->workers + worker->place;

    ck_assert_ptr_eq(user, &config);
    number = (int)nth;
    shared->children[nth].pid = getpid();
    shared->children[nth].since_ns = shared->now_ns;
    shared->children[nth].slot = worker->slot;
    shared->loads++;
    return lives[nth](worker->link);
}

static void
note_end(void *user, unsigned slot)
{
    ck_assert_ptr_eq(user, &config);
    shared->ended_slots |= 1u << slot;
}

static bool
is_childless(void)
{
    int error = errno;
    siginfo_t info;
    bool is_error = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0;

    errno = error;
    return is_error;
}

static bool
is_time_stopped(void)
{
    if (is_time_metered)
        return shared->ticks <= 0 || shared->ticks-- <= 0;
    if (shared->ticks > 0 && shared->ticks-- > 0)
        return false;
    return shared->is_time_still || ((is_life_short || shared->is_end_short) && !is_childless());
}

static void
tick(int signal_number)
{
    (void)signal_number;
    if (!is_time_stopped()) {
        fake_time_advance(MS(100));
        shared->now_ns += MS(100);
    }
    if (shared->is_deaf != shared->is_made_deaf) {
        if (shared->is_deaf)
            fake_os_fail(FAKE_POLL, 1, UINT32_MAX, EINTR);
        else
            fake_os_reset();
        shared->is_made_deaf = shared->is_deaf;
    }
}

static int
supervise_lives(const life *those)
{
    struct itimerval every = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    unsigned open = fake_os_open_fds();
    int status;

    lives = those;
    config.serve = serve;
    config.user = &config;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    capture_log();
    fake_time_start(MS(1000000), MS(1000000));
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    status = sxe_workers_run(&config);
    every.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &every, NULL);
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
    ck_assert_uint_eq(fake_os_open_fds(), open);
    return status;
}
#define SUPERVISE(...) supervise_lives((const life[]){__VA_ARGS__})

/* ---- Functions that children call ---- */

static void
nap(void)
{
    poll(NULL, 0, 1);
}

/* Wait until the supervisor has reaped this child. */
static void
await_end_of(unsigned child)
{
    while (shared->children[child].pid == 0 || kill(shared->children[child].pid, 0) == 0)
        nap();
}

/* Wait for the supervisor's next message; 0: the supervisor is gone. */
static unsigned
hear(int link)
{
    struct pollfd wait = {.fd = link, .events = POLLIN};
    struct sxe__handover_message message;
    int result;
    int fd;

    while ((result = sxe__handover_receive(link, &message, &fd)) == 0)
        poll(&wait, 1, -1);
    if (result < 0)
        return 0;
    shared->children[number].heard |= 1u << message.kind;
    return message.kind;
}

static void
say_ready(int link)
{
    ck_assert_int_eq(sxe__handover_say(link, SXE__HANDOVER_READY), 0);
}

static void
tell(int signal_number)
{
    kill(getppid(), signal_number);
}

/* For the last child: let the supervisor end. */
static int
end_all(int link)
{
    say_ready(link);
    tell(SIGTERM);
    hear(link);
    return 0;
}

static int
end_after_the_first(int link)
{
    say_ready(link);
    await_end_of(0);
    tell(SIGTERM);
    hear(link);
    return 0;
}

static int
have_reloaded(int link)
{
    say_ready(link);
    tell(SIGHUP);
    hear(link);
    return 0;
}

static int
die_soon(int link)
{
    say_ready(link);
    return 0;
}

static int
end_badly(int link)
{
    (void)link;
    return 3;
}

static int
be_killed(int link)
{
    (void)link;
    raise(SIGKILL);
    return 0;
}

static int
never_end(int link)
{
    (void)link;
    while (true)
        pause();
    return 0;
}

/* ---- Stopping ---- */

START_TEST(it_ends_when_its_children_have)
{
    ck_assert_int_eq(SUPERVISE(end_all), 0);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_END);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

static int
want_the_end_twice(int link)
{
    say_ready(link);
    /* A child that still runs a second after SIGINT would be killed. */
    shared->is_time_still = true;
    tell(SIGTERM);
    if (hear(link) != SXE__HANDOVER_END)
        return 1;
    tell(SIGHUP);
    tell(SIGUSR2);
    tell(SIGINT);
    return hear(link) == SXE__HANDOVER_END ? 0 : 1;
}

START_TEST(a_second_signal_is_passed_on_and_nothing_is_loaded_any_more)
{
    ck_assert_int_eq(SUPERVISE(want_the_end_twice), 0);
    ck_assert_uint_eq(shared->loads, 1);
}
END_TEST

static int
want_the_end_three_times(int link)
{
    int result = want_the_end_twice(link);

    tell(SIGTERM);
    return hear(link) == SXE__HANDOVER_END ? result : 1;
}

START_TEST(a_third_signal_is_passed_on_too)
{
    ck_assert_int_eq(SUPERVISE(want_the_end_three_times), 0);
    ck_assert_uint_eq(shared->loads, 1);
}
END_TEST

static int
want_a_new_program_too_early(int link)
{
    tell(SIGUSR2);
    tell(SIGUSR1);
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_REOPEN);
    return end_all(link);
}

/* A program that has not said how it was started has no new program. */
START_TEST(a_new_program_is_not_started_before_this_one_serves)
{
    char *argv[] = {NULL};

    config.argv = _i == 0 ? argv : NULL;
    ck_assert_int_eq(SUPERVISE(want_a_new_program_too_early), 0);
    ck_assert(logged(_i == 0 ? "this one does not serve yet" : "has not said how it was started"));
}
END_TEST

static int
want_the_end_and_stay(int link)
{
    say_ready(link);
    tell(SIGTERM);
    return never_end(link);
}

START_TEST(who_does_not_end_is_killed)
{
    config.stop_timeout_ms = 1000;
    ck_assert_int_eq(SUPERVISE(want_the_end_and_stay), 0);
    ck_assert_uint_ge(shared->now_ns, MS(6000));
    ck_assert(logged("did not end within 1000 ms (--stop-timeout)"));
    ck_assert(!logged("ended with"));
}
END_TEST

static int
want_the_end_twice_and_stay(int link)
{
    say_ready(link);
    tell(SIGTERM);
    if (hear(link) != SXE__HANDOVER_END)
        return 1;
    tell(SIGINT);
    return never_end(link);
}

START_TEST(who_does_not_end_at_the_second_signal_is_killed_soon)
{
    config.stop_timeout_ms = 3600000;
    ck_assert_int_eq(SUPERVISE(want_the_end_twice_and_stay), 0);
    ck_assert_uint_ge(shared->now_ns, MS(1000));
    ck_assert_uint_lt(shared->now_ns, MS(3600000));
    ck_assert(logged("did not end at a second signal: it is killed"));
    ck_assert(!logged("ended with"));
}
END_TEST

static int
want_signals_passed_on(int link)
{
    say_ready(link);
    raise(SIGTERM);
    raise(SIGINT);
    raise(SIGHUP);
    raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGQUIT);
    tell(SIGUSR1);
    hear(link);
    tell(SIGQUIT);
    hear(link);
    tell(SIGTERM);
    hear(link);
    return 0;
}

static unsigned reopened;
static unsigned turns;

static void
note_reopen(void *user)
{
    ck_assert_ptr_eq(user, &config);
    reopened++;
}

static uint32_t
note_turn(void *user)
{
    ck_assert_ptr_eq(user, &config);
    turns++;
    return 3600;
}

START_TEST(signals_are_messages_to_children)
{
    config.on_reopen = note_reopen;
    config.on_turn = note_turn;
    ck_assert_int_eq(SUPERVISE(want_signals_passed_on), 0);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_REOPEN |
                                                     1u << SXE__HANDOVER_STATS |
                                                     1u << SXE__HANDOVER_END);
    ck_assert_uint_eq(reopened, 1);
    ck_assert_uint_ge(turns, 1);
}
END_TEST

static uint32_t
note_turn_of_0(void *user)
{
    turns++;
    return (void)user, 0;
}

static int
live_for_five_seconds(int link)
{
    say_ready(link);
    while (shared->now_ns < MS(5000))
        nap();
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(a_turn_lasts_a_second_at_least)
{
    config.on_turn = note_turn_of_0;
    ck_assert_int_eq(SUPERVISE(live_for_five_seconds), 0);
    ck_assert_uint_ge(turns, 2);
    ck_assert_uint_le(turns, shared->now_ns / MS(1000) + 2);
}
END_TEST

/* ---- The first child ---- */

START_TEST(the_first_that_fails_is_the_end_with_its_status)
{
    ck_assert_int_eq(SUPERVISE(_i == 0 ? end_badly : be_killed), _i == 0 ? 3 : 1);
    ck_assert_uint_eq(shared->loads, 1);
}
END_TEST

static int
end_well(int link)
{
    (void)link;
    return 0;
}

START_TEST(a_first_load_that_ends_well_has_failed)
{
    ck_assert_int_eq(SUPERVISE(end_well), 1);
    ck_assert(logged("its worker ended before sxe_workers_ready was called"));
}
END_TEST

static const struct {
    enum fake_call call;
    const char *says;
} refusals[] = {
    {FAKE_SIGNALFD, "cannot start the supervisor: signalfd: Too many open files"},
    {FAKE_SOCKETPAIR, "cannot start a process: Too many open files"},
    {FAKE_FORK, "cannot start a process: Too many open files"},
    {FAKE_MMAP, "cannot start a process: Too many open files"},
};

START_TEST(what_the_system_refuses_at_the_beginning_is_the_end)
{
    /* The first mmap() is the test's own. */
    fake_os_fail(refusals[_i].call, refusals[_i].call == FAKE_MMAP ? 2 : 1, 1, EMFILE);
    ck_assert_int_eq(SUPERVISE(end_all), 1);
    ck_assert(logged(refusals[_i].says));
    ck_assert_uint_eq(shared->loads, 0);
}
END_TEST

/* ---- Another child, after a reload ---- */

START_TEST(a_new_one_takes_over_and_the_old_one_drains)
{
    ck_assert_int_eq(SUPERVISE(have_reloaded, end_after_the_first), 0);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_DRAIN);
    ck_assert_uint_eq(captured.number, 1);
    ck_assert(logged("/nonexistent.lua was loaded again, into process "));
}
END_TEST

static int
have_opened_the_log_again(int link)
{
    say_ready(link);
    tell(SIGUSR1);
    hear(link);
    return 0;
}

START_TEST(where_children_cannot_open_the_log_new_ones_do)
{
    hooks.reopens_by_load = true;
    ck_assert_int_eq(SUPERVISE(have_opened_the_log_again, end_after_the_first), 0);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_DRAIN);
}
END_TEST

static int
outlive_one_that_fails(int link)
{
    say_ready(link);
    tell(SIGHUP);
    await_end_of(1);
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(one_that_fails_leaves_the_old_one_alone)
{
    ck_assert_int_eq(SUPERVISE(outlive_one_that_fails, _i == 0 ? end_badly : be_killed), 0);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_END);
    ck_assert(
        logged("/nonexistent.lua could not be loaded again; the version loaded before goes on"));
    ck_assert(logged("which was starting, ended with signal 9") == (_i == 1));
}
END_TEST

static int
hang_and_have_reloaded(int link)
{
    (void)link;
    tell(SIGHUP);
    return never_end(link);
}

static int
have_reloaded_and_die(int link)
{
    say_ready(link);
    tell(SIGHUP);
    while (shared->children[1].pid == 0)
        nap();
    return 0;
}

static int
load_for_minutes(int link)
{
    while (shared->now_ns < MS(150000))
        nap();
    say_ready(link);
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(the_first_load_has_no_limit_and_the_log_says_so)
{
    config.load_timeout_ms = 60000;
    ck_assert_int_eq(SUPERVISE(load_for_minutes), 0);
    ck_assert_uint_eq(shared->loads, 1);
    ck_assert(logged("is not loaded after 60 s: process "));
    ck_assert(!logged("is killed"));
    config.load_timeout_ms = SXE_WORKERS_NO_LIMIT;
}
END_TEST

/* While nobody serves, a load that does not end is given up without a signal. */
START_TEST(a_load_without_end_is_given_up_if_nobody_serves)
{
    config.load_timeout_ms = 60000;
    ck_assert_int_eq(SUPERVISE(have_reloaded_and_die, never_end, end_after_the_first), 0);
    ck_assert_uint_eq(shared->loads, 3);
    ck_assert(logged("is not loaded after 60 s, and no process serves: process "));
    config.load_timeout_ms = SXE_WORKERS_NO_LIMIT;
}
END_TEST

static int
die_after_the_second(int link)
{
    shared->is_end_short = true;
    say_ready(link);
    await_end_of(1);
    return 0;
}

/* Be ready after 40 seconds, the last one too. */
static int
load_for_a_while(int link)
{
    shared->ticks = 400;
    while (shared->ticks > 0)
        nap();
    say_ready(link);
    if (number == 3)
        tell(SIGTERM);
    while (hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

START_TEST(each_worker_of_a_load_has_the_whole_time_if_nobody_serves)
{
    config.workers = 2;
    config.load_timeout_ms = 60000;
    ck_assert_int_eq(SUPERVISE(die_after_the_second, die_soon, load_for_a_while, load_for_a_while),
                     0);
    ck_assert_uint_eq(shared->loads, 4);
    ck_assert(!logged("is killed"));
}
END_TEST

/* A limit that is no whole number of seconds is told in milliseconds. */
START_TEST(the_log_tells_a_limit_below_a_second)
{
    config.load_timeout_ms = 60500;
    ck_assert_int_eq(SUPERVISE(load_for_minutes), 0);
    ck_assert(logged("is not loaded after 60500 ms: process "));
}
END_TEST

START_TEST(one_that_hangs_is_replaced_by_the_next)
{
    ck_assert_int_eq(SUPERVISE(have_reloaded, hang_and_have_reloaded, end_after_the_first), 0);
    ck_assert_uint_eq(shared->loads, 3);
    ck_assert(logged("is still not loaded, 10 s after another load was requested: process "));
    ck_assert(!logged("ended with"));
}
END_TEST

static int
have_reloaded_and_drain(int link)
{
    say_ready(link);
    tell(SIGHUP);
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

/* The child loads so slowly that several reloads are requested meanwhile. The supervisor takes the
 * last signal after the others. The clock stands still, so that the child is not given up. */
static int
load_slowly(int link)
{
    shared->is_time_still = true;
    for (int i = 0; i < 5; i++) {
        tell(SIGHUP);
        tell(SIGUSR1);
        ck_assert_uint_eq(hear(link), SXE__HANDOVER_REOPEN);
    }
    say_ready(link);
    hear(link);
    shared->is_time_still = false;
    return 0;
}

START_TEST(one_that_loads_slowly_is_loaded_then_there_is_one_more)
{
    if (_i == 0)
        ck_assert_int_eq(SUPERVISE(have_reloaded_and_drain, load_slowly, end_after_the_first), 0);
    else
        ck_assert_int_eq(SUPERVISE(load_slowly, end_after_the_first), 0);
    ck_assert_uint_eq(shared->loads, _i == 0 ? 3 : 2);
    ck_assert_uint_eq(shared->children[1 - _i].heard,
                      1u << SXE__HANDOVER_REOPEN | 1u << SXE__HANDOVER_DRAIN);
    ck_assert(!logged("ended with"));
}
END_TEST

static int
fail_slowly(int link)
{
    shared->is_time_still = true; /* the clock stands still so that the child is not given up */
    tell(SIGHUP);
    tell(SIGUSR1);
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_REOPEN);
    return 3;
}

static int
end_after_both(int link)
{
    say_ready(link);
    shared->is_time_still = false;
    await_end_of(0);
    await_end_of(1);
    tell(SIGTERM);
    hear(link);
    return 0;
}

/* Also if it is the first child: the reload that was requested may bring the mended script. */
START_TEST(after_one_that_fails_comes_the_one_that_was_asked_for)
{
    if (_i == 0)
        ck_assert_int_eq(SUPERVISE(have_reloaded_and_drain, fail_slowly, end_after_both), 0);
    else
        ck_assert_int_eq(SUPERVISE(fail_slowly, fail_slowly, end_after_both), 0);
    ck_assert_uint_eq(shared->loads, 3);
}
END_TEST

static int
hang_in_loading(int link)
{
    shared->children[number].since_ns = shared->now_ns;
    return hang_and_have_reloaded(link);
}

/* So a script that loads very slowly is loaded at last. */
START_TEST(each_that_is_given_up_leaves_twice_the_time_to_the_next)
{
    hooks.is_dev = true;
    ck_assert_int_eq(SUPERVISE(have_reloaded, hang_in_loading, hang_in_loading, hang_in_loading,
                               hang_in_loading, end_after_the_first),
                     0);
    for (unsigned i = 1; i < 5; i++)
        ck_assert_uint_ge(shared->children[i + 1].since_ns - shared->children[i].since_ns,
                          MS(900) << (i - 1));
    ck_assert(logged("is still not loaded, 8 s after"));
}
END_TEST

/* The child is ready just when the supervisor gives it up. */
static int
be_ready_when_given_up(int link)
{
    shared->is_time_still = true;
    tell(SIGHUP);
    tell(SIGUSR1);
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_REOPEN);
    shared->is_deaf = true;
    while (!shared->is_made_deaf)
        nap();
    say_ready(link);
    shared->is_time_still = false;
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_DRAIN);
    return 0;
}

static int
have_reloaded_and_hear(int link)
{
    have_reloaded_and_drain(link);
    shared->is_deaf = false;
    return 0;
}

START_TEST(one_that_is_ready_as_it_is_given_up_goes_on)
{
    hooks.is_dev = true;
    ck_assert_int_eq(SUPERVISE(have_reloaded_and_hear, be_ready_when_given_up, end_after_the_first),
                     0);
    ck_assert_uint_eq(shared->loads, 3);
    ck_assert(!logged("is still not loaded"));
    ck_assert(!logged("ended with"));
}
END_TEST

static int
be_asked_and_end(int link)
{
    tell(SIGHUP);
    tell(SIGTERM);
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_END);
    return 0;
}

START_TEST(at_the_end_nothing_is_loaded_once_more)
{
    ck_assert_int_eq(SUPERVISE(be_asked_and_end), 0);
    ck_assert_uint_eq(shared->loads, 1);
}
END_TEST

/* Note how the signals are set which programs of a script would inherit. */
static int
look_at_signals_and_end(int link)
{
    struct sigaction hang_up, terminate;

    sigaction(SIGHUP, NULL, &hang_up);
    sigaction(SIGTERM, NULL, &terminate);
    shared->children[number].has_said = hang_up.sa_handler == SIG_IGN &&
                                        terminate.sa_handler != SIG_IGN &&
                                        terminate.sa_handler != SIG_DFL;
    return end_after_the_first(link);
}

START_TEST(under_nohup_sighup_loads_and_is_ignored_by_what_scripts_run)
{
    signal(SIGHUP, SIG_IGN);
    ck_assert_int_eq(SUPERVISE(have_reloaded, look_at_signals_and_end), 0);
    ck_assert_uint_eq(shared->loads, 2);
    ck_assert(shared->children[1].has_said);
}
END_TEST

static int
be_ready_at_the_signal(int link)
{
    tell(SIGHUP);
    say_ready(link);
    shared->children[number].has_said = true;
    hear(link);
    return 0;
}

/* A child that was ready may have accepted a connection, so it must drain, not be killed. */
START_TEST(one_that_is_ready_at_the_signal_drains)
{
    ck_assert_int_eq(SUPERVISE(have_reloaded, be_ready_at_the_signal, be_ready_at_the_signal,
                               be_ready_at_the_signal, be_ready_at_the_signal,
                               be_ready_at_the_signal, be_ready_at_the_signal, end_all),
                     0);
    for (unsigned i = 1; i < 7; i++)
        ck_assert(!shared->children[i].has_said || shared->children[i].heard != 0);
}
END_TEST

static int
serve_and_never_leave(int link)
{
    have_reloaded(link);
    return never_end(link);
}

START_TEST(one_that_does_not_leave_is_killed_in_time)
{
    config.stop_timeout_ms = 1000;
    ck_assert_int_eq(SUPERVISE(serve_and_never_leave, end_after_the_first), 0);
    ck_assert_uint_ge(shared->now_ns, MS(6000));
}
END_TEST

/* Drain until the serving child has seen that no child was killed to make room for the next. */
static int
serve_and_leave_late(int link)
{
    have_reloaded(link);
    while (number == 0 && !shared->may_leave)
        nap();
    while (number != 0 && hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

/* Request another reload, which is refused. The supervisor takes the second signal after the
 * first. */
static void
have_reload_refused(int link)
{
    tell(SIGHUP);
    tell(SIGUSR1);
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_REOPEN);
    ck_assert_uint_eq(shared->loads, SXE_WORKERS_CHILDREN);
}

static int
ask_twice_without_room(int link)
{
    say_ready(link);
    have_reload_refused(link);
    have_reload_refused(link);
    for (int i = 0; i < number; i++)
        ck_assert_int_eq(kill(shared->children[i].pid, 0), 0);
    shared->may_leave = true;
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_DRAIN);
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_END);
    return 0;
}

START_TEST(there_are_so_many_then_the_next_waits)
{
    ck_assert_int_eq(SUPERVISE(serve_and_leave_late, serve_and_leave_late, serve_and_leave_late,
                               serve_and_leave_late, serve_and_leave_late, serve_and_leave_late,
                               serve_and_leave_late, ask_twice_without_room, end_after_the_first),
                     0);
    ck_assert_uint_eq(shared->loads, SXE_WORKERS_CHILDREN + 1);
    ck_assert(logged(
        "/nonexistent.lua is loaded again later: 7 earlier processes still answer requests"));
    ck_assert(!logged("ended with"));
}
END_TEST

static int
end_without_room(int link)
{
    say_ready(link);
    have_reload_refused(link);
    tell(SIGTERM);
    ck_assert_uint_eq(hear(link), SXE__HANDOVER_END);
    shared->may_leave = true;
    return 0;
}

START_TEST(what_waits_for_room_is_not_started_at_the_end)
{
    ck_assert_int_eq(SUPERVISE(serve_and_leave_late, serve_and_leave_late, serve_and_leave_late,
                               serve_and_leave_late, serve_and_leave_late, serve_and_leave_late,
                               serve_and_leave_late, end_without_room),
                     0);
    ck_assert_uint_eq(shared->loads, SXE_WORKERS_CHILDREN);
    ck_assert(!logged("ended with"));
}
END_TEST

/* The child is killed while it starts, but it is not reaped, because a process that it forked holds
 * its end of the link for a while. */
static int
leave_somebody_behind(int link)
{
    if (fork() == 0) {
        while (shared->loads < SXE_WORKERS_CHILDREN)
            nap();
        for (uint64_t since_ns = shared->now_ns; shared->now_ns < since_ns + MS(2000);)
            nap();
        _exit(0);
    }
    tell(SIGHUP);
    return never_end(link);
}

START_TEST(the_one_that_serves_never_makes_room)
{
    hooks.is_dev = true; /* a child that loads gets less time */
    ck_assert_int_eq(SUPERVISE(have_reloaded, leave_somebody_behind, leave_somebody_behind,
                               leave_somebody_behind, leave_somebody_behind, leave_somebody_behind,
                               leave_somebody_behind, leave_somebody_behind, end_after_the_first),
                     0);
    ck_assert_uint_eq(shared->loads, SXE_WORKERS_CHILDREN + 1);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_DRAIN);
}
END_TEST

/* ---- A child that dies ---- */

START_TEST(one_that_dies_is_replaced_later_and_later)
{
    is_life_short = true;
    ck_assert_int_eq(SUPERVISE(die_soon, die_soon, die_soon, end_badly, die_soon, end_all), 0);
    ck_assert(logged("which served, ended with exit status 0"));
    for (unsigned i = 1; i < 6; i++)
        ck_assert_uint_ge(shared->children[i].since_ns - shared->children[i - 1].since_ns,
                          MS(100) << (i - 1));
}
END_TEST

static int
die_after_long(int link)
{
    say_ready(link);
    while (shared->now_ns < shared->children[number].since_ns + MS(11000))
        nap();
    shared->is_end_short = true;
    return 0;
}

static int
end_all_at_once(int link)
{
    shared->is_end_short = false;
    shared->children[number].heard = 1;
    return end_all(link);
}

START_TEST(one_that_lived_for_long_is_replaced_at_once)
{
    ck_assert_int_eq(SUPERVISE(die_soon, die_soon, die_after_long, end_all_at_once), 0);
    ck_assert_uint_lt(shared->children[3].since_ns - shared->children[2].since_ns, MS(60000));
}
END_TEST

START_TEST(the_delay_ends_growing)
{
    is_life_short = true;
    ck_assert_int_eq(SUPERVISE(die_soon, end_badly, end_badly, end_badly, end_badly, end_badly,
                               end_badly, end_badly, end_badly, end_all),
                     0);
    ck_assert_uint_ge(shared->children[9].since_ns - shared->children[8].since_ns, MS(10000));
}
END_TEST

static int
die_while_the_next_one_starts(int link)
{
    say_ready(link);
    tell(SIGHUP);
    while (shared->loads < 2)
        nap();
    return 0;
}

static int
start_slowly_and_end_all(int link)
{
    await_end_of(0);
    return end_all(link);
}

START_TEST(one_that_dies_when_another_one_starts_is_replaced_by_that)
{
    ck_assert_int_eq(SUPERVISE(die_while_the_next_one_starts, start_slowly_and_end_all), 0);
    ck_assert_uint_eq(shared->loads, 2);
}
END_TEST

START_TEST(what_the_system_refuses_later_is_tried_again)
{
    fake_os_fail(_i == 0 ? FAKE_SOCKETPAIR : FAKE_FORK, 2, 3, EAGAIN);
    ck_assert_int_eq(SUPERVISE(die_soon, end_all), 0);
    ck_assert(logged("cannot start a process: Resource temporarily unavailable"));
}
END_TEST

/* ---- Messages of children ---- */

static int
want_to_be_replaced(int link)
{
    sxe__handover_say(link, SXE__HANDOVER_RENEW);
    say_ready(link);
    sxe__handover_say(link, SXE__HANDOVER_READY);
    sxe__handover_say(link, SXE__HANDOVER_RENEW);
    sxe__handover_say(link, SXE__HANDOVER_RENEW);
    hear(link);
    sxe__handover_say(link, SXE__HANDOVER_RENEW);
    sxe__handover_say(link, SXE__HANDOVER_READY);
    return 0;
}

START_TEST(one_may_ask_to_be_replaced)
{
    ck_assert_int_eq(SUPERVISE(want_to_be_replaced, end_after_the_first), 0);
    ck_assert_uint_eq(shared->loads, 2);
}
END_TEST

/* Ask, and when the supervisor has read that, let the time of its longest delay pass. */
static int
ask_to_be_replaced(int link)
{
    int unread = 1;

    say_ready(link);
    sxe__handover_say(link, SXE__HANDOVER_RENEW);
    while (unread > 0 && ioctl(link, SIOCOUTQ, &unread) == 0)
        poll(NULL, 0, 1);
    shared->ticks = 8;
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

START_TEST(those_that_ask_again_and_again_are_not_said_to_end)
{
    is_time_metered = true;
    ck_assert_int_eq(SUPERVISE(ask_to_be_replaced, ask_to_be_replaced, ask_to_be_replaced, end_all),
                     0);
    ck_assert_uint_eq(shared->loads, 4);
    ck_assert(logged("workers ask to be replaced soon after their start, one after the other: the "
                     "next one is started in 400 ms; until then they go on serving"));
    ck_assert(!logged("processes end soon after their start"));
}
END_TEST

static const struct sockaddr address_of_one = {.sa_family = AF_UNIX, .sa_data = "one"};

/* Open a socket; the supervisor keeps it. */
static int
keep_one(int link)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_KEEP,
                                            .length = sizeof(address_of_one)};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(&message.u.address, &address_of_one, sizeof(address_of_one));
    sxe__handover_send(link, &message, fd);
    have_reloaded(link);
    /* Too late: this child drains already. */
    message.kind = SXE__HANDOVER_FILE;
    sxe__handover_send(link, &message, -1);
    message.kind = SXE__HANDOVER_KEEP;
    sxe__handover_send(link, &message, fd);
    message.kind = SXE__HANDOVER_USE;
    sxe__handover_send(link, &message, -1);
    return 0;
}

static int
find_it(int link)
{
    int fd = sxe__handover_listeners.find(&address_of_one, sizeof(address_of_one));

    if (fd < 0)
        return 1;
    end_after_the_first(link);
    return 0;
}

START_TEST(a_socket_is_kept_for_the_next_one)
{
    ck_assert_int_eq(SUPERVISE(keep_one, find_it), 0);
    ck_assert_uint_eq(shared->loads, 2);
}
END_TEST

/* ---- Children that another program has taken over ---- */

static int
close_the_link_and_stay(int link)
{
    say_ready(link);
    close(link);
    return never_end(-1);
}

static int
send_nothing_and_stay(int link)
{
    say_ready(link);
    send(link, "", 0, 0);
    return never_end(link);
}

START_TEST(one_that_seems_to_end_and_stays_is_ended)
{
    ck_assert_int_eq(SUPERVISE(_i == 0 ? close_the_link_and_stay : send_nothing_and_stay, end_all),
                     0);
    ck_assert(logged(", which served, ended with signal 9"));
}
END_TEST

/* Messages that need no descriptor come with one, which must not stay open in the supervisor. */
static int
send_what_makes_no_sense(int link)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_READY};

    sxe__handover_send(link, &message, 0);
    message.kind = SXE__HANDOVER_RENEW + 100;
    sxe__handover_send(link, &message, 0);
    message.kind = SXE__HANDOVER_FILE;
    memset(message.u.path, 'a', sizeof(message.u.path));
    sxe__handover_send(link, &message, 0);
    send(link, &message, 5, 0);
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(messages_that_make_no_sense_are_ignored)
{
    hooks.is_dev = true;
    ck_assert_int_eq(SUPERVISE(send_what_makes_no_sense), 0);
    ck_assert_uint_eq(shared->loads, 1);
}
END_TEST

/* Send messages until the supervisor sends END. */
static int
never_stop_sending(int link)
{
    struct sxe__handover_message heard;
    int fd;

    say_ready(link);
    tell(SIGTERM);
    while (sxe__handover_receive(link, &heard, &fd) == 0)
        sxe__handover_say(link, SXE__HANDOVER_FILE);
    return 0;
}

START_TEST(one_that_never_stops_sending_keeps_nobody_waiting)
{
    ck_assert_int_eq(SUPERVISE(never_stop_sending), 0);
}
END_TEST

/* ---- Process 1 of a container ---- */

/* Leave a process whose parent has ended, so that the supervisor becomes its parent. */
static int
leave_an_orphan(int link)
{
    const pid_t supervisor = getppid();
    const pid_t pid = fork();

    if (pid == 0) {
        if (fork() == 0) {
            shared->orphan = getpid();
            while (getppid() != supervisor)
                nap();
            _exit(0);
        }
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    while (shared->orphan == 0 || kill(shared->orphan, 0) == 0)
        nap();
    return end_all(link);
}

START_TEST(a_child_of_others_that_ends_is_waited_for)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(SUPERVISE(leave_an_orphan), 0);
}
END_TEST

/* ---- Files ---- */

static char module[64];

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    fputs(text, file);
    fclose(file);
}

static int
change_the_module(int link)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_FILE};

    snprintf(message.u.path, sizeof(message.u.path), "%s", module);
    sxe__handover_send(link, &message, -1);
    say_ready(link);
    sxe__handover_say(link, SXE__HANDOVER_KEEP + 100);
    for (uint64_t since_ns = shared->now_ns; shared->now_ns < since_ns + MS(1000);)
        nap();
    write_file(module, "changed");
    hear(link);
    return 0;
}

static int
change_the_script(int link)
{
    say_ready(link);
    for (uint64_t since_ns = shared->now_ns; shared->now_ns < since_ns + MS(1000);)
        nap();
    write_file(script, "changed");
    hear(link);
    return 0;
}

static int
have_many_files(int link)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_FILE};

    for (unsigned i = 0; i < 2000; i++) {
        snprintf(message.u.path, sizeof(message.u.path), "/nonexistent/%u", i);
        ck_assert_int_eq(sxe__handover_send(link, &message, -1), 0);
    }
    return end_all(link);
}

START_TEST(messages_are_not_lost_however_many)
{
    ck_assert_int_eq(SUPERVISE(have_many_files), 0);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_END);
}
END_TEST

START_TEST(a_change_of_a_file_loads_again)
{
    char directory[] = "/tmp/sxe-supervisor-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(script, sizeof(script), "%s/a.lua", directory);
    snprintf(module, sizeof(module), "%s/m.lua", directory);
    write_file(script, "");
    write_file(module, "");
    hooks.is_dev = true;
    ck_assert_int_eq(SUPERVISE(change_the_script, change_the_module, end_all), 0);
    ck_assert_uint_eq(shared->loads, 3);
    unlink(script);
    unlink(module);
    rmdir(directory);
}
END_TEST

START_TEST(a_change_of_a_file_that_a_child_names_loads_again)
{
    char directory[] = "/tmp/sxe-supervisor-XXXXXX";

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(module, sizeof(module), "%s/m.lua", directory);
    write_file(module, "");
    hooks.watches_files = true;
    ck_assert_int_eq(SUPERVISE(change_the_module, end_all), 0);
    ck_assert_uint_eq(shared->loads, 2);
    unlink(module);
    rmdir(directory);
}
END_TEST

/* ---- Children whose loop does not turn ---- */

static struct ev_loop *turning;

static void
turn_once(void)
{
    turning = ev_loop_new(EVFLAG_AUTO);
    sxe__heartbeat_watch(turning);
    ev_run(turning, EVRUN_NOWAIT);
}

static int
hang(int link)
{
    turn_once();
    say_ready(link);
    return never_end(link);
}

/* The child's loop never turns, and the clock stands still until the child leaves. */
static int
have_reloaded_and_hang(int link)
{
    shared->is_time_still = true;
    turn_once();
    say_ready(link);
    tell(SIGHUP);
    hear(link);
    shared->is_time_still = false;
    return never_end(link);
}

static int
hang_and_want_the_end(int link)
{
    turn_once();
    return want_the_end_and_stay(link);
}

static int
hang_stopped_and_want_the_end(int link)
{
    turn_once();
    say_ready(link);
    tell(SIGTERM);
    raise(SIGSTOP);
    return 0;
}

START_TEST(one_whose_loop_does_not_turn_is_killed_and_replaced)
{
    config.hang_timeout_ms = 10000;
    ck_assert_int_eq(SUPERVISE(hang, end_all), 0);
    ck_assert_uint_ge(shared->children[1].since_ns - shared->children[0].since_ns, MS(10000));
    ck_assert(
        logged("has blocked its loop for more than 10000 ms, in a function of C: it is killed, "
               "and another is started (--hang-timeout)"));
    ck_assert(!logged("ended with"));
}
END_TEST

START_TEST(one_that_hangs_on_leaving_is_killed_and_not_replaced)
{
    config.hang_timeout_ms = 10000;
    config.stop_timeout_ms = 1000000;
    ck_assert_int_eq(SUPERVISE(have_reloaded_and_hang, end_after_the_first), 0);
    ck_assert(logged("in a function of C: it is killed (--hang-timeout)"));
    ck_assert_uint_eq(shared->loads, 2);
}
END_TEST

START_TEST(without_a_limit_it_may_hang)
{
    config.hang_timeout_ms = SXE_WORKERS_NO_LIMIT;
    config.stop_timeout_ms = 1000;
    ck_assert_int_eq(SUPERVISE(hang_and_want_the_end), 0);
    ck_assert(!logged("has blocked its loop"));
}
END_TEST

START_TEST(one_that_is_stopped_is_not_replaced)
{
    config.hang_timeout_ms = 10000;
    config.stop_timeout_ms = 60000;
    ck_assert_int_eq(SUPERVISE(hang_stopped_and_want_the_end), 0);
    ck_assert(logged("is stopped, by a signal or a debugger: it is not replaced"));
    ck_assert(!logged("has blocked its loop"));
}
END_TEST

/* ---- Messages to the service manager ---- */

/* The next message must begin with this line. */
static void
expect_message(const char *line)
{
    const char *text = message();

    ck_assert_uint_eq(strcspn(text, "\n"), strlen(line));
    ck_assert_int_eq(strncmp(text, line, strlen(line)), 0);
}

START_TEST(a_load_and_the_end_are_told)
{
    open_mailbox('@');
    if (_i == 0)
        ck_assert_int_eq(SUPERVISE(have_reloaded, end_after_the_first), 0);
    else
        ck_assert_int_eq(SUPERVISE(outlive_one_that_fails, end_badly), 0);
    expect_message("READY=1");
    expect_message("RELOADING=1");
    expect_message("READY=1");
    expect_message("STOPPING=1");
    ck_assert(mailbox_is_empty());
    close(mailbox.fd);
}
END_TEST

/* Wait until the supervisor has sent WATCHDOG=1 three times. */
static int
end_all_when_it_lives(int link)
{
    unsigned times = 0;

    while (times < 3)
        times += strcmp(message(), "WATCHDOG=1") == 0;
    return end_all(link);
}

START_TEST(a_watchdog_hears_of_it_again_and_again)
{
    open_mailbox('@');
    setenv("WATCHDOG_USEC", "10000000", 1);
    ck_assert_int_eq(SUPERVISE(end_all_when_it_lives), 0);
    ck_assert_uint_ge(shared->now_ns, MS(10000));
    close(mailbox.fd);
}
END_TEST

/* ---- Several workers ---- */

static int
serve_to_the_end(int link)
{
    say_ready(link);
    while (hear(link) != 0 && !(shared->children[number].heard & 1u << SXE__HANDOVER_END))
        continue;
    return 0;
}

static void
await_loads(unsigned loads)
{
    while (shared->loads < loads)
        nap();
}

/* When the last of two workers is ready, both serve. */
static int
end_all_when_both_serve(int link)
{
    ck_assert_uint_eq(shared->loads, 2);
    say_ready(link);
    while (!(shared->children[0].heard & 1u << SXE__HANDOVER_SAY))
        nap();
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(all_workers_are_started_the_first_one_before_the_others)
{
    config.workers = 2;
    config.on_end = note_end;
    ck_assert_int_eq(SUPERVISE(serve_to_the_end, end_all_when_both_serve), 0);
    ck_assert_uint_eq(shared->children[0].slot, 0);
    ck_assert_uint_eq(shared->children[1].slot, 1);
    ck_assert_uint_eq(shared->ended_slots, 3);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_SAY | 1u << SXE__HANDOVER_END);
    ck_assert_uint_eq(captured.number, 0);
}
END_TEST

/* Wait until the other worker is replaced; then this one is loaded again. */
static int
end_all_when_three_were_loaded(int link)
{
    say_ready(link);
    await_loads(3);
    while (!shared->children[3].has_said)
        nap();
    tell(SIGTERM);
    while (hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

static int
say_so_and_serve(int link)
{
    say_ready(link);
    shared->children[number].has_said = true;
    while (hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

START_TEST(a_worker_that_dies_is_replaced_alone)
{
    config.workers = 2;
    ck_assert_int_eq(
        SUPERVISE(end_all_when_three_were_loaded, die_soon, end_badly, say_so_and_serve), 0);
    ck_assert_uint_eq(shared->loads, 3);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_SAY | 1u << SXE__HANDOVER_END);
    ck_assert_uint_eq(shared->children[3].slot, 1);
    ck_assert(logged("which served, ended with exit status 0"));
    ck_assert(logged(" serves as worker 1"));
    ck_assert(!logged("was loaded again"));
}
END_TEST

static int
end_all_when_five_were_loaded(int link)
{
    say_ready(link);
    while (!shared->children[5].has_said)
        nap();
    tell(SIGTERM);
    while (hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

START_TEST(a_worker_that_cannot_be_replaced_at_once_is_tried_again)
{
    config.workers = 2;
    ck_assert_int_eq(SUPERVISE(end_all_when_five_were_loaded, die_soon, end_badly, end_badly,
                               end_badly, say_so_and_serve),
                     0);
    ck_assert_uint_eq(shared->loads, 4);
    ck_assert(logged("could not be loaded again; the version loaded before goes on serving"));
}
END_TEST

/* A worker of the first load; the second of them requests a reload. */
static int
serve_and_drain(int link)
{
    say_ready(link);
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

static int
reload_and_drain(int link)
{
    say_ready(link);
    tell(SIGHUP);
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

static int
end_after_both_of_the_first(int link)
{
    say_ready(link);
    await_end_of(0);
    await_end_of(1);
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(all_workers_are_replaced_when_all_new_ones_are_ready)
{
    config.workers = 2;
    ck_assert_int_eq(
        SUPERVISE(serve_and_drain, reload_and_drain, say_so_and_serve, end_after_both_of_the_first),
        0);
    ck_assert_uint_eq(shared->loads, 4);
    ck_assert(logged("/nonexistent.lua was loaded again, into 2 processes"));
    ck_assert(!logged("ended with"));
}
END_TEST

/* The second worker of a load fails, so the first one, which may have accepted a connection,
 * drains. */
static int
end_all_after_a_failed_load(int link)
{
    say_ready(link);
    tell(SIGHUP);
    await_loads(4);
    await_end_of(2);
    await_end_of(3);
    tell(SIGTERM);
    while (hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

START_TEST(a_load_of_which_one_fails_leaves_the_old_ones_alone)
{
    config.workers = 2;
    ck_assert_int_eq(SUPERVISE(serve_to_the_end, end_all_after_a_failed_load, serve_and_drain,
                               _i == 0 ? end_badly : be_killed),
                     0);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_SAY | 1u << SXE__HANDOVER_END);
    ck_assert_uint_eq(shared->children[1].heard, 1u << SXE__HANDOVER_END);
    ck_assert_uint_eq(shared->children[2].heard, 1u << SXE__HANDOVER_DRAIN);
    ck_assert(logged(
        "/nonexistent.lua could not be loaded again; the version loaded before goes on serving"));
}
END_TEST

START_TEST(a_first_load_of_which_one_fails_is_the_end)
{
    config.workers = 2;
    ck_assert_int_eq(SUPERVISE(serve_to_the_end, end_badly), 3);
    ck_assert_uint_eq(shared->children[0].heard, 1u << SXE__HANDOVER_END);
}
END_TEST

START_TEST(a_second_worker_that_cannot_be_forked_is_the_end)
{
    config.workers = 2;
    fake_os_fail(FAKE_FORK, 2, 1, EAGAIN);
    ck_assert_int_eq(SUPERVISE(serve_to_the_end), 1);
    ck_assert(logged("cannot start a process: Resource temporarily unavailable"));
}
END_TEST

START_TEST(a_load_that_cannot_be_forked_is_tried_again)
{
    config.workers = 2;
    fake_os_fail(FAKE_FORK, 4, 1, EAGAIN);
    ck_assert_int_eq(SUPERVISE(serve_and_drain, reload_and_drain, serve_and_drain,
                               end_after_both_of_the_first, serve_to_the_end),
                     0);
    ck_assert(logged("cannot start a process: Resource temporarily unavailable"));
    ck_assert(logged("was loaded again, into 2 processes"));
}
END_TEST

/* A worker asks to be replaced, and drains when its successor is ready. */
static int
wear_out(int link)
{
    say_ready(link);
    sxe__handover_say(link,
                      SXE__HANDOVER_RENEW); /* the other workers of its load are not ready yet */
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

static int
wear_out_serving(int link)
{
    say_ready(link);
    while (hear(link) != SXE__HANDOVER_SAY)
        continue;
    sxe__handover_say(link, SXE__HANDOVER_RENEW);
    sxe__handover_say(link, SXE__HANDOVER_RENEW);
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

static int
end_all_when_the_first_is_replaced(int link)
{
    say_ready(link);
    await_end_of(0);
    tell(SIGTERM);
    while (hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

START_TEST(a_worker_that_asks_is_replaced_alone)
{
    config.workers = 2;
    ck_assert_int_eq(SUPERVISE(_i == 0 ? wear_out : wear_out_serving,
                               end_all_when_the_first_is_replaced, serve_to_the_end),
                     0);
    ck_assert_uint_eq(shared->children[0].heard,
                      1u << SXE__HANDOVER_SAY | 1u << SXE__HANDOVER_DRAIN);
    ck_assert_uint_eq(shared->children[1].heard, 1u << SXE__HANDOVER_END);
    ck_assert_uint_eq(shared->loads, 3);
}
END_TEST

/* Request a reload while a worker is being replaced. The clock stands still until the worker
 * serves, so that it is not given up. */
static int
reload_while_starting(int link)
{
    shared->is_time_still = true;
    tell(SIGHUP);
    tell(SIGUSR1);
    while (hear(link) != SXE__HANDOVER_REOPEN)
        continue;
    say_ready(link);
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    shared->is_time_still = false;
    return 0;
}

START_TEST(a_load_asked_for_while_one_is_replaced_comes_after_it)
{
    config.workers = 2;
    ck_assert_int_eq(SUPERVISE(serve_and_drain, die_soon, serve_to_the_end, reload_while_starting,
                               end_badly, end_after_the_first),
                     0);
    ck_assert(logged("was loaded again, into 2 processes"));
}
END_TEST

static int
hang_loading_the_second(int link)
{
    (void)link;
    tell(SIGHUP);
    return never_end(link);
}

START_TEST(a_load_of_which_one_hangs_is_given_up)
{
    config.workers = 2;
    hooks.is_dev = true;
    ck_assert_int_eq(SUPERVISE(serve_and_drain, reload_and_drain, serve_and_drain,
                               hang_loading_the_second, serve_to_the_end,
                               end_after_both_of_the_first),
                     0);
    ck_assert(logged("is still not loaded, 1 s after another load was requested"));
    ck_assert_uint_eq(shared->children[2].heard, 1u << SXE__HANDOVER_DRAIN);
}
END_TEST

START_TEST(without_memory_for_the_balance_it_does_not_start)
{
    config.workers = 2;
    fake_os_fail(FAKE_MMAP, 2, 1, ENOMEM); /* the first mmap() is the test's own */
    ck_assert_int_eq(SUPERVISE(serve_to_the_end, serve_to_the_end), 1);
    ck_assert(logged("cannot start the supervisor: mmap: Cannot allocate memory"));
}
END_TEST

START_TEST(without_a_script_it_is_the_server_that_is_loaded)
{
    hooks.script = NULL;
    config.name = NULL;
    ck_assert_int_eq(SUPERVISE(have_reloaded, end_after_the_first), 0);
    ck_assert(logged("the server was loaded again, into process "));
}
END_TEST

/* ---- A change that cannot be loaded yet ---- */

static void
watch_module(void *user)
{
    ck_assert_ptr_eq(user, &config);
    sxe_workers_watch_file(module);
}

/* The parent's hooks for reasons: a reason is told once, except by a load that was asked for. */
static uint32_t told_reason;
static bool is_told;

static void
note_attempt(bool is_retry)
{
    told_reason = is_retry ? told_reason : 0;
    is_told = false;
}

static void
note_digest(uint32_t digest)
{
    is_told = digest == told_reason;
    told_reason = digest;
}

static bool
is_reason_known(void)
{
    return is_told;
}

static char module_directory[] = "/tmp/sxe-supervisor-XXXXXX";

static void
make_module(void)
{
    ck_assert_ptr_nonnull(mkdtemp(module_directory));
    snprintf(module, sizeof(module), "%s/m.lua", module_directory);
    write_file(module, "");
    config.on_load = watch_module;
    hooks.on_attempt = note_attempt;
    hooks.on_reason = note_digest;
    hooks.is_reason_told = is_reason_known;
}

static void
remove_module(void)
{
    unlink(module);
    rmdir(module_directory);
}

static int
change_and_drain(int link)
{
    say_ready(link);
    write_file(module, "changed");
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

static int
fail_for(int link, uint32_t reason)
{
    struct sxe__handover_message message = {.kind = SXE__HANDOVER_REASON, .value = reason};

    shared->children[number].since_ns = shared->now_ns;
    ck_assert_int_eq(sxe__handover_send(link, &message, -1), 0);
    return 3;
}

static int
fail_for_one_reason(int link)
{
    return fail_for(link, 7);
}

static int
fail_for_another_reason(int link)
{
    return fail_for(link, 9);
}

static unsigned
count_logged(const char *text)
{
    unsigned count = 0;

    for (unsigned i = 0; i < captured.number; i++)
        count += strstr(captured.lines[i], text) != NULL;
    return count;
}

START_TEST(a_change_that_cannot_be_loaded_is_tried_again_later_and_later)
{
    if (_i == 1)
        hooks.is_reason_told = NULL; /* as in programs without hooks */
    ck_assert_int_eq(
        SUPERVISE(change_and_drain, fail_for_one_reason, fail_for_one_reason, fail_for_one_reason,
                  fail_for_another_reason, fail_for_another_reason, fail_for_another_reason,
                  fail_for_another_reason, fail_for_another_reason, end_after_the_first),
        0);
    for (unsigned i = 1; i < 9; i++)
        ck_assert_uint_ge(shared->children[i + 1].since_ns - shared->children[i].since_ns,
                          i < 7 ? MS(500) << i : MS(60000));
    ck_assert_uint_eq(count_logged("could not be loaded again"), _i == 1 ? 8 : 2);
    ck_assert_uint_eq(count_logged("a changed file is not in service"), 1);
    ck_assert_uint_eq(count_logged("each reason is logged once"), _i == 1 ? 0 : 1);
    ck_assert_uint_eq(count_logged("was loaded again"), 1);
}
END_TEST

/* The clock stands still until another child starts it again, so that the next attempt does not
 * begin meanwhile. */
static int
fail_and_stop_the_clock(int link)
{
    shared->is_time_still = true;
    return fail_for(link, 7);
}

static int
change_and_reload_after_the_first(int link)
{
    say_ready(link);
    write_file(module, "changed");
    await_end_of(1);
    tell(SIGHUP);
    shared->is_time_still = false;
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

/* A reload that fails tells its reason, and the change still waits. */
START_TEST(a_change_that_waits_outlives_a_reload_that_fails)
{
    ck_assert_int_eq(SUPERVISE(change_and_reload_after_the_first, fail_and_stop_the_clock,
                               fail_for_one_reason, end_after_the_first),
                     0);
    ck_assert_uint_eq(count_logged("could not be loaded again"), 2);
    ck_assert_uint_eq(shared->loads, 4);
}
END_TEST

static int
change_and_end_after_the_first(int link)
{
    say_ready(link);
    write_file(module, "changed");
    await_end_of(1);
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(a_change_that_waits_does_not_keep_the_server_from_ending)
{
    ck_assert_int_eq(SUPERVISE(change_and_end_after_the_first, fail_and_stop_the_clock), 0);
    ck_assert_uint_eq(shared->loads, 2);
}
END_TEST

static int
write_and_have_reloaded(int link)
{
    say_ready(link);
    /* the clock stands still so that no look at the file comes before the signal */
    shared->is_time_still = true;
    write_file(module, "changed");
    tell(SIGHUP);
    await_end_of(1);
    shared->is_time_still = false;
    while (hear(link) != SXE__HANDOVER_DRAIN)
        continue;
    return 0;
}

START_TEST(a_change_that_only_a_failed_reload_has_read_is_tried_again)
{
    ck_assert_int_eq(SUPERVISE(write_and_have_reloaded, fail_for_one_reason, end_after_the_first),
                     0);
    ck_assert_uint_eq(shared->loads, 3);
}
END_TEST

static int
write_and_fail_when_it_is_seen(int link)
{
    const uint64_t since_ns = shared->now_ns;

    write_file(module, "changed again");
    while (shared->now_ns < since_ns + MS(3000))
        nap();
    return fail_for(link, 7);
}

/* The change of the second child counts for the third load, however the second one ends. */
START_TEST(a_change_during_a_load_is_loaded_afterwards)
{
    ck_assert_int_eq(SUPERVISE(change_and_drain, write_and_fail_when_it_is_seen,
                               fail_for_one_reason, end_after_the_first),
                     0);
    ck_assert_uint_eq(shared->loads, 4);
}
END_TEST

static int
end_when_the_change_cannot_be_loaded(int link)
{
    say_ready(link);
    write_file(module, "changed");
    await_end_of(1);
    for (uint64_t since_ns = shared->now_ns; shared->now_ns < since_ns + MS(5000);)
        nap();
    tell(SIGTERM);
    hear(link);
    return 0;
}

START_TEST(with_dev_a_change_is_not_tried_again)
{
    hooks.is_dev = true;
    ck_assert_int_eq(SUPERVISE(end_when_the_change_cannot_be_loaded, fail_for_one_reason), 0);
    ck_assert_uint_eq(shared->loads, 2);
}
END_TEST

static char renewals[32]; /* a letter for each call, in turn */
static unsigned renewals_number;

static void
note_renewal(void *user)
{
    ck_assert_ptr_eq(user, &config);
    renewals[renewals_number++] = 'r';
}

static void
note_settled(void *user, bool is_good)
{
    ck_assert_ptr_eq(user, &config);
    renewals[renewals_number++] = is_good ? '+' : '-';
}

/* The first load, the change, the reload that fails, and the change that waits for it. */
START_TEST(only_a_reload_renews_the_configuration)
{
    hooks.on_renew = note_renewal;
    config.on_settled = note_settled;
    ck_assert_int_eq(SUPERVISE(change_and_reload_after_the_first, fail_and_stop_the_clock,
                               fail_for_one_reason, end_after_the_first),
                     0);
    ck_assert_str_eq(renewals, "+-r-+");
}
END_TEST

/* A reload that could not be forked, or is given up, is tried again as a reload. */
START_TEST(a_reload_that_comes_again_renews_the_configuration)
{
    hooks.on_renew = note_renewal;
    config.on_settled = note_settled;
    if (_i == 0) {
        fake_os_fail(FAKE_FORK, 2, 1, EAGAIN);
        ck_assert_int_eq(SUPERVISE(have_reloaded, end_after_the_first), 0);
    } else {
        ck_assert_int_eq(SUPERVISE(have_reloaded, hang_and_have_reloaded, end_after_the_first), 0);
    }
    ck_assert_str_eq(renewals, "+r-r+");
}
END_TEST

/* Live so long that the successor is started at once, and die when the load has failed. */
static int
live_long_and_change(int link)
{
    say_ready(link);
    for (uint64_t since_ns = shared->now_ns; shared->now_ns < since_ns + MS(11000);)
        nap();
    write_file(module, "changed");
    await_end_of(2);
    return 0;
}

/* A single worker starts so slowly that the next attempt is due meanwhile. */
static int
start_slowly(int link)
{
    const uint64_t since_ns = shared->now_ns;

    shared->is_time_still = false;
    while (shared->now_ns < since_ns + MS(3000))
        nap();
    return serve_and_drain(link);
}

static int
end_after_the_slow_one(int link)
{
    say_ready(link);
    await_end_of(0);
    await_end_of(3);
    tell(SIGTERM);
    while (hear(link) != SXE__HANDOVER_END)
        continue;
    return 0;
}

START_TEST(a_change_is_tried_again_after_a_single_worker_has_started)
{
    config.workers = 2;
    ck_assert_int_eq(SUPERVISE(serve_and_drain, live_long_and_change, fail_and_stop_the_clock,
                               start_slowly, serve_to_the_end, end_after_the_slow_one),
                     0);
    ck_assert_uint_eq(shared->loads, 6);
    ck_assert(logged(" serves as worker 1"));
    ck_assert(logged("was loaded again, into 2 processes"));
}
END_TEST

static TCase *
changes_case(void)
{
    TCase *t = tcase_create("changes");

    tcase_add_checked_fixture(t, make_module, remove_module);
    tcase_add_loop_test(t, a_change_that_cannot_be_loaded_is_tried_again_later_and_later, 0, 2);
    tcase_add_test(t, a_change_that_waits_outlives_a_reload_that_fails);
    tcase_add_test(t, a_change_that_waits_does_not_keep_the_server_from_ending);
    tcase_add_test(t, a_change_that_only_a_failed_reload_has_read_is_tried_again);
    tcase_add_test(t, a_change_during_a_load_is_loaded_afterwards);
    tcase_add_test(t, with_dev_a_change_is_not_tried_again);
    tcase_add_test(t, a_change_is_tried_again_after_a_single_worker_has_started);
    tcase_add_test(t, only_a_reload_renews_the_configuration);
    tcase_add_loop_test(t, a_reload_that_comes_again_renews_the_configuration, 0, 2);
    return t;
}

static TCase *
workers_case(void)
{
    TCase *t = tcase_create("workers");

    tcase_add_test(t, all_workers_are_started_the_first_one_before_the_others);
    tcase_add_test(t, a_worker_that_dies_is_replaced_alone);
    tcase_add_test(t, a_worker_that_cannot_be_replaced_at_once_is_tried_again);
    tcase_add_test(t, all_workers_are_replaced_when_all_new_ones_are_ready);
    tcase_add_loop_test(t, a_load_of_which_one_fails_leaves_the_old_ones_alone, 0, 2);
    tcase_add_test(t, a_first_load_of_which_one_fails_is_the_end);
    tcase_add_test(t, a_second_worker_that_cannot_be_forked_is_the_end);
    tcase_add_test(t, a_load_that_cannot_be_forked_is_tried_again);
    tcase_add_loop_test(t, a_worker_that_asks_is_replaced_alone, 0, 2);
    tcase_add_test(t, a_load_asked_for_while_one_is_replaced_comes_after_it);
    tcase_add_test(t, a_load_of_which_one_hangs_is_given_up);
    tcase_add_test(t, without_memory_for_the_balance_it_does_not_start);
    tcase_add_test(t, without_a_script_it_is_the_server_that_is_loaded);
    return t;
}

static Suite *
supervisor_suite(void)
{
    Suite *suite = suite_create("httpd supervisor");
    TCase *t = tcase_create("supervisor");

    tcase_add_test(t, it_ends_when_its_children_have);
    tcase_add_test(t, a_second_signal_is_passed_on_and_nothing_is_loaded_any_more);
    tcase_add_test(t, a_third_signal_is_passed_on_too);
    tcase_add_loop_test(t, a_new_program_is_not_started_before_this_one_serves, 0, 2);
    tcase_add_test(t, who_does_not_end_is_killed);
    tcase_add_test(t, who_does_not_end_at_the_second_signal_is_killed_soon);
    tcase_add_test(t, signals_are_messages_to_children);
    tcase_add_test(t, a_turn_lasts_a_second_at_least);
    tcase_add_loop_test(t, the_first_that_fails_is_the_end_with_its_status, 0, 2);
    tcase_add_test(t, a_first_load_that_ends_well_has_failed);
    tcase_add_loop_test(t, what_the_system_refuses_at_the_beginning_is_the_end, 0, 4);
    tcase_add_test(t, a_new_one_takes_over_and_the_old_one_drains);
    tcase_add_test(t, where_children_cannot_open_the_log_new_ones_do);
    tcase_add_loop_test(t, one_that_fails_leaves_the_old_one_alone, 0, 2);
    tcase_add_test(t, the_first_load_has_no_limit_and_the_log_says_so);
    tcase_add_test(t, a_load_without_end_is_given_up_if_nobody_serves);
    tcase_add_test(t, each_worker_of_a_load_has_the_whole_time_if_nobody_serves);
    tcase_add_test(t, the_log_tells_a_limit_below_a_second);
    tcase_add_test(t, one_that_hangs_is_replaced_by_the_next);
    tcase_add_loop_test(t, one_that_loads_slowly_is_loaded_then_there_is_one_more, 0, 2);
    tcase_add_loop_test(t, after_one_that_fails_comes_the_one_that_was_asked_for, 0, 2);
    tcase_add_test(t, each_that_is_given_up_leaves_twice_the_time_to_the_next);
    tcase_add_test(t, one_that_is_ready_as_it_is_given_up_goes_on);
    tcase_add_test(t, at_the_end_nothing_is_loaded_once_more);
    tcase_add_test(t, under_nohup_sighup_loads_and_is_ignored_by_what_scripts_run);
    tcase_add_loop_test(t, one_that_is_ready_at_the_signal_drains, 0, 10);
    tcase_add_test(t, one_that_does_not_leave_is_killed_in_time);
    tcase_add_test(t, there_are_so_many_then_the_next_waits);
    tcase_add_test(t, what_waits_for_room_is_not_started_at_the_end);
    tcase_add_test(t, the_one_that_serves_never_makes_room);
    tcase_add_test(t, one_that_dies_is_replaced_later_and_later);
    tcase_add_test(t, one_that_lived_for_long_is_replaced_at_once);
    tcase_add_test(t, the_delay_ends_growing);
    tcase_add_test(t, one_that_dies_when_another_one_starts_is_replaced_by_that);
    tcase_add_loop_test(t, what_the_system_refuses_later_is_tried_again, 0, 2);
    tcase_add_test(t, one_may_ask_to_be_replaced);
    tcase_add_test(t, those_that_ask_again_and_again_are_not_said_to_end);
    tcase_add_test(t, a_socket_is_kept_for_the_next_one);
    tcase_add_test(t, messages_are_not_lost_however_many);
    tcase_add_loop_test(t, one_that_seems_to_end_and_stays_is_ended, 0, 2);
    tcase_add_test(t, messages_that_make_no_sense_are_ignored);
    tcase_add_test(t, one_that_never_stops_sending_keeps_nobody_waiting);
    tcase_add_test(t, a_child_of_others_that_ends_is_waited_for);
    tcase_add_test(t, a_change_of_a_file_loads_again);
    tcase_add_test(t, a_change_of_a_file_that_a_child_names_loads_again);
    tcase_add_test(t, one_whose_loop_does_not_turn_is_killed_and_replaced);
    tcase_add_test(t, one_that_hangs_on_leaving_is_killed_and_not_replaced);
    tcase_add_test(t, without_a_limit_it_may_hang);
    tcase_add_test(t, one_that_is_stopped_is_not_replaced);
    tcase_add_loop_test(t, a_load_and_the_end_are_told, 0, 2);
    tcase_add_test(t, a_watchdog_hears_of_it_again_and_again);
    suite_add_tcase(suite, t);
    suite_add_tcase(suite, workers_case());
    suite_add_tcase(suite, changes_case());
    return suite;
}

int
main(void)
{
    return sxe_test_main(supervisor_suite());
}
