/* SPDX-License-Identifier: MIT
 *
 * What: commands of Redis as bytes, and replies as values of Lua.
 *
 *     encode           a command's name and arguments as bytes
 *     slot, crc16      the slot of a key in a cluster, and the checksum that it is made of
 *     place            the place of a key, or of a text, on a ring
 *     new_reader       what keeps the bytes and the values of a reply that is not whole
 *     feed, next       bytes in, replies out
 *     number           how many replies came out
 *
 * Shape of a reader: bytes[start ... end - 1] were not taken yet. They are bytes of the string that
 * was fed last, as long as all elements end in it; otherwise of a copy that grows. The reader's
 * first uservalue keeps that string or copy. The second one has the values of a reply that is not
 * whole: the values, lists and keys that were on the stack, in their order.
 *
 *     *3 CRLF :7 CRLF %1 CRLF +key CRLF $100 CRLF a b c        values: {7}, {}, "key"
 *                                       ^start         ^end    lists: 1 left, 1 left
 *
 * A list is filled as its elements come, so no call takes longer than the bytes of its feed ask
 * for. If a call raises an error, because memory is missing, the reader stays as it was, and the
 * next call does the work again. So another task can read on.
 */
#include "sxe-lua-redis-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-private.h"
#include "sxe-lua-resp-private.h"

/* A list that is being filled. Its table is on the stack, above the tables of the lists around the
 * list; if a pair is unfinished, its key is above the table. */
struct list {
    uint64_t left; /* elements that are still to come; keys count, too */
    lua_Integer number;
    char type;
};

/* A reply whose bytes have not all come. */
struct part {
    struct list lists[SXE__RESP_DEPTH];
    unsigned depth;
    /* the type of the reply; the type of an attribute before the reply does not count */
    char type;
    bool is_dropped; /* the caller does not want the reply, so no values are made */
};

struct reader {
    struct sxe__resp resp;
    struct part part;
    int values; /* how many values the second uservalue has */
    lua_Integer number;
    const char *bytes;
    char *copy; /* NULL: the bytes are those of a Lua string */
    size_t copy_size;
    size_t start;
    size_t end;
};

enum { BYTES = 1, VALUES };              /* uservalues of a reader */
enum { READER = 1, KEPT, TABLE, FIRST }; /* places in the Lua stack of the function `next` */
enum { ELEMENT_MIN = 3, VALUES_MAX = 2 * SXE__RESP_DEPTH };
enum { SLOTS = 16384 }; /* the slots of a cluster */

/* ---- Commands ---- */

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

