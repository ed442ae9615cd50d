/* SPDX-License-Identifier: MIT
 *
 * A server may close an idle connection just when a request is on its way: which requests the
 * client then sends again.
 */
#include "http-client-peer.h"

#include <errno.h>

static const struct {
    const char *method;
    bool is_idempotent; /* RFC 9110, 9.2.2 */
} methods[] = {
    {"GET", true},    {"HEAD", true},  {"OPTIONS", true}, {"TRACE", true},  {"PUT", true},
    {"DELETE", true}, {"POST", false}, {"PATCH", false},  {"PURGE", false},
};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

static void
expect_call(int peer, const char *method)
{
    char text[100];
    const char *length =
        strcmp(method, "PUT") == 0 || strcmp(method, "POST") == 0 || strcmp(method, "PATCH") == 0
            ? "Content-Length: 0\r\n"
            : "";

    snprintf(text, sizeof(text), "%s /b HTTP/1.1\r\nHost: h\r\n%s\r\n", method, length);
    PEER_EXPECT(peer, text);
}

/* How the server closes: after it read the request, by a close or a reset; or before it. */
START_TEST(a_stale_connection_is_replaced_for_idempotent_methods_only)
{
    const char *method = methods[(unsigned)_i % METHODS].method;
    unsigned how = (unsigned)_i / METHODS;
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    if (how == 2)
        close(peer);
    get_by(method, b);
    if (how < 2)
        expect_call(peer, method);
    if (how == 0)
        close(peer);
    else if (how == 1)
        peer_reset(peer);
    if (!methods[(unsigned)_i % METHODS].is_idempotent) {
        pump();
        ck_assert_int_lt(event_pop()->number, 0);
        ck_assert(!somebody_connects());
    } else {
        peer = accept_client();
        expect_call(peer, method);
        say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        EXPECT_DONE(b, 0, "");
        close(peer);
    }
    stop();
}
END_TEST

START_TEST(a_request_is_sent_again_only_once)
{
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    get(b);
    expect_request(peer, "GET", b);
    close(peer);
    peer = take(b);
    close(peer);
    EXPECT_DONE(b, -ECONNRESET, "");
    ck_assert(!somebody_connects());
    stop();
}
END_TEST

START_TEST(a_request_on_a_new_connection_is_not_sent_again)
{
    int peer;

    serve(NULL, NULL);
    get(b);
    peer = take(b);
    close(peer);
    EXPECT_DONE(b, -ECONNRESET, "");
    ck_assert(!somebody_connects());
    stop();
}
END_TEST

START_TEST(a_request_is_not_sent_again_after_the_first_byte_of_a_response)
{
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    get(b);
    expect_request(peer, "GET", b);
    say(peer, "H");
    turn(3);
    close(peer);
    EXPECT_DONE(b, -ECONNRESET, "");
    ck_assert(!somebody_connects());
    stop();
}
END_TEST

START_TEST(a_borrowed_body_is_sent_again_from_its_start)
{
    static char body[1000000];
    static char received[sizeof(body)];
    struct sxe_http_call call = call_of(b);
    int peer;

    for (unsigned i = 0; i < sizeof(body); i++)
        body[i] = (char)(i * 7 % 251);
    call.request.method = sxe_http_span("PUT");
    call.request.body_length = sizeof(body);
    call.body = body;
    serve(NULL, NULL);
    peer = idle_peer();
    must_send(&call);
    PEER_EXPECT(peer, "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    peer_reset(peer);
    peer = accept_client();
    PEER_EXPECT(peer, "PUT /b HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    ck_assert_uint_eq(peer_receive(peer, received, sizeof(body)), sizeof(body));
    ck_assert_mem_eq(received, body, sizeof(body));
    answer(peer, "ok");
    EXPECT_DONE(b, 0, "ok");
    close(peer);
    stop();
}
END_TEST

START_TEST(nobody_there_the_second_time_is_an_error)
{
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    close(listener);
    get(b);
    expect_request(peer, "GET", b);
    close(peer);
    EXPECT_DONE(b, -ECONNREFUSED, "");
    listener = peer_listen(&port);
    stop();
}
END_TEST

START_TEST(no_descriptor_the_second_time_is_an_error)
{
    int peer;

    serve(NULL, NULL);
    peer = idle_peer();
    get(b);
    expect_request(peer, "GET", b);
    fake_os_fail(FAKE_SOCKET, 1, 1, EMFILE);
    close(peer);
    EXPECT_DONE(b, -EMFILE, "");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    stop();
}
END_TEST

START_TEST(all_stale_connections_at_once_are_replaced)
{
    struct sxe_http_client_config config = {.connections_max = 3};
    int peers[3];

    serve(&config, NULL);
    make_three_idle(peers);
    close_three(peers);
    make_three_idle(peers);
    get(a);
    get(b);
    get(c);
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    for (unsigned i = 0; i < 3; i++) {
        peers[i] = accept_client();
        PEER_EXPECT(peers[i], "GET /");
        answer(peers[i], "");
        EXPECT("done", NULL, 0);
    }
    close_three(peers);
    stop();
}
END_TEST

static Suite *
retry_suite(void)
{
    Suite *suite = suite_create("http client retry");
    TCase *again = tcase_create("sent again");

    tcase_add_loop_test(again, a_stale_connection_is_replaced_for_idempotent_methods_only, 0,
                        3 * METHODS);
    tcase_add_test(again, a_request_is_sent_again_only_once);
    tcase_add_test(again, a_request_on_a_new_connection_is_not_sent_again);
    tcase_add_test(again, a_request_is_not_sent_again_after_the_first_byte_of_a_response);
    tcase_add_test(again, a_borrowed_body_is_sent_again_from_its_start);
    tcase_add_test(again, nobody_there_the_second_time_is_an_error);
    tcase_add_test(again, no_descriptor_the_second_time_is_an_error);
    tcase_add_test(again, all_stale_connections_at_once_are_replaced);
    suite_add_tcase(suite, again);
    return suite;
}

int
main(void)
{
    return sxe_test_main(retry_suite());
}
