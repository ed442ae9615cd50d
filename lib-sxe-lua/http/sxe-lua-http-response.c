/* SPDX-License-Identifier: MIT
 *
 * res: status, header fields, and whole replies.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-libc-internal.h"

enum { JSON_ROOM = 4096 };

const char *
sxe__lua_http_type(const struct sxe__lua_exchange *exchange, const char *type)
{
    return sxe_http_added_field(exchange->response, "Content-Type").base == NULL ? type : NULL;
}

/* ---- Whole replies ---- */

static void
check_unanswered(lua_State *L, const struct sxe__lua_exchange *exchange)
{
    if (exchange->reply == SXE__LUA_BEGUN)
        luaL_error(L, "the reply has begun: res:write() and res:finish() go on with it");
    if (exchange->reply == SXE__LUA_ENDED)
        luaL_error(L, "the reply was sent already");
}

/* Send a reply whose body the kernel borrows until on_done; the exchange keeps the string until
 * then. */
static int
lend_body(lua_State *L, struct sxe__lua_exchange *exchange, struct sxe_span body, const char *type)
{
    int result = sxe_http_set_status(exchange->response, sxe__lua_http_status(exchange));

    if (result == 0 && type != NULL)
        result = sxe_http_add_field(exchange->response, "Content-Type", type);
    if (result == 0) {
        sxe__lua_http_keep(L, exchange);
        exchange->is_lending = true;
        exchange->body = SXE__LUA_BODY_OVER;
        result = sxe_http_end_borrowed(exchange->response, body.base, body.length);
    }
    return result;
}

void
sxe__lua_http_send(lua_State *L, struct sxe__lua_exchange *exchange, int index, const char *type)
{
    struct sxe_span body;
    int result = 0;

    check_unanswered(L, exchange);
    type = sxe__lua_http_type(exchange, type);
    body.base = lua_tolstring(L, index, &body.length);
    if (body.length <= SXE__LUA_COPY_MAX) {
        exchange->reply = SXE__LUA_ENDED;
        sxe_http_reply(exchange->response, sxe__lua_http_status(exchange), type, body.base,
                       body.length);
        return;
    }
    lua_pushvalue(L, index);
    result = lend_body(L, exchange, body, type);
    if (result == -EINVAL || result == -ENOBUFS)
        luaL_error(L, "the reply cannot be sent: %s", strerrordesc_np(-result));
    exchange->reply = SXE__LUA_ENDED;
}

bool
sxe__lua_http_try_json(lua_State *L, struct sxe__lua_exchange *exchange)
{
    char body[JSON_ROOM];
    ssize_t length = sxe__lua_json_write(L, body, sizeof(body));

    if (length < 0)
        return false;
    exchange->reply = SXE__LUA_ENDED;
    sxe_http_reply(exchange->response, sxe__lua_http_status(exchange),
                   sxe__lua_http_type(exchange, SXE__LUA_JSON), body, (size_t)length);
    return true;
}

void
sxe__lua_http_send_json(lua_State *L, struct sxe__lua_exchange *exchange)
{
    if (sxe__lua_http_try_json(L, exchange))
        return;
    sxe__lua_json_encode(L);
    sxe__lua_http_send(L, exchange, -1, SXE__LUA_JSON);
}

/* Take the status from an argument, if the argument is given. */
static void
take_status_argument(lua_State *L, struct sxe__lua_exchange *exchange, int argument)
{
    lua_Integer status;

    if (lua_isnoneornil(L, argument))
        return;
    status = luaL_checkinteger(L, argument);
    luaL_argcheck(L, status >= 200 && status <= 599, argument, "200 to 599 expected");
    exchange->status = (uint16_t)status;
}

/* res:send(text [, status]) */
static int
send_text(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);

    luaL_checkstring(L, 2);
    check_unanswered(L, exchange);
    take_status_argument(L, exchange, 3);
    sxe__lua_http_send(L, exchange, 2, SXE__LUA_TEXT);
    lua_pushboolean(L, true);
    return 1;
}

/* res:json(value [, status]) */
static int
send_json(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);

    luaL_checkany(L, 2);
    check_unanswered(L, exchange);
    take_status_argument(L, exchange, 3);
    lua_settop(L, 2);
    sxe__lua_http_send_json(L, exchange);
    lua_pushboolean(L, true);
    return 1;
}

/* Check the URL of a redirect: a URI reference has only visible ASCII bytes (RFC 3986), and clients
 * differ in how they read other bytes. */
static void
check_location(lua_State *L, struct sxe_span url)
{
    for (size_t i = 0; i < url.length; i++) {
        unsigned char byte = (unsigned char)url.base[i];

        if (byte <= ' ' || byte >= 0x7f)
            luaL_error(L,
                       "Location cannot be '%s': byte %d is a blank, a control character or not "
                       "ASCII: escape it (%%20 is a blank)",
                       url.base, (int)i + 1);
    }
}

