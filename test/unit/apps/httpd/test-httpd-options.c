/* SPDX-License-Identifier: MIT
 *
 * The command line of sxe-httpd: the effect of each option, and the message for a wrong value.
 */
#include "../../../../apps/httpd/cli/options-check.h"

#include <sched.h>
#include <stddef.h>

#include "run-httpd.h"
#include "sxe-cidr.h"

static struct httpd_options options;

static int
parse(const char **argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    return httpd_options_parse(&options, argc, (char **)(uintptr_t)argv);
}
#define PARSE(...) parse((const char *[]){"sxe-httpd", __VA_ARGS__, NULL})

/* ---- Options that set a value ---- */

START_TEST(without_arguments_it_says_hello_on_port_8000_of_this_machine)
{
    ck_assert_int_eq(parse((const char *[]){"sxe-httpd", NULL}), -1);
    ck_assert_str_eq(options.ip, "127.0.0.1");
    ck_assert_uint_eq(options.port, 8000);
    ck_assert_ptr_null(options.unix_path);
    ck_assert_ptr_null(options.files.root);
    ck_assert_ptr_null(options.files.index);
    ck_assert_ptr_null(options.files.types);
    ck_assert_ptr_null(options.files.cache_control);
    ck_assert(!options.files.listing && !options.files.dot_files);
    ck_assert_ptr_null(options.http.fields);
    ck_assert_ptr_null(options.http.proxies);
    ck_assert_ptr_null(options.access_log);
    ck_assert_int_eq(options.access_log_format.parts[0].variable, LOG_REMOTE_ADDR);
    ck_assert_uint_eq(options.http.head.line_max, 8192);
    ck_assert_uint_eq(options.http.head.head_max, 16384);
    ck_assert_uint_eq(options.stall_timeout_ms, 30000);
    ck_assert_uint_eq(options.stop_timeout_ms, 5000);
    ck_assert_uint_eq(options.hang_timeout_ms, 10000);
    ck_assert(!options.plan);
}
END_TEST

#define NUMBER(field) offsetof(struct httpd_options, field), sizeof(options.field)

static const struct {
    const char *arguments[2];
    size_t offset;
    size_t size;
    uint64_t value;
} numbers[] = {
    {{"-p", "65535"}, NUMBER(port), 65535},
    {{"--port=0"}, NUMBER(port), 0},
    {{"-c", "1"}, NUMBER(http.connections), 1},
    {{"--connections", "10000000"}, NUMBER(http.connections), 10000000},
    {{"--connections-per-address=1"}, NUMBER(http.address_max), 1},
    {{"--connections-per-address=0"}, NUMBER(http.address_max), UINT32_MAX},
    {{"--requests=1"}, NUMBER(http.requests_max), 1},
    {{"--requests=4294967295"}, NUMBER(http.requests_max), UINT32_MAX},
    {{"--max-line=64"}, NUMBER(http.head.line_max), 64},
    {{"--max-line=16k"}, NUMBER(http.head.line_max), 16384},
    {{"--max-header=256"}, NUMBER(http.head.head_max), 256},
    {{"--max-header=256"}, NUMBER(http.head.line_max), 256},
    {{"--max-header=60k"}, NUMBER(http.head.head_max), 61440},
    {{"--max-header=60k"}, NUMBER(http.head.line_max), 8192},
    {{"--max-fields=1"}, NUMBER(http.head.fields_max), 1},
    {{"--max-fields=255"}, NUMBER(http.head.fields_max), 255},
    {{"-r.", "--max-ranges=1"}, NUMBER(files.ranges_max), 1},
    {{"-r.", "--max-ranges=256"}, NUMBER(files.ranges_max), 256},
    {{"--max-body=1"}, NUMBER(http.body_max), 1},
    {{"--max-body=1.5m"}, NUMBER(http.body_max), 1536 * 1024},
    {{"--max-body=1g"}, NUMBER(http.body_max), 1024 * 1024 * 1024},
    {{"--body-memory=1m"}, NUMBER(http.body_memory_max), 1024 * 1024},
    {{"--body-rate=1k"}, NUMBER(http.body_rate_min), 1024},
    {{"--header-timeout=0.25"}, NUMBER(http.head_timeout_ms), 250},
    {{"--body-timeout=500ms"}, NUMBER(http.body_timeout_ms), 500},
    {{"--idle-timeout=2m"}, NUMBER(http.idle_timeout_ms), 120000},
    {{"--idle-timeout=0.001"}, NUMBER(http.idle_timeout_ms), 1},
    {{"--stall-timeout=1d"}, NUMBER(stall_timeout_ms), 86400000},
    {{"--stop-timeout", "1.5"}, NUMBER(stop_timeout_ms), 1500},
};

START_TEST(a_number_a_size_or_a_time_is_taken)
{
    const char *const *arguments = numbers[_i].arguments;
    const char *field = (const char *)&options + numbers[_i].offset;

    ck_assert_int_eq(PARSE(arguments[0], arguments[1]), -1);
    if (numbers[_i].size == sizeof(uint16_t))
        ck_assert_uint_eq(*(const uint16_t *)field, numbers[_i].value);
    else
        ck_assert_uint_eq(*(const uint32_t *)field, numbers[_i].value);
}
END_TEST

