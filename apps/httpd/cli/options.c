/* SPDX-License-Identifier: MIT
 *
 * The table of sxe-httpd's options, and the functions that store their values.
 */
#include "options.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "command-line.h"
#include "options-check.h"
#include "sxe-http-list.h"
#include "worker-place.h"

#define CONNECTIONS_MAX 10000000ul
#define TASKS_MAX       1000000ul
#define DAY_MS          (24ul * 60 * 60 * 1000)
#define MIB             (1024ul * 1024)
#define HEAD_MOST       61440 /* bytes of a head, whose offsets have 16 bits */

/* In the order of the functions that handle them. */
enum {
    UNIX = COMMAND_LINE_LONG,
    SOCKET_MODE,
    PROXY_FROM,
    LISTING,
    INDEX,
    CACHE_CONTROL,
    TYPE,
    DOT_FILES,
    SNIFF,
    RANGES_MAX,
    HEADER,
    ACCESS_LOG,
    LOG_FORMAT,
    STATS,
    STATS_FROM,
    HANG_TIMEOUT,
    LUA,
    DEV,
    LUA_MEMORY,
    LUA_CPU,
    LUA_TASKS,
    LUA_SOCKETS,
    LUA_COVERAGE,
    LUA_SANDBOX,
    STRICT,
    LOOSE,
    REPL,
    REQUESTS_MAX,
    ADDRESS_MAX,
    LINE_MAX_BYTES,
    HEAD_MAX,
    FIELDS_MAX,
    BODY_MEMORY,
    HALF_CLOSE,
    BODY_MAX,
    BODY_RATE,
    HEADER_TIMEOUT,
    BODY_TIMEOUT,
    IDLE_TIMEOUT,
    STALL_TIMEOUT,
    STOP_TIMEOUT,
    PLAN,
    CONFIG,
    CHECK,
    PRINT_CONFIG
};

static int take(void *settings, int val);

