/* SPDX-License-Identifier: MIT
 *
 * require "sxe.dict". The other process is played by C code, which has the dict opened once more.
 */
#include "lua-file-world.h"

#include <math.h>

#include "fake-os.h"
#include "sxe-dict.h"
#undef SXE_LOG_CONTROL
#include "sxe-pool-sharing-private.h"

#define OPEN                                                                              \
    "local task, world, dict = require 'sxe.task', require 'world', require 'sxe.dict'\n" \
    "local say, path, peer = world.say, arg[1], require 'peer'\n"                         \
    "local function fails(text, f, ...) local done, why = pcall(f, ...)\n"                \
    "    assert(not done and why:find(text, 1, true), why) end\n"                         \
    "local function refuses(text, code, result, why, got)\n"                              \
    "    assert(result == nil and why:find(text, 1, true) and got == code, why) end\n"    \
    "local function sorted(...) local all = {}\n"                                         \
    "    for key, value in ... do all[#all + 1] = key .. '=' .. value end\n"              \
    "    table.sort(all) return table.concat(all, ' ') end\n"
#define OWN          OPEN "local d = dict.open{name = 'd', cells = 16}\n"
#define FILE_OPTIONS "name = 'd', cells = 16, file = path"
#define SHARED       OPEN "local d = assert(dict.open{" FILE_OPTIONS "})\n"

static SXE_DICT *other;

/* ---- Functions of the test that scripts call ---- */

static struct sxe__pool_header *
cells(void)
{
    return sxe__pool_header(sxe_dict_get_pool(other));
}

/* peer.open(): open the dict as another process. */
static int
l_open(lua_State *L)
{
    const SXE_DICT_SPEC spec = {.file = path};
    char why[SXE_POOL_WHY_SIZE] = "";

    SXE_UNUSED_PARAMETER(L);
    other = sxe_dict_open(&spec, why);
    ck_assert_msg(other != NULL, "%s", why);
    return 0;
}

static int
l_lock(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    ck_assert_uint_eq(sxe__pool_lock_shard(cells(), 0), SXE_POOL_LOCK_TAKEN);
    return 0;
}

static int
l_unlock(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    sxe__pool_unlock_shard(cells(), 0);
    return 0;
}

/* peer.put(key, value): put an entry as another process. */
static int
l_put(lua_State *L)
{
    size_t key_size, size;
    const char *key = luaL_checklstring(L, 1, &key_size);
    const char *value = luaL_checklstring(L, 2, &size);

    ck_assert_int_eq(sxe_dict_put(other, key, key_size, value, size, SXE_DICT_FOREVER), 0);
    return 0;
}

/* peer.wreck(): damage all links of the cells. */
static int
l_wreck(lua_State *L)
{
    struct sxe__pool_node *nodes = cells()->sharing->nodes;

    SXE_UNUSED_PARAMETER(L);
    for (unsigned i = 0; i < cells()->number; i++)
        nodes[i].state = 77;
    memset(sxe_dict_get_pool(other), 0x77, 16 * 256);
    return 0;
}

/* peer.calloc(nth), peer.malloc(nth): let the nth call fail. */
static int
l_calloc(lua_State *L)
{
    fake_os_fail(FAKE_CALLOC, (unsigned)luaL_checkinteger(L, 1), 1, ENOMEM);
    return 0;
}

static int
l_malloc(lua_State *L)
{
    fake_os_fail(FAKE_MALLOC, (unsigned)luaL_checkinteger(L, 1), 1, ENOMEM);
    return 0;
}

static const luaL_Reg peer_functions[] = {
    {"open", l_open},   {"lock", l_lock},     {"unlock", l_unlock}, {"put", l_put},
    {"wreck", l_wreck}, {"calloc", l_calloc}, {"malloc", l_malloc}, {NULL, NULL}};

/* ---- A state with a file ---- */

static void
close_other(void)
{
    fake_os_reset();
    sxe_dict_close(other);
    other = NULL;
}

/* Run a script in a state without a loop, in which a script that waits would never continue. */
static void
check_script(const char *text)
{
    begin_file_state(peer_functions);
    run_script(text);
    ck_assert_int_eq(sxe_lua_loaded(lua), 0);
    end_file_state();
    close_other();
}

