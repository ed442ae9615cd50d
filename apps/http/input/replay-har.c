/* SPDX-License-Identifier: MIT
 *
 * Reading a file in the format HAR 1.2, which browsers save: {"log": {"entries":
 * [{"startedDateTime": "...", "request": {...}}, ...]}}. Jansson reads the whole file into memory,
 * although most of it are replies, which are not used.
 */
#include "replay-private.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wrong.h"

enum { PAIRS_MAX = 254 };

/* Give jansson the next bytes of the file. */
static size_t
read_block(void *buffer, size_t size, void *user)
{
    struct load_reader *reader = user;
    size_t number = reader->to - reader->from;

    if (number == 0)
        number = load_reader_more(reader);
    if (number > size)
        number = size;
    memcpy(buffer, reader->bytes + reader->from, number);
    reader->from += number;
    return number;
}

/* The object's member of this name, which must be a string; base NULL: there is no such string. */
static struct sxe_span
string_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return (struct sxe_span){json_string_value(value), json_string_length(value)};
}

/* The part of a URL after http:// or https://: host, path and query. base NULL: the URL has another
 * scheme, no host, or a query directly after the host. */
static struct sxe_span
after_scheme(struct sxe_span url)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (unsigned i = 0; i < 2; i++) {
        size_t length = strlen(schemes[i]);

        if (url.length > length && strncasecmp(url.base, schemes[i], length) == 0) {
            struct sxe_span rest = {url.base + length, url.length - length};
            size_t host = 0;

            while (host < rest.length && memchr("/?#", rest.base[host], 3) == NULL)
                host++;
            return host > 0 && (host == rest.length || rest.base[host] != '?')
                       ? rest
                       : (struct sxe_span){0};
        }
    }
    return (struct sxe_span){0};
}

