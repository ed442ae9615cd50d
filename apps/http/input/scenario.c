/* SPDX-License-Identifier: MIT
 *
 * Scenarios with kinds of requests: reading the table, choosing kinds, checking replies.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"
#include "script-private.h"
#include "script-query.h"
#include "script-table.h"
#include "script-wrk.h"
#include "sxe-util.h"

#define FILES_MAX 100000
#define TIMES_MAX 1000000
#define PLACE     "{n}"

struct kind {
    uint64_t times; /* how many times in a row a request of this kind is sent */
    uint64_t sent;  /* how many times this worker has sent a request of this kind */
    int request;    /* the kind's function request() in the registry, or LUA_NOREF */
    int check;      /* the kind's function check() in the registry, or LUA_NOREF */
    bool has_expect;
    /* what replies must be, used in place of the command line's options */
    struct load_expect expect;
    /* an array with a query for each of the `files`; NULL: request() makes the queries */
    struct load_query *fixed;
};

struct load_scenario {
    uint64_t files;
    uint64_t first; /* the number of the file at which this worker begins, less 1 */
    unsigned turn;  /* the index of the kind that is sent next */
    uint64_t run;   /* how many times in a row the kind `turn` was sent */
    unsigned kind;  /* the index of the kind that was sent last */
    uint64_t n;     /* the number of the file in the query that was sent last */
    struct kind kinds[LOAD_KINDS_MAX];
};

/* ---- Reading the table ---- */

static int
read_kind_function(lua_State *L, int table, const char *where, const char *name)
{
    if (load_table_field(L, table, where, name, LUA_TFUNCTION))
        return luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return LUA_NOREF;
}

static void
read_kind_expect(lua_State *L, int table, const char *where, struct kind *kind)
{
    const char *status = load_table_text(L, table, where, "expect_status");
    const char *body = load_table_text(L, table, where, "expect_body");
    const char *wrong;

    kind->has_expect = status != NULL || body != NULL;
    wrong =
        load_expect_add_status(&kind->expect, status == NULL ? LOAD_EXPECT_DEFAULT_STATUS : status);
    if (wrong != NULL)
        luaL_error(L, "%s.expect_status: %s", where, wrong);
    wrong = body == NULL ? NULL : load_expect_set_body(&kind->expect, body);
    if (wrong != NULL)
        luaL_error(L, "%s.expect_body: %s", where, wrong);
}

static void
read_scenario_kind(lua_State *L, struct load_script *script, lua_Integer nth)
{
    static const char *const names[] = {"name",          "times",       "method", "path",
                                        "headers",       "body",        "check",  "request",
                                        "expect_status", "expect_body", NULL};
    struct kind *kind = &script->scenario->kinds[script->requests.kinds];
    int table = lua_gettop(L);
    const char *where = lua_pushfstring(L, "kinds[%I]", nth);
    const char *name;

    if (lua_type(L, table) != LUA_TTABLE)
        luaL_error(L, "%s must be a table", where);
    load_table_refuse_others(L, table, where, names);
    name = load_table_text(L, table, where, "name");
    load_script_add_kind(L, script, name == NULL ? where : name);
    kind->times = load_table_number(L, table, where, "times", TIMES_MAX);
    kind->request = read_kind_function(L, table, where, "request");
    kind->check = read_kind_function(L, table, where, "check");
    script->requests.wants_replies |= kind->check != LUA_NOREF;
    read_kind_expect(L, table, where, kind);
    lua_pop(L, 1);
}

/* ---- Requests that never change ---- */

