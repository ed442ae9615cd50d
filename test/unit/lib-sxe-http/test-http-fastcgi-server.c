/* SPDX-License-Identifier: MIT
 *
 * A server that answers FastCGI: requests and their bodies, replies, several requests on one
 * connection, aborts, and records that are wrong.
 */
#include "fastcgi-site.h"

#include <errno.h>

enum {
    END = SXE_HTTP_FASTCGI_END_REQUEST,
    ABORT = SXE_HTTP_FASTCGI_ABORT_REQUEST,
    PARAM = SXE_HTTP_FASTCGI_PARAMS,
    STDIN = SXE_HTTP_FASTCGI_STDIN,
};

static struct sxe_http_config
echoes(void)
{
    return (struct sxe_http_config){.handler = echo};
}

static struct sxe_http_config
later(void)
{
    return (struct sxe_http_config){.handler = now_or_later, .on_reply = push_reply};
}

/* ---- Requests and replies ---- */

START_TEST(requests_are_answered_one_after_the_other)
{
    int peer;

    serve_fastcgi(echoes(), 0);
    peer = fastcgi_client();
    for (unsigned i = 0; i < 3; i++) {
        ask(peer, (uint16_t)(i + 1), GET_PARAMS("/a"));
        EXPECT_ANSWER(peer, (uint16_t)(i + 1), OK_REPLY("6", "GET /a"));
        ck_assert_uint_eq(fastcgi_in(SXE__FASTCGI_IDLE), 1);
    }
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_request_without_keep_is_the_last)
{
    static struct records out;
    int peer;

    serve_fastcgi(echoes(), 0);
    peer = fastcgi_client();
    out.length = 0;
    add_request(&out, 1, false, GET_PARAMS("/a"));
    add_record(&out, STDIN, 1, "", 0);
    send_records(peer, &out);
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /a"));
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
describe(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static char text[400];
    struct sxe_span host = sxe_http_authority(request);
    struct sxe_span type = sxe_http_field_value(request, "content-type");
    struct sockaddr_storage peer;

    snprintf(text, sizeof(text), "%s %s 1.%u %.*s %.*s %u", sxe_http_forwarded_scheme(request),
             sxe_http_peer_ip(request), request->head.minor, (int)host.length, host.base,
             (int)type.length, type.base, (unsigned)sxe_http_peer(request, &peer));
    return sxe_http_reply_text(response, 200, text);
}

#define TEXT_REPLY(length, body) "Status: 200 OK\r\n" TEXT "Content-Length: " length "\r\n\r\n" body

START_TEST(handlers_see_the_client_of_the_web_server)
{
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = describe}, 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/") "|HTTPS=on|CONTENT_TYPE=a/b");
    EXPECT_ANSWER(peer, 1, TEXT_REPLY("28", "https 192.0.2.7 1.1 h a/b 16"));
    close(peer);
    end_site();
}
END_TEST

START_TEST(versions_and_clients_without_an_address_are_served)
{
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = describe}, 0);
    peer = fastcgi_client();
    ask(peer, 1,
        "REQUEST_METHOD=GET|REQUEST_URI=/|SERVER_PROTOCOL=HTTP/1.0|SERVER_NAME=a|SERVER_PORT=81");
    EXPECT_ANSWER(peer, 1, TEXT_REPLY("17", "http  1.0 a:81  0"));
    close(peer);
    end_site();
}
END_TEST

/* ---- Bodies ---- */

