/* SPDX-License-Identifier: MIT
 *
 * A set of texts: a hash table with open addressing and linear probing, at most half full.
 */
#include "replay-private.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { FIRST_ROOM = 1024, FIRST_BYTES = 4096 };

/* A hash that depends on no secret: if somebody makes a log whose texts collide, only the reading
 * of this log becomes slow. */
static uint32_t
hash_of_text(struct sxe_span text)
{
    uint64_t hash = load_text_hash(text.base, text.length);

    return (uint32_t)(hash ^ hash >> 32);
}

/* Find the slot that has the text, or the free slot into which it belongs. */
static uint32_t
slot_of_text(const struct load_texts *texts, struct sxe_span text, uint32_t hash)
{
    uint32_t mask = 2 * texts->room - 1;
    uint32_t slot = hash & mask;

    for (; texts->slots[slot] != 0; slot = (slot + 1) & mask) {
        const struct load_text *other = &texts->all[texts->slots[slot] - 1];

        if (other->hash == hash && other->length == text.length &&
            memcmp(texts->bytes + other->offset, text.base, text.length) == 0)
            break;
    }
    return slot;
}

uint32_t
load_texts_find(const struct load_texts *texts, struct sxe_span text)
{
    return texts->number == 0 ? SXE_NONE
                              : texts->slots[slot_of_text(texts, text, hash_of_text(text))] - 1;
}

/* Double the number of slots, and enter all texts again. */
static bool
grow_texts(struct load_texts *texts)
{
    uint32_t room = texts->room > 0 ? 2 * texts->room : FIRST_ROOM;
    uint32_t mask = 2 * room - 1;
    struct load_text *all = realloc(texts->all, room * sizeof(*all));
    uint32_t *slots;

    if (all == NULL)
        return false;
    texts->all = all;
    slots = calloc(2 * (size_t)room, sizeof(*slots));
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < texts->number; i++) {
        uint32_t slot = all[i].hash & mask;

        while (slots[slot] != 0)
            slot = (slot + 1) & mask;
        slots[slot] = i + 1;
    }
    free(texts->slots);
    texts->slots = slots;
    texts->room = room;
    return true;
}

static bool
grow_bytes(struct load_texts *texts, size_t length)
{
    size_t room = texts->bytes_room > 0 ? texts->bytes_room : FIRST_BYTES;
    char *bytes;

    while (room - texts->bytes_number < length)
        room += room / 2;
    if (room == texts->bytes_room)
        return true;
    bytes = realloc(texts->bytes, room);
    if (bytes == NULL)
        return false;
    texts->bytes = bytes;
    texts->bytes_room = room;
    return true;
}

uint32_t
load_texts_add(struct load_texts *texts, struct sxe_span text, uint16_t kind)
{
    uint32_t hash = hash_of_text(text);

    if ((texts->number == texts->room && !grow_texts(texts)) || !grow_bytes(texts, text.length))
        return SXE_NONE;
    texts->slots[slot_of_text(texts, text, hash)] = texts->number + 1;
    texts->all[texts->number] =
        (struct load_text){texts->bytes_number, hash, (uint16_t)text.length, kind};
    memcpy(texts->bytes + texts->bytes_number, text.base, text.length);
    texts->bytes_number += text.length;
    if (text.length > texts->longest)
        texts->longest = (uint16_t)text.length;
    return texts->number++;
}

void
load_texts_free(struct load_texts *texts)
{
    free(texts->bytes);
    free(texts->all);
    free(texts->slots);
    *texts = (struct load_texts){0};
}
