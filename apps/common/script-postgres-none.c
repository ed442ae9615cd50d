/* SPDX-License-Identifier: MIT
 *
 * Stands in for script-postgres.c in a build without libpq.
 */
#include "script-postgres.h"

#include <stddef.h>

lua_CFunction
script_postgres(void)
{
    return NULL;
}
