/* SPDX-License-Identifier: MIT
 *
 * Conditional requests, ranges and content codings (RFC 9110, 12 to 14), as pure functions.
 */
#include "sxe-http-conditional.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-date.h"
#include "sxe-http-private.h"

struct sxe_http_conditions
sxe_http_conditions_of(const struct sxe_http_parser *parser, const char *data, int64_t now)
{
    return (struct sxe_http_conditions){
        .method = parser->method,
        .if_match = sxe_http_list_of(parser, data, SXE_HTTP_FIELD_IF_MATCH),
        .if_none_match = sxe_http_list_of(parser, data, SXE_HTTP_FIELD_IF_NONE_MATCH),
        .if_modified_since = sxe_http_value_of(parser, data, SXE_HTTP_FIELD_IF_MODIFIED_SINCE),
        .if_unmodified_since = sxe_http_value_of(parser, data, SXE_HTTP_FIELD_IF_UNMODIFIED_SINCE),
        .if_range = sxe_http_value_of(parser, data, SXE_HTTP_FIELD_IF_RANGE),
        .range = sxe_http_value_of(parser, data, SXE_HTTP_FIELD_RANGE),
        .now = now,
    };
}

/* ---- Entity tags ---- */

static bool
is_weak(struct sxe_span etag)
{
    return etag.length >= 2 && memcmp(etag.base, "W/", 2) == 0;
}

/* The tag in its quotes, without W/. */
static struct sxe_span
opaque_tag(struct sxe_span etag)
{
    if (is_weak(etag)) {
        etag.base += 2;
        etag.length -= 2;
    }
    return etag;
}

bool
sxe_http_etag_is_valid(struct sxe_span etag)
{
    struct sxe_span tag = opaque_tag(etag);

    if (tag.length < 2 || tag.base[0] != '"' || tag.base[tag.length - 1] != '"')
        return false;
    for (size_t i = 1; i < tag.length - 1; i++) {
        uint8_t byte = (uint8_t)tag.base[i];

        if (byte <= ' ' || byte == '"' || byte == 0x7f)
            return false;
    }
    return true;
}

bool
sxe_http_etag_matches(struct sxe_span a, struct sxe_span b, enum sxe_http_comparison comparison)
{
    struct sxe_span tag_a = opaque_tag(a);
    struct sxe_span tag_b = opaque_tag(b);

    if (!sxe_http_etag_is_valid(a) || !sxe_http_etag_is_valid(b))
        return false;
    if (comparison == SXE_HTTP_STRONG_COMPARISON && (is_weak(a) || is_weak(b)))
        return false;
    return tag_a.length == tag_b.length && memcmp(tag_a.base, tag_b.base, tag_a.length) == 0;
}

/* The result of looking for an entity tag in a list. */
struct tags {
    bool has_tag;  /* the list has the tag */
    bool has_star; /* the list has "*", which any tag matches */
    bool is_good;  /* the list is "*", or nothing but tags */
};

static struct tags
look_for_tag(const struct sxe_http_list *field, struct sxe_span etag,
             enum sxe_http_comparison comparison)
{
    struct sxe_http_list list = *field;
    struct tags tags = {.is_good = true};
    struct sxe_span element;
    unsigned number;

    list.backslash_is_plain = true;
    for (number = 0; sxe_http_list_next(&list, &element); number++) {
        bool is_star = element.length == 1 && *element.base == '*';

        tags.has_star |= is_star;
        tags.has_tag |= sxe_http_etag_matches(element, etag, comparison);
        tags.is_good &= is_star || sxe_http_etag_is_valid(element);
    }
    tags.is_good &= !tags.has_star || number == 1;
    return tags;
}

/* ---- Conditions: whether each holds; `malformed` says that the field is not valid ---- */

/* If-Match (RFC 9110, 13.1.1) */
static bool
is_if_match_met(const struct sxe_http_conditions *conditions,
                const struct sxe_http_representation *selected)
{
    struct tags tags =
        look_for_tag(&conditions->if_match, selected->etag, SXE_HTTP_STRONG_COMPARISON);

    return tags.is_good && !selected->is_missing && (tags.has_tag || tags.has_star);
}

