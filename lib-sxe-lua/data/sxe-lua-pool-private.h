/* SPDX-License-Identifier: MIT
 *
 * What: what the files of require "sxe.pool" share. require "sxe.dict" also uses the options, and
 * trying again where another process holds a lock.
 *
 *     sxe-lua-pool.c         pools: their methods
 *     sxe-lua-pool-element.c elements: their fields, and what else they have
 *     sxe-lua-pool-open.c    pool.open, its options, timeouts
 *     sxe-lua-pool-field.c   fields: declared, and as values
 *     sxe-lua-pool-wait.c    trying again; tasks that wait for an element
 *     sxe-lua-option.c       options
 *
 * The fields of a pool are plain C. All that is read of an element goes through the pool's scratch,
 * room for one element: so nothing that another process writes meanwhile is seen half.
 */
#ifndef SXE_LUA_POOL_PRIVATE_H
#define SXE_LUA_POOL_PRIVATE_H

#include "sxe-lua-private.h"
#include "sxe-pool-layout.h"
#include "sxe-pool-shared.h"

enum {
    SXE__LUA_POOL_NAME_SIZE = SXE_POOL_NAME_MAX + 1,
    SXE__LUA_POOL_STATES = 32,
    SXE__LUA_POOL_INDEX_BITS = 24, /* of an element's handle */
    SXE__LUA_POOL_NUMBER = 1 << SXE__LUA_POOL_INDEX_BITS,
    SXE__LUA_POOLS = 256
};

#define SXE__LUA_POOL_WAIT_NS (100 * SXE_NS_PER_MS)

struct sxe__lua_pool {
    void *array;
    char *scratch; /* an element's bytes, in a user value of the pool */
    size_t element_size;
    uint32_t number;  /* its index in pools */
    uint64_t wait_ns; /* how long a call tries again */
    bool is_open;
    bool is_shared; /* with other processes */
    bool is_exact;  /* take means the oldest of all shards */
    bool is_timed;
    int on_timeout; /* a reference in the registry; LUA_NOREF: elements go to the first state */
    unsigned states;
    char name[SXE__LUA_POOL_NAME_SIZE];
    char state[SXE__LUA_POOL_STATES][SXE__LUA_POOL_NAME_SIZE];
    double timeouts[SXE__LUA_POOL_STATES];
    struct sxe_pool_layout fields;
    struct sxe__lua_line waiting[SXE__LUA_POOL_STATES]; /* for an element in that state */
    struct ev_loop *loop;                               /* NULL: the watchers were not started */
    ev_io watcher;
    ev_fork fork_watcher;
};

/* The pools of a state. This struct is in a userdata of the state, and so is each pool. */
struct sxe__lua_pools {
    unsigned number;
    struct sxe__lua_pool *pool[SXE__LUA_POOLS];
};

/* NULL: the state is closed. */
extern _Thread_local struct sxe__lua_pools *sxe__lua_pools;

/* ---- Pools (sxe-lua-pool.c) ---- */

/* The index of a state; SXE__LUA_POOL_STATES: there is none of that name. */
unsigned sxe__lua_pool_find_state(const struct sxe__lua_pool *pool, const char *name);

/* Push how a pool was found, "created" for instance. Returns 1, the number of values. */
int sxe__lua_pool_push_found(lua_State *L, const void *array);

/* The results of a sync: true, or nil, why and its code. */
int sxe__lua_pool_push_synced(lua_State *L, int result);

/* Push the element of a lease, and the lease. Returns 2, the number of values. */
int sxe__lua_pool_push_leased(lua_State *L, const struct sxe__lua_pool *pool,
                              const SXE_POOL_LEASE *lease);

/* ---- Elements (sxe-lua-pool-element.c) ---- */

extern const struct sxe__lua_class_spec sxe__lua_pool_element;

/* Push the element, nil for SXE_POOL_NO_INDEX. Returns 1, the number of values. */
int sxe__lua_pool_push_element(lua_State *L, const struct sxe__lua_pool *pool, unsigned id);

/* The pool of an element's handle, its index there in *id; NULL: it is gone. */
struct sxe__lua_pool *sxe__lua_pool_find_element(uint32_t index, uint32_t generation, unsigned *id);

/* The state that an element is in. Raises if the state is impossible. */
unsigned sxe__lua_pool_state_of(lua_State *L, const struct sxe__lua_pool *pool, unsigned id);
int sxe__lua_pool_raise_damaged(lua_State *L, const struct sxe__lua_pool *pool);

/* Seconds since a time of the pool's. */
double sxe__lua_pool_age(const struct sxe__lua_pool *pool, SXE_TIME since);

