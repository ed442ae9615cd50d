/* SPDX-License-Identifier: MIT
 *
 * The scheduler, as C functions use it: starting, parking, waking, cancelling, the loop's turns,
 * the end of a state, and the cost of tasks.
 */
#include "lua-task-world.h"

#include "event-queue.h"
#include "fake-os.h"
#include "sxe-fixture.h"

/* ---- A function that waits until C wakes it ---- */

static uint64_t waiter;
static struct sxe__lua_line line;

static void
push_leave(void *what)
{
    event_push("leave", what, 0);
}

static int
woken(lua_State *L, int status, lua_KContext context)
{
    static const char *const reasons[] = {"event", "timeout", "cancelled"};

    (void)status;
    lua_pushstring(L, reasons[sxe__lua_woken(L)]);
    lua_pushinteger(L, context);
    return 2;
}

/* wait([timeout]): park the task; returns the reason why it was woken, and 77. */
static int
l_wait(lua_State *L)
{
    waiter = sxe__lua_running(L);
    return sxe__lua_park(L, sxe__lua_deadline(L, 1), push_leave, &waiter, woken, 77);
}

static int
l_wait_in_line(lua_State *L)
{
    return sxe__lua_park_in(L, &line, sxe__lua_deadline(L, 1), woken, 78);
}

static void
push_end(lua_State *L, int status, int results, void *user)
{
    const char *text = results > 0 ? luaL_tolstring(L, -results, NULL) : "";

    event_push_data("end", user, status, text, strcspn(text, "\n"));
}

/* start_now(fn, ...): start a task that runs at once, inside of this one. */
static int
l_start_now(lua_State *L)
{
    waiter = sxe__lua_start(L, lua_gettop(L) - 1, true, push_end, &line);
    return 0;
}

static int
l_make_way(lua_State *L)
{
    return sxe__lua_make_way(L);
}

static int
l_is_leaving(lua_State *L)
{
    lua_pushboolean(L, sxe__lua_is_leaving());
    return 1;
}

static void
raise_in_hook(lua_State *L, lua_Debug *frame)
{
    (void)frame;
    lua_sethook(L, NULL, 0, 0);
    luaL_error(L, "hooked");
}

static int
l_hook(lua_State *L)
{
    lua_sethook(L, raise_in_hook, LUA_MASKCOUNT, 1000);
    return 0;
}

/* start_in_collection(fn): while the coroutine of fn is made, a finalizer starts another task. */
static int
l_start_in_collection(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCSTOP);
    lua_gc(L, LUA_GCINC, 1, 1000, 100); /* a step is a full cycle */
    ck_assert(!luaL_dostring(L, "local task, say = require 'sxe.task', require 'world'.say "
                                "setmetatable({}, {__gc = function() "
                                "task.start(say, 'finalizer') end})"));
    lua_newtable(L);
    lua_gc(L, LUA_GCRESTART);
    lua_pushboolean(L, true);
    lua_rawseti(L, -2, 1); /* this line allocates without a step of the collector */
    lua_pushvalue(L, 1);
    ck_assert_uint_ne(sxe__lua_start(L, 0, false, NULL, NULL), 0);
    return 0;
}

static const luaL_Reg functions[] = {{"hook", l_hook},
                                     {"start_in_collection", l_start_in_collection},
                                     {"wait", l_wait},
                                     {"wait_in_line", l_wait_in_line},
                                     {"start_now", l_start_now},
                                     {"make_way", l_make_way},
                                     {"is_leaving", l_is_leaving},
                                     {NULL, NULL}};

static void
begin(void)
{
    event_reset();
    line = (struct sxe__lua_line){0};
    begin_world();
    ck_assert_int_eq(sxe_lua_module(lua, "c", functions), 0);
}

#define C "local c = require 'c' "

static void
expect_end(int status, const char *text)
{
    const struct event *event = event_pop();

    ck_assert_str_eq(event->name, "end");
    ck_assert_int_eq(event->number, status);
    ck_assert_str_eq(event->data, text);
}

/* ---- Parking and waking ---- */

