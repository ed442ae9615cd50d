/* SPDX-License-Identifier: MIT
 *
 * The bytes that a call of the client sends, and the address to which it connects.
 */
#include "http-client-peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#define BIG     (8u * 1024 * 1024) /* more than the kernel takes */
#define OK_LINE "HTTP/1.1 200 OK\r\n"

int __real_socket(int family, int type, int protocol);
int __real_bind(int fd, const struct sockaddr *address, socklen_t length);
int __real_listen(int fd, int backlog);

/* ---- Bodies of requests ---- */

START_TEST(a_copied_body_goes_out_with_the_head)
{
    char body[] = "hello";
    struct sxe_http_call call = call_of(a);
    int peer;

    call.request.method = sxe_http_span("POST");
    call.request.body_length = 5;
    call.body = body;
    call.copy_body = true;
    serve(NULL, NULL);
    must_send(&call);
    memset(body, 'x', 5);
    peer = accept_client();
    PEER_EXPECT(peer, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    answer(peer, "");
    EXPECT_DONE(a, 0, "");
    call.request.body_length = 0;
    call.body = NULL;
    must_send(&call);
    PEER_EXPECT(peer, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    close(peer);
    EXPECT_DONE(a, -ECONNRESET, "");
    stop();
}
END_TEST

static char big[BIG];
static char got[BIG];

static uint64_t
put_big(const char *target)
{
    struct sxe_http_call call = call_of(target);

    for (unsigned i = 0; i < BIG; i++)
        big[i] = (char)(i * 31 % 251);
    call.request.method = sxe_http_span("PUT");
    call.request.body_length = BIG;
    call.body = big;
    return must_send(&call);
}

static void
expect_put_head(int peer)
{
    char head[100];

    snprintf(head, sizeof(head), "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n\r\n", BIG);
    PEER_EXPECT(peer, head);
}

START_TEST(a_borrowed_body_goes_out_in_pieces)
{
    int peer;

    serve(NULL, NULL);
    put_big(a);
    peer = accept_client();
    expect_put_head(peer);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_SENDING), 1);
    ck_assert_uint_eq(peer_receive(peer, got, BIG), BIG);
    ck_assert_mem_eq(got, big, BIG);
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_HEAD), 1);
    answer(peer, "thanks");
    EXPECT_DONE(a, 0, "thanks");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 1);
    close(peer);
    stop();
}
END_TEST

START_TEST(an_early_response_ends_the_sending_rfc_9112_9_5)
{
    int peer;

    serve(NULL, NULL);
    put_big(a);
    peer = accept_client();
    expect_put_head(peer);
    say(peer, "HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno");
    EXPECT_DONE(a, 0, "no");
    memset(big, 0, BIG); /* the memory belongs to the test again */
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_response_may_begin_before_the_request_is_sent)
{
    int peer;

    serve(NULL, NULL);
    put_big(a);
    peer = accept_client();
    expect_put_head(peer);
    say(peer, OK_LINE "Content-Length: 2\r\n\r\n1");
    ck_assert_uint_eq(peer_receive(peer, got, BIG), BIG);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_BODY), 1);
    say(peer, "2");
    EXPECT_DONE(a, 0, "12");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 1);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_reset_while_sending_is_an_error)
{
    int peer;

    serve(NULL, NULL);
    put_big(a);
    peer = accept_client();
    expect_put_head(peer);
    peer_reset(peer);
    pump();
    ck_assert_int_lt(event_pop()->number, 0);
    stop();
}
END_TEST

/* ---- Sending ---- */

static int
try_to_send(struct sxe_http_call call)
{
    return sxe_http_client_send(client, &call, NULL);
}

START_TEST(what_cannot_be_sent_is_refused_at_once)
{
    struct sxe_http_client_config config = {.request_max = 64, .calls_max = 1};
    struct sxe_http_call call = call_of(a);

    serve(&config, NULL);
    call.on_done = NULL;
    ck_assert_int_eq(try_to_send(call), -EINVAL);
    call = call_of("a b");
    ck_assert_int_eq(try_to_send(call), -EINVAL);
    call = call_of(a);
    call.request.body_length = SXE_HTTP_CHUNKED;
    ck_assert_int_eq(try_to_send(call), -EINVAL);
    call = call_of("a:1");
    call.request.method = sxe_http_span("CONNECT");
    ck_assert_int_eq(try_to_send(call), -EINVAL);
    call = call_of("/0123456789012345678901234567890123456789");
    ck_assert_int_eq(try_to_send(call), -EMSGSIZE);
    call = call_of(a);
    call.request.body_length = 30;
    call.body = big;
    call.copy_body = true;
    ck_assert_int_eq(try_to_send(call), -EMSGSIZE);
    get(a);
    ck_assert_int_eq(try_to_send(call_of(b)), -ENOBUFS);
    EXPECT_NOTHING();
    stop();
}
END_TEST

