/* SPDX-License-Identifier: MIT
 *
 * What: the head of the request that is sent on, made from what the parser understood; and the
 * fields of the reply.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-list.h"
#include "sxe-io.h"

#define NAMED_MAX 32 /* how many fields Connection may name */

/* ---- Fields that are not passed on ---- */

/* Fields that concern one connection only (RFC 9110, 7.6.1), and names that such fields had
 * earlier. */
static const char *const hop_fields[] = {
    "Connection", "Keep-Alive",     "Proxy-Connection",  "Proxy-Authenticate",
    "TE",         "Trailer",        "Transfer-Encoding", "Proxy-Authentication-Info",
    "Upgrade",    "Content-Length",
};

/* Fields of requests that the proxy sets itself, that are meant for the proxy, or (Proxy) that are
 * dangerous to CGI programs. */
static const char *const own_fields[] = {
    "Expect", "Forwarded", "Host", "HTTP2-Settings", "Proxy", "Proxy-Authorization", "X-Real-IP",
};

/* Every request field whose name starts with this text is dropped. Applications trust some of these
 * fields, such as X-Forwarded-User, and this code cannot know which. */
static const char own_start[] = "X-Forwarded-";

/* Whether a field's name starts with `start`, for CGI and PHP programs. */
static bool
has_name_start(struct sxe_span name, const char *start)
{
    const size_t length = strlen(start);

    if (name.length < length)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (sxe__http_fold_cgi_byte(name.base[i]) != sxe__http_fold_cgi_byte(start[i]))
            return false;
    }
    return true;
}

static bool
has_field_name(struct sxe_span name, const char *wanted)
{
    return name.length == strlen(wanted) && has_name_start(name, wanted);
}

static bool
is_one_of_fields(struct sxe_span name, const char *const *names, size_t number)
{
    for (size_t i = 0; i < number; i++) {
        if (has_field_name(name, names[i]))
            return true;
    }
    return false;
}

/* The fields that Connection names. */
struct named {
    struct sxe_span names[NAMED_MAX];
    unsigned number;
};

static int
find_named(const struct sxe_http_parser *head, const char *data, struct named *named)
{
    struct sxe_http_list list = sxe_http_list_of(head, data, SXE_HTTP_FIELD_CONNECTION);
    struct sxe_span element;

    named->number = 0;
    while (sxe_http_list_next(&list, &element)) {
        if (named->number == NAMED_MAX)
            return -EINVAL;
        named->names[named->number++] = element;
    }
    return 0;
}

static bool
is_named_by_connection(const struct named *named, struct sxe_span name)
{
    for (unsigned i = 0; i < named->number; i++) {
        if (named->names[i].length == name.length &&
            sxe__http_is_same(named->names[i].base, name.base, name.length))
            return true;
    }
    return false;
}

static bool
is_about_connection(const struct named *named, struct sxe_span name)
{
    return is_one_of_fields(name, hop_fields, SXE_COUNT(hop_fields)) ||
           is_named_by_connection(named, name);
}

static struct sxe_span
name_of(const struct sxe_http_field *field, const char *data)
{
    return (struct sxe_span){data + field->name, field->name_length};
}

static struct sxe_span
value_of_sent(const struct sxe_http_field *field, const char *data)
{
    return (struct sxe_span){data + field->value, field->value_length};
}

/* ---- The request ---- */

int
sxe__http_proxy_add(struct sxe__http_proxy_head *made, struct sxe_span name, struct sxe_span value)
{
    if (made->number == SXE_COUNT(made->fields))
        return -EMSGSIZE;
    made->fields[made->number++] = (struct sxe_http_pair){name, value};
    return 0;
}

/* Whether the proxy itself makes a field of this name. */
static bool
is_from_server(const struct sxe_http_request *request, struct sxe_span name)
{
    const char *id = request->http->config.request_id;

    return (id != NULL && has_field_name(name, id)) ||
           (request->is_traced &&
            (has_field_name(name, "traceparent") || has_field_name(name, "tracestate")));
}

int
sxe__http_proxy_pass_fields(const struct sxe_http_request *request,
                            struct sxe__http_proxy_head *made)
{
    struct named named;
    int result = find_named(&request->head, request->data, &named);

