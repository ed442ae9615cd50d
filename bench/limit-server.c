/* SPDX-License-Identifier: MIT
 *
 * The physical limit with which a web server is compared: it uses raw epoll, level triggered, in
 * one thread, with one recv and one send for each request, and does nothing else. It does not
 * parse: the bytes of one recv count as one request, so a client may have only one outstanding
 * request on a connection.
 *
 * Its reply has as many bytes as that of sxe-httpd, with a Date that never changes.
 *
 * Pipelined requests are counted by their length, which -r gives: if a read brings k times as many
 * bytes, k replies are sent in one write. A client must send whole requests, all of the same
 * length.
 *
 * With -w each reply is sent so many seconds after its request, like the reply of a handler that
 * sleeps. The replies wait in a ring, because they are due in the order of their requests. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKLOG = 4096,
    ACCEPT_BATCH = 64,
    EVENTS_MAX = 512,
    REQUEST_MAX = 65536, /* the most bytes of one read */
    REQUEST_MIN = 16,    /* the shortest request, "GET / HTTP/1.0\r\n" */
    BODY_MAX = 1048576,
    REPLIES_MAX = 16 * 1048576, /* the most bytes of one write */
    WAITING_MAX = 131072        /* the most replies that are not due yet */
};

struct options {
    struct sockaddr_in address;
    const char *text; /* this text, repeated, is the body */
    size_t body_len;
    size_t request_len; /* the length of a request; 0: a read is one request */
    double wait;        /* how many seconds each reply waits */
    bool shared;        /* whether other processes listen at the same port */
    /* whether the reply says "Connection: keep-alive", for clients of HTTP/1.0 */
    bool keep_alive;
};

struct waiting {
    int fd;
    double due;
};

struct server {
    int epoll_fd;
    int listen_fd;
    bool accepting;
    size_t request_len;
    size_t read_len; /* the most bytes of a read, a multiple of request_len */
    double wait;
    struct waiting *ring; /* a ring of WAITING_MAX replies; NULL: replies do not wait */
    uint32_t first;       /* the number of the first reply that waits; it only grows */
    uint32_t last;
    char *replies; /* as many replies as one read can request */
    size_t reply_len;
};

static char requests[REQUEST_MAX];

static _Noreturn void
usage(const char *complaint, const char *value)
{
    fprintf(
        stderr,
        "limit-server: %s%s%s\n"
        "usage: limit-server [-i ip] [-p port] [-l reply-bytes] [-b text] [-r request-bytes]\n"
        "                    [-w seconds] [-k] [-s]\n"
        "  -i ip             IPv4 address to listen on (127.0.0.1)\n"
        "  -p port           0 to 65535, 0 lets the kernel choose (8080)\n"
        "  -l reply-bytes    length of the reply's body, 0 to %d (14)\n"
        "  -b text           what it consists of, again and again (Hello, World! and a newline)\n"
        "  -r request-bytes  requests are pipelined and so long, %d to %d\n"
        "  -w seconds        before each reply, 0 to 60 (0)\n"
        "  -k                say Connection: keep-alive, for clients of HTTP/1.0\n"
        "  -s                share the port with others that do so\n",
        complaint, value[0] == '\0' ? "" : ": ", value, BODY_MAX, REQUEST_MIN, REQUEST_MAX);
    exit(2);
}

static _Noreturn void
die(const char *call)
{
    fprintf(stderr, "limit-server: %s: %s\n", call, strerror(errno));
    exit(1);
}

static unsigned long
number(const char *text, unsigned long min, unsigned long max, const char *complaint)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < min ||
        value > max) {
        usage(complaint, text);
    }

    return value;
}

static struct options
parse_options(int argc, char **argv)
{
    struct options options = {
        .address = {.sin_family = AF_INET}, .text = "Hello, World!\n", .body_len = 14};
    int letter;

    options.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    options.address.sin_port = htons(8080);

    while ((letter = getopt(argc, argv, "i:p:l:b:r:w:ks")) != -1) {
        switch (letter) {
        case 'i':
            if (inet_pton(AF_INET, optarg, &options.address.sin_addr) != 1) {
                usage("not an IPv4 address", optarg);
            }
            break;
        case 'p':
            options.address.sin_port = htons((uint16_t)number(optarg, 0, 65535, "not a port"));
            break;
        case 'l':
            options.body_len = number(optarg, 0, BODY_MAX, "not a reply length");
            break;
        case 'b':
            options.text = optarg[0] == '\0' ? " " : optarg;
            break;
        case 'r':
            options.request_len = number(optarg, REQUEST_MIN, REQUEST_MAX, "not a request length");
            break;
        case 'w':
            options.wait = (double)number(optarg, 0, 60, "not a number of seconds");
            break;
        case 'k':
            options.keep_alive = true;
            break;
        case 's':
            options.shared = true;
            break;
        default:
            usage("unknown option, or an option without its value", "");
        }
    }

    if (optind < argc) {
        usage("unexpected argument", argv[optind]);
    }

    return options;
}

static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("getrlimit");
    }

    limit.rlim_cur = limit.rlim_max;

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("setrlimit");
    }
}

