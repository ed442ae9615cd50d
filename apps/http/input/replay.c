/* SPDX-License-Identifier: MIT
 *
 * Loading a log for --replay, sorting its requests by time, and giving them out.
 */
#include "replay-private.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pace.h"
#include "sxe-time.h"
#include "wrong.h"

#define NO_MEMORY "out of memory"
#define DUE_MAX   9e18 /* the largest time in ns, about three centuries */

enum { FIRST_ROOM = 256 };

static struct load_replay *
replay_of(struct load_requests *requests)
{
    return (struct load_replay *)requests;
}

/* ---- In the worker ---- */

static int
begin_replay(struct load_requests *requests, unsigned shard, unsigned shards, uint64_t seed)
{
    (void)shards;
    load_random_init(replay_of(requests)->random, ~seed + shard);
    return 0;
}

/* Make the request "GET /target ..." of the line's text. All that follows the target is copied from
 * the request for "/" of the same method. */
static void
join_request_texts(struct load_replay *replay, const struct load_text *text,
                   struct load_query *query)
{
    const struct load_template *rest = &replay->rests[text->kind];
    size_t begin_at = strlen(replay->names[text->kind]) + strlen(" /");

    memcpy(replay->bytes, replay->texts.bytes + text->offset, text->length);
    memcpy(replay->bytes + text->length, rest->bytes + begin_at, rest->length - begin_at);
    query->bytes = replay->bytes;
    query->length = (unsigned)(text->length + rest->length - begin_at);
}

static int
next_replay_query(struct load_requests *requests, uint64_t sequence, struct load_query *query)
{
    struct load_replay *replay = replay_of(requests);
    const struct load_template *template;
    uint32_t request;

    if (sequence >= replay->number)
        return -1;
    request = replay->order[sequence];
    template = replay->is_har ? &replay->templates[request]
                              : &replay->rests[replay->texts.all[request].kind];
    load_template_query(template, sequence, replay->random, query);
    if (!replay->is_har)
        join_request_texts(replay, &replay->texts.all[request], query);
    return 0;
}

/* ---- While the file is read ---- */

int
load_replay_kind(struct load_replay *replay, struct sxe_span method, const char **wrong)
{
    const struct load_template_parts parts = {.method = method,
                                              .target = sxe_http_span("/"),
                                              .authority = replay->authority,
                                              .is_literal = true};
    unsigned kind = 0;

    while (kind < replay->kinds && !load_template_is_method(method, replay->names[kind]))
        kind++;
    if (kind < replay->kinds)
        return (int)kind;
    if (kind == LOAD_KINDS_MAX || method.length >= sizeof(replay->names[0]))
        return -1;
    if (!replay->is_har)
        *wrong = load_template_compose(&replay->rests[kind], replay->options, &parts);
    if (*wrong != NULL)
        return -1;
    replay->rests[kind].kind = (uint16_t)kind;
    memcpy(replay->names[kind], method.base, method.length);
    replay->kind_names[kind] = replay->names[kind];
    replay->kinds++;
    return (int)kind;
}

static bool
grow_entries(struct load_replay *replay)
{
    size_t room = replay->room > 0 ? 2 * replay->room : FIRST_ROOM;
    struct load_replay_entry *entries = realloc(replay->entries, room * sizeof(*entries));

    if (entries == NULL)
        return false;
    replay->entries = entries;
    if (replay->is_har) {
        struct load_template *templates =
            realloc(replay->templates, room * sizeof(*replay->templates));

        if (templates == NULL)
            return false;
        replay->templates = templates;
    }
    replay->room = room;
    return true;
}

const char *
load_replay_add(struct load_replay *replay, uint64_t at_ns, uint32_t request)
{
    if (replay->number == replay->room && !grow_entries(replay))
        return NO_MEMORY;
    replay->entries[replay->number] =
        (struct load_replay_entry){at_ns, request, (uint32_t)replay->number};
    replay->number++;
    return NULL;
}

