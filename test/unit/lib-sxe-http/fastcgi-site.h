/* SPDX-License-Identifier: MIT
 *
 * What: a server that answers FastCGI on the virtual clock (http-site.h), and web servers that the
 * test plays: they write records, and read replies record by record.
 *
 * Shape: parameters are a text, "A=b|C=d"; bytes of values may be anything but | and NUL.
 *
 * Example:
 *     serve_fastcgi((struct sxe_http_config){.handler = echo}, 0);
 *     int peer = fastcgi_client();
 *     ask(peer, 1, GET_PARAMS("/a"));
 *     EXPECT_ANSWER(peer, 1, OK_REPLY("5", "GET /a"));
 *     close(peer);
 *     end_site();
 */
#ifndef FASTCGI_SITE_H
#define FASTCGI_SITE_H

#include "http-site.h"

#include "sxe-http-fastcgi-private.h"

#define PARAMS(method, target)                                      \
    "REQUEST_METHOD=" method "|REQUEST_URI=" target "|HTTP_HOST=h|" \
    "SERVER_PROTOCOL=HTTP/1.1|REMOTE_ADDR=192.0.2.7|REMOTE_PORT=5"
#define GET_PARAMS(target)     PARAMS("GET", target)
#define POST_PARAMS(length)    PARAMS("POST", "/p") "|CONTENT_LENGTH=" length
#define OK_REPLY(length, body) "Status: 200 OK\r\nContent-Length: " length "\r\n\r\n" body
#define REFUSED_400                                                 \
    "Status: 400 Bad Request\r\n" TEXT "Content-Length: 16\r\n\r\n" \
    "400 Bad Request\n"

struct records {
    char bytes[200000];
    size_t length;
};

/* Add the bytes of a record, with a padding of 3 bytes. */
static inline void
add_record(struct records *out, unsigned type, uint16_t id, const void *content, size_t length)
{
    char *to = out->bytes + out->length;

    ck_assert_uint_lt(out->length + length + 11, sizeof(out->bytes));
    sxe_http_fastcgi_put_head(to, (enum sxe_http_fastcgi_type)type, id, (uint16_t)length, 3);
    memcpy(to + 8, content, length);
    memset(to + 8 + length, 0, 3);
    out->length += length + 11;
}

/* Add the pairs of a text "A=b|C=d". Returns how many bytes they have. */
static inline size_t
put_pairs(char *to, size_t size, const char *text)
{
    size_t length = 0;

    while (*text != '\0') {
        size_t pair = strcspn(text, "|");
        size_t name = strcspn(text, "=");
        ssize_t n =
            sxe_http_fastcgi_put_pair(to + length, size - length, (struct sxe_span){text, name},
                                      (struct sxe_span){text + name + 1, pair - name - 1});

        ck_assert_int_gt(n, 0);
        length += (size_t)n;
        text += pair + (text[pair] == '|');
    }
    return length;
}

static inline void
add_begin(struct records *out, uint16_t id, enum sxe_http_fastcgi_role role, bool keep)
{
    sxe_http_fastcgi_put_begin(out->bytes + out->length, id, role, keep);
    out->length += 16;
}

/* Add BEGIN_REQUEST and the whole PARAMS. */
static inline void
add_request(struct records *out, uint16_t id, bool keep, const char *params)
{
    static char pairs[60000];

    add_begin(out, id, SXE_HTTP_FASTCGI_RESPONDER, keep);
    add_record(out, SXE_HTTP_FASTCGI_PARAMS, id, pairs, put_pairs(pairs, sizeof(pairs), params));
    add_record(out, SXE_HTTP_FASTCGI_PARAMS, id, "", 0);
}

static inline void
send_records(int peer, const struct records *out)
{
    peer_send(peer, out->bytes, out->length);
    turn(3);
}

static inline void
send_record(int peer, unsigned type, uint16_t id, const char *content)
{
    static struct records out;

    out.length = 0;
    add_record(&out, type, id, content, strlen(content));
    send_records(peer, &out);
}

/* Begin a request; its STDIN is left to the test. */
static inline void
begin(int peer, uint16_t id, const char *params)
{
    static struct records out;

    out.length = 0;
    add_request(&out, id, true, params);
    send_records(peer, &out);
}

/* Send a request without a body. */
static inline void
ask(int peer, uint16_t id, const char *params)
{
    begin(peer, id, params);
    send_record(peer, SXE_HTTP_FASTCGI_STDIN, id, "");
}

