/* SPDX-License-Identifier: MIT
 *
 * Structs of programs that were built with another version's header.
 */
#include "sxe-sized-internal.h"

#include <errno.h>
#include <string.h>

#include "sxe-log.h"

/* The offset of the first byte from `from` on that is not 0; size: all are 0. */
static size_t
find_set_byte(const char *bytes, size_t from, size_t size)
{
    while (from < size && bytes[from] == 0)
        from++;
    return from;
}

int
sxe__sized_take(void *own, size_t own_size, const void *given, size_t size, const char *function)
{
    const size_t both = size < own_size ? size : own_size;
    size_t at;

    if (given == NULL) {
        memset(own, 0, own_size);
        return 0;
    }
    at = find_set_byte(given, own_size, size);
    if (at < size) {
        memset(own, 0, own_size);
        SXE_ERROR("%s: byte %zu of a struct of %zu bytes is set, but libsxe " SXE_VERSION
                  " knows %zu bytes: " SXE__SIZED_NEWER,
                  function, at, size, own_size);
        errno = E2BIG;
        return -E2BIG;
    }
    memmove(own, given, both); /* sxe_configure may get the struct of sxe_get_config */
    memset((char *)own + both, 0, own_size - both);
    return 0;
}

void
sxe__sized_give(void *given, size_t size, const void *own, size_t own_size)
{
    memset(given, 0, size);
    memcpy(given, own, size < own_size ? size : own_size);
}
