/* SPDX-License-Identifier: MIT
 *
 * What: the scanner of arrays in PostgreSQL's text form (sxe-postgres-array.c). It needs neither
 * libpq nor Lua.
 */
#ifndef SXE_POSTGRES_ARRAY_PRIVATE_H
#define SXE_POSTGRES_ARRAY_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

enum { SXE__POSTGRES_DEPTH = 6 }; /* the most dimensions of an array: PostgreSQL's MAXDIM */

enum sxe__postgres_token {
    SXE__POSTGRES_OPEN,
    SXE__POSTGRES_CLOSE,
    SXE__POSTGRES_NULL,
    SXE__POSTGRES_ELEMENT,
    SXE__POSTGRES_END, /* the array has ended, and was complete */
    SXE__POSTGRES_BAD
};

/* A scanner. Begin with all members zero but text, end and room. The scanner writes each element to
 * room, with a zero byte at its end; room needs as many bytes as the text. */
struct sxe__postgres_array {
    const char *text; /* rw: the next byte */
    const char *end;
    char *room;    /* rw: where the element's text was written */
    size_t length; /* ro: the length of the element */
    unsigned depth;
    bool is_begun;
    bool is_after; /* an element or a list was just read */
};

enum sxe__postgres_token sxe__postgres_array_next(struct sxe__postgres_array *array);

#endif