static void
build_replies(struct server *server, const struct options *options)
{
    size_t text_len = strlen(options->text);
    char head[256];
    size_t head_len = (size_t)snprintf(head, sizeof(head),
                                       "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
                                       "Content-Type: text/plain; charset=utf-8\r\n"
                                       "%sContent-Length: %zu\r\n\r\n",
                                       options->keep_alive ? "Connection: keep-alive\r\n" : "",
                                       options->body_len);
    size_t reply_count = options->request_len == 0 ? 1 : REQUEST_MAX / options->request_len;

    server->request_len = options->request_len;
    server->reply_len = head_len + options->body_len;
    server->read_len = options->request_len == 0 ? REQUEST_MAX : reply_count * options->request_len;

    if (reply_count * server->reply_len > REPLIES_MAX) {
        usage("-l is too long for requests as short as", "-r");
    }

    server->replies = malloc(reply_count * server->reply_len);

    if (server->replies == NULL) {
        die("malloc");
    }

    memcpy(server->replies, head, head_len);

    for (size_t i = 0; i < options->body_len; i++) {
        server->replies[head_len + i] = options->text[i % text_len];
    }

    for (size_t i = 1; i < reply_count; i++) {
        memcpy(&server->replies[i * server->reply_len], server->replies, server->reply_len);
    }
}

static void
prepare_waiting(struct server *server, const struct options *options)
{
    server->wait = options->wait;
    server->ring = options->wait > 0 ? calloc(WAITING_MAX, sizeof(*server->ring)) : NULL;

    if (options->wait > 0 && server->ring == NULL) {
        die("calloc");
    }
}

static int
listen_on(const struct sockaddr_in *wanted, bool shared)
{
    struct sockaddr_in actual;
    socklen_t actual_len = sizeof(actual);
    char ip[INET_ADDRSTRLEN];
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        die("socket");
    }

    /* Accepted sockets inherit TCP_NODELAY, so that it need not be set for each of them. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        (shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0)) {
        die("setsockopt");
    }

    if (bind(fd, (const struct sockaddr *)wanted, sizeof(*wanted)) != 0) {
        die("bind");
    }

    if (listen(fd, BACKLOG) != 0) {
        die("listen");
    }

    if (getsockname(fd, (struct sockaddr *)&actual, &actual_len) != 0) {
        die("getsockname");
    }

    inet_ntop(AF_INET, &actual.sin_addr, ip, sizeof(ip));
    printf("listening on %s:%u\n", ip, (unsigned)ntohs(actual.sin_port));
    fflush(stdout);
    return fd;
}

static int
watch(const struct server *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};

    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void
start_accepting(struct server *server)
{
    if (watch(server, server->listen_fd) != 0) {
        die("epoll_ctl");
    }

    server->accepting = true;
}

static void
stop_accepting(struct server *server)
{
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->listen_fd, NULL) != 0) {
        die("epoll_ctl");
    }

    server->accepting = false;
}

static void
drop(struct server *server, int fd)
{
    close(fd);

    if (!server->accepting) {
        start_accepting(server);
    }
}

static void
accept_batch(struct server *server)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0 && watch(server, fd) != 0) {
            close(fd);
        } else if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
            /* epoll is level triggered, so a connection that cannot be accepted would be reported
             * for ever. */
            stop_accepting(server);
            return;
        } else if (fd < 0 && errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

/* How many requests these len bytes are; 0: the last request is not complete. */
static size_t
count_requests(const struct server *server, size_t len)
{
    if (server->request_len == 0) {
        return 1;
    }

    return len % server->request_len == 0 ? len / server->request_len : 0;
}

/* Drop a connection that brings an incomplete request, or does not accept a whole reply: a program
 * that kept the rest would not be the limit. */
static void
reply(struct server *server, int fd, size_t len)
{
    if (len == 0 || send(fd, server->replies, len, 0) != (ssize_t)len) {
        drop(server, fd);
    }
}

static double
now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Handle a connection that ends. A client that leaves before its reply has come is not expected. */
static void
reply_later(struct server *server, int fd)
{
    if (server->last - server->first == WAITING_MAX) {
        drop(server, fd);
        return;
    }

    server->ring[server->last++ % WAITING_MAX] = (struct waiting){fd, now() + server->wait};
}

/* Send the replies that are due. Returns how many milliseconds later the next one is due; -1: no
 * reply waits. */
static int
reply_due(struct server *server)
{
    while (server->first != server->last) {
        struct waiting waiting = server->ring[server->first % WAITING_MAX];
        double left = waiting.due - now();

        if (left > 0) {
            return (int)(left * 1e3) + 1;
        }

        reply(server, waiting.fd, server->reply_len);
        server->first++;
    }

    return -1;
}

static void
answer(struct server *server, int fd)
{
    ssize_t got = recv(fd, requests, server->read_len, 0);

    if (got > 0 && server->ring != NULL) {
        reply_later(server, fd);
    } else if (got > 0) {
        reply(server, fd, count_requests(server, (size_t)got) * server->reply_len);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        drop(server, fd);
    }
}

static _Noreturn void
serve(struct server *server)
{
    struct epoll_event events[EVENTS_MAX];

    for (;;) {
        int count = epoll_wait(server->epoll_fd, events, EVENTS_MAX, reply_due(server));

        if (count < 0 && errno != EINTR) {
            die("epoll_wait");
        }

        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == server->listen_fd) {
                accept_batch(server);
            } else {
                answer(server, events[i].data.fd);
            }
        }
    }
}

int
main(int argc, char **argv)
{
    struct options options = parse_options(argc, argv);
    struct server server = {.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};

    if (server.epoll_fd < 0) {
        die("epoll_create1");
    }

    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    build_replies(&server, &options);
    prepare_waiting(&server, &options);
    server.listen_fd = listen_on(&options.address, options.shared);
    start_accepting(&server);
    serve(&server);
}
