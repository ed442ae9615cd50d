/* SPDX-License-Identifier: MIT
 *
 * What: a Lua state that cannot hurt the load generator: its memory is counted and limited, its
 * errors become messages with a traceback, a function of it that never ends is ended.
 *
 * Place: script.c and scenario.c, one state a worker; everything that may raise an error, and that
 * is nearly all of Lua's C API, runs inside load_lua_call.
 *
 * Shape: a hook that counts instructions would make every script half as fast. Instead, a timer of
 * the CPU time (SIGVTALRM) looks once in a while; only when a call has been in Lua for too long it
 * sets a hook, which raises an error at the next instruction. Sleeping is not counted, and what C
 * functions of Lua do (a pattern that backtracks) is not interrupted.
 *
 *     call: watched = L, ticks = 0 -> ... Lua ... -> watched = NULL
 *     timer:        ticks++, at the fifth: lua_sethook(watched, raise)
 *
 * Limits: LOAD_SCRIPT_MEMORY bytes a state; one thread.
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
    FILE *err;        /* ro: where its errors go */
    /* rw: decides whether an error is to be printed; NULL: all errors are */
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

/* Make a state with Lua's libraries. path is borrowed. NULL: no memory, and err says so. */
struct load_lua *load_lua_new(const char *path, FILE *err);
void load_lua_free(struct load_lua *lua);

/* Run body(L), whose argument, at stack index 1, is `argument` as a light userdata. False: it
 * raised an error; err has it with what it was ("request()") and a traceback. */
bool load_lua_call(struct load_lua *lua, const char *what, lua_CFunction body, void *argument);

/* Whether to print this error: no other worker has printed the same one. */
bool load_lua_is_news(struct load_lua *lua, const char *what, const char *text);

/* Like load_lua_call, but add the call and its CPU time to cost. The clock is read for the first 16
 * calls and then for each 16th, whose time counts 16 times. */
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

/* The script resumes this coroutine, or returns to it: from now on the timer ends functions in
 * it. */
void load_lua_watch_coroutine(lua_State *L);

/* how many ms of CPU time a call may take: 5000; less in tests */
extern unsigned load_lua_patience_ms;

/* The argument of a call's body that runs a text, without a first line that begins with #. The
 * values that the text returns are pushed by load_lua_push_result. */
struct load_lua_chunk {
    const char *path;
    const char *bytes;
    size_t length;
};
int load_lua_run_chunk(lua_State *L);
void load_lua_push_result(lua_State *L);

#endif
