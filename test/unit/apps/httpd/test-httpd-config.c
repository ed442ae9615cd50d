/* SPDX-License-Identifier: MIT
 *
 * Options from the environment and from a configuration file, and the messages about wrong ones.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config-file.h"
#include "config-origin.h"
#include "config-text.h"
#include "run-httpd.h"

static char path[] = "/tmp/sxe-config-XXXXXX";

/* Write a file with this text. Messages are checked without its directory. */
static const char *
file_of(const char *text)
{
    const int fd = mkostemp(memcpy(path, "/tmp/sxe-config-XXXXXX", sizeof(path)), 0);

    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

/* The first line of the output that contains this text; "": none. */
static const char *
line_with(const char *text)
{
    static char line[512];
    char *begin = strstr(ran.output, text);

    if (begin == NULL)
        return "";
    while (begin > ran.output && begin[-1] != '\n')
        begin--;
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(begin, "\n"), begin);
    return line;
}

static void
check_line(const char *begin, const char *end)
{
    const char *line = line_with(begin);
    const size_t length = strlen(line);

    ck_assert_msg(length >= strlen(end) && strcmp(line + length - strlen(end), end) == 0,
                  "'%s' does not end with '%s', in: %s", line, end, ran.output);
}

/* Run with --config and a file with this text. */
#define RUN_FILE(text, ...)                                \
    do {                                                   \
        RUN_HTTPD("--config", file_of(text), __VA_ARGS__); \
        unlink(path);                                      \
    } while (0)

/* ---- Files that are accepted ---- */

START_TEST(a_flag_counts_before_a_variable_and_that_before_the_file)
{
    setenv("SXE_PORT", "2", 1);
    setenv("SXE_MAX_BODY", "3m", 1);
    setenv("SXE_LISTING", "on", 1);
    setenv("SXE_DOT_FILES", "0", 1);
    RUN_FILE("return {\n port = 1,\n max_body = '1m', root = '.',\n"
             "[\"max-line\"] = 4096, dot_files = true, sniff = true, half_close = false }",
             "--print-config", "-p", "3");
    ck_assert_str_eq(ran.errors, "");
    ck_assert_int_eq(ran.status, 0);
    check_line(" port = ", "  port = \"3\", -- flag");
    check_line(" max_body = ", "  max_body = \"3m\", -- SXE_MAX_BODY");
    check_line(" listing = ", "  listing = true, -- SXE_LISTING");
    check_line(" dot_files = ", "  dot_files = false, -- SXE_DOT_FILES");
    check_line(" max_line = \"4096\", -- ", ":4");
    check_line(" sniff = true, -- ", ":4");
    check_line(" half_close = false, -- ", ":4");
    check_line(" root = \".\", -- ", ":3");
    check_line(" connections = ", "  -- connections = \"10000\", -- default");
    check_line(" unix = ", "  -- unix = nil, -- default");
    check_line(" socket_mode = ", "  -- socket_mode = nil, -- default");
    check_line(" strict = ", "  -- strict = false, -- default");
    check_line(" config = ", "\", -- flag");
    ck_assert_ptr_null(strstr(ran.output, "completion"));
}
END_TEST

START_TEST(lists_are_tables)
{
    RUN_FILE(
        "return { root = '.', index = { 'a.html',\n 'b.html' }, type = 'a/b \"c', header = {} }",
        "--print-config");
    ck_assert_str_eq(ran.errors, "");
    check_line("    \"a.html\", -- ", ":1");
    check_line("    \"b.html\", -- ", ":2");
    check_line("    \"a/b \\\"c\", -- ", ":2");
    check_line(" header = ", "-- header = nil, -- default");
}
END_TEST

