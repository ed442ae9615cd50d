/* SPDX-License-Identifier: MIT
 *
 * What: waiting. A task is PARKED, in a line perhaps and with a deadline perhaps, until an event,
 * the deadline or its cancelling wakes it: all three come here.
 */
#include "sxe-lua-task-private.h"

#include <string.h>

#define RAISED_MAX         100 /* errors that a cancelled task may catch */
#define INTERRUPT_COUNTS   33  /* an error that interrupts computing counts as so many */
#define SLICES_TO_CLEAN_UP 50  /* time slices of computing between two such errors */

/* ---- Lines ---- */

#define LAST_MASK 0x7fffffffu /* the bits of line.last */

void
sxe__lua_line_add(struct sxe__lua_line *line, uint32_t index)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);

    task->line = line;
    task->line_next = 0;
    task->line_prev = line->last;
    if (line->last == 0)
        line->first = index + 1;
    else
        sxe__lua_task_at(line->last - 1)->line_next = index + 1;
    line->last = (index + 1) & LAST_MASK;
    if (line->keeps_loop)
        sxe__lua_loop_hold();
}

/* Only for lines of LATER tasks, which do not keep the loop running. */
void
sxe__lua_line_add_first(struct sxe__lua_line *line, uint32_t index)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);

    task->line = line;
    task->line_prev = 0;
    task->line_next = line->first;
    if (line->first == 0)
        line->last = (index + 1) & LAST_MASK;
    else
        sxe__lua_task_at(line->first - 1)->line_prev = index + 1;
    line->first = index + 1;
}

static void
line_remove(uint32_t index)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);

    if (task->line_prev == 0)
        task->line->first = task->line_next;
    else
        sxe__lua_task_at(task->line_prev - 1)->line_next = task->line_next;
    if (task->line_next == 0)
        task->line->last = task->line_prev & LAST_MASK;
    else
        sxe__lua_task_at(task->line_next - 1)->line_prev = task->line_prev;
    if (task->line->keeps_loop)
        sxe__lua_loop_release();
    task->line = NULL;
}

/* ---- Waking ---- */

void
sxe__lua_unhook(uint32_t index, enum sxe__lua_reason reason)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);

    if (task->heap_place != 0)
        sxe__lua_heap_remove(index);
    if (task->line != NULL)
        line_remove(index);
    if (reason != SXE__LUA_EVENT && task->on_leave != NULL)
        task->on_leave(task->what);
    task->on_leave = NULL;
}

void
sxe__lua_wake_index(uint32_t index, enum sxe__lua_reason reason)
{
    sxe__lua_task_at(index)->reason = (uint8_t)reason;
    sxe__lua_task_move(index, SXE__LUA_PARKED, SXE__LUA_READY);
    sxe__lua_unhook(index, reason);
}

bool
sxe__lua_wake(uint64_t task, enum sxe__lua_reason reason)
{
    uint32_t index = sxe__lua_task_index(task);

    if (index == SXE_NONE || sxe__lua_task_state(index) != SXE__LUA_PARKED)
        return false;
    sxe__lua_wake_index(index, reason);
    return true;
}

bool
sxe__lua_wake_first(struct sxe__lua_line *line)
{
    if (line->first == 0)
        return false;
    sxe__lua_wake_index(line->first - 1, SXE__LUA_EVENT);
    return true;
}

void
sxe__lua_wake_all(struct sxe__lua_line *line)
{
    while (sxe__lua_wake_first(line))
        continue;
}

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

/* ---- Parking ---- */

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

/* Raise an error with the name of the C function in between, which Lua cannot leave and come back
 * to. */
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

/* Raise "cancelled" in the running task. A task that caught this too often gets no more errors: it
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
        sxe__lua_heap_add(index);
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

/* A task that was told of its cancelling gets time to clean up before it is interrupted. */
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

sxe__lua_on_end
sxe__lua_end_of_running(void)
{
    return SCHEDULER->running == SXE_NONE ? NULL : sxe__lua_task_at(SCHEDULER->running)->on_end;
}

int
sxe__lua_make_way(lua_State *L)
{
    sxe__lua_stand_back(SCHEDULER->running, SXE__LUA_RUNNING);
    return lua_yield(L, 0);
}

bool
sxe__lua_is_leaving(void)
{
    return SCHEDULER->running != SXE_NONE &&
           sxe__lua_task_state(SCHEDULER->running) != SXE__LUA_RUNNING;
}
