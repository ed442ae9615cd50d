/* SPDX-License-Identifier: MIT
 *
 * Hands lib-sxe-postgres to scripts.
 */
#include "script-postgres.h"

#include "sxe-postgres.h"

lua_CFunction
script_postgres(void)
{
    return sxe_postgres_open;
}
