/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "command-line.h"
#include "sxe-http-list.h"

#define CONNECTIONS_MAX 10000000ul
#define DAY_MS          (24ul * 60 * 60 * 1000)
#define MIB             (1024ul * 1024)
#define HEAD_MOST       61440 /* bytes of a head; offsets in it have 16 bits */
#define TYPE_LENGTH_MAX 127   /* of a content type; RFC 6838, 4.2 */
#define UNIX_PATH_MAX   107

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
    STOP_TIMEOUT,
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
     "who begins with a PROXY header: 10.0.0.0/8,::1,unix"},
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
    {{"access-log", required_argument, NULL, ACCESS_LOG},
     "FILE",
     "a line a request; -: standard output"},
    {{"log-format", required_argument, NULL, LOG_FORMAT},
     "FORMAT",
     "common, combined or json (combined)"},
    COMMAND_LINE_GROUP("Limits (sizes: 64k, 1m; what is more is refused)"),
    {{"connections", required_argument, NULL, 'c'},
     "N",
     "open at once; then idle ones make way (10000)"},
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
    {{"stop-timeout", required_argument, NULL, STOP_TIMEOUT},
     "TIME",
     "for what is under way when it is told to end (5)"},
    COMMAND_LINE_GROUP("About"),
    {{"plan", no_argument, NULL, PLAN}, "", "print the memory that would be reserved, and exit"},
    COMMAND_LINE_ABOUT("print all options, and exit"),
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
    .closing = "SIGTERM, SIGINT: finish what is under way, then end; again: end now.\n"
               "SIGHUP, SIGUSR1: open the access log again, after it was renamed.",
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
duration(const char *what, uint32_t *value)
{
    unsigned long taken = 0;
    bool is_good = command_line_duration(&line, what, 1, DAY_MS, &taken);

    *value = (uint32_t)taken;
    return is_good;
}

/* What a field's value can have: RFC 9110, 5.5. */
static bool
is_value(const char *text)
{
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    }
    return true;
}

/* "Name: value", and not one that replies have already. */
static bool
is_field(const char *text)
{
    static const char *const reserved[] = {"Accept-Ranges",
                                           "Connection",
                                           "Content-Encoding",
                                           "Content-Length",
                                           "Content-Range",
                                           "Content-Type",
                                           "Date",
                                           "ETag",
                                           "Keep-Alive",
                                           "Last-Modified",
                                           "Location",
                                           "Trailer",
                                           "Transfer-Encoding",
                                           "Upgrade"};
    size_t length = strcspn(text, ":");

    if (text[length] == '\0' || !sxe_http_is_token((struct sxe_span){text, length}))
        return false;
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strlen(reserved[i]) == length && strncasecmp(text, reserved[i], length) == 0)
            return false;
    }
    return is_value(text + length);
}

static bool
add_field(struct httpd_options *options)
{
    size_t used = strlen(options->fields);

    if (!is_field(optarg))
        return wrong("a header (--header)",
                     "'Name: value', and not one of those that a reply has anyway");
    if (used + strlen(optarg) + 3 > sizeof(options->fields))
        return wrong("a header (--header)", "shorter: all of them have 4 KiB");
    snprintf(options->fields + used, sizeof(options->fields) - used, "%s\r\n", optarg);
    options->http.fields = options->fields;
    return true;
}

/* A line as of mime.types: "text/markdown md mkd". */
static bool
is_type(const char *text)
{
    size_t length = strcspn(text, " ");
    size_t slash = strcspn(text, "/");

    for (const char *p = text; *p != '\0'; p++) {
        if (*p < ' ' || *p > '~' || *p == '#')
            return false;
    }
    return slash > 0 && slash + 1 < length && length <= TYPE_LENGTH_MAX &&
           text[length + strspn(text + length, " ")] != '\0';
}

static bool
add_type(struct httpd_options *options)
{
    size_t used = strlen(options->types);

    if (!is_type(optarg))
        return wrong("a content type (--type)", "'type/subtype extension', as in mime.types");
    if (used + strlen(optarg) + 2 > sizeof(options->types))
        return wrong("a content type (--type)", "shorter: all of them have 4 KiB");
    snprintf(options->types + used, sizeof(options->types) - used, "%s\n", optarg);
    options->files.types = options->types;
    return true;
}

