/* SPDX-License-Identifier: MIT
 *
 * Header fields that a handler added: reading and removing them before the reply is sent; and files
 * at another path than the request's.
 */
#include "http-site.h"

#include "sxe-http-file.h"

static struct sxe_http_response *reply;

static void
expect_added(const char *name, const char *value)
{
    struct sxe_span got = sxe_http_added_field(reply, name);

    if (value == NULL) {
        ck_assert_ptr_null(got.base);
        return;
    }
    ck_assert_uint_eq(got.length, strlen(value));
    ck_assert_mem_eq(got.base, value, got.length);
}

static enum sxe_http_verdict
look(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    reply = response;
    expect_added("A", NULL);
    sxe_http_remove_field(response, "A");
    sxe_http_add_field(response, "A", "1");
    sxe_http_add_field(response, "AB", "a: b");
    sxe_http_add_field(response, "a", "2");
    sxe_http_add_field(response, "C", "");
    expect_added("a", "1");
    expect_added("ab", "a: b");
    expect_added("C", "");
    expect_added("B", NULL);
    expect_added("A: 1\r\nAB", NULL);
    sxe_http_remove_field(response, "A");
    expect_added("A", NULL);
    expect_added("AB", "a: b");
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(lines_of_a_name_are_found_and_taken_out)
{
    int peer;

    serve((struct sxe_http_config){.handler = look});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nAB: a: b\r\nC: \r\nContent-Length: 0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static enum sxe_http_verdict
take_all(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    sxe_http_add_field(response, "Upgrade", "x");
    sxe_http_add_field(response, "A", "1");
    sxe_http_remove_field(response, "Upgrade");
    sxe_http_remove_field(response, NULL);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(all_lines_may_be_taken_out_and_upgrade_with_its_connection)
{
    int peer;

    serve((struct sxe_http_config){.handler = take_all});
    peer = client();
    say(peer, GET("/"));
    EXPECT_REPLY(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

static struct sxe_http_files *files;

static enum sxe_http_verdict
send_other(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)response;
    return sxe_http_files_send(files, request, (struct sxe_span){"/%6eone", 7});
}

START_TEST(a_file_is_sent_for_any_path_and_method)
{
    struct sxe_http_files_config config = {.root = "/", .prefix = "/static"};
    int peer;

    files = sxe_http_files_new(&config);
    ck_assert_ptr_nonnull(files);
    serve((struct sxe_http_config){.handler = send_other});
    peer = client();
    say(peer, "POST /elsewhere HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    while (connections_in(SXE__HTTP_HANDLING) > 0) {
        usleep(1000);
        turn(1);
    }
    EXPECT_STATUS(peer, "404 Not Found", LINES(TEXT, ""), "404 Not Found\n");
    close(peer);
    end_site();
    sxe_http_files_delete(files);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-added-field");
    TCase *t = tcase_create("fields");

    tcase_add_test(t, lines_of_a_name_are_found_and_taken_out);
    tcase_add_test(t, all_lines_may_be_taken_out_and_upgrade_with_its_connection);
    tcase_add_test(t, a_file_is_sent_for_any_path_and_method);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
