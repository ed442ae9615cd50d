/* SPDX-License-Identifier: MIT
 *
 * The server keeps the head of a reply, and sends it again only if it fits the next reply.
 */
#include "http-site.h"

#include <stdlib.h>

#define GET_AS(method, version, lines) method " / HTTP/" version "\r\nHost: h\r\n" lines "\r\n"
#define CLOSE                          "Connection: close\r\n"
#define LONG_TYPE                      \
    "text/plain; x="                   \
    "01234567890123456789012345678901" \
    "23456789012345678901234567890123"

static const char zeros[50000];

static const struct alike {
    const char *request;
    unsigned status;
    const char *type;
    size_t length;
    const char *head;
} alikes[] = {
    {GET("/"), 200, "a/a", 5, "HTTP/1.1 200 OK\r\nContent-Type: a/a\r\nContent-Length: 5\r\n\r\n"},
    {GET("/"), 200, "a/a", 5, "HTTP/1.1 200 OK\r\nContent-Type: a/a\r\nContent-Length: 5\r\n\r\n"},
    {GET("/"), 200, "a/b", 5, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n\r\n"},
    {GET("/"), 200, "a/b", 6, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 201, "a/b", 6,
     "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 204, "a/b", 6, "HTTP/1.1 204 No Content\r\nContent-Type: a/b\r\n\r\n"},
    {GET_AS("HEAD", "1.1", ""), 201, "a/b", 6,
     "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 201, "a/b", 6,
     "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 6\r\n\r\n"},
    {GET_AS("GET", "1.0", "Connection: keep-alive\r\n"), 201, "a/b", 6,
     "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 6\r\n"
     "Connection: keep-alive\r\n\r\n"},
    {GET("/"), 201, NULL, 6, "HTTP/1.1 201 Created\r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 201, LONG_TYPE, 6,
     "HTTP/1.1 201 Created\r\nContent-Type: " LONG_TYPE "\r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 201, LONG_TYPE, 6,
     "HTTP/1.1 201 Created\r\nContent-Type: " LONG_TYPE "\r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 201, "", 6, "HTTP/1.1 201 Created\r\nContent-Type: \r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 201, NULL, 6, "HTTP/1.1 201 Created\r\nContent-Length: 6\r\n\r\n"},
    {GET("/"), 201, "a/b", 50000,
     "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 50000\r\n\r\n"},
    {GET("/"), 201, NULL, 20000, /* too large to fit the loop's buffer together with the next one */
     "HTTP/1.1 201 Created\r\nContent-Length: 20000\r\n\r\n"},
    {GET("/"), 201, "a/b", 50000,
     "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 50000\r\n\r\n"},
    {GET_AS("GET", "1.1", CLOSE), 201, "a/b", 6,
     "HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nContent-Length: 6\r\n" CLOSE "\r\n"},
};
#define ALIKES (sizeof(alikes) / sizeof(alikes[0]))

static enum sxe_http_verdict
reply_alike(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct alike **next = request->user;
    const struct alike *alike = (*next)++;

    return sxe_http_reply(response, alike->status, alike->type, zeros, alike->length);
}

static void
expect_alike(int peer, const struct alike *alike)
{
    bool has_body = alike->request[0] == 'G' && alike->status != 204;
    size_t wanted = has_body ? alike->length : 0;
    char *got = malloc(sizeof(zeros));

    EXPECT_REPLY(peer, alike->head);
    ck_assert_uint_eq(peer_receive(peer, got, wanted), wanted);
    ck_assert_mem_eq(got, zeros, wanted);
    free(got);
}

START_TEST(a_reply_has_the_head_of_the_one_before_only_if_that_is_right)
{
    const struct alike *next = alikes;
    char requests[2000] = "";
    size_t length = 0;
    int peer;

    serve((struct sxe_http_config){.handler = reply_alike, .user = &next});
    peer = client();
    for (unsigned i = 0; i < ALIKES; i++)
        length +=
            (size_t)snprintf(requests + length, sizeof(requests) - length, "%s", alikes[i].request);
    say(peer, requests);
    for (unsigned i = 0; i < ALIKES; i++)
        expect_alike(peer, &alikes[i]);
    PEER_EXPECT_END(peer);
    close(peer);
    end_site();
}
END_TEST

/* The target of a request becomes a field of the reply, and says how the reply is sent. */
static enum sxe_http_verdict
reply_with_line(struct sxe_http_request *request, struct sxe_http_response *response)
{
    struct sxe_span target = sxe_http_target(request);

    ck_assert_int_eq(sxe_http_add_field_span(response, "X", target), 0);
    if (target.base[1] == 'u')
        ck_assert_int_eq(sxe_http_add_field(response, "Upgrade", "x"), 0);
    if (target.base[1] == 'b')
        ck_assert_int_eq(sxe_http_begin(response, 5), 0);
    if (target.base[1] == 'o')
        ck_assert_int_eq(sxe_http_begin(response, SXE_HTTP_LENGTH_UNKNOWN), 0);
    ck_assert_int_eq(sxe_http_end(response, "hello", 5), 0);
    return SXE_HTTP_DONE;
}

START_TEST(a_reply_has_its_own_lines_and_not_those_of_the_one_before)
{
    static const char *const lines[] = {"a", "a", "c", "cc", "u", "u", "c", "b", "b", "c"};
    char request[100];
    char line[40];
    int peer;

    serve((struct sxe_http_config){.handler = reply_with_line});
    peer = client();
    for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        bool is_offer = lines[i][0] == 'u';

        snprintf(request, sizeof(request), GET("/%s"), lines[i]);
        snprintf(line, sizeof(line), "X: /%s\r\n%s", lines[i], is_offer ? "Upgrade: x\r\n" : "");
        say(peer, request);
        EXPECT_STATUS(peer, "200 OK", LINES(line, is_offer ? "Connection: upgrade\r\n" : ""),
                      "hello");
    }
    for (unsigned i = 0; i < 2; i++) {
        say(peer, GET("/o"));
        EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\n"
                           "X: /o\r\nTransfer-Encoding: chunked\r\n\r\n");
        PEER_EXPECT(peer, "5\r\nhello\r\n0\r\n\r\n");
    }
    say(peer, "HEAD /o HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nX: /o\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
not_found(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    return sxe_http_reply_status(response, 404);
}

START_TEST(a_long_head_comes_again_as_it_was)
{
    char fields[700];
    char lines[800];
    int peer;

    snprintf(fields, sizeof(fields), "X: %0600d\r\n", 0);
    snprintf(lines, sizeof(lines), "%s" TEXT, fields);
    serve((struct sxe_http_config){.handler = not_found, .fields = fields});
    peer = client();
    say(peer, GET("/") GET("/"));
    for (unsigned i = 0; i < 2; i++)
        EXPECT_STATUS(peer, "404 Not Found", LINES(lines, ""), "404 Not Found\n");
    close(peer);
    end_site();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http head");
    TCase *kept = tcase_create("kept");

    tcase_add_test(kept, a_reply_has_the_head_of_the_one_before_only_if_that_is_right);
    tcase_add_test(kept, a_reply_has_its_own_lines_and_not_those_of_the_one_before);
    tcase_add_test(kept, a_long_head_comes_again_as_it_was);
    suite_add_tcase(suite, kept);
    return sxe_test_main(suite);
}
