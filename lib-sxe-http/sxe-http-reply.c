/* SPDX-License-Identifier: MIT
 *
 * What: replies in one call. Their head is nearly always that of the reply before: the server keeps
 * the last one, for as long as its Date is right.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PLAIN_MAX (64u * 1024)

/* A reply that cannot be sent: 500, or not even that. */
static void
fail(struct sxe__http_slot *slot, unsigned status, int error)
{
    static const char text[] = "500 Internal Server Error\n";
    bool is_gone = sxe_get_state(slot->connection->sxe) == SXE_STATE_CLOSED;

    if (slot->progress == SXE__HTTP_ENDED && is_gone) /* on_done tells */
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

/* Whether the last head is that of this reply. */
static bool
is_last(const struct sxe__http_slot *slot, const char *type, size_t length)
{
    const struct sxe__http_last_reply *last = &slot->request.http->last;

    return last->length == length && last->status == slot->status && last->close == slot->close &&
           last->minor == slot->request.head.minor && sxe_time_turn_ns() < last->until_ns &&
           strcmp(last->type, type) == 0;
}

/* Make its head the last one; false: it cannot be. */
static bool
make_last(struct sxe__http_slot *slot, const char *type, size_t length)
{
    struct sxe_http *http = slot->request.http;
    struct sxe__http_last_reply *last = &http->last;
    char *end;

    if (sxe_http_add_field(&slot->response, "Content-Type", type) < 0)
        return false;
    if (sxe__http_head_max(slot) > sizeof(last->head)) {
        slot->fields_used = 0;
        return false;
    }
    end = sxe__http_put_head(slot, last->head, length);
    slot->fields_used = 0;
    last->used = (uint32_t)(end - last->head);
    last->length = length;
    last->status = slot->status;
    last->close = slot->close;
    last->minor = slot->request.head.minor;
    snprintf(last->type, sizeof(last->type), "%s", type);
    last->until_ns = http->date.until_ns;
    return true;
}

/* Send the last head with this body; false: there is no room for both where the kernel takes them.
 */
static bool
send_last(struct sxe__http_slot *slot, const void *body, size_t length)
{
    const struct sxe__http_last_reply *last = &slot->request.http->last;
    SXE *s = slot->connection->sxe;
    size_t sent = sxe__http_sends_body(slot) ? length : 0;
    char *to = sxe_reserve(s, last->used + (unsigned)sent);

    if (SXE_UNLIKELY(to == NULL))
        return false;
    memcpy(to, last->head, last->used);
    if (sent > 0)
        memcpy(to + last->used, body, sent);
    sxe_commit(s, last->used + (unsigned)sent);
    slot->body_sent = sent;
    sxe__http_ended(slot);
    return true;
}

/* A reply of nothing but status, type and body; false: it is not sent, and nothing was taken. */
static bool
reply_plain(struct sxe__http_slot *slot, const char *type, const void *body, size_t length)
{
    if (type == NULL || slot->fields_used > 0 || length >= PLAIN_MAX ||
        strlen(type) >= sizeof(slot->request.http->last.type))
        return false;
    sxe__http_decide_close(slot);
    return (is_last(slot, type, length) || make_last(slot, type, length)) &&
           send_last(slot, body, length);
}

enum sxe_http_verdict
sxe_http_reply(struct sxe_http_response *response, unsigned status, const char *type,
               const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result = sxe_http_set_status(response, status);

    if (result == 0 && reply_plain(slot, type, body, length))
        return SXE_HTTP_DONE;
    if (result == 0 && type != NULL)
        result = sxe_http_add_field(response, "Content-Type", type);
    if (result == 0)
        result = sxe_http_end(response, body, length);
    if (result < 0)
        fail(slot, status, result);
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
    const char *reason = sxe_http_reason(status);
    char text[64];

    if (!sxe__http_may_have_body(status))
        return sxe_http_reply(response, status, NULL, NULL, 0);
    snprintf(text, sizeof(text), "%u%s%s\n", status, *reason == '\0' ? "" : " ", reason);
    return sxe_http_reply_text(response, status, text);
}
