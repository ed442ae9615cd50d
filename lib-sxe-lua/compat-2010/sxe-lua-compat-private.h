/* SPDX-License-Identifier: MIT
 *
 * What: what the files about the globals of 2010 and 2011 share, and their map.
 *
 *     sxe-lua-compat.c            sxe_register, the log, the table sxe
 *     sxe-lua-compat-callbacks.c  the events of sockets
 *     sxe-lua-compat-socket.c     what scripts do with sockets
 *     sxe-lua-compat-timer.c      sxe_timer_...
 *     sxe-lua-compat-pool.c       sxe_pool_...
 *     sxe-lua-compat-spawn.c      sxe_spawn
 */
#ifndef SXE_LUA_COMPAT_PRIVATE_H
#define SXE_LUA_COMPAT_PRIVATE_H

#include "sxe-lua-socket-private.h"

/* ---- sxe-lua-compat-callbacks.c ---- */

extern const char sxe__lua_read_arg_key; /* in the registry: the value of sxe.read_arg */

enum { SXE__LUA_ON_CONNECT, SXE__LUA_ON_READ, SXE__LUA_ON_CLOSE, SXE__LUA_CALLBACKS };

/* Callbacks that a listener shares with its connections, until one of them sets a function of its
 * own. */
struct sxe__lua_callbacks {
    int function[SXE__LUA_CALLBACKS]; /* references in the registry */
    uint32_t contract;                /* private: what the read callback gets */
    uint32_t users;                   /* private: how many sockets have these callbacks */
};

/* Make a set of callbacks from the three arguments from `first` on; later arguments are ignored.
 * Raises an error if an argument is neither a function nor nil, or if sxe_init was not called. */
void sxe__lua_callbacks_take(lua_State *L, int first, struct sxe__lua_callbacks *callbacks);
void sxe__lua_callbacks_drop(lua_State *L, const struct sxe__lua_callbacks *callbacks);

/* Free the callbacks and fields that Lua holds for a socket. */
void sxe__lua_leave(struct sxe__lua_slot *slot, uint32_t index);

/* Begin the slot of a socket, and give it these callbacks. Never raises. */
void sxe__lua_callbacks_give(SXE *s, const struct sxe__lua_callbacks *callbacks);

/* Push the handle of a socket that was made with these callbacks; the callbacks then belong to the
 * socket. If the socket is NULL, drop the callbacks, and push nil and errno's text. */
int sxe__lua_callbacks_push_made(lua_State *L, SXE *s, const struct sxe__lua_callbacks *callbacks);

/* Set one callback of this socket only: to the function at an index, or to nil. */
void sxe__lua_callbacks_set(lua_State *L, SXE *s, int which, int function);

/* Push a socket's callback of the given kind; false: there is none, and nothing is pushed. */
bool sxe__lua_callbacks_push(lua_State *L, const struct sxe__lua_slot *slot, int which);

void sxe__lua_on_connected(SXE *s);
void sxe__lua_on_read(SXE *s, int length);
void sxe__lua_on_close(SXE *s);

/* Functions for the values that scripts keep in a socket, as in s.key = value. The key is at stack
 * index 2, the value at 3. */
void sxe__lua_open_fields(lua_State *L);
void sxe__lua_field_get(lua_State *L, const struct sxe__lua_slot *slot, uint32_t index);
void sxe__lua_field_set(lua_State *L, struct sxe__lua_slot *slot, uint32_t index);

/* ---- sxe-lua-compat-spawn.c ---- */

int sxe__lua_spawn_kill(lua_State *L); /* a method: s:kill(signal) */

/* ---- Each sets its functions in the table on top ---- */

void sxe__lua_open_compat_socket(lua_State *L);
void sxe__lua_open_compat_timer(lua_State *L);
void sxe__lua_open_compat_pool(lua_State *L);
void sxe__lua_open_compat_spawn(lua_State *L);

#endif
