/* SPDX-License-Identifier: MIT
 *
 * What: the declarations that the files of require "sxe.http" share. In reading order:
 *
 *     sxe-lua-http.c           the module
 *     sxe-lua-http-exchange.c  an exchange: a request, its task, its reply
 *     sxe-lua-http-run.c       how it begins: a task for the handler, with filters before it
 *     sxe-lua-http-result.c    what handlers return, and what becomes of their errors
 *     sxe-lua-http-page.c      an error as a page for a developer's browser
 *     sxe-lua-http-request.c   req
 *     sxe-lua-http-form.c      names and values of queries and forms
 *     sxe-lua-http-cookie.c    req.cookies, res:cookie()
 *     sxe-lua-http-tls.c       req.tls
 *     sxe-lua-http-body.c      req:body(), :chunks(), :json(), :form()
 *     sxe-lua-http-response.c  res
 *     sxe-lua-http-stream.c    res:write(), res:sse()
 *     sxe-lua-http-serve.c     http.serve
 *     sxe-lua-http-router.c    http.router
 *     sxe-lua-http-filter.c    its filters
 *     sxe-lua-http-static.c    http.static
 *     sxe-lua-http-proxy.c     http.proxy
 *
 * Shape: an exchange has two ends, and lives until both are over.
 *
 *     the library's slot <--- request, response --- exchange --- task ---> the coroutine
 *          on_reply_done: response = NULL           on_handler_end: is_running = false
 *
 * Scripts see an exchange as handles: of req, res, req.headers ... All of these have the exchange's
 * index and generation, and are refused when the exchange is over.
 */
#ifndef SXE_LUA_HTTP_PRIVATE_H
#define SXE_LUA_HTTP_PRIVATE_H

#include "sxe-lua-private.h"

#include "sxe-http-file.h"
#include "sxe-http-proxy.h"
#include "sxe-lua-http.h"

enum {
    SXE__LUA_EXCHANGES = 131072,
    SXE__LUA_SERVERS = 16,
    SXE__LUA_BODY_MAX = 1 << 20, /* the most bytes for req:body() by default */
    /* the most names of a query or form, because it is read without a pause */
    SXE__LUA_NAMES_MAX = 1000,
    /* bodies of replies up to this many bytes are copied; longer ones are lent */
    SXE__LUA_COPY_MAX = 16384,
    /* the most bytes of a reply's fields, if the script has a proxy */
    SXE__LUA_FIELDS_OF_PROXIES = 16384
};

#define SXE__LUA_TEXT "text/plain; charset=utf-8"
#define SXE__LUA_JSON "application/json"
#define SXE__LUA_HTML "text/html; charset=utf-8"

enum sxe__lua_reply { SXE__LUA_UNANSWERED, SXE__LUA_BEGUN, SXE__LUA_ENDED };

/* How much of the request's body was read. The table of kept values has the bytes of the body. */
enum sxe__lua_body {
    SXE__LUA_BODY_UNREAD,
    SXE__LUA_BODY_AWAITED, /* the body is read in parts, and no part has come yet */
    SXE__LUA_BODY_PART,
    SXE__LUA_BODY_OVER,     /* the last part was taken */
    SXE__LUA_BODY_GATHERED, /* parts are being gathered for req:body() */
    SXE__LUA_BODY_WHOLE,    /* the whole body was gathered, but is not a string yet */
    SXE__LUA_BODY_LONG,     /* the body has more bytes than allowed */
    SXE__LUA_BODY_KEPT,     /* the string for req:body() is kept */
    SXE__LUA_BODY_LOST      /* memory was missing */
};

/* The bytes of a body that is not a string yet. These bytes are outside of Lua's memory: clients
 * that send half a body must not use up the memory of scripts. The server counts them, see
 * sxe_http_keep_body. */
struct sxe__lua_gathered {
    size_t used;
    size_t size; /* how many bytes the memory has */
    size_t most; /* the most bytes that the body may have */
    char bytes[];
};

/* The handler of an http.serve or of a route. An answerer lives as long as the state. */
struct sxe__lua_router;
struct sxe__lua_answerer {
    /* the handler, a function in the registry; LUA_NOREF: `files` answer, or nothing does */
    int function;
    bool is_unrouted;                   /* answers requests without a route in the router */
    struct sxe_http_files *files;       /* NULL: there are no files */
    const struct sxe_http_proxy *proxy; /* the function as a proxy; NULL: the function is none */
    int list;              /* the list of all filters, in the registry; LUA_NOREF: not made */
    uint32_t list_version; /* sxe__lua_http.filters_version when the list was made */
    unsigned routers_number;
    struct sxe__lua_router *routers[]; /* the routers around the route, the outermost first */
};

