/* SPDX-License-Identifier: MIT
 *
 * What: zlib for scripts that send requests to servers, so that they can read compressed replies.
 *
 * Place: sxe-lua and sxe-httpd put it into struct sxe_lua_config.
 */
#ifndef SCRIPT_INFLATE_H
#define SCRIPT_INFLATE_H

#include "sxe-lua.h"

const struct sxe_lua_inflate *script_inflate(void);

#endif