static void
check(const struct story *story)
{
    begin_file_world(peer_functions);
    run_story(story);
    end_file_world();
    close_other();
}

/* ---- One entry ---- */

START_TEST(values_are_kept)
{
    check_script(OWN
                 "assert(d.name == 'd' and d.found == 'created' and #d == 0 and d.none == nil)\n"
                 "assert(d:get 'a' == nil and d:put('a', 'one') and d:get 'a' == 'one')\n"
                 "assert(d:put('a', '') and d:get 'a' == '' and d:put('', 'x\\0y'))\n"
                 "assert(d:get '' == 'x\\0y' and d:peek '' == 'x\\0y' and d:count() == 2)\n"
                 "assert(d:put(7, 8) and d:get '7' == '8')\n"
                 "local long = ('0123456789'):rep(150)\n"
                 "assert(d:put('a', long) and d:get 'a' == long and d:peek 'a' == long)\n"
                 "assert(d:remove 'a' and not d:get 'a' and d:remove 'a' == false)\n"
                 "assert(d:check())");
}
END_TEST

START_TEST(values_are_compared_before_they_are_put)
{
    check_script(OWN "assert(d:cas('a', nil, 'one') and d:cas('a', nil, 'two') == false)\n"
                     "assert(d:cas('a', 'two', 'three') == false and d:cas('a', 'one', 'two', 9))\n"
                     "assert(d:get 'a' == 'two' and d:ttl 'a' <= 9)");
}
END_TEST

START_TEST(counters_count)
{
    check_script(OWN "assert(d:counter 'a' == nil)\n"
                     "assert(d:add 'a' == 1 and d:add('a', 5) == 6 and d:add('a', -7) == -1)\n"
                     "assert(d:counter 'a' == -1 and d:add('b', 1, 10) == 1 and d:ttl 'b' <= 10)\n"
                     "d:put('text', 'x')\n"
                     "refuses('the value is no counter', 33, d:counter 'text')\n"
                     "refuses('the value is no counter', 33, d:add 'text')\n"
                     "assert(d:add('c', math.maxinteger) == math.maxinteger)\n"
                     "refuses('the sum does not fit 64 bits', 75, d:add 'c')\n"
                     "assert(d:counter 'c' == math.maxinteger)");
}
END_TEST

START_TEST(entries_expire)
{
    static const struct story story = {
        OWN "d:put('a', 'one', 10) d:put('b', 'two') say(d:ttl 'b' == math.huge, d:ttl 'none')\n"
            "task.sleep(4) say(d:ttl 'a' <= 6.1, d:get 'a') d:expire('a', 20) task.sleep(10)\n"
            "say(d:get 'a') d:expire('a', math.huge) task.sleep(100) say(d:get 'a')\n"
            "say(d:expire('b', 1), d:expire('none', 1)) task.sleep(2) say(d:get 'b')",
        "true nil;true one;one;one;true false;nil;"};

    check(&story);
}
END_TEST

START_TEST(the_oldest_makes_room)
{
    check_script(OPEN "local d = dict.open{name = 'd', cells = 4, evicts = true, cell_size = 128}\n"
                      "for i = 1, 4 do d:put(i, 'x') end\n"
                      "assert(d:touch(1) and d:get(2) and d:mark(3, 'pinned'))\n"
                      "assert(d:touch 'none' == false and d:mark('none', 'live') == false)\n"
                      "d:put(5, 'x') assert(d:get(3) and d:get(1) and not d:get(4))\n"
                      "fails('invalid option', d.mark, d, 1, 'odd')");
}
END_TEST

START_TEST(what_cannot_be_done_is_told)
{
    check_script(OPEN
                 "local d = dict.open{name = 'd', cells = 4, cell_size = 128}\n"
                 "for i = 1, 4 do assert(d:put(i, 'x')) end\n"
                 "refuses('there is no room', 28, d:put(5, 'x'))\n"
                 "refuses('more than the dict has room for', 27, d:put(1, ('x'):rep(10000)))\n"
                 "refuses('the key is too long', 22, d:get(('k'):rep(70000)))\n"
                 "fails('seconds to live expected', d.put, d, 1, 'x', 0)\n"
                 "fails('seconds to live expected', d.put, d, 1, 'x', '1')\n"
                 "fails('seconds to live expected', d.put, d, 1, 'x', 0 / 0)\n"
                 "fails('string expected', d.put, d, 1) fails('string expected', d.get, d, {})\n"
                 "fails('sxe.dict expected', d.get, {}, 'a')");
}
END_TEST

