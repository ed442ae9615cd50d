/* SPDX-License-Identifier: MIT
 *
 * Hands lib-sxe-crypto to scripts.
 */
#include "script-crypto.h"

#include "sxe-crypto.h"

lua_CFunction
script_crypto(void)
{
    return sxe_crypto_open;
}
