/* SPDX-License-Identifier: MIT
 *
 * Connections that speak TLS: how it begins, and why it failed.
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <string.h>

static void
on_tls_ready(SXE *s)
{
    sxe__lua_slot_of(s)->flags |= SXE__LUA_OPENED;
    sxe__lua_wake_waiting(sxe__lua_slot_of(s));
}

int
sxe__lua_tls_begin(lua_State *L, int pushed, int options, SXE *s, const char *host)
{
    const struct sxe_lua_tls *table = sxe__lua_config()->tls;
    struct sxe_tls *tls = lua_touserdata(L, pushed);
    const bool is_new = sxe_get_state(s) == SXE_STATE_NEW;
    const char *name;
    int result;

    if (tls == NULL)
        return 0;
    name = sxe__lua_tls_name(L, options);
    result = (is_new ? table->use : table->start)(tls, s, name != NULL ? name : host);
    if (result < 0)
        return result;
    table->on_ready(s, on_tls_ready);
    sxe__lua_slot_of(s)->flags |= SXE__LUA_TLS;
    return 0;
}

void
sxe__lua_tls_note(struct sxe__lua_slot *slot, const SXE *s)
{
    const char *why = sxe__lua_config()->tls->failure(s);

    if (slot->error != 0 && *why != '\0')
        slot->failure = strdup(why);
}

/* The task that began the handshake waits in the line of writers until the handshake is done, or
 * has failed. */
static int
go_on_starting(lua_State *L, int status, lua_KContext context)
{
    struct sxe__lua_slot *slot;
    SXE *s = sxe__lua_check_socket(L, 1, SXE__LUA_CONN, &slot);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    if (s == NULL)
        return sxe__lua_fail_closed(L, slot);
    lua_pushboolean(L, 1);
    return 1;
}

int
sxe__lua_tls_start(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = sxe__lua_check_socket(L, 1, SXE__LUA_CONN, &slot);
    const uint64_t deadline_ns = sxe__lua_option_deadline(L, 3);
    int result = sxe__lua_tls_push(L, 3);

    if (result > 0)
        return result;
    if (s == NULL || sxe__lua_is_shut(slot))
        return sxe__lua_fail_closed(L, slot);
    result = sxe__lua_tls_begin(L, lua_gettop(L), 3, s, lua_tostring(L, 2));
    if (result == -EBUSY)
        return sxe__lua_fail(L, "tls: the peer sent bytes before the handshake");
    if (result < 0)
        return sxe__lua_tls_fail(L, strerror(-result), -result);
    return sxe__lua_park_in(L, &slot->writers, deadline_ns, go_on_starting, 0);
}
