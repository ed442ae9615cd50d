/* SPDX-License-Identifier: MIT
 *
 * require "sxe.session": a server and its client in one process (lua-session.lua).
 */
#include "lua-net.h"

#include "fake-time.h"
#include "lua-count.h"
#include "sxe-crypto.h"
#include "test-main.h"

/* pass(seconds): advance the clocks. */
static int
pass(lua_State *L)
{
    fake_time_advance((uint64_t)luaL_checkinteger(L, 1) * SXE_NS_PER_SECOND);
    return 0;
}

static void
prepare(void)
{
    add_global("pass", pass);
    count_lines("build/coverage/lua/session.info");
}

START_TEST(sessions_are_those_of_their_clients)
{
    fake_time_start(UINT64_C(1000000000000), UINT64_C(784111777) * SXE_NS_PER_SECOND);
    net_on_state = prepare;
    net_crypto = sxe_crypto_open;
    net_start("dofile 'test/unit/lib-sxe-lua/lua-session.lua'");
    for (unsigned i = 0; i < 100000 && number("done") == 0; i++) {
        turn_slowly(1);
        usleep(100); /* the kernel may need the CPU to deliver bytes, and virtual time gives none */
    }
    net_finish();
    fake_time_stop();
}
END_TEST

START_TEST(without_the_module_of_digests_there_are_no_sessions)
{
    state_start();
    run_script("local is_made, why = pcall(require 'sxe.session'.new, {secret = ('s'):rep(32)})\n"
               "assert(not is_made and why:find('sxe.crypto', 1, true), why)");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-session");
    TCase *t = tcase_create("sessions");

    tcase_add_test(t, sessions_are_those_of_their_clients);
    tcase_add_test(t, without_the_module_of_digests_there_are_no_sessions);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
