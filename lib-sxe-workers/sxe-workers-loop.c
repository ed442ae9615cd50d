/* SPDX-License-Identifier: MIT
 *
 * The loop of the supervisor: signals, messages of its children, deadlines.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-process-internal.h"
#include "sxe-sized-internal.h"
#include "sxe-workers-balance-private.h"
#include "sxe-workers-changes-private.h"
#include "sxe-workers-children-private.h"
#include "sxe-workers-handover-internal.h"
#include "sxe-workers-hang-private.h"
#include "sxe-workers-inherit-internal.h"
#include "sxe-workers-notify-internal.h"
#include "sxe-workers-private.h"
#include "sxe-workers-upgrade-internal.h"

#define LOOK_NS (250 * SXE_NS_PER_MS) /* how often watched files are looked at */
/* how long a child may take to exit after the second signal */
#define GRACE_NS SXE_NS_PER_SECOND

enum { STOP_TIMEOUT_MS = 5000, HANG_TIMEOUT_MS = 10000, LOAD_TIMEOUT_MS = 60000 };

static const int signal_numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
#define SIGNALS (sizeof(signal_numbers) / sizeof(signal_numbers[0]))

/* Restore the signal mask that the process had before the loop. First ignore the signals that the
 * loop watched: if one is pending, it would kill this process, which has to return an exit
 * status. */
static void
stop_watching_signals(void)
{
    close(sxe__supervisor.signals);
    for (size_t i = 0; i < SIGNALS; i++)
        sxe__signal_disarm(signal_numbers[i]);
    sigprocmask(SIG_SETMASK, &sxe__supervisor.mask_before, NULL);
}

void
sxe__supervisor_leave_loop(void)
{
    sxe__upgrade_forget();
    stop_watching_signals();
}

/* In the helper that was just forked: close the descriptors of the supervisor. */
static void
leave_for_helper(void)
{
    sxe__children_close_links();
    sxe__supervisor_leave_loop();
}

/* Tell all children to end. At the second signal they exit at once; a child that hangs or is
 * stopped cannot, so it is killed soon. */
static void
stop_all_children(void)
{
    const uint64_t within_ns =
        sxe__supervisor.is_told_to_end
            ? GRACE_NS
            : OVERTIME_NS + sxe__supervisor.config.stop_timeout_ms * (uint64_t)SXE_NS_PER_MS;

    sxe__upgrade_cancel(within_ns);
    sxe__supervisor_end_all(SXE__HANDOVER_END);
    if (sxe__supervisor.is_told_to_end)
        sxe__children_hurry(within_ns);
    sxe__supervisor.is_told_to_end = true;
}

static void
upgrade_program(void)
{
    if (sxe__supervisor.config.argv == NULL)
        SXE_WARN("SIGUSR2: no new program is started: this one has not said how it was started");
    else if (!sxe__supervisor.has_served || sxe__supervisor.is_ending || getpid() == 1)
        SXE_WARN("SIGUSR2: no new program is started: this one does not serve yet, is ending, or "
                 "is process 1, whose end would end the container");
    else
        sxe__upgrade_start(sxe__supervisor.config.argv, &sxe__supervisor.mask_before);
}

/* If the new program is ready, drain all children. The sockets and their files now belong to the
 * new program, so empty the table: then sxe__supervisor_end_all removes no file. */
static void
hear_new_program(void)
{
    char line[32];
    pid_t pid = sxe__upgrade_hear();

    if (pid == 0)
        return;
    snprintf(line, sizeof(line), "MAINPID=%d", pid);
    sxe__notify_send(line);
    sxe__handover_close_others();
    sxe__supervisor_end_all(SXE__HANDOVER_DRAIN);
}

static void
reopen_logs(void)
{
    if (sxe__supervisor.hooks.reopens_by_load) {
        sxe__supervisor_reload(false);
        return;
    }
    if (sxe__supervisor.config.on_reopen != NULL)
        sxe__supervisor.config.on_reopen(sxe__supervisor.config.user);
    sxe__children_say(SXE__HANDOVER_REOPEN);
}

