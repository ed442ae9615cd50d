/* SPDX-License-Identifier: MIT
 *
 * What: the status page: tables of a sum of all processes, and buttons for actions. Its script
 * keeps it up to date from /status.json.
 *
 * Place: admin-serve.c answers GET / with it. status.html and status.js are inside the program.
 */
#ifndef STATUS_PAGE_H
#define STATUS_PAGE_H

#include "admin-text.h"
#include "metrics-sum.h"

struct status_page {
    const char *nonce; /* of Content-Security-Policy, for the page's style and script */
    const char *token; /* NULL: the client may not act, and the buttons are hidden */
};

/* The level of the log: the one that /log-level set, or the one that the server began with. */
int status_level(void);
const char *status_level_name(int level);

void status_page_add(struct text *text, const struct metrics_sum *sum,
                     const struct status_page *page);

#endif
