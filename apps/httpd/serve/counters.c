/* SPDX-License-Identifier: MIT
 *
 * Counting replies, and writing all counters as JSON and to the log.
 */
#include "counters.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "admin-metrics.h"
#include "lua-script.h"
#include "sxe-json.h"
#include "sxe-lua-stats.h"
#include "sxe-pool-shared.h"
#include "upstreams.h"

#define TEXT_SIZE (64 * 1024)
#define END_SIZE  8 /* how many bytes are kept free for the closing brackets */

/* the number of classes of a status; the class is its first digit, or 0 if no status was sent */
enum { CLASSES = 6 };

static struct {
    const struct httpd_options *options;
    unsigned load;
    SXE_TIME since_ns;
    uint64_t requests;
    uint64_t classes[CLASSES];
    uint64_t bytes;
    const struct access_log *log; /* the access log; NULL: there is none */
} stats;

void
stats_begin(const struct httpd_options *options, unsigned load)
{
    memset(&stats, 0, sizeof(stats));
    stats.options = options;
    stats.load = load;
    stats.since_ns = sxe_time_ns();
}

void
stats_watch_log(const struct access_log *log)
{
    stats.log = log;
}

/* How many lines of the program's log and of the access log could not be written. */
static uint64_t
lost_lines(void)
{
    return sxe_log_dropped() + (stats.log == NULL ? 0 : access_log_dropped(stats.log));
}

void
stats_count(const struct sxe_http_summary *summary)
{
    stats.requests++;
    stats.classes[summary->status / 100 % CLASSES]++;
    stats.bytes += summary->body_length;
}

/* Whether connections in that state are open: no state of a free or closing connection. */
static bool
is_open_state(const char *state)
{
    return strcmp(state, "FREE") != 0 && strcmp(state, "CLOSING") != 0 &&
           strcmp(state, "REFUSED") != 0;
}

/* Add the open connections if this is the pool of a server's connections. */
static void
add_open_connections(void *user, const void *array)
{
    unsigned *number = user;

    if (strcmp(sxe_pool_get_name(array), "http-connections") != 0)
        return;
    for (unsigned state = 0; state < sxe_pool_get_states(array); state++) {
        if (is_open_state(sxe_pool_state_to_string(array, state)))
            *number += sxe_pool_get_count(array, state);
    }
}

/* The open connections of clients, as the metric sxe_connections counts them. */
static unsigned
count_connections(void)
{
    unsigned number = 0;

    sxe_pool_each(add_open_connections, &number);
    return number;
}

/* ---- JSON ---- */

struct text {
    size_t used;
    unsigned groups;
    char group[32]; /* the name of the group that is open */
    bool is_full;
    char room[TEXT_SIZE];
};

static void add_json_text(struct text *text, const char *format, ...) SXE_PRINTF(2, 3);

/* Append the text. If it does not fit as a whole, append nothing, now and later. */
static void
add_json_text(struct text *text, const char *format, ...)
{
    size_t left = TEXT_SIZE - END_SIZE - text->used;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->room + text->used, left, format, arguments);
    va_end(arguments);
    text->is_full |= (size_t)length >= left;
    if (!text->is_full)
        text->used += (size_t)length;
}

static const char *
quote_name(const char *name, char *room, size_t size)
{
    size_t length = strlen(name);

    room[sxe_json_escape(room, size - 1, name, &length, SXE_JSON_UTF8)] = '\0';
    return room;
}

static void
add_counter(void *user, const char *group, const char *name, int64_t value)
{
    struct text *text = user;
    char quoted[2][256];

    quote_name(name, quoted[1], sizeof(quoted[1]));
    if (text->groups > 0 && strcmp(text->group, group) == 0) {
        add_json_text(text, ",\"%s\":%" PRId64, quoted[1], value);
        return;
    }
    add_json_text(text, "%s\"%s\":{\"%s\":%" PRId64, text->groups > 0 ? "}," : "",
                  quote_name(group, quoted[0], sizeof(quoted[0])), quoted[1], value);
    snprintf(text->group, sizeof(text->group), "%s", group);
    text->groups += !text->is_full;
}

