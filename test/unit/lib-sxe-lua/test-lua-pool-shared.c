/* SPDX-License-Identifier: MIT
 *
 * require "sxe.pool": shared pools. The other process is played by C code, which has the pool
 * opened once more as another user.
 */
#include "lua-file-world.h"

#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fake-os.h"
#undef SXE_LOG_CONTROL
#include "sxe-pool-sharing-private.h"

/* An element as a C program declares it. */
struct job {
    uint64_t hits;
    uint8_t kind;
    char name[10];
    double weight;
};

enum { FREE, READY, BUSY, STATES };

#define FIELDS "u64 hits, u8 kind, char[10] name, f64 weight"
#define SHAPE  "name = 'jobs', count = 4, states = {'FREE', 'READY', 'BUSY'}, fields = '" FIELDS "'"
#define OPEN                                                                              \
    "local task, world, pool = require 'sxe.task', require 'world', require 'sxe.pool'\n" \
    "local say, path = world.say, arg[1]\n"                                               \
    "local function fails(text, f, ...) local done, why = pcall(f, ...)\n"                \
    "    assert(not done and why:find(text, 1, true), why) end\n"
#define JOBS OPEN "local p = assert(pool.open{file = path, " SHAPE "})\n"

static struct job *jobs;

static const SXE_POOL_SPEC *
spec(void)
{
    static SXE_POOL_SPEC jobs_spec = {.name = "jobs",
                                      .number = 4,
                                      .element_size = sizeof(struct job),
                                      .states = STATES,
                                      .file = path,
                                      .state_names = "FREE READY BUSY",
                                      .fields = FIELDS};

    return &jobs_spec;
}

static void *
open_peer(const SXE_POOL_SPEC *wanted)
{
    char why[SXE_POOL_WHY_SIZE] = "";
    void *array = sxe_pool_open(wanted, why);

    ck_assert_msg(array != NULL, "%s", why);
    return array;
}

/* ---- Functions of the test that scripts call ---- */

/* peer.lock(shard), peer.unlock(shard): take or release the lock as another process. */
static int
l_lock(lua_State *L)
{
    ck_assert_uint_eq(
        sxe__pool_lock_shard(sxe__pool_header(jobs), (uint32_t)luaL_optinteger(L, 1, 0)),
        SXE_POOL_LOCK_TAKEN);
    return 0;
}

static int
l_unlock(lua_State *L)
{
    sxe__pool_unlock_shard(sxe__pool_header(jobs), (uint32_t)luaL_optinteger(L, 1, 0));
    return 0;
}

/* peer.put(): move a job to READY as a C program does. */
static int
l_put(lua_State *L)
{
    unsigned id = sxe_pool_take(jobs, FREE, BUSY);

    sxe_pool_write_element(jobs, id, &(struct job){7, 1, "c", 0.5});
    ck_assert_uint_eq(sxe_pool_move(jobs, id, BUSY, READY), 0);
    lua_pushinteger(L, id);
    return 1;
}

/* peer.tear(id): leave the element as a writer that was killed. */
static int
l_tear(lua_State *L)
{
    sxe__pool_header(jobs)->sharing->nodes[luaL_checkinteger(L, 1)].sequence |= 1;
    return 0;
}

static int
l_wreck(lua_State *L)
{
    struct sxe__pool_node *node = &sxe__pool_header(jobs)->sharing->nodes[luaL_checkinteger(L, 1)];

    node->state = 77;
    node->next = 0x12345678;
    return 0;
}

/* peer.mislead(i): damage the links of node i. */
static int
l_mislead(lua_State *L)
{
    sxe__pool_header(jobs)->sharing->nodes[luaL_checkinteger(L, 1)].next = 0x12345678;
    return 0;
}

/* peer.count(n): set the list's count of READY elements, as if it had changed meanwhile. */
static int
l_count_ready(lua_State *L)
{
    sxe__pool_header(jobs)->sharing->nodes[4 + READY].count = (uint32_t)luaL_checkinteger(L, 1);
    return 0;
}

/* peer.forget(): from now on no process is told of new elements in a watched state. */
static int
l_forget(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    sxe__pool_header(jobs)->sharing->head->watching = 0;
    return 0;
}

