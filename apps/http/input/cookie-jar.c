/* SPDX-License-Identifier: MIT
 *
 * A user's cookies: reading Set-Cookie, writing the Cookie field.
 */
#include "cookie-jar.h"

#include <string.h>
#include <strings.h>

#include "cookie-date.h"

#define NEVER     INT64_MAX
#define VALUE_MAX 1024 /* most bytes of an attribute's value; a longer attribute is ignored */

/* The head of a cookie in the jar; the bytes of the cookie follow it. */
struct head {
    int64_t expires_s;
    uint32_t serial; /* a cookie with a lower serial is older */
    uint16_t name;   /* the three lengths are in bytes */
    uint16_t value;
    uint16_t path;
    bool is_secure;
};

/* A cookie, whose texts are in the jar or in a Set-Cookie field. */
struct cookie {
    struct head head;
    const char *name;
    const char *value;
    const char *path;
};

static size_t
size_of_head(const struct head *head)
{
    return sizeof(*head) + head->name + head->value + head->path;
}

/* Read the cookie at an offset of the jar. Returns the number of bytes that it occupies. */
static size_t
read_cookie(const struct load_jar *jar, size_t at, struct cookie *cookie)
{
    memcpy(&cookie->head, jar->bytes + at, sizeof(cookie->head));
    cookie->name = jar->bytes + at + sizeof(cookie->head);
    cookie->value = cookie->name + cookie->head.name;
    cookie->path = cookie->value + cookie->head.value;
    return size_of_head(&cookie->head);
}

void
load_jar_clear(struct load_jar *jar)
{
    jar->serial = 0;
    jar->used = 0;
    jar->number = 0;
    jar->has_times = false;
}

/* ---- Changing ---- */

static void
remove_cookie_at(struct load_jar *jar, size_t at, size_t size)
{
    memmove(jar->bytes + at, jar->bytes + at + size, jar->used - at - size);
    jar->used = (uint16_t)(jar->used - size);
    jar->number--;
}

static void
insert_cookie_at(struct load_jar *jar, size_t at, const struct cookie *cookie)
{
    size_t size = size_of_head(&cookie->head);
    char *to = jar->bytes + at;

    memmove(to + size, to, jar->used - at);
    memcpy(to, &cookie->head, sizeof(cookie->head));
    to += sizeof(cookie->head);
    memcpy(to, cookie->name, cookie->head.name);
    memcpy(to + cookie->head.name, cookie->value, cookie->head.value);
    memcpy(to + cookie->head.name + cookie->head.value, cookie->path, cookie->head.path);
    jar->used = (uint16_t)(jar->used + size);
    jar->number++;
    jar->has_times |= cookie->head.expires_s != NEVER;
}

static bool
is_same_cookie(const struct cookie *a, const struct cookie *b)
{
    return a->head.name == b->head.name && a->head.path == b->head.path &&
           memcmp(a->name, b->name, a->head.name) == 0 &&
           memcmp(a->path, b->path, a->head.path) == 0;
}

/* Remove the cookie of the same name and path from the jar, and give its age to the new cookie (RFC
 * 6265, 5.3, 11). True: the two cookies are equal, as they usually are. Then the cookie stays in
 * the jar, and the new one need not be stored. */
static bool
remove_same(struct load_jar *jar, struct cookie *cookie)
{
    struct cookie other;

    for (size_t at = 0, size; at < jar->used; at += size) {
        size = read_cookie(jar, at, &other);
        if (!is_same_cookie(&other, cookie))
            continue;
        if (other.head.value == cookie->head.value &&
            other.head.expires_s == cookie->head.expires_s &&
            other.head.is_secure == cookie->head.is_secure &&
            memcmp(other.value, cookie->value, cookie->head.value) == 0)
            return true;
        cookie->head.serial = other.head.serial;
        remove_cookie_at(jar, at, size);
        return false;
    }
    return false;
}

static void
remove_expired(struct load_jar *jar, int64_t now_s)
{
    struct cookie cookie;

    for (size_t at = 0; jar->has_times && at < jar->used;) {
        size_t size = read_cookie(jar, at, &cookie);

        if (cookie.head.expires_s <= now_s)
            remove_cookie_at(jar, at, size);
        else
            at += size;
    }
}

