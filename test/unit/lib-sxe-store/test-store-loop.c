/* SPDX-License-Identifier: MIT
 *
 * require "sxe.store" with a loop and threads: tasks that stop waiting, states that end while
 * threads work, other threads, and other processes that use, enlarge and leave the same file.
 */
#include "store-world.h"

#include <pthread.h>

#include "test-main.h"

/* ---- A thread that is kept in a call of LMDB ---- */

static int gate[2];
static const char *kept_in; /* the name of the call in which a thread is kept */
static _Atomic unsigned arrived;

static void
wait_at_gate(const char *name)
{
    char byte;

    if (kept_in == NULL || strcmp(name, kept_in) != 0)
        return;
    arrived++;
    ck_assert_int_eq(read(gate[0], &byte, 1), 1);
}

static void
keep_in(const char *name)
{
    ck_assert_int_eq(pipe(gate), 0);
    arrived = 0;
    kept_in = name;
    on_mdb = wait_at_gate;
}

static void
until_arrived(void)
{
    while (arrived == 0)
        turn_slowly(1);
}

static void
let_go(void)
{
    kept_in = NULL;
    ck_assert_int_eq(write(gate[1], "xxxx", arrived), arrived);
}

static void
close_gate(void)
{
    close(gate[0]);
    close(gate[1]);
}

static void
begin_with_a_store(void)
{
    world_start();
    run_script("task.start(function()\n"
               "    db = open('a', {sync = 'none', map_size = 1 << 20}) log = 'open' end)");
    until("log == 'open'");
}

/* ---- Tasks that stop waiting ---- */

START_TEST(a_write_that_waits_in_the_line_is_dropped)
{
    begin_with_a_store();
    keep_in("mdb_txn_commit");
    run_script("task.start(function() db:put('first', 'v') log = 'done' end)");
    until_arrived();
    run_script(
        "tasks, ended = {}, {} for i = 1, 4 do if i ~= 9 then\n"
        "    tasks[i] = task.start(function()\n"
        "        local done, why = db:put('k' .. i, 'v') ended[i] = done or why end) end end");
    turn_slowly(1);
    run_script("tasks[2]:cancel() tasks[4]:cancel() tasks[1]:cancel()");
    until("ended[1] == 'cancelled' and ended[2] == ended[1] and ended[4] == ended[1]");
    let_go();
    until("ended[3] == true and log == 'done'");
    run_script("assert(keys(db) == 'first k3')");
    close_gate();
    world_stop();
}
END_TEST

START_TEST(a_write_that_a_thread_has_is_done_for_nobody)
{
    begin_with_a_store();
    keep_in("mdb_txn_commit");
    run_script("task.start(function() log = select(2, db:put('k', 'v', 0.001)) end)");
    until_arrived();
    until("log == 'timeout'");
    let_go();
    run_script("task.start(function() db:sync() log = db:get 'k' end)");
    until("log == 'v'");
    close_gate();
    world_stop();
}
END_TEST

START_TEST(an_open_and_a_copy_that_nobody_waits_for_end)
{
    begin_with_a_store();
    keep_in("mdb_env_open");
    run_script("t = task.start(function() log = select(2, store.open(at 'b')) end)");
    until_arrived();
    run_script("t:cancel()");
    until("log == 'cancelled'");
    let_go();
    close_gate();
    keep_in("mdb_env_copyfd2");
    run_script("t = task.start(function() number = select(2, db:copy(at 'c')) end)");
    until_arrived();
    run_script("t:cancel()");
    until("number == 'cancelled'");
    run_script("task.start(function() number = select(3, db:resize(1 << 21)) end)");
    until("number == 16");
    let_go();
    run_script("task.start(function()\n"
               "    while not db:resize(1 << 21) do task.sleep(0.001) end\n"
               "    log = keys(open('c', {read_only = true})) end)");
    until("log == ''");
    close_gate();
    world_stop();
}
END_TEST

