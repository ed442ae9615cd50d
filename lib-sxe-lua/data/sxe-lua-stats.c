/* SPDX-License-Identifier: MIT
 *
 * Named counters, in groups: groups of the script, and groups of the library. A group is a handle,
 * and its counters are the handle's properties.
 *
 *     group: | name | number | values --> int64_t[number]
 *                              names are strings of the registry, or C's
 */
#include "sxe-lua-stats.h"

#include <string.h>

#include "sxe-lua-clock.h"
#include "sxe-lua-private.h"
#include "sxe-utf8.h"

enum { GROUPS_MAX = 64, NAME_SIZE = 32 };

struct group {
    char name[NAME_SIZE];
    const char *const *names;
    int64_t *values;
    unsigned number;
    uint64_t since_ns;
};

/* The groups of counters of this thread's state; forget_groups empties the table when the state
 * ends. */
static _Thread_local struct {
    const lua_State *main; /* the state that owns the groups; NULL: no state does */
    struct group groups[GROUPS_MAX];
    unsigned number;
} stats;

static struct group *
find_counter(uint32_t index, const char *name, unsigned *which)
{
    struct group *group = &stats.groups[index];

    for (*which = 0; *which < group->number; (*which)++) {
        if (strcmp(group->names[*which], name) == 0)
            return group;
    }
    return NULL;
}

static int
get_counter(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    unsigned which;
    const struct group *group = find_counter(index, name, &which);

    SXE_UNUSED_PARAMETER(generation);
    if (group == NULL)
        return 0;
    lua_pushinteger(L, group->values[which]);
    return 1;
}

static int
set_counter(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    unsigned which;
    struct group *group = find_counter(index, name, &which);

    SXE_UNUSED_PARAMETER(generation);
    if (group == NULL)
        return 0;
    group->values[which] = luaL_checkinteger(L, 3);
    return 1;
}

/* ---- Methods ---- */

static struct group *
check_group(lua_State *L)
{
    uint32_t generation;

    return &stats.groups[sxe__lua_check_handle(L, 1, SXE__LUA_STAT, &generation)];
}

/* Add or subtract; a counter stays at its limit, because a counter that wraps around would be
 * wrong. */
static int64_t
sum_at_limit(int64_t value, int64_t by, bool is_less)
{
    int64_t result;

    if (!(is_less ? __builtin_sub_overflow(value, by, &result)
                  : __builtin_add_overflow(value, by, &result)))
        return result;
    return value < 0 ? INT64_MIN : INT64_MAX;
}

static int
change_counter(lua_State *L, bool is_less)
{
    uint32_t generation;
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_STAT, &generation);
    unsigned which;
    struct group *group = find_counter(index, sxe__lua_check_text(L, 2), &which);

    if (group == NULL)
        return luaL_argerror(L, 2, "no such counter");
    group->values[which] = sum_at_limit(group->values[which], luaL_optinteger(L, 3, 1), is_less);
    lua_pushinteger(L, group->values[which]);
    return 1;
}

/* stats:inc(name [, by]): the counter's new value */
static int
l_stats_inc(lua_State *L)
{
    return change_counter(L, false);
}

static int
l_stats_dec(lua_State *L)
{
    return change_counter(L, true);
}

/* stats:reset(): set all counters and the uptime to 0 */
static int
reset_counters(lua_State *L)
{
    struct group *group = check_group(L);

    memset(group->values, 0, group->number * sizeof(group->values[0]));
    group->since_ns = sxe_lua_get_clock()->now_ns();
    return 0;
}

/* stats:uptime(): seconds since the group was made or reset */
static int
l_stats_uptime(lua_State *L)
{
    const struct group *group = check_group(L);

    lua_pushnumber(L, (double)(sxe_lua_get_clock()->now_ns() - group->since_ns) / 1e9);
    return 1;
}

/* stats(): a table of all counters */
static int
copy_counters(lua_State *L, uint32_t index, uint32_t generation)
{
    const struct group *group = &stats.groups[index];

    SXE_UNUSED_PARAMETER(generation);
    lua_createtable(L, 0, (int)group->number);
    for (unsigned i = 0; i < group->number; i++) {
        lua_pushinteger(L, group->values[i]);
        lua_setfield(L, -2, group->names[i]);
    }
    return 1;
}

static int
forget_groups(lua_State *L)
{
    SXE_UNUSED_PARAMETER(L);
    stats.main = NULL;
    stats.number = 0;
    return 0;
}

