/* SPDX-License-Identifier: MIT
 *
 * One call of the client: what it reports for each kind of response.
 */
#include "http-client-peer.h"

#include <errno.h>

/* ---- Responses ---- */

#define OK_LINE "HTTP/1.1 200 OK\r\n"

static const struct whole {
    const char *name;
    const char *method;
    const char *bytes;
    long status;
    const char *body;
    bool is_kept; /* whether the connection stays open */
} wholes[] = {
    {"a body of a length", "GET", OK_LINE "Content-Length: 5\r\nX: y\r\n\r\nhello", 200, "hello",
     true},
    {"an empty body", "GET", OK_LINE "Content-Length: 0\r\n\r\n", 200, "", true},
    {"chunks, extensions and a trailer, RFC 9112 7.1", "GET",
     OK_LINE "Transfer-Encoding: chunked\r\n\r\n"
             "5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nDigest: z\r\n\r\n",
     200, "hello world", true},
    {"no chunk but the last", "GET", OK_LINE "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, "",
     true},
    {"HEAD has no body, RFC 9110 9.3.2", "HEAD", OK_LINE "Content-Length: 5\r\n\r\n", 200, "",
     true},
    {"204 has no body", "DELETE", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", true},
    {"304 has no body", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, "",
     true},
    {"100 and 103 come first, RFC 9110 15.2", "GET",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
     "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone",
     404, "none", true},
    {"no reason", "GET", "HTTP/1.1 500 \r\nContent-Length: 1\r\n\r\n!", 500, "!", true},
    {"HTTP/1.0 closes, RFC 9112 9.3", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200,
     "ok", false},
    {"HTTP/1.0 that is asked to stay", "GET",
     "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200, "ok", true},
    {"Connection: close, RFC 9112 9.6", "GET",
     OK_LINE "Connection: close\r\nContent-Length: 2\r\n\r\nok", 200, "ok", false},
    {"CONNECT refused", "CONNECT", "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", 403, "no",
     true},
};
#define WHOLES (sizeof(wholes) / sizeof(wholes[0]))

static void
no_upgrade(const struct sxe_http_exchange *e, SXE *socket)
{
    (void)socket;
    event_push("upgrade", e->user, 0);
}

/* on_body may get the body in pieces of any length: compare what they contain together. */
static void
expect_spans(const char *body)
{
    char got[64] = "";
    const struct event *event;

    for (size_t used = 0; used < strlen(body); used += event->length) {
        pump();
        event = event_pop();
        ck_assert_str_eq(event->name, "body");
        memcpy(got + used, event->data, event->length + 1);
    }
    ck_assert_str_eq(got, body);
}

/* Send a request, send the response in two pieces, and check what the client reports. Returns the
 * peer's descriptor, or -1 if the client closed the connection. */
static int
exchange_in_two(int peer, const struct whole *w, size_t first, bool in_spans)
{
    struct sxe_http_call call = call_of(a);
    const char *target = strcmp(w->method, "CONNECT") == 0 ? "a:1" : a;

    call.request.method = sxe_http_span(w->method);
    call.request.target = sxe_http_span(target);
    call.on_upgrade = no_upgrade;
    call.on_response = push_response;
    call.on_body = in_spans ? push_body : NULL;
    must_send(&call);
    if (peer < 0)
        peer = accept_client();
    expect_request(peer, w->method, target);
    peer_send(peer, w->bytes, first);
    turn(2);
    say(peer, w->bytes + first);
    EXPECT("response", a, w->status);
    if (in_spans)
        expect_spans(w->body);
    EXPECT_DONE(a, 0, in_spans ? "" : w->body);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_IDLE), w->is_kept);
    if (w->is_kept)
        return peer;
    PEER_EXPECT_END(peer);
    close(peer);
    return -1;
}

static void
split_everywhere(const struct sxe_config *config)
{
    const struct whole *w = &wholes[(unsigned)config->chunks % WHOLES];
    int peer = -1;

    for (size_t i = 0; i <= strlen(w->bytes); i++)
        peer = exchange_in_two(peer, w, i, i % 2 == 0);
    if (peer >= 0)
        close(peer);
}

START_TEST(a_response_is_the_same_at_every_split)
{
    struct sxe_config config = {.chunks = (uint32_t)(WHOLES * 100 + (unsigned)_i)};

    serve(NULL, &config);
    split_everywhere(&config);
    stop();
}
END_TEST

START_TEST(a_response_is_the_same_when_reads_are_of_64_bytes)
{
    struct sxe_config config = {.chunk_size = 64,
                                .chunks = (uint32_t)(WHOLES * 100 + (unsigned)_i)};

    serve(NULL, &config);
    split_everywhere(&config);
    stop();
}
END_TEST

