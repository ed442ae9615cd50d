/* SPDX-License-Identifier: MIT
 *
 * What: a tcp connection as tasks see it: conn:read, :chunks, :lines, :write, :shutdown, :close.
 *
 * Reading takes from the bytes that lib-sxe keeps unread, which are a chunk at most; the task waits
 * in the line of readers until there is enough. Data that does not fit into a chunk is collected in
 * pieces, in a table on the task's stack.
 *
 * Data to write is copied, and the task goes on at once, as long as little is unsent. If more than
 * output_pause is unsent, or the string is long, the task waits in the line of writers until the
 * kernel has all of it. For each task in that line one on_sent will be called, in the order of the
 * line. If a timeout ends such a wait, an unknown part of the string was sent, and no task could
 * continue the stream; so the connection is reset.
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* strings of more bytes are not copied but lent to lib-sxe, because the task's stack keeps them */
#define COPY_MAX 16384
#define LENT_MAX 16 /* so many of these, one after the other, are lent at once and sent together */

/* Places in the stack of a read. */
enum { CONN = 1, WANTED, TIMEOUT, DEADLINE, PIECES, READ_TOP = PIECES };

static SXE *
check_conn(lua_State *L, struct sxe__lua_slot **slot)
{
    return sxe__lua_check_socket(L, CONN, SXE__LUA_CONN, slot);
}

/* ---- Reading ---- */

enum how { ANY, COUNT, LINE, LINE_WITH_END, ALL };

static enum how
how_to_read(lua_State *L, lua_Integer *count)
{
    static const char *const formats[] = {"l", "L", "a", NULL};
    static const enum how hows[] = {LINE, LINE_WITH_END, ALL};
    const char *format;
    int i = 0;

    *count = 0;
    if (lua_isnil(L, WANTED))
        return ANY;
    if (lua_type(L, WANTED) == LUA_TNUMBER) {
        *count = luaL_checkinteger(L, WANTED);
        luaL_argcheck(L, *count >= 0, WANTED, "a number of bytes is expected");
        return COUNT;
    }
    format = sxe__lua_check_text(L, WANTED);
    format += *format == '*';
    while (formats[i] != NULL && strcmp(format, formats[i]) != 0)
        i++;
    luaL_argcheck(L, formats[i] != NULL, WANTED, "a number, \"l\", \"L\" or \"a\" is expected");
    return hows[i];
}

/* The bytes that a connection has not passed on to tasks yet: in its socket, or kept when the
 * connection broke. */
struct input {
    SXE *s; /* NULL: the socket is closed */
    struct sxe__lua_slot *slot;
};

static const struct sxe_buffer *
unread_bytes(struct input in)
{
    return in.s != NULL ? &in.s->in : &in.slot->rest;
}

static size_t
unread_length(struct input in)
{
    return sxe_buffer_length(unread_bytes(in));
}

/* Take `length` bytes, and push them without the last `dropped` bytes as a string. Making the
 * string may run a finalizer, which may read from the connection, too, or close it. */
static int
take_input(lua_State *L, struct input in, size_t length, size_t dropped)
{
    size_t left;

    lua_pushlstring(L, sxe_buffer_data(unread_bytes(in)), length - dropped);
    left = unread_length(in);
    length = length < left ? length : left;
    if (in.s != NULL)
        sxe_consume(in.s, (unsigned)length);
    else
        sxe_buffer_take(&in.slot->rest, (uint32_t)length);
    return 1;
}

/* Take a line, which ends with LF or CRLF. The pushed string has this end only if with_end is
 * set. */
static int
take_conn_line(lua_State *L, struct input in, bool with_end)
{
    size_t used = unread_length(in);
    const char *line = sxe_buffer_data(unread_bytes(in));
    const char *end = used == 0 ? NULL : memchr(line, '\n', used);
    size_t length;

    if (end == NULL)
        return used > 0 && sxe_buffer_room(unread_bytes(in)) == 0
                   ? sxe__lua_fail_errno(L, EMSGSIZE, "line")
                   : 0;
    length = (size_t)(end - line) + 1;
    if (with_end)
        return take_input(L, in, length, 0);
    return take_input(L, in, length, length > 1 && end[-1] == '\r' ? 2 : 1);
}

/* The number of bytes in all pieces: element 0 of the table at PIECES, whose elements from 1 on are
 * the pieces. */
