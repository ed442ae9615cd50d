/* SPDX-License-Identifier: MIT
 *
 * What: replies in parts, replies that lend memory or files to the kernel, and connections that
 * leave HTTP.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sxe-http-list.h"
#include "sxe-http-private.h"

#define FRAMING_MAX  24 /* bytes around a chunk's data */
#define PROTOCOL_MAX 256

/* ---- Beginning a reply in parts ---- */

static int
begin_stream(struct sxe__http_slot *slot, uint64_t length)
{
    bool is_open = length == SXE_HTTP_LENGTH_UNKNOWN && sxe__http_has_reply_body(slot);
    ssize_t head;
    int result;

    if (slot->progress != SXE__HTTP_UNANSWERED)
        return -EINVAL;
    slot->is_chunked = is_open && slot->request.head.minor > 0 && !slot->connection->is_cgi;
    /* A handler that reads the body mostly reads it to its end: the connection continues. */
    if (slot->on_body == NULL)
        sxe__http_decide_close(slot);
    /* No 100 was sent, so the next bytes may or may not be the body: close after the reply. */
    if (slot->is_continue_due || slot->request.http->is_draining ||
        (is_open && slot->request.head.minor == 0))
        slot->close = true;
    head = sxe__http_compose_head(slot, NULL, length);
    result = sxe_write(slot->connection->sxe, slot->request.http->head, (unsigned)head);
    if (result < 0) {
        slot->is_chunked = false;
        return sxe__http_cannot_write(slot, result);
    }
    slot->progress = SXE__HTTP_BEGUN;
    slot->length_left = length;
    slot->fields_used = 0; /* fields that are added from here on are trailers */
    return 0;
}

int
sxe_http_begin(struct sxe_http_response *response, uint64_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    /* If a handler asked for the body earlier in this turn, send 100 now: 100 must not follow the
     * head of a reply. */
    int result = slot->on_body != NULL ? sxe__http_body_await(slot) : 0;

    return result < 0 ? sxe__http_cannot_write(slot, result) : begin_stream(slot, length);
}

/* ---- Parts ---- */

struct part {
    enum { COPIED, LENT, OF_FILE } kind;
    int fd;
    const void *data;
    off_t offset;
    size_t length;
    SXE_OUT_EVENT_SENT on_sent; /* NULL if the part is COPIED */
};

static int
write_content(SXE *s, const struct part *part)
{
    switch (part->kind) {
    case COPIED:
        return sxe_write(s, part->data, (unsigned)part->length);
    case LENT:
        return sxe_send(s, part->data, part->length, part->on_sent);
    case OF_FILE:
        break;
    }
    return sxe_sendfile(s, part->fd, part->offset, part->length, part->on_sent);
}

/* Write a part as one chunk (RFC 9112, 7.1). Once its size is written, the whole part must
 * follow. */
static int
write_chunk(struct sxe__http_slot *slot, const struct part *part)
{
    SXE *s = slot->connection->sxe;
    char size[FRAMING_MAX];
    int length = snprintf(size, sizeof(size), "%zx\r\n", part->length);
    int result = sxe_write(s, size, (unsigned)length);

    if (result < 0)
        return sxe__http_cannot_write(slot, result);
    if (write_content(s, part) < 0 || SXE_WRITE_LITERAL(s, "\r\n") < 0)
        return sxe__http_break(slot);
    return 0;
}

/* Write a part if room is left after it for the last chunk and the trailer, so that a handler that
 * filled the output can end the reply. */
static int
write_stream_part(struct sxe__http_slot *slot, const struct part *part)
{
    size_t framing = slot->is_chunked ? 2 * FRAMING_MAX + slot->fields_used : 0;
    int result;

    if (!sxe__http_has_room(slot, framing, part->kind == COPIED ? part->length : 0))
        return -ENOBUFS;
    if (slot->is_chunked)
        return write_chunk(slot, part);
    result = write_content(slot->connection->sxe, part);
    return result < 0 ? sxe__http_cannot_write(slot, result) : 0;
}

static int
add_reply_part(struct sxe__http_slot *slot, const struct part *part)
{
    bool has_length = slot->length_left != SXE_HTTP_LENGTH_UNKNOWN;
    int result = 0;

    if (slot->progress != SXE__HTTP_BEGUN || (has_length && part->length > slot->length_left))
        return -EINVAL;
    if (part->length > 0 && sxe__http_has_reply_body(slot)) {
        result = write_stream_part(slot, part);
        if (result < 0)
            return result;
        slot->is_lending |= part->kind != COPIED;
        slot->body_sent += part->length;
    }
    if (has_length)
        slot->length_left -= part->length;
    return 0;
}

