/* SPDX-License-Identifier: MIT
 *
 * What: a task's life; see the drawing in sxe-lua-task-private.h. Nothing here touches the loop.
 */
#include "sxe-lua-core-private.h"
#include "sxe-lua-task-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 4 /* slots that a coroutine's stack needs beside arguments or results */

static const char *
state_to_string(unsigned state)
{
    static const char *const names[] = {"FREE", "READY", "RUNNING", "PARKED", "LATER"};

    return names[state];
}

/* ---- Coroutines ---- */

/* Make the coroutine of a task that never had one. If a finalizer that runs meanwhile starts a task
 * at this index, the index has a coroutine already, which is kept. This function also makes the
 * place of the task's object in the table, so that setting the object later allocates no memory. */
static int
make_coroutine(lua_State *L)
{
    uint32_t index = (uint32_t)lua_tointeger(L, 1);
    lua_State *coroutine = lua_newthread(L);

    if (sxe__lua_task_at(index)->coroutine != NULL)
        return 0;
    sxe__lua_push_anchors(L);
    lua_pushboolean(L, false);
    lua_rawseti(L, -2, sxe__lua_anchor(index) + 1);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, sxe__lua_anchor(index));
    sxe__lua_bar(coroutine);
    sxe__lua_task_at(index)->coroutine = coroutine;
    return 0;
}

static bool
give_coroutine(lua_State *L, uint32_t index)
{
    if (lua_checkstack(L, ROOM)) {
        lua_pushcfunction(L, make_coroutine);
        lua_pushinteger(L, index);
        if (lua_pcall(L, 1, 0, 0) == LUA_OK)
            return true;
        lua_pop(L, 1);
    }
    return false;
}

/* Find a free task that has a coroutine, or make one for it. While the coroutine is made, another
 * task may become the first free task, so look again. SXE_NONE: no task is free, or memory is
 * missing. */
static uint32_t
find_free_task(lua_State *L)
{
    for (;;) {
        uint32_t index = sxe_pool_get_youngest(SCHEDULER->tasks, SXE__LUA_FREE);

        if (index == SXE_NONE || SXE_LIKELY(sxe__lua_task_at(index)->coroutine != NULL))
            return index;
        if (!give_coroutine(L, index))
            return SXE_NONE;
    }
}

/* ---- Ending ---- */

static void
log_failure(lua_State *L, int status, int results, void *user)
{
    SXE_UNUSED_PARAMETER(results);
    SXE_UNUSED_PARAMETER(user);
    if (status == LUA_OK || status == LUA_YIELD)
        return;
    SCHEDULER->counters[SXE__LUA_TASKS_FAILED]++;
    sxe__lua_log_error(L, "task");
}

/* End the running task with its results or the error on top, and free the task. */
static void
end_task(uint32_t index, int status, int results)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);
    const uint64_t errors = sxe__lua_current()->errors;
    lua_State *L = task->coroutine;

    if (task->object != NULL)
        sxe__lua_object_end(index, L, status, results);
    task->on_end(L, status, results, task->user);
    lua_settop(L, 0);
    if (task->object != NULL)
        sxe__lua_object_release(index, L, sxe__lua_current()->errors > errors);
    sxe__lua_release_locks(index);
    sxe__lua_group_leave(index);
    sxe__lua_task_move(index, SXE__LUA_RUNNING, SXE__LUA_FREE);
    /* The script set a hook for this task only, so do not use this coroutine for another task. */
    if (SXE_UNLIKELY(lua_gethook(L) != NULL))
        task->coroutine = NULL;
}

/* Close the coroutine's variables as if the task ran, and leave only the error on its stack.
 * Returns the status of the error. If closing raises another error, that error replaces the first,
 * with its status. */
static int
reset_coroutine(uint32_t index)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);
    uint32_t interrupted = SCHEDULER->running;
    struct sxe__lua_watched watched;
    int status;

    SCHEDULER->running = index;
    sxe__lua_watch_enter(&watched, task->coroutine, &task->spent_ns);
    status = lua_resetthread(task->coroutine);
    sxe__lua_watch_leave(&watched);
    SCHEDULER->running = interrupted;
    return status;
}

/* End a task before its function has returned, or has begun. Its coroutine is not used again,
 * because hooks may be off in it. */
static void
abandon_task(uint32_t index, int status)
{
    lua_State *L = sxe__lua_task_at(index)->coroutine;
    int closed;

    if (status != LUA_YIELD)
        sxe__lua_add_traceback(L);
    closed = lua_status(L) == LUA_OK ? LUA_OK : reset_coroutine(index);
    if (closed != LUA_OK)
        status = closed;
    end_task(index, status, status == LUA_YIELD ? 0 : 1);
    sxe__lua_task_at(index)->coroutine = NULL;
}

/* ---- Running ----
 * run_task_function() calls a task's function in a protected call, so that errors leave a coroutine
 * that can be used again: variables are closed there, where they may wait and be interrupted. */

/* Whether the error on top is the error that a cancelled task's wait raised, or an assert's error
 * about it. */
