/* SPDX-License-Identifier: MIT
 *
 * Response bodies that the program reads slowly, and connections that leave HTTP (upgrades).
 */
#include "http-client-peer.h"

#include <errno.h>
#include <sys/socket.h>

#define BIG     (8u * 1024 * 1024) /* more than the kernel takes */
#define OK_LINE "HTTP/1.1 200 OK\r\n"

static char big[BIG];

/* ---- Back-pressure ---- */

static uint64_t paused;

static void
push_body_and_pause(const struct sxe_http_exchange *e, struct sxe_span part)
{
    push_body(e, part);
    ck_assert_int_eq(sxe_http_client_pause(client, e->handle), 0);
    paused = e->handle;
}

static void
push_response_and_pause(const struct sxe_http_exchange *e)
{
    push_response(e);
    ck_assert_int_eq(sxe_http_client_pause(client, e->handle), 0);
    paused = e->handle;
}

START_TEST(a_paused_body_waits_for_resume)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_body = push_body_and_pause;
    serve(NULL, NULL);
    must_send(&call);
    peer = take(a);
    say(peer, OK_LINE "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n");
    EXPECT("body", a, 2);
    EXPECT_NOTHING();
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_PAUSED), 1);
    ck_assert_int_eq(sxe_http_client_resume(client, paused), 0);
    EXPECT("body", a, 3);
    say(peer, "0\r\n\r\n");
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_http_client_resume(client, paused), 0);
    EXPECT_DONE(a, 0, "");
    ck_assert_int_eq(sxe_http_client_pause(client, paused), -ENOENT);
    ck_assert_int_eq(sxe_http_client_resume(client, paused), -ENOENT);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_body_that_ends_in_a_pause_ends)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_body = push_body_and_pause;
    serve(NULL, NULL);
    must_send(&call);
    peer = take(a);
    answer(peer, "all");
    EXPECT("body", a, 3);
    EXPECT_DONE(a, 0, "");
    get(b);
    expect_request(peer, "GET", b);
    answer(peer, "read again");
    EXPECT_DONE(b, 0, "read again");
    close(peer);
    stop();
}
END_TEST

START_TEST(a_call_may_be_paused_before_its_body)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_response = push_response_and_pause;
    call.on_body = push_body;
    serve(NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        paused = must_send(&call);
        if (i == 1)
            ck_assert_int_eq(sxe_http_client_pause(client, paused), 0);
        peer = take(a);
        answer(peer, "body");
        EXPECT("response", a, 200);
        EXPECT_NOTHING();
        ck_assert_int_eq(sxe_http_client_resume(client, paused), 0);
        EXPECT("body", a, 4);
        EXPECT_DONE(a, 0, "");
        close(peer);
        turn(3);
    }
    stop();
}
END_TEST

static void
push_response_and_cancel(const struct sxe_http_exchange *e)
{
    push_response(e);
    ck_assert_int_eq(sxe_http_client_cancel(client, e->handle), 0);
}

/* Send what a script of FastCGI has written. */
static void
say_output(int peer, const char *output)
{
    const size_t length = strlen(output);
    char head[SXE_HTTP_FASTCGI_HEAD];

    sxe_http_fastcgi_put_head(head, SXE_HTTP_FASTCGI_STDOUT, 1, (uint16_t)length, 0);
    peer_send(peer, head, sizeof(head));
    peer_send(peer, output, length);
}

static void
say_end_of_script(int peer)
{
    char record[16];

    sxe_http_fastcgi_put_end(record, 1, 0, SXE_HTTP_FASTCGI_REQUEST_COMPLETE);
    peer_send(peer, record, sizeof(record));
}

START_TEST(a_call_of_fastcgi_may_be_cancelled_before_its_body)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_response = push_response_and_cancel;
    call.on_body = push_body;
    serve(NULL, NULL);
    ck_assert_int_eq(sxe__http_client_use_fastcgi(client, false, NULL), 0);
    must_send(&call);
    peer = accept_client();
    say_output(peer, "A: b\n\nbody");
    say_end_of_script(peer);
    EXPECT("response", a, 200);
    EXPECT_NOTHING();
    close(peer);
    stop();
}
END_TEST