START_TEST(an_event_wakes_and_does_not_leave)
{
    begin();
    SCRIPT(C "say(c.wait())");
    ck_assert_str_eq(said, "");
    ck_assert(sxe__lua_wake(waiter, SXE__LUA_EVENT));
    ck_assert(!sxe__lua_wake(waiter, SXE__LUA_EVENT));
    sxe_run();
    ck_assert_str_eq(said, "event 77;");
    ck_assert(!sxe__lua_wake(waiter, SXE__LUA_EVENT));
    ck_assert_uint_eq(event_count(), 0);
    end_world();
}
END_TEST

START_TEST(a_timeout_leaves_first)
{
    begin();
    ck_assert_str_eq(SCRIPT(C "say(c.wait(3)) say(world.now())"), "timeout 77;3;");
    ck_assert_ptr_eq(event_pop()->object, &waiter);
    ck_assert(!sxe__lua_wake(waiter, SXE__LUA_EVENT));
    end_world();
}
END_TEST

START_TEST(cancelling_leaves_first_wherever_it_comes_from)
{
    begin();
    SCRIPT(C "say(c.wait())");
    sxe__lua_cancel(waiter);
    ck_assert_str_eq(event_pop()->name, "leave");
    sxe_run();
    ck_assert_str_eq(said, "cancelled 77;");
    sxe__lua_cancel(waiter);
    ck_assert_str_eq(SCRIPT(C "task.self():cancel() say(c.wait()) say(pcall(c.wait))"),
                     "cancelled 77;false cancelled;");
    ck_assert_str_eq(event_pop()->name, "leave");
    ck_assert_str_eq(event_pop()->name, "leave");
    ck_assert_uint_eq(event_count(), 0);
    end_world();
}
END_TEST

START_TEST(where_nothing_can_wait_it_leaves_and_raises)
{
    begin();
    ck_assert_str_eq(
        SCRIPT(C "say(pcall(function() string.gsub('a', 'a', function() c.wait() end) end))"),
        "false test:1: cannot wait inside of gsub, a C function;");
    ck_assert_str_eq(event_pop()->name, "leave");
    end_world();
}
END_TEST

START_TEST(a_line_is_woken_in_its_order_and_anyone_may_leave)
{
    begin();
    ck_assert(!sxe__lua_wake_first(&line));
    SCRIPT(C "local t = {} for i = 1, 5 do t[i] = task.start(function() "
             "say(i, c.wait_in_line(i == 3 and 1 or nil)) end) end task.sleep(2) "
             "t[1]:cancel() t[5]:cancel()");
    ck_assert_str_eq(said, "3 timeout 78;1 cancelled 78;5 cancelled 78;");
    ck_assert(sxe__lua_wake_first(&line));
    ck_assert(sxe__lua_wake_first(&line));
    ck_assert(!sxe__lua_wake_first(&line));
    ck_assert_uint_eq(line.last, 0);
    sxe_run();
    ck_assert_str_eq(said, "3 timeout 78;1 cancelled 78;5 cancelled 78;2 event 78;4 event 78;");
    end_world();
}
END_TEST

START_TEST(making_way_lets_others_run_and_goes_on)
{
    begin();
    ck_assert_str_eq(SCRIPT(C "task.start(say, 'other') say 'before' "
                              "coroutine.wrap(function() c.make_way() say 'inside' end)() "
                              "say('after', c.is_leaving())"),
                     "before;other;inside;after false;");
    ck_assert(!sxe__lua_is_leaving());
    end_world();
}
END_TEST

/* ---- Starting ---- */

START_TEST(a_task_may_run_at_once_inside_another)
{
    begin();
    ck_assert_str_eq(SCRIPT(C "c.start_now(function(...) say(...) task.sleep(1) say 'slept' "
                              "return 'end' end, 1, 2) say 'back'"),
                     "1 2;back;slept;");
    expect_end(LUA_OK, "end");
    end_world();
}
END_TEST

