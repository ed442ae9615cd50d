/* SPDX-License-Identifier: MIT
 *
 * Formatting a message about a user's value, with control bytes replaced.
 */
#include "wrong.h"

#include <stdarg.h>
#include <stdio.h>

const char *
load_wrong(const char *format, ...)
{
    static _Thread_local char text[LOAD_WRONG_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    }
    return text;
}