START_TEST(places_are_taken)
{
    ck_assert_int_eq(PARSE("--half-close"), -1);
    ck_assert(options.http.half_close);
    ck_assert_int_eq(PARSE("-i", "::1", "--unix=/run/web.sock", "--access-log", "web.log"), -1);
    ck_assert_str_eq(options.ip, "::1");
    ck_assert_str_eq(options.unix_path, "/run/web.sock");
    ck_assert_str_eq(options.access_log, "web.log");
    ck_assert_uint_eq(options.socket_mode, 0);
    ck_assert_int_eq(PARSE("--unix", "s", "--socket-mode", "0660"), -1);
    ck_assert_uint_eq(options.socket_mode, 0660);
    ck_assert_int_eq(PARSE("-r", ".", "--sniff"), -1);
    ck_assert(options.files.sniff);
    ck_assert_int_eq(PARSE("--header", "x-content-type-options: nosniff"), -1);
    ck_assert(options.files.sniff);
    ck_assert_int_eq(PARSE("--ip", "10.1.2.3", "--unix=@name", "--access-log", "-", "--plan"), -1);
    ck_assert_str_eq(options.ip, "10.1.2.3");
    ck_assert_str_eq(options.unix_path, "@name");
    ck_assert(options.plan);
}
END_TEST

START_TEST(files_are_described)
{
    ck_assert_int_eq(PARSE("-r", "/srv/www", "--listing", "--dot-files", "--cache-control",
                           "max-age=3600", "--index", "start.html", "--index", "index.htm",
                           "--type", "text/markdown md mkd", "--type=a/b  c"),
                     -1);
    ck_assert_str_eq(options.files.root, "/srv/www");
    ck_assert(options.files.listing && options.files.dot_files);
    ck_assert_str_eq(options.files.cache_control, "max-age=3600");
    ck_assert_ptr_eq(options.files.index, options.index);
    ck_assert_str_eq(options.index[0], "start.html");
    ck_assert_str_eq(options.index[1], "index.htm");
    ck_assert_ptr_null(options.index[2]);
    ck_assert_str_eq(options.files.types, "text/markdown md mkd\na/b  c\n");
}
END_TEST

START_TEST(zero_ranges_are_none)
{
    ck_assert_int_eq(PARSE("-r", "."), -1);
    ck_assert(!options.files.no_ranges);
    ck_assert_int_eq(PARSE("-r", ".", "--max-ranges", "0"), -1);
    ck_assert(options.files.no_ranges);
    ck_assert_int_eq(PARSE("-r", ".", "--max-ranges=0", "--max-ranges=2"), -1);
    ck_assert(!options.files.no_ranges);
    ck_assert_uint_eq(options.files.ranges_max, 2);
}
END_TEST

START_TEST(scripts_are_taken_with_their_arguments)
{
    const char *plain[] = {"sxe-httpd", "--lua", "a.lua", NULL};
    const char *full[] = {"sxe-httpd",
                          "-p",
                          "1",
                          "--lua=b.lua",
                          "--dev",
                          "--loose",
                          "--lua-memory=8m",
                          "--lua-cpu=50ms",
                          "--hang-timeout=0",
                          "--lua-tasks=100",
                          "--lua-sockets=500",
                          "--lua-coverage=c",
                          "--",
                          "-p",
                          "--",
                          NULL};
    const char *strict[] = {"sxe-httpd", "--lua", "a.lua", "--loose", "--strict", "--", NULL};
    const char *sandbox[] = {"sxe-httpd", "--lua", "a.lua", "--lua-sandbox", NULL};

    ck_assert_int_eq(parse(plain), -1);
    ck_assert_str_eq(options.script, "a.lua");
    ck_assert_int_eq(options.lua.argc, 1);
    ck_assert_str_eq(options.lua.argv[0], "a.lua");
    ck_assert_uint_eq(options.lua.memory_max, 256 * 1024 * 1024);
    ck_assert(!options.lua.is_dev && !options.lua.is_loose && !options.is_place_given);
    ck_assert_int_eq(parse(full), -1);
    ck_assert_int_eq(options.lua.argc, 3);
    ck_assert_str_eq(options.lua.argv[0], "b.lua");
    ck_assert_str_eq(options.lua.argv[1], "-p");
    ck_assert_str_eq(options.lua.argv[2], "--");
    ck_assert_ptr_null(options.lua.argv[3]);
    ck_assert_uint_eq(options.lua.memory_max, 8 * 1024 * 1024);
    ck_assert_uint_eq(options.lua.cpu_ms, 50);
    ck_assert_uint_eq(options.hang_timeout_ms, 0);
    ck_assert_uint_eq(options.lua.tasks, 100);
    ck_assert_uint_eq(options.lua.sockets, 500);
    ck_assert_str_eq(options.lua_coverage, "c");
    ck_assert(options.lua.is_dev && options.lua.is_loose && options.is_place_given);
    ck_assert_int_eq(parse(strict), -1);
    ck_assert(!options.lua.is_loose && !options.lua.is_sandbox);
    ck_assert_int_eq(options.lua.argc, 1);
    ck_assert_int_eq(parse(sandbox), -1);
    ck_assert(options.lua.is_sandbox);
    ck_assert_uint_eq(options.lua.memory_max, 32 * 1024 * 1024);
}
END_TEST

