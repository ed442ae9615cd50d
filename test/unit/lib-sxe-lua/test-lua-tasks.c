/* SPDX-License-Identifier: MIT
 *
 * require "sxe.task" as scripts use it: each case is a script, and the text that it must say.
 */
#include "lua-task-world.h"

#define S(script, says)      \
    {                        \
        PRELUDE script, says \
    }

static const struct story starting[] = {
    S("task.start(say, 'a', 1) say 'b'", "b;a 1;"),
    S("task.start(function(...) say(select('#', ...), ...) end, nil, nil)", "2 nil nil;"),
    S("local t = task.start(function() return 1, nil, 3 end) say(t:join()) say(t:join())",
      "1 nil 3;1 nil 3;"),
    S("local t = task.start(function() end) say(select('#', t:join()))", "0;"),
    S("local t = task.start(function() return nil end) say(select('#', t:join()))", "1;"),
    S("local t = task.start(function() return {} end) task.sleep(1) say(type(t:join()))", "table;"),
    S("say(pcall(task.start, 1))",
      "false bad argument #1 to 'sxe.task.start' (function expected, got number);"),
    S("say(pcall(task.start))",
      "false bad argument #1 to 'sxe.task.start' (function expected, got no value);"),
    S("local t <const> = task.start(function() error 'no' end) say(pcall(t.join, t)) "
      "say(pcall(t.join, t))",
      "false test:1: no;false test:1: no;"),
    S("local e = {} local t = task.start(error, e) local ok, got = pcall(t.join, t) say(got == e)",
      "true;"),
    S("local t = task.start(error) say(pcall(t.join, t)) say(t.status)", "false nil;failed;"),
    S("local t = task.start(task.sleep, 5) say(t:join(1)) say(t:join(10))", "nil timeout;true;"),
    S("local t = task.start(task.sleep, 5) say(t:join{timeout = 1})", "nil timeout;"),
    S("local t = task.start(task.sleep, 1) "
      "for i = 1, 3 do task.start(function() t:join() say(i) end) end",
      "1;2;3;"),
    S("local me = task.self() say(pcall(me.join, me))",
      "false a task cannot wait for its own end;"),
    S("local all = {} for i = 1, 15 do all[i] = task.start(task.sleep, 1) end "
      "say(task.start(print)) all[7]:join() say(task.start(function() end) ~= nil)",
      "nil no task is free, or no memory for one;true;"),
    S("say(pcall(task.self().join, 1))",
      "false bad argument #1 to '?' (sxe.task expected, got number);"),
    S("local t = task.start(function() return table.unpack({}, 1, 100) end) say(select('#', "
      "t:join()))",
      "100;"),
};

START_TEST(tasks_start_and_are_joined)
{
    check_story(&starting[_i]);
}
END_TEST

/* A cancelled task gets "cancelled" from task.deadline, whose function does not run. */
START_TEST(a_deadline_of_a_cancelled_task_begins_nothing)
{
    static const struct story story =
        S("local t = task.start(function() say(task.sleep(9)) "
          "local ok, why = pcall(task.deadline, 1, say, 'never') "
          "say(ok, why:match 'cancelled$') end) "
          "task.sleep(1) t:cancel() t:join() task.sleep(1) say(#task.all())",
          "nil cancelled;false cancelled;1;");

    check_story(&story);
}
END_TEST

