/* SPDX-License-Identifier: MIT
 *
 * sxe-lua --coverage: the lines of scripts that ran, in the format of lcov.
 */
#include "run-lua.h"

#include <dlfcn.h>
#include <errno.h>
#include <lauxlib.h>

#include "lines.h"

/* Functions of libc and of Lua that fail at the nth call from now on; 0: never. */
static unsigned fail_stream;
static unsigned fail_state;

static void
find_real(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(function, &found, sizeof(found));
}

FILE *
open_memstream(char **text, size_t *length)
{
    FILE *(*real)(char **, size_t *);

    find_real("open_memstream", &real);
    return fail_stream > 0 && --fail_stream == 0 ? NULL : real(text, length);
}

lua_State *
luaL_newstate(void)
{
    lua_State *(*real)(void);

    find_real("luaL_newstate", &real);
    return fail_state > 0 && --fail_state == 0 ? NULL : real();
}

/* ---- Lines that can run ---- */

enum { LINES_MAX = 2000 };

static bool lines[LINES_MAX];

static void
take_line(void *user, unsigned line)
{
    ck_assert_ptr_eq(user, lines);
    ck_assert_uint_lt(line, LINES_MAX);
    lines[line] = true;
}

/* Compare with the lines that Lua reports for the main chunk and the functions that it returns. */
static void
compare_with_lua(const char *path)
{
    lua_State *L = luaL_newstate();
    bool expected[LINES_MAX] = {false};

    ck_assert_int_eq(luaL_loadfile(L, path), LUA_OK);
    lua_pushvalue(L, -1);
    ck_assert_int_eq(lua_pcall(L, 0, LUA_MULTRET, 0), LUA_OK);
    while (lua_gettop(L) > 0) {
        lua_Debug ar;

        lua_getinfo(L, ">L", &ar);
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1))
            expected[lua_tointeger(L, -2)] = true;
        lua_pop(L, 1);
    }
    lua_close(L);
    for (int i = 0; i < LINES_MAX; i++)
        ck_assert_msg(lines[i] == expected[i], "line %d", i);
}

START_TEST(lines_are_those_that_lua_has)
{
    FILE *file = fopen("a.lua", "we");

    fputs("#!/usr/bin/sxe-lua\n"
          "local a, b, c = 1, 2.5, 'text'\n"
          "local long = '" /* longer than Lua's short strings */,
          file);
    for (int i = 0; i < 300; i++)
        putc('x', file);
    fputs("'\n"
          "local function first(x, ...)\n"
          "    -- nothing\n"
          "    if x then\n"
          "        return a, true, false, nil\n"
          "    end\n",
          file);
    for (int i = 0; i < 200; i++)
        putc('\n', file); /* more lines than one step of Lua's line table can express */
    fputs("    return long .. x,\n"
          "        12345678901, 1e300\n"
          "end\n"
          "local function second()\n"
          "    for i = 1, 10 do\n"
          "        b = b + i\n"
          "    end\n",
          file);
    for (int i = 0; i < 400; i++)
        fputs("    b = b + 1\n", file);
    fputs("end\n"
          "return first, second\n",
          file);
    fclose(file);
    ck_assert(lines_of_file("a.lua", take_line, lines));
    compare_with_lua("a.lua");
}
END_TEST

START_TEST(lines_of_what_cannot_be_compiled_are_unknown)
{
    write_file("bad.lua", "x =");
    ck_assert(!lines_of_file("bad.lua", take_line, lines));
    ck_assert(!lines_of_file("nowhere.lua", take_line, lines));
    write_file("good.lua", "x = 1");
    fail_stream = 1;
    ck_assert(!lines_of_file("good.lua", take_line, lines));
    fail_state = 1;
    ck_assert(!lines_of_file("good.lua", take_line, lines));
    ck_assert(lines_of_file("good.lua", take_line, lines));
}
END_TEST

/* ---- The records in lcov's format ---- */

#define SCRIPT                          \
    "local task = require 'sxe.task'\n" \
    "local mod = require 'mod'\n"       \
    "local function never()\n"          \
    "    return function()\n"           \
    "        return 1\n"                \
    "    end\n"                         \
    "end\n"                             \
    "task.start(function()\n"           \
    "    task.sleep(0)\n"               \
    "    coroutine.wrap(function()\n"   \
    "        coroutine.yield()\n"       \
    "    end)()\n"                      \
    "end):join()\n"                     \
    "for i = 1, 3 do\n"                 \
    "    mod.f(i)\n"                    \
    "end\n"                             \
    "load('x = 1')()\n"

