/* SPDX-License-Identifier: MIT
 *
 * What: the scheduler's data: tasks by index and by handle, their states, the table that anchors
 * their coroutines, and whether the loop runs on for them. The other files of the scheduler call
 * this one, and this one calls none of them.
 */
#include "sxe-lua-task-private.h"

_Thread_local struct sxe__lua_scheduler sxe__lua_scheduler = {.running = SXE_NONE,
                                                              .is_closing = true};

/* keys in the registry: only the addresses of these two variables are used */
static const char anchors_key;
static const char barred;

/* ---- The loop ---- */

/* Make the loop run another turn without waiting before it. An idle watcher does that. */
void
sxe__lua_turn_soon(void)
{
    if (SCHEDULER->loop != NULL)
        ev_idle_start(SCHEDULER->loop, &SCHEDULER->no_wait);
}

/* Let the loop run on because a task waits. The sockets themselves do not keep the loop running:
 * perhaps no task ever uses them. */
void
sxe__lua_loop_hold(void)
{
    if (SCHEDULER->outside++ == 0 && SCHEDULER->loop != NULL)
        ev_ref(SCHEDULER->loop);
}

void
sxe__lua_loop_release(void)
{
    if (--SCHEDULER->outside == 0 && SCHEDULER->loop != NULL)
        ev_unref(SCHEDULER->loop);
}

unsigned
sxe_lua_waiting(void)
{
    return SCHEDULER->outside;
}

/* ---- Elements ---- */

uint32_t
sxe__lua_task_index(uint64_t task)
{
    return SCHEDULER->tasks == NULL ? SXE_NONE : sxe_pool_handle_to_index(SCHEDULER->tasks, task);
}

uint64_t
sxe__lua_task_handle(uint32_t index)
{
    return sxe_pool_get_handle(SCHEDULER->tasks, index);
}

enum sxe__lua_task_state
sxe__lua_task_state(uint32_t index)
{
    return (enum sxe__lua_task_state)sxe_pool_get_state(SCHEDULER->tasks, index);
}

void
sxe__lua_task_move(uint32_t index, enum sxe__lua_task_state from, enum sxe__lua_task_state to)
{
    sxe_pool_move(SCHEDULER->tasks, index, from, to);
    if (to == SXE__LUA_READY || to == SXE__LUA_LATER)
        sxe__lua_turn_soon();
}

uint64_t
sxe__lua_running(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    return SCHEDULER->running == SXE_NONE ? 0 : sxe__lua_task_handle(SCHEDULER->running);
}

void *
sxe__lua_user(uint64_t task)
{
    uint32_t index = sxe__lua_task_index(task);

    return index == SXE_NONE ? NULL : sxe__lua_task_at(index)->user;
}

uint64_t
sxe__lua_set_origin(uint64_t origin)
{
    const uint64_t before = SCHEDULER->origin;

    SCHEDULER->origin = origin;
    return before;
}

uint64_t
sxe__lua_origin(void)
{
    return SCHEDULER->origin;
}

void
sxe__lua_refuse_at_end(lua_State *L)
{
    if (SCHEDULER->is_closing)
        luaL_error(L, "the state is closed");
}

bool
sxe__lua_is_closing(void)
{
    return SCHEDULER->is_closing;
}

sxe__lua_on_end
sxe__lua_end_of_running(void)
{
    return SCHEDULER->running == SXE_NONE ? NULL : sxe__lua_task_at(SCHEDULER->running)->on_end;
}

bool
sxe__lua_is_leaving(void)
{
    return SCHEDULER->running != SXE_NONE &&
           sxe__lua_task_state(SCHEDULER->running) != SXE__LUA_RUNNING;
}

/* ---- Coroutines ---- */

void
sxe__lua_bar(lua_State *coroutine)
{
    *(const char **)lua_getextraspace(coroutine) = &barred;
}

void
sxe__lua_unbar(lua_State *coroutine)
{
    *(const char **)lua_getextraspace(coroutine) = NULL;
}

bool
sxe__lua_is_barred(lua_State *coroutine)
{
    return *(const char **)lua_getextraspace(coroutine) == &barred;
}

void
sxe__lua_push_anchors(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &anchors_key);
}

int
sxe__lua_anchor(uint32_t index)
{
    return (int)(2 * (SCHEDULER->number - index) - 1);
}

int
sxe__lua_open_anchors(lua_State *L)
{
    lua_createtable(L, 0, 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &anchors_key);
    return 0;
}
