/* SPDX-License-Identifier: MIT
 *
 * What: what the files of lib-sxe-lua share, and their map.
 *
 *     sxe-lua-state.c     the state of this thread, which all files ask for
 *     sxe-lua.c           a state: made, loaded, called, deleted
 *     sxe-lua-init.c      what is in a new state: the only file that names all modules
 *     sxe-lua-alloc.c     its memory: counted, capped, small sizes from free lists
 *     sxe-lua-watch.c     the watchdog: a thread that looks for what computes too long
 *     sxe-lua-interrupt.c its hook, which interrupts such code
 *     sxe-lua-calls.c     the calls that a script is in, for a profiler
 *     sxe-lua-hooks.c     the flag of a state that says whether its hooks are on
 *     sxe-lua-coroutine.c coroutine.resume, wrap and close, through which a task's wait passes
 *     sxe-lua-require.c   require, whose modules may wait; load, which refuses bytecode
 *     sxe-lua-strict.c    globals that nobody declared are errors
 *     sxe-lua-sandbox*.c  scripts that are not trusted; sxe-lua-pattern*.c the functions of string
 *                         that they get
 *     sxe-lua-call.c      sxe_lua_call
 *     sxe-lua-bind.c      variables of C as fields in Lua
 *     sxe-lua-error.c     tracebacks, and what becomes of an error
 *     sxe-lua-fail.c      calls that fail: nil, message, code
 *     sxe-lua-locals.c    values as text, and the local variables where an error was raised
 *     sxe-lua-explain.c   an error as a person is told of it, with the lines of the source
 *     sxe-lua-handle.c    objects of C in Lua: light userdata with a class, an index, a generation
 *     sxe-lua-scheduler.c tasks by index and handle, their states; the scheduler's lowest file
 *     sxe-lua-deadline.c  deadlines of tasks
 *     sxe-lua-wake.c      lines of tasks that wait, and waking them
 *     sxe-lua-group.c     fairness between requests, however many tasks each of them starts
 *     sxe-lua-park.c      waiting
 *     sxe-lua-sync.c      locks, semaphores, events, queues
 *     sxe-lua-object.c    the object of a task, which keeps what it returned
 *     sxe-lua-task.c      tasks: started, resumed, cancelled, ended
 *     sxe-lua-turn.c      when they run: the loop's turns
 *     sxe-lua-tasks.c     require "sxe.task": start, join, sleep, parallel ... on top of tasks
 *     sxe-lua-clock.c     time, randomness: os.* and math.random go through it
 *     sxe-lua-compat*.c   the globals of 2010 and 2011, see sxe-lua-compat-private.h
 *     sxe-lua-tap.c       require "sxe.tap": tests as scripts of 2011 wrote them
 *     sxe-lua-socket.c    what Lua knows of a socket of lib-sxe
 *     sxe-lua-conn.c      a tcp connection: read, write; sxe-lua-tcp.c serves, -connect.c connects
 *     sxe-lua-tls.c       connections that speak TLS; -tls-client.c has their options
 *     sxe-lua-resolve.c   names to addresses, in threads
 *     sxe-lua-http*.c     require "sxe.http"
 *     sxe-lua-session.c   require "sxe.session", which is sxe-lua-session.lua
 *     sxe-lua-http-parts.c  require "sxe.multipart", which is sxe-lua-http-parts.lua
 *     sxe-lua-client.c    require "sxe.client"; most of it is in sxe-lua-client*.lua
 *     sxe-lua-inflate.c   compressed bodies of its responses
 *     sxe-lua-redis.c     require "sxe.redis"; most of it is in sxe-lua-redis.lua
 *     sxe-lua-redis-reader.c  its commands as bytes, its replies as values
 *     sxe-lua-resp.c      the scanner of such replies, which knows nothing of Lua
 *     sxe-lua-file.c      require "sxe.file": the jobs; sxe-lua-file-run.c does them, in threads;
 *                         sxe-lua-file-open.c has files that stay open
 *     sxe-lua-pool*.c     require "sxe.pool", see sxe-lua-pool-private.h
 *     sxe-lua-dict*.c     require "sxe.dict", see sxe-lua-dict-private.h
 *     sxe-lua-sketch*.c   require "sxe.sketch", see sxe-lua-sketch-private.h
 *     sxe-lua-encoding.c  require "sxe.encoding": base64, hexadecimal digits, URLs, UUIDs
 *     sxe-lua-template.c  require "sxe.template", which is sxe-lua-template.lua
 *     sxe-lua-linked.c    require "sxe.crypto", which is lib-sxe-crypto, "sxe.store", which is
 *                         lib-sxe-store, "sxe.postgres", "sxe.regex" and "sxe.zlib"
 *     sxe-lua-option.c    tables of options
 *     sxe-lua-spawn.c     require "sxe.spawn"; sxe-lua-spawn-process.c has a child that is watched
 *     sxe-lua-worker*.c   require "sxe.worker", see sxe-lua-worker-private.h; sxe-lua-clone*.c
 *                         values as bytes
 *     sxe-lua-realm*.c    require "sxe.realm", see sxe-lua-realm-private.h
 *     sxe-lua-text.c      strings of Lua as texts of C; sxe-lua-split.c has sxe.split
 *     sxe-lua-part.c      parts of modules that are written in Lua
 *     sxe-lua-repl.c      the shell; -repl-edit.c its line editor, -repl.lua values and names
 *     sxe-lua-host.c      sxe.run for an interpreter that is not ours
 *     sxe-lua-tcp.c, -udp.c, -timer.c, -log.c, -stats.c, -json*.c
 *
 * Parking. A C function that has to wait stores the handle of the running task where the event will
 * find it, and returns sxe__lua_park(...). The event calls sxe__lua_wake with that handle; that
 * only moves the task to READY. Later the scheduler resumes it, and the continuation pushes the
 * results on the task's own stack. A handle of a task that ended meanwhile wakes no task.
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

#define SXE_LOG_CONTROL sxe__lua_log

#include <lauxlib.h>
#include <lua.h>

#include "sxe-lua-internal.h"
#include "sxe-lua.h"
#include "sxe.h"

extern struct sxe_log_control sxe__lua_log; /* the control of SXE_LOG_LEVEL_LUA */

