/* SPDX-License-Identifier: MIT
 *
 * Stands in for script-crypto.c in a build without OpenSSL 3.
 */
#include "script-crypto.h"

#include <stddef.h>

lua_CFunction
script_crypto(void)
{
    return NULL;
}
