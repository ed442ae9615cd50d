/* SPDX-License-Identifier: MIT
 *
 * What: bytes that follow a known sequence, in memory and in a file: for replies that are too long
 * for the kernel's buffers, and for other long data.
 */
#ifndef HTTP_CONTENT_H
#define HTTP_CONTENT_H

#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sxe-fixture.h"

#define LONG_SIZE (8u * 1024 * 1024) /* more than the kernel buffers on loopback */

static struct {
    char *bytes;
    size_t length;
    int file;
} content;

static inline void
make_content(size_t length)
{
    content.length = length;
    content.file = memfd_create("content", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(content.file, (off_t)length), 0);
    content.bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, content.file, 0);
    ck_assert_ptr_ne(content.bytes, MAP_FAILED);
    for (size_t i = 0; i < length; i++)
        content.bytes[i] = (char)(i * 7 + i / 251);
}

static inline void
drop_content(void)
{
    munmap(content.bytes, content.length);
    close(content.file);
}

/* The peer must receive the first `length` bytes of the content. */
static inline void
expect_content(int peer, size_t length)
{
    char *got = malloc(length);

    ck_assert_uint_eq(peer_receive(peer, got, length), length);
    ck_assert_mem_eq(got, content.bytes, length);
    free(got);
}

#endif
