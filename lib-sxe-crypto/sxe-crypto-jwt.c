/* SPDX-License-Identifier: MIT
 *
 * JSON Web Tokens, which sxe-crypto-jwt.lua makes and checks. They need sxe.json and sxe.encoding
 * of lib-sxe-lua. The Lua file requires these modules only when it is called, because a program
 * with a Lua of its own has neither.
 */
#include "sxe-crypto-private.h"

/* Include the text of the Lua file. Its path is relative to the root of the sources, where the
 * compiler runs. The labels are global because link-time optimisation may put the text and the code
 * that uses it into different objects. */
__asm__(".section .rodata\n"
        ".global sxe__crypto_jwt, sxe__crypto_jwt_end\n"
        ".hidden sxe__crypto_jwt, sxe__crypto_jwt_end\n"
        "sxe__crypto_jwt:\n"
        ".incbin \"lib-sxe-crypto/sxe-crypto-jwt.lua\"\n"
        "sxe__crypto_jwt_end:\n"
        ".previous\n");
extern const char sxe__crypto_jwt[] __attribute__((visibility("hidden")));
extern const char sxe__crypto_jwt_end[] __attribute__((visibility("hidden")));

void
sxe__crypto_add_jwt(lua_State *L)
{
    if (luaL_loadbufferx(L, sxe__crypto_jwt, (size_t)(sxe__crypto_jwt_end - sxe__crypto_jwt),
                         "@lib-sxe-crypto/sxe-crypto-jwt.lua", "t") != LUA_OK)
        lua_error(L);
    lua_pushvalue(L, -2);
    lua_pushcfunction(L, sxe__crypto_push_type);
    lua_call(L, 2, 0);
}
