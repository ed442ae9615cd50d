/* SPDX-License-Identifier: MIT
 *
 * Cookies (RFC 6265): reading them from a request, adding them to a reply.
 */
#include "sxe-http-server-private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sxe-http-cookie.h"
#include "sxe-http-list.h"
#include "sxe-http-private.h"
#include "sxe-sized-internal.h"

/* ---- Of a request ---- */

static void
enter_line(struct sxe_http_cookies *cookies, const struct sxe_http_field *field)
{
    cookies->field = field;
    if (field != NULL)
        cookies->rest =
            (struct sxe_span){cookies->request->data + field->value, field->value_length};
}

void
sxe_http_cookies_start(struct sxe_http_cookies *cookies, const struct sxe_http_request *request)
{
    memset(cookies, 0, sizeof(*cookies));
    cookies->request = request;
    enter_line(cookies, sxe_http_known(&request->head, SXE_HTTP_FIELD_COOKIE));
}

/* Take the text before the next semicolon, and the semicolon. */
static struct sxe_span
take_cookie_pair(struct sxe_span *rest)
{
    struct sxe_span pair = *rest;
    const char *end = memchr(pair.base, ';', pair.length);

    if (end == NULL) {
        *rest = (struct sxe_span){pair.base + pair.length, 0};
        return pair;
    }
    pair.length = (size_t)(end - pair.base);
    *rest = (struct sxe_span){end + 1, rest->length - pair.length - 1};
    return pair;
}

/* Split a pair at its first "=". False: the pair has none. */
static bool
split_pair(struct sxe_span pair, struct sxe_http_cookies *cookies)
{
    const char *equals = pair.length == 0 ? NULL : memchr(pair.base, '=', pair.length);
    struct sxe_span value;

    if (equals == NULL)
        return false;
    value = sxe_http_without_blanks(
        (struct sxe_span){equals + 1, pair.length - (size_t)(equals - pair.base) - 1});
    if (value.length >= 2 && value.base[0] == '"' && value.base[value.length - 1] == '"')
        value = (struct sxe_span){value.base + 1, value.length - 2};
    cookies->name =
        sxe_http_without_blanks((struct sxe_span){pair.base, (size_t)(equals - pair.base)});
    cookies->value = value;
    return true;
}

/* Go to the next cookie, through all lines: HTTP clients send one Cookie line, but HTTP/2 allows
 * several (RFC 9113, 8.2.3), which proxies may pass on. */
bool
sxe_http_cookies_next(struct sxe_http_cookies *cookies)
{
    const struct sxe_http_request *request = cookies->request;

    while (cookies->field != NULL) {
        if (cookies->rest.length == 0)
            enter_line(cookies, sxe_http_field_next(&request->head, request->data, cookies->field));
        else if (split_pair(take_cookie_pair(&cookies->rest), cookies))
            return true;
    }
    return false;
}

ssize_t
sxe_http_cookie(const struct sxe_http_request *request, const char *name, char *room, size_t size)
{
    struct sxe_http_cookies cookies;
    const size_t name_length = strlen(name);
    ssize_t length;

    if (size == 0)
        return -ENOBUFS;
    sxe_http_cookies_start(&cookies, request);
    while (sxe_http_cookies_next(&cookies)) {
        if (cookies.name.length != name_length || memcmp(cookies.name.base, name, name_length) != 0)
            continue;
        length = sxe_http_decode_lenient(cookies.value, room, size - 1);
        if (length >= 0)
            room[length] = '\0';
        return length;
    }
    return -ENOENT;
}

/* ---- Of a reply ---- */

/* Whether the byte may be in a value (RFC 6265, 4.1.1) and is not the mark of an escape. */
static bool
is_plain_in_cookie(unsigned char byte)
{
    return byte > ' ' && byte < 0x7f && strchr("%\",;\\", byte) == NULL;
}

/* Add the escaped value at `to`. Returns the new end; NULL: there is no room. */
static char *
put_cookie_value(char *to, const char *end, struct sxe_span value)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < value.length; i++) {
        const unsigned char byte = (unsigned char)value.base[i];

        if (end - to < 3)
            return NULL;
        if (is_plain_in_cookie(byte)) {
            *to++ = (char)byte;
            continue;
        }
        *to++ = '%';
        *to++ = digits[byte >> 4];
        *to++ = digits[byte & 15];
    }
    return to;
}

/* Whether the text has neither a control byte nor a semicolon (RFC 6265, 4.1.1). */
static bool
is_attribute_value(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f || *text == ';')
            return false;
    }
    return true;
}

/* Whether the attributes meet the demands of the name's prefix, "__Secure-" or "__Host-" (RFC
 * 6265bis, 4.1.3). Browsers recognise the prefix in capital and in small letters. */
static bool
is_prefix_right(const struct sxe_http_cookie *cookie)
{
    if (strncasecmp(cookie->name, "__Secure-", 9) == 0)
        return cookie->is_secure;
    if (strncasecmp(cookie->name, "__Host-", 7) == 0)
        return cookie->is_secure && cookie->domain == NULL &&
               (cookie->path == NULL || strcmp(cookie->path, "/") == 0);
    return true;
}

