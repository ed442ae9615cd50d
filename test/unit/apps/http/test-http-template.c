/* SPDX-License-Identifier: MIT
 *
 * Requests from the command line: their bytes and fields, what is refused, and several requests
 * that take turns.
 */
#include "template.h"

#include <errno.h>
#include <stdio.h>

#include "fake-os.h"
#include "page-edge.h"
#include "result.h"
#include "sxe-util.h"
#include "template-private.h"
#include "test-main.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define AGENT        "User-Agent: sxe-http/" SXE_VERSION "\r\n"

enum { FIELDS = 6 };

struct request_case {
    const char *title;
    struct load_template_options options;
    const char *fields[FIELDS];
    const char *target;
    const char *result; /* the bytes, or a part of the message */
};

static const struct request_case good[] = {
    {"a GET",
     {0},
     {NULL},
     "/a?b",
     "GET /a?b HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"HEAD",
     {.method = "HEAD"},
     {NULL},
     "/",
     "HEAD / HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"a method of its own",
     {.method = "PROPFIND"},
     {NULL},
     "/",
     "PROPFIND / HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"OPTIONS of the server",
     {.method = "OPTIONS"},
     {NULL},
     "*",
     "OPTIONS * HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\n\r\n"},
    {"a POST with a body",
     {.method = "POST", .body = "a=1"},
     {NULL},
     "/",
     "POST / HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\nContent-Length: 3\r\n\r\na=1"},
    {"with an empty one",
     {.method = "POST", .body = ""},
     {NULL},
     "/",
     "POST / HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\nContent-Length: 0\r\n\r\n"},
    {"a method with a body",
     {.method = "PUT", .body = "x"},
     {NULL},
     "/",
     "PUT / HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\nContent-Length: 1\r\n\r\nx"},
    {"fields are added",
     {0},
     {"X-A: 1", "x-b:2", "X-A:  3 \t"},
     "/",
     "GET / HTTP/1.1\r\nHost: h:1\r\n" AGENT "Accept: */*\r\nX-A: 1\r\nx-b: 2\r\nX-A: 3\r\n\r\n"},
    {"fields replace ours",
     {0},
     {"accept: text/html", "USER-AGENT: me"},
     "/",
     "GET / HTTP/1.1\r\nHost: h:1\r\naccept: text/html\r\nUSER-AGENT: me\r\n\r\n"},
    {"empty ones leave ours out",
     {0},
     {"Accept:", "User-Agent: "},
     "/",
     "GET / HTTP/1.1\r\nHost: h:1\r\n\r\n"},
    {"other empty ones are sent",
     {0},
     {"X-Empty:", "Accept:", "User-Agent:"},
     "/",
     "GET / HTTP/1.1\r\nHost: h:1\r\nX-Empty: \r\n\r\n"},
    {"Host is replaced",
     {0},
     {"host: www.example.com", "Accept:", "User-Agent:"},
     "/",
     "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"},
    {"Host cannot be left out",
     {0},
     {"Host:", "Accept:", "User-Agent:"},
     "/",
     "GET / HTTP/1.1\r\nHost: \r\n\r\n"},
    {"HTTP/1.0 keeps the connection",
     {.is_http_1_0 = true},
     {NULL},
     "/a",
     "GET /a HTTP/1.0\r\nHost: h:1\r\n" AGENT "Accept: */*\r\nConnection: keep-alive\r\n\r\n"},
    {"or not",
     {.is_http_1_0 = true},
     {"Connection:", "Accept:", "User-Agent:"},
     "/a",
     "GET /a HTTP/1.0\r\nHost: h:1\r\n\r\n"},
    {"Connection may be given",
     {0},
     {"Connection: close", "Accept:", "User-Agent:"},
     "/a",
     "GET /a HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n"},
    {"braces of JSON stay",
     {.method = "POST", .body = "{\"a\":{\"SEQ\":[{}]},\"b\":{RANDOM}}"},
     {"X: {x}", "Accept:", "User-Agent:"},
     "/",
     "POST / HTTP/1.1\r\nHost: h:1\r\nX: {x}\r\nContent-Length: 31\r\n\r\n"
     "{\"a\":{\"SEQ\":[{}]},\"b\":{RANDOM}}"},
    {"two braces make a placeholder a text",
     {.method = "POST", .body = "{{SEQ}{{UUID}}{{{RAND:1:2}{{{"},
     {"Accept:", "User-Agent:"},
     "/",
     "POST / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 26\r\n\r\n{SEQ}{UUID}}{{RAND:1:2}{{{"},
};

