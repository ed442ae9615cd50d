/* SPDX-License-Identifier: MIT
 *
 * Static files: which methods and paths get which file, and which paths are not files.
 */
#include "http-file-site.h"
#include "test-main.h"

/* ---- Files ---- */

START_TEST(a_file_has_its_bytes_type_length_and_validators)
{
    const char *etag;

    put_file("a.txt", "Hello, World!");
    serve(NULL);
    get("/a.txt", "");
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_str_eq(reply.body, "Hello, World!");
    ck_assert_str_eq(field("Content-Type"), "text/plain; charset=utf-8");
    ck_assert_str_eq(field("Content-Length"), "13");
    ck_assert_str_eq(field("Last-Modified"), OLD_TEXT);
    etag = field("ETag");
    ck_assert_uint_eq(strlen(etag), 18);
    ck_assert(etag[0] == '"' && strspn(etag + 1, "0123456789abcdef") == 16 && etag[17] == '"');
    ck_assert_str_eq(field("X-Content-Type-Options"), "nosniff");
    ck_assert_str_eq(field("Accept-Ranges"), "bytes");
    ck_assert_ptr_null(field("Cache-Control"));
    ck_assert_ptr_null(field("Vary"));
    ck_assert_ptr_null(field("Content-Encoding"));
    end_site();
}
END_TEST

static const size_t sizes[] = {0,     1,     4095,  4096,   16383,   16384,  16385,
                               65535, 65536, 65537, 100000, 1048576, 3000001};

START_TEST(every_byte_of_a_file_arrives_whatever_its_size)
{
    size_t size = sizes[_i];

    put_large("a.bin", size);
    serve(NULL);
    for (unsigned times = 0; times < 3; times++) {
        get("/a.bin", "");
        ck_assert_uint_eq(reply.status, 200);
        ck_assert_uint_eq(reply.length, size);
        ck_assert_uint_eq(matching(reply.body, 0, size), size);
    }
    end_site();
}
END_TEST

START_TEST(head_says_what_get_would)
{
    size_t size = sizes[_i];
    char length[32];
    char etag[64];

    put_large("a.bin", size);
    serve(NULL);
    get("/a.bin", "");
    snprintf(etag, sizeof(etag), "%s", field("ETag"));
    snprintf(length, sizeof(length), "%zu", size);
    ask("HEAD", "/a.bin", "Range: bytes=0-0\r\n");
    ck_assert_uint_eq(reply.status, 200);
    ck_assert_str_eq(field("Content-Length"), length);
    ck_assert_str_eq(field("ETag"), etag);
    end_site();
}
END_TEST

START_TEST(a_small_file_leaves_in_one_write_with_its_head)
{
    put_file("a.txt", "Hello, World!");
    serve(NULL);
    get("/a.txt", "");
    fake_os_reset();
    get("/a.txt", "");
    ck_assert_uint_eq(fake_os_calls(FAKE_SENDFILE), 0);
    ck_assert_uint_eq(fake_os_calls(FAKE_SEND) + fake_os_calls(FAKE_SENDMSG), 1);
    end_site();
}
END_TEST

START_TEST(several_requests_of_a_connection_are_answered_in_order)
{
    char all[4096];
    int peer;
    size_t length;

    put_file("a", "first.");
    put_file("b", "second.");
    serve(NULL);
    peer = connect_client();
    send_request(peer, "GET", "/a", "");
    send_request(peer, "GET", "/b", "");
    send_request(peer, "GET", "/a", "");
    send_request(peer, "GET", "/none", "Connection: close\r\n");
    length = peer_receive(peer, all, sizeof(all) - 1);
    all[length] = '\0';
    ck_assert_ptr_nonnull(strstr(strstr(strstr(all, "first."), "second."), "first."));
    ck_assert_ptr_nonnull(strstr(all, "HTTP/1.1 404 Not Found"));
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_cache_control_is_sent_with_files)
{
    put_file("a.txt", "a");
    serve(&(struct sxe_http_files_config){.cache_control = "max-age=60"});
    get("/a.txt", "");
    ck_assert_str_eq(field("Cache-Control"), "max-age=60");
    get("/a.txt", "If-None-Match: *\r\n");
    ck_assert_uint_eq(reply.status, 304);
    ck_assert_str_eq(field("Cache-Control"), "max-age=60");
    get("/none", "");
    ck_assert_ptr_null(field("Cache-Control"));
    end_site();
}
END_TEST

