/* SPDX-License-Identifier: MIT
 *
 * Clocks and random numbers as a script sees them.
 */
#include "lua-state.h"

#include "fake-os.h"
#include "sxe-lua-clock.h"

#include "test-main.h"

static uint64_t
fake_now_ns(void)
{
    return 5000000000u;
}

static double
fake_wall_s(void)
{
    return 1286043102.75;
}

static double
fake_cpu_s(void)
{
    return 12.5;
}

static uint64_t
fake_random(void)
{
    return 0x123456789abcdef0;
}

static const struct sxe_lua_clock fake_clock = {fake_now_ns, fake_wall_s, fake_cpu_s, fake_random};

static void
fake_start(void)
{
    sxe_lua_set_clock(&fake_clock);
    state_start();
}

static void
fake_stop(void)
{
    state_stop();
    sxe_lua_set_clock(NULL);
}

START_TEST(clocks_are_those_of_the_port)
{
    fake_start();
    run_script("assert(os.time() == 1286043102 and os.clock() == 12.5)\n"
               "assert(math.type(os.time()) == 'integer')\n"
               "assert(os.date('!%Y-%m-%d %H:%M:%S') == '2010-10-02 18:11:42')\n"
               "assert(os.date('!*t').hour == 18 and #os.date() > 0)\n"
               "assert(os.date('!%Y', 0) == '1970')\n"
               "assert(os.time{year = 2010, month = 10, day = 2, hour = 12} > 1285900000)");
    fails_with("os.date('%Ez')", "invalid conversion specifier");
    fake_stop();
}
END_TEST

START_TEST(chance_is_that_of_the_port)
{
    fake_start();
    run_script("local a = {math.random(), math.random()}\n"
               "math.randomseed()\n"
               "local b = {math.random(), math.random()} assert(a[1] == b[1] and a[2] == b[2])\n"
               "math.randomseed(42) local c = math.random() assert(c ~= a[1])\n"
               "math.randomseed(42) assert(c == math.random())");
    fake_stop();
}
END_TEST

START_TEST(the_system_s_are_there_without_one)
{
    const struct sxe_lua_clock *clock = sxe_lua_get_clock();
    uint64_t now_ns = clock->now_ns();

    ck_assert_ptr_ne(clock, &fake_clock);
    ck_assert_uint_le(now_ns, clock->now_ns());
    ck_assert(clock->wall_s() > 1e9);
    ck_assert(clock->cpu_s() > 0);
    ck_assert_uint_ne(clock->random(), clock->random());
    fake_os_fail(FAKE_GETRANDOM, 1, 2, ENOSYS);
    ck_assert_uint_ne(clock->random(), clock->random());
}
END_TEST

static int
deadline(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)sxe__lua_deadline(L, 1));
    return 1;
}

START_TEST(a_deadline_is_some_seconds_from_now)
{
    fake_start();
    add_global("deadline", deadline);
    run_script(
        "assert(deadline() == 0 and deadline(nil) == 0 and deadline{} == 0)\n"
        "assert(deadline(0) == 5000000000 and deadline(1.5) == 6500000000)\n"
        "assert(deadline{timeout = 2} == 7000000000)\n"
        "assert(deadline(math.huge) == 0 and deadline(1e300) == 0)\n"
        "for _, bad in ipairs{-1, 0/0, 'x', '1', {timeout = 'x'}, {timeout = '1'}, true} do\n"
        "    local good, message = pcall(deadline, bad)\n"
        "    assert(not good and message:find 'a timeout in seconds expected')\n"
        "end");
    fake_stop();
}
END_TEST

static uint64_t moving_ns;

static uint64_t
moving_now_ns(void)
{
    return moving_ns;
}

START_TEST(tasks_wait_in_the_port_s_time)
{
    struct sxe_lua_clock clock = fake_clock;

    clock.now_ns = moving_now_ns;
    sxe_lua_set_clock(&clock);
    state_start();
    run_script("local task = require 'sxe.task' woken = 0\n"
               "task.start(function() task.sleep(0) woken = 1 task.sleep(100) woken = 2 end)");
    for (int i = 0; i < 3; i++)
        turn_tasks();
    run_script("assert(woken == 0)");
    moving_ns = 1;
    for (int i = 0; i < 3; i++)
        turn_tasks();
    run_script("assert(woken == 1)");
    moving_ns += 100000000000u;
    for (int i = 0; i < 3; i++)
        turn_tasks();
    run_script("assert(woken == 2)");
    fake_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-clock");
    TCase *tcase = tcase_create("clock");

    tcase_add_test(tcase, clocks_are_those_of_the_port);
    tcase_add_test(tcase, chance_is_that_of_the_port);
    tcase_add_test(tcase, the_system_s_are_there_without_one);
    tcase_add_test(tcase, a_deadline_is_some_seconds_from_now);
    tcase_add_test(tcase, tasks_wait_in_the_port_s_time);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
