/* SPDX-License-Identifier: MIT
 *
 * Making a state a sandbox: removing what reaches outside it.
 */
#include "sxe-lua-sandbox-private.h"

#include <string.h>

#include "sxe-lua-clock.h"
#include "sxe-lua-http-private.h"
#include "sxe-lua-pattern-private.h"

/* ---- Globals that scripts get ----
 * Each name has a blank before and after it. */

static const char globals[] =
    " _G _VERSION arg assert collectgarbage coroutine error getmetatable ipairs load math next os "
    "pairs pcall print rawequal rawget rawlen rawset require select setmetatable string table "
    "tonumber tostring type utf8 xpcall ";

static const struct library {
    const char *name;
    const char *fields;
} libraries[] = {
    {"coroutine", " close create isyieldable resume running status wrap yield "},
    {"math", " abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min "
             "mininteger modf pi rad random randomseed sin sqrt tan tointeger type ult "},
    {"os", " clock date difftime time "},
    {"string", " byte char find format gmatch gsub len lower match pack packsize rep reverse sub "
               "unpack upper "},
    {"table", " concat insert move pack remove sort unpack "},
    {"utf8", " char charpattern codepoint codes len offset "},
};

enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };

static bool
is_module_listed(const char *names, const char *name)
{
    const size_t length = strlen(name);
    const char *found = names + 1;

    while ((found = strstr(found, name)) != NULL) {
        if (found[-1] == ' ' && found[length] == ' ')
            return true;
        found++;
    }
    return false;
}

/* Remove all fields from the table on top that are not listed. */
static void
keep_only(lua_State *L, const char *names)
{
    lua_pushnil(L);
    while (lua_next(L, -2) != 0) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && is_module_listed(names, lua_tostring(L, -1)))
            continue;
        lua_pushvalue(L, -1);
        lua_pushnil(L);
        lua_rawset(L, -4);
    }
}

/* ---- require ---- */

/* A searcher for require: returns the loader of a module and its data, or a text that says why
 * there is no such module. */
static int
find_sandbox_loader(lua_State *L)
{
    const char *name = sxe__lua_check_text(L, 1);
    const struct sxe__lua_module *module = sxe__lua_find_module(name);

    if (module == NULL || !module->is_in_sandbox) {
        lua_pushfstring(L, "no module '%s' in a sandbox", name);
        return 1;
    }
    lua_pushcfunction(L, module->open);
    lua_pushliteral(L, ":sxe:");
    return 2;
}

/* A searcher for require that finds Lua files below the current directory. Dots in a name become
 * slashes, so that no name leads out of the directory. */
static int
find_module_file(lua_State *L)
{
    sxe__lua_check_text(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 1);
    lua_pushliteral(L, SXE__LUA_PATH);
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2))
        return 1;
    lua_pop(L, 1);
    if (luaL_loadfilex(L, lua_tostring(L, -1), "t") != LUA_OK)
        return lua_error(L);
    lua_insert(L, -2);
    return 2;
}

/* Replace the searchers in the package table on top. From now on only require sees that table. */
static void
replace_searchers(lua_State *L)
{
    lua_createtable(L, 2, 0);
    lua_pushcfunction(L, find_sandbox_loader);
    lua_rawseti(L, -2, 1);
    lua_getfield(L, -2, "searchpath");
    lua_pushcclosure(L, find_module_file, 1);
    lua_rawseti(L, -2, 2);
    lua_setfield(L, -2, "searchers");
}

/* ---- Memory ---- */

/* The nodes of a hash are a new block of 2^n times 24 bytes (ltable.c). The only other block of
 * such a size is that of an array for 3 * 2^n elements. */
bool
sxe__lua_is_too_many_keys(const void *block, size_t kind, size_t size)
{
    const size_t keys = size / 24;

    return block == NULL && kind == 0 && keys > SXE__LUA_SANDBOX_KEYS && size % 24 == 0 &&
           (keys & (keys - 1)) == 0;
}

/* The lua_Alloc of a sandbox. */
static void *
allocate_in_sandbox(void *user, void *block, size_t old_size, size_t new_size)
{
    struct sxe__lua_heap *heap = user;
    const bool is_more = block == NULL || new_size > old_size;

    if (SXE_UNLIKELY(is_more && new_size > heap->max / 16) ||
        SXE_UNLIKELY(sxe__lua_is_too_many_keys(block, old_size, new_size)))
        return NULL;
    return sxe__lua_allocate(heap, block, old_size, new_size);
}

/* Keep scripts from making weak tables. The collector finds "__mode" by the address of one string,
 * which the state made first and keeps; scripts find it by the string's bytes. Overwriting these
 * bytes makes __mode a key like any other for scripts. */
static void
forget_weak_tables(lua_State *L)
{
    char *name;

    lua_pushliteral(L, "__mode");
    name = (char *)(uintptr_t)lua_tostring(L, -1);
    for (uint64_t bits = sxe_lua_get_clock()->random() | 1; *name != '\0'; bits >>= 8)
        *name++ = (char)(bits % 255 + 1);
    lua_pop(L, 1);
}

/* ---- Opening ---- */

/* Give strings a table of methods of their own, so that a script that changes the table `string`
 * does not change the methods of all strings. */
static void
protect_strings(lua_State *L)
{
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_newtable(L);
    lua_getglobal(L, "string");
    for (lua_pushnil(L); lua_next(L, -2) != 0;) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -5);
    }
    lua_pop(L, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 2);
}

void
sxe__lua_limit_libraries(lua_State *L)
{
    forget_weak_tables(L);
    sxe__lua_open_sandbox_base(L);
    sxe__lua_open_sandbox_table(L);
    lua_getglobal(L, "string");
    sxe__lua_open_patterns(L);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    keep_only(L, " _G coroutine math os string table utf8 ");
    for (size_t i = 0; i < LIBRARIES; i++) {
        lua_getglobal(L, libraries[i].name);
        keep_only(L, libraries[i].fields);
        lua_pop(L, 1);
    }
    lua_pushglobaltable(L);
    keep_only(L, globals);
    lua_pop(L, 3);
    protect_strings(L);
}

void
sxe__lua_open_sandbox(lua_State *L)
{
    lua_setallocf(L, allocate_in_sandbox, &sxe__lua_current()->heap);
    lua_getglobal(L, "package");
    replace_searchers(L);
    lua_pop(L, 1);
    sxe__lua_limit_libraries(L);
}
