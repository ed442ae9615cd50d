/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "command-line.h"

#define CONNECTIONS_MAX 10000000ul
#define DAY_MS          (24ul * 60 * 60 * 1000)
#define MIB             (1024ul * 1024)

enum {
    UNIX = COMMAND_LINE_LONG,
    PROXY_FROM,
    LISTING,
    INDEX,
    CACHE_CONTROL,
    TYPE,
    DOT_FILES,
    HEADER,
    ACCESS_LOG,
    LOG_FORMAT,
    REQUESTS_MAX,
    ADDRESS_MAX,
    LINE_MAX_BYTES,
    HEAD_MAX,
    FIELDS_MAX,
    BODY_MAX,
    BODY_RATE,
    HEADER_TIMEOUT,
    BODY_TIMEOUT,
    IDLE_TIMEOUT,
    STALL_TIMEOUT,
    PLAN
};

static int take(void *settings, int val);

static const struct command_option table[] = {
    COMMAND_LINE_GROUP("Where it listens"),
    {{"ip", required_argument, NULL, 'i'}, "IP", "address, IPv4 or IPv6 (127.0.0.1)"},
    {{"port", required_argument, NULL, 'p'}, "PORT", "port; 0: any free one (8000)"},
    {{"unix", required_argument, NULL, UNIX}, "PATH", "on a unix socket, too"},
    {{"proxy-from", required_argument, NULL, PROXY_FROM},
     "NETS",
     "whose connections begin with a PROXY header: 10.0.0.0/8,::1,unix"},
    COMMAND_LINE_GROUP("What it serves"),
    {{"root", required_argument, NULL, 'r'},
     "DIR",
     "the files below DIR; without: \"Hello, World!\""},
    {{"listing", no_argument, NULL, LISTING}, "", "list directories that have no index"},
    {{"index", required_argument, NULL, INDEX},
     "NAME",
     "served for a directory; repeatable (index.html)"},
    {{"dot-files", no_argument, NULL, DOT_FILES}, "", "serve files whose names begin with a dot"},
    {{"type", required_argument, NULL, TYPE},
     "'TYPE EXT'",
     "a content type: 'text/markdown md'; repeatable"},
    {{"cache-control", required_argument, NULL, CACHE_CONTROL},
     "VALUE",
     "Cache-Control of files: 'max-age=3600'"},
    {{"header", required_argument, NULL, HEADER}, "'K: V'", "add this to every reply; repeatable"},
    COMMAND_LINE_GROUP("What it says"),
    {{"access-log", required_argument, NULL, ACCESS_LOG}, "FILE", "a line a request; -: stdout"},
    {{"log-format", required_argument, NULL, LOG_FORMAT},
     "FORMAT",
     "common, combined or json (combined)"},
    COMMAND_LINE_GROUP("Limits (sizes: 64k, 1m; what is more is refused)"),
    {{"connections", required_argument, NULL, 'c'}, "N", "open at once; more wait (10000)"},
    {{"connections-per-address", required_argument, NULL, ADDRESS_MAX},
     "N",
     "of one client, but this machine; 0: any (1000)"},
    {{"requests", required_argument, NULL, REQUESTS_MAX},
     "N",
     "of a connection, then it is closed (1000000)"},
    {{"max-line", required_argument, NULL, LINE_MAX_BYTES}, "SIZE", "request line (8k)"},
    {{"max-header", required_argument, NULL, HEAD_MAX}, "SIZE", "all of a head (16k)"},
    {{"max-fields", required_argument, NULL, FIELDS_MAX}, "N", "header fields (100)"},
    {{"max-body", required_argument, NULL, BODY_MAX}, "SIZE", "body of a request (1m)"},
    COMMAND_LINE_GROUP("Time (seconds, or 500ms, 2m; who takes longer is closed)"),
    {{"header-timeout", required_argument, NULL, HEADER_TIMEOUT},
     "TIME",
     "from a head's first byte to its last (10)"},
    {{"body-timeout", required_argument, NULL, BODY_TIMEOUT},
     "TIME",
     "in each of which a body makes progress (10)"},
    {{"body-rate", required_argument, NULL, BODY_RATE}, "SIZE", "a second that is progress (500)"},
    {{"idle-timeout", required_argument, NULL, IDLE_TIMEOUT}, "TIME", "between requests (60)"},
    {{"stall-timeout", required_argument, NULL, STALL_TIMEOUT},
     "TIME",
     "without the client reading its reply (30)"},
    COMMAND_LINE_GROUP("About"),
    {{"plan", no_argument, NULL, PLAN}, "", "print the memory that would be reserved, and exit"},
    COMMAND_LINE_HELP,
    COMMAND_LINE_VERSION,
};

