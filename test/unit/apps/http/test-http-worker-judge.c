/* SPDX-License-Identifier: MIT
 *
 * Complete replies: what the plan or the query expects of them, and the judgement of a source that
 * looks at replies.
 */
#include "http-world.h"

#define NOT_FOUND "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"
#define CHUNKED   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n"

static struct load_expect expect;

static const struct {
    const char *reply;
    const char *status;
    const char *field;
    const char *body;
    enum load_end end;
} cases[] = {
    {OK, NULL, NULL, NULL, LOAD_END_OK},
    {NOT_FOUND, NULL, NULL, NULL, LOAD_END_BAD_STATUS},
    {NOT_FOUND, "404", NULL, NULL, LOAD_END_OK},
    {OK, "404", NULL, NULL, LOAD_END_BAD_STATUS},
    {OK, NULL, "Content-Length", NULL, LOAD_END_OK},
    {OK, NULL, "content-length: 2", NULL, LOAD_END_OK},
    {OK, NULL, "Content-Length: 3", NULL, LOAD_END_BAD_FIELD},
    {OK, NULL, "X-A", NULL, LOAD_END_BAD_FIELD},
    {OK, NULL, NULL, "ok", LOAD_END_OK},
    {OK, NULL, NULL, "ko", LOAD_END_BAD_BODY},
    {HEAD(0), NULL, NULL, "ok", LOAD_END_BAD_BODY},
    {CHUNKED "1\r\no\r\n1\r\nk\r\n0\r\n\r\n", NULL, "X-A: 1", "ok", LOAD_END_OK},
    {CHUNKED "1\r\no\r\n1\r\no\r\n0\r\n\r\n", NULL, "X-A: 1", "ok", LOAD_END_BAD_BODY},
    /* The first mismatch decides. */
    {NOT_FOUND, NULL, "X-A", "ok", LOAD_END_BAD_STATUS},
    {OK, NULL, "X-A", "ko", LOAD_END_BAD_FIELD},
};

static unsigned row;

static void
answer_row(unsigned client, unsigned query)
{
    (void)query;
    answer(client, cases[row].reply);
}

/* Reply byte by byte. */
static void
answer_row_slowly(unsigned client, unsigned query)
{
    (void)query;
    for (unsigned i = 0; cases[row].reply[i] != '\0'; i++)
        answer_bytes_in(client, MS(i), cases[row].reply + i, 1);
}

static int
expect_row(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    query->expect = &expect;
    return 0;
}

static void
set_row(unsigned i)
{
    row = i;
    expect = (struct load_expect){0};
    load_expect_add_status(&expect, cases[i].status == NULL ? "2xx" : cases[i].status);
    if (cases[i].field != NULL)
        ck_assert_ptr_null(load_expect_add_field(&expect, cases[i].field));
    if (cases[i].body != NULL)
        ck_assert_ptr_null(load_expect_set_body(&expect, cases[i].body));
}

static void
expect_end(void)
{
    ck_assert_uint_eq(world.result->ends[cases[row].end], 1);
    ck_assert_uint_eq(load_result_errors(world.result), cases[row].end != LOAD_END_OK);
    ck_assert_uint_eq(world.result->service.count, 1);
    ck_assert_uint_eq(world.result->first_bad_status, cases[row].end != LOAD_END_BAD_STATUS ? 0
                                                      : cases[row].reply[9] == '4'          ? 404
                                                                                            : 200);
    load_expect_clear_body(&expect);
}

START_TEST(a_reply_is_what_the_plan_expects)
{
    make_world();
    set_row((unsigned)_i);
    world.plan.expect = &expect;
    world.serve = answer_row;
    run_world();
    expect_end();
}
END_TEST

START_TEST(or_what_the_query_expects)
{
    make_world();
    set_row((unsigned)_i);
    world.next = expect_row;
    world.serve = answer_row;
    run_world();
    expect_end();
}
END_TEST

