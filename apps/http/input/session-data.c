/* SPDX-License-Identifier: MIT
 *
 * What: reads `data` of a scenario, which names the file of rows.
 */
#include <string.h>

#include "outputs.h"
#include "script-table.h"
#include "session-private.h"

const char *
load_session_push_path(lua_State *L, const struct load_script *script, const char *name)
{
    const char *path = script->options.path;
    const char *slash = strrchr(path, '/');
    const char *output;

    if (*name == '/' || slash == NULL) {
        lua_pushstring(L, name);
    } else {
        lua_pushlstring(L, path, (size_t)(slash + 1 - path));
        lua_pushstring(L, name);
        lua_concat(L, 2);
    }
    path = lua_tostring(L, -1);
    output = script->options.plan == NULL ? NULL : load_outputs_find(script->options.plan, path);
    if (output != NULL)
        luaL_error(L,
                   "the output '%s' would overwrite '%s', which is read; give it a file of its "
                   "own",
                   output, path);
    return path;
}

static enum load_order
read_order(lua_State *L, int table)
{
    static const char *const names[] = {"in turn", "once", "random"};
    const char *order = load_table_text(L, table, "data", "order");

    for (unsigned i = 0; order != NULL && i < SXE_COUNT(names); i++)
        if (strcmp(order, names[i]) == 0)
            return (enum load_order)i;
    if (order != NULL)
        luaL_error(L, "data.order is '%s'; it must be \"in turn\", \"once\" or \"random\"", order);
    return LOAD_IN_TURN;
}

static void
add_columns(struct load_sessions *sessions)
{
    const struct load_rows *rows = sessions->rows;

    for (unsigned i = 0; i < rows->columns; i++)
        sessions->names[sessions->names_number++] = (struct load_value_name){
            rows->text + rows->names[i].at, rows->names[i].length, (uint16_t)i};
}

void
load_session_read_data(lua_State *L, struct load_script *script)
{
    static const char *const names[] = {"file", "order", NULL};
    struct load_sessions *sessions = script->sessions;
    char why[LOAD_ROWS_WHY];
    int top = lua_gettop(L);
    const char *file;

    if (lua_getfield(L, 2, "data") == LUA_TNIL) {
        lua_settop(L, top);
        return;
    }
    if (lua_type(L, -1) == LUA_TSTRING) {
        file = load_table_text(L, 2, "the scenario", "data");
    } else {
        if (lua_type(L, -1) != LUA_TTABLE)
            luaL_error(L, "data must be the name of a file, or {file = \"users.csv\", order = "
                          "\"once\"}");
        load_table_refuse_others(L, top + 1, "data", names);
        file = load_table_text(L, top + 1, "data", "file");
        sessions->order = read_order(L, top + 1);
    }
    if (file == NULL)
        luaL_error(L, "data.file is missing: the name of a file of rows");
    sessions->data = file;
    sessions->rows = load_rows_read(load_session_push_path(L, script, file), why);
    if (sessions->rows == NULL)
        luaL_error(L, "data: %s", why);
    add_columns(sessions);
    lua_settop(L, top);
}
