/* SPDX-License-Identifier: MIT
 *
 * A server that answers FastCGI, when a side is slow: back pressure both ways, timeouts, the end of
 * the server, connections without room, and listeners.
 */
#include "fastcgi-site.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/un.h>

#include "sweep.h"
#include "sxe-cidr.h"

int __real_socket(int family, int type, int protocol);
int __real_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t __real_send(int fd, const void *data, size_t length, int flags);

enum { STDIN = SXE_HTTP_FASTCGI_STDIN, PART = 60000 };

static struct sxe_http_config
later(void)
{
    return (struct sxe_http_config){.handler = now_or_later, .on_reply = push_reply};
}

/* ---- Back pressure ---- */

static struct {
    uint64_t sent;
    uint64_t length;
    uint64_t read;
} flow;

static void
write_more(struct sxe_http_response *response)
{
    static char part[PART];

    while (flow.sent < flow.length && sxe_http_write(response, part, sizeof(part)) == 0)
        flow.sent += sizeof(part);
    if (flow.sent >= flow.length)
        ck_assert_int_eq(sxe_http_end(response, NULL, 0), 0);
    else
        ck_assert_int_eq(sxe_http_on_room(response, write_more), 0);
}

static enum sxe_http_verdict
stream(struct sxe_http_request *request, struct sxe_http_response *response)
{
    response->on_done = push_done;
    (void)request;
    ck_assert_int_eq(sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    write_more(response);
    return SXE_HTTP_LATER;
}

/* The reply is more than all buffers hold: the handler has to wait for the reader. */
START_TEST(a_reply_waits_for_its_reader)
{
    static char content[65536];
    uint64_t received = 0;
    size_t length = 0;
    uint16_t id;
    int peer;
    uint64_t stuck;

    memset(&flow, 0, sizeof(flow));
    flow.length = 100 * 1000 * 1000;
    serve_fastcgi((struct sxe_http_config){.handler = stream}, 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/"));
    ask(peer, 2, GET_PARAMS("/"));
    turn(2000);
    stuck = flow.sent;
    ck_assert_uint_lt(stuck, flow.length);
    turn(100);
    ck_assert_uint_eq(flow.sent, stuck);
    for (unsigned ends = 0; ends < 2;) {
        unsigned type = next_record(peer, &id, content, &length);

        ck_assert(type == SXE_HTTP_FASTCGI_STDOUT || type == SXE_HTTP_FASTCGI_END_REQUEST);
        ends += type == SXE_HTTP_FASTCGI_END_REQUEST;
        received += type == SXE_HTTP_FASTCGI_STDOUT ? length : 0;
    }
    ck_assert_uint_ge(received, flow.length);
    close(peer);
    event_reset();
    end_site();
}
END_TEST

/* A client that does not read loses its connection, as with HTTP; its handler learns it. */
START_TEST(a_reader_that_stops_is_given_up)
{
    int peer;

    memset(&flow, 0, sizeof(flow));
    flow.length = 100 * 1000 * 1000;
    serve_fastcgi((struct sxe_http_config){.handler = stream}, 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/"));
    turn(2000);
    wait_ms(70000);
    pump();
    ck_assert_int_lt(event_pop()->number, 0); /* of "done"; the errno depends on what came first */
    await_fastcgi_in(SXE__FASTCGI_FREE, 100);
    close(peer);
    end_site();
}
END_TEST

static void
count_body(struct sxe_http_request *request, struct sxe_http_response *response,
           struct sxe_span part, bool last)
{
    flow.read += part.length;
    if (last)
        sxe_http_reply_text(response, 200, "read");
    else if (flow.sent == 0)
        sxe_http_pause(request);
}

static enum sxe_http_verdict
read_slowly(struct sxe_http_request *request, struct sxe_http_response *response)
{
    site.request = request;
    site.response = response;
    response->on_done = push_done;
    sxe_http_read(request, count_body);
    return SXE_HTTP_LATER;
}

/* Send a body of so many bytes, as far as the server takes them. Returns the bytes that it did not
 * take. */
static size_t
send_body(int peer, struct records *out, size_t *at)
{
    while (*at < out->length) {
        ssize_t n =
            __real_send(peer, out->bytes + *at, out->length - *at, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n <= 0)
            break;
        *at += (size_t)n;
        turn(2);
    }
    return out->length - *at;
}

START_TEST(a_body_waits_for_its_handler)
{
    static struct records out;
    static char part[PART];
    const unsigned parts = 200;
    char params[300];
    size_t at = 0;
    unsigned sent = 0;
    int peer;

    memset(&flow, 0, sizeof(flow));
    serve_fastcgi((struct sxe_http_config){.handler = read_slowly, .stream = true}, 0);
    peer = fastcgi_client();
    snprintf(params, sizeof(params), "%s|CONTENT_LENGTH=%u", PARAMS("POST", "/p"), parts * PART);
    begin(peer, 1, params);
    out.length = 0;
    for (; sent < parts && send_body(peer, &out, &at) == 0; sent++) {
        out.length = at = 0;
        add_record(&out, STDIN, 1, part, sizeof(part));
    }
    ck_assert_uint_lt(sent, parts);
    ck_assert_uint_lt(flow.read, (uint64_t)parts * PART / 2);
    wait_ms(100000); /* a handler that waits has all time */
    flow.sent = 1;
    sxe_http_resume(site.request);
    for (unsigned turns = 0; sent <= parts && turns < 50 * WAIT_TURNS; turns++) {
        turn(1);
        if (send_body(peer, &out, &at) > 0) {
            __real_poll(NULL, 0, 1);
            continue;
        }
        if (sent++ < parts) {
            out.length = at = 0;
            add_record(&out, STDIN, 1, part, sizeof(part));
        }
    }
    send_record(peer, STDIN, 1, "");
    EXPECT_ANSWER(peer, 1, "Status: 200 OK\r\n" TEXT "Content-Length: 4\r\n\r\nread");
    ck_assert_uint_eq(flow.read, (uint64_t)parts * PART);
    close(peer);
    event_reset();
    end_site();
}
END_TEST

/* The connection is not read while the handler waits, but it is read again when its reply has
 * ended. */
START_TEST(a_reply_before_the_end_of_the_body_unblocks_the_connection)
{
    static struct records out;
    static char part[PART];
    size_t at = 0;
    unsigned sent = 0;
    int peer;

    memset(&flow, 0, sizeof(flow));
    serve_fastcgi((struct sxe_http_config){.handler = read_slowly, .stream = true}, 0);
    peer = fastcgi_client();
    begin(peer, 1, PARAMS("POST", "/p") "|CONTENT_LENGTH=99999999");
    out.length = 0;
    for (; sent < 200 && send_body(peer, &out, &at) == 0; sent++) {
        out.length = at = 0;
        add_record(&out, STDIN, 1, part, sizeof(part));
    }
    ck_assert_uint_lt(sent, 200);
    sxe_http_close(site.response);
    ck_assert_int_eq(sxe_http_end(site.response, "early", 5), 0);
    EXPECT_ANSWER(peer, 1, OK_REPLY("5", "early"));
    for (unsigned turns = 0; send_body(peer, &out, &at) > 0 && turns < 50 * WAIT_TURNS; turns++) {
        __real_poll(NULL, 0, 1);
        turn(1);
    }
    begin(peer, 2, POST_PARAMS("0"));
    send_record(peer, STDIN, 2, "");
    EXPECT_ANSWER(peer, 2, "Status: 200 OK\r\n" TEXT "Content-Length: 4\r\n\r\nread");
    close(peer);
    event_reset();
    end_site();
}
END_TEST

/* ---- Timeouts ---- */

START_TEST(connections_and_parameters_time_out)
{
    static struct records out;
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = echo}, 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    peer = fastcgi_client(); /* no request comes */
    wait_ms(10100);
    PEER_EXPECT_END(peer);
    close(peer);
    peer = fastcgi_client(); /* no second request comes */
    ask(peer, 1, GET_PARAMS("/a"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /a"));
    wait_ms(59000);
    ck_assert_uint_eq(fastcgi_in(SXE__FASTCGI_IDLE), 1);
    wait_ms(2000);
    PEER_EXPECT_END(peer);
    close(peer);
    peer = fastcgi_client(); /* the parameters have no end */
    out.length = 0;
    add_begin(&out, 1, SXE_HTTP_FASTCGI_RESPONDER, true);
    send_records(peer, &out);
    wait_ms(10100);
    PEER_EXPECT_RESET(peer);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_handler_that_is_late_is_answered_503)
{
    struct sxe_http_config config = later();
    int peer;

    config.handler_timeout_ms = 1000;
    serve_fastcgi(config, 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    wait_ms(1100);
    EXPECT_ANSWER(peer, 1,
                  "Status: 503 Service Unavailable\r\n" TEXT
                  "Content-Length: 24\r\n\r\n503 Service Unavailable\n");
    close(peer);
    event_reset();
    end_site();
}
END_TEST

START_TEST(timeouts_may_be_off)
{
    struct sxe_http_config config = {.handler = echo, .idle_timeout_ms = UINT32_MAX};
    int peer;

    serve_fastcgi(config, 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/a"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /a"));
    wait_ms(200000);
    ask(peer, 1, GET_PARAMS("/a"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /a"));
    close(peer);
    end_site();
}
END_TEST

/* ---- The end of the server ---- */

static void
note_stop(struct sxe_http *http)
{
    event_push("stopped", http, 0);
}

START_TEST(a_server_that_drains_answers_and_closes)
{
    int peers[3];

    serve_fastcgi(later(), 0);
    for (unsigned i = 0; i < 3; i++)
        peers[i] = fastcgi_client();
    ask(peers[0], 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    ask(peers[1], 1, GET_PARAMS("/b"));
    EXPECT_ANSWER(peers[1], 1, OK_REPLY("6", "GET /b"));
    event_reset();
    sxe_http_drain(site.http, note_stop);
    ck_assert_uint_eq(sxe_http_fastcgi_port(site.http), 0);
    ask(peers[1], 1, GET_PARAMS("/c")); /* a last request */
    EXPECT_ANSWER(peers[1], 1, OK_REPLY("6", "GET /c"));
    PEER_EXPECT_END(peers[1]);
    close(peers[1]);
    ck_assert(!sxe_http_all_is_sent(site.http));
    event_reset();
    sxe_http_stop(site.http, NULL);
    PEER_EXPECT_END(peers[2]);
    close(peers[2]);
    ck_assert_int_eq(sxe_http_end(site.response, "one", 3), 0);
    EXPECT_ANSWER(peers[0], 1, OK_REPLY("3", "one"));
    PEER_EXPECT_END(peers[0]);
    EXPECT_OF("done", "/later", 0);
    EXPECT_OF("reply", "/later", 200);
    close(peers[0]);
    EXPECT("stopped", site.http, 0);
    end_site();
}
END_TEST

/* A request that is on its way when the server stops is answered. */
START_TEST(a_server_that_stops_reads_what_has_come)
{
    static struct records out;
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = echo}, 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/a"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /a"));
    out.length = 0;
    add_request(&out, 1, true, GET_PARAMS("/b"));
    add_record(&out, STDIN, 1, "", 0);
    peer_send(peer, out.bytes, out.length);
    sxe_http_stop(site.http, note_stop);
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /b"));
    PEER_EXPECT_END(peer);
    close(peer);
    EXPECT("stopped", site.http, 0);
    end_site();
}
END_TEST

START_TEST(half_a_reply_that_is_broken_off_ends_without_an_end)
{
    static char content[65536];
    size_t length;
    uint16_t id;
    int peer;

    serve_fastcgi(later(), 0);
    peer = fastcgi_client();
    ask(peer, 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    ck_assert_int_eq(sxe_http_begin(site.response, 8), 0);
    ck_assert_int_eq(sxe_http_write(site.response, "half", 4), 0);
    ck_assert_uint_eq(next_record(peer, &id, content, &length), SXE_HTTP_FASTCGI_STDOUT);
    sxe_http_break_off(site.http);
    PEER_EXPECT_RESET(peer);
    await_fastcgi_in(SXE__FASTCGI_FREE, 100);
    close(peer);
    event_reset();
    end_site();
}
END_TEST

/* ---- Room ---- */

START_TEST(an_idle_connection_makes_room)
{
    int peers[3];

    serve_fastcgi(later(), 1);
    peers[0] = fastcgi_client();
    ask(peers[0], 1, GET_PARAMS("/a"));
    EXPECT_ANSWER(peers[0], 1, OK_REPLY("6", "GET /a"));
    peers[1] = fastcgi_client();
    PEER_EXPECT_END(peers[0]);
    event_reset();
    ask(peers[1], 1, GET_PARAMS("/later"));
    EXPECT_OF("later", "/later", 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    peers[2] = fastcgi_client(); /* the other connection has a request */
    PEER_EXPECT_RESET(peers[2]);
    for (unsigned i = 0; i < 3; i++)
        close(peers[i]);
    turn(20);
    event_reset();
    end_site();
}
END_TEST

static const struct {
    uint32_t output_max;
    const char *params; /* NULL: another role than a responder's is asked for */
} no_room[] = {
    {10, NULL},                           /* for END_REQUEST */
    {30, POST_PARAMS("5")},               /* for the head of the request */
    {70, PARAMS("PUT", "/c")},            /* for a part of its body */
    {85, GET_PARAMS("/a") "|HTTP_X=end"}, /* for the reply, in a record */
};

START_TEST(output_without_room_ends_the_connection)
{
    const struct sxe_config small = {.output_max = no_room[_i].output_max};
    static struct records out;
    static char part[1000];
    int peer;

    serve_fastcgi_with((struct sxe_http_config){.handler = echo}, 0, &small);
    sxe_log_set_level(SXE_LOG_FATAL);
    peer = fastcgi_client();
    out.length = 0;
    if (no_room[_i].params == NULL)
        add_begin(&out, 1, SXE_HTTP_FASTCGI_FILTER, true);
    else
        add_request(&out, 1, true, no_room[_i].params);
    add_record(&out, STDIN, 1, part, _i == 2 ? sizeof(part) : 0);
    send_records(peer, &out);
    await_fastcgi_in(SXE__FASTCGI_FREE, 100);
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_request_without_sockets_is_refused)
{
    SXE *taken[500];
    unsigned number = 0;
    int peer;

    serve_fastcgi((struct sxe_http_config){.handler = echo, .connections = 5}, 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    peer = fastcgi_client();
    while ((taken[number] = sxe_new_tcp(NULL, "", 0, NULL, NULL, NULL)) != NULL)
        number++;
    ask(peer, 1, GET_PARAMS("/a"));
    EXPECT_PROTOCOL(peer, 1, SXE_HTTP_FASTCGI_OVERLOADED);
    sxe_close(taken[--number]); /* one of the two that are needed */
    ask(peer, 1, GET_PARAMS("/a"));
    EXPECT_PROTOCOL(peer, 1, SXE_HTTP_FASTCGI_OVERLOADED);
    while (number > 0)
        sxe_close(taken[--number]);
    ask(peer, 1, GET_PARAMS("/a"));
    EXPECT_ANSWER(peer, 1, OK_REPLY("6", "GET /a"));
    close(peer);
    end_site();
}
END_TEST

/* ---- Listeners, and memory ---- */

START_TEST(there_are_four_listeners)
{
    serve_fastcgi((struct sxe_http_config){.handler = echo}, 0);
    sxe_log_set_level(SXE_LOG_FATAL);
    ck_assert_int_eq(sxe_http_fastcgi_new(site.http, 0), -EALREADY);
    for (unsigned i = 1; i < 4; i++)
        ck_assert_int_eq(sxe_http_fastcgi_listen(site.http, "127.0.0.1", 0), 0);
    ck_assert_int_eq(sxe_http_fastcgi_listen(site.http, "127.0.0.1", 0), -ENFILE);
    ck_assert_int_eq(sxe_http_fastcgi_listen(site.http, "no address", 0), -EINVAL);
    end_site();
}
END_TEST

START_TEST(a_unix_socket_may_be_trusted)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "\0fastcgi-test"};
    struct sxe_cidr_list trusted = {.number = 0};
    int peer;

    ck_assert_int_eq(sxe_cidr_add(&trusted, "unix", NULL), 0);
    serve_fastcgi((struct sxe_http_config){.handler = echo,
                                           .trusted = &trusted,
                                           .request_id = "X-Request-Id"},
                  0);
    ck_assert_int_eq(sxe_http_fastcgi_listen_unix(site.http, "@fastcgi-test"), 0);
    peer = __real_socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(
        __real_connect(peer, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 13),
        0);
    turn(3);
    ask(peer, 1, GET_PARAMS("/a") "|HTTP_X_REQUEST_ID=abc");
    EXPECT_ANSWER(peer, 1,
                  "Status: 200 OK\r\nX-Request-Id: abc\r\nContent-Length: 6\r\n\r\nGET /a");
    close(peer);
    end_site();
}
END_TEST

START_TEST(memory_may_be_missing)
{
    struct sxe_http_config config = {.handler = echo, .connections = 10};
    unsigned failed = 0;
    int result;

    sxe_log_set_level(SXE_LOG_FATAL);
    do {
        struct sxe_http *http = sxe_http_new(&config);

        ck_assert_ptr_nonnull(http);
        fake_os_sweep(allocations, ALLOCATIONS, failed + 1, false, ENOMEM);
        result = sxe_http_fastcgi_new(http, 5);
        fake_os_reset();
        ck_assert(result == 0 || result == -ENOMEM);
        failed += result < 0;
        sxe_http_delete(http);
    } while (result < 0);
    ck_assert_uint_ge(failed, 4);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-fastcgi-flow");
    TCase *slow = tcase_create("slow");
    TCase *ends = tcase_create("ends");

    tcase_add_test(slow, a_reply_waits_for_its_reader);
    tcase_add_test(slow, a_reader_that_stops_is_given_up);
    tcase_add_test(slow, a_body_waits_for_its_handler);
    tcase_add_test(slow, a_reply_before_the_end_of_the_body_unblocks_the_connection);
    tcase_add_test(slow, connections_and_parameters_time_out);
    tcase_add_test(slow, a_handler_that_is_late_is_answered_503);
    tcase_add_test(slow, timeouts_may_be_off);
    tcase_add_test(ends, a_server_that_drains_answers_and_closes);
    tcase_add_test(ends, a_server_that_stops_reads_what_has_come);
    tcase_add_test(ends, half_a_reply_that_is_broken_off_ends_without_an_end);
    tcase_add_test(ends, an_idle_connection_makes_room);
    tcase_add_loop_test(ends, output_without_room_ends_the_connection, 0, SXE_COUNT(no_room));
    tcase_add_test(ends, a_request_without_sockets_is_refused);
    tcase_add_test(ends, there_are_four_listeners);
    tcase_add_test(ends, a_unix_socket_may_be_trusted);
    tcase_add_test(ends, memory_may_be_missing);
    suite_add_tcase(suite, slow);
    suite_add_tcase(suite, ends);
    return sxe_test_main(suite);
}
