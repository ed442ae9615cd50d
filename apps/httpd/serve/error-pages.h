/* SPDX-License-Identifier: MIT
 *
 * What: the pages of --error-page, which are sent instead of texts like "404 Not Found".
 *
 * Place: options.c adds them; service.c reads them when a process starts, and gives them to
 * sxe-http.h's config.pages; config-check.c checks that they can be read.
 *
 * Limits: pages for 64 statuses, 64 KiB each.
 */
#ifndef ERROR_PAGES_H
#define ERROR_PAGES_H

#include <stdbool.h>

#include "sxe-http.h"

#define ERROR_PAGES_MAX 64
#define ERROR_PAGE_MAX  65536 /* the most bytes that a page may have */

struct error_pages {
    const char *paths[ERROR_PAGES_MAX];
    struct sxe_http_page pages[ERROR_PAGES_MAX]; /* error_pages_read sets type and body */
    unsigned number;
};

/* Add the page of an option --error-page, like "404 404.html" or "500 502 503 sorry.html". A later
 * page for a status replaces an earlier one. The text must stay valid. False: the text is not of
 * this form, or there are more than ERROR_PAGES_MAX statuses. */
bool error_pages_add(struct error_pages *pages, const char *text);

/* Read the files of all pages. 0, or -errno after a message, and then no page is kept. */
int error_pages_read(struct error_pages *pages);

/* Free what error_pages_read has read. */
void error_pages_free(struct error_pages *pages);

#endif
