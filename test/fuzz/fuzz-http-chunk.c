/* SPDX-License-Identifier: MIT
 *
 * A chunked body. The first byte chooses the limits, the second one chooses how the body is cut.
 * Data and result must be the same if the body is read whole, cut, or byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 8, INPUT_MAX = 4096 };

struct outcome {
    unsigned refusal;
    bool done;
    uint64_t taken;
    uint16_t fields;
    size_t length;
    char data[INPUT_MAX];
};

static const struct sxe_http_limits limits[] = {SXE_HTTP_LIMITS, {16, 32, 2}};

static void
check(bool is_good, const char *what)
{
    if (!is_good) {
        fprintf(stderr, "%s differs\n", what);
        abort();
    }
}

/* Read one piece from a heap copy of its exact size, so that the address sanitizer sees a read past
 * it. Returns the bytes taken, or a negative value. */
static ssize_t
read_piece(struct sxe_http_chunks *chunks, struct outcome *out, const char *data, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);
    struct sxe_span body;
    size_t taken = 0;
    ssize_t n = 0;

    check(copy != NULL, "memory");
    memcpy(copy, data, length);
    while ((n = sxe_http_chunks_read(chunks, copy + taken, length - taken, &body)) > 0) {
        memcpy(out->data + out->length, body.base, body.length);
        out->length += body.length;
        taken += (size_t)n;
    }
    free(copy);
    return n < 0 ? n : (ssize_t)taken;
}

static void
read_all(struct outcome *out, unsigned kind, const char *data, size_t size, size_t step)
{
    struct sxe_http_field fields[FIELDS];
    struct sxe_http_chunks chunks;
    size_t taken = 0;
    size_t length = 0;
    ssize_t n;

    memset(out, 0, sizeof(*out));
    sxe_http_chunks_init(&chunks, (kind & 2) != 0 ? fields : NULL, FIELDS, &limits[kind & 1]);
    do {
        length = length + step < size ? length + step : size;
        n = read_piece(&chunks, out, data + taken, length - taken);
        taken += n > 0 ? (size_t)n : 0;
    } while (n >= 0 && length < size && !chunks.done);
    out->refusal = chunks.refusal;
    out->done = chunks.done;
    out->taken = chunks.taken;
    out->fields = chunks.done ? chunks.trailer.number : 0;
    check(n < 0 || taken == chunks.taken, "what was taken");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome whole;
    static struct outcome cut;

    if (size < 2 || size > INPUT_MAX)
        return 0;
    read_all(&whole, data[0], (const char *)data + 2, size - 2, size);
    for (unsigned i = 0; i < 2; i++) {
        read_all(&cut, data[0], (const char *)data + 2, size - 2, i == 0 ? 1 : data[1] + 1u);
        check(memcmp(&whole, &cut, sizeof(cut)) == 0, "the outcome");
    }
    return 0;
}
