/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a traceparent. A value that is accepted has digits only and no id of zeros; it is
 * written as version 00, and read again as the same.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sxe_http_trace: %s\n", what);
    abort();
}

static int
parse(const void *data, size_t size, struct sxe_http_trace *trace)
{
    char *exact = malloc(size > 0 ? size : 1);
    int result;

    if (exact == NULL)
        abort();
    if (size > 0)
        memcpy(exact, data, size);
    result = sxe_http_trace_parse((struct sxe_span){exact, size}, trace);
    free(exact);
    return result;
}

static void
check_id(const char *id, size_t length)
{
    expect(strlen(id) == length && strspn(id, "0123456789abcdef") == length, "no id");
    expect(strspn(id, "0") < length, "an id of zeros");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sxe_http_trace trace;
    struct sxe_http_trace again;
    char text[SXE_HTTP_TRACEPARENT + 1];

    if (parse(data, size, &trace) < 0)
        return 0;
    check_id(trace.trace_id, 32);
    check_id(trace.parent_id, 16);
    expect(*trace.span_id == '\0' && trace.flags <= 3, "more than was there");
    expect(size == SXE_HTTP_TRACEPARENT || memcmp(data, "00", 2) != 0, "a long version 00");
    memcpy(trace.span_id, trace.parent_id, sizeof(trace.span_id));
    sxe_http_trace_write(&trace, text);
    expect(parse(text, strlen(text), &again) == 0, "bad when written");
    memset(trace.span_id, 0, sizeof(trace.span_id));
    expect(memcmp(&trace, &again, sizeof(trace)) == 0, "another one when written");
    return 0;
}
