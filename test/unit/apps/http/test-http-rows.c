/* SPDX-License-Identifier: MIT
 *
 * Rows of CSV files and of JSON lines: valid ones, refused ones, and failing allocations.
 */
#include "../../../../apps/http/input/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-os.h"
#include "has.h"
#include "test-main.h"

static char path[80];
static char why[LOAD_ROWS_WHY];
static struct load_rows *rows;

/* Read a file with this text, whose name has this end. */
static struct load_rows *
read_bytes(const char *end, const char *text, size_t length)
{
    int fd;

    snprintf(path, sizeof(path), "/tmp/sxe-http-rows-XXXXXX%s", end);
    fd = mkstemps(path, (int)strlen(end));
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, length), (ssize_t)length);
    close(fd);
    rows = load_rows_read(path, why);
    unlink(path);
    return rows;
}

static struct load_rows *
read_text(const char *end, const char *text)
{
    return read_bytes(end, text, strlen(text));
}

static void
free_rows(void)
{
    load_rows_free(rows);
    rows = NULL;
}

/* All rows as text: "user,password|a,1|b,2". */
static const char *
all(void)
{
    static char text[1000];
    size_t length = 0;

    ck_assert_msg(rows != NULL, "%s", why);
    for (unsigned i = 0; i < rows->columns; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%.*s", i > 0 ? "," : "",
                                   (int)rows->names[i].length, rows->text + rows->names[i].at);
    for (uint64_t row = 0; row < rows->number; row++)
        for (unsigned i = 0; i < rows->columns; i++) {
            struct sxe_span cell = load_rows_cell(rows, row, i);

            ck_assert_uint_le(cell.length, rows->longest[i]);
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%.*s",
                                       i > 0 ? "," : "|", (int)cell.length, cell.base);
        }
    return text;
}

static const struct {
    const char *end;
    const char *text;
    const char *all;
} files[] = {
    {".csv", "user,password\na,1\nb,2\n", "user,password|a,1|b,2"},
    {".csv", "user,password\r\na,1\r\nb,2", "user,password|a,1|b,2"},
    {"", "\xEF\xBB\xBFuser\n\na\n\r\nb\n", "user|a|b"},
    {".csv", "\"a\",b\n\"x,\"\"y\"\"\n\",\"\"\n,\n", "a,b|x,\"y\"\n,|,"},
    {".csv", "a_1,B\nx\ry,\"\"\n", "a_1,B|x\ry,"},
    {".csv", "a\n\"x\"", "a|x"},
    {".jsonl", "{\"user\": \"a\", \"n\": 1.10}\n\n{\"n\":true,\"user\":\"\\u0062\\n\",\"x\":[]}\n",
     "user,n|a,1.10|b\n,true"},
    {".ndjson", " {\"a\":\"\"}\r\n\t{\"a\":false}", "a||false"},
};

START_TEST(rows_have_the_values_of_their_columns)
{
    read_text(files[_i].end, files[_i].text);
    ck_assert_str_eq(all(), files[_i].all);
    free_rows();
}
END_TEST

static const struct {
    const char *end;
    const char *text;
    const char *why;
} refused[] = {
    {".csv", "", ":1: '' is not a column name: use letters, digits and _"},
    {".csv", "a\n", " has no rows"},
    {".csv", "a b\nc\n", ":1: 'a b' is not a column name"},
    {".csv", "1a\nc\n", ":1: '1a' is not a column name"},
    {".csv", "a,a\nb,c\n", ":1: two columns are called 'a'"},
    {".csv", "a,b\n1,2\n\n3\n", ":4: the row has fewer values than the 2 names"},
    {".csv", "a,b\n\"1\n2\",2\n3,4,5\n", ":4: the row has more values than the 2 names"},
    {".csv", "a,b\n1,2\nx\"y,3\n", ":3: a quote stands inside of a value"},
    {".csv", "a,b\n1,2\n3,\"y\n4,5\n", ":3: a quote is not closed"},
    {".csv", "a,b\n\"1\"x,2\n", ":2: after a closing quote stands neither"},
    {".csv", "\"a", ":1: a quote is not closed"},
    {".jsonl", "", " has no rows"},
    {".jsonl", "\n{}\n", ":2: the first object is empty"},
    {".jsonl", "{\"a\":1}\n{\"a\":}\n", ":2: the line is no JSON object: "},
    {".jsonl", "{\"a\":1,\"a\":2}\n", ":1: the line is no JSON object: "},
    {".jsonl", "[1]\n", ":1: the line is an array; it must be an object"},
    {".jsonl", "{\"a\":1}\n{\"b\":1}\n", ":2: 'a' is missing; a value is a string"},
    {".jsonl", "{\"a\":null}\n", ":1: 'a' is null; a value is"},
    {".jsonl", "{\"a\":{}}\n", ":1: 'a' is an object; a value is"},
    {".jsonl", "{\"a\":[]}\n", ":1: 'a' is an array; a value is"},
    {".jsonl", "{\"a b\":1}\n", ":1: 'a b' is not a column name"},
};

