/* SPDX-License-Identifier: MIT
 *
 * The watchdog. In most cases look(ms) plays its thread, called by the script itself: the watchdog
 * looks after `ms` more of CPU time. The real thread sees so little CPU time that it does nothing.
 */
#include "lua-state.h"

#include <sys/wait.h>
#include <unistd.h>

#include "fake-os.h"
#include "fake-time.h"

#include "test-main.h"

static uint64_t cpu_ns;

static uint64_t
fake_cpu_ns(void)
{
    return cpu_ns;
}

/* look(ms): the watchdog looks, as if the script had computed for ms. */
static int
look(lua_State *L)
{
    cpu_ns += (uint64_t)luaL_checkinteger(L, 1) * SXE_NS_PER_MS;
    sxe__lua_watch_look(lua, cpu_ns, sxe_time_ns());
    return 0;
}

/* look_and_call(ms, f): no instruction of the caller is executed between look and call. */
static int
look_and_call(lua_State *L)
{
    look(L);
    lua_call(L, 0, 0);
    return 0;
}

/* look_uncounted(ms): like look, but Lua misses the instruction at which it should call the
 * hook. */
static int
look_uncounted(lua_State *L)
{
    look(L);
    lua_sethook(L, lua_gethook(L), LUA_MASKLINE, 0);
    return 0;
}

/* block(ms, cpu_ms): a C function that does not return for ms, during which the watchdog looks
 * every 10 ms, and each time finds cpu_ms more of CPU time. */
static int
block(lua_State *L)
{
    const uint64_t used_ns = (uint64_t)luaL_optinteger(L, 2, 0) * SXE_NS_PER_MS;

    for (lua_Integer ms = luaL_checkinteger(L, 1); ms > 0; ms -= 10) {
        fake_time_advance(10 * SXE_NS_PER_MS);
        sxe__lua_watch_look(lua, cpu_ns, sxe_time_ns());
        cpu_ns += used_ns;
    }
    return 0;
}

/* clock(): the CPU time in ms. */
static int
get_clock(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)(cpu_ns / SXE_NS_PER_MS));
    return 1;
}

/* Limits of 100 ms and 30 ms. The real watchdog thread sees no CPU time. */
static void
watch_start(void)
{
    state_start();
    lua->config.cpu_ms = 100;
    lua->config.slice_ms = 30;
    sxe__lua_watch_stop(lua);
    lua->watch.cpu_ns = fake_cpu_ns;
    cpu_ns = 1;
    add_global("look", look);
    add_global("clock", get_clock);
    add_global("block", block);
    add_global("look_and_call", look_and_call);
    add_global("look_uncounted", look_uncounted);
}

static void
watch_stop(void)
{
    ck_assert_int_eq(sxe__lua_watch_start(lua), 0);
    state_stop();
}

START_TEST(a_short_script_is_left_alone)
{
    watch_start();
    run_script("look(0) look(20) look(9) assert(not debug.gethook())");
    run_script("look(0) look(20) look(9) assert(not debug.gethook())");
    watch_stop();
}
END_TEST

START_TEST(a_script_that_computes_too_long_is_ended)
{
    watch_start();
    lua->config.slice_ms = 1000;
    fails_with("local n = 0\nwhile true do n = n + 1 look(10) end",
               "test:2: handler exceeded 100 ms of CPU");
    run_script("look(0) look(10)");
    watch_stop();
}
END_TEST

