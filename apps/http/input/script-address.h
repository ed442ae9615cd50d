/* SPDX-License-Identifier: MIT
 *
 * What: addresses as objects of Lua: wrk.lookup(host, service) makes them, wrk.connect(address)
 * tries one, thread.addr is one, print() shows one. Place: script-wrk.c, script-thread.c.
 *
 * Limits: wrk.connect gives up after HTTP_ADDRESS_PATIENCE_S.
 */
#ifndef HTTP_SCRIPT_ADDRESS_H
#define HTTP_SCRIPT_ADDRESS_H

#include <lua.h>
#include <stdint.h>
#include <sys/socket.h>

#define HTTP_ADDRESS_PATIENCE_S 5

struct http_address {
    socklen_t length; /* 0: none */
    struct sockaddr_storage storage;
};

/* All of them inside http_lua_call. */
void http_address_open(lua_State *L);
int http_address_lookup(lua_State *L);  /* wrk.lookup(host, service): a list */
int http_address_connect(lua_State *L); /* wrk.connect(address): true or false */

void http_address_push(lua_State *L, const struct http_address *address);
const struct http_address *http_address_check(lua_State *L, int index);

/* The first one of a host and a port; an error is raised if there is none. */
void http_address_resolve(lua_State *L, const char *host, uint16_t port,
                          struct http_address *address);

#endif
