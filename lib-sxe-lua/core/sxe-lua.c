/* SPDX-License-Identifier: MIT
 *
 * Making, loading and deleting a state.
 */
#include "sxe-lua.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-lua-core-private.h"
#include "sxe-lua-sandbox-private.h"

/* ---- Making a state ---- */

static void
fill_in_lua_config(struct sxe_lua_config *config)
{
    if (config->memory_max == 0)
        config->memory_max = config->is_sandbox ? SXE__LUA_SANDBOX_MEMORY : (size_t)256 << 20;
    if (config->tasks == 0)
        config->tasks = 16384;
    if (config->sockets == 0)
        config->sockets = 64;
    if (config->ready_max == 0)
        config->ready_max = 256;
    if (config->cpu_ms == 0)
        config->cpu_ms = config->is_sandbox ? SXE__LUA_SANDBOX_CPU_MS : 1000;
    if (config->slice_ms == 0)
        config->slice_ms = 10;
}

/* A lua_WarnFunction: logs an error in a finalizer, or a text of warn(), which comes in pieces. */
static void
log_warning(void *user, const char *piece, int is_continued)
{
    static _Thread_local char line[SXE_LOG_LINE_MAX];
    size_t used = strlen(line);

    (void)user;
    if (used == 0 && !is_continued && *piece == '@') /* "@on", "@off": commands to lua.c */
        return;
    snprintf(line + used, sizeof(line) - used, "%s", piece);
    if (is_continued)
        return;
    SXE_WARN("%s", line);
    line[0] = '\0';
}

