/* SPDX-License-Identifier: MIT
 *
 * What: sxe_spawn(command, argument, argument, connect, read, close): a child of 2011, whose
 * standard input and output are a socket with callbacks, and sxe_spawn_kill.
 */
#include "sxe-lua-compat-private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sxe-lua-spawn-private.h"

/* A child process. The struct is in a userdata, which the registry keeps under the struct's address
 * until the process has ended. */
struct child {
    struct sxe__lua_process process;
    uint64_t socket; /* sxe_handle() of the child's socket */
    struct child *next;
};

static const char class_name[] = "child of sxe_spawn";

static _Thread_local struct child *children; /* all children whose processes run */

/* ---- The end of a child ---- */

static void
remove_spawned_child(const struct child *child)
{
    struct child **link = &children;

    while (*link != child)
        link = &(*link)->next;
    *link = child->next;
}

/* Remove a child from the registry, so that Lua may collect it. */
static void
drop_child(lua_State *L, const struct child *child)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
}

static void
on_compat_child_end(struct sxe__lua_process *process)
{
    const struct child *child = (struct child *)(void *)process;

    remove_spawned_child(child);
    drop_child(sxe__lua_main(sxe__lua_current()), child);
}

/* A finalizer: the state is closed, but the child's process goes on. */
static int
collect_children(lua_State *L)
{
    struct child *child = lua_touserdata(L, 1);

    if (!sxe__lua_process_is_running(&child->process))
        return 0;
    remove_spawned_child(child);
    sxe__lua_process_forget(&child->process);
    return 0;
}

/* ---- The beginning of a child ---- */

static struct child *
make_child(lua_State *L)
{
    struct child *child = lua_newuserdatauv(L, sizeof(*child), 0);

    memset(child, 0, sizeof(*child));
    child->process.pidfd = -1;
    luaL_setmetatable(L, class_name);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
    return child;
}

/* Connect the socket and run the command at its other end: 0 or -errno. */
static int
spawn_compat_child(char *const argv[], SXE *s, struct sockaddr_un *name, struct child *child)
{
    struct sxe__lua_command command = {.argv = argv, .environment = environ};
    int fd = sxe__lua_process_connect(s, name);
    int result;

    if (fd < 0)
        return fd;
    command.fd[0] = fd;
    command.fd[1] = fd;
    command.fd[2] = SXE__LUA_FD_SAME;
    child->socket = sxe_handle(s);
    result = sxe__lua_process_start(&child->process, &command, on_compat_child_end);
    close(fd);
    if (result < 0)
        return result;
    child->next = children;
    children = child;
    return 0;
}

/* Make the socket of a child, with the three callbacks from argument 4 on; later arguments are
 * ignored. Pushes the socket's handle; after a failure, pushes nil and the reason, and *made is
 * NULL. */
static int
new_child_socket(lua_State *L, const char *path, SXE **made)
{
    struct sxe__lua_callbacks callbacks;

    sxe__lua_callbacks_take(L, 4, &callbacks);
    *made = sxe_new_unix(NULL, path, sxe__lua_on_connected, sxe__lua_on_read, sxe__lua_on_close);
    return sxe__lua_callbacks_push_made(L, *made, &callbacks);
}

static int
l_compat_spawn(lua_State *L)
{
    const char *argv[] = {sxe__lua_check_text(L, 1), luaL_opt(L, sxe__lua_check_text, 2, NULL),
                          luaL_opt(L, sxe__lua_check_text, 3, NULL), NULL};
    struct sockaddr_un name = {.sun_path = "@"};
    struct child *child;
    int result;
    SXE *s;

    /* Check arguments before there is a socket: the check may raise an error. */
    for (int i = 4; i <= 6; i++) {
        if (!lua_isnoneornil(L, i))
            luaL_checktype(L, i, LUA_TFUNCTION);
    }
    child = make_child(L);
    result = new_child_socket(L, name.sun_path, &s);
    if (s == NULL) {
        drop_child(L, child);
        return result;
    }
    result = spawn_compat_child((char *const *)(uintptr_t)argv, s, &name, child);
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

    sxe__lua_check_socket(L, 1, SXE__LUA_SOCKET, &slot);
    while (child != NULL && (slot == NULL || child->socket != slot->handle))
        child = child->next;
    if (child == NULL)
        return luaL_argerror(L, 1, "a running child of sxe_spawn is expected");
    return sxe__lua_result(L, sxe__lua_process_kill(&child->process, (int)signal_number),
                           "sxe_spawn_kill");
}

void
sxe__lua_open_compat_spawn(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"sxe_spawn", l_compat_spawn}, {"sxe_spawn_kill", sxe__lua_spawn_kill}, {NULL, NULL}};

    sxe__lua_new_class(L, class_name);
    lua_pushcfunction(L, collect_children);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_setfuncs(L, functions, 0);
}
