/* SPDX-License-Identifier: MIT
 *
 * Hands lib-sxe-zlib to scripts.
 */
#include "script-zlib.h"

#include "sxe-zlib.h"

lua_CFunction
script_zlib(void)
{
    return sxe_zlib_open;
}