/* res:redirect(url [, status]) */
static int
response_redirect(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);
    struct sxe_span url;
    int result;

    url.base = luaL_checklstring(L, 2, &url.length);
    check_unanswered(L, exchange);
    check_location(L, url);
    exchange->status = 302;
    take_status_argument(L, exchange, 3);
    luaL_argcheck(L, exchange->status / 100 == 3 && exchange->status != 304, 3,
                  "a status that redirects expected: 301, 302, 303, 307 or 308");
    sxe_http_remove_field(exchange->response, "Location");
    result = sxe_http_add_field_span(exchange->response, "Location", url);
    if (result < 0)
        return luaL_error(L, "Location cannot be '%s': %s", url.base, strerrordesc_np(-result));
    exchange->reply = SXE__LUA_ENDED;
    sxe_http_reply_status(exchange->response, exchange->status);
    lua_pushboolean(L, true);
    return 1;
}

/* res:abort(): break the reply off, so that the client sees that the reply is not whole */
static int
break_reply_off(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);

    exchange->reply = SXE__LUA_ENDED;
    sxe_http_abort(exchange->response);
    return 0;
}

/* ---- Properties ---- */

static int
get_response_property(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);

    if (strcmp(name, "headers") == 0)
        sxe__lua_http_push(L, exchange, SXE__LUA_OUT_HEADERS);
    else if (strcmp(name, "status") == 0)
        lua_pushinteger(L, sxe__lua_http_status(exchange));
    else if (strcmp(name, "is_begun") == 0)
        lua_pushboolean(L, exchange->reply != SXE__LUA_UNANSWERED);
    else
        return 0;
    return 1;
}

static int
set_property(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);

    if (strcmp(name, "status") != 0)
        return 0;
    check_unanswered(L, exchange);
    take_status_argument(L, exchange, 3);
    return 1;
}

/* ---- res.headers ---- */

static int
get_response_field(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);
    struct sxe_span value = sxe_http_added_field(exchange->response, name);

    if (value.base == NULL)
        lua_pushnil(L);
    else
        lua_pushlstring(L, value.base, value.length);
    return 1;
}

/* Add a header line with the value at an index. Reading the value may run code that sends the
 * reply. */
static void
add_response_header(lua_State *L, struct sxe__lua_exchange *exchange, const char *name, int index)
{
    struct sxe_span value;
    int result;

    value.base = lua_tolstring(L, index, &value.length);
    if (value.base == NULL)
        luaL_error(L, "res.headers['%s'] cannot be a %s", name, luaL_typename(L, index));
    check_unanswered(L, exchange);
    result = sxe_http_add_field_span(exchange->response, name, value);
    if (result == -EINVAL)
        luaL_error(L,
                   "res.headers['%s'] cannot be '%s': see RFC 9110, 5.5; Content-Length, "
                   "Connection, Date and Transfer-Encoding are the server's",
                   name, value.base);
    if (result < 0)
        luaL_error(L, "the reply has too many header fields: res.headers['%s']", name);
}

/* Refuse a list with keys other than 1 to count: the values of these keys would be missing in the
 * reply. */
static void
check_header_list(lua_State *L, int count, const char *name)
{
    lua_Integer members = 0;

    for (lua_pushnil(L); lua_next(L, 3) != 0; lua_pop(L, 1))
        members++;
    if (members > count)
        luaL_error(L, "res.headers['%s']: not all of the table's members are in a list from 1 on",
                   name);
}

/* Set a header field: nil removes it, and a list makes one line for each value. */
static int
set_response_field(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);

    check_unanswered(L, exchange);
    sxe_http_remove_field(exchange->response, name);
    if (lua_istable(L, 3)) {
        int i = 1;

        for (; lua_geti(L, 3, i) != LUA_TNIL; lua_pop(L, 1), i++)
            add_response_header(L, exchange, name, -1);
        check_header_list(L, i - 1, name);
    } else if (!lua_isnil(L, 3)) {
        add_response_header(L, exchange, name, 3);
    }
    return 1;
}

/* ---- The classes ---- */

void
sxe__lua_http_open_response(lua_State *L)
{
    static const luaL_Reg methods[] = {{"send", send_text},
                                       {"json", send_json},
                                       {"redirect", response_redirect},
                                       {"abort", break_reply_off},
                                       {"cookie", sxe__lua_http_res_cookie},
                                       {"file", sxe__lua_http_res_file},
                                       {"write", sxe__lua_http_res_write},
                                       {"finish", sxe__lua_http_res_finish},
                                       {"sse", sxe__lua_http_res_sse},
                                       {NULL, NULL}};
    static const struct sxe__lua_class_spec response = {.name = "sxe.http response",
                                                        .methods = methods,
                                                        .get = get_response_property,
                                                        .set = set_property};
    static const struct sxe__lua_class_spec headers = {
        .name = "res.headers", .get = get_response_field, .set = set_response_field};

    sxe__lua_register_class(L, SXE__LUA_RESPONSE, &response);
    sxe__lua_register_class(L, SXE__LUA_OUT_HEADERS, &headers);
    sxe__lua_register_class(L, SXE__LUA_EVENTS, &sxe__lua_events_class);
}
