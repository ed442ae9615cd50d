/* SPDX-License-Identifier: MIT
 *
 * What: an allocator of Lua states (lua_Alloc) that counts bytes and refuses those beyond a limit,
 * so that a script gets an error where the process would run out of memory.
 * Place: scripts of sxe-http and the configuration file of sxe-httpd. lib-sxe-lua has an allocator
 * of its own, which is faster for many small objects: sxe-lua-alloc.c.
 *
 *     struct counted_memory memory = {.used_max = 1 << 20, .total_max = SIZE_MAX};
 *     lua_State *L = lua_newstate(counted_memory_allocate, &memory);
 */
#ifndef COUNTED_MEMORY_H
#define COUNTED_MEMORY_H

#include <stddef.h>

struct counted_memory {
    size_t used_max;  /* bytes in use at a time, at most */
    size_t total_max; /* the limit of `total`, which also ends a loop that copies long strings */
    size_t used;      /* ro: bytes in use */
    size_t total;     /* ro: the sizes of all blocks, added up over the state's life */
};

/* memory: the struct counted_memory. size 0: free the block. Otherwise resize it. NULL: there is no
 * memory, or a limit would be exceeded; the old block is unchanged. */
void *counted_memory_allocate(void *memory, void *block, size_t old_size, size_t size);

#endif
