/* SPDX-License-Identifier: MIT
 *
 * What: the parameters of a FastCGI request (RFC 3875, 4.1) are checked and written as the head of
 * an HTTP request, which the HTTP server then checks as it checks each head. Each byte that could
 * end a line or a field is refused here.
 */
#include "sxe-http-fastcgi-private.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sxe-http-list.h"

#define DIGITS_MAX 18 /* of CONTENT_LENGTH */

static const struct {
    const char *name;
    size_t length;
} names[SXE__FASTCGI_PARAMS] = {
#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
    [SXE__FASTCGI_METHOD] = NAME("REQUEST_METHOD"),
    [SXE__FASTCGI_URI] = NAME("REQUEST_URI"),
    [SXE__FASTCGI_PROTOCOL] = NAME("SERVER_PROTOCOL"),
    [SXE__FASTCGI_LENGTH] = NAME("CONTENT_LENGTH"),
    [SXE__FASTCGI_TYPE] = NAME("CONTENT_TYPE"),
    [SXE__FASTCGI_REMOTE_ADDR] = NAME("REMOTE_ADDR"),
    [SXE__FASTCGI_REMOTE_PORT] = NAME("REMOTE_PORT"),
    [SXE__FASTCGI_HTTPS] = NAME("HTTPS"),
    [SXE__FASTCGI_SCHEME] = NAME("REQUEST_SCHEME"),
    [SXE__FASTCGI_SERVER_NAME] = NAME("SERVER_NAME"),
    [SXE__FASTCGI_SERVER_PORT] = NAME("SERVER_PORT"),
    [SXE__FASTCGI_HTTP_LENGTH] = NAME("HTTP_CONTENT_LENGTH"),
    [SXE__FASTCGI_HTTP_TYPE] = NAME("HTTP_CONTENT_TYPE"),
};

static bool
is_text(struct sxe_span span, const char *text)
{
    return span.base != NULL && span.length == strlen(text) &&
           strncasecmp(span.base, text, span.length) == 0;
}

/* Fields for the web server alone (RFC 9110, 7.6.1): they are about its connection to the client.
 * FastCGI frames the body, and the web server answers Expect. */
static bool
is_for_one_hop(struct sxe_span name)
{
    static const char *const hop[] = {
        "HTTP_CONNECTION", "HTTP_KEEP_ALIVE",       "HTTP_TE",     "HTTP_TRAILER",
        "HTTP_UPGRADE",    "HTTP_PROXY_CONNECTION", "HTTP_EXPECT", "HTTP_TRANSFER_ENCODING"};

    for (size_t i = 0; i < SXE_COUNT(hop); i++) {
        if (is_text(name, hop[i]))
            return true;
    }
    return false;
}

static bool
is_field(struct sxe_span name)
{
    return name.length > 5 && memcmp(name.base, "HTTP_", 5) == 0;
}

/* Whether a value can be that of a field (RFC 9110, 5.5). */
static bool
is_clean(struct sxe_span value)
{
    for (size_t i = 0; i < value.length; i++) {
        uint8_t byte = (uint8_t)value.base[i];

        if ((byte < ' ' && byte != '\t') || byte == 0x7F)
            return false;
    }
    return true;
}

/* Whether the text can be a target; the HTTP server checks the rest. */
static bool
is_target(struct sxe_span text)
{
    for (size_t i = 0; i < text.length; i++) {
        if (text.base[i] == ' ' || text.base[i] == '\t')
            return false;
    }
    return text.length > 0 && is_clean(text);
}

