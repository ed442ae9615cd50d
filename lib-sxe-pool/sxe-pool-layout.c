/* SPDX-License-Identifier: MIT
 *
 * Parses the text of a pool's fields, and lays the fields out as C lays out a struct.
 */
#include "sxe-pool-layout.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"

static const struct {
    const char *name;
    char kind;
    uint32_t size;
} types[] = {
    {"u8", 'u', 1},  {"u16", 'u', 2}, {"u32", 'u', 4},  {"u64", 'u', 8},
    {"i8", 'i', 1},  {"i16", 'i', 2}, {"i32", 'i', 4},  {"i64", 'i', 8},
    {"f32", 'f', 4}, {"f64", 'f', 8}, {"bool", 'b', 1},
};

/* The part of the text that is not parsed yet. */
struct scan {
    const char *at;
    char *why;
};

static int SXE_PRINTF(2, 3) refuse_fields(const struct scan *scan, const char *format, ...)
{
    va_list arguments;

    if (scan->why == NULL)
        return -EINVAL;
    va_start(arguments, format);
    vsnprintf(scan->why, SXE_POOL_WHY_SIZE, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

static void
skip_layout_blanks(struct scan *scan)
{
    scan->at += strspn(scan->at, BLANKS);
}

/* How many letters, digits and underscores the text continues with. */
static int
word_length(const struct scan *scan)
{
    int length = 0;

    while (isalnum((unsigned char)scan->at[length]) || scan->at[length] == '_')
        length++;
    return length;
}

static bool
take_sign(struct scan *scan, char sign)
{
    skip_layout_blanks(scan);
    if (*scan->at != sign)
        return false;
    scan->at++;
    return true;
}

/* Get the next word for a message, at most 20 bytes of it. */
static const char *
next_word_found(const struct scan *scan, char text[32])
{
    if (*scan->at == '\0')
        return "the end";
    snprintf(text, 32, "'%.20s'", scan->at);
    return text;
}

/* Parse the "[24]" of "char[24]". */
static int
take_length(struct scan *scan, struct sxe_pool_field *field)
{
    char text[32];
    char *end;

    if (!take_sign(scan, '['))
        return refuse_fields(scan, "a length expected after char, as in char[24], not %s",
                             next_word_found(scan, text));
    skip_layout_blanks(scan);
    const unsigned long length =
        isdigit((unsigned char)*scan->at) ? strtoul(scan->at, &end, 10) : 0;
    if (length == 0 || length > SXE_POOL_FIELD_TEXT_MAX)
        return refuse_fields(scan, "the length of char[] is 1 to %u, not %s",
                             SXE_POOL_FIELD_TEXT_MAX, next_word_found(scan, text));
    scan->at = end;
    if (!take_sign(scan, ']'))
        return refuse_fields(scan, "']' expected after the length of char, not %s",
                             next_word_found(scan, text));
    field->kind = 'c';
    field->size = (uint32_t)length;
    return 0;
}

static int
take_field_type(struct scan *scan, struct sxe_pool_field *field)
{
    char text[32];

    skip_layout_blanks(scan);
    const size_t length = (size_t)word_length(scan);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (length != strlen(types[i].name) || memcmp(scan->at, types[i].name, length) != 0)
            continue;
        scan->at += length;
        field->kind = types[i].kind;
        field->size = types[i].size;
        return 0;
    }
    if (length == 4 && memcmp(scan->at, "char", length) == 0) {
        scan->at += length;
        return take_length(scan, field);
    }
    return refuse_fields(
        scan,
        "a type expected (u8 to u64, i8 to i64, f32, f64, bool or char[1] to char[%u]), "
        "not %s",
        SXE_POOL_FIELD_TEXT_MAX, next_word_found(scan, text));
}

static int
take_field_name(struct scan *scan, const struct sxe_pool_layout *layout,
                struct sxe_pool_field *field)
{
    char text[32];

    skip_layout_blanks(scan);
    const int length = word_length(scan);
    if (length == 0 || isdigit((unsigned char)*scan->at))
        return refuse_fields(scan, "a name expected after the type, not %s",
                             next_word_found(scan, text));
    if (length > (int)SXE_POOL_FIELD_NAME_MAX)
        return refuse_fields(scan, "the name of a field has at most %u bytes, not %d as %.*s",
                             SXE_POOL_FIELD_NAME_MAX, length, length, scan->at);
    memcpy(field->name, scan->at, (size_t)length);
    field->name[length] = '\0';
    if (sxe_pool_layout_find(layout, field->name) != NULL)
        return refuse_fields(scan, "there are two fields of the name %s", field->name);
    scan->at += length;
    return 0;
}

static uint32_t
alignment_of(const struct sxe_pool_field *field)
{
    return field->kind == 'c' ? 1 : field->size;
}

static uint32_t
round_up_field(uint32_t size, uint32_t alignment)
{
    return (size + alignment - 1) & ~(alignment - 1);
}

static int
take_field(struct scan *scan, struct sxe_pool_layout *layout)
{
    struct sxe_pool_field *field = &layout->field[layout->number];
    int result = take_field_type(scan, field);

    if (result == 0)
        result = take_field_name(scan, layout, field);
    if (result != 0)
        return result;
    const uint32_t alignment = alignment_of(field);
    field->offset = round_up_field(layout->size, alignment);
    layout->size = field->offset + field->size;
    layout->alignment = alignment > layout->alignment ? alignment : layout->alignment;
    layout->number++;
    return 0;
}

int
sxe_pool_layout_parse(struct sxe_pool_layout *layout, const char *text, char *why)
{
    struct scan scan = {text, why};
    char left[32];
    int result;

    *layout = (struct sxe_pool_layout){.alignment = 1};
    if (strnlen(text, SXE_POOL_FIELDS_MAX + 1) > SXE_POOL_FIELDS_MAX)
        return refuse_fields(&scan, "the text of the fields has at most %u bytes",
                             SXE_POOL_FIELDS_MAX);
    skip_layout_blanks(&scan);
    if (*scan.at == '\0')
        return 0;
    do {
        result = take_field(&scan, layout);
    } while (result == 0 && take_sign(&scan, ','));
    if (result != 0)
        return result;
    if (*scan.at != '\0')
        return refuse_fields(&scan, "',' expected after field %s, not %s",
                             layout->field[layout->number - 1].name, next_word_found(&scan, left));
    layout->size = round_up_field(layout->size, layout->alignment);
    return 0;
}

const struct sxe_pool_field *
sxe_pool_layout_find(const struct sxe_pool_layout *layout, const char *name)
{
    for (unsigned i = 0; i < layout->number; i++) {
        if (strcmp(layout->field[i].name, name) == 0)
            return &layout->field[i];
    }
    return NULL;
}