static int
l_watched(lua_State *L)
{
    const struct sxe__pool_head *head = sxe__pool_header(jobs)->sharing->head;
    uint64_t watched = 0;

    for (unsigned slot = 0; slot < SXE_POOL_SLOTS; slot++)
        watched |= head->slots[slot].watched;
    lua_pushinteger(L, (lua_Integer)watched);
    return 1;
}

static const luaL_Reg peer_functions[] = {{"lock", l_lock},       {"unlock", l_unlock},
                                          {"put", l_put},         {"tear", l_tear},
                                          {"wreck", l_wreck},     {"watched", l_watched},
                                          {"forget", l_forget},   {"count", l_count_ready},
                                          {"mislead", l_mislead}, {NULL, NULL}};

/* ---- A state with a file ---- */

static void
close_jobs(void)
{
    sxe_pool_delete(jobs);
    jobs = NULL;
}

static void
check(const struct story *story)
{
    begin_file_world(peer_functions);
    jobs = open_peer(spec());
    run_story(story);
    end_file_world();
    close_jobs();
}

/* Run a script in a state without a loop. */
static void
check_script(const char *text)
{
    static char whole[8000];

    begin_file_state(peer_functions);
    jobs = open_peer(spec());
    snprintf(whole, sizeof(whole), JOBS "local peer = require 'peer'\n%s", text);
    run_script(whole);
    ck_assert_int_eq(sxe_lua_loaded(lua), 0);
    end_file_state();
    close_jobs();
}

/* ---- Sharing ---- */

START_TEST(c_and_lua_agree_on_the_layout)
{
    struct job job;

    begin_file_world(peer_functions);
    ck_assert_str_eq(run_world(JOBS
                               "local j = p:take('FREE', 'READY')\n"
                               "j.hits, j.kind, j.name, j.weight = 5, 255, 'ten bytes.', -0.25\n"
                               "say(#p, p.name, p.found)"),
                     "4 jobs created;");
    jobs = open_peer(spec());
    ck_assert_uint_eq(sxe_pool_get_state(jobs, 0), READY);
    ck_assert_int_eq(sxe_pool_read_element(jobs, 0, &job), 0);
    ck_assert_uint_eq(job.hits, 5);
    ck_assert_uint_eq(job.kind, 255);
    ck_assert_mem_eq(job.name, "ten bytes.", 10);
    ck_assert(job.weight == -0.25);
    end_file_world();
    close_jobs();
}
END_TEST

START_TEST(a_file_says_itself_what_it_is)
{
    static const struct story story = {OPEN
                                       "require('peer').put()\n"
                                       "local p = assert(pool.open{file = path})\n"
                                       "local j = p:oldest 'READY'\n"
                                       "say(p.name, #p, p.found, p:count 'FREE', p:count 'BUSY')\n"
                                       "say(j.index, j.hits, j.kind, j.name, j.weight, j.state)\n"
                                       "fails('has no state', p.count, p, 'none')",
                                       "jobs 4 joined 3 0;0 7 1 c 0.5 READY;"};

    check(&story);
}
END_TEST

START_TEST(states_without_names_are_numbers)
{
    SXE_POOL_SPEC bare = {
        .name = "bare", .number = 1, .element_size = 3, .states = 2, .file = path};

    begin_file_state(peer_functions);
    jobs = open_peer(&bare);
    run_script("local p = assert(require 'sxe.pool'.open{file = arg[1]})\n"
               "assert(p:take('0', '1').state == '1')\n"
               "assert(next(p:read(0)) == nil and p:write(0, {}))");
    end_file_state();
    close_jobs();
}
END_TEST

START_TEST(a_number_that_is_not_aligned_is_not_added_to)
{
    SXE_POOL_SPEC odd = {.name = "odd",
                         .number = 2,
                         .element_size = 12,
                         .states = 1,
                         .fields = "u64 n",
                         .file = path};

    begin_file_state(peer_functions);
    jobs = open_peer(&odd);
    fails_with("local p = assert(require 'sxe.pool'.open{file = arg[1]}) p:at(1).n = 7\n"
               "assert(p:at(1).n == 7) p:add(1, 'n')",
               "field n: shared pools add to aligned u64 and i64 only");
    end_file_state();
    close_jobs();
}
END_TEST

