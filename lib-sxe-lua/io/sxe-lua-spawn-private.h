/* SPDX-License-Identifier: MIT
 *
 * What: a child process, watched in the loop, for sxe.spawn (sxe-lua-spawn.c) and 2011's sxe_spawn
 * (sxe-lua-compat-spawn.c).
 *
 * lib-sxe opens the sockets that it has, so the child's end is what accepts ours, at an abstract
 * name that the kernel chose and that is gone before the child runs. A child is killed by its
 * pidfd: its number may be another's by then. libev's default loop reaps all children, so there it
 * is asked for the child's end; in other loops the pidfd tells it.
 */
#ifndef SXE_LUA_SPAWN_PRIVATE_H
#define SXE_LUA_SPAWN_PRIVATE_H

#include <sys/un.h>

#include "sxe-lua-private.h"

struct sxe__lua_process {
    ev_child reaped; /* private, all but what is marked */
    ev_io ended;
    struct ev_loop *loop;
    void (*on_end)(struct sxe__lua_process *); /* ro: in the loop, once */
    pid_t pid;                                 /* ro */
    int pidfd;                                 /* -1: it ended, or did not begin */
    bool is_unref;
    int status; /* ro: of wait(2), in on_end and later; -1: it is not known */
};

enum { SXE__LUA_FD_SAME = -1, SXE__LUA_FD_NULL = -2, SXE__LUA_FD_STDOUT = -3 };

struct sxe__lua_command {
    char *const *argv;
    char *const *environment;
    const char *directory; /* NULL: ours */
    int fd[3];             /* what becomes 0, 1 and 2: a descriptor, or one of the above */
};

/* All zero but pidfd -1 is one that did not begin. */
static inline bool
sxe__lua_process_is_running(const struct sxe__lua_process *process)
{
    return process->pidfd >= 0;
}

/* 0 or -errno. From then on until on_end it is not to be moved or freed, but after forget. */
int sxe__lua_process_start(struct sxe__lua_process *process, const struct sxe__lua_command *command,
                           void (*on_end)(struct sxe__lua_process *));

/* It does not keep the loop running, before sxe__lua_spawn_finish. */
void sxe__lua_process_unref(struct sxe__lua_process *process);

int sxe__lua_process_kill(const struct sxe__lua_process *process, int signal_number);

/* It goes on, and on_end is not called. */
void sxe__lua_process_forget(struct sxe__lua_process *process);

/* Connect a socket that was made with this name, "@" so far: the other end, or -errno. */
int sxe__lua_process_connect(SXE *s, struct sockaddr_un *name);

#endif
