/* SPDX-License-Identifier: MIT
 *
 * Framing: what the fields of a head mean for the connection. Where the body ends, whether the
 * connection stays, 100 (Continue), Upgrade; and refusals where two recipients could disagree.
 */
#include "sxe-http-private.h"

#include <string.h>

enum { OK = 1 };

/* The next field with the same well-known name, or NULL. Most fields come once, and for these there
 * is no search. */
static const struct sxe_http_field *
next_copy(const struct sxe_http_parser *parser, const char *data, enum sxe_http_field_id id,
          const struct sxe_http_field *field)
{
    if ((parser->repeated >> id & 1) == 0)
        return NULL;
    return sxe_http_field_next(parser, data, field);
}

/* Take the next element of a list, without the blanks around it. It may be empty. False: the list
 * has no more elements. */
static bool
next_element(struct sxe_span *list, struct sxe_span *element)
{
    const char *end;

    if (list->base == NULL)
        return false;
    end = memchr(list->base, ',', list->length);
    *element = (struct sxe_span){list->base, list->length};
    if (end != NULL) {
        element->length = (size_t)(end - list->base);
        *list = (struct sxe_span){end + 1, list->length - element->length - 1};
    } else {
        list->base = NULL;
    }
    while (element->length > 0 && (*element->base == ' ' || *element->base == '\t')) {
        element->base++;
        element->length--;
    }
    while (element->length > 0 && (element->base[element->length - 1] == ' ' ||
                                   element->base[element->length - 1] == '\t'))
        element->length--;
    return true;
}

static bool
is_coding_word(const struct sxe_span *element, const char *word)
{
    return element->length == strlen(word) &&
           sxe__http_is_same(element->base, word, element->length);
}

/* Whether the list in one of the field's copies contains the word. */
SXE__HTTP_COLD static bool
field_has_word(const struct sxe_http_parser *parser, const char *data, enum sxe_http_field_id id,
               const char *word)
{
    const struct sxe_http_field *field = sxe_http_known(parser, id);

    for (; field != NULL; field = next_copy(parser, data, id, field)) {
        struct sxe_span list = {data + field->value, field->value_length};
        struct sxe_span element;

        while (next_element(&list, &element)) {
            if (is_coding_word(&element, word))
                return true;
        }
    }
    return false;
}

/* Check Host: HTTP/1.1 needs exactly one Host, and its value must be valid; an empty value is valid
 * (RFC 9112, 3.2). */
static int
check_host_field(struct sxe_http_parser *parser, const char *data)
{
    const struct sxe_http_field *field = sxe_http_known(parser, SXE_HTTP_FIELD_HOST);
    const struct sxe_http_field *second;

    if (field == NULL)
        return parser->minor == 0 ? OK : sxe__http_refuse(parser, SXE_HTTP_REFUSED_NO_HOST, 0);
    second = next_copy(parser, data, SXE_HTTP_FIELD_HOST, field);
    if (second != NULL)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_TWO_HOSTS, second->name);
    if (!sxe__http_host(data + field->value, field->value_length))
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_HOST, field->value);
    return OK;
}

static bool
parse_number(const char *digits, size_t length, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned)(uint8_t)digits[i] - '0';

        if (digit > 9 || *value > (UINT64_MAX - digit) / 10)
            return false;
        *value = *value * 10 + digit;
    }
    return length > 0;
}

/* Read Content-Length (RFC 9110, 8.6): digits, and equal in all copies. */
SXE__HTTP_COLD static int
content_length(struct sxe_http_parser *parser, const char *data, const struct sxe_http_field *first)
{
    const struct sxe_http_field *field = first;
    uint64_t length;

    for (; field != NULL; field = next_copy(parser, data, SXE_HTTP_FIELD_CONTENT_LENGTH, field)) {
        if (!parse_number(data + field->value, field->value_length, &length))
            return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_LENGTH, field->value);
        if (field != first && length != parser->length)
            return sxe__http_refuse(parser, SXE_HTTP_REFUSED_TWO_LENGTHS, field->value);
        parser->length = length;
    }
    parser->body = SXE_HTTP_BODY_LENGTH;
    return OK;
}

/* Read Transfer-Encoding (RFC 9112, 6.1). Only "chunked" is accepted. A coding before "chunked" is
 * answered 501. Everything else is answered 400, even an empty element, because another recipient
 * may read it as a coding. */