int
sxe_http_write(struct sxe_http_response *response, const void *data, size_t length)
{
    struct part part = {.kind = COPIED, .data = data, .length = length};

    return add_reply_part(SXE__HTTP_SLOT_OF_RESPONSE(response), &part);
}

int
sxe__http_write_borrowed(struct sxe_http_response *response, const void *data, size_t length)
{
    struct part part = {.kind = LENT, .data = data, .length = length};

    return add_reply_part(SXE__HTTP_SLOT_OF_RESPONSE(response), &part);
}

static int
check_place(int fd, off_t offset)
{
    if (fd < 0)
        return -EBADF;
    return offset < 0 ? -EINVAL : 0;
}

int
sxe_http_write_file(struct sxe_http_response *response, int fd, off_t offset, size_t length)
{
    struct part part = {.kind = OF_FILE, .fd = fd, .offset = offset, .length = length};
    int result = check_place(fd, offset);

    return result < 0 ? result : add_reply_part(SXE__HTTP_SLOT_OF_RESPONSE(response), &part);
}

int
sxe_http_add_trailer(struct sxe_http_response *response, const char *name, const char *value)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    if (slot->progress != SXE__HTTP_BEGUN)
        return -EINVAL;
    return sxe__http_add_line(slot, name, (struct sxe_span){value, strlen(value)});
}

/* ---- The end ---- */

static void
lent_is_sent(SXE *s, int result)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);

    /* A failure ends the connection, and that ends the request. */
    if (result < 0)
        return;
    connection->slot->is_sending = false;
    sxe__http_changed(connection);
}

static int
write_last_chunk(struct sxe__http_slot *slot)
{
    SXE *s = slot->connection->sxe;
    const char *trailer = (char *)slot + slot->request.http->reply_at;

    if (!sxe__http_has_room(slot, FRAMING_MAX + slot->fields_used, 0))
        return -ENOBUFS;
    if (SXE_WRITE_LITERAL(s, "0\r\n") < 0 || sxe_write(s, trailer, slot->fields_used) < 0 ||
        SXE_WRITE_LITERAL(s, "\r\n") < 0)
        return sxe__http_break(slot);
    return 0;
}

/* All parts are written. A reply that lent memory, or that still waits for an on_room, is done only
 * when the kernel has all of it. The callback of the last part reports that, or the callback of an
 * empty part that is added here. */
static int
end_stream(struct sxe__http_slot *slot)
{
    int result;

    if (slot->length_left != SXE_HTTP_LENGTH_UNKNOWN && slot->length_left > 0 &&
        sxe__http_has_reply_body(slot)) {
        SXE_WARN("a reply ended %llu bytes before its Content-Length: its connection is closed",
                 (unsigned long long)slot->length_left);
        sxe__http_break(slot);
        return 0;
    }
    if (slot->is_chunked && (result = write_last_chunk(slot)) < 0)
        return result;
    if (!slot->is_sending && (slot->is_lending || slot->on_room != NULL)) {
        if (sxe_send(slot->connection->sxe, "", 0, lent_is_sent) < 0)
            return sxe__http_break(slot);
        slot->is_sending = true;
    }
    sxe__http_ended(slot);
    return 0;
}

/* Whether nothing follows this last part, so that its callback means that the whole reply was
 * sent. */
static bool
is_end_of_reply(const struct sxe__http_slot *slot, const struct part *part)
{
    return part->kind != COPIED && part->length > 0 && !slot->is_chunked && slot->on_room == NULL &&
           sxe__http_has_reply_body(slot);
}

/* Write the last part of a reply, which may be the only part. */
static int
end_reply_with_part(struct sxe__http_slot *slot, struct part *part)
{
    bool is_whole = slot->progress == SXE__HTTP_UNANSWERED;
    int result = 0;

    if (is_whole) {
        sxe__http_decide_close(slot);
        result = begin_stream(slot, part->length);
        if (result < 0)
            return result;
    }
    part->on_sent = is_end_of_reply(slot, part) ? lent_is_sent : NULL;
    result = add_reply_part(slot, part);
    if (result == 0) {
        slot->is_sending = part->on_sent != NULL;
        return end_stream(slot);
    }
    return is_whole ? sxe__http_break(slot) : result;
}

