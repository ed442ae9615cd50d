/* SPDX-License-Identifier: MIT
 *
 * What: byte buffers in chunks of one size, borrowed from a set that is allocated once. An idle
 * owner holds no chunk. If room or chunks run out, a call returns an error.
 *
 * Place: lib-sxe keeps unread input and unsent output in it; programs use it for text. Uses
 * sxe-log. One thread at a time.
 *
 * Shape: a chunk is 4 zero bytes, then `size` bytes. A buffer refers to one chunk, or to any
 * memory:
 *
 *         0000 taken-bytes|unread ........ bytes|room .....
 *         base            base+taken            base+used   base+size       taken <= used <= size
 *
 *     chunks:  free -> 5 -> 2 -> 9    links are indexes; the last chunk given back is the first
 * taken, so that few pages are ever touched
 *
 * Limits: sizes are 32 bits. Freed chunks and room are poisoned under the address sanitizer.
 *
 * Example:
 *     struct sxe_chunks *chunks = sxe_chunks_new("lines", 100, 4096);
 *     struct sxe_buffer  line = SXE_BUFFER_EMPTY;
 *     if (sxe_buffer_borrow(&line, chunks) == 0) {
 *         if (sxe_buffer_printf(&line, "hello %s\n", name) < 0) ...     too long: nothing was added
 *         write(1, sxe_buffer_data(&line), sxe_buffer_length(&line));
 *         sxe_buffer_give_back(&line, chunks);
 *     }
 *     sxe_chunks_delete(chunks);
 */
#ifndef SXE_BUFFER_H
#define SXE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_CHUNK_FRONT 4 /* zero bytes in front of every chunk's data */

/* ---- Chunks ---- */

struct sxe_chunks;

/* Reserve number chunks of size plus SXE_CHUNK_FRONT bytes each. Memory is touched only when a
 * chunk is used. NULL with errno EINVAL (a 0, a number above 2^32-2, or more bytes than can be
 * addressed) or ENOMEM. The caller deletes the set. */
SXE_PUBLIC SXE_MUST_USE struct sxe_chunks *sxe_chunks_new(const char *name, uint32_t number,
                                                          uint32_t size);
SXE_PUBLIC void sxe_chunks_delete(struct sxe_chunks *chunks); /* Delete a set; NULL is allowed. */

/* How many bytes sxe_chunks_new would reserve; 0: it would fail with EINVAL. */
SXE_PUBLIC size_t sxe_chunks_reserved(uint32_t number, uint32_t size);

/* Take a chunk, or give one back. SXE_NONE: none is free. Giving a chunk back twice stops the
 * program. */
SXE_PUBLIC SXE_MUST_USE uint32_t sxe_chunks_take(struct sxe_chunks *chunks);
SXE_PUBLIC void sxe_chunks_give(struct sxe_chunks *chunks, uint32_t chunk);

/* The chunk's first byte; the 4 before it are zero. */
SXE_PUBLIC char *sxe_chunks_data(const struct sxe_chunks *chunks, uint32_t chunk);

/* A word for the owner while it has the chunk, such as the next chunk of a chain. SXE_NONE at
 * first. */
SXE_PUBLIC uint32_t *sxe_chunks_link(struct sxe_chunks *chunks, uint32_t chunk);

/* how many bytes each chunk has */
SXE_PUBLIC uint32_t sxe_chunks_size(const struct sxe_chunks *chunks);
/* how many chunks the set has */
SXE_PUBLIC uint32_t sxe_chunks_number(const struct sxe_chunks *chunks);
SXE_PUBLIC uint32_t sxe_chunks_free(const struct sxe_chunks *chunks); /* how many chunks are free */

/* ---- Buffers ---- */

struct sxe_buffer {
    char *base;     /* ro */
    uint32_t taken; /* ro: how many bytes were consumed */
    uint32_t used;  /* ro: how many bytes were added */
    uint32_t size;  /* ro: how many bytes of memory begin at base; 0: the buffer has no memory */
    uint32_t chunk; /* ro: the borrowed chunk, or SXE_NONE */
};

