/* SPDX-License-Identifier: MIT
 *
 * Chunked bodies, cut in two at every place.
 */
#include "http-case.h"

#include "sxe-http-chunk.h"
#include "test-main.h"

/* A body as text:  data "hello" [Trailer: x] done rest 3   or   data "he" REFUSAL@5 */
struct body {
    char data[1024];
    size_t length;
};

#define CHUNKS(title, bytes, expected)                          \
    {                                                           \
        title, HTTP_TRAILER, bytes, sizeof(bytes) - 1, expected \
    }

static const struct http_case cases[] = {
    CHUNKS("9112 7.1: one chunk", "5\r\nhello\r\n0\r\n\r\n", "hello| done"),
    CHUNKS("9112 7.1: two chunks", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world| done"),
    CHUNKS("9112 7.1: no data", "0\r\n\r\n", "| done"),
    CHUNKS("9112 7.1: zeros in front", "0005\r\nhello\r\n000\r\n\r\n", "hello| done"),
    CHUNKS("9112 7.1: digits of both cases", "a\r\n0123456789\r\nA\r\nABCDEFGHIJ\r\n0\r\n\r\n",
           "0123456789ABCDEFGHIJ| done"),
    CHUNKS("9112 7.1: two digits", "1f\r\n0123456789012345678901234567890\r\n0\r\n\r\n",
           "0123456789012345678901234567890| done"),
    CHUNKS("9112 7.1: data may be anything", "8\r\n\r\n0\r\n\r\n;\r\n0\r\n\r\n",
           "\r\n0\r\n\r\n;| done"),
    CHUNKS("9112 7.1: what follows is the next message's", "0\r\n\r\nGET", "| done rest 3"),
    CHUNKS("9112 7.1: nothing", "", "| more"),
    CHUNKS("9112 7.1: a size and no more", "5", "| more"),
    CHUNKS("9112 7.1: a line and no more", "5\r\n", "| more"),
    CHUNKS("9112 7.1: half of the data", "5\r\nhe", "he| more"),
    CHUNKS("9112 7.1: data without its end", "5\r\nhello", "hello| more"),
    CHUNKS("9112 7.1: no last chunk", "5\r\nhello\r\n", "hello| more"),
    CHUNKS("9112 7.1: no empty line", "0\r\n", "| more"),
    CHUNKS("9112 7.1: half an empty line", "0\r\n\r", "| more"),
    CHUNKS("9112 7.1: the size is missing", "\r\nhello", "| BAD_CHUNK_SIZE@0"),
    CHUNKS("9112 7.1: the size is a blank", " 5\r\nhello", "| BAD_CHUNK_SIZE@0"),
    CHUNKS("9112 7.1: the size has a sign", "+5\r\nhello", "| BAD_CHUNK_SIZE@0"),
    CHUNKS("9112 7.1: the size is negative", "-1\r\nhello", "| BAD_CHUNK_SIZE@0"),
    CHUNKS("9112 7.1: the size begins with 0x", "0x5\r\nhello", "| BAD_CHUNK_SIZE@1"),
    CHUNKS("9112 7.1: the size is no digit", "g\r\n", "| BAD_CHUNK_SIZE@0"),
    CHUNKS("9112 7.1: junk after the size", "5g\r\nhello", "| BAD_CHUNK_SIZE@1"),
    CHUNKS("9112 7.1: a NUL after the size", "5\0\r\nhello", "| BAD_CHUNK_SIZE@1"),
    CHUNKS("9112 7.1: an underscore in the size", "1_0\r\nhello", "| BAD_CHUNK_SIZE@1"),
    CHUNKS("9112 7.1: an empty extension alone", ";a\r\nhello", "| BAD_CHUNK_SIZE@0"),
    CHUNKS("9112 7.1: the greatest size", "ffffffffffffffff\r\nx", "x| more"),
    CHUNKS("9112 7.1: one digit more", "10000000000000000\r\nx", "| CHUNK_TOO_LARGE@16"),
    CHUNKS("9112 7.1: one digit more, all f", "fffffffffffffffff\r\nx", "| CHUNK_TOO_LARGE@16"),
    CHUNKS("9112 7.1: zeros do not count", "00000000000000000001\r\nx\r\n0\r\n\r\n", "x| done"),
    CHUNKS("9112 2.2: a bare LF after the size", "5\nhello", "| BAD_CHUNK_SIZE@1"),
    CHUNKS("9112 2.2: a bare CR after the size", "5\rhello", "| BARE_CR@2"),
    CHUNKS("9112 2.2: CR CR LF after the size", "5\r\r\nhello", "| BARE_CR@2"),
    CHUNKS("9112 7.1: no end of the data", "5\r\nhello0\r\n\r\n", "hello| BAD_CHUNK_END@8"),
    CHUNKS("9112 7.1: a bare LF after the data", "5\r\nhello\n0\r\n\r\n", "hello| BAD_CHUNK_END@8"),
    CHUNKS("9112 7.1: a bare CR after the data", "5\r\nhello\r0\r\n\r\n", "hello| BAD_CHUNK_END@9"),
    CHUNKS("9112 7.1: a size too small", "4\r\nhello\r\n", "hell| BAD_CHUNK_END@7"),
    CHUNKS("9112 7.1: a size too large", "6\r\nhello\r\n0\r\n", "hello\r| BAD_CHUNK_END@9"),
    CHUNKS("9112 7.1.1: an extension", "5;a\r\nhello\r\n0\r\n\r\n", "hello| done"),
    CHUNKS("9112 7.1.1: with a value", "5;a=b\r\nhello\r\n0\r\n\r\n", "hello| done"),
    CHUNKS("9112 7.1.1: of the last chunk", "0;a=b\r\n\r\n", "| done"),
    CHUNKS("9112 7.1.1: more than one", "1;a=b;c;d=e\r\nx\r\n0\r\n\r\n", "x| done"),
    CHUNKS("9112 7.1.1: quoted", "1;a=\"b;c\r\x7f\"\r\nx", "| BAD_CHUNK_EXTENSION@8"),
    CHUNKS("9112 7.1.1: quoted ; and blanks", "1;a=\"b; c\t\";d\r\nx\r\n0\r\n\r\n", "x| done"),
    CHUNKS("9110 5.6.4: an escaped quote", "1;a=\"\\\"\\\\\"\r\nx\r\n0\r\n\r\n", "x| done"),
    CHUNKS("9110 5.6.4: bytes from 0x80 on in quotes", "1;a=\"\xc3\xa9\\\xff\"\r\nx\r\n0\r\n\r\n",
           "x| done"),
    CHUNKS("9110 5.6.4: nothing in quotes", "1;a=\"\"\r\nx\r\n0\r\n\r\n", "x| done"),
    CHUNKS("9110 5.6.4: an escaped CR", "1;a=\"\\\r\"\r\nx", "| BAD_CHUNK_EXTENSION@6"),
    CHUNKS("9110 5.6.4: an LF in quotes", "1;a=\"\n\"\r\nx", "| BAD_CHUNK_EXTENSION@5"),
    CHUNKS("9110 5.6.4: a NUL in quotes", "1;a=\"\0\"\r\nx", "| BAD_CHUNK_EXTENSION@5"),
    CHUNKS("9110 5.6.4: a DEL in quotes", "1;a=\"\x7f\"\r\nx", "| BAD_CHUNK_EXTENSION@5"),
    CHUNKS("9110 5.6.4: junk after quotes", "1;a=\"b\"c\r\nx", "| BAD_CHUNK_EXTENSION@7"),
    CHUNKS("9112 7.1.1: blanks around ; and =", "1 \t; a\t=  b ;c ; d = \"e\" ;f\r\nx\r\n0\r\n\r\n",
           "x| done"),
    CHUNKS("9112 7.1.1: a blank after the size alone", "1 \r\nx", "| BAD_CHUNK_EXTENSION@2"),
    CHUNKS("9112 7.1.1: a blank after a name alone", "1;a \r\nx", "| BAD_CHUNK_EXTENSION@4"),
    CHUNKS("9112 7.1.1: a blank after a value alone", "1;a=b \r\nx", "| BAD_CHUNK_EXTENSION@6"),
    CHUNKS("9112 7.1.1: a blank and no ;", "1 a\r\nx", "| BAD_CHUNK_EXTENSION@2"),
    CHUNKS("9112 7.1.1: two digits apart", "1 0\r\nx", "| BAD_CHUNK_EXTENSION@2"),
    CHUNKS("9112 7.1.1: no name", "1;\r\nx", "| BAD_CHUNK_EXTENSION@2"),
    CHUNKS("9112 7.1.1: no name but a value", "1;=b\r\nx", "| BAD_CHUNK_EXTENSION@2"),
    CHUNKS("9112 7.1.1: no value", "1;a=\r\nx", "| BAD_CHUNK_EXTENSION@4"),
    CHUNKS("9112 7.1.1: two =", "1;a=b=c\r\nx", "| BAD_CHUNK_EXTENSION@5"),
    CHUNKS("9112 7.1.1: two names", "1;a b\r\nx", "| BAD_CHUNK_EXTENSION@4"),
    CHUNKS("9112 7.1.1: two values", "1;a=b c\r\nx", "| BAD_CHUNK_EXTENSION@6"),
    CHUNKS("9112 7.1.1: a bare LF after an extension", "1;a\nx", "| BAD_CHUNK_EXTENSION@3"),
    CHUNKS("9112 7.1.1: a bare CR after an extension", "1;a\rx", "| BARE_CR@4"),
    CHUNKS("9112 7.1.1: a bare LF after a value", "1;a=b\nx", "| BAD_CHUNK_EXTENSION@5"),
    CHUNKS("9112 7.1.1: a NUL in a name", "1;a\0\r\nx", "| BAD_CHUNK_EXTENSION@3"),
    CHUNKS("9112 7.1.2: a trailer", "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "x| [A: b] [C: d] done"),
    CHUNKS("9112 7.1.2: a trailer, and what follows", "0\r\nA: b\r\n\r\nGET",
           "| [A: b] done rest 3"),
    CHUNKS("9112 7.1.2: half a trailer", "0\r\nA: b\r\n", "| more"),
    CHUNKS("9112 7.1.2: a bare LF in a trailer", "1\r\nx\r\n0\r\nA: b\n\r\n", "x| BARE_LF@13"),
    CHUNKS("9112 5.2: a trailer that goes on", "0\r\nA: b\r\n c\r\n\r\n", "| FOLDED_LINE@9"),
    CHUNKS("9112 5.1: a blank before its colon", "0\r\nA : b\r\n\r\n", "| BLANK_BEFORE_COLON@4"),
    CHUNKS("9112 7.1: data where a trailer is", "0\r\nhello", "| more"),
    CHUNKS("9112 7.1: data where a trailer is, seen at its end", "0\r\nhello\r\n", "| BAD_NAME@8"),
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static struct sxe_http_field fields[8];

/* Read as a server does: `length` bytes have come, `taken` of them were consumed before. */
static ssize_t
read_available(struct sxe_http_chunks *chunks, struct body *body, const char *data, size_t length)
{
    struct sxe_span span;
    ssize_t n = 0;
    size_t taken = 0;

    while (!chunks->done &&
           (n = sxe_http_chunks_read(chunks, data + taken, length - taken, &span)) > 0) {
        ck_assert(span.length == 0 ||
                  (span.base >= data + taken && span.base + span.length == data + taken + n));
        memcpy(body->data + body->length, span.base, span.length);
        body->length += span.length;
        taken += (size_t)n;
    }
    return n < 0 ? n : (ssize_t)taken;
}

static void
describe(struct http_case_text *out, const struct sxe_http_chunks *chunks, const struct body *body,
         const char *trailer, size_t rest)
{
    out->length = 0;
    http_case_say(out, "%.*s|", (int)body->length, body->data);
    if (chunks->refusal != SXE_HTTP_NOT_REFUSED) {
        http_case_say(out, " %s@%llu", http_case_refusals[chunks->refusal],
                      (unsigned long long)chunks->taken);
        return;
    }
    for (unsigned i = 0; chunks->done && i < chunks->trailer.number; i++)
        http_case_say(out, " [%.*s: %.*s]", fields[i].name_length, trailer + fields[i].name,
                      fields[i].value_length, trailer + fields[i].value);
    http_case_say(out, chunks->done ? " done" : " more");
    if (rest > 0)
        http_case_say(out, " rest %zu", rest);
}

static void
feed(struct http_case_text *out, const struct http_case *test, size_t first, size_t step,
     const struct sxe_http_limits *limits)
{
    struct sxe_http_chunks chunks;
    struct body body = {"", 0};
    struct sxe_span span;
    size_t taken = 0;
    size_t length = first;
    const char *trailer;
    ssize_t n;

    sxe_http_chunks_init(&chunks, fields, 8, limits);
    for (;;) {
        const char *data = http_case_at_edge(test->bytes + taken, length - taken);
        n = read_available(&chunks, &body, data, length - taken);
        ck_assert_int_le(n, (ssize_t)(length - taken));
        taken += n > 0 ? (size_t)n : 0;
        if (n < 0 || chunks.done || length == test->length)
            break;
        length = length + step < test->length ? length + step : test->length;
    }
    trailer = test->bytes + taken - (chunks.done ? chunks.trailer.at : 0);
    describe(out, &chunks, &body, trailer, chunks.done ? test->length - taken : 0);
    ck_assert(chunks.refusal != SXE_HTTP_NOT_REFUSED || chunks.taken == taken);
    if (chunks.done || n < 0)
        ck_assert_int_eq(sxe_http_chunks_read(&chunks, "5\r\n", 3, &span), n < 0 ? -1 : 0);
}

static void
run(const struct http_case *test, const struct sxe_http_limits *limits)
{
    struct http_case_text out;

    for (size_t first = 0; first <= test->length; first++) {
        feed(&out, test, first, test->length + 1, limits);
        ck_assert_msg(strcmp(out.text, test->expected) == 0,
                      "%s, cut at %zu:\n  is     %s\n  wanted %s", test->title, first, out.text,
                      test->expected);
    }
    for (size_t step = 1; step < 4; step++) {
        feed(&out, test, 0, step, limits);
        ck_assert_msg(strcmp(out.text, test->expected) == 0,
                      "%s, by %zu:\n  is     %s\n  wanted %s", test->title, step, out.text,
                      test->expected);
    }
}

START_TEST(each_body_means_what_the_rfc_says)
{
    run(&cases[_i], NULL);
}
END_TEST

static const struct sxe_http_limits small = {8, 16, 2};
static const struct http_case limited[] = {
    CHUNKS("a line as long as may be", "1;a=b5\r\nx\r\n0\r\n\r\n", "x| done"),
    CHUNKS("a line one byte too long", "1;a=b56\r\nx\r\n0\r\n\r\n", "| CHUNK_LINE_TOO_LONG@8"),
    CHUNKS("zeros without an end", "00000000000000000001\r\n", "| CHUNK_LINE_TOO_LONG@8"),
    CHUNKS("extensions without data",
           "1;abcd\r\nx\r\n1;abcd\r\nx\r\n1;abcd\r\nx\r\n1;abcd\r\nx\r\n",
           "xxx| CHUNK_OVERHEAD@39"),
    CHUNKS("extensions with data",
           "9;abcd\r\n123456789\r\n9;abcd\r\n123456789\r\n9;abcd\r\n123456789\r\n"
           "9;abcd\r\n123456789\r\n0\r\n\r\n",
           "123456789123456789123456789123456789| done"),
    CHUNKS("a trailer as long as may be", "0\r\nA: 4567890\r\n\r\n", "| [A: 4567890] done"),
    CHUNKS("a trailer as long as may be, 16 bytes", "0\r\nA: 456789012\r\n\r\n",
           "| [A: 456789012] done"),
    CHUNKS("a trailer one byte too long", "0\r\nA: 4567890123\r\n\r\n", "| HEAD_TOO_LARGE@19"),
    CHUNKS("as many fields as may be", "0\r\nA:\r\nB:\r\n\r\n", "| [A: ] [B: ] done"),
    CHUNKS("one field too many", "0\r\nA:\r\nB:\r\nC:\r\n\r\n", "| TOO_MANY_FIELDS@11"),
};

START_TEST(limits_hold_at_every_split)
{
    run(&limited[_i], &small);
}
END_TEST

/* The length of a chunk's line must not wrap at 16 bits. */
START_TEST(the_widest_limit_is_one)
{
    static const struct sxe_http_limits wide = {65535, 65535, 255};
    static char zeros[70000];
    struct sxe_http_chunks chunks;
    struct sxe_span span;

    memset(zeros, '0', sizeof(zeros));
    sxe_http_chunks_init(&chunks, NULL, 0, &wide);
    ck_assert_int_eq(sxe_http_chunks_read(&chunks, zeros, sizeof(zeros), &span), -1);
    ck_assert_uint_eq(chunks.refusal, SXE_HTTP_REFUSED_CHUNK_LINE_TOO_LONG);
    ck_assert_uint_eq(chunks.taken, 65535);
}
END_TEST

START_TEST(a_trailer_may_be_forgotten)
{
    static const char data[] = "0\r\nA: b\r\nA: c\r\n\r\n";
    struct sxe_http_chunks chunks;
    struct sxe_span span;

    sxe_http_chunks_init(&chunks, NULL, 0, NULL);
    ck_assert_int_eq(sxe_http_chunks_read(&chunks, data, sizeof(data) - 1, &span),
                     sizeof(data) - 1);
    ck_assert(chunks.done);
    ck_assert_uint_eq(chunks.trailer.number, 2);
}
END_TEST

/* A random body in chunks of random sizes must come out unchanged. */
START_TEST(random_bodies_come_out_as_they_went_in)
{
    static char sent[600], data[8192];
    struct sxe_http_chunks chunks;
    struct body body = {"", 0};
    size_t length = 0;
    size_t at = 0;
    size_t taken = 0;

    srand((unsigned)_i + 1);
    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (char)rand();
    while (at < sizeof(sent)) {
        size_t size = (size_t)rand() % 50 + 1;
        size = size < sizeof(sent) - at ? size : sizeof(sent) - at;
        length += (size_t)snprintf(data + length, sizeof(data) - length,
                                   rand() % 2 ? "%zx\r\n" : "%zX;a=\"b\"\r\n", size);
        memcpy(data + length, sent + at, size);
        memcpy(data + length + size, "\r\n", 2);
        length += size + 2;
        at += size;
    }
    length += (size_t)snprintf(data + length, sizeof(data) - length, "0\r\n\r\n");
    sxe_http_chunks_init(&chunks, NULL, 0, NULL);
    for (size_t end = 0; end < length;) {
        end = end + (size_t)rand() % 40 < length ? end + (size_t)rand() % 40 : length;
        end = end < taken ? taken : end;
        taken += (size_t)read_available(&chunks, &body,
                                        http_case_at_edge(data + taken, end - taken), end - taken);
    }
    ck_assert(chunks.done);
    ck_assert_uint_eq(taken, length);
    ck_assert_uint_eq(body.length, sizeof(sent));
    ck_assert_mem_eq(body.data, sent, sizeof(sent));
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-chunk");
    TCase *bodies = tcase_create("bodies");
    TCase *limits = tcase_create("limits");

    tcase_add_loop_test(bodies, each_body_means_what_the_rfc_says, 0, CASES);
    tcase_add_test(bodies, a_trailer_may_be_forgotten);
    tcase_add_loop_test(bodies, random_bodies_come_out_as_they_went_in, 0, 50);
    tcase_add_loop_test(limits, limits_hold_at_every_split, 0,
                        sizeof(limited) / sizeof(limited[0]));
    tcase_add_test(limits, the_widest_limit_is_one);
    suite_add_tcase(suite, bodies);
    suite_add_tcase(suite, limits);
    return sxe_test_main(suite);
}
