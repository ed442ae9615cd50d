/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.realm": isolated states in the thread of their owner, thousands of them, for
 * code that is not trusted. A realm has a limit of memory, a limit of CPU time for each call, a
 * list of what it may require, and functions that its owner offers. A fault of a realm is a result
 * for its owner: nil, a text, and "time", "memory" or "error".
 *
 * Place: a realm is a lua_State of its own with the libraries of a sandbox
 * (sxe-lua-sandbox-private.h), and without tasks: a call into it is for the owner like a call of a
 * function of C, which cannot wait. The state of the thread, sxe__lua_current(), is always the
 * owner's. Values go across as bytes (sxe-lua-clone-private.h).
 *
 *     sxe-lua-realm.c        realm.new, its options, the methods
 *     sxe-lua-realm-state.c  a realm's lua_State: memory, libraries, require
 *     sxe-lua-realm-call.c   a call into a realm, and calls of offered functions out of it
 *
 *     owner L                                   realm's main state
 *     realm:call -- arguments as bytes -->      realm_entry -> run_in_realm -> a script's function
 *                   run_offered         <-----  call_offered
 *                   its results         ----->  goes on
 *     take_results  <-- results as bytes --
 *
 * Memory: blocks come from the heap of the owner, whose slabs all realms share, so a realm wastes
 * no slab of its own. The realm counts its bytes and refuses what is above its limit; the owner's
 * limit counts the slabs. No block is larger than 2 MiB, because a function of C may take as long
 * as its block is large.
 *
 * Time: struct sxe__lua_realm_watch has the call that runs. The watchdog's thread looks at it every
 * 10 ms, and demands an error from it as from a task: first once, then at every instruction. The
 * hook goes into the coroutine that runs; in a function of the owner it does nothing, and the
 * demand waits until the realm goes on. The time of offered functions counts, but no error of the
 * realm's limit is raised in them. An error that is for the owner's task (its cpu_ms) is raised in
 * the realm, too, and again in the owner when the call returns.
 *
 * Limits: a realm inside of a realm is not possible. An owner's function that a realm calls may
 * call other realms as long as the stack of C has room (SXE__LUA_REALM_STACK).
 */
#ifndef SXE_LUA_REALM_PRIVATE_H
#define SXE_LUA_REALM_PRIVATE_H

#include "sxe-lua-clone-private.h"
#include "sxe-lua-core-private.h"
#include "sxe-lua-sandbox-private.h"

enum {
    SXE__LUA_REALM_BLOCK = SXE__LUA_SANDBOX_MEMORY / 16,
    /* Bytes of the stack of C between the first call into a realm and the last one inside of it: a
     * worker's thread has 1 MiB, of which a realm's script can use half. */
    SXE__LUA_REALM_STACK = 128 << 10,
    SXE__LUA_REALM_NAME = 32
};

enum sxe__lua_realm_counter {
    SXE__LUA_REALMS_OPEN,
    SXE__LUA_REALMS_BYTES,
    SXE__LUA_REALMS_MADE,
    SXE__LUA_REALMS_CALLS,
    SXE__LUA_REALMS_ERRORS,
    SXE__LUA_REALMS_TIMES,
    SXE__LUA_REALMS_MEMORIES,
    SXE__LUA_REALMS_COUNTERS
};

/* The part that all realms of a state share; a userdata of that state. */
struct sxe__lua_realms {
    int64_t counters[SXE__LUA_REALMS_COUNTERS];
    uint64_t calls;    /* number of the last call */
    const char *stack; /* where on the stack of C the outermost call began; NULL: none runs */
};

/* A userdata of the owner, with the metatable "sxe.realm". Its user value is the list of offered
 * functions. */
struct sxe__lua_realm {
    lua_State *main; /* NULL: closed */
    struct sxe__lua_realms *realms;
    struct sxe__lua_heap *heap; /* the owner's */
    size_t max;
    size_t held;
    size_t most;
    bool is_owner_short; /* the owner's heap refused a block, not the realm's limit */
    bool takes_all_keys; /* tables may have any number of keys: values are being copied */
    bool is_running;
    bool keeps_result; /* the call is the first one: keep the value that the code returns */
    uint32_t time_max_ms;
    int status; /* of the call, as lua_pcall returns it; if not LUA_OK, `passed` is the error */
    lua_State *owner;    /* while a call runs: the coroutine of the owner that made it */
    int self;            /* while a call runs: index of the userdata on that coroutine's stack */
    lua_Integer offered; /* number of the offered function that is called */
    struct sxe__lua_bytes passed; /* values on their way in or out; freed at the end of the call */
    const char *text;             /* the code to run; NULL: the first argument names the function */
    size_t length;
    const char *chunk; /* name of the text for messages, as lua_load takes it */
    char name[SXE__LUA_REALM_NAME];
};

/* Make the realm's lua_State, or return false: memory is missing. */
bool sxe__lua_realm_open(struct sxe__lua_realm *realm);
void sxe__lua_realm_close(struct sxe__lua_realm *realm);

/* Whether a realm may have this module of libsxe on its list. */
bool sxe__lua_realm_may_require(const char *name);

/* A lua_CFunction for a new realm: opens its libraries. Arguments: the realm, as light userdata.
 * realm->passed has two values: the names that it may require, each with `true` or the path of its
 * file; and the list of the names of offered functions. `call_offered` becomes each of them, with
 * the realm and the function's number as upvalues. */
int sxe__lua_realm_fill(lua_State *R);

/* Read a whole file of at most SXE__LUA_SANDBOX_TEXT bytes into *bytes: 0 or an errno. */
int sxe__lua_realm_read_file(const char *path, struct sxe__lua_bytes *bytes);

/* A lua_CFunction of realms; upvalues: the realm, the function's number. */
int sxe__lua_realm_call_offered(lua_State *R);

/* Raise an error unless a call into the realm can begin. */
void sxe__lua_realm_check(lua_State *L, const struct sxe__lua_realm *realm);

/* Call into a realm, after sxe__lua_realm_check; the owner's stack has the realm at index `self`,
 * and the arguments from `first` to the top. Returns the number of results, or nil, error, kind.
 * Raises an error if an argument cannot be copied. With a function, call that function of C in
 * place of a script's. */
int sxe__lua_realm_run(lua_State *L, int self, int first, lua_CFunction function);

#endif
