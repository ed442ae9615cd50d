/* SPDX-License-Identifier: MIT
 *
 * What: a text that grows, and texts of others made fit for JSON and for a label of Prometheus.
 *
 * Place: the files that write replies of the admin process.
 *
 * Limits: a text that cannot grow, for want of memory, gets no more, and is_cut tells.
 */
#ifndef ADMIN_TEXT_H
#define ADMIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "sxe-util.h"

struct text {
    char *base; /* NULL: nothing was added */
    size_t size;
    size_t used;
    bool is_cut;
};

/* Free the text, which may be added to again. */
void text_end(struct text *text);
void text_add(struct text *text, const char *format, ...) SXE_PRINTF(2, 3);

/* Add a string inside quotation marks of JSON or of a label of Prometheus. Bytes that are not
 * printable ASCII become "?". */
void text_add_escaped(struct text *text, const char *string);

#endif