static const struct story sleeping[] = {
    S("for i = 3, 1, -1 do task.start(function() task.sleep(i) say(i) end) end", "1;2;3;"),
    S("for i = 1, 3 do task.start(function() task.sleep(1) say(i) end) end", "1;2;3;"),
    S("for i = 1, 2 do task.start(function() for k = 1, 2 do say(i, k) task.sleep(0) end end) end",
      "1 1;2 1;1 2;2 2;"),
    S("for i = 1, 2 do task.start(function() for k = 1, 2 do say(i, k) coroutine.yield(9) end end) "
      "end",
      "1 1;2 1;1 2;2 2;"),
    S("say(task.sleep(1))", "true;"),
    S("package.preload.slow = function(name) task.sleep(1) return name end "
      "task.start(say, 'meanwhile') say((require 'slow'))",
      "meanwhile;slow;"),
    S("say(pcall(task.sleep)) say(pcall(task.sleep, {})) say(pcall(task.sleep, -1)) "
      "say(pcall(task.sleep, '1'))",
      "false bad argument #1 to 'sxe.task.sleep' (number expected, got no value);"
      "false bad argument #1 to 'sxe.task.sleep' (number expected, got table);"
      "false bad argument #1 to 'sxe.task.sleep' (a timeout in seconds expected);"
      "false bad argument #1 to 'sxe.task.sleep' (a timeout in seconds expected, not a string);"),
    S("local numbers = coroutine.wrap(function() for i = 1, 3 do task.sleep(1) "
      "coroutine.yield(i) end end) task.start(function() task.sleep(1.5) say 'between' end) "
      "say(numbers()) say(numbers()) say(numbers())",
      "1;between;2;3;"),
    S("local co = coroutine.create(function() task.sleep(1) say 'inside' end) "
      "task.start(function() say(coroutine.resume(co)) end) coroutine.resume(co)",
      "false cannot resume a coroutine that waits;inside;"),
    S("local me = coroutine.running() task.start(function() say(coroutine.resume(me)) "
      "say(pcall(coroutine.close, me)) end) task.sleep(1)",
      "false cannot resume a coroutine that waits;"
      "false cannot close a coroutine that waits;"),
    S("say(pcall(function() table.sort({1, 2}, function() task.sleep(1) end) end))",
      "false test:1: cannot wait inside of sort, a C function;"),
    S("say(pcall(function() table.sort({1, 2}, function() assert(pcall(task.sleep, 1)) end) end))",
      "false test:1: cannot wait inside of sort, a C function;"),
    S("say(pcall(table.sort, {1, 2}, function() task.sleep(1) end))",
      "false test:1: cannot wait here, a C function or a finalizer is in between;"),
    S("setmetatable({}, {__gc = function() say(pcall(task.sleep, 1)) end}) collectgarbage()",
      "false cannot wait here, a C function or a finalizer is in between;"),
    S("local ok, e = pcall(function() local c <close> = setmetatable({}, {__close = function() "
      "task.sleep(1) say 'closed' end}) error 'x' end) say(ok, e)",
      "closed;false test:1: x;"),
    S("local t = task.start(function() local c <close> = setmetatable({}, {__close = function() "
      "say(task.sleep(1)) end}) error 'x' end) say(pcall(t.join, t))",
      "true;false test:1: x;"),
};

START_TEST(waiting_lets_others_run)
{
    check_story(&sleeping[_i]);
}
END_TEST

/* Each way of waiting, in a task t that is cancelled while it waits. */
#define CANCELLED(wait)                                                                       \
    S("local lock, none, event, empty, full = task.lock(), task.semaphore(0), task.event(), " \
      "task.queue(), task.queue(1) lock:acquire() full:put(1) local sleeper = "               \
      "task.start(task.sleep, 9) "                                                            \
      "local t = task.start(function() say(" wait ") return 'end' end) task.sleep(1) "        \
      "t:cancel() say(t.status) t:cancel() say(t:join()) say(t.status) sleeper:cancel()",     \
      "ready;nil cancelled;end;done;")