static const struct command_line line = {
    .program = "sxe-httpd",
    .summary = "A web server. Serves files, or says \"Hello, World!\".",
    .examples =
        {
            {"-r public", "the files below public, on http://127.0.0.1:8000/"},
            {"-i :: -p 80 -r /srv/www --access-log -", "on all addresses, with a log"},
            {"-r . --listing --header 'Cache-Control: no-store'", "while developing"},
        },
    .closing =
        "SIGTERM and SIGINT: finish what was begun, then end. SIGHUP: open the access log again.",
    .options = table,
    .number = sizeof(table) / sizeof(table[0]),
    .take = take,
};

/* ---- Values ---- */

static bool
wrong(const char *what, const char *must)
{
    fprintf(stderr, "sxe-httpd: %s is '%s'; it must be %s. Try --help.\n", what, optarg, must);
    return false;
}

static bool
is_address(const char *ip)
{
    struct sockaddr_storage any;

    return inet_pton(AF_INET, ip, &any) == 1 || inet_pton(AF_INET6, ip, &any) == 1 ||
           wrong("the address (-i)", "IPv4 or IPv6");
}

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
small_size(const char *what, unsigned long min, unsigned long max, uint16_t *value)
{
    uint32_t taken = 0;
    bool is_good = size(what, min, max, &taken);

    *value = (uint16_t)taken;
    return is_good;
}

static bool
duration(const char *what, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_duration(&line, what, 1, DAY_MS, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

static bool
is_token_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* "Name: value" of RFC 9110, 5.5, and not one that the library sends. */
static bool
is_field(const char *text)
{
    static const char *const reserved[] = {
        "Connection:", "Content-Length:", "Date:", "Trailer:", "Transfer-Encoding:"};
    const char *p = text;

    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strncasecmp(text, reserved[i], strlen(reserved[i])) == 0)
            return false;
    }
    while (is_token_byte(*p))
        p++;
    if (p == text || *p != ':')
        return false;
    for (; *p != '\0'; p++) {
        if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
            return false;
    }
    return true;
}

static bool
add_field(struct httpd_options *options)
{
    size_t used = strlen(options->fields);

    if (!is_field(optarg))
        return wrong("a header (--header)",
                     "'Name: value', and not one that says where a reply ends");
    if (used + strlen(optarg) + 3 > sizeof(options->fields))
        return wrong("a header (--header)", "shorter: all of them have 4 KiB");
    snprintf(options->fields + used, sizeof(options->fields) - used, "%s\r\n", optarg);
    options->http.fields = options->fields;
    return true;
}

static bool
add_type(struct httpd_options *options)
{
    size_t used = strlen(options->types);

    if (strchr(optarg, '/') == NULL || strchr(optarg, ' ') == NULL || strchr(optarg, '\n') != NULL)
        return wrong("a content type (--type)", "'type/subtype extension', as in mime.types");
    if (used + strlen(optarg) + 2 > sizeof(options->types))
        return wrong("a content type (--type)", "shorter: all of them have 4 KiB");
    snprintf(options->types + used, sizeof(options->types) - used, "%s\n", optarg);
    options->files.types = options->types;
    return true;
}

static bool
add_index(struct httpd_options *options)
{
    unsigned number = 0;

    while (options->index[number] != NULL)
        number++;
    if (number == HTTPD_INDEX_MAX || *optarg == '\0' || strchr(optarg, '/') != NULL)
        return wrong("an index (--index)",
                     "the name of a file, without a slash; at most 8 of them");
    options->index[number] = optarg;
    options->files.index = options->index;
    return true;
}

