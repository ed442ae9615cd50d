/* SPDX-License-Identifier: MIT
 *
 * The command show prints a pool's sizes, its states with their ages, the processes that use it,
 * and the counts of a dict.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool-text.h"
#include "pool-tool.h"

/* In which condition the pool was when it was opened: the words for the text, and the word for
 * JSON. */
static const struct {
    const char *text;
    const char *word;
} found[] = {
    [SXE_POOL_CREATED] = {"new", "new"},
    [SXE_POOL_JOINED] = {"in use", "in use"},
    [SXE_POOL_CLOSED] = {"closed by all that used it", "closed"},
    [SXE_POOL_COMPLETED] =
        {"all its users were killed; the changes that they began are complete now", "killed"},
    [SXE_POOL_REBUILT] = {"it was damaged, and has new lists now", "rebuilt"},
};

/* When the youngest element came into the state; 0: the state has no element. */
static uint64_t
youngest_time(const void *array, unsigned state)
{
    const unsigned youngest = sxe_pool_get_youngest(array, state);

    return youngest == SXE_POOL_NO_INDEX ? 0 : sxe_pool_get_time(array, youngest);
}

/* ---- Text ---- */

static void
print_states(const void *array, uint64_t now)
{
    printf("\n%-20s %10s %10s %10s\n", "STATE", "ELEMENTS", "OLDEST", "YOUNGEST");
    for (unsigned state = 0; state < sxe_pool_get_states(array); state++) {
        printf("%-20s %10u %10s %10s\n", pool_plain_text(sxe_pool_state_to_string(array, state)),
               sxe_pool_get_count(array, state),
               pool_age_text(now, sxe_pool_get_oldest_time(array, state)),
               pool_age_text(now, youngest_time(array, state)));
    }
}

static void
print_users(const void *array)
{
    const char *header = "\nPROCESS  COMMAND\n";

    for (unsigned slot = 0; slot < SXE_POOL_SLOTS; slot++) {
        const int process = sxe_pool_get_user(array, slot);

        if (process == 0 || process == getpid())
            continue;
        printf("%s%7d  %s\n", header, process, pool_command_text(process));
        header = "";
    }
}

static void
print_dict(SXE_DICT *dict)
{
    SXE_DICT_STATS stats;
    SXE_DICT_CHAINS chains;
    const int result = sxe_dict_get_chains(dict, &chains);

    sxe_dict_get_stats(dict, &stats);
    printf("a dict of %s\n", pool_count_text(sxe_dict_get_count(dict), "entry"));
    printf("since it was made: hits %" PRIu64 ", misses %" PRIu64 ", evictions %" PRIu64
           ", expirations %" PRIu64 "\n",
           stats.hits, stats.misses, stats.evictions, stats.expirations);
    if (result < 0)
        printf("chains: not known: %s\n", strerror(-result));
    else
        printf("chains: %zu of %s used, the longest chain has %s\n", chains.buckets_used,
               pool_count_text(chains.buckets, "bucket"), pool_count_text(chains.longest, "cell"));
}

static void
print_pool_text(const void *array, SXE_DICT *dict)
{
    const char *fields = sxe_pool_get_fields(array);
    size_t extra;

    sxe_pool_get_extra(array, &extra);
    printf("pool %s: %s\n", pool_plain_text(sxe_pool_get_name(array)),
           found[sxe_pool_get_found(array)].text);
    printf("%s of %s, %s, %s, %s extra\n", pool_count_text(sxe_pool_get_number(array), "element"),
           pool_count_text(sxe_pool_get_element_size(array), "byte"),
           pool_count_text(sxe_pool_get_states(array), "state"),
           pool_count_text(sxe_pool_get_shards(array), "shard"), pool_count_text(extra, "byte"));
    if (dict != NULL)
        print_dict(dict);
    else if (*fields != '\0')
        printf("fields: %s\n", pool_plain_text(fields));
    print_states(array, sxe_pool_get_now(array));
    print_users(array);
}

/* ---- JSON ---- */

static void
print_json_age(const char *name, uint64_t now, uint64_t stamp)
{
    if (stamp != 0 && stamp <= now)
        printf(", \"%s\": %.9f", name, (double)(now - stamp) / 1e9);
}

static void
print_json_states(const void *array, uint64_t now)
{
    for (unsigned state = 0; state < sxe_pool_get_states(array); state++) {
        const char *name = sxe_pool_state_to_string(array, state);

        printf("%s{\"state\": ", state == 0 ? "" : ", ");
        pool_print_json(name, strlen(name));
        printf(", \"elements\": %u", sxe_pool_get_count(array, state));
        print_json_age("oldest_s", now, sxe_pool_get_oldest_time(array, state));
        print_json_age("youngest_s", now, youngest_time(array, state));
        printf("}");
    }
}

static void
print_json_dict(SXE_DICT *dict)
{
    SXE_DICT_STATS stats;
    SXE_DICT_CHAINS chains;

    sxe_dict_get_stats(dict, &stats);
    printf(", \"entries\": %zu, \"hits\": %" PRIu64 ", \"misses\": %" PRIu64
           ", \"evictions\": %" PRIu64 ", \"expirations\": %" PRIu64,
           sxe_dict_get_count(dict), stats.hits, stats.misses, stats.evictions, stats.expirations);
    if (sxe_dict_get_chains(dict, &chains) == 0)
        printf(", \"buckets\": %zu, \"buckets_used\": %zu, \"longest_chain\": %zu", chains.buckets,
               chains.buckets_used, chains.longest);
}

static void
print_pool_json(const void *array, SXE_DICT *dict)
{
    const char *name = sxe_pool_get_name(array);
    const char *fields = sxe_pool_get_fields(array);
    size_t extra;
    bool is_first = true;

    sxe_pool_get_extra(array, &extra);
    printf("{\"name\": ");
    pool_print_json(name, strlen(name));
    printf(", \"found\": \"%s\", \"elements\": %u, \"element_size\": %zu, \"shards\": %u, "
           "\"extra_size\": %zu, \"fields\": ",
           found[sxe_pool_get_found(array)].word, sxe_pool_get_number(array),
           sxe_pool_get_element_size(array), sxe_pool_get_shards(array), extra);
    pool_print_json(fields, strlen(fields));
    if (dict != NULL)
        print_json_dict(dict);
    printf(", \"states\": [");
    print_json_states(array, sxe_pool_get_now(array));
    printf("], \"users\": [");
    for (unsigned slot = 0; slot < SXE_POOL_SLOTS; slot++) {
        const int process = sxe_pool_get_user(array, slot);

        if (process == 0 || process == getpid())
            continue;
        printf("%s%d", is_first ? "" : ", ", process);
        is_first = false;
    }
    printf("]}\n");
}

int
pool_show(const struct pool_options *options)
{
    struct pool_opened opened;

    if (!pool_open(options, 0, &opened))
        return EXIT_FAILURE;
    if (options->is_json)
        print_pool_json(opened.array, opened.dict);
    else
        print_pool_text(opened.array, opened.dict);
    pool_close(&opened);
    return EXIT_SUCCESS;
}
