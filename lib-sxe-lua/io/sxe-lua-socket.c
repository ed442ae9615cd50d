/* SPDX-License-Identifier: MIT
 *
 * Slots of sockets: adopting, finding and closing the sockets of scripts.
 */
#include "sxe-lua-socket-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sxe-lua-clock.h"
#include "sxe-lua-task-private.h"

#define MS           (SXE_NS_PER_SECOND / 1000)
#define NO_TIMEOUT_S 3155760000.0      /* a timeout of more than 100 years counts as no timeout */
#define PAUSE_MAX_NS SXE_NS_PER_SECOND /* the longest pause between two collections */

enum {
    /* how many pieces of unread bytes to drop: more than a peer sends when nobody reads */
    DROPS_MAX = 256,
    A_TURN = 1,         /* a deadline in the past: the task runs in the next turn */
    COLLECT_SHARE = 10, /* collecting may take one part in 10 of the time, see collect_sockets */
    /* these tries take a second in all, in which peers let closed sockets become free */
    TRIES_MAX = 20,
    DELAY_SHIFT_MAX = 6, /* the longest delay is MS << 6, 64 ms */
    WANT_WAITED = 1,     /* these are flags of *want in sxe__lua_expect_socket */
    WANT_COLLECTED = 2,
    WANT_TRY = 4 /* the number of tries is in the bits from this one on */
};

static _Thread_local struct sxe__lua_slot *slots;
static _Thread_local unsigned slots_number;
static _Thread_local void (*leave_slot)(struct sxe__lua_slot *slot, uint32_t index);

/* Tasks that found no free socket, and try again in the next turn. */
static _Thread_local struct sxe__lua_line starving = {.keeps_loop = true};
/* no collection begins before this time, see collect_sockets */
static _Thread_local uint64_t collect_after_ns;

/* ---- The slots ---- */

static void
ignore_socket(SXE *s)
{
    SXE_UNUSED_PARAMETER(s);
}

void
sxe__lua_drop_rest(struct sxe__lua_slot *slot)
{
    free(slot->rest.base);
    slot->rest = (struct sxe_buffer)SXE_BUFFER_EMPTY;
}

/* Reset the sockets of a state that is closed; the sockets call no Lua code any more. */
static int
close_sockets(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    for (unsigned i = 0; i < slots_number; i++) {
        SXE *s = sxe__lua_socket(&slots[i]);

        if (s == NULL)
            continue;
        s->on_close = ignore_socket;
        sxe_abort(s);
    }
    for (unsigned i = 0; i < slots_number; i++) {
        sxe__lua_drop_rest(&slots[i]);
        free(slots[i].failure);
    }
    sxe__lua_tls_close();
    free(slots);
    slots = NULL;
    slots_number = 0;
    return 0;
}

static unsigned
number_of_sockets(void)
{
    unsigned number = 0;

    for (int state = 0; state < SXE_STATES; state++)
        number += sxe_number_in_state((enum sxe_state)state);
    return number;
}

unsigned
sxe__lua_sockets_open(lua_State *L)
{
    if (sxe_loop() == NULL)
        luaL_error(L, "sxe_init was not called yet: do this in a function given to sxe_register");
    sxe__lua_refuse_at_end(L);
    if (slots != NULL && slots_number != number_of_sockets())
        luaL_error(L, "sxe_init was called again: other sockets need another state");
    if (slots != NULL)
        return slots_number;
    sxe__lua_at_end(L, close_sockets);
    slots = calloc(number_of_sockets(), sizeof(*slots));
    if (slots == NULL)
        luaL_error(L, "not enough memory");
    slots_number = number_of_sockets();
    return slots_number;
}

void
sxe__lua_on_leave(void (*leave)(struct sxe__lua_slot *slot, uint32_t index))
{
    leave_slot = leave;
}

struct sxe__lua_slot *
sxe__lua_adopt(SXE *s)
{
    struct sxe__lua_slot *slot = &slots[s->id];

    /* The last socket of this slot may have ended without on_close, so tasks may still wait. */
    sxe__lua_wake_waiting(slot);
    if (leave_slot != NULL)
        leave_slot(slot, s->id);
    sxe__lua_drop_rest(slot);
    free(slot->failure);
    memset(slot, 0, sizeof(*slot));
    slot->handle = sxe_handle(s);
    return slot;
}

struct sxe__lua_slot *
sxe__lua_adopt_unref(SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_adopt(s);

    sxe_unref(s);
    slot->flags = SXE__LUA_UNREF;
    slot->readers.keeps_loop = true;
    slot->writers.keeps_loop = true;
    return slot;
}

struct sxe__lua_slot *
sxe__lua_slot_of(const SXE *s)
{
    return slots == NULL ? NULL : &slots[s->id];
}

