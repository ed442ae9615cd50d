/* SPDX-License-Identifier: MIT
 *
 * What: the option tls of tcp.connect: true, or {ca =, cert =, key =, name =, alpn =, insecure =}.
 *
 * Clients are made by the program's table (struct sxe_lua_tls), one for all connections with the
 * same files: to read the system's authorities takes milliseconds, and sessions are resumed by the
 * client that made them. They stay until the state is deleted.
 *
 *     registry["sxe.tls clients"]
 *         "ca\0cert\0key\0alpn\0insecure" -> the client, or false: it could not be made
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS_MAX = 64 };

/* All clients of TLS that were made. They are deleted when the state ends. */
static _Thread_local struct {
    struct sxe_tls **list; /* an array of CLIENTS_MAX clients; NULL: no client was made */
    unsigned number;
} clients;

void
sxe__lua_tls_close(void)
{
    while (clients.number > 0)
        sxe__lua_config()->tls->delete_client(clients.list[--clients.number]);
    free(clients.list);
    clients.list = NULL;
}

/* Push the field tls of the options at an index. Returns the field's type. */
static int
push_tls_field(lua_State *L, int options)
{
    if (lua_istable(L, options))
        return lua_getfield(L, options, "tls");
    lua_pushnil(L);
    return LUA_TNIL;
}

/* ---- Options ---- */

/* A text in the table of options on top; NULL: the option is missing. The table keeps the text. */
static const char *
text_of_tls_option(lua_State *L, const char *name)
{
    const char *text = NULL;

    if (lua_getfield(L, -1, name) != LUA_TNIL)
        text = sxe__lua_option_text(L, "tls", name);
    lua_pop(L, 1);
    return text;
}

static struct sxe_lua_tls_options
options_of(lua_State *L)
{
    struct sxe_lua_tls_options options = {.authorities = NULL};

    if (!lua_istable(L, -1))
        return options;
    options.authorities = text_of_tls_option(L, "ca");
    options.certificate = text_of_tls_option(L, "cert");
    options.key = text_of_tls_option(L, "key");
    options.protocols = text_of_tls_option(L, "alpn");
    options.is_insecure = sxe__lua_option_bool(L, lua_gettop(L), "tls", "insecure", false);
    return options;
}

void
sxe__lua_tls_check(lua_State *L, int index)
{
    static const char *const names[] = {"ca", "cert", "key", "name", "alpn", "insecure", NULL};
    struct sxe_lua_tls_options options;
    const int type = push_tls_field(L, index);

    if (type == LUA_TTABLE) {
        sxe__lua_option_names(L, lua_gettop(L), names, "tls");
        options = options_of(L);
        (void)text_of_tls_option(L, "name");
        if ((options.certificate == NULL) != (options.key == NULL))
            luaL_error(L, "tls: cert and key go together");
    } else if (type != LUA_TNIL && type != LUA_TBOOLEAN) {
        luaL_error(L, "tls must be true or a table of options, not a %s", lua_typename(L, type));
    }
    lua_pop(L, 1);
}

const char *
sxe__lua_tls_name(lua_State *L, int index)
{
    const char *name = NULL;

    if (push_tls_field(L, index) == LUA_TTABLE)
        name = text_of_tls_option(L, "name");
    lua_pop(L, 1);
    return name;
}

/* ---- Clients ---- */

static void
push_tls_key(lua_State *L, const struct sxe_lua_tls_options *options)
{
    const char *const texts[] = {options->authorities, options->certificate, options->key,
                                 options->protocols, options->is_insecure ? "insecure" : NULL};
    luaL_Buffer key;

    luaL_buffinit(L, &key);
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i] != NULL)
            luaL_addstring(&key, texts[i]);
        luaL_addchar(&key, '\0');
    }
    luaL_pushresult(&key);
}

/* Make a client for the options on top; NULL: *problem is the reason. */
static struct sxe_tls *
make_client(const struct sxe_lua_tls_options *options, const char **problem)
{
    struct sxe_tls *tls;

    *problem = "not enough memory";
    if (clients.list == NULL)
        clients.list = calloc(CLIENTS_MAX, sizeof(*clients.list));
    if (clients.list == NULL)
        return NULL;
    *problem = "connections of a state may differ in their options in 64 ways";
    if (clients.number == CLIENTS_MAX)
        return NULL;
    tls = sxe__lua_config()->tls->new_client(options, problem);
    if (tls != NULL)
        clients.list[clients.number++] = tls;
    return tls;
}

int
sxe__lua_tls_fail(lua_State *L, const char *why, int error)
{
    (void)sxe__lua_fail(L, lua_pushfstring(L, "tls: %s", why));
    lua_pushinteger(L, error);
    return 3;
}

/* Replace the options on top by their client. The client's place in the table is made before the
 * client, so that no client is lost if there is no memory for the place. */
static int
replace_by_client(lua_State *L)
{
    struct sxe_lua_tls_options options = options_of(L);
    const int top = lua_gettop(L);
    const char *problem;
    struct sxe_tls *tls;

    (void)luaL_getsubtable(L, LUA_REGISTRYINDEX, "sxe.tls clients");
    push_tls_key(L, &options);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, top + 1) != LUA_TLIGHTUSERDATA) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, false);
        lua_rawset(L, top + 1);
        tls = make_client(&options, &problem);
        if (tls == NULL)
            return sxe__lua_tls_fail(L, problem, EINVAL);
        lua_pushlightuserdata(L, tls);
        lua_replace(L, -2);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, top + 1);
    }
    lua_replace(L, top);
    lua_settop(L, top);
    return 0;
}

int
sxe__lua_tls_push(lua_State *L, int options)
{
    (void)push_tls_field(L, options);
    if (lua_toboolean(L, -1) && sxe__lua_config()->tls == NULL)
        return sxe__lua_tls_fail(
            L,
            "this program has no TLS: it was built without OpenSSL 3, or gives scripts "
            "none (struct sxe_lua_config)",
            ENOTSUP);
    if (lua_toboolean(L, -1))
        return replace_by_client(L);
    lua_pushnil(L);
    lua_replace(L, -2);
    return 0;
}
