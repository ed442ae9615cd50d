/* SPDX-License-Identifier: MIT
 *
 * Workers: what both threads use. Nothing here calls a script.
 */
#include "sxe-lua-worker-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sxe-lua-core-private.h"

size_t sxe__lua_worker_queue_max = (size_t)256 << 20;

static unsigned workers_number; /* atomic: how many workers of this process have not ended */

/* ---- Queues ---- */

void
sxe__lua_messages_add(struct sxe__lua_messages *queue, struct sxe__lua_message *message)
{
    message->next = NULL;
    if (queue->last == NULL)
        queue->first = message;
    else
        queue->last->next = message;
    queue->last = message;
}

struct sxe__lua_message *
sxe__lua_messages_take(struct sxe__lua_messages *queue)
{
    struct sxe__lua_message *message = queue->first;

    if (message != NULL)
        sxe__lua_messages_remove(queue, message);
    return message;
}

void
sxe__lua_messages_remove(struct sxe__lua_messages *queue, struct sxe__lua_message *message)
{
    struct sxe__lua_message *before = NULL;

    for (struct sxe__lua_message *at = queue->first; at != message; at = at->next)
        before = at;
    if (before == NULL)
        queue->first = message->next;
    else
        before->next = message->next;
    if (queue->last == message)
        queue->last = before;
}

static void
free_messages(struct sxe__lua_messages *queue)
{
    struct sxe__lua_message *message;

    while ((message = sxe__lua_messages_take(queue)) != NULL)
        sxe__lua_message_free(message);
}

/* ---- Messages ---- */

struct sxe__lua_message *
sxe__lua_message_new(struct sxe__lua_worker *worker, struct sxe__lua_bytes *bytes)
{
    struct sxe__lua_message *message = calloc(1, sizeof(*message));

    if (message == NULL) {
        sxe__lua_clone_free(bytes);
        return NULL;
    }
    message->worker = worker;
    message->bytes = *bytes;
    return message;
}

void
sxe__lua_message_free(struct sxe__lua_message *message)
{
    if (message->is_counted)
        __atomic_sub_fetch(&message->worker->load, 1, __ATOMIC_RELAXED);
    if (message->held != NULL)
        __atomic_sub_fetch(message->held, message->held_bytes, __ATOMIC_RELAXED);
    sxe__lua_clone_free(&message->bytes);
    free(message);
}

/* Count the bytes of a message to be sent. False: too many bytes wait already. */
static bool
link_hold_bytes(struct sxe__lua_message *message, size_t *held)
{
    const size_t bytes = sizeof(*message) + message->bytes.length;

    if (__atomic_load_n(held, __ATOMIC_RELAXED) + bytes > sxe__lua_worker_queue_max)
        return false;
    __atomic_add_fetch(held, bytes, __ATOMIC_RELAXED);
    message->held = held;
    message->held_bytes = bytes;
    return true;
}

const char *
sxe__lua_worker_send(struct sxe__lua_message *message)
{
    struct sxe__lua_worker *worker = message->worker;
    const char *problem = NULL;

    pthread_mutex_lock(&worker->lock);
    if (worker->is_ending)
        problem = worker->problem != NULL ? worker->problem : "it was stopped";
    else if (!link_hold_bytes(message, &worker->held_in))
        problem = "too many bytes wait for it";
    if (problem == NULL) {
        message->is_counted = message->task != 0;
        __atomic_add_fetch(&worker->load, message->is_counted, __ATOMIC_RELAXED);
        sxe__lua_messages_add(&worker->in, message);
        if (worker->loop != NULL)
            ev_async_send(worker->loop, &worker->wake);
    }
    pthread_mutex_unlock(&worker->lock);
    return problem;
}

/* Add a message to the queue of the owner. The caller holds the lock. */
static void
add_out(struct sxe__lua_worker *worker, struct sxe__lua_message *message)
{
    sxe__lua_messages_add(&worker->out, message);
    if (worker->owner->loop != NULL)
        ev_async_send(worker->owner->loop, &worker->owner->wake);
}