static const struct story cancelling[] = {
    CANCELLED("task.sleep(5)"),
    CANCELLED("task.sleep(1e100)"),
    CANCELLED("sleeper:join()"),
    CANCELLED("sleeper:join(8)"),
    CANCELLED("lock:acquire()"),
    CANCELLED("none:acquire(7)"),
    CANCELLED("event:wait()"),
    CANCELLED("empty:get()"),
    CANCELLED("full:put(2)"),
    CANCELLED("empty:each()(empty)"),
    CANCELLED("task.deadline(8, task.sleep, 9)"),
    CANCELLED("task.parallel{function() task.sleep(9) end}"),
    CANCELLED("coroutine.wrap(function() return task.sleep(9) end)()"),
    /* Cancelled before it began. */
    S("local t = task.start(say, 'never') t:cancel() say(t.status, t:join())",
      "cancelled nil cancelled;"),
    /* Cancelled while it runs: the next wait returns. */
    S("task.self():cancel() say(task.sleep(1)) say(pcall(task.sleep, 1)) say(pcall(task.sleep, 1))",
      "nil cancelled;false cancelled;false cancelled;"),
    /* A task that ignores its cancelling is ended. */
    S("local t = task.start(function() local c <close> = setmetatable({}, {__close = function() "
      "say 'closed' end}) while true do task.sleep(1) say 'tick' end end) "
      "task.sleep(2.5) t:cancel() say(t:join()) say(t.status)",
      "tick;tick;tick;closed;nil cancelled;cancelled;"),
    S("local t = task.start(function() assert(task.sleep(9)) end) task.sleep(1) t:cancel() "
      "say(t:join())",
      "nil cancelled;"),
    S("local n = 0 local t = task.start(function() local _ <close> = setmetatable({}, {__close = "
      "function() say 'closed' end}) while true do pcall(task.sleep, 9) n = n + 1 end end) "
      "task.sleep(1) t:cancel() say(t:join()) say(n, t.status)",
      "closed;nil cancelled;101 cancelled;"),
    S("local n = 0 local t = task.start(function() coroutine.wrap(function() while true do "
      "pcall(task.sleep, 9) n = n + 1 end end)() end) "
      "task.sleep(1) t:cancel() say(t:join()) say(n, t.status)",
      "nil cancelled;101 cancelled;"),
    S("local t = task.start(function() task.sleep(9) error 'a bug' end) task.sleep(1) t:cancel() "
      "say(pcall(t.join, t)) say(t.status)",
      "false test:1: a bug;failed;"),
    S("local t = task.start(function() task.sleep(9) error {} end) task.sleep(1) t:cancel() "
      "say((pcall(t.join, t))) say(t.status)",
      "false;failed;"),
    S("local t = task.start(function() local c <close> = setmetatable({}, {__close = function() "
      "error 'in close' end}) task.sleep(9) task.sleep(9) end) task.sleep(1) t:cancel() "
      "say(pcall(t.join, t))",
      "false test:1: in close;"),
    /* Cancelled when it is running or ready. */
    S("local t t = task.start(function() say(task.sleep(1)) say(task.sleep(1)) end) "
      "task.sleep(1) say(t.status) t:cancel() say(t.status)",
      "ready;ready;true;nil cancelled;"),
    /* on_cancel */
    S("local t = task.start(function() say(task.sleep(9)) end) "
      "t:on_cancel(function() task.sleep(1) say 'late' end):on_cancel(function() say 'first' end) "
      "task.sleep(1) t:cancel() t:cancel()",
      "first;nil cancelled;late;"),
    S("local t = task.start(function() say(task.sleep(9)) task.sleep(9) end) task.sleep(1) "
      "t:cancel() say(t:on_cancel(function() say 'at once' end) == t) task.sleep(1) t:join() "
      "t:on_cancel(say) task.sleep(1)",
      "true;nil cancelled;at once;"),
    S("say(pcall(task.self().on_cancel, task.self()))",
      "false bad argument #2 to '?' (function expected, got no value);"),
    S("do local t <close> = task.start(function() say(task.sleep(9)) end) task.sleep(1) end",
      "nil cancelled;"),
    /* A task that joins another one is cancelled when the other one has just ended. */
    S("local a = task.start(task.sleep, 1) local b = task.start(function() say(a:join()) end) "
      "task.sleep(0.5) a:cancel() b:cancel()",
      "nil cancelled;"),
};

START_TEST(cancelled_tasks_are_told_once_and_then_ended)
{
    check_story(&cancelling[_i]);
}
END_TEST

