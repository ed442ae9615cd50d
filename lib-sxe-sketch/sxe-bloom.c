/* SPDX-License-Identifier: MIT
 *
 * Bloom filters: opening, adding, asking, merging.
 */
#include "sxe-bloom.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sxe-sketch-private.h"

#define KIND          "BLOOM"
#define ERROR_DEFAULT 0.01
#define HASHES_MAX    30u /* how many hashes a filter with SXE_BLOOM_ERROR_MIN has */
#define WORD_BITS     64u

struct sxe_bloom {
    uint64_t *words; /* the array of the pool, which holds the bits */
    uint64_t bits;   /* how many bits; a multiple of 64 */
    unsigned hashes;
};

/* ---- Opening ---- */

/* The formula of the header holds for many bits. With few bits, the number of set bits spreads
 * around the expected one, which makes the error larger. Some more bits, fewer than there are
 * hashes, make up for that. */
static uint64_t
count_filter_words(uint64_t capacity, double error, unsigned hashes)
{
    const double each = -(double)hashes / log1p(-pow(error, 1.0 / hashes));

    return capacity == 0 ? 0 : (uint64_t)ceil(((double)capacity * each + hashes) / WORD_BITS);
}

/* Find the numbers of words and hashes of a spec. 0 or -EINVAL. */
static int
plan_filter(const SXE_BLOOM_SPEC *spec, uint64_t *words, unsigned *hashes, char *why)
{
    const double error = spec->error == 0 ? ERROR_DEFAULT : spec->error;
    const char *name = spec->name == NULL ? "without a name" : spec->name;

    if (!(error >= SXE_BLOOM_ERROR_MIN && error <= SXE_BLOOM_ERROR_MAX))
        return sxe__sketch_refuse(why, EINVAL,
                                  "Bloom filter %s: the error is %g, but must be from %g to %g",
                                  name, error, SXE_BLOOM_ERROR_MIN, SXE_BLOOM_ERROR_MAX);
    if (spec->capacity > SXE_BLOOM_CAPACITY_MAX)
        return sxe__sketch_refuse(why, EINVAL,
                                  "Bloom filter %s: the capacity is %llu, but must be at most 2^36",
                                  name, (unsigned long long)spec->capacity);
    *hashes = (unsigned)lround(-log2(error));
    *words = count_filter_words(spec->capacity, error, *hashes);
    return 0;
}

static SXE_BLOOM *
open_bloom_in_pool(void *array, char *why)
{
    SXE_BLOOM *bloom;
    unsigned hashes = 0;
    size_t size = 0;

    if (array != NULL) {
        sxe__sketch_numbers(array, KIND, &hashes, 1);
        size = sxe_pool_get_element_size(array);
    }
    const bool is_right =
        hashes > 0 && hashes <= HASHES_MAX && size > 0 && size % sizeof(uint64_t) == 0;

    bloom = sxe__sketch_new(array, sizeof(*bloom), is_right, "Bloom filter", why);
    if (bloom == NULL)
        return NULL;
    bloom->words = array;
    bloom->bits = (uint64_t)size * 8;
    bloom->hashes = hashes;
    return bloom;
}

/* Open the pool: from a descriptor, from its file, or in memory. */
static SXE_BLOOM *
open_bloom_pool(const SXE_BLOOM_SPEC *spec, const int *fd, char *why)
{
    char state[sizeof(KIND) + 3];
    uint64_t words = 0;
    unsigned hashes = 0;
    const int result = plan_filter(spec, &words, &hashes, why);

    if (result < 0) {
        errno = -result;
        return NULL;
    }
    snprintf(state, sizeof(state), KIND "_%u", hashes % 100);
    const struct sxe__sketch_plan plan = {.what = "Bloom filter",
                                          .name = spec->name,
                                          .state = state,
                                          .size = (size_t)words * sizeof(uint64_t),
                                          .options = spec->options,
                                          .file = spec->file,
                                          .fd = fd};

    return open_bloom_in_pool(sxe__sketch_open(&plan, why), why);
}

SXE_BLOOM *
sxe_bloom_open_sized(const SXE_BLOOM_SPEC *given, size_t size, char *why)
{
    SXE_BLOOM_SPEC spec;

    return sxe__sketch_take(&spec, sizeof(spec), given, size, why) < 0
               ? NULL
               : open_bloom_pool(&spec, NULL, why);
}

