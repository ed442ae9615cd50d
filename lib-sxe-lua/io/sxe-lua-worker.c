/* SPDX-License-Identifier: MIT
 *
 * require "sxe.worker", as the owner of workers sees it: worker.new, and the methods of a worker.
 */
#include "sxe-lua-worker-private.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-core-private.h"
#include "sxe-lua-part-internal.h"
#include "sxe-lua-socket-private.h"

SXE__LUA_PART(worker, "lib-sxe-lua/io/sxe-lua-worker.lua");

enum { CALLS = 64, CALLS_MAX = 512, TASKS = 1024, END_MS = 2000 };

#define MEMORY     ((lua_Integer)64 << 20)
#define MEMORY_MIN ((lua_Integer)1 << 20)
#define MEMORY_MAX ((lua_Integer)1 << 40)

static struct sxe__lua_worker *
check_worker(lua_State *L)
{
    return *(struct sxe__lua_worker **)luaL_checkudata(L, 1, "sxe.worker");
}

/* ---- From the worker's thread ---- */

static void
take_message(struct sxe__lua_worker *worker, struct sxe__lua_message *message)
{
    if (__atomic_load_n(&message->is_cancelled, __ATOMIC_ACQUIRE)) {
        sxe__lua_message_free(message);
    } else if (message->task != 0) {
        worker->calls--;
        sxe__lua_loop_release();
        sxe__lua_messages_add(&worker->replied, message);
        sxe__lua_wake(message->task, SXE__LUA_EVENT);
    } else {
        sxe__lua_messages_add(&worker->arrived, message);
        sxe__lua_wake_first(&worker->receivers);
    }
}

/* Take the messages and replies that came. If the worker has ended, join its thread. */
static void
drain_worker(struct sxe__lua_worker *worker)
{
    struct sxe__lua_messages come;
    struct sxe__lua_message *message;
    bool has_ended;

    pthread_mutex_lock(&worker->lock);
    come = worker->out;
    worker->out = (struct sxe__lua_messages){NULL, NULL};
    has_ended = worker->has_ended;
    pthread_mutex_unlock(&worker->lock);
    while ((message = sxe__lua_messages_take(&come)) != NULL)
        take_message(worker, message);
    if (!has_ended)
        return;
    if (worker->has_thread)
        pthread_join(worker->thread, NULL);
    worker->is_over = true;
    sxe__lua_wake_all(&worker->receivers);
    sxe__lua_wake_all(&worker->stoppers);
}

static void
unlist_worker(struct sxe__lua_workers *workers, struct sxe__lua_worker *worker)
{
    struct sxe__lua_worker **link = &workers->first;

    while (*link != worker)
        link = &(*link)->next;
    *link = worker->next;
    sxe__lua_worker_release(worker);
}

static void
drain_all(struct sxe__lua_workers *workers)
{
    struct sxe__lua_worker *next;

    for (struct sxe__lua_worker *worker = workers->first; worker != NULL; worker = next) {
        next = worker->next;
        drain_worker(worker);
        if (worker->is_over)
            unlist_worker(workers, worker);
    }
}

static void
worker_on_wake(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    drain_all(sxe__lua_current()->workers);
}

/* ---- Beginning ---- */

/* Start the thread: 0 or an error. With the first thread the loop begins to listen to workers. */
static int
start_worker(struct sxe__lua_workers *workers, struct sxe__lua_worker *worker)
{
    if (workers->loop == NULL) {
        const int error = sxe__lua_worker_check_descriptor();

        if (error != 0)
            return error;
        workers->loop = sxe_loop();
        ev_async_init(&workers->wake, worker_on_wake);
        ev_async_start(workers->loop, &workers->wake);
        ev_unref(workers->loop);
    }
    return sxe__lua_worker_start(worker);
}

/* The loop begins: start the threads of the workers that scripts made before the loop began. */
static int
start_all(lua_State *L)
{
    struct sxe__lua_workers *workers = sxe__lua_current()->workers;

    SXE_UNUSED_PARAMETER(L);
    for (struct sxe__lua_worker *worker = workers->first; worker != NULL; worker = worker->next) {
        const int error = worker->is_over ? 0 : start_worker(workers, worker);

        if (error == 0)
            continue;
        sxe__lua_worker_set_problem(worker, strerror(error));
        sxe__lua_worker_finish(worker);
    }
    drain_all(workers);
    return 0;
}

/* ---- Options of worker.new ---- */

