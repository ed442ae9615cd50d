/* SPDX-License-Identifier: MIT
 *
 * What: the head of a reply. Most heads equal the head before them, so the server keeps the last
 * head as long as its Date is right, and composes another only when something differs.
 *
 *     status line | Date | lines of every reply | lines of this one | type | length | connection
 */
#include "sxe-http-server-private.h"

#include <string.h>

#include "sxe-http-private.h"

#define STATUSES(X)                           \
    X(100, "Continue")                        \
    X(101, "Switching Protocols")             \
    X(103, "Early Hints")                     \
    X(200, "OK")                              \
    X(201, "Created")                         \
    X(202, "Accepted")                        \
    X(203, "Non-Authoritative Information")   \
    X(204, "No Content")                      \
    X(205, "Reset Content")                   \
    X(206, "Partial Content")                 \
    X(207, "Multi-Status")                    \
    X(208, "Already Reported")                \
    X(226, "IM Used")                         \
    X(300, "Multiple Choices")                \
    X(301, "Moved Permanently")               \
    X(302, "Found")                           \
    X(303, "See Other")                       \
    X(304, "Not Modified")                    \
    X(305, "Use Proxy")                       \
    X(307, "Temporary Redirect")              \
    X(308, "Permanent Redirect")              \
    X(400, "Bad Request")                     \
    X(401, "Unauthorized")                    \
    X(402, "Payment Required")                \
    X(403, "Forbidden")                       \
    X(404, "Not Found")                       \
    X(405, "Method Not Allowed")              \
    X(406, "Not Acceptable")                  \
    X(407, "Proxy Authentication Required")   \
    X(408, "Request Timeout")                 \
    X(409, "Conflict")                        \
    X(410, "Gone")                            \
    X(411, "Length Required")                 \
    X(412, "Precondition Failed")             \
    X(413, "Content Too Large")               \
    X(414, "URI Too Long")                    \
    X(415, "Unsupported Media Type")          \
    X(416, "Range Not Satisfiable")           \
    X(417, "Expectation Failed")              \
    X(421, "Misdirected Request")             \
    X(422, "Unprocessable Content")           \
    X(423, "Locked")                          \
    X(424, "Failed Dependency")               \
    X(425, "Too Early")                       \
    X(426, "Upgrade Required")                \
    X(428, "Precondition Required")           \
    X(429, "Too Many Requests")               \
    X(431, "Request Header Fields Too Large") \
    X(451, "Unavailable For Legal Reasons")   \
    X(500, "Internal Server Error")           \
    X(501, "Not Implemented")                 \
    X(502, "Bad Gateway")                     \
    X(503, "Service Unavailable")             \
    X(504, "Gateway Timeout")                 \
    X(505, "HTTP Version Not Supported")      \
    X(506, "Variant Also Negotiates")         \
    X(507, "Insufficient Storage")            \
    X(508, "Loop Detected")                   \
    X(511, "Network Authentication Required")

struct reason {
    uint16_t status;
    const char *text;
};

static const struct reason reasons[] = {
#define REASON(status, text) {status, text},
    STATUSES(REASON)
#undef REASON
};

const char *
sxe_http_reason(unsigned status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "";
}

/* ---- Its lines ---- */

#define PUT_LITERAL(to, text) mempcpy((to), (text), SXE_LITERAL_LENGTH(text))

static char *
put_length_number(char *to, uint64_t length)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + length % 10);
        length /= 10;
    } while (length > 0);
    return mempcpy(to, digits + at, sizeof(digits) - at);
}

/* RFC 3875, 6.3.3: a reply of CGI has the field Status in place of the first line. */
static char *
put_status_line(char *to, unsigned status, bool is_cgi)
{
    const char *reason;

    if (SXE_LIKELY(status == 200 && !is_cgi))
        return PUT_LITERAL(to, "HTTP/1.1 200 OK\r\n");
    reason = sxe_http_reason(status);
    to = is_cgi ? PUT_LITERAL(to, "Status: ") : PUT_LITERAL(to, "HTTP/1.1 ");
    to = put_length_number(to, status);
    *to++ = ' ';
    to = mempcpy(to, reason, strlen(reason));
    return PUT_LITERAL(to, "\r\n");
}

/* Write Date, which is made once a second, and the configured lines. */
static char *
put_common(struct sxe_http *http, char *to)
{
    to = PUT_LITERAL(to, "Date: ");
    to = mempcpy(to, sxe_http_date(&http->date, sxe_time_turn_ns()), SXE_HTTP_DATE_LENGTH);
    return mempcpy(to, http->common, http->common_length);
}

/* Write the connection's fields. HTTP/1.1 keeps the connection unless "close" is sent; HTTP/1.0
 * closes it unless "keep-alive" is sent (RFC 9112, 9.3). An Upgrade needs "Connection: upgrade"
 * (RFC 9110, 7.8). */
