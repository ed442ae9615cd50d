/* SPDX-License-Identifier: MIT
 *
 * What: declarations for the files that make up the state: sxe-lua.c, -state, -init, -alloc,
 * -watch, -interrupt, -hooks, -coroutine, -require, -strict, -sandbox*, -call, -bind, -error,
 * -handle. All other files include only sxe-lua-private.h.
 */
#ifndef SXE_LUA_CORE_PRIVATE_H
#define SXE_LUA_CORE_PRIVATE_H

#include <pthread.h>
#include <time.h>

#include "sxe-lua-private.h"

/* The places where require looks for modules written in Lua, also in a sandbox. */
#define SXE__LUA_PATH \
    "./?.lua;./?/init.lua;./rocks/share/lua/5.4/?.lua;./rocks/share/lua/5.4/?/init.lua"

/* ---- Memory (sxe-lua-alloc.c) ----
 *
 *     chunk 1 MiB    [ head | slab | slab | ... | slab ]     aligned_alloc'ed, freed when empty
 *     slab 16 KiB    [ head | block | block | ... ]          all blocks of one size
 *     block          16 ... 1024 bytes, 24 sizes             larger ones are malloc'ed
 *
 * A slab is found from a block by its address. Freed blocks are listed in their slab, slabs with
 * room in their size's list: the usual path takes the first block of the first slab, and puts it
 * back. The cap counts whole slabs and large blocks. */

enum { SXE__LUA_SIZES = 28, SXE__LUA_SLAB_SIZE = 16384 };

struct sxe__lua_slab;
struct sxe__lua_chunk;

struct sxe__lua_heap {
    size_t max;
    size_t held; /* bytes of slabs in use and of large blocks */
    size_t most; /* the greatest value that held ever had */
    /* how many blocks were allocated or enlarged so far */
    uint64_t allocations;
    struct sxe__lua_slab *slabs[SXE__LUA_SIZES]; /* slabs with room, by size */
    struct sxe__lua_chunk *chunks;               /* chunks with room */
    /* For tests, if fail_times is not 0: fail_after more allocations succeed, then fail_times
     * fail. */
    uint64_t fail_after;
    uint64_t fail_times;
};

/* The allocator of a state, for lua_newstate: a lua_Alloc whose `ud` is the heap. */
void *sxe__lua_allocate(void *heap, void *block, size_t old_size, size_t new_size);
void sxe__lua_heap_free(struct sxe__lua_heap *heap);

/* ---- The watchdog (sxe-lua-watch.c, sxe-lua-interrupt.c) ----
 *
 *     the loop's thread                             the watchdog's, every 10 ms
 *
 *     enter: running = L, sequence becomes odd      odd, and the same as 10 ms ago?
 *     lua_resume ...                                and enough CPU time was used since:
 *        SIGRTMIN <------------------------------   a demand, and a signal
 *        a hook in running, at the next instruction or return
 *        the hook makes way, or raises an error
 *     leave: sequence becomes even
 */

/* Read and write an atomic field of a watch. */
#define SXE__LUA_LOAD(field)         __atomic_load_n(&(field), __ATOMIC_ACQUIRE)
#define SXE__LUA_STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELEASE)

enum sxe__lua_demand {
    SXE__LUA_NO_DEMAND,
    SXE__LUA_ANSWER,   /* only log how long a function of C took */
    SXE__LUA_MAKE_WAY, /* let other tasks run, if the task can yield */
    SXE__LUA_RAISE,    /* raise once: __close functions may still run */
    SXE__LUA_END       /* raise at every instruction, so that pcall does not help */
};

struct sxe__lua_hook {
    lua_State *L;
    lua_Hook function;
    int mask;
    int count;
};

/* The call into a realm (sxe-lua-realm-private.h) that runs, or from which a function of the owner
 * was called. A call of the owner's function into another realm keeps these values and puts them
 * back. */
struct sxe__lua_realm_watch {
    uint64_t call;       /* number of the call, 0: none; this field and the next ones are atomic */
    uint64_t asked_call; /* the value that `call` had when `demand` was made */
    uint32_t demand;
    uint64_t start_cpu_ns; /* CPU time at which the watchdog saw the call first; 0: not yet */
    uint64_t max_ns;
    /* Only the loop's thread uses the next fields. */
    bool takes_results; /* the owner's copies of results are made: this is the realm's time, too */
    bool has_exceeded;  /* the error about the realm's limit was raised */
    bool has_passed;    /* an error that is for the owner's task was raised in the realm */
    /* Only the watchdog's thread uses this: the last call that got an error. */
    uint64_t raised_call;
};

