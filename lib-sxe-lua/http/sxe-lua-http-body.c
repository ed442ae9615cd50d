/* SPDX-License-Identifier: MIT
 *
 * The body of a request: whole, or in parts as they come. One part at a time is kept, and the next
 * part is read when the script has taken it, so a client that sends faster than the script works
 * has to wait. A whole body is gathered outside of Lua, and wakes its task once.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- From the loop ---- */

/* Keep the part that came as a string. The argument is the exchange. */
static int
keep_part(lua_State *L)
{
    const struct sxe__lua_exchange *exchange = lua_touserdata(L, 1);

    lua_pushlstring(L, exchange->part.base, exchange->part.length);
    sxe__lua_http_keep(L, exchange);
    return 0;
}

static void
on_request_body(struct sxe_http_request *request, struct sxe_http_response *response,
                struct sxe_span part, bool last)
{
    struct sxe__lua_exchange *exchange = response->user;
    lua_State *L = sxe__lua_http.main;

    sxe_http_pause(request);
    exchange->part = part;
    exchange->is_last = last;
    lua_pushcfunction(L, keep_part);
    lua_pushlightuserdata(L, exchange);
    exchange->body = sxe__lua_pcall(L, 1, 0, "the body of a request") < 0 ? SXE__LUA_BODY_LOST
                                                                          : SXE__LUA_BODY_PART;
    sxe__lua_http_wake(exchange);
}

/* ---- Gathering ---- */

enum { AHEAD = 128 * 1024 }; /* bytes of room made in advance, which cost no memory until used */

static bool
make_body_room(struct sxe__lua_exchange *exchange, size_t needed)
{
    struct sxe__lua_gathered *gathered = exchange->gathered;
    const struct sxe_http_parser *head = &exchange->request->head;
    size_t size = gathered->size < AHEAD ? AHEAD : 2 * gathered->size;

    if (needed <= gathered->size)
        return true;
    if (head->body == SXE_HTTP_BODY_LENGTH && size > head->length)
        size = (size_t)head->length;
    gathered = realloc(gathered, sizeof(*gathered) + size);
    if (gathered == NULL)
        return false;
    gathered->size = size;
    exchange->gathered = gathered;
    return true;
}

/* Add a part to the body. Returns the body's new state. */
static enum sxe__lua_body
add_body_part(struct sxe__lua_exchange *exchange, struct sxe_span part)
{
    struct sxe__lua_gathered *gathered = exchange->gathered;

    if (part.length > gathered->most - gathered->used)
        return SXE__LUA_BODY_LONG;
    if (!make_body_room(exchange, gathered->used + part.length) ||
        sxe_http_keep_body(exchange->request, part.length) < 0)
        return SXE__LUA_BODY_LOST;
    gathered = exchange->gathered;
    if (part.length > 0)
        memcpy(gathered->bytes + gathered->used, part.base, part.length);
    gathered->used += part.length;
    return SXE__LUA_BODY_GATHERED;
}

static void
gather_part(struct sxe_http_request *request, struct sxe_http_response *response,
            struct sxe_span part, bool last)
{
    struct sxe__lua_exchange *exchange = response->user;
    enum sxe__lua_body body = add_body_part(exchange, part);

    if (body != SXE__LUA_BODY_GATHERED) {
        exchange->part.length = exchange->gathered->most;
        sxe__lua_http_drop_body(exchange);
        sxe_http_release_body(request);
        sxe_http_pause(request);
    } else if (last) {
        body = SXE__LUA_BODY_WHOLE;
    } else {
        return;
    }
    exchange->body = (uint8_t)body;
    sxe__lua_http_wake(exchange);
}

static void
begin_gathering(lua_State *L, struct sxe__lua_exchange *exchange)
{
    exchange->gathered = calloc(1, sizeof(*exchange->gathered));
    if (exchange->gathered == NULL)
        sxe__lua_http_refuse(L, 503, "not enough memory for the body");
    exchange->body = SXE__LUA_BODY_GATHERED;
    sxe_http_read(exchange->request, gather_part);
}

/* ---- A part ---- */

static bool
has_body(const struct sxe_http_request *request)
{
    return request->head.body == SXE_HTTP_BODY_CHUNKED || request->head.length > 0;
}