START_TEST(a_task_that_was_cancelled_begins_nothing)
{
    begin_with_a_store();
    run_script("t = task.start(function()\n"
               "    pcall(task.sleep, 100)\n"
               "    task.self():cancel() log = select(2, db:put('k', 'v')) end)\n"
               "u = task.start(function()\n"
               "    task.self():cancel() number = select(2, store.open(at 'b')) end)");
    run_script("t:cancel()");
    until("number == 'cancelled'");
    turn_slowly(2);
    run_script("assert(db:get 'k' == nil)");
    fails_with(
        "coroutine.wrap(function() table.sort({1, 2}, function() db:put('k', 'v') end) end)()",
        "cannot wait inside of");
    world_stop();
}
END_TEST

/* ---- States that end ---- */

START_TEST(a_state_ends_while_a_thread_commits)
{
    begin_with_a_store();
    keep_in("mdb_txn_commit");
    run_script("task.start(function() db:put('k', 'v') end)\n"
               "task.start(function() db:put('l', 'v') end)");
    until_arrived();
    state_stop();
    let_go();
    while (fake_os_open_fds() > world_open_before + 2) /* the gate has two descriptors */
        turn_slowly(1);
    close_gate();
    world_end();
}
END_TEST

/* All threads of the module are kept, so neither the commit nor the closing has begun. */
START_TEST(a_state_ends_before_a_thread_commits)
{
    begin_with_a_store();
    run_script("task.start(function() other = open 'b' log = 'both' end)");
    until("log == 'both'");
    keep_in("mdb_env_copyfd2");
    run_script("for i = 1, 4 do task.start(function() db:copy(at('copy' .. i)) end) end");
    while (arrived < 4)
        turn_slowly(1);
    run_script("task.start(function() db:put('k', 'v') end)\n"
               "task.start(function() db:put('l', 'v') end)\n"
               "task.start(function() open('c') end)\n"
               "other:close()");
    turn_slowly(1);
    state_stop();
    let_go();
    while (fake_os_open_fds() > world_open_before + 2) /* the gate has two descriptors */
        turn_slowly(1);
    close_gate();
    world_end();
}
END_TEST

/* All threads of the module are kept. One is let go, which does the rest in its order. */
START_TEST(a_file_that_is_about_to_be_closed_is_opened_again)
{
    begin_with_a_store();
    run_script("task.start(function() other, young = open 'b', open 'c' log = 'all' end)");
    until("log == 'all'");
    keep_in("mdb_env_copyfd2");
    run_script("for i = 1, 4 do task.start(function()\n"
               "    other:copy(at('copy' .. i)) number = number + 1 end) end");
    while (arrived < 4)
        turn_slowly(1);
    run_script("task.start(function() step = 'asked' local one = open('a', {sync = 'none'})\n"
               "    log = one:put('k', 'v') and one:get 'k' end)");
    until("step == 'asked'");
    run_script("db:close() young:close()");
    arrived--;
    ck_assert_int_eq(write(gate[1], "x", 1), 1);
    until("log == 'v'");
    let_go();
    until("number == 4");
    close_gate();
    world_stop();
}
END_TEST

static void
refuse_threads(void)
{
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 0, EAGAIN);
}

START_TEST(without_a_thread_calls_fail)
{
    net_on_state = refuse_threads;
    world_start_with("db = open 'a'");
    run_script("task.start(function() log = select(3, db:put('k', 'v')) end)");
    until("log == 11");
    fake_os_reset();
    world_stop();
}
END_TEST

START_TEST(a_module_that_is_required_late_has_no_threads)
{
    net_store = sxe_store_open;
    net_start("task = require 'sxe.task' log = ''");
    run_script("task.start(function()\n"
               "    local store = require 'sxe.store'\n"
               "    log = select(2, store.open '/nowhere/a') end)");
    until("log:find('no threads', 1, true) ~= nil");
    net_stop();
}
END_TEST

/* ---- Snapshots ---- */

