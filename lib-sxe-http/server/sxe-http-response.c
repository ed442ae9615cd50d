/* SPDX-License-Identifier: MIT
 *
 * What: status and fields of a reply, and replies that are whole: one copy of head and body, next
 * to each other, straight into the loop's output.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-list.h"
#include "sxe-http-private.h"

/* Whether a reply of this status may have a body (RFC 9110, 15.3.5, 15.3.6 and 15.4.5). */
static bool
may_have_body(unsigned status)
{
    return status != 204 && status != 205 && status != 304;
}

bool
sxe__http_has_reply_body(const struct sxe__http_slot *slot)
{
    return slot->request.head.method != SXE_HTTP_HEAD && may_have_body(slot->status);
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

/* Whether the field is a framing field, or one that the library sends itself. */
static bool
is_reserved(enum sxe_http_field_id id)
{
    return id == SXE_HTTP_FIELD_CONNECTION || id == SXE_HTTP_FIELD_CONTENT_LENGTH ||
           id == SXE_HTTP_FIELD_DATE || id == SXE_HTTP_FIELD_TRANSFER_ENCODING;
}

/* RFC 9110, 6.5.1: a trailer has no fields for framing, routing, authentication or content format.
 * Of the well-known fields only these may be in it. */
static bool
may_trail(enum sxe_http_field_id id)
{
    return id == SXE_HTTP_FIELD_OTHER || id == SXE_HTTP_FIELD_ETAG ||
           id == SXE_HTTP_FIELD_LAST_MODIFIED;
}

bool
sxe__http_is_line(struct sxe_span name, struct sxe_span value, enum sxe_http_field_id *id)
{
    if (!sxe_http_is_token(name) || !sxe_http_is_field_value(value))
        return false;
    *id = sxe__http_field_id_of(name.base, name.length);
    return !is_reserved(*id);
}

int
sxe__http_add_line(struct sxe__http_slot *slot, const char *name, struct sxe_span value)
{
    const struct sxe_http *http = slot->request.http;
    size_t name_length = strlen(name);
    size_t length = name_length + value.length + 4;
    char *to = (char *)slot + http->reply_at + slot->fields_used;
    enum sxe_http_field_id id;

    if (!sxe__http_is_line((struct sxe_span){name, name_length}, value, &id) ||
        (slot->progress == SXE__HTTP_BEGUN && !may_trail(id)))
        return -EINVAL;
    if (length > http->config.fields_max - slot->fields_used)
        return -ENOBUFS;
    to = mempcpy(to, name, name_length);
    to = mempcpy(to, ": ", 2);
    if (value.length > 0)
        to = mempcpy(to, value.base, value.length);
    memcpy(to, "\r\n", 2);
    slot->fields_used += (uint32_t)length;
    slot->offers_upgrade |= id == SXE_HTTP_FIELD_UPGRADE;
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

struct sxe_span
sxe__http_lines(const struct sxe_http_response *response)
{
    const struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    return (struct sxe_span){(const char *)slot + slot->request.http->reply_at, slot->fields_used};
}

int
sxe__http_add_lines(struct sxe_http_response *response, struct sxe_span lines)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    const struct sxe_http *http = slot->request.http;

    if (lines.length > http->config.fields_max - slot->fields_used)
        return -ENOBUFS;
    memcpy((char *)slot + http->reply_at + slot->fields_used, lines.base, lines.length);
    slot->fields_used += (uint32_t)lines.length;
    return 0;
}

/* The first line of that name between `at` and `end`, with its CR LF; length 0: none. */
static struct sxe_span
find_header_line(const char *at, const char *end, const char *name)
{
    size_t length = strlen(name);

    while (at < end) {
        const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;

        if ((size_t)(next - at) > length && at[length] == ':' &&
            sxe__http_is_same(at, name, length))
            return (struct sxe_span){at, (size_t)(next - at)};
        at = next;
    }
    return (struct sxe_span){end, 0};
}

struct sxe_span
sxe_http_added_field(const struct sxe_http_response *response, const char *name)
{
    struct sxe_span lines = sxe__http_lines(response);
    struct sxe_span line = find_header_line(lines.base, lines.base + lines.length, name);
    size_t before = strlen(name) + 2;

    if (line.length == 0)
        return (struct sxe_span){NULL, 0};
    return (struct sxe_span){line.base + before, line.length - before - 2};
}

void
sxe_http_remove_field(struct sxe_http_response *response, const char *name)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    char *lines = (char *)slot + slot->request.http->reply_at;
    uint32_t used = slot->fields_used;
    struct sxe_span line;

    if (name == NULL)
        slot->fields_used = 0;
    while (name != NULL && slot->fields_used > 0) {
        line = find_header_line(lines, lines + slot->fields_used, name);
        if (line.length == 0)
            break;
        slot->fields_used -= (uint32_t)line.length;
        memmove(lines + (line.base - lines), line.base + line.length,
                (size_t)(lines + slot->fields_used - line.base));
    }
    if (slot->fields_used < used)
        slot->offers_upgrade = sxe_http_added_field(response, "Upgrade").base != NULL;
}

/* ---- Whole replies ---- */

void
sxe__http_ended(struct sxe__http_slot *slot)
{
    slot->progress = SXE__HTTP_ENDED;
    sxe__http_changed(slot->connection);
}

int
sxe__http_break(struct sxe__http_slot *slot)
{
    if (slot->progress == SXE__HTTP_UNANSWERED)
        slot->status = 0;
    slot->close = true;
    slot->is_sending = true; /* the request ends with on_close, which has the reason */
    sxe_abort(slot->connection->sxe);
    sxe__http_ended(slot);
    return -ENOTCONN;
}

