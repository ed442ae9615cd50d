/* SPDX-License-Identifier: MIT
 *
 * What: require "sxe.udp": udp.open, udp.serve, socket:recvfrom, :sendto, :close.
 *
 * A datagram is there only while lib-sxe shows it. It is kept in a ring of bytes, a userdata of the
 * state's, until a task takes it; while there is no room for one more, the socket is not read, and
 * the kernel keeps further datagrams.
 *
 *     on_udp_read --> [ length sender bytes.. | length sender bytes.. |      ] --> recvfrom
 */
#include "sxe-lua-socket-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "sxe-lua-clock.h"

enum {
    SOCKETS_DEFAULT = 8, /* how many sockets a script may open without sxe_register */
    LARGEST = 65535,     /* bytes of the largest datagram */
    RING_DATAGRAMS = 2,  /* a ring has room for at least this many of the largest size */
    ADDRESS_SIZE = 28,   /* bytes of an IPv6 address */
    /* How long to wait before a datagram is sent again for which the kernel had no room. */
    RETRY_NS = 1000 * 1000
};

struct datagram {
    uint32_t length;
    uint32_t address_length;
    unsigned char address[ADDRESS_SIZE];
};

struct ring {
    int reference; /* reference to the ring in the registry */
    uint32_t size;
    uint32_t first;
    uint32_t used;
    char bytes[];
};

static void
put_in_ring(struct ring *ring, const void *data, size_t length)
{
    uint32_t at = (ring->first + ring->used) % ring->size;
    size_t part = length < ring->size - at ? length : ring->size - at;

    memcpy(ring->bytes + at, data, part);
    memcpy(ring->bytes, (const char *)data + part, length - part);
    ring->used += (uint32_t)length;
}

static void
peek_ring(const struct ring *ring, void *data, size_t length)
{
    size_t part = length < ring->size - ring->first ? length : ring->size - ring->first;

    memcpy(data, ring->bytes + ring->first, part);
    memcpy((char *)data + part, ring->bytes, length - part);
}

static void
take_from_ring(struct ring *ring, void *data, size_t length)
{
    peek_ring(ring, data, length);
    ring->first = (ring->first + (uint32_t)length) % ring->size;
    ring->used -= (uint32_t)length;
}

static bool
has_ring_room(const struct ring *ring)
{
    return ring->size - ring->used >= sizeof(struct datagram) + LARGEST;
}

/* The length of the first datagram in the ring. */
static uint32_t
first_length(const struct ring *ring)
{
    struct datagram datagram;

    peek_ring(ring, &datagram, sizeof(datagram));
    return datagram.length;
}

/* ---- Receiving ---- */

static void
on_udp_read(SXE *s, int length)
{
    struct datagram datagram = {.length = (uint32_t)length};
    struct ring *ring = s->user_data;
    const struct sockaddr *sender = sxe_peer_address(s, &datagram.address_length);

    memcpy(datagram.address, sender, datagram.address_length);
    put_in_ring(ring, &datagram, sizeof(datagram));
    put_in_ring(ring, SXE_BUF(s), (size_t)length);
    if (!has_ring_room(ring))
        sxe_pause(s);
    sxe__lua_wake_first(&sxe__lua_slot_of(s)->readers);
}

static SXE *
check_udp(lua_State *L, struct sxe__lua_slot **slot)
{
    SXE *s = sxe__lua_check_socket(L, 1, SXE__LUA_UDP, slot);

    return s == NULL || ((*slot)->flags & SXE__LUA_SHUT) ? NULL : s;
}

static void
push_address(lua_State *L, const struct datagram *datagram)
{
    const struct sockaddr_in *in4 = (const struct sockaddr_in *)(const void *)datagram->address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)datagram->address;
    bool is_ipv6 = in4->sin_family == AF_INET6;
    char text[INET6_ADDRSTRLEN];

    inet_ntop(in4->sin_family, is_ipv6 ? (const void *)&in6->sin6_addr : &in4->sin_addr, text,
              sizeof(text));
    lua_pushstring(L, text);
    lua_pushinteger(L, ntohs(is_ipv6 ? in6->sin6_port : in4->sin_port));
}

static int go_on_receiving(lua_State *L, int status, lua_KContext deadline_ns);

/* Return data, ip and port of the first datagram. `length` is its length; room for that many bytes
 * is made first. */