/* A function counts at its last line, where it is made; a call of several lines returns to its
 * last. */
#define RECORD_OF_SCRIPT                                                                  \
    "DA:1,1\nDA:2,1\nDA:5,0\nDA:6,0\nDA:7,1\nDA:8,3\nDA:9,1\nDA:10,2\nDA:11,1\nDA:12,1\n" \
    "DA:13,3\nDA:14,4\nDA:15,3\nDA:17,1\nLF:14\nLH:12\nend_of_record\n"

#define RECORD_OF_MODULE "DA:1,1\nDA:2,4\nLF:2\nLH:2\nend_of_record\n"

static void
write_script(void)
{
    write_file("a.lua", SCRIPT);
    write_file("mod.lua", "return {f = function(i)\n    return i end}\n");
}

static char *
record_of(const char *name, const char *record)
{
    static char text[2][2048];
    static unsigned turn;
    char *at = text[turn++ % 2];

    snprintf(at, sizeof(text[0]), "TN:\nSF:%s/%s\n%s", directory, name, record);
    return at;
}

START_TEST(what_ran_is_counted_and_what_did_not_is_named)
{
    write_script();
    RUN_LUA("--coverage=lua.info", "a.lua");
    ended(0, "", "");
    char *text = (char *)(uintptr_t)read_file("lua.info");
    /* Lua 5.4.7 counts a line once more if a call returns to it. */
    char *again = strstr(text, "DA:12,2\n");
    if (again != NULL)
        again[6] = '1';
    check_has(text, record_of("a.lua", RECORD_OF_SCRIPT));
    check_has(text, record_of("mod.lua", RECORD_OF_MODULE));
    ck_assert_uint_eq(strlen(text), strlen(record_of("a.lua", RECORD_OF_SCRIPT)) +
                                        strlen(record_of("mod.lua", RECORD_OF_MODULE)));
}
END_TEST

START_TEST(a_second_run_is_added)
{
    size_t length;

    write_script();
    RUN_LUA("--coverage", "lua.info", "a.lua");
    length = strlen(read_file("lua.info"));
    RUN_LUA("--coverage", "lua.info", "a.lua");
    ck_assert_uint_eq(strlen(read_file("lua.info")), 2 * length);
}
END_TEST

START_TEST(it_is_written_however_the_script_ends)
{
    static const char *const ends[] = {"os.exit(5)", "error 'oops'",
                                       "require 'sxe.task'.sleep(0)\n"
                                       "io.popen('kill -TERM $PPID'):close()\n"
                                       "require 'sxe.task'.sleep(1000)"};
    const int statuses[] = {5, 1, 128 + SIGTERM};

    write_file("a.lua", ends[_i]);
    RUN_LUA("--coverage=lua.info", "a.lua");
    ck_assert_int_eq(ran.status, statuses[_i]);
    check_has(read_file("lua.info"), "DA:1,1\n");
}
END_TEST

START_TEST(lines_far_down_are_counted)
{
    char text[2048];

    memset(text, '\n', 1500);
    snprintf(text + 1500, sizeof(text) - 1500, "local x = 1\n");
    write_file("a.lua", text);
    RUN_LUA("--coverage=lua.info", "a.lua");
    ended(0, "", "");
    check_has(read_file("lua.info"), "DA:1501,1\nLF:1\nLH:1\n");
}
END_TEST

START_TEST(a_script_that_computes_for_long_is_counted_to_its_end)
{
    write_file("a.lua", "local function f()\n"
                        "    local x = 0\n"
                        "    for i = 1, 2000000 do x = x + i end\n"
                        "    return x\n"
                        "end\n"
                        "coroutine.wrap(f)()\n"
                        "f()\n"
                        "f()\n");
    RUN_LUA("--coverage=lua.info", "a.lua");
    ck_assert_int_eq(ran.status, 0);
    const char *text = read_file("lua.info");
    check_has(text, "DA:4,3\n");
    check_has(text, "DA:8,1\n");
}
END_TEST

