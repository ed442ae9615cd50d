/* SPDX-License-Identifier: MIT
 *
 * The memory of a state: the allocator alone, then Lua with this allocator.
 */
#include "lua-state.h"

#include <stdlib.h>

#include "sweep.h"

#include "test-main.h"

static struct sxe__lua_heap heap;

static void
start_heap(void)
{
    heap = (struct sxe__lua_heap){.max = (size_t)64 << 20};
}

static void
stop_heap(void)
{
    ck_assert_uint_eq(heap.held, 0);
    sxe__lua_heap_free(&heap);
}

static void *
take(size_t size)
{
    return sxe__lua_allocate(&heap, NULL, LUA_TTABLE, size);
}

static void
give(void *block, size_t size)
{
    ck_assert_ptr_null(sxe__lua_allocate(&heap, block, size, 0));
}

/* ---- The allocator ---- */

START_TEST(blocks_of_every_size_are_aligned_and_apart)
{
    unsigned char *blocks[2000];

    for (unsigned size = 1; size < 2000; size++) {
        blocks[size] = take(size);
        ck_assert_uint_eq((uintptr_t)blocks[size] % 16, 0);
        memset(blocks[size], (int)(size % 251), size);
    }
    for (unsigned size = 1; size < 2000; size++) {
        for (unsigned i = 0; i < size; i++)
            ck_assert_uint_eq(blocks[size][i], size % 251);
        give(blocks[size], size);
    }
}
END_TEST

START_TEST(a_freed_block_is_the_next_one)
{
    void *first = take(40);
    void *second = take(48);

    give(first, 40);
    ck_assert_ptr_eq(take(33), first);
    give(first, 33);
    give(second, 48);
    give(NULL, 0);
}
END_TEST

START_TEST(a_block_keeps_what_is_in_it_when_its_size_changes)
{
    static const size_t sizes[] = {10,   16,     17,   700,  720, 1024, 1025, 2032,
                                   2033, 100000, 3000, 1500, 500, 20,   1};
    size_t size = 1;
    unsigned char *block = take(size);

    block[0] = 0;
    for (unsigned nth = 0; nth < sizeof(sizes) / sizeof(sizes[0]); nth++) {
        size_t kept = sizes[nth] < size ? sizes[nth] : size;

        block = sxe__lua_allocate(&heap, block, size, sizes[nth]);
        ck_assert_ptr_nonnull(block);
        for (size_t i = 0; i < kept; i++)
            ck_assert_uint_eq(block[i], i % 251);
        size = sizes[nth];
        for (size_t i = 0; i < size; i++)
            block[i] = (unsigned char)(i % 251);
    }
    give(block, size);
}
END_TEST

START_TEST(slabs_and_large_blocks_are_what_is_held)
{
    void *small = take(100);
    void *large;

    ck_assert_uint_eq(heap.held, SXE__LUA_SLAB_SIZE);
    large = take(5000);
    ck_assert_uint_eq(heap.held, SXE__LUA_SLAB_SIZE + 5000);
    large = sxe__lua_allocate(&heap, large, 5000, 9000);
    ck_assert_uint_eq(heap.held, SXE__LUA_SLAB_SIZE + 9000);
    large = sxe__lua_allocate(&heap, large, 9000, 3000);
    ck_assert_uint_eq(heap.held, SXE__LUA_SLAB_SIZE + 3000);
    ck_assert_uint_eq(heap.most, SXE__LUA_SLAB_SIZE + 9000);
    give(large, 3000);
    give(small, 100);
    ck_assert_uint_eq(heap.allocations, 3);
}
END_TEST

START_TEST(memory_is_used_again_for_other_sizes)
{
    enum { NUMBER = 20000 };
    static void *blocks[NUMBER];

    for (size_t size = 16; size <= 2032; size *= 3) {
        for (unsigned i = 0; i < NUMBER / (size / 16); i++)
            blocks[i] = take(size);
        for (unsigned i = 0; i < NUMBER / (size / 16); i += 2)
            give(blocks[i], size);
        for (unsigned i = 1; i < NUMBER / (size / 16); i += 2)
            give(blocks[i], size);
        ck_assert_uint_eq(heap.held, 0);
    }
    ck_assert_uint_lt(heap.most, 500000);
}
END_TEST

