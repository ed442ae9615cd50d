/* SPDX-License-Identifier: MIT
 *
 * What: the sockets of 2010 and 2011 in Lua: functions, methods, properties, buffers.
 */
#include "sxe-lua-compat-private.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* ---- Functions ---- */

static SXE *
check_socket(lua_State *L, struct sxe__lua_slot **slot)
{
    return sxe__lua_check_socket(L, 1, SXE__LUA_SOCKET, slot);
}

static int
l_new_tcp(lua_State *L)
{
    const char *ip = sxe__lua_check_ip(L, 1);
    uint16_t port = sxe__lua_check_port(L, 2);
    struct sxe__lua_callbacks callbacks;

    sxe__lua_callbacks_take(L, 3, &callbacks);
    return sxe__lua_callbacks_push_made(
        L, sxe_new_tcp(NULL, ip, port, sxe__lua_on_connected, sxe__lua_on_read, sxe__lua_on_close),
        &callbacks);
}

static int
l_listen(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_socket(L, &slot);

    return sxe__lua_result(L, s == NULL ? -ENOTCONN : sxe_listen(s), "sxe_listen");
}

static int
l_compat_connect(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_socket(L, &slot);
    const char *ip = sxe__lua_check_ip(L, 2);
    uint16_t port = sxe__lua_check_port(L, 3);

    return sxe__lua_result(L, s == NULL ? -ENOTCONN : sxe_connect(s, ip, port), "sxe_connect");
}

/* The bytes of the value at an index: a string, a number or a socket's buffer. */
static const char *
check_bytes(lua_State *L, int argument, size_t *length)
{
    struct sxe__lua_slot *slot;
    SXE *s;

    if (!lua_islightuserdata(L, argument))
        return luaL_checklstring(L, argument, length);
    s = sxe__lua_check_socket(L, argument, SXE__LUA_BUF, &slot);
    *length = s == NULL ? 0 : (size_t)SXE_BUF_USED(s);
    return s == NULL ? "" : SXE_BUF(s);
}

/* Convert a number to a string before the socket is looked at: the conversion may run a finalizer,
 * which may close the socket. */
static void
make_text(lua_State *L, int argument)
{
    if (lua_type(L, argument) == LUA_TNUMBER)
        lua_tolstring(L, argument, NULL);
}

static int
l_compat_write(lua_State *L)
{
    struct sxe__lua_slot *slot;
    const char *bytes;
    size_t length;
    SXE *s;

    make_text(L, 2);
    s = check_socket(L, &slot);
    bytes = check_bytes(L, 2, &length);
    if (s == NULL)
        return sxe__lua_fail(L, "closed");
    slot->flags |= SXE__LUA_USED;
    luaL_argcheck(L, length <= UINT_MAX, 2, "too long");
    return sxe__lua_result(L, sxe_write(s, bytes, (unsigned)length), "sxe_write");
}

static int
l_compat_close(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_socket(L, &slot);

    if (s == NULL)
        return sxe__lua_fail(L, "closed");
    slot->flags |= SXE__LUA_USED;
    /* A socket that never had a peer gets no on_close. */
    if (sxe_get_state(s) <= SXE_STATE_LISTENING)
        sxe__lua_leave(slot, s->id);
    return sxe__lua_result(L, sxe_close(s) < 0 ? -ENOTCONN : 0, "sxe_close");
}

static int
l_buf_clear(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_socket(L, &slot);

    if (s != NULL && sxe_get_state(s) > SXE_STATE_LISTENING)
        SXE_BUF_CLEAR(s);
    return 0;
}

/* ---- The buffer ---- */

typedef void *(*look)(const void *, size_t, const void *, size_t);

/* Find a plain text as string.find does: push the places of the first and last byte of the text in
 * the buffer, or nil. */
static int
find_in_socket_buffer(lua_State *L, look look_for)
{
    size_t length, wanted_length;
    const char *bytes, *wanted;
    const char *found = NULL;
    lua_Integer from;

    make_text(L, 2);
    bytes = check_bytes(L, 1, &length);
    wanted = luaL_checklstring(L, 2, &wanted_length);
    from = luaL_optinteger(L, 3, 1);
    if (from < 0)
        from += (lua_Integer)length + 1;
    if (from < 1)
        from = 1;
    if (from <= (lua_Integer)length + 1)
        found = look_for(bytes + from - 1, length - (size_t)(from - 1), wanted, wanted_length);
    if (found == NULL) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, found - bytes + 1);
    lua_pushinteger(L, found - bytes + (lua_Integer)wanted_length);
    return 2;
}

static int
l_buf_find(lua_State *L)
{
    return find_in_socket_buffer(L, sxe_find);
}

static int
l_buf_ifind(lua_State *L)
{
    return find_in_socket_buffer(L, sxe_find_nocase);
}