START_TEST(whoever_started_it_hears_how_it_ended)
{
    begin();
    SCRIPT(C "c.start_now(function() return 'a', 'b' end)");
    expect_end(LUA_OK, "a");
    SCRIPT(C "c.start_now(function() end)");
    expect_end(LUA_OK, "");
    SCRIPT(C "c.start_now(error, 'text')");
    expect_end(LUA_ERRRUN, "text");
    SCRIPT(C "c.start_now(error, 404)");
    expect_end(LUA_ERRRUN, "404");
    SCRIPT(C "c.start_now(c.wait)");
    ck_assert_ptr_eq(sxe__lua_user(waiter), &line);
    sxe__lua_cancel(waiter);
    ck_assert_str_eq(event_pop()->name, "leave");
    sxe_run();
    expect_end(LUA_OK, "cancelled");
    ck_assert_ptr_null(sxe__lua_user(waiter));
    SCRIPT(C "c.start_now(function() c.wait() c.wait() end)");
    sxe__lua_cancel(waiter);
    sxe_run();
    event_pop();
    event_pop();
    expect_end(LUA_YIELD, "");
    end_world();
}
END_TEST

START_TEST(tasks_inside_tasks_end_before_the_stack_of_C_does)
{
    begin();
    ck_assert_str_eq(SCRIPT(C "local depth = 0 local function deeper() depth = depth + 1 "
                              "c.start_now(deeper) end deeper() say(depth)"),
                     "16;");
    end_world();
    event_reset();
    begin_world_with(&(struct sxe_lua_config){.tasks = 1000});
    ck_assert_int_eq(sxe_lua_module(lua, "c", functions), 0);
    SCRIPT(C "for i = 1, 300 do task.start(task.sleep, 1) end");
    ck_assert_str_eq(SCRIPT(C "local depth = 0 local function deeper() depth = depth + 1 "
                              "c.start_now(deeper) end deeper() say(depth < 250)"),
                     "true;");
    expect_end(LUA_ERRRUN, "C stack overflow");
    end_world();
}
END_TEST

START_TEST(coroutines_are_used_again_the_warmest_first)
{
    begin();
    ck_assert_str_eq(
        SCRIPT(
            "local seen, n = {}, 0 for i = 1, 20 do pcall(task.self().join, task.start(function() "
            "local co = coroutine.running() if not seen[co] then n = n + 1 seen[co] = true end "
            "if i % 4 == 0 then error {} end end)) end say(n)"),
        "1;");
    end_world();
}
END_TEST

START_TEST(a_finalizer_may_start_a_task_while_another_is_started)
{
    begin();
    ck_assert_str_eq(SCRIPT(C "c.start_in_collection(function() say 'started' end)"),
                     "finalizer;started;");
    end_world();
}
END_TEST

/* The hook raises, as the watchdog's does. Lua leaves hooks off in a coroutine after that. */
START_TEST(hooks_work_in_a_coroutine_after_one_raised_in_it)
{
    begin();
    ck_assert_str_eq(SCRIPT(C "for i = 1, 2 do local t = task.start(function() "
                              "local x <close> = setmetatable({}, {__close = function() c.hook() "
                              "while true do end end}) c.hook() while true do end end) "
                              "say(pcall(t.join, t)) end"),
                     "false hooked;false hooked;");
    end_world();
}
END_TEST

/* The coroutine of a task that ends well is used again, but not with its hook. */
START_TEST(a_hook_ends_with_its_task)
{
    begin();
    ck_assert_str_eq(SCRIPT("for i = 1, 3 do local t = task.start(function() "
                            "local had = debug.gethook() "
                            "debug.sethook(function() say 'called' end, '', 100000) "
                            "say(had) end) t:join() end"),
                     "nil;nil;nil;");
    end_world();
}
END_TEST

/* ---- The loop's turns ---- */

