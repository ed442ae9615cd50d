/* SPDX-License-Identifier: MIT
 *
 * What: the head of a reply, and replies that are whole: one copy of head and body, next to each
 * other, straight into the loop's output.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-private.h"

#define HEAD_EXTRA 160 /* bytes of status line, Connection, and length or coding */

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

/* ---- The head ---- */

static char *
put(char *to, const void *from, size_t length)
{
    memcpy(to, from, length);
    return to + length;
}

#define PUT_LITERAL(to, text) put((to), (text), SXE_LITERAL_LENGTH(text))

static char *
put_number(char *to, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return put(to, digits + at, sizeof(digits) - at);
}

static char *
put_status_line(char *to, unsigned status)
{
    const char *reason;

    if (SXE_LIKELY(status == 200))
        return PUT_LITERAL(to, "HTTP/1.1 200 OK\r\n");
    reason = sxe_http_reason(status);
    to = PUT_LITERAL(to, "HTTP/1.1 ");
    to = put_number(to, status);
    *to++ = ' ';
    to = put(to, reason, strlen(reason));
    return PUT_LITERAL(to, "\r\n");
}

/* Date and the configured lines, made once a second. */
static char *
put_common(struct sxe_http *http, char *to)
{
    to = PUT_LITERAL(to, "Date: ");
    to = put(to, sxe_http_date(&http->date, sxe_time_turn_ns()), SXE_HTTP_DATE_LENGTH);
    return put(to, http->common, http->common_length);
}

/* RFC 9112, 9.3: 1.1 goes on unless it says otherwise, 1.0 ends unless it does. */
static char *
put_connection(const struct sxe__http_slot *slot, char *to)
{
    if (slot->close)
        return PUT_LITERAL(to, "Connection: close\r\n");
    if (slot->request.head.minor == 0)
        return PUT_LITERAL(to, "Connection: keep-alive\r\n");
    return to;
}

/* RFC 9110, 8.6 and 15.4.5: none in 204; in 304 it would be that of a 200. */
static char *
put_length(const struct sxe__http_slot *slot, char *to, uint64_t length)
{
    if (slot->status == 204 || slot->status == 304)
        return to;
    if (slot->is_chunked)
        return PUT_LITERAL(to, "Transfer-Encoding: chunked\r\n");
    if (length == SXE_HTTP_LENGTH_UNKNOWN)
        return to;
    to = PUT_LITERAL(to, "Content-Length: ");
    to = put_number(to, length);
    return PUT_LITERAL(to, "\r\n");
}

size_t
sxe__http_head_max(const struct sxe__http_slot *slot)
{
    return HEAD_EXTRA + slot->request.http->common_length + slot->fields_used;
}

char *
sxe__http_put_head(struct sxe__http_slot *slot, char *to, uint64_t length)
{
    struct sxe_http *http = slot->request.http;

    to = put_status_line(to, slot->status);
    to = put_common(http, to);
    to = put(to, (char *)slot + http->reply_at, slot->fields_used);
    to = put_length(slot, to, length);
    to = put_connection(slot, to);
    return PUT_LITERAL(to, "\r\n");
}

bool
sxe__http_sends_body(const struct sxe__http_slot *slot)
{
    return slot->request.head.method != SXE_HTTP_HEAD && slot->status != 204 && slot->status != 304;
}

int
sxe_http_set_status(struct sxe_http_response *response, unsigned status)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    if (slot->progress != SXE__HTTP_UNANSWERED || status < 200 || status > 599)
        return -EINVAL;
    slot->status = (uint16_t)status;
    return 0;
}

void
sxe_http_close(struct sxe_http_response *response)
{
    SXE__HTTP_SLOT_OF_RESPONSE(response)->close = true;
}

/* ---- Fields ---- */

static bool
is_value(struct sxe_span value)
{
    struct sxe__http_input in = SXE__HTTP_INPUT(value.base, value.length);

    return sxe__http_stop(&in, SXE__HTTP_VALUE, 0) == value.length;
}

static bool
is_token(const char *name, size_t length)
{
    struct sxe__http_input in = SXE__HTTP_INPUT(name, length);

    return length > 0 && sxe__http_stop(&in, SXE__HTTP_TOKEN, 0) == length;
}

/* Those that say where a message ends, or that the library sends itself. */
static bool
is_reserved(const char *name, size_t length)
{
    switch (sxe__http_field_id_of(name, length)) {
    case SXE_HTTP_FIELD_CONNECTION:
    case SXE_HTTP_FIELD_CONTENT_LENGTH:
    case SXE_HTTP_FIELD_DATE:
    case SXE_HTTP_FIELD_TRAILER:
    case SXE_HTTP_FIELD_TRANSFER_ENCODING:
        return true;
    default:
        return false;
    }
}