static lua_Integer
length_of_pieces(lua_State *L)
{
    lua_Integer length = 0;

    if (lua_isnil(L, PIECES))
        return 0;
    lua_rawgeti(L, PIECES, 0);
    length = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return length;
}

static void
add_read_piece(lua_State *L, struct input in, size_t length)
{
    lua_Integer before = length_of_pieces(L);

    if (lua_isnil(L, PIECES)) {
        lua_newtable(L);
        lua_replace(L, PIECES);
    }
    if (length > unread_length(in)) /* a finalizer has read some of these bytes */
        length = unread_length(in);
    if (length == 0)
        return;
    take_input(L, in, length, 0);
    lua_rawseti(L, PIECES, (lua_Integer)lua_rawlen(L, PIECES) + 1);
    lua_pushinteger(L, before + (lua_Integer)length);
    lua_rawseti(L, PIECES, 0);
}

static int
push_pieces(lua_State *L)
{
    lua_Integer number = (lua_Integer)lua_rawlen(L, PIECES);
    luaL_Buffer text;

    luaL_buffinit(L, &text);
    for (lua_Integer i = 1; i <= number; i++) {
        lua_rawgeti(L, PIECES, i);
        luaL_addvalue(&text);
    }
    luaL_pushresult(&text);
    return 1;
}

/* Take count bytes; if not all of them have come, return 0 results. */
static int
take_byte_count(lua_State *L, struct input in, lua_Integer count)
{
    lua_Integer used = (lua_Integer)unread_length(in);
    lua_Integer missing = count - length_of_pieces(L);

    if (lua_isnil(L, PIECES) && used >= count)
        return take_input(L, in, (size_t)count, 0);
    if (lua_isnil(L, PIECES) && count <= (lua_Integer)sxe_get_config()->chunk_size)
        return 0;
    add_read_piece(L, in, (size_t)(used < missing ? used : missing));
    return used < missing ? 0 : push_pieces(L);
}

/* Push the data that the read asked for. Returns the number of results; 0: the data has not come
 * yet. */
static int
take_wanted(lua_State *L, struct input in)
{
    lua_Integer count;

    switch (how_to_read(L, &count)) {
    case ANY:
        return unread_length(in) > 0 ? take_input(L, in, unread_length(in), 0) : 0;
    case COUNT:
        return take_byte_count(L, in, count);
    case LINE:
        return take_conn_line(L, in, false);
    case LINE_WITH_END:
        return take_conn_line(L, in, true);
    case ALL:
        break;
    }
    add_read_piece(L, in, unread_length(in));
    return 0;
}

/* A read fails with the results on top: add, as the fourth result, the data that the read has taken
 * already. */
static int
add_partial(lua_State *L, int results)
{
    if (lua_isnil(L, PIECES))
        return results;
    if (results == 2)
        lua_pushnil(L);
    push_pieces(L);
    return 4;
}

/* End the read, because the peer sends no more. */
static int
end_read(lua_State *L, const struct sxe__lua_slot *slot)
{
    lua_Integer count;

    if (how_to_read(L, &count) == ALL && !lua_isnil(L, PIECES) && !sxe__lua_is_shut(slot) &&
        slot->error == 0)
        return push_pieces(L);
    return add_partial(L, sxe__lua_fail_closed(L, slot));
}

static int
go_on_reading(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_conn(L, &slot);
    int results = 0;

    SXE_UNUSED_PARAMETER(context);
    if (status == LUA_YIELD && sxe__lua_woken(L) != SXE__LUA_EVENT)
        return add_partial(L, sxe__lua_fail_woken(L));
    if (!sxe__lua_is_shut(slot))
        results = take_wanted(L, (struct input){s, slot});
    /* The bytes that are left may be enough for the next reader. */
    if (results > 0 && unread_length((struct input){s, slot}) > 0)
        sxe__lua_wake_first(&slot->readers);
    if (results > 0)
        return results;
    if (s == NULL || (slot->flags & (SXE__LUA_SHUT | SXE__LUA_END_SEEN)))
        return end_read(L, slot);
    if (lua_isnil(L, DEADLINE)) {
        lua_pushinteger(L, (lua_Integer)sxe__lua_slot_deadline(L, TIMEOUT, slot));
        lua_replace(L, DEADLINE);
    }
    return sxe__lua_park_in(L, &slot->readers, (uint64_t)lua_tointeger(L, DEADLINE), go_on_reading,
                            0);
}