/* The script's file has changed or is gone when the script ends. */
START_TEST(a_file_that_cannot_be_read_any_more_is_left_out)
{
    static const char *const ends[] = {"os.remove('a.lua')",
                                       "io.open('a.lua', 'w'):write('x = '):close()"};

    write_file("a.lua", ends[_i]);
    RUN_LUA("--coverage=lua.info", "a.lua");
    ended(0, "", "");
    ck_assert_str_eq(read_file("lua.info"), "");
}
END_TEST

/* ---- Failing calls ---- */

START_TEST(a_file_that_cannot_be_written_is_named)
{
    write_file("a.lua", "local x = 1");
    RUN_LUA("--coverage=nowhere/lua.info", "a.lua");
    ended(
        1, "",
        "sxe-lua: the coverage cannot be written to 'nowhere/lua.info' (--coverage): No such file "
        "or directory\n");
    RUN_LUA("--coverage=/dev/full", "a.lua");
    ended(1, "", "'/dev/full' (--coverage): No space left on device\n");
}
END_TEST

static unsigned sweep_nth;

static void
fail_nth(void)
{
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_REALLOC, FAKE_STRDUP};

    fake_os_sweep(kinds, sizeof(kinds) / sizeof(kinds[0]), sweep_nth, false, ENOMEM);
}

/* libev ends the process if it has no memory; the calls before that are tested. */
START_TEST(without_memory_it_is_not_written)
{
    unsigned refused = 0;

    write_script();
    ran.prepare = fail_nth;
    do {
        sweep_nth++;
        unlink("lua.info");
        RUN_LUA("--coverage=lua.info", "a.lua");
        if (strstr(ran.errors, "(--coverage): Cannot allocate memory") != NULL) {
            ck_assert_int_eq(ran.status, 1);
            ck_assert_int_lt(access("lua.info", F_OK), 0);
            refused++;
        }
    } while (ran.injected > 0 || ran.status < 0);
    ck_assert_uint_ge(refused, 4);
}
END_TEST

static void
fail_the_stream(void)
{
    fail_stream = 1;
}

static void
fail_a_realloc(void)
{
    fake_os_fail(FAKE_REALLOC, sweep_nth, 1, ENOMEM);
}

/* The last line did not run, and has a number beyond those that there was memory for. */
START_TEST(without_memory_for_lines_that_did_not_run_it_is_not_written)
{
    char text[1024];
    bool is_refused = false;

    memset(text, '\n', sizeof(text));
    memcpy(text, "if arg then return end", 22);
    snprintf(text + 1000, sizeof(text) - 1000, "local x = 1\n");
    write_file("a.lua", text);
    ran.prepare = fail_a_realloc;
    do {
        sweep_nth++;
        RUN_LUA("--coverage=lua.info", "a.lua");
        is_refused |= strstr(ran.errors, "(--coverage): Cannot allocate memory") != NULL;
    } while (ran.injected > 0 || ran.status < 0);
    ck_assert(is_refused);
    check_has(read_file("lua.info"), "DA:1,1\nDA:979,0\n");
}
END_TEST

START_TEST(without_memory_for_the_text_it_is_not_written)
{
    write_file("a.lua", "local x = 1");
    ran.prepare = fail_the_stream;
    RUN_LUA("--coverage=lua.info", "a.lua");
    ended(1, "", "(--coverage): Cannot allocate memory");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("lua-app-coverage");
    TCase *c = tcase_create("all");

    tcase_add_checked_fixture(c, make_directory, remove_directory);
    tcase_add_test(c, lines_are_those_that_lua_has);
    tcase_add_test(c, lines_of_what_cannot_be_compiled_are_unknown);
    tcase_add_test(c, what_ran_is_counted_and_what_did_not_is_named);
    tcase_add_test(c, a_second_run_is_added);
    tcase_add_loop_test(c, it_is_written_however_the_script_ends, 0, 3);
    tcase_add_test(c, lines_far_down_are_counted);
    tcase_add_test(c, a_script_that_computes_for_long_is_counted_to_its_end);
    tcase_add_loop_test(c, a_file_that_cannot_be_read_any_more_is_left_out, 0, 2);
    tcase_add_test(c, a_file_that_cannot_be_written_is_named);
    tcase_add_test(c, without_memory_it_is_not_written);
    tcase_add_test(c, without_memory_for_lines_that_did_not_run_it_is_not_written);
    tcase_add_test(c, without_memory_for_the_text_it_is_not_written);
    suite_add_tcase(suite, c);
    return sxe_test_main(suite);
}