START_TEST(a_turn_runs_so_many_and_then_looks_at_sockets)
{
    begin_world_with(&(struct sxe_lua_config){.tasks = 16, .ready_max = 4});
    load_text(PRELUDE "for i = 1, 9 do task.start(function() for k = 1, 2 do say(i) "
                      "coroutine.yield() end end) end");
    turn(1);
    ck_assert_str_eq(said, "1;2;3;4;");
    turn(1);
    ck_assert_str_eq(said, "1;2;3;4;5;6;7;8;");
    turn(1);
    ck_assert_str_eq(said, "1;2;3;4;5;6;7;8;9;1;2;3;");
    sxe_run();
    ck_assert_uint_eq(tasks_left(), 0);
    end_world();
}
END_TEST

START_TEST(a_turn_runs_each_once)
{
    begin_world();
    load_text(PRELUDE "for i = 1, 3 do task.start(function() for k = 1, 2 do say(i) "
                      "task.start(say, 'new') task.sleep(0) end end) end");
    turn(1);
    ck_assert_str_eq(said, "1;2;3;");
    turn(1);
    ck_assert_str_eq(said, "1;2;3;new;new;new;1;2;3;");
    sxe_run();
    end_world();
}
END_TEST

START_TEST(a_turn_ends_after_a_slice_of_time)
{
    begin_world_with(&(struct sxe_lua_config){.tasks = 16, .slice_ms = 10});
    load_text(PRELUDE "for i = 1, 5 do task.start(function() say(i) advance(0.004) end) end");
    turn(1);
    ck_assert_str_eq(said, "1;2;3;");
    turn(1);
    ck_assert_str_eq(said, "1;2;3;4;5;");
    end_world();
}
END_TEST

START_TEST(a_task_may_end_others_that_are_ready)
{
    begin_world();
    ck_assert_str_eq(
        SCRIPT("local a, b task.start(function() a:cancel() b:cancel() say 'first' end) "
               "a, b = task.start(say, 'a'), task.start(say, 'b')"),
        "first;");
    end_world();
}
END_TEST

START_TEST(a_storm_of_ready_tasks_does_not_starve_sockets)
{
    const void *accepted;
    SXE *listener;
    int peer;

    begin_world_with(&(struct sxe_lua_config){.tasks = 16});
    event_reset();
    listener = listen_tcp(push_read);
    load_text(PRELUDE "for i = 1, 15 do task.start(function() while true do "
                      "coroutine.yield() end end) end");
    peer = peer_connect(sxe_local_port(listener));
    accepted = EXPECT("connected", NULL, 0)->object;
    peer_send(peer, "hi", 2);
    EXPECT_READ(accepted, "hi");
    close(peer);
    EXPECT("close", accepted, 0);
    end_world();
}
END_TEST

START_TEST(what_waits_for_nothing_does_not_keep_the_loop)
{
    begin();
    SCRIPT(C "task.start(c.wait) task.event():wait()");
    ck_assert_uint_eq(tasks_left(), 2);
    end_world();
}
END_TEST

START_TEST(tasks_may_wait_before_the_loop_is_there)
{
    begin_state(&(struct sxe_lua_config){.tasks = 16});
    ck_assert_int_eq(load_text(PRELUDE "task.sleep(1) say 'slept'"), 0);
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_lua_init(lua), 0);
    sxe_run();
    ck_assert_str_eq(said, "slept;");
    end_world();
}
END_TEST

/* 500 tasks with random deadlines, many of them cancelled: each is woken in time and in order. */
START_TEST(deadlines_come_in_order_whatever_is_cancelled)
{
    begin_world_with(&(struct sxe_lua_config){.tasks = 600});
    ck_assert_str_eq(
        SCRIPT("math.randomseed(7) local last, woken, cancelled, late = 0, 0, 0, 0 local t = {} "
               "for i = 1, 500 do t[i] = task.start(function() local s = math.random(1, 100) / 10 "
               "local due = world.now_ms() + 1000 * s if task.sleep(s) then woken = woken + 1 "
               "local now = world.now_ms() if now < last or now < due or now > due + 2 then "
               "late = late + 1 end last = now else cancelled = cancelled + 1 end end) end "
               "task.start(function() for i = 1, 400 do task.sleep(0.02) "
               "t[math.random(500)]:cancel() end end) "
               "for i = 1, 500 do t[i]:join() end say(woken + cancelled, late, cancelled > 50)"),
        "500 0 true;");
    ck_assert_uint_eq(SCHEDULER->heap_used, 0);
    end_world();
}
END_TEST

