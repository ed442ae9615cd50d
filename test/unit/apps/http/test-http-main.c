/* SPDX-License-Identifier: MIT
 *
 * main() of sxe-http: the run, its summary, outputs, comparison and script together, and the exit
 * status.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "http-app-server.h"
#include "test-main.h"

static char directory[64];
static char path[96];

/* A load that takes little time. */
#define SHORT_RUN "-p", port, "-c", "1", "--requests", "100"

START_TEST(json_on_stdout_is_alone_there)
{
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--json", "-");
    stop_server();
    ck_assert_int_eq(ran.output[0], '{');
    ck_assert_str_eq(ran.output + strlen(ran.output) - 2, "}\n");
    ck_assert_ptr_null(strstr(ran.output, "time for all"));
}
END_TEST

START_TEST(results_go_to_files_and_are_compared)
{
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--json", path);
    check_has(ran.output, "time for all");
    RUN_HTTP(SHORT_RUN, "--baseline", path);
    CHECK(0, "cannot tell");
    RUN_HTTP("compare", path, path);
    ck_assert(ran.status == 0 || ran.status == 4); /* a suspect result, as on a busy machine */
    check_has(ran.output, "cannot tell");
    RUN_HTTP("html", path, path);
    CHECK(0, "<html");
}
END_TEST

/* merge prints the JSON; if the JSON goes to a file (--json), it prints the report. */
START_TEST(results_are_merged)
{
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--json", path);
    stop_server();
    RUN_HTTP("merge", path);
    ck_assert_int_eq(ran.output[0], '{');
    check_has(ran.errors, "requests  100  ok 100");
    RUN_HTTP("merge", path, "-q");
    ck_assert_int_eq(ran.output[0], '{');
    ck_assert_str_eq(ran.errors, "");
    RUN_HTTP("merge", path, "--json", "/dev/null", "--threshold", "errors>50%");
    check_has(ran.output, "parts     ");
    check_has(ran.errors, "threshold errors>50% is missed");
    RUN_HTTP("merge", path, "--json", path);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "would overwrite the result");
    RUN_HTTP("merge", "/nowhere/a.json");
    ck_assert_int_eq(ran.status, 2);
    RUN_HTTP("merge", path, "--json", "/nowhere/a.json");
    ck_assert_int_eq(ran.status, 2);
}
END_TEST

START_TEST(the_comparison_is_no_data)
{
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--json", path);
    RUN_HTTP(SHORT_RUN, "--baseline", path, "--json", "-");
    stop_server();
    ck_assert_int_eq(ran.output[0], '{');
    check_has(ran.errors, "cannot tell");
}
END_TEST

/* Files are checked before the run, so that a long run is not lost. */
START_TEST(with_a_file_that_cannot_be_read_or_written_nothing_is_run)
{
    static const char *const files[][2] = {{"--baseline", "/nowhere/a.json"},
                                           {"--csv", "/nowhere/a.csv"}};

    RUN_HTTP("-p", "1", files[_i][0], files[_i][1]);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, files[_i][1]);
    ck_assert_str_eq(ran.output, "");
}
END_TEST

START_TEST(without_its_baseline_no_output_is_created)
{
    RUN_HTTP("-p", "1", "--baseline", "/nowhere/a.json", "--json", path);
    ck_assert_int_eq(ran.status, 2);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* The limit is this process's own; the server, which writes files, was stopped before. */
START_TEST(a_file_that_grows_past_its_limit_is_an_error)
{
    struct rlimit before;

    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--json", path);
    stop_server();
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, before.rlim_max}), 0);
    RUN_HTTP("html", path);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    clearerr(stdout);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "could not be written");
}
END_TEST

START_TEST(a_report_that_cannot_be_written_is_an_error)
{
    FILE *out = fopen("/dev/full", "w");

    ck_assert_ptr_nonnull(out);
    start_server(hello);
    run_http_into(out, (const char *[]){"sxe-http", SHORT_RUN, NULL});
    fclose(out);
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "sxe-http: the report could not be written\n");
    clearerr(stdout);
}
END_TEST

START_TEST(files_are_written_even_if_nobody_reads_the_report)
{
    int ends[2];
    FILE *out;

    ck_assert_int_eq(pipe(ends), 0);
    out = fdopen(ends[1], "w");
    ck_assert_ptr_nonnull(out);
    close(ends[0]);
    start_server(hello);
    run_http_into(out, (const char *[]){"sxe-http", SHORT_RUN, "--json", path, NULL});
    fclose(out);
    clearerr(stdout);
    stop_server();
    ck_assert(ran.status == 0 || ran.status == 4);
    ck_assert_ptr_null(strstr(ran.errors, "written"));
    RUN_HTTP("compare", path, path);
    ck_assert(ran.status == 0 || ran.status == 4); /* a suspect result, as on a busy machine */
    check_has(ran.output, "cannot tell");
}
END_TEST

