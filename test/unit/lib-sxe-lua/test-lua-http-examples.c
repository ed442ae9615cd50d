/* SPDX-License-Identifier: MIT
 *
 * examples/lua: each example runs unchanged, and does what its comment says.
 */
#include "lua-site.h"

#include <dirent.h>
#include <stdlib.h>

/* Run an example at port 0. A C server serves the handler if the example returns one. */
static struct sxe_http *
run_example(const char *path, const char *argument)
{
    static char program[100], port[] = "0", last[100];
    static char *argv[] = {program, port, last, NULL};
    struct sxe_http_config config = {
        .handler = sxe_lua_http_handle, .stream = true, .connections = 100};

    snprintf(program, sizeof(program), "%s", path);
    snprintf(last, sizeof(last), "%s", argument);
    load_site("", &(struct sxe_lua_config){.tasks = 64, .argc = 3, .argv = argv});
    ck_assert_msg(sxe_lua_load(lua, path) == 0, "%s", log_line(0));
    site.http = sxe__lua_http.servers[0].http;
    if (site.http != NULL) {
        start_site();
        return NULL;
    }
    site.http = sxe_http_new(&config);
    start_site();
    ck_assert_int_eq(sxe_http_listen(site.http, "127.0.0.1", 0), 0);
    return site.http;
}

static void
end_example(struct sxe_http *http)
{
    ck_assert_msg(captured.number == 0, "%s", log_line(0));
    end_script();
    sxe_http_delete(http);
}

START_TEST(hello)
{
    struct sxe_http *http = run_example("examples/lua/hello.lua", "");

    EXPECT_TEXT("/", "Hello, World!\n");
    end_example(http);
}
END_TEST

START_TEST(router)
{
    struct sxe_http *http = run_example("examples/lua/router.lua", "");
    const char *reply = ask(ASK("GET /users/1", "", ""));

    EXPECT_IN(reply, "404 Not Found");
    EXPECT_IN(reply, "\"error\":\"no such user\"");
    reply = ask(ASK("POST /users", "Content-Length: 14\r\n", "{\"name\":\"Ann\"}"));
    EXPECT_IN(reply, "201 Created\r\n");
    EXPECT_IN(reply, "Location: /users/1\r\n");
    EXPECT_IN(reply, "X-Request-Id: ");
    EXPECT_IN(ask(ASK("GET /users/1", "", "")), "\"name\":\"Ann\"");
    EXPECT_IN(ask(ASK("GET /users/1", "", "")), "\"id\":1");
    end_example(http);
}
END_TEST

START_TEST(random_number)
{
    struct sxe_http *http = run_example("examples/lua/random.lua", "");
    const char *reply;
    int peers[5];

    for (int i = 0; i < 5; i++) {
        peers[i] = client();
        say(peers[i], ASK("GET /random?number=50", "", ""));
    }
    PEER_EXPECT_SILENCE(peers[0]);
    wait_ms(1100);
    for (int i = 0; i < 5; i++) {
        reply = strstr(hear(peers[i]), "\r\n\r\n") + 4;
        ck_assert_uint_eq(strspn(reply, "0123456789"), strlen(reply));
        ck_assert_int_le(atol(reply), 50);
        close(peers[i]);
    }
    EXPECT_IN("0", strstr(ask(ASK("GET /", "", "")), "\r\n\r\n") + 4);
    end_example(http);
}
END_TEST

START_TEST(static_files)
{
    struct sxe_http *http = run_example("examples/lua/static.lua", "examples/lua");
    const char *reply;
    int peer = client();

    say(peer, ASK("GET /hello.lua", "", ""));
    while (connections_in(SXE__HTTP_HANDLING) > 0) {
        usleep(1000);
        turn(1);
    }
    reply = hear(peer);
    EXPECT_IN(reply, "Cache-Control: max-age=60\r\n");
    EXPECT_IN(reply, "return \"Hello, World!\\n\"");
    close(peer);
    end_example(http);
}
END_TEST

START_TEST(sse)
{
    struct sxe_http *http = run_example("examples/lua/sse.lua", "");
    char got[2000] = "";
    int peer = client();

    say(peer, GET("/"));
    wait_ms(2500);
    turn(3);
    take_dates_out(got, peer_receive(peer, got, 250));
    EXPECT_IN(got, "event: tick\ndata: 08:49:37\n\n");
    EXPECT_IN(got, "event: tick\ndata: 08:49:38\n\n");
    EXPECT_IN(got, "event: tick\ndata: 08:49:39\n\n");
    peer_reset(peer);
    turn(5);
    end_example(http);
}
END_TEST

/* A temporary directory, removed with its files. */
static char directory[] = "/tmp/sxe-lua-examples-XXXXXX";