/* ---- Handles ----
 * Bits of the light userdata, from the top: class 8, generation 24, index 32. Never NULL, as no
 * class is 0. */

enum sxe__lua_class {
    SXE__LUA_NO_CLASS = 0,
    SXE__LUA_SOCKET,
    SXE__LUA_BUF,
    SXE__LUA_REQUEST,
    SXE__LUA_RESPONSE,
    SXE__LUA_HEADERS,     /* headers of a request */
    SXE__LUA_OUT_HEADERS, /* headers of a response */
    SXE__LUA_QUERY,
    SXE__LUA_COOKIES,
    SXE__LUA_PARAMS,
    SXE__LUA_ESCAPED_PARAMS,
    SXE__LUA_EVENTS, /* events that res:sse() sends */
    SXE__LUA_SERVER, /* a server of http.serve */
    SXE__LUA_POOL,
    SXE__LUA_ELEMENT,
    SXE__LUA_CONN,       /* a connection of sxe.tcp */
    SXE__LUA_TCP_SERVER, /* a server of tcp.serve */
    SXE__LUA_UDP,
    SXE__LUA_STAT,
    SXE__LUA_CLASSES
};

/* The bits of a generation that a handle holds. */
enum { SXE__LUA_GENERATION_MASK = 0xffffff };

/* The methods of a class: a static table in the file of that class, registered once a state. get
 * and set must refuse a stale handle. */
struct sxe__lua_class_spec {
    const char *name; /* the class in messages: "sxe.http.request" */
    const luaL_Reg *methods;
    /* Push the property named at stack index 2 and return 1; return 0 if there is no such property.
     * NULL: the class has no properties. */
    int (*get)(lua_State *L, uint32_t index, uint32_t generation, const char *name);
    /* Set the property to the value at stack index 3; return 0 if there is no such property. */
    int (*set)(lua_State *L, uint32_t index, uint32_t generation, const char *name);
    int (*length)(lua_State *L, uint32_t index, uint32_t generation);
    /* call the object; the arguments are at stack indexes from 2 on */
    int (*call)(lua_State *L, uint32_t index, uint32_t generation);
    /* Called at the end of the scope of `local x <close>`. The function must do nothing if the
     * object was closed before. NULL: the class has nothing to close. */
    void (*close)(lua_State *L, uint32_t index, uint32_t generation);
};

void sxe__lua_register_class(lua_State *L, enum sxe__lua_class class_,
                             const struct sxe__lua_class_spec *spec);
void sxe__lua_push_handle(lua_State *L, enum sxe__lua_class class_, uint32_t index,
                          uint32_t generation);

/* The handle that sxe__lua_push_handle pushes. */
void *sxe__lua_handle_of(enum sxe__lua_class class_, uint32_t index, uint32_t generation);

