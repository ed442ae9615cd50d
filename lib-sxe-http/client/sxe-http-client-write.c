/* SPDX-License-Identifier: MIT
 *
 * What: the head of a request, as bytes.
 *
 * The parser then reads the written head, and refuses a request that is invalid or can be read in
 * two ways, so only the parser knows the rules of RFC 9112. The code here only makes sure that no
 * text of the program ends its line, or its field's name, early.
 */
#include "sxe-http-client-private.h"
#include "sxe-http-list.h"
#include "sxe-http-private.h"

#include <errno.h>
#include <stdio.h>

enum { FIELDS_MAX = 255 };

static const struct sxe_http_limits widest = {UINT16_MAX, UINT16_MAX, FIELDS_MAX};

static bool
is_all(enum sxe__http_set set, struct sxe_span text)
{
    struct sxe__http_input in = SXE__HTTP_INPUT(text.base, text.length);

    return sxe__http_stop(&in, set, 0) == text.length;
}

/* Whether the writer adds the field itself. */
static bool
is_ours(struct sxe_span name)
{
    enum sxe_http_field_id id = sxe__http_field_id_of(name.base, name.length);

    return id == SXE_HTTP_FIELD_HOST || id == SXE_HTTP_FIELD_CONTENT_LENGTH ||
           id == SXE_HTTP_FIELD_TRANSFER_ENCODING;
}

/* Whether the fields have credentials for a proxy. */
static bool
has_proxy_login(const struct sxe_http_request_head *request)
{
    static const char name[] = "Proxy-Authorization";

    for (unsigned i = 0; i < request->fields_number; i++) {
        const struct sxe_span *field = &request->fields[i].name;

        if (field->length == sizeof(name) - 1 &&
            sxe__http_is_same(field->base, name, sizeof(name) - 1))
            return true;
    }
    return false;
}

static bool
is_writable(const struct sxe_http_request_head *request)
{
    if (!is_all(SXE__HTTP_TOKEN, request->method) || !is_all(SXE__HTTP_VALUE, request->target) ||
        !is_all(SXE__HTTP_VALUE, request->host))
        return false;
    for (unsigned i = 0; i < request->fields_number; i++) {
        const struct sxe_http_pair *field = &request->fields[i];

        if (field->name.length == 0 || !is_all(SXE__HTTP_TOKEN, field->name) ||
            is_ours(field->name) || !is_all(SXE__HTTP_VALUE, field->value))
            return false;
    }
    return true;
}

/* A buffer's part that is still free. A text that does not fit is left out, and is_full is set. */
struct out {
    char *at;
    char *end;
    bool is_full;
};

static void
add_span(struct out *out, struct sxe_span text)
{
    if (text.length > (size_t)(out->end - out->at)) {
        out->is_full = true;
        return;
    }
    if (text.length > 0)
        memcpy(out->at, text.base, text.length);
    out->at += text.length;
}

static void
add_field(struct out *out, struct sxe_span name, struct sxe_span value)
{
    add_span(out, name);
    add_span(out, sxe_http_span(": "));
    add_span(out, value);
    add_span(out, sxe_http_span("\r\n"));
}

/* A proxy that gets the request itself, not a tunnel, needs the whole URL (RFC 9112, 3.2.2). "*"
 * stands for the whole server, so no path follows the authority. */
static void
add_target(struct out *out, const struct sxe_http_request_head *request, bool is_forwarded)
{
    const bool is_server = request->target.length == 1 && request->target.base[0] == '*';

    if (!is_forwarded ||
        !(is_server || (request->target.length > 0 && request->target.base[0] == '/'))) {
        add_span(out, request->target);
        return;
    }
    add_span(out, sxe_http_span("http://"));
    add_span(out, request->host);
    if (!is_server)
        add_span(out, request->target);
}

