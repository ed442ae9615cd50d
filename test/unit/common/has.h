/* SPDX-License-Identifier: MIT
 *
 * What: checks that a text contains a part, or does not. When the check fails, the message shows
 * both, the text cut to 6000 bytes, for which a message of Check has room.
 */
#ifndef HAS_H
#define HAS_H

#include <check.h>
#include <string.h>

static inline void
check_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in\n%.6000s", part, text);
}

static inline void
check_has_not(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in\n%.6000s", part, text);
}

#endif
