/* SPDX-License-Identifier: MIT
 *
 * The command line of sxe-http, which is parsed to a plan.
 */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "captured.h"
#include "command-line.h"
#include "fake-os.h"
#include "handshake.h"
#include "outputs.h"
#include "requests.h"
#include "run.h"
#include "stats.h"
#include "sxe-time.h"
#include "test-main.h"

/* A path that is one byte too long for a unix socket. */
#define PATH_36   "/2345678/2345678/2345678/2345678/234"
#define LONG_PATH PATH_36 PATH_36 PATH_36

/* ---- Parsing a command line ---- */

static struct load_command command;
static const struct load_plan *const plan = &command.plan;
static char output[16000];
static char errors[4000];

/* Which allocation of the parsing fails, 1 the first; 0 none. */
static unsigned failing;
static unsigned injected;
static const enum fake_call allocations[] = {FAKE_MALLOC, FAKE_CALLOC, FAKE_REALLOC, FAKE_STRDUP};

/* The parser changes its arguments for a moment, so parse() passes copies. */
static char *words[64];

static int
parse(const char *const *argv)
{
    struct captured out = capture(STDOUT_FILENO, tmpfile());
    struct captured err = capture(STDERR_FILENO, tmpfile());
    int argc = 0;
    int result;

    for (; argv[argc] != NULL; argc++) {
        free(words[argc]);
        words[argc] = strdup(argv[argc]);
    }
    free(words[argc]);
    words[argc] = NULL;
    load_command_free(&command);
    if (failing > 0)
        fake_os_sweep(allocations, 4, failing, false, ENOMEM);
    result = load_command_parse(&command, argc, words);
    injected = fake_os_injected();
    fake_os_reset();
    captured_text(&out, output, sizeof(output));
    captured_text(&err, errors, sizeof(errors));
    return result;
}
#define PARSE(...) parse((const char *const[]){"sxe-http", __VA_ARGS__, NULL})
#define U1         "http://127.0.0.1:81/a"
#define U2         "http://127.0.0.1:82/a"
#define S1         "https://127.0.0.1/"
#define GOOD(...)  ck_assert_msg(PARSE(__VA_ARGS__) == COMMAND_LINE_GO_ON, "%s", errors)

static void
teardown(void)
{
    load_command_free(&command);
    command = (struct load_command){0};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        free(words[i]);
        words[i] = NULL;
    }
}

/* The plan's next query as text. */
static const char *
next_query(void)
{
    static char text[4000];
    struct load_query query = {0};

    ck_assert_int_eq(plan->requests->begin(plan->requests, 0, 1, 1), 0);
    ck_assert_int_eq(plan->requests->next(plan->requests, 0, &query), 0);
    snprintf(text, sizeof(text), "%.*s", (int)query.length, query.bytes);
    return text;
}

/* ---- The server's address ---- */

START_TEST(without_arguments_it_prints_its_help)
{
    ck_assert_int_eq(parse((const char *const[]){"sxe-http", NULL}), LOAD_EXIT_USAGE);
    ck_assert_ptr_eq(strstr(output, "usage: sxe-http"), output);
    ck_assert_str_eq(errors, "");
}
END_TEST

START_TEST(with_an_address_alone_it_is_what_it_was_in_2010)
{
    GOOD("-i", "127.0.0.1");
    ck_assert_int_eq(command.what, LOAD_COMMAND_RUN);
    ck_assert_str_eq(plan->ip, "127.0.0.1");
    ck_assert_uint_eq(plan->port, 8000);
    ck_assert_uint_eq(plan->sockets, 1000);
    ck_assert_int_eq(plan->stop, LOAD_STOP_PER_SOCKET);
    ck_assert_uint_eq(plan->queries, 1);
    ck_assert_int_eq(plan->model, LOAD_CLOSED);
    ck_assert_uint_eq(plan->workers, 1);
    ck_assert_uint_eq(plan->depth, 1);
    ck_assert_uint_eq(plan->ramp, 16);
    ck_assert_uint_eq(plan->timeout_ns, 10 * SXE_NS_PER_SECOND);
    ck_assert_uint_eq(plan->drain_ns, plan->timeout_ns);
    ck_assert_uint_eq(plan->trials, 1);
    ck_assert_str_eq(plan->what, "GET http://127.0.0.1:8000/");
    ck_assert(load_expect_accepts_status(plan->expect, 204));
    ck_assert(!load_expect_accepts_status(plan->expect, 304));
    ck_assert_ptr_ne(strstr(next_query(), "GET / HTTP/1.1\r\n"), NULL);
    ck_assert_ptr_ne(strstr(next_query(), "\r\nHost: 127.0.0.1:8000\r\n"), NULL);
}
END_TEST

START_TEST(the_command_line_of_2010_means_the_same)
{
    GOOD("-i", "::1", "-p", "81", "-n", "50", "-c", "10000");
    ck_assert_str_eq(plan->ip, "::1");
    ck_assert_uint_eq(plan->port, 81);
    ck_assert_uint_eq(plan->queries, 50);
    ck_assert_uint_eq(plan->sockets, 10000);
    ck_assert_str_eq(plan->authority, "[::1]:81");
    GOOD("-i", "fe80::1%lo");
    ck_assert_str_eq(plan->authority, "[fe80::1]:8000");
}
END_TEST

/* Shard 2 of 3 sends no probes: only shard 1 does. */
START_TEST(a_shard_has_its_part_of_the_load)
{
    static const char *const argv[] = {"sxe-http", "--shard",    "2/3", "--probe",
                                       "5",        "--start-at", "+9",  "http://127.0.0.1:81/",
                                       NULL};

    ck_assert_int_eq(parse(argv), -1);
    ck_assert_uint_eq(plan->shards, 3);
    ck_assert_uint_eq(plan->shard, 1);
    ck_assert(!(plan->probe_rate > 0));
    ck_assert_uint_gt(plan->start_at_ns, 0);
}
END_TEST