START_TEST(a_head_may_be_larger_than_a_chunk)
{
    struct sxe_config config = {.chunk_size = 64};
    char value[1000] = "";
    char head[1100];
    int peer;

    memset(value, 'v', sizeof(value) - 1);
    snprintf(head, sizeof(head), OK_LINE "Content-Length: 2\r\nX: %s\r\n\r\nok", value);
    serve(NULL, &config);
    get(a);
    peer = take(a);
    say(peer, head);
    EXPECT_DONE(a, 0, "ok");
    close(peer);
    stop();
}
END_TEST

static void
push_field(const struct sxe_http_exchange *e, int result)
{
    const struct sxe_http_field *type = sxe_http_known(e->response, SXE_HTTP_FIELD_CONTENT_TYPE);

    event_push_data("done", e->user, result, e->head + type->value, type->value_length);
}

START_TEST(the_fields_are_there_until_the_end)
{
    struct sxe_http_call call = call_of(a);
    int peer;

    call.on_done = push_field;
    serve(NULL, NULL);
    must_send(&call);
    peer = take(a);
    say(peer, OK_LINE "Content-Type: text/x\r\nContent-Length: 3\r\n\r\n1");
    turn(3);
    say(peer, "2");
    turn(3);
    say(peer, "3");
    EXPECT_DONE(a, 0, "text/x");
    close(peer);
    stop();
}
END_TEST

START_TEST(a_body_may_last_until_the_connection_closes)
{
    int peer;

    serve(NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        if (i == 0)
            get(a);
        else
            get_spans(a);
        peer = take(a);
        say(peer, OK_LINE "\r\nall ");
        turn(3);
        if (i == 1) {
            EXPECT("response", a, 200);
            EXPECT("body", a, 4);
        }
        say(peer, "of it");
        close(peer);
        if (i == 1)
            EXPECT("body", a, 5);
        EXPECT_DONE(a, 0, i == 0 ? "all of it" : "");
    }
    turn(2);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    stop();
}
END_TEST

/* ---- Responses that are cut or malformed ---- */

static const struct broken {
    const char *name;
    const char *bytes; /* the peer closes after these bytes */
    int result;
    enum sxe_http_refusal refusal;
} brokens[] = {
    {"nothing", "", -ECONNRESET, 0},
    {"half a head", OK_LINE "Content-", -ECONNRESET, 0},
    {"an interim response alone", "HTTP/1.1 100 Continue\r\n\r\n", -ECONNRESET, 0},
    {"less than Content-Length, RFC 9112 8", OK_LINE "Content-Length: 5\r\n\r\nhell", -ECONNRESET,
     0},
    {"no last chunk, RFC 9112 8", OK_LINE "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
     -ECONNRESET, 0},
    {"half a trailer", OK_LINE "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n", -ECONNRESET, 0},
    {"another protocol", "SSH-2.0-x\r\n", -EPROTO, SXE_HTTP_REFUSED_BAD_VERSION},
    {"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", -EPROTO, SXE_HTTP_REFUSED_UNKNOWN_VERSION},
    {"no status", "HTTP/1.1 abc\r\n\r\n", -EPROTO, SXE_HTTP_REFUSED_BAD_STATUS},
    {"two lengths", OK_LINE "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", -EPROTO,
     SXE_HTTP_REFUSED_TWO_LENGTHS},
    {"length and chunks", OK_LINE "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
     -EPROTO, SXE_HTTP_REFUSED_LENGTH_AND_CODING},
    {"a chunk that is none", OK_LINE "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", -EPROTO,
     SXE_HTTP_REFUSED_BAD_CHUNK_SIZE},
    {"a folded line in the trailer",
     OK_LINE "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n", -EPROTO,
     SXE_HTTP_REFUSED_FOLDED_LINE},
    {"an upgrade nobody asked for", "HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
     -EPROTO, 0},
};

START_TEST(what_is_not_a_whole_response_is_an_error)
{
    const struct broken *broken = &brokens[_i];
    int peer;

    serve(NULL, NULL);
    get(a);
    peer = take(a);
    say(peer, broken->bytes);
    peer_shutdown(peer);
    EXPECT("done", a, broken->result);
    ck_assert_int_eq(refusal, broken->refusal);
    turn(3);
    ck_assert_uint_eq(links_in(SXE__HTTP_LINK_FREE), 16);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_reset_in_the_middle_of_a_body_is_an_error)
{
    int peer;

    serve(NULL, NULL);
    get_spans(a);
    peer = take(a);
    say(peer, OK_LINE "\r\nhalf");
    EXPECT("response", a, 200);
    EXPECT("body", a, 4);
    peer_reset(peer);
    EXPECT_DONE(a, -ECONNRESET, "");
    stop();
}
END_TEST

START_TEST(nobody_there_is_an_error)
{
    serve(NULL, NULL);
    close(listener);
    get(a);
    EXPECT_DONE(a, -ECONNREFUSED, "");
    listener = peer_listen(&port);
    stop();
}
END_TEST

