/* SPDX-License-Identifier: MIT
 *
 * The physical limit with which a load generator is compared: it uses raw epoll, level triggered,
 * in one thread, and each connection has one outstanding request, or -P requests in one write. A
 * run, in order:
 *
 *   ramp      connect all sockets, 16 at a time                        -> connect_seconds
 *   probe     one request on one connection: the reply's status must be 200; learn its length
 *   warm-up   -w seconds of load that are not counted
 *   measure   -d seconds, or until each socket has had its -n replies  -> requests, seconds, ...
 *
 * It uses recv and send, because they take the kernel less time than read and write. After the
 * probe, replies are counted only by their length, and the kernel throws the bytes of long replies
 * away. A connection that is refused, reset or closed, or that brings more bytes than expected, is
 * one error, and is not replaced. If requests are pipelined, all their replies must have come
 * before the next requests are sent; their latency is that of the last reply. If this program is
 * the limit for a load generator, it sends a request after each reply. If it measures a server, and
 * must not be the limit itself, it sends requests in batches (-b), which takes the kernel less
 * time. cpu_user and cpu_sys are the CPU seconds of this process within the measured time; bytes is
 * how many bytes came within it. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "latency.h"

enum {
    RAMP = 16,
    EVENTS_MAX = 512,
    REPLY_MAX = 65536,
    REQUEST_MAX = 256,
    DEPTH_MAX = 1024,
    BATCH_MAX = EVENTS_MAX,
    SOCKETS_MAX = 1000000,
    TICK_MS = 100,
    STALL_MS = 10000
};

struct options {
    struct sockaddr_in address;
    char ip[INET_ADDRSTRLEN];
    const char *target;
    uint32_t sockets;
    uint32_t depth;   /* how many requests are sent in one write */
    uint32_t batch;   /* how many connections are read before the next requests are sent on them */
    uint64_t queries; /* how many requests a socket sends; 0: the run lasts .seconds */
    double seconds;
    double warmup; /* below 0: -w was not given */
};

struct connection {
    int fd;
    bool connected;
    size_t missing; /* how many bytes of the replies have not come yet */
    uint64_t left;  /* with -n: how many replies still count */
    uint64_t sent_ns;
};

struct client {
    struct options options;
    struct connection *connections;
    int epoll_fd;
    char *requests; /* the bytes of all requests that one write sends */
    size_t request_len;
    size_t reply_len;
    /* connections whose replies have come, and whose next requests wait */
    struct connection *due[BATCH_MAX];
    uint32_t due_count;
    bool measuring;
    uint32_t opened; /* how many sockets were created so far */
    uint32_t connecting;
    uint32_t connects;
    uint32_t busy; /* how many connections have outstanding requests */
    uint64_t replies;
    uint64_t bytes;
    uint64_t errors;
    uint64_t now_ns;
    uint64_t progress_ns;
    double connect_seconds;
    double seconds;
    double cpu_user;
    double cpu_sys;
    struct latencies latencies;
};

static char reply[REPLY_MAX];

static _Noreturn void
usage(const char *complaint, const char *value)
{
    fprintf(stderr,
            "limit-client: %s%s%s\n"
            "usage: limit-client [-i ip] [-p port] [-u target] [-c sockets] [-P depth]\n"
            "                    [-b batch] [-n queries-per-socket | -d seconds]\n"
            "                    [-w warmup-seconds]\n"
            "  -i ip       IPv4 address to connect to (127.0.0.1)\n"
            "  -p port     1 to 65535 (8080)\n"
            "  -u target   what is asked for (/)\n"
            "  -c sockets  connections, all open at the same time (64)\n"
            "  -P depth    pipelining: so many requests in one write, 1 to %d (1)\n"
            "  -b batch    read so many replies that came together before the next requests are\n"
            "              sent, 1 to %d (1)\n"
            "  -n queries  stop when each socket has had so many replies, a multiple of the depth\n"
            "  -d seconds  stop after so many seconds of measuring (1)\n"
            "  -w seconds  load that is not counted comes first (0.3 with -d, 0 with -n)\n",
            complaint, value[0] == '\0' ? "" : ": ", value, DEPTH_MAX, BATCH_MAX);
    exit(2);
}

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "limit-client: %s: %s\n", what, why);
    exit(1);
}

static uint64_t
number(const char *text, uint64_t max, const char *complaint)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < 1 || value > max) {
        usage(complaint, text);
    }

    return value;
}

static double
duration(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= 0.0 && value <= 86400.0)) {
        usage("not a number of seconds", text);
    }

    return value;
}

