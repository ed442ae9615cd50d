/* SPDX-License-Identifier: MIT
 *
 * require "sxe.store": each call of LMDB fails in turn, each allocation of Lua, of the library and
 * of LMDB, and calls of the system. A call that fails says so; nothing of it is done, nothing is
 * left open, and the next call works.
 */
#include "store-world.h"

#include "test-main.h"
#include "test-sweep.h"

static const char *const calls[] = {
    "local one <close> = store.open(at 'b')",
    "local one <close> = store.open(at 'a', {sync = 'none'})",
    "db:put('k', 'new')",
    "db:del 'k'",
    "db:cas('k', 'v', 'new')",
    "db:cas('none', nil, 'new')",
    "db:get 'k'",
    "local one <close> = db:snapshot() if one then one:get 'k' end",
    "for key in db:each() do end",
    "for key in db:each{reverse = true, to = 'l'} do end",
    "for key in db:each{from = 'a', to = 'z'} do end",
    "db:write(function(txn) txn:put('k', 'new') end)",
    "db:write(function(txn) txn:put('k', txn:get 'k' .. 'new') end)",
    "db:write(function(txn) for key in txn:each() do txn:del(key) end txn:put('k', 'new') end)",
    "db:sync()",
    "db:resize(1 << 21)",
    "db:copy(at 'copy')",
    "db:copy(at 'copy', {compact = true})",
    "db:copy(at 'there')",
    "local one <close> = store.open(at 'there', {read_only = true})",
    "db:stats()",
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* A commit or a resize that failed may have ended the store, which check then opens again. */
static const char begin[] =
    "options = {sync = 'none', map_size = 1 << 21}\n"
    "db = open('a', options)\n"
    "assert(db:copy(at 'there')) open('there'):close()\n"
    "function reset() assert(db:put('k', 'v') and db:put('l', 'w'))\n"
    "    os.remove(at 'copy') os.remove(at 'b') os.remove(at 'b-lock') end\n"
    "function check() collectgarbage() collectgarbage()\n"
    "    if not db:put('again', '') then db:close() db = open('a', options) end\n"
    "    db:del 'again'\n"
    "    local value = db:get 'k'\n"
    "    assert(value == 'v' or value == 'new' or value == 'vnew' or value == nil, value)\n"
    "    assert(db:get 'l' == 'w' or keys(db) == 'k')\n"
    "    assert(db:stats().snapshots == 0) reset() end\n"
    "reset()";

START_TEST(each_call_of_lmdb_fails_in_turn)
{
    static const int results[] = {EIO, MDB_MAP_RESIZED, MDB_READERS_FULL, MDB_CORRUPTED};
    const int result = results[_i % 4];
    const char *call = calls[_i / 4];

    world_start_at_once();
    run_script(begin);
    for (unsigned nth = 1;; nth++) {
        captured.number = 0;
        mdb_fault(nth, result);
        (void)load_text(call);
        fault.nth = 0;
        if (!fault.has_struck)
            break;
        run_script("check()");
    }
    run_script(call);
    run_script("db:close()");
    world_stop_at_once();
}
END_TEST

START_TEST(without_memory_of_lua_a_call_fails_and_the_next_works)
{
    world_start_at_once();
    run_script(begin);
    for (uint64_t after = 0; runs_out_of_memory(calls[_i], after); after++) {
        captured.number = 0;
        run_script("check()");
    }
    run_script(calls[_i]);
    run_script("db:close()");
    world_stop_at_once();
}
END_TEST

static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC,
                                             FAKE_POSIX_MEMALIGN};

/* LMDB asks the system by these; its pages are written by pwrite. */
static const enum fake_call system_calls[] = {
    FAKE_OPEN,   FAKE_STAT,  FAKE_FSTAT,  FAKE_FTRUNCATE, FAKE_FALLOCATE, FAKE_MMAP,  FAKE_PREAD,
    FAKE_PWRITE, FAKE_WRITE, FAKE_WRITEV, FAKE_FSYNC,     FAKE_RENAME,    FAKE_FCNTL, FAKE_CLOSE};

static void
sweep(const char *call, const enum fake_call *kinds, unsigned number, int error)
{
    world_start_at_once();
    run_script(begin);
    for (unsigned nth = 1;; nth++) {
        captured.number = 0;
        fake_os_reset();
        fake_os_sweep(kinds, number, nth, false, error);
        (void)load_text(call);
        const bool has_struck = fake_os_injected() != 0;

        fake_os_reset();
        if (!has_struck)
            break;
        run_script("check()");
    }
    run_script("db:close()");
    world_stop_at_once();
}

START_TEST(without_memory_of_the_system_a_call_fails_and_the_next_works)
{
    sweep(calls[_i], allocations, sizeof(allocations) / sizeof(allocations[0]), ENOMEM);
}
END_TEST

START_TEST(what_the_system_refuses_fails_and_the_next_call_works)
{
    sweep(calls[_i], system_calls, sizeof(system_calls) / sizeof(system_calls[0]), ENOSPC);
}
END_TEST

