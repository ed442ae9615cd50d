/* SPDX-License-Identifier: MIT
 *
 * What: measures how many connections a second a server accepts, answers and closes. It makes a
 * connection for each request, with raw epoll, in one thread, -c connections at a time:
 *
 *     connect, one request with "Connection: close", its reply whole, closed by us with a reset
 *
 * A reset leaves no TIME_WAIT on either side, so that ports never run out. The first reply must
 * have the status 200. All others must have the same length, and begin with the same status line. A
 * reply that does not, and a connection that is refused, is an error. The load lasts -w seconds,
 * which are not counted, and then -d seconds, which are. The line of results is like that of
 * limit-client. A latency is the time from connect to the last byte of the reply.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "latency.h"

enum {
    EVENTS_MAX = 512,
    REPLY_MAX = 65536,
    REQUEST_MAX = 512,
    CONNECTIONS_MAX = 10000,
    TICK_MS = 100,
    STALL_MS = 10000,
    STATUS_LENGTH = 12 /* the length of "HTTP/1.1 200" */
};

struct options {
    struct sockaddr_in address;
    const char *target;
    unsigned connections;
    double seconds;
    double warmup;
};

struct connection {
    int fd;
    bool asked;
    size_t got;
    uint64_t start_ns;
};

struct client {
    struct options options;
    struct connection *connections;
    int epoll_fd;
    char request[REQUEST_MAX];
    size_t request_len;
    size_t reply_len; /* the length of a reply; 0: no reply has come */
    bool measuring;
    uint64_t replies;
    uint64_t bytes;
    uint64_t errors;
    struct latencies latencies;
};

static char reply[REPLY_MAX + 1];

static _Noreturn void
usage(void)
{
    fprintf(stderr,
            "usage: connect-client [-i ip] [-p port] [-u target] [-c connections] [-d seconds]\n"
            "                      [-w warmup-seconds]\n");
    exit(2);
}

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "connect-client: %s: %s\n", what, why);
    exit(1);
}

static double
number(const char *text, double min, double max)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0' || !(value >= min && value <= max))
        usage();
    return value;
}

static struct options
parse_options(int argc, char **argv)
{
    struct options options = {.address = {.sin_family = AF_INET,
                                          .sin_port = htons(8080),
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                              .target = "/",
                              .connections = 64,
                              .seconds = 1,
                              .warmup = 0.3};
    int letter;

    while ((letter = getopt(argc, argv, "i:p:u:c:d:w:")) != -1) {
        if (letter == 'i' && inet_pton(AF_INET, optarg, &options.address.sin_addr) == 1)
            continue;
        if (letter == 'p')
            options.address.sin_port = htons((uint16_t)number(optarg, 1, 65535));
        else if (letter == 'u')
            options.target = optarg;
        else if (letter == 'c')
            options.connections = (unsigned)number(optarg, 1, CONNECTIONS_MAX);
        else if (letter == 'd')
            options.seconds = number(optarg, 0, 86400);
        else if (letter == 'w')
            options.warmup = number(optarg, 0, 86400);
        else
            usage();
    }
    if (optind < argc)
        usage();
    return options;
}

static void
build_request(struct client *client)
{
    char ip[INET_ADDRSTRLEN];
    int len;

    inet_ntop(AF_INET, &client->options.address.sin_addr, ip, sizeof(ip));
    len = snprintf(client->request, sizeof(client->request),
                   "GET %s HTTP/1.1\r\nHost: %s:%u\r\nConnection: close\r\n\r\n",
                   client->options.target, ip, (unsigned)ntohs(client->options.address.sin_port));
    if (len >= (int)sizeof(client->request))
        usage();
    client->request_len = (size_t)len;
}

static void
watch(struct client *client, struct connection *connection, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = connection}};

    if (epoll_ctl(client->epoll_fd, operation, connection->fd, &event) != 0)
        die("epoll_ctl", strerror(errno));
}

static void
start(struct client *client, struct connection *connection)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    connection->start_ns = latency_clock_ns();
    connection->asked = false;
    connection->got = 0;
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 ||
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0)
        die("socket", strerror(errno));
    if (connect(connection->fd, (const struct sockaddr *)&client->options.address,
                sizeof(client->options.address)) != 0 &&
        errno != EINPROGRESS)
        die("connect", strerror(errno));
    watch(client, connection, EPOLL_CTL_ADD, EPOLLOUT);
}

