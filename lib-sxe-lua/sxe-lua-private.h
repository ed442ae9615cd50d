/* SPDX-License-Identifier: MIT
 *
 * What: what the files of lib-sxe-lua share, and their map.
 *
 *     sxe-lua.c           a state: made, loaded, called, deleted
 *     sxe-lua-alloc.c     its memory: counted, capped, small sizes from free lists
 *     sxe-lua-watch.c     the watchdog: a thread that interrupts what computes too long
 *     sxe-lua-error.c     tracebacks, and what becomes of an error
 *     sxe-lua-handle.c    objects of C in Lua: light userdata with a class, an index, a generation
 *     sxe-lua-task.c      tasks: started, parked, woken, cancelled; the ready list
 *     sxe-lua-tasks.c     require "sxe.task": sleep, parallel, locks, queues ... on top of that
 *     sxe-lua-port.c      time, randomness: os.* and math.random go through it
 *     sxe-lua-compat*.c   the globals of 2010 and 2011
 *     sxe-lua-http*.c     require "sxe.http"
 *     sxe-lua-tcp.c, -udp.c, -file.c, -timer.c, -log.c, -stats.c, -pool.c, -spawn.c, -json.c
 *
 * Parking. A C function that has to wait stores the handle of the running task where the event will
 * find it, and returns sxe__lua_park(...). The event calls sxe__lua_wake with that handle; that only
 * moves the task to READY. Later the scheduler resumes it, and the continuation makes the results in
 * the task's own stack. A handle of a task that ended meanwhile wakes nobody.
 *
 *     static int l_sleep(lua_State *L)
 *     {
 *         return sxe__lua_park(L, seconds_from_now(L, 1), NULL, NULL, slept, 0);
 *     }
 *     static int slept(lua_State *L, int status, lua_KContext context)
 *     {
 *         return sxe__lua_woken(L) == SXE__LUA_CANCELLED ? sxe__lua_fail(L, "cancelled") : 0;
 *     }
 */
#ifndef SXE_LUA_PRIVATE_H
#define SXE_LUA_PRIVATE_H

#include <lauxlib.h>
#include <lua.h>

#include "sxe-lua.h"
#include "sxe.h"

/* ---- Handles ----
 * Bits of the light userdata, from the top: class 8, generation 24, index 32. Never NULL, as no class
 * is 0. */

enum sxe__lua_class {
    SXE__LUA_NO_CLASS = 0,
    SXE__LUA_SOCKET,
    SXE__LUA_BUF,
    SXE__LUA_TASK,
    SXE__LUA_REQUEST,
    SXE__LUA_RESPONSE,
    SXE__LUA_HEADERS,     /* of a request */
    SXE__LUA_OUT_HEADERS, /* of a response */
    SXE__LUA_QUERY,
    SXE__LUA_PARAMS,
    SXE__LUA_TIMER,
    SXE__LUA_POOL,
    SXE__LUA_ELEMENT,
    SXE__LUA_CONN, /* of sxe.tcp */
    SXE__LUA_UDP,
    SXE__LUA_CHILD,
    SXE__LUA_STAT,
    SXE__LUA_CLASSES
};

/* What a class can do; a static table in the file it is about, registered once a state. get and set
 * find the index behind checked bits: they may be handed a stale one, which is for them to refuse. */
struct sxe__lua_class_spec {
    const char *name; /* "sxe.http.request", for messages */
    const luaL_Reg *methods;
    /* Push the property named at stack index 2, and return 1; 0: there is none. NULL: no properties. */
    int (*get)(lua_State *L, uint32_t index, uint32_t generation, const char *name);
    /* Take the value at stack index 3; 0: there is no such property. */
    int (*set)(lua_State *L, uint32_t index, uint32_t generation, const char *name);
    int (*length)(lua_State *L, uint32_t index, uint32_t generation);
    int (*call)(lua_State *L, uint32_t index, uint32_t generation); /* arguments from 2 */
};

void sxe__lua_register_class(lua_State *L, enum sxe__lua_class class_,
                             const struct sxe__lua_class_spec *spec);
void sxe__lua_push_handle(lua_State *L, enum sxe__lua_class class_, uint32_t index,
                          uint32_t generation);

/* The index of the handle at an argument, its generation in *generation; raises "sxe.tcp connection
 * expected, got nil" for anything else. */
uint32_t sxe__lua_check_handle(lua_State *L, int argument, enum sxe__lua_class class_,
                               uint32_t *generation);

/* ---- Tasks ---- */

enum sxe__lua_reason {
    SXE__LUA_EVENT, /* what it waited for happened */
    SXE__LUA_TIMEOUT,
    SXE__LUA_CANCELLED
};

/* The running task; 0 outside of one (a callback of 2010's kind). */
uint64_t sxe__lua_running(lua_State *L);

/* Park the running task until it is woken, or until deadline_ns (0: never); then k goes on with
 * context. If it is cancelled or times out, on_leave(what) is called first, to forget the handle.
 * Raises, naming the C function, where a wait is impossible. Returns what the C function returns. */
int sxe__lua_park(lua_State *L, uint64_t deadline_ns, void (*on_leave)(void *what), void *what,
                  lua_KFunction k, lua_KContext context);

/* Why the continuation runs. */
enum sxe__lua_reason sxe__lua_woken(lua_State *L);

/* False: it is gone, or not parked. */
bool sxe__lua_wake(uint64_t task, enum sxe__lua_reason reason);

/* Start a task with the function and its arguments on top of from's stack, which takes them off. is_now:
 * it runs at once until it ends or waits, otherwise it is put at the end of the ready list. Its
 * handle; 0: none is free. on_end(L, task, status, user) is called with its results, or the error with
 * its traceback, on its stack. */
typedef void (*sxe__lua_on_end)(lua_State *L, int status, int results, void *user);
uint64_t sxe__lua_start(lua_State *from, int arguments, bool is_now, sxe__lua_on_end on_end,
                        void *user);
void sxe__lua_cancel(uint64_t task);
void *sxe__lua_user(uint64_t task); /* what start was given; NULL if it is gone */

/* ---- Results ---- */

/* nil, message, code: how calls fail that may fail. */
int sxe__lua_fail(lua_State *L, const char *message);
int sxe__lua_fail_errno(lua_State *L, int error, const char *what);

/* Seconds at an argument, or in field "timeout" of a table there, as a deadline; 0: none given. */
uint64_t sxe__lua_deadline(lua_State *L, int argument);

/* ---- Protected calls from C ---- */

/* The function and arguments on L's stack, with a traceback on errors, outside of a task: a wait in it
 * is an error. 0, or -EINVAL after logging with where, what is being done ("on_read of 0.0.0.0:80"). */
int sxe__lua_pcall(lua_State *L, int arguments, int results, const char *where);

/* The state of this thread. */
struct sxe_lua *sxe__lua_current(void);
lua_State *sxe__lua_main(struct sxe_lua *lua);

#endif