START_TEST(no_way_of_catching_errors_keeps_it_alive)
{
    static const char *const scripts[] = {
        "while true do pcall(function() while true do look(10) end end) end",
        "while true do xpcall(function() while true do look(10) end end, function() look(10) end) "
        "end",
        "while true do coroutine.wrap(function() while true do look(10) end end)() end",
        "while true do coroutine.resume(coroutine.create(function() while true do look(10) end "
        "end)) end",
        "while true do pcall(coroutine.wrap(function() while true do look(10) end end)) end",
        "local function f() return pcall(f) or look(10) end while true do pcall(f) end",
        "local t <close> = setmetatable({}, {__close = function() while true do look(10) end "
        "end}); (nil)()",
        "local t <close> = setmetatable({}, {__close = function() while true do look(10) end end})",
        "local t = setmetatable({}, {__index = function() while true do look(10) end end}) return "
        "t.x",
        "table.sort({3, 2, 1}, function() while true do look(10) end end)",
        "('x'):gsub('x', function() while true do look(10) end end)",
        "coroutine.wrap(function() local t <close> = setmetatable({},\n"
        "{__close = function() while true do look(10) end end}) error() end)()",
        "local co = coroutine.create(function() local t <close> = setmetatable({},\n"
        "{__close = function() while true do look(10) end end}) coroutine.yield() end)\n"
        "coroutine.resume(co) while true do coroutine.close(co) look(10) end",
        /* A message handler of xpcall, and functions that close variables, called from the hook. */
        "local function spin() while true do look(10) end end xpcall(spin, spin) spin()",
        "local function spin() while true do look(10) end end\n"
        "coroutine.wrap(function() xpcall(spin, spin) end)() spin()",
        "local function spin() while true do look(10) end end\n"
        "xpcall(table.sort, spin, {3, 2, 1}, spin) spin()",
        "local function spin() while true do look(10) end end\n"
        "coroutine.wrap(function() local t <close> = setmetatable({}, {__close = spin}) spin()\n"
        "end)()",
        "local function spin() while true do look(10) end end\n"
        "local co = coroutine.create(function()\n"
        "local t <close> = setmetatable({}, {__close = spin}) spin() end)\n"
        "coroutine.resume(co) coroutine.close(co) spin()",
        "local function spin() while true do look(10) end end\n"
        "error(setmetatable({}, {__tostring = spin}))",
        "local function spin() while true do look(10) end end\n"
        "local function handle() return xpcall(spin, handle) end xpcall(spin, handle) spin()",
        "debug.sethook(function() while true do look(10) end end, '', 1) local x = 1",
    };

    ck_assert_int_lt(_i / 2, (int)(sizeof(scripts) / sizeof(scripts[0])));
    watch_start();
    lua->config.slice_ms = 1000;
    /* Where the hook also checks C functions when they return. */
    lua->config.is_sandbox = _i % 2 == 1;
    fails_with(scripts[_i / 2], "handler exceeded 100 ms of CPU");
    watch_stop();
}
END_TEST

START_TEST(where_no_line_of_a_script_is_left_the_message_says_so)
{
    watch_start();
    lua->config.slice_ms = 1000;
    lua->config.is_sandbox = true;
    fails_with("local function spin() while true do look(10) end end return xpcall(spin, spin)",
               "a function of C: handler exceeded 100 ms of CPU");
    watch_stop();
}
END_TEST

/* describe(size): the text that the log would show about the running script. */
static int
describe(lua_State *L)
{
    char room[256];
    const size_t size = (size_t)luaL_checkinteger(L, 1);

    lua_pushinteger(L, (lua_Integer)sxe_lua_describe_running(room, size));
    lua_pushstring(L, room);
    return 2;
}

START_TEST(it_says_where_a_script_is)
{
    char room[16] = "x";

    watch_start();
    add_global("describe", describe);
    run_script("local function f() local n, text = describe(256) return n .. ' ' .. text end\n"
               "local function g() local text = f() return text end\n"
               "local text = g()\n"
               "assert(text == '32 describe, test:1, test:2, test:3', text)\n"
               "local n, text = describe(12) assert(n == 11 and text == 'describe, t', text)");
    ck_assert_uint_eq(sxe_lua_describe_running(room, sizeof(room)), 0);
    ck_assert_str_eq(room, "");
    watch_stop();
    ck_assert_uint_eq(sxe_lua_describe_running(room, sizeof(room)), 0);
}
END_TEST

START_TEST(a_finalizer_that_computes_too_long_is_ended)
{
    watch_start();
    run_script("setmetatable({}, {__gc = function() while true do look(10) end end})\n"
               "collectgarbage()");
    ck_assert(logged("handler exceeded 100 ms of CPU"));
    run_script("kept = setmetatable({}, {__gc = function() while true do look(10) end end})");
    captured.number = 0;
    watch_stop();
    ck_assert(logged("handler exceeded 100 ms of CPU"));
}
END_TEST

START_TEST(a_finalizer_that_came_late_is_ended_too)
{
    watch_start();
    (void)load_text("local metatable = {__gc = true}\n"
                    "setmetatable({}, metatable)\n"
                    "metatable.__gc = function() while true do look(10) end end\n"
                    "collectgarbage()");
    ck_assert(logged("handler exceeded 100 ms of CPU"));
    captured.number = 0;
    watch_stop();
}
END_TEST

