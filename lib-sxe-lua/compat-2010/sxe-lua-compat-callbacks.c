/* SPDX-License-Identifier: MIT
 *
 * What: the events of the sockets of 2010 and 2011: callbacks, and no tasks.
 *
 * The arguments of a read callback changed each year; the number of its parameters tells which year
 * the script means:
 *
 *     function(sxe, content)  2010: content is all unread bytes as a string. They are consumed when
 *                             the function wrote or closed, and kept otherwise, so that a
 *                             request that came in pieces is seen whole
 *     function(sxe)           2011: no string is made; sxe.buf shows, sxe:buf_clear() consumes them
 *     function(sxe, length)   2011 where sxe.read_arg == "length" when it is registered
 *
 * All these functions may return a number of bytes to consume, true for all, false for none.
 */
#include "sxe-lua-compat-private.h"

#include <errno.h>
#include <string.h>

enum contract { BUFFER, CONTENT, LENGTH };

/* Sets of callbacks, one for each socket, in a userdata. slot->owner is the index of a socket's
 * set. In a free set, function[0] is the index of the next free set. */
struct sets {
    uint32_t first_free;
    /* The last content for which a string was made: clients repeat themselves. */
    struct sxe_span last;
    int last_place; /* the place of the string of `last` in the registry */
    struct sxe__lua_callbacks set[];
};

static _Thread_local struct sets *sets;

const char sxe__lua_read_arg_key = 0;
/* The address of this variable is a key in the registry, for a table: socket index -> table of the
 * script's fields. */
static const char fields_key = 0;

/* ---- Sets of callbacks ---- */

static int
forget_sets(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    sets = NULL;
    return 0;
}

static void
forget_fields(lua_State *L, uint32_t index)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    lua_pushnil(L);
    lua_rawseti(L, -2, index);
    lua_pop(L, 1);
}

void
sxe__lua_leave(struct sxe__lua_slot *slot, uint32_t index)
{
    lua_State *L = sxe__lua_main(sxe__lua_current());

    if ((slot->flags & SXE__LUA_CALLS) && --sets->set[slot->owner].users == 0) {
        sxe__lua_callbacks_drop(L, &sets->set[slot->owner]);
        sets->set[slot->owner].function[0] = (int)sets->first_free;
        sets->first_free = slot->owner;
    }
    if (slot->flags & SXE__LUA_FIELDS)
        forget_fields(L, index);
    slot->flags &= (uint16_t) ~(SXE__LUA_CALLS | SXE__LUA_FIELDS);
}

static void
open_sets(lua_State *L)
{
    uint32_t number = sxe__lua_sockets_open(L);
    struct sets *made;

    if (sets != NULL)
        return;
    made = lua_newuserdatauv(L, sizeof(*made) + number * sizeof(made->set[0]), 0);
    *made = (struct sets){.last = {"", 0}};
    for (uint32_t i = 0; i < number; i++)
        made->set[i] = (struct sxe__lua_callbacks){.function[0] = (int)i + 1};
    luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pushliteral(L, "");
    made->last_place = luaL_ref(L, LUA_REGISTRYINDEX);
    sxe__lua_at_end(L, forget_sets);
    sxe__lua_on_leave(sxe__lua_leave);
    sets = made;
}

/* Take a free set. There are as many sets as sockets. */
static uint32_t
take_set(const struct sxe__lua_callbacks *callbacks)
{
    uint32_t taken = sets->first_free;

    sets->first_free = (uint32_t)sets->set[taken].function[0];
    sets->set[taken] = *callbacks;
    sets->set[taken].users = 1;
    return taken;
}

static void
share_set(struct sxe__lua_slot *slot, uint32_t shared)
{
    slot->owner = shared;
    slot->flags |= SXE__LUA_CALLS;
    sets->set[shared].users++;
}

void
sxe__lua_callbacks_drop(lua_State *L, const struct sxe__lua_callbacks *callbacks)
{
    for (int i = 0; i < SXE__LUA_CALLBACKS; i++)
        luaL_unref(L, LUA_REGISTRYINDEX, callbacks->function[i]);
}

static enum contract
contract_of(lua_State *L, int function)
{
    lua_Debug about;
    const char *wanted;
    bool is_length;

    lua_rawgetp(L, LUA_REGISTRYINDEX, &sxe__lua_read_arg_key);
    wanted = lua_tostring(L, -1);
    is_length = wanted != NULL && strcmp(wanted, "length") == 0;
    lua_pop(L, 1);
    lua_pushvalue(L, function);
    lua_getinfo(L, ">u", &about);
    if (about.nparams < 2 && !about.isvararg)
        return BUFFER;
    return is_length ? LENGTH : CONTENT;
}

