/* SPDX-License-Identifier: MIT
 *
 * The thread of a worker: its state and loop, the calls that it serves, its end.
 */
#include "sxe-lua-worker-private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-core-private.h"
#include "sxe-work.h"

enum { STACK_SIZE = 1 << 20, SOCKETS = 16, LOOP_MEMORY = 1 << 16 };

/* In the registry: what the worker's code returned. */
static const char code_key = 0;

static struct sxe__lua_worker *
this_worker(void)
{
    return sxe__lua_current()->worker;
}

static bool
is_ending(void)
{
    return __atomic_load_n(&sxe__lua_current()->watch.is_ending, __ATOMIC_ACQUIRE);
}

/* ---- Calls ---- */

/* Put the function of a call at index 1, in place of its name. If the first argument is a function,
 * this function is called. If the worker's code returned a function, that function is called, with
 * all arguments. */
static void
thread_find_function(lua_State *L)
{
    if (lua_gettop(L) == 0)
        lua_pushnil(L);
    if (lua_isfunction(L, 1))
        return;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &code_key);
    if (lua_isfunction(L, -1)) {
        lua_insert(L, 1);
        return;
    }
    if (lua_istable(L, -1)) {
        lua_pushvalue(L, 1);
        lua_gettable(L, -2);
    }
    if (!lua_isfunction(L, -1))
        luaL_error(L, "worker '%s' has no function '%s'", this_worker()->name,
                   luaL_tolstring(L, 1, NULL));
    lua_replace(L, 1);
    lua_pop(L, 1);
}

static int
end_serving(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return lua_gettop(L);
}

/* Run a call as a task. Argument: the message of the call. */
static int
serve_call(lua_State *L)
{
    struct sxe__lua_message *message = lua_touserdata(L, 1);

    lua_settop(L, 0);
    sxe__lua_clone_read(L, &message->bytes);
    sxe__lua_clone_free(&message->bytes);
    thread_find_function(L);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, end_serving);
    return end_serving(L, LUA_OK, 0);
}

/* Encode the results on top of the main state as the reply, and pop them. If the results cannot be
 * sent, the reply is an error that says why. */
static void
encode_reply(lua_State *L, int first, struct sxe__lua_message *message)
{
    const char *what = message->has_failed ? "error" : "result ";
    const int number = message->has_failed ? 0 : 1;

    if (sxe__lua_clone_write(L, first, what, number, false, &message->bytes) != LUA_OK) {
        message->has_failed = true;
        lua_insert(L, first);
        lua_settop(L, first);
        if (sxe__lua_clone_write(L, first, "error", 0, false, &message->bytes) != LUA_OK)
            message->problem = "not enough memory";
    }
    lua_settop(L, first - 1);
}

static void begin_calls(struct sxe__lua_worker *worker);

/* The on_end of the task of serve_call. */
static void
on_served(lua_State *L, int status, int results, void *user)
{
    struct sxe__lua_message *message = user;
    struct sxe__lua_worker *worker = message->worker;
    lua_State *main = sxe__lua_current()->main;
    const int first = lua_gettop(main) + 1;

    sxe__lua_messages_remove(&worker->serving, message);
    worker->serving_number--;
    sxe__lua_clone_free(&message->bytes);
    message->has_failed = status != LUA_OK;
    if (status == LUA_YIELD) {
        message->problem = is_ending() ? "it was stopped" : "the call was cancelled";
    } else if (!lua_checkstack(main, 2 * results + 4)) {
        message->problem = "not enough memory";
    } else {
        lua_xmove(L, main, status == LUA_OK ? results : 1);
        encode_reply(main, first, message);
    }
    sxe__lua_worker_reply(message);
    begin_calls(worker);
}

static void
thread_begin_call(struct sxe__lua_worker *worker, struct sxe__lua_message *message)
{
    lua_State *main = sxe__lua_current()->main;

    sxe__lua_messages_add(&worker->serving, message);
    worker->serving_number++;
    lua_pushcfunction(main, serve_call);
    lua_pushlightuserdata(main, message);
    message->served_by = sxe__lua_start(main, 1, false, on_served, message);
    if (message->served_by != 0)
        return;
    sxe__lua_messages_remove(&worker->serving, message);
    worker->serving_number--;
    message->problem = "no task is free, or no memory for one";
    sxe__lua_worker_reply(message);
}

/* When the worker's code has ended, begin the calls that wait, but no more than may run at once. */
static void
begin_calls(struct sxe__lua_worker *worker)
{
    while (worker->is_loaded && worker->serving_number < worker->plan.calls &&
           worker->waiting.first != NULL) {
        struct sxe__lua_message *message = sxe__lua_messages_take(&worker->waiting);

        if (__atomic_load_n(&message->is_cancelled, __ATOMIC_ACQUIRE))
            sxe__lua_message_free(message);
        else
            thread_begin_call(worker, message);
    }
}