SXE_BLOOM *
sxe_bloom_open_fd_sized(int fd, const SXE_BLOOM_SPEC *given, size_t size, char *why)
{
    SXE_BLOOM_SPEC spec;

    return sxe__sketch_take(&spec, sizeof(spec), given, size, why) < 0
               ? NULL
               : open_bloom_pool(&spec, &fd, why);
}

void
sxe_bloom_close(SXE_BLOOM *bloom)
{
    if (bloom == NULL)
        return;
    sxe_pool_delete(bloom->words);
    free(bloom);
}

void *
sxe_bloom_get_pool(const SXE_BLOOM *bloom)
{
    return bloom->words;
}

uint64_t
sxe_bloom_get_bits(const SXE_BLOOM *bloom)
{
    return bloom->bits;
}

unsigned
sxe_bloom_get_hashes(const SXE_BLOOM *bloom)
{
    return bloom->hashes;
}

/* ---- Bits ---- */

/* The place of bit number i of a hash: for each i it is as good as random. */
static uint64_t
place_of_bit(const SXE_BLOOM *bloom, uint64_t hash, unsigned i)
{
    return sxe__sketch_scatter(hash + i * UINT64_C(0x9e3779b97f4a7c15)) % bloom->bits;
}

bool
sxe_bloom_add_hash(SXE_BLOOM *bloom, uint64_t hash)
{
    bool is_new = false;

    for (unsigned i = 0; i < bloom->hashes; i++) {
        const uint64_t place = place_of_bit(bloom, hash, i);
        const uint64_t bit = UINT64_C(1) << place % WORD_BITS;
        uint64_t *word = &bloom->words[place / WORD_BITS];

        /* Do not write a bit that is set already: a word that is only read can stay in the caches
         * of all processors. */
        if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0)
            is_new |= (__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit) == 0;
    }
    return is_new;
}

bool
sxe_bloom_has_hash(const SXE_BLOOM *bloom, uint64_t hash)
{
    bool has = true;

    for (unsigned i = 0; i < bloom->hashes && has; i++) {
        const uint64_t place = place_of_bit(bloom, hash, i);

        has = (__atomic_load_n(&bloom->words[place / WORD_BITS], __ATOMIC_RELAXED) >>
                   place % WORD_BITS &
               1) != 0;
    }
    return has;
}

bool
sxe_bloom_add(SXE_BLOOM *bloom, const void *bytes, size_t size)
{
    return sxe_bloom_add_hash(bloom, sxe__sketch_hash(bytes, size));
}

bool
sxe_bloom_has(const SXE_BLOOM *bloom, const void *bytes, size_t size)
{
    return sxe_bloom_has_hash(bloom, sxe__sketch_hash(bytes, size));
}

/* ---- All bits ---- */

/* The share of bits that are set. */
static double
measure_fill(const SXE_BLOOM *bloom)
{
    uint64_t set = 0;

    for (uint64_t i = 0; i < bloom->bits / WORD_BITS; i++)
        set += (uint64_t)__builtin_popcountll(__atomic_load_n(&bloom->words[i], __ATOMIC_RELAXED));
    return (double)set / (double)bloom->bits;
}

double
sxe_bloom_count(const SXE_BLOOM *bloom)
{
    const double bits = (double)bloom->bits;

    /* A full filter cannot tell how much it holds; it counts as one with a single clear bit. */
    return -bits / bloom->hashes * log1p(-fmin(measure_fill(bloom), 1 - 1 / bits));
}

double
sxe_bloom_get_error(const SXE_BLOOM *bloom)
{
    return pow(measure_fill(bloom), bloom->hashes);
}

int
sxe_bloom_merge(SXE_BLOOM *into, const SXE_BLOOM *from)
{
    if (into->bits != from->bits || into->hashes != from->hashes)
        return -EDOM;
    for (uint64_t i = 0; i < from->bits / WORD_BITS; i++)
        __atomic_fetch_or(&into->words[i], __atomic_load_n(&from->words[i], __ATOMIC_RELAXED),
                          __ATOMIC_RELAXED);
    return 0;
}

void
sxe_bloom_clear(SXE_BLOOM *bloom)
{
    for (uint64_t i = 0; i < bloom->bits / WORD_BITS; i++)
        __atomic_store_n(&bloom->words[i], 0, __ATOMIC_RELAXED);
}
