/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.spawn": a child process without a shell, whose streams are connections.
 *
 *     spawn: connects the sockets, waits for that, runs the command ----> child
 *     on_child_end: wakes waiting tasks                             <---- ends
 *
 * Standard input and output are one socket, standard error another. The registry holds a child
 * while it runs, so that its end is noticed; its exit status stays available as long as the script
 * has the object. A child is killed when a task that waits for it is cancelled, when its <close>
 * variable goes out of scope, and when the state is deleted.
 */
#include "sxe-lua-spawn-private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-libc-internal.h"
#include "sxe-lua-socket-private.h"

#define CLASS "sxe.spawn child"

/* how many sockets are registered for a script that does not call sxe_register */
enum { SOCKETS_DEFAULT = 64 };

enum { IN_OUT, ERRORS, SOCKETS };

struct child {
    struct sxe__lua_process process;
    struct sxe__lua_line waiting; /* tasks that wait for the child's end */
    uint64_t socket[SOCKETS];     /* sxe_handle() of each socket; 0: there is no such socket */
    int fd[SOCKETS];              /* the child's end of each socket pair, until the child starts;
                                   * -1: none */
    unsigned calls;               /* how many reads and writes of tasks are under way */
    bool is_piped[3];
};

/* ---- The sockets of a child ---- */

/* A socket of the child; NULL: the socket is closed, or does not exist. */
static SXE *
find_child_socket(const struct child *child, int which)
{
    return sxe_loop() == NULL || child->socket[which] == 0 ? NULL
                                                           : sxe_from_handle(child->socket[which]);
}

static void
on_child_connected(SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    if (slot != NULL)
        sxe__lua_wake_first(&slot->writers);
}

/* Close pipes that have ended at once, not when Lua collects them. A later read finds the end of
 * the file, as on an open pipe. */
static void
close_ended(const struct child *child)
{
    for (int i = child->calls == 0 ? IN_OUT : ERRORS; i < SOCKETS; i++) {
        SXE *s = find_child_socket(child, i);

        if (s != NULL && (sxe__lua_slot_of(s)->flags & SXE__LUA_END_SEEN) && SXE_BUF_USED(s) == 0 &&
            !(child->is_piped[0] && sxe__lua_process_is_running(&child->process)))
            sxe_close(s);
    }
}

/* The end of a pipe may come after the end of the process. */
static void
on_child_read(SXE *s, int length)
{
    const struct child *child = s->user_data;

    sxe__lua_conn_on_read(s, length);
    if (length <= 0 && !sxe__lua_process_is_running(&child->process))
        close_ended(child);
}

/* Make a socket of the child. Returns 0 or -errno. */
static int
open_child_socket(struct child *child, int which)
{
    struct sockaddr_un name = {.sun_path = "@"};
    SXE *s = sxe_new_unix(NULL, name.sun_path, on_child_connected, on_child_read,
                          sxe__lua_conn_on_close);

    if (s == NULL)
        return -errno;
    sxe__lua_adopt_unref(s);
    s->user_data = child;
    sxe_set_half_close(s, true);
    child->socket[which] = sxe_handle(s);
    child->fd[which] = sxe__lua_process_connect(s, &name);
    return child->fd[which] < 0 ? child->fd[which] : 0;
}

static void
close_ends(struct child *child)
{
    for (int i = 0; i < SOCKETS; i++) {
        if (child->fd[i] >= 0)
            close(child->fd[i]);
        child->fd[i] = -1;
    }
}

static void
close_all_sockets(struct child *child)
{
    close_ends(child);
    for (int i = 0; i < SOCKETS; i++) {
        SXE *s = find_child_socket(child, i);

        if (s != NULL)
            sxe_abort(s);
    }
}

/* ---- The end of a child ---- */

static void
on_child_end(struct sxe__lua_process *process)
{
    struct child *child = (struct child *)(void *)process;
    lua_State *L = sxe__lua_main(sxe__lua_current());

    close_ended(child);
    sxe__lua_wake_all(&child->waiting);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
}

static struct child *
check_child(lua_State *L)
{
    return luaL_checkudata(L, 1, CLASS);
}

/* The script no longer uses the child; from now on only the child's end must be noticed. */
static int
l_child_leave(lua_State *L)
{
    struct child *child = check_child(L);

    sxe__lua_process_kill(&child->process, SIGKILL);
    close_all_sockets(child);
    return 0;
}

