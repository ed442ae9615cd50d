/* SPDX-License-Identifier: MIT
 *
 * The Lua state of scripts: allocator, time limit, tracebacks.
 */
#include "script-lua.h"

#include <lualib.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "script.h"
#include "sxe-time.h"
#include "sxe-util.h"

#define TICKS_MAX 5
#define SAMPLE    16

static const char result_key[] = "sxe-http result";

/* ---- Bytes that are put together ---- */

void
load_lua_put(lua_State *L, const char *bytes, size_t length)
{
    struct load_lua *lua = load_lua_of(L);

    if (length > lua->room - lua->length) {
        size_t room = 2 * (lua->length + length);
        char *text = counted_memory_allocate(&lua->memory, lua->text, lua->room, room);

        if (text == NULL)
            luaL_error(L, "not enough memory for %d bytes of text", (int)room);
        lua->text = text;
        lua->room = room;
    }
    if (length > 0)
        memcpy(lua->text + lua->length, bytes, length);
    lua->length += length;
}

struct load_lua *
load_lua_of(lua_State *L)
{
    return *(struct load_lua **)lua_getextraspace(L);
}

/* ---- Texts ---- */

bool
load_lua_has_zero(lua_State *L, int index)
{
    size_t length;

    return strlen(lua_tolstring(L, index, &length)) != length;
}

const char *
load_lua_check_text(lua_State *L, int argument)
{
    const char *text = luaL_checkstring(L, argument);

    luaL_argcheck(L, !load_lua_has_zero(L, argument), argument, "text without zero bytes expected");
    return text;
}

/* ---- Functions that do not end ---- */

unsigned load_lua_patience_ms = 5000;

static lua_State *volatile watched; /* the state whose function runs; NULL: none runs */
static volatile sig_atomic_t ticks; /* how many ticks came since the outermost call began */

static void
raise_error(lua_State *L, lua_Debug *where)
{
    SXE_UNUSED_PARAMETER(where);
    if (ticks >= TICKS_MAX)
        luaL_error(L, "it did not end: it has used %d ms of CPU time", (int)load_lua_patience_ms);
    /* No time limit has passed. The hook is left from an earlier call that was to end, but in which
     * this coroutine yielded just before the hook could run. */
    lua_sethook(L, NULL, 0, 0);
}

/* The handler of SIGVTALRM. A signal handler may do nothing with a Lua state but set a hook. */
static void
on_tick(int signal_number)
{
    SXE_UNUSED_PARAMETER(signal_number);
    if (watched != NULL && ++ticks >= TICKS_MAX)
        lua_sethook(watched, raise_error, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT,
                    1);
}

void
load_lua_watch(bool is_on)
{
    /* The handler also stays installed when the timer is stopped, because a late signal must not
     * end the process. */
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    struct itimerval timer = {0};
    uint64_t period_us = UINT64_C(1000) * load_lua_patience_ms / TICKS_MAX;

    sigaction(SIGVTALRM, &action, NULL);
    if (is_on) {
        timer.it_interval.tv_sec = (time_t)(period_us / 1000000);
        timer.it_interval.tv_usec = (suseconds_t)(period_us % 1000000);
        timer.it_value = timer.it_interval;
    }
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

void
load_lua_watch_coroutine(lua_State *L)
{
    watched = L;
}

/* ---- Calls ---- */

static bool
is_in_lua(lua_State *L)
{
    lua_Debug function;

    for (int level = 1; lua_getstack(L, level, &function); level++) {
        lua_getinfo(L, "S", &function);
        if (*function.what != 'C')
            return true;
    }
    return false;
}

/* The message handler of lua_pcall. It makes a text of the error, which may be any value, and adds
 * a traceback. */
static int
add_traceback(lua_State *L)
{
    const char *message = luaL_tolstring(L, 1, NULL);

    if (is_in_lua(L))
        luaL_traceback(L, L, message, 1);
    return 1;
}

bool
load_lua_is_news(struct load_lua *lua, const char *what, const char *text)
{
    return lua->is_news == NULL || lua->is_news(lua->user, what, text);
}

static void
say_error(struct load_lua *lua, const char *what, int status)
{
    const char *text = lua_type(lua->L, -1) == LUA_TSTRING ? lua_tostring(lua->L, -1) : "?";

    if (!load_lua_is_news(lua, what, text))
        return;
    fprintf(lua->err, "sxe-http: %s: %s failed: %s\n", lua->path, what, text);
    if (status == LUA_ERRMEM)
        fprintf(lua->err, "sxe-http: a script may have %u MB of memory\n",
                LOAD_SCRIPT_MEMORY >> 20);
}

bool
load_lua_call(struct load_lua *lua, const char *what, lua_CFunction body, void *argument)
{
    lua_State *L = lua->L;
    lua_State *outer = watched; /* a function of one state may call into another state */
    int top = lua_gettop(L), status;

    lua_pushcfunction(L, add_traceback);
    lua_pushcfunction(L, body);
    lua_pushlightuserdata(L, argument);
    if (outer == NULL)
        ticks = 0;
    watched = L;
    status = lua_pcall(L, 1, 0, -3);
    watched = outer;
    if (SXE_UNLIKELY(lua_gethook(L) != NULL))
        lua_sethook(L, NULL, 0, 0);
    if (SXE_UNLIKELY(status != LUA_OK))
        say_error(lua, what, status);
    lua_settop(L, top);
    return status == LUA_OK;
}

/* Read the CPU time of this thread. Unlike a wall clock, it does not count the time of other
 * processes on the same CPU. */
static uint64_t
script_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SXE_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Measure how long an empty measurement takes. Reading this clock is a system call, which takes as
 * long as a short function of a script. */
static uint64_t
cost_of_clock(void)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < SAMPLE; i++) {
        uint64_t begin_ns = script_cpu_ns(), ns = script_cpu_ns() - begin_ns;

        least = ns < least ? ns : least;
    }
    return least;
}