/* The clock when lua_sethook() takes 10 ms, as one call in half a million does. */
static uint64_t
slow_cpu_ns(void)
{
    return cpu_ns += 10 * SXE_NS_PER_MS;
}

START_TEST(where_hooks_take_long_to_set_they_are_set_seldom)
{
    watch_start();
    lua->watch.cpu_ns = slow_cpu_ns;
    lua->config.cpu_ms = 100000;
    lua->config.slice_ms = 100000;
    run_script("look(0) look(0) local before = clock()\n"
               "for i = 1, 1000 do look(0) end\n"
               "assert(clock() - before < 15 * 1000, clock() - before)");
    watch_stop();
}
END_TEST

START_TEST(closing_variables_have_the_time_until_the_next_tick)
{
    watch_start();
    lua->config.slice_ms = 1000;
    fails_with(
        "closed = 0\n"
        "local t <close> = setmetatable({}, {__close = function() closed = closed + 1 end})\n"
        "while true do look(10) end",
        "handler exceeded 100 ms of CPU");
    run_script("assert(closed == 1)");
    watch_stop();
}
END_TEST

START_TEST(a_long_one_makes_way_and_is_ended_all_the_same)
{
    int n = 0;

    watch_start();
    run_script("n = 0 function get() return n end\n"
               "require 'sxe.task'.start(function()\n"
               "for i = 1, 1000 do look(10) n = n + 1 end end)");
    for (unsigned turns = 0; turns < 100 && !logged("handler exceeded"); turns++) {
        ck_assert_int_eq(sxe_lua_call(lua, "get", ">i", &n), 0);
        turn_tasks();
    }
    ck_assert(logged("handler exceeded 100 ms of CPU"));
    ck_assert_int_ge(n, 6);
    ck_assert_int_le(n, 14);
    watch_stop();
}
END_TEST

START_TEST(a_top_level_does_not_make_way_before_the_loop_runs)
{
    watch_start();
    run_script("for i = 1, 9 do look(10) end");
    ck_assert_uint_eq(lua->loading, 0);
    watch_stop();
}
END_TEST

START_TEST(a_top_level_without_a_limit_makes_way_after_a_second)
{
    int n = 0;

    watch_start();
    lua->config.cpu_ms = UINT32_MAX;
    run_script("n = 0 function get() return n end\n"
               "for i = 1, 110 do look(10) n = n + 1 end");
    ck_assert_uint_eq(lua->loading, 1);
    ck_assert_int_eq(sxe_lua_call(lua, "get", ">i", &n), 0);
    ck_assert_int_ge(n, 98);
    ck_assert_int_le(n, 103);
    watch_stop();
}
END_TEST

START_TEST(a_cancelled_one_whose_slice_has_ended_does_not_go_on)
{
    watch_start();
    run_script("local task = require 'sxe.task'\n"
               "n, is_told = 0, false\n"
               "t = task.start(function()\n"
               "    local ok, why = pcall(function() while true do n = n + 1 look(10) end end)\n"
               "    is_told = not ok and why:find('cancelled', 1, true) and n\n"
               "end)");
    turn_tasks();
    run_script("assert(t.status == 'ready' and n >= 3) before = n t:cancel()");
    turn_tasks();
    run_script("assert(t.status == 'done' and is_told == before)");
    watch_stop();
}
END_TEST

START_TEST(where_it_cannot_make_way_it_goes_on)
{
    watch_start();
    run_script("local n = 0\n"
               "table.sort({2, 1}, function() for i = 1, 8 do look(10) n = n + 1 end end)\n"
               "assert(n == 8)");
    ck_assert_uint_eq(lua->loading, 0);
    watch_stop();
}
END_TEST

START_TEST(it_makes_way_out_of_coroutines)
{
    watch_start();
    run_script("local task = require 'sxe.task' done, was_done = false, nil\n"
               "task.start(coroutine.wrap(function() coroutine.wrap(function()\n"
               "look(0) look(40) look(0) done = true end)() end))\n"
               "task.start(function() was_done = done end)");
    for (unsigned turns = 0; turns < 10; turns++)
        turn_tasks();
    run_script("assert(done and was_done == false)");
    watch_stop();
}
END_TEST