/* ---- Sandboxes ---- */

START_TEST(in_a_sandbox_scripts_leave_tasks_to_others)
{
    /* Each script has 16 tasks of its own, and all scripts together leave 16 of the 64. */
    static const char *const expected[] = {"n == 15", "n == 15", "n == 15", "n == 2", "n == 0"};
    char text[200];

    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .tasks = 64});
    for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        snprintf(text, sizeof(text),
                 "local task, n = require 'sxe.task', 0\n"
                 "while task.start(task.sleep, 1000) do n = n + 1 end assert(%s, n)",
                 expected[i]);
        run_script(text);
    }
    state_stop();
}
END_TEST

/* ---- The end of a state ---- */

START_TEST(deleting_a_state_ends_its_tasks_and_closes_what_they_have)
{
    begin();
    SCRIPT(C "for i = 1, 3 do task.start(function() local x <close> = setmetatable({}, "
             "{__close = function() say('closed', i, task.start(say, 'never')) end}) "
             "c.wait() end) end");
    ck_assert_str_eq(said, "");
    load_text(PRELUDE "task.start(say, 'never begun')");
    state_stop();
    ck_assert_str_eq(said, "closed 1 nil no task is free, or no memory for one;"
                           "closed 2 nil no task is free, or no memory for one;"
                           "closed 3 nil no task is free, or no memory for one;");
    end_world();
}
END_TEST

START_TEST(what_fails_at_the_end_is_logged)
{
    begin();
    SCRIPT(C "local e = task.event() task.start(function() local c <close> = setmetatable({}, "
             "{__close = function() e:set() error 'no' end}) task.event():wait() end) "
             "task.start(function() say(e:wait()) end)");
    state_stop();
    ck_assert_str_eq(said, "");
    ck_assert(logged("task: test:1: no"));
    end_world();
}
END_TEST

START_TEST(without_memory_in_Lua_there_is_no_scheduler)
{
    int result;

    begin_world();
    sxe__lua_tasks_stop();
    for (uint64_t nth = 0;; nth++) {
        sxe__lua_tasks_close();
        lua->heap.fail_after = nth;
        lua->heap.fail_times = 2;
        result = sxe__lua_tasks_open(sxe__lua_main(lua), sxe__lua_config());
        if (result == 0)
            break;
        ck_assert_int_eq(result, -ENOMEM);
        ck_assert_uint_eq(sxe__lua_running(NULL), 0);
    }
    lua->heap.fail_times = 0;
    ck_assert_str_eq(sxe_pool_state_to_string(SCHEDULER->tasks, SXE__LUA_PARKED), "PARKED");
    end_world();
}
END_TEST

START_TEST(without_memory_there_is_no_scheduler)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC,  FAKE_CALLOC,        FAKE_MMAP,
                                           FAKE_REALLOC, FAKE_ALIGNED_ALLOC, FAKE_POSIX_MEMALIGN};
    unsigned nth = 0;

    sxe_log_to_fd(-1);
    do {
        fake_os_reset();
        fake_os_sweep(kinds, sizeof(kinds) / sizeof(*kinds), ++nth, false, ENOMEM);
        lua = sxe_lua_new(&(struct sxe_lua_config){.tasks = 16});
        ck_assert(lua != NULL || fake_os_injected() != 0);
        if (lua != NULL)
            sxe_lua_delete(lua);
        ck_assert_uint_eq(sxe__lua_running(NULL), 0);
    } while (fake_os_injected() != 0);
}
END_TEST

/* ---- Memory of tasks ---- */

#if SXE_HAVE_ASAN
#    define MANY "5000"
#else
#    define MANY "100000"
#endif

