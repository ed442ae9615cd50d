/* SPDX-License-Identifier: MIT
 *
 * require "sxe.redis": commands to servers in the same process that a script plays (lua-redis.lua,
 * lua-redis-handles.lua, with Sentinels in lua-redis-sentinel.lua, a cluster in
 * lua-redis-cluster.lua, and groups without one in lua-redis-sharded.lua); the group of a key
 * (lua-redis-ring.lua); tasks that end or yield at any instruction (lua-redis-ends.lua); and the
 * parser of replies (lua-redis-reader.lua).
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
    lua_newtable(L);
    sxe__lua_open_redis_encoder(L);
    sxe__lua_open_redis_reader(L);
    lua_setglobal(L, "c");
    return 0;
}

/* Make the global `c`: the C functions that encode commands and decode replies. */
static void
start_reader(void)
{
    net_start("c = false require 'sxe.json'");
    lua_pushcfunction(lua->main, open_reader);
    ck_assert_int_eq(lua_pcall(lua->main, 0, 0, 0), LUA_OK);
}

/* ---- Tasks that yield at a chosen instruction ---- */

static bool has_made_way;

static void
make_way(lua_State *L, lua_Debug *ar)
{
    (void)ar;
    lua_sethook(L, NULL, 0, 0);
    has_made_way = true;
    if (sxe__lua_may_yield(L))
        sxe__lua_make_way(L);
}

static int
make_way_after(lua_State *L)
{
    has_made_way = false;
    lua_sethook(L, make_way, LUA_MASKCOUNT, (int)lua_tointeger(L, 1));
    return 0;
}

static int
made_way(lua_State *L)
{
    lua_sethook(L, NULL, 0, 0);
    lua_pushboolean(L, has_made_way);
    return 1;
}

START_TEST(tasks_that_end_or_make_way_at_any_place_hold_up_no_other)
{
    net_start("make_way_after = false made_way = false");
    lua_register(lua->main, "make_way_after", make_way_after);
    lua_register(lua->main, "made_way", made_way);
    run_script("dofile 'test/unit/lib-sxe-lua/lua-redis-ends.lua'");
    /* About 12,000 turns, and more turns while no byte has come. */
    for (unsigned i = 0; i < 400 * WAIT_TURNS && number("done") == 0; i++)
        turn_unheard();
    run_script("assert(done == true, done)");
    net_stop();
}
END_TEST

static const char *const scripts[] = {"lua-redis",          "lua-redis-handles",
                                      "lua-redis-sentinel", "lua-redis-cluster",
                                      "lua-redis-ring",     "lua-redis-sharded"};

START_TEST(calls_get_their_replies_or_the_reason)
{
    char text[100];

    net_on_state = count;
    snprintf(text, sizeof(text), "dofile 'test/unit/lib-sxe-lua/%s.lua'", scripts[_i]);
    net_start(text);
    /* Host names are looked up by a thread, which may have to wait for a CPU. */
    for (unsigned i = 0; i < 100 * WAIT_TURNS && number("done") == 0; i++)
        turn_unheard();
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

/* The module is loaded while every 97th allocation in turn fails. */
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

/* Each allocation for a command and its reply, which comes in two parts, fails in turn. */
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

/* Each allocation fails in turn while a reply is decoded of which a part has come before. */
START_TEST(without_memory_a_reader_stays_whole)
{
    bool is_touched = true;

    start_reader();
    run_script("rest = '2\\r\\n$2\\r\\nno\\r\\n-ERR x\\r\\n:9\\r\\n+B\\r\\n'");
    for (uint64_t after = 0; is_touched; after++) {
        captured.number = 0;
        run_script("r = c.new_reader(4096) kind = nil "
                   "c.feed(r, '*3\\r\\n%2\\r\\n+key\\r\\n*2\\r\\n:1\\r\\n$3\\r\\nabc\\r\\n+k')");
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("assert(not c.next(r)) c.feed(r, rest) has_fed = true "
                        "kind, value = c.next(r)");
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
        run_script("if not has_fed then assert(not c.next(r)) c.feed(r, rest) end has_fed = nil "
                   "assert(c.number(r) == (kind and 1 or 0)) "
                   "if not kind then kind, value = c.next(r) end "
                   "local map = value[1] "
                   "assert(kind == 'value' and #value == 3 and value[3] == 9) "
                   "assert(#map.key == 2 and map.key[2] == 'abc' and map.k2 == 'no') "
                   "assert(value[2].error == 'ERR x' and select(2, c.next(r)) == 'B')");
    }
    net_stop();
}
END_TEST

/* Each allocation fails in turn while commands are collected, sent, and their replies taken. */
START_TEST(without_memory_a_pipeline_stays_whole)
{
    bool is_touched = true;

    start_reader();
    run_script("get = c.adder('GET') long = ('x'):rep(5000) "
               "bytes = c.encode('GET', 'a') .. c.encode('GET', long, 2, 2.5)");
    for (uint64_t after = 0; is_touched; after++) {
        captured.number = 0;
        run_script("p = {c.new_batch()} r = c.new_reader(4096) list = {} taken = 0 "
                   "c.feed(r, '+a\\r\\n$3\\r\\nabc\\r\\n,2.5\\r\\n-ERR x\\r\\n:1\\r\\n')");
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("assert(get(p, 'a') == p) get(p, long, 2, 2.5) sent = c.take_batch(p[1]) "
                        "taken = c.take(r, list, 0, 9)");
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
        run_script(
            "local n = c.batch_number(p[1]) assert(n == 0 or n == 1 or n == 2) "
            "if n == 0 and not sent then get(p, 'a') n = 1 end "
            "if n == 1 then get(p, long, 2, 2.5) end sent = sent or c.take_batch(p[1]) "
            "assert(sent == bytes) sent = nil "
            "if taken == 0 then taken = c.take(r, list, 0, 9) end "
            "assert(taken == 3 and c.number(r) == 3 and list[2] == 'abc' and list[3] == 2.5) "
            "assert(c.take(r, list, 3, 9) == 0 and select(2, c.next(r)) == 'ERR x') "
            "assert(c.take(r, list, 3, 9) == 1 and list[4] == 1 and c.take(r, list, 4, 9) == 0)");
    }
    net_stop();
}
END_TEST

static Suite *
redis_suite(void)
{
    Suite *suite = suite_create("lua-redis");
    TCase *tcase = tcase_create("redis");

    tcase_add_loop_test(tcase, calls_get_their_replies_or_the_reason, 0, 6);
    tcase_add_test(tcase, replies_are_values_however_they_are_cut);
    tcase_add_test(tcase, without_memory_the_module_is_not_opened);
    tcase_add_test(tcase, without_memory_a_reply_is_not_half_read);
    tcase_add_test(tcase, without_memory_a_reader_stays_whole);
    tcase_add_test(tcase, without_memory_a_pipeline_stays_whole);
    tcase_add_test(tcase, tasks_that_end_or_make_way_at_any_place_hold_up_no_other);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(redis_suite());
}