static const struct command_option table[] = {
    COMMAND_LINE_GROUP("Where it listens"),
    {{"ip", required_argument, NULL, 'i'},
     "IP",
     "listen on this address, IPv4 or IPv6 (127.0.0.1)"},
    {{"port", required_argument, NULL, 'p'}, "PORT", "listen on this port; 0: any free one (8000)"},
    {{"unix", required_argument, NULL, UNIX}, "PATH", "also listen on a unix socket"},
    {{"socket-mode", required_argument, NULL, SOCKET_MODE},
     "MODE",
     "set the socket's permissions, octal (from umask)"},
    {{"proxy-from", required_argument, NULL, PROXY_FROM},
     "NETS",
     "expect a PROXY header from: 10.0.0.0/8,::1,unix"},
    COMMAND_LINE_GROUP("What it serves"),
    {{"root", required_argument, NULL, 'r'},
     "DIR",
     "serve the files below DIR; without: \"Hello, World!\""},
    {{"listing", no_argument, NULL, LISTING}, "", "list directories that have no index"},
    {{"index", required_argument, NULL, INDEX},
     "NAME",
     "serve this file for a directory; repeatable (index.html)"},
    {{"sniff", no_argument, NULL, SNIFF}, "", "send files without X-Content-Type-Options: nosniff"},
    {{"dot-files", no_argument, NULL, DOT_FILES}, "", "serve files whose names begin with a dot"},
    {{"type", required_argument, NULL, TYPE},
     "'TYPE EXT'",
     "add a content type: 'text/markdown md'; repeatable"},
    {{"cache-control", required_argument, NULL, CACHE_CONTROL},
     "VALUE",
     "send this Cache-Control with files: 'max-age=3600'"},
    {{"max-ranges", required_argument, NULL, RANGES_MAX},
     "N",
     "send all of a file for more ranges; 0: no ranges (16)"},
    {{"header", required_argument, NULL, HEADER}, "'K: V'", "add this to every reply; repeatable"},
    COMMAND_LINE_GROUP("Scripts (arguments after -- go to the script)"),
    {{"lua", required_argument, NULL, LUA},
     "FILE",
     "answer with this script; SIGHUP loads it again"},
    {{"dev", no_argument, NULL, DEV}, "", "load it again when it changes; show errors in replies"},
    {{"repl", no_argument, NULL, REPL},
     "",
     "open a shell in it at the terminal; turns reloading off"},
    {{"lua-memory", required_argument, NULL, LUA_MEMORY}, "SIZE", "limit its memory (256m)"},
    {{"lua-cpu", required_argument, NULL, LUA_CPU},
     "TIME",
     "limit its computing between two waits (1)"},
    {{"lua-tasks", required_argument, NULL, LUA_TASKS},
     "N",
     "limit its tasks, one for each waiting request (16384)"},
    {{"lua-sockets", required_argument, NULL, LUA_SOCKETS},
     "N",
     "limit the connections that it opens (64)"},
    {{"lua-coverage", required_argument, NULL, LUA_COVERAGE},
     "FILE",
     "add the lines that ran to FILE, for lcov"},
    {{"lua-sandbox", no_argument, NULL, LUA_SANDBOX},
     "",
     "do not trust it: no files, sockets, processes; 32m"},
    {{"strict", no_argument, NULL, STRICT},
     "",
     "allow new globals only while it loads (the default)"},
    {{"loose", no_argument, NULL, LOOSE}, "", "allow new globals at any time"},
    COMMAND_LINE_GROUP("Processes"),
    {{"workers", required_argument, NULL, 'w'},
     "N",
     "serve with N processes; auto: one a CPU (one, no -w)"},
    {{"hang-timeout", required_argument, NULL, HANG_TIMEOUT},
     "TIME",
     "replace a process whose loop is blocked; 0: never (10)"},
    COMMAND_LINE_GROUP("Logs and counters"),
    {{"access-log", required_argument, NULL, ACCESS_LOG},
     "FILE",
     "write a line for each request; -: standard output"},
    {{"log-format", required_argument, NULL, LOG_FORMAT},
     "FORMAT",
     "common, combined or json (combined)"},
    {{"stats", required_argument, NULL, STATS}, "PATH", "serve counters at PATH, as JSON"},
    {{"stats-from", required_argument, NULL, STATS_FROM},
     "NETS",
     "serve them to these (127.0.0.0/8,::1,unix)"},
    COMMAND_LINE_GROUP("Limits (sizes: 64k, 1m; larger requests are refused)"),
    {{"connections", required_argument, NULL, 'c'},
     "N",
     "connections open at once; then idle ones close (10000)"},
    {{"connections-per-address", required_argument, NULL, ADDRESS_MAX},
     "N",
     "connections of one client; 0: no limit (1000)"},
    {{"requests", required_argument, NULL, REQUESTS_MAX},
     "N",
     "requests on a connection, then it closes (1000000)"},
    {{"max-line", required_argument, NULL, LINE_MAX_BYTES},
     "SIZE",
     "bytes of the request line (8k)"},
    {{"max-header", required_argument, NULL, HEAD_MAX}, "SIZE", "bytes of a whole head (16k)"},
    {{"max-fields", required_argument, NULL, FIELDS_MAX}, "N", "header fields of a request (100)"},
    {{"max-body", required_argument, NULL, BODY_MAX}, "SIZE", "bytes of a request's body (1m)"},
    {{"body-memory", required_argument, NULL, BODY_MEMORY},
     "SIZE",
     "bytes of all unfinished bodies (256m)"},
    {{"half-close", no_argument, NULL, HALF_CLOSE}, "", "also answer clients that half-closed"},
    COMMAND_LINE_GROUP("Time (seconds, or 500ms, 2m; then the connection closes)"),
    {{"header-timeout", required_argument, NULL, HEADER_TIMEOUT},
     "TIME",
     "from a head's first byte to its last (10)"},
    {{"body-timeout", required_argument, NULL, BODY_TIMEOUT},
     "TIME",
     "a body must progress in each such period (10)"},
    {{"body-rate", required_argument, NULL, BODY_RATE},
     "SIZE",
     "bytes a second that count as progress (500)"},
    {{"idle-timeout", required_argument, NULL, IDLE_TIMEOUT}, "TIME", "between requests (60)"},
    {{"stall-timeout", required_argument, NULL, STALL_TIMEOUT},
     "TIME",
     "without the client reading its reply (30)"},
    {{"stop-timeout", required_argument, NULL, STOP_TIMEOUT},
     "TIME",
     "for requests in progress when it is told to end (5)"},
    COMMAND_LINE_GROUP(
        "Configuration (flags count before SXE_* variables, and these before a file)"),
    {{"config", required_argument, NULL, CONFIG},
     "FILE",
     "read options from this Lua file: return { port = 80 }"},
    {{"check", no_argument, NULL, CHECK}, "", "check all options, and exit: 0 good, 2 wrong"},
    {{"print-config", no_argument, NULL, PRINT_CONFIG},
     "",
     "print each option with its value and origin, and exit"},
    COMMAND_LINE_GROUP("About"),
    {{"plan", no_argument, NULL, PLAN}, "", "print the memory that would be reserved, and exit"},
    COMMAND_LINE_ABOUT("print all options, and exit"),
};

