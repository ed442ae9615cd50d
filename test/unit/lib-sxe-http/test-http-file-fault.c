/* SPDX-License-Identifier: MIT
 *
 * Static files: errors of system calls, files that change meanwhile, and impossible configurations.
 */
#include "http-file-site.h"
#include "test-main.h"

enum { BIG = 8 * 1024 * 1024, LETTERS = 30000 };

/* ---- Errors of system calls ---- */

static const struct {
    int error;
    unsigned status;
} errors[] = {
    {ENOENT, 404}, {ENOTDIR, 404}, {ELOOP, 404},  {ENAMETOOLONG, 404}, {EXDEV, 404},  {ENXIO, 404},
    {ENODEV, 404}, {EINVAL, 404},  {EILSEQ, 404}, {EACCES, 403},       {EPERM, 403},  {EMFILE, 503},
    {ENFILE, 503}, {ENOMEM, 503},  {EAGAIN, 503}, {EIO, 500},          {ESTALE, 500}, {EBADF, 500},
};

START_TEST(f9_what_the_system_says_of_a_name_has_its_status)
{
    put_file("a", "a");
    put_directory("d");
    put_file("d/index.html", "index");
    serve(NULL);
    fake_os_fail(FAKE_SYSCALL, 1, 0, errors[_i].error);
    EXPECT_STATUS("/a", errors[_i].status);
    EXPECT_STATUS("/d/", errors[_i].status);
    fake_os_reset();
    EXPECT_FILE("/a", "a");
    EXPECT_FILE("/d/", "index");
    end_site();
}
END_TEST

START_TEST(a_rename_that_disturbs_is_tried_again)
{
    put_file("a", "a");
    serve(NULL);
    fake_os_fail(FAKE_SYSCALL, 1, 3, EAGAIN);
    EXPECT_FILE("/a", "a");
    end_site();
}
END_TEST

static const struct {
    enum fake_call call;
    unsigned nth;
} failures[] = {{FAKE_FSTAT, 1}, {FAKE_FSTAT, 2}, {FAKE_PREAD, 1}};

START_TEST(f9_what_cannot_be_read_is_500)
{
    put_file("a", "a");
    serve(NULL);
    fake_os_fail(failures[_i].call, failures[_i].nth, 1, EIO);
    EXPECT_STATUS("/a", 500);
    EXPECT_FILE("/a", "a");
    end_site();
}
END_TEST

START_TEST(short_reads_make_no_short_file)
{
    put_large("a", 1000);
    serve(NULL);
    fake_os_limit(FAKE_PREAD, 7);
    get("/a", "");
    ck_assert_uint_eq(reply.length, 1000);
    ck_assert_uint_eq(matching(reply.body, 0, 1000), 1000);
    end_site();
}
END_TEST

/* When a call fails, the reply is the file or an error status, and the next reply is the file. */
START_TEST(any_call_may_fail)
{
    static const enum fake_call kinds[] = {FAKE_SYSCALL, FAKE_OPENAT, FAKE_FSTAT, FAKE_PREAD,
                                           FAKE_CLOCK_GETTIME};
    static const int wrong[] = {EIO, EMFILE, EACCES, EAGAIN};
    unsigned nth = 0;
    unsigned injected;

    put_file("index.html", "plain");
    put_file("index.html.br", "br");
    serve(&(struct sxe_http_files_config){.listing = true});
    do {
        fake_os_reset();
        fake_os_sweep(kinds, 5, ++nth, false, wrong[_i]);
        grow_old();
        get("/", "Accept-Encoding: br\r\n");
        injected = fake_os_injected();
        fake_os_reset();
        if (reply.status == 200)
            ck_assert(strcmp(reply.body, "plain") == 0 || strcmp(reply.body, "br") == 0);
        else
            ck_assert(reply.status == 403 || reply.status == 500 || reply.status == 503);
        grow_old();
        get("/", "Accept-Encoding: br\r\n");
        ck_assert_str_eq(reply.body, "br");
    } while (injected > 0);
    ck_assert_uint_gt(nth, 5);
    end_site();
}
END_TEST

START_TEST(without_threads_it_is_503)
{
    put_file("a", "a");
    fake_os_fail(FAKE_PTHREAD_CREATE, 1, 0, EAGAIN);
    serve(NULL);
    EXPECT_STATUS("/a", 503);
    ck_assert_str_eq(field("Retry-After"), "1");
    fake_os_reset();
    fake_time_advance(UINT64_C(2000000000));
    EXPECT_FILE("/a", "a");
    end_site();
}
END_TEST