START_TEST(a_snapshot_that_is_old_is_over)
{
    world_start();
    run_script("task.start(function() db = open('a', {snapshot_max = 1}) db:put('k', 'v')\n"
               "    other = db:snapshot() step = other:each() log = 'open' end)");
    until("log == 'open'");
    run_script("young = db:snapshot() assert(other:get 'k' == 'v' and step() == 'k')");
    until("db:stats().snapshots == 0");
    run_script("fails(116, other:get 'k') fails(116, young:get 'k')");
    fails_with("step()", "the snapshot of this walk is over");
    run_script("other:close()");
    run_script("task.start(function()\n"
               "    log = select(2, pcall(db.write, db, function(txn)\n"
               "        while db:stats().snapshots > 0 do task.sleep(0.01) end\n"
               "        txn:get 'k' end)) end)");
    until("log:find('the snapshot is over', 1, true) ~= nil");
    run_script("task.start(function()\n"
               "    log = tostring(db:write(function(txn)\n"
               "        while db:stats().snapshots > 0 do task.sleep(0.01) end\n"
               "        txn:put('k', 'unseen') end)) .. db:get 'k' end)");
    until("log == 'trueunseen'");
    world_stop();
}
END_TEST

/* ---- Other processes and threads ---- */

static char path_of_a[100];

