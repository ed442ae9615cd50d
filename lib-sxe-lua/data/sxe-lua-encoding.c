/* SPDX-License-Identifier: MIT
 *
 * require "sxe.encoding": base64, hexadecimal digits, escapes of URLs, UUIDs.
 *
 * Decoders are strict: each value has exactly one text, so that two texts never mean the same
 * token. For a text that is refused they return nil, why, and the number of the wrong byte.
 */
#include "sxe-lua-private.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "sxe-http-uri.h"
#include "sxe-lua-clock.h"

enum { NO_DIGIT = 0xff };

/* Push nil, "base64: ... at byte n" and n, which counts from 1; `at` counts from 0. */
static int
refuse_encoded_text(lua_State *L, const char *what, const char *why, size_t at)
{
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s, at byte %I", what, why, (LUAI_UACINT)(at + 1));
    lua_pushinteger(L, (lua_Integer)(at + 1));
    return 3;
}

/* ---- Base64 (RFC 4648, 4 and 5) ---- */

struct base64 {
    const char *digits;
    bool is_padded;
};

/* Read the options at 2. By default, a text for URLs has no padding. */
static struct base64
take_base64(lua_State *L, const char *call)
{
    static const char *const names[] = {"url", "pad", NULL};
    struct base64 base64 = {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                            true};

    if (lua_isnoneornil(L, 2))
        return base64;
    sxe__lua_option_names(L, 2, names, call);
    if (sxe__lua_option_bool(L, 2, call, "url", false))
        base64 = (struct base64){"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
                                 false};
    base64.is_padded = sxe__lua_option_bool(L, 2, call, "pad", base64.is_padded);
    return base64;
}

/* Write 4 digits for `length` bytes, 1 to 3. Returns the end of the digits that have bits of these
 * bytes. */
static char *
put_group(char *to, const uint8_t *from, size_t length, const char *digits)
{
    const unsigned bits = (unsigned)from[0] << 16 | (length > 1 ? (unsigned)from[1] << 8 : 0) |
                          (length > 2 ? from[2] : 0u);

    to[0] = digits[bits >> 18];
    to[1] = digits[bits >> 12 & 63];
    to[2] = digits[bits >> 6 & 63];
    to[3] = digits[bits & 63];
    return to + length + 1;
}

static int
encode_base64(lua_State *L)
{
    size_t length;
    const uint8_t *bytes = (const uint8_t *)luaL_checklstring(L, 1, &length);
    const struct base64 base64 = take_base64(L, "encoding.encode_base64");
    luaL_Buffer text;
    char *room = luaL_buffinitsize(L, &text, length / 3 * 4 + 4);
    char *to = room;

    for (; length > 3; length -= 3, bytes += 3)
        to = put_group(to, bytes, 3, base64.digits);
    if (length > 0)
        to = put_group(to, bytes, length, base64.digits);
    while (base64.is_padded && (to - room) % 4 != 0)
        *to++ = '=';
    luaL_pushresultsize(&text, (size_t)(to - room));
    return 1;
}

/* Decode digits up to the first byte that is no digit. Returns the number of digits. The bytes of
 * the digits go to room, and the bits that are left over to *rest. */
static size_t
take_digits(const char *text, size_t length, const char *digits, char *room, unsigned *rest)
{
    uint8_t values[256];
    unsigned bits = 0;
    size_t at;

    memset(values, NO_DIGIT, sizeof(values));
    for (uint8_t i = 0; i < 64; i++)
        values[(uint8_t)digits[i]] = i;
    for (at = 0; at < length; at++) {
        const unsigned value = values[(uint8_t)text[at]];

        if (value == NO_DIGIT)
            break;
        bits = bits << 6 | value;
        if (at % 4 != 0)
            *room++ = (char)(bits >> (6 - at % 4 * 2));
    }
    *rest = at % 4 == 2 ? bits & 15 : at % 4 == 3 ? bits & 3 : 0;
    return at;
}

/* The reason why a text is not base64, and the byte where it is wrong; NULL: the text is base64.
 * `digits` is the number of the text's digits, and `rest` has the bits that the digits left
 * over. */
