/* SPDX-License-Identifier: MIT
 *
 * What: texts with places. A placeholder in the user's text becomes a place, which has as many
 * bytes as its values. Before each query a place is overwritten with its next value. Place:
 * template.c makes requests of drafts; template.h describes the placeholders.
 *
 * Shape: a draft consists of bytes, and of the positions of the places in them:
 *
 *     "/item/{RAND:100:999}?n={SEQ:2}"   ->   /item/100?n=00      places at 6 (3 bytes), 12 (2)
 *
 * Limits: after an allocation has failed, is_out_of_memory is set, and nothing more is added to the
 * draft.
 */
#ifndef LOAD_TEMPLATE_PLACE_H
#define LOAD_TEMPLATE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "sxe-util.h"

enum load_place_type { LOAD_PLACE_SEQ, LOAD_PLACE_RAND, LOAD_PLACE_UUID };

struct load_place {
    uint32_t offset;
    uint8_t type;    /* enum load_place_type */
    uint8_t width;   /* how many bytes the value has */
    uint64_t first;  /* of RAND: the least value */
    uint64_t number; /* of RAND: how many different values there are */
};

/* A draft of all zeros is empty. */
struct load_draft {
    char *bytes;
    size_t length;
    size_t room;
    struct load_place *places;
    unsigned places_number;
    unsigned places_room;
    bool is_out_of_memory;
};

void load_draft_free(struct load_draft *draft);

/* Add bytes as they are. */
void load_draft_add(struct load_draft *draft, struct sxe_span text);

/* Add a text in which each placeholder is replaced by its first value. NULL, or what is wrong with
 * a placeholder. */
const char *load_draft_expand(struct load_draft *draft, struct sxe_span text);

/* Add a place. Its bytes are added by the caller. */
void load_draft_add_place(struct load_draft *draft, const struct load_place *place);

/* Add all bytes and places of another draft. */
void load_draft_append(struct load_draft *draft, const struct load_draft *other);

/* Overwrite the places with the values that they have in the query with this sequence number.
 * random was made by load_random_init. */
void load_places_patch(char *bytes, const struct load_place *places, unsigned number,
                       uint64_t sequence, uint64_t random[2]);

#endif