static int
collect_child(lua_State *L)
{
    struct child *child = lua_touserdata(L, 1);
    pid_t pid = child->process.pid;

    close_all_sockets(child);
    if (!sxe__lua_process_is_running(&child->process))
        return 0;
    sxe__lua_process_kill(&child->process, SIGKILL);
    sxe__lua_process_forget(&child->process);
    (void)waitpid(pid, NULL, 0);
    return 0;
}

/* ---- The beginning of a child ---- */

/* Places in the stack of spawn; STRINGS keeps what the command points to. */
enum { OPTIONS = 1, CHILD, STRINGS, ARGV, ENVIRONMENT, DIRECTORY };

/* The kinds of standard descriptors that a child gets. */
enum how { PIPE, NOTHING, SAME, AS_STDOUT };

/* The value on top as a text without zero bytes, which the stack keeps. */
static char *
keep_argument_text(lua_State *L, const char *what)
{
    size_t length;
    const char *text = lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER
                           ? lua_tolstring(L, -1, &length)
                           : NULL;

    if (text == NULL || strlen(text) != length)
        luaL_error(L, "%s: text expected, got %s", what,
                   text == NULL ? luaL_typename(L, -1) : "zero bytes");
    lua_rawseti(L, STRINGS, (lua_Integer)lua_rawlen(L, STRINGS) + 1);
    return (char *)(uintptr_t)text;
}

static void
push_argv(lua_State *L)
{
    size_t number = lua_rawlen(L, OPTIONS);
    char **argv = lua_newuserdatauv(L, (number + 1) * sizeof(*argv), 0);

    luaL_argcheck(L, number > 0, OPTIONS, "a command is expected");
    for (size_t i = 0; i < number; i++) {
        lua_rawgeti(L, OPTIONS, (lua_Integer)i + 1);
        argv[i] = keep_argument_text(L, "argument");
    }
    argv[number] = NULL;
}

/* Push the environment, or nil if none is given. */
static void
push_child_environment(lua_State *L)
{
    size_t number = 0;
    char **environment;

    if (lua_getfield(L, OPTIONS, "env") == LUA_TNIL)
        return;
    luaL_argcheck(L, lua_istable(L, -1), OPTIONS, "env: a table of names and values expected");
    for (lua_pushnil(L); lua_next(L, ENVIRONMENT) != 0; lua_pop(L, 1))
        number++;
    environment = lua_newuserdatauv(L, (number + 1) * sizeof(*environment), 0);
    for (lua_pushnil(L); lua_next(L, ENVIRONMENT) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isstring(L, -1))
            luaL_error(L, "env: names and text expected");
        if (strchr(lua_tostring(L, -2), '=') != NULL || lua_rawlen(L, -2) == 0)
            luaL_error(L, "env: '%s' is no name", lua_tostring(L, -2));
        lua_pushvalue(L, -2);
        lua_pushliteral(L, "=");
        lua_pushvalue(L, -3);
        lua_concat(L, 3);
        *environment++ = keep_argument_text(L, "env");
    }
    *environment = NULL;
    lua_replace(L, ENVIRONMENT);
}

static void
push_directory(lua_State *L)
{
    if (lua_getfield(L, OPTIONS, "cwd") == LUA_TNIL)
        return;
    (void)sxe__lua_option_text(L, "spawn", "cwd");
    lua_pushvalue(L, -1);
    keep_argument_text(L, "cwd");
}

static enum how
how_to_give(lua_State *L, const char *name, enum how default_)
{
    static const char *const hows[] = {"pipe", "null", "inherit", "stdout", NULL};
    int how = (int)default_;

    if (lua_getfield(L, OPTIONS, name) != LUA_TNIL) {
        const char *text = sxe__lua_text(L, -1);

        for (how = 0; hows[how] != NULL && (text == NULL || strcmp(text, hows[how]) != 0); how++)
            continue;
        if (hows[how] == NULL || (how == AS_STDOUT && strcmp(name, "stderr") != 0))
            luaL_error(L, "%s: \"pipe\", \"null\"%s or \"inherit\" expected", name,
                       strcmp(name, "stderr") == 0 ? ", \"stdout\"" : "");
    }
    lua_pop(L, 1);
    return (enum how)how;
}

static int
descriptor_of(const struct child *child, enum how how, int which)
{
    switch (how) {
    case PIPE:
        return child->fd[which];
    case NOTHING:
        return SXE__LUA_FD_NULL;
    case SAME:
        return SXE__LUA_FD_SAME;
    case AS_STDOUT:
        break;
    }
    return SXE__LUA_FD_STDOUT;
}

static const enum how defaults[] = {NOTHING, PIPE, SAME};
static const char *const names[] = {"stdin", "stdout", "stderr"};

