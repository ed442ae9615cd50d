/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of require "sxe.pool" share. The files of require
 * "sxe.dict" also use the options, and the functions that try again while another process holds a
 * lock.
 *
 *     sxe-lua-pool.c         pools: their methods
 *     sxe-lua-pool-element.c elements: their fields, and what else they have
 *     sxe-lua-pool-open.c    pool.open, its options, timeouts
 *     sxe-lua-pool-field.c   fields: declared, and as values
 *     sxe-lua-pool-wait.c    trying again; tasks that wait for an element
 *     sxe-lua-option.c       options
 *
 * The fields of a pool are laid out as in C. Reads copy an element to the pool's scratch, which has
 * room for one element: so a script never sees half of a value that another process is writing.
 */
#ifndef SXE_LUA_POOL_PRIVATE_H
#define SXE_LUA_POOL_PRIVATE_H

#include "sxe-lua-private.h"
#include "sxe-pool-layout.h"
#include "sxe-pool-shared.h"

enum {
    SXE__LUA_POOL_NAME_SIZE = SXE_POOL_NAME_MAX + 1,
    SXE__LUA_POOL_STATES = 32,
    SXE__LUA_POOL_INDEX_BITS = 24, /* bits for the element's index in its handle */
    SXE__LUA_POOL_ELEMENTS = 1 << SXE__LUA_POOL_INDEX_BITS,
    SXE__LUA_POOLS = 256
};

#define SXE__LUA_POOL_WAIT_NS (100 * SXE_NS_PER_MS)

struct sxe__lua_pool {
    void *array;
    char *scratch; /* memory for one element, in a user value of the pool */
    size_t element_size;
    uint32_t index;   /* the place of the pool in sxe__lua_pools */
    uint64_t wait_ns; /* how long a call tries again while another process has the lock */
    bool is_open;
    bool is_shared; /* other processes use the pool, too */
    bool is_exact;  /* take finds the oldest element of all shards */
    bool is_timed;
    int on_timeout; /* a function in the registry; LUA_NOREF: move elements to the first state */
    unsigned states;
    char name[SXE__LUA_POOL_NAME_SIZE];
    char state[SXE__LUA_POOL_STATES][SXE__LUA_POOL_NAME_SIZE];
    double timeouts[SXE__LUA_POOL_STATES];
    struct sxe_pool_layout fields;
    /* for each state: the tasks that wait for an element in it */
    struct sxe__lua_line waiting[SXE__LUA_POOL_STATES];
    /* the loop of the watchers; NULL: the watchers were not started */
    struct ev_loop *loop;
    ev_io watcher;
    ev_fork fork_watcher;
};

/* The pools of a Lua state. This struct is in a userdata of the state, and so is each pool. */
struct sxe__lua_pools {
    unsigned number;
    struct sxe__lua_pool *pool[SXE__LUA_POOLS];
};

/* The pools of this thread's Lua state; NULL: the state is closed. */
extern _Thread_local struct sxe__lua_pools *sxe__lua_pools;

/* ---- Pools (sxe-lua-pool.c) ---- */

/* The index of a state; SXE__LUA_POOL_STATES: no state has that name. */
unsigned sxe__lua_pool_find_state(const struct sxe__lua_pool *pool, const char *name);

/* Push how a pool was found, "created" for instance. Returns 1, the number of values. */
int sxe__lua_pool_push_found(lua_State *L, const void *array);

/* Push the results of a sync: true; or nil, a reason and a code. Returns the number of results. */
int sxe__lua_pool_push_synced(lua_State *L, int result);

/* Push the element of a lease, and the lease. Returns 2, the number of values. */
int sxe__lua_pool_push_leased(lua_State *L, const struct sxe__lua_pool *pool,
                              const SXE_POOL_LEASE *lease);

/* ---- Elements (sxe-lua-pool-element.c) ---- */

extern const struct sxe__lua_class_spec sxe__lua_pool_element;

/* Push the element, nil for SXE_POOL_NO_INDEX. Returns 1, the number of values. */
int sxe__lua_pool_push_element(lua_State *L, const struct sxe__lua_pool *pool, unsigned id);

/* The pool of an element's handle, with the element's index in *id; NULL: the element is gone. */
struct sxe__lua_pool *sxe__lua_pool_find_element(uint32_t index, uint32_t generation, unsigned *id);

/* The state that an element is in. Raises if the state is impossible. */
unsigned sxe__lua_pool_state_of(lua_State *L, const struct sxe__lua_pool *pool, unsigned id);
int sxe__lua_pool_raise_damaged(lua_State *L, const struct sxe__lua_pool *pool);

/* Seconds since `since`, a time of the pool. */
double sxe__lua_pool_age(const struct sxe__lua_pool *pool, SXE_TIME since);

/* ---- Opening (sxe-lua-pool-open.c) ---- */