static int
push_datagram(lua_State *L, uint32_t length, lua_KContext deadline_ns)
{
    struct sxe__lua_slot *slot;
    struct datagram datagram;
    struct ring *ring;
    luaL_Buffer data;
    char *room;
    SXE *s;

    /* Allocate the room first, so that a datagram is lost only if there is hardly any memory. A
     * finalizer that runs meanwhile may take this datagram, so that a longer datagram is the first
     * one. */
    room = luaL_buffinitsize(L, &data, length);
    s = check_udp(L, &slot);
    ring = s == NULL ? NULL : s->user_data;
    if (ring == NULL || ring->used == 0 || first_length(ring) > length) {
        lua_settop(L, 1);
        return go_on_receiving(L, LUA_OK, deadline_ns);
    }
    take_from_ring(ring, &datagram, sizeof(datagram));
    take_from_ring(ring, room, datagram.length);
    if (has_ring_room(ring))
        sxe_resume(s, SXE_RESUME_WHEN_MORE);
    luaL_pushresultsize(&data, datagram.length);
    push_address(L, &datagram);
    return 3;
}

static int
go_on_receiving(lua_State *L, int status, lua_KContext deadline_ns)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_udp(L, &slot);

    if (status == LUA_YIELD && sxe__lua_woken(L) != SXE__LUA_EVENT)
        return sxe__lua_fail_woken(L);
    if (s == NULL)
        return sxe__lua_fail(L, "closed");
    if (((struct ring *)s->user_data)->used > 0)
        return push_datagram(L, first_length(s->user_data), deadline_ns);
    return sxe__lua_park_in(L, &slot->readers, (uint64_t)deadline_ns, go_on_receiving, deadline_ns);
}

/* s:recvfrom(timeout) */
static int
l_recvfrom(lua_State *L)
{
    struct sxe__lua_slot *slot;

    if (check_udp(L, &slot) == NULL)
        return sxe__lua_fail(L, "closed");
    return go_on_receiving(L, LUA_OK, (lua_KContext)sxe__lua_slot_deadline(L, 2, slot));
}

/* ---- Sending ---- */

/* Places in the stack of sendto. */
enum { DATA = 2, HOST, PORT, TIMEOUT, DEADLINE, ADDRESSES };

/* Make a sockaddr from the first address of the text. Returns the length of the sockaddr; 0: the
 * text does not begin with an address. */
static socklen_t
parse_address(lua_State *L, struct sockaddr_storage *to)
{
    struct sockaddr_in *in4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;
    const char *addresses = lua_tostring(L, ADDRESSES);
    size_t length = strcspn(addresses, " ");
    uint16_t port = htons(sxe__lua_check_port(L, PORT));
    char ip[INET6_ADDRSTRLEN];

    memset(to, 0, sizeof(*to));
    if (length >= sizeof(ip))
        return 0;
    memcpy(ip, addresses, length);
    ip[length] = '\0';
    in4->sin_family = AF_INET;
    in4->sin_port = port;
    if (inet_pton(AF_INET, ip, &in4->sin_addr) == 1)
        return sizeof(*in4);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = port;
    return inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1 ? sizeof(*in6) : 0;
}

static int send_datagram_again(lua_State *L, int status, lua_KContext context);

/* Wait before sending again: the kernel's buffer has room again soon, but no event says when. */
static int
wait_to_send(lua_State *L)
{
    uint64_t now_ns = sxe_lua_get_clock()->now_ns();
    uint64_t deadline_ns = (uint64_t)lua_tointeger(L, DEADLINE);

    if (deadline_ns != 0 && deadline_ns <= now_ns)
        return sxe__lua_fail(L, "timeout");
    return sxe__lua_park(L, now_ns + RETRY_NS, NULL, NULL, send_datagram_again, 0);
}

static int
send_datagram_now(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_udp(L, &slot);
    struct sockaddr_storage to;
    socklen_t to_length = parse_address(L, &to);
    size_t length;
    const char *data = lua_tolstring(L, DATA, &length);
    int result;

    if (s == NULL)
        return sxe__lua_fail(L, "closed");
    if (length > UINT16_MAX)
        return sxe__lua_fail_errno(L, EMSGSIZE, "sendto");
    result = to_length == 0
                 ? -EADDRNOTAVAIL
                 : sxe_write_to(s, data, (unsigned)length, (struct sockaddr *)&to, to_length);
    if (result == -EAGAIN)
        return wait_to_send(L);
    return sxe__lua_result(L, result, "sendto");
}

