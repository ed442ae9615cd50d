/* SPDX-License-Identifier: MIT
 *
 * What: the body of a request, as it comes: kept after the head until it is whole, shown to a
 * handler in parts, or dropped when the reply ended before it.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <string.h>

/* The bytes of the body are kept, shown to the handler, or dropped. */
enum use { KEEP, SHOW, DROP };

static enum use
use_of(const struct sxe__http_slot *slot)
{
    if (slot->progress == SXE__HTTP_ENDED)
        return DROP;
    return slot->is_body_streamed ? SHOW : KEEP;
}

/* Note where the received bytes that are not taken begin, for has_last_chunk. */
static void
note_rest(struct sxe__http_connection *connection, const char *rest)
{
    connection->taken = (uint32_t)(rest - SXE_BUF(connection->sxe));
}

void
sxe__http_body_begin(struct sxe__http_slot *slot, const char *rest, size_t length)
{
    const struct sxe_http_parser *head = &slot->request.head;

    if (head->body == SXE_HTTP_BODY_CHUNKED) {
        sxe_http_chunks_init(&slot->chunks, NULL, 0, &slot->request.http->config.head);
        note_rest(slot->connection, rest);
    }
    slot->body_left = head->length;
    slot->is_body_whole = head->body != SXE_HTTP_BODY_CHUNKED && head->length == 0;
    /* A client that sends body bytes right after the head does not wait for 100; one that sends
     * nothing may. */
    slot->is_continue_due = head->expect_continue && head->body != SXE_HTTP_BODY_NONE &&
                            (slot->is_body_whole || length == 0);
}

int
sxe__http_body_await(struct sxe__http_slot *slot)
{
    int result = 0;

    if (slot->is_continue_due && slot->progress == SXE__HTTP_UNANSWERED) {
        result = SXE_WRITE_LITERAL(slot->connection->sxe, "HTTP/1.1 100 Continue\r\n\r\n");
        slot->is_continue_due = result < 0;
    }
    return result;
}

void
sxe__http_body_forget(struct sxe__http_slot *slot)
{
    slot->request.http->body_memory -= slot->body_kept;
    slot->body_kept = 0;
}

bool
sxe__http_body_can_be_shown(const struct sxe__http_slot *slot)
{
    return use_of(slot) == SHOW && slot->on_body != NULL && !slot->is_body_paused;
}

bool
sxe__http_body_is_waiting(const struct sxe__http_slot *slot)
{
    return use_of(slot) == SHOW && !sxe__http_body_can_be_shown(slot);
}

/* Whether the end of a chunked body has arrived, and few enough bytes before it to drop them: look
 * ahead in the received bytes. */
static bool
has_last_chunk(const struct sxe__http_slot *slot)
{
    SXE *s = slot->connection->sxe;
    size_t at = slot->connection->taken;
    size_t end = (size_t)SXE_BUF_USED(s);
    struct sxe_http_chunks chunks = slot->chunks;
    size_t dropped = 0;

    while (at < end && !chunks.done) {
        struct sxe_span part;
        ssize_t n = sxe_http_chunks_read(&chunks, SXE_BUF(s) + at, end - at, &part);

        if (n <= 0) /* the trailer is not whole, or the chunks are wrong */
            return false;
        at += (size_t)n;
        dropped += part.length;
    }
    return chunks.done && dropped <= SXE__HTTP_DISCARD_MAX;
}

bool
sxe__http_body_can_be_dropped(const struct sxe__http_slot *slot)
{
    if (slot->is_continue_due)
        return false;
    if (slot->request.head.body == SXE_HTTP_BODY_CHUNKED)
        return has_last_chunk(slot);
    return slot->body_left <= SXE__HTTP_DISCARD_MAX;
}

/* How many bytes the size of the current chunk announces, so that a body that is too large is
 * refused before its bytes come. */
static uint64_t
announced_bytes(const struct sxe__http_slot *slot)
{
    return slot->request.head.body == SXE_HTTP_BODY_CHUNKED ? slot->chunks.left : 0;
}

/* Keep a part of the body after the head. 0, or the status that refuses the part. */
static unsigned
keep_body_part(struct sxe__http_slot *slot, struct sxe_span part)
{
    struct sxe_http *http = slot->request.http;
    char *to = (char *)slot + http->head_at + slot->used;
    size_t room = http->config.body_max - slot->body_kept;

    if (part.length > room || announced_bytes(slot) > room - part.length)
        return 413;
    if (part.length > http->config.body_memory_max - http->body_memory)
        return 503;
    memcpy(to, part.base, part.length);
    slot->used += (uint32_t)part.length;
    slot->body_kept += (uint32_t)part.length;
    http->body_memory += part.length;
    return 0;
}

