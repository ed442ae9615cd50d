/* SPDX-License-Identifier: MIT
 *
 * llhttp behind the interface of http-peers.h.
 */
#include "http-peers.h"

#include <llhttp.h>
#include <string.h>

static int
on_url(llhttp_t *parser, const char *at, size_t length)
{
    http_peer_add(&((struct http_peer_message *)parser->data)->target, at, length);
    return 0;
}

static int
on_name(llhttp_t *parser, const char *at, size_t length)
{
    http_peer_name(parser->data, at, length);
    return 0;
}

static int
on_value(llhttp_t *parser, const char *at, size_t length)
{
    http_peer_value(parser->data, at, length);
    return 0;
}

static int
on_head(llhttp_t *parser)
{
    struct http_peer_message *message = parser->data;

    message->head = true;
    message->keep_alive = llhttp_should_keep_alive(parser) != 0;
    message->minor = parser->http_minor;
    message->status = parser->status_code;
    return 0;
}

static int
on_body(llhttp_t *parser, const char *at, size_t length)
{
    http_peer_body(parser->data, at, length);
    return 0;
}

static int
on_end(llhttp_t *parser)
{
    ((struct http_peer_message *)parser->data)->complete = true;
    return HPE_PAUSED;
}

static void
parse(bool is_response, const char *data, size_t length, struct http_peer_message *message)
{
    llhttp_settings_t settings;
    llhttp_errno_t error;
    llhttp_t parser;

    memset(message, 0, offsetof(struct http_peer_message, names));
    message->body_length = 0;
    llhttp_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_header_field = on_name;
    settings.on_header_value = on_value;
    settings.on_headers_complete = on_head;
    settings.on_body = on_body;
    settings.on_message_complete = on_end;
    llhttp_init(&parser, is_response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
    parser.data = message;
    error = llhttp_execute(&parser, data, length);
    message->refused = error != HPE_OK && error != HPE_PAUSED && error != HPE_PAUSED_UPGRADE;
    /* llhttp has many reasons for this error. */
    message->why =
        error == HPE_STRICT ? llhttp_get_error_reason(&parser) : llhttp_errno_name(error);
}

static size_t
repeat(const char *data, size_t length, size_t times)
{
    static struct http_peer_message message;
    llhttp_settings_t settings;
    llhttp_t parser;
    size_t fields = 0;

    llhttp_settings_init(&settings);
    settings.on_url = on_url;
    settings.on_header_field = on_name;
    settings.on_header_value = on_value;
    settings.on_headers_complete = on_head;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = &message;
    for (size_t i = 0; i < times; i++) {
        message.target = (struct http_peer_span){NULL, 0};
        message.fields = message.values = 0;
        llhttp_execute(&parser, data, length);
        fields += message.fields;
    }
    return fields;
}

static void
repeat_silently(const char *data, size_t length, size_t times)
{
    llhttp_settings_t settings;
    llhttp_t parser;

    llhttp_settings_init(&settings);
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    for (size_t i = 0; i < times; i++)
        llhttp_execute(&parser, data, length);
}

const struct http_peer http_peer_llhttp = {"llhttp", parse, repeat, repeat_silently};
