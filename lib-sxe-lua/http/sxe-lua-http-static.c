/* SPDX-License-Identifier: MIT
 *
 * http.static: serves the files of a directory, as a handler, or one file at a time for a handler;
 * and res:file.
 */
#include "sxe-lua-http-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-libc-internal.h"

static const char files_class[] = "sxe.http files";

enum { NAME_BYTES_MAX = 4096 };

struct directory {
    struct sxe_http_files *files;
    const char *index[2];
};

struct sxe_http_files *
sxe__lua_http_files(lua_State *L, int index)
{
    struct directory *directory = luaL_testudata(L, index, files_class);

    return directory == NULL ? NULL : directory->files;
}

/* ---- One file ---- */

/* Reply with the file that an argument names. Pushes true: the reply has begun. */
static int
reply_with_static_file(lua_State *L, struct sxe__lua_exchange *exchange,
                       struct sxe_http_files *files, int argument)
{
    struct sxe_http_request *request = exchange->request;
    char path[3 * NAME_BYTES_MAX + 2] = "/";
    struct sxe_span name;
    ssize_t length;

    name.base = luaL_checklstring(L, argument, &name.length);
    luaL_argcheck(L, *name.base != '/', argument,
                  "a name in the directory expected: http.static(directory):send(res, name) is for "
                  "others");
    if (exchange->reply != SXE__LUA_UNANSWERED)
        return luaL_error(L, "the reply has begun: a file is a whole one");
    length = name.length > NAME_BYTES_MAX ? -ENOBUFS
                                          : sxe_http_encode_path(name, path + 1, sizeof(path) - 1);
    exchange->reply = SXE__LUA_ENDED;
    sxe__lua_http_hand_over(exchange);
    if (length < 0)
        sxe_http_reply_status(sxe_http_response_of(request), 404);
    else
        (void)!sxe_http_files_send(files, request, (struct sxe_span){path, (size_t)length + 1});
    lua_pushboolean(L, true);
    return 1;
}

/* res:file(name): a file in the directory where the program was started */
int
sxe__lua_http_res_file(lua_State *L)
{
    struct sxe__lua_exchange *exchange = sxe__lua_http_argument(L, SXE__LUA_RESPONSE);

    if (sxe__lua_config()->is_sandbox)
        return luaL_error(L, "no files (res:file) in a sandbox");
    if (sxe__lua_http.files == NULL)
        return luaL_error(L, "res:file() cannot be planned any more: require \"sxe.http\" at the "
                             "script's top level");
    return reply_with_static_file(L, exchange, sxe__lua_http.files, 2);
}

/* files:send(res, name) */
static int
send_one_file(lua_State *L)
{
    struct directory *directory = luaL_checkudata(L, 1, files_class);
    struct sxe__lua_exchange *exchange;
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 2, SXE__LUA_RESPONSE, &generation);

    exchange = sxe__lua_http_check(L, index, generation);
    return reply_with_static_file(L, exchange, directory->files, 3);
}

struct sxe_http_request *
sxe__lua_http_leave(lua_State *L, struct sxe__lua_exchange *exchange)
{
    struct sxe_http_request *request = exchange->request;

    if (exchange->reply != SXE__LUA_UNANSWERED)
        luaL_error(L, "the reply has begun: a file is a whole one");
    exchange->reply = SXE__LUA_ENDED;
    sxe__lua_http_hand_over(exchange);
    return request;
}

/* files(req, res): the files as a handler that a script calls */
static int
call_files(lua_State *L)
{
    struct directory *directory = luaL_checkudata(L, 1, files_class);
    uint32_t generation = 0;
    uint32_t index = sxe__lua_check_handle(L, 2, SXE__LUA_REQUEST, &generation);
    struct sxe_http_request *request =
        sxe__lua_http_leave(L, sxe__lua_http_check(L, index, generation));

    request->user = directory->files;
    (void)!sxe_http_files_handle(request, sxe_http_response_of(request));
    return 0;
}

/* ---- A directory ---- */

static int
delete_files(lua_State *L)
{
    struct directory *directory = luaL_checkudata(L, 1, files_class);

    sxe_http_files_delete(directory->files);
    directory->files = NULL;
    return 0;
}

/* The text of an option; NULL: the option is missing. The table at 3 keeps the text as long as the
 * files live. */