static void
register_class(lua_State *L)
{
    static const luaL_Reg methods[] = {{"inc", l_stats_inc},
                                       {"dec", l_stats_dec},
                                       {"reset", reset_counters},
                                       {"uptime", l_stats_uptime},
                                       {NULL, NULL}};
    static const struct sxe__lua_class_spec spec = {.name = "sxe.stats",
                                                    .methods = methods,
                                                    .get = get_counter,
                                                    .set = set_counter,
                                                    .call = copy_counters};

    if (stats.main != NULL)
        return;
    sxe__lua_register_class(L, SXE__LUA_STAT, &spec);
    sxe__lua_at_end(L, forget_groups);
    stats.main = sxe__lua_main(sxe__lua_current());
}

static void
check_group_room(lua_State *L)
{
    if (stats.number == GROUPS_MAX)
        luaL_error(L, "there are %d groups of counters already", GROUPS_MAX);
}

static void
check_new_group(lua_State *L, const char *name)
{
    for (unsigned i = 0; i < stats.number; i++) {
        if (strcmp(stats.groups[i].name, name) == 0)
            luaL_error(L, "stats: there is a group '%s' already: give this one another name", name);
    }
}

void
sxe__lua_stats_push(lua_State *L, const char *name, const char *const *names, int64_t *values,
                    unsigned number)
{
    struct group *group;

    register_class(L);
    check_group_room(L);
    check_new_group(L, name);
    group = &stats.groups[stats.number];
    *group = (struct group){.names = names,
                            .values = values,
                            .number = number,
                            .since_ns = sxe_lua_get_clock()->now_ns()};
    snprintf(group->name, NAME_SIZE, "%s", name);
    sxe__lua_push_handle(L, SXE__LUA_STAT, stats.number++, 0);
}

/* ---- The module: stats{"a", "b", name = "group"} ---- */

/* Names become keys of a JSON object, so they have to be UTF-8. */
static const char *
check_name(lua_State *L, const char *what)
{
    const char *name = sxe__lua_text(L, -1);
    const char *at = name == NULL ? "" : name;
    uint32_t character;

    luaL_argcheck(L, name != NULL, 2, "names expected");
    for (size_t length; *at != '\0'; at += length) {
        length = sxe_utf8_decode(&character, (const unsigned char *)at, 4);
        if (length == 0)
            luaL_error(L, "stats: the name of a %s is not UTF-8", what);
    }
    return name;
}

static void
check_new_counter(lua_State *L, const char *const *names, unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        if (strcmp(names[i], names[number]) == 0)
            luaL_error(L, "stats: the counter '%s' is there twice", names[i]);
    }
}

/* Push and return the name of the group. */
static const char *
check_group_name(lua_State *L)
{
    const char *name = "script";

    if (lua_getfield(L, 2, "name") != LUA_TNIL) {
        (void)sxe__lua_option_text(L, "stats", "name");
        name = check_name(L, "group");
    }
    if (strlen(name) >= NAME_SIZE)
        luaL_error(L, "stats: the name of a group has %d bytes at most", NAME_SIZE - 1);
    check_new_group(L, name);
    return name;
}

static int
new_group(lua_State *L)
{
    static const char *const options[] = {"name", NULL};
    unsigned number;
    const char **names;
    int64_t *values;
    const char *name;

    sxe__lua_option_names_of_list(L, 2, options, "stats");
    lua_settop(L, 2);
    check_group_room(L);
    number = (unsigned)lua_rawlen(L, 2);
    luaL_argcheck(L, number > 0 && number <= 1000, 2, "a list of 1 to 1000 names expected");
    name = check_group_name(L);
    names = lua_newuserdatauv(L, number * (sizeof(*names) + sizeof(*values)), 1);
    values = (int64_t *)(void *)(names + number);
    memset(values, 0, number * sizeof(*values));
    lua_createtable(L, (int)number, 0);
    for (unsigned i = 0; i < number; i++) {
        lua_rawgeti(L, 2, i + 1);
        names[i] = check_name(L, "counter");
        check_new_counter(L, names, i);
        lua_rawseti(L, 5, i + 1);
    }
    lua_setiuservalue(L, 4, 1);
    luaL_ref(L, LUA_REGISTRYINDEX);
    sxe__lua_stats_push(L, name, names, values, number);
    return 1;
}

int
sxe__lua_open_stats(lua_State *L)
{
    register_class(L);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, new_group);
    lua_setfield(L, -2, "__call");
    lua_setmetatable(L, -2);
    return 1;
}

/* ---- For C ---- */

void
sxe_lua_each_stat(struct sxe_lua *lua,
                  void (*each)(void *user, const char *group, const char *name, int64_t value),
                  void *user)
{
    if (stats.main != sxe__lua_main(lua))
        return;
    for (unsigned i = 0; i < stats.number; i++) {
        const struct group *group = &stats.groups[i];

        for (unsigned n = 0; n < group->number; n++)
            each(user, group->name, group->names[n], group->values[n]);
    }
}