START_TEST(workers_are_a_number_or_one_a_cpu)
{
    const char *plain[] = {"sxe-httpd", NULL};
    const char *three[] = {"sxe-httpd", "-w", "3", "--hang-timeout=1", NULL};
    const char *all[] = {"sxe-httpd", "--workers=auto", NULL};
    cpu_set_t cpus;

    ck_assert_int_eq(parse(plain), -1);
    ck_assert_uint_eq(options.workers, 0);
    ck_assert_int_eq(parse(three), -1);
    ck_assert_uint_eq(options.workers, 3);
    ck_assert_uint_eq(options.hang_timeout_ms, 1000);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    ck_assert_int_eq(parse(all), -1);
    ck_assert_uint_eq(options.workers, CPU_COUNT(&cpus) < 64 ? CPU_COUNT(&cpus) : 64);
}
END_TEST

START_TEST(counters_are_for_this_machine_unless_told)
{
    struct sockaddr_in ours = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in ten = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010203)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};

    ck_assert_int_eq(PARSE("--stats", "/a/stats"), -1);
    ck_assert_str_eq(options.stats_path, "/a/stats");
    ck_assert(sxe_cidr_match(&options.stats_from, (struct sockaddr *)&ours));
    ck_assert(sxe_cidr_match(&options.stats_from, (struct sockaddr *)&local));
    ck_assert(!sxe_cidr_match(&options.stats_from, (struct sockaddr *)&ten));
    ck_assert_int_eq(PARSE("--stats=/", "--stats-from=10.0.0.0/8", "--stats-from", "unix"), -1);
    ck_assert(!sxe_cidr_match(&options.stats_from, (struct sockaddr *)&ours));
    ck_assert(sxe_cidr_match(&options.stats_from, (struct sockaddr *)&local));
    ck_assert(sxe_cidr_match(&options.stats_from, (struct sockaddr *)&ten));
    ck_assert_int_eq(PARSE("--stats=/", "--stats-from", "unix"), -1);
    ck_assert(!sxe_cidr_match(&options.stats_from, (struct sockaddr *)&ours));
}
END_TEST

START_TEST(headers_are_gathered)
{
    ck_assert_int_eq(PARSE("--header", "Server: sxe", "--header=X-Empty:", "--header",
                           "Strict-Transport-Security: max-age=63072000"),
                     -1);
    ck_assert_str_eq(options.http.fields,
                     "Server: sxe\r\nX-Empty:\r\nStrict-Transport-Security: max-age=63072000\r\n");
}
END_TEST

START_TEST(a_header_may_be_of_any_token_and_have_tabs_and_bytes_above_ascii)
{
    ck_assert_int_eq(PARSE("--header", "!#$%&'*+-.^_`|~09AZaz:\t\xc3\xa9 ~"), -1);
}
END_TEST

START_TEST(proxies_are_gathered)
{
    struct sockaddr_in ten = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010203)};

    ck_assert_int_eq(PARSE("--proxy-from", "10.0.0.0/8,::1", "--proxy-from=unix"), -1);
    ck_assert_ptr_eq(options.http.proxies, &options.proxies);
    ck_assert_uint_eq(options.proxies.number, 2);
    ck_assert(options.proxies.has_unix);
    ck_assert(sxe_cidr_match(options.http.proxies, (const struct sockaddr *)&ten));
}
END_TEST

START_TEST(a_header_has_the_ids_of_requests_and_peers_are_believed)
{
    struct sockaddr_in ten = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010203)};

    ck_assert_int_eq(PARSE("--request-id", "X-Request-Id", "--trust-from", "::1",
                           "--trust-from=10.0.0.0/8,unix", "--trace"),
                     -1);
    ck_assert(options.http.trace);
    ck_assert_str_eq(options.http.request_id, "X-Request-Id");
    ck_assert_ptr_eq(options.http.trusted, &options.trusted);
    ck_assert(sxe_cidr_match(options.http.trusted, (const struct sockaddr *)&ten));
    ck_assert_int_eq(PARSE("--request-id", "Request-Id"), -1);
    ck_assert_ptr_null(options.http.trusted);
}
END_TEST

START_TEST(fastcgi_has_a_place)
{
    ck_assert_int_eq(PARSE("-r", "."), -1);
    ck_assert(!options.fastcgi_is_on);
    ck_assert_int_eq(PARSE("--fastcgi", "9000"), -1);
    ck_assert(options.fastcgi_is_on && options.is_place_given && !options.is_port_given);
    ck_assert_str_eq(options.fastcgi.ip, "127.0.0.1");
    ck_assert_uint_eq(options.fastcgi.port, 9000);
    ck_assert_ptr_null(options.fastcgi.path);
    ck_assert_int_eq(PARSE("--fastcgi", "[::1]:0"), -1);
    ck_assert_str_eq(options.fastcgi.ip, "::1");
    ck_assert_int_eq(PARSE("--fastcgi", "/run/s", "--socket-mode", "600"), -1);
    ck_assert_str_eq(options.fastcgi.path, "/run/s");
    ck_assert_int_eq(PARSE("--fastcgi", "@n", "-p", "0"), -1);
    ck_assert_str_eq(options.fastcgi.path, "@n");
}
END_TEST