struct sxe__lua_exchange {
    struct sxe_http_request *request;
    /* NULL: the reply is over, or other code sends it (sxe__lua_http_hand_over). */
    struct sxe_http_response *response;
    const struct sxe__lua_answerer *answerer; /* NULL: the script's result answers */
    uint64_t task;
    struct sxe__lua_line line; /* tasks that wait for the body, or for room to write */
    uint32_t generation;
    uint32_t next;     /* in a free exchange: index + 1 of the next free exchange */
    uint32_t unsent;   /* bytes written since the kernel took all earlier bytes */
    uint16_t status;   /* the status of the reply; 0: 200 */
    uint8_t reply;     /* enum sxe__lua_reply */
    uint8_t body;      /* enum sxe__lua_body */
    bool is_running;   /* the handler's task has not ended */
    bool is_inside;    /* the handler's task is being started */
    bool is_finishing; /* the task handles the result of the handler's task */
    bool is_gone;      /* the client is gone */
    bool is_failing;   /* the task handles an error of the handler's task */
    bool is_lending;   /* a kept string is the reply's body */
    bool is_last;      /* `part` is the body's last part */
    bool has_ctx;      /* req.ctx was made */
    bool is_named;     /* the log shows the request's id, which is in sxe__lua_http.ids */
    bool is_traced;    /* the request is part of a trace */
    struct sxe_span part;
    struct sxe__lua_gathered *gathered; /* NULL: no body is gathered */
};
_Static_assert(sizeof(struct sxe__lua_exchange) <= 96, "one for each request under way");

struct sxe__lua_server {
    struct sxe_http *http;
    struct sxe__lua_line line; /* tasks that wait until the server has ended */
    uint32_t body_max;
    unsigned short port;
    char ip[48];
    char path[108]; /* path of a unix socket; "": the server listens at a port */
    bool is_listening;
    bool is_stopped;
};

typedef char sxe__lua_id[SXE_HTTP_ID_MAX + 1];

enum sxe__lua_http_counter {
    SXE__LUA_HTTP_REQUESTS,
    SXE__LUA_HTTP_ERRORS,    /* how many requests were answered 500 or above, or not at all */
    SXE__LUA_HTTP_TRUNCATED, /* how many errors came after a part of the reply was sent */
    SXE__LUA_HTTP_REFUSED,   /* how many requests were answered 503 because no task was free */
    SXE__LUA_HTTP_GONE,      /* how many clients did not wait for their reply */
    SXE__LUA_HTTP_COUNTERS
};

struct sxe__lua_http {
    struct sxe__lua_exchange *exchanges; /* NULL: sxe.http is not open */
    sxe__lua_id *ids;                    /* ids of requests, by index of the exchange */
    /* how many exchanges were ever used: the first ones of the array */
    uint32_t used;
    uint32_t free; /* index + 1 of a free exchange; 0: none */
    lua_State *main;
    const void *returned;           /* the userdata that the script returned */
    struct sxe__lua_router *router; /* `returned`, if it is a router; or NULL */
    struct sxe_http_files *root;
    const struct sxe_http_proxy *proxy; /* `returned`, if it is a proxy; or NULL */
    bool has_proxies;                   /* http.proxy was called */
    /* the files of res:file(); NULL: sxe.http was opened after the loop began */
    struct sxe_http_files *files;
    struct sxe__lua_server servers[SXE__LUA_SERVERS];
    unsigned servers_number;
    /* for requests that reach the script through the program's own server */
    uint32_t body_max;
    uint32_t filters_version; /* how many filters were ever added */
    int64_t counters[SXE__LUA_HTTP_COUNTERS];
};
extern _Thread_local struct sxe__lua_http sxe__lua_http __attribute__((visibility("hidden")));

/* ---- Exchanges (sxe-lua-http-exchange.c) ---- */

/* Allocate the exchanges outside Lua, unless they exist. False: there is no memory. */
bool sxe__lua_http_open_exchanges(void);
void sxe__lua_http_close_exchanges(void);

/* Make the tables of kept values in the registry. */
void sxe__lua_http_open_kept(lua_State *L);

/* A free exchange for this request; NULL: none is free. The caller starts a task for it, then calls
 * sxe__lua_http_let_go: after that, the exchange is freed as soon as its reply and its task are
 * over. */
struct sxe__lua_exchange *sxe__lua_http_take(struct sxe_http_request *request,
                                             const struct sxe__lua_answerer *answerer);
void sxe__lua_http_let_go(struct sxe__lua_exchange *exchange);

/* Free the exchange if its reply and its task are over. */
void sxe__lua_http_give_if_over(struct sxe__lua_exchange *exchange);

/* Start a task for an exchange, with a function and arguments on the main state's stack. False: no
 * task is free. */
bool sxe__lua_http_start(struct sxe__lua_exchange *exchange, int arguments, sxe__lua_on_end on_end);

