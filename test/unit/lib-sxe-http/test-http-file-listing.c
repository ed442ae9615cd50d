/* SPDX-License-Identifier: MIT
 *
 * Static files: listings of directories.
 */
#include "http-file-site.h"
#include "test-main.h"

static const struct sxe_http_files_config with_listing = {.listing = true};

static const char page[] = "<tbody>\n"
                           "<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n"
                           "<tr><td><a href=\"B/\">B/</a></td><td class=\"n\"></td>"
                           "<td class=\"n\">06 Nov 1994 08:49</td></tr>\n"
                           "<tr><td><a href=\"b/\">b/</a></td><td class=\"n\"></td>"
                           "<td class=\"n\">06 Nov 1994 08:49</td></tr>\n"
                           "<tr><td><a href=\"A\">A</a></td><td class=\"n\">0 B</td>"
                           "<td class=\"n\">06 Nov 1994 08:49</td></tr>\n"
                           "<tr><td><a href=\"a\">a</a></td><td class=\"n\">3 B</td>"
                           "<td class=\"n\">06 Nov 1994 08:49</td></tr>\n"
                           "<tr><td><a href=\"ab\">ab</a></td><td class=\"n\">1.5 kB</td>"
                           "<td class=\"n\">06 Nov 1994 08:49</td></tr>\n"
                           "</tbody>\n"
                           "</table>\n"
                           "</body>\n"
                           "</html>\n";

START_TEST(a_listing_has_directories_first_and_then_files_by_name)
{
    put_directory("d");
    put_directory("d/b");
    put_directory("d/B");
    set_time("d/b", OLD, 0);
    set_time("d/B", OLD, 0);
    put_large("d/ab", 1500);
    put_file("d/a", "abc");
    put_file("d/A", "");
    serve(&with_listing);
    get("/d/", "");
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_str_eq(field("Content-Type"), "text/html; charset=utf-8");
    ck_assert_str_eq(field("Cache-Control"), "no-cache");
    ck_assert_ptr_null(field("ETag"));
    ck_assert_ptr_null(field("Last-Modified"));
    ck_assert_ptr_null(field("Accept-Ranges"));
    ck_assert_ptr_nonnull(strstr(reply.body, "<title>Index of /d/</title>"));
    ck_assert_ptr_nonnull(strstr(reply.body, "<h1>Index of /d/</h1>"));
    ck_assert_str_eq(strstr(reply.body, "<tbody>"), page);
    end_site();
}
END_TEST

START_TEST(head_of_a_listing_says_its_length)
{
    char length[32];

    put_file("a", "a");
    serve(&with_listing);
    get("/", "");
    snprintf(length, sizeof(length), "%s", field("Content-Length"));
    ask("HEAD", "/", "");
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_str_eq(field("Content-Length"), length);
    end_site();
}
END_TEST

START_TEST(the_root_has_no_parent)
{
    serve(&with_listing);
    get("/", "Range: bytes=0-0\r\n");
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_ptr_nonnull(strstr(reply.body, "<title>Index of /</title>"));
    ck_assert_ptr_null(strstr(reply.body, "../"));
    end_site();
}
END_TEST

START_TEST(a_prefix_is_part_of_the_title)
{
    put_directory("d");
    serve(&(struct sxe_http_files_config){.listing = true, .prefix = _i == 0 ? "/s<" : "s</"});
    get("/s%3C/", "");
    ck_assert_ptr_nonnull(strstr(reply.body, "<title>Index of /s&lt;/</title>"));
    get("/s%3C/d/", "");
    ck_assert_ptr_nonnull(strstr(reply.body, "<title>Index of /s&lt;/d/</title>"));
    end_site();
}
END_TEST

START_TEST(names_are_escaped)
{
    static const char *const names[] = {"<b>\"&'", "javascript:alert(1)", "a b?c#d%2f", "\xc3\xa4",
                                        "\xff"};
    static const char *const rows[] = {
        "<a href=\"%3Cb%3E%22%26%27\">&lt;b&gt;&quot;&amp;&#39;</a>",
        "<a href=\"javascript%3Aalert%281%29\">javascript:alert(1)</a>",
        "<a href=\"a%20b%3Fc%23d%252f\">a b?c#d%2f</a>",
        "<a href=\"%C3%A4\">\xc3\xa4</a>",
        "<a href=\"%FF\">\xff</a>",
    };

    put_file(names[_i], "x");
    serve(&with_listing);
    get("/", "");
    ck_assert_ptr_nonnull(strstr(reply.body, rows[_i]));
    end_site();
}
END_TEST