static void
add_script_counters(struct text *text)
{
    struct sxe_lua *lua = script_state();
    size_t most;
    size_t now = sxe_lua_memory(lua, &most);

    add_json_text(text,
                  ",\"lua\":{\"memory\":%zu,\"memory_most\":%zu,\"memory_max\":%zu},\"script\":{",
                  now, most, stats.options->lua.memory_max);
    sxe_lua_each_stat(lua, add_counter, text);
    text->used +=
        (size_t)snprintf(text->room + text->used, END_SIZE, "%s}", text->groups > 0 ? "}" : "");
}

static void
add_httpd_counters(struct text *text)
{
    const uint64_t *classes = stats.classes;

    add_json_text(
        text, "{\"httpd\":{\"version\":\"" SXE_VERSION "\",\"pid\":%d,\"load\":%u,\"uptime\":%u,",
        getpid(), stats.load, (unsigned)((sxe_time_ns() - stats.since_ns) / SXE_NS_PER_SECOND));
    add_json_text(text, "\"connections\":%u,\"requests\":%" PRIu64 ",\"status\":{",
                  count_connections(), stats.requests);
    for (unsigned i = 1; i < CLASSES; i++)
        add_json_text(text, "%s\"%uxx\":%" PRIu64, i > 1 ? "," : "", i, classes[i]);
    add_json_text(
        text, "},\"unanswered\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"log_lines_lost\":%" PRIu64 "}",
        classes[0], stats.bytes, lost_lines());
}

static bool
is_allowed_client(const struct sxe_http_request *request)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNIX};

    if (sxe_http_peer(request, &peer) == 0)
        peer.ss_family = AF_UNIX;
    return sxe_cidr_match(&stats.options->stats_from, (const struct sockaddr *)&peer);
}

static enum sxe_http_verdict
reply_stats(struct sxe_http_request *request, struct sxe_http_response *response)
{
    static struct text text;

    if (!is_allowed_client(request))
        return sxe_http_reply_status(response, 403);
    text.used = 0;
    text.groups = 0;
    text.is_full = false;
    add_httpd_counters(&text);
    if (script_state() != NULL)
        add_script_counters(&text);
    text.used += (size_t)snprintf(text.room + text.used, END_SIZE / 2, "}\n");
    return sxe_http_reply(response, 200, "application/json", text.room, text.used);
}

int
stats_route(struct sxe_http_router *router, const char *path)
{
    return path == NULL ? 0 : sxe_http_router_add(router, "GET", path, reply_stats, NULL);
}

/* ---- Gauges, which are values that are not counted, in shared memory ---- */

static void
take_errors(void *user, const char *group, const char *name, int64_t value)
{
    if (strcmp(group, "http") == 0 && strcmp(name, "errors") == 0)
        *(uint64_t *)user = (uint64_t)value;
}

void
stats_publish(void)
{
    struct metrics_gauges gauges = {.lost_lines = lost_lines()};

    if (!metrics_are_on())
        return;
    if (script_state() != NULL) {
        gauges.lua_memory = sxe_lua_memory(script_state(), NULL);
        gauges.lua_memory_max = stats.options->lua.memory_max;
        sxe_lua_each_stat(script_state(), take_errors, &gauges.lua_errors);
    }
    upstreams_publish();
    metrics_publish(&gauges);
}

/* ---- The log ---- */

static void
log_counter(void *user, const char *group, const char *name, int64_t value)
{
    SXE_UNUSED_PARAMETER(user);
    SXE_INFO("stats: %s.%s %" PRId64, group, name, value);
}

void
stats_log(void)
{
    SXE_INFO("stats: httpd.load %u", stats.load);
    SXE_INFO("stats: httpd.connections %u", count_connections());
    SXE_INFO("stats: httpd.requests %" PRIu64, stats.requests);
    SXE_INFO("stats: httpd.bytes %" PRIu64, stats.bytes);
    SXE_INFO("stats: httpd.log_lines_lost %" PRIu64, lost_lines());
    if (script_state() == NULL)
        return;
    SXE_INFO("stats: lua.memory %zu", sxe_lua_memory(script_state(), NULL));
    sxe_lua_each_stat(script_state(), log_counter, NULL);
}