static bool
is_of_cancelling(lua_State *L)
{
    static const char word[] = "cancelled";
    const size_t word_length = sizeof(word) - 1;
    const char *text;
    size_t length;

    if (sxe__lua_task_at(SCHEDULER->running)->cancel != SXE__LUA_CANCEL_TOLD ||
        lua_type(L, -1) != LUA_TSTRING)
        return false;
    text = lua_tolstring(L, -1, &length);
    return length >= word_length && memcmp(text + length - word_length, word, word_length) == 0;
}

/* A message handler: adds a traceback without the last line, which would show
 * run_task_function(). */
int
sxe__lua_task_message_handler(lua_State *L)
{
    static const char run_line[] = "\n\t[C]: in ?";
    const size_t run_length = sizeof(run_line) - 1;
    const char *text;
    size_t length;

    if (is_of_cancelling(L))
        return 1;
    sxe__lua_message_handler(L);
    if (lua_type(L, -1) != LUA_TSTRING)
        return 1;
    text = lua_tolstring(L, -1, &length);
    if (length > run_length && strcmp(text + length - run_length, run_line) == 0)
        lua_pushlstring(L, text, length - run_length);
    return 1;
}

static int
has_run(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_task *task = sxe__lua_task_at(SCHEDULER->running);

    SXE_UNUSED_PARAMETER(context);
    if (SXE_LIKELY(status == LUA_OK || status == LUA_YIELD)) {
        task->status = LUA_OK;
        return lua_gettop(L) - 1;
    }
    task->status = is_of_cancelling(L) ? LUA_YIELD : (uint8_t)status;
    return task->status == LUA_YIELD ? 0 : 1;
}

/* Arguments: the task's function and the function's arguments. */
static int
run_task_function(lua_State *L)
{
    lua_pushcfunction(L, sxe__lua_task_message_handler);
    lua_insert(L, 1);
    return has_run(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 1, 0, has_run), 0);
}

static void
run_slice(uint32_t index, lua_State *from)
{
    struct sxe__lua_task *task = sxe__lua_task_at(index);
    const uint32_t interrupted = SCHEDULER->running;
    const unsigned mark = sxe_log_trace_mark();
    const int arguments = task->arguments;
    struct sxe__lua_watched watched;
    int results;
    int status;

    task->arguments = 0;
    SCHEDULER->running = index;
    sxe__lua_watch_enter(&watched, task->coroutine, &task->spent_ns);
    /* A cancelled task that computed in its last slice has used up its time. */
    if (SXE_UNLIKELY(task->cancel == SXE__LUA_CANCEL_ASKED) && task->spent_ns > 0)
        sxe__lua_watch_end_slice();
    status = lua_resume(task->coroutine, from, arguments, &results);
    sxe__lua_watch_leave(&watched);
    SCHEDULER->running = interrupted;
    sxe_log_trace_release(mark);
    if (status == LUA_OK) {
        end_task(index, task->status, results);
    } else if (status != LUA_YIELD) {
        abandon_task(index, status);
    } else {
        lua_pop(task->coroutine, results);
        /* A script's function that calls coroutine.yield() itself makes way, too. */
        if (sxe__lua_task_state(index) == SXE__LUA_RUNNING)
            sxe__lua_task_move(index, SXE__LUA_RUNNING, SXE__LUA_READY);
        else if (SXE_UNLIKELY(task->cancel == SXE__LUA_CANCEL_OVER)) {
            sxe__lua_task_move(index, SXE__LUA_READY, SXE__LUA_RUNNING);
            abandon_task(index, LUA_YIELD);
        }
    }
}

void
sxe__lua_resume(uint32_t index, lua_State *from)
{
    const uint64_t origin = sxe__lua_task_at(index)->origin;
    const uint64_t outer = SCHEDULER->origin;
    const char *request = NULL;

    SCHEDULER->origin = origin;
    if (SXE_UNLIKELY(origin != 0))
        request = sxe_log_set_request(sxe__lua_current()->contents->id_of(origin));
    run_slice(index, from);
    if (SXE_UNLIKELY(origin != 0))
        sxe_log_set_request(request);
    SCHEDULER->origin = outer;
}

/* ---- Starting and cancelling ---- */

uint64_t
sxe__lua_start(lua_State *from, int arguments, bool is_now, sxe__lua_on_end on_end, void *user)
{
    const bool is_refused = SCHEDULER->is_closing || !(is_now || sxe__lua_group_may_grow());
    uint32_t index = is_refused ? SXE_NONE : find_free_task(from);
    struct sxe__lua_task *task;
    uint64_t handle;

    if (index == SXE_NONE ||
        !lua_checkstack(sxe__lua_task_at(index)->coroutine, arguments + ROOM)) {
        SCHEDULER->counters[SXE__LUA_TASKS_REFUSED]++;
        lua_pop(from, arguments + 1);
        return 0;
    }
    task = sxe__lua_task_at(index);
    lua_pushcfunction(task->coroutine, run_task_function);
    lua_xmove(from, task->coroutine, arguments + 1);
    *task = (struct sxe__lua_task){.coroutine = task->coroutine,
                                   .on_end = on_end != NULL ? on_end : log_failure,
                                   .user = user,
                                   .origin = SCHEDULER->origin,
                                   .arguments = arguments + 1};
    sxe__lua_group_enter(index);
    sxe__lua_task_move(index, SXE__LUA_FREE, is_now ? SXE__LUA_RUNNING : SXE__LUA_READY);
    handle = sxe__lua_task_handle(index);
    SCHEDULER->counters[SXE__LUA_TASKS_STARTED]++;
    if (is_now)
        sxe__lua_resume(index, from);
    return handle;
}

