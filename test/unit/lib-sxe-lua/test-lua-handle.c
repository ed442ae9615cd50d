/* SPDX-License-Identifier: MIT
 *
 * Handles: objects of C as light userdata.
 */
#include "lua-state.h"

#include "test-main.h"

static uint32_t seen_generation;
static int value = 5;

static int
double_it(lua_State *L)
{
    uint32_t index = sxe__lua_check_handle(L, 1, SXE__LUA_BUF, &seen_generation);

    lua_pushinteger(L, 2 * (lua_Integer)index);
    return 1;
}

static int
get(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    if (strcmp(name, "place") != 0)
        return 0;
    lua_pushinteger(L, (lua_Integer)index * 1000 + generation + value);
    return 1;
}

static int
set(lua_State *L, uint32_t index, uint32_t generation, const char *name)
{
    (void)index;
    (void)generation;
    if (strcmp(name, "place") != 0)
        return 0;
    value = (int)luaL_checkinteger(L, 3);
    return 1;
}

static int
length(lua_State *L, uint32_t index, uint32_t generation)
{
    lua_pushinteger(L, (lua_Integer)index + generation);
    return 1;
}

static int
call(lua_State *L, uint32_t index, uint32_t generation)
{
    lua_pushinteger(L, (lua_Integer)index + generation + luaL_checkinteger(L, 2));
    return 1;
}

static const luaL_Reg methods[] = {{"double", double_it}, {NULL, NULL}};
static void
close_it(lua_State *L, uint32_t index, uint32_t generation)
{
    (void)L;
    value = (int)(index + generation);
}

static const struct sxe__lua_class_spec full = {"my.full", methods, get,     set,
                                                length,    call,    close_it};
static const struct sxe__lua_class_spec bare = {"my.bare", NULL, NULL, NULL, NULL, NULL, NULL};

/* full(index, generation): a handle with all parts; bare(index): one without a generation. */
static int
make_full(lua_State *L)
{
    sxe__lua_push_handle(L, SXE__LUA_BUF, (uint32_t)luaL_checkinteger(L, 1),
                         (uint32_t)luaL_optinteger(L, 2, 1));
    return 1;
}

static int
make_bare(lua_State *L)
{
    sxe__lua_push_handle(L, SXE__LUA_CONN, (uint32_t)luaL_checkinteger(L, 1), 1);
    return 1;
}

/* Push a handle of a class that was not registered, or that does not exist. */
static int
make_unknown(lua_State *L)
{
    sxe__lua_push_handle(L, (enum sxe__lua_class)luaL_checkinteger(L, 1), 1, 1);
    return 1;
}

/* owner(index): an owner of what full(index) returns; without an index, an owner of nothing. */
static int
make_owner(lua_State *L)
{
    void **owner = sxe__lua_new_owner(L);

    if (lua_isinteger(L, 1))
        *owner = sxe__lua_handle_of(SXE__LUA_BUF, (uint32_t)lua_tointeger(L, 1), 1);
    return 1;
}

static int
foreign(lua_State *L)
{
    static int variable;

    lua_pushlightuserdata(L, luaL_optinteger(L, 1, 0) != 0 ? NULL : (void *)&variable);
    return 1;
}

static void
start(void)
{
    state_start();
    sxe__lua_register_class(lua->main, SXE__LUA_BUF, &full);
    sxe__lua_register_class(lua->main, SXE__LUA_CONN, &bare);
    add_global("full", make_full);
    add_global("make_bare", make_bare);
    add_global("make_unknown", make_unknown);
    add_global("foreign", foreign);
    add_global("owner", make_owner);
    add_global("double", double_it);
    run_script("bare = make_bare(7)");
}

START_TEST(a_handle_has_methods_and_properties)
{
    start();
    run_script("local h = full(21, 3)\n"
               "assert(h:double() == 42 and h.place == 21008 and #h == 24 and h(100) == 124)\n"
               "h.place = 6 assert(h.place == 21009)\n"
               "assert(tostring(h) == 'my.full 21' and tostring(bare) == 'my.bare 7')");
    ck_assert_uint_eq(seen_generation, 3);
    state_stop();
}
END_TEST