struct sxe__lua_slot *
sxe__lua_slot_at(uint32_t index, uint32_t generation)
{
    if (index >= slots_number ||
        ((slots[index].handle >> 32) & SXE__LUA_GENERATION_MASK) != generation)
        return NULL;
    return &slots[index];
}

SXE *
sxe__lua_socket(const struct sxe__lua_slot *slot)
{
    return slot == NULL || sxe_loop() == NULL ? NULL : sxe_from_handle(slot->handle);
}

SXE *
sxe__lua_check_socket(lua_State *L, int argument, enum sxe__lua_class class_,
                      struct sxe__lua_slot **slot)
{
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, argument, class_, &generation);

    *slot = sxe__lua_slot_at(index, generation);
    return sxe__lua_socket(*slot);
}

void
sxe__lua_push_socket(lua_State *L, enum sxe__lua_class class_, const SXE *s)
{
    sxe__lua_push_handle(L, class_, s->id,
                         (uint32_t)(sxe_handle(s) >> 32) & SXE__LUA_GENERATION_MASK);
}

void
sxe__lua_own_socket(void **owner, enum sxe__lua_class class_, const SXE *s)
{
    *owner = sxe__lua_handle_of(class_, s->id,
                                (uint32_t)(sxe_handle(s) >> 32) & SXE__LUA_GENERATION_MASK);
}

void
sxe__lua_wake_waiting(struct sxe__lua_slot *slot)
{
    sxe__lua_wake_all(&slot->readers);
    sxe__lua_wake_all(&slot->writers);
    if (slot->task != 0)
        sxe__lua_wake(slot->task, SXE__LUA_EVENT);
}

void
sxe__lua_socket_close(SXE *s)
{
    struct sxe__lua_slot *slot = &slots[s->id];

    slot->flags |= SXE__LUA_SHUT;
    sxe_close_lingering(s);
    sxe__lua_wake_all(&slot->readers);
}

/* ---- When all sockets are in use ---- */

bool
sxe__lua_is_socket_free(bool is_spare)
{
    return (!is_spare || starving.first == 0) && sxe_number_in_state(SXE_STATE_FREE) > 0;
}

/* Ask a task that connects for the socket of an attempt, if the task has other attempts. False: no
 * task has a socket to give. */
static bool
ask_for_socket(void)
{
    bool is_asked = false;

    for (unsigned i = 0; i < slots_number; i++) {
        struct sxe__lua_slot *slot = &slots[i];

        if (!(slot->flags & SXE__LUA_SPARE) || sxe__lua_socket(slot) == NULL)
            continue;
        is_asked = true;
        if (!(slot->flags & SXE__LUA_ASKED)) {
            slot->flags |= SXE__LUA_ASKED;
            sxe__lua_wake(slot->task, SXE__LUA_EVENT);
            break;
        }
    }
    return is_asked;
}

/* Collect garbage, which closes forgotten sockets. Many tasks may find no free socket, so they
 * share one collection, and at most a tenth of the time is spent on collecting. */
static void
collect_sockets(lua_State *L, uint64_t now_ns)
{
    uint64_t spent_ns;

    (void)lua_gc(L, LUA_GCCOLLECT);
    spent_ns = sxe_lua_get_clock()->now_ns() - now_ns;
    collect_after_ns =
        now_ns +
        (spent_ns > PAUSE_MAX_NS / COLLECT_SHARE ? PAUSE_MAX_NS : spent_ns * COLLECT_SHARE);
}

uint64_t
sxe__lua_expect_socket(lua_State *L, uint64_t *want)
{
    const uint64_t now_ns = sxe_lua_get_clock()->now_ns();
    const uint64_t tries = *want / WANT_TRY;

    if (ask_for_socket()) {
        *want &= ~(uint64_t)WANT_WAITED;
        return A_TURN;
    }
    if ((*want & WANT_WAITED) == 0) {
        *want |= WANT_WAITED;
        return A_TURN;
    }
    if ((*want & WANT_COLLECTED) == 0 && now_ns >= collect_after_ns) {
        collect_sockets(L, now_ns);
        *want |= WANT_COLLECTED;
        return A_TURN;
    }
    if (tries == TRIES_MAX ||
        ((*want & WANT_COLLECTED) && sxe_number_in_state(SXE_STATE_CLOSING) == 0))
        return 0;
    *want += WANT_TRY;
    return now_ns + (tries < DELAY_SHIFT_MAX ? MS << tries : MS << DELAY_SHIFT_MAX);
}

int
sxe__lua_wait_for_socket(lua_State *L, uint64_t until_ns, lua_KFunction k, lua_KContext context)
{
    return sxe__lua_park_in(L, &starving, until_ns, k, context);
}

/* ---- The end of a program ---- */

/* Read and drop unread bytes: the kernel resets a connection that is closed with bytes unread. The
 * peer would lose the bytes that are on their way to it, and a child that writes would report the
 * reset instead of ending by SIGPIPE. */
