/* SPDX-License-Identifier: MIT
 *
 * What: TLS of lib-sxe-tls for scripts that connect to servers.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config. script-tls-none.c stands in if
 * they were built without OpenSSL.
 */
#ifndef SCRIPT_TLS_H
#define SCRIPT_TLS_H

#include "sxe-lua.h"

const struct sxe_lua_tls *script_tls(void); /* NULL: built without OpenSSL */

#endif
