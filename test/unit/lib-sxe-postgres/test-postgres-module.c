/* SPDX-License-Identifier: MIT
 *
 * require "sxe.postgres": queries to a server in the same process that a script plays
 * (postgres-server.lua), calls of libpq that fail, and states that end while a query is under way.
 */
#include "postgres-world.h"

#include "test-main.h"

/* On a busy machine, instrumented code logs more than there is room for: "loop blocked 129 ms". */
static void
run_to_the_end(const char *script)
{
    world_start(script);
    for (unsigned i = 0; i < 100 * WAIT_TURNS && number("done") == 0; i++) {
        captured.number = 0;
        turn_slowly(1);
    }
    run_script("assert(done == true, done)");
    world_stop();
}

static const char *const scripts[] = {"queries", "pipelines", "cancels", "wrong", "faults", "ends"};

START_TEST(queries_get_their_rows_or_the_reason)
{
    char text[100];

    snprintf(text, sizeof(text), "dofile 'test/unit/lib-sxe-postgres/postgres-%s.lua'",
             scripts[_i]);
    run_to_the_end(text);
}
END_TEST

START_TEST(a_program_without_it_says_so)
{
    state_start();
    fails_with("require 'sxe.postgres'",
               "this program has no sxe.postgres: it was built without libpq");
    state_stop();
    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .postgres = sxe_postgres_open});
    fails_with("require 'sxe.postgres'", "not found");
    state_stop();
}
END_TEST

static const char begin[] =
    "P = dofile 'test/unit/lib-sxe-postgres/postgres-server.lua'\n"
    "postgres, task, db, server = require 'sxe.postgres', require 'sxe.task', false, false\n"
    "has_sent, done = false, false\n"
    "task.start(function() task.sleep(0)\n"
    "    server = P.serving{a = P.one '1', slow = function() has_sent = true return P.MUTE end}\n"
    "    db = postgres.new{host = '127.0.0.1', port = server.tcp.port, user = 'u'}\n";

/* A query is under way, or a connection rests, or a thread cancels a query; or the server does not
 * answer to that. */
static const char *const endings[] = {
    "db:query 'slow' end)", "db:query 'a' has_sent = true end)",
    "db:query 'a' db:query{'slow', timeout = 0.01, prepare = false} end)",
    "server.on_cancel = function() task.sleep(1000) end\n"
    "db:query 'a' db:query{'slow', timeout = 0.01, prepare = false} end)"};

START_TEST(a_state_ends_whatever_is_under_way)
{
    char text[1000];

    snprintf(text, sizeof(text), "%s%s", begin, endings[_i]);
    world_start(text);
    until("has_sent");
    turn_slowly(_i >= 2 ? 20 : 1);
    world_stop();
}
END_TEST

/* Each allocation of Lua for a query, its rows and a transaction fails in turn. */
START_TEST(without_memory_of_lua_a_query_fails_and_the_next_works)
{
    char text[1000];
    bool is_touched = true;

    snprintf(text, sizeof(text),
             "%s end)\n"
             "function try() task.start(pcall, function() db:query('a', 1)\n"
             "    db:transaction(function(tx) tx:query('a', 2.5) end)\n"
             "    for _ in db:rows 'a' do end\n"
             "    db:pipeline():query('a', 3):sync():query('a'):exec() end) end\n"
             "function check() done = false task.start(function()\n"
             "    assert(db:query('a')[1].a == '1') done = true end) end",
             begin);
    world_start(text);
    until("db ~= false");
    for (uint64_t after = 0; is_touched && after < 400; after += 3) {
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("try()");
        turn_slowly(3);
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
        turn_slowly(3);
        captured.number = 0;
        run_script("check()");
        until("done");
        captured.number = 0;
    }
    world_stop();
}
END_TEST

START_TEST(without_memory_the_module_is_not_opened)
{
    bool is_touched = true;

    world_start("require 'sxe.task' require 'sxe.json' require 'sxe.stats' require 'sxe.encoding'");
    for (uint64_t after = 0; is_touched; after += 31) {
        captured.number = 0;
        lua->heap.fail_after = after;
        lua->heap.fail_times = 2;
        (void)load_text("package.loaded['sxe.postgres'] = nil require 'sxe.postgres'");
        is_touched = lua->heap.fail_times != 2;
        lua->heap.fail_times = 0;
    }
    run_script("assert(require 'sxe.postgres'.new)");
    world_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("postgres-module");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_loop_test(c, queries_get_their_rows_or_the_reason, 0,
                        sizeof(scripts) / sizeof(scripts[0]));
    tcase_add_test(c, a_program_without_it_says_so);
    tcase_add_loop_test(c, a_state_ends_whatever_is_under_way, 0,
                        sizeof(endings) / sizeof(endings[0]));
    tcase_add_test(c, without_memory_of_lua_a_query_fails_and_the_next_works);
    tcase_add_test(c, without_memory_the_module_is_not_opened);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
