/* SPDX-License-Identifier: MIT
 *
 * What: an allocator of Lua states (lua_Alloc) that counts bytes and refuses to allocate beyond a
 * limit. So a script that needs too much gets an error, before the process runs out of memory.
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
    size_t used_max; /* the most bytes that may be in use at a time */
    /* The most that `total` may become. This limit also ends a loop that copies long
     * strings. */
    size_t total_max;
    size_t used;  /* ro: bytes in use */
    size_t total; /* ro: the sizes of all blocks, added up over the state's life */
};

/* memory points to the struct counted_memory. size 0: free the block. Otherwise resize it. Returns
 * NULL if there is no memory, or if a limit would be exceeded; then the old block is unchanged. */
void *counted_memory_allocate(void *memory, void *block, size_t old_size, size_t size);

#endif
