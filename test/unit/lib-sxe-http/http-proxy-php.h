/* SPDX-License-Identifier: MIT
 *
 * What: an application that speaks FastCGI, which the test plays behind the proxy: it reads a whole
 * request, and writes a reply record by record. `asked` has the last request.
 *
 * Example:
 *     serve_fastcgi(plain, 1);
 *     say(peer, GET("/"));
 *     int server = take_asked(0);
 *     EXPECT_PARAM("REQUEST_METHOD", "GET");
 *     put_out(server, "Content-Length: 0\n\n");
 *     put_end(server);
 */
#ifndef HTTP_PROXY_PHP_H
#define HTTP_PROXY_PHP_H

#include "http-proxy-site.h"

#include "capture-log.h"

static const struct sxe_http_upstream_config plain = {.name = "php", .fastcgi = true};
static const struct sxe_http_upstream_config keeping = {
    .name = "php", .fastcgi = true, .fastcgi_keep = true};

static struct {
    char bytes[100000]; /* the records of the request as they came */
    size_t length;
    char params[70000];
    size_t params_length;
    char input[70000];
    size_t input_length;
    uint16_t id;
    bool keep;
    bool is_whole;
    char value[70000];
} asked;

static inline void
take_record(const struct sxe_http_fastcgi *reader, struct sxe_span content)
{
    uint16_t role;

    if (reader->type == SXE_HTTP_FASTCGI_BEGIN_REQUEST) {
        asked.id = reader->id;
        sxe_http_fastcgi_get_begin(content.base, &role, &asked.keep);
        ck_assert_uint_eq(role, SXE_HTTP_FASTCGI_RESPONDER);
    } else if (reader->type == SXE_HTTP_FASTCGI_PARAMS) {
        memcpy(asked.params + asked.params_length, content.base, content.length);
        asked.params_length += content.length;
    } else {
        ck_assert_uint_eq(reader->type, SXE_HTTP_FASTCGI_STDIN);
        memcpy(asked.input + asked.input_length, content.base, content.length);
        asked.input_length += content.length;
        asked.is_whole = reader->length == 0;
    }
    ck_assert_uint_eq(reader->id, asked.id);
}

/* Read a whole request. */
static inline void
read_asked(int server)
{
    struct sxe_http_fastcgi reader;
    struct sxe_span content;
    size_t at = 0;

    memset(&asked, 0, sizeof(asked));
    sxe_http_fastcgi_init(&reader, SXE_HTTP_FASTCGI_OF_CLIENT);
    for (unsigned i = 0; i < WAIT_TURNS && !asked.is_whole; i++) {
        ssize_t n = recv(server, asked.bytes + asked.length, sizeof(asked.bytes) - asked.length,
                         MSG_DONTWAIT);

        asked.length += n > 0 ? (size_t)n : 0;
        while ((n = sxe_http_fastcgi_read(&reader, asked.bytes + at, asked.length - at, &content)) >
               0) {
            take_record(&reader, content);
            at += (size_t)n;
        }
        ck_assert_int_eq(n, 0);
        turn(1);
    }
    ck_assert(asked.is_whole);
    ck_assert_uint_eq(at, asked.length);
}

static inline int
take_asked(unsigned index)
{
    int server = accept_proxy(index);

    read_asked(server);
    return server;
}

/* The value of a parameter, "-" if it did not come. A parameter may come only once. */
static inline const char *
param(const char *wanted)
{
    struct sxe_span name;
    struct sxe_span value;
    ssize_t n;

    memcpy(asked.value, "-", 2);
    for (size_t at = 0; at < asked.params_length; at += (size_t)n) {
        n = sxe_http_fastcgi_pair(asked.params + at, asked.params_length - at, &name, &value);
        ck_assert_int_gt(n, 0);
        if (name.length == strlen(wanted) && memcmp(name.base, wanted, name.length) == 0) {
            ck_assert_str_eq(asked.value, "-");
            memcpy(asked.value, value.base, value.length);
            asked.value[value.length] = '\0';
        }
    }
    return asked.value;
}

#define EXPECT_PARAM(name, value) ck_assert_str_eq(param(name), value)

static inline void
send_record(int server, unsigned type, unsigned id, const char *content, size_t length,
            unsigned padding)
{
    static const char zeros[256];
    char head[8];

    sxe_http_fastcgi_put_head(head, (enum sxe_http_fastcgi_type)type, (uint16_t)id,
                              (uint16_t)length, (uint8_t)padding);
    peer_send(server, head, sizeof(head));
    peer_send(server, content, length);
    peer_send(server, zeros, padding);
    turn(3);
}

static inline void
put_out(int server, const char *text)
{
    send_record(server, SXE_HTTP_FASTCGI_STDOUT, asked.id, text, strlen(text), 3);
}

static inline void
put_end(int server)
{
    send_record(server, SXE_HTTP_FASTCGI_END_REQUEST, asked.id, "\0\0\0\0\0\0\0\0", 8, 0);
}

static inline void
serve_fastcgi(struct sxe_http_upstream_config config, unsigned number)
{
    serve_proxy(config, number);
    capture_log();
}

/* Start the server, and send it a request. Returns the application's connection, which has read the
 * request; *peer becomes the client's. */
static inline int
take_first(struct sxe_http_upstream_config config, const char *request, int *peer)
{
    serve_fastcgi(config, 1);
    *peer = client();
    say(*peer, request);
    return take_asked(0);
}

static inline void
end_both(int peer, int server)
{
    close(server);
    close(peer);
    end_proxy();
}

#endif