START_TEST(chunks_are_freed_but_one)
{
    enum { NUMBER = 5000 };
    static void *blocks[NUMBER];

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < NUMBER; i++)
            blocks[i] = take(1000);
        for (unsigned i = 0; i < NUMBER; i++)
            give(blocks[round == 1 ? NUMBER - 1 - i : i], 1000);
    }
    for (unsigned i = 0; i < NUMBER; i++)
        blocks[i] = take(1000);
    for (unsigned step = 0; step < 7; step++) {
        for (unsigned i = step; i < NUMBER; i += 7)
            give(blocks[i], 1000);
    }
    ck_assert_uint_eq(heap.held, 0);
    ck_assert_ptr_nonnull(heap.chunks);
}
END_TEST

START_TEST(nothing_beyond_the_cap)
{
    void *large;

    heap.max = SXE__LUA_SLAB_SIZE + 10000;
    large = take(10001 + SXE__LUA_SLAB_SIZE);
    ck_assert_ptr_null(large);
    large = take(10000);
    ck_assert_ptr_nonnull(large);
    ck_assert_ptr_null(sxe__lua_allocate(&heap, large, 10000, 10001 + SXE__LUA_SLAB_SIZE));
    give(take(16), 16);
    large = sxe__lua_allocate(&heap, large, 10000, 10001);
    ck_assert_ptr_nonnull(large);
    ck_assert_ptr_null(take(16));
    ck_assert_ptr_null(sxe__lua_allocate(&heap, large, 10001, 16));
    ck_assert_uint_eq(heap.held, 10001);
    give(large, 10001);
}
END_TEST

