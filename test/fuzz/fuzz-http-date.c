/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a date, and as a time. A date that was read is written, and read again as the same
 * time. Any time is written as the nearest time that a date can express.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-date.h"

#define EARLIEST (-INT64_C(62167219200))
#define LATEST   INT64_C(253402300799)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sxe-http-date: %s\n", what);
    abort();
}

/* Write any time and read it back; the writer moves a time outside of its years to the nearest. */
static void
check_time(int64_t seconds)
{
    char *text = malloc(SXE_HTTP_DATE_LENGTH);
    int64_t nearest = seconds < EARLIEST ? EARLIEST : seconds > LATEST ? LATEST : seconds;
    int64_t back = 0;

    if (text == NULL)
        abort();
    sxe_http_date_format(seconds, text);
    expect(sxe_http_date_parse((struct sxe_span){text, SXE_HTTP_DATE_LENGTH}, 0, &back) == 0,
           "what was written cannot be read");
    expect(back == nearest, "what was written is read as another time");
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t now = 0;
    int64_t seconds = 0;

    if (sxe_http_date_parse((struct sxe_span){(const char *)data, size}, 0, &seconds) == 0)
        check_time(seconds);
    if (size < sizeof(now))
        return 0;
    memcpy(&now, data, sizeof(now));
    check_time(now);
    data += sizeof(now);
    size -= sizeof(now);
    if (sxe_http_date_parse((struct sxe_span){(const char *)data, size}, now, &seconds) == 0)
        expect(seconds >= EARLIEST, "a time before the first year");
    return 0;
}
