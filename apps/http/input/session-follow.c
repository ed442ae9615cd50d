/* SPDX-License-Identifier: MIT
 *
 * What: finds the target to which a redirect leads: the Location (RFC 9110, 10.2.2) is resolved
 * against the target of the query (RFC 3986, 5.2). It must be on the same server.
 */
#include <string.h>
#include <strings.h>

#include "session-private.h"

static struct sxe_span
cut_front(struct sxe_span text, size_t length)
{
    return (struct sxe_span){text.base + length, text.length - length};
}

static bool
has_front(struct sxe_span text, const char *front)
{
    size_t length = strlen(front);

    return text.length >= length && strncasecmp(text.base, front, length) == 0;
}

/* The length of an authority without a final ":80", which is the default port. */
static size_t
without_port(struct sxe_span authority)
{
    return authority.length > 3 && memcmp(authority.base + authority.length - 3, ":80", 3) == 0
               ? authority.length - 3
               : authority.length;
}

static bool
is_same_server(struct sxe_span authority, const char *own)
{
    struct sxe_span ours = {own, strlen(own)};
    size_t length = without_port(authority);

    return length == without_port(ours) && strncasecmp(authority.base, own, length) == 0;
}

static size_t
length_before(struct sxe_span text, const char *ends)
{
    size_t length = 0;

    while (length < text.length && strchr(ends, text.base[length]) == NULL)
        length++;
    return length;
}

/* Remove "http://authority" from the front. If no path follows, the path becomes "/". NULL, or what
 * is wrong. */
static const char *
take_server(const struct load_sessions *sessions, struct sxe_span *location, struct load_bytes *to)
{
    struct sxe_span authority;

    if (has_front(*location, "http://"))
        *location = cut_front(*location, 5);
    else if (length_before(*location, ":/?") < length_before(*location, "/?"))
        return "leads to another scheme than http";
    if (!has_front(*location, "//"))
        return NULL;
    authority = cut_front(*location, 2);
    *location = cut_front(authority, length_before(authority, "/?"));
    authority.length -= location->length;
    if (location->length == 0 || *location->base == '?')
        to->bytes[to->length++] = '/';
    return is_same_server(authority, sessions->authority) ? NULL : "leads to another server";
}

/* Append a path segment by segment; a segment .. removes the one before it (RFC 3986, 5.2.4). */
static void
put_joined_path(struct load_bytes *to, struct sxe_span path)
{
    while (path.length > 0) {
        struct sxe_span segment = path;
        /* the length of the segment with its slash */
        size_t length = length_before(cut_front(path, 1), "/") + 1;
        bool is_last = length == path.length;

        segment.length = length;
        path = cut_front(path, length);
        if (length == 2 && segment.base[1] == '.') {
            segment.length = is_last;
        } else if (length == 3 && segment.base[1] == '.' && segment.base[2] == '.') {
            while (to->length > 0 && to->bytes[--to->length] != '/')
                continue;
            segment.length = is_last;
        }
        load_session_put(to, LOAD_ESCAPE_RAW, segment);
    }
}

/* The part of the query's target to which a relative Location is appended. */
static struct sxe_span
base_of_target(struct sxe_span target, struct sxe_span location)
{
    struct sxe_span base = {target.base, length_before(target, "?")};

    if (location.length == 0 || *location.base == '?')
        return base;
    while (base.base[base.length - 1] != '/')
        base.length--;
    return base;
}

const char *
load_session_follow(const struct load_sessions *sessions, struct load_user *user,
                    struct sxe_span location)
{
    char joined[2 * LOAD_TARGET_MAX], made[3 * sizeof(joined)];
    struct load_bytes to = {made, 0}, whole = {joined, 0};
    struct sxe_span target = {user->target, user->target_length};
    struct sxe_span query;
    const char *wrong;

    location.length = length_before(location, "#");
    if (location.length > LOAD_TARGET_MAX)
        return "has more than 2048 bytes";
    wrong = take_server(sessions, &location, &whole);
    if (wrong != NULL)
        return wrong;
    query = cut_front(location, length_before(location, "?"));
    location.length -= query.length;
    if (whole.length == 0 && (location.length == 0 || *location.base != '/'))
        load_session_put(&whole, LOAD_ESCAPE_NONE,
                         base_of_target(target, location.length > 0 ? location : query));
    load_session_put(&whole, LOAD_ESCAPE_NONE, location);
    put_joined_path(&to, (struct sxe_span){whole.bytes, whole.length});
    load_session_put(&to, LOAD_ESCAPE_RAW, query);
    if (to.length > LOAD_TARGET_MAX)
        return "has more than 2048 bytes";
    memcpy(user->target, to.bytes, to.length);
    user->target_length = (uint16_t)to.length;
    return NULL;
}
