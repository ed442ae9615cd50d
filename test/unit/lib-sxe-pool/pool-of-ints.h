/* SPDX-License-Identifier: MIT
 *
 * What: the pool that tests of pools use: ints with three states, in memory of the test.
 */
#ifndef POOL_OF_INTS_H
#define POOL_OF_INTS_H

#include "sxe-pool-private.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

enum { FREE, BUSY, DONE, STATES };

static inline const char *
state_name(unsigned state)
{
    static const char *const names[] = {"FREE", "BUSY", "DONE"};

    ck_assert_uint_lt(state, STATES);
    return names[state];
}

static inline void *
new_block(size_t size)
{
    void *block = aligned_alloc(SXE__POOL_ALIGNMENT, size);

    ck_assert_ptr_nonnull(block);
    memset(block, 0xa5, size);
    return block;
}

static inline int *
make_pool(unsigned number)
{
    int *array = sxe_pool_construct(new_block(sxe_pool_size(number, sizeof(int), STATES)), "cess",
                                    number, sizeof(int), STATES, SXE_POOL_OPTION_UNLOCKED);

    ck_assert_ptr_nonnull(array);
    return array;
}

static inline void
drop(int *array)
{
    free(sxe_pool_to_base(array));
}

#endif