static bool
add_proxies(struct httpd_options *options)
{
    if (sxe_cidr_add(&options->proxies, optarg, NULL) < 0)
        return wrong("the proxies' network (--proxy-from)",
                     "addresses, networks such as 10.0.0.0/8, or unix, with commas between them");
    options->http.proxies = &options->proxies;
    return true;
}

static bool
log_format(enum access_log_format *format)
{
    static const char *const names[] = {"common", "combined", "json"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(optarg, names[i]) == 0) {
            *format = (enum access_log_format)i;
            return true;
        }
    }
    return wrong("the access log's format (--log-format)", "common, combined or json");
}

/* ---- Options ---- */

/* Where it listens, and what it says. */
static bool
take_place(struct httpd_options *options, int val)
{
    uint32_t port = 0;
    bool is_good = true;

    switch (val) {
    case 'i':
        options->ip = optarg;
        return is_address(optarg);
    case 'p':
        is_good = number("the port (-p)", 0, 65535, &port);
        options->port = (unsigned short)port;
        break;
    case UNIX:
        options->unix_path = optarg;
        break;
    case PROXY_FROM:
        return add_proxies(options);
    case ACCESS_LOG:
        options->access_log = optarg;
        break;
    case LOG_FORMAT:
        return log_format(&options->access_log_format);
    default:
        options->plan = true;
        break;
    }
    return is_good;
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
        return add_index(options);
    case TYPE:
        return add_type(options);
    case DOT_FILES:
        options->files.dot_files = true;
        break;
    case CACHE_CONTROL:
        options->files.cache_control = optarg;
        break;
    default:
        return add_field(options);
    }
    return true;
}

static bool
take_limit(struct httpd_options *options, int val)
{
    struct sxe_http_config *http = &options->http;
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
        return small_size("the request line's size (--max-line)", 64, 16384, &http->head.line_max);
    case HEAD_MAX:
        return small_size("the head's size (--max-header)", 256, 16384, &http->head.head_max);
    case FIELDS_MAX:
        return small_size("the number of fields (--max-fields)", 1, 255, &http->head.fields_max);
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
        return duration("the time for a head (--header-timeout)", &http->head_timeout_ms);
    case BODY_TIMEOUT:
        return duration("the time for a body (--body-timeout)", &http->body_timeout_ms);
    case BODY_RATE:
        return size("the rate of a body (--body-rate)", 1, 1024 * MIB, &http->body_rate_min);
    case IDLE_TIMEOUT:
        return duration("the time between requests (--idle-timeout)", &http->idle_timeout_ms);
    default:
        return duration("the time of a stall (--stall-timeout)", &options->stall_timeout_ms);
    }
}

static int
take(void *settings, int val)
{
    bool is_good;

    switch (val) {
    case 'r':
    case LISTING:
    case INDEX:
    case DOT_FILES:
    case TYPE:
    case CACHE_CONTROL:
    case HEADER:
        is_good = take_files(settings, val);
        break;
    case 'c':
    case ADDRESS_MAX:
    case REQUESTS_MAX:
    case LINE_MAX_BYTES:
    case HEAD_MAX:
    case FIELDS_MAX:
    case BODY_MAX:
        is_good = take_limit(settings, val);
        break;
    case HEADER_TIMEOUT:
    case BODY_TIMEOUT:
    case BODY_RATE:
    case IDLE_TIMEOUT:
    case STALL_TIMEOUT:
        is_good = take_time(settings, val);
        break;
    default:
        is_good = take_place(settings, val);
        break;
    }
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

int
httpd_options_parse(struct httpd_options *options, int argc, char **argv)
{
    *options = (struct httpd_options){
        .ip = "127.0.0.1",
        .port = 8000,
        .stall_timeout_ms = 30000,
        .access_log_format = ACCESS_LOG_COMBINED,
    };
    return command_line_parse(&line, options, argc, argv);
}
