/* SPDX-License-Identifier: MIT
 *
 * The line of the summary about handshakes of TLS.
 */
#include "output.h"
#include "summary-sheet.h"

void
load_summary_tls(struct load_sheet *sheet, const struct load_result *total)
{
    unsigned long long full = load_result_full_handshakes(total);
    unsigned long long resumed = total->handshakes_resumed;
    unsigned long long refused = total->handshakes_refused;
    unsigned long long sessionless = total->handshakes_sessionless;

    if (total->handshake.count == 0)
        return;
    load_sheet_begin(sheet, LOAD_WEIGHT_ERRORS, refused > 0 ? LOAD_PAINT_BAD : LOAD_PAINT_NONE);
    load_sheet_add(sheet, "TLS       handshakes: %llu full, %llu resumed (%.4g %%)", full, resumed,
                   100 * (double)resumed / (double)total->handshake.count);
    if (refused > 0)
        load_sheet_item(sheet, "the server refused to resume %llu", refused);
    if (sessionless > 0)
        load_sheet_item(sheet, "no session to resume for %llu", sessionless);
}
