/* SPDX-License-Identifier: MIT */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>

#include "sxe-log.h"

int
http_heap_init(struct http_heap *heap, size_t room)
{
    *heap = (struct http_heap){.entries = calloc(room, sizeof(struct http_due)), .room = room};
    return heap->entries == NULL ? -ENOMEM : 0;
}

void
http_heap_free(struct http_heap *heap)
{
    free(heap->entries);
    *heap = (struct http_heap){0};
}

void
http_heap_push(struct http_heap *heap, struct http_due due)
{
    struct http_due *entries = heap->entries;
    size_t at = heap->used;

    SXE_ASSERT(heap->used < heap->room, "all %zu entries of the heap are in use", heap->room);
    heap->used++;
    for (size_t parent; at > 0 && entries[parent = (at - 1) / 2].ns > due.ns; at = parent)
        entries[at] = entries[parent];
    entries[at] = due;
}

const struct http_due *
http_heap_top(const struct http_heap *heap)
{
    return heap->used == 0 ? NULL : heap->entries;
}

struct http_due
http_heap_pop(struct http_heap *heap)
{
    struct http_due *entries = heap->entries;
    struct http_due top = entries[0];
    struct http_due last;
    size_t at = 0;

    SXE_ASSERT(heap->used > 0, "the heap of %zu is empty", heap->room);
    last = entries[--heap->used];
    for (size_t child; (child = 2 * at + 1) < heap->used; at = child) {
        if (child + 1 < heap->used && entries[child + 1].ns < entries[child].ns)
            child++;
        if (last.ns <= entries[child].ns)
            break;
        entries[at] = entries[child];
    }
    entries[at] = last;
    return top;
}
