/* SPDX-License-Identifier: MIT
 *
 * Prints the entries of a dict, in no order, while other processes use it: see
 * sxe_dict_walker_step.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool-text.h"
#include "pool-tool.h"
#include "sxe-time.h"
#include "sxe-utf8.h"

enum { KEY_ROOM = 65536, VALUE_ROOM = 1 << 20, TRIES = 1000, SIGNALS_EACH = 256 };

/* Whether the bytes are UTF-8 without zero bytes. */
static bool
is_utf8_text(const char *bytes, size_t size)
{
    size_t length = memchr(bytes, 0, size) == NULL;
    uint32_t character;

    for (size_t i = 0; i < size && length > 0; i += length)
        length = sxe_utf8_decode(&character, (const unsigned char *)bytes + i, size - i);
    return length > 0;
}

/* Print a member of an entry: text as a string, other bytes in hexadecimal. room: how many of its
 * `size` bytes were read, at most. */
static void
print_dict_bytes(const char *name, const char *bytes, size_t size, size_t room, bool is_json)
{
    const size_t there = size < room ? size : room;
    const bool is_string = is_utf8_text(bytes, there);

    printf(is_json ? "\"%s%s\": " : "%s%s=", name, is_string ? "" : "_hex");
    if (is_string) {
        pool_print_json(bytes, there);
        return;
    }
    fputs(is_json ? "\"" : "", stdout);
    for (size_t i = 0; i < there; i++)
        printf("%02x", (unsigned char)bytes[i]);
    fputs(is_json ? "\"" : "", stdout);
}

/* Print an entry's value. Eight bytes that are no text are printed as a number, because they may be
 * a counter. */
static void
print_counter_value(const SXE_DICT_ENTRY *entry, bool is_json)
{
    int64_t value;

    if (entry->value_size != sizeof(value) || is_utf8_text(entry->value, sizeof(value))) {
        print_dict_bytes("value", entry->value, entry->value_size, entry->value_room, is_json);
        return;
    }
    memcpy(&value, entry->value, sizeof(value));
    printf(is_json ? "\"value_i64\": %lld" : "value_i64=%lld", (long long)value);
}

static void
print_entry(const SXE_DICT_ENTRY *entry, const char *state, bool is_json)
{
    fputs(is_json ? "{" : "", stdout);
    print_dict_bytes("key", entry->key, entry->key_size, entry->key_room, is_json);
    printf(is_json ? ", \"state\": \"%s\", \"size\": %zu, \"ttl_s\": " : " %s %zu bytes ", state,
           entry->value_size);
    if (isfinite(entry->ttl_s))
        printf(is_json ? "%.3f, " : "%.3f s ", entry->ttl_s);
    else
        fputs(is_json ? "null, " : "- ", stdout);
    print_counter_value(entry, is_json);
    fputs(is_json ? "}\n" : "\n", stdout);
}

/* Go to the walker's next entry. While another process holds a lock, try again for a second. */
static int
step_dict_walker(SXE_DICT_WALKER *walker, SXE_DICT_ENTRY *entry)
{
    int result = sxe_dict_walker_step(walker, entry);

    for (unsigned tries = 0; result == -EAGAIN && tries < TRIES; tries++) {
        if (pool_wait(SXE_NS_PER_MS))
            return 0;
        result = sxe_dict_walker_step(walker, entry);
    }
    return result;
}

static int
dump_dict(SXE_DICT *dict, const struct pool_options *options, SXE_DICT_ENTRY *entry)
{
    const void *array = sxe_dict_get_pool(dict);
    const unsigned wanted =
        options->state == NULL
            ? 0
            : pool_find_state(array, options->state, SXE_DICT_LIVE, SXE_DICT_DIRTY + 1);
    SXE_DICT_WALKER walker;
    unsigned long shown = 0;
    int result;

    if (wanted == SXE_NONE)
        return EXIT_FAILURE;
    sxe_dict_walker_construct(&walker, dict);
    while ((result = step_dict_walker(&walker, entry)) == 1) {
        if (wanted != 0 && wanted != entry->state)
            continue;
        print_entry(entry, sxe_pool_state_to_string(array, entry->state), options->is_json);
        if (ferror(stdout) || (++shown % SIGNALS_EACH == 0 && pool_is_over()))
            break;
    }
    return result >= 0 ? EXIT_SUCCESS
                       : pool_fail("cannot read the rest of the dict: %s; run sxe-pool check",
                                   strerror(-result));
}

int
pool_dump_dict(SXE_DICT *dict, const struct pool_options *options)
{
    SXE_DICT_ENTRY entry = {.key_room = KEY_ROOM, .value_room = VALUE_ROOM};
    char *room = malloc(KEY_ROOM + VALUE_ROOM);

    if (room == NULL)
        return pool_fail("no memory for an entry: %s", strerror(errno));
    entry.key = room;
    entry.value = room + KEY_ROOM;
    const int result = dump_dict(dict, options, &entry);
    free(room);
    return result;
}