START_TEST(a_file_that_makes_no_sense_is_refused_with_its_line)
{
    ck_assert_ptr_null(read_text(refused[_i].end, refused[_i].text));
    check_has(why, path);
    check_has(why, refused[_i].why);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named)
{
    ck_assert_ptr_null(load_rows_read("/none/users.csv", why));
    ck_assert_str_eq(why, "cannot read '/none/users.csv': No such file or directory");
    load_rows_free(NULL);
}
END_TEST

START_TEST(what_is_too_much_is_refused)
{
    static char text[70000], deep[300];
    size_t length = 0;

    for (unsigned i = 0; i <= LOAD_COLUMNS_MAX; i++)
        length += (size_t)snprintf(text + length, 10, "c%u,", i);
    ck_assert_ptr_null(read_text(".csv", text));
    check_has(why, "there are more than 32 columns");
    memset(text, 'a', LOAD_COLUMN_NAME_MAX + 1);
    memcpy(text + LOAD_COLUMN_NAME_MAX + 1, "\n1\n", 4);
    ck_assert_ptr_null(read_text(".csv", text));
    check_has(why, "is not a column name");
    memset(text, 'a', sizeof(text));
    text[1] = '\n';
    ck_assert_ptr_null(read_bytes(".csv", text, 2 + LOAD_CELL_MAX + 1));
    check_has(why, ":2: a value has 65536 bytes; the most is 65535");
    ck_assert_ptr_nonnull(read_bytes(".csv", text, 2 + LOAD_CELL_MAX));
    ck_assert_uint_eq(rows->longest[0], LOAD_CELL_MAX);
    free_rows();
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    snprintf(text, sizeof(text), "{\"a\":1}\n{\"b\":%s,\"a\":2}\n", deep);
    ck_assert_ptr_null(read_text(".jsonl", text));
    check_has(why, ":2: objects and arrays are nested deeper than 64");
}
END_TEST

START_TEST(a_message_is_as_long_as_there_is_room)
{
    char name[500];

    memset(name, 'x', sizeof(name));
    memcpy(name, "/tmp/", 5);
    for (size_t i = 100; i < 450; i += 100)
        name[i] = '/';
    name[499] = '\0';
    ck_assert_ptr_null(load_rows_read(name, why));
    ck_assert_uint_eq(strlen(why), LOAD_ROWS_WHY - 1);
}
END_TEST

static const enum fake_call calls[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC};

START_TEST(memory_has_to_be_there)
{
    unsigned nth = 0;

    for (;;) {
        fake_os_reset();
        fake_os_sweep(calls, 3, ++nth, false, ENOMEM);
        read_text(_i == 0 ? ".csv" : ".jsonl", _i == 0 ? "a,b\n1,2\n" : "{\"a\":1}\n");
        if (fake_os_injected() == 0)
            break;
        if (rows == NULL)
            check_has(why, _i == 0 ? "emory" : "");
        free_rows();
    }
    ck_assert_uint_gt(nth, 3);
    free_rows();
}
END_TEST

START_TEST(many_rows_are_all_there)
{
    static char text[60000] = "n\n";
    size_t length = 2;

    for (unsigned i = 0; i < 5000; i++)
        length += (size_t)snprintf(text + length, 10, "%u\n", i);
    ck_assert_ptr_nonnull(read_text(".csv", text));
    ck_assert_uint_eq(rows->number, 5000);
    ck_assert_mem_eq(load_rows_cell(rows, 4999, 0).base, "4999", 4);
    free_rows();
}
END_TEST

static Suite *
suite(void)
{
    Suite *whole = suite_create("http-rows");
    TCase *cases = tcase_create("rows");

    tcase_add_loop_test(cases, rows_have_the_values_of_their_columns, 0,
                        sizeof(files) / sizeof(*files));
    tcase_add_loop_test(cases, a_file_that_makes_no_sense_is_refused_with_its_line, 0,
                        sizeof(refused) / sizeof(*refused));
    tcase_add_test(cases, a_file_that_is_not_there_is_named);
    tcase_add_test(cases, what_is_too_much_is_refused);
    tcase_add_test(cases, a_message_is_as_long_as_there_is_room);
    tcase_add_loop_test(cases, memory_has_to_be_there, 0, 2);
    tcase_add_test(cases, many_rows_are_all_there);
    suite_add_tcase(whole, cases);
    return whole;
}

int
main(void)
{
    return sxe_test_main(suite());
}