START_TEST(a_call_that_blocks_is_logged_with_its_place)
{
    fake_time_start(SXE_NS_PER_SECOND, 0);
    watch_start();
    run_script("local x\nx = block(90)\nx = block(150)\nlocal y = 1");
    ck_assert(!logged("in block at test:2"));
    ck_assert(logged("loop blocked 140 ms in block at test:3") ||
              logged("loop blocked 150 ms in block at test:3"));
    run_script("block(8000)");
    ck_assert(logged("loop blocked 1000 ms so far, by a function of C that does not return"));
    ck_assert(logged("loop blocked 4000 ms so far"));
    ck_assert(!logged("loop blocked 3000 ms so far"));
    watch_stop();
}
END_TEST

/* look_late(): the watchdog's thread reads the clock, and looks only after the loop has
 * answered. */
static int
look_late(lua_State *L)
{
    const uint64_t read_ns = sxe_time_ns();

    (void)L;
    fake_time_advance(SXE_NS_PER_MS);
    sxe__lua_watch_look(lua, cpu_ns, sxe_time_ns());
    sxe__lua_watch_look(lua, cpu_ns, read_ns);
    return 0;
}

START_TEST(an_answer_later_than_the_look_is_no_call_that_blocks)
{
    fake_time_start(2 * SXE_NS_PER_SECOND, 0);
    watch_start();
    add_global("look_late", look_late);
    run_script("look(0) look_late()");
    ck_assert(!logged("so far"));
    watch_stop();
}
END_TEST

START_TEST(a_script_s_own_hook_comes_back)
{
    watch_start();
    run_script("local n, co = 0, nil\n"
               "local function count() n = n + 1 end\n"
               "debug.sethook(count, '', 1) look(0) look(10) local before = n\n"
               "for i = 1, 100 do end assert(n >= before + 100 and debug.gethook() == count)\n"
               "co = coroutine.create(function()\n"
               "    debug.sethook(count, '', 1) look(10) for i = 1, 9 do end\n"
               "    assert(debug.gethook() == count)\n"
               "end)\n"
               "assert(coroutine.resume(co)) debug.sethook()\n"
               "look_and_call(10, coroutine.wrap(function() for i = 1, 9 do end end))\n"
               "assert(not debug.gethook())");
    watch_stop();
}
END_TEST

START_TEST(a_script_s_hook_misses_no_line)
{
    watch_start();
    run_script("local lines = {}\n"
               "local function note(_, line) lines[#lines + 1] = line end\n"
               "debug.sethook(note, 'l') look(0)\n"
               "look(10)\n"
               "look_uncounted(10)\n"
               "look_uncounted(15)\n"
               "debug.sethook()\n"
               "assert(table.concat(lines, ' ') == '4 5 6 7')\n");
    watch_stop();
}
END_TEST

static void
note_line(lua_State *L, lua_Debug *ar)
{
    (void)L;
    (void)ar;
}

/* At the end of a state its main thread runs functions. A coroutine that one of them makes has the
 * hook of the main thread: ours, which must not be taken for the script's. */
START_TEST(a_coroutine_that_is_made_while_the_main_thread_has_our_hook_gets_the_script_s)
{
    lua_State *main, *coroutine;

    watch_start();
    main = sxe__lua_main(lua);
    lua_sethook(main, note_line, LUA_MASKLINE, 0);
    sxe__lua_watch_set_hook(&lua->watch, main);
    ck_assert(lua_gethook(main) != note_line);
    coroutine = lua_newthread(main);
    sxe__lua_watch_clear_hook(&lua->watch, coroutine);
    ck_assert(lua_gethook(coroutine) == note_line);
    sxe__lua_watch_clear_hook(&lua->watch, main);
    ck_assert(lua_gethook(main) == note_line);
    lua_sethook(main, NULL, 0, 0);
    lua_pop(main, 1);
    watch_stop();
}
END_TEST

START_TEST(the_error_is_raised_once_however_late_it_is)
{
    watch_start();
    lua->config.slice_ms = 1000;
    run_script("local good, x = pcall(block, 40, 200)\n"
               "assert(not good and x == 'test:1: handler exceeded 100 ms of CPU')");
    fails_with("block(40, 200)\nlook(10)", "block at test:1: handler exceeded 100 ms of CPU");
    ck_assert(logged("     test:1: in main chunk"));
    watch_stop();
}
END_TEST

START_TEST(a_signal_that_comes_late_does_nothing)
{
    watch_start();
    fails_with("look(0) look(200)", "look at test:1: handler exceeded");
    captured.number = 0;
    raise(SIGRTMIN);
    run_script("for i = 1, 10 do end");
    ck_assert_uint_eq(captured.number, 0);
    watch_stop();
    raise(SIGRTMIN);
}
END_TEST

