/* SPDX-License-Identifier: MIT
 *
 * Reports on each address of a host that has several.
 */
#include <string.h>

#include "hosts.h"
#include "json-writer.h"
#include "output.h"
#include "summary-sheet.h"

#define NAME_COLUMNS 24

static void
add_address_row(struct load_sheet *sheet, const struct load_address_result *address, bool has_local)
{
    char name[LOAD_IP_SIZE];

    memcpy(name, address->ip, sizeof(name));
    load_clip(name, NAME_COLUMNS - 1);
    load_sheet_begin_row(sheet, address->failed > 0);
    load_sheet_add(sheet, "%s%*s%12s%9s", name, (int)(NAME_COLUMNS - load_columns(name)), "",
                   load_number_text((double)address->opened),
                   load_number_text((double)address->failed));
    if (address->is_unused)
        load_sheet_item(sheet, "not used: it %s",
                        has_local ? "is not of the family of --source"
                                  : "accepted no connection at the start");
    else if (address->first_error != 0)
        load_sheet_item(sheet, "%s", strerror(address->first_error));
}

void
load_summary_addresses(struct load_sheet *sheet, const struct load_run *run)
{
    const struct load_result *total = run->total;

    if (total->addresses == 0)
        return;
    load_sheet_begin_heading(sheet, total->addresses);
    load_sheet_add(sheet, "%-*s%12s%9s", NAME_COLUMNS, "address", "connections", "failed");
    for (unsigned i = 0; i < total->addresses; i++)
        add_address_row(sheet, &total->by_address[i], run->plan->local_addresses != NULL);
}

void
load_output_json_addresses(struct load_json *json, const struct load_result *result)
{
    load_json_open(json, "addresses", '[');
    for (unsigned i = 0; i < result->addresses; i++) {
        const struct load_address_result *address = &result->by_address[i];

        load_json_open(json, NULL, '{');
        load_json_text(json, "ip", address->ip);
        load_json_count(json, "port", address->port);
        load_json_bool(json, "is_unused", address->is_unused);
        load_json_count(json, "opened", address->opened);
        load_json_count(json, "failed", address->failed);
        load_json_text(json, "first_error",
                       address->first_error != 0 ? strerror(address->first_error) : NULL);
        load_json_close(json, '}');
    }
    load_json_close(json, ']');
}