int
sxe__http_add_line(struct sxe__http_slot *slot, const char *name, struct sxe_span value)
{
    const struct sxe_http *http = slot->request.http;
    size_t name_length = strlen(name);
    size_t length = name_length + value.length + 4;
    char *to = (char *)slot + http->reply_at + slot->fields_used;

    if (!is_token(name, name_length) || !is_value(value) || is_reserved(name, name_length))
        return -EINVAL;
    if (length > http->config.fields_max - slot->fields_used)
        return -ENOBUFS;
    to = put(to, name, name_length);
    to = PUT_LITERAL(to, ": ");
    to = put(to, value.base, value.length);
    PUT_LITERAL(to, "\r\n");
    slot->fields_used += (uint32_t)length;
    return 0;
}

int
sxe_http_add_field_span(struct sxe_http_response *response, const char *name, struct sxe_span value)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    return slot->progress == SXE__HTTP_UNANSWERED ? sxe__http_add_line(slot, name, value) : -EINVAL;
}

int
sxe_http_add_field(struct sxe_http_response *response, const char *name, const char *value)
{
    return sxe_http_add_field_span(response, name, (struct sxe_span){value, strlen(value)});
}

/* ---- Whole replies ---- */

void
sxe__http_ended(struct sxe__http_slot *slot)
{
    slot->progress = SXE__HTTP_ENDED;
    sxe__http_changed(slot->connection);
}

void
sxe__http_break(struct sxe__http_slot *slot)
{
    slot->close = true;
    sxe_abort(slot->connection->sxe);
    sxe__http_ended(slot);
}

/* A connection whose request has more body than is worth reading ends, and the reply says so. */
void
sxe__http_decide_close(struct sxe__http_slot *slot)
{
    if (!slot->body_whole && !sxe__http_body_can_be_dropped(slot))
        slot->close = true;
}

/* By way of a buffer of the server's, when the loop's has not so much room. */
static int
write_in_parts(struct sxe__http_slot *slot, const void *body, size_t length, size_t sent)
{
    SXE *s = slot->connection->sxe;
    char *head = slot->request.http->scratch;
    char *end;

    if (sxe__http_head_max(slot) + sent > sxe_get_config()->output_max - sxe_unsent(s))
        return -ENOBUFS;
    end = sxe__http_put_head(slot, head, length);
    if (sxe_write(s, head, (unsigned)(end - head)) < 0)
        return -ENOTCONN;
    if (sxe_write(s, body, (unsigned)sent) < 0)
        sxe__http_break(slot);
    return 0;
}

static int
write_whole(struct sxe__http_slot *slot, const void *body, size_t length)
{
    SXE *s = slot->connection->sxe;
    size_t sent = sxe__http_sends_body(slot) ? length : 0;
    size_t most = sxe__http_head_max(slot) + sent;
    char *to = most <= UINT32_MAX ? sxe_reserve(s, (unsigned)most) : NULL;
    char *end;

    if (SXE_UNLIKELY(to == NULL))
        return write_in_parts(slot, body, length, sent);
    end = sxe__http_put_head(slot, to, length);
    if (sent > 0)
        end = put(end, body, sent);
    sxe_commit(s, (unsigned)(end - to));
    return 0;
}

int
sxe_http_end(struct sxe_http_response *response, const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result;

    if (slot->progress != SXE__HTTP_UNANSWERED)
        return sxe__http_end_begun(slot, body, length);
    sxe__http_decide_close(slot);
    result = write_whole(slot, body, length);
    if (result < 0)
        return result;
    slot->body_sent = length;
    sxe__http_ended(slot);
    return 0;
}

/* A reply that cannot be sent: 500, or not even that. */
static void
fail(struct sxe__http_slot *slot, int error)
{
    static const char text[] = "500 Internal Server Error\n";

    SXE_WARN("a reply %u cannot be sent: %s; 500 is", slot->status, strerror(-error));
    if (slot->progress != SXE__HTTP_UNANSWERED)
        return;
    slot->fields_used = 0;
    slot->status = 500;
    if (sxe_http_end(&slot->response, text, sizeof(text) - 1) < 0)
        sxe__http_break(slot);
}

enum sxe_http_verdict
sxe_http_reply(struct sxe_http_response *response, unsigned status, const char *type,
               const void *body, size_t length)
{
    int result = sxe_http_set_status(response, status);

    if (result == 0 && type != NULL)
        result = sxe_http_add_field(response, "Content-Type", type);
    if (result == 0)
        result = sxe_http_end(response, body, length);
    if (result < 0)
        fail(SXE__HTTP_SLOT_OF_RESPONSE(response), result);
    return SXE_HTTP_DONE;
}

enum sxe_http_verdict
sxe_http_reply_text(struct sxe_http_response *response, unsigned status, const char *text)
{
    return sxe_http_reply(response, status, "text/plain; charset=utf-8", text, strlen(text));
}

enum sxe_http_verdict
sxe_http_reply_status(struct sxe_http_response *response, unsigned status)
{
    char text[64];

    snprintf(text, sizeof(text), "%u %s\n", status, sxe_http_reason(status));
    return sxe_http_reply_text(response, status, text);
}