static void
take_supervisor_signals(void)
{
    struct signalfd_siginfo info;

    while (read(sxe__supervisor.signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        switch (info.ssi_signo) {
        /* nothing to do: the signal only has to end poll(2), because reap_orphans is called next */
        case SIGCHLD:
            break;
        case SIGHUP:
            sxe__supervisor_reload(true);
            break;
        case SIGUSR1:
            reopen_logs();
            break;
        case SIGUSR2:
            upgrade_program();
            break;
        case SIGQUIT:
            sxe__children_say(SXE__HANDOVER_STATS);
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
    for (unsigned i = 0; i < sxe__children.number; i++) {
        if (sxe__children.each[i].pid == pid)
            return true;
    }
    return (sxe__supervisor.hooks.helper != NULL && pid == sxe__supervisor.hooks.helper()) ||
           pid == sxe__upgrade_pid();
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
        sxe__supervisor.start_ns,          sxe__supervisor.look_ns,
        sxe__supervisor.look_at_hearts_ns, sxe__supervisor.look_at_helper_ns,
        sxe__supervisor.give_up_ns,        sxe__supervisor.alone_ns,
        sxe__supervisor.alive_ns,          sxe__supervisor.turn_ns,
        sxe__supervisor.retry_ns,          sxe__upgrade_due_ns()};
    uint64_t due_ns = NEVER;
    uint64_t now_ns = sxe_time_ns();

    for (unsigned i = 0; i < sizeof(dues_ns) / sizeof(dues_ns[0]); i++)
        due_ns = dues_ns[i] < due_ns ? dues_ns[i] : due_ns;
    for (unsigned i = 0; i < sxe__children.number; i++) {
        if (sxe__children.each[i].kill_ns < due_ns)
            due_ns = sxe__children.each[i].kill_ns;
    }
    if (due_ns == NEVER)
        return -1;
    return due_ns <= now_ns ? 0 : (int)((due_ns - now_ns) / SXE_NS_PER_MS) + 1;
}

/* The limit of a load, in the text: "60 s", or "800 ms". */
static const char *
load_limit_text(char text[32])
{
    const uint64_t ms = sxe__supervisor.alone_limit_ns / SXE_NS_PER_MS;
    const bool is_whole = ms % 1000 == 0;

    snprintf(text, 32, "%llu %s", (unsigned long long)(is_whole ? ms / 1000 : ms),
             is_whole ? "s" : "ms");
    return text;
}

static void
kill_stuck(struct sxe__child *child)
{
    char limit[32];

    SXE_ERROR("%s is not loaded after %s, and no process serves: process %d, which loads it, is "
              "killed and replaced",
              sxe__supervisor.config.name, load_limit_text(limit), child->pid);
    sxe__child_kill(child);
}

/* The first load has no limit: a restart would load the same again, and an operator or a service
 * manager sees that the program does not become ready. */
static void
warn_of_first_load(const struct sxe__child *child)
{
    char limit[32];

    SXE_WARN("%s is not loaded after %s: process %d still loads it; the first load has no limit",
             sxe__supervisor.config.name, load_limit_text(limit), child->pid);
}

/* Children that load while no child serves have a limit of time: when it is over, kill them; their
 * successors try again. The next attempt gets twice the time, so that a server that loads slowly
 * can be loaded in the end. */
static void
limit_load(uint64_t now_ns)
{
    if (sxe__supervisor.is_ending || sxe__child_in(STARTING) == NULL ||
        sxe__child_in(SERVING) != NULL) {
        sxe__supervisor.alone_ns = NEVER;
        return;
    }
    if (sxe__supervisor.alone_ns == NEVER)
        sxe__supervisor.alone_ns = now_ns + sxe__supervisor.alone_limit_ns;
    if (sxe__supervisor.alone_ns > now_ns)
        return;
    for (unsigned i = 0; i < sxe__children.number; i++) {
        struct sxe__child *child = &sxe__children.each[i];

        if (child->role == STARTING && sxe__supervisor.has_served)
            kill_stuck(child);
        else if (child->role == STARTING)
            warn_of_first_load(child);
    }
    sxe__supervisor.alone_ns = NEVER;
    if (sxe__supervisor.alone_limit_ns < PATIENCE_MAX_NS)
        sxe__supervisor.alone_limit_ns *= 2;
}

static void
do_what_is_due(void)
{
    uint64_t now_ns = sxe_time_ns();

    if (sxe__supervisor.alive_ns <= now_ns) {
        sxe__supervisor.alive_ns = now_ns + sxe__notify_period_ns();
        sxe__notify_alive();
    }
    sxe__upgrade_kill_late(now_ns);
    sxe__children_kill_late(now_ns, sxe__supervisor.config.stop_timeout_ms,
                            sxe__supervisor.hooks.stop_option);
    if (sxe__supervisor.give_up_ns <= now_ns)
        sxe__supervisor_give_up();
    if (sxe__supervisor.turn_ns <= now_ns) {
        const uint32_t seconds = sxe__supervisor.config.on_turn(sxe__supervisor.config.user);

        sxe__supervisor.turn_ns =
            now_ns + (seconds > 0 ? seconds : 1) * (uint64_t)SXE_NS_PER_SECOND;
    }
    if (sxe__supervisor.look_at_hearts_ns <= now_ns)
        sxe__supervisor.look_at_hearts_ns =
            sxe__look_at_hearts(now_ns, sxe__supervisor.config.hang_timeout_ms,
                                sxe__supervisor.hooks.hang_option, sxe__supervisor.is_ending);
    if (sxe__supervisor.look_at_helper_ns <= now_ns)
        sxe__supervisor.look_at_helper_ns =
            sxe__supervisor.hooks.look_at_helper(now_ns, leave_for_helper);
    if (sxe__supervisor.look_ns <= now_ns) {
        sxe__supervisor.look_ns = now_ns + LOOK_NS;
        if (sxe__changes_look())
            sxe__supervisor_note_change();
    }
    if (sxe__supervisor.retry_ns <= now_ns)
        sxe__supervisor_retry();
    if (sxe__supervisor.start_ns <= now_ns)
        sxe__supervisor_start_children();
    limit_load(now_ns);
}

static void
run_supervisor_turn(void)
{
    static struct pollfd fds[SXE_WORKERS_CHILDREN * SXE_WORKERS_MAX + 2];
    unsigned number = sxe__children.number;

    fds[0] = (struct pollfd){.fd = sxe__supervisor.signals, .events = POLLIN};
    for (unsigned i = 0; i < number; i++)
        fds[i + 1] = (struct pollfd){.fd = sxe__children.each[i].link, .events = POLLIN};
    fds[number + 1] = (struct pollfd){.fd = sxe__upgrade_fd(), .events = POLLIN};
    if (poll(fds, number + 2, supervisor_wait_ms()) > 0) {
        if (fds[number + 1].revents != 0)
            hear_new_program();
        for (unsigned i = number; i > 0; i--) {
            if (fds[i].revents != 0)
                sxe__supervisor_listen_to(i - 1);
        }
        take_supervisor_signals();
        reap_orphans();
    }
    do_what_is_due();
}

static unsigned
count_cpus(void)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    (void)sched_getaffinity(0, sizeof(cpus), &cpus);
    return CPU_COUNT(&cpus) > 0 ? (unsigned)CPU_COUNT(&cpus) : 1;
}

static void
fill_in_defaults(const struct sxe_workers_config *config)
{
    const unsigned workers = config->workers == 0 ? count_cpus() : config->workers;
    struct sxe_workers_config *filled = &sxe__supervisor.config;
    struct sxe__workers_hooks *hooks = &sxe__supervisor.hooks;

    *filled = *config;
    filled->workers = workers < SXE_WORKERS_MAX ? workers : SXE_WORKERS_MAX;
    if (filled->stop_timeout_ms == 0)
        filled->stop_timeout_ms = STOP_TIMEOUT_MS;
    if (filled->hang_timeout_ms == 0)
        filled->hang_timeout_ms = HANG_TIMEOUT_MS;
    if (filled->load_timeout_ms == 0)
        filled->load_timeout_ms = LOAD_TIMEOUT_MS;
    if (filled->name == NULL)
        filled->name = "the server";
    if (config->hooks != NULL)
        *hooks = *config->hooks;
    else
        hooks->watches_files = true;
    if (hooks->stop_option == NULL)
        hooks->stop_option = "stop_timeout_ms";
    if (hooks->hang_option == NULL)
        hooks->hang_option = "hang_timeout_ms";
}

static void
prepare_supervisor(const struct sxe_workers_config *config)
{
    memset(&sxe__supervisor, 0, sizeof(sxe__supervisor));
    fill_in_defaults(config);
    sxe__supervisor.workers = sxe__supervisor.config.workers;
    sxe__supervisor.start_ns = NEVER;
    sxe__supervisor.give_up_ns = NEVER;
    sxe__supervisor.alone_ns = NEVER;
    sxe__supervisor.alone_limit_ns =
        sxe__supervisor.config.load_timeout_ms < SXE_WORKERS_NO_LIMIT
            ? sxe__supervisor.config.load_timeout_ms * (uint64_t)SXE_NS_PER_MS
            : NEVER / 2;
    sxe__supervisor.retry_ns = NEVER;
    sxe__supervisor.patience_ns = sxe__supervisor.hooks.is_dev ? PATIENCE_DEV_NS : PATIENCE_NS;
    sxe__supervisor.turn_ns = sxe__supervisor.config.on_turn != NULL ? sxe_time_ns() : NEVER;
    sxe__supervisor.look_ns = NEVER;
    sxe__supervisor.look_at_hearts_ns =
        sxe__supervisor.config.hang_timeout_ms < SXE_WORKERS_NO_LIMIT ? sxe_time_ns() : NEVER;
    sxe__supervisor.look_at_helper_ns =
        sxe__supervisor.hooks.look_at_helper != NULL ? sxe_time_ns() : NEVER;
    sxe__supervisor.alive_ns = sxe__notify_period_ns() > 0 ? sxe_time_ns() : NEVER;
    sxe__children_begin(sxe__supervisor.workers, config->describe);
    sxe__changes_clear();
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
    sxe__supervisor.signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (sxe__supervisor.signals < 0)
        return -errno;
    /* If SIGCHLD was ignored in the process that started this one, it is ignored here, too, and
     * waitpid would find no child. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &mask, &sxe__supervisor.mask_before);
    return 0;
}

int
sxe_workers_run_sized(const struct sxe_workers_config *given, size_t size)
{
    struct sxe_workers_config config;
    const char *what = "mmap";
    int result;

    if (sxe__sized_take(&config, sizeof(config), given, size, "sxe_workers_run") < 0 ||
        sxe__inherit_sockets(program_invocation_short_name) < 0)
        return EXIT_FAILURE;
    prepare_supervisor(&config);
    result = sxe__supervisor.workers > 1
                 ? sxe__balance_begin(SXE_WORKERS_CHILDREN * sxe__supervisor.workers)
                 : 0;
    if (result == 0) {
        what = "signalfd";
        result = open_signals();
    }
    if (result < 0) {
        SXE_ERROR("cannot start the supervisor: %s: %s", what, strerror(-result));
        sxe__balance_end();
        return EXIT_FAILURE;
    }
    sxe__supervisor_start_all();
    while (sxe__children.number > 0 || sxe__supervisor.start_ns != NEVER || sxe__upgrade_fd() >= 0)
        run_supervisor_turn();
    sxe__handover_remove_files();
    sxe__handover_close_others();
    sxe__balance_end();
    /* The link to the program before this one stays open until this process exits: if it is closed,
     * that program kills this one. */
    stop_watching_signals();
    return sxe__supervisor.status;
}
