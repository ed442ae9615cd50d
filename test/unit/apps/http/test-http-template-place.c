/* SPDX-License-Identifier: MIT
 *
 * Placeholders: they are patched in place, and compared with a composer that writes each query
 * again.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pace.h"
#include "sxe-util.h"
#include "template.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define AGENT        "User-Agent: sxe-http/" SXE_VERSION "\r\nAccept: */*\r\n"

enum { ROOM = 4096, QUERIES = 300 };

/* ---- The slow composer ---- */

struct composed {
    char bytes[ROOM];
    size_t length;
};

static void
put(struct composed *composed, const char *text)
{
    int written = snprintf(composed->bytes + composed->length, ROOM - composed->length, "%s", text);

    composed->length += (size_t)written;
    ck_assert_uint_lt(composed->length, ROOM);
}

static void
put_seq(struct composed *composed, int width, uint64_t sequence)
{
    char text[64];

    snprintf(text, sizeof(text), "%060" PRIu64, sequence);
    put(composed, text + 60 - width);
}

static void
put_rand(struct composed *composed, const char *least, const char *greatest, uint64_t random[2])
{
    uint64_t first = strtoull(least, NULL, 10);
    uint64_t number = strtoull(greatest, NULL, 10) - first + 1;
    char text[64];

    snprintf(text, sizeof(text), "%0*" PRIu64, (int)strspn(greatest, "0123456789"),
             first + load_random_below(random, number));
    put(composed, text);
}

static void
put_uuid(struct composed *composed, uint64_t random[2])
{
    uint64_t high = load_random_below(random, UINT64_C(1) << 60);
    uint64_t low = load_random_below(random, UINT64_C(1) << 62);
    char text[64];

    snprintf(text, sizeof(text),
             "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 28,
             high >> 12 & 0xffff, high & 0xfff, 0x8000 | low >> 48, low & UINT64_C(0xffffffffffff));
    put(composed, text);
}

static void
compose(struct composed *composed, const char *text, uint64_t sequence, uint64_t random[2])
{
    composed->length = 0;
    while (*text != '\0') {
        char byte[2] = {*text};

        if (strncmp(text, "{SEQ}", 5) == 0) {
            put_seq(composed, 10, sequence);
        } else if (strncmp(text, "{SEQ:", 5) == 0) {
            put_seq(composed, (int)strtol(text + 5, NULL, 10), sequence);
        } else if (strncmp(text, "{RAND:", 6) == 0) {
            put_rand(composed, text + 6, strchr(text + 6, ':') + 1, random);
        } else if (strncmp(text, "{UUID}", 6) == 0) {
            put_uuid(composed, random);
        } else {
            put(composed, byte);
            text++;
            continue;
        }
        text = strchr(text, '}') + 1;
    }
}

/* ---- Comparison with a slow composer ---- */

static const struct {
    const char *target;
    const char *field; /* NULL: the request has no field */
    const char *body;  /* NULL: the request has no body */
    const char *result;
} patterns[] = {
    {"/{SEQ}", NULL, NULL, "GET /{SEQ} HTTP/1.1\r\nHost: h\r\n" AGENT "\r\n"},
    {"/{SEQ:1}/{SEQ:19}", NULL, NULL, "GET /{SEQ:1}/{SEQ:19} HTTP/1.1\r\nHost: h\r\n" AGENT "\r\n"},
    {"/{RAND:100:999}", NULL, NULL, "GET /{RAND:100:999} HTTP/1.1\r\nHost: h\r\n" AGENT "\r\n"},
    {"/{RAND:0:0}{RAND:7:10}{RAND:5:0099}", NULL, NULL,
     "GET /{RAND:0:0}{RAND:7:10}{RAND:5:0099} HTTP/1.1\r\nHost: h\r\n" AGENT "\r\n"},
    {"/{RAND:0:9999999999999999999}", NULL, NULL,
     "GET /{RAND:0:9999999999999999999} HTTP/1.1\r\nHost: h\r\n" AGENT "\r\n"},
    {"/?id={UUID}", NULL, NULL, "GET /?id={UUID} HTTP/1.1\r\nHost: h\r\n" AGENT "\r\n"},
    {"/", "X-Id:  a{UUID}b ", NULL, "GET / HTTP/1.1\r\nHost: h\r\n" AGENT "X-Id: a{UUID}b\r\n\r\n"},
    {"/", "Host: {RAND:1:9}.example.com", NULL,
     "GET / HTTP/1.1\r\nHost: {RAND:1:9}.example.com\r\n" AGENT "\r\n"},
    {"/", NULL, "{\"n\":{SEQ:8},\"u\":\"{UUID}\"}",
     "POST / HTTP/1.1\r\nHost: h\r\n" AGENT
     "Content-Length: 57\r\n\r\n{\"n\":{SEQ:8},\"u\":\"{UUID}\"}"},
    {"/{SEQ}?{RAND:1:1000}", "X: {RAND:1:9}{SEQ:3}{UUID}{RAND:1:6}", "{UUID}{SEQ}{SEQ}{SEQ:2}",
     "POST /{SEQ}?{RAND:1:1000} HTTP/1.1\r\nHost: h\r\n" AGENT
     "X: {RAND:1:9}{SEQ:3}{UUID}{RAND:1:6}\r\nContent-Length: 58\r\n\r\n"
     "{UUID}{SEQ}{SEQ}{SEQ:2}"},
};