static const struct request_case bad[] = {
    {"CONNECT", {.method = "CONNECT"}, {NULL}, "/", "CONNECT makes a tunnel"},
    {"a method that is none", {.method = "GE T"}, {NULL}, "/", "'GE T' is no method"},
    {"TRACE has no body",
     {.method = "TRACE", .body = "a"},
     {NULL},
     "/",
     "'TRACE' is no method for that, or has no body"},
    {"a blank in the target", {0}, {NULL}, "/a b", "'/a b' is no target"},
    {"a line end in the target", {0}, {NULL}, "/\r\nX: y", "'/??X: y' is no target"},
    {"no target", {0}, {NULL}, "", "'' is no target"},
    {"braces in a target", {0}, {NULL}, "/{x}", "'/{x}' is no target"},
    {"the asterisk", {0}, {NULL}, "*", "'*' is no target"},
    {"no colon", {0}, {"Accept"}, "/", "'Accept' is no header: give"},
    {"no name", {0}, {": a"}, "/", "': a' is no header that can be sent"},
    {"a blank in a name", {0}, {"X Y: a"}, "/", "'X Y: a' is no header that can be sent"},
    {"a line end in a value", {0}, {"X: a\r\nY: b"}, "/", "'X: a??Y: b' is no header that"},
    {"a length", {0}, {"content-length: 1"}, "/", "leave content-length out"},
    {"a coding", {0}, {"Transfer-Encoding: chunked"}, "/", "leave Transfer-Encoding out"},
    {"a host", {0}, {"Host: a b"}, "/", "'a b' is not a host"},
    {"Expect without a body", {0}, {"Expect: 100-continue"}, "/", "'Expect: 100-continue' is no"},
    {"SEQ of no digits", {0}, {NULL}, "/{SEQ:0}", "'{SEQ:0}' is none of"},
    {"SEQ of too many", {0}, {NULL}, "/{SEQ:20}", "'{SEQ:20}' is none of"},
    {"SEQ of a word", {0}, {NULL}, "/{SEQ:a}", "'{SEQ:a}' is none of"},
    {"SEQ of nothing", {0}, {NULL}, "/{SEQ:}", "'{SEQ:}' is none of"},
    {"SEQ without end", {0}, {NULL}, "/{SEQ:3", "'{SEQ:3' is none of"},
    {"RAND of nothing", {0}, {NULL}, "/{RAND}", "'{RAND}' is none of"},
    {"RAND of one", {0}, {NULL}, "/{RAND:1}", "'{RAND:1}' is none of"},
    {"RAND of one and nothing", {0}, {NULL}, "/{RAND:1:}", "'{RAND:1:}' is none of"},
    {"RAND of nothing and one", {0}, {NULL}, "/{RAND::1}", "'{RAND::1}' is none of"},
    {"RAND of three", {0}, {NULL}, "/{RAND:1:2:3}", "'{RAND:1:2:3}' is none of"},
    {"RAND of words", {0}, {NULL}, "/{RAND:a:b}", "'{RAND:a:b}' is none of"},
    {"RAND of a number and a word", {0}, {NULL}, "/{RAND:1-2}", "'{RAND:1-2}' is none of"},
    {"RAND the wrong way round", {0}, {NULL}, "/{RAND:9:1}", "'{RAND:9:1}' is none of"},
    {"RAND of 20 digits", {0}, {NULL}, "/{RAND:1:12345678901234567890}", "(at most 19 digits)"},
    {"UUID of something", {0}, {NULL}, "/{UUID:4}", "'{UUID:4}' is none of"},
    {"in a host", {0}, {"Host: {SEQ:x}"}, "/", "'{SEQ:x}' is none of"},
    {"in a header", {0}, {"X: {UUID:x}"}, "/", "'{UUID:x}' is none of"},
    {"in a body", {.body = "{RAND:"}, {NULL}, "/", "'{RAND:' is none of"},
    {"a long body",
     {.body = "", .body_length = LOAD_TEMPLATE_BODY_MAX + 1u},
     {NULL},
     "/",
     "the body is longer than"},
};

