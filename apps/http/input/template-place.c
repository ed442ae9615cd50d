/* SPDX-License-Identifier: MIT
 *
 * Placeholders in requests: finding, expanding and overwriting them.
 */
#include "template-place.h"

#include <stdlib.h>
#include <string.h>

#include "pace.h"
#include "wrong.h"

#define DIGITS "0123456789"

enum { DIGITS_MAX = 19, SEQ_WIDTH = 10, UUID_WIDTH = 36, FIRST_ROOM = 512, FIRST_PLACES = 4 };

/* ---- The words of a placeholder ---- */

/* The number of digits that the text begins with; 0: it begins with none, or with more than
 * DIGITS_MAX. */
static size_t
read_place_number(struct sxe_span text, uint64_t *value)
{
    size_t i = 0;

    for (*value = 0; i < text.length && text.base[i] >= '0' && text.base[i] <= '9'; i++)
        *value = i < DIGITS_MAX ? *value * 10 + (uint64_t)(text.base[i] - '0') : 0;
    return i <= DIGITS_MAX ? i : 0;
}

/* Read the rest of the placeholder SEQ: nothing, or ":width". */
static bool
read_seq(struct load_place *place, struct sxe_span text)
{
    uint64_t width = SEQ_WIDTH;

    if (text.length > 0) {
        struct sxe_span digits = {text.base + 1, text.length - 1};

        if (read_place_number(digits, &width) != digits.length || width < 1 || width > DIGITS_MAX)
            return false;
    }
    *place = (struct load_place){.type = LOAD_PLACE_SEQ, .width = (uint8_t)width};
    return true;
}

/* Read the rest of the placeholder RAND: ":a:b". */
static bool
read_rand(struct load_place *place, struct sxe_span text)
{
    struct sxe_span rest = {text.base + 1, text.length - (text.length > 0)};
    uint64_t last;
    size_t digits = read_place_number(rest, &place->first);

    if (digits == 0 || digits + 1 >= rest.length || rest.base[digits] != ':')
        return false;
    rest = (struct sxe_span){rest.base + digits + 1, rest.length - digits - 1};
    digits = read_place_number(rest, &last);
    if (digits != rest.length || last < place->first)
        return false;
    place->type = LOAD_PLACE_RAND;
    place->width = (uint8_t)digits;
    place->number = last - place->first + 1;
    return true;
}

static bool
read_uuid(struct load_place *place, struct sxe_span text)
{
    *place = (struct load_place){.type = LOAD_PLACE_UUID, .width = UUID_WIDTH};
    return text.length == 0;
}

