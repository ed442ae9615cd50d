/* SPDX-License-Identifier: MIT
 *
 * Matching a subset of Lua's patterns in bounded time: for each byte of the text, all possible
 * matches are continued together.
 */
#include "take-pattern.h"

#include <string.h>

#define NONE (LOAD_PATTERN_ITEMS + 1)

/* ---- Sets of bytes ---- */

static void
add_byte(uint64_t set[4], unsigned char byte)
{
    set[byte / 64] |= UINT64_C(1) << byte % 64;
}

static bool
has_byte(const uint64_t set[4], unsigned char byte)
{
    return set[byte / 64] >> byte % 64 & 1;
}

static void
add_byte_range(uint64_t set[4], unsigned from, unsigned to)
{
    for (unsigned byte = from; byte <= to; byte++)
        add_byte(set, (unsigned char)byte);
}

static void
invert_set(uint64_t set[4])
{
    for (unsigned i = 0; i < 4; i++)
        set[i] = ~set[i];
}

/* Add the bytes of a class, such as %d or %s, to the set, as the C locale defines the class. False:
 * no class has this letter. */
static bool
add_class(uint64_t set[4], char letter)
{
    /* the ranges of each class, as pairs of their first and last bytes */
    static const struct {
        char letter;
        const char *ranges;
        unsigned length;
    } classes[] = {
        {'a', "azAZ", 4},   {'c', "\0\37\177\177", 4}, {'d', "09", 2},     {'g', "!~", 2},
        {'l', "az", 2},     {'p', "!/:@[`{~", 8},      {'s', "\t\r  ", 4}, {'u', "AZ", 2},
        {'w', "09AZaz", 6}, {'x', "09AFaf", 6},
    };
    char small = (char)(letter | 0x20);
    uint64_t members[4] = {0};
    unsigned i = 0;

    while (i < sizeof(classes) / sizeof(classes[0]) && classes[i].letter != small)
        i++;
    if (i == sizeof(classes) / sizeof(classes[0]) || (letter | 0x20) != small)
        return false;
    for (unsigned at = 0; at < classes[i].length; at += 2)
        add_byte_range(members, (unsigned char)classes[i].ranges[at],
                       (unsigned char)classes[i].ranges[at + 1]);
    if (letter != small)
        invert_set(members);
    for (unsigned word = 0; word < 4; word++)
        set[word] |= members[word];
    return true;
}

/* ---- Compiling ---- */

struct reader {
    struct load_pattern *pattern;
    const char *at;
    const char *end;
};

/* Read an item that begins with %, after the %. */
static const char *
read_class_escape(struct reader *reader, uint64_t set[4])
{
    if (reader->at == reader->end)
        return "it ends with a %";
    if (!add_class(set, *reader->at))
        add_byte(set, (unsigned char)*reader->at);
    reader->at++;
    return NULL;
}

/* Read an item that is a set, after its [. As in Lua, a ] that comes first belongs to the set. */
static const char *
read_set(struct reader *reader, uint64_t set[4])
{
    bool is_first = true, is_inverted = reader->at < reader->end && *reader->at == '^';

    for (reader->at += is_inverted; reader->at < reader->end; is_first = false) {
        unsigned char byte = (unsigned char)*reader->at++;

        if (byte == ']' && !is_first) {
            if (is_inverted)
                invert_set(set);
            return NULL;
        }
        if (byte == '%') {
            const char *wrong = read_class_escape(reader, set);

            if (wrong != NULL)
                return wrong;
        } else if (reader->end - reader->at > 1 && *reader->at == '-' && reader->at[1] != ']') {
            if (reader->at[1] == '%')
                return "a range of a [] ends with a %";
            add_byte_range(set, byte, (unsigned char)reader->at[1]);
            reader->at += 2;
        } else {
            add_byte(set, byte);
        }
    }
    return "a [ has no ]";
}