START_TEST(it_listens_at_several_places)
{
    ck_assert_int_eq(PARSE("--listen", "80", "--listen", "[::1]:81,plain", "--listen", "10.1.2.3:0",
                           "--listen", "/run/s", "--listen", "./a,b", "--listen", "@n",
                           "--socket-mode", "600"),
                     -1);
    ck_assert(options.is_place_given && !options.is_port_given);
    ck_assert_uint_eq(options.places_number, 6);
    ck_assert_str_eq(options.places[0].ip, "");
    ck_assert_uint_eq(options.places[0].port, 80);
    ck_assert(!options.places[0].is_plain);
    ck_assert_str_eq(options.places[1].ip, "::1");
    ck_assert_uint_eq(options.places[1].port, 81);
    ck_assert(options.places[1].is_plain);
    ck_assert_ptr_null(options.places[1].path);
    ck_assert_str_eq(options.places[2].ip, "10.1.2.3");
    ck_assert_str_eq(options.places[3].path, "/run/s");
    ck_assert_str_eq(options.places[4].path, "./a,b");
    ck_assert_str_eq(options.places[5].path, "@n");
    ck_assert_str_eq(httpd_unix_path(&options), "/run/s");
    ck_assert_int_eq(PARSE("-p", "0", "--listen", "80"), -1);
    ck_assert(options.is_port_given);
    ck_assert_ptr_null(httpd_unix_path(&options));
}
END_TEST

START_TEST(places_have_options_of_tls)
{
    ck_assert_int_eq(PARSE("--tls-cert", "a", "--tls-key", "b", "--tls-client-ca", "c", "--listen",
                           "80,client=off", "--listen", "[::1]:81,tls", "--listen",
                           "/run/s,client=optional", "--listen", "/run/t,tls,client=required",
                           "--listen", "/run/u", "--listen", "/run/v,plain"),
                     -1);
    ck_assert_int_eq(options.places[0].clients, HTTPD_CLIENTS_OFF);
    ck_assert(!options.places[0].is_plain && !options.places[1].is_plain);
    ck_assert_int_eq(options.places[1].clients, HTTPD_CLIENTS_AS_GIVEN);
    ck_assert_str_eq(options.places[2].path, "/run/s");
    ck_assert_int_eq(options.places[2].clients, HTTPD_CLIENTS_OPTIONAL);
    ck_assert_str_eq(options.places[3].path, "/run/t");
    ck_assert_int_eq(options.places[3].clients, HTTPD_CLIENTS_REQUIRED);
    ck_assert(!options.places[2].is_plain && !options.places[3].is_plain);
    ck_assert_str_eq(options.places[4].path, "/run/u");
    ck_assert_str_eq(options.places[5].path, "/run/v");
    ck_assert(options.places[4].is_plain && options.places[5].is_plain);
}
END_TEST

START_TEST(clients_are_known_by_one_field)
{
    ck_assert_int_eq(PARSE("--trust-from", "::1", "--forwarded", "forwarded"), -1);
    ck_assert_int_eq(options.http.forwarding, SXE_HTTP_FORWARDING_FORWARDED);
    ck_assert_int_eq(PARSE("--trust-from", "::1", "--forwarded", "x-forwarded"), -1);
    ck_assert_int_eq(options.http.forwarding, SXE_HTTP_FORWARDING_X_FORWARDED);
    ck_assert_int_eq(PARSE("--forwarded", "none"), -1);
    ck_assert_int_eq(options.http.forwarding, SXE_HTTP_FORWARDING_NONE);
}
END_TEST

START_TEST(a_log_has_a_format)
{
    ck_assert_int_eq(PARSE("--access-log", "a", "--access-log-format", "json"), -1);
    ck_assert(options.access_log_format.is_object);
    ck_assert_int_eq(PARSE("--access-log", "a", "--access-log-format", "$status"), -1);
    ck_assert_uint_eq(options.access_log_format.number, 1);
    ck_assert_int_eq(options.access_log_format.parts[0].variable, LOG_STATUS);
}
END_TEST

START_TEST(a_part_of_the_requests_is_logged)
{
    ck_assert_int_eq(PARSE("--access-log", "a"), -1);
    ck_assert(!options.is_sample_given);
    ck_assert_int_eq(PARSE("--access-log", "a", "--access-log-sample", "0.25"), -1);
    ck_assert(options.is_sample_given);
    ck_assert_double_eq(options.access_log_rate, 0.25);
    ck_assert_uint_eq(options.access_log_slow_ms, 1000);
    ck_assert_int_eq(
        PARSE("--access-log", "a", "--access-log-sample", "0", "--access-log-slow", "50ms"), -1);
    ck_assert_double_eq(options.access_log_rate, 0);
    ck_assert_uint_eq(options.access_log_slow_ms, 50);
}
END_TEST

START_TEST(the_last_of_two_wins)
{
    ck_assert_int_eq(PARSE("-p", "1", "-i", "::", "--port", "2", "-i", "127.0.0.2"), -1);
    ck_assert_uint_eq(options.port, 2);
    ck_assert_str_eq(options.ip, "127.0.0.2");
}
END_TEST

/* ---- Wrong options ---- */

#define FROM_TO(from, to) "'; it must be a number from " from " to " to ". Try --help.\n"
#define SECONDS           "'; it must be from 0.001 to 86400 seconds, such as 10, 0.5, 500ms or 2m."
#define NO_PLACE(text)                                                      \
    "a place to listen at (--listen) is '" text                             \
    "'; it must be PORT, IP:PORT with an IPv6 address in brackets, or the " \
    "path of a unix socket, with a slash in it; perhaps with ,plain for no TLS, ,tls for"
#define NO_HEADER "it must be 'Name: value', and not a field that sxe-httpd sets itself."
#define NO_TYPE   "it must be 'type/subtype extension', as in mime.types. Try --help.\n"
#define NO_INDEX  "it must be the name of a file, without a slash; at most 8 of them."