static bool
is_valid_cookie(const struct sxe_http_cookie *cookie)
{
    const bool needs_secure =
        cookie->is_partitioned || cookie->same_site == SXE_HTTP_SAME_SITE_NONE;

    return sxe_http_is_token((struct sxe_span){cookie->name, strlen(cookie->name)}) &&
           (cookie->path == NULL || (*cookie->path == '/' && is_attribute_value(cookie->path))) &&
           (cookie->domain == NULL ||
            (*cookie->domain != '\0' && is_attribute_value(cookie->domain))) &&
           (unsigned)cookie->same_site <= SXE_HTTP_SAME_SITE_NONE &&
           (cookie->is_secure || !needs_secure) && is_prefix_right(cookie);
}

/* Add the attributes at `to`. Returns the new end; NULL: there is no room. */
static char *
put_attributes(char *to, const char *end, const struct sxe_http_cookie *cookie)
{
    static const char *const same_site[] = {"Lax", "Strict", "None"};
    char age[32] = "";
    int length;

    if (cookie->max_age != 0)
        snprintf(age, sizeof(age), "; Max-Age=%lld",
                 cookie->max_age < 0 ? 0 : (long long)cookie->max_age);
    length = snprintf(
        to, (size_t)(end - to), "; Path=%s%s%s%s%s%s; SameSite=%s%s",
        cookie->path == NULL ? "/" : cookie->path,
        cookie->domain == NULL ? "" : "; Domain=", cookie->domain == NULL ? "" : cookie->domain,
        age, cookie->is_secure ? "; Secure" : "", cookie->is_for_scripts ? "" : "; HttpOnly",
        same_site[cookie->same_site], cookie->is_partitioned ? "; Partitioned" : "");
    return length >= end - to ? NULL : to + length;
}

/* Compose the value of Set-Cookie in a room of SXE_HTTP_COOKIE_MAX + 1 bytes. Returns its length,
 * or -EMSGSIZE. */
static ssize_t
compose_cookie(char *room, const struct sxe_http_cookie *cookie)
{
    const char *end = room + SXE_HTTP_COOKIE_MAX + 1;
    const size_t name_length = strlen(cookie->name);
    char *to;

    if (name_length > SXE_HTTP_COOKIE_MAX - 1)
        return -EMSGSIZE;
    to = mempcpy(room, cookie->name, name_length);
    *to++ = '=';
    to = put_cookie_value(to, end, cookie->value);
    to = to == NULL ? NULL : put_attributes(to, end, cookie);
    return to == NULL ? -EMSGSIZE : to - room;
}

/* Count the bytes of the lines that add a cookie of that name. If `removes` is set, also remove
 * these lines. */
static size_t
count_older(struct sxe__http_slot *slot, const char *name, bool removes)
{
    char *line = (char *)slot + slot->request.http->reply_at;
    const char *end = line + slot->fields_used;
    const size_t name_length = strlen(name);
    const size_t before = SXE_LITERAL_LENGTH("Set-Cookie: ");
    size_t bytes = 0;

    while (line < end) {
        char *next = (char *)memchr(line, '\n', (size_t)(end - line)) + 1;
        const size_t length = (size_t)(next - line);
        const bool is_older =
            length > before + name_length && strncasecmp(line, "Set-Cookie: ", before) == 0 &&
            memcmp(line + before, name, name_length) == 0 && line[before + name_length] == '=';

        bytes += is_older ? length : 0;
        if (is_older && removes) {
            memmove(line, next, (size_t)(end - next));
            end -= length;
            slot->fields_used -= (uint32_t)length;
        } else {
            line = next;
        }
    }
    return bytes;
}

int
sxe_http_set_cookie_sized(struct sxe_http_response *response, const struct sxe_http_cookie *given,
                          size_t size)
{
    struct sxe_http_cookie cookie;
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    char room[SXE_HTTP_COOKIE_MAX + 1];
    ssize_t length;
    size_t used;

    if (sxe__sized_take(&cookie, sizeof(cookie), given, size, "sxe_http_set_cookie") < 0)
        return -E2BIG;
    if (slot->progress != SXE__HTTP_UNANSWERED || !is_valid_cookie(&cookie))
        return -EINVAL;
    length = compose_cookie(room, &cookie);
    if (length < 0)
        return (int)length;
    used = slot->fields_used - count_older(slot, cookie.name, false);
    if (used + (size_t)length + SXE_LITERAL_LENGTH("Set-Cookie: \r\n") >
        slot->request.http->config.fields_max)
        return -ENOBUFS;
    (void)count_older(slot, cookie.name, true);
    return sxe_http_add_field_span(response, "Set-Cookie", (struct sxe_span){room, (size_t)length});
}

void
sxe_http_keep_cookies(struct sxe_http_response *response)
{
    struct sxe__http_slot *slot = SXE__HTTP_SLOT_OF_RESPONSE(response);
    char *lines = (char *)slot + slot->request.http->reply_at;
    const char *line = lines;
    const char *end = lines + slot->fields_used;
    uint32_t used = 0;

    while (line < end) {
        const size_t length = (size_t)((char *)memchr(line, '\n', (size_t)(end - line)) - line) + 1;

        if (strncasecmp(line, "Set-Cookie:", SXE_LITERAL_LENGTH("Set-Cookie:")) == 0) {
            memmove(lines + used, line, length);
            used += (uint32_t)length;
        }
        line += length;
    }
    slot->fields_used = used;
    slot->offers_upgrade = false;
}