static bool
is_file_name(const char *name)
{
    return *name != '\0' && strlen(name) <= NAME_MAX && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool
add_index(struct httpd_options *options)
{
    unsigned number = 0;

    while (options->index[number] != NULL)
        number++;
    if (number == HTTPD_INDEX_MAX || !is_file_name(optarg))
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
set_cache_control(struct httpd_options *options)
{
    options->files.cache_control = optarg;
    return is_value(optarg) ||
           wrong("Cache-Control (--cache-control)", "the value of a header, without line ends");
}

static bool
set_unix_path(struct httpd_options *options)
{
    options->unix_path = optarg;
    return (*optarg != '\0' && strlen(optarg) <= UNIX_PATH_MAX) ||
           wrong("the path of the unix socket (--unix)", "1 to 107 bytes long");
}

static bool
log_format(struct httpd_options *options)
{
    static const char *const names[] = {"common", "combined", "json"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(optarg, names[i]) == 0) {
            options->access_log_format = (enum access_log_format)i;
            options->access_log_format_given = true;
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
    switch (val) {
    case 'i':
        options->ip = optarg;
        return is_address(optarg);
    case 'p':
        return small_number("the port (-p)", 0, 65535, &options->port);
    case UNIX:
        return set_unix_path(options);
    case PROXY_FROM:
        return add_proxies(options);
    case ACCESS_LOG:
        options->access_log = optarg;
        break;
    case LOG_FORMAT:
        return log_format(options);
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
        return add_index(options);
    case TYPE:
        return add_type(options);
    case DOT_FILES:
        options->files.dot_files = true;
        break;
    case CACHE_CONTROL:
        return set_cache_control(options);
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
        return small_size("the request line's size (--max-line)", 64, HEAD_MOST,
                          &http->head.line_max);
    case HEAD_MAX:
        return small_size("the head's size (--max-header)", 256, HEAD_MOST, &http->head.head_max);
    case FIELDS_MAX:
        return small_number("the number of fields (--max-fields)", 1, 255, &http->head.fields_max);
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
    case STALL_TIMEOUT:
        return duration("the time of a stall (--stall-timeout)", &options->stall_timeout_ms);
    default:
        return duration("the time for the end (--stop-timeout)", &options->stop_timeout_ms);
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
    case STOP_TIMEOUT:
        is_good = take_time(settings, val);
        break;
    default:
        is_good = take_place(settings, val);
        break;
    }
    return is_good ? COMMAND_LINE_GO_ON : COMMAND_LINE_WRONG;
}

/* ---- All together ---- */

/* What is said of files, but not which; what is said of a log that there is not. */
static bool
is_complete(const struct httpd_options *options)
{
    const struct sxe_http_files_config *files = &options->files;
    const char *missing = NULL;

    if (files->root == NULL && (files->listing || files->index != NULL || files->dot_files ||
                                files->types != NULL || files->cache_control != NULL))
        missing = "files are described, but not where they are: say -r DIR";
    else if (options->access_log == NULL && options->access_log_format_given)
        missing = "--log-format is there, but no log: say --access-log FILE";
    if (missing == NULL)
        return true;
    fprintf(stderr, "sxe-httpd: %s. Try --help.\n", missing);
    return false;
}

/* A request line is a part of the head. */
static bool
fit_line(struct sxe_http_limits *head)
{
    static const struct sxe_http_limits usual = SXE_HTTP_LIMITS;

    if (head->head_max == 0)
        head->head_max = usual.head_max;
    if (head->line_max == 0)
        head->line_max = usual.line_max < head->head_max ? usual.line_max : head->head_max;
    if (head->line_max <= head->head_max)
        return true;
    fprintf(stderr,
            "sxe-httpd: a request line of %u bytes (--max-line) does not fit into a head of %u "
            "(--max-header). Try --help.\n",
            head->line_max, head->head_max);
    return false;
}

int
httpd_options_parse(struct httpd_options *options, int argc, char **argv)
{
    int status;

    *options = (struct httpd_options){
        .ip = "127.0.0.1",
        .port = 8000,
        .stall_timeout_ms = 30000,
        .stop_timeout_ms = 5000,
        .access_log_format = ACCESS_LOG_COMBINED,
    };
    status = command_line_parse(&line, options, argc, argv);
    if (status != COMMAND_LINE_GO_ON)
        return status;
    if (!is_complete(options) || !fit_line(&options->http.head))
        return COMMAND_LINE_WRONG;
    return COMMAND_LINE_GO_ON;
}
