/* SPDX-License-Identifier: MIT
 *
 * What: how tasks wait for each other: locks and semaphores, events, queues. They are userdata with
 * lines of tasks, and first come is first served: if something becomes free while tasks wait, it is
 * kept for the first of them, which is ready but did not run yet.
 *
 * Shape of a queue: items[first ... first + count - 1] in the uservalue. promised_items of them,
 * and promised_room of the room, are for tasks that were woken.
 */
#include "sxe-lua-task-private.h"

#define PERMITS "sxe.task.semaphore"
#define EVENT   "sxe.task.event"
#define QUEUE   "sxe.task.queue"

/* ---- Locks and semaphores ---- */

struct sxe__lua_permits {
    struct sxe__lua_line line;
    lua_Integer free;
    uint64_t owner; /* of a lock: the task that has it; 0: none */
    bool is_lock;
    struct sxe__lua_permits *next; /* the next lock of the same task */
    /* while a task has this lock: where the pointer to it is, in the task or in the previous
     * lock */
    struct sxe__lua_permits **link;
};

/* The address of this variable is a key in the registry, for a table of the locks that tasks have.
 * So Lua does not collect such a lock, whatever a script does with the lock's metatable. */
static const char anchors;

static void
set_anchor(lua_State *L, const struct sxe__lua_permits *permits, int index)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &anchors);
    if (index == 0)
        lua_pushnil(L);
    else
        lua_pushvalue(L, index);
    lua_rawsetp(L, -2, permits);
    lua_pop(L, 1);
}

/* The running task takes a permit. A lock goes into the task's list of locks, which are released
 * when the task ends. */
static void
hold_permit(lua_State *L, struct sxe__lua_permits *permits)
{
    struct sxe__lua_task *task;

    permits->owner = sxe__lua_running(L);
    if (!permits->is_lock)
        return;
    task = sxe__lua_task_at(SCHEDULER->running);
    permits->next = task->locks;
    permits->link = &task->locks;
    if (task->locks != NULL)
        task->locks->link = &permits->next;
    task->locks = permits;
}

/* Give a permit back. A lock that is promised to a waiting task stays anchored for that task. */
static void
give_permit_back(lua_State *L, struct sxe__lua_permits *permits)
{
    if (permits->is_lock) {
        *permits->link = permits->next;
        if (permits->next != NULL)
            permits->next->link = permits->link;
    }
    permits->owner = 0;
    if (sxe__lua_wake_first(&permits->line))
        return;
    permits->free++;
    if (permits->is_lock)
        set_anchor(L, permits, 0);
}

void
sxe__lua_release_locks(uint32_t index)
{
    const struct sxe__lua_task *task = sxe__lua_task_at(index);

    if (SXE_LIKELY(task->locks == NULL))
        return;
    SXE_WARN("a task ended and had not released its lock, which is free now: take locks as "
             "variables with <close>");
    while (task->locks != NULL)
        give_permit_back(task->coroutine, task->locks);
}

static int
return_acquired(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_permits *permits = lua_touserdata(L, 1);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    hold_permit(L, permits);
    lua_settop(L, 1);
    return 1;
}

/* The lock or semaphore at 1. Outside of a task a lock raises an error: the running task's handle
 * would be 0 there, which is also the owner of a lock that is promised to a waiting task. */
static struct sxe__lua_permits *
check_permits(lua_State *L)
{
    struct sxe__lua_permits *permits = luaL_checkudata(L, 1, PERMITS);

    if (permits->is_lock && sxe__lua_running(L) == 0)
        luaL_error(L, "a lock is a task's, and this is outside of one");
    return permits;
}

static int
l_acquire(lua_State *L)
{
    struct sxe__lua_permits *permits = check_permits(L);
    uint64_t deadline_ns = sxe__lua_deadline(L, 2);

    if (permits->free == 0) {
        if (permits->is_lock && permits->owner == sxe__lua_running(L))
            return luaL_error(L, "this task has the lock already");
        return sxe__lua_park_in(L, &permits->line, deadline_ns, return_acquired, 0);
    }
    if (permits->is_lock)
        /* Set the anchor before anything else changes: it raises an error if memory is missing. */
        set_anchor(L, permits, 1);
    permits->free--;
    hold_permit(L, permits);
    lua_settop(L, 1);
    return 1;
}

