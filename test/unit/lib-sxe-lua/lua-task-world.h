/* SPDX-License-Identifier: MIT
 *
 * What: a state of Lua in virtual time, for tests whose story is a script. What the script says
 * with say() is collected as one line, "a;b 1;", and compared. SCRIPT() runs until no task waits.
 *
 * Scripts have task, timer, and these functions: say(...); advance(seconds) advances the clock
 * without turning the loop; count(): tasks that are not FREE; world.now(), world.now_ms(): the time
 * since the test began.
 */
#ifndef LUA_TASK_WORLD_H
#define LUA_TASK_WORLD_H

#include "lua-state.h"
#include "sxe-lua-task-private.h"

#include "fake-time.h"
#include "test-main.h"

#define PRELUDE                                                                            \
    "local task, timer, world = require 'sxe.task', require 'sxe.timer', require 'world' " \
    "local say, advance, count = world.say, world.advance, world.count "

#define WORLD_BEGINS_S 1000

static char said[65536];
static size_t said_length;

static int
l_say(lua_State *L)
{
    for (int i = 1; i <= lua_gettop(L); i++) {
        size_t length;
        const char *text = luaL_tolstring(L, i, &length);

        ck_assert_uint_lt(said_length + length + 2, sizeof(said));
        memcpy(said + said_length, text, length);
        said_length += length;
        said[said_length++] = i < lua_gettop(L) - 1 ? ' ' : ';';
        lua_pop(L, 1);
    }
    said[said_length] = '\0';
    return 0;
}

static int
l_advance(lua_State *L)
{
    fake_time_advance((uint64_t)(luaL_checknumber(L, 1) * 1e9));
    return 0;
}

static int
l_count(lua_State *L)
{
    lua_pushinteger(L, sxe_pool_get_number(SCHEDULER->tasks) -
                           sxe_pool_get_count(SCHEDULER->tasks, SXE__LUA_FREE));
    return 1;
}

static int
l_now(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)(sxe_time_ns() / SXE_NS_PER_SECOND) - WORLD_BEGINS_S);
    return 1;
}

static int
l_now_ms(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)(sxe_time_ns() / SXE_NS_PER_MS) - 1000 * WORLD_BEGINS_S);
    return 1;
}

static const luaL_Reg world_functions[] = {{"say", l_say},       {"advance", l_advance},
                                           {"count", l_count},   {"now", l_now},
                                           {"now_ms", l_now_ms}, {NULL, NULL}};

/* Start a state before sxe_init(), with the module "world" that the tests' scripts use. */
static inline void
begin_state(const struct sxe_lua_config *config)
{
    fake_time_start(WORLD_BEGINS_S * SXE_NS_PER_SECOND, 1286043102 * SXE_NS_PER_SECOND);
    sxe_register(8, 0);
    state_start_with(config);
    ck_assert_int_eq(sxe_lua_module(lua, "world", world_functions), 0);
    said_length = 0;
    said[0] = '\0';
}

static inline void
begin_world_with(const struct sxe_lua_config *config)
{
    begin_state(config);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
}

static inline void
begin_world(void)
{
    begin_world_with(&(struct sxe_lua_config){.tasks = 16});
}

static inline void
end_world(void)
{
    sxe_fini();
    state_stop();
    ev_loop_destroy(ev_default_loop(0));
    fake_time_stop();
}

/* Load the script and run the loop until no task waits; returns what the script said. */
static inline const char *
run_world(const char *script)
{
    said_length = 0;
    said[0] = '\0';
    load_text(script);
    sxe_run();
    return said;
}
#define SCRIPT(text) run_world(PRELUDE text)

/* How many tasks are left. */
static inline unsigned
tasks_left(void)
{
    return sxe_pool_get_number(SCHEDULER->tasks) -
           sxe_pool_get_count(SCHEDULER->tasks, SXE__LUA_FREE);
}

/* A script, and what it must say. */
struct story {
    const char *script;
    const char *says;
};

/* The script must say exactly this, and no task may be left. */
static inline void
run_story(const struct story *story)
{
    run_world(story->script);
    for (unsigned nth = 0; strcmp(said, story->says) != 0 && *log_line(nth) != '\0'; nth++)
        fputs(log_line(nth), stderr);
    ck_assert_str_eq(said, story->says);
    ck_assert_uint_eq(tasks_left(), 0);
}

static inline void
check_story(const struct story *story)
{
    begin_world();
    run_story(story);
    end_world();
}

#endif
