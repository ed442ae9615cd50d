/* SPDX-License-Identifier: MIT
 *
 * What: runs operations on a few buffers, given as bytes, and does the same to plain arrays;
 * check_buffers() says what differs, or NULL. naive_find() is the oracle of both searches.
 * Place: included by test/fuzz/fuzz-buffer.c and test/unit/lib-sxe-buffer/test-buffer.c.
 */
#ifndef CHECK_BUFFER_H
#define CHECK_BUFFER_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sxe-buffer.h"

enum { CHECK_BUFFERS = 4, CHECK_SIZE_MAX = 64, CHECK_TEXT_MAX = 256 };

/* The state that a buffer should have. */
struct check_model {
    char unread[CHECK_SIZE_MAX];
    uint32_t length;
    uint32_t size;
    bool borrows;
};

struct check {
    const uint8_t *program;
    size_t left;
    struct sxe_chunks *chunks;
    uint32_t chunk_size;
    uint32_t free;
    struct sxe_buffer buffers[CHECK_BUFFERS];
    struct check_model models[CHECK_BUFFERS];
    char memory[CHECK_BUFFERS][CHECK_SIZE_MAX];
};

static inline uint8_t
naive_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + 32) : byte;
}

static inline const void *
naive_find(const void *hay, size_t hay_length, const void *needle, size_t length, bool nocase)
{
    const uint8_t *a = hay;
    const uint8_t *b = needle;

    if (length == 0)
        return hay;
    for (size_t at = 0; at + length <= hay_length; at++) {
        size_t same = 0;
        while (same < length && (nocase ? naive_lower(a[at + same]) == naive_lower(b[same])
                                        : a[at + same] == b[same]))
            same++;
        if (same == length)
            return a + at;
    }
    return NULL;
}

static inline uint8_t
check_next(struct check *check)
{
    if (check->left == 0)
        return 0;
    check->left--;
    return *check->program++;
}

/* Copy up to `most` bytes from the input; its next byte says how many. */
static inline uint32_t
check_text(struct check *check, char *text, uint32_t most)
{
    uint32_t length = check_next(check) % (most + 1);

    for (uint32_t i = 0; i < length; i++)
        text[i] = (char)check_next(check);
    return length;
}

static inline void
check_model_add(struct check_model *model, const char *text, uint32_t length)
{
    memcpy(model->unread + model->length, text, length);
    model->length += length;
}

static inline const char *
check_borrow(struct check *check, unsigned i)
{
    struct check_model *model = &check->models[i];

    if (model->size > 0)
        return NULL;
    if (sxe_buffer_borrow(&check->buffers[i], check->chunks) != (check->free > 0 ? 0 : -ENOBUFS))
        return "borrow";
    if (check->free > 0) {
        *model = (struct check_model){.size = check->chunk_size, .borrows = true};
        check->free--;
    }
    return NULL;
}

static inline const char *
check_give_back(struct check *check, unsigned i)
{
    check->free += check->models[i].borrows;
    check->models[i] = (struct check_model){.size = 0};
    sxe_buffer_give_back(&check->buffers[i], check->chunks);
    return NULL;
}

static inline const char *
check_wrap(struct check *check, unsigned i)
{
    struct check_model *model = &check->models[i];

    check_give_back(check, i);
    model->length = check_text(check, check->memory[i], CHECK_SIZE_MAX);
    model->size = model->length + check_next(check) % (CHECK_SIZE_MAX - model->length + 1);
    memcpy(model->unread, check->memory[i], model->length);
    sxe_buffer_wrap(&check->buffers[i], check->memory[i], model->length, model->size);
    return NULL;
}

static inline const char *
check_add(struct check *check, unsigned i)
{
    struct check_model *model = &check->models[i];
    char text[CHECK_TEXT_MAX] = "";
    uint32_t length = check_text(check, text, CHECK_SIZE_MAX + 8);
    bool fits = length <= model->size - model->length;

    if (sxe_buffer_add(&check->buffers[i], text, length) != (fits ? 0 : -ENOBUFS))
        return "add";
    if (fits)
        check_model_add(model, text, length);
    return NULL;
}

