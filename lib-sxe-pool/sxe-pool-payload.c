/* SPDX-License-Identifier: MIT
 *
 * The contents of elements. A writer makes the element's sequence number odd, writes, and makes it
 * even again; a reader that met an odd number, or a different number after its copy, reads again.
 * All copies are made by atomic words, so that a torn copy can be discarded without a data race.
 *
 * The number has 32 bits: a reader would have to be stopped within one copy for exactly a multiple
 * of 2^31 writes to be deceived.
 */
#include <errno.h>
#include <string.h>

#include "sxe-pool-sharing-private.h"

/* A reader waits at most this many pauses of the processor, some 20 to 40 ns each: about 50 us. */
#define SPINS          1500u
#define BYTES_PER_SPIN 64u /* a failed copy counts as one spin for each 64 bytes */

/* may_alias: the program may keep any type there */
typedef uint64_t __attribute__((may_alias)) word;

static char *
bytes_of(const void *array, unsigned id, size_t offset, size_t size)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);

    sxe__pool_check_id(pool, id);
    SXE_ASSERT_ID(id, offset <= pool->element_size && size <= pool->element_size - offset,
                  "pool %s: element %u has no %zu bytes at %zu, only %zu in all", pool->name, id,
                  size, offset, (size_t)pool->element_size);
    return (char *)(uintptr_t)array + id * pool->element_size + offset;
}

/* ---- Copies: words where 8 bytes are aligned, single bytes before and after ---- */

static size_t
bytes_before_words(const char *shared, size_t size)
{
    const size_t before = -(uintptr_t)shared % sizeof(word);

    return before < size ? before : size;
}

static void
copy_bytes_out(char *copy, const char *shared, size_t size)
{
    for (size_t i = 0; i < size; i++)
        copy[i] = __atomic_load_n(&shared[i], __ATOMIC_RELAXED);
}

static void
copy_payload_out(char *copy, const char *shared, size_t size)
{
    size_t done = bytes_before_words(shared, size);

    copy_bytes_out(copy, shared, done);
    for (; size - done >= sizeof(word); done += sizeof(word)) {
        const uint64_t value =
            __atomic_load_n((const word *)(const void *)(shared + done), __ATOMIC_RELAXED);
        memcpy(copy + done, &value, sizeof(value));
    }
    copy_bytes_out(copy + done, shared + done, size - done);
}

static void
copy_bytes_in(char *shared, const char *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        __atomic_store_n(&shared[i], value[i], __ATOMIC_RELAXED);
}

static void
copy_payload_in(char *shared, const char *value, size_t size)
{
    size_t done = bytes_before_words(shared, size);

    copy_bytes_in(shared, value, done);
    for (; size - done >= sizeof(word); done += sizeof(word)) {
        uint64_t words;
        memcpy(&words, value + done, sizeof(words));
        __atomic_store_n((word *)(void *)(shared + done), words, __ATOMIC_RELAXED);
    }
    copy_bytes_in(shared + done, value + done, size - done);
}

/* ---- Reading ---- */

int
sxe_pool_read_part(const void *array, unsigned id, size_t offset, size_t size, void *copy)
{
    const char *shared = bytes_of(array, id, offset, size);
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    if (sharing == NULL) {
        memcpy(copy, shared, size);
        return 0;
    }
    const uint32_t *sequence = &sharing->nodes[id].sequence;
    for (size_t spins = 0; spins < SPINS; spins++) {
        const uint32_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);

        if (before % 2 == 0) {
            copy_payload_out(copy, shared, size);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            if (SXE__POOL_GET(*sequence) == before)
                return 0;
            spins += size / BYTES_PER_SPIN;
        }
        sxe__pool_pause();
    }
    return -EBUSY;
}

int
sxe_pool_read_element(const void *array, unsigned id, void *copy)
{
    return sxe_pool_read_part(array, id, 0, sxe__pool_header(array)->element_size, copy);
}

bool
sxe_pool_is_torn(const void *array, unsigned id)
{
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    sxe__pool_check_id(sxe__pool_header(array), id);
    return sharing != NULL && SXE__POOL_GET(sharing->nodes[id].sequence) % 2 != 0;
}

/* ---- Writing ---- */

void
sxe_pool_write_part(void *array, unsigned id, size_t offset, size_t size, const void *value)
{
    char *shared = bytes_of(array, id, offset, size);
    const struct sxe__pool_sharing *sharing = sxe__pool_header(array)->sharing;

    if (sharing == NULL) {
        memcpy(shared, value, size);
        return;
    }
    uint32_t *sequence = &sharing->nodes[id].sequence;
    /* the number is odd already if a writer was killed */
    const uint32_t odd = SXE__POOL_GET(*sequence) | 1;

    SXE__POOL_PUT(*sequence, odd);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    copy_payload_in(shared, value, size);
    SXE__POOL_PUT_LAST(*sequence, odd + 1);
}

void
sxe_pool_write_element(void *array, unsigned id, const void *value)
{
    sxe_pool_write_part(array, id, 0, sxe__pool_header(array)->element_size, value);
}

uint64_t
sxe_pool_add_u64(void *array, unsigned id, size_t offset, uint64_t addend)
{
    char *place = bytes_of(array, id, offset, sizeof(uint64_t));

    SXE_ASSERT_ID(
        id, (uintptr_t)place % sizeof(uint64_t) == 0,
        "pool %s: the u64 at %zu of element %u is not aligned to 8: elements are %zu bytes",
        sxe_pool_get_name(array), offset, id, (size_t)sxe__pool_header(array)->element_size);
    word *sum = (word *)(void *)place;
    if (sxe__pool_header(array)->sharing == NULL)
        return *sum += addend;
    return __atomic_add_fetch(sum, addend, __ATOMIC_RELAXED);
}