START_TEST(what_is_printed_can_be_read_again)
{
    static char printed[sizeof(ran.output)];

    RUN_FILE("return { port = 0, index = { 'x' }, root = '.', header = 'A: b\\\\c' }",
             "--print-config");
    snprintf(printed, sizeof(printed), "%s", ran.output);
    RUN_FILE(printed, "--print-config");
    ck_assert_str_eq(ran.errors, "");
    check_line(" port = ", ":3");
    check_has(ran.output, "\"A: b\\\\c\"");
}
END_TEST

START_TEST(loose_and_strict_are_one_option)
{
    RUN_FILE("return { lua = '/dev/null', loose = true }", "--print-config", "--strict");
    check_line(" strict = ", "  strict = true, -- flag");
    check_line(" loose = ", "  -- loose = false, -- flag");
    RUN_FILE("return { lua = '/dev/null', strict = true }", "--print-config", "--loose");
    check_line(" loose = ", "  loose = true, -- flag");
}
END_TEST

START_TEST(a_file_can_be_named_by_the_environment)
{
    setenv("SXE_CONFIG", file_of("return { port = 99 }"), 1);
    RUN_HTTPD("--print-config");
    unlink(path);
    check_line(" port = ", ":1");
    check_line(" config = ", ", -- SXE_CONFIG");
}
END_TEST