static const char *
read_item_set(struct reader *reader, uint64_t set[4])
{
    char byte = *reader->at++;

    if (byte == '[')
        return read_set(reader, set);
    if (byte == '.') {
        invert_set(set);
        return NULL;
    }
    if (byte != '%') {
        add_byte(set, (unsigned char)byte);
        return NULL;
    }
    if (reader->at < reader->end &&
        (*reader->at == 'b' || *reader->at == 'f' || (*reader->at >= '0' && *reader->at <= '9')))
        return "%b, %f and %1 are not for patterns of a session";
    return read_class_escape(reader, set);
}

static const char *
add_item(struct load_pattern *pattern, const uint64_t set[4], char repeat)
{
    struct load_pattern_item *item = &pattern->items[pattern->number];

    if (pattern->number == LOAD_PATTERN_ITEMS)
        return "it has more than 63 items";
    memcpy(item->set, set, sizeof(item->set));
    item->repeat = repeat;
    pattern->number++;
    return NULL;
}

/* Add an item. An item with + becomes two items: one that matches once, and one with *. */
static const char *
read_item(struct reader *reader)
{
    uint64_t set[4] = {0};
    const char *wrong = read_item_set(reader, set);
    char repeat = 0;

    if (wrong != NULL)
        return wrong;
    if (reader->at < reader->end && memchr("*+-?", *reader->at, 4) != NULL)
        repeat = *reader->at++;
    if (repeat == '+') {
        wrong = add_item(reader->pattern, set, 0);
        repeat = '*';
    }
    return wrong == NULL ? add_item(reader->pattern, set, repeat) : wrong;
}

static const char *
read_parenthesis(struct reader *reader)
{
    struct load_pattern *pattern = reader->pattern;
    bool opens = *reader->at++ == '(';

    if (opens && pattern->open != NONE)
        return "it has more than one capture";
    if (opens) {
        pattern->open = pattern->number;
        return reader->at < reader->end && *reader->at == ')' ? "() is a position, and no value"
                                                              : NULL;
    }
    if (pattern->open == NONE || pattern->close != NONE)
        return "a ) has no (";
    pattern->close = pattern->number;
    return NULL;
}

/* Find the bytes with which each match begins, so that the search can skip to them. */
static void
find_prefix(struct load_pattern *pattern)
{
    while (pattern->prefix_length < pattern->number &&
           pattern->prefix_length < LOAD_PATTERN_PREFIX) {
        const struct load_pattern_item *item = &pattern->items[pattern->prefix_length];
        unsigned members = 0, byte = 0;

        for (unsigned i = 0; i < 256; i++)
            if (has_byte(item->set, (unsigned char)i)) {
                members++;
                byte = i;
            }
        if (item->repeat != 0 || members != 1)
            return;
        pattern->prefix[pattern->prefix_length++] = (char)byte;
    }
}

const char *
load_pattern_compile(struct load_pattern *pattern, const char *text, size_t length)
{
    struct reader reader = {pattern, text, text + length};
    const char *wrong = NULL;

    *pattern = (struct load_pattern){.open = NONE, .close = NONE};
    if (length > 0 && *text == '^') {
        pattern->is_anchored = true;
        reader.at++;
    }
    while (wrong == NULL && reader.at < reader.end) {
        if (*reader.at == '$' && reader.at + 1 == reader.end) {
            pattern->is_to_end = true;
            reader.at++;
        } else if (*reader.at == '(' || *reader.at == ')') {
            wrong = read_parenthesis(&reader);
        } else {
            wrong = read_item(&reader);
        }
    }
    if (wrong == NULL && pattern->open != NONE && pattern->close == NONE)
        return "a ( has no )";
    find_prefix(pattern);
    return wrong;
}

/* ---- Finding ---- */

/* A match in progress: the items before `item` have matched. */
struct way {
    /* the next item to match; if it is the number of all items, the match is complete */
    unsigned item;
    const char *from;
    const char *to;
};

