/* SPDX-License-Identifier: MIT
 *
 * What: the pages of --error-page, which are sent instead of "404 Not Found".
 *
 * Place: options.c adds them; service.c reads them when a process starts, and gives them to
 * sxe-http.h's config.pages; config-check.c looks whether they can be read.
 *
 * Limits: pages for 64 statuses, 64 KiB each.
 */
#ifndef ERROR_PAGES_H
#define ERROR_PAGES_H

#include <stdbool.h>

#include "sxe-http.h"

#define ERROR_PAGES_MAX 64
#define ERROR_PAGE_MAX  65536 /* bytes */

struct error_pages {
    const char *paths[ERROR_PAGES_MAX];
    struct sxe_http_page pages[ERROR_PAGES_MAX]; /* type and body: of error_pages_read */
    unsigned number;
};

/* Add one as --error-page has it: "404 404.html" or "500 502 503 sorry.html"; a later one for a
 * status replaces an earlier one. The text stays the caller's. False: it is none, or there are too
 * many. */
bool error_pages_add(struct error_pages *pages, const char *text);

/* Read all files. 0, or -errno after a message, with nothing kept. */
int error_pages_read(struct error_pages *pages);

/* Free what error_pages_read has read. */
void error_pages_free(struct error_pages *pages);

#endif
