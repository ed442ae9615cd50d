/* SPDX-License-Identifier: MIT
 *
 * A binary heap of timed events.
 */
#include "heap.h"

#include <errno.h>
#include <stdlib.h>

#include "sxe-log.h"

int
load_heap_init(struct load_heap *heap, size_t room)
{
    *heap = (struct load_heap){.entries = calloc(room, sizeof(struct load_due)), .room = room};
    return heap->entries == NULL ? -ENOMEM : 0;
}

void
load_heap_free(struct load_heap *heap)
{
    free(heap->entries);
    *heap = (struct load_heap){0};
}

void
load_heap_push(struct load_heap *heap, struct load_due due)
{
    struct load_due *entries = heap->entries;
    size_t at = heap->used;

    SXE_ASSERT(heap->used < heap->room, "all %zu entries of the heap are in use", heap->room);
    heap->used++;
    for (size_t parent; at > 0 && entries[parent = (at - 1) / 2].ns > due.ns; at = parent)
        entries[at] = entries[parent];
    entries[at] = due;
}

const struct load_due *
load_heap_top(const struct load_heap *heap)
{
    return heap->used == 0 ? NULL : heap->entries;
}

struct load_due
load_heap_pop(struct load_heap *heap)
{
    struct load_due *entries = heap->entries;
    struct load_due top = entries[0];
    struct load_due last;
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
