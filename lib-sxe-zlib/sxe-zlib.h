/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.zlib for scripts: gzip, zlib and raw deflate, in one call or in parts.
 *
 * Place: a library of its own on lib-sxe-lua, so that programs without it do not link zlib. The
 * program puts sxe_zlib_open into struct sxe_lua_config; sxe-lua and sxe-httpd do so. A program in
 * C calls zlib itself: this library adds nothing to it but limits.
 *
 * Shape: a stream is a userdata, from which C takes at most 64 KiB, and to which it gives at most
 * 64 KiB, at a time. The loop over these pieces is written in Lua (sxe-zlib.lua), so that other
 * tasks run between them, and so that the watchdog may end it.
 *
 * Limits: the output of a stream that decompresses has a limit, 16 MiB unless the script names
 * another. memory_max counts a stream: some 270 KiB to compress, 40 KiB to decompress.
 *
 * Example:
 *     struct sxe_lua_config config = {.zlib = sxe_zlib_open};
 *     struct sxe_lua *lua = sxe_lua_new(&config);
 */
#ifndef SXE_ZLIB_H
#define SXE_ZLIB_H

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;

/* A lua_CFunction for a state of lib-sxe-lua: push the module, a new table, and return 1. Raises an
 * error if memory is missing. */
SXE_PUBLIC int sxe_zlib_open(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
