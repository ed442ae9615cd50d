/* SPDX-License-Identifier: MIT
 *
 * The strings in which Redis keeps a HyperLogLog. A head of 16 bytes, then 16,384 registers:
 *
 *     "HYLL" | form: 0 dense, 1 sparse | 3 bytes unused | count, 8 bytes, the lowest first
 *
 *     dense    6 bits a register, the first in the lowest bits of the first byte: 12,288 bytes
 *     sparse   runs of equal registers: 00nnnnnn            n + 1 zeros
 *                                       01nnnnnn nnnnnnnn   n + 1 zeros
 *                                       1rrrrrnn            n + 1 times the rank r + 1
 *
 * The highest bit of the count says that it is out of date: an export sets it.
 */
#include "sxe-hll-private.h"

#include <errno.h>
#include <string.h>

#define REGISTERS     16384u
#define HEAD_SIZE     16u
#define DENSE_SIZE    (HEAD_SIZE + REGISTERS * 6 / 8)
#define SPARSE_MAX    3000u /* most bytes of the sparse form; Redis uses the dense form for more */
#define FORM_AT       4u
#define COUNT_LAST_AT 15u
#define DENSE         0u
#define SPARSE        1u
#define ZEROS_SHORT   64u
#define RANK_SPARSE   32u
#define RANK_RUN      4u

_Static_assert(DENSE_SIZE == SXE_HLL_REDIS_MAX, "the dense form is the longest");

/* ---- Import ---- */

static int
read_dense(uint8_t *registers, const uint8_t *bytes, size_t size, char *why)
{
    if (size != DENSE_SIZE)
        return sxe__sketch_refuse(why, EINVAL,
                                  "a dense HyperLogLog of Redis has %u bytes, but this has %zu",
                                  DENSE_SIZE, size);
    bytes += HEAD_SIZE;
    for (size_t i = 0; i < REGISTERS; i += 4, bytes += 3) {
        const uint32_t four = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;

        for (unsigned j = 0; j < 4; j++) {
            registers[i + j] = four >> (6 * j) & 63;
            if (registers[i + j] > sxe__hll_rank_max(SXE_HLL_PRECISION_REDIS))
                return sxe__sketch_refuse(why, EINVAL,
                                          "register %zu of a HyperLogLog of Redis has rank %u, "
                                          "but the highest is %u",
                                          i + j, registers[i + j],
                                          sxe__hll_rank_max(SXE_HLL_PRECISION_REDIS));
        }
    }
    return 0;
}

/* Read a run at bytes[*at], and move *at to its end. Returns its length; 0: its end is missing. */
static size_t
read_run(const uint8_t *bytes, size_t size, size_t *at, uint8_t *rank)
{
    const uint8_t first = bytes[(*at)++];

    *rank = 0;
    if ((first & 0xc0) == 0)
        return first + 1u;
    if ((first & 0x80) != 0) {
        *rank = (uint8_t)((first >> 2 & 31) + 1);
        return (first & 3) + 1u;
    }
    return *at < size ? ((first & 63u) << 8 | bytes[(*at)++]) + 1u : 0;
}

static int
read_sparse(uint8_t *registers, const uint8_t *bytes, size_t size, char *why)
{
    size_t at = HEAD_SIZE;
    size_t filled = 0;
    uint8_t rank;

    while (at < size) {
        const size_t begin = at;
        const size_t length = read_run(bytes, size, &at, &rank);

        if (length == 0 || length > REGISTERS - filled)
            return sxe__sketch_refuse(
                why, EINVAL, "the run at byte %zu of a sparse HyperLogLog of Redis %s", begin,
                length == 0 ? "has no second byte" : "goes on after the last register");
        memset(registers + filled, rank, length);
        filled += length;
    }
    if (filled == REGISTERS)
        return 0;
    return sxe__sketch_refuse(why, EINVAL,
                              "a sparse HyperLogLog of Redis ends after register %zu of %u", filled,
                              REGISTERS);
}