/* Whether all letters of a name are capitals, and no byte would be another name's in a field. */
static bool
is_variable(struct sxe_span name)
{
    for (size_t i = 0; i < name.length; i++) {
        char byte = name.base[i];

        if (!((byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_'))
            return false;
    }
    return true;
}

static const char *
take_param(struct sxe__fastcgi_params *params, struct sxe_span name, struct sxe_span value)
{
    for (unsigned i = 0; i < SXE__FASTCGI_PARAMS; i++) {
        if (name.length != names[i].length || memcmp(name.base, names[i].name, name.length) != 0)
            continue;
        if (params->known[i].base != NULL)
            return "a parameter comes twice";
        params->known[i] = value;
        return is_clean(value) ? NULL : "a parameter has a control byte";
    }
    if (!is_field(name))
        return NULL;
    if (!is_variable(name))
        return "the name of a field has other bytes than A-Z 0-9 _";
    if (is_text(name, "HTTP_HOST"))
        params->has_host = true;
    return is_clean(value) ? NULL : "a field has a control byte";
}

/* ---- The values together ---- */

static bool
is_given(struct sxe_span span)
{
    return span.length > 0;
}

/* RFC 3875, 4.1.16, but a later version than HTTP/1.1 is served as HTTP/1.1. */
static const char *
read_protocol(struct sxe__fastcgi_params *params)
{
    struct sxe_span text = params->known[SXE__FASTCGI_PROTOCOL];

    params->minor = is_text(text, "HTTP/1.0") ? 0 : 1;
    if (is_given(text) && (text.length < 6 || strncasecmp(text.base, "HTTP/", 5) != 0))
        return "SERVER_PROTOCOL is not a version of HTTP";
    return NULL;
}

static const char *
read_param_length(struct sxe__fastcgi_params *params)
{
    struct sxe_span text = params->known[SXE__FASTCGI_LENGTH];
    struct sxe_span field = params->known[SXE__FASTCGI_HTTP_LENGTH];

    if (field.base != NULL &&
        (field.length != text.length || memcmp(field.base, text.base, field.length) != 0))
        return "HTTP_CONTENT_LENGTH and CONTENT_LENGTH differ";
    if (!is_given(text))
        return NULL;
    if (text.length > DIGITS_MAX)
        return "CONTENT_LENGTH is too large";
    for (size_t i = 0; i < text.length; i++) {
        if (text.base[i] < '0' || text.base[i] > '9')
            return "CONTENT_LENGTH is not a number";
        params->length = params->length * 10 + (uint64_t)(text.base[i] - '0');
    }
    params->has_length = true;
    return NULL;
}

static const char *
check_type(const struct sxe__fastcgi_params *params)
{
    struct sxe_span text = params->known[SXE__FASTCGI_TYPE];
    struct sxe_span field = params->known[SXE__FASTCGI_HTTP_TYPE];

    if (field.base != NULL &&
        (field.length != text.length || memcmp(field.base, text.base, field.length) != 0))
        return "HTTP_CONTENT_TYPE and CONTENT_TYPE differ";
    return NULL;
}

static bool
read_param_port(struct sxe_span text, in_port_t *port)
{
    unsigned number = 0;

    for (size_t i = 0; i < text.length; i++) {
        if (text.base[i] < '0' || text.base[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text.base[i] - '0');
        if (number > 65535)
            return false;
    }
    *port = htons((uint16_t)number);
    return true;
}

/* nginx writes "unix:" for a client at a unix socket. */
static const char *
read_peer(struct sxe__fastcgi_params *params)
{
    struct sxe_span text = params->known[SXE__FASTCGI_REMOTE_ADDR];
    struct sockaddr_in *in4 = (struct sockaddr_in *)&params->peer;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&params->peer;
    char ip[INET6_ADDRSTRLEN] = "";
    in_port_t port = 0;

    if (!read_param_port(params->known[SXE__FASTCGI_REMOTE_PORT], &port))
        return "REMOTE_PORT is not a port";
    if (!is_given(text) || is_text(text, "unix:"))
        return NULL;
    if (text.length >= sizeof(ip))
        return "REMOTE_ADDR is not an IP address";
    memcpy(ip, text.base, text.length);
    if (inet_pton(AF_INET, ip, &in4->sin_addr) == 1) {
        in4->sin_family = AF_INET;
        in4->sin_port = port;
        return NULL;
    }
    memset(&params->peer, 0, sizeof(params->peer));
    if (inet_pton(AF_INET6, ip, &in6->sin6_addr) != 1)
        return "REMOTE_ADDR is not an IP address";
    in6->sin6_family = AF_INET6;
    in6->sin6_port = port;
    return NULL;
}

static const char *
check_known(struct sxe__fastcgi_params *params)
{
    const char *wrong = read_protocol(params);

    if (!sxe_http_is_token(params->known[SXE__FASTCGI_METHOD]))
        return "REQUEST_METHOD is not a method";
    if (!is_target(params->known[SXE__FASTCGI_URI]))
        return "REQUEST_URI is not a target";
    params->is_line_good = true;
    params->is_https = is_text(params->known[SXE__FASTCGI_HTTPS], "on") ||
                       is_text(params->known[SXE__FASTCGI_HTTPS], "1") ||
                       is_text(params->known[SXE__FASTCGI_SCHEME], "https");
    if (wrong == NULL)
        wrong = read_peer(params);
    if (wrong == NULL)
        wrong = read_param_length(params);
    return wrong == NULL ? check_type(params) : wrong;
}

/* The known parameters are read even after one that is wrong, for the log's line. */
const char *
sxe__fastcgi_params_read(struct sxe__fastcgi_params *params, const char *data, size_t length)
{
    const char *wrong = NULL;
    const char *unknown;
    struct sxe_span name;
    struct sxe_span value;
    ssize_t n;

    *params = (struct sxe__fastcgi_params){.minor = 1};
    for (size_t at = 0; at < length; at += (size_t)n) {
        const char *why;

        n = sxe_http_fastcgi_pair(data + at, length - at, &name, &value);
        if (n <= 0)
            return n == 0 ? "a parameter is longer than its stream" : "a parameter has no name";
        why = take_param(params, name, value);
        wrong = wrong == NULL ? why : wrong;
    }
    unknown = check_known(params);
    return wrong == NULL ? unknown : wrong;
}

/* ---- The head ---- */

static char *
put_text(char *to, const char *text)
{
    return mempcpy(to, text, strlen(text));
}

static char *
put_span(char *to, struct sxe_span span)
{
    return span.length == 0 ? to : mempcpy(to, span.base, span.length);
}

/* HTTP_X_FORWARDED_FOR -> X-Forwarded-For */
static char *
put_param_field(char *to, struct sxe_span name, struct sxe_span value)
{
    bool is_first = true;

    for (size_t i = 5; i < name.length; i++) {
        char byte = name.base[i];

        *to++ = byte == '_' ? '-' : is_first || byte <= '9' ? byte : (char)(byte | 0x20);
        is_first = byte == '_';
    }
    to = put_text(to, ": ");
    return put_text(put_span(to, value), "\r\n");
}

static char *
put_param_line(const struct sxe__fastcgi_params *params, char *to)
{
    to = put_span(to, params->known[SXE__FASTCGI_METHOD]);
    *to++ = ' ';
    to = put_span(to, params->known[SXE__FASTCGI_URI]);
    return put_text(to, params->minor == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
}

/* The client's Host is missing: HTTP/1.0, or a web server that does not pass it on. */
static char *
put_param_host(const struct sxe__fastcgi_params *params, char *to)
{
    struct sxe_span name = params->known[SXE__FASTCGI_SERVER_NAME];
    struct sxe_span port = params->known[SXE__FASTCGI_SERVER_PORT];

    if (params->has_host || !is_given(name))
        return to;
    to = put_span(put_text(to, "Host: "), name);
    if (is_given(port) && !is_text(port, params->is_https ? "443" : "80"))
        to = put_span(put_text(to, ":"), port);
    return put_text(to, "\r\n");
}

static char *
put_fields(const char *data, size_t length, char *to)
{
    struct sxe_span name;
    struct sxe_span value;
    ssize_t n;

    for (size_t at = 0; at < length; at += (size_t)n) {
        n = sxe_http_fastcgi_pair(data + at, length - at, &name, &value);
        if (is_field(name) && !is_for_one_hop(name) && !is_text(name, "HTTP_CONTENT_LENGTH") &&
            !is_text(name, "HTTP_CONTENT_TYPE"))
            to = put_param_field(to, name, value);
    }
    return to;
}

char *
sxe__fastcgi_params_write(const struct sxe__fastcgi_params *params, const char *data, size_t length,
                          bool is_chunked, char *to)
{
    to = put_param_host(params, put_param_line(params, to));
    to = put_fields(data, length, to);
    if (is_given(params->known[SXE__FASTCGI_TYPE])) {
        to = put_span(put_text(to, "Content-Type: "), params->known[SXE__FASTCGI_TYPE]);
        to = put_text(to, "\r\n");
    }
    if (is_chunked) {
        to = put_text(to, "Transfer-Encoding: chunked\r\n");
    } else if (params->has_length) {
        to = put_span(put_text(to, "Content-Length: "), params->known[SXE__FASTCGI_LENGTH]);
        to = put_text(to, "\r\n");
    }
    return put_text(to, "\r\n");
}

/* A field without a name is refused by each HTTP server. */
char *
sxe__fastcgi_params_write_wrong(const struct sxe__fastcgi_params *params, char *to)
{
    to = params->is_line_good ? put_param_line(params, to) : put_text(to, "- - HTTP/1.1\r\n");
    return put_text(to, ":\r\n\r\n");
}

char *
sxe__fastcgi_params_write_long(char *to, size_t head_max)
{
    to = put_text(to, "GET / HTTP/1.1\r\nHost: -\r\nX: ");
    return (char *)memset(to, 'x', head_max) + head_max;
}
