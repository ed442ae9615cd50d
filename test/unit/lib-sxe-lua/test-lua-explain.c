/* SPDX-License-Identifier: MIT
 *
 * Explanations of errors for people, and the errors of its scripts that a program gets.
 */
#include "lua-state.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test-main.h"

static char directory[] = "/tmp/sxe-explain-XXXXXX";
static char told[4096];

static void
enter_directory(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
}

static void
leave_directory(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static void
write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "we");

    fputs(text, file);
    fclose(file);
}

static const char *
explain(const char *text)
{
    ck_assert_uint_eq(sxe_lua_explain(text, told, sizeof(told)), strlen(told));
    return told;
}

#define SOURCE "one\ntwo\n\tlocal max = x.y\nfour\nlocal y = a.y + y[\"y\"] + s:y()\nsix\n"

START_TEST(the_lines_around_it_are_shown_with_the_name_marked)
{
    write_file("a.lua", SOURCE);
    ck_assert_str_eq(explain("a.lua:3: attempt to index a nil value (global 'x')\n"
                             "stack traceback:\n\ta.lua:3: in main chunk"),
                     "error: attempt to index a nil value (global 'x')\n"
                     "    --> a.lua:3\n"
                     "     |\n"
                     "   1 | one\n"
                     "   2 | two\n"
                     "   3 | \tlocal max = x.y\n"
                     "     | \t            ^\n"
                     "   4 | four\n"
                     "   5 | local y = a.y + y[\"y\"] + s:y()\n"
                     "hint: it is nil there: test it first, or look where it should be set\n"
                     "stack traceback:\n"
                     "\ta.lua:3: in main chunk\n");
}
END_TEST

static const struct {
    const char *text;
    const char *part;
} marks[] = {
    {"a.lua:1: boom", "   1 | one\n     | ^^^\n   2 | two\n   3 |"},
    {"a.lua:1: boom 'two'", "     | ^^^\n"},
    {"a.lua:1: boom ''", "     | ^^^\n"},
    {"a.lua:1: boom 'one", "     | ^^^\n"},
    {"a.lua:3: 'ma'", "     | \t^^^^^^^^^^^^^^^\n"},
    {"a.lua:3: 'max'", "     | \t      ^^^\n"},
    {"a.lua:3: 'y'", "     | \t              ^\n"},
    {"a.lua:5: (field 'y')", "     |             ^\n"},
    {"a.lua:5: (method 'y')", "     |                            ^\n"},
    {"a.lua:5: (local 'y')", "     |       ^         ^  ^\n"},
    {"a.lua:5: 'y'", "     |       ^     ^   ^  ^       ^\n"},
    {"a.lua:6: (global 'six')", "     | ^^^\n"},
    {"a.lua:2: (upvalue 'two')", "     | ^^^\n"},
    {"b.lua:1: (local 'b')", "     |    ^\n"},
    {"a.lua:1: (field 'one')", "     | ^^^\n"},
    {"a.lua:6: boom", "   5 | local y = a.y + y[\"y\"] + s:y()\n   6 | six\n     | ^^^\n"},
    {"a.lua:7: boom", "   5 | local y = a.y + y[\"y\"] + s:y()\n   6 | six\n"},
    {"a.lua:70: boom", "error: boom\n    --> a.lua:70\n     |\n"},
};

START_TEST(what_is_marked_is_a_word_or_the_line)
{
    write_file("b.lua", "a..b\n");
    write_file("a.lua", SOURCE);
    ck_assert_msg(strstr(explain(marks[_i].text), marks[_i].part) != NULL, "%s", told);
}
END_TEST

START_TEST(a_line_that_is_very_long_is_cut_and_counted_once)
{
    FILE *file = fopen("a.lua", "we");

    fprintf(file, "%02000d\nb()\n", 1);
    fclose(file);
    ck_assert_ptr_nonnull(strstr(explain("a.lua:2: boom"), "0\n   2 | b()\n     | ^^^\n"));
    ck_assert_uint_lt(strlen(told), 700);
}
END_TEST

static const struct {
    const char *text;
    const char *told;
} places[] = {
    {"boom", "error: boom\n"},
    {"boom:12: x", "error: x\n    --> boom:12\n"},
    {"a: b:12: x", "error: x\n    --> a: b:12\n"},
    {"a:b: x", "error: a:b: x\n"},
    {"a:1", "error: a:1\n"},
    {"a:1:2", "error: a:1:2\n"},
    {"a\nb:1: c", "error: a\nb:1: c\n"},
    {"gone.lua:1: x", "error: x\n    --> gone.lua:1\n"},
    {"secret:1: x", "error: x\n    --> secret:1\n"},
    {"error loading module 'm' from file './m':\n\t./m:9: '=' expected",
     "error: '=' expected\n    --> ./m:9\n"},
    {"not enough memory", "error: not enough memory\nhint: keep less of it reachable, or allow it "
                          "more memory\n"},
};

