/* SPDX-License-Identifier: MIT
 *
 * What: that a text has a part, or has not; where that is not so, both are shown.
 */
#ifndef HAS_H
#define HAS_H

#include <check.h>
#include <string.h>

static inline void
check_has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in\n%s", part, text);
}

static inline void
check_has_not(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in\n%s", part, text);
}

#endif
