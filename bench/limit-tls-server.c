/* SPDX-License-Identifier: MIT
 *
 * The limit with which a web server over TLS is compared: limit-server with OpenSSL between recv
 * and send. It uses raw epoll, level triggered, in one thread, with one recv and one send for each
 * event. It does not parse: the bytes of a record count as one request.
 *
 * It has one certificate, and no session cache. It sends one ticket for each handshake, sealed with
 * a key of OpenSSL. With -1 a connection gets only one reply: it is sent together with
 * close_notify, and the socket is closed. With -m OpenSSL frees the buffers of a connection while
 * they have no record. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "limit-tls.h"

enum { BACKLOG = 4096, ACCEPT_BATCH = 64, EVENTS_MAX = 512, DESCRIPTORS_MAX = 1048576 };

struct options {
    uint16_t port;
    const char *certificate;
    const char *key;
    const char *cipher;
    bool one_request; /* whether a connection gets only one reply */
    bool saves_memory;
};

struct server {
    struct options options;
    int epoll_fd;
    int listen_fd;
    SSL_CTX *context;
    BIO *bio;
    SSL **connections; /* the connections, indexed by descriptor */
    size_t connection_count;
};

static const char reply[] = "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
                            "Content-Type: text/plain\r\n"
                            "Content-Length: 14\r\n\r\nHello, World!\n";

static _Noreturn void
usage(void)
{
    fprintf(stderr,
            "usage: limit-tls-server [-p port] [-s cipher] [-1] [-m] certificate.pem key.pem\n"
            "  -p port    on 127.0.0.1; 0 lets the kernel choose (8443)\n"
            "  -s cipher  the only one of TLS 1.3 (TLS_AES_128_GCM_SHA256)\n"
            "  -1         close each connection after a reply\n"
            "  -m         free the buffers of idle connections\n");
    exit(2);
}

static _Noreturn void
die(const char *call)
{
    fprintf(stderr, "limit-tls-server: %s: %s\n", call, strerror(errno));
    exit(1);
}

static struct options
parse_options(int argc, char **argv)
{
    struct options options = {.port = 8443, .cipher = "TLS_AES_128_GCM_SHA256"};
    int letter;

    while ((letter = getopt(argc, argv, "p:s:1m")) != -1) {
        switch (letter) {
        case 'p':
            options.port = (uint16_t)strtoul(optarg, NULL, 10);
            break;
        case 's':
            options.cipher = optarg;
            break;
        case '1':
            options.one_request = true;
            break;
        case 'm':
            options.saves_memory = true;
            break;
        default:
            usage();
        }
    }
    if (optind + 2 != argc) {
        usage();
    }
    options.certificate = argv[optind];
    options.key = argv[optind + 1];
    return options;
}

/* ---- The context ---- */

static int
choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length,
                const unsigned char *offered, unsigned offered_length, void *user)
{
    static const unsigned char http[] = "\x08http/1.1";
    unsigned char *found = NULL;

    (void)ssl;
    (void)user;
    if (SSL_select_next_proto(&found, length, http, sizeof(http) - 1, offered, offered_length) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static void
make_context(struct server *server)
{
    const struct options *options = &server->options;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    server->bio = tls_bio_new();
    if (context == NULL || server->bio == NULL || !tls_set_algorithms(context, options->cipher) ||
        SSL_CTX_use_certificate_chain_file(context, options->certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_set_num_tickets(context, 1) != 1) {
        fprintf(stderr, "limit-tls-server: OpenSSL refuses the cipher, certificate or key\n");
        exit(1);
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (options->saves_memory) {
        SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    }
    server->context = context;
}

/* ---- Sockets ---- */

static void
raise_descriptor_limit(struct server *server)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("getrlimit");
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        die("setrlimit");
    }
    server->connection_count = limit.rlim_cur < DESCRIPTORS_MAX ? limit.rlim_cur : DESCRIPTORS_MAX;
    server->connections = calloc(server->connection_count, sizeof(*server->connections));
    if (server->connections == NULL) {
        die("calloc");
    }
}

static int
listen_on(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
        die("socket");
    }
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        die("bind");
    }
    printf("listening on 127.0.0.1:%u\n", (unsigned)ntohs(address.sin_port));
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
drop(struct server *server, int fd)
{
    tls_free(server->connections[fd]);
    server->connections[fd] = NULL;
    ERR_clear_error();
    close(fd);
}

static void
accept_batch(struct server *server)
{
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            return;
        }
        if ((size_t)fd >= server->connection_count || watch(server, fd) != 0) {
            close(fd);
            continue;
        }
        server->connections[fd] = tls_new(server->context, server->bio);
        if (server->connections[fd] == NULL) {
            die("SSL_new");
        }
        SSL_set_accept_state(server->connections[fd]);
    }
}

/* ---- Requests ---- */

/* Answer all requests that have come. False: the connection is over. */
static bool
talk(const struct server *server, SSL *ssl)
{
    char request[TLS_RECORD_MAX];
    size_t length;

    do {
        if (SSL_read_ex(ssl, request, sizeof(request), &length) != 1) {
            return SSL_get_error(ssl, 0) == SSL_ERROR_WANT_READ;
        }
        if (SSL_write_ex(ssl, reply, sizeof(reply) - 1, &length) != 1) {
            return false;
        }
        if (server->options.one_request) {
            SSL_shutdown(ssl);
            return false;
        }
    } while (stage.in_at < stage.in_len || SSL_has_pending(ssl));
    return true;
}

static void
answer(struct server *server, int fd)
{
    ssize_t got = recv(fd, stage.in, sizeof(stage.in), 0);
    bool goes_on;

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    stage.in_at = stage.out_len = 0;
    stage.in_len = got > 0 ? (size_t)got : 0;
    goes_on = got > 0 && talk(server, server->connections[fd]);
    if (stage.out_len > 0 && send(fd, stage.out, stage.out_len, 0) != (ssize_t)stage.out_len) {
        goes_on = false;
    }
    if (!goes_on) {
        drop(server, fd);
    }
}

static _Noreturn void
serve(struct server *server)
{
    struct epoll_event events[EVENTS_MAX];

    for (;;) {
        int count = epoll_wait(server->epoll_fd, events, EVENTS_MAX, -1);

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
    static struct server server;

    server.options = parse_options(argc, argv);
    server.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server.epoll_fd < 0) {
        die("epoll_create1");
    }
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit(&server);
    make_context(&server);
    server.listen_fd = listen_on(server.options.port);
    if (watch(&server, server.listen_fd) != 0) {
        die("epoll_ctl");
    }
    serve(&server);
}