static char *
put_connection(const struct sxe__http_slot *slot, char *to)
{
    if (SXE_UNLIKELY(slot->offers_upgrade))
        to = PUT_LITERAL(to, "Connection: upgrade\r\n");
    if (slot->connection->is_cgi)
        return to;
    if (slot->close)
        return PUT_LITERAL(to, "Connection: close\r\n");
    if (slot->request.head.minor == 0)
        return PUT_LITERAL(to, "Connection: keep-alive\r\n");
    return to;
}

/* Write the framing (RFC 9110, 8.6, 15.3.6 and 15.4.5): no length in 204; length 0 in 205; no
 * length in 304, where a length would be that of the 200. */
static char *
put_length(const struct sxe__http_slot *slot, char *to, uint64_t length)
{
    if (slot->status == 204 || slot->status == 304)
        return to;
    if (slot->is_chunked)
        return PUT_LITERAL(to, "Transfer-Encoding: chunked\r\n");
    if (slot->status == 205)
        length = 0;
    if (length == SXE_HTTP_LENGTH_UNKNOWN)
        return to;
    to = PUT_LITERAL(to, "Content-Length: ");
    to = put_length_number(to, length);
    return PUT_LITERAL(to, "\r\n");
}

/* ---- The last head ---- */

/* Whether the handler's own lines equal those of the last head. */
static bool
has_same_lines(const struct sxe__http_slot *slot)
{
    const struct sxe_http *http = slot->request.http;
    const struct sxe__http_last_head *last = &http->last;

    return slot->fields_used == 0 ||
           (last->offers_upgrade == slot->offers_upgrade &&
            memcmp(http->head + last->fields_at, (const char *)slot + http->reply_at,
                   slot->fields_used) == 0);
}

static bool
has_same_type(const struct sxe__http_last_head *last, const char *type)
{
    return type == NULL ? !last->has_type : last->has_type && strcmp(last->type, type) == 0;
}

static bool
is_last(const struct sxe__http_slot *slot, const char *type, uint64_t length)
{
    const struct sxe__http_last_head *last = &slot->request.http->last;

    return last->length == length && last->fields_used == slot->fields_used &&
           last->status == slot->status && last->minor == slot->request.head.minor &&
           last->close == slot->close && last->is_chunked == slot->is_chunked &&
           last->is_cgi == slot->connection->is_cgi && sxe_time_turn_ns() < last->until_ns &&
           has_same_type(last, type) && has_same_lines(slot);
}

static void
compose_lines(struct sxe__http_slot *slot, uint64_t length)
{
    struct sxe_http *http = slot->request.http;
    struct sxe__http_last_head *last = &http->last;
    char *to = put_status_line(http->head, slot->status, slot->connection->is_cgi);

    to = put_common(http, to);
    last->fields_at = (uint32_t)(to - http->head);
    to = mempcpy(to, (char *)slot + http->reply_at, slot->fields_used);
    to = sxe__http_put_id(slot, to);
    to = put_length(slot, to, length);
    to = put_connection(slot, to);
    to = PUT_LITERAL(to, "\r\n");
    last->used = (uint32_t)(to - http->head);
}

/* Note the values that the last head was composed from. A head with a long type is not kept, nor
 * one with an id, which is new in each reply. */
static void
note_last_head(const struct sxe__http_slot *slot, const char *type, uint64_t length)
{
    struct sxe_http *http = slot->request.http;
    struct sxe__http_last_head *last = &http->last;
    size_t type_size = type == NULL ? 0 : strlen(type) + 1;

    last->until_ns = 0;
    if (type_size > sizeof(last->type) || http->config.request_id != NULL)
        return;
    memcpy(last->type, type == NULL ? "" : type, type_size);
    last->until_ns = http->date.until_ns;
    last->length = length;
    last->fields_used = slot->fields_used;
    last->status = slot->status;
    last->minor = slot->request.head.minor;
    last->close = slot->close;
    last->is_chunked = slot->is_chunked;
    last->offers_upgrade = slot->offers_upgrade;
    last->is_cgi = slot->connection->is_cgi;
    last->has_type = type != NULL;
}

SXE__HTTP_COLD static ssize_t
compose_another(struct sxe__http_slot *slot, const char *type, uint64_t length)
{
    uint32_t fields_used = slot->fields_used;
    int result = 0;

    if (type != NULL)
        result = sxe_http_add_field(&slot->response, "Content-Type", type);
    if (result < 0)
        return result;
    compose_lines(slot, length);
    slot->fields_used = fields_used;
    note_last_head(slot, type, length);
    return slot->request.http->last.used;
}

ssize_t
sxe__http_compose_head(struct sxe__http_slot *slot, const char *type, uint64_t length)
{
    if (SXE_LIKELY(is_last(slot, type, length)))
        return slot->request.http->last.used;
    return compose_another(slot, type, length);
}
