/* SPDX-License-Identifier: MIT
 *
 * What: what Lua keeps about each socket of lib-sxe that scripts have, in addition to what lib-sxe
 * keeps: sockets of 2010's interface, connections, udp.
 *
 * Place: sxe-lua-compat-socket.c, sxe-lua-tcp.c, sxe-lua-udp.c and the files that they call.
 *
 * Shape: an array of slots beside lib-sxe's pool of sockets, with the same indexes. A script holds
 * a handle: the socket's index and 24 bits of its generation. The slot at that index says whether
 * the handle's socket still exists:
 *
 *     handle { class | generation | index } ---> slot[index] { handle, lines, ... } ---> SXE
 *                                                same generation?     sxe_from_handle: not closed?
 *
 * A slot keeps its contents after its socket was closed, so that a script can ask why a connection
 * broke. When lib-sxe gives the index to another socket, that socket takes the slot.
 *
 * Limits: the array is made at the first call that needs it, after sxe_init, for all sockets that
 * sxe_init made. If a program calls sxe_init again with another number, it must make another Lua
 * state.
 */
#ifndef SXE_LUA_SOCKET_PRIVATE_H
#define SXE_LUA_SOCKET_PRIVATE_H

#include "sxe-lua-private.h"

enum sxe__lua_slot_flag {
    SXE__LUA_USED =
        1 << 0, /* 2010: the callback that runs has written to the socket or closed the socket */
    SXE__LUA_CALLS = 1 << 1,    /* 2010: the socket has callbacks */
    SXE__LUA_FIELDS = 1 << 2,   /* 2010: scripts keep values in the socket */
    SXE__LUA_END_SEEN = 1 << 3, /* the peer sends no more */
    SXE__LUA_SHUT = 1 << 4,     /* the script closed the socket */
    SXE__LUA_UNREF = 1 << 5,    /* see sxe__lua_adopt_unref */
    SXE__LUA_TLS = 1 << 6,      /* the socket is a client of TLS */
    SXE__LUA_OPENED =
        1 << 7, /* tcp.connect: the connection, and TLS if it is used, is established */
    /* tcp.connect: other attempts for the same name go on, so this attempt can be given up. */
    SXE__LUA_SPARE = 1 << 8,
    /* tcp.connect: a task that found no free socket has asked for this attempt's socket. */
    SXE__LUA_ASKED = 1 << 9,
};

struct sxe__lua_slot {
    uint64_t handle; /* sxe_handle() of the socket; 0: no socket yet */
    struct sxe__lua_line readers;
    struct sxe__lua_line writers; /* tasks that wait to write, or for the handshake of TLS */
    uint64_t task;                /* the task that connects the socket; 0: no task does */
    uint64_t timeout_ns;          /* for calls that give no timeout; 0: such calls wait for ever */
    uint32_t owner;               /* 2010: the index of its callbacks */
    /* Why TLS closed the connection (the slot frees this text); NULL: TLS did not fail. */
    char *failure;
    /* The bytes that were unread when the connection broke, on the heap; reads return them
     * first. */
    struct sxe_buffer rest;
    int32_t error; /* sxe_error() when the socket closed */
    uint16_t flags;
};

/* Prepare for making sockets. Returns how many there may be. Raises if sxe_init was not called, or
 * without memory. */
unsigned sxe__lua_sockets_open(lua_State *L);

/* Begin the slot of a socket that was just made or accepted. Never raises. */
struct sxe__lua_slot *sxe__lua_adopt(SXE *s);

/* Like sxe__lua_adopt, but the socket does not keep the loop running, except while a task waits for
 * it, and while it closes. */
struct sxe__lua_slot *sxe__lua_adopt_unref(SXE *s);

/* The slot of a socket; NULL: the state was deleted. */
struct sxe__lua_slot *sxe__lua_slot_of(const SXE *s);

/* The slot of a handle; NULL: another socket has the slot now. */
struct sxe__lua_slot *sxe__lua_slot_at(uint32_t index, uint32_t generation);

/* The socket of a slot; NULL: the slot is NULL, or its socket is closed. */
SXE *sxe__lua_socket(const struct sxe__lua_slot *slot);

/* The socket of the handle at an argument; NULL: the socket is closed, and *slot may be NULL, too.
 * Raises if the handle is of another class. */
SXE *sxe__lua_check_socket(lua_State *L, int argument, enum sxe__lua_class class_,
                           struct sxe__lua_slot **slot);

void sxe__lua_push_socket(lua_State *L, enum sxe__lua_class class_, const SXE *s);

/* Put the handle of a socket into an owner (sxe__lua_new_owner). */
void sxe__lua_own_socket(void **owner, enum sxe__lua_class class_, const SXE *s);

/* 2010: register the function that frees the callbacks and fields of a slot before another socket
 * takes the slot. */
void sxe__lua_on_leave(void (*leave)(struct sxe__lua_slot *slot, uint32_t index));

/* Forget the bytes that were unread when the connection broke. */
void sxe__lua_drop_rest(struct sxe__lua_slot *slot);

/* Whether the script closed the socket of a slot, or another socket has that slot now. */
static inline bool
sxe__lua_is_shut(const struct sxe__lua_slot *slot)
{
    return slot == NULL || (slot->flags & SXE__LUA_SHUT);
}

/* Close a socket after its output is sent; calls that wait for input fail. */
void sxe__lua_socket_close(SXE *s);

