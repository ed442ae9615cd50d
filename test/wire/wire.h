/* SPDX-License-Identifier: MIT
 *
 * What: what the files of the wire driver share; wire.c says what the driver is for.
 *
 * Shape: wire.c (the driver, tests) uses sock.c (both ends of a connection), proc.c (processes and
 * what /proc says of them) and network.c (a network of their own); the first two use stream.c, a
 * descriptor and the bytes read ahead of it.
 *
 *     in   | taken | here, not yet taken | room for the next read |
 *          0     start                  used                    size
 */
#ifndef WIRE_H
#define WIRE_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define WIRE_PATIENCE   120.0 /* seconds to wait for what must come; they end a hang only */
#define WIRE_QUOTED_MAX 200   /* bytes shown of what came */

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
    bool reading; /* take in what comes meanwhile */
    int error;    /* why not all was sent: an errno, ETIMEDOUT when nothing moved */
};

double wire_seconds(void); /* monotonic */
void wire_pause(double seconds);

/* An optional argument, the seconds to wait for what must come: never less than WIRE_PATIENCE. */
double wire_patience(lua_State *L, int argument);

/* The events that came, 0 when none did in time. */
short wire_wait_for(int fd, short events, double seconds);

/* Pushes the bytes as a person can read them; of many only the first. */
const char *wire_quote(lua_State *L, const char *bytes, size_t len);

/* Raise a Lua error. result: as wire_stream_fill() returns it. */
int wire_raise(lua_State *L, const char *doing, int error);
int wire_raise_missing(lua_State *L, const struct wire_stream *, const char *expected,
                       ssize_t result);

void wire_stream_open(struct wire_stream *, int fd);
void wire_stream_close(struct wire_stream *);
size_t wire_stream_len(const struct wire_stream *);

/* One read: the bytes that came, 0 when the peer has closed, or -errno, -ETIMEDOUT included. */
ssize_t wire_stream_fill(struct wire_stream *, double seconds);

/* Pushes the next len bytes, which must be there, as a string; returns 1. */
int wire_stream_take(lua_State *L, struct wire_stream *, size_t len);

/* Waits for text: the bytes up to and including it, -1 when the peer closes first. */
ssize_t wire_stream_find(lua_State *L, struct wire_stream *, const char *text, size_t len);

/* Wait for so many bytes, or for the peer to close. */
void wire_stream_need(lua_State *L, struct wire_stream *, size_t len);
void wire_stream_need_end(lua_State *L, struct wire_stream *);

/* Sends until all is sent, an error comes, or nothing moves for .patience seconds. */
void wire_stream_push(struct wire_stream *, struct wire_push *);

/* The descriptor of a socket of sock.c at that index of the stack. */
int wire_descriptor(lua_State *L, int index);

/* Add their functions to the table on top of the stack. */
void wire_add_sockets(lua_State *L);
void wire_add_processes(lua_State *L);
void wire_add_network(lua_State *L);

/* Registers a class of userdata; its methods start with those of luaL_Reg, __gc included. */
struct luaL_Reg;
void wire_add_class(lua_State *L, const char *name, const struct luaL_Reg *methods);

#endif