/* ---- Opening ---- */

static const struct {
    const char *options;
    const char *message;
} wrong[] = {
    {"", "cells: 1 to 1073741824 cells expected"},
    {"cells = 0", "cells: 1 to 1073741824 cells expected"},
    {"cells = 1", "the name of the dict expected, got nil"},
    {"cells = 1, name = 'd', evict = true", "dict.open has no option 'evict'"},
    {"cells = 1, name = 'd', cell_size = 65537", "cell_size: 1 to 65536 bytes expected"},
    {"cells = 1, name = 'd', cell_size = 100", "100"},
    {"cells = 1, name = 'd', shards = 65", "shards: 1 to 64 shards expected"},
    {"file = arg[1], evicts = true",
     "evicts: without 'cells', what is in the file is taken as it is"},
    {"cells = 1, name = 'd', file = 1", "file: a path, or a name expected"},
};

START_TEST(what_is_wrong_is_told)
{
    char text[200];

    begin_file_state(peer_functions);
    snprintf(text, sizeof(text), "require 'sxe.dict'.open{%s}", wrong[_i].options);
    fails_with(text, wrong[_i].message);
    end_file_state();
}
END_TEST

START_TEST(a_file_is_shared_and_stays)
{
    check_script(SHARED "assert(d.found == 'created') d:put('a', 'one')\n"
                        "local e = assert(dict.open{file = path})\n"
                        "assert(e.found == 'joined' and e.name == 'd' and e:get 'a' == 'one')\n"
                        "peer.open() peer.put('a', 'two') assert(d:get 'a' == 'two')\n"
                        "refuses('', 2, dict.open{file = path .. '2'})\n"
                        "refuses('', 17, dict.open{file = path, name = 'd', cells = 32})\n"
                        "assert(dict.open{name = 'm', cells = 2, shared = true}:put('a', 'b'))\n"
                        "assert(dict.open{file = path, repair = true}:get 'a' == 'two')");
}
END_TEST

/* A bit of a value changes in the file: while it is closed by all, and while it is open. */
START_TEST(a_value_that_changed_in_the_file_is_not_served)
{
    check_script(
        OPEN
        "local function spoil()\n"
        "  local f = assert(io.open(path, 'r+b')) local at = f:read 'a':find('needle', 1, true)\n"
        "  f:seek('set', at - 1) f:write 'noodle' f:close() end\n"
        "local d = assert(dict.open{file = path, name = 'd', cells = 20})\n"
        "d:put('a', 'needle') d:close() spoil()\n"
        "refuses('its sum is another', 117, dict.open{file = path})\n"
        "d = assert(dict.open{file = path, verified = false})\n"
        "assert(d:get 'a' == 'noodle') d:put('a', 'needle') d:close()\n"
        "for _, verified in ipairs{true, false} do\n"
        "  d = assert(dict.open{file = path, verified = verified}) spoil()\n"
        "  if verified then refuses('damaged', 117, d:get 'a')\n"
        "  else assert(d:get 'a' == 'noodle') end\n"
        "  d:put('a', 'needle') d:close() end\n");
}
END_TEST

/* Each open dict is a user of the file, which allows 128. There are so many other objects that the
 * collector does not reach the dicts by itself. */
START_TEST(dicts_that_were_forgotten_are_closed_where_another_has_no_room)
{
    check_script(SHARED "local much = {} for i = 1, 100000 do much[i] = {} end\n"
                        "collectgarbage()\n"
                        "for i = 1, 300 do assert(dict.open{file = path}) end\n"
                        "local kept = {}\n"
                        "repeat kept[#kept + 1] = dict.open{file = path} until #kept == 127\n"
                        "refuses('128 processes use it', 87, dict.open{file = path})");
}
END_TEST