static int
l_buf_text(lua_State *L)
{
    size_t length;
    const char *bytes = check_bytes(L, 1, &length);

    lua_pushlstring(L, bytes, length);
    return 1;
}

static int
buf_length(lua_State *L, uint32_t index, uint32_t generation)
{
    const SXE *s = sxe__lua_socket(sxe__lua_slot_at(index, generation));

    lua_pushinteger(L, s == NULL ? 0 : SXE_BUF_USED(s));
    return 1;
}

/* ---- Properties ---- */

static int
which_callback(const char *name)
{
    static const char *const names[SXE__LUA_CALLBACKS] = {"onconnect", "onread", "onclose"};
    int which = 0;

    while (which < SXE__LUA_CALLBACKS && strcmp(name, names[which]) != 0)
        which++;
    return which;
}

/* Push a property that is a callback; false: the property is not a callback. */
static bool
push_callback(lua_State *L, const SXE *s, const struct sxe__lua_slot *slot, const char *name)
{
    int which = which_callback(name);

    if (which == SXE__LUA_CALLBACKS)
        return false;
    if (s == NULL || !sxe__lua_callbacks_push(L, slot, which))
        lua_pushnil(L);
    return true;
}

static int
get_compat_socket_member(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    struct sxe__lua_slot *slot;
    const SXE *s;

    /* The most frequent properties come first. */
    if (strcmp(name, "buf") == 0) {
        sxe__lua_push_handle(L, SXE__LUA_BUF, index, generation);
        return 1;
    }
    slot = sxe__lua_slot_at(index, generation);
    s = sxe__lua_socket(slot);
    if (strcmp(name, "buf_used") == 0)
        lua_pushinteger(L, s == NULL ? 0 : SXE_BUF_USED(s));
    else if (strcmp(name, "id") == 0)
        lua_pushinteger(L, index);
    else if (!push_callback(L, s, slot, name) && !sxe__lua_push_address(L, s, name))
        sxe__lua_field_get(L, slot, index);
    return 1;
}

static int
set_member(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_at(index, generation);
    SXE *s = sxe__lua_socket(slot);
    int which = which_callback(name);

    if (s == NULL)
        return luaL_error(L, "cannot set '%s': the socket is closed", name);
    if (which == SXE__LUA_CALLBACKS) {
        sxe__lua_field_set(L, slot, index);
        return 1;
    }
    if (!lua_isnil(L, 3))
        luaL_checktype(L, 3, LUA_TFUNCTION);
    sxe__lua_callbacks_set(L, s, which, 3);
    return 1;
}

/* The function sxe_id(s) returns s.id, and so on. */
static int
l_property(lua_State *L)
{
    const char *name = lua_tostring(L, lua_upvalueindex(1));
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_SOCKET, &generation);

    return get_compat_socket_member(L, index, generation, name);
}

void
sxe__lua_open_compat_socket(lua_State *L)
{
    static const luaL_Reg methods[] = {{"listen", l_listen},
                                       {"connect", l_compat_connect},
                                       {"write", l_compat_write},
                                       {"close", l_compat_close},
                                       {"buf_clear", l_buf_clear},
                                       {"kill", sxe__lua_spawn_kill},
                                       {NULL, NULL}};
    static const luaL_Reg buf_methods[] = {
        {"find", l_buf_find}, {"ifind", l_buf_ifind}, {"text", l_buf_text}, {NULL, NULL}};
    static const struct sxe__lua_class_spec spec = {.name = "sxe socket",
                                                    .methods = methods,
                                                    .get = get_compat_socket_member,
                                                    .set = set_member};
    static const struct sxe__lua_class_spec buf_spec = {
        .name = "sxe buffer", .methods = buf_methods, .length = buf_length};
    static const luaL_Reg functions[] = {{"sxe_new_tcp", l_new_tcp},
                                         {"sxe_listen", l_listen},
                                         {"sxe_connect", l_compat_connect},
                                         {"sxe_write", l_compat_write},
                                         {"sxe_close", l_compat_close},
                                         {"sxe_buf_clear", l_buf_clear},
                                         {NULL, NULL}};
    static const char *const properties[] = {"id",        "buf",        "buf_used",  "peer_addr",
                                             "peer_port", "local_addr", "local_port"};

    sxe__lua_register_class(L, SXE__LUA_SOCKET, &spec);
    sxe__lua_register_class(L, SXE__LUA_BUF, &buf_spec);
    sxe__lua_open_fields(L);
    luaL_setfuncs(L, functions, 0);
    for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
        lua_pushfstring(L, "sxe_%s", properties[i]);
        lua_pushstring(L, properties[i]);
        lua_pushcclosure(L, l_property, 1);
        lua_rawset(L, -3);
    }
}
