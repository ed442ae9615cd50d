/* SPDX-License-Identifier: MIT
 *
 * Calling a script's functions in a worker: init, request, delay.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "script-private.h"
#include "script-query.h"
#include "script-values.h"
#include "script-wrk.h"
#include "sxe-util.h"

#define DELAY_MAX_MS 86400000.0

/* ---- Queries ---- */

static uint64_t
call_delay(lua_State *L)
{
    double ms;

    lua_call(L, 0, 1);
    ms = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : -1;
    if (!(ms >= 0 && ms <= DELAY_MAX_MS))
        luaL_error(L, "delay() returned %s; it must be a number of milliseconds, up to a day",
                   luaL_tolstring(L, -1, NULL));
    return (uint64_t)(ms * 1e6);
}

/* Read the kind, which is the second value that request() returned. */
static uint16_t
kind_of_request(lua_State *L, const struct load_script *script)
{
    const char *name = lua_tostring(L, -1);

    if (name == NULL)
        return 0;
    for (uint16_t kind = 0; kind < script->requests.kinds; kind++)
        if (strcmp(script->names[kind], name) == 0)
            return kind;
    return (uint16_t)luaL_error(
        L, "request() returned the kind '%s'; list it in wrk.kinds = {'%s', ...}", name, name);
}