/* ---- The watchdog with its thread ---- */

START_TEST(the_thread_ends_endless_scripts)
{
    capture_log();
    lua = sxe_lua_new(&(struct sxe_lua_config){.cpu_ms = 20, .slice_ms = 1000});
    ck_assert_ptr_nonnull(lua);
    fails_with("while true do pcall(function() while true do end end) end",
               "handler exceeded 20 ms of CPU");
    state_stop();
}
END_TEST

START_TEST(the_thread_lets_long_ones_take_turns)
{
    capture_log();
    lua = sxe_lua_new(&(struct sxe_lua_config){.cpu_ms = 100000, .slice_ms = 1});
    ck_assert_ptr_nonnull(lua);
    run_script("stop, done = false, false\n"
               "function set() stop = true end\n"
               "require 'sxe.task'.start(function() while not stop do end done = true end)");
    turn_tasks();
    turn_tasks();
    run_script("assert(not done)");
    ck_assert_int_eq(sxe_lua_call(lua, "set", ""), 0);
    turn_tasks();
    run_script("assert(done)");
    state_stop();
}
END_TEST

static void *
have_a_state(void *barrier)
{
    struct sxe_lua *mine =
        sxe_lua_new(&(struct sxe_lua_config){.cpu_ms = 20, .slice_ms = 1000, .tasks = 4});
    static const char script[] = "while true do end";

    ck_assert_ptr_nonnull(mine);
    pthread_barrier_wait(barrier);
    ck_assert_int_eq(sxe_lua_load_text(mine, "=mine", script, sizeof(script) - 1), -EINVAL);
    pthread_barrier_wait(barrier);
    sxe_lua_delete(mine);
    return NULL;
}

START_TEST(one_thread_watches_the_states_of_all_others)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    capture_log();
    sxe_log_set_level(0);
    lua = sxe_lua_new(&(struct sxe_lua_config){.cpu_ms = 20, .slice_ms = 1000, .tasks = 4});
    ck_assert_ptr_nonnull(lua);
    pthread_barrier_init(&barrier, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, have_a_state, &barrier), 0);
    pthread_barrier_wait(&barrier);
    ck_assert_int_eq(sxe__lua_watch_start(lua), 0);
    ck_assert_int_eq(load_text("while true do end"), -EINVAL);
    state_stop();
    pthread_barrier_wait(&barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&barrier);
}
END_TEST

START_TEST(states_that_come_and_go_share_one_thread)
{
    for (int i = 0; i < 5; i++) {
        state_start();
        ck_assert_uint_eq(number_of_threads(), 2);
        state_stop();
    }
    until_unwatched();
    state_start();
    ck_assert_uint_eq(number_of_threads(), 2);
    state_stop();
}
END_TEST

static void
until_asleep(void)
{
    while (!sxe__lua_watch_is_asleep())
        poll(NULL, 0, 1);
}

START_TEST(the_thread_sleeps_while_nothing_runs_and_wakes_when_something_does)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 4, .cpu_ms = 20});
    for (int i = 0; i < 3; i++) {
        until_asleep();
        /* the watchdog has woken, because it interrupts this script */
        fails_with("while true do end", "exceeded 20 ms of CPU");
    }
    until_asleep();
    state_stop();
    until_unwatched();
}
END_TEST

START_TEST(a_child_of_one_whose_thread_sleeps_has_one_that_wakes)
{
    int status;
    pid_t child;

    state_start_with(&(struct sxe_lua_config){.tasks = 4, .cpu_ms = 20});
    until_asleep();
    child = fork();
    if (child == 0) {
        ck_assert_int_eq(sxe__lua_watch_start(lua), 0);
        until_asleep();
        fails_with("while true do end", "exceeded 20 ms of CPU");
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    state_stop();
}
END_TEST

/* Make a state when the other one has been deleted and the watchdog has not looked yet; keep it
 * until the other one's delete has returned. */
static void *
follow(void *barrier)
{
    struct sxe_lua *mine;

    pthread_barrier_wait(barrier);
    poll(NULL, 0, 2);
    mine = sxe_lua_new(&(struct sxe_lua_config){.tasks = 4});
    ck_assert_ptr_nonnull(mine);
    pthread_barrier_wait(barrier);
    sxe_lua_delete(mine);
    return NULL;
}

START_TEST(a_state_is_deleted_while_another_begins)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 5; i++) {
        state_start();
        ck_assert_int_eq(pthread_create(&thread, NULL, follow, &barrier), 0);
        pthread_barrier_wait(&barrier);
        state_stop();
        pthread_barrier_wait(&barrier);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    }
    pthread_barrier_destroy(&barrier);
    until_unwatched();
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