void
load_replay_refuse(struct load_replay *replay, struct sxe_span line)
{
    if (replay->bad++ > 0)
        return;
    replay->bad_at = replay->lines;
    snprintf(replay->bad_text, sizeof(replay->bad_text), "%.*s", (int)line.length, line.base);
    for (char *p = replay->bad_text; *p != '\0'; p++)
        /* The message goes to a terminal, and the line may have any bytes: replace those above
         * 127. */
        *p = (*p & 0x80) != 0 ? '?' : *p;
}

/* ---- The order of the requests ---- */

static int
compare_entries(const void *a, const void *b)
{
    const struct load_replay_entry *one = a;
    const struct load_replay_entry *other = b;

    if (one->at_ns != other->at_ns)
        return one->at_ns < other->at_ns ? -1 : 1;
    return one->line < other->line ? -1 : 1;
}

/* Sort by time if needed. In the log of one server most entries are in order; in a log that was
 * merged from several servers they need not be. */
static void
sort_entries(struct load_replay *replay)
{
    size_t i = 1;

    while (i < replay->number && replay->entries[i - 1].at_ns <= replay->entries[i].at_ns)
        i++;
    if (i < replay->number)
        qsort(replay->entries, replay->number, sizeof(*replay->entries), compare_entries);
}

/* Times in a log are whole seconds: spread the entries of a second evenly over it. */
static void
spread_entries(struct load_replay *replay)
{
    size_t i = 0;

    while (i < replay->number) {
        uint64_t second = replay->entries[i].at_ns;
        size_t from = i;

        while (i < replay->number && replay->entries[i].at_ns == second)
            i++;
        for (size_t k = from; k < i; k++)
            replay->entries[k].at_ns += SXE_NS_PER_SECOND * (k - from) / (i - from);
    }
}

static bool
make_room_for_bytes(struct load_replay *replay)
{
    size_t longest = 0;

    for (unsigned i = 0; i < replay->kinds; i++) {
        if (replay->rests[i].length > longest)
            longest = replay->rests[i].length;
    }
    replay->bytes = malloc(replay->texts.longest + longest);
    return replay->bytes != NULL;
}

/* Make the arrays that the worker reads, order and times_ns, from the entries. */
static const char *
finish_replay(struct load_replay *replay, double speed)
{
    sort_entries(replay);
    if (!replay->is_har)
        spread_entries(replay);
    replay->order = malloc(replay->number * sizeof(*replay->order));
    replay->times_ns = malloc(replay->number * sizeof(*replay->times_ns));
    if (replay->order == NULL || replay->times_ns == NULL || !make_room_for_bytes(replay))
        return NO_MEMORY;
    for (size_t i = 0; i < replay->number; i++) {
        double after = (double)(replay->entries[i].at_ns - replay->entries[0].at_ns);
        double due = after / speed;

        replay->order[i] = replay->entries[i].request;
        replay->times_ns[i] = due < DUE_MAX ? (uint64_t)due : (uint64_t)DUE_MAX;
    }
    free(replay->entries);
    replay->entries = NULL;
    replay->requests.number = replay->number;
    replay->requests.times_ns = replay->times_ns;
    replay->requests.kinds = replay->kinds;
    replay->requests.kind_names = replay->kind_names;
    return NULL;
}

/* Check that there is something to replay, and print a message about requests that are left out.
 * NULL, or why there is nothing to replay. */
