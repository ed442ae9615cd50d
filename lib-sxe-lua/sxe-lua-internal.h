/* SPDX-License-Identifier: MIT
 *
 * What: what lib-sxe-store, -postgres, -regex and -zlib use of lib-sxe-lua, beside its public
 * header: tasks that wait, how calls fail, tables of options, addresses of names.
 * sxe-lua-private.h says how a call parks its task.
 *
 * Place: sxe-lua-private.h includes it; so do the files of libraries above that have modules whose
 * calls wait. It is not installed.
 */
#ifndef SXE_LUA_INTERNAL_H
#define SXE_LUA_INTERNAL_H

#include <lua.h>

#include "sxe-lua.h"

/* Visible in libsxe-lua.so.0, because lib-sxe-store, -postgres and -regex call these functions; a
 * program cannot rely on them. */
#pragma GCC visibility push(default)

/* ---- Tasks ---- */

enum sxe__lua_reason {
    SXE__LUA_EVENT, /* the event for which the task waited has happened */
    SXE__LUA_TIMEOUT,
    SXE__LUA_CANCELLED
};

/* The handle of the running task; 0 outside of a task, as in callbacks of 2010. */
uint64_t sxe__lua_running(lua_State *L);

/* Park the running task until it is woken, or until deadline_ns (0: never); then the continuation k
 * gets `context`. If the task is cancelled or times out, on_leave(what) is called first, to forget
 * the task's handle. Where a wait is impossible this raises an error that names the function of C.
 * The caller returns the result of this function. */
int sxe__lua_park(lua_State *L, uint64_t deadline_ns, void (*on_leave)(void *what), void *what,
                  lua_KFunction k, lua_KContext context);

/* Whether sxe__lua_park would wait. False: it would raise or, in a cancelled task, call k at once.
 * So do not begin work whose end the task would wait for. */
bool sxe__lua_may_wait(lua_State *L);

/* The reason why the continuation of a parked task runs. */
enum sxe__lua_reason sxe__lua_woken(lua_State *L);

/* Wake a parked task. False: the task is gone, or not parked. */
bool sxe__lua_wake(uint64_t task, enum sxe__lua_reason reason);

/* A function of C that takes long calls this, which raises the error that the watchdog demands
 * (sxe-lua-interrupt.c). */
void sxe__lua_watch_poll(lua_State *L);

/* ---- The state ---- */

/* Have the collector call `function` when the state is deleted. Finalizers of scripts may run after
 * that, and the functions that they call must refuse. Raises an error if memory is missing; then
 * `function` will not be called. */
void sxe__lua_at_end(lua_State *L, lua_CFunction function);

/* Raises if the state is being deleted: an object made now would not be finalized any more. */
void sxe__lua_refuse_at_end(lua_State *L);
bool sxe__lua_is_closing(void);

/* Whether L is in a realm (docs/realms.md): its code is not trusted. */
bool sxe__lua_is_realm(lua_State *L);

/* Make and push the metatable of a class of userdata, like luaL_newmetatable. Scripts cannot get
 * this metatable, because they must not call its finalizer. */
void sxe__lua_new_class(lua_State *L, const char *name);

/* The state's configuration, with all defaults filled in. */
const struct sxe_lua_config *sxe__lua_config(void);

/* ---- Results, options ---- */

/* Return nil, message, code: the results of a call that failed. */
int sxe__lua_fail(lua_State *L, const char *message);
int sxe__lua_fail_errno(lua_State *L, int error, const char *what);

/* Return nil, "timeout" or nil, "cancelled", depending on what woke the task. */
int sxe__lua_fail_woken(lua_State *L);

/* The deadline from the seconds at an argument, or in the field `timeout` of a table there; 0: none
 * given. */
uint64_t sxe__lua_deadline(lua_State *L, int argument);
/* Like sxe__lua_deadline, for a table that has other options too, which the caller checks. */
uint64_t sxe__lua_option_deadline(lua_State *L, int argument);

/* Raise an error unless there is a table at the stack index `table`, which is positive, and all its
 * keys are in the list of names, which ends with NULL: "pool.open has no option 'nmae'"
 * (sxe-lua-option.c). */
void sxe__lua_option_names(lua_State *L, int table, const char *const *names, const char *what);

/* The value on top as an integer. *is_integer: whether the value is an integer; a string of digits
 * is not. */
lua_Integer sxe__lua_option_integer(lua_State *L, int *is_integer);

/* An option of the table at a stack index that must be true or false; `otherwise` if the option is
 * missing. Raises an error such as "http.static: listing must be true or false, not a string". */
bool sxe__lua_option_bool(lua_State *L, int table, const char *what, const char *name,
                          bool otherwise);

/* Use this in place of luaL_checkstring where a text of C is needed: it also raises an error if the
 * string contains a zero byte (sxe-lua-text.c). */
const char *sxe__lua_check_text(lua_State *L, int argument);

/* Raise if the field tls of the options at an index is neither a boolean nor a table of options. */
void sxe__lua_tls_check(lua_State *L, int options);

/* ---- JSON (sxe-lua-json-list.c) ---- */

/* Mark the table on top as a list, even while it is empty. */
void sxe__lua_json_mark(lua_State *L);

/* Mark the metatable on top: tables with this metatable are lists, even if they are empty. */
void sxe__lua_json_mark_class(lua_State *L);

/* ---- Names (sxe-lua-resolve.c) ---- */

/* Make threads for look-ups, unless the loop has begun. Each module that looks names up calls this
 * once, in a protected call. */
void sxe__lua_open_resolve(lua_State *L);

/* Park the running task until a thread has looked up the name's addresses of a family (AF_UNSPEC:
 * any); k calls sxe__lua_resolved. */
int sxe__lua_resolve(lua_State *L, const char *host, int family, uint64_t deadline_ns,
                     lua_KFunction k);

/* Push the addresses as text, "127.0.0.1 ::1 ", and return 0. On failure push nil, a reason and
 * perhaps a code, and return how many values these are. */
int sxe__lua_resolved(lua_State *L);

#pragma GCC visibility pop

#endif