static int
send_datagram_again(lua_State *L, int status, lua_KContext context)
{
    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    if (sxe__lua_woken(L) == SXE__LUA_CANCELLED)
        return sxe__lua_fail_woken(L);
    return send_datagram_now(L);
}

static int
go_on_udp_resolved(lua_State *L, int status, lua_KContext context)
{
    int failed = sxe__lua_resolved(L);

    SXE_UNUSED_PARAMETER(status);
    SXE_UNUSED_PARAMETER(context);
    return failed > 0 ? failed : send_datagram_now(L);
}

static int
family_of_socket(const SXE *s)
{
    return strchr(sxe_local_ip(s), ':') != NULL ? AF_INET6 : AF_INET;
}

/* s:sendto(data, host, port, timeout) */
static int
l_sendto(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_udp(L, &slot);
    const char *host = sxe__lua_check_text(L, HOST);
    uint64_t deadline_ns;

    luaL_checkstring(L, DATA);
    sxe__lua_check_port(L, PORT);
    lua_settop(L, TIMEOUT);
    if (s == NULL)
        return sxe__lua_fail(L, "closed");
    deadline_ns = sxe__lua_slot_deadline(L, TIMEOUT, slot);
    lua_pushinteger(L, (lua_Integer)deadline_ns);
    if (!sxe__lua_is_ip(host))
        return sxe__lua_resolve(L, host, family_of_socket(s), deadline_ns, go_on_udp_resolved);
    lua_pushvalue(L, HOST);
    return send_datagram_now(L);
}

/* ---- Opening and closing ---- */

static void
close_socket(lua_State *L, SXE *s)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_of(s);

    slot->flags |= SXE__LUA_SHUT;
    luaL_unref(L, LUA_REGISTRYINDEX, ((struct ring *)s->user_data)->reference);
    sxe_close(s);
    sxe__lua_wake_waiting(slot);
}

static int
l_udp_close(lua_State *L)
{
    struct sxe__lua_slot *slot;
    SXE *s = check_udp(L, &slot);

    if (s == NULL)
        return sxe__lua_fail(L, "closed");
    close_socket(L, s);
    lua_pushboolean(L, 1);
    return 1;
}

/* Called at the end of the scope of a <close> variable. */
static void
close_udp_at_end(lua_State *L, uint32_t index, uint32_t generation)
{
    struct sxe__lua_slot *slot = sxe__lua_slot_at(index, generation);
    SXE *s = sxe__lua_socket(slot);

    if (s != NULL && !(slot->flags & SXE__LUA_SHUT))
        close_socket(L, s);
}

/* Push a new ring, and keep it in the registry. */
static struct ring *
make_ring(lua_State *L)
{
    uint32_t size = RING_DATAGRAMS * ((uint32_t)sizeof(struct datagram) + LARGEST);
    struct ring *ring = lua_newuserdatauv(L, sizeof(*ring) + size, 0);

    *ring = (struct ring){.size = size};
    ring->reference = luaL_ref(L, LUA_REGISTRYINDEX);
    return ring;
}

/* Push the socket and return 1; or push nil, why and code, and return 3. */
static int
open_udp_socket(lua_State *L, const char *ip, uint16_t port)
{
    struct ring *ring;
    void **owner;
    SXE *s;
    int result;

    sxe__lua_sockets_open(L);
    owner = sxe__lua_new_owner(L);
    ring = make_ring(L);
    s = sxe_new_udp(NULL, ip, port, on_udp_read);
    result = s == NULL ? -errno : 0;
    if (s != NULL) {
        sxe__lua_adopt_unref(s);
        s->user_data = ring;
        result = sxe_listen(s);
    }
    if (result == 0) {
        sxe__lua_own_socket(owner, SXE__LUA_UDP, s);
        return 1;
    }
    luaL_unref(L, LUA_REGISTRYINDEX, ring->reference);
    sxe_close(s);
    return sxe__lua_fail_errno(L, -result, lua_pushfstring(L, "udp.open: %s port %d", ip, port));
}

static int open_after_turn(lua_State *L, int status, lua_KContext want);