/* The script goes on, and its connection is read on, although the call was paused. */
START_TEST(a_reply_of_fastcgi_that_ends_in_a_pause_is_whole)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_body = push_body_and_pause;
    serve(NULL, NULL);
    ck_assert_int_eq(sxe__http_client_use_fastcgi(client, false, NULL), 0);
    must_send(&call);
    peer = accept_client();
    say_output(peer, "Content-Length: 3\n\nabc");
    EXPECT("body", a, 3);
    EXPECT_DONE(a, 0, "");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_LATE), 1);
    say_output(peer, "more");
    say_end_of_script(peer);
    EXPECT_NOTHING();
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_LATE), 0);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_call_that_waits_may_be_paused)
{
    struct sxe_http_client_config config = {.connections_max = 1};
    uint64_t second;
    int peer;

    serve(&config, NULL);
    get(a);
    second = get_spans(b);
    ck_assert_int_eq(sxe_http_client_pause(client, second), 0);
    peer = take(a);
    answer(peer, "");
    EXPECT_DONE(a, 0, "");
    expect_request(peer, "GET", b);
    answer(peer, "body");
    EXPECT("response", b, 200);
    EXPECT_NOTHING();
    ck_assert_int_eq(sxe_http_client_resume(client, second), 0);
    EXPECT("body", b, 4);
    EXPECT_DONE(b, 0, "");
    close(peer);
    stop();
}
END_TEST

