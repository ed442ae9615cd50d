/* SPDX-License-Identifier: MIT
 *
 * req and its members: no value is made before the script reads it.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <string.h>

static int
push_span(lua_State *L, struct sxe_span text)
{
    if (text.base == NULL)
        lua_pushnil(L);
    else
        lua_pushlstring(L, text.base, text.length);
    return 1;
}

/* ---- Properties ---- */

static int
push_method(lua_State *L, struct sxe__lua_exchange *exchange)
{
    enum sxe_http_method method = sxe_http_method(exchange->request);

    if (method == SXE_HTTP_OTHER)
        return push_span(L, sxe_http_method_text(exchange->request));
    /* not lua_pushlstring: Lua caches such strings by their address */
    lua_pushstring(L, sxe_http_method_name(method));
    return 1;
}

static int
push_escaped_path(lua_State *L, struct sxe__lua_exchange *exchange)
{
    return push_span(L, exchange->request->path);
}

static int
push_path(lua_State *L, struct sxe__lua_exchange *exchange)
{
    struct sxe_span path = sxe_http_decoded_path(exchange->request);

    /* on_error must be able to read the path of any request */
    if (path.base == NULL && exchange->is_failing)
        return push_escaped_path(L, exchange);
    if (path.base == NULL)
        return sxe__lua_http_refuse(L, 400, "the path has an escaped slash, a backslash or a NUL");
    return push_span(L, path);
}

static int
push_ctx(lua_State *L, struct sxe__lua_exchange *exchange)
{
    sxe__lua_http_push_ctx(L, exchange);
    return 1;
}

static int
push_target(lua_State *L, struct sxe__lua_exchange *exchange)
{
    return push_span(L, sxe_http_target(exchange->request));
}

static int
push_host(lua_State *L, struct sxe__lua_exchange *exchange)
{
    return push_span(L, sxe_http_authority(exchange->request));
}

/* Push req.scheme as the client sees it: the scheme of the client's proxy, if the server trusts the
 * proxy, or the scheme of this server. */
static int
push_scheme(lua_State *L, struct sxe__lua_exchange *exchange)
{
    const struct sxe_lua_tls *tls = sxe__lua_config()->tls;
    const char *scheme = sxe_http_forwarded_scheme(exchange->request);
    struct sxe_lua_tls_facts facts;

    if (*scheme == '\0')
        scheme = tls != NULL && tls->describe != NULL &&
                         tls->describe(sxe_http_socket(exchange->request), &facts)
                     ? "https"
                     : "http";
    lua_pushstring(L, scheme);
    return 1;
}

static int
push_peer(lua_State *L, struct sxe__lua_exchange *exchange)
{
    lua_pushstring(L, sxe_http_peer_ip(exchange->request));
    return 1;
}

static int
push_user(lua_State *L, struct sxe__lua_exchange *exchange)
{
    struct sxe_http_basic basic;

    return push_span(L, sxe_http_user(exchange->request, &basic));
}

static int
push_id(lua_State *L, struct sxe__lua_exchange *exchange)
{
    lua_pushstring(L, sxe_http_request_id(exchange->request));
    return 1;
}

static int
push_exchange_trace(lua_State *L, struct sxe__lua_exchange *exchange)
{
    const struct sxe_http_trace *trace = sxe_http_trace(exchange->request);

    if (trace == NULL) {
        lua_pushnil(L);
        return 1;
    }
    lua_createtable(L, 0, 5);
    lua_pushstring(L, trace->trace_id);
    lua_setfield(L, -2, "trace_id");
    lua_pushstring(L, *trace->parent_id == '\0' ? NULL : trace->parent_id);
    lua_setfield(L, -2, "parent_id");
    lua_pushstring(L, trace->span_id);
    lua_setfield(L, -2, "span_id");
    lua_pushboolean(L, trace->flags & SXE_HTTP_TRACE_SAMPLED);
    lua_setfield(L, -2, "sampled");
    push_span(L, sxe_http_trace_state(exchange->request));
    lua_setfield(L, -2, "state");
    return 1;
}

static int
push_version(lua_State *L, struct sxe__lua_exchange *exchange)
{
    lua_pushstring(L, exchange->request->head.minor == 0 ? "1.0" : "1.1");
    return 1;
}

static int
push_route(lua_State *L, struct sxe__lua_exchange *exchange)
{
    lua_pushstring(L, exchange->request->match.pattern);
    return 1;
}

static int
push_request_headers(lua_State *L, struct sxe__lua_exchange *exchange)
{
    sxe__lua_http_push(L, exchange, SXE__LUA_HEADERS);
    return 1;
}

static int
push_query(lua_State *L, struct sxe__lua_exchange *exchange)
{
    sxe__lua_http_push(L, exchange, SXE__LUA_QUERY);
    return 1;
}

static int
push_cookies(lua_State *L, struct sxe__lua_exchange *exchange)
{
    sxe__lua_http_push(L, exchange, SXE__LUA_COOKIES);
    return 1;
}

