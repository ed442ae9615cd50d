/* SPDX-License-Identifier: MIT
 *
 * Values that go from setup() to the workers, and from the workers to done(); and figures.
 */
#include "../../../../apps/http/input/script-values.h"
#include "script-case.h"

/* ---- thread:set and thread:get ---- */

/* Lua values that must come back unchanged; same() is in the prelude below. */
static const char *const values[] = {
    "nil",
    "true",
    "false",
    "0",
    "-1",
    "math.mininteger",
    "1.5",
    "1/0",
    "''",
    "'a\\0b'",
    "('x'):rep(100000)",
    "{}",
    "{1, 'two', {3, four = 4}, [true] = false, [2.5] = 'x', [{5}] = 6}",
    "nested(32)",
};

static const char same[] = "function nested(n) return n > 0 and {nested(n - 1)} or nil end\n"
                           "function same(a, b)\n"
                           "    if type(a) ~= 'table' then return a == b end\n"
                           "    local n = 0\n"
                           "    for k, v in pairs(a) do\n"
                           "        if type(k) ~= 'table' then\n"
                           "            assert(same(v, b[k]), tostring(k))\n"
                           "        end\n"
                           "        n = n + 1\n"
                           "    end\n"
                           "    for _ in pairs(b) do n = n - 1 end\n"
                           "    return n == 0\n"
                           "end\n";