SXE__HTTP_COLD static int
transfer_encoding(struct sxe_http_parser *parser, const char *data,
                  const struct sxe_http_field *first)
{
    const struct sxe_http_field *field = first;
    unsigned codings = 0;
    unsigned chunked = 0;
    bool is_last = false;
    bool is_empty = false;

    if (parser->minor == 0)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_CODING_IN_1_0, first->name);
    for (; field != NULL;
         field = next_copy(parser, data, SXE_HTTP_FIELD_TRANSFER_ENCODING, field)) {
        struct sxe_span list = {data + field->value, field->value_length};
        struct sxe_span element;

        while (next_element(&list, &element)) {
            is_last = is_coding_word(&element, "chunked");
            chunked += is_last;
            is_empty |= element.length == 0;
            codings++;
        }
    }
    if (chunked != 1 || !is_last || is_empty)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_BAD_CODING, first->value);
    if (codings != 1)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_UNKNOWN_CODING, first->value);
    parser->body = SXE_HTTP_BODY_CHUNKED;
    return OK;
}

/* Find the body's end by the rules 3 to 7 of RFC 9112, 6.3: the rules for requests. */
static int
decide_request_framing(struct sxe_http_parser *parser, const char *data)
{
    const struct sxe_http_field *length = sxe_http_known(parser, SXE_HTTP_FIELD_CONTENT_LENGTH);
    const struct sxe_http_field *coding = sxe_http_known(parser, SXE_HTTP_FIELD_TRANSFER_ENCODING);

    if (length != NULL && coding != NULL)
        return sxe__http_refuse(parser, SXE_HTTP_REFUSED_LENGTH_AND_CODING, coding->name);
    if (coding != NULL)
        return transfer_encoding(parser, data, coding);
    return length == NULL ? OK : content_length(parser, data, length);
}

/* Decide whether the connection is kept (RFC 9112, 9.3). */
static void
read_connection_field(struct sxe_http_parser *parser, const char *data)
{
    parser->keep_alive = parser->minor > 0;
    if (sxe_http_known(parser, SXE_HTTP_FIELD_CONNECTION) == NULL)
        return;
    if (field_has_word(parser, data, SXE_HTTP_FIELD_CONNECTION, "close"))
        parser->keep_alive = false;
    else if (parser->minor == 0)
        parser->keep_alive = field_has_word(parser, data, SXE_HTTP_FIELD_CONNECTION, "keep-alive");
}

/* CONNECT must have no body (RFC 9110, 9.3.6): some recipients take the bytes after its head for
 * the tunnel's bytes, others for a body. */
static int
frame_tunnel(struct sxe_http_parser *parser)
{
    if (parser->body == SXE_HTTP_BODY_NONE ||
        (parser->body == SXE_HTTP_BODY_LENGTH && parser->length == 0))
        return OK;
    return sxe__http_refuse(parser, SXE_HTTP_REFUSED_CONNECT_WITH_BODY, 0);
}

static int
frame_request(struct sxe_http_parser *parser, const char *data)
{
    int result = check_host_field(parser, data);

    if (result == OK)
        result = decide_request_framing(parser, data);
    if (result == OK && parser->method == SXE_HTTP_CONNECT)
        result = frame_tunnel(parser);
    if (result != OK || parser->minor == 0)
        return result;
    /* Upgrade and Expect are ignored in HTTP/1.0 (RFC 9110, 7.8 and 10.1.1). */
    if (sxe_http_known(parser, SXE_HTTP_FIELD_UPGRADE) != NULL)
        parser->upgrade = field_has_word(parser, data, SXE_HTTP_FIELD_CONNECTION, "upgrade");
    if (sxe_http_known(parser, SXE_HTTP_FIELD_EXPECT) != NULL)
        parser->expect_continue =
            field_has_word(parser, data, SXE_HTTP_FIELD_EXPECT, "100-continue");
    return OK;
}

/* Find the end of a response's body by the rules 1, 2 and 8 of RFC 9112, 6.3. */
static int
frame_response(struct sxe_http_parser *parser, const char *data)
{
    unsigned status = parser->status;
    bool is_tunnel = parser->method == SXE_HTTP_CONNECT && status / 100 == 2;
    int result;

    parser->upgrade = is_tunnel || status == 101;
    /* A tunnel follows: Content-Length and Transfer-Encoding are ignored (RFC 9110, 9.3.6). */
    if (is_tunnel)
        return OK;
    result = decide_request_framing(parser, data);
    if (result != OK)
        return result;
    if (parser->method == SXE_HTTP_HEAD || status < 200 || status == 204 || status == 304) {
        parser->body = SXE_HTTP_BODY_NONE;
        parser->length = 0;
    } else if (parser->body == SXE_HTTP_BODY_NONE) {
        parser->body = SXE_HTTP_BODY_UNTIL_CLOSE;
        parser->keep_alive = false;
    }
    return OK;
}

int
sxe__http_frame(struct sxe_http_parser *parser, const char *data)
{
    if (parser->kind == SXE_HTTP_TRAILER)
        return OK;
    read_connection_field(parser, data);
    return parser->kind == SXE_HTTP_REQUEST ? frame_request(parser, data)
                                            : frame_response(parser, data);
}
