/* SPDX-License-Identifier: MIT
 *
 * The limit with which a load generator over TLS is compared: limit-client with OpenSSL between
 * recv and send. It uses raw epoll, level triggered, in one thread, and each connection has one
 * outstanding request. A run, in order:
 *
 *   ramp      connect all sockets and shake hands, 16 at a time          -> connect_seconds
 *   warm-up   -w seconds of load that are not counted
 *   measure   -d seconds, or until each socket has had its -n replies    -> requests, seconds, ...
 *
 * With -q a connection sends one request, with the end of its handshake, and is then idle. When all
 * connections are idle, the JSON line is printed, and they stay open for -q seconds.
 *
 * With -f each request has a connection of its own: connect, handshake, request, reply, reset. The
 * request is sent together with the end of the handshake. When a connection ends, the next one
 * takes its place. With -r it resumes the TLS session of the connection that had the place before,
 * and the warm-up lasts until each place has a session.
 *
 * Every reply is checked. Its status must be 200, and its head as long as that of the first reply.
 * Its body must equal the file of -e; without -e it must be as long as the first reply's
 * Content-Length. A connection that is refused, reset or closed is an error, and only with -f it is
 * replaced. The JSON line says which version and cipher the last handshake agreed on, and how many
 * handshakes within the measured time were full and how many were resumed. The server's certificate
 * is not verified. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "latency.h"
#include "limit-tls.h"

enum {
    RAMP = 16,
    EVENTS_MAX = 512,
    BATCH_MAX = EVENTS_MAX,
    REQUEST_MAX = 256,
    HEAD_MAX = 4096,
    BODY_MAX = 16777216,
    TICK_MS = 100,
    STALL_MS = 10000
};

struct options {
    uint16_t port;
    const char *target;
    const char *cipher;
    const char *body_path;
    uint32_t sockets;
    uint32_t batch;
    uint32_t queries; /* how many requests a socket sends; 0: the run lasts .seconds */
    bool is_fresh;    /* whether each request has a connection of its own */
    bool resumes;
    double seconds;
    double warmup;
    /* above 0: connections send one request, and then stay open for so many seconds */
    double quiet;
};

enum state { FREE, CONNECTING, SHAKING, READY, ASKED };

struct connection {
    int fd;
    enum state state;
    SSL *ssl;
    SSL_SESSION *session; /* the TLS session for the next connection in this place */
    size_t got;           /* how many bytes of the present reply have come */
    uint32_t left;        /* with -n: how many replies still count */
    uint64_t start_ns;
};

struct client {
    struct options options;
    struct connection *connections;
    /* connections whose replies have come, and whose next requests wait */
    struct connection *due[BATCH_MAX];
    uint32_t due_count;
    int epoll_fd;
    SSL_CTX *context;
    BIO *bio;
    char request[REQUEST_MAX];
    size_t request_len;
    size_t head_len; /* the length of the first reply's head; 0: no reply has come */
    size_t body_len;
    char *body; /* the expected body; NULL: any body is good */
    bool loading;
    bool measuring;
    uint32_t opened;
    uint32_t shaking;
    uint32_t connects;
    uint32_t with_session; /* how many places have a session to resume */
    uint32_t busy;
    uint64_t replies;
    uint64_t bytes;
    uint64_t handshakes;
    uint64_t resumed;
    uint64_t errors;
    uint64_t now_ns;
    uint64_t progress_ns;
    double connect_seconds;
    double measured_seconds;
    const char *version;
    const char *agreed;
    struct latencies latencies;
};

static struct client client;

static _Noreturn void
usage(void)
{
    fprintf(stderr,
            "usage: limit-tls-client [-p port] [-u target] [-c sockets] [-b batch] [-f] [-r]\n"
            "                        [-n queries-per-socket | -d seconds] [-w warmup-seconds]\n"
            "                        [-q quiet-seconds] [-e body-file] [-s cipher]\n");
    exit(2);
}

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "limit-tls-client: %s: %s\n", what, why);
    exit(1);
}

