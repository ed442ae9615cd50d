/* SPDX-License-Identifier: MIT
 *
 * Two kinds of waiting. Another process holds a lock, or writes what is to be read: that is over
 * soon, unless it was stopped, so a call is tried again, so many times. Or a task waits for an
 * element in a state: it stands in the state's line, and whoever brings one wakes the first. Other
 * processes tell by a descriptor; who is killed tells nobody, so a task looks once a second, too.
 */
#include "sxe-lua-pool-private.h"

#include <errno.h>
#include <sched.h>

#include "sxe-lua-port.h"

enum {
    TURNS = 10,          /* tries in turns that follow each other */
    TRIES = TURNS + 100, /* in all, those after them once in RETRY_NS */
    TRIES_AT_ONCE = 20,
    RETRY_NS = 1000 * 1000,
    LOOK_NS = 1000 * 1000 * 1000
};

/* ---- Trying again ---- */

/* Before the loop runs, a wait would have the rest of a script's top level run with it. */
static bool
may_yield(lua_State *L)
{
    return sxe_loop() != NULL && sxe__lua_running(L) != 0 && sxe__lua_may_yield(L);
}

bool
sxe__lua_may_try_again(lua_State *L, lua_KContext tries)
{
    return tries < (may_yield(L) ? TRIES : TRIES_AT_ONCE);
}

int
sxe__lua_again(lua_State *L, lua_KFunction k, lua_KContext tries)
{
    uint64_t now_ns = sxe_lua_get_port()->now_ns();

    if (!sxe__lua_may_try_again(L, tries)) {
        (void)sxe__lua_fail(L, "busy");
        lua_pushinteger(L, EAGAIN);
        return 3;
    }
    if (may_yield(L))
        return sxe__lua_park(L, now_ns + (tries < TURNS ? 1 : RETRY_NS), NULL, NULL, k, tries + 1);
    sched_yield();
    return k(L, LUA_OK, tries + 1);
}

bool
sxe__lua_was_cancelled(lua_State *L, int status)
{
    return status == LUA_YIELD && sxe__lua_woken(L) == SXE__LUA_CANCELLED;
}

/* ---- Waiting for an element ---- */

/* One for each state: it looks, and watches again if there is none. */
static void
on_watch(struct ev_loop *loop, ev_io *watcher, int events)
{
    struct sxe__lua_pool *pool = watcher->data;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    sxe_pool_watch_read(pool->array);
    for (unsigned state = 0; state < pool->states; state++)
        sxe__lua_wake_first(&pool->waiting[state]);
}

void
sxe__lua_pool_unwatch(struct sxe__lua_pool *pool)
{
    if (pool->loop == NULL)
        return;
    ev_ref(pool->loop);
    ev_io_stop(pool->loop, &pool->watcher);
    ev_ref(pool->loop);
    ev_fork_stop(pool->loop, &pool->fork_watcher);
    pool->loop = NULL;
}

/* A child of fork has another descriptor, from when it watches; the parent's is closed there. */
static void
on_fork(struct ev_loop *loop, ev_fork *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    sxe__lua_pool_unwatch(watcher->data);
}

/* They do not keep the loop running: a task that waits does, which looks once a second. */
static void
start_watcher(struct sxe__lua_pool *pool)
{
    if (pool->loop != NULL)
        return;
    pool->loop = sxe_loop();
    ev_io_init(&pool->watcher, on_watch, sxe_pool_get_watch_fd(pool->array), EV_READ);
    ev_fork_init(&pool->fork_watcher, on_fork);
    pool->watcher.data = pool->fork_watcher.data = pool;
    ev_io_start(pool->loop, &pool->watcher);
    ev_unref(pool->loop);
    ev_fork_start(pool->loop, &pool->fork_watcher);
    ev_unref(pool->loop);
}

/* When to look again. */
static uint64_t
watch(struct sxe__lua_pool *pool, unsigned state, uint64_t now_ns)
{
    int watched;

    if (sxe_loop() == NULL)
        return 1; /* with the first turn */
    watched = sxe_pool_watch(pool->array, state);
    if (watched == 1 || watched == -EAGAIN)
        return now_ns + RETRY_NS;
    if (watched == 0)
        start_watcher(pool);
    return now_ns + LOOK_NS;
}

int
sxe__lua_pool_wait(lua_State *L, struct sxe__lua_pool *pool, unsigned state, uint64_t deadline_ns,
                   lua_KFunction k)
{
    uint64_t now_ns = sxe_lua_get_port()->now_ns();
    uint64_t look_ns = 0;

    if (deadline_ns != 0 && deadline_ns <= now_ns) {
        sxe__lua_pool_waited(pool, state);
        return sxe__lua_fail(L, "timeout");
    }
    if (pool->is_shared)
        look_ns = watch(pool, state, now_ns);
    if (look_ns == 0 || (deadline_ns != 0 && deadline_ns < look_ns))
        look_ns = deadline_ns;
    return sxe__lua_park_in(L, &pool->waiting[state], look_ns, k, 0);
}

void
sxe__lua_pool_waited(struct sxe__lua_pool *pool, unsigned state)
{
    struct sxe__lua_line *line = &pool->waiting[state];

    if (line->first == 0) {
        if (pool->is_shared)
            sxe_pool_unwatch(pool->array, state);
    } else if (sxe_pool_get_number_in_state(pool->array, state) > 0 ||
               (pool->is_shared && sxe_pool_watch(pool->array, state) != 0)) {
        sxe__lua_wake_first(line);
    }
}

void
sxe__lua_pool_came(struct sxe__lua_pool *pool, unsigned state)
{
    sxe__lua_wake_first(&pool->waiting[state]);
}
