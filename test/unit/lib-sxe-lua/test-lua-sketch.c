/* SPDX-License-Identifier: MIT
 *
 * require "sxe.sketch". The other process is played by C code, which has the sketch opened once
 * more.
 */
#include "lua-file-world.h"

#include "fake-os.h"
#include "sxe-hll-private.h"

#define OPEN                                                                    \
    "local sketch, path, peer = require 'sxe.sketch', arg[1], require 'peer'\n" \
    "local function fails(text, f, ...) local done, why = pcall(f, ...)\n"      \
    "    assert(not done and why:find(text, 1, true), why) end\n"               \
    "local function refuses(text, code, result, why, got)\n"                    \
    "    assert(result == nil and why:find(text, 1, true) and got == code, why) end\n"
#define OWN OPEN "local h = sketch.hll{name = 'h'}\n"

/* peer.wreck(): write an impossible value to a register in the file. */
static int
l_wreck(lua_State *L)
{
    const SXE_HLL_SPEC spec = {.file = path};
    SXE_HLL *hll = sxe_hll_open(&spec, NULL);

    SXE_UNUSED_PARAMETER(L);
    ck_assert_ptr_nonnull(hll);
    hll->registers[3] = 200;
    sxe_hll_close(hll);
    return 0;
}

static int
l_malloc(lua_State *L)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC};

    fake_os_sweep(kinds, 2, (unsigned)luaL_checkinteger(L, 1), true, ENOMEM);
    return 0;
}

/* peer.once(): the allocation for the next sketch fails once, a second attempt succeeds. */
static int
l_once(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    fake_os_fail(FAKE_CALLOC, 1, 1, ENOMEM);
    return 0;
}

static int
l_reset(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    fake_os_reset();
    return 0;
}

static const luaL_Reg peer_functions[] = {
    {"wreck", l_wreck}, {"malloc", l_malloc}, {"reset", l_reset}, {"once", l_once}, {NULL, NULL}};

static void
check_script(const char *text)
{
    begin_file_state(peer_functions);
    run_script(text);
    ck_assert_int_eq(sxe_lua_loaded(lua), 0);
    fake_os_reset();
    end_file_state();
}

START_TEST(different_things_are_counted)
{
    check_script(OWN "assert(h.name == 'h' and h.found == 'created' and h.precision == 14)\n"
                     "assert(h.none == nil and h:count() == 0 and h:add() == false)\n"
                     "assert(h:add('a', 'b', 'a') and not h:add('a') and not h:add('b', 'a'))\n"
                     "assert(math.floor(h:count() + 0.5) == 2)\n"
                     "assert(h:add(7) and not h:add('7'))\n"
                     "h:clear() assert(h:count() == 0)\n"
                     "for i = 1, 1000 do h:add(i) end\n"
                     "assert(math.abs(h:count() - 1000) < 30)");
}
END_TEST

START_TEST(sketches_are_merged)
{
    check_script(OWN "local coarse = sketch.hll{name = 'c', precision = 4}\n"
                     "h:add('a', 'b') coarse:add('c', 'd')\n"
                     "assert(coarse:merge(h)) local count = coarse:count()\n"
                     "assert(not coarse:add('a', 'b', 'c', 'd') and coarse:count() == count)\n"
                     "refuses('less precision', 33, h:merge(coarse))\n"
                     "fails('sxe.sketch.hll expected', h.merge, h, 'c')");
}
END_TEST

START_TEST(strings_of_redis_come_and_go)
{
    check_script(
        OWN "h:add('a') local string = h:export()\n"
            "assert(string == 'HYLL\\1' .. ('\\0'):rep(10) .. '\\x80\\x71\\xa6\\x84\\x4e\\x57')\n"
            "local other = sketch.hll{name = 'o', precision = 10}\n"
            "assert(other:import(string) and not other:add 'a')\n"
            "refuses('less', 33, other:export())\n"
            "refuses('no HyperLogLog of Redis', 22, h:import('x'))\n"
            "local fine = sketch.hll{name = 'f', precision = 15}\n"
            "refuses('has precision 15', 33, fine:import(string))\n"
            "for i = 1, 10000 do h:add(i) end assert(#h:export() == 12304)");
}
END_TEST

