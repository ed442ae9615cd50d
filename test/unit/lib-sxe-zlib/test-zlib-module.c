/* SPDX-License-Identifier: MIT
 *
 * require "sxe.zlib". zlib-values.lua checks the results of calls; here each allocation fails in
 * turn, and other tasks run while a text is compressed.
 */
#include "lua-net.h"

#include "lua-count.h"
#include "sxe-zlib.h"
#include "test-main.h"

static void
zlib_start(void)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .zlib = sxe_zlib_open});
    count_lines("build/coverage/lua/zlib.info");
    run_script("zlib, stream, text = require 'sxe.zlib', false, ('x'):rep(100000)");
}

/* A state in which a task makes way after each piece of the text. */
static void
zlib_start_with_slices(void)
{
    state_start_with(&(struct sxe_lua_config){
        .tasks = 64, .slice_ms = 1, .memory_max = 1 << 28, .zlib = sxe_zlib_open});
    count_lines("build/coverage/lua/zlib.info");
    run_script("task, zlib = require 'sxe.task', require 'sxe.zlib'\n"
               "text, refused, finished = ('0123456789abcdef'):rep(1 << 20), 0, false\n"
               "stream = zlib.compressor{level = 9}");
}

static void
until_holds(const char *expression)
{
    char text[100];

    snprintf(text, sizeof(text), "assert(%s)", expression);
    do {
        turn_tasks();
        captured.number = 0;
    } while (load_text(text) != 0);
    captured.number = 0;
}

START_TEST(texts_are_compressed_and_decompressed)
{
    zlib_start();
    run_script("dofile 'test/unit/lib-sxe-zlib/zlib-values.lua'");
    state_stop();
}
END_TEST

START_TEST(a_program_without_it_says_so)
{
    state_start();
    fails_with("require 'sxe.zlib'", "this program has no sxe.zlib");
    state_stop();
    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .zlib = sxe_zlib_open});
    fails_with("require 'sxe.zlib'", "not found");
    state_stop();
}
END_TEST