    for (unsigned i = 0; result == 0 && i < request->head.number; i++) {
        const struct sxe_http_field *field = &request->head.fields[i];
        const struct sxe_span name = name_of(field, request->data);

        if (!is_about_connection(&named, name) &&
            !is_one_of_fields(name, own_fields, SXE_COUNT(own_fields)) &&
            !has_name_start(name, own_start) && !is_from_server(request, name))
            result = sxe__http_proxy_add(made, name, value_of_sent(field, request->data));
    }
    return result;
}

/* Print into the room; *text becomes the printed text. */
int SXE_PRINTF(3, 4) sxe__http_proxy_print(struct sxe__http_proxy_head *made, struct sxe_span *text,
                                           const char *format, ...)
{
    const size_t room = sizeof(made->room) - made->used;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(made->room + made->used, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room)
        return -EMSGSIZE;
    *text = (struct sxe_span){made->room + made->used, (size_t)length};
    made->used += (size_t)length;
    return 0;
}

#define ADD_FIELD(made, name, ...)                         \
    (sxe__http_proxy_print((made), &text, __VA_ARGS__) < 0 \
         ? -EMSGSIZE                                       \
         : sxe__http_proxy_add((made), sxe_http_span(name), text))

const char *
sxe__http_proxy_asked_scheme(const struct sxe_http_request *request)
{
    const char *scheme = sxe_http_forwarded_scheme(request);

    if (*scheme != '\0')
        return scheme;
    return sxe_http_socket(request)->io == sxe_io_of_sockets() ? "http" : "https";
}

/* The host and port that the client asked for; length 0: the client named none, or invalid ones. */
struct sxe_span
sxe__http_proxy_asked_host(const struct sxe_http_request *request)
{
    struct sxe_span host = sxe_http_authority(request);

    if (host.base == NULL || !sxe__http_host(host.base, host.length))
        host.length = 0;
    return host;
}

/* Add the fields that name the client, and the host and scheme that it asked for (RFC 7239). */
static int
add_forwarded(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    const struct sxe_span host = sxe__http_proxy_asked_host(request);
    const char *ip = sxe_http_peer_ip(request);
    const char *before = *ip == '\0' ? "unknown" : strchr(ip, ':') != NULL ? "\"[" : "";
    const char *after = strchr(ip, ':') != NULL ? "]\"" : "";
    struct sxe_span text;

    if (host.length == 0)
        return ADD_FIELD(made, "Forwarded", "for=%s%s%s;proto=%s", before, ip, after,
                         sxe__http_proxy_asked_scheme(request));
    return ADD_FIELD(made, "Forwarded", "for=%s%s%s;host=\"%.*s\";proto=%s", before, ip, after,
                     (int)host.length, host.base, sxe__http_proxy_asked_scheme(request));
}

static int
add_x_forwarded(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    const struct sxe_span host = sxe__http_proxy_asked_host(request);
    const char *ip = sxe_http_peer_ip(request);
    struct sxe_span text;
    int result = 0;

    /* A reader of the field would take a host with a comma for a list of two hosts. */
    if (host.length > 0 && memchr(host.base, ',', host.length) != NULL)
        return -EINVAL;
    if (*ip != '\0')
        result = ADD_FIELD(made, "X-Forwarded-For", "%s", ip);
    if (result == 0)
        result = ADD_FIELD(made, "X-Forwarded-Proto", "%s", sxe__http_proxy_asked_scheme(request));
    if (result == 0 && host.length > 0)
        result = sxe__http_proxy_add(made, sxe_http_span("X-Forwarded-Host"), host);
    return result;
}

static int
add_sent_trace(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    const struct sxe_span state = sxe_http_trace_state(request);
    char parent[SXE_HTTP_TRACEPARENT + 1];
    struct sxe_span text;
    int result;

    sxe_http_trace_write(sxe_http_trace(request), parent);
    result = ADD_FIELD(made, "traceparent", "%s", parent);
    return result == 0 && state.base != NULL
               ? sxe__http_proxy_add(made, sxe_http_span("tracestate"), state)
               : result;
}

