/* SPDX-License-Identifier: MIT
 *
 * Parsing of a route's words: its methods and its pattern.
 */
#include "sxe-http-router-private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sxe-http-private.h"
#include "sxe-http-uri.h"

#define COUNT(id)        +1
#define ROOM_OF_NAME(id) +SXE_LITERAL_LENGTH(#id ", ")
#define BIT(id)          (1u << SXE_HTTP_##id)

enum {
    METHODS = 1 SXE_HTTP_METHODS(COUNT),
    /* bytes of a list of all known methods: "GET, HEAD, ..." */
    KNOWN_MAX = 0 SXE_HTTP_METHODS(ROOM_OF_NAME)
};

/* The methods that "*" lists in Allow: not TRACE, which scanners report, nor CONNECT, which has no
 * path. */
#define ANY_METHOD \
    (BIT(GET) | BIT(HEAD) | BIT(POST) | BIT(PUT) | BIT(DELETE) | BIT(OPTIONS) | BIT(PATCH))

static const char token_bytes[] = "!#$%&'*+-.^_`|~0123456789"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char name_bytes[] = "_-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/* The bytes that a pattern may contain: bytes of a path that need no escape, and %; not the
 * asterisk. */
static const char path_bytes[] = "-._~%!$&'()+,;=:@[]|/0123456789"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

int
sxe__http_words_refuse(const struct sxe__http_words *words, int error, const char *format, ...)
{
    const int length = snprintf(words->error, SXE__HTTP_ROUTE_ERROR_MAX,
                                "%.40s %.100s: ", words->methods, words->pattern);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words->error + length, SXE__HTTP_ROUTE_ERROR_MAX - (size_t)length, format, arguments);
    va_end(arguments);
    return -error;
}

static int
bad_method(const struct sxe__http_words *words, struct sxe_span method, const char *why)
{
    return sxe__http_words_refuse(words, EINVAL, "the method %.*s %s", (int)method.length,
                                  method.base, why);
}

static int
bad_pattern(const struct sxe__http_words *words, size_t at, const char *why)
{
    return sxe__http_words_refuse(words, EINVAL, "%s, at byte %zu", why, at);
}

/* ---- Lists of methods: "GET,POST", and texts for Allow ---- */

bool
sxe__http_methods_next(const char **rest, struct sxe_span *method)
{
    method->base = *rest + strspn(*rest, ", ");
    method->length = strcspn(method->base, ", ");
    *rest = method->base + method->length;
    return method->length > 0;
}

bool
sxe__http_methods_have(const char *list, struct sxe_span wanted)
{
    struct sxe_span method;

    while (sxe__http_methods_next(&list, &method)) {
        if (method.length == wanted.length && memcmp(method.base, wanted.base, wanted.length) == 0)
            return true;
    }
    return false;
}

static bool
is_any(struct sxe_span method)
{
    return method.length == 1 && method.base[0] == '*';
}

static int
check_methods(const struct sxe__http_words *words)
{
    const char *rest = words->methods;
    struct sxe_span method;
    unsigned number = 0;

    for (; sxe__http_methods_next(&rest, &method); number++) {
        if (strspn(method.base, token_bytes) < method.length)
            return bad_method(words, method, "is not a token");
        if (sxe__http_methods_have(rest, method))
            return bad_method(words, method, "is there twice");
    }
    return number > 0 ? 0 : sxe__http_words_refuse(words, EINVAL, "there is no method");
}

/* The methods of a list, as bits. All methods that enum sxe_http_method does not know share the bit
 * of OTHER. */
static unsigned
known_methods(const char *list)
{
    unsigned known = BIT(OPTIONS);
    struct sxe_span method;

    while (sxe__http_methods_next(&list, &method))
        known |=
            is_any(method) ? ANY_METHOD : 1u << sxe__http_method_of(method.base, method.length);
    if (known & BIT(GET))
        known |= BIT(HEAD);
    return known;
}

static void
append_method(struct sxe__http_allow *allow, struct sxe_span method)
{
    if (allow->length > 0) {
        memcpy(allow->text + allow->length, ", ", 2);
        allow->length += 2;
    }
    memcpy(allow->text + allow->length, method.base, method.length);
    allow->length += method.length;
    allow->text[allow->length] = '\0';
}

struct sxe__http_allow
sxe__http_allow_with(const struct sxe__http_allow *old, const char *methods)
{
    struct sxe__http_allow allow = {.known = old->known | known_methods(methods)};
    const size_t others_length = old->length - old->others;
    struct sxe_span method;

    /* In `methods` a method of one byte takes two bytes with its comma; in Allow it takes three,
     * with comma and blank. */
    allow.text = malloc(KNOWN_MAX + others_length + 3 * strlen(methods) + 1);
    if (allow.text == NULL)
        return allow;
    for (unsigned id = SXE_HTTP_OTHER + 1; id < METHODS; id++) {
        const char *name = sxe_http_method_name(id);

        if (allow.known & 1u << id)
            append_method(&allow, (struct sxe_span){name, strlen(name)});
    }
    allow.others = allow.length;
    if (others_length > 0) {
        memcpy(allow.text + allow.length, old->text + old->others, others_length + 1);
        allow.length += others_length;
    }
    while (sxe__http_methods_next(&methods, &method)) {
        if (!is_any(method) && !sxe__http_methods_have(allow.text, method))
            append_method(&allow, method);
    }
    return allow;
}

/* ---- Taking a pattern apart ---- */

/* Whether a / begins a segment "." or "..", which no path has (RFC 3986, 6.2.2.3). */
static bool
is_dot_segment(const char *text)
{
    const size_t dots = strspn(text + 1, ".");

    return (dots == 1 || dots == 2) && (text[dots + 1] == '/' || text[dots + 1] == '\0');
}