/* The exchange of a handle; raises an error if the exchange is over. */
struct sxe__lua_exchange *sxe__lua_http_check(lua_State *L, uint32_t index, uint32_t generation);
struct sxe__lua_exchange *sxe__lua_http_argument(lua_State *L, enum sxe__lua_class class_);

/* The exchange of a handle; NULL: the exchange is over. */
struct sxe__lua_exchange *sxe__lua_http_find(uint32_t index, uint32_t generation);

void sxe__lua_http_push(lua_State *L, const struct sxe__lua_exchange *exchange,
                        enum sxe__lua_class class_);

/* sxe__lua_http_keep pops the value on top and keeps it with the exchange; sxe__lua_http_push_kept
 * pushes it. */
void sxe__lua_http_keep(lua_State *L, const struct sxe__lua_exchange *exchange);
void sxe__lua_http_push_kept(lua_State *L, const struct sxe__lua_exchange *exchange);

/* Push the table req.ctx; the first call makes it. */
void sxe__lua_http_push_ctx(lua_State *L, struct sxe__lua_exchange *exchange);

/* Leave the reply to other code. That code sets the response's user and on_done, or has set
 * them. */
void sxe__lua_http_hand_over(struct sxe__lua_exchange *exchange);

/* Free the bytes of the body that were gathered. */
void sxe__lua_http_drop_body(struct sxe__lua_exchange *exchange);

/* Wake all tasks that wait for the exchange, so that they look again. */
void sxe__lua_http_wake(struct sxe__lua_exchange *exchange);

/* Raise the error {status = status, message = ...}. */
int sxe__lua_http_refuse(lua_State *L, unsigned status, const char *format, ...) SXE_PRINTF(3, 4);

/* ---- Running (sxe-lua-http-run.c) ---- */

/* Pop a function from the main state's stack, and let it answer the request. */
enum sxe_http_verdict sxe__lua_http_run(struct sxe_http_request *request,
                                        const struct sxe__lua_answerer *answerer);

/* The handler of routes, in C; request->user is an answerer. */
enum sxe_http_verdict sxe__lua_http_answer(struct sxe_http_request *request,
                                           struct sxe_http_response *response);

/* A handler for paths without a route; request->user is the router's `unrouted`. */
enum sxe_http_verdict sxe__lua_http_unrouted(struct sxe_http_request *request,
                                             struct sxe_http_response *response);

/* ---- Answers (sxe-lua-http-result.c) ---- */

/* The on_end of an exchange's tasks; user is the exchange. */
void sxe__lua_http_ended(lua_State *L, int status, int results, void *user);

/* For developers (sxe-lua-http-page.c). The first function returns whether the client accepts an
 * HTML page; the second pushes that page, made from the text of sxe_lua_explain. */
bool sxe__lua_http_wants_page(const struct sxe__lua_exchange *exchange);
void sxe__lua_http_push_page(lua_State *L, const struct sxe__lua_exchange *exchange,
                             const char *explained);

/* ---- Replies (sxe-lua-http-response.c) ---- */

/* Send the whole reply; its body is the string at index. May raise. */
void sxe__lua_http_send(lua_State *L, struct sxe__lua_exchange *exchange, int index,
                        const char *type);

/* Send the whole reply; its body is the value on top as JSON. May raise. */
void sxe__lua_http_send_json(lua_State *L, struct sxe__lua_exchange *exchange);

/* Like sxe__lua_http_send_json, but never raises an error. False: the value cannot be sent at once.
 */
bool sxe__lua_http_try_json(lua_State *L, struct sxe__lua_exchange *exchange);

/* The reply's status; 200 if none was set. */
static inline unsigned
sxe__lua_http_status(const struct sxe__lua_exchange *exchange)
{
    return exchange->status == 0 ? 200 : exchange->status;
}

/* The Content-Type for a reply: `type`, or NULL if the script has set one. */
const char *sxe__lua_http_type(const struct sxe__lua_exchange *exchange, const char *type);

/* ---- Streams (sxe-lua-http-stream.c) ---- */

/* Send status and fields, unless they are sent already. Returns 0 or -errno. */
int sxe__lua_http_begin(struct sxe__lua_exchange *exchange);

/* Write the string at stack index 2. May wait, so the calling C function must return the result of
 * this call: true, or nil, "closed". */
int sxe__lua_http_write(lua_State *L, struct sxe__lua_exchange *exchange);

/* ---- Forms (sxe-lua-http-form.c) ---- */

/* Push a name or value of a query or form, decoded. */
void sxe__lua_http_push_form_text(lua_State *L, struct sxe_span text);

/* Push a table of the parameters of a query or form, the first of each name; refuse more than
 * SXE__LUA_NAMES_MAX with the status. */
void sxe__lua_http_push_form(lua_State *L, struct sxe_span text, unsigned status);

/* ---- TLS (sxe-lua-http-tls.c) ---- */

