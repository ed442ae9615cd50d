/* SPDX-License-Identifier: MIT
 *
 * What: tcp.connect. The addresses of a name race, as RFC 8305 (Happy Eyeballs) describes it:
 *
 *     first address ------> connecting ---.
 *     0.25 s later, or when one failed:    +--> the first that is connected wins, the others are
 *     next address -------> connecting ---'     closed; then comes its handshake of TLS, if any
 *
 * sxe_resolve returns the addresses with IPv4 and IPv6 in turn, so that, if the addresses of one
 * kind lead nowhere, the other kind is tried after a quarter of a second.
 *
 * A race never costs another task its connection: all attempts of a race but its first are SPARE.
 * They are not begun while no socket is free, and a task that finds no free socket asks for the
 * socket of such an attempt.
 */
#include "sxe-lua-socket-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-cidr.h"
#include "sxe-lua-clock.h"
#include "sxe-resolve.h"

#define UNIX_PREFIX "unix:"
#define NEXT_NS     (SXE_NS_PER_SECOND / 4) /* RFC 8305, 8: Connection Attempt Delay */

/* Places in the stack of tcp.connect. ADDRESSES is a text, with a blank after each address. OWNER
 * is made first, so that no connection is lost for lack of memory. */
enum { HOST = 1, PORT, OPTIONS, DEADLINE, TLS, ADDRESSES, OWNER, RACE };

struct race {
    uint64_t sockets[SXE_RESOLVE_ADDRESSES_MAX]; /* handles of the sockets that are connecting */
    /* For each socket, the offset of its address in ADDRESSES; the offsets rise. */
    size_t places[SXE_RESOLVE_ADDRESSES_MAX];
    size_t tried;     /* offset of the first address that was not tried */
    uint64_t next_ns; /* time at which the next address is tried */
    unsigned number;
    int error;     /* why the last attempt failed */
    uint64_t want; /* the state of sxe__lua_expect_socket */
};

/* The line of all tasks that connect. */
static _Thread_local struct sxe__lua_line connecting = {.keeps_loop = true};

uint64_t
sxe__lua_option_timeout(lua_State *L, int options)
{
    uint64_t timeout_ns = 0;

    if (lua_istable(L, options)) {
        lua_getfield(L, options, "timeout");
        timeout_ns = sxe__lua_check_timeout(L, -1);
        lua_pop(L, 1);
    }
    return timeout_ns;
}

/* ---- One socket ---- */

static void
on_tcp_connected(SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    /* With TLS, sxe-lua-tls.c wakes the task after the handshake. */
    if ((slot->flags & SXE__LUA_TLS) == 0)
        slot->flags |= SXE__LUA_OPENED;
    sxe__lua_wake(slot->task, SXE__LUA_EVENT);
}

/* The path in a host "unix:/run/app.sock" or "unix:@name"; NULL: the host has another form. */
static const char *
path_of_host(const char *host)
{
    return strncmp(host, UNIX_PREFIX, sizeof(UNIX_PREFIX) - 1) == 0 ? host + sizeof(UNIX_PREFIX) - 1
                                                                    : NULL;
}

/* Take the next address; NULL: there are no more addresses. A unix socket is one address; its path
 * may contain blanks, which otherwise separate addresses. */
static const char *
next_address(lua_State *L, struct race *race, char ip[SXE_RESOLVE_IP_SIZE])
{
    const char *address = lua_tostring(L, ADDRESSES) + race->tried;
    size_t length = strcspn(address, " ");

    if (path_of_host(address) != NULL) {
        race->tried += strlen(address);
        return address;
    }
    if (length == 0 || length >= SXE_RESOLVE_IP_SIZE)
        return NULL;
    memcpy(ip, address, length);
    ip[length] = '\0';
    race->tried += length + (address[length] == ' ');
    return ip;
}

/* The text of the option `from`, which is on top. */
static const char *
check_source_address(lua_State *L)
{
    const char *from = sxe__lua_option_text(L, "tcp.connect", "from");

    if (*from != '\0' && !sxe__lua_is_ip(from))
        luaL_error(L, "tcp.connect: from must be an IPv4 or IPv6 address, not '%s'", from);
    return from;
}

