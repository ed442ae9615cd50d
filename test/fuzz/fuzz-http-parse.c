/* SPDX-License-Identifier: MIT
 *
 * A message. The first byte chooses its kind and the limits, the second one chooses how the message
 * is cut. In each way to scan, the result must be the same if the message is parsed whole, cut, or
 * byte by byte, and all parts that were found must lie within the head.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib-sxe-http/parse/sxe-http-private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELDS = 64, WAYS = 3 };

static struct sxe_http_field fields[FIELDS];
static const struct sxe_http_limits limits[] = {SXE_HTTP_LIMITS, {64, 200, 5}, {16, 40, 2}};

static void
check(bool is_good, const char *what)
{
    if (!is_good) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

/* Parse the data in pieces of `step` bytes, each time from a heap copy of its exact size. */
static int
parse(struct sxe_http_parser *parser, unsigned kind, const char *data, size_t size, size_t step)
{
    size_t length = 0;
    int result;

    memset(fields, 0, sizeof(fields));
    memset(parser, 0, sizeof(*parser));
    sxe_http_parser_init(parser, kind % 3, fields, FIELDS, &limits[kind / 3 % 3]);
    if (kind % 3 == SXE_HTTP_RESPONSE)
        parser->method = (uint8_t)(kind / 9 % 9);
    do {
        char *copy;

        length = length + step < size ? length + step : size;
        copy = malloc(length > 0 ? length : 1);
        check(copy != NULL, "no memory");
        memcpy(copy, data, length);
        result = sxe_http_parse(parser, copy, length);
        free(copy);
    } while (result == 0 && length < size);
    return result;
}

static void
check_spans(const struct sxe_http_parser *parser, size_t head)
{
    size_t line = parser->target.offset + parser->target.length;

    check((size_t)parser->method_name.offset + parser->method_name.length <= head, "method");
    check(line <= head, "target");
    check((size_t)parser->reason.offset + parser->reason.length <= head, "reason");
    for (unsigned i = 0; i < parser->number; i++) {
        const struct sxe_http_field *field = &fields[i];
        check(field->name_length > 0 && field->name >= line, "name");
        check(field->name + field->name_length < field->value, "value before name");
        check((size_t)field->value + field->value_length <= head - 4, "value after the head");
    }
}

static void
check_same(const struct sxe_http_parser *cut, const struct sxe_http_parser *whole,
           const struct sxe_http_field *found)
{
    check(cut->refusal == whole->refusal && cut->refused_at == whole->refused_at, "refusal");
    if (whole->refusal != SXE_HTTP_NOT_REFUSED)
        return; /* fields of a refused head are of no use */
    check(memcmp(cut->known, whole->known, sizeof(cut->known)) == 0, "known fields");
    check(memcmp(found, fields, sizeof(fields)) == 0, "fields");
    check(cut->body == whole->body && cut->length == whole->length, "framing");
    check(cut->keep_alive == whole->keep_alive && cut->upgrade == whole->upgrade &&
              cut->expect_continue == whole->expect_continue,
          "connection");
    check(cut->status == whole->status && cut->method == whole->method &&
              cut->minor == whole->minor && cut->form == whole->form,
          "line");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sxe_http_parser whole;
    struct sxe_http_parser cut;
    static struct sxe_http_field found[FIELDS];
    const char *message = (const char *)data + 2;
    int result;

    if (size < 2 || size > 4096)
        return 0;
    sxe__http_scan_choose(0);
    result = parse(&whole, data[0], message, size - 2, size);
    memcpy(found, fields, sizeof(found));
    if (result > 0)
        check_spans(&whole, (size_t)result);
    for (unsigned way = 0; way < WAYS; way++) {
        sxe__http_scan_choose(sxe__http_scan_features() & (way | way << 1));
        check(parse(&cut, data[0], message, size - 2, size) == result, "way to scan");
        check_same(&cut, &whole, found);
        check(parse(&cut, data[0], message, size - 2, data[1] + 1u) == result, "cut");
        check_same(&cut, &whole, found);
    }
    check(parse(&cut, data[0], message, size - 2, 1) == result, "byte by byte");
    check_same(&cut, &whole, found);
    return 0;
}
