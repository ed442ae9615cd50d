/* SPDX-License-Identifier: MIT
 *
 * What: finds the client of a request. It is the peer of the socket, or the client of a PROXY
 * header, or the client that trusted proxies name in a field. That field is walked from the right,
 * over trusted addresses, as sxe-http-forwarded.h says; the element at which the walk ends names
 * the host and the scheme.
 *
 * A connection of a trusted proxy has requests of many clients. So such a connection counts for a
 * client (config.address_max) only while a request of that client is under way.
 */
#include "sxe-http-server-private.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "sxe-cidr.h"
#include "sxe-http-list.h"
#include "sxe-http-private.h"
#include "sxe-proxy.h"

/* Copy the client's address, without zeros after it. Returns its length; 0: there is none. */
static socklen_t
copy_peer(const struct sxe__http_slot *slot, struct sockaddr_storage *address)
{
    const struct sxe__http_connection *connection = slot->connection;

    if (slot->is_forwarded && slot->client_length > 0) {
        memcpy(address, slot->client, slot->client_length);
        return slot->client_length;
    }
    if (connection->peer_length == 0) {
        socklen_t length = sxe_get_peer(connection->sxe, address);

        return length > 0 && address->ss_family != AF_UNIX ? length : 0;
    }
    if (connection->peer_length ==
        sizeof(struct sockaddr_in)) /* a copy of fixed length is no call */
        memcpy(address, connection->peer, sizeof(struct sockaddr_in));
    else
        memcpy(address, connection->peer, connection->peer_length);
    return connection->peer_length;
}

socklen_t
sxe_http_peer(const struct sxe_http_request *request, struct sockaddr_storage *address)
{
    memset(address, 0, sizeof(*address));
    return copy_peer(SXE__HTTP_SLOT_OF_CONST(request), address);
}

static char *
put_byte_of_address(char *to, unsigned byte)
{
    if (byte >= 100)
        *to++ = (char)('0' + byte / 100);
    if (byte >= 10)
        *to++ = (char)('0' + byte / 10 % 10);
    *to++ = (char)('0' + byte % 10);
    return to;
}

/* Like inet_ntop(3) for IPv4, which calls printf(3) and takes ten times as long: an access log has
 * an address in each line. */
static void
put_ipv4(char *to, const void *address)
{
    const uint8_t *bytes = address;

    for (unsigned i = 0; i < 4; i++) {
        to = put_byte_of_address(to, bytes[i]);
        *to++ = i < 3 ? '.' : '\0';
    }
}

/* The form in which a listener on :: sees IPv4 addresses is mapped. */
static void
put_ipv6(char *to, const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        put_ipv4(stpcpy(to, "::ffff:"), address->s6_addr + 12);
    else
        inet_ntop(AF_INET6, address, to, INET6_ADDRSTRLEN);
}

const char *
sxe_http_peer_ip(const struct sxe_http_request *request)
{
    char *text = SXE__HTTP_SLOT_OF_CONST(request)->connection->http->ip;
    struct sockaddr_storage address;
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address;

    text[0] = '\0';
    if (copy_peer(SXE__HTTP_SLOT_OF_CONST(request), &address) == 0)
        return text;
    if (address.ss_family == AF_INET)
        put_ipv4(text, &in->sin_addr);
    else
        put_ipv6(text, &in6->sin6_addr);
    return text;
}

const char *
sxe_http_forwarded_scheme(const struct sxe_http_request *request)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_CONST(request);

    if (slot->is_forwarded)
        return slot->forwarded_scheme;
    if (!slot->connection->is_cgi)
        return "";
    return slot->connection->is_https ? "https" : "http";
}

/* ---- Lines of a field, from the last one to the first ---- */

/* The lines of a field. The lines from index `at` on were read already. */
struct lines {
    const struct sxe_http_request *request;
    const char *name;
    unsigned at;
};

static bool
previous_line(struct lines *lines, struct sxe_span *value)
{
    const struct sxe_http_request *request = lines->request;
    const size_t length = strlen(lines->name);

    while (lines->at > 0) {
        const struct sxe_http_field *field = &request->head.fields[--lines->at];

        if (field->name_length != length ||
            strncasecmp(request->data + field->name, lines->name, length) != 0)
            continue;
        *value = (struct sxe_span){request->data + field->value, field->value_length};
        return true;
    }
    return false;
}

