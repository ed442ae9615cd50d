/* SPDX-License-Identifier: MIT
 *
 * The allocator of a state: slabs of equal blocks, counted and limited.
 */
#include "sxe-lua-core-private.h"

#include <stdlib.h>
#include <string.h>

#if SXE_HAVE_ASAN
#    include <sanitizer/asan_interface.h>
#else
#    define ASAN_POISON_MEMORY_REGION(memory, size)   ((void)(memory), (void)(size))
#    define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

enum {
    UNIT = 16,
    SMALL_MAX = 2032,
    CHUNK_SIZE = 1 << 20,
    /* the chunk's head takes the place of its first slab */
    CHUNK_SLABS = CHUNK_SIZE / SXE__LUA_SLAB_SIZE - 1,
    SLAB_HEAD = 64
};

/* Sizes of blocks, in bytes. Most objects are small, so small sizes are 16 apart. The stack of a
 * new coroutine takes 720. The sizes above 1,024 divide a slab without a rest: texts of a thousand
 * characters are common. */
static const uint16_t block_sizes[SXE__LUA_SIZES] = {
    16,  32,  48,  64,  80,  96,  112, 128, 144, 160,  176,  192,  208,  224,
    240, 256, 320, 384, 448, 512, 640, 736, 896, 1024, 1088, 1360, 1632, 2032};

/* The class of a block by its size: the index is size / 16, rounded up, less 1. */
static const uint8_t size_classes[SMALL_MAX / UNIT] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 16, 16, 16, 17, 17,
    17, 17, 18, 18, 18, 18, 19, 19, 19, 19, 20, 20, 20, 20, 20, 20, 20, 20, 21, 21, 21, 21,
    21, 21, 22, 22, 22, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 23, 23, 23, 23, 24, 24,
    24, 24, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 25, 26, 26, 26,
    26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 26, 27, 27, 27, 27, 27, 27, 27, 27,
    27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27, 27};

struct block {
    struct block *next;
};

struct sxe__lua_slab {
    /* The next slab that has room for blocks of this size; for an empty slab, the next empty slab
     * of its chunk. */
    struct sxe__lua_slab *next;
    struct sxe__lua_slab *prev;
    struct sxe__lua_chunk *chunk;
    struct block *freed;
    uint16_t used;
    uint16_t fresh; /* offset of the blocks that were never used */
    uint16_t size_class;
};
_Static_assert(sizeof(struct sxe__lua_slab) <= SLAB_HEAD, "blocks begin after the head");

struct sxe__lua_chunk {
    struct sxe__lua_chunk *next; /* the next chunk in the heap's list of chunks with room */
    struct sxe__lua_chunk *prev;
    struct sxe__lua_slab *empty; /* the list of empty slabs that were used */
    unsigned fresh;              /* number of slabs at the chunk's end that were never used */
    unsigned used;
};

/* ---- Chunks: the heap lists those with room; one that is full is found from its slabs ---- */

static void
link_chunk(struct sxe__lua_heap *heap, struct sxe__lua_chunk *chunk)
{
    chunk->prev = NULL;
    chunk->next = heap->chunks;
    if (chunk->next != NULL)
        chunk->next->prev = chunk;
    heap->chunks = chunk;
}

static void
unlink_chunk(struct sxe__lua_heap *heap, struct sxe__lua_chunk *chunk)
{
    if (chunk->next != NULL)
        chunk->next->prev = chunk->prev;
    if (chunk->prev != NULL)
        chunk->prev->next = chunk->next;
    else
        heap->chunks = chunk->next;
}

static struct sxe__lua_chunk *
new_chunk(struct sxe__lua_heap *heap)
{
    struct sxe__lua_chunk *chunk = aligned_alloc(SXE__LUA_SLAB_SIZE, CHUNK_SIZE);

    if (chunk == NULL)
        return NULL;
    *chunk = (struct sxe__lua_chunk){.fresh = CHUNK_SLABS};
    link_chunk(heap, chunk);
    return chunk;
}