static const struct {
    const char *arguments[4];
    const char *says;
} mistakes[] = {
    {{"-p"}, "sxe-httpd: option -p requires an argument: -p PORT. Try --help.\n"},
    {{"-p", "65536"}, "the port (-p) is '65536" FROM_TO("0", "65535")},
    {{"-p", "-1"}, "the port (-p) is '-1'"},
    {{"-p", "+1"}, "the port (-p) is '+1'"},
    {{"-p", ""}, "the port (-p) is ''"},
    {{"-p", " 80"}, "the port (-p) is ' 80'"},
    {{"-p", "8000x"}, "the port (-p) is '8000x'"},
    {{"-p", "http"}, "the port (-p) is 'http'"},
    {{"-p", "99999999999999999999999"}, "the port (-p) is '9"},
    {{"--port=0x50"}, "the port (-p) is '0x50'"},
    {{"-i", "localhost"}, "the address (-i) is 'localhost'; it must be IPv4 or IPv6. Try --help."},
    {{"-i", "127.0.0.256"}, "the address (-i) is '127.0.0.256'"},
    {{"-i", ""}, "the address (-i) is ''"},
    {{"--ip"}, "option --ip requires an argument: --ip IP. Try --help.\n"},
    {{"--unix", ""}, "the path of the unix socket (--unix) is ''; it must be 1 to 107 bytes long"},
    {{"--fastcgi", "70000"},
     "the address of FastCGI (--fastcgi) is '70000'; it must be a port, IP"},
    {{"--fastcgi", "x"}, "a port, IP:PORT, or the path of a unix socket, with a slash in it. Try"},
    {{"--socket-mode", "888"}, "the mode of the unix socket (--socket-mode) is '888'"},
    {{"--socket-mode", "1000"}, "it must be an octal number from 1 to 777, such as 660"},
    {{"--socket-mode", "66x"}, "is '66x'"},
    {{"--socket-mode", "-6"}, "is '-6'"},
    {{"--proxy-from", "proxy"}, "the proxies' network (--proxy-from) is 'proxy'; it must be addre"},
    {{"--proxy-from", "10.0.0.1/8"}, "is '10.0.0.1/8'"},
    {{"--access-log-sample", "1.5"},
     "the part of requests that is logged (--access-log-sample) is '1.5'; it must be a number from "
     "0 "},
    {{"--access-log-sample", ""}, "(--access-log-sample) is ''"},
    {{"--access-log-sample", "nan"}, "(--access-log-sample) is 'nan'"},
    {{"--access-log-sample", "-0"}, "(--access-log-sample) is '-0'"},
    {{"--access-log-sample", "1e-1"}, "(--access-log-sample) is '1e-1'"},
    {{"--access-log-sample", "0.1.2"}, "(--access-log-sample) is '0.1.2'"},
    {{"--access-log-sample", "."}, "(--access-log-sample) is '.'"},
    {{"--access-log-slow", "x"}, "the time of a slow request (--access-log-slow) is 'x'"},
    {{"--access-log-sample", "0.1"},
     "--access-log-sample needs an access log: add --access-log FILE"},
    {{"--access-log-slow", "2"}, "--access-log-slow tells which requests are always logged"},
    {{"--trust-from", "all"},
     "the trusted network (--trust-from) is 'all'; it must be addresses, netw"},
    {{"--request-id", "X Id"},
     "the header of request ids (--request-id) is 'X Id'; it must be the "},
    {{"--request-id", ""}, "the header of request ids (--request-id) is ''"},
    {{"--request-id", "date"}, "and not a field that sxe-httpd sets itself"},
    {{"--listing=yes", "-r", "."}, "option --listing takes no argument. Try --help.\n"},
    {{"--index", ""}, "an index (--index) is ''; " NO_INDEX},
    {{"--index", "a/b"}, "an index (--index) is 'a/b'; " NO_INDEX},
    {{"--index", "."}, NO_INDEX},
    {{"--index", ".."}, NO_INDEX},
    {{"--type", "md"}, "a content type (--type) is 'md'; " NO_TYPE},
    {{"--type", "text/markdown"}, NO_TYPE},
    {{"--type", "text/markdown "}, NO_TYPE},
    {{"--type", "/markdown md"}, NO_TYPE},
    {{"--type", "text/ md"}, NO_TYPE},
    {{"--type", "md text/markdown"}, NO_TYPE},
    {{"--type", "text/markdown\tmd"}, NO_TYPE},
    {{"--type", "text/x md\ntext/y md"}, NO_TYPE},
    {{"--type", "text/x # md"}, NO_TYPE},
    {{"--type", "text/\xc3\xa9 md"}, NO_TYPE},
    {{"--cache-control", "no-store\r\nX: y"}, "Cache-Control (--cache-control) is 'no-store\r\nX"},
    {{"--header", "bad"}, "a header (--header) is 'bad'; " NO_HEADER},
    {{"--header", ""}, NO_HEADER},
    {{"--header", ": value"}, NO_HEADER},
    {{"--header", "Name : value"}, NO_HEADER},
    {{"--header", "Na\xc3\xa9me: value"}, NO_HEADER},
    {{"--header", "Name: a\r\nOther: b"}, NO_HEADER},
    {{"--header", "Name: a\nOther: b"}, NO_HEADER},
    {{"--header", "Name: \x7f"}, NO_HEADER},
    {{"--header", "Connection: close"}, NO_HEADER},
    {{"--header", "content-length: 5"}, NO_HEADER},
    {{"--header", "TRANSFER-ENCODING: chunked"}, NO_HEADER},
    {{"--header", "Date: now"}, NO_HEADER},
    {{"--header", "Content-Type: text/html"}, NO_HEADER},
    {{"--header", "ETag: \"a\""}, NO_HEADER},
    {{"--access-log"}, "option --access-log requires an argument: --access-log FILE."},
    {{"--access-log", "a", "--access-log-format", "xml"},
     "sxe-httpd: the access log's format (--access-log-format) is 'xml': it is neither common, "
     "combined nor json, and has no variable such as $status. Try --help.\n"},
    {{"--listen", "80,ssl"}, NO_PLACE("80,ssl")},
    {{"--listen", ""}, NO_PLACE("")},
    {{"--listen", "::1"}, NO_PLACE("::1")},
    {{"--listen", "65536"}, NO_PLACE("65536")},
    {{"--listen", "0000000000000000000000000000000000000000000000000000000000000080"},
     NO_PLACE("0000000000000000000000000000000000000000000000000000000000000080")},
    {{"--listen=1", "--socket-mode=600"}, "--socket-mode needs a unix socket: add --unix PATH"},
    {{"--trust-from", "::1", "--forwarded", "both"},
     "the field of clients (--forwarded) is 'both'; it must be forwarded, for Forwarded (RFC "
     "7239), "
     "x-forwarded, for X-Forwarded-For, -Proto and -Host, or none. Try --help.\n"},
    {{"--forwarded", "forwarded"},
     "sxe-httpd: --forwarded needs proxies that are believed: add --trust-from NETS. Try "
     "--help.\n"},
    {{"--access-log", "a", "--access-log-format", "$stats"},
     "is '$stats': $stats is no variable; did you mean $status? Try --help.\n"},
    {{"--access-log-format", "json"},
     "sxe-httpd: --access-log-format needs an access log: add --access-log FILE. Try --help.\n"},
    {{"-c", "0"}, "the number of connections (-c) is '0" FROM_TO("1", "10000000")},
    {{"-c", "10000001"}, "the number of connections (-c) is '10000001'"},
    {{"-c", "many"}, "the number of connections (-c) is 'many'"},
    {{"--connections-per-address=x"}, "the connections of an address (--connections-per-address)"},
    {{"--requests=0"},
     "the requests of a connection (--requests) is '0" FROM_TO("1", "4294967295")},
    {{"--max-line=63"}, "the request line's size (--max-line) is '63'; it must be from 64 to 60k"},
    {{"--max-line=61k"}, "the request line's size (--max-line) is '61k'"},
    {{"--max-line=20k"},
     "sxe-httpd: a request line of 20480 bytes (--max-line) does not fit into a "
     "head of 16384 (--max-header). Try --help.\n"},
    {{"--max-line=301", "--max-header=300"}, "a request line of 301 bytes (--max-line) does not"},
    {{"--max-header=255"}, "the head's size (--max-header) is '255'; it must be from 256 to 60k"},
    {{"--max-header=1m"}, "the head's size (--max-header) is '1m'"},
    {{"--max-fields=0"}, "the number of fields (--max-fields) is '0" FROM_TO("1", "255")},
    {{"--max-fields=1k"}, "the number of fields (--max-fields) is '1k'"},
    {{"--max-fields=256"}, "the number of fields (--max-fields) is '256'"},
    {{"--max-body=0"}, "the body's size (--max-body) is '0'; it must be from 1 to 1g bytes: 1m"},
    {{"--max-body=1025m"}, "the body's size (--max-body) is '1025m'"},
    {{"--body-rate=0"}, "the rate of a body (--body-rate) is '0'"},
    {{"--header-timeout=0"}, "the time for a head (--header-timeout) is '0" SECONDS},
    {{"--body-timeout=-1"}, "the time for a body (--body-timeout) is '-1" SECONDS},
    {{"--idle-timeout=0.0001"}, "the time between requests (--idle-timeout) is '0.0001" SECONDS},
    {{"--stall-timeout=2d"}, "the time of a stall (--stall-timeout) is '2d" SECONDS},
    {{"--stop-timeout=soon"}, "the time for the end (--stop-timeout) is 'soon" SECONDS},
    {{"--sniff"}, "--max-ranges) need a directory to serve: add -r DIR. Try --help.\n"},
    {{"--socket-mode", "660"}, "--socket-mode needs a unix socket: add --unix PATH"},
    {{"--listing"}, "--max-ranges) need a directory to serve: add -r DIR. Try --help.\n"},
    {{"--index", "a"}, "add -r DIR"},
    {{"--dot-files"}, "add -r DIR"},
    {{"--type", "text/x x"}, "add -r DIR"},
    {{"--cache-control", "no-store"}, "add -r DIR"},
    {{"--max-ranges", "0"}, "add -r DIR"},
    {{"--max-ranges", "2"}, "add -r DIR"},
    {{"--max-ranges", "257"}, "the ranges of a request (--max-ranges) is '257" FROM_TO("0", "256")},
    {{"--max-ranges", "any"}, "the ranges of a request (--max-ranges) is 'any'"},
    {{"-x"}, "unknown option -x. Try --help.\n"},
    {{"--unknown"}, "unknown option --unknown. Try --help.\n"},
    {{"--prot"}, "unknown option --prot; did you mean --port? Try --help.\n"},
    {{"8000"}, "sxe-httpd: '8000' is not an option. Try --help.\n"},
    {{"app.lua"}, "sxe-httpd: 'app.lua' is not an option; did you mean --lua app.lua? Try --help"},
    {{".lua"}, "sxe-httpd: '.lua' is not an option. Try --help.\n"},
    {{"-p", "0", "--", "-c"}, "'-c' is not an option"},
    {{"--lua", "a", "-r", "."},
     "-r does not go with --lua: serve the files in the script, with "
     "http.static(\"DIR\"). Try --help.\n"},
    {{"--dev"}, "--lua-sandbox) need a script: add --lua FILE. Try --help.\n"},
    {{"--repl"}, "add --lua FILE"},
    {{"--loose"}, "add --lua FILE"},
    {{"--strict"}, "add --lua FILE"},
    {{"--lua-cpu=1"}, "add --lua FILE"},
    {{"--hang-timeout=1"},
     "--hang-timeout needs a process that can be replaced: add --lua FILE or -w N"},
    {{"--chroot=/", "--user=root"},
     "--chroot needs a user who cannot leave it, as root can: add --user NAME"},
    {{"--chroot=/"}, "add --user NAME"},
    {{"--chroot="}, "the root directory (--chroot) is ''; it must be a directory"},
    {{"--chroot=/", "--user=7:7", "--lua=a", "--dev"},
     "--dev does not go with --chroot: the supervisor"},
    {{"--chroot=/", "--user=7:7", "--lua=a", "--repl"},
     "--repl is a shell in a single process: leave out --chroot"},
    {{"-w", "0"}, "the number of workers (-w) is '0'; it must be a number from 1 to 64"},
    {{"-w", "65"}, "the number of workers (-w) is '65'; it must be a number from 1 to 64"},
    {{"-w2", "--lua", "a", "--repl"}, "--repl is a shell in a single process: leave out -w"},
    {{"--hang-timeout=x"}, "the time of a hang (--hang-timeout) is 'x'"},
    {{"--lua-coverage=c"}, "add --lua FILE"},
    {{"--lua-memory=8m"}, "add --lua FILE"},
    {{"--lua-memory=1"}, "the script's memory (--lua-memory) is '1'; it must be from 1m to 4095m"},
    {{"--lua-tasks=1"}, "add --lua FILE"},
    {{"--lua-sockets=1"}, "add --lua FILE"},
    {{"--lua-tasks=0"}, "the number of tasks (--lua-tasks) is '0'"},
    {{"--lua-sockets=x"}, "the number of sockets (--lua-sockets) is 'x'"},
    {{"--lua-cpu=0"}, "the script's time (--lua-cpu) is '0" SECONDS},
    {{"--stats", "stats"}, "the path of the counters (--stats) is 'stats'; it must be a path such"},
    {{"--stats="}, "the path of the counters (--stats) is ''"},
    {{"--stats=/{a}"}, "the path of the counters (--stats) is '/{a}'"},
    {{"--stats-from=all"},
     "the network that may see the counters (--stats-from) is 'all'; it must be addresses,"},
};