static void
apply_option(struct options *options, int letter, const char *value)
{
    switch (letter) {
    case 'i':
        if (inet_pton(AF_INET, value, &options->address.sin_addr) != 1) {
            usage("not an IPv4 address", value);
        }
        break;
    case 'p':
        options->address.sin_port = htons((uint16_t)number(value, 65535, "not a port"));
        break;
    case 'c':
        options->sockets = (uint32_t)number(value, SOCKETS_MAX, "not a number of sockets");
        break;
    case 'u':
        options->target = value;
        break;
    case 'P':
        options->depth = (uint32_t)number(value, DEPTH_MAX, "not a depth");
        break;
    case 'b':
        options->batch = (uint32_t)number(value, BATCH_MAX, "not a batch");
        break;
    case 'n':
        options->queries = number(value, UINT32_MAX, "not a number of queries");
        break;
    case 'd':
        options->seconds = duration(value);
        break;
    case 'w':
        options->warmup = duration(value);
        break;
    default:
        usage("unknown option, or an option without its value", "");
    }
}

static struct options
parse_options(int argc, char **argv)
{
    struct options options = {.address = {.sin_family = AF_INET},
                              .target = "/",
                              .sockets = 64,
                              .depth = 1,
                              .batch = 1,
                              .seconds = -1,
                              .warmup = -1};
    int letter;

    options.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    options.address.sin_port = htons(8080);

    while ((letter = getopt(argc, argv, "i:p:u:c:P:b:n:d:w:")) != -1) {
        apply_option(&options, letter, optarg);
    }

    if (optind < argc) {
        usage("unexpected argument", argv[optind]);
    }

    if (options.queries > 0 && options.seconds >= 0) {
        usage("-n and -d exclude each other", "");
    }

    if (options.queries % options.depth != 0) {
        usage("-n is not a multiple of -P", "");
    }

    if (options.seconds < 0) {
        options.seconds = 1;
    }

    if (options.warmup < 0) {
        options.warmup = options.queries > 0 ? 0 : 0.3;
    }

    inet_ntop(AF_INET, &options.address.sin_addr, options.ip, sizeof(options.ip));
    return options;
}

static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("getrlimit", strerror(errno));
    }

    limit.rlim_cur = limit.rlim_max;

    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("setrlimit", strerror(errno));
    }
}

static double
seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Whether nothing has happened for so long that waiting any longer makes no sense. */
static bool
stalled(const struct client *client)
{
    return client->now_ns - client->progress_ns > STALL_MS * UINT64_C(1000000);
}

static void
fail(struct client *client, struct connection *connection, const char *why)
{
    if (client->errors++ == 0) {
        fprintf(stderr, "limit-client: first error: %s\n", why);
    }

    if (connection->fd >= 0) {
        close(connection->fd);
    }

    connection->fd = -1;
    connection->connected = false;
}

static void
watch(struct client *client, struct connection *connection, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = connection}};

    if (epoll_ctl(client->epoll_fd, operation, connection->fd, &event) != 0) {
        die("epoll_ctl", strerror(errno));
    }
}

static void
start_connect(struct client *client, struct connection *connection)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (connection->fd < 0) {
        die("socket", strerror(errno));
    }

    /* Close with a reset, which leaves no TIME_WAIT, so that the next run finds free ports. */
    if (setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0) {
        die("setsockopt", strerror(errno));
    }

    if (connect(connection->fd, (const struct sockaddr *)&client->options.address,
                sizeof(client->options.address)) != 0 &&
        errno != EINPROGRESS) {
        fail(client, connection, strerror(errno));
        return;
    }

    watch(client, connection, EPOLL_CTL_ADD, EPOLLOUT);
    client->connecting++;
}

static void
finish_connect(struct client *client, struct connection *connection, uint32_t events)
{
    int error = 0;
    socklen_t error_len = sizeof(error);

    client->connecting--;

    if (events & (EPOLLERR | EPOLLHUP)) {
        getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
        fail(client, connection, strerror(error));
        return;
    }

    watch(client, connection, EPOLL_CTL_MOD, EPOLLIN);
    connection->connected = true;
    client->connects++;
}

/* Wait once, in the ramp or under load. Returns the number of events; it is also 0 when a signal
 * came. */
static int
wait_events(struct client *client, struct epoll_event *events)
{
    int count = epoll_wait(client->epoll_fd, events, EVENTS_MAX, TICK_MS);

    if (count < 0 && errno != EINTR) {
        die("epoll_wait", strerror(errno));
    }

    client->now_ns = latency_clock_ns();

    if (count > 0) {
        client->progress_ns = client->now_ns;
    }

    return count < 0 ? 0 : count;
}