START_TEST(a_threshold_that_is_missed_has_a_status_of_its_own)
{
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--threshold", "p50<0.001us");
    stop_server();
    ck_assert(ran.status == 3 || ran.status == 4);
    check_has(ran.errors, "sxe-http: threshold p50<0.001us is missed\n");
}
END_TEST

/* An annotation goes to standard output, which GitHub reads; unless that is data, then to standard
 * error. */
START_TEST(what_is_not_well_is_annotated_if_asked_for)
{
    static const char line[] = "::error title=sxe-http%3A Threshold missed::p50<0.001us: the ";

    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--threshold", "p50<0.001us");
    ck_assert_ptr_null(strstr(ran.output, line));
    RUN_HTTP(SHORT_RUN, "--threshold", "p50<0.001us", "--annotate");
    check_has(ran.output, line);
    setenv("GITHUB_ACTIONS", "true", 1);
    RUN_HTTP(SHORT_RUN, "--threshold", "p50<0.001us", "--json", "-");
    ck_assert_ptr_null(strstr(ran.output, line));
    check_has(ran.errors, line);
    setenv("GITHUB_ACTIONS", "false", 1);
    RUN_HTTP(SHORT_RUN, "--threshold", "p50<0.001us");
    ck_assert_ptr_null(strstr(ran.output, line));
    stop_server();
}
END_TEST

/* Each file has the comparison, too. */
START_TEST(what_was_judged_goes_to_files)
{
    static char text[1 << 20];
    FILE *file;

    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--json", path);
    RUN_HTTP(SHORT_RUN, "--baseline", path, "--junit", "-");
    check_has(ran.output, "name=\"comparison: service p50\" time=\"0.000\"><skipped message=");
    setenv("GITHUB_STEP_SUMMARY", path, 1);
    RUN_HTTP(SHORT_RUN, "--markdown", path);
    stop_server();
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    ck_assert_int_eq(text[0], '{');
    check_has(text, "\n## sxe-http: GET http://");
}
END_TEST

START_TEST(lines_that_cannot_be_written_make_it_an_error)
{
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "--jsonl", "/dev/full");
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "--jsonl /dev/full could not be written: No space left on device");
    RUN_HTTP(SHORT_RUN, "--jsonl", "-");
    stop_server();
    ck_assert_int_eq(ran.output[0], '{');
    check_has(ran.output, "\"type\": \"result\"");
}
END_TEST

START_TEST(errors_may_be_allowed)
{
    start_server(not_found_once);
    RUN_HTTP(SHORT_RUN, "--threshold", "errors<2%");
    CHECK(0, "bad status 1");
    start_server(not_found_once);
    RUN_HTTP(SHORT_RUN, "--threshold", "errors<1%");
    stop_server();
    ck_assert(ran.status == 3 || ran.status == 4);
}
END_TEST

static void
write_script(const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(a_script_has_its_last_word)
{
    write_script("function done(summary) print('requests: ' .. summary.requests) end\n");
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "-s", path);
    CHECK(0, "requests: 100\n");
}
END_TEST

START_TEST(where_stdout_is_data_a_script_prints_on_stderr)
{
    write_script("print('loaded')\n"
                 "function init() print('begun') end\n"
                 "function done() print('done') os.execute('echo started') end\n");
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "-s", path, "--json", "-");
    stop_server();
    ck_assert_int_eq(ran.output[0], '{');
    ck_assert_str_eq(ran.output + strlen(ran.output) - 2, "}\n");
    for (unsigned i = 0; i < 4; i++)
        check_has(ran.errors, (const char *[]){"loaded\n", "begun\n", "done\n", "started\n"}[i]);
    ck_assert_ptr_null(strstr(ran.output, "begun"));
}
END_TEST

START_TEST(a_script_that_fails_at_the_end_is_an_error)
{
    write_script("function done() error('no more') end\n");
    start_server(hello);
    RUN_HTTP(SHORT_RUN, "-s", path);
    stop_server();
    ck_assert_int_eq(ran.status, 1);
    check_has(ran.errors, "no more");
}
END_TEST

START_TEST(two_workers_share_the_load)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "5", "-n", "7", "-t", "2");
    CHECK(0, "opened    5/5 connections", "requests  35  ok 35  errors 0", "2 workers");
}
END_TEST

