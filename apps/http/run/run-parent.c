/* SPDX-License-Identifier: MIT
 *
 * The coordinating process: signals, its poll loop, messages about workers.
 */
#include "run-private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "program.h"
#include "sxe-process-internal.h"
#include "sxe-time.h"

uint64_t load_parent_grace_ns = SXE_NS_PER_SECOND;

/* Keep CPUs from deep sleep. A CPU in deep sleep takes some 30 us to wake, and with a rate below
 * the limit each latency would include that. While the descriptor is open, no CPU sleeps deeply
 * (the kernel's PM QoS; cyclictest does the same). Returns the descriptor; -1: it may not be
 * opened; then the figures are less exact, but the run goes on. */
static int
keep_awake(const struct load_plan *plan)
{
    static const int32_t none_us = 0;
    int fd = plan->model == LOAD_CLOSED ? -1 : open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);

    (void)!write(fd, &none_us, sizeof(none_us));
    return fd;
}

int
load_parent_open(struct load_parent *parent, const struct load_plan *plan, FILE *out, FILE *err)
{
    struct rlimit limit;
    sigset_t mask;
    int error;

    memset(parent, 0, sizeof(*parent));
    parent->plan = plan;
    parent->out = out;
    parent->err = err;
    parent->look_ns = parent->kill_ns = LOAD_NEVER;
    /* poll(2) refuses more entries than a process may open files, even if the descriptors of some
     * entries are -1. */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
        limit.rlim_cur < 1 + LOAD_MONITOR_FDS + (plan->workers + 1))
        return -EMFILE;
    parent->sum = load_results_map(1, false);
    if (parent->sum == NULL)
        return -errno;
    sigemptyset(&mask);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGCHLD);
    if (!sxe__signal_is_ignored(SIGHUP)) /* SIGHUP interrupts the run, unless nohup(1) ignores it */
        sigaddset(&mask, SIGHUP);
    parent->signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (parent->signals < 0) {
        error = -errno;
        load_results_unmap(parent->sum, 1);
        return error;
    }
    /* The process that started sxe-http may have set SIGCHLD to be ignored, and then children could
     * not be waited for. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &mask, &parent->mask_before);
    parent->awake = keep_awake(plan);
    return 0;
}

void
load_parent_close(struct load_parent *parent)
{
    sigprocmask(SIG_SETMASK, &parent->mask_before, NULL);
    close(parent->signals);
    close(parent->awake);
    load_results_unmap(parent->sum, 1);
}

void
load_parent_show(struct load_parent *parent, bool is_shown)
{
    bool is_terminal = isatty(fileno(parent->err)) == 1;

    load_live_delete(parent->live);
    parent->live = NULL;
    /* If there is no terminal, a search prints a line for each step, and no live view. */
    if (is_shown && (is_terminal || parent->plan->find == NULL))
        parent->live = load_live_new(parent->plan, parent->err, is_terminal);
    parent->look_ns = parent->live != NULL ? sxe_time_ns() : LOAD_NEVER;
}

static void
look_at_workers(struct load_parent *parent, uint64_t now_ns)
{
    load_results_clear(parent->sum, 1);
    for (unsigned i = 0; i < parent->load; i++)
        load_result_add(parent->sum, parent->processes[i].result);
    load_live_show(parent->live, parent->sum, now_ns);
    parent->look_ns = now_ns + load_live_period_ns(parent->live);
}

void
load_parent_monitor(struct load_parent *parent)
{
    const struct load_result *workers[LOAD_PROCESSES_MAX];

    for (unsigned i = 0; i < parent->load; i++)
        workers[i] = parent->processes[i].result;
    load_monitor_look(parent->monitor, workers, parent->load, sxe_time_ns());
}

/* Tell the user that a second interrupt ends the wait for replies in flight, which may take as long
 * as --drain. */