/* A set with the case's request; *wrong is the message, or NULL. */
static struct load_requests *
make(const struct request_case *request, const char **wrong)
{
    struct load_template_options options = request->options;
    struct load_requests *requests;

    if (options.method == NULL)
        options.method = "GET";
    if (options.body != NULL && options.body_length == 0)
        options.body_length = strlen(options.body);
    options.fields = request->fields;
    while (options.fields_number < FIELDS && request->fields[options.fields_number] != NULL)
        options.fields_number++;
    requests = load_templates_new(&options);
    ck_assert_ptr_nonnull(requests);
    *wrong = load_templates_add(
        requests, "h:1", page_edge_bytes(request->target, strlen(request->target) + 1), "name");
    return requests;
}

static struct load_query
ask(struct load_requests *requests, uint64_t sequence)
{
    struct load_query query;

    ck_assert_int_eq(requests->next(requests, sequence, &query), 0);
    return query;
}

static void
check_bytes(struct load_requests *requests, uint64_t sequence, const char *wanted)
{
    struct load_query query = ask(requests, sequence);

    if (query.length != strlen(wanted) || memcmp(query.bytes, wanted, query.length) != 0)
        ck_abort_msg("is\n%.*s\nwanted\n%s", (int)query.length, query.bytes, wanted);
}

START_TEST(requests_are_what_was_asked_for)
{
    const char *wrong;
    struct load_requests *requests = make(&good[_i], &wrong);
    struct load_query query;

    ck_assert_msg(wrong == NULL, "%s: %s", good[_i].title, wrong);
    ck_assert_int_eq(requests->begin(requests, 0, 1, 1), 0);
    check_bytes(requests, 0, good[_i].result);
    check_bytes(requests, 12345, good[_i].result);
    query = ask(requests, 1);
    ck_assert(query.is_head == (strncmp(good[_i].result, "HEAD", 4) == 0));
    ck_assert(query.kind == 0 && query.delay_ns == 0 && query.expect == NULL);
    load_templates_free(requests);
}
END_TEST

/* RFC 9112, 9.3 and 9.6. */
static const struct {
    const char *field;
    bool is_http_1_0;
    bool is_last;
} ends[] = {
    {"X: close", false, false},
    {"X: close", true, false},
    {"Connection: Close", false, true},
    {"Connection: close", true, true},
    {"Connection: te, close", false, true},
    {"Connection:", true, true},
    {"Connection: keep-alive", false, false},
};

START_TEST(a_request_that_asks_for_the_close_is_its_connections_last)
{
    const struct load_template_options options = {.method = "GET",
                                                  .fields = &ends[_i].field,
                                                  .fields_number = 1,
                                                  .is_http_1_0 = ends[_i].is_http_1_0};
    struct load_requests *requests = load_templates_new(&options);

    ck_assert_ptr_null(load_templates_add(requests, "a", "/", "GET /"));
    ck_assert_int_eq(requests->begin(requests, 0, 1, 1), 0);
    ck_assert(ask(requests, 0).is_last == ends[_i].is_last);
    load_templates_free(requests);
}
END_TEST

START_TEST(others_are_refused)
{
    const char *wrong;
    struct load_requests *requests = make(&bad[_i], &wrong);

    ck_assert_msg(wrong != NULL, "%s: accepted", bad[_i].title);
    ck_assert_msg(strstr(wrong, bad[_i].result) != NULL, "%s: %s", bad[_i].title, wrong);
    load_templates_free(requests);
}
END_TEST

START_TEST(heads_have_limits)
{
    enum { LARGE = 40000, MANY = 300 };
    static char large[2][LARGE];
    const char *fields[MANY];
    struct load_template_options options = {.method = "GET", .fields = fields, .fields_number = 2};
    struct load_requests *requests;
    unsigned i;

    memset(large, 'a', sizeof(large));
    for (i = 0; i < 2; i++) {
        fields[i] = large[i];
        memcpy(large[i], "X: ", 3);
        large[i][LARGE - 1] = '\0';
    }
    requests = load_templates_new(&options);
    ck_assert_str_eq(load_templates_add(requests, "h", "/", "name"),
                     "the headers together are more than 64 KiB");
    load_templates_free(requests);
    for (i = 0; i < MANY; i++)
        fields[i] = "X: a";
    options.fields_number = MANY;
    requests = load_templates_new(&options);
    ck_assert_str_eq(load_templates_add(requests, "h", "/", "name"),
                     "there are more than 254 headers");
    load_templates_free(requests);
    options.fields_number = 252; /* two less, because sxe-http adds two */
    requests = load_templates_new(&options);
    ck_assert_ptr_null(load_templates_add(requests, "h", "/", "name"));
    load_templates_free(requests);
}
END_TEST