START_TEST(a_file_may_compute)
{
    RUN_FILE("local t = {}\nfor _, name in ipairs{ 'a', 'b' } do table.insert(t, name .. '.html') "
             "end\nlocal x = ('%d'):format(math.max(1, 2)) assert(x:upper() == '2')\n"
             "return { root = '.', index = t }",
             "--print-config");
    ck_assert_str_eq(ran.errors, "");
    check_line("    \"b.html\", -- ", ":4");
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

START_TEST(more_values_than_are_printed_are_taken)
{
    static char text[16384] = "return { stats_from = {";

    for (unsigned i = 0; i < 2 * CONFIG_VALUES_MAX; i++)
        append(text, sizeof(text), "'::1',");
    append(text, sizeof(text), "} }");
    RUN_FILE(text, "--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "stats-from");
}
END_TEST

/* ---- Files that are refused ---- */

static const struct {
    const char *text;
    const char *says; /* the message after the file's name */
} mistakes[] = {
    {"return { port = 1,\n prot = 2 }", ":2: prot: there is no such key; did you mean port?\n"},
    {"return { stop_timeot = 2 }",
     ":1: stop_timeot: there is no such key; did you mean stop-timeout?"},
    {"return { zzzzzzzzzz = 2 }", ":1: zzzzzzzzzz: there is no such key; sxe-httpd --print-config"},
    {"return {\n aa = 2,\n ab = 1,\n ac = 3 }", ":2: aa: there is no such key"},
    {"return { config = 'x' }", ":1: config: there is no such key"},
    {"return { check = true }", ":1: check: there is no such key"},
    {"return {\n 80 }", ":2: [1]: a value without a key; write: key = value\n"},
    {"return { max_line = 80,\n ['max-line'] = 81 }", " it stands twice, with - and with _\n"},
    {"return {\n port = 99999 }",
     ":2: port: the port (-p) is '99999'; it must be a number from 0 to"},
    {"return {\n header = { ['X-A'] = 'b' } }",
     ":2: header: it is a table; it must be a text, or a list of texts without names"},
    {"return {\n port = {} }", ":2: port: it is a table; it must be a number or a text"},
    {"return {\n port = true }", ":2: port: it is a boolean; it must be a number or a text"},
    {"return {\n port = '8\\0' }", ":2: port: it is a string, '8"},
    {"return {\n listing = 1 }", ":2: listing: it is a number, '1'; it must be true or false\n"},
    {"return {\n listing = 'yes' }",
     ":2: listing: it is a string, 'yes'; it must be true or false\n"},
    {"return { index = {\n 'a',\n false } }",
     ":3: index: it is a boolean; it must be a text, or a list"},
    {"return { index = {\n 'a/b' } }",
     ":2: index: an index (--index) is 'a/b'; it must be the name"},
    {"return { max_body = '1x' }", ":1: max_body: the body's size (--max-body) is '1x'"},
    {"return { idle_timeout = 'x' }", ":1: idle_timeout: the time between requests"},
    {"return {\n port = }", ":2: unexpected symbol near '}'"},
    {"return {\n port = nosuch.thing }", ":2: attempt to index a nil value (global 'nosuch')"},
    {"return {\n port = os.getenv('x') }", ":2: attempt to index a nil value (global 'os')"},
    {"\nwhile true do end", ":2: this takes more than 10000000 instructions"},
    {"local s = 'x' while true do s = s .. s end", "': it takes more than 16 MiB"},
    {"local s = 'x' for i = 1, 20 do s = s .. s end while true do local t = s .. 1 end",
     "more than 16"},
    {"return 5", ": it returned number; let it end with: return { port = 8000 }\n"},
    {"", ": it returned nothing; let it end with"},
    {"error({})", "error of another type"},
    {"error('mine', 0)", "sxe-httpd: mine\n"},
    {"\033Lua", "attempt to load a binary chunk"},
};

START_TEST(a_mistake_is_named_with_its_line)
{
    static char says[512];

    RUN_FILE(mistakes[_i].text, "--check");
    ck_assert_int_eq(ran.status, 2);
    ck_assert_str_eq(ran.output, "");
    if (*mistakes[_i].says == ':')
        snprintf(says, sizeof(says), "sxe-httpd: %s%s", path, mistakes[_i].says);
    else
        snprintf(says, sizeof(says), "%s", mistakes[_i].says);
    check_has(ran.errors, says);
}
END_TEST

START_TEST(a_key_that_is_computed_has_no_line)
{
    RUN_FILE("local t = {} t['pr' .. 'ot'] = 5 return t", "--check");
    check_has(ran.errors, ": prot: there is no such key; did you mean port?");
    ck_assert_ptr_null(strstr(ran.errors, ":0:"));
}
END_TEST

START_TEST(variables_are_checked_too)
{
    setenv("SXE_PORT", "x", 1);
    RUN_HTTPD("--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "sxe-httpd: SXE_PORT: the port (-p) is 'x'; it must be a number");
    unsetenv("SXE_PORT");
    setenv("SXE_DEV", "perhaps", 1);
    RUN_HTTPD("--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "sxe-httpd: SXE_DEV: it is 'perhaps'; it must be 1 or 0");
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named)
{
    static char long_text[CONFIG_FILE_MAX + 2];

    RUN_HTTPD("--config", "/nonexistent/file", "--check");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "cannot read the configuration '/nonexistent/file': No such file");
    RUN_HTTPD("--config", "/tmp", "--check");
    check_has(ran.errors, "cannot read the configuration '/tmp': Is a directory");
    memset(long_text, ' ', sizeof(long_text) - 1);
    RUN_FILE(long_text, "--check");
    check_has(ran.errors, "it has more than 1 MiB");
}
END_TEST

START_TEST(a_read_that_is_interrupted_goes_on)
{
    fake_os_fail(FAKE_READ, 1, 1, EINTR);
    RUN_FILE("return {}", "--check");
    ck_assert_str_eq(ran.errors, "");
}
END_TEST

START_TEST(without_memory_it_says_so)
{
    file_of("return { port = 1, index = { 'a', 2 }, root = '.' }");
    sweep_httpd_memory((const char *[]){"sxe-httpd", "--config", path, "--check", NULL}, 20);
    unlink(path);
}
END_TEST

/* ---- --check ---- */

START_TEST(check_looks_for_the_directory_and_the_script)
{
    RUN_HTTPD("--check", "-r", "/tmp");
    ck_assert_int_eq(ran.status, 0);
    ck_assert_str_eq(ran.output, "sxe-httpd: the configuration is good\n");
    RUN_HTTPD("--check", "-r", "/nonexistent");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "sxe-httpd: cannot open the directory '/nonexistent': No such file");
    RUN_FILE("return {\n root = '/nonexistent' }", "--check");
    check_has(ran.errors, ":2: root: cannot open the directory '/nonexistent': No such file");
    setenv("SXE_ROOT", "/nonexistent", 1);
    RUN_HTTPD("--check");
    check_has(ran.errors, "sxe-httpd: SXE_ROOT: cannot open the directory '/nonexistent'");
    unsetenv("SXE_ROOT");
    RUN_HTTPD("--check", "--lua", "/nonexistent");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "sxe-httpd: cannot open /nonexistent");
    RUN_HTTPD("--check", "--lua", "/dev/null");
    ck_assert_int_eq(ran.status, 0);
}
END_TEST

/* ---- SIGHUP ---- */

START_TEST(sighup_reads_the_file_again_and_a_bad_one_changes_nothing)
{
    FILE *file;
    int client;

    file_of("return { header = 'X-Version: 1' }");
    START_HTTPD("--config", path);
    client = dial();
    say(client, "GET / HTTP/1.0\r\n\r\n");
    expect(client, "HTTP/1.1 200 OK\r\nDate: @\r\nX-Version: 1\r\n");
    close(client);
    file = fopen(path, "w");
    fputs("return { haeder = 'X-Version: 2' }", file);
    fclose(file);
    kill(httpd_child.pid, SIGHUP);
    while (strstr(child_errors(), "could not be loaded again") == NULL)
        usleep(1000);
    check_has(child_errors(), ":1: haeder: there is no such key; did you mean header?");
    client = dial();
    say(client, "GET / HTTP/1.0\r\n\r\n");
    expect(client, "HTTP/1.1 200 OK\r\nDate: @\r\nX-Version: 1\r\n");
    close(client);
    file = fopen(path, "w");
    fputs("return { header = 'X-Version: 2' }", file);
    fclose(file);
    kill(httpd_child.pid, SIGHUP);
    for (char byte = '1'; byte != '2'; close(client)) {
        client = dial();
        say(client, "GET / HTTP/1.0\r\n\r\n");
        expect(client, "HTTP/1.1 200 OK\r\nDate: @\r\nX-Version: ");
        ck_assert_int_eq(recv(client, &byte, 1, 0), 1);
    }
    unlink(path);
    stop_httpd();
}
END_TEST

static Suite *
config_suite(void)
{
    Suite *suite = suite_create("httpd-config");
    TCase *taken = tcase_create("taken");
    TCase *refused = tcase_create("refused");
    TCase *checked = tcase_create("checked");

    tcase_add_test(taken, a_flag_counts_before_a_variable_and_that_before_the_file);
    tcase_add_test(taken, lists_are_tables);
    tcase_add_test(taken, what_is_printed_can_be_read_again);
    tcase_add_test(taken, loose_and_strict_are_one_option);
    tcase_add_test(taken, a_file_can_be_named_by_the_environment);
    tcase_add_test(taken, a_file_may_compute);
    tcase_add_test(taken, more_values_than_are_printed_are_taken);
    suite_add_tcase(suite, taken);
    tcase_add_loop_test(refused, a_mistake_is_named_with_its_line, 0,
                        (int)(sizeof(mistakes) / sizeof(mistakes[0])));
    tcase_add_test(refused, a_key_that_is_computed_has_no_line);
    tcase_add_test(refused, variables_are_checked_too);
    tcase_add_test(refused, a_file_that_cannot_be_read_is_named);
    tcase_add_test(refused, a_read_that_is_interrupted_goes_on);
    tcase_add_test(refused, without_memory_it_says_so);
    suite_add_tcase(suite, refused);
    tcase_add_test(checked, check_looks_for_the_directory_and_the_script);
    tcase_add_test(checked, sighup_reads_the_file_again_and_a_bad_one_changes_nothing);
    suite_add_tcase(suite, checked);
    return suite;
}

int
main(void)
{
    return sxe_test_main(config_suite());
}
