/* SPDX-License-Identifier: MIT
 *
 * Processes of wire tests: start them, read their output, send signals, wait for their end.
 */
#include "wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROC_CLASS    "wire.proc"
#define ARGUMENTS_MAX 64

struct proc {
    struct wire_stream out;
    int errors; /* a memory file, so that a process that complains a lot never blocks */
    int pidfd;
    pid_t pid;
    int status;
    bool ended;
};

static struct proc *
check_proc(lua_State *L)
{
    return luaL_checkudata(L, 1, PROC_CLASS);
}

static void
set_environment(lua_State *L)
{
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        setenv(lua_tostring(L, -2), lua_tostring(L, -1), 1);
        lua_pop(L, 1);
    }
}

#define FIRST_PASSED 3   /* the first descriptor of sd_listen_fds(3) */
#define PASSED_MAX   200 /* sockets */

/* Pass the sockets of the table on top of the stack to the child, at descriptors from FIRST_PASSED
 * on. */
static void
pass_listeners(lua_State *L)
{
    int number = (int)luaL_len(L, -1);
    int fds[PASSED_MAX];
    char text[16];

    for (int i = 0; i < number && i < PASSED_MAX; i++) {
        lua_rawgeti(L, -1, i + 1);
        fds[i] = fcntl(wire_descriptor(L, -1), F_DUPFD_CLOEXEC, FIRST_PASSED + PASSED_MAX);
        lua_pop(L, 1);
    }
    for (int i = 0; i < number && i < PASSED_MAX; i++) {
        dup2(fds[i], FIRST_PASSED + i);
    }
    snprintf(text, sizeof(text), "%d", number);
    setenv("LISTEN_FDS", text, 1);
    snprintf(text, sizeof(text), "%d", getpid());
    setenv("LISTEN_PID", text, 1);
}

static _Noreturn void
run_child(lua_State *L, char *const *argv, int out, int errors)
{
    sigset_t none;
    cpu_set_t cpus;

    /* The child must not inherit signals that the driver ignores or blocks: servers set their
     * own. */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    if (lua_getfield(L, 1, "env") == LUA_TTABLE) {
        set_environment(L);
    }
    if (lua_getfield(L, 1, "cpu") == LUA_TNUMBER) {
        CPU_ZERO(&cpus);
        CPU_SET((size_t)lua_tointeger(L, -1), &cpus);
        sched_setaffinity(0, sizeof(cpus), &cpus);
    }
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    if (lua_getfield(L, 1, "pass") == LUA_TTABLE) {
        pass_listeners(L);
    }
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static int
proc_spawn(lua_State *L)
{
    char *argv[ARGUMENTS_MAX + 1] = {NULL};
    lua_Integer count = luaL_len(L, 1);
    int out[2];

    luaL_argcheck(L, count > 0 && count <= ARGUMENTS_MAX, 1, "no program or too many arguments");
    luaL_checkstack(L, ARGUMENTS_MAX + LUA_MINSTACK, NULL);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, 1, i + 1);
        /* execvp() does not change the strings, although its prototype takes char *. They stay on
         * the stack. */
        argv[i] = (char *)(uintptr_t)luaL_checkstring(L, -1);
    }

    struct proc *proc = lua_newuserdatauv(L, sizeof(*proc), 0);

    memset(proc, 0, sizeof(*proc));
    proc->errors = memfd_create("stderr", MFD_CLOEXEC);
    if (proc->errors < 0 || pipe2(out, O_CLOEXEC) != 0) {
        return wire_raise(L, "spawn", errno);
    }
    wire_stream_open(&proc->out, out[0]);
    fflush(NULL);
    proc->pid = fork();
    if (proc->pid == 0) {
        run_child(L, argv, out[1], proc->errors);
    }
    close(out[1]);
    proc->pidfd = (int)syscall(SYS_pidfd_open, proc->pid, 0);
    luaL_setmetatable(L, PROC_CLASS);
    return proc->pidfd >= 0 ? 1 : wire_raise(L, "fork", errno);
}

static int
proc_pid(lua_State *L)
{
    lua_pushinteger(L, check_proc(L)->pid);
    return 1;
}

/* line([seconds]): the next line of standard output without its line end; nil after the last
 * line. */
