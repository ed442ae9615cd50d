/* SPDX-License-Identifier: MIT
 *
 * Finds names. The length and the last letter of a well-known field's name give a place in a table;
 * one comparison with the name there decides.
 */
#include "sxe-http-private.h"

#include <string.h>

/* The text is in the table itself, so that no pointer has to be followed, or relocated by the
 * dynamic linker. */
struct name {
    char text[23];
    uint8_t length;
};

#define PLACE(length, last) (((length)*8 + (last)) % 128)

#define NAME_OF_METHOD(id)            [SXE_HTTP_##id] = {#id, SXE_LITERAL_LENGTH(#id)},
#define NAME_OF_FIELD(id, name, last) [SXE_HTTP_FIELD_##id] = {name, SXE_LITERAL_LENGTH(name)},
#define PLACE_OF_FIELD(id, name, last) \
    [PLACE(SXE_LITERAL_LENGTH(name), last)] = SXE_HTTP_FIELD_##id,
#define REFUSAL(id, status, why) [SXE_HTTP_REFUSED_##id] = {why, status},

static const struct name methods[] = {[SXE_HTTP_OTHER] = {"", 0}, SXE_HTTP_METHODS(NAME_OF_METHOD)};
static const struct name fields[] = {[SXE_HTTP_FIELD_OTHER] = {"", 0},
                                     SXE_HTTP_FIELDS(NAME_OF_FIELD)};
/* The compiler warns here if two names have the same place; then change PLACE. */
static const uint8_t places[128] = {SXE_HTTP_FIELDS(PLACE_OF_FIELD)};
static const struct {
    const char *text;
    unsigned status;
} refusals[] = {[SXE_HTTP_NOT_REFUSED] = {"", 0}, SXE_HTTP_REFUSALS(REFUSAL)};

static uint64_t
word8(const char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word | UINT64_C(0x2020202020202020);
}

static uint32_t
word4(const char *bytes)
{
    uint32_t word;

    memcpy(&word, bytes, sizeof(word));
    return word | UINT32_C(0x20202020);
}

/* Whether a token is a known name. word4 and word8 set bit 5 of each byte, which makes letters
 * small and turns no other byte of a token into a letter or a "-". The last word may overlap the
 * one before it. */
static bool
is_known_name(const char *token, const struct name *name)
{
    size_t length = name->length;
    size_t i = 0;

    if (length < sizeof(uint32_t))
        return sxe__http_is_same(token, name->text, length);
    if (length < sizeof(uint64_t))
        return word4(token) == word4(name->text) &&
               word4(token + length - 4) == word4(name->text + length - 4);
    while (i + sizeof(uint64_t) < length) {
        if (word8(token + i) != word8(name->text + i))
            return false;
        i += sizeof(uint64_t);
    }
    return word8(token + length - 8) == word8(name->text + length - 8);
}

enum sxe_http_field_id
sxe__http_field_id_of(const char *token, size_t length)
{
    size_t last = (uint8_t)token[length - 1] | 0x20u;
    uint8_t id = places[PLACE(length, last)];

    return fields[id].length == length && is_known_name(token, &fields[id]) ? id
                                                                            : SXE_HTTP_FIELD_OTHER;
}

enum sxe_http_method
sxe__http_method_of(const char *name, size_t length)
{
    for (unsigned id = SXE_HTTP_OTHER + 1; id < sizeof(methods) / sizeof(methods[0]); id++) {
        if (methods[id].length == length && methods[id].text[0] == name[0] &&
            memcmp(methods[id].text, name, length) == 0)
            return id;
    }
    return SXE_HTTP_OTHER;
}

static uint8_t
lower_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : (uint8_t)c;
}

bool
sxe__http_is_same(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (lower_letter(a[i]) != lower_letter(b[i]))
            return false;
    }
    return true;
}

/* Find the first field from index `i` on that has the name. */
static const struct sxe_http_field *
find_field_name(const struct sxe_http_parser *parser, const char *data, struct sxe_span name,
                size_t i)
{
    for (; i < parser->number; i++) {
        const struct sxe_http_field *field = &parser->fields[i];

        if (field->name_length == name.length &&
            sxe__http_is_same(data + field->name, name.base, name.length))
            return field;
    }
    return NULL;
}

const struct sxe_http_field *
sxe_http_field(const struct sxe_http_parser *parser, const char *data, const char *name)
{
    size_t length = strlen(name);
    enum sxe_http_field_id id =
        length > 0 ? sxe__http_field_id_of(name, length) : SXE_HTTP_FIELD_OTHER;

    if (id != SXE_HTTP_FIELD_OTHER)
        return sxe_http_known(parser, id);
    return find_field_name(parser, data, (struct sxe_span){name, length}, 0);
}

const struct sxe_http_field *
sxe_http_field_next(const struct sxe_http_parser *parser, const char *data,
                    const struct sxe_http_field *field)
{
    return find_field_name(parser, data, (struct sxe_span){data + field->name, field->name_length},
                           (size_t)(field - parser->fields) + 1);
}

unsigned
sxe_http_refusal_status(enum sxe_http_refusal refusal)
{
    return refusals[refusal].status;
}

const char *
sxe_http_refusal_text(enum sxe_http_refusal refusal)
{
    return refusals[refusal].text;
}

const char *
sxe_http_method_name(enum sxe_http_method method)
{
    return methods[method].text;
}

const char *
sxe_http_field_name(enum sxe_http_field_id id)
{
    return fields[id].text;
}
