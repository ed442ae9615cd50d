/* SPDX-License-Identifier: MIT
 *
 * What: that a text has a part, or has not; where that is not so, both are shown,
 * the text up to the 6000 bytes that a message of check has room for.
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
