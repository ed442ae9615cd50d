/* SPDX-License-Identifier: MIT
 *
 * Calls of a handler that are refused: fields that would end their line, and calls in the wrong
 * order.
 */
#include "http-site.h"

#include <stdlib.h>

#include "sxe-http-private.h"

#define GET_AS(lines) "GET / HTTP/1.1\r\nHost: h\r\n" lines "\r\n"
#define CLOSE         "Connection: close\r\n"

/* ---- Fields ---- */

static const struct field {
    const char *name;
    struct sxe_span value;
    int result;
} fields[] = {
    {"X", {"", 0}, 0},
    {"X", {NULL, 0}, 0},
    {"x!#$%&'*+-.^_`|~09azAZ", {"v", 1}, 0},
    {"X", {" \t~\x80\xff", 5}, 0},
    {"Trailer", {"Digest", 6}, 0},
    {"", {"v", 1}, -EINVAL},
    {"X Y", {"v", 1}, -EINVAL},
    {"X:", {"v", 1}, -EINVAL},
    {"X\r\nY", {"v", 1}, -EINVAL},
    {"X\x7f", {"v", 1}, -EINVAL},
    {"X\x80", {"v", 1}, -EINVAL},
    {"(X)", {"v", 1}, -EINVAL},
    {"X", {"a\r\nSet-Cookie: b", 16}, -EINVAL},
    {"X", {"a\rb", 3}, -EINVAL},
    {"X", {"a\nb", 3}, -EINVAL},
    {"X", {"a\0b", 3}, -EINVAL},
    {"X", {"\x1b", 1}, -EINVAL},
    {"X", {"a\x7f", 2}, -EINVAL},
    {"Content-Length", {"3", 1}, -EINVAL},
    {"CONTENT-LENGTH", {"3", 1}, -EINVAL},
    {"transfer-encoding", {"chunked", 7}, -EINVAL},
    {"Connection", {"close", 5}, -EINVAL},
    {"Date", {"now", 3}, -EINVAL},
};