/* Make a socket that is not connected; NULL with errno. */
static SXE *
make_tcp_socket(lua_State *L, const char *path)
{
    const char *from = "";

    if (path != NULL)
        return sxe_new_unix(NULL, path, on_tcp_connected, sxe__lua_conn_on_read,
                            sxe__lua_conn_on_close);
    if (lua_istable(L, OPTIONS) && lua_getfield(L, OPTIONS, "from") != LUA_TNIL)
        from = check_source_address(L);
    return sxe_new_tcp(NULL, from, 0, on_tcp_connected, sxe__lua_conn_on_read,
                       sxe__lua_conn_on_close);
}

/* Make a socket, and begin to connect it to an address or a unix socket; NULL with errno. */
static SXE *
connect_tcp_socket(lua_State *L, const char *address)
{
    const uint64_t timeout_ns = sxe__lua_option_timeout(L, OPTIONS);
    const char *path = path_of_host(address);
    SXE *s = make_tcp_socket(L, path);
    struct sxe__lua_slot *slot;
    int result;

    lua_settop(L, RACE);
    if (s == NULL)
        return NULL;
    slot = sxe__lua_adopt_unref(s);
    slot->timeout_ns = timeout_ns;
    slot->task = sxe__lua_running(L);
    sxe_set_half_close(s, true);
    result = sxe__lua_tls_begin(L, TLS, OPTIONS, s, lua_tostring(L, HOST));
    if (result == 0)
        result = path != NULL ? sxe_connect_unix(s)
                              : sxe_connect(s, address, sxe__lua_check_port(L, PORT));
    if (result == 0)
        return s;
    slot->task = 0;
    sxe_close(s);
    errno = -result;
    return NULL;
}

static bool
is_public_only(lua_State *L)
{
    return lua_istable(L, OPTIONS) &&
           sxe__lua_option_bool(L, OPTIONS, "tcp.connect", "public_only", false);
}

/* Return why connect failed. ENFILE means that the script's sockets are used up: the system's table
 * of files is hardly ever full. */
static int
fail_to_connect(lua_State *L, int error)
{
    if (error == EACCES && is_public_only(L))
        (void)sxe__lua_fail(L, "connect: the address is not public");
    else if (error != ENFILE)
        return sxe__lua_fail_errno(L, error, "connect");
    else
        (void)sxe__lua_fail(L, "connect: all sockets of the script are in use: allow it more");
    lua_pushinteger(L, error);
    return 3;
}

/* ---- The race ---- */

static struct sxe__lua_slot *
slot_of(uint64_t handle)
{
    return sxe__lua_slot_at((uint32_t)handle, (uint32_t)(handle >> 32) & SXE__LUA_GENERATION_MASK);
}

/* Close all sockets of the race except one (NULL: close all). The closed sockets no longer wake the
 * task. */
static void
close_others(struct race *race, const SXE *winner)
{
    for (unsigned i = 0; i < race->number; i++) {
        struct sxe__lua_slot *slot = slot_of(race->sockets[i]);
        SXE *s = sxe__lua_socket(slot);

        if (s != NULL && s == winner)
            continue;
        if (slot != NULL)
            slot->task = 0;
        if (s != NULL)
            sxe_close(s);
    }
    race->number = winner != NULL;
    race->sockets[0] = winner != NULL ? sxe_handle(winner) : 0;
    if (winner != NULL)
        sxe__lua_slot_of(winner)->flags &= (uint16_t) ~(SXE__LUA_SPARE | SXE__LUA_ASKED);
}

/* Remove the sockets that failed. Returns the slot of one of them; NULL: no socket failed. */
static const struct sxe__lua_slot *
remove_failed(struct race *race)
{
    static const struct sxe__lua_slot unknown = {.error = ECONNABORTED};
    const struct sxe__lua_slot *failed = NULL;
    unsigned left = 0;

    for (unsigned i = 0; i < race->number; i++) {
        struct sxe__lua_slot *slot = slot_of(race->sockets[i]);

        if (sxe__lua_socket(slot) != NULL) {
            race->places[left] = race->places[i];
            race->sockets[left++] = race->sockets[i];
            continue;
        }
        if (slot != NULL)
            slot->task = 0;
        failed = slot == NULL || slot->error == 0 ? &unknown : slot;
        race->error = failed->error;
    }
    race->number = left;
    if (left > 0)
        slot_of(race->sockets[0])->flags &= (uint16_t) ~(SXE__LUA_SPARE | SXE__LUA_ASKED);
    return failed;
}

/* Close one attempt, the youngest first, for each task that has asked for a socket. The addresses
 * of these attempts are tried again later. */
