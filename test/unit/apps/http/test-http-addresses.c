/* SPDX-License-Identifier: MIT
 *
 * The addresses of a host name in a result: adding them up, and the reports' rows about them.
 */
#include <errno.h>
#include <jansson.h>

#include "has.h"
#include "hosts.h"
#include "http-run-fixture.h"
#include "output.h"
#include "result-read.h"
#include "summary-sheet.h"
#include "test-main.h"

static struct made made;

static void
add(struct load_result *result, const char *ip, unsigned opened, unsigned failed, int error)
{
    struct load_address_result address = {.port = 8000,
                                          .is_unused = opened + failed == 0,
                                          .opened = opened,
                                          .failed = failed,
                                          .first_error = error};

    snprintf(address.ip, sizeof(address.ip), "%s", ip);
    load_result_add_address(result, &address);
}

static void
make_addresses(void)
{
    make_run(&made, 1);
    add(made.run.total, "127.0.0.2", 4, 0, 0);
    add(made.run.total, "2001:db8:1111:2222:3333:4444:5555:6666", 0, 3, ECONNREFUSED);
    add(made.run.total, "::1", 0, 0, 0);
}

START_TEST(each_address_has_a_row)
{
    struct load_sheet sheet;

    make_addresses();
    load_sheet_init(&sheet, stdout);
    load_summary_addresses(&sheet, &made.run);
    ck_assert_uint_eq(sheet.number, 4);
    check_has(sheet.lines[0].text, "address                  connections   failed");
    check_has(sheet.lines[1].text, "127.0.0.2                          4        0");
    ck_assert_int_eq(sheet.lines[1].paint, LOAD_PAINT_NONE);
    check_has(sheet.lines[2].text, "2001:db8:1111:2222:3...            0        3");
    check_has(sheet.lines[2].text, "  Connection refused");
    ck_assert_int_eq(sheet.lines[2].paint, LOAD_PAINT_BAD);
    check_has(sheet.lines[3].text, "not used: it accepted no connection at the start");
    made.run.total->addresses = 0;
    load_summary_addresses(&sheet, &made.run);
    ck_assert_uint_eq(sheet.number, 4);
    free_run(&made);
}
END_TEST

START_TEST(a_row_says_that_source_excludes_its_address)
{
    struct load_plan plan;
    struct load_sheet sheet;

    make_addresses();
    plan = *made.run.plan;
    /* the pointer is not followed */
    plan.local_addresses = (const struct load_local_addresses *)&plan;
    made.run.plan = &plan;
    load_sheet_init(&sheet, stdout);
    load_summary_addresses(&sheet, &made.run);
    check_has(sheet.lines[3].text, "not used: it is not of the family of --source");
    free_run(&made);
}
END_TEST

/* Print rows of ten addresses, the first `failed` of which fail, in so many lines. */
static char *
print_rows(unsigned lines, unsigned failed)
{
    FILE *out = tmpfile();
    struct load_sheet sheet;
    char ip[16];

    make_run(&made, 1);
    for (unsigned i = 0; i < 10; i++) {
        snprintf(ip, sizeof(ip), "10.0.0.%u", i);
        add(made.run.total, ip, 1, i < failed, ECONNREFUSED);
    }
    load_sheet_init(&sheet, stdout);
    load_summary_addresses(&sheet, &made.run);
    load_sheet_print(&sheet, out, lines, false);
    free_run(&made);
    return text_of(out, NULL);
}

START_TEST(the_heading_says_how_many_rows_are_left_out)
{
    char *all = print_rows(11, 1), *bad = print_rows(10, 6), *good = print_rows(5, 0);

    check_has(all, "10.0.0.9");
    ck_assert_ptr_null(strstr(all, "more"));
    check_has(bad, "failed  (6 more: see --json)\n10.0.0.0");
    check_has(bad, "10.0.0.3");
    ck_assert_ptr_null(strstr(bad, "10.0.0.4"));
    ck_assert_str_eq(good,
                     "address                  connections   failed  (10 more: see --json)\n");
    free(all);
    free(bad);
    free(good);
}
END_TEST

START_TEST(the_json_has_them_and_is_read_again)
{
    struct load_result *read = calloc(1, sizeof(*read));
    struct load_reader reader = {""};
    FILE *out = tmpfile();
    json_t *root;

    make_addresses();
    ck_assert_int_eq(load_output_json(out, &made.run), 0);
    rewind(out);
    root = json_loadf(out, 0, NULL);
    load_result_read(&reader, json_object_get(root, "total"), read);
    ck_assert_str_eq(reader.problem, "");
    ck_assert_uint_eq(read->addresses, 3);
    ck_assert_int_eq(
        memcmp(read->by_address, made.run.total->by_address, 3 * sizeof(read->by_address[0])), 0);
    fclose(out);
    json_decref(root);
    free(read);
    free_run(&made);
}
END_TEST

START_TEST(results_are_added_up_by_address)
{
    struct load_result *sum = calloc(1, sizeof(*sum));
    struct load_result *part = calloc(1, sizeof(*part));

    add(sum, "127.0.0.2", 0, 0, 0);
    add(part, "127.0.0.3", 0, 2, ECONNRESET);
    add(part, "127.0.0.2", 5, 1, ETIMEDOUT);
    load_result_add(sum, part);
    load_result_add(sum, part);
    ck_assert_uint_eq(sum->addresses, 2);
    ck_assert_uint_eq(sum->by_address[0].opened, 10);
    ck_assert_uint_eq(sum->by_address[0].failed, 2);
    ck_assert_int_eq(sum->by_address[0].first_error, ETIMEDOUT);
    ck_assert(!sum->by_address[0].is_unused);
    ck_assert_uint_eq(sum->by_address[1].failed, 4);
    free(sum);
    free(part);
}
END_TEST

START_TEST(an_address_too_many_is_left_out)
{
    struct load_result *sum = calloc(1, sizeof(*sum));
    char ip[16];

    for (unsigned i = 0; i <= SXE_COUNT(sum->by_address); i++) {
        snprintf(ip, sizeof(ip), "10.0.%u.%u", i / 256, i % 256);
        add(sum, ip, 1, 0, 0);
    }
    ck_assert_uint_eq(sum->addresses, SXE_COUNT(sum->by_address));
    free(sum);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-addresses");
    TCase *tcase = tcase_create("addresses");

    tcase_add_test(tcase, each_address_has_a_row);
    tcase_add_test(tcase, a_row_says_that_source_excludes_its_address);
    tcase_add_test(tcase, the_heading_says_how_many_rows_are_left_out);
    tcase_add_test(tcase, the_json_has_them_and_is_read_again);
    tcase_add_test(tcase, results_are_added_up_by_address);
    tcase_add_test(tcase, an_address_too_many_is_left_out);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