/* Whether the normal form of a path keeps the escape. */
static bool
is_escape_kept(const char *escape)
{
    const char path[] = {'/', escape[0], escape[1], escape[2]};
    const struct sxe_span span = {path, sizeof(path)};
    struct sxe_span normal;
    char room[sizeof(path)];

    return sxe_http_normalise_path(span, room, sizeof(room), &normal) == 0 &&
           normal.length == span.length && memcmp(normal.base, path, sizeof(path)) == 0;
}

/* Check the pattern from `text` on. NULL, or the reason why no path in normal form can match the
 * pattern. */
static const char *
problem_at(const char *text)
{
    if (text[0] == '/' && text[1] == '/')
        return "an empty segment, which no path has";
    if (text[0] == '/' && is_dot_segment(text))
        return "a segment . or .., which no path has";
    if (text[0] == '}')
        return "a } without {";
    if (text[0] == '*')
        return "a * that is not the whole last segment";
    if (strchr(path_bytes, text[0]) == NULL)
        return "a byte that a path has only as an escape";
    if (text[0] == '%' && strspn(text + 1, "0123456789ABCDEF") < 2)
        return "a % without two of 0-9 and A-F";
    if (text[0] == '%' && !is_escape_kept(text))
        return "an escape of a byte that a path has as it is";
    return NULL;
}

static int
check_literal(const struct sxe__http_words *words, size_t at, size_t length)
{
    for (size_t end = at + length; at < end; at++) {
        const char *problem = problem_at(words->pattern + at);

        if (problem != NULL)
            return bad_pattern(words, at, problem);
    }
    return 0;
}

static int
add_pattern_part(struct sxe__http_words *words, enum sxe__http_part_kind kind, size_t at,
                 size_t length)
{
    words->parts[words->parts_number++] =
        (struct sxe__http_part){kind, {(uint16_t)at, (uint16_t)length}};
    return 0;
}

static int
add_path_name(struct sxe__http_words *words, size_t at, size_t length)
{
    const char *name = words->pattern + at;

    for (unsigned i = 0; i < words->names_number; i++) {
        const struct sxe_http_text *other = &words->names[i];

        if (other->length == length && memcmp(words->pattern + other->offset, name, length) == 0)
            return bad_pattern(words, at, "a parameter's name for the second time");
    }
    if (words->names_number == SXE_HTTP_ROUTE_PARAMETERS)
        return bad_pattern(words, at, "more than 16 parameters");
    words->names[words->names_number++] = (struct sxe_http_text){(uint16_t)at, (uint16_t)length};
    return 0;
}

/* Parse the literal after a parameter, up to the end of the segment. */
static int
parse_suffix(struct sxe__http_words *words, size_t at)
{
    const size_t length = strcspn(words->pattern + at, "/{");

    if (words->pattern[at + length] == '{')
        return bad_pattern(words, at + length, "a second parameter in one segment");
    if (check_literal(words, at, length) < 0)
        return -EINVAL;
    return add_pattern_part(words, SXE__HTTP_PARAMETER, at, length);
}

/* Parse a parameter or tail; the { is at `at`. */
static int
parse_parameter(struct sxe__http_words *words, size_t at)
{
    const char *name = words->pattern + at + 1;
    const char *end = name + strcspn(name, "/{}");
    const size_t length = strspn(name, name_bytes);
    const bool is_tail = strncmp(name + length, "...", 3) == 0;

    if (*end != '}')
        return bad_pattern(words, at, "a { without }");
    if (length == 0 || name + length + (is_tail ? 3 : 0) != end)
        return bad_pattern(words, at + 1, "a name that is not letters, digits, _ and -");
    if (add_path_name(words, at + 1, length) < 0)
        return -EINVAL;
    at = (size_t)(end + 1 - words->pattern);
    if (!is_tail)
        return parse_suffix(words, at);
    if (end[1] != '\0')
        return bad_pattern(words, at, "more after a tail");
    return add_pattern_part(words, SXE__HTTP_TAIL, at, 0);
}

/* Parse the part that begins at byte `at`; at byte 0 that is a literal. */
static int
parse_part(struct sxe__http_words *words, size_t at)
{
    const char *text = words->pattern;
    size_t length = strcspn(text + at, "{*");

    if (text[at] == '{')
        return parse_parameter(words, at);
    if (text[at] == '*' && text[at - 1] == '/' && text[at + 1] == '\0')
        return add_path_name(words, at, 1) < 0 ? -EINVAL
                                               : add_pattern_part(words, SXE__HTTP_TAIL, at + 1, 0);
    if (length == 0)
        length = 1; /* an asterisk that may not stand here is refused below */
    return check_literal(words, at, length) < 0
               ? -EINVAL
               : add_pattern_part(words, SXE__HTTP_LITERAL, at, length);
}

static int
parse_pattern(struct sxe__http_words *words)
{
    const char *text = words->pattern;
    size_t at = 0;

    if (text[0] != '/')
        return bad_pattern(words, 0, "no / to begin with");
    if (strlen(text) > SXE_HTTP_PATTERN_MAX)
        return bad_pattern(words, SXE_HTTP_PATTERN_MAX, "a pattern of more than 1024 bytes");
    while (text[at] != '\0') {
        if (parse_part(words, at) < 0)
            return -EINVAL;
        const struct sxe_http_text *last = &words->parts[words->parts_number - 1].text;
        at = (size_t)last->offset + last->length;
    }
    return 0;
}

int
sxe__http_words_parse(struct sxe__http_words *words)
{
    const int result = check_methods(words);

    return result < 0 ? result : parse_pattern(words);
}
