/* SPDX-License-Identifier: MIT
 *
 * What: texts with places. Placeholders are found in what the user wrote, replaced by as many bytes
 * as their values have, and overwritten with a value before each query. Place: template.c makes
 * requests of drafts; see template.h for the placeholders.
 *
 * Shape: a draft is bytes, and where in them the places are:
 *
 *     "/item/{RAND:100:999}?n={SEQ:2}"   ->   /item/100?n=00      places at 6 (3 bytes), 12 (2)
 *
 * Limits: after no memory a draft takes nothing more, and says so when asked.
 */
#ifndef HTTP_TEMPLATE_PLACE_H
#define HTTP_TEMPLATE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "sxe-util.h"

enum http_place_type { HTTP_PLACE_SEQ, HTTP_PLACE_RAND, HTTP_PLACE_UUID };

struct http_place {
    uint32_t offset;
    uint8_t type;    /* enum http_place_type */
    uint8_t width;   /* bytes */
    uint64_t first;  /* RAND: the least value */
    uint64_t number; /* RAND: of values */
};

/* All zero is empty. */
struct http_draft {
    char *bytes;
    size_t length;
    size_t room;
    struct http_place *places;
    unsigned places_number;
    unsigned places_room;
    bool is_out_of_memory;
};

void http_draft_free(struct http_draft *draft);

/* Add bytes as they are. */
void http_draft_add(struct http_draft *draft, struct sxe_span text);

/* Add a text, its placeholders replaced by their first values. NULL, or what is wrong with one. */
const char *http_draft_expand(struct http_draft *draft, struct sxe_span text);

/* Add a place; its bytes are added by others. */
void http_draft_add_place(struct http_draft *draft, const struct http_place *place);

/* Add all of another, places too. */
void http_draft_append(struct http_draft *draft, const struct http_draft *other);

/* Overwrite the places with the values of the query of that number; random is of http_random_init.
 */
void http_places_patch(char *bytes, const struct http_place *places, unsigned number,
                       uint64_t sequence, uint64_t random[2]);

#endif
