/* SPDX-License-Identifier: MIT
 *
 * What: replies in parts, replies that lend memory or files to the kernel, and connections that
 * leave HTTP.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Shorter memory is cheaper to copy than to lend. */
#define COPY_MAX (16u * 1024)

/* ---- Memory and files that are lent ---- */

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

/* The reply has ended: when the kernel has it all, it is done. */
static void
end_lent(struct sxe__http_slot *slot)
{
    slot->is_sending = true;
    if (sxe_send(slot->connection->sxe, "", 0, lent_is_sent) < 0)
        sxe__http_break(slot);
    else
        sxe__http_ended(slot);
}

/* ---- Parts ---- */

int
sxe_http_begin(struct sxe_http_response *response, uint64_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    SXE *s = slot->connection->sxe;
    char *head = slot->request.http->scratch;
    bool is_unknown = length == SXE_HTTP_LENGTH_UNKNOWN;
    char *end;

    if (slot->progress != SXE__HTTP_UNANSWERED)
        return -EINVAL;
    if (sxe__http_head_max(slot) > sxe_get_config()->output_max - sxe_unsent(s))
        return -ENOBUFS;
    slot->is_chunked = is_unknown && slot->request.head.minor > 0 && sxe__http_sends_body(slot);
    if (is_unknown && slot->request.head.minor == 0)
        slot->close = true;
    slot->length_left = length;
    end = sxe__http_put_head(slot, head, length);
    if (sxe_write(s, head, (unsigned)(end - head)) < 0)
        return -ENOTCONN;
    slot->progress = SXE__HTTP_BEGUN;
    slot->fields_used = 0; /* what is added from here on is a trailer */
    return 0;
}

/* Whether so much more may be sent now. */
static int
check_part(const struct sxe__http_slot *slot, size_t length)
{
    if (slot->progress != SXE__HTTP_BEGUN)
        return -EINVAL;
    if (slot->length_left != SXE_HTTP_LENGTH_UNKNOWN && length > slot->length_left)
        return -EINVAL;
    return 0;
}

static void
count_part(struct sxe__http_slot *slot, size_t length)
{
    slot->body_sent += length;
    if (slot->length_left != SXE_HTTP_LENGTH_UNKNOWN)
        slot->length_left -= length;
}

/* A chunk of its own (RFC 9112, 7.1), all of it or nothing. */
static int
write_part(struct sxe__http_slot *slot, const void *data, size_t length)
{
    SXE *s = slot->connection->sxe;
    char size[20];
    int size_length = 0;

    if (slot->is_chunked)
        size_length = snprintf(size, sizeof(size), "%zx\r\n", length);
    if (length + sizeof(size) > sxe_get_config()->output_max - sxe_unsent(s))
        return -ENOBUFS;
    if (sxe_write(s, size, (unsigned)size_length) < 0)
        return -ENOBUFS;
    if (sxe_write(s, data, (unsigned)length) < 0 ||
        (slot->is_chunked && SXE_WRITE_LITERAL(s, "\r\n") < 0))
        sxe__http_break(slot);
    return 0;
}

int
sxe_http_write(struct sxe_http_response *response, const void *data, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result = check_part(slot, length);

    if (result == 0 && length > 0 && sxe__http_sends_body(slot))
        result = write_part(slot, data, length);
    if (result == 0)
        count_part(slot, length);
    return result;
}

int
sxe_http_write_file(struct sxe_http_response *response, int fd, off_t offset, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result = check_part(slot, length);

    if (slot->is_chunked)
        result = -EINVAL;
    if (result == 0 && length > 0 && sxe__http_sends_body(slot)) {
        slot->is_lending = true;
        result = sxe_sendfile(slot->connection->sxe, fd, offset, length, NULL);
    }
    if (result == 0)
        count_part(slot, length);
    return result;
}

int
sxe_http_add_trailer(struct sxe_http_response *response, const char *name, const char *value)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);

    if (slot->progress != SXE__HTTP_BEGUN)
        return -EINVAL;
    return sxe__http_add_line(slot, name, (struct sxe_span){value, strlen(value)});
}

