/* SPDX-License-Identifier: MIT
 *
 * Sockets of wire tests: connections, listeners, and mailboxes for datagrams.
 */
#include "wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <lauxlib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCK_CLASS "wire.sock"

union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

static struct wire_stream *
check_stream(lua_State *L)
{
    struct wire_stream *stream = luaL_checkudata(L, 1, SOCK_CLASS);

    if (stream->fd < 0) {
        luaL_error(L, "this socket is closed");
    }
    return stream;
}

static socklen_t
make_address(lua_State *L, union address *address, const char *host, uint16_t port)
{
    memset(address, 0, sizeof(*address));
    if (strchr(host, '/') != NULL) {
        address->un.sun_family = AF_UNIX;
        snprintf(address->un.sun_path, sizeof(address->un.sun_path), "%s", host);
        return sizeof(address->un);
    }
    if (inet_pton(AF_INET, host, &address->in.sin_addr) == 1) {
        address->in.sin_family = AF_INET;
        address->in.sin_port = htons(port);
        return sizeof(address->in);
    }
    if (inet_pton(AF_INET6, host, &address->in6.sin6_addr) != 1) {
        luaL_error(L, "neither an address nor a path: %s", host);
    }
    address->in6.sin6_family = AF_INET6;
    address->in6.sin6_port = htons(port);
    return sizeof(address->in6);
}

static struct wire_stream *
new_sock(lua_State *L, int fd)
{
    struct wire_stream *stream = lua_newuserdatauv(L, sizeof(*stream), 0);

    wire_stream_open(stream, fd);
    luaL_setmetatable(L, SOCK_CLASS);
    return stream;
}

static struct wire_stream *
new_socket(lua_State *L, union address *address, socklen_t *address_len)
{
    const char *host = luaL_checkstring(L, 1);
    int on = 1;

    *address_len = make_address(L, address, host, (uint16_t)luaL_optinteger(L, 2, 0));

    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        wire_raise(L, "socket", errno);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return new_sock(L, fd);
}

static int
sock_connect(lua_State *L)
{
    int receive_buffer = (int)luaL_optinteger(L, 3, 0);
    union address address;
    socklen_t address_len;
    struct wire_stream *stream = new_socket(L, &address, &address_len);
    int error = 0;
    socklen_t error_len = sizeof(error);

    if (receive_buffer > 0) {
        setsockopt(stream->fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    if (connect(stream->fd, &address.any, address_len) == 0) {
        return 1;
    }
    error = errno;
    if (error == EINPROGRESS) {
        error = ETIMEDOUT;
        if (wire_wait_for(stream->fd, POLLOUT, stream->patience) != 0) {
            getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
        }
    }
    return error == 0 ? 1 : wire_raise(L, "connect", error);
}

static int
sock_listen(lua_State *L)
{
    union address address;
    socklen_t address_len;
    struct wire_stream *stream = new_socket(L, &address, &address_len);
    int on = 1;

    setsockopt(stream->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(stream->fd, &address.any, address_len) != 0 || listen(stream->fd, SOMAXCONN) != 0) {
        return wire_raise(L, "listen", errno);
    }
    return 1;
}

/* wire.mailbox(path): a unix socket that receives datagrams, such as those of sd_notify(3). */
static int
sock_mailbox(lua_State *L)
{
    union address address;
    socklen_t address_len =
        make_address(L, &address, luaL_checkstring(L, 1), (uint16_t)luaL_optinteger(L, 2, 0));
    int fd = socket(address.any.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, &address.any, address_len) != 0) {
        return wire_raise(L, "mailbox", errno);
    }
    new_sock(L, fd);
    return 1;
}

static int
sock_message(lua_State *L)
{
    struct wire_stream *mailbox = check_stream(L);
    char text[4096];
    ssize_t length;

    if (wire_wait_for(mailbox->fd, POLLIN, wire_patience(L, 2)) == 0) {
        return luaL_error(L, "expected a message, but none came");
    }
    length = recv(mailbox->fd, text, sizeof(text), 0);
    if (length < 0) {
        return wire_raise(L, "recv", errno);
    }
    lua_pushlstring(L, text, (size_t)length);
    return 1;
}

/* The socket's descriptor, for a program that inherits it. */
int
wire_descriptor(lua_State *L, int index)
{
    return ((struct wire_stream *)luaL_checkudata(L, index, SOCK_CLASS))->fd;
}

enum { PORTS_FIRST = 12000, PORTS_OF_ONE = 20, PORTS_SHARES = 900 };

/* The first of the ports that are this driver's as long as it runs: an abstract unix socket with
 * their number keeps other drivers away. */
static unsigned
own_ports(void)
{
    static unsigned first;

    for (unsigned i = 0; first == 0 && i < PORTS_SHARES; i++) {
        const unsigned share = ((unsigned)getpid() + i) % PORTS_SHARES;
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "sxe-wire-ports-%u", share);
        if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
            first = PORTS_FIRST + share * PORTS_OF_ONE;
        else
            close(fd);
    }
    return first;
}