static double
number(double min, double max)
{
    char *end;
    double value = strtod(optarg, &end);

    if (end == optarg || *end != '\0' || !(value >= min && value <= max)) {
        usage();
    }
    return value;
}

static void
apply_option(struct options *options, int letter)
{
    switch (letter) {
    case 'p':
        options->port = (uint16_t)number(1, 65535);
        break;
    case 'u':
        options->target = optarg;
        break;
    case 'c':
        options->sockets = (uint32_t)number(1, 100000);
        break;
    case 'b':
        options->batch = (uint32_t)number(1, BATCH_MAX);
        break;
    case 'n':
        options->queries = (uint32_t)number(1, 1e9);
        break;
    case 'd':
        options->seconds = number(0, 86400);
        break;
    case 'w':
        options->warmup = number(0, 86400);
        break;
    case 'q':
        options->quiet = number(0, 3600);
        break;
    case 'e':
        options->body_path = optarg;
        break;
    case 's':
        options->cipher = optarg;
        break;
    case 'f':
        options->is_fresh = true;
        break;
    case 'r':
        options->is_fresh = options->resumes = true;
        break;
    default:
        usage();
    }
}

static struct options
parse_options(int argc, char **argv)
{
    struct options options = {.port = 8443,
                              .target = "/",
                              .cipher = "TLS_AES_128_GCM_SHA256",
                              .sockets = 64,
                              .batch = 1,
                              .seconds = 1,
                              .warmup = -1};
    int letter;

    while ((letter = getopt(argc, argv, "p:u:c:b:n:d:w:q:e:s:fr")) != -1) {
        apply_option(&options, letter);
    }
    if (optind < argc || (options.queries > 0 && options.is_fresh)) {
        usage();
    }
    if (options.warmup < 0) {
        options.warmup = options.queries > 0 ? 0 : 0.3;
    }
    return options;
}

/* ---- Preparing ---- */

static void
read_body(void)
{
    FILE *file;

    if (client.options.body_path == NULL) {
        return;
    }
    file = fopen(client.options.body_path, "rb");
    client.body = malloc(BODY_MAX);
    if (file == NULL || client.body == NULL) {
        die(client.options.body_path, strerror(errno));
    }
    client.body_len = fread(client.body, 1, BODY_MAX, file);
    fclose(file);
}

static void
build_request(void)
{
    int len = snprintf(client.request, sizeof(client.request),
                       "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n", client.options.target,
                       (unsigned)client.options.port,
                       client.options.is_fresh ? "Connection: close\r\n" : "");

    if (len >= (int)sizeof(client.request)) {
        usage();
    }
    client.request_len = (size_t)len;
}

/* The server sent a ticket: keep its session for the next connection in this place. */
static int
keep_session(SSL *ssl, SSL_SESSION *session)
{
    struct connection *connection = SSL_get_app_data(ssl);

    client.with_session += connection->session == NULL;
    SSL_SESSION_free(connection->session);
    connection->session = session;
    return 1;
}

static void
make_context(void)
{
    client.context = SSL_CTX_new(TLS_client_method());
    client.bio = tls_bio_new();
    if (client.context == NULL || client.bio == NULL ||
        !tls_set_algorithms(client.context, client.options.cipher)) {
        die("OpenSSL", "it refuses the cipher");
    }
    SSL_CTX_set_session_cache_mode(
        client.context, client.options.resumes ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
                                               : SSL_SESS_CACHE_OFF);
    SSL_CTX_sess_set_new_cb(client.context, client.options.resumes ? keep_session : NULL);
    if (client.options.quiet > 0) {
        SSL_CTX_set_mode(client.context, SSL_MODE_RELEASE_BUFFERS);
    }
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

/* ---- Connections ---- */

static void start(struct connection *connection);

static void
close_connection(struct connection *connection)
{
    if (connection->state == CONNECTING || connection->state == SHAKING) {
        client.shaking--;
    } else if (connection->state == ASKED) {
        client.busy--;
    }
    tls_free(connection->ssl);
    connection->ssl = NULL;
    ERR_clear_error();
    close(connection->fd);
    connection->fd = -1;
    connection->state = FREE;
}

static void
fail(struct connection *connection, const char *why)
{
    if (client.errors++ == 0) {
        fprintf(stderr, "limit-tls-client: first error: %s\n", why);
    }
    close_connection(connection);
}

static void
watch(struct connection *connection, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = connection}};

    if (epoll_ctl(client.epoll_fd, operation, connection->fd, &event) != 0) {
        die("epoll_ctl", strerror(errno));
    }
}