START_TEST(dicts_are_gone_with_the_state)
{
    begin_file_state(peer_functions);
    run_script("d = 1 kept = setmetatable({}, {__gc = function()\n"
               "    assert(select(2, pcall(d.get, d, 'a')):find 'the dict is closed')\n"
               "    assert(select(2, pcall(s.get, s, 'a')):find 'the snapshot is closed') end})\n"
               "s = 1");
    run_script("d = require 'sxe.dict'.open{name = 'd', cells = 2} s = d:snapshot()");
    captured.number = 0;
    end_file_state();
    ck_assert_msg(captured.number == 0, "%s", log_line(0));
}
END_TEST

START_TEST(without_memory_none_is_opened)
{
    uint64_t after = 0;

    begin_file_state(peer_functions);
    while (runs_out_of_memory("local d = require 'sxe.dict'.open{name = 'd', cells = 2}\n"
                              "d:put('a', 'b') for k, v in d:each() do d:remove(k) end\n"
                              "d:batch{a = 'b'} local s <close> = d:snapshot()",
                              after++))
        run_script("package.loaded['sxe.dict'] = nil");
    end_file_state();
}
END_TEST

/* ---- To the disk ---- */

START_TEST(a_dict_is_synced)
{
    check_script(SHARED "assert(d:sync() == true)\n"
                        "refuses('there is no file', 22, dict.open{name = 'd', cells = 2}:sync())\n"
                        "d:close() fails('the dict is closed', d.sync, d)");
}
END_TEST

/* ---- Metrics ---- */

START_TEST(stats_are_counts)
{
    check_script(
        OWN "d:put('a', 'one') d:get 'a' d:peek 'a' d:get 'b' d:ttl 'a' d:put('c', '1', 1e-9)\n"
            "assert(d:get 'c' == nil)\n"
            "local s = d:stats()\n"
            "assert(s.hits == 3 and s.misses == 2 and s.evictions == 0 and\n"
            "       s.expirations == 1)\n"
            "local c = d:chains()\n"
            "assert(c.buckets == 16 and c.used == 1 and c.versions == 1 and c.longest == 1)\n"
            "d:close() fails('the dict is closed', d.stats, d)");
}
END_TEST

START_TEST(chains_of_a_locked_dict_are_busy)
{
    check_script(OPEN "local d = assert(dict.open{name = 'd', cells = 16, file = path, wait = 0})\n"
                      "peer.open() peer.lock() refuses('busy', 11, d:chains()) peer.unlock()\n"
                      "assert(d:chains().longest == 0)");
}
END_TEST

/* ---- All entries ---- */

START_TEST(all_entries_are_met)
{
    check_script(OWN
                 "for i = 1, 5 do d:put('k' .. i, i) end d:mark('k3', 'dirty')\n"
                 "assert(sorted(d:each()) == 'k1=1 k2=2 k3=3 k4=4 k5=5')\n"
                 "for key, value, ttl, state in d:each() do\n"
                 "    assert(ttl == math.huge and state == (key == 'k3' and 'dirty' or 'live'))\n"
                 "    d:remove(key) end\n"
                 "assert(sorted(d:each()) == '')\n"
                 "local e = dict.open{name = 'e', cells = 16, cell_size = 1024}\n"
                 "local key, value = ('k'):rep(600), ('v'):rep(3000)\n"
                 "e:put(key, value) e:put('a', 'b')\n"
                 "assert(sorted(e:each()) == 'a=b ' .. key .. '=' .. value)");
}
END_TEST

/* ---- Batches ---- */

START_TEST(a_batch_is_done_at_once)
{
    check_script(OWN "d:put('old', 'x') assert(d:batch{a = 'one', b = 2, old = false})\n"
                     "assert(sorted(d:each()) == 'a=one b=2')\n"
                     "assert(d:batch({c = 'three'}, 10) and d:ttl 'c' <= 10)\n"
                     "local kept\n"
                     "assert(d:batch(function(b) kept = b b:put('a', 'two', 5) b:remove 'b' end))\n"
                     "assert(sorted(d:each()) == 'a=two c=three' and d:ttl 'a' <= 5)\n"
                     "fails('the batch is over', kept.put, kept, 'a', 'b')\n"
                     "fails('oh', d.batch, d, function(b) b:remove 'a' error 'oh' end)\n"
                     "assert(d:get 'a' == 'two')");
}
END_TEST