/* Push the part that came, or nil after the last one, and return true. False: wait for a part. */
static bool
take_body_part(lua_State *L, struct sxe__lua_exchange *exchange)
{
    struct sxe_span whole;

    whole = exchange->request->body;
    switch ((enum sxe__lua_body)exchange->body) {
    case SXE__LUA_BODY_UNREAD:
        if (has_body(exchange->request) && whole.length == 0)
            return false;
        exchange->is_last = true;
        exchange->body = SXE__LUA_BODY_OVER;
        if (whole.length > 0)
            lua_pushlstring(L, whole.base, whole.length);
        else
            lua_pushnil(L);
        return true;
    case SXE__LUA_BODY_AWAITED:
        return false;
    case SXE__LUA_BODY_PART:
        sxe__lua_http_push_kept(L, exchange);
        exchange->body = exchange->is_last ? SXE__LUA_BODY_OVER : SXE__LUA_BODY_AWAITED;
        if (!exchange->is_last || lua_rawlen(L, -1) > 0)
            return true;
        lua_pop(L, 1);
        lua_pushnil(L);
        return true;
    case SXE__LUA_BODY_OVER:
    case SXE__LUA_BODY_KEPT:
        lua_pushnil(L);
        return true;
    case SXE__LUA_BODY_GATHERED:
    case SXE__LUA_BODY_WHOLE:
    case SXE__LUA_BODY_LONG:
        return luaL_error(L, "the body is being read whole, by req:body() or its like") != 0;
    case SXE__LUA_BODY_LOST:
        break;
    }
    return sxe__lua_http_refuse(L, 503, "not enough memory for the body") != 0;
}

static int
wait_for_part(lua_State *L, struct sxe__lua_exchange *exchange, lua_KFunction k,
              lua_KContext context)
{
    if (exchange->body == SXE__LUA_BODY_UNREAD)
        sxe_http_read(exchange->request, on_request_body);
    else
        sxe_http_resume(exchange->request);
    exchange->body = SXE__LUA_BODY_AWAITED;
    return sxe__lua_park_in(L, &exchange->line, 0, k, context);
}

/* Call after a wait. Returns the exchange; NULL: the request is over or the task cancelled, and nil
 * and the reason are pushed. */
static struct sxe__lua_exchange *
woken_exchange(lua_State *L)
{
    enum sxe__lua_reason reason = sxe__lua_woken(L);
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_REQUEST, &generation);
    struct sxe__lua_exchange *exchange = sxe__lua_http_find(index, generation);

    if (reason == SXE__LUA_CANCELLED)
        sxe__lua_fail(L, "cancelled");
    else if (exchange == NULL)
        sxe__lua_fail(L, "closed");
    return reason == SXE__LUA_CANCELLED ? NULL : exchange;
}

/* ---- In parts ---- */

static int
part_came(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_exchange *exchange = woken_exchange(L);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (exchange == NULL)
        return 2;
    if (!take_body_part(L, exchange))
        return wait_for_part(L, exchange, part_came, 0);
    return 1;
}

/* The iterator of req:chunks(). The iterator has the request as its upvalue, so that the iterator
 * can be the body of another request. */
static int
next_body_chunk(lua_State *L)
{
    struct sxe__lua_exchange *exchange;

    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    exchange = sxe__lua_http_argument(L, SXE__LUA_REQUEST);
    if (!take_body_part(L, exchange))
        return wait_for_part(L, exchange, part_came, 0);
    return 1;
}

int
sxe__lua_http_chunks(lua_State *L)
{
    sxe__lua_http_argument(L, SXE__LUA_REQUEST);
    lua_settop(L, 1);
    lua_pushcclosure(L, next_body_chunk, 1);
    return 1;
}

/* ---- Whole ---- */

static uint32_t
default_max(const struct sxe_http_request *request)
{
    for (unsigned i = 0; i < sxe__lua_http.servers_number; i++) {
        if (sxe__lua_http.servers[i].http == request->http)
            return sxe__lua_http.servers[i].body_max;
    }
    return sxe__lua_http.body_max;
}

static int
refuse_long(lua_State *L, size_t most)
{
    return sxe__lua_http_refuse(L, 413, "the body has more than %llu bytes",
                                (unsigned long long)most);
}

/* Refuse a body of more bytes than the limit at 2. If none of its bytes were read, each later call,
 * perhaps by on_error, refuses the body with the same limit, even if that call allows more
 * bytes. */
static void
check_length(lua_State *L, struct sxe__lua_exchange *exchange, uint64_t length)
{
    const size_t most = (size_t)lua_tointeger(L, 2);

    if (length <= most)
        return;
    if (exchange->body == SXE__LUA_BODY_UNREAD) {
        exchange->body = SXE__LUA_BODY_LONG;
        exchange->part.length = most;
    }
    refuse_long(L, exchange->body == SXE__LUA_BODY_LONG ? exchange->part.length : most);
}

