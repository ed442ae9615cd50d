/* SPDX-License-Identifier: MIT */
#include "../../apps/http/options.h"

#include "run-http.h"
#include "sxe-util.h"
#include "test-main.h"

static struct http_options options;

static int
parse(const char **argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    return http_options_parse(&options, argc, (char **)(uintptr_t)argv);
}
#define PARSE(...) parse((const char *[]){"sxe-http", __VA_ARGS__, NULL})

START_TEST(without_arguments_all_is_as_in_2010)
{
    ck_assert_int_eq(parse((const char *[]){"sxe-http", NULL}), -1);
    ck_assert_str_eq(options.ip, "127.0.0.1");
    ck_assert_uint_eq(options.port, 8000);
    ck_assert_uint_eq(options.queries, 1);
    ck_assert_uint_eq(options.sockets, 1000);
    ck_assert_uint_eq(options.timeout_ms, 10000);
    ck_assert_str_eq(options.authority, "127.0.0.1:8000");
}
END_TEST

START_TEST(each_option_has_a_short_name)
{
    ck_assert_int_eq(PARSE("-i", "10.1.2.3", "-p", "65535", "-n50", "-c10000"), -1);
    ck_assert_str_eq(options.ip, "10.1.2.3");
    ck_assert_uint_eq(options.port, 65535);
    ck_assert_uint_eq(options.queries, 50);
    ck_assert_uint_eq(options.sockets, 10000);
    ck_assert_str_eq(options.authority, "10.1.2.3:65535");
}
END_TEST

START_TEST(each_option_has_a_long_name)
{
    ck_assert_int_eq(PARSE("--ip=::1", "--port", "1", "--queries=4294967295", "--sockets",
                           "10000000", "--timeout", "0.25"),
                     -1);
    ck_assert_str_eq(options.ip, "::1");
    ck_assert_uint_eq(options.port, 1);
    ck_assert_uint_eq(options.queries, 4294967295u);
    ck_assert_uint_eq(options.sockets, 10000000);
    ck_assert_uint_eq(options.timeout_ms, 250);
}
END_TEST

static const struct {
    const char *text;
    uint32_t ms;
} timeouts[] = {{"30", 30000}, {"1.001", 1001}, {"500ms", 500}, {"2m", 120000}, {"1d", 86400000}};

START_TEST(the_timeout_is_seconds_or_has_a_unit)
{
    ck_assert_int_eq(PARSE("--timeout", timeouts[_i].text), -1);
    ck_assert_uint_eq(options.timeout_ms, timeouts[_i].ms);
}
END_TEST

static const struct {
    const char *ip;
    const char *authority;
} addresses[] = {
    {"0.0.0.0", "0.0.0.0:8000"},
    {"::1", "[::1]:8000"},
    {"fe80::1%lo", "[fe80::1]:8000"},
    {"1111:2222:3333:4444:5555:6666:255.255.255.255",
     "[1111:2222:3333:4444:5555:6666:255.255.255.255]:8000"},
};

START_TEST(an_address_becomes_the_authority_of_the_url)
{
    ck_assert_int_eq(PARSE("-i", addresses[_i].ip), -1);
    ck_assert_str_eq(options.authority, addresses[_i].authority);
}
END_TEST

