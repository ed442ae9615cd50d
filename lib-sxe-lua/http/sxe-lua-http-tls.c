/* SPDX-License-Identifier: MIT
 *
 * req.tls: what the program's table (struct sxe_lua_tls) says of the connection.
 */
#include "sxe-lua-http-private.h"

#include <string.h>

static void
set_text_fact(lua_State *L, const char *name, const char *text)
{
    if (*text == '\0')
        return;
    lua_pushstring(L, text);
    lua_setfield(L, -2, name);
}

static void
set_integer(lua_State *L, const char *name, int64_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

/* Set the field `names` to the list of the words in this text. */
static void
set_names(lua_State *L, const char *text)
{
    lua_newtable(L);
    for (lua_Integer i = 1; *text != '\0'; i++) {
        size_t length = strcspn(text, " ");

        lua_pushlstring(L, text, length);
        lua_rawseti(L, -2, i);
        text += length + strspn(text + length, " ");
    }
    lua_setfield(L, -2, "names");
}

static void
set_client_fact(lua_State *L, const struct sxe_lua_tls_facts *facts)
{
    lua_createtable(L, 0, 6);
    lua_pushstring(L, facts->subject); /* may be empty: then the names identify the client */
    lua_setfield(L, -2, "subject");
    set_text_fact(L, "issuer", facts->issuer);
    set_text_fact(L, "fingerprint", facts->fingerprint);
    set_integer(L, "not_before", facts->not_before);
    set_integer(L, "not_after", facts->not_after);
    set_names(L, facts->names);
    lua_setfield(L, -2, "client");
}

bool
sxe__lua_http_is_secure(const struct sxe__lua_exchange *exchange)
{
    const struct sxe_lua_tls *tls = sxe__lua_config()->tls;
    struct sxe_lua_tls_facts facts;

    return tls != NULL && tls->describe != NULL &&
           tls->describe(sxe_http_socket(exchange->request), &facts);
}

int
sxe__lua_http_push_tls(lua_State *L, struct sxe__lua_exchange *exchange)
{
    const struct sxe_lua_tls *tls = sxe__lua_config()->tls;
    struct sxe_lua_tls_facts facts;

    if (tls == NULL || tls->describe == NULL ||
        !tls->describe(sxe_http_socket(exchange->request), &facts)) {
        lua_pushnil(L);
        return 1;
    }
    lua_createtable(L, 0, 6);
    set_text_fact(L, "version", facts.version);
    set_text_fact(L, "cipher", facts.cipher);
    set_text_fact(L, "sni", facts.name);
    set_text_fact(L, "alpn", facts.protocol);
    lua_pushboolean(L, facts.is_resumed);
    lua_setfield(L, -2, "resumed");
    if (facts.has_client)
        set_client_fact(L, &facts);
    return 1;
}