static int
l_release(lua_State *L)
{
    struct sxe__lua_permits *permits = check_permits(L);

    if (permits->is_lock && (permits->free > 0 || permits->owner != sxe__lua_running(L)))
        return luaL_error(L, "this task does not have the lock");
    if (permits->free == LUA_MAXINTEGER)
        return luaL_error(L, "the semaphore has too many permits");
    give_permit_back(L, permits);
    return 0;
}

static int
push_permits(lua_State *L, lua_Integer number, bool is_lock)
{
    struct sxe__lua_permits *permits = lua_newuserdatauv(L, sizeof(*permits), 0);

    *permits = (struct sxe__lua_permits){.free = number, .is_lock = is_lock};
    luaL_setmetatable(L, PERMITS);
    return 1;
}

static int
l_lock(lua_State *L)
{
    return push_permits(L, 1, true);
}

static int
l_semaphore(lua_State *L)
{
    lua_Integer number = luaL_checkinteger(L, 1);

    luaL_argcheck(L, number >= 0, 1, "a number of permits expected");
    return push_permits(L, number, false);
}

/* ---- Events ---- */

struct event {
    struct sxe__lua_line line;
    bool is_set;
};

static int
return_happened(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    lua_pushboolean(L, true);
    return 1;
}

static int
l_event_wait(lua_State *L)
{
    struct event *event = luaL_checkudata(L, 1, EVENT);
    uint64_t deadline_ns = sxe__lua_deadline(L, 2);

    if (!event->is_set)
        return sxe__lua_park_in(L, &event->line, deadline_ns, return_happened, 0);
    lua_pushboolean(L, true);
    return 1;
}

static int
l_set(lua_State *L)
{
    struct event *event = luaL_checkudata(L, 1, EVENT);

    event->is_set = true;
    sxe__lua_wake_all(&event->line);
    return 0;
}

static int
l_event_clear(lua_State *L)
{
    struct event *event = luaL_checkudata(L, 1, EVENT);

    event->is_set = false;
    return 0;
}

static int
l_is_set(lua_State *L)
{
    struct event *event = luaL_checkudata(L, 1, EVENT);

    lua_pushboolean(L, event->is_set);
    return 1;
}

static int
l_event(lua_State *L)
{
    struct event *event = lua_newuserdatauv(L, sizeof(*event), 0);

    *event = (struct event){.is_set = false};
    luaL_setmetatable(L, EVENT);
    return 1;
}

/* ---- Queues ---- */

struct queue {
    struct sxe__lua_line getters;
    struct sxe__lua_line putters;
    lua_Integer first;
    lua_Integer count;
    lua_Integer capacity;
    lua_Integer promised_items;
    lua_Integer promised_room;
    bool is_closed;
};

static struct queue *
check_queue(lua_State *L)
{
    return luaL_checkudata(L, 1, QUEUE);
}

/* Put the value at index 2 into the queue, and wake a task that waits for a value. */
static int
add_message(lua_State *L, struct queue *queue)
{
    lua_getiuservalue(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, queue->first + queue->count);
    queue->count++;
    if (sxe__lua_wake_first(&queue->getters))
        queue->promised_items++;
    lua_pushboolean(L, true);
    return 1;
}

static int
take_queue_message(lua_State *L, struct queue *queue)
{
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, queue->first);
    lua_pushnil(L);
    lua_rawseti(L, -3, queue->first);
    queue->first++;
    queue->count--;
    if (queue->count == 0)
        queue->first = 1;
    if (sxe__lua_wake_first(&queue->putters))
        queue->promised_room++;
    return 1;
}

static int
put_woken(lua_State *L, int status, lua_KContext context)
{
    struct queue *queue = lua_touserdata(L, 1);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    if (queue->is_closed)
        return sxe__lua_fail(L, "closed");
    queue->promised_room--;
    return add_message(L, queue);
}