static int
fail_spawn(lua_State *L, struct child *child, int error, const char *what)
{
    close_all_sockets(child);
    return sxe__lua_fail_errno(L, error, what);
}

/* Check a directory: 0 or -errno. The error of posix_spawn(3) does not say whether the directory or
 * the program is wrong. */
static int
try_directory(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 || faccessat(fd, ".", F_OK, AT_EACCESS) < 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    return result;
}

static int
start_child(lua_State *L, struct child *child)
{
    struct sxe__lua_command command = {.argv = lua_touserdata(L, ARGV),
                                       .environment = lua_touserdata(L, ENVIRONMENT),
                                       .directory = lua_tostring(L, DIRECTORY)};
    int result = 0;

    if (command.environment == NULL)
        command.environment = environ;
    for (int i = 0; i < 3; i++)
        command.fd[i] = descriptor_of(child, how_to_give(L, names[i], defaults[i]), i / 2);
    if (command.directory != NULL)
        result = try_directory(command.directory);
    if (result < 0)
        return fail_spawn(L, child, -result, command.directory);
    lua_pushvalue(L, CHILD);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
    result = sxe__lua_process_start(&child->process, &command, on_child_end);
    if (result < 0) {
        lua_pushnil(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, child);
        return fail_spawn(L, child, -result, command.argv[0]);
    }
    sxe__lua_process_unref(&child->process);
    close_ends(child);
    lua_settop(L, CHILD);
    return 1;
}

/* Wait for the child's sockets to connect, then start the child. */
static int
go_on_connecting_child(lua_State *L, int status, lua_KContext context)
{
    struct child *child = lua_touserdata(L, CHILD);

    if (status == LUA_YIELD && sxe__lua_woken(L) != SXE__LUA_EVENT) {
        close_all_sockets(child);
        return sxe__lua_fail_woken(L);
    }
    for (int i = 0; i < SOCKETS; i++) {
        SXE *s = find_child_socket(child, i);

        if (s != NULL && sxe_get_state(s) == SXE_STATE_CONNECTING)
            return sxe__lua_park_in(L, &sxe__lua_slot_of(s)->writers, 0, go_on_connecting_child,
                                    context);
    }
    return start_child(L, child);
}

static struct child *
push_child(lua_State *L)
{
    struct child *child = lua_newuserdatauv(L, sizeof(*child), 0);

    memset(child, 0, sizeof(*child));
    child->process.pidfd = -1;
    child->waiting.keeps_loop = true;
    child->fd[IN_OUT] = -1;
    child->fd[ERRORS] = -1;
    for (int i = 0; i < 3; i++)
        child->is_piped[i] = how_to_give(L, names[i], defaults[i]) == PIPE;
    luaL_setmetatable(L, CLASS);
    return child;
}

static int
push_spawned_child(lua_State *L)
{
    struct child *child;
    int result = 0;

    sxe__lua_sockets_open(L);
    child = push_child(L);
    lua_newtable(L);
    push_argv(L);
    push_child_environment(L);
    push_directory(L);
    if (child->is_piped[0] || child->is_piped[1])
        result = open_child_socket(child, IN_OUT);
    if (result == 0 && child->is_piped[2])
        result = open_child_socket(child, ERRORS);
    return result < 0 ? fail_spawn(L, child, -result, "spawn")
                      : go_on_connecting_child(L, LUA_OK, 0);
}

static int
spawn_after_turn(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return sxe__lua_woken(L) == SXE__LUA_CANCELLED ? sxe__lua_fail_woken(L) : push_spawned_child(L);
}

static int
l_child_spawn(lua_State *L)
{
    static const char *const options[] = {"stdin", "stdout", "stderr", "env", "cwd", NULL};

    sxe__lua_option_names_of_list(L, OPTIONS, options, "spawn");
    lua_settop(L, OPTIONS);
    /* The top level of a script may run before sxe_init; then the call continues in the first turn
     * of the loop. */
    if (sxe_loop() == NULL)
        return sxe__lua_park(L, 1, NULL, NULL, spawn_after_turn, 0);
    return push_spawned_child(L);
}

/* ---- Methods ---- */

static int
return_forwarded(lua_State *L, int status, lua_KContext context)
{
    struct child *child = check_child(L);

    SXE_UNUSED_PARAMETER(context);
    if (status == LUA_YIELD && sxe__lua_woken(L) == SXE__LUA_CANCELLED)
        sxe__lua_process_kill(&child->process, SIGKILL);
    child->calls--;
    close_ended(child);
    return status == LUA_OK || status == LUA_YIELD ? lua_gettop(L) - 1 : lua_error(L);
}

