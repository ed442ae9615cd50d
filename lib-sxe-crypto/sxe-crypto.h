/* SPDX-License-Identifier: MIT
 *
 * What: the module sxe.crypto for Lua 5.4, on OpenSSL 3: digests, HMAC, random values, keys that
 * are derived from others, sealed texts, signatures, JSON Web Tokens.
 *
 * Place: an archive of its own, because it links OpenSSL. A program on lib-sxe-lua puts
 * sxe_crypto_open into struct sxe_lua_config; a program that has a Lua of its own calls
 * luaL_requiref. Without it require "sxe.crypto" raises an error that says so.
 *
 * Shape: a call takes strings and returns strings, and keeps nothing. Only a digest that is made in
 * parts, and a key of a pair, are objects, which hold memory of OpenSSL until they are closed or
 * collected.
 *
 * Limits: a call does not wait, so a digest of 100 MB keeps the loop for as long as it takes; see
 * docs/crypto.md. Memory of OpenSSL is not counted in memory_max. No thread may use another
 * thread's state, as everywhere in Lua.
 *
 * Example:
 *     struct sxe_lua_config config = {.crypto = sxe_crypto_open};
 *     struct sxe_lua *lua = sxe_lua_new(&config);
 *     ...
 *     luaL_requiref(L, "sxe.crypto", sxe_crypto_open, 0);
 */
#ifndef SXE_CRYPTO_H
#define SXE_CRYPTO_H

#include "sxe-util.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lua_State;

/* A lua_CFunction: push the module, a new table, and return 1. Raises an error if memory is
 * missing. */
SXE_PUBLIC int sxe_crypto_open(struct lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