static void
remove_oldest(struct load_jar *jar)
{
    struct cookie cookie;
    uint32_t serial = UINT32_MAX;
    size_t oldest = 0, oldest_size = 0;

    for (size_t at = 0, size; at < jar->used; at += size) {
        size = read_cookie(jar, at, &cookie);
        if (cookie.head.serial < serial) {
            serial = cookie.head.serial;
            oldest = at;
            oldest_size = size;
        }
    }
    remove_cookie_at(jar, oldest, oldest_size);
}

/* The offset at which a cookie belongs, in the order of the Cookie field: cookies with longer paths
 * come first, then older ones (RFC 6265, 5.4). */
static size_t
place_of_cookie(const struct load_jar *jar, const struct head *head)
{
    struct cookie other;
    size_t at = 0;

    while (at < jar->used) {
        size_t size = read_cookie(jar, at, &other);

        if (other.head.path < head->path ||
            (other.head.path == head->path && other.head.serial > head->serial))
            break;
        at += size;
    }
    return at;
}

static void
set_cookie(struct load_jar *jar, struct cookie *cookie, int64_t now_s)
{
    cookie->head.serial = ++jar->serial;
    if (remove_same(jar, cookie) || cookie->head.expires_s <= now_s)
        return;
    remove_expired(jar, now_s);
    while (jar->number == LOAD_JAR_COOKIES ||
           jar->used + size_of_head(&cookie->head) > sizeof(jar->bytes))
        remove_oldest(jar);
    insert_cookie_at(jar, place_of_cookie(jar, &cookie->head), cookie);
}

/* ---- Set-Cookie ---- */

static struct sxe_span
trim_cookie_blanks(struct sxe_span text)
{
    while (text.length > 0 && (*text.base == ' ' || *text.base == '\t')) {
        text.base++;
        text.length--;
    }
    while (text.length > 0 &&
           (text.base[text.length - 1] == ' ' || text.base[text.length - 1] == '\t'))
        text.length--;
    return text;
}

/* Return the part of *text before the first `byte`, or all of it if there is none; *text becomes
 * the part after that byte. */
static struct sxe_span
cut_span_at(struct sxe_span *text, char byte)
{
    const char *at = memchr(text->base, byte, text->length);
    struct sxe_span part = {text->base, at == NULL ? text->length : (size_t)(at - text->base)};
    size_t taken = part.length + (at != NULL);

    text->base += taken;
    text->length -= taken;
    return part;
}

static bool
is_cookie_word(struct sxe_span text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.base, word, text.length) == 0;
}

/* Whether the host is the domain, or a name below it (RFC 6265, 5.1.3). */
static bool
is_in_domain(struct sxe_span host, struct sxe_span domain)
{
    char last = host.base[host.length - 1];
    size_t before;

    if (domain.length > host.length)
        return false;
    before = host.length - domain.length;
    if (strncasecmp(host.base + before, domain.base, domain.length) != 0)
        return false;
    /* An IP address has no subdomains: it must be the whole domain. */
    return before == 0 || (host.base[before - 1] == '.' && !(last >= '0' && last <= '9'));
}

/* Read the value of Max-Age (RFC 6265, 5.2.2). A very large number may become smaller, but not
 * below 2^40 seconds. False: the value is no number. */
static bool
read_max_age(struct sxe_span value, int64_t now_s, int64_t *expires_s)
{
    bool is_negative = value.length > 0 && *value.base == '-';
    int64_t age = 0;

    if (value.length == is_negative)
        return false;
    for (size_t i = is_negative; i < value.length; i++) {
        if (value.base[i] < '0' || value.base[i] > '9')
            return false;
        if (age < INT64_C(1) << 40)
            age = age * 10 + (value.base[i] - '0');
    }
    *expires_s = is_negative || age == 0 ? INT64_MIN : now_s + age;
    return true;
}

/* The path for a cookie without a Path attribute: the path of the request, up to its last slash
 * (RFC 6265, 5.1.4). */
static struct sxe_span
default_path(struct sxe_span path)
{
    const char *slash;

    path = cut_span_at(&path, '?');
    slash = path.length > 0 && *path.base == '/' ? memrchr(path.base, '/', path.length) : NULL;
    if (slash == NULL || slash == path.base)
        return (struct sxe_span){"/", 1};
    return (struct sxe_span){path.base, (size_t)(slash - path.base)};
}

