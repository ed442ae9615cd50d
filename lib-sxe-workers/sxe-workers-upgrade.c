/* SPDX-License-Identifier: MIT
 *
 * Running a new program with the sockets of this one.
 */
#include "sxe-workers-upgrade-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-log.h"
#include "sxe-process-internal.h"
#include "sxe-workers-handover-internal.h"

#define FIRST_FD 3 /* systemd's SD_LISTEN_FDS_START */

static struct {
    pid_t pid; /* the process of the new program */
    int link;  /* the link to the new program; -1: none is starting */
    /* the link to the program that runs until this one is ready; -1: there is none */
    int old;
    uint64_t due_ns;   /* when the new program is killed if it is not ready */
    bool is_cancelled; /* whether this program is ending, so that the new program has to end, too */
} upgrade = {.link = -1, .old = -1};

/* ---- In the new program ---- */

void
sxe__upgrade_take_link(int fd)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    upgrade.old = fd;
}

void
sxe__upgrade_say_ready(void)
{
    if (upgrade.old < 0)
        return;
    (void)sxe__handover_say(upgrade.old, SXE__HANDOVER_READY);
    close(upgrade.old);
    upgrade.old = -1;
}

/* ---- In the old program ---- */

static void
set_number_variable(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

static void
set_variables(int number, const char *names)
{
    set_number_variable("LISTEN_FDS", number);
    set_number_variable("LISTEN_PID", getpid());
    setenv("LISTEN_FDNAMES", names, 1);
    if (getenv("WATCHDOG_PID") != NULL)
        set_number_variable("WATCHDOG_PID", getpid());
}

/* Called in the forked child: run the new program. */
static _Noreturn void
be_new_program(char **argv, int link, const sigset_t *mask)
{
    static char names[SXE__HANDOVER_NAMES];
    int number = sxe__handover_export(FIRST_FD, link, SXE__UPGRADE_NAME, names);

    errno = -number;
    if (number >= 0) {
        set_variables(number, names);
        sigprocmask(SIG_SETMASK, mask, NULL);
        execvp(argv[0], argv);
    }
    SXE_ERROR("cannot run %s: %s", argv[0], strerror(errno));
    exit(EXIT_FAILURE);
}

static int
fork_new_program(char **argv, const sigset_t *mask)
{
    int ends[2];
    int error;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    fflush(NULL);
    upgrade.pid = fork();
    error = errno;
    if (upgrade.pid == 0)
        be_new_program(argv, ends[1], mask);
    close(ends[1]);
    upgrade.link = ends[0];
    if (upgrade.pid > 0)
        return 0;
    sxe__upgrade_forget();
    return -error;
}

void
sxe__upgrade_start(char **argv, const sigset_t *mask)
{
    int result;

    if (upgrade.link >= 0) {
        SXE_WARN(
            "a new program, process %d, is starting already: send SIGUSR2 again when it serves",
            upgrade.pid);
        return;
    }
    upgrade.is_cancelled = false;
    result = fork_new_program(argv, mask);
    if (result < 0) {
        SXE_ERROR("cannot start the new program: %s; this one goes on serving", strerror(-result));
        return;
    }
    upgrade.due_ns = sxe_time_ns() + SXE__UPGRADE_NS;
    SXE_INFO("process %d starts, to serve in place of this one", upgrade.pid);
}

int
sxe__upgrade_fd(void)
{
    return upgrade.link;
}

pid_t
sxe__upgrade_pid(void)
{
    return upgrade.link < 0 ? 0 : upgrade.pid;
}

uint64_t
sxe__upgrade_due_ns(void)
{
    return upgrade.link < 0 ? UINT64_MAX : upgrade.due_ns;
}

/* The new program has closed its link. Kill it, because it may go on nevertheless, and reap it. */
static void
bury_new_program(void)
{
    char how[SXE__WAIT_STATUS_MAX];
    int status = 0;

    kill(upgrade.pid, SIGKILL);
    waitpid(upgrade.pid, &status, 0);
    sxe__upgrade_forget();
    if (!upgrade.is_cancelled)
        SXE_ERROR("the new program, process %d, %s before it was ready; its messages say why. This "
                  "one goes on serving; send SIGUSR2 again later",
                  upgrade.pid, sxe__wait_status_text(status, how));
}

pid_t
sxe__upgrade_hear(void)
{
    struct sxe__handover_message message;
    int fd;
    int result = sxe__handover_receive(upgrade.link, &message, &fd);

    if (fd >= 0)
        close(fd);
    if (result < 0)
        bury_new_program();
    if (result <= 0 || upgrade.is_cancelled)
        return 0;
    SXE_INFO("process %d serves in place of this one, which finishes its requests", upgrade.pid);
    sxe__upgrade_forget();
    return upgrade.pid;
}

void
sxe__upgrade_kill_late(uint64_t now_ns)
{
    if (sxe__upgrade_due_ns() > now_ns)
        return;
    SXE_WARN("the new program, process %d, is not ready in time: it is killed", upgrade.pid);
    upgrade.due_ns = UINT64_MAX;
    kill(upgrade.pid, SIGKILL);
}

void
sxe__upgrade_cancel(uint64_t within_ns)
{
    if (upgrade.link < 0)
        return;
    upgrade.due_ns = sxe_time_ns() + within_ns;
    upgrade.is_cancelled = true;
    kill(upgrade.pid, SIGTERM);
}

void
sxe__upgrade_forget(void)
{
    if (upgrade.link >= 0)
        close(upgrade.link);
    if (upgrade.old >= 0)
        close(upgrade.old);
    upgrade.link = -1;
    upgrade.old = -1;
}