static void
ramp(struct client *client)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t start_ns = latency_clock_ns();

    client->now_ns = client->progress_ns = start_ns;

    for (;;) {
        while (client->connecting < RAMP && client->opened < client->options.sockets) {
            start_connect(client, &client->connections[client->opened++]);
        }

        if (client->connecting == 0 || stalled(client)) {
            break;
        }

        int count = wait_events(client, events);

        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;

            if (connection->connected) {
                fail(client, connection, "closed by the server before the first request");
            } else {
                finish_connect(client, connection, events[i].events);
            }
        }
    }

    client->connect_seconds = (double)(latency_clock_ns() - start_ns) / 1e9;

    if (client->connects == 0) {
        die("no connection", stalled(client) ? "10 seconds without progress" : "all refused");
    }
}

/* Check the head that begins at reply. Returns its length; 0: it is not complete. */
static size_t
probe_head(size_t *body_len)
{
    const char *end = strstr(reply, "\r\n\r\n");
    const char *field = strcasestr(reply, "\r\nContent-Length:");

    if (end == NULL) {
        return 0;
    }

    if (strncmp(reply, "HTTP/1.1 200", 12) != 0 && strncmp(reply, "HTTP/1.0 200", 12) != 0) {
        reply[strcspn(reply, "\r\n")] = '\0';
        die("the first reply's status is not 200", reply);
    }

    if (field == NULL || field > end) {
        die("the first reply", "has no Content-Length");
    }

    *body_len = strtoul(field + sizeof("\r\nContent-Length:") - 1, NULL, 10);
    return (size_t)(end - reply) + 4;
}

static size_t
probe_read(int fd, char *bytes, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t got;

    if (poll(&ready, 1, STALL_MS) != 1) {
        die("the first reply", "10 seconds without progress");
    }

    got = recv(fd, bytes, size, 0);

    if (got <= 0) {
        die("the first reply", got == 0 ? "the server closed the connection" : strerror(errno));
    }

    return (size_t)got;
}

static void
probe(struct client *client)
{
    struct connection *connection = client->connections;
    size_t body_len = 0;
    size_t head_len = 0;
    size_t got = 0;

    while (!connection->connected) {
        if (++connection == client->connections + client->opened) {
            die("no connection", "all closed by the server");
        }
    }

    if (send(connection->fd, client->requests, client->request_len, 0) < 0) {
        die("the first request", strerror(errno));
    }

    while (head_len == 0) {
        if (got == sizeof(reply) - 1) {
            die("the first reply", "its head is too long");
        }

        got += probe_read(connection->fd, &reply[got], sizeof(reply) - 1 - got);
        reply[got] = '\0';
        head_len = probe_head(&body_len);
    }

    client->reply_len = head_len + body_len;

    while (got < client->reply_len) {
        got += probe_read(connection->fd, reply, sizeof(reply));
    }

    if (got > client->reply_len) {
        die("the first reply", "is longer than its Content-Length");
    }
}

static void
send_requests(struct client *client, struct connection *connection)
{
    size_t len = client->options.depth * client->request_len;
    ssize_t sent = send(connection->fd, client->requests, len, 0);

    if (sent != (ssize_t)len) {
        client->busy--;
        fail(client, connection, sent < 0 ? strerror(errno) : "short write of requests");
        return;
    }

    connection->missing = client->options.depth * client->reply_len;
    connection->sent_ns = client->now_ns;
}

static void
send_due(struct client *client)
{
    for (uint32_t i = 0; i < client->due_count; i++) {
        client->now_ns = latency_clock_ns();
        send_requests(client, client->due[i]);
    }

    client->due_count = 0;
}

static void
count_replies(struct client *client, struct connection *connection)
{
    client->now_ns = latency_clock_ns();

    if (client->measuring) {
        client->replies += client->options.depth;
        latency_record(&client->latencies, client->now_ns - connection->sent_ns,
                       client->options.depth);

        if (client->options.queries > 0) {
            connection->left -= client->options.depth;
        }

        if (connection->left == 0) {
            client->busy--;
            return;
        }
    }

    if (client->options.batch == 1) {
        send_requests(client, connection);
        return;
    }

    client->due[client->due_count++] = connection;

    if (client->due_count == client->options.batch) {
        send_due(client);
    }
}

/* Receive bytes. The kernel throws those of a long reply away (MSG_TRUNC), because the time for
 * copying them would hide how much time the server takes. One byte more than is missing is
 * requested, so that an excess byte is noticed. */
static ssize_t
receive(const struct connection *connection)
{
    if (connection->missing < sizeof(reply)) {
        return recv(connection->fd, reply, sizeof(reply), 0);
    }

    return recv(connection->fd, NULL, connection->missing + 1, MSG_TRUNC);
}

