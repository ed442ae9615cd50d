/* SPDX-License-Identifier: MIT
 *
 * Finding the line of a key in a configuration file.
 */
#include "config-lines.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake-os.h"
#include "test-main.h"

/* The line of the key at this path, such as "sites#1.routes"; 0: there is none. */
static unsigned
line_in(const char *text, const char *path)
{
    struct config_lines *lines = config_lines_new(text, strlen(text));
    const char *key = path;
    uint64_t place = CONFIG_ROOT;
    unsigned line;
    size_t length = 0;

    for (; *path != '\0'; path += length) {
        const bool is_item = *path == '#';

        key = path + 1;
        length = strcspn(key, ".#");
        place =
            is_item ? config_item(place, strtoull(key, NULL, 10)) : config_key(place, key, length);
        length++;
    }
    line = config_lines_find(lines, place, config_anywhere(key, length - 1));
    config_lines_delete(lines);
    return line;
}

static const struct {
    const char *text;
    const char *path;
    unsigned line;
} places[] = {
    {"return { port = 1 }", ".port", 1},
    {"return {\n a = 1,\n port = 1;\n b = 2 }", ".b", 4},
    {"return {\n a = { b = 1 },\n b = 2 }", ".a.b", 2},
    {"return {\n a = { b = 1 },\n b = 2 }", ".b", 3},
    {"return { l = { 'x',\n 'y',\n { z = 1 } } }", ".l#2", 2},
    {"return { l = { 'x',\n 'y',\n { z = 1 } } }", ".l#3.z", 3},
    {"return { [\"a-b\"] = 1,\n ['/x/{y}'] = {\n q = 1 } }", "./x/{y}.q", 3},
    {"return { [[[long]]] = 1,\n [ [==[er]==] ] = 2 }", ".er", 2},
    {"return {\n [3] = { a = 1 } }", "#3.a", 2},
    {"return { a = 1,\n b = a == 1,\n [a] = 2,\n c = 3 }", ".c", 4},
    {"-- { x = 1 }\n--[[ {\n x = 2 ]]\nreturn {\n x = 3 }", ".x", 5},
    {"return { s = 'a\\\n{ x = 1 }',\n x = 2 }", ".x", 3},
    {"return { s = \"it's\", [[a\nb]],\n x = 2 }", ".x", 3},
    {"return { f(1, { x = 1 }),\n x = g{ x = 2 },\n y = (3), x = 4 }", ".y", 3},
    {"return { a = 1,\n a = 2 }", ".a", 2},
    {"local t = {\n x = 1 }\nreturn { y = t }", ".y.x", 2},
    {"return {\n 5, 6 }", "#2", 2},
    {"return { x = 1 }", ".y", 0},
    {"", ".x", 0},
    {"return { x = 'unfinished", ".x", 1},
    {"return { x = [[unfinished\n", ".x", 1},
    {"return { x = [=unfinished", ".x", 1},
    {"return { x = 'a\\", ".x", 1},
    {"} ) return { x = 1 } --", ".x", 1},
    {"return { [", ".x", 0},
    {"return { f = function() return { x = 1 } end,\n y = 1 }", ".y", 2},
};

START_TEST(a_key_is_found_at_its_place)
{
    ck_assert_uint_eq(line_in(places[_i].text, places[_i].path), places[_i].line);
}
END_TEST

/* Append to a text in a buffer of this size. */
static void
append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);

    ck_assert_uint_lt(length + strlen(more), size);
    memcpy(text + length, more, strlen(more) + 1);
}

START_TEST(tables_are_known_to_64_levels)
{
    char text[1024] = "return ";

    for (unsigned i = 0; i < 70; i++)
        append(text, sizeof(text), "{\n");
    append(text, sizeof(text), "x = 1");
    for (unsigned i = 0; i < 70; i++)
        append(text, sizeof(text), "}");
    append(text, sizeof(text), ", {");
    ck_assert_uint_eq(line_in(text, ".x"), 0);
    memmove(text + 7, text + 7 + 2 * 40, strlen(text + 7 + 2 * 40) + 1);
    ck_assert_uint_eq(line_in(text, ".x"), 31);
}
END_TEST

START_TEST(without_memory_there_are_no_lines)
{
    static const enum fake_call kinds[] = {FAKE_CALLOC, FAKE_REALLOC};
    static const char text[] = "return { a = 1, b = 2, c = { 1, 2 } }";
    struct config_lines *lines;
    unsigned nth = 0;

    config_lines_delete(NULL);
    do {
        fake_os_reset();
        fake_os_sweep(kinds, 2, ++nth, false, ENOMEM);
        lines = config_lines_new(text, strlen(text));
        ck_assert_int_eq(lines == NULL, fake_os_injected() != 0);
        config_lines_delete(lines);
    } while (fake_os_injected() != 0);
    fake_os_reset();
    ck_assert_uint_gt(nth, 2);
}
END_TEST

static Suite *
lines_suite(void)
{
    Suite *suite = suite_create("httpd-config-lines");
    TCase *tcase = tcase_create("lines");

    tcase_add_loop_test(tcase, a_key_is_found_at_its_place, 0,
                        (int)(sizeof(places) / sizeof(places[0])));
    tcase_add_test(tcase, tables_are_known_to_64_levels);
    tcase_add_test(tcase, without_memory_there_are_no_lines);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(lines_suite());
}
