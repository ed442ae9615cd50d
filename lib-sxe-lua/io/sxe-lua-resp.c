/* SPDX-License-Identifier: MIT
 *
 * What: the scanner of replies of Redis, see sxe-lua-resp-private.h.
 */
#include "sxe-lua-resp-private.h"

#include <stdlib.h>
#include <string.h>

void
sxe__resp_init(struct sxe__resp *resp, size_t max)
{
    *resp = (struct sxe__resp){.max = max};
}

static bool
is_text_type(char type)
{
    return type == '$' || type == '=' || type == '!';
}

bool
sxe__resp_is_pairs(char type)
{
    return type == '%' || type == '|';
}

bool
sxe__resp_is_list(char type)
{
    return type == '*' || type == '~' || type == '>' || sxe__resp_is_pairs(type);
}

static enum sxe__resp_result
refuse_resp_reply(struct sxe__resp *resp, const char *why)
{
    resp->why = why;
    return SXE__RESP_BAD;
}

/* Convert a text that is one decimal number of 64 bits. False: the text is no such number. */
static bool
read_resp_number(const char *text, size_t length, int64_t *number)
{
    bool is_negative = length > 0 && text[0] == '-';
    size_t i = is_negative || (length > 0 && text[0] == '+') ? 1 : 0;
    uint64_t limit = (uint64_t)INT64_MAX + is_negative;
    uint64_t value = 0;

    if (i == length)
        return false;
    for (; i < length; i++) {
        unsigned digit = (unsigned)(text[i] - '0');

        if (digit > 9 || value > (limit - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = (int64_t)(is_negative ? 0 - value : value);
    return true;
}

/* Whether a text is a number. The text ends before a CR, where strtod stops. */
static bool
is_double(const char *text, size_t length)
{
    char *end;

    if (length == 0 || strchr(" \t\v\f\n\r", text[0]) != NULL)
        return false;
    strtod(text, &end);
    return end == text + length;
}

static bool
is_big_number(const char *text, size_t length)
{
    size_t i = length > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;

    return length > i && strspn(text + i, "0123456789") == length - i;
}

/* Whether the text of a line is valid for its element's type. */
static bool
is_line(const struct sxe__resp_element *element)
{
    const char *text = element->text;

    switch (element->type) {
    case '+':
    case '-':
    case ':': /* read_element_line has read the number */
        return true;
    case ',':
        return is_double(text, element->length);
    case '(':
        return is_big_number(text, element->length);
    case '#':
        return element->length == 1 && (text[0] == 't' || text[0] == 'f');
    default:
        return element->type == '_' && element->length == 0;
    }
}

/* Read the line of an element, which ends with CRLF before `end`; false: the number in the line is
 * invalid. */
static bool
read_element_line(const char *bytes, const char *end, struct sxe__resp_element *element)
{
    *element = (struct sxe__resp_element){
        .type = bytes[0], .text = bytes + 1, .length = (size_t)(end - bytes) - 1};
    if (element->type != ':' && !is_text_type(element->type) && !sxe__resp_is_list(element->type))
        return true;
    return read_resp_number(element->text, element->length, &element->value);
}

/* Count an element of `size` bytes as taken, and end the lists whose last element it is. */
static enum sxe__resp_result
end_element(struct sxe__resp *resp, size_t size)
{
    resp->used = size;
    resp->size += size;
    resp->seen = 0;
    while (resp->depth > 0) {
        if (--resp->left[resp->depth - 1] > 0)
            return SXE__RESP_ELEMENT;
        resp->depth--;
    }
    resp->size = 0;
    return SXE__RESP_REPLY;
}

/* Begin a list. The element that an attribute describes counts as the attribute's last element. */
static enum sxe__resp_result
begin_resp_list(struct sxe__resp *resp, const struct sxe__resp_element *element, size_t size)
{
    uint64_t number = (uint64_t)element->value;

    if (element->value < 0)
        return refuse_resp_reply(resp, "a list with such a number of elements");
    if (number > resp->max)
        return refuse_resp_reply(resp, NULL);
    if (sxe__resp_is_pairs(element->type))
        number = 2 * number + (element->type == '|');
    if (number == 0)
        return end_element(resp, size);
    if (resp->depth == SXE__RESP_DEPTH)
        return refuse_resp_reply(resp, "lists in lists in lists, 32 times");
    resp->left[resp->depth++] = number;
    resp->used = size;
    resp->size += size;
    resp->seen = 0;
    return SXE__RESP_ELEMENT;
}

/* Take a text with a length, which begins at `from`. */
static enum sxe__resp_result
take_resp_text(struct sxe__resp *resp, struct sxe__resp_element *element, size_t from,
               const char *bytes, size_t length)
{
    size_t number = (size_t)element->value;
    /* bytes of the reply, with the CRLF at the end of this text */
    size_t before = resp->size + from + 2;

    if (element->value < 0)
        return refuse_resp_reply(resp, "text of such a length");
    if (number > resp->max || before > resp->max - number)
        return refuse_resp_reply(resp, NULL);
    if (element->type == '=' && (number < 4 || (length - from >= 4 && bytes[from + 3] != ':')))
        return refuse_resp_reply(resp, "verbatim text without a format");
    if (length - from < number + 2)
        return SXE__RESP_MORE;
    if (bytes[from + number] != '\r' || bytes[from + number + 1] != '\n')
        return refuse_resp_reply(resp, "text that is longer than it says");
    element->text = bytes + from;
    element->length = number;
    return end_element(resp, from + number + 2);
}

/* Take the element whose line ends with the CR at `end`. */
static enum sxe__resp_result
take_resp_element(struct sxe__resp *resp, const char *bytes, size_t length, const char *end,
                  struct sxe__resp_element *element)
{
    size_t size = (size_t)(end - bytes) + 2;

    if (!read_element_line(bytes, end, element))
        return refuse_resp_reply(resp, "a number that is not written in digits");
    if (element->value == -1 && (element->type == '$' || element->type == '*'))
        return end_element(resp, size);
    if (is_text_type(element->type))
        return take_resp_text(resp, element, size, bytes, length);
    if (sxe__resp_is_list(element->type))
        return begin_resp_list(resp, element, size);
    if (!is_line(element))
        return refuse_resp_reply(resp, "an element of no type that there is");
    return end_element(resp, size);
}

/* Find the CR at the end of the line; NULL: the CR has not come yet. */
static const char *
find_end(struct sxe__resp *resp, const char *bytes, size_t length)
{
    const char *feed = memchr(bytes + resp->seen, '\n', length - resp->seen);

    while (feed != NULL && (feed == bytes || feed[-1] != '\r'))
        feed = memchr(feed + 1, '\n', (size_t)(bytes + length - feed - 1));
    if (feed == NULL)
        resp->seen = length;
    return feed == NULL ? NULL : feed - 1;
}

enum sxe__resp_result
sxe__resp_take(struct sxe__resp *resp, const char *bytes, size_t length,
               struct sxe__resp_element *element)
{
    const char *end = find_end(resp, bytes, length);
    enum sxe__resp_result result;

    if ((end == NULL ? bytes + length : end) - bytes > SXE__RESP_LINE_MAX)
        return refuse_resp_reply(resp, "a line without an end");
    if (end == NULL)
        return SXE__RESP_MORE;
    if (end == bytes)
        return refuse_resp_reply(resp, "an empty line");
    result = take_resp_element(resp, bytes, length, end, element);
    if (result == SXE__RESP_ELEMENT && resp->size >= resp->max)
        return refuse_resp_reply(resp, NULL);
    return result;
}
