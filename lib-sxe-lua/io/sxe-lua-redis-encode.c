/* SPDX-License-Identifier: MIT
 *
 * What: commands of Redis as bytes.
 *
 *     encode              a command's name and arguments as bytes
 *     slot, crc16         the slot of a key in a cluster, and the checksum that it is made of
 *     place               the place of a key, or of a text, on a ring
 *     new_batch, adder    collect the commands of a pipeline, one after the other
 *     batch_number        how many commands a batch has
 *     take_batch          their bytes, and their number; the batch is empty afterwards
 *
 * A batch is a buffer that grows. An adder is a function for the commands of one name, which has
 * the bytes of the name ready: a pipeline of a hundred commands calls it a hundred times.
 */
#include "sxe-lua-redis-private.h"

#include <stdlib.h>
#include <string.h>

#include "sxe-lua-private.h"

enum { SLOTS = 16384 };    /* the slots of a cluster */
enum { LENGTH_SIZE = 24 }; /* bytes of "*LENGTH CRLF" at most */

/* Push the argument at that index as text; raises if it is neither a string nor a number. */
static const char *
push_argument(lua_State *L, int argument, size_t *length)
{
    char text[64];

    if (lua_type(L, argument) == LUA_TNUMBER && !lua_isinteger(L, argument)) {
        double value = lua_tonumber(L, argument);

        /* 15 digits print 0.1 as 0.1. A number that 15 digits would change gets 17. */
        snprintf(text, sizeof(text), "%.15g", value);
        if (strtod(text, NULL) != value)
            snprintf(text, sizeof(text), "%.17g", value);
        lua_pushstring(L, text);
    } else {
        lua_pushvalue(L, argument);
    }
    if (!lua_isstring(L, -1))
        luaL_error(L, "redis: argument %d is a %s, not a string or a number", argument - 1,
                   luaL_typename(L, argument));
    return lua_tolstring(L, -1, length);
}

/* Write a type, a length and CRLF. Returns the place after them. */
static char *
put_resp_length(char *at, char type, size_t length)
{
    char digits[LENGTH_SIZE];
    unsigned first = LENGTH_SIZE;

    do
        digits[--first] = (char)('0' + length % 10);
    while ((length /= 10) > 0);
    *at++ = type;
    while (first < LENGTH_SIZE)
        *at++ = digits[first++];
    memcpy(at, "\r\n", 2);
    return at + 2;
}

/* Make the stack's values from an index on texts. Returns the most bytes that they take in a
 * command. */
static size_t
measure_arguments(lua_State *L, int first)
{
    const int last = lua_gettop(L);
    size_t size = LENGTH_SIZE;
    size_t length;

    for (int i = first; i <= last; i++) {
        if (lua_type(L, i) != LUA_TSTRING) {
            (void)push_argument(L, i, &length);
            lua_replace(L, i);
        }
        (void)lua_tolstring(L, i, &length);
        size += length + LENGTH_SIZE + 2;
    }
    return size;
}

/* Write the texts of the stack from one index to another. Returns the place after them. */
static char *
put_arguments(lua_State *L, int first, int last, char *at)
{
    for (int i = first; i <= last; i++) {
        size_t length;
        const char *text = lua_tolstring(L, i, &length);

        at = put_resp_length(at, '$', length);
        memcpy(at, text, length);
        memcpy(at + length, "\r\n", 2);
        at += length + 2;
    }
    return at;
}

/* encode(name, ...) */
static int
l_redis_encode(lua_State *L)
{
    const int number = lua_gettop(L);
    luaL_Buffer buffer;
    char *bytes, *end;
    size_t size;

    luaL_checkstack(L, LUA_MINSTACK, "redis: too many arguments");
    size = measure_arguments(L, 1);
    bytes = luaL_buffinitsize(L, &buffer, size);
    end = put_resp_length(bytes, '*', (size_t)number);
    end = put_arguments(L, 1, number, end);
    luaL_pushresultsize(&buffer, (size_t)(end - bytes));
    return 1;
}

/* ---- Batches ---- */

struct batch {
    lua_Integer number;
    size_t used;
    size_t size;
    char *bytes; /* the batch's first uservalue */
};

enum { PIPELINE = 1, FIRST_ARGUMENT }; /* places in the Lua stack of an adder */
enum { NAME = 1, CLASS };              /* upvalues of an adder */
enum { BATCH_MIN = 4096 };

static const char batch_class[] = "sxe.redis batch";

/* new_batch() */
static int
new_redis_batch(lua_State *L)
{
    struct batch *batch = lua_newuserdatauv(L, sizeof(*batch), 1);

    *batch = (struct batch){.number = 0};
    luaL_newmetatable(L, batch_class);
    lua_setmetatable(L, -2);
    return 1;
}

/* Have room for `size` more bytes. The batch is on top of the stack. */
static void
make_batch_room(lua_State *L, struct batch *batch, size_t size)
{
    size_t wanted = 2 * (batch->used + size);
    char *bytes;

    if (batch->size - batch->used >= size)
        return;
    wanted = wanted < BATCH_MIN ? BATCH_MIN : wanted;
    bytes = lua_newuserdatauv(L, wanted, 0);
    if (batch->used > 0)
        memcpy(bytes, batch->bytes, batch->used);
    lua_setiuservalue(L, -2, 1);
    batch->bytes = bytes;
    batch->size = wanted;
}