static void
say_interrupted(struct load_parent *parent)
{
    bool is_shown = parent->live != NULL;

    if (parent->plan->quiet || parent->number == 0)
        return;
    load_parent_show(parent, false);
    fputs(parent->has_begun ? "sxe-http: interrupted: waits for replies still to come (--drain); "
                              "interrupt again to end at once\n"
                            : "sxe-http: interrupted before the load began\n",
          parent->err);
    load_parent_show(parent, is_shown);
}

static void
take_run_signals(struct load_parent *parent)
{
    struct signalfd_siginfo info;

    while (read(parent->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD) {
            load_workers_reap(parent);
            load_server_reap(parent);
        } else if (++parent->interrupts == 1) {
            say_interrupted(parent);
            load_workers_stop(parent);
        } else if (parent->interrupts == 2) {
            /* A worker that gets a second STOP closes its accounts without waiting for replies. */
            load_workers_tell(parent, (struct load_message){.type = LOAD_MESSAGE_STOP});
            parent->kill_ns = sxe_time_ns() + load_parent_grace_ns;
        } else {
            load_workers_kill(parent);
        }
    }
    /* If the signalfd cannot be read, SIGCHLD is not seen either: reap here, because otherwise the
     * parent would wait for processes that have ended. */
    if (errno != EAGAIN) {
        load_workers_reap(parent);
        load_server_reap(parent);
    }
}

/* Milliseconds until until_ns, rounded up. */
static int
run_wait_ms(uint64_t until_ns)
{
    uint64_t now_ns = sxe_time_ns();

    if (until_ns <= now_ns)
        return 0;
    return (int)((until_ns - now_ns + SXE_NS_PER_MS - 1) / SXE_NS_PER_MS);
}

static uint64_t
earlier_of(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

void
load_parent_turn(struct load_parent *parent, uint64_t until_ns)
{
    struct pollfd fds[1 + LOAD_MONITOR_FDS + LOAD_PROCESSES_MAX] = {{parent->signals, POLLIN, 0}};
    struct pollfd *controls = &fds[1 + LOAD_MONITOR_FDS];
    uint64_t wake_ns =
        earlier_of(earlier_of(parent->look_ns, until_ns), load_monitor_due_ns(parent->monitor));

    /* wake up in at most LOAD_ASK_NS */
    wake_ns = earlier_of(wake_ns, parent->ask_ns);
    wake_ns = earlier_of(wake_ns, parent->kill_ns);
    /* the control of a process that closed it is -1, which poll(2) ignores */
    for (unsigned i = 0; i < parent->number; i++)
        controls[i] = (struct pollfd){parent->processes[i].control, POLLIN, 0};
    load_monitor_poll(parent->monitor, &fds[1]);
    if (poll(fds, 1 + LOAD_MONITOR_FDS + parent->number, run_wait_ms(wake_ns)) > 0) {
        for (unsigned i = 0; i < parent->number; i++) {
            if (controls[i].revents != 0)
                load_workers_hear(parent, i);
        }
        take_run_signals(parent);
        load_monitor_serve(parent->monitor, &fds[1], sxe_time_ns());
    }
    if (sxe_time_ns() >= parent->kill_ns) {
        parent->kill_ns = LOAD_NEVER;
        load_workers_kill(parent);
    }
    if (sxe_time_ns() >= parent->ask_ns)
        load_workers_ask(parent);
    if (sxe_time_ns() >= load_monitor_due_ns(parent->monitor))
        load_parent_monitor(parent);
    if (sxe_time_ns() >= parent->look_ns)
        look_at_workers(parent, sxe_time_ns());
}

void
load_parent_fail(struct load_parent *parent, const char *format, ...)
{
    va_list arguments;

    load_parent_show(parent, false);
    va_start(arguments, format);
    fputs("sxe-http: ", parent->err);
    vfprintf(parent->err, format, arguments);
    fputc('\n', parent->err);
    va_end(arguments);
    parent->has_failed = true;
    load_workers_stop(parent);
}
