/* SPDX-License-Identifier: MIT
 *
 * What: lines of tasks, and waking. A task is PARKED, in a line perhaps and with a deadline
 * perhaps, until an event, the deadline or its cancelling wakes it: all three come here.
 */
#include "sxe-lua-task-private.h"

/* ---- Lines ---- */

#define LAST_MASK 0x7fffffffu /* the bits that line.last has */

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
        sxe__lua_deadline_remove(index);
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
