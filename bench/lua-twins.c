/* SPDX-License-Identifier: MIT
 *
 * What: shows how much time a script takes, with twins: two servers that send the same replies. The
 * handler of one is in a script, and that of the other is a C function. bench.lua's row "lua" loads
 * one after the other.
 *
 *     lua-twins PORT SCRIPT   the script returns the handler; a script that returns nothing opens
 *                             its own socket, and is given the port
 *     lua-twins PORT hello | router | 2010
 *
 * It prints where it listens. The replies of twins have the same bytes, except for the dates in
 * them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http.h"
#include "sxe-lua-http.h"
#include "sxe-lua.h"

enum { CONNECTIONS = 12000, TASKS = 16384 };

/* ---- hello: bench/lua/hello.lua ---- */

static enum sxe_http_verdict
hello(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(request);
    return sxe_http_reply_text(response, 200, "Hello, World!\n");
}

/* ---- router: bench/lua/router.lua ---- */

static enum sxe_http_verdict
get_user(struct sxe_http_request *request, struct sxe_http_response *response)
{
    char id[16];
    char body[128];
    int length;

    if (sxe_http_parameter(request, "id", id, sizeof(id)) < 0)
        return sxe_http_reply_status(response, 404);
    length = snprintf(body, sizeof(body), "{\"id\":%ld,\"name\":\"Ann\",\"active\":true}",
                      strtol(id, NULL, 10));
    sxe_http_add_field(response, "Cache-Control", "no-store");
    sxe_http_add_field(response, "X-Frame-Options", "DENY");
    sxe_http_add_field(response, "X-Content-Type-Options", "nosniff");
    return sxe_http_reply(response, 200, "application/json", body, (size_t)length);
}

/* ---- 2010: test/2010/hello.lua ---- */

static void
answer_2010(SXE *self, int length)
{
    static const char reply[] = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
                                "Content-Length: 14\r\n\r\nHello World\n\r\n";

    SXE_UNUSED_PARAMETER(length);
    if (SXE_BUF_USED(self) < 4 ||
        memcmp(SXE_BUF(self) + SXE_BUF_USED(self) - 4, "\r\n\r\n", 4) != 0)
        return;
    SXE_BUF_CLEAR(self);
    sxe_write(self, reply, sizeof(reply) - 1);
}

/* ---- The server ---- */

static int
serve_2010(unsigned short port)
{
    sxe_register(CONNECTIONS, 0);
    if (sxe_init() < 0 ||
        sxe_listen(sxe_new_tcp(NULL, "127.0.0.1", port, NULL, answer_2010, NULL)) < 0)
        return 1;
    printf("http://127.0.0.1:%u/\n", port);
    fflush(stdout);
    return sxe_run() < 0;
}

static int
serve(struct sxe_lua *lua, const struct sxe_http_config *config, unsigned short port)
{
    struct sxe_http *http = config == NULL ? NULL : sxe_http_new(config);

    if ((config != NULL && http == NULL) || sxe_init() < 0 ||
        (lua != NULL && sxe_lua_init(lua) < 0) ||
        (http != NULL && sxe_http_listen(http, "127.0.0.1", port) < 0))
        return 1;
    printf("http://127.0.0.1:%u/\n", http == NULL ? port : sxe_http_port(http));
    fflush(stdout);
    return sxe_run() < 0;
}

static int
serve_script(char **argv, struct sxe_http_config *config, unsigned short port)
{
    struct sxe_lua_config lua_config = {.tasks = TASKS, .argc = 2, .argv = argv};
    struct sxe_lua *lua;
    char *script = argv[1];

    argv[1] = argv[0]; /* the script is arg[0], the port its argument */
    argv[0] = script;
    lua = sxe_lua_new(&lua_config);
    if (lua == NULL || sxe_lua_http_open(lua) < 0 || sxe_lua_load(lua, script) < 0)
        return 1;
    config->handler = sxe_lua_http_handle;
    return serve(lua, strstr(script, "2010") == NULL ? config : NULL, port);
}

int
main(int argc, char **argv)
{
    struct sxe_http_config config = {
        .connections = CONNECTIONS, .requests_max = UINT32_MAX, .stream = true};
    struct sxe_http_router *router;
    unsigned short port;

    if (argc != 3) {
        fprintf(stderr, "usage: lua-twins PORT SCRIPT | hello | router | 2010\n");
        return 2;
    }
    port = (unsigned short)atoi(argv[1]);
    if (strcmp(argv[2], "2010") == 0)
        return serve_2010(port);
    if (strcmp(argv[2], "hello") == 0) {
        config.handler = hello;
        return serve(NULL, &config, port);
    }
    if (strcmp(argv[2], "router") != 0)
        return serve_script(argv + 1, &config, port);
    router = sxe_http_router_new();
    if (router == NULL || sxe_http_router_add(router, "GET", "/users/{id}", get_user, NULL) < 0)
        return 1;
    config.router = router;
    return serve(NULL, &config, port);
}
