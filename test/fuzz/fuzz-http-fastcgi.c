/* SPDX-License-Identifier: MIT
 *
 * Records of FastCGI, and pairs of names and values. The first byte chooses the side, the second
 * one how the bytes are cut. A slow reader of whole inputs (test/oracle/fastcgi-oracle.h) must find
 * the same, and a pair that is written again must be read again.
 */
#include <stdlib.h>

#include "fastcgi-oracle.h"
#include "sxe-http-fastcgi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 8192 };

static void
check(bool is_good, const char *what)
{
    if (!is_good) {
        fprintf(stderr, "%s differs\n", what);
        abort();
    }
}

static void
say_record(struct fastcgi_text *out, const struct sxe_http_fastcgi *reader, struct sxe_span content)
{
    if (reader->is_first) {
        fastcgi_say(out, " ", reader->type);
        fastcgi_say(out, "/", reader->id);
    }
    fastcgi_say_bytes(out, content.base, content.length);
    if (reader->is_last)
        fastcgi_say(out, ".", reader->length);
}

/* Read a heap copy of the exact size, so that the address sanitizer sees a read past it. Returns
 * the bytes that were taken; -1: refused. */
static ssize_t
read_piece(struct sxe_http_fastcgi *reader, struct fastcgi_text *out, const char *data,
           size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);
    struct sxe_span content;
    size_t taken = 0;
    ssize_t n;

    check(copy != NULL, "memory");
    memcpy(copy, data, length);
    while ((n = sxe_http_fastcgi_read(reader, copy + taken, length - taken, &content)) > 0) {
        check((size_t)n <= length - taken, "what was taken");
        say_record(out, reader, content);
        taken += (size_t)n;
    }
    free(copy);
    return n < 0 ? n : (ssize_t)taken;
}

static void
read_records(struct fastcgi_text *out, enum sxe_http_fastcgi_side side, const char *data,
             size_t size, size_t step)
{
    struct sxe_http_fastcgi reader;
    struct sxe_span content;
    size_t taken = 0;
    size_t length = 0;
    ssize_t n;

    out->length = 0;
    sxe_http_fastcgi_init(&reader, side);
    do {
        length = length + step < size ? length + step : size;
        n = read_piece(&reader, out, data + taken, length - taken);
        taken += n > 0 ? (size_t)n : 0;
    } while (n >= 0 && length < size);
    if (n >= 0)
        return;
    fastcgi_say(out, "!", reader.refusal);
    check(sxe_http_fastcgi_read(&reader, data, size, &content) == -1, "the end");
}

static void
read_pairs(struct fastcgi_text *out, const char *data, size_t size)
{
    static char again[INPUT_MAX + 8];
    struct sxe_span name;
    struct sxe_span value;
    struct sxe_span same[2];
    ssize_t n = 1;

    out->length = 0;
    for (size_t at = 0; at < size; at += (size_t)n) {
        n = sxe_http_fastcgi_pair(data + at, size - at, &name, &value);
        if (n <= 0) {
            fastcgi_say(out, n == 0 ? "?" : "!", 0);
            return;
        }
        fastcgi_say(out, " ", (unsigned)name.length);
        fastcgi_say_bytes(out, name.base, name.length);
        fastcgi_say(out, "=", (unsigned)value.length);
        fastcgi_say_bytes(out, value.base, value.length);
        n = sxe_http_fastcgi_put_pair(again, sizeof(again), name, value);
        check(n > 0 && sxe_http_fastcgi_pair(again, (size_t)n, &same[0], &same[1]) == n &&
                  same[0].length == name.length && same[1].length == value.length &&
                  memcmp(same[0].base, name.base, name.length) == 0 &&
                  memcmp(same[1].base, value.base, value.length) == 0,
              "a pair that was written again");
        n = sxe_http_fastcgi_pair(data + at, size - at, &name, &value);
    }
}

static void
compare(const struct fastcgi_text *found, const struct fastcgi_text *expected, const char *what)
{
    check(found->length == expected->length &&
              memcmp(found->bytes, expected->bytes, found->length) == 0,
          what);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fastcgi_text expected;
    static struct fastcgi_text found;
    const char *bytes = (const char *)data + 2;

    if (size < 2 || size > INPUT_MAX)
        return 0;
    size -= 2;
    fastcgi_oracle_records(&expected, data[0] & 1, bytes, size);
    for (size_t step = 1; step <= 3; step++) {
        read_records(&found, data[0] & 1, bytes, size,
                     step == 1   ? 1
                     : step == 2 ? data[1] + 1u
                                 : INPUT_MAX);
        compare(&found, &expected, "the records");
    }
    fastcgi_oracle_pairs(&expected, bytes, size);
    read_pairs(&found, bytes, size);
    compare(&found, &expected, "the pairs");
    return 0;
}