START_TEST(fields_are_declared_in_three_ways)
{
    begin_file_state(peer_functions);
    run_script("local open = require 'sxe.pool'.open\n"
               "local function shape(fields) return {file = arg[1], name = 'p', count = 1,\n"
               "    states = {'a', 'b'}, fields = fields} end\n"
               "local one = assert(open(shape 'f64 d, i16 s, bool on, char[3] t'))\n"
               "local two = assert(open(shape{'f64 d', 'i16 s', 'bool on, char[3] t'}))\n"
               "local p = assert(open(shape{t = 'char[3]', s = 'i16', d = 'f64', on = 'bool'}))\n"
               "one:write(0, {d = 1.5, t = 'abc', on = true})\n"
               "assert(p:at(0).d == 1.5 and p:at(0).t == 'abc' and p:at(0).on == true)\n"
               "local other, why, code = open(shape{'i16 s', 'f64 d', 'bool on, char[3] t'})\n"
               "assert(other == nil and why and code == 17, why)\n"
               "local long = shape{}\n"
               "for i = 1, 40 do long.fields[('f'):rep(20) .. i] = 'char[100]' end\n"
               "local done, text = pcall(open, long)\n"
               "assert(not done and text:find'shared pool has at most 511 bytes', text)");
    end_file_state();
}
END_TEST

START_TEST(a_pool_is_there_again)
{
    make_path();
    for (int round = 1; round <= 3; round++) {
        begin_world_with(file_config());
        said_length = 0;
        load_text(JOBS "if p.found == 'created' then p:take('FREE', 'BUSY').name = 'kept' end\n"
                       "say(p.found, p:oldest('BUSY').name, p:add(0, 'hits', 2))");
        sxe_run();
        ck_assert_str_eq(said, round == 1   ? "created kept 2;"
                               : round == 2 ? "closed kept 4;"
                                            : "closed kept 6;");
        end_world();
    }
    remove_path();
}
END_TEST

START_TEST(a_pool_with_a_file_is_synced)
{
    make_path();
    begin_world_with(file_config());
    load_text(JOBS "say(p:sync())\n"
                   "say(pool.open{name = 'own', count = 2, states = {'a', 'b'}}:sync())");
    sxe_run();
    ck_assert_str_eq(said, "true;nil there is no file 22;");
    end_world();
    remove_path();
}
END_TEST

START_TEST(in_memory_it_is_shared_with_children)
{
    state_start();
    run_script("local p = require 'sxe.pool'.open{shared = true, shards = 2, exact = true, " SHAPE
               "}\n"
               "assert(p.found == 'created')\n"
               "for i = 0, 3 do assert(p:take('FREE', 'BUSY').index == i) end\n"
               "assert(p:take('FREE', 'BUSY') == nil)");
    state_stop();
}
END_TEST

/* ---- Opening fails ---- */

static const struct {
    const char *options;
    const char *message;
} wrong[] = {
    {"file = 1", "file: a path, or a name expected"},
    {"file = 'a\\0b'", "file: a path, or a name expected"},
    {"shared = true, file = false", "file: a path, or a name expected"},
    {"file = arg[1], states = {'a'}", "states: without 'count', what is in the file"},
    {"file = arg[1], fields = 'u8 a'", "fields: without 'count', what is in the file"},
    {"file = arg[1], shards = 1", "shards: without 'count', what is in the file"},
    {"file = arg[1], count = 1", "the name of the pool expected, got nil"},
    {"shared = true", "the name of the pool expected, got nil"},
    {"shared = true, name = 'p'", "count: 1 to 16777216 elements expected"},
    {"shared = true, name = 'p', count = 1, shards = 65", "shards: 1 to 64 shards expected"},
    {"shared = true, wait = 'long'", "wait: seconds expected, got string"},
    {"shared = true, wait = -1", "wait: 0 to 60 seconds expected"},
    {"shared = true, wait = 61", "wait: 0 to 60 seconds expected"},
    {"shared = true, wait = 0/0", "wait: 0 to 60 seconds expected"},
    {"shared = true, name = 'p', count = 8, shards = 3, states = {'a'}", "shard"},
    {"shared = true, name = 'p', count = 1, states = {'a b'}", "states: 'a b' has a blank"},
    {"shared = true, name = 'p', count = 1, states = many",
     "states: the names of a shared pool have at most 255 bytes in all"},
    {"shared = true, name = 'p', count = 1, states = {'a'}, timeouts = {b = 1}",
     "timeouts: there is no state 'b'"},
};