static const struct story locks[] = {
    S("local l = task.lock() for i = 1, 3 do task.start(function() local held <close> = "
      "l:acquire() "
      "say(i, held == l) task.sleep(1) say(i) end) end",
      "1 true;1;2 true;2;3 true;3;"),
    S("local l = task.lock() l:acquire() say(pcall(l.acquire, l)) l:release() "
      "say(pcall(l.release, l))",
      "false this task has the lock already;false this task does not have the lock;"),
    S("local l = task.lock() task.start(function() l:acquire() task.sleep(2) l:release() end) "
      "task.sleep(1) say(pcall(l.release, l)) say(l:acquire(0)) say(l:acquire(0.5)) "
      "say(l:acquire(5) == l)",
      "false this task does not have the lock;nil timeout;nil timeout;true;"),
    /* A waiting task keeps its claim to a lock that another task asks for before it runs. */
    S("local l = task.lock() l:acquire() task.start(function() l:acquire() say 'waited' "
      "l:release() "
      "end) task.sleep(1) l:release() l:acquire() say 'came'",
      "waited;came;"),
    S("local s = task.semaphore(2) for i = 1, 4 do task.start(function() s:acquire() say(i) "
      "task.sleep(1) s:release() end) end",
      "1;2;3;4;"),
    S("local s = task.semaphore(0) task.start(function() say(s:acquire() == s) end) task.sleep(1) "
      "s:release() s:release() say(s:acquire(1) == s) say(s:acquire(1))",
      "true;true;nil timeout;"),
    S("say(pcall(task.semaphore)) say(pcall(task.semaphore, -1))",
      "false bad argument #1 to 'sxe.task.semaphore' (number expected, got no value);"
      "false bad argument #1 to 'sxe.task.semaphore' (a number of permits expected);"),
    S("local s = task.semaphore(math.maxinteger) s:acquire() s:release() say(pcall(s.release, s))",
      "false the semaphore has too many permits;"),
    S("local l = task.lock() l:acquire() local t = task.start(l.acquire, l) task.sleep(1) "
      "t:cancel() l:release() say(l:acquire(1) == l)",
      "true;"),
};

START_TEST(locks_go_to_who_waits_longest)
{
    check_story(&locks[_i]);
}
END_TEST

static const struct story events[] = {
    S("local e = task.event() for i = 1, 3 do task.start(function() say(i, e:wait()) end) end "
      "task.sleep(1) say(e:is_set()) e:set() say(e:is_set(), e:wait())",
      "false;true true;1 true;2 true;3 true;"),
    S("local e = task.event() e:set() e:clear() say(e:wait(1)) say(e:wait{timeout = 1})",
      "nil timeout;nil timeout;"),
};

START_TEST(events_wake_all_who_wait)
{
    check_story(&events[_i]);
}
END_TEST

static const struct story queues[] = {
    S("local q = task.queue() for i = 1, 3 do say(q:put(i)) end say(#q, q:get()) say(q:get()) "
      "say(q:get()) say(#q, q:get(1))",
      "true;true;true;3 1;2;3;0 nil timeout;"),
    S("local q = task.queue(2) task.start(function() for i = 1, 5 do q:put(i) say('put', i) end "
      "q:close() end) for item in q:each() do say('got', item) task.sleep(1) end say 'end'",
      "put 1;put 2;got 1;put 3;got 2;put 4;got 3;put 5;got 4;got 5;end;"),
    /* The waiting task gets the item, not one that asks before the waiting task runs. */
    S("local q = task.queue() task.start(function() say('waited', q:get()) end) task.sleep(1) "
      "q:put 'a' say('came', q:get(1)) q:put 'b' say('came', q:get(1))",
      "waited a;came nil timeout;came b;"),
    S("local q = task.queue(1) q:put(1) task.start(function() say('waited', q:put(2)) end) "
      "task.sleep(1) q:get() say('came', q:put(3, 1)) say(q:get(), #q)",
      "waited true;came nil timeout;2 0;"),
    /* A closed queue: its items are given out, and waiting tasks are told that it is closed. */
    S("local q = task.queue() q:put(1) q:close() say(q:put(2)) say(q:get()) say(q:get())",
      "nil closed;1;nil closed;"),
    S("local q = task.queue() for i = 1, 3 do task.start(function() say(i, q:get()) end) end "
      "task.sleep(1) q:put 'a' q:close()",
      "1 a;2 nil closed;3 nil closed;"),
    S("local q = task.queue(1) q:put(1) for i = 1, 3 do task.start(function() say(i, q:put(i)) "
      "end) "
      "end task.sleep(1) q:get() q:close()",
      "1 nil closed;2 nil closed;3 nil closed;"),
    S("local q = task.queue(1) q:put(1) say(q:put(2, 1))", "nil timeout;"),
    S("local q = task.queue() do local closing <close> = q end say(q:put(1))", "nil closed;"),
    S("local q = task.queue() say(pcall(q.put, q)) say(pcall(q.put, q, nil)) "
      "say(pcall(task.queue, 0))",
      "false bad argument #2 to '?' (a value other than nil expected);"
      "false bad argument #2 to '?' (a value other than nil expected);"
      "false bad argument #1 to 'sxe.task.queue' (a number of items expected);"),
    S("local q = task.queue() say(q:put(false), q:get())", "true false;"),
    S("local q, n = task.queue(), 0 for i = 1, 1000 do q:put(i) if i % 3 == 0 then n = n + q:get() "
      "end end q:close() for i in q:each() do n = n + i end say(n)",
      "500500;"),
};

