/* SPDX-License-Identifier: MIT
 *
 * There are two kinds of waiting. First, another process holds a lock, or is writing the element to
 * be read: it will soon be done, unless it was stopped, so the call is tried again until its wait
 * is over. Second, a task waits for an element in a state: it stands in the state's line, and a
 * task that moves an element to the state wakes the first task of the line. Other processes wake it
 * through a descriptor; a process may be killed before it does so, so a waiting task also looks
 * once a second.
 */
#include "sxe-lua-pool-private.h"

#include <errno.h>
#include <time.h>

#include "sxe-lua-clock.h"

/* the time between two tries, after the first millisecond */
#define RETRY_NS (1 * SXE_NS_PER_MS)
/* the time between two looks of a task that waits for an element */
#define LOOK_NS        SXE_NS_PER_SECOND
#define BLOCK_NS       (2 * SXE_NS_PER_MS) /* how long a call that cannot yield blocks the loop */
#define FIRST_SLEEP_NS (100 * SXE_NS_PER_US)

/* ---- Trying again ---- */

/* Whether a call may yield. Before the loop runs a call may not: the rest of a script's top level
 * would run in the loop. */
static bool
may_yield(lua_State *L)
{
    return sxe_loop() != NULL && sxe__lua_running(L) != 0 && sxe__lua_may_yield(L);
}

static uint64_t
wait_of(lua_State *L, uint64_t wait_ns)
{
    return sxe_loop() == NULL || may_yield(L) || wait_ns < BLOCK_NS ? wait_ns : BLOCK_NS;
}

/* Put a time of the clock into a context, which may have only 32 bits: in us, and never 0. */
static lua_KContext
to_context(uint64_t ns)
{
    const uintptr_t us = (uintptr_t)(ns / SXE_NS_PER_US);

    return (lua_KContext)(us == 0 ? 1 : us);
}

/* The time that is left until the time in a context. */
static uint64_t
left_ns(lua_State *L, uint64_t wait_ns, lua_KContext until, uint64_t now_ns)
{
    if (until == 0)
        return wait_of(L, wait_ns);
    const lua_KContext left_us =
        (lua_KContext)((uintptr_t)until - (uintptr_t)(now_ns / SXE_NS_PER_US));

    return left_us > 0 ? (uint64_t)left_us * SXE_NS_PER_US : 0;
}

bool
sxe__lua_may_try_again(lua_State *L, uint64_t wait_ns, lua_KContext until)
{
    return left_ns(L, wait_ns, until, sxe_lua_get_clock()->now_ns()) != 0;
}

/* Each sleep is a quarter of the time slept so far, which limits the number of tries: each try is a
 * call inside the try before, on the C stack. */
static int
sleep_and_try(lua_State *L, uint64_t slept_ns, uint64_t left, lua_KFunction k, lua_KContext until)
{
    const uint64_t next_ns = slept_ns / 4 < FIRST_SLEEP_NS ? FIRST_SLEEP_NS : slept_ns / 4;
    const uint64_t pause_ns = next_ns < left ? next_ns : left;
    const struct timespec pause = {.tv_sec = (time_t)(pause_ns / SXE_NS_PER_SECOND),
                                   .tv_nsec = (long)(pause_ns % SXE_NS_PER_SECOND)};

    nanosleep(&pause, NULL);
    return k(L, LUA_OK, until);
}

int
sxe__lua_again(lua_State *L, uint64_t wait_ns, lua_KFunction k, lua_KContext until)
{
    const uint64_t now_ns = sxe_lua_get_clock()->now_ns();
    const uint64_t all_ns = wait_of(L, wait_ns);
    const uint64_t left = left_ns(L, wait_ns, until, now_ns);
    const uint64_t gone_ns = all_ns > left ? all_ns - left : 0;
    const lua_KContext end = until != 0 ? until : to_context(now_ns + all_ns);

    if (left == 0) {
        (void)sxe__lua_fail(L, "busy");
        lua_pushinteger(L, EAGAIN);
        return 3;
    }
    if (may_yield(L))
        return sxe__lua_park(L, now_ns + (gone_ns < RETRY_NS ? 1 : RETRY_NS), NULL, NULL, k, end);
    return sleep_and_try(L, gone_ns, left, k, end);
}

bool
sxe__lua_was_cancelled(lua_State *L, int status)
{
    return status == LUA_YIELD && sxe__lua_woken(L) == SXE__LUA_CANCELLED;
}

/* ---- Waiting for an element ---- */

/* Wake the first task of each state's line. The task looks for an element; if there is none, it
 * watches the state again. */
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

/* Called in a child of fork, where the parent's descriptor is closed. The child gets its own
 * descriptor when it begins to watch. */
static void
on_fork(struct ev_loop *loop, ev_fork *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(events);
    sxe__lua_pool_unwatch(watcher->data);
}

/* The watchers do not keep the loop running; a waiting task does, because its timer looks once a
 * second. */
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

/* Watch a state of a shared pool. Returns the time at which to look again. */
static uint64_t
watch_state(struct sxe__lua_pool *pool, unsigned state, uint64_t now_ns)
{
    int watched;

    if (sxe_loop() == NULL)
        return 1; /* 1 ns is a time in the past: the task looks in the first turn of the loop */
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
    uint64_t now_ns = sxe_lua_get_clock()->now_ns();
    uint64_t look_ns = 0;

    if (deadline_ns != 0 && deadline_ns <= now_ns) {
        sxe__lua_pool_waited(pool, state);
        return sxe__lua_fail(L, "timeout");
    }
    if (pool->is_shared)
        look_ns = watch_state(pool, state, now_ns);
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
    } else if (sxe_pool_get_count(pool->array, state) > 0 ||
               (pool->is_shared && sxe_pool_watch(pool->array, state) != 0)) {
        sxe__lua_wake_first(line);
    }
}

void
sxe__lua_pool_came(struct sxe__lua_pool *pool, unsigned state)
{
    sxe__lua_wake_first(&pool->waiting[state]);
}