static struct load_requests *
make(unsigned i)
{
    const struct load_template_options options = {
        .method = patterns[i].body == NULL ? "GET" : "POST",
        .fields = &patterns[i].field,
        .fields_number = patterns[i].field != NULL,
        .body = patterns[i].body,
        .body_length = patterns[i].body == NULL ? 0 : strlen(patterns[i].body)};
    struct load_requests *requests = load_templates_new(&options);
    const char *wrong = load_templates_add(requests, "h", patterns[i].target, "name");

    ck_assert_msg(wrong == NULL, "%s", wrong);
    return requests;
}

/* Small numbers, and numbers with more digits than the placeholder has. */
static uint64_t
sequence_of(unsigned i)
{
    return i < QUERIES / 2 ? i : UINT64_C(0x0123456789abcdef) * i;
}

START_TEST(patched_queries_are_what_a_slow_composer_writes)
{
    struct load_requests *requests = make((unsigned)_i);
    struct load_query query;
    struct composed wanted;
    uint64_t random[2];

    ck_assert_int_eq(requests->begin(requests, 2, 3, 99), 0);
    load_random_init(random, ~UINT64_C(99) + 2);
    for (unsigned i = 0; i < QUERIES; i++) {
        ck_assert_int_eq(requests->next(requests, sequence_of(i), &query), 0);
        compose(&wanted, patterns[_i].result, sequence_of(i), random);
        if (query.length != wanted.length || memcmp(query.bytes, wanted.bytes, query.length) != 0)
            ck_abort_msg("is\n%.*s\nwanted\n%s", (int)query.length, query.bytes, wanted.bytes);
    }
    load_templates_free(requests);
}
END_TEST

/* ---- Values ---- */

static struct load_requests *
make_target(const char *target)
{
    const struct load_template_options options = {.method = "GET"};
    struct load_requests *requests = load_templates_new(&options);

    ck_assert_ptr_null(load_templates_add(requests, "h", target, "name"));
    ck_assert_int_eq(requests->begin(requests, 0, 1, 5), 0);
    return requests;
}

static const char *
value_of(struct load_requests *requests, uint64_t sequence, unsigned length)
{
    static char value[64];
    struct load_query query;

    ck_assert_int_eq(requests->next(requests, sequence, &query), 0);
    snprintf(value, sizeof(value), "%.*s", (int)length, query.bytes + strlen("GET /"));
    return value;
}

START_TEST(every_value_of_a_range_comes_up)
{
    struct load_requests *requests = make_target("/{RAND:95:104}");
    unsigned seen[10] = {0};

    for (unsigned i = 0; i < 1000; i++) {
        int value = (int)strtol(value_of(requests, i, 3), NULL, 10);

        ck_assert(value >= 95 && value <= 104);
        seen[value - 95]++;
    }
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_gt(seen[i], 50);
    load_templates_free(requests);
}
END_TEST

START_TEST(a_uuid_has_the_bits_of_rfc_9562)
{
    struct load_requests *requests = make_target("/{UUID}");
    char before[64] = "";

    for (unsigned i = 0; i < 100; i++) {
        const char *uuid = value_of(requests, i, 36);

        for (unsigned k = 0; k < 36; k++)
            ck_assert(k == 8 || k == 13 || k == 18 || k == 23
                          ? uuid[k] == '-'
                          : isxdigit((unsigned char)uuid[k]) && !isupper((unsigned char)uuid[k]));
        ck_assert_int_eq(uuid[14], '4');
        ck_assert_ptr_nonnull(strchr("89ab", uuid[19]));
        ck_assert_str_ne(uuid, before);
        snprintf(before, sizeof(before), "%s", uuid);
    }
    load_templates_free(requests);
}
END_TEST

START_TEST(workers_have_other_numbers_and_the_same_ones_again)
{
    struct load_requests *requests = make_target("/{RAND:0:999999999}");
    char first[64];

    snprintf(first, sizeof(first), "%s", value_of(requests, 0, 9));
    ck_assert_int_eq(requests->begin(requests, 1, 2, 5), 0);
    ck_assert_str_ne(value_of(requests, 0, 9), first);
    ck_assert_int_eq(requests->begin(requests, 0, 2, 6), 0);
    ck_assert_str_ne(value_of(requests, 0, 9), first);
    ck_assert_int_eq(requests->begin(requests, 0, 2, 5), 0);
    ck_assert_str_eq(value_of(requests, 0, 9), first);
    load_templates_free(requests);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-template-place");
    TCase *tcase = tcase_create("place");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, patched_queries_are_what_a_slow_composer_writes, 0, COUNT(patterns));
    tcase_add_test(tcase, every_value_of_a_range_comes_up);
    tcase_add_test(tcase, a_uuid_has_the_bits_of_rfc_9562);
    tcase_add_test(tcase, workers_have_other_numbers_and_the_same_ones_again);
    return sxe_test_main(suite);
}
