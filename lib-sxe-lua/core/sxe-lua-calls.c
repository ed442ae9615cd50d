/* SPDX-License-Identifier: MIT
 *
 * Tells a profiler which calls a script is in. The profiler asks in a signal handler, while Lua may
 * be changing its list of calls. So the answer comes from the watchdog's hook, at the next
 * instruction or at the return from the function of C that runs: until then the list is that of the
 * moment when the signal came. If the script waits, ends, or resumes a coroutine first, the answer
 * comes then.
 */
#include "sxe-lua-core-private.h"

#include <stdio.h>

enum { CALLS_MAX = 64, SIZE = 8192, ROOM_MIN = 160 };

struct calls {
    size_t used;
    char room[SIZE];
};

static const char *
name_of_call(const lua_Debug *ar)
{
    if (ar->name != NULL)
        return ar->name;
    if (*ar->what == 'C')
        return "function of C";
    return *ar->what == 'm' ? "main chunk" : "function";
}

/* Add the calls of one coroutine, the innermost first. */
static void
add_calls(struct calls *calls, lua_State *L)
{
    lua_Debug ar;

    for (int level = 0; level < CALLS_MAX && lua_getstack(L, level, &ar); level++) {
        int length;

        if (SIZE - calls->used < ROOM_MIN)
            return;
        lua_getinfo(L, "nS", &ar);
        if (ar.linedefined < 0)
            length =
                snprintf(calls->room + calls->used, ROOM_MIN, "%.60s\t[C]\n", name_of_call(&ar));
        else
            length =
                snprintf(calls->room + calls->used, ROOM_MIN, "%.60s\t%s:%d\n", name_of_call(&ar),
                         ar.short_src, ar.linedefined > 0 ? ar.linedefined : 1);
        calls->used += (size_t)length;
    }
}

bool
sxe_lua_ask_for_calls(void (*take)(const char *calls, size_t length))
{
    struct sxe_lua *lua = sxe__lua_current();

    if (lua == NULL || lua->watch.running == NULL)
        return false;
    lua->watch.take_calls = take;
    sxe__lua_watch_set_hook(&lua->watch, lua->watch.running);
    return true;
}

void
sxe__lua_tell_calls(struct sxe_lua *lua, lua_State *L)
{
    void (*take)(const char *, size_t) = lua->watch.take_calls;
    const struct sxe__lua_level *level = lua->level;
    struct calls calls;

    calls.used = 0;
    lua->watch.take_calls = NULL;
    for (; L != NULL; L = level->parent, level = level->below) {
        add_calls(&calls, L);
        if (level == NULL || level->coroutine != L)
            break;
    }
    take(calls.room, calls.used);
}