static void
open_arguments(lua_State *L, const struct sxe_lua_config *config)
{
    lua_createtable(L, config->argc, 1);
    for (int i = 0; i < config->argc; i++) {
        lua_pushstring(L, config->argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_setglobal(L, "arg");
}

/* The last finalizer of a state that is closed, by sxe_lua_delete or by os.exit in a task. From now
 * on the watchdog's signal must not touch the state, whose memory is freed next. */
static int
leave_closed_state(lua_State *L)
{
    (void)L;
    sxe__lua_watch_switch(sxe__lua_current(), NULL);
    return 0;
}

static int
open_state(lua_State *L)
{
    sxe__lua_at_end(L, leave_closed_state); /* the first object has the last finalizer */
    open_arguments(L, sxe__lua_config());
    sxe__lua_current()->contents->open(L);
    return 0;
}

struct sxe_lua *
sxe__lua_new(const struct sxe_lua_config *config, const struct sxe__lua_contents *contents)
{
    struct sxe_lua *lua;
    int error = EINVAL;

    if (sxe__lua_current() != NULL)
        goto out;
    error = ENOMEM;
    lua = calloc(1, sizeof(*lua));
    if (lua == NULL)
        goto out;
    sxe__lua_set_current(lua);
    lua->contents = contents;
    lua->config = *config;
    fill_in_lua_config(&lua->config);
    lua->heap.max = lua->config.memory_max;
    lua->main = lua_newstate(sxe__lua_allocate, &lua->heap);
    if (lua->main == NULL)
        goto fail;
    /* lua_getextraspace() of a new state is not set, and Lua copies it to each coroutine: set
     * it. */
    sxe__lua_unbar(lua->main);
    lua_setwarnf(lua->main, log_warning, NULL);
    error = -sxe__lua_watch_start(lua);
    if (error == 0)
        error = -sxe__lua_protect(lua, open_state, NULL, "sxe_lua_new");
    if (error == 0)
        error = -sxe__lua_tasks_open(lua->main, &lua->config);
    if (error == 0)
        return lua;

fail:
    sxe_lua_delete(lua);
out:
    errno = error;
    return NULL;
}

void
sxe_lua_delete(struct sxe_lua *lua)
{
    struct sxe__lua_watched watched;
    uint64_t spent_ns = 0;

    if (lua == NULL)
        return;
    SXE_ASSERT(lua == sxe__lua_current() && lua->watch.top == NULL,
               "a state is deleted by another thread, or inside of a script");
    if (lua->main != NULL) {
        sxe__lua_tasks_stop();
        sxe__lua_tasks_close();
        lua->contents->close();
        sxe__lua_watch_enter(&watched, lua->main, &spent_ns);
        lua_close(lua->main);
        sxe__lua_watch_leave(&watched);
        sxe__lua_watch_stop(lua);
    }
    sxe__lua_heap_free(&lua->heap);
    sxe__lua_set_current(NULL);
    free(lua);
}

/* ---- Scripts ---- */

struct script {
    struct sxe__lua_call call;
    const char *path; /* path of the script's file; NULL: the script is a text, which has a name */
    const char *name;
    const char *text;
    size_t length;
    int error; /* errno of reading the file */
};

/* Return the compiled script and its arguments. */
static int
compile_script(lua_State *L)
{
    struct script *script = lua_touserdata(L, 1);
    const struct sxe_lua_config *config = sxe__lua_config();
    int status;

    lua_settop(L, 0);
    luaL_checkstack(L, config->argc + LUA_MINSTACK, NULL);
    if (script->path != NULL)
        status = luaL_loadfilex(L, script->path, "t");
    else
        status = luaL_loadbufferx(L, script->text, script->length, script->name, "t");
    if (status == LUA_ERRFILE)
        script->error = errno;
    if (status != LUA_OK)
        return lua_error(L);
    for (int i = 1; i < config->argc; i++)
        lua_pushstring(L, config->argv[i]);
    return lua_gettop(L);
}

static void
script_ended(lua_State *L, int status, int results, void *user)
{
    struct sxe_lua *lua = sxe__lua_current();
    lua_State *main = lua->main;
    const int top = lua_gettop(main);

    lua->loading--;
    lua->has_failed |= status != LUA_OK;
    if (status == LUA_OK && results > 0 && lua_checkstack(main, 2)) {
        lua_settop(L, lua_gettop(L) - results + 1);
        results = 0;
        lua_pushcfunction(main, sxe__lua_keep_script);
        lua_xmove(L, main, 1);
        lua_pcall(main, 1, 0, 0);
        lua_settop(main, top);
    }
    sxe__lua_call_ended(L, status, results, user);
}

bool
sxe__lua_is_top_level(void)
{
    return sxe__lua_end_of_running() == script_ended;
}

static int
no_results(lua_State *L, struct sxe__lua_call *call)
{
    (void)L;
    (void)call;
    return 0;
}

static int
load_script(struct sxe_lua *lua, struct script *script)
{
    int pushed = sxe__lua_prepare(lua, compile_script, script, script->call.where);
    int result;

    if (pushed < 0)
        return script->error != 0 ? -script->error : pushed;
    lua->loading++;
    script->call.take = no_results;
    result = sxe__lua_run(lua, pushed - 1, &script->call, script_ended);
    if (result == -ENOMEM) /* the script did not start */
        lua->loading--;
    return result == -EINPROGRESS ? 0 : result;
}

int
sxe_lua_load(struct sxe_lua *lua, const char *path)
{
    struct script script = {.call = {.where = path}, .path = path};

    return load_script(lua, &script);
}

int
sxe_lua_load_text(struct sxe_lua *lua, const char *name, const char *text, size_t length)
{
    struct script script = {.call = {.where = name + (*name == '=' || *name == '@')},
                            .name = name,
                            .text = text,
                            .length = length};

    return load_script(lua, &script);
}

int
sxe_lua_loaded(const struct sxe_lua *lua)
{
    if (lua->has_failed)
        return -EINVAL;
    return lua->loading > 0 ? -EINPROGRESS : 0;
}

/* ---- Modules of the program ---- */

struct module {
    const char *name;
    const luaL_Reg *functions;
};

static int
add_module(lua_State *L)
{
    const struct module *module = lua_touserdata(L, 1);

    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_newtable(L);
    luaL_setfuncs(L, module->functions, 0);
    lua_setfield(L, -2, module->name);
    return 0;
}

int
sxe_lua_module(struct sxe_lua *lua, const char *name, const struct luaL_Reg *functions)
{
    struct module module = {name, functions};

    return sxe__lua_protect(lua, add_module, &module, "sxe_lua_module");
}