/* ---- Opening (sxe-lua-pool-open.c) ---- */

/* pool.open(options); its upvalue is what sxe__lua_pool_push_guard pushes. */
int sxe__lua_pool_open(lua_State *L);
void sxe__lua_pool_push_guard(lua_State *L);

/* ---- Fields (sxe-lua-pool-field.c) ---- */

/* Read the fields of a pool from the value on top, and write their text:
 *     "u64 hits, char[24] name", {"u64 hits", "char[24] name"}    as C has them
 *     {hits = "u64", name = "char[24]"}                           by size, then by name
 * Raises if it is wrong. */
void sxe__lua_pool_take_fields(lua_State *L, struct sxe_pool_layout *fields,
                               char text[SXE_POOL_FIELDS_MAX + 1]);

/* Push a field of an element, which is in memory of this process. */
void sxe__lua_pool_push(lua_State *L, const struct sxe_pool_field *field, const void *element);

/* Set a field to the value at an index, or add that value to it. Raise if the result does not fit,
 * and then nothing changes. */
void sxe__lua_pool_set(lua_State *L, const struct sxe_pool_field *field, void *element, int index);
void sxe__lua_pool_add(lua_State *L, const struct sxe_pool_field *field, void *element, int index);

/* ---- Waiting (sxe-lua-pool-wait.c) ---- */

/* A call found a lock held, or an element being written: k tries again, in the task's next turns
 * for a millisecond, then once per millisecond. Outside of a task this sleeps instead: up to
 * wait_ns before the loop runs, up to 2 ms afterwards. When wait_ns are over, the results are nil,
 * "busy", EAGAIN. `until` is 0 at first, then the context that k gets. */
int sxe__lua_again(lua_State *L, uint64_t wait_ns, lua_KFunction k, lua_KContext until);
bool sxe__lua_may_try_again(lua_State *L, uint64_t wait_ns, lua_KContext until);

/* How long calls wait: the option `wait`, in seconds; SXE__LUA_POOL_WAIT_NS if it is missing. */
uint64_t sxe__lua_option_wait(lua_State *L);

/* For k: whether the task was cancelled meanwhile; then return sxe__lua_fail_woken(L). */
bool sxe__lua_was_cancelled(lua_State *L, int status);

/* Wait until something may be in a state, then go on with k; nil, "timeout" from deadline_ns on (0:
 * never). */
int sxe__lua_pool_wait(lua_State *L, struct sxe__lua_pool *pool, unsigned state,
                       uint64_t deadline_ns, lua_KFunction k);

/* A task does not wait for that state any more: wake another that does, or stop watching the
 * state. */
void sxe__lua_pool_waited(struct sxe__lua_pool *pool, unsigned state);

/* An element came into a state: wake a task that waits for it. */
void sxe__lua_pool_came(struct sxe__lua_pool *pool, unsigned state);

/* Stop a pool's watchers, before it is deleted. */
void sxe__lua_pool_unwatch(struct sxe__lua_pool *pool);

/* Opening failed with that errno. If forgotten dicts and snapshots may hold what was missing, close
 * them (a garbage collection), and return true: try once more. */
bool sxe__lua_makes_room(lua_State *L, int error);

/* ---- Options: of the table at 1 (sxe-lua-option.c) ---- */

bool sxe__lua_option_is_nil(lua_State *L, const char *name);
bool sxe__lua_option_flag(lua_State *L, const char *name);

/* Raises if one of the options `names` is given. For a caller that found the option `without`
 * missing: then the file decides the others. */
void sxe__lua_option_unsaid(lua_State *L, const char *const *names, const char *without);

/* A number option, from least (or 1, if least is 0) to most; 0 if it is missing and least is 0.
 * Raises otherwise; `what` names the unit in the message: "elements". */
unsigned sxe__lua_option_count(lua_State *L, const char *name, unsigned least, unsigned most,
                               const char *what);

/* SXE_POOL_OPTION_REPAIR, _VERIFIED or _UNVERIFIED, as the table says. */
unsigned sxe__lua_option_file_options(lua_State *L);

/* Push the path, which is borrowed; NULL: there is none. Raises. */
const char *sxe__lua_option_file(lua_State *L);

/* The value on top as a name; raises if it is not one. what: "a state", for the message. */
void sxe__lua_option_name(lua_State *L, char name[SXE__LUA_POOL_NAME_SIZE], const char *what);

/* Opening failed with `error`: raises for EINVAL, a mistake in the script; otherwise nil, why,
 * error. */
int sxe__lua_option_refused(lua_State *L, const char *why, int error);

#endif
