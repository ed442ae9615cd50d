/* SPDX-License-Identifier: MIT
 *
 * What: copies of texts that end exactly where an inaccessible page begins, so that reading past
 * their end crashes in every build. Two copies exist at a time: the last and the one before it.
 */
#ifndef PAGE_EDGE_H
#define PAGE_EDGE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sxe-util.h"

enum { PAGE_EDGE_MAX = 1 << 16 };

static inline char *
page_edge_map(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, PAGE_EDGE_MAX + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || mprotect(memory + PAGE_EDGE_MAX, page, PROT_NONE) != 0)
        abort();
    return memory;
}

/* A copy that the caller may write to; it is valid until the next call but one. */
static inline char *
page_edge_bytes(const char *bytes, size_t length)
{
    static char *maps[2];
    static unsigned turn;
    char **map = &maps[turn++ % 2];
    char *copy;

    if (*map == NULL)
        *map = page_edge_map();
    copy = *map + PAGE_EDGE_MAX - length;
    memset(*map, '#', PAGE_EDGE_MAX - length);
    if (length > 0)
        memcpy(copy, bytes, length);
    return copy;
}

/* A span on such a copy of a text; for NULL the span's text is NULL. */
static inline struct sxe_span
page_edge(const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);

    return (struct sxe_span){text == NULL ? NULL : page_edge_bytes(text, length), length};
}

#endif