START_TEST(f9_a_sendfile_that_fails_ends_the_connection_early)
{
    int peer;

    put_large("a", 1000000);
    serve(NULL);
    fake_os_fail(FAKE_SENDFILE, 1, 0, EIO);
    peer = connect_client();
    send_request(peer, "GET", "/a", "");
    ck_assert_uint_lt(peer_receive(peer, reply.text, REPLY_SIZE - 1), 1000000);
    close(peer);
    end_site();
}
END_TEST

/* ---- Without openat2 ---- */

static const int missing[] = {ENOSYS, EPERM};

START_TEST(without_openat2_no_link_is_followed)
{
    char path[400];

    put_file("a", "a");
    put_directory("d");
    put_directory("d/e");
    put_file("d/e/f", "deep");
    put_file("d/index.html", "index");
    put_file("d/index.html.gz", "gz");
    put_link("link", "a");
    put_link("up", "..");
    put_link("directory", "d");
    put_link("a.br", "/etc/passwd");
    fake_os_fail(FAKE_SYSCALL, 1, 0, missing[_i]);
    serve(&(struct sxe_http_files_config){.listing = true});
    ck_assert(!site.files->has_openat2);
    EXPECT_FILE("/a", "a");
    ck_assert_ptr_null(field("Vary"));
    EXPECT_FILE("/d/e/f", "deep");
    EXPECT_FILE("/d/", "index");
    get("/d/", "Accept-Encoding: gzip\r\n");
    ck_assert_str_eq(reply.body, "gz");
    EXPECT_STATUS("/d/e/", 200);
    EXPECT_STATUS("/", 200);
    EXPECT_STATUS("/d", 301);
    EXPECT_STATUS("/link", 404);
    EXPECT_STATUS("/link/", 404);
    EXPECT_STATUS("/directory/", 404);
    EXPECT_STATUS("/directory/e/f", 404);
    EXPECT_STATUS("/up/", 404);
    EXPECT_STATUS("/a/", 404);
    EXPECT_STATUS("/none/a", 404);
    memset(path, 'x', sizeof(path));
    memcpy(path, "/d/", 3);
    path[399] = '\0';
    EXPECT_STATUS(path, 404);
    end_site();
}
END_TEST

/* ---- Files that others change ---- */

START_TEST(f9_a_file_that_shrinks_while_it_is_sent_ends_the_connection)
{
    size_t left = _i == 0 ? 0 : BIG / 2;
    size_t length;
    int slow;

    put_large("a", BIG);
    serve(NULL);
    slow = connect_client();
    send_request(slow, "GET", "/a", "");
    while (site.files->memory == 0 && entries_in(SXE__HTTP_FILE_BUSY) == 0)
        turn(1);
    ck_assert_int_eq(truncate(path_of("a"), (off_t)left), 0);
    length = peer_receive(slow, reply.text, REPLY_SIZE - 1);
    reply.text[length] = '\0';
    reply.body = strstr(reply.text, "\r\n\r\n") + 4;
    reply.length = length - (size_t)(reply.body - reply.text);
    ck_assert_uint_lt(reply.length, BIG);
    ck_assert_uint_eq(matching(reply.body, 0, reply.length), reply.length);
    close(slow);
    grow_old();
    get("/a", "");
    ck_assert_uint_eq(reply.length, left);
    end_site();
}
END_TEST

/* Write a file of one letter; a reply of mixed letters would be a mixture of two files. */
static void
write_letters(const char *name, char letter, size_t length)
{
    static char letters[LETTERS];

    memset(letters, letter, length);
    put_bytes(name, letters, length);
}

START_TEST(f9_of_a_thousand_files_that_are_replaced_none_is_mixed)
{
    unsigned small_max = _i == 0 ? 100 : LETTERS;

    write_letters("a", 'A', LETTERS);
    serve(&(struct sxe_http_files_config){.small_max = small_max, .revalidate_ms = 1});
    for (unsigned i = 0; i < 1000; i++) {
        char letter = (char)('A' + i % 26);
        size_t length = 1 + i * 7919 % LETTERS;
        int peer = connect_client();

        send_request(peer, "GET", "/a", "Connection: close\r\n");
        turn(1 + i % 3);
        write_letters("new", letter, length);
        ck_assert_int_eq(rename(path_of("new"), path_of("a")), 0);
        receive_reply(peer, true);
        ck_assert_uint_eq(reply.status, 200);
        ck_assert_uint_eq(strspn(reply.body, (char[]){reply.body[0], '\0'}), reply.length);
    }
    end_site();
}
END_TEST