START_TEST(what_is_wrong_is_told)
{
    char text[400];

    begin_file_state(peer_functions);
    run_script("many = {} for i = 1, 9 do many[i] = ('x'):rep(30) .. i end");
    snprintf(text, sizeof(text), "require 'sxe.pool'.open{%s}", wrong[_i].options);
    fails_with(text, wrong[_i].message);
    end_file_state();
}
END_TEST

/* Opening this file must fail with this message and code. */
static void
check_refused(const char *options, const char *message, int code)
{
    char text[500];

    state_start_with(file_config());
    snprintf(text, sizeof(text),
             "local p, why, code = require 'sxe.pool'.open{file = arg[1]%s}\n"
             "assert(p == nil and why:find('%s', 1, true) and code == %d, why)",
             options, message, code);
    run_script(text);
    state_stop();
}

START_TEST(what_cannot_be_opened_is_told)
{
    static SXE_POOL_SPEC many = {
        .name = "many", .number = 1, .element_size = 1, .states = 33, .file = path};
    static SXE_POOL_SPEC other = {
        .name = "p", .number = 1, .element_size = 8, .states = 1, .file = path};
    FILE *file;

    make_path();
    check_refused("", "", ENOENT);
    sxe_pool_delete(open_peer(&many));
    check_refused("", "pool many is not for scripts: they take 32 states", E2BIG);
    unlink(path);
    sxe_pool_delete(open_peer(&other));
    check_refused(", name = 'p', count = 2, states = {'a'}", "", EEXIST);
    unlink(path);
    file = fopen(path, "w");
    fprintf(file, "%5000d", 1);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0600), 0);
    check_refused("", "", EMEDIUMTYPE);
    remove_path();
}
END_TEST

/* A first failure closes forgotten pools and dicts, whose descriptors then suffice. */
START_TEST(without_descriptors_a_pool_is_opened_at_the_second_try)
{
    begin_file_state(peer_functions);
    run_script("pool = require 'sxe.pool'");
    fake_os_fail(FAKE_OPEN, 1, 2, EMFILE);
    run_script("local p, why, code = pool.open{file = arg[1], " SHAPE "}\n"
               "assert(not p and code == 24, why)");
    fake_os_reset();
    fake_os_fail(FAKE_OPEN, 1, 1, EMFILE);
    run_script("assert(pool.open{file = arg[1], " SHAPE "})");
    fake_os_reset();
    end_file_state();
}
END_TEST

START_TEST(without_memory_nothing_is_left_open)
{
    uint64_t after = 0;
    unsigned before;

    begin_file_state(peer_functions);
    run_script("require 'sxe.pool'");
    before = fake_os_open_fds();
    while (runs_out_of_memory("require 'sxe.pool'.open{file = arg[1], timeouts = {BUSY = 1},\n"
                              "on_timeout = print, " SHAPE "}",
                              after++))
        ck_assert_uint_eq(fake_os_open_fds(), before);
    before = fake_os_open_fds();
    /* The last allocation of C is the record of its timeouts; let each one fail in turn. */
    for (unsigned nth = 1;; nth++) {
        fake_os_reset();
        fake_os_fail(FAKE_CALLOC, nth, 100, ENOMEM);
        if (load_text("assert(require 'sxe.pool'.open{file = arg[1], timeouts = {BUSY = 1}})") == 0)
            break;
        ck_assert_uint_eq(fake_os_open_fds(), before);
    }
    fake_os_reset();
    end_file_state();
}
END_TEST

/* ---- Contents ---- */