/* ---- Methods ---- */

START_TEST(options_says_the_methods)
{
    serve(NULL);
    ask("OPTIONS", "/none", "");
    ck_assert_uint_eq(reply.status, 204);
    ck_assert_str_eq(field("Allow"), "GET, HEAD, OPTIONS");
    ask("OPTIONS", "*", "");
    ck_assert_uint_eq(reply.status, 204);
    end_site();
}
END_TEST

START_TEST(other_methods_are_405_and_unknown_ones_501)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "TRACE"};

    put_file("a.txt", "a");
    serve(NULL);
    for (unsigned i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        ask(methods[i], "/a.txt", "Content-Length: 0\r\n");
        ck_assert_uint_eq(reply.status, 405);
        ck_assert_str_eq(field("Allow"), "GET, HEAD, OPTIONS");
    }
    ask("BREW", "/a.txt", "");
    ck_assert_uint_eq(reply.status, 501);
    end_site();
}
END_TEST

/* ---- Names ---- */

START_TEST(a_name_is_what_the_path_says_when_it_is_decoded_once)
{
    put_file("a b.txt", "blank");
    put_file("\xc3\xa4.txt", "umlaut");
    put_file("%41.txt", "percent");
    put_file("a+b", "plus");
    put_file("\xff", "no UTF-8");
    put_directory("d");
    put_file("d/e", "inner");
    serve(NULL);
    EXPECT_FILE("/a%20b.txt", "blank");
    EXPECT_FILE("/%C3%a4.txt", "umlaut");
    EXPECT_FILE("/%2541.txt", "percent");
    EXPECT_FILE("/a+b", "plus");
    EXPECT_FILE("/%ff", "no UTF-8");
    EXPECT_FILE("/d/e", "inner");
    EXPECT_FILE("//d///e", "inner");
    EXPECT_FILE("/d/../d/./e", "inner");
    EXPECT_FILE("/%64/e?query=../../x", "inner");
    EXPECT_FILE("http://a/d/e", "inner");
    end_site();
}
END_TEST

static const struct {
    const char *path;
    unsigned status;
} escapes[] = {
    {"/../../../../etc/passwd", 400},
    {"/%2e%2e/%2e%2e/%2e%2e/etc/passwd", 400},
    {"/.%2e/.%2E/etc/passwd", 400},
    {"/d/%2e%2e/%2e%2e/%2e%2e/etc/passwd", 400},
    {"/..%2f..%2f..%2fetc%2fpasswd", 400},
    {"/%2e%2e%2f%2e%2e%2fetc/passwd", 400},
    {"/%252e%252e%252fetc%252fpasswd", 404},
    {"/..%252f..%252fetc/passwd", 404},
    {"/..%5c..%5cetc%5cpasswd", 400},
    {"/..%c0%af..%c0%afetc/passwd", 404},
    {"/%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd", 404},
    {"/..%e0%80%af..%e0%80%afetc/passwd", 404},
    {"/....//....//etc/passwd", 404},
    {"/..;/..;/etc/passwd", 404},
    {"/.../.../etc/passwd", 404},
    {"/a.txt%00.html", 400},
    {"/%00", 400},
    {"/d%2fe", 400},
    {"//etc/passwd", 404},
    {"/d/e/", 404},
    {"/d/e/f", 404},
    {"/a.txt/..%00/", 400},
    {"/%zz", 400},
    {"/%", 400},
    {"/out", 404},
    {"/out/passwd", 404},
    {"/up/../a.txt", 200},
    {"/up/secret", 404},
    {"/proc/%72oot/etc/passwd", 404},
    {"/magic/etc/passwd", 404},
    {"/loop", 404},
    {"/loop/x", 404},
    {"/dangling", 404},
    {"/absolute", 404},
};

