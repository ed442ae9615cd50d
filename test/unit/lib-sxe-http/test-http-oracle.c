/* SPDX-License-Identifier: MIT
 *
 * Every message of http-cases.h, and chunked bodies, read by our parser and by http-parser and
 * llhttp. docs/http-parser.md explains each difference.
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

START_TEST(each_other_parser_is_there_or_its_lack_is_said)
{
    if (http_peer((unsigned)_i) == NULL)
        printf("skipped: the comparison with %s, because it was not there when this was built\n",
               http_peer_package((unsigned)_i));
}
END_TEST

static void
compare(const char *title, bool is_response, const char *data, size_t length)
{
    for (unsigned i = 0; i < HTTP_PEERS; i++) {
        if (http_peer(i) == NULL)
            continue;
        const char *section;
        const char *difference =
            http_oracle_compare(http_peer(i), is_response, data, length, &section);

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

/* Each row of the table must still explain a difference. */
START_TEST(each_difference_is_one)
{
    const struct http_oracle_difference *one = &http_oracle_differences[_i];
    bool is_response = strncmp(one->example, "HTTP/", 5) == 0;

    for (unsigned i = 0; i < HTTP_PEERS; i++) {
        const struct http_peer *peer = http_peer(i);
        if (peer == NULL)
            continue;
        const char *section;
        const char *difference =
            http_oracle_compare(peer, is_response, one->example, strlen(one->example), &section);

        if (one->peer != NULL && strcmp(one->peer, peer->name) != 0)
            continue;
        ck_assert_msg(difference == NULL, "%s: %s", peer->name, difference);
        ck_assert_msg(section != NULL, "%s reads it as we do", peer->name);
        ck_assert_str_eq(section, one->section);
    }
}
END_TEST

/* ---- The tables in docs/http-parser.md ---- */

static const char *
page(void)
{
    static char text[65536];
    FILE *file = fopen("docs/http-parser.md", "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

START_TEST(each_refusal_stands_in_the_docs_with_its_section)
{
    char row[200];

    ck_assert_ptr_nonnull(http_oracle_stricter[_i]);
    snprintf(row, sizeof(row), "| `%s` | %u | %s |", http_case_refusals[_i],
             sxe_http_refusal_status((enum sxe_http_refusal)_i), http_oracle_stricter[_i]);
    ck_assert_msg(strstr(page(), row) != NULL, "docs/http-parser.md has no row\n%s", row);
}
END_TEST

START_TEST(each_difference_stands_in_the_docs)
{
    const char *section = http_oracle_differences[_i].section;

    ck_assert_msg(strstr(page(), section) != NULL, "docs/http-parser.md lacks\n%s", section);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-oracle");
    TCase *oracle = tcase_create("oracle");

    tcase_add_loop_test(oracle, each_other_parser_is_there_or_its_lack_is_said, 0, HTTP_PEERS);
    tcase_add_loop_test(oracle, each_case_is_the_same_to_others_or_explained, 0, HTTP_CASES);
    tcase_add_loop_test(oracle, each_chunked_body_is_the_same_to_others_or_explained, 0, BODIES);
    tcase_add_loop_test(oracle, each_difference_is_one, 0, HTTP_ORACLE_DIFFERENCES);
    tcase_add_loop_test(oracle, each_refusal_stands_in_the_docs_with_its_section, 1,
                        SXE_HTTP_REFUSALS_END);
    tcase_add_loop_test(oracle, each_difference_stands_in_the_docs, 0, HTTP_ORACLE_DIFFERENCES);
    suite_add_tcase(suite, oracle);
    return sxe_test_main(suite);
}
