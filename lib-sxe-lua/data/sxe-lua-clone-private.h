/* SPDX-License-Identifier: MIT
 *
 * What: values of one Lua state as bytes, from which another state of this process makes copies
 * (structured clone): nil, booleans, numbers, strings, json.null, tables with cycles and shared
 * references, marks of json.array. Tables lose other metatables.
 *
 * Place: messages of workers; arguments and results of realms. The bytes never leave the process,
 * so they are in its byte order and the reader trusts them. The values are not trusted: what is
 * copied may come from a hostile script. So the reader takes no size of a table from the writer's
 * state, and both look at the watchdog.
 *
 * Shape: a byte that says whether a table occurs twice, the number of values, then the values, each
 * a tag and what belongs to it:
 *
 *     TABLE slots  key value  key value ...  END      the n-th TABLE or CODE is object n
 *     CODE length bytecode upvalues  value value ...
 *     AGAIN n                                         object n
 *
 * No function here calls itself: tables that are not complete are on the Lua stack, so depth costs
 * no stack of C.
 *
 * Limits: SXE__LUA_CLONE_DEPTH, SXE__LUA_CLONE_MAX bytes.
 */
#ifndef SXE_LUA_CLONE_PRIVATE_H
#define SXE_LUA_CLONE_PRIVATE_H

#include "sxe-lua-private.h"

#define SXE__LUA_CLONE_DEPTH 100
#define SXE__LUA_CLONE_MAX   ((size_t)64 << 20)

enum sxe__lua_clone_tag {
    SXE__LUA_CLONE_NIL,
    SXE__LUA_CLONE_FALSE,
    SXE__LUA_CLONE_TRUE,
    SXE__LUA_CLONE_NULL, /* json.null */
    SXE__LUA_CLONE_INTEGER,
    SXE__LUA_CLONE_FLOAT,
    SXE__LUA_CLONE_STRING,
    SXE__LUA_CLONE_TABLE,
    SXE__LUA_CLONE_LIST, /* a table that json.array marked as a list */
    SXE__LUA_CLONE_END,
    SXE__LUA_CLONE_CODE,
    SXE__LUA_CLONE_GLOBALS, /* an upvalue that is the table of globals */
    SXE__LUA_CLONE_AGAIN
};

struct sxe__lua_bytes {
    char *data; /* from malloc; the owner of the struct frees it */
    size_t length;
    size_t size;
};

/* Encode the values from stack index `first` to the top: returns LUA_OK. After a failure the error
 * is on top, such as "message.a.b is a function, which cannot be sent to another state", and *bytes
 * is empty. `what` names the value in errors. For several values, `what` is "argument " and
 * `number` is the number of the first one; otherwise `number` is 0. has_code: the first value may
 * be a function of Lua, whose upvalues are copied, too. */
SXE_MUST_USE int sxe__lua_clone_write(lua_State *L, int first, const char *what, int number,
                                      bool has_code, struct sxe__lua_bytes *bytes);

/* Like sxe__lua_clone_write, for values without code that take at most `max` bytes. */
SXE_MUST_USE int sxe__lua_clone_write_within(lua_State *L, int first, const char *what, int number,
                                             size_t max, struct sxe__lua_bytes *bytes);

/* Push copies of the values; returns their number. Raises an error if memory is missing. */
int sxe__lua_clone_read(lua_State *L, const struct sxe__lua_bytes *bytes);

void sxe__lua_clone_free(struct sxe__lua_bytes *bytes);

#endif
