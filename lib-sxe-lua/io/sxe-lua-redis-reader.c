/* SPDX-License-Identifier: MIT
 *
 * What: replies of Redis as values of Lua.
 *
 *     new_reader       what keeps the bytes and the values of a reply that is not whole
 *     feed, next       bytes in, replies out
 *     new_list, take   several simple replies out at once, into a list
 *     number           how many replies came out
 *
 * Shape of a reader: bytes[start ... end - 1] were not taken yet. Up to bytes[size - 1] there is
 * room for more, which come straight from the socket. The reader's first uservalue keeps these
 * bytes. The second one has the values of a reply that is not whole: the values, lists and keys
 * that were on the stack, in their order.
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
    char *bytes;
    size_t size;
    size_t start;
    size_t end;
    /* whether a function looks at the bytes, which may be new elements' texts: then they do not
     * move, because a finalizer that runs may feed other bytes */
    bool is_looking;
};

enum { BYTES = 1, VALUES };              /* uservalues of a reader */
enum { READER = 1, KEPT, TABLE, FIRST }; /* places in the Lua stack of the function `next` */
enum { ELEMENT_MIN = 3, VALUES_MAX = 2 * SXE__RESP_DEPTH };
enum { TAKEN_MAX = 64 };     /* replies of one call of `take` */
enum { KEPT_MAX = 1 << 18 }; /* the most bytes of memory that an empty reader keeps */

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

/* Get memory for the unread bytes, and as many again, and for `size` bytes after them. */
static void
make_reader_room(lua_State *L, struct reader *reader, size_t size)
{
    const size_t unread = reader->end - reader->start;
    char *bytes = lua_newuserdatauv(L, 2 * unread + size, 0);

    if (unread > 0)
        memcpy(bytes, reader->bytes + reader->start, unread);
    lua_setiuservalue(L, READER, BYTES);
    reader->bytes = bytes;
    reader->size = 2 * unread + size;
    reader->start = 0;
    reader->end = unread;
}

char *
sxe__lua_redis_room(lua_State *L, size_t size)
{
    struct reader *reader = lua_touserdata(L, READER);
    const bool is_empty = reader->start == reader->end;

    if (is_empty && !reader->is_looking && reader->size <= KEPT_MAX)
        reader->start = reader->end = 0;
    if (reader->bytes == NULL || reader->size - reader->end < size)
        make_reader_room(L, reader, size);
    return reader->bytes + reader->end;
}

void
sxe__lua_redis_fed(lua_State *L, size_t length)
{
    struct reader *reader = lua_touserdata(L, READER);

    reader->end += length;
}

/* feed(reader, bytes) */
static int
l_redis_feed(lua_State *L)
{
    size_t length;
    const char *bytes = lua_tolstring(L, 2, &length);

    memcpy(sxe__lua_redis_room(L, length), bytes, length);
    sxe__lua_redis_fed(L, length);
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
    reader->is_looking = false;
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
    reader->is_looking = true;
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

/* Whether a reply of this type is one value, and no error. */
static bool
is_plain_reply(char type)
{
    return type == '$' || type == '+' || type == ':' || type == '_' || type == '#' || type == ',';
}

/* new_list(number): an empty list with room for so many values, so that it need not grow */
static int
new_reply_list(lua_State *L)
{
    lua_createtable(L, (int)lua_tointeger(L, 1), 0);
    return 1;
}

/* take(reader, list, number, most): append up to `most` replies to a list that has `number` values,
 * as long as each is one value. Returns how many were taken; the next reply is one for next(). A
 * call that raised an error took none: the next call writes the same places. */
static int
take_replies(lua_State *L)
{
    struct reader *reader = lua_touserdata(L, READER);
    const char *bytes = reader->bytes + reader->start;
    const size_t length = reader->end - reader->start;
    const lua_Integer number = lua_tointeger(L, 3);
    lua_Integer most = lua_tointeger(L, 4);
    struct sxe__resp resp;
    struct sxe__resp_element element;
    lua_Integer taken = 0;
    size_t used = 0;

    if (length == 0 || reader->resp.depth > 0 || reader->part.depth > 0)
        most = 0;
    most = most < TAKEN_MAX ? most : TAKEN_MAX;
    resp.max = reader->resp.max;
    resp.size = resp.depth = 0;
    resp.seen = reader->resp.seen;
    reader->is_looking = true;
    lua_getiuservalue(L, READER, BYTES); /* a finalizer that runs may feed other bytes */
    while (taken < most && is_plain_reply(bytes[used]) &&
           sxe__resp_take(&resp, bytes + used, length - used, &element) == SXE__RESP_REPLY) {
        push_scalar(L, &element);
        lua_rawseti(L, 2, number + ++taken);
        used += resp.used;
        if (used == length)
            break;
    }
    taken *= reader->bytes + reader->start == bytes; /* otherwise a finalizer has taken them */
    if (taken > 0) {
        reader->start += used;
        reader->resp.seen = 0;
        reader->number += taken;
    }
    reader->is_looking = false;
    lua_pushinteger(L, taken);
    return 1;
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
    static const luaL_Reg functions[] = {{"new_reader", new_reader},
                                         {"feed", l_redis_feed},
                                         {"next", next_redis_reply},
                                         {"new_list", new_reply_list},
                                         {"take", take_replies},
                                         {"number", number_read},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