/* Call a method of a child's connection with the same arguments. */
static int
forward_method(lua_State *L, int piped, const char *method)
{
    struct child *child = check_child(L);
    SXE *s = find_child_socket(child, IN_OUT);

    if (!child->is_piped[piped])
        return luaL_error(L, "%s of this child is no pipe", names[piped]);
    if (s == NULL)
        return sxe__lua_fail(L, "closed");
    sxe__lua_push_socket(L, SXE__LUA_CONN, s);
    lua_insert(L, 2);
    lua_getfield(L, 2, method);
    lua_insert(L, 2);
    child->calls++;
    return return_forwarded(
        L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, return_forwarded), 0);
}

static int
l_child_read(lua_State *L)
{
    return forward_method(L, STDOUT_FILENO, "read");
}

static int
next_child_line(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushliteral(L, "l");
    return l_child_read(L);
}

static int
l_child_lines(lua_State *L)
{
    check_child(L);
    lua_pushcfunction(L, next_child_line);
    lua_pushvalue(L, 1);
    return 2;
}

static int
l_child_write(lua_State *L)
{
    return forward_method(L, STDIN_FILENO, "write");
}

static int
l_child_close(lua_State *L)
{
    return forward_method(L, STDIN_FILENO, "shutdown");
}

/* Push the status as os.execute returns it. */
static int
push_exit_status(lua_State *L, const struct child *child)
{
    errno = child->process.status == -1 ? ECHILD : 0;
    return luaL_execresult(L, child->process.status);
}

static int
return_waited_status(lua_State *L, int status, lua_KContext context)
{
    const struct child *child = check_child(L);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) == SXE__LUA_EVENT)
        return push_exit_status(L, child);
    if (sxe__lua_woken(L) == SXE__LUA_CANCELLED)
        sxe__lua_process_kill(&child->process, SIGKILL);
    return sxe__lua_fail_woken(L);
}

static int
l_child_wait(lua_State *L)
{
    struct child *child = check_child(L);
    uint64_t deadline_ns = sxe__lua_deadline(L, 2);

    if (!sxe__lua_process_is_running(&child->process))
        return push_exit_status(L, child);
    return sxe__lua_park_in(L, &child->waiting, deadline_ns, return_waited_status, 0);
}

static int
check_signal(lua_State *L)
{
    const char *name;

    if (lua_isinteger(L, 2))
        return (int)lua_tointeger(L, 2);
    name = luaL_opt(L, sxe__lua_check_text, 2, "TERM");
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *abbreviation = sigabbrev_np(i);

        if (abbreviation != NULL && strcmp(abbreviation, name) == 0)
            return i;
    }
    return luaL_argerror(L, 2, "a signal's number or name, \"TERM\", is expected");
}

static int
l_kill(lua_State *L)
{
    const struct child *child = check_child(L);

    return sxe__lua_result(L, sxe__lua_process_kill(&child->process, check_signal(L)), "kill");
}

/* Upvalue: the methods. */
static int
index_child(lua_State *L)
{
    const struct child *child = check_child(L);
    const char *name = sxe__lua_check_text(L, 2);
    SXE *s = find_child_socket(child, ERRORS);

    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL)
        return 1;
    if (strcmp(name, "pid") == 0)
        lua_pushinteger(L, child->process.pid);
    else if (strcmp(name, "running") == 0)
        lua_pushboolean(L, sxe__lua_process_is_running(&child->process));
    else if (strcmp(name, "stderr") != 0)
        return luaL_error(L, CLASS " has no field '%s'", name);
    else if (s != NULL)
        sxe__lua_push_socket(L, SXE__LUA_CONN, s);
    return 1;
}

int
sxe__lua_open_spawn(lua_State *L)
{
    static const luaL_Reg methods[] = {{"read", l_child_read},
                                       {"lines", l_child_lines},
                                       {"write", l_child_write},
                                       {"close", l_child_close},
                                       {"wait", l_child_wait},
                                       {"kill", l_kill},
                                       {NULL, NULL}};
    static const luaL_Reg metamethods[] = {
        {"__gc", collect_child}, {"__close", l_child_leave}, {NULL, NULL}};

    sxe__lua_open_conn(L);
    sxe__lua_new_class(L, CLASS);
    luaL_setfuncs(L, metamethods, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, index_child, 1);
    lua_setfield(L, -2, "__index");
    if (sxe_loop() == NULL)
        sxe_register(SOCKETS_DEFAULT, 0);
    lua_pushcfunction(L, l_child_spawn);
    return 1;
}
