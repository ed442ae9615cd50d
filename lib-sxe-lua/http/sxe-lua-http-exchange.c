/* SPDX-License-Identifier: MIT
 *
 * Exchanges: the requests that Lua answers, from their start to their end. The other files of
 * sxe.http call this one, and this one calls none of them.
 */
#include "sxe-lua-http-private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* For the leak check: a script may end the program while bodies are under way, to which only the
 * exchanges point. */
#if SXE_HAVE_ASAN
#    include <sanitizer/lsan_interface.h>
#else
#    define __lsan_register_root_region(memory, size)   ((void)(memory), (void)(size))
#    define __lsan_unregister_root_region(memory, size) ((void)(memory), (void)(size))
#endif

#define MEMORY_SIZE (SXE__LUA_EXCHANGES * (sizeof(struct sxe__lua_exchange) + sizeof(sxe__lua_id)))

_Thread_local struct sxe__lua_http sxe__lua_http;

#define HTTP (&sxe__lua_http)

/* Keys of the registry, for two tables by the exchange's index + 1: the values that exchanges keep,
 * and the tables req.ctx. */
static const char kept_key = 0;
static const char ctx_key = 0;

/* ---- Memory ---- */

bool
sxe__lua_http_open_exchanges(void)
{
    if (HTTP->exchanges == NULL) {
        void *exchanges = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (exchanges == MAP_FAILED)
            return false;
        __lsan_register_root_region(exchanges, MEMORY_SIZE);
        HTTP->exchanges = exchanges;
        HTTP->ids = (sxe__lua_id *)(HTTP->exchanges + SXE__LUA_EXCHANGES);
    }
    return true;
}

void
sxe__lua_http_close_exchanges(void)
{
    for (uint32_t i = 0; i < HTTP->used; i++)
        sxe__lua_http_drop_body(&HTTP->exchanges[i]);
    __lsan_unregister_root_region(HTTP->exchanges, MEMORY_SIZE);
    munmap(HTTP->exchanges, MEMORY_SIZE);
}

/* ---- Ids ---- */

/* If the log shows the id of the request, keep the id for lines that the task logs after the
 * reply. */
static void
keep_id(struct sxe__lua_exchange *exchange)
{
    const char *id = sxe_log_get_request();

    if (SXE_LIKELY(id == NULL))
        return;
    exchange->is_named = true;
    snprintf(HTTP->ids[exchange - HTTP->exchanges], sizeof(*HTTP->ids), "%s", id);
}

/* The origin of the tasks of an exchange (see sxe__lua_set_origin). */
static uint64_t
origin_of(const struct sxe__lua_exchange *exchange)
{
    if (SXE_LIKELY(!exchange->is_named && !exchange->is_traced))
        return 0;
    return (uint64_t)exchange->generation << 32 | ((uint64_t)(exchange - HTTP->exchanges) + 1);
}

/* The exchange with this origin; NULL: the exchange is over. */
static const struct sxe__lua_exchange *
exchange_of(uint64_t origin)
{
    const uint32_t index = (uint32_t)origin - 1;

    if (index >= HTTP->used || HTTP->exchanges[index].generation != origin >> 32)
        return NULL;
    return &HTTP->exchanges[index];
}

const char *
sxe__lua_http_id_of(uint64_t origin)
{
    const struct sxe__lua_exchange *exchange = exchange_of(origin);

    if (exchange == NULL || !exchange->is_named)
        return NULL;
    return HTTP->ids[exchange - HTTP->exchanges];
}

int
sxe__lua_http_trace(lua_State *L)
{
    const struct sxe__lua_exchange *exchange = exchange_of(sxe__lua_origin());
    char text[SXE_HTTP_TRACEPARENT + 1];
    struct sxe_span state;

    if (exchange == NULL || !exchange->is_traced || exchange->request == NULL)
        return 0;
    sxe_http_trace_write(sxe_http_trace(exchange->request), text);
    state = sxe_http_trace_state(exchange->request);
    lua_pushstring(L, text);
    if (state.base == NULL)
        return 1;
    lua_pushlstring(L, state.base, state.length);
    return 2;
}

/* ---- Taking and giving ---- */

struct sxe__lua_exchange *
sxe__lua_http_take(struct sxe_http_request *request, const struct sxe__lua_answerer *answerer)
{
    struct sxe__lua_exchange *exchange;
    uint32_t generation;

    if (HTTP->free > 0) {
        exchange = &HTTP->exchanges[HTTP->free - 1];
        HTTP->free = exchange->next;
    } else if (HTTP->used < SXE__LUA_EXCHANGES) {
        exchange = &HTTP->exchanges[HTTP->used++];
    } else {
        return NULL;
    }
    generation = exchange->generation;
    *exchange = (struct sxe__lua_exchange){.request = request,
                                           .response = sxe_http_response_of(request),
                                           .answerer = answerer,
                                           .generation = generation,
                                           .is_running = true,
                                           .is_inside = true};
    exchange->response->user = exchange;
    keep_id(exchange);
    exchange->is_traced = request->is_traced;
    return exchange;
}

static void
forget_value(const struct sxe__lua_exchange *exchange, const char *key)
{
    lua_State *L = HTTP->main;

    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushnil(L);
    lua_rawseti(L, -2, (int)(exchange - HTTP->exchanges) + 1);
    lua_pop(L, 1);
}

void
sxe__lua_http_drop_body(struct sxe__lua_exchange *exchange)
{
    free(exchange->gathered);
    exchange->gathered = NULL;
}

