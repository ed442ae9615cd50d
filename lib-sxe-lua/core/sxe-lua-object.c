/* SPDX-License-Identifier: MIT
 *
 * What: the object of a task, a userdata that outlives the task: what the task returned, or its
 * error, is kept there for those who join it.
 */
#include "sxe-lua-core-private.h"
#include "sxe-lua-task-private.h"

#include <string.h>

struct sxe__lua_object *
sxe__lua_object_push_new(lua_State *L)
{
    struct sxe__lua_object *object =
        lua_newuserdatauv(L, sizeof(*object), SXE__LUA_TASK_USER_VALUES);

    *object = (struct sxe__lua_object){.outcome = SXE__LUA_ALIVE};
    luaL_setmetatable(L, SXE__LUA_TASK_CLASS);
    return object;
}

void
sxe__lua_object_attach(lua_State *L, struct sxe__lua_object *object, uint32_t index)
{
    object->task = sxe__lua_task_handle(index);
    sxe__lua_task_at(index)->object = object;
    sxe__lua_push_anchors(L);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, sxe__lua_anchor(index) + 1);
    lua_pop(L, 1);
}

void
sxe__lua_object_push(lua_State *L, uint32_t index)
{
    if (sxe__lua_task_at(index)->object == NULL) {
        struct sxe__lua_object *object = sxe__lua_object_push_new(L);

        if (sxe__lua_task_at(index)->object == NULL) {
            sxe__lua_object_attach(L, object, index);
            return;
        }
        lua_pop(L, 1); /* a finalizer that ran meanwhile made the object already */
    }
    sxe__lua_push_anchors(L);
    lua_rawgeti(L, -1, sxe__lua_anchor(index) + 1);
    lua_remove(L, -2);
}

/* Cut the traceback off an error that is a text: the log has the traceback. */
static void
cut_traceback(lua_State *L)
{
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    const char *trace = strstr(text, "\nstack traceback:\n");

    if (trace == NULL)
        return;
    lua_pushlstring(L, text, (size_t)(trace - text));
    lua_remove(L, -2);
}

static void
pack_results(lua_State *L, int first, int count)
{
    lua_createtable(L, count, 0);
    lua_insert(L, first);
    for (int i = count; i > 0; i--)
        lua_rawseti(L, first, i);
}

/* Keep the end of a task in its object. Arguments: the task's index, 1 if the task failed, then its
 * results or the error. */
static int
keep_task_results(lua_State *L)
{
    uint32_t index = (uint32_t)lua_tointeger(L, 1);
    const int results = lua_gettop(L) - 2;

    if (lua_toboolean(L, 2))
        cut_traceback(L);
    if (results > 1)
        pack_results(L, 3, results);
    sxe__lua_object_push(L, index);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, SXE__LUA_TASK_RESULTS);
    sxe__lua_task_at(index)->object->results = results;
    return 0;
}

static bool
keep_results(uint32_t index, lua_State *L, bool is_failed, int results)
{
    if (lua_checkstack(L, results + 6)) {
        lua_pushcfunction(L, keep_task_results);
        lua_pushinteger(L, index);
        lua_pushboolean(L, is_failed);
        for (int i = 0; i < results; i++)
            lua_pushvalue(L, -3 - results);
        if (lua_pcall(L, 2 + results, 0, 0) == LUA_OK)
            return true;
        lua_pop(L, 1);
    }
    return false;
}

void
sxe__lua_object_end(uint32_t index, lua_State *L, int status, int results)
{
    struct sxe__lua_object *object = sxe__lua_task_at(index)->object;
    enum sxe__lua_outcome outcome = status == LUA_OK      ? SXE__LUA_DONE
                                    : status == LUA_YIELD ? SXE__LUA_WAS_CANCELLED
                                                          : SXE__LUA_FAILED;

    if (results > 0 && !keep_results(index, L, outcome == SXE__LUA_FAILED, results)) {
        outcome = SXE__LUA_FAILED;
        object->results = 0;
    }
    object->outcome = outcome;
    sxe__lua_wake_all(&object->joiners);
}

void
sxe__lua_object_receive(struct sxe__lua_object *object)
{
    object->is_received = true;
    if (object->is_counted)
        sxe__lua_current()->errors--;
    object->is_counted = false;
}

void
sxe__lua_object_release(uint32_t index, lua_State *L, bool is_logged)
{
    struct sxe__lua_object *object = sxe__lua_task_at(index)->object;

    object->is_counted = is_logged;
    if (object->is_received)
        sxe__lua_object_receive(object);
    sxe__lua_push_anchors(L);
    lua_pushboolean(L, false);
    lua_rawseti(L, -2, sxe__lua_anchor(index) + 1);
    lua_pop(L, 1);
}

bool
sxe__lua_object_push_on_cancel(lua_State *L, uint32_t index)
{
    sxe__lua_object_push(L, index);
    if (lua_getiuservalue(L, -1, SXE__LUA_TASK_ON_CANCEL) != LUA_TTABLE) {
        lua_pop(L, 2);
        return false;
    }
    lua_remove(L, -2);
    return true;
}