/* Pass the body, which is on top, to the C function at 3; without a function, return the body. */
static int
use_whole(lua_State *L)
{
    lua_CFunction use = lua_tocfunction(L, 3);

    return use == NULL ? 1 : use(L);
}

/* Push the bytes as a string, keep that string with the exchange, and pass it on. */
static int
use_bytes(lua_State *L, struct sxe__lua_exchange *exchange, struct sxe_span bytes)
{
    check_length(L, exchange, bytes.length);
    lua_pushlstring(L, bytes.base, bytes.length);
    if (exchange->request == NULL) /* a finalizer that ran meanwhile sent the reply */
        return luaL_error(L, "the request is over");
    lua_pushvalue(L, -1);
    sxe__lua_http_keep(L, exchange);
    exchange->body = SXE__LUA_BODY_KEPT;
    sxe__lua_http_drop_body(exchange);
    sxe_http_release_body(exchange->request);
    return use_whole(L);
}

static int whole_came(lua_State *L, int status, lua_KContext context);

/* Read the whole body, and pass it on. Stack: the request, the most bytes that the body may have,
 * the C function that uses the body. */
static int
read_whole_body(lua_State *L, struct sxe__lua_exchange *exchange)
{
    const struct sxe__lua_gathered *gathered = exchange->gathered;

    switch ((enum sxe__lua_body)exchange->body) {
    case SXE__LUA_BODY_GATHERED:
        return sxe__lua_park_in(L, &exchange->line, 0, whole_came, 0);
    case SXE__LUA_BODY_WHOLE:
        return use_bytes(L, exchange, (struct sxe_span){gathered->bytes, gathered->used});
    case SXE__LUA_BODY_LONG:
        return refuse_long(L, exchange->part.length);
    case SXE__LUA_BODY_KEPT:
        sxe__lua_http_push_kept(L, exchange);
        return use_whole(L);
    case SXE__LUA_BODY_LOST:
        return sxe__lua_http_refuse(L, 503, "not enough memory for the body");
    case SXE__LUA_BODY_UNREAD:
    case SXE__LUA_BODY_AWAITED:
    case SXE__LUA_BODY_PART:
    case SXE__LUA_BODY_OVER:
        break;
    }
    return luaL_error(L, "the body is being read in parts, by req:chunks()");
}

static int
whole_came(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_exchange *exchange = woken_exchange(L);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return exchange == NULL ? 2 : read_whole_body(L, exchange);
}

/* Read the whole body, and pass it to `use`. Argument 2 is the most bytes that the body may
 * have. */
static int
read_body_for(lua_State *L, lua_CFunction use)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_REQUEST);
    lua_Integer max = luaL_optinteger(L, 2, default_max(exchange->request));
    struct sxe_span whole = exchange->request->body;

    luaL_argcheck(L, max >= 0, 2, "bytes expected");
    lua_settop(L, 1);
    lua_pushinteger(L, max);
    if (use == NULL)
        lua_pushnil(L);
    else
        lua_pushcfunction(L, use);
    check_length(L, exchange, exchange->request->head.length);
    if (exchange->body == SXE__LUA_BODY_UNREAD) {
        if (!has_body(exchange->request) || whole.length > 0)
            return use_bytes(L, exchange, whole);
        begin_gathering(L, exchange);
    }
    if (exchange->gathered != NULL && exchange->gathered->most < (size_t)max)
        exchange->gathered->most = (size_t)max;
    return read_whole_body(L, exchange);
}

int
sxe__lua_http_body(lua_State *L)
{
    return read_body_for(L, NULL);
}

static int
decode_json(lua_State *L)
{
    if (!sxe__lua_json_decode(L))
        return sxe__lua_http_refuse(L, 400, "the body is no JSON: %s", lua_tostring(L, -1));
    return 1;
}

int
sxe__lua_http_json(lua_State *L)
{
    return read_body_for(L, decode_json);
}

static int
decode_form(lua_State *L)
{
    struct sxe_span text;

    text.base = lua_tolstring(L, -1, &text.length);
    sxe__lua_http_push_form(L, text, 413);
    return 1;
}

int
sxe__lua_http_form(lua_State *L)
{
    const struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_REQUEST);
    struct sxe_span type = sxe_http_known_value(exchange->request, SXE_HTTP_FIELD_CONTENT_TYPE);

    /* A form parser would take the parts of a multipart body for names that make no sense. */
    if (type.length >= 10 && strncasecmp(type.base, "multipart/", 10) == 0)
        sxe__lua_http_refuse(
            L, 415, "the form is %.*s: only application/x-www-form-urlencoded is read here",
            (int)strcspn(type.base, "; \r"), type.base);
    return read_body_for(L, decode_form);
}