START_TEST(a_file_with_less_than_its_size_ends_the_connection)
{
    static const char directory[] = "/sys/devices/system/cpu";
    char text[1024] = "";
    int peer;

    if (access("/sys/devices/system/cpu/online", R_OK) < 0) {
        remove_site();
        return;
    }
    serve(&(struct sxe_http_files_config){.root = directory});
    peer = connect_client();
    send_request(peer, "GET", "/online", "");
    ck_assert_uint_lt(peer_receive(peer, text, sizeof(text) - 1), sizeof(text) - 1);
    ck_assert_ptr_nonnull(strstr(text, "HTTP/1.1 200 OK"));
    close(peer);
    end_site();
}
END_TEST

/* ---- Replies that do not fit the output buffer ---- */

START_TEST(without_room_for_its_fields_a_reply_is_500)
{
    struct sxe_http_config http = {.connections = 4, .fields_max = 60};

    put_large("a.txt", 1000);
    serve_with(NULL, &http);
    EXPECT_STATUS("/a.txt", 500);
    ck_assert_str_eq(reply.body, "500 Internal Server Error\n");
    ck_assert_ptr_null(field("ETag"));
    get("/a.txt", "If-Modified-Since: " OLD_TEXT "\r\n");
    ck_assert_uint_eq(reply.status, 500);
    get("/a.txt", "Range: bytes=0-1\r\n");
    ck_assert_uint_eq(reply.status, 500);
    get("/a.txt", "Range: bytes=0-1,5-6\r\n");
    ck_assert_uint_eq(reply.status, 500);
    end_site();
}
END_TEST

START_TEST(parts_that_have_no_room_end_the_connection_early)
{
    struct sxe_config loop = SXE_CONFIG_DEFAULT;
    struct sxe_http_config http = {.connections = 4};
    unsigned whole = 0;
    unsigned cut = 0;

    loop.output_max = 16384;
    loop.output_pause = 8192;
    sxe_configure(&loop);
    put_large("a", 16384); /* small enough to be copied, not sent by sendfile */
    serve_with(NULL, &http);
    /* The buffer is full in the second part's bytes, in its head, in the last line, or not at
     * all. */
    for (unsigned first = 14000; first < 16000; first += 20) {
        char range[100];
        int peer = connect_client();
        size_t length;

        snprintf(range, sizeof(range), "Range: bytes=0-%u,16050-16350\r\nConnection: close\r\n",
                 first);
        send_request(peer, "GET", "/a", range);
        length = peer_receive(peer, reply.text, REPLY_SIZE - 1);
        reply.text[length] = '\0';
        if (length > first && strcmp(reply.text + length - 4, "--\r\n") == 0)
            whole++;
        else
            cut++;
        close(peer);
    }
    ck_assert_uint_gt(whole, 0);
    ck_assert_uint_gt(cut, 20);
    end_site();
}
END_TEST

/* ---- Configurations that are refused ---- */

static char long_prefix[4097];
static const char *const long_index[] = {
    "a.html",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "x"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "x"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "x",
    NULL,
};

static const struct {
    struct sxe_http_files_config config;
    int error;
} impossible[] = {
    {{.root = NULL}, EINVAL},
    {{.root = "/none"}, ENOENT},
    {{.root = "/etc/passwd"}, ENOTDIR},
    {{.root = "/", .entries_max = 1}, EINVAL},
    {{.root = "/", .entries_max = 1000001}, EINVAL},
    {{.root = "/", .small_max = 16777217}, EINVAL},
    {{.root = "/", .waiting_max = 10000001}, EINVAL},
    {{.root = "/", .ranges_max = 257}, EINVAL},
    {{.root = "/", .index = long_index}, EINVAL},
    {{.root = "/", .prefix = long_prefix}, EINVAL},
    {{.root = "/", .types = "html"}, EINVAL},
    {{.root = "/", .types = "text/html html\ntext/\x01 a"}, EINVAL},
    {{.root = "/", .type_default = "none"}, EINVAL},
    {{.root = "/", .cache_control = "a\r\nB: c"}, EINVAL},
    {{.root = "/", .cache_control = "no-\x7f"}, EINVAL},
    {{.root = "/", .types_file = "/none"}, ENOENT},
    {{.root = "/", .types_file = "/"}, EISDIR},
};

START_TEST(an_impossible_configuration_makes_nothing)
{
    memset(long_prefix, 'x', sizeof(long_prefix) - 1);
    ck_assert_ptr_null(sxe_http_files_new(&impossible[_i].config));
    ck_assert_int_eq(errno, impossible[_i].error);
    ck_assert_uint_eq(fake_os_open_fds(), site.open_before);
    sxe_http_files_delete(NULL);
    remove_site();
}
END_TEST

START_TEST(a_root_that_may_not_be_searched_is_refused)
{
    struct sxe_http_files_config config = {.root = site.root};

    fake_os_fail(FAKE_SYSCALL, 1, 1, EACCES);
    ck_assert_ptr_null(sxe_http_files_new(&config));
    ck_assert_int_eq(errno, EACCES);
    ck_assert_uint_eq(fake_os_open_fds(), site.open_before);
    remove_site();
}
END_TEST

