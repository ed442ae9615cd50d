/* SPDX-License-Identifier: MIT
 *
 * What: fairness between requests, however many tasks each of them starts. A *group* is the tasks
 * of one request. A task that used up its slice of time becomes LATER: it waits for the turn of its
 * group. Groups with LATER tasks take turns.
 *
 * A group may use a quarter of the time without waiting; time beyond that is its debt. The debt
 * grows by the time that its tasks compute, and shrinks by a quarter of the time that passes. A
 * task that becomes ready while its group owes a slice or more is LATER, too.
 *
 * Shape:
 *
 *     ring_first -> group -> group -> ... <- ring_last
 *                     |        '- later: task, task
 *                     '- later: task, task, task         no LATER task: it leaves at its turn
 */
#include "sxe-lua-task-private.h"

enum {
    /* the largest debt in slices; larger debts would make a group slow for long */
    OWED_SLICES_MAX = 10,
    SHARE = 4,          /* a group may use one part in 4 of the time without a debt */
    SANDBOX_SHARE = 16, /* in a sandbox a group may have one part in 16 of all tasks, */
    SHARE_MIN = 16,     /* or 16 tasks if that is more, */
    SANDBOX_FREE = 4    /* and one part in 4 of all tasks stays free for new requests */
};

static struct sxe__lua_group *
group_at(uint32_t group)
{
    return &SCHEDULER->groups[group - 1];
}

/* Make a group of one task, whose `group` the caller sets. There are as many groups as tasks, so
 * one is always free. */
static uint32_t
make_group(void)
{
    uint32_t group = SCHEDULER->groups_free;

    if (group != 0)
        SCHEDULER->groups_free = group_at(group)->next;
    else
        group = ++SCHEDULER->groups_made;
    *group_at(group) = (struct sxe__lua_group){.tasks = 1};
    return group;
}

/* ---- The ring ---- */

static void
add_to_ring(uint32_t group)
{
    group_at(group)->is_in_ring = true;
    group_at(group)->next = 0;
    group_at(group)->prev = SCHEDULER->ring_last;
    if (SCHEDULER->ring_last == 0)
        SCHEDULER->ring_first = group;
    else
        group_at(SCHEDULER->ring_last)->next = group;
    SCHEDULER->ring_last = group;
}

static void
remove_from_ring(uint32_t group)
{
    const uint32_t next = group_at(group)->next;
    const uint32_t prev = group_at(group)->prev;

    if (!group_at(group)->is_in_ring)
        return;
    group_at(group)->is_in_ring = false;
    if (prev == 0)
        SCHEDULER->ring_first = next;
    else
        group_at(prev)->next = next;
    if (next == 0)
        SCHEDULER->ring_last = prev;
    else
        group_at(next)->prev = prev;
}

/* ---- Members ---- */

void
sxe__lua_group_enter(uint32_t index)
{
    struct sxe__lua_task *starter;

    if (SCHEDULER->running == SXE_NONE)
        return;
    starter = sxe__lua_task_at(SCHEDULER->running);
    if (starter->group == 0)
        starter->group = make_group();
    sxe__lua_task_at(index)->group = starter->group;
    group_at(starter->group)->tasks++;
}

void
sxe__lua_group_leave(uint32_t index)
{
    const uint32_t group = sxe__lua_task_at(index)->group;

    if (group == 0)
        return;
    sxe__lua_task_at(index)->group = 0;
    if (--group_at(group)->tasks > 0)
        return;
    remove_from_ring(group);
    group_at(group)->next = SCHEDULER->groups_free;
    SCHEDULER->groups_free = group;
}

/* In a sandbox no request may take all tasks: a request gets 1/16 of all tasks, and a quarter of
 * all tasks stays free for new requests. */
bool
sxe__lua_group_may_grow(void)
{
    const uint32_t running = SCHEDULER->running;
    const uint32_t group = running == SXE_NONE ? 0 : sxe__lua_task_at(running)->group;
    const uint32_t share = SCHEDULER->number / SANDBOX_SHARE;

    if (!sxe__lua_config()->is_sandbox)
        return true;
    if (sxe_pool_get_count(SCHEDULER->tasks, SXE__LUA_FREE) <= SCHEDULER->number / SANDBOX_FREE)
        return false;
    return group == 0 || group_at(group)->tasks < (share > SHARE_MIN ? share : SHARE_MIN);
}

/* ---- The debt of a group ---- */

static void
settle_group(struct sxe__lua_group *group, uint64_t now_ns)
{
    const uint64_t own_ns = (now_ns - group->settled_ns) / SHARE;

    group->owed_ns -= own_ns < group->owed_ns ? own_ns : group->owed_ns;
    group->settled_ns = now_ns;
}

void
sxe__lua_group_charge(uint32_t group, uint64_t used_ns, uint64_t now_ns)
{
    const uint64_t most_ns = OWED_SLICES_MAX * SCHEDULER->slice_ns;

    if (group == 0 || group_at(group)->tasks == 0)
        return;
    settle_group(group_at(group), now_ns);
    group_at(group)->owed_ns += used_ns;
    if (group_at(group)->owed_ns > most_ns)
        group_at(group)->owed_ns = most_ns;
}

bool
sxe__lua_group_owes(uint32_t index, uint64_t now_ns)
{
    const uint32_t group = sxe__lua_task_at(index)->group;

    if (group == 0)
        return false;
    settle_group(group_at(group), now_ns);
    return group_at(group)->owed_ns >= SCHEDULER->slice_ns;
}

/* ---- Tasks that are LATER ---- */

void
sxe__lua_stand_back(uint32_t index, enum sxe__lua_task_state from)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);

    if (task->group == 0)
        task->group = make_group();
    sxe__lua_task_move(index, from, SXE__LUA_LATER);
    if (task->cancel == SXE__LUA_NOT_CANCELLED)
        sxe__lua_line_add(&group_at(task->group)->later, index);
    else
        sxe__lua_line_add_first(&group_at(task->group)->later, index);
    if (!group_at(task->group)->is_in_ring)
        add_to_ring(task->group);
}

void
sxe__lua_hurry(uint32_t index)
{
    sxe__lua_unhook(index, SXE__LUA_EVENT);
    sxe__lua_line_add_first(&group_at(sxe__lua_task_at(index)->group)->later, index);
}

/* Skip groups in the ring that have no LATER task any more, because all were cancelled. */
uint32_t
sxe__lua_take_later(void)
{
    uint32_t group;

    while ((group = SCHEDULER->ring_first) != 0) {
        const uint32_t first = group_at(group)->later.first;

        remove_from_ring(group);
        if (first == 0)
            continue;
        sxe__lua_unhook(first - 1, SXE__LUA_EVENT);
        sxe__lua_task_move(first - 1, SXE__LUA_LATER, SXE__LUA_RUNNING);
        if (group_at(group)->later.first != 0)
            add_to_ring(group);
        return first - 1;
    }
    return SXE_NONE;
}
