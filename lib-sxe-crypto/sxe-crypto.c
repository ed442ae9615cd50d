/* SPDX-License-Identifier: MIT
 *
 * The module sxe.crypto, with the functions of all files, random values, and comparing in a time
 * that tells nothing about the strings.
 */
#include "sxe-crypto-private.h"

#include <openssl/crypto.h>

/* ---- Random values ---- */

/* crypto.random_bytes(number) returns a string of `number` bytes. */
static int
random_bytes(lua_State *L)
{
    const lua_Integer number = luaL_checkinteger(L, 1);
    luaL_Buffer bytes;

    luaL_argcheck(L, number >= 0 && number <= SXE__CRYPTO_OUT_MAX, 1,
                  "0 to 1048576 bytes expected");
    sxe__crypto_fill_random(L, luaL_buffinitsize(L, &bytes, (size_t)number), (size_t)number);
    luaL_pushresultsize(&bytes, (size_t)number);
    return 1;
}

/* crypto.random_integer(least, most): draws a value of 8 bytes, and takes it modulo the number of
 * results. So that all results are equally likely, draws again if the value is below the remainder
 * of 2^64 divided by the number of results. */
static int
push_random_integer(lua_State *L)
{
    const lua_Integer least = luaL_checkinteger(L, 1), most = luaL_checkinteger(L, 2);
    /* how many results there are; 0 stands for all 2^64 */
    const uint64_t span = (uint64_t)most - (uint64_t)least + 1;
    uint64_t value;

    luaL_argcheck(L, least <= most, 2, "at least the first argument expected");
    do
        sxe__crypto_fill_random(L, &value, sizeof(value));
    while (span != 0 && value < -span % span);
    lua_pushinteger(L, (lua_Integer)((uint64_t)least + (span == 0 ? value : value % span)));
    return 1;
}

/* crypto.random_token([bytes]) returns random bytes in base64 for URLs, which makes 4 digits of
 * each 3 bytes. */
static int
random_token(lua_State *L)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const lua_Integer number = luaL_optinteger(L, 1, 32);
    uint8_t bytes[256];
    char text[sizeof(bytes) * 4 / 3 + 1];
    size_t length;

    luaL_argcheck(L, number >= 16 && number <= (lua_Integer)sizeof(bytes), 1,
                  "16 to 256 bytes expected");
    length = ((size_t)number * 8 + 5) / 6;
    sxe__crypto_fill_random(L, bytes, (size_t)number);
    for (size_t i = 0, bit = 0; i < length; i++, bit += 6) {
        const unsigned next = bit / 8 + 1 < (size_t)number ? bytes[bit / 8 + 1] : 0;
        const unsigned bits = (unsigned)bytes[bit / 8] << 8 | next;

        text[i] = digits[bits >> (10 - bit % 8) & 63];
    }
    lua_pushlstring(L, text, length);
    return 1;
}

/* ---- Comparing ---- */

/* crypto.equal(a, b): its time depends only on the length of a, and not on where a and b differ. */
static int
is_equal_secret(lua_State *L)
{
    size_t length, other_length;
    const char *a = luaL_checklstring(L, 1, &length);
    const char *b = luaL_checklstring(L, 2, &other_length);
    const bool is_same = CRYPTO_memcmp(a, length == other_length ? b : a, length) == 0;

    lua_pushboolean(L, is_same && length == other_length);
    return 1;
}

/* ---- The module ---- */

int
sxe_crypto_open(lua_State *L)
{
    static const luaL_Reg functions[] = {{"random_bytes", random_bytes},
                                         {"random_integer", push_random_integer},
                                         {"random_token", random_token},
                                         {"equal", is_equal_secret},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    sxe__crypto_add_hash(L);
    sxe__crypto_add_derive(L);
    sxe__crypto_add_seal(L);
    sxe__crypto_add_key(L);
    sxe__crypto_add_jwt(L);
    return 1;
}
