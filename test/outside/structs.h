/* SPDX-License-Identifier: MIT
 *
 * What: structs as programs have them that were built with an older or a newer header.
 *
 * Shape: a struct is copied to the end of a page, and the next page cannot be touched, so a library
 * that touches a byte after the end of the struct crashes:
 *
 *     | zeros ...                 struct of `size` bytes | no access |
 */
#ifndef STRUCTS_H
#define STRUCTS_H

#include "outside.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "sxe.h"

enum { PAGE = 4096, LATER = 32 }; /* LATER: how many bytes longer the struct of a newer header is */

/* A function that gets a struct: `call` returns 0 or -errno. A header in which the struct has only
 * `known` bytes has all members that `given` sets. */
struct given_row {
    const char *name; /* how the line of the log begins */
    int (*call)(const void *given, size_t size);
    const void *given;
    size_t size;
    size_t known;
};

struct size_row {
    const char *name;
    size_t size;
    size_t promised;
};

/* A function that fills a struct; an older header has the first `known` bytes. */
struct filled_row {
    void (*call)(void *room, size_t size);
    size_t size;
    size_t known;
};

static char said[512];

static inline void
keep_line(void *user, int level, const char *line, size_t length)
{
    SXE_UNUSED_PARAMETER(user);
    SXE_UNUSED_PARAMETER(level);
    if (memmem(line, length, "newer libsxe", strlen("newer libsxe")) != NULL)
        snprintf(said, sizeof(said), "%.*s", (int)length, line);
}

static inline int
result_of(const void *made)
{
    return made == NULL ? -errno : 0;
}

/* The last `size` bytes before a page that cannot be touched. Each call has pages of its own. */
static inline char *
room_at_end(size_t size)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    return pages + PAGE - size;
}

static inline void
give_back(char *room, size_t size)
{
    ck_assert_int_eq(munmap(room + size - PAGE, 2 * PAGE), 0);
}

static inline void
check_given(const struct given_row *row)
{
    const size_t later = row->size + LATER;
    char *same = room_at_end(row->size);
    char *older = room_at_end(row->known);
    char *newer = room_at_end(later);
    int result;

    memcpy(same, row->given, row->size);
    memcpy(older, row->given, row->known);
    memcpy(newer, row->given, row->size);
    result = row->call(same, row->size);
    ck_assert_msg(result != -E2BIG, "%s", row->name);
    ck_assert_int_eq(row->call(older, row->known), result);
    ck_assert_int_eq(row->call(newer, later), result);
    for (size_t at = row->size; at < later; at += LATER - 1) {
        newer[at] = 1;
        said[0] = '\0';
        sxe_log_to_function(keep_line, NULL);
        ck_assert_msg(row->call(newer, later) == -E2BIG, "%s: byte %zu", row->name, at);
        sxe_log_to_fd(STDERR_FILENO);
        ck_assert_msg(strstr(said, row->name) != NULL, "%s: %s", row->name, said);
        newer[at] = 0;
    }
    give_back(same, row->size);
    give_back(older, row->known);
    give_back(newer, later);
}

static inline void
check_sizes(const struct size_row *rows, size_t number)
{
    for (size_t i = 0; i < number; i++)
        ck_assert_msg(rows[i].size == rows[i].promised, "%s has %zu bytes", rows[i].name,
                      rows[i].size);
}

static inline void
check_filled(const struct filled_row *row)
{
    static const char zeros[LATER];
    const size_t later = row->size + LATER;
    char *same = room_at_end(row->size);
    char *older = room_at_end(row->known);
    char *newer = room_at_end(later);

    memset(same, 'x', row->size);
    memset(older, 'x', row->known);
    memset(newer, 'x', later);
    row->call(same, row->size);
    row->call(older, row->known);
    row->call(newer, later);
    ck_assert_mem_eq(older, same, row->known);
    ck_assert_mem_eq(newer, same, row->size);
    ck_assert_mem_eq(newer + row->size, zeros, LATER);
    give_back(same, row->size);
    give_back(older, row->known);
    give_back(newer, later);
}

#endif
