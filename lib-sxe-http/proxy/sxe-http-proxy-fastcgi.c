/* SPDX-License-Identifier: MIT
 *
 * What: the parameters that FastCGI gets for a request: those of CGI (RFC 3875, 4.1), those that
 * php-fpm needs, and the fields of the request as HTTP_*.
 *
 * An application cannot tell X-A from X_A: both would be HTTP_X_A. So a field is passed only if its
 * name has nothing but letters, digits and dashes. A field that comes several times becomes one
 * parameter (RFC 9110, 5.3). HTTP_PROXY never exists: programs take it for a proxy of their own.
 */
#include "sxe-http-proxy-private.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "sxe-http-uri.h"

#define ADD_PARAM(made, name, ...)                         \
    (sxe__http_proxy_print((made), &text, __VA_ARGS__) < 0 \
         ? -EMSGSIZE                                       \
         : sxe__http_proxy_add((made), sxe_http_span(name), text))

/* ---- Fields ---- */

/* Whether the name becomes a name that no other field has. */
static bool
is_plain_name(struct sxe_span name)
{
    for (size_t i = 0; i < name.length; i++) {
        const char byte = name.base[i];

        if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= '0' && byte <= '9') && byte != '-')
            return false;
    }
    return true;
}

static bool
is_field_named(struct sxe_span name, struct sxe_span wanted)
{
    return name.length == wanted.length && sxe__http_is_same(name.base, wanted.base, wanted.length);
}

/* Whether other proxies name their clients in this field, which programs believe. REMOTE_ADDR has
 * the client. */
static bool
names_client(struct sxe_span name)
{
    static const char *const names[] = {
        "CF-Connecting-IP", "Client-IP",           "Fastly-Client-IP",         "True-Client-IP",
        "X-Client-IP",      "X-Cluster-Client-IP", "X-Original-Forwarded-For", "X-Forwarded"};

    for (size_t i = 0; i < SXE_COUNT(names); i++) {
        if (is_field_named(name, sxe_http_span(names[i])))
            return true;
    }
    return false;
}

/* Append the values of later fields with the same name as fields[index] to its value. These fields
 * are then without a name. */
static int
join_fields(struct sxe__http_proxy_head *made, unsigned index, unsigned number)
{
    struct sxe_http_pair *field = &made->fields[index];
    const char *between = is_field_named(field->name, sxe_http_span("Cookie")) ? "; " : ", ";
    int result = 0;

    for (unsigned i = index + 1; i < number && result == 0; i++) {
        struct sxe_http_pair *other = &made->fields[i];

        if (!is_field_named(other->name, field->name))
            continue;
        result = sxe__http_proxy_print(made, &field->value, "%.*s%s%.*s", (int)field->value.length,
                                       field->value.base, between, (int)other->value.length,
                                       other->value.base);
        other->name.length = 0;
    }
    return result;
}

/* Make HTTP_X_A of X-A. */
static int
rename_field(struct sxe__http_proxy_head *made, struct sxe_http_pair *field)
{
    char *to = made->room + made->used;
    const int result = sxe__http_proxy_print(made, &field->name, "HTTP_%.*s",
                                             (int)field->name.length, field->name.base);

    for (size_t i = 5; result == 0 && i < field->name.length; i++)
        to[i] = to[i] == '-'                   ? '_'
                : to[i] >= 'a' && to[i] <= 'z' ? (char)(to[i] - 'a' + 'A')
                                               : to[i];
    return result;
}

/* Add the fields of the request. The type of its body is no HTTP_*. */
static int
add_field_params(const struct sxe_http_proxy *proxy, const struct sxe_http_request *request,
                 struct sxe__http_proxy_head *made)
{
    const struct sxe_span host =
        proxy->host != NULL ? sxe_http_span(proxy->host) : sxe__http_proxy_asked_host(request);
    int result = sxe__http_proxy_pass_fields(request, made);
    const bool is_trusted = SXE__HTTP_SLOT_OF_CONST(request)->connection->is_trusted;
    unsigned kept = 0;
    unsigned number;

