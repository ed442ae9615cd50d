/* SPDX-License-Identifier: MIT
 *
 * What: a reverse proxy on the virtual clock, between clients and upstreams that the test plays on
 * raw sockets (http-site.h has the clients).
 *
 * Example:
 *     serve_proxy((struct sxe_http_upstream_config){0}, 1);
 *     int peer = client();
 *     say(peer, GET("/a"));
 *     int server = take_request(0, "GET /a HTTP/1.1\r\nHost: h\r\n" WHO "\r\n");
 *     say(server, OK("hello"));
 *     EXPECT_OK(peer, "hello");
 *     close(peer);
 *     end_proxy();
 */
#ifndef HTTP_PROXY_SITE_H
#define HTTP_PROXY_SITE_H

#include "http-site.h"

#include <poll.h>

#include "sxe-http-proxy-private.h"

/* The lines that the proxy adds for a client at 127.0.0.1 that asks for the host h. */
#define WHO                          \
    "Via: 1.1 sxe\r\n"               \
    "X-Forwarded-For: 127.0.0.1\r\n" \
    "X-Forwarded-Proto: http\r\n"    \
    "X-Forwarded-Host: h\r\n"
#define SENT(line)       line " HTTP/1.1\r\nHost: h\r\n" WHO "\r\n"
#define SENT_EMPTY(line) line " HTTP/1.1\r\nHost: h\r\n" WHO "Content-Length: 0\r\n\r\n"
#define OK_HEAD(length)  "HTTP/1.1 200 OK\r\nContent-Length: " #length "\r\n\r\n"
#define UPSTREAMS        8

static struct {
    struct sxe_http_upstream *upstream;
    struct sxe_http_proxy proxy;
    unsigned number;
    int listeners[UPSTREAMS];
    unsigned short ports[UPSTREAMS];
} proxy_site;

/* Make the upstream, with so many addresses. proxy_site.proxy may be set before. */
static inline void
make_upstream(struct sxe_http_upstream_config config, unsigned number)
{
    struct sxe_http_upstream_address addresses[UPSTREAMS] = {{.ip = NULL}};
    const struct sxe_http_upstream_address *given = config.addresses;

    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    for (unsigned i = 0; i < number; i++) {
        if (given != NULL)
            addresses[i] = given[i];
        proxy_site.listeners[i] = peer_listen(&proxy_site.ports[i]);
        addresses[i].ip = "127.0.0.1";
        addresses[i].port = proxy_site.ports[i];
    }
    config.addresses = addresses;
    config.addresses_number = number;
    proxy_site.number = number;
    proxy_site.upstream = sxe_http_upstream_new(&config);
    ck_assert_ptr_nonnull(proxy_site.upstream);
    proxy_site.proxy.upstream = proxy_site.upstream;
}

static inline void
serve_proxy_with(struct sxe_http_upstream_config config, unsigned number,
                 struct sxe_http_config http, const struct sxe_config *loop)
{
    make_upstream(config, number);
    if (http.handler == NULL && http.router == NULL)
        http.handler = sxe_http_proxy_handle;
    http.user = &proxy_site.proxy;
    serve_with(http, loop);
}

static inline void
serve_proxy(struct sxe_http_upstream_config config, unsigned number)
{
    serve_proxy_with(config, number, (struct sxe_http_config){.stream = true}, NULL);
}

/* Stop, after the test has closed all its sockets. Nothing may be left under way. */
static inline void
end_proxy(void)
{
    turn(10);
    for (unsigned i = 0; i < proxy_site.number; i++)
        ck_assert_uint_eq(proxy_site.upstream->addresses[i].under_way, 0);
    ck_assert_uint_eq(sxe_pool_get_count(proxy_site.upstream->passages, SXE__HTTP_PASSAGE_BUSY), 0);
    end_site();
    sxe_http_upstream_delete(proxy_site.upstream);
    for (unsigned i = 0; i < proxy_site.number; i++)
        close(proxy_site.listeners[i]);
    memset(&proxy_site, 0, sizeof(proxy_site));
}

static inline bool
is_connected_to(unsigned index)
{
    struct pollfd fd = {.fd = proxy_site.listeners[index], .events = POLLIN};

    turn(3);
    return poll(&fd, 1, 0) > 0;
}

/* Accept the next connection of the proxy to an address. */
static inline int
accept_proxy(unsigned index)
{
    int one = 1;
    int server;

    for (unsigned i = 0; i < WAIT_TURNS && !is_connected_to(index); i++)
        ;
    server = peer_accept(proxy_site.listeners[index]);
    __real_setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return server;
}

/* Accept the next connection to an address, and read exactly this request from it. */
static inline int
take_request(unsigned index, const char *text)
{
    int server = accept_proxy(index);

    PEER_EXPECT(server, text);
    return server;
}

static inline struct sxe_http_upstream_state
state_of(unsigned index)
{
    struct sxe_http_upstream_state state;

    ck_assert_int_eq(sxe_http_upstream_look(proxy_site.upstream, index, &state), 0);
    return state;
}

static const char bad_gateway[] =
    "HTTP/1.1 502 Bad Gateway\r\n" TEXT "Content-Length: 16\r\n\r\n502 Bad Gateway\n";
static const char timed_out[] =
    "HTTP/1.1 504 Gateway Timeout\r\n" TEXT "Content-Length: 20\r\n\r\n504 Gateway Timeout\n";
static const char unavailable[] = "HTTP/1.1 503 Service Unavailable\r\n" TEXT
                                  "Content-Length: 24\r\n\r\n503 Service Unavailable\n";

#endif
