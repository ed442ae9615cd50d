/* SPDX-License-Identifier: MIT
 *
 * Every message of http-cases.h, and chunked bodies, read by us and by http-parser and llhttp,
 * those of them that are installed.
 */
#include "http-cases.h"

#include "http-oracle.h"
#include "test-main.h"

#define POST "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"

static const char *const bodies[] = {
    POST "5\r\nhello\r\n0\r\n\r\n",
    POST "5\r\nhello\r\n0\r\nA: b\r\n\r\n",
    POST "5;a=b\r\nhello\r\nA;c=\"d\"\r\n0123456789\r\n0;e\r\n\r\n",
    POST "5\r\nhello",
    POST "0\r\n",
    POST "5\nhello\r\n0\r\n\r\n",
    POST "5 \r\nhello\r\n0\r\n\r\n",
    POST "5\r\nhello0\r\n\r\n",
    POST "5\r\nhello\n0\r\n\r\n",
    POST "\r\n\r\n",
    POST "0x5\r\nhello\r\n0\r\n\r\n",
    POST "-5\r\nhello\r\n0\r\n\r\n",
    POST "fffffffffffffffff\r\nhello",
    POST "5;\r\nhello\r\n0\r\n\r\n",
    POST "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n",
    POST "0\r\nA: b\r\n c\r\n\r\n",
    POST "0\r\nA : b\r\n\r\n",
};

enum { BODIES = sizeof(bodies) / sizeof(bodies[0]) };

static void
compare(const char *title, bool is_response, const char *data, size_t length)
{
    for (unsigned i = 0; i < HTTP_PEERS; i++) {
        const char *explained;
        const char *difference;

        if (http_peer(i) == NULL)
            continue;
        difference = http_oracle_compare(http_peer(i), is_response, data, length, &explained);
        ck_assert_msg(difference == NULL, "%s: %s: %s", title, http_peer(i)->name, difference);
    }
}

START_TEST(each_case_is_the_same_to_others_or_explained)
{
    const struct http_case *test = &http_cases[_i];

    if (test->kind <= HTTP_RESPONSE)
        compare(test->title, test->kind == HTTP_RESPONSE, test->bytes, test->length);
}
END_TEST

START_TEST(each_chunked_body_is_the_same_to_others_or_explained)
{
    compare(bodies[_i], false, bodies[_i], strlen(bodies[_i]));
}
END_TEST

START_TEST(each_refusal_of_ours_names_a_section)
{
    ck_assert_ptr_nonnull(http_oracle_stricter[_i]);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-oracle");
    TCase *oracle = tcase_create("oracle");

    for (unsigned i = 0; i < HTTP_PEERS; i++) {
        if (http_peer(i) == NULL)
            printf("skipped: the comparison with %s, which is not installed\n",
                   http_peer_package(i));
    }
    tcase_add_loop_test(oracle, each_case_is_the_same_to_others_or_explained, 0, HTTP_CASES);
    tcase_add_loop_test(oracle, each_chunked_body_is_the_same_to_others_or_explained, 0, BODIES);
    tcase_add_loop_test(oracle, each_refusal_of_ours_names_a_section, 1, SXE_HTTP_REFUSALS_END);
    suite_add_tcase(suite, oracle);
    return sxe_test_main(suite);
}