static void
start(struct connection *connection)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(client.options.port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    connection->start_ns = latency_clock_ns();
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 ||
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0) {
        die("socket", strerror(errno));
    }
    if (connect(connection->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 &&
        errno != EINPROGRESS) {
        die("connect", strerror(errno));
    }
    watch(connection, EPOLL_CTL_ADD, EPOLLOUT);
    connection->state = CONNECTING;
    client.shaking++;
}

/* Send the bytes that OpenSSL has written. False: the connection is over. */
static bool
send_stage(struct connection *connection)
{
    size_t len = stage.out_len;

    stage.out_len = 0;
    if (len == 0 || send(connection->fd, stage.out, len, 0) == (ssize_t)len) {
        return true;
    }
    fail(connection, "a send failed or was short");
    return false;
}

static void
put_request(struct connection *connection)
{
    size_t written;

    if (SSL_write_ex(connection->ssl, client.request, client.request_len, &written) != 1) {
        die("SSL_write", "it failed");
    }
    connection->state = ASKED;
    connection->got = 0;
    client.busy++;
}

static void
ask(struct connection *connection)
{
    if (!client.options.is_fresh) {
        connection->start_ns = latency_clock_ns();
    }
    put_request(connection);
    (void)send_stage(connection);
}

/* Offer the session for resumption. OpenSSL lets a session of TLS 1.3 be used for only one
 * handshake, but some servers send no new ticket after a handshake that resumed. So offer a copy,
 * and keep the session. */
static void
offer_ticket(const struct connection *connection)
{
    if (connection->session != NULL) {
        SSL_SESSION *copy = SSL_SESSION_dup(connection->session);

        SSL_set_session(connection->ssl, copy);
        SSL_SESSION_free(copy);
    }
}

/* The socket is connected: begin the handshake by sending the ClientHello. */
static void
begin_handshake(struct connection *connection, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP)) {
        fail(connection, "the connection was refused");
        return;
    }
    connection->ssl = tls_new(client.context, client.bio);
    if (connection->ssl == NULL) {
        die("SSL_new", "no memory");
    }
    SSL_set_app_data(connection->ssl, connection);
    SSL_set_connect_state(connection->ssl);
    offer_ticket(connection);
    SSL_do_handshake(connection->ssl);
    connection->state = SHAKING;
    watch(connection, EPOLL_CTL_MOD, EPOLLIN);
    (void)send_stage(connection);
}

/* Go on with the handshake. True: it is done. False: it goes on, or has failed. */
static bool
shake(struct connection *connection)
{
    int result = SSL_do_handshake(connection->ssl);

    if (result != 1) {
        if (SSL_get_error(connection->ssl, result) != SSL_ERROR_WANT_READ) {
            fail(connection, "a handshake failed");
        }
        return false;
    }
    connection->state = READY;
    client.shaking--;
    client.connects++;
    client.version = SSL_get_version(connection->ssl);
    client.agreed = SSL_get_cipher_name(connection->ssl);
    client.handshakes += client.measuring;
    client.resumed += client.measuring && SSL_session_reused(connection->ssl);
    if (client.options.is_fresh || client.options.quiet > 0) {
        put_request(connection);
    }
    return true;
}

/* ---- Replies ---- */