static struct sxe__http_body_step
refused_body(unsigned status)
{
    return (struct sxe__http_body_step){.next = SXE__HTTP_BODY_REFUSED, .status = status};
}

static void
end_kept_body(struct sxe__http_slot *slot)
{
    char *end = (char *)slot + slot->request.http->head_at + slot->used;

    slot->request.body = (struct sxe_span){end - slot->body_kept, slot->body_kept};
    *end = '\0';
    sxe__http_body_forget(slot);
}

/* Keep, show or drop a part of the body. */
static struct sxe__http_body_step
use_part(struct sxe__http_slot *slot, struct sxe_span part)
{
    struct sxe__http_body_step step = {.next = SXE__HTTP_BODY_GOES_ON, .part = part};

    switch (use_of(slot)) {
    case SHOW:
        if (part.length > 0 || slot->is_body_whole)
            step.next = SXE__HTTP_BODY_SHOWN;
        break;
    case DROP:
        slot->body_dropped += (uint32_t)part.length;
        if (slot->is_body_whole)
            step.next = SXE__HTTP_BODY_DROPPED;
        else if (slot->body_dropped > SXE__HTTP_DISCARD_MAX)
            step = refused_body(413);
        break;
    case KEEP:
        step.status = keep_body_part(slot, part);
        if (step.status != 0)
            return refused_body(step.status);
        if (slot->is_body_whole) {
            end_kept_body(slot);
            step.next = SXE__HTTP_BODY_KEPT;
        }
    }
    return step;
}

/* Set *part to the next part of the body. Returns the bytes that it took, framing included; 0: more
 * is needed; -1: refused. */
static ssize_t
next_body_part(struct sxe__http_slot *slot, const char *data, size_t length, struct sxe_span *part)
{
    ssize_t n;

    if (slot->request.head.body == SXE_HTTP_BODY_CHUNKED) {
        n = sxe_http_chunks_read(&slot->chunks, data, length, part);
        if (n > 0)
            note_rest(slot->connection, data + n);
        slot->is_body_whole = slot->chunks.done;
        return n;
    }
    *part = (struct sxe_span){data, length < slot->body_left ? length : (size_t)slot->body_left};
    slot->body_left -= part->length;
    slot->is_body_whole = slot->body_left == 0;
    return (ssize_t)part->length;
}

size_t
sxe__http_body_read(struct sxe__http_slot *slot, const char *data, size_t length,
                    struct sxe__http_body_step *step)
{
    struct sxe_span part;
    ssize_t n;

    if (length == 0 || sxe__http_body_is_waiting(slot))
        return 0;
    n = next_body_part(slot, data, length, &part);
    if (n < 0) {
        *step = refused_body(sxe_http_refusal_status(slot->chunks.refusal));
        return length;
    }
    slot->is_continue_due = false; /* bytes came, so the client did not wait for 100 */
    slot->connection->window += (size_t)n;
    if (n > 0)
        *step = use_part(slot, part);
    return (size_t)n;
}

void
sxe_http_read(struct sxe_http_request *request, sxe_http_on_body on_body)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);

    slot->on_body = on_body;
    sxe__http_changed(slot->connection);
}

void
sxe_http_pause(struct sxe_http_request *request)
{
    SXE__HTTP_SLOT_OF_REQUEST(request)->is_body_paused = true;
}

void
sxe_http_resume(struct sxe_http_request *request)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);

    slot->is_body_paused = false;
    sxe__http_changed(slot->connection);
}

int
sxe_http_keep_body(struct sxe_http_request *request, size_t bytes)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_REQUEST(request);
    struct sxe_http *http = request->http;

    if (bytes > http->config.body_memory_max - http->body_memory ||
        bytes > UINT32_MAX - slot->body_kept)
        return -ENOBUFS;
    slot->body_kept += (uint32_t)bytes;
    http->body_memory += bytes;
    return 0;
}

void
sxe_http_release_body(struct sxe_http_request *request)
{
    sxe__http_body_forget(SXE__HTTP_SLOT_OF_REQUEST(request));
}
