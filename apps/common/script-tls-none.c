/* SPDX-License-Identifier: MIT
 *
 * Stands in for script-tls.c where OpenSSL 3 is not installed.
 */
#include "script-tls.h"

#include <stddef.h>

const struct sxe_lua_tls *
script_tls(void)
{
    return NULL;
}