static lua_Integer
option_number(lua_State *L, const char *name, lua_Integer least, lua_Integer most,
              lua_Integer value)
{
    if (lua_getfield(L, 1, name) != LUA_TNIL) {
        int is_number;

        value = sxe__lua_option_integer(L, &is_number);
        if (!is_number || value < least || value > most)
            luaL_error(L, "worker.new: %s: %I to %I expected, got %s", name, least, most,
                       luaL_tolstring(L, -1, NULL));
    }
    lua_pop(L, 1);
    return value;
}

/* Copy the text on top, which is an option of worker.new. */
static char *
worker_copy_text(lua_State *L, const char *name)
{
    char *copy = strdup(sxe__lua_option_text(L, "worker.new", name));

    if (copy == NULL)
        luaL_error(L, "not enough memory");
    return copy;
}

/* Read the options code and file, of which exactly one must be given. */
static void
read_code(lua_State *L, struct sxe__lua_worker_plan *plan)
{
    const int code = lua_getfield(L, 1, "code");
    int status;

    plan->is_file = lua_getfield(L, 1, "file") != LUA_TNIL;
    if (plan->is_file == (code != LUA_TNIL))
        luaL_error(L, "worker.new: either code or file expected");
    if (plan->is_file) {
        plan->text = worker_copy_text(L, "file");
        return;
    }
    lua_pop(L, 1);
    if (code != LUA_TFUNCTION) {
        plan->text = worker_copy_text(L, "code");
        return;
    }
    status = sxe__lua_clone_write(L, lua_gettop(L), "worker.new: code", 0, true, &plan->code);
    if (status != LUA_OK)
        sxe__lua_worker_raise(L, status);
}

static void
read_options(lua_State *L, struct sxe__lua_worker *worker)
{
    struct sxe__lua_worker_plan *plan = &worker->plan;

    plan->config = *sxe__lua_config();
    plan->config.memory_max = (size_t)option_number(L, "memory", MEMORY_MIN, MEMORY_MAX, MEMORY);
    plan->config.cpu_ms = (uint32_t)option_number(L, "cpu_ms", 1, UINT32_MAX, UINT32_MAX);
    plan->calls = (uint32_t)option_number(L, "calls", 1, CALLS_MAX, CALLS);
    plan->config.tasks = TASKS;
    plan->config.is_bare = true;
    plan->config.argc = 0;
    read_code(L, plan);
    sxe__lua_worker_name(L, worker);
    worker->contents = sxe__lua_current()->contents;
}

/* worker.new{code = | file =, name =, memory =, cpu_ms =, calls =} */
static int
worker_l_new(lua_State *L)
{
    static const char *const names[] = {"code", "file", "name", "memory", "cpu_ms", "calls", NULL};
    struct sxe__lua_workers *workers = sxe__lua_current()->workers;
    struct sxe__lua_worker **box;
    struct sxe__lua_worker *worker;
    int error = 0;

    sxe__lua_refuse_at_end(L);
    sxe__lua_option_names(L, 1, names, "worker.new");
    lua_settop(L, 1);
    box = lua_newuserdatauv(L, sizeof(struct sxe__lua_worker *), 0);
    worker = sxe__lua_worker_new();
    if (worker == NULL)
        return sxe__lua_worker_fail_new(L);
    *box = worker;
    luaL_setmetatable(L, "sxe.worker");
    read_options(L, worker);
    lua_settop(L, 2);
    worker->receivers.keeps_loop = 1;
    worker->stoppers.keeps_loop = 1;
    worker->owner = workers;
    worker->references = 2;
    worker->next = workers->first;
    workers->first = worker;
    if (sxe_loop() != NULL)
        error = start_worker(workers, worker);
    if (error == 0)
        return 1;
    worker->is_over = true;
    unlist_worker(workers, worker);
    return sxe__lua_fail_errno(L, error, "worker.new");
}

/* ---- Calls ---- */

/* The on_leave of a call: its task does not wait any more. */
static void
leave_call(void *what)
{
    struct sxe__lua_message *message = what;

    message->worker->calls--;
    sxe__lua_loop_release();
    sxe__lua_worker_cancel(message);
}

/* Push nil and the error of a call that failed; or push the results of sxe__lua_worker_fail. */
static int
push_failure(lua_State *L, const struct sxe__lua_message *message)
{
    if (message->problem != NULL)
        return sxe__lua_worker_fail(L, message->worker, message->problem);
    lua_pushnil(L);
    (void)sxe__lua_clone_read(L, &message->bytes);
    return 2;
}