static struct lines
lines_of(const struct sxe_http_request *request, const char *name)
{
    return (struct lines){request, name, request->head.number};
}

/* ---- The walk ---- */

static const char *
forwarded_scheme_of(struct sxe_span text)
{
    if (text.length == 4 && strncasecmp(text.base, "http", 4) == 0)
        return "http";
    return text.length == 5 && strncasecmp(text.base, "https", 5) == 0 ? "https" : "";
}

/* Take the address of a hop. Returns whether the walk goes on, because the hop is a trusted
 * proxy. */
static bool
take_hop(struct sxe__http_slot *slot, const struct sxe_http_hop *hop)
{
    if (hop->address_length == 0)
        return false;
    slot->client_length = (uint8_t)hop->address_length;
    memcpy(slot->client, &hop->address, hop->address_length);
    return sxe_cidr_match(slot->request.http->config.trusted,
                          (const struct sockaddr *)&hop->address);
}

/* Walk the lines of the field of that name. Returns the number of elements that were read. */
static unsigned
walk_lines(struct sxe__http_slot *slot, const char *name,
           int (*last)(struct sxe_span *rest, struct sxe_http_hop *hop))
{
    struct lines lines = lines_of(&slot->request, name);
    struct sxe_http_hop hop;
    struct sxe_span rest;
    unsigned hops = 0;
    int result = 0;

    while (result == 0 && previous_line(&lines, &rest)) {
        while ((result = last(&rest, &hop)) > 0) {
            hops++;
            slot->forwarded_host = hop.host;
            slot->forwarded_scheme = forwarded_scheme_of(hop.proto);
            if (!take_hop(slot, &hop))
                return hops;
        }
    }
    return hops;
}

/* Take the last element of a line. *has_more: whether a comma stands before the element. */
static struct sxe_span
take_element(struct sxe_span *rest, bool *has_more)
{
    const char *comma = rest->length == 0 ? NULL : memrchr(rest->base, ',', rest->length);
    const size_t start = comma == NULL ? 0 : (size_t)(comma + 1 - rest->base);
    const struct sxe_span element = {rest->base + start, rest->length - start};

    *has_more = comma != NULL;
    rest->length = comma == NULL ? 0 : start - 1;
    return sxe_http_without_blanks(element);
}

/* Get element number `index` from the right, counted from 1. If the field has a single element, it
 * counts for every index. base NULL: there is no such element. */
static struct sxe_span
element_of(const struct sxe_http_request *request, const char *name, unsigned index)
{
    const struct sxe_span none = {NULL, 0};
    struct lines lines = lines_of(request, name);
    struct sxe_span found = none;
    struct sxe_span rest;
    unsigned number = 0;
    bool has_more;

    while (previous_line(&lines, &rest)) {
        do {
            found = take_element(&rest, &has_more);
            if (++number == index)
                return found;
        } while (has_more);
    }
    return number == 1 ? found : none;
}

/* Read the host and scheme that belong to the element at which the walk ended. A proxy always
 * appends to X-Forwarded-For. To X-Forwarded-Host and X-Forwarded-Proto a proxy may append as well;
 * or it sets these fields, and then they have a single element. */
static void
take_x_forwarded(struct sxe__http_slot *slot)
{
    const unsigned hops = walk_lines(slot, "X-Forwarded-For", sxe_http_forwarded_for_last);
    const unsigned index = hops == 0 ? 1 : hops;
    const struct sxe_span host = element_of(&slot->request, "X-Forwarded-Host", index);

    slot->forwarded_scheme =
        forwarded_scheme_of(element_of(&slot->request, "X-Forwarded-Proto", index));
    if (host.length > 0 && sxe__http_host(host.base, host.length))
        slot->forwarded_host = host;
}

/* ---- Counting ---- */

/* Count one connection more for a key. Returns whether a key may have as many as it now has. */
static bool
count_key(struct sxe_http *http, uint64_t key)
{
    return key == 0 || sxe__http_clients_add(http->clients, key) <= http->config.address_max;
}

