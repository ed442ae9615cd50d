/* SPDX-License-Identifier: MIT
 *
 * The usual supplier of requests: templates whose placeholders are patched.
 */
#include "template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pace.h"
#include "result.h"
#include "template-private.h"
#include "wrong.h"

#define NO_MEMORY "out of memory"

enum { FIRST_ROOM = 16 };

struct load_templates {
    struct load_requests requests;
    struct load_template_options options;
    struct load_template *all;
    size_t number;
    size_t room;
    /* how many requests are for this worker's host; they are the first ones in `all` */
    size_t here;
    unsigned shards; /* how many workers there are */
    /* the number of queries of all workers after which each worker begins one request later; see
     * round_of */
    uint64_t round;
    uint8_t host; /* the host for which the next requests are added */
    uint64_t random[2];
    char *names[LOAD_KINDS_MAX]; /* the names of the kinds */
    bool is_one_kind;            /* there were too many kinds, so all requests are of one kind */
};

static struct load_templates *
set_of(struct load_requests *requests)
{
    return (struct load_templates *)requests;
}

/* ---- In the worker ---- */

void
load_template_query(const struct load_template *template, uint64_t sequence, uint64_t random[2],
                    struct load_query *query)
{
    load_places_patch(template->bytes, template->places, template->places_number, sequence, random);
    *query = (struct load_query){.bytes = template->bytes,
                                 .length = template->length,
                                 .kind = template->kind,
                                 .is_head = template->is_head,
                                 .is_last = template->is_last};
}

/* Move the requests for this worker's host to the front. */
static void
take_worker_host(struct load_templates *set)
{
    set->here = 0;
    for (size_t i = 0; i < set->number; i++) {
        struct load_template template = set->all[i];

        if (set->requests.turns > 0 && template.host != set->requests.host)
            continue;
        set->all[i] = set->all[set->here];
        set->all[set->here++] = template;
    }
}

/* After how many queries all workers begin one request later. The requests are dealt to the workers
 * in turn. If the number of workers and the number of requests have a common factor, each worker
 * would always send the same few requests; shifting by one request after each round prevents
 * that. */
static uint64_t
round_of(const struct load_templates *set)
{
    const uint64_t workers = set->requests.turns == 0 ? set->shards : set->requests.turns;
    uint64_t factor = workers;

    for (uint64_t other = set->here; other != 0;) {
        const uint64_t rest = factor % other;

        factor = other;
        other = rest;
    }
    return factor == 1 ? UINT64_MAX : workers / factor * set->here;
}

/* The number of this query in the sequence of requests; the caller takes it modulo `here`. */
static uint64_t
turn_of(const struct load_templates *set, uint64_t sequence)
{
    const struct load_requests *requests = &set->requests;
    const uint64_t nth =
        requests->turns == 0 ? sequence : requests->turn + sequence / set->shards * requests->turns;

    return nth + nth / set->round;
}

static int
begin_templates(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    set_of(requests)->shards = shards;
    take_worker_host(set_of(requests));
    if (set_of(requests)->number == 0) {
        fputs("sxe-http: there is no request to send: give a URL, or a request file that has one\n",
              stderr);
        return -EINVAL;
    }
    set_of(requests)->round = round_of(set_of(requests));
    /* The pace also makes random numbers from the seed: placeholders must not repeat them, so use
     * ~seed. */
    load_random_init(set_of(requests)->random, ~seed + shard);
    return 0;
}

static int
next_template(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    struct load_templates *set = set_of(requests);
    uint64_t turn = set->here == 1 ? 0 : turn_of(set, sequence) % set->here;

    load_template_query(&set->all[turn], sequence, set->random, query);
    return 0;
}

/* ---- In the parent ---- */

struct load_requests *
load_templates_new(const struct load_template_options *options)
{
    struct load_templates *set = calloc(1, sizeof(*set));

    if (set == NULL)
        return NULL;
    set->round = UINT64_MAX;
    set->requests.kind_names = (const char *const *)set->names;
    set->requests.begin = begin_templates;
    set->requests.next = next_template;
    set->requests.free = load_templates_free;
    set->options = *options;
    return &set->requests;
}

void
load_templates_free(struct load_requests *requests)
{
    struct load_templates *set = set_of(requests);

    if (set == NULL)
        return;
    for (size_t i = 0; i < set->number; i++)
        load_template_free(&set->all[i]);
    for (unsigned i = 0; i < set->requests.kinds; i++)
        free(set->names[i]);
    free(set->all);
    free(set);
}

/* There are more names than kinds: from now on all requests count as one kind. */
static void
join_kinds(struct load_templates *set)
{
    char *name = strdup("all requests");

    if (name == NULL)
        return;
    for (unsigned i = 0; i < set->requests.kinds; i++)
        free(set->names[i]);
    for (size_t i = 0; i < set->number; i++)
        set->all[i].kind = 0;
    set->names[0] = name;
    set->requests.kinds = 1;
    set->is_one_kind = true;
}

/* Find the kind with this name, or add it, and set *kind to it. False: no memory. */
static bool
find_kind(struct load_templates *set, const char *name, uint16_t *kind)
{
    unsigned i = 0;

    while (i < set->requests.kinds && !set->is_one_kind && strcmp(set->names[i], name) != 0)
        i++;
    if (i == LOAD_KINDS_MAX) {
        join_kinds(set);
        i = 0;
        if (!set->is_one_kind)
            return false;
    } else if (i == set->requests.kinds) {
        set->names[i] = strdup(name);
        if (set->names[i] == NULL)
            return false;
        set->requests.kinds++;
    }
    *kind = (uint16_t)i;
    return true;
}

static bool
make_template_room(struct load_templates *set)
{
    size_t room = set->room > 0 ? 2 * set->room : FIRST_ROOM;
    struct load_template *all;

    if (set->number < set->room)
        return true;
    all = realloc(set->all, room * sizeof(*all));
    if (all == NULL)
        return false;
    set->all = all;
    set->room = room;
    return true;
}

const char *
load_templates_take(struct load_requests *requests, struct load_template *template,
                    const char *name)
{
    struct load_templates *set = set_of(requests);
    const char *wrong = NULL;

    if (set->number == LOAD_TEMPLATES_MAX)
        wrong = load_wrong("there are more than %d requests", LOAD_TEMPLATES_MAX);
    else if (!make_template_room(set) || !find_kind(set, name, &template->kind))
        wrong = NO_MEMORY;
    template->host = set->host;
    if (wrong != NULL) {
        load_template_free(template);
        return wrong;
    }
    set->all[set->number++] = *template;
    set->here = set->number;
    return NULL;
}

void
load_templates_set_host(struct load_requests *requests, unsigned host)
{
    set_of(requests)->host = (uint8_t)host;
}

const char *
load_templates_add(struct load_requests *requests, const char *authority, const char *target,
                   const char *name)
{
    const struct load_template_options *options = &set_of(requests)->options;
    const struct load_template_parts parts = {.method = sxe_http_span(options->method),
                                              .target = sxe_http_span(target),
                                              .body = {options->body, options->body_length},
                                              .authority = authority};
    struct load_template template = {0};
    const char *wrong;

    wrong = load_template_compose(&template, options, &parts);
    return wrong != NULL ? wrong : load_templates_take(requests, &template, name);
}