/* Set one of the callbacks to the function at an index; nil there removes the callback. */
static void
set_callback(lua_State *L, struct sxe__lua_callbacks *callbacks, int which, int function)
{
    int before = callbacks->function[which];

    if (which == SXE__LUA_ON_READ && !lua_isnoneornil(L, function))
        callbacks->contract = contract_of(L, function);
    lua_pushvalue(L, function);
    callbacks->function[which] = luaL_ref(L, LUA_REGISTRYINDEX);
    luaL_unref(L, LUA_REGISTRYINDEX, before);
}

/* The socket's own set of callbacks: if the socket shares a set with other sockets, this makes a
 * copy for it. */
static struct sxe__lua_callbacks *
own_set(lua_State *L, struct sxe__lua_slot *slot)
{
    struct sxe__lua_callbacks *shared = &sets->set[slot->owner];
    struct sxe__lua_callbacks own = *shared;

    if (shared->users == 1)
        return shared;
    for (int i = 0; i < SXE__LUA_CALLBACKS; i++) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, shared->function[i]);
        own.function[i] = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    shared->users--;
    slot->owner = take_set(&own);
    return &sets->set[slot->owner];
}

void
sxe__lua_callbacks_take(lua_State *L, int first, struct sxe__lua_callbacks *callbacks)
{
    *callbacks = (struct sxe__lua_callbacks){.function = {LUA_REFNIL, LUA_REFNIL, LUA_REFNIL}};
    open_sets(L);
    lua_settop(L, first + SXE__LUA_CALLBACKS - 1);
    for (int i = 0; i < SXE__LUA_CALLBACKS; i++) {
        if (!lua_isnil(L, first + i))
            luaL_checktype(L, first + i, LUA_TFUNCTION);
    }
    for (int i = 0; i < SXE__LUA_CALLBACKS; i++)
        set_callback(L, callbacks, i, first + i);
}

void
sxe__lua_callbacks_give(SXE *s, const struct sxe__lua_callbacks *callbacks)
{
    struct sxe__lua_slot *slot = sxe__lua_adopt(s);

    slot->flags |= SXE__LUA_CALLS;
    slot->owner = take_set(callbacks);
    s->user_data = (void *)(uintptr_t)slot->owner;
}

int
sxe__lua_callbacks_push_made(lua_State *L, SXE *s, const struct sxe__lua_callbacks *callbacks)
{
    int error = errno;

    if (s == NULL) {
        sxe__lua_callbacks_drop(L, callbacks);
        return sxe__lua_fail_errno(L, error, "no socket");
    }
    sxe__lua_callbacks_give(s, callbacks);
    sxe__lua_push_socket(L, SXE__LUA_SOCKET, s);
    return 1;
}

void
sxe__lua_callbacks_set(lua_State *L, SXE *s, int which, int function)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    if (!(slot->flags & SXE__LUA_CALLS))
        return;
    set_callback(L, own_set(L, slot), which, function);
    s->user_data = (void *)(uintptr_t)slot->owner;
}

/* ---- Values that scripts keep in a socket: s.anything = value ---- */

void
sxe__lua_field_get(lua_State *L, const struct sxe__lua_slot *slot, uint32_t index)
{
    if (slot == NULL || !(slot->flags & SXE__LUA_FIELDS)) {
        lua_pushnil(L);
        return;
    }
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    lua_rawgeti(L, -1, index);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
}

void
sxe__lua_field_set(lua_State *L, struct sxe__lua_slot *slot, uint32_t index)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &fields_key);
    if (!(slot->flags & SXE__LUA_FIELDS)) {
        lua_newtable(L);
        lua_rawseti(L, -2, index);
        slot->flags |= SXE__LUA_FIELDS;
    }
    lua_rawgeti(L, -1, index);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, -3);
}

void
sxe__lua_open_fields(lua_State *L)
{
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &fields_key);
}

/* ---- Events ---- */

static lua_State *
main_state(void)
{
    return sxe__lua_main(sxe__lua_current());
}

static bool
has_callback(const struct sxe__lua_slot *slot, int which)
{
    return (slot->flags & SXE__LUA_CALLS) && sets->set[slot->owner].function[which] != LUA_REFNIL;
}

/* Push a socket's callback of the given kind; false: there is none, and nothing is pushed. */
bool
sxe__lua_callbacks_push(lua_State *L, const struct sxe__lua_slot *slot, int which)
{
    if (!has_callback(slot, which))
        return false;
    lua_rawgeti(L, LUA_REGISTRYINDEX, sets->set[slot->owner].function[which]);
    return true;
}

void
sxe__lua_on_connected(SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);
    lua_State *L = main_state();

    /* An accepted socket has the user data of its listener, which is the set of callbacks. */
    if (slot->handle != sxe_handle(s)) {
        slot = sxe__lua_adopt(s);
        share_set(slot, (uint32_t)(uintptr_t)s->user_data);
    }
    if (!sxe__lua_callbacks_push(L, slot, SXE__LUA_ON_CONNECT))
        return;
    sxe__lua_push_socket(L, SXE__LUA_SOCKET, s);
    if (sxe__lua_pcall(L, 1, 0, "connected callback") < 0)
        sxe_close(s);
}

