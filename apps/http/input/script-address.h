/* SPDX-License-Identifier: MIT
 *
 * What: addresses as objects of Lua. wrk.lookup(host, service) makes them, wrk.connect(address)
 * tries to connect to one, thread.addr is one, and print() shows one. Place: script-wrk.c,
 * script-thread.c.
 *
 * Limits: wrk.connect gives up after LOAD_ADDRESS_PATIENCE_S seconds.
 */
#ifndef LOAD_SCRIPT_ADDRESS_H
#define LOAD_SCRIPT_ADDRESS_H

#include <lua.h>
#include <stdint.h>
#include <sys/socket.h>

#define LOAD_ADDRESS_PATIENCE_S 5

struct load_address {
    socklen_t length; /* 0: there is no address */
    struct sockaddr_storage storage;
};

/* Call these functions inside load_lua_call only. */
void load_address_open(lua_State *L);
int load_address_lookup(lua_State *L);  /* wrk.lookup(host, service) returns a list of addresses */
int load_address_connect(lua_State *L); /* wrk.connect(address) returns whether it could connect */

void load_address_push(lua_State *L, const struct load_address *address);
const struct load_address *load_address_check(lua_State *L, int index);

/* Push the first address of a host and a port; raises an error if there is none. */
void load_address_resolve(lua_State *L, const char *host, uint16_t port,
                          struct load_address *address);

#endif
