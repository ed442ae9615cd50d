/* SPDX-License-Identifier: MIT
 *
 * What: a text that grows, and functions that escape strings for JSON and for labels of Prometheus.
 *
 * Place: used by the files that write replies of the admin process.
 *
 * Limits: if there is no memory to make the text longer, is_cut is set, and nothing more is added.
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

/* Free the text. Then it is empty, and can be used again. */
void text_end(struct text *text);
void text_add(struct text *text, const char *format, ...) SXE_PRINTF(2, 3);

/* Add a string that is to stand between the quotation marks of a label of Prometheus. Bytes that
 * are not printable ASCII become "?". */
void text_add_escaped(struct text *text, const char *string);

#endif