/* Whether a page loads this URL without sending an HTTP request. */
static bool
is_unasked(struct sxe_span url)
{
    static const char *const schemes[] = {"data:", "blob:",       "about:",      "ws:",    "wss:",
                                          "file:", "filesystem:", "javascript:", "chrome:"};
    static const char extension[] = "-extension:";

    for (unsigned i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (url.length >= strlen(schemes[i]) &&
            strncasecmp(url.base, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return memmem(url.base, url.length < 32 ? url.length : 32, extension, strlen(extension)) !=
           NULL;
}

/* The path and query of a URL: from its first slash up to a fragment. */
static struct sxe_span
target_of(struct sxe_span rest)
{
    const char *end = memchr(rest.base, '#', rest.length);
    const char *slash;

    if (end == NULL)
        end = rest.base + rest.length;
    slash = memchr(rest.base, '/', (size_t)(end - rest.base));
    return slash == NULL ? sxe_http_span("/") : (struct sxe_span){slash, (size_t)(end - slash)};
}

/* Whether a field of the entry is not sent: it is about the connection or HTTP/2, or this program
 * writes the field itself. */
static bool
is_left_out(struct sxe_span name)
{
    static const char *const names[] = {
        "Connection",     "Keep-Alive", "Proxy-Connection", "TE",   "Trailer", "Transfer-Encoding",
        "Content-Length", "Upgrade",    "HTTP2-Settings",   "Host", "Expect"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (load_template_is_name(name, names[i]))
            return true;
    }
    return name.length > 0 && *name.base == ':';
}

/* Copy the fields that are to be sent. False: there are too many, or one of them lacks its name or
 * value. */
static bool
take_har_fields(const json_t *fields, struct sxe_http_pair *pairs, unsigned *number)
{
    *number = 0;
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        struct sxe_http_pair pair = {string_of(field, "name"), string_of(field, "value")};

        if (pair.name.base == NULL || pair.value.base == NULL || *number == PAIRS_MAX)
            return false;
        if (!is_left_out(pair.name))
            pairs[(*number)++] = pair;
    }
    return true;
}

/* If the body states a Content-Type, but the fields have none, add the field. False: there are too
 * many fields. */
static bool
take_body_type(const json_t *request, struct sxe_http_pair *pairs, unsigned *number)
{
    struct sxe_span type = string_of(json_object_get(request, "postData"), "mimeType");

    if (type.length == 0)
        return true;
    for (unsigned i = 0; i < *number; i++) {
        if (load_template_is_name(pairs[i].name, "Content-Type"))
            return true;
    }
    if (*number == PAIRS_MAX)
        return false;
    pairs[(*number)++] = (struct sxe_http_pair){sxe_http_span("Content-Type"), type};
    return true;
}

/* ---- Bodies that are given as params ---- */

/* Append `before`, and then the text, encoded as browsers encode the fields of a form. */
static char *
append_form_text(char *at, char before, struct sxe_span text)
{
    static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789*-._";
    static const char digits[] = "0123456789ABCDEF";

    *at++ = before;
    for (size_t i = 0; i < text.length; i++) {
        const unsigned char byte = (unsigned char)text.base[i];

        if (byte == ' ') {
            *at++ = '+';
        } else if (byte != '\0' && strchr(kept, byte) != NULL) {
            *at++ = (char)byte;
        } else {
            *at++ = '%';
            *at++ = digits[byte >> 4];
            *at++ = digits[byte & 15];
        }
    }
    return at;
}

/* Encode the params of an entry as the body of a form; *form becomes memory that the caller frees.
 * NULL, or why they cannot be sent. */
static const char *
encode_params(const json_t *params, struct sxe_span *body, char **form)
{
    size_t room = 1;
    char *end;

    for (size_t i = 0; i < json_array_size(params); i++) {
        const json_t *param = json_array_get(params, i);
        struct sxe_span name = string_of(param, "name");

        if (name.base == NULL)
            return "a param of its body has no name";
        room += 2 + 3 * (name.length + string_of(param, "value").length);
    }
    end = *form = malloc(room);
    if (end == NULL)
        return "out of memory for its body";
    for (size_t i = 0; i < json_array_size(params); i++) {
        const json_t *param = json_array_get(params, i);

        end = append_form_text(end, '&', string_of(param, "name"));
        end = append_form_text(end, '=', string_of(param, "value"));
    }
    *body = (struct sxe_span){*form + 1, (size_t)(end - *form - 1)};
    return NULL;
}

/* Set the body to the entry's text, or to its params, which it has instead of a text (HAR 1.2).
 * NULL, or why the body cannot be sent. */
static const char *
take_har_body(const json_t *data, struct sxe_span *body, char **form)
{
    static const char type[] = "application/x-www-form-urlencoded";
    const json_t *params = json_object_get(data, "params");
    struct sxe_span mime = string_of(data, "mimeType");

    *body = string_of(data, "text");
    if (body->length > 0 || json_array_size(params) == 0)
        return NULL;
    if (mime.length < sizeof(type) - 1 || strncasecmp(mime.base, type, sizeof(type) - 1) != 0)
        return "its body is params that are no HTML form's, without text";
    return encode_params(params, body, form);
}

/* ---- Entries ---- */

/* Make the template of one request. NULL, or why it is no request that can be sent. */
static const char *
compose_request(struct load_replay *replay, const json_t *request, struct load_template *template)
{
    struct sxe_http_pair pairs[PAIRS_MAX];
    struct load_template_parts parts = {.method = string_of(request, "method"),
                                        .target =
                                            target_of(after_scheme(string_of(request, "url"))),
                                        .authority = replay->authority,
                                        .pairs = pairs,
                                        .is_literal = true};
    const char *wrong = NULL;
    char *form = NULL;
    int kind;

    if (parts.method.length == 0 ||
        !take_har_fields(json_object_get(request, "headers"), pairs, &parts.pairs_number) ||
        !take_body_type(request, pairs, &parts.pairs_number))
        return "it has no method, or fields without name and value";
    wrong = take_har_body(json_object_get(request, "postData"), &parts.body, &form);
    if (wrong == NULL)
        wrong = load_template_compose(template, replay->options, &parts);
    free(form);
    if (wrong != NULL)
        return wrong;
    kind = load_replay_kind(replay, parts.method, &wrong);
    if (kind < 0) {
        load_template_free(template);
        return "it has one method too many";
    }
    template->kind = (uint16_t)kind;
    return NULL;
}

/* Add the entry to the replay. NULL, or why no more entries can be added. */
static const char *
take_entry(struct load_replay *replay, const json_t *entry)
{
    const json_t *request = json_object_get(entry, "request");
    struct sxe_span url = string_of(request, "url");
    struct load_template template = {0};
    const char *wrong;
    uint64_t at_ns;

    replay->lines++;
    if (url.base != NULL && is_unasked(url)) {
        replay->unasked++;
        return NULL;
    }
    if (url.base != NULL && after_scheme(url).base == NULL) {
        load_replay_refuse(replay,
                           sxe_http_span("its url is none of http:// or https://, with a host"));
        return NULL;
    }
    if (url.base == NULL || !load_replay_iso_time(string_of(entry, "startedDateTime"), &at_ns)) {
        load_replay_refuse(replay, sxe_http_span("it has no startedDateTime, or no request"));
        return NULL;
    }
    wrong = compose_request(replay, request, &template);
    if (wrong != NULL) {
        load_replay_refuse(replay, sxe_http_span(wrong));
        return NULL;
    }
    wrong = load_replay_add(replay, at_ns, (uint32_t)replay->number);
    if (wrong != NULL)
        load_template_free(&template);
    else
        replay->templates[replay->number - 1] = template;
    return wrong;
}

const char *
load_replay_read_har(struct load_replay *replay, struct load_reader *reader)
{
    json_error_t error;
    json_t *root = json_load_callback(read_block, reader, JSON_ALLOW_NUL, &error);
    const json_t *entries = json_object_get(json_object_get(root, "log"), "entries");
    const char *wrong = NULL;

    if (root == NULL && reader->error == 0)
        return load_wrong("it begins as HAR, but line %d is not JSON: %s", error.line, error.text);
    if (root != NULL && !json_is_array(entries))
        wrong = "it is JSON, but not HAR: there is no log.entries";
    for (size_t i = 0; i < json_array_size(entries) && wrong == NULL; i++) {
        replay->is_cut = replay->number == replay->entries_max;
        if (replay->is_cut)
            break;
        wrong = take_entry(replay, json_array_get(entries, i));
    }
    json_decref(root);
    return wrong;
}