START_TEST(a_url_alone_gives_a_result_in_five_seconds)
{
    GOOD("http://127.0.0.1:81/a?b=c#d");
    ck_assert_str_eq(plan->ip, "127.0.0.1");
    ck_assert_uint_eq(plan->port, 81);
    ck_assert_int_eq(plan->stop, LOAD_STOP_TIME);
    ck_assert_uint_eq(plan->duration_ns, 4 * SXE_NS_PER_SECOND);
    ck_assert_uint_eq(plan->sockets, 64);
    ck_assert_str_eq(plan->what, "GET http://127.0.0.1:81/a?b=c");
    ck_assert_ptr_ne(strstr(next_query(), "GET /a?b=c HTTP/1.1\r\n"), NULL);
}
END_TEST

START_TEST(an_address_overrides_only_where_to_connect)
{
    GOOD("-i", "127.0.0.2", "-p", "82", "http://example.org:81/x");
    ck_assert_str_eq(plan->ip, "127.0.0.2");
    ck_assert_uint_eq(plan->port, 82);
    ck_assert_str_eq(plan->authority, "example.org:81");
    ck_assert_ptr_ne(strstr(next_query(), "\r\nHost: example.org:81\r\n"), NULL);
}
END_TEST

START_TEST(a_unix_socket_is_connected_to)
{
    GOOD("--unix", "/run/web.sock");
    ck_assert_str_eq(plan->unix_path, "/run/web.sock");
    ck_assert_str_eq(plan->authority, "localhost");
    GOOD("--unix", "@web", "http://example.org/");
    ck_assert_str_eq(plan->unix_path, "@web");
    ck_assert_str_eq(plan->authority, "example.org");
    GOOD("--unix", &LONG_PATH[1]);
    GOOD("http+unix:///run/web.sock:/a");
    ck_assert_str_eq(plan->unix_path, "/run/web.sock");
    ck_assert_ptr_ne(strstr(next_query(), "GET /a HTTP/1.1\r\n"), NULL);
}
END_TEST

START_TEST(the_options_of_tls_are_taken)
{
    char name[LOAD_AUTHORITY_SIZE];

    GOOD("--tls-ca", "a", "--tls-cert", "b", "--tls-key", "c", S1);
    ck_assert(plan->tls.is_used);
    ck_assert(!plan->tls.is_insecure);
    ck_assert_str_eq(plan->tls.authorities, "a");
    ck_assert_str_eq(plan->tls.certificate, "b");
    ck_assert_str_eq(plan->tls.key, "c");
    ck_assert_str_eq(plan->what, "GET https://127.0.0.1/");
    load_handshake_name(plan, name);
    ck_assert_str_eq(name, "127.0.0.1");
    GOOD("--insecure", "https://[::1]:8443/");
    ck_assert(plan->tls.is_insecure);
    ck_assert_uint_eq(plan->port, 8443);
    load_handshake_name(plan, name);
    ck_assert_str_eq(name, "::1");
    ck_assert_ptr_nonnull(
        strstr(errors, "warning: --insecure: the server's certificate is not verified"));
    GOOD("--tls-name", "a.example", "-i", "127.0.0.1", "https://b.example:1/");
    load_handshake_name(plan, name);
    ck_assert_str_eq(name, "a.example");
    ck_assert_uint_eq(plan->tls.resume, 0);
    GOOD("--tls-resume", "50", S1);
    ck_assert_uint_eq(plan->tls.resume, 50);
    GOOD("--tls-resume", "100%", S1);
    ck_assert_uint_eq(plan->tls.resume, 100);
    GOOD(U1);
    ck_assert(!plan->tls.is_used);
}
END_TEST

START_TEST(sources_and_proxy_headers_are_taken)
{
    GOOD("--source", "127.0.0.1-127.0.0.8", "--proxy", "2");
    ck_assert_ptr_ne(plan->local_addresses, NULL);
    ck_assert_uint_eq(plan->local_addresses->number, 8);
    ck_assert_uint_eq(plan->proxy, 2);
}
END_TEST

START_TEST(several_urls_take_turns)
{
    GOOD("http://127.0.0.1:81/a", "http://127.0.0.1:81/b");
    ck_assert_str_eq(plan->what, "GET of 2 URLs at http://127.0.0.1:81");
    ck_assert_uint_eq(plan->requests->kinds, 2);
    ck_assert_str_eq(plan->requests->kind_names[1], "GET /b");
    GOOD("-i", "127.0.0.1", "http://a.example/", "http://b.example/");
    ck_assert_str_eq(plan->authority, "a.example");
}
END_TEST

START_TEST(urls_may_be_of_several_hosts)
{
    GOOD("http://127.0.0.1:81/a", "http://[::1]:82/b", "unix:/run/c:/c", "http://127.0.0.1:81/d");
    ck_assert_uint_eq(plan->hosts_number, 3);
    ck_assert_uint_eq(plan->workers, 3);
    ck_assert_str_eq(plan->what, "GET of 4 URLs at 3 hosts, the first http://127.0.0.1:81");
    ck_assert_str_eq(plan->hosts[0].ip, "127.0.0.1");
    ck_assert_uint_eq(plan->hosts[0].port, 81);
    ck_assert_str_eq(plan->hosts[1].ip, "::1");
    ck_assert_uint_eq(plan->hosts[1].port, 82);
    ck_assert_str_eq(plan->hosts[1].authority, "[::1]:82");
    ck_assert_str_eq(plan->hosts[2].path, "/run/c");
    ck_assert_uint_eq(plan->requests->kinds, 4);
    ck_assert_str_eq(plan->requests->kind_names[1], "GET [::1]:82/b");
    ck_assert_str_eq(plan->requests->kind_names[2], "GET /run/c/c");
    GOOD("unix:/run/c:/c", "http://127.0.0.1:81/a", "-t", "4", "--shard", "2/3");
    ck_assert_uint_eq(plan->workers, 4);
    ck_assert_str_eq(plan->hosts[0].path, "/run/c");
    GOOD("http://127.0.0.1:81/a", "http://127.0.0.1:82/b", "--source", "127.0.0.1");
    ck_assert_uint_eq(plan->hosts_number, 2);
}
END_TEST

START_TEST(there_may_be_16_hosts)
{
    static char texts[17][40];
    const char *argv[20] = {"sxe-http"};

    for (unsigned i = 0; i < 17; i++) {
        snprintf(texts[i], sizeof(texts[i]), "http://127.0.0.1:%u/", 81 + i);
        argv[1 + i] = texts[i];
    }
    ck_assert_int_eq(parse(argv), COMMAND_LINE_WRONG);
    ck_assert_ptr_nonnull(strstr(errors, "there are more than 16 hosts"));
    argv[17] = NULL;
    ck_assert_msg(parse(argv) == COMMAND_LINE_GO_ON, "%s", errors);
    ck_assert_uint_eq(plan->hosts_number, 16);
}
END_TEST