/* If-None-Match (RFC 9110, 13.1.2) */
static bool
is_if_none_match_met(const struct sxe_http_conditions *conditions,
                     const struct sxe_http_representation *selected)
{
    struct tags tags =
        look_for_tag(&conditions->if_none_match, selected->etag, SXE_HTTP_WEAK_COMPARISON);

    return selected->is_missing || !(tags.has_tag || tags.has_star);
}

/* Whether both the field (*date) and the representation have a date (RFC 9110, 13.1.3). */
static bool
has_both_dates(struct sxe_span field, const struct sxe_http_conditions *conditions,
               const struct sxe_http_representation *selected, int64_t *date)
{
    return !selected->is_missing && selected->modified != SXE_HTTP_NO_DATE &&
           sxe_http_date_parse(field, conditions->now, date) == 0;
}

/* If-Unmodified-Since (RFC 9110, 13.1.4) */
static bool
is_if_unmodified_since_met(const struct sxe_http_conditions *conditions,
                           const struct sxe_http_representation *selected)
{
    int64_t date;

    return !has_both_dates(conditions->if_unmodified_since, conditions, selected, &date) ||
           selected->modified <= date;
}

/* If-Modified-Since (RFC 9110, 13.1.3) */
static bool
is_if_modified_since_met(const struct sxe_http_conditions *conditions,
                         const struct sxe_http_representation *selected)
{
    int64_t date;

    return !has_both_dates(conditions->if_modified_since, conditions, selected, &date) ||
           selected->modified > date;
}

/* If-Range (RFC 9110, 13.1.5) */
static bool
is_if_range_met(const struct sxe_http_conditions *conditions,
                const struct sxe_http_representation *selected)
{
    struct sxe_span field = conditions->if_range;
    int64_t date;

    if (field.base == NULL ||
        sxe_http_etag_matches(field, selected->etag, SXE_HTTP_STRONG_COMPARISON))
        return true;
    return !selected->modified_is_weak && has_both_dates(field, conditions, selected, &date) &&
           selected->modified == date;
}

static bool
is_get_or_head(const struct sxe_http_conditions *conditions)
{
    return conditions->method == SXE_HTTP_GET || conditions->method == SXE_HTTP_HEAD;
}

unsigned
sxe_http_precondition(const struct sxe_http_conditions *conditions,
                      const struct sxe_http_representation *selected)
{
    bool is_read = is_get_or_head(conditions);

    if (sxe_http_list_is_there(&conditions->if_match)) {
        if (!is_if_match_met(conditions, selected))
            return 412;
    } else if (!is_if_unmodified_since_met(conditions, selected)) {
        return 412;
    }
    if (sxe_http_list_is_there(&conditions->if_none_match)) {
        if (!is_if_none_match_met(conditions, selected))
            return is_read ? 304 : 412;
    } else if (is_read && !is_if_modified_since_met(conditions, selected)) {
        return 304;
    }
    return 0;
}

/* ---- Ranges ---- */

enum range_result { RANGE_BAD, RANGE_UNSATISFIABLE, RANGE_GOOD };

/* Read one or more digits. A number that is larger than UINT64_MAX becomes UINT64_MAX. */
static bool
take_position(struct sxe_span *text, uint64_t *position)
{
    const char *from = text->base;

    *position = 0;
    for (; text->length > 0; text->base++, text->length--) {
        unsigned digit = (unsigned)(uint8_t)*text->base - '0';

        if (digit > 9)
            break;
        *position = *position > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *position * 10 + digit;
    }
    return text->base != from;
}

static bool
take_dash(struct sxe_span *text)
{
    if (text->length == 0 || *text->base != '-')
        return false;
    text->base++;
    text->length--;
    return true;
}

