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

void
sxe__resp_next(struct sxe__resp *resp)
{
    sxe__resp_init(resp, resp->max);
}

bool
sxe__resp_is_text(char type)
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

static int
refuse_reply(struct sxe__resp *resp, const char *why)
{
    resp->why = why;
    return -1;
}

/* A decimal number of 64 bits, all of the text; false: it is none. */
static bool
read_number(const char *text, size_t length, int64_t *number)
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

/* Whether a text is a number. It ends before a CR, where strtod stops. */
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

/* Whether the text of a line is right for its type. */
static bool
is_line(const struct sxe__resp_element *element)
{
    const char *text = element->text;

    switch (element->type) {
    case '+':
    case '-':
    case ':': /* its number was read already */
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

/* Read the line of an element, which ends with CRLF before end; false: its number is wrong. */
static bool
read_line(const char *bytes, const char *end, struct sxe__resp_element *element)
{
    *element = (struct sxe__resp_element){
        .type = bytes[0], .text = bytes + 1, .length = (size_t)(end - bytes) - 1};
    if (element->type != ':' && !sxe__resp_is_text(element->type) &&
        !sxe__resp_is_list(element->type))
        return true;
    return read_number(element->text, element->length, &element->number);
}

const char *
sxe__resp_element(const char *bytes, struct sxe__resp_element *element)
{
    const char *end = rawmemchr(bytes, '\r');

    /* A text line may have a CR inside. */
    while (end[1] != '\n')
        end = rawmemchr(end + 1, '\r');
    (void)read_line(bytes, end, element);
    end += 2;
    if (!sxe__resp_is_text(element->type) || element->number < 0)
        return end;
    element->text = end;
    element->length = (size_t)element->number;
    return end + element->length + 2;
}

/* An element ended, and so do the lists of which it is the last. 1: so does the reply. */
static int
end_element(struct sxe__resp *resp)
{
    while (resp->depth > 0) {
        if (--resp->left[resp->depth - 1] > 0)
            return 0;
        resp->depth--;
    }
    return 1;
}

/* Begin a list. An attribute counts the element that it describes as its last one. */
static int
begin_list(struct sxe__resp *resp, const struct sxe__resp_element *element)
{
    uint64_t number = (uint64_t)element->number;

    if (element->number < 0 || number > resp->max)
        return refuse_reply(resp, "a list with such a number of elements");
    if (sxe__resp_is_pairs(element->type))
        number = 2 * number + (element->type == '|');
    if (number == 0)
        return end_element(resp);
    if (resp->depth == SXE__RESP_DEPTH)
        return refuse_reply(resp, "lists in lists in lists, 32 times");
    resp->left[resp->depth++] = number;
    return 0;
}

/* Take a text with a length, which begins at `from`. Returns 2 if more bytes must come. */
static int
take_text(struct sxe__resp *resp, const struct sxe__resp_element *element, size_t from,
          const char *bytes, size_t length)
{
    size_t number = (size_t)element->number;

    if (element->number < 0 || number > resp->max - 2 || from > resp->max - 2 - number)
        return refuse_reply(resp, "text of such a length");
    if (element->type == '=' && (number < 4 || (length - from >= 4 && bytes[from + 3] != ':')))
        return refuse_reply(resp, "verbatim text without a format");
    if (length - from < number + 2)
        return 2;
    if (bytes[from + number] != '\r' || bytes[from + number + 1] != '\n')
        return refuse_reply(resp, "text that is longer than it says");
    resp->at = from + number + 2;
    return end_element(resp);
}

/* Take the element at resp->at, whose line ends before the CR at `end`. Returns as sxe__resp_scan,
 * or 2. */
static int
take_element(struct sxe__resp *resp, const char *bytes, size_t length, const char *end)
{
    struct sxe__resp_element element;
    size_t after = (size_t)(end - bytes) + 2;

    if (!read_line(bytes + resp->at, end, &element))
        return refuse_reply(resp, "a number that is none");
    if (element.number == -1 && (element.type == '$' || element.type == '*')) {
        resp->at = after;
        return end_element(resp);
    }
    if (sxe__resp_is_text(element.type))
        return take_text(resp, &element, after, bytes, length);
    if (!sxe__resp_is_list(element.type) && !is_line(&element))
        return refuse_reply(resp, "an element of no type that there is");
    resp->at = after;
    return sxe__resp_is_list(element.type) ? begin_list(resp, &element) : end_element(resp);
}

/* The CR at the end of the line; NULL: it has not come yet. */
static const char *
find_end(struct sxe__resp *resp, const char *bytes, size_t length)
{
    const char *from = bytes + (resp->seen > resp->at ? resp->seen : resp->at);
    const char *feed = memchr(from, '\n', (size_t)(bytes + length - from));

    while (feed != NULL && (feed == bytes + resp->at || feed[-1] != '\r'))
        feed = memchr(feed + 1, '\n', (size_t)(bytes + length - feed - 1));
    if (feed == NULL)
        resp->seen = length;
    return feed == NULL ? NULL : feed - 1;
}

int
sxe__resp_scan(struct sxe__resp *resp, const char *bytes, size_t length)
{
    int result = 0;

    while (result == 0) {
        const char *end = find_end(resp, bytes, length);

        if ((end == NULL ? bytes + length : end) - bytes > (ptrdiff_t)resp->at + SXE__RESP_LINE_MAX)
            return refuse_reply(resp, "a line without an end");
        if (end == NULL)
            return 0;
        if (end == bytes + resp->at)
            return refuse_reply(resp, "an empty line");
        result = take_element(resp, bytes, length, end);
        if (result == 0 && resp->at >= resp->max)
            return refuse_reply(resp, "more bytes than a reply may have");
    }
    /* The short line before a text that is not whole is searched again. */
    return result == 2 ? 0 : result;
}