START_TEST(the_system_may_have_no_memory)
{
    void *large = take(5000);

    fake_os_fail(FAKE_MALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(take(5000));
    for (unsigned nth = 0; nth < 2; nth++) {
        fake_os_fail(FAKE_REALLOC, 1, 1, ENOMEM);
        ck_assert_ptr_null(sxe__lua_allocate(&heap, large, 5000, nth == 0 ? 6000 : 4000));
    }
    fake_os_fail(FAKE_ALIGNED_ALLOC, 1, 1, ENOMEM);
    ck_assert_ptr_null(take(16));
    ck_assert_uint_eq(heap.held, 5000);
    fake_os_reset();
    give(large, 5000);
}
END_TEST

START_TEST(an_allocation_fails_when_a_test_wants_it)
{
    void *block;

    heap.fail_after = 1;
    heap.fail_times = 2;
    block = take(16);
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_null(take(16));
    ck_assert_ptr_null(sxe__lua_allocate(&heap, block, 16, 32));
    give(take(16), 16);
    give(block, 16);
}
END_TEST

/* ---- Lua on top of the allocator ---- */

START_TEST(a_script_that_wants_too_much_fails_and_others_go_on)
{
    state_start_with(&(struct sxe_lua_config){.memory_max = 4 << 20});
    fails_with("local t = {} for i = 1, 1e9 do t[i] = {} end", "not enough memory");
    run_script("assert(not pcall(string.rep, 'x', 100 << 20))");
    run_script("local t = {} for i = 1, 1000 do t[i] = {i} end");
    ck_assert_uint_le(lua->heap.most, 4 << 20);
    state_stop();
}
END_TEST

START_TEST(garbage_is_collected_above_the_soft_limit)
{
    state_start_with(&(struct sxe_lua_config){.memory_max = 4 << 20});
    sxe__lua_relieve();
    run_script("collectgarbage('stop') local t = {}\n"
               "for i = 1, 340 do t[i] = ('x'):rep(10000 + i) end");
    ck_assert_uint_gt(lua->heap.held, 3 << 20);
    run_script("collectgarbage('restart')");
    for (unsigned i = 0; i < 1000 && lua->heap.held > 3 << 20; i++)
        sxe__lua_relieve();
    ck_assert_uint_le(lua->heap.held, 3 << 20);
    state_stop();
}
END_TEST

START_TEST(the_steady_state_asks_the_system_for_nothing)
{
    state_start();
    run_script("function work() local t = {} for i = 1, 60 do t[i] = {tostring(i)} end end\n"
               "for i = 1, 100 do work() end");
    forbid_allocations();
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(sxe_lua_call(lua, "work", ""), 0);
    ck_assert_uint_eq(fake_os_violations(), 0);
    fake_os_reset();
    state_stop();
}
END_TEST

/* Scripts that use each thing that lib-sxe-lua adds to Lua; any of their allocations may fail. */
static const char *const scripts[] = {
    "return {}",
    "local f = coroutine.wrap(function(...) coroutine.yield(...) error 'x' end) f(1) pcall(f)",
    "local co = coroutine.create(function(...) return ... end) coroutine.resume(co, 1, 2, 3)",
    "coroutine.resume(coroutine.create(error), 'x')",
    "local t <close> = setmetatable({}, {__close = function() end})",
    "setmetatable({}, {__gc = function() return {} end}) collectgarbage()",
    "coroutine.wrap(function() local x <close> = setmetatable({}, {__close = type}) error() end)()",
    "package.preload.x = function() return {} end require 'x' package.loaded.x = nil",
    "pcall(require, 'sxe.redis') pcall(require, 'none')",
    "load('return 1')() os.date() os.time() math.randomseed()",
    "error 'x'",
    "error{status = 404}",
    "error(setmetatable({}, {__tostring = function() return 'x' end}))",
    "local function deep(n) if n > 0 then return 1 + deep(n - 1) end error 'x' end deep(50)",
    "undeclared = 1",
};

START_TEST(any_allocation_of_a_script_may_fail)
{
    const uint64_t times = _i % 2 == 0 ? 2 : UINT64_MAX; /* Lua tries each allocation twice */
    uint64_t after = 0;
    unsigned failed = 0;
    bool touched;

    state_start();
    sxe_log_set_level(0);
    do {
        lua_gc(lua->main, LUA_GCCOLLECT);
        lua->heap.fail_after = after++;
        lua->heap.fail_times = times;
        failed += load_text(scripts[_i / 2]) == -ENOMEM;
        touched = lua->heap.fail_times != times;
        lua->heap.fail_times = 0;
    } while (touched);
    ck_assert_uint_gt(failed, 0);
    run_script("return 1");
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-alloc");
    TCase *tcase = tcase_create("heap");

    tcase_add_checked_fixture(tcase, start_heap, stop_heap);
    tcase_add_test(tcase, blocks_of_every_size_are_aligned_and_apart);
    tcase_add_test(tcase, a_freed_block_is_the_next_one);
    tcase_add_test(tcase, a_block_keeps_what_is_in_it_when_its_size_changes);
    tcase_add_test(tcase, slabs_and_large_blocks_are_what_is_held);
    tcase_add_test(tcase, memory_is_used_again_for_other_sizes);
    tcase_add_test(tcase, chunks_are_freed_but_one);
    tcase_add_test(tcase, nothing_beyond_the_cap);
    tcase_add_test(tcase, the_system_may_have_no_memory);
    tcase_add_test(tcase, an_allocation_fails_when_a_test_wants_it);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("state");
    tcase_add_test(tcase, a_script_that_wants_too_much_fails_and_others_go_on);
    tcase_add_test(tcase, garbage_is_collected_above_the_soft_limit);
    tcase_add_test(tcase, the_steady_state_asks_the_system_for_nothing);
    tcase_add_loop_test(tcase, any_allocation_of_a_script_may_fail, 0,
                        2 * (int)(sizeof(scripts) / sizeof(scripts[0])));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
