/* SPDX-License-Identifier: MIT
 *
 * What: functions that the fuzzers of request sources share: one makes a file of the input, the
 * other checks that a server reads the source's output as one request.
 */
#ifndef CHECK_REQUEST_H
#define CHECK_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "requests.h"
#include "sxe-http-parse.h"

enum { CHECK_FIELDS_MAX = 255 };

static inline void
expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "sxe-http: %s\n", what);
    abort();
}

/* Make a file in memory with these bytes. Returns its descriptor, and its path. */
static inline int
open_bytes(const uint8_t *data, size_t size, char *path, size_t path_size)
{
    int fd = memfd_create("input", 0);

    expect(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file in memory");
    snprintf(path, path_size, "/proc/self/fd/%d", fd);
    return fd;
}

/* Check that the whole query is one request: a head, and the body that it announces. */
static inline void
check_query(struct load_requests *requests, uint64_t sequence)
{
    static const struct sxe_http_limits widest = {UINT16_MAX, UINT16_MAX, CHECK_FIELDS_MAX};
    struct sxe_http_field fields[CHECK_FIELDS_MAX];
    struct sxe_http_parser parser;
    struct load_query query;
    int length;

    expect(requests->next(requests, sequence, &query) == 0, "no query");
    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, CHECK_FIELDS_MAX, &widest);
    length = sxe_http_parse(&parser, query.bytes, query.length);
    expect(length > 0, "a query that is no request");
    expect(parser.body == SXE_HTTP_BODY_NONE || parser.body == SXE_HTTP_BODY_LENGTH, "chunks");
    expect((uint64_t)length + parser.length == query.length, "another length");
    expect(query.is_head == (parser.method == SXE_HTTP_HEAD), "HEAD, or not");
    expect(parser.method != SXE_HTTP_CONNECT, "a tunnel");
    expect(query.kind < requests->kinds && requests->kind_names[query.kind] != NULL, "no kind");
}

#endif