START_TEST(contents_are_read_and_written_whole)
{
    check_script(
        "local j = p:take('FREE', 'BUSY')\n"
        "assert(p:write(j, {hits = 3, name = 'ann'}) == j)\n"
        "local all = p:read(j)\n"
        "assert(all.hits == 3 and all.name == 'ann' and all.kind == 0 and all.weight == 0)\n"
        "fails('no field', p.write, p, j, {none = 1}) fails('names of', p.write, p, j, {1})\n"
        "fails('does not fit', p.write, p, j, {kind = 256}) assert(j.hits == 3)\n"
        "assert(p:add(j, 'hits') == 4 and p:add(j, 'hits', -4) == 0)\n"
        "fails('aligned u64 and i64 only', p.add, p, j, 'kind') fails('u64 and i64 only', p.add, "
        "p, j, 'weight')\n"
        "fails('number expected', p.add, p, j, 'hits', 'x')\n"
        "p:move(j, 'FREE')\n"
        "for _, name in ipairs{'read', 'write'} do\n"
        "    local done, why = p[name](p, j, {}) assert(done == nil and why == 'gone') end\n"
        "assert(p:take('FREE', 'BUSY') ~= j and p:at(0).name == 'ann')\n"
        "p:move(0, 'BUSY') assert(p:at(0).name == '')");
}
END_TEST

START_TEST(what_is_half_written_is_not_read)
{
    check_script("local j = p:take('FREE', 'BUSY')\n"
                 "j.hits = 1 peer.tear(0)\n"
                 "fails('element 0 of pool jobs is half written', function() return j.hits end)\n"
                 "local all, why, code = p:read(j)\n"
                 "assert(all == nil and why == 'busy' and code == 11)\n"
                 "p:write(j, {hits = 2}) assert(j.hits == 2)\n"
                 "peer.tear(1) assert(p:take('FREE', 'BUSY').hits == 0)");
}
END_TEST

START_TEST(what_is_impossible_is_told)
{
    check_script("peer.wreck(1)\n"
                 "fails('pool jobs is damaged', function() return p:at(1).state end)\n"
                 "fails('pool jobs is damaged', p.move, p, 1, 'BUSY')\n"
                 "fails('pool jobs is damaged', p.touch, p, 1)\n"
                 "peer.mislead(2) fails('pool jobs is damaged', p.touch, p, 2)\n"
                 "fails('pool jobs is damaged', p.move, p, 2, 'BUSY')");
}
END_TEST

/* ---- Locks ---- */

START_TEST(outside_of_a_task_a_lock_is_waited_for_a_little)
{
    check_script("local walk = p:each 'FREE'\n"
                 "peer.lock()\n"
                 "local function busy(p, why, code)\n"
                 "    assert(p == nil and why == 'busy' and code == 11) end\n"
                 "busy(p:take('FREE', 'BUSY')) busy(p:move(0, 'BUSY')) busy(p:touch(0))\n"
                 "busy(p:move(0, 'BUSY', 'FREE')) fails('pool jobs is busy', walk)\n"
                 "peer.unlock()\n"
                 "assert(walk().index == 0 and p:take('FREE', 'BUSY').index == 0)");
}
END_TEST

START_TEST(an_element_is_moved_from_where_it_is_believed_to_be)
{
    check_script("local j = p:take('FREE', 'READY')\n"
                 "assert(p:move(j, 'BUSY', 'READY') == j)\n"
                 "local done, why = p:move(j, 'BUSY', 'READY')\n"
                 "assert(done == nil and why == 'moved' and j.state == 'BUSY')\n"
                 "fails('no state', p.move, p, j, 'BUSY', 'none')");
}
END_TEST