/* Cancel a task whose caller no longer waits for the reply. False: there is no such task.
 * Cancelling one task may end other tasks. */
static bool
cancel_one(struct sxe__lua_worker *worker)
{
    for (struct sxe__lua_message *message = worker->serving.first; message != NULL;
         message = message->next) {
        const uint64_t task = message->served_by;

        if (task == 0 || !__atomic_load_n(&message->is_cancelled, __ATOMIC_ACQUIRE))
            continue;
        message->served_by = 0;
        sxe__lua_cancel(task);
        return true;
    }
    return false;
}

static void
on_wake(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    struct sxe__lua_worker *worker = this_worker();
    struct sxe__lua_messages come;
    struct sxe__lua_message *message;
    bool is_stopped;

    SXE_UNUSED_PARAMETER(loop);
    SXE_UNUSED_PARAMETER(watcher);
    SXE_UNUSED_PARAMETER(events);
    pthread_mutex_lock(&worker->lock);
    come = worker->in;
    worker->in = (struct sxe__lua_messages){NULL, NULL};
    is_stopped = worker->is_ending;
    pthread_mutex_unlock(&worker->lock);
    while ((message = sxe__lua_messages_take(&come)) != NULL) {
        sxe__lua_messages_add(message->task != 0 ? &worker->waiting : &worker->inbox, message);
        if (message->task == 0)
            sxe__lua_wake_first(&worker->readers);
    }
    if (is_stopped) {
        sxe_stop();
        return;
    }
    while (cancel_one(worker))
        continue;
    begin_calls(worker);
}

/* ---- The object `parent` ---- */

static int
parent_send(lua_State *L)
{
    luaL_checkudata(L, 1, "sxe.worker parent");
    return sxe__lua_worker_send_value(L, this_worker(), sxe__lua_worker_send_back);
}

static int receive_next(lua_State *L);

static int
parent_received(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    return receive_next(L);
}

static int
receive_next(lua_State *L)
{
    struct sxe__lua_worker *worker = this_worker();

    if (worker->inbox.first != NULL)
        return sxe__lua_worker_push_first(L, &worker->inbox);
    return sxe__lua_park_in(L, &worker->readers, (uint64_t)lua_tointeger(L, 3), parent_received, 0);
}

/* parent:receive([timeout]) */
static int
parent_receive(lua_State *L)
{
    luaL_checkudata(L, 1, "sxe.worker parent");
    lua_settop(L, 2);
    lua_pushinteger(L, (lua_Integer)sxe__lua_deadline(L, 2));
    return receive_next(L);
}

void
sxe__lua_worker_push_parent(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"send", parent_send}, {"receive", parent_receive}, {NULL, NULL}};

    if (this_worker() == NULL) {
        lua_pushnil(L);
        return;
    }
    lua_newuserdatauv(L, 0, 0);
    sxe__lua_new_class(L, "sxe.worker parent");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

/* ---- The state ---- */

/* The on_error function of the worker's state. An error of the code ends the worker, and is kept as
 * the reason. After the code has returned, its servers begin to listen, which may fail, too. So the
 * last error before the loop runs is kept as well. Errors while the worker ends are not kept. */
static bool
thread_on_error(const char *where, const char *text)
{
    struct sxe_lua *lua = sxe__lua_current();
    struct sxe__lua_worker *worker = lua->worker;

    SXE_UNUSED_PARAMETER(where);
    if (worker != NULL && !worker->is_started) {
        free(worker->start_error);
        worker->start_error = strdup(text);
    }
    if (worker == NULL || worker->is_loaded || sxe_lua_loaded(lua) != -EINVAL)
        return is_ending();
    sxe__lua_worker_set_problem(worker, text);
    sxe_stop();
    return true;
}

static int
refuse_module(lua_State *L)
{
    return luaL_error(L,
                      "%s does not work in a worker: its children's ends are seen by the "
                      "process's first loop only",
                      lua_tostring(L, 1));
}

static int
refuse_exit(lua_State *L)
{
    return luaL_error(L, "os.exit does not work in a worker: its owner stops it");
}

static int
restrict_state(lua_State *L)
{
    lua_getglobal(L, "os");
    lua_pushcfunction(L, refuse_exit);
    lua_setfield(L, -2, "exit");
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, refuse_module);
    lua_setfield(L, -2, "sxe.spawn");
    return 0;
}

static int
code_ended(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_worker *worker = this_worker();

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &code_key); /* keep the result, which is on top */
    worker->is_loaded = true;
    begin_calls(worker);
    return 0;
}

