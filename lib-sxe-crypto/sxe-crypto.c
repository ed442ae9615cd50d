/* SPDX-License-Identifier: MIT
 *
 * The module sxe.crypto, with the functions of all files, random values, and comparing in a time
 * that tells nothing about the strings.
 */
#include "sxe-crypto-private.h"

#include <openssl/crypto.h>

enum {
    DRAWN_MAX = 4096,  /* the random bytes that one call of the system makes for a text */
    DRAWN_SPARE = 16,  /* more bytes than characters that are missing, because some are refused */
    ALPHABET_MAX = 256 /* characters: all bytes */
};

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

/* Check the alphabet at an argument. A character that stands there twice would be drawn twice as
 * often, so it is refused. Returns the number of characters. */
static unsigned
check_alphabet(lua_State *L, int argument, const char **alphabet)
{
    bool is_there[ALPHABET_MAX] = {false};
    size_t size;

    *alphabet = luaL_optlstring(
        L, argument, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", &size);
    luaL_argcheck(L, size >= 2 && size <= ALPHABET_MAX, argument, "2 to 256 characters expected");
    for (size_t i = 0; i < size; i++) {
        bool *is_this_there = &is_there[(uint8_t)(*alphabet)[i]];

        luaL_argcheck(L, !*is_this_there, argument, "each character only once expected");
        *is_this_there = true;
    }
    return (unsigned)size;
}

/* Make characters of random bytes: a byte times the size of the alphabet, divided by 256. Of the
 * 256 bytes 256 % size are refused, so that each character has the same number of bytes (Lemire,
 * "Fast Random Integer Generation in an Interval"). Returns the number of characters. */
static size_t
pick_characters(char *to, size_t wanted, const uint8_t *drawn, size_t length, const char *alphabet,
                unsigned size)
{
    const unsigned surplus = 256 % size;
    size_t picked = 0;

    for (size_t i = 0; i < length && picked < wanted; i++) {
        const unsigned product = drawn[i] * size;

        to[picked] = alphabet[product >> 8];
        picked += (product & 255) >= surplus;
    }
    return picked;
}

/* crypto.random_text(length [, alphabet]) */
static int
random_text(lua_State *L)
{
    const lua_Integer length = luaL_checkinteger(L, 1);
    const char *alphabet;
    const unsigned size = check_alphabet(L, 2, &alphabet);
    uint8_t drawn[DRAWN_MAX];
    luaL_Buffer text;
    char *room;
    size_t wanted;

    luaL_argcheck(L, length >= 0 && length <= SXE__CRYPTO_OUT_MAX, 1,
                  "0 to 1048576 characters expected");
    room = luaL_buffinitsize(L, &text, (size_t)length);
    for (wanted = (size_t)length; wanted > 0;) {
        const size_t count = wanted < DRAWN_MAX - DRAWN_SPARE ? wanted + DRAWN_SPARE : DRAWN_MAX;
        size_t picked;

        sxe__crypto_fill_random(L, drawn, count);
        picked = pick_characters(room, wanted, drawn, count, alphabet, size);
        room += picked;
        wanted -= picked;
    }
    OPENSSL_cleanse(drawn, sizeof(drawn));
    luaL_pushresultsize(&text, (size_t)length);
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
    static const luaL_Reg functions[] = {
        {"random_bytes", random_bytes}, {"random_integer", push_random_integer},
        {"random_token", random_token}, {"random_text", random_text},
        {"equal", is_equal_secret},     {NULL, NULL}};

    luaL_newlib(L, functions);
    sxe__crypto_add_hash(L);
    sxe__crypto_add_derive(L);
    sxe__crypto_add_password(L);
    sxe__crypto_add_seal(L);
    sxe__crypto_add_key(L);
    sxe__crypto_add_jwt(L);
    return 1;
}