START_TEST(what_could_not_be_opened_is_not_shown)
{
    put_file(".hidden", "x");
    ck_assert_int_eq(mkfifo(path_of("fifo"), 0666), 0);
    put_link("out", "/etc/passwd");
    put_link("dangling", "none");
    put_file("back\\slash", "no path leads there");
    put_file("a", "a");
    put_directory("d");
    put_link("d/up", "../a");
    put_link("in", "a");
    put_link("directory", "d");
    serve(&with_listing);
    get("/", "");
    ck_assert_ptr_null(strstr(reply.body, "hidden"));
    ck_assert_ptr_null(strstr(reply.body, "fifo"));
    ck_assert_ptr_null(strstr(reply.body, "out"));
    ck_assert_ptr_null(strstr(reply.body, "dangling"));
    ck_assert_ptr_null(strstr(reply.body, "slash"));
    ck_assert_ptr_nonnull(strstr(reply.body, "\"in\""));
    ck_assert_ptr_nonnull(strstr(reply.body, "\"directory/\""));
    get("/d/", "");
    ck_assert_ptr_nonnull(strstr(reply.body, "\"up\""));
    end_site();
}
END_TEST

START_TEST(hidden_names_are_shown_when_they_are_there)
{
    put_file(".hidden", "x");
    serve(&(struct sxe_http_files_config){.listing = true, .dot_files = true});
    get("/", "");
    ck_assert_ptr_nonnull(strstr(reply.body, "\".hidden\""));
    end_site();
}
END_TEST

START_TEST(an_index_wins_against_a_listing)
{
    put_file("index.html", "home");
    serve(&with_listing);
    EXPECT_FILE("/", "home");
    end_site();
}
END_TEST

static const struct {
    size_t bytes;
    const char *text;
} sizes[] = {
    {999, ">999 B<"},     {1000, ">1.0 kB<"},   {9949, ">9.9 kB<"},      {9950, ">10 kB<"},
    {999499, ">999 kB<"}, {999500, ">1.0 MB<"}, {123456789, ">123 MB<"}, {5000000000, ">5.0 GB<"},
};

START_TEST(sizes_are_for_people)
{
    put_file("a", "");
    ck_assert_int_eq(truncate(path_of("a"), (off_t)sizes[_i].bytes), 0);
    serve(&with_listing);
    get("/", "");
    ck_assert_ptr_nonnull(strstr(reply.body, sizes[_i].text));
    end_site();
}
END_TEST

START_TEST(a_listing_is_kept_for_a_while_and_then_made_anew)
{
    put_file("a", "a");
    serve(&with_listing);
    get("/", "");
    put_file("b", "b");
    fake_os_reset();
    get("/", "");
    ck_assert_ptr_null(strstr(reply.body, "\"b\""));
    ck_assert_uint_eq(fake_os_calls(FAKE_GETDENTS64), 0);
    grow_old();
    get("/", "");
    ck_assert_ptr_nonnull(strstr(reply.body, "\"b\""));
    turn(20);
    ck_assert_uint_eq(entries_in(SXE__HTTP_FILE_IDLE), 1);
    end_site();
}
END_TEST

/* Make files with the names "0" to number - 1, each followed by `tail`, which makes pages long. */
static void
put_many(unsigned number, const char *tail)
{
    char name[300];

    for (unsigned i = 0; i < number; i++) {
        int fd;

        snprintf(name, sizeof(name), "%u%s", i, tail);
        fd = open(path_of(name), O_CREAT | O_WRONLY, 0644);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
}

static unsigned
count(const char *what)
{
    unsigned number = 0;

    /* memmem: AddressSanitizer's strstr reads the rest of the page at each call. */
    for (const char *at = reply.body, *end = at + strlen(at);
         (at = memmem(at, (size_t)(end - at), what, strlen(what))) != NULL; at++)
        number++;
    return number;
}

START_TEST(a_long_listing_is_sent_from_a_file_and_again_from_that)
{
    char before[200] = "";

    put_many(2000, "-a-name-that-is-long");
    serve(&with_listing);
    for (unsigned times = 0; times < 2; times++) {
        fake_os_reset();
        get("/", "");
        ck_assert_uint_eq(count("<tr><td>"), 2000);
        ck_assert_uint_gt(reply.length, 65536);
        ck_assert_uint_gt(fake_os_calls(FAKE_SENDFILE), 0);
        ck_assert_uint_eq(fake_os_calls(FAKE_MEMFD_CREATE), 1 - times);
    }
    for (const char *at = reply.body; (at = strstr(at, "<a href=\"")) != NULL; at++) {
        char name[200];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 9, "\""), at + 9);
        ck_assert_int_lt(strcmp(before, name), 0);
        memcpy(before, name, sizeof(before));
    }
    ck_assert_uint_ge(site.files->memory, reply.length);
    end_site();
}
END_TEST

