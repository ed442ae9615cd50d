/* SPDX-License-Identifier: MIT
 *
 * Processes that scripts start: fork, pipes, reaping, kill.
 */
#include "sxe-lua-spawn-private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Keeping the loop running ----
 * A process that no task waits for keeps the loop running only when nothing else is left to do:
 * before that, the process may be waiting for the script, at the other end of a pipe. */

static _Thread_local struct {
    unsigned number; /* number of processes that run and are unref */
    bool keep_loop;
} unref;

void
sxe__lua_process_unref(struct sxe__lua_process *process)
{
    process->is_unref = true;
    unref.number++;
    ev_unref(process->loop);
}

static void
ref_process(struct sxe__lua_process *process)
{
    if (!process->is_unref)
        return;
    process->is_unref = false;
    ev_ref(process->loop);
    if (--unref.number > 0 || !unref.keep_loop)
        return;
    unref.keep_loop = false;
    ev_unref(process->loop);
}

void
sxe__lua_spawn_finish(void)
{
    if (unref.number == 0 || unref.keep_loop)
        return;
    unref.keep_loop = true;
    ev_ref(sxe_loop());
}

/* ---- The end ---- */

void
sxe__lua_process_forget(struct sxe__lua_process *process)
{
    ref_process(process);
    ev_child_stop(process->loop, &process->reaped);
    ev_io_stop(process->loop, &process->ended);
    close(process->pidfd);
    process->pidfd = -1;
}

static void
end_spawned_process(struct sxe__lua_process *process, int status)
{
    sxe__lua_process_forget(process);
    process->status = status;
    process->on_end(process);
}

static void
on_reaped(struct ev_loop *loop, ev_child *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    end_spawned_process(watcher->data, watcher->rstatus);
}

/* The default loop, in another thread, may have reaped the process first. */
static void
on_ended(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct sxe__lua_process *process = watcher->data;
    int status = -1;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    (void)waitpid(process->pid, &status, WNOHANG);
    end_spawned_process(process, status);
}

int
sxe__lua_process_kill(const struct sxe__lua_process *process, int signal_number)
{
    if (!sxe__lua_process_is_running(process))
        return -ESRCH;
    return syscall(SYS_pidfd_send_signal, process->pidfd, signal_number, NULL, 0) < 0 ? -errno : 0;
}

/* ---- The beginning ---- */

static int
add_descriptor(posix_spawn_file_actions_t *actions, int from, int to)
{
    if (from == SXE__LUA_FD_SAME)
        return 0;
    if (from == SXE__LUA_FD_NULL)
        return posix_spawn_file_actions_addopen(actions, to, "/dev/null", O_RDWR, 0);
    return posix_spawn_file_actions_adddup2(actions,
                                            from == SXE__LUA_FD_STDOUT ? STDOUT_FILENO : from, to);
}

static int
run_command(const struct sxe__lua_command *command, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ignored;
    int error = 0;

    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    sigaddset(&ignored, SIGXFSZ);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (command->directory != NULL)
        error = posix_spawn_file_actions_addchdir_np(&actions, command->directory);
    for (int fd = 0; fd < 3 && error == 0; fd++)
        error = add_descriptor(&actions, command->fd[fd], fd);
    if (error == 0)
        error = posix_spawnp(pid, command->argv[0], &actions, &attributes, command->argv,
                             command->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

int
sxe__lua_process_start(struct sxe__lua_process *process, const struct sxe__lua_command *command,
                       void (*on_end)(struct sxe__lua_process *))
{
    int result = run_command(command, &process->pid);

    if (result < 0)
        return result;
    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    if (process->pidfd < 0) {
        result = -errno;
        kill(process->pid, SIGKILL);
        (void)waitpid(process->pid, NULL, 0);
        return result;
    }
    process->loop = sxe_loop();
    process->on_end = on_end;
    ev_child_init(&process->reaped, on_reaped, process->pid, 0);
    ev_io_init(&process->ended, on_ended, process->pidfd, EV_READ);
    process->reaped.data = process;
    process->ended.data = process;
    if (ev_is_default_loop(process->loop))
        ev_child_start(process->loop, &process->reaped);
    else
        ev_io_start(process->loop, &process->ended);
    return 0;
}

/* ---- The socket of a process ---- */

/* Listen at an abstract name that the kernel chooses, and write that name with @ for its zero byte.
 * Returns the descriptor, or -errno. */
static int
listen_at_any_name(struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof(*name);
    int result = 0;

    if (fd < 0)
        return -errno;
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    if (bind(fd, (struct sockaddr *)name, offsetof(struct sockaddr_un, sun_path)) < 0 ||
        listen(fd, 1) < 0 || getsockname(fd, (struct sockaddr *)name, &length) < 0)
        result = -errno;
    if (result < 0) {
        close(fd);
        return result;
    }
    name->sun_path[0] = '@';
    return fd;
}

/* Accept the connection that this process made; refuse a connection that another process made
 * first. */
static int
accept_ours(int listener)
{
    struct ucred who = {0};
    socklen_t length = sizeof(who);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return -errno;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.pid == getpid())
        return fd;
    close(fd);
    return -ECONNREFUSED;
}

int
sxe__lua_process_connect(SXE *s, struct sockaddr_un *name)
{
    int listener = listen_at_any_name(name);
    int result;

    if (listener < 0)
        return listener;
    result = sxe_connect_unix(s);
    if (result == 0)
        result = accept_ours(listener);
    close(listener);
    return result;
}