/* Push the content as a string. Called in protected mode, because there may be no memory for the
 * string. */
static int
read_content(lua_State *L)
{
    SXE *s = lua_touserdata(L, 1);
    struct sxe_span content = {SXE_BUF(s), (size_t)SXE_BUF_USED(s)};

    sxe__lua_callbacks_push(L, sxe__lua_slot_of(s), SXE__LUA_ON_READ);
    sxe__lua_push_socket(L, SXE__LUA_SOCKET, s);
    sets->last.base = lua_pushlstring(L, content.base, content.length);
    sets->last.length = content.length;
    lua_pushvalue(L, -1);
    lua_rawseti(L, LUA_REGISTRYINDEX, sets->last_place);
    lua_pushvalue(L, 2);
    lua_call(L, 3, 1);
    return 1;
}

/* Whether the buffer has the same bytes as at the last call, so that the string made then can be
 * used again. */
static bool
is_buffer_repeated(const SXE *s)
{
    size_t length = (size_t)SXE_BUF_USED(s);

    return length == sets->last.length && memcmp(SXE_BUF(s), sets->last.base, length) == 0;
}

/* Call the read callback: push the message handler, and above it the callback's result. Returns 0
 * or -EINVAL. */
static int
call_read(lua_State *L, SXE *s, const struct sxe__lua_slot *slot, int length)
{
    enum contract contract = (enum contract)sets->set[slot->owner].contract;
    int top = lua_gettop(L);

    lua_pushcfunction(L, sxe__lua_message_handler);
    if (contract == CONTENT && !is_buffer_repeated(s)) {
        lua_pushcfunction(L, read_content);
        lua_pushlightuserdata(L, s);
    } else {
        sxe__lua_callbacks_push(L, slot, SXE__LUA_ON_READ);
        sxe__lua_push_socket(L, SXE__LUA_SOCKET, s);
        if (contract == CONTENT)
            lua_rawgeti(L, LUA_REGISTRYINDEX, sets->last_place);
    }
    if (contract != BUFFER)
        lua_pushinteger(L, length);
    return sxe__lua_pcall_handled(L, lua_gettop(L) - top - 2, 1, "read callback");
}

/* Consume the bytes that the read callback has used. The callback's result is on top of the
 * stack. */
static void
consume_used_bytes(lua_State *L, SXE *s, const struct sxe__lua_slot *slot)
{
    enum contract contract = (enum contract)sets->set[slot->owner].contract;
    lua_Integer used = SXE_BUF_USED(s);
    lua_Integer taken = 0;

    if (lua_isboolean(L, -1))
        taken = lua_toboolean(L, -1) ? used : 0;
    else if (lua_type(L, -1) == LUA_TNUMBER)
        taken = lua_tointeger(L, -1);
    else if (contract == CONTENT && (slot->flags & SXE__LUA_USED))
        taken = used;
    if (taken > 0)
        sxe_consume(s, (unsigned)(taken < used ? taken : used));
}

/* Close a socket whose buffer is full and whose read callback consumed nothing. */
static void
refuse_full(lua_State *L, SXE *s, const struct sxe__lua_slot *slot)
{
    lua_Debug about = {.short_src = "?"};

    if (sxe__lua_callbacks_push(L, slot, SXE__LUA_ON_READ))
        lua_getinfo(L, ">S", &about);
    SXE_ERROR_ID(s->id, "closing: read callback at %s:%d consumed nothing, %d B", about.short_src,
                 about.linedefined, SXE_BUF_USED(s));
    sxe_close(s);
}

void
sxe__lua_on_read(SXE *s, int length)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);
    lua_State *L = main_state();
    int top = lua_gettop(L);

    if (!has_callback(slot, SXE__LUA_ON_READ)) {
        SXE_BUF_CLEAR(s);
        return;
    }
    slot->flags &= (uint16_t)~SXE__LUA_USED;
    if (call_read(L, s, slot, length) < 0) {
        SXE_BUF_CLEAR(s);
        sxe_close(s);
    } else {
        consume_used_bytes(L, s, slot);
        if (SXE_UNLIKELY(SXE_BUF_USED(s) > 0 && SXE_BUF_ROOM(s) == 0))
            refuse_full(L, s, slot);
    }
    lua_settop(L, top);
}

void
sxe__lua_on_close(SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);
    lua_State *L = main_state();

    if (sxe__lua_callbacks_push(L, slot, SXE__LUA_ON_CLOSE)) {
        sxe__lua_push_socket(L, SXE__LUA_SOCKET, s);
        (void)sxe__lua_pcall(L, 1, 0, "close callback");
    }
    sxe__lua_leave(slot, s->id);
}
