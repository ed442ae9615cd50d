/* SPDX-License-Identifier: MIT
 *
 * Handlers in C, which start a task of Lua: it runs the filters and then the handler of the script.
 */
#include "sxe-lua-http-private.h"

#define HTTP (&sxe__lua_http)

static enum sxe_http_verdict
refuse_request(struct sxe_http_response *response, int values)
{
    HTTP->counters[SXE__LUA_HTTP_REFUSED]++;
    lua_pop(HTTP->main, values);
    return sxe_http_reply_status(response, 503);
}

enum sxe_http_verdict
sxe__lua_http_run(struct sxe_http_request *request, const struct sxe__lua_answerer *answerer)
{
    struct sxe_http_response *response = sxe_http_response_of(request);
    struct sxe__lua_exchange *exchange = sxe__lua_http_take(request, answerer);
    bool is_filtered = answerer != NULL && sxe__lua_http_is_filtered(answerer);
    lua_State *L = HTTP->main;

    HTTP->counters[SXE__LUA_HTTP_REQUESTS]++;
    if (exchange == NULL)
        return refuse_request(response, 1);
    if (is_filtered)
        sxe__lua_http_push_filtered(L, answerer);
    sxe__lua_http_push(L, exchange, SXE__LUA_REQUEST);
    sxe__lua_http_push(L, exchange, SXE__LUA_RESPONSE);
    if (!sxe__lua_http_start(exchange, is_filtered ? 4 : 2, sxe__lua_http_ended))
        refuse_request(response, 0);
    sxe__lua_http_let_go(exchange);
    return SXE_HTTP_LATER;
}

enum sxe_http_verdict
sxe__lua_http_answer(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct sxe__lua_answerer *answerer = request->user;

    SXE_UNUSED_PARAMETER(response);
    lua_rawgeti(HTTP->main, LUA_REGISTRYINDEX, answerer->function);
    return sxe__lua_http_run(request, answerer);
}

/* ---- Paths without a route ---- */

/* Stands in for a handler: return 404, 405 or 204, as sxe_http_reply_unrouted replies. */
static int
answer_unrouted(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_REQUEST);
    struct sxe_http_request *request = exchange->request;
    bool is_options = sxe_http_method(request) == SXE_HTTP_OPTIONS;

    if (request->match.allow.length > 0)
        (void)!sxe_http_add_field_span(exchange->response, "Allow", request->match.allow);
    lua_pushinteger(L, request->match.allow.length == 0 ? 404 : is_options ? 204 : 405);
    return 1;
}

enum sxe_http_verdict
sxe__lua_http_unrouted(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct sxe__lua_answerer *answerer = request->user;

    if (!sxe__lua_http_is_unrouted_filtered(answerer->routers[0], request->path))
        return sxe_http_reply_unrouted(request, response);
    lua_pushcfunction(sxe__lua_http.main, answer_unrouted);
    return sxe__lua_http_run(request, answerer);
}