START_TEST(a_mistake_is_named_and_ends_it_with_2)
{
    const char *const *arguments = mistakes[_i].arguments;

    RUN_HTTPD(arguments[0], arguments[1], arguments[2], arguments[3]);
    ck_assert_int_eq(ran.status, 2);
    ck_assert_str_eq(ran.output, "");
    check_has(ran.errors, mistakes[_i].says);
}
END_TEST

START_TEST(it_listens_at_six_places_at_most)
{
    RUN_HTTPD("--listen=1", "--listen=2", "--listen=3", "--listen=4", "--listen=5", "--listen=6",
              "--listen=7");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "a place to listen at (--listen) is '7'; it must be one of at most 6.");
}
END_TEST

/* `begin` followed by this many letters. */
static const char *
long_text(const char *begin, size_t length)
{
    static char text[5000];
    int used = snprintf(text, sizeof(text), "%s", begin);

    ck_assert_uint_lt((size_t)used + length, sizeof(text));
    memset(text + used, 'a', length);
    text[(size_t)used + length] = '\0';
    return text;
}

static const struct {
    const char *option;
    const char *begin;
    size_t fits; /* how many letters may follow `begin` */
    const char *says;
} lengths[] = {
    {"--unix", "/", 106, "1 to 107 bytes long"},
    {"--listen", "/", 106, "perhaps with ,plain"},
    {"--index", "", 255, NO_INDEX},
    {"--header", "X: ", HTTPD_FIELDS_MAX - 6, "shorter: all of them together have at most 4 KiB"},
    {"--type", "a/b ", HTTPD_TYPES_MAX - 6, "shorter: all of them together have at most 4 KiB"},
};