/* pool.open(options); its upvalue is the metatable that sxe__lua_pool_push_guard pushes. */
int sxe__lua_pool_open(lua_State *L);
void sxe__lua_pool_push_guard(lua_State *L);

/* ---- Fields (sxe-lua-pool-field.c) ---- */

/* Read the fields of a pool from the value on top, which has one of three forms, and write them as
 * the text that opens a pool. The fields of the third form are sorted by size, then by name:
 *     "u64 hits, char[24] name"
 *     {"u64 hits", "char[24] name"}
 *     {hits = "u64", name = "char[24]"}
 * Raises an error if the value has none of these forms. */
void sxe__lua_pool_take_fields(lua_State *L, struct sxe_pool_layout *fields,
                               char text[SXE_POOL_FIELDS_MAX + 1]);

/* Push a field of an element, whose copy is in memory of this process. */
void sxe__lua_pool_push(lua_State *L, const struct sxe_pool_field *field, const void *element);

/* Set a field to the value at a stack index, or add that value to the field. Raise an error, and
 * change nothing, if the result does not fit. */
void sxe__lua_pool_set(lua_State *L, const struct sxe_pool_field *field, void *element, int index);
void sxe__lua_pool_add(lua_State *L, const struct sxe_pool_field *field, void *element, int index);

/* ---- Waiting (sxe-lua-pool-wait.c) ---- */

/* Try again after a call that found a lock held, or an element being written. k tries again in each
 * of the task's turns for a millisecond, then once per millisecond. Outside of a task this function
 * sleeps instead: up to wait_ns before the loop runs, up to 2 ms afterwards. When wait_ns are over,
 * the results are nil, "busy", EAGAIN. `until` is 0 at first, then the context that k gets. */
int sxe__lua_again(lua_State *L, uint64_t wait_ns, lua_KFunction k, lua_KContext until);
bool sxe__lua_may_try_again(lua_State *L, uint64_t wait_ns, lua_KContext until);

/* How long calls wait: the option `wait`, in seconds; SXE__LUA_POOL_WAIT_NS if it is missing. */
uint64_t sxe__lua_option_wait(lua_State *L);

/* For k: whether the task was cancelled while it waited; if so, k returns sxe__lua_fail_woken(L).
 */
bool sxe__lua_was_cancelled(lua_State *L, int status);

/* Wait until an element may be in the state, then go on with k; from deadline_ns on (0: never) the
 * results are nil, "timeout". */
int sxe__lua_pool_wait(lua_State *L, struct sxe__lua_pool *pool, unsigned state,
                       uint64_t deadline_ns, lua_KFunction k);

/* Call when a task no longer waits for the state: wakes another task that does, or stops watching
 * the state. */
void sxe__lua_pool_waited(struct sxe__lua_pool *pool, unsigned state);

/* Call when an element came into the state: wakes a task that waits for the state. */
void sxe__lua_pool_came(struct sxe__lua_pool *pool, unsigned state);

/* Stop a pool's watchers, before the pool is deleted. */
void sxe__lua_pool_unwatch(struct sxe__lua_pool *pool);

/* Call when opening failed with `error`. If forgotten dicts and snapshots may hold the memory or
 * descriptors that are missing, this function collects garbage, which closes them, and returns
 * true. The caller then tries once more. */
bool sxe__lua_makes_room(lua_State *L, int error);

/* ---- Options: of the table at 1 (sxe-lua-option.c) ---- */

bool sxe__lua_option_is_nil(lua_State *L, const char *name);
bool sxe__lua_option_flag(lua_State *L, const char *name);

/* Raise an error if the table has one of the options `names`. The caller found that the option
 * `without` is missing, so these options come from the file. */
void sxe__lua_option_unsaid(lua_State *L, const char *const *names, const char *without);

/* A number option, from least (or 1, if least is 0) to most; 0 if the option is missing and least
 * is 0. Raises an error for any other value; `what` names the unit in the error: "elements". */
unsigned sxe__lua_option_count(lua_State *L, const char *name, unsigned least, unsigned most,
                               const char *what);

/* The bits SXE_POOL_OPTION_REPAIR, _VERIFIED and _UNVERIFIED, as the table sets them. */
unsigned sxe__lua_option_file_options(lua_State *L);

/* Push the option `file`, and return its text, which is valid as long as it is on the stack. NULL:
 * the option is missing. Raises an error if the option is not a path. */
const char *sxe__lua_option_file(lua_State *L);

/* Copy the value on top as a name. Raises an error, in which `what` ("a state") says what is named,
 * if the value is no name. */
void sxe__lua_option_name(lua_State *L, char name[SXE__LUA_POOL_NAME_SIZE], const char *what);

/* Call when opening failed with `error`: raises an error for EINVAL, a mistake in the script;
 * otherwise pushes nil, why, error. */
int sxe__lua_option_refused(lua_State *L, const char *why, int error);

#endif