/* Open the socket. If no socket is free, wait for one. */
static int
open_or_wait(lua_State *L, lua_KContext context)
{
    uint64_t want = (uint64_t)context, until_ns = 0;

    if (!sxe__lua_is_socket_free(false) && sxe__lua_may_wait(L))
        until_ns = sxe__lua_expect_socket(L, &want);
    return until_ns == 0
               ? open_udp_socket(L, lua_tostring(L, 1), sxe__lua_check_port(L, 2))
               : sxe__lua_wait_for_socket(L, until_ns, open_after_turn, (lua_KContext)want);
}

static int
open_after_turn(lua_State *L, int status, lua_KContext want)
{
    SXE_UNUSED_PARAMETER(status);
    return sxe__lua_woken(L) == SXE__LUA_CANCELLED ? sxe__lua_fail_woken(L) : open_or_wait(L, want);
}

/* udp.open(ip, port) */
static int
l_udp_open(lua_State *L)
{
    sxe__lua_check_ip(L, 1);
    sxe__lua_check_port(L, 2);
    /* A script's top level may run before sxe_init; then the call goes on in the first turn of the
     * loop. */
    if (sxe_loop() == NULL)
        return sxe__lua_park(L, 1, NULL, NULL, open_after_turn, 0);
    return open_or_wait(L, 0);
}

/* Called when the task of udp.serve has ended. */
static void
end_socket_task(lua_State *L, int status, int results, void *user)
{
    SXE *s = sxe_loop() == NULL ? NULL : sxe_from_handle((uintptr_t)user);

    SXE_UNUSED_PARAMETER(results);
    if (status != LUA_OK && status != LUA_YIELD)
        sxe__lua_log_error(L, "udp socket");
    if (s != NULL && !(sxe__lua_slot_of(s)->flags & SXE__LUA_SHUT))
        close_socket(L, s);
}

/* Open the socket for udp.serve. Arguments: the ip, port and function that udp.serve got. */
static int
serve_udp(lua_State *L)
{
    const char *ip = lua_tostring(L, lua_upvalueindex(1));
    uint16_t port = (uint16_t)lua_tointeger(L, lua_upvalueindex(2));
    uint32_t generation, index;
    SXE *s;

    lua_settop(L, 0);
    if (open_udp_socket(L, ip, port) != 1)
        return luaL_error(L, "udp.serve cannot open %s port %d: %s", ip, (int)port,
                          lua_tostring(L, 2));
    index = sxe__lua_check_handle(L, 1, SXE__LUA_UDP, &generation);
    s = sxe__lua_socket(sxe__lua_slot_at(index, generation));
    lua_pushvalue(L, lua_upvalueindex(3));
    lua_pushvalue(L, 1);
    if (sxe__lua_start(L, 1, false, end_socket_task, (void *)(uintptr_t)sxe_handle(s)) == 0) {
        close_socket(L, s);
        return luaL_error(L, "udp.serve: no task is free");
    }
    return 1;
}

/* udp.serve(ip, port, function): runs function(socket) as a task, and closes the socket when the
 * task ends. */
static int
l_udp_serve(lua_State *L)
{
    sxe__lua_check_ip(L, 1);
    sxe__lua_check_port(L, 2);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    lua_settop(L, 3);
    lua_pushcclosure(L, serve_udp, 3);
    if (sxe_loop() != NULL) {
        lua_call(L, 0, 1);
        return 1;
    }
    sxe_register(1, 0);
    sxe__lua_queue(L);
    return 0;
}

static int
get_udp_member(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    const struct sxe__lua_slot *slot = sxe__lua_slot_at(index, generation);

    if (strcmp(name, "timeout") != 0)
        return sxe__lua_push_address(L, sxe__lua_socket(slot), name);
    sxe__lua_push_timeout(L, slot);
    return 1;
}

int
sxe__lua_open_udp(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"open", l_udp_open}, {"serve", l_udp_serve}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"recvfrom", l_recvfrom}, {"sendto", l_sendto}, {"close", l_udp_close}, {NULL, NULL}};
    static const struct sxe__lua_class_spec spec = {.name = "sxe.udp socket",
                                                    .methods = methods,
                                                    .get = get_udp_member,
                                                    .set = sxe__lua_set_timeout,
                                                    .close = close_udp_at_end};

    sxe__lua_register_class(L, SXE__LUA_UDP, &spec);
    sxe__lua_open_resolve(L);
    if (sxe_loop() == NULL)
        sxe_register(SOCKETS_DEFAULT, 0);
    luaL_newlib(L, functions);
    return 1;
}
