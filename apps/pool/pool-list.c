/* SPDX-License-Identifier: MIT
 *
 * The command list prints every pool once: as a file in a directory, or, if it has no such file, as
 * a descriptor that a process has open.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool-peek.h"
#include "pool-text.h"
#include "pool-tool.h"

struct listing {
    bool is_json;
    bool has_header;
    struct pool_seen seen;
};

/* Say how many processes use the pool, or, if none does, how the last one left it. */
static const char *
users_text(const struct pool_peek *peek)
{
    if (peek->users == 0)
        return peek->is_closed ? "closed" : "killed";
    return pool_count_text(peek->users, "user");
}

static void
print_list_text(struct listing *listing, const struct pool_peek *peek)
{
    if (!listing->has_header)
        printf("%10s %10s %6s %6s  %-9s %-15s %s\n", "ELEMENTS", "BYTES EACH", "STATES", "SHARDS",
               "USED BY", "NAME", "POOL");
    listing->has_header = true;
    if (peek->why[0] != '\0')
        printf("cannot be used: %s\n", pool_plain_text(peek->why));
    else
        printf("%10u %10zu %6u %6u  %-9s %-15s %s\n", peek->number, peek->element_size,
               peek->states, peek->shards, users_text(peek), pool_plain_text(peek->name),
               pool_plain_text(peek->which));
}

static void
print_list_json(const struct pool_peek *peek)
{
    printf("{\"pool\": ");
    pool_print_json(peek->which, strlen(peek->which));
    if (peek->why[0] != '\0') {
        printf(", \"error\": ");
        pool_print_json(peek->why, strlen(peek->why));
    } else {
        printf(", \"name\": ");
        pool_print_json(peek->name, strlen(peek->name));
        printf(", \"elements\": %u, \"element_size\": %zu, \"states\": %u, \"shards\": %u, "
               "\"users\": %u, \"closed\": %s",
               peek->number, peek->element_size, peek->states, peek->shards, peek->users,
               peek->is_closed ? "true" : "false");
    }
    printf("}\n");
}

static void
print_pool(void *user, const struct pool_peek *peek)
{
    struct listing *listing = user;

    if (!pool_peek_is_new(peek, &listing->seen))
        return;
    if (listing->is_json)
        print_list_json(peek);
    else
        print_list_text(listing, peek);
}

/* Ignore errors of single processes: they may end meanwhile, or belong to other users. */
static int
list_processes(struct listing *listing)
{
    DIR *entries = opendir("/proc");
    const struct dirent *entry;

    if (entries == NULL)
        return pool_fail("cannot read /proc: %s", strerror(errno));
    while ((entry = readdir(entries)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]))
            pool_peek_process((int)strtol(entry->d_name, NULL, 10), print_pool, listing);
    }
    closedir(entries);
    return EXIT_SUCCESS;
}

static int
list_directory(struct listing *listing, const char *directory)
{
    const int error = pool_peek_directory(directory, print_pool, listing);

    return error == 0 ? EXIT_SUCCESS
                      : pool_fail("cannot read the directory %s: %s", directory, strerror(error));
}

int
pool_list(const struct pool_options *options)
{
    static struct listing listing;
    int result;

    listing = (struct listing){.is_json = options->is_json};
    result = list_directory(&listing, "/dev/shm");
    for (unsigned i = 1; i < options->words_number; i++)
        result |= list_directory(&listing, options->words[i]);
    result |= list_processes(&listing);
    if (listing.seen.number == 0 && result == EXIT_SUCCESS && !listing.is_json)
        printf("no pools: none in /dev/shm%s, and none that a process of yours has open\n",
               options->words_number > 1 ? " and the directories" : "");
    return result;
}