static void
drop_unread(int fd)
{
    char room[16384];
    unsigned drops = 0;

    (void)shutdown(fd, SHUT_RD);
    do
        drops++;
    while (recv(fd, room, sizeof(room), MSG_DONTWAIT) > 0 && drops < DROPS_MAX);
}

static void
close_socket_at_last(SXE *s)
{
    if (sxe_get_state(s) == SXE_STATE_WRITING) {
        sxe__lua_socket_close(s);
        return;
    }
    drop_unread(sxe_fd(s));
    (void)sxe_close(s);
}

void
sxe_lua_finish(struct sxe_lua *lua)
{
    SXE_UNUSED_PARAMETER(lua);
    for (unsigned i = 0; i < slots_number; i++) {
        SXE *s = sxe__lua_socket(&slots[i]);

        if (s != NULL && (slots[i].flags & SXE__LUA_UNREF))
            close_socket_at_last(s);
    }
    sxe__lua_spawn_finish();
}

/* ---- Functions that properties and calls share ---- */

int
sxe__lua_push_address(lua_State *L, const SXE *s, const char *name)
{
    static const char *const names[] = {"peer_addr", "peer_port", "local_addr", "local_port"};
    unsigned i = 0;

    while (i < 4 && strcmp(name, names[i]) != 0)
        i++;
    if (i == 4)
        return 0;
    if (s == NULL)
        lua_pushnil(L);
    else if (i % 2 == 0)
        lua_pushstring(L, i == 0 ? sxe_peer_ip(s) : sxe_local_ip(s));
    else
        lua_pushinteger(L, i == 1 ? sxe_peer_port(s) : sxe_local_port(s));
    return 1;
}

int
sxe__lua_result(lua_State *L, int result, const char *what)
{
    if (result == -ENOTCONN)
        return sxe__lua_fail(L, "closed");
    if (result < 0)
        return sxe__lua_fail_errno(L, -result, what);
    lua_pushboolean(L, 1);
    return 1;
}

int
sxe__lua_fail_closed(lua_State *L, const struct sxe__lua_slot *slot)
{
    if (sxe__lua_is_shut(slot) || slot->error == 0)
        return sxe__lua_fail(L, "closed");
    if (slot->failure != NULL)
        return sxe__lua_tls_fail(L, slot->failure, slot->error);
    return sxe__lua_fail_errno(L, slot->error, "connection");
}

uint64_t
sxe__lua_slot_deadline(lua_State *L, int argument, const struct sxe__lua_slot *slot)
{
    uint64_t deadline_ns = argument == 0 ? 0 : sxe__lua_deadline(L, argument);

    if (deadline_ns == 0 && slot->timeout_ns != 0)
        deadline_ns = sxe_lua_get_clock()->now_ns() + slot->timeout_ns;
    return deadline_ns;
}

uint64_t
sxe__lua_check_timeout(lua_State *L, int index)
{
    double seconds = lua_type(L, index) == LUA_TNUMBER ? lua_tonumber(L, index) : 0;

    if (!lua_isnil(L, index) && !(seconds > 0))
        luaL_error(L, "timeout: a number of seconds is expected, got %s",
                   luaL_tolstring(L, index, NULL));
    if (seconds > NO_TIMEOUT_S)
        return 0;
    return (uint64_t)(seconds * (double)SXE_NS_PER_SECOND);
}

void
sxe__lua_push_timeout(lua_State *L, const struct sxe__lua_slot *slot)
{
    if (slot == NULL || slot->timeout_ns == 0)
        lua_pushnil(L);
    else
        lua_pushnumber(L, (double)slot->timeout_ns / (double)SXE_NS_PER_SECOND);
}

int
sxe__lua_set_timeout(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_at(index, generation);

    if (strcmp(name, "timeout") != 0)
        return 0;
    if (sxe__lua_socket(slot) != NULL)
        slot->timeout_ns = sxe__lua_check_timeout(L, 3);
    return 1;
}

uint16_t
sxe__lua_check_port(lua_State *L, int argument)
{
    lua_Integer port = luaL_checkinteger(L, argument);

    luaL_argcheck(L, port >= 0 && port <= UINT16_MAX, argument, "a port is 0 to 65535");
    return (uint16_t)port;
}

bool
sxe__lua_is_ip(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    /* A zone begins with %, as in "fe80::1%eth0"; no name has that byte. */
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1 ||
           strchr(host, '%') != NULL;
}

const char *
sxe__lua_check_ip(lua_State *L, int argument)
{
    const char *ip = sxe__lua_check_text(L, argument);

    luaL_argcheck(L, *ip == '\0' || strcmp(ip, SXE_IP_ADDR_ANY) == 0 || sxe__lua_is_ip(ip),
                  argument, "an IPv4 or IPv6 address is expected, or \"\" for any");
    return ip;
}