    if (result == 0 && host.length > 0)
        result = sxe__http_proxy_add(made, sxe_http_span("Host"), host);
    if (result == 0)
        result = sxe__http_proxy_add_id(request, made);
    number = made->number;
    for (unsigned i = 0; i < number && result == 0; i++) {
        struct sxe_http_pair *field = &made->fields[i];

        if (field->name.length == 0 || !is_plain_name(field->name) ||
            (!is_trusted && names_client(field->name)))
            continue;
        result = join_fields(made, i, number);
        if (is_field_named(field->name, sxe_http_span("Content-Type")))
            field->name = sxe_http_span("CONTENT_TYPE");
        else if (result == 0)
            result = rename_field(made, field);
        made->fields[kept++] = *field;
    }
    made->number = kept;
    return result;
}

/* ---- Other parameters ---- */

static unsigned
port_of_client(const struct sxe_http_request *request)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};

    (void)sxe_http_peer(request, &peer);
    return ntohs(peer.ss_family == AF_INET ? ((const struct sockaddr_in *)&peer)->sin_port
                                           : ((const struct sockaddr_in6 *)&peer)->sin6_port);
}

/* A client at a unix socket has no address. */
static int
add_client_params(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    const char *ip = sxe_http_peer_ip(request);
    struct sxe_span text;
    int result = ADD_PARAM(made, "REMOTE_ADDR", "%s", ip);

    return result < 0 || *ip == '\0'
               ? result
               : ADD_PARAM(made, "REMOTE_PORT", "%u", port_of_client(request));
}

static int
add_server_params(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    const SXE *s = sxe_http_socket(request);
    const struct sxe_span host = sxe__http_proxy_asked_host(request);
    const char *scheme = sxe__http_proxy_asked_scheme(request);
    const bool is_secure = strcmp(scheme, "https") == 0;
    const char *colon = host.length == 0 ? NULL : memrchr(host.base, ':', host.length);
    const size_t after = colon == NULL ? 0 : (size_t)(host.base + host.length - colon);
    const bool has_colon = colon != NULL && memchr(colon, ']', after) == NULL;
    const size_t name = has_colon ? (size_t)(colon - host.base) : host.length;
    struct sxe_span text;
    int result = 0;

    if (name > 0)
        result = sxe__http_proxy_add(made, sxe_http_span("SERVER_NAME"),
                                     (struct sxe_span){host.base, name});
    else
        result = ADD_PARAM(made, "SERVER_NAME", "%s", sxe_local_ip(s));
    if (result == 0 && has_colon && after > 1)
        result = sxe__http_proxy_add(made, sxe_http_span("SERVER_PORT"),
                                     (struct sxe_span){colon + 1, after - 1});
    else if (result == 0 && name == 0)
        result = ADD_PARAM(made, "SERVER_PORT", "%u", sxe_local_port(s));
    else if (result == 0)
        result = ADD_PARAM(made, "SERVER_PORT", "%s", is_secure ? "443" : "80");
    if (result == 0)
        result = ADD_PARAM(made, "SERVER_ADDR", "%s", sxe_local_ip(s));
    if (result == 0)
        result = ADD_PARAM(made, "REQUEST_SCHEME", "%s", scheme);
    if (result == 0 && is_secure)
        result = ADD_PARAM(made, "HTTPS", "on");
    return result;
}

/* Add the user whose password the server has checked. */
static int
add_user_params(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    struct sxe_http_basic basic;
    const struct sxe_span user = sxe_http_user(request, &basic);
    struct sxe_span text;

    if (user.base == NULL)
        return 0;
    return ADD_PARAM(made, "AUTH_TYPE", "Basic") < 0
               ? -EMSGSIZE
               : ADD_PARAM(made, "REMOTE_USER", "%.*s", (int)user.length, user.base);
}