START_TEST(no_path_leads_out_of_the_root)
{
    put_directory("d");
    put_file("d/e", "inner");
    put_file("a.txt", "a");
    put_link("out", "/etc");
    put_link("up", "..");
    put_link("magic", "/proc/self/root");
    put_link("loop", "loop");
    put_link("dangling", "nowhere");
    put_link("absolute", "/etc/passwd");
    serve(NULL);
    EXPECT_STATUS(escapes[_i].path, escapes[_i].status);
    ck_assert_ptr_null(strstr(reply.body, "root:"));
    end_site();
}
END_TEST

START_TEST(links_inside_the_root_are_followed)
{
    put_directory("d");
    put_directory("f");
    put_file("d/e", "inner");
    put_link("link", "d/e");
    put_link("f/up", "../d/e");
    put_link("directory", "d");
    serve(NULL);
    EXPECT_FILE("/link", "inner");
    EXPECT_FILE("/f/up", "inner");
    EXPECT_FILE("/directory/e", "inner");
    end_site();
}
END_TEST

START_TEST(an_absolute_link_leads_out_even_if_it_comes_back)
{
    put_file("a.txt", "a");
    put_link("link", path_of("a.txt"));
    serve(NULL);
    EXPECT_STATUS("/link", 404);
    end_site();
}
END_TEST

START_TEST(names_that_are_too_long_are_404)
{
    char path[12000];

    serve(NULL);
    memset(path, 'x', sizeof(path));
    path[0] = '/';
    path[300] = '\0';
    EXPECT_STATUS(path, 404);
    path[300] = 'x';
    path[4096] = '\0';
    EXPECT_STATUS(path, 404);
    path[4096] = 'x';
    path[8000] = '\0';
    EXPECT_STATUS(path, 404);
    end_site();
}
END_TEST

START_TEST(a_path_longer_than_any_name_is_404)
{
    struct sxe_config loop = SXE_CONFIG_DEFAULT;
    struct sxe_http_config http = {.connections = 4, .head = {32000, 32000, 100}};
    char *text = malloc(32000);
    int peer;

    loop.chunk_size = 32768;
    sxe_configure(&loop);
    serve_with(NULL, &http);
    peer = connect_client();
    memset(text, 'x', 32000);
    memcpy(text, "GET /", 5);
    snprintf(text + 20000, 100, " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    peer_send(peer, text, strlen(text));
    receive_reply(peer, true);
    ck_assert_uint_eq(reply.status, 404);
    free(text);
    end_site();
}
END_TEST

START_TEST(hidden_names_are_404_but_for_well_known)
{
    put_file(".secret", "no");
    put_directory(".git");
    put_file(".git/config", "no");
    put_directory("d");
    put_file("d/.secret", "no");
    put_directory(".well-known");
    put_file(".well-known/security.txt", "yes");
    put_file(".well-known/.secret", "no");
    put_directory("d/.well-known");
    put_file("d/.well-known/a", "no");
    put_file("a", "one letter");
    serve(NULL);
    EXPECT_STATUS("/.secret", 404);
    EXPECT_STATUS("/%2esecret", 404);
    EXPECT_STATUS("/.git/config", 404);
    EXPECT_STATUS("/.git/", 404);
    EXPECT_STATUS("/d/.secret", 404);
    EXPECT_STATUS("/d/.well-known/a", 404);
    EXPECT_STATUS("/.well-known/.secret", 404);
    EXPECT_STATUS("/.well-known-not/a", 404);
    EXPECT_STATUS("/.well-known", 301);
    EXPECT_FILE("/.well-known/security.txt", "yes");
    EXPECT_FILE("/a", "one letter");
    end_site();
}
END_TEST

START_TEST(hidden_names_are_there_when_that_is_wanted)
{
    put_file(".secret", "yes");
    serve(&(struct sxe_http_files_config){.dot_files = true});
    EXPECT_FILE("/.secret", "yes");
    end_site();
}
END_TEST

START_TEST(what_is_no_regular_file_is_404)
{
    struct sockaddr_un {
        sa_family_t family;
        char path[108];
    } address = {.family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(mkfifo(path_of("fifo"), 0666), 0);
    ck_assert_int_eq(mknod(path_of("null"), S_IFCHR | 0666, 1 << 8 | 3), 0);
    snprintf(address.path, sizeof(address.path), "%s", path_of("socket"));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)(void *)&address, sizeof(address)), 0);
    close(fd);
    serve(NULL);
    EXPECT_STATUS("/fifo", 404);
    EXPECT_STATUS("/null", 404);
    EXPECT_STATUS("/socket", 404);
    EXPECT_STATUS("/fifo/", 404);
    end_site();
}
END_TEST