/* Push an owner: a full userdata in which a handle is put later, and that scripts use like that
 * handle. When Lua collects the owner, the object of the handle is closed. The class must have
 * `close`. Returns the place of the handle in the owner. */
void **sxe__lua_new_owner(lua_State *L);

/* The handle at an index, or the handle in the owner there; NULL: there is neither. */
void *sxe__lua_handle_at(lua_State *L, int index);

/* The index of the handle at an argument, its generation in *generation; raises "sxe.tcp connection
 * expected, got nil" for anything else. */
uint32_t sxe__lua_check_handle(lua_State *L, int argument, enum sxe__lua_class class_,
                               uint32_t *generation);

/* ---- Tasks; sxe-lua-internal.h has how they wait ---- */

/* Start a task with the function and its arguments on top of from's stack, and pop them. If is_now,
 * the task runs at once until it ends or waits; otherwise it goes to the end of the ready list.
 * Returns the task's handle (the task may have ended already), or 0 if no task is free or memory is
 * missing. on_end is called once, outside of protected calls, when the task has ended and its
 * <close> variables are closed. `status` is LUA_OK, with the results on top of the task's stack;
 * LUA_YIELD without values if the task was cancelled; or an error with its traceback. If on_end is
 * NULL, errors are logged. */
typedef void (*sxe__lua_on_end)(lua_State *L, int status, int results, void *user);
uint64_t sxe__lua_start(lua_State *from, int arguments, bool is_now, sxe__lua_on_end on_end,
                        void *user);
void sxe__lua_cancel(uint64_t task);
/* Set the origin of all tasks that are started from now on, and of the tasks that these start. The
 * origin is the request that a handler answers, see sxe__lua_http_id_of; 0: none. Returns the
 * previous origin. */
uint64_t sxe__lua_set_origin(uint64_t origin);
uint64_t sxe__lua_origin(void);

void *sxe__lua_user(uint64_t task); /* the `user` of sxe__lua_start; NULL: the task is gone */

/* A line of tasks that wait for the same thing, first come, first served. An empty line is all
 * zero. Parking in a line needs no on_leave: a task that is cancelled or times out is taken out of
 * the line. */
struct sxe__lua_line {
    uint32_t first; /* private: index + 1 of the first task; 0: no task */
    uint32_t last : 31;
    /* read-only; 1: its tasks wait for events from outside, so the loop keeps running */
    uint32_t keeps_loop : 1;
};
int sxe__lua_park_in(lua_State *L, struct sxe__lua_line *line, uint64_t deadline_ns,
                     lua_KFunction k, lua_KContext context);
bool sxe__lua_wake_first(struct sxe__lua_line *line); /* false: no task waits */
void sxe__lua_wake_all(struct sxe__lua_line *line);

/* Call sxe__lua_loop_hold when a task begins to wait for an event from outside, but in no line. The
 * loop runs on until sxe__lua_loop_release was called as often (sxe-lua-scheduler.c). */
void sxe__lua_loop_hold(void);
void sxe__lua_loop_release(void);

/* ---- The scheduler, as sxe-lua.c and the watchdog see it ---- */

/* Make the scheduler, in a protected call: 0 or -ENOMEM. From now on tasks may start, and may wait,
 * but the loop wakes them only after sxe__lua_tasks_start (which sxe_lua_init calls, after
 * sxe_init). */
SXE_MUST_USE int sxe__lua_tasks_open(lua_State *main, const struct sxe_lua_config *config);
void sxe__lua_tasks_start(struct ev_loop *loop);

/* Whether sxe__lua_tasks_start was called, and sxe__lua_tasks_stop was not. */
bool sxe__lua_tasks_have_begun(void);
void sxe__lua_tasks_stop(void); /* harmless if the scheduler was not started */

/* End all tasks; their <close> variables run. Call this after sxe__lua_tasks_stop and before
 * lua_close. It is harmless if sxe__lua_tasks_open failed. */
void sxe__lua_tasks_close(void);

/* For the wrappers of coroutine.resume and coroutine.wrap. True: the coroutine yielded because the
 * running task waits or makes way, not because the script called yield. Pass the yield on: bar the
 * coroutine, and call lua_yieldk(L, 0, context, k); in k, unbar the coroutine and resume it again,
 * with no values. */
bool sxe__lua_is_leaving(void);

/* Bar or unbar a coroutine. coroutine.resume and coroutine.close refuse a barred coroutine with
 * "cannot resume a coroutine that waits": a barred coroutine is a task's own, or a task waits
 * inside of it. The mark is one word of lua_getextraspace(). */
