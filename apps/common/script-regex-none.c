/* SPDX-License-Identifier: MIT
 *
 * Stands in for script-regex.c in a build without PCRE2.
 */
#include "script-regex.h"

#include <stddef.h>

lua_CFunction
script_regex(void)
{
    return NULL;
}
