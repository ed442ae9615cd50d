/* SPDX-License-Identifier: MIT
 *
 * HyperLogLog: opening, adding, counting, merging.
 */
#include "sxe-hll-private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIND "HLL"

/* 1 / (2 ln 2): the factor of the estimator for many registers. */
#define ALPHA 0.721347520444481703680

/* ---- Opening ---- */

static unsigned
find_precision(const void *array)
{
    unsigned precision;

    sxe__sketch_numbers(array, KIND, &precision, 1);
    if (precision < SXE_HLL_PRECISION_MIN || precision > SXE_HLL_PRECISION_MAX ||
        sxe_pool_get_element_size(array) != sxe__hll_size(precision))
        return 0;
    return precision;
}

static void
repair_registers(const SXE_HLL *hll, char *why)
{
    size_t cleared = 0;

    for (size_t at = 0; at < sxe__hll_size(hll->precision); at++) {
        if (hll->registers[at] > sxe__hll_rank_max(hll->precision)) {
            hll->registers[at] = 0;
            cleared++;
        }
    }
    if (cleared > 0)
        sxe__sketch_refuse(why, 0,
                           "HyperLogLog %s: %zu of %zu registers held impossible values and were "
                           "set to 0; it counts less until all is added again",
                           sxe_pool_get_name(hll->registers), cleared,
                           sxe__hll_size(hll->precision));
}

static SXE_HLL *
open_hll_in_pool(void *array, unsigned options, char *why)
{
    const unsigned precision = array == NULL ? 0 : find_precision(array);
    SXE_HLL *hll = sxe__sketch_new(array, sizeof(*hll), precision != 0, "HyperLogLog", why);

    if (hll == NULL)
        return NULL;
    hll->registers = array;
    hll->precision = precision;
    if ((options & SXE_POOL_OPTION_REPAIR) != 0)
        repair_registers(hll, why);
    return hll;
}

/* Open the pool: from a descriptor, from its file, or in memory. */
static SXE_HLL *
open_hll_pool(const SXE_HLL_SPEC *spec, const int *fd, char *why)
{
    char state[sizeof(KIND) + 3];
    struct sxe__sketch_plan plan = {.what = "HyperLogLog",
                                    .name = spec->name,
                                    .options = spec->options,
                                    .file = spec->file,
                                    .state = state,
                                    .fd = fd};

    if ((spec->precision != 0 || (fd == NULL && spec->file == NULL)) &&
        (spec->precision < SXE_HLL_PRECISION_MIN || spec->precision > SXE_HLL_PRECISION_MAX)) {
        errno = -sxe__sketch_refuse(
            why, EINVAL, "HyperLogLog %s: the precision is %u, but must be from %u to %u",
            spec->name == NULL ? "without a name" : spec->name, spec->precision,
            SXE_HLL_PRECISION_MIN, SXE_HLL_PRECISION_MAX);
        return NULL;
    }
    snprintf(state, sizeof(state), KIND "_%u", spec->precision % 100);
    if (spec->precision != 0)
        plan.size = sxe__hll_size(spec->precision);
    return open_hll_in_pool(sxe__sketch_open(&plan, why), spec->options, why);
}

SXE_HLL *
sxe_hll_open_sized(const SXE_HLL_SPEC *given, size_t size, char *why)
{
    SXE_HLL_SPEC spec;

    return sxe__sketch_take(&spec, sizeof(spec), given, size, why) < 0
               ? NULL
               : open_hll_pool(&spec, NULL, why);
}

SXE_HLL *
sxe_hll_open_fd_sized(int fd, const SXE_HLL_SPEC *given, size_t size, char *why)
{
    SXE_HLL_SPEC spec;

    return sxe__sketch_take(&spec, sizeof(spec), given, size, why) < 0
               ? NULL
               : open_hll_pool(&spec, &fd, why);
}

void
sxe_hll_close(SXE_HLL *hll)
{
    if (hll == NULL)
        return;
    sxe_pool_delete(hll->registers);
    free(hll);
}