START_TEST(a_text_is_taken_up_to_its_limit)
{
    const char *option = lengths[_i].option;
    const char *fits = long_text(lengths[_i].begin, lengths[_i].fits);

    ck_assert_int_eq(PARSE("-r", ".", option, fits), -1);
    RUN_HTTPD("-r", ".", option, long_text(lengths[_i].begin, lengths[_i].fits + 1));
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, lengths[_i].says);
}
END_TEST

START_TEST(a_type_has_at_most_127_bytes)
{
    char type[200];

    snprintf(type, sizeof(type), "%s x", long_text("a/", 125));
    ck_assert_int_eq(PARSE("-r", ".", "--type", type), -1);
    snprintf(type, sizeof(type), "%s x", long_text("a/", 126));
    RUN_HTTPD("-r", ".", "--type", type);
    check_has(ran.errors, NO_TYPE);
}
END_TEST

START_TEST(headers_together_have_4_kib)
{
    const char *half = long_text("X: ", HTTPD_FIELDS_MAX / 2);

    RUN_HTTPD("--header", half, "--header", half);
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "shorter: all of them together have at most 4 KiB");
}
END_TEST

START_TEST(there_are_at_most_8_indexes)
{
    RUN_HTTPD("-r", ".", "--index=1", "--index=2", "--index=3", "--index=4", "--index=5",
              "--index=6", "--index=7", "--index=8", "--index=9");
    ck_assert_int_eq(ran.status, 2);
    check_has(ran.errors, "an index (--index) is '9'; " NO_INDEX);
}
END_TEST

