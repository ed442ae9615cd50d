/* SPDX-License-Identifier: MIT
 *
 * Finding the end of a reply: status line and head, counted, chunked and endless bodies.
 */
#include "reply.h"

#include <string.h>

enum { BAD = -1, FIELDS_MAX = 100 };

static ssize_t
refuse_load_reply(struct load_reply *reply, unsigned refusal, uint64_t at)
{
    reply->refusal = (uint8_t)refusal;
    reply->left = at;
    return BAD;
}

static void
begin_reply_body(struct load_reply *reply, const struct sxe_http_parser *head)
{
    switch ((enum sxe_http_body)head->body) {
    case SXE_HTTP_BODY_NONE:
        reply->part = LOAD_REPLY_WHOLE;
        break;
    case SXE_HTTP_BODY_LENGTH:
        reply->left = head->length;
        reply->part = reply->left > 0 ? LOAD_REPLY_COUNTED : LOAD_REPLY_WHOLE;
        break;
    case SXE_HTTP_BODY_CHUNKED:
        sxe_http_chunks_init(&reply->chunks, NULL, 0, NULL);
        reply->part = LOAD_REPLY_CHUNKED;
        break;
    case SXE_HTTP_BODY_UNTIL_CLOSE:
        reply->part = LOAD_REPLY_UNTIL_CLOSE;
        break;
    }
    reply->keep_alive = head->keep_alive;
    reply->status = head->status;
}

/* Whether the data begin with the remembered head. For a reply to HEAD the answer is no, because
 * such a reply has no body, whatever its head says. */
static bool
is_head_remembered(const struct load_reply *reply, const char *data, size_t length,
                   const struct load_reply_memo *memo)
{
    return reply->part == LOAD_REPLY_HEAD && !reply->is_to_head && memo->length > 0 &&
           length >= memo->length && memcmp(data, memo->bytes, memo->length) == 0;
}

static void
remember_head(const struct load_reply *reply, const struct sxe_http_parser *head, const char *data,
              size_t length, struct load_reply_memo *memo)
{
    if (reply->is_to_head || length > sizeof(memo->bytes))
        return;
    memo->head = *head;
    memo->head.fields = NULL; /* the fields were in memory of the function that parsed the head */
    memo->length = length;
    memcpy(memo->bytes, data, length);
}

/* Parse the head. If it comes in pieces, which is rare, it is parsed from its beginning again with
 * each piece, so that connections need no memory for fields. */
static ssize_t
take_head(struct load_reply *reply, const char *data, size_t length,
          struct load_reply_viewer *viewer, struct load_reply_memo *memo)
{
    struct sxe_http_field fields[FIELDS_MAX];
    struct sxe_http_parser head;
    int n;

    sxe_http_parser_init(&head, SXE_HTTP_RESPONSE, fields, FIELDS_MAX, NULL);
    head.method = reply->is_to_head ? SXE_HTTP_HEAD : SXE_HTTP_GET;
    n = sxe_http_parse(&head, data, length);
    if (n < 0)
        return refuse_load_reply(reply, head.refusal, head.refused_at);
    if (n == 0)
        return 0;
    /* Refuse a switch to another protocol, because no request asked for one. */
    if (head.upgrade)
        return refuse_load_reply(reply, SXE_HTTP_NOT_REFUSED, 0);
    if (head.status < 200)
        return n;
    begin_reply_body(reply, &head);
    if (viewer != NULL)
        viewer->on_head(viewer, &head, data, (size_t)n);
    if (memo != NULL)
        remember_head(reply, &head, data, (size_t)n, memo);
    return n;
}

static ssize_t
take_counted(struct load_reply *reply, const char *data, size_t length, struct sxe_span *body)
{
    size_t part = length < reply->left ? length : (size_t)reply->left;

    reply->left -= part;
    if (reply->left == 0)
        reply->part = LOAD_REPLY_WHOLE;
    *body = (struct sxe_span){data, part};
    return (ssize_t)part;
}

static ssize_t
take_chunked(struct load_reply *reply, const char *data, size_t length, struct sxe_span *body)
{
    uint64_t before = reply->chunks.taken;
    ssize_t n = sxe_http_chunks_read(&reply->chunks, data, length, body);

    if (n < 0)
        return refuse_load_reply(reply, reply->chunks.refusal, reply->chunks.taken - before);
    if (reply->chunks.done)
        reply->part = LOAD_REPLY_WHOLE;
    return n;
}

static ssize_t
take_reply_part(struct load_reply *reply, const char *data, size_t length,
                struct load_reply_viewer *viewer, struct load_reply_memo *memo)
{
    struct sxe_span body = {0};
    ssize_t n = 0;

    switch ((enum load_reply_part)reply->part) {
    case LOAD_REPLY_HEAD:
        return take_head(reply, data, length, viewer, memo);
    case LOAD_REPLY_COUNTED:
        n = take_counted(reply, data, length, &body);
        break;
    case LOAD_REPLY_CHUNKED:
        n = take_chunked(reply, data, length, &body);
        break;
    case LOAD_REPLY_UNTIL_CLOSE:
        body = (struct sxe_span){data, length};
        n = (ssize_t)length;
        break;
    case LOAD_REPLY_WHOLE:
        return 0;
    }
    if (viewer != NULL && n > 0 && body.length > 0)
        viewer->on_body(viewer, body.base, body.length);
    return n;
}

static ssize_t
take_parts(struct load_reply *reply, const char *data, size_t length,
           struct load_reply_viewer *viewer, struct load_reply_memo *memo)
{
    size_t taken = 0;

    while (taken < length) {
        ssize_t n = take_reply_part(reply, data + taken, length - taken, viewer, memo);

        if (n < 0) {
            reply->left += taken;
            return BAD;
        }
        if (n == 0)
            break;
        taken += (size_t)n;
    }
    return (ssize_t)taken;
}

ssize_t
load_reply_view(struct load_reply *reply, const char *data, size_t length,
                struct load_reply_viewer *viewer)
{
    return take_parts(reply, data, length, viewer, NULL);
}

ssize_t
load_reply_scan(struct load_reply *reply, const char *data, size_t length,
                struct load_reply_memo *memo, struct load_reply_viewer *viewer)
{
    size_t head_length = 0;
    ssize_t rest;

    if (is_head_remembered(reply, data, length, memo)) {
        head_length = memo->length;
        begin_reply_body(reply, &memo->head);
        if (viewer != NULL)
            viewer->on_head(viewer, &memo->head, data, head_length);
    }
    rest = take_parts(reply, data + head_length, length - head_length, viewer, memo);
    if (rest < 0) {
        reply->left += head_length;
        return BAD;
    }
    return (ssize_t)head_length + rest;
}