static const struct story locked[] = {
    /* Other tasks run while one waits for the lock. */
    {JOBS "local peer = require 'peer' task.sleep(0) peer.lock()\n"
          "task.start(function() task.sleep(0.05) peer.unlock() end)\n"
          "local j = p:take('FREE', 'BUSY') say(j.index, world.now_ms() >= 50)",
     "0 true;"},
    {JOBS "local peer = require 'peer' task.sleep(0) peer.lock()\n"
          "task.start(function() task.sleep(0) peer.unlock() end)\n"
          "say(p:touch(1).index, p:oldest('FREE').index)",
     "1 0;"},
    {JOBS "local peer = require 'peer' task.sleep(0) peer.lock()\n"
          "task.start(function() task.sleep(0) peer.unlock() end)\n"
          "say(p:move(1, 'BUSY').index, p:count 'BUSY')",
     "1 1;"},
    {JOBS "local peer = require 'peer' task.sleep(0)\n"
          "local j, lease = p:take('FREE', 'BUSY') peer.lock()\n"
          "task.start(function() task.sleep(0) peer.unlock() end)\n"
          "say(p:write(j, {name = 'ann'}, lease).name, p:touch(j) == j) peer.lock()\n"
          "task.start(function() task.sleep(0) peer.unlock() end)\n"
          "say(p:write(j, {name = 'eve'}, lease)) say(j.name)",
     "ann true;nil lost;ann;"},
    {JOBS "local peer = require 'peer' task.sleep(0) peer.lock()\n"
          "task.start(function() task.sleep(0) peer.unlock() end)\n"
          "for j in p:each 'FREE' do say(j.index) end",
     "0;1;2;3;"},
    {JOBS "local peer = require 'peer' p:take('FREE', 'BUSY') task.sleep(0) peer.tear(0)\n"
          "task.start(function() task.sleep(0) p:write(0, {name = 'fresh'}) end)\n"
          "say(p:at(0).name) peer.tear(0)\n"
          "task.start(function() task.sleep(0) p:write(0, {name = 'again'}) end)\n"
          "say(p:read(0).name)",
     "fresh;again;"},
    /* A task does not wait for ever. */
    {JOBS "local peer = require 'peer' task.sleep(0) peer.lock()\n"
          "say(p:take('FREE', 'BUSY')) say(world.now_ms() < 500) peer.unlock()",
     "nil busy 11;true;"},
    {OPEN "local p = assert(pool.open{file = path, wait = 3, " SHAPE "})\n"
          "local peer = require 'peer' task.sleep(0) peer.lock()\n"
          "say(p:touch(1)) local ms = world.now_ms() say(ms >= 3000 and ms < 3010)\n"
          /* Where the script cannot yield, waiting would delay all tasks, so it fails at once. */
          "table.sort({1, 2}, function() say(p:touch(1)) return false end)\n"
          "say(world.now_ms() - ms < 10) peer.unlock()",
     "nil busy 11;true;nil busy 11;true;"},
    {OPEN "local p = assert(pool.open{file = path, wait = 0, " SHAPE "})\n"
          "local peer = require 'peer' task.sleep(0) peer.lock() local before = world.now_ms()\n"
          "say(p:touch(1)) say(world.now_ms() == before) peer.unlock()",
     "nil busy 11;true;"},
    /* In a cancelled task each call returns "cancelled". */
    {JOBS "local peer = require 'peer' task.sleep(0) peer.lock() peer.tear(2)\n"
          "local walk = p:each 'FREE'\n"
          "for _, f in ipairs{function() return p:take('FREE', 'BUSY') end,\n"
          "    function() return p:move(0, 'BUSY') end, function() return p:touch(0) end,\n"
          "    function() return p:write(0, {}, 1) end,\n"
          "    function() return p:read(2) end, function() return pcall(walk) end,\n"
          "    function() return pcall(function() return p:at(2).hits end) end} do\n"
          "    local t = task.start(function() say(f()) end)\n"
          "    task.sleep(0) t:cancel() t:join() end peer.unlock()",
     "nil cancelled;nil cancelled;nil cancelled;nil cancelled;nil cancelled;false cancelled;"
     "false test:12: cancelled;"},
};

START_TEST(a_task_tries_again_later)
{
    check(&locked[_i]);
}
END_TEST

/* ---- Waiting for an element ---- */

#define OWN                                                                         \
    OPEN "local p = pool.open{name = 'p', count = 3, states = {'FREE', 'READY'},\n" \
         "    timeouts = {READY = 9}}\n"
#define WAITING                                                               \
    "local function wait(name, ...) local seconds = {...}\n"                  \
    "    return task.start(function()\n"                                      \
    "        local j, why = p:take('READY', 'BUSY', table.unpack(seconds))\n" \
    "        say(name, j and j.index or why, world.now()) end) end\n"

