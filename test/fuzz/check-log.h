/* SPDX-License-Identifier: MIT
 *
 * What: checks a line of the log: NULL, or what is wrong with it. Written without looking at the
 * code that makes lines.
 */
#ifndef CHECK_LOG_H
#define CHECK_LOG_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sxe-log.h"

static inline const char *
check_bytes(const char *line, size_t length)
{
    if (length == 0 || length > SXE_LOG_LINE_MAX)
        return "its length is out of range";
    if (line[length - 1] != '\n')
        return "it does not end in a newline";
    for (size_t i = 0; i < length - 1; i++) {
        if (line[i] < ' ' || line[i] > '~')
            return "it has a byte that is not printable ASCII";
    }
    return NULL;
}

/* The end of the JSON string that begins at p, or NULL. */
static inline const char *
skip_string(const char *p)
{
    if (*p++ != '"')
        return NULL;
    while (*p != '"') {
        if (*p == '\n')
            return NULL;
        if (*p++ != '\\')
            continue;
        if (strchr("\"\\/bfnrt", *p) != NULL) {
            p++;
        } else if (*p == 'u') {
            for (int i = 1; i <= 4; i++) {
                if (!isxdigit((unsigned char)p[i]))
                    return NULL;
            }
            p += 5;
        } else {
            return NULL;
        }
    }
    return p + 1;
}

static inline const char *
skip_number(const char *p)
{
    if (!isdigit((unsigned char)*p) || (*p == '0' && isdigit((unsigned char)p[1])))
        return NULL;
    return p + strspn(p, "0123456789");
}

/* Check that the line is one JSON object with these keys in this order; both ids may be missing.
 * NULL, or what is wrong. */
static inline const char *
check_json(const char *line)
{
    static const char *const keys[] = {"{\"ts\":", ",\"level\":",      ",\"msg\":",  ",\"pid\":",
                                       ",\"id\":", ",\"request_id\":", ",\"file\":", ",\"line\":"};
    const char *p = line;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strncmp(p, keys[i], strlen(keys[i])) != 0) {
            if (i == 4 || i == 5)
                continue;
            return keys[i];
        }
        p += strlen(keys[i]);
        p = *p == '"' ? skip_string(p) : skip_number(p);
        if (p == NULL)
            return keys[i];
    }
    return strcmp(p, "}\n") == 0 ? NULL : "it does not end in } and a newline";
}

/* Check that every backslash begins a named escape or \xHH. */
static inline const char *
check_text(const char *line, size_t length)
{
    for (size_t i = 0; i < length - 1; i++) {
        if (line[i] != '\\')
            continue;
        i++;
        if (line[i] == 'x' && isxdigit((unsigned char)line[i + 1]) &&
            isxdigit((unsigned char)line[i + 2]))
            i += 2;
        else if (line[i] == '\n' || strchr("nrt\\", line[i]) == NULL)
            return "it has half an escape";
    }
    return NULL;
}

#endif
