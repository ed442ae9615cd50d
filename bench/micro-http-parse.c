/* SPDX-License-Identifier: MIT
 *
 * Measures parsing a head, in one run: with our parser, in each way in which it can scan, with
 * http-parser, and with llhttp.
 *
 * All parsers record the target and the fields as spans, and tell where the body ends and whether
 * the connection stays open; ours also checks the target and the host. The time includes preparing
 * the parser for the next message. "silent" is a peer without any callback, which finds nothing but
 * errors. Each figure is the best of several rounds. Rounds of all parsers take turns, so that a
 * busy moment affects all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib-sxe-http/parse/sxe-http-private.h"
#include "../test/oracle/http-peers.h"
#include "sxe-time.h"

enum { ROUNDS = 40, ROUND_BYTES = 1 << 20, WAYS = 3, REQUEST_MAX = 8192 };

#define LEAST_REQUEST "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"
#define CURL_REQUEST               \
    "GET /index.html HTTP/1.1\r\n" \
    "Host: 127.0.0.1:8000\r\n"     \
    "User-Agent: curl/7.88.1\r\n"  \
    "Accept: */*\r\n\r\n"
#define BROWSER_FIELDS                                                                            \
    "Host: www.example.com\r\n"                                                                   \
    "Connection: keep-alive\r\n"                                                                  \
    "Cache-Control: max-age=0\r\n"                                                                \
    "sec-ch-ua: \"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\"\r\n"                             \
    "Upgrade-Insecure-Requests: 1\r\n"                                                            \
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "         \
    "Chrome/124.0.0.0 Safari/537.36\r\n"                                                          \
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*\r\n" \
    "Sec-Fetch-Site: same-origin\r\n"                                                             \
    "Referer: https://www.example.com/articles/2024/\r\n"                                         \
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"                                                \
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
#define BROWSER_LINE "GET /articles/2024/the-reader-comes-first?page=2 HTTP/1.1\r\n"
#define BROWSER_COOKIE                                            \
    "Cookie: session=5f2b7c91d0e84a6f; theme=dark; consent=yes; " \
    "_ga=GA1.1.1029384756.1714060800; campaign=newsletter-17\r\n"

static char large[REQUEST_MAX];
static struct sxe_http_field fields[100];

/* Make a request of 4 KB: the browser's request, with more fields of medium size and a long
 * cookie. */
static void
make_large(void)
{
    int used = snprintf(large, sizeof(large), "%s%s", BROWSER_LINE, BROWSER_FIELDS);

    for (unsigned i = 0; i < 20; i++)
        used += snprintf(large + used, sizeof(large) - (size_t)used,
                         "X-Forwarded-Detail-%u: trace=%08x; hop=%u; region=eu-central-1\r\n", i,
                         i * 2654435761u, i);
    used += snprintf(large + used, sizeof(large) - (size_t)used, "Cookie: token=");
    for (; used < 4096 - 4; used++)
        large[used] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[used % 64];
    memcpy(large + used, "\r\n\r\n", 5);
}

static void
parse_ours(const char *data, size_t length, size_t times)
{
    struct sxe_http_parser parser;

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, 100, NULL);
    for (size_t i = 0; i < times; i++) {
        sxe_http_parser_next(&parser);
        if (sxe_http_parse(&parser, data, length) != (int)length)
            abort();
    }
}

/* A parser that is measured: ours with these features of the CPU, or that of a peer. */
struct contestant {
    const char *name;
    unsigned features;
    const struct http_peer *peer;
    bool silent;
    double best_ns;
};

static double
measure(const struct contestant *one, const char *data, size_t length)
{
    size_t times = ROUND_BYTES / length;
    uint64_t began = sxe_time_ns();

    if (one->peer == NULL)
        parse_ours(data, length, times);
    else if (one->silent)
        one->peer->repeat_silently(data, length, times);
    else if (one->peer->repeat(data, length, times) < times)
        abort();
    return (double)(sxe_time_ns() - began) / (double)times;
}

static void
compete(const char *title, const char *data, struct contestant *all, size_t number)
{
    size_t length = strlen(data);
    double fastest_peer = 0;

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < number; i++) {
            double ns;
            if (all[i].peer == NULL)
                sxe__http_scan_choose(all[i].features);
            ns = measure(&all[i], data, length);
            if (round == 0 || ns < all[i].best_ns)
                all[i].best_ns = ns;
        }
    }
    printf("%s, %zu bytes\n", title, length);
    for (size_t i = 0; i < number; i++) {
        printf("    %-22s %8.1f ns %8.2f GB/s\n", all[i].name, all[i].best_ns,
               (double)length / all[i].best_ns);
        if (all[i].peer != NULL && !all[i].silent &&
            (fastest_peer <= 0 || all[i].best_ns < fastest_peer))
            fastest_peer = all[i].best_ns;
    }
    if (fastest_peer > 0)
        printf("    %-22s %8.2f times\n", "ours, to the faster", fastest_peer / all[0].best_ns);
}

int
main(void)
{
    struct contestant all[WAYS + 2 * HTTP_PEERS] = {
        {.name = "sxe-http", .features = SXE__HTTP_AVX2 | SXE__HTTP_SSE42},
        {.name = "sxe-http, SSE4.2", .features = SXE__HTTP_SSE42},
        {.name = "sxe-http, plain C"},
    };
    static const char *const silent[] = {"http-parser, silent", "llhttp, silent"};
    size_t number = WAYS;

    for (size_t i = 0; i < WAYS; i++)
        all[i].features &= sxe__http_scan_features();
    for (unsigned i = 0; i < HTTP_PEERS; i++) {
        const struct http_peer *peer = http_peer(i);
        if (peer == NULL) {
            printf("skipped: %s is not installed\n", http_peer_package(i));
            continue;
        }
        all[number++] = (struct contestant){.name = peer->name, .peer = peer};
        all[number++] = (struct contestant){.name = silent[i], .peer = peer, .silent = true};
    }
    make_large();
    compete("least", LEAST_REQUEST, all, number);
    compete("short (curl's)", CURL_REQUEST, all, number);
    compete("browser", BROWSER_LINE BROWSER_FIELDS BROWSER_COOKIE "\r\n", all, number);
    compete("large", large, all, number);
    return EXIT_SUCCESS;
}