int
sxe__http_proxy_add_id(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    const char *id = request->http->config.request_id;
    int result = 0;

    if (id != NULL)
        result = sxe__http_proxy_add(made, sxe_http_span(id),
                                     sxe_http_span(sxe_http_request_id(request)));
    return result == 0 && request->is_traced ? add_sent_trace(request, made) : result;
}

static int
add_own_fields(const struct sxe_http_proxy *proxy, const struct sxe_http_request *request,
               struct sxe__http_proxy_head *made)
{
    struct sxe_span text;
    int result = ADD_FIELD(made, "Via", "1.%u %s", request->head.minor > 0 ? 1u : 0u,
                           proxy->via == NULL ? "sxe" : proxy->via);

    if (result == 0 && proxy->fields == SXE_HTTP_PROXY_X_FORWARDED)
        result = add_x_forwarded(request, made);
    if (result == 0 && proxy->fields == SXE_HTTP_PROXY_FORWARDED)
        result = add_forwarded(request, made);
    return result == 0 ? sxe__http_proxy_add_id(request, made) : result;
}

/* ---- The fields that the route sets ---- */

static void
remove_sent_fields(struct sxe__http_proxy_head *made, struct sxe_span name)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < made->number; i++) {
        if (!sxe__http_is_cgi_same(made->fields[i].name, name))
            made->fields[kept++] = made->fields[i];
    }
    made->number = kept;
}

/* A field that the route sets replaces all others of its name, also if the server does not know its
 * value: a client cannot send it then, either. */
static int
set_field_of_rule(const char *line, const struct sxe_http_request *request,
                  struct sxe__http_proxy_head *made)
{
    char *to = made->room + made->used;
    struct sxe__http_rule rule;
    ssize_t length;

    (void)sxe__http_rule_read(line, &rule); /* sxe_http_proxy_check has checked the line */
    remove_sent_fields(made, rule.name);
    length = sxe__http_rule_expand(&rule, request, to, sizeof(made->room) - made->used);
    if (length <= 0)
        return (int)length;
    made->used += (size_t)length;
    return sxe__http_proxy_add(made, rule.name, (struct sxe_span){to, (size_t)length});
}

static int
set_fields_of_route(const struct sxe_http_proxy *proxy, const struct sxe_http_request *request,
                    struct sxe__http_proxy_head *made)
{
    int result = 0;

    for (unsigned i = 0; result == 0 && i < proxy->request_header_number; i++)
        result = set_field_of_rule(proxy->request_header[i], request, made);
    return result;
}

/* Ask the address for WebSocket: the request asks for it, and a tunnel is free. */
static int
add_websocket(struct sxe__http_proxy_head *made)
{
    const int result =
        sxe__http_proxy_add(made, sxe_http_span("Connection"), sxe_http_span("upgrade"));

    return result < 0
               ? result
               : sxe__http_proxy_add(made, sxe_http_span("Upgrade"), sxe_http_span("websocket"));
}

/* The part of the path that stays: from the tail of the route's pattern on, with the slash in front
 * of it. */
struct sxe_span
sxe__http_proxy_tail(const struct sxe_http_request *request)
{
    const struct sxe_http_match *match = &request->match;
    const size_t length = match->pattern == NULL ? 0 : strlen(match->pattern);
    const struct sxe_span path = request->path;
    size_t at;

    if (length == 0 || match->number == 0 ||
        (match->pattern[length - 1] != '*' &&
         (length < 4 || memcmp(match->pattern + length - 4, "...}", 4) != 0)))
        return (struct sxe_span){path.base, 0};
    at = match->values[match->number - 1].offset;
    if (at > 0 && path.base[at - 1] == '/')
        at--;
    return (struct sxe_span){path.base + at, path.length - at};
}

static int
make_target(const struct sxe_http_proxy *proxy, const struct sxe_http_request *request,
            struct sxe__http_proxy_head *made)
{
    const struct sxe_span query = request->query;
    struct sxe_span path = request->path;
    size_t start = proxy->path == NULL || *path.base == '*' ? 0 : strlen(proxy->path);

