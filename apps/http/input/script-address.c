/* SPDX-License-Identifier: MIT
 *
 * Addresses as Lua objects: wrk.lookup and wrk.connect.
 */
#include "script-address.h"

#include <lauxlib.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "script-lua.h"

static const char type_name[] = "wrk.addr";

const struct load_address *
load_address_check(lua_State *L, int index)
{
    return luaL_checkudata(L, index, type_name);
}

void
load_address_push(lua_State *L, const struct load_address *address)
{
    *(struct load_address *)lua_newuserdatauv(L, sizeof(*address), 0) = *address;
    luaL_setmetatable(L, type_name);
}

static int
push_address_text(lua_State *L)
{
    const struct load_address *address = load_address_check(L, 1);
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";

    getnameinfo((const struct sockaddr *)&address->storage, address->length, host, sizeof(host),
                port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
    lua_pushfstring(L, strchr(host, ':') == NULL ? "%s:%s" : "[%s]:%s", host, port);
    return 1;
}

/* Look up addresses. The caller frees the list with freeaddrinfo, and must not raise an error of
 * Lua before that, because then the list would not be freed. */
static struct addrinfo *
look_up_address(lua_State *L, const char *host, const char *service)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, service, &hints, &found);

    if (error != 0)
        luaL_error(L, "cannot find %s port %s: %s", host, service, gai_strerror(error));
    return found;
}

static struct load_address
address_of_info(const struct addrinfo *found)
{
    struct load_address address = {.length = found->ai_addrlen};

    memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
    return address;
}

#define ADDRESSES_MAX 64

int
load_address_lookup(lua_State *L)
{
    struct addrinfo *found =
        look_up_address(L, load_lua_check_text(L, 1), load_lua_check_text(L, 2));
    struct load_address addresses[ADDRESSES_MAX];
    int number = 0;

    for (struct addrinfo *one = found; one != NULL && number < ADDRESSES_MAX; one = one->ai_next)
        addresses[number++] = address_of_info(one);
    freeaddrinfo(found);
    lua_createtable(L, number, 0);
    for (int i = 0; i < number; i++) {
        load_address_push(L, &addresses[i]);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

int
load_address_connect(lua_State *L)
{
    const struct load_address *address = load_address_check(L, 1);
    const struct timeval patience = {.tv_sec = LOAD_ADDRESS_PATIENCE_S};
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = -1;

    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        result = connect(fd, (const struct sockaddr *)&address->storage, address->length);
        close(fd);
    }
    lua_pushboolean(L, result == 0);
    return 1;
}

void
load_address_resolve(lua_State *L, const char *host, uint16_t port, struct load_address *address)
{
    struct addrinfo *found = look_up_address(L, host, lua_pushfstring(L, "%d", (int)port));

    *address = address_of_info(found);
    freeaddrinfo(found);
    lua_pop(L, 1);
}

void
load_address_open(lua_State *L)
{
    luaL_newmetatable(L, type_name);
    lua_pushcfunction(L, push_address_text);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
}
