/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.client", an HTTP client. Heads and chunks are read and written here, by the
 * parser and the writer of lib-sxe-http; the rest is in sxe-lua-client.lua and the files that it
 * names: connections, redirects, timeouts.
 *
 *     sxe-lua-client.lua   calls these functions, and gets the bytes from sxe.tcp
 *       write_head         a request as bytes
 *       parse_head         the first bytes of a response as its status, fields and framing
 *       new_chunks, read_chunks   a body in chunks
 *       new_inflate, inflate, is_whole, end_inflate   a compressed body (sxe-lua-inflate.c)
 *       open_request, open_connections, open_response   its other files as functions
 *       cookies            sxe-lua-cookies.lua as a function: jars of cookies
 *       multipart          sxe-lua-multipart.lua as a function: bodies of fields and files
 *       proxy, environment, is_in   sxe-lua-proxy.lua as a function, and what it needs
 *       start_tls          TLS on a connection that is plain so far
 *       wall, random       seconds since 1970, an integer by chance
 *       is_public          an address that leads to the internet
 *       reset              closes a connection that is of no more use
 */
#include "sxe-lua-socket-private.h"

#include <string.h>
#include <strings.h>

#include "sxe-cidr.h"
#include "sxe-http-chunk.h"
#include "sxe-http-client.h"
#include "sxe-http-list.h"
#include "sxe-lua-clock.h"
#include "sxe-lua-part-internal.h"

enum { HEAD_SIZE = 65536, FIELDS_MAX = 100, BODY_LENGTH_CHUNKED = -1 };

SXE__LUA_PART(client, "lib-sxe-lua/io/sxe-lua-client.lua");
SXE__LUA_PART(request, "lib-sxe-lua/io/sxe-lua-client-request.lua");
SXE__LUA_PART(connections, "lib-sxe-lua/io/sxe-lua-client-connections.lua");
SXE__LUA_PART(response, "lib-sxe-lua/io/sxe-lua-client-response.lua");
SXE__LUA_PART(cookies, "lib-sxe-lua/io/sxe-lua-cookies.lua");
SXE__LUA_PART(multipart, "lib-sxe-lua/io/sxe-lua-multipart.lua");

static struct sxe_span
span_at(lua_State *L, int index)
{
    struct sxe_span span;

    span.base = lua_tolstring(L, index, &span.length);
    return span;
}

static bool
is_own_field(struct sxe_span name)
{
    static const char *const names[] = {"Host", "Content-Length", "Transfer-Encoding"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == name.length && strncasecmp(names[i], name.base, name.length) == 0)
            return true;
    }
    return false;
}

/* Return nil, and which part of the head cannot be sent. */
static int
refuse_head(lua_State *L, const struct sxe_http_request_head *head)
{
    for (unsigned i = 0; i < head->fields_number; i++) {
        const struct sxe_http_pair *field = &head->fields[i];
        const char *wrong = is_own_field(field->name)
                                ? "the client writes this field itself: leave it out"
                            : !sxe_http_is_token(field->name)
                                ? "the name of a field has a character that none may have"
                            : !sxe_http_is_field_value(field->value)
                                ? "the value of this field has a control character"
                                : NULL;

        if (wrong != NULL)
            return sxe__lua_fail(
                L, lua_pushfstring(L, "client: headers: '%s': %s", field->name.base, wrong));
    }
    return sxe__lua_fail(L, "client: the method, the URL or a header is not valid HTTP");
}

/* write_head(method, target, host, {name, value, ...}, length): returns the bytes of a request's
 * head; or nil and the reason. */
static int
write_head(lua_State *L)
{
    struct sxe_http_pair fields[FIELDS_MAX];
    lua_Integer number = (lua_Integer)lua_rawlen(L, 4) / 2;
    lua_Integer length = lua_tointeger(L, 5);
    struct sxe_http_request_head head = {
        .method = span_at(L, 1),
        .target = span_at(L, 2),
        .host = span_at(L, 3),
        .fields = fields,
        .body_length = length == BODY_LENGTH_CHUNKED ? SXE_HTTP_CHUNKED : (uint64_t)length};
    luaL_Buffer room;
    char *bytes;
    ssize_t n;

    if (number > FIELDS_MAX)
        return sxe__lua_fail(L, "client: too many fields");
    luaL_checkstack(L, 2 * (int)number + LUA_MINSTACK, NULL);
    for (lua_Integer i = 0; i < number; i++) {
        lua_rawgeti(L, 4, 2 * i + 1);
        lua_rawgeti(L, 4, 2 * i + 2);
        fields[i] = (struct sxe_http_pair){span_at(L, -2), span_at(L, -1)};
    }
    head.fields_number = (unsigned)number;
    bytes = luaL_buffinitsize(L, &room, HEAD_SIZE);
    n = sxe_http_request_write(&head, bytes, HEAD_SIZE);
    if (n == -EMSGSIZE)
        return sxe__lua_fail(L, "client: the request's head is larger than 65535 bytes");
    if (n < 0)
        return refuse_head(L, &head);
    luaL_pushresultsize(&room, (size_t)n);
    return 1;
}

static void
push_text(lua_State *L, const char *bytes, unsigned offset, unsigned length)
{
    lua_pushlstring(L, bytes + offset, length);
}

