/* SPDX-License-Identifier: MIT
 *
 * What: waiting. A task that waits is PARKED; sxe-lua-wake.c wakes it. A task that was cancelled
 * does not wait: its calls fail with "cancelled", and later raise errors. If it goes on in spite of
 * them, it is ended.
 */
#include "sxe-lua-task-private.h"

#include <string.h>

/* how many errors a cancelled task may catch before it is abandoned */
#define RAISED_MAX 100
/* an error that interrupts computing counts as this many caught errors */
#define INTERRUPT_COUNTS 33
/* how many time slices a task may compute between two errors that interrupt it */
#define SLICES_TO_CLEAN_UP 50

enum sxe__lua_reason
sxe__lua_woken(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    return (enum sxe__lua_reason)sxe__lua_task_at(SCHEDULER->running)->reason;
}

int
sxe__lua_fail_woken(lua_State *L)
{
    return sxe__lua_fail(L, sxe__lua_woken(L) == SXE__LUA_CANCELLED ? "cancelled" : "timeout");
}

static bool
can_park(lua_State *L)
{
    return SCHEDULER->running != SXE_NONE && sxe__lua_may_yield(L);
}

bool
sxe__lua_may_wait(lua_State *L)
{
    return can_park(L) && sxe__lua_task_at(SCHEDULER->running)->cancel == SXE__LUA_NOT_CANCELLED;
}

/* Raise an error that names the function of C through which the task cannot wait: Lua cannot leave
 * that function and come back to it. */
static int
refuse_to_wait(lua_State *L)
{
    lua_Debug frame;

    if (SCHEDULER->running == SXE_NONE)
        return luaL_error(L, "cannot wait outside of a task");
    for (int level = 1; lua_getstack(L, level, &frame); level++) {
        lua_getinfo(L, "Sn", &frame);
        /* Skip pcall and xpcall, in which a task can wait. */
        if (*frame.what == 'C' && frame.name != NULL && strstr(frame.name, "pcall") == NULL)
            return luaL_error(L, "cannot wait inside of %s, a C function", frame.name);
    }
    return luaL_error(L, "cannot wait here, a C function or a finalizer is in between");
}

/* Raise "cancelled" in the running task. A task that caught too many such errors gets no more: it
 * yields, and sxe__lua_resume abandons it. */
static int
raise_cancelled(lua_State *L, uint32_t index, unsigned counts)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);

    if (task->raised >= RAISED_MAX && sxe__lua_may_yield(L)) {
        task->cancel = SXE__LUA_CANCEL_OVER;
        sxe__lua_task_move(index, SXE__LUA_RUNNING, SXE__LUA_READY);
        return lua_yield(L, 0);
    }
    task->cancel = SXE__LUA_CANCEL_TOLD;
    if (task->raised < RAISED_MAX)
        task->raised = (uint8_t)(task->raised + counts);
    return luaL_error(L, "cancelled");
}

static int
park_running_task(lua_State *L, uint64_t deadline_ns, struct sxe__lua_line *line, lua_KFunction k,
                  lua_KContext context)
{
    uint32_t index = SCHEDULER->running;
    struct sxe__lua_task *task = sxe__lua_task_at(index);

    if (task->cancel == SXE__LUA_CANCEL_TOLD) {
        sxe__lua_unhook(index, SXE__LUA_CANCELLED);
        return raise_cancelled(L, index, 1);
    }
    if (task->cancel == SXE__LUA_CANCEL_ASKED) {
        task->cancel = SXE__LUA_CANCEL_TOLD;
        task->reason = SXE__LUA_CANCELLED;
        sxe__lua_unhook(index, SXE__LUA_CANCELLED);
        return k(L, LUA_YIELD, context);
    }
    sxe__lua_task_move(index, SXE__LUA_RUNNING, SXE__LUA_PARKED);
    if (line != NULL)
        sxe__lua_line_add(line, index);
    if (deadline_ns != 0) {
        task->deadline_ns = deadline_ns;
        sxe__lua_deadline_add(index);
    }
    return lua_yieldk(L, 0, context, k);
}

int
sxe__lua_park(lua_State *L, uint64_t deadline_ns, void (*on_leave)(void *what), void *what,
              lua_KFunction k, lua_KContext context)
{
    if (!can_park(L)) {
        if (on_leave != NULL)
            on_leave(what);
        return refuse_to_wait(L);
    }
    sxe__lua_task_at(SCHEDULER->running)->on_leave = on_leave;
    sxe__lua_task_at(SCHEDULER->running)->what = what;
    return park_running_task(L, deadline_ns, NULL, k, context);
}

int
sxe__lua_park_in(lua_State *L, struct sxe__lua_line *line, uint64_t deadline_ns, lua_KFunction k,
                 lua_KContext context)
{
    if (!can_park(L))
        return refuse_to_wait(L);
    return park_running_task(L, deadline_ns, line, k, context);
}

/* A cancelled task that got an error about this has some time to clean up before an error
 * interrupts its computing. */
bool
sxe__lua_end_computing(lua_State *L)
{
    const uint32_t index = SCHEDULER->running;
    struct sxe__lua_task *task = index != SXE_NONE ? sxe__lua_task_at(index) : NULL;

    if (task == NULL || task->cancel == SXE__LUA_NOT_CANCELLED)
        return false;
    if (task->cancel == SXE__LUA_CANCEL_TOLD && ++task->slices < SLICES_TO_CLEAN_UP)
        return false;
    task->slices = 0;
    raise_cancelled(L, index, INTERRUPT_COUNTS);
    return true; /* reached after lua_yield, which returns in a hook */
}

int
sxe__lua_make_way(lua_State *L)
{
    sxe__lua_stand_back(SCHEDULER->running, SXE__LUA_RUNNING);
    return lua_yield(L, 0);
}
