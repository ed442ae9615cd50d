/* SPDX-License-Identifier: MIT
 *
 * What: finds a text in a reply with a pattern of Lua (Lua 5.4 manual, 6.4.1), in a bounded time.
 * Place: steps of a session take values out of bodies with it. The functions do no I/O and allocate
 * nothing.
 *
 * Shape: Lua's own matcher goes back and tries again, which may take extremely long. Here a pattern
 * is a sequence of items. For each byte, all matches that are in progress go on to their next item
 * together:
 *
 *     value="([^"]+)"     items  v a l u e = " [^"] [^"]* "
 *                         open before item 7, close before item 9
 *
 * If a pattern can match in several ways, the result is the match that Lua finds: the matches in
 * progress are kept in the order in which Lua would try them. memmem(3) finds the plain bytes with
 * which a pattern begins.
 *
 * Limits: LOAD_PATTERN_ITEMS items; an item with + counts as two. A pattern has one capture, which
 * is the value, or none, and then the value is the whole match. %b, %f, %1 and () are refused.
 * Time: at most bytes times items.
 *
 * Example:
 *     struct load_pattern pattern;
 *     struct sxe_span found;
 *     if (load_pattern_compile(&pattern, "id=(%d+)", 8) == NULL &&
 *         load_pattern_find(&pattern, "a?id=17", 7, &found))
 *         printf("%.*s\n", (int)found.length, found.base);
 */
#ifndef LOAD_TAKE_PATTERN_H
#define LOAD_TAKE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sxe-util.h"

#define LOAD_PATTERN_ITEMS  63
#define LOAD_PATTERN_PREFIX 32

struct load_pattern_item {
    uint64_t set[4]; /* one bit for each byte that the item matches */
    /* 0: the item matches once; '*' and '?': as often as possible; '-': as seldom as possible */
    char repeat;
};

/* All members are private. */
struct load_pattern {
    unsigned number;
    /* the item before which the capture begins; above number: the pattern has no capture */
    unsigned open;
    unsigned close; /* the item before which the capture ends */
    bool is_anchored;
    bool is_to_end;
    unsigned prefix_length;
    char prefix[LOAD_PATTERN_PREFIX];
    struct load_pattern_item items[LOAD_PATTERN_ITEMS];
};

/* Parse a pattern. NULL, or what is wrong with it, as a static text. */
const char *load_pattern_compile(struct load_pattern *pattern, const char *text, size_t length);

/* Find the first match. *found becomes the value. False: there is no match. */
bool load_pattern_find(const struct load_pattern *pattern, const char *text, size_t length,
                       struct sxe_span *found);

#endif
