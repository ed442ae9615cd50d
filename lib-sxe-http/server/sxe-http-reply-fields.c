/* SPDX-License-Identifier: MIT
 *
 * What: the fields that a handler adds to its reply, as lines in the slot. After the head was sent,
 * they are the trailer.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <string.h>

#include "sxe-http-list.h"
#include "sxe-http-private.h"

/* Whether the field is a framing field, or the library sends it itself. */
static bool
is_reserved(enum sxe_http_field_id id)
{
    return id == SXE_HTTP_FIELD_CONNECTION || id == SXE_HTTP_FIELD_CONTENT_LENGTH ||
           id == SXE_HTTP_FIELD_DATE || id == SXE_HTTP_FIELD_TRANSFER_ENCODING;
}

/* RFC 9110, 6.5.1: a trailer has no fields for framing, routing, authentication or content format.
 * Of the well-known fields only the fields below may be in a trailer. */
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

/* Find the first line with that name between `at` and `end`, with its CR LF. length 0: there is
 * none. */
static struct sxe_span
find_header_line(const char *at, const char *end, struct sxe_span name)
{
    while (at < end) {
        const char *next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;

        if ((size_t)(next - at) > name.length && at[name.length] == ':' &&
            sxe__http_is_same(at, name.base, name.length))
            return (struct sxe_span){at, (size_t)(next - at)};
        at = next;
    }
    return (struct sxe_span){end, 0};
}

bool
sxe__http_has_line(const struct sxe_http_response *response, struct sxe_span name)
{
    const struct sxe_span lines = sxe__http_lines(response);

    return find_header_line(lines.base, lines.base + lines.length, name).length > 0;
}

struct sxe_span
sxe_http_added_field(const struct sxe_http_response *response, const char *name)
{
    struct sxe_span lines = sxe__http_lines(response);
    size_t length = strlen(name);
    struct sxe_span line =
        find_header_line(lines.base, lines.base + lines.length, (struct sxe_span){name, length});
    size_t before = length + 2;

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
        line = find_header_line(lines, lines + slot->fields_used,
                                (struct sxe_span){name, strlen(name)});
        if (line.length == 0)
            break;
        slot->fields_used -= (uint32_t)line.length;
        memmove(lines + (line.base - lines), line.base + line.length,
                (size_t)(lines + slot->fields_used - line.base));
    }
    if (slot->fields_used < used)
        slot->offers_upgrade = sxe_http_added_field(response, "Upgrade").base != NULL;
}