void
sxe__lua_http_give_if_over(struct sxe__lua_exchange *exchange)
{
    if (exchange->response != NULL && exchange->reply == SXE__LUA_ENDED && !exchange->is_running &&
        !exchange->is_lending)
        sxe__lua_http_hand_over(exchange);
    if (exchange->response != NULL || exchange->is_running || exchange->is_inside)
        return;
    if (exchange->is_lending || exchange->body != SXE__LUA_BODY_UNREAD)
        forget_value(exchange, &kept_key);
    if (exchange->has_ctx)
        forget_value(exchange, &ctx_key);
    sxe__lua_http_drop_body(exchange);
    sxe__lua_http_wake(exchange);
    exchange->generation = (exchange->generation + 1) & SXE__LUA_GENERATION_MASK;
    exchange->next = HTTP->free;
    HTTP->free = (uint32_t)(exchange - HTTP->exchanges) + 1;
}

void
sxe__lua_http_hand_over(struct sxe__lua_exchange *exchange)
{
    if (exchange->body == SXE__LUA_BODY_GATHERED || exchange->body == SXE__LUA_BODY_AWAITED)
        sxe_http_pause(exchange->request); /* the exchange must get no more parts of the body */
    if (exchange->response->user == exchange) {
        exchange->response->user = NULL;
        exchange->response->on_done = NULL;
    }
    exchange->response = NULL;
    exchange->request = NULL;
    sxe__lua_http_wake(exchange); /* otherwise its tasks would wait for ever */
}

void
sxe__lua_http_wake(struct sxe__lua_exchange *exchange)
{
    sxe__lua_wake_all(&exchange->line);
}

/* ---- Kept values ---- */

void
sxe__lua_http_open_kept(lua_State *L)
{
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &ctx_key);
}

void
sxe__lua_http_keep(lua_State *L, const struct sxe__lua_exchange *exchange)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    lua_insert(L, -2);
    lua_rawseti(L, -2, (int)(exchange - HTTP->exchanges) + 1);
    lua_pop(L, 1);
}

void
sxe__lua_http_push_kept(lua_State *L, const struct sxe__lua_exchange *exchange)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    lua_rawgeti(L, -1, (int)(exchange - HTTP->exchanges) + 1);
    lua_remove(L, -2);
}

void
sxe__lua_http_push_ctx(lua_State *L, struct sxe__lua_exchange *exchange)
{
    const int index = (int)(exchange - HTTP->exchanges) + 1;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &ctx_key);
    if (lua_rawgeti(L, -1, index) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, index);
        exchange->has_ctx = true;
    }
    lua_remove(L, -2);
}

/* ---- Finding ---- */

void
sxe__lua_http_push(lua_State *L, const struct sxe__lua_exchange *exchange,
                   enum sxe__lua_class class_)
{
    sxe__lua_push_handle(L, class_, (uint32_t)(exchange - HTTP->exchanges), exchange->generation);
}

struct sxe__lua_exchange *
sxe__lua_http_find(uint32_t index, uint32_t generation)
{
    struct sxe__lua_exchange *exchange;

    /* sxe_fini ends requests without a call of on_reply_done. */
    if (index >= HTTP->used || sxe_loop() == NULL)
        return NULL;
    exchange = &HTTP->exchanges[index];
    if (exchange->generation != generation || exchange->response == NULL)
        return NULL;
    return exchange;
}

struct sxe__lua_exchange *
sxe__lua_http_check(lua_State *L, uint32_t index, uint32_t generation)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_find(index, generation);

    if (exchange == NULL)
        luaL_error(L, "the request is over: its reply was sent, or its client is gone");
    return exchange;
}

struct sxe__lua_exchange *
sxe__lua_http_argument(lua_State *L, enum sxe__lua_class class_)
{
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 1, class_, &generation);

    return sxe__lua_http_check(L, index, generation);
}

int
sxe__lua_http_refuse(lua_State *L, unsigned status, const char *format, ...)
{
    char message[256];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, status);
    lua_setfield(L, -2, "status");
    lua_pushstring(L, message);
    lua_setfield(L, -2, "message");
    return lua_error(L);
}

/* ---- The ends of an exchange ---- */

static void
on_reply_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    struct sxe__lua_exchange *exchange = response->user;

    SXE_UNUSED_PARAMETER(request);
    HTTP->counters[SXE__LUA_HTTP_GONE] += result < 0;
    exchange->request = NULL;
    exchange->response = NULL;
    exchange->is_gone = result < 0;
    sxe__lua_http_drop_body(exchange);
    if (result < 0 && exchange->is_running)
        sxe__lua_cancel(exchange->task);
    sxe__lua_http_wake(exchange); /* other tasks may wait for the exchange */
    sxe__lua_http_give_if_over(exchange);
}

void
sxe__lua_http_let_go(struct sxe__lua_exchange *exchange)
{
    exchange->is_inside = false;
    if (exchange->response != NULL)
        exchange->response->on_done = on_reply_done;
    sxe__lua_http_give_if_over(exchange);
}

bool
sxe__lua_http_start(struct sxe__lua_exchange *exchange, int arguments, sxe__lua_on_end on_end)
{
    const uint64_t origin = origin_of(exchange);
    uint64_t outer = 0;
    uint64_t task;

    if (SXE_UNLIKELY(origin != 0))
        outer = sxe__lua_set_origin(origin);
    exchange->is_running = true;
    exchange->task = 0;
    task = sxe__lua_start(HTTP->main, arguments, true, on_end, exchange);
    if (SXE_UNLIKELY(origin != 0))
        (void)sxe__lua_set_origin(outer);
    if (task == 0)
        exchange->is_running = false;
    else if (exchange->task == 0) /* otherwise this task has ended, and a later one began */
        exchange->task = task;
    return task != 0;
}
