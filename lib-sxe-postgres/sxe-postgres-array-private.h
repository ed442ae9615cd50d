/* SPDX-License-Identifier: MIT
 *
 * What: the scanner of arrays in PostgreSQL's text form (sxe-postgres-array.c). It needs neither
 * libpq nor Lua.
 */
#ifndef SXE_POSTGRES_ARRAY_PRIVATE_H
#define SXE_POSTGRES_ARRAY_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

enum { SXE__POSTGRES_DEPTH = 6 }; /* PostgreSQL's MAXDIM */

enum sxe__postgres_token {
    SXE__POSTGRES_OPEN,
    SXE__POSTGRES_CLOSE,
    SXE__POSTGRES_NULL,
    SXE__POSTGRES_ELEMENT,
    SXE__POSTGRES_END, /* the array is over, and whole */
    SXE__POSTGRES_BAD
};

/* A scanner: all zero but text, end and room. Elements are written to room, which has as many bytes
 * as the text, each with a zero byte at its end. */
struct sxe__postgres_array {
    const char *text; /* rw: the next byte */
    const char *end;
    char *room;    /* of the element */
    size_t length; /* ro: of the element */
    unsigned depth;
    bool is_begun;
    bool is_after; /* an element or a list was just read */
};

enum sxe__postgres_token sxe__postgres_array_next(struct sxe__postgres_array *array);

#endif