/* ---- Rates, counts and stop rules ---- */

START_TEST(each_stop_rule_is_taken)
{
    GOOD("-n", "10k");
    ck_assert_int_eq(plan->stop, LOAD_STOP_PER_SOCKET);
    ck_assert_uint_eq(plan->queries, 10000);
    GOOD("--requests", "1.5M");
    ck_assert_int_eq(plan->stop, LOAD_STOP_TOTAL);
    ck_assert_uint_eq(plan->requests_max, 1500000);
    GOOD("-d", "250ms", "-d", "2m");
    ck_assert_int_eq(plan->stop, LOAD_STOP_TIME);
    ck_assert_uint_eq(plan->duration_ns, 120 * SXE_NS_PER_SECOND);
}
END_TEST

START_TEST(each_model_is_taken)
{
    GOOD("-R", "500");
    ck_assert_int_eq(plan->model, LOAD_PARTLY_OPEN);
    ck_assert_double_eq(plan->rate, 500);
    ck_assert_double_eq(plan->rate_end, 500);
    ck_assert_int_eq(plan->arrivals, LOAD_POISSON);
    ck_assert_int_eq(plan->stop, LOAD_STOP_TIME);
    GOOD("-R", "1G");
    ck_assert_double_eq(plan->rate, 1e9);
    GOOD("-R", "1k:0.05M", "-d", "10", "--open", "--arrivals", "fixed");
    ck_assert_int_eq(plan->model, LOAD_OPEN);
    ck_assert_double_eq(plan->rate, 1000);
    ck_assert_double_eq(plan->rate_end, 50000);
    ck_assert_int_eq(plan->arrivals, LOAD_FIXED);
    GOOD("-R", "0.5", "--arrivals", "poisson", "--deadline", "20us");
    ck_assert_double_eq(plan->rate, 0.5);
    ck_assert_uint_eq(plan->deadline_ns, 20000);
}
END_TEST

START_TEST(a_warm_up_that_is_found_out_is_bounded)
{
    static const struct {
        const char *duration;
        uint64_t seconds;
    } bounds[] = {{"1", 2}, {"5", 5}, {"60", 10}};

    for (unsigned i = 0; i < 3; i++) {
        GOOD("--warmup", "auto", "-d", bounds[i].duration);
        ck_assert(plan->is_warmup_auto);
        ck_assert_uint_eq(plan->warmup_ns, bounds[i].seconds * SXE_NS_PER_SECOND);
    }
    GOOD("--warmup", "auto", "-R", "1k");
    ck_assert_uint_eq(plan->warmup_ns, 4 * SXE_NS_PER_SECOND);
    GOOD("--warmup", "auto", "--warmup", "3", "-n", "1");
    ck_assert(!plan->is_warmup_auto);
    ck_assert_uint_eq(plan->warmup_ns, 3 * SXE_NS_PER_SECOND);
}
END_TEST

START_TEST(times_and_numbers_of_a_run_are_taken)
{
    GOOD("-t", "2", "--warmup", "1", "--drain", "0", "--think", "5ms", "--timeout", "1m", "--seed",
         "7", "-q");
    ck_assert_uint_eq(plan->workers, 2);
    ck_assert_uint_eq(plan->warmup_ns, SXE_NS_PER_SECOND);
    ck_assert(!plan->is_warmup_auto);
    ck_assert_uint_eq(plan->drain_ns, 0);
    ck_assert_uint_eq(plan->think_ns, 5000000);
    ck_assert_uint_eq(plan->timeout_ns, 60 * SXE_NS_PER_SECOND);
    ck_assert_uint_eq(plan->seed, 7);
    ck_assert(plan->quiet);
    GOOD("--pipeline", "16", "--connect-ramp", "64");
    ck_assert_uint_eq(plan->depth, 16);
    ck_assert_uint_eq(plan->ramp, 64);
    GOOD("--connect-ramp", "1k/s");
    ck_assert_double_eq(plan->ramp_rate, 1000);
    ck_assert_uint_eq(plan->ramp, 16);
    ck_assert_str_eq(plan->argv[2], "1k/s");
}
END_TEST

START_TEST(a_probe_has_a_rate)
{
    ck_assert_double_eq(plan->probe_rate, 0);
    GOOD("--probe", "1.5k", "http://127.0.0.1/");
    ck_assert_double_eq(plan->probe_rate, 1500);
    ck_assert_int_eq(plan->model, LOAD_CLOSED);
    GOOD("--probe", "0.5", "-R", "10k", "--trials", "3", "--aa", "--unix", "/a",
         "http://127.0.0.1/");
    ck_assert_double_eq(plan->probe_rate, 0.5);
    ck_assert_double_eq(plan->rate, 10000);
}
END_TEST

START_TEST(many_queries_a_socket_are_asked_about)
{
    GOOD("-n", "1M", "http://127.0.0.1/");
    ck_assert_str_eq(errors, "sxe-http: -n is for each connection: 64000000 requests in all; use "
                             "--requests for a total\n");
}
END_TEST

/* ---- The request ---- */

START_TEST(a_request_is_made_as_asked)
{
    GOOD("-m", "PUT", "-H", "X-A: 1", "-H", "Accept:", "-b", "hello", "http://127.0.0.1/a");
    ck_assert_ptr_ne(strstr(next_query(), "PUT /a HTTP/1.1\r\n"), NULL);
    ck_assert_ptr_ne(strstr(next_query(), "\r\nX-A: 1\r\n"), NULL);
    ck_assert_ptr_ne(strstr(next_query(), "\r\nContent-Length: 5\r\n"), NULL);
    ck_assert_ptr_ne(strstr(next_query(), "\r\n\r\nhello"), NULL);
    ck_assert_ptr_eq(strstr(next_query(), "Accept:"), NULL);
    GOOD("-b", "x");
    ck_assert_ptr_ne(strstr(next_query(), "POST / HTTP/1.1\r\n"), NULL);
    GOOD("--http1.0");
    ck_assert_ptr_ne(strstr(next_query(), "GET / HTTP/1.0\r\n"), NULL);
}
END_TEST