static void
readable(struct client *client, struct connection *connection)
{
    ssize_t got = receive(connection);

    if (got > 0 && client->measuring) {
        client->bytes += (size_t)got;
    }

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (got > 0 && (size_t)got < connection->missing) {
        connection->missing -= (size_t)got;
    } else if (got > 0 && (size_t)got == connection->missing) {
        connection->missing = 0;
        count_replies(client, connection);
    } else {
        /* With -n a connection that has had all its replies is not busy any more, but it may be
         * closed later. */
        client->busy -= connection->left > 0;
        fail(client, connection,
             got < 0    ? strerror(errno)
             : got == 0 ? "closed by the server"
                        : "replies are longer than the first one");
    }
}

/* Keep up the load until end_ns, or until no connection is busy. False: nothing has happened for
 * too long. */
static bool
load(struct client *client, uint64_t end_ns)
{
    struct epoll_event events[EVENTS_MAX];

    while (client->busy > 0 && client->now_ns < end_ns) {
        int count = wait_events(client, events);

        for (int i = 0; i < count; i++) {
            readable(client, events[i].data.ptr);
        }

        send_due(client);

        if (stalled(client)) {
            return false;
        }
    }

    return true;
}

static void
start_load(struct client *client)
{
    client->now_ns = client->progress_ns = latency_clock_ns();

    for (uint32_t i = 0; i < client->opened; i++) {
        struct connection *connection = &client->connections[i];

        if (connection->connected) {
            connection->left = client->options.queries > 0 ? client->options.queries : 1;
            client->now_ns = latency_clock_ns();
            client->busy++;
            send_requests(client, connection);
        }
    }
}

static bool
measure(struct client *client)
{
    struct rusage before;
    struct rusage after;
    uint64_t start_ns;
    uint64_t warm_ns = (uint64_t)(client->options.warmup * 1e9);
    uint64_t end_ns = UINT64_MAX;
    bool moving = true;

    client->measuring = warm_ns == 0;
    getrusage(RUSAGE_SELF, &before);
    start_ns = latency_clock_ns();
    start_load(client);

    if (warm_ns > 0) {
        moving = load(client, start_ns + warm_ns);
        client->measuring = true;
        getrusage(RUSAGE_SELF, &before);
        start_ns = latency_clock_ns();
    }

    if (client->options.queries == 0) {
        end_ns = start_ns + (uint64_t)(client->options.seconds * 1e9);
    }

    moving = moving && load(client, end_ns);
    getrusage(RUSAGE_SELF, &after);
    client->seconds = (double)(latency_clock_ns() - start_ns) / 1e9;
    client->cpu_user = seconds_of(after.ru_utime) - seconds_of(before.ru_utime);
    client->cpu_sys = seconds_of(after.ru_stime) - seconds_of(before.ru_stime);
    return moving;
}

static void
print_results(const struct client *client)
{
    printf("{\"connects\":%u,\"connect_seconds\":%.6f,\"requests\":%llu,\"bytes\":%llu,\"seconds\":"
           "%.6f,"
           "\"errors\":%llu,\"p50_us\":%llu,\"p99_us\":%llu,\"cpu_user\":%.6f,\"cpu_sys\":%.6f}\n",
           client->connects, client->connect_seconds, (unsigned long long)client->replies,
           (unsigned long long)client->bytes, client->seconds, (unsigned long long)client->errors,
           (unsigned long long)latency_us(&client->latencies, 0.50),
           (unsigned long long)latency_us(&client->latencies, 0.99), client->cpu_user,
           client->cpu_sys);
}

/* Make -P copies of the request. */
static void
build_requests(struct client *client)
{
    const struct options *options = &client->options;
    char request[REQUEST_MAX];
    int len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s:%u\r\n\r\n",
                       options->target, options->ip, (unsigned)ntohs(options->address.sin_port));

    if (len >= (int)sizeof(request)) {
        usage("the target is too long", "");
    }

    client->request_len = (size_t)len;
    client->requests = malloc(options->depth * client->request_len);

    if (client->requests == NULL) {
        die("start", strerror(errno));
    }

    for (uint32_t i = 0; i < options->depth; i++) {
        memcpy(&client->requests[i * client->request_len], request, client->request_len);
    }
}

int
main(int argc, char **argv)
{
    static struct client client;
    bool moving = true;

    client.options = parse_options(argc, argv);
    client.connections = calloc(client.options.sockets, sizeof(*client.connections));
    client.epoll_fd = epoll_create1(EPOLL_CLOEXEC);

    if (client.connections == NULL || client.epoll_fd < 0) {
        die("start", strerror(errno));
    }

    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    build_requests(&client);
    ramp(&client);
    moving = !stalled(&client);

    if (moving) {
        probe(&client);
        moving = measure(&client);
    }

    if (!moving) {
        fprintf(stderr, "limit-client: stopped after 10 seconds without progress\n");
    }

    print_results(&client);
    return moving && client.errors == 0 ? 0 : 1;
}