START_TEST(a_file_is_shared_and_stays)
{
    check_script(
        OPEN "local h = sketch.hll{name = 'h', file = path, precision = 12}\n"
             "local o = sketch.hll{file = path}\n"
             "assert(h:add 'a' and not o:add 'a' and o.precision == 12 and o.found == 'joined')\n"
             "assert(h:sync()) h:close() o:close() fails('closed', h.add, h, 'a')\n"
             "fails('closed', function() return h.name end)\n"
             "do local again <close> = sketch.hll{file = path}\n"
             "assert(again.found == 'closed' and not again:add 'a') end\n"
             "refuses('another', 17, sketch.hll{name = 'h', file = path})\n"
             "fails('precision', sketch.hll, {file = path, precision = 12})\n"
             "refuses('', 2, sketch.hll{file = path .. 'none'})");
}
END_TEST

START_TEST(damage_is_told_and_repaired)
{
    check_script(OPEN "local h = sketch.hll{name = 'h', file = path} h:add 'a'\n"
                      "peer.wreck() refuses('the sketch is damaged', 117, h:count())\n"
                      "refuses('damaged', 117, h:export())\n"
                      "refuses('damaged', 117, sketch.hll{name = 'i'}:merge(h)) h:close()\n"
                      "h = sketch.hll{file = path, repair = true}\n"
                      "assert(h:count() > 0 and not h:add 'a')");
}
END_TEST

START_TEST(filters_have_what_was_added)
{
    check_script(OPEN
                 "local b = sketch.bloom{name = 'b', capacity = 100}\n"
                 "assert(b.name == 'b' and b.bits == 1024 and b.hashes == 7)\n"
                 "assert(not b:has 'a' and b:add 'a' and b:has 'a' and not b:add 'a')\n"
                 "assert(b:add(7) and b:has '7' and math.floor(b:count() + 0.5) == 2)\n"
                 "assert(b:error_rate() > 0 and b:error_rate() < 1e-9)\n"
                 "local o = sketch.bloom{name = 'o', capacity = 100, error = 0.01}\n"
                 "assert(o:add 'c' and b:merge(o) and b:has 'c')\n"
                 "local n = sketch.bloom{name = 'n', capacity = 100, error = 0.001}\n"
                 "refuses('cannot be merged', 33, b:merge(n))\n"
                 "b:clear() assert(not b:has 'a')\n"
                 "b = sketch.bloom{name = 'b', capacity = 9, file = path} b:add 'x' b:close()\n"
                 "b = sketch.bloom{file = path} assert(b:has 'x' and b.found == 'closed')\n"
                 "assert(b:sync()) refuses('no HyperLogLog', 124, sketch.hll{file = path})");
}
END_TEST

START_TEST(frequent_keys_are_listed)
{
    check_script(OPEN
                 "local t = sketch.topk{name = 't', number = 2}\n"
                 "local function shown(list) local all = {}\n"
                 "    for i, e in ipairs(list) do all[i] = e.key .. '=' .. e.count end\n"
                 "    return table.concat(all, ' ') end\n"
                 "assert(t.name == 't' and t.number == 2 and t.key_size == 64 and #t:list() == 0)\n"
                 "t:add 'a' t:add('b', 5) t:add('a', 2) t:add(7)\n"
                 "assert(shown(t:list()) == 'b=5 a=3' and shown(t:list(1)) == 'b=5')\n"
                 "assert(shown(t:list(100)) == 'b=5 a=3')\n"
                 "assert(t:count 'a' == 3 and t:count 'none' == 0 and t:total() == 9)\n"
                 "fails('the key has more than 64 bytes', t.add, t, ('k'):rep(65))\n"
                 "fails('times above 0', t.add, t, 'a', 0)\n"
                 "fails('how many', t.list, t, 0)\n"
                 "local o = sketch.topk{name = 'o', number = 3, error = 0.001, key_size = 64}\n"
                 "o:add('c', 9) assert(t:merge(o) and shown(t:list()) == 'c=9 b=5')\n"
                 "local n = sketch.topk{name = 'n', number = 3, key_size = 8}\n"
                 "refuses('cannot be merged', 33, t:merge(n))\n"
                 "t:clear() assert(#t:list() == 0 and t:total() == 0)\n"
                 "t = sketch.topk{name = 't', number = 5, file = path} t:add 'x' t:close()\n"
                 "t = sketch.topk{file = path} assert(t:count 'x' == 1 and t.number == 5)");
}
END_TEST