static void
give_asked(struct race *race)
{
    unsigned asked = 0;

    for (unsigned i = 0; i < race->number; i++) {
        struct sxe__lua_slot *slot = slot_of(race->sockets[i]);

        asked += (slot->flags & SXE__LUA_ASKED) != 0;
        slot->flags &= (uint16_t)~SXE__LUA_ASKED;
    }
    for (; asked > 0; asked--) {
        struct sxe__lua_slot *slot = slot_of(race->sockets[--race->number]);

        slot->task = 0;
        sxe_close(sxe__lua_socket(slot));
        race->tried = race->places[race->number];
        race->next_ns = sxe_lua_get_clock()->now_ns() + NEXT_NS;
    }
}

/* The first socket that is connected; NULL: no socket is. */
static SXE *
find_winner(const struct race *race)
{
    for (unsigned i = 0; i < race->number; i++) {
        SXE *s = sxe__lua_socket(slot_of(race->sockets[i]));

        if (sxe_get_state(s) >= SXE_STATE_IDLE)
            return s;
    }
    return NULL;
}

static int go_on_connecting_socket(lua_State *L, int status, lua_KContext context);

/* Wait for an event of the race's sockets, or until the next address is due. */
static int
wait_for_race(lua_State *L, bool may_grow)
{
    const struct race *race = lua_touserdata(L, RACE);
    uint64_t until_ns = (uint64_t)lua_tointeger(L, DEADLINE);

    if (may_grow && (until_ns == 0 || race->next_ns < until_ns))
        until_ns = race->next_ns;
    return sxe__lua_park_in(L, &connecting, until_ns, go_on_connecting_socket, 0);
}

static void
add_to_race(struct race *race, const SXE *s, size_t place)
{
    if (race->number > 0)
        sxe__lua_slot_of(s)->flags |= SXE__LUA_SPARE;
    race->places[race->number] = place;
    race->sockets[race->number++] = sxe_handle(s);
    race->next_ns = sxe_lua_get_clock()->now_ns() + NEXT_NS;
}

/* Whether an attempt failed because sockets or memory are used up. Other tasks may free some soon,
 * so the address is not at fault. */
static bool
is_scarcity(int error)
{
    return error == ENFILE || error == EMFILE || error == ENOBUFS || error == ENOMEM;
}

/* Begin to connect to an address; NULL with errno. */
static SXE *
try_address(lua_State *L, const struct race *race, const char *address)
{
    errno = EACCES;
    if (is_public_only(L) && !sxe_cidr_is_public(address))
        return NULL;
    errno = ENFILE;
    return sxe__lua_is_socket_free(race->number > 0) ? connect_tcp_socket(L, address) : NULL;
}

/* If it is time, begin to connect to the next address that can be tried; then wait for the race. */
static int
connect_next_address(lua_State *L, bool is_time)
{
    struct race *race = lua_touserdata(L, RACE);
    char ip[SXE_RESOLVE_IP_SIZE];
    size_t place = race->tried;
    const uint64_t deadline_ns = (uint64_t)lua_tointeger(L, DEADLINE);
    uint64_t until_ns = 0;
    const char *address;
    bool is_left;

    while (is_time && (address = next_address(L, race, ip)) != NULL) {
        SXE *s = try_address(L, race, address);

        race->error = errno;
        if (s != NULL) {
            add_to_race(race, s, place);
        } else if (is_scarcity(race->error)) {
            race->tried = place;
            race->next_ns = sxe_lua_get_clock()->now_ns() + NEXT_NS;
        }
        is_time = s == NULL && !is_scarcity(race->error);
        place = race->tried;
    }
    is_left = lua_tostring(L, ADDRESSES)[race->tried] != '\0';
    if (race->number > 0)
        return wait_for_race(L, is_left);
    if (is_left && is_scarcity(race->error))
        until_ns = sxe__lua_expect_socket(L, &race->want);
    if (until_ns == 0)
        return fail_to_connect(L, race->error);
    return sxe__lua_wait_for_socket(
        L, deadline_ns != 0 && deadline_ns < until_ns ? deadline_ns : until_ns,
        go_on_connecting_socket, 0);
}

/* Begin to connect to the first of the addresses on top. error: the reason to give if there is no
 * address. */
static int
begin_race(lua_State *L, int error)
{
    struct race *race;

    (void)sxe__lua_new_owner(L);
    race = lua_newuserdatauv(L, sizeof(*race), 0);
    *race = (struct race){.error = error};
    return connect_next_address(L, true);
}