/* ---- Several requests ---- */

static const struct load_template_options bare = {
    .method = "GET",
    .fields = (const char *const[]){"Accept:", "User-Agent:"},
    .fields_number = 2,
};

START_TEST(several_take_turns_over_all_workers)
{
    struct load_requests *requests = load_templates_new(&bare);

    ck_assert_ptr_null(load_templates_add(requests, "a", "/0", "GET /0"));
    ck_assert_ptr_null(load_templates_add(requests, "b", "/1", "GET /1"));
    ck_assert_ptr_null(load_templates_add(requests, "c", "/2", "GET /2"));
    ck_assert_uint_eq(requests->kinds, 3);
    ck_assert(!requests->wants_replies && requests->number == 0 && requests->times_ns == NULL);
    ck_assert_int_eq(requests->begin(requests, 1, 2, 1), 0);
    for (uint64_t sequence = 1; sequence < 12; sequence += 2) {
        struct load_query query = ask(requests, sequence);

        ck_assert_int_eq(query.bytes[strlen("GET /")], '0' + (int)(sequence % 3));
        ck_assert_uint_eq(query.kind, sequence % 3);
        ck_assert(strncmp(query.bytes, requests->kind_names[query.kind], 6) == 0);
    }
    ck_assert(requests->end == NULL);
    requests->free(requests);
}
END_TEST

/* If workers took turns by themselves, each of four workers would send only even or only odd
 * ones. */
START_TEST(each_worker_has_all_requests_in_turn)
{
    unsigned all[6] = {0};

    for (unsigned worker = 0; worker < 4; worker++) {
        struct load_requests *requests = load_templates_new(&bare);
        unsigned own[6] = {0};

        for (unsigned i = 0; i < 6; i++) {
            const char target[3] = {'/', (char)('0' + i), '\0'};

            ck_assert_ptr_null(load_templates_add(requests, "a", target, target));
        }
        ck_assert_int_eq(requests->begin(requests, worker, 4, 1), 0);
        for (uint64_t sequence = worker; sequence < 48; sequence += 4) {
            const uint32_t kind = ask(requests, sequence).kind;

            own[kind]++;
            all[kind]++;
        }
        for (unsigned i = 0; i < 6; i++)
            ck_assert_uint_eq(own[i], 2);
        requests->free(requests);
    }
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(all[i], 8);
}
END_TEST

/* Begin as the nth of four workers, for two hosts with one and three URLs. */
static struct load_requests *
begin_for_host(unsigned worker)
{
    struct load_requests *requests = load_templates_new(&bare);

    ck_assert_ptr_null(load_templates_add(requests, "a", "/0", "GET a/0"));
    load_templates_set_host(requests, 1);
    ck_assert_ptr_null(load_templates_add(requests, "b", "/1", "GET b/1"));
    ck_assert_ptr_null(load_templates_add(requests, "b", "/2", "GET b/2"));
    ck_assert_ptr_null(load_templates_add(requests, "b", "/3", "GET b/3"));
    requests->turns = 2;
    requests->host = worker % 2;
    requests->turn = worker / 2;
    ck_assert_int_eq(requests->begin(requests, worker, 4, 1), 0);
    return requests;
}

START_TEST(workers_of_a_host_have_its_requests_in_turn)
{
    char sent[2][9] = {"", ""};

    for (unsigned worker = 0; worker < 4; worker++) {
        struct load_requests *requests = begin_for_host(worker);

        for (unsigned i = 0; i < 4; i++)
            sent[worker % 2][2 * i + worker / 2] =
                ask(requests, worker + 4 * i).bytes[strlen("GET /")];
        requests->free(requests);
    }
    ck_assert_str_eq(sent[0], "00000000");
    ck_assert_str_eq(sent[1], "12312312");
}
END_TEST