START_TEST(a_batch_is_done_only_if_its_conditions_hold)
{
    check_script(OWN
                 "d:put('a', 'one')\n"
                 "local function change(a, b)\n"
                 "    return d:batch(function(batch) batch:expect('a', a) batch:expect('b', b)\n"
                 "        batch:put('a', 'two') batch:put('c', 'three') end) end\n"
                 "assert(change('two') == false and change(nil) == false)\n"
                 "assert(change('one', 'x') == false and sorted(d:each()) == 'a=one')\n"
                 "assert(change('one') == true and sorted(d:each()) == 'a=two c=three')\n"
                 "fails('the key is too long', d.batch, d, function(b)\n"
                 "    b:expect(('k'):rep(70000)) end)\n"
                 "fails('string expected', d.batch, d, function(b) b:expect('a', {}) end)");
}
END_TEST

/* The batch is closed by a <close> variable of the script, or with its dict. */
START_TEST(a_batch_that_was_closed_is_not_done)
{
    check_script(OWN "d:put('a', 'one')\n"
                     "fails('the batch is over: it was closed before', d.batch, d, function(b)\n"
                     "    b:put('a', 'two') local early <close> = b end)\n"
                     "fails('the batch is over', d.batch, d, function(b)\n"
                     "    do local early <close> = b end b:put('a', 'two') end)\n"
                     "assert(d:get 'a' == 'one' and d:batch{a = 'two'} and d:get 'a' == 'two')\n"
                     "local close = debug.getmetatable(d).__gc\n"
                     "fails('the dict is closed', d.batch, d, function(b) close(d) end)\n"
                     "d = dict.open{name = 'd', cells = 16}\n"
                     "fails('the dict is closed', d.batch, d, function(b)\n"
                     "    close(d) b:put('a', 'b') end)");
}
END_TEST

/* The dict's memory stays until its last snapshot is closed. */
START_TEST(snapshots_of_a_dict_that_is_closed_refuse)
{
    check_script(OWN "d:put('a', 'one') local s, t = d:snapshot(), d:snapshot()\n"
                     "local walk, past = d:each(), s:each()\n"
                     "debug.getmetatable(d).__gc(d)\n"
                     "fails('the dict is closed', d.get, d, 'a')\n"
                     "fails('the dict is closed', d.snapshot, d)\n"
                     "fails('the dict is closed', s.get, s, 'a')\n"
                     "fails('the dict is closed', s.each, s)\n"
                     "fails('the dict is closed', walk) fails('the dict is closed', past)\n"
                     "s:close() s:close() fails('the snapshot is closed', past)\n"
                     "fails('the dict is closed', t.get, t, 'a') t:close()");
}
END_TEST

START_TEST(what_a_batch_cannot_do_is_told)
{
    check_script(OPEN
                 "local d = dict.open{name = 'd', cells = 4, cell_size = 128}\n"
                 "fails('a table or a function expected', d.batch, d)\n"
                 "fails('keys are strings', d.batch, d, {'a'})\n"
                 "fails('values are strings, or false', d.batch, d, {a = {}})\n"
                 "fails('values are strings, or false', d.batch, d, {a = true})\n"
                 "fails('the key is too long', d.batch, d, {[('k'):rep(70000)] = 'x'})\n"
                 "fails('a batch has at most 1024', d.batch, d, function(b)\n"
                 "    for i = 1, 1025 do b:put(i, 'x') end end)\n"
                 "local function five(b) for i = 1, 5 do b:put(i, 'x') end end\n"
                 "refuses('more than the dict has room for', 27, d:batch(five)) assert(#d == 0)\n"
                 "for i = 1, 3 do d:put(i, 'x') end\n"
                 "refuses('there is no room', 28, d:batch{a = 'b', c = 'd'}) assert(#d == 3)\n"
                 "peer.calloc(1) fails('not enough memory', d.batch, d, {a = 'b'})\n"
                 "peer.malloc(1) fails('Cannot allocate memory', d.batch, d, {a = 'b'})");
}
END_TEST

START_TEST(a_dict_is_closed_by_a_call_or_with_its_scope)
{
    check_script(
        OWN "d:put('a', 'one') d:close() d:close() fails('the dict is closed', d.get, d, 'a')\n"
            "fails('the dict is closed', function() return d.name end)\n"
            "fails('the dict is closed', function() return #d end)\n"
            "local e\n"
            "do local f <close> = dict.open{name = 'd', cells = 16} e = f f:put('a', 'b') end\n"
            "fails('the dict is closed', e.put, e, 'a', 'c')");
}
END_TEST

