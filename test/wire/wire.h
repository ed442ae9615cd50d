/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of the wire driver share; wire.c says what the driver is
 * for.
 *
 * Shape: wire.c (the driver, tests) uses sock.c (both ends of a connection), proc.c (processes and
 * their figures in /proc) and network.c (network namespaces); sock.c and proc.c use stream.c, a
 * descriptor with a buffer of bytes that were read ahead:
 *
 *     in   | taken | read, not yet taken | room for the next read |
 *          0     start                  used                    size
 */
#ifndef WIRE_H
#define WIRE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WIRE_PATIENCE   120.0 /* seconds to wait for expected input; only a hang takes that long */
#define WIRE_QUOTED_MAX 200   /* bytes of a string that a message shows */

struct wire_stream {
    int fd;
    char *in;
    size_t start;
    size_t used;
    size_t size;
    double patience;
};

struct wire_push {
    const char *bytes;
    size_t len;
    size_t sent;
    double patience;
    bool reading; /* also read what comes in the meantime */
    int error;    /* why not all was sent: an errno; ETIMEDOUT: nothing could be sent */
};

double wire_seconds(void); /* monotonic */
void wire_pause(double seconds);

/* An optional argument: the seconds to wait for expected input. At least WIRE_PATIENCE is
 * returned. */
double wire_patience(lua_State *L, int argument);

/* Wait for events of poll(2): those that came, or 0 after the given time. */
short wire_wait_for(int fd, short events, double seconds);

/* Push the bytes in readable form, non-printing ones escaped; of a long string only the first. */
const char *wire_quote(lua_State *L, const char *bytes, size_t len);

/* Raise a Lua error. `result` is that of wire_stream_fill(). */
int wire_raise(lua_State *L, const char *doing, int error);
int wire_raise_missing(lua_State *L, const struct wire_stream *, const char *expected,
                       ssize_t result);

void wire_stream_open(struct wire_stream *, int fd);
void wire_stream_close(struct wire_stream *);
size_t wire_stream_len(const struct wire_stream *);

/* One read: how many bytes came; 0: the peer has closed; -errno, or -ETIMEDOUT after `seconds`. */
ssize_t wire_stream_fill(struct wire_stream *, double seconds);

/* Push the next len bytes, which must have been read, as a string; returns 1. */
int wire_stream_take(lua_State *L, struct wire_stream *, size_t len);

/* Wait for text: the number of bytes up to and including it; -1: the peer closed before it came. */
ssize_t wire_stream_find(lua_State *L, struct wire_stream *, const char *text, size_t len);

/* Wait for len bytes, or for the peer to close; an error if neither happens in time. */
void wire_stream_need(lua_State *L, struct wire_stream *, size_t len);
void wire_stream_need_end(lua_State *L, struct wire_stream *);

/* Wait for a body in chunks: how long it is up to the empty line at its end, or until the peer
 * closed. */
size_t wire_stream_need_chunks(lua_State *L, struct wire_stream *);

/* Send until all is sent, an error occurs, or nothing can be sent for .patience seconds. */
void wire_stream_push(struct wire_stream *, struct wire_push *);

/* The descriptor of the socket (sock.c) at this index of the stack. */
int wire_descriptor(lua_State *L, int index);

/* Add their functions to the table `wire` on top of the stack. */
void wire_add_sockets(lua_State *L);
void wire_add_processes(lua_State *L);
void wire_add_network(lua_State *L);

/* Register a class of userdata; methods of luaL_Reg may include __gc. */
struct luaL_Reg;
void wire_add_class(lua_State *L, const char *name, const struct luaL_Reg *methods);

#endif