START_TEST(values_go_to_a_worker_and_come_back)
{
    char text[2000];

    snprintf(text, sizeof(text),
             "%s"
             "function setup(thread)\n"
             "    the_thread = thread\n"
             "    thread:set('value', %s)\n"
             "    assert(same(thread:get('value'), %s), 'before the run')\n"
             "end\n"
             "function init()\n"
             "    assert(same(value, %s), 'in the worker')\n"
             "    assert(same(wrk.thread:get('value'), value), 'got in the worker')\n"
             "    wrk.thread:set('second', value)\n"
             "    assert(same(second, value), 'set in the worker')\n"
             "end\n"
             "function done()\n"
             "    assert(same(the_thread:get('value'), %s), 'after the run')\n"
             "    assert(same(the_thread:get('second'), %s), 'after the run')\n"
             "end",
             same, values[_i], values[_i], values[_i], values[_i], values[_i]);
    options.workers = 1;
    must_begin(text);
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(a_zero_byte_is_a_part_of_a_name)
{
    options.workers = 1;
    must_begin("function setup(thread)\n"
               "    the_thread = thread\n"
               "    thread:set('a\\0b', 1)\n"
               "    assert(thread:get('a\\0b') == 1 and thread:get('a') == nil)\n"
               "end\n"
               "function init()\n"
               "    assert(_G['a\\0b'] == 1 and a == nil)\n"
               "    wrk.thread:set('c\\0d', 2)\n"
               "    assert(_G['c\\0d'] == 2 and c == nil)\n"
               "    assert(wrk.thread:get('c\\0d') == 2 and wrk.thread:get('c') == nil)\n"
               "end\n"
               "function done()\n"
               "    assert(the_thread:get('a\\0b') == 1 and the_thread:get('a') == nil)\n"
               "    assert(the_thread:get('c\\0d') == 2 and the_thread:get('c') == nil)\n"
               "end");
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    ck_assert_str_eq(said(), "");
}
END_TEST

static const struct {
    const char *value;
    const char *why;
} refused[] = {
    {"print", "a function"},
    {"{print}", "a function"},
    {"{[print] = 1}", "a function"},
    {"io.stdout", "an object"},
    {"{coroutine.create(print)}", "an object"},
    {"nested(33)", "tables too deep in tables"},
    {"endless", "tables too deep in tables"},
    {"('x'):rep(1 << 20)", "more than there is room for"},
    {"filled(1024)", "more than there is room for"},
};

static const char helpers[] =
    "local function nested(n) return n > 0 and {nested(n - 1)} or nil end\n"
    "local endless = {}\n"
    "endless[1] = endless\n"
    "local function filled(n)\n"
    "    local t = {}\n"
    "    for i = 1, n do t[i] = ('x'):rep(1024) end\n"
    "    return t\n"
    "end\n";

START_TEST(what_cannot_go_to_a_worker_is_refused)
{
    char text[1000];

    snprintf(text, sizeof(text), "%sfunction setup(thread) thread:set('value', %s) end", helpers,
             refused[_i].value);
    must_refuse(text, "cannot set 'value' of a thread: ");
    ck_assert_ptr_null(load(text));
    check_has(said(), refused[_i].why);
}
END_TEST

START_TEST(what_cannot_come_from_a_worker_is_refused_when_it_is_asked_for)
{
    char text[1000];

    options.workers = 1;
    snprintf(text, sizeof(text),
             "%sfunction setup(t) thread = t print(t:get('value')) end\nvalue = %s", helpers,
             refused[_i].value);
    must_refuse(text, "cannot get 'value' of a thread: ");
    snprintf(text, sizeof(text),
             "%sfunction setup(t) thread = t end\n"
             "function init() first = 1 value = %s end\n"
             "function done() thread:get('first') thread:get('value') end",
             helpers, refused[_i].value);
    must_begin(text);
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
    snprintf(text, sizeof(text), "cannot get 'value' of a thread: %s", refused[_i].why);
    check_has(said(), text);
}
END_TEST

/* The memory is used up at each place in turn: so a value, its tag or its name does not fit. */
START_TEST(globals_that_have_no_room_are_as_if_they_were_not_there)
{
    options.workers = 1;
    must_begin("function setup(t) thread = t end\n"
               "function init()\n"
               "    for i = 0, 1023 do _G['x' .. i] = ('x'):rep(1000) end\n"
               "    for i = 0, 99 do\n"
               "        _G['a' .. i], _G['b' .. i], _G['c' .. i], _G['d' .. i] = i, {}, true, {i}\n"
               "    end\n"
               "    _G[1] = 'not a name'\n"
               "end\n"
               "function done()\n"
               "    local there = 0\n"
               "    for i = 0, 1023 do\n"
               "        local ok, value = pcall(thread.get, thread, 'x' .. i)\n"
               "        there = there + (ok and value and 1 or 0)\n"
               "    end\n"
               "    assert(there > 900, there)\n"
               "    assert(thread:get('print') == nil)\n"
               "end");
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    ck_assert_str_eq(said(), "");
}
END_TEST

static void
put_little(size_t room, const char *text, unsigned *refusals)
{
    char bytes[64];
    struct load_values values_there = {bytes, 0, room};
    lua_State *L = luaL_newstate();

    ck_assert_int_eq(luaL_dostring(L, text), 0);
    if (load_values_put(L, -1, &values_there) != NULL) {
        ck_assert_uint_eq(values_there.length, 0);
        ++*refusals;
    }
    lua_newtable(L);
    values_there.length = 0;
    lua_pushvalue(L, -2);
    lua_setglobal(L, "print");
    load_values_put_globals(L, -1, &values_there);
    ck_assert_uint_le(values_there.length, room);
    lua_close(L);
}

START_TEST(values_end_where_the_room_does)
{
    static const char *const texts[] = {"return nil",   "return true",      "return 7",
                                        "return 'abc'", "return {a = {1}}", "return print"};
    unsigned refusals = 0;

    for (size_t room = 0; room < 40; room++)
        put_little(room, texts[_i], &refusals);
    ck_assert_uint_gt(refusals, 0);
}
END_TEST

START_TEST(threads_have_only_what_wrk_gives_them)
{
    options.workers = 1;
    must_refuse("function setup(thread) thread.x = 1 end", "no field 'x' to set");
    must_refuse("function setup(thread) thread:stop() end", "thread that runs");
    must_refuse("function setup(thread) thread:set('x') end", "value expected");
    must_refuse("function setup(thread) thread:get() end", "string expected");
    must_refuse("function setup(thread) thread.get('x') end", "wrk.thread expected");
    must_refuse("function setup(thread) thread['addr\\0x'] = thread.addr end", "no field 'addr'");
    must_load("function setup(thread) assert(thread.x == nil and thread['addr\\0x'] == nil) end");
}
END_TEST

START_TEST(a_worker_that_left_nothing_has_the_values_of_setup)
{
    options.workers = 1;
    must_load(
        "function setup(t) thread = t t:set('a', 'set') end\n"
        "function done() assert(thread:get('a') == 'set') assert(thread:get('b') == nil) end");
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(a_worker_that_has_ended_takes_nothing_more)
{
    options.workers = 1;
    must_begin("function setup(t) thread = t end function done() thread:set('a', 1) end");
    end_calls();
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
    check_has(said(), "cannot set 'a' of a thread: it has ended");
}
END_TEST

/* ---- Figures ---- */

START_TEST(report_prints_percentiles)
{
    struct load_histogram *response = &total.response;

    for (uint64_t us = 1; us <= 100; us++)
        load_histogram_record(response, us * 1000);
    catch_print();
    must_load(
        "function done(summary, latency, requests)\n"
        "    for _, p in ipairs{0, 1, 50, 90, 99, 99.999, 100} do\n"
        "        print(string.format('%g%%,%d', p, latency:percentile(p)))\n"
        "    end\n"
        "    print(('%d %d %d %d'):format(latency.min, latency.max, latency.mean,\n"
        "                                 latency.stdev))\n"
        "    print(latency.none, #latency, latency(1), latency(0), latency(101), latency(100))\n"
        "end");
    ck_assert_int_eq(done(), LOAD_EXIT_OK);
    ck_assert_str_eq(printed(), "0%,1\n1%,1\n50%,50\n90%,90\n99%,99\n99.999%,100\n100%,100\n"
                                "1 100 50 28\n"
                                "nil\t100\t1\tnil\tnil\t100\t1\n");
}
END_TEST

START_TEST(a_run_without_replies_has_figures_of_zero)
{
    catch_print();
    run.trials_number = 0;
    must_load("function done(summary, latency, requests)\n"
              "    print(latency.min, latency.max, latency.mean, latency.stdev, #latency,\n"
              "          latency:percentile(99), latency(1))\n"
              "    print(requests.min, requests.max, requests.mean, requests.stdev, #requests)\n"
              "    print(summary.duration, summary.requests, summary.bytes)\n"
              "end");
    done();
    ck_assert_str_eq(printed(), "0\t0\t0.0\t0.0\t0\t0\n0\t0\t0.0\t0.0\t0\n0\t0\t0\n");
}
END_TEST

START_TEST(requests_are_the_rates_of_the_trials)
{
    static const double rates[] = {300.9, 100, 200};

    run.trials_number = 3;
    for (unsigned i = 0; i < 3; i++) {
        run.trials[i].result = &total;
        run.trials[i].figures[LOAD_FIGURE_RATE] = rates[i];
    }
    total.elapsed_ns = 2000000;
    catch_print();
    must_load("function done(summary, latency, requests)\n"
              "    print(requests.min, requests.max, ('%.1f'):format(requests.mean), #requests,\n"
              "          requests(1), requests(2), requests:percentile(50), summary.duration,\n"
              "          ('%.1f'):format(requests.stdev))\n"
              "end");
    done();
    ck_assert_str_eq(printed(), "100\t300\t200.3\t3\t100\t200\t200\t6000\t82.0\n");
}
END_TEST

START_TEST(summary_has_the_errors_of_wrk_and_failed_checks)
{
    static const enum load_end ends[] = {
        LOAD_END_OK,           LOAD_END_BAD_STATUS, LOAD_END_BAD_FIELD, LOAD_END_BAD_BODY,
        LOAD_END_FAILED_CHECK, LOAD_END_SHORT_BODY, LOAD_END_BAD_REPLY, LOAD_END_CLOSED_EARLY,
        LOAD_END_RESET,        LOAD_END_TIMED_OUT,  LOAD_END_OTHER};

    for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        total.ends[ends[i]] = UINT64_C(1) << i;
    total.unopened[LOAD_UNOPENED_REFUSED] = 60;
    total.unopened[LOAD_UNOPENED_NO_PORT] = 3;
    total.unopened[LOAD_UNOPENED_UNTRIED] = 1000;
    total.bytes_received = 12345;
    catch_print();
    must_load("function done(summary)\n"
              "    local e = summary.errors\n"
              "    print(summary.requests, summary.bytes, e.connect, e.read, e.write, e.status,\n"
              "          e.timeout, e.check)\n"
              "end");
    done();
    ck_assert_str_eq(printed(), "31\t12345\t63\t480\t1024\t2\t512\t28\n");
}
END_TEST

START_TEST(figures_are_asked_for_with_their_own_object)
{
    must_load("function done(summary, latency) latency.percentile(5) end");
    ck_assert_int_eq(done(), LOAD_EXIT_ERRORS);
    check_has(said(), "wrk.stats expected");
}
END_TEST

static Suite *
suite(void)
{
    Suite *all = suite_create("http-script-done");
    TCase *cases = tcase_create("threads");

    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_loop_test(cases, values_go_to_a_worker_and_come_back, 0,
                        sizeof(values) / sizeof(*values));
    tcase_add_loop_test(cases, what_cannot_go_to_a_worker_is_refused, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_loop_test(cases, what_cannot_come_from_a_worker_is_refused_when_it_is_asked_for, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_test(cases, a_zero_byte_is_a_part_of_a_name);
    tcase_add_test(cases, globals_that_have_no_room_are_as_if_they_were_not_there);
    tcase_add_loop_test(cases, values_end_where_the_room_does, 0, 6);
    tcase_add_test(cases, threads_have_only_what_wrk_gives_them);
    tcase_add_test(cases, a_worker_that_left_nothing_has_the_values_of_setup);
    tcase_add_test(cases, a_worker_that_has_ended_takes_nothing_more);
    suite_add_tcase(all, cases);
    cases = tcase_create("figures");
    tcase_add_checked_fixture(cases, NULL, free_script);
    tcase_add_test(cases, report_prints_percentiles);
    tcase_add_test(cases, a_run_without_replies_has_figures_of_zero);
    tcase_add_test(cases, requests_are_the_rates_of_the_trials);
    tcase_add_test(cases, summary_has_the_errors_of_wrk_and_failed_checks);
    tcase_add_test(cases, figures_are_asked_for_with_their_own_object);
    suite_add_tcase(all, cases);
    return all;
}

int
main(void)
{
    return sxe_test_main(suite());
}