START_TEST(a_task_that_sleeps_costs_at_most_1_5_kib)
{
    const unsigned many = (unsigned)atol(MANY);
    size_t before;
    size_t each;

    begin_world_with(&(struct sxe_lua_config){.tasks = 100001, .memory_max = 1u << 30});
    SCRIPT("");
    before = sxe_lua_memory(lua, NULL);
    load_text(PRELUDE "local function sleeper() task.sleep(100) end "
                      "for i = 1, " MANY " do task.start(sleeper) end");
    while (SCHEDULER->heap_used < many)
        turn(1);
    each = (sxe_lua_memory(lua, NULL) - before) / many;
    /* The memory that C needs for each task. */
    each += sizeof(struct sxe__lua_task) + 24 + sizeof(uint32_t);
    ck_assert_uint_le(each, 1536);
    sxe_run();
    ck_assert_uint_eq(tasks_left(), 0);
    end_world();
}
END_TEST

/* ---- Fairness: two scripts are two groups of tasks ---- */

static void
expect_of_both(const char *first, const char *second, const char *says)
{
    begin();
    SCHEDULER->slice_ns = 10 * SXE_NS_PER_MS;
    load_text(first);
    load_text(second);
    sxe_run();
    ck_assert_str_eq(said, says);
    ck_assert_uint_eq(tasks_left(), 0);
    end_world();
}

START_TEST(tasks_that_compute_stand_back_for_those_of_others)
{
    expect_of_both(PRELUDE "for i = 1, 5 do task.start(function() say(i) advance(0.02) end) end",
                   PRELUDE "for _, name in ipairs{'a', 'b'} do task.sleep(0.001) say(name) end",
                   "1;a;2;b;3;4;5;");
    expect_of_both(PRELUDE "for i = 1, 3 do task.start(function() for k = 1, 2 do "
                           "say(i, k) advance(0.2) task.sleep(0) end end) end",
                   PRELUDE
                   "for _, name in ipairs{'a', 'b', 'c', 'd'} do task.sleep(0.001) say(name) end",
                   "1 1;a;2 1;b;3 1;c;1 2;d;2 2;3 2;");
}
END_TEST

START_TEST(what_a_group_computed_is_forgiven_after_a_while)
{
    expect_of_both(PRELUDE "for i = 1, 2 do task.start(function() advance(0.02) task.sleep(1) "
                           "say(i) advance(0.001) end) end",
                   PRELUDE "task.sleep(1) say 'a'", "a;1;2;");
}
END_TEST

START_TEST(groups_of_tasks_that_stand_back_take_turns)
{
    expect_of_both(C PRELUDE "for i = 1, 3 do task.start(function() for k = 1, 2 do say(i, k) "
                             "c.make_way() end end) end",
                   C PRELUDE "c.make_way() say 'a' c.make_way() say 'b'",
                   "1 1;2 1;3 1;a;1 2;b;2 2;3 2;");
}
END_TEST

/* A task that has used up its slice is ready, and can be cancelled, alone in its group or not. */
START_TEST(a_task_that_stands_back_can_be_cancelled)
{
    static const char canceller[] =
        C PRELUDE "c.make_way() task.sleep(0.001) say(world.t.status) world.t:cancel() "
                  "say(world.t.status, #task.all()) c.make_way() say 'end'";

    expect_of_both(PRELUDE "task.start(advance, 0.02) world.t = task.start(say, 'never')",
                   canceller, "ready;cancelled 1;end;");
    expect_of_both(PRELUDE "task.start(advance, 0.02) world.t = task.start(say, 'never') "
                           "task.sleep(1)",
                   canceller, "ready;cancelled 2;end;");
    /* The canceller, too, has used up its slice, and runs last. */
    expect_of_both(PRELUDE "task.start(advance, 0.02) world.t = task.start(say, 'never')",
                   C PRELUDE "c.make_way() c.make_way() world.t:cancel() say(world.t.status)",
                   "cancelled;");
}
END_TEST

/* A group may have thousands of tasks that wait for a slice; a cancelled one must come first,
 * because it may end the others. */