/* adder's function(pipeline, ...): add a command to the batch, which the pipeline has at [1].
 * Returns the pipeline. */
static int
add_to_batch(lua_State *L)
{
    const int last = lua_gettop(L);
    struct batch *batch;
    size_t size, name_size;
    const char *name = lua_tolstring(L, lua_upvalueindex(NAME), &name_size);
    char *at;

    luaL_checktype(L, PIPELINE, LUA_TTABLE);
    luaL_checkstack(L, LUA_MINSTACK, "redis: too many arguments");
    size = name_size + measure_arguments(L, FIRST_ARGUMENT);
    lua_rawgeti(L, PIPELINE, 1);
    batch = lua_touserdata(L, -1);
    if (batch == NULL || !lua_getmetatable(L, -1) || !lua_rawequal(L, -1, lua_upvalueindex(CLASS)))
        return luaL_argerror(L, PIPELINE, "a pipeline expected");
    lua_pop(L, 1);
    make_batch_room(L, batch, size);
    at = put_resp_length(batch->bytes + batch->used, '*', (size_t)last);
    memcpy(at, name, name_size);
    at = put_arguments(L, FIRST_ARGUMENT, last, at + name_size);
    batch->used = (size_t)(at - batch->bytes);
    batch->number++;
    lua_settop(L, PIPELINE);
    return 1;
}

/* adder(name): a function that adds commands of this name */
static int
push_adder(lua_State *L)
{
    size_t length;
    const char *name = lua_tolstring(L, 1, &length);

    lua_pushfstring(L, "$%I\r\n%s\r\n", (LUAI_UACINT)length, name);
    luaL_newmetatable(L, batch_class);
    lua_pushcclosure(L, add_to_batch, 2);
    return 1;
}

/* batch_number(batch) */
static int
batch_number(lua_State *L)
{
    const struct batch *batch = luaL_checkudata(L, 1, batch_class);

    lua_pushinteger(L, batch->number);
    return 1;
}

/* take_batch(batch): the bytes, and how many commands they are */
static int
take_batch(lua_State *L)
{
    struct batch *batch = luaL_checkudata(L, 1, batch_class);

    lua_pushlstring(L, batch->bytes, batch->used);
    lua_pushinteger(L, batch->number);
    batch->number = 0;
    batch->used = 0;
    return 2;
}

/* ---- Places of keys ---- */

/* The CRC16 of Redis Cluster (XMODEM: polynomial 0x1021, start 0), computed four bits at a time. */
static unsigned
crc16_of_key(const char *text, size_t length)
{
    static const uint16_t of_nibble[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                           0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                           0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
    unsigned crc = 0;

    for (size_t i = 0; i < length; i++) {
        const unsigned byte = (unsigned char)text[i];

        crc = (crc << 4 ^ of_nibble[(crc >> 12 ^ byte >> 4) & 15]) & 0xffff;
        crc = (crc << 4 ^ of_nibble[(crc >> 12 ^ byte) & 15]) & 0xffff;
    }
    return crc;
}

/* The first argument's first {hash tag}, if that is not empty, or else the whole argument. */
static const char *
push_hashed_part(lua_State *L, size_t *length)
{
    const char *key = push_argument(L, 1, length);
    const char *tag = memchr(key, '{', *length);
    const char *end = tag == NULL ? NULL : memchr(tag, '}', *length - (size_t)(tag - key));

    if (end == NULL || end == tag + 1)
        return key;
    *length = (size_t)(end - tag - 1);
    return tag + 1;
}

/* crc16(key) */
static int
crc16_of_argument(lua_State *L)
{
    size_t length;
    const char *part = push_hashed_part(L, &length);

    lua_pushinteger(L, crc16_of_key(part, length));
    return 1;
}

/* slot(key) */
static int
slot_of_key(lua_State *L)
{
    size_t length;
    const char *part = push_hashed_part(L, &length);

    lua_pushinteger(L, crc16_of_key(part, length) % SLOTS);
    return 1;
}

/* place(key): the upper 32 bits of a hash of 64: FNV-1a, and after it the end of splitmix64,
 * because FNV-1a alone leaves similar keys near each other. docs/redis-sharding.md promises this
 * hash to other programs. */
static int
ring_place_of_key(lua_State *L)
{
    size_t length;
    const char *part = push_hashed_part(L, &length);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)part[i]) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    lua_pushinteger(L, (lua_Integer)((hash ^ hash >> 31) >> 32));
    return 1;
}

void
sxe__lua_open_redis_encoder(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"encode", l_redis_encode},     {"slot", slot_of_key},      {"crc16", crc16_of_argument},
        {"place", ring_place_of_key},   {"adder", push_adder},      {"new_batch", new_redis_batch},
        {"batch_number", batch_number}, {"take_batch", take_batch}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
