/* SPDX-License-Identifier: MIT
 *
 * What: the status page. It has tables with the sum of all processes, and buttons for actions. Its
 * script keeps it up to date from /status.json.
 *
 * Place: admin-serve.c answers GET / with it. status.html and status.js are inside the program.
 */
#ifndef STATUS_PAGE_H
#define STATUS_PAGE_H

#include "admin-text.h"
#include "metrics-sum.h"

struct status_page {
    /* a number used once: Content-Security-Policy allows the style and the script that have it */
    const char *nonce;
    /* the token for actions; NULL: the client may take no actions, and the buttons are hidden */
    const char *token;
};

/* The level of the log: the level that an operator set with /log-level, or else the level with
 * which the server began. */
int status_level(void);
const char *status_level_name(int level);

void status_page_add(struct text *text, const struct metrics_sum *sum,
                     const struct status_page *page);

#endif
