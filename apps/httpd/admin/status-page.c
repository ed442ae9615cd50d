/* SPDX-License-Identifier: MIT
 *
 * The page is status.html. It has marks, <!--=name-->, and for each mark a function of this file
 * writes the text. Later the script status.js, in the browser, replaces the same rows.
 */
#include "status-page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sxe-log.h"
#include "sxe-time.h"

/* Include the files in the program. Their paths are relative to the root of the sources, where the
 * compiler runs. */
__asm__(".section .rodata\n"
        ".global status_html, status_html_end, status_js, status_js_end\n"
        "status_html:\n"
        ".incbin \"apps/httpd/admin/status.html\"\n"
        "status_html_end:\n"
        "status_js:\n"
        ".incbin \"apps/httpd/admin/status.js\"\n"
        "status_js_end:\n"
        ".previous\n");
extern const char status_html[];
extern const char status_html_end[];
extern const char status_js[];
extern const char status_js_end[];

#define MARK     "<!--="
#define MARK_END "-->"

struct part {
    struct text *text;
    const struct metrics_sum *sum;
    const struct status_page *page;
};

/* ---- Values ---- */

static const char *const level_names[] = {"none",        "fatal", "error", "warning",
                                          "information", "debug", "trace", "dump"};

int
status_level(void)
{
    uint32_t asked = metrics_look()->level;

    return asked != 0 ? (int)asked : sxe_log_get_level();
}

const char *
status_level_name(int level)
{
    return level < SXE_LOG_NONE || level > SXE_LOG_DUMP ? "unknown" : level_names[level];
}

static void
add_html(struct text *text, const char *string)
{
    for (; *string != '\0'; string++) {
        if (*string == '<' || *string == '>' || *string == '&' || *string == '"')
            text_add(text, "&#%d;", *string);
        else
            text_add(text, "%c", *string < ' ' || *string > '~' ? '?' : *string);
    }
}

static void
add_us(struct text *text, uint64_t us)
{
    if (us < 1000)
        text_add(text, "%" PRIu64 " µs", us);
    else if (us < 1000000)
        text_add(text, "%.1f ms", (double)us / 1e3);
    else
        text_add(text, "%.1f s", (double)us / 1e6);
}

static void
add_byte_count(struct text *text, uint64_t bytes)
{
    if (bytes < 1024 * 1024)
        text_add(text, "%.0f KiB", (double)bytes / 1024);
    else
        text_add(text, "%.1f MiB", (double)bytes / 1024 / 1024);
}

static void
add_seconds_text(struct text *text, uint64_t seconds)
{
    if (seconds < 60)
        text_add(text, "%" PRIu64 " s", seconds);
    else if (seconds < 3600)
        text_add(text, "%" PRIu64 " min %" PRIu64 " s", seconds / 60, seconds % 60);
    else
        text_add(text, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600, seconds % 3600 / 60);
}

/* ---- Cells ---- */

static void
add_count_cell(struct text *text, uint64_t count)
{
    text_add(text, "<td class=\"n\">%" PRIu64 "</td>", count);
}

static void
add_us_cell(struct text *text, uint64_t us)
{
    text_add(text, "<td class=\"n\">");
    add_us(text, us);
    text_add(text, "</td>");
}

static void
add_age_cell(struct text *text, uint32_t number, uint32_t age_ms)
{
    if (number == 0)
        text_add(text, "<td class=\"n\"></td>");
    else
        add_us_cell(text, age_ms * UINT64_C(1000));
}

static void
add_no_rows(struct text *text, unsigned number, unsigned columns, const char *why)
{
    if (number == 0)
        text_add(text, "<tr><td class=\"none\" colspan=\"%u\">%s</td></tr>", columns, why);
}

/* ---- The texts for the marks ---- */

static void
add_nonce(const struct part *part)
{
    text_add(part->text, "%s", part->page->nonce);
}

static void
add_version(const struct part *part)
{
    text_add(part->text, SXE_VERSION);
}

static void
add_state(const struct part *part)
{
    text_add(part->text, "%s",
             part->sum->is_draining ? "draining"
             : part->sum->is_ready  ? "ready"
                                    : "not ready");
}

static void
add_state_class(const struct part *part)
{
    text_add(part->text, "%s", part->sum->is_ready ? "ready" : "not-ready");
}

static void
begin_figure(const struct part *part, const char *id, const char *label)
{
    text_add(part->text, "<div><dt>%s</dt><dd id=\"%s\">", label, id);
}

static void
end_figure(const struct part *part)
{
    text_add(part->text, "</dd></div>\n");
}

static void
add_figure_row(const struct part *part, const char *id, const char *label, uint64_t value)
{
    begin_figure(part, id, label);
    text_add(part->text, "%" PRIu64, value);
    end_figure(part);
}

static void
add_quantile(const struct part *part, const char *id, const char *label, double fraction)
{
    begin_figure(part, id, label);
    add_us(part->text, latency_quantile_us(part->sum->durations, fraction));
    end_figure(part);
}

