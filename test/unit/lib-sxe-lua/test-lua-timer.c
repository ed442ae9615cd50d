/* SPDX-License-Identifier: MIT
 *
 * require "sxe.timer" as scripts use it.
 */
#include "lua-task-world.h"

#define S(script, says)                               \
    {                                                 \
        PRELUDE "local now = world.now " script, says \
    }

static const struct story stories[] = {
    S("timer.after(2, function() say('two') end) timer.after(1, function() say('one') end) say(0)",
      "0;one;two;"),
    S("local n, t = 0 t = timer.every(1, function() n = n + 1 say(n) if n == 3 then t:stop() end "
      "end)",
      "1;2;3;"),
    /* Stopped before its task began, in its sleep, when it is due, in its call, and after its
     * end. */
    S("timer.after(1, say):stop()", ""),
    S("local t = timer.after(5, say) task.sleep(1) t:stop() t:stop() task.sleep(0) say(count())",
      "1;"),
    S("local a, b = timer.after(1, function() b:stop() end) b = timer.after(1, say)", ""),
    S("local a, b a = timer.after(1, function() b:stop() end) b = timer.after(1, say)", ""),
    S("local t t = timer.every(1, function() t:stop() say(task.sleep(5)) end)", "true;"),
    S("local t = timer.after(1, function() say 'once' end) task.sleep(3) t:stop()", "once;"),
    S("do local t <close> = timer.after(1, say) end", ""),
    /* If a call of a periodic timer takes long, the times missed meanwhile are left out. */
    S("local n, t = 0 t = timer.every(2, function() n = n + 1 say(n, 'at', now()) task.sleep(5) "
      "if n == 3 then t:stop() end end)",
      "1 at 2;2 at 8;3 at 14;"),
    S("local n, t = 0 t = timer.every(2, function() n = n + 1 say(n, 'at', now()) advance(0.5) "
      "if n == 3 then t:stop() end end)",
      "1 at 2;2 at 4;3 at 6;"),
    S("timer.after(0, function() say 'soon' end) say 'now'", "now;soon;"),
    S("say(pcall(timer.every, '1', say))",
      "false bad argument #1 to 'sxe.timer.every' (a timeout in seconds expected, not a string);"),
    S("say(pcall(timer.after, -1, say)) say(pcall(timer.every, 0, say)) say(pcall(timer.after, 1))",
      "false bad argument #1 to 'sxe.timer.after' (a timeout in seconds expected);"
      "false bad argument #1 to 'sxe.timer.every' (a period in seconds expected);"
      "false bad argument #2 to 'sxe.timer.after' (function expected, got no value);"),
    S("local t = timer.every(1e100, say) local u = timer.after(1e100, say) task.sleep(1e6) "
      "t:stop() "
      "u:stop() task.sleep(0) say(count())",
      "1;"),
    S("for i = 1, 15 do task.start(task.sleep, 1) end say(timer.after(1, say))",
      "nil no task is free, or no memory for one;"),
    /* The task of a timer can be cancelled like any other. */
    S("timer.every(1, say) task.sleep(0) for _, t in ipairs(task.all()) do "
      "if t ~= task.self() then t:cancel() end end",
      ""),
    S("timer.every(1, function() task.self():cancel() say(task.sleep(1)) end)", "nil cancelled;"),
};

START_TEST(timers_call_in_time)
{
    check_story(&stories[_i]);
}
END_TEST

START_TEST(an_error_is_logged_and_the_next_call_comes)
{
    begin_world();
    ck_assert_str_eq(SCRIPT("local n, t = 0 t = timer.every(1, function() n = n + 1 "
                            "if n == 1 then error 'no' end say(n) t:stop() end)"),
                     "2;");
    ck_assert(logged("timer: test:1: no"));
    ck_assert(logged("stack traceback:"));
    end_world();
}
END_TEST

START_TEST(any_allocation_may_fail)
{
    uint64_t nth = 0;
    bool has_failed;

    begin_world();
    sxe_log_set_level(SXE_LOG_NONE);
    ck_assert_int_eq(load_text("local timer = require 'sxe.timer' return function() "
                               "local n, t = 0 t = timer.every(1, function() "
                               "n = n + 1 local s = 'n' .. n if n > 3 then t:stop() end end) end"),
                     0);
    do {
        lua->heap.fail_after = nth++;
        lua->heap.fail_times = 2; /* Lua collects garbage and tries again */
        sxe__lua_push_script(sxe__lua_main(lua));
        sxe__lua_start(sxe__lua_main(lua), 0, false, NULL, NULL);
        sxe_run();
        has_failed = lua->heap.fail_times == 0;
        lua->heap.fail_times = 0;
        ck_assert_uint_eq(tasks_left(), 0);
    } while (has_failed);
    end_world();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-timer");
    TCase *tc = tcase_create("sxe.timer");

    suite_add_tcase(s, tc);
    tcase_add_loop_test(tc, timers_call_in_time, 0, (int)(sizeof(stories) / sizeof(*stories)));
    tcase_add_test(tc, an_error_is_logged_and_the_next_call_comes);
    tcase_add_test(tc, any_allocation_may_fail);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
