/* SPDX-License-Identifier: MIT
 *
 * What: a child process, watched in the loop, for sxe.spawn (sxe-lua-spawn.c) and 2011's sxe_spawn
 * (sxe-lua-compat-spawn.c).
 *
 * lib-sxe cannot take over a socket that others opened, so no socketpair(2) is used: lib-sxe's
 * socket connects to a listener, and the child gets the accepted socket. The listener has an
 * abstract name that the kernel chose, and is closed before the child runs. A child is killed by
 * its pidfd, because its process id may belong to another process by then. libev's default loop
 * reaps all children, so there an ev_child reports the child's end; in other loops the pidfd does.
 */
#ifndef SXE_LUA_SPAWN_PRIVATE_H
#define SXE_LUA_SPAWN_PRIVATE_H

#include <sys/un.h>

#include "sxe-lua-private.h"

struct sxe__lua_process {
    ev_child reaped; /* all members are private, unless marked read-only */
    ev_io ended;
    struct ev_loop *loop;
    void (*on_end)(struct sxe__lua_process *); /* read-only: called in the loop, once */
    pid_t pid;                                 /* read-only */
    int pidfd;                                 /* -1: the process has ended, or was not started */
    bool is_unref;
    int status; /* read-only: the status as wait(2) gives it, in on_end and later; -1: not known */
};

enum { SXE__LUA_FD_SAME = -1, SXE__LUA_FD_NULL = -2, SXE__LUA_FD_STDOUT = -3 };

struct sxe__lua_command {
    char *const *argv;
    char *const *environment;
    const char *directory; /* NULL: the directory of this process */
    /* The descriptors that become 0, 1 and 2 of the process, or values from the enum above. */
    int fd[3];
};

/* Whether a process was started. In a struct for a process that was not started, pidfd is -1 and
 * all else is zero. */
static inline bool
sxe__lua_process_is_running(const struct sxe__lua_process *process)
{
    return process->pidfd >= 0;
}

/* Start a process: 0 or -errno. Do not move or free the struct before on_end or forget. */
int sxe__lua_process_start(struct sxe__lua_process *process, const struct sxe__lua_command *command,
                           void (*on_end)(struct sxe__lua_process *));

/* Until sxe__lua_spawn_finish this process does not keep the loop running. */
void sxe__lua_process_unref(struct sxe__lua_process *process);

int sxe__lua_process_kill(const struct sxe__lua_process *process, int signal_number);

/* Forget a process: it goes on, and on_end is not called. */
void sxe__lua_process_forget(struct sxe__lua_process *process);

/* Connect socket s, which was made with the path in *name. *name begins with "@"; after this call
 * *name is the name that the kernel chose. Returns the descriptor of the other end, or -errno. */
int sxe__lua_process_connect(SXE *s, struct sockaddr_un *name);

#endif