/* Push the text that is at the index, with each {n} replaced by the digits of n. */
static void
push_numbered(lua_State *L, int index, uint64_t n)
{
    size_t length;
    const char *text = luaL_tolstring(L, index, &length);
    const char *digits = lua_pushfstring(L, "%I", (lua_Integer)n);
    struct load_lua *lua = load_lua_of(L);

    lua->length = 0;
    for (const char *place; (place = memmem(text, length, PLACE, 3)) != NULL;) {
        load_lua_put(L, text, (size_t)(place - text));
        load_lua_put(L, digits, strlen(digits));
        length -= (size_t)(place + 3 - text);
        text = place + 3;
    }
    load_lua_put(L, text, length);
    lua_pushlstring(L, lua->text, lua->length);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

static void
push_kind_field(lua_State *L, int table, const char *where, const char *name, uint64_t n)
{
    if (load_table_field(L, table, where, name, LUA_TSTRING)) {
        push_numbered(L, -1, n);
        lua_remove(L, -2);
    }
}

/* Push the headers of the command line, in which the headers of the kind replace those of the same
 * name. */
static void
push_kind_headers(lua_State *L, int table, const char *where, uint64_t n)
{
    int to;

    lua_newtable(L);
    to = lua_gettop(L);
    load_wrk_push(L);
    lua_getfield(L, -1, "headers");
    for (lua_pushnil(L); lua_next(L, to + 2) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, to);
    }
    if (load_table_field(L, table, where, "headers", LUA_TTABLE)) {
        for (lua_pushnil(L); lua_next(L, to + 3) != 0; lua_pop(L, 1)) {
            lua_pushvalue(L, -2);
            push_numbered(L, -2, n);
            lua_rawset(L, to);
        }
    }
    lua_settop(L, to);
}

static struct load_query
make_fixed(lua_State *L, int table, const char *where, uint64_t n)
{
    struct load_query fixed = {0};
    const char *why = "it is not whole";
    size_t length;

    push_kind_field(L, table, where, "method", n);
    push_kind_field(L, table, where, "path", n);
    push_kind_headers(L, table, where, n);
    push_kind_field(L, table, where, "body", n);
    load_wrk_format(L);
    fixed.bytes = lua_tolstring(L, -1, &length);
    fixed.length = (unsigned)length;
    if (load_script_query(fixed.bytes, length, &fixed, &why) != (ssize_t)length)
        luaL_error(L, "%s makes no request: %s", where, why);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return fixed;
}

static void
make_kind_requests(lua_State *L, struct load_scenario *scenario, struct kind *kind, lua_Integer nth)
{
    const char *where = lua_pushfstring(L, "kinds[%I]", nth);
    int table = lua_gettop(L) - 1;

    if (kind->request == LUA_NOREF) {
        kind->fixed = calloc(scenario->files, sizeof(*kind->fixed));
        if (kind->fixed == NULL)
            luaL_error(L, "%s: not enough memory for its requests", where);
        for (uint64_t n = 1; n <= scenario->files; n++)
            kind->fixed[n - 1] = make_fixed(L, table, where, n);
    }
    lua_pop(L, 1);
}

static int
read_scenario(lua_State *L)
{
    static const char *const names[] = {"files", "kinds", NULL};
    struct load_script *script = lua_touserdata(L, 1);

    script->anchor = load_script_new_anchor(L);
    load_lua_push_result(L);
    if (lua_type(L, 2) != LUA_TTABLE)
        luaL_error(L,
                   "a scenario returns a table: return {files = 30, kinds = {{path = \"/{n}\"}}}");
    if (lua_getfield(L, 2, "steps") != LUA_TNIL) {
        lua_pop(L, 1);
        load_sessions_load(L, script);
        return 0;
    }
    lua_pop(L, 1);
    load_table_refuse_others(L, 2, "the scenario", names);
    script->scenario->files = load_table_number(L, 2, "the scenario", "files", FILES_MAX);
    if (!load_table_field(L, 2, "the scenario", "kinds", LUA_TTABLE) || lua_rawlen(L, 3) == 0)
        luaL_error(L, "the scenario has no kinds: kinds = {{path = \"/{n}\"}}");
    load_table_check_list(L, 3, "kinds");
    for (lua_Integer i = 1; lua_geti(L, 3, i) != LUA_TNIL; i++) {
        read_scenario_kind(L, script, i);
        make_kind_requests(L, script->scenario, &script->scenario->kinds[i - 1], i);
        lua_settop(L, 3);
    }
    return 0;
}

