/* SPDX-License-Identifier: MIT
 *
 * Keys of sxe.crypto, which sign and verify. Their values are checked by crypto-keys.lua; here each
 * allocation of Lua and of OpenSSL fails in turn.
 */
#include "crypto-heap.h"

#include "test-main.h"

static void
key_start(void)
{
    crypto_start();
    run_script("pems = dofile 'test/unit/lib-sxe-crypto/crypto-pems.lua'\n"
               "signed, keys = {}, {}\n"
               "for _, kind in ipairs {'rsa', 'p256', 'p384', 'ed25519'} do\n"
               "    keys[kind] = crypto.private_key(pems[kind])\n"
               "    signed[kind] = keys[kind]:sign('a', kind == 'p384' and {raw = true} or nil)\n"
               "end\n"
               "public_pem = keys.p256:public()");
}

START_TEST(keys_sign_as_the_standards_have_it)
{
    crypto_start();
    run_script("dofile 'test/unit/lib-sxe-crypto/crypto-keys.lua'");
    state_stop();
}
END_TEST

/* ---- Failures ---- */

static const char *const calls[] = {
    "crypto.private_key(pems.encrypted, 'secret')",
    "crypto.public_key(public_pem)",
    "return keys.p256:type()",
    "keys.rsa:public()",
    "keys.rsa:sign('a')",
    "keys.rsa:sign('a', {pkcs1 = true, digest = 'sha512'})",
    "keys.p256:sign('a')",
    "keys.p384:sign('a', {raw = true})",
    "keys.ed25519:sign('a')",
    "keys.rsa:verify('a', signed.rsa)",
    "keys.p256:verify('a', signed.p256)",
    "keys.p384:verify('a', signed.p384, {raw = true})",
    "keys.ed25519:verify('a', signed.ed25519)",
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

START_TEST(without_memory_a_call_fails_and_the_next_works)
{
    key_start();
    starve_lua(calls[_i]);
    starve(calls[_i]);
    state_stop();
}
END_TEST

/* A signature of another text is never taken for a good one. */
START_TEST(without_memory_nothing_is_verified)
{
    key_start();
    starve("for kind, key in pairs(keys) do\n"
           "    local options = kind == 'p384' and {raw = true} or nil\n"
           "    if key:verify('b', signed[kind], options) then os.exit(1) end\n"
           "end");
    state_stop();
}
END_TEST

START_TEST(a_finalizer_may_close_the_key_of_a_call)
{
    crypto_start();
    run_script("pems = dofile 'test/unit/lib-sxe-crypto/crypto-pems.lua'\n"
               "collectgarbage 'generational'\n"
               "for i = 1, 300 do\n"
               "    local one = crypto.private_key(pems.ed25519)\n"
               "    setmetatable({}, {__gc = function() one:close() end})\n"
               "    local done, why = pcall(one.sign, one, i + 0.5)\n"
               "    assert(done or why:find('closed', 1, true), why)\n"
               "    done, why = pcall(one.verify, one, i + 0.5, i + 0.25)\n"
               "    assert(done or why:find('closed', 1, true), why)\n"
               "end");
    state_stop();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("crypto-key");
    TCase *c = tcase_create("all");

    suite_add_tcase(s, c);
    tcase_add_test(c, keys_sign_as_the_standards_have_it);
    tcase_add_loop_test(c, without_memory_a_call_fails_and_the_next_works, 0, CALLS);
    tcase_add_test(c, without_memory_nothing_is_verified);
    tcase_add_test(c, a_finalizer_may_close_the_key_of_a_call);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
