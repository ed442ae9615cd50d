/* SPDX-License-Identifier: MIT
 *
 * The id of a request: who may choose it, and where it is shown.
 */
#include "http-site.h"

#include <errno.h>

#include "capture-log.h"
#include "sxe-cidr.h"

static struct sxe_cidr_list trusted;
static uint64_t next_bits; /* the bits of the next id that is made; those of the first id are 1 */

static uint64_t
count_up(void)
{
    return ++next_bits;
}

/* A handler whose reply is the request's id, asked for twice; it logs a line. */
static enum sxe_http_verdict
reply_id(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const char *id = sxe_http_request_id(request);

    SXE_INFO("asked");
    ck_assert_str_eq(sxe_http_request_id(request), id);
    return sxe_http_reply_text(response, 200, id);
}

/* Serve with ids in X-Id, from clients at these networks; NULL: from none. */
static void
serve_ids(struct sxe_http_config config, const char *networks)
{
    next_bits = 0;
    trusted = (struct sxe_cidr_list){0};
    if (networks != NULL) {
        ck_assert_int_eq(sxe_cidr_add(&trusted, networks, NULL), 0);
        config.trusted = &trusted;
    }
    config.request_id = "X-Id";
    config.random = count_up;
    if (config.handler == NULL)
        config.handler = reply_id;
    serve(config);
}

#define ID(line)  "X-Id: " line "\r\n"
#define MADE      "0000000000000001"
#define X64       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define ASK(line) "GET / HTTP/1.1\r\nHost: h\r\n" line "\r\n"

static const struct {
    const char *networks;
    const char *fields;
    const char *id;
} ids[] = {
    {"127.0.0.1", ID("a"), "a"},
    {"127.0.0.1", "x-id:  4bf92f35-77b3.4da6/~!#$%()*+,:;=?@[]^_`{|}  \r\n",
     "4bf92f35-77b3.4da6/~!#$%()*+,:;=?@[]^_`{|}"},
    {"10.0.0.0/8, ::/0, 127.0.0.0/8", ID(X64 X64), X64 X64},
    /* Ids that are not believed, or not harmless. */
    {NULL, ID("a"), MADE},
    {"10.0.0.0/8, ::1, unix", ID("a"), MADE},
    {"127.0.0.1", "", MADE},
    {"127.0.0.1", "X-Id:\r\n", MADE},
    {"127.0.0.1", ID("a") ID("b"), MADE},
    {"127.0.0.1", ID(X64 X64 "x"), MADE},
    {"127.0.0.1", ID("a b"), MADE},
    {"127.0.0.1", ID("a\tb"), MADE},
    {"127.0.0.1", ID("a\"b"), MADE},
    {"127.0.0.1", ID("a'b"), MADE},
    {"127.0.0.1", ID("a\\b"), MADE},
    {"127.0.0.1", ID("<b>"), MADE},
    {"127.0.0.1", ID("a&b"), MADE},
    {"127.0.0.1", ID("\xc3\xa9"), MADE},
};

START_TEST(a_harmless_id_of_a_trusted_peer_is_taken)
{
    char request[400];
    char line[200];
    int peer;

    serve_ids((struct sxe_http_config){.address_max = UINT32_MAX}, ids[_i].networks);
    snprintf(request, sizeof(request), ASK("%s"), ids[_i].fields);
    snprintf(line, sizeof(line), TEXT "X-Id: %s\r\n", ids[_i].id);
    peer = client();
    say(peer, request);
    EXPECT_STATUS(peer, "200 OK", LINES(line, ""), ids[_i].id);
    close(peer);
    end_site();
}
END_TEST

START_TEST(each_request_of_a_connection_has_an_id_of_its_own)
{
    int peer;

    serve_ids((struct sxe_http_config){.handler = echo}, "127.0.0.1");
    peer = client();
    say(peer, GET("/") GET("/") ASK(ID("a")) GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES(ID("0000000000000001"), ""), "GET /");
    EXPECT_STATUS(peer, "200 OK", LINES(ID("0000000000000002"), ""), "GET /");
    EXPECT_STATUS(peer, "200 OK", LINES(ID("a"), ""), "GET /");
    EXPECT_STATUS(peer, "200 OK", LINES(ID("0000000000000003"), ""), "GET /");
    close(peer);
    end_site();
}
END_TEST