static void
add_figures(const struct part *part)
{
    const struct metrics_sum *sum = part->sum;
    uint64_t ms = (sum->now_ns - metrics_look()->began_ns) / SXE_NS_PER_MS;
    uint64_t lua_memory = 0;

    for (unsigned i = 0; i < sum->workers_number; i++)
        lua_memory += sum->workers[i]->lua_memory;
    begin_figure(part, "rate", "Requests a second<span id=\"rate-of\">, mean</span>");
    text_add(part->text, "%.1f", ms == 0 ? 0 : (double)sum->requests * 1000 / (double)ms);
    end_figure(part);
    add_quantile(part, "p50", "Median latency", 0.5);
    add_quantile(part, "p99", "99 % within", 0.99);
    add_figure_row(part, "active", "Requests in progress", metrics_active(sum));
    add_figure_row(part, "connections", "Connections", metrics_connections(sum));
    add_figure_row(part, "total", "Requests in all", sum->requests);
    add_figure_row(part, "errors", "Replies 5xx", sum->classes[5]);
    begin_figure(part, "lua", "Lua memory");
    add_byte_count(part->text, lua_memory);
    end_figure(part);
    begin_figure(part, "uptime", "Running for");
    add_seconds_text(part->text, ms / 1000);
    end_figure(part);
}

static void
add_latency(const struct part *part)
{
    uint64_t below[LATENCY_BOUNDS + 1] = {0};

    for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
        below[latency_bound_of_bucket(i)] += part->sum->durations[i];
    for (unsigned i = 0; i < LATENCY_BOUNDS; i++) {
        if (below[i] == 0)
            continue;
        text_add(part->text, "<tr>");
        add_us_cell(part->text, latency_bounds_us[i]);
        add_count_cell(part->text, below[i]);
        text_add(part->text, "</tr>\n");
    }
    if (below[LATENCY_BOUNDS] > 0) {
        text_add(part->text, "<tr><td class=\"n\">more</td>");
        add_count_cell(part->text, below[LATENCY_BOUNDS]);
        text_add(part->text, "</tr>\n");
    }
    add_no_rows(part->text, part->sum->requests > 0, 2, "no request has ended yet");
}

static const struct metrics_pool_state *
find_connections(const struct metrics_sum *sum, const char *state)
{
    for (unsigned i = 0; i < sum->pools_number; i++) {
        if (strcmp(sum->pools[i].name, "http-connections") != 0)
            continue;
        for (unsigned j = 0; j < sum->pools[i].states; j++) {
            if (strcmp(sum->pools[i].state[j].name, state) == 0)
                return &sum->pools[i].state[j];
        }
    }
    return NULL;
}

static void
add_connection_figures(const struct part *part)
{
    static const struct {
        const char *state;
        const char *meaning;
    } states[] = {
        {"FRESH", "connected, no request yet"},    {"IDLE", "between two requests"},
        {"HEAD", "the head of a request arrives"}, {"BODY", "the body of a request arrives"},
        {"HANDLING", "a handler works or waits"},  {"SENDING", "the client reads the reply"},
        {"UPGRADED", "a WebSocket is open"},       {"CLOSING", "the connection is closed"},
        {"FREE", "room for more connections"},
    };

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        const struct metrics_pool_state *state = find_connections(part->sum, states[i].state);
        uint32_t number = state == NULL ? 0 : state->number;

        text_add(part->text, "<tr data-state=\"%s\"><th scope=\"row\">%s</th><td>%s</td>",
                 states[i].state, states[i].state, states[i].meaning);
        add_count_cell(part->text, number);
        add_age_cell(part->text, number, number == 0 ? 0 : state->age_ms);
        text_add(part->text, "</tr>\n");
    }
}

static void
add_worker_row(struct text *text, const struct metrics_sum *sum, const struct metrics_part *worker)
{
    static const char *const states[] = {"starting", "ready", "leaving"};
    uint64_t seen_ns = sum->now_ns > worker->published_ns ? sum->now_ns - worker->published_ns : 0;

    text_add(text,
             "<tr><th scope=\"row\">%u</th><td class=\"n\">%d</td><td>%s</td><td class=\"n\">",
             worker->place, worker->owner, states[worker->state % 3]);
    add_seconds_text(text, (sum->now_ns - worker->since_ns) / SXE_NS_PER_SECOND);
    text_add(text, "</td>");
    add_count_cell(text, worker->starts - 1);
    add_count_cell(text, metrics_requests_of(worker));
    add_us_cell(text, worker->cpu_ns / 1000);
    text_add(text, "<td class=\"n\">");
    add_byte_count(text, worker->lua_memory);
    text_add(text, "</td>");
    add_us_cell(text, seen_ns / 1000);
    text_add(text, "</tr>\n");
}

static void
add_worker_rows(const struct part *part)
{
    for (unsigned i = 0; i < part->sum->workers_number; i++)
        add_worker_row(part->text, part->sum, part->sum->workers[i]);
    add_no_rows(part->text, part->sum->workers_number, 9, "no worker is there");
}

