/* SPDX-License-Identifier: MIT
 *
 * Chunks live in one mapping, of which the kernel provides the pages as they are touched. The lists
 * and bits about chunks stand elsewhere, so that finding a free chunk touches no chunk:
 *
 *     region: 0000 data...... | 0000 data...... | 0000 data......     stride bytes each
 *     link[]: next free, or the owner's word     out[]: one bit a chunk, 1 while it is taken
 *
 * Chunks that were never taken are not on the free list. They are the chunks from `fresh` on, so a
 * new set need not write a list of all.
 *
 * Under the address sanitizer a chunk that was given back is poisoned. So is the first chunk that
 * was never taken: it stops a program that writes past the chunk before it. (To poison all chunks
 * would write an eighth of the region, and take more than half the time of a test that starts a
 * server.) The free room of a borrowed buffer is poisoned, too, except between reserve and commit,
 * but not the free room of wrapped memory, which its owner may use.
 */
#define SXE_LOG_CONTROL log_control

#include "sxe-buffer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sxe-log.h"

#if SXE_HAVE_ASAN
#    include <sanitizer/asan_interface.h>
#else
#    define ASAN_POISON_MEMORY_REGION(memory, size)   ((void)(memory), (void)(size))
#    define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

enum {
    STRIDE_UNIT = 16,
    NAME_MAX_LENGTH = 31,
    OUT_BITS = 32,
    /* text up to this length is formatted on the stack; longer text is formatted again, in the
     * buffer */
    TEXT_MAX = 1024
};

struct sxe_chunks {
    char *region;
    size_t region_size;
    size_t stride;
    uint32_t *out;
    uint32_t number;
    uint32_t size;
    uint32_t fresh;      /* this chunk and all with higher numbers were never taken */
    uint32_t first_free; /* the chunk that was given back last, or SXE_NONE */
    uint32_t free_number;
    char name[NAME_MAX_LENGTH + 1];
    uint32_t link[];
};

static struct sxe_log_control log_control = SXE_LOG_CONTROL_INIT("sxe-buffer");

/* ---- Chunks ---- */

static size_t
stride_of_chunk(uint32_t size)
{
    return ((size_t)size + SXE_CHUNK_FRONT + STRIDE_UNIT - 1) & ~(size_t)(STRIDE_UNIT - 1);
}

/* The size of struct sxe_chunks with its links and bits. */
static size_t
struct_size(uint32_t number)
{
    size_t words = (size_t)number + ((size_t)number + OUT_BITS - 1) / OUT_BITS;

    return sizeof(struct sxe_chunks) + words * sizeof(uint32_t);
}

size_t
sxe_chunks_reserved(uint32_t number, uint32_t size)
{
    size_t bytes;

    if (number == 0 || number == SXE_NONE || size == 0 ||
        __builtin_mul_overflow(stride_of_chunk(size), (size_t)number, &bytes) ||
        bytes > PTRDIFF_MAX - struct_size(number))
        return 0;
    return bytes + struct_size(number);
}

/* How many bytes of the region may have been poisoned: those of each chunk that was ever taken, and
 * of the chunk after them. */
static size_t
poisonable_size(const struct sxe_chunks *chunks)
{
    return chunks->stride * (chunks->fresh < chunks->number ? chunks->fresh + 1 : chunks->number);
}