START_TEST(of_too_many_names_ten_thousand_are_shown)
{
    put_many(_i == 0 ? 10000 : 10001, "");
    serve(&with_listing);
    get("/", "");
    ck_assert_uint_eq(count("<tr><td>"), 10000);
    ck_assert_uint_eq(count("only 10,000 are shown"), (unsigned)_i);
    end_site();
}
END_TEST

static const struct {
    enum fake_call call;
    int error;
    unsigned status;
} faults[] = {
    {FAKE_GETDENTS64, EIO, 500},
    {FAKE_MEMFD_CREATE, EMFILE, 503},
    {FAKE_WRITE, ENOMEM, 503},
};

START_TEST(a_listing_that_cannot_be_made_is_refused)
{
    put_many(20, "");
    serve(&(struct sxe_http_files_config){.listing = true, .small_max = 1000});
    fake_os_fail(faults[_i].call, 1, 1, faults[_i].error);
    EXPECT_STATUS("/", faults[_i].status);
    fake_os_reset();
    EXPECT_STATUS("/", 200);
    end_site();
}
END_TEST

START_TEST(a_name_that_goes_meanwhile_is_left_out)
{
    put_file("a", "a");
    put_link("link", "a");
    serve(&with_listing);
    fake_os_fail(FAKE_FSTATAT, 1, 0, ENOENT);
    get("/", "");
    ck_assert_uint_eq(count("<tr><td>"), 0);
    fake_os_reset();
    grow_old();
    fake_os_fail(FAKE_FSTAT, 1, 0, EIO);
    get("/", "");
    ck_assert_uint_eq(count("<tr><td>"), 1);
    end_site();
}
END_TEST

START_TEST(without_memory_for_it_a_listing_is_503)
{
    enum { BIG = 8 * 1024 * 1024 };
    int slow;

    put_large("big", BIG);
    serve(
        &(struct sxe_http_files_config){.listing = true, .small_max = BIG, .memory_max = 1000000});
    slow = connect_client();
    send_request(slow, "GET", "/big", "Connection: close\r\n");
    while (entries_in(SXE__HTTP_FILE_BUSY) == 0)
        turn(1);
    EXPECT_STATUS("/", 503);
    receive_reply(slow, true);
    EXPECT_STATUS("/", 200);
    end_site();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-file-listing");
    TCase *tcase = tcase_create("http-file-listing");

    tcase_add_checked_fixture(tcase, begin_site, NULL);
    tcase_add_test(tcase, a_listing_has_directories_first_and_then_files_by_name);
    tcase_add_test(tcase, head_of_a_listing_says_its_length);
    tcase_add_test(tcase, the_root_has_no_parent);
    tcase_add_loop_test(tcase, a_prefix_is_part_of_the_title, 0, 2);
    tcase_add_loop_test(tcase, names_are_escaped, 0, 5);
    tcase_add_test(tcase, what_could_not_be_opened_is_not_shown);
    tcase_add_test(tcase, hidden_names_are_shown_when_they_are_there);
    tcase_add_test(tcase, an_index_wins_against_a_listing);
    tcase_add_loop_test(tcase, sizes_are_for_people, 0, sizeof(sizes) / sizeof(sizes[0]));
    tcase_add_test(tcase, a_listing_is_kept_for_a_while_and_then_made_anew);
    tcase_add_test(tcase, a_long_listing_is_sent_from_a_file_and_again_from_that);
    tcase_add_loop_test(tcase, of_too_many_names_ten_thousand_are_shown, 0, 2);
    tcase_add_loop_test(tcase, a_listing_that_cannot_be_made_is_refused, 0,
                        sizeof(faults) / sizeof(faults[0]));
    tcase_add_test(tcase, a_name_that_goes_meanwhile_is_left_out);
    tcase_add_test(tcase, without_memory_for_it_a_listing_is_503);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