static int
add_request_params(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);
    const struct sxe_span query = request->query;
    const uint64_t length = slot->is_body_streamed && !slot->is_body_whole ? request->head.length
                                                                           : request->body.length;
    struct sxe_span text;
    int result = ADD_PARAM(made, "REQUEST_URI", "%.*s%s%.*s", (int)request->path.length,
                           request->path.base, query.base == NULL ? "" : "?", (int)query.length,
                           query.base == NULL ? "" : query.base);

    if (result == 0)
        result = sxe__http_proxy_add(made, sxe_http_span("REQUEST_METHOD"),
                                     sxe_http_method_text(request));
    if (result == 0)
        result = sxe__http_proxy_add(made, sxe_http_span("QUERY_STRING"),
                                     query.base == NULL ? (struct sxe_span){"", 0} : query);
    if (result == 0)
        result = ADD_PARAM(made, "SERVER_PROTOCOL", "HTTP/1.%u", request->head.minor > 0 ? 1u : 0u);
    if (result == 0 && request->head.body != SXE_HTTP_BODY_NONE)
        result = ADD_PARAM(made, "CONTENT_LENGTH", "%llu", (unsigned long long)length);
    return result;
}

/* Without scripts the whole path is PATH_INFO. */
static int
add_script_params(const struct sxe_http_proxy *proxy, const struct sxe__http_script *script,
                  struct sxe__http_proxy_head *made)
{
    const char *root = sxe__http_script_root(proxy->scripts);
    struct sxe_span text;
    int result = ADD_PARAM(made, "SCRIPT_FILENAME", "%s%.*s", root, (int)script->name.length,
                           script->name.base);

    if (result == 0)
        result = ADD_PARAM(made, "SCRIPT_NAME", "%.*s%.*s", (int)script->prefix.length,
                           script->prefix.base, (int)script->name.length, script->name.base);
    if (result == 0)
        result = ADD_PARAM(made, "DOCUMENT_ROOT", "%s", *root == '\0' ? "/" : root);
    return result == 0 && script->info.length > 0
               ? sxe__http_proxy_add(made, sxe_http_span("PATH_INFO"), script->info)
               : result;
}

/* An application without scripts is below the route's prefix. */
static int
add_path_params(const struct sxe_http_request *request, struct sxe__http_proxy_head *made)
{
    char *to = made->room + made->used;
    const ssize_t length = sxe_http_decode_path(request->path, to, sizeof(made->room) - made->used);

    int result = length == -ENOBUFS ? -EMSGSIZE
                 : length < 0       ? -EINVAL
                                    : sxe__http_proxy_add(made, sxe_http_span("SCRIPT_NAME"),
                                                          (struct sxe_span){"", 0});

    made->used += length > 0 ? (size_t)length : 0;
    return result < 0 ? result
                      : sxe__http_proxy_add(made, sxe_http_span("PATH_INFO"),
                                            (struct sxe_span){to, (size_t)length});
}

int
sxe__http_proxy_make_params(const struct sxe_http_proxy *proxy,
                            const struct sxe_http_request *request,
                            const struct sxe__http_script *script,
                            struct sxe__http_proxy_head *made)
{
    static const struct sxe_http_pair constant[] = {
        {{"GATEWAY_INTERFACE", 17}, {"CGI/1.1", 7}},
        {{"SERVER_SOFTWARE", 15}, {"sxe", 3}},
        {{"REDIRECT_STATUS", 15}, {"200", 3}}, /* a PHP for CGI wants it */
    };
    int result;

    made->number = 0;
    made->used = 0;
    made->head = (struct sxe_http_request_head){.method = sxe_http_method_text(request),
                                                .fields = made->fields};
    result = add_field_params(proxy, request, made);
    for (unsigned i = 0; result == 0 && i < SXE_COUNT(constant); i++)
        result = sxe__http_proxy_add(made, constant[i].name, constant[i].value);
    if (result == 0)
        result = add_request_params(request, made);
    if (result == 0)
        result = script != NULL ? add_script_params(proxy, script, made)
                                : add_path_params(request, made);
    if (result == 0)
        result = add_client_params(request, made);
    if (result == 0)
        result = add_server_params(request, made);
    if (result == 0)
        result = add_user_params(request, made);
    made->head.fields_number = made->number;
    return result;
}
