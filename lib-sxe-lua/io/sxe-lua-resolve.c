/* SPDX-License-Identifier: MIT
 *
 * What: names to addresses by getaddrinfo(3), which blocks, in the threads of sxe-work. What
 * /etc/hosts and /etc/nsswitch.conf say holds.
 *
 *     task ---- sxe__lua_resolve: takes a look-up, parks ----> thread: getaddrinfo
 *       ^                                                        |
 *       '------------ sxe__lua_resolved <---- done: wakes -------'
 *
 * A task that is cancelled or times out forgets its look-up, which is free again once its thread is
 * done with it.
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "sxe-work.h"

enum { LOOKUPS = 256, ADDRESSES_MAX = 8, HOST_MAX = 255 };

enum state { FREE, BUSY, STATES };

struct lookup {
    struct sxe_work work;
    uint64_t task; /* the task that waits; 0: none */
    int error;     /* of getaddrinfo */
    int family;
    char host[HOST_MAX + 1];
    char text[ADDRESSES_MAX * (INET6_ADDRSTRLEN + IF_NAMESIZE + 1)]; /* "127.0.0.1 ::1 " */
};

static _Thread_local struct lookup *lookups;
static _Thread_local unsigned group; /* of threads: a slow look-up must not hold up file jobs */

static void
give_result(const struct lookup *lookup)
{
    sxe_pool_move(lookups, (unsigned)(lookup - lookups), BUSY, FREE);
}

/* Look a name up; runs in a thread. */
static void
run_lookup(struct sxe_work *work)
{
    struct lookup *lookup = (struct lookup *)(void *)work;
    const struct addrinfo hints = {.ai_family = lookup->family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    size_t used = 0;
    int number = 0;

    lookup->error = getaddrinfo(lookup->host, NULL, &hints, &list);
    for (const struct addrinfo *a = list; a != NULL && number < ADDRESSES_MAX; a = a->ai_next) {
        char *text = lookup->text + used;
        socklen_t room = (socklen_t)(sizeof(lookup->text) - used - 1);

        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, room, NULL, 0, NI_NUMERICHOST) == 0) {
            used += strlen(text);
            lookup->text[used++] = ' ';
            number++;
        }
    }
    lookup->text[used] = '\0';
    if (list != NULL)
        freeaddrinfo(list);
}

static void
on_done(struct sxe_work *work)
{
    struct lookup *lookup = (struct lookup *)(void *)work;

    if (lookup->task == 0)
        give_result(lookup);
    else
        sxe__lua_wake(lookup->task, SXE__LUA_EVENT);
}

/* No task waits for the look-up any more. */
static void
forget_lookup(void *what)
{
    struct lookup *lookup = what;

    lookup->task = 0;
    if (sxe_work_cancel(&lookup->work) != -EBUSY)
        give_result(lookup);
}

int
sxe__lua_resolve(lua_State *L, const char *host, int family, uint64_t deadline_ns, lua_KFunction k)
{
    unsigned index;
    struct lookup *lookup;
    int result;

    if (strlen(host) > HOST_MAX)
        return sxe__lua_fail_errno(L, ENAMETOOLONG, "resolve");
    index = lookups == NULL ? SXE_POOL_NO_INDEX : sxe_pool_take(lookups, FREE, BUSY);
    if (index == SXE_POOL_NO_INDEX)
        return sxe__lua_fail_errno(L, EAGAIN, "resolve");
    lookup = &lookups[index];
    memset(lookup, 0, sizeof(*lookup));
    lookup->work.run = run_lookup;
    lookup->work.done = on_done;
    lookup->work.group = group;
    lookup->family = family;
    memcpy(lookup->host, host, strlen(host));
    result = sxe_work_submit(&lookup->work);
    if (result < 0) {
        give_result(lookup);
        return sxe__lua_fail_errno(L, -result, "resolve");
    }
    lookup->task = sxe__lua_running(L);
    lua_pushinteger(L, index);
    return sxe__lua_park(L, deadline_ns, forget_lookup, lookup, k, 0);
}

int
sxe__lua_resolved(lua_State *L)
{
    struct lookup *lookup = &lookups[lua_tointeger(L, -1)];
    char text[sizeof(lookup->text)];
    int error;

    lua_pop(L, 1);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    error = lookup->error;
    memcpy(text, lookup->text, sizeof(text));
    give_result(lookup);
    if (error != 0)
        return sxe__lua_fail(L, gai_strerror(error));
    lua_pushstring(L, text);
    return 0;
}

/* The state is closed, so nobody waits any more. If a thread is still at work, the look-ups are
 * kept for the next state. */
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
    if (sxe_pool_get_count(lookups, BUSY) > 0)
        return 0;
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
    if (lookups == NULL)
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
        if (sxe_loop() == NULL)
            group = sxe_work_register_group(SXE_WORK_THREADS);
    }
    lua_pop(L, 1);
}
