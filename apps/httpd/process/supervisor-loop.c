/* SPDX-License-Identifier: MIT
 *
 * The loop of the supervisor: signals, messages of its children, deadlines.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "admin.h"
#include "balance.h"
#include "changes.h"
#include "children.h"
#include "handover.h"
#include "hang.h"
#include "notify.h"
#include "program.h"
#include "supervisor-private.h"
#include "upgrade.h"

#define LOOK_NS (250 * SXE_NS_PER_MS) /* how often watched files are looked at */
/* how long a child may take to exit after the second signal */
#define GRACE_NS SXE_NS_PER_SECOND

static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
#define SIGNALS (sizeof(signal_numbers) / sizeof(signal_numbers[0]))

/* Restore the signal mask that the process had before the loop. First ignore the signals that the
 * loop watched: if one is pending, it would kill this process, which has to return an exit
 * status. */
static void
stop_watching_signals(void)
{
    close(supervisor.signals);
    for (size_t i = 0; i < SIGNALS; i++)
        program_disarm(signal_numbers[i]);
    sigprocmask(SIG_SETMASK, &supervisor.mask_before, NULL);
}

void
supervisor_leave_loop(void)
{
    upgrade_forget();
    stop_watching_signals();
}

/* Called in an admin process that was just forked: close the descriptors of the supervisor. */
static void
leave_for_admin(void)
{
    children_close_links();
    supervisor_leave_loop();
}

/* Tell all children to end. At the second signal they exit at once; a child that hangs or is
 * stopped cannot, so it is killed soon. */
static void
stop_all_children(void)
{
    const uint64_t within_ns =
        supervisor.is_told_to_end
            ? GRACE_NS
            : OVERTIME_NS + supervisor.config->stop_timeout_ms * (uint64_t)SXE_NS_PER_MS;

    upgrade_cancel(within_ns);
    supervisor_end_all(HANDOVER_END);
    if (supervisor.is_told_to_end)
        hurry_all(within_ns);
    supervisor.is_told_to_end = true;
}

static void
upgrade_program(void)
{
    if (!supervisor.has_served || supervisor.is_ending || getpid() == 1)
        SXE_WARN("SIGUSR2: no new program is started: this one does not serve yet, is ending, or "
                 "is process 1, whose end would end the container");
    else
        upgrade_start(supervisor.config->argv, &supervisor.mask_before);
}

/* If the new program is ready, drain all children. The sockets and their files now belong to the
 * new program, so empty the table: then supervisor_end_all removes no file. */
static void
hear_new_program(void)
{
    char line[32];
    pid_t pid = upgrade_hear();

    if (pid == 0)
        return;
    snprintf(line, sizeof(line), "MAINPID=%d", pid);
    notify_send(line);
    handover_close_others();
    supervisor_end_all(HANDOVER_DRAIN);
}

static void
reopen_logs(void)
{
    if (supervisor.config->reopens_by_load) {
        supervisor_reload(false);
        return;
    }
    if (supervisor.config->on_reopen != NULL)
        supervisor.config->on_reopen(supervisor.config->user);
    say_to_all(HANDOVER_REOPEN);
}