static const char *const calls[] = {
    "assert(zlib.decompress(zlib.compress(text)) == text)",
    "stream = zlib.compressor() stream:add(text) stream:flush() stream:finish()",
    "stream = zlib.decompressor{format = 'raw'} stream:close()",
    "package.loaded['sxe.zlib'] = nil require 'sxe.zlib'",
    "assert(zlib.decompress 'x' == nil)",
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

START_TEST(without_memory_a_call_fails_and_the_next_works)
{
    zlib_start();
    run_without_memory(calls[_i]);
    run_script(calls[_i]);
    run_script(calls[0]);
    state_stop();
}
END_TEST

/* Streams that were dropped have all the memory, until a new one needs it. */
START_TEST(streams_count_in_the_memory_of_the_state)
{
    state_start_with(
        &(struct sxe_lua_config){.tasks = 64, .memory_max = 2 << 20, .zlib = sxe_zlib_open});
    run_script("local zlib, all = require 'sxe.zlib', {}\n"
               "collectgarbage 'stop'\n"
               "local good, why = pcall(function()\n"
               "    for i = 1, 10 do all[i] = zlib.compressor() end\n"
               "end)\n"
               "assert(not good and why:find 'not enough memory' and #all > 2 and #all < 9, why)\n"
               "all = nil\n"
               "for i = 1, 100 do zlib.compressor() end");
    state_stop();
}
END_TEST

/* Each limit leaves another rest of memory when streams that were dropped have the others. */
START_TEST(streams_that_are_garbage_leave_room_for_other_calls)
{
    for (size_t kib = 2048; kib < 4096; kib += 100) {
        state_start_with(
            &(struct sxe_lua_config){.tasks = 64, .memory_max = kib << 10, .zlib = sxe_zlib_open});
        run_script("local zlib = require 'sxe.zlib'\n"
                   "local data = zlib.compress(('a text'):rep(10000))\n"
                   "for i = 1, 100 do\n"
                   "    assert(zlib.compressor():add 'x')\n"
                   "    assert(zlib.decompressor():add(data))\n"
                   "end\n"
                   "collectgarbage 'stop'\n"
                   "for i = 1, 100 do\n"
                   "    assert(zlib.compressor():add 'x')\n"
                   "    assert(zlib.decompressor():add(data))\n"
                   "end");
        state_stop();
    }
}
END_TEST

/* The collector counts the memory of streams as if it were Lua's. */
START_TEST(streams_that_are_garbage_are_collected_soon)
{
    zlib_start();
    run_script("collectgarbage() collectgarbage()\n"
               "local weak, count = setmetatable({}, {__mode = 'k'}), 0\n"
               "for i = 1, 200 do weak[zlib.compressor()] = true end\n"
               "for _ in pairs(weak) do count = count + 1 end\n"
               "assert(count < 100, count)");
    state_stop();
}
END_TEST

/* The slice is so short that the task makes way after each piece. */
START_TEST(other_tasks_run_while_a_text_is_compressed)
{
    state_start_with(&(struct sxe_lua_config){
        .tasks = 64, .slice_ms = 1, .memory_max = 1 << 28, .zlib = sxe_zlib_open});
    run_script("local task, zlib = require 'sxe.task', require 'sxe.zlib'\n"
               "turns, ended = 0, false\n"
               "task.start(function()\n"
               "    local text = {}\n"
               "    for i = 1, 200000 do text[i] = i * i end\n"
               "    text = table.concat(text)\n"
               "    repeat local before = turns zlib.compress(text) until turns > before + 2\n"
               "    ended = true\n"
               "end)\n"
               "task.start(function() while not ended do task.sleep(0) turns = turns + 1 end end)\n"
               "function has_ended() return ended end");
    do {
        turn_tasks();
        captured.number = 0;
    } while (load_text("assert(has_ended())") != 0);
    state_stop();
}
END_TEST

/* The first task may get its whole text through without making way: then it tries again. */
START_TEST(a_stream_is_for_one_task_at_a_time)
{
    zlib_start_with_slices();
    run_script("task.start(function()\n"
               "    local data\n"
               "    repeat\n"
               "        stream = zlib.compressor{level = 9}\n"
               "        pcall(function() data = stream:add(text) .. stream:finish() end)\n"
               "        task.sleep(0)\n"
               "    until refused == 3\n"
               "    finished = zlib.decompress(data, {max = #text}) == text\n"
               "end)\n"
               "task.start(function()\n"
               "    for i, name in ipairs{'add', 'flush', 'finish'} do\n"
               "        repeat\n"
               "            task.sleep(0)\n"
               "            local _, why = pcall(stream[name], stream, '')\n"
               "        until tostring(why):find('another task uses the stream', 1, true)\n"
               "        refused = i\n"
               "    end\n"
               "end)");
    until_holds("finished");
    state_stop();
}
END_TEST

START_TEST(an_error_between_two_steps_closes_the_stream)
{
    zlib_start_with_slices();
    run_script("task.start(function()\n"
               "    local good, why\n"
               "    repeat\n"
               "        local first = task.start(function()\n"
               "            stream = zlib.compressor{level = 9} stream:add(text) end)\n"
               "        task.sleep(0)\n"
               "        first:cancel()\n"
               "        pcall(first.join, first)\n"
               "        good, why = pcall(stream.add, stream, '')\n"
               "    until not good\n"
               "    finished = why:find('closed', 1, true) ~= nil\n"
               "end)");
    until_holds("finished");
    state_stop();
}
END_TEST

/* The allocation of a step may run a finalizer, which may close the stream. */
START_TEST(a_finalizer_may_close_the_stream_of_a_step)
{
    zlib_start();
    run_script("collectgarbage 'generational'\n"
               "for i = 1, 500 do\n"
               "    local one = zlib.compressor()\n"
               "    setmetatable({}, {__gc = function() one:close() end})\n"
               "    local done, why = pcall(one.add, one, text)\n"
               "    assert(done or why:find('closed', 1, true), why)\n"
               "end");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("zlib-module");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, texts_are_compressed_and_decompressed);
    tcase_add_test(c, a_program_without_it_says_so);
    tcase_add_loop_test(c, without_memory_a_call_fails_and_the_next_works, 0, CALLS);
    tcase_add_test(c, streams_count_in_the_memory_of_the_state);
    tcase_add_test(c, streams_that_are_garbage_leave_room_for_other_calls);
    tcase_add_test(c, streams_that_are_garbage_are_collected_soon);
    tcase_add_test(c, other_tasks_run_while_a_text_is_compressed);
    tcase_add_test(c, a_stream_is_for_one_task_at_a_time);
    tcase_add_test(c, an_error_between_two_steps_closes_the_stream);
    tcase_add_test(c, a_finalizer_may_close_the_stream_of_a_step);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
