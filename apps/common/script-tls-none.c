/* SPDX-License-Identifier: MIT
 *
 * Stands in for script-tls.c in a build without OpenSSL 3.
 */
#include "script-tls.h"

#include <stddef.h>

const struct sxe_lua_tls *
script_tls(void)
{
    return NULL;
}