/* Whether the connection speaks TLS. */
bool sxe__lua_http_is_secure(const struct sxe__lua_exchange *exchange);

/* Push the value of req.tls. Returns 1. */
int sxe__lua_http_push_tls(lua_State *L, struct sxe__lua_exchange *exchange);

/* ---- Modules' parts: each sets its function in the table on top ---- */

void sxe__lua_http_open_request(lua_State *L);
void sxe__lua_http_open_response(lua_State *L);
void sxe__lua_http_open_serve(lua_State *L);
void sxe__lua_http_open_router(lua_State *L);
void sxe__lua_http_open_static(lua_State *L);
void sxe__lua_http_open_proxy(lua_State *L);
int sxe__lua_http_body(lua_State *L);
int sxe__lua_http_chunks(lua_State *L);
int sxe__lua_http_json(lua_State *L);
int sxe__lua_http_form(lua_State *L);
int sxe__lua_http_res_write(lua_State *L);
int sxe__lua_http_res_finish(lua_State *L);
int sxe__lua_http_res_sse(lua_State *L);
int sxe__lua_http_res_file(lua_State *L);
int sxe__lua_http_res_cookie(lua_State *L);
extern const struct sxe__lua_class_spec sxe__lua_cookies_class;
extern const struct sxe__lua_class_spec sxe__lua_events_class;

/* ---- Routers and files ---- */

/* A router that is mounted in another router, perhaps in a mount of that router. */
struct sxe__lua_mount {
    struct sxe_http_router *prefix; /* finds the paths below the prefix */
    struct sxe__lua_router *router;
    struct sxe__lua_mount *next; /* a mount inside of this mount comes later in the list */
    char text[];                 /* the prefix, without a slash at its end */
};

struct sxe__lua_router {
    struct sxe_http_router *router;
    /* a function in the registry; LUA_NOREF: the router has none */
    int on_error;
    /* a list of functions in the registry; LUA_NOREF: the router has none */
    int filters;
    struct sxe__lua_mount *mounts;      /* the mounts, in the order of the calls that made them */
    struct sxe__lua_mount **last_mount; /* the link after the last mount, which is NULL */
    struct sxe__lua_answerer *unrouted;
};

/* The router or files at a stack index; NULL: the value there is neither. */
struct sxe__lua_router *sxe__lua_http_router(lua_State *L, int index);
struct sxe_http_files *sxe__lua_http_files(lua_State *L, int index);

/* How the proxy at a stack index sends requests on; NULL: the value there is no proxy. */
const struct sxe_http_proxy *sxe__lua_http_proxy(lua_State *L, int index);

/* The handler of a route whose function is a proxy; request->user is an answerer. */
enum sxe_http_verdict sxe__lua_http_pass(struct sxe_http_request *request,
                                         struct sxe_http_response *response);

/* Whether filters run before the answerer's function. */
bool sxe__lua_http_is_filtered(const struct sxe__lua_answerer *answerer);

/* Whether filters run before the reply to a path for which the router has no route. */
bool sxe__lua_http_is_unrouted_filtered(const struct sxe__lua_router *router, struct sxe_span path);

/* Replace the function on top by three values; the caller calls these with req and res. The call
 * runs the answerer's filters and then, if they let the request pass, the function. */
void sxe__lua_http_push_filtered(lua_State *L, const struct sxe__lua_answerer *answerer);

/* End the part of Lua in a request that files or other C code will answer. Returns the request. */
struct sxe_http_request *sxe__lua_http_leave(lua_State *L, struct sxe__lua_exchange *exchange);

/* A handler: find the route of a router that the script returned, and let it answer. */
enum sxe_http_verdict sxe__lua_http_route(const struct sxe__lua_router *router,
                                          struct sxe_http_request *request);

/* ---- JSON (sxe-lua-json.c, -json-list.c, -json-decode.c, -json-encode.c) ---- */

/* Whether sxe__lua_json_mark, or its class, marked the table on top. */
bool sxe__lua_json_is_marked(lua_State *L);

/* Write the value on top as JSON into room. Returns the length; -1: the value cannot be written as
 * JSON, does not fit, or takes more than some milliseconds. Never raises an error, and needs no
 * memory. */
ssize_t sxe__lua_json_write(lua_State *L, char *room, size_t size);

/* Replace the value on top by its JSON, of any length. Raises an error if the value cannot be
 * written as JSON and, like decode, when the watchdog demands an error. */
void sxe__lua_json_encode(lua_State *L);

/* Replace the text on top by its value, and return true; or replace it by a message that says why
 * the text is not JSON, and return false. */
bool sxe__lua_json_decode(lua_State *L);

/* Add the text as a JSON string; bytes that are not UTF-8 become U+FFFD. */
void sxe__lua_json_quote(luaL_Buffer *buffer, struct sxe_span text);

#endif
