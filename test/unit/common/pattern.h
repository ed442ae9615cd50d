/* SPDX-License-Identifier: MIT
 *
 * What: bytes without repetition, so that a test notices bytes that are doubled, lost or reordered.
 * Place: tests of output; on top of sxe-fixture.h.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "sxe-fixture.h"

#define KIB         1024u
#define MIB         1048576u
#define PATTERN_MAX (8 * MIB)

/* At least length bytes, the same in each call. */
static inline char *
pattern(size_t length)
{
    static uint32_t words[PATTERN_MAX / sizeof(uint32_t) + 1];
    static uint32_t word = 2463534242;
    static size_t made;

    ck_assert_uint_le(length, PATTERN_MAX);
    for (; made * sizeof(word) < length; made++) {
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        words[made] = word;
    }
    return (char *)words;
}

/* Expect that the peer receives exactly these bytes. */
static inline void
expect_bytes(int peer, const char *bytes, size_t length)
{
    char *got = malloc(length + 1);
    size_t same = 0;

    ck_assert_ptr_nonnull(got);
    ck_assert_uint_eq(peer_receive(peer, got, length), length);
    while (same < length && got[same] == bytes[same])
        same++;
    ck_assert_uint_eq(same, length);
    free(got);
}

/* Shrink the socket buffers: for a peer that does not read, the kernel then takes below 500 KiB. */
static inline void
shrink_kernel_buffers(int from, int to)
{
    int size = 64 * KIB;

    ck_assert_int_eq(setsockopt(from, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    ck_assert_int_eq(setsockopt(to, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

static inline void
expect_pattern(int peer, size_t length)
{
    expect_bytes(peer, pattern(length), length);
}

#endif
