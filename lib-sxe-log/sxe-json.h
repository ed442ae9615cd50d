/* SPDX-License-Identifier: MIT
 *
 * What: writes strings of JSON (RFC 8259, section 7) from any bytes, into memory of the caller or
 * to a FILE.
 *
 * Place: the log's JSON lines, Lua's sxe.json, and programs that write JSON of their own. Calls
 * sxe-utf8.h; allocates nothing.
 *
 * Shape: each byte or character of a text becomes an item, which is written whole or not at all:
 *
 *     " \                       \" \\
 *     the controls with letters \b \f \n \r \t
 *     other controls, DEL       \u00XX
 *     bytes from 0x80 on        as the style says
 *     everything else           itself
 *
 * Limits: a text of n bytes becomes at most SXE_JSON_GROWTH * n bytes.
 *
 * Example:
 *     char room[256];
 *     size_t length = strlen(name);
 *     size_t written = sxe_json_escape(room, sizeof(room), name, &length, SXE_JSON_UTF8);
 *     printf("{\"name\":\"%.*s\"}\n", (int)written, room);
 */
#ifndef SXE_JSON_H
#define SXE_JSON_H

#include <stddef.h>
#include <stdio.h>

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SXE_JSON_GROWTH 6

/* One of the first four values chooses the encoding; it is combined by | with any of the others. */
enum sxe_json_style {
    SXE_JSON_AS_IS = 0, /* leave bytes from 0x80 on as they are: they are known to be UTF-8 */
    /* leave characters as they are, but write a byte that is not UTF-8 as \ufffd, and the controls
     * U+0080 to U+009f as \u00XX, because a terminal may obey them */
    SXE_JSON_UTF8 = 1,
    SXE_JSON_ASCII = 2,  /* like UTF8, but write each character from U+0080 on as \uXXXX */
    SXE_JSON_LATIN1 = 3, /* write each byte from 0x80 on as \u00XX: no byte is lost */

    SXE_JSON_SLASHES = 4, /* write / as \/ */
    SXE_JSON_IN_HTML = 8  /* write < as \u003c: the string may stand in an HTML script element */
};

/* Write text into room without quotes, as many whole items as size allows; no '\0' is added.
 * *length is the number of bytes of text; it becomes the number of them that were written, which is
 * less if size was too small. Returns the bytes written to room. */
SXE_PUBLIC size_t sxe_json_escape(char *room, size_t size, const char *text, size_t *length,
                                  unsigned style);

/* Write text in quotes, escaped. The caller checks ferror(out). */
SXE_PUBLIC void sxe_json_print(FILE *out, const char *text, size_t length, unsigned style);

#ifdef __cplusplus
}
#endif

#endif
