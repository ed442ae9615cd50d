/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.crypto of lib-sxe-crypto for scripts.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config. script-crypto-none.c stands in if
 * they were built without OpenSSL.
 */
#ifndef SCRIPT_CRYPTO_H
#define SCRIPT_CRYPTO_H

#include <lua.h>

lua_CFunction script_crypto(void); /* NULL: built without OpenSSL */

#endif