/* Read an int-range or suffix-range (RFC 9110, 14.1.1) of a representation of `length` bytes. */
static enum range_result
read_range(struct sxe_span spec, uint64_t length, struct sxe_http_range *range)
{
    uint64_t first;
    uint64_t last = UINT64_MAX;

    if (take_dash(&spec)) {
        if (!take_position(&spec, &last) || spec.length > 0)
            return RANGE_BAD;
        range->length = last < length ? last : length;
        range->first = length - range->length;
        return last > 0 ? RANGE_GOOD : RANGE_UNSATISFIABLE;
    }
    if (!take_position(&spec, &first) || !take_dash(&spec))
        return RANGE_BAD;
    if (spec.length > 0 && (!take_position(&spec, &last) || spec.length > 0 || last < first))
        return RANGE_BAD;
    if (first >= length)
        return RANGE_UNSATISFIABLE;
    range->first = first;
    range->length = (last < length ? last : length - 1) - first + 1;
    return RANGE_GOOD;
}

static bool
is_touching(const struct sxe_http_range *a, const struct sxe_http_range *b)
{
    return a->first <= b->first + b->length && b->first <= a->first + a->length;
}

static struct sxe_http_range
join_ranges(const struct sxe_http_range *a, const struct sxe_http_range *b)
{
    uint64_t end_a = a->first + a->length;
    uint64_t end_b = b->first + b->length;
    uint64_t first = a->first < b->first ? a->first : b->first;

    return (struct sxe_http_range){first, (end_a > end_b ? end_a : end_b) - first};
}

/* Add a range to ranges that do not touch each other. Join the new range with all ranges that it
 * touches; the result takes the place of the first of these. Returns the new number of ranges. */
static unsigned
add_range(struct sxe_http_range *ranges, unsigned number, struct sxe_http_range range)
{
    unsigned kept = 0;
    unsigned place = number;

    for (unsigned i = 0; i < number; i++) {
        if (!is_touching(&ranges[i], &range)) {
            ranges[kept++] = ranges[i];
            continue;
        }
        range = join_ranges(&ranges[i], &range);
        if (place == number)
            place = kept++;
    }
    if (place == number)
        place = kept++;
    ranges[place] = range;
    return kept;
}

/* Skip "bytes=" (RFC 9110, 14.1: the case of a unit does not matter). */
static bool
take_range_unit(struct sxe_span *text)
{
    const size_t length = SXE_LITERAL_LENGTH("bytes=");

    if (text->length < length || !sxe__http_is_same(text->base, "bytes=", length))
        return false;
    text->base += length;
    text->length -= length;
    return true;
}

/* Read Range (RFC 9110, 14.2). Returns the number of ranges; 0: send all; or -ERANGE. */
static int
read_ranges(struct sxe_span field, uint64_t length, struct sxe_http_range *ranges, unsigned max)
{
    struct sxe_http_list list;
    struct sxe_span spec;
    struct sxe_http_range range;
    uint64_t left = length;
    unsigned there = 0; /* how many satisfiable ranges have come so far */
    unsigned number = 0;

    if (!take_range_unit(&field))
        return 0;
    list = sxe_http_list_in(field);
    while (sxe_http_list_next(&list, &spec)) {
        enum range_result result = read_range(spec, length, &range);

        if (result == RANGE_BAD)
            return -ERANGE;
        if (result == RANGE_UNSATISFIABLE)
            continue;
        /* Too many ranges, or more bytes than the whole representation has: send the whole, which
         * is less. */
        if (there++ == max || range.length > left)
            return 0;
        left -= range.length;
        number = add_range(ranges, number, range);
    }
    if (number == 0)
        return -ERANGE;
    /* The last n bytes of an empty representation are a satisfiable range, but Content-Range cannot
     * express it: send all. */
    return length > 0 ? (int)number : 0;
}

int
sxe_http_select_ranges(const struct sxe_http_conditions *conditions,
                       const struct sxe_http_representation *selected,
                       struct sxe_http_range *ranges, unsigned max)
{
    if (conditions->method != SXE_HTTP_GET || conditions->range.base == NULL ||
        !is_if_range_met(conditions, selected))
        return 0;
    return read_ranges(conditions->range, selected->length, ranges, max);
}