static int
l_queue_put(lua_State *L)
{
    struct queue *queue = check_queue(L);
    uint64_t deadline_ns = sxe__lua_deadline(L, 3);

    luaL_argcheck(L, !lua_isnoneornil(L, 2), 2, "a value other than nil expected");
    if (queue->is_closed)
        return sxe__lua_fail(L, "closed");
    if (queue->count + queue->promised_room >= queue->capacity)
        return sxe__lua_park_in(L, &queue->putters, deadline_ns, put_woken, 0);
    return add_message(L, queue);
}

/* Continue after a wait: an item was promised to this task, or the queue was closed. Tasks with a
 * promised item were woken earlier, so they have taken their items before a task without a promised
 * item runs. */
static int
get_woken(lua_State *L, int status, lua_KContext context)
{
    struct queue *queue = lua_touserdata(L, 1);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    if (queue->promised_items == 0)
        return sxe__lua_fail(L, "closed");
    queue->promised_items--;
    return take_queue_message(L, queue);
}

static int
get_message(lua_State *L, uint64_t deadline_ns)
{
    struct queue *queue = check_queue(L);

    if (queue->count > queue->promised_items)
        return take_queue_message(L, queue);
    if (queue->is_closed)
        return sxe__lua_fail(L, "closed");
    return sxe__lua_park_in(L, &queue->getters, deadline_ns, get_woken, 0);
}

static int
l_queue_get(lua_State *L)
{
    return get_message(L, sxe__lua_deadline(L, 2));
}

/* The iterator of "for item in queue:each()", whose second argument, the previous item, is
 * ignored. */
static int
next_item(lua_State *L)
{
    return get_message(L, 0);
}

static int
l_queue_each(lua_State *L)
{
    check_queue(L);
    lua_pushcfunction(L, next_item);
    lua_pushvalue(L, 1);
    return 2;
}

static int
l_queue_close(lua_State *L)
{
    struct queue *queue = check_queue(L);

    queue->is_closed = true;
    sxe__lua_wake_all(&queue->getters);
    sxe__lua_wake_all(&queue->putters);
    return 0;
}

static int
l_length(lua_State *L)
{
    lua_pushinteger(L, check_queue(L)->count);
    return 1;
}

static int
l_queue(lua_State *L)
{
    lua_Integer capacity = luaL_optinteger(L, 1, LUA_MAXINTEGER);
    struct queue *queue;

    luaL_argcheck(L, capacity > 0, 1, "a number of items expected");
    queue = lua_newuserdatauv(L, sizeof(*queue), 1);
    *queue = (struct queue){.first = 1, .capacity = capacity};
    luaL_setmetatable(L, QUEUE);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

/* ---- The module ---- */

static const luaL_Reg of_permits[] = {
    {"acquire", l_acquire}, {"release", l_release}, {"__close", l_release}, {NULL, NULL}};

static const luaL_Reg of_event[] = {{"wait", l_event_wait},
                                    {"set", l_set},
                                    {"clear", l_event_clear},
                                    {"is_set", l_is_set},
                                    {NULL, NULL}};

static const luaL_Reg of_queue[] = {{"put", l_queue_put},
                                    {"get", l_queue_get},
                                    {"each", l_queue_each},
                                    {"close", l_queue_close},
                                    {"__len", l_length},
                                    {"__close", l_queue_close},
                                    {NULL, NULL}};

static const luaL_Reg functions[] = {{"lock", l_lock},
                                     {"semaphore", l_semaphore},
                                     {"event", l_event},
                                     {"queue", l_queue},
                                     {NULL, NULL}};

static void
new_class(lua_State *L, const char *name, const luaL_Reg *methods)
{
    sxe__lua_new_class(L, name);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void
sxe__lua_open_sync(lua_State *L)
{
    new_class(L, PERMITS, of_permits);
    new_class(L, EVENT, of_event);
    new_class(L, QUEUE, of_queue);
    luaL_setfuncs(L, functions, 0);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &anchors);
}