START_TEST(refused_requests_have_ids_too)
{
    int peer;

    serve_ids((struct sxe_http_config){.handler = echo, .head_timeout_ms = 100}, "127.0.0.1");
    peer = client();
    say(peer, "GET / HTTP/1.1\r\n" ID("a") "rubbish\r\n\r\n");
    EXPECT_STATUS(peer, "400 Bad Request",
                  LINES(TEXT ID("0000000000000001"), "Connection: close\r\n"), "400 Bad Request\n");
    close(peer);
    peer = client();
    say(peer, "GET / HTTP/1.1\r\n" ID("a"));
    wait_ms(200);
    EXPECT_STATUS(peer, "408 Request Timeout", LINES(TEXT ID("a"), "Connection: close\r\n"),
                  "408 Request Timeout\n");
    close(peer);
    end_site();
}
END_TEST

START_TEST(a_client_that_may_not_connect_again_has_an_id)
{
    int peers[2];

    serve_ids((struct sxe_http_config){.handler = echo}, NULL);
    site.http->config.address_max = 0;
    ck_assert_int_eq(sxe_cidr_add(&trusted, "127.0.0.1", NULL), 0);
    site.http->config.proxies = site.http->config.trusted = &trusted;
    peers[0] = client();
    say(peers[0], "PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n");
    EXPECT_STATUS(peers[0], "503 Service Unavailable",
                  LINES(TEXT ID("0000000000000001"), "Connection: close\r\n"),
                  "503 Service Unavailable\n");
    close(peers[0]);
    end_site();
}
END_TEST

static enum sxe_http_verdict
choose_id(struct sxe_http_request *request, struct sxe_http_response *response)
{
    (void)request;
    ck_assert_int_eq(sxe_http_add_field(response, "x-id", "mine"), 0);
    return sxe_http_reply(response, 200, NULL, "", 0);
}

START_TEST(a_field_of_the_handler_s_stays)
{
    int peer;

    serve_ids((struct sxe_http_config){.handler = choose_id}, NULL);
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES("x-id: mine\r\n", ""), "");
    close(peer);
    end_site();
}
END_TEST

static void
ignore_read(SXE *s, int length)
{
    (void)s;
    (void)length;
}

static enum sxe_http_verdict
upgrade(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE *s = sxe_http_upgrade(response, "x", ignore_read, NULL, NULL);

    (void)request;
    ck_assert_ptr_nonnull(s);
    SXE_INFO("upgraded");
    sxe_close(s);
    return SXE_HTTP_LATER;
}

START_TEST(an_upgrade_has_the_id)
{
    int peer;

    serve_ids((struct sxe_http_config){.handler = upgrade}, "127.0.0.1");
    peer = client();
    say(peer, ASK("Connection: upgrade\r\nUpgrade: x\r\n" ID("a")));
    EXPECT_REPLY(peer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n"
                       "X-Id: a\r\n\r\n");
    close(peer);
    end_site();
}
END_TEST

/* ---- Traces ---- */

#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define CAME   "traceparent: 00-" TRACE "-" PARENT "-01\r\n"
#define NEW    "00000000000000020000000000000003  0000000000000004 3 -"
#define X512   X64 X64 X64 X64 X64 X64 X64 X64

/* A handler whose reply is the trace: its ids, flags and state. */
static enum sxe_http_verdict
reply_trace(struct sxe_http_request *request, struct sxe_http_response *response)
{
    const struct sxe_http_trace *trace = sxe_http_trace(request);
    struct sxe_span state = sxe_http_trace_state(request);
    char text[700];

    if (trace == NULL) {
        ck_assert_ptr_null(state.base);
        return sxe_http_reply_text(response, 200, "none");
    }
    ck_assert_ptr_eq(sxe_http_trace(request), trace);
    snprintf(text, sizeof(text), "%s %s %s %u %.*s", trace->trace_id, trace->parent_id,
             trace->span_id, trace->flags, state.base == NULL ? 1 : (int)state.length,
             state.base == NULL ? "-" : state.base);
    return sxe_http_reply_text(response, 200, text);
}

