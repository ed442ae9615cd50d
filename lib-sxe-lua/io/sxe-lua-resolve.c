/* SPDX-License-Identifier: MIT
 *
 * What: tasks that wait for the addresses of a name (sxe-resolve.h).
 *
 *     task ---- sxe__lua_resolve: takes a look-up, parks ----> sxe_resolve
 *       ^                     |                                  |
 *       |                     '-- known already: goes on         |
 *       '------------ sxe__lua_resolved <---- done: wakes -------'
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "sxe-resolve.h"

enum { LOOKUPS = 256 };

enum state { FREE, BUSY, STATES };

struct lookup {
    struct sxe_resolve resolve;
    uint64_t task; /* the task that waits */
};

static _Thread_local struct lookup *lookups;

static void
give_result(const struct lookup *lookup)
{
    sxe_pool_move(lookups, (unsigned)(lookup - lookups), BUSY, FREE);
}

static void
on_resolve_done(struct sxe_resolve *resolve)
{
    sxe__lua_wake(((struct lookup *)(void *)resolve)->task, SXE__LUA_EVENT);
}

/* No task waits for the look-up any more. */
static void
forget_lookup(void *what)
{
    struct lookup *lookup = what;

    (void)sxe_resolve_cancel(&lookup->resolve);
    give_result(lookup);
}

/* Push the addresses as text, or push nil and why there are none. */
static int
push_addresses(lua_State *L, const struct lookup *lookup)
{
    const struct sxe_resolved result = lookup->resolve.result;
    char text[sizeof(result.ip)];
    size_t used = 0;

    give_result(lookup);
    if (result.error != 0)
        return sxe__lua_fail(L, gai_strerror(result.error));
    for (unsigned i = 0; i < result.number; i++) {
        size_t length = strlen(result.ip[i]);

        memcpy(&text[used], result.ip[i], length);
        text[used + length] = ' ';
        used += length + 1;
    }
    lua_pushlstring(L, text, used);
    return 0;
}

/* A look-up that was answered at once is passed on as the negative number -1 - index. */
int
sxe__lua_resolve(lua_State *L, const char *host, int family, uint64_t deadline_ns, lua_KFunction k)
{
    unsigned index = lookups == NULL ? SXE_POOL_NO_INDEX : sxe_pool_take(lookups, FREE, BUSY);
    struct lookup *lookup;
    int result;

    if (index == SXE_POOL_NO_INDEX)
        return sxe__lua_fail_errno(L, EAGAIN, "resolve");
    lookup = &lookups[index];
    memset(lookup, 0, sizeof(*lookup));
    lookup->resolve.done = on_resolve_done;
    lookup->task = sxe__lua_running(L);
    result = sxe_resolve(&lookup->resolve, host, family);
    if (result < 0) {
        give_result(lookup);
        return sxe__lua_fail_errno(L, -result, "resolve");
    }
    lua_pushinteger(L, result > 0 ? -1 - (lua_Integer)index : (lua_Integer)index);
    if (result > 0)
        return k(L, LUA_OK, 0);
    return sxe__lua_park(L, deadline_ns, forget_lookup, lookup, k, 0);
}

int
sxe__lua_resolved(lua_State *L)
{
    lua_Integer index = lua_tointeger(L, -1);

    lua_pop(L, 1);
    if (index < 0)
        return push_addresses(L, &lookups[-1 - index]);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    return push_addresses(L, &lookups[index]);
}

/* The state is closed, so no task waits any more. */
static int
close_lookups(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    if (lookups == NULL)
        return 0;
    for (unsigned i = 0; i < LOOKUPS; i++) {
        if (sxe_pool_get_state(lookups, i) == BUSY)
            forget_lookup(&lookups[i]);
    }
    sxe_pool_delete(lookups);
    lookups = NULL;
    return 0;
}

static void
open_lookups(lua_State *L)
{
    if (lookups == NULL)
        lookups =
            sxe_pool_new("look-ups", LOOKUPS, sizeof(*lookups), STATES, SXE_POOL_OPTION_UNLOCKED);
    if (lookups == NULL || sxe_resolve_register() < 0)
        luaL_error(L, "not enough memory");
}

void
sxe__lua_open_resolve(lua_State *L)
{
    static const char opened_key = 0;

    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &opened_key) == LUA_TNIL) {
        sxe__lua_at_end(L, close_lookups);
        open_lookups(L);
        lua_pushboolean(L, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &opened_key);
    }
    lua_pop(L, 1);
}
