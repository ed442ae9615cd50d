/* SPDX-License-Identifier: MIT
 *
 * Reports on each host of a run that loads several.
 */
#include "hosts.h"

#include "json-writer.h"
#include "output.h"
#include "summary-sheet.h"

#define NAME_COLUMNS 24
#define NAME_SIZE    96 /* as many bytes as NAME_COLUMNS characters of UTF-8 need */

static const char *
name_of_host(const struct load_host *host)
{
    return *host->path != '\0' ? host->path : host->authority;
}

/* ---- The summary ---- */

static void
add_host_row(struct load_sheet *sheet, const struct load_host *host,
             const struct load_host_result *result)
{
    bool is_bad = result->errors > 0 || result->opened < result->sockets_wanted;
    char name[NAME_SIZE], sockets[48];

    snprintf(name, sizeof(name), "%s", name_of_host(host));
    load_clip(name, NAME_COLUMNS - 1);
    snprintf(sockets, sizeof(sockets), "%llu/%llu", (unsigned long long)result->opened,
             (unsigned long long)result->sockets_wanted);
    load_sheet_begin_row(sheet, is_bad);
    load_sheet_add(sheet, "%s%*s%12s%9s", name, (int)(NAME_COLUMNS - load_columns(name)), "",
                   sockets, load_number_text((double)result->offered));
    load_sheet_add(sheet, "%10s%10s%8s", load_percentile_text(&result->response, 0.5),
                   load_percentile_text(&result->response, 0.99),
                   load_number_text((double)result->errors));
}

void
load_summary_hosts(struct load_sheet *sheet, const struct load_run *run)
{
    if (run->total->hosts == 0)
        return;
    load_sheet_begin_heading(sheet, run->total->hosts);
    load_sheet_add(sheet, "%-*s%12s%9s%10s%10s%8s", NAME_COLUMNS, "host", "connections", "offered",
                   "p50", "p99", "errors");
    for (unsigned i = 0; i < run->total->hosts; i++)
        add_host_row(sheet, &run->plan->hosts[i], &run->total->by_host[i]);
}

/* ---- The JSON ---- */

void
load_output_json_plan_hosts(struct load_json *json, const struct load_plan *plan)
{
    load_json_open(json, "hosts", '[');
    for (unsigned i = 0; i < plan->hosts_number; i++) {
        const struct load_host *host = &plan->hosts[i];

        load_json_open(json, NULL, '{');
        load_json_text(json, "authority", host->authority);
        load_json_text(json, "ip", host->ip);
        load_json_count(json, "port", host->port);
        load_json_text(json, "unix_path", *host->path != '\0' ? host->path : NULL);
        load_json_close(json, '}');
    }
    load_json_close(json, ']');
}

void
load_output_json_hosts(struct load_json *json, const struct load_plan *plan,
                       const struct load_result *result)
{
    load_json_open(json, "hosts", '[');
    for (unsigned i = 0; i < result->hosts; i++) {
        const struct load_host_result *host = &result->by_host[i];

        load_json_open(json, NULL, '{');
        load_json_text(json, "name", name_of_host(&plan->hosts[i]));
#define WRITE(name) load_json_count(json, #name, host->name);
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
        load_output_json_times(json, "connect", &host->connect);
        load_output_json_times(json, "response", &host->response);
        load_json_close(json, '}');
    }
    load_json_close(json, ']');
}