int
load_script_new_anchor(lua_State *L)
{
    lua_pushboolean(L, false);
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

void
load_script_keep_request(lua_State *L, struct load_script *script)
{
    if (script->is_stopped && lua_isnil(L, -1))
        return;
    if (lua_type(L, -1) != LUA_TSTRING || lua_rawlen(L, -1) == 0)
        luaL_error(L, "request() returned %s; it must be a request, as wrk.format() makes it",
                   lua_type(L, -1) == LUA_TSTRING ? "an empty string"
                                                  : luaL_tolstring(L, -1, NULL));
    script->bytes = lua_tolstring(L, -1, &script->length);
    lua_rawseti(L, LUA_REGISTRYINDEX, script->anchor);
}

static int
ask_script(lua_State *L)
{
    struct load_script *script = lua_touserdata(L, 1);

    script->bytes = script->fixed;
    script->length = script->fixed_length;
    script->kind = 0;
    script->delay_ns = lua_getglobal(L, "delay") == LUA_TFUNCTION ? call_delay(L) : 0;
    if (lua_getglobal(L, "request") == LUA_TFUNCTION) {
        lua_call(L, 0, 2);
        script->kind = kind_of_request(L, script);
        lua_pop(L, 1);
        load_script_keep_request(L, script);
    }
    return 0;
}

static void
note_problem(struct load_script *script, const char *what, const char *why)
{
    if (!script->has_noted && script->shard == 0)
        fprintf(script->err, "sxe-http: %s: request() returned %s%s\n", script->options.path, what,
                why);
    script->has_noted = true;
}

/* Make a query of the request at script->at. If the bytes have several requests, they are sent one
 * by one. */
static int
take_query(struct load_script *script, struct load_query *query)
{
    const char *bytes = script->bytes + script->at, *why;
    size_t left = script->length - script->at;
    struct load_query found = {.bytes = bytes, .kind = script->kind};
    ssize_t length = load_script_query(bytes, left, &found, &why);

    if (length == 0) {
        if (load_lua_is_news(script->own, "request()", "no whole request"))
            fprintf(script->err,
                    "sxe-http: %s: request() returned %zu bytes that are no whole request\n",
                    script->options.path, left);
        load_script_fail(script);
        return -1;
    }
    if (length < 0) {
        note_problem(script, "what is no request, and is sent as it is: ", why);
        length = (ssize_t)left;
    } else if ((size_t)length < left) {
        note_problem(
            script, "several requests; they are sent one by one, --pipeline says how many ahead of",
            " their replies");
    }
    found.length = (unsigned)length;
    found.delay_ns = script->at == 0 ? script->delay_ns : 0;
    *query = found;
    script->at += (size_t)length;
    return 0;
}

int
load_script_ask(struct load_script *script, lua_CFunction body, struct load_query *query)
{
    if (body != NULL) {
        script->at = 0;
        if (!load_lua_timed_call(script->own, &script->requesting, "request()", body, script))
            load_script_fail(script);
    }
    return script->is_stopped ? -1 : take_query(script, query);
}

static int
next_script_query(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    struct load_script *script = (struct load_script *)requests;

    SXE_UNUSED_PARAMETER(sequence);
    return load_script_ask(script, script->at == script->length ? ask_script : NULL, query);
}

/* Return the same query each time: the script made its only request in init(). */
static int
next_fixed(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    struct load_script *script = (struct load_script *)requests;

    SXE_UNUSED_PARAMETER(sequence);
    *query = script->query;
    return script->is_stopped ? -1 : 0;
}

/* ---- Replies ---- */

bool
load_script_tell(struct load_script *script, const char *what, lua_CFunction body,
                 const struct load_exchange *exchange)
{
    struct load_script_reply reply = {.script = script, .exchange = exchange};

    if (!load_lua_timed_call(script->own, &script->replying, what, body, &reply))
        load_script_fail(script);
    return reply.is_passed;
}

static int
tell_script(lua_State *L)
{
    struct load_script_reply *reply = lua_touserdata(L, 1);

    if (lua_getglobal(L, "response") == LUA_TFUNCTION)
        load_reply_respond(L, reply->script, reply->exchange);
    reply->is_passed = lua_getglobal(L, "check") != LUA_TFUNCTION ||
                       load_reply_check(L, reply->script, reply->exchange);
    return 0;
}

static bool
take_script_reply(struct load_requests *requests, const struct load_exchange *exchange)
{
    struct load_script *script = (struct load_script *)requests;

    return script->is_stopped || load_script_tell(script, "response()", tell_script, exchange);
}

/* ---- Beginning ---- */

static bool
is_function(lua_State *L, const char *name)
{
    bool is = lua_getglobal(L, name) == LUA_TFUNCTION;

    lua_pop(L, 1);
    return is;
}

/* Push the script's own init function. wrk calls wrk.init(), which calls init(); a script may
 * replace either function. False: the script replaced neither. */
static bool
push_init(lua_State *L)
{
    if (lua_getfield(L, 2, "init") == LUA_TFUNCTION && !lua_iscfunction(L, -1))
        return true;
    return lua_getglobal(L, "init") == LUA_TFUNCTION;
}

/* Call init(args); the function is on top of the stack. args[0] is the URL, as in wrk. */
static void
call_init(lua_State *L, const struct load_script_options *options)
{
    lua_createtable(L, options->argc, 1);
    lua_pushfstring(L, "%s://%s%s", options->scheme != NULL ? options->scheme : "http",
                    options->authority, options->target);
    lua_rawseti(L, -2, 0);
    for (int i = 0; i < options->argc; i++) {
        lua_pushstring(L, options->argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 1, 0);
}

/* The function wrk.request(), for scripts that call it: it returns the request that was made after
 * init(). */
static int
fixed_request(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

static int
begin_worker_script(lua_State *L)
{
    struct load_script *script = lua_touserdata(L, 1);

    load_wrk_push(L);
    load_thread_push(L, script, script->shard);
    lua_setfield(L, 2, "thread");
    if (lua_getfield(L, 2, "headers") == LUA_TTABLE && lua_getfield(L, 3, "Host") == LUA_TNIL) {
        lua_getfield(L, 2, "authority");
        lua_setfield(L, 3, "Host");
    }
    if (push_init(L))
        call_init(L, &script->options);
    lua_settop(L, 2);
    for (int i = 0; i < 4; i++)
        lua_pushnil(L);
    load_wrk_format(L);
    script->fixed = lua_tolstring(L, 3, &script->fixed_length);
    lua_pushvalue(L, 3);
    lua_pushcclosure(L, fixed_request, 1);
    lua_setfield(L, 2, "request");
    /* keep the string of script->fixed, even if the script replaces wrk.request */
    luaL_ref(L, LUA_REGISTRYINDEX);
    script->anchor = load_script_new_anchor(L);
    script->calls_lua = is_function(L, "request") || is_function(L, "delay");
    script->requests.wants_replies = is_function(L, "response") || is_function(L, "check");
    return 0;
}

/* Choose the function that makes queries. If no query needs Lua, it always returns the request that
 * wrk.format() made, unless those bytes are several requests. */
static bool
choose_next_request(struct load_script *script)
{
    script->requests.next = next_script_query;
    if (script->calls_lua)
        return true;
    script->bytes = script->fixed;
    script->length = script->fixed_length;
    if (take_query(script, &script->query) < 0)
        return false;
    if (script->at == script->length)
        script->requests.next = next_fixed;
    script->at = 0;
    return true;
}

static int
begin_worker(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    struct load_script *script = (struct load_script *)requests;

    load_script_begin(script, shard, shards, script->lua[load_script_slot(script, shard, shards)]);
    if (!load_script_seed(script, seed) ||
        !load_lua_call(script->own, "init()", begin_worker_script, script) ||
        !choose_next_request(script)) {
        load_script_fail(script);
        return -ECANCELED;
    }
    return 0;
}

/* ---- The end ---- */

static int
put_globals(lua_State *L)
{
    struct load_script_slot *slot = lua_touserdata(L, 1);
    struct load_values values = {slot->globals, 0, LOAD_SCRIPT_GLOBALS_MAX};

    load_wrk_push_names(L);
    load_values_put_globals(L, -1, &values);
    slot->globals_length = values.length;
    return 0;
}

static void
end_script(struct load_requests *requests, uint64_t *calls, uint64_t *ns)
{
    struct load_script *script = (struct load_script *)requests;
    struct load_script_slot *slot = &script->slots[script->shard];

    if (load_lua_call(script->own, "keeping its globals", put_globals, slot))
        slot->is_over = true;
    load_script_end(requests, calls, ns);
}

void
load_script_worker_init(struct load_script *script)
{
    script->requests.begin = begin_worker;
    script->requests.next = next_script_query;
    script->requests.replied = take_script_reply;
    script->requests.end = end_script;
}
