/* SPDX-License-Identifier: MIT
 *
 * require "sxe.encoding". Most tests are in lua-encoding.lua, with reference implementations in
 * Lua.
 */
#include "lua-state.h"

#include "sxe-lua-clock.h"

#include "fake-os.h"
#include "test-main.h"

START_TEST(each_result_is_what_the_reference_has)
{
    state_start();
    run_script("dofile 'test/unit/lib-sxe-lua/lua-encoding.lua'");
    state_stop();
}
END_TEST

static double wall;

static double
get_wall(void)
{
    return wall;
}

static int
set_wall(lua_State *L)
{
    wall = luaL_checknumber(L, 1);
    return 0;
}

/* 1645557742 s is the time of the example in RFC 9562, appendix A.6. */
START_TEST(uuids_begin_with_the_time_and_grow)
{
    struct sxe_lua_clock clock = *sxe_lua_get_clock();

    clock.wall_s = get_wall;
    sxe_lua_set_clock(&clock);
    state_start();
    add_global("set_wall", set_wall);
    run_script("local uuid7 = require 'sxe.encoding'.uuid7\n"
               "local function is(start) local uuid = uuid7()\n"
               "    assert(uuid:sub(1, #start) == start, uuid) end\n"
               "set_wall(1645557742) is '017f22e2-79b0-7000'\n"
               "is '017f22e2-79b0-7001' set_wall(1645557740) is '017f22e2-79b0-7002'\n"
               "set_wall(1645557742.0005) is '017f22e2-79b0-7800'\n"
               "set_wall(1645557732.0006) is '017f22e2-79b0-7801'\n"
               "set_wall(1645557731) is '017f22e2-4eb8-7000'\n"
               "set_wall(-5) is '00000000-0000-7000'\n"
               "set_wall(0/0) is '00000000-0000-7001'\n"
               "set_wall(1645557742) is '017f22e2-79b0-7000'");
    state_stop();
    sxe_lua_set_clock(NULL);
}
END_TEST

START_TEST(without_random_bytes_no_uuid_is_made)
{
    state_start();
    for (int version = 4; version <= 7; version += 3) {
        char text[60];

        snprintf(text, sizeof(text), "require 'sxe.encoding'.uuid%d()", version);
        captured.number = 0;
        fake_os_fail(FAKE_GETRANDOM, 1, 1, ENOSYS);
        fails_with(text, "the system gives no random bytes: Function not implemented");
        run_script(text);
    }
    state_stop();
}
END_TEST

START_TEST(without_memory_calls_fail)
{
    state_start();
    for (uint64_t after = 0;
         runs_out_of_memory("local e, text = require 'sxe.encoding', ('x'):rep(3000)\n"
                            "local form, url = {form = true}, {url = true}\n"
                            "assert(e.decode_base64(e.encode_base64(text, url), url) == text)\n"
                            "assert(e.decode_hex(e.encode_hex(text)) == text and e.uuid7())\n"
                            "assert(e.decode_url(e.encode_url(text, form), form) == text)\n"
                            "assert(not e.decode_url '%' and not e.decode_hex '0' and e.uuid4())",
                            after);
         after++)
        captured.number = 0;
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-encoding");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, each_result_is_what_the_reference_has);
    tcase_add_test(c, uuids_begin_with_the_time_and_grow);
    tcase_add_test(c, without_random_bytes_no_uuid_is_made);
    tcase_add_test(c, without_memory_calls_fail);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