static void
write_last_chunk(struct sxe__http_slot *slot)
{
    SXE *s = slot->connection->sxe;
    const char *trailers = (char *)slot + slot->request.http->reply_at;

    if (SXE_WRITE_LITERAL(s, "0\r\n") < 0 || sxe_write(s, trailers, slot->fields_used) < 0 ||
        SXE_WRITE_LITERAL(s, "\r\n") < 0)
        sxe__http_break(slot);
}

int
sxe__http_end_begun(struct sxe__http_slot *slot, const void *data, size_t length)
{
    int result = sxe_http_write(&slot->response, data, length);

    if (result < 0)
        return result;
    if (slot->length_left != SXE_HTTP_LENGTH_UNKNOWN && slot->length_left > 0) {
        SXE_WARN("a reply has %llu bytes less than it said: its connection is closed",
                 (unsigned long long)slot->length_left);
        sxe__http_break(slot);
        return 0;
    }
    if (slot->is_chunked)
        write_last_chunk(slot);
    if (slot->is_lending)
        end_lent(slot);
    else
        sxe__http_ended(slot);
    return 0;
}

/* ---- Whole replies of lent memory and files ---- */

int
sxe_http_end_borrowed(struct sxe_http_response *response, const void *body, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result;

    if (length <= COPY_MAX)
        return sxe_http_end(response, body, length);
    sxe__http_decide_close(slot);
    result = sxe_http_begin(response, length);
    if (result < 0)
        return result;
    slot->is_lending = true;
    if (sxe__http_sends_body(slot) && sxe_send(slot->connection->sxe, body, length, NULL) < 0)
        sxe__http_break(slot);
    slot->body_sent = length;
    end_lent(slot);
    return 0;
}

int
sxe_http_end_file(struct sxe_http_response *response, int fd, off_t offset, size_t length)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result;

    sxe__http_decide_close(slot);
    result = sxe_http_begin(response, length);
    if (result < 0)
        return result;
    if (sxe_http_write_file(response, fd, offset, length) < 0)
        sxe__http_break(slot);
    end_lent(slot);
    return 0;
}

/* ---- Room ---- */

static void
has_room(SXE *s, int result)
{
    struct sxe__http_connection *connection = SXE_USER_DATA(s);
    struct sxe__http_slot *slot = connection->slot;
    void (*on_room)(struct sxe_http_response * response);

    if (result < 0)
        return;
    on_room = slot->on_room;
    slot->on_room = NULL;
    connection->inside = true;
    on_room(&slot->response);
    connection->inside = false;
    if (slot->progress == SXE__HTTP_ENDED)
        sxe__http_changed(connection);
}

int
sxe_http_on_room(struct sxe_http_response *response,
                 void (*on_room)(struct sxe_http_response *response))
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    int result;

    if (slot->on_room != NULL)
        return -EBUSY;
    if (slot->progress != SXE__HTTP_BEGUN)
        return -EINVAL;
    result = sxe_send(slot->connection->sxe, "", 0, has_room);
    if (result == 0)
        slot->on_room = on_room;
    return result;
}

/* ---- Leaving HTTP ---- */

static int
write_upgrade(SXE *s, const char *protocol)
{
    char head[256];
    int length = snprintf(head, sizeof(head),
                          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: %s\r\nConnection: Upgrade"
                          "\r\n\r\n",
                          protocol);

    return length < (int)sizeof(head) ? sxe_write(s, head, (unsigned)length) : -ENOBUFS;
}

SXE *
sxe_http_upgrade(struct sxe_http_response *response, const char *protocol,
                 SXE_IN_EVENT_READ on_read, SXE_IN_EVENT_CLOSE on_close, void *user)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    struct sxe__http_connection *connection = slot->connection;
    SXE *s = connection->sxe;

    if (!slot->request.head.upgrade || !slot->body_whole || slot->progress != SXE__HTTP_UNANSWERED)
        return NULL;
    if (write_upgrade(s, protocol) < 0)
        return NULL;
    sxe__http_free(connection);
    s->on_read = on_read;
    s->on_close = on_close;
    SXE_USER_DATA(s) = user;
    sxe_resume(s, SXE_RESUME_IMMEDIATE);
    return s;
}
