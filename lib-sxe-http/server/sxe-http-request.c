/* SPDX-License-Identifier: MIT
 *
 * What: functions for handlers that ask about a request, and the choice of the handler.
 */
#include "sxe-http-server-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "sxe-always-internal.h"
#include "sxe-http-private.h"

struct sxe_http_response *
sxe_http_response_of(struct sxe_http_request *request)
{
    return &SXE__HTTP_SLOT_OF_REQUEST(request)->response;
}

struct sxe_http_request *
sxe_http_request_of(struct sxe_http_response *response)
{
    return &SXE__HTTP_SLOT_OF_RESPONSE(response)->request;
}

static struct sxe_span
text_of_request(const struct sxe_http_request *request, struct sxe_http_text text)
{
    return (struct sxe_span){request->data + text.offset, text.length};
}

struct sxe_span
sxe_http_method_text(const struct sxe_http_request *request)
{
    return text_of_request(request, request->head.method_name);
}

struct sxe_span
sxe_http_target(const struct sxe_http_request *request)
{
    return text_of_request(request, request->head.target);
}

struct sxe_span
sxe_http_field_value(const struct sxe_http_request *request, const char *name)
{
    const struct sxe_http_field *field = sxe_http_field(&request->head, request->data, name);

    if (field == NULL)
        return (struct sxe_span){NULL, 0};
    return (struct sxe_span){request->data + field->value, field->value_length};
}

struct sxe_span
sxe_http_authority(const struct sxe_http_request *request)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_CONST(request);
    struct sxe_http_target parts;

    if (slot->is_forwarded && slot->forwarded_host.base != NULL)
        return slot->forwarded_host;
    if (request->head.form == SXE_HTTP_FORM_ABSOLUTE &&
        SXE_ALWAYS(sxe_http_split_target(sxe_http_target(request), &parts) == 0))
        return parts.authority;
    return sxe_http_known_value(request, SXE_HTTP_FIELD_HOST);
}

struct sxe_span
sxe_http_decoded_path(struct sxe_http_request *request)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);
    char *room = (char *)slot + request->http->path_at + request->http->config.head.line_max;

    if (!slot->is_path_made) {
        ssize_t length = sxe_http_decode_path(request->path, room, request->path.length);

        slot->path_length = length >= 0 ? (uint32_t)length : 0;
        slot->is_path_made = true;
    }
    return (struct sxe_span){slot->path_length == 0 ? NULL : room, slot->path_length};
}

ssize_t
sxe_http_query_value(const struct sxe_http_request *request, const char *name, char *room,
                     size_t size)
{
    ssize_t length;

    if (size == 0)
        return -ENOBUFS;
    length = sxe_http_query_find(request->query, name, room, size - 1);
    if (length >= 0)
        room[length] = '\0';
    return length;
}

ssize_t
sxe_http_parameter(const struct sxe_http_request *request, const char *name, char *room,
                   size_t size)
{
    const struct sxe_http_text *value = sxe_http_match_value(&request->match, name);
    ssize_t length;

    if (value == NULL)
        return -ENOENT;
    if (size == 0)
        return -ENOBUFS;
    length = sxe_http_decode_path(
        (struct sxe_span){request->path.base + value->offset, value->length}, room, size - 1);
    if (length >= 0)
        room[length] = '\0';
    return length;
}

SXE *
sxe_http_socket(const struct sxe_http_request *request)
{
    return SXE__HTTP_SLOT_OF_CONST(request)->connection->sxe;
}

/* ---- Choosing the handler ---- */

/* Answer a request without a route (RFC 9110, 9.3.7, 15.5.5, 15.5.6). */
enum sxe_http_verdict
sxe_http_reply_unrouted(struct sxe_http_request *request, struct sxe_http_response *response)
{
    if (request->match.allow.length == 0)
        return sxe_http_reply_status(response, 404);
    /* Allow is left out if its methods do not fit in the reply's fields. */
    (void)!sxe_http_add_field_span(response, "Allow", request->match.allow);
    if (sxe_http_method(request) == SXE_HTTP_OPTIONS)
        return sxe_http_reply(response, 204, NULL, NULL, 0);
    return sxe_http_reply_status(response, 405);
}

static void
answer_request_at_once(struct sxe__http_slot *slot, sxe_http_handler handler)
{
    slot->handler = handler;
    slot->is_body_streamed = true;
}

static void
find_route(struct sxe__http_slot *slot, const struct sxe_http_config *config)
{
    struct sxe_http_request *request = &slot->request;
    enum sxe_http_routing routing =
        sxe_http_router_find(config->router, sxe_http_method(request),
                             sxe_http_method_text(request), request->path, &request->match);

    if (routing == SXE_HTTP_ROUTE_FOUND) {
        slot->handler = request->match.route->handler;
        slot->is_body_streamed = request->match.route->flags & SXE_HTTP_ROUTE_STREAM;
        slot->user = request->match.route->user;
    } else if (config->unrouted != NULL) {
        slot->handler = config->unrouted;
    } else if (routing != SXE_HTTP_ROUTE_NOT_FOUND) {
        answer_request_at_once(slot, sxe_http_reply_unrouted);
    }
}

unsigned
sxe__http_route(struct sxe__http_slot *slot)
{
    struct sxe_http_request *request = &slot->request;
    const struct sxe_http_config *config = &request->http->config;
    char *room = (char *)slot + request->http->path_at;
    struct sxe_http_target parts;

    if (sxe_http_method(request) == SXE_HTTP_CONNECT)
        return 501;
    if (SXE_NEVER(sxe_http_split_target(sxe_http_target(request), &parts) < 0))
        return 400;
    request->raw_path = request->path = parts.path;
    request->query = parts.query;
    if (request->head.form != SXE_HTTP_FORM_ASTERISK &&
        sxe_http_normalise_path(parts.path, room, config->head.line_max, &request->path) < 0)
        return 400;
    slot->handler = config->handler;
    slot->is_body_streamed = config->stream;
    if (config->router != NULL)
        find_route(slot, config);
    if (slot->handler == NULL)
        answer_request_at_once(slot, sxe_http_reply_unrouted);
    return 0;
}
