/* SPDX-License-Identifier: MIT
 *
 * The reports about each of several hosts.
 */
#include "hosts.h"

#include "has.h"
#include "http-run-fixture.h"
#include "output.h"
#include "summary-sheet.h"
#include "test-main.h"

static struct made made;

/* The first host answered a whole trial; the second one did not open two of its connections. */
static void
make_hosts(void)
{
    struct load_result *away = calloc(1, sizeof(*away));

    make_run(&made, 1);
    made.plan.hosts_number = 2;
    made.plan.hosts[0] =
        (struct load_host){.ip = "192.0.2.1", .port = 8000, .authority = "a.example:8000"};
    made.plan.hosts[1] = (struct load_host){.path = "/run/a/path/that/is/much/too/long/for/it",
                                            .authority = "localhost"};
    load_result_add_host(made.run.total, made.run.trials[0].result, 0, 2);
    away->sockets_wanted = 3;
    away->opened = 1;
    away->offered = 7;
    away->sent = 5;
    away->skipped[LOAD_SKIP_UNSENT] = 2;
    away->ends[LOAD_END_RESET] = 5;
    load_result_add_host(made.run.total, away, 1, 2);
    free(away);
}

START_TEST(each_host_has_a_row)
{
    struct load_sheet sheet;

    make_hosts();
    load_sheet_init(&sheet, stdout);
    load_summary_hosts(&sheet, &made.run);
    ck_assert_uint_eq(sheet.number, 3);
    check_has(sheet.lines[0].text,
              "host                     connections  offered       p50       p99");
    check_has(sheet.lines[1].text, "a.example:8000                 64/64    20.0k");
    ck_assert_int_eq(sheet.lines[1].paint, LOAD_PAINT_NONE);
    check_has(sheet.lines[2].text,
              "/run/a/path/that/is/...          1/3        7       n/a       n/a");
    ck_assert_int_eq(sheet.lines[2].paint, LOAD_PAINT_BAD);
    made.run.total->hosts = 0;
    load_summary_hosts(&sheet, &made.run);
    ck_assert_uint_eq(sheet.number, 3);
    free_run(&made);
}
END_TEST

START_TEST(the_json_has_their_accounts)
{
    FILE *out = tmpfile();
    char *text;

    make_hosts();
    ck_assert_int_eq(load_output_json(out, &made.run), 0);
    text = text_of(out, NULL);
    check_has(text, "\"unix_path\": \"/run/a/path/that/is/much/too/long/for/it\"");
    check_has(text, "\"name\": \"a.example:8000\"");
    check_has(text, "\"skipped\": 2");
    check_has(text, "\"sockets_wanted\": 3");
    free(text);
    free_run(&made);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-hosts");
    TCase *tcase = tcase_create("hosts");

    tcase_add_test(tcase, each_host_has_a_row);
    tcase_add_test(tcase, the_json_has_their_accounts);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
