/* SPDX-License-Identifier: MIT
 *
 * What: the page that operators look at: tables of a sum of all processes, and buttons. A browser
 * that runs its script keeps it up to date from /status.json.
 *
 * Place: admin-serve.c answers GET / with it. status.html and status.js are inside the program.
 */
#ifndef STATUS_PAGE_H
#define STATUS_PAGE_H

#include "admin-text.h"
#include "metrics-sum.h"

struct status_page {
    const char *nonce; /* of Content-Security-Policy: the style and the script have it */
    const char *token; /* NULL: for a client that may do nothing; there are no buttons then */
};

/* The level of the log that is shown: what was asked for, or what the server began with. */
int status_level(void);
const char *status_level_name(int level);

void status_page_add(struct text *text, const struct metrics_sum *sum,
                     const struct status_page *page);

#endif