START_TEST(however_it_comes)
{
    make_world();
    set_row((unsigned)_i);
    world.plan.expect = &expect;
    world.plan.timeout_ns = SECONDS(100);
    world.serve = answer_row_slowly;
    run_world();
    expect_end();
    if (world.result->ends[LOAD_END_OK] > 0) {
        ck_assert_uint_eq(world.result->first_byte.max_ns, 0);
        ck_assert_uint_eq(world.result->service.max_ns, MS(strlen(cases[row].reply) - 1));
    } else {
        ck_assert_uint_eq(world.result->first_byte.censored_from_ns, world.plan.timeout_ns);
        ck_assert_uint_eq(world.result->service.censored_from_ns, world.plan.timeout_ns);
    }
}
END_TEST

static const struct {
    const char *reply;
    enum load_end end;
} wholes[] = {
    {OK, LOAD_END_OK}, {HEAD(2) "oh", LOAD_END_BAD_BODY}, {HEAD(3) "oki", LOAD_END_BAD_BODY}};

static void
answer_whole(unsigned client, unsigned query)
{
    (void)query;
    answer(client, wholes[row].reply);
}

START_TEST(all_of_a_body_may_be_expected)
{
    make_world();
    row = (unsigned)_i;
    world.expect.body = "ok";
    world.expect.body_length = 2;
    world.expect.is_whole_body = true;
    world.serve = answer_whole;
    run_world();
    ck_assert_uint_eq(world.result->ends[wholes[row].end], 1);
}
END_TEST

/* ---- HEAD ---- */

static int
ask_for_heads(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    query->is_head = sequence % 2 == 0;
    return 0;
}

static void
answer_head(unsigned client, unsigned query)
{
    answer(client, query % 2 == 0 ? HEAD(1000) : OK);
}

START_TEST(a_reply_to_head_has_no_body)
{
    make_world();
    world.plan.queries = 4;
    world.next = ask_for_heads;
    world.serve = answer_head;
    run_world();
    expect_all_ok(4);
}
END_TEST

/* ---- A source that looks at replies ---- */

static unsigned seen;
static char seen_head[256];
static char seen_body[256];
static struct load_exchange last;

static bool
see(struct load_requests *requests, const struct load_exchange *exchange)
{
    (void)requests;
    last = *exchange;
    snprintf(seen_head, sizeof(seen_head), "%.*s", (int)exchange->head_length, exchange->head);
    snprintf(seen_body, sizeof(seen_body), "%.*s", (int)exchange->body_length, exchange->body);
    return seen++ % 2 == 0;
}

static void
make_seeing_world(void)
{
    make_world();
    world.requests.wants_replies = true;
    world.requests.replied = see;
}