/* There is a connection for each request, because a busy machine may answer late. */
START_TEST(a_rate_is_offered)
{
    start_server(hello);
    RUN_HTTP("-p", port, "-c", "150", "-R", "500", "-d", "0.3s", "--arrivals", "fixed");
    CHECK(0, "partly open: 500/s fixed", "requests  150  ok 150  ", "errors 0  in flight 0");
}
END_TEST

START_TEST(what_is_wrong_on_the_command_line_is_said)
{
    RUN_HTTP("--nonsense");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "--nonsense");
}
END_TEST

START_TEST(the_selftest_has_a_line_a_check)
{
    RUN_HTTP("--selftest");
    for (unsigned i = 0; i < 7; i++)
        check_has(ran.output, (const char *[]){" clocks ", " timer ", " histogram ", " accounts ",
                                               " merge ", " stall ", " delay "}[i]);
}
END_TEST

START_TEST(the_log_has_the_level_that_is_asked_for)
{
    setenv("SXE_LOG_LEVEL", "5", 1);
    start_server(hello);
    RUN(1, 1);
    CHECK(0, "ok 1");
}
END_TEST

static void
make_directory(void)
{
    snprintf(directory, sizeof(directory), "/tmp/test-http-app-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/file", directory);
}

static void
remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

/* ---- On a terminal ---- */

/* The output if standard output is a terminal. */
static void
run_on_terminal(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    FILE *out;

    ck_assert_int_ge(terminal, 0);
    ck_assert_int_eq(grantpt(terminal), 0);
    ck_assert_int_eq(unlockpt(terminal), 0);
    fcntl(terminal, F_SETFL, O_NONBLOCK);
    out = fopen(ptsname(terminal), "w");
    ck_assert_ptr_nonnull(out);
    start_server(not_found_once);
    run_http_into(out, (const char *[]){"sxe-http", SHORT_RUN, NULL});
    stop_server();
    size_t length = 0;
    ssize_t got;
    while ((got = read(terminal, ran.output + length, sizeof(ran.output) - 1 - length)) > 0)
        length += (size_t)got;
    ran.output[length] = '\0';
    fclose(out);
    close(terminal);
}

START_TEST(a_terminal_has_colours_unless_somebody_minds)
{
    static const struct {
        const char *no_color;
        const char *terminal;
        bool is_colored;
    } cases[] = {
        {"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}, {"", NULL, false}};

    setenv("NO_COLOR", cases[_i].no_color, 1);
    if (cases[_i].terminal != NULL)
        setenv("TERM", cases[_i].terminal, 1);
    else
        unsetenv("TERM");
    run_on_terminal();
    check_has(ran.output, "bad status 1");
    ck_assert_int_eq(strchr(ran.output, '\033') != NULL, cases[_i].is_colored);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-main");
    TCase *all = tcase_create("all");

    tcase_add_test(all, json_on_stdout_is_alone_there);
    tcase_add_test(all, results_go_to_files_and_are_compared);
    tcase_add_test(all, results_are_merged);
    tcase_add_test(all, the_comparison_is_no_data);
    tcase_add_loop_test(all, with_a_file_that_cannot_be_read_or_written_nothing_is_run, 0, 2);
    tcase_add_test(all, without_its_baseline_no_output_is_created);
    tcase_add_test(all, a_file_that_grows_past_its_limit_is_an_error);
    tcase_add_test(all, a_report_that_cannot_be_written_is_an_error);
    tcase_add_test(all, files_are_written_even_if_nobody_reads_the_report);
    tcase_add_test(all, a_threshold_that_is_missed_has_a_status_of_its_own);
    tcase_add_test(all, what_is_not_well_is_annotated_if_asked_for);
    tcase_add_test(all, what_was_judged_goes_to_files);
    tcase_add_test(all, lines_that_cannot_be_written_make_it_an_error);
    tcase_add_test(all, errors_may_be_allowed);
    tcase_add_test(all, a_script_has_its_last_word);
    tcase_add_test(all, where_stdout_is_data_a_script_prints_on_stderr);
    tcase_add_test(all, a_script_that_fails_at_the_end_is_an_error);
    tcase_add_test(all, two_workers_share_the_load);
    tcase_add_test(all, a_rate_is_offered);
    tcase_add_test(all, what_is_wrong_on_the_command_line_is_said);
    tcase_add_test(all, the_selftest_has_a_line_a_check);
    tcase_add_test(all, the_log_has_the_level_that_is_asked_for);
    tcase_add_loop_test(all, a_terminal_has_colours_unless_somebody_minds, 0, 4);
    tcase_add_checked_fixture(all, make_directory, remove_directory);
    tcase_add_checked_fixture(all, note_what_is_open, check_that_nothing_is_open);
    suite_add_tcase(suite, all);
    return sxe_test_main(suite);
}