static int
push_params(lua_State *L, struct sxe__lua_exchange *exchange)
{
    sxe__lua_http_push(L, exchange, SXE__LUA_PARAMS);
    return 1;
}

static int
push_escaped_params(lua_State *L, struct sxe__lua_exchange *exchange)
{
    sxe__lua_http_push(L, exchange, SXE__LUA_ESCAPED_PARAMS);
    return 1;
}

static int
get_request_property(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    static const struct {
        const char *name;
        int (*push)(lua_State *L, struct sxe__lua_exchange *exchange);
    } properties[] = {
        {"path", push_path},
        {"method", push_method},
        {"params", push_params},
        {"query", push_query},
        {"headers", push_request_headers},
        {"cookies", push_cookies},
        {"peer", push_peer},
        {"scheme", push_scheme},
        {"user", push_user},
        {"tls", sxe__lua_http_push_tls},
        {"id", push_id},
        {"trace", push_exchange_trace},
        {"target", push_target},
        {"host", push_host},
        {"ctx", push_ctx},
        {"version", push_version},
        {"route", push_route},
        {"escaped_path", push_escaped_path},
        {"escaped_params", push_escaped_params},
    };
    struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);

    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
        if (strcmp(properties[i].name, name) == 0)
            return properties[i].push(L, exchange);
    }
    return 0;
}

/* ---- req.headers ---- */

static struct sxe_span
value_of_field(const struct sxe_http_request *request, const struct sxe_http_field *field)
{
    return (struct sxe_span){request->data + field->value, field->value_length};
}

/* Push all values of a repeated field, joined by ", " (RFC 9110, 5.3), or by "; " for Cookie (RFC
 * 6265, 5.4). */
static void
push_joined(lua_State *L, const struct sxe_http_request *request,
            const struct sxe_http_field *field)
{
    struct sxe_span value = value_of_field(request, field);
    bool is_cookie = field == sxe_http_known(&request->head, SXE_HTTP_FIELD_COOKIE);
    luaL_Buffer buffer;

    luaL_buffinit(L, &buffer);
    luaL_addlstring(&buffer, value.base, value.length);
    while ((field = sxe_http_field_next(&request->head, request->data, field)) != NULL) {
        value = value_of_field(request, field);
        luaL_addstring(&buffer, is_cookie ? "; " : ", ");
        luaL_addlstring(&buffer, value.base, value.length);
    }
    luaL_pushresult(&buffer);
}

static void
push_field_value(lua_State *L, const struct sxe_http_request *request,
                 const struct sxe_http_field *field)
{
    if (sxe_http_field_next(&request->head, request->data, field) == NULL)
        push_span(L, value_of_field(request, field));
    else
        push_joined(L, request, field);
}

static int
get_header(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe_http_request *request = sxe__lua_http_check(L, index, generation)->request;
    const struct sxe_http_field *field =
        *name == '\0' ? NULL : sxe_http_field(&request->head, request->data, name);

    if (field == NULL)
        lua_pushnil(L);
    else
        push_field_value(L, request, field);
    return 1;
}