static int
l_conn_read(lua_State *L)
{
    lua_settop(L, TIMEOUT);
    lua_settop(L, READ_TOP);
    return go_on_reading(L, LUA_OK, 0);
}

/* The iterator of "for data in conn:chunks()", which ignores what `for` passes after the
 * connection. */
static int
next_chunk(lua_State *L)
{
    lua_settop(L, CONN);
    return l_conn_read(L);
}

static int
next_conn_line(lua_State *L)
{
    lua_settop(L, CONN);
    lua_pushliteral(L, "l");
    return l_conn_read(L);
}

static int
l_chunks(lua_State *L)
{
    struct sxe__lua_slot *slot;

    check_conn(L, &slot);
    lua_pushcfunction(L, next_chunk);
    lua_pushvalue(L, CONN);
    return 2;
}

static int
l_conn_lines(lua_State *L)
{
    struct sxe__lua_slot *slot;

    check_conn(L, &slot);
    lua_pushcfunction(L, next_conn_line);
    lua_pushvalue(L, CONN);
    return 2;
}

/* ---- Writing ---- */

static void
on_sent(SXE *s, int result)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    SXE_UNUSED_PARAMETER(result);
    if (slot != NULL)
        sxe__lua_wake_first(&slot->writers);
}

/* Lend bytes to lib-sxe, which the task's stack keeps while the task waits. Without bytes, only ask
 * lib-sxe for a call of on_sent when all is written. Returns 0 or -errno. If the task cannot wait
 * nothing is lent, because nothing would keep the bytes; parking then raises the reason. */
static int
lend_bytes(lua_State *L, SXE *s, const char *bytes, size_t length)
{
    return sxe__lua_may_wait(L) ? sxe_send(s, bytes, length, bytes == NULL ? on_sent : NULL) : 0;
}

static int go_on_writing(lua_State *L, int status, lua_KContext argument);

/* Wait until the kernel has all that was written, then go on with the argument of write at the
 * index `argument`. If bytes were lent, and the task cannot wait for their end, nothing keeps
 * them. */
static int
wait_for_room(lua_State *L, SXE *s, struct sxe__lua_slot *slot, int argument, bool has_lent)
{
    int result = lend_bytes(L, s, NULL, 0);

    if (result < 0 && has_lent)
        sxe_abort(s);
    if (result < 0)
        return sxe__lua_result(L, result, "write");
    return sxe__lua_park_in(L, &slot->writers, sxe__lua_slot_deadline(L, 0, slot), go_on_writing,
                            argument);
}

static int
write_bytes_from(lua_State *L, SXE *s, struct sxe__lua_slot *slot, int argument)
{
    const int lent_max = sxe__lua_may_wait(L) ? LENT_MAX : 1;
    int result = 0;
    int lent = 0;

    for (; argument <= lua_gettop(L) && lent < lent_max; argument++) {
        size_t length;
        const char *bytes = lua_tolstring(L, argument, &length);

        if (lent > 0 && length <= COPY_MAX)
            break;
        result = length > COPY_MAX ? lend_bytes(L, s, bytes, length)
                                   : sxe_write(s, bytes, (unsigned)length);
        if (result < 0)
            break;
        lent += length > COPY_MAX;
    }
    if (lent > 0 || (result == -ENOBUFS && sxe_unsent(s) > 0) ||
        (result == 0 && sxe_unsent(s) > sxe_get_config()->output_pause))
        return wait_for_room(L, s, slot, argument, lent > 0);
    if (result < 0)
        return sxe__lua_result(L, result, "write");
    lua_pushboolean(L, 1);
    return 1;
}

static int
go_on_writing(lua_State *L, int status, lua_KContext argument)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_conn(L, &slot);

    SXE_UNUSED_PARAMETER(status);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT) {
        if (s != NULL)
            sxe_abort(s);
        return sxe__lua_fail_woken(L);
    }
    if (s == NULL || (sxe__lua_is_shut(slot) && argument <= lua_gettop(L)))
        return sxe__lua_fail_closed(L, slot);
    return write_bytes_from(L, s, slot, (int)argument);
}

