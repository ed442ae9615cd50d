/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.regex of lib-sxe-regex for scripts.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config. script-regex-none.c stands in if
 * they were built without PCRE2.
 */
#ifndef SCRIPT_REGEX_H
#define SCRIPT_REGEX_H

#include <lua.h>

lua_CFunction script_regex(void); /* NULL: built without PCRE2 */

#endif