START_TEST(a_paused_body_makes_the_server_wait)
{
    struct sxe_http_call call = call_of(a);
    ssize_t sent;
    size_t total = 0;
    int peer;

    call.on_body = push_body_and_pause;
    serve(NULL, NULL);
    must_send(&call);
    peer = take(a);
    say(peer, OK_LINE "\r\n");
    for (unsigned i = 0; i < 100; i++) {
        while ((sent = send(peer, big, BIG, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
            total += (size_t)sent;
        ck_assert_int_eq(errno, EAGAIN);
        turn(1);
    }
    ck_assert_uint_gt(total, 100000);
    ck_assert_uint_eq(event_count(), 1);
    ck_assert_str_eq(event_pop()->name, "body");
    close(peer);
    stop();
}
END_TEST

/* ---- Upgrades ---- */

static SXE *switched;

static void
take_socket(const struct sxe_http_exchange *e, SXE *socket)
{
    event_push("upgrade", e->user, e->response->status);
    ck_assert_int_eq(sxe_http_client_cancel(client, e->handle), -ENOENT);
    socket->on_read = push_read;
    socket->on_close = push_close;
    switched = socket;
}

static uint64_t
ask_to_switch(void (*on_upgrade)(const struct sxe_http_exchange *, SXE *))
{
    static const struct sxe_http_pair fields[] = {{{"Connection", 10}, {"upgrade", 7}},
                                                  {{"Upgrade", 7}, {"echo", 4}}};
    struct sxe_http_call call = call_of(a);

    call.request.fields = fields;
    call.request.fields_number = 2;
    call.on_upgrade = on_upgrade;
    return must_send(&call);
}

static int
take_switch(void)
{
    int peer = accept_client();

    PEER_EXPECT(peer, "GET /a HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    return peer;
}

static void
take_nothing(const struct sxe_http_exchange *e, SXE *socket)
{
    (void)socket;
    event_push("upgrade", e->user, 0);
}

#define SWITCH "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"

START_TEST(the_socket_of_an_upgrade_is_the_programs_rfc_9110_7_8)
{
    int peer;

    serve(NULL, NULL);
    ask_to_switch(take_socket);
    peer = take_switch();
    say(peer, SWITCH "early");
    EXPECT("upgrade", a, 101);
    EXPECT_DONE(a, 0, "");
    EXPECT_READ(switched, "early");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    SXE_WRITE_LITERAL(switched, "there");
    PEER_EXPECT(peer, "there");
    close(peer);
    EXPECT("close", switched, 0);
    stop();
}
END_TEST

START_TEST(a_switch_to_a_protocol_that_was_not_asked_for_is_refused_rfc_9110_7_8)
{
    static const char *const upgrades[] = {"Upgrade: x\r\n", "Upgrade: echo, x\r\n",
                                           "Upgrade: ech\r\n", "Upgrade: ,\r\n", ""};

    for (unsigned i = 0; i < sizeof(upgrades) / sizeof(*upgrades); i++) {
        char head[128];
        int peer;

        serve(NULL, NULL);
        ask_to_switch(take_nothing);
        peer = take_switch();
        snprintf(head, sizeof(head), "HTTP/1.1 101 Go\r\nConnection: upgrade\r\n%s\r\n",
                 upgrades[i]);
        say(peer, head);
        EXPECT_DONE(a, -EPROTO, "");
        close(peer);
        stop();
    }
}
END_TEST

START_TEST(a_protocol_has_the_same_name_in_any_case)
{
    int peer;

    serve(NULL, NULL);
    ask_to_switch(take_socket);
    peer = take_switch();
    say(peer, "HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: ECHO\r\n\r\n");
    EXPECT("upgrade", a, 101);
    EXPECT_DONE(a, 0, "");
    close(peer);
    EXPECT("close", switched, 0);
    stop();
}
END_TEST

START_TEST(a_tunnel_is_the_programs_rfc_9110_9_3_6)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.request.method = sxe_http_span("CONNECT");
    call.request.target = sxe_http_span("a:1");
    call.on_upgrade = take_socket;
    serve(NULL, NULL);
    must_send(&call);
    peer = accept_client();
    expect_request(peer, "CONNECT", "a:1");
    say(peer, OK_LINE "Content-Length: 5\r\n\r\n");
    EXPECT("upgrade", a, 200);
    EXPECT_DONE(a, 0, "");
    say(peer, "tunnelled");
    EXPECT_READ(switched, "tunnelled");
    close(peer);
    EXPECT("close", switched, 0);
    stop();
}
END_TEST

START_TEST(a_server_may_decline_to_switch)
{
    int peer;

    serve(NULL, NULL);
    ask_to_switch(take_socket);
    peer = take_switch();
    answer(peer, "no");
    EXPECT_DONE(a, 0, "no");
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), 1);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_socket_that_the_program_does_not_take_ends_with_its_first_bytes)
{
    int peer;

    serve(NULL, NULL);
    ask_to_switch(take_nothing);
    peer = take_switch();
    say(peer, SWITCH);
    EXPECT("upgrade", a, 0);
    EXPECT_DONE(a, 0, "");
    say(peer, "hello?");
    PEER_EXPECT_RESET(peer);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_switch_before_the_request_is_sent_is_refused)
{
    struct sxe_http_call call = call_of(a);
    static const struct sxe_http_pair fields[] = {{{"Connection", 10}, {"upgrade", 7}},
                                                  {{"Upgrade", 7}, {"echo", 4}}};
    int peer;

    call.request.fields = fields;
    call.request.fields_number = 2;
    call.request.body_length = BIG;
    call.body = big;
    call.on_upgrade = take_socket;
    serve(NULL, NULL);
    must_send(&call);
    peer = accept_client();
    say(peer, SWITCH);
    EXPECT_DONE(a, -EPROTO, "");
    close(peer);
    stop();
}
END_TEST

static Suite *
http_client_stream_suite(void)
{
    Suite *suite = suite_create("http client stream");
    TCase *pauses = tcase_create("pauses");
    TCase *upgrades = tcase_create("upgrades");

    tcase_add_test(pauses, a_paused_body_waits_for_resume);
    tcase_add_test(pauses, a_body_that_ends_in_a_pause_ends);
    tcase_add_test(pauses, a_call_may_be_paused_before_its_body);
    tcase_add_test(pauses, a_call_of_fastcgi_may_be_cancelled_before_its_body);
    tcase_add_test(pauses, a_reply_of_fastcgi_that_ends_in_a_pause_is_whole);
    tcase_add_test(pauses, a_call_that_waits_may_be_paused);
    tcase_add_test(pauses, a_paused_body_makes_the_server_wait);
    suite_add_tcase(suite, pauses);

    tcase_add_test(upgrades, the_socket_of_an_upgrade_is_the_programs_rfc_9110_7_8);
    tcase_add_test(upgrades, a_switch_to_a_protocol_that_was_not_asked_for_is_refused_rfc_9110_7_8);
    tcase_add_test(upgrades, a_protocol_has_the_same_name_in_any_case);
    tcase_add_test(upgrades, a_tunnel_is_the_programs_rfc_9110_9_3_6);
    tcase_add_test(upgrades, a_server_may_decline_to_switch);
    tcase_add_test(upgrades, a_socket_that_the_program_does_not_take_ends_with_its_first_bytes);
    tcase_add_test(upgrades, a_switch_before_the_request_is_sent_is_refused);
    suite_add_tcase(suite, upgrades);
    return suite;
}

int
main(void)
{
    return sxe_test_main(http_client_stream_suite());
}
