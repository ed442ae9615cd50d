/* SPDX-License-Identifier: MIT
 *
 * Reads a configuration file and runs it in an environment that can only compute.
 */
#include "config-file.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config-text.h"

#define STEPS 100000 /* how many of Lua's instructions are run between two calls of on_steps */

static int
refuse_config_file(const char *path, const char *why)
{
    fprintf(stderr, "sxe-httpd: cannot read the configuration '%s': %s\n", path, why);
    return -1;
}

/* ---- The environment ---- */

static void
on_steps(lua_State *L, lua_Debug *debug)
{
    struct config_file *file = *(struct config_file **)lua_getextraspace(L);

    (void)debug;
    file->steps += STEPS;
    if (file->steps >= CONFIG_STEPS_MAX) {
        luaL_where(L, 0);
        lua_pushfstring(L, "this takes more than %d instructions; a configuration is a table",
                        CONFIG_STEPS_MAX);
        lua_concat(L, 2);
        lua_error(L);
    }
}

/* Copy the fields with these names from the table on top of the stack to the table below it. */
static void
keep_names(lua_State *L, const char *const *names)
{
    for (; *names != NULL; names++) {
        lua_getfield(L, -1, *names);
        lua_setfield(L, -3, *names);
    }
}

/* Open a library, and store only its functions with these names, as a field of the table on top of
 * the stack. The methods of strings are limited to these names, too. */
static void
open_library(lua_State *L, const char *name, lua_CFunction open, const char *const *names)
{
    lua_newtable(L);
    luaL_requiref(L, name, open, 0);
    keep_names(L, names);
    lua_pop(L, 1);
    if (open == luaopen_string) {
        lua_pushliteral(L, "");
        (void)lua_getmetatable(L, -1);
        lua_pushvalue(L, -3);
        lua_setfield(L, -2, "__index");
        lua_pop(L, 2);
    }
    lua_setfield(L, -2, name);
}

/* Push the table of globals for a configuration. */
static void
push_environment(lua_State *L)
{
    static const char *const base[] = {"assert", "error",    "ipairs",   "next", "pairs",
                                       "select", "tonumber", "tostring", "type", NULL};
    static const char *const strings[] = {"byte",    "char", "format", "len", "lower",
                                          "reverse", "sub",  "upper",  NULL};
    static const char *const tables[] = {"concat", "insert", "pack", "remove",
                                         "sort",   "unpack", NULL};
    static const char *const numbers[] = {"abs", "ceil",       "floor",     "fmod", "huge", "max",
                                          "min", "maxinteger", "tointeger", "type", NULL};

    lua_newtable(L);
    luaL_requiref(L, "_G", luaopen_base, 0);
    keep_names(L, base);
    lua_pop(L, 1);
    open_library(L, "string", luaopen_string, strings);
    open_library(L, "table", luaopen_table, tables);
    open_library(L, "math", luaopen_math, numbers);
}

/* ---- Reading ---- */

/* Run the text. This function is called in Lua's protected mode, with the file, its text and the
 * text's length. It returns the table of the configuration. */
static int
run_text(lua_State *L)
{
    const struct config_file *file = lua_touserdata(L, 1);
    const char *text = lua_touserdata(L, 2);
    const size_t length = (size_t)lua_tointeger(L, 3);

    lua_pushfstring(L, "@%s", file->path);
    if (luaL_loadbufferx(L, text, length, lua_tostring(L, -1), "t") != LUA_OK)
        return lua_error(L);
    push_environment(L);
    (void)lua_setupvalue(L, -2, 1);
    lua_sethook(L, on_steps, LUA_MASKCOUNT, STEPS);
    lua_call(L, 0, 1);
    lua_sethook(L, NULL, 0, 0);
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s: it returned %s; let it end with: return { port = 8000 }",
                          file->path, lua_isnil(L, -1) ? "nothing" : luaL_typename(L, -1));
    return 1;
}

/* Run the text, and leave its table on the stack. 0, or -1 after a message. */
static int
run_file(struct config_file *file, const char *text, size_t length)
{
    int result;

    file->memory =
        (struct counted_memory){.used_max = CONFIG_MEMORY_MAX, .total_max = CONFIG_ALLOCATED_MAX};
    file->L = lua_newstate(counted_memory_allocate, &file->memory);
    file->lines = config_lines_new(text, length);
    if (file->L == NULL || file->lines == NULL)
        return refuse_config_file(file->path, strerror(ENOMEM));
    *(struct config_file **)lua_getextraspace(file->L) = file;
    lua_pushcfunction(file->L, run_text);
    lua_pushlightuserdata(file->L, file);
    lua_pushlightuserdata(file->L, (void *)(uintptr_t)text);
    lua_pushinteger(file->L, (lua_Integer)length);
    result = lua_pcall(file->L, 3, 1, 0);
    if (result == LUA_OK)
        return 0;
    if (result == LUA_ERRMEM)
        return refuse_config_file(file->path,
                                  "it takes more than 16 MiB, or copies more than 256 MiB");
    fprintf(stderr, "sxe-httpd: %s\n",
            lua_isstring(file->L, -1) ? lua_tostring(file->L, -1) : "error of another type");
    return -1;
}

struct config_file *
config_file_open(const char *path)
{
    struct config_file *file = calloc(1, sizeof(*file));

    if (file == NULL) {
        (void)refuse_config_file(path, strerror(errno));
        return NULL;
    }
    file->path = path;
    file->text = config_text_copy(path, &file->length);
    if (file->text == NULL)
        (void)refuse_config_file(path, errno == EFBIG ? "it has more than 1 MiB" : strerror(errno));
    else if (run_file(file, file->text, file->length) == 0)
        return file;
    config_file_close(file);
    return NULL;
}

void
config_file_close(struct config_file *file)
{
    if (file->L != NULL)
        lua_close(file->L);
    config_lines_delete(file->lines);
    free(file->text);
    free(file);
}

/* ---- Texts ---- */

static int
keep_text(lua_State *L)
{
    (void)luaL_tolstring(L, 1, NULL);
    lua_pushvalue(L, -1);
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
    return 1;
}

char *
config_file_keep(struct config_file *file)
{
    char *text = NULL;

    lua_pushcfunction(file->L, keep_text);
    lua_insert(file->L, -2);
    if (lua_pcall(file->L, 1, 1, 0) == LUA_OK)
        text = (char *)(uintptr_t)lua_tostring(file->L, -1);
    lua_pop(file->L, 1);
    return text;
}

bool
config_is_list(lua_State *L, int index)
{
    lua_Unsigned number = 0;

    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1))
        number++;
    return number == lua_rawlen(L, index);
}
