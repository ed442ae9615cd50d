/* SPDX-License-Identifier: MIT
 *
 * Composes a request. Its texts are expanded into one draft. lib-sxe-http's function that writes
 * requests makes the head from them, and lib-sxe-http's parser tells where each text is in the
 * head. So the request is valid, and no code here counts bytes.
 */
#include "template-private.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sxe-always-internal.h"
#include "sxe-http-list.h"
#include "wrong.h"

#define NO_MEMORY "out of memory"

enum { FIELDS_MAX = 254 /* the most fields, without Host */, PARTS_MAX = FIELDS_MAX + 2 };
enum part { TARGET, HOST, FIRST_FIELD };

struct composition {
    const struct load_template_options *options;
    const struct load_template_parts *parts;
    struct sxe_span host;
    struct sxe_http_pair pairs[FIELDS_MAX];
    bool is_literal[FIELDS_MAX];
    unsigned number; /* the number of pairs */
    struct load_draft draft;
    struct {
        size_t offset; /* where the text begins in the draft */
        size_t length;
    } text[PARTS_MAX];
    struct load_draft body;
    struct sxe_http_request_head request;
};

static const struct {
    const char *name;
    const char *value;
    bool is_of_1_0;
} defaults[] = {{"User-Agent", "sxe-http/" SXE_VERSION, false},
                {"Accept", "*/*", false},
                {"Connection", "keep-alive", true}};

enum { DEFAULTS = sizeof(defaults) / sizeof(defaults[0]) };

bool
load_template_is_name(struct sxe_span name, const char *text)
{
    return name.length == strlen(text) && strncasecmp(name.base, text, name.length) == 0;
}

bool
load_template_is_method(struct sxe_span method, const char *text)
{
    return method.length == strlen(text) && memcmp(method.base, text, method.length) == 0;
}

/* ---- Which fields ---- */

static bool
has_option(const struct load_template_options *options, struct sxe_span name)
{
    for (unsigned i = 0; i < options->fields_number; i++) {
        const char *field = options->fields[i];

        if (strcspn(field, ":") == name.length && strncasecmp(field, name.base, name.length) == 0)
            return true;
    }
    return false;
}

static bool
has_pair(const struct load_template_parts *parts, const char *name)
{
    for (unsigned i = 0; i < parts->pairs_number; i++) {
        if (load_template_is_name(parts->pairs[i].name, name))
            return true;
    }
    return false;
}

static const char *
add_pair(struct composition *c, struct sxe_span name, struct sxe_span value, bool is_literal)
{
    if (c->number == FIELDS_MAX)
        return load_wrong("there are more than %d headers", FIELDS_MAX);
    c->is_literal[c->number] = is_literal;
    c->pairs[c->number++] = (struct sxe_http_pair){name, value};
    return NULL;
}

/* Add the default headers that are neither in the options nor in the parts. */
static void
add_defaults(struct composition *c)
{
    for (unsigned i = 0; i < DEFAULTS; i++) {
        struct sxe_span name = sxe_http_span(defaults[i].name);

        if ((c->options->is_http_1_0 || !defaults[i].is_of_1_0) && !has_option(c->options, name) &&
            !has_pair(c->parts, defaults[i].name))
            add_pair(c, name, sxe_http_span(defaults[i].value), true);
    }
}

static const char *
add_pairs(struct composition *c)
{
    const char *wrong = NULL;

    for (unsigned i = 0; i < c->parts->pairs_number && wrong == NULL; i++) {
        const struct sxe_http_pair *pair = &c->parts->pairs[i];

        if (!has_option(c->options, pair->name))
            wrong = add_pair(c, pair->name, pair->value, c->parts->is_literal);
    }
    return wrong;
}

static bool
is_default(struct sxe_span name)
{
    for (unsigned i = 0; i < DEFAULTS; i++) {
        if (load_template_is_name(name, defaults[i].name))
            return true;
    }
    return false;
}

