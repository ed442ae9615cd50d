/* SPDX-License-Identifier: MIT
 *
 * What: the status of a reply, and replies that are whole: one copy of head and body, next to each
 * other, straight into the loop's output.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

/* ---- Whole replies ---- */

int
sxe__http_break(struct sxe__http_slot *slot)
{
    if (slot->progress == SXE__HTTP_UNANSWERED)
        slot->status = 0;
    slot->close = true;
    slot->is_sending = true; /* on_close, which knows the reason, will end the request */
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
 * or may be, or if the server drains. */
void
sxe__http_decide_close(struct sxe__http_slot *slot)
{
    if (slot->request.http->is_draining ||
        (!slot->is_body_whole && !sxe__http_body_can_be_dropped(slot)))
        slot->close = true;
}

/* Write the head and then the body, because the loop's buffer has no room for both at once. */
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

/* Write the head that was composed, which has `head` bytes, and a body. */
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

int
sxe__http_end_whole(struct sxe__http_slot *slot, const char *type, const void *body, size_t length)
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

/* ---- In one call ---- */

/* A reply cannot be sent: send 500 in its place, or break the connection if that fails, too. */
static void
fail_server_reply(struct sxe__http_slot *slot, unsigned status, int error)
{
    static const char text[] = "500 Internal Server Error\n";
    bool is_gone = sxe_get_state(slot->connection->sxe) == SXE_STATE_CLOSED;

    if (slot->progress == SXE__HTTP_ENDED && is_gone) /* on_close gives on_done the reason */
        return;
    SXE_WARN("a handler's reply, status %u, cannot be sent: %s", status, strerror(-error));
    if (slot->progress == SXE__HTTP_ENDED)
        return;
    slot->fields_used = 0;
    slot->offers_upgrade = false;
    if (sxe_http_set_status(&slot->response, 500) < 0 ||
        sxe__http_end_whole(slot, NULL, text, sizeof(text) - 1) < 0)
        sxe__http_break(slot);
}

enum sxe_http_verdict
sxe_http_reply(struct sxe_http_response *response, unsigned status, const char *type,
               const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result = sxe_http_set_status(response, status);

    if (result == 0)
        result = sxe__http_end_whole(slot, type, body, length);
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
                   sxe__http_end_whole(slot, page->type, page->body, page->length) == 0;
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