/* The values of a cookie's attributes. If an attribute is given twice, the last value counts. */
struct attributes {
    struct sxe_span path;
    struct sxe_span domain;
    int64_t expires_s;
    int64_t max_age_s;
    bool has_max_age;
    bool is_secure;
};

static void
read_attribute(struct attributes *attributes, struct sxe_span text, int64_t now_s)
{
    struct sxe_span value = text;
    struct sxe_span name = trim_cookie_blanks(cut_span_at(&value, '='));

    value = trim_cookie_blanks(value);
    if (value.length > VALUE_MAX)
        return;
    if (is_cookie_word(name, "Path")) {
        attributes->path = value;
    } else if (is_cookie_word(name, "Domain")) {
        if (value.length > 0 && *value.base == '.') {
            value.base++;
            value.length--;
        }
        attributes->domain = value;
    } else if (is_cookie_word(name, "Expires")) {
        (void)load_cookie_date(value, &attributes->expires_s);
    } else if (is_cookie_word(name, "Max-Age")) {
        attributes->has_max_age |= read_max_age(value, now_s, &attributes->max_age_s);
    } else if (is_cookie_word(name, "Secure")) {
        attributes->is_secure = true;
    }
}

/* Read "name=value". False: there is no name, or name and value together are too long. */
static bool
read_cookie_pair(struct cookie *cookie, struct sxe_span pair)
{
    struct sxe_span value = pair;
    struct sxe_span name = trim_cookie_blanks(cut_span_at(&value, '='));

    /* A text without "=" is no pair. */
    if (value.base == pair.base + pair.length && pair.base[pair.length - 1] != '=')
        return false;
    value = trim_cookie_blanks(value);
    if (name.length == 0 || name.length + value.length > LOAD_COOKIE_MAX)
        return false;
    cookie->name = name.base;
    cookie->head.name = (uint16_t)name.length;
    cookie->value = value.base;
    cookie->head.value = (uint16_t)value.length;
    return true;
}

void
load_jar_take(struct load_jar *jar, const struct load_jar_origin *origin, const char *field,
              size_t length, int64_t now_s)
{
    struct attributes attributes = {.expires_s = NEVER};
    struct sxe_span rest = {field, length};
    struct sxe_span pair = cut_span_at(&rest, ';');
    struct cookie cookie = {{0}, NULL, NULL, NULL};

    if (pair.length == 0 || !read_cookie_pair(&cookie, pair))
        return;
    while (rest.length > 0)
        read_attribute(&attributes, cut_span_at(&rest, ';'), now_s);
    if (attributes.domain.length > 0 && !is_in_domain(origin->host, attributes.domain))
        return;
    if (attributes.path.length == 0 || *attributes.path.base != '/')
        attributes.path = default_path(origin->path);
    if (attributes.path.length > LOAD_COOKIE_PATH_MAX)
        return;
    cookie.path = attributes.path.base;
    cookie.head.path = (uint16_t)attributes.path.length;
    cookie.head.is_secure = attributes.is_secure;
    cookie.head.expires_s = attributes.has_max_age ? attributes.max_age_s : attributes.expires_s;
    set_cookie(jar, &cookie, now_s);
}

/* ---- Cookie ---- */

/* Whether the cookie's path is the request's path, or a folder above it (RFC 6265, 5.1.4). */
static bool
is_path_match(struct sxe_span path, const struct cookie *cookie)
{
    size_t length = cookie->head.path;

    return path.length >= length && memcmp(path.base, cookie->path, length) == 0 &&
           (path.length == length || cookie->path[length - 1] == '/' || path.base[length] == '/');
}

size_t
load_jar_write(const struct load_jar *jar, struct sxe_span path, int64_t now_s, char *text)
{
    struct cookie cookie;
    size_t length = 0;

    path = cut_span_at(&path, '?');
    for (size_t at = 0, size; at < jar->used; at += size) {
        size = read_cookie(jar, at, &cookie);
        if (cookie.head.is_secure || cookie.head.expires_s <= now_s ||
            !is_path_match(path, &cookie))
            continue;
        if (length > 0) {
            text[length++] = ';';
            text[length++] = ' ';
        }
        memcpy(text + length, cookie.name, cookie.head.name);
        length += cookie.head.name;
        text[length++] = '=';
        memcpy(text + length, cookie.value, cookie.head.value);
        length += cookie.head.value;
    }
    return length;
}
