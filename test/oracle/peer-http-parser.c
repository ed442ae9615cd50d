/* SPDX-License-Identifier: MIT
 *
 * libhttp-parser behind the interface of http-peers.h.
 */
#include "http-peers.h"

#include <http_parser.h>
#include <string.h>

static int
on_url(http_parser *parser, const char *at, size_t length)
{
    http_peer_add(&((struct http_peer_message *)parser->data)->target, at, length);
    return 0;
}

static int
on_name(http_parser *parser, const char *at, size_t length)
{
    http_peer_name(parser->data, at, length);
    return 0;
}

static int
on_value(http_parser *parser, const char *at, size_t length)
{
    http_peer_value(parser->data, at, length);
    return 0;
}

static int
on_head(http_parser *parser)
{
    struct http_peer_message *message = parser->data;

    message->head = true;
    message->keep_alive = http_should_keep_alive(parser) != 0;
    message->minor = parser->http_minor;
    message->status = parser->status_code;
    return 0;
}

static int
on_body(http_parser *parser, const char *at, size_t length)
{
    http_peer_body(parser->data, at, length);
    return 0;
}

static int
on_end(http_parser *parser)
{
    ((struct http_peer_message *)parser->data)->complete = true;
    http_parser_pause(parser, 1);
    return 0;
}

static void
parse(bool is_response, const char *data, size_t length, struct http_peer_message *message)
{
    static const http_parser_settings settings = {.on_url = on_url,
                                                  .on_header_field = on_name,
                                                  .on_header_value = on_value,
                                                  .on_headers_complete = on_head,
                                                  .on_body = on_body,
                                                  .on_message_complete = on_end};
    http_parser parser;
    enum http_errno error;

    memset(message, 0, offsetof(struct http_peer_message, names));
    message->body_length = 0;
    http_parser_init(&parser, is_response ? HTTP_RESPONSE : HTTP_REQUEST);
    parser.data = message;
    http_parser_execute(&parser, &settings, data, length);
    error = HTTP_PARSER_ERRNO(&parser);
    message->refused = error != HPE_OK && error != HPE_PAUSED;
    message->why = http_errno_name(error);
}

static size_t
repeat(const char *data, size_t length, size_t times)
{
    static const http_parser_settings settings = {.on_url = on_url,
                                                  .on_header_field = on_name,
                                                  .on_header_value = on_value,
                                                  .on_headers_complete = on_head};
    static struct http_peer_message message;
    http_parser parser;
    size_t fields = 0;

    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = &message;
    for (size_t i = 0; i < times; i++) {
        message.target = (struct http_peer_span){NULL, 0};
        message.fields = message.values = 0;
        http_parser_execute(&parser, &settings, data, length);
        fields += message.fields;
    }
    return fields;
}

static void
repeat_silently(const char *data, size_t length, size_t times)
{
    static const http_parser_settings settings;
    http_parser parser;

    http_parser_init(&parser, HTTP_REQUEST);
    for (size_t i = 0; i < times; i++)
        http_parser_execute(&parser, &settings, data, length);
}

const struct http_peer http_peer_http_parser = {"http-parser", parse, repeat, repeat_silently};