static const struct command_line line = {
    .program = "sxe-httpd",
    .words = "[-- ARG...]",
    .summary = "A web server. It serves files, the replies of a script, or \"Hello, World!\".",
    .examples =
        {
            {"-r public", "serve the files below public on http://127.0.0.1:8000/"},
            {"-i :: -p 80 -r /srv/www --access-log -", "listen on all addresses, write a log"},
            {"--lua app.lua --dev", "answer with app.lua; reload it when it changes"},
        },
    .closing = "SIGTERM, SIGINT: finish the requests in progress, then end; again: end now.\n"
               "SIGHUP, SIGUSR1: open the access log again, after it was renamed.\n"
               "SIGHUP: load the script again, under nohup, too.\n"
               "SIGUSR2: print counters to standard error.",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take,
    .taken = config_taken,
};

/* ---- Values ---- */

static bool
number(const char *what, unsigned long min, unsigned long max, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_number(&line, what, min, max, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

static bool
size(const char *what, unsigned long min, unsigned long max, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_size(&line, what, min, max, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

static bool
small_number(const char *what, unsigned long min, unsigned long max, uint16_t *value)
{
    uint32_t taken = 0;
    bool is_good = number(what, min, max, &taken);

    *value = (uint16_t)taken;
    return is_good;
}

static bool
small_size(const char *what, unsigned long min, unsigned long max, uint16_t *value)
{
    uint32_t taken = 0;
    bool is_good = size(what, min, max, &taken);

    *value = (uint16_t)taken;
    return is_good;
}

static bool
duration(const char *what, unsigned long min_ms, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_duration(&line, what, min_ms, DAY_MS, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

static bool
add_proxies(struct httpd_options *options)
{
    if (sxe_cidr_add(&options->proxies, optarg, NULL) < 0)
        return httpd_wrong(
            "the proxies' network (--proxy-from)",
            "addresses, networks such as 10.0.0.0/8, or unix, with commas between them");
    options->http.proxies = &options->proxies;
    return true;
}

static bool
set_ranges(struct httpd_options *options)
{
    bool is_good = number("the ranges of a request (--max-ranges)", 0, SXE_HTTP_FILES_RANGES_MOST,
                          &options->files.ranges_max);

    options->files.no_ranges = options->files.ranges_max == 0;
    return is_good;
}

static bool
add_stats_from(struct httpd_options *options)
{
    return sxe_cidr_add(&options->stats_from, optarg, NULL) == 0 ||
           httpd_wrong("who may see the counters (--stats-from)",
                       "addresses, networks such as 10.0.0.0/8, or unix, with commas between them");
}

/* The path is a router's pattern without parameters. */
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
        return number("the number of workers (-w)", 1, WORKERS_MAX, &options->workers);
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus); /* one, where more CPUs than fit in the set make the call fail */
    (void)!sched_getaffinity(0, sizeof(cpus), &cpus);
    options->workers = CPU_COUNT(&cpus) < WORKERS_MAX ? (unsigned)CPU_COUNT(&cpus) : WORKERS_MAX;
    return true;
}

/* ---- Options ---- */

/* Options of listeners, and of text in replies. */
static bool
take_place(struct httpd_options *options, int val)
{
    options->is_place_given |= val == 'i' || val == 'p' || val == UNIX;
    switch (val) {
    case 'i':
        options->ip = optarg;
        return httpd_is_address(optarg);
    case 'p':
        return small_number("the port (-p)", 0, 65535, &options->port);
    case UNIX:
        return httpd_set_unix_path(options);
    case SOCKET_MODE:
        return httpd_set_socket_mode(options);
    case PROXY_FROM:
        return add_proxies(options);
    case ACCESS_LOG:
        options->access_log = optarg;
        break;
    case LOG_FORMAT:
        return httpd_set_log_format(options);
    case STATS:
        return set_stats_path(options);
    case STATS_FROM:
        return add_stats_from(options);
    case 'w':
        return set_workers(options);
    case HANG_TIMEOUT:
        options->is_hang_given = true;
        return duration("the time of a hang (--hang-timeout)", 0, &options->hang_timeout_ms);
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
    default:
        return httpd_add_field(options);
    }
    return true;
}

static bool
set_memory(struct httpd_options *options)
{
    uint32_t memory;
    bool is_good = size("the script's memory (--lua-memory)", MIB, 4095 * MIB, &memory);

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
        return duration("the script's time (--lua-cpu)", 1, &lua->cpu_ms);
    case LUA_TASKS:
        return number("the number of tasks (--lua-tasks)", 1, TASKS_MAX, &lua->tasks);
    case LUA_SOCKETS:
        return number("the number of sockets (--lua-sockets)", 1, CONNECTIONS_MAX, &lua->sockets);
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
        return number("the number of connections (-c)", 1, CONNECTIONS_MAX, &http->connections);
    case ADDRESS_MAX:
        is_good = number("the connections of an address (--connections-per-address)", 0,
                         CONNECTIONS_MAX, &http->address_max);
        http->address_max = http->address_max == 0 ? UINT32_MAX : http->address_max;
        return is_good;
    case REQUESTS_MAX:
        return number("the requests of a connection (--requests)", 1, UINT32_MAX,
                      &http->requests_max);
    case LINE_MAX_BYTES:
        return small_size("the request line's size (--max-line)", 64, HEAD_MOST,
                          &http->head.line_max);
    case HEAD_MAX:
        return small_size("the head's size (--max-header)", 256, HEAD_MOST, &http->head.head_max);
    case FIELDS_MAX:
        return small_number("the number of fields (--max-fields)", 1, 255, &http->head.fields_max);
    case BODY_MEMORY:
        is_good = size("the memory of all bodies (--body-memory)", 1, UINT32_MAX, &bytes);
        http->body_memory_max = bytes;
        return is_good;
    case HALF_CLOSE:
        http->half_close = true;
        return true;
    default:
        return size("the body's size (--max-body)", 1, 1024 * MIB, &http->body_max);
    }
}

static bool
take_time(struct httpd_options *options, int val)
{
    struct sxe_http_config *http = &options->http;

    switch (val) {
    case HEADER_TIMEOUT:
        return duration("the time for a head (--header-timeout)", 1, &http->head_timeout_ms);
    case BODY_TIMEOUT:
        return duration("the time for a body (--body-timeout)", 1, &http->body_timeout_ms);
    case BODY_RATE:
        return size("the rate of a body (--body-rate)", 1, 1024 * MIB, &http->body_rate_min);
    case IDLE_TIMEOUT:
        return duration("the time between requests (--idle-timeout)", 1, &http->idle_timeout_ms);
    case STALL_TIMEOUT:
        return duration("the time of a stall (--stall-timeout)", 1, &options->stall_timeout_ms);
    default:
        return duration("the time for the end (--stop-timeout)", 1, &options->stop_timeout_ms);
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

static int
take(void *settings, int val)
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
        is_good = take_time(settings, val);
    else if (is_among(val, CONFIG, PRINT_CONFIG))
        is_good = take_config(settings, val);
    else
        is_good = take_place(settings, val);
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

/* ---- All together ---- */

/* The script's arguments are those after "--"; the script's path overwrites the word before. */
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
        .port = 8000,
        .stall_timeout_ms = 30000,
        .hang_timeout_ms = 10000,
        .stop_timeout_ms = 5000,
        .access_log_format = ACCESS_LOG_COMBINED,
    };
    config_begin(&line);
    status = command_line_parse(&line, options, argc, argv);
    if (status == COMMAND_LINE_GO_ON)
        status = config_read(&options->config, options);
    if (status != COMMAND_LINE_GO_ON)
        return status;
    if (!httpd_is_complete(options) || !httpd_fit_line(&options->http.head) ||
        !take_arguments(options, argc, argv))
        return COMMAND_LINE_WRONG;
    if (options->lua.memory_max == 0)
        options->lua.memory_max = options->lua.is_sandbox ? 32 * MIB : 256 * MIB;
    if (options->stats_from.number == 0 && !options->stats_from.has_unix)
        (void)!sxe_cidr_add(&options->stats_from, "127.0.0.0/8,::1,unix", NULL);
    return COMMAND_LINE_GO_ON;
}