static const char *
find_fault(const struct sxe_span *text, size_t digits, unsigned rest, bool is_padded, size_t *at)
{
    size_t padding = is_padded && digits % 4 > 1 ? 4 - digits % 4 : 0;

    for (*at = digits; padding > 0 && *at < text->length && text->base[*at] == '='; padding--)
        ++*at;
    if (*at < text->length)
        return "no digit, or padding, may stand here";
    if (digits % 4 == 1)
        return "the text ends within a byte";
    if (padding > 0)
        return "padding is missing";
    *at = digits - 1;
    return rest != 0 ? "bits after the last byte are not 0" : NULL;
}

static int
decode_base64(lua_State *L)
{
    struct sxe_span text;
    struct base64 base64;
    luaL_Buffer bytes;
    const char *why;
    size_t digits, at;
    unsigned rest;

    text.base = luaL_checklstring(L, 1, &text.length);
    base64 = take_base64(L, "encoding.decode_base64");
    digits = take_digits(text.base, text.length, base64.digits,
                         luaL_buffinitsize(L, &bytes, text.length / 4 * 3 + 3), &rest);
    why = find_fault(&text, digits, rest, base64.is_padded, &at);
    if (why != NULL)
        return refuse_encoded_text(L, "base64", why, at);
    luaL_pushresultsize(&bytes, digits / 4 * 3 + digits % 4 * 3 / 4);
    return 1;
}

/* ---- Hexadecimal digits ---- */

static void
put_hex(char *to, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < length; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
}

static unsigned
take_hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return (unsigned)(digit - '0');
    digit = (char)(digit | 0x20);
    return digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a') + 10 : NO_DIGIT;
}

static int
encode_hex(lua_State *L)
{
    size_t length;
    const uint8_t *bytes = (const uint8_t *)luaL_checklstring(L, 1, &length);
    luaL_Buffer text;

    put_hex(luaL_buffinitsize(L, &text, 2 * length), bytes, length);
    luaL_pushresultsize(&text, 2 * length);
    return 1;
}

static int
decode_hex(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    luaL_Buffer bytes;
    char *room = luaL_buffinitsize(L, &bytes, length / 2);
    unsigned bits = 0;

    for (size_t i = 0; i < length; i++) {
        const unsigned value = take_hex(text[i]);

        if (value == NO_DIGIT)
            return refuse_encoded_text(L, "hex", "this is no digit", i);
        bits = bits << 4 | value;
        if (i % 2 != 0)
            *room++ = (char)bits;
    }
    if (length % 2 != 0)
        return refuse_encoded_text(L, "hex", "the text ends within a byte", length);
    luaL_pushresultsize(&bytes, length / 2);
    return 1;
}

/* ---- Escapes of URLs (RFC 3986, 2.1), and of forms ---- */

static bool
is_of_form(lua_State *L, const char *call)
{
    static const char *const names[] = {"form", NULL};

    if (lua_isnoneornil(L, 2))
        return false;
    sxe__lua_option_names(L, 2, names, call);
    return sxe__lua_option_bool(L, 2, call, "form", false);
}

/* In a form a blank becomes "+". A "+" in the text becomes "%2B", so the result is unambiguous. */
static int
encode_url(lua_State *L)
{
    struct sxe_span bytes;
    luaL_Buffer text;
    const bool is_form = is_of_form(L, "encoding.encode_url");
    char *room;
    size_t used = 0;

    bytes.base = luaL_checklstring(L, 1, &bytes.length);
    room = luaL_buffinitsize(L, &text, 3 * bytes.length);
    while (bytes.length > 0) {
        const char *blank = is_form ? memchr(bytes.base, ' ', bytes.length) : NULL;
        const size_t part = blank != NULL ? (size_t)(blank - bytes.base) : bytes.length;

        used += (size_t)sxe_http_encode_segment((struct sxe_span){bytes.base, part}, room + used,
                                                3 * part);
        if (blank != NULL)
            room[used++] = '+';
        bytes.base += blank != NULL ? part + 1 : part;
        bytes.length -= blank != NULL ? part + 1 : part;
    }
    luaL_pushresultsize(&text, used);
    return 1;
}

