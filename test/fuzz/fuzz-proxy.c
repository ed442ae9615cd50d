/* SPDX-License-Identifier: MIT
 *
 * Any bytes as a PROXY header: a part of a header is never read as another header, bytes after the
 * header make no difference, and a header that was read is written, and read again as the same. The
 * bytes are also read as a list of networks.
 */
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-cidr.h"
#include "sxe-proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sxe_proxy: %s\n", what);
    abort();
}

static char *
copy(const uint8_t *data, size_t size, size_t room)
{
    char *exact = malloc(room > 0 ? room : 1);

    if (exact == NULL)
        abort();
    if (size > 0)
        memcpy(exact, data, size);
    return exact;
}

static int
parse(const uint8_t *data, size_t size, struct sxe_proxy *proxy)
{
    char *exact = copy(data, size, size);
    int result = sxe_proxy_parse(exact, size, proxy);

    free(exact);
    return result;
}

static bool
is_same(const struct sxe_proxy *a, const struct sxe_proxy *b)
{
    return a->version == b->version && a->command == b->command &&
           memcmp(&a->source, &b->source, sizeof(a->source)) == 0 &&
           memcmp(&a->destination, &b->destination, sizeof(a->destination)) == 0;
}

static void
check_round_trip(const struct sxe_proxy *proxy)
{
    char header[SXE_PROXY_WRITE_MAX];
    struct sxe_proxy again;
    ssize_t length = sxe_proxy_write(proxy, header, sizeof(header));

    expect(length > 0, "read, but cannot be written");
    expect(parse((const uint8_t *)header, (size_t)length, &again) == length, "bad when written");
    expect(is_same(proxy, &again), "another one when written");
}

static void
check_header(const uint8_t *data, size_t size)
{
    struct sxe_proxy whole;
    struct sxe_proxy part;
    int length = parse(data, size, &whole);
    size_t cut = size > 0 ? data[size - 1] * size / 256 : 0;
    int cut_length = parse(data, cut, &part);

    expect(length >= -1 && length <= (int)size && length <= SXE_PROXY_MAX, "longer than it can be");
    expect(length != 0 || size < SXE_PROXY_MAX, "without an end");
    if (cut_length != 0)
        expect(cut_length == length, "fewer bytes mean another one");
    if (length <= 0)
        return;
    expect(parse(data, (size_t)length - 1, &part) == 0, "whole without its last byte");
    expect(parse(data, (size_t)length, &part) == length, "what follows changes it");
    expect(is_same(&whole, &part), "what follows changes it");
    check_round_trip(&whole);
}

static void
check_networks(const uint8_t *data, size_t size)
{
    struct sxe_cidr_list list = {.number = 0};
    struct sxe_span wrong = {NULL, 0};
    char *text = copy(data, size, size + 1);
    int result;

    text[size] = '\0';
    result = sxe_cidr_add(&list, text, &wrong);
    if (result < 0)
        expect(list.number == 0 && !list.has_unix && wrong.base >= text &&
                   wrong.base + wrong.length <= text + strlen(text),
               "a refused list is not as it was");
    for (unsigned i = 0; i < list.number; i++) {
        struct sockaddr_in6 first = {.sin6_family = AF_INET6};

        memcpy(&first.sin6_addr, list.networks[i].address, 16);
        expect(sxe_cidr_match(&list, (const struct sockaddr *)&first), "a network misses itself");
    }
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_header(data, size);
    check_networks(data, size);
    return 0;
}
