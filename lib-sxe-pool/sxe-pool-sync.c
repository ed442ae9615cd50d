/* SPDX-License-Identifier: MIT
 *
 * sxe_pool_sync: writes a pool to its disk.
 */
#include <errno.h>
#include <sys/mman.h>

#include "sxe-pool-sharing-private.h"

int
sxe_pool_sync(void *array)
{
    const struct sxe__pool_header *pool = sxe__pool_header(array);
    const struct sxe__pool_sharing *sharing = pool->sharing;

    if (sharing == NULL || !sharing->is_file)
        return -EINVAL;
    const size_t own_size = (size_t)((uintptr_t)array - (uintptr_t)sharing);

    if (msync(array, sharing->size - own_size, MS_SYNC) != 0 ||
        msync(sharing->head, sharing->head_size, MS_SYNC) != 0)
        return -errno;
    return 0;
}