/* The matches in progress at one byte, in the order in which Lua would try them. */
struct ways {
    /* a bit for each item that is the next one of a way, so that no second way is added for it */
    uint64_t has;
    unsigned number;
    struct way all[LOAD_PATTERN_ITEMS + 1];
};

static void
pass_parentheses(const struct load_pattern *pattern, struct way *way, const char *place)
{
    if (way->item == pattern->open)
        way->from = place;
    if (way->item == pattern->close)
        way->to = place;
}

/* Add a way. If its next item may match nothing, also add the way that skips the item, and so on. A
 * greedy item (with * or ?) is tried before the way that skips it, an item with - after it. If an
 * item is in `has` already, the ways that skip it were added with it. is_again: the way repeats its
 * item, so it has already passed the parentheses in front of the item. */
static void
add_ways(const struct load_pattern *pattern, struct ways *ways, struct way way, const char *place,
         bool is_again)
{
    struct way reluctant[LOAD_PATTERN_ITEMS];
    unsigned number = 0;

    for (;; way.item++, is_again = false) {
        char repeat = 0;

        if (!is_again)
            pass_parentheses(pattern, &way, place);
        if (ways->has >> way.item & 1)
            break;
        ways->has |= UINT64_C(1) << way.item;
        if (way.item < pattern->number)
            repeat = pattern->items[way.item].repeat;
        if (repeat == '-')
            reluctant[number++] = way;
        else
            ways->all[ways->number++] = way;
        if (repeat == 0)
            break;
    }
    while (number > 0)
        ways->all[ways->number++] = reluctant[--number];
}

/* Continue all ways with the byte at `place`. True: a way is complete, and is the match, because
 * Lua would not try the ways after it. */
static bool
step_ways(const struct load_pattern *pattern, const struct ways *now, struct ways *next,
          const char *place, const char *end, struct sxe_span *found)
{
    next->has = 0;
    next->number = 0;
    for (unsigned i = 0; i < now->number; i++) {
        struct way way = now->all[i];
        char repeat = pattern->items[way.item < pattern->number ? way.item : 0].repeat;

        if (way.item == pattern->number) {
            if (pattern->is_to_end && place < end)
                continue;
            if (pattern->close == NONE)
                way.to = place;
            *found = (struct sxe_span){way.from, (size_t)(way.to - way.from)};
            return true;
        }
        if (place == end || !has_byte(pattern->items[way.item].set, (unsigned char)*place))
            continue;
        way.item += repeat == 0 || repeat == '?';
        add_ways(pattern, next, way, place + 1, repeat == '*' || repeat == '-');
    }
    return false;
}

/* The first place, from `place` on, at which a match may begin; NULL: there is none. */
static const char *
next_place(const struct load_pattern *pattern, const char *place, const char *end)
{
    if (pattern->prefix_length == 0 || pattern->is_anchored)
        return place;
    return memmem(place, (size_t)(end - place), pattern->prefix, pattern->prefix_length);
}

bool
load_pattern_find(const struct load_pattern *pattern, const char *text, size_t length,
                  struct sxe_span *found)
{
    struct ways sides[2];
    struct ways *now = &sides[0], *next = &sides[1];
    const char *end = text + length;
    bool is_found = false;

    now->has = 0;
    now->number = 0;
    for (const char *place = text; place <= end; place++) {
        struct ways *moved = next;

        if (now->number == 0 && is_found)
            break;
        if (now->number == 0 && place > text && pattern->is_anchored)
            break;
        if (now->number == 0 && (place = next_place(pattern, place, end)) == NULL)
            break;
        if (!is_found && (!pattern->is_anchored || place == text))
            add_ways(pattern, now, (struct way){.from = place, .to = place}, place, false);
        is_found |= step_ways(pattern, now, next, place, end, found);
        next = now;
        now = moved;
    }
    return is_found;
}