void *
sxe_hll_get_pool(const SXE_HLL *hll)
{
    return hll->registers;
}

unsigned
sxe_hll_get_precision(const SXE_HLL *hll)
{
    return hll->precision;
}

/* ---- Adding ---- */

int
sxe_hll_add_hash(SXE_HLL *hll, uint64_t hash)
{
    /* one bit above all bits of the hash, so that a first set bit exists */
    const uint64_t rest = hash >> hll->precision | UINT64_C(1) << (64 - hll->precision);

    return sxe__hll_raise(&hll->registers[hash & (sxe__hll_size(hll->precision) - 1)],
                          (uint8_t)(1 + __builtin_ctzll(rest)));
}

int
sxe_hll_add(SXE_HLL *hll, const void *bytes, size_t size)
{
    return sxe_hll_add_hash(hll, sxe__sketch_hash(bytes, size));
}

/* ---- Counting ---- */

/* The part of the sum that comes from registers with 0: x + sum of x^(2^k) 2^(k-1), where x is
 * their share of all registers. Infinite if all registers are 0. */
static double
sum_low(double x)
{
    double before, sum = x, factor = 1;

    if (x >= 1)
        return HUGE_VAL;
    do {
        x *= x;
        before = sum;
        sum += x * factor;
        factor += factor;
    } while (sum > before);
    return sum;
}

/* The part of the sum that comes from full registers: (1 - x - sum of (1 - x^(2^-k))^2 2^-k) / 3,
 * where x is the share of the other registers. */
static double
sum_high(double x)
{
    double before, sum = 1 - x, factor = 1;

    do {
        x = sqrt(x);
        before = sum;
        factor /= 2;
        sum -= (1 - x) * (1 - x) * factor;
    } while (sum < before);
    return sum / 3;
}

/* Estimate the count by algorithm 6 of Ertl's paper (sxe-hll.h), from how many registers have each
 * rank. */
static double
estimate_count(const unsigned *ranks, unsigned precision)
{
    const double registers = (double)sxe__hll_size(precision);
    const unsigned full = sxe__hll_rank_max(precision);
    double sum = registers * sum_high(1 - ranks[full] / registers);

    for (unsigned rank = full - 1; rank > 0; rank--)
        sum = (sum + ranks[rank]) / 2;
    sum += registers * sum_low(ranks[0] / registers);
    /* not more than 2^64, the number of different hashes */
    return fmin(ALPHA * registers * registers / sum, 0x1p64);
}

double
sxe_hll_count(const SXE_HLL *hll)
{
    unsigned ranks[UINT8_MAX + 1] = {0};

    for (size_t at = 0; at < sxe__hll_size(hll->precision); at++)
        ranks[__atomic_load_n(&hll->registers[at], __ATOMIC_RELAXED)]++;
    for (unsigned rank = sxe__hll_rank_max(hll->precision) + 1; rank <= UINT8_MAX; rank++)
        if (ranks[rank] > 0)
            return -EUCLEAN;
    return estimate_count(ranks, hll->precision);
}

int
sxe__hll_check(const SXE_HLL *hll)
{
    return sxe_hll_count(hll) < 0 ? -EUCLEAN : 0;
}

/* ---- Changing all registers ---- */

int
sxe_hll_merge(SXE_HLL *into, const SXE_HLL *from)
{
    const int result = from->precision < into->precision ? -EDOM : sxe__hll_check(from);

    for (size_t i = 0; result == 0 && i < sxe__hll_size(from->precision); i++) {
        size_t at = i;
        uint8_t rank = sxe__hll_read(from, i);

        sxe__hll_fold(from->precision, into->precision, &at, &rank);
        sxe__hll_raise(&into->registers[at], rank);
    }
    return result;
}

void
sxe_hll_clear(SXE_HLL *hll)
{
    for (size_t at = 0; at < sxe__hll_size(hll->precision); at++)
        __atomic_store_n(&hll->registers[at], 0, __ATOMIC_RELAXED);
}