static int
proc_line(lua_State *L)
{
    struct wire_stream *out = &check_proc(L)->out;

    out->patience = wire_patience(L, 2);

    ssize_t found = wire_stream_find(L, out, "\n", 1);

    if (found < 0) {
        return 0;
    }
    wire_stream_take(L, out, (size_t)found - 1);
    out->start++;
    return 1;
}

/* ready([seconds]): true if output can be read, or has ended. */
static int
proc_ready(lua_State *L)
{
    const struct wire_stream *out = &check_proc(L)->out;
    double patience = luaL_optnumber(L, 2, WIRE_PATIENCE);

    lua_pushboolean(L, wire_stream_len(out) > 0 || wire_wait_for(out->fd, POLLIN, patience) != 0);
    return 1;
}

static int
proc_output(lua_State *L)
{
    struct wire_stream *out = &check_proc(L)->out;

    out->patience = wire_patience(L, 2);
    wire_stream_need_end(L, out);
    return wire_stream_take(L, out, wire_stream_len(out));
}

/* The length of the first line of text, including its line end. */
static size_t
line_len(const char *text, size_t len)
{
    const char *end = memchr(text, '\n', len);

    return end == NULL ? len : (size_t)(end - text) + 1;
}

/* Remove the lines "loop blocked 112 ms in ..." from the text on top of the stack. Whether a
 * program writes such a line depends on how busy the machine is, so no test may depend on it. */
static void
leave_out_blocked(lua_State *L)
{
    static const char words[] = " - loop blocked ";
    size_t left;
    const char *text = lua_tolstring(L, -1, &left);
    luaL_Buffer rest;

    luaL_buffinit(L, &rest);
    for (size_t len; left != 0; text += len, left -= len) {
        len = line_len(text, left);
        if (memmem(text, len, words, sizeof(words) - 1) == NULL)
            luaL_addlstring(&rest, text, len);
    }
    luaL_pushresult(&rest);
    lua_remove(L, -2);
}

static int
proc_errors(lua_State *L)
{
    int fd = check_proc(L)->errors;
    luaL_Buffer text;
    off_t offset = 0;
    ssize_t count;

    luaL_buffinit(L, &text);
    while ((count = pread(fd, luaL_prepbuffer(&text), LUAL_BUFFERSIZE, offset)) > 0) {
        luaL_addsize(&text, (size_t)count);
        offset += count;
    }
    luaL_pushresult(&text);
    leave_out_blocked(L);
    return 1;
}

static int
proc_signal(lua_State *L)
{
    struct proc *proc = check_proc(L);
    const char *name = luaL_checkstring(L, 2);

    for (int number = 1; number < NSIG; number++) {
        const char *known = sigabbrev_np(number);

        if (known != NULL && strcmp(known, name) == 0) {
            return proc->ended || kill(proc->pid, number) == 0 ? 0 : wire_raise(L, "kill", errno);
        }
    }
    return luaL_error(L, "no such signal: %s", name);
}

/* wait([seconds]): the exit status, or "signal NAME". Less than a second means a look without the
 * default patience. */
static int
proc_wait(lua_State *L)
{
    struct proc *proc = check_proc(L);
    double seconds = luaL_optnumber(L, 2, WIRE_PATIENCE);

    if (!proc->ended) {
        if (wire_wait_for(proc->pidfd, POLLIN, seconds < 1 ? seconds : wire_patience(L, 2)) == 0) {
            return luaL_error(L, "expected the process to end, but it runs on");
        }
        waitpid(proc->pid, &proc->status, 0);
        proc->ended = true;
    }
    if (WIFSIGNALED(proc->status)) {
        lua_pushfstring(L, "signal %s", sigabbrev_np(WTERMSIG(proc->status)));
    } else {
        lua_pushinteger(L, WEXITSTATUS(proc->status));
    }
    return 1;
}

static int
proc_gc(lua_State *L)
{
    struct proc *proc = check_proc(L);

    if (!proc->ended && proc->pid > 0) {
        kill(-proc->pid, SIGKILL);
        kill(proc->pid, SIGKILL);
        waitpid(proc->pid, NULL, 0);
        proc->ended = true;
    }
    wire_stream_close(&proc->out);
    if (proc->errors >= 0) {
        close(proc->errors);
        proc->errors = -1;
    }
    if (proc->pidfd >= 0) {
        close(proc->pidfd);
        proc->pidfd = -1;
    }
    return 0;
}

/* Read /proc/<pid>/<name> to text; the pid is the first argument of the Lua function. Returns
 * text. */
