/* SPDX-License-Identifier: MIT
 *
 * Streams of wire tests: read with a buffer and a limit of time, wait for text, send.
 */
#include "wire.h"

#include <ctype.h>
#include <errno.h>
#include <lauxlib.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_SIZE 65536

double
wire_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void
wire_pause(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};

    left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

double
wire_patience(lua_State *L, int argument)
{
    double seconds = luaL_optnumber(L, argument, WIRE_PATIENCE);

    return seconds > WIRE_PATIENCE ? seconds : WIRE_PATIENCE;
}

short
wire_wait_for(int fd, short events, double seconds)
{
    struct pollfd wanted = {.fd = fd, .events = events};
    double deadline = wire_seconds() + seconds;

    for (;;) {
        double left = deadline - wire_seconds();
        int count = poll(&wanted, 1, left > 0 ? (int)(left * 1000) + 1 : 0);

        if (count >= 0 || errno != EINTR) {
            return count > 0 ? wanted.revents : 0;
        }
    }
}

const char *
wire_quote(lua_State *L, const char *bytes, size_t len)
{
    size_t shown = len < WIRE_QUOTED_MAX ? len : WIRE_QUOTED_MAX;
    luaL_Buffer text;
    char escape[8];

    luaL_buffinit(L, &text);
    luaL_addchar(&text, '"');
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c == '\r' || c == '\n') {
            luaL_addstring(&text, c == '\r' ? "\\r" : "\\n");
        } else if (c == '"' || c == '\\' || !isprint(c)) {
            snprintf(escape, sizeof(escape), "\\x%02x", c);
            luaL_addstring(&text, escape);
        } else {
            luaL_addchar(&text, (char)c);
        }
    }
    luaL_addstring(&text, shown < len ? "\"..." : "\"");
    luaL_pushresult(&text);
    return lua_tostring(L, -1);
}

int
wire_raise(lua_State *L, const char *doing, int error)
{
    return luaL_error(L, "%s: %s", doing, strerror(error));
}

void
wire_stream_open(struct wire_stream *stream, int fd)
{
    *stream = (struct wire_stream){.fd = fd, .patience = WIRE_PATIENCE};
}

void
wire_stream_close(struct wire_stream *stream)
{
    if (stream->fd >= 0) {
        close(stream->fd);
        stream->fd = -1;
    }
    free(stream->in);
    stream->in = NULL;
    stream->start = stream->used = stream->size = 0;
}

size_t
wire_stream_len(const struct wire_stream *stream)
{
    return stream->used - stream->start;
}

ssize_t
wire_stream_fill(struct wire_stream *stream, double seconds)
{
    if (stream->start > 0 && stream->start >= stream->used / 2) {
        memmove(stream->in, stream->in + stream->start, wire_stream_len(stream));
        stream->used -= stream->start;
        stream->start = 0;
    }
    if (stream->size - stream->used < READ_SIZE) {
        size_t size = stream->size * 2 + READ_SIZE;
        char *in = realloc(stream->in, size);

        if (in == NULL) {
            return -ENOMEM;
        }
        stream->in = in;
        stream->size = size;
    }
    if (wire_wait_for(stream->fd, POLLIN, seconds) == 0) {
        return -ETIMEDOUT;
    }

    ssize_t count = read(stream->fd, stream->in + stream->used, READ_SIZE);

    if (count > 0) {
        stream->used += (size_t)count;
    }
    return count < 0 ? -errno : count;
}

int
wire_stream_take(lua_State *L, struct wire_stream *stream, size_t len)
{
    lua_pushlstring(L, wire_stream_len(stream) > 0 ? stream->in + stream->start : "", len);
    stream->start += len;
    return 1;
}

int
wire_raise_missing(lua_State *L, const struct wire_stream *stream, const char *expected,
                   ssize_t result)
{
    size_t len = wire_stream_len(stream);

    wire_quote(L, len > 0 ? stream->in + stream->start : "", len);
    return luaL_error(L, "expected %s, but %s; got %d bytes: %s", expected,
                      result == 0 ? "the peer closed" : strerror((int)-result), (int)len,
                      lua_tostring(L, -1));
}

ssize_t
wire_stream_find(lua_State *L, struct wire_stream *stream, const char *text, size_t len)
{
    size_t seen = 0;
    ssize_t result;

    do {
        size_t have = wire_stream_len(stream);
        const char *from = have > 0 ? stream->in + stream->start : "";
        const char *hit = memmem(from + seen, have - seen, text, len);

        if (hit != NULL) {
            return hit - from + (ssize_t)len;
        }
        seen = have >= len ? have - len + 1 : 0;
        result = wire_stream_fill(stream, stream->patience);
    } while (result > 0);
    if (result < 0) {
        wire_raise_missing(L, stream, wire_quote(L, text, len), result);
    }
    return -1;
}

/* Wait for len bytes: whether they came; if not, the peer closed. */
static bool
await_bytes(lua_State *L, struct wire_stream *stream, size_t len)
{
    ssize_t result = 1;

    while (wire_stream_len(stream) < len && result > 0) {
        result = wire_stream_fill(stream, stream->patience);
    }
    if (result < 0) {
        wire_raise_missing(L, stream, lua_pushfstring(L, "%d bytes", (int)len), result);
    }
    return result > 0;
}

void
wire_stream_need(lua_State *L, struct wire_stream *stream, size_t len)
{
    if (!await_bytes(L, stream, len)) {
        wire_raise_missing(L, stream, lua_pushfstring(L, "%d bytes", (int)len), 0);
    }
}

size_t
wire_stream_need_chunks(lua_State *L, struct wire_stream *stream)
{
    size_t at = 0; /* where a line begins: a chunk's size, or a trailer field */
    bool is_last = false;

    for (;;) {
        size_t len = wire_stream_len(stream);
        const char *line = len > at ? stream->in + stream->start + at : "";
        const char *end = memchr(line, '\n', len > at ? len - at : 0);

        if (end == NULL) {
            if (!await_bytes(L, stream, len + 1)) {
                return len;
            }
            continue;
        }
        at += (size_t)(end - line) + 1;
        if (is_last && end - line <= 1) {
            return at;
        }
        if (!is_last) {
            size_t size = strtoul(line, NULL, 16);

            is_last = size == 0;
            at += is_last ? 0 : size + 2;
        }
    }
}

void
wire_stream_need_end(lua_State *L, struct wire_stream *stream)
{
    ssize_t result;

    do {
        result = wire_stream_fill(stream, stream->patience);
    } while (result > 0);
    if (result < 0) {
        wire_raise_missing(L, stream, "the end", result);
    }
}

void
wire_stream_push(struct wire_stream *stream, struct wire_push *push)
{
    bool reading = push->reading;

    while (push->sent < push->len) {
        short wanted = (short)(POLLOUT | (reading ? POLLIN : 0));
        short events = wire_wait_for(stream->fd, wanted, push->patience);

        if (events == 0) {
            push->error = ETIMEDOUT;
            return;
        }
        if (reading && (events & POLLIN) != 0) {
            reading = wire_stream_fill(stream, 0) > 0;
        }

        ssize_t count = send(stream->fd, push->bytes + push->sent, push->len - push->sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);

        if (count >= 0) {
            push->sent += (size_t)count;
        } else if (errno != EAGAIN && errno != EINTR) {
            push->error = errno;
            return;
        }
    }
}