static const struct {
    const char *networks;
    const char *fields;
    const char *trace;
} traces[] = {
    {"127.0.0.1", CAME, TRACE " " PARENT " 0000000000000002 1 -"},
    {"127.0.0.1", CAME "tracestate: a=1,b=2\r\n", TRACE " " PARENT " 0000000000000002 1 a=1,b=2"},
    {"127.0.0.1", "tracestate: a=1\r\n" CAME "Tracestate: b=2\r\n",
     TRACE " " PARENT " 0000000000000002 1 a=1,b=2"},
    {"127.0.0.1", CAME "tracestate:\r\n", TRACE " " PARENT " 0000000000000002 1 -"},
    {"127.0.0.1", CAME "tracestate: " X512 "x\r\n", TRACE " " PARENT " 0000000000000002 1 -"},
    {"127.0.0.1", CAME "tracestate: a=1\r\ntracestate: " X512 "\r\n",
     TRACE " " PARENT " 0000000000000002 1 -"},
    /* A new trace, without the state of another one. */
    {"127.0.0.1", "", NEW},
    {"127.0.0.1", "tracestate: a=1\r\n", NEW},
    {"127.0.0.1", CAME CAME "tracestate: a=1\r\n", NEW},
    {"127.0.0.1", "traceparent: 00-" TRACE "-" PARENT "-1\r\n", NEW},
    {NULL, CAME "tracestate: a=1\r\n", NEW},
};

START_TEST(a_trace_goes_on_or_begins)
{
    char request[1200];
    int peer;

    serve_ids((struct sxe_http_config){.handler = reply_trace, .trace = true}, traces[_i].networks);
    snprintf(request, sizeof(request), ASK("%s"), traces[_i].fields);
    peer = client();
    say(peer, request);
    EXPECT_STATUS(peer, "200 OK", LINES(TEXT ID("0000000000000001"), ""), traces[_i].trace);
    close(peer);
    end_site();
}
END_TEST

static uint64_t
no_bits(void)
{
    return 0;
}

START_TEST(no_id_of_a_trace_has_only_zeros)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_trace, .trace = true, .random = no_bits});
    peer = client();
    say(peer, GET("/"));
    EXPECT_STATUS(peer, "200 OK", LINES(TEXT, ""),
                  "00000000000000010000000000000001  0000000000000001 3 -");
    close(peer);
    end_site();
}
END_TEST

START_TEST(without_the_option_there_is_no_trace)
{
    int peer;

    serve((struct sxe_http_config){.handler = reply_trace});
    peer = client();
    say(peer, ASK(CAME));
    EXPECT_STATUS(peer, "200 OK", LINES(TEXT, ""), "none");
    close(peer);
    end_site();
}
END_TEST

/* ---- Lines of the log ---- */

static void
log_body(struct sxe_http_request *request, struct sxe_http_response *response, struct sxe_span part,
         bool last)
{
    (void)request;
    SXE_INFO("%zu bytes", part.length);
    if (last)
        sxe_http_reply_text(response, 200, "");
}

static void
log_done(struct sxe_http_request *request, struct sxe_http_response *response, int result)
{
    (void)request;
    (void)response;
    SXE_INFO("done %d", result);
}

static enum sxe_http_verdict
read_and_log(struct sxe_http_request *request, struct sxe_http_response *response)
{
    SXE_INFO("begun");
    response->on_done = log_done;
    sxe_http_read(request, log_body);
    return SXE_HTTP_LATER;
}

static void
expect_lines(const char *const *expected, unsigned number)
{
    for (unsigned i = 0; i < number; i++)
        ck_assert_str_eq(log_line(i), expected[i]);
    ck_assert_uint_eq(captured.number, number);
}

