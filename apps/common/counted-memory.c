/* SPDX-License-Identifier: MIT
 *
 * An allocator for Lua states that counts, on top of realloc(3).
 */
#include "counted-memory.h"

#include <stdlib.h>

void *
counted_memory_allocate(void *user, void *block, size_t old_size, size_t size)
{
    struct counted_memory *memory = user;
    size_t had = block == NULL ? 0 : old_size; /* if there is no block, Lua passes a type here */
    void *resized;

    if (size == 0) {
        free(block);
        memory->used -= had;
        return NULL;
    }
    if (size > had &&
        (size - had > memory->used_max - memory->used || memory->total + size > memory->total_max))
        return NULL;
    resized = realloc(block, size);
    if (resized == NULL)
        return NULL;
    memory->used += size - had;
    memory->total += size;
    return resized;
}