static const struct story waits[] = {
    {JOBS WAITING "say(p:take('READY', 'BUSY', 0)) say(p:take('READY', 'BUSY', 3), world.now())",
     "nil timeout;nil 3;"},
    {JOBS WAITING "wait('a', 9) task.sleep(1) p:take('FREE', 'READY')", "a 0 1;"},
    /* One element for each task, in the order in which the tasks came. */
    {JOBS WAITING "wait('a', 99) wait('b', 99) wait('c', 99) task.sleep(1.5)\n"
                  "p:take('FREE', 'READY') task.sleep(4) p:take('FREE', 'READY')\n"
                  "p:take('FREE', 'READY')",
     "a 0 1;b 1 5;c 2 5;"},
    /* Another process puts the element. */
    {JOBS WAITING "wait('a', 9) task.sleep(0.5) require('peer').put()", "a 0 0;"},
    {JOBS WAITING "wait('a', math.huge) wait('b', 99) task.sleep(0.5) require('peer').put()\n"
                  "task.sleep(0.2) require('peer').put()",
     "a 0 0;b 1 0;"},
    /* The process that put the element was killed before it told us; once a second we look without
     * being told. */
    {JOBS WAITING "local peer = require 'peer' wait('a', 9) task.sleep(1.2)\n"
                  "task.sleep(0) peer.forget() peer.put()\n",
     "a 0 2;"},
    /* A task that stops waiting stops watching. */
    {JOBS WAITING "local peer = require 'peer' local t = wait('a', 9) task.sleep(0.1)\n"
                  "say(peer.watched() ~= 0) t:cancel() t:join() say(peer.watched())\n"
                  "wait('b', 1):join() say(peer.watched())",
     "true;a cancelled 0;0;b timeout 1;0;"},
    /* Two elements came, and only one of them was reported. */
    {JOBS WAITING "local peer = require 'peer' wait('a', 9) wait('b', 9) task.sleep(0.5)\n"
                  "peer.put() peer.put() task.sleep(0.1) say(world.now_ms() < 700)",
     "a 0 0;b 1 0;true;"},
    /* The lock is held for longer than a task waits. */
    {JOBS WAITING "local peer = require 'peer' task.sleep(0) peer.put() peer.lock() wait('a', 9)\n"
                  "wait('b', 1) task.sleep(2) peer.unlock()",
     "b timeout 1;a 0 2;"},
    /* The element that the task saw is gone when it tries to take it. */
    {JOBS WAITING
     "local peer = require 'peer' task.sleep(0) peer.put() peer.count(0) wait('a', 9)\n"
     "task.sleep(0) task.sleep(0) peer.count(1) task.sleep(0.1) say(world.now())",
     "a 0 0;0;"},
    /* A private pool of this state. */
    {OWN "local t = task.start(function() say(p:take('READY', 'FREE', 5), world.now()) end)\n"
         "t:join() t = task.start(function()\n"
         "    say(p:take('READY', 'FREE', 5).index, world.now()) end)\n"
         "task.sleep(1) p:take('FREE', 'READY')",
     "nil 5;0 6;"},
    {OWN "for _ = 1, 3 do p:take('FREE', 'READY') end\n"
         "for i = 1, 2 do task.start(function()\n"
         "    say(i, p:take('FREE', 'READY', math.huge).index, world.now()) end) end\n"
         "task.sleep(12) for _ = 1, 3 do p:take('READY', 'FREE') end",
     "1 0 9;2 1 9;"},
};

START_TEST(a_task_waits_for_an_element)
{
    check(&waits[_i]);
}
END_TEST

