/* SPDX-License-Identifier: MIT
 *
 * Sockets, peers and a loop for tests of lib-sxe.
 */
#include "sxe-fixture.h"

#include "fake-os.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENT_TURNS 20

/* The real functions, under the names that --wrap gives them. */
int __real_socket(int family, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t length);
int __real_listen(int fd, int backlog);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
int __real_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t length);
int __real_shutdown(int fd, int how);
int __real_close(int fd);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);
ssize_t __real_recv(int fd, void *data, size_t length, int flags);
int __real_poll(struct pollfd *fds, nfds_t number, int timeout_ms);

/* ---- The plan ---- */

static unsigned open_before;

void
plan_start_with(unsigned connections, const struct sxe_config *config)
{
    open_before = fake_os_open_fds();
    event_reset();
    sxe_log_set_level(SXE_LOG_FATAL);
    sxe_register(connections, 0);
    if (config != NULL)
        sxe_configure(config);
    ck_assert_int_eq(sxe_init(), 0);
}

void
plan_start(unsigned connections)
{
    plan_start_with(connections, NULL);
}

void
plan_stop(void)
{
    ck_assert_str_eq(event_pop()->name, "nothing");
    ck_assert_int_eq(sxe_fini(), 0);
    ck_assert_str_eq(event_pop()->name, "nothing");
    ev_loop_destroy(ev_default_loop(EVFLAG_AUTO));
    ck_assert_uint_eq(fake_os_open_fds(), open_before);
}

/* ---- Turning the loop ---- */

void
turn(unsigned times)
{
    while (times-- > 0)
        ev_run(sxe_loop(), EVRUN_NOWAIT);
}

static void
do_nothing(struct ev_loop *loop, ev_timer *tick, int events)
{
    (void)loop;
    (void)tick;
    (void)events;
}

/* One turn that waits for at most 1 ms. */
static void
turn_slowly(void)
{
    ev_timer tick;

    ev_timer_init(&tick, do_nothing, 0.001, 0);
    ev_timer_start(sxe_loop(), &tick);
    ev_run(sxe_loop(), EVRUN_ONCE);
    ev_timer_stop(sxe_loop(), &tick);
}

void
pump(void)
{
    for (unsigned i = 0; event_count() == 0 && i < WAIT_TURNS; i++)
        turn_slowly();
}

/* ---- Callbacks ---- */

void
push_connected(SXE *s)
{
    event_push("connected", s, 0);
}

void
push_read_keep(SXE *s, int length)
{
    event_push_data("read", s, length, SXE_BUF(s), (size_t)SXE_BUF_USED(s));
}

void
push_read(SXE *s, int length)
{
    push_read_keep(s, length);
    SXE_BUF_CLEAR(s);
}

void
push_close(SXE *s)
{
    event_push("close", s, sxe_error(s));
}

void
push_sent(SXE *s, int result)
{
    event_push("sent", s, result);
}

void
push_deferred(SXE *s)
{
    event_push("deferred", s, 0);
}

void
push_timer(struct sxe_timer *timer)
{
    event_push("timer", timer->user, 0);
}

SXE *
listen_tcp(SXE_IN_EVENT_READ read)
{
    SXE *listener = sxe_new_tcp(NULL, "127.0.0.1", 0, push_connected, read, push_close);

    ck_assert_ptr_nonnull(listener);
    ck_assert_int_eq(sxe_listen(listener), 0);
    return listener;
}

SXE *
accept_peer(SXE *listener, int *peer)
{
    *peer = peer_connect(sxe_local_port(listener));
    return (SXE *)(uintptr_t)EXPECT("connected", NULL, 0)->object;
}

/* ---- The next event that is expected ---- */

const struct event *
expect__event(const char *file, int line, const char *name, const void *object, long number)
{
    const struct event *event;

    pump();
    event = event_pop();
    if (strcmp(event->name, name) != 0 || (object != NULL && event->object != object) ||
        event->number != number)
        _ck_assert_failed(file, line, "the next event is", "\"%s\" %p %ld, not \"%s\" %p %ld",
                          event->name, event->object, event->number, name, object, number);
    return event;
}

