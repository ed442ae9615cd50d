/* SPDX-License-Identifier: MIT
 *
 * What: forward proxies of the client: reads the environment, which may name a proxy for a host;
 * parses the URL of a proxy; writes the CONNECT request; says in words why a proxy failed.
 *
 *     http://us%40er:secret@proxy.example:3128/
 *            login                host        port
 */
#include "sxe-http-client-private.h"
#include "sxe-http-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define DEFAULT_PORT 1080u /* the port of a proxy that names none, as in curl */
#define LOGIN_MAX    512u  /* the most bytes of a user and a password */

/* ---- The environment ---- */

/* Return the value of the first of these variables that is set and not empty; *name becomes the
 * variable's name. */
static const char *
first_variable(const char *const *names, const char **name)
{
    for (; *names != NULL; names++) {
        const char *value = secure_getenv(*names);

        if (value != NULL && *value != '\0') {
            *name = *names;
            return value;
        }
    }
    return NULL;
}

/* Parse an address of IPv4 or IPv6. Returns how many bits the address has; 0: the text is no
 * address. */
static unsigned
parse_network(unsigned char address[16], const char *text)
{
    memset(address, 0, 16);
    if (inet_pton(AF_INET, text, address) == 1)
        return 32;
    return inet_pton(AF_INET6, text, address) == 1 ? 128 : 0;
}

static bool
has_same_start(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    const unsigned bytes = bits / 8;
    const unsigned rest = 8 - bits % 8;

    return memcmp(a, b, bytes) == 0 && (rest == 8 || (a[bytes] ^ b[bytes]) >> rest == 0);
}

/* Copy the host of a text: without a bracket at its start, and a bracket or a dot at its end.
 * False: the host is too long. */
static bool
copy_bare(char *to, size_t size, const char *text, size_t length)
{
    if (length > 0 && *text == '[') {
        text++;
        length--;
    }
    if (length > 0 && (text[length - 1] == ']' || text[length - 1] == '.'))
        length--;
    if (length >= size)
        return false;
    memcpy(to, text, length);
    to[length] = '\0';
    return true;
}

/* Whether the item, "10.0.0.0/8" or an address, contains this address, which has `all` bits. */
static bool
is_in_network(const unsigned char address[16], unsigned all, const char *item, size_t length)
{
    const char *slash = memchr(item, '/', length);
    unsigned char network[16];
    char text[64];
    unsigned long bits = all;
    char *end = NULL;

    if (!copy_bare(text, sizeof(text), item, slash != NULL ? (size_t)(slash - item) : length))
        return false;
    if (slash != NULL && slash + 1 < item + length) {
        if (slash[1] < '0' || slash[1] > '9')
            return false;
        bits = strtoul(slash + 1, &end, 10);
        if (end != item + length)
            return false;
    }
    return parse_network(network, text) == all && bits <= all &&
           has_same_start(address, network, (unsigned)bits);
}

/* Whether the name equals the item, or is below it: a.example is in "example", and in
 * ".example". */
static bool
is_at_or_below(const char *name, const char *item, size_t length)
{
    const size_t all = strlen(name);

    if (length > 0 && *item == '.') {
        item++;
        length--;
    }
    if (length > 0 && item[length - 1] == '.')
        length--;
    if (length == 0 || length > all || strncasecmp(name + all - length, item, length) != 0)
        return false;
    return length == all || name[all - length - 1] == '.';
}

static bool
is_direct(const char *host)
{
    static const char *const names[] = {"no_proxy", "NO_PROXY", NULL};
    const char *name;
    const char *item = first_variable(names, &name);
    unsigned char address[16];
    char bare[256];
    unsigned bits;

    if (item == NULL || !copy_bare(bare, sizeof(bare), host, strlen(host)))
        return false;
    bits = parse_network(address, bare);
    while (*(item += strspn(item, ", \t\r\n\v\f")) != '\0') {
        const size_t length = strcspn(item, ", \t\r\n\v\f");

        if ((length == 1 && *item == '*') || (bits > 0 ? is_in_network(address, bits, item, length)
                                                       : is_at_or_below(bare, item, length)))
            return true;
        item += length;
    }
    return false;
}

