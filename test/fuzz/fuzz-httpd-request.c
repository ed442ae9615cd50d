/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a request: what is found stays within the limits, and fewer bytes of the same
 * request never mean another one.
 */
#include "request.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "httpd_request_parse: %s\n", what);
    abort();
}

static int
parse(const uint8_t *data, size_t size, struct httpd_request *request)
{
    char *exact = malloc(size > 0 ? size : 1);
    int result;

    if (exact == NULL)
        abort();
    if (size > 0)
        memcpy(exact, data, size);
    result = httpd_request_parse(exact, size, request);
    free(exact);
    return result;
}

static void
check_limits(const uint8_t *data, size_t size, int head, const struct httpd_request *request)
{
    static const unsigned statuses[] = {400, 413, 414, 431, 501, 505};
    bool known = false;

    for (unsigned i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        known |= request->status == statuses[i];
    if (head < 0) {
        expect(known, "refused without one of its statuses");
        return;
    }
    expect(request->status == 0, "a status without a refusal");
    expect((size_t)head <= size && head <= (int)HTTPD_HEAD_MAX, "a head longer than it can be");
    expect(request->body <= HTTPD_BODY_MAX, "a body longer than it can be");
    if (head == 0)
        expect(size < HTTPD_HEAD_MAX, "a head without an end");
    else
        expect(head >= 4 && memcmp(data + head - 4, "\r\n\r\n", 4) == 0, "an end inside a line");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct httpd_request whole;
    struct httpd_request part;
    int head = parse(data, size, &whole);
    size_t cut;

    check_limits(data, size, head, &whole);
    if (size == 0)
        return 0;
    cut = data[size - 1] * size / 256;
    if (head > 0) {
        expect(parse(data, (size_t)head - 1, &part) == 0, "complete without its last byte");
        expect(parse(data, (size_t)head, &part) == head, "what follows the head changes it");
        expect(memcmp(&whole, &part, sizeof(whole)) == 0, "what follows the head changes it");
    }
    if (parse(data, cut, &part) < 0)
        expect(head < 0, "refused, and accepted with more");
    return 0;
}