START_TEST(queues_pass_items_in_order)
{
    check_story(&queues[_i]);
}
END_TEST

static const struct story composed[] = {
    S("local r = task.parallel{function() task.sleep(2) return 'a' end, function() return 'b', 'c' "
      "end} say(r.n, r[1], r[2])",
      "2 a b;"),
    S("local r = task.parallel({1, 2, 3, 4}, function(x, i) say(x, i, count()) task.sleep(1) "
      "return 10 * x end, 2) say(table.concat(r, ' '))",
      "1 1 3;2 2 3;3 3 3;4 4 3;10 20 30 40;"),
    S("say(task.parallel({}).n, task.parallel({}, say, 5).n)", "0 0;"),
    S("local r = task.parallel({function() return count() end, function() return count() end}, 1) "
      "say(r[1], r[2])",
      "2 2;"),
    S("say(pcall(task.parallel, {function() say(task.sleep(5)) end, function() task.sleep(1) "
      "error 'no' end}))",
      "nil cancelled;false test:1: no;"),
    S("local me, others = task.self(), nil task.start(function() task.sleep(1) for _, t in "
      "ipairs(task.all()) do if t ~= me and t ~= task.self() then t:cancel() end end end) "
      "say(task.parallel({1, 2, 3, 4}, function(i) task.sleep(i) task.sleep(i) say(i) end, 2))",
      "1;nil cancelled;"),
    S("local t = task.start(function() say(task.parallel({1, 2}, function(i) say(task.sleep(i)) "
      "end)) "
      "end) task.sleep(0.5) t:cancel()",
      "nil cancelled;nil cancelled;nil cancelled;"),
    S("local many = {} for i = 1, 100 do many[i] = function() task.sleep(1) return i end end "
      "local r = task.parallel(many) say(r.n, r[1], r[100])",
      "100 1 100;"),
    S("for i = 1, 15 do task.start(task.sleep, 1) end say(task.parallel{say}) "
      "say(task.deadline(1, say))",
      "nil no task is free, or no memory for one;nil no task is free, or no memory for one;"),
    S("say(task.deadline(2, function(a) task.sleep(1) return a, 2 end, 1))", "1 2;"),
    S("say(task.deadline(1, function() say(task.sleep(2)) end))", "nil timeout;nil cancelled;"),
    S("say(pcall(task.deadline, 1, error, 'no'))", "false no;"),
    S("for _, seconds in ipairs{-1, 0 / 0, 'x', '1', {}} do "
      "say(pcall(task.deadline, seconds, say, 1)) end",
      "false bad argument #1 to 'deadline' (a timeout in seconds expected);"
      "false bad argument #1 to 'deadline' (a timeout in seconds expected);"
      "false bad argument #1 to 'deadline' (a timeout in seconds expected);"
      "false bad argument #1 to 'deadline' (a timeout in seconds expected);"
      "false bad argument #1 to 'deadline' (a timeout in seconds expected);"),
    S("say(pcall(task.deadline, nil, 1)) say(task.deadline(nil, task.sleep, 1))",
      "false bad argument #2 to 'deadline' (function expected);true;"),
    S("say(task.deadline(5, task.deadline, 1, task.sleep, 9))", "nil timeout;"),
};