static const char *
read_proc(lua_State *L, const char *name, char *text, size_t size)
{
    lua_Integer pid = luaL_checkinteger(L, 1);
    FILE *file = fopen(lua_pushfstring(L, "/proc/%I/%s", pid, name), "re");

    if (file == NULL) {
        wire_raise(L, lua_tostring(L, -1), errno);
    }
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int
system_fds(lua_State *L)
{
    DIR *directory = opendir(lua_pushfstring(L, "/proc/%I/fd", luaL_checkinteger(L, 1)));
    lua_Integer count = 0;

    if (directory == NULL) {
        return wire_raise(L, lua_tostring(L, -1), errno);
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    lua_pushinteger(L, count);
    return 1;
}

static int
system_rss(lua_State *L)
{
    char text[256];
    unsigned long pages = 0;

    sscanf(read_proc(L, "statm", text, sizeof(text)), "%*u %lu", &pages);
    lua_pushinteger(L, (lua_Integer)pages * sysconf(_SC_PAGESIZE));
    return 1;
}

/* Push the value, in bytes, of a line that begins with this name. */
static int
push_memory(lua_State *L, const char *name)
{
    char text[4096];
    const char *line = strstr(read_proc(L, "smaps_rollup", text, sizeof(text)), name);

    lua_pushinteger(L, line == NULL ? 0 : strtol(line + strlen(name), NULL, 10) * 1024);
    return 1;
}

static int
system_pss(lua_State *L)
{
    return push_memory(L, "\nPss:");
}

/* The part of PSS that is not of files: how many other processes have these files mapped does not
 * change it. */
static int
system_pss_anon(lua_State *L)
{
    return push_memory(L, "\nPss_Anon:");
}

/* cpu(pid): seconds of user time and of system time, with a clock tick's precision; then seconds
 * that the main thread ran, in nanoseconds' precision. */
static int
system_cpu(lua_State *L)
{
    char stat[1024];
    char schedstat[256];
    unsigned long user = 0;
    unsigned long system = 0;
    unsigned long long running_ns = 0;
    double hz = (double)sysconf(_SC_CLK_TCK);
    const char *after_name = strrchr(read_proc(L, "stat", stat, sizeof(stat)), ')');

    if (after_name != NULL) {
        sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    }
    sscanf(read_proc(L, "schedstat", schedstat, sizeof(schedstat)), "%llu", &running_ns);
    lua_pushnumber(L, (double)user / hz);
    lua_pushnumber(L, (double)system / hz);
    lua_pushnumber(L, (double)running_ns / 1e9);
    return 3;
}

static int
system_pin(lua_State *L)
{
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET((size_t)luaL_checkinteger(L, 2), &cpus);
    if (sched_setaffinity((pid_t)luaL_checkinteger(L, 1), sizeof(cpus), &cpus) != 0) {
        return wire_raise(L, "sched_setaffinity", errno);
    }
    return 0;
}

/* steal(): seconds since boot for which other guests of the host had this machine's CPUs. */
static int
system_steal(lua_State *L)
{
    FILE *file = fopen("/proc/stat", "re");
    unsigned long ticks = 0;

    if (file != NULL) {
        if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %lu", &ticks) != 1) {
            ticks = 0;
        }
        fclose(file);
    }
    lua_pushnumber(L, (double)ticks / (double)sysconf(_SC_CLK_TCK));
    return 1;
}

static int
system_time(lua_State *L)
{
    lua_pushnumber(L, wire_seconds());
    return 1;
}

static int
system_sleep(lua_State *L)
{
    wire_pause(luaL_checknumber(L, 1));
    return 0;
}

static const luaL_Reg methods[] = {
    {"errors", proc_errors}, {"line", proc_line},
    {"output", proc_output}, {"pid", proc_pid},
    {"ready", proc_ready},   {"signal", proc_signal},
    {"wait", proc_wait},     {"__close", proc_gc},
    {"__gc", proc_gc},       {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"cpu", system_cpu},
    {"fds", system_fds},
    {"pin", system_pin},
    {"pss", system_pss},
    {"pss_anon", system_pss_anon},
    {"rss", system_rss},
    {"sleep", system_sleep},
    {"spawn", proc_spawn},
    {"steal", system_steal},
    {"time", system_time},
    {NULL, NULL},
};

void
wire_add_processes(lua_State *L)
{
    wire_add_class(L, PROC_CLASS, methods);
    luaL_setfuncs(L, functions, 0);
}