START_TEST(a_child_has_a_thread_of_its_own)
{
    int status;
    pid_t child;

    capture_log();
    lua = sxe_lua_new(&(struct sxe_lua_config){.cpu_ms = 20, .slice_ms = 1000});
    ck_assert_ptr_nonnull(lua);
    /* When this call returns, the watchdog's thread has begun. A child forked before that might
     * inherit a locked lock of the sanitizer's allocator. */
    ck_assert_int_eq(load_text("while true do end"), -EINVAL);
    child = fork();
    if (child == 0) {
        bool is_good = sxe__lua_watch_start(lua) == 0 && load_text("while true do end") == -EINVAL;

        sxe_lua_delete(lua);
        __gcov_dump();
        _exit(is_good ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    state_stop();
}
END_TEST

static void
exit_if_nothing_runs(void)
{
    __gcov_dump();
    _exit(sxe__lua_current()->watch.running == NULL ? 7 : 1);
}

/* The memory of the state is gone, and the watchdog's signal may still come. */
START_TEST(a_state_that_os_exit_has_closed_is_left_alone)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        lua = sxe_lua_new(&(struct sxe_lua_config){.tasks = 4});
        atexit(exit_if_nothing_runs);
        (void)!load_text("os.exit(true, true)");
        _exit(2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 7);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-watch");
    TCase *tcase = tcase_create("watch");

    tcase_add_test(tcase, a_short_script_is_left_alone);
    tcase_add_test(tcase, a_state_that_os_exit_has_closed_is_left_alone);
    tcase_add_test(tcase, a_script_that_computes_too_long_is_ended);
    tcase_add_loop_test(tcase, no_way_of_catching_errors_keeps_it_alive, 0, 42);
    tcase_add_test(tcase, where_no_line_of_a_script_is_left_the_message_says_so);
    tcase_add_test(tcase, it_says_where_a_script_is);
    tcase_add_test(tcase, a_finalizer_that_computes_too_long_is_ended);
    tcase_add_test(tcase, a_finalizer_that_came_late_is_ended_too);
    tcase_add_test(tcase, where_hooks_take_long_to_set_they_are_set_seldom);
    tcase_add_test(tcase, closing_variables_have_the_time_until_the_next_tick);
    tcase_add_test(tcase, a_long_one_makes_way_and_is_ended_all_the_same);
    tcase_add_test(tcase, a_top_level_does_not_make_way_before_the_loop_runs);
    tcase_add_test(tcase, a_top_level_without_a_limit_makes_way_after_a_second);
    tcase_add_test(tcase, a_cancelled_one_whose_slice_has_ended_does_not_go_on);
    tcase_add_test(tcase, where_it_cannot_make_way_it_goes_on);
    tcase_add_test(tcase, it_makes_way_out_of_coroutines);
    tcase_add_test(tcase, a_call_that_blocks_is_logged_with_its_place);
    tcase_add_test(tcase, an_answer_later_than_the_look_is_no_call_that_blocks);
    tcase_add_test(tcase, a_script_s_own_hook_comes_back);
    tcase_add_test(tcase, a_script_s_hook_misses_no_line);
    tcase_add_test(tcase,
                   a_coroutine_that_is_made_while_the_main_thread_has_our_hook_gets_the_script_s);
    tcase_add_test(tcase, the_error_is_raised_once_however_late_it_is);
    tcase_add_test(tcase, a_signal_that_comes_late_does_nothing);
    tcase_add_test(tcase, the_thread_ends_endless_scripts);
    tcase_add_test(tcase, the_thread_lets_long_ones_take_turns);
    tcase_add_test(tcase, one_thread_watches_the_states_of_all_others);
    tcase_add_test(tcase, states_that_come_and_go_share_one_thread);
    tcase_add_test(tcase, the_thread_sleeps_while_nothing_runs_and_wakes_when_something_does);
    tcase_add_test(tcase, a_child_of_one_whose_thread_sleeps_has_one_that_wakes);
    tcase_add_test(tcase, a_state_is_deleted_while_another_begins);
    tcase_add_test(tcase, a_child_has_a_thread_of_its_own);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
