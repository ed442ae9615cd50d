/* SPDX-License-Identifier: MIT
 *
 * wire.own_network(): a network namespace for a test, with a chosen congestion control.
 */
#include "wire.h"

#include <errno.h>
#include <lauxlib.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONGESTION "/proc/sys/net/ipv4/tcp_congestion_control"

static bool
start_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_up;

    if (fd < 0) {
        return false;
    }
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    is_up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return is_up;
}

static void
set_congestion_control(const char *name)
{
    FILE *file = fopen(CONGESTION, "we");

    if (file != NULL) {
        fputs(name, file);
        fclose(file);
    }
}

/* wire.own_network(name): give this process, and those that it starts from now on, a network
 * namespace with nothing but loopback, and with the congestion control `name`, if the kernel allows
 * that. Returns true, or nil and the reason why the process still has the machine's network. */
static int
own_network(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);

    if (unshare(CLONE_NEWNET) != 0) {
        lua_pushnil(L);
        lua_pushstring(L, strerror(errno));
        return 2;
    }
    if (!start_loopback()) {
        return wire_raise(L, "lo", errno);
    }
    set_congestion_control(name);
    lua_pushboolean(L, true);
    return 1;
}

void
wire_add_network(lua_State *L)
{
    lua_pushcfunction(L, own_network);
    lua_setfield(L, -2, "own_network");
}
