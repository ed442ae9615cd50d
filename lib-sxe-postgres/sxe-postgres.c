/* SPDX-License-Identifier: MIT
 *
 * The module sxe.postgres: the C functions that sxe-postgres.lua calls, connection strings, and the
 * addresses of servers.
 */
#include "sxe-postgres.h"

#include <string.h>
#include <sys/socket.h>

#include "sxe-lua-internal.h"
#include "sxe-lua-part-internal.h"
#include "sxe-postgres-private.h"
#include "sxe.h"

SXE__LUA_PART(postgres, "lib-sxe-postgres/sxe-postgres.lua");

/* ---- Connection strings ---- */

/* A list of options that libpq allocated, in a userdata, so that Lua's collector frees it. */
struct options {
    PQconninfoOption *list;
};

static int
free_options(lua_State *L)
{
    struct options *options = lua_touserdata(L, 1);

    PQconninfoFree(options->list);
    options->list = NULL;
    return 0;
}

static struct options *
new_options(lua_State *L)
{
    struct options *options = lua_newuserdatauv(L, sizeof(*options), 0);

    options->list = NULL;
    luaL_setmetatable(L, "sxe postgres options");
    return options;
}

/* Push a table of the options that have values, and free the list. */
static int
push_options(lua_State *L, struct options *options)
{
    lua_newtable(L);
    for (const PQconninfoOption *option = options->list; option->keyword != NULL; option++) {
        if (option->val != NULL) {
            lua_pushstring(L, option->val);
            lua_setfield(L, -2, option->keyword);
        }
    }
    PQconninfoFree(options->list);
    options->list = NULL;
    return 1;
}

/* parse(text): the options of a connection string; or nil and a message */
static int
parse_conninfo(lua_State *L)
{
    const char *text = sxe__lua_check_text(L, 1);
    struct options *options = new_options(L);
    char *why = NULL;
    char copy[200];

    options->list = PQconninfoParse(text, &why);
    if (options->list != NULL)
        return push_options(L, options);
    if (why == NULL)
        return luaL_error(L, "not enough memory");
    copy[0] = '\0';
    strncat(copy, why, sizeof(copy) - 1);
    PQfreemem(why);
    copy[strcspn(copy, "\n")] = '\0';
    return sxe__lua_fail(L, copy);
}

/* defaults(): the options that the environment gives */
static int
get_defaults(lua_State *L)
{
    struct options *options = new_options(L);

    options->list = PQconndefaults();
    if (options->list == NULL)
        return luaL_error(L, "not enough memory");
    return push_options(L, options);
}

/* ---- Addresses ---- */

static int
go_on_looked_up(lua_State *L, int status, lua_KContext context)
{
    const int failed = sxe__lua_resolved(L);

    (void)status;
    (void)context;
    return failed > 0 ? failed : 1;
}

/* lookup(host, seconds): the addresses of a host, in one text with a blank after each; or nil and a
 * message */
static int
look_host_up(lua_State *L)
{
    const char *host = sxe__lua_check_text(L, 1);
    const uint64_t deadline_ns = sxe__lua_deadline(L, 2);

    if (!sxe__lua_may_wait(L)) /* parking raises the error that says why */
        return sxe__lua_park(L, deadline_ns, NULL, NULL, go_on_looked_up, 0);
    return sxe__lua_resolve(L, host, AF_UNSPEC, deadline_ns, go_on_looked_up);
}

/* has_loop(): whether the loop runs; false at a script's top level */
static int
has_postgres_loop(lua_State *L)
{
    lua_pushboolean(L, sxe_loop() != NULL);
    return 1;
}

/* check_tls(options): raise for an option tls that tcp.connect would refuse */
static int
check_postgres_tls(lua_State *L)
{
    sxe__lua_tls_check(L, 1);
    return 0;
}

/* version(): libpq's version as a number, such as 150008 */
static int
get_version(lua_State *L)
{
    lua_pushinteger(L, PQlibVersion());
    return 1;
}

/* ---- The module ---- */

/* The state ends: give the servers a time to hear of queries that are being cancelled. */
static int
await_cancels(lua_State *L)
{
    (void)L;
    sxe__postgres_await_cancels();
    return 0;
}

int
sxe_postgres_open(lua_State *L)
{
    static const luaL_Reg native[] = {{"new", sxe__postgres_l_new},
                                      {"connect", sxe__postgres_l_connect},
                                      {"rest", sxe__postgres_l_rest},
                                      {"take", sxe__postgres_l_take},
                                      {"status", sxe__postgres_l_status},
                                      {"take_crossing", sxe__postgres_l_take_crossing},
                                      {"abandon", sxe__postgres_l_abandon},
                                      {"send", sxe__postgres_l_send},
                                      {"check_values", sxe__postgres_l_check_values},
                                      {"begin_pipeline", sxe__postgres_l_begin_pipeline},
                                      {"sync", sxe__postgres_l_sync},
                                      {"size", sxe__postgres_l_size},
                                      {"receive", sxe__postgres_l_receive},
                                      {"notified", sxe__postgres_l_notified},
                                      {"put", sxe__postgres_l_put},
                                      {"end_copy", sxe__postgres_l_end_copy},
                                      {"get", sxe__postgres_l_get},
                                      {"text_of", sxe__postgres_l_text_of},
                                      {"parse", parse_conninfo},
                                      {"defaults", get_defaults},
                                      {"lookup", look_host_up},
                                      {"has_loop", has_postgres_loop},
                                      {"check_tls", check_postgres_tls},
                                      {"version", get_version},
                                      {"now", sxe__lua_now_s},
                                      {"atomic", sxe__lua_atomic},
                                      {"insist", sxe__lua_insist},
                                      {NULL, NULL}};

    sxe__lua_at_end(L, await_cancels);
    sxe__lua_open_resolve(L);
    sxe__lua_new_class(L, "sxe postgres options");
    lua_pushcfunction(L, free_options);
    lua_setfield(L, -2, "__gc");
    sxe__postgres_add_conn(L);
    sxe__lua_push_part(L, &postgres_part);
    luaL_newlib(L, native);
    lua_call(L, 1, 2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &sxe__postgres_json_key);
    return 1;
}
