/* SPDX-License-Identifier: MIT
 *
 * require "sxe.store". Its values are checked by store-values.lua; here the loop, its threads and
 * other processes use it.
 */
#include "store-world.h"

#include "test-main.h"

START_TEST(values_are_as_the_page_says)
{
    world_start_at_once();
    run_script("dofile 'test/unit/lib-sxe-store/store-values.lua'");
    world_stop_at_once();
}
END_TEST

START_TEST(a_program_without_it_says_so)
{
    state_start();
    fails_with("require 'sxe.store'", "this program has no sxe.store: it was built without LMDB");
    state_stop();
    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .store = sxe_store_open});
    fails_with("require 'sxe.store'", "not found");
    state_stop();
}
END_TEST

/* ---- With a loop ---- */

START_TEST(tasks_wait_for_threads)
{
    world_start();
    run_script("task.start(function() db = open('a', {sync = 'none'})\n"
               "for i = 1, 50 do task.start(function()\n"
               "    assert(db:put('k' .. i, 'v')) number = number + 1 end) end end)");
    until("number == 50");
    run_script("assert(db:stats().entries == 50)\n"
               "assert(db:stats().transaction <= 4)\n"
               "task.start(function()\n"
               "    assert(db:sync() and db:resize(1 << 25) and db:copy(at 'copy'))\n"
               "    assert(db:write(function(txn) txn:put('k', 'v') task.sleep(0.001) end))\n"
               "    log = 'done' end)");
    until("log == 'done'");
    world_stop();
}
END_TEST

static void
count_turns(void)
{
    count_lines("build/coverage/lua/store-turns.info");
}

START_TEST(tasks_that_conflict_take_turns)
{
    net_on_state = count_turns;
    world_start();
    run_script("task.start(function() db = open('a', {sync = 'none'})\n"
               "for i = 1, 20 do task.start(function()\n"
               "    for _ = 1, 20 do\n"
               "        assert(db:write(function(txn)\n"
               "            txn:put('n', tostring(1 + tonumber(txn:get 'n' or 0))) end)) end\n"
               "    number = number + 1 end) end end)");
    until("number == 20");
    run_script("assert(db:get 'n' == '400')");
    world_stop();
}
END_TEST

/* The first function waits for a task that conflicts, and wants its turn. */
START_TEST(a_turn_is_not_waited_for_for_ever)
{
    world_start();
    run_script("function add(sum) assert(db:write(function(txn)\n"
               "    txn:put('n', tostring(sum + tonumber(txn:get 'n' or 0))) end))\n"
               "    number = number + sum end\n"
               "task.start(function() db = open('a', {sync = 'none'})\n"
               "    assert(db:write(function(txn)\n"
               "        txn:put('n', tostring(100 + tonumber(txn:get 'n' or 0)))\n"
               "        if number > 20 then return end\n"
               "        tasks = {task.start(add, 1), task.start(add, 10)}\n"
               "        tasks[1]:join() tasks[2]:join() end))\n"
               "    number = number + 100 end)");
    until("number == 122");
    run_script("assert(db:get 'n' == '122')");
    world_stop();
}
END_TEST

START_TEST(a_job_too_large_fails_alone)
{
    world_start();
    run_script("task.start(function() db = open('a', {map_size = 1 << 18})\n"
               "for i = 1, 20 do task.start(function()\n"
               "    local done, why, code = db:put('k' .. i, ('x'):rep(i == 7 and 1 << 18 or 1))\n"
               "    assert((i == 7) == (code == 28)) number = number + 1 end) end end)");
    until("number == 20");
    run_script("assert(db:stats().entries == 19)");
    world_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("store-module");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, values_are_as_the_page_says);
    tcase_add_test(c, a_program_without_it_says_so);
    tcase_add_test(c, tasks_wait_for_threads);
    tcase_add_test(c, tasks_that_conflict_take_turns);
    tcase_add_test(c, a_turn_is_not_waited_for_for_ever);
    tcase_add_test(c, a_job_too_large_fails_alone);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