static int
decode_url(lua_State *L)
{
    struct sxe_span text;
    luaL_Buffer bytes;
    const bool is_form = is_of_form(L, "encoding.decode_url");
    char *room;

    text.base = luaL_checklstring(L, 1, &text.length);
    room = luaL_buffinitsize(L, &bytes, text.length);
    for (size_t i = 0; i < text.length; i++) {
        if (text.base[i] != '%') {
            *room++ = is_form && text.base[i] == '+' ? ' ' : text.base[i];
            continue;
        }
        /* This may read the zero byte that ends a Lua string; that byte is not a digit. */
        if (take_hex(text.base[i + 1]) == NO_DIGIT || take_hex(text.base[i + 2]) == NO_DIGIT)
            return refuse_encoded_text(L, "url", "two hexadecimal digits must follow this %", i);
        *room++ = (char)(take_hex(text.base[i + 1]) << 4 | take_hex(text.base[i + 2]));
        i += 2;
    }
    luaL_pushresultsize(&bytes, (size_t)(room - luaL_buffaddr(&bytes)));
    return 1;
}

/* ---- UUIDs (RFC 9562) ---- */

enum {
    UUID_SIZE = 16,
    UUID_LENGTH = 36,
    TICKS_PER_S = 4096000, /* a tick is 1/4096 ms */
    CLOCK_BACK_S = 10
};

static void
make_random_bytes(lua_State *L, uint8_t *bytes)
{
    if (getrandom(bytes, UUID_SIZE, 0) != UUID_SIZE)
        luaL_error(L, "the system gives no random bytes: %s", strerror(errno));
}

static int
push_uuid(lua_State *L, uint8_t *bytes, unsigned version)
{
    static const uint8_t parts[] = {4, 2, 2, 2, 6};
    char text[UUID_LENGTH + 1]; /* each part with a dash after it, even the last part */
    char *to = text;

    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | version << 4);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof(parts); i++) {
        put_hex(to, bytes, parts[i]);
        bytes += parts[i];
        to += 2 * parts[i];
        *to++ = '-';
    }
    lua_pushlstring(L, text, UUID_LENGTH);
    return 1;
}

static int
l_uuid4(lua_State *L)
{
    uint8_t bytes[UUID_SIZE];

    make_random_bytes(L, bytes);
    return push_uuid(L, bytes, 4);
}

/* The time in ticks. If the last result is later, this is one more than the last result, so that
 * the UUIDs of a thread grow (RFC 9562, 6.2, methods 3 and 4). If the clock was set back by more
 * than CLOCK_BACK_S, its time counts again. */
static uint64_t
next_tick(void)
{
    static _Thread_local uint64_t last;
    const double seconds = sxe_lua_get_clock()->wall_s();
    const uint64_t now = seconds > 0 ? (uint64_t)(seconds * TICKS_PER_S) : 0;
    const bool is_back = now + (uint64_t)CLOCK_BACK_S * TICKS_PER_S < last;

    last = now > last || is_back ? now : last + 1;
    return last;
}

static int
l_uuid7(lua_State *L)
{
    const uint64_t tick = next_tick();
    uint8_t bytes[UUID_SIZE];

    make_random_bytes(L, bytes);
    for (unsigned i = 0; i < 6; i++)
        bytes[i] = (uint8_t)(tick >> (52 - 8 * i));
    bytes[6] = (uint8_t)(tick >> 8);
    bytes[7] = (uint8_t)tick;
    return push_uuid(L, bytes, 7);
}

/* ---- The module ---- */

int
sxe__lua_open_encoding(lua_State *L)
{
    static const luaL_Reg functions[] = {{"encode_base64", encode_base64},
                                         {"decode_base64", decode_base64},
                                         {"encode_hex", encode_hex},
                                         {"decode_hex", decode_hex},
                                         {"encode_url", encode_url},
                                         {"decode_url", decode_url},
                                         {"uuid4", l_uuid4},
                                         {"uuid7", l_uuid7},
                                         {NULL, NULL}};

    luaL_newlib(L, functions);
    return 1;
}