void sxe__lua_bar(lua_State *coroutine);
void sxe__lua_unbar(lua_State *coroutine);
bool sxe__lua_is_barred(lua_State *coroutine);

/* For the watchdog's hook, if lua_isyieldable(L): let the running task, which has used up its time
 * slice, go on after the tasks that are ready. The hook returns this function's result. */
int sxe__lua_make_way(lua_State *L);

/* The on_end of the running task; NULL: no task runs. */
sxe__lua_on_end sxe__lua_end_of_running(void);

/* For a hook, when the running task has used up its time slice. If the task is cancelled, this
 * function raises an error, or returns true: in that case the task yields when the hook returns. */
bool sxe__lua_end_computing(lua_State *L);

/* ---- Watching and reporting: what the scheduler calls (sxe-lua-watch.c, sxe-lua-error.c) ---- */

/* The scheduler calls enter(&watched, L, &spent_ns) before each lua_resume, and leave(&watched)
 * after it, with a struct on the C stack. spent_ns is a field of the task, 0 when the task starts;
 * there the watchdog keeps the CPU time that the task has used since it last waited. */
struct sxe__lua_watched {
    lua_State *L; /* private, like all members here */
    uint64_t *spent_ns;
    struct sxe__lua_watched *interrupted;
    lua_State *running; /* the watchdog's `running` before this call of sxe__lua_watch_enter */
};
void sxe__lua_watch_enter(struct sxe__lua_watched *watched, lua_State *L, uint64_t *spent_ns);
void sxe__lua_watch_leave(struct sxe__lua_watched *watched);

/* Whether the running task may wait in L: L can yield, and so can each coroutine on the way up to
 * the task's own coroutine. */
bool sxe__lua_may_yield(lua_State *L);

/* Add a traceback to the error on top of L, a coroutine whose resume failed; an error that is no
 * text stays as it is. Never raises. */
void sxe__lua_add_traceback(lua_State *L);

/* Push the local variables of the function that raised the last error, a line for each. They are
 * kept only with is_dev. NULL: none were kept (sxe-lua-locals.c). */
const char *sxe__lua_push_locals(lua_State *L);

/* A message handler for lua_pcall: adds a traceback to an error that is text. */
int sxe__lua_message_handler(lua_State *L);

/* Like sxe__lua_message_handler, but for a task's function: the error that cancelled the task stays
 * as it is. */
int sxe__lua_task_message_handler(lua_State *L);

/* Log the error on top of L, "timer at a.lua:12: <error>", a line for each line of its traceback,
 * all with the same id: the id of sxe_log_set_request, or a new one. Returns the id, which is valid
 * until this thread's next call. Never raises. */
const char *sxe__lua_log_error(lua_State *L, const char *where);

/* Report a failure, such as "http.serve cannot listen at ...", to the program's on_error; if
 * on_error does not take it, log the failure. */
void sxe__lua_log_failure(const char *call, const char *text);

/* Call this between tasks, when no code of Lua runs: collects garbage if memory is above its soft
 * limit. */
void sxe__lua_relieve(void);

/* ---- The parts, as sxe-lua-init.c sees them ---- */

/* require "sxe.x" calls sxe__lua_open_x once per state; the function returns the module. The
 * comment in sxe-lua-init.c lists the steps to add a module. */
int sxe__lua_open_task(lua_State *L);
int sxe__lua_open_timer(lua_State *L);
int sxe__lua_open_tcp(lua_State *L);
int sxe__lua_open_udp(lua_State *L);
int sxe__lua_open_http(lua_State *L);
int sxe__lua_open_session(lua_State *L);
int sxe__lua_open_multipart(lua_State *L);
int sxe__lua_open_template(lua_State *L);
int sxe__lua_open_client(lua_State *L);
int sxe__lua_open_redis(lua_State *L);
int sxe__lua_open_file(lua_State *L);
int sxe__lua_open_pool(lua_State *L);
int sxe__lua_open_dict(lua_State *L);
int sxe__lua_open_sketch(lua_State *L);
int sxe__lua_open_spawn(lua_State *L);
int sxe__lua_open_worker(lua_State *L);
int sxe__lua_open_realm(lua_State *L);
int sxe__lua_open_json(lua_State *L);
int sxe__lua_open_encoding(lua_State *L);
int sxe__lua_open_crypto(lua_State *L);
/* Let the modules opened from now on do long calls in threads (sxe-lua-offload-internal.h). */
void sxe__lua_open_offload(lua_State *L);
int sxe__lua_open_store(lua_State *L);
int sxe__lua_open_postgres(lua_State *L);
int sxe__lua_open_regex(lua_State *L);
int sxe__lua_open_zlib(lua_State *L);
int sxe__lua_open_log(lua_State *L);
int sxe__lua_open_stats(lua_State *L);
int sxe__lua_open_tap(lua_State *L);