START_TEST(a_variable_to_close_closes_what_can_be_closed)
{
    start();
    run_script("do local x <close> = full(7, 2) end assert(full(0, 0).place == 9)\n"
               "local ok, why = pcall(function() local x <close> = full(1, 2) error 'a' end)\n"
               "assert(why:find 'a$' and full(0, 0).place == 3)");
    fails_with("local x <close> = make_bare(1)",
               "a my.bare cannot be closed: declare it without <close>");
    fails_with("local x <close> = make_unknown(200)",
               "a userdata cannot be closed: declare it without <close>");
    state_stop();
}
END_TEST

START_TEST(an_owner_is_a_handle_that_closes_as_garbage)
{
    start();
    run_script("local o = owner(21)\n"
               "assert(o:double() == 42 and double(o) == 42 and o.place == 21006 and #o == 22)\n"
               "assert(tostring(o) == 'my.full 21' and o(100) == 122 and type(o) == 'userdata')\n"
               "o.place = 6 assert(getmetatable(o) == false)\n"
               "o = nil collectgarbage() assert(full(0, 0).place == 22)\n"
               "do local x <close> = owner(7) end assert(full(0, 0).place == 8)\n"
               "kept = owner(9) owner()");
    fails_with("double(owner())", "my.full expected, got userdata");
    fails_with("double(io.stdout)", "my.full expected, got userdata");
    fails_with("return owner().x", "attempt to index a userdata value");
    run_script("assert(tostring(owner()):find '^userdata: ')");
    state_stop();
    ck_assert_int_eq(value, 8);
}
END_TEST

START_TEST(handles_are_equal_if_they_are_the_same)
{
    start();
    run_script(
        "assert(full(1, 2) == full(1, 2) and full(1, 2) ~= full(1, 3) and full(1) ~= full(2))\n"
        "assert(full(0, 0) == full(0, 1 << 24)) local t = {[full(1)] = 1} assert(t[full(1)])\n"
        "assert(full(4294967295):double() == 8589934590)");
    state_stop();
}
END_TEST

START_TEST(what_a_handle_does_not_have_is_an_error)
{
    static const char *const scripts[][2] = {
        {"return full(1).plaec", "test:1: my.full has no field 'plaec'"},
        {"return full(1)[5]", "my.full has no field '5'"},
        {"full(1).plaec = 1", "test:1: my.full has no field 'plaec' to assign"},
        {"full(1)[{}] = 1", "my.full has no field 'table: "},
        {"return bare.x", "my.bare has no field 'x'"},
        {"bare.x = 1", "my.bare has no field 'x' to assign"},
        {"return #bare", "attempt to get length of a my.bare value"},
        {"return bare()", "attempt to call a my.bare value"},
    };

    start();
    fails_with(scripts[_i][0], scripts[_i][1]);
    state_stop();
}
END_TEST

START_TEST(another_value_is_refused_by_its_name)
{
    start();
    fails_with("double(nil)", "bad argument #1 to 'double' (my.full expected, got nil)");
    fails_with("double(bare)", "my.full expected, got my.bare");
    fails_with("double(foreign())", "my.full expected, got userdata");
    fails_with("double()", "my.full expected, got no value");
    state_stop();
}
END_TEST

START_TEST(pointers_of_others_are_no_handles)
{
    start();
    run_script(
        "local p = foreign() assert(tostring(p):match '^userdata: ')\n"
        "assert(p == foreign() and p ~= foreign(1) and getmetatable(p) == false)\n"
        "assert(not pcall(function() return p.x end)) assert(not pcall(function() p.x = 1 end))\n"
        "assert(not pcall(function() return #p end)) assert(not pcall(p))\n"
        "assert(not pcall(debug.getmetatable(p).__index, {}, 'x'))\n"
        "for _, class in ipairs{0, 200} do\n"
        "    assert(not pcall(function() return make_unknown(class).x end))\n"
        "end");
    state_stop();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-handle");
    TCase *tcase = tcase_create("handle");

    tcase_add_test(tcase, a_handle_has_methods_and_properties);
    tcase_add_test(tcase, a_variable_to_close_closes_what_can_be_closed);
    tcase_add_test(tcase, an_owner_is_a_handle_that_closes_as_garbage);
    tcase_add_test(tcase, handles_are_equal_if_they_are_the_same);
    tcase_add_loop_test(tcase, what_a_handle_does_not_have_is_an_error, 0, 8);
    tcase_add_test(tcase, another_value_is_refused_by_its_name);
    tcase_add_test(tcase, pointers_of_others_are_no_handles);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
