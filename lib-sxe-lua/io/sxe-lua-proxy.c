/* SPDX-License-Identifier: MIT
 *
 * For sxe-lua-proxy.lua, which chooses a proxy for sxe.client: the environment, and whether an
 * address is in a network.
 */
#include "sxe-lua-socket-private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-part-internal.h"

SXE__LUA_PART(proxy, "lib-sxe-lua/io/sxe-lua-proxy.lua");

/* environment(name): the value of an environment variable; nil if it is not set, if it is empty, or
 * if this process has more rights than the user who chose the environment. */
static int
environment_value(lua_State *L)
{
    const char *value = secure_getenv(lua_tostring(L, 1));

    lua_pushstring(L, value == NULL || *value == '\0' ? NULL : value);
    return 1;
}

/* Parse an address of IPv4 or IPv6. Returns how many bits it has; 0: the text is no address. */
static unsigned
parse_ip_address(unsigned char address[16], const char *text)
{
    memset(address, 0, 16);
    if (inet_pton(AF_INET, text, address) == 1)
        return 32;
    return inet_pton(AF_INET6, text, address) == 1 ? 128 : 0;
}

static bool
has_same_start(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    const unsigned bytes = bits / 8;
    const unsigned rest = 8 - bits % 8;

    return memcmp(a, b, bytes) == 0 && (rest == 8 || (a[bytes] ^ b[bytes]) >> rest == 0);
}

/* is_in(address, network, bits): whether the address is in the network. Without bits, the network
 * is one address. False if either text is no address. */
static int
is_in(lua_State *L)
{
    unsigned char address[16];
    unsigned char network[16];
    const unsigned all = parse_ip_address(address, lua_tostring(L, 1));
    const lua_Integer bits = luaL_optinteger(L, 3, all);

    lua_pushboolean(L, all > 0 && parse_ip_address(network, lua_tostring(L, 2)) == all &&
                           bits >= 0 && bits <= all &&
                           has_same_start(address, network, (unsigned)bits));
    return 1;
}

void
sxe__lua_add_proxy(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"environment", environment_value}, {"is_in", is_in}, {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
    sxe__lua_push_part(L, &proxy_part);
    lua_setfield(L, -2, "proxy");
}