START_TEST(a_head_above_the_limit_is_refused)
{
    struct sxe_http_client_config config = {.limits = {64, 64, 3}};
    char fill[65];
    int peer;

    memset(fill, 'x', sizeof(fill));
    serve(&config, NULL);
    get(a);
    peer = take(a);
    say(peer, OK_LINE "A: ");
    turn(3);
    peer_send(peer, fill, sizeof(fill));
    EXPECT("done", a, -EPROTO);
    ck_assert_int_eq(refusal, SXE_HTTP_REFUSED_HEAD_TOO_LARGE);
    close(peer);
    get(b);
    peer = take(b);
    say(peer, OK_LINE "A:\r\nB:\r\nC:\r\nD:\r\n\r\n");
    EXPECT("done", b, -EPROTO);
    ck_assert_int_eq(refusal, SXE_HTTP_REFUSED_TOO_MANY_FIELDS);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_limit_of_more_than_255_fields_means_255)
{
    struct sxe_http_client_config config = {.limits = {64, 16384, 300}};
    char text[2000] = OK_LINE;
    int peer;

    serve(&config, NULL);
    for (unsigned extra = 0; extra < 2; extra++) {
        size_t used = strlen(OK_LINE);

        for (unsigned i = 0; i < 255 + extra; i++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "A:\r\n");
        snprintf(text + used, sizeof(text) - used, "\r\n");
        get(a);
        peer = take(a);
        say(peer, text);
        close(peer);
        EXPECT("done", a, extra == 0 ? 0 : -EPROTO);
    }
    stop();
}
END_TEST

START_TEST(a_trailer_that_the_socket_cannot_hold_is_refused)
{
    struct sxe_config config = {.chunk_size = 64};
    char fill[100];
    int peer;

    memset(fill, 'x', sizeof(fill));
    serve(NULL, &config);
    get(a);
    peer = take(a);
    say(peer, OK_LINE "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: ");
    turn(3);
    peer_send(peer, fill, sizeof(fill));
    EXPECT("done", a, -EPROTO);
    ck_assert_int_eq(refusal, SXE_HTTP_REFUSED_HEAD_TOO_LARGE);
    close(peer);
    stop();
}
END_TEST

static const struct {
    const char *bytes;
    int result;
} sizes[] = {
    {OK_LINE "Content-Length: 8\r\n\r\n12345678", 0},
    {OK_LINE "Content-Length: 9\r\n\r\n", -EMSGSIZE},
    {OK_LINE "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n0\r\n\r\n", 0},
    {OK_LINE "Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n1\r\n9", -EMSGSIZE},
    {OK_LINE "Connection: close\r\n\r\n123456789", -EMSGSIZE},
};

START_TEST(a_whole_body_has_at_most_body_max_bytes)
{
    struct sxe_http_client_config config = {.body_max = 8};
    int peer;

    serve(&config, NULL);
    get(a);
    peer = take(a);
    say(peer, sizes[_i].bytes);
    EXPECT("done", a, sizes[_i].result);
    close(peer);
    stop();
}
END_TEST

START_TEST(a_body_in_spans_has_no_limit)
{
    struct sxe_http_client_config config = {.body_max = 1};
    int peer;

    serve(&config, NULL);
    get_spans(a);
    peer = take(a);
    say(peer, sizes[0].bytes);
    EXPECT("response", a, 200);
    expect_spans("12345678");
    EXPECT_DONE(a, 0, "");
    close(peer);
    stop();
}
END_TEST

static Suite *
http_client_suite(void)
{
    Suite *suite = suite_create("http client");
    TCase *responses = tcase_create("responses");
    TCase *errors = tcase_create("errors");

    tcase_add_loop_test(responses, a_response_is_the_same_at_every_split, 0, WHOLES);
    tcase_add_loop_test(responses, a_response_is_the_same_when_reads_are_of_64_bytes, 0, WHOLES);
    tcase_add_test(responses, a_head_may_be_larger_than_a_chunk);
    tcase_add_test(responses, the_fields_are_there_until_the_end);
    tcase_add_test(responses, a_body_may_last_until_the_connection_closes);
    suite_add_tcase(suite, responses);

    tcase_add_loop_test(errors, what_is_not_a_whole_response_is_an_error, 0,
                        sizeof(brokens) / sizeof(brokens[0]));
    tcase_add_test(errors, a_reset_in_the_middle_of_a_body_is_an_error);
    tcase_add_test(errors, nobody_there_is_an_error);
    tcase_add_test(errors, a_head_above_the_limit_is_refused);
    tcase_add_test(errors, a_limit_of_more_than_255_fields_means_255);
    tcase_add_test(errors, a_trailer_that_the_socket_cannot_hold_is_refused);
    tcase_add_loop_test(errors, a_whole_body_has_at_most_body_max_bytes, 0,
                        sizeof(sizes) / sizeof(sizes[0]));
    tcase_add_test(errors, a_body_in_spans_has_no_limit);
    suite_add_tcase(suite, errors);
    return suite;
}

int
main(void)
{
    return sxe_test_main(http_client_suite());
}