START_TEST(the_lines_of_all_calls_of_a_handler_have_the_id)
{
    static const char *const expected[] = {"------ 4 - a begun\n", "------ 4 - a 2 bytes\n",
                                           "------ 4 - a 3 bytes\n", "------ 4 - a done 0\n",
                                           "------ 4 - outside\n"};
    int peer;

    serve_ids((struct sxe_http_config){.handler = read_and_log, .stream = true}, "127.0.0.1");
    capture_log();
    sxe_log_set_level(SXE_LOG_INFORMATION);
    peer = client();
    say(peer, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n" ID("a") "\r\nab");
    say(peer, "cde");
    turn(2);
    SXE_INFO("outside");
    expect_lines(expected, 5);
    close(peer);
    end_site();
}
END_TEST

START_TEST(without_a_field_for_ids_no_line_has_one)
{
    static const char *const expected[] = {"------ 4 - asked\n"};
    int peer;

    serve((struct sxe_http_config){.handler = reply_id});
    capture_log();
    sxe_log_set_level(SXE_LOG_INFORMATION);
    peer = client();
    say(peer, GET("/"));
    expect_lines(expected, 1);
    close(peer);
    end_site();
}
END_TEST

/* ---- Chance ---- */

static char made[70][20];
static unsigned made_number;

static enum sxe_http_verdict
keep_id(struct sxe_http_request *request, struct sxe_http_response *response)
{
    snprintf(made[made_number++], sizeof(made[0]), "%s", sxe_http_request_id(request));
    return sxe_http_reply_text(response, 200, "");
}

static void
make_ids(unsigned number)
{
    int peer;

    made_number = 0;
    serve((struct sxe_http_config){.handler = keep_id});
    peer = client();
    for (unsigned i = 0; i < number; i++) {
        say(peer, GET("/"));
        EXPECT_STATUS(peer, "200 OK", LINES(TEXT, ""), "");
    }
    close(peer);
    end_site();
    for (unsigned i = 0; i < number; i++) {
        ck_assert_uint_eq(strlen(made[i]), 16);
        ck_assert_uint_eq(strspn(made[i], "0123456789abcdef"), 16);
        for (unsigned j = 0; j < i; j++)
            ck_assert_str_ne(made[i], made[j]);
    }
}

START_TEST(made_ids_differ)
{
    make_ids(70);
}
END_TEST

START_TEST(ids_differ_also_where_the_system_has_no_chance)
{
    fake_os_fail(FAKE_GETRANDOM, 1, 0, EAGAIN);
    make_ids(1);
}
END_TEST

/* ---- Wrong configurations ---- */

START_TEST(the_field_must_be_one_that_may_be_added)
{
    static const char *const names[] = {"", "X Id", "Date", "Content-Length", "X-Id:"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        capture_log();
        ck_assert_ptr_null(sxe_http_new(&(struct sxe_http_config){.request_id = names[i]}));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_nonnull(strstr(log_line(0), "request_id must be the name of a field that"));
    }
}
END_TEST

static Suite *
identity_suite(void)
{
    Suite *suite = suite_create("http-identity");
    TCase *c = tcase_create("identity");

    tcase_add_loop_test(c, a_harmless_id_of_a_trusted_peer_is_taken, 0,
                        sizeof(ids) / sizeof(ids[0]));
    tcase_add_test(c, each_request_of_a_connection_has_an_id_of_its_own);
    tcase_add_test(c, refused_requests_have_ids_too);
    tcase_add_test(c, a_client_that_may_not_connect_again_has_an_id);
    tcase_add_test(c, a_field_of_the_handler_s_stays);
    tcase_add_test(c, an_upgrade_has_the_id);
    tcase_add_loop_test(c, a_trace_goes_on_or_begins, 0, sizeof(traces) / sizeof(traces[0]));
    tcase_add_test(c, no_id_of_a_trace_has_only_zeros);
    tcase_add_test(c, without_the_option_there_is_no_trace);
    tcase_add_test(c, the_lines_of_all_calls_of_a_handler_have_the_id);
    tcase_add_test(c, without_a_field_for_ids_no_line_has_one);
    tcase_add_test(c, made_ids_differ);
    tcase_add_test(c, ids_differ_also_where_the_system_has_no_chance);
    tcase_add_test(c, the_field_must_be_one_that_may_be_added);
    suite_add_tcase(suite, c);
    return suite;
}

int
main(void)
{
    return sxe_test_main(identity_suite());
}