static const struct {
    const char *word;
    bool (*read)(struct load_place *place, struct sxe_span text);
} kinds[] = {{"{SEQ", read_seq}, {"{RAND", read_rand}, {"{UUID", read_uuid}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* The kind of the placeholder that begins the text: its word, followed by ":" or "}". The rest may
 * be wrong. KINDS: the text begins with no placeholder. */
static unsigned
kind_of_placeholder(struct sxe_span text)
{
    for (unsigned i = 0; i < KINDS; i++) {
        size_t length = strlen(kinds[i].word);

        if (text.length > length && memcmp(text.base, kinds[i].word, length) == 0 &&
            (text.base[length] == ':' || text.base[length] == '}'))
            return i;
    }
    return KINDS;
}

/* ---- Drafts ---- */

void
load_draft_free(struct load_draft *draft)
{
    free(draft->bytes);
    free(draft->places);
    *draft = (struct load_draft){0};
}

/* Make room for `length` more bytes. */
static bool
make_draft_room(struct load_draft *draft, size_t length)
{
    size_t room = draft->room > 0 ? draft->room : FIRST_ROOM;
    char *bytes;

    while (room - draft->length < length)
        room *= 2;
    if (draft->is_out_of_memory)
        return false;
    if (room == draft->room)
        return true;
    bytes = realloc(draft->bytes, room);
    if (bytes == NULL) {
        draft->is_out_of_memory = true;
        return false;
    }
    draft->bytes = bytes;
    draft->room = room;
    return true;
}

void
load_draft_add(struct load_draft *draft, struct sxe_span text)
{
    if (text.length == 0 || !make_draft_room(draft, text.length))
        return;
    memcpy(draft->bytes + draft->length, text.base, text.length);
    draft->length += text.length;
}

void
load_draft_add_place(struct load_draft *draft, const struct load_place *place)
{
    if (draft->places_number == draft->places_room) {
        unsigned room = draft->places_room > 0 ? 2 * draft->places_room : FIRST_PLACES;
        struct load_place *places = realloc(draft->places, room * sizeof(*places));

        if (places == NULL) {
            draft->is_out_of_memory = true;
            return;
        }
        draft->places = places;
        draft->places_room = room;
    }
    draft->places[draft->places_number++] = *place;
}

/* Write the value of the first query into the place, so that the draft makes a valid request. */
static void
add_first_value(struct load_draft *draft, struct load_place *place)
{
    uint64_t random[2];

    load_random_init(random, 0);
    if (!make_draft_room(draft, place->width))
        return;
    place->offset = (uint32_t)draft->length;
    load_places_patch(draft->bytes, place, 1, 0, random);
    draft->length += place->width;
    load_draft_add_place(draft, place);
}

/* Expand the placeholder of this kind that begins the text. Returns its length; 0: it is wrong. */
static size_t
expand_place(struct load_draft *draft, struct sxe_span text, unsigned kind)
{
    const char *close = memchr(text.base, '}', text.length);
    size_t word = strlen(kinds[kind].word);
    struct load_place place = {0};

    if (close == NULL ||
        !kinds[kind].read(&place,
                          (struct sxe_span){text.base + word, (size_t)(close - text.base) - word}))
        return 0;
    add_first_value(draft, &place);
    return (size_t)(close - text.base) + 1;
}

/* The text begins with a brace: expand its placeholder, or copy the brace if it begins none.
 * Returns how many bytes of the text were used. */
static size_t
expand_brace(struct load_draft *draft, struct sxe_span text)
{
    unsigned kind = kind_of_placeholder(text);
    struct sxe_span after = {text.base + 1, text.length - 1};

    if (kind < KINDS)
        return expand_place(draft, text, kind);
    load_draft_add(draft, (struct sxe_span){text.base, 1});
    /* "{{" before a placeholder's word stands for "{": the word is sent as text. */
    return kind_of_placeholder(after) < KINDS ? 2 : 1;
}

const char *
load_draft_expand(struct load_draft *draft, struct sxe_span text)
{
    while (text.length > 0) {
        const char *brace = memchr(text.base, '{', text.length);
        size_t taken = brace == NULL ? text.length : (size_t)(brace - text.base);

        load_draft_add(draft, (struct sxe_span){text.base, taken});
        text = (struct sxe_span){text.base + taken, text.length - taken};
        taken = text.length > 0 ? expand_brace(draft, text) : 0;
        if (taken == 0 && text.length > 0)
            return load_wrong("'%.*s' is none of {SEQ}, {SEQ:digits}, {RAND:least:greatest} and "
                              "{UUID} (at most %d digits)",
                              (int)(text.length < 40 ? text.length : 40), text.base, DIGITS_MAX);
        text = (struct sxe_span){text.base + taken, text.length - taken};
    }
    return NULL;
}

void
load_draft_append(struct load_draft *draft, const struct load_draft *other)
{
    size_t offset = draft->length;

    load_draft_add(draft, (struct sxe_span){other->bytes, other->length});
    for (unsigned i = 0; i < other->places_number; i++) {
        struct load_place place = other->places[i];

        place.offset += (uint32_t)offset;
        load_draft_add_place(draft, &place);
    }
    draft->is_out_of_memory |= other->is_out_of_memory;
}

/* ---- Values ---- */

static void
write_digits(char *to, unsigned width, uint64_t value)
{
    for (char *p = to + width; p > to; value /= 10)
        *--p = (char)('0' + value % 10);
}

static void
write_hex(char *to, unsigned width, uint64_t value)
{
    for (char *p = to + width; p > to; value >>= 4)
        *--p = "0123456789abcdef"[value & 15];
}

/* Write a UUID of version 4 (RFC 9562, 5.4): 122 random bits, version 4, variant 10. */
static void
write_uuid(char *to, uint64_t random[2])
{
    uint64_t high = load_random_below(random, UINT64_C(1) << 60);
    uint64_t low = load_random_below(random, UINT64_C(1) << 62) | UINT64_C(1) << 63;

    write_hex(to, 8, high >> 28);
    write_hex(to + 9, 4, high >> 12);
    write_hex(to + 14, 4, 0x4000 | (high & 0xfff));
    write_hex(to + 19, 4, low >> 48);
    write_hex(to + 24, 12, low);
    to[8] = to[13] = to[18] = to[23] = '-';
}

void
load_places_patch(char *bytes, const struct load_place *places, unsigned number, uint64_t sequence,
                  uint64_t random[2])
{
    for (const struct load_place *place = places; place < places + number; place++) {
        char *to = bytes + place->offset;

        switch ((enum load_place_type)place->type) {
        case LOAD_PLACE_SEQ: /* digits that do not fit the width are not written */
            write_digits(to, place->width, sequence);
            break;
        case LOAD_PLACE_RAND:
            write_digits(to, place->width, place->first + load_random_below(random, place->number));
            break;
        case LOAD_PLACE_UUID:
            write_uuid(to, random);
            break;
        }
    }
}