static void
remove_directory(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* The reply to a request for which threads have to work. */
static const char *
ask_slowly(const char *request)
{
    const char *reply;
    int peer = client();

    say(peer, request);
    turn(2);
    while (connections_in(SXE__HTTP_HANDLING) > 0) {
        usleep(100);
        turn(1);
    }
    reply = hear(peer);
    close(peer);
    turn(3);
    return reply;
}

START_TEST(read_sort)
{
    struct sxe_http *http;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    http = run_example("examples/lua/read-sort.lua", directory);
    EXPECT_IN(ask_slowly(ASK("GET /fruit", "", "")), "404 Not Found");
    EXPECT_IN(ask_slowly(ASK("POST /fruit", "Content-Length: 11\r\n", "pear,apple,")), "204 No");
    EXPECT_IN(ask_slowly(ASK("POST /fruit", "Content-Length: 3\r\n", "fig")), "204 No Content");
    EXPECT_IN(ask_slowly(ASK("GET /fruit", "", "")), "\r\n\r\napple,fig,pear");
    EXPECT_IN(ask_slowly(ASK("GET /.fruit", "", "")), "404 Not Found");
    end_example(http);
    remove_directory();
}
END_TEST

START_TEST(counter)
{
    struct sxe_http *http = run_example("examples/lua/counter.lua", "");
    char request[100];

    EXPECT_TEXT("/a", "/a: 1\n");
    EXPECT_TEXT("/b", "/b: 1\n");
    EXPECT_TEXT("/a", "/a: 2\n");
    for (int i = 0; i < 999; i++) {
        snprintf(request, sizeof(request), ASK("GET /%d", "", ""), i);
        ask(request);
    }
    EXPECT_TEXT("/a", "/a: 3\n");
    EXPECT_TEXT("/b", "/b: 1\n");
    end_example(http);
}
END_TEST

START_TEST(rate_limit)
{
    struct sxe_http *http = run_example("examples/lua/rate-limit.lua", "");
    const char *reply;
    char wanted[20];

    for (int i = 9; i >= 0; i--) {
        snprintf(wanted, sizeof(wanted), "%d left\n", i);
        EXPECT_TEXT("/", wanted);
    }
    reply = ask(ASK("GET /", "", ""));
    EXPECT_IN(reply, "429 Too Many Requests\r\n");
    EXPECT_IN(reply, "Retry-After: 10\r\n");
    wait_ms(11000);
    EXPECT_TEXT("/", "9 left\n");
    wait_ms(11000);
    end_example(http);
}
END_TEST

START_TEST(pages)
{
    struct sxe_http *http = run_example("examples/lua/pages.lua", "");
    const char *reply = ask_slowly(ASK("GET /", "", ""));

    EXPECT_IN(reply, "Content-Type: text/html; charset=utf-8\r\n");
    EXPECT_IN(reply, "<title>1 notes</title>\n\n<ul>\n<li>buy &lt;milk&gt;\n</ul>\n");
    EXPECT_IN(ask(ASK("POST /", "Content-Length: 8\r\n", "text=a+b")), "303 See Other");
    EXPECT_IN(ask_slowly(ASK("GET /", "", "")), "<li>buy &lt;milk&gt;\n<li>a b\n</ul>\n");
    end_example(http);
}
END_TEST

/* Turn the loop until there are `number` files in the directory. */
static void
wait_for_files(int number)
{
    int files = -1;

    while (files != number) {
        struct dirent **names;

        turn(1);
        usleep(100);
        files = scandir(directory, &names, NULL, NULL) - 2;
        for (int n = 0; n < files + 2; n++)
            free(names[n]);
        free(names);
    }
}

START_TEST(upload)
{
    struct sxe_http *http;
    char path[100], got[20] = "";
    FILE *file;
    int peer;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    http = run_example("examples/lua/upload.lua", directory);
    peer = client();
    say(peer, ASK("PUT /film", "Content-Length: 10\r\n", "01234"));
    while (strstr(ask(ASK("GET /film/progress", "", "")), "\"got\":5") == NULL)
        usleep(100);
    EXPECT_IN(ask(ASK("GET /film/progress", "", "")), "\"size\":10");
    say(peer, "56789");
    turn(2);
    while (connections_in(SXE__HTTP_HANDLING) > 0) {
        usleep(100);
        turn(1);
    }
    EXPECT_IN(hear(peer), "201 Created");
    close(peer);
    EXPECT_IN(ask(ASK("GET /film/progress", "", "")), "404 Not Found");
    snprintf(path, sizeof(path), "%s/film", directory);
    file = fopen(path, "r");
    ck_assert_uint_eq(fread(got, 1, sizeof(got), file), 10);
    ck_assert_str_eq(got, "0123456789");
    fclose(file);
    peer = client();
    say(peer, ASK("PUT /film", "Content-Length: 10\r\n", "01234"));
    wait_for_files(2);
    peer_reset(peer);
    wait_for_files(1);
    end_example(http);
    remove_directory();
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("lua-http-examples");
    TCase *t = tcase_create("examples");

    tcase_add_test(t, hello);
    tcase_add_test(t, router);
    tcase_add_test(t, random_number);
    tcase_add_test(t, static_files);
    tcase_add_test(t, sse);
    tcase_add_test(t, read_sort);
    tcase_add_test(t, counter);
    tcase_add_test(t, rate_limit);
    tcase_add_test(t, upload);
    tcase_add_test(t, pages);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