const char *
sxe_http_client_find_proxy(const char *scheme, const char *host, const char **variable)
{
    static const char *const plain[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const secure[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
                                         NULL};
    const bool is_secure = strcasecmp(scheme, "https") == 0;
    const char *name;
    const char *value;

    if (!is_secure && strcasecmp(scheme, "http") != 0)
        return NULL;
    value = first_variable(is_secure ? secure : plain, &name);
    if (value == NULL || is_direct(host))
        return NULL;
    if (variable != NULL)
        *variable = name;
    return value;
}

/* ---- The URL of a proxy ---- */

/* Decode the escapes of a text. Returns the length; -1: an escape is not valid, or no room. */
static int
decode_escapes(char *to, size_t size, struct sxe_span text)
{
    size_t used = 0;

    for (size_t i = 0; i < text.length; i++) {
        char digits[3] = {0};
        char byte = text.base[i];

        if (byte == '%') {
            if (text.length - i < 3 || !sxe__http_is_escape(text.base + i + 1))
                return -1;
            memcpy(digits, text.base + i + 1, 2);
            byte = (char)strtoul(digits, NULL, 16);
            i += 2;
        }
        if (used == size)
            return -1;
        to[used++] = byte;
    }
    return (int)used;
}

/* Append the bytes to the text, as base64 (RFC 4648, 4). */
static void
append_base64(char *text, const char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    text += strlen(text);
    for (size_t i = 0; i < length; i += 3) {
        const size_t left = length - i < 3 ? length - i : 3;
        uint32_t bits = 0;

        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < left ? (uint8_t)bytes[i + j] : 0);
        for (unsigned j = 0; j < 4; j++)
            *text++ = j <= left ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    *text = '\0';
}

/* Make the credentials of user:password, or of a user alone. The user's name must have no colon:
 * the proxy would take the part after the colon for the password (RFC 7617, 2). */
static bool
set_login(struct sxe__http_forward *forward, struct sxe_span login)
{
    const char *colon = memchr(login.base, ':', login.length);
    const size_t user = colon != NULL ? (size_t)(colon - login.base) : login.length;
    struct sxe_span password = {login.base + user + 1, colon != NULL ? login.length - user - 1 : 0};
    char bytes[LOGIN_MAX];
    int length = decode_escapes(bytes, sizeof(bytes) - 1, (struct sxe_span){login.base, user});
    int more;

    if (length < 0 || memchr(bytes, ':', (size_t)length) != NULL)
        return false;
    bytes[length++] = ':';
    more = decode_escapes(bytes + length, sizeof(bytes) - (size_t)length, password);
    if (more < 0)
        return false;
    snprintf(forward->login, sizeof(forward->login), "Basic ");
    append_base64(forward->login, bytes, (size_t)(length + more));
    return true;
}

/* Set host, port and name from "host:port", "[::1]:port" or one of them without a port. */
static bool
set_proxy_host(struct sxe__http_forward *forward, struct sxe_span text)
{
    const char *end = text.base + text.length;
    const char *host_end =
        text.length > 0 && *text.base == '[' ? memchr(text.base, ']', text.length) : NULL;
    const char *colon = host_end != NULL ? host_end + 1 : memchr(text.base, ':', text.length);
    unsigned long port = DEFAULT_PORT;

    if (colon == NULL)
        colon = end;
    if (colon == text.base || !sxe__http_host(text.base, text.length) ||
        memchr(text.base, '%', text.length) != NULL ||
        !copy_bare(forward->host, sizeof(forward->host), text.base, (size_t)(colon - text.base)))
        return false;
    if (end - colon > 1)
        port = strtoul(colon + 1, NULL, 10);
    forward->port = (uint16_t)port;
    snprintf(forward->name, sizeof(forward->name), host_end != NULL ? "[%s]:%lu" : "%s:%lu",
             forward->host, port);
    return port > 0;
}

/* Parse the URL of a proxy. 0, -EINVAL or -EPROTONOSUPPORT. */
static int
parse_proxy(struct sxe__http_forward *forward, const char *url)
{
    const size_t scheme =
        strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    struct sxe_span login;
    const char *at;

    if (strncmp(url + scheme, "://", 3) == 0) {
        if (scheme != 4 || strncasecmp(url, "http", scheme) != 0)
            return -EPROTONOSUPPORT;
        url += scheme + 3;
    }
    login = (struct sxe_span){url, strcspn(url, "/?#")};
    at = memrchr(url, '@', login.length);
    if (at == NULL)
        return set_proxy_host(forward, login) ? 0 : -EINVAL;
    if (!set_proxy_host(forward, (struct sxe_span){at + 1, login.length - (size_t)(at + 1 - url)}))
        return -EINVAL;
    login.length = (size_t)(at - url);
    return login.length == 0 || set_login(forward, login) ? 0 : -EINVAL;
}

/* ---- Tunnels ---- */

/* Write the CONNECT request (RFC 9110, 9.3.6). 0 or -EINVAL. */
static int
make_connect(struct sxe_http_client *client, struct sxe__http_forward *forward)
{
    const struct sxe_http_client_config *config = &client->config;
    const char *server = config->name != NULL ? config->name : config->ip;
    struct sxe_http_pair login = {sxe_http_span("Proxy-Authorization"),
                                  sxe_http_span(forward->login)};
    struct sxe_http_request_head request = {.method = sxe_http_span("CONNECT"),
                                            .fields = &login,
                                            .fields_number = forward->login[0] != '\0'};
    ssize_t length;

    if (config->start_tls == NULL)
        return -EINVAL;
    snprintf(forward->target, sizeof(forward->target),
             strchr(server, ':') != NULL ? "[%s]:%u" : "%s:%u", server, (unsigned)config->port);
    request.target = request.host = sxe_http_span(forward->target);
    length = sxe_http_request_write(&request, forward->request, sizeof(forward->request));
    if (length < 0)
        return -EINVAL;
    forward->length = (uint32_t)length;
    return 0;
}

int
sxe__http_forward_new(struct sxe_http_client *client, const char *url)
{
    struct sxe__http_forward *forward = calloc(1, sizeof(*forward));
    int result;

    if (forward == NULL)
        return -ENOMEM;
    client->forward = forward;
    /* the URL is owned by the program, which may free it, and the URL may contain a password */
    client->config.proxy = NULL;
    result = parse_proxy(forward, url);
    return result == 0 && client->config.tls != NULL ? make_connect(client, forward) : result;
}

/* ---- Failures ---- */

/* Say why the proxy made no tunnel or did not reply. If it replied to CONNECT, link->parser has the
 * reply. */
static const char *
describe_refusal(const struct sxe__http_link *link, int result, char *reason, size_t size)
{
    const struct sxe__http_forward *forward = link->client->forward;
    const struct sxe_http_parser *reply = &link->parser;

    if (link->look_up_error != 0)
        snprintf(reason, size, ": %s", gai_strerror(link->look_up_error));
    else if (link->has_head && reply->status == 407)
        snprintf(reason, size, " %s (407)",
                 forward->login[0] != '\0' ? "refuses the user or the password"
                                           : "wants a user and a password");
    else if (link->has_head && link->is_tunnelling)
        snprintf(reason, size, " does not connect to %s: %u %.*s", forward->target, reply->status,
                 (int)reply->reason.length, sxe__http_link_room(link) + reply->reason.offset);
    else if (result == -EPROTO && link->refusal != SXE_HTTP_NOT_REFUSED)
        snprintf(reason, size, ": its reply is not HTTP: %s",
                 sxe_http_refusal_text((enum sxe_http_refusal)link->refusal));
    else if (result == -EPROTO && link->is_tunnelling)
        snprintf(reason, size, " sent bytes before the handshake of TLS");
    else if (result == -ECONNRESET)
        snprintf(reason, size, " closed the connection before its reply was whole");
    else
        snprintf(reason, size, ": %s", strerror(-result));
    return reason;
}

const char *
sxe__http_client_failure(const struct sxe__http_link *link, int result)
{
    struct sxe_http_client *client = link->client;
    char reason[sizeof(client->failure) - sizeof(client->forward->name) - 16];

    if (link->complaint != NULL)
        return link->complaint;
    if (link->is_at_proxy && result != -EMSGSIZE && result != -ENOBUFS)
        snprintf(client->failure, sizeof(client->failure), "the proxy %s%s", client->forward->name,
                 describe_refusal(link, result, reason, sizeof(reason)));
    else if (link->look_up_error != 0)
        snprintf(client->failure, sizeof(client->failure), "%s: %s", client->config.name,
                 gai_strerror(link->look_up_error));
    else if (result == -EACCES && client->config.public_only)
        snprintf(client->failure, sizeof(client->failure), "%s: the address is not public",
                 client->config.name);
    else
        return NULL;
    return client->failure;
}