/* Learn the lengths of head and body from the first reply. Its head must come in one record. */
static void
learn(const char *bytes, size_t len)
{
    char head[HEAD_MAX + 1];
    const char *end;
    const char *field;
    size_t body_len;

    len = len < HEAD_MAX ? len : HEAD_MAX;
    memcpy(head, bytes, len);
    head[len] = '\0';
    end = strstr(head, "\r\n\r\n");
    field = strcasestr(head, "\r\nContent-Length:");
    if (end == NULL || field == NULL || field > end) {
        die("the first reply", "it has no whole head with a Content-Length");
    }
    body_len = strtoul(field + sizeof("\r\nContent-Length:") - 1, NULL, 10);
    if (client.body != NULL && body_len != client.body_len) {
        die("the first reply", "its body has another length than the file of -e");
    }
    client.body_len = body_len;
    client.head_len = (size_t)(end - head) + 4;
}

/* Whether these bytes are right at the offset `at` of a reply. */
static bool
is_right(size_t at, const char *bytes, size_t len)
{
    if (at == 0) {
        if (len < client.head_len || memcmp(&bytes[8], " 200", 4) != 0 ||
            memcmp(&bytes[client.head_len - 4], "\r\n\r\n", 4) != 0) {
            return false;
        }
        at = client.head_len;
        bytes += client.head_len;
        len -= client.head_len;
    }
    return at + len <= client.head_len + client.body_len &&
           (client.body == NULL || memcmp(&client.body[at - client.head_len], bytes, len) == 0);
}

/* Count a reply, of which all bytes have come. */
static void
count_reply(struct connection *connection)
{
    connection->state = READY;
    client.busy--;
    if (client.measuring || client.options.quiet > 0) {
        client.replies++;
        latency_record(&client.latencies, latency_clock_ns() - connection->start_ns, 1);
    }
    if (client.options.queries > 0 && --connection->left == 0) {
        return;
    }
    if (client.loading) {
        client.due[client.due_count++] = connection;
    }
}

/* Send the next requests on the connections whose replies have come. */
static void
ask_due(void)
{
    for (uint32_t i = 0; i < client.due_count; i++) {
        struct connection *connection = client.due[i];

        if (connection->state == READY && client.options.is_fresh) {
            close_connection(connection);
            start(connection);
        } else if (connection->state == READY) {
            ask(connection);
        }
    }
    client.due_count = 0;
}

/* Read the plain text of all records that have come. False: the connection is over. */
static bool
take(struct connection *connection)
{
    static char plain[TLS_RECORD_MAX];
    size_t len;

    while (SSL_read_ex(connection->ssl, plain, sizeof(plain), &len) == 1) {
        if (client.head_len == 0) {
            learn(plain, len);
        }
        if (connection->state != ASKED || !is_right(connection->got, plain, len)) {
            fail(connection, "a reply is wrong, or longer than its Content-Length");
            return false;
        }
        connection->got += len;
        client.bytes += client.measuring ? len : 0;
        if (connection->got == client.head_len + client.body_len) {
            count_reply(connection);
        }
    }
    if (SSL_get_error(connection->ssl, 0) == SSL_ERROR_WANT_READ ||
        (connection->state == READY && client.options.is_fresh)) {
        return true;
    }
    fail(connection, "closed by the server");
    return false;
}

static void
readable(struct connection *connection)
{
    ssize_t got = recv(connection->fd, stage.in, sizeof(stage.in), 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        fail(connection, got == 0 ? "closed by the server" : strerror(errno));
        return;
    }
    stage.in_at = stage.out_len = 0;
    stage.in_len = (size_t)got;
    if (connection->state == SHAKING && !shake(connection)) {
        if (connection->state == SHAKING) {
            (void)send_stage(connection);
        }
        return;
    }
    if (take(connection)) {
        (void)send_stage(connection);
    }
}

