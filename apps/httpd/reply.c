/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX   256
#define NS         UINT64_C(1000000000)
#define HELLO_BODY "Hello, World!\n"

/* What a reply says of the connection: nothing is 1.1's keep-alive. */
enum connection { SILENT, KEEP_ALIVE, CLOSE, CONNECTIONS };

static const char *const connection_line[CONNECTIONS] = {
    [SILENT] = "",
    [KEEP_ALIVE] = "Connection: keep-alive\r\n",
    [CLOSE] = "Connection: close\r\n",
};

struct text {
    char bytes[TEXT_MAX];
    unsigned length;
};

/* All state of the replies: valid until the wall clock's next second. */
static struct {
    uint64_t until_ns;
    char date[80];
    struct text hello[2][CONNECTIONS]; /* [is_head][connection] */
    struct text refusal;
} made;

/* IMF-fixdate (RFC 9110, 5.6.7), which is English whatever the locale. */
static void
format_date(char *text, size_t size, time_t now)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm;

    gmtime_r(&now, &tm);
    snprintf(text, size, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * tm.tm_wday,
             tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
             tm.tm_sec);
}

static void
make_hello(struct text *text, bool is_head, enum connection connection)
{
    text->length = (unsigned)snprintf(text->bytes, sizeof(text->bytes),
                                      "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: text/plain\r\n"
                                      "Content-Length: %zu\r\n%s\r\n%s",
                                      made.date, sizeof(HELLO_BODY) - 1,
                                      connection_line[connection], is_head ? "" : HELLO_BODY);
}

static void
make_all(uint64_t now_ns)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    format_date(made.date, sizeof(made.date), wall.tv_sec);
    made.until_ns = now_ns + NS - (uint64_t)wall.tv_nsec;
    for (unsigned is_head = 0; is_head < 2; is_head++) {
        for (unsigned i = 0; i < CONNECTIONS; i++)
            make_hello(&made.hello[is_head][i], is_head, (enum connection)i);
    }
}

static enum connection
connection_of(const struct httpd_request *request)
{
    if (!request->keep_alive)
        return CLOSE;
    return request->is_1_0 ? KEEP_ALIVE : SILENT;
}

struct httpd_reply
httpd_reply_hello(const struct httpd_request *request, uint64_t now_ns)
{
    const struct text *text = &made.hello[request->is_head][connection_of(request)];

    if (now_ns >= made.until_ns)
        make_all(now_ns);
    return (struct httpd_reply){text->bytes, text->length};
}

static const char *
reason(unsigned status)
{
    switch (status) {
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 431:
        return "Request Header Fields Too Large";
    case 501:
        return "Not Implemented";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Bad Request";
    }
}

struct httpd_reply
httpd_reply_refusal(unsigned status, uint64_t now_ns)
{
    struct text *text = &made.refusal;

    if (now_ns >= made.until_ns)
        make_all(now_ns);
    text->length = (unsigned)snprintf(text->bytes, sizeof(text->bytes),
                                      "HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Length: 0\r\n"
                                      "Connection: close\r\n\r\n",
                                      status, reason(status), made.date);
    return (struct httpd_reply){text->bytes, text->length};
}