static void
take_supervisor_signals(void)
{
    struct signalfd_siginfo info;

    while (read(supervisor.signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        switch (info.ssi_signo) {
        /* nothing to do: the signal only has to end poll(2), because reap_orphans is called next */
        case SIGCHLD:
            break;
        case SIGHUP:
            supervisor_reload(true);
            break;
        case SIGUSR1:
            reopen_logs();
            break;
        case SIGUSR2:
            upgrade_program();
            break;
        case SIGQUIT:
            say_to_all(HANDOVER_STATS);
            break;
        default:
            stop_all_children();
            break;
        }
    }
}

/* Whether this process is a child that other code of this program reaps. */
static bool
is_own(pid_t pid)
{
    for (unsigned i = 0; i < children.number; i++) {
        if (children.each[i].pid == pid)
            return true;
    }
    return pid == admin_pid() || pid == upgrade_pid();
}

/* If this is process 1 of a container, it becomes the parent of orphans. Reap them, because
 * otherwise zombies would fill the table of processes. If waitid finds a child of this program,
 * stop: other code reaps that child in a later turn, and then this function can reap the remaining
 * orphans. */
static void
reap_orphans(void)
{
    siginfo_t info = {.si_pid = 0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
           !is_own(info.si_pid)) {
        (void)waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
}

/* Milliseconds until the next deadline, rounded up; -1: there is none. */
static int
supervisor_wait_ms(void)
{
    const uint64_t dues_ns[] = {
        supervisor.start_ns,         supervisor.look_ns,    supervisor.look_at_hearts_ns,
        supervisor.look_at_admin_ns, supervisor.give_up_ns, supervisor.alive_ns,
        supervisor.turn_ns,          supervisor.retry_ns,   upgrade_due_ns()};
    uint64_t due_ns = NEVER;
    uint64_t now_ns = sxe_time_ns();

    for (unsigned i = 0; i < sizeof(dues_ns) / sizeof(dues_ns[0]); i++)
        due_ns = dues_ns[i] < due_ns ? dues_ns[i] : due_ns;
    for (unsigned i = 0; i < children.number; i++) {
        if (children.each[i].kill_ns < due_ns)
            due_ns = children.each[i].kill_ns;
    }
    if (due_ns == NEVER)
        return -1;
    return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / SXE_NS_PER_MS) + 1;
}

static void
do_what_is_due(void)
{
    uint64_t now_ns = sxe_time_ns();

    if (supervisor.alive_ns <= now_ns) {
        supervisor.alive_ns = now_ns + notify_period_ns();
        notify_alive();
    }
    upgrade_kill_late(now_ns);
    kill_late(now_ns, supervisor.config->stop_timeout_ms);
    if (supervisor.give_up_ns <= now_ns)
        supervisor_give_up();
    if (supervisor.turn_ns <= now_ns)
        supervisor.turn_ns = now_ns + supervisor.config->on_turn(supervisor.config->user) *
                                          (uint64_t)SXE_NS_PER_SECOND;
    if (supervisor.look_at_hearts_ns <= now_ns)
        supervisor.look_at_hearts_ns =
            look_at_hearts(now_ns, supervisor.config->hang_timeout_ms, supervisor.is_ending);
    if (supervisor.look_at_admin_ns <= now_ns)
        supervisor.look_at_admin_ns = admin_look(now_ns, leave_for_admin);
    if (supervisor.look_ns <= now_ns) {
        supervisor.look_ns = now_ns + LOOK_NS;
        if (changes_look())
            supervisor_note_change();
    }
    if (supervisor.retry_ns <= now_ns)
        supervisor_retry();
    if (supervisor.start_ns <= now_ns)
        supervisor_start_children();
}

static void
run_supervisor_turn(void)
{
    static struct pollfd fds[SUPERVISOR_CHILDREN * WORKERS_MAX + 2];
    unsigned number = children.number;

    fds[0] = (struct pollfd){.fd = supervisor.signals, .events = POLLIN};
    for (unsigned i = 0; i < number; i++)
        fds[i + 1] = (struct pollfd){.fd = children.each[i].link, .events = POLLIN};
    fds[number + 1] = (struct pollfd){.fd = upgrade_fd(), .events = POLLIN};
    if (poll(fds, number + 2, supervisor_wait_ms()) > 0) {
        if (fds[number + 1].revents != 0)
            hear_new_program();
        for (unsigned i = number; i > 0; i--) {
            if (fds[i].revents != 0)
                supervisor_listen_to(i - 1);
        }
        take_supervisor_signals();
        reap_orphans();
    }
    do_what_is_due();
}

static void
prepare_supervisor(const struct supervisor_config *config)
{
    memset(&supervisor, 0, sizeof(supervisor));
    supervisor.config = config;
    supervisor.workers = config->workers == 0 ? 1 : config->workers;
    supervisor.start_ns = NEVER;
    supervisor.give_up_ns = NEVER;
    supervisor.retry_ns = NEVER;
    supervisor.patience_ns = config->is_dev ? PATIENCE_DEV_NS : PATIENCE_NS;
    supervisor.turn_ns = config->on_turn != NULL ? sxe_time_ns() : NEVER;
    supervisor.look_ns = config->is_dev || config->on_load != NULL ? sxe_time_ns() : NEVER;
    supervisor.look_at_hearts_ns = config->hang_timeout_ms > 0 ? sxe_time_ns() : NEVER;
    supervisor.alive_ns = notify_period_ns() > 0 ? sxe_time_ns() : NEVER;
    children_begin(supervisor.workers);
    changes_clear();
}

/* Block the signals, and open the descriptors of the loop. 0 or -errno. */
static int
open_signals(void)
{
    sigset_t mask;

    sigemptyset(&mask);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&mask, signal_numbers[i]);
    sigaddset(&mask, SIGCHLD);
    supervisor.signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (supervisor.signals < 0)
        return -errno;
    /* If SIGCHLD was ignored in the process that started this one, it is ignored here, too, and
     * waitpid would find no child. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &mask, &supervisor.mask_before);
    return 0;
}

int
supervise(const struct supervisor_config *config)
{
    const char *what = "mmap";
    int result;

    prepare_supervisor(config);
    result = supervisor.workers > 1 ? balance_begin(SUPERVISOR_CHILDREN * supervisor.workers) : 0;
    if (result == 0) {
        what = "signalfd";
        result = open_signals();
    }
    if (result < 0) {
        SXE_ERROR("cannot start the supervisor: %s: %s", what, strerror(-result));
        balance_end();
        return EXIT_FAILURE;
    }
    supervisor_start_all();
    while (children.number > 0 || supervisor.start_ns != NEVER || upgrade_fd() >= 0)
        run_supervisor_turn();
    handover_remove_files();
    handover_close_others();
    balance_end();
    /* The link to the program before this one stays open until this process exits: if it is closed,
     * that program kills this one. */
    stop_watching_signals();
    return supervisor.status;
}