START_TEST(tasks_are_composed)
{
    check_story(&composed[_i]);
}
END_TEST

static const struct story looking[] = {
    S("local t = task.start(function() task.sleep(1) end) say(t.status) task.sleep(0) "
      "say(t.status) "
      "t:join() say(t.status, task.self().status)",
      "ready;waiting;done running;"),
    S("local t = task.start(function() end) say(t.name, t) t.name = 'mine' say(t.name, t) t:join() "
      "say(t)",
      "task 2 sxe.task \"task 2\" (ready);mine sxe.task \"mine\" (ready);sxe.task \"mine\" "
      "(done);"),
    S("local t = task.start(function() end) say(pcall(function() t.nme = 1 end)) "
      "say(pcall(function() t.name = {} end)) say(t.nme)",
      "false test:1: a task has no field 'nme' to set;"
      "false test:1: bad argument #3 to 'newindex' (string expected, got table);nil;"),
    S("local t = task.start(function() task.sleep(1) end) task.sleep(0) "
      "say(t.trace:match('in function <(.-)>')) t:join() say('[' .. t.trace .. ']')",
      "test:1;[];"),
    S("say(task.self() == task.self(), #task.all(), task.all()[1] == task.self())", "true 1 true;"),
    S("local a = task.start(task.sleep, 1) task.sleep(0) local b = task.start(task.sleep, 1) "
      "local all = task.all() say(#all, all[1] == b, all[2] == task.self(), all[3] == a)",
      "3 true true true;"),
    S("local mine task.start(function() mine = task.self() end) task.sleep(0) "
      "say(mine.status, mine == task.self())",
      "done false;"),
};

START_TEST(tasks_are_counted)
{
    begin_world();
    ck_assert_str_eq(SCRIPT("for i = 1, 20 do task.start(i == 3 and error or function() end) end "
                            "task.sleep(1) task.start(say):cancel() timer.after(1, error) "
                            "task.sleep(2) local n = task.stats "
                            "say(n.started, n.failed, n.cancelled, n.refused)"),
                     "18 2 1 5;");
    end_world();
}
END_TEST

START_TEST(tasks_can_be_looked_at)
{
    check_story(&looking[_i]);
}
END_TEST

START_TEST(what_fails_is_logged_with_its_traceback)
{
    begin_world();
    SCRIPT("local function f() error 'no' end\ntask.start(function() f() end)");
    ck_assert(logged("task: test:1: no"));
    ck_assert(logged("stack traceback:"));
    ck_assert(logged("test:2: in function <test:2>"));
    ck_assert(!logged("[C]: in ?"));
    end_world();
}
END_TEST

START_TEST(cancelling_is_not_logged)
{
    begin_world();
    SCRIPT("local t = task.start(function() task.sleep(1) task.sleep(1) end) task.sleep(0) "
           "t:cancel()");
    ck_assert(!logged("cancelled"));
    end_world();
}
END_TEST

START_TEST(on_cancel_without_a_free_task_is_logged)
{
    begin_world();
    SCRIPT(
        "local t for i = 1, 15 do t = task.start(task.sleep, 1) end t:on_cancel(say) t:cancel()");
    ck_assert(logged("no task is free for what on_cancel was given"));
    SCRIPT("local t = task.start(function() task.sleep(9) task.sleep(9) end) task.sleep(1) "
           "while task.start(task.sleep, 1) do end t:cancel() "
           "say(t:on_cancel(say)) t:join()");
    ck_assert_str_eq(said, "nil no task is free, or no memory for one;");
    end_world();
}
END_TEST

static const struct story outside[] = {
    {"task.sleep(1)", "cannot wait outside of a task"},
    {"task.lock():acquire()", "a lock is a task's, and this is outside of one"},
    {"task.lock():release()", "a lock is a task's, and this is outside of one"},
    {"task.event():wait()", "cannot wait outside of a task"},
    {"task.self()", "no task is running"},
};