START_TEST(without_memory_the_module_is_not_opened)
{
    static const char *const again = "package.loaded['sxe.store'] = nil require 'sxe.store'";

    world_start_at_once();
    run_without_memory(again);
    run_script(again);
    world_stop_at_once();
}
END_TEST

START_TEST(without_a_word_of_forks_the_module_is_not_opened)
{
    state_start_with(&(struct sxe_lua_config){.store = sxe_store_open});
    fake_os_fail(FAKE_PTHREAD_ATFORK, 1, 1, ENOMEM);
    fails_with("require 'sxe.store'", "not enough memory");
    fake_os_reset();
    run_script("require 'sxe.store'");
    state_stop();
}
END_TEST

/* ---- Failures that have words of their own ---- */

static const struct {
    const char *call;
    int result;
    const char *script;
} failures[] = {
    {"mdb_txn_commit", MDB_PANIC, "assert(fails(5, db:put('k', 'x')):find 'close the store')"},
    {"mdb_txn_commit", ENOSPC, "assert(fails(28, db:put('k', 'x')) == 'No space left on device')"},
    {"mdb_put", MDB_TXN_FULL, "fails(7, db:put('k', 'x'))"},
    {"mdb_put", MDB_BAD_VALSIZE, "fails(22, db:put('k', 'x'))"},
    {"mdb_put", MDB_INCOMPATIBLE, "assert(fails(5, db:put('k', 'x')):find 'MDB_INCOMPATIBLE')"},
    {"mdb_get", MDB_PAGE_NOTFOUND, "fails(117, db:get 'k')"},
    {"mdb_get", MDB_CORRUPTED, "fails(117, db:cas('k', 'v', 'x'))"},
    {"mdb_env_open", MDB_VERSION_MISMATCH, "fails(117, store.open(at 'b'))"},
    {"mdb_env_open", EAGAIN, "fails(11, store.open(at 'b'))"},
    {"mdb_txn_begin", MDB_READERS_FULL, "fails(87, db:snapshot())"},
    {"mdb_txn_begin", MDB_MAP_RESIZED, "fails(16, db:put('k', 'x'))"},
    {"mdb_txn_renew", MDB_MAP_RESIZED, "db:get 'k' fails(16, db:get 'k')"},
};

START_TEST(failures_are_told)
{
    world_start_at_once();
    run_script(begin);
    mdb_fault_in(failures[_i].call, 1, 100, failures[_i].result);
    run_script(failures[_i].script);
    ck_assert(fault.has_struck);
    fault.nth = 0;
    run_script("assert(db:get 'k' == 'v') check()");
    world_stop_at_once();
}
END_TEST

START_TEST(without_memory_a_larger_map_is_not_adopted)
{
    world_start_at_once();
    run_script(begin);
    run_script("db:get 'k'");
    mdb_fault_in("mdb_txn_renew", 1, 1, MDB_MAP_RESIZED);
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    run_script("fails(12, db:get 'k')");
    ck_assert(fault.has_struck);
    fault.nth = 0;
    fake_os_reset();
    run_script("assert(db:get 'k' == 'v') check()");
    world_stop_at_once();
}
END_TEST

START_TEST(a_store_without_a_map_fails_until_it_is_opened_again)
{
    world_start_at_once();
    run_script(begin);
    fake_os_fail(FAKE_MMAP, 1, 1, ENOMEM);
    run_script("fails(12, db:resize(1 << 22))");
    fake_os_reset();
    run_script("fails(5, db:get 'k') fails(5, db:put('k', 'v')) fails(5, db:sync())\n"
               "fails(5, db:stats()) fails(5, db:snapshot()) fails(5, db:copy(at 'copy'))\n"
               "fails(5, db:resize(1 << 22))\n"
               "db:close() db = open 'a' assert(db:get 'k' == 'v')");
    world_stop_at_once();
}
END_TEST

START_TEST(a_descriptor_without_status_is_no_store)
{
    world_start_at_once();
    fake_os_fail(FAKE_FSTAT, 2, 1, EIO); /* the first is of the locks, and only for their size */
    run_script("fails(5, store.open(at 'b'))");
    fake_os_reset();
    run_script("open 'b':close()");
    world_stop_at_once();
}
END_TEST

/* ---- Files whose end is missing ---- */

/* Write pages at the end of the file, free them, and cut off the last one. */
static const char cut[] =
    "local short = open('short', {sync = 'none'})\n"
    "for _, value in ipairs{('x'):rep(900), false} do\n"
    "    assert(short:write(function(txn)\n"
    "        for i = 1, 200 do\n"
    "            if value then txn:put('k' .. i, value) else txn:del('k' .. i) end end end)) end\n"
    "for i = 1, 5 do assert(short:put('k', 'v')) end\n"
    "stats = short:stats()\n"
    "short:close()\n"
    "function shorten(pages) os.execute('truncate -s ' ..\n"
    "    (stats.file_pages - pages) * stats.page_size .. ' ' .. at 'short') end\n"
    "shorten(1)";

