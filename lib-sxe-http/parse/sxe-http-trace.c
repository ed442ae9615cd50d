/* SPDX-License-Identifier: MIT
 *
 * Reads and writes traceparent.
 */
#include "sxe-http-trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TRACE_AT = 3, PARENT_AT = 36, FLAGS_AT = 53 };

static int
digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static bool
are_digits(const char *at, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (digit_value(at[i]) < 0)
            return false;
    }
    return true;
}

static bool
is_id(const char *at, size_t length)
{
    static const char zeros[] = "00000000000000000000000000000000";

    return are_digits(at, length) && memcmp(at, zeros, length) != 0;
}

/* Whether the version allows the value's length: a later version may have more after another dash.
 */
static bool
has_good_version(struct sxe_span value)
{
    if (!are_digits(value.base, 2) || memcmp(value.base, "ff", 2) == 0)
        return false;
    return value.length == SXE_HTTP_TRACEPARENT ||
           (memcmp(value.base, "00", 2) != 0 && value.base[SXE_HTTP_TRACEPARENT] == '-');
}

int
sxe_http_trace_parse(struct sxe_span value, struct sxe_http_trace *trace)
{
    const char *base = value.base;
    int flags;

    if (value.length < SXE_HTTP_TRACEPARENT || !has_good_version(value) ||
        base[TRACE_AT - 1] != '-' || base[PARENT_AT - 1] != '-' || base[FLAGS_AT - 1] != '-' ||
        !is_id(base + TRACE_AT, 32) || !is_id(base + PARENT_AT, 16) ||
        !are_digits(base + FLAGS_AT, 2))
        return -EINVAL;
    flags = digit_value(base[FLAGS_AT + 1]);
    *trace = (struct sxe_http_trace){
        .flags = (uint8_t)(flags & (SXE_HTTP_TRACE_SAMPLED | SXE_HTTP_TRACE_RANDOM))};
    memcpy(trace->trace_id, base + TRACE_AT, 32);
    memcpy(trace->parent_id, base + PARENT_AT, 16);
    return 0;
}

void
sxe_http_trace_write(const struct sxe_http_trace *trace, char to[SXE_HTTP_TRACEPARENT + 1])
{
    snprintf(to, SXE_HTTP_TRACEPARENT + 1, "00-%s-%s-%02x", trace->trace_id, trace->span_id,
             trace->flags);
}
