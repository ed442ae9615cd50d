/* SPDX-License-Identifier: MIT
 *
 * Texts that grow as parts are added, for the pages of the admin process.
 */
#include "admin-text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 1024

void
text_end(struct text *text)
{
    free(text->base);
    memset(text, 0, sizeof(*text));
}

/* Make room for length bytes more and a NUL. False: there is no memory. */
static bool
reserve_room(struct text *text, size_t length)
{
    size_t size = text->size < SIZE_MIN ? SIZE_MIN : text->size;
    char *base;

    if (text->size - text->used > length)
        return true;
    while (size - text->used <= length)
        size *= 2;
    base = realloc(text->base, size);
    text->is_cut = base == NULL;
    if (text->is_cut)
        return false;
    text->base = base;
    text->size = size;
    return true;
}

void
text_add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    if (text->is_cut)
        return;
    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (!reserve_room(text, (size_t)length))
        return;
    va_start(arguments, format);
    vsnprintf(text->base + text->used, text->size - text->used, format, arguments);
    va_end(arguments);
    text->used += (size_t)length;
}

void
text_add_escaped(struct text *text, const char *string)
{
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\')
            text_add(text, "\\%c", *string);
        else
            text_add(text, "%c", *string < ' ' || *string > '~' ? '?' : *string);
    }
}
