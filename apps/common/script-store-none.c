/* SPDX-License-Identifier: MIT
 *
 * Stands in for script-store.c in a build without LMDB.
 */
#include "script-store.h"

#include <stddef.h>

lua_CFunction
script_store(void)
{
    return NULL;
}
