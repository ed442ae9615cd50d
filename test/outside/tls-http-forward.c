/* SPDX-License-Identifier: MIT
 *
 * The HTTP client of docs/http.md through a forward proxy, over TLS. Server and proxy are in the
 * same loop: the proxy connects every tunnel to the server.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "outside.h"
#include "sxe-http-client.h"
#include "sxe-http.h"
#include "sxe-tls.h"

static struct sxe_tls *server_tls;
static struct sxe_tls *client_tls;
static struct sxe_http *server;
static SXE *proxy;
static char heads[4][256]; /* what the proxy was asked */
static unsigned tunnels;
static const char *refusal; /* the proxy's reply to CONNECT; NULL: a tunnel */
static char said[1024];     /* failure, or why TLS failed, or the body */
static int last;

/* ---- The proxy ---- */

static void
pass_on(SXE *s, int length)
{
    SXE *other = s->user_data;

    SXE_UNUSED_PARAMETER(length);
    if (other != NULL)
        (void)sxe_write(other, SXE_BUF(s), (unsigned)SXE_BUF_USED(s));
    SXE_BUF_CLEAR(s);
}

static void
close_other(SXE *s)
{
    SXE *other = s->user_data;

    if (other == NULL)
        return;
    other->user_data = NULL;
    sxe_close(other);
}

static void
on_far_connected(SXE *far)
{
    SXE_WRITE_LITERAL((SXE *)far->user_data,
                      "HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n");
    sxe_resume(far->user_data, SXE_RESUME_WHEN_MORE);
}

static void
on_request_of_proxy(SXE *s, int length)
{
    SXE *far;

    SXE_UNUSED_PARAMETER(length);
    if (memmem(SXE_BUF(s), (size_t)SXE_BUF_USED(s), "\r\n\r\n", 4) == NULL)
        return;
    snprintf(heads[tunnels % 4], sizeof(heads[0]), "%.*s", (int)SXE_BUF_USED(s), SXE_BUF(s));
    tunnels++;
    SXE_BUF_CLEAR(s);
    if (refusal != NULL) {
        (void)sxe_write(s, refusal, (unsigned)strlen(refusal));
        return;
    }
    far = sxe_new_tcp(NULL, "", 0, on_far_connected, pass_on, close_other);
    ck_assert_ptr_nonnull(far);
    far->user_data = s;
    s->user_data = far;
    s->on_read = pass_on;
    sxe_pause(s);
    ck_assert_int_eq(sxe_connect(far, "127.0.0.1", sxe_local_port(sxe_http_listener(server))), 0);
}

/* ---- The server and the client ---- */

static enum sxe_http_verdict
hello(struct sxe_http_request *request, struct sxe_http_response *response)
{
    ck_assert(sxe_http_field_value(request, "proxy-authorization").base == NULL);
    return sxe_http_reply_text(response, 200, "hello");
}

static void
on_done(const struct sxe_http_exchange *exchange, int result)
{
    last = result;
    if (result == 0)
        snprintf(said, sizeof(said), "%.*s", (int)exchange->body.length, exchange->body.base);
    else if (exchange->failure != NULL)
        snprintf(said, sizeof(said), "%s", exchange->failure);
    else
        snprintf(said, sizeof(said), "%s",
                 exchange->closed != NULL ? sxe_tls_failure(exchange->closed) : "");
    sxe_stop();
}

static void
call_once(struct sxe_http_client *client)
{
    struct sxe_http_call call = {.request.target = sxe_http_span("/"), .on_done = on_done};

    said[0] = '\0';
    ck_assert_int_eq(sxe_http_client_send(client, &call, NULL), 0);
    ck_assert_int_eq(sxe_run(), 0);
}

static void
start_all(void)
{
    struct sxe_http_config serving = {.handler = hello};
    char file[PATH_MAX];
    FILE *pem;

    snprintf(file, sizeof(file), "%s", outside_path("local.pem"));
    server_tls = sxe_tls_new_local(&(struct sxe_tls_config){0});
    pem = fopen(file, "w");
    fputs(sxe_tls_local_pem(server_tls), pem);
    fclose(pem);
    client_tls = sxe_tls_new_client(&(struct sxe_tls_config){.authorities = file});
    unlink(file);
    server = sxe_http_new(&serving);
    ck_assert(server != NULL && client_tls != NULL);
    sxe_register(20, 0);
}

/* The port of the proxy must be known before sxe_init: a listener of the kernel's choice is made
 * and closed. */
static unsigned short
free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);
    int fd = sxe_bind_listener((struct sockaddr *)&at, length);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static void
listen_both(unsigned short port)
{
    ck_assert_int_eq(sxe_init(), 0);
    ck_assert_int_eq(sxe_http_listen(server, "127.0.0.1", 0), 0);
    ck_assert_int_eq(sxe_tls_serve(server_tls, sxe_http_listener(server)), 0);
    proxy = sxe_new_tcp(NULL, "127.0.0.1", port, NULL, on_request_of_proxy, close_other);
    ck_assert_int_eq(sxe_listen(proxy), 0);
}