START_TEST(a_body_comes_in_records)
{
    int peer;

    serve_fastcgi(echoes(), 0);
    peer = fastcgi_client();
    begin(peer, 1, POST_PARAMS("5"));
    send_record(peer, STDIN, 1, "he");
    send_record(peer, STDIN, 1, "llo");
    EXPECT_ANSWER(peer, 1, OK_REPLY("13", "POST /p hello"));
    send_record(peer, STDIN, 1, ""); /* of a request that has ended */
    begin(peer, 1, POST_PARAMS("0"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("7", "POST /p"));
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_body_without_a_length_is_read_to_its_end)
{
    int peer;

    serve_fastcgi(echoes(), 0);
    peer = fastcgi_client();
    begin(peer, 1, "REQUEST_METHOD=PUT|REQUEST_URI=/|HTTP_HOST=h|SERVER_PROTOCOL=HTTP/1.0");
    send_record(peer, STDIN, 1, "hel");
    send_record(peer, STDIN, 1, "lo");
    send_record(peer, STDIN, 1, "");
    EXPECT_ANSWER(peer, 1, OK_REPLY("11", "PUT / hello"));
    close(peer);
    end_site();
}
END_TEST

static const struct {
    const char *body;
    bool is_ended;
} lengths[] = {{"1234", true}, {"123456", false}};

START_TEST(a_body_of_another_length_is_refused)
{
    int peer;

    serve_fastcgi(later(), 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    peer = fastcgi_client();
    begin(peer, 1, POST_PARAMS("5"));
    send_record(peer, STDIN, 1, lengths[_i].body);
    if (lengths[_i].is_ended)
        send_record(peer, STDIN, 1, "");
    EXPECT_ANSWER(peer, 1, REFUSED_400);
    EXPECT_OF("reply", "/p", 0);
    ask(peer, 2, GET_PARAMS("/b"));
    EXPECT_OF("now", "/b", 0);
    EXPECT_ANSWER(peer, 2, OK_REPLY("6", "GET /b"));
    EXPECT_OF("reply", "/b", 200);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_body_of_another_length_after_half_a_reply_ends_the_connection)
{
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = read_later, .stream = true}, 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    peer = fastcgi_client();
    begin(peer, 1, POST_PARAMS("5"));
    EXPECT_OF("later", "/p", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    ck_assert_int_eq(sxe_http_write(site.response, "half", 4), 0);
    turn(5);
    send_record(peer, STDIN, 1, "123456");
    EXPECT_OF("done", "/p", -ECONNRESET);
    PEER_EXPECT(peer, "\1\6\0\1\0");
    close(peer);
    end_site();
}
END_TEST

/* ---- Replies in parts ---- */

START_TEST(a_reply_in_parts_is_not_chunked)
{
    int peer;

    serve_fastcgi(later(), 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    ck_assert_int_eq(sxe_http_write(site.response, "one ", 4), 0);
    ck_assert_int_eq(sxe_http_end(site.response, "two", 3), 0);
    EXPECT_ANSWER(peer, 1, "Status: 200 OK\r\n\r\none two");
    EXPECT_OF("done", "/later", 0);
    EXPECT_OF("reply", "/later", 200);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_reply_that_breaks_off_ends_the_connection)
{
    int peer;

    serve_fastcgi(later(), 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    ck_assert_int_eq(sxe_http_write(site.response, "one ", 4), 0);
    turn(5);
    sxe_http_abort(site.response);
    EXPECT_OF("done", "/later", -ECONNABORTED);
    await_fastcgi_in(SXE__FASTCGI_FREE, 100);
    close(peer);
    event_reset();
    end_site();
}
END_TEST

START_TEST(a_reply_that_never_begins_is_an_end_without_a_reply)
{
    static struct answer answer;
    int peer;

    serve_fastcgi(later(), 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    sxe_http_abort(site.response);
    EXPECT_OF("done", "/later", -ECONNABORTED);
    ck_assert(take_answer(peer, 1, &answer));
    ck_assert(answer.length == 0 && answer.application == 1 && answer.protocol == 0);
    close(peer);
    event_reset();
    end_site();
}
END_TEST

/* ---- Several requests of one connection ---- */

START_TEST(requests_share_a_connection)
{
    struct sxe_http_response *first;
    int peer;

    serve_fastcgi(later(), 0);
    peer = fastcgi_client();
    ask(peer, 7, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    first = site.response;
    ask(peer, 9, GET_PARAMS("/b"));
    EXPECT_OF("now", "/b", 0);
    EXPECT_ANSWER(peer, 9, OK_REPLY("6", "GET /b"));
    ck_assert_uint_eq(fastcgi_in(SXE__FASTCGI_BUSY), 1);
    begin(peer, 8, GET_PARAMS("/c"));
    ck_assert_int_eq(sxe_http_end(first, "one", 3), 0);
    EXPECT_ANSWER(peer, 7, OK_REPLY("3", "one"));
    send_record(peer, STDIN, 8, "");
    EXPECT_ANSWER(peer, 8, OK_REPLY("6", "GET /c"));
    ck_assert_uint_eq(fastcgi_in(SXE__FASTCGI_IDLE), 1);
    close(peer);
    event_reset();
    end_site();
}
END_TEST

START_TEST(too_many_requests_are_refused)
{
    int peer;

    serve_fastcgi(later(), 1);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    ask(peer, 2, GET_PARAMS("/b"));
    {
        static struct answer answer;

        ck_assert(take_answer(peer, 2, &answer));
        ck_assert_uint_eq(answer.protocol, SXE_HTTP_FASTCGI_OVERLOADED);
    }
    ck_assert_int_eq(sxe_http_end(site.response, "one", 3), 0);
    EXPECT_ANSWER(peer, 1, OK_REPLY("3", "one"));
    close(peer);
    event_reset();
    end_site();
}
END_TEST

START_TEST(a_server_without_a_free_place_is_overloaded)
{
    struct sxe_http_config config = later();
    int peer;

    config.connections = 1;
    serve_fastcgi(config, 5);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    ask(peer, 2, GET_PARAMS("/b"));
    EXPECT_PROTOCOL(peer, 2, SXE_HTTP_FASTCGI_OVERLOADED);
    ck_assert_int_eq(sxe_http_end(site.response, "one", 3), 0);
    EXPECT_ANSWER(peer, 1, OK_REPLY("3", "one"));
    close(peer);
    event_reset();
    end_site();
}
END_TEST

START_TEST(clients_are_counted_by_their_address)
{
    struct sxe_http_config config = later();
    int peer;

    config.address_max = 1;
    serve_fastcgi(config, 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    ask(peer, 2, GET_PARAMS("/b"));
    EXPECT_ANSWER(peer, 2,
                  "Status: 503 Service Unavailable\r\n" TEXT
                  "Content-Length: 24\r\n\r\n503 Service Unavailable\n");
    ck_assert_int_eq(sxe_http_end(site.response, "one", 3), 0);
    EXPECT_ANSWER(peer, 1, OK_REPLY("3", "one"));
    close(peer);
    event_reset();
    end_site();
}
END_TEST

START_TEST(other_roles_are_refused)
{
    static struct records out;
    int peer;

    for (unsigned keep = 0; keep < 2; keep++) {
        static struct answer answer;

        serve_fastcgi(echoes(), 0);
        peer = fastcgi_client();
        out.length = 0;
        add_begin(&out, 3, SXE_HTTP_FASTCGI_AUTHORIZER, keep != 0);
        send_records(peer, &out);
        ck_assert(take_answer(peer, 3, &answer));
        ck_assert_uint_eq(answer.protocol, SXE_HTTP_FASTCGI_UNKNOWN_ROLE);
        if (keep == 0)
            PEER_EXPECT_END(peer);
        close(peer);
        end_site();
    }
}
END_TEST

/* ---- The client leaves ---- */

START_TEST(an_aborted_request_ends_as_that_of_a_client_that_left)
{
    static struct answer answer;
    int peer;

    serve_fastcgi(later(), 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    send_record(peer, ABORT, 1, "");
    EXPECT_OF("done", "/later", -ECONNRESET);
    EXPECT_OF("reply", "/later", 0);
    ck_assert(take_answer(peer, 1, &answer));
    ck_assert_uint_eq(answer.application, 1);
    send_record(peer, ABORT, 1, ""); /* ignored: it has ended */
    ask(peer, 1, GET_PARAMS("/b"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /b"));
    close(peer);
    event_reset();
    end_site();
}
END_TEST

START_TEST(a_client_that_closes_ends_its_requests)
{
    for (unsigned how = 0; how < 2; how++) {
        int peer;

        serve_fastcgi(later(), 0);
        peer = fastcgi_client();
        ask(peer, 1, GET_PARAMS("/later"));
        EXPECT_OF("later", "/later", 0);
        begin(peer, 2, GET_PARAMS("/never"));
        if (how == 0)
            close(peer);
        else
            peer_shutdown(peer);
        EXPECT_OF("done", "/later", -ECONNRESET);
        EXPECT_OF("reply", "/later", 0);
        await_fastcgi_in(SXE__FASTCGI_FREE, 100);
        ck_assert_uint_eq(requests_in(SXE__FASTCGI_REQUEST_FREE), 100);
        if (how == 1)
            close(peer);
        end_site();
    }
}
END_TEST

START_TEST(a_connection_without_requests_ends_in_order)
{
    int peer;

    serve_fastcgi(echoes(), 0);
    peer = fastcgi_client();
    peer_shutdown(peer);
    PEER_EXPECT_END(peer);
    close(peer);
    await_fastcgi_in(SXE__FASTCGI_FREE, 100);
    end_site();
}
END_TEST

/* ---- Records that are wrong ---- */

static const struct {
    const char *title;
    const char *bytes; /* after BEGIN_REQUEST 1 */
    size_t length;
} wrong[] = {
#define WRONG(title, bytes)             \
    {                                   \
        title, bytes, sizeof(bytes) - 1 \
    }
    WRONG("HTTP", "GET / HTTP/1.1\r\n\r\n"),
    WRONG("version 2", "\2\5\0\1\0\0\0\0"),
    WRONG("a reply", "\1\6\0\1\0\0\0\0"),
    WRONG("BEGIN_REQUEST twice", "\1\1\0\1\0\10\0\0\0\1\1\0\0\0\0\0"),
    WRONG("STDIN before PARAMS", "\1\5\0\1\0\1\0\0x"),
    WRONG("the end of STDIN before PARAMS", "\1\5\0\1\0\0\0\0"),
    WRONG("PARAMS after their end", "\1\4\0\1\0\0\0\0\1\4\0\1\0\1\0\0x"),
    WRONG("STDIN after its end", "\1\4\0\2\0\0\0\0\1\5\0\2\0\0\0\0\1\5\0\2\0\0\0\0"),
    WRONG("values that are no pairs", "\1\11\0\0\0\1\0\0\5"),
};

START_TEST(a_record_that_is_wrong_ends_the_connection)
{
    static struct records out;
    int peer;

    serve_fastcgi(later(), 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    peer = fastcgi_client();
    out.length = 0;
    add_begin(&out, 1, SXE_HTTP_FASTCGI_RESPONDER, true);
    if (strcmp(wrong[_i].title, "STDIN after its end") == 0) {
        ask(peer, 2, GET_PARAMS("/later"));
        EXPECT_OF("later", "/later", 0);
    }
    memcpy(out.bytes + out.length, wrong[_i].bytes, wrong[_i].length);
    out.length += wrong[_i].length;
    send_records(peer, &out);
    await_fastcgi_in(SXE__FASTCGI_FREE, 100);
    ck_assert_uint_eq(requests_in(SXE__FASTCGI_REQUEST_FREE), 100);
    close(peer);
    event_reset();
    end_site();
}
END_TEST

/* These are refused by the HTTP server, which logs them; the connection goes on. */
START_TEST(parameters_that_are_wrong_are_answered)
{
    static char much[50000];
    int peer;

    memset(much, 'x', sizeof(much) - 1);
    memcpy(much, "A=", 2);
    serve_fastcgi(later(), 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/a") "|HTTP_X=a\r\nb");
    EXPECT_ANSWER(peer, 1, REFUSED_400);
    EXPECT_OF("reply", "/a", 400);
    ask(peer, 1, GET_PARAMS("/%zz"));
    EXPECT_ANSWER(peer, 1, REFUSED_400);
    begin(peer, 2, much);
    send_record(peer, STDIN, 2, "dropped");
    {
        static struct answer answer;

        ck_assert(take_answer(peer, 2, &answer));
        ck_assert_int_eq(strncmp(answer.text, "Status: 431 ", 12), 0);
    }
    event_reset();
    ask(peer, 1, GET_PARAMS("/b"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /b"));
    close(peer);
    event_reset();
    end_site();
}
END_TEST

/* Each record cut at each byte. */
START_TEST(records_may_come_in_any_pieces)
{
    static struct records out;
    int peer;

    serve_fastcgi(echoes(), 0);
    peer = fastcgi_client();
    for (size_t piece = 1; piece < 40; piece += 3) {
        out.length = 0;
        add_request(&out, 5, true, POST_PARAMS("5"));
        add_record(&out, STDIN, 5, "hello", 5);
        add_record(&out, STDIN, 5, "", 0);
        say_in_pieces(peer, out.bytes, out.length, piece);
        EXPECT_ANSWER(peer, 5, OK_REPLY("13", "POST /p hello"));
    }
    close(peer);
    end_site();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-fastcgi-server");
    TCase *replies = tcase_create("replies");
    TCase *ends = tcase_create("ends");

    tcase_add_test(replies, requests_are_answered_one_after_the_other);
    tcase_add_test(replies, a_request_without_keep_is_the_last);
    tcase_add_test(replies, handlers_see_the_client_of_the_web_server);
    tcase_add_test(replies, versions_and_clients_without_an_address_are_served);
    tcase_add_test(replies, a_body_comes_in_records);
    tcase_add_test(replies, a_body_without_a_length_is_read_to_its_end);
    tcase_add_loop_test(replies, a_body_of_another_length_is_refused, 0, SXE_COUNT(lengths));
    tcase_add_test(replies, a_body_of_another_length_after_half_a_reply_ends_the_connection);
    tcase_add_test(replies, a_reply_in_parts_is_not_chunked);
    tcase_add_test(replies, a_reply_that_breaks_off_ends_the_connection);
    tcase_add_test(replies, a_reply_that_never_begins_is_an_end_without_a_reply);
    tcase_add_test(replies, requests_share_a_connection);
    tcase_add_test(replies, too_many_requests_are_refused);
    tcase_add_test(replies, a_server_without_a_free_place_is_overloaded);
    tcase_add_test(replies, clients_are_counted_by_their_address);
    tcase_add_test(replies, other_roles_are_refused);
    tcase_add_test(ends, an_aborted_request_ends_as_that_of_a_client_that_left);
    tcase_add_test(ends, a_client_that_closes_ends_its_requests);
    tcase_add_test(ends, a_connection_without_requests_ends_in_order);
    tcase_add_loop_test(ends, a_record_that_is_wrong_ends_the_connection, 0, SXE_COUNT(wrong));
    tcase_add_test(ends, parameters_that_are_wrong_are_answered);
    tcase_add_test(ends, records_may_come_in_any_pieces);
    suite_add_tcase(suite, replies);
    suite_add_tcase(suite, ends);
    return sxe_test_main(suite);
}