/* ---- Directories ---- */

START_TEST(a_directory_is_its_index)
{
    put_file("index.html", "home");
    put_directory("d");
    put_file("d/index.html", "<p>");
    serve(NULL);
    EXPECT_FILE("/", "home");
    EXPECT_FILE("/?x", "home");
    EXPECT_FILE("/d/", "<p>");
    ck_assert_str_eq(field("Content-Type"), "text/html; charset=utf-8");
    EXPECT_FILE("/d/", "<p>");
    EXPECT_FILE("/d/index.html", "<p>");
    end_site();
}
END_TEST

START_TEST(the_first_index_that_is_a_file_counts)
{
    static const char *const index[] = {"a.html", "b.txt", NULL};

    put_directory("d");
    put_directory("d/a.html");
    put_file("d/b.txt", "b");
    put_directory("e");
    put_file("e/b.txt", "e b");
    put_file("e/a.html", "e a");
    serve(&(struct sxe_http_files_config){.index = index});
    EXPECT_FILE("/d/", "b");
    ck_assert_str_eq(field("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_FILE("/e/", "e a");
    end_site();
}
END_TEST

START_TEST(a_directory_without_index_and_listing_is_403)
{
    put_directory("d");
    serve(NULL);
    EXPECT_STATUS("/", 403);
    EXPECT_STATUS("/d/", 403);
    EXPECT_STATUS("/none/", 404);
    end_site();
}
END_TEST

static const struct {
    const char *target;
    const char *location;
} redirects[] = {
    {"/d", "/d/"},
    {"/d?a=1&b", "/d/?a=1&b"},
    {"/d?", "/d/?"},
    {"//d", "/d/"},
    {"/x/../d", "/d/"},
    {"//a.example/%2e%2e/d", "/d/"},
    {"/a%20%22b", "/a%20%22b/"},
    {"/%0d%0aSet-Cookie:x", "/%0D%0ASet-Cookie%3Ax/"},
    {"http://a/d", "/d/"},
};

START_TEST(a_directory_without_its_slash_is_redirected)
{
    put_directory("d");
    put_directory("a \"b");
    put_directory("\r\nSet-Cookie:x");
    serve(NULL);
    get(redirects[_i].target, "");
    ck_assert_uint_eq(reply.status, 301);
    ck_assert_str_eq(field("Location"), redirects[_i].location);
    ck_assert_ptr_null(field("Set-Cookie"));
    end_site();
}
END_TEST

START_TEST(a_redirect_that_has_no_room_is_414)
{
    struct sxe_http_config http = {.connections = 4, .fields_max = 300};
    char target[400] = "/d?";

    put_directory("d");
    serve_with(NULL, &http);
    memset(target + 3, 'x', sizeof(target) - 4);
    EXPECT_STATUS(target, 414);
    end_site();
}
END_TEST

/* ---- Prefixes ---- */

static const char *const prefixes[] = {"/static", "static", "/static/", "//static//"};

START_TEST(a_prefix_is_taken_off)
{
    put_file("index.html", "home");
    put_file("a", "a");
    put_directory("d");
    put_directory("static");
    put_file("static/b", "b");
    serve(&(struct sxe_http_files_config){.prefix = prefixes[_i]});
    EXPECT_FILE("/static/a", "a");
    EXPECT_FILE("/%73tatic/a", "a");
    EXPECT_FILE("/static/", "home");
    EXPECT_FILE("/static/static/b", "b");
    EXPECT_STATUS("/static/../a", 404);
    EXPECT_STATUS("/a", 404);
    EXPECT_STATUS("/", 404);
    EXPECT_STATUS("/statica", 404);
    EXPECT_STATUS("/stati", 404);
    EXPECT_STATUS("/static?q", 301);
    ck_assert_str_eq(field("Location"), "/static/?q");
    EXPECT_STATUS("/static/d", 301);
    ck_assert_str_eq(field("Location"), "/static/d/");
    end_site();
}
END_TEST

START_TEST(it_is_a_handler_of_a_route_too)
{
    struct sxe_http_files_config config = {.root = site.root, .prefix = "/static"};
    struct sxe_http_files *files = sxe_http_files_new(&config);
    struct sxe_http_route_options options = {0};
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_config http = {.connections = 4, .router = router};

    put_file("a", "a");
    ck_assert_ptr_nonnull(files);
    options.user = files;
    ck_assert_int_eq(
        sxe_http_router_add(router, "GET", "/static/{path...}", sxe_http_files_handle, &options),
        0);
    serve_with(NULL, &http);
    EXPECT_FILE("/static/a", "a");
    EXPECT_FILE("/a", "a");
    site.others = files;
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

#define GIVEN(path, status)                  \
    {                                        \
        {(path), sizeof(path) - 1}, (status) \
    }

static const struct {
    struct sxe_span path;
    unsigned status;
} given[] = {
    GIVEN("/d/e", 200),     GIVEN("/d/%65", 200),       GIVEN("/d/../d/e", 200),
    GIVEN("//d//e", 200),   GIVEN("/d/e\0x", 400),      GIVEN("/d\\e", 400),
    GIVEN("/d%2Fe", 400),   GIVEN("/d/.e", 404),        GIVEN("/", 403),
    GIVEN("/d", 404),       GIVEN("/given", 301),       GIVEN("/ven", 404),
    GIVEN("/d/given", 404), GIVEN("d/e", 400),          GIVEN("", 400),
    GIVEN("/../d/e", 400),  GIVEN("/.well-known", 404),
};

static void
never(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    SXE_UNUSED_PARAMETER(request);
    SXE_UNUSED_PARAMETER(response);
    ck_abort_msg("on_done is not the handler's any more: %d", result);
}

static enum sxe_http_verdict
send_given(struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (given[*(int *)request->user].status == 200)
        response->on_done = never;
    return sxe_http_files_send(site.files, request, given[*(int *)request->user].path);
}

START_TEST(a_handler_may_give_any_bytes_for_a_path)
{
    struct sxe_http_route_options options = {.user = &_i};
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_config http = {.connections = 4, .router = router};

    put_directory("d");
    put_directory("given");
    put_directory("ven");
    put_directory("d/given");
    put_file("d/e", "inner");
    put_file("d/.e", "hidden");
    put_file("d\\e", "backslash");
    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/given", send_given, &options), 0);
    serve_with(NULL, &http);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_STATUS("/given", given[_i].status);
        if (given[_i].status == 200)
            ck_assert_str_eq(reply.body, "inner");
    }
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

static enum sxe_http_verdict
send_directory(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_UNUSED_PARAMETER(response);
    return sxe_http_files_send(site.files, request, (struct sxe_span){"/d", 2});
}

/* A handler sends a directory without its slash for any path; some paths cannot be redirected. */
START_TEST(a_directory_for_a_path_that_is_no_name_is_not_found)
{
    struct sxe_http_router *router = sxe_http_router_new();
    struct sxe_http_config http = {.connections = 4, .router = router};
    char path[6000];

    ck_assert_int_eq(sxe_http_router_add(router, "GET", "/*", send_directory, NULL), 0);
    put_directory("d");
    serve_with(NULL, &http);
    EXPECT_STATUS("/x/d", 301);
    EXPECT_STATUS("/x", 404);
    EXPECT_STATUS("/a%2Fd", 404);
    EXPECT_STATUS("/a%00/d", 404);
    EXPECT_STATUS("http://h", 404);
    memset(path, '!', sizeof(path));
    path[0] = '/';
    snprintf(path + sizeof(path) - 3, 3, "/d");
    EXPECT_STATUS(path, 414);
    end_site();
    sxe_http_router_delete(router);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-file");
    TCase *tcase = tcase_create("http-file");

    tcase_add_checked_fixture(tcase, begin_site, NULL);
    tcase_add_test(tcase, a_file_has_its_bytes_type_length_and_validators);
    tcase_add_loop_test(tcase, every_byte_of_a_file_arrives_whatever_its_size, 0,
                        sizeof(sizes) / sizeof(sizes[0]));
    tcase_add_loop_test(tcase, head_says_what_get_would, 0, sizeof(sizes) / sizeof(sizes[0]));
    tcase_add_test(tcase, a_small_file_leaves_in_one_write_with_its_head);
    tcase_add_test(tcase, several_requests_of_a_connection_are_answered_in_order);
    tcase_add_test(tcase, a_cache_control_is_sent_with_files);
    tcase_add_test(tcase, options_says_the_methods);
    tcase_add_test(tcase, other_methods_are_405_and_unknown_ones_501);
    tcase_add_test(tcase, a_name_is_what_the_path_says_when_it_is_decoded_once);
    tcase_add_loop_test(tcase, no_path_leads_out_of_the_root, 0,
                        sizeof(escapes) / sizeof(escapes[0]));
    tcase_add_test(tcase, links_inside_the_root_are_followed);
    tcase_add_test(tcase, an_absolute_link_leads_out_even_if_it_comes_back);
    tcase_add_test(tcase, names_that_are_too_long_are_404);
    tcase_add_test(tcase, a_path_longer_than_any_name_is_404);
    tcase_add_test(tcase, hidden_names_are_404_but_for_well_known);
    tcase_add_test(tcase, hidden_names_are_there_when_that_is_wanted);
    tcase_add_test(tcase, what_is_no_regular_file_is_404);
    tcase_add_test(tcase, a_directory_is_its_index);
    tcase_add_test(tcase, the_first_index_that_is_a_file_counts);
    tcase_add_test(tcase, a_directory_without_index_and_listing_is_403);
    tcase_add_loop_test(tcase, a_directory_without_its_slash_is_redirected, 0,
                        sizeof(redirects) / sizeof(redirects[0]));
    tcase_add_test(tcase, a_redirect_that_has_no_room_is_414);
    tcase_add_loop_test(tcase, a_prefix_is_taken_off, 0, sizeof(prefixes) / sizeof(prefixes[0]));
    tcase_add_test(tcase, it_is_a_handler_of_a_route_too);
    tcase_add_test(tcase, a_directory_for_a_path_that_is_no_name_is_not_found);
    tcase_add_loop_test(tcase, a_handler_may_give_any_bytes_for_a_path, 0,
                        sizeof(given) / sizeof(given[0]));
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