static int
l_conn_write(lua_State *L)
{
    struct sxe__lua_slot *slot;
    int arguments = lua_gettop(L);
    SXE *s;

    for (int i = 2; i <= arguments; i++)
        luaL_checkstring(L, i);
    s = check_conn(L, &slot);
    if (s == NULL || sxe__lua_is_shut(slot))
        return sxe__lua_fail_closed(L, slot);
    return write_bytes_from(L, s, slot, 2);
}

/* ---- Ending ---- */

static int
l_shutdown(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_conn(L, &slot);

    if (s == NULL || sxe__lua_is_shut(slot))
        return sxe__lua_fail_closed(L, slot);
    return sxe__lua_result(L, sxe_shutdown(s), "shutdown");
}

static int
l_conn_close(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_conn(L, &slot);

    if (slot != NULL)
        sxe__lua_drop_rest(slot);
    if (s == NULL || sxe__lua_is_shut(slot))
        return sxe__lua_fail_closed(L, slot);
    sxe__lua_socket_close(s);
    lua_pushboolean(L, 1);
    return 1;
}

int
sxe__lua_conn_end(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_conn(L, &slot);

    if (s != NULL) {
        slot->flags |= SXE__LUA_SHUT;
        (void)sxe_close(s);
    }
    return 0;
}

int
sxe__lua_conn_reset(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_conn(L, &slot);

    if (s != NULL)
        sxe_abort(s);
    return 0;
}

/* Called at the end of the scope of a <close> variable. */
static void
close_conn_at_end(lua_State *L, uint32_t index, uint32_t generation)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_at(index, generation);
    SXE *s = sxe__lua_socket(slot);

    SXE_UNUSED_PARAMETER(L);
    if (slot != NULL)
        sxe__lua_drop_rest(slot);
    if (s != NULL && !sxe__lua_is_shut(slot))
        sxe__lua_socket_close(s);
}

/* ---- Events ---- */

/* A connection broke, and no task has read these bytes: keep them, because they came before the
 * break. Without memory they are lost, as they would be if the connection had broken earlier. */
static void
keep_rest(struct sxe__lua_slot *slot, const SXE *s)
{
    uint32_t length = sxe_buffer_length(&s->in);
    /* one more than is used: a full buffer would mean that a line without its end is too long */
    uint32_t size = length + 1;
    char *memory = length == 0 || sxe__lua_is_shut(slot) ? NULL : malloc(size);

    if (memory == NULL)
        return;
    memcpy(memory, sxe_buffer_data(&s->in), length);
    sxe_buffer_wrap(&slot->rest, memory, length, size);
}

void
sxe__lua_conn_on_read(SXE *s, int length)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    if (length > 0) {
        sxe__lua_wake_first(&slot->readers);
        return;
    }
    slot->flags |= SXE__LUA_END_SEEN;
    sxe__lua_wake_all(&slot->readers);
}

void
sxe__lua_conn_on_close(SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    slot->error = sxe_error(s);
    if (slot->error != 0)
        keep_rest(slot, s);
    if (slot->flags & SXE__LUA_TLS)
        sxe__lua_tls_note(slot, s);
    sxe__lua_wake_waiting(slot);
}

/* ---- Properties ---- */

static int
get_conn_member(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe__lua_slot *slot = sxe__lua_slot_at(index, generation);

    if (strcmp(name, "timeout") == 0)
        sxe__lua_push_timeout(L, slot);
    else if (strcmp(name, "id") == 0)
        lua_pushinteger(L, index);
    else if (strcmp(name, "error") != 0)
        return sxe__lua_push_address(L, sxe__lua_socket(slot), name);
    else if (slot == NULL || slot->error == 0)
        lua_pushnil(L);
    else
        lua_pushstring(L, strerror(slot->error));
    return 1;
}

void
sxe__lua_open_conn(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"read", l_conn_read},
        {"chunks", l_chunks},
        {"lines", l_conn_lines},
        {"write", l_conn_write},
        {"shutdown", l_shutdown},
        {"close", l_conn_close},
        {NULL, NULL},
    };
    static const struct sxe__lua_class_spec spec = {.name = "sxe.tcp connection",
                                                    .methods = methods,
                                                    .get = get_conn_member,
                                                    .set = sxe__lua_set_timeout,
                                                    .close = close_conn_at_end};

    sxe__lua_register_class(L, SXE__LUA_CONN, &spec);
}