static int
read_sparse_registers(uint8_t *registers, const uint8_t *bytes, size_t size, char *why)
{
    if (size < HEAD_SIZE || memcmp(bytes, "HYLL", 4) != 0)
        return sxe__sketch_refuse(why, EINVAL,
                                  "%zu bytes are no HyperLogLog of Redis: they do not begin with "
                                  "HYLL and a head of %u bytes",
                                  size, HEAD_SIZE);
    if (bytes[FORM_AT] > SPARSE)
        return sxe__sketch_refuse(why, EINVAL,
                                  "a HyperLogLog of Redis has form %u, but only 0 and 1 are known",
                                  bytes[FORM_AT]);
    return bytes[FORM_AT] == DENSE ? read_dense(registers, bytes, size, why)
                                   : read_sparse(registers, bytes, size, why);
}

int
sxe_hll_import(SXE_HLL *hll, const void *bytes, size_t size, char *why)
{
    uint8_t registers[REGISTERS];
    int result = 0;

    if (hll->precision > SXE_HLL_PRECISION_REDIS)
        result = sxe__sketch_refuse(why, EDOM,
                                    "HyperLogLog %s has precision %u, and Redis %u: import into "
                                    "one of at most that precision",
                                    sxe_pool_get_name(hll->registers), hll->precision,
                                    SXE_HLL_PRECISION_REDIS);
    if (result == 0)
        result = read_sparse_registers(registers, bytes, size, why);
    for (size_t i = 0; result == 0 && i < REGISTERS; i++) {
        size_t at = i;

        sxe__hll_fold(SXE_HLL_PRECISION_REDIS, hll->precision, &at, &registers[i]);
        sxe__hll_raise(&hll->registers[at], registers[i]);
    }
    return result;
}

/* ---- Export ---- */

static void
write_dense(const uint8_t *registers, uint8_t *bytes)
{
    bytes[FORM_AT] = DENSE;
    bytes += HEAD_SIZE;
    for (size_t i = 0; i < REGISTERS; i += 4, bytes += 3) {
        uint32_t four = 0;

        for (unsigned j = 0; j < 4; j++)
            four |= (uint32_t)registers[i + j] << (6 * j);
        bytes[0] = (uint8_t)four;
        bytes[1] = (uint8_t)(four >> 8);
        bytes[2] = (uint8_t)(four >> 16);
    }
}

/* Write a run, or as much of it as one code can hold. Returns how many registers were written. */
static size_t
write_run(uint8_t *bytes, size_t *size, uint8_t rank, size_t length)
{
    if (rank > 0) {
        length = length > RANK_RUN ? RANK_RUN : length;
        bytes[(*size)++] = (uint8_t)(0x80u | (rank - 1u) << 2 | (length - 1));
    } else if (length > ZEROS_SHORT) {
        bytes[(*size)++] = (uint8_t)(0x40u | (length - 1) >> 8);
        bytes[(*size)++] = (uint8_t)(length - 1);
    } else {
        bytes[(*size)++] = (uint8_t)(length - 1);
    }
    return length;
}

/* The size of the sparse string; 0: only the dense form can hold this sketch. */
static size_t
write_sparse(const uint8_t *registers, uint8_t *bytes)
{
    size_t size = HEAD_SIZE;

    bytes[FORM_AT] = SPARSE;
    for (size_t at = 0; at < REGISTERS;) {
        size_t length = 1;

        if (registers[at] > RANK_SPARSE || size >= SPARSE_MAX - 1)
            return 0;
        while (at + length < REGISTERS && registers[at + length] == registers[at])
            length++;
        at += write_run(bytes, &size, registers[at], length);
    }
    return size;
}

ssize_t
sxe_hll_export(const SXE_HLL *hll, void *bytes, size_t size)
{
    uint8_t registers[REGISTERS] = {0};
    uint8_t string[DENSE_SIZE] = "HYLL";
    const int result = hll->precision < SXE_HLL_PRECISION_REDIS ? -EDOM : sxe__hll_check(hll);

    if (result < 0)
        return result;
    for (size_t i = 0; i < sxe__hll_size(hll->precision); i++) {
        size_t at = i;
        uint8_t rank = sxe__hll_read(hll, i);

        sxe__hll_fold(hll->precision, SXE_HLL_PRECISION_REDIS, &at, &rank);
        sxe__hll_raise(&registers[at], rank);
    }
    string[COUNT_LAST_AT] = 0x80;
    size_t length = write_sparse(registers, string);
    if (length == 0) {
        write_dense(registers, string);
        length = DENSE_SIZE;
    }
    if (length > size)
        return -ENOSPC;
    memcpy(bytes, string, length);
    return (ssize_t)length;
}
