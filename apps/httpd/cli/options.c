/* SPDX-License-Identifier: MIT
 *
 * Stores the values of sxe-httpd's options, and checks them together at the end.
 */
#include "options.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "command-line.h"
#include "config-origin.h"
#include "first-steps.h"
#include "option-routes.h"
#include "options-check.h"
#include "options-complete.h"
#include "options-places.h"
#include "options-table.h"
#include "options-tls.h"
#include "sxe-http-list.h"
#include "sxe-workers.h"

#define CONNECTIONS_MAX 10000000ul
#define TASKS_MAX       1000000ul
#define DAY_MS          (24ul * 60 * 60 * 1000)
#define MIB             (1024ul * 1024)
/* the largest number of bytes of a head, because the parser's offsets have 16 bits */
#define HEAD_MOST 61440

/* ---- Values ---- */

static bool
set_number_option(const char *what, unsigned long min, unsigned long max, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_number(&httpd_line, what, min, max, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

static bool
set_size_option(const char *what, unsigned long min, unsigned long max, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_size(&httpd_line, what, min, max, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

static bool
small_number(const char *what, unsigned long min, unsigned long max, uint16_t *value)
{
    uint32_t taken = 0;
    bool is_good = set_number_option(what, min, max, &taken);

    *value = (uint16_t)taken;
    return is_good;
}

static bool
small_size(const char *what, unsigned long min, unsigned long max, uint16_t *value)
{
    uint32_t taken = 0;
    bool is_good = set_size_option(what, min, max, &taken);

    *value = (uint16_t)taken;
    return is_good;
}

static bool
set_duration(const char *what, unsigned long min_ms, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_duration(&httpd_line, what, min_ms, DAY_MS, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

static bool
add_networks(struct sxe_cidr_list *list, const char *what)
{
    return sxe_cidr_add(list, optarg, NULL) == 0 ||
           httpd_wrong(what, "addresses, networks such as 10.0.0.0/8, or unix, with commas between "
                             "them");
}

static bool
set_request_id(struct httpd_options *options)
{
    options->http.request_id = optarg;
    return httpd_is_field_name(optarg) ||
           httpd_wrong("the header of request ids (--request-id)",
                       "the name of a header, and not a field that sxe-httpd sets itself");
}

static bool
set_ranges(struct httpd_options *options)
{
    bool is_good = set_number_option("the ranges of a request (--max-ranges)", 0,
                                     SXE_HTTP_FILES_RANGES_MOST, &options->files.ranges_max);

    options->files.no_ranges = options->files.ranges_max == 0;
    return is_good;
}

/* Store optarg as a pattern of the router. It must be a path without parameters. */
static bool
set_stats_path(struct httpd_options *options)
{
    options->stats_path = optarg;
    return (*optarg == '/' && strcspn(optarg, "{}*?# %") == strlen(optarg) &&
            strlen(optarg) < SXE_HTTP_PATTERN_MAX) ||
           httpd_wrong("the path of the counters (--stats)", "a path such as /stats");
}

static bool
set_workers(struct httpd_options *options)
{
    cpu_set_t cpus;

    if (strcmp(optarg, "auto") != 0)
        return set_number_option("the number of workers (-w)", 1, SXE_WORKERS_MAX,
                                 &options->workers);
    CPU_ZERO(&cpus);
    /* sched_getaffinity fails if there are more CPUs than the set holds: then use one worker */
    CPU_SET(0, &cpus);
    (void)!sched_getaffinity(0, sizeof(cpus), &cpus);
    options->workers =
        CPU_COUNT(&cpus) < SXE_WORKERS_MAX ? (unsigned)CPU_COUNT(&cpus) : SXE_WORKERS_MAX;
    return true;
}

/* ---- Options ---- */

/* Store an option of listeners, or an option that puts text into replies. */
static bool
take_place_option(struct httpd_options *options, int val)
{
    options->is_port_given |= val == 'i' || val == 'p' || val == UNIX;
    options->is_place_given |= options->is_port_given || val == LISTEN || val == FASTCGI;
    switch (val) {
    case 'i':
        options->ip = optarg;
        return httpd_is_address(optarg);
    case 'p':
        return small_number("the port (-p)", 0, 65535, &options->port);
    case UNIX:
        return httpd_set_unix_path(options);
    case LISTEN:
        return httpd_add_place(options);
    case FASTCGI:
        return httpd_set_fastcgi(options);
    case SOCKET_MODE:
        return httpd_set_socket_mode(options);
    case PROXY_FROM:
        options->http.proxies = &options->proxies;
        return add_networks(&options->proxies, "the proxies' network (--proxy-from)");
    case TRUST_FROM:
        options->http.trusted = &options->trusted;
        return add_networks(&options->trusted, "the trusted network (--trust-from)");
    case FORWARDED:
        return httpd_set_forwarded(options);
    case REQUEST_ID:
        return set_request_id(options);
    case TRACE_CONTEXT:
        options->http.trace = true;
        break;
    case ACCESS_LOG:
        options->access_log = optarg;
        break;
    case LOG_FORMAT:
        return httpd_set_log_format(options);
    case LOG_SAMPLE:
        return httpd_set_log_sample(options);
    case LOG_SLOW:
        options->is_slow_given = true;
        return set_duration("the time of a slow request (--access-log-slow)", 1,
                            &options->access_log_slow_ms);
    case STATS:
        return set_stats_path(options);
    case STATS_FROM:
        return add_networks(&options->stats_from,
                            "the network that may see the counters (--stats-from)");
    case 'w':
        return set_workers(options);
    case HANG_TIMEOUT:
        options->is_hang_given = true;
        return set_duration("the time of a hang (--hang-timeout)", 0, &options->hang_timeout_ms);
    case ADMIN:
        return admin_take_place(options, optarg) ||
               httpd_wrong("the address of the status (--admin)",
                           "a port, IP:PORT, or the path of a unix socket, with a slash in it");
    default:
        options->plan = true;
        break;
    }
    return true;
}

static bool
take_files(struct httpd_options *options, int val)
{
    switch (val) {
    case 'r':
        options->files.root = optarg;
        break;
    case LISTING:
        options->files.listing = true;
        break;
    case PROXY:
        return httpd_add_proxy(options);
    case INDEX:
        return httpd_add_index(options);
    case TYPE:
        return httpd_add_type(options);
    case DOT_FILES:
        options->files.dot_files = true;
        break;
    case SNIFF:
        options->files.sniff = true;
        break;
    case CACHE_CONTROL:
        return httpd_set_cache_control(options);
    case RANGES_MAX:
        return set_ranges(options);
    case ERROR_PAGE:
        return error_pages_add(&options->error_pages, optarg) ||
               httpd_wrong("an error page (--error-page)",
                           "statuses from 400 to 599 and a file, such as '404 404.html'");
    default:
        return httpd_add_field(options);
    }
    return true;
}

static bool
set_memory(struct httpd_options *options)
{
    uint32_t memory;
    bool is_good = set_size_option("the script's memory (--lua-memory)", MIB, 4095 * MIB, &memory);

    options->lua.memory_max = memory;
    return is_good;
}

static bool
take_script(struct httpd_options *options, int val)
{
    struct sxe_lua_config *lua = &options->lua;

    options->is_script_described |= val != LUA;
    switch (val) {
    case LUA:
        options->script = optarg;
        break;
    case DEV:
        lua->is_dev = true;
        break;
    case REPL:
        options->is_repl = true;
        break;
    case LUA_MEMORY:
        return set_memory(options);
    case LUA_CPU:
        return set_duration("the script's time (--lua-cpu)", 1, &lua->cpu_ms);
    case LUA_TASKS:
        return set_number_option("the number of tasks (--lua-tasks)", 1, TASKS_MAX, &lua->tasks);
    case LUA_SOCKETS:
        return set_number_option("the number of sockets (--lua-sockets)", 1, CONNECTIONS_MAX,
                                 &lua->sockets);
    case LUA_COVERAGE:
        options->lua_coverage = optarg;
        break;
    case LUA_SANDBOX:
        lua->is_sandbox = true;
        break;
    default:
        lua->is_loose = val == LOOSE;
        break;
    }
    return true;
}

static bool
take_limit(struct httpd_options *options, int val)
{
    struct sxe_http_config *http = &options->http;
    uint32_t bytes = 0;
    bool is_good;

    switch (val) {
    case 'c':
        return set_number_option("the number of connections (-c)", 1, CONNECTIONS_MAX,
                                 &http->connections);
    case ADDRESS_MAX:
        is_good = set_number_option("the connections of an address (--connections-per-address)", 0,
                                    CONNECTIONS_MAX, &http->address_max);
        http->address_max = http->address_max == 0 ? UINT32_MAX : http->address_max;
        return is_good;
    case REQUESTS_MAX:
        return set_number_option("the requests of a connection (--requests)", 1, UINT32_MAX,
                                 &http->requests_max);
    case LINE_MAX_BYTES:
        return small_size("the request line's size (--max-line)", 64, HEAD_MOST,
                          &http->head.line_max);
    case HEAD_MAX:
        return small_size("the head's size (--max-header)", 256, HEAD_MOST, &http->head.head_max);
    case FIELDS_MAX:
        return small_number("the number of fields (--max-fields)", 1, 255, &http->head.fields_max);
    case BODY_MEMORY:
        is_good =
            set_size_option("the memory of all bodies (--body-memory)", 1, UINT32_MAX, &bytes);
        http->body_memory_max = bytes;
        return is_good;
    case HALF_CLOSE:
        http->half_close = true;
        return true;
    default:
        return set_size_option("the body's size (--max-body)", 1, 1024 * MIB, &http->body_max);
    }
}

static bool
take_timeout_option(struct httpd_options *options, int val)
{
    struct sxe_http_config *http = &options->http;

    switch (val) {
    case HEADER_TIMEOUT:
        return set_duration("the time for a head (--header-timeout)", 1, &http->head_timeout_ms);
    case BODY_TIMEOUT:
        return set_duration("the time for a body (--body-timeout)", 1, &http->body_timeout_ms);
    case BODY_RATE:
        return set_size_option("the rate of a body (--body-rate)", 1, 1024 * MIB,
                               &http->body_rate_min);
    case IDLE_TIMEOUT:
        return set_duration("the time between requests (--idle-timeout)", 1,
                            &http->idle_timeout_ms);
    case STALL_TIMEOUT:
        return set_duration("the time of a stall (--stall-timeout)", 1, &options->stall_timeout_ms);
    default:
        return set_duration("the time for the end (--stop-timeout)", 1, &options->stop_timeout_ms);
    }
}

static bool
take_config(struct httpd_options *options, int val)
{
    if (val == CONFIG)
        options->config.file = optarg;
    else if (val == CHECK)
        options->config.check = true;
    else
        options->config.print = true;
    return true;
}

static bool
is_among(int val, int first, int last)
{
    return val >= first && val <= last;
}

int
httpd_take_option(void *settings, int val)
{
    bool is_good;

    if (val == COMMAND_LINE_WORD)
        is_good = httpd_refuse_word(optarg);
    else if (val == 'r' || is_among(val, LISTING, HEADER))
        is_good = take_files(settings, val);
    else if (is_among(val, LUA, REPL))
        is_good = take_script(settings, val);
    else if (val == 'c' || is_among(val, REQUESTS_MAX, BODY_MAX))
        is_good = take_limit(settings, val);
    else if (is_among(val, BODY_RATE, STOP_TIMEOUT))
        is_good = take_timeout_option(settings, val);
    else if (is_among(val, CONFIG, PRINT_CONFIG))
        is_good = take_config(settings, val);
    else if (val == AS_USER)
        is_good = httpd_set_user(settings);
    else if (val == CHROOT)
        is_good = httpd_set_chroot(settings);
    else if (val == CONFINE)
        is_good = httpd_set_confined(settings);
    else if (is_among(val, TLS_CERT, TLS_DEV))
        is_good = httpd_take_tls(settings, val);
    else
        is_good = take_place_option(settings, val);
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

/* ---- The whole command line ---- */

/* Store the arguments of the script, which are those after "--". The script's path is put into the
 * word before them. */
static bool
take_arguments(struct httpd_options *options, int argc, char **argv)
{
    if (options->script == NULL)
        return optind == argc || httpd_refuse_word(argv[optind]);
    options->lua.argv = argv + optind - 1;
    options->lua.argv[0] = (char *)(uintptr_t)options->script;
    options->lua.argc = argc - optind + 1;
    return true;
}

int
httpd_options_parse(struct httpd_options *options, int argc, char **argv)
{
    int status;

    *options = (struct httpd_options){
        .ip = "127.0.0.1",
        .admin_ip = "127.0.0.1",
        .port = 8000,
        .stall_timeout_ms = 30000,
        .hang_timeout_ms = 10000,
        .stop_timeout_ms = 5000,
        .access_log_slow_ms = 1000,
    };
    httpd_begin_log_format(options);
    config_begin(&httpd_line);
    status = command_line_parse(&httpd_line, options, argc, argv);
    if (status == COMMAND_LINE_GO_ON)
        status = config_read(&options->config, options);
    if (status != COMMAND_LINE_GO_ON)
        return status;
    if (!httpd_is_complete(options) || !httpd_has_distinct_places(options) ||
        !httpd_fit_line(&options->http.head) || !httpd_add_hsts(options) ||
        !take_arguments(options, argc, argv) || !option_routes_are_good(options))
        return COMMAND_LINE_WRONG;
    httpd_settle_redirect(options);
    first_steps_choose(options);
    if (options->lua.memory_max == 0)
        options->lua.memory_max = options->lua.is_sandbox ? 32 * MIB : 256 * MIB;
    if (options->stats_from.number == 0 && !options->stats_from.has_unix)
        (void)!sxe_cidr_add(&options->stats_from, "127.0.0.0/8,::1,unix", NULL);
    return COMMAND_LINE_GO_ON;
}