static bool
is_connect_over(lua_State *L)
{
    const uint64_t deadline_ns = (uint64_t)lua_tointeger(L, DEADLINE);

    return deadline_ns != 0 && sxe_lua_get_clock()->now_ns() >= deadline_ns;
}

static int
go_on_connecting_socket(lua_State *L, int status, lua_KContext context)
{
    struct race *race = lua_touserdata(L, RACE);
    const enum sxe__lua_reason reason = sxe__lua_woken(L);
    const struct sxe__lua_slot *failed;
    SXE *winner;

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (reason == SXE__LUA_CANCELLED || (reason != SXE__LUA_EVENT && is_connect_over(L))) {
        close_others(race, NULL);
        return sxe__lua_fail_woken(L);
    }
    failed = remove_failed(race);
    if (failed != NULL && failed->failure != NULL)
        return sxe__lua_tls_fail(L, failed->failure, failed->error);
    winner = find_winner(race);
    if (winner == NULL) {
        give_asked(race);
        return connect_next_address(L, failed != NULL || reason != SXE__LUA_EVENT);
    }
    close_others(race, winner);
    if ((sxe__lua_slot_of(winner)->flags & SXE__LUA_OPENED) == 0)
        return wait_for_race(L, false);
    sxe__lua_slot_of(winner)->task = 0;
    sxe__lua_own_socket(lua_touserdata(L, OWNER), SXE__LUA_CONN, winner);
    lua_pushvalue(L, OWNER);
    return 1;
}

static int
go_on_tcp_resolved(lua_State *L, int status, lua_KContext context)
{
    int failed = sxe__lua_resolved(L);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return failed > 0 ? failed : begin_race(L, EADDRNOTAVAIL);
}

/* ---- The call ---- */

/* The line of tasks that wait for sxe_init. */
static _Thread_local struct sxe__lua_line early;

static int go_on_early(lua_State *L, int status, lua_KContext context);

static int
begin_to_connect(lua_State *L)
{
    const char *host = lua_tostring(L, HOST);
    int failed;

    if (!sxe__lua_may_wait(L)) /* parking raises the reason; the sockets stay unused */
        return sxe__lua_park_in(L, &early, 0, go_on_early, 0);
    sxe__lua_sockets_open(L);
    lua_pushinteger(L, (lua_Integer)sxe__lua_option_deadline(L, OPTIONS));
    failed = sxe__lua_tls_push(L, OPTIONS);
    if (failed > 0)
        return failed;
    if (path_of_host(host) == NULL && !sxe__lua_is_ip(host))
        return sxe__lua_resolve(L, host, AF_UNSPEC, (uint64_t)lua_tointeger(L, DEADLINE),
                                go_on_tcp_resolved);
    lua_pushvalue(L, HOST);
    return begin_race(L, EINVAL);
}

static int
wake_early(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    sxe__lua_wake_all(&early);
    return 0;
}

static int
go_on_early(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return sxe__lua_woken(L) == SXE__LUA_EVENT ? begin_to_connect(L) : sxe__lua_fail_woken(L);
}

/* tcp.connect(host, port, {timeout =, from =, tls =, public_only =}),
 * tcp.connect("unix:PATH", {timeout =}) */
int
sxe__lua_tcp_connect(lua_State *L)
{
    static const char *const names[] = {"timeout", "from", "tls", "public_only", NULL};
    static const char *const names_unix[] = {"timeout", NULL};
    bool is_unix = path_of_host(sxe__lua_check_text(L, HOST)) != NULL;

    if (is_unix) {
        lua_pushinteger(L, 0);
        lua_insert(L, PORT);
    } else {
        sxe__lua_check_port(L, PORT);
    }
    lua_settop(L, OPTIONS);
    if (!lua_isnil(L, OPTIONS))
        sxe__lua_option_names(L, OPTIONS, is_unix ? names_unix : names, "tcp.connect");
    (void)sxe__lua_option_timeout(L, OPTIONS);
    sxe__lua_tls_check(L, OPTIONS);
    (void)is_public_only(L);
    if (sxe_loop() != NULL)
        return begin_to_connect(L);
    lua_pushcfunction(L, wake_early);
    sxe__lua_queue(L);
    return sxe__lua_park_in(L, &early, 0, go_on_early, 0);
}