static const char *
add_option(struct composition *c, const char *text)
{
    struct sxe_span name = {text, strcspn(text, ":")};
    struct sxe_span value;

    if (text[name.length] == '\0')
        return load_wrong("'%s' is no header: give 'Name: value', or 'Name:' to leave one of ours "
                          "out",
                          text);
    value = sxe_http_without_blanks(sxe_http_span(text + name.length + 1));
    if (load_template_is_name(name, "Content-Length") ||
        load_template_is_name(name, "Transfer-Encoding"))
        return load_wrong("leave %.*s out: it is made from the body", (int)name.length, text);
    if (load_template_is_name(name, "Host")) {
        c->host = value;
        return NULL;
    }
    return value.length == 0 && is_default(name) ? NULL : add_pair(c, name, value, false);
}

static const char *
choose_fields(struct composition *c)
{
    const char *wrong;

    c->host = sxe_http_span(c->parts->authority);
    add_defaults(c);
    wrong = add_pairs(c);
    for (unsigned i = 0; i < c->options->fields_number && wrong == NULL; i++)
        wrong = add_option(c, c->options->fields[i]);
    return wrong;
}

/* ---- Bytes ---- */

static const char *
expand_part(struct composition *c, unsigned part, struct sxe_span text, bool is_literal)
{
    const char *wrong = NULL;

    c->text[part].offset = c->draft.length;
    if (is_literal)
        load_draft_add(&c->draft, text);
    else
        wrong = load_draft_expand(&c->draft, text);
    c->text[part].length = c->draft.length - c->text[part].offset;
    return wrong;
}

static const char *
expand_all_places(struct composition *c)
{
    const struct load_template_parts *parts = c->parts;
    const char *wrong = expand_part(c, TARGET, parts->target, parts->is_literal);

    if (wrong == NULL)
        wrong = expand_part(c, HOST, c->host, false);
    for (unsigned i = 0; i < c->number && wrong == NULL; i++)
        wrong = expand_part(c, FIRST_FIELD + i, c->pairs[i].value, c->is_literal[i]);
    if (parts->is_literal)
        load_draft_add(&c->body, parts->body);
    else if (wrong == NULL)
        wrong = load_draft_expand(&c->body, parts->body);
    if (wrong == NULL && (c->draft.is_out_of_memory || c->body.is_out_of_memory))
        wrong = NO_MEMORY;
    return wrong;
}

static struct sxe_span
expanded_part(const struct composition *c, unsigned part)
{
    return (struct sxe_span){c->draft.bytes + c->text[part].offset, c->text[part].length};
}

static bool
is_refused(const struct sxe_http_request_head *request)
{
    char head[UINT16_MAX];

    return sxe_http_request_write(request, head, sizeof(head)) < 0;
}

/* lib-sxe-http refused to write the request: find the wrong part, by adding one part after the
 * other. */
static const char *
explain_problem(const struct composition *c)
{
    struct sxe_http_request_head request = {.target = sxe_http_span("/")};

    request.method = c->request.method;
    request.body_length = c->request.body_length;
    if (is_refused(&request))
        return load_wrong("'%.*s' is no method for that, or has no body",
                          (int)request.method.length, request.method.base);
    request.target = c->request.target;
    if (is_refused(&request))
        return load_wrong("'%.*s' is no target of a request", (int)request.target.length,
                          request.target.base);
    request.host = c->request.host;
    if (is_refused(&request))
        return load_wrong("'%.*s' is not a host for the Host header", (int)request.host.length,
                          request.host.base);
    request.fields_number = 1;
    for (request.fields = c->pairs; request.fields < c->pairs + c->number; request.fields++) {
        if (is_refused(&request))
            return load_wrong("'%.*s: %.*s' is no header that can be sent",
                              (int)request.fields->name.length, request.fields->name.base,
                              (int)request.fields->value.length, request.fields->value.base);
    }
    return "the headers together are more than 64 KiB";
}

/* Move the places of a text to the position that the text has in the request. */
static void
move_places(const struct composition *c, unsigned part, size_t to, struct load_draft *request)
{
    size_t from = c->text[part].offset;

    for (unsigned i = 0; i < c->draft.places_number; i++) {
        struct load_place place = c->draft.places[i];

        if (place.offset < from || place.offset >= from + c->text[part].length)
            continue;
        place.offset = (uint32_t)(place.offset - from + to);
        load_draft_add_place(request, &place);
    }
}