START_TEST(a_call_may_name_its_host)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.request.host = sxe_http_span("other:81");
    serve(NULL, NULL);
    must_send(&call);
    peer = accept_client();
    PEER_EXPECT(peer, "GET /a HTTP/1.1\r\nHost: other:81\r\n\r\n");
    close(peer);
    EXPECT_DONE(a, -ECONNRESET, "");
    stop();
}
END_TEST

/* ---- The server's address ---- */

static void
expect_host(const struct sxe_http_client_config *config, int at, const char *host)
{
    char text[300];
    int peer;

    client = sxe_http_client_new(config);
    ck_assert_ptr_nonnull(client);
    plan_start_with(0, NULL);
    get(a);
    peer = peer_accept(at);
    snprintf(text, sizeof(text), "GET /a HTTP/1.1\r\nHost: %s\r\n\r\n", host);
    PEER_EXPECT(peer, text);
    answer(peer, "ok");
    EXPECT_DONE(a, 0, "ok");
    close(peer);
    sxe_http_client_delete(client);
    plan_stop();
}

START_TEST(host_is_the_address_unless_the_program_knows_better)
{
    struct sxe_http_client_config config = {.ip = "127.0.0.1"};
    char host[32];

    listener = peer_listen(&config.port);
    snprintf(host, sizeof(host), "127.0.0.1:%u", config.port);
    expect_host(&config, listener, host);
    config.host = "example.com";
    expect_host(&config, listener, "example.com");
    close(listener);
}
END_TEST

START_TEST(the_host_of_an_ipv6_address_has_brackets)
{
    struct sxe_http_client_config config = {.ip = "::1", .port = 8000};

    client = sxe_http_client_new(&config);
    ck_assert_str_eq(client->host, "[::1]:8000");
    sxe_http_client_delete(client);
}
END_TEST

START_TEST(a_server_may_be_a_unix_socket)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct sxe_http_client_config config = {0};
    char directory[] = "/tmp/test-http-client-XXXXXX";
    int at = __real_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
    ck_assert_int_eq(__real_bind(at, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(__real_listen(at, 5), 0);
    config.path = address.sun_path;
    expect_host(&config, at, "localhost");
    close(at);
    unlink(address.sun_path);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

static char long_text[300];

static const struct sxe_http_client_config impossible[] = {
    {0},
    {.ip = "127.0.0.1", .path = "/tmp/x"},
    {.ip = "localhost"},
    {.ip = ""},
    {.ip = long_text},
    {.path = ""},
    {.path = long_text},
    {.ip = "127.0.0.1", .host = ""},
    {.ip = "127.0.0.1", .host = "a/b"},
    {.ip = "127.0.0.1", .host = long_text},
    {.ip = "127.0.0.1", .connections_max = UINT32_MAX},
};

START_TEST(an_impossible_configuration_is_refused)
{
    memset(long_text, 'a', sizeof(long_text) - 1);
    errno = 0;
    ck_assert_ptr_null(sxe_http_client_new(&impossible[_i]));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

static Suite *
http_client_send_suite(void)
{
    Suite *suite = suite_create("http client send");
    TCase *requests = tcase_create("requests");

    tcase_add_test(requests, a_copied_body_goes_out_with_the_head);
    tcase_add_test(requests, a_borrowed_body_goes_out_in_pieces);
    tcase_add_test(requests, an_early_response_ends_the_sending_rfc_9112_9_5);
    tcase_add_test(requests, a_response_may_begin_before_the_request_is_sent);
    tcase_add_test(requests, a_reset_while_sending_is_an_error);
    tcase_add_test(requests, what_cannot_be_sent_is_refused_at_once);
    tcase_add_test(requests, a_call_may_name_its_host);
    tcase_add_test(requests, host_is_the_address_unless_the_program_knows_better);
    tcase_add_test(requests, the_host_of_an_ipv6_address_has_brackets);
    tcase_add_test(requests, a_server_may_be_a_unix_socket);
    tcase_add_loop_test(requests, an_impossible_configuration_is_refused, 0,
                        sizeof(impossible) / sizeof(impossible[0]));
    suite_add_tcase(suite, requests);
    return suite;
}

int
main(void)
{
    return sxe_test_main(http_client_send_suite());
}
