/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.zlib of lib-sxe-zlib for scripts.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config.
 */
#ifndef SCRIPT_ZLIB_H
#define SCRIPT_ZLIB_H

#include <lua.h>

lua_CFunction script_zlib(void);

#endif
