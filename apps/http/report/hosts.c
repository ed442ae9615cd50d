/* SPDX-License-Identifier: MIT */
#include "hosts.h"

#include "json-writer.h"
#include "output.h"
#include "summary-page.h"

#define NAME_COLUMNS 24
#define NAME_SIZE    96 /* bytes; more characters than columns, whatever they are */

static const char *
name_of(const struct http_host *host)
{
    return *host->path != '\0' ? host->path : host->authority;
}

/* ---- The summary ---- */

static void
add_host(struct http_page *page, const struct http_host *host,
         const struct http_host_result *result)
{
    bool is_bad = result->errors > 0 || result->opened < result->sockets_wanted;
    char name[NAME_SIZE], sockets[48];

    snprintf(name, sizeof(name), "%s", name_of(host));
    http_clip(name, NAME_COLUMNS - 1);
    snprintf(sockets, sizeof(sockets), "%llu/%llu", (unsigned long long)result->opened,
             (unsigned long long)result->sockets_wanted);
    http_page_begin(page, HTTP_WEIGHT_KINDS, is_bad ? HTTP_PAINT_BAD : HTTP_PAINT_NONE);
    http_page_add(page, "%s%*s%12s%9s", name, (int)(NAME_COLUMNS - http_columns(name)), "", sockets,
                  http_number_text((double)result->offered));
    http_page_add(page, "%10s%10s%8s", http_percentile_text(&result->response, 0.5),
                  http_percentile_text(&result->response, 0.99),
                  http_number_text((double)result->errors));
}

void
http_summary_hosts(struct http_page *page, const struct http_run *run)
{
    if (run->total->hosts == 0)
        return;
    http_page_begin(page, HTTP_WEIGHT_KINDS, HTTP_PAINT_FAINT);
    http_page_add(page, "%-*s%12s%9s%10s%10s%8s", NAME_COLUMNS, "host", "connections", "offered",
                  "p50", "p99", "errors");
    for (unsigned i = 0; i < run->total->hosts; i++)
        add_host(page, &run->plan->hosts[i], &run->total->by_host[i]);
}

/* ---- The JSON ---- */

void
http_output_json_plan_hosts(struct http_json *json, const struct http_plan *plan)
{
    http_json_open(json, "hosts", '[');
    for (unsigned i = 0; i < plan->hosts_number; i++) {
        const struct http_host *host = &plan->hosts[i];

        http_json_open(json, NULL, '{');
        http_json_text(json, "authority", host->authority);
        http_json_text(json, "ip", host->ip);
        http_json_count(json, "port", host->port);
        http_json_text(json, "unix_path", *host->path != '\0' ? host->path : NULL);
        http_json_close(json, '}');
    }
    http_json_close(json, ']');
}

void
http_output_json_hosts(struct http_json *json, const struct http_plan *plan,
                       const struct http_result *result)
{
    http_json_open(json, "hosts", '[');
    for (unsigned i = 0; i < result->hosts; i++) {
        const struct http_host_result *host = &result->by_host[i];

        http_json_open(json, NULL, '{');
        http_json_text(json, "name", name_of(&plan->hosts[i]));
#define WRITE(name) http_json_count(json, #name, host->name);
        WRITE(sockets_wanted)
        WRITE(opened)
        WRITE(reopened)
        WRITE(not_reopened)
        WRITE(offered)
        WRITE(sent)
        WRITE(skipped)
        WRITE(ok)
        WRITE(errors)
#undef WRITE
        http_output_json_times(json, "connect", &host->connect);
        http_output_json_times(json, "response", &host->response);
        http_json_close(json, '}');
    }
    http_json_close(json, ']');
}