const char *
sxe__lua_worker_send_back(struct sxe__lua_message *message)
{
    struct sxe__lua_worker *worker = message->worker;
    const char *problem = NULL;

    pthread_mutex_lock(&worker->lock);
    if (worker->is_ending)
        problem = "it was stopped";
    else if (!link_hold_bytes(message, &worker->held_out))
        problem = "too many bytes wait for its owner";
    if (problem == NULL)
        add_out(worker, message);
    pthread_mutex_unlock(&worker->lock);
    return problem;
}

void
sxe__lua_worker_reply(struct sxe__lua_message *message)
{
    struct sxe__lua_worker *worker = message->worker;
    bool is_sent;

    pthread_mutex_lock(&worker->lock);
    is_sent = worker->owner != NULL && !__atomic_load_n(&message->is_cancelled, __ATOMIC_ACQUIRE);
    if (is_sent)
        add_out(worker, message);
    pthread_mutex_unlock(&worker->lock);
    if (!is_sent)
        sxe__lua_message_free(message);
}

void
sxe__lua_worker_cancel(struct sxe__lua_message *message)
{
    struct sxe__lua_worker *worker = message->worker;

    pthread_mutex_lock(&worker->lock);
    __atomic_store_n(&message->is_cancelled, true, __ATOMIC_RELEASE);
    if (worker->loop != NULL)
        ev_async_send(worker->loop, &worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

/* ---- The worker ---- */

struct sxe__lua_worker *
sxe__lua_worker_new(void)
{
    struct sxe__lua_worker *worker;

    if (__atomic_add_fetch(&workers_number, 1, __ATOMIC_RELAXED) <= SXE__LUA_WORKERS_MAX) {
        worker = calloc(1, sizeof(*worker));
        if (worker != NULL) {
            pthread_mutex_init(&worker->lock, NULL);
            worker->references = 1;
            return worker;
        }
        errno = ENOMEM;
    } else {
        errno = EAGAIN;
    }
    __atomic_sub_fetch(&workers_number, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Stop counting the worker as a worker of this process. A handle may keep the worker's struct for
 * much longer. */
static void
give_place(struct sxe__lua_worker *worker)
{
    if (!__atomic_exchange_n(&worker->gave_place, true, __ATOMIC_RELAXED))
        __atomic_sub_fetch(&workers_number, 1, __ATOMIC_RELAXED);
}

void
sxe__lua_worker_release(struct sxe__lua_worker *worker)
{
    if (__atomic_sub_fetch(&worker->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    give_place(worker);
    free_messages(&worker->in);
    free_messages(&worker->out);
    free_messages(&worker->replied);
    free_messages(&worker->arrived);
    free_messages(&worker->inbox);
    sxe__lua_clone_free(&worker->plan.code);
    free(worker->plan.text);
    free(worker->problem);
    free(worker->start_error);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

void
sxe__lua_worker_ask_to_end(struct sxe__lua_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->is_ending = true;
    if (worker->lua != NULL)
        sxe__lua_watch_end(worker->lua);
    if (worker->loop != NULL)
        ev_async_send(worker->loop, &worker->wake);
    pthread_mutex_unlock(&worker->lock);
}

void
sxe__lua_worker_set_problem(struct sxe__lua_worker *worker, const char *text)
{
    pthread_mutex_lock(&worker->lock);
    if (worker->problem == NULL && !worker->is_ending)
        worker->problem = strdup(text);
    pthread_mutex_unlock(&worker->lock);
}

static void
answer_all(struct sxe__lua_worker *worker, struct sxe__lua_messages *queue)
{
    struct sxe__lua_message *message;

    while ((message = sxe__lua_messages_take(queue)) != NULL) {
        if (message->task == 0) {
            sxe__lua_message_free(message);
            continue;
        }
        message->problem = worker->problem != NULL ? worker->problem : "it was stopped";
        sxe__lua_worker_reply(message);
    }
}

void
sxe__lua_worker_finish(struct sxe__lua_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    worker->is_ending = true;
    pthread_mutex_unlock(&worker->lock);
    answer_all(worker, &worker->serving);
    answer_all(worker, &worker->waiting);
    answer_all(worker, &worker->in); /* no message is added to this queue any more */
    give_place(worker);
    pthread_mutex_lock(&worker->lock);
    worker->has_ended = true;
    if (worker->owner != NULL && worker->owner->loop != NULL)
        ev_async_send(worker->owner->loop, &worker->owner->wake);
    pthread_mutex_unlock(&worker->lock);
}

int
sxe__lua_worker_check_descriptor(void)
{
    const int fd = eventfd(0, EFD_CLOEXEC);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

/* ---- Values ---- */

int
sxe__lua_worker_raise(lua_State *L, int status)
{
    if (status == LUA_ERRMEM)
        return lua_error(L);
    luaL_where(L, 1);
    if (strstr(lua_tostring(L, -1), "sxe-lua-worker.lua") != NULL) {
        lua_pop(L, 1);
        luaL_where(L, 2);
    }
    lua_insert(L, -2);
    lua_concat(L, 2);
    return lua_error(L);
}

int
sxe__lua_worker_fail_new(lua_State *L)
{
    if (errno != EAGAIN)
        return sxe__lua_fail_errno(L, errno, "worker.new");
    lua_pushnil(L);
    lua_pushfstring(L, "worker.new: the process has %d workers, which is the limit: stop one first",
                    SXE__LUA_WORKERS_MAX);
    lua_pushinteger(L, EAGAIN);
    return 3;
}

int
sxe__lua_worker_fail(lua_State *L, const struct sxe__lua_worker *worker, const char *problem)
{
    lua_pushnil(L);
    lua_pushfstring(L, "worker '%s': %s", worker->name, problem);
    return 2;
}

/* Push the value of a message. Argument: the message. */
static int
push_message(lua_State *L)
{
    const struct sxe__lua_message *message = lua_touserdata(L, 1);

    return sxe__lua_clone_read(L, &message->bytes);
}

/* If there is no memory for a message, drop the message: otherwise it would keep the later messages
 * in the queue. */
int
sxe__lua_worker_push_first(lua_State *L, struct sxe__lua_messages *queue)
{
    struct sxe__lua_message *message = queue->first;
    const struct sxe__lua_worker *worker = message->worker;
    const size_t length = message->bytes.length;
    int status;

    lua_pushcfunction(L, push_message);
    lua_pushlightuserdata(L, message);
    status = lua_pcall(L, 1, 1, 0);
    sxe__lua_messages_remove(queue, message);
    sxe__lua_message_free(message);
    if (status == LUA_OK)
        return 1;
    lua_pushnil(L);
    lua_pushfstring(L, "worker '%s': a message of %I bytes was dropped: %s", worker->name,
                    (lua_Integer)length, lua_tostring(L, -2));
    return 2;
}

int
sxe__lua_worker_send_value(lua_State *L, struct sxe__lua_worker *worker,
                           const char *(*send)(struct sxe__lua_message *message))
{
    struct sxe__lua_bytes bytes;
    struct sxe__lua_message *message;
    const char *problem;
    int status;

    luaL_argcheck(L, !lua_isnoneornil(L, 2), 2, "a value expected that is not nil");
    lua_settop(L, 2);
    status = sxe__lua_clone_write(L, 2, "message", 0, false, &bytes);
    if (status != LUA_OK)
        return sxe__lua_worker_raise(L, status);
    message = sxe__lua_message_new(worker, &bytes);
    if (message == NULL)
        return luaL_error(L, "not enough memory");
    problem = send(message);
    if (problem != NULL) {
        sxe__lua_message_free(message);
        return sxe__lua_worker_fail(L, worker, problem);
    }
    lua_pushboolean(L, 1);
    return 1;
}

void
sxe__lua_worker_name(lua_State *L, struct sxe__lua_worker *worker)
{
    const char *name = worker->plan.is_file ? worker->plan.text : "code";
    size_t length = strlen(name);

    if (lua_getfield(L, 1, "name") != LUA_TNIL) {
        name = sxe__lua_option_text(L, "worker.new", "name");
        length = strlen(name);
        if (length == 0 || length >= sizeof(worker->name))
            luaL_error(L, "worker.new: name: 1 to %d bytes expected, got %d",
                       (int)sizeof(worker->name) - 1, (int)length);
    }
    /* Cut a long path before a character, not in it. */
    if (length >= sizeof(worker->name))
        name += length - (sizeof(worker->name) - 1);
    while ((*name & 0xc0) == 0x80)
        name++;
    snprintf(worker->name, sizeof(worker->name), "%s", name);
}
