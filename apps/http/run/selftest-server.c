/* SPDX-License-Identifier: MIT
 *
 * The server to which the self-tests send their load.
 */
#include "selftest-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sxe-time.h"

#define PEERS  1024
#define EVENTS 64
#define LATER  4096 /* the most replies that are held at a time */

static const char reply_ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
static const char reply_bad[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello";
static const char reply_short[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";

struct loop {
    enum load_selftest_kind kind;
    int epoll;
    int listener;
    int control;
    struct load_selftest_counts *counts;
    /* for each connection, how many bytes have been read of the blank line that ends its next
     * request */
    unsigned matched[PEERS];
    struct {
        int fd;
        uint64_t came_ns;
    } later[LATER];
    unsigned head; /* the index of the oldest held reply */
    unsigned held; /* how many replies are held */
};

static void
watch_descriptor(const struct loop *loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void
send_reply_text(int fd, const char *text)
{
    /* Ignore errors: if the peer is gone, the next read finds out. */
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void
hang_up_connection(int fd, bool is_reset)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    if (is_reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
}

/* Read the requests of a connection. False: the connection is gone. */
static bool
answer_badly(struct load_selftest_counts *counts, int fd)
{
    switch (counts->requests % 10) {
    case 2:
        counts->bad_status++;
        send_reply_text(fd, reply_bad);
        return true;
    case 4:
        counts->resets++;
        hang_up_connection(fd, true);
        return false;
    case 6:
        counts->closes++;
        hang_up_connection(fd, false);
        return false;
    case 8:
        counts->short_bodies++;
        send_reply_text(fd, reply_short);
        hang_up_connection(fd, false);
        return false;
    default:
        counts->ok++;
        send_reply_text(fd, reply_ok);
        return true;
    }
}

static bool
answer_requests(struct loop *loop, int fd)
{
    struct load_selftest_counts *counts = loop->counts;

    if (counts->requests++ == 0)
        counts->first_ns = sxe_time_ns();
    if (loop->kind == LOAD_SELFTEST_BADLY)
        return answer_badly(counts, fd);
    counts->ok++;
    if (loop->kind == LOAD_SELFTEST_WELL) {
        send_reply_text(fd, reply_ok);
        return true;
    }
    loop->later[(loop->head + loop->held) % LATER].fd = fd;
    loop->later[(loop->head + loop->held++) % LATER].came_ns = sxe_time_ns();
    return true;
}

static void
answer_late(struct loop *loop)
{
    while (loop->held > 0) {
        uint64_t came_ns = loop->later[loop->head].came_ns;
        uint64_t now_ns = sxe_time_ns();

        if (now_ns - came_ns < LOAD_SELFTEST_DELAY_NS)
            return;
        send_reply_text(loop->later[loop->head].fd, reply_ok);
        load_histogram_record(&loop->counts->held, now_ns - came_ns);
        loop->head = (loop->head + 1) % LATER;
        loop->held--;
    }
}

static void
receive_requests(struct loop *loop, int fd)
{
    static const char blank_line[] = "\r\n\r\n";
    char bytes[4096];
    ssize_t length = read(fd, bytes, sizeof(bytes));
    unsigned *matched = &loop->matched[fd % PEERS];

    if (length <= 0) {
        hang_up_connection(fd, false);
        return;
    }
    for (ssize_t i = 0; i < length; i++) {
        *matched = bytes[i] == blank_line[*matched] ? *matched + 1 : bytes[i] == '\r';
        if (*matched < 4)
            continue;
        *matched = 0;
        if (!answer_requests(loop, fd))
            return;
    }
}

static void
accept_connections(struct loop *loop)
{
    int at_once = 1;
    int fd = accept4(loop->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    loop->matched[fd % PEERS] = 0;
    watch_descriptor(loop, fd);
}

/* Serve until the control is closed. While replies are held, do not sleep: a timer that wakes the
 * server would be as inexact as the times that are to be checked. */
static void
serve_until_told(struct loop *loop)
{
    struct epoll_event events[EVENTS];

    for (;;) {
        int number = epoll_wait(loop->epoll, events, EVENTS, loop->held > 0 ? 0 : -1);

        answer_late(loop);
        for (int i = 0; i < number; i++) {
            if (events[i].data.fd == loop->control)
                return;
            if (events[i].data.fd == loop->listener)
                accept_connections(loop);
            else
                receive_requests(loop, events[i].data.fd);
        }
    }
}

static _Noreturn void
be_server(enum load_selftest_kind kind, int listener, int control,
          struct load_selftest_counts *counts)
{
    static struct loop loop;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    loop = (struct loop){.kind = kind, .listener = listener, .control = control};
    loop.counts = counts;
    loop.epoll = epoll_create1(EPOLL_CLOEXEC);
    watch_descriptor(&loop, listener);
    watch_descriptor(&loop, control);
    serve_until_told(&loop);
    exit(EXIT_SUCCESS);
}

static int
listen_at_any_port(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 256) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
        int error = -errno;

        close(fd);
        return error;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static int
fork_server(struct load_selftest_server *server, enum load_selftest_kind kind, int listener)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    server->pid = fork();
    if (server->pid == 0) {
        close(ends[1]);
        be_server(kind, listener, ends[0], server->counts);
    }
    close(ends[0]);
    server->control = ends[1];
    if (server->pid > 0)
        return 0;
    close(ends[1]);
    return -errno;
}

int
load_selftest_serve(struct load_selftest_server *server, enum load_selftest_kind kind)
{
    int listener;
    int error;

    memset(server, 0, sizeof(*server));
    server->counts = mmap(NULL, sizeof(*server->counts), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (server->counts == MAP_FAILED) {
        server->counts = NULL;
        return -errno;
    }
    listener = listen_at_any_port(&server->port);
    error = listener < 0 ? listener : fork_server(server, kind, listener);
    if (listener >= 0)
        close(listener);
    if (error < 0)
        load_selftest_free(server);
    return error;
}

void
load_selftest_stop(struct load_selftest_server *server)
{
    close(server->control);
    waitpid(server->pid, NULL, 0);
}

void
load_selftest_free(struct load_selftest_server *server)
{
    if (server->counts != NULL)
        munmap(server->counts, sizeof(*server->counts));
    server->counts = NULL;
}