START_TEST(a_place_is_found_and_only_lua_is_shown)
{
    write_file("secret", "secret\n");
    ck_assert_str_eq(explain(places[_i].text), places[_i].told);
}
END_TEST

START_TEST(a_path_that_is_too_long_is_no_place)
{
    char text[400];

    snprintf(text, sizeof(text), "%0300d:1: x", 1);
    ck_assert_ptr_null(strstr(explain(text), "-->"));
}
END_TEST

START_TEST(the_script_itself_is_shown_whatever_its_name)
{
    static char name[] = "script";
    char *argv[] = {name};

    write_file("script", "boom()\n");
    write_file("other", "boom()\n");
    state_start_with(&(struct sxe_lua_config){.tasks = 4, .argc = 1, .argv = argv});
    ck_assert_ptr_nonnull(strstr(explain("script:1: x"), "   1 | boom()\n"));
    ck_assert_ptr_null(strstr(explain("other:1: x"), "   1 | boom()\n"));
    state_stop();
}
END_TEST

START_TEST(what_does_not_fit_is_cut)
{
    static const char whole[] = "error: boom\n    --> b:1\n";

    for (size_t size = 1; size <= sizeof(whole); size++) {
        memset(told, 'x', sizeof(told));
        ck_assert_uint_eq(sxe_lua_explain("b:1: boom", told, size), size - 1);
        ck_assert_uint_eq(strlen(told), size - 1);
        ck_assert_int_eq(strncmp(told, whole, size - 1), 0);
        ck_assert_int_eq(told[size], 'x');
    }
    ck_assert_uint_eq(sxe_lua_explain("b:1: boom", NULL, 0), 0);
}
END_TEST

/* ---- Explanations for programs ---- */

static char heard[256];
static bool is_said;

static bool
hear(const char *where, const char *text)
{
    snprintf(heard, sizeof(heard), "%s|%s", where, text);
    return is_said;
}

START_TEST(a_program_gets_errors_before_the_log)
{
    is_said = _i == 0;
    state_start_with(&(struct sxe_lua_config){.tasks = 4, .on_error = hear});
    captured.number = 0;
    ck_assert_int_eq(load_text("error 'boom'"), -EINVAL);
    ck_assert_int_eq(strncmp(heard, "test|test:1: boom\nstack traceback:", 34), 0);
    ck_assert_uint_eq(captured.number > 0, _i);
    state_stop();
}
END_TEST

START_TEST(how_far_scripts_are_is_known)
{
    state_start();
    ck_assert_int_eq(sxe_lua_loaded(lua), 0);
    run_script("return 1");
    ck_assert_int_eq(sxe_lua_loaded(lua), 0);
    run_script("require 'sxe.task'.sleep(0)");
    ck_assert_int_eq(sxe_lua_loaded(lua), -EINPROGRESS);
    turn_tasks();
    turn_tasks();
    ck_assert_int_eq(sxe_lua_loaded(lua), 0);
    run_script("require 'sxe.task'.sleep(0) error 'late'");
    ck_assert_int_eq(sxe_lua_loaded(lua), -EINPROGRESS);
    turn_tasks();
    turn_tasks();
    ck_assert_int_eq(sxe_lua_loaded(lua), -EINVAL);
    state_stop();
}
END_TEST

static Suite *
explain_suite(void)
{
    Suite *suite = suite_create("lua explain");
    TCase *t = tcase_create("explain");

    tcase_add_checked_fixture(t, enter_directory, leave_directory);
    tcase_add_test(t, the_lines_around_it_are_shown_with_the_name_marked);
    tcase_add_loop_test(t, what_is_marked_is_a_word_or_the_line, 0,
                        (int)(sizeof(marks) / sizeof(marks[0])));
    tcase_add_test(t, a_line_that_is_very_long_is_cut_and_counted_once);
    tcase_add_loop_test(t, a_place_is_found_and_only_lua_is_shown, 0,
                        (int)(sizeof(places) / sizeof(places[0])));
    tcase_add_test(t, a_path_that_is_too_long_is_no_place);
    tcase_add_test(t, the_script_itself_is_shown_whatever_its_name);
    tcase_add_test(t, what_does_not_fit_is_cut);
    tcase_add_loop_test(t, a_program_gets_errors_before_the_log, 0, 2);
    tcase_add_test(t, how_far_scripts_are_is_known);
    suite_add_tcase(suite, t);
    return suite;
}

int
main(void)
{
    return sxe_test_main(explain_suite());
}