START_TEST(wrong_options_of_all_kinds_raise)
{
    check_script(OPEN "fails('capacity', sketch.bloom, {name = 'b'})\n"
                      "fails('capacity', sketch.bloom, {name = 'b', capacity = 2 ^ 37})\n"
                      "fails('capacity', sketch.bloom, {name = 'b', capacity = '9'})\n"
                      "fails('capacity', sketch.bloom, {name = 'b', capacity = 1.5})\n"
                      "fails('capacity', sketch.bloom, {name = 'b', capacity = 0 / 0})\n"
                      "fails('8,', sketch.topk, {name = 't', number = 3, key_size = 2 ^ 35})\n"
                      "fails('error', sketch.bloom, {name = 'b', capacity = 9, error = -1})\n"
                      "fails('error', sketch.bloom, {name = 'b', capacity = 9, error = 0.9})\n"
                      "fails('error', sketch.bloom, {file = path, error = 0.1})\n"
                      "fails('number', sketch.topk, {name = 't'})\n"
                      "fails('key_size', sketch.topk, {name = 't', number = 3, key_size = 9})\n"
                      "fails('key_size', sketch.topk, {file = path, key_size = 8})");
}
END_TEST

START_TEST(wrong_options_raise)
{
    check_script(OPEN "fails('has no option', sketch.hll, {name = 'h', precison = 9})\n"
                      "fails('precision', sketch.hll, {name = 'h', precision = 19})\n"
                      "for _, bits in ipairs{3, 19, -1, 14.5, 0 / 0, 2 ^ 33} do\n"
                      "  fails('4 to 18 bits', sketch.hll, {name = 'h', precision = bits}) end\n"
                      "fails('name', sketch.hll, {})\n"
                      "fails('shared', sketch.hll, {name = 'h', shared = 1})\n"
                      "assert(sketch.hll{name = 'h', shared = true}:add 'a')");
}
END_TEST

START_TEST(without_memory_none_is_opened)
{
    check_script(OPEN "local nth, h = 0, nil\n"
                      "repeat nth = nth + 1 peer.malloc(nth)\n"
                      "    local done, why, code\n"
                      "    h, why, code = sketch.hll{name = 'h'} peer.reset()\n"
                      "    if not h then refuses('memory', 12, h, why, code) end\n"
                      "until h assert(h:add 'a')");
}
END_TEST

/* When the second sketch gets no memory, the first one, to which no variable refers, is
 * collected. */
START_TEST(forgotten_sketches_make_room)
{
    check_script(OPEN "sketch.hll{name = 'forgotten'}\n"
                      "peer.once() assert(sketch.hll{name = 'h'}:add 'a')");
}
END_TEST

/* Converting the argument makes a string, so the collector runs in the middle of the call. */
START_TEST(a_finalizer_may_close_the_sketch_of_a_call)
{
    check_script(OWN "collectgarbage 'generational'\n"
                     "for i = 1, 2000 do\n"
                     "    local one = sketch.hll{name = 'one', precision = 4}\n"
                     "    setmetatable({}, {__gc = function() one:close() end})\n"
                     "    local done, why = pcall(one.add, one, i, i + 0.5, i + 0.25)\n"
                     "    assert(done or why:find('closed', 1, true), why)\n"
                     "end");
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-sketch");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, different_things_are_counted);
    tcase_add_test(c, sketches_are_merged);
    tcase_add_test(c, strings_of_redis_come_and_go);
    tcase_add_test(c, a_file_is_shared_and_stays);
    tcase_add_test(c, damage_is_told_and_repaired);
    tcase_add_test(c, filters_have_what_was_added);
    tcase_add_test(c, frequent_keys_are_listed);
    tcase_add_test(c, wrong_options_of_all_kinds_raise);
    tcase_add_test(c, wrong_options_raise);
    tcase_add_test(c, without_memory_none_is_opened);
    tcase_add_test(c, forgotten_sketches_make_room);
    tcase_add_test(c, a_finalizer_may_close_the_sketch_of_a_call);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