/* Wait once, and handle all events. */
static void
turn(void)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(client.epoll_fd, events, EVENTS_MAX, TICK_MS);

    client.now_ns = latency_clock_ns();
    if (count > 0) {
        client.progress_ns = client.now_ns;
    } else if (client.now_ns - client.progress_ns > STALL_MS * UINT64_C(1000000)) {
        die("stopped", "10 seconds without progress");
    }
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;

        if (connection->state == CONNECTING) {
            begin_handshake(connection, events[i].events);
        } else {
            readable(connection);
        }
        if (connection->state == FREE && client.options.is_fresh) {
            start(connection);
        }
        if (client.due_count >= client.options.batch) {
            ask_due();
        }
    }
    ask_due();
}

/* ---- The run ---- */

static void
ramp(void)
{
    uint64_t start_ns = latency_clock_ns();

    while (client.opened < client.options.sockets || client.shaking + client.busy > 0) {
        while (client.shaking < RAMP && client.opened < client.options.sockets) {
            start(&client.connections[client.opened++]);
        }
        turn();
    }
    client.connect_seconds = (double)(latency_clock_ns() - start_ns) / 1e9;
    if (client.connects < client.options.sockets) {
        die("the ramp", "not all connections were made");
    }
}

static void
start_load(void)
{
    client.loading = true;
    for (uint32_t i = 0; i < client.options.sockets; i++) {
        struct connection *connection = &client.connections[i];

        connection->left = client.options.queries;
        if (client.options.is_fresh) {
            start(connection);
        } else if (connection->state == READY) {
            ask(connection);
        }
    }
}

static void
load(uint64_t end_ns)
{
    while (client.now_ns < end_ns && (client.options.is_fresh || client.busy > 0)) {
        turn();
    }
}

static void
measure(void)
{
    uint64_t start_ns = latency_clock_ns();

    client.now_ns = client.progress_ns = start_ns;
    client.measuring = client.options.warmup == 0;
    start_load();
    if (!client.measuring) {
        load(start_ns + (uint64_t)(client.options.warmup * 1e9));
        while (client.options.resumes && client.with_session < client.options.sockets &&
               client.errors == 0) {
            turn();
        }
        client.measuring = true;
        start_ns = latency_clock_ns();
    }
    load(client.options.queries > 0 ? UINT64_MAX
                                    : start_ns + (uint64_t)(client.options.seconds * 1e9));
    client.measured_seconds = (double)(latency_clock_ns() - start_ns) / 1e9;
    client.measuring = client.loading = false;
}

static void
print_results(void)
{
    printf(
        "{\"connects\":%u,\"connect_seconds\":%.6f,\"requests\":%llu,\"bytes\":%llu,"
        "\"seconds\":%.6f,\"errors\":%llu,\"p50_us\":%llu,\"p99_us\":%llu,"
        "\"handshakes\":%llu,\"resumed\":%llu,\"version\":\"%s\",\"cipher\":\"%s\"}\n",
        client.connects, client.connect_seconds, (unsigned long long)client.replies,
        (unsigned long long)client.bytes, client.measured_seconds,
        (unsigned long long)client.errors, (unsigned long long)latency_us(&client.latencies, 0.50),
        (unsigned long long)latency_us(&client.latencies, 0.99),
        (unsigned long long)client.handshakes, (unsigned long long)client.resumed,
        client.version == NULL ? "" : client.version, client.agreed == NULL ? "" : client.agreed);
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    client.options = parse_options(argc, argv);
    client.connections = calloc(client.options.sockets, sizeof(*client.connections));
    client.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (client.connections == NULL || client.epoll_fd < 0) {
        die("start", strerror(errno));
    }
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    read_body();
    build_request();
    make_context();
    client.progress_ns = latency_clock_ns();
    if (!client.options.is_fresh) {
        ramp();
    }
    if (client.options.quiet == 0) {
        measure();
    }
    print_results();
    usleep((useconds_t)(client.options.quiet * 1e6));
    return client.errors == 0 && client.replies > 0 ? 0 : 1;
}