/* wire.free_port(): a port at which nobody listens. It is outside the range that the kernel hands
 * out to clients and to listeners at port 0, and each driver uses twenty ports of its own, so that
 * no other process takes the port meanwhile. */
static int
sock_free_port(lua_State *L)
{
    static unsigned next;
    union address address = {.in = {.sin_family = AF_INET}};
    int result = -1;

    address.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int tries = 0; result != 0 && tries < 20; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int on = 1;

        address.in.sin_port = htons((uint16_t)(own_ports() + next++ % PORTS_OF_ONE));
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        result = bind(fd, &address.any, sizeof(address.in));
        result = result == 0 ? listen(fd, 1) : result;
        close(fd);
    }
    lua_pushinteger(L, ntohs(address.in.sin_port));
    return result == 0 ? 1 : wire_raise(L, "free_port", EADDRINUSE);
}

static int
sock_port(lua_State *L)
{
    union address address = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t len = sizeof(address);

    getsockname(check_stream(L)->fd, &address.any, &len);
    lua_pushinteger(
        L, ntohs(address.any.sa_family == AF_INET6 ? address.in6.sin6_port : address.in.sin_port));
    return 1;
}

static int
sock_accept(lua_State *L)
{
    struct wire_stream *listener = check_stream(L);

    if (wire_wait_for(listener->fd, POLLIN, wire_patience(L, 2)) == 0) {
        return luaL_error(L, "expected a connection, but none came");
    }

    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        return wire_raise(L, "accept", errno);
    }
    new_sock(L, fd);
    return 1;
}

static int
sock_send(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    struct wire_push push = {.patience = stream->patience};

    push.bytes = luaL_checklstring(L, 2, &push.len);
    wire_stream_push(stream, &push);
    if (push.sent < push.len) {
        return luaL_error(L, "expected to send %d bytes, sent %d: %s", (int)push.len,
                          (int)push.sent, strerror(push.error));
    }
    lua_settop(L, 1);
    return 1;
}

/* The results of send_some() and pump(): how many bytes were sent, and the error's name if not all
 * were. */
static int
return_push(lua_State *L, struct wire_stream *stream, struct wire_push *push)
{
    push->bytes = luaL_checklstring(L, 2, &push->len);
    wire_stream_push(stream, push);
    lua_pushinteger(L, (lua_Integer)push->sent);
    if (push->error == 0) {
        return 1;
    }
    lua_pushstring(L, strerrorname_np(push->error));
    return 2;
}

static int
sock_send_some(lua_State *L)
{
    struct wire_push push = {.patience = luaL_optnumber(L, 3, 0.2)};

    return return_push(L, check_stream(L), &push);
}

static int
sock_pump(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    struct wire_push push = {.patience = stream->patience, .reading = true};

    return return_push(L, stream, &push);
}

static int
sock_send_slowly(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    size_t len;
    const char *bytes = luaL_checklstring(L, 2, &len);
    size_t piece = (size_t)luaL_checkinteger(L, 3);
    double pause = luaL_optnumber(L, 4, 0.0005);

    for (size_t i = 0; i < len; i += piece) {
        struct wire_push push = {.bytes = bytes + i, .patience = stream->patience};

        push.len = len - i < piece ? len - i : piece;
        wire_stream_push(stream, &push);
        if (push.error != 0) {
            return luaL_error(L, "expected to send %d bytes, sent %d: %s", (int)len,
                              (int)(i + push.sent), strerror(push.error));
        }
        wire_pause(pause);
    }
    lua_settop(L, 1);
    return 1;
}

static int
sock_recv(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    size_t len = (size_t)luaL_checkinteger(L, 2);

    wire_stream_need(L, stream, len);
    return wire_stream_take(L, stream, len);
}

static int
sock_recv_until(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    ssize_t found = wire_stream_find(L, stream, text, len);

    if (found < 0) {
        return wire_raise_missing(L, stream, wire_quote(L, text, len), 0);
    }
    return wire_stream_take(L, stream, (size_t)found);
}

static int
sock_recv_all(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);

    wire_stream_need_end(L, stream);
    return wire_stream_take(L, stream, wire_stream_len(stream));
}

/* eof([seconds]): true if the peer has closed or reset; false if bytes have come, or nothing in
 * this time. */
static int
sock_eof(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    ssize_t result = 1;

    if (wire_stream_len(stream) == 0) {
        result = wire_stream_fill(stream, luaL_optnumber(L, 2, stream->patience));
    }
    lua_pushboolean(L, result <= 0 && result != -ETIMEDOUT);
    return 1;
}

/* ready([seconds]): true if bytes can be read, or the peer has closed. */
static int
sock_ready(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    double patience = luaL_optnumber(L, 2, stream->patience);

    lua_pushboolean(L, wire_stream_len(stream) > 0 ||
                           wire_wait_for(stream->fd, POLLIN, patience) != 0);
    return 1;
}

static int
sock_reset(lua_State *L)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct wire_stream *stream = check_stream(L);

    setsockopt(stream->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    wire_stream_close(stream);
    return 0;
}

static int
sock_shutdown(lua_State *L)
{
    shutdown(check_stream(L)->fd, SHUT_WR);
    return 0;
}