void
expect__read(const char *file, int line, const void *object, const char *text)
{
    const struct event *event;

    pump();
    event = event_pop();
    if (strcmp(event->name, "read") != 0 || event->object != object ||
        event->length != strlen(text) || strcmp(event->data, text) != 0)
        _ck_assert_failed(file, line, "the next event is", "\"%s\" %p '%s', not \"read\" %p '%s'",
                          event->name, event->object, event->data, object, text);
}

void
expect__nothing(const char *file, int line)
{
    turn(SILENT_TURNS);
    if (event_count() > 0) {
        const struct event *event = event_pop();
        _ck_assert_failed(file, line, "nothing happens", "\"%s\" %p %ld", event->name,
                          event->object, event->number);
    }
}

/* ---- Raw peers ---- */

static struct sockaddr_in
loopback(unsigned short port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int
peer_socket(void)
{
    int fd = __real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    return fd;
}

int
peer_listen(unsigned short *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    int fd = peer_socket();

    ck_assert_int_eq(__real_bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(__real_listen(fd, 100), 0);
    ck_assert_int_eq(__real_getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

int
peer_accept(int listener)
{
    struct timeval patience = {.tv_sec = 2};
    int fd;

    __real_setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    fd = __real_accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

int
peer_connect(unsigned short port)
{
    struct sockaddr_in address = loopback(port);
    int fd = peer_socket();

    ck_assert_int_eq(__real_connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Turn the loop, then give the peer up to 1 ms of real time, even if the clock is virtual: TCP has
 * timers of its own. */
static void
turn_until(int fd, short ready)
{
    struct pollfd peer = {.fd = fd, .events = ready};

    turn(1);
    __real_poll(&peer, 1, 1);
}

void
peer_send(int fd, const void *data, size_t length)
{
    const char *from = data;

    for (unsigned i = 0; length > 0 && i < WAIT_TURNS; i++) {
        ssize_t sent = __real_send(fd, from, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent < 0) {
            ck_assert_int_eq(errno, EAGAIN);
            turn_until(fd, POLLOUT);
            continue;
        }
        from += sent;
        length -= (size_t)sent;
    }
    ck_assert_uint_eq(length, 0);
}

void
peer_shutdown(int fd)
{
    ck_assert_int_eq(__real_shutdown(fd, SHUT_WR), 0);
}

void
peer_reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    ck_assert_int_eq(__real_setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    __real_close(fd);
}

size_t
peer_receive(int fd, void *data, size_t length)
{
    size_t used = 0;

    for (unsigned i = 0; used < length && i < WAIT_TURNS; i++) {
        ssize_t n = __real_recv(fd, (char *)data + used, length - used, MSG_DONTWAIT);

        if (n == 0)
            break;
        if (n > 0) {
            used += (size_t)n;
            i = 0;
        } else if (errno == EAGAIN) {
            turn_until(fd, POLLIN);
        } else {
            break;
        }
    }
    return used;
}

int
peer_drain(int fd)
{
    char data[4096];
    ssize_t n;

    do
        n = __real_recv(fd, data, sizeof(data), MSG_DONTWAIT);
    while (n > 0);
    return n == 0 ? 0 : errno;
}

void
peer__expect(const char *file, int line, int fd, const char *text)
{
    char data[1024] = "";
    size_t length = peer_receive(fd, data, strlen(text));

    if (length != strlen(text) || memcmp(data, text, length) != 0)
        _ck_assert_failed(file, line, "the peer gets", "'%.*s', not '%s'", (int)length, data, text);
}

/* error: 0 for an orderly end, EAGAIN for nothing at all. */
void
peer__expect_end(const char *file, int line, int fd, int error)
{
    unsigned turns = error == EAGAIN ? SILENT_TURNS : WAIT_TURNS;
    int got = EAGAIN;
    char byte;

    for (unsigned i = 0; got == EAGAIN && i < turns; i++) {
        ssize_t n;

        turn_until(fd, POLLIN);
        n = __real_recv(fd, &byte, 1, MSG_DONTWAIT);
        got = n > 0 ? -1 : n == 0 ? 0 : errno;
    }
    if (got != error)
        _ck_assert_failed(file, line, "the peer gets", "%s, not %s",
                          got < 0 ? "a byte" : strerror(got), strerror(error));
}