/* Whether a free socket may be taken. is_spare: for an attempt of tcp.connect besides its first
 * attempt; such an attempt leaves free sockets to tasks that have none. */
bool sxe__lua_is_socket_free(bool is_spare);

/* The time until which a task that found no free socket should wait for one, because a socket may
 * become free: an attempt of tcp.connect was asked to give its socket up, sockets that were closed
 * in this turn become free, or collecting garbage freed sockets. 0: no socket will become free
 * soon. *want belongs to this function; set it to 0 before the first call. */
uint64_t sxe__lua_expect_socket(lua_State *L, uint64_t *want);

/* Wait in the line of the tasks that found no free socket. */
int sxe__lua_wait_for_socket(lua_State *L, uint64_t until_ns, lua_KFunction k,
                             lua_KContext context);

/* Wake all tasks that wait for the socket. */
void sxe__lua_wake_waiting(struct sxe__lua_slot *slot);

/* If `name` is peer_addr, peer_port, local_addr or local_port, push that value, or nil for a closed
 * socket, and return 1. Return 0 for another name. */
int sxe__lua_push_address(lua_State *L, const SXE *s, const char *name);

/* Push true for a result of 0. Otherwise push nil, message, code; the message is "closed" if the
 * socket is not connected. */
int sxe__lua_result(lua_State *L, int result, const char *what);

/* Return nil, "closed"; or nil, why, errno for a connection that broke. */
int sxe__lua_fail_closed(lua_State *L, const struct sxe__lua_slot *slot);

/* The deadline of a call: from the argument, seconds or a table with a field `timeout`, or else
 * from the slot's timeout_ns. 0: no deadline. */
uint64_t sxe__lua_slot_deadline(lua_State *L, int argument, const struct sxe__lua_slot *slot);

/* The value at an index, a number of seconds or nil, in nanoseconds; 0 for nil. Raises for any
 * other value. */
uint64_t sxe__lua_check_timeout(lua_State *L, int index);
void sxe__lua_push_timeout(lua_State *L, const struct sxe__lua_slot *slot);

/* The `set` function of classes whose only property to assign is "timeout". */
int sxe__lua_set_timeout(lua_State *L, uint32_t index, uint32_t generation, const char *name);

/* The port at an argument, 0 to 65535; raises an error for any other value. */
uint16_t sxe__lua_check_port(lua_State *L, int argument);

/* Whether the host is an address already, not a name. */
bool sxe__lua_is_ip(const char *host);

void sxe__lua_add_inflate(lua_State *L); /* adds functions to the table on top; sxe-lua-inflate.c */
void sxe__lua_add_proxy(lua_State *L);   /* adds functions to the table on top; sxe-lua-proxy.c */

/* ---- The option tls (sxe-lua-tls-client.c) ---- */

/* Push the value that sxe__lua_tls_begin needs for the table of options at an index, or nil if the
 * options ask for no TLS, and return 0. On failure push nil, the reason and a code, and return the
 * number of these values. */
int sxe__lua_tls_push(lua_State *L, int options);

/* The name that the peer's certificate must have, from the options; NULL: the options have no name.
 * The table of options keeps the text. */
const char *sxe__lua_tls_name(lua_State *L, int options);

/* Return nil, "tls: " with the reason, and the error. */
int sxe__lua_tls_fail(lua_State *L, const char *why, int error);

/* Delete all clients of TLS; call this after the sockets are closed. */
void sxe__lua_tls_close(void);

/* ---- TLS of connections (sxe-lua-tls.c) ---- */

/* Begin TLS with the host, or with the name in the options, on a socket that is not connected yet,
 * or on a connection that was plain until now. `pushed` is the index of the value from
 * sxe__lua_tls_push. Returns 0 or -errno. */
int sxe__lua_tls_begin(lua_State *L, int pushed, int options, SXE *s, const char *host);

/* start_tls(conn, host, {tls =, timeout =}), for modules of libsxe. Returns true after the
 * handshake; or nil, the reason and perhaps a code: then the caller resets the connection. No other
 * task may use the connection meanwhile. */
int sxe__lua_tls_start(lua_State *L);

/* Note why TLS failed; the socket's on_close calls this. */
void sxe__lua_tls_note(struct sxe__lua_slot *slot, const SXE *s);

/* ---- Connections (sxe-lua-conn.c) ---- */

void sxe__lua_open_conn(lua_State *L);
int sxe__lua_conn_reset(lua_State *L); /* reset(conn), for modules of libsxe: closes at once */
/* end_conn(conn), for modules of libsxe: closes without waiting for the peer's end, which gives the
 * socket back at once. For connections on which the peer owes nothing. */
int sxe__lua_conn_end(lua_State *L);
void sxe__lua_conn_on_read(SXE *s, int length);
void sxe__lua_conn_on_close(SXE *s);

/* ---- Connecting (sxe-lua-connect.c) ---- */

int sxe__lua_tcp_connect(lua_State *L); /* tcp.connect */

/* The field `timeout` of the options at an index, which may be nil, in nanoseconds; 0: none. */
uint64_t sxe__lua_option_timeout(lua_State *L, int options);

/* ---- The queue of sxe_register (sxe-lua-compat.c) ---- */

/* Before sxe_init: pop a function, which will be called after sxe_init. The functions are called in
 * the order of the calls of sxe__lua_queue. */
void sxe__lua_queue(lua_State *L);

/* The text of an IP address at an argument; "" means any address. Raises an error if the argument
 * is no address. */
const char *sxe__lua_check_ip(lua_State *L, int argument);

#endif