struct sxe_chunks *
sxe_chunks_new(const char *name, uint32_t number, uint32_t size)
{
    struct sxe_chunks *chunks;

    if (sxe_chunks_reserved(number, size) == 0) {
        errno = EINVAL;
        return NULL;
    }
    chunks = calloc(1, struct_size(number));
    if (chunks == NULL)
        return NULL;
    chunks->stride = stride_of_chunk(size);
    chunks->region_size = chunks->stride * number;
    chunks->region = mmap(NULL, chunks->region_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (chunks->region == MAP_FAILED) {
        free(chunks);
        errno = ENOMEM;
        return NULL;
    }
    ASAN_POISON_MEMORY_REGION(chunks->region, chunks->stride);
    chunks->out = chunks->link + number;
    chunks->number = number;
    chunks->size = size;
    chunks->first_free = SXE_NONE;
    chunks->free_number = number;
    snprintf(chunks->name, sizeof(chunks->name), "%s", name);
    SXE_DEBUG("chunks %s: %u of %u bytes", chunks->name, number, size);
    return chunks;
}

void
sxe_chunks_delete(struct sxe_chunks *chunks)
{
    if (chunks == NULL)
        return;
    SXE_DEBUG("chunks %s: deleted, %u of %u free", chunks->name, chunks->free_number,
              chunks->number);
    ASAN_UNPOISON_MEMORY_REGION(chunks->region, poisonable_size(chunks));
    munmap(chunks->region, chunks->region_size);
    free(chunks);
}

static char *
front_of(const struct sxe_chunks *chunks, uint32_t chunk)
{
    return chunks->region + chunks->stride * chunk;
}

static bool
is_out(const struct sxe_chunks *chunks, uint32_t chunk)
{
    return chunks->out[chunk / OUT_BITS] >> chunk % OUT_BITS & 1;
}

static void
assert_out(const struct sxe_chunks *chunks, uint32_t chunk)
{
    SXE_ASSERT(chunk < chunks->number, "chunks %s: chunk %u of %u", chunks->name, chunk,
               chunks->number);
    SXE_ASSERT(is_out(chunks, chunk), "chunks %s: chunk %u is free", chunks->name, chunk);
}

static uint32_t
take_fresh(struct sxe_chunks *chunks)
{
    uint32_t chunk = chunks->fresh++;

    if (chunks->fresh < chunks->number)
        ASAN_POISON_MEMORY_REGION(front_of(chunks, chunks->fresh), chunks->stride);
    return chunk;
}

uint32_t
sxe_chunks_take(struct sxe_chunks *chunks)
{
    uint32_t chunk = chunks->first_free;

    if (chunk != SXE_NONE)
        chunks->first_free = chunks->link[chunk];
    else if (chunks->fresh < chunks->number)
        chunk = take_fresh(chunks);
    else
        return SXE_NONE;
    chunks->free_number--;
    chunks->link[chunk] = SXE_NONE;
    chunks->out[chunk / OUT_BITS] |= UINT32_C(1) << chunk % OUT_BITS;

    char *front = front_of(chunks, chunk);
    ASAN_UNPOISON_MEMORY_REGION(front, SXE_CHUNK_FRONT + (size_t)chunks->size);
    memset(front, 0, SXE_CHUNK_FRONT);
    return chunk;
}

void
sxe_chunks_give(struct sxe_chunks *chunks, uint32_t chunk)
{
    assert_out(chunks, chunk);
    ASAN_POISON_MEMORY_REGION(front_of(chunks, chunk), chunks->stride);
    chunks->out[chunk / OUT_BITS] &= ~(UINT32_C(1) << chunk % OUT_BITS);
    chunks->link[chunk] = chunks->first_free;
    chunks->first_free = chunk;
    chunks->free_number++;
}

char *
sxe_chunks_data(const struct sxe_chunks *chunks, uint32_t chunk)
{
    assert_out(chunks, chunk);
    return front_of(chunks, chunk) + SXE_CHUNK_FRONT;
}

uint32_t *
sxe_chunks_link(struct sxe_chunks *chunks, uint32_t chunk)
{
    assert_out(chunks, chunk);
    return &chunks->link[chunk];
}

uint32_t
sxe_chunks_size(const struct sxe_chunks *chunks)
{
    return chunks->size;
}

uint32_t
sxe_chunks_number(const struct sxe_chunks *chunks)
{
    return chunks->number;
}

uint32_t
sxe_chunks_free(const struct sxe_chunks *chunks)
{
    return chunks->free_number;
}

/* ---- Buffers ---- */

static void
open_room(const struct sxe_buffer *buffer)
{
    if (buffer->chunk != SXE_NONE)
        ASAN_UNPOISON_MEMORY_REGION(buffer->base, buffer->size);
}

static void
close_room(const struct sxe_buffer *buffer)
{
    if (buffer->chunk != SXE_NONE)
        ASAN_POISON_MEMORY_REGION(buffer->base + buffer->used, buffer->size - buffer->used);
}

void
sxe_buffer_wrap(struct sxe_buffer *buffer, char *memory, uint32_t used, uint32_t size)
{
    SXE_ASSERT(used <= size, "buffer: %u bytes used of %u", used, size);
    *buffer = (struct sxe_buffer){memory, 0, used, size, SXE_NONE};
}

int
sxe_buffer_borrow(struct sxe_buffer *buffer, struct sxe_chunks *chunks)
{
    SXE_ASSERT(buffer->size == 0, "chunks %s: the buffer has %u bytes already", chunks->name,
               buffer->size);
    uint32_t chunk = sxe_chunks_take(chunks);
    if (chunk == SXE_NONE)
        return -ENOBUFS;
    *buffer =
        (struct sxe_buffer){sxe_chunks_data(chunks, chunk), 0, 0, sxe_chunks_size(chunks), chunk};
    close_room(buffer);
    return 0;
}

void
sxe_buffer_give_back(struct sxe_buffer *buffer, struct sxe_chunks *chunks)
{
    if (buffer->chunk != SXE_NONE)
        sxe_chunks_give(chunks, buffer->chunk);
    *buffer = (struct sxe_buffer)SXE_BUFFER_EMPTY;
}

/* Move the unread bytes to the start of the buffer's memory. */
static void
compact_buffer(struct sxe_buffer *buffer)
{
    if (buffer->taken == 0)
        return;
    buffer->used -= buffer->taken;
    memmove(buffer->base, buffer->base + buffer->taken, buffer->used);
    buffer->taken = 0;
}

int
sxe_buffer_add(struct sxe_buffer *buffer, const void *data, size_t length)
{
    if (length > sxe_buffer_room(buffer))
        return -ENOBUFS;
    if (length == 0)
        return 0;
    open_room(buffer);
    if (length > buffer->size - buffer->used)
        compact_buffer(buffer);
    memcpy(buffer->base + buffer->used, data, length);
    buffer->used += (uint32_t)length;
    close_room(buffer);
    return 0;
}

int
sxe_buffer_vprintf(struct sxe_buffer *buffer, const char *format, va_list arguments)
{
    char text[TEXT_MAX];
    va_list again;
    uint32_t room;

    va_copy(again, arguments);
    int length = vsnprintf(text, sizeof(text), format, arguments);
    if (length < 0) {
        length = -EINVAL;
    } else if ((size_t)length < sizeof(text)) {
        int result = sxe_buffer_add(buffer, text, (size_t)length);
        length = result < 0 ? result : length;
    } else if ((size_t)length >= sxe_buffer_room(buffer)) {
        length = -ENOBUFS;
    } else {
        char *end = sxe_buffer_reserve(buffer, &room);
        vsnprintf(end, room, format, again);
        sxe_buffer_commit(buffer, (uint32_t)length);
    }
    va_end(again);
    return length;
}

int
sxe_buffer_printf(struct sxe_buffer *buffer, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = sxe_buffer_vprintf(buffer, format, arguments);
    va_end(arguments);
    return length;
}

char *
sxe_buffer_reserve(struct sxe_buffer *buffer, uint32_t *room)
{
    *room = sxe_buffer_room(buffer);
    if (*room == 0)
        return NULL;
    open_room(buffer);
    compact_buffer(buffer);
    return buffer->base + buffer->used;
}

void
sxe_buffer_commit(struct sxe_buffer *buffer, uint32_t length)
{
    SXE_ASSERT(length <= buffer->size - buffer->used, "buffer: %u bytes committed into %u of room",
               length, buffer->size - buffer->used);
    buffer->used += length;
    close_room(buffer);
}

void
sxe_buffer_take(struct sxe_buffer *buffer, uint32_t length)
{
    SXE_ASSERT(length <= sxe_buffer_length(buffer), "buffer: %u bytes taken of %u", length,
               sxe_buffer_length(buffer));
    buffer->taken += length;
    if (buffer->taken == buffer->used)
        sxe_buffer_clear(buffer);
}

void
sxe_buffer_clear(struct sxe_buffer *buffer)
{
    buffer->taken = 0;
    buffer->used = 0;
}

char *
sxe_buffer_find(const struct sxe_buffer *buffer, const void *needle, size_t length)
{
    return sxe_find(sxe_buffer_data(buffer), sxe_buffer_length(buffer), needle, length);
}

char *
sxe_buffer_find_nocase(const struct sxe_buffer *buffer, const void *needle, size_t length)
{
    return sxe_find_nocase(sxe_buffer_data(buffer), sxe_buffer_length(buffer), needle, length);
}