static struct sxe_http_client *
client_of(const char *name, const char *login, unsigned short port, uint32_t timeout_ms)
{
    char url[64];
    struct sxe_http_client_config config = {.name = name,
                                            .port = 443,
                                            .tls = client_tls,
                                            .use_tls = sxe_tls_use,
                                            .start_tls = sxe_tls_start,
                                            .proxy = url,
                                            .connect_timeout_ms = timeout_ms};
    struct sxe_http_client *client;

    snprintf(url, sizeof(url), "http://%s127.0.0.1:%u", login, (unsigned)port);
    client = sxe_http_client_new(&config);
    ck_assert_ptr_nonnull(client);
    return client;
}

/* promise: docs/http.md: With TLS the proxy makes a tunnel (`CONNECT`), and the client does TLS
 * with the server inside of the tunnel. The proxy learns the server's name and port. The client
 * verifies the server's certificate as it does without a proxy. */
START_TEST(calls_go_through_a_tunnel_and_strangers_are_refused)
{
    struct sxe_http_client *known;
    struct sxe_http_client *stranger;
    struct sxe_tls_counts counts;
    unsigned short port = free_port();

    start_all();
    known = client_of("localhost", "u:p@", port, 0);
    stranger = client_of("other.example", "", port, 0);
    listen_both(port);
    for (unsigned i = 0; i < 3; i++) {
        call_once(known);
        ck_assert_str_eq(said, "hello");
        ck_assert_int_eq(last, 0);
    }
    ck_assert_uint_eq(tunnels, 1);
    ck_assert_str_eq(heads[0], "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n"
                               "Proxy-Authorization: Basic dTpw\r\n\r\n");
    sxe_tls_count(&counts);
    ck_assert_uint_eq(counts.handshakes, 2); /* one connection; it is counted at both ends */
    call_once(stranger);
    ck_assert_int_eq(last, -EPROTO);
    ck_assert_str_eq(said, "the certificate is not for other.example, but for localhost, "
                           "127.0.0.1, ::1");
    sxe_http_client_delete(known);
    sxe_http_client_delete(stranger);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(server);
    sxe_tls_delete(client_tls);
    sxe_tls_delete(server_tls);
}
END_TEST

/* promise: docs/http.md: Bytes that a proxy sends between its reply to `CONNECT` and the handshake
 * are an error, because the server cannot have sent them. */
START_TEST(a_proxy_that_does_not_make_a_tunnel_is_named)
{
    static const struct {
        const char *reply;
        int result;
        const char *said;
    } replies[] = {
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\npage", -EHOSTUNREACH,
         " does not connect to localhost:443: 403 Forbidden"},
        {"HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n", -EACCES,
         " wants a user and a password (407)"},
        {"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", -EPROTO,
         " sent bytes before the handshake of TLS"},
    };
    struct sxe_http_client *client;
    unsigned short port = free_port();
    char expected[256];

    start_all();
    client = client_of("localhost", "", port, 0);
    listen_both(port);
    for (unsigned i = 0; i < 3; i++) {
        refusal = replies[i].reply;
        call_once(client);
        ck_assert_int_eq(last, replies[i].result);
        snprintf(expected, sizeof(expected), "the proxy 127.0.0.1:%u%s", (unsigned)port,
                 replies[i].said);
        ck_assert_str_eq(said, expected);
    }
    refusal = NULL;
    call_once(client); /* the client works again as soon as its proxy does */
    ck_assert_str_eq(said, "hello");
    sxe_http_client_delete(client);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(server);
    sxe_tls_delete(client_tls);
    sxe_tls_delete(server_tls);
}
END_TEST

/* promise: docs/http.md: `connect_timeout_ms` bounds the connection to the proxy, its reply to
 * `CONNECT` and the handshake together. */
START_TEST(a_proxy_that_does_not_reply_is_a_timeout)
{
    struct sxe_http_client *client;
    unsigned short port = free_port();

    start_all();
    client = client_of("localhost", "", port, 200);
    listen_both(port);
    refusal = "HTTP/1.1 200 Conn"; /* the proxy sends no more than this */
    call_once(client);
    ck_assert_int_eq(last, -ETIMEDOUT);
    refusal = "HTTP/1.1 200 OK\r\n\r\n"; /* the tunnel is open, but no handshake follows */
    call_once(client);
    ck_assert_int_eq(last, -ETIMEDOUT);
    sxe_http_client_delete(client);
    ck_assert_int_eq(sxe_fini(), 0);
    sxe_http_delete(server);
    sxe_tls_delete(client_tls);
    sxe_tls_delete(server_tls);
}
END_TEST

int
main(void)
{
    const TTest *cases[] = {calls_go_through_a_tunnel_and_strangers_are_refused,
                            a_proxy_that_does_not_make_a_tunnel_is_named,
                            a_proxy_that_does_not_reply_is_a_timeout, NULL};

    return outside_run("tls http forward", cases);
}