/* Load and call the worker's code, in the task of the script's top level. */
static int
run_code(lua_State *L)
{
    const struct sxe__lua_worker_plan *plan = &this_worker()->plan;
    const char *name = lua_pushfstring(L, "=%s", this_worker()->name);
    int status = LUA_OK;

    if (plan->code.data != NULL)
        sxe__lua_clone_read(L, &plan->code);
    else if (plan->is_file)
        status = luaL_loadfilex(L, plan->text, "t");
    else
        status = luaL_loadbufferx(L, plan->text, strlen(plan->text), name, "t");
    if (status != LUA_OK)
        return lua_error(L);
    lua_callk(L, 0, 1, 0, code_ended);
    return code_ended(L, LUA_OK, 0);
}

/* Make the loop, then run the worker's code. 0 or -errno; the code's failure is in `problem`. */
static int
load_code(struct sxe_lua *lua, struct ev_loop *loop)
{
    static const luaL_Reg functions[] = {{"run", run_code}, {NULL, NULL}};
    static const char text[] = "require 'sxe-worker'.run()";
    struct sxe_config config = SXE_CONFIG_DEFAULT;
    int result;

    config.loop = loop;
    /* most workers need no threads for files, but a call may open a file */
    config.lazy_threads = true;
    sxe_configure(&config);
    sxe_register(SOCKETS, 0);
    sxe_work_register(SXE_WORK_THREADS);
    result = sxe__lua_protect(lua, restrict_state, NULL, "worker.new");
    if (result == 0)
        result = sxe_lua_module(lua, "sxe-worker", functions);
    if (result == 0)
        result = sxe_lua_load_text(lua, "=worker", text, sizeof(text) - 1);
    if (result == 0)
        result = -sxe__lua_worker_check_descriptor();
    if (result == 0)
        result = sxe_init();
    if (result == 0)
        result = lua->contents->start(lua);
    return result;
}

/* Let the owner wake this loop from now on; loop NULL: the owner must not wake it any more. */
static void
publish_loop(struct sxe__lua_worker *worker, struct sxe_lua *lua, struct ev_loop *loop)
{
    pthread_mutex_lock(&worker->lock);
    worker->lua = lua;
    worker->loop = loop;
    if (lua != NULL && worker->is_ending)
        sxe__lua_watch_end(lua);
    pthread_mutex_unlock(&worker->lock);
}

static void
run_state(struct sxe__lua_worker *worker, struct sxe_lua *lua, struct ev_loop *loop)
{
    int result;

    lua->worker = worker;
    publish_loop(worker, lua, NULL);
    result = load_code(lua, loop);
    worker->is_started = result == 0;
    if (result < 0) {
        const bool is_told = result == -EINVAL && worker->start_error != NULL;

        sxe__lua_worker_set_problem(worker, is_told ? worker->start_error : strerror(-result));
    } else {
        ev_async_init(&worker->wake, on_wake);
        ev_async_start(loop, &worker->wake);
        publish_loop(worker, lua, loop);
        ev_async_send(loop, &worker->wake); /* messages may have come before the loop ran */
        sxe_run();
        publish_loop(worker, lua, NULL);
        worker->is_loaded = false; /* no call begins from now on */
        ev_async_stop(loop, &worker->wake);
    }
    (void)sxe_fini();
    sxe__lua_watch_end(lua);
    publish_loop(worker, NULL, NULL);
}

static void *
thread_run_worker(void *user)
{
    struct sxe__lua_worker *worker = user;
    struct ev_loop *loop = NULL;
    struct sxe_lua *lua = NULL;
    /* Test whether there is memory: without memory libev would end the process. */
    void *memory = malloc(LOOP_MEMORY);

    free(memory);
    pthread_setname_np(pthread_self(), "sxe-worker");
    worker->plan.config.on_error = thread_on_error;
    if (memory != NULL)
        loop = ev_loop_new(EVFLAG_AUTO);
    if (loop != NULL)
        lua = sxe__lua_new(&worker->plan.config, worker->contents);
    if (lua == NULL)
        sxe__lua_worker_set_problem(worker, strerror(ENOMEM));
    else
        run_state(worker, lua, loop);
    sxe_lua_delete(lua);
    if (loop != NULL)
        ev_loop_destroy(loop);
    sxe__lua_worker_finish(worker);
    sxe__lua_worker_release(worker);
    return NULL;
}

int
sxe__lua_worker_start(struct sxe__lua_worker *worker)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    int error;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    __atomic_add_fetch(&worker->references, 1, __ATOMIC_RELAXED);
    error = pthread_create(&worker->thread, &attributes, thread_run_worker, worker);
    if (error != 0)
        sxe__lua_worker_release(worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    worker->has_thread = error == 0;
    return error;
}
