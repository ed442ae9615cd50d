/* SPDX-License-Identifier: MIT
 *
 * Hands lib-sxe-store to scripts.
 */
#include "script-store.h"

#include "sxe-store.h"

lua_CFunction
script_store(void)
{
    return sxe_store_open;
}