static const char *
judge_replay(const struct load_replay *replay, const char *path, FILE *err)
{
    const char *what = replay->is_har ? "entries" : "lines";
    bool is_refused = replay->bad * 10 > replay->bad + replay->number;
    const char *text;

    if (replay->unasked > 0)
        fprintf(err, "sxe-http: '%s': %llu %s cannot be replayed and are left out: %s\n", path,
                (unsigned long long)replay->unasked, what,
                replay->is_har ? "their URLs name no HTTP server (data:, blob:, ws: ...)"
                               : "their clients sent no request");
    if (replay->bad > 0) {
        text = load_wrong("%llu of %llu %s are not requests%s; the first is number %llu: %s",
                          (unsigned long long)replay->bad,
                          (unsigned long long)(replay->bad + replay->number), what,
                          is_refused ? "" : " and are left out", (unsigned long long)replay->bad_at,
                          replay->bad_text);
        if (is_refused)
            return text;
        fprintf(err, "sxe-http: '%s': %s\n", path, text);
    }
    if (replay->number == 0)
        return "it contains no requests";
    if (replay->is_cut)
        fprintf(err, "sxe-http: '%s': the requests after the first %zu are left out\n", path,
                replay->number);
    return NULL;
}

/* Read the file as a HAR file if it begins with a JSON object, perhaps after a byte order mark;
 * otherwise as a log. NULL, or what is wrong. */
static const char *
read_replay_file(struct load_replay *replay, struct load_reader *reader)
{
    const char *wrong;
    const char *p;
    const char *end;

    load_reader_more(reader);
    if (reader->to >= 3 && memcmp(reader->bytes, "\xef\xbb\xbf", 3) == 0)
        reader->from = 3;
    p = reader->bytes + reader->from;
    end = reader->bytes + reader->to;
    if (end - p >= 2 && memcmp(p, "\x1f\x8b", 2) == 0)
        return "it is compressed: give it to --replay - by zcat";
    while (p < end && isspace((unsigned char)*p))
        p++;
    replay->is_har = p < end && *p == '{';
    wrong = replay->is_har ? load_replay_read_har(replay, reader)
                           : load_replay_read_log(replay, reader);
    return reader->error != 0 ? strerror(reader->error) : wrong;
}

static const char *
load_replay_file(struct load_replay *replay, const char *path, double speed, FILE *err)
{
    struct load_reader *reader = malloc(sizeof(*reader));
    const char *wrong;
    int error;

    if (reader == NULL)
        return NO_MEMORY;
    error = load_reader_open(reader, path);
    if (error < 0) {
        free(reader);
        return strerror(-error);
    }
    wrong = read_replay_file(replay, reader);
    load_reader_close(reader);
    free(reader);
    if (wrong == NULL)
        wrong = judge_replay(replay, path, err);
    return wrong != NULL ? wrong : finish_replay(replay, speed);
}

struct load_requests *
load_replay_load(const char *path, double speed, const char *authority,
                 const struct load_template_options *options, FILE *err, size_t entries_max)
{
    struct load_replay *replay = calloc(1, sizeof(*replay));
    const char *wrong = NO_MEMORY;

    if (replay != NULL) {
        replay->requests.begin = begin_replay;
        replay->requests.next = next_replay_query;
        replay->requests.free = load_replay_free;
        replay->options = options;
        replay->authority = authority;
        replay->entries_max = entries_max;
        wrong = load_replay_file(replay, path, speed, err);
        if (wrong == NULL)
            return &replay->requests;
        load_replay_free(&replay->requests);
    }
    fprintf(err,
            "sxe-http: '%s' cannot be replayed: %s; an access log in common or combined "
            "format is needed, or a HAR file\n",
            path, wrong);
    return NULL;
}

struct load_requests *
load_replay_new(const char *path, double speed, const char *authority,
                const struct load_template_options *options, FILE *err)
{
    return load_replay_load(path, speed, authority, options, err, LOAD_REPLAY_MAX);
}

void
load_replay_free(struct load_requests *requests)
{
    struct load_replay *replay = replay_of(requests);

    if (replay == NULL)
        return;
    for (size_t i = 0; replay->templates != NULL && i < replay->number; i++)
        load_template_free(&replay->templates[i]);
    for (unsigned i = 0; i < replay->kinds; i++)
        load_template_free(&replay->rests[i]);
    load_texts_free(&replay->texts);
    free(replay->templates);
    free(replay->entries);
    free(replay->order);
    free(replay->times_ns);
    free(replay->bytes);
    free(replay);
}
