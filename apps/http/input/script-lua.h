/* SPDX-License-Identifier: MIT
 *
 * What: a Lua state that cannot harm the load generator. Its memory is limited, its errors become
 * messages with a traceback, and a function that never returns is ended.
 *
 * Place: script.c and scenario.c use it; each worker has one state. Nearly all functions of Lua's C
 * API may raise an error, so they are called only inside load_lua_call.
 *
 * Shape: a hook that counts instructions would make every script half as fast. Instead, a timer of
 * CPU time (SIGVTALRM) ticks, and its handler sets a hook only if a call has run for too long. The
 * hook raises an error at the next instruction of Lua. Sleeping does not count, and a C function of
 * Lua, such as one with a pattern that backtracks, is not interrupted.
 *
 *     call: watched = L, ticks = 0 -> ... Lua ... -> watched = NULL
 *     timer:        ticks++, at the fifth: lua_sethook(watched, raise)
 *
 * Limits: each state gets LOAD_SCRIPT_MEMORY bytes; only one thread may use states.
 */
#ifndef LOAD_SCRIPT_LUA_H
#define LOAD_SCRIPT_LUA_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "counted-memory.h"

struct load_lua {
    lua_State *L;     /* ro */
    const char *path; /* ro: the path of the script */
    FILE *err;        /* ro: the file to which error messages are written */
    /* rw: decides whether an error is printed; NULL: all errors are printed */
    bool (*is_news)(void *user, const char *what, const char *text);
    void *user; /* rw: the argument of is_news */
    struct counted_memory memory;
    char *text;    /* ro: the bytes that load_lua_put has added */
    size_t length; /* rw: how many bytes `text` has */
    size_t room;   /* private */
};

/* How much CPU time calls took. */
struct load_lua_cost {
    uint64_t calls;
    uint64_t ns;       /* the CPU time */
    uint64_t clock_ns; /* private: how long reading the clock takes, which is not part of ns */
};

/* Make a state with Lua's libraries. path must stay valid. NULL: no memory, after a message on
 * err. */
struct load_lua *load_lua_new(const char *path, FILE *err);
void load_lua_free(struct load_lua *lua);

/* Run body(L). Its argument, at stack index 1, is `argument` as a light userdata. False: body
 * raised an error. Then err got a message with the error, a traceback, and `what`, which names the
 * call ("request()"). */
bool load_lua_call(struct load_lua *lua, const char *what, lua_CFunction body, void *argument);

/* Whether to print this error, because no other worker has printed it. */
bool load_lua_is_news(struct load_lua *lua, const char *what, const char *text);

/* Like load_lua_call, but add the call and its CPU time to cost. Reading the clock takes time, so
 * only the first 16 calls and then every 16th call are measured; the time of such a 16th call
 * counts 16 times. */
bool load_lua_timed_call(struct load_lua *lua, struct load_lua_cost *cost, const char *what,
                         lua_CFunction body, void *argument);

/* The state that L belongs to; L may be a coroutine. */
struct load_lua *load_lua_of(lua_State *L);

/* Whether the string or number at the index has a zero byte, at which C would end the text. */
bool load_lua_has_zero(lua_State *L, int index);

/* Inside a call: like luaL_checkstring, but also raises an error if the argument has a zero
 * byte. */
const char *load_lua_check_text(lua_State *L, int argument);

/* Inside a call: append bytes to lua->text, whose memory is kept for the next text. Raises an error
 * if there is no memory. */
void load_lua_put(lua_State *L, const char *bytes, size_t length);

/* Start or stop the timer that ends functions which use too much CPU time. */
void load_lua_watch(bool is_on);

/* Tell the timer that the script resumes this coroutine, or returns to it: from now on the timer
 * ends functions in this coroutine. */
void load_lua_watch_coroutine(lua_State *L);

/* how many ms of CPU time a call may take: 5000; less in tests */
extern unsigned load_lua_patience_ms;

/* The argument of load_lua_run_chunk, a body for load_lua_call that runs a text, without a first
 * line that begins with #. load_lua_push_result pushes the value that the text returned. */
struct load_lua_chunk {
    const char *path;
    const char *bytes;
    size_t length;
};
int load_lua_run_chunk(lua_State *L);
void load_lua_push_result(lua_State *L);

#endif