/* Return a table of the names of 2010 and 2011, for require "sxe". Called in protected mode. */
int sxe__lua_open_compat(lua_State *L);

/* The modules of libsxe, as sxe-lua-init.c lists them: modules, then reserved names; the last entry
 * has no name. */
struct sxe__lua_module {
    const char *name;
    lua_CFunction open; /* opens the module; NULL: the name is reserved for a later module */
    /* the module opens no file, socket or process, and its memory is the state's */
    bool is_in_sandbox;
};
const struct sxe__lua_module *sxe__lua_modules(void);

/* The module of that name; NULL: there is no such module. */
const struct sxe__lua_module *sxe__lua_find_module(const char *name);

/* Run what scripts queued with sxe_register, in order: 0, or -EINVAL after logging. */
int sxe__lua_init_compat(lua_State *main);

/* sxe__lua_init_http makes the servers of http.serve listen, and returns 0, or -EINVAL after
 * logging; sxe_lua_init calls it after sxe__lua_init_compat.
 * sxe__lua_close_http frees these servers; sxe_lua_delete calls it between sxe__lua_tasks_close and
 * lua_close. So call sxe_fini before sxe_lua_delete. */
int sxe__lua_init_http(lua_State *main);
void sxe__lua_close_http(void);

/* The id of the request that is a task's origin, for sxe__lua_contents; NULL: the request is
 * over. */
const char *sxe__lua_http_id_of(uint64_t origin);

/* A function for scripts: returns traceparent and tracestate for requests that the running task
 * sends. Returns nothing if the task's origin is not a request, or if that request has no trace, or
 * its reply is over. */
int sxe__lua_http_trace(lua_State *L);

/* Called when no code of the script can run any more: from now on the script's child processes keep
 * the loop running until they have ended. */
void sxe__lua_spawn_finish(void);

/* The result of the script's top level, such as a handler. sxe__lua_keep_script, a lua_CFunction,
 * keeps its argument as that result; sxe__lua_push_script pushes the result, or nil if there is no
 * result yet. */
int sxe__lua_keep_script(lua_State *L);
void sxe__lua_push_script(lua_State *L);

/* ---- Counters (sxe-lua-stats.c) ---- */

/* Show `number` counters of C in the group, and push its handle. Names and values are borrowed as
 * long as the state lives. Raises an error if there are too many groups or counters. */
void sxe__lua_stats_push(lua_State *L, const char *group, const char *const *names, int64_t *values,
                         unsigned number);

/* ---- Options; sxe-lua-internal.h has more ---- */

/* Like sxe__lua_option_names, for a table that may have list items, too. */
void sxe__lua_option_names_of_list(lua_State *L, int table, const char *const *names,
                                   const char *what);

/* The text on top, which is an option; raises "http.serve: ip must be a string, not a table". */
const char *sxe__lua_option_text(lua_State *L, const char *what, const char *name);

/* ---- Texts (sxe-lua-text.c) ---- */

/* The string at a stack index, for a function of C that takes a text; NULL: the value is no string,
 * or it contains a zero byte, at which C would cut it. */
const char *sxe__lua_text(lua_State *L, int index);

/* Push the value at a stack index as a line of the log shows it: a zero byte becomes "\0". */
const char *sxe__lua_push_shown(lua_State *L, int index);

int sxe__lua_split(lua_State *L); /* sxe.split (sxe-lua-split.c) */

/* ---- Protected calls from C ---- */

/* Call the function on L's stack with its arguments, outside of a task, so that a wait in the
 * function is an error. Errors get a traceback. Returns 0, or -EINVAL after logging an error.
 * `where` names the function in the log: "on_read of 0.0.0.0:80". */
int sxe__lua_pcall(lua_State *L, int arguments, int results, const char *where);

/* Like sxe__lua_pcall, but sxe__lua_message_handler is below the function already, and stays
 * there. */
int sxe__lua_pcall_handled(lua_State *L, int arguments, int results, const char *where);

/* The state of this thread. */
struct sxe_lua *sxe__lua_current(void);
lua_State *sxe__lua_main(struct sxe_lua *lua);

#endif
