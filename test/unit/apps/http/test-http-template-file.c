/* SPDX-License-Identifier: MIT
 *
 * Request files: how requests are separated, fields that are added, and refusals with their line.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "fake-os.h"
#include "sxe-util.h"
#include "template-private.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

enum { REQUESTS = 4 };

static struct load_requests *requests;

static const char *
path(void)
{
    static char text[64];

    snprintf(text, sizeof(text), "/tmp/test-http-template-file-%d", (int)getpid());
    return text;
}

/* Read a file of these bytes into a new set of requests. */
static const char *
read_file(const char *text, size_t length)
{
    const struct load_template_options options = {0};
    FILE *file = fopen(path(), "wb");
    const char *wrong;

    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    fclose(file);
    requests = load_templates_new(&options);
    wrong = requests == NULL ? "out of memory" : load_templates_add_file(requests, path(), "h:1");
    unlink(path());
    return wrong;
}

static const struct {
    const char *title;
    const char *text;
    const char *requests[REQUESTS];
    const char *kinds[REQUESTS];
} good[] = {
    {"one with CRLF",
     "GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
     {"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"},
     {"GET /a"}},
    {"one with LF",
     "HEAD /a HTTP/1.1\nHost: x\n\n",
     {"HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n"},
     {"HEAD /a"}},
    {"without an empty line at the end",
     "GET /a HTTP/1.1\nHost: x",
     {"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"},
     {"GET /a"}},
    {"Host is added",
     "GET / HTTP/1.1\nX: y\n\n",
     {"GET / HTTP/1.1\r\nHost: h:1\r\nX: y\r\n\r\n"},
     {"GET /"}},
    {"other fields are as they stand",
     "GET / HTTP/1.0\nhost:x\nX:  y \n\n",
     {"GET / HTTP/1.0\r\nhost:x\r\nX:  y \r\n\r\n"},
     {"GET /"}},
    {"several, with all that may be between",
     "# first\n\n\r\nGET /a HTTP/1.1\nHost: x\n\n###\nGET /b HTTP/1.1\nHost: x\n\n\n# last",
     {"GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "GET /b HTTP/1.1\r\nHost: x\r\n\r\n"},
     {"GET /a", "GET /b"}},
    {"bodies are as long as they say",
     "POST /a HTTP/1.1\nHost: x\nContent-Length: 7\n\na\r\n\n#bc\n"
     "POST /b HTTP/1.1\nHost: x\ncontent-length:0\n\n"
     "PUT /c HTTP/1.1\nHost: x\nContent-Length: 3\n\nGETGET /d HTTP/1.1\n\n",
     {"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\na\r\n\n#bc",
      "POST /b HTTP/1.1\r\nHost: x\r\ncontent-length:0\r\n\r\n",
      "PUT /c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nGET",
      "GET /d HTTP/1.1\r\nHost: h:1\r\n\r\n"},
     {"POST /a", "POST /b", "PUT /c", "GET /d"}},
    {"placeholders work, and the length becomes theirs",
     "POST /{SEQ:2} HTTP/1.1\nHost: x\ncontent-length: 7\nX: {SEQ:3}\n\n{SEQ:5}",
     {"POST /00 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nX: 000\r\n\r\n00000"},
     {"POST /{SEQ:2}"}},
    {"two of a name are of a kind",
     "GET / HTTP/1.1\n\nGET / HTTP/1.1\n\n",
     {"GET / HTTP/1.1\r\nHost: h:1\r\n\r\n", "GET / HTTP/1.1\r\nHost: h:1\r\n\r\n"},
     {"GET /"}},
    {"a target in absolute form",
     "GET http://x/ HTTP/1.1\nHost: x\n\n",
     {"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n"},
     {"GET http://x/"}},
};

START_TEST(requests_are_told_apart)
{
    const char *wrong = read_file(good[_i].text, strlen(good[_i].text));
    struct load_query query;

    ck_assert_msg(wrong == NULL, "%s: %s", good[_i].title, wrong);
    ck_assert_int_eq(requests->begin(requests, 0, 1, 1), 0);
    for (unsigned i = 0; i < REQUESTS && good[_i].requests[i] != NULL; i++) {
        const char *wanted = good[_i].requests[i];

        ck_assert_int_eq(requests->next(requests, i, &query), 0);
        ck_assert_msg(
            query.length == strlen(wanted) && memcmp(query.bytes, wanted, query.length) == 0,
            "%s: is\n%.*s\nwanted\n%s", good[_i].title, (int)query.length, query.bytes, wanted);
        ck_assert(query.is_head == (strncmp(wanted, "HEAD", 4) == 0));
        ck_assert(query.is_last == (strstr(wanted, "HTTP/1.0") != NULL ||
                                    strstr(wanted, "Connection: close") != NULL));
    }
    for (unsigned i = 0; i < REQUESTS && good[_i].kinds[i] != NULL; i++)
        ck_assert_str_eq(requests->kind_names[i], good[_i].kinds[i]);
    load_templates_free(requests);
}
END_TEST

static const struct {
    const char *text;
    const char *says;
} bad[] = {
    {"", "has no requests"},
    {"\n\n# GET / HTTP/1.1\n", "has no requests"},
    {"GET /\n\n", "line 1: the target is not of a form"},
    {"\n\nGET / HTTP/2.0\n\n", "line 3: the version is not HTTP/1"},
    {"# a\nhello\n\n", "line 2: the method is not a token"},
    {"GET /a b HTTP/1.1\n\n", "line 1: "},
    {"GET /{x} HTTP/1.1\n\n", "line 1: the target is not of a form"},
    {"GET / HTTP/1.1\nHost: a b\n\n", "line 1: Host is not a host"},
    {"GET / HTTP/1.1\nX\n\n", "line 1: a field's name"},
    {"GET / HTTP/1.1\n folded\n\n", "line 1: a line begins with a blank"},
    {"POST /a HTTP/1.1\nContent-Length: 2\n\na\nGET / HTTP/2.0\n\n", "line 5: the version"},
    {"POST / HTTP/1.1\nContent-Length: 3\n\nab", "its body should have 3 bytes, and 2 follow"},
    {"POST / HTTP/1.1\nContent-Length: 3", "its body should have 3 bytes, and 0 follow"},
    {"POST / HTTP/1.1\nContent-Length: x\n\n", "'Content-Length: x' is not a number"},
    {"POST / HTTP/1.1\nContent-Length:\n\n", "'Content-Length:' is not a number"},
    {"POST / HTTP/1.1\nContent-Length: -1\n\n", "is not a number"},
    {"POST / HTTP/1.1\nContent-Length: 1234567890\n\n", "is not a number of bytes that can be"},
    {"POST / HTTP/1.1\nContent-Length: 999999999\n\n", "is not a number of bytes that can be"},
    {"POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n0\n\n", "a body of chunks cannot be read"},
    {"CONNECT a:1 HTTP/1.1\nHost: a:1\n\n", "line 1: CONNECT makes a tunnel"},
    {"GET /{SEQ:x} HTTP/1.1\n\n", "line 1: '{SEQ:x} HTTP/1.1' is none of {SEQ}"},
    {"POST / HTTP/1.1\nContent-Length: 8\n\n{UUID:4}", "line 1: '{UUID:4}' is none of"},
};

START_TEST(what_is_none_is_refused_with_its_line)
{
    const char *wrong = read_file(bad[_i].text, strlen(bad[_i].text));

    ck_assert_msg(wrong != NULL, "'%s' is accepted", bad[_i].text);
    ck_assert_msg(strstr(wrong, bad[_i].says) != NULL, "'%s': %s", bad[_i].text, wrong);
    ck_assert_msg(strstr(wrong, path()) != NULL, "%s", wrong);
    load_templates_free(requests);
}
END_TEST

START_TEST(a_body_has_any_byte)
{
    static const char text[] = "POST / HTTP/1.1\nHost: x\nContent-Length: 4\n\n\0\r\n\xff";
    struct load_query query;

    ck_assert_ptr_null(read_file(text, sizeof(text) - 1));
    ck_assert_int_eq(requests->next(requests, 0, &query), 0);
    ck_assert_mem_eq(query.bytes + query.length - 4, "\0\r\n\xff", 4);
    load_templates_free(requests);
}
END_TEST

START_TEST(a_file_that_is_not_there_says_so)
{
    const struct load_template_options options = {0};

    requests = load_templates_new(&options);
    ck_assert_str_eq(load_templates_add_file(requests, "/none/there", "h"),
                     "'/none/there': No such file or directory");
    load_templates_free(requests);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_says_so)
{
    fake_os_fail(FAKE_READ, 1, 1, EIO);
    ck_assert_ptr_nonnull(strstr(read_file("GET / HTTP/1.1\n\n", 16), "Input/output error"));
    load_templates_free(requests);
}
END_TEST

START_TEST(short_reads_are_put_together)
{
    fake_os_limit(FAKE_READ, 3);
    ck_assert_ptr_null(read_file("GET / HTTP/1.1\n\nGET /b HTTP/1.1\n\n", 33));
    ck_assert_uint_eq(requests->kinds, 2);
    load_templates_free(requests);
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC,
                                                 FAKE_STRDUP};
    static const char text[] = "POST /{SEQ} HTTP/1.1\nContent-Length: 5\n\n{SEQ}";
    const char *wrong;
    unsigned nth = 0;

    do {
        fake_os_reset();
        fake_os_sweep(allocations, 4, ++nth, false, ENOMEM);
        wrong = read_file(text, sizeof(text) - 1);
        ck_assert((wrong == NULL) == (fake_os_injected() == 0));
        ck_assert(wrong == NULL || strstr(wrong, "memory") != NULL);
        load_templates_free(requests);
    } while (wrong != NULL);
    ck_assert_uint_gt(nth, 5);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-template-file");
    TCase *tcase = tcase_create("file");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, requests_are_told_apart, 0, COUNT(good));
    tcase_add_loop_test(tcase, what_is_none_is_refused_with_its_line, 0, COUNT(bad));
    tcase_add_test(tcase, a_body_has_any_byte);
    tcase_add_test(tcase, a_file_that_is_not_there_says_so);
    tcase_add_test(tcase, a_file_that_cannot_be_read_says_so);
    tcase_add_test(tcase, short_reads_are_put_together);
    tcase_add_test(tcase, each_allocation_may_fail);
    return sxe_test_main(suite);
}