START_TEST(nothing_waits_outside_of_a_task)
{
    char script[256];
    lua_State *L;

    begin_world();
    L = sxe__lua_main(lua);
    snprintf(script, sizeof(script), "local task = require 'sxe.task' %s", outside[_i].script);
    ck_assert_int_eq(luaL_loadstring(L, script), LUA_OK);
    ck_assert_int_eq(sxe__lua_pcall(L, 0, 0, "here"), -EINVAL);
    ck_assert(logged(outside[_i].says));
    end_world();
}
END_TEST

/* A callback is no task, so it cannot release a lock, not even one that is promised to a task. */
START_TEST(a_callback_releases_no_lock)
{
    begin_world();
    load_text(PRELUDE "l, holders = task.lock(), 0 "
                      "for i = 1, 3 do task.start(function() l:acquire() holders = holders + 1 "
                      "say(holders) task.sleep(0) holders = holders - 1 l:release() end) end");
    for (int i = 0; i < 100 && tasks_left() > 0; i++) {
        ck_assert_int_eq(luaL_loadstring(lua->main, "l:release()"), LUA_OK);
        ck_assert_int_eq(sxe__lua_pcall(lua->main, 0, 0, "here"), -EINVAL);
        ev_run(sxe_loop(), EVRUN_NOWAIT);
        fake_time_advance(1);
    }
    ck_assert_str_eq(said, "1;1;1;");
    end_world();
}
END_TEST

/* ---- Memory ---- */

#define REPEATED                                                       \
    "local say = require 'world'.say local task = require 'sxe.task' " \
    "return function() "

static const char *const scenarios[] = {
    REPEATED "task.start(say, 1) end",
    REPEATED "local t = task.start(function() return 1 end) t:join() end",
    REPEATED "local t = task.start(function() return 1, 2, 3 end) t:join() end",
    REPEATED "local t = task.start(function() return table.unpack({}, 1, 90) end) t:join() end",
    REPEATED "local t = task.start(error, 'x') pcall(t.join, t) end",
    REPEATED "local t = task.start(task.sleep, 1) t:on_cancel(say) t:cancel() t:join() end",
    REPEATED "local t = task.start(function() task.sleep(1) task.sleep(1) end) task.sleep(0) "
             "t:on_cancel(say) t:cancel() t:join() end",
    REPEATED
    "local q = task.queue(1) task.start(function() for i = 1, 9 do q:put(i, 3) end q:close() "
    "end) repeat local i = q:get(5) say(i) until not i end",
    REPEATED "task.parallel({1, 2, 3}, function(i) task.sleep(i) end, 2) end",
    REPEATED "task.deadline(1, task.sleep, 2) end",
    REPEATED "say(#task.all(), task.self().name, task.self().trace) end",
    REPEATED "local l, s, e = task.lock(), task.semaphore(1), task.event() l:acquire() end",
    REPEATED
    "local e = task.event() for i = 1, 3 do task.start(e.wait, e, 9) end task.sleep(1) e:set() "
    "end",
    REPEATED "package.loaded['sxe.task'] = nil require 'sxe.task' end",
    REPEATED "coroutine.wrap(function() task.sleep(1) end)() end",
};

static void
start_scenario(lua_State *L)
{
    sxe__lua_push_script(L);
    sxe__lua_start(L, 0, false, NULL, NULL);
}

START_TEST(any_allocation_may_fail)
{
    uint64_t nth = 0;
    bool has_failed;

    begin_world();
    sxe_log_set_level(SXE_LOG_NONE);
    ck_assert_int_eq(load_text(scenarios[_i]), 0);
    do {
        said_length = 0;
        lua->heap.fail_after = nth++;
        lua->heap.fail_times = 2; /* Lua collects garbage and tries again */
        start_scenario(sxe__lua_main(lua));
        sxe_run();
        has_failed = lua->heap.fail_times == 0;
        lua->heap.fail_times = 0;
        ck_assert_uint_eq(tasks_left(), 0);
        ck_assert_uint_eq(SCHEDULER->heap_used, 0);
    } while (has_failed);
    end_world();
}
END_TEST

/* ---- Random calls ---- */