/* Write the bytes to a new file. The path that is returned is valid until the next call. */
static const char *
file_with(const char *bytes, size_t length)
{
    static char path[64];
    FILE *file;
    int fd;

    snprintf(path, sizeof(path), "/tmp/test-http-command-XXXXXX");
    fd = mkstemp(path);
    file = fdopen(fd, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    return path;
}

START_TEST(a_body_comes_from_a_file_byte_by_byte)
{
    char at[80];
    const char *path = file_with("a\0b", 3);
    struct load_query query = {0};

    snprintf(at, sizeof(at), "@%s", path);
    GOOD("-b", at);
    unlink(path);
    ck_assert_int_eq(plan->requests->begin(plan->requests, 0, 1, 1), 0);
    ck_assert_int_eq(plan->requests->next(plan->requests, 0, &query), 0);
    ck_assert_mem_eq(query.bytes + query.length - 3, "a\0b", 3);
}
END_TEST

START_TEST(request_files_scripts_and_logs_are_sources)
{
    static const char log[] = "::1 - - [21/Nov/2026:10:00:00 +0000] \"GET /l HTTP/1.1\" 200 1\n";
    static const char script[] = "wrk.path = \"/from-a-script\"\n";
    static const char scenario[] = "return {kinds = {{name = \"one\", path = \"/one\"}}}\n";
    const char *path = file_with("GET /raw HTTP/1.1\r\nHost: a\r\n\r\n", 30);
    char name[80];

    snprintf(name, sizeof(name), "%s", path);
    GOOD("--request-file", name, "http://127.0.0.1:81/");
    unlink(name);
    ck_assert_str_eq(next_query(), "GET /raw HTTP/1.1\r\nHost: a\r\n\r\n");
    snprintf(name, sizeof(name), "%s", file_with(log, sizeof(log) - 1));
    GOOD("--replay", name, "--speed", "2.5");
    unlink(name);
    ck_assert_int_eq(plan->stop, LOAD_STOP_REPLAY);
    ck_assert_int_eq(plan->model, LOAD_PARTLY_OPEN);
    ck_assert_double_eq(plan->replay_speed, 2.5);
    ck_assert_ptr_ne(strstr(next_query(), "GET /l HTTP/1.1\r\n"), NULL);
    snprintf(name, sizeof(name), "%s", file_with(script, sizeof(script) - 1));
    GOOD("-s", name, "http://127.0.0.1:81/", "--", "for", "--it");
    unlink(name);
    ck_assert_int_eq(command.argc, 2);
    ck_assert_str_eq(command.argv[1], "--it");
    ck_assert_ptr_eq(command.script, plan->requests);
    ck_assert_ptr_ne(strstr(next_query(), "GET /from-a-script HTTP/1.1\r\n"), NULL);
    snprintf(name, sizeof(name), "%s", file_with(scenario, sizeof(scenario) - 1));
    GOOD("--scenario", name);
    unlink(name);
    ck_assert_str_eq(plan->requests->kind_names[0], "one");
}
END_TEST

START_TEST(a_session_goes_without_a_pipeline)
{
    static const char session[] = "return {steps = {{path = \"/one\"}}}\n";
    char name[64];

    snprintf(name, sizeof(name), "%s", file_with(session, sizeof(session) - 1));
    ck_assert_int_eq(PARSE("--scenario", name, "--pipeline", "2"), COMMAND_LINE_WRONG);
    ck_assert_ptr_nonnull(
        strstr(errors, " has steps, and a user sends one when the reply to the "
                       "one before has arrived: it cannot be combined with --pipeline. Try"));
    teardown();
    GOOD("--scenario", name);
    unlink(name);
}
END_TEST

/* ---- Checking a plan, and printing it ---- */

START_TEST(expectations_replace_the_default)
{
    GOOD("--expect-status", "404", "--expect-status", "5xx", "--expect-header", "X-A: b",
         "--expect-body", "hello");
    ck_assert(load_expect_accepts_status(plan->expect, 404));
    ck_assert(load_expect_accepts_status(plan->expect, 503));
    ck_assert(!load_expect_accepts_status(plan->expect, 200));
    ck_assert_uint_eq(plan->expect->fields, 1);
    ck_assert_uint_eq(plan->expect->body_length, 5);
    ck_assert_str_eq(plan->argv[6], "X-A: b");
}
END_TEST

START_TEST(judgements_are_taken)
{
    GOOD("--trials", "8", "--server-cmd", "./server", "--threshold", "p99<20ms", "--threshold",
         "errors<1%", "--baseline", "a.json", "--aa");
    ck_assert_uint_eq(plan->trials, 16);
    ck_assert_str_eq(plan->server_cmd, "./server");
    ck_assert_str_eq(plan->thresholds[1], "errors<1%");
    ck_assert_ptr_eq(plan->thresholds[2], NULL);
    ck_assert_str_eq(plan->baseline, "a.json");
    ck_assert(plan->aa);
    GOOD("--until-ci", "2%");
    ck_assert_double_eq_tol(plan->until_ci, 0.02, 1e-9);
    ck_assert_uint_eq(plan->trials, 50);
    ck_assert_uint_eq(plan->until_ci_figure, LOAD_FIGURE_RATE);
    GOOD("-R", "5k", "--until-ci", "p99:5%");
    ck_assert_uint_eq(plan->until_ci_figure, LOAD_FIGURE_RESPONSE_P99);
    ck_assert_double_eq_tol(plan->until_ci, 0.05, 1e-9);
    GOOD("--until-ci", "service.p50:5%");
    ck_assert_uint_eq(plan->until_ci_figure, LOAD_FIGURE_SERVICE_P50);
    GOOD("--until-ci", "2", "--trials", "100");
    ck_assert_uint_eq(plan->trials, 100);
    GOOD("--aa");
    ck_assert_uint_eq(plan->trials, 2 * LOAD_TRIALS_MIN);
    ck_assert_double_eq_tol(plan->min_effect, 0.02, 1e-9);
    GOOD("--baseline", "a.json", "--min-effect", "0");
    ck_assert_double_eq_tol(plan->min_effect, 0, 1e-9);
    GOOD("--server-cmd", "./new", "--baseline-cmd", "./old", "--min-effect", "5%");
    ck_assert_str_eq(plan->baseline_cmd, "./old");
    ck_assert_uint_eq(plan->trials, 20);
    ck_assert_double_eq_tol(plan->min_effect, 0.05, 1e-9);
    GOOD("--server-cmd", "./new", "--baseline-cmd", "./old", "--trials", "2");
    ck_assert_uint_eq(plan->trials, 2 * LOAD_TRIALS_MIN);
    GOOD("--server-cmd", "./new", "--baseline-cmd", "./old", "--trials", "12");
    ck_assert_uint_eq(plan->trials, 24);
    GOOD("--aa", "--trials", "200");
    ck_assert_uint_eq(plan->trials, LOAD_TRIALS_MAX);
    GOOD("--find", "p99<10ms");
    ck_assert_str_eq(plan->find, "p99<10ms");
    ck_assert_uint_eq(plan->duration_ns, 60 * SXE_NS_PER_SECOND);
    GOOD("--find", "p99<10ms", "-d", "4");
    ck_assert_uint_eq(plan->duration_ns, 4 * SXE_NS_PER_SECOND);
    ck_assert_int_eq(plan->model, LOAD_PARTLY_OPEN);
    ck_assert_int_eq(plan->stop, LOAD_STOP_TIME);
}
END_TEST

START_TEST(outputs_are_taken)
{
    GOOD("--json", "a", "--csv", "b", "--candles", "c", "--hgrm", "d", "--hdr", "e", "--html", "-");
    ck_assert_str_eq(plan->json, "a");
    ck_assert_str_eq(plan->csv, "b");
    ck_assert_str_eq(plan->candles, "c");
    ck_assert_str_eq(plan->hgrm, "d");
    ck_assert_str_eq(plan->hdr, "e");
    ck_assert_str_eq(plan->html, "-");
    ck_assert(!plan->annotate);
    GOOD("--junit", "a", "--markdown", "b", "--annotate");
    ck_assert_str_eq(plan->junit, "a");
    ck_assert_str_eq(plan->markdown, "b");
    ck_assert(plan->annotate);
    GOOD("--jsonl", "a", "--metrics", "127.0.0.1:9464");
    ck_assert_str_eq(plan->jsonl, "a");
    ck_assert_str_eq(plan->metrics, "127.0.0.1:9464");
    ck_assert_uint_eq(plan->fanout, 0);
    GOOD("--fanout", "1k");
    ck_assert_uint_eq(plan->fanout, 1000);
}
END_TEST

START_TEST(other_commands_are_known)
{
    GOOD("compare", "a.json", "b.json");
    ck_assert_int_eq(command.what, LOAD_COMMAND_COMPARE);
    ck_assert_int_eq(command.argc, 2);
    ck_assert_str_eq(command.argv[1], "b.json");
    GOOD("compare", "--min-effect", "3%", "a.json", "--min-effect=4%", "b.json");
    ck_assert_int_eq(command.what, LOAD_COMMAND_COMPARE);
    ck_assert_str_eq(command.argv[0], "a.json");
    ck_assert_str_eq(command.argv[1], "b.json");
    ck_assert_double_eq_tol(plan->min_effect, 0.04, 1e-9);
    GOOD("html", "a.json");
    ck_assert_int_eq(command.what, LOAD_COMMAND_OVERLAY);
    GOOD("--selftest");
    ck_assert_int_eq(command.what, LOAD_COMMAND_SELFTEST);
}
END_TEST

START_TEST(help_fits_a_screen_and_all_of_it_a_line)
{
    unsigned lines = 0;

    ck_assert_int_eq(PARSE("-h"), EXIT_SUCCESS);
    for (const char *at = output; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_uint_le(lines, 40);
    ck_assert_int_eq(PARSE("--help"), EXIT_SUCCESS);
    for (char *at = strtok_r(output, "\n", &(char *){NULL}); at != NULL; at = NULL)
        ck_assert_uint_le(strlen(at), 100);
}
END_TEST

/* ---- Command lines that are refused ---- */

static const struct {
    const char *argv[8];
    const char *says;
} refused[] = {
    {{"-i", "300.1.1.1"}, "'300.1.1.1'; it must be an IPv4 or IPv6 address"},
    {{"-i", "localhost"}, "'localhost'; it must be"},
    {{"-i", "1:2:3:4:5:6:7:8:1:2:3:4:5:6:7:8:1:2:3:4:5:6:7:8:1:2:3:4:5:6:7:8:9"}, "it must be"},
    {{"-i", "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb"}, "it must be"},
    {{"-p", "0"}, "from 1 to 65535"},
    {{"--proxy", "3"}, "from 1 to 2"},
    {{"--source", "x"}, "the source (--source) is 'x'"},
    {{"--unix", "/a", "-p", "80"}, "--unix cannot be combined with"},
    {{"--unix", "/a", "--source", "127.0.0.1"}, "--unix cannot be combined with"},
    {{"-n", "0"}, "the number of requests a connection (-n)"},
    {{"--requests", "none"}, "the number of requests (--requests)"},
    {{"-d", "soon"}, "the duration (-d)"},
    {{"-n", "1", "-d", "1"}, "-n and -d are both given"},
    {{"-c", "0"}, "the number of connections (-c)"},
    {{"-c", "2", "-t", "3"}, "3 workers (-t) need a connection each, and there are 2"},
    {{"--connect-ramp", "0"}, "the ramp of connects"},
    {{"--connect-ramp", "1/m"}, "the ramp of connects"},
    {{"-R", "fast"}, "the rate (-R) is 'fast'"},
    {{"-R", "0"}, "the rate (-R) is '0'; it must be requests a second, above 0"},
    {{"-R", "-1"}, "the rate (-R) is '-1'"},
    {{"-R", "1x"}, "the rate (-R) is '1x'"},
    {{"-R", "1:"}, "the rate (-R) is '1:'"},
    {{"-R", "2G"}, "above 0 and up to 1G"},
    {{"-R", "1001M"}, "above 0 and up to 1G"},
    {{"-R", "1:1e10"}, "above 0 and up to 1G"},
    {{"-R", "1:2", "-n", "1"}, "a ramp, which needs a duration"},
    {{"--open"}, "give one with -R"},
    {{"--arrivals", "fixed"}, "give one with -R"},
    {{"--arrivals", "odd"}, "they must be poisson or fixed"},
    {{"--deadline", "1"}, "give one with -R"},
    {{"-R", "1", "--open", "--deadline", "1"}, "--open cannot be combined with --deadline"},
    {{"--find", "p99"}, "the condition (--find) is 'p99'"},
    {{"--find", "p99<1ms", "--trials", "2"}, "combined with --trials"},
    {{"--find", "p99<1ms", "-n", "2"}, "it cannot be combined with -n"},
    {{"--find", "p99<1ms", "--warmup", "1"}, "combined with --warmup"},
    {{"--find", "p99<1ms", "--warmup", "auto"}, "combined with --warmup"},
    {{"--find", "p99<1ms", "-R", "1:2"}, "or a ramp (-R)"},
    {{"--warmup", "soon"}, "the warm-up (--warmup, auto or a time) is 'soon'"},
    {{"--warmup", "auto"}, "it needs -d"},
    {{"--warmup", "auto", "--requests", "1"}, "it needs -d"},
    {{"--warmup", "auto", "-R", "1:2", "-d", "1"}, "combined with --replay or a ramp"},
    {{"--warmup", "auto", "--replay", "/none", "-d", "1"}, "combined with --replay or a ramp"},
    {{"--unix", LONG_PATH}, "the path of a unix socket (--unix) has from 1 to 107 bytes"},
    {{"--unix", ""}, "the path of a unix socket (--unix) has from 1 to 107 bytes"},
    {{"--think", "1", "-R", "1"}, "--think is a pause"},
    {{"--think", "1", "--pipeline", "2"}, "--think is a pause"},
    {{"--replay", "/none", "-R", "1"}, "--replay sends at the times of its log"},
    {{"--replay", "/none", "-n", "3"}, "--replay ends with its log: it cannot be combined with -n"},
    {{"--replay", "/none", "-d", "1"}, "--replay ends with its log: it cannot be combined with -d"},
    {{"--replay", "/none", "--requests", "3"}, "it cannot be combined with --requests"},
    {{"--replay", "/none"}, "/none"},
    {{"-s", "/none"}, "/none"},
    {{"-s", "a", "--scenario", "b"}, "one of them is enough"},
    {{"-s", "a", U1, U1}, "there are several URLs, but the requests come from a"},
    {{"--scenario", "a", U1, U1}, "come from a"},
    {{"--replay", "a", U1, U1}, "come from a"},
    {{"--request-file", "a", U1, U1}, "come from a"},
    {{"--request-file", "/none"}, "the request file '/none': No such file or directory."},
    {{"--json", "a", "--html", "a"}, "two outputs go to 'a'"},
    {{"--junit", "a", "--markdown", "a"}, "two outputs go to 'a'"},
    {{"--jsonl", "-", "--json", "-"}, "two outputs go to '-'"},
    {{"--metrics", "localhost"}, "the address (--metrics) is 'localhost': it must be PORT, "},
    {{"merge", "a", "--jsonl", "b"}, "merge runs nothing"},
    {{"merge", "a", "--metrics", "1"}, "merge runs nothing"},
    {{"--csv", "-", "--hgrm", "-"}, "two outputs go to '-'"},
    {{"--hgrm", "a", "--hdr", "a"}, "two outputs go to 'a'"},
    {{"--json", "a", "--html", "./a"}, "two outputs go to './a'"},
    {{"-s", "none.lua", "--json", "./none.lua"},
     "the output './none.lua' would overwrite the script (--script) 'none.lua', which is read"},
    {{"--scenario", "README.md", "--csv", "docs/../README.md"}, "would overwrite the scenario"},
    {{"--replay", "README.md", "--hdr", "README.md"}, "the log (--replay) 'README.md'"},
    {{"-b", "@README.md", "--jsonl", "./README.md"}, "the body (--body) 'README.md'"},
    {{"--expect-body", "@README.md", "--html", "./README.md"}, "the body (--expect-body)"},
    {{"--request-file", "a", "--request-file", "b", "--html", "b"},
     "the requests (--request-file)"},
    {{S1, "--tls-ca", "README.md", "--html", "README.md"}, "the authorities (--tls-ca)"},
    {{"merge", "a", "b", "--json", "b"}, "the output 'b' would overwrite the result 'b'"},
    {{"--speed", "2", U1}, "--speed needs --replay"},
    {{"--replay", "a.log", "-m", "PUT"}, "a.log have methods and bodies of their own"},
    {{"--request-file", "a", "-b", "x"}, "a have methods and bodies of their own"},
    {{"--request-file", "a", "-H", "A: b"},
     "a are sent as they are: it cannot be combined with -H"},
    {{"-m", "", U1}, "the method (-m) is empty"},
    {{"-H", "x", U1}, "the request for 'http://127.0.0.1:81/a' cannot be made: 'x' is no header"},
    {{"--source", "127.0.0.1", "http://[::1]:80/"}, "--source must have IPv6 addresses, too"},
    {{"--source", "127.0.0.1,192.0.2.7", U1}, "connected from: '192.0.2.7' is no address of this"},
    {{"--source", "::1", U1}, "--source must have IPv4 addresses, too"},
    {{"--find", "p99>1ms"}, "no rate is the highest that holds this condition"},
    {{"--find", "rate<5"}, "no rate is the highest that holds this condition"},
    {{U1, "--", "x"}, "'x' stands after --"},
    {{U1, S1}, "a run has either http or https URLs"},
    {{S1, U1}, "a run has either http or https URLs"},
    {{S1, "--proxy", "1"}, "https cannot be combined with --proxy"},
    {{S1, "--unix", "/x"}, "https cannot be combined with --unix"},
    {{S1, "--tls-cert", "a"}, "a client certificate needs both --tls-cert and --tls-key"},
    {{S1, "--tls-key", "a"}, "a client certificate needs both --tls-cert and --tls-key"},
    {{S1, "--tls-name", ""}, "the name (--tls-name) has from 1 to 255 bytes"},
    {{S1, "--insecure", "--tls-ca", "a"}, "it cannot be combined with --tls-ca"},
    {{U1, "--insecure"}, "give a URL that begins with https://"},
    {{S1, "--tls-resume", "101"},
     "(--tls-resume) is '101'; it must be a whole number from 0 to 100"},
    {{S1, "--tls-resume", "-1"}, "(--tls-resume) is '-1'; it must be a whole number from 0 to 100"},
    {{S1, "--tls-resume", "5x"}, "(--tls-resume) is '5x'; it must be a whole number from 0 to 100"},
    {{S1, "--tls-resume", ""}, "(--tls-resume) is ''; it must be a whole number from 0 to 100"},
    {{U1, "--tls-resume", "5"}, "give a URL that begins with https://"},
    {{U1, "--tls-name", "a"}, "give a URL that begins with https://"},
    {{S1, "--scenario", "examples/session.lua"}, "it cannot be combined with https"},
    {{U1, "http://no-such-host.invalid/"}, "the URL is 'http://no-such-host.invalid/'"},
    {{U1, U2, "-p", "7"}, "the URLs have 2 hosts: they cannot be combined with -p"},
    {{U1, U2, "--server-cmd", "true"}, "they cannot be combined with --server-cmd"},
    {{U1, U2, "--probe", "7"}, "they cannot be combined with --probe"},
    {{U1, U2, "-t", "3"}, "2 hosts and 3 workers (-t); each worker serves one"},
    {{U1, U2, "-c", "1"}, "2 workers, one for each host, for 1 connections (-c)"},
    {{U1, U2, "--shard", "1/200"}, "and 256 may be in all shards together"},
    {{U1, "unix:/x:/", "--source", "127.0.0.1"}, "/x cannot be connected to from"},
    {{U1, "http://[::1]:81/", "--source", "127.0.0.1"}, "[::1]:81 cannot be connected to from"},
    {{"http://no-such-host.invalid/"}, "the URL is 'http://no-such-host.invalid/'"},
    {{"-m", "G T"}, "Try --help"},
    {{"-b", "@/none"}, "the body (--body) is '@/none': No such file or directory"},
    {{"-b", "@/dev/zero"}, "File too large"},
    {{"-b", "@/tmp"}, "Is a directory"},
    {{"--speed", "0"}, "the speed (--speed)"},
    {{"--until-ci", "99%"}, "up to 50%"},
    {{"--until-ci", "p98:2%"}, "no figure is called so"},
    {{"--until-ci", "p:2%"}, "no figure is called so"},
    {{"--until-ci", "2%", "-R", "5"}, "name another figure, as in --until-ci p99:5%"},
    {{"--until-ci", "rate:2%", "-R", "5"}, "name another figure"},
    {{"--expect-status", "many"}, "the status (--expect-status) is 'many'"},
    {{"--expect-header", ":"}, "the header (--expect-header)"},
    {{"--expect-body", "@/none"}, "the body (--expect-body)"},
    {{"--expect-body", "@/dev/zero"}, "File too large"},
    {{"--request-file", "/dev/zero"}, "File too large"},
    {{"--threshold", "p99"}, "the threshold is 'p99'"},
    {{"--trials", "1000"}, "the number of trials"},
    {{"--fanout", "1"}, "the fan-out (--fanout)"},
    {{"--fanout", "1000001"}, "the fan-out (--fanout)"},
    {{"compare", "a"}, "compare needs two files"},
    {{"compare", "a", "b", "c"}, "compare needs two files"},
    {{"html"}, "html needs one file or more"},
    {{"compare", "a", "b", "--json", "c"},
     "compare takes no options but --min-effect: give it two files"},
    {{"compare", "a", "b", "--min-effect", "1", "-q"}, "compare takes no options but"},
    {{"html", "--min-effect", "1", "a"}, "html takes no options: give it one file or more"},
    {{"--min-effect", "-1"}, "the minimum effect (--min-effect) is '-1'; it must be from 0 to"},
    {{"--min-effect", "101%"}, "the minimum effect (--min-effect) is '101%'"},
    {{"--min-effect", "2ms"}, "the minimum effect (--min-effect) is '2ms'"},
    {{"--min-effect", ""}, "the minimum effect (--min-effect) is ''"},
    {{"--baseline-cmd", "x"}, "--baseline-cmd needs --server-cmd"},
    {{"--baseline-cmd", "x", "--server-cmd", "y", "--aa"}, "combined with --baseline, --aa"},
    {{"--baseline-cmd", "x", "--server-cmd", "y", "--baseline", "a"}, "combined with --base"},
    {{"--baseline-cmd", "x", "--server-cmd", "y", "--until-ci", "2%"}, "combined with --base"},
    {{"--baseline-cmd", "x", "--server-cmd", "y", "--find", "p99<1s"}, "combined with --base"},
    {{"html", "-q", "a"}, "html takes no options: give it one file or more"},
    {{"--shard", "3/2"}, "the shard (--shard) is '3/2': it must be K/N"},
    {{"--shard", "1/2", "--find", "p99<1ms"}, "it cannot be combined with --find"},
    {{"--shard", "1/2", "--until-ci", "2%"}, "it cannot be combined with --until-ci"},
    {{"--shard", "1/2", "--warmup", "auto", U1}, "it cannot be combined with --warmup auto"},
    {{"--shard", "1/2", "--server-cmd", "a"}, "it cannot be combined with --server-cmd"},
    {{"--shard", "1/200", "-t", "2"}, "200 shards of 2 workers (-t) are too many"},
    {{"--shard", "3/3", "-c", "5", "-t", "2"},
     "2 workers (-t) need a connection each, and there are 1"},
    {{"--start-at", "1"}, "the time to begin at (--start-at) is '1': that time is past"},
    {{"merge"}, "merge needs one to 256 files that --json wrote"},
    {{"merge", "a", "-c", "2"}, "merge runs nothing: of the options it takes those of the output"},
    {{"merge", "a", "--json", "b", "--html", "b"}, "two outputs go to 'b'"},
    {{"--selftest", "-c", "2"}, "--selftest goes alone"},
    {{"--selftest", U1}, "--selftest goes alone"},
    {{"--timeout", "-1"}, "the timeout"},
    {{"--probe", "0"}, "the probe's rate (--probe) is '0'; it must be requests a second, above 0"},
    {{"--probe", "-1"}, "the probe's rate (--probe) is '-1'"},
    {{"--probe", "5/s"}, "the probe's rate (--probe) is '5/s'"},
    {{"--probe", "1:2"}, "the probe's rate (--probe) is '1:2'"},
    {{"--probe", "1", "--find", "p99<1ms"}, "--find cannot be combined with --probe: it tries"},
    {{"--probe", "1", "--replay", "a"}, "--replay cannot be combined with --probe"},
    {{"--probe", "1", "-s", "a"}, "--script and --scenario cannot be combined with --probe"},
    {{"--probe", "1", "--scenario", "a"},
     "--script and --scenario cannot be combined with --probe"},
    {{"--probe", "1", "-c", "1", "--source", "127.0.0.1,192.0.2.7", U1}, "'192.0.2.7' is no"},
    {{"--seed", "x"}, "the seed"},
};

START_TEST(what_cannot_be_is_said)
{
    const char *argv[9] = {"sxe-http"};

    for (unsigned i = 0; refused[_i].argv[i] != NULL; i++)
        argv[i + 1] = refused[_i].argv[i];
    ck_assert_int_eq(parse(argv), COMMAND_LINE_WRONG);
    ck_assert_str_eq(output, "");
    ck_assert_msg(strncmp(errors, "sxe-http: ", 10) == 0, "%s", errors);
    ck_assert_msg(strstr(errors, refused[_i].says) != NULL, "%s", errors);
}
END_TEST

START_TEST(files_are_the_same_whatever_they_are_called)
{
    static const struct {
        const char *a, *b;
        bool are_same;
    } cases[] = {
        {"README.md", "./docs/../README.md", true},
        {"README.md", "LICENSE", false},
        {"README.md", "none", false},
        {"none", "docs/../none", true},
        {"none", "docs/none", false},
        {"/no/such/a", "none/a", false},
        {"none", "/no/such/none", false},
        {"/dev/null", "/dev/../dev/null", false},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(load_outputs_are_same(cases[i].a, cases[i].b) == cases[i].are_same, "%s %s",
                      cases[i].a, cases[i].b);
    PARSE("--json", "/dev/null", "-b", "@/dev/null");
    ck_assert_ptr_null(load_outputs_find(plan, "/dev/null"));
}
END_TEST

START_TEST(more_than_there_is_room_for_is_refused)
{
    const char *argv[60] = {"sxe-http"};

    for (unsigned i = 0; i < 16; i++) {
        argv[1 + 2 * i] = "--threshold";
        argv[2 + 2 * i] = "p99<1s";
    }
    ck_assert_int_eq(parse(argv), COMMAND_LINE_WRONG);
    ck_assert_str_eq(errors, "sxe-http: there are more than 15 thresholds. Try --help.\n");
    for (unsigned i = 0; i < 17; i++) {
        argv[1 + 2 * i] = "--request-file";
        argv[2 + 2 * i] = "x";
    }
    ck_assert_int_eq(parse(argv), COMMAND_LINE_WRONG);
    ck_assert_str_eq(errors, "sxe-http: there are more than 16 request files. Try --help.\n");
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    failing = 1;
    do {
        int result = PARSE("-b", "@/dev/null", U1);

        if (result != COMMAND_LINE_GO_ON)
            ck_assert_msg(strncmp(errors, "sxe-http: ", 10) == 0, "%u: %s", failing, errors);
        failing++;
    } while (injected != 0);
    ck_assert_uint_gt(failing, 4);
    failing = 0;
}
END_TEST

#define COUNT(table) (sizeof(table) / sizeof(table[0]))

int
main(void)
{
    Suite *suite = suite_create("http-command");
    TCase *plans = tcase_create("plans");
    TCase *refusals = tcase_create("refusals");

    tcase_add_checked_fixture(plans, NULL, teardown);
    tcase_add_test(plans, without_arguments_it_prints_its_help);
    tcase_add_test(plans, with_an_address_alone_it_is_what_it_was_in_2010);
    tcase_add_test(plans, the_command_line_of_2010_means_the_same);
    tcase_add_test(plans, a_shard_has_its_part_of_the_load);
    tcase_add_test(plans, a_url_alone_gives_a_result_in_five_seconds);
    tcase_add_test(plans, an_address_overrides_only_where_to_connect);
    tcase_add_test(plans, a_unix_socket_is_connected_to);
    tcase_add_test(plans, the_options_of_tls_are_taken);
    tcase_add_test(plans, sources_and_proxy_headers_are_taken);
    tcase_add_test(plans, several_urls_take_turns);
    tcase_add_test(plans, urls_may_be_of_several_hosts);
    tcase_add_test(plans, there_may_be_16_hosts);
    tcase_add_test(plans, each_stop_rule_is_taken);
    tcase_add_test(plans, each_model_is_taken);
    tcase_add_test(plans, a_warm_up_that_is_found_out_is_bounded);
    tcase_add_test(plans, times_and_numbers_of_a_run_are_taken);
    tcase_add_test(plans, a_probe_has_a_rate);
    tcase_add_test(plans, many_queries_a_socket_are_asked_about);
    tcase_add_test(plans, a_request_is_made_as_asked);
    tcase_add_test(plans, a_body_comes_from_a_file_byte_by_byte);
    tcase_add_test(plans, request_files_scripts_and_logs_are_sources);
    tcase_add_test(plans, a_session_goes_without_a_pipeline);
    tcase_add_test(plans, expectations_replace_the_default);
    tcase_add_test(plans, judgements_are_taken);
    tcase_add_test(plans, outputs_are_taken);
    tcase_add_test(plans, other_commands_are_known);
    tcase_add_test(plans, help_fits_a_screen_and_all_of_it_a_line);
    suite_add_tcase(suite, plans);
    tcase_add_checked_fixture(refusals, NULL, teardown);
    tcase_add_loop_test(refusals, what_cannot_be_is_said, 0, COUNT(refused));
    tcase_add_test(refusals, files_are_the_same_whatever_they_are_called);
    tcase_add_test(refusals, more_than_there_is_room_for_is_refused);
    tcase_add_test(refusals, each_allocation_may_fail);
    suite_add_tcase(suite, refusals);
    return sxe_test_main(suite);
}
