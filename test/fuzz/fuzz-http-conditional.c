/* SPDX-License-Identifier: MIT
 *
 * Any bytes as list, entity tags, ranges and codings: elements are parts of the list, comparisons
 * are symmetric, ranges lie inside the representation and none touches another.
 *
 * An input is a length in 8 bytes, then the fields, each up to a line feed: If-Match,
 * If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range, Range, Accept-Encoding.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-conditional.h"

enum { RANGES = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sxe-http-conditional: %s\n", what);
    abort();
}

/* Copy the next line to heap memory of its exact size, so that the address sanitizer sees a read
 * past it. base is NULL after the last line. */
static struct sxe_span
take_line(struct sxe_span *rest)
{
    const char *end;
    struct sxe_span line = {NULL, 0};
    char *copy;

    if (rest->length == 0)
        return line;
    end = memchr(rest->base, '\n', rest->length);
    line.length = end == NULL ? rest->length : (size_t)(end - rest->base);
    copy = malloc(line.length + (line.length == 0));
    if (copy == NULL)
        abort();
    memcpy(copy, rest->base, line.length);
    line.base = copy;
    if (end == NULL)
        *rest = (struct sxe_span){NULL, 0};
    else
        *rest = (struct sxe_span){end + 1, rest->length - line.length - 1};
    return line;
}

static void
check_list(struct sxe_span text)
{
    for (int is_plain = 0; is_plain < 2; is_plain++) {
        struct sxe_http_list list = sxe_http_list_in(text);
        struct sxe_span element;
        const char *end = text.base;

        list.backslash_is_plain = is_plain;
        while (sxe_http_list_next(&list, &element)) {
            expect(element.length > 0, "an empty element");
            expect(element.base >= end, "an element before its predecessor");
            end = element.base + element.length;
            expect((size_t)(end - text.base) <= text.length, "an element after the list");
            expect(sxe_http_without_blanks(element).length == element.length,
                   "an element with blanks around it");
        }
    }
}

static void
check_tags(struct sxe_span a, struct sxe_span b)
{
    bool is_strong = sxe_http_etag_matches(a, b, SXE_HTTP_STRONG_COMPARISON);
    bool is_weak = sxe_http_etag_matches(a, b, SXE_HTTP_WEAK_COMPARISON);

    expect(is_strong == sxe_http_etag_matches(b, a, SXE_HTTP_STRONG_COMPARISON) &&
               is_weak == sxe_http_etag_matches(b, a, SXE_HTTP_WEAK_COMPARISON),
           "a comparison that depends on the order");
    expect(is_weak || !is_strong, "tags that match strongly only");
    expect(sxe_http_etag_matches(a, a, SXE_HTTP_WEAK_COMPARISON) == sxe_http_etag_is_valid(a),
           "a tag that is not its own");
}

static void
check_ranges(const struct sxe_http_conditions *conditions,
             const struct sxe_http_representation *selected)
{
    struct sxe_http_range ranges[RANGES];
    int number = sxe_http_select_ranges(conditions, selected, ranges, RANGES);
    uint64_t sum = 0;

    expect(number <= RANGES && (number >= 0 || number == -ERANGE), "another result");
    for (int i = 0; i < number; i++) {
        const struct sxe_http_range *range = &ranges[i];
        char text[SXE_HTTP_CONTENT_RANGE_MAX];

        expect(range->length > 0 && range->first < selected->length &&
                   range->length <= selected->length - range->first,
               "a range that is not inside");
        expect(sum + range->length > sum, "a sum that overflows");
        sum += range->length;
        for (int j = 0; j < i; j++)
            expect(ranges[j].first + ranges[j].length < range->first ||
                       range->first + range->length < ranges[j].first,
                   "ranges that touch");
        expect(sxe_http_content_range(range, selected->length, text) == strlen(text),
               "a Content-Range of another length");
    }
    expect(sum <= selected->length, "more than there is");
}

static void
check_fields(const struct sxe_span fields[7], uint64_t length)
{
    static const char *const offered[] = {"br", "zstd", "gzip"};
    const struct sxe_http_list accepted = sxe_http_list_in(fields[6]);
    struct sxe_http_representation selected = {
        .etag = {"W/\"x\"", 5}, .modified = 784111777, .length = length};
    struct sxe_http_conditions conditions = {
        .if_match = sxe_http_list_in(fields[0]),
        .if_none_match = sxe_http_list_in(fields[1]),
        .if_modified_since = fields[2],
        .if_unmodified_since = fields[3],
        .range = fields[5],
    };
    int coding = sxe_http_select_coding(&accepted, offered, 3);

    expect(coding >= -1 && coding < 3, "a coding that was not offered");
    for (unsigned method = SXE_HTTP_OTHER; method <= SXE_HTTP_PATCH; method++) {
        unsigned status;

        conditions.method = method;
        status = sxe_http_precondition(&conditions, &selected);
        expect(status == 0 || status == 412 ||
                   (status == 304 && (method == SXE_HTTP_GET || method == SXE_HTTP_HEAD)),
               "another status");
        conditions.if_range = (struct sxe_span){NULL, 0};
        check_ranges(&conditions, &selected);
        conditions.if_range = fields[4];
        check_ranges(&conditions, &selected);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sxe_span fields[7];
    struct sxe_span rest;
    uint64_t length = 0;

    if (size < sizeof(length))
        return 0;
    memcpy(&length, data, sizeof(length));
    rest = (struct sxe_span){(const char *)data + sizeof(length), size - sizeof(length)};
    for (unsigned i = 0; i < 7; i++)
        fields[i] = take_line(&rest);
    for (unsigned i = 0; i < 7; i++) {
        check_list(fields[i]);
        check_tags(fields[i], fields[(i + 1) % 7]);
    }
    check_fields(fields, length);
    for (unsigned i = 0; i < 7; i++)
        free((void *)(uintptr_t)fields[i].base);
    return 0;
}