/* Run a function with the file in a process of its own, which then ends without a word. */
static void
run_elsewhere(void (*act)(MDB_env *env))
{
    int status;
    pid_t pid;

    snprintf(path_of_a, sizeof(path_of_a), "%s/a", root);
    pid = fork();
    if (pid == 0) {
        MDB_env *env;

        kept_in = NULL;
        if (mdb_env_create(&env) != 0 || mdb_env_set_mapsize(env, 8 << 20) != 0 ||
            mdb_env_open(env, path_of_a, MDB_NOSUBDIR | MDB_NOSYNC, 0600) != 0)
            _exit(1);
        act(env);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static void
fill_file(MDB_env *env)
{
    MDB_txn *txn;
    MDB_dbi table;
    static char large[] = "large";
    MDB_val key = {5, large}, value = {4 << 20, NULL};

    value.mv_data = calloc(1, value.mv_size);
    if (mdb_txn_begin(env, NULL, 0, &txn) != 0 || mdb_dbi_open(txn, NULL, 0, &table) != 0 ||
        mdb_put(txn, table, &key, &value, 0) != 0 || mdb_txn_commit(txn) != 0)
        _exit(2);
}

static void
read_for_ever(MDB_env *env)
{
    MDB_txn *txn;

    if (mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) != 0)
        _exit(2);
}

static const char *const after_growth[] = {
    "assert(#db:get 'large' == 4 << 20)",
    "assert(db:put('k', 'v') and #db:get 'large' == 4 << 20)",
    "assert(keys(db) == 'large')",
};

START_TEST(another_process_makes_the_map_larger)
{
    world_start_at_once();
    run_script("db = open('a', {sync = 'none', map_size = 1 << 20}) db:get 'k'");
    run_elsewhere(fill_file);
    run_script(after_growth[_i]);
    world_stop_at_once();
}
END_TEST

START_TEST(another_process_makes_the_map_larger_beside_a_loop)
{
    begin_with_a_store();
    run_script("db:get 'k'");
    run_elsewhere(fill_file);
    lua_getglobal(lua->main, "tasks");
    lua_pushstring(lua->main, after_growth[_i]);
    lua_setfield(lua->main, -2, "text");
    lua_pop(lua->main, 1);
    run_script("task.start(function() load(tasks.text)() log = 'done' end)");
    until("log == 'done'");
    world_stop();
}
END_TEST

START_TEST(a_snapshot_keeps_the_map_as_it_is)
{
    world_start_at_once();
    run_script("db = open('a', {sync = 'none', map_size = 1 << 20}) other = db:snapshot()");
    run_elsewhere(fill_file);
    run_script(
        "assert(fails(16, db:get 'k'):find('another process made the map larger', 1, true))\n"
        "fails(16, db:put('k', 'v')) other:close() assert(db:put('k', 'v'))");
    world_stop_at_once();
}
END_TEST

START_TEST(a_read_that_waits_for_a_larger_map_can_be_cancelled)
{
    begin_with_a_store();
    run_script("db:get 'k'");
    keep_in("mdb_txn_begin");
    run_script("task.start(function() db:put('k', 'v') number = 1 end)");
    until_arrived();
    run_elsewhere(fill_file);
    run_script("t = task.start(function() log = select(2, db:get 'large') end)");
    turn_slowly(1);
    run_script("t:cancel()");
    until("log == 'cancelled'");
    let_go();
    until("number == 1");
    close_gate();
    world_stop();
}
END_TEST

/* A call waits for the commit that is under way, which is told of the larger map itself. */
START_TEST(a_read_waits_for_the_commit_that_is_under_way)
{
    begin_with_a_store();
    run_script("db:get 'k'");
    keep_in("mdb_txn_begin");
    run_script("task.start(function() db:put('k', 'v') number = 1 end)");
    until_arrived();
    run_elsewhere(fill_file);
    run_script("task.start(function() log = #db:get 'large' end)");
    turn_slowly(1);
    let_go();
    until("log == 4 << 20 and number == 1");
    close_gate();
    world_stop();
}
END_TEST

START_TEST(a_killed_reader_leaves_its_place)
{
    world_start_at_once();
    run_script("db = open('a', {sync = 'none', readers = 2}) db:get 'k'");
    run_elsewhere(read_for_ever);
    run_script("other = assert(db:snapshot()) fails(87, db:snapshot())");
    world_stop_at_once();
}
END_TEST

#ifdef SXE_COVERAGE
void __gcov_dump(void);
#else
static void
__gcov_dump(void)
{
}
#endif

START_TEST(a_child_has_no_store_of_its_parent)
{
    int status;
    pid_t pid;

    world_start_at_once();
    run_script("db = open('a', {sync = 'none'}) assert(db:put('k', 'v')) other = db:snapshot()\n"
               "step = other:each()");
    pid = fork();
    if (pid == 0) {
        fails_with("db:get 'k'", "the store was opened by the process that forked this one");
        fails_with("other:get 'k'", "the snapshot is of the process that forked this one");
        fails_with("step()", "this process was forked meanwhile");
        run_script("other:close() db:close()\n"
                   "local own = open('a', {sync = 'none'})\n"
                   "assert(own:get 'k' == 'v' and own:put('k', 'child') and own:close() == nil)");
        __gcov_dump();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    run_script("assert(db:get 'k' == 'child' and other:get 'k' == 'v')");
    world_stop_at_once();
}
END_TEST

static void *
open_in_thread(void *text)
{
    const struct sxe_lua_config config = {.store = sxe_store_open};
    struct sxe_lua *own = sxe_lua_new(&config);
    const int result = sxe_lua_load_text(own, "=thread", text, strlen(text));

    sxe_lua_delete(own);
    return result == 0 ? text : NULL;
}

START_TEST(a_file_belongs_to_one_thread)
{
    char text[200];
    pthread_t thread;
    void *result;

    world_start_at_once();
    run_script("db = open('a', {sync = 'none'})");
    snprintf(text, sizeof(text),
             "assert(select(3, require 'sxe.store'.open('%s/a', {sync = 'none'})) == 16)", root);
    ck_assert_int_eq(pthread_create(&thread, NULL, open_in_thread, text), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_nonnull(result);
    world_stop_at_once();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("store-loop");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, a_write_that_waits_in_the_line_is_dropped);
    tcase_add_test(c, a_write_that_a_thread_has_is_done_for_nobody);
    tcase_add_test(c, an_open_and_a_copy_that_nobody_waits_for_end);
    tcase_add_test(c, a_task_that_was_cancelled_begins_nothing);
    tcase_add_test(c, a_state_ends_while_a_thread_commits);
    tcase_add_test(c, a_state_ends_before_a_thread_commits);
    tcase_add_test(c, a_file_that_is_about_to_be_closed_is_opened_again);
    tcase_add_test(c, without_a_thread_calls_fail);
    tcase_add_test(c, a_module_that_is_required_late_has_no_threads);
    tcase_add_test(c, a_snapshot_that_is_old_is_over);
    tcase_add_loop_test(c, another_process_makes_the_map_larger, 0, 3);
    tcase_add_loop_test(c, another_process_makes_the_map_larger_beside_a_loop, 0, 3);
    tcase_add_test(c, a_snapshot_keeps_the_map_as_it_is);
    tcase_add_test(c, a_read_that_waits_for_a_larger_map_can_be_cancelled);
    tcase_add_test(c, a_read_waits_for_the_commit_that_is_under_way);
    tcase_add_test(c, a_killed_reader_leaves_its_place);
    tcase_add_test(c, a_child_has_no_store_of_its_parent);
    tcase_add_test(c, a_file_belongs_to_one_thread);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