/* ---- In a worker ---- */

static int
ask_function(lua_State *L)
{
    struct load_script *script = lua_touserdata(L, 1);
    const struct load_scenario *scenario = script->scenario;

    lua_rawgeti(L, LUA_REGISTRYINDEX, scenario->kinds[scenario->kind].request);
    lua_pushinteger(L, (lua_Integer)scenario->n);
    lua_call(L, 1, 1);
    load_script_keep_request(L, script);
    return 0;
}

/* Choose the kind and the file of the next request. Each kind counts its files separately: with one
 * count for all kinds, some files could only be read and others only written. */
static void
take_turn(struct load_scenario *scenario, unsigned kinds)
{
    struct kind *kind = &scenario->kinds[scenario->turn];

    scenario->kind = scenario->turn;
    scenario->n = 1 + (scenario->first + kind->sent++) % scenario->files;
    if (++scenario->run == kind->times) {
        scenario->run = 0;
        scenario->turn = (scenario->turn + 1) % kinds;
    }
}

static int
next_scenario_query(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    struct load_script *script = (struct load_script *)requests;
    struct load_scenario *scenario = script->scenario;
    bool is_new = script->at == script->length;
    const struct kind *kind;
    int result = 0;

    SXE_UNUSED_PARAMETER(sequence);
    if (is_new)
        take_turn(scenario, requests->kinds);
    kind = &scenario->kinds[scenario->kind];
    if (kind->fixed != NULL)
        *query = kind->fixed[scenario->n - 1];
    else
        result = load_script_ask(script, is_new ? ask_function : NULL, query);
    query->kind = (uint16_t)scenario->kind;
    query->expect = kind->has_expect ? &kind->expect : NULL;
    return script->is_stopped ? -1 : result;
}

static int
check_reply(lua_State *L)
{
    struct load_script_reply *reply = lua_touserdata(L, 1);
    const struct kind *kind = &reply->script->scenario->kinds[reply->exchange->kind];

    lua_rawgeti(L, LUA_REGISTRYINDEX, kind->check);
    reply->is_passed = load_reply_check(L, reply->script, reply->exchange);
    return 0;
}

static bool
take_scenario_reply(struct load_requests *requests, const struct load_exchange *exchange)
{
    struct load_script *script = (struct load_script *)requests;

    return script->is_stopped || script->scenario->kinds[exchange->kind].check == LUA_NOREF ||
           load_script_tell(script, "check()", check_reply, exchange);
}

/* Begin a worker. Each worker begins at another file. */
static int
begin_scenario(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    struct load_script *script = (struct load_script *)requests;
    struct load_scenario *scenario = script->scenario;

    load_script_begin(script, shard, shards, script->parent);
    scenario->first = scenario->files * shard / shards;
    scenario->turn = 0;
    scenario->run = 0;
    for (unsigned i = 0; i < requests->kinds; i++)
        scenario->kinds[i].sent = 0;
    if (!load_script_seed(script, seed)) {
        load_script_fail(script);
        return -ECANCELED;
    }
    return 0;
}

bool
load_scenario_load(struct load_script *script)
{
    script->scenario = calloc(1, sizeof(*script->scenario));
    if (script->scenario == NULL) {
        fprintf(script->err, "sxe-http: %s: no memory for the scenario\n", script->options.path);
        return false;
    }
    script->requests.begin = begin_scenario;
    script->requests.next = next_scenario_query;
    script->requests.replied = take_scenario_reply;
    script->requests.end = load_script_end;
    return load_lua_call(script->parent, "reading it", read_scenario, script);
}

void
load_scenario_free(struct load_scenario *scenario)
{
    if (scenario == NULL)
        return;
    for (unsigned i = 0; i < LOAD_KINDS_MAX; i++) {
        load_expect_clear_body(&scenario->kinds[i].expect);
        free(scenario->kinds[i].fixed);
    }
    free(scenario);
}