/* parse_head(bytes, method) returns nil if more bytes must come; false and the reason if the head
 * is invalid; or its length, status, reason, {name, value, ...}, how the body ends, the body's
 * length, and whether the connection can be kept. */
static int
parse_head(lua_State *L)
{
    static const char *const endings[] = {
        [SXE_HTTP_BODY_NONE] = "none",
        [SXE_HTTP_BODY_LENGTH] = "length",
        [SXE_HTTP_BODY_CHUNKED] = "chunked",
        [SXE_HTTP_BODY_UNTIL_CLOSE] = "close",
    };
    struct sxe_http_field fields[FIELDS_MAX];
    struct sxe_span bytes = span_at(L, 1);
    struct sxe_http_parser parser;
    int n;

    sxe_http_parser_init(&parser, SXE_HTTP_RESPONSE, fields, FIELDS_MAX, NULL);
    /* The parser must know these two methods, because they decide whether the response has a
     * body. */
    if (strcmp(lua_tostring(L, 2), "HEAD") == 0)
        parser.method = SXE_HTTP_HEAD;
    if (strcmp(lua_tostring(L, 2), "CONNECT") == 0)
        parser.method = SXE_HTTP_CONNECT;
    n = sxe_http_parse(&parser, bytes.base, bytes.length);
    if (n == 0)
        return 0;
    if (n < 0 || parser.status == 101) {
        lua_pushboolean(L, false);
        lua_pushstring(L, n < 0 ? sxe_http_refusal_text((enum sxe_http_refusal)parser.refusal)
                                : "the server switches to another protocol");
        return 2;
    }
    lua_pushinteger(L, n);
    lua_pushinteger(L, parser.status);
    push_text(L, bytes.base, parser.reason.offset, parser.reason.length);
    lua_createtable(L, 2 * parser.number, 0);
    for (unsigned i = 0; i < parser.number; i++) {
        push_text(L, bytes.base, fields[i].name, fields[i].name_length);
        lua_rawseti(L, -2, 2 * (lua_Integer)i + 1);
        push_text(L, bytes.base, fields[i].value, fields[i].value_length);
        lua_rawseti(L, -2, 2 * (lua_Integer)i + 2);
    }
    lua_pushstring(L, endings[parser.body]);
    lua_pushnumber(L, (lua_Number)parser.length);
    lua_pushboolean(L, parser.keep_alive);
    return 7;
}

static int
new_chunks(lua_State *L)
{
    sxe_http_chunks_init(lua_newuserdatauv(L, sizeof(struct sxe_http_chunks), 0), NULL, 0, NULL);
    return 1;
}

/* read_chunks(chunks, bytes) returns the data, the bytes after those that were read, and whether
 * the body is over; or nil and the reason. */
static int
read_chunks(lua_State *L)
{
    struct sxe_http_chunks *chunks = lua_touserdata(L, 1);
    struct sxe_span bytes = span_at(L, 2);
    struct sxe_span part;
    luaL_Buffer data;
    ssize_t n;

    luaL_buffinit(L, &data);
    while (!chunks->done &&
           (n = sxe_http_chunks_read(chunks, bytes.base, bytes.length, &part)) != 0) {
        if (n < 0)
            return sxe__lua_fail(L, sxe_http_refusal_text((enum sxe_http_refusal)chunks->refusal));
        luaL_addlstring(&data, part.base, part.length);
        bytes.base += n;
        bytes.length -= (size_t)n;
    }
    luaL_pushresult(&data);
    lua_pushlstring(L, bytes.base, bytes.length);
    lua_pushboolean(L, chunks->done);
    return 3;
}

/* ---- Addresses ---- */

/* is_public(address): whether the address leads to the internet */
static int
is_public(lua_State *L)
{
    lua_pushboolean(L, sxe_cidr_is_public(lua_tostring(L, 1)));
    return 1;
}

static int
wall_s(lua_State *L)
{
    lua_pushnumber(L, sxe_lua_get_clock()->wall_s());
    return 1;
}

static int
random_integer(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)sxe_lua_get_clock()->random());
    return 1;
}

int
sxe__lua_open_client(lua_State *L)
{
    static const luaL_Reg functions[] = {{"write_head", write_head},
                                         {"parse_head", parse_head},
                                         {"new_chunks", new_chunks},
                                         {"read_chunks", read_chunks},
                                         {"is_public", is_public},
                                         {"now", sxe__lua_now_s},
                                         {"reset", sxe__lua_conn_reset},
                                         {"end_conn", sxe__lua_conn_end},
                                         {"start_tls", sxe__lua_tls_start},
                                         {"wall", wall_s},
                                         {"random", random_integer},
                                         {"trace", sxe__lua_http_trace},
                                         {NULL, NULL}};

    sxe__lua_push_part(L, &client_part);
    luaL_newlib(L, functions);
    sxe__lua_add_inflate(L);
    sxe__lua_add_proxy(L);
    sxe__lua_push_part(L, &request_part);
    lua_setfield(L, -2, "open_request");
    sxe__lua_push_part(L, &connections_part);
    lua_setfield(L, -2, "open_connections");
    sxe__lua_push_part(L, &response_part);
    lua_setfield(L, -2, "open_response");
    sxe__lua_push_part(L, &cookies_part);
    lua_setfield(L, -2, "cookies");
    sxe__lua_push_part(L, &multipart_part);
    lua_setfield(L, -2, "multipart");
    lua_call(L, 1, 1);
    return 1;
}
