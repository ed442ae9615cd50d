/* SPDX-License-Identifier: MIT
 *
 * --error-page: values that are refused, the files, and the replies that clients get.
 */
#include "error-pages.h"

#include <stdlib.h>
#include <string.h>

#include "config-origin.h"
#include "config.h"
#include "options-table.h"
#include "run-httpd.h"

static char directory[] = "/tmp/sxe-pages-XXXXXX";

static void
write_bytes(const char *name, const char *text, size_t length)
{
    FILE *file = fopen(name, "w");

    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    fclose(file);
}

static void
set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    write_bytes("404.html", "<p>gone", 7);
    write_bytes("x.JSON", "{}", 2);
    write_bytes("x.txt", "", 0);
}

static void
tear_down(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* ---- The option ---- */

static const char *const wrongs[] = {"",      "404",   "404 ",     "404.html", "399 a",
                                     "600 a", "40 a",  "4x4 a",    "a 404",    "4040 a",
                                     "4:0 a", "40: a", "404 500 ", "404a b"};

START_TEST(a_text_that_is_no_page_is_refused)
{
    struct error_pages pages = {.number = 0};

    ck_assert(!error_pages_add(&pages, wrongs[_i]));
    ck_assert_uint_eq(pages.number, 0);
}
END_TEST

START_TEST(a_later_page_replaces_an_earlier_one)
{
    struct error_pages pages = {.number = 0};

    ck_assert(error_pages_add(&pages, "500 502 503 50x.html"));
    ck_assert(error_pages_add(&pages, "502 a b"));
    ck_assert_uint_eq(pages.number, 3);
    ck_assert_uint_eq(pages.pages[1].status, 502);
    ck_assert_str_eq(pages.paths[0], "50x.html");
    ck_assert_str_eq(pages.paths[1], "a b");
}
END_TEST

START_TEST(there_is_an_end_to_pages)
{
    struct error_pages pages = {.number = 0};
    char text[8];

    for (unsigned i = 0; i < ERROR_PAGES_MAX; i++) {
        snprintf(text, sizeof(text), "%u a", 400 + i);
        ck_assert(error_pages_add(&pages, text));
    }
    ck_assert(!error_pages_add(&pages, "599 a"));
    ck_assert(error_pages_add(&pages, "400 b"));
    ck_assert_uint_eq(pages.number, ERROR_PAGES_MAX);
}
END_TEST

/* ---- The files ---- */

START_TEST(files_are_read_with_the_type_of_their_names)
{
    struct error_pages pages = {.number = 0};

    ck_assert(error_pages_add(&pages, "404 404.html"));
    ck_assert(error_pages_add(&pages, "500 x.JSON"));
    ck_assert(error_pages_add(&pages, "503 x.txt"));
    ck_assert_int_eq(error_pages_read(&pages), 0);
    ck_assert_str_eq(pages.pages[0].type, "text/html; charset=utf-8");
    ck_assert_uint_eq(pages.pages[0].length, 7);
    ck_assert_mem_eq(pages.pages[0].body, "<p>gone", 7);
    ck_assert_str_eq(pages.pages[1].type, "application/json");
    ck_assert_str_eq(pages.pages[2].type, "text/plain; charset=utf-8");
    ck_assert_uint_eq(pages.pages[2].length, 0);
    error_pages_free(&pages);
    ck_assert_ptr_null(pages.pages[0].body);
}
END_TEST

static const struct {
    enum fake_call call;
    int error;
} faults[] = {{FAKE_OPEN, ENFILE}, {FAKE_MALLOC, ENOMEM}, {FAKE_PREAD, EIO}};

START_TEST(a_file_that_cannot_be_read_keeps_nothing)
{
    struct error_pages pages = {.number = 0};
    const unsigned open_before = fake_os_open_fds();

    config_begin(&httpd_line);
    ck_assert(error_pages_add(&pages, "404 404.html"));
    ck_assert(error_pages_add(&pages, "500 x.JSON"));
    fake_os_fail(faults[_i].call, faults[_i].call == FAKE_PREAD ? 3 : 2, 1, faults[_i].error);
    ck_assert_int_eq(error_pages_read(&pages), -faults[_i].error);
    fake_os_reset();
    ck_assert_ptr_null(pages.pages[0].body);
    ck_assert_ptr_null(pages.pages[1].body);
    ck_assert_uint_eq(fake_os_open_fds(), open_before);
}
END_TEST

START_TEST(a_file_that_is_too_large_or_none_ends_the_program)
{
    static char text[ERROR_PAGE_MAX + 1];
    const char *last = _i % 2 == 0 ? "--check" : "-p0";

    write_bytes("64k.html", text, ERROR_PAGE_MAX);
    write_bytes("more.html", text, sizeof(text));
    RUN_HTTPD("--error-page", "404 64k.html", "--check");
    ck_assert_int_eq(ran.status, 0);
    if (_i < 2) {
        RUN_HTTPD("--error-page", "500 502 more.html", last);
        check_has(ran.errors, "cannot read the error page 'more.html' for status 500: File too "
                              "large; it must be a file of at most 64 KiB");
    } else {
        RUN_HTTPD("--error-page", "500 nosuch.html", last);
        check_has(ran.errors, "cannot read the error page 'nosuch.html' for status 500: No such "
                              "file or directory");
    }
    ck_assert_int_eq(ran.status, _i % 2 == 0 ? 2 : 1);
}
END_TEST

START_TEST(a_bad_option_says_what_it_must_be)
{
    RUN_HTTPD("--error-page", "404");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "an error page (--error-page) is '404'; it must be statuses from 400 to "
                          "599 and a file, such as '404 404.html'");
}
END_TEST

START_TEST(clients_get_them)
{
    START_HTTPD("-p", "0", "-r", ".", "--error-page", "404 405 404.html");
    ask_and_expect("GET /nosuch HTTP/1.1\r\nHost: a\r\n\r\n",
                   "HTTP/1.1 404 Not Found\r\nDate: @\r\nContent-Type: text/html; "
                   "charset=utf-8\r\nContent-Length: 7\r\n\r\n<p>gone");
    ask_and_expect("POST /404.html HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                   "HTTP/1.1 405 Method Not Allowed\r\n");
    stop_httpd();
}
END_TEST

static Suite *
pages_suite(void)
{
    Suite *suite = suite_create("httpd-error-pages");
    TCase *tcase = tcase_create("pages");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, a_text_that_is_no_page_is_refused, 0,
                        sizeof(wrongs) / sizeof(wrongs[0]));
    tcase_add_test(tcase, a_later_page_replaces_an_earlier_one);
    tcase_add_test(tcase, there_is_an_end_to_pages);
    tcase_add_test(tcase, files_are_read_with_the_type_of_their_names);
    tcase_add_loop_test(tcase, a_file_that_cannot_be_read_keeps_nothing, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_loop_test(tcase, a_file_that_is_too_large_or_none_ends_the_program, 0, 4);
    tcase_add_test(tcase, a_bad_option_says_what_it_must_be);
    tcase_add_test(tcase, clients_get_them);
    suite_add_tcase(suite, tcase);
    return suite;
}

int
main(void)
{
    return sxe_test_main(pages_suite());
}