static const struct {
    const char *argv[3];
    const char *words[2];
} refused[] = {
    {{"-p", "0"}, {"the port (-p) is '0'", "from 1 to 65535"}},
    {{"-p", "65536"}, {"the port (-p) is '65536'", "from 1 to 65535"}},
    {{"-p", "abc"}, {"'abc'", "from 1 to 65535"}},
    {{"-p", "-1"}, {"'-1'", "from 1 to 65535"}},
    {{"-p", "+1"}, {"'+1'", "from 1 to 65535"}},
    {{"-p", " 1"}, {"' 1'", "from 1 to 65535"}},
    {{"-p", "1 "}, {"'1 '", "from 1 to 65535"}},
    {{"-p", ""}, {"''", "from 1 to 65535"}},
    {{"-p"}, {"option -p requires an argument: -p PORT", ""}},
    {{"-n", "0"}, {"queries a socket (-n) is '0'", "from 1 to 4294967295"}},
    {{"-n", "4294967296"}, {"'4294967296'", "from 1 to 4294967295"}},
    {{"-n", "1e3"}, {"'1e3'", "from 1 to 4294967295"}},
    {{"-n", "99999999999999999999"}, {"'99999999999999999999'", "from 1 to 4294967295"}},
    {{"-c", "0"}, {"the number of sockets (-c) is '0'", "from 1 to 10000000"}},
    {{"-c", "10000001"}, {"'10000001'", "from 1 to 10000000"}},
    {{"-c", "0x10"}, {"'0x10'", "from 1 to 10000000"}},
    {{"--timeout", "0"}, {"the timeout (--timeout) is '0'", "from 0.001 to 86400 seconds"}},
    {{"--timeout", "86400.1"}, {"'86400.1'", "from 0.001 to 86400 seconds"}},
    {{"--timeout", "-1"}, {"'-1'", "from 0.001 to 86400 seconds"}},
    {{"--timeout", "0.5ms"}, {"'0.5ms'", "such as 10, 0.5, 500ms or 2m"}},
    {{"--timeout", "2d"}, {"'2d'", "from 0.001 to 86400 seconds"}},
    {{"--timeout", "nan"}, {"'nan'", "from 0.001 to 86400 seconds"}},
    {{"--timeout", "1.2.3"}, {"'1.2.3'", "from 0.001 to 86400 seconds"}},
    {{"--timeout", "."}, {"'.'", "from 0.001 to 86400 seconds"}},
    {{"--timeout", ""}, {"''", "from 0.001 to 86400 seconds"}},
    {{"-i", "localhost"}, {"the ip (-i) is 'localhost'", "an IPv4 or IPv6 address"}},
    {{"-i", "300.1.1.1"}, {"'300.1.1.1'", "an IPv4 or IPv6 address"}},
    {{"-i", "127.0.0.1%lo"}, {"'127.0.0.1%lo'", "an IPv4 or IPv6 address"}},
    {{"-i", "[::1]"}, {"'[::1]'", "an IPv4 or IPv6 address"}},
    {{"-i", ""}, {"''", "an IPv4 or IPv6 address"}},
    {{"-i", "INADDR_ANY"}, {"'INADDR_ANY'", "an IPv4 or IPv6 address"}},
    {{"-i", "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc"}, {":bbbb:cccc'", "an"}},
    {{"-x"}, {"unknown option -x", ""}},
    {{"--nonsense"}, {"unknown option --nonsense. Try", ""}},
    {{"--querys"}, {"unknown option --querys", "did you mean --queries?"}},
    {{"--port"}, {"option --port requires an argument: --port PORT", ""}},
    {{"--help=me"}, {"option --help takes no argument", ""}},
    {{"more"}, {"'more' is not an option", ""}},
    {{"--", "-p"}, {"'-p' is not an option", ""}},
};

START_TEST(a_bad_argument_is_named_with_what_is_allowed)
{
    run_http((const char *[]){"sxe-http", refused[_i].argv[0], refused[_i].argv[1], NULL});
    ck_assert_int_eq(ran.status, 2);
    ck_assert_str_eq(ran.output, "");
    check_has(ran.errors, refused[_i].words[0]);
    check_has(ran.errors, refused[_i].words[1]);
    check_has(ran.errors, "--help");
}
END_TEST

static const char *const help[] = {"-h", "--help"};

START_TEST(help_names_all_options_and_their_defaults)
{
    static const char *const words[] = {
        "-i",         "--ip",      "(127.0.0.1)", "-p",        "--port",    "(8000)",    "-n",
        "--queries",  "(1)",       "-c",          "--sockets", "(1000)",    "--timeout", "(10)",
        "-h, --help", "--version", "Exit status", "Examples:", "Where to:", "How much:", "About:"};

    RUN_HTTP(help[_i], "-p", "never looked at");
    ck_assert_int_eq(ran.status, 0);
    ck_assert_str_eq(ran.errors, "");
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        check_has(ran.output, words[i]);
}
END_TEST

START_TEST(version_says_the_version)
{
    RUN_HTTP("--version");
    ck_assert_int_eq(ran.status, 0);
    ck_assert_str_eq(ran.output, "sxe-http " SXE_VERSION "\n");
    ck_assert_str_eq(ran.errors, "");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("http-options");
    TCase *tcase = tcase_create("options");

    tcase_add_test(tcase, without_arguments_all_is_as_in_2010);
    tcase_add_test(tcase, each_option_has_a_short_name);
    tcase_add_test(tcase, each_option_has_a_long_name);
    tcase_add_loop_test(tcase, the_timeout_is_seconds_or_has_a_unit, 0, 5);
    tcase_add_loop_test(tcase, an_address_becomes_the_authority_of_the_url, 0, 4);
    tcase_add_loop_test(tcase, a_bad_argument_is_named_with_what_is_allowed, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_loop_test(tcase, help_names_all_options_and_their_defaults, 0, 2);
    tcase_add_test(tcase, version_says_the_version);
    suite_add_tcase(suite, tcase);
    return sxe_test_main(suite);
}