START_TEST(a_cancelled_task_comes_before_the_others_of_its_group)
{
    static const char group[] =
        C PRELUDE "for i = 1, 4 do local t = task.start(function() say(i) c.make_way() say(i) "
                  "c.make_way() say(i) end) if i == 3 then world.t = t end end";

    expect_of_both(group, C PRELUDE "c.make_way() world.t:cancel()", "1;2;3;4;3;3;1;2;4;1;2;4;");
    /* A cancelled task that is alone in its group comes first, too. */
    expect_of_both(C PRELUDE "world.t = task.start(function() c.make_way() say(1) end)",
                   C PRELUDE "c.make_way() world.t:cancel() say 'cancelled'", "cancelled;1;");
}
END_TEST

START_TEST(a_group_that_ends_leaves_the_others_that_stand_back)
{
    begin();
    SCHEDULER->slice_ns = 10 * SXE_NS_PER_MS;
    load_text(C PRELUDE "for i = 1, 4 do c.make_way() say(i) end");
    load_text(PRELUDE "task.start(advance, 0.02) world.t = task.start(say, 'never')");
    load_text(PRELUDE "task.sleep(0.001) world.t:cancel() say(world.t.status)");
    sxe_run();
    ck_assert_str_eq(said, "1;cancelled;2;3;4;");
    load_text(C "c.make_way() error 'it is deleted before'");
    end_world();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-task");
    TCase *tc = tcase_create("scheduler");

    tcase_add_test(tc, tasks_that_compute_stand_back_for_those_of_others);
    tcase_add_test(tc, what_a_group_computed_is_forgiven_after_a_while);
    tcase_add_test(tc, groups_of_tasks_that_stand_back_take_turns);
    tcase_add_test(tc, a_task_that_stands_back_can_be_cancelled);
    tcase_add_test(tc, a_cancelled_task_comes_before_the_others_of_its_group);
    tcase_add_test(tc, a_group_that_ends_leaves_the_others_that_stand_back);
    suite_add_tcase(s, tc);
    tcase_add_test(tc, an_event_wakes_and_does_not_leave);
    tcase_add_test(tc, a_timeout_leaves_first);
    tcase_add_test(tc, cancelling_leaves_first_wherever_it_comes_from);
    tcase_add_test(tc, where_nothing_can_wait_it_leaves_and_raises);
    tcase_add_test(tc, a_line_is_woken_in_its_order_and_anyone_may_leave);
    tcase_add_test(tc, making_way_lets_others_run_and_goes_on);
    tcase_add_test(tc, a_task_may_run_at_once_inside_another);
    tcase_add_test(tc, whoever_started_it_hears_how_it_ended);
    tcase_add_test(tc, tasks_inside_tasks_end_before_the_stack_of_C_does);
    tcase_add_test(tc, coroutines_are_used_again_the_warmest_first);
    tcase_add_test(tc, a_finalizer_may_start_a_task_while_another_is_started);
    tcase_add_test(tc, hooks_work_in_a_coroutine_after_one_raised_in_it);
    tcase_add_test(tc, a_hook_ends_with_its_task);
    tcase_add_test(tc, a_turn_runs_so_many_and_then_looks_at_sockets);
    tcase_add_test(tc, a_turn_runs_each_once);
    tcase_add_test(tc, a_turn_ends_after_a_slice_of_time);
    tcase_add_test(tc, a_task_may_end_others_that_are_ready);
    tcase_add_test(tc, a_storm_of_ready_tasks_does_not_starve_sockets);
    tcase_add_test(tc, what_waits_for_nothing_does_not_keep_the_loop);
    tcase_add_test(tc, tasks_may_wait_before_the_loop_is_there);
    tcase_add_test(tc, deadlines_come_in_order_whatever_is_cancelled);
    tcase_add_test(tc, deleting_a_state_ends_its_tasks_and_closes_what_they_have);
    tcase_add_test(tc, what_fails_at_the_end_is_logged);
    tcase_add_test(tc, in_a_sandbox_scripts_leave_tasks_to_others);
    tcase_add_test(tc, without_memory_in_Lua_there_is_no_scheduler);
    tcase_add_test(tc, without_memory_there_is_no_scheduler);
    tcase_add_test(tc, a_task_that_sleeps_costs_at_most_1_5_kib);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