START_TEST(requests_of_one_name_are_of_one_kind)
{
    struct load_requests *requests = load_templates_new(&bare);

    for (unsigned i = 0; i < 100; i++)
        ck_assert_ptr_null(load_templates_add(requests, "h", "/", i % 2 == 0 ? "even" : "odd"));
    ck_assert_uint_eq(requests->kinds, 2);
    ck_assert_uint_eq(ask(requests, 98).kind, 0);
    ck_assert_uint_eq(ask(requests, 99).kind, 1);
    load_templates_free(requests);
}
END_TEST

START_TEST(too_many_kinds_become_one)
{
    struct load_requests *requests = load_templates_new(&bare);
    char name[16];

    for (unsigned i = 0; i < 3 * LOAD_KINDS_MAX; i++) {
        snprintf(name, sizeof(name), "GET /%u", i);
        ck_assert_ptr_null(load_templates_add(requests, "h", name + 4, name));
        ck_assert_uint_eq(requests->kinds, i < LOAD_KINDS_MAX ? i + 1 : 1);
    }
    ck_assert_str_eq(requests->kind_names[0], "all requests");
    for (unsigned i = 0; i < 3 * LOAD_KINDS_MAX; i++)
        ck_assert_uint_eq(ask(requests, i).kind, 0);
    load_templates_free(requests);
}
END_TEST

START_TEST(there_may_be_many_requests_but_not_more)
{
    struct load_requests *requests = load_templates_new(&bare);
    struct load_template template = {0};

    for (unsigned i = 0; i < LOAD_TEMPLATES_MAX; i++)
        ck_assert_ptr_null(load_templates_take(requests, &template, "x"));
    ck_assert_str_eq(load_templates_add(requests, "h", "/", "x"),
                     "there are more than 100000 requests");
    load_templates_free(requests);
}
END_TEST

START_TEST(without_a_request_nothing_begins)
{
    struct load_requests *requests = load_templates_new(&bare);

    ck_assert_int_eq(requests->begin(requests, 0, 1, 1), -EINVAL);
    load_templates_free(requests);
    load_templates_free(NULL);
}
END_TEST

/* ---- Failing allocations ---- */

static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC, FAKE_STRDUP};

/* Make everything that takes memory; false: an allocation failed, and the message says so. */
static bool
make_many(void)
{
    static const char *const fields[] = {"X: {SEQ}{UUID}{RAND:1:2}{SEQ:3}", "Y: {SEQ}{UUID}"};
    const struct load_template_options options = {
        .method = "POST", .fields = fields, .fields_number = 2, .body = "{SEQ}", .body_length = 5};
    struct load_requests *requests = load_templates_new(&options);
    const char *wrong = NULL;
    char name[16];

    if (requests == NULL)
        return false;
    for (unsigned i = 0; i < 2 * LOAD_KINDS_MAX && wrong == NULL; i++) {
        snprintf(name, sizeof(name), "GET /%u", i);
        wrong = load_templates_add(requests, "h", name + 4, name);
    }
    if (wrong != NULL)
        ck_assert_str_eq(wrong, "out of memory");
    load_templates_free(requests);
    return wrong == NULL;
}

START_TEST(each_allocation_may_fail)
{
    unsigned nth = 0;
    bool is_made;

    do {
        fake_os_reset();
        fake_os_sweep(allocations, 4, ++nth, false, ENOMEM);
        is_made = make_many();
        ck_assert(is_made == (fake_os_injected() == 0));
    } while (!is_made);
    ck_assert_uint_gt(nth, 100);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-template");
    TCase *tcase = tcase_create("template");

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, requests_are_what_was_asked_for, 0, COUNT(good));
    tcase_add_loop_test(tcase, a_request_that_asks_for_the_close_is_its_connections_last, 0,
                        sizeof(ends) / sizeof(ends[0]));
    tcase_add_loop_test(tcase, others_are_refused, 0, COUNT(bad));
    tcase_add_test(tcase, heads_have_limits);
    tcase_add_test(tcase, several_take_turns_over_all_workers);
    tcase_add_test(tcase, each_worker_has_all_requests_in_turn);
    tcase_add_test(tcase, workers_of_a_host_have_its_requests_in_turn);
    tcase_add_test(tcase, requests_of_one_name_are_of_one_kind);
    tcase_add_test(tcase, too_many_kinds_become_one);
    tcase_add_test(tcase, there_may_be_many_requests_but_not_more);
    tcase_add_test(tcase, without_a_request_nothing_begins);
    tcase_add_test(tcase, each_allocation_may_fail);
    return sxe_test_main(suite);
}