static inline void
serve_fastcgi_with(struct sxe_http_config config, unsigned requests, const struct sxe_config *loop)
{
    memset(&site, 0, sizeof(site));
    fake_time_start(UINT64_C(1000000000000), SITE_TIME * SXE_NS_PER_SECOND);
    if (config.connections == 0)
        config.connections = 100;
    if (loop != NULL)
        sxe_configure(loop);
    site.http = sxe_http_new(&config);
    ck_assert_ptr_nonnull(site.http);
    ck_assert_int_eq(sxe_http_fastcgi_new(site.http, requests), 0);
    plan_start(0);
    ck_assert_int_eq(sxe_http_fastcgi_listen(site.http, "127.0.0.1", 0), 0);
}

static inline void
serve_fastcgi(struct sxe_http_config config, unsigned requests)
{
    serve_fastcgi_with(config, requests, NULL);
}

static inline int
fastcgi_client(void)
{
    int peer = peer_connect(sxe_http_fastcgi_port(site.http));
    int one = 1;

    __real_setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    turn(2);
    return peer;
}

static inline unsigned
requests_in(enum sxe__fastcgi_request_state state)
{
    return sxe_pool_get_count(site.http->fastcgi->requests, state);
}

static inline unsigned
fastcgi_in(enum sxe__fastcgi_state state)
{
    return sxe_pool_get_count(site.http->fastcgi->connections, state);
}

/* Turn the loop until as many connections are in that state. */
static inline void
await_fastcgi_in(enum sxe__fastcgi_state state, unsigned number)
{
    for (unsigned i = 0; i < WAIT_TURNS && fastcgi_in(state) != number; i++) {
        __real_poll(NULL, 0, 1);
        turn(1);
    }
    ck_assert_uint_eq(fastcgi_in(state), number);
}

/* The next record: its type; 0: the connection has ended. */
static inline unsigned
next_record(int peer, uint16_t *id, char *content, size_t *length)
{
    char head[8];
    char padding[256];

    if (peer_receive(peer, head, 8) < 8)
        return 0;
    ck_assert_int_eq(head[0], 1);
    *id = (uint16_t)((uint8_t)head[2] << 8 | (uint8_t)head[3]);
    *length = (size_t)((uint8_t)head[4] << 8 | (uint8_t)head[5]);
    ck_assert_uint_eq(peer_receive(peer, content, *length), *length);
    (void)!peer_receive(peer, padding, (uint8_t)head[6]);
    return (uint8_t)head[1];
}

/* The bytes of a reply that were received. */
struct answer {
    char text[300000];
    size_t length;
    uint32_t application;
    uint8_t protocol;
};

/* Read the reply to a request, up to END_REQUEST, without its Date. False: the connection ended. */
static inline bool
take_answer(int peer, uint16_t id, struct answer *answer)
{
    static char content[65536];
    size_t length = 0;
    uint16_t found = 0;
    unsigned type;

    answer->length = 0;
    while ((type = next_record(peer, &found, content, &length)) != 0) {
        ck_assert_uint_eq(found, id);
        if (type == SXE_HTTP_FASTCGI_END_REQUEST)
            break;
        ck_assert_uint_eq(type, SXE_HTTP_FASTCGI_STDOUT);
        memcpy(answer->text + answer->length, content, length);
        answer->length += length;
    }
    answer->length = take_dates_out(answer->text, answer->length);
    answer->text[answer->length] = '\0';
    if (type != 0)
        sxe_http_fastcgi_get_end(content, &answer->application, &answer->protocol);
    return type != 0;
}

#define EXPECT_ANSWER(peer, id, expected) expect_answer(__FILE__, __LINE__, peer, id, expected, 0)
#define EXPECT_PROTOCOL(peer, id, status) expect_answer(__FILE__, __LINE__, peer, id, NULL, status)

/* Expect exactly this reply; NULL: no STDOUT, and END_REQUEST with that status of the protocol. */
static inline void
expect_answer(const char *file, int line, int peer, uint16_t id, const char *expected,
              unsigned protocol)
{
    static struct answer answer;

    if (!take_answer(peer, id, &answer))
        _ck_assert_failed(file, line, "the connection", "ends, after '%s'", answer.text);
    if (strcmp(answer.text, expected == NULL ? "" : expected) != 0 || answer.protocol != protocol)
        _ck_assert_failed(file, line, "the peer gets", "'%s', status %u, not '%s'", answer.text,
                          answer.protocol, expected == NULL ? "" : expected);
}

#endif