/* Push a name in small letters. */
static void
push_field_name(lua_State *L, struct sxe_span name)
{
    luaL_Buffer buffer;
    char *to = luaL_buffinitsize(L, &buffer, name.length);

    for (size_t i = 0; i < name.length; i++) {
        char c = name.base[i];

        to[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    luaL_pushresultsize(&buffer, name.length);
}

/* req.headers(): all fields in a table. */
static int
all_headers(lua_State *L, uint32_t index, uint32_t generation)
{
    const struct sxe_http_request *request = sxe__lua_http_check(L, index, generation)->request;

    lua_createtable(L, 0, request->head.number);
    for (unsigned i = request->head.number; i-- > 0;) {
        const struct sxe_http_field *field = &request->head.fields[i];

        /* raises an error if a finalizer has sent the reply, because the exchange is then over */
        sxe__lua_http_check(L, index, generation);
        push_field_name(L, (struct sxe_span){request->data + field->name, field->name_length});
        push_field_value(L, request, field);
        lua_rawset(L, -3);
    }
    return 1;
}

static int
count_headers(lua_State *L, uint32_t index, uint32_t generation)
{
    lua_pushinteger(L, sxe__lua_http_check(L, index, generation)->request->head.number);
    return 1;
}

/* ---- req.query, req.params ---- */

static int
get_query(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe_http_request *request = sxe__lua_http_check(L, index, generation)->request;
    struct sxe_http_query query;

    sxe_http_query_start(&query, request->query);
    while (request->query.length > 0 && sxe_http_query_next(&query)) {
        if (sxe_http_query_is(&query, name)) {
            sxe__lua_http_push_form_text(L, query.value);
            return 1;
        }
    }
    lua_pushnil(L);
    return 1;
}

static int
all_query(lua_State *L, uint32_t index, uint32_t generation)
{
    sxe__lua_http_push_form(L, sxe__lua_http_check(L, index, generation)->request->query, 414);
    return 1;
}

/* The value of a parameter, not decoded: it stands as in the normal form of the path. */
static struct sxe_span
escaped_value(const struct sxe_http_request *request, const struct sxe_http_text *value)
{
    return (struct sxe_span){request->path.base + value->offset, value->length};
}

/* Push the decoded value. Only a value with an escape or a leading dot can be refused (400);
 * on_error gets such a value undecoded. */
static void
push_decoded_value(lua_State *L, struct sxe__lua_exchange *exchange, struct sxe_span text)
{
    luaL_Buffer buffer;
    char *room;
    ssize_t length;

    if (text.length == 0 || (*text.base != '.' && memchr(text.base, '%', text.length) == NULL)) {
        push_span(L, text);
        return;
    }
    room = luaL_buffinitsize(L, &buffer, text.length);
    length = sxe_http_decode_path(text, room, text.length);
    if (length < 0 && !exchange->is_failing)
        sxe__lua_http_refuse(L, 400,
                             "the path has an escaped slash, a backslash, a NUL or dots "
                             "where %.*s is one name",
                             (int)text.length, text.base);
    if (length < 0) {
        length = (ssize_t)text.length;
        memcpy(room, text.base, text.length);
    }
    luaL_pushresultsize(&buffer, (size_t)length);
}

static int
get_request_value(lua_State *L, uint32_t index, uint32_t generation, const char *name,
                  void (*push)(lua_State *L, struct sxe__lua_exchange *exchange,
                               struct sxe_span text))
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);
    const struct sxe_http_request *request = exchange->request;
    const struct sxe_http_text *value =
        request->match.route == NULL ? NULL : sxe_http_match_value(&request->match, name);

    if (value == NULL)
        lua_pushnil(L);
    else
        push(L, exchange, escaped_value(request, value));
    return 1;
}

static int
all_values(lua_State *L, uint32_t index, uint32_t generation,
           void (*push)(lua_State *L, struct sxe__lua_exchange *exchange, struct sxe_span text))
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_check(L, index, generation);
    const struct sxe_http_request *request = exchange->request;
    const struct sxe_http_match *match = &request->match;

    lua_newtable(L);
    for (unsigned i = 0; match->route != NULL && i < match->number; i++) {
        /* raises an error if a finalizer has sent the reply, because the exchange is then over */
        sxe__lua_http_check(L, index, generation);
        lua_pushlstring(L, match->pattern + match->names[i].offset, match->names[i].length);
        sxe__lua_http_check(L, index, generation);
        push(L, exchange, escaped_value(request, &match->values[i]));
        lua_rawset(L, -3);
    }
    return 1;
}

static void
push_escaped_value(lua_State *L, struct sxe__lua_exchange *exchange, struct sxe_span text)
{
    SXE_UNUSED_PARAMETER(exchange);
    push_span(L, text);
}

static int
get_parameter(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    return get_request_value(L, index, generation, name, push_decoded_value);
}

static int
all_parameters(lua_State *L, uint32_t index, uint32_t generation)
{
    return all_values(L, index, generation, push_decoded_value);
}

static int
get_escaped(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    return get_request_value(L, index, generation, name, push_escaped_value);
}

static int
all_escaped(lua_State *L, uint32_t index, uint32_t generation)
{
    return all_values(L, index, generation, push_escaped_value);
}

/* ---- The classes ---- */

void
sxe__lua_http_open_request(lua_State *L)
{
    static const luaL_Reg methods[] = {{"body", sxe__lua_http_body},
                                       {"chunks", sxe__lua_http_chunks},
                                       {"json", sxe__lua_http_json},
                                       {"form", sxe__lua_http_form},
                                       {NULL, NULL}};
    static const struct sxe__lua_class_spec request = {
        .name = "sxe.http request", .methods = methods, .get = get_request_property};
    static const struct sxe__lua_class_spec headers = {
        .name = "req.headers", .get = get_header, .length = count_headers, .call = all_headers};
    static const struct sxe__lua_class_spec query = {
        .name = "req.query", .get = get_query, .call = all_query};
    static const struct sxe__lua_class_spec params = {
        .name = "req.params", .get = get_parameter, .call = all_parameters};
    static const struct sxe__lua_class_spec escaped = {
        .name = "req.escaped_params", .get = get_escaped, .call = all_escaped};

    sxe__lua_register_class(L, SXE__LUA_REQUEST, &request);
    sxe__lua_register_class(L, SXE__LUA_HEADERS, &headers);
    sxe__lua_register_class(L, SXE__LUA_QUERY, &query);
    sxe__lua_register_class(L, SXE__LUA_COOKIES, &sxe__lua_cookies_class);
    sxe__lua_register_class(L, SXE__LUA_PARAMS, &params);
    sxe__lua_register_class(L, SXE__LUA_ESCAPED_PARAMS, &escaped);
}