static void
move_all_places(const struct composition *c, const struct sxe_http_parser *head,
                struct load_draft *request)
{
    move_places(c, TARGET, head->target.offset, request);
    move_places(c, HOST, head->fields[0].value, request);
    for (unsigned i = 0; i < c->number; i++)
        move_places(c, FIRST_FIELD + i, head->fields[1 + i].value, request);
}

/* Write the head, and then parse it to find the texts in it. Sets *is_last. */
static const char *
make_head(struct composition *c, struct load_draft *request, bool *is_last)
{
    static const struct sxe_http_limits widest = {UINT16_MAX, UINT16_MAX, FIELDS_MAX + 1};
    struct sxe_http_field fields[FIELDS_MAX + 1];
    struct sxe_http_parser parser;
    char head[UINT16_MAX];
    ssize_t length = sxe_http_request_write(&c->request, head, sizeof(head));

    if (length < 0)
        return explain_problem(c);
    if (c->options->is_http_1_0)
        head[c->request.method.length + strlen(" ") + c->request.target.length +
             strlen(" HTTP/1.")] = '0';
    sxe_http_parser_init(&parser, SXE_HTTP_REQUEST, fields, FIELDS_MAX + 1, &widest);
    if (SXE_NEVER(sxe_http_parse(&parser, head, (size_t)length) != (int)length))
        return "the request cannot be read";
    load_draft_add(request, (struct sxe_span){head, (size_t)length});
    move_all_places(c, &parser, request);
    *is_last = !parser.keep_alive;
    return NULL;
}

static const char *
make_request(struct composition *c, struct load_template *template)
{
    struct load_draft request = {0};
    bool is_last = false;
    const char *wrong;

    c->request = (struct sxe_http_request_head){.method = c->parts->method,
                                                .target = expanded_part(c, TARGET),
                                                .host = expanded_part(c, HOST),
                                                .fields = c->pairs,
                                                .fields_number = c->number,
                                                .body_length = c->body.length};
    for (unsigned i = 0; i < c->number; i++)
        c->pairs[i].value = expanded_part(c, FIRST_FIELD + i);
    wrong = make_head(c, &request, &is_last);
    if (wrong == NULL) {
        load_draft_append(&request, &c->body);
        wrong = load_template_take(template, &request);
        template->is_last = is_last;
    }
    load_draft_free(&request);
    return wrong;
}

const char *
load_template_compose(struct load_template *template, const struct load_template_options *options,
                      const struct load_template_parts *parts)
{
    struct composition c = {.options = options, .parts = parts};
    const char *wrong;

    if (load_template_is_method(parts->method, "CONNECT"))
        return "CONNECT makes a tunnel: there are no requests through it";
    if (parts->body.length > LOAD_TEMPLATE_BODY_MAX)
        return load_wrong("the body is longer than %u bytes", LOAD_TEMPLATE_BODY_MAX);
    wrong = choose_fields(&c);
    if (wrong == NULL)
        wrong = expand_all_places(&c);
    if (wrong == NULL)
        wrong = make_request(&c, template);
    template->is_head = load_template_is_method(parts->method, "HEAD");
    load_draft_free(&c.draft);
    load_draft_free(&c.body);
    return wrong;
}

const char *
load_template_take(struct load_template *template, const struct load_draft *draft)
{
    size_t places = draft->places_number * sizeof(*draft->places);
    char *block = draft->is_out_of_memory ? NULL : malloc(places + draft->length);

    if (block == NULL)
        return NO_MEMORY;
    *template = (struct load_template){
        .places = (struct load_place *)(void *)block,
        .bytes = block + places,
        .length = (uint32_t)draft->length,
        .places_number = draft->places_number,
    };
    if (places > 0)
        memcpy(block, draft->places, places);
    memcpy(template->bytes, draft->bytes, draft->length);
    return NULL;
}

void
load_template_free(struct load_template *template)
{
    free(template->places);
    *template = (struct load_template){0};
}