static void
add_pool_rows(const struct part *part)
{
    for (unsigned i = 0; i < part->sum->pools_number; i++) {
        const struct metrics_pool *pool = &part->sum->pools[i];

        text_add(part->text, "<tr><th scope=\"row\">");
        add_html(part->text, pool->name);
        text_add(part->text, "</th>");
        add_count_cell(part->text, pool->elements);
        text_add(part->text, "<td><ul>");
        for (unsigned state = 0; state < pool->states; state++) {
            if (pool->state[state].number == 0)
                continue;
            text_add(part->text, "<li>");
            add_html(part->text, pool->state[state].name);
            text_add(part->text, " <b>%u</b> <small>", pool->state[state].number);
            add_us(part->text, pool->state[state].age_ms * UINT64_C(1000));
            text_add(part->text, "</small></li>");
        }
        text_add(part->text, "</ul></td></tr>\n");
    }
    add_no_rows(part->text, part->sum->pools_number, 3, "no worker has shown its pools yet");
}

static void
add_route_rows(const struct part *part)
{
    for (unsigned i = 0; i < part->sum->routes_number; i++) {
        const struct metrics_sum_route *route = &part->sum->routes[i];

        text_add(part->text, "<tr><th scope=\"row\">");
        add_html(part->text, route->route[0] == '\0' ? "(no route)" : route->route);
        text_add(part->text, "</th>");
        add_count_cell(part->text, route->number);
        add_count_cell(part->text, route->errors);
        add_us_cell(part->text, metrics_mean_us(route));
        add_us_cell(part->text, latency_bounds_quantile_us(route->counts, 0.99));
        add_us_cell(part->text, route->max_ns / 1000);
        text_add(part->text, "</tr>\n");
    }
    add_no_rows(part->text, part->sum->routes_number, 6, "no request has ended yet");
}

static void
add_log(const struct part *part)
{
    for (unsigned i = 0; i < part->sum->lines_number; i++) {
        const struct metrics_line *line = &part->sum->lines[i];
        time_t seconds = (time_t)(line->unix_ms / 1000);
        struct tm utc;
        char when[32];

        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", gmtime_r(&seconds, &utc));
        text_add(part->text, "<tr><td>%s</td><td class=\"%s\">%s</td><td>", when,
                 status_level_name(line->level), status_level_name(line->level));
        add_html(part->text, line->text);
        text_add(part->text, "</td></tr>\n");
    }
    add_no_rows(part->text, part->sum->lines_number, 3, "no warning, no error");
}

static void
add_levels(const struct part *part)
{
    int shown = status_level();

    for (int level = SXE_LOG_FATAL; level <= SXE_LOG_DUMP; level++)
        text_add(part->text, "<option%s>%s</option>", level == shown ? " selected" : "",
                 status_level_name(level));
}

static void
add_token(const struct part *part)
{
    text_add(part->text, "%s", part->page->token == NULL ? "" : part->page->token);
}

/* Write the attribute "hidden" of the buttons, if the client may not use them. */
static void
add_buttons_hidden(const struct part *part)
{
    text_add(part->text, "%s", part->page->token == NULL ? "hidden" : "");
}

static void
add_refusal_hidden(const struct part *part)
{
    text_add(part->text, "%s", part->page->token == NULL ? "" : "hidden");
}

static void
add_page_script(const struct part *part)
{
    text_add(part->text, "%.*s", (int)(status_js_end - status_js), status_js);
}

/* ---- The page ---- */

static const struct {
    const char *name;
    void (*add)(const struct part *part);
} marks[] = {
    {"nonce", add_nonce},
    {"version", add_version},
    {"state", add_state},
    {"state-class", add_state_class},
    {"figures", add_figures},
    {"latency", add_latency},
    {"connections", add_connection_figures},
    {"workers", add_worker_rows},
    {"pools", add_pool_rows},
    {"routes", add_route_rows},
    {"log", add_log},
    {"levels", add_levels},
    {"token", add_token},
    {"buttons-hidden", add_buttons_hidden},
    {"refusal-hidden", add_refusal_hidden},
    {"script", add_page_script},
};

static void
fill_mark(const struct part *part, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (strlen(marks[i].name) == length && memcmp(marks[i].name, name, length) == 0)
            marks[i].add(part);
    }
}

void
status_page_add(struct text *text, const struct metrics_sum *sum, const struct status_page *page)
{
    const struct part part = {.text = text, .sum = sum, .page = page};
    const char *from = status_html;
    const char *mark;

    while ((mark = memmem(from, (size_t)(status_html_end - from), MARK, strlen(MARK))) != NULL) {
        const char *name = mark + strlen(MARK);
        const char *end =
            memmem(name, (size_t)(status_html_end - name), MARK_END, strlen(MARK_END));

        text_add(text, "%.*s", (int)(mark - from), from);
        fill_mark(&part, name, (size_t)(end - name));
        from = end + strlen(MARK_END);
    }
    text_add(text, "%.*s", (int)(status_html_end - from), from);
}