/* RFC 9110, 8.6: POST, PUT and PATCH without a body send Content-Length: 0. */
static void
add_framing(struct out *out, uint64_t length, enum sxe_http_method method)
{
    char digits[24];

    if (length == SXE_HTTP_CHUNKED) {
        add_field(out, sxe_http_span("Transfer-Encoding"), sxe_http_span("chunked"));
    } else if (length > 0 || method == SXE_HTTP_POST || method == SXE_HTTP_PUT ||
               method == SXE_HTTP_PATCH) {
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)length);
        add_field(out, sxe_http_span("Content-Length"), sxe_http_span(digits));
    }
}

/* Check that the parser accepts the written head, and set *asked. */
static bool
is_valid(const struct sxe_http_request_head *request, const char *head, size_t length,
         struct sxe__http_asked *asked)
{
    struct sxe_http_field fields[FIELDS_MAX];
    struct sxe_http_parser parser;

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, FIELDS_MAX, &widest);
    if (sxe_http_parse(&parser, head, length) != (int)length)
        return false;
    asked->method = parser.method;
    asked->keep_alive = parser.keep_alive;
    asked->upgrade = parser.upgrade || parser.method == SXE_HTTP_CONNECT;
    /* TRACE must have no body, and Expect needs a body (RFC 9110, 9.3.8 and 10.1.1); the parser
     * itself refuses a CONNECT with a body. */
    return request->body_length > 0 ? parser.method != SXE_HTTP_TRACE : !parser.expect_continue;
}

ssize_t
sxe__http_request_write(const struct sxe_http_request_head *request,
                        const struct sxe__http_forward *forward, char *room, size_t size,
                        struct sxe__http_asked *asked)
{
    const bool is_forwarded = forward != NULL && forward->length == 0;
    const bool has_login = forward != NULL && has_proxy_login(request);
    struct out out = {room, room + (size < UINT16_MAX ? size : UINT16_MAX), false};
    struct sxe_span method = request->method.length > 0 ? request->method : sxe_http_span("GET");
    size_t length;

    if (!is_writable(request) || (has_login && !is_forwarded))
        return -EINVAL;
    add_span(&out, method);
    add_span(&out, sxe_http_span(" "));
    add_target(&out, request, is_forwarded);
    add_span(&out, sxe_http_span(" HTTP/1.1\r\n"));
    add_field(&out, sxe_http_span("Host"), request->host);
    for (unsigned i = 0; i < request->fields_number; i++)
        add_field(&out, request->fields[i].name, request->fields[i].value);
    if (is_forwarded && !has_login && forward->login[0] != '\0')
        add_field(&out, sxe_http_span("Proxy-Authorization"), sxe_http_span(forward->login));
    add_framing(&out, request->body_length, sxe__http_method_of(method.base, method.length));
    add_span(&out, sxe_http_span("\r\n"));
    if (out.is_full)
        return -EMSGSIZE;
    length = (size_t)(out.at - room);
    return is_valid(request, room, length, asked) ? (ssize_t)length : -EINVAL;
}

ssize_t
sxe_http_request_write(const struct sxe_http_request_head *request, char *room, size_t size)
{
    struct sxe__http_asked asked;

    return sxe__http_request_write(request, NULL, room, size, &asked);
}

/* ---- Other protocols ---- */

static bool
has_protocol(struct sxe_http_list list, struct sxe_span protocol)
{
    struct sxe_span element;

    while (sxe_http_list_next(&list, &element)) {
        if (element.length == protocol.length &&
            sxe__http_is_same(element.base, protocol.base, protocol.length))
            return true;
    }
    return false;
}

bool
sxe__http_request_asks_for(const char *head, size_t length, struct sxe_http_list protocols)
{
    struct sxe_http_field fields[FIELDS_MAX];
    struct sxe_http_parser parser;
    struct sxe_http_list asked;
    struct sxe_span protocol;

    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, FIELDS_MAX, &widest);
    if (sxe_http_parse(&parser, head, length) != (int)length ||
        !sxe_http_list_next(&protocols, &protocol))
        return false;
    asked = sxe_http_list_of(&parser, head, SXE_HTTP_FIELD_UPGRADE);
    do {
        if (!has_protocol(asked, protocol))
            return false;
    } while (sxe_http_list_next(&protocols, &protocol));
    return true;
}