/* Push the results of a call from its reply. Argument: the reply. */
static int
push_reply(lua_State *L)
{
    const struct sxe__lua_message *message = lua_touserdata(L, 1);

    lua_settop(L, 0);
    if (message->problem != NULL || message->has_failed)
        return push_failure(L, message);
    if (message->is_try)
        lua_pushboolean(L, 1);
    (void)sxe__lua_clone_read(L, &message->bytes);
    return lua_gettop(L);
}

static int
finish_call(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_message *message = (struct sxe__lua_message *)context;
    const int top = lua_gettop(L);

    SXE_UNUSED_PARAMETER(status);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    lua_pushcfunction(L, push_reply);
    lua_pushlightuserdata(L, message);
    status = lua_pcall(L, 1, LUA_MULTRET, 0);
    sxe__lua_messages_remove(&message->worker->replied, message);
    sxe__lua_message_free(message);
    return status == LUA_OK ? lua_gettop(L) - top : lua_error(L);
}

static int
cannot_wait(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return sxe__lua_fail_woken(L);
}

static int
call_worker(lua_State *L, bool is_try)
{
    struct sxe__lua_worker *worker = check_worker(L);
    struct sxe__lua_bytes bytes;
    struct sxe__lua_message *message;
    const char *problem;
    int status;

    if (!sxe__lua_may_wait(L)) /* parking raises the reason */
        return sxe__lua_park(L, 0, NULL, NULL, cannot_wait, 0);
    status = sxe__lua_clone_write(L, 2, "argument ", 1, true, &bytes);
    if (status != LUA_OK)
        return sxe__lua_worker_raise(L, status);
    message = sxe__lua_message_new(worker, &bytes);
    if (message == NULL)
        return luaL_error(L, "not enough memory");
    message->task = sxe__lua_running(L);
    message->is_try = is_try;
    problem = sxe__lua_worker_send(message);
    if (problem != NULL) {
        sxe__lua_message_free(message);
        return sxe__lua_worker_fail(L, worker, problem);
    }
    worker->calls++;
    sxe__lua_loop_hold();
    return sxe__lua_park(L, 0, leave_call, message, finish_call, (lua_KContext)message);
}

/* worker:call(name | fn, ...): its results; or nil, the error */
static int
l_call(lua_State *L)
{
    return call_worker(L, false);
}

/* For worker.map: true, the results; or nil, the error. */
static int
l_try(lua_State *L)
{
    return call_worker(L, true);
}

/* ---- Messages ---- */

/* worker:send(value) */
static int
l_send(lua_State *L)
{
    return sxe__lua_worker_send_value(L, check_worker(L), sxe__lua_worker_send);
}

static int worker_receive_next(lua_State *L);

static int
message_received(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    return worker_receive_next(L);
}

static int
worker_receive_next(lua_State *L)
{
    struct sxe__lua_worker *worker = check_worker(L);

    if (worker->arrived.first != NULL)
        return sxe__lua_worker_push_first(L, &worker->arrived);
    if (worker->is_over)
        return sxe__lua_worker_fail(L, worker,
                                    worker->problem != NULL ? worker->problem : "it was stopped");
    return sxe__lua_park_in(L, &worker->receivers, (uint64_t)lua_tointeger(L, 3), message_received,
                            0);
}

/* worker:receive([timeout]) */
static int
l_receive(lua_State *L)
{
    check_worker(L);
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)sxe__lua_deadline(L, 2));
    return worker_receive_next(L);
}

/* ---- The end ---- */

static void
end_worker(struct sxe__lua_worker *worker)
{
    sxe__lua_worker_ask_to_end(worker);
    if (worker->has_thread || worker->is_over)
        return;
    sxe__lua_worker_finish(worker);
    drain_worker(worker);
}

static int
worker_stopped(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    lua_pushboolean(L, 1);
    return 1;
}

/* worker:stop([timeout]): true when its thread has ended */
static int
worker_l_stop(lua_State *L)
{
    struct sxe__lua_worker *worker = check_worker(L);
    const uint64_t deadline_ns = sxe__lua_deadline(L, 2);

    end_worker(worker);
    if (!worker->is_over)
        return sxe__lua_park_in(L, &worker->stoppers, deadline_ns, worker_stopped, 0);
    lua_pushboolean(L, 1);
    return 1;
}

/* Called at the end of the scope of a <close> variable. */
static int
close_worker(lua_State *L)
{
    end_worker(check_worker(L));
    return 0;
}

