/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of require "sxe.dict" share.
 *
 *     sxe-lua-dict.c        dict.open, and the calls about one entry
 *     sxe-lua-dict-batch.c  all entries, batches, snapshots
 *
 * Dicts, snapshots and batches are userdata. A snapshot or a batch has its dict as a user value,
 * and counts as a user of the dict: a closed dict refuses all calls at once, but its memory stays
 * until its last user has gone.
 */
#ifndef SXE_LUA_DICT_PRIVATE_H
#define SXE_LUA_DICT_PRIVATE_H

#include "sxe-dict.h"
#include "sxe-lua-pool-private.h"

#define SXE__LUA_DICT "sxe.dict"

struct sxe__lua_dict {
    SXE_DICT *dict;   /* NULL: the dict is closed */
    unsigned users;   /* how many snapshots and batches are open */
    bool is_over;     /* the dict accepts no calls; its last user closes it */
    uint64_t wait_ns; /* how long a call tries again while another process has the lock */
};

/* The dict at an argument. Raises unless it is an open dict. */
SXE_DICT *sxe__lua_dict_check(lua_State *L, int argument);

/* sxe__lua_dict_end closes a dict, at once or when its last user ends. sxe__lua_dict_end_user
 * subtracts a user that ends; the call that made the user counted it. */
void sxe__lua_dict_end(struct sxe__lua_dict *dict);
void sxe__lua_dict_end_user(struct sxe__lua_dict *dict);

/* Return the key, which is argument 2. */
const char *sxe__lua_dict_key(lua_State *L, size_t *size);

/* The seconds to live that an argument gives; SXE_DICT_FOREVER if the argument is missing. */
double sxe__lua_dict_ttl(lua_State *L, int argument);

/* Push the value of the key at stack index 2, which `read` copies from the dict or snapshot at
 * index 1. Returns 1, or -errno. `read` raises an error if the dict or snapshot was closed: to
 * allocate memory for the value may have run a finalizer that closed it. */
typedef ssize_t (*sxe__lua_dict_read)(lua_State *L, const void *key, size_t key_size, void *value,
                                      size_t size);
int sxe__lua_dict_push_value(lua_State *L, sxe__lua_dict_read read);

/* The text for an error of a dict. */
const char *sxe__lua_dict_text(int error);

/* Handle the failure of a call: for EAGAIN, let k try again; otherwise return nil, why, error. */
int sxe__lua_dict_failed(lua_State *L, uint64_t wait_ns, int error, lua_KFunction k,
                         lua_KContext until);

/* The time for which calls of the dict at 1 try again, in nanoseconds. */
uint64_t sxe__lua_dict_wait(lua_State *L);

/* Make the metatable `name` with these metamethods and methods. The stack stays as it was. */
void sxe__lua_dict_class(lua_State *L, const char *name, const luaL_Reg *metamethods,
                         const luaL_Reg *methods);

/* ---- Methods (sxe-lua-dict-batch.c) ---- */

int sxe__lua_dict_each(lua_State *L);
int sxe__lua_dict_batch(lua_State *L);
int sxe__lua_dict_snapshot(lua_State *L);
void sxe__lua_dict_open_batch(lua_State *L);

#endif