struct sxe__lua_watch {
    struct sxe__lua_watched *top;  /* the innermost call of lua_resume by the scheduler */
    lua_State *volatile running;   /* the coroutine that runs now; the signal handler reads it */
    struct sxe__lua_hook replaced; /* the script's own hook, which the watchdog's hook replaced */
    uint64_t (*cpu_ns)(void);      /* returns the CPU time of the loop's thread */
    uint32_t sequence;             /* odd while Lua runs; this field and the next ones are atomic */
    uint32_t asked_sequence;       /* the value that `sequence` had when `demand` was made */
    uint32_t demand;               /* what the running task has to do: an enum sxe__lua_demand */
    uint64_t asked_ns;             /* monotonic time at which the demand was first made */
    uint64_t asked_cpu_ns;         /* CPU time at which the demand was last made or raised */
    uint64_t start_cpu_ns;         /* CPU time at which `sequence` became odd; 0: not yet known */
    uint64_t spent_ns; /* CPU time that the running task had used before its last resume */
    uint64_t rest_ns;  /* CPU time before which no signal sets the hook again */
    bool is_ending;    /* the state ends, so everything that runs must end; atomic */
    struct sxe__lua_realm_watch realm;
    /* a profiler that waits for the running calls; NULL: none. Its signal handler sets this. */
    void (*volatile take_calls)(const char *calls, size_t length);
    /* Only the watchdog's thread uses the fields from here on. */
    pthread_t thread; /* the loop's thread */
    clockid_t thread_clock;
    uint32_t seen_sequence;
    bool has_raised;
    uint64_t complain_ns; /* when to log that a call has not returned */
    struct sxe_lua *next;
};

/* Begin to watch the state of this thread, or go on watching it after fork(2): 0, or -errno of
 * pthread_create(3). */
SXE_MUST_USE int sxe__lua_watch_start(struct sxe_lua *lua);
void sxe__lua_watch_stop(struct sxe_lua *lua);

/* Whether the watchdog's thread sleeps, because no state has run Lua for a while. */
bool sxe__lua_watch_is_asleep(void);

/* The watchdog's thread calls this every 10 ms for each state. cpu_ns is the CPU time of the loop's
 * thread, now_ns the monotonic time. */
void sxe__lua_watch_look(struct sxe_lua *lua, uint64_t cpu_ns, uint64_t now_ns);

/* End all code that runs in the state; any thread may call this. The code is interrupted by errors,
 * as if it had no CPU time left. */
void sxe__lua_watch_end(struct sxe_lua *lua);

/* End the time slice of the running task now, as the watchdog's thread does when the slice is used
 * up. */
void sxe__lua_watch_end_slice(void);

/* The demand on the task that runs now; a demand on an earlier task does not count. */
enum sxe__lua_demand sxe__lua_watch_demand(const struct sxe__lua_watch *watch);

/* The demand on the call into a realm, if L belongs to that realm. */
enum sxe__lua_demand sxe__lua_watch_realm_demand(const struct sxe__lua_watch *watch, lua_State *L);

/* Set the script's hook again. If another coroutine got the watchdog's hook since then, set the
 * hook of the main state, which new coroutines inherit. */
void sxe__lua_watch_clear_hook(const struct sxe__lua_watch *watch, lua_State *L);

/* Set the hook in the running L, but not again until L has run for four times as long as this took.
 * For signal handlers. */
void sxe__lua_watch_set_hook(struct sxe__lua_watch *watch, lua_State *L);

/* Answer the profiler that asked for the calls of L (sxe-lua-calls.c); without calls if L is
 * NULL. */
void sxe__lua_tell_calls(struct sxe_lua *lua, lua_State *L);

/* The hook, with which the watchdog interrupts what runs in L (sxe-lua-interrupt.c). */
void sxe__lua_interrupt(lua_State *L, lua_Debug *ar);

/* Raise, in a function of C that called into a realm, the error that ends the task: the watchdog
 * demanded it while the realm ran. */
int sxe__lua_raise_passed(lua_State *L);

/* After an error was raised inside of a hook, Lua calls no more hooks: sxe__lua_allow_hooks has Lua
 * call hooks in L again (sxe-lua-hooks.c). sxe__lua_find_hook_flag must be called first, once per
 * process. */
void sxe__lua_find_hook_flag(void);
void sxe__lua_allow_hooks(lua_State *L);

/* Note that another coroutine of the same task runs from now on. A demand on the task applies to
 * that coroutine. */
void sxe__lua_watch_switch(struct sxe_lua *lua, lua_State *running);

/* ---- Coroutines (sxe-lua-coroutine.c) ---- */

/* A coroutine that a script resumed. The struct is on the C stack of the function (resume or wrap)
 * that resumed it. */
struct sxe__lua_level {
    lua_State *coroutine;
    lua_State *parent;
    bool may_yield; /* whether the parent can yield at the place where it resumed the coroutine */
    struct sxe__lua_level *below;
};

/* ---- The state ---- */

struct sxe__lua_call;

/* The contents of a state (sxe-lua-init.c). The files that make and end a state know the modules
 * only through this struct. */
struct sxe__lua_contents {
    const struct sxe__lua_module *modules; /* the last one has no name */
    void (*open)(lua_State *L);            /* called once, in a protected call */
    void (*close)(void);                   /* called after the tasks have ended, before lua_close */
    /* Returns the id of the request that is a task's origin, for the log. */
    const char *(*id_of)(uint64_t origin);
    int (*start)(struct sxe_lua *lua); /* called by sxe_lua_init */
    lua_Hook interrupt;                /* the hook of the watchdog (sxe-lua-interrupt.c) */
};