static int
sock_close(lua_State *L)
{
    wire_stream_close(luaL_checkudata(L, 1, SOCK_CLASS));
    return 0;
}

static int
sock_timeout(lua_State *L)
{
    check_stream(L)->patience = wire_patience(L, 2);
    lua_settop(L, 1);
    return 1;
}

/* Add "Name: value" to the table of headers on top of the stack; join values of equal names by a
 * comma. */
static void
add_header(lua_State *L, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    char name[128];
    size_t name_len = colon == NULL ? 0 : (size_t)(colon - line);

    if (name_len == 0 || name_len >= sizeof(name)) {
        wire_quote(L, line, len);
        luaL_error(L, "expected a header, got %s", lua_tostring(L, -1));
    }
    for (size_t i = 0; i < name_len; i++) {
        name[i] = (char)tolower((unsigned char)line[i]);
    }
    name[name_len] = '\0';

    const char *value = colon + 1 + strspn(colon + 1, " \t");

    lua_pushlstring(L, value, (size_t)(line + len - value));
    if (lua_getfield(L, -2, name) == LUA_TSTRING) {
        lua_pushfstring(L, "%s, %s", lua_tostring(L, -1), lua_tostring(L, -2));
        lua_replace(L, -3);
    }
    lua_pop(L, 1);
    lua_setfield(L, -2, name);
}

/* Push a table of a reply's first line and headers; return the status. */
static int
push_head(lua_State *L, const char *head, size_t len)
{
    char version[8];
    char reason[64] = "";
    int status;

    if (sscanf(head, "HTTP/%3[0-9.] %3d %63[^\r]", version, &status, reason) < 2) {
        wire_quote(L, head, len);
        luaL_error(L, "expected a status line, got %s", lua_tostring(L, -1));
    }
    lua_newtable(L);
    lua_pushinteger(L, status);
    lua_setfield(L, -2, "status");
    lua_pushstring(L, version);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, reason);
    lua_setfield(L, -2, "reason");
    lua_newtable(L);
    for (const char *line = strstr(head, "\r\n") + 2; *line != '\r';) {
        size_t line_len = (size_t)(strstr(line, "\r\n") - line);

        add_header(L, line, line_len);
        line += line_len + 2;
    }
    lua_setfield(L, -2, "headers");
    return status;
}

/* Wait for the body: Content-Length bytes, all chunks, or all until the peer closes. */
static size_t
need_body(lua_State *L, struct wire_stream *stream)
{
    size_t len;

    lua_getfield(L, -1, "headers");
    lua_getfield(L, -1, "transfer-encoding");
    lua_getfield(L, -2, "content-length");
    if (!lua_isnil(L, -1)) {
        len = (size_t)lua_tointeger(L, -1);
        wire_stream_need(L, stream, len);
    } else if (!lua_isnil(L, -2)) {
        len = wire_stream_need_chunks(L, stream);
    } else {
        wire_stream_need_end(L, stream);
        len = wire_stream_len(stream);
    }
    lua_pop(L, 3);
    return len;
}

/* read_reply([method of its request]) -> {status, reason, version, headers, body, raw} */
static int
sock_read_reply(lua_State *L)
{
    struct wire_stream *stream = check_stream(L);
    bool head_only = strcmp(luaL_optstring(L, 2, "GET"), "HEAD") == 0;
    ssize_t head_len = wire_stream_find(L, stream, "\r\n\r\n", 4);

    if (head_len < 0) {
        return wire_raise_missing(L, stream, "a reply", 0);
    }
    wire_stream_take(L, stream, (size_t)head_len);

    int status = push_head(L, lua_tostring(L, -1), (size_t)head_len);
    bool bodiless = head_only || status < 200 || status == 204 || status == 304;

    wire_stream_take(L, stream, bodiless ? 0 : need_body(L, stream));
    lua_pushvalue(L, -3);
    lua_pushvalue(L, -2);
    lua_concat(L, 2);
    lua_setfield(L, -3, "raw");
    lua_setfield(L, -2, "body");
    return 1;
}

static const luaL_Reg methods[] = {
    {"accept", sock_accept},
    {"close", sock_close},
    {"eof", sock_eof},
    {"port", sock_port},
    {"message", sock_message},
    {"pump", sock_pump},
    {"read_reply", sock_read_reply},
    {"ready", sock_ready},
    {"recv", sock_recv},
    {"recv_all", sock_recv_all},
    {"recv_until", sock_recv_until},
    {"reset", sock_reset},
    {"send", sock_send},
    {"send_slowly", sock_send_slowly},
    {"send_some", sock_send_some},
    {"shutdown", sock_shutdown},
    {"timeout", sock_timeout},
    {"__close", sock_close},
    {"__gc", sock_close},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"connect", sock_connect},
    {"free_port", sock_free_port},
    {"listen", sock_listen},
    {"mailbox", sock_mailbox},
    {NULL, NULL},
};

void
wire_add_sockets(lua_State *L)
{
    wire_add_class(L, SOCK_CLASS, methods);
    luaL_setfuncs(L, functions, 0);
}
