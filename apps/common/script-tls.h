/* SPDX-License-Identifier: MIT
 *
 * What: TLS of lib-sxe-tls for scripts that connect to servers.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config. script-tls-none.c stands in where
 * OpenSSL was not there when they were built.
 */
#ifndef SCRIPT_TLS_H
#define SCRIPT_TLS_H

#include "sxe-lua.h"

const struct sxe_lua_tls *script_tls(void); /* NULL: there is none */

#endif