int
sxe__http_cannot_write(struct sxe__http_slot *slot, int error)
{
    return error == -ENOBUFS ? error : sxe__http_break(slot);
}

void
sxe_http_allow_half_close(struct sxe_http_response *response)
{
    SXE__HTTP_SLOT_OF_RESPONSE(response)->half_close = true;
}

void
sxe_http_abort(struct sxe_http_response *response)
{
    sxe__http_break(SXE__HTTP_SLOT_OF_RESPONSE(response));
}

bool
sxe__http_has_room(const struct sxe__http_slot *slot, size_t own, size_t length)
{
    size_t room = sxe_get_config()->output_max - sxe_unsent(slot->connection->sxe);

    return own <= room && length <= room - own;
}

/* Close the connection after this reply if the rest of the request's body is too long to be read,
 * or if the server drains. */
void
sxe__http_decide_close(struct sxe__http_slot *slot)
{
    if (slot->request.http->is_draining ||
        (!slot->is_body_whole && !sxe__http_body_can_be_dropped(slot)))
        slot->close = true;
}

/* Write head and body one after the other, because the loop's buffer has no room for both. */
SXE__HTTP_COLD static int
write_in_parts(struct sxe__http_slot *slot, unsigned head, const void *body, size_t length)
{
    SXE *s = slot->connection->sxe;
    int result;

    if (!sxe__http_has_room(slot, head, length))
        return -ENOBUFS;
    result = sxe_write(s, slot->request.http->head, head);
    if (result < 0)
        return sxe__http_cannot_write(slot, result);
    return sxe_write(s, body, (unsigned)length) < 0 ? sxe__http_break(slot) : 0;
}

/* Write the composed head, of `head` bytes, and a body. */
static int
write_whole_reply(struct sxe__http_slot *slot, unsigned head, const void *body, size_t length)
{
    SXE *s = slot->connection->sxe;
    unsigned all = head + (unsigned)length;
    char *to = length <= INT32_MAX ? sxe_reserve(s, all) : NULL;

    if (SXE_UNLIKELY(to == NULL))
        return write_in_parts(slot, head, body, length);
    memcpy(to, slot->request.http->head, head);
    if (length > 0)
        memcpy(to + head, body, length);
    sxe_commit(s, all);
    return 0;
}

/* End a reply with its whole body. type NULL: no Content-Type but one that was added. */
static int
end_whole(struct sxe__http_slot *slot, const char *type, const void *body, size_t length)
{
    ssize_t head;
    int result;

    sxe__http_decide_close(slot);
    head = sxe__http_compose_head(slot, type, length);
    if (head < 0)
        return (int)head;
    slot->body_sent = sxe__http_has_reply_body(slot) ? length : 0;
    result = write_whole_reply(slot, (unsigned)head, body, slot->body_sent);
    if (result == 0)
        sxe__http_ended(slot);
    return result;
}

int
sxe_http_end(struct sxe_http_response *response, const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    if (slot->progress != SXE__HTTP_UNANSWERED)
        return sxe__http_end_begun(slot, body, length);
    return end_whole(slot, NULL, body, length);
}

/* ---- In one call ---- */

/* A reply cannot be sent: send 500, or break the connection if that fails, too. */
static void
fail_server_reply(struct sxe__http_slot *slot, unsigned status, int error)
{
    static const char text[] = "500 Internal Server Error\n";
    bool is_gone = sxe_get_state(slot->connection->sxe) == SXE_STATE_CLOSED;

    if (slot->progress == SXE__HTTP_ENDED && is_gone) /* on_done has the reason */
        return;
    SXE_WARN("a handler's reply, status %u, cannot be sent: %s", status, strerror(-error));
    if (slot->progress == SXE__HTTP_ENDED)
        return;
    slot->fields_used = 0;
    slot->offers_upgrade = false;
    if (sxe_http_set_status(&slot->response, 500) < 0 ||
        sxe_http_end(&slot->response, text, sizeof(text) - 1) < 0)
        sxe__http_break(slot);
}

enum sxe_http_verdict
sxe_http_reply(struct sxe_http_response *response, unsigned status, const char *type,
               const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result = sxe_http_set_status(response, status);

    if (result == 0)
        result = end_whole(slot, type, body, length);
    if (result < 0)
        fail_server_reply(slot, status, result);
    return SXE_HTTP_DONE;
}

enum sxe_http_verdict
sxe_http_reply_text(struct sxe_http_response *response, unsigned status, const char *text)
{
    return sxe_http_reply(response, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* Send the configured page of a status. False: there is none, or no room for it. */
static bool
send_page(struct sxe__http_slot *slot, unsigned status)
{
    const struct sxe_http_config *config = &slot->request.http->config;

    for (size_t i = 0; i < config->pages_number; i++) {
        const struct sxe_http_page *page = &config->pages[i];

        if (page->status == status)
            return sxe_http_set_status(&slot->response, status) == 0 &&
                   end_whole(slot, page->type, page->body, page->length) == 0;
    }
    return false;
}

enum sxe_http_verdict
sxe_http_reply_status(struct sxe_http_response *response, unsigned status)
{
    const char *reason = sxe_http_reason(status);
    char text[64];

    if (!may_have_body(status))
        return sxe_http_reply(response, status, NULL, NULL, 0);
    if (send_page(SXE__HTTP_SLOT_OF_RESPONSE(response), status))
        return SXE_HTTP_DONE;
    snprintf(text, sizeof(text), "%u%s%s\n", status, *reason == '\0' ? "" : " ", reason);
    return sxe_http_reply_text(response, status, text);
}
