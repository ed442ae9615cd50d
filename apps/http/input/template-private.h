/* SPDX-License-Identifier: MIT
 *
 * What: declarations that the files which make requests share.
 *
 *     template-place.c     placeholders, and texts that have them
 *     template-compose.c   one request: method, target, fields and body become bytes with places
 *     template.c           a set of requests that take turns
 *     template-file.c      requests from a file
 *     replay.c             a list of requests with times, from replay-log.c or replay-har.c
 */
#ifndef LOAD_TEMPLATE_PRIVATE_H
#define LOAD_TEMPLATE_PRIVATE_H

#include "sxe-http-client.h"
#include "template-place.h"
#include "template.h"

/* the most bytes of a body: a request with all its places must have less than 4 GiB */
#define LOAD_TEMPLATE_BODY_MAX (512u << 20)

/* A request's bytes, complete except for the values of its places. */
struct load_template {
    struct load_place *places; /* allocated together with the bytes, in one block */
    char *bytes;
    uint32_t length;
    uint32_t places_number;
    uint16_t kind;
    bool is_head;
    bool is_last;
    uint8_t host; /* index of the host that gets the request; 0 if there is one host */
};

/* The parts of a request that do not come from the options of the command line. */
struct load_template_parts {
    struct sxe_span method;
    struct sxe_span target;
    struct sxe_span body; /* if its base is NULL, there is no body */
    const char *authority;
    /* header fields; a field of the options replaces a field of the same name */
    const struct sxe_http_pair *pairs;
    unsigned pairs_number;
    bool is_literal; /* whether the target, the pairs and the body have no placeholders */
};

/* Make a request. NULL, or what is wrong, as a text of this thread. The caller frees the template
 * with load_template_free. */
const char *load_template_compose(struct load_template *template,
                                  const struct load_template_options *options,
                                  const struct load_template_parts *parts);

/* Make a template that is a copy of the draft. Returns like load_template_compose. */
const char *load_template_take(struct load_template *template, const struct load_draft *draft);
void load_template_free(struct load_template *template);

/* Make the query with this sequence number: the template's bytes, whose places have the values for
 * this number. */
void load_template_query(const struct load_template *template, uint64_t sequence,
                         uint64_t random[2], struct load_query *query);

/* Compare a text with a name of a field, or with a method. load_template_is_name ignores case,
 * because names of fields have none; load_template_is_method does not. */
bool load_template_is_name(struct sxe_span name, const char *text);
bool load_template_is_method(struct sxe_span method, const char *text);

/* Add a request to a set, which then owns it; name is the name of its kind. Returns like
 * load_template_compose. */
const char *load_templates_take(struct load_requests *requests, struct load_template *template,
                                const char *name);

#endif
