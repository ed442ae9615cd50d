/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a line of Forwarded and of X-Forwarded-For: a good line is read as by the oracle;
 * bytes before an element never change it; each element that is taken makes the rest shorter; and a
 * refused element changes nothing.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../oracle/forwarded-oracle.h"

#define SUFFIX ", For=\"[2001:db8::7]:4711\" ; proto=https;host=a.example"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sxe_http_forwarded: %s\n", what);
    abort();
}

static bool
is_inside(struct sxe_span part, const char *text, size_t size)
{
    return part.base == NULL || (part.base >= text && part.base + part.length <= text + size);
}

static void
check_walk(const char *text, size_t size,
           int (*last)(struct sxe_span *rest, struct sxe_http_hop *hop))
{
    struct sxe_span rest = {text, size};
    struct sxe_http_hop hop;
    int result;

    do {
        const struct sxe_span before = rest;

        result = last(&rest, &hop);
        expect(result == 1 || result == 0 || result == -EINVAL, "another result");
        expect(rest.base == text && rest.length <= before.length, "the rest grew");
        expect(result != 1 || rest.length < before.length, "an element without bytes");
        expect(result != 0 || rest.length == 0, "bytes were left");
        expect(result >= 0 || rest.length == before.length, "refused bytes were taken");
        expect(is_inside(hop.proto, text, size) && is_inside(hop.host, text, size), "outside");
        expect(hop.address_length == 0 || hop.address_length == sizeof(struct sockaddr_in) ||
                   hop.address_length == sizeof(struct sockaddr_in6),
               "another length");
    } while (result > 0);
}

/* Bytes that a client sends do not change the element that a proxy adds after them. */
static void
check_suffix(const uint8_t *data, size_t size)
{
    const size_t length = size + strlen(SUFFIX);
    char *text = malloc(length);
    struct sxe_span rest = {text, length};
    struct sxe_http_hop hop;

    if (text == NULL)
        abort();
    memcpy(text, data, size);
    memcpy(text + size, SUFFIX, strlen(SUFFIX));
    expect(sxe_http_forwarded_last(&rest, &hop) == 1 && rest.length == size &&
               hop.address_length == sizeof(struct sockaddr_in6) && hop.proto.length == 5 &&
               hop.host.length == 9,
           "the bytes before an element changed it");
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    char *exact = malloc(size > 0 ? size : 1);
    const char *difference;

    if (text == NULL || exact == NULL)
        abort();
    memcpy(text, data, size);
    memcpy(exact, data, size);
    text[size] = '\0';
    check_walk(exact, size, sxe_http_forwarded_last);
    check_walk(exact, size, sxe_http_forwarded_for_last);
    check_suffix(data, size);
    difference = forwarded_oracle_compare(text, size);
    expect(difference == NULL, difference);
    free(exact);
    free(text);
    return 0;
}
