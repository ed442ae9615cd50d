/* SPDX-License-Identifier: MIT
 *
 * Tokens of sxe.crypto. crypto-jwt.lua checks what is taken for one; here each allocation of Lua
 * and of OpenSSL fails in turn.
 */
#include "crypto-heap.h"

#include <lualib.h>

#include "lua-count.h"
#include "test-main.h"

static void
jwt_start(void)
{
    crypto_start();
    run_script("pems = dofile 'test/unit/lib-sxe-crypto/crypto-pems.lua'\n"
               "key, secret = crypto.private_key(pems.p256), ('s'):rep(32)\n"
               "claims = {exp = 99999999999, aud = {'a', 'b'}}\n"
               "token, other = crypto.sign_jwt(claims, key), crypto.sign_jwt(claims, secret)");
}

/* Lines are counted only in coroutines that are made after count_lines. */
START_TEST(tokens_are_those_of_the_standards)
{
    state_start_with(&(struct sxe_lua_config){.tasks = 64, .crypto = sxe_crypto_open});
    count_lines("build/coverage/lua/crypto-jwt.info");
    run_script("dofile 'test/unit/lib-sxe-crypto/crypto-jwt.lua'");
    state_stop();
}
END_TEST

/* ---- Failures ---- */

static const char *const calls[] = {
    "crypto.sign_jwt(claims, key)",
    "crypto.sign_jwt(claims, secret, {header = {kid = 'k'}})",
    "assert(crypto.verify_jwt(other, secret, {audience = 'b'}))",
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

START_TEST(without_memory_a_call_fails_and_the_next_works)
{
    jwt_start();
    starve_lua(calls[_i]);
    starve(calls[_i]);
    state_stop();
}
END_TEST

/* A token of another key is never taken for a good one. */
START_TEST(without_memory_no_token_is_verified)
{
    jwt_start();
    starve("if crypto.verify_jwt(other, {key, ('t'):rep(32)}) then os.exit(1) end");
    starve("if crypto.verify_jwt(other, key) then os.exit(1) end");
    state_stop();
}
END_TEST

START_TEST(a_plain_state_has_no_json_for_tokens)
{
    lua_State *L = luaL_newstate();

    luaL_openlibs(L);
    luaL_requiref(L, "sxe.crypto", sxe_crypto_open, 1);
    ck_assert_int_ne(luaL_dostring(L, "require 'sxe.crypto'.sign_jwt({}, ('s'):rep(32))"), LUA_OK);
    ck_assert_ptr_nonnull(strstr(lua_tostring(L, -1), "module 'sxe.encoding' not found"));
    lua_close(L);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("crypto-jwt");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, tokens_are_those_of_the_standards);
    tcase_add_loop_test(c, without_memory_a_call_fails_and_the_next_works, 0, CALLS);
    tcase_add_test(c, without_memory_no_token_is_verified);
    tcase_add_test(c, a_plain_state_has_no_json_for_tokens);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