static enum sxe_http_verdict
add_one(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct field *field = request->user;

    ck_assert_int_eq(sxe_http_add_field_span(response, field->name, field->value), field->result);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(rfc_9110_5_5_a_field_cannot_end_its_line_or_the_message)
{
    const struct field *field = &fields[_i];
    char line[100] = "";
    int peer;

    if (field->result == 0)
        snprintf(line, sizeof(line), "%s: %.*s\r\n", field->name, (int)field->value.length,
                 field->value.base == NULL ? "" : field->value.base);
    serve((struct sxe_http_config){.handler = add_one, .user = (void *)(uintptr_t)field});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES(line, ""), "");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
add_ready_lines(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const char lines[] = "X: 1\r\nY: 2\r\n";

    (void)request;
    ck_assert_int_eq(sxe__http_add_lines(response, (struct sxe_span){lines, 12}), 0);
    ck_assert_int_eq(sxe__http_add_lines(response, sxe__http_lines(response)), -ENOBUFS);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(ready_lines_fit_or_are_refused)
{
    int peer;

    serve((struct sxe_http_config){.handler = add_ready_lines, .fields_max = 20});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES("X: 1\r\nY: 2\r\n", ""), "");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
fill_fields(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_add_field(response, "X", "23456"), 0);
    ck_assert_int_eq(sxe_http_add_field(response, "Y", "234567"), -ENOBUFS);
    ck_assert_int_eq(sxe_http_add_field(response, "Y", "23456"), 0);
    ck_assert_int_eq(sxe_http_add_field(response, "Z", ""), -ENOBUFS);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(fields_max_is_their_bytes_with_the_ends_of_their_lines)
{
    int peer;

    serve((struct sxe_http_config){.handler = fill_fields, .fields_max = 20});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES("X: 23456\r\nY: 23456\r\n", ""), "");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
offer_upgrade(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_add_field(response, "Upgrade", "websocket"), 0);
    return sxe_http_reply(response, 426, NULL, "", 0);
}

START_TEST(rfc_9110_7_8_upgrade_is_named_in_connection)
{
    int peer;

    serve((struct sxe_http_config){.handler = offer_upgrade});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "426 Upgrade Required",
                  LINES("Upgrade: websocket\r\n", "Connection: upgrade\r\n"), "");
    say(peer, GET_AS(CLOSE));
    EXPECT_STATUS(peer, "426 Upgrade Required",
                  LINES("Upgrade: websocket\r\n", "Connection: upgrade\r\nConnection: close\r\n"),
                  "");
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

/* ---- The order of calls ---- */

static int
set_status(struct sxe_http_response *response)
{
    return sxe_http_set_status(response, 200);
}

static int
add_field(struct sxe_http_response *response)
{
    return sxe_http_add_field(response, "X", "y");
}

static int
add_trailer(struct sxe_http_response *response)
{
    return sxe_http_add_trailer(response, "X", "y");
}

static int
begin_again(struct sxe_http_response *response)
{
    return sxe_http_begin(response, 0);
}

static int
write_one(struct sxe_http_response *response)
{
    return sxe_http_write(response, "x", 1);
}

static int
write_file(struct sxe_http_response *response)
{
    return sxe_http_write_file(response, 0, 0, 0);
}

static int
end_file(struct sxe_http_response *response)
{
    return sxe_http_end_file(response, 0, 0, 0);
}

static int
upgrade(struct sxe_http_response *response)
{
    return sxe_http_upgrade(response, "y", NULL, NULL, NULL) == NULL ? -EINVAL : 0;
}

/* When a call is allowed: before the reply has begun, or after. Otherwise it returns -EINVAL. */
enum { BEFORE = 1, BEGUN = 2 };

static const struct call {
    int (*make)(struct sxe_http_response *response);
    unsigned good;
} calls[] = {
    {set_status, BEFORE},
    {add_field, BEFORE},
    {begin_again, BEFORE},
    {add_trailer, BEGUN},
    {write_one, BEGUN},
    {write_file, BEGUN},
    {wait_for_room, BEGUN},
    {end_empty, BEFORE | BEGUN},
    {end_borrowed, BEFORE | BEGUN},
    {end_file, BEFORE | BEGUN},
    {upgrade, 0},
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

static int
expected(const struct call *call, unsigned progress)
{
    return call->good & progress ? 0 : -EINVAL;
}

/* Calls in the wrong order change nothing. */
static enum sxe_http_verdict
try_calls(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    for (unsigned i = 0; i < CALLS; i++) {
        if (!(calls[i].good & BEFORE))
            ck_assert_int_eq(calls[i].make(response), -EINVAL);
    }
    ck_assert_int_eq(sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    for (unsigned i = 0; i < CALLS; i++) {
        if (!(calls[i].good & BEGUN))
            ck_assert_int_eq(calls[i].make(response), -EINVAL);
    }
    ck_assert_int_eq(sxe_http_end(response, "end", 3), 0);
    for (unsigned i = 0; i < CALLS; i++)
        ck_assert_int_eq(calls[i].make(response), -EINVAL);
    return SXE_HTTP_DONE;
}

START_TEST(a_call_out_of_order_changes_nothing)
{
    int peer;

    serve((struct sxe_http_config){.handler = try_calls});
    peer = client();
    say(peer, GET_AS("Upgrade: x\r\nConnection: upgrade\r\n") GET("/"));
    for (unsigned i = 0; i < 2; i++)
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "3\r\nend\r\n0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

/* Send a file that does not exist, before the reply has begun and after. */
static enum sxe_http_verdict
send_no_file(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_end_file(response, -1, 0, 10), -EBADF);
    ck_assert_int_eq(sxe_http_end_file(response, 0, -1, 10), -EINVAL);
    ck_assert_int_eq(sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    ck_assert_int_eq(sxe_http_write_file(response, -1, 0, 10), -EBADF);
    ck_assert_int_eq(sxe_http_write_file(response, 0, -1, 10), -EINVAL);
    ck_assert_int_eq(sxe_http_end(response, "end", 3), 0);
    return SXE_HTTP_DONE;
}

START_TEST(no_file_is_refused_and_changes_nothing)
{
    int peer;

    serve((struct sxe_http_config){.handler = send_no_file});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "3\r\nend\r\n0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
call_in_order(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct call *call = request->user;
    bool is_begun = request->path.length > 1;

    if (is_begun)
        ck_assert_int_eq(sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    ck_assert_int_eq(call->make(response), expected(call, is_begun ? BEGUN : BEFORE));
    (void)!sxe_http_end(response, NULL, 0);
    return SXE_HTTP_DONE;
}

START_TEST(a_call_in_order_leads_to_a_reply)
{
    static char got[210000];
    int peer;

    serve(
        (struct sxe_http_config){.handler = call_in_order, .user = (void *)(uintptr_t)&calls[_i]});
    peer = client();
    say(peer, GET("/") GET_AS(CLOSE));
    got[peer_receive(peer, got, sizeof(got) - 1)] = '\0';
    ck_assert_ptr_nonnull(strstr(got, "HTTP/1.1 200 OK\r\n"));
    close(peer);
    peer = client();
    say(peer, "GET /begun HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    got[peer_receive(peer, got, sizeof(got) - 1)] = '\0';
    ck_assert_ptr_nonnull(strstr(got, "HTTP/1.1 200 OK\r\n"));
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
try_statuses(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static const unsigned bad[] = {0, 1, 99, 100, 101, 199, 600, 999, 65536 + 200, UINT32_MAX};

    (void)request;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_int_eq(sxe_http_set_status(response, bad[i]), -EINVAL);
    for (unsigned status = 200; status < 600; status++)
        ck_assert_int_eq(sxe_http_set_status(response, status), 0);
    ck_assert_int_eq(sxe_http_set_status(response, 201), 0);
    return sxe_http_end(response, "", 0) < 0 ? SXE_HTTP_LATER : SXE_HTTP_DONE;
}

START_TEST(rfc_9110_15_a_status_is_200_to_599)
{
    int peer;

    serve((struct sxe_http_config){.handler = try_statuses});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "201 Created", LINES("", ""), "");
    close(peer);
    end_site();
}
END_TEST

static Suite *
refused_suite(void)
{
    Suite *suite = suite_create("http response refused");
    TCase *fields_case = tcase_create("fields");
    TCase *order = tcase_create("order");

    tcase_add_test(fields_case, rfc_9110_7_8_upgrade_is_named_in_connection);
    tcase_add_loop_test(fields_case, rfc_9110_5_5_a_field_cannot_end_its_line_or_the_message, 0,
                        (int)(sizeof(fields) / sizeof(fields[0])));
    tcase_add_test(fields_case, ready_lines_fit_or_are_refused);
    tcase_add_test(fields_case, fields_max_is_their_bytes_with_the_ends_of_their_lines);
    tcase_add_test(order, a_call_out_of_order_changes_nothing);
    tcase_add_test(order, no_file_is_refused_and_changes_nothing);
    tcase_add_loop_test(order, a_call_in_order_leads_to_a_reply, 0, (int)CALLS);
    tcase_add_test(order, rfc_9110_15_a_status_is_200_to_599);
    suite_add_tcase(suite, fields_case);
    suite_add_tcase(suite, order);
    return suite;
}

int
main(void)
{
    return sxe_test_main(refused_suite());
}
