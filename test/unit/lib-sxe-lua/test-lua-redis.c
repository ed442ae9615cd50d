/* SPDX-License-Identifier: MIT
 *
 * require "sxe.redis": commands to servers of the same process that answer by script
 * (lua-redis.lua, lua-redis-handles.lua), and replies as values (lua-redis-reader.lua).
 */
#include "lua-net.h"

#include "lua-count.h"
#include "sxe-lua-redis-private.h"
#include "test-main.h"

static void
count(void)
{
    count_lines("build/coverage/lua/redis.info");
}

static int
open_reader(lua_State *L)
{
    sxe__lua_open_redis_reader(L);
    lua_setglobal(L, "c");
    return 0;
}

/* The functions of C that make bytes and values are the global c. */
static void
start_reader(void)
{
    net_start("c = false require 'sxe.json'");
    lua_pushcfunction(lua->main, open_reader);
    ck_assert_int_eq(lua_pcall(lua->main, 0, 0, 0), LUA_OK);
}

static const char *const scripts[] = {"lua-redis", "lua-redis-handles"};

START_TEST(calls_get_their_replies_or_the_reason)
{
    char text[100];

    net_on_state = count;
    snprintf(text, sizeof(text), "dofile 'test/unit/lib-sxe-lua/%s.lua'", scripts[_i]);
    net_start(text);
    /* Names are looked up in a thread, which may have to wait for a CPU. */
    for (unsigned i = 0; i < 20 * WAIT_TURNS && number("done") == 0; i++)
        turn_slowly(1);
    run_script("assert(done == true, done)");
    net_stop();
}
END_TEST

START_TEST(replies_are_values_however_they_are_cut)
{
    start_reader();
    run_script("dofile 'test/unit/lib-sxe-lua/lua-redis-reader.lua'");
    net_stop();
}
END_TEST

/* It is opened while each 97th allocation fails. */
START_TEST(without_memory_the_module_is_not_opened)
{
    bool is_touched = true;

    net_start("require 'sxe.task' require 'sxe.tcp' require 'sxe.json'");
    for (uint64_t after = 0; is_touched; after += 97) {
        captured.number = 0;
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("package.loaded['sxe.redis'] = nil require 'sxe.redis'");
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
    }
    run_script("assert(require 'sxe.redis'.new)");
    net_stop();
}
END_TEST

/* Each allocation fails of a command and of its reply, which comes in two parts. */
START_TEST(without_memory_a_reply_is_not_half_read)
{
    bool is_touched = true;

    start_reader();
    for (uint64_t after = 0; is_touched; after++) {
        captured.number = 0;
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("local r = c.new_reader(4096) c.encode('GET', 2.5)"
                        "c.feed(r, '%1\\r\\n+key\\r\\n*2\\r\\n$3\\r\\nab') assert(not c.next(r))"
                        "c.feed(r, 'c\\r\\n-ERR x\\r\\n') local kind, value = c.next(r)"
                        "assert(kind == 'value' and value.key[1] == 'abc')");
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
    }
    ck_assert_uint_eq(captured.number, 0);
    net_stop();
}
END_TEST

static Suite *
redis_suite(void)
{
    Suite *suite = suite_create("lua-redis");
    TCase *tcase = tcase_create("redis");

    tcase_add_loop_test(tcase, calls_get_their_replies_or_the_reason, 0, 2);
    tcase_add_test(tcase, replies_are_values_however_they_are_cut);
    tcase_add_test(tcase, without_memory_the_module_is_not_opened);
    tcase_add_test(tcase, without_memory_a_reply_is_not_half_read);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(redis_suite());
}