/* ---- Options that ask for text, such as --help ---- */

static const char *const in_help[] = {
    "usage: sxe-httpd [options] [-- ARG...]\n",
    "\nExamples:\n  sxe-httpd -r public ",
    "\nListeners:\n  -i, --ip ",
    "\n  -p, --port ",
    "\nContent:\n  -r, --root ",
    "\nScripts (",
    "\n      --lua ",
    "\nProcesses:\n  -w, --workers ",
    "\nLogs and counters:\n      --access-log ",
    "\nLimits (",
    "\n  -c, --connections ",
    "\nTime (",
    "\nAbout:\n      --plan ",
    "\n  -h, --help ",
    "\n      --version ",
};

START_TEST(help_has_examples_and_groups)
{
    RUN_HTTPD(_i % 2 == 0 ? "--help" : "-h");
    ck_assert_int_eq(ran.status, 0);
    ck_assert_str_eq(ran.errors, "");
    check_has(ran.output, in_help[_i]);
}
END_TEST

START_TEST(no_line_of_help_but_an_example_is_longer_than_100_bytes)
{
    RUN_HTTPD("--help");
    for (const char *line = ran.output; *line != '\0';) {
        size_t length = strcspn(line, "\n");

        if (strncmp(line, "  sxe-httpd", 11) != 0)
            ck_assert_msg(length <= 100, "%.*s", (int)length, line);
        line += length + 1;
    }
}
END_TEST

START_TEST(version_is_the_librarys)
{
    RUN_HTTPD("--version");
    ck_assert_int_eq(ran.status, 0);
    ck_assert_str_eq(ran.output, "sxe-httpd " SXE_VERSION "\n");
}
END_TEST

static Suite *
options_suite(void)
{
    Suite *suite = suite_create("httpd options");
    TCase *taken = tcase_create("taken");
    TCase *refused = tcase_create("refused");
    TCase *asked = tcase_create("asked");

    tcase_add_test(taken, without_arguments_it_says_hello_on_port_8000_of_this_machine);
    tcase_add_loop_test(taken, a_number_a_size_or_a_time_is_taken, 0,
                        (int)(sizeof(numbers) / sizeof(numbers[0])));
    tcase_add_test(taken, places_are_taken);
    tcase_add_test(taken, files_are_described);
    tcase_add_test(taken, zero_ranges_are_none);
    tcase_add_test(taken, scripts_are_taken_with_their_arguments);
    tcase_add_test(taken, workers_are_a_number_or_one_a_cpu);
    tcase_add_test(taken, counters_are_for_this_machine_unless_told);
    tcase_add_test(taken, headers_are_gathered);
    tcase_add_test(taken, a_header_may_be_of_any_token_and_have_tabs_and_bytes_above_ascii);
    tcase_add_test(taken, proxies_are_gathered);
    tcase_add_test(taken, fastcgi_has_a_place);
    tcase_add_test(taken, a_header_has_the_ids_of_requests_and_peers_are_believed);
    tcase_add_test(taken, it_listens_at_several_places);
    tcase_add_test(taken, places_have_options_of_tls);
    tcase_add_test(taken, clients_are_known_by_one_field);
    tcase_add_test(taken, a_log_has_a_format);
    tcase_add_test(taken, a_part_of_the_requests_is_logged);
    tcase_add_test(taken, the_last_of_two_wins);
    suite_add_tcase(suite, taken);
    tcase_add_test(refused, it_listens_at_six_places_at_most);
    tcase_add_loop_test(refused, a_mistake_is_named_and_ends_it_with_2, 0,
                        (int)(sizeof(mistakes) / sizeof(mistakes[0])));
    tcase_add_loop_test(refused, a_text_is_taken_up_to_its_limit, 0,
                        (int)(sizeof(lengths) / sizeof(lengths[0])));
    tcase_add_test(refused, a_type_has_at_most_127_bytes);
    tcase_add_test(refused, headers_together_have_4_kib);
    tcase_add_test(refused, there_are_at_most_8_indexes);
    suite_add_tcase(suite, refused);
    tcase_add_loop_test(asked, help_has_examples_and_groups, 0,
                        (int)(sizeof(in_help) / sizeof(in_help[0])));
    tcase_add_test(asked, no_line_of_help_but_an_example_is_longer_than_100_bytes);
    tcase_add_test(asked, version_is_the_librarys);
    suite_add_tcase(suite, asked);
    return suite;
}

int
main(void)
{
    return sxe_test_main(options_suite());
}