static void
finish(struct client *client, struct connection *connection, const char *why)
{
    if (why != NULL) {
        if (client->errors++ == 0)
            fprintf(stderr, "connect-client: first error: %s\n", why);
    } else if (client->measuring) {
        client->replies++;
        client->bytes += connection->got;
        latency_record(&client->latencies, latency_clock_ns() - connection->start_ns, 1);
    }
    close(connection->fd);
    start(client, connection);
}

static void
ask(struct client *client, struct connection *connection, uint32_t events)
{
    int error = 0;
    socklen_t error_len = sizeof(error);

    if (events & (EPOLLERR | EPOLLHUP))
        getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &error_len);
    else if (write(connection->fd, client->request, client->request_len) < 0)
        error = errno;
    if (error != 0) {
        finish(client, connection, strerror(error));
        return;
    }
    connection->asked = true;
    watch(client, connection, EPOLL_CTL_MOD, EPOLLIN);
}

/* The length of the reply whose head has come; 0: the head is not complete. */
static size_t
length_of_reply(size_t got)
{
    const char *end;
    const char *field;

    reply[got] = '\0';
    end = strstr(reply, "\r\n\r\n");
    if (end == NULL)
        return 0;
    field = strcasestr(reply, "\r\nContent-Length:");
    if (strncmp(reply + 8, " 200", 4) != 0 || field == NULL || field > end)
        die("the first reply", "no status 200, or no Content-Length");
    return (size_t)(end - reply) + 4 + strtoul(field + sizeof("\r\nContent-Length:") - 1, NULL, 10);
}

static void
take(struct client *client, struct connection *connection)
{
    static char status[STATUS_LENGTH];
    ssize_t got = read(connection->fd, reply, REPLY_MAX);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        finish(client, connection, got == 0 ? "closed before the reply" : strerror(errno));
        return;
    }
    if (client->reply_len == 0) {
        client->reply_len = length_of_reply((size_t)got);
        memcpy(status, reply, sizeof(status));
    }
    if (connection->got == 0 && memcmp(reply, status, sizeof(status)) != 0) {
        finish(client, connection, "another status than the first reply's");
        return;
    }
    connection->got += (size_t)got;
    if (connection->got > client->reply_len)
        finish(client, connection, "a reply is longer than the first one");
    else if (connection->got == client->reply_len)
        finish(client, connection, NULL);
}

/* Load the server until end_ns. */
static void
load(struct client *client, uint64_t end_ns)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t progress_ns = latency_clock_ns();

    for (uint64_t now_ns = progress_ns; now_ns < end_ns; now_ns = latency_clock_ns()) {
        int count = epoll_wait(client->epoll_fd, events, EVENTS_MAX, TICK_MS);

        if (count < 0 && errno != EINTR)
            die("epoll_wait", strerror(errno));
        if (count > 0)
            progress_ns = now_ns;
        if (now_ns - progress_ns > STALL_MS * UINT64_C(1000000))
            die("stopped", "10 seconds without progress");
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;

            if (connection->asked)
                take(client, connection);
            else
                ask(client, connection, events[i].events);
        }
    }
}

int
main(int argc, char **argv)
{
    static struct client client;
    uint64_t start_ns;
    double seconds;

    client.options = parse_options(argc, argv);
    client.connections = calloc(client.options.connections, sizeof(*client.connections));
    client.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (client.connections == NULL || client.epoll_fd < 0)
        die("start", strerror(errno));
    signal(SIGPIPE, SIG_IGN);
    build_request(&client);
    for (unsigned i = 0; i < client.options.connections; i++)
        start(&client, &client.connections[i]);
    load(&client, latency_clock_ns() + (uint64_t)(client.options.warmup * 1e9));
    client.measuring = true;
    start_ns = latency_clock_ns();
    load(&client, start_ns + (uint64_t)(client.options.seconds * 1e9));
    seconds = (double)(latency_clock_ns() - start_ns) / 1e9;
    printf("{\"connects\":%llu,\"connect_seconds\":%.6f,\"requests\":%llu,\"bytes\":%llu,"
           "\"seconds\":%.6f,\"errors\":%llu,\"p50_us\":%llu,\"p99_us\":%llu}\n",
           (unsigned long long)client.replies, seconds, (unsigned long long)client.replies,
           (unsigned long long)client.bytes, seconds, (unsigned long long)client.errors,
           (unsigned long long)latency_us(&client.latencies, 0.50),
           (unsigned long long)latency_us(&client.latencies, 0.99));
    return client.errors == 0 ? 0 : 1;
}