static void *
fresh_slab(struct sxe__lua_chunk *chunk)
{
    return (char *)chunk + (size_t)(1 + CHUNK_SLABS - chunk->fresh--) * SXE__LUA_SLAB_SIZE;
}

/* ---- Accounts ---- */

static bool
hold_bytes(struct sxe__lua_heap *heap, size_t more)
{
    if (more > heap->max - heap->held)
        return false;
    heap->held += more;
    if (heap->held > heap->most)
        heap->most = heap->held;
    return true;
}

/* ---- Slabs: those of one size that have room are in a list ---- */

static void
link_slab(struct sxe__lua_heap *heap, struct sxe__lua_slab *slab)
{
    struct sxe__lua_slab **first = &heap->slabs[slab->size_class];

    slab->prev = NULL;
    slab->next = *first;
    if (slab->next != NULL)
        slab->next->prev = slab;
    *first = slab;
}

static void
unlink_slab(struct sxe__lua_heap *heap, struct sxe__lua_slab *slab)
{
    if (slab->next != NULL)
        slab->next->prev = slab->prev;
    if (slab->prev != NULL)
        slab->prev->next = slab->next;
    else
        heap->slabs[slab->size_class] = slab->next;
}

static struct sxe__lua_slab *
new_slab(struct sxe__lua_heap *heap, unsigned size_class)
{
    struct sxe__lua_chunk *chunk = heap->chunks != NULL ? heap->chunks : new_chunk(heap);
    struct sxe__lua_slab *slab;

    if (chunk == NULL || !hold_bytes(heap, SXE__LUA_SLAB_SIZE))
        return NULL;
    slab = chunk->empty;
    if (slab != NULL)
        chunk->empty = slab->next;
    else
        slab = fresh_slab(chunk);
    chunk->used++;
    if (chunk->used == CHUNK_SLABS)
        unlink_chunk(heap, chunk);
    *slab = (struct sxe__lua_slab){
        .chunk = chunk, .fresh = SLAB_HEAD, .size_class = (uint16_t)size_class};
    link_slab(heap, slab);
    return slab;
}

/* Keep one empty chunk if no other has room: otherwise a program that allocates and frees at the
 * border of a chunk would get and release a chunk each time. */
static void
drop_slab(struct sxe__lua_heap *heap, struct sxe__lua_slab *slab)
{
    struct sxe__lua_chunk *chunk = slab->chunk;

    unlink_slab(heap, slab);
    heap->held -= SXE__LUA_SLAB_SIZE;
    ASAN_UNPOISON_MEMORY_REGION(slab, SXE__LUA_SLAB_SIZE);
    if (chunk->used == CHUNK_SLABS)
        link_chunk(heap, chunk);
    slab->next = chunk->empty;
    chunk->empty = slab;
    chunk->used--;
    if (chunk->used == 0 && (chunk->next != NULL || chunk->prev != NULL)) {
        unlink_chunk(heap, chunk);
        free(chunk);
    }
}

static bool
is_full(const struct sxe__lua_slab *slab)
{
    return slab->freed == NULL && slab->fresh + block_sizes[slab->size_class] > SXE__LUA_SLAB_SIZE;
}

/* ---- Blocks ---- */

static void *
allocate_small(struct sxe__lua_heap *heap, size_t size)
{
    unsigned size_class = size_classes[(size - 1) / UNIT];
    struct sxe__lua_slab *slab = heap->slabs[size_class];
    struct block *block;

    if (SXE_UNLIKELY(slab == NULL) && (slab = new_slab(heap, size_class)) == NULL)
        return NULL;
    block = slab->freed;
    if (block != NULL) {
        ASAN_UNPOISON_MEMORY_REGION(block, block_sizes[size_class]);
        slab->freed = block->next;
    } else {
        block = (void *)((char *)slab + slab->fresh);
        slab->fresh = (uint16_t)(slab->fresh + block_sizes[size_class]);
    }
    slab->used++;
    if (SXE_UNLIKELY(is_full(slab)))
        unlink_slab(heap, slab);
    return block;
}

