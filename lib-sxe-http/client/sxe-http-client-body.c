/* SPDX-License-Identifier: MIT
 *
 * What: sends the body of a request that is not copied: a borrowed body goes out in large pieces; a
 * body that the program writes in parts goes out part by part, each after the kernel took all of
 * the part before.
 */
#include "sxe-http-client-private.h"

#include <errno.h>
#include <stdio.h>

#include "sxe-always-internal.h"

/* bytes of a borrowed body that the socket gets at a time */
#define PIECE (256u * 1024u)

#define FRAMING_MAX 32 /* bytes around a part's data (RFC 9112, 7.1) */

/* ---- A borrowed body ---- */

static size_t
next_piece(const struct sxe__http_link *link)
{
    return link->unsent < PIECE ? (size_t)link->unsent : PIECE;
}

static void on_piece_sent(SXE *s, int result);

static int
send_piece(struct sxe__http_link *link)
{
    const struct sxe_http_call *call = &sxe__http_link_job(link)->wanted;
    const char *end = (const char *)call->body + call->request.body_length;

    return sxe_send(link->socket, end - link->unsent, next_piece(link), on_piece_sent);
}

static void
on_piece_sent(SXE *s, int result)
{
    struct sxe__http_link *link = s->user_data;

    /* The socket is closed; on_close ends the job. */
    if (result < 0)
        return;
    link->unsent -= next_piece(link);
    if (link->unsent > 0)
        result = send_piece(link);
    /* send_piece should not fail: the sent piece has left its place in the output queue. */
    if (SXE_NEVER(result < 0))
        sxe__http_job_fail(link->client, link->job, result);
    else if (sxe__http_link_state(link) == SXE__HTTP_LINK_SENDING)
        sxe__http_link_move(link, link->unsent > 0 ? SXE__HTTP_LINK_SENDING : SXE__HTTP_LINK_HEAD);
}

/* ---- A body in parts ---- */

/* The kernel has all that was sent of the request: ask for the next part. After an early response
 * the link stays in BODY or PAUSED. */
static void
on_part_sent(SXE *s, int result)
{
    struct sxe__http_link *link = s->user_data;
    struct sxe_http_exchange exchange;
    enum sxe__http_link_state state;

    if (result < 0)
        return;
    link->unsent = link->is_last_part ? 0 : link->unsent - link->part;
    state = sxe__http_link_state(link);
    if (state == SXE__HTTP_LINK_CONNECTING || state == SXE__HTTP_LINK_SENDING)
        sxe__http_link_move(link, link->unsent > 0 ? SXE__HTTP_LINK_ASKING : SXE__HTTP_LINK_HEAD);
    if (link->unsent == 0)
        return;
    link->is_asking = link->is_in_parts = true;
    exchange = sxe__http_exchange(link->client, link->job);
    sxe__http_link_job(link)->wanted.on_room(&exchange);
}

/* Write a part as records of STDIN; the last part ends the stream. */
static int
write_input_records(const struct sxe__http_link *link, const char *data, size_t length, bool last)
{
    const struct sxe__http_records *records = &link->client->records[sxe__http_link_id(link)];
    SXE *s = link->socket;
    char head[SXE_HTTP_FASTCGI_HEAD];
    int result = 0;

    while (result == 0 && length > 0) {
        const size_t size = length < SXE__HTTP_STDIN_MAX ? length : SXE__HTTP_STDIN_MAX;

        sxe__http_records_put_input(records, head, size);
        result = sxe_write(s, head, sizeof(head));
        if (result == 0)
            result = sxe_write(s, data, (unsigned)size);
        data += size;
        length -= size;
    }
    sxe__http_records_put_input(records, head, 0);
    return result == 0 && last ? sxe_write(s, head, sizeof(head)) : result;
}

static int
write_body_part(const struct sxe__http_link *link, const void *data, size_t length, bool last)
{
    SXE *s = link->socket;
    char size[FRAMING_MAX];
    int digits;
    int result = 0;

    if (link->client->records != NULL)
        return write_input_records(link, data, length, last);
    if (link->unsent != SXE_HTTP_CHUNKED)
        return sxe_write(s, data, (unsigned)length);
    if (length > 0) {
        digits = snprintf(size, sizeof(size), "%zx\r\n", length);
        result = sxe_write(s, size, (unsigned)digits);
        if (result == 0)
            result = sxe_write(s, data, (unsigned)length);
        if (result == 0)
            result = SXE_WRITE_LITERAL(s, "\r\n");
    }
    return result == 0 && last ? SXE_WRITE_LITERAL(s, "0\r\n\r\n") : result;
}

int
sxe_http_client_write(struct sxe_http_client *client, uint64_t handle, const void *data,
                      size_t length, bool last)
{
    const unsigned id = sxe__http_job_find(client, handle);
    struct sxe__http_link *link;
    int result;

    if (id == SXE_POOL_NO_INDEX)
        return -ENOENT;
    link = client->jobs[id].link == SXE_NONE ? NULL : &client->links[client->jobs[id].link];
    if (link == NULL || !link->is_asking)
        return -EBUSY;
    if (link->unsent != SXE_HTTP_CHUNKED &&
        (length > link->unsent || (last && length < link->unsent)))
        return -EINVAL;
    if (length > INT32_MAX)
        return -ENOBUFS;
    result = write_body_part(link, data, length, last);
    if (result == 0)
        result = sxe_send(link->socket, "", 0, on_part_sent);
    if (result < 0)
        return result;
    link->is_asking = false;
    link->is_last_part = last;
    link->part = link->unsent == SXE_HTTP_CHUNKED ? 0 : (uint32_t)length;
    if (sxe__http_link_state(link) == SXE__HTTP_LINK_ASKING)
        sxe__http_link_move(link, SXE__HTTP_LINK_SENDING);
    return 0;
}

int
sxe__http_client_send_body(struct sxe__http_link *link)
{
    if (sxe__http_link_job(link)->wanted.on_room == NULL)
        return send_piece(link);
    return sxe_send(link->socket, "", 0, on_part_sent);
}