size_t
sxe_http_content_range(const struct sxe_http_range *range, uint64_t length,
                       char room[SXE_HTTP_CONTENT_RANGE_MAX])
{
    int written;

    if (range == NULL)
        written = snprintf(room, SXE_HTTP_CONTENT_RANGE_MAX, "bytes */%" PRIu64, length);
    else
        written =
            snprintf(room, SXE_HTTP_CONTENT_RANGE_MAX, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
                     range->first, range->first + range->length - 1, length);
    return (size_t)written;
}

/* ---- Content codings ---- */

enum { NOT_LISTED = -1, MALFORMED = -1, WEIGHT_MAX = 1000 };

static bool
is_unit_word(struct sxe_span text, const char *word)
{
    return text.length == strlen(word) && sxe__http_is_same(text.base, word, text.length);
}

/* Read a qvalue (RFC 9110, 12.4.2). Returns the qvalue in thousandths, or MALFORMED. */
static int
read_weight(struct sxe_span text)
{
    int weight = 0;
    int unit = WEIGHT_MAX;

    if (text.length < 1 || text.length > 5 || (text.length > 1 && text.base[1] != '.'))
        return MALFORMED;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned)(uint8_t)text.base[i] - '0';

        if (i == 1)
            continue;
        if (digit > 9)
            return MALFORMED;
        weight += (int)digit * unit;
        unit /= 10;
    }
    return weight <= WEIGHT_MAX ? weight : MALFORMED;
}

/* Split codings [ weight ] (RFC 9110, 12.5.3). Sets *name to the coding's name; returns the weight,
 * or MALFORMED. */
static int
split_coding(struct sxe_span element, struct sxe_span *name)
{
    const char *semicolon = memchr(element.base, ';', element.length);
    struct sxe_span weight;

    *name = element;
    if (semicolon == NULL)
        return WEIGHT_MAX;
    name->length = (size_t)(semicolon - element.base);
    weight = (struct sxe_span){semicolon + 1, element.length - name->length - 1};
    *name = sxe_http_without_blanks(*name);
    weight = sxe_http_without_blanks(weight);
    if (weight.length < 2 || !sxe__http_is_same(weight.base, "q=", 2))
        return MALFORMED;
    return read_weight((struct sxe_span){weight.base + 2, weight.length - 2});
}

/* Whether the name names the coding: x-gzip is gzip (RFC 9110, 8.4.1.3). */
static bool
is_coding(struct sxe_span name, const char *coding)
{
    return is_unit_word(name, coding) ||
           (strcmp(coding, "gzip") == 0 && is_unit_word(name, "x-gzip"));
}

/* Fill in the weights of the offered codings and, after them, of identity. A coding has the weight
 * of the first valid element that names it; if none does, the weight of "*". */
static void
read_weights(struct sxe_http_list list, const char *const *offered, unsigned number, int *weights)
{
    struct sxe_span element;
    struct sxe_span name;
    int rest = NOT_LISTED;

    for (unsigned i = 0; i <= number; i++)
        weights[i] = NOT_LISTED;
    while (sxe_http_list_next(&list, &element)) {
        int weight = split_coding(element, &name);

        if (weight == MALFORMED)
            continue;
        if (rest == NOT_LISTED && is_unit_word(name, "*"))
            rest = weight;
        for (unsigned i = 0; i <= number; i++) {
            if (weights[i] == NOT_LISTED && is_coding(name, i < number ? offered[i] : "identity"))
                weights[i] = weight;
        }
    }
    for (unsigned i = 0; i <= number; i++)
        weights[i] = weights[i] == NOT_LISTED ? rest : weights[i];
}

int
sxe_http_select_coding(const struct sxe_http_list *accept_encoding, const char *const *offered,
                       unsigned number)
{
    int weights[SXE_HTTP_CODINGS_MAX + 1];
    int best = -1;
    int weight_best;

    if (number > SXE_HTTP_CODINGS_MAX)
        number = SXE_HTTP_CODINGS_MAX;
    read_weights(*accept_encoding, offered, number, weights);
    weight_best = weights[number];
    for (unsigned i = 0; i < number; i++) {
        if (weights[i] > 0 &&
            (weights[i] > weight_best || (best < 0 && weights[i] == weight_best))) {
            weight_best = weights[i];
            best = (int)i;
        }
    }
    return best;
}