static int
collect_worker(lua_State *L)
{
    struct sxe__lua_worker *worker = check_worker(L);

    end_worker(worker);
    sxe__lua_worker_release(worker);
    return 0;
}

/* The thread has not ended in time: leave the worker to the thread, which frees it when it ends. */
static void
leave_thread(struct sxe__lua_worker *worker)
{
    SXE_WARN("worker '%s' does not end, because a function of C does not return: its thread runs "
             "on",
             worker->name);
    pthread_mutex_lock(&worker->lock);
    worker->owner = NULL;
    pthread_mutex_unlock(&worker->lock);
    pthread_detach(worker->thread);
}

/* Wait until the thread has ended, but not longer than what is left of *wait_ms. */
static void
await_end(struct sxe__lua_worker *worker, int *wait_ms)
{
    bool has_ended = !worker->has_thread || worker->is_over;

    while (!has_ended) {
        has_ended = pthread_tryjoin_np(worker->thread, NULL) == 0;
        if (has_ended || *wait_ms <= 0)
            break;
        (void)poll(NULL, 0, 1);
        --*wait_ms;
    }
    if (!has_ended)
        leave_thread(worker);
    sxe__lua_worker_release(worker);
}

/* The state ends, and so do its workers. */
static int
close_workers(lua_State *L)
{
    struct sxe__lua_workers *workers = sxe__lua_current()->workers;
    struct sxe__lua_worker *next;
    int wait_ms = END_MS;

    SXE_UNUSED_PARAMETER(L);
    for (struct sxe__lua_worker *worker = workers->first; worker != NULL; worker = worker->next)
        sxe__lua_worker_ask_to_end(worker);
    for (struct sxe__lua_worker *worker = workers->first; worker != NULL; worker = next) {
        next = worker->next;
        await_end(worker, &wait_ms);
    }
    workers->first = NULL;
    if (workers->loop != NULL) {
        ev_ref(workers->loop);
        ev_async_stop(workers->loop, &workers->wake);
    }
    return 0;
}

/* ---- The module ---- */

/* worker.cores(): how many CPUs this process may use */
static int
l_cores(lua_State *L)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    (void)sched_getaffinity(0, sizeof(set), &set);
    lua_pushinteger(L, CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1);
    return 1;
}

/* Properties; upvalue 1: the methods. */
static int
get_property(lua_State *L)
{
    const struct sxe__lua_worker *worker = check_worker(L);
    const char *name = lua_tostring(L, 2);

    if (name != NULL && strcmp(name, "name") == 0) {
        lua_pushstring(L, worker->name);
    } else if (name != NULL && strcmp(name, "status") == 0) {
        lua_pushstring(L, worker->is_over ? "ended" : "running");
    } else if (name != NULL && strcmp(name, "calls") == 0) {
        lua_pushinteger(L, worker->calls);
    } else if (name != NULL && strcmp(name, "load") == 0) {
        lua_pushinteger(L, __atomic_load_n(&worker->load, __ATOMIC_RELAXED));
    } else {
        lua_settop(L, 2);
        lua_rawget(L, lua_upvalueindex(1));
    }
    return 1;
}

static void
open_class(lua_State *L)
{
    static const luaL_Reg methods[] = {{"call", l_call},
                                       {"send", l_send},
                                       {"receive", l_receive},
                                       {"stop", worker_l_stop},
                                       {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__gc", collect_worker}, {"__close", close_worker}, {NULL, NULL}};

    sxe__lua_new_class(L, "sxe.worker");
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, get_property, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

static void
open_workers(lua_State *L)
{
    struct sxe__lua_workers *workers = lua_newuserdatauv(L, sizeof(*workers), 0);

    *workers = (struct sxe__lua_workers){.first = NULL};
    luaL_ref(L, LUA_REGISTRYINDEX);
    sxe__lua_current()->workers = workers;
    sxe__lua_at_end(L, close_workers);
    if (sxe_loop() != NULL)
        return;
    lua_pushcfunction(L, start_all);
    sxe__lua_queue(L);
}

int
sxe__lua_open_worker(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"new", worker_l_new}, {"cores", l_cores}, {"try", l_try}, {NULL, NULL}};

    if (sxe__lua_current()->workers == NULL)
        open_workers(L);
    open_class(L);
    sxe__lua_push_part(L, &worker_part);
    luaL_newlib(L, functions);
    sxe__lua_worker_push_parent(L);
    lua_setfield(L, -2, "parent");
    lua_call(L, 1, 1);
    return 1;
}