/* Start the functions that on_cancel was given. */
static void
start_on_cancel(uint32_t index)
{
    lua_State *L = SCHEDULER->main;
    bool is_started = lua_checkstack(L, 4);

    if (is_started && sxe__lua_object_push_on_cancel(L, index)) {
        for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++)
            is_started &= sxe__lua_start(L, 0, false, NULL, NULL) != 0;
        lua_pop(L, 2);
    }
    if (!is_started)
        SXE_ERROR("task: no task is free for what on_cancel was given");
}

void
sxe__lua_cancel(uint64_t handle)
{
    uint32_t index = sxe__lua_task_index(handle);
    struct sxe__lua_task *task;

    if (index == SXE_NONE || sxe__lua_task_at(index)->cancel != SXE__LUA_NOT_CANCELLED)
        return;
    task = sxe__lua_task_at(index);
    task->cancel = SXE__LUA_CANCEL_ASKED;
    SCHEDULER->counters[SXE__LUA_TASKS_CANCELLED]++;
    if (task->object != NULL)
        start_on_cancel(index);
    if (sxe__lua_task_state(index) == SXE__LUA_PARKED) {
        task->cancel = SXE__LUA_CANCEL_TOLD;
        sxe__lua_wake_index(index, SXE__LUA_CANCELLED);
    } else if (task->arguments > 0) {
        sxe__lua_task_move(index, sxe__lua_task_state(index), SXE__LUA_RUNNING);
        sxe__lua_unhook(index, SXE__LUA_EVENT);
        end_task(index, LUA_YIELD, 0);
    } else if (sxe__lua_task_state(index) == SXE__LUA_LATER) {
        sxe__lua_hurry(index);
    }
}

/* ---- The scheduler ---- */

int
sxe__lua_tasks_open(lua_State *main, const struct sxe_lua_config *config)
{
    *SCHEDULER = (struct sxe__lua_scheduler){.main = main,
                                             .number = config->tasks,
                                             .running = SXE_NONE,
                                             .ready_max = config->ready_max,
                                             .slice_ns = config->slice_ms * SXE_NS_PER_MS};
    SCHEDULER->heap = calloc(config->tasks, sizeof(*SCHEDULER->heap));
    SCHEDULER->groups = calloc(config->tasks, sizeof(*SCHEDULER->groups));
    SCHEDULER->tasks = sxe_pool_new("lua-tasks", config->tasks, sizeof(*SCHEDULER->tasks),
                                    SXE__LUA_TASK_STATES, SXE_POOL_OPTION_UNLOCKED);
    lua_pushcfunction(main, sxe__lua_open_anchors);
    if (lua_pcall(main, 0, 0, 0) != LUA_OK) {
        lua_pop(main, 1);
        goto fail;
    }
    if (SCHEDULER->heap == NULL || SCHEDULER->groups == NULL || SCHEDULER->tasks == NULL ||
        sxe_pool_set_state_to_string(SCHEDULER->tasks, state_to_string) < 0)
        goto fail;
    return 0;

fail:
    sxe__lua_tasks_close();
    return -ENOMEM;
}

/* End all tasks in a state without logging anything; their <close> variables run, and may wake
 * others. */
static void
end_all_tasks(enum sxe__lua_task_state state)
{
    uint32_t index;

    while ((index = sxe_pool_get_oldest(SCHEDULER->tasks, state)) != SXE_NONE) {
        sxe__lua_task_at(index)->cancel = SXE__LUA_CANCEL_TOLD;
        sxe__lua_unhook(index, SXE__LUA_CANCELLED);
        sxe__lua_task_move(index, state, SXE__LUA_RUNNING);
        abandon_task(index, LUA_YIELD);
    }
}

void
sxe__lua_tasks_close(void)
{
    SXE_ASSERT(SCHEDULER->running == SXE_NONE, "a task deletes the state that it runs in");
    SCHEDULER->is_closing = true;
    if (SCHEDULER->tasks != NULL) {
        end_all_tasks(SXE__LUA_PARKED);
        end_all_tasks(SXE__LUA_READY);
        end_all_tasks(SXE__LUA_LATER);
    }
    sxe_pool_delete(SCHEDULER->tasks);
    free(SCHEDULER->heap);
    free(SCHEDULER->groups);
    *SCHEDULER = (struct sxe__lua_scheduler){.running = SXE_NONE, .is_closing = true};
}
