/* SPDX-License-Identifier: MIT
 *
 * What: a handler for servers of lib-sxe-http that asks the script: a C program has its own server,
 * and what the script returned at its end answers.
 *
 * Place: over sxe-lua.h and sxe-http.h; apps/httpd is the user. Scripts that call http.serve have
 * servers of their own, and need nothing of this.
 *
 * Shape: each request runs in a task, which may wait; others go on meanwhile.
 *
 *     request -> sxe_lua_http_handle -> task: handler(req, res) -> "Hello"     200, text
 *                                                               -> {a = 1}     200, JSON
 *                                                               -> 404         that status
 *                                                               -> nil         what res did
 *                                                               -> error       500, or its status
 *
 * The script returns a function, an http.router(), an http.static() or an http.proxy(). If it
 * returns none of these, each request is answered 404.
 *
 * Limits: 131072 requests under way, and config.tasks; those above are answered 503.
 *
 * Example:
 *     struct sxe_http_config config = {.handler = sxe_lua_http_handle, .stream = true};
 *     struct sxe_http *http = sxe_http_new(&config);
 *
 *     if (http == NULL || sxe_lua_http_open(lua) < 0 || sxe_lua_load(lua, "hello.lua") < 0 ...
 */
#ifndef SXE_LUA_HTTP_H
#define SXE_LUA_HTTP_H

#include "sxe-http.h"
#include "sxe-lua.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plan for requests; call this before sxe_init. A script that returns a handler then needs not
 * require "sxe.http". Returns 0, or -EINVAL after logging. */
SXE_PUBLIC SXE_MUST_USE int sxe_lua_http_open(struct sxe_lua *lua);

/* Set the most bytes of a body that req:body() takes, unless the script gives another limit;
 * default 1 MiB. Call this after sxe_lua_http_open. */
SXE_PUBLIC void sxe_lua_http_set_body_max(struct sxe_lua *lua, uint32_t bytes);

/* With config.stream scripts can read bodies in parts as they come, by req:chunks(); without
 * config.stream they get whole bodies. The function uses the response's user and on_done. */
SXE_PUBLIC enum sxe_http_verdict sxe_lua_http_handle(struct sxe_http_request *request,
                                                     struct sxe_http_response *response);

/* Whether the script returned a handler: a function, an http.router(), an http.static() or an
 * http.proxy(). */
SXE_PUBLIC bool sxe_lua_http_has_handler(struct sxe_lua *lua);

/* Whether the script called http.proxy. The server then should have a config.fields_max of 16384,
 * because other servers send longer heads than scripts do. */
SXE_PUBLIC bool sxe_lua_http_has_proxies(struct sxe_lua *lua);

/* sxe_http_drain, sxe_http_stop and sxe_http_break_off for the servers of http.serve. */
SXE_PUBLIC void sxe_lua_http_drain(struct sxe_lua *lua);
SXE_PUBLIC void sxe_lua_http_stop(struct sxe_lua *lua);
SXE_PUBLIC void sxe_lua_http_break_off(struct sxe_lua *lua);

#ifdef __cplusplus
}
#endif

#endif