    if (start > 0) {
        path = sxe__http_proxy_tail(request);
        if (path.length > 0 && proxy->path[start - 1] == '/' && *path.base == '/')
            start--;
    }
    return sxe__http_proxy_print(made, &made->head.target, "%.*s%.*s%s%.*s", (int)start,
                                 proxy->path == NULL ? "" : proxy->path, (int)path.length,
                                 path.base, query.base == NULL ? "" : "?", (int)query.length,
                                 query.base == NULL ? "" : query.base);
}

int
sxe__http_proxy_make_head(const struct sxe_http_proxy *proxy,
                          const struct sxe_http_request *request, bool is_tunnel,
                          struct sxe__http_proxy_head *made)
{
    int result;

    made->number = 0;
    made->used = 0;
    made->head = (struct sxe_http_request_head){.method = sxe_http_method_text(request),
                                                .fields = made->fields};
    made->head.host =
        proxy->host != NULL ? sxe_http_span(proxy->host) : sxe__http_proxy_asked_host(request);
    result = make_target(proxy, request, made);
    if (result == 0)
        result = sxe__http_proxy_pass_fields(request, made);
    if (result == 0)
        result = add_own_fields(proxy, request, made);
    if (result == 0)
        result = set_fields_of_route(proxy, request, made);
    if (result == 0 && is_tunnel)
        result = add_websocket(made);
    made->head.fields_number = made->number;
    return result;
}

/* ---- The reply ---- */

/* Fields that describe the body of a reply. */
static const char *const body_fields[] = {
    "Accept-Ranges",
    "Content-Digest",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Location",
    "Content-Range",
    "Content-Type",
    "Digest",
    "ETag",
    "Last-Modified",
    "Repr-Digest",
};

void
sxe__http_proxy_remove_body_fields(struct sxe_http_response *response)
{
    for (size_t i = 0; i < SXE_COUNT(body_fields); i++)
        sxe_http_remove_field(response, body_fields[i]);
}

/* Whether the handler's field replaces the upstream's of the same name. Two lines would be read in
 * two ways, but each Set-Cookie is a cookie of its own, and caches need all of Vary. */
static bool
is_replaced(const struct sxe_http_response *response, struct sxe_span name)
{
    return sxe__http_has_line(response, name) && !has_field_name(name, "Set-Cookie") &&
           !has_field_name(name, "Vary");
}

int
sxe__http_proxy_add_fields(struct sxe_http_response *response, const struct sxe_http_parser *reply,
                           const char *data, struct sxe__http_proxy_head *made)
{
    const char *id = SXE__HTTP_SLOT_OF_RESPONSE(response)->request.http->config.request_id;
    char *to = made->room;
    struct named named;
    int result = find_named(reply, data, &named);

    for (unsigned i = 0; result == 0 && i < reply->number; i++) {
        const struct sxe_span name = name_of(&reply->fields[i], data);
        const struct sxe_span value = value_of_sent(&reply->fields[i], data);

        if (is_about_connection(&named, name) || has_field_name(name, "Date") ||
            (id != NULL && has_field_name(name, id)) || is_replaced(response, name))
            continue;
        to = mempcpy(to, name.base, name.length);
        to = mempcpy(to, ": ", 2);
        to = mempcpy(to, value.base, value.length);
        to = mempcpy(to, "\r\n", 2);
    }
    if (result < 0)
        return result;
    return sxe__http_add_lines(response, (struct sxe_span){made->room, (size_t)(to - made->room)});
}

uint64_t
sxe__http_proxy_length(const struct sxe_http_parser *reply, const char *data)
{
    const struct sxe_http_field *field = sxe_http_known(reply, SXE_HTTP_FIELD_CONTENT_LENGTH);
    uint64_t length = 0;

    if (reply->body == SXE_HTTP_BODY_LENGTH)
        return reply->length;
    if (reply->body != SXE_HTTP_BODY_NONE || field == NULL)
        return SXE_HTTP_LENGTH_UNKNOWN;
    /* Read the digits again: the parser has checked them, but forgets the length if no body
     * follows. */
    for (unsigned i = 0; i < field->value_length; i++)
        length = length * 10 + (uint64_t)(data[field->value + i] - '0');
    return length;
}
