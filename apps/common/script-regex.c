/* SPDX-License-Identifier: MIT
 *
 * Hands lib-sxe-regex to scripts.
 */
#include "script-regex.h"

#include "sxe-regex.h"

lua_CFunction
script_regex(void)
{
    return sxe_regex_open;
}
