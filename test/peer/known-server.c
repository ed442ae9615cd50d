/* SPDX-License-Identifier: MIT
 *
 * usage: known-server LAW [PORT]    answer HTTP/1.1 on 127.0.0.1 as known-law.h says, on a free
 *                                   port unless it is given; prints "port N" when it listens.
 *
 * The figures of a load generator about this server must be those of theory. One thread, epoll and
 * a timerfd; requests have no body. Replies of one connection stay in order.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "known-law.h"

#define CLIENTS_MAX 65536
#define DUE_MAX     1048576u
#define LISTENER    (CLIENTS_MAX + 1u)
#define TIMER       (CLIENTS_MAX + 2u)

struct client {
    uint64_t last_ns;    /* when its last reply is due */
    uint32_t generation; /* of the descriptor: replies to a client that has gone are dropped */
    unsigned matched;    /* how many bytes of the empty line at the head's end have come */
};

struct due {
    uint64_t at_ns;
    uint64_t nth; /* replies that are due at the same time are sent in this order */
    int fd;
    uint32_t generation;
    const char *text;
    bool is_last;
};

static struct client clients[CLIENTS_MAX];
static struct due heap[DUE_MAX];
static uint32_t heap_used;
static uint64_t pushed;
static struct known_law law;
static int epoll, timer;

static uint64_t
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Replies that are due ---- */

static bool
is_before(const struct due *a, const struct due *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->nth < b->nth;
}

static void
swap(uint32_t a, uint32_t b)
{
    struct due due = heap[a];

    heap[a] = heap[b];
    heap[b] = due;
}

static void
push(struct due due)
{
    uint32_t i = heap_used++;

    due.nth = pushed++;
    heap[i] = due;
    for (; i > 0 && is_before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

static struct due
pop(void)
{
    struct due top = heap[0];
    uint32_t i = 0, least;

    heap[0] = heap[--heap_used];
    while ((least = 2 * i + 1) < heap_used) {
        if (least + 1 < heap_used && is_before(&heap[least + 1], &heap[least]))
            least++;
        if (!is_before(&heap[least], &heap[i]))
            break;
        swap(i, least);
        i = least;
    }
    return top;
}

static void
drop_client(int fd, bool is_reset)
{
    const struct linger at_once = {.l_onoff = 1};

    if (is_reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    clients[fd].generation++;
    close(fd);
}

static void
perform(const struct due *due)
{
    if (clients[due->fd].generation != due->generation)
        return;
    if (due->text != NULL)
        (void)!send(due->fd, due->text, strlen(due->text), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (due->is_last)
        drop_client(due->fd, due->text == NULL);
}

static void
perform_due(void)
{
    struct itimerspec at = {0};

    while (heap_used > 0 && heap[0].at_ns <= now_ns()) {
        struct due due = pop();

        perform(&due);
    }
    if (heap_used > 0) {
        at.it_value.tv_sec = (time_t)(heap[0].at_ns / 1000000000);
        at.it_value.tv_nsec = (long)(heap[0].at_ns % 1000000000);
    }
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- Clients ---- */

static void
answer(int fd)
{
    struct client *client = &clients[fd];
    struct known_reply reply = known_law_reply(&law, now_ns());

    if (reply.due_ns == KNOWN_NEVER || heap_used == DUE_MAX)
        return;
    client->last_ns = known_later(client->last_ns, reply.due_ns);
    push((struct due){.at_ns = client->last_ns,
                      .fd = fd,
                      .generation = client->generation,
                      .text = reply.text,
                      .is_last = reply.is_last});
}

static void
read_client(int fd)
{
    static const char end[] = "\r\n\r\n";
    struct client *client = &clients[fd];
    char bytes[16384];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_client(fd, false);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        client->matched = bytes[i] == end[client->matched] ? client->matched + 1
                          : bytes[i] == '\r'               ? 1
                                                           : 0;
        if (client->matched == 4) {
            client->matched = 0;
            answer(fd);
        }
    }
}

static void
accept_clients(int listener)
{
    const int one = 1;
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)fd};

        if (fd >= CLIENTS_MAX) {
            close(fd);
            continue;
        }
        clients[fd].last_ns = 0;
        clients[fd].matched = 0;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

static int
listen_at(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
        perror("known-server: cannot listen");
        exit(1);
    }
    printf("port %u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void
watch(int fd, uint32_t name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = name};

    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void
serve(int listener)
{
    struct epoll_event events[256];
    int number = epoll_wait(epoll, events, 256, -1);
    uint64_t expirations;

    for (int i = 0; i < number; i++) {
        if (events[i].data.u32 == LISTENER)
            accept_clients(listener);
        else if (events[i].data.u32 == TIMER)
            (void)!read(timer, &expirations, sizeof(expirations));
        else
            read_client((int)events[i].data.u32);
    }
    perform_due();
}

int
main(int argc, char **argv)
{
    struct rlimit files = {CLIENTS_MAX, CLIENTS_MAX};
    int listener;

    if (argc < 2 || argc > 3 || !known_law_parse(&law, argv[1])) {
        fprintf(stderr, "usage: known-server LAW [PORT]; the laws are in test/peer/known-law.h\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    setrlimit(RLIMIT_NOFILE, &files);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    listener = listen_at(argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0);
    watch(listener, LISTENER);
    watch(timer, TIMER);
    for (;;)
        serve(listener);
}
