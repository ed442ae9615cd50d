/* SPDX-License-Identifier: MIT
 *
 * What: making, closing and looking at sockets.
 */
#include "sxe-private.h"

#include <errno.h>
#include <string.h>

/* ---- Making ---- */

static void
ignore_event(SXE *s)
{
    SXE_UNUSED_PARAMETER(s);
}

static void
ignore_bytes(SXE *s, int length)
{
    SXE_UNUSED_PARAMETER(length);
    SXE_BUF_CLEAR(s);
}

static SXE *
make_socket(const SXE *from, uint8_t kind)
{
    SXE *s = CONTEXT->sockets == NULL ? NULL : sxe__take(kind);

    if (s != NULL)
        return s;
    SXE_WARN_ID(from == NULL ? SXE_NO_ID : from->id, "cannot make a socket: %s",
                CONTEXT->sockets == NULL ? "sxe_init was not called"
                                         : "all that were registered are in use");
    errno = ENFILE;
    return NULL;
}

static void
set_callbacks(SXE *s, SXE_IN_EVENT_CONNECTED connected, SXE_IN_EVENT_READ read,
              SXE_IN_EVENT_CLOSE close)
{
    s->on_connected = connected != NULL ? connected : ignore_event;
    s->on_read = read != NULL ? read : ignore_bytes;
    s->on_close = close != NULL ? close : ignore_event;
}

/* Make a socket that already has an IP address. */
static SXE *
make_at(const SXE *from, uint8_t kind, const char *ip, unsigned short port)
{
    struct sockaddr_storage address;
    SXE *s;

    if (sxe__address_parse(&address, ip, port) < 0) {
        SXE_WARN_ID(from == NULL ? SXE_NO_ID : from->id,
                    "cannot make a socket at '%s': not an IPv4 or IPv6 address", ip);
        errno = EINVAL;
        return NULL;
    }
    s = make_socket(from, kind);
    if (s == NULL)
        return NULL;
    memcpy(s->u.address, &address, sizeof(s->u.address));
    s->flags |= SXE__ADDRESS;
    return s;
}

SXE *
sxe_new_tcp(SXE *from, const char *ip, unsigned short port, SXE_IN_EVENT_CONNECTED connected,
            SXE_IN_EVENT_READ read, SXE_IN_EVENT_CLOSE close)
{
    SXE *s = make_at(from, SXE__TCP, ip, port);

    if (s != NULL)
        set_callbacks(s, connected, read, close);
    return s;
}

SXE *
sxe_new_unix(SXE *from, const char *path, SXE_IN_EVENT_CONNECTED connected, SXE_IN_EVENT_READ read,
             SXE_IN_EVENT_CLOSE close)
{
    struct sockaddr_storage address;
    socklen_t length;
    SXE *s;
    int status = sxe__address_parse_path(&address, &length, path);

    if (status < 0) {
        SXE_WARN_ID(from == NULL ? SXE_NO_ID : from->id,
                    "cannot make a socket at '%s': a path has 1 to 107 bytes", path);
        errno = -status;
        return NULL;
    }
    s = make_socket(from, SXE__UNIX);
    if (s == NULL)
        return NULL;
    s->u.path = path;
    set_callbacks(s, connected, read, close);
    return s;
}

SXE *
sxe_new_udp(SXE *from, const char *ip, unsigned short port, SXE_IN_EVENT_READ read)
{
    SXE *s = make_at(from, SXE__UDP, ip, port);

    if (s != NULL)
        set_callbacks(s, NULL, read, NULL);
    return s;
}

/* ---- Closing ---- */

SXE_RETURN
sxe_close(SXE *this)
{
    return sxe__close(this, 0);
}

SXE_RETURN
sxe_close_lingering(SXE *this)
{
    return sxe__close(this, SXE__LINGER);
}

SXE_RETURN
sxe_abort(SXE *this)
{
    if (this == NULL || sxe__state(this) == SXE_STATE_FREE || sxe__state(this) == SXE_STATE_CLOSED)
        return -EALREADY;
    sxe__reset(this, ECONNABORTED);
    return 0;
}

/* ---- Looking ---- */

enum sxe_state
sxe_get_state(const SXE *this)
{
    return sxe__state(this);
}

SXE *
sxe_io_socket(unsigned id)
{
    return sxe__socket(id);
}

unsigned
sxe_io_sockets(void)
{
    return CONTEXT->sockets == NULL ? 0 : CONTEXT->number;
}

int
sxe_error(const SXE *this)
{
    return this->error;
}

size_t
sxe_dropped(const SXE *this)
{
    return CONTEXT->released == this ? CONTEXT->tables->dropped : 0;
}

int
sxe_fd(const SXE *this)
{
    return this->fd;
}

void *
sxe_extra(SXE *this)
{
    return this + 1;
}

/* a function like getsockname(2) or getpeername(2) */
typedef int (*ask_name)(int fd, struct sockaddr *address, socklen_t *length);

static socklen_t
ask_for_address(const SXE *s, ask_name name, struct sockaddr_storage *address)
{
    socklen_t length = sizeof(*address);

    memset(address, 0, sizeof(*address));
    return s->fd >= 0 && name(s->fd, (struct sockaddr *)address, &length) == 0 ? length : 0;
}

/* The system forgets the peer of a connection that was reset, even before it was accepted: then
 * accept4(2) alone names the peer. */
static socklen_t
ask_for_peer(const SXE *s, struct sockaddr_storage *address)
{
    socklen_t length = ask_for_address(s, getpeername, address);

    if (length == 0 && s->fd >= 0 && CONTEXT->tables->newest == sxe_handle(s)) {
        *address = CONTEXT->tables->newest_peer;
        length = CONTEXT->tables->newest_peer_length;
    }
    return length;
}

socklen_t
sxe_get_peer(const SXE *this, struct sockaddr_storage *address)
{
    if (this->kind != SXE__UDP)
        return ask_for_peer(this, address);
    *address = CONTEXT->tables->sender;
    return CONTEXT->tables->receiver == sxe_handle(this) ? CONTEXT->tables->sender_length : 0;
}

const char *
sxe_peer_ip(const SXE *this)
{
    struct sockaddr_storage address;

    return sxe__address_ip(CONTEXT->tables->ip, &address, sxe_get_peer(this, &address));
}

unsigned short
sxe_peer_port(const SXE *this)
{
    struct sockaddr_storage address;

    return sxe_get_peer(this, &address) > 0 ? sxe__address_port(&address) : 0;
}

const char *
sxe_local_ip(const SXE *this)
{
    struct sockaddr_storage address;

    return sxe__address_ip(CONTEXT->tables->ip, &address,
                           ask_for_address(this, getsockname, &address));
}

unsigned short
sxe_local_port(const SXE *this)
{
    struct sockaddr_storage address;

    return ask_for_address(this, getsockname, &address) > 0 ? sxe__address_port(&address) : 0;
}

const struct sockaddr *
sxe_peer_address(const SXE *this, socklen_t *length)
{
    bool is_known = CONTEXT->tables->receiver == sxe_handle(this);

    *length = is_known ? CONTEXT->tables->sender_length : 0;
    return is_known ? (const struct sockaddr *)&CONTEXT->tables->sender : NULL;
}