int
sxe_http_end(struct sxe_http_response *response, const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    struct part part = {.kind = COPIED, .data = body, .length = length};

    if (slot->progress == SXE__HTTP_UNANSWERED)
        return sxe__http_end_whole(slot, NULL, body, length);
    return slot->progress == SXE__HTTP_BEGUN ? end_reply_with_part(slot, &part) : -EINVAL;
}

int
sxe_http_end_borrowed(struct sxe_http_response *response, const void *body, size_t length)
{
    struct part part = {.kind = LENT, .data = body, .length = length};

    if (length <= SXE__HTTP_COPY_MAX)
        return sxe_http_end(response, body, length);
    return end_reply_with_part(SXE__HTTP_SLOT_OF_RESPONSE(response), &part);
}

int
sxe_http_end_file(struct sxe_http_response *response, int fd, off_t offset, size_t length)
{
    struct part part = {.kind = OF_FILE, .fd = fd, .offset = offset, .length = length};
    int result = check_place(fd, offset);

    return result < 0 ? result : end_reply_with_part(SXE__HTTP_SLOT_OF_RESPONSE(response), &part);
}

/* ---- Room for more output ---- */

static void
on_output_sent(SXE *s, int result)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);
    struct sxe__http_slot *slot;
    void (*on_room)(struct sxe_http_response * response);

    if (result < 0)
        return;
    slot = connection->slot;
    on_room = slot->on_room;
    slot->on_room = NULL;
    if (slot->progress == SXE__HTTP_BEGUN)
        on_room(&slot->response);
}

int
sxe_http_on_room(struct sxe_http_response *response,
                 void (*on_room)(struct sxe_http_response *response))
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result;

    if (slot->progress != SXE__HTTP_BEGUN)
        return -EINVAL;
    if (slot->on_room != NULL)
        return -EBUSY;
    result = sxe_send(slot->connection->sxe, "", 0, on_output_sent);
    if (result < 0)
        return sxe__http_cannot_write(slot, result);
    slot->on_room = on_room;
    return 0;
}

/* ---- Leaving HTTP ---- */

/* RFC 9110, 7.8: switch only to a protocol that the client named. The client's field was valid, so
 * the name is a valid value, too. */
static bool
is_asked_for(const struct sxe_http_request *request, const char *protocol)
{
    struct sxe_http_list list =
        sxe_http_list_of(&request->head, request->data, SXE_HTTP_FIELD_UPGRADE);
    size_t length = strlen(protocol);
    struct sxe_span element;

    while (request->head.upgrade && length <= PROTOCOL_MAX && sxe_http_list_next(&list, &element)) {
        if (element.length == length && sxe__http_is_same(element.base, protocol, length))
            return true;
    }
    return false;
}

static int
write_upgrade(struct sxe__http_slot *slot, const char *protocol)
{
    struct sxe_http *http = slot->request.http;
    const char *fields = (char *)slot + http->reply_at;
    int length = snprintf(http->head, http->head_size,
                          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\n"
                          "Connection: upgrade\r\n%.*s",
                          protocol, (int)slot->fields_used, fields);
    char *end = mempcpy(sxe__http_put_id(slot, http->head + length), "\r\n", 2);

    http->last.until_ns = 0; /* the reply 101 overwrites the memory of the last head */
    return sxe_write(slot->connection->sxe, http->head, (unsigned)(end - http->head));
}

SXE *
sxe_http_upgrade(struct sxe_http_response *response, const char *protocol,
                 SXE_IN_EVENT_READ on_read, SXE_IN_EVENT_CLOSE on_close, void *user)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    struct sxe__http_connection *connection = slot->connection;
    SXE *s = connection->sxe;

    if (slot->progress != SXE__HTTP_UNANSWERED || !slot->is_body_whole ||
        !is_asked_for(&slot->request, protocol) || write_upgrade(slot, protocol) < 0)
        return NULL;
    slot->status = 101;
    slot->progress = SXE__HTTP_ENDED;
    slot->response.on_done = NULL;
    sxe__http_hand_over(connection);
    sxe_set_half_close(s, false);
    sxe_watch_end(s, false);
    s->on_read = on_read;
    s->on_close = on_close;
    SXE_USER_DATA(s) = user;
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    return s;
}