/* An allocation in a call may run a finalizer that closes the dict of this call. */
START_TEST(a_finalizer_may_close_the_dict_of_a_call)
{
    static const char *const calls[] = {
        "d.get, d, 'a'",
        "d.put, d, 5, 6",
        "d.cas, d, 7, nil, 8",
        "d.batch, d, {a = 5}",
        "d.snapshot, d",
        "d.add, d, 12",
        "s.get, s, 'a'",
        "function() return d:each()() end",
        "function() return s:each()() end",
        "d.each, d",
        "s.each, s",
        "d.ttl, d, 1.5",
    };
    char script[1024];

    snprintf(script, sizeof(script),
             OWN "d:put('a', ('x'):rep(3000))\n"
                 "local s = d:snapshot()\n"
                 "local function call() return pcall(%s) end\n"
                 "setmetatable({}, {__gc = function() d:close() end})\n"
                 "local ok, why repeat ok, why = call() local more = {{}, {}, {}}\n"
                 "    if type(why) == 'userdata' and why ~= s then why:close() end until not ok\n"
                 "assert(why:find 'the dict is closed', why)",
             calls[_i]);
    check_script(script);
}
END_TEST

/* ---- Snapshots ---- */

START_TEST(a_snapshot_stays_as_it_was)
{
    check_script(OWN "d:put('a', 'one') d:put('b', 'two')\n"
                     "do local s <close> = d:snapshot()\n"
                     "    d:put('a', 'new') d:remove 'b' d:put('c', 'three')\n"
                     "    assert(s:get 'a' == 'one' and s:get 'b' == 'two' and not s:get 'c')\n"
                     "    assert(sorted(s:each()) == 'a=one b=two')\n"
                     "    assert(sorted(d:each()) == 'a=new c=three') end\n"
                     "local s = d:snapshot() local walk = s:each() s:close() s:close()\n"
                     "fails('the snapshot is closed', s.get, s, 'a') fails('is closed', walk)");
}
END_TEST

START_TEST(snapshots_that_were_forgotten_are_over_where_another_has_no_room)
{
    check_script(OWN "for i = 1, 100 do assert(d:snapshot()) end");
}
END_TEST

START_TEST(a_snapshot_ends_where_there_is_no_room)
{
    check_script(OPEN "local d = dict.open{name = 'd', cells = 4}\n"
                      "d:put('a', 'one') local s = d:snapshot() local walk = s:each()\n"
                      "for _, key in ipairs{'a', 'b', 'c', 'd'} do assert(d:put(key, 'x')) end\n"
                      "refuses('the snapshot is over', 116, s:get 'a')\n"
                      "fails('the snapshot is over', walk)\n"
                      "local many = {} for i = 1, 16 do many[i] = d:snapshot() end\n"

                      "refuses('16 snapshots are in use', 87, d:snapshot())");
}
END_TEST

/* ---- Locks ---- */

START_TEST(outside_of_a_task_a_lock_is_waited_for_a_little)
{
    check_script(
        SHARED "d:put('a', 'one') local s, walk = d:snapshot(), d:each() peer.open() peer.lock()\n"
               "refuses('busy', 11, d:get 'a') refuses('busy', 11, d:put('a', 'b'))\n"
               "refuses('busy', 11, d:ttl 'a') refuses('busy', 11, d:add 'a')\n"
               "refuses('busy', 11, d:batch{a = 'b'}) refuses('busy', 11, d:snapshot())\n"
               "refuses('busy', 11, s:get 'a') refuses('busy', 11, d:check())\n"
               "fails('busy', walk) peer.unlock() assert(d:get 'a' == 'one')");
}
END_TEST

START_TEST(how_long_calls_wait_may_be_said)
{
    check_script(
        OPEN
        "fails('wait: 0 to 60 seconds expected', dict.open, {name = 'd', cells = 9, wait = 99})\n"
        "local d = assert(dict.open{wait = 0, " FILE_OPTIONS "}) d:put('a', 'one')\n"
        "local s, walk = d:snapshot(), d:each() peer.open() peer.lock()\n"
        "refuses('busy', 11, d:get 'a') refuses('busy', 11, s:get 'a') fails('busy', walk)\n"
        "peer.unlock()");
}
END_TEST