static const char *
text_option(lua_State *L, const char *name)
{
    const char *text = NULL;

    if (lua_istable(L, 2) && lua_getfield(L, 2, name) != LUA_TNIL) {
        text = sxe__lua_option_text(L, "http.static", name);
        lua_pushvalue(L, -1);
        lua_setfield(L, 3, name);
    }
    lua_settop(L, 4);
    return text;
}

static bool
flag_option(lua_State *L, const char *name, bool otherwise)
{
    return lua_istable(L, 2) ? sxe__lua_option_bool(L, 2, "http.static", name, otherwise)
                             : otherwise;
}

/* Read the option for the most ranges that a request may ask for; 0: ranges are not served. */
static void
ranges_option(lua_State *L, struct sxe_http_files_config *config)
{
    lua_Integer ranges = 0;
    int is_number;

    if (lua_istable(L, 2) && lua_getfield(L, 2, "ranges") != LUA_TNIL) {
        ranges = sxe__lua_option_integer(L, &is_number);
        if (!is_number || ranges < 0 || ranges > SXE_HTTP_FILES_RANGES_MOST)
            luaL_error(L, "http.static: ranges must be a number from 0 to %d",
                       SXE_HTTP_FILES_RANGES_MOST);
        config->no_ranges = ranges == 0;
    }
    config->ranges_max = (uint32_t)ranges;
    lua_settop(L, 4);
}

/* Raise an error for an option that does not exist: its name may be misspelt. */
static void
check_static_options(lua_State *L)
{
    static const char *const names[] = {"index", "listing", "dot_files", "gzip", "cache_control",
                                        "types", "ranges",  "nosniff",   NULL};

    if (!lua_isnil(L, 2))
        sxe__lua_option_names(L, 2, names, "http.static");
}

/* Raise an error that says why files cannot be served: the directory, or a wrong text in an option
 * (EINVAL). */
static int
raise_static_error(lua_State *L, const struct sxe_http_files_config *config, int error)
{
    if (error != EINVAL || (config->types == NULL && config->cache_control == NULL))
        return luaL_error(L, "http.static: %s: %s", config->root, strerrordesc_np(error));
    return luaL_error(L,
                      "http.static: %s%s%s cannot be used: types has lines of a type and its "
                      "endings, as mime.types, cache_control is text without control bytes",
                      config->types != NULL ? "types" : "",
                      config->types != NULL && config->cache_control != NULL ? " or " : "",
                      config->cache_control != NULL ? "cache_control" : "");
}

/* http.static(root [, options]) */
static int
new_files(lua_State *L)
{
    struct sxe_http_files_config config = {.root = sxe__lua_check_text(L, 1)};
    struct directory *directory;

    if (sxe_loop() != NULL)
        return luaL_error(L,
                          "http.static: files are planned before the loop starts: call it at the "
                          "script's top level");
    sxe__lua_refuse_at_end(L);
    lua_settop(L, 2);
    check_static_options(L);
    lua_newtable(L);
    directory = lua_newuserdatauv(L, sizeof(*directory), 1);
    *directory = (struct directory){.files = NULL};
    luaL_setmetatable(L, files_class);
    lua_pushvalue(L, 1);
    lua_setfield(L, 3, "root");
    directory->index[0] = text_option(L, "index");
    config.index = directory->index[0] == NULL ? NULL : directory->index;
    config.cache_control = text_option(L, "cache_control");
    config.types = text_option(L, "types");
    config.listing = flag_option(L, "listing", false);
    config.dot_files = flag_option(L, "dot_files", false);
    config.sniff = !flag_option(L, "nosniff", true);
    config.no_siblings = !flag_option(L, "gzip", true);
    ranges_option(L, &config);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, 4, 1);
    directory->files = sxe_http_files_new(&config);
    if (directory->files == NULL)
        return raise_static_error(L, &config, errno);
    /* Keep the files: servers may use them until the state ends. */
    lua_pushvalue(L, 4);
    luaL_ref(L, LUA_REGISTRYINDEX);
    return 1;
}

void
sxe__lua_http_open_static(lua_State *L)
{
    static const luaL_Reg methods[] = {{"send", send_one_file}, {NULL, NULL}};

    sxe__lua_new_class(L, files_class);
    lua_pushcfunction(L, delete_files);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, call_files);
    lua_setfield(L, -2, "__call");
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_files);
    lua_setfield(L, -2, "static");
}