static inline const char *
check_printf(struct check *check, unsigned i)
{
    struct check_model *model = &check->models[i];
    char text[CHECK_TEXT_MAX] = "";
    int width = check_next(check) % (CHECK_SIZE_MAX + 8);
    int number = check_next(check);
    int length = snprintf(text, sizeof(text), "%*d", width, number);
    bool fits = (uint32_t)length <= model->size - model->length;

    if (sxe_buffer_printf(&check->buffers[i], "%*d", width, number) != (fits ? length : -ENOBUFS))
        return "printf";
    if (fits)
        check_model_add(model, text, (uint32_t)length);
    return NULL;
}

static inline const char *
check_reserve(struct check *check, unsigned i)
{
    struct check_model *model = &check->models[i];
    char text[CHECK_TEXT_MAX] = "";
    uint32_t room;
    char *into = sxe_buffer_reserve(&check->buffers[i], &room);

    if (room != model->size - model->length || (into == NULL) != (room == 0))
        return "reserve";
    if (into == NULL)
        return NULL;
    memset(into, 'r', room);
    uint32_t length = check_text(check, text, room);
    memcpy(into, text, length);
    sxe_buffer_commit(&check->buffers[i], length);
    check_model_add(model, text, length);
    return NULL;
}

static inline const char *
check_take(struct check *check, unsigned i)
{
    struct check_model *model = &check->models[i];
    uint32_t length = check_next(check) % (model->length + 1);

    sxe_buffer_take(&check->buffers[i], length);
    model->length -= length;
    memmove(model->unread, model->unread + length, model->length);
    return NULL;
}

static inline const char *
check_clear(struct check *check, unsigned i)
{
    sxe_buffer_clear(&check->buffers[i]);
    check->models[i].length = 0;
    return NULL;
}

static inline const char *
check_find(struct check *check, unsigned i)
{
    const struct sxe_buffer *buffer = &check->buffers[i];
    const char *data = sxe_buffer_data(buffer);
    uint32_t hay_length = sxe_buffer_length(buffer);
    char needle[CHECK_TEXT_MAX] = "";
    uint32_t length = check_text(check, needle, 9);

    if (sxe_buffer_find(buffer, needle, length) !=
        naive_find(data, hay_length, needle, length, false))
        return "find";
    if (sxe_buffer_find_nocase(buffer, needle, length) !=
        naive_find(data, hay_length, needle, length, true))
        return "find_nocase";
    return NULL;
}

static inline const char *
check_compare(const struct check *check)
{
    static const char zeros[SXE_CHUNK_FRONT];

    if (sxe_chunks_free(check->chunks) != check->free)
        return "number of free chunks";
    for (unsigned i = 0; i < CHECK_BUFFERS; i++) {
        const struct sxe_buffer *buffer = &check->buffers[i];
        const struct check_model *model = &check->models[i];

        if (buffer->size != model->size || sxe_buffer_length(buffer) != model->length ||
            sxe_buffer_room(buffer) != model->size - model->length)
            return "sizes";
        if (model->length > 0 && memcmp(sxe_buffer_data(buffer), model->unread, model->length) != 0)
            return "bytes";
        if (model->borrows && memcmp(buffer->base - SXE_CHUNK_FRONT, zeros, sizeof(zeros)) != 0)
            return "front";
    }
    return NULL;
}

/* The difference from the oracle when the program is run, or NULL. */
static inline const char *
check_buffers(const uint8_t *program, size_t size)
{
    static const char *(*const operations[])(struct check *, unsigned) = {
        check_borrow,  check_give_back, check_wrap,  check_add, check_printf,
        check_reserve, check_take,      check_clear, check_find};
    struct check check = {.program = program, .left = size};
    const char *wrong = NULL;

    for (unsigned i = 0; i < CHECK_BUFFERS; i++)
        check.buffers[i] = (struct sxe_buffer)SXE_BUFFER_EMPTY;
    check.chunk_size = 1 + check_next(&check) % CHECK_SIZE_MAX;
    check.free = 1 + check_next(&check) % CHECK_BUFFERS;
    check.chunks = sxe_chunks_new("check", check.free, check.chunk_size);
    if (check.chunks == NULL)
        return "new";
    while (check.left > 0 && wrong == NULL) {
        unsigned operation = check_next(&check) % (sizeof(operations) / sizeof(operations[0]));
        wrong = operations[operation](&check, check_next(&check) % CHECK_BUFFERS);
        if (wrong == NULL)
            wrong = check_compare(&check);
    }
    sxe_chunks_delete(check.chunks);
    return wrong;
}

#endif
