/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.store of lib-sxe-store for scripts.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config. script-store-none.c stands in if
 * they were built without LMDB.
 */
#ifndef SCRIPT_STORE_H
#define SCRIPT_STORE_H

#include <lua.h>

lua_CFunction script_store(void); /* NULL: built without LMDB */

#endif