struct sxe_lua {
    lua_State *main;
    const struct sxe__lua_contents *contents;
    struct sxe_lua_config config; /* the program's configuration, with all defaults filled in */
    struct sxe__lua_heap heap;
    struct sxe__lua_watch watch;
    struct sxe__lua_level *level;
    /* how many scripts have a top level that has not ended: they may make globals */
    unsigned loading;
    unsigned requiring; /* modules that are being loaded: they may make globals, too */
    bool has_failed;    /* the top level of a script failed */
    /* how many errors were logged, except errors that another task got by joining the failed
     * task */
    uint64_t errors;
    struct sxe__lua_call *calls;
    uintptr_t calls_made;
    struct sxe__lua_workers *workers; /* the workers of the state; NULL: sxe.worker is not open */
    struct sxe__lua_worker *worker;   /* the worker that runs this state; NULL: no worker does */
    struct sxe__lua_realms *realms;   /* counts of realms; NULL: sxe.realm is not open */
    const struct sxe__lua_class_spec *classes[SXE__LUA_CLASSES];
};

/* The addresses of these variables are keys in the registry. */
extern const char sxe__lua_methods_key; /* class -> methods */

/* Like sxe_lua_new, but with these contents, which the state borrows. */
struct sxe_lua *sxe__lua_new(const struct sxe_lua_config *config,
                             const struct sxe__lua_contents *contents);
void sxe__lua_set_current(struct sxe_lua *lua);

/* Mark a new state as a realm, for sxe__lua_is_realm. The mark is the word of lua_getextraspace()
 * that sxe__lua_bar uses in other states. */
void sxe__lua_mark_realm(lua_State *L);

/* sxe-lua-init.c calls each of these functions once in each state, in a protected call. The
 * functions leave the stack as it was. */
void sxe__lua_open_handles(lua_State *L);
void sxe__lua_open_coroutine(lua_State *L);
void sxe__lua_open_require(lua_State *L);
void sxe__lua_open_strict(lua_State *L);
void sxe__lua_open_clock(lua_State *L);
void sxe__lua_open_sandbox(lua_State *L); /* call this after everything that makes globals */

/* The part of sxe__lua_open_sandbox that realms have, too: leave of Lua's libraries only what a
 * sandbox has, and replace functions that may take long. */
void sxe__lua_limit_libraries(lua_State *L);

/* ---- Errors (sxe-lua-error.c) ---- */

/* Call these functions when the error on top of L leaves a coroutine. sxe__lua_keep_trace keeps the
 * error's traceback while the coroutine's stack exists; sxe__lua_keep_raised keeps the error
 * itself, in the form that is passed on. */
void sxe__lua_keep_trace(lua_State *L, lua_State *coroutine);
void sxe__lua_keep_raised(lua_State *L);

/* Keep the local variables of the first function of Lua from this level on (sxe-lua-locals.c). */
void sxe__lua_keep_locals(lua_State *L, lua_State *coroutine, int level);

/* Write the value at an index, or all fields of a table, in the style of Lua, cut at the end of
 * room. No metamethod is called. Returns the bytes used. */
void sxe__lua_show_value(lua_State *L, int index, char *room, size_t size);
size_t sxe__lua_show_fields(lua_State *L, int table, char *room, size_t size);

/* Call the function in protected mode on the main state, with one light userdata and without
 * results. Return 0; or -ENOMEM or -EINVAL after logging the error, which `where` describes. */
int sxe__lua_protect(struct sxe_lua *lua, lua_CFunction function, void *argument,
                     const char *where);

/* ---- Calls from C, which run as tasks at once (sxe-lua-call.c) ---- */

struct sxe__lua_call {
    /* Take the results from the stack. Called in protected mode; returns 0 or -errno. */
    int (*take)(lua_State *L, struct sxe__lua_call *call);
    const char *where;
    int result; /* private, like the members after it */
    uintptr_t number;
    struct sxe__lua_call *below;
};

/* Like sxe__lua_protect, for a function that returns a function and its arguments. Returns how many
 * values these are, on the main state's stack; or -ENOMEM or -EINVAL after logging. */
int sxe__lua_prepare(struct sxe_lua *lua, lua_CFunction function, void *argument,
                     const char *where);

/* Run the function and arguments on the main state's stack. Returns 0 or the result of `take`;
 * -EINVAL after logging an error; -ECANCELED; -ENOMEM; or -EINPROGRESS if the function waits; in
 * that case `take` will not be called. on_end is sxe__lua_call_ended, or a function that calls
 * it. */
int sxe__lua_run(struct sxe_lua *lua, int arguments, struct sxe__lua_call *call,
                 sxe__lua_on_end on_end);
void sxe__lua_call_ended(lua_State *L, int status, int results, void *user);

/* Whether the running task is a script's top level. */
bool sxe__lua_is_top_level(void);

#endif
