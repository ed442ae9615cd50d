/* SPDX-License-Identifier: MIT
 *
 * Walks the elements of lists, over all fields of a name.
 */
#include "sxe-http-list.h"

#include "sxe-http-private.h"

static struct sxe_span
span_of_field(const struct sxe_http_field *field, const char *data)
{
    return (struct sxe_span){data + field->value, field->value_length};
}

static bool
is_field_repeated(const struct sxe_http_parser *parser, enum sxe_http_field_id id)
{
    return (parser->repeated >> id & 1) != 0;
}

struct sxe_http_list
sxe_http_list_of(const struct sxe_http_parser *parser, const char *data, enum sxe_http_field_id id)
{
    const struct sxe_http_field *field = sxe_http_known(parser, id);
    struct sxe_http_list list = {.data = data, .field = field};

    if (field == NULL)
        return list;
    list.rest = span_of_field(field, data);
    list.parser = is_field_repeated(parser, id) ? parser : NULL;
    return list;
}

struct sxe_http_list
sxe_http_list_in(struct sxe_span text)
{
    return (struct sxe_http_list){.rest = text};
}

/* How many bytes are before the next comma that is not inside quotes. */
static size_t
length_of_element(const struct sxe_http_list *list)
{
    bool is_quoted = false;
    size_t i;

    for (i = 0; i < list->rest.length; i++) {
        char byte = list->rest.base[i];

        if (byte == ',' && !is_quoted)
            return i;
        if (byte == '"')
            is_quoted = !is_quoted;
        else if (byte == '\\' && is_quoted && !list->backslash_is_plain)
            i++;
    }
    return list->rest.length;
}

static bool
is_list_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

struct sxe_span
sxe_http_without_blanks(struct sxe_span text)
{
    while (text.length > 0 && is_list_blank(text.base[0])) {
        text.base++;
        text.length--;
    }
    while (text.length > 0 && is_list_blank(text.base[text.length - 1]))
        text.length--;
    return text;
}

static bool
next_field_line(struct sxe_http_list *list)
{
    if (list->parser == NULL)
        return false;
    list->field = sxe_http_field_next(list->parser, list->data, list->field);
    if (list->field == NULL) {
        list->parser = NULL;
        return false;
    }
    list->rest = span_of_field(list->field, list->data);
    return true;
}

bool
sxe_http_list_next(struct sxe_http_list *list, struct sxe_span *element)
{
    do {
        while (list->rest.length > 0) {
            size_t length = length_of_element(list);
            size_t taken = length < list->rest.length ? length + 1 : length;

            *element = sxe_http_without_blanks((struct sxe_span){list->rest.base, length});
            list->rest = (struct sxe_span){list->rest.base + taken, list->rest.length - taken};
            if (element->length > 0)
                return true;
        }
    } while (next_field_line(list));
    return false;
}

struct sxe_span
sxe_http_value_of(const struct sxe_http_parser *parser, const char *data, enum sxe_http_field_id id)
{
    const struct sxe_http_field *field = sxe_http_known(parser, id);

    if (field == NULL)
        return (struct sxe_span){NULL, 0};
    return is_field_repeated(parser, id) ? (struct sxe_span){"", 0} : span_of_field(field, data);
}