/* Count the request for its client. Returns whether the client may have as many as it now has. */
static bool
count_client(struct sxe__http_slot *slot)
{
    struct sxe__http_connection *connection = slot->connection;
    struct sxe_http *http = connection->http;
    struct sockaddr_storage address;

    sxe__http_uncount(connection);
    if (http->clients == NULL)
        return true;
    connection->address = sxe__http_client_key(&address, sxe_http_peer(&slot->request, &address));
    return count_key(http, connection->address);
}

unsigned
sxe__http_forward(struct sxe__http_slot *slot, unsigned status)
{
    slot->is_forwarded = true;
    slot->client_length = 0;
    slot->forwarded_host = (struct sxe_span){NULL, 0};
    slot->forwarded_scheme = "";
    if (slot->request.http->config.forwarding == SXE_HTTP_FORWARDING_FORWARDED)
        (void)walk_lines(slot, "Forwarded", sxe_http_forwarded_last);
    else
        take_x_forwarded(slot);
    return count_client(slot) || status != 0 ? status : 503;
}

/* ---- The client of a connection ---- */

/* Count a connection. Returns whether its address may have as many as it now has. */
static bool
is_welcome(struct sxe__http_connection *connection, const struct sockaddr_storage *address,
           socklen_t length)
{
    struct sxe_http *http = connection->http;

    if (http->clients == NULL)
        return true;
    connection->address = sxe__http_client_key(address, length);
    return count_key(http, connection->address);
}

static bool
is_in_list(const struct sxe_cidr_list *list, const struct sockaddr_storage *address)
{
    return list != NULL && sxe_cidr_match(list, (const struct sockaddr *)address);
}

bool
sxe__http_is_unwelcome(struct sxe_http *http, const SXE *s)
{
    const struct sxe_http_config *config = &http->config;
    struct sockaddr_storage address;
    const socklen_t length = sxe_get_peer(s, &address);
    const uint64_t key = http->clients == NULL ? 0 : sxe__http_client_key(&address, length);
    bool has_room;

    /* Connections of proxies are not limited: their clients are not known yet. */
    if (key == 0 || is_in_list(config->proxies, &address) ||
        (config->forwarding != SXE_HTTP_FORWARDING_NONE && is_in_list(config->trusted, &address)))
        return false;
    has_room = count_key(http, key);
    sxe__http_clients_remove(http->clients, key);
    return !has_room;
}

/* Whether each request has its own client: the connection is that of a proxy that forwards
 * requests. */
static bool
is_forwarding(const struct sxe__http_connection *connection, const struct sockaddr_storage *address,
              socklen_t length)
{
    const struct sxe_http_config *config = &connection->http->config;

    if (config->forwarding == SXE_HTTP_FORWARDING_NONE || config->trusted == NULL)
        return false;
    return length == 0 ? connection->is_trusted
                       : sxe_cidr_match(config->trusted, (const struct sockaddr *)address);
}

static socklen_t
address_length(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return sizeof(struct sockaddr_in);
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

socklen_t
sxe__http_keep_peer(struct sxe__http_connection *connection, const struct sockaddr_storage *address)
{
    socklen_t length = address_length(address);

    connection->peer_length = (uint8_t)length;
    memcpy(connection->peer, address, length);
    return length;
}

unsigned
sxe__http_set_client(struct sxe__http_connection *connection,
                     const struct sockaddr_storage *address, socklen_t length)
{
    connection->phase = SXE__HTTP_READ_HEAD;
    connection->is_forwarding = is_forwarding(connection, address, length);
    return connection->is_forwarding || is_welcome(connection, address, length) ? 0 : 503;
}

size_t
sxe__http_read_proxy(struct sxe__http_connection *connection, const char *data, size_t length,
                     unsigned *status)
{
    struct sxe_proxy proxy;
    int n = sxe_proxy_parse(data, length, &proxy);

    *status = 0;
    if (n == 0)
        return 0;
    if (n < 0) {
        SXE_WARN_ID(connection->sxe->id,
                    "dropping a connection of a proxy, %s: it does not begin "
                    "with a PROXY header",
                    sxe_peer_ip(connection->sxe));
        sxe_abort(connection->sxe);
        sxe__http_dismiss(connection);
        return length;
    }
    *status = sxe__http_set_client(connection, &proxy.source,
                                   sxe__http_keep_peer(connection, &proxy.source));
    return (size_t)n;
}