#define LOCKED \
    SHARED "d:put('a', 'one') local s = d:snapshot() peer.open() task.sleep(0) peer.lock() "
#define FREED "task.start(function() task.sleep(0) peer.unlock() end) "

static const struct story locked[] = {
    {LOCKED FREED "say(d:get 'a')", "one;"},
    {LOCKED FREED "say(d:batch{a = 'two'}) say(d:get 'a', s:get 'a')", "true;two one;"},
    {LOCKED FREED "say(s:get 'a')", "one;"},
    {LOCKED FREED "say(d:check())", "true;"},
    {LOCKED FREED "local t = d:snapshot() say(t:get 'a')", "one;"},
    {LOCKED FREED "for k, v in d:each() do say(k, v) end", "a one;"},
    /* The function of a batch may wait, too. */
    {SHARED "say(d:batch(function(b) b:put('a', 'x') task.sleep(1) b:put('b', 'y') end))\n"
            "say(sorted(d:each()))",
     "true;a=x b=y;"},
    /* In a cancelled task each call returns "cancelled". */
    {LOCKED "local walk = d:each()\n"
            "for _, f in ipairs{function() return d:get 'a' end,\n"
            "    function() return d:batch{a = 'two'} end, function() return d:snapshot() end,\n"
            "    function() return s:get 'a' end, function() return pcall(walk) end} do\n"
            "    local t = task.start(function() say(f()) end)\n"
            "    task.sleep(0) t:cancel() t:join() end peer.unlock() say(d:get 'a')",
     "nil cancelled;nil cancelled;nil cancelled;nil cancelled;false cancelled;one;"},
};

START_TEST(a_task_tries_again_later)
{
    check(&locked[_i]);
}
END_TEST

START_TEST(damage_is_told)
{
    check_script(SHARED "d:put('a', 'one') peer.open() peer.wreck()\n"
                        "refuses('the dict is damaged', 117, d:get 'a')\n"
                        "refuses('', 117, d:check())\n"
                        "fails('the dict is damaged', d:each())");
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-dict");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, values_are_kept);
    tcase_add_test(c, values_are_compared_before_they_are_put);
    tcase_add_test(c, counters_count);
    tcase_add_test(c, entries_expire);
    tcase_add_test(c, the_oldest_makes_room);
    tcase_add_test(c, what_cannot_be_done_is_told);
    tcase_add_loop_test(c, what_is_wrong_is_told, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(c, a_file_is_shared_and_stays);
    tcase_add_test(c, a_value_that_changed_in_the_file_is_not_served);
    tcase_add_test(c, dicts_that_were_forgotten_are_closed_where_another_has_no_room);
    tcase_add_test(c, dicts_are_gone_with_the_state);
    tcase_add_test(c, without_memory_none_is_opened);
    tcase_add_test(c, a_dict_is_synced);
    tcase_add_test(c, stats_are_counts);
    tcase_add_test(c, chains_of_a_locked_dict_are_busy);
    tcase_add_test(c, all_entries_are_met);
    tcase_add_test(c, a_batch_is_done_at_once);
    tcase_add_test(c, a_batch_is_done_only_if_its_conditions_hold);
    tcase_add_test(c, a_batch_that_was_closed_is_not_done);
    tcase_add_test(c, snapshots_of_a_dict_that_is_closed_refuse);
    tcase_add_test(c, a_dict_is_closed_by_a_call_or_with_its_scope);
    tcase_add_loop_test(c, a_finalizer_may_close_the_dict_of_a_call, 0, 12);
    tcase_add_test(c, what_a_batch_cannot_do_is_told);
    tcase_add_test(c, a_snapshot_stays_as_it_was);
    tcase_add_test(c, snapshots_that_were_forgotten_are_over_where_another_has_no_room);
    tcase_add_test(c, a_snapshot_ends_where_there_is_no_room);
    tcase_add_test(c, outside_of_a_task_a_lock_is_waited_for_a_little);
    tcase_add_test(c, how_long_calls_wait_may_be_said);
    tcase_add_loop_test(c, a_task_tries_again_later, 0, sizeof(locked) / sizeof(locked[0]));
    tcase_add_test(c, damage_is_told);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