#define SXE_BUFFER_EMPTY        \
    {                           \
        NULL, 0, 0, 0, SXE_NONE \
    }

/* Use the caller's memory: its first `used` bytes are unread, size - used bytes are room. */
SXE_PUBLIC void sxe_buffer_wrap(struct sxe_buffer *buffer, char *memory, uint32_t used,
                                uint32_t size);

/* Borrow a chunk for a buffer that holds no chunk: 0, or -ENOBUFS when none is free. */
SXE_PUBLIC SXE_MUST_USE int sxe_buffer_borrow(struct sxe_buffer *buffer, struct sxe_chunks *chunks);

/* Forget the contents and give the chunk back, if there is one. */
SXE_PUBLIC void sxe_buffer_give_back(struct sxe_buffer *buffer, struct sxe_chunks *chunks);

/* The unread bytes, contiguous. Valid until the next call that adds, reserves or gives back. */
static inline char *
sxe_buffer_data(const struct sxe_buffer *buffer)
{
    return (char *)((uintptr_t)buffer->base + buffer->taken); /* NULL + 0 would be undefined */
}
/* The number of unread bytes. */
static inline uint32_t
sxe_buffer_length(const struct sxe_buffer *buffer)
{
    return buffer->used - buffer->taken;
}

/* How many bytes can be added. The room of consumed bytes counts: to use it, adding moves the
 * unread bytes. */
static inline uint32_t
sxe_buffer_room(const struct sxe_buffer *buffer)
{
    return buffer->size - sxe_buffer_length(buffer);
}

/* Append a copy of all length bytes. 0; -ENOBUFS: the room is too small, and nothing is added. */
SXE_PUBLIC SXE_MUST_USE int sxe_buffer_add(struct sxe_buffer *buffer, const void *data,
                                           size_t length);

/* Append formatted text without its final zero. Returns its length. -ENOBUFS: the room is too
 * small; -EINVAL: the format failed. After an error nothing is added. */
SXE_PUBLIC SXE_MUST_USE int sxe_buffer_printf(struct sxe_buffer *buffer, const char *format, ...)
    SXE_PRINTF(2, 3);
SXE_PUBLIC SXE_MUST_USE int sxe_buffer_vprintf(struct sxe_buffer *buffer, const char *format,
                                               va_list arguments) SXE_PRINTF(2, 0);

/* For reading straight into the buffer: reserve moves the unread bytes to the front and returns all
 * the room, contiguous; commit says how much of it was filled. NULL with *room 0: the buffer is
 * full. */
SXE_PUBLIC char *sxe_buffer_reserve(struct sxe_buffer *buffer, uint32_t *room);
SXE_PUBLIC void sxe_buffer_commit(struct sxe_buffer *buffer, uint32_t length);

/* Consume length of the unread bytes. A length above sxe_buffer_length stops the program. */
SXE_PUBLIC void sxe_buffer_take(struct sxe_buffer *buffer, uint32_t length);

/* Consume all unread bytes. */
SXE_PUBLIC void sxe_buffer_clear(struct sxe_buffer *buffer);

/* Find needle in the unread bytes: a pointer to the first match, or NULL. An empty needle is found
 * at the first byte. _nocase ignores the case of ASCII letters. NULs are bytes like any other. */
SXE_PUBLIC char *sxe_buffer_find(const struct sxe_buffer *buffer, const void *needle,
                                 size_t length);
SXE_PUBLIC char *sxe_buffer_find_nocase(const struct sxe_buffer *buffer, const void *needle,
                                        size_t length);

/* Like sxe_buffer_find and sxe_buffer_find_nocase, but in any memory. */
SXE_PUBLIC void *sxe_find(const void *hay, size_t hay_length, const void *needle, size_t length);
SXE_PUBLIC void *sxe_find_nocase(const void *hay, size_t hay_length, const void *needle,
                                 size_t length);

#ifdef __cplusplus
}
#endif

#endif