START_TEST(a_file_without_its_last_free_page_is_whole)
{
    world_start_at_once();
    run_script(cut);
    for (unsigned nth = 1;; nth++) {
        captured.number = 0;
        mdb_fault(nth, EIO);
        (void)load_text("local one <close> = store.open(at 'short')");
        fault.nth = 0;
        if (!fault.has_struck)
            break;
    }
    run_script("local short <close> = open 'short' assert(keys(short) == 'k')");
    world_stop_at_once();
}
END_TEST

START_TEST(a_file_without_a_page_that_it_needs_is_damaged)
{
    world_start_at_once();
    run_script(cut);
    run_script("local short = open('short', {sync = 'none'})\n"
               "assert(short:put('large', ('x'):rep(1 << 20)) and short:put('k', 'w'))\n"
               "stats = short:stats() short:close()\n"
               "for _, pages in ipairs{1, 200, stats.file_pages - 2} do\n"
               "    shorten(pages) fails(117, store.open(at 'short')) end");
    world_stop_at_once();
}
END_TEST

START_TEST(a_file_without_its_list_of_free_pages_is_damaged)
{
    world_start_at_once();
    run_script(cut);
    run_script("local short = open('short', {sync = 'none'})\n"
               "for i = 1, 3 do assert(short:write(function(txn)\n"
               "    for k = 1, 300 do txn:put(i .. '-' .. k, ('v'):rep(900)) end end)) end\n"
               "assert(short:write(function(txn)\n"
               "    for i = 2, 3 do for k = 1, 300 do txn:del(i .. '-' .. k) end end end))\n"
               "for i = 1, 3 do assert(short:put('x', 'y')) end\n"
               "stats = short:stats() short:close()\n"
               "local refused = 0\n"
               "for pages = 1, stats.file_pages - 3, 3 do\n"
               "    shorten(pages)\n"
               "    local opened, why, code = store.open(at 'short')\n"
               "    if opened then opened:close() else refused = refused + 1 end\n"
               "    assert(opened or code == 117, why)\n"
               "end\n"
               "assert(refused > 10)");
    world_stop_at_once();
}
END_TEST

/* ---- Blocks for the locks ---- */

static const struct {
    int error;
    const char *script;
} blocks[] = {
    {EINTR, "open 'b':close()"},
    {EOPNOTSUPP, "open 'b':close()"},
    {ENOSYS, "open 'b':close()"},
    {ENOSPC, "fails(28, store.open(at 'b')) assert(not io.open(at 'b'))"},
};

START_TEST(a_disk_gives_blocks_or_says_why_not)
{
    world_start_at_once();
    fake_os_fail(FAKE_FALLOCATE, 1, 1, blocks[_i].error);
    run_script(blocks[_i].script);
    ck_assert_uint_eq(fake_os_injected(), 1);
    fake_os_reset();
    run_script("open 'b':close()");
    world_stop_at_once();
}
END_TEST

START_TEST(more_blocks_are_given_to_a_larger_file_of_locks)
{
    world_start_at_once();
    run_script("open('b', {readers = 5000}):close() open 'b':close()\n"
               "local locks = io.open(at 'b-lock') assert(locks:seek 'end' == 64 * 5002)\n"
               "locks:close()");
    world_stop_at_once();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("store-faults");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_loop_test(c, each_call_of_lmdb_fails_in_turn, 0, 4 * CALLS);
    tcase_add_loop_test(c, without_memory_of_lua_a_call_fails_and_the_next_works, 0, CALLS);
    tcase_add_loop_test(c, without_memory_of_the_system_a_call_fails_and_the_next_works, 0, CALLS);
    tcase_add_loop_test(c, what_the_system_refuses_fails_and_the_next_call_works, 0, CALLS);
    tcase_add_test(c, without_memory_the_module_is_not_opened);
    tcase_add_test(c, without_a_word_of_forks_the_module_is_not_opened);
    tcase_add_loop_test(c, failures_are_told, 0, sizeof(failures) / sizeof(failures[0]));
    tcase_add_test(c, without_memory_a_larger_map_is_not_adopted);
    tcase_add_test(c, a_store_without_a_map_fails_until_it_is_opened_again);
    tcase_add_test(c, a_descriptor_without_status_is_no_store);
    tcase_add_test(c, a_file_without_its_last_free_page_is_whole);
    tcase_add_test(c, a_file_without_a_page_that_it_needs_is_damaged);
    tcase_add_test(c, a_file_without_its_list_of_free_pages_is_damaged);
    tcase_add_loop_test(c, a_disk_gives_blocks_or_says_why_not, 0,
                        sizeof(blocks) / sizeof(blocks[0]));
    tcase_add_test(c, more_blocks_are_given_to_a_larger_file_of_locks);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