static void
give_small(struct sxe__lua_heap *heap, void *memory)
{
    struct sxe__lua_slab *slab = (void *)((uintptr_t)memory & ~(uintptr_t)(SXE__LUA_SLAB_SIZE - 1));
    struct block *block = memory;

    if (SXE_UNLIKELY(is_full(slab)))
        link_slab(heap, slab);
    block->next = slab->freed;
    slab->freed = block;
    slab->used--;
    ASAN_POISON_MEMORY_REGION(block, block_sizes[slab->size_class]);
    if (SXE_UNLIKELY(slab->used == 0))
        drop_slab(heap, slab);
}

static void *
take_block(struct sxe__lua_heap *heap, size_t size)
{
    void *block;

    if (size <= SMALL_MAX)
        return allocate_small(heap, size);
    if (!hold_bytes(heap, size))
        return NULL;
    block = malloc(size);
    if (block == NULL)
        heap->held -= size;
    return block;
}

static void
give_block(struct sxe__lua_heap *heap, void *block, size_t size)
{
    if (size == 0)
        return;
    if (size <= SMALL_MAX) {
        give_small(heap, block);
    } else {
        heap->held -= size;
        free(block);
    }
}

static void *
resize_large(struct sxe__lua_heap *heap, void *block, size_t old_size, size_t new_size)
{
    void *resized;

    if (new_size > old_size && !hold_bytes(heap, new_size - old_size))
        return NULL;
    resized = realloc(block, new_size);
    if (resized == NULL) {
        heap->held -= new_size > old_size ? new_size - old_size : 0;
        return NULL;
    }
    heap->held -= old_size > new_size ? old_size - new_size : 0;
    return resized;
}

/* ---- The function that Lua calls ---- */

static bool
is_same_block(size_t old_size, size_t new_size)
{
    return old_size > 0 && old_size <= SMALL_MAX && new_size <= SMALL_MAX &&
           size_classes[(old_size - 1) / UNIT] == size_classes[(new_size - 1) / UNIT];
}

/* After a failure Lua collects garbage and tries again; so a test that wants an error has both
 * tries fail. */
static bool
must_fail(struct sxe__lua_heap *heap)
{
    if (SXE_LIKELY(heap->fail_times == 0))
        return false;
    if (heap->fail_after > 0) {
        heap->fail_after--;
        return false;
    }
    heap->fail_times--;
    return true;
}

static void *
resize_block(struct sxe__lua_heap *heap, void *block, size_t old_size, size_t new_size)
{
    void *moved;

    if (is_same_block(old_size, new_size))
        return block;
    if (old_size > SMALL_MAX && new_size > SMALL_MAX)
        return resize_large(heap, block, old_size, new_size);
    moved = take_block(heap, new_size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, old_size < new_size ? old_size : new_size);
    give_block(heap, block, old_size);
    return moved;
}

void *
sxe__lua_allocate(void *user, void *block, size_t old_size, size_t new_size)
{
    struct sxe__lua_heap *heap = user;

    if (block == NULL)
        old_size = 0; /* when Lua makes an object, old_size is the object's type, not a size */
    if (new_size == 0) {
        give_block(heap, block, old_size);
        return NULL;
    }
    if (new_size > old_size) {
        heap->allocations++;
        if (must_fail(heap))
            return NULL;
    }
    return old_size == 0 ? take_block(heap, new_size)
                         : resize_block(heap, block, old_size, new_size);
}

void
sxe__lua_heap_free(struct sxe__lua_heap *heap)
{
    free(heap->chunks);
    heap->chunks = NULL;
}

/* ---- For the state ---- */

size_t
sxe_lua_memory(const struct sxe_lua *lua, size_t *most)
{
    if (most != NULL)
        *most = lua->heap.most;
    return lua->heap.held;
}

static int
collect_at_end(lua_State *L)
{
    lua_gc(L, LUA_GCSTEP, 0);
    return 0;
}

void
sxe__lua_relieve(void)
{
    struct sxe_lua *lua = sxe__lua_current();

    if (SXE_UNLIKELY(lua->heap.held > lua->heap.max / 4 * 3))
        sxe__lua_protect(lua, collect_at_end, NULL, "collecting garbage");
}