START_TEST(without_memory_it_makes_nothing)
{
    static const enum fake_call kinds[] = {FAKE_MALLOC, FAKE_CALLOC,         FAKE_REALLOC,
                                           FAKE_MMAP,   FAKE_POSIX_MEMALIGN, FAKE_ALIGNED_ALLOC};
    struct sxe_http_files_config config = {.listing = true, .types_file = "/etc/passwd"};
    struct sxe_http_files *files;
    unsigned nth = 0;

    config.root = site.root;
    put_file("types", "text/x a\n");
    config.types_file = path_of("types");
    do {
        fake_os_reset();
        fake_os_sweep(kinds, 6, ++nth, false, ENOMEM);
        files = sxe_http_files_new(&config);
        fake_os_sweep(kinds, 6, 0, false, 0);
        ck_assert(files != NULL || errno == ENOMEM);
    } while (files == NULL);
    ck_assert_uint_gt(nth, 6);
    sxe_http_files_delete(files);
    ck_assert_uint_eq(fake_os_open_fds(), site.open_before);
    remove_site();
}
END_TEST

START_TEST(what_is_not_configured_is_the_default)
{
    struct sxe_http_files_config config = {.root = site.root};
    struct sxe_http_files *files = sxe_http_files_new(&config);

    ck_assert_ptr_nonnull(files);
    ck_assert_uint_eq(files->config.entries_max, 1024);
    ck_assert_uint_eq(files->config.small_max, 65536);
    ck_assert_uint_eq(files->config.memory_max, 16777216);
    ck_assert_uint_eq(files->config.revalidate_ms, 1000);
    ck_assert_uint_eq(files->config.ranges_max, 16);
    ck_assert_uint_eq(files->config.waiting_max, 10000);
    ck_assert_str_eq(files->config.index[0], "index.html");
    ck_assert_ptr_null(files->config.index[1]);
    sxe_http_files_delete(files);
    remove_site();
}
END_TEST

START_TEST(its_plan_can_be_printed)
{
    struct sxe_http_files_config config = {.root = site.root, .listing = _i == 1};
    struct sxe_http_files *files = sxe_http_files_new(&config);
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");
    size_t bytes;

    ck_assert_ptr_nonnull(files);
    bytes = sxe_http_files_plan_print(files, out);
    fclose(out);
    ck_assert_uint_gt(bytes, 1024 * 65536);
    ck_assert_uint_eq(sxe_http_files_plan_print(files, NULL), bytes);
    ck_assert_ptr_nonnull(strstr(text, "http files "));
    ck_assert_ptr_nonnull(strstr(text, "http contents "));
    sxe_http_files_delete(files);
    remove_site();
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-file-fault");
    TCase *tcase = tcase_create("http-file-fault");

    tcase_add_checked_fixture(tcase, begin_site, NULL);
    tcase_add_loop_test(tcase, f9_what_the_system_says_of_a_name_has_its_status, 0,
                        sizeof(errors) / sizeof(errors[0]));
    tcase_add_test(tcase, a_rename_that_disturbs_is_tried_again);
    tcase_add_loop_test(tcase, f9_what_cannot_be_read_is_500, 0, 3);
    tcase_add_test(tcase, short_reads_make_no_short_file);
    tcase_add_loop_test(tcase, any_call_may_fail, 0, 4);
    tcase_add_test(tcase, without_threads_it_is_503);
    tcase_add_test(tcase, f9_a_sendfile_that_fails_ends_the_connection_early);
    tcase_add_loop_test(tcase, without_openat2_no_link_is_followed, 0, 2);
    tcase_add_test(tcase, a_root_that_may_not_be_searched_is_refused);
    tcase_add_loop_test(tcase, f9_a_file_that_shrinks_while_it_is_sent_ends_the_connection, 0, 2);
    tcase_add_loop_test(tcase, f9_of_a_thousand_files_that_are_replaced_none_is_mixed, 0, 2);
    tcase_add_test(tcase, a_file_with_less_than_its_size_ends_the_connection);
    tcase_add_test(tcase, without_room_for_its_fields_a_reply_is_500);
    tcase_add_test(tcase, parts_that_have_no_room_end_the_connection_early);
    tcase_add_loop_test(tcase, an_impossible_configuration_makes_nothing, 0,
                        sizeof(impossible) / sizeof(impossible[0]));
    tcase_add_test(tcase, without_memory_it_makes_nothing);
    tcase_add_test(tcase, what_is_not_configured_is_the_default);
    tcase_add_loop_test(tcase, its_plan_can_be_printed, 0, 2);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
