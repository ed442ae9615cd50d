/* SPDX-License-Identifier: MIT
 *
 * require "sxe.crypto". Its values are checked by crypto-values.lua; here each allocation of Lua
 * and of OpenSSL fails in turn, and a plain state of Lua uses the module.
 */
#include "crypto-heap.h"

#include <lualib.h>

#include "fake-os.h"
#include "test-main.h"

START_TEST(values_are_those_of_the_standards)
{
    crypto_start();
    run_script("dofile 'test/unit/lib-sxe-crypto/crypto-values.lua'");
    state_stop();
}
END_TEST

START_TEST(a_program_without_it_says_so)
{
    state_start();
    fails_with("require 'sxe.crypto'", "this program has no sxe.crypto: it was built without");
    state_stop();
    state_start_with(&(struct sxe_lua_config){.is_sandbox = true, .crypto = sxe_crypto_open});
    fails_with("require 'sxe.crypto'", "not found");
    state_stop();
}
END_TEST

START_TEST(a_plain_state_has_it)
{
    lua_State *L = luaL_newstate();

    luaL_openlibs(L);
    luaL_requiref(L, "sxe.crypto", sxe_crypto_open, 0);
    ck_assert_int_eq(luaL_dostring(L, "return #require 'sxe.crypto'.digest('sha256', '')"), LUA_OK);
    ck_assert_int_eq(lua_tointeger(L, -1), 32);
    ck_assert_int_eq(luaL_dostring(L, "return #require 'sxe.crypto'.scrypt('a', 'b', {n = 2})"),
                     LUA_OK);
    ck_assert_int_eq(lua_tointeger(L, -1), 32);
    lua_close(L);
}
END_TEST

/* ---- Failures ---- */

static const char *const calls[] = {
    "crypto.digest('sha256', 'a')",
    "crypto.digest('sha3-256', 'a')",
    "crypto.hmac('sha256', 'k', 'a')",
    "crypto.new_digest('sha512'):add('a'):finish()",
    "crypto.new_hmac('blake2s', 'k'):add(('a'):rep(5000)):finish()",
    "crypto.hkdf('sha256', 'secret', {salt = 's', info = 'i', length = 5000})",
    "crypto.pbkdf2('sha256', 'password', 'salt', {rounds = 2})",
    "crypto.random_bytes(5000)",
    "crypto.random_token()",
    "crypto.random_text(5000)",
    "crypto.open(('k'):rep(32), crypto.seal(('k'):rep(32), ('a'):rep(5000), {aad = 'b'}))",
    "crypto.seal_with_nonce(('k'):rep(32), ('n'):rep(12), 'a', {algorithm = 'chacha20-poly1305'})",
    "crypto.open_with_nonce(('k'):rep(16), ('n'):rep(12), ('a'):rep(16), {algorithm = "
    "'aes-128-gcm'})",
    "crypto.scrypt('password', 'salt', {n = 16})",
    "crypto.hash_password('password', {n = 2, r = 1, p = 1})",
    "assert(crypto.verify_password('password', "
    "'$scrypt$ln=4,r=1,p=1$c2FsdHNhbHRzYWx0c2FsdA$"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA') == false)",
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

START_TEST(without_memory_a_call_fails_and_the_next_works)
{
    crypto_start();
    starve_lua(calls[_i]);
    starve(calls[_i]);
    state_stop();
}
END_TEST

START_TEST(random_bytes_come_from_the_system_or_not_at_all)
{
    crypto_start();
    fake_os_fail(FAKE_GETRANDOM, 1, 2, EINTR);
    run_script("assert(#crypto.random_bytes(300) == 300)");
    for (int i = 7; i <= 10; i++) {
        captured.number = 0;
        fake_os_fail(FAKE_GETRANDOM, 1, 1, ENOSYS);
        fails_with(calls[i], "the system gives no random bytes: Function not implemented");
    }
    state_stop();
}
END_TEST

START_TEST(without_memory_the_module_is_not_opened)
{
    crypto_start();
    starve_lua("package.loaded['sxe.crypto'] = nil require 'sxe.crypto'");
    run_script("assert(require 'sxe.crypto'.digest)");
    state_stop();
}
END_TEST

/* An argument is converted, so that a string is made and the collector runs. */
START_TEST(a_finalizer_may_close_the_object_of_a_call)
{
    crypto_start();
    run_script("collectgarbage 'generational'\n"
               "for i = 1, 2000 do\n"
               "    local one = crypto.new_digest 'sha256'\n"
               "    setmetatable({}, {__gc = function() one:close() end})\n"
               "    local done, why = pcall(one.add, one, i + 0.5)\n"
               "    assert(done or why:find('closed', 1, true), why)\n"
               "end");
    state_stop();
}
END_TEST

/* OpenSSL's part of an object is 500 bytes to 5 KB, Lua's part 50 bytes. If the collector were not
 * told of OpenSSL's part, it would wait for 80,000 dropped objects in a script with 4 MB of its
 * own. */
START_TEST(the_collector_keeps_up_with_objects_that_are_dropped)
{
    long live, of_one;

    crypto_start();
    run_script("pem = dofile 'test/unit/lib-sxe-crypto/crypto-pems.lua'.ed25519\n"
               "own = ('x'):rep(4 << 20)\n"
               "function drop(times)\n"
               "    for _ = 1, times do crypto.private_key(pem) crypto.new_digest 'md5' end\n"
               "end\n"
               "drop(10)");
    live = live_after_garbage();
    run_script("collectgarbage 'stop' drop(100) assert(not collectgarbage 'isrunning')");
    of_one = (heap.live - live) / 100;
    ck_assert_int_gt(of_one, 2);
    run_script("collectgarbage 'restart' drop(3000)");
    ck_assert_int_lt(heap.live - live, 2000 * of_one);
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("crypto-module");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, values_are_those_of_the_standards);
    tcase_add_test(c, a_program_without_it_says_so);
    tcase_add_test(c, a_plain_state_has_it);
    tcase_add_loop_test(c, without_memory_a_call_fails_and_the_next_works, 0, CALLS);
    tcase_add_test(c, random_bytes_come_from_the_system_or_not_at_all);
    tcase_add_test(c, without_memory_the_module_is_not_opened);
    tcase_add_test(c, the_collector_keeps_up_with_objects_that_are_dropped);
    tcase_add_test(c, a_finalizer_may_close_the_object_of_a_call);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