/* The child is another process: it needs its own watcher, and must not use its parent's. */
START_TEST(a_child_of_fork_waits_on)
{
    pid_t child;
    int status = -1;

    begin_file_world(peer_functions);
    jobs = open_peer(spec());
    load_text(JOBS "local j = p:take('READY', 'BUSY', 9) say(j.index, world.now())\n"
                   "j = p:take('READY', 'BUSY', 9) say(j.index, world.now())");
    for (int i = 0; i < 3; i++)
        ev_run(sxe_loop(), EVRUN_NOWAIT);
    child = fork();
    if (child == 0) {
        ev_loop_fork(sxe_loop());
        run_script(
            "local task, peer = require 'sxe.task', require 'peer'\n"
            "task.start(function() task.sleep(2.5) peer.put() task.sleep(2) peer.put() end)");
        sxe_run();
        /* The parent's user is told of the first element, so the child finds it only by looking
         * once a second; it is told of the second one itself. */
        exit(strcmp(said, "0 3;1 4;") == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(sxe_pool_get_count(jobs, BUSY), 2);
    end_file_world();
    close_jobs();
}
END_TEST

START_TEST(outside_of_a_task_there_is_no_waiting)
{
    check_script("fails('cannot wait', function() coroutine.wrap(function()\n"
                 "    table.sort({1, 2}, function() p:take('READY', 'BUSY', 1) end) end)() end)\n"
                 "assert(p:take('READY', 'BUSY') == nil)");
}
END_TEST

/* ---- Timeouts ---- */

static const struct story timed[] = {
    {OPEN "local p = pool.open{file = path, timeouts = {BUSY = 2, READY = 5}, " SHAPE "}\n"
          "p:take('FREE', 'BUSY') task.sleep(1) say(p:at(0).state, p:at(0).age > 0.9)\n"
          "task.sleep(2.5) say(p:at(0).state)",
     "BUSY true;FREE;"},
    {OPEN "local p p = pool.open{file = path, timeouts = {BUSY = 2}, " SHAPE ",\n"
          "    on_timeout = function(j) say(j.index, j.state) p:move(j, 'READY') end}\n"
          "p:take('FREE', 'BUSY') task.sleep(3.5) say(p:at(0).state)",
     "0 BUSY;READY;"},
    /* An element whose lock another process holds is checked again later. */
    /* A worker that was stopped for a while cannot end the job of the next worker. */
    {OPEN "local p p = pool.open{file = path, timeouts = {BUSY = 2}, " SHAPE ",\n"
          "    on_timeout = function(j, lease) say(p:move(j, 'READY', 'BUSY', lease) == j) end}\n"
          "p:move((p:take('FREE', 'BUSY')), 'READY')\n"
          "local late, lease = p:take('READY', 'BUSY') task.sleep(3)\n"
          "local job, new = p:take('READY', 'BUSY')\n"
          "say(job == late, p:move(late, 'FREE', 'BUSY', lease))\n"
          "say(p:move(job, 'FREE', 'BUSY', new).state)",
     "true;true nil lost;FREE;"},
    {OPEN "local p = pool.open{file = path, timeouts = {BUSY = 2}, " SHAPE ",\n"
          "    on_timeout = function(j) say(j.index) end}\n"
          "local peer = require 'peer' p:take('FREE', 'BUSY') task.sleep(1.9) peer.lock()\n"
          "task.sleep(0.2) peer.unlock() say 'unlocked' task.sleep(1.5) p:move(0, 'FREE')",
     "unlocked;0;"},
};

START_TEST(elements_time_out)
{
    check(&timed[_i]);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-pool-shared");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, c_and_lua_agree_on_the_layout);
    tcase_add_test(c, a_file_says_itself_what_it_is);
    tcase_add_test(c, states_without_names_are_numbers);
    tcase_add_test(c, a_number_that_is_not_aligned_is_not_added_to);
    tcase_add_test(c, fields_are_declared_in_three_ways);
    tcase_add_test(c, a_pool_is_there_again);
    tcase_add_test(c, a_pool_with_a_file_is_synced);
    tcase_add_test(c, in_memory_it_is_shared_with_children);
    tcase_add_loop_test(c, what_is_wrong_is_told, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(c, what_cannot_be_opened_is_told);
    tcase_add_test(c, without_descriptors_a_pool_is_opened_at_the_second_try);
    tcase_add_test(c, without_memory_nothing_is_left_open);
    tcase_add_test(c, contents_are_read_and_written_whole);
    tcase_add_test(c, what_is_half_written_is_not_read);
    tcase_add_test(c, what_is_impossible_is_told);
    tcase_add_test(c, outside_of_a_task_a_lock_is_waited_for_a_little);
    tcase_add_test(c, an_element_is_moved_from_where_it_is_believed_to_be);
    tcase_add_loop_test(c, a_task_tries_again_later, 0, sizeof(locked) / sizeof(locked[0]));
    tcase_add_loop_test(c, a_task_waits_for_an_element, 0, sizeof(waits) / sizeof(waits[0]));
    tcase_add_test(c, a_child_of_fork_waits_on);
    tcase_add_test(c, outside_of_a_task_there_is_no_waiting);
    tcase_add_loop_test(c, elements_time_out, 0, sizeof(timed) / sizeof(timed[0]));
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
