/* SPDX-License-Identifier: MIT
 *
 * What: sxe_spawn(command, argument, argument, connect, read, close): a child of 2011, whose
 * standard input and output are a socket with callbacks, and sxe_spawn_kill.
 *
 * lib-sxe opens the sockets that it has, so the child's end is what accepts ours, at an abstract
 * name that the kernel chose and that is gone before the child runs. A child is watched and killed
 * by its pidfd: its number may be another's by then.
 */
#include "sxe-lua-compat-private.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a userdata, which is in the registry under its address until the process ended. */
struct child {
    ev_io ended;
    uint64_t socket; /* sxe_handle() */
    pid_t pid;
    int pidfd;
    struct child *next;
};

static _Thread_local struct child *children;

/* ---- The end of a child ---- */

static void
forget(struct child *child)
{
    struct child **link = &children;

    while (*link != child)
        link = &(*link)->next;
    *link = child->next;
    if (sxe_loop() != NULL)
        ev_io_stop(sxe_loop(), &child->ended);
    close(child->pidfd);
    child->pidfd = -1;
}

/* It may be collected. */
static void
drop_child(lua_State *L, const struct child *child)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
}

static void
on_ended(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct child *child = (struct child *)(void *)watcher;
    lua_State *L = sxe__lua_main(sxe__lua_current());

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    /* libev's default loop may have reaped it already. */
    (void)waitpid(child->pid, NULL, WNOHANG);
    forget(child);
    drop_child(L, child);
}

/* The state is closed and the child goes on. */
static int
collect(lua_State *L)
{
    struct child *child = lua_touserdata(L, 1);

    if (child->pidfd >= 0)
        forget(child);
    return 0;
}

/* ---- Its socket ---- */

/* Listen at an abstract name of the kernel's choice, written with @ for its zero byte: the
 * descriptor, or -errno. */
static int
listen_anywhere(struct sockaddr_un *name)
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

/* The other end of what this process connected: somebody else may have been faster. */
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

/* ---- Its beginning ---- */

/* 0 or -errno. */
static int
run(char *const argv[], int fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, ignored;
    int error;

    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ignored);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -error;
}

static int
watch(struct child *child)
{
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    if (child->pidfd < 0) {
        int result = -errno;

        kill(child->pid, SIGKILL);
        (void)waitpid(child->pid, NULL, 0);
        return result;
    }
    child->next = children;
    children = child;
    ev_io_init(&child->ended, on_ended, child->pidfd, EV_READ);
    ev_io_start(sxe_loop(), &child->ended);
    return 0;
}

static struct child *
make_child(lua_State *L)
{
    struct child *child = lua_newuserdatauv(L, sizeof(*child), 0);

    memset(child, 0, sizeof(*child));
    child->pidfd = -1;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
    return child;
}

/* Connect the socket and run the command at its other end: 0 or -errno. */
static int
spawn(char *const argv[], SXE *s, int listener, struct child *child)
{
    int result = sxe_connect_unix(s);
    int fd = result < 0 ? result : accept_ours(listener);

    if (fd < 0)
        return fd;
    child->socket = sxe_handle(s);
    result = run(argv, fd, &child->pid);
    close(fd);
    return result < 0 ? result : watch(child);
}

static int
l_spawn(lua_State *L)
{
    const char *argv[] = {luaL_checkstring(L, 1), luaL_optstring(L, 2, NULL),
                          luaL_optstring(L, 3, NULL), NULL};
    struct sockaddr_un name;
    struct child *child;
    int listener, result;
    SXE *s;

    /* What may raise comes before there is a socket. */
    for (int i = 4; i <= 6; i++) {
        if (!lua_isnoneornil(L, i))
            luaL_checktype(L, i, LUA_TFUNCTION);
    }
    child = make_child(L);
    name.sun_path[0] = '@';
    name.sun_path[1] = '\0';
    result = sxe__lua_new_unix(L, name.sun_path, 4, &s);
    if (s == NULL) {
        drop_child(L, child);
        return result;
    }
    listener = listen_anywhere(&name);
    result = listener < 0 ? listener : spawn((char *const *)(uintptr_t)argv, s, listener, child);
    if (listener >= 0)
        close(listener);
    if (result == 0)
        return 1;
    sxe__lua_leave(sxe__lua_slot_of(s), s->id);
    sxe_abort(s);
    drop_child(L, child);
    return sxe__lua_fail_errno(L, -result, argv[0]);
}

int
sxe__lua_spawn_kill(lua_State *L)
{
    struct sxe__lua_slot *slot;
    lua_Integer signal_number = luaL_checkinteger(L, 2);
    const struct child *child = children;
    int result;

    sxe__lua_check_socket(L, 1, SXE__LUA_SOCKET, &slot);
    while (child != NULL && (slot == NULL || child->socket != slot->handle))
        child = child->next;
    if (child == NULL)
        return luaL_argerror(L, 1, "a running child of sxe_spawn is expected");
    result = (int)syscall(SYS_pidfd_send_signal, child->pidfd, (int)signal_number, NULL, 0);
    return sxe__lua_result(L, result < 0 ? -errno : 0, "sxe_spawn_kill");
}

void
sxe__lua_open_compat_spawn(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"sxe_spawn", l_spawn}, {"sxe_spawn_kill", sxe__lua_spawn_kill}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