/* encode(name, ...) */
static int
l_redis_encode(lua_State *L)
{
    int number = lua_gettop(L);
    luaL_Buffer bytes;
    char head[64];

    luaL_checkstack(L, number + LUA_MINSTACK, "redis: too many arguments");
    for (int i = 1; i <= number; i++) {
        size_t length;

        (void)push_argument(L, i, &length);
        lua_replace(L, i);
    }
    luaL_buffinit(L, &bytes);
    luaL_addlstring(&bytes, head, (size_t)snprintf(head, sizeof(head), "*%d\r\n", number));
    for (int i = 1; i <= number; i++) {
        size_t length;
        const char *text = lua_tolstring(L, i, &length);

        luaL_addlstring(&bytes, head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n", length));
        luaL_addlstring(&bytes, text, length);
        luaL_addlstring(&bytes, "\r\n", 2);
    }
    luaL_pushresult(&bytes);
    return 1;
}

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
place_of_key(lua_State *L)
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

/* ---- Values ---- */

/* Push a table for an error: {error = its message, code = its first word}. */
static void
push_error_reply(lua_State *L, const char *text, size_t length)
{
    const char *blank = memchr(text, ' ', length);

    lua_createtable(L, 0, 2);
    lua_pushlstring(L, text, length);
    lua_setfield(L, -2, "error");
    lua_pushlstring(L, text, blank == NULL ? length : (size_t)(blank - text));
    lua_setfield(L, -2, "code");
}

static void
push_scalar(lua_State *L, const struct sxe__resp_element *element)
{
    if (element->value < 0 && element->type != ':') {
        lua_pushlightuserdata(L, NULL);
        return;
    }
    switch (element->type) {
    case ':':
        lua_pushinteger(L, element->value);
        break;
    case '#':
        lua_pushboolean(L, element->text[0] == 't');
        break;
    case ',':
        lua_pushnumber(L, strtod(element->text, NULL));
        break;
    case '-':
    case '!':
        push_error_reply(L, element->text, element->length);
        break;
    case '=': /* skip the format, as in "txt:text" */
        lua_pushlstring(L, element->text + 4, element->length - 4);
        break;
    case '_':
        lua_pushlightuserdata(L, NULL);
        break;
    default:
        lua_pushlstring(L, element->text, element->length);
        break;
    }
}

/* Begin a list: make its table, with room for at most as many elements as the bytes that have come
 * can hold. The contents of an attribute are dropped. */
static void
push_list(lua_State *L, const struct sxe__resp_element *element, size_t most)
{
    int number = (int)(element->value < (int64_t)most ? element->value : (int64_t)most);

    if (element->type == '%')
        lua_createtable(L, 0, number);
    else if (element->type != '|')
        lua_createtable(L, number, 0);
}

static struct list
push_reply_list(const struct sxe__resp_element *element)
{
    struct list list = {.left = (uint64_t)element->value, .type = element->type};

    if (sxe__resp_is_pairs(element->type))
        list.left *= 2;
    if (element->type == '|')
        list.left++;
    return list;
}

/* Put the value on top into the list, which still wants `left` values. */
static void
add_value_to_list(lua_State *L, struct list *list)
{
    if (list->type == '|') {
        if (list->left > 0)
            lua_pop(L, 1);
    } else if (list->type != '%') {
        lua_rawseti(L, -2, ++list->number);
    } else if (list->left % 2 == 0) {
        lua_rawset(L, -3);
    } else if (lua_isnumber(L, -1) && isnan(lua_tonumber(L, -1))) {
        lua_pop(L, 1);
        lua_pushliteral(L, "nan"); /* NaN cannot be a key of a table */
    }
}

/* Whether the next element is the reply itself, or an attribute of it. */
static bool
is_outermost(const struct part *part)
{
    unsigned i = 0;

    while (i < part->depth && part->lists[i].type == '|' && part->lists[i].left == 1)
        i++;
    return i == part->depth;
}

/* Add an element. after: the number of bytes that have come after the element. */
static void
add_element(lua_State *L, struct part *part, const struct sxe__resp_element *element, size_t after)
{
    const bool is_list = sxe__resp_is_list(element->type) && element->value >= 0;

    if (is_outermost(part))
        part->type = element->type;
    if (!part->is_dropped && is_list)
        push_list(L, element, after / ELEMENT_MIN);
    else if (!part->is_dropped)
        push_scalar(L, element);
    if (is_list) {
        part->lists[part->depth++] = push_reply_list(element);
        if (part->lists[part->depth - 1].left > 0)
            return;
        part->depth--;
    }
    for (; part->depth > 0; part->depth--) {
        struct list *list = &part->lists[part->depth - 1];

        list->left--;
        if (!part->is_dropped)
            add_value_to_list(L, list);
        if (list->left > 0)
            return;
    }
}

/* ---- Readers ---- */

/* new_reader(max): a reader; max: the most bytes of one reply */
static int
new_reader(lua_State *L)
{
    struct reader *reader = lua_newuserdatauv(L, sizeof(*reader), VALUES);

    *reader = (struct reader){.start = 0};
    sxe__resp_init(&reader->resp, (size_t)lua_tointeger(L, 1));
    lua_createtable(L, VALUES_MAX, 0);
    lua_setiuservalue(L, -2, VALUES);
    return 1;
}

/* Have room in the copy for `size` bytes. Unread bytes move to its beginning. */
static void
make_reader_room(lua_State *L, struct reader *reader, size_t size)
{
    size_t unread = reader->end - reader->start;
    char *copy = reader->copy;

    if (copy == NULL || reader->copy_size < size) {
        copy = lua_newuserdatauv(L, 2 * size, 0);
        memcpy(copy, reader->bytes + reader->start, unread);
        lua_setiuservalue(L, READER, BYTES);
        reader->copy_size = 2 * size;
    } else {
        memmove(copy, reader->bytes + reader->start, unread);
    }
    reader->bytes = reader->copy = copy;
    reader->start = 0;
    reader->end = unread;
}

void
sxe__lua_feed_redis(lua_State *L)
{
    struct reader *reader = lua_touserdata(L, READER);
    size_t length;
    const char *bytes = lua_tolstring(L, -1, &length);

    if (reader->start == reader->end) {
        lua_setiuservalue(L, READER, BYTES);
        reader->bytes = bytes;
        reader->copy = NULL;
        reader->start = 0;
        reader->end = length;
        return;
    }
    if (reader->copy == NULL || reader->copy_size - reader->end < length)
        make_reader_room(L, reader, reader->end - reader->start + length);
    memcpy(reader->copy + reader->end, bytes, length);
    reader->end += length;
    lua_pop(L, 1);
}

/* feed(reader, bytes) */
static int
l_redis_feed(lua_State *L)
{
    lua_settop(L, 2);
    sxe__lua_feed_redis(L);
    return 0;
}

/* Keep `values` values, from index FIRST on, in the table, which has room for all of them. Never
 * raises. */
static void
keep_values(lua_State *L, struct reader *reader, int values)
{
    for (int i = values; i < reader->values; i++) {
        lua_pushnil(L);
        lua_rawseti(L, TABLE, i + 1);
    }
    for (int i = 0; i < values; i++) {
        lua_pushvalue(L, FIRST + i);
        lua_rawseti(L, TABLE, i + 1);
    }
    reader->values = values;
}

/* Push the results of next() for a reply whose value is on top, or whose value was dropped. */
static int
push_reply_results(lua_State *L, const struct part *part)
{
    lua_pushstring(L, part->type == '>' ? "push" : "value");
    if (part->is_dropped)
        return 1;
    lua_insert(L, FIRST);
    if (part->type != '-' && part->type != '!')
        return 2;
    lua_pushliteral(L, "error");
    lua_getfield(L, -2, "error");
    lua_getfield(L, -3, "code");
    return 3;
}

/* Return "bad" and the reason. */
static int
push_refusal(lua_State *L, const struct sxe__resp *resp)
{
    lua_pushliteral(L, "bad");
    if (resp->why == NULL)
        lua_pushfstring(L, "redis: the reply is longer than reply_max, %I bytes",
                        (LUAI_UACINT)resp->max);
    else
        lua_pushfstring(L, "redis: the server does not speak its protocol: %s", resp->why);
    return 2;
}

/* Store the state of next() in the reader. All that can raise an error has been done. A finalizer
 * that ran meanwhile may have called next(), too. */
static void
settle_reader(lua_State *L, struct reader *reader, const struct sxe__resp *resp,
              const struct part *part, size_t used)
{
    const size_t left = reader->end - reader->start;

    keep_values(L, reader, part->depth > 0 && !part->is_dropped ? lua_gettop(L) - TABLE : 0);
    reader->start += used < left ? used : left;
    reader->resp = *resp;
    memcpy(reader->part.lists, part->lists, part->depth * sizeof(part->lists[0]));
    reader->part.depth = part->depth;
    reader->part.type = part->type;
    reader->part.is_dropped = part->is_dropped;
}

/* next(reader, is_dropped) returns nothing if more bytes must come; "bad", why; "push", value;
 * "error", message, code; or "value", value. If is_dropped, the reply has no value. */
static int
next_redis_reply(lua_State *L)
{
    struct reader *reader = lua_touserdata(L, READER);
    const char *bytes = reader->bytes + reader->start;
    const size_t length = reader->end - reader->start;
    const bool is_dropped = lua_toboolean(L, 2) || reader->part.is_dropped;
    struct sxe__resp resp = reader->resp;
    struct sxe__resp_element element;
    enum sxe__resp_result result;
    struct part part;
    size_t used = 0;
    int results;

    if (length == 0)
        return 0;
    luaL_checkstack(L, VALUES_MAX + LUA_MINSTACK, NULL);
    lua_settop(L, READER);
    /* Keep the bytes on the stack: a finalizer that runs may feed other bytes to the reader. */
    lua_getiuservalue(L, READER, BYTES);
    lua_getiuservalue(L, READER, VALUES);
    for (int i = 1; i <= reader->values && !is_dropped; i++)
        lua_rawgeti(L, TABLE, i);
    part.depth = reader->part.depth;
    part.type = reader->part.type;
    part.is_dropped = is_dropped;
    memcpy(part.lists, reader->part.lists, part.depth * sizeof(part.lists[0]));
    do {
        result = sxe__resp_take(&resp, bytes + used, length - used, &element);
        if (result == SXE__RESP_BAD)
            return push_refusal(L, &resp);
        if (result == SXE__RESP_MORE) {
            settle_reader(L, reader, &resp, &part, used);
            return 0;
        }
        used += resp.used;
        add_element(L, &part, &element, length - used);
    } while (result == SXE__RESP_ELEMENT);
    results = push_reply_results(L, &part);
    part.is_dropped = false;
    settle_reader(L, reader, &resp, &part, used);
    reader->number++;
    return results;
}

/* number(reader): how many replies next() has returned */
static int
number_read(lua_State *L)
{
    const struct reader *reader = lua_touserdata(L, READER);

    lua_pushinteger(L, reader->number);
    return 1;
}

void
sxe__lua_open_redis_reader(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"encode", l_redis_encode},   {"new_reader", new_reader}, {"feed", l_redis_feed},
        {"next", next_redis_reply},   {"number", number_read},    {"slot", slot_of_key},
        {"crc16", crc16_of_argument}, {"place", place_of_key},    {NULL, NULL}};

    luaL_newlib(L, functions);
}