#define CHAOS                                                                                    \
    "local random = math.random "                                                                \
    "local lock, three, event = task.lock(), task.semaphore(3), task.event() "                   \
    "local queues, tasks, started = {task.queue(), task.queue(2)}, {}, 0 "                       \
    "local work "                                                                                \
    "local function pause() return random(0, 20) / 100 end "                                     \
    "local deeds = { "                                                                           \
    "  function() task.sleep(pause()) end, "                                                     \
    "  function() coroutine.yield() end, "                                                       \
    "  function() if lock:acquire(pause()) then local l <close> = lock task.sleep(pause()) end " \
    "    end, "                                                                                  \
    "  function() local t <close> = three:acquire(pause()) task.sleep(pause()) end, "            \
    "  function() queues[random(2)]:put(random(9), pause()) end, "                               \
    "  function() queues[random(2)]:get(pause()) end, "                                          \
    "  function() event:wait(pause()) end, "                                                     \
    "  function() event:set() event:clear() end, "                                               \
    "  function() tasks[random(#tasks)]:cancel() end, "                                          \
    "  function() tasks[random(#tasks)]:join(pause()) end, "                                     \
    "  function() tasks[random(#tasks)]:on_cancel(deeds[random(8)]) end, "                       \
    "  function() task.deadline(pause(), work, 3) end, "                                         \
    "  function() task.parallel({1, 2, 3}, work, random(3)) end, "                               \
    "  function() coroutine.wrap(work)(2) end, "                                                 \
    "  function() timer.after(pause(), work):stop() end, "                                       \
    "  function() timer.after(pause(), function() work(1) end) end, "                            \
    "  function() error 'no' end, "                                                              \
    "  function() if started < 300 then started = started + 1 "                                  \
    "    tasks[random(40)] = task.start(work, 5) or tasks[1] end end, "                          \
    "} "                                                                                         \
    "function work(n) for _ = 1, n do "                                                          \
    "  local deed = deeds[random(#deeds)] "                                                      \
    "  if random(4) == 1 then deed() else pcall(deed) end end end "                              \
    "for i = 1, 40 do tasks[i] = task.start(work, 40) end "

START_TEST(whatever_tasks_do_to_each_other_all_end)
{
    char script[8192];

    begin_world_with(&(struct sxe_lua_config){.tasks = 100});
    sxe_log_set_level(SXE_LOG_NONE);
    for (int seed = 1; seed <= 10; seed++) {
        snprintf(script, sizeof(script), PRELUDE "math.randomseed(%d, %d) " CHAOS, _i, seed);
        run_world(script);
        ck_assert_uint_eq(tasks_left(), 0);
        ck_assert_uint_eq(SCHEDULER->heap_used, 0);
    }
    end_world();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-tasks");
    TCase *tc = tcase_create("sxe.task");

    suite_add_tcase(s, tc);
#define STORIES(test, stories) \
    tcase_add_loop_test(tc, test, 0, (int)(sizeof(stories) / sizeof(*(stories))))
    STORIES(tasks_start_and_are_joined, starting);
    tcase_add_test(tc, a_deadline_of_a_cancelled_task_begins_nothing);
    STORIES(waiting_lets_others_run, sleeping);
    STORIES(cancelled_tasks_are_told_once_and_then_ended, cancelling);
    STORIES(locks_go_to_who_waits_longest, locks);
    STORIES(events_wake_all_who_wait, events);
    STORIES(queues_pass_items_in_order, queues);
    STORIES(tasks_are_composed, composed);
    STORIES(tasks_can_be_looked_at, looking);
    tcase_add_test(tc, tasks_are_counted);
    tcase_add_test(tc, a_callback_releases_no_lock);
    tcase_add_test(tc, what_fails_is_logged_with_its_traceback);
    tcase_add_test(tc, cancelling_is_not_logged);
    tcase_add_test(tc, on_cancel_without_a_free_task_is_logged);
    STORIES(nothing_waits_outside_of_a_task, outside);
    STORIES(any_allocation_may_fail, scenarios);
    tcase_add_loop_test(tc, whatever_tasks_do_to_each_other_all_end, 0, 10);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
