/* SPDX-License-Identifier: MIT
 *
 * What: copies of texts that end where a page begins that nobody may touch, so that reading past
 * their end is a crash in every flavour. Two copies stay: the last and the one before.
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

/* The caller may write to the bytes, which stay until the next call but one. */
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

/* A text as a span at the edge; NULL stays NULL. */
static inline struct sxe_span
page_edge(const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);

    return (struct sxe_span){text == NULL ? NULL : page_edge_bytes(text, length), length};
}

#endif