bool
load_lua_timed_call(struct load_lua *lua, struct load_lua_cost *cost, const char *what,
                    lua_CFunction body, void *argument)
{
    uint64_t weight = cost->calls < SAMPLE ? 1 : cost->calls % SAMPLE == 0 ? SAMPLE : 0;
    uint64_t begin_ns, ns;
    bool is_ok;

    if (cost->calls++ == 0)
        cost->clock_ns = cost_of_clock();
    if (weight == 0)
        return load_lua_call(lua, what, body, argument);
    begin_ns = script_cpu_ns();
    is_ok = load_lua_call(lua, what, body, argument);
    ns = script_cpu_ns() - begin_ns;
    cost->ns += ns < cost->clock_ns ? 0 : (ns - cost->clock_ns) * weight;
    return is_ok;
}

/* ---- Life ---- */

static int
open_libraries(lua_State *L)
{
    luaL_openlibs(L);
    return 0;
}

struct load_lua *
load_lua_new(const char *path, FILE *err)
{
    struct load_lua *lua = calloc(1, sizeof(*lua));

    if (lua != NULL) {
        lua->path = path;
        lua->err = err;
        lua->memory =
            (struct counted_memory){.used_max = LOAD_SCRIPT_MEMORY, .total_max = SIZE_MAX};
        lua->L = lua_newstate(counted_memory_allocate, &lua->memory);
    }
    if (lua == NULL || lua->L == NULL) {
        fprintf(err, "sxe-http: %s: no memory for Lua\n", path);
        free(lua);
        return NULL;
    }
    *(struct load_lua **)lua_getextraspace(lua->L) = lua;
    if (!load_lua_call(lua, "opening Lua's libraries", open_libraries, NULL)) {
        load_lua_free(lua);
        return NULL;
    }
    return lua;
}

void
load_lua_free(struct load_lua *lua)
{
    if (lua == NULL)
        return;
    lua_close(lua->L);
    free(lua->text);
    free(lua);
}

/* ---- The script's text ---- */

int
load_lua_run_chunk(lua_State *L)
{
    const struct load_lua_chunk *chunk = lua_touserdata(L, 1);
    const char *name = lua_pushfstring(L, "@%s", chunk->path);
    const char *begin = chunk->bytes, *end = begin + chunk->length;

    /* Skip a first line that is for the shell, but not its newline, because lines are counted. */
    if (begin < end && *begin == '#') {
        begin = memchr(begin, '\n', chunk->length);
        begin = begin == NULL ? end : begin;
    }
    if (luaL_loadbufferx(L, begin, (size_t)(end - begin), name, "t") != LUA_OK)
        return lua_error(L);
    lua_call(L, 0, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, result_key);
    return 0;
}

void
load_lua_push_result(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, result_key);
}