START_TEST(a_source_may_see_replies_and_dislike_them)
{
    make_seeing_world();
    world.plan.queries = 4;
    run_world();

    expect_ends(2, LOAD_END_FAILED_CHECK, 2);
    ck_assert_uint_eq(seen, 4);
    ck_assert_str_eq(seen_head, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n");
    ck_assert_str_eq(seen_body, "ok");
    ck_assert_uint_eq(last.status, 200);
    ck_assert_uint_eq(last.kind, 0);
    ck_assert_uint_eq(last.service_ns, 0);
}
END_TEST

START_TEST(it_sees_them_in_one_piece)
{
    make_seeing_world();
    set_row(11);
    world.plan.timeout_ns = SECONDS(100);
    world.serve = answer_row_slowly;
    run_world();
    expect_all_ok(1);
    ck_assert_str_eq(seen_head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n");
    ck_assert_str_eq(seen_body, "ok");
    ck_assert_uint_eq(last.service_ns, MS(strlen(cases[11].reply) - 1));
    load_expect_clear_body(&expect);
}
END_TEST

START_TEST(it_sees_bad_ones_too)
{
    make_seeing_world();
    set_row(1);
    world.serve = answer_row;
    run_world();
    expect_ends(0, LOAD_END_BAD_STATUS, 1);
    ck_assert_uint_eq(seen, 1);
    ck_assert_str_eq(seen_body, "none");
}
END_TEST

static void
no_head_of_interim(unsigned client, unsigned query)
{
    (void)query;
    answer(client, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK);
}

START_TEST(interim_responses_are_not_shown)
{
    make_seeing_world();
    world.serve = no_head_of_interim;
    run_world();
    expect_all_ok(1);
    ck_assert_str_eq(seen_head, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n");
}
END_TEST

static void
half_and_close(unsigned client, unsigned query)
{
    answer(client, query == 0 ? HEAD(9) "1234" : OK);
    if (query == 0)
        hang_up_in(client, 0);
}

START_TEST(of_a_reply_that_is_cut_nothing_stays)
{
    make_seeing_world();
    world.plan.queries = 2;
    world.serve = half_and_close;
    run_world();
    expect_ends(1, LOAD_END_SHORT_BODY, 1);
    ck_assert_uint_eq(seen, 1);
    ck_assert_str_eq(seen_body, "ok");
}
END_TEST

START_TEST(a_source_may_want_them_and_say_nothing)
{
    make_world();
    world.requests.wants_replies = true;
    run_world();
    expect_all_ok(1);
}
END_TEST

static char *long_reply;

static void
answer_long(unsigned client, unsigned query)
{
    (void)query;
    answer_bytes_in(client, 0, long_reply, strlen(HEAD(17000000)) + 17000000);
}

START_TEST(a_body_that_is_too_long_to_be_seen_is_bad)
{
    make_seeing_world();
    long_reply = calloc(1, 17001000);
    memcpy(long_reply, HEAD(17000000), strlen(HEAD(17000000)));
    world.serve = answer_long;
    run_world();
    expect_ends(0, LOAD_END_BAD_BODY, 1);
    ck_assert_uint_le(last.body_length, 16u << 20);
    free(long_reply);
}
END_TEST

static int
without_memory(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    (void)requests;
    (void)sequence;
    (void)query;
    fake_os_fail(FAKE_REALLOC, 1, 1, ENOMEM);
    return 0;
}

START_TEST(without_memory_for_it_the_reply_is_an_error_of_ours)
{
    make_seeing_world();
    world.next = without_memory;
    run_world();
    expect_ends(0, LOAD_END_OTHER, 1);
    ck_assert_int_eq(world.result->first_error, ENOMEM);
}
END_TEST

static Suite *
suite(void)
{
    Suite *s = suite_create("http-worker-judge");
    TCase *t = tcase_create("expectations");
    int rows = (int)(sizeof(cases) / sizeof(cases[0]));

    tcase_add_loop_test(t, a_reply_is_what_the_plan_expects, 0, rows);
    tcase_add_loop_test(t, or_what_the_query_expects, 0, rows);
    tcase_add_loop_test(t, however_it_comes, 0, rows);
    tcase_add_loop_test(t, all_of_a_body_may_be_expected, 0, 3);
    tcase_add_test(t, a_reply_to_head_has_no_body);
    suite_add_tcase(s, t);
    t = tcase_create("the source looks");
    tcase_add_test(t, a_source_may_see_replies_and_dislike_them);
    tcase_add_test(t, it_sees_them_in_one_piece);
    tcase_add_test(t, it_sees_bad_ones_too);
    tcase_add_test(t, interim_responses_are_not_shown);
    tcase_add_test(t, of_a_reply_that_is_cut_nothing_stays);
    tcase_add_test(t, a_source_may_want_them_and_say_nothing);
    tcase_add_test(t, a_body_that_is_too_long_to_be_seen_is_bad);
    tcase_add_test(t, without_memory_for_it_the_reply_is_an_error_of_ours);
    suite_add_tcase(s, t);
    return s;
}

int
main(void)
{
    return sxe_test_main(suite());
}
